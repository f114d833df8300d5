// How the work of a reduction is dealt to blocks: see reduce_kernels.cuh, whose kernels do it, and
// reduce_launch.cuh.
#include "kernels/reduce_launch.cuh"
#include <numeric>

namespace pvg {

namespace {

using namespace reduce;

int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// The smallest power of two that is not less than n, at most `limit`.
int power_of_two(int64_t n, int limit) {
    int result = 1;
    while (result < n && result < limit) result *= 2;
    return result;
}

int64_t address_of(const void *data) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data));
}

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

// ---- Rows ---------------------------------------------------------------------------------------

// Elements a block takes of a long row: rounds of what one of the most threads loads at once. A few
// are sooner done than another kernel is launched. Else whole rounds, as a part of one takes as
// long, and more of them only where there would be too many totals to merge.
int64_t chunk_of_row(int64_t length, const Sizes &sizes) {
    constexpr int64_t many = 3168;
    const int64_t round = int64_t(long_rows_threads) * packs_in_flight * sizes.pack;
    const int64_t most = (512 << 10) / sizes.item;
    if (length <= 8 * round) return length;
    const int64_t chunk = ceil_divide(length, many * round) * round;
    return chunk < most ? chunk : most;
}

} // namespace

bool reduce::is_short_row(int64_t length, const Sizes &sizes) {
    return ceil_divide(length, sizes.pack) <= 512;
}

Rows reduce::make_rows(const void *data, const Layout &p, const Sizes &sizes) {
    Rows rows = {};
    rows.data = data, rows.rows = p.outer, rows.length = p.length;
    rows.row_stride = p.outer_stride, rows.step = p.length_stride;
    rows.aligned = p.length_stride == 1 && address_of(data) % (sizes.pack * sizes.item) == 0 &&
                   p.outer_stride % sizes.pack == 0;
    rows.chunk = is_short_row(p.length, sizes) ? p.length : chunk_of_row(p.length, sizes);
    rows.chunks = ceil_divide(p.length, rows.chunk); // more than memory holds: a repeated element
    return rows;
}

void reduce::deal_short_rows(Rows *rows, const Sizes &sizes) {
    constexpr int64_t few_rows = 1 << 16; // as many threads fill a large card
    const int64_t packs = ceil_divide(rows->length, sizes.pack);
    rows->along = packs > loads_of_group;
    // Rounds of loads of a lane at most: fewer lanes have fewer totals to merge, and more of them
    // load at once. (H200, 2026-12-01, 7,281 drawn reductions: rows of 49 packs and more, in
    // matrices that take longer than a launch, took 0.5 to 0.9 of what they do with one round, and
    // sums of float64 0.9 to 0.96 of what they do with four.)
    const int64_t rounds = sizes.ordered && sizes.total >= 16 ? 8 : 6;
    rows->lanes =
        power_of_two(rows->along ? ceil_divide(packs, rounds * loads_of_group) : packs, 32);
    if (rows->along && rows->lanes < 4) rows->lanes = 4; // side by side, whole sectors
    rows->groups = rows->along || rows->rows <= few_rows ? rows->rows
                                                         : ceil_divide(rows->rows, loads_of_group);
}

// The longer the row, the more, but of chunks, so that some blocks read while others add up.
int reduce::threads_of_row(const Rows &rows, const Sizes &sizes) {
    const int64_t packs = ceil_divide(rows.chunk, sizes.pack);
    return packs <= 1024 ? 128 : packs <= 4096 || rows.chunks > 1 ? 256 : long_rows_threads;
}

// ---- Columns ------------------------------------------------------------------------------------

