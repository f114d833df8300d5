// Strides and batches of a product's operands; see operands.cuh.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/operands.cuh"

namespace pvg::matmul {

namespace {

Operand describe_operand(const Matrix &matrix) {
    const pvg_array *a = matrix.array;
    Operand operand = {};
    operand.data = a->data;
    operand.stride = matrix.side() == 1 ? matrix.k() : a->strides[matrix.side_axis];
    operand.k_stride = matrix.k() == 1 ? matrix.side() : a->strides[matrix.k_axis];
    bool side_by_side = matrix.side() == 1 || operand.stride == 1; // along the side
    operand.along_k = operand.k_stride == 1 || !side_by_side;
    // What is left of length 1 along the packs: any stride will do.
    (operand.along_k ? operand.k_stride : operand.stride) = 1;
    return operand;
}

// Replaces an array that cannot be read in place by a contiguous copy: neither of the two axes has
// a stride of 1, or rows overlap or run backwards.
int make_readable(Call &call, Matrix *matrix, Temporary *holder) {
    const pvg_array *a = matrix->array;
    int64_t side = matrix->side(), k = matrix->k();
    int64_t side_stride = matrix->side_axis < 0 ? 1 : a->strides[matrix->side_axis],
            k_stride = a->strides[matrix->k_axis];
    bool along_k = (k <= 1 || k_stride == 1) && (side <= 1 || side_stride >= k);
    bool along_side = (side <= 1 || side_stride == 1) && (k <= 1 || k_stride >= side);
    if (along_k || along_side) return PVG_OK;
    // One copy of what the batch repeats.
    int64_t shape[PVG_MAX_NDIM];
    for (int i = 0; i < a->ndim; i++)
        shape[i] = i < matrix->batch_ndim && a->strides[i] == 0 ? 1 : a->shape[i];
    Temporary once;
    PVG_PASS(new_view(a, a->ndim, shape, a->strides, 0, true, &once.array));
    PVG_PASS(as_contiguous(call, once.array, holder, &matrix->array));
    if (matrix->array == once.array) holder->array = once.take();
    return PVG_OK;
}

void describe_product(const Matrix &a, const Matrix &b, pvg_array *c, int row_axis, int column_axis,
                      Product *p, int64_t *items) {
    *p = Product();
    p->m = a.side(), p->n = b.side(), p->k = a.k();
    p->a = describe_operand(a), p->b = describe_operand(b);
    p->c = c->data;
    p->c_row = row_axis < 0 || p->m == 1 ? p->n : c->strides[row_axis];

    int ndim = c->ndim - (row_axis >= 0) - (column_axis >= 0);
    p->batch.ndim = ndim;
    *items = 1;
    for (int i = 0; i < ndim; i++) {
        int in_a = i - (ndim - a.batch_ndim), in_b = i - (ndim - b.batch_ndim);
        p->batch.shape[i] = c->shape[i];
        p->batch.strides[0][i] = c->strides[i];
        p->batch.strides[1][i] = in_a < 0 || a.array->shape[in_a] == 1 ? 0 : a.array->strides[in_a];
        p->batch.strides[2][i] = in_b < 0 || b.array->shape[in_b] == 1 ? 0 : b.array->strides[in_b];
        *items *= c->shape[i];
    }
    collapse(&p->batch);
}

} // namespace

int multiply(Call &call, Matrix a, Matrix b, pvg_array *c, int row_axis, int column_axis,
             int precision, const Epilogue &epilogue) {
    Temporary straight_a, straight_b;
    PVG_PASS(make_readable(call, &a, &straight_a));
    PVG_PASS(make_readable(call, &b, &straight_b));
    PVG_PASS(call.reads(a.array));
    PVG_PASS(call.reads(b.array));
    Problem problem = {c->dtype, precision, call.device, {}, 1, epilogue};
    describe_product(a, b, c, row_axis, column_axis, &problem.product, &problem.items);
    return launch_product(call, problem);
}

} // namespace pvg::matmul
