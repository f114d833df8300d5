/* Solutions of lesson 04.
 *
 *     nvcc -O3 -arch=native 04_errors.cu -o 04_errors && ./04_errors
 *
 * 1. check_kernel() asks for the launch's error, then waits and asks for the kernel's. The wait is
 *    what costs: host and device no longer work at the same time, and the device is idle between
 *    two kernels. So it is for the search of a bug.
 * 2. Too little memory is an error that passes: the next cudaMalloc works. */
#include <stdio.h>
#include <stdlib.h>

static __global__ void set(int *x, int value) { *x = value; }

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* Tells where a kernel went wrong, and returns the error. CHECK_KERNEL passes it the place. */
static cudaError_t check_kernel(const char *file, int line) {
    cudaError_t launched = cudaGetLastError();
    cudaError_t finished = launched ? launched : cudaDeviceSynchronize();
    if (finished) {
        printf("   %s:%d: %s: %s\n", file, line, launched ? "launch" : "kernel",
               cudaGetErrorName(finished));
    }
    return finished;
}
#define CHECK_KERNEL() check_kernel("04_errors.cu", __LINE__)

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    int *d_x, *too_much = NULL, *nowhere = NULL, x = 0;
    size_t free_bytes, total_bytes;
    CHECK(cudaMalloc(&d_x, sizeof x));

    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    cudaError_t no_memory = cudaMalloc(&too_much, 2 * total_bytes);
    cudaError_t forgotten = cudaGetLastError(); /* the runtime remembers it too: take it away */
    cudaError_t next = cudaMalloc(&too_much, sizeof x);
    printf("2. twice the device's memory: %s; 4 bytes afterwards: %s\n",
           cudaGetErrorName(no_memory), cudaGetErrorName(next));
    if (next == cudaSuccess) CHECK(cudaFree(too_much));

    printf("1. too large a block, a kernel that is right, a kernel that writes to NULL:\n");
    set<<<1, 4096>>>(d_x, 1);
    cudaError_t first = CHECK_KERNEL();
    set<<<1, 1>>>(d_x, 2);
    cudaError_t second = CHECK_KERNEL();
    CHECK(cudaMemcpy(&x, d_x, sizeof x, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d_x));
    set<<<1, 1>>>(nowhere, 3); /* the last thing: after it the process has lost the device */
    cudaError_t third = CHECK_KERNEL();

    int passes = no_memory == cudaErrorMemoryAllocation && forgotten == no_memory && !next;
    int found = first != cudaSuccess && !second && x == 2 && third == cudaErrorIllegalAddress;
    return passes && found ? 0 : 1;
}
