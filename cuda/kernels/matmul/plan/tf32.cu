// Plans of float32 products rounded to TF32 whose operands are read as they lie, sm80/tf32.cu: with
// a long k and few tiles, which is cut into stretches. How k is cut depends on m, n and k alone;
// tiles change no bit.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>
#include <math.h>

namespace pvg::matmul {

namespace {

constexpr int width = cost::tuned_multiprocessors;
constexpr int tilings = sizeof tf32_sizes / sizeof *tf32_sizes; // the last fits all cards

// Tiles that are no larger than they have to be.
struct Tiling {
    int rows, columns;
    int64_t count;
};
Tiling tiling_of(const Gemm &g, int number) {
    const auto part_of = [](int64_t side, int most) {
        const int64_t count = tiles(side, most);
        return static_cast<int>(round_up((side + count - 1) / count, 16));
    };
    Tiling t;
    t.rows = part_of(g.m, tf32_sizes[number].rows);
    t.columns = part_of(g.n, tf32_sizes[number].columns);
    t.count = tiles(g.m, t.rows) * tiles(g.n, t.columns);
    return t;
}

// How much longer the loads of rows take that begin anywhere, of lengths along k as often as not.
double load_factor(int64_t side, int64_t k) {
    const auto of_rows = [](int64_t length) {
        return length % 4 == 0 ? 1 : length % 2 == 0 ? cost::tf32_by_twos : cost::tf32_by_ones;
    };
    return (of_rows(side) + of_rows(k)) / 2;
}

// Clock cycles of `parts` products of so many terms by these tiles: what a multiprocessor loads and
// multiplies, and what the second-level cache and memory bring to all of them wait for each other
// at times. Blocks multiply whole tiles, whatever they have.
double cycles(const Gemm &g, int number, double terms, int64_t parts) {
    const Tiling t = tiling_of(g, number);
    const int64_t blocks = t.count * parts;
    const double rounds = double(tiles(blocks, width));
    const Tf32Size &size = tf32_sizes[number];
    const int beside = size.blocks == 1 || blocks > width;
    const double rows = t.rows * load_factor(g.m, g.k), columns = t.columns * load_factor(g.n, g.k);
    const double loads = rounds * terms * (rows + columns) * 4 / cost::tf32_load_rate[beside];
    const double products =
        rounds * terms * size.rows * size.columns / cost::tf32_multiply_rate[beside];
    const double cache =
        double(blocks) * terms * (t.rows + t.columns) * 4 / cost::narrow_cache_rate;
    const double bytes = (double(g.m) + g.n) * terms * double(parts) * 4;
    const double memory = fmax(bytes - cost::kept_bytes, 0) / cost::narrow_memory_rate;
    return sqrt(loads * loads + products * products + cache * cache + memory * memory) +
           rounds * cost::tf32_round_cycles;
}

int best_tile(const Gemm &g, const Card &card) {
    int best = tilings - 1;
    for (int i = tilings - 1; i-- > 0;) {
        if (tf32_shared_bytes(tf32_sizes[i], tf32_stages) > card.shared_of_block) continue;
        const double terms = double(g.k);
        if (cycles(g, i, terms, g.items) < cycles(g, best, terms, g.items)) best = i;
    }
    return best;
}

// In place, by as many elements at a time as 16, 8 or 4 bytes hold.
OperandPlan read_in_place(const Stored &x) {
    OperandPlan plan;
    plan.along_k = x.along_k, plan.stride = x.stride, plan.item = x.item;
    const int64_t stride = x.rows > 1 ? x.stride : 0, item = x.items > 1 ? x.item : 0;
    const int64_t begin =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(x.data)) | 4 * stride | 4 * item;
    plan.alignment = begin % 16 == 0 ? 4 : begin % 8 == 0 ? 2 : 1;
    return plan;
}

} // namespace

bool can_tensor_tf32(const Gemm &g, const Card &card) {
    return g.dtype == PVG_FLOAT32 && g.precision == PVG_PRECISION_TF32 && card.architecture >= 80 &&
           tf32_shared_bytes(tf32_sizes[tilings - 1], tf32_stages) <= card.shared_of_block &&
           tiling_of(g, tilings - 1).count <= INT_MAX;
}

void plan_tensor_tf32(const Gemm &g, const Card &card, Plan *plan) {
    plan->tile = best_tile(g, card);
    const Tiling t = tiling_of(g, plan->tile);
    plan->rows = t.rows, plan->columns = t.columns;
    plan->depth = tf32_depth;
    plan->part_rows = g.m;
    plan->tiles = t.count;
    const int64_t most = INT_MAX / plan->tiles; // items a grid
    plan->items = static_cast<int>(g.items < most ? g.items : most);
    plan->blocks = plan->tiles * plan->items;
    const Tf32Size &size = tf32_sizes[plan->tile];
    plan->threads = size.threads;
    plan->overlap = card.overlaps();
    plan->a = read_in_place(stored_a(g)), plan->b = read_in_place(stored_b(g));
    plan->reckoned = cycles(g, plan->tile, double(g.k), g.items);
    const int64_t stages = tiles(g.k, tf32_depth);
    plan->shared_bytes =
        tf32_shared_bytes(size, static_cast<int>(stages < tf32_stages ? stages : tf32_stages));
    spread_blocks(size.blocks, card, plan);
}

// As many stretches as make the product fastest: asked are those that fill whole rounds of blocks.
Cut cut_tensor_tf32(const Gemm &g) {
    Cut best = {1, INFINITY};
    for (int i = 0; i < tilings; i++) {
        const auto consider = [&](int64_t count) {
            const double terms = double(round_up(tiles(g.k, static_cast<int>(count)), tf32_depth));
            const double device = cycles(g, i, terms, count) + cost::tf32_launch_cycles;
            const double found = with_adding(
                g, device, cost::tf32_host_cycles, count,
                {cost::tf32_adding_cycles, cost::tf32_adding_host_cycles, cost::tf32_sum_rate});
            if (found < best.cycles) best = {count, found};
        };
        consider(1);
        for (int rounds = 1; rounds <= cost::most_rounds_of_tf32; rounds++) {
            int64_t count = width * rounds / tiling_of(g, i).count;
            if (count > g.k / cost::least_stretch_tf32) count = g.k / cost::least_stretch_tf32;
            if (count > 1) consider(count);
        }
    }
    return best;
}
int64_t stretches_tensor_tf32(const Gemm &g) { return cut_tensor_tf32(g).stretches; }

} // namespace pvg::matmul
