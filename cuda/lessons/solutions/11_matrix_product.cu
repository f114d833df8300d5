/* Solutions of lesson 11.
 *
 *     nvcc -O3 -arch=native 11_matrix_product.cu -o 11_matrix_product && ./11_matrix_product
 *
 * 1. The rows of b are now what its columns were. The tile of b is therefore fetched like that of
 *    a, rows first_col ... first_col + 31, with threadIdx.x along the row: neighbours fetch
 *    neighbours. Only then, in shared memory, are its rows used as columns. Threads of a warp then
 *    read from 32 rows at a time; a row of 32 floats would have them all in the same bank, hence
 *    the rows of 33.
 * 2. 16 reads for 64 multiplications, a quarter of a read each, half as many as with 4 x 4. The
 *    program prints the times of both, for a small and for a large c. A small c has too few squares
 *    of 128 x 128 to keep all multiprocessors busy: 1000 x 1000 is 64 blocks, and a large GPU has
 *    more than 100 of them. (Both kernels are from one text, a template: see the README.md.) */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TILE = 32 };

/* c = a times b transposed: b has n rows and k columns. */
static __global__ void matmul_transposed(const float *a, const float *b, float *c, int m, int n,
                                         int k) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE + 1];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, first_col = blockIdx.x * TILE, col = first_col + x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        bool in_a = row < m && start + x < k, in_b = first_col + y < n && start + x < k;
        a_tile[y][x] = in_a ? a[(size_t)row * k + start + x] : 0;
        b_tile[y][x] = in_b ? b[(size_t)(first_col + y) * k + start + x] : 0;
        __syncthreads();
        for (int p = 0; p < TILE; p++) sum += a_tile[y][p] * b_tile[x][p];
        __syncthreads();
    }
    if (row < m && col < n) c[(size_t)row * n + col] = sum;
}

/* The lesson's matmul_registers for any EACH: a block computes a square of ACROSS * EACH numbers.
 * With 8 of them DEPTH is 8, so that the tiles stay as small as they were. */
enum { ACROSS = 16 };

template <int EACH, int DEPTH>
static __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    enum { SQUARE = ACROSS * EACH };
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

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* Random whole numbers from -4 to 4, whose products and sums are exact. */
static void fill(float *x, size_t count, unsigned state) {
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int)(state >> 16) % 9 - 4);
    }
}

/* How many elements of the device's c differ from the C loop's. */
static int count_wrong(const float *a, const float *b, const float *d_c, int m, int n, int k,
                       bool transposed) {
    int wrong = 0;
    float *c = (float *)malloc((size_t)m * n * sizeof(float));
    if (!c) exit(1);
    CHECK(cudaMemcpy(c, d_c, (size_t)m * n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < m; row++) {
        for (int col = 0; col < n; col++) {
            float sum = 0;
            for (int p = 0; p < k; p++) {
                sum += a[row * k + p] * (transposed ? b[col * k + p] : b[p * n + col]);
            }
            wrong += !(c[row * n + col] - sum == 0);
        }
    }
    free(c);
    return wrong;
}

/* New device memory with a copy of host memory, or with NaN (all bits one) for NULL. */
static float *new_device_array(size_t count, const float *h_from) {
    float *x;
    CHECK(cudaMalloc(&x, count * sizeof(float)));
    CHECK(cudaMemset(x, 0xFF, count * sizeof(float)));
    if (h_from) CHECK(cudaMemcpy(x, h_from, count * sizeof(float), cudaMemcpyHostToDevice));
    return x;
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

typedef void Kernel(const float *a, const float *b, float *c, int m, int n, int k);

/* Launches matmul with so many numbers for each thread. */
static void launch(int each, const float *a, const float *b, float *c, int m, int n, int k) {
    int square = ACROSS * each;
    Kernel *kernel = each == 8 ? matmul<8, 8> : matmul<4, 16>;
    dim3 squares((n + square - 1) / square, (m + square - 1) / square);
    kernel<<<squares, dim3(ACROSS, ACROSS)>>>(a, b, c, m, n, k);
    CHECK(cudaGetLastError());
}

/* The microseconds of a product of size x size matrices, the mean of several. */
static double time_of(int each, int size) {
    const int repeats = 5;
    size_t count = (size_t)size * size;
    float *d_a = new_device_array(count, NULL), *d_b = new_device_array(count, NULL);
    float *d_c = new_device_array(count, NULL);
    launch(each, d_a, d_b, d_c, size, size, size); /* also loads the kernel: not measured */
    CHECK(cudaDeviceSynchronize());
    double start = now_us();
    for (int i = 0; i < repeats; i++) launch(each, d_a, d_b, d_c, size, size, size);
    CHECK(cudaDeviceSynchronize());
    double us = (now_us() - start) / repeats;
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    return us;
}

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    const int m = 161, n = 142, k = 103;
    float *h_a = (float *)malloc(m * k * sizeof(float));
    float *h_b = (float *)malloc(k * n * sizeof(float));
    if (!h_a || !h_b) return 1;
    fill(h_a, m * k, 1);
    fill(h_b, k * n, 2);
    float *d_a = new_device_array(m * k, h_a), *d_b = new_device_array(k * n, h_b);
    float *d_c = new_device_array(m * n, NULL);

    dim3 tiles((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    matmul_transposed<<<tiles, dim3(TILE, TILE)>>>(d_a, d_b, d_c, m, n, k);
    CHECK(cudaGetLastError());
    int wrong = count_wrong(h_a, h_b, d_c, m, n, k, true);
    printf("1. a times b transposed: %d of %d wrong\n", wrong, m * n);

    int more_wrong = 0;
    for (int each = 4; each <= 8; each += 4) {
        CHECK(cudaMemset(d_c, 0xFF, m * n * sizeof(float)));
        launch(each, d_a, d_b, d_c, m, n, k);
        int wrong_here = count_wrong(h_a, h_b, d_c, m, n, k, false);
        printf("2. %d x %d elements per thread: %d of %d wrong\n", each, each, wrong_here, m * n);
        more_wrong += wrong_here;
    }
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    bool large = device.multiProcessorCount > 4;
    int sizes[] = {large ? 500 : 50, large ? 4000 : 150};
    for (int i = 0; i < 2; i++) {
        double four = time_of(4, sizes[i]), eight = time_of(8, sizes[i]);
        printf("2. %d x %d matrices: 4 x 4 elements per thread %.1f us, 8 x 8 %.1f us\n", sizes[i],
               sizes[i], four, eight);
    }

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    return wrong || more_wrong ? 1 : 0;
}
