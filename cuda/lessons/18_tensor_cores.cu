/* Lesson 18: tensor cores, which multiply matrices and nothing else.
 *
 *     nvcc -O3 -arch=native 18_tensor_cores.cu -o 18_tensor_cores && ./18_tensor_cores
 *
 * So far each thread multiplied two numbers at a time. A TENSOR CORE is a circuit beside the
 * ordinary ones ("CUDA cores") that multiplies two small matrices at a time and adds the result to
 * a third: d = a b + c, here 16 x 16 each. That is 4096 multiplications for one or two instructions
 * of a whole warp, all 32 threads together. The matrices lie spread over the registers of the
 * warp's threads; which thread has which element is the compiler's secret, and such a spread matrix
 * is called a FRAGMENT. All a program can do is fill, load, multiply and store it.
 *
 * The price is precision. a and b are of type half: floating point in 2 bytes, with 3 decimals and
 * no number above 65504. Products and sums are made in float. Networks learn well with that.
 *
 * What to look for: TFLOP/s (10^12 operations a second). The first kernel on tensor cores waits for
 * memory most of the time, as lesson 11's naive one did; fast arithmetic makes feeding it the
 * problem. So the second one takes lesson 11's cure, tiles in shared memory. Libraries get another
 * factor of 2 to 4 out of newer cards, by copies that run on their own during the arithmetic.
 *
 * Ends with 77 on cards before Volta, and on the simulated card: neither has tensor cores. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef __CUDACC__ /* the compiler is not nvcc, so the card is the simulated one */

int main(void) {
    printf("the simulated card has no tensor cores\n");
    return 77;
}

#else

#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

/* The edge of a fragment, and its three kinds: part of a, part of b, sum. A fragment of a or b also
 * has to know how the matrix lies in memory; both of ours are row-major. (Here C is not enough:
 * wmma::fragment is a type, of the header's namespace nvcuda, that has parameters, in < >.) */
enum { EDGE = 16, WARP = 32 };
typedef wmma::fragment<wmma::matrix_a, EDGE, EDGE, EDGE, half, wmma::row_major> FragmentA;
typedef wmma::fragment<wmma::matrix_b, EDGE, EDGE, EDGE, half, wmma::row_major> FragmentB;
typedef wmma::fragment<wmma::accumulator, EDGE, EDGE, EDGE, float> FragmentC;

/* For comparison: lesson 11's matmul_tiled, without tensor cores, on the same halves. m, n and k
 * are multiples of 128 in this lesson, so no kernel needs to look out for an edge. */
enum { TILE = 32 };
static __global__ void matmul_cuda_cores(const half *a, const half *b, float *c, int n, int k) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        a_tile[y][x] = __half2float(a[(size_t)row * k + start + x]);
        b_tile[y][x] = __half2float(b[(size_t)(start + y) * n + col]);
        __syncthreads();
        for (int p = 0; p < TILE; p++) sum += a_tile[y][p] * b_tile[p][x];
        __syncthreads();
    }
    c[(size_t)row * n + col] = sum;
}

/* One warp makes 16 x 16 elements of c. Each step loads a fragment of a and one of b from device
 * memory and multiplies them onto the sum. All of these functions are called by the 32 threads
 * together ("sync"). Their last numbers say how far it is from one row to the next in memory.
 * Launch: block WARP, grid (n / EDGE, m / EDGE). */
static __global__ void matmul_fragments(const half *a, const half *b, float *c, int n, int k) {
    size_t row = blockIdx.y * EDGE, col = blockIdx.x * EDGE;
    FragmentA a_part;
    FragmentB b_part;
    FragmentC sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int p = 0; p < k; p += EDGE) {
        wmma::load_matrix_sync(a_part, a + row * k + p, k);
        wmma::load_matrix_sync(b_part, b + (size_t)p * n + col, n);
        wmma::mma_sync(sum, a_part, b_part, sum);
    }
    wmma::store_matrix_sync(c + row * n + col, sum, n, wmma::mem_row_major);
}