namespace {

// How the [length][inner] columns of one matrix are dealt to blocks, so many packs and rows each.
void deal_columns(const Layout &p, const Sizes &sizes, int64_t wide, int64_t most, Columns *c) {
    const int64_t packs = ceil_divide(p.inner, sizes.pack), stripes = ceil_divide(packs, wide);
    c->stripes = static_cast<unsigned>(stripes);
    c->across = static_cast<int>(ceil_divide(packs, stripes)), c->down = column_threads;
    while (c->down * c->across > column_threads || c->down / 2 >= p.length) c->down /= 2;
    const int64_t least = rows_in_flight * c->down, limit = 4096 * c->down;
    c->chunk = ceil_divide(most < p.length ? most : p.length, least) * least;
    if (c->chunk > limit) c->chunk = limit;
    c->chunks = static_cast<unsigned>(ceil_divide(p.length, c->chunk));
}

// Elements that a multiprocessor takes in a microsecond where no pack divides the rows, so that
// each is loaded by itself, or with what is beside it (are_shifted), which is dealt out by the same
// rates: by how many blocks it has, as others load while one adds up. Of 8 bytes they are no more
// than memory brings. (H200, 2026-11-30: 2,116 x 12,701 of float32 took 51 us by two blocks for
// most, and 35 us by three that have 32 threads side by side.)
double elements_one_by_one(int64_t blocks, int across) {
    constexpr double rates[] = {5400, 7300, 8400}, short_runs = 0.65;
    return rates[blocks < 3 ? blocks - 1 : 2] * (across < 32 ? short_runs : 1);
}

// About how many microseconds that takes on a card of 132 multiprocessors that reads 6 MB in each,
// from its cache: blocks come in turns, as many as find room, and take a while to begin and for
// each round of loads. Narrow blocks read sectors that they have a part of. Where the order changes
// totals, a matrix of a batch is dealt as it is alone. There nothing counts that is done before a
// call is; and as there may be a batch of any number, what each would add to the time of some
// counts as well. A row in a block takes the time of `narrow` bytes at least.
double time_of_columns(const Layout &p, const Sizes &sizes, const Columns &c, double narrow) {
    constexpr double round = 0.9, launch = 5.0, rate = 6e6, call = 5.0;
    const double begin = c.fold > 1 ? 2.0 : 1.2;
    constexpr double batch = 16, batch_bytes = 2e7;
    constexpr int multiprocessors = 132, room = multiprocessors * 3 * column_threads;
    const int threads = c.across * c.down, slots = room / (threads < 64 ? 64 : threads);
    const int64_t items = sizes.ordered ? 1 : p.outer;
    const int64_t blocks = int64_t(c.stripes) * c.chunks * items, turns = blocks / slots;
    const double rows = static_cast<double>(c.chunk < p.length ? c.chunk : p.length);
    const double rounds = rows / static_cast<double>(rows_in_flight * c.down);
    const double read =
        c.across * static_cast<double>(sizes.item * sizes.pack) + (c.stripes > 1 ? 32 : 0);
    const double width = read < narrow ? narrow : read;
    const bool one_by_one = sizes.item < 8 && c.fold == 1 && p.inner % sizes.pack != 0;
    const auto turn = [&](int64_t n) {
        double time = (rounds < 1 ? 1 : rounds) * round;
        const auto at_least = [&](double other) { time = time < other ? other : time; };
        at_least(static_cast<double>(n) * rows * width / rate);
        if (one_by_one && n > 0) {
            const int64_t own = ceil_divide(n, multiprocessors);
            at_least(static_cast<double>(own * c.across * sizes.pack) * rows /
                     elements_one_by_one(own, c.across));
        }
        return n ? begin + time : 0;
    };
    const double inner = static_cast<double>(p.inner), full = turn(slots);
    const double totals = inner / c.fold * c.chunks * static_cast<double>(items * sizes.total);
    const double time = static_cast<double>(turns) * full + turn(blocks % slots) +
                        (c.chunks > 1 ? launch + 2 * totals / rate : 0);
    if (!sizes.ordered) return time;
    const double others =
        batch_bytes / (static_cast<double>(p.length) * inner * static_cast<double>(sizes.item));
    const double each = static_cast<double>(blocks) / slots * full;
    return (time < call ? call : time) + (others < batch ? others : batch) * each;
}

// Rows of the operand, as many as `fold` of them taken for one.
Layout folded(Layout p, int fold) {
    p.length /= fold, p.inner *= fold, p.length_stride *= fold;
    return p;
}

// The way that takes least: whole columns, in blocks of any width, or chunks of them in blocks that
// read long runs. Folded rows are those of one block; instead of chunks of them, whole columns of
// rows that are not folded may be sooner done, as there is no second launch.
void choose_columns(const Layout &rows, const Sizes &sizes, Columns *columns) {
    constexpr int64_t least_apart = 4;
    const int64_t least_wide = 64 / (sizes.item * sizes.pack);
    constexpr double of_lines = 128; // what the loads of a row take that is read element by element
    const Layout p = folded(rows, columns->fold);
    const int64_t packs = ceil_divide(p.inner, sizes.pack);
    const bool is_folded = columns->fold > 1;
    const int64_t narrowest = is_folded ? column_threads : least_wide;
    const int64_t usual = is_folded ? column_threads : 32;
    Columns tried = *columns;
    double least = 0;
    const auto attempt = [&](const Layout &all, int64_t wide, int64_t most, double narrow = 0) {
        deal_columns(all, sizes, wide, most, &tried);
        const double time = time_of_columns(all, sizes, tried, narrow);
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
bool deal_small(const Layout &p, const Sizes &sizes, Columns *c) {
    const int64_t most = (tile_bytes - 16) / sizes.item;
    constexpr int64_t rows = 16; // of a thread
    if (p.length > most / 2 || p.inner > most / 2 / p.length) return false;
    const int64_t packs = ceil_divide(p.inner, sizes.pack), fit = most / (p.length * p.inner);
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
// each other, no pack divides one but so many, and then there are enough of them. So neighbouring
// threads read neighbours, and packs are whole. (Two odd rows have none: 27 reductions of such, not
// folded as they had gaps, took 0.88 to 0.95 of what 36 without gaps did beside torch. H200,
// 2026-11-30.)
int fold_of_rows(const Layout &p, const Sizes &sizes) {
    const int64_t pack = sizes.pack, most = column_threads * pack;
    if (p.inner % pack == 0 || p.inner > most / 2 || p.length_stride != p.inner * p.inner_stride)
        return 1;
    int fold = 2;
    while (2 * fold * p.inner <= most) fold *= 2;
    return fold * p.inner % pack == 0 && p.length >= rows_in_flight * fold ? fold : 1;
}

// Neighbours so few that their loads, one by one, would be no whole sectors: rows that follow each
// other, whole ones a block.
bool are_narrow(const Columns &c, const Layout &p, const Sizes &sizes, const void *data) {
    constexpr int across = 16;
    if (c.aligned || c.fold > 1 || c.stripes > 1 || sizes.item > 8 || c.across >= across)
        return false;
    return p.inner_stride == 1 && p.length_stride == p.inner && address_of(data) % sizes.item == 0;
}

// Packs that begin anywhere are put together where that takes less than to load each element: of
// those of 8 bytes, of which a pack has two, if they are narrow; of rows that a block could have as
// a whole, which are not folded: those are whole sectors. That moves elements and changes no total.
// (H200, 2026-11-30, 2,464 drawn reductions: 1.07 of before in the mean, 1.22 of float32 in rows of
// 4 to 28; 0.94 to 0.98 of what is left out.)
bool are_shifted(const Columns &c, const Layout &p, const Sizes &sizes, const void *data) {
    const int64_t pack = sizes.pack;
    if (c.aligned || c.fold > 1 || c.items > 1 || p.inner_stride != 1 || sizes.item > 8)
        return false;
    if ((p.nested ? c.width : p.inner) > column_threads * pack || p.length < rows_in_flight)
        return false;
    if (p.length_stride < pack || address_of(data) % sizes.item != 0) return false;
    return sizes.item < 8 || are_narrow(c, p, sizes, data);
}

// Other narrow rows, which are of several items or few, are read through shared memory. That
// changes no total, either.
bool are_dense(const Columns &c, const Layout &p, const Sizes &sizes, const void *data) {
    if (c.shifted || !are_narrow(c, p, sizes, data)) return false;
    return c.items == 1 || p.outer_stride == p.length * p.inner;
}

// Columns that no vector loads, whose threads side by side are fewer than a warp: what these load
// at once would be short runs in many rows. That moves elements and changes no total, but takes a
// while.
bool are_upright(const Columns &c, const Sizes &sizes) {
    constexpr int64_t least = 4; // rows of a thread
    return !c.aligned && !c.shifted && !c.dense && c.fold == 1 && c.group == 1 &&
           (c.step == 1 || c.step == -1) && c.across < 32 && c.down >= sizes.pack &&
           c.chunk >= least * c.down && c.length >= least * c.down;
}

// Groups of neighbours, as many as a block has columns for; threads below each other as long as
// each has rows enough to load at once. How many groups a block has changes no total.
void deal_groups(const Layout &p, int64_t pack, Columns *c) {
    constexpr int least_across = 32, of_lane = 4;
    const auto fits = [&](int down) {
        const int across = column_threads / down;
        return p.length >= down * rows_in_flight && across >= least_across &&
               across * pack >= p.others;
    };
    c->chunk = p.length, c->chunks = 1, c->down = 1;
    while (fits(2 * c->down)) c->down *= 2;
    const int64_t step = (p.outer_stride | p.length_stride) % pack == 0 ? pack : 1;
    const int64_t even = step / std::gcd(p.others, step), all = p.inner / p.others;
    int64_t groups = column_threads / c->down * pack / p.others;
    if (groups >= all)
        groups = all;
    else if (groups > even)
        groups -= groups % even; // then those of all begin with a pack
    c->width = static_cast<int>(groups * p.others), c->group = static_cast<int>(p.others);
    c->lanes = power_of_two(ceil_divide(p.others, of_lane), 32);
    c->across = static_cast<int>(ceil_divide(c->width, pack));
    c->stripes = static_cast<unsigned>(ceil_divide(p.inner, c->width));
}

} // namespace

// Where a block has whole groups, there are blocks for most of a card, none walks through many
// rows, and enough is added up before totals are merged: from so many rows on, by the size of
// groups. (H200, 2026-11-30, 5,086 drawn reductions of two axes: 1.84 of torch's speed and 251
// below 0.9 of it, where one axis after the other is 1.64 and 467; groups of many elements in two
// rows would take up to four times as long as that. 25 of the 5,086 take more than a tenth longer.)
bool reduce::is_better_nested(const Layout &p, int64_t item, bool large) {
    constexpr int64_t most_rows = 64, few_blocks = 132;         // of a thread; one a multiprocessor
    constexpr int64_t rows_of_small = 64, group_of_small = 128; // of elements below 4 bytes
    constexpr int least_threads = 64;
    const int64_t pack = item >= 8 ? 2 : 4, group = p.others;
    const int64_t of_others = item >= 8 && group > 64 ? 8 : 5;
    const int64_t least = large         ? group <= 32 ? 4 : 12
                          : group <= 4  ? 2
                          : group <= 16 ? 3
                                        : of_others;
    if (p.length < least || group > column_threads * pack) return false;
    if (item < 4 && p.length > rows_of_small && group <= group_of_small) return false;
    Columns c = {};
    Layout dense = p;
    dense.outer_stride = dense.length_stride = 0; // where elements lie does not matter
    deal_groups(dense, pack, &c);
    if (c.stripes == 1 && c.across * c.down < least_threads) return false; // an outer item is small
    return p.length <= most_rows * c.down && p.outer * c.stripes >= few_blocks;
}

Columns reduce::make_columns(const void *data, Layout p, const Sizes &sizes) {
    constexpr int64_t few_blocks = 264;
    const int64_t pack = sizes.pack;
    Columns columns = {};
    columns.fold = columns.items = columns.group = 1, columns.part = p.inner;
    if (p.nested) {
        deal_groups(p, pack, &columns);
    } else if (!deal_small(p, sizes, &columns)) {
        columns.fold = fold_of_rows(p, sizes);
        choose_columns(p, sizes, &columns);
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
    columns.aligned = p.inner_stride == 1 && address_of(data) % (pack * sizes.item) == 0 &&
                      p.outer_stride % pack == 0 && p.length_stride % pack == 0 &&
                      (columns.stripes == 1 || columns.width % pack == 0);
    columns.shifted = are_shifted(columns, p, sizes, data);
    columns.span =
        (p.length - 1) * p.length_stride + p.inner; // of the first item, or up to the last
    if (p.outer_stride > 0) columns.span += (p.outer - 1) * p.outer_stride;
    columns.dense = are_dense(columns, p, sizes, data);
    columns.upright = are_upright(columns, sizes);
    return columns;
}

unsigned reduce::threads_of(const Columns &columns) {
    const int threads = columns.across * columns.down * columns.items;
    return static_cast<unsigned>(columns.group > 1 ? (threads + 31) / 32 * 32 : threads);
}

int64_t reduce::blocks_of(const Columns &columns) {
    return ceil_divide(columns.outer, columns.items) * columns.chunks * columns.stripes;
}

// ---- Any layout ---------------------------------------------------------------------------------

Anywhere reduce::make_merge(const void *partials, const Layout &p, int64_t chunks,
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
    return job;
}

namespace {

// Threads of a result, and of a block. Finding where elements lie is most of the work: no lane does
// it for fewer than it can.
int lanes_of_any(int64_t length, int *threads) {
    constexpr int64_t few_rounds = 4, many = 1 << 13;
    const bool is_short = length <= few_rounds * 32 * anywhere_together;
    *threads = length > many ? anywhere_threads : column_threads;
    if (!is_short && length < column_threads * anywhere_together) *threads = column_threads / 2;
    return is_short ? power_of_two(ceil_divide(length, anywhere_together), 32) : *threads;
}

} // namespace

int64_t reduce::threads_of_any(int64_t results, int64_t length) {
    int threads;
    return results * lanes_of_any(length, &threads);
}

// What a kernel of one launch may take: few elements, and not too many a thread.
Anywhere reduce::make_anywhere(const void *data, const Layout &p, int *threads) {
    Anywhere job = {};
    job.data = data, job.length = p.length;
    job.kept.walk = p.anywhere->kept, job.reduced.walk = p.anywhere->reduced;
    job.results = positions(job.kept.walk);
    prepare(&job.kept);
    prepare(&job.reduced);
    job.lanes = lanes_of_any(job.length, threads);
    return job;
}

} // namespace pvg
