/* Lesson 13: convolution, where neighbours need the same inputs.
 *
 *     nvcc -O3 -arch=native 13_convolution.cu -o 13_convolution && ./13_convolution
 *
 * A small square of numbers, the FILTER, slides over an image. Wherever it lies, its numbers are
 * multiplied with those of the image below them, and the sum of the products is one pixel of the
 * result. With other numbers in the filter it blurs, sharpens or finds edges; networks that look at
 * images learn the numbers. (Mathematicians turn the filter round first and call this one
 * cross-correlation. Neural networks never turn it and say convolution all the same.) Where the
 * filter reaches over the edge of the image there are zeros, so the result is as large as the
 * image.
 *
 * Each pixel is needed by 25 threads when the filter is 5 x 5. The second kernel fetches the pixels
 * that a block needs into shared memory first: those of its own square, and around it a border 2
 * wide, the HALO. All arrays with borders that depend on neighbours are done this way.
 *
 * What to look for: the time of both kernels. Expect a smaller gain than in lesson 11: the cache
 * notices the neighbours' common pixels by itself, the better the newer the card is, so here tiles
 * mostly save the tests for the edge, and what is left of the gain has to pay for filling them. (On
 * the simulated card a thread that waits for others is expensive, so there tiles lose.) */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The filter reaches RADIUS pixels to each side of its centre. A block makes TILE x TILE pixels of
 * the result and reads WITH_HALO x WITH_HALO of the image. */
enum { RADIUS = 2, WIDTH = 2 * RADIUS + 1, TILE = 16, WITH_HALO = TILE + 2 * RADIUS };

/* The pixel in row y and column x, and 0 outside of the image. */
static __device__ float pixel(const float *image, int height, int width, int y, int x) {
    bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? image[(size_t)y * width + x] : 0;
}

/* One thread per pixel of the result, which reads all it needs from device memory. */
static __global__ void convolve_direct(const float *image, const float *filter, float *result,
                                       int height, int width) {
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int i = 0; i < WIDTH; i++) {
        for (int j = 0; j < WIDTH; j++) {
            sum +=
                filter[i * WIDTH + j] * pixel(image, height, width, y + i - RADIUS, x + j - RADIUS);
        }
    }
    result[(size_t)y * width + x] = sum;
}

/* The same through shared memory. The tile with its halo has 20 x 20 = 400 pixels, and the block
 * 16 x 16 = 256 threads. So the threads are counted from 0 to 255 and thread t fetches pixels t and
 * t + 256 of the tile. Which thread fetches a pixel has nothing to do with which one uses it. */
static __global__ void convolve_tiled(const float *image, const float *filter, float *result,
                                      int height, int width) {
    __shared__ float tile[WITH_HALO][WITH_HALO], weight[WIDTH][WIDTH];
    int thread = threadIdx.y * TILE + threadIdx.x;
    int top = blockIdx.y * TILE - RADIUS, left = blockIdx.x * TILE - RADIUS;
    for (int i = thread; i < WITH_HALO * WITH_HALO; i += TILE * TILE) {
        int row = i / WITH_HALO, col = i % WITH_HALO;
        tile[row][col] = pixel(image, height, width, top + row, left + col);
    }
    if (thread < WIDTH * WIDTH) weight[thread / WIDTH][thread % WIDTH] = filter[thread];
    __syncthreads();

    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= width || y >= height) return; /* only now: all had to come to __syncthreads() */
    float sum = 0;
    for (int i = 0; i < WIDTH; i++) {
        for (int j = 0; j < WIDTH; j++) {
            sum += weight[i][j] * tile[threadIdx.y + i][threadIdx.x + j];
        }
    }
    result[(size_t)y * width + x] = sum;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { REPEATS = 5 };
typedef void Kernel(const float *image, const float *filter, float *result, int height, int width);

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void convolve_on_host(const float *image, const float *filter, float *result, int height,
                             int width) {
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            float sum = 0;
            for (int i = -RADIUS; i <= RADIUS; i++) {
                for (int j = -RADIUS; j <= RADIUS; j++) {
                    if (y + i < 0 || y + i >= height || x + j < 0 || x + j >= width) continue;
                    sum += filter[(i + RADIUS) * WIDTH + j + RADIUS] *
                           image[(size_t)(y + i) * width + x + j];
                }
            }
            result[(size_t)y * width + x] = sum;
        }
    }
}

