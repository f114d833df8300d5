// What the kernels of products of 16 bits in small tiles are made of: how operands that lie
// anywhere come to shared memory, what a warp multiplies, and how sums are stored.
//
// 16, 8 or 4 bytes at a time come by cp.async. What begins at odd elements comes through registers,
// an element a thread, or as the granules of memory that hold it, and is moved when it is there.
#pragma once
#include "kernels/fragments.cuh"
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"

namespace pvg::matmul {

namespace {

// An operand: m rows of a, or n columns of b, as they are stored.
struct SmallOperand {
    const void *data;
    int64_t stride, item, outer; // from row to row, item to item, and in a batch's other dimension
    int side, width;             // width: elements that may be loaded at once, 8, 4, 2 or 1
    bool along_k;
    const uint16_t *behind; // the last of all elements, of operands that come by granules
};

inline SmallOperand small_operand(const Stored &x, const OperandPlan &plan, int64_t outer) {
    const int64_t side = x.along_k ? x.rows : x.columns;
    const int64_t stride = x.rows > 1 ? x.stride : 0; // of one row no other address is made
    return {x.data,         stride,    x.item, outer, static_cast<int>(side),
            plan.alignment, x.along_k, nullptr};
}

// ---- From memory to shared memory ---------------------------------------------------------------

// A part of an operand that goes to shared memory: `lines` stored lines, `length` of each, and
// zeros around them up to multiples of 16, which is what an instruction multiplies.
struct SmallPart {
    int64_t stride;
    int lines, length, all_lines, all_length;
    int pitch; // bytes, in shared memory
};

__device__ __forceinline__ int whole_steps(int count) { return (count + 15) / 16 * 16; }

// The 16 bytes that begin `shift` bytes into these 32; shift is even.
__device__ __forceinline__ void shift_granules(const uint32_t (&from)[8], int shift,
                                               uint32_t (&to)[4]) {
    uint32_t eight[6], four[5];
#pragma unroll
    for (int i = 0; i < 6; i++) eight[i] = shift & 8 ? from[i + 2] : from[i];
#pragma unroll
    for (int i = 0; i < 5; i++) four[i] = shift & 4 ? eight[i + 1] : eight[i];
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = __funnelshift_r(four[i], four[i + 1], static_cast<unsigned>(shift & 2) * 8);
}

__device__ __forceinline__ void copy_16_bytes(void *to, const void *from) {
    *static_cast<uint4 *>(to) = *static_cast<const uint4 *>(from);
}

__device__ __forceinline__ void write_element(uint32_t to, uint16_t value) {
#ifdef PVG_SIMULATOR
    memcpy(pvg_sim::shared_pointer(to, 2), &value, 2);
#else
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(value) : "memory");
#endif
}

// Of a granule what is in front of `behind`, where there may be no memory any more. In front of all
// elements there is: allocations are aligned.
__device__ __forceinline__ void copy_granule(uint32_t to, const uint16_t *from,
                                             const uint16_t *behind) {
    if (behind - from >= 8) {
        fragments::copy_async<16>(to, from);
        return;
    }
#pragma unroll 1
    for (; from < behind; from++, to += 2) write_element(to, *from);
}

// Of eight elements the first `count`, and zeros.
__device__ __forceinline__ void keep_first(int count, uint32_t (&pairs)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] &= 2 * i + 1 < count ? 0xFFFFFFFFu : 2 * i < count ? 0xFFFFu : 0u;
}

