// pvg_attention of float16 and bfloat16 on tensor cores, see attention_tensor.cuh.
//
// As in attention.cu a block keeps each query's largest score, sum of exponentials and weighted sum
// of values. Powers are of two: the scale has the logarithm in it. A warp has 32 queries, so that
// what it reads of keys and values from shared memory is multiplied twice.
#include "kernels/attention_tensor.cuh"
#include "runtime/architecture.cuh"

namespace pvg {
namespace attention {
namespace {

// A block's shared memory: queries, two tiles of keys and of values, offsets. How many keys a warp
// has at once, and how many steps of its queries are in registers, is what these allow.
template <int DEPTH> struct Forward {
    static constexpr int R = 2, rows = 16 * R * tensor_warps, columns = 4096 / DEPTH;
    enum { part = 32, kept = DEPTH == 64 ? 4 : 0 };
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

template <class T, int DEPTH>
__global__ void __launch_bounds__(tensor_threads, 2)
    attention_tensor_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    using Places = Forward<DEPTH>;
    constexpr int R = Places::R, rows = Places::rows, columns = Places::columns;
    constexpr int part = Places::part;
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const unsigned tiles = static_cast<unsigned>(job.tiles), number = blockIdx.x / tiles;
    const int64_t length = job.query.length;
    const int64_t first = int64_t(tiles - 1 - blockIdx.x % tiles) * rows; // the longest first
    const Item<T> item(job, number);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t own_first = first + warp * 16 * R;
    const int64_t size =
        job.causal && first + rows < job.keys.length ? first + rows : job.keys.length;
    unsigned char *own = memory + warp * 16 * R * pitch<DEPTH>;
    float *offsets = reinterpret_cast<float *>(memory + Places::offsets);
    const float factor = static_cast<float>(job.scale) * log2_e, unit = job.general ? 1 : factor;
    const uint32_t keys = shared_address(memory) + Places::keys;
    const auto load = [&](int64_t key, int stage) {
        unsigned char *to = memory + Places::keys + stage * Places::tile;
        load_rows<T, DEPTH, columns>(to, item.keys, key);
        load_rows<T, DEPTH, columns>(to + 2 * Places::tile, item.values, key);
    };
    Sums<R, DEPTH> sums = {};
    float most[R][2], total[R][2] = {};
#pragma unroll
    for (int r = 0; r < R; r++) most[r][0] = most[r][1] = -INFINITY;
    load_rows<T, DEPTH, rows>(memory, item.query, first);
    load(0, 0);
    wait_for_copies();
    __syncthreads();
    Left<DEPTH, R, Places::kept> query(own);
    query.keep();
    int stage = 0;
#pragma unroll 1
    for (int64_t key = 0; key < size; key += columns, stage ^= 1) {
        // This tile has come, for every thread, and every thread has done with the one before.
        wait_for_copies();
        if (job.general) {
            __syncthreads();
            load_offsets<rows, columns, false>(offsets, job, item.mask, first, key);
        }
        __syncthreads();
        if (key + columns < size) load(key + columns, stage ^ 1);
#pragma unroll 1
        for (int x = 0; x < columns; x += part) {
            const int64_t at = key + x;
            if (at >= job.keys.length || (job.causal && at > own_first + 16 * R - 1)) break;
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
            rescale<DEPTH, R, part>(scores, unit, most, total, sums);
            add_products<T, DEPTH, R, part>(sums, scores,
                                            right + 2 * Places::tile + left_place<DEPTH>());
        }
    }
    float factors[R][2];
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float sum = sum_of_quad(total[r][half]);
            const int64_t row = own_first + r * 16 + half * 8 + lane / 4;
            factors[r][half] = 1 / sum; // of no key infinity: 0 times it is NaN
            if (job.more && lane % 4 == 0 && row < length)
                static_cast<float *>(job.more)[number * length + row] =
                    (most[r][half] * unit + log2f(sum)) * ln_2;
        }
    put_sums<T, DEPTH, R>(own, sums, factors);
    __syncwarp();
    const int width = job.values.features;
    store_own<T, DEPTH, 16 * R>(static_cast<T *>(job.to) + number * length * width, own, own_first,
                                length, width);
#endif
}

// ---- On the host --------------------------------------------------------------------------------

template <class T, int DEPTH> int launch(Call &call, Job job) {
    constexpr int rows = Forward<DEPTH>::rows;
    job.tiles = (job.query.length + rows - 1) / rows;
    const int bytes =
        Forward<DEPTH>::offsets + (job.general ? Forward<DEPTH>::bytes_of_offsets : 0);
    PVG_LAUNCH((attention_tensor_kernel<T, DEPTH>), blocks_for(job.items * job.tiles, 1),
               tensor_threads, bytes, call.stream, job);
    return PVG_OK;
}

template <class T> int launch(Call &call, const Job &job) {
    return job.query.features <= 64 && job.values.features <= 64 ? launch<T, 64>(call, job)
                                                                 : launch<T, 128>(call, job);
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
