/* The two ceilings of a GPU, which `bench article` draws above what it measured: the bandwidth of
 * its memory (the triad of the STREAM benchmark) and its multiply-adds in float32.
 *
 * ceilings.py compiles this with nvcc when it needs it. Both kernels run on the stream they are
 * given, on memory of the caller. Functions return the cudaError_t, 0 for success. */
#include <cuda_runtime.h>
#include <stdint.h>

namespace {

const int chains = 8; /* independent sums in a thread, to hide the latency of a multiply-add */

/* a = b + scalar * c: each thread moves 16 bytes of each array, which is as fast as it gets. */
__global__ void triad_kernel(int64_t pairs, double2 *a, const double2 *b, const double2 *c,
                             double scalar) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    double2 x = b[i], y = c[i];
    a[i] = make_double2(x.x + scalar * y.x, x.y + scalar * y.y);
}

/* Each thread writes the mean of its chains after `steps` steps x = x / 2 + 1, which has to be 2. */
__global__ void multiply_add_kernel(int steps, float *result) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    float x[chains], sum = 0;
    for (int chain = 0; chain < chains; chain++) x[chain] = static_cast<float>(i + chain);
#pragma unroll 16
    for (int step = 0; step < steps; step++) {
#pragma unroll
        for (int chain = 0; chain < chains; chain++) x[chain] = fmaf(x[chain], 0.5f, 1.0f);
    }
    for (int chain = 0; chain < chains; chain++) sum += x[chain];
    result[i] = sum / chains;
}

} // namespace

extern "C" int ceilings_open(int device) { return cudaSetDevice(device); }

/* Arrays of n doubles on the device, n even. */
extern "C" int ceilings_triad(void *stream, int64_t n, double *a, const double *b, const double *c,
                              double scalar) {
    const int threads = 1024;
    int64_t pairs = n / 2;
    void *arguments[] = {&pairs, &a, &b, &c, &scalar};
    dim3 grid(static_cast<unsigned>((pairs + threads - 1) / threads));
    return cudaLaunchKernel((const void *)triad_kernel, grid, dim3(threads), arguments, 0,
                            static_cast<cudaStream_t>(stream));
}

/* Operations of a step in one thread: a multiplication and an addition in each chain. */
extern "C" int ceilings_multiply_add_work(void) { return 2 * chains; }

/* result: blocks * threads floats on the device. */
extern "C" int ceilings_multiply_add(void *stream, int blocks, int threads, int steps,
                                     float *result) {
    void *arguments[] = {&steps, &result};
    return cudaLaunchKernel((const void *)multiply_add_kernel, dim3(blocks), dim3(threads),
                            arguments, 0, static_cast<cudaStream_t>(stream));
}
