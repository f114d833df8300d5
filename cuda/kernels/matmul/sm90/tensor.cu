// tensor_kernel: float16, bfloat16 and TF32 products by warpgroups; the kernel is in tensor.cuh.
// Here it is decided which tile it takes, what it splits, whether blocks share loads and whether a
// product is made in parts, and the kernel of a type is called; tensor_float16.cu,
// tensor_bfloat16.cu and tensor_tf32.cu compile it.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/sm90/tensor_launch.cuh"
#include <math.h>

namespace pvg::matmul {

namespace {

// ---- What a plan costs --------------------------------------------------------------------------

// Of an item's operands, as the instruction has them. Clock cycles to bring 128 bytes of a row from
// the second-level cache to a multiprocessor: more where rows begin within half a line of memory of
// 128 bytes, or even within a sector of 32. The bytes that have to come from memory. And whether a
// comes as TF32 along m, for the consumers to read into registers.
struct Loads {
    double row_a, row_b, bytes;
    bool to_registers;
};
constexpr double line_cycles = 2.4, sector_cycles = 3.4;
constexpr double unaligned_cycles = 4.8; // in classes of rows, too
constexpr double memory_rate = 2200;     // bytes a cycle, for all multiprocessors

// To fill the ring and to store the tile, and what a pair of blocks, which wait for each other,
// begins and ends later; for each slice of a tile that is cut; for the launch that clears the
// tickets.
constexpr int tile_cycles = 2000, pair_cycles = 1500, slice_cycles = 2800, ticket_cycles = 4700;

// One block of K, 128 bytes deep, of a tile of m x n. Shared memory passes 128 bytes a cycle: a and
// b when they come, and when they are read, b by each warpgroup. With n = 256 the products take as
// long, else less.
int shared_memory_cycles(int m, int n) { return 2 * m + (1 + m / 64) * n; }

// The same if a comes as TF32 along m, by the rows of 128 bytes that a block asks TMA for: as
// measured, and the same whether they come from the cache or from memory. With n = 256 it is hidden
// by the products: as measured they take not 1,024 cycles but 1.3 times that, of all types.
double to_registers_cycles(int n, double rows) { return n < 256 ? 200 + 2.7 * rows : 0; }

double cycles(const TensorPlan &plan, const Loads &x, int64_t items) {
    const Schedule &s = plan.schedule;
    const int n = plan.columns, rows_a = plan.rows >> plan.pair;
    const int64_t rounds = tiles(s.units() * items, tuned_multiprocessors >> plan.pair);
    const double blocks = double(rounds) * s.k_blocks / s.slices; // of K, one after the other
    const double rows = rows_a * x.row_a + n * x.row_b;
    const double memory = x.bytes * items / (memory_rate * blocks);
    const double loads = sqrt(rows * rows + memory * memory); // both wait at times: as measured
    double block = fmax(loads, shared_memory_cycles(plan.rows, n));
    if (x.to_registers) block = fmax(block, to_registers_cycles(n, rows_a + n));
    return blocks * block + double(rounds) * (tile_cycles + plan.pair * pair_cycles) +
           (s.cut ? s.slices * slice_cycles + ticket_cycles : 0);
}

// ---- Which plan ---------------------------------------------------------------------------------

// Tiles, the first of those that cost the same.
struct {
    int rows, columns;
} constexpr sizes[] = {{128, 256}, {128, 128}, {128, 64}, {64, 64}, {64, 32}};

constexpr int long_k = 32; // blocks

// Tiles of 64 rows are for small products alone: more multiprocessors then have one, and each loads
// less. They are neither cut nor in pairs.
bool may_be_small(const TensorPlan &whole, int64_t items) {
    return items == 1 && whole.schedule.k_blocks < long_k &&
           whole.schedule.whole <= tuned_multiprocessors;
}

// What remains is cut only where K is long and few tiles would leave many multiprocessors idle. The
// large tile never is: the code for it would cost it registers.
bool may_be_cut(const TensorPlan &whole) {
    return whole.columns < 256 && whole.schedule.k_blocks >= long_k &&
           whole.schedule.whole << whole.pair <= tuned_multiprocessors * 3 / 4;
}

// An item that is cut when it is alone is cut in the same way in a batch, because the order of the
// sums is the result's business: so the plan depends on its shape alone, and is made for rows that
// begin at lines of memory. Else the tile is free, and the number of items counts.
TensorPlan choose_plan(int m, int n, int k_blocks, bool to_registers, int64_t all_items) {
    const double bytes = (double(m) + n) * k_blocks * 128;
    const Loads loads = {line_cycles, line_cycles, bytes, to_registers};
    TensorPlan best = {};
    for (int64_t items : {int64_t(1), all_items}) {
        double least = 0;
        const auto consider = [&](const TensorPlan &plan) {
            const double cost = cycles(plan, loads, items);
            if (least != 0 && cost >= least) return;
            least = cost;
            best = plan;
        };
        for (const auto [rows, columns] : sizes) {
            for (int pair = 0; pair < (rows == 128 && n > columns ? 2 : 1); pair++) {
                const int down = static_cast<int>(tiles(m, rows));
                const int across = static_cast<int>(tiles(n, columns << pair));
                TensorPlan plan = {rows, columns,
                                   make_schedule(down, across, 1 << pair, k_blocks, 1, 0, true),
                                   pair};
                if (rows == 64 && !may_be_small(plan, all_items)) continue;
                consider(plan);
                if (items > 1 || !may_be_cut(plan)) continue;
                const double of_tile = double(k_blocks) * shared_memory_cycles(rows, columns);
                plan.schedule =
                    make_schedule(down, across, 1 << pair, k_blocks, 1, slice_cycles / of_tile);
                consider(plan);
            }
        }
        if (best.schedule.cut || all_items == 1) break;
    }
    return best;
}

// Lets blocks share a also where that pays for these operands only. The slices of K stay what they
// are, and with them the bits: so here addresses and strides may count.
void pair_blocks(TensorPlan *plan, const TensorOperand &a, const TensorOperand &b, int element,
                 bool a_in_classes, bool to_registers, int64_t items) {
    TensorPlan paired = *plan;
    Schedule &s = paired.schedule;
    if (plan->pair || plan->rows == 64 || s.tiles_across < 2 || (s.cut && s.whole)) return;
    paired.pair = 1, s.tiles_across = (s.tiles_across + 1) / 2;
    (s.cut ? s.cut : s.whole) = s.tiles_down * s.tiles_across;
    const auto row_cycles = [element](const TensorOperand &x) {
        const uint64_t begin = reinterpret_cast<uintptr_t>(x.data) | uint64_t(x.stride) * element;
        return begin % 64 == 0 ? line_cycles : begin % 32 == 0 ? sector_cycles : unaligned_cycles;
    };
    const double bytes = (double(a.rows) * a.columns + double(b.rows) * b.columns) * element;
    const Loads loads = {a_in_classes ? unaligned_cycles : row_cycles(a), row_cycles(b), bytes,
                         to_registers};
    if (cycles(paired, loads, items) < cycles(*plan, loads, items)) *plan = paired;
}

// ---- Large copies, in parts ---------------------------------------------------------------------

// A copy of a that the second-level cache cannot hold goes to memory and comes back. So such a
// product is made in parts, rows after rows: the copy of a part stays in the cache, and the next
// one's takes its place there. The kernels of a part wait for those of the part before. Every
// element of c is the same sum as before.
constexpr int64_t large_copy = 40 << 20, part_of_copy = 36 << 20; // bytes

// The rows of a part, for a TF32 product of c transposed, whose tiles are `columns` of them: as
// many as may be, if all parts together take no more rounds of tiles than the whole; else all rows.
// An even number of tiles, so that blocks can be paired.
int64_t rows_of_part(const Gemm &g, const TensorPlan &plan, int64_t readings_of_b) {
    const int64_t bytes = bytes_of_a_alone(g, readings_of_b);
    if (bytes < large_copy || g.items > 1 || plan.schedule.cut) return g.m;
    const auto rounds = [&plan](int64_t rows) {
        const int64_t across = tiles(rows, plan.columns << plan.pair);
        return tiles(across * plan.schedule.tiles_down, tuned_multiprocessors >> plan.pair);
    };
    const int64_t step = 2 * plan.columns;
    for (int64_t part = part_of_copy * g.m / (bytes * step) * step; part > 0; part -= step)
        if (g.m / part * rounds(part) + rounds(g.m % part) <= rounds(g.m)) return part;
    return g.m;
}

// ---- The kernel's entry -------------------------------------------------------------------------

// What the operands are multiplied as; PVG_FLOAT32: TF32.
int multiplied_type(const Gemm &g) {
    if (g.dtype != PVG_FLOAT32) return g.dtype;
    if (g.precision == PVG_PRECISION_BF16) return PVG_BFLOAT16;
    return g.precision == PVG_PRECISION_FP16 ? PVG_FLOAT16 : PVG_FLOAT32;
}

bool can(const Gemm &g) {
    const int longest = INT32_MAX - 512; // coordinates of TMA are of 32 bits
    if (tensor_architecture(g.device) != 90 || g.m > longest || g.n > longest || g.k > longest)
        return false;
    if (g.dtype == PVG_FLOAT16 || g.dtype == PVG_BFLOAT16) return true;
    return g.dtype == PVG_FLOAT32 &&
           (g.precision == PVG_PRECISION_TF32 || g.precision == PVG_PRECISION_BF16 ||
            g.precision == PVG_PRECISION_FP16);
}

int launch_type(Call &call, const Gemm &g, int type, const TensorOperands &operands,
                const TensorPlan &plan) {
    if (type == PVG_FLOAT32) return launch_tf32(call, g, operands, plan);
    return type == PVG_FLOAT16 ? launch_float16(call, g, operands, plan)
                               : launch_bfloat16(call, g, operands, plan);
}

// The product's rows from `first` on: `count`, or as many as there are.
Gemm part_of(const Gemm &g, int64_t first, int64_t count) {
    Gemm part = g;
    part.m = static_cast<int>(g.m - first < count ? g.m - first : count);
    part.a = step_by(g.a, first * g.lda, g.dtype);
    part.c = step_by(g.c, first * g.ldc, g.dtype);
    part.epilogue.preactivation = step_by(g.epilogue.preactivation, first * g.ldc, g.dtype);
    return part;
}

int launch(Call &call, const Gemm &g) {
    const int type = multiplied_type(g);
    const bool tf32 = type == PVG_FLOAT32, transposed = tf32 && !g.b_along_k;
    const TensorPlan whole =
        choose_plan(transposed ? g.n : g.m, transposed ? g.m : g.n,
                    static_cast<int>(tiles(g.k, tf32 ? 32 : 64)), transposed, g.items);
    const int64_t readings = transposed ? whole.schedule.tiles_across : whole.schedule.tiles_down;
    const int64_t count = transposed ? rows_of_part(g, whole, readings) : g.m;
    for (int64_t first = 0; first < g.m; first += count) {
        const Gemm part = part_of(g, first, count);
        TensorPlan plan = whole;
        if (part.m < g.m) {
            Schedule &s = plan.schedule;
            s.tiles_across = static_cast<int>(tiles(part.m, plan.columns << plan.pair));
            s.whole = s.tiles_down * s.tiles_across;
        }
        TensorOperands operands; // the pool gives the next part the same memory
        PVG_PASS(prepare_operands(call, part, type, readings, &operands));
        pair_blocks(&plan, transposed ? operands.b : operands.a,
                    transposed ? operands.a : operands.b, tf32 ? 4 : 2, operands.b_in_classes,
                    transposed, g.items);
        PVG_PASS(launch_type(call, part, type, operands, plan));
    }
    return PVG_OK;
}

} // namespace

const Kernel tensor_kernel = {PVG_MATMUL_TENSOR, "tensor", can, launch};

} // namespace pvg::matmul
#endif
