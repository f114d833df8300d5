// Plans of float16 and bfloat16 products in small tiles, sm80/small.cu: of small and thin matrices.
// How k is split by the blocks of a cluster depends on m, n and k alone; tiles change no bit.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

constexpr int width = cost::tuned_multiprocessors;

int shorter_side(const Gemm &g) { return g.m < g.n ? g.m : g.n; }

// The tile with the fewest rows that hold the shorter side of c.
int number_of(const Gemm &g) {
    int number = 0;
    while (number < 2 && small_rows[number] < shorter_side(g)) number++;
    return number;
}
bool is_transposed(const Gemm &g) { return g.n < g.m && g.n <= small_rows[1]; }

int64_t tiles_of(const Gemm &g) {
    const bool transposed = is_transposed(g);
    return tiles(transposed ? g.n : g.m, small_rows[number_of(g)]) *
           tiles(transposed ? g.m : g.n, small_side);
}

int splits_of(const Gemm &g) {
    const int64_t count = tiles_of(g);
    if (g.last_k || g.k < cost::least_k_to_split_small) return 1; // a stretch, or a short sum
    int splits = 1;
    for (int more = 2; more <= 8 && g.k / more >= cost::small_split_terms; more++)
        if (count * more <= cost::at_a_time[more - 1] * cost::small_blocks[number_of(g)])
            splits = more;
    return splits;
}

// In place, by as many elements at a time as 16 bytes, 8, 4 or 2 hold.
OperandPlan read_in_place(const Stored &x, int64_t outer) {
    OperandPlan plan;
    plan.along_k = x.along_k, plan.stride = x.stride, plan.item = x.item;
    const int64_t stride = x.rows > 1 ? x.stride : 0, item = x.items > 1 ? x.item : 0;
    const int64_t begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(x.data)) | 2 * stride |
                          2 * item | 2 * outer;
    plan.alignment = begin % 16 == 0 ? 8 : begin % 8 == 0 ? 4 : begin % 4 == 0 ? 2 : 1;
    return plan;
}

// What a block computes at a time: two sides of a tile at most.
bool fits_a_block(const Gemm &g) { return number_of(g) == 2 && g.m <= 128 && g.n <= 128; }
// Of which four tiles, or two, would read each operand twice.
bool is_of_tiles(const Gemm &g) {
    return fits_a_block(g) && (g.m > small_side || g.n > small_side);
}
// Whether both operands are of nothing but whole packs of 16 bytes.
bool is_of_packs(const Gemm &g) {
    const int64_t lengths = (g.a_along_k ? g.k : g.m) | (g.b_along_k ? g.k : g.n);
    return lengths % 8 == 0 && read_in_place(stored_a(g), g.a_outer).alignment == 8 &&
           read_in_place(stored_b(g), g.b_outer).alignment == 8;
}
// Whole items, of which a block has many one after another: where tiles would read them twice, if
// they are many, and else where they come by packs. And long stretches of what tiles would read
// twice. The bits are those of tiles.
bool has_whole_items(const Gemm &g) {
    if (!fits_a_block(g) || !g.epilogue.is_plain()) return false;
    if (g.last_k)
        return is_of_tiles(g) && g.k >= cost::least_stretch_of_blocks && g.c_dtype == PVG_FLOAT32;
    if (g.items == 1 || splits_of(g) > 1 || g.c_dtype != g.dtype) return false;
    return is_of_tiles(g) ? g.items >= cost::least_whole_items : is_of_packs(g);
}
void plan_whole_items(const Gemm &g, const Card &card, Plan *plan) {
    plan->a = read_in_place(stored_a(g), g.a_outer);
    plan->b = read_in_place(stored_b(g), g.b_outer);
    plan->tile = is_of_tiles(g) ? small_items_128 : small_items_packs;
    const int side = small_items_side(plan->tile), k = static_cast<int>(g.k);
    plan->rows = plan->columns = side;
    plan->depth = small_depth;
    plan->part_rows = g.m, plan->tiles = 1, plan->items = g.items;
    plan->threads = small_items_threads(plan->tile);
    plan->overlap = card.overlaps();
    plan->direct = true;
    int stage = small_items_part_bytes(g.m, side, k, g.a_along_k) +
                small_items_part_bytes(g.n, side, k, g.b_along_k);
    const int of_c = (g.m + 15) / 16 * 16 * (side + 8) * 2; // whole instructions
    if (!stores_pairs(g) && stage < of_c) stage = of_c;
    plan->shared_bytes = small_items_stages * stage;
    const int64_t fit = card.shared_of_multiprocessor / (plan->shared_bytes + block_overhead);
    const int64_t most = small_items_blocks(plan->tile);
    const int64_t blocks = card.multiprocessors * (fit < 1 ? 1 : fit < most ? fit : most);
    plan->blocks = g.items < blocks ? g.items : blocks;
    if (g.last_k) spread_blocks(static_cast<int>(most), card, plan);
}

} // namespace

