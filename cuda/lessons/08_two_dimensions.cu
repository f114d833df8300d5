/* Lesson 08: two dimensions, and why row = threadIdx.x is the slow order.
 *
 * For a matrix it is convenient to number threads and blocks by two numbers, x and y. In memory a
 * matrix is still one long row of numbers, one matrix row after the other:
 *
 *     element in row r and column k of a matrix with `cols` columns:  a[r * cols + k]
 *
 * The device does not run single threads but WARPS: 32 threads that run in step. A block is divided
 * into warps in the order of its threads, in which x runs fastest: first those with threadIdx.y 0,
 * by their threadIdx.x, then those with threadIdx.y 1, ... In a block that is 32 wide, a warp is 32
 * threads with the same y and x from 0 to 31.
 *
 * When a warp reads, the memory hands out pieces of 32 bytes (8 floats). If the 32 threads want 32
 * neighbours, 4 pieces are enough, or 5 if the first is not the first of its piece, and the reads
 * are called COALESCED. If they want numbers from 32 different rows, 32 pieces are fetched for one
 * number each. (A CACHE, a small fast memory for what was used last, as a CPU has one, keeps the
 * rest for a while, so that not all of it is lost.) So x, the number that runs fastest, has to run
 * along a row: column from x, row from y.
 *
 *     nvcc -O3 -arch=native 08_two_dimensions.cu -o 08_two_dimensions && ./08_two_dimensions
 *
 * What to look for: two kernels that do the same additions, right both times. Only the order of the
 * threads differs, and with it how many pieces a warp needs, which main() counts, and the time; how
 * much longer it takes depends on a card's cache. (The simulated card runs the threads of a block
 * one by one, x fastest, so there it is your CPU's cache that has a slow order.) */
#include <stdint.h>

/* Column from x, row from y: the threads of a warp read neighbours. */
static __global__ void matrix_add(const float *a, const float *b, float *c, int64_t rows,
                                  int64_t cols) {
    int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && col < cols) c[row * cols + col] = a[row * cols + col] + b[row * cols + col];
}

/* Row from x, column from y: the threads of a warp read from as many rows. */
static __global__ void matrix_add_slow(const float *a, const float *b, float *c, int64_t rows,
                                       int64_t cols) {
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t col = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) c[row * cols + col] = a[row * cols + col] + b[row * cols + col];
}

#ifndef PVG_LESSON_KERNELS /* pyvecgpu's library includes the kernels above, without what follows */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* Rows and columns of the large matrices, no multiples of a block's 32. */
static const int64_t max_rows = 3001, max_cols = 4003;
static const size_t bytes = max_rows * max_cols * sizeof(float);

static int64_t blocks_for(int64_t n) { return (n + 31) / 32; }

static int64_t count_wrong(const float *a, const float *b, const float *c, int64_t n) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += !(fabsf(c[i] - (a[i] + b[i])) <= 0);
    return wrong;
}

/* How many pieces of 8 floats a warp of a 32 x 32 block wants from one matrix, on average. The 32
 * threads go along a row of the matrix, or down a column of it. */
static double pieces_of_a_warp(bool down, int64_t rows, int64_t cols) {
    int64_t pieces = 0, warps = 0, lines = down ? cols : rows, length = down ? rows : cols;
    for (int64_t line = 0; line < lines; line++) {
        for (int64_t first = 0; first < length; first += 32, warps++) {
            int64_t last_piece = -1;
            for (int64_t at = first; at < first + 32 && at < length; at++) {
                int64_t piece = (down ? at * cols + line : line * cols + at) / 8;
                pieces += piece != last_piece;
                last_piece = piece;
            }
        }
    }
    return (double)pieces / (double)warps;
}

/* A kernel can be an argument, as functions can in C. */
typedef void (*matrix_kernel)(const float *, const float *, float *, int64_t, int64_t);

