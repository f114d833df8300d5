// For gather.cu: what a key with arrays among its items (pvg_index_get) names.
#pragma once
#include "arrays/key.cuh"
#include "kernels/pictures.cuh"

namespace pvg {

namespace {

// A view of the array, which is no handle, and arrays of indices along some of its axes; or an
// array of bools for its first ones.
struct Named {
    pvg_array view;
    int count = 0, place = 0;
    int axes[PVG_MAX_NDIM], original[PVG_MAX_NDIM]; // of the view, and of the array
    const pvg_array *arrays[PVG_MAX_NDIM];
    const pvg_array *mask = nullptr;
    bool from_end = true; // negative indices count from there
};

// Walks over the items of a key. Whatever is not for it is the error VALUE.
struct Reader {
    const pvg_array *a;
    Named *named;
    int axis = 0, others = 0, dropped = 0; // axes: of the array so far; beside indices; by integers
    bool begun = false, apart = false, between = false;
    int64_t offset = 0;

    int add(int64_t length, int64_t stride) {
        pvg_array &view = named->view;
        PVG_REQUIRE(view.ndim < PVG_MAX_NDIM, PVG_ERROR_VALUE, "a view of too many axes");
        view.shape[view.ndim] = length, view.strides[view.ndim++] = stride;
        return PVG_OK;
    }
    int add_whole(int n) {
        for (; n > 0; n--, axis++, others++) PVG_PASS(add(a->shape[axis], a->strides[axis]));
        return PVG_OK;
    }
    // NumPy's rule: the indices' axes stand where the first array or integer was, or first of all
    // if something else stands between two of these.
    void begin_block() {
        if (!begun)
            named->place = others;
        else if (named->place != others || between)
            apart = true;
        begun = true, between = false;
    }
    int add_slice(const int64_t *item) {
        const int64_t length = a->shape[axis], stride = a->strides[axis];
        const int64_t step = item[0] & PVG_KEY_STEP ? item[3] : 1;
        PVG_REQUIRE(step != 0, PVG_ERROR_VALUE, "slice step cannot be zero");
        int64_t start = 0;
        const int64_t shown = slice_of(item, length, step, &start);
        offset += shown > 0 ? start * stride : 0;
        axis++, others++;
        return add(shown, shown > 1 ? stride * step : stride);
    }
    int add_integer(int64_t index) {
        const int64_t length = a->shape[axis];
        PVG_REQUIRE(index >= -length && index < length, PVG_ERROR_VALUE, "an index out of range");
        offset += (index < 0 ? index + length : index) * a->strides[axis++];
        begin_block();
        return PVG_OK;
    }
    int add_array(const int64_t *item) {
        const pvg_array *indices = reinterpret_cast<const pvg_array *>(item[1]);
        PVG_PASS(check_array(indices, "an array of a key"));
        PVG_REQUIRE(device_of(indices) == device_of(a) && indices->ndim > 0 &&
                        is_among(indices->dtype, integers),
                    PVG_ERROR_VALUE, "an array that is no index here");
        PVG_REQUIRE(a->shape[axis] > 0 || indices->size == 0, PVG_ERROR_VALUE, "an axis of size 0");
        begin_block();
        named->axes[named->count] = named->view.ndim, named->original[named->count] = axis;
        named->arrays[named->count++] = indices;
        named->from_end = named->from_end && item[2] != PVG_FROM_START;
        const int at = axis++;
        return add(a->shape[at], a->strides[at]);
    }
    int add_item(const int64_t *item, int rest) {
        const int64_t kind = item[0];
        if (kind == PVG_KEY_REST) {
            between = true;
            return add_whole(rest);
        }
        if (kind == PVG_KEY_NEW) {
            others++;
            return add(1, 1);
        }
        if (kind == PVG_KEY_INTEGER) return add_integer(item[1]);
        return kind == PVG_KEY_ARRAY ? add_array(item) : add_slice(item);
    }
};

int read_mask(const pvg_array *a, const pvg_array *mask, Named *named) {
    bool fits = device_of(mask) == device_of(a) && mask->ndim > 0 && mask->ndim <= a->ndim;
    for (int i = 0; fits && i < mask->ndim; i++) fits = mask->shape[i] == a->shape[i];
    PVG_REQUIRE(fits, PVG_ERROR_VALUE, "bools of shape %s for an array of shape %s",
                shape_text(mask), shape_text(a));
    named->mask = mask;
    return PVG_OK;
}

int read_key(const pvg_array *a, int n, const int64_t *items, Named *named) {
    PVG_PASS(check_array(a, "a"));
    PVG_REQUIRE(n >= 1 && n <= 2 * PVG_MAX_NDIM && items, PVG_ERROR_VALUE,
                "a key of %d items, at %p", n, static_cast<const void *>(items));
    named->view = *a, named->view.ndim = 0;
    if (n == 1 && items[0] == PVG_KEY_ARRAY) {
        const pvg_array *alone = reinterpret_cast<const pvg_array *>(items[1]);
        PVG_PASS(check_array(alone, "an array of a key"));
        if (alone->dtype == PVG_BOOL) return read_mask(a, alone, named);
    }
    int given = 0, rests = 0;
    for (int i = 0; i < n; i++) {
        const int64_t kind = items[4 * i];
        PVG_REQUIRE(kind == PVG_KEY_ARRAY || is_key(kind), PVG_ERROR_VALUE,
                    "item %d of a key is of no kind", i);
        given += kind != PVG_KEY_NEW && kind != PVG_KEY_REST, rests += kind == PVG_KEY_REST;
    }
    PVG_REQUIRE(rests <= 1 && given <= a->ndim, PVG_ERROR_VALUE,
                "%d items and %d ellipses for an array of %d dimensions", given, rests, a->ndim);
    Reader reader{a, named};
    for (int i = 0; i < n; i++) PVG_PASS(reader.add_item(items + 4 * i, a->ndim - given));
    PVG_PASS(reader.add_whole(a->ndim - reader.axis));
    PVG_REQUIRE(named->count > 0, PVG_ERROR_VALUE, "a key without arrays");
    if (reader.apart) named->place = 0;
    named->view.data += a->size > 0 ? reader.offset * dtype_size(a->dtype) : 0;
    named->view.size = 1;
    for (int i = 0; i < named->view.ndim; i++) named->view.size *= named->view.shape[i];
    return PVG_OK;
}

// The arrays of a key as planes of one shape and dtype: themselves, or copies.
struct Planes {
    int ndim = 0;
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    bool wide = false;
    const pvg_array *arrays[PVG_MAX_NDIM];
    Temporary converted[PVG_MAX_NDIM], spread[PVG_MAX_NDIM];
};

// written: what the indices must not share memory with, or NULL.
int make_planes(Call &call, const Named &named, const pvg_array *written, Planes *planes) {
    PVG_PASS(broadcast_shapes(named.arrays, named.count, &planes->ndim, planes->shape));
    int64_t size = 0, strides[PVG_MAX_NDIM];
    PVG_PASS(checked_size(planes->ndim, planes->shape, sizeof(int64_t) * named.count, &size));
    bool even = true;
    for (int j = 0; j < named.count; j++) planes->wide |= named.arrays[j]->dtype != PVG_INT32;
    for (int j = 0; j < named.count; j++) {
        const pvg_array *&one = planes->arrays[j] = named.arrays[j];
        if (planes->wide && one->dtype != PVG_UINT64) // which would wrap
            PVG_PASS(as_dtype(call, one, PVG_INT64, &planes->converted[j], &one));
        broadcast_strides(one, planes->ndim, planes->shape, strides);
        for (int i = 0; i < planes->ndim; i++) {
            if (j == 0) planes->strides[i] = strides[i];
            even = even && planes->strides[i] == strides[i];
        }
        if (written) even = even && !may_overlap(one, written);
    }
    if (even) return PVG_OK;
    contiguous_strides(planes->ndim, planes->shape, planes->strides);
    for (int j = 0; j < named.count; j++) {
        const pvg_array *&one = planes->arrays[j];
        if (is_contiguous(one) && same_shape(one, planes->ndim, planes->shape) &&
            !(written && may_overlap(one, written)))
            continue;
        pvg_array *&copy = planes->spread[j].array;
        PVG_PASS(new_array(call.device, one->dtype, planes->ndim, planes->shape, &copy));
        PVG_PASS(copy_array(call, one, copy));
        one = copy;
    }
    return PVG_OK;
}

// The picture of what a key names, of which the stream may read the indices.
int picture_key(Call &call, const Named &named, const Planes &planes, Picture *p) {
    bool is_indexed[PVG_MAX_NDIM];
    PVG_PASS(check_axes(&named.view, named.count, named.axes, is_indexed));
    PVG_PASS(picture_planes(&named.view, planes.ndim, planes.shape, planes.strides, named.count,
                            named.axes, is_indexed, named.place, p));
    picture_axes(&named.view, named.count, named.axes, planes.wide, p);
    p->indices.from_end = named.from_end;
    for (int j = 0; j < named.count; j++) {
        p->indices.first[j] = planes.arrays[j]->data;
        p->indices.natural |= uint64_t(planes.arrays[j]->dtype == PVG_UINT64) << j;
        p->indices.axis[j] = static_cast<int8_t>(named.original[j]);
        PVG_PASS(call.reads(planes.arrays[j]));
    }
    return PVG_OK;
}

} // namespace

} // namespace pvg
