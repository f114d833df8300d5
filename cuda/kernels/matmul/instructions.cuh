// The instructions that CUDA C has no words for and that more than one room of this house uses:
// addresses and copies in shared memory (cp.async, compute capability 8.0), and barriers of a part
// of a block. What one room alone uses is there: in sm80/ the products of a warp and how their
// operands are read. Clusters, and the start of a kernel before the one ahead of it has ended, are
// in kernels/clusters.cuh, TMA, its barriers and the products of a warpgroup in kernels/hopper.cuh.
//
// Those that the simulated card has are functions of pvg_sim there, which ask the card that runs
// whether it has them; so there everything is compiled.
#pragma once
#include "kernels/clusters.cuh"
#include <stdint.h>

namespace pvg::matmul {

using clusters::cluster_sync;
using clusters::cluster_sync_after_reading;
using clusters::has_clusters;
using clusters::let_next_kernel_start;
using clusters::wait_for_previous_kernel;
using fragments::commit_copies;
using fragments::wait_for_copies;

// ---- Indices -----------------------------------------------------------------------------------

// blockIdx.x and threadIdx.x, read anew: what is made of them takes no registers between.
__device__ __forceinline__ unsigned block_anew() {
#ifdef PVG_SIMULATOR
    return blockIdx.x;
#else
    unsigned block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block;
#endif
}
__device__ __forceinline__ unsigned thread_anew() {
#ifdef PVG_SIMULATOR
    return threadIdx.x;
#else
    unsigned thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
#endif
}

// ---- Shared memory ------------------------------------------------------------------------------

using fragments::shared_address; // the 32-bit offset in the shared memory window

// Four elements, volatile: the compiler would load them later than is good.
__device__ __forceinline__ void read_four(uint32_t from, float *to) {
#ifdef PVG_SIMULATOR
    memcpy(to, pvg_sim::shared_pointer(from, 16), 16);
#else
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from));
#endif
}
__device__ __forceinline__ void write_one(uint32_t to, float value) {
#ifdef PVG_SIMULATOR
    memcpy(pvg_sim::shared_pointer(to, 4), &value, 4);
#else
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value));
#endif
}

// ---- Asynchronous copies ------------------------------------------------------------------------

// Copies the first `count` of BYTES (8 or 16) to shared memory, and zeros in place of the rest.
template <int BYTES>
__device__ __forceinline__ void copy_async(uint32_t to, const void *from, int count) {
    static_assert(BYTES == 8 || BYTES == 16);
#ifdef PVG_SIMULATOR
    pvg_sim::copy_async(to, from, BYTES, count);
#else
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(count));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from),
                     "r"(count));
#endif
}
// Copies all of BYTES (4 or 16), or zeros, and then the address is not read. (The form above would
// cost four more instructions a copy.)
template <int BYTES>
__device__ __forceinline__ void copy_async_if(bool exists, uint32_t to, const void *from) {
    static_assert(BYTES == 4 || BYTES == 16);
#ifdef PVG_SIMULATOR
    pvg_sim::copy_async(to, from, BYTES, exists ? BYTES : 0);
#else
    if constexpr (BYTES == 16)
        asm volatile("{\n.reg .pred none;\n"
                     "setp.eq.b32 none, %2, 0;\n"
                     "cp.async.cg.shared.global [%0], [%1], 16, none;\n}\n" ::"r"(to),
                     "l"(from), "r"(int(exists)));
    else
        asm volatile("{\n.reg .pred none;\n"
                     "setp.eq.b32 none, %2, 0;\n"
                     "cp.async.ca.shared.global [%0], [%1], 4, none;\n}\n" ::"r"(to),
                     "l"(from), "r"(int(exists)));
#endif
}

// ---- Barriers of a part of a block --------------------------------------------------------------

// THREADS of them, whole warps; 0 is the barrier of the whole block.
template <int THREADS> __device__ __forceinline__ void sync_threads(int barrier) {
#ifdef PVG_SIMULATOR
    pvg_sim::sync_threads(barrier, THREADS);
#else
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
#endif
}
// Arrives for those who wait at it, and does not wait.
template <int THREADS> __device__ __forceinline__ void arrive_at(int barrier) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
}

} // namespace pvg::matmul
