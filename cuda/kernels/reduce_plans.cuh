// What blocks of a reduction are told: constants that its host and its kernels share, and how the
// work is dealt (reduce_deal.cu).
#pragma once
#include "arrays/locate.cuh"
#include "arrays/vector.cuh"

namespace pvg::reduce {

constexpr int short_rows_threads = 128, loads_of_group = 4;
constexpr int long_rows_threads = 512, packs_in_flight = 8; // at most; a multiple of 32
constexpr int column_threads = 256, rows_in_flight = 8, tile_bytes = 16 << 10;
constexpr int merged_together = 4;    // partial results, by a thread
constexpr int anywhere_together = 8;  // elements
constexpr int anywhere_threads = 512; // of a block, where each result has many elements

// Neighbouring elements that one thread takes together: 16 bytes, and at most 4; two complex ones.
template <class T> inline constexpr int pack_size = sizeof(T) >= 8 ? 2 : 4;
template <class T> using Pack = Vector<T, pack_size<T>>;

struct Rows {
    const void *data;
    int64_t rows, length;
    int64_t row_stride, step; // elements, from row to row and along a row
    int64_t chunk, chunks; // long rows: elements a block takes, and how many such chunks a row has
    int lanes;             // short rows: lanes in a group, a power of two
    bool along;     // short rows: a group has a row, of which a lane loads several packs at once
    int64_t groups; // short rows: else g has the rows g, g + groups, ... (up to loads_of_group)
    bool aligned;   // every row starts at a multiple of 16 bytes, and step is 1
};

// [outer][length][inner]: the middle axis is reduced.
struct Columns {
    const void *data;
    int64_t outer, length, inner;
    int64_t outer_stride, row_stride, step; // elements; step is that of the inner axis
    int64_t chunk;                          // rows a block takes
    unsigned chunks, stripes; // how many such chunks there are, and blocks side by side
    int across, down;         // threads of an item: side by side, and below them; a power of two
    int items; // outer items of a block: more than one only where each has one block's work
    int width; // columns of a block, where that is not all that its threads could have; else 0
    int group; // so many neighbours are one result: a divisor of the width; 1: each is one
    int lanes; // which so many threads merge: a power of two, up to a warp
    // So many rows of the operand, a power of two, which follow each other without a gap, are one
    // row here, of parts of so many elements; `tail` elements are behind the last.
    // More than one only where a block has whole rows.
    int fold;
    int64_t part, tail;
    bool aligned; // every pack of columns may be loaded at once
    bool shifted; // else: packs are put together from granules, of which all that have ...
    int64_t span; // ... elements of packs lie below so many elements after the first
    bool dense;   // else: a block has whole rows, which follow each other without a gap
    bool upright; // else: a thread loads one column in more rows
};

// Elements or partial results that lie anywhere: every one of `results` has `length`.
struct Anywhere {
    const void *data;
    int64_t results, length;
    int lanes;          // threads for each result: a power of two
    Locator<2> kept;    // operand 0 is the result
    Locator<1> reduced; // in the order of the axes
};

} // namespace pvg::reduce
