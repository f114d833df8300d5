/* Lesson 11: one matrix product, four kernels, each faster than the one before.
 *
 *     nvcc -O3 -arch=native 11_matrix_product.cu -o 11_matrix_product && ./11_matrix_product
 *
 * c = a b: a has m rows and k columns, b has k rows and n columns, c has m rows and n columns. The
 * element of c in row r and column s is the sum, over p = 0 ... k-1, of a[r][p] * b[p][s]. All
 * three are row-major, as C arrays are: a[r][p] is a[r * k + p].
 *
 * Every kernel does the same 2 m n k operations. What differs is how often a number is fetched from
 * device memory, and in which order neighbouring threads ask for it. That is the whole lesson: the
 * arithmetic was never the problem.
 *
 * What to look for: the GFLOP/s (10^9 operations a second), which grow from line to line on a GPU.
 * How large the steps are differs from card to card: a large cache does by itself a part of what
 * the later kernels do on purpose. ./11_matrix_product 3000 takes another size. The simulated card
 * has no memory of its own that could be slow, so its times say nothing about the kernels. */

/* ---- The kernels ----
 *
 * The sizes may be any: the last blocks hang over the edge of c, hence the tests in the kernels. An
 * index is computed in size_t, because m * k may be more than an int can hold. */

/* The edge of a block of threads, and of a tile (see matmul_tiled). */
enum { TILE = 32 };

/* One thread per element of c. threadIdx.x counts rows: lesson 08's slow order. The 32 threads of a
 * warp ask for 32 rows of a, k numbers apart, so for 32 separate pieces of memory each time.
 * Launch: block (TILE, TILE), grid (m / TILE, n / TILE), rounded up. */
static __global__ void matmul_naive(const float *a, const float *b, float *c, int m, int n, int k) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0;
    for (int p = 0; p < k; p++) sum += a[(size_t)row * k + p] * b[(size_t)p * n + col];
    c[(size_t)row * n + col] = sum;
}

/* The same with x and y exchanged. Now a warp asks for 32 neighbours in a row of b, which come
 * together ("coalesced": grown together), and for one number of a, which serves all 32.
 * Launch: block (TILE, TILE), grid (n / TILE, m / TILE), rounded up. */
static __global__ void matmul_coalesced(const float *a, const float *b, float *c, int m, int n,
                                        int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || col >= n) return;
    float sum = 0;
    for (int p = 0; p < k; p++) sum += a[(size_t)row * k + p] * b[(size_t)p * n + col];
    c[(size_t)row * n + col] = sum;
}

/* The threads in a row of a block all need the same row of a, those in a column the same column of
 * b. So the block fetches a square TILE x TILE of each, a TILE, into SHARED MEMORY: a few dozen
 * kilobytes on the chip, much nearer than device memory. A variable marked __shared__ exists once
 * for each block, and all threads of the block see it.
 *
 *                                [  ...   ]
 *                                [ b_tile ]   `start` goes along a row of tiles of a and down a
 *                                [  ...   ]   column of tiles of b. At each stop the block adds
 *     [ ... ][ a_tile ][ ... ]   [ c tile ]   a_tile times b_tile to its square of c.
 *
 * Each thread fetches one number of each tile, and each number fetched then serves TILE threads. So
 * device memory is asked TILE times less.
 *
 * (Shared memory is 32 BANKS that work side by side; neighbouring numbers are in neighbouring
 * banks, number i in bank i % 32. A warp whose threads read from 32 banks, or all the same number,
 * is served at once. Threads that want different numbers of one bank wait for each other.)
 *
 * __syncthreads() is the meeting point of a block: nobody goes on before everybody is there. The
 * first one: do not read the tiles before they are full. The second: do not overwrite them while
 * somebody still reads. All threads must reach it, so threads outside c stay and fetch zeros. (The
 * third value in <<< >>> is for shared memory whose size is known at the launch only; ours is not.)
 * Launch: block (TILE, TILE), grid (n / TILE, m / TILE), rounded up. */
static __global__ void matmul_tiled(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        bool in_a = row < m && start + x < k, in_b = start + y < k && col < n;
        a_tile[y][x] = in_a ? a[(size_t)row * k + start + x] : 0;
        b_tile[y][x] = in_b ? b[(size_t)(start + y) * n + col] : 0;
        __syncthreads();
        for (int p = 0; p < TILE; p++) sum += a_tile[y][p] * b_tile[p][x];
        __syncthreads();
    }
    if (row < m && col < n) c[(size_t)row * n + col] = sum;
}

