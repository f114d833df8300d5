// Plans of float32 products on the CUDA cores: simt/ffma.cu and sm90/ffma_tma.cu.
//
// FFMA_128X128 and FFMA_TMA give the same bits as each other, and as the tiled kernel: one chain of
// multiply-adds an element in increasing k, and from k = 256 on two, one for each half of k (but
// for the sign of a zero that is left where everything underflows). FFMA_64X128 and FFMA_64X64 give
// the same bits as each other: the same four slices and the same splits. FFMA_64X32 has eight
// slices. Where bits are the same, speed alone may choose, and so the number of items too: smaller
// tiles for what would leave large ones idle, larger ones for batches. Batches of FFMA_64X32 and
// FFMA_64X64 go to tiles that compute their slices in sequence.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

constexpr int width = cost::tuned_multiprocessors;

// Blocks that share a tile of c: two where tiles fill half of the card at most and sums are long,
// more where there are few tiles. Tiles of four slices are counted as if they were 64 x 128, so
// that all of them split alike; those of eight are 64 x 32.
int splits_of(const Gemm &g, int slices) {
    if (slices == 1 || g.last_k) return 1;
    const int64_t count = tiles(g.m, 64) * tiles(g.n, slices == 4 ? 128 : 32);
    const int least =
        slices == 4 && count > cost::few_tiles ? cost::split_terms : cost::split_terms_of_few;
    int splits = count <= width / 2 && g.k >= 2 * least ? 2 : 1;
    while (splits > 1 && splits < 8 && count * splits <= cost::split_blocks &&
           g.k / (2 * splits) >= least)
        splits *= 2;
    return splits;
}

// Of c, or of c transposed.
struct Sides { int m, n; };
Sides sides_of(const Gemm &g, bool turned) { return turned ? Sides{g.n, g.m} : Sides{g.m, g.n}; }
int64_t tiles_of(const Sides &c, const FfmaSize &size) {
    return tiles(c.m, size.rows) * tiles(c.n, size.columns);
}
int64_t tiles_of(const Gemm &g, const FfmaSize &size) { return tiles_of(Sides{g.m, g.n}, size); }
int64_t blocks_of(const Gemm &g, const FfmaSize &size) {
    return tiles_of(g, size) * splits_of(g, size.slices);
}

// The stages, and in the end the sums where they go through shared memory.
int shared_bytes(const FfmaSize &size, bool a_along_k, bool b_along_k, bool sums) {
    const int stages = size.stages_bytes(a_along_k, b_along_k);
    return sums && size.sum_bytes() > stages ? size.sum_bytes() : stages;
}

bool can(int number, const Gemm &g, const Card &card) {
    const FfmaSize &size = ffma_sizes[number];
    const int least_architecture = splits_of(g, size.slices) > 1 ? 90 : 80; // clusters
    return g.dtype == PVG_FLOAT32 && card.architecture >= least_architecture &&
           shared_bytes(size, true, true, true) <= card.shared_of_block &&
           blocks_of(g, size) <= INT_MAX / 4; // of smaller tiles too
}

bool is_small_64x64(const FfmaSize &size) { return &size == &ffma_sizes[ffma_small_64x64]; }

// With so many blocks at least one after another on a multiprocessor.
int64_t time_of(const Gemm &g, const FfmaSize &size, int64_t least) {
    const int64_t waves = tiles(blocks_of(g, size) * g.items, width);
    int64_t of_block = size.rows * size.columns * size.percent;
    if (is_small_64x64(size) && waves > size.blocks) { // half of a block, outside of c, has nothing
        const int64_t across = tiles(g.n, size.columns);
        of_block = of_block * tiles(g.n, size.columns / 2) / (2 * across);
    }
    return (waves < least ? least : waves) * of_block;
}

// Whether tiles of another size, which give the same bits, are faster. Of larger ones a block alone
// leaves much of a multiprocessor idle: reckoned as the time of two.
bool is_better(int other, int number, const Gemm &g, const Card &card) {
    const FfmaSize &size = ffma_sizes[number], &there = ffma_sizes[other];
    const bool is_larger = there.rows * there.columns > size.rows * size.columns;
    return time_of(g, there, is_larger ? 2 : 1) < time_of(g, size, 1) && can(other, g, card);
}

