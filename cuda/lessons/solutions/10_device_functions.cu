/* Solutions of lesson 10.
 *
 *     nvcc -O3 -arch=native 10_device_functions.cu -o 10_device_functions && ./10_device_functions
 *
 * 1. sigmoid_of() is compiled for host and device. (Their results may still differ in the last
 *    digit: each has an expf of its own.)
 * 2. slope_of() calls another device function. The check takes the difference quotient in double,
 *    as in float it would be too coarse. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static __host__ __device__ float sigmoid_of(float x) { return 1 / (1 + expf(-x)); }

static __device__ float slope_of(float x) {
    float s = sigmoid_of(x);
    return s * (1 - s);
}

static __global__ void sigmoid(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sigmoid_of(x[i]);
}

static __global__ void sigmoid_slope(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = slope_of(x[i]);
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static double exact_sigmoid(double x) { return 1 / (1 + exp(-x)); }

int main(void) {
    enum { n = 2001 };
    const size_t bytes = n * sizeof(float);
    const double h = 1e-5;
    float h_x[n], h_y[n], *d_x, *d_y;
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    for (int i = 0; i < n; i++) h_x[i] = (float)(i - 1000) / 10;
    CHECK(cudaMalloc(&d_x, bytes));
    CHECK(cudaMalloc(&d_y, bytes));
    CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));

    int wrong = 0;
    sigmoid<<<(n + 255) / 256, 256>>>(d_x, d_y, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_y, d_y, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) wrong += !(fabsf(h_y[i] - sigmoid_of(h_x[i])) <= 1e-6f);
    printf("1. one function on host and device: %d of %d wrong\n", wrong, n);

    int slope_wrong = 0;
    sigmoid_slope<<<(n + 255) / 256, 256>>>(d_x, d_y, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_y, d_y, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        double slope = (exact_sigmoid(h_x[i] + h) - exact_sigmoid(h_x[i] - h)) / (2 * h);
        slope_wrong += !(fabs(h_y[i] - slope) <= 1e-6);
    }
    printf("2. the slope at 0 is %.4f; %d of %d wrong\n", h_y[1000], slope_wrong, n);

    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    return wrong + slope_wrong ? 1 : 0;
}
