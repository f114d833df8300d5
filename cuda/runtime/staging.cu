// Large copies between a device and ordinary (pageable) host memory.
//
// A device reads and writes only memory that the system cannot move, "pinned" memory. Given any
// other, the driver copies through a buffer of its own with one thread, which reaches a fifth of
// what the bus can do. Here the workers (workers.cuh) copy between the caller's memory and a few
// pinned slots, in chunks, while the device copies others of them:
//
//     upload     wait until a slot is free; workers fill it; the stream copies it to the device
//     download   the stream fills a slot; wait for that; workers copy it to its place
//
// Everything that concerns CUDA is done by the calling thread. A device has a lane of slots for
// each direction, so that uploads do not wait for downloads; within a lane, one copy follows
// another. A slot is made when a copy is long enough to need it; without any, the driver copies.
//
// The pages of fresh host memory are cleared by the system when they are first written to, which
// takes longer than the copy. So the workers write to each page of the target before its bytes
// arrive. Chunks of downloads end where huge pages do, that no two workers clear the same one.
#include "runtime/device.cuh"
#include "runtime/staging.cuh"
#include "runtime/workers.cuh"
#include <mutex>

namespace pvg {

namespace {

constexpr int64_t slot_bytes = 2 << 20; // also the size of a huge page
constexpr int64_t small_chunk = 1 << 20, small_copy = 16 << 20;
constexpr int64_t page_bytes = 4 << 10;
constexpr int slot_count = 12, filled_ahead = 4;

struct Slot {
    unsigned char *bytes;
    cudaEvent_t copied;    // what the stream last did with the slot
    bool in_use;           // by the stream, until `copied`
    Unfinished unfinished; // work on it
};

struct Lane {
    std::mutex lock; // held during a copy
    Slot slots[slot_count];
    int count; // slots that exist
};
Lane uploads[max_devices], downloads[max_devices];

// Landings: pages that all devices see while they are registered.
constexpr int landing_count = 8;
struct alignas(4096) LandingPages { unsigned char bytes[landing_count][Landing::size]; };
LandingPages landing_pages;
std::mutex landings_lock; // what follows
bool landings_registered, landings_taken[landing_count];

// The copy in chunks: `head` bytes, then `length` bytes each, then what is left.
struct Chunks {
    int64_t bytes, length, head;
    int64_t count() const { return bytes <= head ? 1 : 1 + (bytes - head + length - 1) / length; }
    int64_t begin(int64_t i) const { return i == 0 ? 0 : head + (i - 1) * length; }
    int64_t end(int64_t i) const {
        int64_t end = head + i * length;
        return end < bytes ? end : bytes;
    }
    size_t size(int64_t i) const { return static_cast<size_t>(end(i) - begin(i)); }
};

Chunks chunks_of(int64_t bytes) {
    int64_t length = bytes <= small_copy ? small_chunk : slot_bytes;
    return {bytes, length, length};
}

// The same, so that chunks end where huge pages do, or up to a page after it: chunks of the
// device's memory stay aligned.
Chunks chunks_to(const void *target, int64_t bytes) {
    Chunks chunks = chunks_of(bytes);
    int64_t rest = chunks.length - static_cast<int64_t>(reinterpret_cast<uintptr_t>(target) %
                                                        static_cast<uintptr_t>(chunks.length));
    chunks.head = (rest + page_bytes - 1) / page_bytes * page_bytes;
    return chunks;
}

bool make_slot(Slot *slot) {
    void *memory = nullptr;
    if (cudaHostAlloc(&memory, slot_bytes, cudaHostAllocDefault) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    if (cudaEventCreateWithFlags(&slot->copied, cudaEventDisableTiming) != cudaSuccess) {
        (void)cudaGetLastError();
        if (cudaFreeHost(memory) != cudaSuccess) (void)cudaGetLastError();
        return false;
    }
    slot->bytes = static_cast<unsigned char *>(memory);
    slot->in_use = false;
    return true;
}

// The number of slots for so many chunks: fewer if there is no pinned memory for more, even 0.
int slots_for(Lane *lane, int64_t chunks) {
    int wanted = chunks < slot_count ? static_cast<int>(chunks) : slot_count;
    while (lane->count < wanted && make_slot(&lane->slots[lane->count])) lane->count++;
    return lane->count;
}

int wait_for_slot(Slot *slot) {
    if (!slot->in_use) return PVG_OK;
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(cudaEventSynchronize(slot->copied));
    slot->in_use = false;
    return PVG_OK;
}

// After a failure: neither workers nor the stream touch the slots any more.
void abandon(Lane *lane, cudaStream_t stream) {
    for (int i = 0; i < lane->count; i++) finish_work(&lane->slots[i].unfinished);
    if (cudaStreamSynchronize(stream) != cudaSuccess) (void)cudaGetLastError();
}

int upload_chunks(Lane *lane, cudaStream_t stream, unsigned char *to, const unsigned char *from,
                  const Chunks &chunks) {
    int64_t count = chunks.count(), filling = 0, ahead = filled_ahead;
    if (ahead > lane->count) ahead = lane->count;
    for (int64_t i = 0; i < count; i++) {
        for (; filling < count && filling < i + ahead; filling++) {
            Slot &next = lane->slots[filling % lane->count];
            PVG_PASS(wait_for_slot(&next));
            start_copy(&next.unfinished, next.bytes, from + chunks.begin(filling),
                       chunks.size(filling));
        }
        Slot &slot = lane->slots[i % lane->count];
        finish_work(&slot.unfinished);
        PVG_TRY(cudaMemcpyAsync(to + chunks.begin(i), slot.bytes, chunks.size(i),
                                cudaMemcpyHostToDevice, stream));
        PVG_TRY(cudaEventRecord(slot.copied, stream));
        slot.in_use = true;
    }
    return PVG_OK;
}

int download_chunks(Lane *lane, cudaStream_t stream, unsigned char *to, const unsigned char *from,
                    const Chunks &chunks) {
    int64_t count = chunks.count(), asked = 0, arrived = 0, done = 0;
    while (done < count) {
        for (; asked < count && asked < done + lane->count; asked++) {
            Slot &slot = lane->slots[asked % lane->count];
            PVG_TRY(cudaMemcpyAsync(slot.bytes, from + chunks.begin(asked), chunks.size(asked),
                                    cudaMemcpyDeviceToHost, stream));
            PVG_TRY(cudaEventRecord(slot.copied, stream));
            start_touch(&slot.unfinished, to + chunks.begin(asked), chunks.size(asked));
        }
        if (arrived < asked) {
            Slot &slot = lane->slots[arrived % lane->count];
            PVG_TRY(cudaEventSynchronize(slot.copied));
            finish_work(&slot.unfinished); // the touch: it must not bring older bytes back
            start_copy(&slot.unfinished, to + chunks.begin(arrived), slot.bytes,
                       chunks.size(arrived));
            arrived++;
        } else {
            finish_work(&lane->slots[done % lane->count].unfinished);
        }
        while (done < arrived && lane->slots[done % lane->count].unfinished.load() == 0) done++;
    }
    return PVG_OK;
}

} // namespace

int staged_upload(int device, cudaStream_t stream, void *to, const void *from, int64_t bytes) {
    Lane *lane = &uploads[device];
    Chunks chunks = chunks_of(bytes);
    std::lock_guard<std::mutex> hold(lane->lock);
    if (slots_for(lane, chunks.count()) == 0) {
        PVG_TRY(
            cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream));
        return PVG_OK;
    }
    int status = upload_chunks(lane, stream, static_cast<unsigned char *>(to),
                               static_cast<const unsigned char *>(from), chunks);
    if (status != PVG_OK) abandon(lane, stream);
    return status;
}

int staged_download(int device, cudaStream_t stream, void *to, const void *from, int64_t bytes) {
    Lane *lane = &downloads[device];
    Chunks chunks = chunks_to(to, bytes);
    std::lock_guard<std::mutex> hold(lane->lock);
    counters[PVG_COUNT_WAITS]++;
    if (slots_for(lane, chunks.count()) == 0) {
        PVG_TRY(
            cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream));
        PVG_TRY(cudaStreamSynchronize(stream));
        return PVG_OK;
    }
    int status = download_chunks(lane, stream, static_cast<unsigned char *>(to),
                                 static_cast<const unsigned char *>(from), chunks);
    if (status != PVG_OK) abandon(lane, stream);
    return status;
}