// Which layouts a kernel is made for: a along k and b along n; both along k; a along m and b along
// n. Operands along m or n are aligned, but for tiles with slices, which take any b beside an a
// along k. What else is asked is copied: of an a along m and a b along k the smaller one.
struct Layouts { OperandLayout a, b; };
Layouts layouts_of(const Gemm &g) {
    const bool a_along_k = g.a_along_k || (g.b_along_k && g.m < g.n);
    const bool b_along_k = g.b_along_k && a_along_k;
    return {{a_along_k, a_along_k ? 1 : 4}, {b_along_k, b_along_k ? 1 : 4}};
}

void plan_operands(const Gemm &g, int number, Plan *plan) {
    auto [a, b] = layouts_of(g);
    if (plan->transposed) a = {false, 4}, b = {true, 1};
    const bool copies = !has_layout(stored_a(g), a) || !has_layout(stored_b(g), b);
    if (reads_singles_only(number) || (reads_singles(number) && copies))
        a.alignment = b.alignment = 1;
    if (ffma_sizes[number].slices > 1) { // beside an a along k they read any b
        if (plan->transposed && !has_layout(stored_a(g), a)) a.alignment = 1;
        if (g.a_along_k && !g.b_along_k && !has_layout(stored_b(g), b)) b.alignment = 1;
    }
    plan->a = arrange(stored_a(g), a);
    plan->b = arrange(stored_b(g), b);
}

// So many items, or rows of one, at a time as a grid and a workspace for parked sums allow. What
// would park more is computed in parts that use it in turn. A part is a row of tiles at least.
void plan_parts(const Gemm &g, const FfmaSize &size, Plan *plan) {
    const int64_t most = INT_MAX / 8 / tiles_of(g, size);
    int64_t items = most < 1 ? 1 : most < g.items ? most : g.items, rows = g.m;
    const bool aligned =
        !plan->transposed && is_aligned(g.c, g.m, g.n, g.ldc, g.items, g.c_item, 4);
    plan->direct = g.epilogue.is_plain() && aligned;
    if (size.halves() && first_half(g.k) && !aligned) {
        const int64_t row_bytes = parked_stride(g.n) * 4, fit = most_waiting / row_bytes; // rows
        if (rows > fit) rows = fit < size.rows ? size.rows : fit / size.rows * size.rows;
        if (rows >= g.m) rows = g.m;
        if (items * rows > fit) items = rows < fit ? fit / rows : 1;
        if (rows < g.m) items = 1;
        plan->workspace = items * rows * row_bytes;
    }
    plan->items = static_cast<int>(items), plan->part_rows = static_cast<int>(rows);
}

void describe_tile(const Gemm &given, const Card &card, int number, Plan *plan) {
    const FfmaSize &size = ffma_sizes[number];
    const Gemm g = plan->transposed ? turned(given) : given;
    plan->tile = number;
    plan->rows = size.rows, plan->columns = size.columns;
    plan->slices = size.slices * size.sequence;
    plan->splits = plan->cluster = splits_of(given, size.slices);
    plan->splits_in_sequence = splits_of(given, size.sequence);
    plan->threads = size.threads;
    plan->overlap = card.overlaps();
    plan_parts(g, size, plan);
    plan->tiles = tiles(plan->part_rows, size.rows) * tiles(g.n, size.columns);
    plan->blocks = plan->tiles * plan->splits * plan->items;
    plan->depth = size.sequence > 1 ? 8 * size.sequence : size.depth;
    const bool is_large = number == ffma_by_tma;     // a tile at a time; of others two
    const Gemm &split = size.slices > 1 ? given : g; // as these tiles are of both
    plan->reckoned =
        static_cast<double>(time_of(split, size, is_large ? 1 : 2)) * static_cast<double>(g.k);
}

