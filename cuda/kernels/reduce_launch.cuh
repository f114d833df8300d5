// How a reduction is launched, for any element type and accumulator: rows or columns, whole or in
// chunks whose totals a second kernel merges. The layout is made in reduce.cu.
#pragma once
#include "arrays/call.cuh"
#include "kernels/reduce.cuh"
#include "kernels/reduce_kernels.cuh"

namespace pvg::reduce {

// What a deal of the work depends on beside the layout: bytes of an element and of an accumulator,
// elements of a pack, and whether totals round. One function makes it for all types: there are so
// many of these that code for each would be a third of the library's reductions.
struct Sizes {
    int64_t item, total, pack;
    bool ordered;
};
template <class T, class Acc> inline constexpr Sizes sizes_of = {sizeof(T), sizeof(Acc),
                                                                 pack_size<T>, Acc::ordered};

// reduce_deal.cu
Rows make_rows(const void *data, const Layout &p, const Sizes &sizes);
bool is_short_row(int64_t length, const Sizes &sizes);
void deal_short_rows(Rows *rows, const Sizes &sizes);
int threads_of_row(const Rows &rows, const Sizes &sizes);
Columns make_columns(const void *data, Layout p, const Sizes &sizes);
int64_t blocks_of(const Columns &columns);
unsigned threads_of(const Columns &columns); // of a block
// Partial results [outer][chunks][inner], of which the chunks are merged, and what else the layout
// has left.
Anywhere make_merge(const void *partials, const Layout &p, int64_t chunks, const Result &result);
// Threads that so many results take there.
int64_t threads_of_any(int64_t results, int64_t length);
// `threads`: of a block.
Anywhere make_anywhere(const void *data, const Layout &p, int *threads);

namespace {

template <class Acc>
int merge_partials(Call &call, const Acc *partials, const Layout &p, int64_t chunks,
                   const Result &result) {
    const Anywhere job = make_merge(partials, p, chunks, result);
    PVG_LAUNCH(merge_kernel<Acc>, blocks_for(job.results, column_threads / job.lanes),
               column_threads, 0, call.stream, job, result);
    return PVG_OK;
}

// ---- Rows ---------------------------------------------------------------------------------------

template <class T, class Acc> int reduce_rows(Call &call, const void *data, const Layout &p,
                                              const Result &result) {
    constexpr Sizes sizes = sizes_of<T, Acc>;
    Rows rows = make_rows(data, p, sizes);
    Workspace partials;
    Acc *target = nullptr; // of the totals, one a row or a chunk, if they are not in `result`
    if (rows.chunks > 1 || p.after) {
        PVG_PASS(partials.open(call, static_cast<size_t>(p.outer * rows.chunks) * sizeof(Acc)));
        target = partials.as<Acc>();
    }
    if (is_short_row(p.length, sizes)) {
        deal_short_rows(&rows, sizes);
        PVG_LAUNCH((short_rows_kernel<T, Acc>),
                   blocks_for(rows.groups, short_rows_threads / rows.lanes), short_rows_threads, 0,
                   call.stream, rows, target, result);
    } else {
        PVG_LAUNCH((long_rows_kernel<T, Acc>), blocks_for(p.outer * rows.chunks, 1),
                   threads_of_row(rows, sizes), 0, call.stream, rows, target, result);
    }
    return target ? merge_partials(call, target, p, rows.chunks, result) : static_cast<int>(PVG_OK);
}

// ---- Columns ------------------------------------------------------------------------------------

template <class T, class Acc>
int reduce_columns(Call &call, const void *data, const Layout &p, const Result &result) {
    const Columns columns = make_columns(data, p, sizes_of<T, Acc>);
    Workspace partials;
    Acc *target = nullptr;
    if (columns.chunks > 1 || p.after) {
        PVG_PASS(partials.open(call, static_cast<size_t>(p.outer * columns.chunks * p.inner) *
                                         sizeof(Acc)));
        target = partials.as<Acc>();
    }
    PVG_LAUNCH((columns_kernel<T, Acc>), blocks_for(blocks_of(columns), 1), threads_of(columns), 0,
               call.stream, columns, target, result);
    return target ? merge_partials(call, target, p, columns.chunks, result)
                  : static_cast<int>(PVG_OK);
}

// ---- Any layout ---------------------------------------------------------------------------------

template <class T, class Acc>
int reduce_anywhere(Call &call, const void *data, const Layout &p, const Result &result) {
    int threads;
    const Anywhere job = make_anywhere(data, p, &threads);
    PVG_LAUNCH((anywhere_kernel<T, Acc>), blocks_for(job.results, threads / job.lanes), threads, 0,
               call.stream, job, result);
    return PVG_OK;
}

// Outer items are dealt to several launches where a grid could not have a block for each.
template <class T, class Acc> int reduce_as(Call &call, const void *data, const Layout &all,
                                            const Result &result) {
    PVG_REQUIRE(can_store<Acc>(result.dtype), PVG_ERROR_TYPE, "cannot give %s",
                dtype_name(result.dtype));
    if (all.anywhere) return reduce_anywhere<T, Acc>(call, data, all, result);
    constexpr int64_t most = 1 << 30;
    for (int64_t first = 0; first < all.outer; first += most) {
        Layout p = all;
        p.outer = all.outer - first < most ? all.outer - first : most;
        const T *from = static_cast<const T *>(data) + first * all.outer_stride;
        Result to = result;
        to.data = static_cast<unsigned char *>(result.data) +
                  first * result.outer_stride * dtype_size(result.dtype);
        if (p.length == 0)
            PVG_PASS(merge_partials<Acc>(call, nullptr, p, 0, to));
        else if (p.inner == 1)
            PVG_PASS((reduce_rows<T, Acc>(call, from, p, to)));
        else
            PVG_PASS((reduce_columns<T, Acc>(call, from, p, to)));
    }
    return PVG_OK;
}

} // namespace

} // namespace pvg::reduce
