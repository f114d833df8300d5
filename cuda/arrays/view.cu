// Views: slices, permutations, reshapes and broadcasts share the memory of the array they are made
// from.
#include "arrays/call.cuh"
#include "arrays/key.cuh"
#include <string.h>

namespace pvg {

static int slice(Call &, const pvg_array *a, const int64_t *start, const int64_t *step,
                 const int64_t *length, pvg_array **result) {
    PVG_PASS(check_array(a, "a"));
    PVG_REQUIRE(a->ndim == 0 || (start && step && length), PVG_ERROR_VALUE,
                "start, step or length is a null pointer");
    int64_t strides[PVG_MAX_NDIM], offset = 0;
    for (int i = 0; i < a->ndim; i++) {
        PVG_REQUIRE(length[i] >= 0, PVG_ERROR_VALUE, "length of axis %d is negative: %lld", i,
                    static_cast<long long>(length[i]));
        int64_t reach = 0, last = start[i];
        bool fits = length[i] == 0 || (!__builtin_mul_overflow(length[i] - 1, step[i], &reach) &&
                                       !__builtin_add_overflow(start[i], reach, &last) &&
                                       start[i] >= 0 && start[i] < a->shape[i] && last >= 0 &&
                                       last < a->shape[i] && (step[i] != 0 || length[i] == 1));
        PVG_REQUIRE(fits, PVG_ERROR_INDEX,
                    "start %lld, step %lld, length %lld do not fit axis %d of shape %s",
                    static_cast<long long>(start[i]), static_cast<long long>(step[i]),
                    static_cast<long long>(length[i]), i, shape_text(a));
        strides[i] = length[i] > 1 ? a->strides[i] * step[i] : a->strides[i];
        offset += a->size > 0 && length[i] > 0 ? a->strides[i] * start[i] : 0;
    }
    return new_view(a, a->ndim, length, strides, offset, false, result);
}

static int index(Call &, const pvg_array *a, int n, const int64_t *items, pvg_array **result) {
    PVG_PASS(check_array(a, "a"));
    PVG_REQUIRE(n >= 0 && (n == 0 || items), PVG_ERROR_VALUE, "a key of %d items, at %p", n, items);
    int given = 0, rests = 0;
    for (int i = 0; i < n; i++) {
        int64_t kind = items[4 * i];
        PVG_REQUIRE(is_key(kind), PVG_ERROR_VALUE, "item %d of a key is of no kind", i);
        given += kind != PVG_KEY_NEW && kind != PVG_KEY_REST, rests += kind == PVG_KEY_REST;
    }
    PVG_REQUIRE(rests <= 1, PVG_ERROR_INDEX, "an index can only have a single ellipsis ('...')");
    PVG_REQUIRE(given <= a->ndim, PVG_ERROR_INDEX,
                "too many indices: %d for an array of %d dimensions", given, a->ndim);
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM], offset = 0;
    int axis = 0, ndim = 0;
    auto add = [&](int64_t length, int64_t stride) {
        if (ndim < PVG_MAX_NDIM) shape[ndim] = length, strides[ndim] = stride;
        ndim++;
    };
    auto whole = [&](int count) {
        for (int i = 0; i < count; i++, axis++) add(a->shape[axis], a->strides[axis]);
    };
    for (int i = 0; i < n; i++) {
        const int64_t *item = items + 4 * i;
        if (item[0] == PVG_KEY_REST) {
            whole(a->ndim - given);
            continue;
        }
        if (item[0] == PVG_KEY_NEW) {
            add(1, 1);
            continue;
        }
        int64_t length = a->shape[axis], stride = a->strides[axis], start = item[1];
        if (item[0] == PVG_KEY_INTEGER) {
            PVG_REQUIRE(start >= -length && start < length, PVG_ERROR_INDEX,
                        "index %lld is out of bounds for axis %d with size %lld",
                        static_cast<long long>(start), axis, static_cast<long long>(length));
            offset += (start < 0 ? start + length : start) * stride;
        } else {
            int64_t step = item[0] & PVG_KEY_STEP ? item[3] : 1;
            PVG_REQUIRE(step != 0, PVG_ERROR_VALUE, "slice step cannot be zero");
            int64_t shown = slice_of(item, length, step, &start);
            add(shown, shown > 1 ? stride * step : stride);
            offset += start * stride; // of nothing it is not used
        }
        axis++;
    }
    whole(a->ndim - axis);
    PVG_REQUIRE(ndim <= PVG_MAX_NDIM, PVG_ERROR_VALUE, "an array has at most %d dimensions, not %d",
                PVG_MAX_NDIM, ndim);
    return new_view(a, ndim, shape, strides, offset, false, result);
}