// Of tiles with four slices one of 32 rows, where 64 would leave a half of the last one empty.
bool wants_32_rows(int number, const Gemm &g, const Card &card) {
    return ffma_sizes[number].slices == 4 && tiles(g.m, 32) % 2 == 1 &&
           is_better(ffma_small_32x64, number, g, card);
}

// Whether tiles of c transposed take no longer than those of c and a copy of the smaller operand.
bool saves_a_copy(const Gemm &g, const FfmaSize &size) {
    const int64_t blocks = splits_of(g, size.slices) * g.items;
    int64_t rounds[2];
    for (const bool turned : {false, true})
        rounds[turned] = tiles(tiles_of(sides_of(g, turned), size) * blocks, width);
    const double k = static_cast<double>(g.k);
    const double of_round = size.rows * size.columns * size.percent * k;
    const double bytes = 4.0 * g.items * k * (g.m < g.n ? g.m : g.n);
    const double copy = cost::batch_copy + bytes * cost::batch_copied;
    return static_cast<double>(rounds[true] - rounds[false]) * of_round <=
           copy * cost::reckoned_of_us;
}

// An a along m beside a b along k: the product of the transposed matrices has the layouts that the
// kernel is made for. Sums go to c by shared memory then: of a tile without slices if there is room
// for those that wait, of one with slices if it does not take longer, as it need not be a square.
//
// Of a short k the operands are little beside c. Tiles of 128 x 128 then take a copy that reads as
// it wants to be, rather than turn sums whose rows, or an a whose rows, begin anywhere.
bool is_turned(const Gemm &g, const FfmaSize &size) {
    if (g.a_along_k || !g.b_along_k) return false;
    if (size.slices > 1) return saves_a_copy(g, size);
    const bool begins_anywhere = !has_layout(stored_a(g), {false, 4}) ||
                                 !is_aligned(g.c, g.m, g.n, g.ldc, g.items, g.c_item, 4);
    if (&size == &ffma_sizes[ffma_128x128] && g.k <= cost::short_k && begins_anywhere) return false;
    const int64_t waiting = first_half(g.k) ? g.n * parked_stride(g.m) * 4 : 0;
    return waiting <= most_waiting;
}

// The tile that has of c transposed what this one has of c, if there is one.
int lying(int number) {
    return number == ffma_small_64x32   ? ffma_small_32x64
           : number == ffma_small_32x64 ? ffma_small_64x32
                                        : number;
}

// Whether copying what begins anywhere would take longer than what a smaller tile, which reads it
// as it is, is slower.
bool is_copied_for_more(const Gemm &g) {
    const bool is_turned = !g.a_along_k && g.b_along_k;
    return (is_turned ? !has_layout(stored_a(g), {false, 4}) : wants_copies(g)) &&
           cost::copying_rows / g.m + cost::copying_rows / g.n > cost::small_64x64 - 100;
}

void plan_tile(int number, const Gemm &g, const Card &card, Plan *plan) {
    const FfmaSize &size = ffma_sizes[number];
    plan->transposed = is_turned(g, size);
    describe_tile(g, card, number, plan);
    plan_operands(g, number, plan);
    plan->shared_bytes =
        shared_bytes(size, plan->transposed || plan->a.along_k,
                     !plan->transposed && plan->b.along_k, size.slices > 1 || !plan->direct);
    if (plan->transposed) {
        plan->part_rows = g.m;
        plan->rows = size.columns, plan->columns = size.rows;
    }
    spread_blocks(size.blocks, card, plan);
}

// The tile, or the first of the others that is better.
template <int N>
void plan_best(int first, const int (&others)[N], const Gemm &g, const Card &card, Plan *plan) {
    int number = first;
    for (int other : others)
        if (number == first && is_better(other, number, g, card)) number = other;
    if (wants_32_rows(number, g, card)) number = ffma_small_32x64;
    if (is_turned(g, ffma_sizes[lying(number)])) number = lying(number);
    plan_tile(number, g, card, plan);
}

// ---- Batches ------------------------------------------------------------------------------------

