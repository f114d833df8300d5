// pvg_attention of float16 and bfloat16 on tensor cores, see attention_tensor.cuh.
//
// As in attention.cu a block keeps each query's largest score, sum of exponentials and weighted sum
// of values. Powers are of two: the scale has the logarithm in it. A warp has 32 queries, so that
// what it reads of keys and values from shared memory is multiplied twice; of few queries a warp
// has 16, and keys are in sections (attention_sections.cuh).
#include "kernels/attention_sections.cuh"
#include "runtime/architecture.cuh"

namespace pvg {
namespace attention {
namespace {

// A block's shared memory: queries, two tiles of keys and of values, offsets. How many keys a warp
// has at once, and how many steps of its queries are in registers, is what these allow.
template <int DEPTH, int R_, int WARPS> struct Forward {
    static constexpr int R = R_, rows = 16 * R * WARPS, columns = 4096 / DEPTH;
    static constexpr int threads = 32 * WARPS, blocks = (R == 1 && DEPTH == 64 ? 12 : 8) / WARPS;
    static constexpr bool sections = R == 1; // else there are no registers for those before
    enum { part = 32, kept = R == 1 ? DEPTH / 16 : DEPTH == 64 ? 4 : 0 };
    static constexpr int keys = rows * pitch<DEPTH>, tile = columns * pitch<DEPTH>;
    static constexpr int offsets = keys + 4 * tile;
    static constexpr int bytes_of_offsets = rows * offsets_pitch<columns> * 4;
};

// Code for cards before 8.0 has no use for these two.
[[maybe_unused]] __device__ __forceinline__ float largest_of_quad(float value) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}
[[maybe_unused]] __device__ __forceinline__ float sum_of_quad(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// Scores become powers of two beside the largest so far. The lane's part of their sum is kept;
// sums before are scaled. `unit` is what scores are still to be multiplied by.
template <int DEPTH, int R, int KEYS>
__device__ __forceinline__ void rescale(Sums<R, KEYS> &scores, float unit, float (&most)[R][2],
                                        float (&total)[R][2], Sums<R, DEPTH> &sums) {
    float factors[R][2];
    bool changes = false;
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float found = most[r][half], sum = 0;
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++)
                found = fmaxf(found, fmaxf(scores[r][j][half * 2], scores[r][j][half * 2 + 1]));
            found = largest_of_quad(found);
            const float base = found == -INFINITY ? 0.0f : found * unit; // no key so far
            factors[r][half] = quick_exp2(fmaf(most[r][half], unit, -base));
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
                for (int i = half * 2; i < half * 2 + 2; i++) {
                    scores[r][j][i] = quick_exp2(fmaf(scores[r][j][i], unit, -base));
                    sum += scores[r][j][i];
                }
            total[r][half] = total[r][half] * factors[r][half] + sum;
            most[r][half] = found;
            changes = changes || factors[r][half] != 1;
        }
    if (!__any_sync(0xffffffffu, changes)) return;
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[r][j][i] *= factors[r][i / 2];
}

[[maybe_unused]] __device__ __forceinline__ float logsum_of(float most, float total, float unit) {
    return fmaf(most, unit, log2f(total)) * ln_2; // the same instructions in every kernel
}

// What a warp has of a section, or of all so far.
template <int DEPTH, int R> struct Section {
    Sums<R, DEPTH> sums;
    float most[R][2], total[R][2];

    __device__ __forceinline__ void begin() {
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
            for (int half = 0; half < 2; half++) most[r][half] = -INFINITY, total[r][half] = 0;
#pragma unroll
            for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
                for (int i = 0; i < 4; i++) sums[r][j][i] = 0;
        }
    }
    __device__ __forceinline__ void sum_lanes() {
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int half = 0; half < 2; half++) total[r][half] = sum_of_quad(total[r][half]);
    }
    // Adds it to those before; the warp's rows begin at `first`, and those before `seen` see none.
    __device__ __forceinline__ void join(const Section &before, float unit, int64_t first,
                                         int64_t seen) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const bool sees = first + r * 16 + half * 8 + lane / 4 >= seen;
                float found = before.most[r][half], sum = before.total[r][half];
                float2 factors = make_float2(1, 0);
                if (sees) factors = join_sections(found, sum, most[r][half], total[r][half], unit);
                most[r][half] = found, total[r][half] = sum;
