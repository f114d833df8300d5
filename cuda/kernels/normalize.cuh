// What the normalisations' forward and backward pass share: the picture of their operands, and sums
// over channels.
//
// x is [items][channels][inner]. Statistics belong to a row, which is a group of channels of an
// item, or to a channel of all items. Rows are held by a warp or a block (kernels/rows.cuh); the
// sums of channels, and of rows that are too long for that, are made in two launches: blocks add up
// chunks, and a warp a channel adds up these. Which element goes to which chunk depends on the
// shape alone, and everything is added in a fixed order.
#pragma once
#include "kernels/rows.cuh"

namespace pvg {

// A call, and the numbers of its picture. Arrays are contiguous.
struct Norm {
    const pvg_array *x, *weight, *bias; // weight and bias may be NULL
    int axis, naxes;
    int64_t asked; // groups, as the caller named them
    int centered;
    double epsilon;
    pvg_array *statistics; // or NULL
    int64_t items, channels, inner, groups;
    int64_t count;  // of statistics
    int64_t length; // elements that one is of
    bool by_channel, given;
};

// Checks the operands and fills in the numbers; errors as of pvg_normalize.
int picture_norm(Norm *norm, const pvg_array *gradient, int *device);
// The operand, contiguous and in x's dtype or in that of the statistics.
int readable_channels(Call &call, const Norm &norm, const pvg_array *a, Temporary (&holders)[2],
                      const pvg_array **result);
// The dtype of statistics.
inline int norm_dtype(int dtype) { return dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32; }
// 1 / sqrt(variance + epsilon), from statistics.
int scales_of(Call &call, const Norm &norm, const pvg_array *statistics, pvg_array *scales);

// An array of one number a channel, or of one a row, as a view in the shape of `norm_shape`.
enum class Along { everything, statistics, channels };
int norm_view(const Norm &norm, const pvg_array *a, int64_t offset, Along along, Temporary *view);

// ---- Weights ------------------------------------------------------------------------------------

// Numbers of channels beside the elements of a row.
struct OfChannels {
    const void *numbers; // NULL: there are none
    bool halves;         // stored as x is, else as it is computed
    bool aligned;        // packs of them may be loaded at once, where there is one an element
    int64_t groups;
    int channels, inner; // of a group
};

inline OfChannels of_channels(const Norm &norm, const pvg_array *a) {
    const uintptr_t bits = a ? reinterpret_cast<uintptr_t>(a->data) : 0;
    const int64_t channels = norm.channels / (norm.by_channel ? 1 : norm.groups);
    return {a ? a->data : nullptr,
            a && a->dtype != norm_dtype(norm.x->dtype),
            bits % 16 == 0,
            norm.by_channel ? norm.channels : norm.groups,
            static_cast<int>(channels),
            static_cast<int>(norm.inner)};
}

namespace {

template <class T>
__device__ __forceinline__ ComputeType<T> number_of(const OfChannels &of, int64_t channel) {
    using A = ComputeType<T>;
    return of.halves ? static_cast<A>(static_cast<const T *>(of.numbers)[channel])
                     : static_cast<const A *>(of.numbers)[channel];
}

// Those of the pack of a row at `at`, where there is one an element.
template <class T>
__device__ __forceinline__ void numbers_beside(const OfChannels &of, int at, int length,
                                               ComputeType<T> (&values)[pack_size<T>]) {
    using A = ComputeType<T>;
    if (of.halves) {
        const Pack<T> found =
            load_pack(static_cast<const T *>(of.numbers), at, length, of.aligned, 0);
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) values[j] = static_cast<A>(found.element[j]);
    } else {
        const Pack<A> found =
            load_pack(static_cast<const A *>(of.numbers), at, length, of.aligned, 0);
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) values[j] = found.element[j];
    }
}

