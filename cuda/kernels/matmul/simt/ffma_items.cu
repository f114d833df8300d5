// float32 products of matrices of at most 128 rows and columns on the CUDA cores, an item of a
// batch a block: what has no multiple of 64 rows leaves little of it idle, and every operand is
// read once. The bits are those of FFMA_128X128, one chain of multiply-adds in increasing k.
//
// A thread owns a microtile of 8 x 8 elements of c, and the block has as many warps as these need.
// Operands come by cp.async as they are stored: lines along k stay so, and a thread reads four of k
// of a row at once. (Moving them across k element by element takes the load units longer than
// reading them does.)
#include "kernels/fragments.cuh"
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/ffma_tile.cuh"

namespace pvg::matmul {

namespace {

constexpr int micro = items_micro;

struct ItemsOperand {
    const float *data;
    int64_t stride, item, jump; // from row to row, item to item, and behind each inner dimension
    int side, count;            // rows of a (columns of b); microtiles that hold them
    int width;                  // elements that may be loaded at once, 4 or 1
};
struct ItemsProduct {
    ItemsOperand a, b;
    float *c;
    int64_t c_row, c_item, c_jump;
    int inner, k;
    int pair; // rows of microtiles that neighbouring threads have: 1 or 2
};

// Neighbours are below each other, where that needs no more warps: what two threads read at the
// same address costs half as much, and so a's and b's do.
struct ItemsMicrotile {
    int row, column; // of microtiles
    __device__ __forceinline__ ItemsMicrotile(const ItemsProduct &p, unsigned thread) {
        const unsigned pair = static_cast<unsigned>(p.pair), number = thread / pair;
        const unsigned across = static_cast<unsigned>(p.b.count);
        row = static_cast<int>(number / across * pair + thread % pair);
        column = static_cast<int>(number % across);
    }
};

// A stage of an operand: lines as they are stored, with zeros up to whole microtiles and fours of
// k.
template <bool ALONG_K> struct ItemsPart {
    // Behind a line along k four elements: of eight of them each begins at other banks.
    static __device__ __forceinline__ int pitch(const ItemsOperand &x) {
        return ALONG_K ? items_pitch : micro * x.count;
    }
    static __device__ __forceinline__ int bytes(const ItemsOperand &x) {
        return 4 * micro * x.count * (ALONG_K ? items_pitch : items_depth);
    }

    // deep: how many of k there are. from: the first of the stage.
    template <int WIDTH> static __device__ __forceinline__ void
    load_packs(uint32_t to, const ItemsOperand &x, const float *from, int deep) {
        const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
        const int all = (deep + 3) / 4 * 4, padded = micro * x.count;
        // Along k eight lanes, or a warp, have a line; else a warp has, as long as it is.
        constexpr int lanes = ALONG_K ? items_depth / WIDTH : 32;
        const int first = thread / lanes, step = threads / lanes;
        const int lines = ALONG_K ? x.side : deep, all_lines = ALONG_K ? padded : all;
        const int length = ALONG_K ? deep : x.side, all_length = ALONG_K ? all : padded;
        for (int at = thread % lanes * WIDTH; at < all_length; at += 32 * WIDTH) {
            const float *pack = from + first * x.stride + at;
            uint32_t there = to + static_cast<uint32_t>((first * pitch(x) + at) * 4);
            int line = first;
            const int count = min(WIDTH, length - at) * 4;
            if (count == WIDTH * 4) {
#pragma unroll 2
                for (; line < lines; line += step) {
                    fragments::copy_async<4 * WIDTH>(there, pack);
                    pack += step * x.stride, there += static_cast<uint32_t>(step * pitch(x) * 4);
                }
            }
#pragma unroll 1
            for (; line < all_lines; line += step) {
                fragments::copy_async<4 * WIDTH>(there, pack, line < lines ? max(count, 0) : 0);
                pack += step * x.stride, there += static_cast<uint32_t>(step * pitch(x) * 4);
            }
        }
    }
    static __device__ __forceinline__ void load(uint32_t to, const ItemsOperand &x,
                                                const float *from, int deep) {
        if (x.width == 4)
            load_packs<4>(to, x, from, deep);
        else
            load_packs<1>(to, x, from, deep);
    }

    // Which row is a thread's i-th, if its microtile is number `at`: neighbouring threads read
    // neighbouring rows, or neighbouring fours.
    static __device__ __forceinline__ int place(const ItemsOperand &x, int at, int i) {
        return ALONG_K ? at + i * x.count : i / 4 * 4 * x.count + at * 4 + i % 4;
    }

    uint32_t first, next; // bytes: of the thread's first row in a stage; to the next, or next four
    uint32_t line;        // from one k to the next, where lines are not along k

    __device__ __forceinline__ ItemsPart(const ItemsOperand &x, int at)
        : first(static_cast<uint32_t>(place(x, at, 0) * (ALONG_K ? pitch(x) : 1) * 4)),
          next(static_cast<uint32_t>(x.count * (ALONG_K ? pitch(x) : 4) * 4)),
          line(static_cast<uint32_t>(pitch(x) * 4)) {}

    // Four of k of COUNT rows, of which the first one's are at `from`.
    template <int COUNT>
    __device__ __forceinline__ void read_rows(uint32_t from, float (&to)[COUNT][4]) const {
        static_assert(ALONG_K);
#pragma unroll
        for (int i = 0; i < COUNT; i++) read_four(from, to[i]), from += next;
    }
    // COUNT rows of one k, whose line is at `from`, from the thread's i-th on.
    template <int COUNT>
    __device__ __forceinline__ void read_line(uint32_t from, int i, float (&to)[COUNT]) const {
        static_assert(!ALONG_K && COUNT % 4 == 0);
#pragma unroll
        for (int four = 0; four < COUNT; four += 4)
            read_four(from + (i + four) / 4 * next, to + four);
    }
};

using ItemsSums = float[micro][micro];

// Of four successive k.
template <bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void multiply_four(uint32_t stage_a, uint32_t stage_b, int first,
                                              const ItemsPart<A_ALONG_K> &part_a,
                                              const ItemsPart<B_ALONG_K> &part_b, ItemsSums &sums) {
    // Of b, that are read at a time: beside fours of k of a, there are no registers for all.
    constexpr int columns = A_ALONG_K ? (B_ALONG_K ? 2 : 4) : micro;
    float rows_of_a[micro][4], rows_of_b[columns][4];
    if constexpr (A_ALONG_K) part_a.read_rows(stage_a + part_a.first + first * 4, rows_of_a);
#pragma unroll
    for (int part = 0; part < micro; part += columns) {
        if constexpr (B_ALONG_K)
            part_b.read_rows(stage_b + part_b.first + part * part_b.next + first * 4, rows_of_b);
        uint32_t line_a = stage_a + part_a.first + first * part_a.line;
        uint32_t line_b = stage_b + part_b.first + first * part_b.line;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float a[micro], b[columns];
            if constexpr (!A_ALONG_K) part_a.read_line(line_a, 0, a);
            if constexpr (!B_ALONG_K) part_b.read_line(line_b, part, b);
#pragma unroll
            for (int i = 0; i < micro; i++)
#pragma unroll
                for (int step = 0; step < columns; step++) {
                    const int j = i % 2 ? columns - 1 - step : step; // to and fro
                    const float of_a = A_ALONG_K ? rows_of_a[i][k] : a[i];
                    const float of_b = B_ALONG_K ? rows_of_b[j][k] : b[j];
                    sums[i][part + j] = fmaf(of_a, of_b, sums[i][part + j]);
                }
            line_a += part_a.line, line_b += part_b.line;
        }
    }
}

template <bool ALONG_K> __device__ __forceinline__ const float *
first_of(const ItemsProduct &p, const ItemsOperand &x, int k) {
    return x.data + begin_of_item(block_anew(), x.item, p.inner, x.jump) +
           (ALONG_K ? k : k * x.stride);
}

// From stages, of which two are there.
template <bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void multiply_item(const ItemsProduct &p, uint32_t shared,
                                              const ItemsMicrotile &at, ItemsSums &sums) {
    using PartA = ItemsPart<A_ALONG_K>;
    using PartB = ItemsPart<B_ALONG_K>;
    const PartA part_a(p.a, at.row);
    const PartB part_b(p.b, at.column);
    const uint32_t a_bytes = static_cast<uint32_t>(PartA::bytes(p.a));
    const uint32_t bytes = a_bytes + static_cast<uint32_t>(PartB::bytes(p.b));
    // Where the item begins is reckoned anew, for want of registers.
    const auto load = [&](int stage) {
        const int k = stage * items_depth, deep = min(items_depth, p.k - k);
        const uint32_t to = shared + stage % 2 * bytes;
        if (deep > 0) {
            PartA::load(to, p.a, first_of<A_ALONG_K>(p, p.a, k), deep);
            PartB::load(to + a_bytes, p.b, first_of<B_ALONG_K>(p, p.b, k), deep);
        }
        commit_copies();
    };
    load(0);
    load(1);
#pragma unroll 1
    for (int stage = 0; stage * items_depth < p.k; stage++) {
        wait_for_copies<1>();
        __syncthreads();
        const uint32_t from = shared + stage % 2 * bytes;
        const int deep = min(items_depth, p.k - stage * items_depth);
        if (at.row < p.a.count)
#pragma unroll 1
            for (int k = 0; k < deep; k += 4)
                multiply_four(from, from + a_bytes, k, part_a, part_b, sums);
        __syncthreads(); // it has been read
        load(stage + 2);
    }
}

// By shared memory, so that whole rows are stored, wherever they begin.
template <bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void store_item(const ItemsProduct &p, float *c, float *shared,
                                           const ItemsMicrotile &at, const ItemsSums &sums) {
    const int pitch = micro * p.b.count, warps = static_cast<int>(blockDim.x) / 32;
    if (at.row < p.a.count) {
#pragma unroll
        for (int i = 0; i < micro; i++) {
            float *const line = shared + ItemsPart<A_ALONG_K>::place(p.a, at.row, i) * pitch;
            if constexpr (B_ALONG_K)
#pragma unroll
                for (int j = 0; j < micro; j++)
                    line[ItemsPart<true>::place(p.b, at.column, j)] = sums[i][j];
            else
#pragma unroll
                for (int j = 0; j < micro; j += 4)
                    *reinterpret_cast<float4 *>(line + ItemsPart<false>::place(p.b, at.column, j)) =
                        make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
        }
    }
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int column = lane; column < p.b.side; column += 32) {
        int line = static_cast<int>(threadIdx.x) / 32;
        float *to = c + line * p.c_row + column;
#pragma unroll 4
        for (; line < p.a.side; line += warps) {
            *to = shared[line * pitch + column];
            to += warps * p.c_row;
        }
    }
}

