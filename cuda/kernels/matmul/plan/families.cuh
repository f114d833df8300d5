// The planners of the kernels, a file each family; plan.cuh says what they fill in. rules.cu lists
// them.
#pragma once
#include "kernels/matmul/plan/cost.cuh"
#include "kernels/matmul/plan/plan.cuh"
#include <math.h>

namespace pvg::matmul {

// ffma.cu: FFMA_*, for each tile that gives other bits, and FFMA_TMA.
// Whether FFMA_128X128 would have an operand copied.
bool wants_copies(const Gemm &g);
bool can_ffma_128x128(const Gemm &g, const Card &card);
bool can_ffma_64x128(const Gemm &g, const Card &card);
bool can_ffma_64x64(const Gemm &g, const Card &card);
bool can_ffma_64x32(const Gemm &g, const Card &card);
bool can_ffma_tma(const Gemm &g, const Card &card);
void plan_ffma_128x128(const Gemm &g, const Card &card, Plan *plan);
void plan_ffma_64x128(const Gemm &g, const Card &card, Plan *plan);
void plan_ffma_64x64(const Gemm &g, const Card &card, Plan *plan);
void plan_ffma_64x32(const Gemm &g, const Card &card, Plan *plan);
void plan_ffma_tma(const Gemm &g, const Card &card, Plan *plan);
int64_t stretches_ffma_128x128(const Gemm &g);
int64_t stretches_ffma_64x128(const Gemm &g);
int64_t stretches_ffma_64x64(const Gemm &g);
int64_t stretches_ffma_64x32(const Gemm &g);

// How many stretches of k make a product the fastest, and what it takes then, in clock cycles, for
// all that its shape says.
struct Cut {
    int64_t stretches;
    double cycles;
};

// tensor.cu
bool can_tensor(const Gemm &g, const Card &card);
void plan_tensor(const Gemm &g, const Card &card, Plan *plan);
int64_t stretches_tensor(const Gemm &g);
Cut cut_tensor(const Gemm &g);
// Whether a TF32 product of the transposed matrices, of which c is a transposed copy, is the faster
// one.
bool turning_saves_copies(const Gemm &g);

// emulated.cu
bool can_pieces(const Gemm &g, const Card &card);
void plan_bf16x6(const Gemm &g, const Card &card, Plan *plan);
void plan_fp16x3(const Gemm &g, const Card &card, Plan *plan);

// warps.cu
bool can_dmma(const Gemm &g, const Card &card);
bool can_tensor_sm80(const Gemm &g, const Card &card);
void plan_dmma(const Gemm &g, const Card &card, Plan *plan);
void plan_tensor_sm80(const Gemm &g, const Card &card, Plan *plan);
int64_t stretches_dmma(const Gemm &g);

// tensor_small.cu
// Whether two neighbours of c's 16-bit elements may be stored at once.
bool stores_pairs(const Gemm &g);
bool can_tensor_small(const Gemm &g, const Card &card);
// Whether stretches of k are computed by blocks that read both operands once.
bool is_long_block(const Gemm &g);
void plan_tensor_small(const Gemm &g, const Card &card, Plan *plan);
int64_t stretches_tensor_small(const Gemm &g);

// tf32.cu
bool can_tensor_tf32(const Gemm &g, const Card &card);
void plan_tensor_tf32(const Gemm &g, const Card &card, Plan *plan);
int64_t stretches_tensor_tf32(const Gemm &g);
Cut cut_tensor_tf32(const Gemm &g);

// small.cu
bool can_gemv(const Gemm &g, const Card &card);
// Whether the items of a tiny product are one after another rows of a single, taller one.
bool is_folded(const Gemm &g);
bool can_tiny(const Gemm &g, const Card &card);
void plan_gemv(const Gemm &g, const Card &card, Plan *plan);
void plan_tiny(const Gemm &g, const Card &card, Plan *plan);
bool can_thin(const Gemm &g, const Card &card);
void plan_thin(const Gemm &g, const Card &card, Plan *plan);
bool can_outer(const Gemm &g, const Card &card);
void plan_outer(const Gemm &g, const Card &card, Plan *plan);
inline bool thin_side_is_m(const Gemm &g) { return g.m <= g.n; }

// ---- What they share ----------------------------------------------------------------------------

// How many of its blocks a multiprocessor has to take, if all are to begin at once.
int64_t blocks_each(const Card &card, const Plan &plan);
// Blocks are spread evenly over the multiprocessors, of which one could take so many of them, by
// asking for so much shared memory that no more fit one than it has to take; with the 1 KiB that
// CUDA adds a third part is too much for three. Else those of a kernel that starts while the one
// before it ends go where that leaves room first, as many together as fit, and other
// multiprocessors idle.
void spread_blocks(int fit, const Card &card, Plan *plan);

// What the launches of so many stretches of a product take, on the device but for adding them up,
// and on the host but for launching that: hardly more than the longer of both, which go on beside
// each other.
struct Adding { double cycles, host_cycles, sum_rate; };
inline double with_adding(const Gemm &g, double device, double host, int64_t parts,
                          const Adding &adding) {
    if (parts > 1) {
        device += adding.cycles + double(parts) * g.m * g.n * 8 / adding.sum_rate;
        host += adding.host_cycles;
    }
    return sqrt(sqrt(device * device * device * device + host * host * host * host));
}

inline bool is_rounded(const Gemm &g) {
    return g.precision == PVG_PRECISION_TF32 || g.precision == PVG_PRECISION_BF16 ||
           g.precision == PVG_PRECISION_FP16;
}

inline bool is_of_halves(const Gemm &g) {
    return g.dtype == PVG_FLOAT16 || g.dtype == PVG_BFLOAT16;
}
inline bool is_of_halves_or_rounded(const Gemm &g) {
    return is_of_halves(g) || (g.dtype == PVG_FLOAT32 && is_rounded(g));
}

// The dtype that the operands of a product on tensor cores are multiplied as; PVG_FLOAT32: TF32.
inline int multiplied_type(const Gemm &g) {
    if (g.dtype != PVG_FLOAT32) return g.dtype;
    if (g.precision == PVG_PRECISION_BF16) return PVG_BFLOAT16;
    return g.precision == PVG_PRECISION_FP16 ? PVG_FLOAT16 : PVG_FLOAT32;
}

// How much of the multiprocessors' time goes into tiles of c, if each computes one at a time.
inline double fill(const Gemm &g, int rows, int columns) {
    const int64_t count = tiles(g.m, rows) * tiles(g.n, columns);
    constexpr int width = cost::tuned_multiprocessors;
    return static_cast<double>(g.m) * g.n / (static_cast<double>(rows) * columns) /
           static_cast<double>(tiles(count, width) * width);
}

// Where "ieee" has large tiles: it adds up no more than two halves of k.
inline bool adds_halves(const Gemm &g) {
    return g.m >= cost::least_for_halves && g.n >= cost::least_for_halves &&
           fill(g, 128, 128) >= cost::busy_enough;
}

// Of workspaces that hold what waits, of all items or parts at a time, unless one needs more.
constexpr int64_t most_waiting = int64_t(1) << 28; // bytes

} // namespace pvg::matmul
