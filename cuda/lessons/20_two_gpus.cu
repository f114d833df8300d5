/* Lesson 20: two GPUs, each with half of the work.
 *
 *     nvcc -O3 -arch=native 20_two_gpus.cu -o 20_two_gpus && ./20_two_gpus
 *
 * Each GPU has its own memory, its own streams and its own errors. cudaSetDevice(d) says which one
 * the next calls of this thread are for. As launches do not wait (lesson 04), one thread can start
 * work on the first, go on to the second, and only then wait for both.
 *
 * We multiply matrices (lesson 11), c = a b. The rows of c do not depend on each other, so the
 * first GPU gets the upper half of a and makes the upper half of c, the second the lower one; both
 * need all of b. At the end the second hands its half to the first, from device to device: if the
 * cards have PEER ACCESS, a direct connection, the host's memory is not touched on the way.
 *
 * What to look for: the time of two against one, with and without bringing the halves together.
 * Work grows with the third power of the size and traffic with the second, so large sizes pay off
 * more.
 *
 * Ends with 77 if there are fewer than two GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TILE = 32, DEVICES = 2, REPEATS = 5 };

/* Lesson 11's matmul_tiled. */
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

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* What one GPU has: its rows of a and c, all of b, a stream. */
typedef struct {
    int first_row, rows;
    float *a, *b, *c;
    cudaStream_t stream;
} Part;

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void matmul_on_host(const float *a, const float *b, float *c, int size) {
    for (int row = 0; row < size; row++) {
        float *c_row = c + (size_t)row * size;
        for (int col = 0; col < size; col++) c_row[col] = 0;
        for (int p = 0; p < size; p++) {
            float factor = a[(size_t)row * size + p];
            const float *b_row = b + (size_t)p * size;
            for (int col = 0; col < size; col++) c_row[col] += factor * b_row[col];
        }
    }
}

/* Memory on the current device for `rows` rows of a and c, and the inputs in it. `c_rows` rows of c
 * are allocated: the first GPU has room for the second one's result. */
static Part new_part(int first_row, int rows, int c_rows, const float *h_a, const float *h_b,
                     int size) {
    Part part = {first_row, rows, NULL, NULL, NULL, NULL};
    size_t row_bytes = size * sizeof(float);
    CHECK(cudaMalloc(&part.a, rows * row_bytes));
    CHECK(cudaMalloc(&part.b, size * row_bytes));
    CHECK(cudaMalloc(&part.c, c_rows * row_bytes));
    CHECK(cudaMemset(part.c, 0xFF, c_rows * row_bytes)); /* NaN: what is left out is found */
    CHECK(cudaMemcpy(part.a, h_a + (size_t)first_row * size, rows * row_bytes,
                     cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(part.b, h_b, size * row_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaStreamCreate(&part.stream));
    return part;
}

/* Starts the product of one part on the current device, and does not wait. */
static void start_product(const Part *part, int rows, int size) {
    dim3 block(TILE, TILE), grid((size + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    matmul_tiled<<<grid, block, 0, part->stream>>>(part->a, part->b, part->c, rows, size, size);
    CHECK(cudaGetLastError());
}

/* Both GPUs at once; returns when both are done. */
static void multiply_on_both(const Part *parts, int size) {
    for (int d = 0; d < DEVICES; d++) {
        CHECK(cudaSetDevice(d));
        start_product(&parts[d], parts[d].rows, size);
    }
    for (int d = 0; d < DEVICES; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaStreamSynchronize(parts[d].stream));
    }
}

/* The second GPU's rows of c to their place behind the first one's, over the direct connection if
 * there is one. "Peer" copies name both devices. */
static void gather(const Part *parts, int size) {
    float *to = parts[0].c + (size_t)parts[1].first_row * size;
    size_t bytes = (size_t)parts[1].rows * size * sizeof(float);
    CHECK(cudaMemcpyPeerAsync(to, 0, parts[1].c, 1, bytes, parts[1].stream));
    CHECK(cudaStreamSynchronize(parts[1].stream));
}

/* Lets both devices use each other's memory directly, where they can. Returns whether they can. */
static bool connect_devices(void) {
    int forth = 0, back = 0;
    CHECK(cudaDeviceCanAccessPeer(&forth, 0, 1));
    CHECK(cudaDeviceCanAccessPeer(&back, 1, 0));
    if (!forth || !back) return false;
    for (int d = 0; d < DEVICES; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaDeviceEnablePeerAccess(1 - d, 0));
    }
    return true;
}

/* Random whole numbers from -4 to 4, whose products and sums are exact (lesson 11). */
static void fill(float *x, size_t count, unsigned state) {
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int)(state >> 16) % 9 - 4);
    }
}

