/* Solutions of lesson 05.
 *
 *     nvcc -O3 -arch=native 05_blocks_and_grids.cu -o 05_blocks_and_grids && ./05_blocks_and_grids
 *
 * 1. The grid-stride loop of add_by_any_grid() is right for every n and every launch. It is worth
 *    having when each thread has something to prepare that serves for many elements.
 * 2. 100 blocks of 256 threads cover 25,600 of 500,000 elements. No error is reported: as far as
 *    the device knows that is what was wanted. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static __global__ void add_by_any_grid(const float *a, const float *b, float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t threads = (int64_t)gridDim.x * blockDim.x; /* of the whole grid */
    for (; i < n; i += threads) c[i] = a[i] + b[i];
}

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

int main(void) {
    const int64_t n = 500000;
    const size_t bytes = n * sizeof(float);
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    float *h_a = (float *)malloc(bytes), *h_c = (float *)malloc(bytes), *d_a, *d_c;
    if (!h_a || !h_c) return 1;
    for (int64_t i = 0; i < n; i++) h_a[i] = (float)(i + 1);
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));

    CHECK(cudaMemset(d_c, 0, bytes));
    add_by_any_grid<<<4, 256>>>(d_a, d_a, d_c, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += !(fabsf(h_c[i] - 2 * h_a[i]) <= 0);
    printf("1. 4 blocks of 256 threads, %lld elements: %lld wrong\n", (long long)n,
           (long long)wrong);

    CHECK(cudaMemset(d_c, 0, bytes));
    vector_add<<<100, 256>>>(d_a, d_a, d_c, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    int64_t covered = 0;
    for (int64_t i = 0; i < n; i++) covered += h_c[i] == 2 * h_a[i];
    printf("2. 100 blocks of 256 threads cover %lld of %lld elements\n", (long long)covered,
           (long long)n);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_c);
    return wrong == 0 && covered == 100 * 256 ? 0 : 1;
}
