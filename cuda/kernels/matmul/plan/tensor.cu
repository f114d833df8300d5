// Plans of float16, bfloat16 and TF32 products by wgmma, sm90/tensor.cu: which tile, what is cut,
// whether blocks share loads, what is copied and whether a product is made in parts.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tensor_time.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>
#include <math.h>

namespace pvg::matmul {

namespace {

constexpr int width = cost::tuned_multiprocessors;

Tiling tiling_of(const Plan &plan) {
    return {plan.tile, plan.rows, plan.columns, plan.pair, plan.schedule, plan.down};
}

// ---- Which tile, and what is cut ----------------------------------------------------------------

// Tiles of 64 rows are for narrow products, and for small ones, where more multiprocessors then
// have one, and each loads less. They are not cut, nor in pairs but of narrow products of 16 bits.
bool may_be_small(const Tiling &whole, bool one, bool narrow) {
    const Schedule &s = whole.schedule;
    return narrow || (one && s.k_blocks < cost::long_k && s.whole <= width);
}

// What remains is cut only where K is long and few tiles would leave many multiprocessors idle. The
// large tiles never are: the code for it would cost them registers.
bool may_be_cut(const Tiling &whole) {
    return whole.rows == 128 && whole.columns <= 128 && whole.schedule.k_blocks >= cost::long_k &&
           whole.schedule.whole << whole.pair <= width * 3 / 4;
}

// The instruction's rows and columns, whether its a comes as TF32 along m, and whether both
// operands are of 16 bits.
struct Sides {
    int m, n;
    bool to_registers, halves;

