/* Lesson 12: the sum of an array, from one atomic addition per element to a tree.
 *
 *     nvcc -O3 -arch=native 12_sum.cu -o 12_sum && ./12_sum
 *
 * In the lessons so far each thread wrote an element of its own. Here all of them want to add to
 * the same number, and that has two costs. The first is time: they have to take turns. The second
 * is easily overlooked: a float addition rounds, so a different order of adding gives a slightly
 * different sum. (Try in C: (1e8f + 1) - 1e8f is 0, and (1e8f - 1e8f) + 1 is 1.) If the threads add
 * in the order in which they happen to arrive, the same program on the same numbers may print two
 * different sums. Then no result can be reproduced, and no bug that depends on it found again.
 *
 * What to look for: how many different sums ten runs give (1: all are equal), and how long each
 * kernel takes. On a GPU the first kernel's sums do differ, and it is by far the slowest; the
 * tree's sums must never differ, and this program fails if they do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Threads of a block, and how many elements a block adds. Both are fixed: they say which elements
 * are added in which order, so the sum is the same on every card. THREADS is a power of two. */
enum { THREADS = 256, CHUNK = 4096 };

/* ATOMIC means indivisible. *sum += x[i] is a read, an addition and a write; if two threads read
 * the same old value, one of the additions is lost. atomicAdd() does all three as one step, while
 * the others wait. Nothing is lost, but who comes first is left to chance. */
static __global__ void sum_atomic(const float *x, float *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, x[i]);
}

/* The sum of this block's chunk of x, in thread 0; the other threads get a part of it.
 *
 * First each thread adds every THREADS-th element of the chunk for itself (neighbours read
 * neighbours). The 256 sums go to shared memory, and there a TREE begins: 128 threads each add the
 * sum of the thread 128 places on to their own, then 64 threads add 64 sums, 32, ... 1. That is 8
 * steps instead of 255, and in each step it is written down who adds what to what. */
static __device__ float sum_of_chunk(const float *x, int n) {
    __shared__ float part[THREADS];
    int thread = threadIdx.x, first = blockIdx.x * CHUNK;
    float sum = 0;
    for (int i = thread; i < CHUNK && first + i < n; i += THREADS) sum += x[first + i];
    part[thread] = sum;
    __syncthreads();
    for (int active = THREADS / 2; active > 0; active /= 2) {
        /* A step writes only below `active`, and reads from other threads only from `active` on. So
         * one meeting per step is enough. */
        if (thread < active) part[thread] += part[thread + active];
        __syncthreads();
    }
    return part[thread];
}

/* A tree in each block, then one atomic addition per block: far fewer threads take turns. It is
 * fast, but the blocks still arrive in any order. */
static __global__ void sum_blocks(const float *x, float *sum, int n) {
    float chunk = sum_of_chunk(x, n);
    if (threadIdx.x == 0) atomicAdd(sum, chunk);
}

/* The same without the atomic: each block writes its sum to a place of its own. The host launches
 * this kernel again on those sums, until there is one. The tree goes on from launch to launch. */