// One by one, through registers: a warp takes every fourth line, and all its loads are on their way
// at once.
template <int LINES> __device__ __forceinline__ void
load_singles(unsigned char *to, const SmallPart &x, const uint16_t *line_of_block) {
    constexpr int warps = small_threads / 32, count = LINES / warps;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    uint16_t first[count], second[count];
    const uint16_t *from = line_of_block + warp * x.stride + lane;
#pragma unroll
    for (int i = 0; i < count; i++) {
        const bool exists = warp + i * warps < x.lines;
        first[i] = exists && lane < x.length ? from[0] : uint16_t(0);
        second[i] = exists && lane + 32 < x.length ? from[32] : uint16_t(0);
        from += warps * x.stride;
    }
    to += warp * x.pitch + lane * 2;
#pragma unroll
    for (int i = 0; i < count; i++) {
        unsigned char *const there = to + i * warps * x.pitch;
        if (warp + i * warps >= x.all_lines) break;
        if (lane < x.all_length) *reinterpret_cast<uint16_t *>(there) = first[i];
        if (lane + 32 < x.all_length) *reinterpret_cast<uint16_t *>(there + 64) = second[i];
    }
}

// Of lines in shared memory, in bytes.
template <int SIDE> __device__ __forceinline__ int small_pitch(const SmallOperand &x) {
    return 2 * (x.along_k ? small_depth : SIDE) + 16;
}