// Before 9.0 the compiler needs more registers than 128 a thread, which two blocks allow.
template <bool A_ALONG_K, bool B_ALONG_K>
__global__ void __launch_bounds__(items_threads, PVG_TARGET < 900 ? 1 : 2)
    ffma_items_kernel(const __grid_constant__ ItemsProduct p) {
#if PVG_TARGET >= 800
    PVG_DYNAMIC_SHARED(float, memory);
    ItemsSums sums = {};
    let_next_kernel_start();
    wait_for_previous_kernel();
    multiply_item<A_ALONG_K, B_ALONG_K>(p, shared_address(memory), ItemsMicrotile(p, threadIdx.x),
                                        sums);
    float *const c = p.c + begin_of_item(block_anew(), p.c_item, p.inner, p.c_jump);
    store_item<A_ALONG_K, B_ALONG_K>(p, c, memory, ItemsMicrotile(p, thread_anew()), sums);
#endif
}

ItemsOperand operand_of(const Stored &x, const OperandPlan &plan, int side, int64_t jump) {
    return {static_cast<const float *>(x.data),         x.stride,      x.item, jump, side,
            static_cast<int>(tiles(side, items_micro)), plan.alignment};
}

} // namespace

int launch_ffma_items(Call &call, const Gemm &g, const Plan &plan) {
    const Jumps jumps = jumps_of(g);
    ItemsProduct p{};
    p.a = operand_of(stored_a(g), plan.a, g.m, jumps.a);
    p.b = operand_of(stored_b(g), plan.b, g.n, jumps.b);
    p.c = static_cast<float *>(g.c), p.c_row = g.ldc, p.c_item = g.c_item, p.c_jump = jumps.c;
    p.inner = jumps.inner, p.k = static_cast<int>(g.k);
    p.pair = items_pair(p.a.count, p.b.count);
    const LaunchExtras extras{1, plan.overlap};
#define PVG_ITEMS(A_ALONG_K, B_ALONG_K)                                                        \
    PVG_LAUNCH_WITH(extras, (ffma_items_kernel<A_ALONG_K, B_ALONG_K>), blocks_for(g.items, 1), \
                    plan.threads, plan.shared_bytes, call.stream, p)
    if (g.a_along_k && g.b_along_k)
        PVG_ITEMS(true, true);
    else if (g.a_along_k)
        PVG_ITEMS(true, false);
    else if (g.b_along_k)
        PVG_ITEMS(false, true);
    else
        PVG_ITEMS(false, false);
#undef PVG_ITEMS
    return PVG_OK;
}

} // namespace pvg::matmul