/* The edge of the square of c that a block computes, how far along k a tile reaches, the edge of
 * the square of numbers that a thread computes, and the threads of a block in x and in y. */
enum { SQUARE = 64, DEPTH = 16, EACH = 4, ACROSS = SQUARE / EACH };

/* matmul_tiled reads two numbers from shared memory for each multiplication, and that is now what
 * it waits for. So let a thread compute EACH x EACH = 16 elements. For each p it copies 4 numbers
 * of a and 4 of b into its REGISTERS (where local variables live, nearer still) and does 16
 * multiplications with them: half a number for each, not two.
 *
 * A thread's rows are ACROSS apart, and its columns too. So neighbouring threads keep neighbouring
 * columns, and the reads and writes are coalesced as before. To fill the tiles, 1024 numbers each,
 * the 256 threads are counted from 0 to 255, and thread t fetches numbers t, t + 256, ...
 * Launch: block (ACROSS, ACROSS), grid (n / SQUARE, m / SQUARE), rounded up. */
static __global__ void matmul_registers(const float *a, const float *b, float *c, int m, int n,
                                        int k) {
    __shared__ float a_tile[SQUARE][DEPTH], b_tile[DEPTH][SQUARE];
    int x = threadIdx.x, y = threadIdx.y, thread = y * ACROSS + x;
    int first_row = blockIdx.y * SQUARE, first_col = blockIdx.x * SQUARE;
    float sum[EACH][EACH] = {};
    for (int start = 0; start < k; start += DEPTH) {
        for (int i = thread; i < SQUARE * DEPTH; i += ACROSS * ACROSS) {
            int row = first_row + i / DEPTH, p = start + i % DEPTH;
            a_tile[i / DEPTH][i % DEPTH] = row < m && p < k ? a[(size_t)row * k + p] : 0;
        }
        for (int i = thread; i < DEPTH * SQUARE; i += ACROSS * ACROSS) {
            int p = start + i / SQUARE, col = first_col + i % SQUARE;
            b_tile[i / SQUARE][i % SQUARE] = p < k && col < n ? b[(size_t)p * n + col] : 0;
        }
        __syncthreads();
        for (int p = 0; p < DEPTH; p++) {
            float a_part[EACH], b_part[EACH];
            for (int i = 0; i < EACH; i++) a_part[i] = a_tile[y + i * ACROSS][p];
            for (int j = 0; j < EACH; j++) b_part[j] = b_tile[p][x + j * ACROSS];
            for (int i = 0; i < EACH; i++) {
                for (int j = 0; j < EACH; j++) sum[i][j] += a_part[i] * b_part[j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++) {
        for (int j = 0; j < EACH; j++) {
            int row = first_row + y + i * ACROSS, col = first_col + x + j * ACROSS;
            if (row < m && col < n) c[(size_t)row * n + col] = sum[i][j];
        }
    }
}

#ifndef PVG_LESSON_KERNELS /* pyvecgpu's library includes the kernels above, without what follows */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* The type of the four kernels, and what their launches need to know. (Kernel is the type of a
 * function, so `Kernel *` is a pointer to one.) */
typedef void Kernel(const float *a, const float *b, float *c, int m, int n, int k);

typedef struct {
    const char *name;
    Kernel *kernel;
    int threads, square; /* a block has threads x threads threads and computes square x square */
    bool x_counts_rows;
} Version;

static const Version versions[] = {
    {"naive", matmul_naive, TILE, TILE, true},
    {"coalesced", matmul_coalesced, TILE, TILE, false},
    {"tiled", matmul_tiled, TILE, TILE, false},
    {"registers", matmul_registers, ACROSS, SQUARE, false},
};
enum { VERSIONS = sizeof versions / sizeof versions[0], REPEATS = 5 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* The C loop. In the order row, p, col the innermost loop walks along rows of b and c, as the CPU's
 * caches like it; in the order row, col, p it takes several times as long. */
static void matmul_on_host(const float *a, const float *b, float *c, int m, int n, int k) {
    for (int row = 0; row < m; row++) {
        float *c_row = c + (size_t)row * n;
        for (int col = 0; col < n; col++) c_row[col] = 0;
        for (int p = 0; p < k; p++) {
            float factor = a[(size_t)row * k + p];
            const float *b_row = b + (size_t)p * n;
            for (int col = 0; col < n; col++) c_row[col] += factor * b_row[col];
        }
    }
}

static void launch(const Version *v, const float *a, const float *b, float *c, int m, int n,
                   int k) {
    unsigned down = (m + v->square - 1) / v->square, across = (n + v->square - 1) / v->square;
    dim3 block(v->threads, v->threads);
    dim3 grid = v->x_counts_rows ? dim3(down, across) : dim3(across, down);
    Kernel *kernel = v->kernel;
    kernel<<<grid, block>>>(a, b, c, m, n, k);
    CHECK(cudaGetLastError());
}

/* Microseconds for one launch, the mean of several. */
static double time_of(const Version *v, const float *a, const float *b, float *c, int m, int n,
                      int k) {
    double start = now_us();
    for (int i = 0; i < REPEATS; i++) launch(v, a, b, c, m, n, k);
    CHECK(cudaDeviceSynchronize());
    return (now_us() - start) / REPEATS;
}

/* Whole numbers from -4 to 4, by a simple random generator. The sums of their products are whole
 * numbers too, and small ones, which a float holds exactly. So it does not matter in which order
 * they are added, and a right kernel agrees with the C loop to the last bit. */
static void fill(float *x, size_t count, unsigned state) {
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int)(state >> 16) % 9 - 4);
    }
}

