// Attention of float16 and bfloat16 by warpgroup products (wgmma), compute capability 9.0a.
//
// A block stays for the whole launch and walks through pieces of work, each of which is a tile of
// queries of one item. One thread of its first warpgroup copies by TMA the tile's queries, and tiles
// of keys and of values through two rings of stages; each other warpgroup has 64 of the queries.
// Beside 64 queries their scores, weights and sums stay in registers: weights, rounded to 16 bits,
// are where an accumulator holds them what the next product wants of its left operand.
//
// While a warpgroup makes weights of a tile's scores, the tensor cores have its products of the
// weights before with their values, and those of the other warpgroup: the warpgroups take turns in
// giving out products. In shared memory a row of keys or of values is cut into slabs of 128 bytes,
// swizzled; rows and features that are not there are zeros.
#pragma once
#include "kernels/attention_tensor.cuh"
#include "kernels/matmul/sm90/hopper.cuh"
#include "kernels/matmul/sm90/wgmma.cuh"

namespace pvg::attention {

constexpr int least_wgmma_queries = 64; // fewer are better off with tiles of fewer

// T: Half or BFloat16. DEPTH: features that there is room for. KEYS: of a tile.
template <class T_, int DEPTH, int WARPGROUPS, int KEYS, int STAGES, int BLOCKS = 1>
struct WgmmaTile {
    using T = T_;
    using Element = std::conditional_t<std::is_same_v<T, Half>, __half, __nv_bfloat16>;
    static constexpr int depth = DEPTH, keys = KEYS, warpgroups = WARPGROUPS, stages = STAGES;
    static constexpr int rows = 64 * WARPGROUPS; // queries of a block
    static constexpr int threads = 128 * (WARPGROUPS + 1), blocks = BLOCKS;
    static constexpr int span = 64, slabs = DEPTH / span; // features of a slab
    static constexpr int query_bytes = rows * DEPTH * 2, stage_bytes = KEYS * DEPTH * 2;
    static constexpr int keys_at = query_bytes, values_at = keys_at + STAGES * stage_bytes;
    static constexpr int barriers_at = values_at + STAGES * stage_bytes;
    static constexpr int shared_bytes =
        hopper::tile_alignment + barriers_at + (2 + 4 * STAGES) * 8;
    static_assert(shared_bytes * BLOCKS <= 227 << 10, "more shared memory than there is");
    // Registers of a thread of the warpgroup that copies, and of the others (hopper.cuh).
    static constexpr int few = WARPGROUPS == 3 ? 32 : 24;
    static constexpr int many = WARPGROUPS == 3 ? 160 : BLOCKS == 2 ? 104 : 240;
};

struct WgmmaMaps {
    CUtensorMap query, keys, values; // (features, rows, and up to three leading dimensions)
};

struct WgmmaJob {
    int length, size, width; // queries, keys, features of values
    bool causal;
    float unit;                      // what a score is multiplied by to be a power of two
    unsigned items, tiles, together; // tiles of an item; items whose tiles are mixed
    unsigned leading[2];             // lengths of the two inner leading dimensions
    int step[3][3]; // of query, keys and values, 0 along a leading dimension that they lack
    void *to;
    float *more;
};

namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// ---- What a block does --------------------------------------------------------------------------

struct WgmmaWork {
    unsigned item;
    int first;  // query
    int blocks; // tiles of keys
};

// The piece of work of a round, false when there is none. What takes longest comes first, of a few
// items at a time so that their keys and values stay in the second-level cache. Every other round
// goes backwards, so that blocks have about the same to do.
template <class Tile>
__device__ __forceinline__ bool find_work(const WgmmaJob &job, unsigned round, WgmmaWork *work) {
    const unsigned place = round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const unsigned index = round * gridDim.x + place;
    if (index >= job.items * job.tiles) return false;
    const unsigned group = index / (job.together * job.tiles) * job.together;
    const unsigned items = min(job.together, job.items - group);
    const unsigned rest = index - group * job.tiles;
    work->item = group + rest % items;
    work->first = static_cast<int>(job.tiles - 1 - rest / items) * Tile::rows;
    const int end = job.causal ? min(min(work->first + Tile::rows, job.length), job.size) : job.size;
    work->blocks = (end + Tile::keys - 1) / Tile::keys;
    return true;
}

template <class Tile> struct WgmmaRings {
    uint32_t base;

    __device__ __forceinline__ uint32_t keys(unsigned at) const {
        return base + Tile::keys_at + at % Tile::stages * Tile::stage_bytes;
    }
    __device__ __forceinline__ uint32_t values(unsigned at) const {
        return base + Tile::values_at + at % Tile::stages * Tile::stage_bytes;
    }
    __device__ __forceinline__ uint32_t query_full() const { return base + Tile::barriers_at; }
    __device__ __forceinline__ uint32_t query_empty() const { return query_full() + 8; }
    __device__ __forceinline__ uint32_t keys_full(unsigned at) const {
        return query_full() + 16 + at % Tile::stages * 8;
    }
    __device__ __forceinline__ uint32_t keys_empty(unsigned at) const {
        return keys_full(at) + Tile::stages * 8;
    }
    __device__ __forceinline__ uint32_t values_full(unsigned at) const {
        return keys_full(at) + Tile::stages * 16;
    }
    __device__ __forceinline__ uint32_t values_empty(unsigned at) const {
        return keys_full(at) + Tile::stages * 24;
    }
    __device__ __forceinline__ int phase(unsigned at) const { return at / Tile::stages & 1; }
};

// ---- The thread that copies ---------------------------------------------------------------------

// ROWS rows from `row` on, slab by slab.
template <class Tile, int ROWS>
__device__ __forceinline__ void load_slabs(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                                           int row, const int (&leading)[3],
                                           const int (&step)[3]) {
    hopper::expect_bytes(barrier, ROWS * Tile::depth * 2);
#pragma unroll
    for (int slab = 0; slab < Tile::slabs; slab++) {
        const int place[5] = {slab * Tile::span, row, leading[0] * step[0], leading[1] * step[1],
                              leading[2] * step[2]};
        hopper::load_tile(to + slab * ROWS * 128, map, barrier, place);
    }
}

template <class Tile>
__device__ __forceinline__ void copy_operands(const WgmmaRings<Tile> &rings, const WgmmaMaps &maps,
                                              const WgmmaJob &job) {
    using namespace hopper;
    WgmmaWork work;
    unsigned at = 0;
    for (unsigned round = 0; find_work<Tile>(job, round, &work); round++) {
        const unsigned outer = work.item / job.leading[0];
        const int leading[3] = {static_cast<int>(work.item % job.leading[0]),
                                static_cast<int>(outer % job.leading[1]),
                                static_cast<int>(outer / job.leading[1])};
        const auto load_keys = [&](unsigned now, int block) {
            wait(rings.keys_empty(now), rings.phase(now) ^ 1);
            load_slabs<Tile, Tile::keys>(rings.keys(now), &maps.keys, rings.keys_full(now),
                                         block * Tile::keys, leading, job.step[1]);
        };
        wait(rings.query_empty(), (round & 1) ^ 1);
        load_slabs<Tile, Tile::rows>(rings.base, &maps.query, rings.query_full(), work.first,
                                     leading, job.step[0]);
        load_keys(at, 0);
        for (int block = 0; block < work.blocks; block++, at++) {
            if (block + 1 < work.blocks) load_keys(at + 1, block + 1);
            wait(rings.values_empty(at), rings.phase(at) ^ 1);
            load_slabs<Tile, Tile::keys>(rings.values(at), &maps.values, rings.values_full(at),
                                         block * Tile::keys, leading, job.step[2]);
        }
    }
}

// ---- Products -----------------------------------------------------------------------------------

// Gives out scores = queries keys'.
template <class Tile>
__device__ __forceinline__ void start_scores(float (&scores)[Tile::keys / 2], uint32_t queries,
                                             uint32_t keys) {
    using namespace hopper;
    constexpr uint64_t layout = tile_layout(16, 1024, swizzle_128);
    const uint64_t a = describe_tile(queries, layout), b = describe_tile(keys, layout);
    pin_sums(scores);
    begin_products();
#pragma unroll
    for (int k = 0; k < Tile::depth / 16; k++) {
        const int slab = k / 4, step = k % 4 * 2;
        Wgmma<typename Tile::Element, Tile::keys>::template multiply<false, false>(
            scores, a + slab * Tile::rows * 8 + step, b + slab * Tile::keys * 8 + step, k > 0);
    }
    commit_products();
}

// Weights as the left operand of products with 16 values each.
template <class Tile> using WgmmaWeights = uint32_t[Tile::keys / 16][4];

// Gives out sums (+)= weights values.
template <class Tile>
__device__ __forceinline__ void start_sums(float (&sums)[Tile::depth / 2],
                                           const WgmmaWeights<Tile> &weights, uint32_t values,
                                           int accumulate) {
    using namespace hopper;
    const uint64_t b = describe_tile(values, tile_layout(Tile::keys * 128, 1024, swizzle_128));
    pin_sums(sums);
    begin_products();
#pragma unroll
    for (int k = 0; k < Tile::keys / 16; k++)
        Wgmma<typename Tile::Element, Tile::depth>::template multiply<true>(
            sums, weights[k], b + k * 128, k > 0 || accumulate);
    commit_products();
}

// After the products that read the weights: keeps their registers from being used before.
template <class Tile>
__device__ __forceinline__ void pin_weights(const WgmmaWeights<Tile> &weights) {
#pragma unroll
    for (int k = 0; k < Tile::keys / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) asm volatile("" ::"r"(weights[k][i]) : "memory");
}

// ---- From scores to weights ---------------------------------------------------------------------

// A thread has, of row lane / 4 of its warp's 16 and of that 8 further down, two neighbours of each
// eight columns (wgmma.cuh). `most` and `total`: of both rows.

// Columns of row half h from end[h] on take no part.
template <int KEYS>
__device__ __forceinline__ void cut_scores(float (&scores)[KEYS / 2], const int (&end)[2]) {
    const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int left = end[h] - column;
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (j * 8 + i >= left) scores[j * 4 + h * 2 + i] = -INFINITY;
    }
}

