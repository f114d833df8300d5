/* Solutions of lesson 13.
 *
 *     nvcc -O3 -arch=native 13_convolution.cu -o 13_convolution && ./13_convolution
 *
 * 1. One loop more, over the channels of the input; the channel of the output comes from blockIdx.z
 *    (lesson 09). This is the convolution of neural networks, short of a batch of images.
 * 2. Constant memory is read through a small cache that hands one number to all 32 threads of a
 *    warp at once. That suits the filter; for numbers that differ from thread to thread it would be
 *    slow. There are 64 KB of it. */
#include <stdio.h>
#include <stdlib.h>

enum { RADIUS = 2, WIDTH = 2 * RADIUS + 1, TILE = 16, WITH_HALO = TILE + 2 * RADIUS };

static __constant__ float weights[WIDTH * WIDTH];

static __device__ float pixel(const float *image, int height, int width, int y, int x) {
    bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? image[y * width + x] : 0;
}

/* image[channel][y][x], filter[out][in][i][j], result[out][y][x] */
static __global__ void convolve_channels(const float *image, const float *filter, float *result,
                                         int channels, int height, int width) {
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    int out = blockIdx.z;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int in = 0; in < channels; in++) {
        const float *from = image + in * height * width;
        const float *weight = filter + (out * channels + in) * WIDTH * WIDTH;
        for (int i = 0; i < WIDTH; i++) {
            for (int j = 0; j < WIDTH; j++) {
                sum += weight[i * WIDTH + j] *
                       pixel(from, height, width, y + i - RADIUS, x + j - RADIUS);
            }
        }
    }
    result[(out * height + y) * width + x] = sum;
}

/* The lesson's convolve_tiled with the filter in constant memory. */
static __global__ void convolve_constant(const float *image, float *result, int height, int width) {
    __shared__ float tile[WITH_HALO][WITH_HALO];
    int thread = threadIdx.y * TILE + threadIdx.x;
    int top = blockIdx.y * TILE - RADIUS, left = blockIdx.x * TILE - RADIUS;
    for (int i = thread; i < WITH_HALO * WITH_HALO; i += TILE * TILE) {
        int row = i / WITH_HALO, col = i % WITH_HALO;
        tile[row][col] = pixel(image, height, width, top + row, left + col);
    }
    __syncthreads();
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int i = 0; i < WIDTH; i++) {
        for (int j = 0; j < WIDTH; j++) {
            sum += weights[i * WIDTH + j] * tile[threadIdx.y + i][threadIdx.x + j];
        }
    }
    result[y * width + x] = sum;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* Random whole numbers from -4 to 4, whose products and sums are exact. */
static void fill(float *x, size_t count, unsigned state) {
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int)(state >> 16) % 9 - 4);
    }
}

/* How many pixels of `outs` channels on the device differ from the C loop's. */
static int count_wrong(const float *image, const float *filter, const float *d_result, int channels,
                       int outs, int height, int width) {
    int count = outs * height * width, wrong = 0;
    float *result = (float *)malloc(count * sizeof(float));
    if (!result) exit(1);
    CHECK(cudaMemcpy(result, d_result, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (int at = 0; at < count; at++) {
        int out = at / (height * width), y = at / width % height, x = at % width;
        float sum = 0;
        for (int in = 0; in < channels; in++) {
            for (int i = 0; i < WIDTH * WIDTH; i++) {
                int row = y + i / WIDTH - RADIUS, col = x + i % WIDTH - RADIUS;
                if (row < 0 || row >= height || col < 0 || col >= width) continue;
                sum += filter[(out * channels + in) * WIDTH * WIDTH + i] *
                       image[(in * height + row) * width + col];
            }
        }
        wrong += !(result[at] - sum == 0);
    }
    free(result);
    return wrong;
}

/* New device memory with a copy of host memory, or with NaN (all bits one) for NULL. */
static float *new_device_array(size_t count, const float *h_from) {
    float *x;
    CHECK(cudaMalloc(&x, count * sizeof(float)));
    CHECK(cudaMemset(x, 0xFF, count * sizeof(float)));
    if (h_from) CHECK(cudaMemcpy(x, h_from, count * sizeof(float), cudaMemcpyHostToDevice));
    return x;
}

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    const int channels = 3, outs = 4, height = 37, width = 53;
    const int inputs = channels * height * width, outputs = outs * height * width;
    float filter[outs * channels * WIDTH * WIDTH];
    float *image = (float *)malloc(inputs * sizeof(float));
    if (!image) return 1;
    fill(image, inputs, 1);
    fill(filter, sizeof filter / sizeof *filter, 2);
    float *d_image = new_device_array(inputs, image);
    float *d_filter = new_device_array(sizeof filter / sizeof *filter, filter);
    float *d_result = new_device_array(outputs, NULL);

    dim3 block(TILE, TILE), tiles((width + TILE - 1) / TILE, (height + TILE - 1) / TILE, outs);
    convolve_channels<<<tiles, block>>>(d_image, d_filter, d_result, channels, height, width);
    CHECK(cudaGetLastError());
    int wrong = count_wrong(image, filter, d_result, channels, outs, height, width);
    printf("1. %d channels to %d: %d of %d pixels wrong\n", channels, outs, wrong, outputs);

    /* One image and one filter: the first channel of each. */
    tiles.z = 1;
    CHECK(cudaMemset(d_result, 0xFF, outputs * sizeof(float)));
    CHECK(cudaMemcpyToSymbol(weights, filter, sizeof weights));
    convolve_constant<<<tiles, block>>>(d_image, d_result, height, width);
    CHECK(cudaGetLastError());
    int more_wrong = count_wrong(image, filter, d_result, 1, 1, height, width);
    printf("2. filter in constant memory: %d of %d pixels wrong\n", more_wrong, height * width);

    CHECK(cudaFree(d_image));
    CHECK(cudaFree(d_filter));
    CHECK(cudaFree(d_result));
    free(image);
    return wrong || more_wrong ? 1 : 0;
}