static int permute(Call &, const pvg_array *a, const int *axes, pvg_array **result) {
    PVG_PASS(check_array(a, "a"));
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    bool seen[PVG_MAX_NDIM] = {};
    for (int i = 0; i < a->ndim; i++) {
        int axis = 0;
        PVG_PASS(normalize_axis(axes ? axes[i] : -1 - i, a->ndim, &axis));
        PVG_REQUIRE(!seen[axis], PVG_ERROR_VALUE, "repeated axis %d in a permutation", axes[i]);
        seen[axis] = true;
        shape[i] = a->shape[axis], strides[i] = a->strides[axis];
    }
    return new_view(a, a->ndim, shape, strides, 0, false, result);
}

static int diagonal(Call &, const pvg_array *a, int64_t offset, int axis1, int axis2,
                    pvg_array **result) {
    PVG_PASS(check_array(a, "a"));
    PVG_REQUIRE(a->ndim >= 2, PVG_ERROR_VALUE, "diagonal takes two dimensions or more, not %d",
                a->ndim);
    PVG_PASS(normalize_axis(axis1, a->ndim, &axis1));
    PVG_PASS(normalize_axis(axis2, a->ndim, &axis2));
    PVG_REQUIRE(axis1 != axis2, PVG_ERROR_VALUE, "axis %d twice, where two span matrices", axis1);
    const int64_t rows = a->shape[axis1], columns = a->shape[axis2];
    offset = offset < -rows ? -rows : offset > columns ? columns : offset;
    const int64_t down = offset < 0 ? -offset : 0, across = offset > 0 ? offset : 0;
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < a->ndim; i++)
        if (i != axis1 && i != axis2) shape[ndim] = a->shape[i], strides[ndim++] = a->strides[i];
    shape[ndim] = rows - down < columns - across ? rows - down : columns - across;
    strides[ndim++] = a->strides[axis1] + a->strides[axis2];
    return new_view(a, ndim, shape, strides, down * a->strides[axis1] + across * a->strides[axis2],
                    false, result);
}

static int broadcast_to(Call &, const pvg_array *a, int ndim, const int64_t *shape,
                        pvg_array **result) {
    PVG_PASS(check_array(a, "a"));
    int64_t size = 0, strides[PVG_MAX_NDIM];
    PVG_PASS(checked_size(ndim, shape, 1, &size));
    bool fits = a->ndim <= ndim;
    for (int i = 0; fits && i < a->ndim; i++) {
        int64_t length = shape[i + ndim - a->ndim];
        fits = a->shape[i] == length || a->shape[i] == 1;
    }
    PVG_REQUIRE(fits, PVG_ERROR_VALUE, "shape %s cannot be broadcast to %s", shape_text(a),
                shape_text(ndim, shape));
    broadcast_strides(a, ndim, shape, strides);
    return new_view(a, ndim, shape, strides, 0, true, result);
}

// The shape of `a` without axes of length 1; how many are left.
static int squeezed(const pvg_array *a, int64_t *shape) {
    int ndim = 0;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != 1) shape[ndim++] = a->shape[i];
    return ndim;
}

// The target shape with its one -1 worked out. Errors: VALUE.
static int resolve_shape(const pvg_array *a, int ndim, const int64_t *shape, int64_t *resolved) {
    PVG_REQUIRE(ndim >= 0 && ndim <= PVG_MAX_NDIM, PVG_ERROR_VALUE,
                "%d dimensions: an array has 0 to %d", ndim, PVG_MAX_NDIM);
    PVG_REQUIRE(ndim == 0 || shape, PVG_ERROR_VALUE, "shape is a null pointer");
    int unknown = -1;
    int64_t known = 1;
    for (int i = 0; i < ndim; i++) {
        resolved[i] = shape[i];
        if (shape[i] == -1) {
            PVG_REQUIRE(unknown < 0, PVG_ERROR_VALUE, "only one dimension of %s can be -1",
                        shape_text(ndim, shape));
            unknown = i;
        } else {
            PVG_REQUIRE(shape[i] >= 0, PVG_ERROR_VALUE, "negative dimension in shape %s",
                        shape_text(ndim, shape));
            PVG_REQUIRE(!__builtin_mul_overflow(known, shape[i], &known), PVG_ERROR_VALUE,
                        "shape %s is too big", shape_text(ndim, shape));
        }
    }
    bool fits = unknown < 0 ? known == a->size : known != 0 && a->size % known == 0;
    PVG_REQUIRE(fits, PVG_ERROR_VALUE,
                "an array of shape %s (%lld elements) cannot be reshaped to %s", shape_text(a),
                static_cast<long long>(a->size), shape_text(ndim, shape));
    if (unknown >= 0) resolved[unknown] = a->size / known;
    return PVG_OK;
}