#pragma unroll
                for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
                    for (int i = half * 2; i < half * 2 + 2; i++) {
                        const float old = before.sums[r][j][i];
                        sums[r][j][i] = sees ? join_sums(old, sums[r][j][i], factors) : old;
                    }
            }
    }
    // To sections apart; `at` is the number of the item's first row.
    __device__ __forceinline__ void store(const Job &job, int64_t at, int64_t first) const {
        const int lane = static_cast<int>(threadIdx.x) % 32, width = job.values.features;
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int64_t row = first + r * 16 + half * 8 + lane / 4;
                if (row >= job.query.length) continue;
                if (lane % 4 == 0)
                    numbers_of(job)[at + row] = make_float2(most[r][half], total[r][half]);
                float *to = job.parts + (at + row) * width + lane % 4 * 2;
#pragma unroll
                for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
                    for (int i = 0; i < 2; i++)
                        if (j * 8 + lane % 4 * 2 + i < width)
                            to[j * 8 + i] = sums[r][j][half * 2 + i];
            }
    }
};

template <class T, int DEPTH, class Places>
__global__ void __launch_bounds__(Places::threads, Places::blocks)
    attention_tensor_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    constexpr int R = Places::R, rows = Places::rows, columns = Places::columns;
    constexpr int part = Places::part, threads = Places::threads;
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const Part place = part_of_block(job);
    const int64_t length = job.query.length, first = int64_t(place.tile) * rows;
    const int64_t size =
        job.causal && first + rows < job.keys.length ? first + rows : job.keys.length;
    int64_t stop = place.begin + job.section; // of a section
    const int64_t end = job.apart && stop < size ? stop : size;
    if (place.begin >= end) return;
    const Item<T> item(job, place.number);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t own_first = first + warp * 16 * R;
    unsigned char *own = memory + warp * 16 * R * pitch<DEPTH>;
    float *offsets = reinterpret_cast<float *>(memory + Places::offsets);
    const float factor = static_cast<float>(job.scale) * log2_e, unit = job.general ? 1 : factor;
    const uint32_t keys = shared_address(memory) + Places::keys;
    const auto load = [&](int64_t key, int stage) {
        unsigned char *to = memory + Places::keys + stage * Places::tile;
        load_rows<T, DEPTH, columns, threads>(to, item.keys, key);
        load_rows<T, DEPTH, columns, threads>(to + 2 * Places::tile, item.values, key);
    };
    Section<DEPTH, R> now;
    [[maybe_unused]] Section<DEPTH, R> before;
    now.begin();
    load_rows<T, DEPTH, rows, threads>(memory, item.query, first);
    load(place.begin, 0);
    wait_for_copies();
    __syncthreads();
    Left<DEPTH, R, Places::kept> query(own);
    query.keep();
    int stage = 0;
#pragma unroll 1
    for (int64_t key = place.begin; key < end; key += columns, stage ^= 1) {
        // This tile has come, for every thread, and every thread has done with the one before.
        wait_for_copies();
        if (job.general) {
            __syncthreads();
            load_offsets<rows, columns, false>(offsets, job, item.mask, first, key);
        }
        __syncthreads();
        if (key + columns < end) load(key + columns, stage ^ 1);
#pragma unroll 1
        for (int x = 0; x < columns; x += part) {
            const int64_t at = key + x;
            if (at >= job.keys.length || own_first >= length ||
                (job.causal && at > own_first + 16 * R - 1))
                break;
            const uint32_t right = keys + stage * Places::tile + x * pitch<DEPTH>;
            Sums<R, part> scores;
            multiply_features<T, DEPTH, R, part>(scores, query, right + right_place<DEPTH>());
            unsigned out[R];
            if (job.general)
                add_offsets<R, part, offsets_pitch<columns>>(
                    scores, offsets + warp * 16 * R * offsets_pitch<columns> + x, factor, out);
            else if (at + part > job.keys.length || (job.causal && at + part - 1 > own_first))
                cut_scores<R, part, false>(scores, job.keys.length - at,
                                           job.causal ? own_first + 1 - at : part, out);
            rescale<DEPTH, R, part>(scores, unit, now.most, now.total, now.sums);
            add_products<T, DEPTH, R, part>(now.sums, scores,
                                            right + 2 * Places::tile + left_place<DEPTH>());
        }
        if constexpr (Places::sections) {
            if (key + columns < (stop < end ? stop : end)) continue;
            now.sum_lanes();
            if (!job.apart && stop > job.section) // there was one before
                now.join(before, unit, own_first, job.causal ? stop - job.section : 0);
            if (stop >= end) break;
            before = now;
            now.begin();
            stop += job.section;
        }
    }
    if constexpr (Places::sections) {
        if (job.apart) {
            const int64_t items = place.begin / job.section * job.items + place.number;
            now.store(job, items * length, own_first);
            return;
        }
    } else {
        now.sum_lanes();
    }
    float factors[R][2];
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t row = own_first + r * 16 + half * 8 + lane / 4;
            factors[r][half] = 1 / now.total[r][half]; // of no key infinity: 0 times it is NaN
            if (job.more && lane % 4 == 0 && row < length)
                static_cast<float *>(job.more)[place.number * length + row] =
                    logsum_of(now.most[r][half], now.total[r][half], unit);
        }
    put_sums<T, DEPTH, R>(own, now.sums, factors);
    __syncwarp();
    const int width = job.values.features;
    store_own<T, DEPTH, 16 * R>(static_cast<T *>(job.to) + place.number * length * width, own,
                                own_first, length, width);
