/* Solutions of lesson 19.
 *
 *     nvcc -O3 -arch=native 19_graphs.cu -o 19_graphs && ./19_graphs
 *
 * 1. add_round() reads the number of the round from device memory, and count_up() raises it at the
 *    end of each round. What the graph has written down is the address, which never changes.
 * 2. cudaStreamWaitEvent() on an event of a stream that is being captured takes the waiting stream
 *    into the same graph: it forks there. Before the capture ends the first stream waits for an
 *    event of the second: they join. In the graph the two doublings stand side by side. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000, THREADS = 256, BLOCKS = (COUNT + THREADS - 1) / THREADS, ROUNDS = 7 };

static __global__ void add_round(uint32_t *x, const uint32_t *round, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 3 + *round;
}

static __global__ void count_up(uint32_t *round) { *round += 1; }

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* The graph that a stream has been writing down, ready to run. */
static cudaGraphExec_t end_capture(cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return exec;
}

static cudaGraphExec_t capture_round(uint32_t *d_x, uint32_t *d_round, cudaStream_t stream) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    add_round<<<BLOCKS, THREADS, 0, stream>>>(d_x, d_round, COUNT);
    CHECK(cudaGetLastError());
    count_up<<<1, 1, 0, stream>>>(d_round);
    CHECK(cudaGetLastError());
    return end_capture(stream);
}

static int count_wrong(const uint32_t *d_x, const uint32_t *expected) {
    static uint32_t h_x[COUNT];
    int wrong = 0;
    CHECK(cudaMemcpy(h_x, d_x, sizeof h_x, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) wrong += h_x[i] != expected[i];
    return wrong;
}

/* For nvcc alone: the simulated card captures one stream at a time. */
#ifdef __CUDACC__

static __global__ void double_all(uint32_t *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}

static __global__ void add(const uint32_t *x, const uint32_t *y, uint32_t *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = x[i] + y[i];
}

/* sum = 2 x + 2 y, with the doublings on two streams. */
static cudaGraphExec_t capture_fork(uint32_t *d_x, uint32_t *d_y, uint32_t *d_sum,
                                    cudaStream_t stream, cudaStream_t other) {
    cudaEvent_t fork, join;
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(other, fork, 0));
    double_all<<<BLOCKS, THREADS, 0, stream>>>(d_x, COUNT);
    CHECK(cudaGetLastError());
    double_all<<<BLOCKS, THREADS, 0, other>>>(d_y, COUNT);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(join, other));
    CHECK(cudaStreamWaitEvent(stream, join, 0));
    add<<<BLOCKS, THREADS, 0, stream>>>(d_x, d_y, d_sum, COUNT);
    CHECK(cudaGetLastError());
    cudaGraphExec_t exec = end_capture(stream);
    CHECK(cudaEventDestroy(fork));
    CHECK(cudaEventDestroy(join));
    return exec;
}

static int sum_of_doubles(uint32_t *d_x, uint32_t *d_y, const uint32_t *expected,
                          cudaStream_t stream) {
    uint32_t *d_sum;
    cudaStream_t other;
    CHECK(cudaMalloc(&d_sum, COUNT * sizeof *d_sum));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    cudaGraphExec_t exec = capture_fork(d_x, d_y, d_sum, stream, other);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    int wrong = count_wrong(d_sum, expected);
    printf("2. two streams in one graph: %d of %d wrong\n", wrong, COUNT);
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaFree(d_sum));
    return wrong;
}

#else

static int sum_of_doubles(uint32_t *, uint32_t *, const uint32_t *, cudaStream_t) {
    printf("2. the simulated card captures one stream at a time\n");
    return 0;
}

#endif

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    static uint32_t x[COUNT], expected[COUNT];
    const size_t bytes = sizeof x;
    uint32_t *d_x, *d_y, *d_round;
    cudaStream_t stream;
    CHECK(cudaMalloc(&d_x, bytes));
    CHECK(cudaMalloc(&d_y, bytes));
    CHECK(cudaMalloc(&d_round, sizeof *d_round));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < COUNT; i++) x[i] = expected[i] = (uint32_t)i;
    CHECK(cudaMemcpy(d_x, x, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_y, x, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_round, 0, sizeof *d_round));
    CHECK(cudaDeviceSynchronize());

    cudaGraphExec_t exec = capture_round(d_x, d_round, stream);
    for (int round = 0; round < ROUNDS; round++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) expected[i] = expected[i] * 3 + round;
    }
    int wrong = count_wrong(d_x, expected);
    printf("1. %d rounds that know their number: %d of %d wrong\n", ROUNDS, wrong, COUNT);

    for (int i = 0; i < COUNT; i++) expected[i] = 2 * expected[i] + 2 * x[i];
    int more_wrong = sum_of_doubles(d_x, d_y, expected, stream);

    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    CHECK(cudaFree(d_round));
    return wrong || more_wrong ? 1 : 0;
}
