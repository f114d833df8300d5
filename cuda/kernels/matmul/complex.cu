// Products of complex matrices, as one product of reals. A row of A, its parts side by side, is one
// of 2 k reals; each element b of B becomes two rows of them, b and i b:
//
//     (re a, im a) (  re b  im b )  =  (re ab, im ab)
//                  ( -im b  re b )
//
// So every plan for reals serves, with the accuracy and the order of sums that it has.
#include "arrays/complex.cuh"
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "kernels/matmul/complex.cuh"

namespace pvg::matmul {

namespace {

template <class T> struct TimesI {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T x[Access::count];
        access.read(0, x);
#pragma unroll
        for (int e = 0; e < Access::count; e++) x[e] = T(-x[e].im, x[e].re);
        access.write(x);
    }
};

// B's rows and columns last, and the rows of i B in turns with them: (..., 2 k, n), contiguous.
int double_rows(Call &call, const Matrix &matrix, Temporary *doubled) {
    const pvg_array *b = matrix.array;
    const bool column = matrix.side_axis < 0; // a vector
    const int ndim = column ? b->ndim + 1 : b->ndim, row_axis = ndim - 2;
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    for (int i = 0; i < b->ndim; i++) shape[i] = b->shape[i], strides[i] = b->strides[i];
    if (column) shape[ndim - 1] = strides[ndim - 1] = 1;
    for (int i = 0; i < row_axis; i++) // one copy of what the batch repeats
        if (strides[i] == 0 && shape[i] > 0) shape[i] = 1;
    Temporary from, plain, turned;
    PVG_PASS(new_view(b, ndim, shape, strides, 0, true, &from.array));
    shape[row_axis] *= 2;
    PVG_PASS(new_array(call.device, b->dtype, ndim, shape, &doubled->array));
    shape[row_axis] /= 2;
    for (int i = 0; i < ndim; i++) strides[i] = doubled->array->strides[i];
    const int64_t row = strides[row_axis];
    strides[row_axis] = 2 * row;
    PVG_PASS(new_view(doubled->array, ndim, shape, strides, 0, false, &plain.array));
    PVG_PASS(new_view(doubled->array, ndim, shape, strides, row, false, &turned.array));
    PVG_PASS(copy_array(call, from.array, plain.array));
    PVG_PASS(call.writes(turned.array));
    return dispatch<complexes>(b->dtype, [&](auto tag) {
        return launch_map(call, TimesI<typename decltype(tag)::type>(), turned.array, {from.array});
    });
}

// The array itself if its last axis has no gaps, else a contiguous copy.
int without_gaps(Call &call, const pvg_array *a, Temporary *holder, const pvg_array **result) {
    const int last = a->ndim - 1;
    *result = a;
    return a->shape[last] == 1 || a->strides[last] == 1 ? static_cast<int>(PVG_OK)
                                                        : as_contiguous(call, a, holder, result);
}

} // namespace

int multiply_complex(Call &call, Matrix a, const Matrix &b, pvg_array *c, int row_axis,
                     int column_axis, int precision) {
    Temporary whole, left, doubled, right, result;
    if (a.k() == 0) { // there are no rows to double
        const uint8_t zero = 0;
        return fill_array(call, c, PVG_SCALAR_BOOL, &zero);
    }
    PVG_PASS(without_gaps(call, a.array, &whole, &a.array));
    PVG_PASS(interleaved_view(a.array, &left.array));
    PVG_PASS(double_rows(call, b, &doubled));
    PVG_PASS(interleaved_view(doubled.array, &right.array));
    if (column_axis >= 0)
        PVG_PASS(interleaved_view(c, &result.array));
    else
        PVG_PASS(parts_view(c, &result.array));
    a.array = left.array;
    const int ndim = right.array->ndim;
    const Matrix pairs = {right.array, ndim - 2, ndim - 1, ndim - 2};
    return multiply(call, a, pairs, result.array, row_axis,
                    column_axis >= 0 ? column_axis : result.array->ndim - 1, precision, {});
}

} // namespace pvg::matmul