#endif
}

// A warp has a row, which sections apart have parts of.
template <class T>
__global__ void __launch_bounds__(join_threads)
    attention_tensor_join_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    const int64_t at = (int64_t(blockIdx.x) * join_threads + threadIdx.x) / 32;
    if (at >= job.items * job.query.length) return;
    const float unit = job.general ? 1 : static_cast<float>(job.scale) * log2_e;
    const JoinedRow joined(job, at, at % job.query.length, unit);
    joined.template store<T>(job, at);
    if (job.more && threadIdx.x % 32 == 0)
        static_cast<float *>(job.more)[at] = logsum_of(joined.most, joined.total, unit);
#endif
}

// ---- On the host --------------------------------------------------------------------------------

template <class T, int DEPTH, int R, int WARPS> int launch(Call &call, Job job) {
    using Places = Forward<DEPTH, R, WARPS>;
    job.tiles = (job.query.length + Places::rows - 1) / Places::rows;
    const int64_t blocks = job.items * job.tiles;
    Workspace space;
    job.section = job.keys.length;
    if (Places::sections) {
        cut_terms(&job, job.query.length, job.keys.length, 256);
        PVG_PASS(set_apart(call, &job, job.items * job.query.length, job.keys.length,
                           {job.values.features, 2}, blocks, &space));
    }
    const int bytes = Places::offsets + (job.general ? Places::bytes_of_offsets : 0);
    PVG_LAUNCH((attention_tensor_kernel<T, DEPTH, Places>),
               blocks_for(blocks * (job.apart ? job.apart : 1), 1), Places::threads, bytes,
               call.stream, job);
    if (!job.apart) return PVG_OK;
    PVG_LAUNCH(attention_tensor_join_kernel<T>,
               blocks_for(job.items * job.query.length * 32, join_threads), join_threads, 0,
               call.stream, job);
    return PVG_OK;
}

template <class T, int DEPTH> int launch_depth(Call &call, const Job &job) {
    const int64_t length = job.query.length;
    return length <= 16            ? launch<T, DEPTH, 1, 1>(call, job)
           : length <= 32          ? launch<T, DEPTH, 1, 2>(call, job)
           : length < many_queries ? launch<T, DEPTH, 1, 4>(call, job)
                                   : launch<T, DEPTH, 2, 4>(call, job);
}

template <class T> int launch(Call &call, const Job &job) {
    return job.query.features <= 64 && job.values.features <= 64 ? launch_depth<T, 64>(call, job)
                                                                 : launch_depth<T, 128>(call, job);
}

} // namespace

int takes_tensor_cores(const Call &call, const Operands &operands, const Shape &shape,
                       bool *takes) {
    const int dtype = operands.query->dtype;
    int architecture = 0;
    if (dtype != PVG_FLOAT64) PVG_PASS(architecture_of(call.device, &architecture));
    *takes = architecture >= 80 && shape.features <= most_tensor_features &&
             shape.width <= most_tensor_features;
    return PVG_OK;
}

int launch_tensor(Call &call, int dtype, const Job &job) {
    if (dtype == PVG_FLOAT32) return launch_single(call, job);
#ifndef PVG_SIMULATOR // which has no products of warpgroups
    bool takes;
    PVG_PASS(takes_wgmma(call, job, &takes));
    if (takes) return launch_wgmma(call, dtype, job);
#endif
    return dtype == PVG_FLOAT16 ? launch<Half>(call, job) : launch<BFloat16>(call, job);
}

} // namespace attention
} // namespace pvg
