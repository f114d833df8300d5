/* Solutions of lesson 18.
 *
 *     nvcc -O3 -arch=native 18_tensor_cores.cu -o 18_tensor_cores && ./18_tensor_cores
 *
 * 1. The warp copies 16 x 16 numbers of a and of b to shared memory, zeros where there are none,
 *    and loads the fragments from there. The sum takes the same way back: it is stored to shared
 *    memory, and from there each thread writes those elements to c that exist.
 * 2. The kernel is a template: T is half or __nv_bfloat16, and nothing else changes. A half has 11
 *    binary digits and a bfloat16 has 8, so its errors are about 8 times as large. In return it
 *    goes up to 3e38, like a float, and a half only to 65504. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef __CUDACC__ /* the compiler is not nvcc, so the card is the simulated one */

int main(void) {
    printf("the simulated card has no tensor cores\n");
    return 77;
}

#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

enum { EDGE = 16, WARP = 32 };

/* 16 x 16 numbers from row `row` and column `col` on, of a matrix of rows x cols. */
template <class T>
static __device__ void copy_part(T *to, const float *from, int row, int col, int rows, int cols) {
    for (int i = threadIdx.x; i < EDGE * EDGE; i += WARP) {
        int r = row + i / EDGE, c = col + i % EDGE;
        to[i] = (T)(r < rows && c < cols ? from[(size_t)r * cols + c] : 0.0f);
    }
}

/* c = a b for any sizes. The operands are floats in memory and become T on the way.
 * Launch: block WARP, grid (n / EDGE, m / EDGE), rounded up. */
template <class T>
static __device__ void multiply(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ __align__(32) T a_part[EDGE * EDGE], b_part[EDGE * EDGE];
    __shared__ __align__(32) float c_part[EDGE * EDGE];
    int row = blockIdx.y * EDGE, col = blockIdx.x * EDGE;
    wmma::fragment<wmma::matrix_a, EDGE, EDGE, EDGE, T, wmma::row_major> a_fragment;
    wmma::fragment<wmma::matrix_b, EDGE, EDGE, EDGE, T, wmma::row_major> b_fragment;
    wmma::fragment<wmma::accumulator, EDGE, EDGE, EDGE, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int p = 0; p < k; p += EDGE) {
        copy_part(a_part, a, row, p, m, k);
        copy_part(b_part, b, p, col, k, n);
        __syncthreads(); /* the block is a single warp, but the rule is the same */
        wmma::load_matrix_sync(a_fragment, a_part, EDGE);
        wmma::load_matrix_sync(b_fragment, b_part, EDGE);
        wmma::mma_sync(sum, a_fragment, b_fragment, sum);
        __syncthreads();
    }
    wmma::store_matrix_sync(c_part, sum, EDGE, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < EDGE * EDGE; i += WARP) {
        int r = row + i / EDGE, s = col + i % EDGE;
        if (r < m && s < n) c[(size_t)r * n + s] = c_part[i];
    }
}

static __global__ void matmul_half(const float *a, const float *b, float *c, int m, int n, int k) {
    multiply<half>(a, b, c, m, n, k);
}

/* nvcc compiles this for each architecture that it is told; __CUDA_ARCH__ says which. Before Ampere
 * there is nothing to compile. */
static __global__ void matmul_bfloat16(const float *a, const float *b, float *c, int m, int n,
                                       int k) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    multiply<__nv_bfloat16>(a, b, c, m, n, k);
#endif
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { M = 70, N = 45, K = 130 };

/* Random numbers between -largest and largest. */
static void fill(float *x, size_t count, unsigned state, float largest) {
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) / (1 << 23) - 1) * largest;
    }
}

/* The largest difference from the C loop; infinite if one is NaN. */
static double largest_error(const float *a, const float *b, const float *d_c) {
    static float c[M * N];
    double largest = 0;
    CHECK(cudaMemcpy(c, d_c, sizeof c, cudaMemcpyDeviceToHost));
    for (int i = 0; i < M * N; i++) {
        double sum = 0;
        for (int p = 0; p < K; p++) sum += (double)a[i / N * K + p] * b[p * N + i % N];
        double error = fabs(c[i] - sum);
        if (!(error <= largest)) largest = isnan(error) ? INFINITY : error;
    }
    return largest;
}

static void round_all(float *x, int count) {
    for (int i = 0; i < count; i++) x[i] = rintf(4 * x[i]);
}

/* New device memory with a copy of host memory, or with NaN (all bits one) for NULL. */
static float *new_device_array(size_t count, const float *h_from) {
    float *x;
    CHECK(cudaMalloc(&x, count * sizeof(float)));
    CHECK(cudaMemset(x, 0xFF, count * sizeof(float)));
    if (h_from) CHECK(cudaMemcpy(x, h_from, count * sizeof(float), cudaMemcpyHostToDevice));
    return x;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 7) {
        printf("no CUDA device with tensor cores\n");
        return 77;
    }
    static float h_a[M * K], h_b[K * N];
    fill(h_a, M * K, 1, 1);
    fill(h_b, K * N, 2, 1);
    float *d_a = new_device_array(M * K, h_a), *d_b = new_device_array(K * N, h_b);
    float *d_c = new_device_array(M * N, NULL);
    dim3 grid((N + EDGE - 1) / EDGE, (M + EDGE - 1) / EDGE);

    /* Fractions: a half is right to 2^-11 and a bfloat16 to 2^-8 of a number, and 130 products with
     * such errors are added, of both signs. */
    matmul_half<<<grid, WARP>>>(d_a, d_b, d_c, M, N, K);
    CHECK(cudaGetLastError());
    double half_error = largest_error(h_a, h_b, d_c);
    bool right = half_error <= 130.0 / 2048;
    printf("2. on fractions the largest error with half is %.1e\n", half_error);
    if (device.major >= 8) {
        CHECK(cudaMemset(d_c, 0xFF, M * N * sizeof(float)));
        matmul_bfloat16<<<grid, WARP>>>(d_a, d_b, d_c, M, N, K);
        CHECK(cudaGetLastError());
        double bfloat16_error = largest_error(h_a, h_b, d_c);
        right = right && bfloat16_error <= 130.0 / 256 && bfloat16_error > half_error;
        printf("   with bfloat16 it is %.1e, %.1f times as large\n", bfloat16_error,
               bfloat16_error / half_error);
    }

    /* Whole numbers: here the kernel has to be exact, edges and all. */
    round_all(h_a, M * K);
    round_all(h_b, K * N);
    CHECK(cudaMemcpy(d_a, h_a, sizeof h_a, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, h_b, sizeof h_b, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_c, 0xFF, M * N * sizeof(float)));
    matmul_half<<<grid, WARP>>>(d_a, d_b, d_c, M, N, K);
    CHECK(cudaGetLastError());
    double exact_error = largest_error(h_a, h_b, d_c);
    right = right && exact_error <= 0;
    printf("1. %d x %d times %d x %d in whole numbers: largest error %.1e\n", M, K, K, N,
           exact_error);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    return right ? 0 : 1;
}

#endif
