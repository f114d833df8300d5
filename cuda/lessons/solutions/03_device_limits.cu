/* Solutions of lesson 03.
 *
 *     nvcc -O3 -arch=native 03_device_limits.cu -o 03_device_limits && ./03_device_limits
 *
 * 1. Doubling until a launch fails, then halving the gap, finds a limit in some twenty launches. A
 *    refused launch does no harm, so trying is allowed (asking the device is better).
 * 2. In add_by_one_block() thread i does the elements i, i + 1024, i + 2048, ... */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static __global__ void nothing(void) {}

static __global__ void add_by_one_block(const float *a, const float *b, float *c, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) c[i] = a[i] + b[i];
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* Whether a block of this shape can be launched. */
static int is_accepted(dim3 block) {
    nothing<<<1, block>>>();
    cudaError_t launched = cudaGetLastError();
    if (launched == cudaErrorInvalidConfiguration || launched == cudaErrorInvalidValue)
        return 0; /* CUDA versions differ in which of the two it is */
    CHECK(launched);
    CHECK(cudaDeviceSynchronize());
    return 1;
}

/* The largest size along x (or along z) of a block with no other threads. */
static unsigned largest_block(int along_z) {
    unsigned works = 1, fails = 2;
    while (is_accepted(along_z ? dim3(1, 1, fails) : dim3(fails))) {
        works = fails;
        fails *= 2;
    }
    while (fails - works > 1) {
        unsigned middle = (works + fails) / 2;
        if (is_accepted(along_z ? dim3(1, 1, middle) : dim3(middle))) {
            works = middle;
        } else {
            fails = middle;
        }
    }
    return works;
}

int main(void) {
    const int n = 500000;
    const size_t bytes = n * sizeof(float);
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    unsigned x = largest_block(0), z = largest_block(1);
    printf("1. found %u along x and %u along z; the device says %d and %d\n", x, z,
           device.maxThreadsDim[0], device.maxThreadsDim[2]);
    int found = (int)x == device.maxThreadsDim[0] && (int)z == device.maxThreadsDim[2];

    float *h_a = (float *)malloc(bytes), *h_c = (float *)malloc(bytes), *d_a, *d_c;
    if (!h_a || !h_c) return 1;
    for (int i = 0; i < n; i++) h_a[i] = (float)i;
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));
    add_by_one_block<<<1, 1024>>>(d_a, d_a, d_c, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += !(fabsf(h_c[i] - 2 * h_a[i]) <= 0);
    printf("2. 500000 elements by one block: %d wrong\n", wrong);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_c);
    return found && !wrong ? 0 : 1;
}
