// Strides, alignment and batches of a product's operands; see operands.cuh.
#include "kernels/matmul/operands.cuh"

namespace pvg::matmul {

namespace {

// Bytes that the kernel moves at once: pack_size elements of operands, a group of results.
int64_t pack_bytes(int dtype) { return dtype_size(dtype) == 1 ? 4 : 16; }

bool is_aligned(const void *data, int64_t stride, int operand, const Walk<3> &batch, int dtype) {
    int64_t size = dtype_size(dtype), strides = stride;
    for (int i = 0; i < batch.ndim; i++) strides |= batch.strides[operand][i];
    return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(pack_bytes(dtype)) == 0 &&
           strides * size % pack_bytes(dtype) == 0;
}

Operand describe_operand(const Matrix &matrix) {
    const pvg_array *a = matrix.array;
    Operand operand = {};
    operand.data = a->data;
    operand.stride = matrix.side() == 1 ? 0 : a->strides[matrix.side_axis];
    operand.k_stride = matrix.k() == 1 ? 0 : a->strides[matrix.k_axis];
    bool side_by_side = matrix.side() == 1 || operand.stride == 1; // along the side
    operand.along_k = operand.k_stride == 1 || !side_by_side;
    // What is left of length 1 along the packs: any stride will do.
    (operand.along_k ? operand.k_stride : operand.stride) = 1;
    return operand;
}

// Rows of c that lie evenly in a batch over one b are the rows of a single, taller product.
void fold_batch(Product *p, int64_t *batch) {
    if (p->batch.ndim != 1 || p->batch.strides[2][0] != 0 || !p->a.along_k) return;
    int64_t c_step = p->batch.strides[0][0], a_step = p->batch.strides[1][0];
    if (p->m == 1)
        p->c_row = c_step, p->a.stride = a_step;
    else if (c_step != p->m * p->c_row || a_step != p->m * p->a.stride)
        return;
    p->m *= *batch;
    p->batch.ndim = 0;
    *batch = 1;
}

} // namespace

int make_readable(Operation &op, Matrix *matrix, Temporary *holder) {
    const pvg_array *a = matrix->array;
    bool readable = matrix->side() <= 1 || matrix->k() <= 1 || a->strides[matrix->side_axis] == 1 ||
                    a->strides[matrix->k_axis] == 1;
    return readable ? PVG_OK : as_contiguous(op, a, holder, &matrix->array);
}

void describe_product(const Matrix &a, const Matrix &b, pvg_array *c, int row_axis, int column_axis,
                      Product *p, int64_t *batch) {
    *p = Product();
    p->m = a.side(), p->n = b.side(), p->k = a.k();
    p->a = describe_operand(a), p->b = describe_operand(b);
    p->c = c->data;
    p->c_row = row_axis < 0 ? 0 : c->strides[row_axis];
    p->c_column = column_axis < 0 || p->n == 1 ? 1 : c->strides[column_axis];

    int ndim = c->ndim - (row_axis >= 0) - (column_axis >= 0);
    p->batch.ndim = ndim;
    *batch = 1;
    for (int i = 0; i < ndim; i++) {
        int in_a = i - (ndim - a.batch_ndim), in_b = i - (ndim - b.batch_ndim);
        p->batch.shape[i] = c->shape[i];
        p->batch.strides[0][i] = c->strides[i];
        p->batch.strides[1][i] = in_a < 0 || a.array->shape[in_a] == 1 ? 0 : a.array->strides[in_a];
        p->batch.strides[2][i] = in_b < 0 || b.array->shape[in_b] == 1 ? 0 : b.array->strides[in_b];
        *batch *= c->shape[i];
    }
    collapse(&p->batch);
    fold_batch(p, batch);
    int dtype = c->dtype;
    p->a.aligned =
        is_aligned(p->a.data, p->a.along_k ? p->a.stride : p->a.k_stride, 1, p->batch, dtype);
    p->b.aligned =
        is_aligned(p->b.data, p->b.along_k ? p->b.stride : p->b.k_stride, 2, p->batch, dtype);
    p->c_aligned = p->c_column == 1 && is_aligned(p->c, p->c_row, 0, p->batch, dtype);
}

} // namespace pvg::matmul
