/* Solutions of lesson 16.
 *
 *     nvcc -O3 -arch=native 16_batched_products.cu -o 16_batched_products && ./16_batched_products
 *
 * 1. With a b_stride of 0 each item begins at the same b. But the rows of all a[item], one below
 *    the other, are also the rows of one matrix with items * m rows, and so are those of c. The one
 *    large product has fewer tiles that are only partly filled, and it may use lesson 11's faster
 *    kernels.
 * 2. The block gets a third dimension: threadIdx.z says which of its 16 products. The matrices are
 *    so small that a thread fetches its operands by itself: the caches do the rest. */
#include <stdio.h>
#include <stdlib.h>

enum { TILE = 16, SMALL = 4, PRODUCTS = 16 };

/* The lesson's kernel, unchanged. */
static __global__ void matmul_batch(const float *a, const float *b, float *c, int m, int n, int k,
                                    size_t a_stride, size_t b_stride, size_t c_stride) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    size_t item = blockIdx.z;
    a += item * a_stride;
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

/* c[item] = a[item] b[item], all 4 x 4. Block (4, 4, 16), grid: items / 16, rounded up. */
static __global__ void matmul_4x4(const float *a, const float *b, float *c, int items) {
    int item = blockIdx.x * PRODUCTS + threadIdx.z, row = threadIdx.y, col = threadIdx.x;
    if (item >= items) return;
    size_t first = (size_t)item * SMALL * SMALL;
    float sum = 0;
    for (int p = 0; p < SMALL; p++) {
        sum += a[first + row * SMALL + p] * b[first + p * SMALL + col];
    }
    c[first + row * SMALL + col] = sum;
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

/* How many elements of the batch on the device differ from the C loop's. */
static int count_wrong(const float *a, const float *b, const float *d_c, int items, int m, int n,
                       int k, int b_stride) {
    int count = items * m * n, wrong = 0;
    float *c = (float *)malloc(count * sizeof(float));
    if (!c) exit(1);
    CHECK(cudaMemcpy(c, d_c, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) {
        int item = i / (m * n), row = i / n % m, col = i % n;
        float sum = 0;
        for (int p = 0; p < k; p++) {
            sum += a[(item * m + row) * k + p] * b[item * b_stride + p * n + col];
        }
        wrong += !(c[i] - sum == 0);
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

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    const int items = 37, m = 19, n = 18, k = 23;
    const int a_count = items * m * k, b_count = items * k * n, c_count = items * m * n;
    float *h_a = (float *)malloc(a_count * sizeof(float));
    float *h_b = (float *)malloc(b_count * sizeof(float));
    if (!h_a || !h_b) return 1;
    fill(h_a, a_count, 1);
    fill(h_b, b_count, 2);
    float *d_a = new_device_array(a_count, h_a), *d_b = new_device_array(b_count, h_b);
    float *d_c = new_device_array(c_count, NULL);

    dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE, items);
    matmul_batch<<<grid, block>>>(d_a, d_b, d_c, m, n, k, m * k, 0, m * n);
    CHECK(cudaGetLastError());
    int wrong = count_wrong(h_a, h_b, d_c, items, m, n, k, 0);
    CHECK(cudaMemset(d_c, 0xFF, c_count * sizeof(float)));
    dim3 tall((n + TILE - 1) / TILE, (items * m + TILE - 1) / TILE);
    matmul_batch<<<tall, block>>>(d_a, d_b, d_c, items * m, n, k, 0, 0, 0);
    CHECK(cudaGetLastError());
    wrong += count_wrong(h_a, h_b, d_c, items, m, n, k, 0);
    printf("1. the same b for all, by a stride of 0 and as one tall product: %d of 2 x %d wrong\n",
           wrong, c_count);

    CHECK(cudaMemset(d_c, 0xFF, c_count * sizeof(float)));
    matmul_4x4<<<(items + PRODUCTS - 1) / PRODUCTS, dim3(SMALL, SMALL, PRODUCTS)>>>(d_a, d_b, d_c,
                                                                                    items);
    CHECK(cudaGetLastError());
    int more_wrong = count_wrong(h_a, h_b, d_c, items, SMALL, SMALL, SMALL, SMALL * SMALL);
    printf("2. %d products of 4 x 4: %d of %d wrong\n", items, more_wrong, items * SMALL * SMALL);

    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    return wrong || more_wrong ? 1 : 0;
}
