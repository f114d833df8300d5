// Shapes and strides: sizes, contiguity, broadcasting, collapsing dimensions, overlap; see
// array.cuh.
#include "arrays/layout.cuh"
#include <stdio.h>
#include <string.h>

namespace pvg {

int checked_size(int ndim, const int64_t *shape, int64_t item, int64_t *size) {
    PVG_REQUIRE(ndim >= 0 && ndim <= PVG_MAX_NDIM, PVG_ERROR_VALUE,
                "%d dimensions: an array has 0 to %d", ndim, PVG_MAX_NDIM);
    PVG_REQUIRE(ndim == 0 || shape, PVG_ERROR_VALUE, "shape is a null pointer");
    // As NumPy does, lengths of 0 do not hide an overflow of the others.
    int64_t product = item;
    bool empty = false, overflow = false;
    for (int i = 0; i < ndim; i++) {
        PVG_REQUIRE(shape[i] >= 0, PVG_ERROR_VALUE, "negative dimensions are not allowed: shape %s",
                    shape_text(ndim, shape));
        if (shape[i] == 0)
            empty = true;
        else
            overflow |= __builtin_mul_overflow(product, shape[i], &product);
    }
    PVG_REQUIRE(!overflow, PVG_ERROR_VALUE,
                "array is too big: shape %s has more bytes than an address space",
                shape_text(ndim, shape));
    *size = empty ? 0 : product / item;
    return PVG_OK;
}

bool is_contiguous(const pvg_array *a) {
    if (a->size == 0) return true;
    int64_t expected = 1;
    for (int i = a->ndim; i-- > 0;) {
        if (a->shape[i] != 1 && a->strides[i] != expected) return false;
        expected *= a->shape[i];
    }
    return true;
}

void contiguous_strides(int ndim, const int64_t *shape, int64_t *strides) {
    int64_t step = 1;
    for (int i = ndim; i-- > 0;) {
        strides[i] = step;
        if (shape[i] > 0) step *= shape[i];
    }
}

bool same_shape(const pvg_array *a, int ndim, const int64_t *shape) {
    return a->ndim == ndim &&
           memcmp(a->shape, shape, static_cast<size_t>(ndim) * sizeof *shape) == 0;
}

int broadcast_shapes(const pvg_array *const *arrays, int n, int *ndim, int64_t *shape) {
    int dims = 0;
    for (int k = 0; k < n; k++)
        if (arrays[k]->ndim > dims) dims = arrays[k]->ndim;
    for (int i = 0; i < dims; i++) {
        int64_t length = 1;
        for (int k = 0; k < n; k++) {
            int j = i - (dims - arrays[k]->ndim);
            int64_t here = j < 0 ? 1 : arrays[k]->shape[j];
            if (here == 1) continue;
            if (length == 1) length = here;
            if (length == here) continue;
            return fail(PVG_ERROR_VALUE, "shapes %s cannot be broadcast together",
                        shape_text(arrays, n));
        }
        shape[i] = length;
    }
    *ndim = dims;
    return PVG_OK;
}

void broadcast_strides(const pvg_array *a, int ndim, const int64_t *shape, int64_t *strides) {
    int missing = ndim - a->ndim;
    for (int i = 0; i < ndim; i++) {
        int j = i - missing;
        strides[i] = j < 0 || (a->shape[j] == 1 && shape[i] != 1) ? 0 : a->strides[j];
    }
}

const char *shape_text(int ndim, const int64_t *shape) {
    static thread_local char texts[4][256];
    static thread_local unsigned turn;
    char *text = texts[turn++ % 4];
    size_t at = static_cast<size_t>(snprintf(text, sizeof texts[0], "("));
    for (int i = 0; i < ndim && at < sizeof texts[0] - 32; i++)
        at += static_cast<size_t>(snprintf(text + at, sizeof texts[0] - at, i ? ", %lld" : "%lld",
                                           static_cast<long long>(shape[i])));
    snprintf(text + at, sizeof texts[0] - at, ndim == 1 ? ",)" : ")");
    return text;
}

// "a, b and c"; what does not fit is left out.
template <size_t SIZE, class F> static void list_text(char (&text)[SIZE], int n, F text_of) {
    size_t at = 0;
    for (int i = 0; i < n && at < SIZE; i++) {
        const char *before = i == 0 ? "" : i == n - 1 ? " and " : ", ";
        at += static_cast<size_t>(snprintf(text + at, SIZE - at, "%s%s", before, text_of(i)));
    }
}

const char *shape_text(const pvg_array *const *arrays, int n) {
    static thread_local char text[512];
    list_text(text, n, [&](int i) { return shape_text(arrays[i]); });
    return text;
}

const char *dtype_text(const pvg_array *const *arrays, int n) {
    static thread_local char text[256];
    list_text(text, n, [&](int i) { return dtype_name(arrays[i]->dtype); });
    return text;
}

int normalize_axis(int axis, int ndim, int *result) {
    PVG_REQUIRE(axis >= -ndim && axis < ndim, PVG_ERROR_AXIS,
                "axis %d is out of bounds for array of dimension %d", axis, ndim);
    *result = axis < 0 ? axis + ndim : axis;
    return PVG_OK;
}

namespace {

// First and one past the last byte of a view.
void byte_range(const pvg_array *a, uintptr_t *first, uintptr_t *end) {
    int64_t low = 0, high = 0, item = dtype_size(a->dtype);
    for (int i = 0; i < a->ndim; i++)
        (a->strides[i] < 0 ? low : high) += (a->shape[i] - 1) * a->strides[i];
    *first = reinterpret_cast<uintptr_t>(a->data) + static_cast<uintptr_t>(low * item);
    *end = reinterpret_cast<uintptr_t>(a->data) + static_cast<uintptr_t>((high + 1) * item);
}

} // namespace

bool may_overlap(const pvg_array *a, const pvg_array *b) {
    if (a->size == 0 || b->size == 0) return false;
    uintptr_t a0, a1, b0, b1;
    byte_range(a, &a0, &a1);
    byte_range(b, &b0, &b1);
    return a0 < b1 && b0 < a1;
}

bool safe_in_place(const pvg_array *input, int ndim, const int64_t *shape, const pvg_array *out) {
    if (!may_overlap(input, out)) return true;
    if (input->data != out->data || input->dtype != out->dtype) return false;
    int64_t strides[PVG_MAX_NDIM];
    broadcast_strides(input, ndim, shape, strides);
    for (int i = 0; i < ndim; i++)
        if (shape[i] != 1 && strides[i] != out->strides[i]) return false;
    return true;
}

namespace {

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

void swap_dimensions(int operands, int i, int j, int64_t *shape, int64_t (*strides)[PVG_MAX_NDIM]) {
    int64_t t = shape[i];
    shape[i] = shape[j], shape[j] = t;
    for (int k = 0; k < operands; k++) {
        t = strides[k][i];
        strides[k][i] = strides[k][j], strides[k][j] = t;
    }
}

} // namespace

void collapse(int operands, int *ndim, int64_t *shape, int64_t (*strides)[PVG_MAX_NDIM]) {
    int n = 0;
    for (int i = 0; i < *ndim; i++) {
        if (shape[i] == 1) continue;
        shape[n] = shape[i];
        for (int k = 0; k < operands; k++) strides[k][n] = strides[k][i];
        n++;
    }
    for (int i = 1; i < n; i++) // stable: equal strides keep their order
        for (int j = i; j > 0 && magnitude(strides[0][j - 1]) < magnitude(strides[0][j]); j--)
            swap_dimensions(operands, j - 1, j, shape, strides);
    int last = 0;
    for (int i = 1; i < n; i++) {
        bool even = true;
        for (int k = 0; k < operands; k++)
            even = even && strides[k][last] == shape[i] * strides[k][i];
        if (even) {
            shape[last] *= shape[i];
        } else {
            last++;
            shape[last] = shape[i];
        }
        for (int k = 0; k < operands; k++) strides[k][last] = strides[k][i];
    }
    *ndim = n == 0 ? 0 : last + 1;
}

} // namespace pvg
