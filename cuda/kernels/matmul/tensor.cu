// tensor_kernel: float16, bfloat16 and TF32 products by warpgroups; the kernel is in tensor.cuh.
// Here it is decided which tile it takes and what it splits, and the kernel of a type is called,
// which tensor_float16.cu, tensor_bfloat16.cu and tensor_tf32.cu compile.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/tensor_launch.cuh"

namespace pvg::matmul {

namespace {

// ---- Which tile ---------------------------------------------------------------------------------

// Clock cycles of one block of K, 128 bytes deep, of a tile of 128 x n: what the tensor cores need,
// or what the second-level cache needs to deliver the operands at 46 bytes a cycle.
int block_cycles(int n) {
    const int products = 4 * n, loads = (128 + n) * 128 / 46;
    return products > loads ? products : loads;
}
// To fill the ring and to store the tile; for each slice of a tile that is cut; and for the launch
// that clears the tickets.
constexpr int tile_cycles = 2000, slice_cycles = 1500, ticket_cycles = 3500;

// What remains is cut only where K is long and few tiles would leave many multiprocessors idle. The
// large tile never is: the code for it would cost it registers.
Schedule cut_schedule(int m, int n, int columns, int k_blocks, bool may_cut) {
    const int64_t down = tiles(m, 128), across = tiles(n, columns);
    may_cut &= columns < 256 && k_blocks >= 32 && down * across <= tuned_multiprocessors * 3 / 4;
    const double overhead = slice_cycles / (double(k_blocks) * block_cycles(columns));
    return make_schedule(static_cast<int>(down), static_cast<int>(across), 1, k_blocks, 1, overhead,
                         !may_cut);
}

double cycles(const Schedule &s, int columns, int64_t items) {
    const int64_t units = s.units() * items, rounds = tiles(units, tuned_multiprocessors);
    const double of_unit = double(s.k_blocks) / s.slices * block_cycles(columns);
    return double(rounds) * (of_unit + tile_cycles) +
           (s.cut ? s.slices * slice_cycles + ticket_cycles : 0);
}

// An item that is cut when it is alone is cut in the same way in a batch, because the order of the
// sums is the result's business. Else the tile is free, and the number of items counts.
TensorPlan choose_plan(int m, int n, int k_blocks, int64_t all_items) {
    TensorPlan best = {};
    for (int64_t items : {int64_t(1), all_items}) {
        double least = 0;
        for (int columns : {256, 128, 64}) {
            const Schedule schedule = cut_schedule(m, n, columns, k_blocks, items == 1);
            const double cost = cycles(schedule, columns, items);
            if (least != 0 && cost >= least) continue;
            least = cost;
            best = {columns, schedule};
        }
        if (best.schedule.cut || all_items == 1) break;
    }
    return best;
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

int launch(Operation &op, const Gemm &g) {
    const int type = multiplied_type(g);
    TensorOperands operands;
    PVG_PASS(prepare_operands(op, g, type, &operands));
    const bool tf32 = type == PVG_FLOAT32, transposed = tf32 && !operands.b_along_k;
    const TensorPlan plan = choose_plan(transposed ? g.n : g.m, transposed ? g.m : g.n,
                                        static_cast<int>(tiles(g.k, tf32 ? 32 : 64)), g.items);
    if (tf32) return launch_tf32(op, g, operands, plan);
    return type == PVG_FLOAT16 ? launch_float16(op, g, operands, plan)
                               : launch_bfloat16(op, g, operands, plan);
}

} // namespace

const Kernel tensor_kernel = {PVG_MATMUL_TENSOR, "tensor", can, launch};

} // namespace pvg::matmul
#endif
