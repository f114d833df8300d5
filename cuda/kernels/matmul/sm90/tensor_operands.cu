// The pass before a product by tensor cores, where there has to be one: rows that do not begin at
// multiples of 16 bytes are copied to where they do, and float32 is rounded to 16 bits, by
// copy_rows.cuh. A TF32 a along m is transposed, by pretranspose.cuh. See tensor_operands.cuh.
#include "kernels/matmul/simt/copy_rows.cuh"
#include "kernels/matmul/simt/pretranspose.cuh"
#include "kernels/matmul/sm90/tensor_operands.cuh"

namespace pvg::matmul {

int prepare_operands(Call &call, const Gemm &g, int type, const Plan &plan,
                     TensorOperands *operands) {
    Gemm there = joined(g);
    operands->a = stored_a(there), operands->b = stored_b(there);
    if (plan.a.copying == Copying::transposed) {
        PVG_PASS(arrange_operands(call, &there, plan, &operands->space));
        operands->a = stored_a(there);
        if (plan.b.copying != Copying::none) operands->b = stored_b(there);
        return PVG_OK;
    }
    if (plan.a.bytes + plan.b.bytes == 0) return PVG_OK;
    PVG_PASS(operands->space.open(call, static_cast<size_t>(plan.a.bytes + plan.b.bytes)));
    void *const to = operands->space.as<void>();
    if (g.dtype == type) return copy_rows(call, type, plan, to, &operands->a, &operands->b);
    const RowCopies copies = row_copies(plan, 1, 4, to, &operands->a, &operands->b);
    if (type == PVG_FLOAT16) return launch_copies<float, Half>(call, copies, plan.overlap);
    return launch_copies<float, BFloat16>(call, copies, plan.overlap);
}

} // namespace pvg::matmul
