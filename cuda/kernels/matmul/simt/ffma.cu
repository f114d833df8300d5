// float32 products on the CUDA cores by cp.async, compute capability 8.0 and later: the tiles of
// ffma.cuh that there are, and the layouts that each is made for. plan/ffma.cu chooses between
// tiles that give the same bits, and splits k.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/simt/ffma.cuh"

namespace pvg::matmul {

namespace {

using Tile128x128 = FfmaTile<2, 4, 1, 8, 8, 8, 16, 3, 2>;
using Tile64x128 = FfmaTile<2, 1, 4, 4, 8, 16, 32, 3, 1>;
using Tile64x64 = FfmaTile<1, 2, 4, 8, 8, 8, 32, 3, 2>;
using Tile64x32 = FfmaTile<1, 1, 8, 8, 8, 8, 64, 3, 1>;
// In place of 128 x 128, of those with four slices, and of 64 x 32 with eight.
using Small64x64 = FfmaTile<1, 2, 1, 8, 8, 8, 16, 4, 6>;
using Small64x32 = FfmaTile<1, 1, 4, 8, 8, 8, 32, 4, 3>;
using Small32x64 = FfmaTile<1, 1, 4, 4, 8, 8, 32, 4, 3>;
using Sequence64x64 = FfmaTile<1, 4, 1, 8, 8, 4, 8, 5, 4, false, 8>;
using Fours64x64 = FfmaTile<1, 4, 1, 8, 8, 4, 8, 5, 4, false, 4>;

template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V = A_ALONG_K && B_ALONG_K ? 1 : 4>
constexpr int all_bytes = FfmaStage<Tile, A_ALONG_K, B_ALONG_K, V>::all_bytes;

template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V>
int launch_layout(Call &call, const Gemm &g, const Plan &plan) {
    return launch_in_parts<Tile>(call, g, plan, [&](const Gemm &part, const FfmaProduct &p) -> int {
        const int64_t blocks = int64_t(p.tiles_down) * p.tiles_across * p.splits * part.items;
        PVG_LAUNCH_WITH((LaunchExtras{p.splits, plan.overlap}),
                        (ffma_kernel<Tile, A_ALONG_K, B_ALONG_K, V>), blocks_for(blocks, 1),
                        plan.threads, plan.shared_bytes, call.stream, p);
        return PVG_OK;
    });
}

// Which layouts a kernel is made for: a along k and b along n; both along k; a along m and b along
// n. Operands along m or n are aligned, but for tiles with slices, which take any b beside an a
// along k.
template <class Tile, int NUMBER> int launch_tile(Call &call, const Gemm &given, const Plan &plan) {
    static_assert(is_size<Tile>(ffma_sizes[NUMBER]), "the planner has another idea of the tile");
    static_assert(ffma_sizes[NUMBER].stages_bytes(true, true) == all_bytes<Tile, true, true> &&
                  ffma_sizes[NUMBER].stages_bytes(true, false) == all_bytes<Tile, true, false> &&
                  ffma_sizes[NUMBER].stages_bytes(false, false) == all_bytes<Tile, false, false>);
    Gemm g = given;
    Workspace space;
    PVG_PASS(arrange_operands(call, &g, plan, &space));
    const bool singles = (plan.transposed ? plan.a : plan.b).alignment == 1;
    if (plan.transposed) g = turned(g);
    if (g.b_along_k) return launch_layout<Tile, true, true, 1>(call, g, plan);
    if constexpr (reads_singles(NUMBER))
        if (singles && !g.a_along_k) return launch_layout<Tile, false, false, 1>(call, g, plan);
    if constexpr (reads_singles(NUMBER) || Tile::slices > 1)
        if (singles) return launch_layout<Tile, true, false, 1>(call, g, plan);
    if constexpr (!reads_singles_only(NUMBER))
        return g.a_along_k ? launch_layout<Tile, true, false, 4>(call, g, plan)
                           : launch_layout<Tile, false, false, 4>(call, g, plan);
    return PVG_OK;
}

} // namespace

int launch_ffma(Call &call, const Gemm &g, const Plan &plan) {
    switch (plan.tile) {
    case ffma_128x128: return launch_tile<Tile128x128, ffma_128x128>(call, g, plan);
    case ffma_64x128: return launch_tile<Tile64x128, ffma_64x128>(call, g, plan);
    case ffma_64x64: return launch_tile<Tile64x64, ffma_64x64>(call, g, plan);
    case ffma_64x32: return launch_tile<Tile64x32, ffma_64x32>(call, g, plan);
    case ffma_small_64x64: return launch_tile<Small64x64, ffma_small_64x64>(call, g, plan);
    case ffma_small_64x32: return launch_tile<Small64x32, ffma_small_64x32>(call, g, plan);
    case ffma_small_32x64: return launch_tile<Small32x64, ffma_small_32x64>(call, g, plan);
    case ffma_items: return launch_ffma_items(call, g, plan);
    case ffma_sequence4_64x64: return launch_tile<Fours64x64, ffma_sequence4_64x64>(call, g, plan);
    default: return launch_tile<Sequence64x64, ffma_sequence_64x64>(call, g, plan);
    }
}

} // namespace pvg::matmul