// Scores become powers of two beside the largest so far. The thread's part of their sum is kept;
// what was summed before is to be multiplied by factors.
template <int KEYS>
__device__ __forceinline__ void weigh(float (&scores)[KEYS / 2], float unit, float (&most)[2],
                                      float (&total)[2], float (&factors)[2]) {
    float found[2][2], sum[2][2]; // of even columns and of odd ones: shorter chains
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            found[h][i] = scores[h * 2 + i];
#pragma unroll
            for (int j = 1; j < KEYS / 8; j++)
                found[h][i] = fmaxf(found[h][i], scores[j * 4 + h * 2 + i]);
        }
        float largest = fmaxf(most[h], fmaxf(found[h][0], found[h][1]));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        const float base = largest == -INFINITY ? 0.0f : largest * unit; // no key so far
        factors[h] = quick_exp2(fmaf(most[h], unit, -base));
        most[h] = largest;
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float &score = scores[j * 4 + h * 2 + i];
                score = quick_exp2(fmaf(score, unit, -base));
                sum[h][i] = j ? sum[h][i] + score : score;
            }
        total[h] = total[h] * factors[h] + (sum[h][0] + sum[h][1]);
    }
}

template <class Tile>
__device__ __forceinline__ void round_weights(WgmmaWeights<Tile> &weights,
                                              const float (&scores)[Tile::keys / 2]) {
#pragma unroll
    for (int k = 0; k < Tile::keys / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            weights[k][i] =
                pair_of<typename Tile::T>(scores[k * 8 + i * 2], scores[k * 8 + i * 2 + 1]);
}

// ---- To memory ----------------------------------------------------------------------------------

// Lane c of four has word c of each of them in place of its own four words.
__device__ __forceinline__ void turn_quad(uint32_t (&x)[4]) {
    const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? x[i] : x[i + 1], 1);
        x[i] = odd ? got : x[i], x[i + 1] = odd ? x[i + 1] : got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? x[i] : x[i + 2], 2);
        x[i] = upper ? got : x[i], x[i + 2] = upper ? x[i + 2] : got;
    }
}

