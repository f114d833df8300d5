// bf16x6_kernel and fp16x3_kernel: float32 products from 16-bit pieces. Kernel: emulated.cuh.
//
// Three or four launches, each of which begins while the one before it ends: operands are split
// into planes, which lie in a workspace; the planes are multiplied; and recompute.cuh does those
// items again in float32 arithmetic of which the guard says so. Nothing comes back to the host. All
// items of a batch are in one launch of each kernel, or as many as the workspace has room for: then
// the next ones follow, and their planes take the place of those before.
// plan/emulated.cu chooses tiles, cuts K and lays out the workspace.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/simt/recompute.cuh"
#include "kernels/matmul/sm90/emulated.cuh"

namespace pvg::matmul {

namespace {

// Tile: columns, stages, cluster, unit, grouped (for which a wide one of Bf16x6 has no registers).
template <class Scheme> struct Tiles;
template <> struct Tiles<Bf16x6> {
    using Wide = EmulatedTile<Bf16x6, 192, 3, 2, 1>;
    using Medium = EmulatedTile<Bf16x6, 128, 4, 2, 1, true>;
    using Narrow = EmulatedTile<Bf16x6, 64, 5, 1, 1, true>;
};
template <> struct Tiles<Fp16x3> {
    using Wide = EmulatedTile<Fp16x3, 192, 5, 2, 4>;
    using Medium = EmulatedTile<Fp16x3, 128, 6, 2, 2>;
    using Narrow = EmulatedTile<Fp16x3, 64, 8, 1, 2>;
};

// What the kernels of one launch are given, or of several one after another: so many items at most.
struct EmulatedLaunch {
    int items;
    Schedule schedule;
    SplitOperand a, b;
    CUtensorMap map_a, map_b;
    Verdicts verdicts;
    unsigned *flags; // the schedule's tickets, then the verdicts: zero at the start
    int flag_count;
};

template <class Tile, class Scheme = typename Tile::Scheme>
constexpr bool is_size(const EmulatedSize &size) {
    return size.columns == Tile::columns && size.stages == Tile::stages &&
           size.cluster == Tile::cluster && size.unit == Tile::unit &&
           size.grouped == Tile::grouped && size.shared_bytes(Scheme::pieces) == Tile::shared_bytes;
}

// An operand that all items share is there once.
void set_items(const Gemm &g, int items, EmulatedLaunch *launch) {
    launch->items = items;
    launch->a.items = g.a_item == 0 ? 1 : items, launch->b.items = g.b_item == 0 ? 1 : items;
}

// The parts of the workspace that begins here.
void lay_out(const Gemm &g, const Plan &plan, char *base, EmulatedLaunch *launch) {
    const PieceSpace space = space_of_pieces(g, plan, plan.items);
    const auto place = [base](SplitOperand *x, const auto &at) {
        x->planes = reinterpret_cast<uint16_t *>(base + at.planes);
        x->ranges = reinterpret_cast<Range *>(base + at.ranges);
        x->maxima = reinterpret_cast<uint32_t *>(base + at.maxima);
        x->roots = reinterpret_cast<float *>(base + at.roots);
    };
    place(&launch->a, space.a), place(&launch->b, space.b);
    launch->schedule.partials = reinterpret_cast<float *>(base + space.partials);
    launch->flags = reinterpret_cast<unsigned *>(base + space.flags);
    launch->flag_count = space.flag_count;
    launch->schedule.tickets = launch->flags;
    launch->verdicts.items = launch->flags + space.tickets;
    launch->verdicts.any = launch->verdicts.items + plan.items;
}

// ---- Launching ----------------------------------------------------------------------------------

SplitOperand operand_of(const void *data, int rows, int columns, int64_t ld, int64_t item,
                        bool turned, bool lines_are_rows) {
    SplitOperand operand = {};
    operand.data = static_cast<const float *>(data);
    operand.rows = rows, operand.columns = columns, operand.ld = ld, operand.item = item;
    operand.turned = turned, operand.lines_are_rows = lines_are_rows;
    operand.pitch = plane_pitch(columns);
    return operand;
}

// Rows of pieces as TMA reads them: x along a row, y from row to row, z from piece to piece and on
// to those of the next item.
template <class Scheme>
int map_planes(CUtensorMap *map, const SplitOperand &operand, CUtensorMapSwizzle swizzle,
               uint32_t box_x, uint32_t box_y) {
    const uint64_t columns = static_cast<uint64_t>(operand.columns);
    const uint64_t rows = static_cast<uint64_t>(operand.rows);
    const uint64_t planes = static_cast<uint64_t>(operand.items) * Scheme::pieces;
    const uint64_t row_bytes = static_cast<uint64_t>(operand.pitch) * 2;
    return hopper::make_tensor_map(map, {Scheme::type,
                                         swizzle,
                                         operand.planes,
                                         3,
                                         {columns, rows, planes},
                                         {row_bytes, row_bytes * rows},
                                         {box_x, box_y, Scheme::pieces}});
}

// The kernels of the Gemm's items, which are as many as the launch has or, the last ones, fewer.
template <class Tile>
int launch_items(Call &call, const Gemm &g, const Plan &plan, EmulatedLaunch *launch, bool split_a,
                 bool split_b) {
    using Scheme = typename Tile::Scheme;
    set_items(g, g.items, launch);
    Schedule &schedule = launch->schedule;
    SplitOperand &a = launch->a, &b = launch->b;
    schedule.items = g.items;
    a.data = static_cast<const float *>(g.a), b.data = static_cast<const float *>(g.b);
    PVG_PASS((Scheme::scaled ? split_fp16 : split_bf16)(
        call, split_a ? &a : nullptr, split_b ? &b : nullptr, launch->flags, launch->flag_count));
    const int64_t parts = Scheme::scaled ? tiles(int64_t(g.m) + g.n, lines_of_part) : 1;
    const EmulatedArguments arguments = {schedule,
                                         destination_of(g),
                                         {a.ranges, b.ranges, int(range_count(shape_of(a))),
                                          int(range_count(shape_of(b))), a.roots, b.roots,
                                          static_cast<unsigned>(parts), launch->verdicts},
                                         static_cast<int>(g.k),
                                         a.items > 1,
                                         b.items > 1};
    const int64_t blocks = schedule.units() * Tile::cluster;
    PVG_LAUNCH_WITH((LaunchExtras{Tile::cluster, plan.overlap}), emulated_kernel<Tile>,
                    blocks_for(blocks < plan.blocks ? blocks : plan.blocks, 1), plan.threads,
                    plan.shared_bytes, call.stream, launch->map_a, launch->map_b, arguments);
    return launch_recompute(call, g, launch->verdicts);
}

// Items of the Gemm, from `first` on.
Gemm items_of(const Gemm &g, int64_t first, int count) {
    Gemm part = moved(g, first * g.a_item, first * g.b_item, first * g.c_item);
    part.items = g.items - first < count ? static_cast<int>(g.items - first) : count;
    return part;
}

template <class Tile> int launch_tiles(Call &call, const Gemm &g, const Plan &plan) {
    using Scheme = typename Tile::Scheme;
    EmulatedLaunch launch = {};
    launch.schedule = plan.schedule;
    launch.a = operand_of(g.a, g.m, static_cast<int>(g.k), g.lda, g.a_item, !g.a_along_k, true);
    launch.b = operand_of(g.b, static_cast<int>(g.k), g.n, g.ldb, g.b_item, g.b_along_k, false);
    set_items(g, plan.items, &launch);
    Workspace workspace;
    PVG_PASS(workspace.open(call, static_cast<size_t>(plan.workspace)));
    lay_out(g, plan, workspace.as<char>(), &launch);
    PVG_PASS(map_planes<Scheme>(&launch.map_a, launch.a, CU_TENSOR_MAP_SWIZZLE_64B, emulated_k,
                                emulated_rows));
    PVG_PASS(map_planes<Scheme>(&launch.map_b, launch.b, CU_TENSOR_MAP_SWIZZLE_128B, 64, 16));
    for (int64_t first = 0; first < g.items; first += plan.items) {
        // An operand that all items share is split once; but one of them always is, as that clears
        // the flags.
        const bool split_a = first == 0 || g.a_item != 0 || g.b_item == 0;
        const bool split_b = first == 0 || g.b_item != 0;
        const Gemm part = items_of(g, first, plan.items);
        PVG_PASS(launch_items<Tile>(call, part, plan, &launch, split_a, split_b));
    }
    return PVG_OK;
}

} // namespace

int launch_bf16x6(Call &call, const Gemm &g, const Plan &plan) {
    using All = Tiles<Bf16x6>;
    static_assert(is_size<All::Wide>(bf16x6_sizes[0]) && is_size<All::Medium>(bf16x6_sizes[1]) &&
                  is_size<All::Narrow>(bf16x6_sizes[2]));
    if (plan.tile == 0) return launch_tiles<All::Wide>(call, g, plan);
    return plan.tile == 1 ? launch_tiles<All::Medium>(call, g, plan)
                          : launch_tiles<All::Narrow>(call, g, plan);
}

int launch_fp16x3(Call &call, const Gemm &g, const Plan &plan) {
    using All = Tiles<Fp16x3>;
    static_assert(is_size<All::Wide>(fp16x3_sizes[0]) && is_size<All::Medium>(fp16x3_sizes[1]) &&
                  is_size<All::Narrow>(fp16x3_sizes[2]));
    if (plan.tile == 0) return launch_tiles<All::Wide>(call, g, plan);
    return plan.tile == 1 ? launch_tiles<All::Medium>(call, g, plan)
                          : launch_tiles<All::Narrow>(call, g, plan);
}

} // namespace pvg::matmul
#endif
