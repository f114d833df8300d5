// Products of float16 and bfloat16 in small tiles, by the tensor-core instructions of a warp,
// compute capability 8.0 and later: the kernel that small.cu launches. Sums are in float32.
//
// What TMA or a long pipeline would wait for is little here: batches of small matrices, and thin
// ones that are read once. So a block of four warps is small, and three or four of a multiprocessor
// read while others multiply. It walks along k in stages of 64, of which the next ones are on their
// way while one is multiplied. Operands lie anywhere.
//
// A tile is 16, 32 or 64 x 64. Its rows are those of the operand called `rows`, a, or where c has
// fewer columns than rows, and at most 32, b: then the tile is one of c transposed.
#pragma once
#include "kernels/matmul/sm80/small_parts.cuh"
#include "kernels/matmul/sm80/sums.cuh"
#include "kernels/matmul/tile_order.cuh"

namespace pvg::matmul {

namespace {

constexpr int small_sums_pitch = small_side + 8; // floats
constexpr int most_small_splits = 8;             // blocks of a cluster

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

// ---- Products -----------------------------------------------------------------------------------

// A warp's part of the tile: `down` x 16 rows, `across` x 8 columns.
template <int ROWS> struct SmallTile {
    static constexpr int rows = ROWS;
    static constexpr int warps_down = ROWS == 64 ? 2 : 1,
                         warps_across = small_threads / 32 / warps_down;
    static constexpr int down = ROWS / warps_down / 16, across = small_side / warps_across / 8;
    static constexpr int bytes_a = small_part_bytes(ROWS);
    static constexpr int stage_bytes = bytes_a + small_part_bytes(small_side);
};
template <int ROWS> using SmallSums = float[SmallTile<ROWS>::down][SmallTile<ROWS>::across][4];

template <class T, int ROWS>
__device__ __forceinline__ void multiply_small(const SmallProduct &p, const SmallPlace &at,
                                               unsigned char *shared, int row, int column,
                                               SmallSums<ROWS> &sums) {
    constexpr int bytes_a = SmallTile<ROWS>::bytes_a, bytes = SmallTile<ROWS>::stage_bytes;
    const int first_k = at.first_stage * small_depth;
    SmallLoader<ROWS> a(p.rows, at.row, static_cast<int>(threadIdx.x));
    SmallLoader<small_side> b(p.columns, at.column, static_cast<int>(threadIdx.x));
    a.begin(at.item, at.outer, at.row, first_k);
    b.begin(at.item, at.outer, at.column, first_k);
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
        multiply_stage<T>(from, from + bytes_a, whole_steps(min(small_depth, left)) / 16, part_a,
                          part_b, rows, columns, sums);
        left -= small_depth;
    }
}

// ---- The epilogue -------------------------------------------------------------------------------

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

// Registers for four blocks a multiprocessor, but of tiles of 32 rows. (Of those of 64 rows shared
// memory has room for three.)
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
        T *const first = static_cast<T *>(p.c.data) + at.item * p.c.item_stride +
                         at.outer * p.c_outer + at.row * p.c.row_stride + at.column;
        const SmallTarget<T> c = {first, p.c.row_stride,
                                  min(ROWS, static_cast<int>(p.c.rows) - at.row),
                                  min(small_side, static_cast<int>(p.c.columns) - at.column)};
        if (p.pairs)
            store_small_sums(c, row, column, Tile::down, Tile::across / 2, sums);
        else
            store_small_rows<T, small_side, small_threads>(
                c, reinterpret_cast<unsigned char *>(memory), row, column, Tile::down,
                Tile::across / 2, sums);
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
