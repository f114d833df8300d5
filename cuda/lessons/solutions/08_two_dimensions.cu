/* Solutions of lesson 08.
 *
 *     nvcc -O3 -arch=native 08_two_dimensions.cu -o 08_two_dimensions && ./08_two_dimensions
 *
 * 1. In add_to_rows() all threads of a column read the same v[col]; the device's cache keeps it.
 * 2. A transposition reads along rows and writes along columns, or the other way round: one of the
 *    two is always the slow one. Coalesced writes are usually the better choice, because a cache
 *    can keep what a scattered read fetched too much of until it is asked for. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static __global__ void add_to_rows(const float *a, const float *v, float *c, int64_t rows,
                                   int64_t cols) {
    int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && col < cols) c[row * cols + col] = a[row * cols + col] + v[col];
}

/* x along a row of a: coalesced reads. */
static __global__ void transpose_reading(const float *a, float *c, int64_t rows, int64_t cols) {
    int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && col < cols) c[col * rows + row] = a[row * cols + col];
}

/* x along a row of c, which is a column of a: coalesced writes. */
static __global__ void transpose_writing(const float *a, float *c, int64_t rows, int64_t cols) {
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t col = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) c[col * rows + row] = a[row * cols + col];
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static const int64_t rows = 2001, cols = 1003;
static const size_t bytes = rows * cols * sizeof(float);

static unsigned blocks_for(int64_t n) { return (unsigned)((n + 31) / 32); }

static int64_t count_wrong(const float *a, const float *v, const float *c, int transposed) {
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t col = 0; col < cols; col++) {
            float got = transposed ? c[col * rows + row] : c[row * cols + col];
            float expected = a[row * cols + col] + (transposed ? 0 : v[col]);
            wrong += !(fabsf(got - expected) <= 0);
        }
    }
    return wrong;
}

typedef void (*transpose_kernel)(const float *, float *, int64_t, int64_t);

/* The time in milliseconds of the second launch (the first one also loads the kernel). */
static float run(transpose_kernel kernel, dim3 grid, const float *a, float *c) {
    float ms = 0;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaMemset(c, 0, bytes));
    for (int launch = 0; launch < 2; launch++) {
        CHECK(cudaEventRecord(start));
        kernel<<<grid, dim3(32, 32)>>>(a, c, rows, cols);
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
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    float *h_a = (float *)malloc(bytes), *h_c = (float *)malloc(bytes), *d_a, *d_v, *d_c;
    if (!h_a || !h_c) return 1;
    for (int64_t i = 0; i < rows * cols; i++) h_a[i] = (float)(i % 1009) + 1;
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_v, cols * sizeof(float)));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_v, h_a, cols * sizeof(float), cudaMemcpyHostToDevice)); /* v: row 0 of a */

    dim3 grid(blocks_for(cols), blocks_for(rows)), other_grid(blocks_for(rows), blocks_for(cols));
    add_to_rows<<<grid, dim3(32, 32)>>>(d_a, d_v, d_c, rows, cols);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    int64_t wrong = count_wrong(h_a, h_a, h_c, 0);
    printf("1. a vector added to every row: %lld elements wrong\n", (long long)wrong);

    float reading_ms = run(transpose_reading, grid, d_a, d_c);
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    wrong += count_wrong(h_a, h_a, h_c, 1);
    float writing_ms = run(transpose_writing, other_grid, d_a, d_c);
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    wrong += count_wrong(h_a, h_a, h_c, 1);
    printf("2. transposed with coalesced reads %.3f ms, with coalesced writes %.3f ms\n",
           reading_ms, writing_ms);
    printf("%lld elements wrong in all\n", (long long)wrong);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_v));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_c);
    return wrong ? 1 : 0;
}
