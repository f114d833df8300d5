/* Streams and events.
 *
 * By default work runs during the call that submits it. With the setting "deferred" it is recorded,
 * and runs as late as CUDA allows: when a wait or a query needs it, or a stream waits for another
 * one's event. Then a missing wait, memory freed too early, or a pinned source changed before its
 * copy ran gives wrong data or an error, where a fast card would hide it most of the time.
 * The null stream and all streams made without cudaStreamNonBlocking share one queue per card,
 * which is the order that CUDA's legacy default stream asks for. Two streams that do not wait for
 * each other run in the order of their making, or reversed with the setting "order" 1. */
#include "simulator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

namespace pvg_sim {

static const size_t MAX_PENDING = 1024; /* as on a card, a longer queue waits for its oldest work */

struct Event {
    int device;
    bool timing, captured;          /* captured: the last record was, so nobody can wait for it */
    std::shared_ptr<Stream> stream; /* of the last record, nullptr before it */
    uint64_t ticket;
    double time_ms;
};

struct StreamHandle {
    std::shared_ptr<Stream> queue;
    unsigned flags;
};

/* Never destroyed: an application may still free what it has while the process exits. */
static auto &streams = *new std::map<cudaStream_t, StreamHandle>;
static auto &events = *new std::map<cudaEvent_t, std::shared_ptr<Event>>;
static auto &legacy_streams = *new std::array<std::shared_ptr<Stream>, MAX_CARDS>;
static auto &queues = *new std::deque<std::weak_ptr<Stream>>; /* in the order of making */

/* Those that are gone are forgotten when there are twice as many as were left the last time: a
 * program that makes streams for ever waits no longer for its last ones than for its first. */
static void forget_queues() {
    static size_t most = 16;
    if (queues.size() < most) return;
    auto is_gone = [](const std::weak_ptr<Stream> &queue) { return queue.expired(); };
    queues.erase(std::remove_if(queues.begin(), queues.end(), is_gone), queues.end());
    most = 16 + 2 * queues.size();
}

static std::shared_ptr<Stream> make_queue(int device) {
    auto stream = std::make_shared<Stream>();
    stream->device = device;
    forget_queues();
    queues.push_back(stream);
    return stream;
}

static std::shared_ptr<Stream> legacy_stream(int device) {
    auto &stream = legacy_streams[device];
    if (!stream) stream = make_queue(device);
    return stream;
}

std::shared_ptr<Stream> find_stream(cudaStream_t handle) {
    if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
        return legacy_stream(current_device());
    }
    auto found = streams.find(handle);
    return found == streams.end() ? nullptr : found->second.queue;
}

/* ---- Work ---- */

static void do_work(Stream &stream, const std::function<void()> &work) {
    OpenMemory open;
    set_running_card(stream.device);
    if (!running_card_is_lost()) work();
    stream.done++;
}

static void run_one(Stream &stream) {
    std::function<void()> work = std::move(stream.pending.front());
    stream.pending.pop_front();
    counters[COUNT_PENDING]--;
    do_work(stream, work);
}

void run_until(Stream &stream, uint64_t ticket) {
    while (stream.done < ticket && !stream.pending.empty()) run_one(stream);
}

void run_pending(Stream &stream) { run_until(stream, stream.recorded); }

cudaError_t submit(const std::shared_ptr<Stream> &stream, std::function<void()> work) {
    if (stream->capture) return capture_work(*stream->capture, std::move(work));
    stream->recorded++;
    if (settings.deferred) {
        stream->pending.push_back(std::move(work));
        counters[COUNT_PENDING]++;
        if (stream->pending.size() > MAX_PENDING) run_one(*stream);
        return cudaSuccess;
    }
    do_work(*stream, work);
    return cudaSuccess;
}

template <class F> static void for_each_queue(F visit) {
    size_t count = queues.size();
    for (size_t i = 0; i < count; i++) {
        size_t at = settings.order == REVERSE ? count - 1 - i : i;
        if (auto stream = queues[at].lock()) visit(*stream);
    }
}