/* Launches one of the kernels; returns the time in milliseconds of the second launch (the first one
 * also loads the kernel). A DIM3 is a struct of three sizes, x, y and z: of a grid, counted in
 * blocks, or of a block, counted in threads. `dim3 d(30, 20)` declares one with x = 30, y = 20 and,
 * as it is left out, z = 1; and a plain number, as in the lessons so far, is one with y = z = 1. */
static float run(matrix_kernel kernel, dim3 grid, dim3 block, const float *a, const float *b,
                 float *c, int64_t rows, int64_t cols) {
    float ms = 0;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaMemset(c, 0, bytes));
    for (int launch = 0; launch < 2; launch++) {
        CHECK(cudaEventRecord(start));
        kernel<<<grid, block>>>(a, b, c, rows, cols);
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
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    printf("device: %s\n", device.name);

    float *h_a = (float *)malloc(bytes), *h_b = (float *)malloc(bytes);
    float *h_c = (float *)malloc(bytes), *d_a, *d_b, *d_c;
    if (!h_a || !h_b || !h_c) return 1;
    for (int64_t i = 0; i < max_rows * max_cols; i++) {
        h_a[i] = (float)(i % 1009) + 1;
        h_b[i] = (float)(i % 17);
    }
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_b, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, h_b, bytes, cudaMemcpyHostToDevice));

    /* One block: 20 rows x 30 columns are 600 threads, which a block can have. x is the column, so
     * the block is 30 wide and 20 high. */
    dim3 one_block(30, 20);
    run(matrix_add, 1, one_block, d_a, d_b, d_c, 20, 30);
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    int64_t wrong = count_wrong(h_a, h_b, h_c, 20 * 30);
    printf("one block:   %4d x %4d, %lld elements wrong\n", 20, 30, (long long)wrong);

    /* Many blocks of 32 x 32 threads. At the right and lower edges some threads are idle. */
    const int64_t rows = max_rows, cols = max_cols;
    dim3 block(32, 32), grid((unsigned)blocks_for(cols), (unsigned)blocks_for(rows));
    float ms = run(matrix_add, grid, block, d_a, d_b, d_c, rows, cols);
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    int64_t many_wrong = count_wrong(h_a, h_b, h_c, rows * cols);
    printf("many blocks: %lld x %lld, grid of %u x %u, %lld elements wrong\n", (long long)rows,
           (long long)cols, grid.x, grid.y, (long long)many_wrong);

    /* The slow order: x counts rows, so the grid's numbers change places too. */
    dim3 slow_grid((unsigned)blocks_for(rows), (unsigned)blocks_for(cols));
    float slow_ms = run(matrix_add_slow, slow_grid, block, d_a, d_b, d_c, rows, cols);
    CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
    int64_t slow_wrong = count_wrong(h_a, h_b, h_c, rows * cols);
    printf("slow order:  %lld elements wrong\n", (long long)slow_wrong);

    printf("pieces of 32 bytes for a warp, on average: row from y %.1f, row from x %.1f\n",
           pieces_of_a_warp(false, rows, cols), pieces_of_a_warp(true, rows, cols));
    double gigabytes = 3e-9 * (double)bytes; /* read a and b, write c */
    printf("measured: row from y %.3f ms (%.1f GB/s), row from x %.3f ms (%.1f GB/s)\n", ms,
           1e3 * gigabytes / ms, slow_ms, 1e3 * gigabytes / slow_ms);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    free(h_c);
    return wrong + many_wrong + slow_wrong ? 1 : 0;
}

/* Exercises (solutions/08_two_dimensions.cu):
 *
 * 1. Add a vector to every row of a matrix: c[row][col] = a[row][col] + v[col]. (A layer of a
 *    neural network does that with its bias.)
 * 2. Transpose a matrix: c[col][row] = a[row][col]. Can reads and writes both be coalesced? Measure
 *    which of the two is the better one to have. (Lesson 11's tiles give both.) */

#endif
