/* Captures and graphs: work is kept until a launch, which runs it in order with all other work;
 * what a capture forbids gives the runtime's errors, and invalidates it. */
#include "check.h"

#include <thread>

namespace {

__global__ void triple_kernel(int *x) { x[threadIdx.x] *= 3; }
__global__ void add_kernel(int *x, const int *y) { x[threadIdx.x] += y[threadIdx.x]; }

const auto GLOBAL = cudaStreamCaptureModeGlobal, THREAD_LOCAL = cudaStreamCaptureModeThreadLocal,
           RELAXED = cudaStreamCaptureModeRelaxed;

struct Streams {
    cudaStream_t a, b;
    cudaEvent_t event;
    Streams() {
        CHECK_EQUAL(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), 0);
        CHECK_EQUAL(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), 0);
        CHECK_EQUAL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), 0);
    }
    ~Streams() {
        CHECK_EQUAL(cudaStreamDestroy(a), 0);
        CHECK_EQUAL(cudaStreamDestroy(b), 0);
        CHECK_EQUAL(cudaEventDestroy(event), 0);
    }
};

cudaStreamCaptureStatus status_of(cudaStream_t stream) {
    auto status = cudaStreamCaptureStatusInvalidated;
    CHECK_EQUAL(cudaStreamIsCapturing(stream, &status), 0);
    return status;
}

/* Ends a capture that is valid, or was invalidated. */
void end(cudaStream_t stream, bool valid) {
    cudaGraph_t graph = nullptr;
    CHECK_EQUAL(status_of(stream),
                valid ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated);
    CHECK_EQUAL(cudaStreamEndCapture(stream, &graph),
                valid ? 0 : cudaErrorStreamCaptureInvalidated);
    CHECK_EQUAL(graph != nullptr, valid);
    CHECK_EQUAL(status_of(stream), cudaStreamCaptureStatusNone);
    if (graph) CHECK_EQUAL(cudaGraphDestroy(graph), 0);
    cudaGetLastError();
}

cudaGraphExec_t end_and_instantiate(cudaStream_t stream, size_t work = 1) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    size_t nodes = 0;
    CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), 0);
    CHECK_EQUAL(cudaGraphGetNodes(graph, nullptr, &nodes), 0);
    CHECK_EQUAL(nodes, work);
    CHECK_EQUAL(cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_EQUAL(cudaGraphDestroy(graph), 0);
    return exec;
}

void check_launches() {
    Streams s;
    DeviceArray<int> x(4), y(4);
    int values[4] = {1, 2, 3, 4}, seen[4];
    x.write(values), y.write(values);
    CHECK_EQUAL(cudaStreamBeginCapture(s.a, GLOBAL), 0);
    CHECK_EQUAL(LAUNCH_ON(s.a, triple_kernel, 1, 4, 0, x.data), 0);
    CHECK_EQUAL(LAUNCH_ON(s.a, add_kernel, 1, 4, 0, x.data, (const int *)y.data), 0);
    CHECK_EQUAL(cudaMemsetAsync(y.data, 0, 4, s.a), 0);
    auto exec = end_and_instantiate(s.a, 3);
    x.read(seen);
    CHECK_EQUAL(seen[1], 2); /* nothing ran */
    CHECK_EQUAL(cudaGraphLaunch(exec, s.a), 0);
    CHECK_EQUAL(cudaGraphLaunch(exec, s.b), 0); /* behind the launch on the other stream */
    CHECK_EQUAL(LAUNCH_ON(s.b, triple_kernel, 1, 4, 0, x.data), 0);
    CHECK_EQUAL(cudaStreamSynchronize(s.b), 0);
    x.read(seen);
    CHECK_EQUAL(seen[0], ((1 * 3 + 1) * 3 + 0) * 3);
    CHECK_EQUAL(seen[3], ((4 * 3 + 4) * 3 + 4) * 3);
    CHECK_EQUAL(cudaGraphExecDestroy(exec), 0);
    CHECK_EQUAL(cudaGraphExecDestroy(exec), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaGraphLaunch(exec, s.a), cudaErrorInvalidValue);
    cudaGetLastError();
}

/* A launch runs on the memory as it is then: freed memory is an error, as on a card. */
void check_freed_memory() {
    Streams s;
    int *x;
    CHECK_EQUAL(cudaMalloc(&x, 16), 0);
    CHECK_EQUAL(cudaStreamBeginCapture(s.a, GLOBAL), 0);
    CHECK_EQUAL(LAUNCH_ON(s.a, triple_kernel, 1, 4, 0, x), 0);
    auto exec = end_and_instantiate(s.a);
    CHECK_EQUAL(cudaFree(x), 0);
    cudaGraphLaunch(exec, s.a);
    CHECK_EQUAL(cudaStreamSynchronize(s.a), cudaErrorIllegalAddress);
    pvg_sim_reset();
    CHECK_EQUAL(cudaGraphExecDestroy(exec), 0);
}

