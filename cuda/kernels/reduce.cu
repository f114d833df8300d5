// Reductions: pvg_reduce. The axes of the operand are sorted by stride and merged until the work is
// one of
//
//     [outer, length]           rows: the reduced axis is innermost
//     [outer, length, inner]    columns
//
// Where kept and reduced axes alternate, neighbours that are reduced are columns of which a block
// merges the totals. Or one kernel looks for each of a few elements by itself; of many the longest
// reduced axis goes one of these ways, and a second kernel merges its totals along the others. What
// is left is copied once, with the reduced axes last. Long axes are cut into chunks whose length
// depends on the axes alone; the second kernel merges their totals as well. The kernels are in
// reduce_kernels.cuh, what they compute is in reduce_accumulators.cuh.
#include "arrays/complex.cuh"
#include "arrays/operation.cuh"
#include "kernels/reduce_launch.cuh"
#include <string.h>

namespace pvg {
namespace {

using reduce::AnyAxes, reduce::Layout, reduce::Reduction, reduce::Result;

// An axis of the operand, or several merged.
struct Axis {
    int64_t length, stride, result_stride;
    bool reduced;
};

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

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

// The axes from `begin` to `end` are stepped through evenly, as if they were one.
bool is_one_axis(const Axis *axes, int begin, int end) {
    for (int i = begin; i + 1 < end; i++)
        if (axes[i].stride != axes[i + 1].stride * axes[i + 1].length) return false;
    return true;
}

// [outer][length][inner] around this axis. False if others are not stepped through evenly.
bool match_around(const Axis *axes, int n, int at, Layout *layout) {
    if (!is_one_axis(axes, 0, at) || !is_one_axis(axes, at + 1, n)) return false;
    *layout = Layout();
    for (int i = 0; i < n; i++) {
        if (i == at)
            layout->length = axes[i].length, layout->length_stride = axes[i].stride;
        else if (i < at)
            layout->outer *= axes[i].length, layout->outer_stride = axes[i].stride,
                                             layout->outer_result_stride = axes[i].result_stride;
        else
            layout->inner *= axes[i].length, layout->inner_stride = axes[i].stride,
                                             layout->inner_result_stride = axes[i].result_stride;
    }
    return true;
}

// False if the axes alternate too often for rows and for columns.
bool match_layout(const Axis *axes, int n, Layout *layout) {
    int reduced = n, count = 0;
    for (int i = 0; i < n; i++)
        if (axes[i].reduced && count++ == 0) reduced = i;
    if (count > 1 || reduced > 1 || n - 1 - reduced > 1) return false;
    return match_around(axes, n, reduced, layout);
}

void add_axis(AnyAxes *to, const Axis &axis, int64_t stride) {
    Walk<2> &kept = to->kept;
    Walk<1> &reduced = to->reduced;
    if (axis.reduced) {
        reduced.shape[reduced.ndim] = axis.length, reduced.strides[0][reduced.ndim++] = stride;
    } else {
        kept.shape[kept.ndim] = axis.length;
        kept.strides[0][kept.ndim] = axis.result_stride, kept.strides[1][kept.ndim++] = stride;
    }
}

// The longest of the reduced axes first; the totals are merged along the others. False where that
// is not shorter than a copy.
bool match_stages(const Axis *axes, int n, bool one_axis, Layout *layout, AnyAxes *after) {
    int first = -1;
    for (int i = 0; i < n; i++)
        if (axes[i].reduced && (first < 0 || axes[i].length > axes[first].length)) first = i;
    if (first < 0 || axes[first].length < 8) return false;
    for (int i = 0; one_axis && i < n; i++)
        if (axes[i].reduced && i != first) return false;
    Layout found;
    if (!match_around(axes, n, first, &found)) return false;
    if (found.outer > 1 << 30) return false;
    int64_t strides[PVG_MAX_NDIM], total = 1;
    for (int i = n - 1; i >= 0; i--) {
        strides[i] = total;
        if (i != first) total *= axes[i].length;
    }
    after->kept.ndim = after->reduced.ndim = 0;
    for (int i = 0; i < n; i++) {
        if (i == first) continue;
        add_axis(after, axes[i], strides[i]);
        if (axes[i].reduced) found.others *= axes[i].length;
    }
    *layout = found;
    layout->after = after;
    return true;
}

// [outer][length][inner][others], of which the second and the last are reduced, the latter within
// rows without gaps: then these are columns of which neighbours make one result.
bool match_nested(const Reduction &reduction, const pvg_array *a, const Axis *axes, int n,
                  Layout *layout) {
    if (reduction.operation.gives == Gives::index || n < 3 || n > 4) return false;
    if (axes[n - 1].stride != 1) return false;
    for (int i = 0; i < n; i++)
        if (axes[i].reduced != ((n - i) % 2 == 1)) return false;
    const Axis &last = axes[n - 1], &inner = axes[n - 2], &length = axes[n - 3];
    if (inner.stride != last.length || last.length > INT32_MAX) return false;
    Layout found;
    if (n == 4)
        found.outer = axes[0].length, found.outer_stride = axes[0].stride,
        found.outer_result_stride = axes[0].result_stride;
    found.length = length.length, found.length_stride = length.stride;
    found.inner = inner.length * last.length, found.inner_result_stride = inner.result_stride;
    found.others = last.length, found.nested = true;
    if (!reduce::is_better_nested(found, dtype_size(a->dtype), reduction.large)) return false;
    *layout = found;
    return true;
}

// So few elements that finding each takes no longer than another launch would: the layout is any.
// More of them where neighbours are of one result, as then neighbouring threads read neighbours,
// and where results take no more threads than a card has room for in a few turns: each turn waits
// for elements, few a thread, and then for their totals.
void match_anywhere(const pvg_array *a, const Axis *axes, int n, Layout *layout,
                    AnyAxes *anywhere) {
    constexpr int64_t few = 1 << 21, few_neighbours = 1 << 22, few_each = 1 << 13;
    constexpr int64_t few_each_neighbours = 1 << 15;
    constexpr int64_t few_threads = 3 << 16; // three turns
    const Axis &last = axes[n - 1];
    const bool neighbours = last.reduced && magnitude(last.stride) == 1;
    int64_t length = 1;
    anywhere->kept.ndim = anywhere->reduced.ndim = 0;
    for (int i = 0; i < n; i++) {
        add_axis(anywhere, axes[i], axes[i].stride);
        if (axes[i].reduced) length *= axes[i].length;
    }
    if (a->size > (neighbours ? few_neighbours : few)) return;
    if (length > (neighbours ? few_each_neighbours : few_each)) return;
    if (a->size > few && reduce::threads_of_any(a->size / length, length) > few_threads) return;
    *layout = Layout();
    layout->length = length, layout->anywhere = anywhere;
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

// Of complex numbers only products: parts are summed as reals, and truth is that of bools.
template <class T, int CODE> constexpr bool has_kernel(Kinds domain) {
    return (kinds_of<T> & domain) != 0 && (!is_complex<T> || CODE == PVG_PROD);
}

int launch_rows_of_list(Call &call, const Operation &operation, const pvg_array *a, const Layout &p,
                        const Result &result) {
    using namespace reduce; // where the rows and what they mention are
    return dispatch(a->dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
#define PVG_CASE(NAME, name, domain, gives, identity, order, Element, Accumulator) \
    case PVG_##NAME:                                                               \
        if constexpr (has_kernel<T, PVG_##NAME>(domain)) {                         \
            return reduce_as<Element, Accumulator>(call, a->data, p, result);      \
        }                                                                          \
        break;
        switch (operation.code) { PVG_REDUCTIONS(PVG_CASE) }
#undef PVG_CASE
        return check_domain(operation, a->dtype, &a, 1);
    });
}

// Of integers and floats; of others none.
uint64_t sign_bit_of(int dtype) {
    const int64_t size = dtype_size(dtype);
    return size > 8 ? 0 : uint64_t(1) << (8 * size - 1);
}

// See reduce::order_key: integers are read as unsigned, and their keys are those of 4 or 8 bytes.
int64_t flip_of(const Operation &operation, int dtype) {
    if (operation.order == Order::none) return operation.code == PVG_ALL ? -1 : 0;
    const bool is_signed = is_among(dtype, only(Kind::signed_integer));
    const bool is_unsigned = is_among(dtype, only(Kind::unsigned_integer));
    const bool turned = dtype_size(dtype) < 4 ? is_signed : is_unsigned;
    const int64_t sign = turned ? static_cast<int64_t>(sign_bit_of(dtype)) : 0;
    return operation.order == Order::smallest ? ~sign : sign;
}

// See reduce::Truth, IntegerSum, which adds 8 bytes to as many as they are, and Product, which
// takes them as they are.
int64_t turn_of(const Operation &operation, int dtype) {
    const int code = operation.code;
    const uint64_t sign = sign_bit_of(dtype);
    if (code == PVG_ANY || code == PVG_ALL)
        return static_cast<int64_t>(is_among(dtype, floats) ? sign - 1 : ~uint64_t(0));
    const bool exact = (code == PVG_SUM || code == PVG_PROD) && dtype_size(dtype) < 8;
    return (exact || code == PVG_MEAN) && is_among(dtype, only(Kind::signed_integer))
               ? static_cast<int64_t>(sign)
               : 0;
}

int launch_reduction(Call &call, const Reduction &reduction, const pvg_array *a, const Layout &p,
                     const pvg_array *target) {
    Result result = {};
    result.data = target->data, result.dtype = target->dtype, result.count = p.length * p.others;
    result.is_mean = reduction.operation.code == PVG_MEAN;
    result.flip = flip_of(reduction.operation, a->dtype);
    result.turn = turn_of(reduction.operation, a->dtype);
    result.outer_stride = p.outer_result_stride, result.inner_stride = p.inner_result_stride;
    result.kind = reduction.kind;
    const double left = static_cast<double>(result.count) - reduction.ddof;
    result.inverse[0] = 1 / (left > 0 ? left : left != left ? left : 0);
    result.inverse[1] = 1 / static_cast<double>(result.count);
    return reduction.launch(call, reduction.operation, a, p, result);
}

// ---- The operation ------------------------------------------------------------------------------

} // namespace

int reduce::mark_axes(const Operation &operation, const pvg_array *a, int naxes, const int *axes,
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

namespace {

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
int reduce_into(Call &call, const Reduction &reduction, const pvg_array *a, const bool *reduced,
                bool keepdims, bool sort, pvg_array *target) {
    Axis axes[PVG_MAX_NDIM], merged[PVG_MAX_NDIM];
    Layout layout;
    AnyAxes axes_left;
    Temporary copy, contiguous;
    int n = collect_axes(a, reduced, target, keepdims, axes);
    memcpy(merged, axes, sizeof axes);
    PVG_PASS(call.reads(a));
    const int left = merge_axes(merged, n, sort);
    bool matched = match_layout(merged, left, &layout);
    const bool one_axis = reduction.operation.gives == Gives::index;
    matched = matched || match_nested(reduction, a, merged, left, &layout);
    if (!matched) match_anywhere(a, merged, left, &layout, &axes_left);
    matched =
        matched || layout.anywhere || match_stages(merged, left, one_axis, &layout, &axes_left);
    if (matched) return launch_reduction(call, reduction, a, layout, target);
    if (!is_contiguous(target)) {
        PVG_PASS(
            new_array(call.device, target->dtype, target->ndim, target->shape, &contiguous.array));
        PVG_PASS(reduce_into(call, reduction, a, reduced, keepdims, sort, contiguous.array));
        return copy_array(call, contiguous.array, target);
    }
    PVG_PASS(copy_reduced_last(call, a, axes, n, &copy));
    match_layout(axes, merge_axes(axes, n, false), &layout);
    return launch_reduction(call, reduction, copy.array, layout, target);
}

// Of nothing: every element of `target` is the identity, or NaN as a mean.
int reduce_nothing(Call &call, const Reduction &reduction, const pvg_array *a, pvg_array *target) {
    Temporary contiguous;
    if (!is_contiguous(target)) {
        PVG_PASS(
            new_array(call.device, target->dtype, target->ndim, target->shape, &contiguous.array));
        PVG_PASS(reduce_nothing(call, reduction, a, contiguous.array));
        return copy_array(call, contiguous.array, target);
    }
    Layout layout;
    layout.length = 0, layout.inner = target->size;
    return launch_reduction(call, reduction, a, layout, target);
}

int reduce_reals(Call &call, const Reduction &reduction, const pvg_array *a, const bool *reduced,
                 bool keepdims, bool sort, bool nothing, pvg_array *target) {
    if (nothing) return reduce_nothing(call, reduction, a, target);
    return reduce_into(call, reduction, a, reduced, keepdims, sort, target);
}

// Sums and means of complex numbers are those of their parts: of both at once, as a last axis that
// is kept, where there is room for one.
int reduce_any(Call &call, const Reduction &reduction, const pvg_array *a, const bool *reduced,
               bool keepdims, bool sort, bool nothing, pvg_array *target) {
    if (!is_among(a->dtype, complexes) || reduction.operation.code == PVG_PROD)
        return reduce_reals(call, reduction, a, reduced, keepdims, sort, nothing, target);
    if (a->ndim < PVG_MAX_NDIM) {
        bool of_parts[PVG_MAX_NDIM];
        for (int i = 0; i < a->ndim; i++) of_parts[i] = reduced[i];
        of_parts[a->ndim] = false;
        Temporary from, to;
        PVG_PASS(parts_view(a, &from.array));
        PVG_PASS(parts_view(target, &to.array));
        return reduce_reals(call, reduction, from.array, of_parts, keepdims, sort, nothing,
                            to.array);
    }
    for (bool imaginary : {false, true}) {
        Temporary from, to;
        PVG_PASS(part_view(a, imaginary, &from.array));
        PVG_PASS(part_view(target, imaginary, &to.array));
        PVG_PASS(
            reduce_reals(call, reduction, from.array, reduced, keepdims, sort, nothing, to.array));
    }
    return PVG_OK;
}

} // namespace

int reduce::run(Call &call, const Reduction &reduction, const pvg_array *a, int naxes,
                const int *axes, bool keepdims, pvg_array *out, Output *result) {
    const Operation &operation = reduction.operation;
    int device, ndim;
    bool reduced[PVG_MAX_NDIM];
    int64_t shape[PVG_MAX_NDIM];
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_domain(operation, a->dtype, &a, 1));
    PVG_PASS(mark_axes(operation, a, naxes, axes, reduced));
    int64_t length = result_shape(a, reduced, keepdims, &ndim, shape);
    PVG_PASS(check_not_empty(operation, length));
    PVG_PASS(call.begin(device));
    const int dtype =
        reduction.gives >= 0 ? reduction.gives : dtypes_of(operation, a->dtype).result;
    PVG_PASS(result->open(call, dtype, ndim, shape, out, nullptr, 0));
    if (result->array->size == 0) return PVG_OK;
    Temporary truth, wide, apart;
    if (operation.gives == Gives::boolean && is_among(a->dtype, complexes))
        PVG_PASS(as_dtype(call, a, PVG_BOOL, &truth, &a));
    if (reduction.widen >= 0 && !is_among(a->dtype, floats))
        PVG_PASS(as_dtype(call, a, reduction.widen, &wide, &a));
    const bool sort = operation.gives != Gives::index || naxes == 1, nothing = length == 0;
    if (!may_overlap(a, result->array))
        return reduce_any(call, reduction, a, reduced, keepdims, sort, nothing, result->array);
    PVG_PASS(new_array(call.device, dtype, ndim, shape, &apart.array));
    PVG_PASS(reduce_any(call, reduction, a, reduced, keepdims, sort, nothing, apart.array));
    return copy_array(call, apart.array, result->array);
}

Operations reduce_operations() {
#define PVG_ROW(NAME, name, domain, gives, identity, order, Element, Accumulator) \
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
    int status = operation ? pvg::reduce::run(call, {*operation, pvg::launch_rows_of_list}, a,
                                              naxes, axes, keepdims != 0, out, &result)
                           : pvg::fail(PVG_ERROR_VALUE, "unknown reduction code %d", code);
    return result.close(call, status);
}
