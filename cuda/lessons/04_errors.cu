/* Lesson 04: errors, and cudaDeviceSynchronize().
 *
 * A launch has no return value. If it fails and nobody asks, the program goes on with whatever was
 * in the memory before, and prints it as its result. There are two kinds of errors to ask for:
 *
 *   - of the launch itself, such as a block that is too large: cudaGetLastError() right after it
 *     (CUDA keeps the error until somebody asks; asked later, it may have been any launch);
 *   - of the kernel, such as a wrong address. It happens later, while the host is somewhere else,
 *     and is told by the next call that waits: cudaDeviceSynchronize(), or a copy.
 *
 *     nvcc -O3 -arch=native 04_errors.cu -o 04_errors && ./04_errors
 *
 * What to look for: in part 1 every copy succeeds and the sum is still nonsense. In part 3 the
 * error appears at a call that has nothing to do with its cause, and it stays for good. (The line
 * "simulator: ..." of the simulated card is about part 3.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static __global__ void vector_add(const float *a, const float *b, float *c) {
    int i = threadIdx.x;
    c[i] = a[i] + b[i];
}

/* A kernel with something to do, for the clock: each step halves the way from the value to a + a,
 * until a float knows no number between the two. */
static __global__ void add_in_steps(const float *a, float *c, int steps) {
    int i = threadIdx.x;
    float value = 0;
    for (int step = 0; step < steps; step++) value = value * 0.5f + a[i];
    c[i] = value;
}

/* The macro of all lessons. It is a macro and not a function so that __FILE__ and __LINE__ name the
 * place of the call; do { } while (0) makes it one statement, as in `if (x) CHECK(...); else ...`.
 * A library would hand the error to its caller instead of ending the program. */
#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static const int n = 1000;
static const size_t bytes = n * sizeof(float);
enum { STEPS = 20000 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int count_wrong(const float *a, const float *c) {
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += !(fabsf(c[i] - (a[i] + a[i])) <= 0);
    return wrong;
}

/* Part 1: a launch that fails unseen. 2000 threads are more than a block may have. Returns the
 * error that a check would have shown. */
static cudaError_t launch_without_looking(const float *h_a, float *h_c, const float *d_a,
                                          float *d_c) {
    vector_add<<<1, 2 * n>>>(d_a, d_a, d_c);
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost)); /* succeeds! */
    printf("1. unchecked: %.0f + %.0f = %.0f, says a program that saw no error (%d of %d wrong)\n",
           h_a[7], h_a[7], h_c[7], count_wrong(h_a, h_c), n);
    cudaError_t unseen = cudaGetLastError();
    printf("   what it would have been told: %s\n", cudaGetErrorName(unseen));
    return unseen;
}

/* Part 2: the same with checks, and a longer kernel for the clock. Returns the number of wrong
 * elements. */
static int launch_and_look(const float *h_a, float *h_c, const float *d_a, float *d_c) {
    vector_add<<<1, n>>>(d_a, d_a, d_c);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost)); /* waits for the kernel */
    int wrong = count_wrong(h_a, h_c);
    printf("2. checked:   %.0f + %.0f = %.0f (%d of %d wrong)\n", h_a[7], h_a[7], h_c[7], wrong, n);

    add_in_steps<<<1, n>>>(d_a, d_c, 1); /* a first run also loads the kernel: not measured */
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    double start = now_us();
    add_in_steps<<<1, n>>>(d_a, d_c, STEPS);
    double launched = now_us();
    CHECK(cudaGetLastError());
    double looked = now_us();
    CHECK(cudaDeviceSynchronize());
    double waited = now_us();
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    printf("measured: launch %.1f us, cudaGetLastError %.2f us, wait for the end %.1f us\n",
           launched - start, looked - launched, waited - looked);
    return wrong + count_wrong(h_a, h_c);
}

/* Part 3: an error of the kernel. It reads and writes at the address NULL, which is nobody's. (The
 * simulated card runs a kernel during the launch, so there the launch tells it.) After that the
 * process has lost the device, all of its memory included: every call gives the same error until
 * the process ends. So this is the last thing that the program does, with nothing left to free. */
static int use_null(void) {
    float *nowhere = NULL, *unrelated = NULL;
    vector_add<<<1, n>>>(nowhere, nowhere, nowhere);
    cudaError_t launched = cudaGetLastError();
    cudaError_t waited = cudaDeviceSynchronize();
    cudaError_t later = cudaMalloc(&unrelated, bytes);
    printf("3. a kernel that is given NULL: launch %s, wait %s\n", cudaGetErrorName(launched),
           cudaGetErrorName(waited));
    printf("   a cudaMalloc after it: %s, \"%s\"\n", cudaGetErrorName(later),
           cudaGetErrorString(later));
    return waited == cudaErrorIllegalAddress && later == cudaErrorIllegalAddress;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    printf("device: %s\n", device.name);

    float h_a[n], h_c[n], *d_a, *d_c;
    for (int i = 0; i < n; i++) h_a[i] = (float)i;
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_c, 0, bytes));

    cudaError_t unseen = launch_without_looking(h_a, h_c, d_a, d_c);
    int wrong = launch_and_look(h_a, h_c, d_a, d_c);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_c));
    int lost = use_null();
    return unseen != cudaSuccess && !wrong && lost ? 0 : 1;
}

/* Exercises (solutions/04_errors.cu):
 *
 * 1. Write CHECK_KERNEL(), to be put after a launch, that finds errors of both kinds at once. Why
 *    do programs that have to be fast use it only while someone looks for a bug?
 * 2. Ask cudaMalloc for more memory than the device has. Is this error of the sort that passes, as
 *    in part 1, or of the sort that stays, as in part 3? */
