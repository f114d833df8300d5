// bf16x6_kernel and fp16x3_kernel: float32 products from 16-bit pieces. Kernel: emulated.cuh.
//
// Three or four launches an item, each of which begins while the one before it ends: operands are
// split into planes, which lie in a workspace; the planes are multiplied; and recompute.cuh does
// the item again in float32 arithmetic if the guard says so. Nothing comes back to the host.
//
// Which tile, and how K is cut, depends on m, n and k alone.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/emulated.cuh"
#include "kernels/matmul/recompute.cuh"
#include "runtime/device.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

// Tile: columns, stages, cluster, unit. Measured with units of 32 (a tile of 192) and of 64.
template <class Scheme> struct Tiles;
template <> struct Tiles<Bf16x6> {
    using Wide = EmulatedTile<Bf16x6, 192, 3, 2, 1>;
    using Medium = EmulatedTile<Bf16x6, 128, 4, 2, 2>;
    using Narrow = EmulatedTile<Bf16x6, 64, 5, 1, 2>;
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

// ---- The workspace of an item -------------------------------------------------------------------

// Parts of one allocation. Without a base: only how large it has to be.
struct Layout {
    unsigned char *base = nullptr;
    int64_t bytes = 0;

    template <class T> void take(T **part, int64_t count) {
        *part = base ? reinterpret_cast<T *>(base + bytes) : nullptr;
        bytes += (count * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
    }
};

struct Operands {
    SplitOperand a, b;
    unsigned *verdicts;
};

template <class Scheme> void lay_out(Layout *layout, SplitOperand *operand) {
    layout->take(&operand->planes, Scheme::pieces * plane_size(operand->rows, operand->columns));
    if (Scheme::scaled) {
        layout->take(&operand->maxima, maxima_count(*operand));
        layout->take(&operand->roots, operand->lines_are_rows ? operand->rows : operand->columns);
    } else {
        layout->take(&operand->ranges, range_count(*operand));
    }
}

SplitOperand operand_of(int rows, int columns, int64_t ld, bool turned, bool lines_are_rows) {
    SplitOperand operand = {};
    operand.rows = rows, operand.columns = columns, operand.ld = ld;
    operand.turned = turned, operand.lines_are_rows = lines_are_rows;
    operand.pitch = plane_pitch(columns);
    return operand;
}

// ---- Launching ----------------------------------------------------------------------------------

// Rows of pieces as TMA reads them: x along a row, y from row to row, z from piece to piece.
template <class Scheme>
int map_planes(CUtensorMap *map, const SplitOperand &operand, CUtensorMapSwizzle swizzle,
               uint32_t box_x, uint32_t box_y) {
    const uint64_t columns = static_cast<uint64_t>(operand.columns);
    const uint64_t rows = static_cast<uint64_t>(operand.rows);
    const uint64_t row_bytes = static_cast<uint64_t>(operand.pitch) * 2;
    return hopper::make_tensor_map(map, {Scheme::type,
                                         swizzle,
                                         operand.planes,
                                         3,
                                         {columns, rows, Scheme::pieces},
                                         {row_bytes, row_bytes * rows},
                                         {box_x, box_y, Scheme::pieces}});
}

struct Launch {
    Schedule schedule;
    CUtensorMap map_a, map_b;
    Operands operands;
    unsigned blocks;
    int ticket_count, verdict_count;
};

Gemm item_of(const Gemm &g, int64_t item) {
    Gemm one = g;
    one.items = 1;
    one.a = static_cast<const float *>(g.a) + item * g.a_item;
    one.b = static_cast<const float *>(g.b) + item * g.b_item;
    one.c = static_cast<float *>(g.c) + item * g.c_item;
    if (g.epilogue.preactivation)
        one.epilogue.preactivation =
            static_cast<float *>(g.epilogue.preactivation) + item * g.c_item;
    return one;
}

template <class Tile>
int launch_item(Operation &op, const Gemm &g, Launch *launch, bool split_a, bool split_b) {
    using Scheme = typename Tile::Scheme;
    Operands &o = launch->operands;
    o.a.data = static_cast<const float *>(g.a), o.b.data = static_cast<const float *>(g.b);
    PVG_PASS((Scheme::scaled ? split_fp16
                             : split_bf16)(op, split_a ? &o.a : nullptr, split_b ? &o.b : nullptr,
                                           launch->schedule.tickets, launch->ticket_count));
    const EmulatedArguments arguments = {launch->schedule,
                                         destination_of(g),
                                         {o.a.ranges, o.b.ranges, range_count(o.a),
                                          range_count(o.b), o.a.roots, o.b.roots, o.verdicts},
                                         static_cast<int>(g.k)};
    PVG_LAUNCH_WITH((LaunchExtras{Tile::cluster, true}), emulated_kernel<Tile>, launch->blocks,
                    emulated_threads, Tile::shared_bytes, op.stream, launch->map_a, launch->map_b,
                    arguments);
    return launch_recompute(op, g, o.verdicts, launch->verdict_count);
}

template <class Tile> int launch_tiles(Operation &op, const Gemm &g) {
    using Scheme = typename Tile::Scheme;
    Launch launch = {};
    launch.schedule = schedule_for<Tile>(g);
    Schedule &schedule = launch.schedule;
    int64_t multiprocessors;
    PVG_PASS(device_attribute(g.device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    const int64_t width = multiprocessors / Tile::cluster, units = schedule.units();
    launch.blocks = static_cast<unsigned>(width < units ? width : units) * Tile::cluster;
    launch.verdict_count = Scheme::scaled ? static_cast<int>(launch.blocks) : 1;

    Operands &o = launch.operands;
    o.a = operand_of(g.m, g.k, g.lda, !g.a_along_k, true);
    o.b = operand_of(g.k, g.n, g.ldb, g.b_along_k, false);
    constexpr int parts = 2 * Tile::cluster;
    launch.ticket_count = static_cast<int>(ticket_bytes(schedule, 1, parts) / 4);
    Workspace workspace;
    for (Layout layout;; layout = {workspace.as<unsigned char>()}) {
        lay_out<Scheme>(&layout, &o.a);
        lay_out<Scheme>(&layout, &o.b);
        layout.take(&schedule.tickets, launch.ticket_count);
        layout.take(&schedule.partials, partial_bytes(schedule, 1, parts, Tile::sums) / 4);
        layout.take(&o.verdicts, launch.verdict_count);
        if (layout.base) break;
        PVG_PASS(workspace.open(op, static_cast<size_t>(layout.bytes)));
    }
    PVG_PASS(map_planes<Scheme>(&launch.map_a, o.a, CU_TENSOR_MAP_SWIZZLE_64B, emulated_k,
                                emulated_rows));
    PVG_PASS(map_planes<Scheme>(&launch.map_b, o.b, CU_TENSOR_MAP_SWIZZLE_128B, 64, 16));
    for (int item = 0; item < g.items; item++) {
        // An operand that all items share is split once; but one of them always is, as that clears
        // the tickets.
        const bool split_a = item == 0 || g.a_item != 0 || g.b_item == 0;
        const bool split_b = item == 0 || g.b_item != 0;
        PVG_PASS(launch_item<Tile>(op, item_of(g, item), &launch, split_a, split_b));
    }
    return PVG_OK;
}

template <class Scheme> int launch(Operation &op, const Gemm &g) {
    using All = Tiles<Scheme>;
    const double wide = time_of<typename All::Wide>(g), medium = time_of<typename All::Medium>(g);
    const double narrow = time_of<typename All::Narrow>(g);
    if (narrow < medium && narrow < wide) return launch_tiles<typename All::Narrow>(op, g);
    return medium < wide ? launch_tiles<typename All::Medium>(op, g)
                         : launch_tiles<typename All::Wide>(op, g);
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
