/* Lesson 03: the limits of a device, met with 500,000 threads in one block.
 *
 * One thread for each element worked for 1000 elements. For 500,000 it does not: all threads of a
 * block run together on one MULTIPROCESSOR, the part of a GPU that does the computing (an H200 has
 * 132 of them), and one multiprocessor has room for so many threads and no more.
 *
 *     nvcc -O3 -arch=native 03_device_limits.cu -o 03_device_limits && ./03_device_limits
 *
 * What to look for: the launch is refused as a whole, by name, and nothing has run. It is the mild
 * sort of error: the next call works again. And the limits are asked from the device, not known by
 * heart: programs that ask keep working on the next generation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static __global__ void vector_add(const float *a, const float *b, float *c) {
    int i = threadIdx.x;
    c[i] = a[i] + b[i];
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

/* What the device says about itself. A WARP is a group of threads that go through the kernel
 * together, instruction by instruction; a block is made of whole warps. A multiprocessor holds more
 * threads than it computes with in one moment: while some wait for memory, it goes on with others.
 * Blocks, and grids (all blocks of a launch), may have up to three dimensions, x, y and z, as will
 * be useful in lessons 08 and 09. */
static void print_limits(const cudaDeviceProp *d) {
    const int *block = d->maxThreadsDim, *grid = d->maxGridSize;
    printf("device: %s\n", d->name);
    printf("  threads per block, at most:       %d\n", d->maxThreadsPerBlock);
    printf("  of these along x, y, z, at most:  %d, %d, %d\n", block[0], block[1], block[2]);
    printf("  blocks along x, y, z, at most:    %d, %d, %d\n", grid[0], grid[1], grid[2]);
    printf("  threads in a warp:                %d\n", d->warpSize);
    printf("  multiprocessors:                  %d\n", d->multiProcessorCount);
    printf("  threads that these can hold:      %d\n",
           d->multiProcessorCount * d->maxThreadsPerMultiProcessor);
    printf("  memory:                           %.1f GiB\n", (double)d->totalGlobalMem / (1 << 30));
}

/* Launches one block twice; returns what became of it (cudaSuccess is 0) and the microseconds of
 * the second time: the first may also load the kernel, even for a launch that is refused then. */
static cudaError_t launch(int threads, const float *a, const float *b, float *c, double *us) {
    cudaError_t error = cudaSuccess;
    for (int run = 0; run < 2; run++) {
        double start = now_us();
        vector_add<<<1, threads>>>(a, b, c);
        error = cudaGetLastError(); /* tells the error, and forgets it */
        if (error == cudaSuccess) error = cudaDeviceSynchronize();
        *us = now_us() - start;
    }
    return error;
}

int main(void) {
    const int n = 500000;
    const size_t bytes = n * sizeof(float);
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    print_limits(&device);

    float *h_a = (float *)malloc(bytes), *h_c = (float *)malloc(bytes);
    float *d_a, *d_c;
    if (!h_a || !h_c) return 1;
    for (int i = 0; i < n; i++) h_a[i] = (float)i;
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_c, 0, bytes)); /* all elements 0: those that no thread writes stay so */

    /* d_a is both inputs here, so the kernel computes c = a + a. */
    double refused_us, accepted_us;
    int most = device.maxThreadsPerBlock;
    cudaError_t refused = launch(n, d_a, d_a, d_c, &refused_us);
    printf("1 block of %d threads: %s, \"%s\"\n", n, cudaGetErrorName(refused),
           cudaGetErrorString(refused));

    /* The card stays usable. This block is as large as the device allows, so it covers only the
     * first elements; lesson 05 covers the others. */
    cudaError_t accepted = launch(most, d_a, d_a, d_c, &accepted_us);
    printf("1 block of %d threads: %s\n", most, cudaGetErrorName(accepted));
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));

    int covered = 0, wrong = 0;
    for (int i = 0; i < n; i++) {
        float expected = i < most ? h_a[i] + h_a[i] : 0;
        covered += h_c[i] != 0 || i == 0; /* element 0 is 0 + 0 */
        wrong += !(fabsf(h_c[i] - expected) <= 0);
    }
    printf("covered %d of %d elements, %d are wrong\n", covered, n, wrong);
    printf("measured: the refused launch took %.1f us, the accepted one %.1f us\n", refused_us,
           accepted_us);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_c);
    int as_expected = refused != cudaSuccess && accepted == cudaSuccess;
    return as_expected && !wrong ? 0 : 1;
}

/* Exercises (solutions/03_device_limits.cu):
 *
 * 1. Find the largest block by trying: launches of 1, 2, 4, 8, ... threads, then halve the gap.
 *    Compare with what the device said. Do the same along z, by <<<1, dim3(1, 1, z)>>>: a dim3 is a
 *    struct of the sizes along x, y and z. (A kernel that does nothing is enough.)
 * 2. Let one block of 1024 threads do all 500,000 elements: each thread goes on by 1024 until the
 *    end. (It works, but only one multiprocessor is busy.) */
