// The matrix product with numpy.matmul's rules for vectors, batches and dtypes: pvg_matmul; and of
// rows with rows: pvg_vecdot.
#include "arrays/operation.cuh"
#include "kernels/matmul/complex.cuh"
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/dots.cuh"
#include "kernels/matmul/operands.cuh"

namespace pvg {
namespace {

using matmul::Matrix;

// The shape of the batch that both operands broadcast to.
int broadcast_batch(const Matrix &a, const Matrix &b, int *ndim, int64_t *shape) {
    *ndim = a.batch_ndim > b.batch_ndim ? a.batch_ndim : b.batch_ndim;
    for (int i = 0; i < *ndim; i++) {
        int in_a = i - (*ndim - a.batch_ndim), in_b = i - (*ndim - b.batch_ndim);
        int64_t length_a = in_a < 0 ? 1 : a.array->shape[in_a],
                length_b = in_b < 0 ? 1 : b.array->shape[in_b];
        PVG_REQUIRE(length_a == length_b || length_a == 1 || length_b == 1, PVG_ERROR_VALUE,
                    "the batches of shapes %s and %s cannot be broadcast together",
                    shape_text(a.array), shape_text(b.array));
        shape[i] = length_a == 1 ? length_b : length_a;
    }
    return PVG_OK;
}

int check_shapes(const pvg_array *a, const pvg_array *b) {
    PVG_REQUIRE(
        a->ndim > 0 && b->ndim > 0, PVG_ERROR_VALUE,
        "operands need at least one dimension (multiply is for scalars), got shapes %s and %s",
        shape_text(a), shape_text(b));
    int64_t k = a->shape[a->ndim - 1], other = b->shape[b->ndim > 1 ? b->ndim - 2 : 0];
    PVG_REQUIRE(k == other, PVG_ERROR_VALUE,
                "shapes %s and %s do not fit: %lld columns against %lld rows", shape_text(a),
                shape_text(b), static_cast<long long>(k), static_cast<long long>(other));
    return PVG_OK;
}

int run_matmul(Call &call, const pvg_array *a, const pvg_array *b, int precision, pvg_array *out,
               Output *result) {
    const pvg_array *operands[] = {a, b};
    int device, ndim;
    int64_t shape[PVG_MAX_NDIM + 2];
    PVG_PASS(check_operands(operands, 2, &device));
    PVG_PASS(check_shapes(a, b));
    PVG_PASS(matmul::check_precision(&precision));
    bool rows = a->ndim > 1, columns = b->ndim > 1;
    Matrix left = {a, rows ? a->ndim - 2 : 0, rows ? a->ndim - 2 : -1, a->ndim - 1};
    Matrix right = {b, columns ? b->ndim - 2 : 0, columns ? b->ndim - 1 : -1,
                    columns ? b->ndim - 2 : 0};
    PVG_PASS(broadcast_batch(left, right, &ndim, shape));
    int row_axis = rows ? ndim++ : -1, column_axis = columns ? ndim++ : -1;
    if (rows) shape[row_axis] = left.side();
    if (columns) shape[column_axis] = right.side();
    PVG_REQUIRE(ndim <= PVG_MAX_NDIM, PVG_ERROR_VALUE,
                "the result has %d dimensions, at most %d are possible", ndim, PVG_MAX_NDIM);
    int dtype = promote(a->dtype, b->dtype);

    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, dtype, ndim, shape, out, nullptr, 0));
    pvg_array *c = result->array;
    if (c->size == 0) return PVG_OK;
    Temporary converted_a, converted_b, apart;
    // The kernels write rows without gaps inside.
    bool is_split = column_axis >= 0 && c->shape[column_axis] > 1 && c->strides[column_axis] != 1;
    if (may_overlap(a, c) || may_overlap(b, c) || is_split) {
        PVG_PASS(new_array(device, dtype, ndim, shape, &apart.array));
        c = apart.array;
    }
    PVG_PASS(as_dtype(call, a, dtype, &converted_a, &left.array));
    PVG_PASS(as_dtype(call, b, dtype, &converted_b, &right.array));
    if (is_among(dtype, complexes))
        PVG_PASS(matmul::multiply_complex(call, left, right, c, row_axis, column_axis, precision));
    else
        PVG_PASS(matmul::multiply(call, left, right, c, row_axis, column_axis, precision, {}));
    return apart.array ? copy_array(call, apart.array, result->array) : PVG_OK;
}

