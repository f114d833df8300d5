/* Lesson 07: what the transfer costs; pinned memory; streams that overlap.
 *
 * Before a kernel can work, its numbers have to come down to the device, and afterwards up again,
 * over a connection (usually PCI Express) that is ten to a hundred times slower than the
 * device's own memory. Three remedies:
 *
 *   Stay there: do all work on the device, copy at the start and at the end. This is the best one.
 *   PINNED memory: host memory that the operating system promises not to move. The device fetches
 *     from it by itself; from ordinary memory the driver first has to copy it aside.
 *   STREAMS: a stream is a queue of tasks for the device. Tasks in one stream run one after the
 *     other; those in different streams may run at the same time. So we cut the work in pieces, and
 *     while one piece is computed, the next comes down and the one before goes up. (Copies down,
 *     copies up and kernels are done by different parts of the device.)
 *
 *     nvcc -O3 -arch=native 07_transfers.cu -o 07_transfers && ./07_transfers
 *
 * What to look for: on a GPU the kernel is the smallest part of the time, pinned memory is faster
 * than ordinary memory, and pieces are faster than one go. (On the simulated card nothing overlaps,
 * all memory is the host's, and the kernel, run by the CPU, is the largest part.) */
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

enum { PIECES = 8, STREAMS = 3 };
static const int64_t n = 1 << 24, piece = n / PIECES; /* 16 million numbers, 64 MiB */
static const size_t bytes = n * sizeof(float), piece_bytes = bytes / PIECES;

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

static void launch(float *d_x, int64_t count, cudaStream_t stream) {
    /* The third value in <<< >>> is for lesson 11, the fourth is the stream. */
    square_plus_one<<<(unsigned)((count + 255) / 256), 256, 0, stream>>>(d_x, count);
    CHECK(cudaGetLastError());
}

/* Down, kernel, up, one after the other. Prints the three times, returns their sum. */
static double in_one_go(const char *kind, float *h_x, float *d_x) {
    double t0 = now_ms();
    CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
    double t1 = now_ms();
    launch(d_x, n, 0); /* 0 is the stream that is always there, the default stream */
    CHECK(cudaDeviceSynchronize());
    double t2 = now_ms();
    CHECK(cudaMemcpy(h_x, d_x, bytes, cudaMemcpyDeviceToHost));
    double t3 = now_ms();
    printf("%s memory: down %6.2f ms (%5.1f GB/s), kernel %6.3f ms, up %6.2f ms (%5.1f GB/s)\n",
           kind, t1 - t0, 1e-6 * (double)bytes / (t1 - t0), t2 - t1, t3 - t2,
           1e-6 * (double)bytes / (t3 - t2));
    return t3 - t0;
}

/* The same in pieces, dealt to the streams in turn. cudaMemcpyAsync only puts the copy into the
 * queue; for this to be true the host's memory must be pinned, and must be left alone until the
 * wait at the end. A stream works in order, so a piece's kernel needs no other wait. */
static double in_pieces(float *h_x, float *d_x, cudaStream_t *streams) {
    double start = now_ms();
    for (int p = 0; p < PIECES; p++) {
        float *h = h_x + p * piece, *d = d_x + p * piece;
        cudaStream_t stream = streams[p % STREAMS];
        CHECK(cudaMemcpyAsync(d, h, piece_bytes, cudaMemcpyHostToDevice, stream));
        launch(d, piece, stream);
        CHECK(cudaMemcpyAsync(h, d, piece_bytes, cudaMemcpyDeviceToHost, stream));
    }
    CHECK(cudaDeviceSynchronize()); /* waits for all streams */
    return now_ms() - start;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    printf("device: %s\n", device.name);

    float *pageable = (float *)malloc(bytes), *pinned, *d_x;
    cudaStream_t streams[STREAMS];
    if (!pageable) return 1;
    CHECK(cudaMallocHost(&pinned, bytes)); /* a malloc() of pinned memory, slow: do it once */
    CHECK(cudaMalloc(&d_x, bytes));
    for (int s = 0; s < STREAMS; s++) CHECK(cudaStreamCreate(&streams[s]));
    launch(d_x, n, 0); /* a first run also loads the kernel: not measured */
    CHECK(cudaDeviceSynchronize());

    fill(pageable);
    in_one_go("ordinary", pageable, d_x);
    int64_t wrong = count_wrong(pageable);

    fill(pinned);
    double whole = in_one_go("pinned  ", pinned, d_x);
    wrong += count_wrong(pinned);

    fill(pinned);
    double overlapped = in_pieces(pinned, d_x, streams);
    wrong += count_wrong(pinned);
    printf("measured: pinned in one go %.2f ms, in %d pieces on %d streams %.2f ms\n", whole,
           PIECES, STREAMS, overlapped);
    printf("%lld elements are wrong\n", (long long)wrong);

    for (int s = 0; s < STREAMS; s++) CHECK(cudaStreamDestroy(streams[s]));
    CHECK(cudaFree(d_x));
    CHECK(cudaFreeHost(pinned));
    free(pageable);
    return wrong ? 1 : 0;
}

/* Exercises (solutions/07_transfers.cu; what they measure needs a GPU):
 *
 * 1. Is 8 a good number of pieces? Measure 1, 2, 4, ... 64. Why is a very large number bad again?
 * 2. Memory from malloc() can be pinned afterwards, by cudaHostRegister(pointer, bytes, 0), and has
 *    to be released by cudaHostUnregister(pointer) before free(). How long does the pinning itself
 *    take? */
