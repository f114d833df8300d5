// float32 products of matrices of at most 128 rows and columns on the CUDA cores, an item of a
// batch a block: what has no multiple of 64 rows leaves little of it idle, and every operand is
// read once. The bits are those of FFMA_128X128, one chain of multiply-adds in increasing k.
//
// A thread owns a microtile of 8 x 4 elements of c, or of 8 x 8 where those would be too many
// threads, and the block has as many warps as these need. Operands come by cp.async as they are
// stored: lines along k stay so, and a thread reads four of k of a row at once. (Moving them across
// k element by element takes the load units longer than reading them does.) They come in one stage
// where all of k fits, so that a block waits once, and other blocks multiply in the meantime.
#include "kernels/fragments.cuh"
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/ffma_tile.cuh"

namespace pvg::matmul {

namespace {

constexpr int micro = items_micro;

// Lines in memory and in shared memory, in packs of some elements.
struct ItemsLines {
    int packs;        // of a line
    unsigned inverse; // of these: see quotient
    int gap,
        gap_bytes; // from line to line, beside these: elements in memory, bytes in shared memory
};
struct ItemsOperand {
    const float *data;
    int64_t stride, item, jump; // from row to row, item to item, and behind each inner dimension
    int side, count;            // rows of a (columns of b); microtiles that hold them
    int pitch, padded;          // in a stage: of a line, and rows with those of whole microtiles
    int width;                  // elements that are loaded at once: 4, 2 or 1
    ItemsLines lines[2];        // of a stage, and of the last one
};
struct ItemsProduct {
    ItemsOperand a, b;
    float *c;
    int64_t c_item, c_jump;
    ItemsLines c_lines;
    int c_width, c_pitch;
    unsigned across_inverse; // of b's microtiles
    int inner, k, depth;     // depth: of a stage, of which there are two where k is longer
    int pair;                // rows of microtiles that neighbouring threads have: 1 or 2
};

// Of a number below 2^20 by a divisor of at most 256, with the inverse_of it.
__device__ __forceinline__ int quotient(int number, unsigned inverse) {
    return static_cast<int>(__umulhi(static_cast<unsigned>(number) * 2 + 1, inverse));
}
unsigned inverse_of(int divisor) {
    return static_cast<unsigned>(((uint64_t(1) << 31) + divisor - 1) / divisor);
}

// Neighbours are below each other, where that needs no more warps: what two threads read at the
// same address costs half as much, and so a's and b's do.
struct ItemsMicrotile {
    int row, column; // of microtiles
    __device__ __forceinline__ ItemsMicrotile(const ItemsProduct &p, unsigned thread) {
        const int own = static_cast<int>(thread), number = p.pair == 2 ? own / 2 : own;
        const int down = quotient(number, p.across_inverse);
        row = p.pair == 2 ? down * 2 + own % 2 : down;
        column = number - down * p.b.count;
    }
};

template <int WIDTH> struct alignas(4 * WIDTH) ItemsPack { float at[WIDTH]; };

// A thread's packs of a stage, whose lines follow one another: every blockDim.x-th.
template <int WIDTH> struct ItemsPacks {
    unsigned odd, odd_end, odd_step, inverse; // 2 i + 1 of number i
    int element, bytes, step;                 // i times WIDTH, and times 4 WIDTH
    int gap, gap_bytes;                       // from a line to the next: more than its packs have

    __device__ __forceinline__ ItemsPacks(const ItemsLines &x, int lines, int first)
        : odd(2 * first + 1), odd_end(2 * lines * x.packs), odd_step(2 * blockDim.x),
          inverse(x.inverse), element(first * WIDTH), bytes(first * 4 * WIDTH),
          step(static_cast<int>(blockDim.x) * WIDTH), gap(x.gap), gap_bytes(x.gap_bytes) {}
    __device__ __forceinline__ bool is_there() const { return odd < odd_end; }
    __device__ __forceinline__ int line() const { return static_cast<int>(__umulhi(odd, inverse)); }
    __device__ __forceinline__ int from() const { return line() * gap + element; }
    __device__ __forceinline__ uint32_t to() const {
        return static_cast<uint32_t>(line() * gap_bytes + bytes);
    }
    __device__ __forceinline__ void advance() {
        odd += odd_step, element += step, bytes += 4 * step;
    }
};

// A stage of an operand: lines as they are stored, with zeros up to fours of k. Rows up to whole
// microtiles hold anything: their sums are not stored. Threads take packs of so many elements as
// they follow one another, line after line, so that none is idle while others load.
template <bool ALONG_K> struct ItemsPart {
    static __device__ __forceinline__ int floats(const ItemsOperand &x, int depth) {
        return x.pitch * (ALONG_K ? x.padded : depth);
    }

    template <int WIDTH> static __device__ __forceinline__ void
    load_packs(uint32_t to, const ItemsOperand &x, const float *from, int lines, int which) {
        ItemsPacks<WIDTH> packs(x.lines[which], lines, static_cast<int>(threadIdx.x));
#pragma unroll 4
        for (; packs.is_there(); packs.advance())
            fragments::copy_async<4 * WIDTH>(to + packs.to(), from + packs.from());
    }
    // deep: how many of k there are. from: the first of the stage.
    static __device__ __forceinline__ void load(float *to, const ItemsOperand &x, const float *from,
                                                int deep, bool last) {
        const int lines = ALONG_K ? x.side : deep;
#ifndef PVG_SIMULATOR
        asm volatile("" : "+l"(from)); // for the compiler another one: what is added has 32 bits
#endif
        const uint32_t there = shared_address(to);
        if (x.width == 4)
            load_packs<4>(there, x, from, lines, last);
        else if (x.width == 2)
            load_packs<2>(there, x, from, lines, last);
        else
            load_packs<1>(there, x, from, lines, last);
        if (deep % 4 != 0) clear_tail(to, x, deep);
    }
    // Up to fours of k.
    static __device__ __forceinline__ void clear_tail(float *to, const ItemsOperand &x, int deep) {
        const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
        const int more = 4 - deep % 4;
        if constexpr (ALONG_K) {
            for (int line = thread / 4; line < x.side; line += threads / 4)
                if (thread % 4 < more) to[line * x.pitch + deep + thread % 4] = 0;
        } else {
            for (int at = thread; at < more * x.pitch; at += threads) to[deep * x.pitch + at] = 0;
        }
    }
    // Which row is a thread's i-th, if its microtile is number `at`: neighbouring threads read
    // neighbouring rows, or neighbouring fours.
    static __device__ __forceinline__ int place(const ItemsOperand &x, int at, int i) {
        return ALONG_K ? at + i * x.count : i / 4 * 4 * x.count + at * 4 + i % 4;
    }

    uint32_t first, next; // bytes: of the thread's first row in a stage; to the next, or next four
    uint32_t line;        // from one k to the next, where lines are not along k

    __device__ __forceinline__ ItemsPart(const ItemsOperand &x, int at)
        : first(static_cast<uint32_t>(place(x, at, 0) * (ALONG_K ? x.pitch : 1) * 4)),
          next(static_cast<uint32_t>(x.count * (ALONG_K ? x.pitch : 4) * 4)),
          line(static_cast<uint32_t>(x.pitch * 4)) {}

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

template <int COLUMNS> using ItemsSums = float[micro][COLUMNS];

// Of four successive k.
template <bool A_ALONG_K, bool B_ALONG_K, int COLUMNS> __device__ __forceinline__ void
multiply_four(uint32_t stage_a, uint32_t stage_b, int first, const ItemsPart<A_ALONG_K> &part_a,
              const ItemsPart<B_ALONG_K> &part_b, ItemsSums<COLUMNS> &sums) {
    // Of b, that are read at a time: beside fours of k of a, there are no registers for all.
    constexpr int columns = A_ALONG_K ? (B_ALONG_K ? 2 : 4) : COLUMNS;
    float rows_of_a[micro][4], rows_of_b[columns][4];
    if constexpr (A_ALONG_K) part_a.read_rows(stage_a + part_a.first + first * 4, rows_of_a);
#pragma unroll
    for (int part = 0; part < COLUMNS; part += columns) {
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

// By one stage, or two in turn.
template <bool A_ALONG_K, bool B_ALONG_K, int COLUMNS> __device__ __forceinline__ void
multiply_item(const ItemsProduct &p, float *shared, const ItemsMicrotile &at,
              ItemsSums<COLUMNS> &sums) {
    using PartA = ItemsPart<A_ALONG_K>;
    using PartB = ItemsPart<B_ALONG_K>;
    const PartA part_a(p.a, at.row);
    const PartB part_b(p.b, at.column);
    const int a_floats = PartA::floats(p.a, p.depth);
    float *const second = shared + a_floats + PartB::floats(p.b, p.depth);
    // Where the item begins is reckoned anew, for want of registers.
    const auto load = [&](int k, float *to) {
        const int deep = min(p.depth, p.k - k);
        const bool last = p.k - k <= p.depth;
        PartA::load(to, p.a, first_of<A_ALONG_K>(p, p.a, k), deep, last);
        PartB::load(to + a_floats, p.b, first_of<B_ALONG_K>(p, p.b, k), deep, last);
        commit_copies();
    };
    float *reading = shared, *writing = second;
    load(0, shared);
#pragma unroll 1
    for (int k = 0; k < p.k; k += p.depth) {
        wait_for_copies<0>();
        __syncthreads(); // it has come, and the one before has been read
        if (p.depth < p.k - k) load(k + p.depth, writing);
        const uint32_t from = shared_address(reading);
        const uint32_t from_b = from + static_cast<uint32_t>(a_floats * 4);
        const int deep = min(p.depth, p.k - k);
        if (at.row < p.a.count)
#pragma unroll 1
            for (int of_stage = 0; of_stage < deep; of_stage += 4)
                multiply_four<A_ALONG_K, B_ALONG_K, COLUMNS>(from, from_b, of_stage, part_a, part_b,
                                                             sums);
        float *const read = reading;
        reading = writing, writing = read;
    }
    __syncthreads(); // all has been read
}

template <int WIDTH>
__device__ __forceinline__ void store_packs(const ItemsProduct &p, float *c, const float *shared) {
    const char *const from = reinterpret_cast<const char *>(shared);
    ItemsPacks<WIDTH> packs(p.c_lines, p.a.side, static_cast<int>(threadIdx.x));
#pragma unroll 4
    for (; packs.is_there(); packs.advance())
        *reinterpret_cast<ItemsPack<WIDTH> *>(c + packs.from()) =
            *reinterpret_cast<const ItemsPack<WIDTH> *>(from + packs.to());
}

// By shared memory, so that whole rows are stored, wherever they begin.
template <bool A_ALONG_K, bool B_ALONG_K, int COLUMNS> __device__ __forceinline__ void
store_item(const ItemsProduct &p, float *c, float *shared, const ItemsMicrotile &at,
           const ItemsSums<COLUMNS> &sums) {
    using PartA = ItemsPart<A_ALONG_K>;
    using PartB = ItemsPart<B_ALONG_K>;
    if (at.row < p.a.count) {
#pragma unroll
        for (int i = 0; i < micro; i++) {
            float *const line = shared + PartA::place(p.a, at.row, i) * p.c_pitch;
            if constexpr (B_ALONG_K)
#pragma unroll
                for (int j = 0; j < COLUMNS; j++)
                    line[PartB::place(p.b, at.column, j)] = sums[i][j];
            else
#pragma unroll
                for (int j = 0; j < COLUMNS; j += 4)
                    *reinterpret_cast<float4 *>(line + PartB::place(p.b, at.column, j)) =
                        make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
        }
    }
    __syncthreads();
    if (p.c_width == 4)
        store_packs<4>(p, c, shared);
    else if (p.c_width == 2)
        store_packs<2>(p, c, shared);
    else
        store_packs<1>(p, c, shared);
}

// Before 9.0 the compiler needs more registers than 128 a thread, which two blocks allow.
template <bool A_ALONG_K, bool B_ALONG_K, int COLUMNS>
__global__ void __launch_bounds__(items_most_threads(COLUMNS), PVG_TARGET < 900 ? 1 : 2)
    ffma_items_kernel(const __grid_constant__ ItemsProduct p) {
#if PVG_TARGET >= 800
    PVG_DYNAMIC_SHARED(float, memory);
    ItemsSums<COLUMNS> sums = {};
    let_next_kernel_start();
    wait_for_previous_kernel();
    multiply_item<A_ALONG_K, B_ALONG_K, COLUMNS>(p, memory, ItemsMicrotile(p, threadIdx.x), sums);
    float *const c = p.c + begin_of_item(block_anew(), p.c_item, p.inner, p.c_jump);
    store_item<A_ALONG_K, B_ALONG_K, COLUMNS>(p, c, memory, ItemsMicrotile(p, thread_anew()), sums);
#endif
}

ItemsLines lines_of(int length, int width, int64_t stride, int pitch) {
    const int packs = length / width;
    return {packs, inverse_of(packs), static_cast<int>(stride) - length, 4 * (pitch - length)};
}
ItemsOperand operand_of(const Stored &x, const OperandPlan &plan, int side, int64_t jump,
                        const Plan &whole, int micro_side, int64_t k) {
    ItemsOperand o{};
    o.data = static_cast<const float *>(x.data);
    o.stride = x.stride, o.item = x.item, o.jump = jump, o.side = side;
    o.count = static_cast<int>(tiles(side, micro_side));
    o.padded = o.count * micro_side;
    o.pitch = x.along_k ? items_pitch(whole.depth) : o.padded;
    o.width = plan.alignment;
    const int rest = static_cast<int>((k - 1) % whole.depth + 1);
    for (int last = 0; last < 2; last++) {
        const int length = x.along_k ? (last ? rest : whole.depth) : side;
        o.lines[last] = lines_of(length, o.width, o.stride, o.pitch);
    }
    return o;
}

// From row to row of the sums in shared memory: threads that store at a time and are in two rows of
// microtiles then reach other banks each, where there is room for it.
int pitch_of_sums(const ItemsProduct &p, const Plan &plan, bool a_along_k) {
    const int padded = p.b.padded;
    const int pitch = a_along_k ? padded + (48 - padded % 32) % 32 : padded / 8 * 8 + 4;
    return p.pair == 2 && 4 * p.a.padded * pitch <= plan.shared_bytes ? pitch : padded;
}

template <int COLUMNS>
int launch_items(Call &call, const Gemm &g, const Plan &plan, const ItemsProduct &p) {
    const LaunchExtras extras{1, plan.overlap};
#define PVG_ITEMS(A_ALONG_K, B_ALONG_K)                                         \
    PVG_LAUNCH_WITH(extras, (ffma_items_kernel<A_ALONG_K, B_ALONG_K, COLUMNS>), \
                    blocks_for(g.items, 1), plan.threads, plan.shared_bytes, call.stream, p)
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

} // namespace

int launch_ffma_items(Call &call, const Gemm &g, const Plan &plan) {
    const Jumps jumps = jumps_of(g);
    const int columns = items_columns(g.m, g.n);
    ItemsProduct p{};
    p.a = operand_of(stored_a(g), plan.a, g.m, jumps.a, plan, items_micro, g.k);
    p.b = operand_of(stored_b(g), plan.b, g.n, jumps.b, plan, columns, g.k);
    p.pair = items_pair(p.a.count, p.b.count);
    p.c = static_cast<float *>(g.c), p.c_item = g.c_item, p.c_jump = jumps.c;
    p.c_width = items_width(g.c, g.n, g.ldc, g.items, g.c_item, jumps.c);
    p.c_pitch = pitch_of_sums(p, plan, g.a_along_k);
    p.c_lines = lines_of(g.n, p.c_width, g.ldc, p.c_pitch);
    p.across_inverse = inverse_of(p.b.count);
    p.inner = jumps.inner, p.k = static_cast<int>(g.k), p.depth = plan.depth;
    return columns == 8 ? launch_items<8>(call, g, plan, p) : launch_items<4>(call, g, plan, p);
}

} // namespace pvg::matmul
