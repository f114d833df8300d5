// Copies in which elements stand at other places, or several times: pvg_repeat, pvg_pad, pvg_diag.
// Each makes its result, and copies between a view of the operand and a view of that.
#include "arrays/copy.cuh"

namespace pvg {

namespace {

int run_repeat(Call &call, const pvg_array *a, int n, const int64_t *counts, int whole,
               Output *result) {
    int device = -1, parts = 0;
    int64_t size = 0, merged[PVG_MAX_NDIM];
    int64_t shape[2 * PVG_MAX_NDIM], from[2 * PVG_MAX_NDIM], to[2 * PVG_MAX_NDIM];
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(n >= a->ndim && n <= PVG_MAX_NDIM && (n == 0 || counts), PVG_ERROR_VALUE,
                "%d counts, at %p, for an array of %d dimensions", n, counts, a->ndim);
    PVG_REQUIRE(whole == 0 || whole == 1, PVG_ERROR_VALUE, "whole is 0 or 1, got %d", whole);
    const auto add = [&](int64_t length, int64_t stride) {
        shape[parts] = length, from[parts++] = stride;
    };
    for (int i = 0; i < n; i++) {
        const int axis = i - (n - a->ndim);
        const int64_t length = axis < 0 ? 1 : a->shape[axis];
        const int64_t stride = axis < 0 ? 0 : a->strides[axis];
        PVG_REQUIRE(counts[i] >= 0, PVG_ERROR_VALUE, "axis %d repeated %lld times", i,
                    static_cast<long long>(counts[i]));
        PVG_REQUIRE(!__builtin_mul_overflow(length, counts[i], &merged[i]), PVG_ERROR_VALUE,
                    "%lld times %lld elements along axis %d are too many",
                    static_cast<long long>(counts[i]), static_cast<long long>(length), i);
        if (counts[i] != 1 && whole) add(counts[i], 0);
        add(length, stride);
        if (counts[i] != 1 && !whole) add(counts[i], 0);
    }
    PVG_PASS(checked_size(n, merged, dtype_size(a->dtype), &size));
    PVG_REQUIRE(parts <= PVG_MAX_NDIM, PVG_ERROR_VALUE, "more than %d axes that are repeated apart",
                PVG_MAX_NDIM);
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, a->dtype, n, merged, nullptr, nullptr, 0));
    if (size == 0) return PVG_OK;
    Temporary source, target;
    contiguous_strides(parts, shape, to);
    PVG_PASS(new_view(a, parts, shape, from, 0, true, &source.array));
    PVG_PASS(new_view(result->array, parts, shape, to, 0, false, &target.array));
    return copy_array(call, source.array, target.array);
}

int run_pad(Call &call, const pvg_array *a, int kind, const void *value, const int64_t *widths,
            Output *result) {
    int device = -1;
    int64_t size = 0, shape[PVG_MAX_NDIM], start = 0;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(a->ndim == 0 || widths, PVG_ERROR_VALUE, "widths is a null pointer");
    for (int i = 0; i < a->ndim; i++) {
        const int64_t before = widths[2 * i], behind = widths[2 * i + 1];
        PVG_REQUIRE(before >= 0 && behind >= 0, PVG_ERROR_VALUE,
                    "axis %d is padded by %lld and %lld elements", i,
                    static_cast<long long>(before), static_cast<long long>(behind));
        PVG_REQUIRE(!__builtin_add_overflow(a->shape[i], before, &shape[i]) &&
                        !__builtin_add_overflow(shape[i], behind, &shape[i]),
                    PVG_ERROR_VALUE, "too many elements along axis %d", i);
    }
    PVG_PASS(checked_size(a->ndim, shape, dtype_size(a->dtype), &size));
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, a->dtype, a->ndim, shape, nullptr, nullptr, 0));
    if (size == 0) return PVG_OK;
    if (size > a->size) PVG_PASS(fill_array(call, result->array, kind, value));
    if (a->size == 0) return PVG_OK;
    for (int i = 0; i < a->ndim; i++) start += widths[2 * i] * result->array->strides[i];
    Temporary target;
    PVG_PASS(new_view(result->array, a->ndim, a->shape, result->array->strides, start, false,
                      &target.array));
    return copy_array(call, a, target.array);
}

int run_diag(Call &call, const pvg_array *a, int64_t offset, Output *result) {
    int device = -1;
    int64_t size = 0, side = 0;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(a->ndim == 1, PVG_ERROR_VALUE, "a diagonal has one dimension, not %d", a->ndim);
    const bool fits = offset > INT64_MIN &&
                      !__builtin_add_overflow(a->size, offset < 0 ? -offset : offset, &side);
    PVG_REQUIRE(fits, PVG_ERROR_VALUE, "no matrix is so large that it has diagonal %lld",
                static_cast<long long>(offset));
    const int64_t shape[2] = {side, side}, step = side + 1;
    const uint8_t zero = 0;
    PVG_PASS(checked_size(2, shape, dtype_size(a->dtype), &size));
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, a->dtype, 2, shape, nullptr, nullptr, 0));
    if (size == 0) return PVG_OK;
    PVG_PASS(fill_array(call, result->array, PVG_SCALAR_BOOL, &zero));
    if (a->size == 0) return PVG_OK;
    Temporary target;
    const int64_t start = offset < 0 ? -offset * side : offset;
    PVG_PASS(new_view(result->array, 1, &a->size, &step, start, false, &target.array));
    return copy_array(call, a, target.array);
}

} // namespace

} // namespace pvg

PVG_API pvg_array *pvg_repeat(const pvg_array *a, int n, const int64_t *counts, int whole) {
    pvg::Call call("repeat");
    pvg::Output result;
    int status = pvg::run_repeat(call, a, n, counts, whole, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_pad(const pvg_array *a, int kind, const void *value, const int64_t *widths) {
    pvg::Call call("pad");
    pvg::Output result;
    int status = pvg::run_pad(call, a, kind, value, widths, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_diag(const pvg_array *a, int64_t offset) {
    pvg::Call call("diag");
    pvg::Output result;
    int status = pvg::run_diag(call, a, offset, &result);
    return result.close(call, status);
}
