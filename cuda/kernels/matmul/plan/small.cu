// Plans of products with a vector (simt/gemv.cu), of tiny and thin ones and of few terms
// (simt/tiny.cu, thin.cu, outer.cu) and of what the portable kernel takes (simt/tiled.cu).
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

// ---- Vectors ------------------------------------------------------------------------------------

// The matrix of a product with a vector: y is c's only column for n = 1, else its only row.
struct VectorShape {
    int64_t length, k; // of y; terms
    bool along_k;      // the matrix
    int element;       // bytes
};
VectorShape describe(const Gemm &g) {
    const bool column = g.n == 1;
    return {column ? g.m : g.n, g.k, column ? g.a_along_k : g.b_along_k,
            static_cast<int>(dtype_size(g.dtype))};
}

// Cuts k into splits of whole chunks: as many as bring about as many blocks as are wanted. A power
// of two of them, the last ones perhaps empty.
void split_terms(int64_t k, int64_t chunk, int64_t wanted, Plan *plan) {
    int64_t most = wanted / plan->tiles, splits = 1;
    if (k / chunk < most) most = k / chunk;
    while (splits * 2 <= most) splits *= 2;
    const int64_t chunks = tiles(k, static_cast<int>(chunk));
    plan->terms = (chunks + splits - 1) / splits * chunk;
    plan->splits = static_cast<int>(splits);
}

// Both return how many of y a block computes.
int partition_rows(const VectorShape &x, Plan *plan) {
    const int chunk = gemv_chunk(x.element);
    plan->slices = 1;
    while (plan->slices < gemv_warps && x.length * plan->slices <= cost::rows_for_a_warp &&
           plan->slices * 2 <= x.k / chunk)
        plan->slices *= 2;
    const int rows = gemv_warps / plan->slices * (32 / gemv_lanes(x.k, x.element));
    plan->tiles = tiles(x.length, rows);
    int64_t wanted = (x.length * x.k >> cost::row_block_shift) * x.element;
    if (wanted < cost::row_blocks) wanted = cost::row_blocks;
    if (wanted > cost::most_row_blocks) wanted = cost::most_row_blocks;
    split_terms(x.k, plan->slices * chunk, wanted, plan);
    return rows;
}

int partition_columns(const VectorShape &x, Plan *plan) {
    const int64_t pieces = (x.length * x.k >> cost::column_block_shift) * x.element;
    plan->slices = gemv_warps;
    const int columns = gemv_width(x.element);
    plan->tiles = tiles(x.length, columns);
    split_terms(x.k, gemv_warps * 4, pieces > cost::column_blocks ? pieces : cost::column_blocks,
                plan);
    return columns;
}

} // namespace

bool can_gemv(const Gemm &g, const Card &) {
    return (g.m == 1 || g.n == 1) && dtype_kind(g.dtype) == Kind::floating;
}

// Who adds what, and in which order, depends on the lengths and the dtype alone. Numbers suit a
// card of 132 multiprocessors, and about 32 warps on each.
void plan_gemv(const Gemm &g, const Card &card, Plan *plan) {
    const VectorShape x = describe(g);
    const int of_y = x.along_k ? partition_rows(x, plan) : partition_columns(x, plan);
    plan->rows = g.n == 1 ? of_y : 1, plan->columns = g.n == 1 ? 1 : of_y;
    int64_t most = INT32_MAX / (plan->tiles * plan->splits); // items a grid
    if (most > g.items) most = g.items;
    if (plan->splits > 1) {
        const int64_t sums = plan->splits * x.length;
        const int64_t limit = (int64_t(1) << 26) / sums + 1; // some 512 MiB
        if (most > limit) most = limit;
        plan->workspace = most * sums * (x.element == 8 ? 8 : 4);
    }
    plan->items = static_cast<int>(most);
    plan->part_rows = g.m;
    plan->blocks = plan->tiles * plan->splits * plan->items;
    plan->threads = 32 * gemv_warps;
    plan->overlap = card.overlaps();
}

