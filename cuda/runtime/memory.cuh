// Device memory: a pool per device over cudaMalloc segments, with free lists per stream; see
// memory.cu.
#pragma once
#include "runtime/error.cuh"

namespace pvg {

struct Stream;
struct Block; // the pool's record of one allocation

// `bytes` of device memory for use on `stream`; bytes 0 gives a NULL pointer and no block. Errors:
// MEMORY, CUDA.
int allocate(int device, Stream *stream, size_t bytes, void **data, Block **block);
// Gives a block back and returns NULL, if work on the stream `safe` (an id, or any_stream) is all
// that may still use it: it can then be handed out again on that stream. Otherwise does nothing and
// returns the stream that has to wait for the others first.
Stream *deallocate(Block *block, uint64_t safe);
constexpr uint64_t any_stream = UINT64_MAX;

// Gives all cached memory of all devices back: another allocator would have no use for it.
int empty_all_caches();
// The memory of the stream that had the id `from`, whose work `to` has waited for, goes to the
// lists of `to`: when it is released, or the graph that was recorded on it.
void adopt_stream_memory(int device, uint64_t from, Stream *to);

} // namespace pvg
