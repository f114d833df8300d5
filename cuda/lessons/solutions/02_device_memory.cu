/* Solutions of lesson 02.
 *
 *     nvcc -O3 -arch=native 02_device_memory.cu -o 02_device_memory && ./02_device_memory
 *
 * 1. add_to() reads a[i] before it writes it, and no other thread uses that element: so a may be
 *    input and output at once.
 * 2. A copy from device to device never leaves the device. cudaMemset fills with bytes, not with
 *    floats; four bytes of 0 happen to be the float 0. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static __global__ void add_to(float *a, const float *b) {
    int i = threadIdx.x;
    a[i] = a[i] + b[i];
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
    enum { n = 1000 };
    float a[n], b[n], sum[n], first[n], second[n], *d_a, *d_b;
    const size_t bytes = sizeof a;
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    for (int i = 0; i < n; i++) {
        a[i] = (float)i;
        b[i] = 1 + 0.5f * (float)i;
    }
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_b, bytes));
    CHECK(cudaMemcpy(d_a, a, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, b, bytes, cudaMemcpyHostToDevice));

    add_to<<<1, n>>>(d_a, d_b);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(sum, d_a, bytes, cudaMemcpyDeviceToHost)); /* waits for the kernel first */
    int sum_wrong = 0;
    for (int i = 0; i < n; i++) sum_wrong += !(fabsf(sum[i] - (a[i] + b[i])) <= 0);
    printf("1. a = a + b with two pieces of device memory: %d of %d wrong\n", sum_wrong, n);

    CHECK(cudaMemcpy(d_b, d_a, bytes, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemset(d_a, 0, bytes));
    CHECK(cudaMemcpy(first, d_a, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(second, d_b, bytes, cudaMemcpyDeviceToHost));
    int copy_wrong = 0;
    for (int i = 0; i < n; i++) {
        copy_wrong += !(fabsf(first[i]) <= 0) || !(fabsf(second[i] - sum[i]) <= 0);
    }
    printf("2. emptied %.0f, copied before %.1f: %d of %d wrong\n", first[n - 1], second[n - 1],
           copy_wrong, n);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    return sum_wrong + copy_wrong ? 1 : 0;
}