// ---- Tiny products ------------------------------------------------------------------------------

bool can_tiny(const Gemm &g, const Card &) {
    return dtype_kind(g.dtype) == Kind::floating && g.m <= tiny_side && g.n <= tiny_side &&
           g.k <= tiny_side;
}

bool is_folded(const Gemm &g) {
    return g.items > 1 && g.m < tiny_side && g.b_item == 0 && g.a_along_k &&
           g.a_item == g.m * g.lda && g.c_item == g.m * g.ldc;
}

void plan_tiny(const Gemm &g, const Card &, Plan *plan) {
    const bool fits = g.m <= mini_side && g.n <= mini_side && g.k <= mini_side;
    const int side = fits ? mini_side : tiny_side;
    const bool is_mini = fits || g.dtype == PVG_FLOAT64;
    plan->tile = is_mini;
    plan->rows = plan->columns = side;
    plan->tiles = 1, plan->items = g.items, plan->part_rows = g.m;
    if (is_folded(g)) plan->items = static_cast<int>(tiles(int64_t(g.items) * g.m, side));
    const int warps = is_mini ? mini_warps(g.dtype == PVG_FLOAT64 ? 8 : 4) : tiny_warps;
    const int of_warp = fits ? tiny_side * tiny_side / (mini_side * mini_side) : 1; // items
    plan->blocks = tiles(plan->items, warps * of_warp);
    plan->threads = 32 * warps;
}

// ---- Thin products ------------------------------------------------------------------------------

bool can_thin(const Gemm &g, const Card &) {
    const bool has = g.dtype == PVG_FLOAT32 || g.dtype == PVG_FLOAT64;
    return has && (g.m <= thin_side || g.n <= thin_side) && g.k < INT_MAX;
}

// Splits of k, a multiple of eight terms each: as many as make the product fastest, by the bytes of
// the long operand that a multiprocessor's blocks read one after another.
void plan_thin(const Gemm &g, const Card &card, Plan *plan) {
    const bool rows = thin_side_is_m(g), along_k = rows ? g.b_along_k : g.a_along_k;
    const int side = rows ? g.m : g.n, element = static_cast<int>(dtype_size(g.dtype));
    const int64_t length = rows ? g.n : g.m;
    const int width = along_k ? thin_rows(side <= 8 ? 8 : 16, element) : thin_columns(element);
    plan->tiles = tiles(length, width);
    const int at_a_time =
        thin_rows_alone(along_k, side, element) ? cost::thin_blocks / 2 : cost::thin_blocks;
    double least = 0;
    for (int round = 0; round <= cost::most_rounds_of_thin; round++) { // 0: half of one; and none
        int64_t splits = (round ? round * at_a_time : cost::thin_blocks / 2) / plan->tiles;
        if (splits > g.k / cost::least_split_of_thin) splits = g.k / cost::least_split_of_thin;
        if (splits < 1) splits = 1;
        const int64_t terms = round_up((g.k + splits - 1) / splits, 8);
        const int64_t blocks = plan->tiles * splits;
        const double rounds = blocks <= cost::thin_blocks / 2
                                  ? cost::thin_alone
                                  : static_cast<double>(tiles(blocks, at_a_time));
        double cost =
            rounds * (static_cast<double>(terms) * width * element + cost::thin_block_bytes);
        if (splits > 1)
            cost += cost::thin_adding_bytes +
                    static_cast<double>(length * splits * side) * 2 * element / cost::thin_blocks;
        if (least != 0 && cost >= least) continue;
        least = cost, plan->terms = terms;
        plan->splits = static_cast<int>((g.k + terms - 1) / terms);
    }
    plan->reckoned = least;
    plan->rows = rows ? side : width, plan->columns = rows ? width : side;
    const int64_t bytes = plan->splits > 1 ? plan->splits * length * side * element : 0;
    int64_t most = INT_MAX / (plan->tiles * plan->splits); // items a grid
    if (bytes > 0 && most > most_waiting / bytes) most = most_waiting / bytes;
    if (most < 1) most = 1;
    plan->items = static_cast<int>(most < g.items ? most : g.items);
    plan->workspace = plan->items * bytes;
    plan->part_rows = g.m;
    plan->blocks = plan->tiles * plan->splits * plan->items;
    plan->threads = 32 * thin_warps;
    plan->overlap = card.overlaps();
}

