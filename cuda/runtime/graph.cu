// pvg_graph_begin, _end, _launch and _release, and what the pool, storages and streams ask while a
// recording lasts; see graph.cuh.
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/memory.cuh"
#include "runtime/stream.cuh"
#include <mutex>
#include <new>
#include <shared_mutex>
#include <stdio.h>
#include <stdlib.h>

namespace pvg {

struct Use {
    Storage *storage;
    bool written, own; // own: of the arena, not retained
};

struct Graph {
    std::atomic<int64_t> references{1}; // of the recording or handle, and of each storage in it
    int device = -1;
    Stream *stream = nullptr; // while it is recorded
    uint64_t arena_id = 0;    // the id of that stream, which the pool knows the arena by
    Storage *arena = nullptr;
    cudaGraphExec_t exec = nullptr;
    std::mutex lock; // guards the uses
    Use *uses = nullptr;
    size_t count = 0, capacity = 0;
    ErrorRecord error = {}; // what spoiled the recording
    Graph *next = nullptr;  // in the registry
};

namespace {

std::mutex registry_lock;
Graph *registry = nullptr; // graphs that an application has a handle of

// Held shared during cudaDeviceSynchronize, so that no recording begins meanwhile.
std::shared_mutex begin_lock;
int recordings[max_devices]; // that are going on

// Under the graph's lock: the storage's entry, looked for from the newest on, or NULL.
Use *find_use(Graph *graph, const Storage *storage) {
    for (size_t i = graph->count; i-- > 0;)
        if (graph->uses[i].storage == storage) return &graph->uses[i];
    return nullptr;
}

// Under the graph's lock.
int add_use(Graph *graph, const Use &use) {
    if (graph->count == graph->capacity) {
        size_t capacity = graph->capacity ? 2 * graph->capacity : 64;
        void *uses = realloc(graph->uses, capacity * sizeof(Use));
        PVG_REQUIRE(uses, PVG_ERROR_HOST_MEMORY, "no host memory for what a graph uses");
        graph->uses = static_cast<Use *>(uses), graph->capacity = capacity;
    }
    graph->uses[graph->count++] = use;
    return PVG_OK;
}

int new_graph(int device, Graph **result) {
    void *memory = malloc(sizeof(Graph));
    PVG_REQUIRE(memory, PVG_ERROR_HOST_MEMORY, "no host memory for a graph");
    Graph *graph = new (memory) Graph;
    graph->device = device;
    int status = wrap_storage(device, nullptr, 0, nullptr, nullptr, &graph->arena);
    if (status != PVG_OK) {
        graph->~Graph();
        free(graph);
        return status;
    }
    *result = graph;
    return PVG_OK;
}

// Its uses are forgotten: storages from elsewhere are released.
void drop_uses(Graph *graph) {
    graph->lock.lock();
    Use *uses = graph->uses;
    size_t count = graph->count;
    graph->uses = nullptr, graph->count = graph->capacity = 0;
    graph->lock.unlock();
    for (size_t i = 0; i < count; i++)
        if (!uses[i].own) release_storage(uses[i].storage);
    free(uses);
}

// The default stream waits for whoever used the arena, and has its memory from then on.
void give_arena_back(Graph *graph) {
    ErrorRecord before = error_record; // releasing never reports
    DeviceScope scope;
    Stream *home = nullptr;
    if (!device_lost && !forked_child && scope.enter(graph->device) == PVG_OK &&
        default_stream(graph->device, &home) == PVG_OK) {
        stream_collects(home, graph->arena);
        adopt_stream_memory(graph->device, graph->arena_id, home);
    }
    error_record = before;
}

// Waits for a cudaDeviceSynchronize that is going on.
void count_recording(int device, int change) {
    std::lock_guard<std::shared_mutex> hold(begin_lock);
    recordings[device] += change;
}

int begin_recording(int device) {
    PVG_PASS(check_device(device));
    PVG_PASS(refuse_recording(device, "another recording"));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    Graph *graph = nullptr;
    PVG_PASS(new_graph(device, &graph));
    int status = open_recording(device, graph, &graph->stream);
    if (status != PVG_OK) return release_graph(graph), status;
    graph->arena_id = stream_id(graph->stream);
    count_recording(device, 1);
    cudaError_t code =
        cudaStreamBeginCapture(stream_handle(graph->stream), cudaStreamCaptureModeRelaxed);
    if (code == cudaSuccess) return PVG_OK;
    status = fail_cuda(code, "cudaStreamBeginCapture", __FILE__, __LINE__);
    count_recording(device, -1);
    close_recording(graph->stream);
    release_graph(graph);
    return status;
}

// What has been captured, ready to run.
int instantiate(cudaStream_t stream, cudaGraphExec_t *exec) {
    cudaGraph_t captured = nullptr;
    PVG_TRY(cudaStreamEndCapture(stream, &captured));
    cudaError_t code = cudaGraphInstantiate(exec, captured, 0);
    (void)cudaGraphDestroy(captured);
    PVG_TRY(code);
    return PVG_OK;
}

// The recording is over in any case. Errors: VALUE (none was going on), what spoiled it, CUDA.
int end_recording(int device, Graph **result) {
    PVG_PASS(check_fork());
    Graph *graph = thread_recording(device);
    PVG_REQUIRE(graph, PVG_ERROR_VALUE, "this thread is not recording a graph on device %d",
                device);
    DeviceScope scope;
    (void)scope.enter(device); // if that fails, all that follows does
    int status = instantiate(stream_handle(graph->stream), &graph->exec);
    count_recording(device, -1);
    close_recording(graph->stream);
    graph->stream = nullptr;
    if (graph->error.status != PVG_OK) {
        status = graph->error.status;
        error_record = graph->error;
        snprintf(error_record.text, sizeof error_record.text,
                 "recording a graph: an operation failed: %.900s", graph->error.text);
    }
    if (status != PVG_OK) {
        if (graph->exec) (void)cudaGraphExecDestroy(graph->exec);
        drop_uses(graph);
        release_graph(graph);
        return status;
    }
    std::lock_guard<std::mutex> hold(registry_lock);
    graph->next = registry, registry = graph;
    *result = graph;
    return PVG_OK;
}

int check_graph(const Graph *graph) {
    PVG_PASS(check_fork());
    std::lock_guard<std::mutex> hold(registry_lock);
    for (Graph *g = registry; g; g = g->next)
        if (g == graph) return PVG_OK;
    return fail(PVG_ERROR_VALUE, "not a graph of this library (or released before)");
}

int launch_graph(Graph *graph) {
    PVG_PASS(check_graph(graph));
    PVG_PASS(check_device(graph->device));
    PVG_PASS(refuse_recording(graph->device, "the launch of another one"));
    DeviceScope scope;
    PVG_PASS(scope.enter(graph->device));
    Stream *stream = nullptr;
    PVG_PASS(current_stream(graph->device, &stream));
    {
        std::lock_guard<std::mutex> hold(graph->lock);
        for (size_t i = 0; i < graph->count; i++) {
            const Use &use = graph->uses[i];
            PVG_PASS(use.written ? stream_writes(stream, use.storage)
                                 : stream_reads(stream, use.storage));
        }
        PVG_PASS(stream_writes(stream, graph->arena));
        PVG_TRY(cudaGraphLaunch(graph->exec, stream_handle(stream)));
    }
    return option_sync ? wait_on_host(stream, "waiting for a graph") : PVG_OK;
}

int release_handle(Graph *graph) {
    if (forked_child) return PVG_OK;
    PVG_PASS(check_graph(graph));
    {
        std::lock_guard<std::mutex> hold(registry_lock);
        Graph **link = &registry;
        while (*link != graph) link = &(*link)->next;
        *link = graph->next;
    }
    DeviceScope scope;
    if (!device_lost && scope.enter(graph->device) == PVG_OK) {
        host_collects(graph->arena); // what runs is not to be destroyed
        if (cudaGraphExecDestroy(graph->exec) != cudaSuccess) (void)cudaGetLastError();
    }
    drop_uses(graph);
    release_graph(graph);
    return PVG_OK;
}

int refuse(const Graph *graph, const char *what) {
    PVG_REQUIRE(!graph, PVG_ERROR_VALUE,
                "recording a graph: %s cannot be part of it; end the recording first", what);
    return PVG_OK;
}

} // namespace

int refuse_recording(int device, const char *what) {
    return refuse(thread_recording(device), what);
}
int refuse_recording(const Stream *stream, const char *what) {
    return refuse(recording_on(stream), what);
}

bool is_captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) (void)cudaGetLastError();
    return status != cudaStreamCaptureStatusNone;
}

