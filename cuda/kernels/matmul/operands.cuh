// Arrays as the operands of a tiled product: what the kernel reads in place, and what is copied for
// it.
#pragma once
#include "kernels/matmul/tile.cuh"
#include "runtime/operation.cuh"

namespace pvg::matmul {

// An array whose axes have roles: `side` is m of a and of c's rows, or n of b; k is summed over.
// The first `batch_ndim` axes are the batch. Without a side (-1: a vector) its length is 1.
struct Matrix {
    const pvg_array *array;
    int batch_ndim, side_axis, k_axis;

    int64_t side() const { return side_axis < 0 ? 1 : array->shape[side_axis]; }
    int64_t k() const { return array->shape[k_axis]; }
};

// Replaces an array that cannot be read in place, because none of the two axes has a stride of 1,
// by a contiguous copy.
int make_readable(Operation &op, Matrix *matrix, Temporary *holder);

// Describes c = a b, of which nothing is empty except k. row_axis and column_axis of c are -1 if it
// has none; the axes before them are the batch. *batch is the number of products.
void describe_product(const Matrix &a, const Matrix &b, pvg_array *c, int row_axis, int column_axis,
                      Product *product, int64_t *batch);

} // namespace pvg::matmul
