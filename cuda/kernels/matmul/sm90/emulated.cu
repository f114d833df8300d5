// bf16x6_kernel and fp16x3_kernel: float32 products from 16-bit pieces. Kernel: emulated.cuh.
//
// Three or four launches, each of which begins while the one before it ends: operands are split
// into planes, which lie in a workspace; the planes are multiplied; and recompute.cuh does those
// items again in float32 arithmetic of which the guard says so. Nothing comes back to the host. All
// items of a batch are in one launch of each kernel, or as many as the workspace has room for: then
// the next ones follow, and their planes take the place of those before.
//
// Which tile, and how K is cut, depends on m, n and k alone.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/simt/recompute.cuh"
#include "kernels/matmul/sm90/emulated.cuh"
#include "runtime/device.cuh"
#include <limits.h>

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

// ---- How c and K are cut ------------------------------------------------------------------------

// What cutting a tile's K once more costs, in units of the time of the whole tile.
double overhead_of(const Gemm &g) { return 0.01 * 4096 / g.k; }

template <class Tile> Schedule schedule_for(const Gemm &g) {
    const int blocks = static_cast<int>(tiles(g.k, emulated_k * Tile::unit)) * Tile::unit;
    return make_schedule(static_cast<int>(tiles(g.m, emulated_rows * Tile::cluster)),
                         static_cast<int>(tiles(g.n, Tile::columns)), Tile::cluster, blocks,
                         Tile::unit, overhead_of(g));
}

// An estimate of the time, to compare tiles with each other: a narrow tile reaches a smaller part
// of the speed, as its operands are read more often, but may leave fewer multiprocessors idle.
template <class Tile> double time_of(const Gemm &g) {
    const double efficiency = Tile::columns == 192 ? 1 : Tile::columns == 128 ? 0.97 : 0.85;
    const Schedule s = schedule_for<Tile>(g);
    const int width = tuned_multiprocessors / Tile::cluster; // tiles at a time
    double rounds = static_cast<double>(tiles(s.whole, width));
    if (s.cut > 0)
        rounds += static_cast<double>(tiles(int64_t(s.cut) * s.slices, width)) / s.slices +
                  overhead_of(g) * s.slices;
    return rounds * Tile::columns * s.k_blocks / efficiency;
}

// ---- The workspace ------------------------------------------------------------------------------

// What the kernels of one launch are given, or of several one after another: so many items at most.
struct Launch {
    int items;
    Schedule schedule;
    SplitOperand a, b;
    CUtensorMap map_a, map_b;
    Verdicts verdicts;
    unsigned *flags; // the schedule's tickets, then the verdicts: zero at the start
    int flag_count;
};

// Parts of one allocation. Without a base: only how large it has to be.
struct Layout {
    unsigned char *base = nullptr;
    int64_t bytes = 0;

