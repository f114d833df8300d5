// Plans of float32 products from 16-bit pieces, sm90/emulated.cu: BF16X6 and FP16X3. Which tile,
// and how K is cut, depends on m, n and k alone.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/pieces.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

constexpr int width_of(const EmulatedSize &size) { // tiles at a time
    return cost::tuned_multiprocessors / size.cluster;
}

Schedule schedule_for(const Gemm &g, const EmulatedSize &size) {
    const int blocks = static_cast<int>(tiles(g.k, emulated_k * size.unit)) * size.unit;
    const Schedule whole = whole_schedule(tiles(g.m, emulated_rows * size.cluster),
                                          tiles(g.n, size.columns), blocks, size.unit);
    return cut_schedule(whole, size.cluster, cost::cutting(static_cast<double>(g.k)));
}

// An estimate of the time, to compare tiles with each other: a narrow tile reaches a smaller part
// of the speed, but may leave fewer multiprocessors idle.
double time_of(const Gemm &g, const EmulatedSize &size) {
    const Schedule s = schedule_for(g, size);
    double rounds = static_cast<double>(tiles(s.whole, width_of(size)));
    if (s.cut > 0)
        rounds += static_cast<double>(tiles(int64_t(s.cut) * s.slices, width_of(size))) / s.slices +
                  cost::cutting(static_cast<double>(g.k)) * s.slices;
    return rounds * size.columns * s.k_blocks / size.efficiency;
}

// Number of the tile: 0 wide, 1 medium, 2 narrow.
int choose_tile(const Gemm &g, const EmulatedSize (&sizes)[3], bool wide_is_accurate) {
    const double medium = time_of(g, sizes[1]), narrow = time_of(g, sizes[2]);
    if (wide_is_accurate && time_of(g, sizes[0]) <= (medium < narrow ? medium : narrow)) return 0;
    return narrow < medium ? 2 : 1;
}

constexpr int64_t most_units = int64_t(1) << 28; // are counted in 32 bits

// All items, if that does not need too much; else half of them, or a quarter, ... at a time.
void plan_items(const Gemm &g, Plan *plan) {
    for (int items = g.items;; items = items / 2 + items % 2) {
        const PieceSpace space = space_of_pieces(g, *plan, items);
        const int64_t units = int64_t(items) * plan->schedule.units_of_item();
        plan->items = items, plan->workspace = space.bytes;
        if (items == 1 || (space.bytes <= most_waiting && units <= most_units)) return;
    }
}

OperandPlan as_pieces(const PlaneShape &x, bool along_k, int planes) {
    OperandPlan plan;
    plan.copying = Copying::pieces, plan.along_k = along_k;
    plan.stride = plane_pitch(x.columns), plan.item = planes * plane_size(x.rows, x.columns);
    plan.bytes = x.items * plan.item * 2; // a part of the workspace
    return plan;
}

void plan_pieces(const Gemm &g, const Card &card, const EmulatedSize (&sizes)[3], int planes,
                 bool wide_is_accurate, Plan *plan) {
    plan->tile = choose_tile(g, sizes, wide_is_accurate);
    const EmulatedSize &size = sizes[plan->tile];
    plan->schedule = schedule_for(g, size);
    plan->rows = emulated_rows, plan->columns = size.columns;
    plan->slices = plan->schedule.slices;
    plan->cluster = size.cluster;
    plan->tiles = int64_t(plan->schedule.tiles_down) * plan->schedule.tiles_across * size.cluster;
    plan->part_rows = g.m;
    plan->depth = emulated_k;
    plan->reckoned = time_of(g, size) * g.items;
    plan->threads = emulated_threads;
    plan->shared_bytes = size.shared_bytes(planes);
    plan->overlap = true;
    plan_items(g, plan);
    plan->a = as_pieces(planes_of_a(g, plan->items), true, planes);
    plan->b = as_pieces(planes_of_b(g, plan->items), false, planes);
    const int64_t units = int64_t(plan->items) * plan->schedule.units_of_item();
    const int64_t at_once = card.multiprocessors / size.cluster;
    plan->blocks = (at_once < units ? at_once : units) * size.cluster;
}

} // namespace

PlaneShape planes_of_a(const Gemm &g, int items) {
    return {g.a_item == 0 ? 1 : items, g.m, static_cast<int>(g.k), !g.a_along_k, true};
}
PlaneShape planes_of_b(const Gemm &g, int items) {
    return {g.b_item == 0 ? 1 : items, static_cast<int>(g.k), g.n, g.b_along_k, false};
}

int64_t turned_tiles(const PlaneShape &x) {
    return plane_pitch(x.columns) / split_tile * tiles(x.rows, split_tile);
}

// Every block reports a range, which somebody has to read: a few waves of blocks share the work.
int64_t range_count(const PlaneShape &x) {
    const int64_t packs = plane_size(x.rows, x.columns) / split_pack;
    const int64_t blocks = x.turned ? turned_tiles(x) : tiles(packs, split_threads);
    return blocks < 2048 ? blocks : 2048;
}

int64_t maxima_count(const PlaneShape &x) {
    const int line = x.lines_are_rows ? x.columns : x.rows;
    return int64_t(line_part_count(line, x.lines_are_rows != x.turned)) * line_count(x);
}

PieceSpace space_of_pieces(const Gemm &g, const Plan &plan, int items) {
    const bool scaled = plan.kernel == PVG_MATMUL_FP16X3;
    const int planes = scaled ? fp16_planes : bf16_planes;
    PieceSpace space = {};
    const auto take = [&space](int64_t *part, int64_t bytes) {
        *part = space.bytes;
        space.bytes += round_up(bytes, 256);
    };
    const PlaneShape shapes[] = {planes_of_a(g, items), planes_of_b(g, items)};
    for (int i = 0; i < 2; i++) {
        const PlaneShape &x = shapes[i];
        auto &parts = i == 0 ? space.a : space.b;
        take(&parts.planes, x.items * planes * plane_size(x.rows, x.columns) * 2);
        if (scaled) {
            take(&parts.maxima, x.items * maxima_count(x) * 4);
            take(&parts.roots, x.items * int64_t(line_count(x)) * 4);
        } else {
            take(&parts.ranges, x.items * range_count(x) * 8);
        }
    }
    const int warpgroups = 2 * plan.cluster;
    space.tickets = static_cast<int>(ticket_bytes(plan.schedule, items, warpgroups) / 4);
    space.flag_count = space.tickets + items + 1;
    take(&space.partials, partial_bytes(plan.schedule, items, warpgroups, plan.columns / 2));
    take(&space.flags, int64_t(space.flag_count) * 4);
    return space;
}

// Coordinates of tiles that reach beyond the matrix are numbers of 32 bits too.
bool can_pieces(const Gemm &g, const Card &card) {
    constexpr int most = INT_MAX - 256;
    return g.dtype == PVG_FLOAT32 && card.architecture == 90 && card.tensor_cores && g.m <= most &&
           g.n <= most && g.k <= most;
}

// Without groups Bf16x6 errs less than "ieee" only where that adds two halves of k up.
void plan_bf16x6(const Gemm &g, const Card &card, Plan *plan) {
    plan_pieces(g, card, bf16x6_sizes, bf16_planes, adds_halves(g), plan);
}
void plan_fp16x3(const Gemm &g, const Card &card, Plan *plan) {
    plan_pieces(g, card, fp16x3_sizes, fp16_planes, true, plan);
}

} // namespace pvg::matmul
