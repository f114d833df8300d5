// Reductions: pvg_reduce. The axes of the operand are sorted by stride and merged until the work is
// one of
//
//     [outer, length]           rows: the reduced axis is innermost
//     [outer, length, inner]    columns
//
// and everything else is copied once, with the reduced axes last. Long axes are cut into chunks
// whose length depends on the axes alone; a second kernel merges their totals. The kernels are in
// reduce_kernels.cuh, what they compute is in reduce_accumulators.cuh.
#include "arrays/complex.cuh"
#include "arrays/operation.cuh"
#include "kernels/reduce_kernels.cuh"
#include <string.h>

namespace pvg {
namespace {

using reduce::Columns, reduce::Result, reduce::Rows;

// An axis of the operand, or several merged.
struct Axis {
    int64_t length, stride, result_stride;
    bool reduced;
};

// [outer][length][inner], strides in elements; inner is 1 for rows.
struct Layout {
    int64_t outer = 1, length = 1, inner = 1;
    int64_t outer_stride = 0, length_stride = 1, inner_stride = 1;
    int64_t outer_result_stride = 1, inner_result_stride = 1;
};

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }
int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// The smallest power of two that is not less than n, at most `limit`.
int power_of_two(int64_t n, int limit) {
    int result = 1;
    while (result < n && result < limit) result *= 2;
    return result;
}

// ---- Layout -------------------------------------------------------------------------------------

// The axes of `a`, without those of length 1.
int collect_axes(const pvg_array *a, const bool *reduced, const pvg_array *target, bool keepdims,
                 Axis *axes) {
    int n = 0;
    for (int i = 0, kept = 0; i < a->ndim; i++) {
        int64_t result_stride = reduced[i] ? 0 : target->strides[keepdims ? i : kept];
        kept += !reduced[i];
        if (a->shape[i] != 1) axes[n++] = {a->shape[i], a->strides[i], result_stride, reduced[i]};
    }
    return n;
}

// Sort by stride, outermost first, if the order of the axes does not matter; then merge neighbours
// of a kind that all strides step through evenly. Returns how many are left.
int merge_axes(Axis *axes, int n, bool sort) {
    for (int i = 1; sort && i < n; i++)
        for (int j = i; j > 0 && magnitude(axes[j].stride) > magnitude(axes[j - 1].stride); j--) {
            Axis other = axes[j];
            axes[j] = axes[j - 1], axes[j - 1] = other;
        }
    int merged = 0;
    for (int i = 0; i < n; i++) {
        Axis *outer = merged ? &axes[merged - 1] : nullptr;
        const Axis &inner = axes[i];
        if (outer && outer->reduced == inner.reduced &&
            outer->stride == inner.stride * inner.length &&
            outer->result_stride == inner.result_stride * inner.length)
            *outer = {outer->length * inner.length, inner.stride, inner.result_stride,
                      inner.reduced};
        else
            axes[merged++] = inner;
    }
    return merged;
}

// False if the axes alternate too often for rows and for columns.
bool match_layout(const Axis *axes, int n, Layout *layout) {
    int reduced = -1;
    for (int i = 0; i < n; i++) {
        if (axes[i].reduced && reduced >= 0) return false;
        if (axes[i].reduced) reduced = i;
    }
    int outer = reduced > 0 ? reduced : 0, inner = reduced >= 0 ? n - 1 - reduced : n;
    if (outer > 1 || inner > 1) return false;
    *layout = Layout();
    if (outer) {
        layout->outer = axes[0].length, layout->outer_stride = axes[0].stride;
        layout->outer_result_stride = axes[0].result_stride;
    }
    if (reduced >= 0)
        layout->length = axes[reduced].length, layout->length_stride = axes[reduced].stride;
    if (inner) {
        layout->inner = axes[n - 1].length, layout->inner_stride = axes[n - 1].stride;
        layout->inner_result_stride = axes[n - 1].result_stride;
    }
    return true;
}

// A contiguous copy of `a` with the reduced axes behind the others, and its axes.
int copy_reduced_last(Call &call, const pvg_array *a, Axis *axes, int n, Temporary *copy) {
    Axis sorted[PVG_MAX_NDIM];
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    int count = 0;
    for (bool reduced : {false, true})
        for (int i = 0; i < n; i++)
            if (axes[i].reduced == reduced) sorted[count++] = axes[i];
    for (int i = 0; i < n; i++) shape[i] = sorted[i].length, strides[i] = sorted[i].stride;
    Temporary view;
    PVG_PASS(new_view(a, n, shape, strides, 0, true, &view.array));
    PVG_PASS(new_array(call.device, a->dtype, n, shape, &copy->array));
    for (int i = 0; i < n; i++) axes[i] = sorted[i], axes[i].stride = copy->array->strides[i];
    return copy_array(call, view.array, copy->array);
}

// ---- Launches -----------------------------------------------------------------------------------

template <class Acc>
int merge_partials(Call &call, const Acc *partials, int64_t outer, int64_t chunks, int64_t inner,
                   const Result &result) {
    int down = power_of_two(chunks, reduce::column_threads);
    PVG_LAUNCH(reduce::merge_kernel<Acc>, blocks_for(outer * inner, reduce::column_threads / down),
               reduce::column_threads, 0, call.stream, partials, outer, chunks, inner, down,
               result);
    return PVG_OK;
}

template <class T, class Acc> int reduce_rows(Call &call, const void *data, const Layout &p,
                                              const Result &result) {
    constexpr int pack = reduce::pack_size<T>, size = sizeof(T);
    constexpr int64_t few_threads = 1 << 18; // about what a large card runs at once
    Rows rows = {};
    rows.data = data, rows.rows = p.outer, rows.length = p.length;
    rows.row_stride = p.outer_stride, rows.step = p.length_stride;
    rows.aligned = p.length_stride == 1 && reinterpret_cast<uintptr_t>(data) % (pack * size) == 0 &&
                   p.outer_stride % pack == 0;
    if (ceil_divide(p.length, pack) <= 512) {
        rows.lanes = power_of_two(ceil_divide(p.length, pack), 32);
        bool few = p.outer <= few_threads / rows.lanes;
        rows.groups = few ? p.outer : ceil_divide(p.outer, reduce::rows_per_group);
        PVG_LAUNCH((reduce::short_rows_kernel<T, Acc>),
                   blocks_for(rows.groups, reduce::short_rows_threads / rows.lanes),
                   reduce::short_rows_threads, 0, call.stream, rows, result);
        return PVG_OK;
    }
    int64_t length = p.length; // of which more than an address space holds is a repeated element
    int64_t chunk_bytes = length <= (64 << 10) / size    ? length * size
                          : length <= (8 << 20) / size   ? 16 << 10
                          : length <= (256 << 20) / size ? 256 << 10
                                                         : 512 << 10;
    rows.chunk = chunk_bytes / size < 4096 ? 4096 : chunk_bytes / size;
    rows.chunks = ceil_divide(p.length, rows.chunk);
    Workspace partials;
    Acc *target = nullptr;
    if (rows.chunks > 1) {
        PVG_PASS(partials.open(call, static_cast<size_t>(p.outer * rows.chunks) * sizeof(Acc)));
        target = partials.as<Acc>();
    }
    PVG_LAUNCH((reduce::long_rows_kernel<T, Acc>), blocks_for(p.outer * rows.chunks, 1),
               reduce::long_rows_threads, 0, call.stream, rows, target, result);
    return target ? merge_partials(call, target, p.outer, rows.chunks, 1, result) : PVG_OK;
}

// How the [length][inner] columns of one matrix are dealt to blocks: wide enough to read whole
// sectors, and cut across so that one large matrix makes some 500 blocks.
template <class T> void deal_columns(const Layout &p, Columns *columns) {
    constexpr int pack = reduce::pack_size<T>;
    int across = power_of_two(ceil_divide(p.inner, pack), 32);
    while (across < reduce::column_threads && reduce::column_threads / across > p.length &&
           across * pack < p.inner)
        across *= 2;
    int64_t down = reduce::column_threads / across;
    columns->across = across;
    columns->stripes = ceil_divide(p.inner, across * pack);
    int64_t least = reduce::rows_in_flight * down, most = 4096 * down;
    int64_t chunk = p.length / 512 * columns->stripes + least;
    chunk = chunk / least * least;
    columns->chunk = chunk > most ? most : chunk;
    columns->chunks = ceil_divide(p.length, columns->chunk);
}

template <class T, class Acc>
int reduce_columns(Call &call, const void *data, const Layout &p, const Result &result) {
    constexpr int64_t pack = reduce::pack_size<T>;
    Columns columns = {};
    columns.data = data, columns.outer = p.outer, columns.length = p.length,
    columns.inner = p.inner;
    columns.outer_stride = p.outer_stride, columns.row_stride = p.length_stride,
    columns.step = p.inner_stride;
    columns.aligned = p.inner_stride == 1 &&
                      reinterpret_cast<uintptr_t>(data) % (pack * sizeof(T)) == 0 &&
                      p.outer_stride % pack == 0 && p.length_stride % pack == 0;
    deal_columns<T>(p, &columns);
    Workspace partials;
    Acc *target = nullptr;
    if (columns.chunks > 1) {
        PVG_PASS(partials.open(call, static_cast<size_t>(p.outer * columns.chunks * p.inner) *
                                         sizeof(Acc)));
        target = partials.as<Acc>();
    }
    PVG_LAUNCH((reduce::columns_kernel<T, Acc>),
               blocks_for(p.outer * columns.chunks * columns.stripes, 1), reduce::column_threads, 0,
               call.stream, columns, target, result);
    return target ? merge_partials(call, target, p.outer, columns.chunks, p.inner, result) : PVG_OK;
}

// Outer items are dealt to several launches where a grid could not have a block for each.
template <class T, class Acc> int reduce_as(Call &call, const void *data, const Layout &all,
                                            const Result &result) {
    PVG_REQUIRE(reduce::can_store<Acc>(result.dtype), PVG_ERROR_TYPE, "cannot give %s",
                dtype_name(result.dtype));
    constexpr int64_t most = 1 << 30;
    for (int64_t first = 0; first < all.outer; first += most) {
        Layout p = all;
        p.outer = all.outer - first < most ? all.outer - first : most;
        const T *from = static_cast<const T *>(data) + first * all.outer_stride;
        Result to = result;
        to.data = static_cast<unsigned char *>(result.data) +
                  first * result.outer_stride * dtype_size(result.dtype);
        if (p.length == 0)
            PVG_PASS(merge_partials<Acc>(call, nullptr, p.outer, 0, p.inner, to));
        else if (p.inner == 1)
            PVG_PASS((reduce_rows<T, Acc>(call, from, p, to)));
        else
            PVG_PASS((reduce_columns<T, Acc>(call, from, p, to)));
    }
    return PVG_OK;
}

// Of complex numbers only products: parts are summed as reals, and truth is that of bools.
template <class T, int CODE> constexpr bool has_kernel(Kinds domain) {
    return (kinds_of<T> & domain) != 0 && (!is_complex<T> || CODE == PVG_PROD);
}

int launch_reduction(Call &call, const Operation &operation, const pvg_array *a, const Layout &p,
                     const pvg_array *target) {
    Result result = {};
    result.data = target->data, result.dtype = target->dtype, result.count = p.length;
    result.is_mean = operation.code == PVG_MEAN;
    result.flip = operation.order == Order::smallest ? -1 : 0;
    result.outer_stride = p.outer_result_stride, result.inner_stride = p.inner_result_stride;
    using namespace reduce; // where the rows and what they mention are
    return dispatch(a->dtype, [&](auto tag) {
        using Element = typename decltype(tag)::type;
        using T = std::conditional_t<is_bool<Element>, uint8_t, Element>;
#define PVG_CASE(NAME, name, domain, gives, identity, order, Accumulator) \
    case PVG_##NAME:                                                      \
        if constexpr (has_kernel<Element, PVG_##NAME>(domain)) {          \
            [[maybe_unused]] constexpr Order ORDER = Order::order;        \
            return reduce_as<T, Accumulator>(call, a->data, p, result);   \
        }                                                                 \
        break;
        switch (operation.code) { PVG_REDUCTIONS(PVG_CASE) }
#undef PVG_CASE
        return check_domain(operation, a->dtype, &a, 1);
    });
}

// ---- The operation ------------------------------------------------------------------------------

int mark_axes(const Operation &operation, const pvg_array *a, int naxes, const int *axes,
              bool *reduced) {
    PVG_REQUIRE(naxes >= -1 && (naxes <= 0 || axes), PVG_ERROR_VALUE, "%d axes make no sense",
                naxes);
    PVG_REQUIRE(operation.gives != Gives::index || naxes == -1 || naxes == 1, PVG_ERROR_VALUE,
                "%s takes one axis or all of them, got %d axes", operation.name, naxes);
    for (int i = 0; i < a->ndim; i++) reduced[i] = naxes == -1;
    for (int i = 0; i < naxes; i++) {
        int axis;
        PVG_PASS(normalize_axis(axes[i], a->ndim, &axis));
        PVG_REQUIRE(!reduced[axis], PVG_ERROR_VALUE, "duplicate value in 'axis': %d", axes[i]);
        reduced[axis] = true;
    }
    return PVG_OK;
}

// The shape of the result, and how many elements there are behind each of its own.
int64_t result_shape(const pvg_array *a, const bool *reduced, bool keepdims, int *ndim,
                     int64_t *shape) {
    int64_t length = 1;
    *ndim = 0;
    for (int i = 0; i < a->ndim; i++) {
        if (reduced[i]) length *= a->shape[i];
        if (!reduced[i] || keepdims) shape[(*ndim)++] = reduced[i] ? 1 : a->shape[i];
    }
    return length;
}

// NumPy's words.
int check_not_empty(const Operation &operation, int64_t length) {
    if (length != 0 || operation.identity != Identity::none) return PVG_OK;
    PVG_REQUIRE(operation.gives != Gives::index, PVG_ERROR_VALUE,
                "attempt to get %s of an empty sequence", operation.name);
    return fail(PVG_ERROR_VALUE, "zero-size array to reduction operation %s which has no identity",
                operation.order == Order::largest    ? "maximum"
                : operation.order == Order::smallest ? "minimum"
                                                     : operation.name);
}

// Reduce `a` into `target`, which overlaps nothing; a target that fits no layout is written through
// a contiguous one.
int reduce_into(Call &call, const Operation &operation, const pvg_array *a, const bool *reduced,
                bool keepdims, bool sort, pvg_array *target) {
    Axis axes[PVG_MAX_NDIM], merged[PVG_MAX_NDIM];
    Layout layout;
    Temporary copy, contiguous;
    int n = collect_axes(a, reduced, target, keepdims, axes);
    memcpy(merged, axes, sizeof axes);
    PVG_PASS(call.reads(a));
    if (match_layout(merged, merge_axes(merged, n, sort), &layout))
        return launch_reduction(call, operation, a, layout, target);
    if (!is_contiguous(target)) {
        PVG_PASS(
            new_array(call.device, target->dtype, target->ndim, target->shape, &contiguous.array));
        PVG_PASS(reduce_into(call, operation, a, reduced, keepdims, sort, contiguous.array));
        return copy_array(call, contiguous.array, target);
    }
    PVG_PASS(copy_reduced_last(call, a, axes, n, &copy));
    match_layout(axes, merge_axes(axes, n, false), &layout);
    return launch_reduction(call, operation, copy.array, layout, target);
}

// Of nothing: every element of `target` is the identity, or NaN as a mean.
int reduce_nothing(Call &call, const Operation &operation, const pvg_array *a, pvg_array *target) {
    Temporary contiguous;
    if (!is_contiguous(target)) {
        PVG_PASS(
            new_array(call.device, target->dtype, target->ndim, target->shape, &contiguous.array));
        PVG_PASS(reduce_nothing(call, operation, a, contiguous.array));
        return copy_array(call, contiguous.array, target);
    }
    Layout layout;
    layout.length = 0, layout.inner = target->size;
    return launch_reduction(call, operation, a, layout, target);
}

int reduce_reals(Call &call, const Operation &operation, const pvg_array *a, const bool *reduced,
                 bool keepdims, bool sort, bool nothing, pvg_array *target) {
    if (nothing) return reduce_nothing(call, operation, a, target);
    return reduce_into(call, operation, a, reduced, keepdims, sort, target);
}

// Sums and means of complex numbers are those of their parts: of both at once, as a last axis that
// is kept, where there is room for one.
int reduce_any(Call &call, const Operation &operation, const pvg_array *a, const bool *reduced,
               bool keepdims, bool sort, bool nothing, pvg_array *target) {
    if (!is_among(a->dtype, complexes) || operation.code == PVG_PROD)
        return reduce_reals(call, operation, a, reduced, keepdims, sort, nothing, target);
    if (a->ndim < PVG_MAX_NDIM) {
        bool of_parts[PVG_MAX_NDIM];
        for (int i = 0; i < a->ndim; i++) of_parts[i] = reduced[i];
        of_parts[a->ndim] = false;
        Temporary from, to;
        PVG_PASS(parts_view(a, &from.array));
        PVG_PASS(parts_view(target, &to.array));
        return reduce_reals(call, operation, from.array, of_parts, keepdims, sort, nothing,
                            to.array);
    }
    for (bool imaginary : {false, true}) {
        Temporary from, to;
        PVG_PASS(part_view(a, imaginary, &from.array));
        PVG_PASS(part_view(target, imaginary, &to.array));
        PVG_PASS(
            reduce_reals(call, operation, from.array, reduced, keepdims, sort, nothing, to.array));
    }
    return PVG_OK;
}

int run_reduce(Call &call, int code, const Operation *operation, const pvg_array *a, int naxes,
               const int *axes, bool keepdims, pvg_array *out, Output *result) {
    PVG_REQUIRE(operation, PVG_ERROR_VALUE, "unknown reduction code %d", code);
    int device, ndim;
    bool reduced[PVG_MAX_NDIM];
    int64_t shape[PVG_MAX_NDIM];
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_domain(*operation, a->dtype, &a, 1));
    PVG_PASS(mark_axes(*operation, a, naxes, axes, reduced));
    int64_t length = result_shape(a, reduced, keepdims, &ndim, shape);
    PVG_PASS(check_not_empty(*operation, length));
    PVG_PASS(call.begin(device));
    PVG_PASS(
        result->open(call, dtypes_of(*operation, a->dtype).result, ndim, shape, out, nullptr, 0));
    if (result->array->size == 0) return PVG_OK;
    Temporary truth, apart;
    if (operation->gives == Gives::boolean && is_among(a->dtype, complexes))
        PVG_PASS(as_dtype(call, a, PVG_BOOL, &truth, &a));
    const bool sort = operation->gives != Gives::index || naxes == 1, nothing = length == 0;
    if (!may_overlap(a, result->array))
        return reduce_any(call, *operation, a, reduced, keepdims, sort, nothing, result->array);
    PVG_PASS(new_array(call.device, result->array->dtype, ndim, shape, &apart.array));
    PVG_PASS(reduce_any(call, *operation, a, reduced, keepdims, sort, nothing, apart.array));
    return copy_array(call, apart.array, result->array);
}

} // namespace

Operations reduce_operations() {
#define PVG_ROW(NAME, name, domain, gives, identity, order, Accumulator) \
    {PVG_##NAME, name, Family::reduce, domain, Gives::gives, 0, Identity::identity, Order::order},
    static constexpr Operation rows[] = {PVG_REDUCTIONS(PVG_ROW)};
#undef PVG_ROW
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_reduce(int code, const pvg_array *a, int naxes, const int *axes,
                              int keepdims, pvg_array *out) {
    const pvg::Operation *operation = pvg::reduce_operations().find(code);
    pvg::Call call(operation ? operation->name : "reduce");
    pvg::Output result;
    int status =
        pvg::run_reduce(call, code, operation, a, naxes, axes, keepdims != 0, out, &result);
    return result.close(call, status);
}
