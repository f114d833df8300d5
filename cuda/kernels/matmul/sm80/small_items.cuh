// Products of float16 and bfloat16 of many small matrices, of at most SIDE rows and columns each:
// the kernel that small_items.cu launches. Sums are in float32, and have the bits of small.cuh's.
//
// A block has whole items, one after another, and is set up for all of them once: of so little work
// that is most. Stretches of a long k are items, too, whose sums stay float32. Stages of the next
// item are on their way while one is multiplied and stored. Warps share an item's rows and columns
// in parts that differ by 16 at most.
#pragma once
#include "kernels/matmul/sm80/small_parts.cuh"

namespace pvg::matmul {

namespace {

struct SmallItems {
    SmallOperand a, b;
    void *c;
    int64_t c_row, c_item, c_outer;
    int k, last_k, items, inner; // last_k: of the last item; inner: of the inner dimension, or 0
    int a_bytes, stage_bytes;
    bool pairs;  // two of a row of c may be stored at once
    bool single; // c is float32: the items are stretches of k, whose sums are added up after

    template <int TILE> __device__ __forceinline__ int terms(int item) const {
        return TILE != small_items_128 || item + 1 < items ? k : last_k;
    }
};

struct SmallItem {
    int64_t item, outer;
    __device__ __forceinline__ SmallItem(const SmallItems &p, int number) : item(number), outer(0) {
        if (!p.inner) return;
        const unsigned all = static_cast<unsigned>(number), inner = static_cast<unsigned>(p.inner);
        outer = all / inner, item = all % inner;
    }
};

// The part of 16 rows (or columns) each that a warp has, of those of `side`.
struct SmallShare {
    int first, count;
    __device__ __forceinline__ SmallShare(int side, int number, int parts) {
        const int all = (side + 15) / 16;
        first = all * number / parts, count = all * (number + 1) / parts - first;
    }
};

// An operand's stages, of `deep` terms of an item from `first` on. Addresses are made anew for
// each: between stages there are no registers for them.
//
// Lines that lie anywhere come by SmallLoader, and are moved when they have come.
template <int SIDE, int THREADS, bool BY_PACKS> struct SmallStream {
    static __device__ __forceinline__ void load(unsigned char *to, const SmallOperand &x,
                                                const SmallItem &at, int first, int deep) {
        SmallLoader<SIDE, THREADS, true> loader(x, 0, static_cast<int>(thread_anew()));
        loader.begin(at.item, at.outer, 0, first);
        loader.load(to, deep);
    }
    static __device__ __forceinline__ void settle(unsigned char *stage, const SmallOperand &x,
                                                  const SmallItem &at, int deep) {
        if (x.width > 1) return;
        SmallLoader<SIDE, THREADS, true> loader(x, 0, static_cast<int>(thread_anew()));
        loader.begin(at.item, at.outer, 0, 0); // a whole stage further on the shift is the same
        loader.settle(stage, deep, loader.shift());
    }
};

// Lines that begin at multiples of 16 bytes, and end there: nothing but whole packs of 8 elements.
// What is not there along the sides may be anything, as it is not stored; along k it is zero.
template <int SIDE, int THREADS> struct SmallStream<SIDE, THREADS, true> {
    static __device__ __forceinline__ void load(unsigned char *to, const SmallOperand &x,
                                                const SmallItem &at, int first, int deep) {
        const int thread = static_cast<int>(thread_anew());
        const int across = x.along_k ? 3 : SIDE == 64 ? 3 : 4; // packs of a line, as a power of two
        const int line = thread >> across, down = THREADS >> across;
        const int place = (thread & ((1 << across) - 1)) * 8;
        const int lines = x.along_k ? x.side : deep, length = x.along_k ? deep : x.side;
        const int pitch = small_pitch<SIDE>(x);
        const uint16_t *from = static_cast<const uint16_t *>(x.data) + at.item * x.item +
                               at.outer * x.outer + (x.along_k ? first : first * x.stride) +
                               line * x.stride + place;
        to += line * pitch + place * 2;
        int here = line;
        if (place < length) {
            uint32_t there = shared_address(to);
#pragma unroll 2
            for (; here < lines; here += down) {
                fragments::copy_async<16>(there, from);
                from += down * x.stride, there += static_cast<uint32_t>(down * pitch);
            }
        }
        if (deep % 16 == 0) return;
        const uint4 zeros = make_uint4(0, 0, 0, 0);
        if (!x.along_k && place < length) { // one line at most, as there are no more than down
            if (here < whole_steps(deep))
                *reinterpret_cast<uint4 *>(to + (here - line) * pitch) = zeros;
        } else if (x.along_k && place >= deep && place < whole_steps(deep)) {
            for (; here < lines; here += down)
                *reinterpret_cast<uint4 *>(to + (here - line) * pitch) = zeros;
        }
    }
    static __device__ __forceinline__ void settle(unsigned char *, const SmallOperand &,
                                                  const SmallItem &, int) {}
};

// Before 9.0 the compiler needs more registers.
constexpr int small_items_resident(int tile) {
    return small_items_blocks(tile) - (PVG_TARGET < 900);
}
template <int TILE> struct SmallItemsTile {
    static constexpr int side = small_items_side(TILE), threads = small_items_threads(TILE);
};

template <class T, int TILE>
__global__ void __launch_bounds__(small_items_threads(TILE), small_items_resident(TILE))
    small_items_kernel(const __grid_constant__ SmallItems p) {
#if PVG_HAS_FRAGMENTS
    PVG_DYNAMIC_SHARED(float, memory);
    using Tile = SmallItemsTile<TILE>;
    using Stream = SmallStream<Tile::side, Tile::threads, TILE == small_items_packs>;
    constexpr int warps_across = Tile::threads / 64; // two down
    constexpr int down = Tile::side / 32, across = Tile::side / warps_across / 8;
    unsigned char *const shared = reinterpret_cast<unsigned char *>(memory);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const SmallShare rows(p.a.side, warp / warps_across, 2);
    const SmallShare columns(p.b.side, warp % warps_across, warps_across);
    // Of the stage that is loaded next, and of the one that is multiplied.
    int loading = static_cast<int>(blockIdx.x), loading_left = p.terms<TILE>(loading), to = 0;
    int item = loading, left = loading_left, from = 0;
    int ahead = small_items_stages - 1; // so many more are loaded than multiplied
    let_next_kernel_start();
    wait_for_previous_kernel();
    float sums[down][across][4] = {};
#pragma unroll 1
    while (item < p.items) {
        if (ahead == 0) { // a stage has come, and the one before has been read
            wait_for_copies<small_items_stages - 2>();
            const int deep = min(small_depth, left);
            unsigned char *const here = shared + from * p.stage_bytes;
            const SmallItem at(p, item);
            Stream::settle(here, p.a, at, deep);
            Stream::settle(here + p.a_bytes, p.b, at, deep);
            __syncthreads();
        }
        if (loading < p.items) {
            const SmallItem at(p, loading);
            unsigned char *const there = shared + to * p.stage_bytes;
            const int deep = min(small_depth, loading_left);
            const int first = p.terms<TILE>(loading) - loading_left;
            Stream::load(there, p.a, at, first, deep);
            Stream::load(there + p.a_bytes, p.b, at, first, deep);
            loading_left -= deep;
            if (loading_left == 0) {
                loading += static_cast<int>(gridDim.x);
                loading_left = p.terms<TILE>(loading);
            }
            to = to + 1 == small_items_stages ? 0 : to + 1;
        }
        commit_copies();
        if (ahead > 0) {
            ahead--;
            continue;
        }
        const int deep = min(small_depth, left);
        unsigned char *const here = shared + from * p.stage_bytes;
        const uint32_t stage = shared_address(here);
        const int lane = static_cast<int>(thread_anew() % 32);
        const SmallFragments part_a(true, p.a.along_k, rows.first * 16,
                                    small_pitch<Tile::side>(p.a), lane);
        const SmallFragments part_b(false, p.b.along_k, columns.first * 16,
                                    small_pitch<Tile::side>(p.b), lane);
        multiply_stage<T>(stage, stage + p.a_bytes, whole_steps(deep) / 16, part_a, part_b,
                          rows.count, columns.count, sums);
        left -= deep;
        from = from + 1 == small_items_stages ? 0 : from + 1;
        if (left > 0) continue;
        const SmallItem at(p, item);
        const int64_t first_of_c = at.item * p.c_item + at.outer * p.c_outer;
        const SmallTarget<T> c = {static_cast<T *>(p.c) + first_of_c, p.c_row, p.a.side, p.b.side};
        if (TILE == small_items_128 && p.single)
            store_small_sums(SmallTarget<float>{static_cast<float *>(p.c) + first_of_c, p.c_row,
                                                p.a.side, p.b.side},
                             rows.first * 16, columns.first * 16, rows.count, columns.count, sums);
        else if (p.pairs)
            store_small_sums(c, rows.first * 16, columns.first * 16, rows.count, columns.count,
                             sums);
        else // over the stage, which nothing is loaded to before the next barrier
            store_small_rows<T, Tile::side, Tile::threads>(
                c, here, rows.first * 16, columns.first * 16, rows.count, columns.count, sums);
        item += static_cast<int>(gridDim.x), left = p.terms<TILE>(item);
#pragma unroll
        for (int i = 0; i < down; i++)
#pragma unroll
            for (int j = 0; j < across; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) sums[i][j][e] = 0;
    }
#endif
}

} // namespace

} // namespace pvg::matmul