Landing::Landing(int64_t wanted) : bytes(nullptr) {
    if (wanted > size) return;
    std::lock_guard<std::mutex> hold(landings_lock);
    if (!landings_registered && cudaHostRegister(&landing_pages, sizeof landing_pages,
                                                 cudaHostRegisterPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        return;
    }
    landings_registered = true;
    for (int i = 0; i < landing_count && !bytes; i++) {
        if (landings_taken[i]) continue;
        landings_taken[i] = true;
        bytes = landing_pages.bytes[i];
    }
}

Landing::~Landing() {
    if (!bytes) return;
    std::lock_guard<std::mutex> hold(landings_lock);
    landings_taken[(bytes - landing_pages.bytes[0]) / size] = false;
}

// Whoever needs one next brings them back.
static int free_landings() {
    std::lock_guard<std::mutex> hold(landings_lock);
    for (bool taken : landings_taken)
        if (taken) return PVG_OK;
    if (landings_registered) PVG_TRY(cudaHostUnregister(&landing_pages));
    landings_registered = false;
    return PVG_OK;
}

int free_staging(int device) {
    PVG_PASS(free_landings());
    for (Lane *lane : {&uploads[device], &downloads[device]}) {
        std::lock_guard<std::mutex> hold(lane->lock);
        while (lane->count > 0) {
            Slot &slot = lane->slots[lane->count - 1];
            PVG_PASS(wait_for_slot(&slot));
            lane->count--;
            PVG_TRY(cudaEventDestroy(slot.copied));
            PVG_TRY(cudaFreeHost(slot.bytes));
        }
    }
    return PVG_OK;
}

} // namespace pvg
