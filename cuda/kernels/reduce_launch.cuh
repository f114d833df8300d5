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

// An axis more, inside of the others.
template <int N> void add_axis(Walk<N> *walk, int64_t length, const int64_t (&strides)[N]) {
    walk->shape[walk->ndim] = length;
    for (int k = 0; k < N; k++) walk->strides[k][walk->ndim] = strides[k];
    walk->ndim++;
}

template <int N> int64_t positions(const Walk<N> &walk) {
    int64_t count = 1;
    for (int i = 0; i < walk.ndim; i++) count *= walk.shape[i];
    return count;
}

// Partial results [outer][chunks][inner], of which the chunks are merged, and what else the layout
// has left.
template <class Acc>
int merge_partials(Call &call, const Acc *partials, const Layout &p, int64_t chunks,
                   const Result &result) {
    Anywhere job = {};
    Walk<2> &kept = job.kept.walk;
    Walk<1> &reduced = job.reduced.walk;
    if (p.after) {
        kept = p.after->kept, reduced = p.after->reduced;
        for (int i = 0; i < kept.ndim; i++)
            if (kept.strides[1][i] >= p.inner) kept.strides[1][i] *= chunks;
        for (int i = 0; i < reduced.ndim; i++)
            if (reduced.strides[0][i] >= p.inner) reduced.strides[0][i] *= chunks;
    } else {
        if (p.outer > 1) add_axis(&kept, p.outer, {result.outer_stride, chunks * p.inner});
        if (p.inner > 1) add_axis(&kept, p.inner, {result.inner_stride, 1});
    }
    if (chunks != 1) add_axis(&reduced, chunks, {p.inner});
    job.data = partials, job.results = positions(kept), job.length = positions(reduced);
    prepare(&job.kept);
    prepare(&job.reduced);
    job.lanes = power_of_two(ceil_divide(job.length, merged_together), column_threads);
    PVG_LAUNCH(merge_kernel<Acc>, blocks_for(job.results, column_threads / job.lanes),
               column_threads, 0, call.stream, job, result);
    return PVG_OK;
}

// ---- Rows ---------------------------------------------------------------------------------------

// Elements that a block of the most threads loads at once, and those of a pack.
template <class T> inline constexpr int64_t round_of_row =
    int64_t(long_rows_threads) * packs_in_flight * pack_size<T>;

// Elements a block takes of a long row. A few rounds are sooner done than another kernel is
// launched. Else whole rounds, as a part of one takes as long, and more of them only where there
// would be too many totals to merge.
template <class T> int64_t chunk_of_row(int64_t length) {
    constexpr int64_t round = round_of_row<T>, few = 8 * round, many = 3168;
    constexpr int64_t most = (512 << 10) / static_cast<int64_t>(sizeof(T));
    if (length <= few) return length;
    const int64_t chunk = ceil_divide(length, many * round) * round;
    return chunk < most ? chunk : most;
}

// A block's threads: the longer the row, the more, but of chunks, so that some blocks read while
// others add up.
template <class T> int threads_of_row(const Rows &rows) {
    const int64_t packs = ceil_divide(rows.chunk, pack_size<T>);
    return packs <= 1024 ? 128 : packs <= 4096 || rows.chunks > 1 ? 256 : long_rows_threads;
}

