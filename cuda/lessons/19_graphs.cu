/* Lesson 19: CUDA graphs, for work that is made of many small kernels.
 *
 *     nvcc -O3 -arch=native 19_graphs.cu -o 19_graphs && ./19_graphs
 *
 * A launch costs the host about 2 to 4 us. A kernel on a few thousand numbers is done sooner than
 * that, so the device waits for the host, and a faster device is no help. The network of lesson 17
 * is not far from that: ten small kernels a step, the same ten in every step.
 *
 * A GRAPH is such a sequence of launches as a thing of its own: which kernels, with which
 * arguments, which after which. It is made once and then launched as a whole, by one call. The
 * easiest way to make it is CAPTURE: between cudaStreamBeginCapture() and cudaStreamEndCapture()
 * what is put into the stream is not run but written down. So the code that launches stays as it
 * is.
 *
 *     stream, capture  ->  cudaGraph_t (the list)  ->  cudaGraphExec_t (ready to run)  ->  launches
 *
 * What is written down are the arguments' values, so a graph works on the same addresses each time,
 * and what shall change from run to run must be in device memory (exercise 1).
 *
 * What to look for: microseconds for each kernel, with and without the graph. (The simulated card
 * has no driver whose work a graph could save: there both are the same.) */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A small kernel whose order matters: to y goes what x has become after one step of a random number
 * generator, mixed with the step's number and with a neighbour. Left out or run twice, or out of
 * turn, it leaves other numbers. Unsigned numbers overflow the same way everywhere. */
static __global__ void mix(const uint32_t *x, uint32_t *y, int n, uint32_t step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 1664525u + x[(i + 1) % n] + step;
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { COUNT = 2000, STEPS = 50, ROUNDS = 20, THREADS = 256 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* A round: STEPS small kernels, from x to y and from y to x in turn. */
static void launch_round(uint32_t *d_x, uint32_t *d_y, cudaStream_t stream) {
    for (int step = 0; step < STEPS; step += 2) {
        mix<<<(COUNT + THREADS - 1) / THREADS, THREADS, 0, stream>>>(d_x, d_y, COUNT, step);
        CHECK(cudaGetLastError());
        mix<<<(COUNT + THREADS - 1) / THREADS, THREADS, 0, stream>>>(d_y, d_x, COUNT, step + 1);
        CHECK(cudaGetLastError());
    }
}

/* The C loop: a whole round on the host. */
static void round_on_host(uint32_t *x, uint32_t *y) {
    for (uint32_t step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++) y[i] = x[i] * 1664525u + x[(i + 1) % COUNT] + step;
        memcpy(x, y, COUNT * sizeof(uint32_t));
    }
}

static void copy_to_device(uint32_t *d_x, const uint32_t *values, cudaStream_t stream) {
    CHECK(cudaMemcpyAsync(d_x, values, COUNT * sizeof *values, cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));
}

static int count_wrong(const uint32_t *d_x, const uint32_t *expected) {
    static uint32_t h_x[COUNT];
    int wrong = 0;
    CHECK(cudaMemcpy(h_x, d_x, sizeof h_x, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) wrong += h_x[i] != expected[i];
    return wrong;
}

/* What launch_round() does, written down and made ready. Nothing runs here. */
static cudaGraphExec_t capture_round(uint32_t *d_x, uint32_t *d_y, cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    /* "ThreadLocal": only this thread must not do what would disturb a capture, such as waiting. */
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch_round(d_x, d_y, stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
    printf("the graph has %zu nodes, one for each kernel\n", nodes);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph)); /* the list; what is ready to run does not need it */
    return exec;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    printf("device: %s; %d rounds of %d kernels on %d numbers\n", device.name, ROUNDS, STEPS,
           COUNT);

    static uint32_t start_values[COUNT], expected[COUNT], scratch[COUNT];
    uint32_t *d_x, *d_y;
    cudaStream_t stream;
    CHECK(cudaMalloc(&d_x, sizeof expected));
    CHECK(cudaMalloc(&d_y, sizeof expected));
    /* The default stream cannot be captured, so this one has nothing to do with it. */
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < COUNT; i++) start_values[i] = expected[i] = (uint32_t)i;
    double start = now_us();
    for (int round = 0; round < ROUNDS; round++) round_on_host(expected, scratch);
    double host_us = now_us() - start;

    /* One round for nothing, since first launches are slow; then all rounds, launch by launch. */
    launch_round(d_x, d_y, stream);
    CHECK(cudaStreamSynchronize(stream));
    copy_to_device(d_x, start_values, stream);
    start = now_us();
    for (int round = 0; round < ROUNDS; round++) launch_round(d_x, d_y, stream);
    CHECK(cudaStreamSynchronize(stream));
    double launches_us = now_us() - start;
    int wrong = count_wrong(d_x, expected);

    /* The same by a graph: one launch a round. */
    start = now_us();
    cudaGraphExec_t exec = capture_round(d_x, d_y, stream);
    double capture_us = now_us() - start;
    CHECK(cudaGraphLaunch(exec, stream)); /* for nothing, as above */
    CHECK(cudaStreamSynchronize(stream));
    copy_to_device(d_x, start_values, stream);
    start = now_us();
    for (int round = 0; round < ROUNDS; round++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    double graph_us = now_us() - start;
    int graph_wrong = count_wrong(d_x, expected);

    double kernels = (double)ROUNDS * STEPS;
    printf("wrong numbers: launch by launch %d, by the graph %d; making the graph took %.0f us\n",
           wrong, graph_wrong, capture_us);
    printf("measured: C loop %.2f us a kernel's work, launch by launch %.2f us a kernel, by the "
           "graph %.2f us\n",
           host_us / kernels, launches_us / kernels, graph_us / kernels);

    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    return wrong || graph_wrong ? 1 : 0;
}

/* Exercises (solutions/19_graphs.cu):
 *
 * 1. Add the number of the round to x in each round. As an argument it would be written down once
 *    and for all; keep it in device memory, where a kernel of the graph reads it and counts it up.
 * 2. Capture two streams into one graph: the second one does other work at the same time. It joins
 *    the capture by waiting for an event of the first (cudaEventRecord, cudaStreamWaitEvent), and
 *    the first has to wait for it again before the capture ends. */
