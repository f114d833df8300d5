// pvg_attention of float32 on tensor cores, see attention_single.cuh.
//
// As in attention_tensor.cu, with exponentials that err like exp of float32: what is left of a
// score beside the largest so far becomes a power of two after the subtraction, so that the largest
// one's weight is 1 to the last bit, and large scores lose nothing.
#include "kernels/attention_sections.cuh"
#include "kernels/attention_single_rows.cuh"

namespace pvg {
namespace attention {
namespace {

// A block's shared memory: queries, two tiles of keys and of values, offsets. The keys of a tile
// are a matter of DEPTH alone, as the bits change with them; with WARPS they do not.
template <int DEPTH_, int WARPS> struct ForwardSingle {
    static constexpr int DEPTH = DEPTH_, R = 1, columns = DEPTH < 96 ? 32 : 16;
    static constexpr int threads = 32 * WARPS, rows = 16 * R * WARPS;
    // What registers (and, of few warps, shared memory) allow.
    static constexpr int blocks = 12 / WARPS;
    enum { unroll = DEPTH % 40 == 0 ? 5 : 4, warps = WARPS };
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

[[maybe_unused]] __device__ __forceinline__ float logsum_of(const Job &job, float most,
                                                            float total) {
    return fmaf(most, job.general ? ln_2 : static_cast<float>(job.scale), logf(total));
}

// Over the lanes that have a row's scores.
template <int R> __device__ __forceinline__ void sum_lanes(float (&total)[R][2]) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            total[r][half] += __shfl_xor_sync(0xffffffffu, total[r][half], 1);
            total[r][half] += __shfl_xor_sync(0xffffffffu, total[r][half], 2);
        }
}

// What a warp knows of the sections before. Their sums lie where the result will.
template <int DEPTH, int R> struct Before {
    float most[R][2], total[R][2];
    float *to; // the item's
    int64_t first, length;
    int width;

    __device__ __forceinline__ void keep(const Sums<R, DEPTH> &sums, const float (&now)[R][2],
                                         const float (&now_total)[R][2]) {
        float ones[R][2];
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                most[r][half] = now[r][half], total[r][half] = now_total[r][half],
                ones[r][half] = 1;
        store_singles<DEPTH, R>(to, sums, ones, first + computed_here(0), length,
                                computed_here(width));
    }
    // Adds a section to them, all of which becomes that section's; rows before `seen` see none of
    // it.
    __device__ __forceinline__ void join(Sums<R, DEPTH> &sums, float (&now)[R][2],
                                         float (&now_total)[R][2], float unit, int64_t seen) {
        const int lane = computed_here(static_cast<int>(threadIdx.x) % 32);
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int64_t row = first + r * 16 + half * 8 + lane / 4;
                float2 factors = make_float2(1, 0);
                if (row >= seen)
                    factors = join_sections(most[r][half], total[r][half], now[r][half],
                                            now_total[r][half], unit);
                now[r][half] = most[r][half], now_total[r][half] = total[r][half];
                if (row >= length) continue;
                const float *from = to + row * width;
#pragma unroll
                for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        const int column = j / 2 * 16 + lane % 4 * 4 + i * 2 + j % 2;
                        float &sum = sums[r][j][half * 2 + i];
                        const float before = column < width ? from[column] : 0.0f;
                        sum = row >= seen ? join_sums(before, sum, factors) : before;
                    }
            }
    }
};

template <class Places>
__global__ void __launch_bounds__(Places::threads, Places::blocks)
    attention_tensor_single_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    constexpr int DEPTH = Places::DEPTH, R = Places::R, rows = Places::rows;
    constexpr int columns = Places::columns;
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const Part part = part_of_block(job);
    const int64_t length = job.query.length, first = int64_t(part.tile) * rows;
    const int64_t size =
        job.causal && first + rows < job.keys.length ? first + rows : job.keys.length;
    int64_t stop = part.begin + job.section; // of a section
    const int64_t end = job.apart && stop < size ? stop : size;
    if (part.begin >= end) return;
    const Item<float> item(job, part.number);
    // The schedulers of a multiprocessor have a warp of each block: its rows change with the block.
    const int warp = static_cast<int>(threadIdx.x / 32 + blockIdx.x) % Places::warps;
    const int lane = static_cast<int>(threadIdx.x) % 32, width = job.values.features;
    const int64_t own_first = first + warp * 16 * R;
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
    Before<DEPTH, R> before;
    before.to = static_cast<float *>(job.to) + part.number * length * width;
    before.first = own_first, before.length = length, before.width = width;
#pragma unroll
    for (int r = 0; r < R; r++) most[r][0] = most[r][1] = -INFINITY;
    load_singles<DEPTH, rows, Places::threads>(memory, item.query, first);
    load(part.begin, 0);
    int stage = 0;