// Rows' totals: in `result`, or in `partials` if there are any, one a row.
template <class T, class Acc> int launch_short_rows(Call &call, Rows rows, Acc *partials,
                                                    const Result &result) {
    constexpr int64_t few_rows = 1 << 16; // as many threads fill a large card
    const int64_t packs = ceil_divide(rows.length, pack_size<T>);
    rows.along = packs > loads_of_group;
    // Where merging takes longer than loading, a lane adds up more before.
    constexpr int64_t rounds = Acc::ordered && sizeof(Acc) >= 16 ? 4 : 1;
    rows.lanes = power_of_two(rows.along ? ceil_divide(packs, rounds * loads_of_group) : packs, 32);
    if (rows.along && rows.lanes < 4) rows.lanes = 4; // side by side, whole sectors
    rows.groups =
        rows.along || rows.rows <= few_rows ? rows.rows : ceil_divide(rows.rows, loads_of_group);
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
    const bool is_short = is_short_row<T>(p.length);
    rows.chunk = is_short ? p.length : chunk_of_row<T>(p.length);
    rows.chunks = ceil_divide(p.length, rows.chunk); // more than memory holds is a repeated element
    Workspace partials;
    Acc *target = nullptr;
    if (rows.chunks > 1 || p.after) {
        PVG_PASS(partials.open(call, static_cast<size_t>(p.outer * rows.chunks) * sizeof(Acc)));
        target = partials.as<Acc>();
    }
    if (is_short)
        PVG_PASS((launch_short_rows<T, Acc>(call, rows, target, result)));
    else
        PVG_LAUNCH((long_rows_kernel<T, Acc>), blocks_for(p.outer * rows.chunks, 1),
                   threads_of_row<T>(rows), 0, call.stream, rows, target, result);
    return target ? merge_partials(call, target, p, rows.chunks, result) : static_cast<int>(PVG_OK);
}

// ---- Columns ------------------------------------------------------------------------------------

// How the [length][inner] columns of one matrix are dealt to blocks, so many packs and rows each.
template <class T> void deal_columns(const Layout &p, int64_t wide, int64_t most, Columns *c) {
    const int64_t packs = ceil_divide(p.inner, pack_size<T>), stripes = ceil_divide(packs, wide);
    c->stripes = static_cast<unsigned>(stripes);
    c->across = static_cast<int>(ceil_divide(packs, stripes)), c->down = column_threads;
    while (c->down * c->across > column_threads || c->down / 2 >= p.length) c->down /= 2;
    const int64_t least = rows_in_flight * c->down, limit = 4096 * c->down;
    c->chunk = ceil_divide(most < p.length ? most : p.length, least) * least;
    if (c->chunk > limit) c->chunk = limit;
    c->chunks = static_cast<unsigned>(ceil_divide(p.length, c->chunk));
}

// About how many microseconds that takes on a card of 132 multiprocessors that reads 6 MB in each,
// from its cache: blocks come in turns, as many as find room, and take a while to begin and for
// each round of loads. Narrow blocks read sectors that they have a part of. As there may be a batch
// of matrices, of any number, what each would add to the time of some counts as well.
// A row in a block takes the time of `narrow` bytes at least.
template <class T, class Acc>
double time_of_columns(const Layout &p, const Columns &c, double narrow) {
    constexpr double round = 0.9, launch = 5.0, rate = 6e6;
    const double begin = c.fold > 1 ? 2.0 : 1.2;
    constexpr double batch = 16, batch_bytes = 2e7;
    constexpr int multiprocessors = 132, room = multiprocessors * 3 * column_threads;
    const int threads = c.across * c.down, slots = room / (threads < 64 ? 64 : threads);
    const int64_t blocks = int64_t(c.stripes) * c.chunks, turns = blocks / slots;
    const double rows = static_cast<double>(c.chunk < p.length ? c.chunk : p.length);
    const double rounds = rows / static_cast<double>(rows_in_flight * c.down);
    const double read = c.across * double(sizeof(Pack<T>)) + (c.stripes > 1 ? 32 : 0);
    const double width = read < narrow ? narrow : read;
    const auto turn = [&](int64_t n) {
        const double waits = (rounds < 1 ? 1 : rounds) * round;
        const double reads = static_cast<double>(n) * rows * width / rate;
        return n ? begin + (waits > reads ? waits : reads) : 0;
    };
    const double inner = static_cast<double>(p.inner);
    const double others = batch_bytes / (static_cast<double>(p.length) * inner * sizeof(T));
    const double full = turn(slots), each = static_cast<double>(blocks) / slots * full;
    return static_cast<double>(turns) * full + turn(blocks % slots) +
           (others < batch ? others : batch) * each +
           (c.chunks > 1 ? launch + inner / c.fold * c.chunks * (2 * sizeof(Acc) / rate) : 0);
}

