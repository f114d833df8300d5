// Kernels of the reductions, one per access pattern, for any element type T and accumulator
// (reduce_accumulators.cuh):
//
//     short_rows_kernel  a group of 1 to 32 lanes a row, or four very short ones
//     long_rows_kernel   a block a row, or a block a chunk of a row
//     columns_kernel     the reduced axis is not the innermost: threads side by side own columns,
//                        of which groups of neighbours may make one result
//     merge_kernel       adds up what the others left as partial results
//     anywhere_kernel    few elements, whose axes lie in any order
//
// Which element goes to which accumulator, and in which order accumulators are merged, depends on
// the lengths and the element type alone, and of columns on whether their rows follow each other
// without a gap: not on alignment, on how many rows there are, or on the device. So a row has the
// same total, bit for bit, alone and in a batch. (Where kept and reduced axes alternate, the way,
// and so the order, depends on all lengths.) Loads are of 16 bytes where the addresses allow it.
#pragma once
#include "kernels/reduce_columns.cuh"
#include "kernels/reduce_merge.cuh"
#include "runtime/launch.cuh"

namespace pvg::reduce {

// ---- Rows ---------------------------------------------------------------------------------------

// Accumulators of one thread for rows: rounding ones have one for each place in a pack, which makes
// independent chains; large ones would not leave enough registers.
template <class T, class Acc>
inline constexpr int row_chains = Acc::ordered && sizeof(Acc) <= 16 ? pack_size<T> : 1;

template <class Acc, int N> __device__ Acc merge_chains(Acc (&chain)[N]) {
#pragma unroll
    for (int stride = 1; stride < N; stride *= 2)
#pragma unroll
        for (int j = 0; j + stride < N; j += 2 * stride) chain[j].merge(chain[j + stride]);
    return chain[0];
}

// Take in the pack whose first element has this index; the first `count` elements of what may be
// less than a pack.
template <class T, class Acc, int N>
__device__ void add_pack(Acc (&chain)[N], const Pack<T> &pack, int64_t index,
                         const Result &result) {
#pragma unroll
    for (int j = 0; j < pack_size<T>; j++)
        chain[j % N].add(computed(pack.element[j]), index + j, result);
}
template <class T, class Acc, int N>
__device__ void add_tail(Acc (&chain)[N], const T *from, int64_t step, int count, int64_t index,
                         const Result &result) {
#pragma unroll
    for (int j = 0; j < pack_size<T>; j++)
        if (j < count) chain[j % N].add(computed(from[j * step]), index + j, result);
}

// Each load has an accumulator of its own; along a row they are merged into the first.
template <bool VECTOR, class T, class Acc>
__device__ void add_short_rows(const Rows &rows, int64_t group, int lane,
                               Acc (&total)[loads_of_group], const Result &result) {
    const int length = static_cast<int>(rows.length), across = rows.lanes * pack_size<T>;
    const int apart = rows.along ? across : 0,
              stride = rows.along ? loads_of_group * apart : across;
    const T *row[loads_of_group];
    int left[loads_of_group];
#pragma unroll
    for (int u = 0; u < loads_of_group; u++) {
        const int64_t index = rows.along ? group : group + u * rows.groups;
        const bool here = group < rows.groups && index < rows.rows;
        const int64_t begin = here ? index * rows.row_stride + u * apart * rows.step : 0;
        row[u] = static_cast<const T *>(rows.data) + begin;
        left[u] = here ? length - u * apart : 0;
        total[u] = Acc::identity();
    }
    constexpr int pack = pack_size<T>;
    for (int at = lane * pack; at < length; at += stride) {
        Pack<T> loaded[loads_of_group];
        // Whole packs first: with parts of packs among them the compiler would take each apart, and
        // wait for it, before it asks for the next.
#pragma unroll
        for (int u = 0; u < loads_of_group; u++)
            if (at + pack <= left[u])
                loaded[u] = load_pack<VECTOR>(row[u] + at * rows.step, rows.step);
#pragma unroll
        for (int u = 0; u < loads_of_group; u++) {
            const int64_t index = at + u * apart;
            const bool is_whole = at + pack <= left[u];
#pragma unroll
            for (int j = 0; j < pack; j++)
                if (is_whole) total[u].add(computed(loaded[u].element[j]), index + j, result);
            if (is_whole) continue;
#pragma unroll
            for (int j = 0; j < pack - 1; j++)
                if (at + j < left[u])
                    total[u].add(computed(row[u][(at + j) * rows.step]), index + j, result);
        }
    }
    if (rows.along) merge_chains(total);
}

// `length` elements from `from` on, the first of which has the index `first`, by one block.
template <bool VECTOR, class T, class Acc>
__device__ Acc add_chunk(const T *from, int64_t step, int length, int64_t first,
                         const Result &result) {
    constexpr int pack = pack_size<T>, chains = row_chains<T, Acc>;
    constexpr int in_flight = packs_in_flight / (VECTOR ? 1 : 2) / (sizeof(T) > 8 ? 2 : 1);
    Acc chain[chains];
    for (int j = 0; j < chains; j++) chain[j] = Acc::identity();
    const int thread = static_cast<int>(threadIdx.x), last = length - pack;
    const int threads = static_cast<int>(blockDim.x), stride = threads * pack;
    Pack<T> loaded[in_flight];
    int at = thread * pack; // conditions as in add_columns
    for (; at + (in_flight - 1) * stride <= last; at += in_flight * stride) {
#pragma unroll
        for (int k = 0; k < in_flight; k++)
            loaded[k] = load_pack<VECTOR>(from + (at + k * stride) * step, step);
#pragma unroll
        for (int k = 0; k < in_flight; k++)
            add_pack(chain, loaded[k], first + at + k * stride, result);
    }
#pragma unroll
    for (int k = 0; k < in_flight - 1; k++)
        if (at + k * stride <= last)
            loaded[k] = load_pack<VECTOR>(from + (at + k * stride) * step, step);
#pragma unroll
    for (int k = 0; k < in_flight - 1; k++)
        if (at + k * stride <= last) add_pack(chain, loaded[k], first + at + k * stride, result);
    const int rest = length % pack, end = length - rest;
    if (rest && end / pack % threads == thread)
        add_tail(chain, from + end * step, step, rest, first + end, result);
    return merge_chains(chain);
}

// ---- Kernels ------------------------------------------------------------------------------------

namespace {

template <class T, class Acc>
__global__ void __launch_bounds__(short_rows_threads, sizeof(Acc) > 8 ? 5 : 6)
    short_rows_kernel(Rows rows, Acc *partials, Result result) {
    const unsigned lanes = rows.lanes, lane = threadIdx.x % lanes;
    const int64_t group =
        static_cast<int64_t>(blockIdx.x) * (short_rows_threads / lanes) + threadIdx.x / lanes;
    Acc total[loads_of_group];
    if (rows.aligned)
        add_short_rows<true, T>(rows, group, lane, total, result);
    else
        add_short_rows<false, T>(rows, group, lane, total, result);
#pragma unroll
    for (int u = 0; u < loads_of_group; u++) {
        if (u > 0 && rows.along) continue;
        merge_lanes(&total[u], rows.lanes);
        const int64_t index = group + u * rows.groups;
        if (lane != 0 || group >= rows.groups || index >= rows.rows) continue;
        if (partials)
            partials[index] = total[u];
        else
            store(total[u], result, index * result.outer_stride);
    }
}

template <class T, class Acc>
__global__ void __launch_bounds__(long_rows_threads, 2)
    long_rows_kernel(Rows rows, Acc *partials, Result result) {
    __shared__ Acc of_warp[32];
    const unsigned chunks = static_cast<unsigned>(rows.chunks);
    const int64_t index = blockIdx.x / chunks, begin = blockIdx.x % chunks * rows.chunk;
    int64_t end = begin + rows.chunk < rows.length ? begin + rows.chunk : rows.length;
    int length = static_cast<int>(end - begin);
    const T *from = static_cast<const T *>(rows.data) + index * rows.row_stride + begin * rows.step;
    Acc total = rows.aligned ? add_chunk<true, T, Acc>(from, 1, length, begin, result)
                             : add_chunk<false, T, Acc>(from, rows.step, length, begin, result);
    merge_lanes(&total, 32);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    total = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : Acc::identity();
    merge_lanes(&total, 32);
    if (threadIdx.x != 0) return;
    if (partials)
        partials[blockIdx.x] = total;
    else
        store(total, result, index * result.outer_stride);
}

// A column's total: one of the partial results of its block, if there are any, or the result.
template <class Acc>
__device__ __forceinline__ void give_column(const Acc &total, const Result &result, Acc *partial,
                                            int64_t outer, int64_t at) {
    if (partial)
        partial[at] = total;
    else
        store(total, result, outer * result.outer_stride + at * result.inner_stride);
}

// Totals of columns of folded rows to those of the operand's columns.
template <int SLOTS, class Acc>
__device__ __forceinline__ void merge_folded(Acc *shared, const Columns &c, const Result &result,
                                             Acc *partial, int64_t outer) {
    const int part = static_cast<int>(c.part), thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    for (int half = c.fold / 2; half > 0; half /= 2) {
        __syncthreads();
        for (int i = thread; i < half * part; i += threads) {
            Acc acc = get_words<SLOTS>(shared, i);
            acc.merge(get_words<SLOTS>(shared, i + half * part));
            put_words<SLOTS>(acc, shared, i);
        }
    }
    for (int i = thread; i < part; i += threads)
        give_column(get_words<SLOTS>(shared, i), result, partial, outer, i);
}

// Totals of columns, `left` of them, to those of groups of neighbours, the first of which is one of
// the results from this one on.
template <int SLOTS, class Acc>
__device__ __forceinline__ void merge_groups(Acc *shared, const Columns &c, int64_t left,
                                             const Result &result, int64_t outer, int64_t first) {
    const int lanes = c.lanes, lane = static_cast<int>(threadIdx.x) % lanes;
    const int of_block = static_cast<int>(blockDim.x) / lanes; // groups at a time
    const int groups = static_cast<int>(left) / c.group;
    __syncthreads();
    for (int begin = 0; begin < groups; begin += of_block) {
        const int i = begin + static_cast<int>(threadIdx.x) / lanes;
        Acc total = Acc::identity();
        for (int at = lane; i < groups && at < c.group; at += lanes)
            total.merge(get_words<SLOTS>(shared, i * c.group + at));
        merge_lanes(&total, lanes);
        if (i < groups && lane == 0) give_column<Acc>(total, result, nullptr, outer, first + i);
    }
}

// A thread's columns are neighbours where they are loaded at once, or from two granules; others are
// dealt out one by one, so that neighbouring threads read neighbours. A column's total is the same.
template <class T, class Acc>
__global__ void __launch_bounds__(column_threads, sizeof(T) > 8 || sizeof(Acc) > 16 ? 2 : 3)
    columns_kernel(Columns c, Acc *partials, Result result) {
    constexpr int pack = pack_size<T>;
    constexpr int of_totals = column_threads * pack * static_cast<int>(sizeof(Acc));
    __shared__ uint4 room[(of_totals < tile_bytes ? tile_bytes : of_totals) / 16];
    Acc *shared = reinterpret_cast<Acc *>(room);
    const unsigned above = blockIdx.x / c.stripes;
    const int64_t stripe = blockIdx.x % c.stripes, chunk = above % c.chunks;
    const int64_t first_item = static_cast<int64_t>(above / c.chunks) * c.items;
    const int64_t items_left = c.outer - first_item;
    const int items = items_left < c.items ? static_cast<int>(items_left) : c.items;
    const int x = threadIdx.x % c.across, row = threadIdx.x / c.across;
    // Of groups there may be more threads, to make the last warp whole: they are below all others.
    const int y = c.items > 1 ? row & (c.down - 1) : row, item = c.items > 1 ? row / c.down : 0;
    const int64_t outer = first_item + item;
    const bool side_by_side = c.aligned || c.shifted;
    const int apart = side_by_side ? 1 : c.across;
    const int64_t width = c.group > 1 ? c.width : c.across * pack, stripe_begin = stripe * width;
    const int64_t in_stripe = c.inner - stripe_begin < width ? c.inner - stripe_begin : width;
    int64_t column = stripe_begin + (side_by_side ? x * pack : x);
    // Columns of the thread: none if this is not positive.
    int64_t left = stripe_begin + in_stripe - column;
    int columns = left >= apart * pack ? pack : static_cast<int>((left + apart - 1) / apart);
    if (item >= items || y >= c.down) columns = 0;
    int64_t begin = chunk * c.chunk, end = begin + c.chunk < c.length ? begin + c.chunk : c.length;
    int length = static_cast<int>(end - begin);
    const int64_t offset = outer * c.outer_stride + begin * c.row_stride + column * c.step;
    const T *from = static_cast<const T *>(c.data) + offset;
    Acc acc[pack];
    int64_t place[pack] = {}; // of folded rows: which of them
#pragma unroll
    for (int j = 0; j < pack; j++) {
        acc[j] = Acc::identity();
        if (c.fold > 1)
            place[j] = (static_cast<int>(column) + j * apart) / static_cast<int>(c.part);
    }
    if (sizeof(T) <= 8 && c.dense)
        add_dense_columns(from - x - item * c.outer_stride, c, x, y, item, items, length, columns,
                          begin, acc, reinterpret_cast<T *>(room), result);
    else if (c.aligned && columns == pack)
        add_columns<true>(from, c, y, {}, length, begin, place, acc, result);
    else if (sizeof(T) <= 8 && c.shifted) {
        if constexpr (sizeof(T) <= 8)
            if (columns > 0) add_shifted(from, c, y, columns, offset, length, begin, acc, result);
    } else if (c.upright)
        add_upright(from - x * c.step, c, item, item < items ? c.inner - column + x : 0, length,
                    begin, acc, shared, result);
    else if (columns > 0)
        add_columns<false>(from, c, y, apart_of<T>(apart * c.step, columns), length, begin, place,
                           acc, result);
    if (c.tail && chunk + 1 == c.chunks && y == 0) {
#pragma unroll
        for (int j = 0; j < pack; j++)
            if (column + j * apart < c.tail)
                acc[j].add(computed(from[length * c.row_stride + j * apart * c.step]),
                           end * c.fold + place[j], result);
    }
    merge_down<column_threads>(acc, shared, y, c.across, c.down);
    Acc *partial = partials ? partials + (outer * c.chunks + chunk) * c.part : nullptr;
    const bool merged = c.fold > 1 || c.group > 1; // through shared memory
    if (merged) __syncthreads();
#pragma unroll
    for (int j = 0; j < pack; j++) {
        if (y != 0 || j >= columns) continue;
        const int64_t at = column + j * apart;
        if (merged)
            put_words<column_threads * pack>(acc[j], shared, static_cast<int>(at - stripe_begin));
        else
            give_column(acc[j], result, partial, outer, at);
    }
    if (c.fold > 1) merge_folded<column_threads * pack>(shared, c, result, partial, outer);
    if (c.group > 1)
        merge_groups<column_threads * pack>(shared, c, in_stripe, result, outer,
                                            stripe_begin / c.group);
}

// Every so many of the elements of a result, as far as they are there.
template <class T, int N>
__device__ __forceinline__ void load_anywhere(const T *from, const Anywhere &job, int64_t first,
                                              T (&loaded)[N]) {
    int64_t place[N], offset[1][N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        place[k] = first + k * job.lanes;
        if (place[k] >= job.length) place[k] = first;
    }
    locate(job.reduced, place, offset);
#pragma unroll
    for (int k = 0; k < N; k++)
        if (first + k * job.lanes < job.length) loaded[k] = from[offset[0][k]];
}

// Partial results that lie anywhere, into results. No partial results: those of no elements.
template <class Acc>
__global__ void __launch_bounds__(column_threads)
    merge_kernel(const __grid_constant__ Anywhere job, const Result result) {
    constexpr int batch = merged_together;
    __shared__ Acc shared[column_threads];
    const int across = column_threads / job.lanes, y = threadIdx.x / across;
    const int64_t index[1] = {static_cast<int64_t>(blockIdx.x) * across + threadIdx.x % across};
    const bool here = index[0] < job.results;
    int64_t at[2][1] = {};
    if (here) locate(job.kept, index, at);
    const Acc *from = static_cast<const Acc *>(job.data) + at[1][0];
    Acc total[1] = {Acc::identity()};
    for (int64_t first = y; here && first < job.length; first += batch * job.lanes) {
        Acc loaded[batch];
        load_anywhere(from, job, first, loaded);
#pragma unroll
        for (int k = 0; k < batch; k++)
            if (first + k * job.lanes < job.length) total[0].merge(loaded[k]);
    }
    merge_down<column_threads>(total, shared, y, across, job.lanes);
    if (here && y == 0) store(total[0], result, at[0][0]);
}

// Every group of lanes has a result, whose elements lie anywhere.
template <class T, class Acc>
__global__ void __launch_bounds__(anywhere_threads)
    anywhere_kernel(const __grid_constant__ Anywhere job, const Result result) {
    constexpr int batch = anywhere_together;
    __shared__ Acc of_warp[anywhere_threads / 32];
    const unsigned lanes = static_cast<unsigned>(job.lanes), of_block = blockDim.x / lanes;
    const int64_t index[1] = {static_cast<int64_t>(blockIdx.x) * of_block + threadIdx.x / lanes};
    const int lane = static_cast<int>(threadIdx.x % lanes);
    const bool here = index[0] < job.results;
    int64_t at[2][1] = {};
    if (here) locate(job.kept, index, at);
    const T *from = static_cast<const T *>(job.data) + at[1][0];
    Acc total = Acc::identity();
    for (int64_t first = lane; here && first < job.length; first += batch * job.lanes) {
        T loaded[batch];
        load_anywhere(from, job, first, loaded);
#pragma unroll
        for (int k = 0; k < batch; k++)
            if (first + k * job.lanes < job.length)
                total.add(computed(loaded[k]), first + k * job.lanes, result);
    }
    merge_lanes(&total, job.lanes < 32 ? job.lanes : 32);
    if (job.lanes > 32) {
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = total;
        __syncthreads();
        if (threadIdx.x >= 32) return;
        total = threadIdx.x < lanes / 32 ? of_warp[threadIdx.x] : Acc::identity();
        merge_lanes(&total, 32);
    }
    if (here && lane == 0) store(total, result, at[0][0]);
}

} // namespace

} // namespace pvg::reduce
