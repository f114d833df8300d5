/* Lesson 02: device memory, and what a host pointer in a kernel does.
 *
 * A GPU has memory of its own. The host asks for a piece of it (cudaMalloc), copies the inputs down
 * (cudaMemcpy), launches, copies the result up and gives the piece back (cudaFree). Lesson 01 had
 * the driver do the copies; from now on we do them, as nearly all programs do.
 *
 *     nvcc -O3 -arch=native 02_device_memory.cu -o 02_device_memory && ./02_device_memory
 *
 * What to look for: the first part hands malloc()'s pointers to a kernel. The launch itself is
 * fine. The error comes later, when the host waits, and after it every call to CUDA fails: the
 * process has lost the device for good. Other processes have not, which is why that part runs in a
 * process of its own. (The simulated card also says what was wrong, in a line that begins with
 * "simulator:"; there it belongs to the lesson.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As in lesson 01. A kernel cannot tell host pointers from device pointers: both are addresses. */
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

static const int n = 1000;
static const size_t bytes = n * sizeof(float);

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* New host memory with the numbers 0, step, 2 step, ... */
static float *new_vector(float step) {
    float *x = (float *)malloc(bytes);
    if (!x) exit(1);
    for (int i = 0; i < n; i++) x[i] = step * (float)i;
    return x;
}

/* How many elements differ from the C loop's (also when they are NaN, "not a number"). */
static int count_wrong(const float *a, const float *b, const float *c) {
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += !(fabsf(c[i] - (a[i] + b[i])) <= 0);
    return wrong;
}

/* Part 1, the mistake: a kernel that works on malloc()'s memory. Returns an exit status. */
static int use_host_pointers(void) {
    /* Some systems (Grace Hopper, or a Linux with "heterogeneous memory management") let the device
     * reach all of the host's memory, slowly. There this is no mistake; most systems say no. */
    int can_reach = 0;
    if (cudaDeviceGetAttribute(&can_reach, cudaDevAttrPageableMemoryAccess, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    float *a = new_vector(1), *b = new_vector(2), *c = new_vector(0), *more = NULL;
    printf("can this device reach the host's memory? %s\n", can_reach ? "yes" : "no");

    /* On a GPU the launch reports nothing, as the kernel has not run yet. (The simulated card runs
     * a kernel during the launch, so there it is the launch that fails.) */
    vector_add<<<1, n>>>(a, b, c);
    cudaError_t launched = cudaGetLastError();
    cudaError_t waited = cudaDeviceSynchronize();
    cudaError_t afterwards = cudaMalloc(&more, bytes);
    printf("a kernel with host pointers: launch %s, wait %s, a cudaMalloc after it %s\n",
           cudaGetErrorName(launched), cudaGetErrorName(waited), cudaGetErrorName(afterwards));

    int as_expected = can_reach ? count_wrong(a, b, c) == 0
                                : waited == cudaErrorIllegalAddress && afterwards == waited;
    if (afterwards == cudaSuccess) CHECK(cudaFree(more));
    free(a);
    free(b);
    free(c);
    return as_expected ? 0 : 1;
}

/* Part 2, as it should be. By convention h_ marks pointers to host memory, d_ to device memory:
 * the compiler cannot tell them apart, so the names have to. The host may keep
 * a d_ pointer and hand it to CUDA, but not read or write what it points to: d_a[0] in main() would
 * crash. */
static int use_device_pointers(void) {
    float *h_a = new_vector(1), *h_b = new_vector(2), *h_c = new_vector(0);
    float *d_a, *d_b, *d_c;
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_b, bytes));
    CHECK(cudaMalloc(&d_c, bytes));

    vector_add<<<1, n>>>(d_a, d_b, d_c); /* a first run also loads the kernel: not measured */
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemset(d_c, 0, bytes)); /* the result below shall not be this run's */

    double t0 = now_us();
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice)); /* to, from, size, direction */
    CHECK(cudaMemcpy(d_b, h_b, bytes, cudaMemcpyHostToDevice));
    double t1 = now_us();
    vector_add<<<1, n>>>(d_a, d_b, d_c);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    double t2 = now_us();
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    double t3 = now_us();

    int wrong = count_wrong(h_a, h_b, h_c);
    printf("a kernel with device pointers: %d of %d elements are wrong\n", wrong, n);
    printf("measured: two copies down %.1f us, kernel %.1f us, one copy up %.1f us\n", t1 - t0,
           t2 - t1, t3 - t2);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    free(h_c);
    return wrong ? 1 : 0;
}

int main(void) {
    /* fork() makes a second process, the child. It has to come before the first call to CUDA: a
     * child cannot use what its parent has begun with the device. */
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) exit(use_host_pointers());
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
    if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);

    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    printf("the other process still has its device: %s\n", device.name);
    return use_device_pointers();
}

/* Exercises (solutions/02_device_memory.cu):
 *
 * 1. Add in place, a = a + b, so that two pieces of device memory are enough instead of three.
 * 2. Keep a second copy of a on the device (cudaMemcpyDeviceToDevice), fill a itself with zeros
 *    (cudaMemset), and copy both up to see that only one of them is empty. */