// The same of any channels. Divisions that few calls need would take the registers of all: no part
// of the kernels that call it.
template <class T> struct PackNumbers { ComputeType<T> at[pack_size<T>]; };
template <class T>
__device__ __attribute__((noinline)) PackNumbers<T>
numbers_of_groups(const OfChannels &of, int64_t row, int at, int length) {
    using A = ComputeType<T>;
    constexpr int pack = pack_size<T>;
    PackNumbers<T> values;
    const int64_t first = row % of.groups * of.channels;
    const bool one = of.inner % pack == 0; // for all of the pack
    A value = one ? number_of<T>(of, first + at / of.inner) : A(0);
    for (int j = 0; j < pack; j++) {
        if (!one) value = at + j < length ? number_of<T>(of, first + (at + j) / of.inner) : A(0);
        values.at[j] = value;
    }
    return values;
}
template <class T>
__device__ __forceinline__ void numbers_of(const OfChannels &of, int64_t row, int at, int length,
                                           ComputeType<T> (&values)[pack_size<T>]) {
    if (of.inner == 1 && of.groups == 1) return numbers_beside<T>(of, at, length, values);
    const PackNumbers<T> found = numbers_of_groups<T>(of, row, at, length);
#pragma unroll
    for (int j = 0; j < pack_size<T>; j++) values[j] = found.at[j];
}

} // namespace

// ---- Sums of channels ---------------------------------------------------------------------------

constexpr int sums_threads = 256, sums_down = 8; // warps of a block
constexpr int64_t few_inner = 32;                // elements, below which columns are walked

struct ChannelPlan {
    int64_t items, channels, inner;
    int64_t chunk, chunks; // elements of a channel, or items
    int64_t stripes;       // of columns
    bool columns;          // [items][channels * inner], a thread a column
    bool narrow;           // places in a channel fit in 32 bits
    bool aligned;          // packs may be loaded at once
    int64_t partials() const { return chunks * channels * (columns ? inner : 1); }
};

struct TwoSums { double first, second; };

inline ChannelPlan plan_channels(int64_t items, int64_t channels, int64_t inner, int pack,
                                 size_t alignment, uintptr_t pointers) {
    constexpr int64_t blocks = 1024; // that keep a large card busy
    ChannelPlan plan = {items, channels, inner, 0, 0, 1, inner < few_inner, false, false};
    const int64_t run = plan.columns ? channels * inner : inner;
    plan.aligned = pointers % alignment == 0 && run % pack == 0;
    if (plan.columns) {
        const int64_t width = 32 * (plan.aligned ? pack : 1);
        plan.stripes = run / width + (run % width != 0);
    }
    const int64_t length = plan.columns ? items : items * inner;
    const int64_t across = plan.columns ? plan.stripes : channels;
    const int64_t least = plan.columns ? 8 * sums_down : 16 * sums_threads;
    const int64_t wanted = across < blocks ? blocks / across : 1;
    plan.chunk = length / wanted + (length % wanted != 0);
    plan.chunk = (plan.chunk / least + (plan.chunk % least != 0)) * least;
    plan.chunks = length / plan.chunk + (length % plan.chunk != 0);
    plan.narrow = length <= INT32_MAX;
    return plan;
}

