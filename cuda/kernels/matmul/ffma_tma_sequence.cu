// Slices in sequence by TMA, for batches of products that alone would go to tiles of eight slices;
// see ffma_tma.cuh, and ffma_sequence.cuh for the order of the sums, which is the same here: so are
// the bits.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/ffma_tma.cuh"
#include "kernels/matmul/ffma_tma_sequence.cuh"

namespace pvg::matmul {

namespace {

using Tile = FfmaTile<4, 2, 1, 4, 8, 8, 32, 4, 1, true, 8>;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ __forceinline__ void multiply(const FfmaProduct &p, const Ring<Tile> &ring,
                                         const Position<Tile> &thread, Sums<Tile> &total) {
    constexpr int group = 8; // of k
    const uint32_t in_a = thread.row * 4, in_b = ring.a_bytes + thread.column * 4;
    Fragments<Tile> fragments;
    Sums<Tile> sum = {};
    ChainStages<Tile> stages(p);
#pragma unroll 1
    while (stages.more()) {
        uint32_t from_a = ring.stage(stages.at) + in_a, from_b = ring.stage(stages.at) + in_b;
        bool is_first = stages.begins_chain();
        hopper::wait(ring.full(stages.at), ring.phase(stages.at));
#pragma unroll 1
        for (int left = stages.count(); left > 0; left--) {
            fragments.template read<Ring<Tile>>(0, from_a, from_b, 0);
            if (is_first) {
                fragments.template read<Ring<Tile>>(1, from_a, from_b, 1);
                fragments.template multiply<true>(0, sum);
            } else {
                fragments.multiply(1, sum); // the last k of the group before
                fragments.template read<Ring<Tile>>(1, from_a, from_b, 1);
                fragments.multiply(0, sum);
            }
#pragma unroll
            for (int k = 1; k < group - 1; k++) {
                fragments.template read<Ring<Tile>>((k + 1) % 2, from_a, from_b, k + 1);
                fragments.multiply(k % 2, sum);
            }
            is_first = false;
            from_a += group * Tile::rows * 4;
            from_b += group * Tile::columns * 4;
        }
        hopper::arrive(ring.empty(stages.at));
        stages.advance();
        if (!stages.begins_chain()) continue;
        fragments.multiply(1, sum);
#pragma unroll
        for (int i = 0; i < Tile::micro_rows; i++)
#pragma unroll
            for (int j = 0; j < Tile::micro_columns; j++) total[i][j] += sum[i][j];
    }
}

#endif

__global__ void __launch_bounds__(Tile::threads + producers, 1)
    tma_sequence_kernel(const __grid_constant__ TmaMaps maps,
                        const __grid_constant__ FfmaProduct p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    compute_tile<Tile>(maps, p, [&](const auto &ring, const auto &thread, auto &sum) {
        multiply(p, ring, thread, sum);
    });
#endif
}

} // namespace

bool can_sequence_by_tma(const Gemm &g) {
    return can_by_tma<Tile>(g) && has_layout_b(g, rows_along_side) &&
           (has_layout_a(g, rows_along_k) || has_layout_a(g, rows_along_side));
}
int64_t blocks_of_sequence_by_tma(const Gemm &g) {
    return tiles(g.m, Tile::rows) * tiles(g.n, Tile::columns);
}
int launch_sequence_by_tma(Operation &op, const Gemm &g, unsigned splits) {
    const auto start = [&](const TmaMaps &maps, const FfmaProduct &p, unsigned blocks) -> int {
        PVG_LAUNCH_WITH((LaunchExtras{1, true}), tma_sequence_kernel, blocks,
                        Tile::threads + producers, RingLayout<Tile>::shared_size, op.stream, maps,
                        p);
        return PVG_OK;
    };
    return launch_by_tma<Tile>(op, g, splits, start);
}

} // namespace pvg::matmul
#endif
