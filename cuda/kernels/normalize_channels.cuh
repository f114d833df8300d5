// The kernel of channels of all items that are small: a block has a channel and goes over it three
// times, for the mean, for the squares of distances from it and for the result. The second and the
// third time it is found in a cache, so that memory is read once, in one launch.
#pragma once
#include "kernels/normalize.cuh"

namespace pvg {
namespace {

constexpr int channel_threads = 512;
// A channel of more elements does not stay in the L2 cache beside those of the other blocks.
constexpr int64_t held_channel = 1 << 15;
// Elements of x up to which it does not matter that a channel's lie apart.
constexpr int64_t small_x = 1 << 18;

// Whether a block has a channel: the channel's elements lie in runs of several sectors of memory,
// or all of x is in a cache.
inline bool is_small_channel(const Norm &norm) {
    return norm.by_channel && !norm.given && norm.length <= held_channel &&
           (norm.inner >= few_inner || norm.x->size <= small_x);
}

struct ChannelNorm {
    const void *from;
    void *to, *statistics; // statistics may be NULL
    OfChannels weight, bias;
    int64_t channels;
    uint32_t packs, across; // of a channel, and of its part of an item
    double length, epsilon;
    bool packed; // each is pack_size<T> elements, else one
};
template <class T> ChannelNorm picture_channels(const Norm &norm, const pvg_array *target) {
    constexpr int pack = pack_size<T>;
    const uintptr_t bits =
        reinterpret_cast<uintptr_t>(norm.x->data) | reinterpret_cast<uintptr_t>(target->data);
    ChannelNorm job = {};
    job.packed = bits % alignof(Pack<T>) == 0 && norm.inner % pack == 0;
    const int64_t width = job.packed ? pack : 1;
    job.from = norm.x->data, job.to = target->data;
    job.statistics = norm.statistics ? norm.statistics->data : nullptr;
    job.weight = of_channels(norm, norm.weight), job.bias = of_channels(norm, norm.bias);
    job.channels = norm.channels;
    job.packs = static_cast<uint32_t>(norm.length / width);
    job.across = static_cast<uint32_t>(norm.inner / width);
    job.length = static_cast<double>(norm.length), job.epsilon = norm.epsilon;
    return job;
}

// A pack of the result, by its channel's numbers; the mean is `mean` + `off`.
template <class T, int N, class A>
__device__ __forceinline__ Vector<T, N> standardised(const Vector<T, N> &x, A mean, A off, A scale,
                                                     A weight, A bias) {
    Vector<T, N> y;
#pragma unroll
    for (int j = 0; j < N; j++) {
        const A value = (static_cast<A>(x.element[j]) - mean - off) * scale;
        y.element[j] = static_cast<T>(value * weight + bias);
    }
    return y;
}

template <class T, int N>
__global__ void __launch_bounds__(channel_threads)
    normalize_channel_kernel(const __grid_constant__ ChannelNorm job) {
    using A = ComputeType<T>;
    using V = Vector<T, N>;
    __shared__ double of_warp[3][32];
    const int64_t channel = blockIdx.x;
    const auto visit = [&](const auto &take) {
#pragma unroll 4
        for (uint32_t k = threadIdx.x; k < job.packs; k += blockDim.x) {
            const uint32_t item = k / job.across;
            const int64_t at =
                (item * job.channels + channel) * job.across + (k - item * job.across);
            take(static_cast<const V *>(job.from)[at], at);
        }
    };
    A sum = 0, squares = 0, rest = 0;
    visit([&](const V &x, int64_t) {
#pragma unroll
        for (int j = 0; j < N; j++) sum += static_cast<A>(x.element[j]);
    });
    const double total = over_block<true>(static_cast<double>(sum), of_warp[0]);
    const A mean = static_cast<A>(total / job.length);
    visit([&](const V &x, int64_t) {
#pragma unroll
        for (int j = 0; j < N; j++) {
            const A distance = static_cast<A>(x.element[j]) - mean;
            squares = fma(distance, distance, squares);
            rest += distance; // what the mean was rounded by
        }
    });
    const double all = over_block<true>(static_cast<double>(squares), of_warp[1]) / job.length;
    const double left = over_block<true>(static_cast<double>(rest), of_warp[2]) / job.length;
    const A off = static_cast<A>(left);
    A variance = static_cast<A>(all - left * left);
    if (variance < 0) variance = 0;
    const A scale = A(1) / sqrt(variance + static_cast<A>(job.epsilon));
    if (job.statistics && threadIdx.x == 0) {
        static_cast<A *>(job.statistics)[channel] = mean + off;
        static_cast<A *>(job.statistics)[job.channels + channel] = variance;
    }
    const A weight = job.weight.numbers ? number_of<T>(job.weight, channel) : A(1);
    const A bias = job.bias.numbers ? number_of<T>(job.bias, channel) : A(0);
    visit([&](const V &x, int64_t at) {
        static_cast<V *>(job.to)[at] = standardised(x, mean, off, scale, weight, bias);
    });
}

template <class T> int launch_small_channels(Call &call, const Norm &norm, pvg_array *target) {
    const ChannelNorm job = picture_channels<T>(norm, target);
    const unsigned threads = job.packs <= 256 ? 64 : job.packs <= 1024 ? 256 : channel_threads;
    const unsigned blocks = blocks_for(norm.channels, 1);
    if (job.packed)
        PVG_LAUNCH((normalize_channel_kernel<T, pack_size<T>>), blocks, threads, 0, call.stream,
                   job);
    else
        PVG_LAUNCH((normalize_channel_kernel<T, 1>), blocks, threads, 0, call.stream, job);
    return PVG_OK;
}

} // namespace
} // namespace pvg
