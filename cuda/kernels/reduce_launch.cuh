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
                   int64_t fold, const Result &result) {
    Partials p = {outer, chunks, inner, fold, power_of_two(chunks * fold, column_threads)};
    PVG_LAUNCH(merge_kernel<Acc>, blocks_for(outer * inner, column_threads / p.down),
               column_threads, 0, call.stream, partials, p, result);
    return PVG_OK;
}

// Elements a block takes of a long row. Beyond 8 MiB as many blocks as fill a card of 132
// multiprocessors several times, whether it holds two, three or four of them at once: blocks that
// take as long as each other would leave it idle behind the last full round.
inline int64_t chunk_of_row(int64_t length, int64_t size) {
    constexpr int64_t least = 4096, unit = 512;
    if (length <= (64 << 10) / size) return length;
    if (length <= (8 << 20) / size) return (16 << 10) / size < least ? least : (16 << 10) / size;
    const int64_t blocks = length <= (64 << 20) / size ? 792 : 1584;
    const int64_t chunk = ceil_divide(ceil_divide(length, blocks), unit) * unit;
    const int64_t most = (512 << 10) / size;
    return chunk < least ? least : chunk > most ? most : chunk;
}

// Rows' totals: in `result`, or in `partials` if there are any, one a row.
template <class T, class Acc> int launch_short_rows(Call &call, Rows rows, Acc *partials,
                                                    const Result &result) {
    constexpr int64_t few_threads = 1 << 18; // about what a large card runs at once
    rows.lanes = power_of_two(ceil_divide(rows.length, pack_size<T>), 32);
    bool few = rows.rows <= few_threads / rows.lanes;
    rows.groups = few ? rows.rows : ceil_divide(rows.rows, rows_per_group);
    PVG_LAUNCH((short_rows_kernel<T, Acc>),
               blocks_for(rows.groups, short_rows_threads / rows.lanes), short_rows_threads, 0,
               call.stream, rows, partials, result);
    return PVG_OK;
}

template <class T> Rows make_rows(const void *data, const Layout &p) {
    constexpr int pack = pack_size<T>, size = sizeof(T);
    Rows rows = {};
    rows.data = data, rows.rows = p.outer, rows.length = p.length;
    rows.row_stride = p.outer_stride, rows.step = p.length_stride;
    rows.aligned = p.length_stride == 1 && reinterpret_cast<uintptr_t>(data) % (pack * size) == 0 &&
                   p.outer_stride % pack == 0;
    return rows;
}

template <class T> bool is_short_row(int64_t length) {
    return ceil_divide(length, pack_size<T>) <= 512;
}

template <class T, class Acc> int reduce_rows(Call &call, const void *data, const Layout &p,
                                              const Result &result) {
    Rows rows = make_rows<T>(data, p);
    if (is_short_row<T>(p.length)) return launch_short_rows<T, Acc>(call, rows, nullptr, result);
    rows.chunk = chunk_of_row(p.length, sizeof(T)); // more than memory holds is a repeated element
    rows.chunks = ceil_divide(p.length, rows.chunk);
    Workspace partials;
    Acc *target = nullptr;
    if (rows.chunks > 1) {
        PVG_PASS(partials.open(call, static_cast<size_t>(p.outer * rows.chunks) * sizeof(Acc)));
        target = partials.as<Acc>();
    }
    PVG_LAUNCH((long_rows_kernel<T, Acc>), blocks_for(p.outer * rows.chunks, 1), long_rows_threads,
               0, call.stream, rows, target, result);
    return target ? merge_partials(call, target, p.outer, rows.chunks, 1, 1, result) : PVG_OK;
}

// How the [length][inner] columns of one matrix are dealt to blocks: wide enough to read whole
// sectors, evenly, and cut across so that one large matrix makes some 500 blocks. Where rows are
// few, blocks are wider instead, and their threads take several rows each. Large accumulators,
// whose merging takes longer than some rows, have more rows before they are merged.
template <class T, class Acc> void deal_columns(const Layout &p, Columns *columns) {
    constexpr int64_t many = 512;
    const int64_t packs = ceil_divide(p.inner, pack_size<T>);
    for (int64_t widest = 32;; widest *= 2) {
        columns->stripes = ceil_divide(packs, widest);
        columns->across = static_cast<int>(ceil_divide(packs, columns->stripes));
        columns->down = column_threads;
        while (columns->down * columns->across > column_threads) columns->down /= 2;
        if (widest >= column_threads || packs <= widest) break;
        const bool idle = columns->down > p.length;
        const bool short_work = columns->down / 2 * rows_in_flight >= p.length;
        if (!idle && !(short_work && packs >= 2 * widest * many)) break;
    }
    const int64_t least = rows_in_flight * columns->down * (sizeof(Acc) > 16 ? 4 : 1);
    const int64_t most = 4096 * columns->down;
    const int64_t wanted = columns->stripes < many ? many / columns->stripes : 1;
    const int64_t chunk = ceil_divide(ceil_divide(p.length, wanted), least) * least;
    columns->chunk = chunk > most ? most : chunk;
    columns->chunks = ceil_divide(p.length, columns->chunk);
}