// Rows of the operand, as many as `fold` of them taken for one.
inline Layout folded(Layout p, int fold) {
    p.length /= fold, p.inner *= fold, p.length_stride *= fold;
    return p;
}

// The way that takes least: whole columns, in blocks of any width, or chunks of them in blocks that
// read long runs. Folded rows are those of one block; instead of chunks of them, whole columns of
// rows that are not folded may be sooner done, as there is no second launch.
template <class T, class Acc> void choose_columns(const Layout &rows, Columns *columns) {
    constexpr int64_t least_wide = 64 / static_cast<int64_t>(sizeof(Pack<T>)), least_apart = 4;
    constexpr double of_lines = 128; // what the loads of a row take that is read element by element
    const Layout p = folded(rows, columns->fold);
    const int64_t packs = ceil_divide(p.inner, pack_size<T>);
    const bool is_folded = columns->fold > 1;
    const int64_t narrowest = is_folded ? column_threads : least_wide;
    const int64_t usual = is_folded ? column_threads : 32;
    Columns tried = *columns;
    double least = 0;
    const auto attempt = [&](const Layout &all, int64_t wide, int64_t most, double narrow = 0) {
        deal_columns<T>(all, wide, most, &tried);
        const double time = time_of_columns<T, Acc>(all, tried, narrow);
        if (least != 0 && time >= least) return;
        least = time;
        *columns = tried;
    };
    for (int64_t wide = column_threads; wide >= narrowest || least == 0; wide /= 2)
        if (wide < 2 * packs || is_folded) attempt(p, wide, p.length);
    for (int64_t blocks : {16, 33, 66, 132, 264, 396, 792, 1584, 3168}) {
        const int64_t chunks = blocks / ceil_divide(packs, usual);
        if (chunks > 1) attempt(p, usual, ceil_divide(p.length, chunks));
    }
    if (!is_folded || columns->chunks == 1) return;
    tried.fold = 1;
    for (int64_t wide = 32; wide >= least_apart; wide /= 2)
        attempt(rows, wide, rows.length, of_lines);
}

// Items so small that a block has room for several: each has so many threads as its share of a
// block, but enough that none walks through many rows; however many items there are. False of
// others.
template <class T> bool deal_small(const Layout &p, Columns *c) {
    constexpr int64_t most = (tile_bytes - 16) / static_cast<int64_t>(sizeof(T));
    constexpr int64_t rows = 16; // of a thread
    if (p.length > most / 2 || p.inner > most / 2 / p.length) return false;
    const int64_t packs = ceil_divide(p.inner, pack_size<T>), fit = most / (p.length * p.inner);
    if (2 * packs > column_threads) return false;
    const int64_t share = column_threads / packs / fit;
    c->across = static_cast<int>(packs), c->down = 1, c->stripes = c->chunks = 1;
    while (c->down < p.length && 2 * c->down * packs <= column_threads &&
           (2 * c->down <= share || c->down * rows < p.length))
        c->down *= 2;
    const int64_t room = column_threads / packs / c->down;
    c->chunk = p.length, c->items = static_cast<int>(fit < room ? fit : room);
    return true;
}

// How many rows are taken for one: as many as a block of packs has room for, where the rows follow
// each other, no pack divides one, and then there are enough of them. So neighbouring threads read
// neighbours, and packs are whole.
template <class T> int fold_of_rows(const Layout &p) {
    constexpr int64_t pack = pack_size<T>, most = column_threads * pack;
    if (p.inner % pack == 0 || p.inner > most / 2 || p.length_stride != p.inner * p.inner_stride)
        return 1;
    int fold = 2;
    while (2 * fold * p.inner <= most) fold *= 2;
    return p.length >= rows_in_flight * fold ? fold : 1;
}

