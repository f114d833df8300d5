/* Lesson 05: blocks and grids, for any number of elements.
 *
 * A BLOCK has at most 1024 threads. But a launch may have millions of blocks, and all of them
 * together are the GRID. The device hands the blocks out to its multiprocessors, as many at a time
 * as there is room for, and in no promised order: this is how one program suits every card.
 *
 * A thread finds its element from three numbers: the block it is in (blockIdx.x), the threads in a
 * block (blockDim.x) and its place there (threadIdx.x). (A fourth one is gridDim.x, the blocks in
 * the grid.) With 4 threads in a block:
 *
 *     blockIdx.x     0  0  0  0   1  1  1  1   2  2  2  2
 *     threadIdx.x    0  1  2  3   0  1  2  3   0  1  2  3
 *     element i      0  1  2  3   4  5  6  7   8  9 10 11     i = blockIdx.x * 4 + threadIdx.x
 *
 *     nvcc -O3 -arch=native 05_blocks_and_grids.cu -o 05_blocks_and_grids && ./05_blocks_and_grids
 *
 * What to look for: blocks come whole, so for 10 elements there are 12 threads, and the last two
 * must do nothing: `if (i < n)`. Take that line out and the program writes past its memory. */
#include <stdint.h>

/* i is 64 bits wide: blockIdx.x * blockDim.x alone would wrap round at 2^32. */
static __global__ void vector_add(const float *a, const float *b, float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
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

/* Threads in a block. Any number up to the limit works; 128, 256 and 512 are usual. It should be a
 * multiple of 32, the size of a warp, as a block is always made of whole warps. */
static const int threads = 256;

static const int64_t largest = 10 * 1000 * 1000;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* As many blocks as cover n elements: n / threads, rounded up. */
static unsigned blocks_for(int64_t n) { return (unsigned)((n + threads - 1) / threads); }

static int64_t count_wrong(const float *c, const float *expected, int64_t n) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += !(fabsf(c[i] - expected[i]) <= 0);
    return wrong;
}

/* Adds the first n elements on the device; returns how many of them are wrong. The element after
 * the last has to stay 0. There is no cudaDeviceSynchronize(), as cudaMemcpy() waits for the kernel
 * before it copies. */
static int64_t add_and_count(int64_t n, const float *d_a, const float *d_b, float *d_c, float *h_c,
                             const float *expected) {
    CHECK(cudaMemset(d_c, 0, (size_t)(largest + 1) * sizeof(float)));
    vector_add<<<blocks_for(n), threads>>>(d_a, d_b, d_c, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_c, d_c, (size_t)(n + 1) * sizeof(float), cudaMemcpyDeviceToHost));
    return count_wrong(h_c, expected, n) + !(h_c[n] == 0);
}

/* The time of one launch in milliseconds. An EVENT is a mark between the device's tasks: when the
 * device comes by, it writes down the time. So the host's own delays are not in the result.
 * cudaEventRecord() sets the mark behind what was launched so far, cudaEventSynchronize() waits
 * until the device has come by, and cudaEventElapsedTime() is the time between two marks. */
static float kernel_ms(const float *d_a, const float *d_b, float *d_c) {
    const int runs = 5;
    float ms = 0;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int run = 0; run < runs; run++) {
        vector_add<<<blocks_for(largest), threads>>>(d_a, d_b, d_c, largest);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    return ms / runs;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    printf("device: %s\n", device.name);

    const size_t bytes = (size_t)(largest + 1) * sizeof(float);
    float *h_a = (float *)malloc(bytes), *h_b = (float *)malloc(bytes);
    float *h_c = (float *)malloc(bytes), *expected = (float *)malloc(bytes);
    float *d_a, *d_b, *d_c;
    if (!h_a || !h_b || !h_c || !expected) return 1;
    for (int64_t i = 0; i <= largest; i++) {
        h_a[i] = (float)(i % 1000) + 1;
        h_b[i] = (float)(i % 17);
        expected[i] = 0;
    }
    double start = now_ms();
    for (int64_t i = 0; i < largest; i++) expected[i] = h_a[i] + h_b[i];
    double loop_ms = now_ms() - start;

    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_b, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, h_b, bytes, cudaMemcpyHostToDevice));

    const int64_t sizes[] = {1, 255, 256, 257, 1000, 500000, largest};
    int64_t all_wrong = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s];
        int64_t wrong = add_and_count(n, d_a, d_b, d_c, h_c, expected);
        unsigned blocks = blocks_for(n);
        printf("n = %8lld: %5u blocks of %d threads, %3lld threads idle, %lld elements wrong\n",
               (long long)n, blocks, threads, (long long)blocks * threads - (long long)n,
               (long long)wrong);
        all_wrong += wrong;
    }

    /* Each element is read from a and b and written to c: 3 numbers of 4 bytes. A GPU can add
     * far more often than its memory brings numbers, so the memory is the whole cost, and what
     * counts is bytes in a second. (1 GB is 10^9 bytes; 12 bytes in a ms are 12e-6 GB/s.) */
    float ms = kernel_ms(d_a, d_b, d_c);
    printf("measured: n = %lld, C loop %.2f ms, kernel %.3f ms, which is %.1f GB/s\n",
           (long long)largest, loop_ms, ms, 12e-6 * (double)largest / ms);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    free(h_c);
    free(expected);
    return all_wrong ? 1 : 0;
}

/* Exercises (solutions/05_blocks_and_grids.cu):
 *
 * 1. Launch exactly 4 blocks of 256 threads, whatever n is, and let each thread go on with element
 *    i + 1024, i + 2048, ... until n. This is called a grid-stride loop. (1024 is gridDim.x times
 *    blockDim.x; with these the kernel suits any launch.)
 * 2. Launch too few blocks and no such loop: how many elements of 500,000 does a grid of 100 blocks
 *    cover? Count on the host which elements were written. */

#endif
