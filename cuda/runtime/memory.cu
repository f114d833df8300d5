// The memory pool: cudaMalloc is slow (tens of microseconds, and cudaFree waits for the device), so
// freed memory is kept and handed out again.
//
// Memory comes from the driver in segments. A segment belongs to one arena (a stream's small or
// large blocks) and is cut into blocks, which know their neighbours. A freed block merges with free
// neighbours and goes to its arena's bins, by size: eight bins per power of two, with a bitmap to
// find the next one in use. Work on a stream runs in order, so a block freed on a stream may be
// handed out again on it at once; other streams that used it are waited for by events
// (stream_collects). The state of all this lives on the host; the device memory itself is never
// touched.
//
// PVG_ALLOCATOR_DIRECT and _DEBUG make every block a cudaMalloc of its own, which memory checkers
// understand; but a recording's blocks are its arena's (graph.cuh).
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/memory.cuh"
#include "runtime/report.cuh"
#include "runtime/staging.cuh"
#include "runtime/stream.cuh"
#include <mutex>
#include <stdlib.h>
#include <string.h>

namespace pvg {

std::atomic<int64_t> option_allocator;

namespace {

constexpr size_t granule = 512;           // sizes are multiples of this
constexpr size_t small_limit = 1 << 20;   // larger blocks live in arenas of their own
constexpr size_t small_segment = 2 << 20; // also the unit of all segments
constexpr size_t large_block = 64 << 20;  // see is_fitting
constexpr int bins_per_doubling = 8, bin_count = 8 * 48, bin_words = bin_count / 64;
constexpr size_t canary_bytes = 256;
constexpr unsigned char canary = 0xC5;

struct Arena;
struct Segment {
    Arena *arena;
    unsigned char *base;
    size_t bytes;
    Block *first;
    Segment *next, *before; // in the arena's list
};

} // namespace

struct Block {
    Segment *segment;
    unsigned char *data;
    size_t bytes;
    Block *left, *right;            // neighbours in the segment
    Block *free_next, *free_before; // in the bin's list
    int device;
    bool free;
    bool guarded; // has canaries (PVG_ALLOCATOR_DEBUG)
};

namespace {

struct Arena {
    Stream *stream;
    uint64_t id; // the stream's; 0: not in use
    bool small;
    bool pinned; // to a graph: even free blocks of it are written to
    Block *bins[bin_count];
    uint64_t used[bin_words]; // a bit for each bin that holds a block
    Segment *segments;
    Arena *next;
};

struct Pool {
    std::mutex lock;
    Arena *arenas;
    Block *spare_blocks; // records to use again, linked by free_next
    bool host_is_full;   // the last allocation had no memory of the host for its records
    int64_t limit, live_bytes, reserved, peak, live_blocks, allocations, driver_calls;
};
Pool pools[max_devices];

// The bin of a size in granules: its power of two and the next three bits.
int bin_of(size_t bytes) {
    uint64_t units = bytes / granule;
    if (units < bins_per_doubling) return static_cast<int>(units);
    int top = 63 - __builtin_clzll(units);
    int bin = (top - 2) * bins_per_doubling +
              static_cast<int>(units >> (top - 3) & (bins_per_doubling - 1));
    return bin < bin_count ? bin : bin_count - 1;
}

void insert_free(Arena *arena, Block *b) {
    int bin = bin_of(b->bytes);
    b->free = true;
    b->free_before = nullptr;
    b->free_next = arena->bins[bin];
    if (b->free_next) b->free_next->free_before = b;
    arena->bins[bin] = b;
    arena->used[bin / 64] |= 1ull << (bin % 64);
}

void remove_free(Arena *arena, Block *b) {
    int bin = bin_of(b->bytes);
    if (b->free_next) b->free_next->free_before = b->free_before;
    if (b->free_before)
        b->free_before->free_next = b->free_next;
    else if (!(arena->bins[bin] = b->free_next))
        arena->used[bin / 64] &= ~(1ull << (bin % 64));
    b->free = false;
}

// Small requests leave large blocks alone: one live piece of a large segment would keep the rest of
// it from going back to the driver. (Unless memory is short: see add_segment.)
bool is_fitting(const Block *b, size_t bytes, bool waste) {
    return b->bytes >= bytes && (waste || b->bytes <= large_block || bytes >= b->bytes / 2);
}

// The smallest fitting block of the size's own bin (a few are looked at), else any of the next bin
// in use.
Block *find_free(Arena *arena, size_t bytes, bool waste) {
    int bin = bin_of(bytes), looked = 0;
    Block *best = nullptr;
    for (Block *b = arena->bins[bin]; b && looked < 16; b = b->free_next, looked++)
        if (is_fitting(b, bytes, waste) && (!best || b->bytes < best->bytes)) {
            best = b;
            if (b->bytes == bytes) break;
        }
    if (best) return best;
    for (int at = bin + 1; at < bin_count; at = (at / 64 + 1) * 64) {
        uint64_t word = arena->used[at / 64] >> (at % 64);
        if (!word) continue;
        Block *b = arena->bins[at + __builtin_ctzll(word)];
        return is_fitting(b, bytes, waste) ? b : nullptr; // later bins have larger blocks only
    }
    return nullptr;
}

// Zeros of the host's memory for what the pool itself keeps.
template <class T> T *new_record(Pool *pool) {
    T *record = static_cast<T *>(calloc(1, sizeof(T)));
    if (!record) pool->host_is_full = true;
    return record;
}

Block *take_record(Pool *pool) {
    Block *b = pool->spare_blocks;
    if (!b) return new_record<Block>(pool);
    pool->spare_blocks = b->free_next;
    memset(b, 0, sizeof *b);
    return b;
}
void drop_record(Pool *pool, Block *b) {
    b->free_next = pool->spare_blocks;
    pool->spare_blocks = b;
}

Arena *find_arena(Pool *pool, Stream *stream, bool small) {
    Arena *unused = nullptr;
    for (Arena *a = pool->arenas; a; a = a->next) {
        if (a->id == stream_id(stream) && a->small == small) return a;
        if (a->id == 0) unused = a;
    }
    if (!unused) {
        unused = new_record<Arena>(pool);
        if (!unused) return nullptr;
        unused->next = pool->arenas;
        pool->arenas = unused;
    }
    unused->stream = stream, unused->id = stream_id(stream), unused->small = small;
    unused->pinned = recording_on(stream) != nullptr;
    return unused;
}

// Cut a block down to `bytes`; the rest becomes a free neighbour if it is worth keeping.
void split(Pool *pool, Arena *arena, Block *b, size_t bytes) {
    size_t rest = b->bytes - bytes;
    if (rest < (arena->small ? granule : small_limit)) return;
    Block *r = take_record(pool);
    if (!r) return;
    r->segment = b->segment, r->device = b->device;
    r->data = b->data + bytes, r->bytes = rest;
    r->left = b, r->right = b->right;
    if (r->right) r->right->left = r;
    b->right = r, b->bytes = bytes;
    insert_free(arena, r);
}

// The driver's memory, counted. NULL if there is none (the CUDA error is cleared) or the limit
// forbids it.
unsigned char *driver_allocate(Pool *pool, size_t bytes) {
    if (pool->limit > 0 && static_cast<int64_t>(bytes) > pool->limit - pool->reserved)
        return nullptr;
    void *p = nullptr;
    pool->driver_calls++;
    if (cudaMalloc(&p, bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return nullptr;
    }
    pool->reserved += static_cast<int64_t>(bytes);
    return static_cast<unsigned char *>(p);
}
void driver_free(Pool *pool, unsigned char *p, size_t bytes) {
    pool->driver_calls++;
    pool->reserved -= static_cast<int64_t>(bytes);
    if (cudaFree(p) != cudaSuccess) (void)cudaGetLastError();
}

void unlink_segment(Segment *s) {
    if (s->next) s->next->before = s->before;
    if (s->before)
        s->before->next = s->next;
    else
        s->arena->segments = s->next;
}
void link_segment(Arena *arena, Segment *s) {
    s->arena = arena, s->before = nullptr, s->next = arena->segments;
    if (s->next) s->next->before = s;
    arena->segments = s;
}

// Give every segment without a live block back, but for those of graphs. The caller has made sure
// that the device is done with them.
void release_free_segments(Pool *pool) {
    for (Arena *a = pool->arenas; a; a = a->next)
        for (Segment *s = a->pinned ? nullptr : a->segments, *next; s; s = next) {
            next = s->next;
            if (!s->first->free || s->first->right) continue;
            remove_free(a, s->first);
            drop_record(pool, s->first);
            unlink_segment(s);
            driver_free(pool, s->base, s->bytes);
            free(s);
        }
}

// Segments grow with what is held already, so that few are needed and little is wasted.
size_t segment_bytes(const Pool *pool, const Arena *arena, size_t bytes) {
    if (arena->small) return small_segment;
    size_t growth = static_cast<size_t>(pool->reserved) / 8;
    size_t wish = growth > large_block ? large_block : growth;
    if (wish < bytes) wish = bytes;
    return (wish + small_segment - 1) / small_segment * small_segment;
}

// A free block of at least `bytes` in a new segment. When memory is short: in a segment of just
// that size; or a part of a large block; or in a segment after the caches have been emptied.
Block *add_segment(Pool *pool, Arena *arena, int device, size_t bytes) {
    Segment *s = new_record<Segment>(pool);
    Block *b = s ? take_record(pool) : nullptr, *found = nullptr;
    size_t wish = segment_bytes(pool, arena, bytes);
    unsigned char *p = b ? driver_allocate(pool, wish) : nullptr;
    if (b && !p && wish > bytes) p = driver_allocate(pool, wish = bytes);
    if (b && !p) found = find_free(arena, bytes, true);
    if (b && !p && !found && finish_device(device) == cudaSuccess) {
        release_free_segments(pool);
        p = driver_allocate(pool, wish = bytes);
    }
    if (!p) {
        if (b) drop_record(pool, b);
        free(s);
        return found;
    }
    s->base = p, s->bytes = wish, s->first = b;
    b->segment = s, b->data = p, b->bytes = wish, b->device = device;
    link_segment(arena, s);
    insert_free(arena, b);
    return b;
}

Block *allocate_from_pool(Pool *pool, int device, Stream *stream, size_t bytes) {
    Arena *arena = find_arena(pool, stream, bytes <= small_limit);
    Block *b = arena ? find_free(arena, bytes, false) : nullptr;
    if (arena && !b) b = add_segment(pool, arena, device, bytes);
    if (!b) return nullptr;
    remove_free(arena, b);
    split(pool, arena, b, bytes);
    return b;
}

// One cudaMalloc; with canaries around it and 0xFF in it if `guarded`.
Block *allocate_direct(Pool *pool, int device, Stream *stream, size_t bytes, bool guarded) {
    Block *b = take_record(pool);
    if (!b) return nullptr;
    size_t margin = guarded ? canary_bytes : 0, all = bytes + 2 * margin;
    unsigned char *p = driver_allocate(pool, all);
    if (p && guarded) {
        cudaStream_t s = stream_handle(stream);
        bool done = cudaMemsetAsync(p, canary, all, s) == cudaSuccess &&
                    cudaMemsetAsync(p + margin, 0xFF, bytes, s) == cudaSuccess;
        if (!done) { // the first may be on its way
            (void)finish_device(device), (void)cudaGetLastError();
            driver_free(pool, p, all);
            p = nullptr;
        }
    }
    if (!p) {
        drop_record(pool, b);
        return nullptr;
    }
    b->data = p + margin, b->bytes = bytes, b->device = device, b->guarded = guarded;
    return b;
}

void check_canaries(const Block *b) {
    unsigned char seen[2 * canary_bytes];
    if (finish_device(b->device) != cudaSuccess ||
        cudaMemcpy(seen, b->data - canary_bytes, canary_bytes, cudaMemcpyDeviceToHost) !=
            cudaSuccess ||
        cudaMemcpy(seen + canary_bytes, b->data + b->bytes, canary_bytes, cudaMemcpyDeviceToHost) !=
            cudaSuccess) {
        (void)cudaGetLastError(); // the device is lost: nothing to be seen
        return;
    }
    for (unsigned char byte : seen)
        if (byte != canary) {
            counters[PVG_COUNT_CANARY_ERRORS]++;
            return;
        }
}

Block *merge(Pool *pool, Block *left, Block *right) {
    left->bytes += right->bytes;
    left->right = right->right;
    if (left->right) left->right->left = left;
    drop_record(pool, right);
    return left;
}

void return_to_pool(Pool *pool, Block *b) {
    Arena *arena = b->segment->arena;
    if (b->left && b->left->free) {
        remove_free(arena, b->left);
        b = merge(pool, b->left, b);
    }
    if (b->right && b->right->free) {
        remove_free(arena, b->right);
        b = merge(pool, b, b->right);
    }
    insert_free(arena, b);
}

int report_exhausted(int device, const Pool *pool, size_t bytes) {
    PVG_REQUIRE(!pool->host_is_full, PVG_ERROR_HOST_MEMORY,
                "no host memory for the record of %zu bytes of the device", bytes);
    size_t free_bytes = 0, total = 0;
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) (void)cudaGetLastError();
    return fail_memory(device, static_cast<int64_t>(bytes), static_cast<int64_t>(free_bytes),
                       pool->reserved, pool->limit);
}

} // namespace

int allocate(int device, Stream *stream, size_t bytes, void **data, Block **block) {
    *data = nullptr, *block = nullptr;
    if (bytes == 0) return PVG_OK;
    Pool *pool = &pools[device];
    std::lock_guard<std::mutex> hold(pool->lock);
    PVG_REQUIRE(bytes <= INT64_MAX, PVG_ERROR_VALUE,
                "%zu bytes are more than an address space holds", bytes);
    pool->host_is_full = false;
    int64_t mode = option_allocator.load(std::memory_order_relaxed);
    size_t rounded = (bytes + granule - 1) / granule * granule;
    Block *b = mode == PVG_ALLOCATOR_POOL || recording_on(stream)
                   ? allocate_from_pool(pool, device, stream, rounded)
                   : allocate_direct(pool, device, stream, bytes, mode == PVG_ALLOCATOR_DEBUG);
    if (!b) return report_exhausted(device, pool, bytes);
    pool->allocations++, pool->live_blocks++;
    pool->live_bytes += static_cast<int64_t>(b->bytes);
    if (pool->live_bytes > pool->peak) pool->peak = pool->live_bytes;
    *data = b->data, *block = b;
    return PVG_OK;
}

Stream *deallocate(Block *b, uint64_t safe) {
    Pool *pool = &pools[b->device];
    std::lock_guard<std::mutex> hold(pool->lock);
    if (b->segment && safe != any_stream && safe != b->segment->arena->id)
        return b->segment->arena->stream;
    pool->live_blocks--;
    pool->live_bytes -= static_cast<int64_t>(b->bytes);
    if (b->segment) {
        return_to_pool(pool, b);
        return nullptr;
    }
    size_t margin = b->guarded ? canary_bytes : 0;
    if (!device_lost) {
        DeviceScope scope;
        (void)scope.enter(b->device);
        if (b->guarded) check_canaries(b);
        // No document promises that cudaFree waits for the kernels that use the memory.
        if (finish_device(b->device) != cudaSuccess) (void)cudaGetLastError();
        driver_free(pool, b->data - margin, b->bytes + 2 * margin);
    }
    drop_record(pool, b);
    return nullptr;
}

// Arenas stay: one without a stream (id 0) is used again for the next.
void adopt_stream_memory(int device, uint64_t from, Stream *to) {
    Pool *pool = &pools[device];
    std::lock_guard<std::mutex> hold(pool->lock);
    for (Arena *a = pool->arenas; a; a = a->next) {
        Arena *target = a->id == from ? find_arena(pool, to, a->small) : nullptr;
        if (!target) continue; // another stream's, or no host memory: then it stays where it is
        while (Segment *s = a->segments) {
            for (Block *b = s->first; b; b = b->right)
                if (b->free) remove_free(a, b), insert_free(target, b);
            unlink_segment(s);
            link_segment(target, s);
        }
        a->id = 0, a->pinned = false;
    }
}

static int memory_info(int device, int64_t *values) {
    PVG_REQUIRE(values, PVG_ERROR_VALUE, "values is a null pointer");
    PVG_PASS(check_device(device));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    size_t free_bytes = 0, total = 0;
    PVG_TRY(cudaMemGetInfo(&free_bytes, &total));
    Pool *pool = &pools[device];
    std::lock_guard<std::mutex> hold(pool->lock);
    values[PVG_MEMORY_USED] = pool->live_bytes;
    values[PVG_MEMORY_RESERVED] = pool->reserved;
    values[PVG_MEMORY_PEAK] = pool->peak;
    values[PVG_MEMORY_LIMIT] = pool->limit;
    values[PVG_MEMORY_FREE] = static_cast<int64_t>(free_bytes);
    values[PVG_MEMORY_TOTAL] = static_cast<int64_t>(total);
    values[PVG_MEMORY_BLOCKS] = pool->live_blocks;
    values[PVG_MEMORY_ALLOCATIONS] = pool->allocations;
    values[PVG_MEMORY_DRIVER_CALLS] = pool->driver_calls;
    return PVG_OK;
}

static int set_memory_limit(int device, int64_t bytes) {
    PVG_PASS(check_device(device));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    size_t free_bytes = 0, total = 0;
    PVG_TRY(cudaMemGetInfo(&free_bytes, &total));
    PVG_REQUIRE(bytes >= 0 && bytes <= static_cast<int64_t>(total), PVG_ERROR_VALUE,
                "the memory limit must be between 0 (none) and the device's %zu bytes, got %lld",
                total, static_cast<long long>(bytes));
    std::lock_guard<std::mutex> hold(pools[device].lock);
    pools[device].limit = bytes;
    return PVG_OK;
}

int empty_all_caches() {
    for (int device = 0; device < max_devices; device++) {
        if (!pools[device].arenas) continue;
        DeviceScope scope;
        PVG_PASS(scope.enter(device));
        PVG_TRY(finish_device(device));
        std::lock_guard<std::mutex> hold(pools[device].lock);
        release_free_segments(&pools[device]);
    }
    return PVG_OK;
}

static int empty_cache(int device) {
    PVG_PASS(check_device(device));
    PVG_PASS(refuse_recording(device, "emptying the cache"));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(finish_device(device));
    PVG_PASS(free_staging(device));
    PVG_PASS(free_report_slot(device));
    std::lock_guard<std::mutex> hold(pools[device].lock);
    release_free_segments(&pools[device]);
    return PVG_OK;
}

} // namespace pvg

PVG_API int pvg_memory_info(int device, int64_t *values) {
    pvg::clear_error();
    return pvg::memory_info(device, values);
}

PVG_API int pvg_set_memory_limit(int device, int64_t bytes) {
    pvg::clear_error();
    return pvg::set_memory_limit(device, bytes);
}

PVG_API int pvg_empty_cache(int device) {
    pvg::clear_error();
    return pvg::empty_cache(device);
}
