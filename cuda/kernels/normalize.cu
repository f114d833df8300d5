// pvg_normalize: elements less the mean, over the root of the variance, times weight, plus bias.
//
// Rows of up to 65,536 float32 are read once: a team of threads, a block or several blocks hold
// them in registers and shared memory while their mean and the squares of their distances from it
// are summed. Channels of all items are read by a block each if they are small, and once, too, if a
// cluster of blocks can hold them. Longer rows and other channels are read twice: see
// kernels/normalize.cuh.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "arrays/operation.cuh"
#include "kernels/normalize.cuh"
#include "kernels/normalize_channel_parts.cuh"
#include "kernels/normalize_channels.cuh"
#include "kernels/normalize_parts.cuh"
#include "kernels/normalize_rows.cuh"

namespace pvg {

// ---- The picture --------------------------------------------------------------------------------

namespace {

int check_parameter(const Norm &norm, const pvg_array *a, const char *what) {
    bool fits = !a || a->ndim == norm.naxes;
    for (int i = 0; a && fits && i < norm.naxes; i++)
        fits = a->shape[i] == norm.x->shape[norm.axis + i];
    PVG_REQUIRE(fits, PVG_ERROR_VALUE, "%s of shape %s does not fit the channels of x %s", what,
                shape_text(a), shape_text(norm.x));
    return PVG_OK;
}

int check_statistics(const Norm &norm) {
    const pvg_array *a = norm.statistics;
    PVG_REQUIRE(a || !norm.by_channel, PVG_ERROR_VALUE, "statistics of channels are not optional");
    if (!a) return PVG_OK;
    const int dtype = norm_dtype(norm.x->dtype);
    PVG_REQUIRE(a->dtype == dtype, PVG_ERROR_TYPE, "statistics are %s, not %s", dtype_name(dtype),
                dtype_name(a->dtype));
    PVG_REQUIRE(is_contiguous(a) && a->ndim > 0 && a->shape[0] == 2 && a->size == 2 * norm.count,
                PVG_ERROR_VALUE, "statistics of shape %s: 2 times %lld, contiguous", shape_text(a),
                static_cast<long long>(norm.count));
    return PVG_OK;
}

} // namespace

int picture_norm(Norm *norm, const pvg_array *gradient, int *device) {
    const pvg_array *operands[5] = {norm->x};
    int n = 1;
    for (const pvg_array *a :
         {gradient, norm->weight, norm->bias, static_cast<const pvg_array *>(norm->statistics)})
        if (a) operands[n++] = a;
    PVG_PASS(check_operands(operands, n, device));
    for (int i = 0; i < n; i++) PVG_PASS(check_kinds(operands[i]->dtype, floats));
    const pvg_array *x = norm->x;
    PVG_REQUIRE(!gradient || same_shape(gradient, x->ndim, x->shape), PVG_ERROR_VALUE,
                "gradient %s and x %s", shape_text(gradient), shape_text(x));
    PVG_PASS(normalize_axis(norm->axis, x->ndim, &norm->axis));
    PVG_REQUIRE(norm->naxes >= 1 && norm->naxes <= x->ndim - norm->axis, PVG_ERROR_VALUE,
                "%d axes of channels from axis %d on, in x of shape %s", norm->naxes, norm->axis,
                shape_text(x));
    norm->items = norm->channels = norm->inner = 1;
    for (int i = 0; i < x->ndim; i++) {
        int64_t *part = i < norm->axis                 ? &norm->items
                        : i < norm->axis + norm->naxes ? &norm->channels
                                                       : &norm->inner;
        *part *= x->shape[i];
    }
    const int64_t asked = norm->asked;
    norm->by_channel = asked <= 0, norm->given = asked == -1;
    PVG_REQUIRE(asked >= -1 && (asked < 1 || norm->channels % asked == 0), PVG_ERROR_VALUE,
                "%lld channels are not %lld groups", static_cast<long long>(norm->channels),
                static_cast<long long>(asked));
    PVG_REQUIRE(norm->centered == 1 || (norm->centered == 0 && !norm->by_channel), PVG_ERROR_VALUE,
                "centered is 1, or 0 for statistics of groups, got %d", norm->centered);
    norm->groups = norm->by_channel ? 1 : asked;
    norm->count = norm->by_channel ? norm->channels : norm->items * asked;
    norm->length =
        norm->by_channel ? norm->items * norm->inner : norm->channels / asked * norm->inner;
    PVG_PASS(check_parameter(*norm, norm->weight, "weight"));
    PVG_PASS(check_parameter(*norm, norm->bias, "bias"));
    return check_statistics(*norm);
}

int readable_channels(Call &call, const Norm &norm, const pvg_array *a, Temporary (&holders)[2],
                      const pvg_array **result) {
    *result = a;
    if (!a) return PVG_OK;
    if (a->dtype != norm.x->dtype)
        PVG_PASS(as_dtype(call, a, norm_dtype(norm.x->dtype), &holders[0], &a));
    PVG_PASS(as_contiguous(call, a, &holders[1], result));
    return call.reads(*result);
}

int norm_view(const Norm &norm, const pvg_array *a, int64_t offset, Along along, Temporary *view) {
    const int64_t channels = norm.channels / norm.groups;
    const int64_t shape[4] = {norm.items, norm.groups, channels, norm.inner};
    int64_t strides[4] = {0, 0, 1, 0}; // of channels, in one group
    if (along == Along::everything)
        contiguous_strides(4, shape, strides);
    else if (along == Along::channels)
        strides[1] = channels;
    else if (!norm.by_channel)
        strides[0] = norm.groups, strides[1] = 1, strides[2] = 0;
    return new_view(a, 4, shape, strides, offset, false, &view->array);
}

namespace {

// ---- Rows that are held -------------------------------------------------------------------------

// Leaves *done false if the rows are too long.
template <class T> int launch_held_rows(Call &call, const Norm &norm, NormRows job, bool *done) {
    const void *pointers[2] = {job.from, job.to};
    int threads = 0;
    size_t shared = 0;
    PVG_PASS((plan_rows<T, 1>(call, norm.count, norm.length, pointers, 2, &job.plan, &threads,
                              &shared, done)));
    if (!*done) return PVG_OK;
    if (job.plan.lanes > 32) {
        PVG_LAUNCH((normalize_rows_kernel<T, held_packs, true>), blocks_for(norm.count, 1), threads,
                   shared, call.stream, job);
        return PVG_OK;
    }
    const int teams = short_threads / job.plan.lanes;
    const unsigned blocks = blocks_for(norm.count, teams);
    const int64_t packs = (norm.length + pack_size<T> - 1) / pack_size<T>;
    const int each = norm.count >= many_rows ? rows_together : 1;
    if (packs <= 32)
        PVG_LAUNCH(normalize_short_rows_kernel<T>, blocks_for(norm.count, teams * each),
                   short_threads, 0, call.stream, job, each);
    else if (packs <= 128)
        PVG_LAUNCH((normalize_rows_kernel<T, 4, false>), blocks, short_threads, 0, call.stream,
                   job);
    else
        PVG_LAUNCH((normalize_rows_kernel<T, most_packs, false>), blocks, short_threads, 0,
                   call.stream, job);
    return PVG_OK;
}

// ---- Statistics by themselves -------------------------------------------------------------------

// Distances from the channel's first element, and their squares, exact but for the last place of
// float64: x need not be read twice for the mean.
template <class T> struct Moments {
    using Sum = double;
    using Of = double;
    const T *x;
    int64_t inner;
    bool centered;

    __device__ double of(int64_t channel) const {
        return centered ? static_cast<double>(static_cast<ComputeType<T>>(x[channel * inner])) : 0;
    }
    __device__ static void take(double from, T element, double &sum, double &squares) {
        const double distance = static_cast<double>(static_cast<ComputeType<T>>(element)) - from;
        sum += distance;
        squares = fma(distance, distance, squares);
    }
    template <int N>
    __device__ void add(double from, int64_t, int64_t at, double &sum, double &squares) const {
        const Vector<T, N> pack = *reinterpret_cast<const Vector<T, N> *>(x + at);
#pragma unroll
        for (int j = 0; j < N; j++) take(from, pack.element[j], sum, squares);
    }
    template <int N>
    __device__ void add_each(const double (&from)[N], int64_t, int64_t at, double (&sum)[N],
                             double (&squares)[N]) const {
        const Vector<T, N> pack = *reinterpret_cast<const Vector<T, N> *>(x + at);
#pragma unroll
        for (int j = 0; j < N; j++) take(from[j], pack.element[j], sum[j], squares[j]);
    }
};

template <class T>
__global__ void __launch_bounds__(sums_threads)
    moments_kernel(const __grid_constant__ ChannelPlan plan,
                   const __grid_constant__ Moments<T> moments, const TwoSums *partials,
                   ComputeType<T> *statistics, ComputeType<T> *scales, double epsilon) {
    using A = ComputeType<T>;
    const int64_t channel = int64_t(blockIdx.x) * (sums_threads / 32) + threadIdx.x / 32;
    if (channel >= plan.channels) return;
    const TwoSums total = sums_of_channel(plan, partials, channel);
    if (threadIdx.x % 32 != 0) return;
    const double length = static_cast<double>(plan.items) * static_cast<double>(plan.inner);
    const double rest = moments.centered ? total.first / length : 0;
    double variance = total.second / length - rest * rest;
    if (variance < 0) variance = 0;
    const A rounded = static_cast<A>(variance);
    if (statistics) {
        statistics[channel] = static_cast<A>(moments.of(channel) + rest);
        statistics[plan.channels + channel] = rounded;
    }
    scales[channel] = A(1) / sqrt(rounded + static_cast<A>(epsilon));
}

template <class A>
__global__ void __launch_bounds__(sums_threads)
    scales_kernel(const A *variances, A *scales, int64_t count, double epsilon) {
    const int64_t i = int64_t(blockIdx.x) * sums_threads + threadIdx.x;
    if (i < count) scales[i] = A(1) / sqrt(variances[i] + static_cast<A>(epsilon));
}

template <class T>
int launch_moments(Call &call, const Norm &norm, pvg_array *statistics, pvg_array *scales) {
    using A = ComputeType<T>;
    const int64_t items = norm.by_channel ? norm.items : 1;
    const int64_t inner = norm.by_channel ? norm.inner : norm.length;
    const ChannelPlan plan = plan_channels(items, norm.count, inner, pack_size<T>, alignof(Pack<T>),
                                           reinterpret_cast<uintptr_t>(norm.x->data));
    const Moments<T> moments = {data<T>(norm.x), inner, norm.centered == 1};
    Workspace partials;
    PVG_PASS((launch_channel_sums<T>(call, plan, moments, &partials)));
    PVG_LAUNCH(moments_kernel<T>, blocks_for(norm.count, sums_threads / 32), sums_threads, 0,
               call.stream, plan, moments, partials.as<TwoSums>(),
               statistics ? data<A>(statistics) : nullptr, data<A>(scales), norm.epsilon);
    return PVG_OK;
}

// (x - mean) * scale * weight + bias. Operands: x, the means, the scales, weight, bias.
template <class T> struct Standardize {
    static constexpr int inputs = 5, vector = pack_size<T>;
    bool weighted, shifted, half_weight, half_bias;

    template <class Access>
    __device__ __forceinline__ void numbers(const Access &access, int k, bool half,
                                            ComputeType<T> (&x)[Access::count]) const {
        if (half)
            read_as<T>(access, k, x);
        else
            access.read(k, x);
    }
    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        using A = ComputeType<T>;
        A x[Access::count], mean[Access::count], scale[Access::count];
        read_as<T>(access, 0, x);
        access.read(1, mean);
        access.read(2, scale);
#pragma unroll
        for (int e = 0; e < Access::count; e++) x[e] = (x[e] - mean[e]) * scale[e];
        if (weighted) {
            numbers(access, 3, half_weight, mean);
#pragma unroll
            for (int e = 0; e < Access::count; e++) x[e] *= mean[e];
        }
        if (shifted) {
            numbers(access, 4, half_bias, mean);
#pragma unroll
            for (int e = 0; e < Access::count; e++) x[e] += mean[e];
        }
        write_as<T>(access, x);
    }
};
template <class T> constexpr bool only_rows<Standardize<T>> = true; // operands are contiguous
template <class T> constexpr int rows_blocks<Standardize<T>> = blocks_held(8, map_threads);

template <class T> int standardize(Call &call, const Norm &norm, const pvg_array *statistics,
                                   const pvg_array *scales, pvg_array *target) {
    const int dtype = norm_dtype(norm.x->dtype);
    Temporary views[6];
    const pvg_array *inputs[5] = {};
    PVG_PASS(norm_view(norm, norm.x, 0, Along::everything, &views[0]));
    PVG_PASS(norm_view(norm, statistics, 0, Along::statistics, &views[1]));
    PVG_PASS(norm_view(norm, scales, 0, Along::statistics, &views[2]));
    if (norm.weight) PVG_PASS(norm_view(norm, norm.weight, 0, Along::channels, &views[3]));
    if (norm.bias) PVG_PASS(norm_view(norm, norm.bias, 0, Along::channels, &views[4]));
    PVG_PASS(norm_view(norm, target, 0, Along::everything, &views[5]));
    for (int i = 0; i < 5; i++) inputs[i] = views[i].array;
    const Standardize<T> f = {norm.weight != nullptr, norm.bias != nullptr,
                              norm.weight && norm.weight->dtype != dtype,
                              norm.bias && norm.bias->dtype != dtype};
    return launch_map(call, f, views[5].array,
                      {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]});
}