// Strides that show the elements of `a`, in C order, under another shape; false if no view can.
static bool view_strides(const pvg_array *a, int ndim, const int64_t *shape, int64_t *strides) {
    Walk<1> walk; // the array's dimensions, neighbours merged, in their own order
    int n = 0;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] == 1) continue;
        if (n > 0 && walk.strides[0][n - 1] == a->shape[i] * a->strides[i]) {
            walk.shape[n - 1] *= a->shape[i];
            walk.strides[0][n - 1] = a->strides[i];
        } else {
            walk.shape[n] = a->shape[i], walk.strides[0][n] = a->strides[i];
            n++;
        }
    }
    int from = n - 1;
    int64_t left = n ? walk.shape[from] : 1, step = n ? walk.strides[0][from] : 1;
    for (int i = ndim; i-- > 0;) {
        if (shape[i] == 1) {
            strides[i] = step;
            continue;
        }
        if (left == 1 && from > 0) from--, left = walk.shape[from], step = walk.strides[0][from];
        if (left % shape[i] != 0) return false;
        strides[i] = step;
        step *= shape[i], left /= shape[i];
    }
    return true;
}

static int contiguous(Call &call, const pvg_array *a, pvg_array **result) {
    PVG_PASS(check_array(a, "a"));
    if (is_contiguous(a)) return new_view(a, a->ndim, a->shape, a->strides, 0, false, result);
    Temporary copy;
    PVG_PASS(call.begin(device_of(a)));
    PVG_PASS(new_array(device_of(a), a->dtype, a->ndim, a->shape, &copy.array));
    PVG_PASS(copy_array(call, a, copy.array));
    *result = copy.take();
    return PVG_OK;
}

static int reshape(Call &call, const pvg_array *a, int ndim, const int64_t *shape,
                   pvg_array **result) {
    PVG_PASS(check_array(a, "a"));
    int64_t resolved[PVG_MAX_NDIM], strides[PVG_MAX_NDIM], longer[PVG_MAX_NDIM];
    if (ndim == -1 && !shape) ndim = squeezed(a, longer), shape = longer;
    PVG_PASS(resolve_shape(a, ndim, shape, resolved));
    if (a->size == 0) {
        contiguous_strides(ndim, resolved, strides);
        return new_view(a, ndim, resolved, strides, 0, false, result);
    }
    if (view_strides(a, ndim, resolved, strides))
        return new_view(a, ndim, resolved, strides, 0, false, result);
    Temporary copy;
    PVG_PASS(contiguous(call, a, &copy.array));
    contiguous_strides(ndim, resolved, strides);
    return new_view(copy.array, ndim, resolved, strides, 0, false, result);
}

} // namespace pvg

using pvg::Call;

PVG_API pvg_array *pvg_slice(const pvg_array *a, const int64_t *start, const int64_t *step,
                             const int64_t *length) {
    Call call("slice");
    pvg_array *result = nullptr;
    return pvg::slice(call, a, start, step, length, &result) == PVG_OK ? result : nullptr;
}

PVG_API pvg_array *pvg_index(const pvg_array *a, int n, const int64_t *items) {
    Call call("index");
    pvg_array *result = nullptr;
    return pvg::index(call, a, n, items, &result) == PVG_OK ? result : nullptr;
}

PVG_API pvg_array *pvg_permute(const pvg_array *a, const int *axes) {
    Call call("permute");
    pvg_array *result = nullptr;
    return pvg::permute(call, a, axes, &result) == PVG_OK ? result : nullptr;
}

PVG_API pvg_array *pvg_reshape(const pvg_array *a, int ndim, const int64_t *shape) {
    Call call("reshape");
    pvg_array *result = nullptr;
    return pvg::reshape(call, a, ndim, shape, &result) == PVG_OK ? result : nullptr;
}

PVG_API pvg_array *pvg_diagonal(const pvg_array *a, int64_t offset, int axis1, int axis2) {
    Call call("diagonal");
    pvg_array *result = nullptr;
    return pvg::diagonal(call, a, offset, axis1, axis2, &result) == PVG_OK ? result : nullptr;
}

PVG_API pvg_array *pvg_broadcast_to(const pvg_array *a, int ndim, const int64_t *shape) {
    Call call("broadcast_to");
    pvg_array *result = nullptr;
    return pvg::broadcast_to(call, a, ndim, shape, &result) == PVG_OK ? result : nullptr;
}

PVG_API pvg_array *pvg_contiguous(const pvg_array *a) {
    Call call("contiguous");
    pvg_array *result = nullptr;
    return pvg::contiguous(call, a, &result) == PVG_OK ? result : nullptr;
}
