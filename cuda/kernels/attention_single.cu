// pvg_attention of float32 on tensor cores, see attention_single.cuh.
//
// As in attention_tensor.cu, with exponentials that err like exp of float32: what is left of a
// score beside the largest so far becomes a power of two after the subtraction, so that the largest
// one's weight is 1 to the last bit, and large scores lose nothing.
#include "kernels/attention_single_rows.cuh"

namespace pvg {
namespace attention {
namespace {

// A block's shared memory: queries, two tiles of keys and of values, offsets.
template <int DEPTH_, int R_, int COLUMNS, int UNROLL = 4, int BLOCKS = 2,
          int WARPS = 4> struct ForwardSingle {
    static constexpr int DEPTH = DEPTH_, R = R_, columns = COLUMNS;
    static constexpr int blocks = BLOCKS, threads = 32 * WARPS;
    enum { unroll = UNROLL, warps = WARPS };
    static constexpr int rows = 16 * R * WARPS;
    static constexpr int keys = rows * single_pitch<DEPTH>, tile = columns * single_pitch<DEPTH>;
    static constexpr int offsets = keys + 4 * tile;
    static constexpr int bytes_of_offsets = rows * offsets_pitch<columns> * 4;
};

// Scores become powers of two beside the largest so far. The lane's part of their sum is kept;
// `factors` are for the sums before. `unit` is what scores are still to be multiplied by.
template <int R, int KEYS>
__device__ __forceinline__ void weigh_singles(Sums<R, KEYS> &scores, float unit,
                                              float (&most)[R][2], float (&total)[R][2],
                                              float (&factors)[R][2]) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float found = most[r][half], sum = 0;
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++)
                found = fmaxf(found, fmaxf(scores[r][j][half * 2], scores[r][j][half * 2 + 1]));
            found = fmaxf(found, __shfl_xor_sync(0xffffffffu, found, 1));
            found = fmaxf(found, __shfl_xor_sync(0xffffffffu, found, 2));
            const float base = found == -INFINITY ? 0.0f : found; // no key so far
            factors[r][half] = quick_exp2((most[r][half] - base) * unit);
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
                for (int i = half * 2; i < half * 2 + 2; i++) {
                    scores[r][j][i] = quick_exp2((scores[r][j][i] - base) * unit);
                    sum += scores[r][j][i];
                }
            total[r][half] = total[r][half] * factors[r][half] + sum;
            most[r][half] = found;
        }
}

template <class Places>
__global__ void __launch_bounds__(Places::threads, Places::blocks)
    attention_tensor_single_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    constexpr int DEPTH = Places::DEPTH, R = Places::R, rows = Places::rows;
    constexpr int columns = Places::columns;
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const unsigned tiles = static_cast<unsigned>(job.tiles), number = blockIdx.x / tiles;
    const int64_t length = job.query.length;
    const int64_t first = int64_t(tiles - 1 - blockIdx.x % tiles) * rows; // the longest first
    const Item<float> item(job, number);
    // The schedulers of a multiprocessor have a warp of each block: its rows change with the block.
    const int warp = static_cast<int>(threadIdx.x / 32 + blockIdx.x) % Places::warps;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t own_first = first + warp * 16 * R;
    const int64_t size =
        job.causal && first + rows < job.keys.length ? first + rows : job.keys.length;
    float *offsets = reinterpret_cast<float *>(memory + Places::offsets);
    const float scale = static_cast<float>(job.scale), unit = job.general ? 1 : scale * log2_e;
    const uint32_t left =
        shared_address(memory) + warp * 16 * R * single_pitch<DEPTH> + left_single<DEPTH>();
    const auto load = [&](int64_t key, int stage) {
        unsigned char *to = memory + Places::keys + stage * Places::tile;
        load_singles<DEPTH, columns, Places::threads>(to, item.keys, key);
        load_singles<DEPTH, columns, Places::threads>(to + 2 * Places::tile, item.values, key);
    };
    Sums<R, DEPTH> sums = {};
    float most[R][2], total[R][2] = {}, factors[R][2];
#pragma unroll
    for (int r = 0; r < R; r++) most[r][0] = most[r][1] = -INFINITY;
    load_singles<DEPTH, rows, Places::threads>(memory, item.query, first);
    load(0, 0);
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
        if (job.causal && key > own_first + 16 * R - 1) continue;
        const unsigned char *right = memory + Places::keys + stage * Places::tile;
        Sums<R, columns> scores;
        multiply_features<DEPTH, R, columns, false, int(Places::unroll)>(
            scores, left, shared_address(right) + right_single<DEPTH>());
        unsigned out[R];
        if (job.general)
            add_offsets<R, columns, offsets_pitch<columns>>(
                scores, offsets + warp * 16 * R * offsets_pitch<columns>, scale * log2_e, out);
        else if (key + columns > job.keys.length || (job.causal && key + columns - 1 > own_first))
            cut_scores<R, columns, false>(scores, job.keys.length - key,
                                          job.causal ? own_first + 1 - key : columns, out);
        weigh_singles<R, columns>(scores, unit, most, total, factors);
        const SplitWeights<R, columns> weights(scores);
        add_products<DEPTH, R, columns>(sums, factors, weights,
                                        right + 2 * Places::tile + summed_single<DEPTH>());
    }
    const unsigned wrong = rows_of_nan<DEPTH, R>(sums);
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sum = total[r][half];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            const int64_t row = own_first + r * 16 + half * 8 + lane / 4;
            factors[r][half] = 1 / sum; // of no key infinity: 0 times it is NaN
            if (job.more && lane % 4 == 0 && row < length)
                static_cast<float *>(job.more)[number * length + row] =
                    fmaf(most[r][half], job.general ? ln_2 : scale, logf(sum));
        }
    const int width = job.values.features;
    store_singles<DEPTH, R>(static_cast<float *>(job.to) + number * length * width, sums, factors,
                            own_first, length, width);
    for_rows(wrong, own_first, length, [&](int64_t row) { attend_again(job, item, row); });
#endif
}

// ---- On the host --------------------------------------------------------------------------------

template <class Places> int launch_single(Call &call, Job job) {
    constexpr int rows = Places::rows;
    job.tiles = (job.query.length + rows - 1) / rows;
    const int bytes = Places::offsets + (job.general ? Places::bytes_of_offsets : 0);
    PVG_LAUNCH((attention_tensor_single_kernel<Places>), blocks_for(job.items * job.tiles, 1),
               Places::threads, bytes, call.stream, job);
    return PVG_OK;
}

} // namespace

int launch_single(Call &call, const Job &job) {
    return job.query.features <= 64 && job.values.features <= 64
               ? launch_single<ForwardSingle<64, 2, 32>>(call, job)
               : launch_single<ForwardSingle<128, 2, 16>>(call, job);
}

} // namespace attention
} // namespace pvg
