// Operands of a product by tensor cores, as TMA can read them.
#pragma once
#include "kernels/matmul/plan/plan.cuh"

namespace pvg::matmul {

// What tensor_kernel multiplies: g's own operands, or copies of them.
struct TensorOperands {
    Stored a, b;
    Workspace space; // of the copies
};

// Makes the copies that the plan wants, by one launch. float32 becomes `type`, PVG_FLOAT16 or
// PVG_BFLOAT16, rounded to nearest, or stays as it is with type PVG_FLOAT32, which is for TF32.
int prepare_operands(Call &call, const Gemm &g, int type, const Plan &plan,
                     TensorOperands *operands);

} // namespace pvg::matmul
