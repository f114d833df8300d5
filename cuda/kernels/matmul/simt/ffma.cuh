// The kernel that ffma.cu makes for some tiles and layouts: float32 products on the CUDA cores
// whose stages come by cp.async (ffma_stage.cuh); ffma_tile.cuh says how the rest works.
#pragma once
#include "kernels/matmul/simt/ffma_sequence.cuh"

namespace pvg::matmul {

namespace {

// sum += the tile's rows of a times its columns of b; where k is halved, of the second half alone,
// and what the first half gives is parked. The last k of a stage is multiplied behind the barrier
// that opens the next, to hide the barrier and the first reads.
template <class Tile, class Parts>
__device__ __forceinline__ void multiply(const FfmaProduct &p, const FfmaPlace &at,
                                         const FfmaMicrotile<Tile> &thread, uint32_t shared,
                                         FfmaSums<Tile> &sum) {
    typename Parts::LoaderA a;
    typename Parts::LoaderB b;
    a.begin(a_of(p, at), p.lda, at.row, at.k, at.rows);
    b.begin(b_of(p, at), p.ldb, at.column, at.k, at.columns);
    int left = at.terms; // of k, from the stage on that is loaded next
    auto load = [&](uint32_t stage) {
        const int depth = min(left, Tile::depth); // below zero beyond the end
        a.load(stage, depth);
        b.load(stage + Parts::a_bytes, depth);
        left -= Tile::depth;
    };
#pragma unroll
    for (int s = 0; s < Tile::stages - 1; s++) {
        load(shared + s * Parts::bytes);
        commit_copies();
    }
    constexpr int slice = Tile::slice_depth;
    const uint32_t in_a = (thread.row + thread.slice * slice * Parts::LoaderA::pitch) * 4;
    const uint32_t in_b =
        Parts::a_bytes + (thread.column + thread.slice * slice * Parts::LoaderB::pitch) * 4;
    const uint32_t last = shared + (Tile::stages - 1) * Parts::bytes;
    uint32_t reading = shared, writing = last;
    FfmaFragments<Tile> fragments;
    const bool idles = thread.column / Tile::warp_columns * Tile::warp_columns >= at.columns;
    const int stages = at.terms / Tile::depth + (at.terms % Tile::depth != 0);
    int stage = 0, end = Tile::halves && p.first_half ? p.first_half / Tile::depth : stages;
    for (;;) {
#pragma unroll 1
        for (; stage < end; stage++) {
            // This stage has come, for every thread; and every thread has read the one before, in
            // whose place the next is loaded.
            wait_for_copies<Tile::stages - 2>();
            __syncthreads();
            if (Tile::may_idle && idles) { // the warp loads for the others
                load(writing);
                commit_copies();
                writing = writing == last ? shared : writing + Parts::bytes;
                continue;
            }
            const uint32_t from_a = reading + in_a, from_b = reading + in_b;
            fragments.template read<Parts>(0, from_a, from_b, 0);
            fragments.multiply(1, sum);
#pragma unroll
            for (int k = 0; k < slice - 1; k++) {
                fragments.template read<Parts>((k + 1) % 2, from_a, from_b, k + 1);
                if (k == 0) load(writing);
                if (k == slice - 2) commit_copies();
                fragments.multiply(k % 2, sum);
            }
            reading = reading == last ? shared : reading + Parts::bytes;
            writing = writing == last ? shared : writing + Parts::bytes;
        }
        fragments.multiply(1, sum);
        if (!Tile::halves || end == stages) break;
        park_sums<Tile>(p, sum);
        fragments = FfmaFragments<Tile>();
        end = stages;
    }
}

// ---- The kernel ---------------------------------------------------------------------------------

// Before 9.0 the compiler needs more registers than 128 a thread, which two blocks of 256 allow.
template <class Tile>
constexpr int blocks_that_fit = PVG_TARGET < 900 && Tile::threads == 256 ? 1 : Tile::blocks;

template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V>
__global__ void __launch_bounds__(Tile::threads, blocks_that_fit<Tile>)
    ffma_kernel(const __grid_constant__ FfmaProduct p) {
#if PVG_TARGET >= 800
    PVG_DYNAMIC_SHARED(float, memory);
    const uint32_t shared = shared_address(memory);
    const FfmaPlace at = place_of_block<Tile>(p, blockIdx.x);
    const FfmaMicrotile<Tile> thread(threadIdx.x);
    FfmaSums<Tile> sum = {};
    let_next_kernel_start();
    wait_for_previous_kernel();
    using Parts = FfmaStage<Tile, A_ALONG_K, B_ALONG_K, V>;
    if constexpr (Tile::sequence > 1)
        multiply_in_sequence<Tile, Parts>(p, at, thread, shared, sum);
    else
        multiply<Tile, Parts>(p, at, thread, shared, sum);
    if (Tile::halves) add_parked(p, at, thread, sum);
    if (Tile::slices == 1 && p.direct) {
        store_plain(p, at, thread, sum);
        return;
    }
    wait_for_copies<0>(); // zeros beyond the end of k: they must not overwrite the sums
    share_sums(memory, thread, sum);
    if (has_clusters && Tile::slices > 1 && p.splits > 1)
        cluster_sync();
    else
        __syncthreads();
    if (A_ALONG_K && !B_ALONG_K && p.transposed)
        finish_transposed<Tile>(p, at, memory);
    else
        finish_tile<Tile>(p, at, memory);
    // No block leaves while another reads its sums.
    if (has_clusters && Tile::slices > 1 && p.splits > 1) cluster_sync_after_reading();
#endif
}

} // namespace

} // namespace pvg::matmul
