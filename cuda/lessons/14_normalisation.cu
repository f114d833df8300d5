/* Lesson 14: normalisation of rows, by a warp that talks to itself.
 *
 *     nvcc -O3 -arch=native 14_normalisation.cu -o 14_normalisation && ./14_normalisation
 *
 * Between the layers of a network, rows of numbers are brought to the same scale ("layer norm"): of
 * a row x[0] ... x[n-1] take the mean, and the variance (the mean of the squared distances from the
 * mean), and make
 *
 *     y[i] = (x[i] - mean) / sqrt(variance + 1e-5)
 *
 * so that each row has mean 0 and variance 1; the 1e-5 is for rows whose numbers are all equal.
 *
 * The 32 threads of a WARP run in step, and can hand numbers to each other directly, from register
 * to register: __shfl_xor_sync() ("shuffle"). So a sum over a warp needs no shared memory and no
 * barrier of the block. Here a warp has a row to itself.
 *
 * What to look for: on a GPU the kernel with one thread per row is the obvious one, and slow, for
 * two reasons: neighbouring threads read from different rows (lesson 08), and a thread per row is
 * so few threads that most multiprocessors get no block. The kernel that saves a pass over the row
 * by a formula from the statistics book gives wrong numbers, without any bug in it. Nor does it
 * save memory traffic: the second pass finds the row in the cache. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WARP = 32, WARPS = 8 }; /* threads of a warp; warps of a block, so rows of a block */

/* One thread per row: three loops over it, as in C. */
static __global__ void normalise_by_threads(const float *x, float *y, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float *from = x + (size_t)row * n;
    float *to = y + (size_t)row * n, sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += from[i];
    float mean = sum / n;
    for (int i = 0; i < n; i++) squares += (from[i] - mean) * (from[i] - mean);
    float scale = 1 / sqrtf(squares / n + 1e-5f);
    for (int i = 0; i < n; i++) to[i] = (from[i] - mean) * scale;
}

/* The sum of `value` over the 32 threads of a warp, in all of them.
 *
 * __shfl_xor_sync(mask, value, d) gives thread t of the warp the value of thread t ^ d (C's "xor"):
 * with d = 16 threads 0 and 16 exchange theirs, 1 and 17, and so on, and each then has the sum of
 * two; with d = 8 the sum of four. After the steps 16, 8, 4, 2, 1 each has the sum of all. It is
 * lesson 12's tree, on registers. The mask 0xffffffff says that all 32 take part, and all 32 have
 * to call it. */
static __device__ float sum_of_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xffffffff, value, distance);
    }
    return value;
}

/* One warp per row. Thread t of the warp takes the elements t, t + 32, t + 64, ..., so that
 * neighbours read neighbours. First pass: the mean. Second pass: the distances from it. */
static __global__ void normalise_by_warps(const float *x, float *y, int rows, int n) {
    int lane = threadIdx.x % WARP; /* the thread's number in its warp */
    int row = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= rows) return; /* a whole warp leaves, so nobody waits for a missing thread */
    const float *from = x + (size_t)row * n;
    float *to = y + (size_t)row * n, sum = 0, squares = 0;
    for (int i = lane; i < n; i += WARP) sum += from[i];
    float mean = sum_of_warp(sum) / n;
    for (int i = lane; i < n; i += WARP) squares += (from[i] - mean) * (from[i] - mean);
    float scale = 1 / sqrtf(sum_of_warp(squares) / n + 1e-5f);
    for (int i = lane; i < n; i += WARP) to[i] = (from[i] - mean) * scale;
}

/* In mathematics the variance is also the mean of the squares minus the square of the mean, which
 * needs one pass, not two. In float both are large and nearly equal when the mean is, and what is
 * left after the subtraction is rounding. It may even be negative, hence fmaxf(). */
static __global__ void normalise_in_one_pass(const float *x, float *y, int rows, int n) {
    int lane = threadIdx.x % WARP, row = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= rows) return;
    const float *from = x + (size_t)row * n;
    float *to = y + (size_t)row * n, sum = 0, squares = 0;
    for (int i = lane; i < n; i += WARP) {
        sum += from[i];
        squares += from[i] * from[i];
    }
    float mean = sum_of_warp(sum) / n;
    float variance = fmaxf(sum_of_warp(squares) / n - mean * mean, 0);
    float scale = 1 / sqrtf(variance + 1e-5f);
    for (int i = lane; i < n; i += WARP) to[i] = (from[i] - mean) * scale;
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
typedef void Kernel(const float *x, float *y, int rows, int n);

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* The C loop, with sums in double: the yardstick. */
static void normalise_on_host(const float *x, float *y, int rows, int n) {
    for (int row = 0; row < rows; row++) {
        const float *from = x + (size_t)row * n;
        double sum = 0, squares = 0;
        for (int i = 0; i < n; i++) sum += from[i];
        double mean = sum / n;
        for (int i = 0; i < n; i++) squares += (from[i] - mean) * (from[i] - mean);
        double scale = 1 / sqrt(squares / n + 1e-5);
        for (int i = 0; i < n; i++) y[(size_t)row * n + i] = (float)((from[i] - mean) * scale);
    }
}

