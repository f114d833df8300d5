// The sizes of tiles that the planner and the kernels agree on: the kernels' files assert it.
#pragma once
#include "kernels/matmul/plan/cost.cuh"
#include <stdint.h>

namespace pvg::matmul {

// ---- CUDA cores: simt/ffma.cu, sm90/ffma_tma.cu -------------------------------------------------

// As FfmaTile in simt/ffma_tile.cuh. gap: in shared memory after every four rows of sums. percent:
// see cost.cuh.
struct FfmaSize {
    int rows, columns, slices, sequence, blocks, depth, stages, threads, gap, percent;

    // Tiles without slices park the sums of the first half of k.
    constexpr bool halves() const { return slices == 1 && sequence == 1; }
    constexpr int sum_bytes() const { return slices * (rows * columns + rows / 4 * gap) * 4; }
    // Of all stages; an operand along k is padded.
    constexpr int stages_bytes(bool a_along_k, bool b_along_k) const {
        return stages * depth * (rows + 4 * a_along_k + columns + 4 * b_along_k) * 4;
    }
};
enum FfmaNumber {
    ffma_128x128,
    ffma_64x128,
    ffma_64x64,
    ffma_64x32,
    ffma_small_64x64,
    ffma_small_64x32,
    ffma_sequence_64x64,
    ffma_by_tma,
    ffma_small_32x64,
    ffma_sequence4_64x64, // of four slices
    ffma_items            // in place of 128 x 128: whole items, below
};
constexpr FfmaSize ffma_sizes[] = {
    {128, 128, 1, 1, 2, 16, 3, 256, 8, 100},
    {64, 128, 4, 1, 1, 32, 3, 256, 16, 100},
    {64, 64, 4, 1, 2, 32, 3, 256, 8, cost::sliced_64x64},
    {64, 32, 8, 1, 1, 64, 3, 256, 8, cost::sliced_64x32},
    {64, 64, 1, 1, 6, 16, 4, 64, 8, cost::small_64x64},
    {64, 32, 4, 1, 3, 32, 4, 128, 8, cost::small_64x32},
    {64, 64, 1, 8, 4, 8, 5, 128, 8, 100},
    {128, 256, 1, 1, 1, 32, 4, 256, 0, 100},
    {32, 64, 4, 1, 3, 32, 4, 128, 16, cost::small_64x32},
    {64, 64, 1, 4, 4, 8, 5, 128, 8, 100},
};
// Those that read operands along m or n one element at a time, too, and these that always do: what
// begins anywhere is not copied for them.
constexpr bool reads_singles(int number) {
    return number == ffma_small_64x64 || ffma_sizes[number].sequence > 1 ||
           (ffma_sizes[number].slices > 1 && number != ffma_64x128);
}
constexpr bool reads_singles_only(int number) { return ffma_sizes[number].sequence > 1; }
constexpr int ffma_tma_producers = 128, ffma_tma_rows = 2; // threads; stages of a along k
constexpr int ffma_tma_shared_bytes =
    1024 + 4 * 32 * (128 + 256) * 4 + ffma_tma_rows * 32 * 128 * 4 + (4 + ffma_tma_rows) * 16;

// Whole items of at most 128 x 128, simt/ffma_items.cu: a thread has a microtile, and neighbours
// are in `pair` rows of them. items_stride: the most from row to row, so that elements of an item
// have numbers of 32 bits.
constexpr int items_side = 128, items_micro = 8, items_stride = 1 << 22;
// Of all of k, if it takes no more than this, so that three blocks fit; else two, of so many of k.
constexpr int items_stage_bytes = 74 << 10, items_depth = 32;
// From line to line along k: eight of them begin at other banks each.
constexpr int items_pitch(int depth) { return depth / 4 % 2 ? depth : depth + 4; }
// Of so many microtiles of so many columns. The sums go there in the end.
constexpr int items_shared_bytes(int down, int across, int columns, bool a_along_k, bool b_along_k,
                                 int depth, int stages) {
    const int m = items_micro * down, n = columns * across;
    const int stage =
        m * (a_along_k ? items_pitch(depth) : depth) + n * (b_along_k ? items_pitch(depth) : depth);
    const int all = stage * stages, sums = m * n;
    return 4 * (all > sums ? all : sums);
}
constexpr int items_warps(int down, int across, int pair) {
    return ((down + pair - 1) / pair * pair * across + 31) / 32;
}
constexpr int items_pair(int down, int across) {
    return items_warps(down, across, 2) == items_warps(down, across, 1) ? 2 : 1;
}
// Columns of a microtile: 4, so that a multiprocessor has many warps, while two blocks fit.
constexpr int items_most_threads(int columns) { return columns == 4 ? 320 : 256; }
constexpr int items_columns(int m, int n) {
    return items_warps((m + 7) / 8, (n + 3) / 4, 1) * 32 <= items_most_threads(4) ? 4 : 8;
}

// ---- Warps: sm80/tensor.cu, sm80/dmma.cu --------------------------------------------------------

constexpr int block_overhead = 1024; // bytes of shared memory that CUDA takes for itself
constexpr int warp_side = 128, warp_threads = 256, warp_stages = 4; // of a tile of c
constexpr int warp_sums_pitch = warp_side + 8;
// An operand's part of a stage: 64 bytes of k of halves and TF32, 16 of k of float64, with gaps of
// 16 and 32 bytes after each stored row.
constexpr int warp_stage_bytes(int element, bool along_k) {
    return along_k ? warp_side * (64 + 16) : 64 / element * (warp_side * element + 16);
}
// float64: several of the smaller tiles share a multiprocessor.
struct DmmaSize { int rows, columns; };
constexpr DmmaSize dmma_sizes[] = {{128, 128}, {64, 64}, {32, 64}, {32, 32}, {96, 96}, {96, 128}};
constexpr int dmma_depth = 16;
constexpr int dmma_threads(int rows) { return rows > 64 ? 256 : 128; }
// In shared memory at a time: of a large tile, and of smaller ones at least. Where few of these
// share a multiprocessor, more stages are on their way.
constexpr int dmma_stages(int rows) { return rows > 64 ? warp_stages : 3; }
constexpr int dmma_more_stages[] = {7, 5};
constexpr int dmma_blocks(int rows, int columns) { // that a multiprocessor takes
    return rows > 64 ? 1 : rows == 64 ? 3 : columns == 64 ? 4 : 5;
}
constexpr int dmma_sequence_tile = 1, dmma_sequence_blocks = 2; // whose splits a block computes
constexpr int dmma_sums_pitch(int columns) { return columns + 8; }
constexpr int dmma_stage_bytes(int side, bool along_k) {
    return along_k ? side * (dmma_depth + 4) * 8 : dmma_depth * (side + 4) * 8;
}

// ---- Small tiles: sm80/small.cu -----------------------------------------------------------------

constexpr int small_rows[] = {16, 32, 64}, small_side = 64; // of a tile
constexpr int small_depth = 64, small_threads = 128, small_stages = 4;
// An operand's part of a stage, along k or across, with gaps of 16 bytes after each stored row.
constexpr int small_part_bytes(int side) {
    const int along = side * (small_depth + 8) * 2, across = small_depth * (side + 8) * 2;
    return along > across ? along : across;
}
// The sums are no more than a stage.
constexpr int small_shared_bytes(int rows, int stages) {
    return stages * (small_part_bytes(rows) + small_part_bytes(small_side));
}

// Whole items of a batch, sm80/small_items.cu: numbers of tiles behind those of small_rows. The
// last takes nothing but whole packs of 16 bytes. How many blocks a multiprocessor has registers
// for.
constexpr int small_items_128 = 3, small_items_packs = 4;
constexpr int small_items_stages = 3;
constexpr int small_items_side(int tile) { return tile == small_items_128 ? 128 : 64; }
constexpr int small_items_threads(int tile) { return tile == small_items_128 ? 256 : 128; }
constexpr int small_items_blocks(int tile) { return tile == small_items_128 ? 2 : 5; }
// An operand's part of a stage, of no more lines than there are.
constexpr int small_items_part_bytes(int side, int most, int k, bool along_k) {
    return along_k ? (side + 15) / 16 * 16 * (small_depth + 8) * 2
                   : ((k < small_depth ? k : small_depth) + 15) / 16 * 16 * (most + 8) * 2;
}

// ---- TF32 of operands that lie anywhere: sm80/tf32.cu -------------------------------------------

// The kernels' tiles of c have at most so many rows and columns. They are no larger than they have
// to be, in multiples of 16.
struct Tf32Size { int rows, columns, threads, blocks; }; // blocks: that a multiprocessor takes
constexpr Tf32Size tf32_sizes[] = {
    {128, 128, 256, 1}, {96, 96, 128, 2}, {96, 64, 128, 2}, {96, 32, 128, 2}};
constexpr int tf32_depth = 32, tf32_stages = 4;
// In elements, after each stored row: along k, across and of the sums, against bank conflicts.
constexpr int tf32_gap_along = 4, tf32_gap_across = 8;
constexpr int tf32_part(int side) { // of a stage, of an operand
    const int along = side * (tf32_depth + tf32_gap_along);
    const int across = tf32_depth * (side + tf32_gap_across);
    return along > across ? along : across;
}
// Of so many stages; the sums of the tile lie in their place.
constexpr int tf32_shared_bytes(const Tf32Size &size, int stages) {
    const int parts = stages * (tf32_part(size.rows) + tf32_part(size.columns));
    const int sums = size.rows * (size.columns + tf32_gap_across);
    return (parts > sums ? parts : sums) * 4;
}

// ---- wgmma: sm90/tensor.cuh ---------------------------------------------------------------------

// The first of those that cost the same. The last two are of 16 bits alone: of narrow products, and
// of others, multiplied by three warpgroups.
struct TensorSize { int rows, columns; };
constexpr TensorSize tensor_sizes[] = {{128, 256}, {128, 128}, {128, 64}, {64, 64},
                                       {64, 32},   {128, 192}, {64, 128}, {192, 192}};
constexpr int tensor_tiles = sizeof tensor_sizes / sizeof *tensor_sizes;
constexpr int tensor_64x128 = tensor_tiles - 2, tensor_192x192 = tensor_tiles - 1;

// Of the small ones as many as leave room for another block; more if the plan says so.
constexpr bool tensor_is_small(int m, int n) { return m == 64 && n <= 64; }
constexpr int tensor_stages(int m, int n) {
    if (tensor_is_small(m, n)) return 384 / (m + n) * 2;
    return m == 192 || n == 256 ? 4 : n == 192 ? 5 : n == 128 && m == 128 ? 6 : 8;
}
constexpr int hopper_alignment = 1024;
constexpr int hopper_staging_bytes(int warps) { return warps * 640 * 4; }
// element: bytes of an operand's; in_classes: a TF32 a in classes of rows.
constexpr int tensor_shared_bytes(int m, int n, int element, bool in_classes, int stages) {
    const int k = 128 / element;
    const int a_loaded = in_classes ? k * (m + 4) * element : m * 128;
    const int a_bytes = (a_loaded + hopper_alignment - 1) / hopper_alignment * hopper_alignment;
    return hopper_alignment + stages * (a_bytes + n * 128) + hopper_staging_bytes(m / 16) +
           2 * stages * 8;
}

// ---- Pieces: sm90/emulated.cu -------------------------------------------------------------------

constexpr int emulated_rows = 128, emulated_k = 32, emulated_threads = 384;

// As EmulatedTile in sm90/emulated.cuh.
struct EmulatedSize {
    int columns, stages, cluster, unit;
    bool grouped;
    double efficiency;

