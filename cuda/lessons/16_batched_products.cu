/* Lesson 16: many small matrix products in one launch.
 *
 *     nvcc -O3 -arch=native 16_batched_products.cu -o 16_batched_products && ./16_batched_products
 *
 * Lesson 11's kernels need large matrices: a product of 32 x 32 matrices is a single block, which
 * keeps one of the GPU's many multiprocessors busy and lets the others sleep. But programs often
 * have thousands of small products that do not depend on each other (each head of a transformer's
 * attention, each robot of a simulation). They are stored one after the other, as a BATCH, and one
 * launch makes all of them: blockIdx.x and .y say which tile of a product, and blockIdx.z, which
 * lesson 09 used for the third dimension, says which product.
 *
 * How far it is from a matrix to the next one in memory is called the STRIDE. It is an argument of
 * its own, because it need not be m * k: there may be gaps, and a stride of 0 means that all
 * products use the same matrix.
 *
 * What to look for: a launch for each product against one launch for all. The kernel is the same,
 * and one launch is faster by far: it does not pay 2 to 4 us for each product, and it keeps the
 * whole GPU busy. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TILE = 16 };

/* c[item] = a[item] b[item] for all items of a batch; a[item] is m x k and begins at a + item *
 * a_stride, b[item] is k x n, c[item] is m x n. The product is lesson 11's matmul_tiled.
 * Launch: block (TILE, TILE), grid (n / TILE rounded up, m / TILE rounded up, items). */
static __global__ void matmul_batch(const float *a, const float *b, float *c, int m, int n, int k,
                                    size_t a_stride, size_t b_stride, size_t c_stride) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    size_t item = blockIdx.z;
    a += item * a_stride; /* from here on there is one product, the item's */
    b += item * b_stride;
    c += item * c_stride;
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        bool in_a = row < m && start + x < k, in_b = start + y < k && col < n;
        a_tile[y][x] = in_a ? a[row * k + start + x] : 0;
        b_tile[y][x] = in_b ? b[(start + y) * n + col] : 0;
        __syncthreads();
        for (int p = 0; p < TILE; p++) sum += a_tile[y][p] * b_tile[p][x];
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { MOST_ITEMS = 65535 }; /* a grid's largest z: more items would need more launches */

/* The batch: its sizes, and how far it is from one matrix to the next. */
typedef struct {
    int items, m, n, k;
    size_t a_stride, b_stride, c_stride;
} Batch;

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void matmul_on_host(const float *a, const float *b, float *c, const Batch *s) {
    for (int item = 0; item < s->items; item++) {
        for (int row = 0; row < s->m; row++) {
            for (int col = 0; col < s->n; col++) {
                float sum = 0;
                for (int p = 0; p < s->k; p++) {
                    sum += a[item * s->a_stride + row * s->k + p] *
                           b[item * s->b_stride + p * s->n + col];
                }
                c[item * s->c_stride + row * s->n + col] = sum;
            }
        }
    }
}

/* `items` products by one launch, from the pointers on. */
static void launch(const float *a, const float *b, float *c, const Batch *s, int items) {
    dim3 block(TILE, TILE), grid((s->n + TILE - 1) / TILE, (s->m + TILE - 1) / TILE, items);
    matmul_batch<<<grid, block>>>(a, b, c, s->m, s->n, s->k, s->a_stride, s->b_stride, s->c_stride);
    CHECK(cudaGetLastError());
}

static void launch_each(const float *a, const float *b, float *c, const Batch *s) {
    for (int item = 0; item < s->items; item++) {
        launch(a + item * s->a_stride, b + item * s->b_stride, c + item * s->c_stride, s, 1);
    }
}

static void launch_all(const float *a, const float *b, float *c, const Batch *s) {
    launch(a, b, c, s, s->items);
}

typedef void Launch(const float *a, const float *b, float *c, const Batch *s);

/* Runs one of the two: once for the result, once more for the clock. Returns how many elements are
 * wrong; *us is the time for the whole batch. */
static size_t try_launch(Launch *launch, const float *d_a, const float *d_b, float *d_c, float *h_c,
                         const float *h_expected, const Batch *s, double *us) {
    size_t count = s->items * s->c_stride, wrong = 0;
    CHECK(cudaMemset(d_c, 0xFF, count * sizeof(float))); /* NaN: what is left out is found */
    launch(d_a, d_b, d_c, s);
    CHECK(cudaMemcpy(h_c, d_c, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) wrong += !(h_c[i] - h_expected[i] == 0);
    double start = now_us();
    launch(d_a, d_b, d_c, s);
    CHECK(cudaDeviceSynchronize());
    *us = now_us() - start;
    return wrong;
}

/* Host memory with whole numbers from -4 to 4, whose products and sums are exact (lesson 11), and a
 * copy of it on the device. */
static float *new_array(size_t count, unsigned state, float **d_copy) {
    float *x = (float *)malloc(count * sizeof(float));
    if (!x) exit(1);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int)(state >> 16) % 9 - 4);
    }
    CHECK(cudaMalloc(d_copy, count * sizeof(float)));
    CHECK(cudaMemcpy(*d_copy, x, count * sizeof(float), cudaMemcpyHostToDevice));
    return x;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    int items = device.multiProcessorCount > 4 ? 5000 : 50, m = 30, n = 33, k = 35;
    const Batch sizes = {items, m, n, k, (size_t)m * k, (size_t)k * n, (size_t)m * n};
    if (items > MOST_ITEMS) return 1;
    printf("device: %s; %d products of (%d x %d) and (%d x %d)\n", device.name, items, m, k, k, n);

    size_t c_bytes = items * sizes.c_stride * sizeof(float);
    float *d_a, *d_b, *d_c;
    float *h_a = new_array(items * sizes.a_stride, 1, &d_a);
    float *h_b = new_array(items * sizes.b_stride, 2, &d_b);
    float *h_c = (float *)malloc(c_bytes), *h_expected = (float *)malloc(c_bytes);
    if (!h_c || !h_expected) return 1;
    CHECK(cudaMalloc(&d_c, c_bytes));

    double start = now_us(), each_us, all_us;
    matmul_on_host(h_a, h_b, h_expected, &sizes);
    double loop_us = now_us() - start;
    size_t wrong = try_launch(launch_each, d_a, d_b, d_c, h_c, h_expected, &sizes, &each_us);
    wrong += try_launch(launch_all, d_a, d_b, d_c, h_c, h_expected, &sizes, &all_us);
    printf("%zu elements are wrong\n", wrong);
    printf("measured: C loop %.0f us, %d launches %.0f us, one launch %.0f us (%.1f GFLOP/s)\n",
           loop_us, items, each_us, all_us, 2e-3 * items * m * n * k / all_us);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    free(h_c);
    free(h_expected);
    return wrong ? 1 : 0;
}

/* Exercises (solutions/16_batched_products.cu):
 *
 * 1. Multiply all a[item] with the same matrix b, without a change to the kernel. Then do it as one
 *    ordinary product: stacked on each other, the a[item] are one tall matrix.
 * 2. Products of 4 x 4 matrices leave 240 of the block's 256 threads without work. Let a block make
 *    16 such products, a thread for each element of c. */