    bool are_narrow() const { return (m < n ? m : n) <= cost::most_for_narrow_tensor; }
};
bool is_transposed(const Gemm &g) { return multiplied_type(g) == PVG_FLOAT32 && !g.b_along_k; }

Sides sides_of(const Gemm &g) {
    return is_transposed(g) ? Sides{g.n, g.m, true, false}
                            : Sides{g.m, g.n, false, multiplied_type(g) != PVG_FLOAT32};
}

// Of rows that begin at lines of memory. one: of an item alone, or of its stretches.
Loads loads_of(const Sides &sides, int k_blocks, bool one) {
    const double bytes = (double(sides.m) + sides.n) * k_blocks * 128;
    return {cost::line_cycles,
            cost::line_cycles,
            bytes,
            sides.to_registers,
            sides.halves,
            one && sides.are_narrow(),
            sides.m,
            sides.n,
            Lines(),
            Lines()};
}

// Which tiles there are: 192 x 192 of what is not narrow, as stretches are reckoned without it.
bool may_have(int tile, const Loads &x, bool are_stretches) {
    if (tile == tensor_192x192) return x.halves && !x.narrow && !are_stretches;
    return tile != tensor_64x128 || is_narrow_of_halves(x);
}

// What two blocks share: nothing, a of tiles side by side, or b of one below the other. Tiles of 64
// rows, and from the first b, of narrow products of 16 bits alone.
enum class Sharing { none, across, down };
bool may_share(Sharing sharing, int tile, const Loads &x) {
    const auto [rows, columns] = tensor_sizes[tile];
    if (sharing == Sharing::none) return true;
    if (!is_narrow_of_halves(x)) return sharing == Sharing::across && rows != 64 && x.n > columns;
    const bool is_measured = columns > 32 && (rows == 64 || columns > 64);
    return is_measured && (sharing == Sharing::across ? x.n > columns : x.m > rows);
}
Tiling tiling_with(int tile, Sharing sharing, const Sides &sides, int k_blocks) {
    const auto [rows, columns] = tensor_sizes[tile];
    const int across = sharing == Sharing::across, down = sharing == Sharing::down;
    const int64_t tiles_down = tiles(sides.m, rows << down);
    const int64_t tiles_across = tiles(sides.n, columns << across);
    return {tile,
            rows,
            columns,
            across + down,
            whole_schedule(tiles_down, tiles_across, k_blocks, 1),
            down == 1};
}

// An item that is cut when it is alone is cut in the same way in a batch, because the order of the
// sums is the result's business: so the plan depends on its shape alone, and is made for rows that
// begin at lines of memory. Else the tile is free, and the number of items counts. Stretches are
// not cut any more.
//
// Of a narrow product of 16 bits nothing is cut but as stretches, and how its operands lie counts.
Tiling choose_tiling(const Sides &sides, int k_blocks, int64_t all_items, bool are_stretches,
                     const Lines &a, const Lines &b) {
    Tiling best = {};
    for (int64_t items : {are_stretches ? all_items : 1, all_items}) {
        const bool one = items == 1 || are_stretches;
        Loads loads = loads_of(sides, k_blocks, one);
        loads.a = a, loads.b = b;
        double least = 0;
        const auto consider = [&](const Tiling &tiling) {
            const double cost = cycles(tiling, loads, items);
            if (least != 0 && cost >= least) return;
            least = cost;
            best = tiling;
        };
        for (int tile = 0; tile < tensor_tiles; tile++) {
            if (!may_have(tile, loads, are_stretches)) continue;
            for (const Sharing sharing : {Sharing::none, Sharing::across, Sharing::down}) {
                if (!may_share(sharing, tile, loads)) continue;
                Tiling tiling = tiling_with(tile, sharing, sides, k_blocks);
                if (tiling.rows == 64 && !may_be_small(tiling, one, loads.narrow)) continue;
                consider(tiling);
                const bool is_whole = items > 1 || are_stretches || is_narrow_of_halves(loads);
                if (is_whole || !may_be_cut(tiling)) continue;
                const double of_tile =
                    double(k_blocks) * cost::shared_memory_cycles(tiling.rows, tiling.columns);
                tiling.schedule =
                    cut_schedule(tiling.schedule, 1 << tiling.pair, cost::slice_cycles / of_tile);
                consider(tiling);
            }
        }
        if (best.schedule.cut || all_items == 1) break;
    }
    return best;
}

// ---- Operands -----------------------------------------------------------------------------------

bool is_tma_stride(int64_t bytes) {
    return bytes > 0 && bytes % 16 == 0 && bytes < int64_t(1) << 40;
}

// Whether TMA can read elements of so many bytes as they are in g.
bool is_readable(const Stored &x, int element) {
    const bool items = x.items == 1 || is_tma_stride(element * x.item);
    const bool rows = x.rows == 1 || (x.stride >= x.columns && is_tma_stride(element * x.stride));
    return items && rows && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
}

// Whether the kernel can read float32 rows i, i + 4, i + 8, ... for each i below 4, and finds them
// in different banks of shared memory, two at least.
bool has_readable_classes(const Stored &x) {
    return (x.items == 1 || is_tma_stride(4 * x.item)) && x.rows >= 4 && x.stride >= x.columns &&
           x.stride % 4 != 0 && is_tma_stride(16 * x.stride);
}

// Copies have rows of whole 128 bytes, so that the box of a tile is whole lines of memory; short
// ones of whole 16. In elements of 16 bits.
int64_t copy_stride(int64_t columns) { return round_up(columns, columns > 64 ? 64 : 8); }

OperandPlan read_in_place(const Stored &x) {
    OperandPlan plan;
    plan.along_k = x.along_k, plan.stride = x.stride, plan.item = x.item;
    return plan;
}

OperandPlan copy_rows(const Stored &x, int type) {
    const int halves = type == PVG_FLOAT32 ? 2 : 1; // that an element is copied as
    OperandPlan plan = read_in_place(x);
    plan.copying = Copying::rows;
    plan.stride = copy_stride(x.columns * halves) / halves;
    plan.item = x.rows * plan.stride;
    plan.bytes = round_up(x.items * x.rows * plan.stride * halves * 2, 256);
    return plan;
}

// A TF32 a along m is transposed, together with what b needs. readings_of_b: by the tiles that lie
// below each other in c.
void plan_operands(const Gemm &g, int type, int64_t readings_of_b, Plan *plan) {
    const Gemm all = joined(g);
    const Stored a = stored_a(all), b = stored_b(all);
    const int element = type == PVG_FLOAT32 ? 4 : 2;
    const bool rounded = g.dtype != type;
    const bool a_stays = !rounded && is_readable(a, element);
    bool b_stays = !rounded && is_readable(b, element);
    plan->b_in_classes = type == PVG_FLOAT32 && !b_stays && !g.b_along_k &&
                         readings_of_b <= cost::most_readings && has_readable_classes(b);
    b_stays = b_stays || plan->b_in_classes;
    const bool transposes = type == PVG_FLOAT32 && !g.a_along_k;
    if (transposes)
        plan->a = arrange(a, {true, 4});
    else
        plan->a = a_stays ? read_in_place(a) : copy_rows(a, type);
    if (b_stays)
        plan->b = read_in_place(b);
    else
        plan->b = transposes ? arrange(b, {g.b_along_k, 4}) : copy_rows(b, type);
}

// ---- Pairs --------------------------------------------------------------------------------------

// To bring 128 bytes of a row. Copies begin at lines of memory.
double row_cycles(const Stored &x, const OperandPlan &plan, int element) {
    const uint64_t address =
        plan.copying == Copying::none ? reinterpret_cast<uintptr_t>(x.data) : 0;
    const uint64_t begin = address | uint64_t(plan.stride) * element;
    return begin % 64 == 0   ? cost::line_cycles
           : begin % 32 == 0 ? cost::sector_cycles
                             : cost::unaligned_cycles;
}

// Of a product of 16 bits.
Lines lines_of(const Gemm &g, const Stored &x) {
    const bool is_copied = multiplied_type(g) != g.dtype || !is_readable(x, 2);
    const uint64_t begin = reinterpret_cast<uintptr_t>(x.data) | uint64_t(x.stride) * 2;
    const bool is_aligned = is_copied || begin % 32 == 0;
    return {is_aligned ? cost::halves_aligned_cycles : cost::halves_unaligned_cycles, x.along_k};
}

// Two blocks side by side, which share a.
Tiling pair_across(const Tiling &single) {
    Tiling pair = single;
    Schedule &s = pair.schedule;
    pair.pair = 1, s.tiles_across = (s.tiles_across + 1) / 2;
    (s.cut ? s.cut : s.whole) = s.tiles_down * s.tiles_across;
    return pair;
}

// Lets blocks share the instruction's a, or of 16 bits b, also where that pays for these operands
// only. The slices of K stay what they are, and with them the bits: so here addresses and strides
// may count.
void pair_blocks(const Gemm &g, int type, Plan *plan) {
    const int element = type == PVG_FLOAT32 ? 4 : 2;
    const double rows_of_a = row_cycles(stored_a(g), plan->a, element);
    const double rows_of_b =
        plan->b_in_classes ? cost::unaligned_cycles : row_cycles(stored_b(g), plan->b, element);
    const double bytes = (double(g.m) * double(g.k) + double(g.n) * double(g.k)) * element;
    Loads loads = loads_of(sides_of(g), plan->schedule.k_blocks, g.items == 1 || g.last_k > 0);
    loads.row_a = plan->transposed ? rows_of_b : rows_of_a;
    loads.row_b = plan->transposed ? rows_of_a : rows_of_b;
    loads.bytes = bytes, loads.a = lines_of(g, stored_a(g)), loads.b = lines_of(g, stored_b(g));
    const Tiling given = tiling_of(*plan);
    const Schedule &s = given.schedule;
    plan->reckoned = cycles(given, loads, g.items);
    if (plan->rows == 64 || is_narrow_of_halves(loads)) return; // has been considered
    const auto consider = [&](const Tiling &pair) {
        const double reckoned = cycles(pair, loads, g.items);
        if (reckoned >= plan->reckoned) return;
        plan->schedule = pair.schedule, plan->pair = 1, plan->down = pair.down;
        plan->reckoned = reckoned;
    };
    if (!given.pair && s.tiles_across > 1 && !(s.cut && s.whole)) consider(pair_across(given));
    const bool has_halves_of_b = type != PVG_FLOAT32 && given.columns >= 128;
    if (has_halves_of_b && !s.cut && g.m > given.rows)
        consider(tiling_with(plan->tile, Sharing::down, sides_of(g), s.k_blocks));
}

// ---- Large copies, in parts ---------------------------------------------------------------------

// Bytes of a's copy of a TF32 product, if that is all that is copied, row by row; else 0.
int64_t bytes_of_a_alone(const Gemm &g, int64_t readings_of_b) {
    Plan plan;
    plan_operands(g, PVG_FLOAT32, readings_of_b, &plan);
    if (plan.a.copying != Copying::rows || plan.b.copying != Copying::none) return 0;
    return stored_a(g).items * g.m * plan.a.stride * 4;
}

// A copy of a that the second-level cache cannot hold goes to memory and comes back. So such a
// product is made in parts, rows after rows: the copy of a part stays in the cache, and the next
// one's takes its place there. The kernels of a part wait for those of the part before. Every
// element of c is the same sum as before.
//
// The rows of a part, for a TF32 product of c transposed, whose tiles are `columns` of them: as
// many as may be, if all parts together take no more rounds of tiles than the whole; else all rows.
// An even number of tiles, so that blocks can be paired.
int64_t rows_of_part(const Gemm &g, const Plan &plan, int64_t readings_of_b) {
    const int64_t bytes = bytes_of_a_alone(g, readings_of_b);
    if (bytes < cost::large_copy || g.items > 1 || plan.schedule.cut) return g.m;
    const auto rounds = [&plan](int64_t rows) {
        const int64_t across = tiles(rows, plan.columns << plan.pair);
        return tiles(across * plan.schedule.tiles_down, width >> plan.pair);
    };
    const int64_t step = 2 * plan.columns;
    for (int64_t part = cost::part_of_copy * g.m / (bytes * step) * step; part > 0; part -= step)
        if (g.m / part * rounds(part) + rounds(g.m % part) <= rounds(g.m)) return part;
    return g.m;
}

// Items of one launch: units are counted in 32 bits, and the workspace of slices stays small.
void plan_launch(const Gemm &g, const Card &card, int type, Plan *plan) {
    const Schedule &s = plan->schedule;
    const int parts = plan->rows / 64 << plan->pair; // warpgroups
    int64_t most = (int64_t(1) << 30) / s.units_of_item();
    const int64_t bytes = partial_bytes(s, 1, parts, plan->columns / 2);
    if (bytes > 0 && most > most_waiting / bytes) most = most_waiting / bytes;
    if (most < 1) most = 1;
    plan->items = static_cast<int>(most < g.items ? most : g.items);
    if (s.cut)
        plan->workspace = partial_bytes(s, plan->items, parts, plan->columns / 2) +
                          ticket_bytes(s, plan->items, parts);
    const int64_t units = int64_t(plan->items) * s.units_of_item();
    const int64_t at_once =
        card.multiprocessors > plan->pair ? card.multiprocessors >> plan->pair : 1;
    plan->cluster = 1 << plan->pair;
    plan->tiles = int64_t(s.tiles_down) * s.tiles_across * plan->cluster;
    plan->blocks = (units < at_once ? units : at_once) << plan->pair;
    plan->slices = s.slices, plan->depth = type == PVG_FLOAT32 ? 32 : 64;
    plan->threads = 128 + plan->rows / 64 * 128;
    const auto shared_bytes = [&](int stages) {
        return tensor_shared_bytes(plan->rows, plan->columns, type == PVG_FLOAT32 ? 4 : 2,
                                   plan->b_in_classes, stages);
    };
    const bool is_small = tensor_is_small(plan->rows, plan->columns);
    plan->stages = tensor_stages(plan->rows, plan->columns);
    if (is_small && !plan->transposed && s.k_blocks >= cost::least_for_all_stages)
        while (shared_bytes(plan->stages + 1) <= card.shared_of_block) plan->stages++;
    plan->shared_bytes = shared_bytes(plan->stages);
    plan->overlap = true;
    if (is_small) spread_blocks(2, card, plan);
}

int64_t readings_of_b(const Plan &whole) {
    return whole.transposed ? whole.schedule.tiles_across : whole.schedule.tiles_down;
}

int k_blocks_of(const Gemm &g, int64_t terms) {
    return static_cast<int>(tiles(terms, multiplied_type(g) == PVG_FLOAT32 ? 32 : 64));
}

Tiling tiling_for(const Gemm &g, int64_t items, const Lines &a, const Lines &b) {
    return choose_tiling(sides_of(g), k_blocks_of(g, g.k), items, g.last_k > 0, a, b);
}

// `plan` has the tiles of the part.
void complete(const Gemm &part, const Card &card, int64_t readings, Plan *plan) {
    const int type = multiplied_type(part);
    plan_operands(part, type, readings, plan);
    pair_blocks(part, type, plan);
    plan_launch(part, card, type, plan);
}

} // namespace

bool can_tensor(const Gemm &g, const Card &card) {
    const int longest = INT32_MAX - 512; // coordinates of TMA are of 32 bits
    if (card.architecture != 90 || !card.tensor_cores || g.m > longest || g.n > longest ||
        g.k > longest)
        return false;
    return is_of_halves_or_rounded(g);
}

// TF32, which has to lie along k in shared memory but not in registers, is computed as the product
// of the transposed matrices where b lies along n.
void plan_tensor(const Gemm &g, const Card &card, Plan *plan) {
    plan->transposed = is_transposed(g);
    const Tiling best = tiling_for(g, g.items, lines_of(g, stored_a(g)), lines_of(g, stored_b(g)));
    plan->tile = best.tile, plan->rows = best.rows, plan->columns = best.columns;
    plan->pair = best.pair, plan->schedule = best.schedule, plan->down = best.down;
    const int64_t readings = readings_of_b(*plan);
    plan->part_rows = plan->transposed ? static_cast<int>(rows_of_part(g, *plan, readings)) : g.m;
    if (plan->part_rows == g.m) {
        complete(g, card, readings, plan);
        return;
    }
    // plan_part makes a plan of each part, from the tiles of the whole; here the first one's stands
    // for what they have in common.
    Gemm part = g;
    part.m = plan->part_rows;
    const Plan whole = *plan;
    *plan = plan_part(part, card, whole);
    plan->schedule = whole.schedule, plan->pair = whole.pair;
    plan->reckoned *= double(g.m) / part.m;
}

// What lies along m or n is read as it is where it is the instruction's a, b of the product. So an
// a along m is copied, and if it is turned into b, which becomes a, is: not at all if it lies along
// k. Elements of a copy, which are read, written and read again, against those of c, which are.
bool turning_saves_copies(const Gemm &g) {
    if (multiplied_type(g) != PVG_FLOAT32 || g.a_along_k) return false;
    const double k = double(g.k), saved = k * (g.b_along_k ? g.m : g.m - g.n);
    // Beside a b along k an aligned c is stored as it lies.
    const double least = g.b_along_k ? 1 : 2;
    return saved > cost::saved_by_turning && saved >= least * g.m * g.n;
}

// The part of the operands that is copied before, for all that their lengths say: rows along k as
// often as not; of TF32 one operand where both lie along m and n.
struct Copied { double of_a, of_b; };
static Copied expected_copies(const Gemm &g) {
    const int type = multiplied_type(g);
    if (g.dtype != type) return {1, 1}; // rounded
    const int whole = type == PVG_FLOAT32 ? 4 : 8;
    const double k = g.k % whole ? 0.5 : 0;
    if (type == PVG_FLOAT32) return {k + (g.m <= g.n ? 0.25 : 0), k + (g.m <= g.n ? 0 : 0.25)};
    return {k + (g.m % whole ? 0.5 : 0), k + (g.n % whole ? 0.5 : 0)};
}

// Clock cycles of `parts` stretches, or of the whole, by a tiling of one: of the device's launches,
// and of the host's, the longer of which hides the other.
static double reckon(const Gemm &g, const Tiling &tiling, int64_t parts) {
    const Copied copied = expected_copies(g);
    const double k = double(g.k), element = multiplied_type(g) == PVG_FLOAT32 ? 4 : 2;
    const double any = 1 - (1 - copied.of_a) * (1 - copied.of_b);
    const double elements = copied.of_a * g.m * k + copied.of_b * g.n * k;
    const Loads loads = loads_of(sides_of(g), tiling.schedule.k_blocks, true);
    const bool is_narrow = is_narrow_of_halves(loads);
    const double device = cycles(tiling, loads, parts) +
                          (is_narrow ? cost::halves_launch_cycles : cost::launch_cycles) +
                          any * cost::copying_cycles + elements * 2 * element / cost::copying_rate;
    const double host = (is_narrow ? cost::halves_host_cycles : cost::host_cycles) +
                        any * cost::copying_host_cycles;
    constexpr Adding any_adding = {cost::adding_cycles, cost::adding_host_cycles, cost::sum_rate};
    constexpr Adding of_narrow = {cost::halves_adding_cycles, cost::halves_adding_host_cycles,
                                  cost::halves_sum_rate};
    return with_adding(g, device, host, parts, is_narrow ? of_narrow : any_adding);
}

// As many stretches as make the product fastest: asked are those that fill whole rounds of blocks.
Cut cut_tensor(const Gemm &g) {
    const Sides sides = sides_of(g);
    Cut best = {1, reckon(g, tiling_for(g, 1, Lines(), Lines()), 1)};
    const int all = k_blocks_of(g, g.k);
    if (all < cost::least_k_of_stretches_tensor) return best;
    for (int tile = 0; tile < tensor_tiles; tile++) {
        if (!may_have(tile, loads_of(sides, all, true), true)) continue;
        const auto [rows, columns] = tensor_sizes[tile];
        const int64_t down = tiles(sides.m, rows), across = tiles(sides.n, columns);
        for (int rounds = 1; rounds <= cost::most_rounds_of_tensor; rounds++) {
            const int64_t count = width * rounds / (down * across);
            if (count < 2) continue;
            const int most = all / cost::least_stretch_tensor;
            const int blocks =
                static_cast<int>(tiles(all, static_cast<int>(count < most ? count : most)));
            const Tiling tiling = {tile, rows, columns, 0, whole_schedule(down, across, blocks, 1)};
            const double found = reckon(g, tiling, tiles(all, blocks));
            if (found < best.cycles) best = {tiles(all, blocks), found};
            if (count > most) break;
        }
    }
    return best;
}
int64_t stretches_tensor(const Gemm &g) { return cut_tensor(g).stretches; }

Plan plan_part(const Gemm &part, const Card &card, const Plan &whole) {
    Plan plan = whole;
    Schedule &s = plan.schedule;
    s.tiles_across = static_cast<int>(tiles(part.m, plan.columns << plan.pair));
    s.whole = s.tiles_down * s.tiles_across;
    complete(part, card, readings_of_b(whole), &plan);
    return plan;
}

} // namespace pvg::matmul
