/* Solutions of lesson 09.
 *
 *     nvcc -O3 -arch=native 09_three_dimensions.cu -o 09_three_dimensions && ./09_three_dimensions
 *
 * 1. mean_of_layers(): the loop over the layers keeps the sum in the thread's own variable, so that
 *    only the result is written to memory. In every step a warp reads neighbours.
 * 2. blur(): a neighbour is added, and counted, only if it exists. add() is a device function:
 *    lesson 10 explains these. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static __global__ void mean_of_layers(const float *a, float *m, int64_t depth, int64_t rows,
                                      int64_t cols) {
    int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || col >= cols) return;
    float sum = 0;
    for (int64_t layer = 0; layer < depth; layer++) sum += a[(layer * rows + row) * cols + col];
    m[row * cols + col] = sum / (float)depth;
}

static __device__ void add(float neighbour, float *sum, float *count) {
    *sum += neighbour;
    *count += 1;
}

static __global__ void blur(const float *a, float *c, int64_t depth, int64_t rows, int64_t cols) {
    int64_t layer = (int64_t)blockIdx.z * blockDim.z + threadIdx.z;
    int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (layer >= depth || row >= rows || col >= cols) return;
    int64_t i = (layer * rows + row) * cols + col;
    float sum = a[i], count = 1;
    if (col > 0) add(a[i - 1], &sum, &count);
    if (col < cols - 1) add(a[i + 1], &sum, &count);
    if (row > 0) add(a[i - cols], &sum, &count);
    if (row < rows - 1) add(a[i + cols], &sum, &count);
    if (layer > 0) add(a[i - rows * cols], &sum, &count);
    if (layer < depth - 1) add(a[i + rows * cols], &sum, &count);
    c[i] = sum / count;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static const int64_t depth = 11, rows = 101, cols = 203, n = depth * rows * cols;
static const size_t bytes = n * sizeof(float), layer_bytes = rows * cols * sizeof(float);

/* The expected results in double, by other ways than the kernels': layer by layer, and by six
 * steps to a neighbour with a test of its place. */
static double mean_at(const float *a, int64_t i) {
    double sum = 0;
    for (int64_t at = i; at < n; at += rows * cols) sum += a[at];
    return sum / (double)depth;
}

static double blur_at(const float *a, int64_t layer, int64_t row, int64_t col) {
    const int steps[7][3] = {{0, 0, 0},  {0, 0, 1}, {0, 0, -1}, {0, 1, 0},
                             {0, -1, 0}, {1, 0, 0}, {-1, 0, 0}};
    double sum = 0, count = 0;
    for (int s = 0; s < 7; s++) {
        int64_t l = layer + steps[s][0], r = row + steps[s][1], k = col + steps[s][2];
        if (l < 0 || l >= depth || r < 0 || r >= rows || k < 0 || k >= cols) continue;
        sum += a[(l * rows + r) * cols + k];
        count++;
    }
    return sum / count;
}

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    float *h_a = (float *)malloc(bytes), *h_c = (float *)malloc(bytes), *d_a, *d_c;
    if (!h_a || !h_c) return 1;
    for (int64_t i = 0; i < n; i++) h_a[i] = (float)(i * 7919 % 1009);
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));

    int64_t wrong = 0;
    dim3 block(32, 8), grid((cols + 31) / 32, (rows + 7) / 8);
    mean_of_layers<<<grid, block>>>(d_a, d_c, depth, rows, cols);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_c, d_c, layer_bytes, cudaMemcpyDeviceToHost));
    for (int64_t i = 0; i < rows * cols; i++) wrong += !(fabs(h_c[i] - mean_at(h_a, i)) <= 1e-3);
    printf("1. the mean of %lld layers: %lld elements wrong\n", (long long)depth, (long long)wrong);

    int64_t blur_wrong = 0;
    dim3 block3(32, 4, 2), grid3((cols + 31) / 32, (rows + 3) / 4, (depth + 1) / 2);
    blur<<<grid3, block3>>>(d_a, d_c, depth, rows, cols);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    for (int64_t i = 0; i < n; i++) {
        double expected = blur_at(h_a, i / (rows * cols), i / cols % rows, i % cols);
        blur_wrong += !(fabs(h_c[i] - expected) <= 1e-3);
    }
    printf("2. blurred: %lld elements wrong\n", (long long)blur_wrong);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_c);
    return wrong + blur_wrong ? 1 : 0;
}
