// Arrays as the operands of a product: what kernels read in place, and what is copied for them.
#pragma once
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

// An array whose axes have roles: `side` is m of a and of c's rows, or n of b; k is summed over.
// The first `batch_ndim` axes are the batch. Without a side (-1: a vector) its length is 1.
struct Matrix {
    const pvg_array *array;
    int batch_ndim, side_axis, k_axis;

    int64_t side() const { return side_axis < 0 ? 1 : array->shape[side_axis]; }
    int64_t k() const { return array->shape[k_axis]; }
};

// Launches c = epilogue(a b), of which nothing is empty except k: reads the operands in place or
// copies them, and waits for the streams that wrote them. row_axis and column_axis of c are -1 if
// it has none; the axes before them are the batch. Rows of c have no gaps inside.
int multiply(Call &call, Matrix a, Matrix b, pvg_array *c, int row_axis, int column_axis,
             int precision, const Epilogue &epilogue);

} // namespace pvg::matmul
