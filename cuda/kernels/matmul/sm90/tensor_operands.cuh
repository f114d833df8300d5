// Operands of a product by tensor cores, as TMA can read them.
#pragma once
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

// One operand as it is stored: `rows` rows of `columns` elements, and so again for every item.
struct TensorOperand {
    const void *data;
    int64_t rows, columns, stride, items, item; // strides in elements; items 1: all share it
};

struct TensorOperands {
    TensorOperand a, b;
    bool a_along_k, b_along_k;
    bool b_in_classes; // TF32: TMA can read b as classes of rows only, see tensor.cuh
    Workspace space;   // of the copies
};

// What tensor_kernel multiplies, instead of g's own operands where TMA cannot read those. float32
// becomes `type`, PVG_FLOAT16 or PVG_BFLOAT16, rounded to nearest; with type PVG_FLOAT32, which is
// for TF32, a lies along k. The copies are made by one launch. readings_of_b: by the tiles that lie
// below each other in c.
int prepare_operands(Call &call, const Gemm &g, int type, int64_t readings_of_b,
                     TensorOperands *operands);

// For TF32, bytes of a's copy, if that is all that prepare_operands makes, row by row; else 0.
int64_t bytes_of_a_alone(const Gemm &g, int64_t readings_of_b);

} // namespace pvg::matmul
