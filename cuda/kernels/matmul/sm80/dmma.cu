// float64 products by the tensor cores: how often k is split, and the launch of the kernel of
// dmma.cuh, which exists for every layout, with loads of one element and of two.
//
// Splitting needs clusters, compute capability 9.0; before, nothing is split. How often depends on
// m, n and k alone.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/sm80/dmma.cuh"
#include "runtime/device.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

// Blocks that share a tile of c. Costs are in stages: what a block needs beside its stages, and
// what sharing adds, are worth a few of them. The card that this was made for runs 132 blocks at a
// time, fewer when clusters have to fit its groups of multiprocessors.
int splits_of(const Gemm &g) {
    const int64_t count = tiles(g.m, side) * tiles(g.n, side), length = tiles(g.k, depth);
    const int candidates[] = {1, 2, 4, 8}, at_a_time[] = {132, 132, 128, 120};
    int best = 1;
    int64_t least_cost = INT64_MAX;
    for (int i = 0; i < 4; i++) {
        const int splits = candidates[i];
        if (splits > 1 && length < 4 * splits) break;
        const int64_t rounds = (count * splits + at_a_time[i] - 1) / at_a_time[i];
        const int64_t cost = rounds * ((length + splits - 1) / splits + 4 + (splits > 1 ? 3 : 0));
        if (cost < least_cost) best = splits, least_cost = cost;
    }
    return best;
}

template <bool A_ALONG_K, bool B_ALONG_K> constexpr int shared_bytes() {
    constexpr int pipeline = stages * stage_bytes<A_ALONG_K, B_ALONG_K>;
    constexpr int sums = side * sums_pitch * static_cast<int>(sizeof(double));
    return pipeline > sums ? pipeline : sums;
}

bool can(const Gemm &g) {
    int64_t most = 0;
    if (g.dtype != PVG_FLOAT64 || tensor_architecture(g.device) < 80 ||
        device_attribute(g.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most) != PVG_OK)
        return false;
    return shared_bytes<true, true>() <= most &&
           tiles(g.m, side) * tiles(g.n, side) <= INT_MAX / splits_of(g);
}

DmmaProduct describe(const Gemm &g) {
    DmmaProduct p{};
    p.a = static_cast<const double *>(g.a), p.b = static_cast<const double *>(g.b);
    p.c = destination_of(g);
    p.lda = g.lda, p.ldb = g.ldb, p.a_item = g.a_item, p.b_item = g.b_item;
    p.m = g.m, p.n = g.n, p.k = g.k;
    p.tiles_down = static_cast<int>(tiles(g.m, side));
    p.tiles_across = static_cast<int>(tiles(g.n, side));
    p.stages = static_cast<int>(tiles(g.k, depth));
    p.splits = tensor_architecture(g.device) >= 90 ? static_cast<unsigned>(splits_of(g)) : 1;
    p.aligned = allows_16_bytes(g.c, g.ldc, g.c_item, sizeof(double)) &&
                allows_16_bytes(g.epilogue.preactivation, 0, 0, sizeof(double));
    return p;
}

template <bool A_ALONG_K, bool B_ALONG_K, int V> int launch_layout(Call &call, const Gemm &g) {
    DmmaProduct p = describe(g);
    const int64_t blocks = int64_t(p.tiles_down) * p.tiles_across * p.splits;
    const LaunchExtras extras = {p.splits, tensor_architecture(g.device) >= 90};
    const int64_t most = INT_MAX / blocks; // items a grid
    for (int64_t first = 0; first < g.items; first += most) {
        const int64_t items = g.items - first < most ? g.items - first : most;
        PVG_LAUNCH_WITH(extras, (dmma_tile_kernel<A_ALONG_K, B_ALONG_K, V>),
                        blocks_for(blocks * items, 1), threads,
                        (shared_bytes<A_ALONG_K, B_ALONG_K>()), call.stream, p);
        p.a += items * p.a_item, p.b += items * p.b_item;
        p.c = p.c.moved(items * p.c.item_stride, sizeof(double));
    }
    return PVG_OK;
}

template <int V> int launch_with(Call &call, const Gemm &g) {
    if (g.a_along_k)
        return g.b_along_k ? launch_layout<true, true, V>(call, g)
                           : launch_layout<true, false, V>(call, g);
    return g.b_along_k ? launch_layout<false, true, V>(call, g)
                       : launch_layout<false, false, V>(call, g);
}

int launch(Call &call, const Gemm &g) {
    const bool pairs = allows_16_bytes(g.a, g.lda, g.a_item, sizeof(double)) &&
                       allows_16_bytes(g.b, g.ldb, g.b_item, sizeof(double));
    return pairs ? launch_with<2>(call, g) : launch_with<1>(call, g);
}

} // namespace

const Kernel dmma_kernel = {PVG_MATMUL_DMMA, "dmma", can, launch};

} // namespace pvg::matmul
#endif