namespace {

// Terms: `of(channel)` is what is the same for a channel; load(at) a pack's elements or one's, and
// add(of, item, loaded, first, second) their part of the two sums.
template <class T, class Terms>
__global__ void __launch_bounds__(sums_threads)
    channel_rows_kernel(const __grid_constant__ ChannelPlan plan,
                        const __grid_constant__ Terms terms, TwoSums *partials) {
    using A = typename Terms::Sum;
    __shared__ double of_warp[2][32];
    const int64_t channel = blockIdx.x % plan.channels, chunk = blockIdx.x / plan.channels;
    const int64_t all = plan.items * plan.inner, behind = (chunk + 1) * plan.chunk;
    const int64_t end = behind < all ? behind : all;
    const typename Terms::Of of = terms.of(channel);
    const int width = plan.aligned ? pack_size<T> : 1;
    A first = 0, second = 0;
#pragma unroll 4
    for (int64_t k = chunk * plan.chunk + int64_t(threadIdx.x) * width; k < end;
         k += sums_threads * width) {
        const int64_t item = plan.narrow
                                 ? static_cast<uint32_t>(k) / static_cast<uint32_t>(plan.inner)
                                 : k / plan.inner;
        const int64_t at = (item * plan.channels + channel) * plan.inner + k - item * plan.inner;
        if (plan.aligned)
            terms.template add<pack_size<T>>(of, item, at, first, second);
        else
            terms.template add<1>(of, item, at, first, second);
    }
    const double one = over_block<true>(static_cast<double>(first), of_warp[0]);
    const double two = over_block<true>(static_cast<double>(second), of_warp[1]);
    if (threadIdx.x == 0) partials[blockIdx.x] = {one, two};
}

// A warp has 32 packs of columns, or as many columns; the block's warps share the items of a chunk.
template <class T, class Terms>
__global__ void __launch_bounds__(sums_threads)
    channel_columns_kernel(const __grid_constant__ ChannelPlan plan,
                           const __grid_constant__ Terms terms, TwoSums *partials) {
    using A = typename Terms::Sum;
    constexpr int pack = pack_size<T>;
    __shared__ A sums[2][sums_down][32 * pack];
    const int64_t columns = plan.channels * plan.inner;
    const int64_t stripe = blockIdx.x % plan.stripes, chunk = blockIdx.x / plan.stripes;
    const int lane = static_cast<int>(threadIdx.x % 32), down = static_cast<int>(threadIdx.x / 32);
    const int width = plan.aligned ? pack : 1;
    const int64_t column = (stripe * 32 + lane) * width;
    const int64_t behind = (chunk + 1) * plan.chunk;
    const int64_t end = behind < plan.items ? behind : plan.items;
    A first[pack] = {}, second[pack] = {};
    if (column < columns) {
        typename Terms::Of of[pack];
#pragma unroll
        for (int j = 0; j < pack; j++)
            if (j < width) of[j] = terms.of((column + j) / plan.inner);
#pragma unroll 4
        for (int64_t item = chunk * plan.chunk + down; item < end; item += sums_down) {
            const int64_t at = item * columns + column;
            if (plan.aligned)
                terms.template add_each<pack>(of, item, at, first, second);
            else
                terms.template add<1>(of[0], item, at, first[0], second[0]);
        }
    }
#pragma unroll
    for (int j = 0; j < pack; j++) {
        sums[0][down][lane * pack + j] = first[j];
        sums[1][down][lane * pack + j] = second[j];
    }
    __syncthreads();
    const int t = static_cast<int>(threadIdx.x);
    const int64_t place = stripe * 32 * width + t;
    if (t >= 32 * width || place >= columns) return;
    const int from = t / width * pack + t % width;
    TwoSums total = {0, 0};
    for (int k = 0; k < sums_down; k++)
        total.first += sums[0][k][from], total.second += sums[1][k][from];
    partials[chunk * columns + place] = total;
}

// The sums of a channel, by the warp that calls it.
__device__ inline TwoSums sums_of_channel(const ChannelPlan &plan, const TwoSums *partials,
                                          int64_t channel) {
    const int64_t each = plan.columns ? plan.inner : 1;
    TwoSums total = {0, 0};
    for (int64_t k = threadIdx.x % 32; k < plan.chunks * each; k += 32) {
        const TwoSums part = partials[(k / each * plan.channels + channel) * each + k % each];
        total.first += part.first, total.second += part.second;
    }
    return {sum_of_lanes(total.first, 32), sum_of_lanes(total.second, 32)};
}

template <class T, class Terms>
int launch_channel_sums(Call &call, const ChannelPlan &plan, const Terms &terms,
                        Workspace *partials) {
    PVG_PASS(partials->open(call, static_cast<size_t>(plan.partials()) * sizeof(TwoSums)));
    TwoSums *to = partials->as<TwoSums>();
    if (plan.columns)
        PVG_LAUNCH((channel_columns_kernel<T, Terms>), blocks_for(plan.stripes * plan.chunks, 1),
                   sums_threads, 0, call.stream, plan, terms, to);
    else
        PVG_LAUNCH((channel_rows_kernel<T, Terms>), blocks_for(plan.channels * plan.chunks, 1),
                   sums_threads, 0, call.stream, plan, terms, to);
    return PVG_OK;
}

} // namespace

} // namespace pvg
