// The tensor-core product of float16 operands, in all layouts; see tensor.cuh.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/sm90/tensor_launch.cuh"

namespace pvg::matmul {

int launch_float16(Call &call, const Gemm &g, const TensorOperands &operands, const Plan &plan) {
    return launch_halves<__half>(call, g, operands, plan);
}

} // namespace pvg::matmul
#endif