// Rows that no vector divides are read through shared memory where their loads, one by one, would
// take neighbours too few to be whole sectors; but not tile after tile by few blocks, as none of
// them has the next tile's loads under way. That moves elements and changes no total.
template <class T> bool are_dense(const Columns &c, const Layout &p, const void *data) {
    constexpr int across = 16, tiles = 4;
    constexpr int64_t blocks = 264;
    if (c.aligned || c.fold > 1 || c.stripes > 1 || sizeof(T) > 8 || c.across >= across)
        return false;
    if (p.inner_stride != 1 || p.length_stride != p.inner) return false;
    if (c.items > 1 && p.outer_stride != p.length * p.inner) return false;
    if (reinterpret_cast<uintptr_t>(data) % sizeof(T) != 0) return false;
    const int64_t bytes = c.chunk * p.inner * static_cast<int64_t>(sizeof(T));
    return bytes <= tiles * tile_bytes || p.outer * c.chunks >= blocks;
}

template <class T, class Acc> Columns make_columns(const void *data, Layout p) {
    constexpr int64_t pack = pack_size<T>, few_blocks = 264;
    Columns columns = {};
    columns.fold = columns.items = 1, columns.part = p.inner;
    if (!deal_small<T>(p, &columns)) {
        columns.fold = fold_of_rows<T>(p);
        choose_columns<T, Acc>(p, &columns);
    }
    const int threads = columns.across * columns.down;
    while (columns.items * threads > 64 && columns.items > 1 &&
           p.outer < few_blocks * columns.items)
        columns.items /= 2;
    columns.tail = p.length % columns.fold * p.inner;
    p = folded(p, columns.fold);
    columns.data = data, columns.outer = p.outer, columns.length = p.length,
    columns.inner = p.inner;
    columns.outer_stride = p.outer_stride, columns.row_stride = p.length_stride,
    columns.step = p.inner_stride;
    columns.aligned = p.inner_stride == 1 &&
                      reinterpret_cast<uintptr_t>(data) % (pack * sizeof(T)) == 0 &&
                      p.outer_stride % pack == 0 && p.length_stride % pack == 0;
    columns.dense = are_dense<T>(columns, p, data);
    return columns;
}

template <class T, class Acc>
int reduce_columns(Call &call, const void *data, const Layout &p, const Result &result) {
    const Columns columns = make_columns<T, Acc>(data, p);
    const int64_t blocks = ceil_divide(p.outer, columns.items) * columns.chunks * columns.stripes;
    Workspace partials;
    Acc *target = nullptr;
    if (columns.chunks > 1 || p.after) {
        PVG_PASS(partials.open(call, static_cast<size_t>(p.outer * columns.chunks * p.inner) *
                                         sizeof(Acc)));
        target = partials.as<Acc>();
    }
    PVG_LAUNCH((columns_kernel<T, Acc>), blocks_for(blocks, 1),
               static_cast<unsigned>(columns.across * columns.down * columns.items), 0, call.stream,
               columns, target, result);
    return target ? merge_partials(call, target, p, columns.chunks, result)
                  : static_cast<int>(PVG_OK);
}

// ---- Any layout ---------------------------------------------------------------------------------

// What a kernel of one launch may take: few elements, and not too many a thread.
template <class T, class Acc>
int reduce_anywhere(Call &call, const void *data, const Layout &p, const Result &result) {
    constexpr int64_t few_rounds = 4, many = 1 << 13;
    Anywhere job = {};
    job.data = data, job.length = p.length;
    job.kept.walk = p.anywhere->kept, job.reduced.walk = p.anywhere->reduced;
    job.results = positions(job.kept.walk);
    prepare(&job.kept);
    prepare(&job.reduced);
    // Finding where elements lie is most of the work: no lane does it for fewer than it can.
    const int threads = job.length > many ? anywhere_threads : column_threads;
    job.lanes = job.length > few_rounds * 32 * anywhere_together
                    ? threads
                    : power_of_two(ceil_divide(job.length, anywhere_together), 32);
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