// SIDE rows (or columns) of an operand, from `first` on, which THREADS threads load. What the
// operand says stays where the kernel's parameters are.
//
// What begins at odd elements comes by granules, or if BY_GRANULES is false, through registers: of
// a long k that is faster, as loads of a stage wait for nothing but themselves.
template <int SIDE, int THREADS = small_threads, bool BY_GRANULES = false> struct SmallLoader {
    static constexpr int unrolled = !BY_GRANULES ? 4 : 2; // as registers allow
    const SmallOperand &operand;
    int left;           // of the side
    int line, at, down; // the thread's first line and its place there; lines to its next one
    bool last;          // whether the place is the last of a line
    // The thread's first pack of the next stage; of granules its line, of single elements the
    // block's.
    const uint16_t *from;

    __device__ __forceinline__ SmallLoader(const SmallOperand &x, int first, int thread)
        : operand(x), left(min(SIDE, x.side - first)) {
        // Packs of a line, as a power of two.
        constexpr int of_side = SIDE == 128 ? 7 : SIDE == 64 ? 6 : SIDE == 32 ? 5 : 4;
        const int pack = x.width == 1 ? 8 : x.width;
        const int across = (x.along_k ? 6 : of_side) - (pack == 8 ? 3 : pack / 2);
        const int place = thread & ((1 << across) - 1);
        line = thread >> across, down = THREADS >> across;
        at = place * pack, last = place + 1 == 1 << across;
    }
    // From term first_k on.
    __device__ __forceinline__ void begin(int64_t item, int64_t outer, int first, int first_k) {
        const SmallOperand &x = operand;
        from = static_cast<const uint16_t *>(x.data) + item * x.item + outer * x.outer;
        from += x.along_k ? first * x.stride + first_k : first_k * x.stride + first;
        if (x.width > 1)
            from += line * x.stride + at;
        else if (BY_GRANULES)
            from += line * x.stride;
    }
    __device__ __forceinline__ int pitch() const { return small_pitch<SIDE>(operand); }

    // Lines that begin anywhere come in two steps. Copies bring the granules of 16 bytes of memory
    // that hold a line, with what lies before and behind it. When they have come, the warp that
    // asked for them moves the line to where it belongs. All lines of a thread begin as far into a
    // granule as the first, as there are a multiple of 8 lines between them.
    __device__ __forceinline__ int shift() const {
        return static_cast<int>(reinterpret_cast<uintptr_t>(from) % 16);
    }
    __device__ __forceinline__ void load_granules(uint32_t to, const SmallPart &x) const {
        const int first = at * 2, left = shift() + 2 * x.length - first; // bytes
        const uint16_t *granule = from - shift() / 2 + at;
        const int64_t step = down * x.stride;
        to += static_cast<uint32_t>(line * x.pitch + first);
#pragma unroll unrolled
        for (int here = line; here < x.lines; here += down) {
            if (left > 0) copy_granule(to, granule, operand.behind);
            if (last && left > 16) copy_granule(to + 16, granule + 8, operand.behind);
            granule += step, to += static_cast<uint32_t>(down * x.pitch);
        }
    }
    // Of a stage that has come, whose lines begin so many bytes into a granule. A warp has whole
    // lines.
    __device__ __forceinline__ void settle(unsigned char *stage, int deep, int moved) const {
        __syncwarp();
        const SmallPart x = part_of(deep);
        const int count = x.length - at;
        unsigned char *to = stage + line * x.pitch + at * 2;
        // Lanes go on together, whose lines are less than `down` apart.
        for (int here = line; here - line < x.all_lines; here += down, to += down * x.pitch) {
            const bool has_place = here < x.all_lines && at < x.all_length;
            alignas(16) uint32_t granules[8] = {}, eight[4];
            if (has_place && here < x.lines) {
                copy_16_bytes(granules, to);
                copy_16_bytes(granules + 4, to + 16);
            }
            __syncwarp();
            shift_granules(granules, moved, eight);
            if (count < 8) keep_first(count, eight);
            if (has_place) copy_16_bytes(to, eight);
        }
    }

    // WIDTH elements at a time. Copies that may end within a pack are several times as many
    // instructions as those that do not.
    template <int WIDTH>
    __device__ __forceinline__ void load_packs(uint32_t to, const SmallPart &x) const {
        constexpr int packs = SIDE * small_depth / WIDTH / THREADS;
        if (at >= x.all_length) return;
        const uint16_t *pack = from;
        const int64_t step = down * x.stride;
        const uint32_t to_step = static_cast<uint32_t>(down * x.pitch);
        to += static_cast<uint32_t>(line * x.pitch + at * 2);
        int here = line;
        if (at + WIDTH <= x.length) {
#pragma unroll unrolled
            for (int i = 0; i < packs; i++) {
                if (here >= x.lines) break;
                fragments::copy_async<2 * WIDTH>(to, pack);
                here += down, pack += step, to += to_step;
            }
        }
        const int count = max(0, min(WIDTH, x.length - at)) * 2;
#pragma unroll 1
        for (; here < x.all_lines; here += down) {
            fragments::copy_async<2 * WIDTH>(to, pack, here < x.lines ? count : 0);
            pack += step, to += to_step;
        }
    }
    // A stage of which `deep` of k are in the matrix.
    __device__ __forceinline__ SmallPart part_of(int deep) const {
        SmallPart x;
        x.stride = operand.stride, x.pitch = pitch();
        x.lines = operand.along_k ? left : deep, x.length = operand.along_k ? deep : left;
        x.all_lines = whole_steps(x.lines), x.all_length = whole_steps(x.length);
        return x;
    }
    // The next one.
    __device__ __forceinline__ void load(unsigned char *to, int deep) {
        const SmallPart x = part_of(deep);
        if (operand.width == 8) {
            load_packs<8>(shared_address(to), x);
        } else if (operand.width == 4) {
            load_packs<4>(shared_address(to), x);
        } else if (operand.width == 2) {
            load_packs<2>(shared_address(to), x);
        } else if constexpr (BY_GRANULES) {
            load_granules(shared_address(to), x);
        } else if (SIDE < small_depth && operand.along_k) {
            load_singles<SIDE>(to, x, from);
        } else {
            load_singles<small_depth>(to, x, from);
        }
        from += operand.along_k ? small_depth : small_depth * operand.stride;
    }
};

// ---- Products ----------------------------------------------------------------------------------

// Where the lane's address for ldmatrix begins, and how far it is to the next 16 of k and the next
// 16 rows (columns), in bytes.
struct SmallFragments {
    uint32_t first, next_k, next;
    bool along_k;

