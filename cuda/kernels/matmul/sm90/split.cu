// The passes that split float32 operands into 16-bit pieces; split.cuh says what they give.
//
// All are bound by memory. A thread loads eight neighbours, splits them in registers and stores 16
// bytes in each plane. A transposing pass takes tiles of 64 x 64 through shared memory.
//
// fp16 needs the largest magnitude of a line before it can scale it. Lines that are stored side by
// side: the rows of a have a block each, which finds the maximum and splits the row in one pass
// (columns of a turned b: only the maximum). Lines that run across the stored rows: blocks find the
// maxima of a few hundred stored rows. A second kernel puts these together and splits.
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/sm90/pieces.cuh"
#include "runtime/launch.cuh"

namespace pvg::matmul {

namespace {

constexpr int threads = split_threads;
constexpr int lines_of_block = 256; // whose maxima a block finds, or that it scales
constexpr int rows_of_block = 32;   // that it scales

__host__ __device__ inline int part_count(const SplitOperand &o) {
    return line_part_count(o.lines_are_rows ? o.columns : o.rows, o.lines_are_rows != o.turned);
}

#if PVG_TARGET_IS_90A

constexpr int tile = split_tile; // its side

// ---- Maxima -------------------------------------------------------------------------------------

__device__ __forceinline__ uint32_t magnitude(float x) { return __float_as_uint(x) & 0x7FFFFFFFu; }

template <bool LARGEST> __device__ __forceinline__ uint32_t better(uint32_t a, uint32_t b) {
    return LARGEST ? max(a, b) : min(a, b);
}
// The largest (or smallest) of a block's values, for all its threads.
template <bool LARGEST>
__device__ __forceinline__ uint32_t best_of_block(uint32_t value, uint32_t (&of_warp)[8]) {
    value = LARGEST ? __reduce_max_sync(~0u, value) : __reduce_min_sync(~0u, value);
    __syncthreads(); // the block may still read the values of the time before
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warp[0];
#pragma unroll
    for (int i = 1; i < threads / 32; i++) value = better<LARGEST>(value, of_warp[i]);
    return value;
}

// 2^(s/2) for a line with this largest magnitude; times 2^s it is in [2^13, 2^15). s is even, so
// that half of it is whole, and its power of two never overflows. NaN for what is not finite.
__device__ __forceinline__ float root_of_scale(uint32_t largest) {
    if (largest >= 0x7F800000u) return __uint_as_float(0x7FC00000u);
    if (largest == 0) return 1.0f;
    const int exponent = largest >= 0x00800000u ? static_cast<int>(largest >> 23) - 127
                                                : -118 - __clz(static_cast<int>(largest));
    const int half = (14 - exponent) >> 1; // rounds down
    return __int_as_float((127 + half) << 23);
}
// The exact inverse of a power of two (or NaN).
__device__ __forceinline__ float inverse(float root) {
    return root == root ? __int_as_float((254 << 23) - __float_as_int(root)) : root;
}

// Sets the flags to zero. The whole grid may take part.
__device__ __forceinline__ void clear(unsigned *flags, int count) {
    for (int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x; i < count;
         i += int64_t(gridDim.x) * threads)
        flags[i] = 0;
}

// ---- Tiles that are turned ----------------------------------------------------------------------

// In: 64 stored rows of 64, columns of the planes. Zeros outside of the matrix.
__device__ __forceinline__ void load_turned(const SplitOperand &o, int row, int column,
                                            float (&shared)[tile][tile + 1]) {
    const int at = static_cast<int>(threadIdx.x) % 16 * 4, count = o.rows - row - at;
    const int first = static_cast<int>(threadIdx.x) / 16;
    float x[4][4]; // all on their way before the first is needed
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int line = first + i * 16;
        const float *from = o.data + (column + line) * o.ld + row + at;
        const int there = column + line < o.columns ? count : 0;
        if (there >= 4 && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
            const float4 four = *reinterpret_cast<const float4 *>(from);
            x[i][0] = four.x, x[i][1] = four.y, x[i][2] = four.z, x[i][3] = four.w;
        } else {
#pragma unroll
            for (int e = 0; e < 4; e++) x[i][e] = e < there ? from[e] : 0.0f;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) shared[first + i * 16][at + e] = x[i][e];
}

// Out: `use(x, row, column)` for eight neighbours of the planes, with the tile's row and column.
template <class Use>
__device__ __forceinline__ void walk_turned(const float (&shared)[tile][tile + 1], const Use &use) {
    const int column = static_cast<int>(threadIdx.x) % 8 * pack;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = static_cast<int>(threadIdx.x) / 8 + i * 32;
        float x[pack];
#pragma unroll
        for (int e = 0; e < pack; e++) x[e] = shared[column + e][row];
        use(x, row, column);
    }
}

// ---- bf16 ---------------------------------------------------------------------------------------

// smallest is kept less one, so that a zero becomes the largest number.
__device__ __forceinline__ void widen_range(const float (&x)[pack], Range *range) {
#pragma unroll
    for (int e = 0; e < pack; e++) {
        range->largest = max(range->largest, magnitude(x[e]));
        range->smallest = min(range->smallest, magnitude(x[e]) - 1);
    }
}

__device__ __forceinline__ Range split_straight(const SplitOperand &o, unsigned block,
                                                unsigned blocks) {
    Range range = {0, ~0u};
    // Packs are numbered along the rows; the steps from one of the thread's to its next.
    const int64_t across = o.pitch / pack, first = int64_t(block) * threads + threadIdx.x;
    const int64_t step = int64_t(blocks) * threads, rows_down = step / across;
    const int packs_on = static_cast<int>(step - rows_down * across);
    int64_t row = first / across;
    int at = static_cast<int>(first - row * across);
    while (row < o.rows) {
        float x[pack];
        const int64_t column = int64_t(at) * pack, count = o.columns - column;
        load_pack(o.data + row * o.ld + column, static_cast<int>(min(count, int64_t(pack))), x);
        widen_range(x, &range);
        Bf16Pieces::store(x, o.planes + row * o.pitch + column, o.rows * o.pitch);
        row += rows_down, at += packs_on;
        if (at >= across) at -= static_cast<int>(across), row++;
    }
    return range;
}

__device__ __forceinline__ Range split_turned(const SplitOperand &o, unsigned block,
                                              unsigned blocks, float (&shared)[tile][tile + 1]) {
    Range range = {0, ~0u};
    const int64_t across = o.pitch / tile, down = (int64_t(o.rows) + tile - 1) / tile;
    for (int64_t t = block; t < across * down; t += blocks) {
        const int row = static_cast<int>(t / across) * tile;
        const int column = static_cast<int>(t % across) * tile;
        load_turned(o, row, column, shared);
        __syncthreads();
        walk_turned(shared, [&](const float (&x)[pack], int r, int c) {
            if (r >= o.rows - row) return;
            widen_range(x, &range);
            Bf16Pieces::store(x, o.planes + (int64_t(row) + r) * o.pitch + column + c,
                              o.rows * o.pitch);
        });
        __syncthreads();
    }
    return range;
}

// ---- fp16 ---------------------------------------------------------------------------------------

__device__ __forceinline__ void scale(float (&x)[pack], const float (&root)[pack]) {
#pragma unroll
    for (int e = 0; e < pack; e++) x[e] = x[e] * root[e] * root[e];
}
__device__ __forceinline__ void split_scaled(float (&x)[pack], float root, uint16_t *to,
                                             int64_t plane) {
    float roots[pack];
#pragma unroll
    for (int e = 0; e < pack; e++) roots[e] = root;
    scale(x, roots);
    Fp16Pieces::store(x, to, plane);
}

// One stored row that is a line: its maximum; and if it is a row of the planes too, its pieces. The
// first `kept` packs of a thread stay in registers meanwhile, the rest is read twice.
__device__ __forceinline__ void measure_row(const SplitOperand &o, int line,
                                            uint32_t (&of_warp)[8]) {
    constexpr int kept = 4, stride = threads * pack;
    const int length = o.turned ? o.rows : o.columns;
    const int begin = static_cast<int>(threadIdx.x) * pack;
    const float *from = o.data + line * o.ld;
    float x[kept][pack], y[pack];
    uint32_t largest = 0;
#pragma unroll
    for (int j = 0; j < kept; j++) {
        const int64_t at = begin + j * stride;
        load_pack(from + at, static_cast<int>(max(int64_t(0), length - at)), x[j]);
#pragma unroll
        for (int e = 0; e < pack; e++) largest = max(largest, magnitude(x[j][e]));
    }
    for (int64_t at = begin + kept * stride; at < length; at += stride) {
        load_pack(from + at, static_cast<int>(length - at), y);
#pragma unroll
        for (int e = 0; e < pack; e++) largest = max(largest, magnitude(y[e]));
    }
    largest = best_of_block<true>(largest, of_warp);
    if (o.turned) {
        if (threadIdx.x == 0) o.maxima[line] = largest;
        return;
    }
    const float root = root_of_scale(largest);
    if (threadIdx.x == 0) o.roots[line] = inverse(root);
    uint16_t *to = o.planes + line * o.pitch;
#pragma unroll
    for (int j = 0; j < kept; j++)
        if (begin + j * stride < o.pitch)
            split_scaled(x[j], root, to + begin + j * stride, o.rows * o.pitch);
    for (int64_t at = begin + kept * stride; at < o.pitch; at += stride) {
        load_pack(from + at, static_cast<int>(max(int64_t(0), length - at)), y);
        split_scaled(y, root, to + at, o.rows * o.pitch);
    }
}

// Lines that run across the stored rows: the maxima of 256 of them over one part.
__device__ __forceinline__ void measure_part(const SplitOperand &o, int block) {
    const int lines = line_count(o), across = (lines + lines_of_block - 1) / lines_of_block;
    const int length = o.lines_are_rows ? o.columns : o.rows, size = line_part_length(length);
    const int part = block / across;
    const int64_t line = int64_t(block % across) * lines_of_block + threadIdx.x;
    if (line >= lines) return;
    const int64_t begin = int64_t(part) * size, end = min(begin + size, int64_t(length));
    uint32_t largest = 0;
#pragma unroll 16
    for (int64_t i = begin; i < end; i++)
        largest = max(largest, magnitude(o.data[i * o.ld + line]));
    o.maxima[part * int64_t(lines) + line] = largest;
}

// The root of a line's scale from the maxima of its parts; the inverse is kept for the product.
__device__ __forceinline__ float root_of_line(const SplitOperand &o, int64_t line, bool keep) {
    const int lines = line_count(o), parts = part_count(o);
    if (line >= lines) return 1.0f;
    uint32_t largest = 0;
    for (int part = 0; part < parts; part++)
        largest = max(largest, o.maxima[part * int64_t(lines) + line]);
    const float root = root_of_scale(largest);
    if (keep) o.roots[line] = inverse(root);
    return root;
}

// Lines are columns, as they are stored: 32 rows of 256 columns.
__device__ __forceinline__ void scale_straight(const SplitOperand &o, int block,
                                               float (&roots)[lines_of_block]) {
    const int across = static_cast<int>((o.pitch + lines_of_block - 1) / lines_of_block);
    const int64_t column = int64_t(block % across) * lines_of_block;
    const int first = block / across * rows_of_block;
    roots[threadIdx.x] = root_of_line(o, column + threadIdx.x, first == 0);
    __syncthreads();
    const int at = static_cast<int>(threadIdx.x) % 32 * pack;
    if (column + at >= o.pitch) return;
    const int64_t count = max(int64_t(0), o.columns - column - at);
    float root[pack];
#pragma unroll
    for (int e = 0; e < pack; e++) root[e] = roots[at + e];
#pragma unroll
    for (int i = 0; i < rows_of_block; i += threads / 32) {
        const int64_t row = first + i + static_cast<int>(threadIdx.x) / 32;
        if (row >= o.rows) return;
        float x[pack];
        load_pack(o.data + row * o.ld + column + at, static_cast<int>(min(count, int64_t(pack))),
                  x);
        scale(x, root);
        Fp16Pieces::store(x, o.planes + row * o.pitch + column + at, o.rows * o.pitch);
    }
}

__device__ __forceinline__ void scale_turned(const SplitOperand &o, int block,
                                             float (&roots)[lines_of_block],
                                             float (&shared)[tile][tile + 1]) {
    const int across = static_cast<int>(o.pitch / tile);
    const int row = block / across * tile, column = block % across * tile;
    if (threadIdx.x < tile) {
        const int64_t line = int64_t(o.lines_are_rows ? row : column) + threadIdx.x;
        roots[threadIdx.x] = root_of_line(o, line, (o.lines_are_rows ? column : row) == 0);
    }
    load_turned(o, row, column, shared);
    __syncthreads();
    walk_turned(shared, [&](const float (&from)[pack], int r, int c) {
        if (r >= o.rows - row) return;
        float x[pack], root[pack];
#pragma unroll
        for (int e = 0; e < pack; e++) {
            x[e] = from[e];
            root[e] = roots[o.lines_are_rows ? r : c + e];
        }
        scale(x, root);
        Fp16Pieces::store(x, o.planes + (int64_t(row) + r) * o.pitch + column + c,
                          o.rows * o.pitch);
    });
}

#endif

// ---- Kernels ------------------------------------------------------------------------------------

// An operand's part of a grid: so many blocks for each of its items.
struct Share {
    SplitOperand operand;
    unsigned blocks;