// Rounded sums, times factors, to contiguous rows; `row` is the thread's first one.
template <class Tile>
__device__ __forceinline__ void store_sums(const float (&sums)[Tile::depth / 2],
                                           const float (&factors)[2], const WgmmaJob &job,
                                           unsigned item, int row) {
    using T = typename Tile::T;
    const int column = static_cast<int>(threadIdx.x) % 4 * 8;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        T *to = static_cast<T *>(job.to) +
                (int64_t(item) * job.length + row + h * 8) * job.width + column;
#pragma unroll
        for (int j = 0; j < Tile::depth / 32; j++) {
            uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *pair = sums + (j * 4 + i) * 4 + h * 2;
                words[i] = pair_of<T>(pair[0] * factors[h], pair[1] * factors[h]);
            }
            turn_quad(words);
            if (row + h * 8 < job.length && column + j * 32 < job.width)
                *reinterpret_cast<uint4 *>(to + j * 32) =
                    make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}

// ---- A warpgroup's way through its work ---------------------------------------------------------

// Its turn to give out products; afterwards that of the next warpgroup. Barrier 0 is the block's.
template <class Tile> __device__ __forceinline__ void take_turn(int warpgroup) {
    matmul::sync_threads<256>(1 + warpgroup);
}
template <class Tile> __device__ __forceinline__ void pass_turn(int warpgroup) {
    matmul::arrive_at<256>(warpgroup + 1 < Tile::warpgroups ? warpgroup + 2 : 1);
}

