// The instructions of compute capability 9.0 that CUDA C has no words for and that products and
// attention use: asynchronous copies of tiles (TMA), barriers in shared memory that count bytes,
// and products of warpgroups (wgmma). Tensor maps, which tell TMA how a matrix lies in memory, are
// made on the host: make_tensor_map in hopper.cu.
//
// The instructions exist on sm_90a only: kernels that use them have their body inside
// #if PVG_TARGET_IS_90A. The simulated card has barriers and TMA, but no multicast and no wgmma:
// the files that use those are empty there.
//
// The usual pipeline: shared memory holds a ring of stages, each with two barriers.
//   producer (one thread): wait(empty), expect_bytes(full, stage), load_tile ... -> full
//   consumers (warpgroups): wait(full), wgmma ..., wait until it has read the stage, arrive(empty)
#pragma once
#include "runtime/error.cuh"
#include <cuda.h>
#include <stdint.h>

namespace pvg::hopper {

// ---- Tensor maps (host) -------------------------------------------------------------------------

// A matrix, or a stack of them, as TMA reads it: dimension 0 has no gaps, strides are those of the
// dimensions after it. Elements outside of `size` are read as zeros.
struct TensorView {
    CUtensorMapDataType type;
    CUtensorMapSwizzle swizzle;
    const void *data;   // a multiple of 16 bytes
    int rank;           // 2 to 5
    uint64_t size[5];   // elements, each up to 2^32
    uint64_t stride[4]; // bytes from index to index of dimensions 1 and on; multiples of 16
    uint32_t box[5];    // elements of one load, each up to 256; box[0] at most the swizzle's span
};

// Kernels take the map by value, as `const __grid_constant__ CUtensorMap`.
int make_tensor_map(CUtensorMap *map, const TensorView &view);

// Whether a TensorView can have such a stride.
inline bool is_tma_stride(int64_t bytes) {
    return bytes > 0 && bytes % 16 == 0 && bytes < int64_t(1) << 40;
}

// ---- Shared memory and barriers -----------------------------------------------------------------

// Barriers and tiles are addressed by shared_address.
// What a swizzle of 128 bytes repeats after: tiles begin at multiples of it.
constexpr int tile_alignment = 1024;

// A barrier's phase ends when `arrivals` have arrived and the bytes expected in it have come. One
// thread makes all barriers, then publish_barriers and a barrier of the block (or cluster).
__device__ __forceinline__ void make_barrier(uint32_t barrier, int arrivals) {
#ifdef PVG_SIMULATOR
    pvg_sim::make_barrier(barrier, arrivals);
#else
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
#endif
}
__device__ __forceinline__ void publish_barriers() {
#ifndef PVG_SIMULATOR // which has no weak memory order
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
// Wait for the end of the phase with this parity: 0 for the first, third, ... phase. Waiting for
// parity 1 on a fresh barrier returns at once: so a producer finds all stages empty.
__device__ __forceinline__ void wait(uint32_t barrier, int parity) {
#ifdef PVG_SIMULATOR
    pvg_sim::wait_at_barrier(barrier, parity);
#else
    asm volatile("{\n.reg .pred done;\n"
                 "again%=:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over%=;\n"
                 "bra again%=;\n"
                 "over%=:\n}\n" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
#endif
}
// Arrive, and expect so many bytes from TMA in this phase. What lies outside of the matrix counts.
__device__ __forceinline__ void expect_bytes(uint32_t barrier, int bytes) {
#ifdef PVG_SIMULATOR
    pvg_sim::arrive_at_barrier(barrier, 1, bytes);
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
#endif
}
// Arrive so many times.
__device__ __forceinline__ void arrive(uint32_t barrier, int arrivals = 1) {
#ifdef PVG_SIMULATOR
    pvg_sim::arrive_at_barrier(barrier, arrivals, 0);
#else
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
#endif
}
// Arrive at the same barrier of block `rank` of the cluster. Without .release.cluster: that adds a
// memory barrier of 0.9 us to every step, and nothing that was written has to be seen.
__device__ __forceinline__ void arrive_in_cluster(uint32_t barrier, uint32_t rank) {
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}
// What ordinary instructions have written to shared memory may be read by TMA and wgmma: every
// writing thread executes this, then a barrier.
__device__ __forceinline__ void fence_async_proxy() {
#ifndef PVG_SIMULATOR // where TMA sees what is written
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
// The same for what was written to global memory.
__device__ __forceinline__ void fence_async_proxy_global() {
#ifndef PVG_SIMULATOR
    asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
}
// A barrier of the 128 threads of a warpgroup: whether any of them has a value other than 0.
__device__ __forceinline__ int warpgroup_any(int value, int barrier) {
    int any;
    asm volatile("{\n.reg .pred mine, one;\n"
                 "setp.ne.b32 mine, %1, 0;\n"
                 "bar.red.or.pred one, %2, 128, mine;\n"
                 "selp.b32 %0, 1, 0, one;\n}\n"
                 : "=r"(any)
                 : "r"(value), "r"(barrier)
                 : "memory");
    return any;
}

// Warpgroups take turns at the block's barriers 1 to 15: one waits at a barrier for another one,
// which gives it the turn there and goes on.
__device__ __forceinline__ void wait_for_turn(int barrier) {
    asm volatile("bar.sync %0, 256;" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void give_turn(int barrier) {
    asm volatile("bar.arrive %0, 256;" ::"r"(barrier) : "memory");
}
// Numbers in shared memory.
__device__ __forceinline__ void write_number(uint32_t to, float number) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(number) : "memory");
}
__device__ __forceinline__ float2 read_pair(uint32_t from) {
    float2 pair;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(from));
    return pair;
}

// ---- Clusters -----------------------------------------------------------------------------------

__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// ---- TMA ----------------------------------------------------------------------------------------

// One thread copies a box, whose first element has these coordinates (x in dimension 0), to shared
// memory; the barrier counts its bytes. With `blocks`, a mask of ranks, the box and the count go to
// the same places of all those blocks of the cluster, each of which expects the bytes.
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                                          int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
}
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                                          int x, int y, int z) {
#ifdef PVG_SIMULATOR
    const int place[] = {x, y, z};
    pvg_sim::load_tile(to, map, barrier, 3, place);
#else
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
                 : "memory");
#endif
}
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                                          const int (&place)[5]) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(place[0]), "r"(place[1]), "r"(place[2]), "r"(place[3]),
                 "r"(place[4])
                 : "memory");
}
__device__ __forceinline__ void load_tile_multicast(uint32_t to, const CUtensorMap *map,
                                                    uint32_t barrier, int x, int y, int z,
                                                    uint16_t blocks) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
                 : "memory");
}
__device__ __forceinline__ void prefetch_map(const CUtensorMap *map) {
#ifdef PVG_SIMULATOR
    (void)map;
#else
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

// ---- Warpgroup products -------------------------------------------------------------------------

// A warpgroup's registers a thread, a multiple of 8; every warp of it executes the same one. The
// sum over a block's warpgroups must fit what the block was launched with: __launch_bounds__(384,
// 1) gives 168 a thread, 3 x 168 = 504 = 40 + 232 + 232. With 48 + 232 + 232 = 512 the last
// increase waits for ever, and the compiler says nothing.
template <int N> __device__ __forceinline__ void give_registers() {
    static_assert(N % 8 == 0 && N >= 24 && N <= 256);
#ifndef PVG_SIMULATOR // which has no registers
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
template <int N> __device__ __forceinline__ void take_registers() {
    static_assert(N % 8 == 0 && N >= 24 && N <= 256);
#ifndef PVG_SIMULATOR
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

// Before the first product of a group, and when registers of it were written by other instructions.
__device__ __forceinline__ void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Wait until at most N committed groups are still at work.
template <int N> __device__ __forceinline__ void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// Keeps the compiler from moving reads and writes of the sums across this point. Sums touched while
// products are at work, registers that spill, a call that is not inlined or a sum indexed at run
// time make ptxas serialise the products: it says C7510 and the build fails.
template <int N> __device__ __forceinline__ void pin_sums(float (&sums)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(sums[i])::"memory");
}

// A tile's descriptor for wgmma: where it begins in shared memory and how it lies there. All our
// tiles are swizzled as TMA writes them; their rows are as long as the swizzle's span: 128, 64 or
// 32 bytes.
//   Along k ("K-major"): a row of the tile is one m or n. row_groups = 8 spans, from 8 rows to the
//     next 8; slabs is ignored. 32 bytes further in a row (+2 in the descriptor) is the next step.
//   Along m or n (16-bit elements only; the instruction's transpose flag): a row is one k and holds
//     64 of m or n. slabs: from 64 of m or n to the next 64; row_groups = 8 spans, from 8 of k to
//     the next 8. 16 rows further (+128 at 128 bytes) is the next step.
enum Swizzle : uint32_t { swizzle_128 = 1, swizzle_64 = 2, swizzle_32 = 3 };

__host__ __device__ constexpr uint64_t tile_layout(int slabs, int row_groups, Swizzle swizzle) {
    return static_cast<uint64_t>(swizzle) << 62 | static_cast<uint64_t>(row_groups >> 4) << 32 |
           static_cast<uint64_t>(slabs >> 4) << 16;
}
__device__ __forceinline__ uint64_t describe_tile(uint32_t address, uint64_t layout) {
    return layout | (address & 0x3FFFF) >> 4;
}

} // namespace pvg::hopper
