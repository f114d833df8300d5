// The workspace of a product from 16-bit pieces, sm90/emulated.cu: where in it the pieces and what
// else the passes leave lie, and how much of each there is.
#pragma once
#include "kernels/matmul/plan/plan.cuh"
#include "kernels/matmul/plan/tiles.cuh"

namespace pvg::matmul {

// Of the pass that splits an operand: threads, and the sides of the tiles that it transposes.
constexpr int split_threads = 256, split_tile = 64, split_pack = 8;
constexpr int bf16_planes = 3, fp16_planes = 2;

// An operand's planes: a's are (m, k), b's (k, n), whichever way the operand is stored. A line is a
// row of a, a column of b.
struct PlaneShape {
    int items, rows, columns;
    bool turned;         // stored as columns x rows
    bool lines_are_rows; //
};
PlaneShape planes_of_a(const Gemm &g, int items);
PlaneShape planes_of_b(const Gemm &g, int items);

inline int64_t plane_pitch(int columns) { return (int64_t(columns) + 63) / 64 * 64; }
inline int64_t plane_size(int rows, int columns) { return rows * plane_pitch(columns); }

// Parts of a line that runs across the stored rows, and their length.
constexpr int most_line_parts = 16; // to find a line's maximum
__host__ __device__ inline int line_part_length(int line) {
    const int length = (line + most_line_parts - 1) / most_line_parts;
    return length > 64 ? length : 64;
}
__host__ __device__ inline int line_part_count(int line, bool side_by_side) {
    return side_by_side ? 1 : (line + line_part_length(line) - 1) / line_part_length(line);
}

int64_t turned_tiles(const PlaneShape &x);
int64_t range_count(const PlaneShape &x);  // of an item: what the blocks of Bf16x6's pass leave
int64_t maxima_count(const PlaneShape &x); // of an item: the same of Fp16x3's first pass
inline int line_count(const PlaneShape &x) { return x.lines_are_rows ? x.rows : x.columns; }

// Offsets in bytes.
struct PieceSpace {
    struct { int64_t planes, ranges, maxima, roots; } a, b;
    int64_t partials, flags;
    int64_t bytes;
    int tickets, flag_count; // flags: the schedule's tickets, then the verdicts
};
PieceSpace space_of_pieces(const Gemm &g, const Plan &plan, int items);

} // namespace pvg::matmul
