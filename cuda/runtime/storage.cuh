// Reference-counted memory of a device, the pool's or somebody else's, and who used it last.
#pragma once
#include "runtime/error.cuh"
#include <atomic>

namespace pvg {

struct Stream;
struct Block;
struct Graph;

// Memory on a device, and who used it last. Stream ids are never reused; 0 means nobody.
struct Storage {
    std::atomic<int64_t> references;
    void *data;
    size_t bytes;
    int device;
    Block *block;        // the pool's record; NULL for wrapped memory
    Graph *graph;        // whose arena the block is from, or NULL
    pvg_deleter deleter; // of wrapped memory, or NULL
    void *context;
    std::atomic<int64_t> version;
    std::atomic_flag lock; // guards readers
    std::atomic<uint64_t> writer;
    uint64_t readers[4]; // streams that read since the last write
};

// A storage with one reference; its memory is free for work on `stream`, which counts as its last
// writer: what touches fresh memory must follow what the pool's last owner did there.
// Errors: MEMORY, HOST_MEMORY, CUDA.
int allocate_storage(int device, Stream *stream, size_t bytes, Storage **result);
// Memory that is somebody else's; the deleter, which may be NULL, is called when nobody uses it any
// more, and not on an error. Errors: HOST_MEMORY.
int wrap_storage(int device, void *data, size_t bytes, pvg_deleter deleter, void *context,
                 Storage **result);
inline void retain_storage(Storage *storage) {
    storage->references.fetch_add(1, std::memory_order_relaxed);
}
// Gives one reference back. The last one frees the memory, in the order of the streams that used
// it. Reports nothing.
void release_storage(Storage *storage);

} // namespace pvg
