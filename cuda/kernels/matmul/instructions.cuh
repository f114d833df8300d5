// The instructions that CUDA C has no words for and that more than one room of this house uses:
// addresses and copies in shared memory (cp.async, compute capability 8.0), and of compute
// capability 9.0 the start of a kernel before the one ahead of it has ended, clusters, and barriers
// of a part of a block. What one room alone uses is there: in sm80/ the products of a warp and how
// their operands are read, in sm90/hopper.cuh TMA, its barriers and the products of a warpgroup.
#pragma once
#include <stdint.h>

namespace pvg::matmul {

// ---- Shared memory ------------------------------------------------------------------------------

// Instructions take the 32-bit offset in the shared memory window.
__device__ __forceinline__ uint32_t shared_address(const void *pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// ---- Asynchronous copies ------------------------------------------------------------------------

// Copies the first `count` of BYTES (8 or 16) to shared memory, and zeros in place of the rest.
template <int BYTES>
__device__ __forceinline__ void copy_async(uint32_t to, const void *from, int count) {
    static_assert(BYTES == 8 || BYTES == 16);
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(count));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from),
                     "r"(count));
}
// Copies all of BYTES (4 or 16), or zeros, and then the address is not read. (The form above would
// cost four more instructions a copy.)
template <int BYTES>
__device__ __forceinline__ void copy_async_if(bool exists, uint32_t to, const void *from) {
    static_assert(BYTES == 4 || BYTES == 16);
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
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
// Wait until at most N committed groups of this thread are still on their way.
template <int N> __device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// ---- Programmatic dependent launch --------------------------------------------------------------

// For kernels launched with LaunchExtras.overlap. Until wait_for_previous_kernel nothing that
// another kernel uses is read or written; it returns when that kernel and its writes are complete.
// let_next_kernel_start may come first: the next one waits too.
__device__ __forceinline__ void let_next_kernel_start() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
__device__ __forceinline__ void wait_for_previous_kernel() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// ---- Clusters -----------------------------------------------------------------------------------

// All threads of all blocks of the cluster. A block must not end while another may still write to
// its shared memory or arrive at its barriers: end the kernel with this.
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
// The same for the end of a kernel that has only read: nothing is left to be made visible.
__device__ __forceinline__ void cluster_sync_after_reading() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

// ---- Barriers of a part of a block --------------------------------------------------------------

// THREADS of them, whole warps; 0 is the barrier of the whole block.
template <int THREADS> __device__ __forceinline__ void sync_threads(int barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
}
// Arrives for those who wait at it, and does not wait.
template <int THREADS> __device__ __forceinline__ void arrive_at(int barrier) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
}

} // namespace pvg::matmul
