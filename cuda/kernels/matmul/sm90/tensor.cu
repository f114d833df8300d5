// tensor_kernel: float16, bfloat16 and TF32 products by warpgroups; the kernel is in tensor.cuh,
// and plan/tensor.cu plans its launches. Here the parts of a product are walked through, and the
// kernel of a type is called; tensor_float16.cu, tensor_bfloat16.cu and tensor_tf32.cu compile it.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/sm90/tensor_launch.cuh"

namespace pvg::matmul {

namespace {

int launch_type(Call &call, const Gemm &g, const Plan &plan) {
    const int type = multiplied_type(g);
    TensorOperands operands; // the pool gives the next part the same memory
    PVG_PASS(prepare_operands(call, g, type, plan, &operands));
    if (type == PVG_FLOAT32) return launch_tf32(call, g, operands, plan);
    return type == PVG_FLOAT16 ? launch_float16(call, g, operands, plan)
                               : launch_bfloat16(call, g, operands, plan);
}

// The product's rows from `first` on: `count`, or as many as there are.
Gemm part_of(const Gemm &g, int64_t first, int64_t count) {
    Gemm part = g;
    part.m = static_cast<int>(g.m - first < count ? g.m - first : count);
    part.a = step_by(g.a, first * g.lda, g.dtype);
    part.c = step_by(g.c, g.c_turned ? first : first * g.ldc, g.c_dtype);
    part.epilogue.preactivation = step_by(g.epilogue.preactivation, first * g.ldc, g.c_dtype);
    return part;
}

} // namespace

int launch_tensor(Call &call, const Gemm &g, const Plan &plan) {
    if (plan.part_rows >= g.m) return launch_type(call, g, plan);
    Card card;
    PVG_PASS(card_of(g.device, &card));
    for (int64_t first = 0; first < g.m; first += plan.part_rows) {
        const Gemm part = part_of(g, first, plan.part_rows);
        PVG_PASS(launch_type(call, part, plan_part(part, card, plan)));
    }
    return PVG_OK;
}

} // namespace pvg::matmul
#endif
