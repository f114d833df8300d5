/* Solutions of lesson 01.
 *
 *     nvcc -O3 -arch=native 01_first_kernel.cu -o 01_first_kernel && ./01_first_kernel
 *
 * 1. With 500 threads elements 500 to 999 are missing: no thread has their number. In add_two() the
 *    thread also adds the element that lies as many places on as there are threads (blockDim.x).
 * 2. In reverse() thread i reads element n - 1 - i. No thread depends on another one's work, so in
 *    which order they run does not matter. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static __global__ void add_two(const float *a, const float *b, float *c) {
    int i = threadIdx.x, j = i + blockDim.x;
    c[i] = a[i] + b[i];
    c[j] = a[j] + b[j];
}

static __global__ void reverse(const float *a, float *c) {
    int i = threadIdx.x;
    c[i] = a[blockDim.x - 1 - i];
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
    const int n = 1000;
    const size_t bytes = n * sizeof(float);
    float *a, *b, *c;
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    CHECK(cudaMallocManaged(&a, bytes));
    CHECK(cudaMallocManaged(&b, bytes));
    CHECK(cudaMallocManaged(&c, bytes));
    for (int i = 0; i < n; i++) {
        a[i] = (float)i;
        b[i] = 0.5f * (float)i;
        c[i] = 0;
    }

    int wrong = 0;
    add_two<<<1, n / 2>>>(a, b, c);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) wrong += !(fabsf(c[i] - (a[i] + b[i])) <= 0);
    printf("1. 500 threads, two elements each: %d of %d wrong\n", wrong, n);

    int reverse_wrong = 0;
    reverse<<<1, n>>>(a, c);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) reverse_wrong += !(fabsf(c[i] - a[n - 1 - i]) <= 0);
    printf("2. turned round: c[0] = %.0f, %d of %d wrong\n", c[0], reverse_wrong, n);

    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(c));
    return wrong + reverse_wrong ? 1 : 0;
}
