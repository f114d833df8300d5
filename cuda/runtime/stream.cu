// Streams and events; see stream.cuh. A Stream is never freed: after its release (which waits for
// its work) it may be used again under a new id, so that a storage that remembers an old id finds
// nobody and has nothing to wait for.
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/memory.cuh"
#include "runtime/report.cuh"
#include "runtime/stream.cuh"
#include <atomic>
#include <mutex>
#include <stdlib.h>

namespace pvg {

// A stream, and its id when it was remembered: if that has changed, the stream is gone.
struct Current {
    Stream *stream;
    uint64_t id;
};

struct Stream {
    std::atomic<uint64_t> id; // 0: released
    bool closing;             // being released: not to be used again yet
    int device;
    bool owned; // made by us, so destroyed by us
    cudaStream_t handle;
    cudaEvent_t event; // for wait_for, made at first use
    Graph *graph;      // recorded on it, or NULL
    Current before;    // the recording thread's current stream before
    Stream *next;      // in the registry
};

// Like a Stream, never freed: a released one may be used again.
struct Event {
    bool alive;
    std::atomic<bool> recorded;
    int device;
    cudaEvent_t handle;
    Event *next; // in the registry
};

namespace {

std::mutex registry_lock; // the lists, and ids that change
std::mutex default_lock;  // default streams being made
Stream *registry = nullptr;
Event *events = nullptr;
uint64_t last_id = 0;
std::atomic<Stream *> default_streams[max_devices];
std::atomic<Stream *> legacy_streams[max_devices]; // CUDA's own default ones, once lent to somebody

thread_local Current current_streams[max_devices];

// Under registry_lock: a Stream to use, new or released before.
Stream *take_slot() {
    for (Stream *s = registry; s; s = s->next)
        if (s->id == 0 && !s->closing) return s;
    Stream *s = static_cast<Stream *>(calloc(1, sizeof *s));
    if (!s) return nullptr;
    s->next = registry;
    registry = s;
    return s;
}

int register_stream(int device, cudaStream_t handle, bool owned, Graph *graph, Stream **result) {
    std::lock_guard<std::mutex> hold(registry_lock);
    Stream *s = take_slot();
    PVG_REQUIRE(s, PVG_ERROR_HOST_MEMORY, "no host memory for a stream");
    s->device = device, s->handle = handle, s->owned = owned, s->event = nullptr;
    s->graph = graph;
    s->id = ++last_id;
    *result = s;
    return PVG_OK;
}

int make_stream(int device, Graph *graph, Stream **result) {
    PVG_PASS(check_device(device));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    cudaStream_t handle;
    PVG_TRY(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
    int status = register_stream(device, handle, true, graph, result);
    if (status != PVG_OK) (void)cudaStreamDestroy(handle);
    return status;
}

// Under registry_lock.
Stream *find_id(uint64_t id) {
    for (Stream *s = registry; s; s = s->next)
        if (s->id == id) return s;
    return nullptr;
}

// The stream with this id, NULL if it is gone.
Stream *look_up(uint64_t id) {
    std::lock_guard<std::mutex> hold(registry_lock);
    return id ? find_id(id) : nullptr;
}

int check_stream(const Stream *stream) {
    PVG_PASS(check_fork());
    if (stream) {
        std::lock_guard<std::mutex> hold(registry_lock);
        for (Stream *s = registry; s; s = s->next)
            if (s == stream && s->id != 0) return PVG_OK;
    }
    return fail(PVG_ERROR_VALUE, "not a stream of this library (or released before)");
}

// A spin lock on a storage's readers; held for a few instructions, or while events are recorded.
struct ReadersLock {
    std::atomic_flag &flag;
    explicit ReadersLock(Storage *s) : flag(s->lock) {
        while (flag.test_and_set(std::memory_order_acquire)) {}
    }
    ~ReadersLock() { flag.clear(std::memory_order_release); }
};

constexpr int max_readers = sizeof(Storage::readers) / sizeof(uint64_t);

// The ids of a storage's last writer and of those who read since, 0 for nobody.
void list_users(const Storage *storage, uint64_t (&users)[max_readers + 1]) {
    users[0] = storage->writer.load(std::memory_order_relaxed);
    for (int i = 0; i < max_readers; i++) users[i + 1] = storage->readers[i];
}

} // namespace

uint64_t stream_id(const Stream *stream) { return stream->id; }
cudaStream_t stream_handle(const Stream *stream) { return stream->handle; }

int default_stream(int device, Stream **result) {
    Stream *s = default_streams[device].load(std::memory_order_acquire);
    if (!s) {
        std::lock_guard<std::mutex> hold(default_lock);
        s = default_streams[device].load(std::memory_order_acquire);
        if (!s) {
            PVG_PASS(make_stream(device, nullptr, &s));
            default_streams[device].store(s, std::memory_order_release);
        }
    }
    *result = s;
    return PVG_OK;
}

int current_stream(int device, Stream **result) {
    const Current &c = current_streams[device];
    if (c.stream && c.stream->id == c.id) {
        *result = c.stream;
        return PVG_OK;
    }
    return default_stream(device, result);
}

// Lets a stream of CUDA wait for one of this library, of which the id is 0 if it is nobody.
static int handle_waits(cudaStream_t waiter, uint64_t other) {
    if (other == 0) return PVG_OK; // which slots of released streams have, too
    std::lock_guard<std::mutex> hold(registry_lock);
    Stream *s = find_id(other);
    if (!s || s->handle == waiter) return PVG_OK; // released: its work was waited for
    PVG_REQUIRE(!s->graph, PVG_ERROR_VALUE,
                "recording a graph: the array belongs to a recording that has not ended");
    if (!s->event) PVG_TRY(cudaEventCreateWithFlags(&s->event, cudaEventDisableTiming));
    PVG_TRY(cudaEventRecord(s->event, s->handle));
    PVG_TRY(cudaStreamWaitEvent(waiter, s->event, 0));
    return PVG_OK;
}

int wait_for(Stream *waiter, uint64_t other) {
    if (other == waiter->id) return PVG_OK;
    return handle_waits(waiter->handle, other);
}

// Under the storage's lock. If the list is full, the stream waits for the last one there and stands
// for both.
static int add_reader(Stream *stream, Storage *storage) {
    for (uint64_t &reader : storage->readers)
        if (reader == 0 || reader == stream->id) {
            reader = stream->id;
            return PVG_OK;
        }
    PVG_PASS(wait_for(stream, storage->readers[max_readers - 1]));
    storage->readers[max_readers - 1] = stream->id;
    return PVG_OK;
}

int stream_reads(Stream *stream, Storage *storage) {
    if (stream->graph) return note_use(stream->graph, storage, false);
    uint64_t writer = storage->writer.load(std::memory_order_relaxed);
    if (writer == stream->id) return PVG_OK;
    ReadersLock hold(storage);
    for (uint64_t reader : storage->readers)
        if (reader == stream->id) return PVG_OK; // it waited for the writer when it read first
    PVG_PASS(wait_for(stream, writer));
    return add_reader(stream, storage);
}

int stream_writes(Stream *stream, Storage *storage) {
    if (stream->graph) return note_use(stream->graph, storage, true);
    ReadersLock hold(storage);
    for (uint64_t reader : storage->readers) PVG_PASS(wait_for(stream, reader));
    PVG_PASS(wait_for(stream, storage->writer.load(std::memory_order_relaxed)));
    for (uint64_t &reader : storage->readers) reader = 0;
    storage->writer.store(stream->id, std::memory_order_relaxed);
    storage->version.fetch_add(1, std::memory_order_relaxed);
    return PVG_OK;
}

// The Stream of a handle, if it may be remembered: one that was wrapped, which its owner keeps as
// long as it is, or CUDA's default stream, which nobody destroys. Others are left alone, because
// they may be gone when somebody would wait for them.
static int remembered_stream(int device, cudaStream_t handle, Stream **result) {
    if (handle == nullptr) handle = cudaStreamLegacy;
    {
        std::lock_guard<std::mutex> hold(registry_lock);
        for (Stream *s = registry; s; s = s->next)
            if (s->id != 0 && s->device == device && s->handle == handle && !s->graph) {
                *result = s;
                return PVG_OK;
            }
    }
    *result = nullptr;
    if (handle != cudaStreamLegacy) return PVG_OK;
    std::lock_guard<std::mutex> hold(default_lock);
    Stream *s = legacy_streams[device].load();
    if (!s) {
        PVG_PASS(register_stream(device, handle, false, nullptr, &s));
        legacy_streams[device].store(s);
    }
    *result = s;
    return PVG_OK;
}

int lend_to_stream(cudaStream_t handle, Storage *storage, bool writes) {
    Stream *known = nullptr;
    PVG_PASS(remembered_stream(storage->device, handle, &known));
    ReadersLock hold(storage);
    PVG_PASS(handle_waits(handle, storage->writer.load(std::memory_order_relaxed)));
    for (uint64_t reader : storage->readers)
        if (writes && reader) PVG_PASS(handle_waits(handle, reader));
    return known ? add_reader(known, storage) : PVG_OK;
}

int follow_stream(Stream *stream, cudaStream_t handle) {
    if (stream->handle == handle) return PVG_OK;
    cudaEvent_t event = nullptr;
    PVG_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cudaError_t code = cudaEventRecord(event, handle);
    if (code == cudaSuccess) code = cudaStreamWaitEvent(stream->handle, event, 0);
    (void)cudaEventDestroy(event); // which waits for nobody
    PVG_TRY(code);
    return PVG_OK;
}

void stream_collects(Stream *home, Storage *storage) {
    bool failed = wait_for(home, storage->writer.load(std::memory_order_relaxed)) != PVG_OK;
    for (uint64_t reader : storage->readers) failed |= wait_for(home, reader) != PVG_OK;
    // Without the events the memory must not be reused before everything is done.
    if (failed) (void)finish_device(home->device), (void)cudaGetLastError();
}

void pass_on_users(const Storage *from, Storage *to) {
    bool failed = false;
    uint64_t users[max_readers + 1];
    list_users(from, users);
    ReadersLock hold(to);
    for (uint64_t user : users) {
        Stream *s = user == to->writer.load(std::memory_order_relaxed) ? nullptr : look_up(user);
        if (s && !s->graph) failed |= add_reader(s, to) != PVG_OK;
    }
    if (failed) (void)finish_device(to->device), (void)cudaGetLastError();
}

void host_collects(Storage *storage) {
    uint64_t users[max_readers + 1];
    list_users(storage, users);
    DeviceScope scope; // a default stream of CUDA is that of the thread's current device
    (void)scope.enter(storage->device);
    for (uint64_t user : users) {
        Stream *s = look_up(user);
        if (!s) continue;
        counters[PVG_COUNT_WAITS]++;
        if (cudaStreamSynchronize(s->handle) != cudaSuccess) (void)cudaGetLastError();
    }
}

int wait_on_host(Stream *stream, const char *what) {
    PVG_PASS(refuse_recording(stream, what));
    counters[PVG_COUNT_WAITS]++;
    cudaError_t code = cudaStreamSynchronize(stream->handle);
    if (code != cudaSuccess) return fail_cuda(code, what, __FILE__, __LINE__);
    return check_reports(stream->device);
}

// Nobody finds a stream by its id any more once it is 0: so its work is done before, and its handle
// destroyed after. `heir` has its memory from then on, unless it is NULL.
static cudaError_t forget_stream(Stream *stream, Stream *heir) {
    uint64_t id = stream->id;
    cudaEvent_t event = nullptr;
    {
        std::lock_guard<std::mutex> hold(registry_lock);
        event = stream->event;
        stream->event = nullptr, stream->graph = nullptr;
        stream->closing = true;
        stream->id = 0;
    }
    cudaError_t code = cudaSuccess;
    if (!device_lost) {
        if (heir) adopt_stream_memory(stream->device, id, heir);
        if (event) (void)cudaEventDestroy(event);
        if (stream->owned) code = cudaStreamDestroy(stream->handle);
    }
    std::lock_guard<std::mutex> hold(registry_lock);
    stream->closing = false;
    return code;
}

int open_recording(int device, Graph *graph, Stream **result) {
    Stream *s = nullptr;
    PVG_PASS(make_stream(device, graph, &s));
    s->before = current_streams[device];
    current_streams[device] = {s, s->id};
    *result = s;
    return PVG_OK;
}

void close_recording(Stream *stream) {
    current_streams[stream->device] = stream->before;
    (void)forget_stream(stream, nullptr);
}

Graph *recording_on(const Stream *stream) { return stream->graph; }

Graph *thread_recording(int device) {
    if (device < 0 || device >= max_devices) return nullptr;
    const Current &c = current_streams[device];
    return c.stream && c.stream->id == c.id ? c.stream->graph : nullptr;
}

cudaError_t finish_streams(int device) {
    std::lock_guard<std::mutex> hold(registry_lock);
    cudaError_t result = cudaSuccess;
    for (Stream *s = registry; s; s = s->next) {
        if (s->id == 0 || s->device != device || s->graph) continue;
        cudaError_t code = cudaStreamSynchronize(s->handle);
        // A stream of somebody else's may be destroyed already: then its work is done.
        if (result == cudaSuccess && (s->owned || is_sticky(code))) result = code;
    }
    return result;
}

static int release_stream(Stream *stream) {
    if (forked_child) return PVG_OK;
    PVG_PASS(check_stream(stream));
    PVG_REQUIRE(stream != default_streams[stream->device].load(), PVG_ERROR_VALUE,
                "a device's default stream cannot be released");
    PVG_PASS(refuse_recording(stream, "the release of its stream"));
    DeviceScope scope;
    Stream *home = nullptr;
    if (!device_lost) {
        PVG_PASS(scope.enter(stream->device));
        PVG_PASS(default_stream(stream->device, &home));
        // A stream of somebody else's may be destroyed already: then its work is done.
        if (cudaStreamSynchronize(stream->handle) != cudaSuccess) (void)cudaGetLastError();
    }
    PVG_TRY(forget_stream(stream, home));
    return PVG_OK;
}

static int set_current(Stream *stream, int device) {
    if (stream) PVG_PASS(check_stream(stream));
    PVG_PASS(check_device(stream ? stream->device : device));
    PVG_PASS(refuse_recording(stream ? stream->device : device, "another current stream"));
    if (stream) PVG_PASS(refuse_recording(stream, "the work of another thread"));
    if (stream) {
        current_streams[stream->device] = {stream, stream->id.load()};
    } else {
        current_streams[device] = {nullptr, 0};
    }
    return PVG_OK;
}

static int make_event(int device, Event **result) {
    PVG_PASS(check_device(device));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    std::lock_guard<std::mutex> hold(registry_lock);
    Event *e = events;
    while (e && e->alive) e = e->next;
    if (!e) {
        e = static_cast<Event *>(calloc(1, sizeof *e));
        PVG_REQUIRE(e, PVG_ERROR_HOST_MEMORY, "no host memory for an event");
        e->next = events;
        events = e;
    }
    PVG_TRY(cudaEventCreate(&e->handle));
    e->alive = true, e->recorded = false, e->device = device;
    *result = e;
    return PVG_OK;
}

// Under registry_lock.
static bool is_event(const Event *event) {
    for (Event *e = events; e; e = e->next)
        if (e == event) return e->alive;
    return false;
}

static int check_event(const Event *event) {
    PVG_PASS(check_fork());
    std::lock_guard<std::mutex> hold(registry_lock);
    PVG_REQUIRE(is_event(event), PVG_ERROR_VALUE,
                "not an event of this library (or released before)");
    return check_device(event->device);
}

static int release_event(Event *event) {
    if (forked_child) return PVG_OK;
    std::lock_guard<std::mutex> hold(registry_lock);
    PVG_REQUIRE(is_event(event), PVG_ERROR_VALUE,
                "not an event of this library (or released before)");
    event->alive = false;
    if (!device_lost) PVG_TRY(cudaEventDestroy(event->handle));
    return PVG_OK;
}

} // namespace pvg

using pvg::Event;
using pvg::Stream;
static Stream *in(pvg_stream *s) { return reinterpret_cast<Stream *>(s); }
static Event *in(pvg_event *e) { return reinterpret_cast<Event *>(e); }

PVG_API pvg_stream *pvg_stream_create(int device) {
    pvg::clear_error();
    Stream *s = nullptr;
    return pvg::make_stream(device, nullptr, &s) == PVG_OK ? reinterpret_cast<pvg_stream *>(s)
                                                           : nullptr;
}

PVG_API pvg_stream *pvg_stream_wrap(void *cuda_stream, int device) {
    pvg::clear_error();
    Stream *s = nullptr;
    if (pvg::check_device(device) != PVG_OK) return nullptr;
    auto handle = static_cast<cudaStream_t>(cuda_stream);
    int status = pvg::register_stream(device, handle, false, nullptr, &s);
    return status == PVG_OK ? reinterpret_cast<pvg_stream *>(s) : nullptr;
}

PVG_API int pvg_stream_release(pvg_stream *stream) {
    pvg::clear_error();
    return stream ? pvg::release_stream(in(stream)) : PVG_OK;
}

PVG_API int pvg_stream_drop(pvg_stream **stream) { return pvg::drop(stream, pvg_stream_release); }

PVG_API int pvg_stream_synchronize(pvg_stream *stream) {
    pvg::clear_error();
    PVG_PASS(pvg::check_stream(in(stream)));
    PVG_PASS(pvg::check_device(in(stream)->device));
    return pvg::wait_on_host(in(stream), "waiting for a stream");
}

PVG_API int pvg_stream_set_current(pvg_stream *stream, int device) {
    pvg::clear_error();
    return pvg::set_current(in(stream), device);
}

PVG_API pvg_stream *pvg_stream_current(int device) {
    pvg::clear_error();
    Stream *s = nullptr;
    if (pvg::check_device(device) != PVG_OK) return nullptr;
    return pvg::current_stream(device, &s) == PVG_OK ? reinterpret_cast<pvg_stream *>(s) : nullptr;
}

PVG_API void *pvg_stream_handle(pvg_stream *stream) {
    pvg::clear_error();
    return pvg::check_stream(in(stream)) == PVG_OK ? static_cast<void *>(in(stream)->handle)
                                                   : nullptr;
}

PVG_API int pvg_stream_wait_event(pvg_stream *stream, pvg_event *event) {
    pvg::clear_error();
    PVG_PASS(pvg::check_stream(in(stream)));
    PVG_PASS(pvg::check_event(in(event)));
    PVG_PASS(pvg::refuse_recording(in(stream), "waiting for an event"));
    PVG_TRY(cudaStreamWaitEvent(in(stream)->handle, in(event)->handle, 0));
    return PVG_OK;
}

PVG_API pvg_event *pvg_event_create(int device) {
    pvg::clear_error();
    Event *e = nullptr;
    return pvg::make_event(device, &e) == PVG_OK ? reinterpret_cast<pvg_event *>(e) : nullptr;
}

PVG_API int pvg_event_release(pvg_event *event) {
    pvg::clear_error();
    return event ? pvg::release_event(in(event)) : PVG_OK;
}

PVG_API int pvg_event_drop(pvg_event **event) { return pvg::drop(event, pvg_event_release); }

PVG_API int pvg_event_record(pvg_event *event, pvg_stream *stream) {
    pvg::clear_error();
    PVG_PASS(pvg::check_event(in(event)));
    PVG_PASS(pvg::check_stream(in(stream)));
    PVG_PASS(pvg::refuse_recording(in(stream), "an event"));
    PVG_TRY(cudaEventRecord(in(event)->handle, in(stream)->handle));
    in(event)->recorded = true;
    return PVG_OK;
}

PVG_API int pvg_event_synchronize(pvg_event *event) {
    pvg::clear_error();
    PVG_PASS(pvg::check_event(in(event)));
    pvg::counters[PVG_COUNT_WAITS]++;
    PVG_TRY(cudaEventSynchronize(in(event)->handle));
    return pvg::check_reports(in(event)->device);
}

PVG_API int pvg_event_query(pvg_event *event, int *done) {
    pvg::clear_error();
    PVG_REQUIRE(done, PVG_ERROR_VALUE, "done is a null pointer");
    PVG_PASS(pvg::check_event(in(event)));
    cudaError_t code = cudaEventQuery(in(event)->handle);
    *done = code == cudaSuccess;
    if (code == cudaErrorNotReady)
        (void)cudaGetLastError();
    else
        PVG_TRY(code);
    return PVG_OK;
}

PVG_API int pvg_event_elapsed(pvg_event *start, pvg_event *stop, double *milliseconds) {
    pvg::clear_error();
    PVG_REQUIRE(milliseconds, PVG_ERROR_VALUE, "milliseconds is a null pointer");
    PVG_PASS(pvg::check_event(in(start)));
    PVG_PASS(pvg::check_event(in(stop)));
    PVG_REQUIRE(in(start)->recorded, PVG_ERROR_VALUE, "the start event was never recorded");
    PVG_REQUIRE(in(stop)->recorded, PVG_ERROR_VALUE, "the stop event was never recorded");
    PVG_REQUIRE(in(start)->device == in(stop)->device, PVG_ERROR_VALUE,
                "the events are on different devices: %d and %d", in(start)->device,
                in(stop)->device);
    float elapsed = 0;
    PVG_TRY(cudaEventElapsedTime(&elapsed, in(start)->handle, in(stop)->handle));
    *milliseconds = elapsed;
    return PVG_OK;
}