#pragma unroll 1
    for (int64_t key = part.begin; key < end; key += columns, stage ^= 1) {
        // This tile has come, for every thread, and every thread has done with the one before.
        wait_for_copies();
        if (job.general) {
            __syncthreads();
            load_offsets<rows, columns, false>(offsets, job, item.mask, first, key);
        }
        __syncthreads();
        if (key + columns < end) load(key + columns, stage ^ 1);
        if (own_first < length && !(job.causal && key > own_first + 16 * R - 1)) {
            const unsigned char *right = memory + Places::keys + stage * Places::tile;
            Sums<R, columns> scores;
            multiply_features<DEPTH, R, columns, false, int(Places::unroll)>(
                scores, left, shared_address(right) + right_single<DEPTH>());
            unsigned out[R];
            if (job.general)
                add_offsets<R, columns, offsets_pitch<columns>>(
                    scores, offsets + warp * 16 * R * offsets_pitch<columns>, scale * log2_e, out);
            else if (key + columns > job.keys.length ||
                     (job.causal && key + columns - 1 > own_first))
                cut_scores<R, columns, false>(scores, job.keys.length - key,
                                              job.causal ? own_first + 1 - key : columns, out);
            weigh_singles<R, columns>(scores, unit, most, total, factors);
            const SplitWeights<R, columns> weights(scores);
            add_products<DEPTH, R, columns>(sums, factors, weights,
                                            right + 2 * Places::tile + summed_single<DEPTH>());
        }
        if (key + columns < (stop < end ? stop : end)) continue;
        sum_lanes<R>(total);
        if (!job.apart && stop > job.section) // there was one before
            before.join(sums, most, total, unit, job.causal ? stop - job.section : 0);
        if (stop >= end) break;
        before.keep(sums, most, total);
        stop += job.section;
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
    const int64_t at = (part.begin / job.section * job.items + part.number) * length;
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t row = own_first + r * 16 + half * 8 + lane / 4;
            factors[r][half] =
                job.apart ? 1 : 1 / total[r][half]; // of no key infinity: 0 x it: NaN
            if (lane % 4 != 0 || row >= length) continue;
            if (job.apart)
                numbers_of(job)[at + row] = make_float2(most[r][half], total[r][half]);
            else if (job.more)
                static_cast<float *>(job.more)[part.number * length + row] =
                    logsum_of(job, most[r][half], total[r][half]);
        }
    store_singles<DEPTH, R>(job.apart ? job.parts + at * width : before.to, sums, factors,
                            own_first, length, width);
    if (job.apart) return;
    const unsigned wrong = rows_of_nan<DEPTH, R>(sums);
    for_rows(wrong, own_first, length, [&](int64_t row) { attend_again(job, item, row); });
#endif
}

// A warp has a row, which sections apart have parts of.
__global__ void __launch_bounds__(join_threads)
    attention_tensor_single_join_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    const int64_t at = (int64_t(blockIdx.x) * join_threads + threadIdx.x) / 32;
    const int64_t length = job.query.length, number = at / length, row = at % length;
    if (number >= job.items) return;
    const float unit = job.general ? 1 : static_cast<float>(job.scale) * log2_e;
    const JoinedRow joined(job, at, row, unit);
    joined.store<float>(job, at);
    if (job.more && threadIdx.x % 32 == 0)
        static_cast<float *>(job.more)[at] = logsum_of(job, joined.most, joined.total);
    if (joined.has_nan()) attend_again(job, Item<float>(job, number), row);
#endif
}

// ---- On the host --------------------------------------------------------------------------------

template <class Places> int launch_single(Call &call, Job job) {
    constexpr int rows = Places::rows;
    job.tiles = (job.query.length + rows - 1) / rows;
    const int64_t blocks = job.items * job.tiles;
    Workspace space;
    PVG_PASS(set_apart(call, &job, job.items * job.query.length, job.keys.length,
                       {job.values.features, 2}, blocks, &space));
    const int bytes = Places::offsets + (job.general ? Places::bytes_of_offsets : 0);
    PVG_LAUNCH((attention_tensor_single_kernel<Places>),
               blocks_for(blocks * (job.apart ? job.apart : 1), 1), Places::threads, bytes,
               call.stream, job);
    if (!job.apart) return PVG_OK;
    PVG_LAUNCH(attention_tensor_single_join_kernel,
               blocks_for(job.items * job.query.length * 32, join_threads), join_threads, 0,
               call.stream, job);
    return PVG_OK;
}

// Of few queries a warp has them all, and more blocks have a part of the keys each.
template <int DEPTH> int launch_depth(Call &call, Job job) {
    cut_terms(&job, job.query.length, job.keys.length, job.query.length <= 128 ? 128 : 256);
    return job.query.length <= 16   ? launch_single<ForwardSingle<DEPTH, 1>>(call, job)
           : job.query.length <= 32 ? launch_single<ForwardSingle<DEPTH, 2>>(call, job)
                                    : launch_single<ForwardSingle<DEPTH, 4>>(call, job);
}

} // namespace

int launch_single(Call &call, const Job &job) {
    const int features = job.query.features, width = job.values.features;
    const int widest = features > width ? features : width;
    return widest <= 16   ? launch_depth<16>(call, job)
           : widest <= 32 ? launch_depth<32>(call, job)
           : widest <= 64 ? launch_depth<64>(call, job)
           : widest <= 80 ? launch_depth<80>(call, job)
           : widest <= 96 ? launch_depth<96>(call, job)
                          : launch_depth<128>(call, job);
}

} // namespace attention
} // namespace pvg
