/* Lesson 06: all cores of the CPU, and one element against a million.
 *
 * A fair comparison lets the CPU use all its cores: OpenMP, a part of every C compiler, shares a
 * loop out among them by a single line. And there are two questions that are often mixed up:
 *
 *   LATENCY: how long until ONE result is there? A CPU core is built for this.
 *   THROUGHPUT: how many results come in a second? A GPU is built for this, with thousands of
 *   threads that are each slow, but wait for their numbers from memory all at the same time.
 *
 *     nvcc -O3 -arch=native -Xcompiler -fopenmp 06_cpu_cores.cu -o 06_cpu_cores && ./06_cpu_cores
 *
 * (-Xcompiler hands -fopenmp on to gcc, which nvcc calls for the host's part of a program.)
 *
 * What to look for: for a single element one CPU core is by far the fastest, as every launch costs
 * some microseconds. But a million elements hardly take a large GPU longer than one. (On the
 * simulated card they do, as there your CPU does the work of all threads.) */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static __global__ void vector_add(const float *a, const float *b, float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* Three ways to do the same. The line that begins with #pragma is OpenMP: the loop after it is
 * shared out among the cores, each takes a stretch of it. */

static void add_on_one_core(const float *a, const float *b, float *c, int64_t n) {
    for (int64_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}

static void add_on_all_cores(const float *a, const float *b, float *c, int64_t n) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}

/* The vectors are on the device already: what bringing them there costs is lesson 07. The wait is
 * counted, as a result that nobody may look at yet is not a result. */
static void add_on_device(const float *a, const float *b, float *c, int64_t n) {
    vector_add<<<(unsigned)((n + 255) / 256), 256>>>(a, b, c, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

typedef void (*add_function)(const float *a, const float *b, float *c, int64_t n);

/* The shortest of 20 runs, in microseconds: what disturbs a run only ever makes it longer. */
static double shortest_us(add_function add, const float *a, const float *b, float *c, int64_t n) {
    double shortest = 1e30;
    for (int run = 0; run < 20; run++) {
        double start = now_us();
        add(a, b, c, n);
        double us = now_us() - start;
        if (us < shortest) shortest = us;
    }
    return shortest;
}

static int64_t count_wrong(const float *c, const float *expected, int64_t n) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += !(fabsf(c[i] - expected[i]) <= 0);
    return wrong;
}

int main(void) {
    const int64_t sizes[] = {1, 1000, 1000000}, largest = 1000000;
    const size_t bytes = (size_t)largest * sizeof(float);
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    printf("device: %s; CPU threads: %d\n", device.name, omp_get_max_threads());

    float *h_a = (float *)malloc(bytes), *h_b = (float *)malloc(bytes);
    float *h_c = (float *)malloc(bytes), *expected = (float *)malloc(bytes);
    float *d_a, *d_b, *d_c;
    if (!h_a || !h_b || !h_c || !expected) return 1;
    for (int64_t i = 0; i < largest; i++) {
        h_a[i] = (float)(i % 1000);
        h_b[i] = (float)(i % 17);
    }
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_b, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, h_b, bytes, cudaMemcpyHostToDevice));

    double one = 0, all = 0, gpu = 0, gpu_latency = 0;
    int64_t wrong = 0;
    printf("     elements   one core us  all cores us        GPU us\n");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s];
        one = shortest_us(add_on_one_core, h_a, h_b, expected, n);
        all = shortest_us(add_on_all_cores, h_a, h_b, h_c, n);
        wrong += count_wrong(h_c, expected, n);
        gpu = shortest_us(add_on_device, d_a, d_b, d_c, n);
        CHECK(cudaMemcpy(h_c, d_c, (size_t)n * sizeof(float), cudaMemcpyDeviceToHost));
        wrong += count_wrong(h_c, expected, n);
        if (n == 1) gpu_latency = gpu;
        printf("%13lld %13.2f %13.2f %13.2f\n", (long long)n, one, all, gpu);
    }
    printf(
        "measured: for a million elements the GPU takes %.1f times as long as for one; it is %.2f "
        "times as fast as one core, %.2f times as fast as all\n",
        gpu / gpu_latency, one / gpu, all / gpu);
    printf("%lld elements are wrong\n", (long long)wrong);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    free(h_c);
    free(expected);
    return wrong ? 1 : 0;
}

/* Exercises (solutions/06_cpu_cores.cu; what they measure needs a GPU):
 *
 * 1. From how many elements on is the GPU faster than one core? Try 1, 2, 4, 8, ... until it is.
 * 2. An addition is little work for three trips to memory. Let each element be worked on a hundred
 *    times, x = x * 0.5 + a, in all three functions. Whom does that favour, and why? */