// ---- The call -----------------------------------------------------------------------------------

template <class T> int launch_norm(Call &call, const Norm &norm, pvg_array *target) {
    bool done = false;
    const bool held = !norm.by_channel && norm.length <= INT32_MAX / 2 && norm.inner <= INT32_MAX;
    if (held) {
        NormRows job = {};
        job.from = norm.x->data, job.to = target->data;
        job.statistics = norm.statistics ? norm.statistics->data : nullptr;
        job.weight = of_channels(norm, norm.weight), job.bias = of_channels(norm, norm.bias);
        job.epsilon = norm.epsilon, job.part = 1.0 / static_cast<double>(norm.length);
        job.centered = norm.centered == 1;
        job.alike = norm.groups == 1;
        const bool beside = norm.groups == 1 && norm.inner == 1;
        if ((beside || (!norm.weight && !norm.bias)) && are_cut<T>(norm.length))
            return launch_norm_parts<T>(call, job, norm.count, norm.length);
        PVG_PASS(launch_held_rows<T>(call, norm, job, &done));
    }
    if (done) return PVG_OK;
    if (is_small_channel(norm)) return launch_small_channels<T>(call, norm, target);
    const int parts = parts_of_channel<T>(norm);
    if (parts > 0) return launch_channel_parts<T>(call, norm, target, parts);
    Temporary scales, made;
    const int dtype = norm_dtype(norm.x->dtype);
    const int64_t shape[2] = {2, norm.count};
    pvg_array *statistics = norm.statistics;
    PVG_PASS(new_array(call.device, dtype, 1, shape + 1, &scales.array));
    if (!statistics) {
        PVG_PASS(new_array(call.device, dtype, 2, shape, &made.array));
        statistics = made.array;
    }
    if (norm.given)
        PVG_PASS(scales_of(call, norm, statistics, scales.array));
    else
        PVG_PASS(launch_moments<T>(call, norm, statistics, scales.array));
    return standardize<T>(call, norm, statistics, scales.array, target);
}

