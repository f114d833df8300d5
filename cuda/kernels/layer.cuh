// A layer's product, for families that have one in every step; it is in kernels/matmul/dense.cu.
#pragma once
#include "arrays/call.cuh"

namespace pvg {

// c = a b + bias for two-dimensional arrays of one dtype, c contiguous and apart from the others;
// a_rows is a's axis of c's rows, b_columns b's of its columns. bias: of one dimension, or NULL.
int multiply_and_add(Call &call, const pvg_array *a, int a_rows, const pvg_array *b, int b_columns,
                     const pvg_array *bias, pvg_array *c);

} // namespace pvg
