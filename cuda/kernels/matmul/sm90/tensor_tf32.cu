// The tensor-core product of float32 operands, rounded to TF32: a along k, b along k or n; see
// tensor.cuh.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/sm90/tensor_launch.cuh"

namespace pvg::matmul {

int launch_tf32(Call &call, const Gemm &g, const TensorOperands &operands, const Plan &plan) {
    const Stored &a = operands.a, &b = operands.b;
    if (b.along_k) return launch_layout<hopper::Tf32, false, false>(call, g, a, b, plan);
    return plan.b_in_classes // c transposed
               ? launch_layout<hopper::Tf32, true, false, true>(call, g, b, a, plan)
               : launch_layout<hopper::Tf32, true, false>(call, g, b, a, plan);
}

} // namespace pvg::matmul
#endif
