/* Instructions without a word in CUDA C, as the kernels' own headers call them: asynchronous copies
 * to shared memory, barriers there that count bytes, clusters, dependent launches.
 *
 * Each needs the compute capability that it came with: on an older card the kernel fails, as code
 * for a newer one cannot run there. Shared memory is addressed by 32 bits, as in PTX; an address
 * outside of the block's dynamic shared memory, or one that is not aligned, is an error. */
#pragma once
#include <cstdint>

namespace pvg_sim {

/* ---- Shared memory by its address (async_copies.cpp) ---- */

uint32_t shared_address(const void *pointer);         /* of the block's dynamic shared memory */
void *shared_pointer(uint32_t address, size_t bytes); /* aligned to them */

/* ---- cp.async, 8.0 (async_copies.cpp) ---- */

/* Copies the first `count` of 4, 8 or 16 bytes, and zeros in place of the rest: when this thread
 * waits for the group. Until then shared memory holds 0xFF there. */
void copy_async(uint32_t to, const void *from, int bytes, int count);
void commit_copies();
void wait_for_copies(unsigned groups); /* until at most so many are on their way */

/* ---- Barriers in shared memory, and of a part of a block (events.cpp) ---- */

void make_barrier(uint32_t barrier, int arrivals);
void arrive_at_barrier(uint32_t barrier, int arrivals, int expected_bytes);
void wait_at_barrier(uint32_t barrier, int parity, const char *file = __builtin_FILE(),
                     int line = __builtin_LINE());
void sync_threads(int barrier, int threads, const char *file = __builtin_FILE(),
                  int line = __builtin_LINE());

/* ---- TMA, 9.0 (tensor_maps.cpp) ---- */

/* A box to shared memory, counted by the barrier: when a thread waits there and nothing else can
 * run. Until then shared memory holds 0xFF there. The tensor has `rank` dimensions. */
void load_tile(uint32_t to, const void *map, uint32_t barrier, int rank, const int *place);

/* ---- Clusters, 9.0 (clusters.cpp) ---- */

void cluster_barrier(const char *file = __builtin_FILE(), int line = __builtin_LINE());
/* What is at the same place in the shared memory of block `rank` of the cluster. */
const void *in_cluster(const void *pointer, unsigned rank, size_t bytes);
/* Writes there, and counts the bytes at the barrier at the same place of that block (st.async). */
void send_to_block(void *pointer, unsigned rank, const void *value, size_t bytes, uint32_t barrier);

/* ---- Programmatic dependent launch, 9.0; before, nothing (events.cpp) ---- */

/* A thread of a kernel that was launched with overlap has to wait before it copies or returns. */
void wait_for_previous_kernel();

} /* namespace pvg_sim */

/* ---- Reductions of a warp, 8.0 ---- */

#define PVG_SIM_REDUCE(name, T, expression)                                          \
    inline T __reduce_##name##_sync(unsigned mask, T value, PVG_SIM_HERE) {          \
        T result = value;                                                            \
        for (unsigned left = mask; left; left &= left - 1) {                         \
            T other = pvg_sim_shuffle(mask, value, __builtin_ctz(left), file, line); \
            result = expression;                                                     \
        }                                                                            \
        return result;                                                               \
    }
PVG_SIM_REDUCE(max, unsigned, other > result ? other : result)
PVG_SIM_REDUCE(min, unsigned, other < result ? other : result)
#undef PVG_SIM_REDUCE
