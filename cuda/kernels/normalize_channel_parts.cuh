// The kernel of channels of all items that blocks share: up to eight have a part each of a channel,
// and tell each other the sums of distances from the channel's first element and of their squares,
// in float64, exact but for its last place.
//
// On cards with clusters these blocks are one, and hold their parts in shared memory, so that x is
// read once; two of them are on a multiprocessor, so that one reads while the other writes. Other
// cards do it in two launches, which both read x, the first one leaves the sums in memory. How a
// channel is cut depends on the shape alone, and the sums are added up in one order.
#pragma once
#include "kernels/normalize_channels.cuh"
#include "kernels/row_parts.cuh"

namespace pvg {
namespace {

constexpr int channel_part_threads = 512;
// Bytes of a part: that two blocks, and that one block of a multiprocessor hold.
constexpr int64_t shared_part = 110 << 10, largest_part = 220 << 10;
constexpr int64_t blocks_wanted = 264; // that keep a large card busy

struct ChannelParts : ChannelNorm {
    int parts;
    uint32_t chunk;  // packs of a part but for the last
    double *numbers; // [channels][parts][2], and the step of the launch, unless it is a cluster
    int step;
};

// Parts of a channel, each of several packs for every thread; 0: it is not cut.
template <class T> int parts_of_channel(const Norm &norm) {
    const int64_t bytes = norm.length * static_cast<int64_t>(sizeof(T));
    const bool cut = norm.by_channel && !norm.given && norm.inner >= few_inner;
    if (!cut || norm.length <= held_channel || bytes > most_parts * largest_part) return 0;
    const int64_t held = (bytes + shared_part - 1) / shared_part;
    const int64_t wanted = (blocks_wanted + norm.channels - 1) / norm.channels;
    const int64_t parts = held > wanted ? held : wanted;
    return static_cast<int>(parts < 2 ? 2 : parts < most_parts ? parts : most_parts);
}

// What is held beside the part.
struct ChannelRoom {
    double of_warp[2][32];
    clusters::Mail<double, 2> mail;
};

// Calls take(load(at, k), at, k) for the packs of a thread, which are at `at` in x and the k-th of
// the part.
template <class V, int TOGETHER, class Load, class F>
__device__ __forceinline__ void visit_channel(const ChannelParts &job, int64_t channel, int part,
                                              Load &&load, F &&take) {
    const uint32_t first = part * job.chunk, left = job.packs - first;
    const uint32_t there = left < job.chunk ? left : job.chunk;
    const uint32_t items = channel_part_threads / job.across;
    const uint32_t beyond = channel_part_threads - items * job.across;
    uint32_t k = threadIdx.x;
    const uint32_t item = (first + k) / job.across;
    uint32_t column = first + k - item * job.across;
    int64_t at = (item * job.channels + channel) * job.across + column;
    const int64_t of_item = job.channels * job.across;
    const int64_t step = items * of_item + beyond, over = of_item - job.across;
    while (k < there) {
        V x[TOGETHER];
        int64_t places[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const uint32_t number = k + i * channel_part_threads;
            places[i] = at;
            if (number < there) x[i] = load(at, number);
            at += step, column += beyond;
            if (column >= job.across) at += over, column -= job.across;
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; i++, k += channel_part_threads)
            if (k < there) take(x[i], places[i], k);
    }
}

template <class T, int N, bool CLUSTER>
__global__ void __launch_bounds__(channel_part_threads, 2)
    channel_parts_kernel(const __grid_constant__ ChannelParts job) {
    using A = ComputeType<T>;
    using V = Vector<T, N>;
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    ChannelRoom *const room = reinterpret_cast<ChannelRoom *>(shared);
    V *const held = reinterpret_cast<V *>(shared + sizeof(ChannelRoom));
    const int part = static_cast<int>(blockIdx.x % job.parts);
    const int64_t channel = blockIdx.x / job.parts, inner = int64_t(job.across) * N;
    const auto from_memory = [&](int64_t at, uint32_t) {
        return static_cast<const V *>(job.from)[at];
    };
    const double origin =
        static_cast<double>(static_cast<A>(static_cast<const T *>(job.from)[channel * inner]));
    double sums[2] = {};
    if constexpr (CLUSTER) clusters::open_mail(&room->mail);
    double *const numbers = job.numbers + channel * job.parts * 2;
    if (CLUSTER || job.step == 0) {
        visit_channel<V, 8>(job, channel, part, from_memory, [&](const V &x, int64_t, uint32_t k) {
            if (CLUSTER) held[k] = x;
#pragma unroll
            for (int j = 0; j < N; j++) {
                const double distance = static_cast<double>(static_cast<A>(x.element[j])) - origin;
                sums[0] += distance;
                sums[1] = fma(distance, distance, sums[1]);
            }
        });
        sums_of_block(sums, room->of_warp);
        if (!CLUSTER && threadIdx.x == 0)
            numbers[part * 2] = sums[0], numbers[part * 2 + 1] = sums[1];
        if (!CLUSTER) return;
    }
    if constexpr (CLUSTER) {
        clusters::wait_for_cluster();
        if (threadIdx.x < 32) clusters::send_mail(&room->mail, 0, job.parts, part, sums);
        clusters::wait_for_mail(&room->mail, 0);
    }
    sums_of_parts(job.parts, sums, [&](int from, int i) {
        return CLUSTER ? room->mail.numbers[0][from][i] : numbers[from * 2 + i];
    });
    const double rest = sums[0] / job.length;
    double variance = sums[1] / job.length - rest * rest;
    if (variance < 0) variance = 0;
    const double centre = origin + rest;
    const A mean = static_cast<A>(centre), off = static_cast<A>(centre - static_cast<double>(mean));
    const A rounded = static_cast<A>(variance);
    const A scale = A(1) / sqrt(rounded + static_cast<A>(job.epsilon));
    if (job.statistics && part == 0 && threadIdx.x == 0) {
        static_cast<A *>(job.statistics)[channel] = mean;
        static_cast<A *>(job.statistics)[job.channels + channel] = rounded;
    }
    const A weight = job.weight.numbers ? number_of<T>(job.weight, channel) : A(1);
    const A bias = job.bias.numbers ? number_of<T>(job.bias, channel) : A(0);
    const auto finish = [&](const V &x, int64_t at, uint32_t) {
        static_cast<V *>(job.to)[at] = standardised(x, mean, off, scale, weight, bias);
    };
    if constexpr (CLUSTER) {
        visit_channel<V, 2>(
            job, channel, part, [&](int64_t, uint32_t k) { return held[k]; }, finish);
    } else {
        visit_channel<V, 4>(job, channel, part, from_memory, finish);
    }
}

template <class T, int N> int launch_channel_packs(Call &call, ChannelParts job) {
    using V = Vector<T, N>;
    const unsigned blocks = blocks_for(job.channels * job.parts, 1);
    const size_t room = sizeof(ChannelRoom), part = job.chunk * sizeof(V);
    int architecture = 0;
    PVG_PASS(architecture_of(call.device, &architecture));
    if (architecture >= 90) { // 89 is what a card of 8.9 has, too
        PVG_LAUNCH_WITH(LaunchExtras{static_cast<unsigned>(job.parts)},
                        (channel_parts_kernel<T, N, true>), blocks, channel_part_threads,
                        room + part, call.stream, job);
        return PVG_OK;
    }
    Workspace memory;
    PVG_PASS(memory.open(call, static_cast<size_t>(job.channels * job.parts) * 2 * sizeof(double)));
    job.numbers = memory.as<double>();
    for (job.step = 0; job.step < 2; job.step++)
        PVG_LAUNCH((channel_parts_kernel<T, N, false>), blocks, channel_part_threads, room,
                   call.stream, job);
    return PVG_OK;
}

template <class T>
int launch_channel_parts(Call &call, const Norm &norm, pvg_array *target, int parts) {
    ChannelParts job = {};
    static_cast<ChannelNorm &>(job) = picture_channels<T>(norm, target);
    job.parts = parts;
    job.chunk = (job.packs + static_cast<uint32_t>(parts) - 1) / static_cast<uint32_t>(parts);
    return job.packed ? launch_channel_packs<T, pack_size<T>>(call, job)
                      : launch_channel_packs<T, 1>(call, job);
}

} // namespace
} // namespace pvg
