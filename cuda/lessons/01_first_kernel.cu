/* Lesson 01: the C loop and the first kernel.
 *
 * Two vectors (arrays of numbers) of N = 1000 elements are added twice: by the loop that every C
 * programmer knows, and on a GPU by a thousand threads, one for each element.
 *
 * Compile and run (the README.md of this folder tells how to do it without a GPU):
 *
 *     nvcc -O3 -arch=native 01_first_kernel.cu -o 01_first_kernel && ./01_first_kernel
 *
 * What to look for: vector_add() has no loop. And the GPU is slower, as 1000 elements are too few
 * to be worth the trip; from lesson 05 on you will see when it is worth it.
 *
 * Some words: the HOST is the CPU with its memory, which runs main() as in any C program. The
 * DEVICE is the GPU with a memory of its own. A KERNEL is a function that the host starts and the
 * device runs, in many THREADS at once.
 *
 * The language is CUDA C++, of which the lessons use the part that is C. Little differs from C:
 * malloc()'s result must be cast, and what belongs to CUDA (threadIdx, names that begin with cuda)
 * is known without an #include. The README.md has the rest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The kernel. `__global__` makes it one: called from the host, run on the device. Every thread runs
 * this same text, and only the number threadIdx.x is different: 0 in the first thread, 999 in the
 * last. So the loop's counter has become the number of the thread. Nobody declares threadIdx: it is
 * there in every kernel (and has a .y and a .z too, for lesson 08). */
static __global__ void vector_add(const float *a, const float *b, float *c) {
    int i = threadIdx.x;
    c[i] = a[i] + b[i];
}

/* Everything from here on is ordinary C, run by the host. */

/* The functions of CUDA return an error code. CHECK ends the program with a message if it is not
 * cudaSuccess; every lesson has this macro, and lesson 04 shows what happens without it. */
#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* The time in microseconds (us), from an arbitrary start. */
static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* The C loop: one element after the other. */
static void vector_add_on_host(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
}

/* One launch of n threads, from start to end, in microseconds.
 *
 * <<<blocks, threads in a block>>>: one block of n threads. (Blocks are for lesson 05.) The launch
 * returns at once: the device works while the host goes on, so the host has to wait before it looks
 * at c, by cudaDeviceSynchronize(). A launch returns nothing that CHECK could look at;
 * cudaGetLastError() tells how it went. */
static double launch_us(const float *a, const float *b, float *c, int n) {
    double start = now_us();
    vector_add<<<1, n>>>(a, b, c);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return now_us() - start;
}

/* How many elements differ from what is expected. Written with !(... <= ...), so that NaN ("not a
 * number", which compares as false with everything) counts as different too. */
static int count_wrong(const float *c, const float *expected, int n) {
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += !(fabsf(c[i] - expected[i]) <= 0);
    return wrong;
}

int main(void) {
    const int n = 1000;
    size_t bytes = n * sizeof(float);

    /* Is there a device at all? The first one has number 0. Exit status 77 says: nothing was wrong,
     * but there was none. */
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    printf("device: %s\n", device.name);

    /* MANAGED memory: host and device can both use it. The driver (the operating system's part for
     * the GPU) moves it to and fro behind our back; lesson 02 does that by hand. Where malloc()
     * returns a pointer, this function returns an error code, and puts the pointer into a. */
    float *a, *b, *c;
    CHECK(cudaMallocManaged(&a, bytes));
    CHECK(cudaMallocManaged(&b, bytes));
    CHECK(cudaMallocManaged(&c, bytes));
    float *expected = (float *)malloc(bytes);
    if (!expected) return 1;
    for (int i = 0; i < n; i++) {
        a[i] = (float)i;
        b[i] = 0.5f * (float)i;
        c[i] = 0;
    }

    double start = now_us();
    vector_add_on_host(a, b, expected, n);
    double loop_us = now_us() - start;

    double first_us = launch_us(a, b, c, n);
    int wrong = count_wrong(c, expected, n);
    printf("c[999] = %.1f + %.1f = %.1f, and %d of %d elements are wrong\n", a[999], b[999], c[999],
           wrong, n);

    /* Twice more for the clock. A first launch also loads the kernel into the device, and moves the
     * vectors there. The second moves them again, as the host has just read them. The third finds
     * everything in place: this is what a launch itself takes. */
    double moved_us = launch_us(a, b, c, n), warm_us = launch_us(a, b, c, n);
    printf("measured: C loop %.2f us; kernel from launch to end: the first time %.2f us, after the "
           "host has read the vectors %.2f us, at once again %.2f us\n",
           loop_us, first_us, moved_us, warm_us);

    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(c));
    free(expected);
    return wrong ? 1 : 0;
}

/* Exercises (solutions/01_first_kernel.cu has an answer to both):
 *
 * 1. Launch only 500 threads. Which elements of c are missing? Then let every thread add two
 *    elements, so that 500 threads do all the work.
 * 2. Write a kernel that turns the order round: c[0] = a[999], c[1] = a[998], ... */