    constexpr int shared_bytes(int pieces) const {
        const int stage = pieces * emulated_rows * 64 + columns / 64 * 2 * pieces * 16 * 128;
        return hopper_alignment + stages * stage + hopper_staging_bytes(8) + stages * 16;
    }
};
// Of each scheme: wide, medium, narrow. (A wide tile of Bf16x6 has no registers for groups.)
constexpr EmulatedSize bf16x6_sizes[] = {{192, 3, 2, 1, false, cost::of_192},
                                         {128, 4, 2, 1, true, cost::of_128},
                                         {64, 5, 1, 1, true, cost::of_64}};
constexpr EmulatedSize fp16x3_sizes[] = {{192, 5, 2, 4, false, cost::of_192},
                                         {128, 6, 2, 2, false, cost::of_128},
                                         {64, 8, 1, 2, false, cost::of_64}};

// ---- Vectors, thin and tiny products: simt/gemv.cu, simt/thin.cu, simt/tiny.cu -----------------

constexpr int gemv_warps = 8;     // of a block
constexpr int gemv_row_packs = 4; // of 16 bytes that a lane asks for at a time, along k
constexpr int tiny_side = 32, tiny_warps = 4;
constexpr int mini_side = 16; // of simt/mini.cu
// Of a block, whose products' operands are in shared memory as the type of sums.
constexpr int mini_warps(int sum) { return 16 / sum; }
// Thin products, simt/thin.cu. Of elements of so many bytes: of k, whose thin operand is in shared
// memory; columns and rows of the long one that a block has, for `side` of the thin one.
constexpr int thin_side = 16, thin_warps = 8;
constexpr int thin_chunk(int element) { return 1024 / element; }
constexpr int thin_columns(int element) { return 512 / element; }
constexpr int thin_rows(int side, int element) {
    return thin_warps * (side * element < 64 ? 256 / (side * element) : 4);
}
// Products of few terms, simt/outer.cu: rows whose terms are in shared memory at a time, and the
// most terms, of float32 and of others. Of elements of so many bytes and so many terms: columns of
// a block.
constexpr int outer_warps = 8, outer_rows = 64, outer_terms = 16, outer_terms_of_float32 = 24;
constexpr int outer_columns(int element, int64_t k) {
    return element == 8 || k > outer_terms ? 64 : 128;
}
// Whether a block of the kernel for rows needs a multiprocessor alone, for its registers.
constexpr bool thin_rows_alone(bool along_k, int side, int element) {
    return along_k && side > 8 && element == 8;
}
// Of k, that a warp adds up at a time; columns of a block.
constexpr int gemv_chunk(int element) { return 32 * (16 / element) * gemv_row_packs; }
// Lanes that share a row of k elements: all of a warp, or as few as hold it in a pack each.
constexpr int gemv_lanes(long long k, int element) {
    int lanes = 1;
    while (lanes < 32 && lanes * (16 / element) < k) lanes *= 2;
    return lanes;
}
constexpr int gemv_width(int element) { return 32 * (element >= 4 ? 16 / element : 4); }

// ---- The portable kernel: simt/tile.cuh ---------------------------------------------------------

struct TiledSize { int side, threads, float_threads; };
enum TiledNumber { tiled_large, tiled_medium, tiled_small }; // large: of float32 alone
constexpr TiledSize tiled_sizes[] = {{128, 256, 256}, {64, 256, 128}, {32, 64, 64}};

} // namespace pvg::matmul