static void run_device(int device) {
    for_each_queue([device](Stream &stream) {
        if (stream.device == device) run_pending(stream);
    });
}

void run_everything() {
    for_each_queue([](Stream &stream) { run_pending(stream); });
}

void drop_pending() {
    for_each_queue([](Stream &stream) {
        counters[COUNT_PENDING] -= (long long)stream.pending.size();
        stream.pending.clear();
        stream.done = stream.recorded;
    });
}

/* A query finds work unfinished once, and the work done the next time. */
static cudaError_t query(Stream &stream, uint64_t ticket) {
    if (stream.done >= ticket) return cudaSuccess;
    run_until(stream, ticket);
    return cudaErrorNotReady;
}

static double now_ms() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

static std::shared_ptr<Event> find_event(cudaEvent_t handle) {
    auto found = events.find(handle);
    return found == events.end() ? nullptr : found->second;
}

} /* namespace pvg_sim */

using namespace pvg_sim;

/* ---- Streams ---- */

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t *result, unsigned flags) {
    Call call;
    if (!result || flags & ~cudaStreamNonBlocking) return call.finish(cudaErrorInvalidValue);
    if (cudaError_t lost = sticky_error()) return call.finish(lost);
    if (injected(FAULT_STREAM)) return call.finish(cudaErrorOperatingSystem);
    int device = current_device();
    auto queue = flags & cudaStreamNonBlocking ? make_queue(device) : legacy_stream(device);
    auto *handle = reinterpret_cast<cudaStream_t>(new char);
    streams[handle] = {queue, flags};
    counters[COUNT_LIVE_STREAMS]++;
    *result = handle;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaStreamCreate(cudaStream_t *result) {
    return cudaStreamCreateWithFlags(result, cudaStreamDefault);
}

extern "C" cudaError_t cudaStreamCreateWithPriority(cudaStream_t *result, unsigned flags, int) {
    return cudaStreamCreateWithFlags(result, flags);
}

extern "C" cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    Call call;
    if (least) *least = 0;
    if (greatest) *greatest = 0;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags) {
    Call call;
    auto found = streams.find(handle);
    if (!flags) return call.finish(cudaErrorInvalidValue);
    if (found == streams.end() && !find_stream(handle)) {
        return call.finish(cudaErrorInvalidResourceHandle);
    }
    *flags = found == streams.end() ? (unsigned)cudaStreamDefault : found->second.flags;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    Call call;
    auto found = streams.find(handle);
    if (found == streams.end()) return call.finish(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = check_wait(*found->second.queue)) return call.finish(error);
    run_pending(*found->second.queue);
    streams.erase(found);
    delete reinterpret_cast<char *>(handle);
    counters[COUNT_LIVE_STREAMS]--;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    Call call;
    auto stream = find_stream(handle);
    if (!stream) return call.finish(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = check_wait(*stream)) return call.finish(error);
    counters[COUNT_SYNC]++;
    run_pending(*stream);
    return call.finish(cards[stream->device].sticky);
}

extern "C" cudaError_t cudaStreamQuery(cudaStream_t handle) {
    Call call;
    auto stream = find_stream(handle);
    if (!stream) return call.finish(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = check_wait(*stream)) return call.finish(error);
    return call.finish(query(*stream, stream->recorded));
}

