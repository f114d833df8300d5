// How a thread of a reduction adds up columns: what is above each other (reduce_kernels.cuh has the
// kernel, which deals them out and merges the totals of those who share a column).
//
//     add_columns        packs of neighbours by one load, or elements that lie anywhere one by one
//     add_shifted        packs of neighbours that begin anywhere, by the granules they lie in
//     add_upright        elements one by one, a thread one column in more rows
//     add_dense_columns  whole rows that follow each other, through shared memory
//
// Whichever it is, an element goes to the same accumulator in the same order.
#pragma once
#include "arrays/granules.cuh"
#include "kernels/reduce_merge.cuh"
#include "kernels/reduce_plans.cuh"

namespace pvg::reduce {

template <bool VECTOR, class T> __device__ Pack<T> load_pack(const T *from, int64_t step) {
    if constexpr (VECTOR) {
        return *reinterpret_cast<const Pack<T> *>(from);
    } else {
        Pack<T> pack;
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) pack.element[j] = from[j * step];
        return pack;
    }
}

// An element in the type that it is computed in.
template <class T> __device__ ComputeType<T> computed(T value) {
    return static_cast<ComputeType<T>>(value);
}

// Where a thread's columns begin, in elements from the first. What is no column reads that one, to
// no purpose: a condition for each load would take longer.
template <class T> struct Apart { int64_t at[pack_size<T>]; };
template <class T>
__device__ __forceinline__ Apart<T> apart_of(int64_t step, int columns) {
    Apart<T> apart;
#pragma unroll
    for (int j = 0; j < pack_size<T>; j++) apart.at[j] = j < columns ? j * step : 0;
    return apart;
}

// One row's pack of a thread's columns.
template <bool VECTOR, class T>
__device__ __forceinline__ void load_columns(const T *from, const Apart<T> &apart, Pack<T> *pack) {
    if constexpr (VECTOR) {
        *pack = load_pack<true>(from, 1);
    } else {
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) pack->element[j] = from[apart.at[j]];
    }
}

// Rows y, y + down, ... below `length` of a thread's columns. `from` is the first of them in row 0,
// which has the index `first`; the place of each among the rows that are one says which of theirs
// it is in. All rows that are in flight are asked for before one is looked at: with a condition for
// each the compiler waits for the first before it asks for the others. Of single elements, which
// take a register each for address and value, there is room for half as many.
template <bool VECTOR, class T, class Acc>
__device__ void add_columns(const T *from, const Columns &c, int y, const Apart<T> &apart,
                            int length, int64_t first, const int64_t (&place)[pack_size<T>],
                            Acc (&acc)[pack_size<T>], const Result &result) {
    const int down = c.down;
    constexpr int batch = VECTOR || pack_size<T> < 4 ? rows_in_flight : rows_in_flight / 2;
    const int64_t stride = down * c.row_stride;
    const T *at = from + y * c.row_stride;
    const auto add = [&](const Pack<T> &pack, int row) {
        const int64_t index = (first + row) * c.fold;
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++)
            acc[j].add(computed(pack.element[j]), index + place[j], result);
    };
    Pack<T> loaded[batch];
    int row = y;
    for (; row + (batch - 1) * down < length; row += batch * down) {
#pragma unroll
        for (int k = 0; k < batch; k++, at += stride) load_columns<VECTOR>(at, apart, &loaded[k]);
#pragma unroll
        for (int k = 0; k < batch; k++) add(loaded[k], row + k * down);
    }
#pragma unroll
    for (int k = 0; k < batch - 1; k++, at += stride)
        if (row + k * down < length) load_columns<VECTOR>(at, apart, &loaded[k]);
#pragma unroll
    for (int k = 0; k < batch - 1; k++)
        if (row + k * down < length) add(loaded[k], row + k * down);
}

// The same of neighbours that begin anywhere, of which `columns` are there: each row's are put
// together from the granules in which they lie. Of the operand's last rows, whose granules may
// reach beyond its memory, they are read one by one; before its first element a granule has at most
// 15 bytes, which are of the same allocation and are not looked at. `offset` is that of `from` in
// the operand. Loads have no conditions, as above: those of rows that are not there repeat the
// first.
template <class T, class Acc>
__device__ void add_shifted(const T *from, const Columns &c, int y, int columns, int64_t offset,
                            int length, int64_t first, Acc (&acc)[pack_size<T>],
                            const Result &result) {
    constexpr int pack = pack_size<T>;
    constexpr bool is_small = sizeof(T) * pack < 16 && sizeof(Acc) <= 8;
    constexpr int batch = is_small ? rows_in_flight : rows_in_flight / 2;
    const int down = c.down, bytes = columns * static_cast<int>(sizeof(T));
    const int64_t stride = down * c.row_stride;
    const auto add = [&](const T(&element)[pack], int row) {
#pragma unroll
        for (int j = 0; j < pack; j++) acc[j].add(computed(element[j]), first + row, result);
    };
    int end = length; // of the rows whose granules are the operand's
    while (end > 0 && offset + (end - 1) * c.row_stride + 2 * pack > c.span) end--;
    T element[pack];
    int row = y, left = (end - y + down - 1) / down; // rows: none if this is not positive
    for (; left > 0; row += batch * down, left -= batch) {
        const T *at = from + row * c.row_stride;
        Granules<T, pack> loaded[batch];
#pragma unroll
        for (int k = 0; k < batch; k++)
            loaded[k].load_around(at + (k < left ? k : 0) * stride, bytes);
#pragma unroll
        for (int k = 0; k < batch; k++) {
            if (k >= left) continue;
            uint32_t whole[loaded[k].words];
            loaded[k].align(whole);
            memcpy(element, whole, sizeof element);
            add(element, row + k * down);
        }
    }
    for (row += left * down; row < length; row += down) { // left: 0, or as many as there were not
#pragma unroll
        for (int j = 0; j < pack; j++)
            element[j] = from[row * c.row_stride + (j < columns ? j : 0)];
        add(element, row);
    }
}

