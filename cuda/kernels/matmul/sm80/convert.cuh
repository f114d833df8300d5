// Operands of products of 16 bits, as cp.async can read them 16 bytes at a time.
#pragma once
#include "kernels/matmul/plan/plan.cuh"

namespace pvg::matmul {

// Replaces an operand of this dtype by the copy in `space` that the plan says, whose rows begin at
// multiples of 16 bytes, rounded to `type`; where the plan says none, leaves it.
int convert_operand(Call &call, int dtype, int type, const Plan &all, const OperandPlan &plan,
                    const Stored &from, const void **data, Workspace *space);

} // namespace pvg::matmul
