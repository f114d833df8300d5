/* Lesson 10: functions on the device, and the sigmoid.
 *
 * A kernel may call functions. They are marked `__device__`: called by the device, run by the
 * device. Ours is the sigmoid, 1 / (1 + exp(-x)), which turns any number into one between 0 and 1;
 * neural networks use it to say "how much" or "how likely".
 *
 *     nvcc -O3 -arch=native 10_device_functions.cu -o 10_device_functions && ./10_device_functions
 *
 * What to look for: on the CPU an exponential costs much more than copying a number. On the GPU the
 * two kernels take nearly the same time: while some threads wait for memory, others calculate. */
#include <stdint.h>

/* The device has its own versions of C's mathematics: expf, sqrtf, sinf ... For x below -88
 * expf(-x) is infinite, and 1 / infinity is 0, as it should be. */
static __device__ float sigmoid_of(float x) { return 1 / (1 + expf(-x)); }

static __global__ void sigmoid(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sigmoid_of(x[i]);
}

#ifndef PVG_LESSON_KERNELS /* pyvecgpu's library includes what is above, without what follows */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* To compare with: a kernel that only copies, so nothing but memory is at work. */
static __global__ void copy(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* So many that the vectors, 80 MB, do not fit into most devices' cache, which would hide what the
 * memory costs. */
static const int64_t n = 10 * 1000 * 1000;
static const size_t bytes = n * sizeof(float);

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void sigmoid_on_host(const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = 1 / (1 + expf(-x[i]));
}

static void copy_on_host(const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i];
}

/* exp is not exact in the last digit, and host and device round it differently. So a difference of
 * 1e-6 is allowed, for results between 0 and 1. NaN ("not a number") is not, as no comparison with
 * it is true. */
static int64_t count_wrong(const float *y, const float *expected) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += !(fabsf(y[i] - expected[i]) <= 1e-6f);
    return wrong;
}

typedef void (*kernel_function)(const float *x, float *y, int64_t n);

/* The time in milliseconds of the second launch (the first one also loads the kernel). */
static float kernel_ms(kernel_function kernel, const float *x, float *y) {
    float ms = 0;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int launch = 0; launch < 2; launch++) {
        CHECK(cudaEventRecord(start));
        kernel<<<(unsigned)((n + 255) / 256), 256>>>(x, y, n);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(stop));
    }
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    return ms;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    printf("device: %s\n", device.name);

    float *h_x = (float *)malloc(bytes), *h_y = (float *)malloc(bytes);
    float *expected = (float *)malloc(bytes), *d_x, *d_y;
    if (!h_x || !h_y || !expected) return 1;
    for (int64_t i = 0; i < n; i++) {
        h_x[i] = (float)(i % 2001 - 1000) / 10; /* from -100 to 100 */
        h_y[i] = expected[i] = 0;
    }
    double t0 = now_ms();
    copy_on_host(h_x, h_y);
    double t1 = now_ms();
    sigmoid_on_host(h_x, expected);
    double t2 = now_ms();

    CHECK(cudaMalloc(&d_x, bytes));
    CHECK(cudaMalloc(&d_y, bytes));
    CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
    float copy_ms = kernel_ms(copy, d_x, d_y);
    CHECK(cudaMemcpy(h_y, d_y, bytes, cudaMemcpyDeviceToHost));
    int64_t wrong = count_wrong(h_y, h_x);
    float sigmoid_ms = kernel_ms(sigmoid, d_x, d_y);
    CHECK(cudaMemcpy(h_y, d_y, bytes, cudaMemcpyDeviceToHost));
    wrong += count_wrong(h_y, expected);
    for (int64_t i = 980; i <= 1020; i += 10) printf("sigmoid(%4.1f) = %.6f\n", h_x[i], h_y[i]);
    printf("%lld of 2 x %lld elements are wrong\n", (long long)wrong, (long long)n);
    printf(
        "measured: C loops copy %.2f ms, sigmoid %.2f ms; kernels copy %.3f ms, sigmoid %.3f ms\n",
        t1 - t0, t2 - t1, copy_ms, sigmoid_ms);

    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    free(h_x);
    free(h_y);
    free(expected);
    return wrong ? 1 : 0;
}

/* Exercises (solutions/10_device_functions.cu):
 *
 * 1. A function marked `__host__ __device__` is compiled twice, for both. Make the sigmoid one, and
 *    let the C loop call it too, so that the formula is written only once.
 * 2. Training needs the slope of the sigmoid, s * (1 - s) with s = sigmoid(x). Write it as a device
 *    function that calls sigmoid_of(), and check it on the host against (sigmoid(x + h) -
 *    sigmoid(x - h)) / 2h, in double with h = 1e-5. (In float the two sigmoids would be equal in
 *    all digits but the last; there h = 0.01 is the best choice, good to 1e-5.) */

#endif