// Items, or one, of at most 128 x 128 with one chain of k, and not stretches of a product.
bool is_small(const Gemm &g) {
    return !g.last_k && g.m <= items_side && g.n <= items_side && g.k < least_halved;
}

const cost::BatchTime &batch_time(int number) {
    switch (number) {
    case ffma_128x128: return cost::batch_128x128;
    case ffma_64x64: return cost::batch_64x64;
    case ffma_64x32: return cost::batch_64x32;
    case ffma_small_64x64: return cost::batch_small_64x64;
    case ffma_sequence_64x64: return cost::batch_sequence_64x64;
    case ffma_sequence4_64x64: return cost::batch_sequence4_64x64;
    case ffma_items: return cost::batch_items;
    default: return cost::batch_small_64x32;
    }
}
double reckon_rounds(const cost::BatchTime &x, int64_t most, int at_a_time, double k) {
    return x.start + static_cast<double>(tiles(most, at_a_time)) * (x.round + x.round_k * k);
}

// Of a tile as it is planned, in us.
double reckon_batch(const Gemm &g, int number, const Plan &plan) {
    const FfmaSize &size = ffma_sizes[number];
    const cost::BatchTime &x = batch_time(number);
    const Sides sides = sides_of(g, plan.transposed);
    const int splits = splits_of(g, size.slices), columns = sides.n;
    const int64_t most = tiles(tiles_of(sides, size) * splits * g.items, width); // multiprocessor's
    const double k = static_cast<double>(g.k) / splits;
    double products = x.block_k;
    if (is_small_64x64(size) && most > size.blocks) { // half of a block, outside of c, has nothing
        const int64_t halves = 2 * tiles(columns, 64);
        products *= static_cast<double>(tiles(columns, 32)) / static_cast<double>(halves);
    }
    double copies = 0;
    for (const OperandPlan *operand : {&plan.a, &plan.b}) {
        if (operand->along_k || operand->alignment == 1) products += x.single_k;
        if (operand->copying != Copying::none)
            copies += cost::batch_copy + static_cast<double>(operand->bytes) * cost::batch_copied;
    }
    return reckon_rounds(x, most, size.blocks, k) + copies +
           static_cast<double>(most) * (x.block + products * k + x.turned * plan.transposed);
}

// By the tile that takes a batch least.
template <int N>
void plan_batch(const int (&numbers)[N], const Gemm &g, const Card &card, Plan *plan) {
    double least = 0;
    const Plan before = *plan;
    for (int number : numbers) {
        if (!can(number, g, card)) continue;
        Plan found = before;
        plan_tile(number, g, card, &found);
        const double time = reckon_batch(g, number, found);
        if (least > 0 && time >= least) continue;
        least = time, *plan = found;
        plan->reckoned = time * cost::reckoned_of_us;
    }
}

// ---- Whole items --------------------------------------------------------------------------------

// From row to row.
bool is_near(int64_t stride) { return -items_stride <= stride && stride <= items_stride; }

// Small matrices, a block each, whose sums are stored as they are.
bool can_items(const Gemm &g, const Card &card) {
    return is_small(g) && g.epilogue.is_plain() && g.items <= INT_MAX / 4 && is_near(g.lda) &&
           is_near(g.ldb) && is_near(g.ldc) && card.shared_of_block >= items_stage_bytes;
}

OperandPlan read_items(const Stored &x, int64_t outer) {
    OperandPlan plan;
    plan.along_k = x.along_k, plan.stride = x.stride, plan.item = x.item;
    plan.alignment = items_width(x.data, x.columns, x.stride, x.items, x.item, outer);
    return plan;
}

// How many loads an operand takes.
double loads_of(const Stored &x, const OperandPlan &plan) {
    return static_cast<double>(x.rows * x.columns) / plan.alignment;
}

