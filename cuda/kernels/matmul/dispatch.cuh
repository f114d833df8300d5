// Plans and launches products; plan/ decides which kernel computes one.
#pragma once
#include "kernels/matmul/plan/plan.cuh"

namespace pvg::matmul {

// Launches the product, with the kernel that fits it best or the one that PVG_OPTION_MATMUL_KERNEL
// forces. Errors: VALUE (the forced kernel cannot compute it), MEMORY (workspace), CUDA.
int launch_product(Call &call, const Problem &problem);

// Replaces PVG_PRECISION_DEFAULT by what PVG_OPTION_MATMUL_PRECISION says. Errors: VALUE.
int check_precision(int *precision);

// The kernels, each of which executes a plan that has its code. In simt/ffma.cu: FFMA_*.
int launch_ffma(Call &call, const Gemm &g, const Plan &plan);
int launch_ffma_items(Call &call, const Gemm &g, const Plan &plan); // for launch_ffma
int launch_ffma_tma(Call &call, const Gemm &g, const Plan &plan);
int launch_tensor(Call &call, const Gemm &g, const Plan &plan);
int launch_tensor_sm80(Call &call, const Gemm &g, const Plan &plan);
int launch_tensor_small(Call &call, const Gemm &g, const Plan &plan);
int launch_small_items(Call &call, const Gemm &g, const Plan &plan); // for launch_tensor_small
int launch_tensor_tf32(Call &call, const Gemm &g, const Plan &plan);
int launch_bf16x6(Call &call, const Gemm &g, const Plan &plan);
int launch_fp16x3(Call &call, const Gemm &g, const Plan &plan);
int launch_dmma(Call &call, const Gemm &g, const Plan &plan);
int launch_gemv(Call &call, const Gemm &g, const Plan &plan);
int launch_tiny(Call &call, const Gemm &g, const Plan &plan);
// Those of up to 16, for launch_tiny.
int launch_mini(Call &call, const Gemm &g, const Plan &plan);
int launch_thin(Call &call, const Gemm &g, const Plan &plan);
int launch_outer(Call &call, const Gemm &g, const Plan &plan);
// Of all items of g; what is cut is one item's k. Errors: MEMORY, CUDA.
int launch_stretches(Call &call, const Gemm &g, const Card &card, const Stretches &cut);
// c = epilogue(sums), which are [item][part][row][column] of c, or if turned
// [item][part][column][row], added up over the parts in order.
int add_parts(Call &call, const Gemm &g, bool overlap, const void *sums, int64_t items,
              int64_t parts, bool turned = false);
int launch_planned(Call &call, const Kernel &kernel, const Gemm &g, const Card &card);
// The kernel that takes every problem.
int launch_tiled(Call &call, const Problem &problem);

} // namespace pvg::matmul