    // A left operand: two matrices of rows, and behind them in k two more. A right one: two that
    // follow in k, and two more columns.
    __device__ __forceinline__ SmallFragments(bool left, bool along_k, int from, int pitch,
                                              int lane = static_cast<int>(threadIdx.x) % 32)
        : next_k(along_k ? 32 : 16 * pitch), next(along_k ? 16 * pitch : 32), along_k(along_k) {
        const int near = lane % 8 + lane / 16 * 8, far = lane / 8 % 2 * 8; // eight by eight
        const int row = left ? lane % 16 : near, k = left ? lane / 16 * 8 : far;
        const int line = left ? near : lane % 16, at = left ? far : lane / 16 * 8;
        first = static_cast<uint32_t>(along_k ? (from + row) * pitch + k * 2
                                              : line * pitch + (from + at) * 2);
    }
    __device__ __forceinline__ void read(uint32_t stage, int step, int number,
                                         uint32_t (&to)[4]) const {
        const uint32_t at = stage + first + step * next_k + number * next;
        // What lies along k is as the instruction wants a left operand, and a right one.
        if (along_k)
            fragments::read_matrices<false>(at, to);
        else
            fragments::read_matrices<true>(at, to);
    }
};

// What a warp multiplies at a time: 16 of k, DOWN x 16 rows and ACROSS x 8 columns.
template <int DOWN, int ACROSS> struct SmallStep {
    uint32_t left[DOWN][4], right[ACROSS / 2][4];

    // rows, columns: how many of the warp's 16 are there at all.
    __device__ __forceinline__ void read(uint32_t stage_a, uint32_t stage_b, int step,
                                         const SmallFragments &a, const SmallFragments &b, int rows,
                                         int columns) {
#pragma unroll
        for (int i = 0; i < DOWN; i++)
            if (i < rows) a.read(stage_a, step, i, left[i]);
#pragma unroll
        for (int j = 0; j < ACROSS / 2; j++)
            if (j < columns) b.read(stage_b, step, j, right[j]);
    }
    template <class T> __device__ __forceinline__ void
    multiply(int rows, int columns, float (&sums)[DOWN][ACROSS][4]) const {
#pragma unroll
        for (int j = 0; j < ACROSS / 2; j++) {
            if (j >= columns) break;
#pragma unroll
            for (int i = 0; i < DOWN; i++) {
                if (i >= rows) break;
                fragments::multiply<T>(sums[i][2 * j], left[i], right[j][0], right[j][1]);
                fragments::multiply<T>(sums[i][2 * j + 1], left[i], right[j][2], right[j][3]);
            }
        }
    }
};

// The elements of a step are read before the products of the one before it begin, or a warp would
// wait for each of both; but for parts of two instructions down and more, which have products
// enough, and no registers.
template <class T, int DOWN, int ACROSS>
__device__ __forceinline__ void
multiply_stage(uint32_t stage_a, uint32_t stage_b, int steps, const SmallFragments &a,
               const SmallFragments &b, int rows, int columns, float (&sums)[DOWN][ACROSS][4]) {
    if (rows <= 0 || columns <= 0) return;
    constexpr int ahead = DOWN < 2;
    SmallStep<DOWN, ACROSS> part[1 + ahead];
    if (ahead) part[0].read(stage_a, stage_b, 0, a, b, rows, columns);
#pragma unroll
    for (int step = 0; step < small_depth / 16; step++) {
        if (step >= steps) break;
        const int next = step + ahead;
        if (next < steps)
            part[next % (1 + ahead)].read(stage_a, stage_b, next, a, b, rows, columns);
        part[step % (1 + ahead)].template multiply<T>(rows, columns, sums);
    }
}

// ---- Stores ------------------------------------------------------------------------------------

// Where a tile goes that nothing is to be done to but storing: its first element, the distance of
// rows, and how many rows and columns of it there are.
template <class T> struct SmallTarget {
    T *first;
    int64_t stride;
    int rows, columns;
};