/* A block of 8 warps makes SQUARE x SQUARE elements of c, going along k in steps of DEPTH. The
 * warps lie 4 down and 2 across, and each makes 32 x 64 elements: 2 fragments down and 4 across. So
 * a fragment of a that is loaded once is used 4 times, and one of b twice. */
enum { SQUARE = 128, DEPTH = 32, DOWN = 2, ACROSS = 4, THREADS = 256 };

/* A row of a tile is PAD halves longer than needed. Shared memory is made of 32 banks, 4 bytes
 * wide, which work side by side; without the pad, the rows of a fragment would begin in the same
 * banks and have to wait for each other. */
enum { PAD = 8, A_ROW = DEPTH + PAD, B_ROW = SQUARE + PAD };

/* Copies rows x cols halves to shared memory, 8 of them at a time: an int4 is 4 ints, 16 bytes,
 * which a thread moves in one go. `from` and its rows begin at multiples of 16 bytes. */
static __device__ void copy_tile(half *to, int to_row, const half *from, int from_row, int rows,
                                 int cols) {
    int pieces = cols / 8;
    for (int i = threadIdx.x; i < rows * pieces; i += THREADS) {
        int row = i / pieces, col = i % pieces * 8;
        *(int4 *)(to + row * to_row + col) = *(const int4 *)(from + (size_t)row * from_row + col);
    }
}