extern "C" cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle,
                                           unsigned flags) {
    Call call;
    auto stream = find_stream(handle);
    auto event = find_event(event_handle);
    if (!stream || !event) return call.finish(cudaErrorInvalidResourceHandle);
    if (flags != cudaEventWaitDefault) return call.finish(cudaErrorInvalidValue);
    counters[COUNT_STREAM_WAIT]++;
    if (!event->stream) return call.finish(cudaSuccess); /* nothing was recorded to wait for */
    bool within = event->captured && event->stream == stream;
    if (stream->capture) return call.finish(capture_wait(*stream->capture, within));
    if (event->captured) return call.finish(cudaErrorCapturedEvent);
    submit(stream, [waiting = stream.get(), other = event->stream, ticket = event->ticket] {
        if (other.get() == waiting) return; /* done: its work comes before this in the queue */
        run_until(*other, ticket);
        set_running_card(waiting->device);
    });
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *data) {
    Call call;
    auto stream = find_stream(handle);
    if (!stream) return call.finish(cudaErrorInvalidResourceHandle);
    if (!function) return call.finish(cudaErrorInvalidValue);
    return call.finish(submit(stream, [function, data] { function(data); }));
}

extern "C" cudaError_t cudaDeviceSynchronize(void) {
    Call call;
    if (cudaError_t error = check_wait_for_card(current_device())) return call.finish(error);
    counters[COUNT_SYNC]++;
    run_device(current_device());
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaDeviceReset(void) {
    Call call;
    int device = current_device();
    if (cudaError_t error = check_wait_for_card(device)) return call.finish(error);
    run_device(device);
    free_card_memory(device);
    return call.finish(cudaSuccess);
}

/* ---- Events ---- */

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t *result, unsigned flags) {
    const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    Call call;
    if (!result || flags & ~known) return call.finish(cudaErrorInvalidValue);
    if (cudaError_t lost = sticky_error()) return call.finish(lost);
    if (injected(FAULT_EVENT)) return call.finish(cudaErrorOperatingSystem);
    auto event = std::make_shared<Event>();
    event->device = current_device();
    event->timing = !(flags & cudaEventDisableTiming);
    auto handle = reinterpret_cast<cudaEvent_t>(event.get());
    events[handle] = event;
    counters[COUNT_LIVE_EVENTS]++;
    *result = handle;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaEventCreate(cudaEvent_t *result) {
    return cudaEventCreateWithFlags(result, cudaEventDefault);
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    Call call;
    if (!events.erase(handle)) return call.finish(cudaErrorInvalidResourceHandle);
    counters[COUNT_LIVE_EVENTS]--;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
    Call call;
    auto event = find_event(handle);
    auto stream = find_stream(stream_handle);
    if (!event || !stream || event->device != stream->device) {
        return call.finish(cudaErrorInvalidResourceHandle);
    }
    if (injected(FAULT_EVENT)) return call.finish(cudaErrorOperatingSystem);
    counters[COUNT_EVENT_RECORD]++;
    event->stream = stream;
    event->captured = stream->capture != nullptr;
    event->ticket = stream->recorded + 1;
    return call.finish(submit(stream, [event] { event->time_ms = now_ms(); }));
}

extern "C" cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
    return cudaEventRecord(event, stream);
}

extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    Call call;
    auto event = find_event(handle);
    if (!event) return call.finish(cudaErrorInvalidResourceHandle);
    if (event->captured) return call.finish(cudaErrorCapturedEvent);
    counters[COUNT_SYNC]++;
    if (event->stream) run_until(*event->stream, event->ticket);
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaEventQuery(cudaEvent_t handle) {
    Call call;
    auto event = find_event(handle);
    if (!event) return call.finish(cudaErrorInvalidResourceHandle);
    if (!event->stream) return call.finish(cudaSuccess);
    if (event->captured) return call.finish(cudaErrorCapturedEvent);
    return call.finish(query(*event->stream, event->ticket));
}

extern "C" cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    Call call;
    auto first = find_event(start), second = find_event(end);
    if (!ms) return call.finish(cudaErrorInvalidValue);
    for (const auto &event : {first, second}) {
        if (!event || !event->timing || !event->stream) {
            return call.finish(cudaErrorInvalidResourceHandle);
        }
        if (event->captured) return call.finish(cudaErrorCapturedEvent);
        if (event->stream->done < event->ticket) return call.finish(cudaErrorNotReady);
    }
    *ms = (float)(second->time_ms - first->time_ms);
    return call.finish(cudaSuccess);
}
