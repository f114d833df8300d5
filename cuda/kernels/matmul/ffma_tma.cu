// float32 products on the CUDA cores for large matrices by TMA; see ffma_tma.cuh.
//
// Operands that TMA cannot read, b along k among them, are copied first (pretranspose.cu), which
// takes about 50 / n of the product's time for a and 50 / m for b.
//
// Every element of c has the same bits as from the tiles of ffma.cu without slices: one chain of
// multiply-adds in increasing k, or one for each half of k.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/ffma_tma.cuh"

namespace pvg::matmul {

namespace {

using Tile = FfmaTile<4, 2, 1, 4, 8, 16, 32, 4, 1, true>;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// As in ffma.cuh.
__device__ __forceinline__ void multiply(const FfmaProduct &p, const Ring<Tile> &ring,
                                         const Position<Tile> &thread, Sums<Tile> &sum) {
    // Of k, in the inner loop: 18 KB of instructions. A whole stage of them, 70 KB, is slower.
    constexpr int unrolled = 8, parts = Tile::depth / unrolled;
    const uint32_t in_a = thread.row * 4, in_b = ring.a_bytes + thread.column * 4;
    Fragments<Tile> fragments;
    int step = 0, end = p.first_half ? p.first_half / Tile::depth : p.units;
    for (;;) {
#pragma unroll 1
        for (; step < end; step++) {
            uint32_t from_a = ring.stage(step) + in_a, from_b = ring.stage(step) + in_b;
            hopper::wait(ring.full(step), ring.phase(step));
#pragma unroll 1
            for (int part = 0; part < parts; part++) {
                fragments.template read<Ring<Tile>>(0, from_a, from_b, 0);
                fragments.multiply(1, sum);
#pragma unroll
                for (int k = 0; k < unrolled - 1; k++) {
                    fragments.template read<Ring<Tile>>((k + 1) % 2, from_a, from_b, k + 1);
                    fragments.multiply(k % 2, sum);
                }
                from_a += unrolled * Tile::rows * 4;
                from_b += unrolled * Tile::columns * 4;
            }
            hopper::arrive(ring.empty(step));
        }
        fragments.multiply(1, sum);
        if (end == p.units) break;
        park_sums<Tile>(p, sum);
        hopper::fence_async_proxy_global(); // TMA may read them
        fragments = Fragments<Tile>();
        end = p.units;
    }
}

#endif

__global__ void __launch_bounds__(Tile::threads + producers, 1)
    tma_kernel(const __grid_constant__ TmaMaps maps, const __grid_constant__ FfmaProduct p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    compute_tile<Tile>(maps, p, [&](const auto &ring, const auto &thread, auto &sum) {
        multiply(p, ring, thread, sum);
    });
#endif
}

int launch(Operation &op, const Gemm &g) {
    const auto start = [&](const TmaMaps &maps, const FfmaProduct &p, unsigned blocks) -> int {
        PVG_LAUNCH_WITH((LaunchExtras{1, true}), tma_kernel, blocks, Tile::threads + producers,
                        RingLayout<Tile>::shared_size, op.stream, maps, p);
        return PVG_OK;
    };
    return launch_by_tma<Tile>(op, g, 1, start);
}

} // namespace

const Kernel ffma_tma_kernel = {PVG_MATMUL_FFMA_TMA, "ffma_tma", can_by_tma<Tile>, launch};

} // namespace pvg::matmul
#endif