    template <class T> void take(T **part, int64_t count) {
        *part = base ? reinterpret_cast<T *>(base + bytes) : nullptr;
        bytes += (count * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
    }
};

template <class Scheme> void lay_out(Layout *layout, SplitOperand *operand) {
    const int64_t items = operand->items;
    layout->take(&operand->planes,
                 items * Scheme::pieces * plane_size(operand->rows, operand->columns));
    if (Scheme::scaled) {
        layout->take(&operand->maxima, items * maxima_count(*operand));
        layout->take(&operand->roots, items * line_count(*operand));
    } else {
        layout->take(&operand->ranges, items * range_count(*operand));
    }
}

// An operand that all items share is there once.
void set_items(const Gemm &g, int items, Launch *launch) {
    launch->items = items;
    launch->a.items = g.a_item == 0 ? 1 : items, launch->b.items = g.b_item == 0 ? 1 : items;
}

template <class Tile> Layout lay_out_all(Launch *launch, unsigned char *base) {
    using Scheme = typename Tile::Scheme;
    constexpr int parts = 2 * Tile::cluster;
    const Schedule &schedule = launch->schedule;
    const int64_t tickets = ticket_bytes(schedule, launch->items, parts) / 4;
    Layout layout = {base};
    lay_out<Scheme>(&layout, &launch->a);
    lay_out<Scheme>(&layout, &launch->b);
    layout.take(&launch->schedule.partials,
                partial_bytes(schedule, launch->items, parts, Tile::sums) / 4);
    launch->flag_count = static_cast<int>(tickets + launch->items + 1);
    layout.take(&launch->flags, launch->flag_count);
    if (base) {
        launch->schedule.tickets = launch->flags;
        launch->verdicts.items = launch->flags + tickets;
        launch->verdicts.any = launch->verdicts.items + launch->items;
    }
    return layout;
}

// Of all items, if that is not much; else of half of them, or a quarter, ...
constexpr int64_t most_bytes = int64_t(1) << 28;
constexpr int64_t most_units = int64_t(1) << 28; // are counted in 32 bits

template <class Tile> int open_workspace(Call &call, const Gemm &g, Launch *launch,
                                         Workspace *workspace) {
    int64_t bytes;
    for (int items = g.items;; items = items / 2 + items % 2) {
        set_items(g, items, launch);
        bytes = lay_out_all<Tile>(launch, nullptr).bytes;
        const int64_t units = int64_t(items) * launch->schedule.units_of_item();
        if (items == 1 || (bytes <= most_bytes && units <= most_units)) break;
    }
    PVG_PASS(workspace->open(call, static_cast<size_t>(bytes)));
    lay_out_all<Tile>(launch, workspace->as<unsigned char>());
    return PVG_OK;
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
int launch_items(Call &call, const Gemm &g, Launch *launch, bool split_a, bool split_b) {
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
                                         {a.ranges, b.ranges, range_count(a), range_count(b),
                                          a.roots, b.roots, static_cast<unsigned>(parts),
                                          launch->verdicts},
                                         static_cast<int>(g.k),
                                         a.items > 1,
                                         b.items > 1};
    int64_t multiprocessors;
    PVG_PASS(device_attribute(g.device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    const int64_t width = multiprocessors / Tile::cluster, units = schedule.units();
    const unsigned clusters = static_cast<unsigned>(width < units ? width : units);
    PVG_LAUNCH_WITH((LaunchExtras{Tile::cluster, true}), emulated_kernel<Tile>,
                    clusters * Tile::cluster, emulated_threads, Tile::shared_bytes, call.stream,
                    launch->map_a, launch->map_b, arguments);
    return launch_recompute(call, g, launch->verdicts);
}

// Items of the Gemm, from `first` on.
Gemm items_of(const Gemm &g, int64_t first, int count) {
    Gemm part = moved(g, first * g.a_item, first * g.b_item, first * g.c_item);
    part.items = g.items - first < count ? static_cast<int>(g.items - first) : count;
    return part;
}

template <class Tile> int launch_tiles(Call &call, const Gemm &g) {
    using Scheme = typename Tile::Scheme;
    Launch launch = {};
    launch.schedule = schedule_for<Tile>(g);
    launch.a = operand_of(g.a, g.m, static_cast<int>(g.k), g.lda, g.a_item, !g.a_along_k, true);
    launch.b = operand_of(g.b, static_cast<int>(g.k), g.n, g.ldb, g.b_item, g.b_along_k, false);
    Workspace workspace;
    PVG_PASS(open_workspace<Tile>(call, g, &launch, &workspace));
    PVG_PASS(map_planes<Scheme>(&launch.map_a, launch.a, CU_TENSOR_MAP_SWIZZLE_64B, emulated_k,
                                emulated_rows));
    PVG_PASS(map_planes<Scheme>(&launch.map_b, launch.b, CU_TENSOR_MAP_SWIZZLE_128B, 64, 16));
    const int at_a_time = launch.items;
    for (int64_t first = 0; first < g.items; first += at_a_time) {
        // An operand that all items share is split once; but one of them always is, as that clears
        // the flags.
        const bool split_a = first == 0 || g.a_item != 0 || g.b_item == 0;
        const bool split_b = first == 0 || g.b_item != 0;
        PVG_PASS(
            launch_items<Tile>(call, items_of(g, first, at_a_time), &launch, split_a, split_b));
    }
    return PVG_OK;
}

template <class Scheme> int launch(Call &call, const Gemm &g) {
    using All = Tiles<Scheme>;
    // Without groups Bf16x6 errs less than "ieee" only where that adds two halves of k up.
    const bool wide_is_accurate = Scheme::scaled || adds_halves(g);
    const double medium = time_of<typename All::Medium>(g);
    const double narrow = time_of<typename All::Narrow>(g);
    if (wide_is_accurate && time_of<typename All::Wide>(g) <= (medium < narrow ? medium : narrow))
        return launch_tiles<typename All::Wide>(call, g);
    return narrow < medium ? launch_tiles<typename All::Narrow>(call, g)
                           : launch_tiles<typename All::Medium>(call, g);
}

// Coordinates of tiles that reach beyond the matrix are numbers of 32 bits too.
bool can(const Gemm &g) {
    constexpr int most = INT_MAX - 256;
    return g.dtype == PVG_FLOAT32 && tensor_architecture(g.device) == 90 && g.m <= most &&
           g.n <= most && g.k <= most;
}

} // namespace

const Kernel bf16x6_kernel = {PVG_MATMUL_BF16X6, "bf16x6", can, launch<Bf16x6>};
const Kernel fp16x3_kernel = {PVG_MATMUL_FP16X3, "fp16x3", can, launch<Fp16x3>};

} // namespace pvg::matmul
#endif
