// How a reduction is launched, for any element type and accumulator: rows or columns, whole or in
// chunks whose totals a second kernel merges. The layout is made in reduce.cu.
#pragma once
#include "arrays/call.cuh"
#include "kernels/reduce.cuh"
#include "kernels/reduce_kernels.cuh"

namespace pvg::reduce {

inline int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// The smallest power of two that is not less than n, at most `limit`.
inline int power_of_two(int64_t n, int limit) {
    int result = 1;
    while (result < n && result < limit) result *= 2;
    return result;
}

namespace {

template <class Acc>
int merge_partials(Call &call, const Acc *partials, int64_t outer, int64_t chunks, int64_t inner,
                   const Result &result) {
    int down = power_of_two(chunks, column_threads);
    PVG_LAUNCH(merge_kernel<Acc>, blocks_for(outer * inner, column_threads / down), column_threads,
               0, call.stream, partials, outer, chunks, inner, down, result);
    return PVG_OK;
}

template <class T, class Acc> int reduce_rows(Call &call, const void *data, const Layout &p,
                                              const Result &result) {
    constexpr int pack = pack_size<T>, size = sizeof(T);
    constexpr int64_t few_threads = 1 << 18; // about what a large card runs at once
    Rows rows = {};
    rows.data = data, rows.rows = p.outer, rows.length = p.length;
    rows.row_stride = p.outer_stride, rows.step = p.length_stride;
    rows.aligned = p.length_stride == 1 && reinterpret_cast<uintptr_t>(data) % (pack * size) == 0 &&
                   p.outer_stride % pack == 0;
    if (ceil_divide(p.length, pack) <= 512) {
        rows.lanes = power_of_two(ceil_divide(p.length, pack), 32);
        bool few = p.outer <= few_threads / rows.lanes;
        rows.groups = few ? p.outer : ceil_divide(p.outer, rows_per_group);
        PVG_LAUNCH((short_rows_kernel<T, Acc>),
                   blocks_for(rows.groups, short_rows_threads / rows.lanes), short_rows_threads, 0,
                   call.stream, rows, result);
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
    PVG_LAUNCH((long_rows_kernel<T, Acc>), blocks_for(p.outer * rows.chunks, 1), long_rows_threads,
               0, call.stream, rows, target, result);
    return target ? merge_partials(call, target, p.outer, rows.chunks, 1, result) : PVG_OK;
}

// How the [length][inner] columns of one matrix are dealt to blocks: wide enough to read whole
// sectors, and cut across so that one large matrix makes some 500 blocks. Large accumulators, whose
// merging takes longer than some rows, have more rows before they are merged.
template <class T, class Acc> void deal_columns(const Layout &p, Columns *columns) {
    constexpr int pack = pack_size<T>;
    int across = power_of_two(ceil_divide(p.inner, pack), 32);
    while (across < column_threads && column_threads / across > p.length && across * pack < p.inner)
        across *= 2;
    int64_t down = column_threads / across;
    columns->across = across;
    columns->stripes = ceil_divide(p.inner, across * pack);
    int64_t least = rows_in_flight * down * (sizeof(Acc) > 16 ? 4 : 1), most = 4096 * down;
    int64_t chunk = p.length / 512 * columns->stripes + least;
    chunk = chunk / least * least;
    columns->chunk = chunk > most ? most : chunk;
    columns->chunks = ceil_divide(p.length, columns->chunk);
}

template <class T, class Acc>
int reduce_columns(Call &call, const void *data, const Layout &p, const Result &result) {
    constexpr int64_t pack = pack_size<T>;
    Columns columns = {};
    columns.data = data, columns.outer = p.outer, columns.length = p.length,
    columns.inner = p.inner;
    columns.outer_stride = p.outer_stride, columns.row_stride = p.length_stride,
    columns.step = p.inner_stride;
    columns.aligned = p.inner_stride == 1 &&
                      reinterpret_cast<uintptr_t>(data) % (pack * sizeof(T)) == 0 &&
                      p.outer_stride % pack == 0 && p.length_stride % pack == 0;
    deal_columns<T, Acc>(p, &columns);
    Workspace partials;
    Acc *target = nullptr;
    if (columns.chunks > 1) {
        PVG_PASS(partials.open(call, static_cast<size_t>(p.outer * columns.chunks * p.inner) *
                                         sizeof(Acc)));
        target = partials.as<Acc>();
    }
    PVG_LAUNCH((columns_kernel<T, Acc>), blocks_for(p.outer * columns.chunks * columns.stripes, 1),
               column_threads, 0, call.stream, columns, target, result);
    return target ? merge_partials(call, target, p.outer, columns.chunks, p.inner, result) : PVG_OK;
}

// Outer items are dealt to several launches where a grid could not have a block for each.
template <class T, class Acc> int reduce_as(Call &call, const void *data, const Layout &all,
                                            const Result &result) {
    PVG_REQUIRE(can_store<Acc>(result.dtype), PVG_ERROR_TYPE, "cannot give %s",
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

} // namespace

} // namespace pvg::reduce
