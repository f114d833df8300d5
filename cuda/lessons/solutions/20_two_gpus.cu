/* Solutions of lesson 20.
 *
 *     nvcc -O3 -arch=native 20_two_gpus.cu -o 20_two_gpus && ./20_two_gpus
 *
 * 1. Each GPU adds one half only, and each half travels once there and once back: both directions
 *    of the connection are busy all the time, and neither GPU has more to do than the other. With
 *    more than two GPUs the pieces go round in a ring. Adding the other's number to one's own or
 *    the other way round gives the same bits, so both end with the very same vector.
 * 2. Device d of `devices` gets the rows from d * size / devices on: nothing else changes.
 *
 * Ends with 77 if there are fewer than two GPUs. */
#include <stdio.h>
#include <stdlib.h>

enum { TILE = 16, THREADS = 256, MOST_DEVICES = 64 };

static __global__ void add_to(float *x, const float *other, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += other[i];
}

static __global__ void matmul(const float *a, const float *b, float *c, int rows, int size) {
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    if (row >= rows || col >= size) return;
    float sum = 0;
    for (int p = 0; p < size; p++) sum += a[(size_t)row * size + p] * b[(size_t)p * size + col];
    c[(size_t)row * size + col] = sum;
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

static void wait_for(int devices) {
    for (int d = 0; d < devices; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaDeviceSynchronize());
    }
}

/* x[d] is a vector of n elements on device d; afterwards both are x[0] + x[1]. received[d] has room
 * for half a vector on device d. */
static void all_reduce(float *const *x, float *const *received, int n) {
    int first[] = {0, n / 2, n}; /* device d adds the elements from first[d] to first[d + 1] - 1 */
    for (int d = 0; d < 2; d++) {
        int other = 1 - d, count = first[d + 1] - first[d];
        CHECK(cudaSetDevice(d));
        CHECK(cudaMemcpyPeerAsync(received[d], d, x[other] + first[d], other, count * sizeof(float),
                                  0));
        add_to<<<(count + THREADS - 1) / THREADS, THREADS>>>(x[d] + first[d], received[d], count);
        CHECK(cudaGetLastError());
    }
    wait_for(2); /* before a half is overwritten, the other device must have fetched from it */
    for (int d = 0; d < 2; d++) {
        int other = 1 - d, count = first[d + 1] - first[d];
        CHECK(cudaSetDevice(d));
        CHECK(cudaMemcpyPeerAsync(x[other] + first[d], other, x[d] + first[d], d,
                                  count * sizeof(float), 0));
    }
    wait_for(2);
}

static int test_all_reduce(void) {
    const int n = 10001;
    const size_t bytes = n * sizeof(float);
    static float h_x[2][n], result[n];
    float *x[2], *received[2];
    int wrong = 0;
    for (int d = 0; d < 2; d++) {
        fill(h_x[d], n, d + 1);
        CHECK(cudaSetDevice(d));
        CHECK(cudaMalloc(&x[d], bytes));
        CHECK(cudaMalloc(&received[d], bytes));
        CHECK(cudaMemcpy(x[d], h_x[d], bytes, cudaMemcpyHostToDevice));
    }
    wait_for(2); /* a small cudaMemcpy may return before the device has all of it */
    all_reduce(x, received, n);
    for (int d = 0; d < 2; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaMemcpy(result, x[d], bytes, cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++) wrong += !(result[i] - (h_x[0][i] + h_x[1][i]) == 0);
        CHECK(cudaFree(x[d]));
        CHECK(cudaFree(received[d]));
    }
    printf("1. all-reduce: %d of 2 x %d wrong\n", wrong, n);
    return wrong;
}

static int test_matmul(int devices) {
    const int size = 131;
    const size_t row_bytes = size * sizeof(float);
    static float h_a[size * size], h_b[size * size], h_c[size * size];
    float *a[MOST_DEVICES], *b[MOST_DEVICES], *c[MOST_DEVICES];
    int first[MOST_DEVICES + 1], wrong = 0;
    fill(h_a, size * size, 1);
    fill(h_b, size * size, 2);
    for (int d = 0; d <= devices; d++) first[d] = d * size / devices;
    for (int d = 0; d < devices; d++) {
        int rows = first[d + 1] - first[d];
        CHECK(cudaSetDevice(d));
        CHECK(cudaMalloc(&a[d], rows * row_bytes));
        CHECK(cudaMalloc(&b[d], size * row_bytes));
        CHECK(cudaMalloc(&c[d], rows * row_bytes));
        CHECK(cudaMemcpy(a[d], h_a + first[d] * size, rows * row_bytes, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(b[d], h_b, size * row_bytes, cudaMemcpyHostToDevice));
    }
    for (int d = 0; d < devices; d++) {
        int rows = first[d + 1] - first[d];
        dim3 grid((size + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
        CHECK(cudaSetDevice(d));
        matmul<<<grid, dim3(TILE, TILE)>>>(a[d], b[d], c[d], rows, size);
        CHECK(cudaGetLastError());
    }
    for (int d = 0; d < devices; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaMemcpy(h_c + first[d] * size, c[d], (first[d + 1] - first[d]) * row_bytes,
                         cudaMemcpyDeviceToHost));
        CHECK(cudaFree(a[d]));
        CHECK(cudaFree(b[d]));
        CHECK(cudaFree(c[d]));
    }
    for (int i = 0; i < size * size; i++) {
        float sum = 0;
        for (int p = 0; p < size; p++) sum += h_a[i / size * size + p] * h_b[p * size + i % size];
        wrong += !(h_c[i] - sum == 0);
    }
    printf("2. a product on %d GPUs: %d of %d wrong\n", devices, wrong, size * size);
    return wrong;
}

int main(void) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) {
        printf("these solutions need two CUDA devices, and there are %d\n", devices);
        return 77;
    }
    if (devices > MOST_DEVICES) devices = MOST_DEVICES;
    int wrong = test_all_reduce();
    wrong += test_matmul(devices);
    return wrong ? 1 : 0;
}
