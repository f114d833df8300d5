/* Solutions of lesson 04.
 *
 *     nvcc -O3 -arch=native 04_errors.cu -o 04_errors && ./04_errors
 *
 * 1. check_kernel() asks for the launch's error, then waits and asks for the kernel's. The wait is
 *    what costs: host and device no longer work at the same time, and the device is idle between
 *    two kernels. So it is for the search of a bug. (The kernel that writes to NULL loses the
 *    device for its process, so this part has one of its own, as in lesson 02.)
 * 2. Too little memory is an error that passes: the next cudaMalloc works. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Solution 1: a launch that is refused, a kernel that is right, a kernel that is not. */
static int find_both_kinds(void) {
    int *d_x, *nowhere = NULL, devices, x = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    CHECK(cudaMalloc(&d_x, sizeof x));
    printf("1. too large a block, a kernel that is right, a kernel that writes to NULL:\n");
    set<<<1, 4096>>>(d_x, 1);
    cudaError_t first = CHECK_KERNEL();
    set<<<1, 1>>>(d_x, 2);
    cudaError_t second = CHECK_KERNEL();
    CHECK(cudaMemcpy(&x, d_x, sizeof x, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d_x));
    set<<<1, 1>>>(nowhere, 3); /* the last thing: after it the process has lost the device */
    cudaError_t third = CHECK_KERNEL();
    return first != cudaSuccess && !second && x == 2 && third == cudaErrorIllegalAddress ? 0 : 1;
}

/* Solution 2: more memory than there is. */
static int ask_for_too_much(void) {
    int *memory = NULL;
    size_t free_bytes, total_bytes;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    cudaError_t no_memory = cudaMalloc(&memory, 2 * total_bytes);
    cudaError_t forgotten = cudaGetLastError(); /* the runtime remembers it too: take it away */
    cudaError_t next = cudaMalloc(&memory, sizeof *memory);
    printf("2. twice the device's memory: %s; 4 bytes afterwards: %s\n",
           cudaGetErrorName(no_memory), cudaGetErrorName(next));
    if (next == cudaSuccess) CHECK(cudaFree(memory));
    return no_memory == cudaErrorMemoryAllocation && forgotten == no_memory && !next ? 0 : 1;
}

int main(void) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) exit(find_both_kinds());
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
    if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
    return ask_for_too_much();
}
