/* Lesson 09: three dimensions.
 *
 * Films, scans of bodies, stacks of pictures: a TENSOR of three dimensions is a pile of matrices.
 * Threads and blocks can be numbered by x, y and z; there is no fourth one. As in lesson 08, x runs
 * along what is consecutive in memory:
 *
 *     element in layer l, row r, column k:  a[(l * rows + r) * cols + k]
 *
 *     nvcc -O3 -arch=native 09_three_dimensions.cu -o 09_three_dimensions && ./09_three_dimensions
 *
 * As lesson 03 printed, the product of a block's three sizes may be 1024 at most, and z alone 64; a
 * grid's y and z go up to 65,535 only.
 *
 * What to look for: the shape of the block matters. Both shapes below have 256 threads, but in the
 * flat one (32 x 4 x 2) a warp's 32 threads are neighbours in memory, and in the brick (4 x 8 x 8)
 * they are 8 groups of 4: x runs fastest, so the first 4 threads differ in x and the next 4 have
 * the next y. main() counts what that means in pieces of memory (lesson 08). How much slower the
 * brick is depends on how well a card's cache puts up with it. */
#include <stdint.h>

static __global__ void tensor_add(const float *a, const float *b, float *c, int64_t depth,
                                  int64_t rows, int64_t cols) {
    int64_t layer = (int64_t)blockIdx.z * blockDim.z + threadIdx.z;
    int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (layer < depth && row < rows && col < cols) {
        int64_t i = (layer * rows + row) * cols + col;
        c[i] = a[i] + b[i];
    }
}

#ifndef PVG_LESSON_KERNELS /* pyvecgpu's library includes the kernel above, without what follows */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* Hardly multiples of a block's sizes, so that threads are idle at the edges. */
static const int64_t depth = 50, rows = 301, cols = 403, n = depth * rows * cols;
static const size_t bytes = n * sizeof(float);

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* The C loop, with the three numbers as in the kernel. */
static void tensor_add_on_host(const float *a, const float *b, float *c) {
    for (int64_t layer = 0; layer < depth; layer++) {
        for (int64_t row = 0; row < rows; row++) {
            for (int64_t col = 0; col < cols; col++) {
                int64_t i = (layer * rows + row) * cols + col;
                c[i] = a[i] + b[i];
            }
        }
    }
}

static int64_t count_wrong(const float *c, const float *expected) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += !(fabsf(c[i] - expected[i]) <= 0);
    return wrong;
}

static unsigned blocks_for(int64_t size, unsigned threads) {
    return (unsigned)((size + threads - 1) / threads);
}

/* How many pieces of 32 bytes (8 floats) a warp wants from one tensor, on average: its threads have
 * runs of `width` neighbours, each in another row. (What a run wants does not depend on the others:
 * each is counted alone.) */
static double pieces_of_a_warp(unsigned width) {
    int64_t pieces = 0, runs = 0;
    for (int64_t row = 0; row < depth * rows; row++) {
        for (int64_t first = 0; first < cols; first += width, runs++) {
            int64_t last = (first + width < cols ? first + width : cols) - 1;
            pieces += (row * cols + last) / 8 - (row * cols + first) / 8 + 1;
        }
    }
    return (double)pieces / (double)runs * (32 / width);
}

/* Launches blocks of this shape over the whole tensor; returns the time in milliseconds of the
 * second launch (the first one also loads the kernel). */
static float run(dim3 block, const float *a, const float *b, float *c) {
    dim3 grid(blocks_for(cols, block.x), blocks_for(rows, block.y), blocks_for(depth, block.z));
    float ms = 0;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaMemset(c, 0, bytes));
    for (int launch = 0; launch < 2; launch++) {
        CHECK(cudaEventRecord(start));
        tensor_add<<<grid, block>>>(a, b, c, depth, rows, cols);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(stop));
    }
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    printf("blocks of %2u x %u x %u, grid of %2u x %2u x %2u: ", block.x, block.y, block.z, grid.x,
           grid.y, grid.z);
    return ms;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    printf("device: %s\n", device.name);

    float *h_a = (float *)malloc(bytes), *h_b = (float *)malloc(bytes);
    float *h_c = (float *)malloc(bytes), *expected = (float *)malloc(bytes), *d_a, *d_b, *d_c;
    if (!h_a || !h_b || !h_c || !expected) return 1;
    for (int64_t i = 0; i < n; i++) {
        h_a[i] = (float)(i % 1009) + 1;
        h_b[i] = (float)(i % 17);
        expected[i] = 0;
    }
    double start = now_ms();
    tensor_add_on_host(h_a, h_b, expected);
    double loop_ms = now_ms() - start;

    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_b, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, h_b, bytes, cudaMemcpyHostToDevice));

    const dim3 brick(4, 8, 8), flat(32, 4, 2);
    float brick_ms = run(brick, d_a, d_b, d_c);
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    int64_t brick_wrong = count_wrong(h_c, expected);
    printf("%lld of %lld elements wrong\n", (long long)brick_wrong, (long long)n);

    float flat_ms = run(flat, d_a, d_b, d_c);
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    int64_t flat_wrong = count_wrong(h_c, expected);
    printf("%lld of %lld elements wrong\n", (long long)flat_wrong, (long long)n);
    printf("pieces of 32 bytes for a warp, on average: in bricks %.1f, in flat blocks %.1f\n",
           pieces_of_a_warp(brick.x), pieces_of_a_warp(flat.x));
    printf("measured: C loop %.2f ms, kernel in bricks %.3f ms, in flat blocks %.3f ms\n", loop_ms,
           brick_ms, flat_ms);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    free(h_c);
    free(expected);
    return brick_wrong + flat_wrong ? 1 : 0;
}

/* Exercises (solutions/09_three_dimensions.cu):
 *
 * 1. A pile of pictures to one: m[row][col] is the mean of a[layer][row][col] over all layers. Two
 *    dimensions of threads are enough; each thread goes through the layers by a loop.
 * 2. Blur: c is the mean of an element and those of its six neighbours (left, right, above, below,
 *    in front, behind) that exist. The edges are the difficult part. */

#endif