int note_use(Graph *graph, Storage *storage, bool writes) {
    std::lock_guard<std::mutex> hold(graph->lock);
    if (Use *known = find_use(graph, storage)) {
        known->written |= writes;
        return PVG_OK;
    }
    PVG_REQUIRE(!storage->graph || !storage->graph->stream, PVG_ERROR_VALUE,
                "recording a graph: the array belongs to another recording, which has not ended");
    PVG_PASS(add_use(graph, {storage, writes, false}));
    retain_storage(storage);
    return PVG_OK;
}

int join_graph(Graph *graph, Storage *storage) {
    std::lock_guard<std::mutex> hold(graph->lock);
    PVG_PASS(add_use(graph, {storage, true, true}));
    graph->references.fetch_add(1, std::memory_order_relaxed);
    storage->graph = graph;
    return PVG_OK;
}

void leave_graph(Graph *graph, const Storage *storage) {
    {
        std::lock_guard<std::mutex> hold(graph->lock);
        if (Use *use = find_use(graph, storage)) *use = graph->uses[--graph->count];
    }
    if (!device_lost && !forked_child) pass_on_users(storage, graph->arena);
}

void release_graph(Graph *graph) {
    if (graph->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (graph->arena_id != 0) give_arena_back(graph);
    release_storage(graph->arena);
    graph->~Graph();
    free(graph);
}

void spoil_recording(const Stream *stream) {
    if (Graph *graph = recording_on(stream)) graph->error = error_record;
}

cudaError_t finish_device(int device) {
    {
        std::shared_lock<std::shared_mutex> hold(begin_lock);
        if (recordings[device] == 0) return cudaDeviceSynchronize();
    }
    return finish_streams(device);
}

} // namespace pvg

using pvg::Graph;
static Graph *in(pvg_graph *g) { return reinterpret_cast<Graph *>(g); }

PVG_API int pvg_graph_begin(int device) {
    pvg::clear_error();
    return pvg::begin_recording(device);
}

PVG_API pvg_graph *pvg_graph_end(int device) {
    pvg::clear_error();
    Graph *graph = nullptr;
    return pvg::end_recording(device, &graph) == PVG_OK ? reinterpret_cast<pvg_graph *>(graph)
                                                        : nullptr;
}

PVG_API int pvg_graph_launch(pvg_graph *graph) {
    pvg::clear_error();
    return pvg::launch_graph(in(graph));
}

PVG_API int pvg_graph_release(pvg_graph *graph) {
    pvg::clear_error();
    return graph ? pvg::release_handle(in(graph)) : PVG_OK;
}

PVG_API int pvg_graph_drop(pvg_graph **graph) { return pvg::drop(graph, pvg_graph_release); }
