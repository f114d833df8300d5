/* Stream capture and graphs: the work of a stream is kept instead of run, and a launch submits it
 * again, in order.
 *
 * A capture has one stream, which is not a legacy one: nothing forks into a second stream, and a
 * graph has no other way to be made. What a capture forbids ends with the runtime's error, and
 * leaves the capture invalidated: waits for its stream or for its card, waits of its stream for
 * work outside of it, and, by the modes of capture and thread, calls like cudaMalloc. */
#include "simulator.h"

#include <pthread.h>
#include <set>
#include <vector>

namespace pvg_sim {

struct Capture {
    int device;
    pthread_t owner;
    cudaStreamCaptureMode mode;
    bool invalidated = false;
    std::vector<std::function<void()>> work;
};

struct Graph {
    int device;
    std::vector<std::function<void()>> work;
};

struct Executable {
    Graph graph;
    std::shared_ptr<Stream> stream; /* of the last launch, nullptr before it */
    uint64_t ticket;
};

/* Never destroyed: an application may still free what it has while the process exits. */
static auto &captures = *new std::set<std::shared_ptr<Capture>>;
static auto &graphs = *new std::set<cudaGraph_t>;
static auto &executables = *new std::set<cudaGraphExec_t>;

static thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

template <class F> static cudaError_t invalidate(F forbids) {
    cudaError_t error = cudaSuccess;
    for (const auto &capture : captures) {
        if (!forbids(*capture)) continue;
        capture->invalidated = true;
        error = cudaErrorStreamCaptureUnsupported;
    }
    return error;
}

cudaError_t check_unsafe() {
    if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
    return invalidate([](const Capture &c) {
        if (pthread_equal(c.owner, pthread_self())) return c.mode != cudaStreamCaptureModeRelaxed;
        return c.mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
    });
}

cudaError_t check_wait(const Stream &stream) {
    return invalidate([&](const Capture &c) { return &c == stream.capture.get(); });
}

cudaError_t check_wait_for_card(int device) {
    return invalidate([&](const Capture &c) { return c.device == device; });
}

cudaError_t capture_work(Capture &capture, std::function<void()> work) {
    if (capture.invalidated) return cudaErrorStreamCaptureInvalidated;
    capture.work.push_back(std::move(work));
    return cudaSuccess;
}

cudaError_t capture_wait(Capture &capture, bool captured_event) {
    if (captured_event) return cudaSuccess; /* of this very stream: the work is in order anyway */
    capture.invalidated = true;
    return cudaErrorStreamCaptureIsolation;
}

/* What is kept is run in the order of all earlier launches of the same graph. */
static void launch(Executable &e, const std::shared_ptr<Stream> &stream) {
    submit(stream, [before = e.stream, ticket = e.ticket, own = stream.get()] {
        if (before && before.get() != own) run_until(*before, ticket);
        set_running_card(own->device);
    });
    for (const auto &work : e.graph.work) submit(stream, work);
    e.stream = stream, e.ticket = stream->recorded;
}

} /* namespace pvg_sim */

using namespace pvg_sim;

extern "C" cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    Call call;
    if (!mode || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed) {
        return call.finish(cudaErrorInvalidValue);
    }
    std::swap(*mode, thread_mode);
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    Call call;
    auto stream = find_stream(handle);
    if (!stream) return call.finish(cudaErrorInvalidResourceHandle);
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
        return call.finish(cudaErrorInvalidValue);
    }
    if (stream == find_stream(nullptr)) return call.finish(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return call.finish(cudaErrorIllegalState);
    if (injected(FAULT_GRAPH)) return call.finish(cudaErrorMemoryAllocation);
    stream->capture.reset(new Capture{stream->device, pthread_self(), mode, false, {}});
    captures.insert(stream->capture);
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *result) {
    Call call;
    auto stream = find_stream(handle);
    if (!stream) return call.finish(cudaErrorInvalidResourceHandle);
    auto capture = stream->capture;
    if (!result) return call.finish(cudaErrorInvalidValue);
    if (!capture) return call.finish(cudaErrorIllegalState);
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        !pthread_equal(capture->owner, pthread_self())) {
        return call.finish(cudaErrorStreamCaptureWrongThread);
    }
    captures.erase(capture);
    stream->capture = nullptr;
    *result = nullptr;
    if (capture->invalidated) return call.finish(cudaErrorStreamCaptureInvalidated);
    *result = reinterpret_cast<cudaGraph_t>(new Graph{capture->device, capture->work});
    graphs.insert(*result);
    counters[COUNT_LIVE_GRAPHS]++;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
    Call call;
    auto stream = find_stream(handle);
    if (!stream) return call.finish(cudaErrorInvalidResourceHandle);
    if (!status) return call.finish(cudaErrorInvalidValue);
    *status = !stream->capture               ? cudaStreamCaptureStatusNone
              : stream->capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                             : cudaStreamCaptureStatusActive;
    return call.finish(cudaSuccess);
}

/* Nodes have no handles here: they can be counted. */
extern "C" cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t *nodes,
                                         size_t *count) {
    Call call;
    if (nodes) return call.finish(cudaErrorNotSupported);
    if (!count || !graphs.count(handle)) return call.finish(cudaErrorInvalidValue);
    *count = reinterpret_cast<Graph *>(handle)->work.size();
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t *result, cudaGraph_t handle,
                                            unsigned long long flags) {
    Call call;
    if (!result || flags || !graphs.count(handle)) return call.finish(cudaErrorInvalidValue);
    if (cudaError_t lost = sticky_error()) return call.finish(lost);
    if (injected(FAULT_GRAPH)) return call.finish(cudaErrorMemoryAllocation);
    const Graph &graph = *reinterpret_cast<Graph *>(handle);
    *result = reinterpret_cast<cudaGraphExec_t>(new Executable{graph, nullptr, 0});
    executables.insert(*result);
    counters[COUNT_LIVE_GRAPHS]++;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
    Call call;
    auto stream = find_stream(stream_handle);
    if (!stream) return call.finish(cudaErrorInvalidResourceHandle);
    if (!executables.count(handle)) return call.finish(cudaErrorInvalidValue);
    auto &executable = *reinterpret_cast<Executable *>(handle);
    if (executable.graph.device != stream->device) return call.finish(cudaErrorInvalidValue);
    if (stream->capture) return call.finish(cudaErrorNotSupported); /* a graph in a graph */
    if (cudaError_t lost = sticky_error()) return call.finish(lost);
    if (injected(FAULT_GRAPH)) return call.finish(cudaErrorMemoryAllocation);
    counters[COUNT_GRAPH_LAUNCH]++;
    launch(executable, stream);
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
    Call call;
    if (!executables.erase(handle)) return call.finish(cudaErrorInvalidValue);
    delete reinterpret_cast<Executable *>(handle);
    counters[COUNT_LIVE_GRAPHS]--;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
    Call call;
    if (!graphs.erase(handle)) return call.finish(cudaErrorInvalidValue);
    delete reinterpret_cast<Graph *>(handle);
    counters[COUNT_LIVE_GRAPHS]--;
    return call.finish(cudaSuccess);
}
