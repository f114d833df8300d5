// Sections of keys, or in the backward pass of queries, too, which let several blocks have the
// terms of the same sums.
//
// Where sections begin depends on the numbers of queries and keys alone, so that an item of a batch
// has the bits that it has alone. Sums begin anew with each section, and are put together in their
// order: by the block that has them all, or, where blocks are few and each section has one of its
// own, by another launch from memory, in the same instructions. A tile of rows lies within what one
// section has: by an order it sees all of another section or nothing.
#pragma once
#include "arrays/call.cuh"
#include "kernels/attention_tensor.cuh"
#include "runtime/device.cuh"

namespace pvg::attention {

constexpr int most_sections = 32; // the lanes of a warp know one each
// So many queries of halves, which those of attention_wgmma.cuh may have, and more have none.
constexpr int64_t many_queries = 64;

// Which of the items, tiles and sections a block has. Those of later sections come first: of causal
// attention the last tiles have the most.
struct Part {
    unsigned number, tile;
    int64_t begin; // of its keys
};

namespace {

// The same number, of which the compiler knows nothing: what follows from it is computed where it
// is used, and not, for a few times, ahead of a loop in registers that the loop needs.
__device__ __forceinline__ int computed_here(int number) {
#if !defined(PVG_SIMULATOR) && defined(__CUDA_ARCH__)
    asm volatile("" : "+r"(number));
#endif
    return number;
}

__device__ __forceinline__ Part part_of_block(const Job &job) {
    const unsigned apart = job.apart ? job.apart : 1, tiles = static_cast<unsigned>(job.tiles);
    const unsigned place = blockIdx.x / apart;
    return {place / tiles, tiles - 1 - place % tiles, // the longest first
            int64_t(blockIdx.x % apart) * job.section};
}

// Of forward sections apart, by section, item and query: the largest score and the sum.
__device__ __forceinline__ float2 *numbers_of(const Job &job) {
    return reinterpret_cast<float2 *>(job.more_parts);
}

// What sums so far and those of the next section, of the largest score `next` and of the sum
// `next_total`, have to be multiplied by to be added; `most` and `total` become those of both.
__device__ __forceinline__ float2 join_sections(float &most, float &total, float next,
                                                float next_total, float unit) {
    const float found = fmaxf(most, next), base = found == -INFINITY ? 0.0f : found;
    const float before = quick_exp2((most - base) * unit), now = quick_exp2((next - base) * unit);
    total = fmaf(total, before, next_total * now);
    most = found;
    return make_float2(before, now);
}
__device__ __forceinline__ float join_sums(float sum, float next, float2 factors) {
    return fmaf(sum, factors.x, next * factors.y);
}

// A row, by a warp: from the sections that have blocks of their own. A lane has every 32nd feature
// from its own on.
struct JoinedRow {
    float most, total, sums[most_tensor_features / 32];