template <class T, class Acc> Columns make_columns(const void *data, const Layout &p) {
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
    return columns;
}

template <class T, class Acc>
int launch_columns(Call &call, const Columns &columns, Acc *partials, const Result &result) {
    PVG_LAUNCH((columns_kernel<T, Acc>),
               blocks_for(columns.outer * columns.chunks * columns.stripes, 1),
               static_cast<unsigned>(columns.across * columns.down), 0, call.stream, columns,
               partials, result);
    return PVG_OK;
}

template <class T, class Acc>
int reduce_columns(Call &call, const void *data, const Layout &p, const Result &result) {
    const Columns columns = make_columns<T, Acc>(data, p);
    Workspace partials;
    if (columns.chunks == 1) return launch_columns<T, Acc>(call, columns, nullptr, result);
    PVG_PASS(
        partials.open(call, static_cast<size_t>(p.outer * columns.chunks * p.inner) * sizeof(Acc)));
    PVG_PASS((launch_columns<T, Acc>(call, columns, partials.as<Acc>(), result)));
    return merge_partials(call, partials.as<Acc>(), p.outer, columns.chunks, p.inner, 1, result);
}

// [outer][length][inner][last]: both the second and the fourth axis are reduced, the longer one
// first; what is left of it are partial results.
template <class T, class Acc>
int reduce_both(Call &call, const void *data, const Layout &p, const Result &result) {
    Workspace partials;
    const bool even = p.length_stride == p.inner_stride * p.inner &&
                      (p.outer == 1 || p.outer_stride == p.length_stride * p.length);
    if (p.last > p.length && even && is_short_row<T>(p.last)) {
        Layout rows;
        rows.outer = p.outer * p.length * p.inner, rows.outer_stride = p.inner_stride;
        rows.length = p.last, rows.length_stride = p.last_stride;
        PVG_PASS(partials.open(call, static_cast<size_t>(rows.outer) * sizeof(Acc)));
        PVG_PASS((
            launch_short_rows<T, Acc>(call, make_rows<T>(data, rows), partials.as<Acc>(), result)));
        return merge_partials(call, partials.as<Acc>(), p.outer, p.length, p.inner, 1, result);
    }
    Layout all = p;
    all.inner = p.inner * p.last, all.inner_stride = p.last_stride;
    const Columns columns = make_columns<T, Acc>(data, all);
    PVG_PASS(partials.open(call, static_cast<size_t>(p.outer * columns.chunks * all.inner) *
                                     sizeof(Acc)));
    PVG_PASS((launch_columns<T, Acc>(call, columns, partials.as<Acc>(), result)));
    return merge_partials(call, partials.as<Acc>(), p.outer, columns.chunks, p.inner, p.last,
                          result);
}

// What a kernel of one launch may take: few elements, and not too many a thread.
template <class T, class Acc>
int reduce_anywhere(Call &call, const void *data, const Layout &p, const Result &result) {
    Anywhere job = {};
    job.data = data, job.results = 1, job.length = p.length;
    job.kept.walk = p.anywhere->kept, job.reduced.walk = p.anywhere->reduced;
    for (int i = 0; i < job.kept.walk.ndim; i++) job.results *= job.kept.walk.shape[i];
    prepare(&job.kept);
    prepare(&job.reduced);
    job.lanes = job.length > 512 ? column_threads : power_of_two(job.length, 32);
    PVG_LAUNCH((anywhere_kernel<T, Acc>), blocks_for(job.results, column_threads / job.lanes),
               column_threads, 0, call.stream, job, result);
    return PVG_OK;
}

// Outer items are dealt to several launches where a grid could not have a block for each.
template <class T, class Acc> int reduce_as(Call &call, const void *data, const Layout &all,
                                            const Result &result) {
    PVG_REQUIRE(can_store<Acc>(result.dtype), PVG_ERROR_TYPE, "cannot give %s",
                dtype_name(result.dtype));
    if (all.anywhere) return reduce_anywhere<T, Acc>(call, data, all, result);
    if (all.last > 1) return reduce_both<T, Acc>(call, data, all, result);
    constexpr int64_t most = 1 << 30;
    for (int64_t first = 0; first < all.outer; first += most) {
        Layout p = all;
        p.outer = all.outer - first < most ? all.outer - first : most;
        const T *from = static_cast<const T *>(data) + first * all.outer_stride;
        Result to = result;
        to.data = static_cast<unsigned char *>(result.data) +
                  first * result.outer_stride * dtype_size(result.dtype);
        if (p.length == 0)
            PVG_PASS(merge_partials<Acc>(call, nullptr, p.outer, 0, p.inner, 1, to));
        else if (p.inner == 1)
            PVG_PASS((reduce_rows<T, Acc>(call, from, p, to)));
        else
            PVG_PASS((reduce_columns<T, Acc>(call, from, p, to)));
    }
    return PVG_OK;
}

} // namespace

} // namespace pvg::reduce
