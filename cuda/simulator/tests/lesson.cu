/* A program for translate.py, with all that makes launches hard to find; nvcc compiles it as well.
 *
 * Ends with 0 when every kernel did its work, with 1 when one did not. */
#include <cuda_runtime.h>

#include <cstdio>

// a<<<1, 2>>>(in a comment) is left alone
namespace lesson {
template <class T, int N> __global__ void fill(T *x, T value) {
    x[blockIdx.x * N + threadIdx.x] = value;
}
} // namespace lesson

__global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

__global__ void reverse(float *x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x] + threadIdx.x;
    __syncthreads();
    x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
    if (threadIdx.x == 0) printf("from block %d: <<<not a launch>>>\n", (int)blockIdx.x);
}

__global__ void nothing() {}

#define CHECK(call)                                                               \
    do {                                                                          \
        cudaError_t error = (call);                                               \
        if (error != cudaSuccess) {                                               \
            printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            return 1;                                                             \
        }                                                                         \
    } while (0)
#define FILL(pointer, value) lesson::fill<float, 128><<<8, 128>>>(pointer, value)

int main() {
    int n = 1000, failed = 0;
    float *a, *b, *c, h[1024];
    CHECK(cudaMalloc(&a, sizeof h));
    CHECK(cudaMalloc(&b, sizeof h));
    CHECK(cudaMalloc(&c, sizeof h));
    FILL(a, 1.0f);
    /* clang-format off */
    lesson::fill<float, 128>
        <<<dim3(1024 >> 7), dim3{128, 1, 1}, 0,
           cudaStreamLegacy>>>(b, 2.0f);
    /* clang-format on */
    cudaEvent_t start, stop;
    float ms = -1;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    add<<<(n + 255) / 256, 256>>>(a, b, c, n);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    if (n)
        reverse<<<1, 256, 256 * sizeof(float)>>>(c);
    else
        nothing<<<1, 1>>>();
    nothing<<<1, 1>>>();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(h, c, n * sizeof(float), cudaMemcpyDeviceToHost));
    failed |= h[0] != 258 || h[255] != 3 || h[256] != 3 || h[999] != 3 || ms < 0;
    add<<<1, 2048>>>(a, b, c, n);
    failed |= cudaGetLastError() != cudaErrorInvalidConfiguration;
    printf("a translated program: %s\n", failed ? "wrong" : "right");
    return failed;
}
