// Clusters: up to eight neighbouring blocks of a grid that run together, wait for each other and
// read each other's shared memory, compute capability 9.0 (LaunchExtras::cluster); kernels that
// start before the one ahead of them has ended; and what code is compiled for, where it is asked by
// #if.
//
// The simulated card has them, in kernels whose shared memory is all dynamic; it asks the card that
// runs whether it has them, so there everything is compiled.
#pragma once
#include "kernels/fragments.cuh"

// Compute capability times 100, 0 on the host, and whether it is 9.0a, which has the instructions
// that no later card has.
#if defined(PVG_SIMULATOR)
#define PVG_TARGET 900
#elif defined(__CUDA_ARCH__)
#define PVG_TARGET __CUDA_ARCH__
#else
#define PVG_TARGET 0
#endif
#if defined(PVG_SIMULATOR) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define PVG_TARGET_IS_90A 1
#else
#define PVG_TARGET_IS_90A 0
#endif

namespace pvg::clusters {

// Before 9.0 blocks are alone, and what follows is not called.
constexpr bool has_clusters = PVG_TARGET >= 900;

// All threads of all blocks of the cluster. A block must not end while another may still read or
// write its shared memory or arrive at its barriers: end the kernel with this.
__device__ __forceinline__ void cluster_sync() {
#ifdef PVG_SIMULATOR
    pvg_sim::cluster_barrier();
#elif PVG_TARGET >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#endif
}
// The same in two steps, between which a thread does what concerns nobody else. What it wrote
// before it arrived, others see when they have waited.
__device__ __forceinline__ void arrive_at_cluster() {
#if PVG_TARGET >= 900 && !defined(PVG_SIMULATOR)
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_cluster() {
#ifdef PVG_SIMULATOR
    pvg_sim::cluster_barrier();
#elif PVG_TARGET >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// The end of a kernel that has only read: nothing is left to be made visible. Lanes that came here
// on ways of their own are together before the barrier, which a warp arrives at as one.
__device__ __forceinline__ void cluster_sync_after_reading() {
    __syncwarp();
#ifdef PVG_SIMULATOR
    pvg_sim::cluster_barrier();
#elif PVG_TARGET >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#endif
}

// What lies at the same place in the shared memory of a block of the cluster.
__device__ __forceinline__ unsigned read_of_block(const unsigned *from, unsigned rank) {
    unsigned value = 0;
#ifdef PVG_SIMULATOR
    value = *static_cast<const unsigned *>(pvg_sim::in_cluster(from, rank, sizeof(unsigned)));
#elif PVG_TARGET >= 900
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %1, %2;\n"
                 "ld.shared::cluster.u32 %0, [there];\n}\n"
                 : "=r"(value)
                 : "r"(fragments::shared_address(from)), "r"(rank));
#endif
    return value;
}
__device__ __forceinline__ float read_of_block(const float *from, unsigned rank) {
    float value = 0;
#ifdef PVG_SIMULATOR
    value = *static_cast<const float *>(pvg_sim::in_cluster(from, rank, sizeof(float)));
#elif PVG_TARGET >= 900
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %1, %2;\n"
                 "ld.shared::cluster.f32 %0, [there];\n}\n"
                 : "=f"(value)
                 : "r"(fragments::shared_address(from)), "r"(rank));
#endif
    return value;
}

// Raises what lies at the same place in the shared memory of a block of the cluster to so much, if
// it is less.
__device__ __forceinline__ void raise_of_block(unsigned *to, unsigned rank, unsigned value) {
#ifdef PVG_SIMULATOR
    const void *there = pvg_sim::in_cluster(to, rank, sizeof(unsigned));
    atomicMax(static_cast<unsigned *>(const_cast<void *>(there)), value);
#elif PVG_TARGET >= 900
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "red.relaxed.cluster.shared::cluster.max.u32 [there], %2;\n}" ::"r"(
                     fragments::shared_address(to)),
                 "r"(rank), "r"(value)
                 : "memory");
#endif
}

// ---- Programmatic dependent launch --------------------------------------------------------------

// For kernels launched with LaunchExtras.overlap. Until wait_for_previous_kernel nothing that
// another kernel uses is read or written; it returns when that kernel and its writes are complete.
// let_next_kernel_start may come first: the next one waits too. Before 9.0 they are nothing.
__device__ __forceinline__ void let_next_kernel_start() {
#if PVG_TARGET >= 900 && !defined(PVG_SIMULATOR) // kernels run one after another there
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_previous_kernel() {
#ifdef PVG_SIMULATOR
    pvg_sim::wait_for_previous_kernel();
#elif PVG_TARGET >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

} // namespace pvg::clusters