int main(void) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < DEVICES) {
        printf("this lesson needs two CUDA devices, and there are %d\n", devices);
        return 77;
    }
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    bool direct = connect_devices();
    int size = device.multiProcessorCount > 4 ? 1999 : 99; /* odd: the halves are not equal */
    size_t count = (size_t)size * size, wrong = 0;
    printf("devices: two of %d, %s; matrices of %d x %d; direct connection: %s\n", devices,
           device.name, size, size, direct ? "yes" : "no");

    float *h_a = (float *)malloc(count * sizeof(float));
    float *h_b = (float *)malloc(count * sizeof(float));
    float *h_c = (float *)malloc(count * sizeof(float));
    float *expected = (float *)malloc(count * sizeof(float));
    if (!h_a || !h_b || !h_c || !expected) return 1;
    fill(h_a, count, 1);
    fill(h_b, count, 2);
    matmul_on_host(h_a, h_b, expected, size);

    Part parts[DEVICES], whole;
    CHECK(cudaSetDevice(1));
    parts[1] = new_part(size / 2, size - size / 2, size - size / 2, h_a, h_b, size);
    CHECK(cudaSetDevice(0));
    parts[0] = new_part(0, size / 2, size, h_a, h_b, size);
    whole = new_part(0, size, size, h_a, h_b, size); /* to compare: all on the first GPU */

    /* Once for the result: the C loop's, from the memory of the first GPU. */
    multiply_on_both(parts, size);
    gather(parts, size);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemcpy(h_c, parts[0].c, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) wrong += !(h_c[i] - expected[i] == 0);
    start_product(&whole, size, size);
    CHECK(cudaStreamSynchronize(whole.stream));
    CHECK(cudaMemcpy(h_c, whole.c, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) wrong += !(h_c[i] - expected[i] == 0);

    double one_us = 0, both_us = 0, gather_us = 0;
    for (int i = 0; i < REPEATS; i++) {
        CHECK(cudaSetDevice(0));
        double t0 = now_us();
        start_product(&whole, size, size);
        CHECK(cudaStreamSynchronize(whole.stream));
        double t1 = now_us();
        multiply_on_both(parts, size);
        double t2 = now_us();
        gather(parts, size);
        one_us += (t1 - t0) / REPEATS;
        both_us += (t2 - t1) / REPEATS;
        gather_us += (now_us() - t2) / REPEATS;
    }
    printf("%zu elements are wrong\n", wrong);
    printf("measured: one GPU %.0f us, two %.0f us (%.2f times as fast), bringing the halves "
           "together %.0f us\n",
           one_us, both_us, one_us / both_us, gather_us);

    Part *all[] = {&parts[0], &parts[1], &whole};
    for (int i = 0; i < 3; i++) {
        CHECK(cudaSetDevice(all[i] == &parts[1] ? 1 : 0));
        CHECK(cudaFree(all[i]->a));
        CHECK(cudaFree(all[i]->b));
        CHECK(cudaFree(all[i]->c));
        CHECK(cudaStreamDestroy(all[i]->stream));
    }
    free(h_a);
    free(h_b);
    free(h_c);
    free(expected);
    return wrong ? 1 : 0;
}

/* Exercises (solutions/20_two_gpus.cu):
 *
 * 1. The ALL-REDUCE, at the heart of training on many GPUs: each has a vector, at the end each has
 *    the sum of both. Do it by halves: each GPU fetches one half of the other's vector, adds it to
 *    its own, and hands the sum of that half back.
 * 2. Do the product on as many GPUs as there are. */