/* Numbers that scatter by up to 1 around `centre`. */
static void fill(float *x, size_t count, float centre) {
    unsigned state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = centre + (float)(state >> 8) / (1 << 23) - 1;
    }
}

/* The largest distance between an element and what is expected; infinite if one is NaN. */
static float largest_error(const float *y, const float *expected, size_t count) {
    float largest = 0;
    for (size_t i = 0; i < count; i++) {
        float error = fabsf(y[i] - expected[i]);
        if (!(error <= largest)) largest = isnan(error) ? INFINITY : error;
    }
    return largest;
}

static int blocks_for(int rows, int rows_of_a_block) {
    return (rows + rows_of_a_block - 1) / rows_of_a_block;
}

/* Runs a kernel, puts its mean time into *us and returns its largest error. */
static float try_kernel(Kernel *kernel, int rows_of_a_block, int threads, const float *d_x,
                        float *d_y, const float *h_expected, int rows, int n, double *us) {
    int blocks = blocks_for(rows, rows_of_a_block);
    size_t count = (size_t)rows * n, bytes = count * sizeof(float);
    float *h_y = (float *)malloc(bytes);
    if (!h_y) exit(1);
    CHECK(cudaMemset(d_y, 0xFF, bytes)); /* NaN: what is left out is found */
    kernel<<<blocks, threads>>>(d_x, d_y, rows, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_y, d_y, bytes, cudaMemcpyDeviceToHost));
    float error = largest_error(h_y, h_expected, count);
    double start = now_us();
    for (int i = 0; i < REPEATS; i++) {
        kernel<<<blocks, threads>>>(d_x, d_y, rows, n);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
    *us = (now_us() - start) / REPEATS;
    free(h_y);
    return error;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    int rows = device.multiProcessorCount > 4 ? 8190 : 93, n = 1001;
    size_t count = (size_t)rows * n, bytes = count * sizeof(float);
    printf("device: %s; %d rows of %d elements\n", device.name, rows, n);
    printf("blocks: with a thread per row %d, with a warp per row %d; multiprocessors: %d\n",
           blocks_for(rows, 256), blocks_for(rows, WARPS), device.multiProcessorCount);

    float *h_x = (float *)malloc(bytes), *h_expected = (float *)malloc(bytes), *d_x, *d_y;
    if (!h_x || !h_expected) return 1;
    CHECK(cudaMalloc(&d_x, bytes));
    CHECK(cudaMalloc(&d_y, bytes));

    int failed = 0;
    double loop_us = 0, threads_us = 0, warps_us = 0, one_pass_us = 0;
    const float centres[] = {0, 1000};
    for (int test = 0; test < 2; test++) {
        fill(h_x, count, centres[test]);
        double start = now_us();
        normalise_on_host(h_x, h_expected, rows, n);
        loop_us = now_us() - start;
        CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
        float by_threads =
            try_kernel(normalise_by_threads, 256, 256, d_x, d_y, h_expected, rows, n, &threads_us);
        float by_warps = try_kernel(normalise_by_warps, WARPS, WARPS * WARP, d_x, d_y, h_expected,
                                    rows, n, &warps_us);
        float one_pass = try_kernel(normalise_in_one_pass, WARPS, WARPS * WARP, d_x, d_y,
                                    h_expected, rows, n, &one_pass_us);
        printf("numbers around %5.0f: largest error of threads %.1e, of warps %.1e, of one pass "
               "%.1e\n",
               centres[test], by_threads, by_warps, one_pass);
        /* Around 0 all are good to a few roundings. Around 1000 a float has 4 decimals left, and a
         * sum of 1001 of them fewer; two passes are good to that, one pass to nothing. */
        float tolerance = centres[test] == 0 ? 1e-5f : 1e-2f;
        failed |= !(by_threads <= tolerance) || !(by_warps <= tolerance);
        if (centres[test] == 0) failed |= !(one_pass <= tolerance);
    }
    printf("measured: C loop %.1f us, one thread per row %.1f us, one warp per row %.1f us, in one "
           "pass %.1f us\n",
           loop_us, threads_us, warps_us, one_pass_us);

    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    free(h_x);
    free(h_expected);
    return failed;
}

/* Exercises (solutions/14_normalisation.cu):
 *
 * 1. The SOFTMAX of a row turns scores into probabilities: y[i] = exp(x[i] - largest) / sum of all
 *    exp(x[j] - largest), where `largest` is the row's largest element. Write it, one warp per row.
 *    What happens with scores around 100 if the largest is not subtracted?
 * 2. With few but long rows most of the card has nothing to do. Give a row to a whole block: each
 *    warp adds up a part, the 8 sums meet in shared memory. */