/* Ways to break a capture of any mode: what they return, and that they break it. */
void check_what_is_forbidden() {
    Streams s;
    DeviceArray<int> x(4);
    CHECK_EQUAL(LAUNCH_ON(s.b, triple_kernel, 1, 4, 0, x.data), 0);
    CHECK_EQUAL(cudaEventRecord(s.event, s.b), 0);
    for (auto mode : {GLOBAL, THREAD_LOCAL, RELAXED}) {
        auto broken_by = [&](auto call, cudaError_t expected) {
            CHECK_EQUAL(cudaStreamBeginCapture(s.a, mode), 0);
            CHECK_EQUAL(call(), expected);
            CHECK_EQUAL(LAUNCH_ON(s.a, triple_kernel, 1, 4, 0, x.data),
                        cudaErrorStreamCaptureInvalidated);
            end(s.a, false);
        };
        broken_by([&] { return cudaStreamSynchronize(s.a); }, cudaErrorStreamCaptureUnsupported);
        broken_by([&] { return cudaStreamQuery(s.a); }, cudaErrorStreamCaptureUnsupported);
        broken_by([&] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported);
        broken_by([&] { return cudaStreamWaitEvent(s.a, s.event, 0); },
                  cudaErrorStreamCaptureIsolation);
    }
    CHECK_EQUAL(cudaStreamBeginCapture(s.a, RELAXED), 0); /* and what does not break it */
    CHECK_EQUAL(cudaStreamSynchronize(s.b), 0);
    CHECK_EQUAL(cudaEventSynchronize(s.event), 0);
    CHECK_EQUAL(cudaEventRecord(s.event, s.a), 0);
    CHECK_EQUAL(cudaEventSynchronize(s.event), cudaErrorCapturedEvent);
    CHECK_EQUAL(cudaEventQuery(s.event), cudaErrorCapturedEvent);
    CHECK_EQUAL(cudaStreamWaitEvent(s.b, s.event, 0), cudaErrorCapturedEvent);
    CHECK_EQUAL(cudaStreamWaitEvent(s.a, s.event, 0), 0);
    CHECK_EQUAL(cudaStreamBeginCapture(s.a, RELAXED), cudaErrorIllegalState);
    CHECK_EQUAL(cudaStreamBeginCapture(nullptr, RELAXED), cudaErrorStreamCaptureUnsupported);
    end(s.a, true);
    cudaGraph_t graph;
    CHECK_EQUAL(cudaStreamEndCapture(s.a, &graph), cudaErrorIllegalState);
    cudaGetLastError();
}

/* cudaMalloc while this thread or another one captures, in a thread's mode: is it allowed? */
bool may_allocate(cudaStreamCaptureMode capture, cudaStreamCaptureMode thread, bool same_thread) {
    Streams s;
    cudaError_t error = cudaSuccess;
    CHECK_EQUAL(cudaStreamBeginCapture(s.a, capture), 0);
    auto attempt = [&] {
        void *memory = nullptr;
        auto mode = thread;
        CHECK_EQUAL(cudaThreadExchangeStreamCaptureMode(&mode), 0);
        CHECK_EQUAL(mode, GLOBAL);
        error = cudaMalloc(&memory, 16);
        if (!error) CHECK_EQUAL(cudaFree(memory), 0);
        CHECK_EQUAL(cudaThreadExchangeStreamCaptureMode(&mode), 0);
        CHECK_EQUAL(mode, thread);
    };
    if (same_thread) {
        attempt();
    } else {
        std::thread(attempt).join();
    }
    CHECK(error == cudaSuccess || error == cudaErrorStreamCaptureUnsupported);
    end(s.a, error == cudaSuccess);
    return error == cudaSuccess;
}

void check_modes() {
    for (auto capture : {GLOBAL, THREAD_LOCAL, RELAXED}) {
        for (auto thread : {GLOBAL, THREAD_LOCAL, RELAXED}) {
            bool relaxed = thread == RELAXED;
            CHECK_EQUAL(may_allocate(capture, thread, true), relaxed || capture == RELAXED);
            CHECK_EQUAL(may_allocate(capture, thread, false),
                        thread != GLOBAL || capture != GLOBAL);
        }
    }
    Streams s;
    cudaGraph_t graph;
    CHECK_EQUAL(cudaStreamBeginCapture(s.a, THREAD_LOCAL), 0);
    std::thread([&] {
        CHECK_EQUAL(cudaStreamEndCapture(s.a, &graph), cudaErrorStreamCaptureWrongThread);
    }).join();
    end(s.a, true);
}

void check_injected() {
    Streams s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    pvg_sim_fail("graph", 1);
    CHECK_EQUAL(cudaStreamBeginCapture(s.a, GLOBAL), cudaErrorMemoryAllocation);
    CHECK_EQUAL(status_of(s.a), cudaStreamCaptureStatusNone);
    CHECK_EQUAL(cudaStreamBeginCapture(s.a, GLOBAL), 0);
    CHECK_EQUAL(cudaStreamEndCapture(s.a, &graph), 0);
    pvg_sim_fail("graph", 1);
    CHECK_EQUAL(cudaGraphInstantiate(&exec, graph, 0), cudaErrorMemoryAllocation);
    CHECK_EQUAL(cudaGraphInstantiate(&exec, graph, 0), 0);
    pvg_sim_fail("graph", 1);
    CHECK_EQUAL(cudaGraphLaunch(exec, s.a), cudaErrorMemoryAllocation);
    CHECK_EQUAL(cudaGraphLaunch(exec, s.a), 0);
    CHECK_EQUAL(pvg_sim_count("live_graphs"), 2);
    CHECK_EQUAL(cudaGraphDestroy(graph), 0);
    CHECK_EQUAL(cudaGraphExecDestroy(exec), 0);
    cudaGetLastError();
}

} /* namespace */

int main() {
    for (int deferred = 0; deferred <= 1; deferred++) {
        CHECK_EQUAL(pvg_sim_set("deferred", deferred), 0);
        check_launches();
        check_freed_memory();
        check_what_is_forbidden();
        check_modes();
        check_injected();
    }
    CHECK_EQUAL(pvg_sim_set("deferred", 0), 0);
    CHECK_EQUAL(pvg_sim_count("live_graphs"), 0);
    CHECK_EQUAL(pvg_sim_count("live_streams"), 0);
    CHECK_EQUAL(pvg_sim_count("pending"), 0);
    return finish("graphs");
}
