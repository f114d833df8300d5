// What the kernels of attention by warpgroup products (wgmma) share: float16 and bfloat16, compute
// capability 9.0a.
//
// A block stays for the whole launch and walks through pieces of work, each of which is a tile of
// rows of one item. One warp copies by TMA the tile's own rows, and through a ring of stages tiles
// of the rows beside them; each other warpgroup has 64 of the tile's rows. Beside 64 rows all
// scores, weights and sums stay in registers: weights, rounded to 16 bits, are where an accumulator
// holds them what the next product wants of its left operand. In shared memory rows are cut into
// slabs of 128 bytes, swizzled; rows and features that are not there are zeros.
#pragma once
#include "kernels/attention_tensor.cuh"
#include "kernels/hopper.cuh"
#include "kernels/wgmma.cuh"

namespace pvg::attention {

constexpr int least_wgmma_queries = 64; // fewer are better off with tiles of fewer
constexpr int most_leading = 3;

struct WgmmaJob {
    int length, size, features, width; // queries, keys, features of both and of values
    bool causal;
    float scale, unit;         // unit: what a score is multiplied by to be a power of two
    unsigned items, tiles;     // tiles: of an item
    unsigned together, rounds; // items of a section, and rounds of the blocks
    unsigned leading[2];       // lengths of the two inner leading dimensions
    int step[3][most_leading]; // of query, keys, values: 0 along a leading dimension they lack
    void *to, *more;
    const float *logsum, *products;
};

namespace {

template <class T>
using WgmmaElement = std::conditional_t<std::is_same_v<T, Half>, __half, __nv_bfloat16>;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// ---- What a block does --------------------------------------------------------------------------

struct WgmmaWork {
    unsigned item, tile;

