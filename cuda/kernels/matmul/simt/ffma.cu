// float32 products on the CUDA cores by cp.async, compute capability 8.0 and later: the tiles of
// ffma.cuh that there are, the layouts that each is made for, and where k is split.
//
// FFMA_128X128 and FFMA_TMA (ffma_tma.cu) give the same bits as each other, and as the tiled
// kernel: one chain of multiply-adds an element in increasing k, and from k = 256 on two, one for
// each half of k (but for the sign of a zero that is left where everything underflows). FFMA_64X128
// and FFMA_64X64 give the same bits as each other: the same four slices and the same splits.
// FFMA_64X32 has eight slices. Where bits are the same, speed alone may choose, and so the number
// of items too: smaller tiles for what would leave large ones idle, larger ones for batches. A
// batch of FFMA_64X32 goes to tiles that compute its eight slices in sequence.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/simt/ffma.cuh"
#include "kernels/matmul/simt/pretranspose.cuh"
#include "runtime/device.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

using Tile128x128 = FfmaTile<2, 4, 1, 8, 8, 8, 16, 3, 2>;
using Tile64x128 = FfmaTile<2, 1, 4, 4, 8, 16, 32, 3, 1>;
using Tile64x64 = FfmaTile<1, 2, 4, 8, 8, 8, 32, 3, 2>;
using Tile64x32 = FfmaTile<1, 1, 8, 8, 8, 8, 64, 3, 1>;
// In place of 128 x 128, of 64 x 64 with four slices, and of 64 x 32 with eight.
using Small64x64 = FfmaTile<1, 2, 1, 8, 8, 8, 16, 4, 6>;
using Small64x32 = FfmaTile<1, 1, 4, 8, 8, 8, 32, 4, 3>;
using Sequence64x128 = FfmaTile<1, 4, 1, 8, 8, 8, 16, 3, 2, false, 8>;

// Blocks that share a tile of c: two where tiles fill half of the card at most and sums are long,
// more where there are few tiles. Tiles of four slices are counted as if they were 64 x 128, so
// that all of them split alike; those of eight are 64 x 32.
int splits_of(const Gemm &g, int slices) {
    if (slices == 1) return 1;
    const int64_t count = tiles(g.m, 64) * tiles(g.n, slices == 4 ? 128 : 32);
    const int least = slices == 4 && count > 16 ? 512 : 128; // of k, for a split
    int splits = count <= tuned_multiprocessors / 2 && g.k >= 2 * least ? 2 : 1;
    while (splits > 1 && splits < 8 && count * splits <= 32 && g.k / (2 * splits) >= least)
        splits *= 2;
    return splits;
}

template <class Tile> int64_t blocks_of(const Gemm &g) {
    return tiles(g.m, Tile::rows) * tiles(g.n, Tile::columns) * splits_of(g, Tile::slices);
}

// The stages, and in the end the sums where they go through shared memory.
template <class Tile> constexpr int shared_bytes(int pipeline, bool sums) {
    return sums && Tile::sum_bytes > pipeline ? Tile::sum_bytes : pipeline;
}
template <class Tile> using LargestStage = Stage<Tile, true, true, 1>; // padded

template <class Tile> bool can(const Gemm &g) {
    const int least_architecture = splits_of(g, Tile::slices) > 1 ? 90 : 80; // clusters
    int64_t most = 0;
    if (g.dtype != PVG_FLOAT32 || tensor_architecture(g.device) < least_architecture) return false;
    if (device_attribute(g.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most) != PVG_OK)
        return false;
    return shared_bytes<Tile>(LargestStage<Tile>::all_bytes, true) <= most &&
           blocks_of<Tile>(g) <= INT_MAX / 4; // of smaller tiles too
}

// What an element of c costs in tiles of a size, beside those of its family that read the least
// memory for what they compute: percent.
template <class Tile> constexpr int cost = 100;
template <> constexpr int cost<Small64x64> = 130;
template <> constexpr int cost<Tile64x64> = 110;
template <> constexpr int cost<Small64x32> = 143;
template <> constexpr int cost<Tile64x32> = 170;

// With so many blocks at least one after another on a multiprocessor.
template <class Tile> int64_t time_of(const Gemm &g, int64_t least) {
    const int64_t waves = tiles(blocks_of<Tile>(g) * g.items, tuned_multiprocessors);
    return (waves < least ? least : waves) * (Tile::rows * Tile::columns * cost<Tile>);
}

