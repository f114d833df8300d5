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
 * What to look for: the time of two against one, and what bringing the halves together costs. Work
 * grows with the third power of the size and traffic with the second, so large sizes pay off
 * more.
 *
 * Ends with 77 if there are fewer than two GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* SIZE is odd: the halves are not equal. */
enum { TILE = 32, DEVICES = 2, SIZE = 1999, REPEATS = 5 };

/* Lesson 11's matmul_coalesced; what follows would be the same with a faster kernel. */
static __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || col >= n) return;
    float sum = 0;
    for (int p = 0; p < k; p++) sum += a[(size_t)row * k + p] * b[(size_t)p * n + col];
    c[(size_t)row * n + col] = sum;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* What one GPU has: its rows of a and c, from first_row on, all of b, a stream. */
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

/* The C loop; c holds zeros at first. */
static void matmul_on_host(const float *a, const float *b, float *c) {
    for (int row = 0; row < SIZE; row++) {
        for (int p = 0; p < SIZE; p++) {
            const float *b_row = b + (size_t)p * SIZE;
            float factor = a[(size_t)row * SIZE + p], *c_row = c + (size_t)row * SIZE;
            for (int col = 0; col < SIZE; col++) c_row[col] += factor * b_row[col];
        }
    }
}

/* Memory on the current device for `room` rows of a and c, and the inputs in it: the first GPU has
 * room for all rows, for the second one's result and to do all by itself, as a comparison. */
static Part new_part(int first_row, int rows, int room, const float *h_a, const float *h_b) {
    Part part = {first_row, rows, NULL, NULL, NULL, NULL};
    size_t row_bytes = SIZE * sizeof(float);
    const float *h_first = h_a + (size_t)first_row * SIZE;
    CHECK(cudaMalloc(&part.a, room * row_bytes));
    CHECK(cudaMalloc(&part.b, SIZE * row_bytes));
    CHECK(cudaMalloc(&part.c, room * row_bytes));
    CHECK(cudaMemset(part.c, 0xFF, room * row_bytes)); /* NaN: what is left out is found */
    CHECK(cudaMemcpy(part.a, h_first, room * row_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(part.b, h_b, SIZE * row_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaStreamCreate(&part.stream));
    return part;
}

/* Starts the product of a part's first `rows` rows on the current device, and does not wait. */
static void start_product(const Part *part, int rows) {
    dim3 block(TILE, TILE), grid((SIZE + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    matmul<<<grid, block, 0, part->stream>>>(part->a, part->b, part->c, rows, SIZE, SIZE);
    CHECK(cudaGetLastError());
}

/* All rows on the first GPU. */
static void multiply_on_one(const Part *parts) {
    CHECK(cudaSetDevice(0));
    start_product(&parts[0], SIZE);
    CHECK(cudaStreamSynchronize(parts[0].stream));
}

/* Both GPUs at once; returns when both are done. */
static void multiply_on_both(const Part *parts) {
    for (int d = 0; d < DEVICES; d++) {
        CHECK(cudaSetDevice(d));
        start_product(&parts[d], parts[d].rows);
    }
    for (int d = 0; d < DEVICES; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaStreamSynchronize(parts[d].stream));
    }
}

/* The second GPU's rows of c to their place behind the first one's, over the direct connection if
 * there is one. "Peer" copies name both devices. */
static void gather(const Part *parts) {
    float *to = parts[0].c + (size_t)parts[1].first_row * SIZE;
    size_t bytes = (size_t)parts[1].rows * SIZE * sizeof(float);
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
static float *new_matrix(size_t count, unsigned state) {
    float *x = (float *)malloc(count * sizeof(float));
    if (!x) exit(1);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int)(state >> 16) % 9 - 4);
    }
    return x;
}

/* How many elements of the first GPU's c are wrong; afterwards they are all NaN. */
static size_t count_wrong(const Part *parts, float *h_c, const float *expected, size_t count) {
    size_t wrong = 0, bytes = count * sizeof(float);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemcpy(h_c, parts[0].c, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemset(parts[0].c, 0xFF, bytes));
    for (size_t i = 0; i < count; i++) wrong += !(h_c[i] - expected[i] == 0);
    return wrong;
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
    const size_t count = (size_t)SIZE * SIZE;
    printf("devices: two of %d, %s; matrices of %d x %d; direct connection: %s\n", devices,
           device.name, SIZE, SIZE, direct ? "yes" : "no");

    float *h_a = new_matrix(count, 1), *h_b = new_matrix(count, 2);
    float *h_c = new_matrix(count, 3), *expected = (float *)calloc(count, sizeof(float));
    if (!expected) return 1;
    matmul_on_host(h_a, h_b, expected);

    Part parts[DEVICES];
    CHECK(cudaSetDevice(1));
    parts[1] = new_part(SIZE / 2, SIZE - SIZE / 2, SIZE - SIZE / 2, h_a, h_b);
    CHECK(cudaSetDevice(0));
    parts[0] = new_part(0, SIZE / 2, SIZE, h_a, h_b);

    /* Once for the result, from the memory of the first GPU. */
    multiply_on_one(parts);
    size_t wrong = count_wrong(parts, h_c, expected, count);
    multiply_on_both(parts);
    gather(parts);
    wrong += count_wrong(parts, h_c, expected, count);

    double one_us = 0, both_us = 0, gather_us = 0;
    for (int i = 0; i < REPEATS; i++) {
        double t0 = now_us();
        multiply_on_one(parts);
        double t1 = now_us();
        multiply_on_both(parts);
        double t2 = now_us();
        gather(parts);
        one_us += (t1 - t0) / REPEATS;
        both_us += (t2 - t1) / REPEATS;
        gather_us += (now_us() - t2) / REPEATS;
    }
    printf("%zu elements are wrong\n", wrong);
    printf("measured: one GPU %.0f us, two %.0f us (%.2f times as fast), bringing the halves "
           "together %.0f us\n",
           one_us, both_us, one_us / both_us, gather_us);

    for (int d = 0; d < DEVICES; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaFree(parts[d].a));
        CHECK(cudaFree(parts[d].b));
        CHECK(cudaFree(parts[d].c));
        CHECK(cudaStreamDestroy(parts[d].stream));
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
 *    the sum of both. Do it by halves. GPU 0 copies the first half of GPU 1's vector into a buffer
 *    of its own and adds it to the first half of its own vector; GPU 1 does so with the second
 *    half. When both are done, GPU 0 copies its first half, now a sum, over the first half of GPU
 *    1's vector, and GPU 1 its second half over GPU 0's.
 * 2. Do the product on as many GPUs as there are. */