static size_t count_wrong(const float *c, const float *expected, size_t count) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) wrong += !(c[i] - expected[i] == 0);
    return wrong;
}

int main(int argc, char **argv) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    /* A large card gets matrices that keep it busy. No size is a multiple of any tile. */
    int size = argc > 1 ? atoi(argv[1]) : device.multiProcessorCount > 4 ? 1500 : 150;
    if (size < 1) return 1;
    int m = size + 1, n = size + 2, k = size + 3;
    printf("device: %s; c (%d x %d) = a (%d x %d) times b (%d x %d)\n", device.name, m, n, m, k, k,
           n);

    size_t a_count = (size_t)m * k, b_count = (size_t)k * n, c_count = (size_t)m * n;
    float *h_a = (float *)malloc(a_count * sizeof(float));
    float *h_b = (float *)malloc(b_count * sizeof(float));
    float *h_c = (float *)malloc(c_count * sizeof(float));
    float *expected = (float *)malloc(c_count * sizeof(float));
    if (!h_a || !h_b || !h_c || !expected) return 1;
    fill(h_a, a_count, 1);
    fill(h_b, b_count, 2);
    float *d_a, *d_b, *d_c;
    CHECK(cudaMalloc(&d_a, a_count * sizeof(float)));
    CHECK(cudaMalloc(&d_b, b_count * sizeof(float)));
    CHECK(cudaMalloc(&d_c, c_count * sizeof(float)));
    CHECK(cudaMemcpy(d_a, h_a, a_count * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, h_b, b_count * sizeof(float), cudaMemcpyHostToDevice));

    double operations = 2.0 * m * n * k, us[VERSIONS];
    size_t wrong = 0;
    double start = now_us();
    matmul_on_host(h_a, h_b, expected, m, n, k);
    double loop_us = now_us() - start;
    printf("%-10s %12.1f us %10.2f GFLOP/s\n", "C loop", loop_us, operations / loop_us * 1e-3);
    for (int v = 0; v < VERSIONS; v++) {
        /* All bits one is NaN: an element that the kernel leaves out is found. */
        CHECK(cudaMemset(d_c, 0xFF, c_count * sizeof(float)));
        launch(&versions[v], d_a, d_b, d_c, m, n, k);
        CHECK(cudaMemcpy(h_c, d_c, c_count * sizeof(float), cudaMemcpyDeviceToHost));
        size_t wrong_here = count_wrong(h_c, expected, c_count);
        us[v] = time_of(&versions[v], d_a, d_b, d_c, m, n, k);
        printf("%-10s %12.1f us %10.2f GFLOP/s, %zu elements wrong\n", versions[v].name, us[v],
               operations / us[v] * 1e-3, wrong_here);
        wrong += wrong_here;
    }
    printf("measured: naive kernel %.1f us, registers %.1f us, that is %.1f times as fast\n", us[0],
           us[VERSIONS - 1], us[0] / us[VERSIONS - 1]);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    free(h_c);
    free(expected);
    return wrong ? 1 : 0;
}

/* Exercises (solutions/11_matrix_product.cu):
 *
 * 1. Neural networks often need a times b TRANSPOSED: b is stored with n rows and k columns, and
 *    c[r][s] is the sum of a[r][p] * b[s][p]. Change matmul_tiled so. Which thread has to fetch
 *    which number of b, if neighbours are to fetch neighbours? And how many banks of shared memory
 *    does a warp then read from?
 * 2. Let a thread of matmul_registers compute 8 x 8 elements of a square of 128 x 128. How many
 *    reads from shared memory is that for each multiplication? Is it faster, also when c
 *    is small? */

#endif
