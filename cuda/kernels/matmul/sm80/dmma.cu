// float64 products by the tensor cores: the launch of the kernel of dmma.cuh, which exists for six
// tiles and every layout, with loads of one element and of two. plan/warps.cu says which tile it is
// and how often k is split.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/sm80/dmma.cuh"

namespace pvg::matmul {

namespace {

template <int NUMBER, bool IN_SEQUENCE = false>
using Tile = DmmaTile<dmma_sizes[NUMBER].rows, dmma_sizes[NUMBER].columns, IN_SEQUENCE>;

template <int NUMBER> constexpr bool agrees() {
    constexpr auto size = dmma_sizes[NUMBER];
    return Tile<NUMBER>::template stage_bytes<true, false> ==
               dmma_stage_bytes(size.rows, true) + dmma_stage_bytes(size.columns, false) &&
           Tile<NUMBER>::template stage_bytes<false, true> ==
               dmma_stage_bytes(size.rows, false) + dmma_stage_bytes(size.columns, true);
}
static_assert(agrees<0>() && agrees<1>() && agrees<2>() && agrees<3>() && agrees<4>() &&
              agrees<5>() && depth == dmma_depth);

DmmaProduct describe(const Gemm &g, const Plan &plan) {
    DmmaProduct p{};
    p.a = static_cast<const double *>(g.a), p.b = static_cast<const double *>(g.b);
    p.c = destination_of(g);
    p.lda = g.lda, p.ldb = g.ldb, p.a_item = g.a_item, p.b_item = g.b_item;
    p.jumps = jumps_of(g);
    p.m = g.m, p.n = g.n, p.k = static_cast<int>(g.k);
    p.last_k = static_cast<int>(g.last_k ? g.last_k : g.k);
    p.tiles_down = static_cast<int>(tiles(g.m, plan.rows));
    p.tiles_across = static_cast<int>(tiles(g.n, plan.columns));
    p.splits = static_cast<unsigned>(plan.splits);
    p.splits_in_sequence = static_cast<unsigned>(plan.splits_in_sequence);
    p.stages = plan.stages;
    p.aligned = allows_16_bytes(g.c, g.ldc, g.c_item, sizeof(double)) &&
                allows_16_bytes(g.epilogue.preactivation, 0, 0, sizeof(double));
    return p;
}

template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V>
int launch_layout(Call &call, const Gemm &g, const Plan &plan) {
    DmmaProduct p = describe(g, plan);
    for (int64_t first = 0; first < g.items; first += plan.items) {
        const int64_t items = g.items - first < plan.items ? g.items - first : plan.items;
        p.last_item = first + items == g.items ? items - 1 : -1;
        PVG_LAUNCH_WITH((LaunchExtras{p.splits, plan.overlap}),
                        (dmma_tile_kernel<Tile, A_ALONG_K, B_ALONG_K, V>),
                        blocks_for(plan.tiles * p.splits * items, 1), plan.threads,
                        plan.shared_bytes, call.stream, p);
        p.a += items * p.a_item, p.b += items * p.b_item;
        p.c = p.c.moved(items * p.c.item_stride, sizeof(double));
    }
    return PVG_OK;
}

template <class Tile, int V> int launch_loads(Call &call, const Gemm &g, const Plan &plan) {
    if (g.a_along_k)
        return g.b_along_k ? launch_layout<Tile, true, true, V>(call, g, plan)
                           : launch_layout<Tile, true, false, V>(call, g, plan);
    return g.b_along_k ? launch_layout<Tile, false, true, V>(call, g, plan)
                       : launch_layout<Tile, false, false, V>(call, g, plan);
}

template <class Tile> int launch_tile(Call &call, const Gemm &g, const Plan &plan) {
    return plan.a.alignment == 2 ? launch_loads<Tile, 2>(call, g, plan)
                                 : launch_loads<Tile, 1>(call, g, plan);
}

} // namespace

int launch_dmma(Call &call, const Gemm &g, const Plan &plan) {
    if (plan.splits_in_sequence > 1)
        return launch_tile<Tile<dmma_sequence_tile, true>>(call, g, plan);
    switch (plan.tile) {
    case 0: return launch_tile<Tile<0>>(call, g, plan);
    case 1: return launch_tile<Tile<1>>(call, g, plan);
    case 2: return launch_tile<Tile<2>>(call, g, plan);
    case 3: return launch_tile<Tile<3>>(call, g, plan);
    case 4: return launch_tile<Tile<4>>(call, g, plan);
    default: return launch_tile<Tile<5>>(call, g, plan);
    }
}

} // namespace pvg::matmul
#endif