    // `at`: the row's number in all items, `row` in its own.
    __device__ __forceinline__ JoinedRow(const Job &job, int64_t at, int64_t row, float unit) {
        const int lane = static_cast<int>(threadIdx.x) % 32, width = job.values.features;
        const int64_t rows = job.items * job.query.length, seen = row / job.section + 1;
        const int count =
            static_cast<int>(job.causal && seen < job.apart ? seen : int64_t(job.apart));
        float2 own = make_float2(0, 0);
        if (lane < count) own = numbers_of(job)[lane * rows + at];
        const float *from = job.parts + at * width + lane;
        most = total = 0;
#pragma unroll 4
        for (int section = 0; section < count; section++, from += rows * width) {
            const float next = __shfl_sync(0xffffffffu, own.x, section);
            const float next_total = __shfl_sync(0xffffffffu, own.y, section);
            const float2 factors =
                section ? join_sections(most, total, next, next_total, unit) : make_float2(0, 0);
            if (section == 0) most = next, total = next_total;
#pragma unroll
            for (int e = 0; e < most_tensor_features / 32; e++) {
                const float sum = lane + e * 32 < width ? from[e * 32] : 0.0f;
                sums[e] = section ? join_sums(sums[e], sum, factors) : sum;
            }
        }
    }
    template <class T> __device__ __forceinline__ void store(const Job &job, int64_t at) const {
        const int lane = static_cast<int>(threadIdx.x) % 32, width = job.values.features;
        const float factor = 1 / total; // of no key infinity: 0 times it is NaN
        T *to = static_cast<T *>(job.to) + at * width + lane;
#pragma unroll
        for (int e = 0; e < most_tensor_features / 32; e++)
            if (lane + e * 32 < width) to[e * 32] = static_cast<T>(sums[e] * factor);
    }
    __device__ __forceinline__ bool has_nan() const {
        bool found = false;
#pragma unroll
        for (int e = 0; e < most_tensor_features / 32; e++) found = found || sums[e] != sums[e];
        return __any_sync(0xffffffffu, found);
    }
};

// A row of a gradient, by a warp: the sum of its sections from `begin` to `end`, times a factor.
// `at` is the row's number among `rows`. Returns whether it has NaN.
template <class T>
__device__ __forceinline__ bool join_row(void *matrix, const float *parts, int64_t rows, int64_t at,
                                         int begin, int end, int features, float factor) {
    float sums[most_tensor_features / 32] = {};
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float *from = parts + (begin * rows + at) * features + lane;
#pragma unroll 4
    for (int section = begin; section < end; section++, from += rows * features)
#pragma unroll
        for (int e = 0; e < most_tensor_features / 32; e++)
            if (lane + e * 32 < features)
                sums[e] = section == begin ? from[e * 32] : sums[e] + from[e * 32];
    T *to = static_cast<T *>(matrix) + at * features + lane;
    bool found = false;
#pragma unroll
    for (int e = 0; e < most_tensor_features / 32; e++) {
        found = found || sums[e] != sums[e];
        if (lane + e * 32 < features) to[e * 32] = static_cast<T>(sums[e] * factor);
    }
    return __any_sync(0xffffffffu, found);
}

constexpr int join_threads = 128;

} // namespace

// ---- On the host --------------------------------------------------------------------------------

// Cuts the terms of the sums of `rows` rows into sections of a multiple of `least`, which tiles of
// rows and of terms divide; few rows have more sections.
inline void cut_terms(Job *job, int64_t rows, int64_t terms, int64_t least) {
    constexpr int64_t busy = 16384; // rows of all sections of an item that keep a large card busy
    const int64_t wanted = busy / (rows + 1);
    const int64_t count = wanted < 1 ? 1 : wanted < most_sections ? wanted : most_sections;
    const int64_t each = ((terms + count - 1) / count + least - 1) / least * least;
    job->section = each < terms ? each : terms > 0 ? terms : 1;
}

// Lets sections have blocks of their own where `blocks` for all are few, which changes no bit. They
// have `rows` rows of all items, of so many columns in two matrices. The workspace is for as
// long as the call.
inline int set_apart(Call &call, Job *job, int64_t rows, int64_t terms, const int (&columns)[2],
                     int64_t blocks, Workspace *space) {
    constexpr int64_t of_multiprocessor = 4, most_bytes = int64_t(64) << 20;
    int64_t multiprocessors;
    PVG_PASS(device_attribute(call.device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    const int64_t few = of_multiprocessor * multiprocessors;
    const int64_t count = terms ? (terms + job->section - 1) / job->section : 1;
    const int64_t sums = (count * rows * columns[0] + 3) / 4 * 4; // the others begin at 16 bytes
    const int64_t bytes = (sums + count * rows * columns[1]) * 4;
    job->apart = 0;
    if (count == 1 || blocks >= few || bytes > most_bytes) return PVG_OK;
    PVG_PASS(space->open(call, static_cast<size_t>(bytes)));
    job->parts = space->as<float>(), job->more_parts = job->parts + sums;
    job->apart = static_cast<unsigned>(count);
    return PVG_OK;
}

} // namespace pvg::attention