static __global__ void sum_tree(const float *x, float *sums, int n) {
    float chunk = sum_of_chunk(x, n);
    if (threadIdx.x == 0) sums[blockIdx.x] = chunk;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { ATOMIC, BLOCKS, TREE, METHODS, RUNS = 10 };
static const char *const names[METHODS] = {"one atomic per element", "one atomic per block",
                                           "tree"};

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int blocks_for(int n, int each) { return (n + each - 1) / each; }

/* The sum of n elements on the device by one of the methods, copied to the host. `partial` has room
 * for two levels of the tree's sums: one half is read while the other is written. */
static float sum_on_device(int method, const float *d_x, float *d_partial, int n) {
    float sum;
    const float *d_sum = d_partial;
    if (method == TREE) {
        int half = blocks_for(n, CHUNK), level = 0;
        d_sum = d_x;
        while (n > 1) {
            float *sums = d_partial + (level++ % 2) * half;
            int blocks = blocks_for(n, CHUNK);
            sum_tree<<<blocks, THREADS>>>(d_sum, sums, n);
            CHECK(cudaGetLastError());
            d_sum = sums;
            n = blocks;
        }
    } else {
        CHECK(cudaMemset(d_partial, 0, sizeof(float))); /* four zero bytes are the float 0 */
        if (method == ATOMIC) {
            sum_atomic<<<blocks_for(n, THREADS), THREADS>>>(d_x, d_partial, n);
        } else {
            sum_blocks<<<blocks_for(n, CHUNK), THREADS>>>(d_x, d_partial, n);
        }
        CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpy(&sum, d_sum, sizeof sum, cudaMemcpyDeviceToHost));
    return sum;
}

/* The C loops: in float, as C programmers write it, and in double, as the yardstick. */
static float sum_on_host(const float *x, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}

static double precise_sum(const float *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* How many of the sums are not equal, bit for bit, to one before them. */
static int count_different(const float *sums, int count) {
    int different = 0;
    for (int i = 0; i < count; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++) seen |= memcmp(&sums[i], &sums[j], sizeof(float)) == 0;
        different += !seen;
    }
    return different;
}

/* Whole numbers: as long as no sum exceeds 2^24, a float holds each exactly, and any order gives
 * the same. That is the test that finds an element left out or added twice. */
static int test_with_whole_numbers(float *h_x, float *d_x, float *d_partial, int n) {
    int failed = 0;
    for (int i = 0; i < n; i++) h_x[i] = (float)(1 + i % 3);
    CHECK(cudaMemcpy(d_x, h_x, n * sizeof(float), cudaMemcpyHostToDevice));
    for (int method = 0; method < METHODS; method++) {
        float sum = sum_on_device(method, d_x, d_partial, n);
        bool right = sum - precise_sum(h_x, n) == 0;
        printf("whole numbers, %-22s: %.0f, %s\n", names[method], sum, right ? "right" : "WRONG");
        failed |= !right;
    }
    return failed;
}

/* Fractions: here the order shows. */
static int compare_with_fractions(float *h_x, float *d_x, float *d_partial, int n) {
    int failed = 0;
    double us[METHODS];
    unsigned state = 1;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        h_x[i] = (float)(state >> 8) / (1 << 24); /* between 0 and 1 */
    }
    CHECK(cudaMemcpy(d_x, h_x, n * sizeof(float), cudaMemcpyHostToDevice));
    double expected = precise_sum(h_x, n);
    printf("fractions, the sum is %.2f; the C loop in float gives %.2f\n", expected,
           sum_on_host(h_x, n));
    for (int method = 0; method < METHODS; method++) {
        float sums[RUNS];
        double start = now_us();
        for (int run = 0; run < RUNS; run++) sums[run] = sum_on_device(method, d_x, d_partial, n);
        us[method] = (now_us() - start) / RUNS;
        int different = count_different(sums, RUNS);
        printf("%-22s: %.2f, then %.2f; different sums in %d runs: %d\n", names[method], sums[0],
               sums[1], RUNS, different);
        /* A rounding changes a float by up to 6e-8 of it. On the way to an atomic sum there are up
         * to n roundings, about as many up as down; to the root of the tree a few dozen. */
        double tolerance = (method == TREE ? 1e-6 : 1e-3) * expected;
        failed |= !(fabs(sums[0] - expected) <= tolerance);
        if (method == TREE) failed |= different != 1;
    }
    printf("measured: one atomic per element %.1f us, per block %.1f us, tree %.1f us (each with "
           "the copy of the sum to the host)\n",
           us[ATOMIC], us[BLOCKS], us[TREE]);
    return failed;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    int n = device.multiProcessorCount > 4 ? 5000001 : 200001;
    printf("device: %s; %d elements\n", device.name, n);

    float *h_x = (float *)malloc(n * sizeof(float)), *d_x, *d_partial;
    if (!h_x) return 1;
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMalloc(&d_partial, 2 * blocks_for(n, CHUNK) * sizeof(float)));

    int failed = test_with_whole_numbers(h_x, d_x, d_partial, n);
    failed |= compare_with_fractions(h_x, d_x, d_partial, n);

    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_partial));
    free(h_x);
    return failed;
}

/* Exercises (solutions/12_sum.cu):
 *
 * 1. Find the largest element and its index, by a tree. If it occurs twice, the smaller index is to
 *    win: otherwise the answer would depend on the order again.
 * 2. It is not the atomic that spoils the sum but the rounding. Turn each element into a whole
 *    number (x times 2^24, as a long long), add those by atomics, and show that ten runs agree to
 *    the last bit. (atomicAdd() knows unsigned long long, whose additions are the same bits.) */
