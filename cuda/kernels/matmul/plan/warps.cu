// Plans of products by the tensor-core instructions of a warp: sm80/dmma.cu (float64) and
// sm80/tensor.cu (float16, bfloat16 and TF32).
//
// float64 splits k where tiles are few, which needs clusters, compute capability 9.0; before,
// nothing is split. How often depends on m, n and k alone.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

int64_t tiles_of(const Gemm &g) { return tiles(g.m, warp_side) * tiles(g.n, warp_side); }

// How many blocks share a tile of c, and the time of the items, in stages.
struct Splitting {
    int splits;
    int64_t cost;
};
constexpr int candidates[] = {1, 2, 4, 8};

Splitting split_by(const Gemm &g, int candidate, int64_t items) {
    const int64_t count = tiles_of(g) * items, length = tiles(g.k, dmma_depth);
    const int splits = candidates[candidate];
    const int64_t at_a_time = cost::dmma_at_a_time[candidate];
    const int64_t rounds = (count * splits + at_a_time - 1) / at_a_time;
    return {splits, rounds * ((length + splits - 1) / splits + cost::dmma_block +
                              (splits > 1 ? cost::dmma_sharing : 0))};
}

// The best for one item, which is the best for each of a batch, because of the bits.
int best_candidate(const Gemm &g) {
    int best = 0;
    for (int i = 1; i < 4 && tiles(g.k, dmma_depth) >= 4 * candidates[i]; i++)
        if (split_by(g, i, 1).cost < split_by(g, best, 1).cost) best = i;
    return best;
}

int shared_bytes(int stage_bytes, int64_t element) {
    const int stages = warp_stages * stage_bytes;
    const int sums = warp_side * warp_sums_pitch * static_cast<int>(element);
    return stages > sums ? stages : sums;
}

void plan_grid(const Gemm &g, const Card &card, Plan *plan) {
    plan->rows = plan->columns = warp_side;
    plan->part_rows = g.m;
    plan->tiles = tiles_of(g);
    const int64_t most = INT_MAX / (plan->tiles * plan->splits); // items a grid
    plan->items = static_cast<int>(g.items < most ? g.items : most);
    plan->blocks = plan->tiles * plan->splits * plan->items;
    plan->threads = warp_threads;
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
           shared_bytes(2 * dmma_stage_bytes(true), 8) <= card.shared_of_block &&
           tiles_of(g) <= INT_MAX / candidates[best_candidate(g)];
}

void plan_dmma(const Gemm &g, const Card &card, Plan *plan) {
    const Stored a = stored_a(g), b = stored_b(g);
    const Splitting split = split_by(g, card.overlaps() ? best_candidate(g) : 0, g.items);
    plan->splits = plan->cluster = split.splits;
    plan->reckoned = static_cast<double>(split.cost);
    plan->depth = dmma_depth;
    plan_grid(g, card, plan);
    plan->a = in_place(a), plan->b = in_place(b);
    const bool pairs = allows_16_bytes(a.data, a.stride, a.item, 8) &&
                       allows_16_bytes(b.data, b.stride, b.item, 8);
    plan->a.alignment = plan->b.alignment = pairs ? 2 : 1;
    plan->shared_bytes =
        shared_bytes(dmma_stage_bytes(g.a_along_k) + dmma_stage_bytes(g.b_along_k), 8);
}

bool can_tensor_sm80(const Gemm &g, const Card &card) {
    const bool fits = g.dtype == PVG_FLOAT16 || g.dtype == PVG_BFLOAT16 ||
                      (g.dtype == PVG_FLOAT32 && is_rounded(g));
    return fits && card.architecture >= 80 && card.tensor_cores &&
           shared_bytes(2 * warp_stage_bytes(2, true), 4) <= card.shared_of_block &&
           tiles_of(g) <= INT_MAX;
}

void plan_tensor_sm80(const Gemm &g, const Card &card, Plan *plan) {
    const int type = multiplied_type(g), element = type == PVG_FLOAT32 ? 4 : 2;
    plan_grid(g, card, plan);
    if (type == PVG_FLOAT32) { // TF32 wants both operands along k
        plan->a = arrange(stored_a(g), {true, 4});
        plan->b = arrange(stored_b(g), {true, 4});
    } else {
        plan->a = plan_halves(stored_a(g), g.dtype != type);
        plan->b = plan_halves(stored_b(g), g.dtype != type);
    }
    plan->shared_bytes = shared_bytes(
        warp_stage_bytes(element, plan->a.along_k) + warp_stage_bytes(element, plan->b.along_k), 4);
}

} // namespace pvg::matmul