Plan plan_items(const Gemm &g, const Card &card) {
    const int micro = items_columns(g.m, g.n);
    const int down = static_cast<int>(tiles(g.m, items_micro));
    const int across = static_cast<int>(tiles(g.n, micro));
    Plan plan;
    plan.kernel = PVG_MATMUL_FFMA_128X128, plan.tile = ffma_items;
    plan.rows = items_micro * down, plan.columns = micro * across;
    plan.tiles = 1, plan.part_rows = g.m, plan.items = g.items, plan.blocks = g.items;
    plan.threads = 32 * items_warps(down, across, items_pair(down, across));
    plan.overlap = card.overlaps();
    plan.a = read_items(stored_a(g), g.a_outer), plan.b = read_items(stored_b(g), g.b_outer);
    const auto shared = [&](int depth, int stages) {
        return items_shared_bytes(down, across, micro, g.a_along_k, g.b_along_k, depth, stages);
    };
    const int whole = static_cast<int>(round_up(g.k, 4));
    const bool at_once = whole <= items_depth || shared(whole, 1) <= items_stage_bytes;
    plan.depth = at_once ? whole : items_depth;
    plan.shared_bytes = shared(plan.depth, at_once ? 1 : 2);
    const int by_threads = 2 * items_most_threads(micro) / plan.threads;
    const int by_bytes =
        static_cast<int>(card.shared_of_multiprocessor / (plan.shared_bytes + block_overhead));
    const int fit = by_bytes < 1 ? 1 : by_bytes < by_threads ? by_bytes : by_threads;
    const double k = static_cast<double>(g.k), most = static_cast<double>(tiles(g.items, width));
    const double product = cost::items_product + cost::items_along_k * g.a_along_k;
    const double loads = loads_of(stored_a(g), plan.a) + loads_of(stored_b(g), plan.b);
    const double time =
        reckon_rounds(cost::batch_items, tiles(g.items, width), fit, k) +
        most * (plan.threads * items_micro * micro * k * product + loads * cost::items_load);
    plan.reckoned = time * cost::reckoned_of_us;
    spread_blocks(by_threads, card, &plan);
    return plan;
}

// ---- Stretches ----------------------------------------------------------------------------------

// What a tile of 64 x 64 takes for a term of k is 1 here. Of so many blocks of some terms each.
double reckon(int64_t blocks, int number, double terms) {
    const FfmaSize &size = ffma_sizes[number];
    const int64_t rounds = tiles(blocks, width);
    double of_tile = size.rows * size.columns / 4096.0;
    if (size.threads == 128) of_tile *= rounds == 1 ? cost::small_alone : cost::small_beside;
    return static_cast<double>(rounds) * of_tile * (terms + cost::ffma_block_terms);
}

// The best tile of those with the same bits.
template <int N> double reckon_best(const Gemm &g, const int (&numbers)[N], double count) {
    double best = 0;
    for (int number : numbers) {
        const FfmaSize &size = ffma_sizes[number];
        const int splits = splits_of(g, size.slices);
        const double found = reckon(tiles_of(g, size) * splits * static_cast<int64_t>(count),
                                    number, static_cast<double>(g.k) / splits / count);
        if (best == 0 || found < best) best = found;
    }
    return best;
}

// As many as make the product fastest, by what its tiles take as a whole and as stretches, whose
// sums have to be added up. Asked are those that fill whole rounds.
template <int N> int64_t best_stretches(const Gemm &g, const int (&numbers)[N]) {
    double least = reckon_best(g, numbers, 1) * cost::worth_stretches;
    Gemm cut = g;
    cut.last_k = g.k;
    int64_t most = g.k / cost::least_stretch_ffma, best = 1;
    for (int number : {ffma_64x64, ffma_small_64x32})
        for (int round = 1; round <= cost::most_rounds_of_stretches; round++) {
            int64_t parts = int64_t(width) * round / tiles_of(g, ffma_sizes[number]);
            if (parts > most) parts = most;
            if (parts < 2) continue;
            const double sums = static_cast<double>(parts * g.m) * g.n;
            const double found = reckon_best(cut, {ffma_64x64, ffma_small_64x32, ffma_small_32x64},
                                             static_cast<double>(parts)) +
                                 cost::ffma_adding_terms + sums * cost::ffma_terms_of_sum;
            if (found < least) least = found, best = parts;
        }
    return best;
}

} // namespace