/* Whole numbers: pixels from 0 to 255 and the filter below give sums that a float holds exactly. */
static void draw(float *image, int height, int width) {
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            image[(size_t)y * width + x] = (float)((x * x + 3 * y * y + x * y) / 64 % 256);
        }
    }
}

/* Runs a kernel once for its result, and then some more for the clock. Returns the number of wrong
 * pixels; *us is the mean time of a launch. */
static size_t try_kernel(Kernel *kernel, const float *d_image, const float *d_filter,
                         float *d_result, float *h_result, const float *expected, int height,
                         int width, double *us) {
    dim3 block(TILE, TILE), grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
    size_t count = (size_t)height * width, wrong = 0;
    CHECK(cudaMemset(d_result, 0xFF, count * sizeof(float))); /* NaN: what is left out is found */
    kernel<<<grid, block>>>(d_image, d_filter, d_result, height, width);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_result, d_result, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) wrong += !(h_result[i] - expected[i] == 0);
    double start = now_us();
    for (int i = 0; i < REPEATS; i++) {
        kernel<<<grid, block>>>(d_image, d_filter, d_result, height, width);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
    *us = (now_us() - start) / REPEATS;
    return wrong;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    int height = device.multiProcessorCount > 4 ? 3001 : 101;
    int width = device.multiProcessorCount > 4 ? 4001 : 203;
    size_t bytes = (size_t)height * width * sizeof(float);
    printf("device: %s; image of %d x %d pixels, filter of %d x %d\n", device.name, height, width,
           WIDTH, WIDTH);

    /* Minus the neighbours, plus 20 times the centre: 0 where the image is even, large at edges. No
     * two rows of it are alike, so that a filter lying the wrong way round is noticed. */
    const float filter[WIDTH][WIDTH] = {{0, 0, -1, 0, 0},
                                        {0, -2, -2, -1, 0},
                                        {-1, -3, 20, -2, -1},
                                        {0, -1, -2, 0, 0},
                                        {0, 0, -3, 0, -1}};
    float *h_image = (float *)malloc(bytes), *h_result = (float *)malloc(bytes);
    float *expected = (float *)malloc(bytes), *d_image, *d_filter, *d_result;
    if (!h_image || !h_result || !expected) return 1;
    draw(h_image, height, width);
    CHECK(cudaMalloc(&d_image, bytes));
    CHECK(cudaMalloc(&d_filter, sizeof filter));
    CHECK(cudaMalloc(&d_result, bytes));
    CHECK(cudaMemcpy(d_image, h_image, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_filter, filter, sizeof filter, cudaMemcpyHostToDevice));

    double start = now_us(), direct_us, tiled_us;
    convolve_on_host(h_image, &filter[0][0], expected, height, width);
    double loop_us = now_us() - start;
    size_t direct_wrong = try_kernel(convolve_direct, d_image, d_filter, d_result, h_result,
                                     expected, height, width, &direct_us);
    size_t tiled_wrong = try_kernel(convolve_tiled, d_image, d_filter, d_result, h_result, expected,
                                    height, width, &tiled_us);
    printf("wrong pixels: direct %zu, tiled %zu\n", direct_wrong, tiled_wrong);
    printf("measured: C loop %.1f us, direct %.1f us, tiled %.1f us, %.1f million pixels/s\n",
           loop_us, direct_us, tiled_us, (double)height * width / tiled_us);

    CHECK(cudaFree(d_image));
    CHECK(cudaFree(d_filter));
    CHECK(cudaFree(d_result));
    free(h_image);
    free(h_result);
    free(expected);
    return direct_wrong || tiled_wrong ? 1 : 0;
}

/* Exercises (solutions/13_convolution.cu):
 *
 * 1. Images of a network have CHANNELS (red, green, blue; later, what a layer has found). The
 *    result has some too, each with a filter for every channel of the input, and all products are
 *    added. Extend convolve_direct: image[channel][y][x], filter[out][in][i][j], result[out][y][x].
 * 2. All threads read the same number of the filter at the same time. There is a memory for that:
 *    declare `static __constant__ float weights[25];` outside of the kernel, fill it by
 *    cudaMemcpyToSymbol(weights, filter, bytes), and use it in convolve_tiled instead of
 *    `weight`. */
