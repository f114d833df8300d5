/* Solutions of lesson 06.
 *
 *     nvcc -O3 -arch=native -Xcompiler -fopenmp 06_cpu_cores.cu -o 06_cpu_cores && ./06_cpu_cores
 *
 * 1. The GPU's time is almost the same until its multiprocessors are full; the core's grows from
 *    the start. Where they cross depends on both: often at some tens of thousands.
 * 2. A hundred steps for each element favour whoever can calculate most: the memory is waited for
 *    once, and then all cores of the CPU, and even more the GPU, have work to do. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static __global__ void vector_add(const float *a, const float *b, float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

static __global__ void work(const float *a, float *x, int64_t n, int steps) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = 0;
    for (int step = 0; step < steps; step++) value = value * 0.5f + a[i];
    x[i] = value;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* The lesson's addition, for 1, of a vector to itself. `steps` is for the functions below. */
static void add_on_one_core(const float *a, float *x, int64_t n, int steps) {
    (void)steps;
    for (int64_t i = 0; i < n; i++) x[i] = a[i] + a[i];
}

static void add_on_device(const float *a, float *x, int64_t n, int steps) {
    (void)steps;
    vector_add<<<(unsigned)((n + 255) / 256), 256>>>(a, a, x, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

/* For 2: many steps on each element. */
static void work_on_one_core(const float *a, float *x, int64_t n, int steps) {
    for (int64_t i = 0; i < n; i++) {
        float value = 0;
        for (int step = 0; step < steps; step++) value = value * 0.5f + a[i];
        x[i] = value;
    }
}

static void work_on_all_cores(const float *a, float *x, int64_t n, int steps) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) {
        float value = 0;
        for (int step = 0; step < steps; step++) value = value * 0.5f + a[i];
        x[i] = value;
    }
}

static void work_on_device(const float *a, float *x, int64_t n, int steps) {
    work<<<(unsigned)((n + 255) / 256), 256>>>(a, x, n, steps);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

typedef void (*work_function)(const float *a, float *x, int64_t n, int steps);

/* The shortest of three runs, in milliseconds. */
static double shortest_ms(work_function work, const float *a, float *x, int64_t n, int steps) {
    double shortest = 1e30;
    for (int run = 0; run < 3; run++) {
        double start = now_ms();
        work(a, x, n, steps);
        double ms = now_ms() - start;
        if (ms < shortest) shortest = ms;
    }
    return shortest;
}

/* Sums of halves of whole numbers; the last places differ where one processor rounds only once in
 * value * 0.5 + a and another one twice. */
static int64_t count_wrong(const float *x, const float *expected, int64_t n) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        wrong += !(fabsf(x[i] - expected[i]) <= 1e-5f * (1 + fabsf(expected[i])));
    }
    return wrong;
}

int main(void) {
    const int64_t largest = 1 << 20;
    const size_t bytes = largest * sizeof(float);
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    float *h_a = (float *)malloc(bytes), *h_x = (float *)malloc(bytes);
    float *expected = (float *)malloc(bytes), *d_a, *d_x;
    if (!h_a || !h_x || !expected) return 1;
    for (int64_t i = 0; i < largest; i++) h_a[i] = (float)(i % 1000);
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_x, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));

    int64_t n = 1, wrong = 0;
    while (n < largest && shortest_ms(add_on_device, d_a, d_x, n, 1) >
                              shortest_ms(add_on_one_core, h_a, expected, n, 1)) {
        n *= 2;
    }
    shortest_ms(add_on_device, d_a, d_x, n, 1);
    shortest_ms(add_on_one_core, h_a, expected, n, 1);
    CHECK(cudaMemcpy(h_x, d_x, n * sizeof(float), cudaMemcpyDeviceToHost));
    wrong += count_wrong(h_x, expected, n);
    if (n < largest) {
        printf("1. the GPU is faster from %lld elements on\n", (long long)n);
    } else {
        printf("1. with fewer than %lld elements the GPU is never faster\n", (long long)n);
    }

    for (int steps = 1; steps <= 100; steps *= 100) {
        double one = shortest_ms(work_on_one_core, h_a, expected, largest, steps);
        double all = shortest_ms(work_on_all_cores, h_a, h_x, largest, steps);
        wrong += count_wrong(h_x, expected, largest);
        double gpu = shortest_ms(work_on_device, d_a, d_x, largest, steps);
        CHECK(cudaMemcpy(h_x, d_x, bytes, cudaMemcpyDeviceToHost));
        wrong += count_wrong(h_x, expected, largest);
        printf("2. %3d steps: one core %.2f ms, all cores %.2f ms, GPU %.3f ms\n", steps, one, all,
               gpu);
    }
    printf("%lld elements are wrong\n", (long long)wrong);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_x));
    free(h_a);
    free(h_x);
    free(expected);
    return wrong ? 1 : 0;
}