// ---- Few terms ----------------------------------------------------------------------------------

bool can_outer(const Gemm &g, const Card &) {
    const bool has = g.dtype == PVG_FLOAT32 || g.dtype == PVG_FLOAT64 || is_of_halves(g);
    const int element = static_cast<int>(dtype_size(g.dtype));
    return has && g.k <= (g.dtype == PVG_FLOAT32 ? outer_terms_of_float32 : outer_terms) &&
           g.c_dtype == g.dtype &&
           tiles(g.n, outer_columns(element, g.k)) *
                   tiles(g.m, outer_rows * cost::most_outer_turns) <=
               INT_MAX;
}

// A block keeps the terms of its columns for as many rows as leave the card some blocks for each of
// its multiprocessors.
void plan_outer(const Gemm &g, const Card &card, Plan *plan) {
    plan->columns = outer_columns(static_cast<int>(dtype_size(g.dtype)), g.k);
    const int64_t across = tiles(g.n, plan->columns);
    const int64_t parts = across * tiles(g.m, outer_rows) * g.items / cost::outer_blocks;
    const int64_t turns = parts < 1                        ? 1
                          : parts < cost::most_outer_turns ? parts
                                                           : cost::most_outer_turns;
    plan->rows = static_cast<int>(turns) * outer_rows;
    plan->tiles = across * tiles(g.m, plan->rows);
    const int64_t most = INT_MAX / plan->tiles; // items a grid
    plan->items = static_cast<int>(most < g.items ? most : g.items);
    plan->part_rows = g.m;
    plan->blocks = plan->tiles * plan->items;
    plan->threads = 32 * outer_warps;
    plan->overlap = card.overlaps();
}

// ---- The portable kernel ------------------------------------------------------------------------

// Rows of c that lie evenly in a batch over one b are the rows of a single, taller product. That
// changes no bit, as every element is the same chain of multiply-adds in any tile.
void fold_batch(Product *p, int64_t *items) {
    if (p->batch.ndim != 1 || p->batch.strides[2][0] != 0 || !p->a.along_k) return;
    const int64_t c_step = p->batch.strides[0][0], a_step = p->batch.strides[1][0];
    if (p->m == 1)
        p->c_row = c_step, p->a.stride = a_step;
    else if (c_step != p->m * p->c_row || a_step != p->m * p->a.stride)
        return;
    p->m *= *items;
    p->batch.ndim = 0;
    *items = 1;
}

// The largest tile that leaves a large card busy and wastes at most half of itself.
Plan plan_tiled(const Problem &problem) {
    Product p = problem.product;
    int64_t items = problem.items;
    fold_batch(&p, &items);
    Plan plan;
    const bool is_float = problem.dtype == PVG_FLOAT32;
    for (plan.tile = is_float ? tiled_large : tiled_medium;; plan.tile++) {
        const int side = tiled_sizes[plan.tile].side;
        plan.tiles = tiles(p.m, side) * tiles(p.n, side);
        plan.rows = plan.columns = side;
        if (plan.tile == tiled_small) break;
        if (p.m > side / 2 && p.n > side / 2 && plan.tiles * items >= cost::tiled_blocks) break;
    }
    const int64_t most = INT32_MAX / plan.tiles; // items a grid
    plan.items = static_cast<int>(items < most ? items : most);
    plan.part_rows = static_cast<int>(p.m < INT_MAX ? p.m : INT_MAX);
    plan.blocks = plan.tiles * plan.items;
    const TiledSize &size = tiled_sizes[plan.tile];
    plan.threads = is_float ? size.float_threads : size.threads;
    return plan;
}

} // namespace pvg::matmul