/* Launch: block THREADS, grid (n / SQUARE, m / SQUARE). */
static __global__ void matmul_tensor_tiles(const half *a, const half *b, float *c, int n, int k) {
    __shared__ __align__(32) half a_tile[SQUARE * A_ROW], b_tile[DEPTH * B_ROW];
    size_t first_row = blockIdx.y * SQUARE, first_col = blockIdx.x * SQUARE;
    int warp = threadIdx.x / WARP;
    int warp_row = warp / 2 * DOWN * EDGE, warp_col = warp % 2 * ACROSS * EDGE;
    FragmentC sum[DOWN][ACROSS];
    for (int i = 0; i < DOWN; i++) {
        for (int j = 0; j < ACROSS; j++) wmma::fill_fragment(sum[i][j], 0.0f);
    }
    for (int start = 0; start < k; start += DEPTH) {
        copy_tile(a_tile, A_ROW, a + first_row * k + start, k, SQUARE, DEPTH);
        copy_tile(b_tile, B_ROW, b + (size_t)start * n + first_col, n, DEPTH, SQUARE);
        __syncthreads();
        for (int p = 0; p < DEPTH; p += EDGE) {
            FragmentA a_part[DOWN];
            FragmentB b_part;
            for (int i = 0; i < DOWN; i++) {
                const half *rows = a_tile + (warp_row + i * EDGE) * A_ROW;
                wmma::load_matrix_sync(a_part[i], rows + p, A_ROW);
            }
            for (int j = 0; j < ACROSS; j++) {
                const half *rows = b_tile + p * B_ROW;
                wmma::load_matrix_sync(b_part, rows + warp_col + j * EDGE, B_ROW);
                for (int i = 0; i < DOWN; i++) {
                    wmma::mma_sync(sum[i][j], a_part[i], b_part, sum[i][j]);
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < DOWN; i++) {
        for (int j = 0; j < ACROSS; j++) {
            size_t row = first_row + warp_row + i * EDGE, col = first_col + warp_col + j * EDGE;
            wmma::store_matrix_sync(c + row * n + col, sum[i][j], n, wmma::mem_row_major);
        }
    }
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { REPEATS = 10, M = 2048, N = 2048, K = 1024 };
typedef void Kernel(const half *a, const half *b, float *c, int n, int k);

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* The C loop, on floats: the CPU has no half. Rows first, as in lesson 11. */
static void matmul_on_host(const float *a, const float *b, float *c) {
    for (int row = 0; row < M; row++) {
        float *c_row = c + (size_t)row * N;
        for (int col = 0; col < N; col++) c_row[col] = 0;
        for (int p = 0; p < K; p++) {
            float factor = a[(size_t)row * K + p];
            const float *b_row = b + (size_t)p * N;
            for (int col = 0; col < N; col++) c_row[col] += factor * b_row[col];
        }
    }
}

/* Random whole numbers from -4 to 4, as floats on the host and as halves on the device. A half
 * holds them exactly and a float their sums, so the kernels have to agree with the C loop
 * exactly. */
static float *new_matrix(size_t count, unsigned state, half **d_copy) {
    float *x = (float *)malloc(count * sizeof(float));
    half *halves = (half *)malloc(count * sizeof(half));
    if (!x || !halves) exit(1);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int)(state >> 16) % 9 - 4);
        halves[i] = __float2half(x[i]);
    }
    CHECK(cudaMalloc(d_copy, count * sizeof(half)));
    CHECK(cudaMemcpy(*d_copy, halves, count * sizeof(half), cudaMemcpyHostToDevice));
    free(halves);
    return x;
}

/* Runs a kernel, prints its speed and returns how many elements are wrong. */
static size_t try_kernel(const char *name, Kernel *kernel, dim3 grid, dim3 block, const half *d_a,
                         const half *d_b, float *d_c, float *h_c, const float *expected,
                         double *us) {
    size_t count = (size_t)M * N, wrong = 0;
    CHECK(cudaMemset(d_c, 0xFF, count * sizeof(float))); /* NaN: what is left out is found */
    kernel<<<grid, block>>>(d_a, d_b, d_c, N, K);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_c, d_c, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) wrong += !(h_c[i] - expected[i] == 0);
    double start = now_us();
    for (int i = 0; i < REPEATS; i++) {
        kernel<<<grid, block>>>(d_a, d_b, d_c, N, K);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
    *us = (now_us() - start) / REPEATS;
    printf("%-28s %8.1f us %7.1f TFLOP/s, %zu elements wrong\n", name, *us, 2e-6 * M * N * K / *us,
           wrong);
    return wrong;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    if (device.major < 7) {
        printf("%s has no tensor cores\n", device.name);
        return 77;
    }
    printf("device: %s; c (%d x %d) = a b over %d; 0.1 is %.7f in half\n", device.name, M, N, K,
           __half2float(__float2half(0.1f)));

    size_t c_bytes = (size_t)M * N * sizeof(float);
    half *d_a, *d_b;
    float *h_a = new_matrix((size_t)M * K, 1, &d_a), *h_b = new_matrix((size_t)K * N, 2, &d_b);
    float *h_c = (float *)malloc(c_bytes), *expected = (float *)malloc(c_bytes), *d_c;
    if (!h_c || !expected) return 1;
    CHECK(cudaMalloc(&d_c, c_bytes));
    double start = now_us(), cores_us, fragments_us, tiles_us;
    matmul_on_host(h_a, h_b, expected);
    printf("%-28s %8.0f us\n", "C loop", now_us() - start);

    size_t wrong = try_kernel("CUDA cores, tiled", matmul_cuda_cores, dim3(N / TILE, M / TILE),
                              dim3(TILE, TILE), d_a, d_b, d_c, h_c, expected, &cores_us);
    wrong += try_kernel("tensor cores, from memory", matmul_fragments, dim3(N / EDGE, M / EDGE),
                        dim3(WARP), d_a, d_b, d_c, h_c, expected, &fragments_us);
    wrong += try_kernel("tensor cores, tiled", matmul_tensor_tiles, dim3(N / SQUARE, M / SQUARE),
                        dim3(THREADS), d_a, d_b, d_c, h_c, expected, &tiles_us);
    printf("measured: tensor cores with tiles are %.1f times as fast as CUDA cores with tiles\n",
           cores_us / tiles_us);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    free(h_c);
    free(expected);
    return wrong ? 1 : 0;
}

/* Exercises (solutions/18_tensor_cores.cu; both need a GPU):
 *
 * 1. Let matmul_fragments multiply matrices of any size: copy a fragment's numbers to shared memory
 *    first, with zeros beyond the edge, and load it from there. How do the results get to c?
 * 2. From Ampere on (device.major 8) tensor cores also take bfloat16 (type __nv_bfloat16 of
 *    cuda_bf16.h): as large as a float may be, and 2 decimals. Write matmul_fragments for it, and
 *    compare the errors of half and bfloat16 on random fractions. */

#endif
