/* Solutions of lesson 12.
 *
 *     nvcc -O3 -arch=native 12_sum.cu -o 12_sum && ./12_sum
 *
 * 1. The tree carries pairs, value and index, and better() says which of two pairs is to stay. As
 *    it prefers the smaller index, it does not matter in which order the pairs meet. (NaN is left
 *    out of this: better() would have to say where it stands.)
 * 2. Whole numbers are added without rounding, so every order gives the same bits, and the atomics
 *    may come as they like. The price: the numbers must have a common smallest step, here 2^-24,
 *    and the sum must fit into 64 bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 256, CHUNK = 4096 };

typedef struct {
    float value;
    int index;
} Pair;

static __device__ Pair better(Pair a, Pair b) {
    if (a.value == b.value) return a.index < b.index ? a : b;
    return a.value > b.value ? a : b;
}

/* The best pair of each chunk of `from`. */
static __global__ void best_of_chunks(const Pair *from, Pair *to, int n) {
    __shared__ Pair part[THREADS];
    int thread = threadIdx.x, first = blockIdx.x * CHUNK;
    Pair best = from[first]; /* exists: there is a block for each chunk that has begun */
    for (int i = thread; i < CHUNK && first + i < n; i += THREADS) {
        best = better(best, from[first + i]);
    }
    part[thread] = best;
    __syncthreads();
    for (int active = THREADS / 2; active > 0; active /= 2) {
        if (thread < active) part[thread] = better(part[thread], part[thread + active]);
        __syncthreads();
    }
    if (thread == 0) to[blockIdx.x] = part[0];
}

static __global__ void make_pairs(const float *x, Pair *pairs, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) pairs[i] = {x[i], i};
}

/* A negative number's bits, read as unsigned, are that number plus 2^64; sums that overflow begin
 * again at 0. So the bits of the sum are right for negative numbers too. */
static __global__ void sum_fixed_point(const float *x, unsigned long long *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, (unsigned long long)(long long)(x[i] * 16777216.0f));
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static int blocks_for(int n, int each) { return (n + each - 1) / each; }

static int find_largest(const float *d_x, const float *h_x, int n) {
    Pair *d_pairs, *d_chunks, best;
    CHECK(cudaMalloc(&d_pairs, n * sizeof(Pair)));
    CHECK(cudaMalloc(&d_chunks, blocks_for(n, CHUNK) * sizeof(Pair)));
    make_pairs<<<blocks_for(n, THREADS), THREADS>>>(d_x, d_pairs, n);
    CHECK(cudaGetLastError());
    Pair *from = d_pairs, *to = d_chunks;
    for (int left = n; left > 1;) {
        int blocks = blocks_for(left, CHUNK);
        best_of_chunks<<<blocks, THREADS>>>(from, to, left);
        CHECK(cudaGetLastError());
        Pair *swap = from;
        from = to;
        to = swap;
        left = blocks;
    }
    CHECK(cudaMemcpy(&best, from, sizeof best, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d_pairs));
    CHECK(cudaFree(d_chunks));
    int expected = 0;
    for (int i = 1; i < n; i++) expected = h_x[i] > h_x[expected] ? i : expected;
    bool right = best.index == expected && best.value == h_x[expected];
    printf("1. the largest is x[%d] = %.6f, %s\n", best.index, best.value,
           right ? "right" : "WRONG");
    return right ? 0 : 1;
}

static int add_fixed_point(const float *d_x, const float *h_x, int n) {
    unsigned long long *d_sum;
    long long expected = 0, sum = 0;
    bool right = true;
    for (int i = 0; i < n; i++) expected += (long long)(h_x[i] * 16777216.0f);
    CHECK(cudaMalloc(&d_sum, sizeof *d_sum));
    for (int run = 0; run < 10; run++) {
        CHECK(cudaMemset(d_sum, 0, sizeof *d_sum));
        sum_fixed_point<<<blocks_for(n, THREADS), THREADS>>>(d_x, d_sum, n);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(&sum, d_sum, sizeof sum, cudaMemcpyDeviceToHost));
        right = right && sum == expected;
    }
    printf("2. ten runs by atomics on whole numbers: %.9f each time, %s\n",
           (double)sum / 16777216.0, right ? "right" : "WRONG");
    CHECK(cudaFree(d_sum));
    return right ? 0 : 1;
}

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    const int n = 100001;
    float *h_x = (float *)malloc(n * sizeof(float)), *d_x;
    if (!h_x) return 1;
    unsigned state = 1;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        h_x[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
    h_x[70000] = h_x[50000] = h_x[4096] = 1.5f; /* three times the largest */
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMemcpy(d_x, h_x, n * sizeof(float), cudaMemcpyHostToDevice));
    int failed = find_largest(d_x, h_x, n);
    failed |= add_fixed_point(d_x, h_x, n);
    CHECK(cudaFree(d_x));
    free(h_x);
    return failed;
}