bool is_long_block(const Gemm &g) {
    return is_of_tiles(g) && (double(g.m) + g.n) * double(g.k) >= cost::least_read_of_blocks;
}

bool stores_pairs(const Gemm &g) {
    return reinterpret_cast<uintptr_t>(g.c) % 4 == 0 && (g.ldc | g.c_item | g.c_outer) % 2 == 0;
}

bool can_tensor_small(const Gemm &g, const Card &card) {
    return is_of_halves(g) && card.architecture >= 80 && tiles_of(g) <= INT_MAX / 8;
}

void plan_tensor_small(const Gemm &g, const Card &card, Plan *plan) {
    if (has_whole_items(g)) {
        Plan whole = *plan;
        plan_whole_items(g, card, &whole);
        if (whole.shared_bytes <= card.shared_of_block) {
            *plan = whole;
            return;
        }
    }
    plan->tile = number_of(g), plan->transposed = is_transposed(g);
    const int rows = small_rows[plan->tile];
    plan->rows = plan->transposed ? small_side : rows;
    plan->columns = plan->transposed ? rows : small_side;
    plan->splits = plan->cluster = card.overlaps() ? splits_of(g) : 1;
    plan->depth = small_depth;
    plan->part_rows = g.m;
    plan->tiles = tiles_of(g);
    const int64_t most = INT_MAX / (plan->tiles * plan->splits); // items a grid
    plan->items = static_cast<int>(g.items < most ? g.items : most);
    plan->blocks = plan->tiles * plan->splits * plan->items;
    plan->threads = small_threads;
    plan->overlap = card.overlaps();
    plan->a = read_in_place(stored_a(g), g.a_outer);
    plan->b = read_in_place(stored_b(g), g.b_outer);
    plan->direct =
        g.epilogue.is_plain() && g.c_dtype == g.dtype && plan->splits == 1 && !plan->transposed;
    const int64_t stages = tiles(g.k, small_depth);
    plan->shared_bytes =
        small_shared_bytes(rows, static_cast<int>(stages < small_stages ? stages : small_stages));
    spread_blocks(4, card, plan);
}

// As many as bring the card the blocks that it takes at a time, if a block's terms are then so many
// less than by splits alone that adding the stretches' sums is worth it. Of a very long k what
// tiles would read twice is computed as a whole, by two blocks a multiprocessor.
int64_t stretches_tensor_small(const Gemm &g) {
    if (is_long_block(g)) {
        const int64_t most = g.k / cost::least_stretch_of_blocks, wanted = 2 * width;
        return most < wanted ? most : wanted;
    }
    const int splits = splits_of(g);
    const int64_t fit = width * cost::small_blocks[number_of(g)] / tiles_of(g);
    const int64_t most = g.k / cost::least_stretch_small, count = fit < most ? fit : most;
    if (count <= splits || g.k / splits < cost::least_share_small) return 1;
    return g.k / splits - g.k / count < cost::small_adding_terms ? 1 : count;
}

} // namespace pvg::matmul