    __host__ __device__ unsigned all() const { return blocks * operand.items; }
};

// Both operands in one launch.
struct SplitPair {
    Share a, b;
    unsigned *flags;
    int flag_count;
};

#if PVG_TARGET_IS_90A

// What a block of a share has to do: for one item, as its block of this number.
template <int PLANES> struct Task {
    SplitOperand operand;
    unsigned block;

    __device__ __forceinline__ Task(const Share &share, unsigned block_of_share)
        : operand(share.operand), block(block_of_share) {
        if (operand.items == 1) return;
        SplitOperand &o = operand;
        const int64_t item = block / share.blocks;
        block -= static_cast<unsigned>(item) * share.blocks;
        o.data += item * o.item;
        o.planes += item * PLANES * o.rows * o.pitch;
        if constexpr (PLANES == bf16_planes) {
            o.ranges += item * share.blocks;
        } else {
            o.maxima += item * part_count(o) * line_count(o);
            o.roots += item * line_count(o);
        }
    }
};

#endif

// Elsewhere it is empty, and a card may not hold so many threads.
__global__ void __launch_bounds__(threads, PVG_TARGET_IS_90A ? 6 : 1)
    split_bf16_kernel(const __grid_constant__ SplitPair pair) {
#if PVG_TARGET_IS_90A
    __shared__ float shared[tile][tile + 1];
    __shared__ uint32_t of_warp[8];
    let_next_kernel_start();
    wait_for_previous_kernel();
    clear(pair.flags, pair.flag_count);
    const bool is_b = blockIdx.x >= pair.a.all();
    const Share &share = is_b ? pair.b : pair.a;
    const Task<bf16_planes> task(share, is_b ? blockIdx.x - pair.a.all() : blockIdx.x);
    const SplitOperand &o = task.operand;
    const Range range = o.turned ? split_turned(o, task.block, share.blocks, shared)
                                 : split_straight(o, task.block, share.blocks);
    const uint32_t largest = best_of_block<true>(range.largest, of_warp);
    const uint32_t smallest = best_of_block<false>(range.smallest, of_warp);
    if (threadIdx.x == 0) o.ranges[task.block] = {largest, smallest == ~0u ? ~0u : smallest + 1};
#endif
}

__global__ void __launch_bounds__(threads)
    measure_lines_kernel(const __grid_constant__ SplitPair pair) {
#if PVG_TARGET_IS_90A
    __shared__ uint32_t of_warp[8];
    let_next_kernel_start();
    wait_for_previous_kernel();
    clear(pair.flags, pair.flag_count);
    // b first: its maxima are waited for, while rows of a are done here.
    const bool is_b = blockIdx.x < pair.b.all();
    const Task<fp16_planes> task(is_b ? pair.b : pair.a,
                                 is_b ? blockIdx.x : blockIdx.x - pair.b.all());
    const SplitOperand &o = task.operand;
    if (o.lines_are_rows != o.turned)
        measure_row(o, static_cast<int>(task.block), of_warp);
    else
        measure_part(o, static_cast<int>(task.block));
#endif
}

__global__ void __launch_bounds__(threads)
    split_fp16_kernel(const __grid_constant__ SplitPair pair) {
#if PVG_TARGET_IS_90A
    __shared__ float shared[tile][tile + 1], roots[lines_of_block];
    let_next_kernel_start();
    wait_for_previous_kernel();
    const bool is_b = blockIdx.x >= pair.a.all();
    const Task<fp16_planes> task(is_b ? pair.b : pair.a,
                                 is_b ? blockIdx.x - pair.a.all() : blockIdx.x);
    const SplitOperand &o = task.operand;
    if (o.turned)
        scale_turned(o, static_cast<int>(task.block), roots, shared);
    else
        scale_straight(o, static_cast<int>(task.block), roots);
#endif
}

// ---- Grids --------------------------------------------------------------------------------------

int64_t measuring_blocks(const SplitOperand &o) {
    if (o.lines_are_rows != o.turned) return line_count(o);
    return int64_t(part_count(o)) *
           ((int64_t(line_count(o)) + lines_of_block - 1) / lines_of_block);
}

// Rows of a that are stored as rows were split when they were measured.
int64_t scaling_blocks(const SplitOperand &o) {
    if (o.turned) return turned_tiles(shape_of(o));
    if (o.lines_are_rows) return 0;
    return (o.pitch + lines_of_block - 1) / lines_of_block *
           ((int64_t(o.rows) + rows_of_block - 1) / rows_of_block);
}

int64_t ranging_blocks(const SplitOperand &o) { return range_count(shape_of(o)); }

template <class Blocks> Share share_of(const SplitOperand *operand, const Blocks &blocks) {
    return operand ? Share{*operand, blocks_for(blocks(*operand), 1)} : Share();
}

} // namespace

int split_bf16(Call &call, const SplitOperand *a, const SplitOperand *b, unsigned *flags,
               int flag_count) {
    const SplitPair pair = {share_of(a, ranging_blocks), share_of(b, ranging_blocks), flags,
                            flag_count};
    PVG_LAUNCH_WITH((LaunchExtras{1, true}), split_bf16_kernel, pair.a.all() + pair.b.all(),
                    threads, 0, call.stream, pair);
    return PVG_OK;
}

int split_fp16(Call &call, const SplitOperand *a, const SplitOperand *b, unsigned *flags,
               int flag_count) {
    const LaunchExtras early = {1, true};
    SplitPair pair = {share_of(a, measuring_blocks), share_of(b, measuring_blocks), flags,
                      flag_count};
    PVG_LAUNCH_WITH(early, measure_lines_kernel, pair.a.all() + pair.b.all(), threads, 0,
                    call.stream, pair);
    pair.a = share_of(a, scaling_blocks), pair.b = share_of(b, scaling_blocks);
    PVG_LAUNCH_WITH(early, split_fp16_kernel, pair.a.all() + pair.b.all(), threads, 0, call.stream,
                    pair);
    return PVG_OK;
}

} // namespace pvg::matmul