template <class Tile> struct WgmmaState {
    float sums[Tile::depth / 2], most[2], total[2];
    WgmmaWeights<Tile> weights;
};

// Scores of a tile of keys to weights; returns what the sums before are to be multiplied by.
template <class Tile>
__device__ __forceinline__ void weigh_block(float (&scores)[Tile::keys / 2],
                                            WgmmaState<Tile> &state, float (&factors)[2],
                                            const WgmmaJob &job, int first, int block) {
    const int key = block * Tile::keys, left = job.size - key;
    if (left < Tile::keys || (job.causal && key + Tile::keys - 1 > first)) {
        const int row = first + static_cast<int>(threadIdx.x) % 128 / 32 * 16 +
                        static_cast<int>(threadIdx.x) % 32 / 4;
        const int seen = job.causal ? row + 1 - key : Tile::keys;
        const int end[2] = {min(left, seen), min(left, job.causal ? seen + 8 : Tile::keys)};
        cut_scores<Tile::keys>(scores, end);
    }
    weigh<Tile::keys>(scores, job.unit, state.most, state.total, factors);
}

template <class Tile>
__device__ __forceinline__ void attend(const WgmmaRings<Tile> &rings, WgmmaState<Tile> &state,
                                       const WgmmaJob &job, const WgmmaWork &work, unsigned round,
                                       unsigned at) {
    using namespace hopper;
    const int warpgroup = static_cast<int>(threadIdx.x) / 128 - 1;
    const bool speaks = threadIdx.x % 128 == 0; // for the warpgroup, at barriers
    const int first = work.first + warpgroup * 64;
    const uint32_t queries = rings.base + warpgroup * 64 * 128;
    float scores[Tile::keys / 2], factors[2];
    state.most[0] = state.most[1] = -INFINITY, state.total[0] = state.total[1] = 0;
    wait(rings.query_full(), round & 1);
    wait(rings.keys_full(at), rings.phase(at));
    start_scores<Tile>(scores, queries, rings.keys(at));
    wait_for_products<0>();
    pin_sums(scores);
    if (speaks) arrive(rings.keys_empty(at));
    weigh_block<Tile>(scores, state, factors, job, first, 0);
    round_weights<Tile>(state.weights, scores);
    if (work.blocks > 1) wait(rings.keys_full(at + 1), rings.phase(at + 1));
#pragma unroll 1
    for (int block = 1; block < work.blocks; block++, at++) {
        take_turn<Tile>(warpgroup);
        start_scores<Tile>(scores, queries, rings.keys(at + 1));
        wait(rings.values_full(at), rings.phase(at));
        start_sums<Tile>(state.sums, state.weights, rings.values(at), block > 1);
        pass_turn<Tile>(warpgroup);
        wait_for_products<1>();
        pin_sums(scores);
        if (speaks) arrive(rings.keys_empty(at + 1));
        weigh_block<Tile>(scores, state, factors, job, first, block);
        pin_sums(scores);
        // The loop in here is also what keeps the compiler from moving all of the above, behind
        // the wait for the products that it is to go on beside.
        if (block + 1 < work.blocks) wait(rings.keys_full(at + 2), rings.phase(at + 2));
        wait_for_products<0>();
        pin_sums(state.sums);
        pin_weights<Tile>(state.weights);
        if (speaks) arrive(rings.values_empty(at));
#pragma unroll
        for (int i = 0; i < Tile::depth / 2; i++) state.sums[i] *= factors[i / 2 % 2];
        round_weights<Tile>(state.weights, scores);
    }
    if (speaks) arrive(rings.query_empty());
    wait(rings.values_full(at), rings.phase(at));
    start_sums<Tile>(state.sums, state.weights, rings.values(at), work.blocks > 1);
    wait_for_products<0>();
    pin_sums(state.sums);
    pin_weights<Tile>(state.weights);
    if (speaks) arrive(rings.values_empty(at));
}

