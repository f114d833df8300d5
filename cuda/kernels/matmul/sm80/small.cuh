// Products of float16 and bfloat16 in small tiles, by the tensor-core instructions of a warp,
// compute capability 8.0 and later: the kernel that small.cu launches. Sums are in float32.
//
// What TMA or a long pipeline would wait for is little here: batches of small matrices, and thin
// ones that are read once. So a block of four warps is small, and three or four of a multiprocessor
// read while others multiply. It walks along k in stages of 64, of which the next ones are on their
// way while one is multiplied. Operands lie anywhere: 16, 8 or 4 bytes at a time come by cp.async,
// and what begins at odd elements comes through registers, an element a thread.
//
// A tile is 16, 32 or 64 x 64. Its rows are those of the operand called `rows`, a, or where c has
// fewer columns than rows, and at most 32, b: then the tile is one of c transposed.
#pragma once
#include "kernels/fragments.cuh"
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/sm80/sums.cuh"
#include "kernels/matmul/tile_order.cuh"

namespace pvg::matmul {

namespace {

constexpr int small_warps = small_threads / 32;
constexpr int small_sums_pitch = small_side + 8; // floats
constexpr int most_small_splits = 8;             // blocks of a cluster

// An operand: m rows of a, or n columns of b, as they are stored.
struct SmallOperand {
    const void *data;
    int64_t stride, item, outer; // from row to row, item to item, and in a batch's other dimension
    int side, width;             // width: elements that may be loaded at once, 8, 4, 2 or 1
    bool along_k;
};

struct SmallProduct {
    SmallOperand rows, columns;
    Destination c;
    int k, last_k, splits; // last_k: of the last item, which may be a shorter stretch
    int64_t last_item, c_outer;
    int inner; // items of a batch's inner dimension, or 0
    int tiles_down, tiles_across;
    bool transposed; // tiles are those of c transposed
    bool packed;     // four of a row of c may be stored at once
    bool direct;     // sums go to c from registers
    bool pairs;      // two of a row of c may be stored at once
};

struct SmallPlace {
    int64_t item, outer;
    int row, column, split;     // of the tile's first element
    int k, first_stage, stages; // of k: of the item, and of the split
};
template <int ROWS>
__device__ __forceinline__ SmallPlace place_of_small_tile(const SmallProduct &p) {
    SmallPlace at;
    unsigned tile = blockIdx.x;
    at.split = 0;
    if (p.splits > 1) at.split = static_cast<int>(tile % p.splits), tile /= p.splits;
    const unsigned tiles = static_cast<unsigned>(p.tiles_down) * p.tiles_across;
    at.item = tile / tiles, at.outer = 0;
    place_tile(static_cast<int>(tile % tiles), p.tiles_down, p.tiles_across, &at.row, &at.column);
    at.row *= ROWS, at.column *= small_side;
    at.k = at.item == p.last_item ? p.last_k : p.k;
    if (p.inner) {
        const unsigned item = static_cast<unsigned>(at.item),
                       inner = static_cast<unsigned>(p.inner);
        at.outer = item / inner, at.item = item % inner;
    }
    at.first_stage = 0, at.stages = (at.k - 1) / small_depth + 1;
    if (p.splits > 1) { // stages are less than 2^28: splits are no more than 8
        const unsigned all = static_cast<unsigned>(at.stages);
        at.first_stage = static_cast<int>(all * at.split / p.splits);
        at.stages = static_cast<int>(all * (at.split + 1) / p.splits) - at.first_stage;
    }
    return at;
}

// ---- From memory to shared memory ---------------------------------------------------------------

// A part of an operand that goes to shared memory: `lines` stored lines, `length` of each, and
// zeros around them up to multiples of 16, which is what an instruction multiplies.
struct SmallPart {
    const uint16_t *from;
    int64_t stride;
    int lines, length, all_lines, all_length;
    int pitch; // bytes, in shared memory
};

__device__ __forceinline__ int whole_steps(int count) { return (count + 15) / 16 * 16; }

// One by one, through registers: a warp takes every fourth line, and all its loads are on their way
// at once.
template <int LINES> __device__ __forceinline__ void load_singles(unsigned char *to,
                                                                  const SmallPart &x) {
    constexpr int count = LINES / small_warps;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    uint16_t first[count], second[count];
    const uint16_t *from = x.from + warp * x.stride + lane;
#pragma unroll
    for (int i = 0; i < count; i++) {
        const bool exists = warp + i * small_warps < x.lines;
        first[i] = exists && lane < x.length ? from[0] : uint16_t(0);
        second[i] = exists && lane + 32 < x.length ? from[32] : uint16_t(0);
        from += small_warps * x.stride;
    }
    to += warp * x.pitch + lane * 2;
#pragma unroll
    for (int i = 0; i < count; i++) {
        unsigned char *const line = to + i * small_warps * x.pitch;
        if (warp + i * small_warps >= x.all_lines) break;
        if (lane < x.all_length) *reinterpret_cast<uint16_t *>(line) = first[i];
        if (lane + 32 < x.all_length) *reinterpret_cast<uint16_t *>(line + 64) = second[i];
    }
}

// SIDE rows (or columns) of an operand, from `first` on. What the operand says stays where the
// kernel's parameters are.
template <int SIDE> struct SmallLoader {
    const SmallOperand &operand;
    const uint16_t *from; // the thread's first pack of the next stage; of singles the block's
    int left;             // of the side
    // Of packs: the thread's first line and its place there, and lines from one pack to the next.
    int line, at, down;

    __device__ __forceinline__ SmallLoader(const SmallOperand &x, const SmallPlace &at, int first,
                                           int first_k)
        : operand(x), left(min(SIDE, x.side - first)) {
        from = static_cast<const uint16_t *>(x.data) + at.item * x.item + at.outer * x.outer +
               (x.along_k ? first * x.stride + first_k : first_k * x.stride + first);
        // Packs of a line, as a power of two.
        const int side = x.along_k || SIDE == 64 ? 6 : SIDE == 32 ? 5 : 4;
        const int across = side - (x.width == 8 ? 3 : x.width / 2);
        const int thread = static_cast<int>(threadIdx.x);
        line = thread >> across, down = small_threads >> across;
        this->at = (thread & ((1 << across) - 1)) * x.width;
        if (x.width > 1) from += line * x.stride + this->at;
    }
    __device__ __forceinline__ int pitch() const {
        return 2 * (operand.along_k ? small_depth : SIDE) + 16;
    }

    // WIDTH elements at a time. Copies that may end within a pack are several times as many
    // instructions as those that do not.
    template <int WIDTH>
    __device__ __forceinline__ void load_packs(uint32_t to, const SmallPart &x) const {
        constexpr int packs = SIDE * small_depth / WIDTH / small_threads;
        if (at >= x.all_length) return;
        const uint16_t *pack = from;
        const int64_t step = down * x.stride;
        const uint32_t to_step = static_cast<uint32_t>(down * x.pitch);
        to += static_cast<uint32_t>(line * x.pitch + at * 2);
        int here = line;
        if (x.length == x.all_length) {
#pragma unroll 4
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
    // The next stage, of which `deep` of k are in the matrix.
    __device__ __forceinline__ void load(unsigned char *to, int deep) {
        const bool along_k = operand.along_k;
        SmallPart x;
        x.from = from, x.stride = operand.stride, x.pitch = pitch();
        x.lines = along_k ? left : deep, x.length = along_k ? deep : left;
        x.all_lines = whole_steps(x.lines), x.all_length = whole_steps(x.length);
        if (operand.width == 8) {
            load_packs<8>(shared_address(to), x);
        } else if (operand.width == 4) {
            load_packs<4>(shared_address(to), x);
        } else if (operand.width == 2) {
            load_packs<2>(shared_address(to), x);
        } else if (SIDE < small_depth && along_k) {
            load_singles<SIDE>(to, x);
        } else {
            load_singles<small_depth>(to, x);
        }
        from += along_k ? small_depth : small_depth * operand.stride;
    }
};

// ---- Products -----------------------------------------------------------------------------------

// A warp's part of the tile: `down` x 16 rows, `across` x 8 columns.
template <int ROWS> struct SmallTile {
    static constexpr int rows = ROWS;
    static constexpr int warps_down = ROWS == 64 ? 2 : 1, warps_across = small_warps / warps_down;
    static constexpr int down = ROWS / warps_down / 16, across = small_side / warps_across / 8;
    static constexpr int bytes_a = small_part_bytes(ROWS);
    static constexpr int stage_bytes = bytes_a + small_part_bytes(small_side);
};
template <int ROWS> using SmallSums = float[SmallTile<ROWS>::down][SmallTile<ROWS>::across][4];

// Where the lane's address for ldmatrix begins, and how far it is to the next 16 of k and the next
// 16 rows (columns), in bytes.
struct SmallFragments {
    uint32_t first, next_k, next;
    bool along_k;

    // A left operand: two matrices of rows, and behind them in k two more. A right one: two that
    // follow in k, and two more columns.
    __device__ __forceinline__ SmallFragments(bool left, bool along_k, int from, int pitch)
        : next_k(along_k ? 32 : 16 * pitch), next(along_k ? 16 * pitch : 32), along_k(along_k) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
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

// What a warp multiplies at a time: 16 of k.
template <int ROWS> struct SmallStep {
    using Tile = SmallTile<ROWS>;
    uint32_t left[Tile::down][4], right[Tile::across / 2][4];

    // rows, columns: how many of the warp's 16 are there at all.
    __device__ __forceinline__ void read(uint32_t stage_a, uint32_t stage_b, int step,
                                         const SmallFragments &a, const SmallFragments &b, int rows,
                                         int columns) {
#pragma unroll
        for (int i = 0; i < Tile::down; i++)
            if (i < rows) a.read(stage_a, step, i, left[i]);
#pragma unroll
        for (int j = 0; j < Tile::across / 2; j++)
            if (j < columns) b.read(stage_b, step, j, right[j]);
    }
    template <class T>
    __device__ __forceinline__ void multiply(int rows, int columns, SmallSums<ROWS> &sums) const {
#pragma unroll
        for (int j = 0; j < Tile::across / 2; j++) {
            if (j >= columns) break;
#pragma unroll
            for (int i = 0; i < Tile::down; i++) {
                if (i >= rows) break;
                fragments::multiply<T>(sums[i][2 * j], left[i], right[j][0], right[j][1]);
                fragments::multiply<T>(sums[i][2 * j + 1], left[i], right[j][2], right[j][3]);
            }
        }
    }
};

// The elements of a step are read before the products of the one before it begin, or a warp would
// wait for each of both; but for tiles of 64 rows, which have products enough, and no registers.
template <class T, int ROWS>
__device__ __forceinline__ void multiply_stage(uint32_t stage_a, uint32_t stage_b, int steps,
                                               const SmallFragments &a, const SmallFragments &b,
                                               int rows, int columns, SmallSums<ROWS> &sums) {
    if (rows <= 0 || columns <= 0) return;
    constexpr int ahead = ROWS < 64;
    SmallStep<ROWS> part[1 + ahead];
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

template <class T, int ROWS>
__device__ __forceinline__ void multiply_small(const SmallProduct &p, const SmallPlace &at,
                                               unsigned char *shared, int row, int column,
                                               SmallSums<ROWS> &sums) {
    constexpr int bytes_a = SmallTile<ROWS>::bytes_a, bytes = SmallTile<ROWS>::stage_bytes;
    const int first_k = at.first_stage * small_depth;
    SmallLoader<ROWS> a(p.rows, at, at.row, first_k);
    SmallLoader<small_side> b(p.columns, at, at.column, first_k);
    const SmallFragments part_a(true, p.rows.along_k, row, a.pitch());
    const SmallFragments part_b(false, p.columns.along_k, column, b.pitch());
    const int rows = (a.left - row + 15) / 16, columns = (b.left - column + 15) / 16;
    int left = at.k - first_k;
    const auto load = [&](int stage, int terms) {
        unsigned char *const to = shared + stage % small_stages * bytes;
        a.load(to, terms);
        b.load(to + bytes_a, terms);
    };
    // Some more rounds than there are stages: there is one place in the code that loads.
    int loading = left; // of k, from the stage on that is loaded next
#pragma unroll 1
    for (int stage = 1 - small_stages; stage < at.stages; stage++) {
        if (stage >= 0) {
            // This stage has come, for every thread; and every thread has read the one before, in
            // whose place the next is loaded.
            wait_for_copies<small_stages - 2>();
            __syncthreads();
        }
        const int next = stage + small_stages - 1;
        if (next < at.stages) {
            load(next, min(small_depth, loading));
            loading -= small_depth;
        }
        commit_copies();
        if (stage < 0) continue;
        const uint32_t from = shared_address(shared) + stage % small_stages * bytes;
        multiply_stage<T, ROWS>(from, from + bytes_a, whole_steps(min(small_depth, left)) / 16,
                                part_a, part_b, rows, columns, sums);
        left -= small_depth;
    }
}

// ---- The epilogue -------------------------------------------------------------------------------

// One block and nothing to do but store: from registers, pairs if c's rows allow them.
template <class T, int ROWS>
__device__ __forceinline__ void store_small_sums(const SmallProduct &p, const SmallPlace &at,
                                                 int row, int column, const SmallSums<ROWS> &sums) {
    using Tile = SmallTile<ROWS>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    row += at.row + lane / 4, column += at.column + lane % 4 * 2;
    const int rows = static_cast<int>(p.c.rows), columns = static_cast<int>(p.c.columns);
    T *const first = static_cast<T *>(p.c.data) + at.item * p.c.item_stride + at.outer * p.c_outer +
                     row * p.c.row_stride + column;
#pragma unroll
    for (int i = 0; i < Tile::down * 2; i++) {
        if (row + i * 8 >= rows) break;
        T *const line = first + i * 8 * p.c.row_stride;
#pragma unroll
        for (int j = 0; j < Tile::across; j++) {
            const float *const pair = &sums[i / 2][j][i % 2 * 2];
            const int left = columns - column - j * 8;
            const Vector<T, 2> both = {{narrow<T>(pair[0]), narrow<T>(pair[1])}};
            if (p.pairs && left > 1) {
                store_at_once(line + j * 8, both);
            } else {
                if (left > 0) line[j * 8] = both.element[0];
                if (left > 1) line[j * 8 + 1] = both.element[1];
            }
        }
    }
}

// Four sums, `step` apart, of the blocks of the cluster, which all are asked before the first one
// answers; added up in their order.
__device__ __forceinline__ void add_splits(const float *from, int step, int splits,
                                           float (&sums)[4]) {
    float parts[most_small_splits][4];
#pragma unroll
    for (int split = 0; split < most_small_splits; split++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (split < splits)
                parts[split][e] =
                    clusters::read_of_block(from + e * step, static_cast<unsigned>(split));
#pragma unroll
    for (int e = 0; e < 4; e++) {
        sums[e] = 0;
#pragma unroll
        for (int split = 0; split < most_small_splits; split++)
            if (split < splits) sums[e] += parts[split][e];
    }
}

// The block's share of the finished tile: the sums of all blocks of the cluster, bias and
// activation, in c's type. A thread has four of a row of c: neighbours, or if rows begin anywhere,
// a quarter of the tile apart, so that neighbouring lanes fill sectors.
template <class T, int ROWS, class To>
__device__ __forceinline__ void finish_small_tile(const SmallProduct &p, const SmallPlace &at,
                                                  const To &c, const float *shared) {
    const bool turned = ROWS < small_side && p.transposed;
    const int rows = turned ? small_side : ROWS, across = (turned ? ROWS : small_side) / 4;
    const int row_step = turned ? 1 : small_sums_pitch, column_step = turned ? small_sums_pitch : 1;
    const int64_t first_row = turned ? at.column : at.row;
    const int64_t first_column = turned ? at.row : at.column;
    const int thread = at.split * small_threads + static_cast<int>(threadIdx.x);
    RowPart<T, 4, true> four;
    four.step = p.packed ? 1 : across, four.packed = p.packed;
    const int column = thread % across * (p.packed ? 4 : 1);
    const int64_t left = c.columns - first_column - column, below = c.rows - first_row;
    if (left <= 0) return;
    four.count = left < small_side ? static_cast<int>(left) : small_side;
    load_bias<T>(c, first_column + column, four.count, four.step, four.bias);
    const int64_t corner =
        at.item * c.item_stride + at.outer * p.c_outer + first_row * c.row_stride + first_column;
    for (int row = thread / across; row < rows && row < below;
         row += p.splits * small_threads / across) {
        const float *const from = shared + row * row_step + column * column_step;
        const int apart = four.step * column_step;
        if (p.splits > 1) {
            add_splits(from, apart, p.splits, four.sums);
        } else {
#pragma unroll
            for (int e = 0; e < 4; e++) four.sums[e] = from[e * apart];
        }
        four.at = corner + row * c.row_stride + column;
        finish(c, four);
    }
}

// ---- The kernel ---------------------------------------------------------------------------------

// Four blocks for a multiprocessor, or three of a tile whose stages leave no room for more.
template <class T, int ROWS>
__global__ void __launch_bounds__(small_threads, ROWS == 32 ? 3 : 4)
    small_product_kernel(const __grid_constant__ SmallProduct p) {
#if PVG_HAS_FRAGMENTS
    PVG_DYNAMIC_SHARED(float, memory);
    using Tile = SmallTile<ROWS>;
    const SmallPlace at = place_of_small_tile<ROWS>(p);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int row = warp / Tile::warps_across * Tile::down * 16;
    const int column = warp % Tile::warps_across * Tile::across * 8;
    SmallSums<ROWS> sums = {};
    let_next_kernel_start();
    wait_for_previous_kernel();
    multiply_small<T, ROWS>(p, at, reinterpret_cast<unsigned char *>(memory), row, column, sums);
    if (p.direct) {
        store_small_sums<T, ROWS>(p, at, row, column, sums);
        return;
    }
    share_sums<small_sums_pitch>(memory, row, column, sums);
    const bool shares = has_clusters && p.splits > 1;
    if (shares)
        cluster_sync();
    else
        __syncthreads();
    if (p.c.dtype == PVG_FLOAT32)
        finish_small_tile<float, ROWS>(p, at, PlainDestination(p.c), memory); // a stretch
    else
        finish_small_tile<T, ROWS>(p, at, p.c, memory);
    if (shares) cluster_sync_after_reading(); // no block leaves while another reads its sums
#endif
}

} // namespace

} // namespace pvg::matmul