    // Its place in the leading dimensions, the innermost first.
    __device__ __forceinline__ void locate(const WgmmaJob &job, int (&leading)[3]) const {
        const unsigned outer = item / job.leading[0];
        leading[0] = static_cast<int>(item % job.leading[0]);
        leading[1] = static_cast<int>(outer % job.leading[1]);
        leading[2] = static_cast<int>(outer / job.leading[1]);
    }
};

// The block's next piece of work from a round on, which becomes that one's; false when there is
// none. Of causal attention the longest come first, section by section, a section being as many
// items as share the second-level cache, and every other round goes backwards: so all blocks have
// about the same to do. (Were works counted through all sections, rounds would begin anywhere in
// them: 0.6 of the speed at 64 items of 4096 rows.)
__device__ __forceinline__ bool find_work(const WgmmaJob &job, unsigned *round, WgmmaWork *work) {
    for (;; ++*round) {
        const unsigned first = *round / job.rounds * job.together;
        if (first >= job.items) return false;
        const unsigned items = min(job.together, job.items - first);
        const unsigned place = *round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
        const unsigned index = *round % job.rounds * gridDim.x + place;
        if (index >= items * job.tiles) continue;
        work->item = first + (job.causal ? index % items : index / job.tiles);
        work->tile = job.causal ? job.tiles - 1 - index / items : index % job.tiles;
        return true;
    }
}

// ROWS rows from `row` on, of up to DEPTH features, slab by slab. The barrier expects the bytes.
template <int ROWS, int DEPTH>
__device__ __forceinline__ void load_slabs(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                                           int row, const int (&leading)[3], const int (&step)[3]) {
#pragma unroll
    for (int slab = 0; slab < DEPTH / 64; slab++) {
        const int place[5] = {slab * 64, row, leading[0] * step[0], leading[1] * step[1],
                              leading[2] * step[2]};
        hopper::load_tile(to + slab * ROWS * 128, map, barrier, place);
    }
}

// ---- Products -----------------------------------------------------------------------------------

// Gives out sums = left right', along the features: 64 rows of a tile of LEFT of them, and a tile.
template <class T, int DEPTH, int LEFT, int COLUMNS>
__device__ __forceinline__ void start_features(float (&sums)[COLUMNS / 2], uint32_t left,
                                               uint32_t right) {
    using namespace hopper;
    constexpr uint64_t layout = tile_layout(16, 1024, swizzle_128);
    const uint64_t a = describe_tile(left, layout), b = describe_tile(right, layout);
    pin_sums(sums);
    begin_products();
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        const int slab = k / 4, step = k % 4 * 2;
        Wgmma<WgmmaElement<T>, COLUMNS>::template multiply<false, false>(
            sums, a + slab * LEFT * 8 + step, b + slab * COLUMNS * 8 + step, k > 0);
    }
    commit_products();
}

// Weights of 64 rows as the left operand of products with ROWS rows, 16 at a time.
template <int ROWS> using WgmmaWeights = uint32_t[ROWS / 16][4];

// Gives out sums (+)= weights right, along the rows of a tile.
template <class T, int DEPTH, int ROWS>
__device__ __forceinline__ void start_sums(float (&sums)[DEPTH / 2],
                                           const WgmmaWeights<ROWS> &weights, uint32_t right,
                                           int accumulate) {
    using namespace hopper;
    const uint64_t b = describe_tile(right, tile_layout(ROWS * 128, 1024, swizzle_128));
    pin_sums(sums);
    begin_products();
#pragma unroll
    for (int k = 0; k < ROWS / 16; k++)
        Wgmma<WgmmaElement<T>, DEPTH>::template multiply<true>(sums, weights[k], b + k * 128,
                                                               k > 0 || accumulate);
    commit_products();
}

template <class T, int ROWS>
__device__ __forceinline__ void round_weights(WgmmaWeights<ROWS> &weights,
                                              const float (&exact)[ROWS / 2]) {
#pragma unroll
    for (int k = 0; k < ROWS / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            weights[k][i] = pair_of<T>(exact[k * 8 + i * 2], exact[k * 8 + i * 2 + 1]);
}

// After the products that read the weights: keeps their registers from being used before.
template <int K> __device__ __forceinline__ void pin_weights(const uint32_t (&weights)[K][4]) {
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) asm volatile("" ::"r"(weights[k][i]) : "memory");
}

// ---- To memory ----------------------------------------------------------------------------------

// The first row of the thread's two, the other one being 8 further down, in a tile of rows.
__device__ __forceinline__ int row_of_thread() {
    const int thread = static_cast<int>(threadIdx.x);
    return (thread / 32 - 4) * 16 + thread % 32 / 4;
}

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
template <class T, int DEPTH>
__device__ __forceinline__ void store_sums(void *matrix, const float (&sums)[DEPTH / 2],
                                           const float (&factors)[2], unsigned item, int row,
                                           int length, int features) {
    const int column = static_cast<int>(threadIdx.x) % 4 * 8;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        T *to = static_cast<T *>(matrix) + (int64_t(item) * length + row + h * 8) * features;
#pragma unroll
        for (int j = 0; j < DEPTH / 32; j++) {
            uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *pair = sums + (j * 4 + i) * 4 + h * 2;
                words[i] = pair_of<T>(pair[0] * factors[h], pair[1] * factors[h]);
            }
            turn_quad(words);
            if (row + h * 8 < length && column + j * 32 < features)
                *reinterpret_cast<uint4 *>(to + column + j * 32) =
                    make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}

#endif

} // namespace

// ---- On the host --------------------------------------------------------------------------------

// A map of an operand's rows, `together` of which one load brings. The strides of the leading
// dimensions are those of the walk's operand, times `unit`.
int make_map(CUtensorMap *map, int dtype, const Rows &rows, const Walk<5> &walk, int operand,
             int64_t unit, int together);
// What the kernels need; a tile has `rows` of `length` rows, beside `others` of the other operand.
WgmmaJob describe_wgmma(const Job &job, int64_t length, int rows, int64_t others);
// As many blocks as stay, one on each multiprocessor; the job learns what that makes of its work.
int blocks_for_wgmma(const Call &call, WgmmaJob *job, unsigned *blocks);

} // namespace pvg::attention