// Whether tiles of another size, which give the same bits, are faster. Of larger ones a block alone
// leaves much of a multiprocessor idle: reckoned as the time of two.
template <class Tile, class Other> bool is_better(const Gemm &g) {
    constexpr bool is_larger = Other::rows * Other::columns > Tile::rows * Tile::columns;
    return time_of<Other>(g, is_larger ? 2 : 1) < time_of<Tile>(g, 1) && can<Other>(g);
}

// Shared memory of a block. Few blocks get a multiprocessor each, by asking for half of what it
// has, which is more with the 1 KiB that CUDA adds: where two fit, those of a kernel that starts
// while the one before it ends go where that leaves room first, two together, and others idle.
int spread(const Gemm &g, int64_t blocks, int *bytes) {
    int64_t count, all;
    PVG_PASS(device_attribute(g.device, PVG_MULTIPROCESSOR_COUNT, &count));
    PVG_PASS(device_attribute(g.device, PVG_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &all));
    if (blocks <= count && *bytes <= all / 2) *bytes = static_cast<int>(all / 2);
    return PVG_OK;
}

template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V>
int launch_layout(Call &call, const Gemm &g) {
    using Parts = Stage<Tile, A_ALONG_K, B_ALONG_K, V>;
    return launch_in_parts<Tile>(call, g, [&](const Gemm &part, FfmaProduct p) -> int {
        p.splits = static_cast<unsigned>(splits_of(part, Tile::slices));
        p.splits_in_sequence = static_cast<unsigned>(splits_of(part, Tile::sequence));
        const int64_t blocks = blocks_of<Tile>(part) * part.items;
        int bytes = shared_bytes<Tile>(Parts::all_bytes, Tile::slices > 1 || !p.direct);
        if (Tile::blocks == 2) PVG_PASS(spread(g, blocks, &bytes));
        const LaunchExtras extras = {p.splits, tensor_architecture(g.device) >= 90};
        PVG_LAUNCH_WITH(extras, (ffma_kernel<Tile, A_ALONG_K, B_ALONG_K, V>), blocks_for(blocks, 1),
                        Tile::threads, bytes, call.stream, p);
        return PVG_OK;
    });
}

// Which layouts a kernel is made for: a along k and b along n; both along k; a along m and b along
// n. Operands along m or n are aligned, but for tiles with slices, which take any b beside an a
// along k. What else is asked is copied.
template <class Tile> int launch_tile(Call &call, const Gemm &given) {
    Gemm g = given;
    Workspace space;
    constexpr bool any_b = Tile::slices > 1;
    const bool b_along_k = g.b_along_k && g.a_along_k;
    Layout a = {g.a_along_k, g.a_along_k ? 1 : 4}, b = {b_along_k, b_along_k ? 1 : 4};
    if (any_b && g.a_along_k && !g.b_along_k && !has_layout_b(g, b)) b.alignment = 1;
    PVG_PASS(arrange_operands(call, &g, a, b, &space));
    if (!g.a_along_k) return launch_layout<Tile, false, false, 4>(call, g);
    if (g.b_along_k) return launch_layout<Tile, true, true, 1>(call, g);
    if constexpr (any_b)
        if (b.alignment == 1) return launch_layout<Tile, true, false, 1>(call, g);
    return launch_layout<Tile, true, false, 4>(call, g);
}

// The tile, or the first of the others that is better.
template <class Tile, class... Others> int launch(Call &call, const Gemm &g) {
    decltype(&launch_tile<Tile>) other = nullptr;
    ((other = !other && is_better<Tile, Others>(g) ? launch_tile<Others> : other), ...);
    return other ? other(call, g) : launch_tile<Tile>(call, g);
}

} // namespace

const Kernel ffma_kernels[] = {
    {PVG_MATMUL_FFMA_128X128, "ffma_128x128", can<Tile128x128>, launch<Tile128x128, Small64x64>},
    {PVG_MATMUL_FFMA_64X128, "ffma_64x128", can<Tile64x128>, launch<Tile64x128, Tile64x64>},
    {PVG_MATMUL_FFMA_64X64, "ffma_64x64", can<Tile64x64>,
     launch<Tile64x64, Small64x32, Tile64x128>},
    {PVG_MATMUL_FFMA_64X32, "ffma_64x32", can<Tile64x32>, launch<Tile64x32, Sequence64x128>},
    {0, nullptr, nullptr, nullptr},
};

} // namespace pvg::matmul
#endif