bool wants_copies(const Gemm &g) {
    const auto [a, b] = layouts_of(g);
    return !has_layout(stored_a(g), a) || !has_layout(stored_b(g), b);
}

bool can_ffma_128x128(const Gemm &g, const Card &card) { return can(ffma_128x128, g, card); }
bool can_ffma_64x128(const Gemm &g, const Card &card) { return can(ffma_64x128, g, card); }
bool can_ffma_64x64(const Gemm &g, const Card &card) { return can(ffma_64x64, g, card); }
bool can_ffma_64x32(const Gemm &g, const Card &card) { return can(ffma_64x32, g, card); }

void plan_ffma_128x128(const Gemm &g, const Card &card, Plan *plan) {
    if (is_small(g)) {
        plan_batch({ffma_128x128, ffma_small_64x64}, g, card, plan);
        if (!can_items(g, card)) return;
        const Plan whole = plan_items(g, card);
        if (whole.reckoned < plan->reckoned) *plan = whole;
    } else if (is_copied_for_more(g) && can(ffma_small_64x64, g, card)) {
        plan_best(ffma_small_64x64, {ffma_small_64x64}, g, card, plan);
    } else {
        plan_best(ffma_128x128, {ffma_small_64x64}, g, card, plan);
    }
}
void plan_ffma_64x128(const Gemm &g, const Card &card, Plan *plan) {
    plan_best(ffma_64x128, {ffma_64x64}, g, card, plan);
}
void plan_ffma_64x64(const Gemm &g, const Card &card, Plan *plan) {
    const bool few = tiles_of(g, ffma_sizes[ffma_64x64]) <= cost::few_squares;
    if (g.items > 1 && !g.last_k && few)
        plan_batch({ffma_64x64, ffma_small_64x32, ffma_small_32x64, ffma_sequence4_64x64}, g, card,
                   plan);
    else
        plan_best(ffma_64x64, {ffma_small_64x32, ffma_64x128}, g, card, plan);
}
void plan_ffma_64x32(const Gemm &g, const Card &card, Plan *plan) {
    const bool at_once = blocks_of(g, ffma_sizes[ffma_64x32]) * g.items <= width;
    if (at_once || g.last_k)
        plan_tile(ffma_64x32, g, card, plan);
    else
        plan_batch({ffma_64x32, ffma_sequence_64x64}, g, card, plan);
}

int64_t stretches_ffma_128x128(const Gemm &g) {
    return best_stretches(g, {ffma_128x128, ffma_small_64x64});
}
int64_t stretches_ffma_64x128(const Gemm &g) {
    return best_stretches(g, {ffma_64x128, ffma_64x64, ffma_small_32x64});
}
int64_t stretches_ffma_64x64(const Gemm &g) {
    return best_stretches(g, {ffma_64x64, ffma_small_64x32, ffma_64x128, ffma_small_32x64});
}
int64_t stretches_ffma_64x32(const Gemm &g) { return best_stretches(g, {ffma_64x32}); }

bool can_ffma_tma(const Gemm &g, const Card &card) {
    return g.dtype == PVG_FLOAT32 && card.architecture == 90 &&
           ffma_tma_shared_bytes <= card.shared_of_block &&
           tiles_of(g, ffma_sizes[ffma_by_tma]) <= INT_MAX;
}

// Operands that TMA cannot read as they are, or that lie otherwise, are copied: an a that lies
// along k may stay so.
void plan_ffma_tma(const Gemm &g, const Card &card, Plan *plan) {
    const OperandLayout along_k = {true, 4}, along_side = {false, 4};
    describe_tile(g, card, ffma_by_tma, plan);
    const Stored a = stored_a(g);
    plan->a = arrange(a, has_layout(a, along_k) ? along_k : along_side);
    plan->b = arrange(stored_b(g), along_side);
    plan->threads += ffma_tma_producers;
    plan->shared_bytes = ffma_tma_shared_bytes;
}

} // namespace pvg::matmul
