// pvg_normalize_backward: with y the standardised x and gw the gradient times weight,
//
//     dx = (gw - mean(gw) - y * mean(gw * y)) / deviation     means over what a statistic is of
//     dweight = sum of gradient * y, dbias = sum of gradient  over what a channel has
//
// Rows of one group: x and the gradient are read once. A block, or several that share long rows,
// goes over several rows, the next of which is under way while one is computed, and keeps its part
// of dweight and dbias in registers; a second launch adds the parts up. Longer rows, and those of
// several groups: a kernel for dx that holds a row, and the sums of channels
// (kernels/normalize.cuh). Channels of all items: these sums, and then an elementwise kernel.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "kernels/normalize_backward_kernels.cuh"
#include "kernels/normalize_backward_parts.cuh"

namespace pvg {

namespace {

// ---- Rows ---------------------------------------------------------------------------------------

template <class T> int launch_slope_rows(Call &call, const Norm &norm, SlopeRows job) {
    const void *pointers[3] = {job.gradient, job.x, job.dx};
    int threads = 0;
    size_t shared = 0;
    bool whole = false;
    PVG_PASS((plan_rows<T, 2>(call, norm.count, norm.length, pointers, 3, &job.plan, &threads,
                              &shared, &whole)));
    if (job.plan.lanes > middle_threads) {
        PVG_LAUNCH((slope_rows_kernel<T, held_packs, long_threads>), blocks_for(norm.count, 1),
                   threads, shared, call.stream, job);
        return PVG_OK;
    }
    if (job.plan.lanes > 32) {
        PVG_LAUNCH((slope_rows_kernel<T, held_packs, middle_threads>), blocks_for(norm.count, 1),
                   threads, shared, call.stream, job);
        return PVG_OK;
    }
    const unsigned blocks = blocks_for(norm.count, short_threads / job.plan.lanes);
    if (norm.length <= 32 * pack_size<T>)
        PVG_LAUNCH((slope_rows_kernel<T, 1, short_threads>), blocks, short_threads, 0, call.stream,
                   job);
    else
        PVG_LAUNCH((slope_rows_kernel<T, most_packs / 2, short_threads>), blocks, short_threads, 0,
                   call.stream, job);
    return PVG_OK;
}

// How many blocks share the rows: a number that depends on the shape alone.
int64_t fused_blocks(int64_t rows, int64_t length, int lanes) {
    if (lanes <= 32) {
        const int64_t teams = teams_threads / lanes, all = rows / teams + (rows % teams != 0);
        return all < 1024 ? all : 1024;
    }
    int64_t most = (1 << 20) / length, blocks = rows / 16;
    most = most < 128 ? 128 : most > 1024 ? 1024 : most;
    blocks = blocks > 64 ? blocks : 64;
    blocks = blocks < most ? blocks : most;
    return blocks < rows ? blocks : rows;
}

template <class T>
int launch_fused(Call &call, const Norm &norm, SlopeRows job, pvg_array *dweight,
                 pvg_array *dbias) {
    using A = ComputeType<T>;
    constexpr int pack = pack_size<T>;
    const int64_t packs = (norm.length + pack - 1) / pack;
    const void *const pointers[3] = {job.gradient, job.x, job.dx};
    job.plan.rows = norm.count, job.plan.length = static_cast<int>(norm.length);
    job.plan.aligned = packs_lie_well<T>(pointers, 3, norm.count, norm.length);
    job.plan.lanes = static_cast<int>(power_of_two_from((packs + 1) / fused_packs));
    const bool in_warps = job.plan.lanes <= 32;
    const int64_t wanted = fused_blocks(norm.count, norm.length, job.plan.lanes);
    const int64_t teams = in_warps ? teams_threads / job.plan.lanes : 1;
    job.each = norm.count / wanted + (norm.count % wanted != 0);
    job.each = (job.each / teams + (job.each % teams != 0)) * teams;
    const int64_t blocks = norm.count / job.each + (norm.count % job.each != 0);
    Workspace partials;
    PVG_PASS(partials.open(call, static_cast<size_t>(blocks * 2 * norm.length) * sizeof(A)));
    job.partials = partials.as<A>();
    if (in_warps)
        PVG_LAUNCH((slope_and_sums_kernel<T, teams_threads>), blocks_for(blocks, 1), teams_threads,
                   0, call.stream, job);
    else if (job.plan.lanes <= middle_threads)
        PVG_LAUNCH((slope_and_sums_kernel<T, middle_threads>), blocks_for(blocks, 1),
                   job.plan.lanes, 0, call.stream, job);
    else
        PVG_LAUNCH((slope_and_sums_kernel<T, long_threads>), blocks_for(blocks, 1), job.plan.lanes,
                   0, call.stream, job);
    return launch_add_parts(call, partials.as<A>(), blocks, norm.length, data<A>(dweight),
                            data<A>(dbias));
}

// The same of rows that blocks share.
template <class T>
int launch_cut(Call &call, const Norm &norm, SlopeRows job, pvg_array *dweight, pvg_array *dbias) {
    using A = ComputeType<T>;
    const void *const pointers[3] = {job.gradient, job.x, job.dx};
    RowParts cut = cut_rows<T>(norm.count, norm.length, 1, pointers);
    cut.each = rows_of_group(norm.count, cut.parts);
    Workspace partials;
    PVG_PASS(partials.open(call, static_cast<size_t>(cut.groups() * 2 * norm.length) * sizeof(A)));
    job.partials = partials.as<A>();
    PVG_PASS(launch_slope_parts<T>(call, job, cut));
    return launch_add_parts(call, partials.as<A>(), cut.groups(), norm.length, data<A>(dweight),
                            data<A>(dbias));
}

// ---- Sums of channels ---------------------------------------------------------------------------

// The gradient, and the gradient times the standardised elements.
template <class T> struct GradientTerms {
    using A = ComputeType<T>;
    using Sum = A;
    using Of = int64_t;
    const T *gradient, *x;
    const A *means, *scales;
    int64_t of_item, channels; // statistics of an item, and channels of a statistic

    __device__ int64_t of(int64_t channel) const { return channel / channels; }
    __device__ void take(int64_t at, T g, T element, A &first, A &second) const {
        const A value = static_cast<A>(g);
        first += value;
        second = fma(value, (static_cast<A>(element) - means[at]) * scales[at], second);
    }
    template <int N>
    __device__ void add(int64_t of, int64_t item, int64_t at, A &first, A &second) const {
        using V = Vector<T, N>;
        const V g = *reinterpret_cast<const V *>(gradient + at);
        const V elements = *reinterpret_cast<const V *>(x + at);
#pragma unroll
        for (int j = 0; j < N; j++)
            take(item * of_item + of, g.element[j], elements.element[j], first, second);
    }
    template <int N>
    __device__ void add_each(const int64_t (&of)[N], int64_t item, int64_t at, A (&first)[N],
                             A (&second)[N]) const {
        using V = Vector<T, N>;
        const V g = *reinterpret_cast<const V *>(gradient + at);
        const V elements = *reinterpret_cast<const V *>(x + at);
#pragma unroll
        for (int j = 0; j < N; j++)
            take(item * of_item + of[j], g.element[j], elements.element[j], first[j], second[j]);
    }
};

// What becomes of the sums: gradients of weight and bias, and, of channels of all items, what an
// elementwise kernel needs of each. Any may be NULL.
template <class A> struct OfSums {
    A *dweight, *dbias, *factors, *firsts, *seconds;
    const A *scales;
    OfChannels weight;
    double length; // 0: statistics are constants
};

template <class T>
__global__ void __launch_bounds__(sums_threads)
    slope_sums_kernel(const __grid_constant__ ChannelPlan plan, const TwoSums *partials,
                      const __grid_constant__ OfSums<ComputeType<T>> to) {
    using A = ComputeType<T>;
    const int64_t channel = int64_t(blockIdx.x) * (sums_threads / 32) + threadIdx.x / 32;
    if (channel >= plan.channels) return;
    TwoSums total = {0, 0};
    if (partials) total = sums_of_channel(plan, partials, channel);
    if (threadIdx.x % 32 != 0) return;
    if (to.dweight) {
        to.dweight[channel] = static_cast<A>(total.second);
        to.dbias[channel] = static_cast<A>(total.first);
    }
    if (!to.factors) return;
    const A scale = to.scales[channel];
    to.factors[channel] = to.weight.numbers ? number_of<T>(to.weight, channel) * scale : scale;
    to.firsts[channel] = to.length > 0 ? static_cast<A>(total.first / to.length) : A(0);
    to.seconds[channel] = to.length > 0 ? static_cast<A>(total.second / to.length) * scale : A(0);
}

// factor * (gradient - first - (x - mean) * second). Operands: the gradient, x, and these four.
template <class T> struct SlopeOfChannels {
    static constexpr int inputs = 6, vector = pack_size<T>;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        using A = ComputeType<T>;
        A x[Access::count], y[Access::count], of[Access::count];
        read_as<T>(access, 0, y);
        read_as<T>(access, 1, x);
        access.read(2, of);
#pragma unroll
        for (int e = 0; e < Access::count; e++) x[e] -= of[e];
        access.read(5, of);
#pragma unroll
        for (int e = 0; e < Access::count; e++) x[e] *= of[e];
        access.read(4, of);
#pragma unroll
        for (int e = 0; e < Access::count; e++) y[e] = y[e] - of[e] - x[e];
        access.read(3, of);
#pragma unroll
        for (int e = 0; e < Access::count; e++) y[e] *= of[e];
        write_as<T>(access, y);
    }
};
template <class T> constexpr bool only_rows<SlopeOfChannels<T>> = true; // operands are contiguous
template <class T> constexpr int rows_blocks<SlopeOfChannels<T>> = blocks_held(8, map_threads);

template <class T> int launch_sums(Call &call, const Norm &norm, const pvg_array *gradient,
                                   const pvg_array *scales, const OfSums<ComputeType<T>> &to) {
    const uintptr_t bits =
        reinterpret_cast<uintptr_t>(norm.x->data) | reinterpret_cast<uintptr_t>(gradient->data);
    const ChannelPlan plan =
        plan_channels(norm.items, norm.channels, norm.inner, pack_size<T>, alignof(Pack<T>), bits);
    const bool needed = to.dweight || to.length > 0;
    const int64_t of_item = norm.by_channel ? 0 : norm.groups;
    const int64_t channels = norm.by_channel ? 1 : norm.channels / norm.groups;
    const GradientTerms<T> terms = {data<T>(gradient),
                                    data<T>(norm.x),
                                    data<ComputeType<T>>(norm.statistics),
                                    data<ComputeType<T>>(scales),
                                    of_item,
                                    channels};
    Workspace partials;
    if (needed) PVG_PASS((launch_channel_sums<T>(call, plan, terms, &partials)));
    PVG_LAUNCH(slope_sums_kernel<T>, blocks_for(norm.channels, sums_threads / 32), sums_threads, 0,
               call.stream, plan, needed ? partials.as<TwoSums>() : nullptr, to);
    return PVG_OK;
}

// ---- The call -----------------------------------------------------------------------------------

struct Slopes { pvg_array *dx, *dweight, *dbias; }; // dweight and dbias NULL: not wanted

template <class T> int slopes_of_channels(Call &call, const Norm &norm, const pvg_array *gradient,
                                          const Slopes &to) {
    using A = ComputeType<T>;
    const int dtype = norm_dtype(norm.x->dtype);
    const int64_t shape[2] = {4, norm.channels};
    Temporary table, scales, views[7];
    PVG_PASS(new_array(call.device, dtype, 2, shape, &table.array));
    PVG_PASS(new_array(call.device, dtype, 1, shape + 1, &scales.array));
    PVG_PASS(scales_of(call, norm, norm.statistics, scales.array));
    A *numbers = data<A>(table.array);
    const int64_t n = norm.channels;
    const OfSums<A> sums = {to.dweight ? data<A>(to.dweight) : nullptr,
                            to.dbias ? data<A>(to.dbias) : nullptr,
                            numbers,
                            numbers + n,
                            numbers + 2 * n,
                            data<A>(scales.array),
                            of_channels(norm, norm.weight),
                            norm.given ? 0 : static_cast<double>(norm.length)};
    PVG_PASS(launch_sums<T>(call, norm, gradient, scales.array, sums));
    PVG_PASS(norm_view(norm, gradient, 0, Along::everything, &views[0]));
    PVG_PASS(norm_view(norm, norm.x, 0, Along::everything, &views[1]));
    PVG_PASS(norm_view(norm, norm.statistics, 0, Along::statistics, &views[2]));
    for (int i = 0; i < 3; i++)
        PVG_PASS(norm_view(norm, table.array, i * n, Along::statistics, &views[3 + i]));
    PVG_PASS(norm_view(norm, to.dx, 0, Along::everything, &views[6]));
    return launch_map(call, SlopeOfChannels<T>(), views[6].array,
                      {views[0].array, views[1].array, views[2].array, views[3].array,
                       views[4].array, views[5].array});
}

template <class T>
int launch_slopes(Call &call, const Norm &norm, const pvg_array *gradient, const Slopes &to) {
    using A = ComputeType<T>;
    if (norm.by_channel) return slopes_of_channels<T>(call, norm, gradient, to);
    SlopeRows job = {};
    job.gradient = gradient->data, job.x = norm.x->data, job.statistics = norm.statistics->data;
    job.dx = to.dx->data, job.weight = of_channels(norm, norm.weight);
    job.epsilon = norm.epsilon, job.centered = norm.centered == 1;
    const bool short_enough = norm.length <= int64_t(long_threads) * fused_packs * pack_size<T>;
    if (to.dweight && norm.groups == 1 && norm.inner == 1) {
        if (short_enough) return launch_fused<T>(call, norm, job, to.dweight, to.dbias);
        if (are_cut<T>(norm.length)) return launch_cut<T>(call, norm, job, to.dweight, to.dbias);
    }
    PVG_PASS(launch_slope_rows<T>(call, norm, job));
    if (!to.dweight) return PVG_OK;
    Temporary scales;
    PVG_PASS(new_array(call.device, norm_dtype(norm.x->dtype), 1, &norm.count, &scales.array));
    PVG_PASS(scales_of(call, norm, norm.statistics, scales.array));
    OfSums<A> sums = {};
    sums.dweight = data<A>(to.dweight), sums.dbias = data<A>(to.dbias);
    return launch_sums<T>(call, norm, gradient, scales.array, sums);
}

int new_gradients(Call &call, const Norm &norm, bool wanted, Temporary (&made)[3]) {
    const pvg_array *x = norm.x;
    const int dtype = norm_dtype(x->dtype);
    PVG_PASS(new_array(call.device, x->dtype, x->ndim, x->shape, &made[0].array));
    for (int i = 1; wanted && i < 3; i++)
        PVG_PASS(new_array(call.device, dtype, norm.naxes, x->shape + norm.axis, &made[i].array));
    return PVG_OK;
}

// The gradients of parameters in the dtype of the weight.
int as_weight(Call &call, int dtype, Temporary *made) {
    if (!made->array || made->array->dtype == dtype) return PVG_OK;
    Temporary cast;
    const pvg_array *result;
    PVG_PASS(as_dtype(call, made->array, dtype, &cast, &result));
    pvg_array *before = made->take();
    made->array = cast.take();
    release(before);
    return PVG_OK;
}

int run_slopes(Call &call, Norm norm, const pvg_array *gradient, pvg_array **const (&results)[3]) {
    int device = -1;
    Temporary made[3], straight[2], cast, holders[2];
    const bool wanted = results[1] && results[2];
    PVG_REQUIRE(results[0] && !results[1] == !results[2], PVG_ERROR_VALUE,
                "dx is wanted, and dweight and dbias both or neither");
    PVG_REQUIRE(norm.statistics, PVG_ERROR_VALUE, "statistics are needed");
    PVG_PASS(check_array(gradient, "gradient"));
    PVG_PASS(picture_norm(&norm, gradient, &device));
    PVG_REQUIRE(norm.length <= INT32_MAX / 2 || norm.by_channel, PVG_ERROR_VALUE,
                "takes rows of up to 2^30 elements");
    PVG_PASS(call.begin(device));
    PVG_PASS(new_gradients(call, norm, wanted, made));
    const int dtype = norm.weight ? norm.weight->dtype : norm_dtype(norm.x->dtype);
    if (norm.x->size == 0) {
        const double zero = 0;
        for (int i = 1; wanted && i < 3; i++)
            PVG_PASS(fill_array(call, made[i].array, PVG_SCALAR_FLOAT, &zero));
    } else {
        PVG_PASS(as_dtype(call, gradient, norm.x->dtype, &cast, &gradient));
        PVG_PASS(as_contiguous(call, gradient, &straight[0], &gradient));
        PVG_PASS(as_contiguous(call, norm.x, &straight[1], &norm.x));
        PVG_PASS(readable_channels(call, norm, norm.weight, holders, &norm.weight));
        for (const pvg_array *a : {gradient, norm.x}) PVG_PASS(call.reads(a));
        PVG_PASS(call.reads(norm.statistics));
        const Slopes to = {made[0].array, made[1].array, made[2].array};
        PVG_PASS(dispatch<floats>(norm.x->dtype, [&](auto tag) -> int {
            return launch_slopes<typename decltype(tag)::type>(call, norm, gradient, to);
        }));
    }
    for (int i = 1; i < 3; i++) PVG_PASS(as_weight(call, dtype, &made[i]));
    for (int i = 0; i < 3; i++)
        if (results[i]) *results[i] = made[i].take();
    return PVG_OK;
}

} // namespace

} // namespace pvg

PVG_API int pvg_normalize_backward(const pvg_array *gradient, const pvg_array *x,
                                   const pvg_array *weight, const pvg_array *statistics, int axis,
                                   int naxes, int64_t groups, int centered, double epsilon,
                                   pvg_array **dx, pvg_array **dweight, pvg_array **dbias) {
    pvg::Call call("normalize_backward");
    const pvg::Norm norm = {x,        weight,  nullptr,
                            axis,     naxes,   groups,
                            centered, epsilon, const_cast<pvg_array *>(statistics),
                            0,        0,       0,
                            0,        0,       0,
                            false,    false};
    return pvg::run_slopes(call, norm, gradient, {dx, dweight, dbias});
}