int run_norm(Call &call, Norm norm, Output *result) {
    int device = -1;
    Temporary straight, holders[2][2];
    PVG_PASS(picture_norm(&norm, nullptr, &device));
    if (norm.statistics && !norm.given) {
        bool shared = norm.statistics->readonly || may_overlap(norm.statistics, norm.x);
        for (const pvg_array *a : {norm.weight, norm.bias})
            shared = shared || (a && may_overlap(norm.statistics, a));
        PVG_REQUIRE(!shared, PVG_ERROR_VALUE,
                    "statistics are read-only, or share memory with another array");
    }
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, norm.x->dtype, norm.x->ndim, norm.x->shape, nullptr, nullptr, 0));
    if (norm.statistics)
        PVG_PASS(norm.given ? call.reads(norm.statistics) : call.writes(norm.statistics));
    if (norm.x->size == 0) {
        const double nothing = NAN;
        if (!norm.statistics || norm.given || norm.count == 0) return PVG_OK;
        return fill_array(call, norm.statistics, PVG_SCALAR_FLOAT, &nothing);
    }
    PVG_PASS(as_contiguous(call, norm.x, &straight, &norm.x));
    PVG_PASS(call.reads(norm.x));
    PVG_PASS(readable_channels(call, norm, norm.weight, holders[0], &norm.weight));
    PVG_PASS(readable_channels(call, norm, norm.bias, holders[1], &norm.bias));
    return dispatch<floats>(norm.x->dtype, [&](auto tag) -> int {
        return launch_norm<typename decltype(tag)::type>(call, norm, result->array);
    });
}

} // namespace

