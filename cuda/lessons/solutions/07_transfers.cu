/* Solutions of lesson 07.
 *
 *     nvcc -O3 -arch=native 07_transfers.cu -o 07_transfers && ./07_transfers
 *
 * 1. With one piece nothing can overlap. With very many, each copy and each launch is so short that
 *    what it costs to start one, a few microseconds, is most of its time.
 * 2. Pinning takes about as long as a transfer or longer, since the operating system has to see to
 *    every page. It pays when the same memory is used again and again. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static __global__ void square_plus_one(float *x, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * x[i] + 1;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { STREAMS = 3 };
static const int64_t n = 1 << 22;
static const size_t bytes = n * sizeof(float);

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void fill(float *x) {
    for (int64_t i = 0; i < n; i++) x[i] = (float)(i % 1000);
}

static int64_t count_wrong(const float *x) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        float was = (float)(i % 1000);
        wrong += !(fabsf(x[i] - (was * was + 1)) <= 0);
    }
    return wrong;
}

/* Down, kernel and up in so many pieces (a power of two), dealt to the streams; in milliseconds. */
static double in_pieces(int pieces, float *h_x, float *d_x, cudaStream_t *streams) {
    const int64_t piece = n / pieces;
    const size_t piece_bytes = piece * sizeof(float);
    double start = now_ms();
    for (int p = 0; p < pieces; p++) {
        float *h = h_x + p * piece, *d = d_x + p * piece;
        cudaStream_t stream = streams[p % STREAMS];
        CHECK(cudaMemcpyAsync(d, h, piece_bytes, cudaMemcpyHostToDevice, stream));
        square_plus_one<<<(unsigned)((piece + 255) / 256), 256, 0, stream>>>(d, piece);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(h, d, piece_bytes, cudaMemcpyDeviceToHost, stream));
    }
    CHECK(cudaDeviceSynchronize());
    return now_ms() - start;
}

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    float *h_x = (float *)malloc(bytes), *d_x;
    cudaStream_t streams[STREAMS];
    if (!h_x) return 1;
    CHECK(cudaMalloc(&d_x, bytes));
    for (int s = 0; s < STREAMS; s++) CHECK(cudaStreamCreate(&streams[s]));
    fill(h_x);

    double start = now_ms();
    CHECK(cudaHostRegister(h_x, bytes, cudaHostRegisterDefault));
    double pinning_ms = now_ms() - start;

    int64_t wrong = 0;
    in_pieces(1, h_x, d_x, streams); /* a first run also loads the kernel: not measured */
    for (int pieces = 1; pieces <= 64; pieces *= 2) {
        fill(h_x);
        double ms = in_pieces(pieces, h_x, d_x, streams);
        int64_t wrong_now = count_wrong(h_x);
        printf("1. %2d pieces: %.2f ms, %lld elements wrong\n", pieces, ms, (long long)wrong_now);
        wrong += wrong_now;
    }
    printf("2. pinning %.0f MB: %.2f ms\n", 1e-6 * (double)bytes, pinning_ms);

    CHECK(cudaHostUnregister(h_x));
    for (int s = 0; s < STREAMS; s++) CHECK(cudaStreamDestroy(streams[s]));
    CHECK(cudaFree(d_x));
    free(h_x);
    return wrong ? 1 : 0;
}