// The same of unaligned columns, which begin at `from` in row 0, `left` of them: each thread loads
// one, in as many rows more, so that what a warp loads at once is a longer run in fewer rows. Then
// the totals go to the threads that have these columns and rows elsewhere.
template <class T, class Acc>
__device__ void add_upright(const T *from, const Columns &c, int item, int64_t left, int length,
                            int64_t first, Acc (&acc)[pack_size<T>], Acc *shared,
                            const Result &result) {
    constexpr int pack = pack_size<T>, batch = rows_in_flight / 2;
    const int of_item = c.across * c.down, thread = static_cast<int>(threadIdx.x) - item * of_item;
    const int column = thread % (c.across * pack), y = thread / (c.across * pack);
    const int rows = c.down / pack; // from one of a thread's to its next
    const int end = column < left ? length : 0;
    const T *at = from + column * c.step + y * c.row_stride;
    for (int row = y; row < end; row += batch * c.down, at += batch * c.down * c.row_stride) {
        T loaded[batch * pack];
#pragma unroll
        for (int i = 0; i < batch * pack; i++)
            if (row + i * rows < end) loaded[i] = at[i * (rows * c.row_stride)];
#pragma unroll
        for (int i = 0; i < batch * pack; i++)
            if (row + i * rows < end)
                acc[i % pack].add(computed(loaded[i]), first + row + i * rows, result);
    }
    Acc *of_place = shared + column / c.across * column_threads;
    const int slot = item * of_item + y * c.across + column % c.across;
#pragma unroll
    for (int j = 0; j < pack; j++)
        put_words<column_threads>(acc[j], of_place, slot + j * rows * c.across);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < pack; j++)
        acc[j] = get_words<column_threads>(shared + j * column_threads, item * of_item + thread);
    __syncthreads();
}

// `count` elements from `from` on, which need not be aligned, by a block, with loads of 16 bytes.
// In `tile` they lie as far from a multiple of 16 bytes as in memory: so many elements.
template <class T> __device__ int load_tile(const T *from, int count, T *tile) {
    constexpr int vector = sizeof(T) < 16 ? static_cast<int>(16 / sizeof(T)) : 1, batch = 4;
    using Words = Vector<uint32_t, 4>;
    const int shift = static_cast<int>(reinterpret_cast<uintptr_t>(from) % 16 / sizeof(T));
    const int vectors = (shift + count + vector - 1) / vector, threads = blockDim.x;
    for (int first = threadIdx.x; first < vectors; first += batch * threads) {
        Words held[batch];
#pragma unroll
        for (int k = 0; k < batch; k++) {
            const int at = (first + k * threads) * vector - shift;
            if (at >= 0 && at + vector <= count)
                held[k] = *reinterpret_cast<const Words *>(from + at);
        }
#pragma unroll
        for (int k = 0; k < batch; k++) {
            const int at = (first + k * threads) * vector - shift;
            if (at >= 0 && at + vector <= count)
                *reinterpret_cast<Words *>(tile + shift + at) = held[k];
            else
                for (int e = at < 0 ? 0 : at; e < at + vector && e < count; e++)
                    tile[shift + e] = from[e];
        }
    }
    return shift;
}

// Whole rows of columns that no vector divides, through shared memory: those of a thread, which
// are as in add_columns, and of each as many. Several items, of which `items` are there, follow
// each other without a gap, and the memory has room for them: `from` is that of the first.
template <class T, class Acc>
__device__ void add_dense_columns(const T *from, const Columns &c, int x, int y, int item,
                                  int items, int length, int columns, int64_t first,
                                  Acc (&acc)[pack_size<T>], T *tile, const Result &result) {
    const int inner = static_cast<int>(c.inner), down = c.down;
    const int room = (tile_bytes - 16) / static_cast<int>(sizeof(T));
    const int most = c.items > 1 ? length : room / inner / down * down;
    for (int begin = 0; begin < length; begin += most) {
        const int rows = length - begin < most ? length - begin : most, count = rows * inner;
        const int shift = load_tile(from + int64_t(begin) * inner, items * count, tile);
        const T *mine = tile + shift + item * count + x;
        __syncthreads();
#pragma unroll 4
        for (int row = y; row < rows; row += down)
#pragma unroll
            for (int j = 0; j < pack_size<T>; j++)
                if (j < columns)
                    acc[j].add(computed(mine[row * inner + j * c.across]), first + begin + row,
                               result);
        __syncthreads();
    }
}

} // namespace pvg::reduce
