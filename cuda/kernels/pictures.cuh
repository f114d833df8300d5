// What gather, scatter and accumulate make of their arguments: a picture of the result, of which
// axes are the array's and which those of the indices, and operands that kernels can read.
#pragma once
#include "kernels/places.cuh"

namespace pvg {

namespace {

// An array, some axes of it and the indices along them: in the order of the result's axes.
struct Picture {
    int ndim = 0;
    int64_t shape[PVG_MAX_NDIM];   // of the result
    int64_t indexed[PVG_MAX_NDIM]; // strides: of the array, 0 where indices say where
    int64_t index[PVG_MAX_NDIM];   // of the indices, 0 along the array's other axes
    bool chosen[PVG_MAX_NDIM];     // an axis of the indices
    int64_t key[PVG_MAX_NDIM];     // strides of what tells places apart, beside the indices
    int64_t keys = 1;              // how many places there are
    Indices indices;
};

inline int check_axes(const pvg_array *a, int count, const int *axes,
                      bool (&is_indexed)[PVG_MAX_NDIM]) {
    PVG_REQUIRE(axes && count >= 1 && count <= a->ndim, PVG_ERROR_VALUE,
                "takes indices along 1 to %d axes, got %d", a->ndim, axes ? count : 0);
    for (int i = 0; i < PVG_MAX_NDIM; i++) is_indexed[i] = false;
    for (int j = 0; j < count; j++) {
        PVG_REQUIRE(axes[j] >= 0 && axes[j] < a->ndim, PVG_ERROR_AXIS,
                    "axis %d is out of bounds for an array of dimension %d", axes[j], a->ndim);
        PVG_REQUIRE(!is_indexed[axes[j]], PVG_ERROR_VALUE, "axis %d is there twice", axes[j]);
        is_indexed[axes[j]] = true;
    }
    return PVG_OK;
}

// Indices that lie along the array: one for each element of a result of their shape.
inline int picture_along(const pvg_array *a, const pvg_array *indices, int axis, Picture *p) {
    bool fits = indices->ndim == a->ndim;
    for (int i = 0; fits && i < a->ndim; i++) fits = i == axis || indices->shape[i] == a->shape[i];
    PVG_REQUIRE(fits, PVG_ERROR_VALUE,
                "indices of shape %s do not lie along axis %d of an array of shape %s",
                shape_text(indices), axis, shape_text(a));
    p->ndim = a->ndim;
    p->indices.first[0] = indices->data;
    contiguous_strides(a->ndim, a->shape, p->key);
    p->indices.key[0] = p->key[axis];
    p->keys = a->size;
    for (int i = 0; i < a->ndim; i++) {
        p->shape[i] = indices->shape[i], p->index[i] = indices->strides[i], p->chosen[i] = true;
        p->indexed[i] = i == axis ? 0 : a->strides[i];
        if (i == axis) p->key[i] = 0;
    }
    return PVG_OK;
}

// Indices that lie in planes of one shape, an axis of the array each: the planes' axes stand before
// the array's other ones from `place`.
inline int picture_planes(const pvg_array *a, int dimensions, const int64_t *lengths,
                          const int64_t *strides, int count, const int *axes,
                          const bool (&is_indexed)[PVG_MAX_NDIM], int place, Picture *p) {
    const int others = a->ndim - count, ndim = others + dimensions;
    PVG_REQUIRE(place >= 0 && place <= others, PVG_ERROR_VALUE,
                "place %d is not among %d other axes", place, others);
    PVG_REQUIRE(ndim <= PVG_MAX_NDIM, PVG_ERROR_VALUE, "an array has at most %d dimensions, not %d",
                PVG_MAX_NDIM, ndim);
    int other = 0;
    for (int i = 0; i < ndim; i++) {
        p->chosen[i] = i >= place && i < place + dimensions;
        const int b = i - place;
        while (!p->chosen[i] && is_indexed[other]) other++;
        p->shape[i] = p->chosen[i] ? lengths[b] : a->shape[other];
        p->index[i] = p->chosen[i] ? strides[b] : 0;
        p->indexed[i] = p->chosen[i] ? 0 : a->strides[other++];
        p->key[i] = 0;
    }
    p->ndim = ndim;
    for (int j = count - 1; j >= 0; p->keys *= a->shape[axes[j--]]) p->indices.key[j] = p->keys;
    return PVG_OK;
}

// Indices of shape (count, ...), as pvg_gather takes them.
inline int picture_among(const pvg_array *a, const pvg_array *indices, int count, const int *axes,
                         const bool (&is_indexed)[PVG_MAX_NDIM], int place, Picture *p) {
    PVG_REQUIRE(indices->ndim >= 1 && indices->shape[0] == count, PVG_ERROR_VALUE,
                "indices along %d axes have shape (%d, ...), not %s", count, count,
                shape_text(indices));
    PVG_PASS(picture_planes(a, indices->ndim - 1, indices->shape + 1, indices->strides + 1, count,
                            axes, is_indexed, place, p));
    const int64_t step = indices->strides[0] * dtype_size(indices->dtype);
    for (int j = 0; j < count; j++) p->indices.first[j] = indices->data + j * step;
    return PVG_OK;
}

// What remains to be said of the axes that have indices.
inline void picture_axes(const pvg_array *a, int count, const int *axes, bool wide, Picture *p) {
    p->indices.count = count, p->indices.wide = wide;
    for (int j = 0; j < count; j++) {
        p->indices.length[j] = a->shape[axes[j]];
        p->indices.stride[j] = a->strides[axes[j]];
        p->indices.axis[j] = static_cast<int8_t>(axes[j]);
    }
}

inline int make_picture(const pvg_array *a, const pvg_array *indices, int count, const int *axes,
                        int place, Picture *p) {
    bool is_indexed[PVG_MAX_NDIM];
    PVG_PASS(check_axes(a, count, axes, is_indexed));
    if (place == PVG_ALONG) {
        PVG_REQUIRE(count == 1, PVG_ERROR_VALUE, "indices lie along one axis, not %d", count);
        PVG_PASS(picture_along(a, indices, axes[0], p));
    } else {
        PVG_PASS(picture_among(a, indices, count, axes, is_indexed, place, p));
    }
    picture_axes(a, count, axes, indices->dtype != PVG_INT32, p);
    if (indices->dtype == PVG_UINT64) p->indices.natural = ~uint64_t(0);
    for (int j = 0; j < count; j++)
        PVG_REQUIRE(a->shape[axes[j]] > 0 || indices->size == 0, PVG_ERROR_INDEX,
                    "an index is out of bounds for axis %d with size 0", axes[j]);
    return PVG_OK;
}

// Indices in int32, int64 or uint64, in `holder` if they were not.
inline int readable_indices(Call &call, const pvg_array *given, Temporary *holder,
                            const pvg_array **result) {
    PVG_REQUIRE(is_among(given->dtype, integers), PVG_ERROR_TYPE, "indices are integers, not %s",
                dtype_name(given->dtype));
    *result = given;
    if (given->dtype == PVG_INT32 || given->dtype == PVG_UINT64) return PVG_OK;
    return as_dtype(call, given, PVG_INT64, holder, result);
}

// The values as the array's dtype and not its memory, and their strides along the axes of p.
inline int readable_values(Call &call, const pvg_array *a, const Picture &p,
                           Temporary (&holders)[3], const pvg_array **values, int64_t *strides) {
    const pvg_array *v = *values;
    const int extra = v->ndim > p.ndim ? v->ndim - p.ndim : 0;
    bool fits = true;
    for (int i = 0; i < v->ndim; i++) {
        const int j = i + p.ndim - v->ndim;
        fits = fits && (v->shape[i] == 1 || (j >= 0 && v->shape[i] == p.shape[j]));
    }
    PVG_REQUIRE(fits, PVG_ERROR_VALUE,
                "shape mismatch: an array of shape %s cannot be broadcast to the shape %s of what "
                "the indices name",
                shape_text(v), shape_text(p.ndim, p.shape));
    PVG_PASS(as_dtype(call, v, a->dtype, &holders[0], &v));
    if (may_overlap(v, a)) {
        PVG_PASS(new_array(call.device, v->dtype, v->ndim, v->shape, &holders[1].array));
        PVG_PASS(copy_array(call, v, holders[1].array));
        v = holders[1].array;
    }
    if (extra) {
        PVG_PASS(new_view(v, p.ndim, v->shape + extra, v->strides + extra, 0, v->readonly,
                          &holders[2].array));
        v = holders[2].array;
    }
    broadcast_strides(v, p.ndim, p.shape, strides);
    *values = v;
    return PVG_OK;
}

// A walk for kernels. Its first operand, the C order that it had to keep, is left out.
template <int N> void locate_by(const Walk<N + 1> &walk, Locator<N> *locator) {
    locator->walk.ndim = walk.ndim;
    for (int i = 0; i < walk.ndim; i++) {
        locator->walk.shape[i] = walk.shape[i];
        for (int k = 0; k < N; k++) locator->walk.strides[k][i] = walk.strides[k + 1][i];
    }
    prepare(locator);
}

// The walk over the indices, in C order. values: strides along the axes of p; NULL where somebody
// else finds the values and the way along the axes that are not indexed.
inline void picture_writes(const Picture &p, const int64_t *values, Writes *writes) {
    Walk<5> walk; // C order; the indices; the keys beside them; the values; the array
    walk.ndim = 0, writes->size = 1, writes->keys = p.keys;
    for (int i = 0; i < p.ndim; i++) {
        if (!p.chosen[i]) continue;
        walk.shape[walk.ndim] = p.shape[i];
        walk.strides[1][walk.ndim] = p.index[i], walk.strides[2][walk.ndim] = p.key[i];
        walk.strides[3][walk.ndim] = values ? values[i] : 0;
        walk.strides[4][walk.ndim++] = values ? p.indexed[i] : 0;
        writes->size *= p.shape[i];
    }
    contiguous_strides(walk.ndim, walk.shape, walk.strides[0]);
    collapse(&walk);
    locate_by(walk, &writes->walk);
}

// Indices out of range are looked for, and reported as this operation's.
inline int expect_reports(Call &call, Report operation, Indices *indices) {
    indices->operation = operation;
    return call.reports(&indices->slot);
}

// The same where nothing else is to do. The stream may read the indices.
inline int look_at_indices(Call &call, const Picture &p) {
    if (!p.indices.slot) return PVG_OK;
    for (int i = 0; i < p.ndim; i++)
        if (p.chosen[i] && p.shape[i] == 0) return PVG_OK;
    Writes writes{};
    picture_writes(p, nullptr, &writes);
    PVG_LAUNCH(places_kernel, blocks_for(writes.size, index_threads), index_threads, 0, call.stream,
               writes, p.indices, Places{});
    return PVG_OK;
}

} // namespace

} // namespace pvg
