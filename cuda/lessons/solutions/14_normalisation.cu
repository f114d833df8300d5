/* Solutions of lesson 14.
 *
 *     nvcc -O3 -arch=native 14_normalisation.cu -o 14_normalisation && ./14_normalisation
 *
 * 1. exp(100) is 2.7e43, more than a float can hold (3.4e38): without the subtraction the row would
 *    be infinite / infinite, NaN. With it the largest exponential is 1. Dividing both parts of the
 *    fraction by exp(largest) does not change its value.
 * 2. sum_of_block(): a sum in each warp by shuffles, the sums to shared memory, and each warp adds
 *    them up once more. There is a barrier in front as well: the function is called twice, and the
 *    second call must not overwrite numbers of the first that somebody still reads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARP = 32, WARPS = 8 };

static __device__ float sum_of_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xffffffff, value, distance);
    }
    return value;
}

static __device__ float largest_of_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, distance));
    }
    return value;
}

static __global__ void softmax(const float *x, float *y, int rows, int n) {
    int lane = threadIdx.x % WARP, row = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= rows) return;
    const float *from = x + (size_t)row * n;
    float *to = y + (size_t)row * n, largest = -INFINITY, sum = 0;
    for (int i = lane; i < n; i += WARP) largest = fmaxf(largest, from[i]);
    largest = largest_of_warp(largest);
    for (int i = lane; i < n; i += WARP) sum += expf(from[i] - largest);
    float scale = 1 / sum_of_warp(sum);
    for (int i = lane; i < n; i += WARP) to[i] = expf(from[i] - largest) * scale;
}

static __device__ float sum_of_block(float value) {
    __shared__ float part[WARPS];
    float warp_sum = sum_of_warp(value), sum = 0;
    __syncthreads();
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = warp_sum;
    __syncthreads();
    for (int w = 0; w < WARPS; w++) sum += part[w];
    return sum;
}

/* One block per row. */
static __global__ void normalise_by_blocks(const float *x, float *y, int n) {
    const float *from = x + (size_t)blockIdx.x * n;
    float *to = y + (size_t)blockIdx.x * n, sum = 0, squares = 0;
    for (int i = threadIdx.x; i < n; i += WARPS * WARP) sum += from[i];
    float mean = sum_of_block(sum) / n;
    for (int i = threadIdx.x; i < n; i += WARPS * WARP) {
        squares += (from[i] - mean) * (from[i] - mean);
    }
    float scale = 1 / sqrtf(sum_of_block(squares) / n + 1e-5f);
    for (int i = threadIdx.x; i < n; i += WARPS * WARP) to[i] = (from[i] - mean) * scale;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* Random numbers between -largest and largest. */
static void fill(float *x, size_t count, unsigned state, float largest) {
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) / (1 << 23) - 1) * largest;
    }
}

static void softmax_on_host(const float *x, float *y, int n) {
    double largest = x[0], sum = 0;
    for (int i = 1; i < n; i++) largest = fmax(largest, x[i]);
    for (int i = 0; i < n; i++) sum += exp(x[i] - largest);
    for (int i = 0; i < n; i++) y[i] = (float)(exp(x[i] - largest) / sum);
}

static void normalise_on_host(const float *x, float *y, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    for (int i = 0; i < n; i++) squares += (x[i] - sum / n) * (x[i] - sum / n);
    for (int i = 0; i < n; i++) y[i] = (float)((x[i] - sum / n) / sqrt(squares / n + 1e-5));
}

/* How many elements on the device differ from a C loop's by more than `tolerance` of them. */
static int count_wrong(const float *x, const float *d_y, int rows, int n, float tolerance,
                       void (*on_host)(const float *x, float *y, int n)) {
    int wrong = 0;
    float *y = (float *)malloc(rows * n * sizeof(float));
    float *expected = (float *)malloc(n * sizeof(float));
    if (!y || !expected) exit(1);
    CHECK(cudaMemcpy(y, d_y, rows * n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < rows; row++) {
        on_host(x + row * n, expected, n);
        for (int i = 0; i < n; i++) {
            float allowed = tolerance * fmaxf(fabsf(expected[i]), 1.0f / n);
            wrong += !(fabsf(y[row * n + i] - expected[i]) <= allowed);
        }
    }
    free(y);
    free(expected);
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
    const int rows = 21, n = 333, count = rows * n;
    float *x = (float *)malloc(count * sizeof(float));
    if (!x) return 1;
    fill(x, count, 1, 5);
    for (int i = 0; i < n; i++) x[i] += 100; /* the first row: scores around 100 */
    float *d_x = new_device_array(count, x), *d_y = new_device_array(count, NULL);

    softmax<<<(rows + WARPS - 1) / WARPS, WARPS * WARP>>>(d_x, d_y, rows, n);
    CHECK(cudaGetLastError());
    int wrong = count_wrong(x, d_y, rows, n, 1e-5f, softmax_on_host);
    printf("1. softmax: %d of %d wrong\n", wrong, count);

    CHECK(cudaMemset(d_y, 0xFF, count * sizeof(float)));
    normalise_by_blocks<<<rows, WARPS * WARP>>>(d_x, d_y, n);
    CHECK(cudaGetLastError());
    int more_wrong = count_wrong(x, d_y, rows, n, 1e-2f, normalise_on_host);
    printf("2. a block per row: %d of %d wrong\n", more_wrong, count);

    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    free(x);
    return wrong || more_wrong ? 1 : 0;
}