// Of rows that matmul multiplies: a row and a column in each matrix, and a matrix of one element.
int multiply_rows(Call &call, const pvg_array *a, const pvg_array *b, int precision, int ndim,
                  const int64_t *shape, pvg_array *target) {
    PVG_REQUIRE(a->ndim < PVG_MAX_NDIM && b->ndim < PVG_MAX_NDIM && ndim + 2 <= PVG_MAX_NDIM,
                PVG_ERROR_VALUE, "products of shapes %s and %s have too many dimensions",
                shape_text(a), shape_text(b));
    int64_t row[PVG_MAX_NDIM], row_strides[PVG_MAX_NDIM], ones[PVG_MAX_NDIM];
    int64_t column[PVG_MAX_NDIM], column_strides[PVG_MAX_NDIM];
    for (int i = 0; i < a->ndim; i++) row[i] = a->shape[i], row_strides[i] = a->strides[i];
    for (int i = 0; i < b->ndim; i++) column[i] = b->shape[i], column_strides[i] = b->strides[i];
    const int last = a->ndim - 1;
    row[last + 1] = row[last], row_strides[last + 1] = row_strides[last];
    row[last] = 1, row_strides[last] = row[last + 1] * row_strides[last + 1];
    column[b->ndim] = 1, column_strides[b->ndim] = 1;
    Temporary of_a, of_b, of_c;
    Output ignored;
    int64_t strides[PVG_MAX_NDIM];
    for (int i = 0; i < ndim; i++) ones[i] = shape[i];
    ones[ndim] = ones[ndim + 1] = 1;
    contiguous_strides(ndim + 2, ones, strides);
    PVG_PASS(new_view(a, a->ndim + 1, row, row_strides, 0, false, &of_a.array));
    PVG_PASS(new_view(b, b->ndim + 1, column, column_strides, 0, false, &of_b.array));
    PVG_PASS(new_view(target, ndim + 2, ones, strides, 0, false, &of_c.array));
    return run_matmul(call, of_a.array, of_b.array, precision, of_c.array, &ignored);
}

int run_vecdot(Call &call, const pvg_array *a, const pvg_array *b, int precision, Output *result) {
    const pvg_array *operands[] = {a, b};
    int device, ndim;
    int64_t shape[PVG_MAX_NDIM];
    bool done = false;
    PVG_PASS(check_operands(operands, 2, &device));
    PVG_PASS(matmul::check_precision(&precision));
    PVG_REQUIRE(a->ndim && b->ndim && a->shape[a->ndim - 1] == b->shape[b->ndim - 1],
                PVG_ERROR_VALUE, "shapes %s and %s have no last axis of one length", shape_text(a),
                shape_text(b));
    PVG_PASS(broadcast_batch({a, a->ndim - 1, -1, 0}, {b, b->ndim - 1, -1, 0}, &ndim, shape));
    const int dtype = promote(a->dtype, b->dtype);
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, dtype, ndim, shape, nullptr, nullptr, 0));
    if (result->array->size == 0) return PVG_OK;
    Temporary converted_a, converted_b;
    PVG_PASS(as_dtype(call, a, dtype, &converted_a, &a));
    PVG_PASS(as_dtype(call, b, dtype, &converted_b, &b));
    if (is_among(dtype, floats)) PVG_PASS(matmul::launch_dots(call, a, b, result->array, &done));
    return done ? static_cast<int>(PVG_OK)
                : multiply_rows(call, a, b, precision, ndim, shape, result->array);
}

} // namespace

Operations matmul_operations() {
    static constexpr Operation rows[] = {
        {PVG_MATMUL, "matmul", Family::other, all_kinds, Gives::same},
        {PVG_DENSE, "dense", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_matmul(const pvg_array *a, const pvg_array *b, int precision,
                              pvg_array *out) {
    pvg::Call call("matmul");
    pvg::Output result;
    int status = pvg::run_matmul(call, a, b, precision, out, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_vecdot(const pvg_array *a, const pvg_array *b, int precision) {
    pvg::Call call("vecdot");
    pvg::Output result;
    int status = pvg::run_vecdot(call, a, b, precision, &result);
    return result.close(call, status);
}