int scales_of(Call &call, const Norm &norm, const pvg_array *statistics, pvg_array *scales) {
    const unsigned blocks = blocks_for(norm.count, sums_threads);
    if (scales->dtype == PVG_FLOAT64)
        PVG_LAUNCH(scales_kernel<double>, blocks, sums_threads, 0, call.stream,
                   data<double>(statistics) + norm.count, data<double>(scales), norm.count,
                   norm.epsilon);
    else
        PVG_LAUNCH(scales_kernel<float>, blocks, sums_threads, 0, call.stream,
                   data<float>(statistics) + norm.count, data<float>(scales), norm.count,
                   norm.epsilon);
    return PVG_OK;
}

Operations normalize_operations() {
    static constexpr Operation rows[] = {
        {PVG_NORMALIZE, "normalize", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_normalize(const pvg_array *x, const pvg_array *weight, const pvg_array *bias,
                                 int axis, int naxes, int64_t groups, int centered, double epsilon,
                                 pvg_array *statistics) {
    pvg::Call call("normalize");
    pvg::Output result;
    const pvg::Norm norm = {x, weight, bias, axis, naxes, groups, centered, epsilon, statistics,
                            0, 0,      0,    0,    0,     0,      false,    false};
    int status = pvg::run_norm(call, norm, &result);
    return result.close(call, status);
}
