// Plans of products by the tensor-core instructions of a warp: sm80/dmma.cu (float64) and
// sm80/tensor.cu (float16, bfloat16 and TF32).
//
// float64 splits k where tiles are few, which needs clusters, compute capability 9.0; before,
// nothing is split. How often depends on m, n and k alone, and is reckoned with tiles of 128 x 128;
// the tile itself changes no bit, and so the number of items counts, too.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>
#include <math.h>

namespace pvg::matmul {

namespace {

constexpr int dmma_tiles = sizeof dmma_sizes / sizeof *dmma_sizes; // the first is the large one

int64_t tiles_of(const Gemm &g, int side = warp_side) {
    return tiles(g.m, side) * tiles(g.n, side);
}
int64_t tiles_of(const Gemm &g, const DmmaSize &size) {
    return tiles(g.m, size.rows) * tiles(g.n, size.columns);
}

constexpr int candidates[] = {1, 2, 4, 8}; // blocks that share a tile of c

// The time of so many blocks, with so many stages each, in stages of a large tile. `fit` of them
// share a multiprocessor, but for the last ones, if these are few.
double cost_of_blocks(int64_t blocks, int64_t width, int tile, int fit, int64_t length,
                      int besides) {
    const int64_t rounds = blocks / (width * fit), rest = blocks % (width * fit);
    const auto cost = [&](int64_t each) {
        if (each == 0) return 0.0;
        return static_cast<double>(length) * cost::dmma_stage[tile][each - 1] +
               besides * cost::dmma_beside[tile];
    };
    return static_cast<double>(rounds) * cost(fit) + cost((rest + width - 1) / width);
}

double cost_of(const Gemm &g, int candidate, int tile, int64_t items) {
    const int splits = candidates[candidate];
    const DmmaSize &size = dmma_sizes[tile];
    return cost_of_blocks(tiles_of(g, size) * items * splits, cost::at_a_time[splits - 1], tile,
                          dmma_blocks(size.rows, size.columns),
                          (tiles(g.k, dmma_depth) + splits - 1) / splits,
                          cost::dmma_block + (splits > 1 ? cost::dmma_sharing : 0));
}

// The same of tiles whose splits a block computes one after another.
double cost_in_sequence(const Gemm &g, int candidate, int64_t items) {
    const DmmaSize &size = dmma_sizes[dmma_sequence_tile];
    return cost_of_blocks(tiles_of(g, size) * items, cost::at_a_time[0], dmma_sequence_tile,
                          dmma_sequence_blocks, tiles(g.k, dmma_depth),
                          cost::dmma_block + candidates[candidate] - 1);
}

// The time of an item by the best tile.
double cost_of_item(const Gemm &g, int candidate) {
    double least = cost_of(g, candidate, 0, 1);
    for (int tile = 1; tile < dmma_tiles; tile++)
        least = fmin(least, cost_of(g, candidate, tile, 1));
    return least;
}

// How much of the time without splits that with them may be.
double worth_splits(const Gemm &g) {
    const int shorter = g.m < g.n ? g.m : g.n, longer = g.m < g.n ? g.n : g.m;
    return shorter <= cost::narrow_for_splits && longer >= cost::long_for_splits
               ? cost::worth_splits_of_narrow
               : cost::worth_splits_dmma;
}
// The best for one item, which is the best for each of a batch, because of the bits: a batch would
// do better without splits, and so they have to pay. Stretches are not split any more.
int best_candidate(const Gemm &g) {
    int best = 0;
    if (g.last_k) return best;
    for (int i = 1; i < 4 && tiles(g.k, dmma_depth) >= 4 * candidates[i]; i++)
        if (cost_of_item(g, i) < worth_splits(g) * cost_of_item(g, best)) best = i;
    return best;
}

int shared_bytes(int stage_bytes, int sums_bytes) {
    const int stages = warp_stages * stage_bytes;
    return stages > sums_bytes ? stages : sums_bytes;
}
constexpr int warp_sums_bytes = warp_side * warp_sums_pitch * 4;
int dmma_bytes(const DmmaSize &size, int stages, bool a_along_k, bool b_along_k) {
    const int bytes = stages * (dmma_stage_bytes(size.rows, a_along_k) +
                                dmma_stage_bytes(size.columns, b_along_k));
    const int sums = size.rows * dmma_sums_pitch(size.columns) * 8;
    return bytes > sums ? bytes : sums;
}
// As many as there are, and as the blocks that share a multiprocessor have room for.
void plan_stages(const Gemm &g, const Card &card, const DmmaSize &size, int fit, Plan *plan) {
    const auto bytes = [&](int stages) {
        return dmma_bytes(size, stages, g.a_along_k, g.b_along_k);
    };
    plan->stages = dmma_stages(size.rows);
    const int64_t wanted = blocks_each(card, *plan), each = wanted < fit ? wanted : fit;
    const int64_t all = tiles(g.k, dmma_depth) / plan->splits;
    for (int stages : dmma_more_stages) {
        const int64_t together = each * (bytes(stages) + block_overhead);
        if (size.rows > 64 || plan->stages >= stages || stages > all) continue;
        if (bytes(stages) <= card.shared_of_block && together <= card.shared_of_multiprocessor)
            plan->stages = stages;
    }
    plan->shared_bytes = bytes(plan->stages);
}

void plan_grid(const Gemm &g, const Card &card, const DmmaSize &size, int threads, Plan *plan) {
    plan->rows = size.rows, plan->columns = size.columns;
    plan->part_rows = g.m;
    plan->tiles = tiles_of(g, size);
    const int64_t most = INT_MAX / (plan->tiles * plan->splits); // items a grid
    plan->items = static_cast<int>(g.items < most ? g.items : most);
    plan->blocks = plan->tiles * plan->splits * plan->items;
    plan->threads = threads;
    plan->overlap = card.overlaps();
}

OperandPlan in_place(const Stored &x) {
    OperandPlan plan;
    plan.along_k = x.along_k, plan.stride = x.stride, plan.item = x.item;
    return plan;
}

// An operand of 16 bits: what cp.async cannot read in 16 bytes, or what is still float32, is
// copied, to rows that begin at multiples of 128 bytes.
OperandPlan plan_halves(const Stored &x, bool is_rounded) {
    OperandPlan plan = in_place(x);
    if (!is_rounded && allows_16_bytes(x.data, x.stride, x.item, 2)) return plan;
    plan.copying = Copying::rows;
    plan.stride = round_up(x.columns, 64);
    const int64_t size = x.rows * plan.stride;
    if (x.item != 0) plan.item = size;
    plan.bytes = x.items * size * 2;
    return plan;
}

} // namespace

bool can_dmma(const Gemm &g, const Card &card) {
    return g.dtype == PVG_FLOAT64 && card.architecture >= 80 && card.tensor_cores &&
           dmma_bytes(dmma_sizes[0], warp_stages, true, true) <= card.shared_of_block &&
           tiles_of(g) <= INT_MAX / 16 / candidates[best_candidate(g)]; // of small ones, too
}

void plan_dmma(const Gemm &g, const Card &card, Plan *plan) {
    const Stored a = stored_a(g), b = stored_b(g);
    const int candidate = card.overlaps() ? best_candidate(g) : 0;
    plan->splits = plan->cluster = candidates[candidate];
    plan->reckoned = cost_of(g, candidate, 0, g.items);
    for (int tile = 1; tile < dmma_tiles; tile++) {
        const double found = cost_of(g, candidate, tile, g.items);
        if (found < plan->reckoned) plan->reckoned = found, plan->tile = tile;
    }
    const double in_sequence = cost_in_sequence(g, candidate, g.items);
    // Of a few items clusters may leave much idle; of one, the small tiles' own splits are faster.
    const bool are_many =
        tiles_of(g, dmma_sizes[dmma_sequence_tile]) * g.items >= 2 * cost::at_a_time[0];
    if (candidate > 0 && (are_many || g.items > 1) && in_sequence < plan->reckoned) {
        plan->tile = dmma_sequence_tile;
        plan->splits_in_sequence = plan->splits, plan->splits = plan->cluster = 1;
        plan->reckoned = in_sequence;
    }
    plan->depth = dmma_depth;
    const DmmaSize &size = dmma_sizes[plan->tile];
    plan_grid(g, card, size, dmma_threads(size.rows), plan);
    plan->a = in_place(a), plan->b = in_place(b);
    const bool pairs = allows_16_bytes(a.data, a.stride, a.item, 8) &&
                       allows_16_bytes(b.data, b.stride, b.item, 8);
    plan->a.alignment = plan->b.alignment = pairs ? 2 : 1;
    const int fit =
        plan->splits_in_sequence > 1 ? dmma_sequence_blocks : dmma_blocks(size.rows, size.columns);
    plan_stages(g, card, size, fit, plan);
    spread_blocks(fit, card, plan);
}

// As many as make the product fastest, by what it takes as a whole and as stretches, whose sums
// have to be added up. Asked are those that fill whole rounds.
int64_t stretches_dmma(const Gemm &g) {
    if (g.k < cost::least_k_of_stretches_dmma) return 1;
    const int candidate = best_candidate(g);
    double least = cost_of_item(g, candidate);
    int64_t best = 1;
    for (int tile = 0; tile < dmma_tiles; tile++)
        for (int each = 1; each <= cost::most_rounds_of_dmma; each++) { // of a multiprocessor
            const int64_t all = tiles_of(g, dmma_sizes[tile]);
            int64_t count = cost::at_a_time[0] * each / all;
            if (count > g.k / cost::least_stretch_dmma) count = g.k / cost::least_stretch_dmma;
            if (count < 2) continue;
            const double sums = static_cast<double>(count * g.m) * g.n;
            const double found =
                cost_of_blocks(all * count, cost::at_a_time[0], tile,
                               dmma_blocks(dmma_sizes[tile].rows, dmma_sizes[tile].columns),
                               (tiles(g.k, dmma_depth) + count - 1) / count, cost::dmma_block) +
                cost::dmma_adding + sums * cost::dmma_stages_of_sum;
            if (found < least) least = found, best = count;
        }
    return best;
}

bool can_tensor_sm80(const Gemm &g, const Card &card) {
    return is_of_halves_or_rounded(g) && card.architecture >= 80 && card.tensor_cores &&
           shared_bytes(2 * warp_stage_bytes(2, true), warp_sums_bytes) <= card.shared_of_block &&
           tiles_of(g) <= INT_MAX;
}

void plan_tensor_sm80(const Gemm &g, const Card &card, Plan *plan) {
    const int type = multiplied_type(g), element = type == PVG_FLOAT32 ? 4 : 2;
    plan_grid(g, card, {warp_side, warp_side}, warp_threads, plan);
    if (type == PVG_FLOAT32) { // TF32 wants both operands along k
        plan->a = arrange(stored_a(g), {true, 4});
        plan->b = arrange(stored_b(g), {true, 4});
    } else {
        plan->a = plan_halves(stored_a(g), g.dtype != type);
        plan->b = plan_halves(stored_b(g), g.dtype != type);
    }
    plan->shared_bytes = shared_bytes(warp_stage_bytes(element, plan->a.along_k) +
                                          warp_stage_bytes(element, plan->b.along_k),
                                      warp_sums_bytes);
}

} // namespace pvg::matmul
