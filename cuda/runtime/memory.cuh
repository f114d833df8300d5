// Device memory: a pool per device over cudaMalloc segments, with free lists per stream; see
// memory.cu.
#pragma once
#include "array.cuh"

namespace pvg {

struct Block; // the pool's record of one allocation

// `bytes` of device memory for use on `stream`; bytes 0 gives a NULL pointer and no block. Errors:
// MEMORY, CUDA.
int allocate(int device, Stream *stream, size_t bytes, void **data, Block **block);
// The memory may be reused by work issued later on the stream it was allocated for. Never fails.
void deallocate(Block *block);
// Whose free list the block will go to; NULL for a direct allocation.
Stream *block_stream(const Block *block);

// Called when a stream is released, after its work is done: its free memory goes to the default
// stream's lists.
void adopt_stream_memory(int device, Stream *from, Stream *to);

} // namespace pvg
