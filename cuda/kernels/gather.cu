// pvg_gather and pvg_scatter: elements at the places that arrays of indices name.
//
// Elements are only moved, so one kernel per size of what a thread moves at a time. Rows in which
// all elements have the same indices are moved in words of up to 16 bytes, as if these were the
// elements. Of elements that are written several times the last one wins, whatever runs when:
// gather_kernels.cuh finds out which that is.
#include "arrays/operation.cuh"
#include "kernels/gather_kernels.cuh"

namespace pvg {

namespace {

constexpr int gather_threads = 256;
constexpr int gather_each = 4; // words a thread

// FLAT is the side without indices: the result of a gather, the values of a scatter.
template <class T, bool SCATTER>
__global__ void __launch_bounds__(gather_threads)
    gather_kernel(const __grid_constant__ Moves moves) {
    int64_t position[gather_each], offsets[3][gather_each];
    const int64_t first = int64_t(blockIdx.x) * gather_each * gather_threads + threadIdx.x;
#pragma unroll
    for (int e = 0; e < gather_each; e++) position[e] = first + e * gather_threads;
    locate(moves.walk, position, offsets);
    T *flat = static_cast<T *>(moves.flat), *indexed = static_cast<T *>(moves.indexed);
    T word[gather_each] = {};
    int64_t by[gather_each];
#pragma unroll
    for (int e = 0; e < gather_each; e++) by[e] = position[e] < moves.size ? 0 : not_written;
    displace(moves.indices, offsets[2], by);
#pragma unroll
    for (int e = 0; e < gather_each; e++)
        if (by[e] != not_written)
            word[e] = SCATTER ? flat[offsets[0][e]] : indexed[offsets[1][e] + by[e]];
#pragma unroll
    for (int e = 0; e < gather_each; e++) {
        if (by[e] == not_written) continue;
        if (SCATTER)
            indexed[offsets[1][e] + by[e]] = word[e];
        else
            flat[offsets[0][e]] = word[e];
    }
}

// ---- What is moved from where to where ----------------------------------------------------------

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

int check_axes(const pvg_array *a, int count, const int *axes, bool (&is_indexed)[PVG_MAX_NDIM]) {
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
int picture_along(const pvg_array *a, const pvg_array *indices, int axis, Picture *p) {
    bool fits = indices->ndim == a->ndim;
    for (int i = 0; fits && i < a->ndim; i++) fits = i == axis || indices->shape[i] == a->shape[i];
    PVG_REQUIRE(fits, PVG_ERROR_VALUE,
                "indices of shape %s do not lie along axis %d of an array of shape %s",
                shape_text(indices), axis, shape_text(a));
    p->ndim = a->ndim;
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

// Indices of shape (count, ...): the axes "..." stand before the array's other ones from `place`.
int picture_among(const pvg_array *a, const pvg_array *indices, int count, const int *axes,
                  const bool (&is_indexed)[PVG_MAX_NDIM], int place, Picture *p) {
    const int others = a->ndim - count, ndim = others + indices->ndim - 1;
    PVG_REQUIRE(indices->ndim >= 1 && indices->shape[0] == count, PVG_ERROR_VALUE,
                "indices along %d axes have shape (%d, ...), not %s", count, count,
                shape_text(indices));
    PVG_REQUIRE(place >= 0 && place <= others, PVG_ERROR_VALUE,
                "place %d is not among %d other axes", place, others);
    PVG_REQUIRE(ndim <= PVG_MAX_NDIM, PVG_ERROR_VALUE, "an array has at most %d dimensions, not %d",
                PVG_MAX_NDIM, ndim);
    int other = 0;
    for (int i = 0; i < ndim; i++) {
        p->chosen[i] = i >= place && i < place + indices->ndim - 1;
        const int b = i - place + 1;
        while (!p->chosen[i] && is_indexed[other]) other++;
        p->shape[i] = p->chosen[i] ? indices->shape[b] : a->shape[other];
        p->index[i] = p->chosen[i] ? indices->strides[b] : 0;
        p->indexed[i] = p->chosen[i] ? 0 : a->strides[other++];
        p->key[i] = 0;
    }
    p->ndim = ndim;
    p->indices.plane = indices->strides[0];
    for (int j = count - 1; j >= 0; p->keys *= a->shape[axes[j--]]) p->indices.key[j] = p->keys;
    return PVG_OK;
}

int make_picture(const pvg_array *a, const pvg_array *indices, int count, const int *axes,
                 int place, Picture *p) {
    bool is_indexed[PVG_MAX_NDIM];
    PVG_PASS(check_axes(a, count, axes, is_indexed));
    if (place == PVG_ALONG) {
        PVG_REQUIRE(count == 1, PVG_ERROR_VALUE, "indices lie along one axis, not %d", count);
        PVG_PASS(picture_along(a, indices, axes[0], p));
    } else {
        PVG_PASS(picture_among(a, indices, count, axes, is_indexed, place, p));
    }
    p->indices.count = count;
    p->indices.wide = indices->dtype == PVG_INT64;
    p->indices.first = indices->data;
    for (int j = 0; j < count; j++) {
        p->indices.length[j] = a->shape[axes[j]];
        p->indices.stride[j] = a->strides[axes[j]];
        PVG_REQUIRE(a->shape[axes[j]] > 0 || indices->size == 0, PVG_ERROR_INDEX,
                    "an index is out of bounds for axis %d with size 0", axes[j]);
    }
    return PVG_OK;
}

// How many elements a word has: as many as 16 bytes hold, if rows, strides and addresses allow it.
int64_t elements_of_a_word(const Moves &moves, const Walk<4> &walk, int64_t item) {
    const int last = walk.ndim - 1;
    if (last < 0 || walk.strides[1][last] != 1 || walk.strides[2][last] != 1 ||
        walk.strides[3][last] != 0)
        return 1;
    uint64_t bits = static_cast<uint64_t>(walk.shape[last] * item) |
                    reinterpret_cast<uintptr_t>(moves.flat) |
                    reinterpret_cast<uintptr_t>(moves.indexed);
    for (int i = 0; i < last; i++)
        bits |= static_cast<uint64_t>(walk.strides[1][i] * item) |
                static_cast<uint64_t>(walk.strides[2][i] * item);
    for (int j = 0; j < moves.indices.count; j++)
        bits |= static_cast<uint64_t>(moves.indices.stride[j] * item);
    int64_t bytes = 16;
    while (bytes > item && bits % static_cast<uint64_t>(bytes) != 0) bytes /= 2;
    return bytes > item ? bytes / item : 1;
}

// Fills in the moves; returns the bytes of a word. flat: strides of the side without indices.
int64_t prepare_moves(const Picture &p, const int64_t *flat, int64_t item, Moves *moves) {
    Walk<4> walk; // C order; the side without indices; the other; the indices
    walk.ndim = p.ndim;
    contiguous_strides(p.ndim, p.shape, walk.strides[0]);
    for (int i = 0; i < p.ndim; i++) {
        walk.shape[i] = p.shape[i], walk.strides[1][i] = flat[i];
        walk.strides[2][i] = p.indexed[i], walk.strides[3][i] = p.index[i];
    }
    collapse(&walk);
    moves->indices = p.indices;
    const int64_t n = elements_of_a_word(*moves, walk, item);
    const int last = walk.ndim - 1;
    if (n > 1) {
        walk.shape[last] /= n;
        for (int i = 0; i < last; i++) walk.strides[1][i] /= n, walk.strides[2][i] /= n;
        for (int j = 0; j < p.indices.count; j++) moves->indices.stride[j] /= n;
    }
    moves->size = 1;
    moves->walk.walk.ndim = walk.ndim;
    for (int i = 0; i < walk.ndim; i++) {
        moves->size *= moves->walk.walk.shape[i] = walk.shape[i];
        for (int k = 0; k < 3; k++) moves->walk.walk.strides[k][i] = walk.strides[k + 1][i];
    }
    prepare(&moves->walk);
    return n * item;
}

template <bool SCATTER> int launch_moves(Call &call, const Moves &moves, int64_t bytes) {
    const auto launch_words = [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const unsigned blocks = blocks_for(moves.size, gather_threads * gather_each);
        PVG_LAUNCH((gather_kernel<T, SCATTER>), blocks, gather_threads, 0, call.stream, moves);
        return PVG_OK;
    };
    switch (bytes) {
    case 1: return launch_words(Tag<uint8_t>());
    case 2: return launch_words(Tag<uint16_t>());
    case 4: return launch_words(Tag<uint32_t>());
    case 8: return launch_words(Tag<uint64_t>());
    }
    return launch_words(Tag<Bytes16>());
}

// ---- The calls ----------------------------------------------------------------------------------

// Indices in int32 or int64, in `holder` if they were not.
int readable_indices(Call &call, const pvg_array *given, Temporary *holder,
                     const pvg_array **result) {
    PVG_REQUIRE(is_among(given->dtype, integers), PVG_ERROR_TYPE, "indices are integers, not %s",
                dtype_name(given->dtype));
    *result = given;
    if (given->dtype == PVG_INT32) return PVG_OK;
    return as_dtype(call, given, PVG_INT64, holder, result);
}

int run_gather(Call &call, const pvg_array *a, const pvg_array *indices, int count, const int *axes,
               int place, int trusted, Output *result) {
    const pvg_array *operands[2] = {a, indices};
    int device = -1;
    Temporary converted;
    Picture p;
    PVG_PASS(check_operands(operands, 2, &device));
    PVG_PASS(call.begin(device));
    PVG_PASS(readable_indices(call, indices, &converted, &indices));
    PVG_PASS(make_picture(a, indices, count, axes, place, &p));
    if (!trusted) PVG_PASS(check_range(call, indices, axes, p.indices));
    PVG_PASS(result->open(call, a->dtype, p.ndim, p.shape, nullptr, nullptr, 0));
    if (result->array->size == 0) return PVG_OK;
    Moves moves{};
    moves.flat = result->array->data, moves.indexed = a->data;
    const int64_t bytes = prepare_moves(p, result->array->strides, dtype_size(a->dtype), &moves);
    PVG_PASS(call.reads(a));
    PVG_PASS(call.reads(indices));
    return launch_moves<false>(call, moves, bytes);
}

// The values as the array's dtype and not its memory, and their strides along the axes of p.
int readable_values(Call &call, const pvg_array *a, const Picture &p, Temporary (&holders)[3],
                    const pvg_array **values, int64_t *strides) {
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

// Whether places that are named twice may be given different values.
bool needs_order(const Picture &p, const int64_t *values) {
    bool differ = false;
    for (int i = 0; i < p.ndim; i++)
        differ = differ || (p.chosen[i] && p.shape[i] > 1 && values[i] != 0);
    return differ;
}

// The walk over the indices, in C order.
void picture_writes(const Picture &p, Writes *writes) {
    Walk<3> walk; // C order; the indices; the keys beside them
    walk.ndim = 0, writes->size = 1, writes->keys = p.keys;
    for (int i = 0; i < p.ndim; i++) {
        if (!p.chosen[i]) continue;
        walk.shape[walk.ndim] = p.shape[i];
        walk.strides[1][walk.ndim] = p.index[i], walk.strides[2][walk.ndim++] = p.key[i];
        writes->size *= p.shape[i];
    }
    contiguous_strides(walk.ndim, walk.shape, walk.strides[0]);
    collapse(&walk);
    Walk<2> &to = writes->walk.walk;
    to.ndim = walk.ndim;
    for (int i = 0; i < walk.ndim; i++) {
        to.shape[i] = walk.shape[i];
        for (int k = 0; k < 2; k++) to.strides[k][i] = walk.strides[k + 1][i];
    }
    prepare(&writes->walk);
}

int launch_scatter(Call &call, pvg_array *a, const pvg_array *indices, Picture p,
                   const pvg_array *values, const int64_t *strides) {
    Moves moves{};
    Workspace found;
    moves.flat = values->data, moves.indexed = a->data;
    PVG_PASS(call.reads(indices));
    PVG_PASS(call.reads(values));
    PVG_PASS(call.writes(a));
    const bool ordered = needs_order(p, strides);
    Writes writes{};
    if (ordered) { // the indices make room for displacements, which lie in C order
        picture_writes(p, &writes);
        int64_t step = 1;
        for (int i = p.ndim - 1; i >= 0; i--) {
            p.index[i] = p.chosen[i] ? step : 0;
            step *= p.chosen[i] ? p.shape[i] : 1;
        }
    }
    const int64_t bytes = prepare_moves(p, strides, dtype_size(a->dtype), &moves);
    if (ordered) PVG_PASS(find_last(call, writes, &moves.indices, &found));
    return launch_moves<true>(call, moves, bytes);
}

int run_scatter(Call &call, pvg_array *a, const pvg_array *indices, int count, const int *axes,
                int place, int trusted, const pvg_array *values) {
    const pvg_array *operands[3] = {a, indices, values};
    int device = -1;
    int64_t strides[PVG_MAX_NDIM];
    Temporary converted, copied, holders[3];
    Picture p;
    PVG_PASS(check_operands(operands, 3, &device));
    PVG_REQUIRE(!a->readonly, PVG_ERROR_VALUE, "the array of shape %s and dtype %s is read-only",
                shape_text(a), dtype_name(a->dtype));
    PVG_PASS(call.begin(device));
    PVG_PASS(readable_indices(call, indices, &converted, &indices));
    if (may_overlap(indices, a)) {
        PVG_PASS(new_array(device, indices->dtype, indices->ndim, indices->shape, &copied.array));
        PVG_PASS(copy_array(call, indices, copied.array));
        indices = copied.array;
    }
    PVG_PASS(make_picture(a, indices, count, axes, place, &p));
    if (!trusted) PVG_PASS(check_range(call, indices, axes, p.indices));
    PVG_PASS(readable_values(call, a, p, holders, &values, strides));
    for (int i = 0; i < p.ndim; i++)
        if (p.shape[i] == 0) return PVG_OK;
    return launch_scatter(call, a, indices, p, values, strides);
}

} // namespace

Operations gather_operations() {
    static constexpr Operation rows[] = {
        {PVG_GATHER, "gather", Family::other, all_kinds, Gives::same},
        {PVG_SCATTER, "scatter", Family::other, all_kinds, Gives::none},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_gather(const pvg_array *a, const pvg_array *indices, int count,
                              const int *axes, int place, int trusted) {
    pvg::Call call("gather");
    pvg::Output result;
    int status = pvg::run_gather(call, a, indices, count, axes, place, trusted, &result);
    return result.close(call, status);
}

PVG_API int pvg_scatter(pvg_array *a, const pvg_array *indices, int count, const int *axes,
                        int place, int trusted, const pvg_array *values) {
    pvg::Call call("scatter");
    return pvg::run_scatter(call, a, indices, count, axes, place, trusted, values);
}
