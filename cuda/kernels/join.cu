// pvg_concat: arrays one behind the other along an axis, or side by side along a new one.
//
// Seen from the axis on, an array is rows: one for each place along the axes before it. A row of
// the result is made of a row of each part. One launch writes it: a thread has 16 bytes of the
// result and looks for the part, or the few parts, that they come from. Nothing is computed, so
// elements are moved in units: the largest power of two that addresses and lengths are multiples
// of, which is often 16 bytes whatever the dtype.
//
// A rolled array is its end joined with its beginning.
//
// A part whose rows are not contiguous, or that has another dtype, is copied by itself; the others
// go together, as many as a kernel's parameters can describe.
#include "arrays/call.cuh"
#include "arrays/complex.cuh"
#include "arrays/operation.cuh"
#include "arrays/vector.cuh"

namespace pvg {

namespace {

constexpr int join_threads = 128; // one array in, one out: see arrays/map.cuh
constexpr int most_parts = 64;    // of a launch

// A row of a part, and where it lies in a row of the result.
struct Piece {
    uintptr_t from; // where row 0 would begin if the piece began at the row's first unit
    int64_t stride; // bytes from row to row
    int64_t end;    // units of the row up to here
};

struct Join {
    Piece pieces[most_parts];
    unsigned char *to;
    int64_t size, row; // units in all, and of a row
    int64_t to_stride; // bytes from row to row
    int count;         // pieces; none is empty
    bool narrow;       // size is below 2^32
    bool whole;        // 16 bytes of the result lie side by side and aligned, also across rows
};

// The piece that a unit of a row is in.
__device__ __forceinline__ int piece_at(const Join &job, int64_t at) {
    int low = 0, high = job.count - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (at >= job.pieces[middle].end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// 16 bytes of a piece, of which `begin` and `end` are the first byte and the one behind the last.
// Of units that are smaller than a word, words are read, as far as they lie within the piece.
template <class U, int N>
__device__ __forceinline__ void load(Vector<U, N> *vector, uintptr_t from, uintptr_t begin,
                                     uintptr_t end) {
    if (from % 16 == 0) {
        *vector = *reinterpret_cast<const Vector<U, N> *>(from);
        return;
    }
    if constexpr (sizeof(U) < 4) {
        const unsigned rest = from % 4;
        const uint32_t *word = reinterpret_cast<const uint32_t *>(from - rest);
        if (rest == 0 || (from - rest >= begin && from - rest + 20 <= end)) {
            uint32_t in[5], out[4];
#pragma unroll
            for (int i = 0; i < 4; i++) in[i] = word[i];
            in[4] = rest ? word[4] : 0;
#pragma unroll
            for (int i = 0; i < 4; i++) out[i] = __funnelshift_r(in[i], in[i + 1], 8 * rest);
            memcpy(vector, out, sizeof out);
            return;
        }
    }
    const U *unit = reinterpret_cast<const U *>(from);
#pragma unroll
    for (int e = 0; e < N; e++) vector->element[e] = unit[e];
}

template <class U>
__global__ void __launch_bounds__(join_threads) join_kernel(const __grid_constant__ Join job) {
    constexpr int count = 16 / sizeof(U), unit = sizeof(U);
    const int64_t first = (static_cast<int64_t>(blockIdx.x) * join_threads + threadIdx.x) * count;
    if (first >= job.size) return;
    int64_t row = 0;
    if (job.size > job.row)
        row = job.narrow ? static_cast<uint32_t>(first) / static_cast<uint32_t>(job.row)
                         : first / job.row;
    int64_t at = first - row * job.row;
    int p = piece_at(job, at);
    Vector<U, count> vector = {};
    const bool full = first + count <= job.size;
    if (full && at + count <= job.pieces[p].end) {
        const uintptr_t origin =
            job.pieces[p].from + static_cast<uintptr_t>(row * job.pieces[p].stride);
        const int64_t begin = p ? job.pieces[p - 1].end : 0;
        load(&vector, origin + at * unit, origin + begin * unit, origin + job.pieces[p].end * unit);
    } else {
        int64_t here = at, line = row;
        int q = p;
#pragma unroll
        for (int e = 0; e < count; e++) {
            if (first + e >= job.size) break;
            const uintptr_t origin =
                job.pieces[q].from + static_cast<uintptr_t>(line * job.pieces[q].stride);
            vector.element[e] = *reinterpret_cast<const U *>(origin + here * unit);
            if (++here < job.pieces[q].end) continue;
            if (++q < job.count) continue;
            q = 0, here = 0, line++;
        }
    }
    if (full && job.whole) {
        *reinterpret_cast<Vector<U, count> *>(job.to + first * unit) = vector;
        return;
    }
#pragma unroll
    for (int e = 0; e < count; e++) {
        if (first + e >= job.size) break;
        *reinterpret_cast<U *>(job.to + row * job.to_stride + at * unit) = vector.element[e];
        if (++at == job.row) at = 0, row++;
    }
}

// ---- Parts --------------------------------------------------------------------------------------

// Where parts go: the result's axes before the joined one are `rows`, the others make up a row.
struct Place {
    int axis;
    bool stacked; // the parts lack the axis
    int64_t rows, inner;
};

// If every row of a part is contiguous and they follow each other by one stride, that; in elements.
bool find_rows(const pvg_array *part, const Place &place, int64_t *stride) {
    int64_t expected = 1;
    for (int i = part->ndim - 1; i >= place.axis; i--) {
        if (part->shape[i] == 1) continue;
        if (part->strides[i] != expected) return false;
        expected *= part->shape[i];
    }
    bool found = false;
    for (int i = place.axis - 1; i >= 0; i--) {
        if (part->shape[i] == 1) continue;
        if (found && part->strides[i] != expected) return false;
        if (!found) *stride = part->strides[i];
        found = true;
        expected = part->strides[i] * part->shape[i];
    }
    if (!found) *stride = 0;
    return true;
}

int64_t length_of(const pvg_array *part, const Place &place) {
    return place.stacked ? 1 : part->shape[place.axis];
}

// Pieces that are counted in bytes until here, from `column` on, an element of the result's rows.
int launch_join(Call &call, Join *job, const Place &place, int64_t column, pvg_array *target) {
    const int64_t item = dtype_size(target->dtype);
    job->to = target->data + column * item;
    job->row = job->pieces[job->count - 1].end;
    job->to_stride = place.rows > 1 ? target->size / place.rows * item : 0;
    uint64_t bits = reinterpret_cast<uintptr_t>(job->to) | static_cast<uint64_t>(job->to_stride);
    for (int i = 0; i < job->count; i++) {
        const Piece &piece = job->pieces[i];
        bits |= piece.from | static_cast<uint64_t>(piece.stride) | static_cast<uint64_t>(piece.end);
    }
    const int64_t unit = static_cast<int64_t>(bits % 16 ? bits & -bits : 16);
    const bool aligned = reinterpret_cast<uintptr_t>(job->to) % 16 == 0;
    job->whole = aligned && (place.rows == 1 || job->row == job->to_stride);
    for (int i = 0; i < job->count; i++) job->pieces[i].end /= unit;
    job->row /= unit;
    job->size = job->row * place.rows;
    job->narrow = job->size <= UINT32_MAX;
    const auto launch = [&](auto tag) -> int {
        using U = typename decltype(tag)::type;
        PVG_LAUNCH(join_kernel<U>, blocks_for(job->size, join_threads * (16 / sizeof(U))),
                   join_threads, 0, call.stream, *job);
        return PVG_OK;
    };
    switch (unit) {
    case 1: return launch(Tag<uint8_t>());
    case 2: return launch(Tag<uint16_t>());
    case 4: return launch(Tag<uint32_t>());
    case 8: return launch(Tag<uint64_t>());
    default: return launch(Tag<Bytes16>());
    }
}

// One part into its place in the result, whatever its dtype and layout are.
int copy_part(Call &call, const pvg_array *part, const Place &place, int64_t column,
              pvg_array *target) {
    int64_t strides[PVG_MAX_NDIM];
    for (int i = 0; i < part->ndim; i++)
        strides[i] = target->strides[i < place.axis || !place.stacked ? i : i + 1];
    Temporary view;
    PVG_PASS(new_view(target, part->ndim, part->shape, strides, column, false, &view.array));
    return copy_array(call, part, view.array);
}

int join_parts(Call &call, const pvg_array *const *parts, int n, const Place &place,
               pvg_array *target) {
    const int64_t item = dtype_size(target->dtype);
    Join job;
    job.count = 0;
    int64_t column = 0, first = 0; // elements of a row: so far, and where the pieces begin
    for (int i = 0; i < n; i++) {
        const int64_t length = length_of(parts[i], place) * place.inner;
        int64_t stride = 0;
        if (length == 0) continue;
        const bool fits = parts[i]->dtype == target->dtype && find_rows(parts[i], place, &stride);
        if (job.count && (!fits || job.count == most_parts)) {
            PVG_PASS(launch_join(call, &job, place, first, target));
            job.count = 0;
        }
        if (fits) {
            if (job.count == 0) first = column;
            const uintptr_t before = static_cast<uintptr_t>((column - first) * item);
            PVG_PASS(call.reads(parts[i]));
            job.pieces[job.count++] = {reinterpret_cast<uintptr_t>(parts[i]->data) - before,
                                       stride * item, (column - first + length) * item};
        } else {
            PVG_PASS(copy_part(call, parts[i], place, column, target));
        }
        column += length;
    }
    return job.count ? launch_join(call, &job, place, first, target) : PVG_OK;
}

// ---- The operation ------------------------------------------------------------------------------

// The shape of the result. Errors: VALUE (shapes that do not fit together), AXIS.
int joined_shape(const pvg_array *const *parts, int n, int axis, bool stacked, Place *place,
                 int *ndim, int64_t *shape) {
    *ndim = parts[0]->ndim + stacked;
    PVG_REQUIRE(parts[0]->ndim || stacked, PVG_ERROR_VALUE,
                "zero-dimensional arrays cannot be concatenated");
    PVG_REQUIRE(*ndim <= PVG_MAX_NDIM, PVG_ERROR_VALUE,
                "an array has at most %d dimensions, not %d", PVG_MAX_NDIM, *ndim);
    PVG_PASS(normalize_axis(axis, *ndim, &axis));
    int64_t length = 0;
    for (int k = 0; k < n; k++) {
        bool fits = parts[k]->ndim == parts[0]->ndim;
        for (int i = 0; fits && i < parts[0]->ndim; i++)
            fits = parts[k]->shape[i] == parts[0]->shape[i] || (i == axis && !stacked);
        PVG_REQUIRE(fits, PVG_ERROR_VALUE, "shapes %s do not fit together along axis %d",
                    shape_text(parts, n), axis);
        const int64_t more = stacked ? 1 : parts[k]->shape[axis];
        PVG_REQUIRE(!__builtin_add_overflow(length, more, &length), PVG_ERROR_VALUE,
                    "too many elements along axis %d", axis);
    }
    *place = {axis, stacked, 1, 1};
    for (int i = 0; i < *ndim; i++) {
        shape[i] = i == axis ? length : parts[0]->shape[stacked && i > axis ? i - 1 : i];
        if (i < axis) place->rows *= shape[i];
        if (i > axis) place->inner *= shape[i];
    }
    return PVG_OK;
}

int joined_dtype(const pvg_array *const *parts, int n, int *dtype) {
    const bool promoted = *dtype == -1;
    if (promoted) *dtype = parts[0]->dtype;
    for (int k = 1; promoted && k < n; k++) *dtype = promote(*dtype, parts[k]->dtype);
    PVG_PASS(check_kinds(*dtype, all_kinds));
    for (int k = 0; k < n; k++) PVG_PASS(check_castable(parts[k]->dtype, *dtype));
    return PVG_OK;
}

int run_concat(Call &call, const pvg_array *const *parts, int n, int axis, int stacked, int dtype,
               Output *result) {
    int device = -1, ndim = 0;
    int64_t shape[PVG_MAX_NDIM], size = 0;
    Place place;
    PVG_REQUIRE(n >= 1 && parts, PVG_ERROR_VALUE, "needs at least one array");
    PVG_REQUIRE(stacked == 0 || stacked == 1, PVG_ERROR_VALUE, "stacked is 0 or 1, got %d",
                stacked);
    PVG_PASS(check_operands(parts, n, &device));
    PVG_PASS(joined_dtype(parts, n, &dtype));
    PVG_PASS(joined_shape(parts, n, axis, stacked != 0, &place, &ndim, shape));
    PVG_PASS(checked_size(ndim, shape, dtype_size(dtype), &size));
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, dtype, ndim, shape, nullptr, nullptr, 0));
    return size ? join_parts(call, parts, n, place, result->array) : static_cast<int>(PVG_OK);
}

int run_roll(Call &call, const pvg_array *a, int axis, int flat, int64_t shift, Output *result) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(flat == 0 || flat == 1, PVG_ERROR_VALUE, "flat is 0 or 1, got %d", flat);
    if (!flat) PVG_PASS(normalize_axis(axis, a->ndim, &axis));
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, a->dtype, a->ndim, a->shape, nullptr, nullptr, 0));
    if (a->size == 0) return PVG_OK;
    Temporary straight, in_a_row, end, beginning;
    Place place = {flat ? 0 : axis, false, 1, 1};
    for (int i = 0; !flat && i < a->ndim; i++) {
        if (i < axis) place.rows *= a->shape[i];
        if (i > axis) place.inner *= a->shape[i];
    }
    if (flat) {
        const int64_t one = 1;
        PVG_PASS(as_contiguous(call, a, &straight, &a));
        PVG_PASS(new_view(a, 1, &a->size, &one, 0, false, &in_a_row.array));
        a = in_a_row.array;
    }
    const int64_t length = a->shape[place.axis], at = length - (shift % length + length) % length;
    int64_t shape[PVG_MAX_NDIM];
    for (int i = 0; i < a->ndim; i++) shape[i] = a->shape[i];
    shape[place.axis] = length - at;
    PVG_PASS(
        new_view(a, a->ndim, shape, a->strides, at * a->strides[place.axis], false, &end.array));
    shape[place.axis] = at;
    PVG_PASS(new_view(a, a->ndim, shape, a->strides, 0, false, &beginning.array));
    const pvg_array *parts[2] = {end.array, beginning.array};
    return join_parts(call, parts, 2, place, result->array);
}

} // namespace

Operations join_operations() {
    static constexpr Operation rows[] = {
        {PVG_CONCAT, "concat", Family::other, all_kinds, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_concat(const pvg_array *const *parts, int n, int axis, int stacked,
                              int dtype) {
    pvg::Call call("concat");
    pvg::Output result;
    int status = pvg::run_concat(call, parts, n, axis, stacked, dtype, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_roll(const pvg_array *a, int axis, int flat, int64_t shift) {
    pvg::Call call("roll");
    pvg::Output result;
    int status = pvg::run_roll(call, a, axis, flat, shift, &result);
    return result.close(call, status);
}