template <class Tile>
__device__ __forceinline__ void finish(WgmmaState<Tile> &state, const WgmmaJob &job,
                                       const WgmmaWork &work) {
    const int thread = static_cast<int>(threadIdx.x);
    const int row = work.first + (thread / 32 - 4) * 16 + thread % 32 / 4;
    float factors[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = state.total[h];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        factors[h] = 1 / sum; // of no key infinity: 0 times it is NaN
        if (job.more && thread % 4 == 0 && row + h * 8 < job.length)
            job.more[int64_t(work.item) * job.length + row + h * 8] =
                (state.most[h] * job.unit + log2f(sum)) * ln_2;
    }
    store_sums<Tile>(state.sums, factors, job, work.item, row);
}

template <class Tile>
__device__ __forceinline__ void attend_to_all(const WgmmaRings<Tile> &rings, const WgmmaJob &job) {
    WgmmaWork work;
    WgmmaState<Tile> state;
    unsigned at = 0;
    const int warpgroup = static_cast<int>(threadIdx.x) / 128 - 1;
    if (warpgroup + 1 == Tile::warpgroups) pass_turn<Tile>(warpgroup); // the first one's first turn
    for (unsigned round = 0; find_work<Tile>(job, round, &work); round++) {
        attend<Tile>(rings, state, job, work, round, at);
        finish<Tile>(state, job, work);
        at += static_cast<unsigned>(work.blocks);
    }
}

#endif

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    attention_wgmma_kernel(const __grid_constant__ WgmmaMaps maps,
                           const __grid_constant__ WgmmaJob job) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t start = shared_address(shared);
    const WgmmaRings<Tile> rings = {(start + hopper::tile_alignment - 1) &
                                    ~(hopper::tile_alignment - 1u)};
    if (threadIdx.x == 0) {
        hopper::make_barrier(rings.query_full(), 1);
        hopper::make_barrier(rings.query_empty(), Tile::warpgroups);
        for (unsigned s = 0; s < Tile::stages; s++) {
            hopper::make_barrier(rings.keys_full(s), 1);
            hopper::make_barrier(rings.keys_empty(s), Tile::warpgroups);
            hopper::make_barrier(rings.values_full(s), 1);
            hopper::make_barrier(rings.values_empty(s), Tile::warpgroups);
        }
        hopper::publish_barriers();
        hopper::prefetch_map(&maps.query);
        hopper::prefetch_map(&maps.keys);
        hopper::prefetch_map(&maps.values);
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        hopper::give_registers<Tile::few>();
        if (threadIdx.x == 0) copy_operands<Tile>(rings, maps, job);
    } else {
        hopper::take_registers<Tile::many>();
        attend_to_all<Tile>(rings, job);
    }
#endif
}

} // namespace

} // namespace pvg::attention
