// What the products by tensor-core instructions of a warp (mma.sync) share, dmma.cu and tensor.cu:
// the tile of a block and its warps, and the way of an operand from memory to shared memory by
// cp.async, which needs no registers. Instructions that both use are in instructions.cuh.
//
// A tile of an operand lies in shared memory as it is stored: rows of a (columns of b) that are
// contiguous along k, or k's that are contiguous along the rows. A pad behind each of them keeps
// the reading of fragments free of bank conflicts.
#pragma once
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/product.cuh"
#include "kernels/matmul/tile_order.cuh"

namespace pvg::matmul {

namespace {

// ---- The tile of a block ------------------------------------------------------------------------

constexpr int side = 128, stages = 4, threads = 256; // side: of a tile of c
constexpr int warps_across = 4, warp_rows = 64, warp_columns = 32;
constexpr int down = warp_rows / 16,
              across = warp_columns / 8; // instructions that cover a warp's part
constexpr int sums_pitch = side + 8;     // of the sums in shared memory, against bank conflicts

struct TilePlace {
    int64_t item;
    int row, column;   // of the tile's first element
    int rows, columns; // left in the matrix from there, perhaps more than a tile has
};
// The place of the tile with this number, among those of all items.
template <int ROWS = side, int COLUMNS = ROWS, class Product>
__device__ __forceinline__ TilePlace place_of_tile(unsigned tile, const Product &p) {
    const unsigned tiles = static_cast<unsigned>(p.tiles_down) * p.tiles_across;
    TilePlace at;
    at.item = tile / tiles;
    int row, column;
    place_tile(static_cast<int>(tile % tiles), p.tiles_down, p.tiles_across, &row, &column);
    at.row = row * ROWS, at.column = column * COLUMNS;
    at.rows = p.m - at.row, at.columns = p.n - at.column;
    return at;
}

// ---- From memory to shared memory ---------------------------------------------------------------

// A thread's share of an operand's part of a stage: SIZE rows of a (columns of b), DEPTH of k, V
// elements at a time. Outside of the matrix there are zeros.
template <class T, int SIZE, int DEPTH, bool ALONG_K, int V, int PAD, int THREADS>
struct TileLoader {
    static constexpr int lines = ALONG_K ? SIZE : DEPTH, length = ALONG_K ? DEPTH : SIZE;
    static constexpr int pitch = length + PAD; // elements
    static constexpr int bytes = lines * pitch * static_cast<int>(sizeof(T));
    // Threads along a line: a power of two, which lines of 96 are three times as long as.
    static constexpr int packs = length / V, across = packs % 3 == 0 ? packs / 3 : packs;
    static constexpr int times = packs / across, down = THREADS / across, steps = lines / down;
    static_assert(THREADS % across == 0 && lines % down == 0);

    const T *matrix, *from;
    int64_t step, next; // from one of the thread's lines to the next one, and to the next stage
    uint32_t to;
    int line, at, rows;

    // The part begins at `first` of the rows, where `rows` of them are left, and at first_k.
    __device__ __forceinline__ TileLoader(const T *matrix, int64_t stride, int64_t first,
                                          int64_t first_k, int rows)
        : matrix(matrix), rows(rows) {
        line = static_cast<int>(threadIdx.x) / across;
        at = static_cast<int>(threadIdx.x) % across * V;
        from = matrix + (ALONG_K ? first * stride + first_k : first_k * stride + first) +
               line * stride + at;
        step = down * stride;
        next = ALONG_K ? DEPTH : DEPTH * stride;
        to = static_cast<uint32_t>((line * pitch + at) * sizeof(T));
    }
    // Starts copying the next stage, of which `left` of k are in the matrix: perhaps none.
    __device__ __forceinline__ void load(uint32_t stage, int left) {
        const int lines_left = ALONG_K ? rows : left, elements = (ALONG_K ? left : rows) - at;
#pragma unroll
        for (int t = 0; t < times; t++) {
            constexpr int further = across * V; // elements
            const int count = max(0, min(V, elements - t * further)) * static_cast<int>(sizeof(T));
#pragma unroll
            for (int i = 0; i < steps; i++) {
                const int inside = line + i * down < lines_left ? count : 0;
                const uint32_t there = (i * down * pitch + t * further) * sizeof(T);
                copy_async<V * sizeof(T)>(stage + to + there,
                                          inside ? from + i * step + t * further : matrix, inside);
            }
        }
        from += next;
    }
};

} // namespace

} // namespace pvg::matmul
