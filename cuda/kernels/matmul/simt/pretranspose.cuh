// Operands in the layout that a kernel wants: copies of 4-byte elements, transposed or with rows
// that begin at multiples of 16 bytes, made by one launch for both operands before the product.
#pragma once
#include "kernels/matmul/plan/plan.cuh"

namespace pvg::matmul {

// Replaces the operands that the plan copies by rows or transposes by copies in `space`, and gives
// g the layout that they have then. What lies between the rows of a copy is no number to rely on.
// The stream's next kernel may be launched with overlap. For elements of 4 bytes.
int arrange_operands(Call &call, Gemm *g, const Plan &plan, Workspace *space);

} // namespace pvg::matmul