// A warp's part, from `row` and `column` of the tile on, from registers, where c's rows allow
// pairs. rows, columns: how many of 16 of the warp's are there at all.
template <class T, int DOWN, int ACROSS>
__device__ __forceinline__ void store_small_sums(const SmallTarget<T> &c, int row, int column,
                                                 int rows, int columns,
                                                 const float (&sums)[DOWN][ACROSS][4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    row += lane / 4, column += lane % 4 * 2;
    T *const first = c.first + row * c.stride + column;
#pragma unroll
    for (int i = 0; i < DOWN * 2; i++) {
        if (i / 2 >= rows || row + i * 8 >= c.rows) break;
        T *const line = first + i * 8 * c.stride;
#pragma unroll
        for (int j = 0; j < ACROSS; j++) {
            if (j / 2 >= columns) break;
            const float *const pair = &sums[i / 2][j][i % 2 * 2];
            const int left = c.columns - column - j * 8;
            const Vector<T, 2> both = {{narrow<T>(pair[0]), narrow<T>(pair[1])}};
            if (left > 1 && sizeof(T) == 2)
                store_at_once(line + j * 8, both);
            else if (left > 0)
                line[j * 8] = both.element[0];
            if (left > 1 && sizeof(T) > 2) line[j * 8 + 1] = both.element[1];
        }
    }
}

// The same by way of shared memory, as whole granules of 16 bytes wherever c's rows begin. What is
// in front of a row's first granule and behind its last is stored by elements. Of a tile of COLUMNS
// columns, by THREADS threads.
template <class T, int COLUMNS, int THREADS, int DOWN, int ACROSS>
__device__ __forceinline__ void store_small_rows(const SmallTarget<T> &c, unsigned char *shared,
                                                 int row, int column, int rows, int columns,
                                                 const float (&sums)[DOWN][ACROSS][4]) {
    constexpr int pitch = COLUMNS * 2 + 16, lanes = COLUMNS / 8;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    __syncthreads(); // the last stage has been read
    unsigned char *const own = shared + (row + lane / 4) * pitch + (column + lane % 4 * 2) * 2;
#pragma unroll
    for (int i = 0; i < DOWN * 2; i++) {
        if (i / 2 >= rows) break;
#pragma unroll
        for (int j = 0; j < ACROSS; j++)
            if (j / 2 < columns)
                *reinterpret_cast<Vector<T, 2> *>(own + i * 8 * pitch + j * 16) = {
                    {narrow<T>(sums[i / 2][j][i % 2 * 2]),
                     narrow<T>(sums[i / 2][j][i % 2 * 2 + 1])}};
    }
    __syncthreads();
    // How many elements of a row are in front of its first granule.
    const auto head_of = [](const T *line) {
        return static_cast<int>((16 - reinterpret_cast<uintptr_t>(line) % 16) % 16) / 2;
    };
    const int granule = thread % lanes * 8;
    for (int line = thread / lanes; line < c.rows; line += THREADS / lanes) {
        T *const to = c.first + line * c.stride;
        const int head = head_of(to), place = head + granule;
        if (place + 8 > c.columns) continue;
        alignas(16) uint32_t granules[8], eight[4];
        const unsigned char *const from = shared + line * pitch + granule * 2;
        copy_16_bytes(granules, from);
        copy_16_bytes(granules + 4, from + 16);
        shift_granules(granules, head * 2, eight);
        copy_16_bytes(to + place, eight);
    }
    const int edge = thread % 16;
    for (int line = thread / 16; line < c.rows; line += THREADS / 16) {
        T *const to = c.first + line * c.stride;
        const int head = min(head_of(to), c.columns), tail = head + (c.columns - head) / 8 * 8;
        const int place = edge < 8 ? edge : tail + edge - 8;
        if (place < (edge < 8 ? head : c.columns))
            to[place] = *reinterpret_cast<const T *>(shared + line * pitch + place * 2);
    }
}

} // namespace

} // namespace pvg::matmul
