// Float32 operands as sums of 16-bit pieces, for products by tensor cores (emulated.cu):
//   bf16: x = x0 + x1 + x2, exactly unless x is near the ends of float32's range;
//   fp16: x 2^s = h + l / 2^11 with 22 bits; s, the same for a line (a row of a, a column of b),
//         brings the line's largest magnitude between 2^13 and 2^15.
// A plane holds one piece of every element of a matrix, whose rows begin at multiples of 128 bytes.
// a's planes are (m, k), b's (k, n), whichever way the operand is stored: the pass transposes. Of a
// batch all that a pass leaves has the items one after another.
#pragma once
#include "kernels/matmul/plan/pieces.cuh"

namespace pvg::matmul {

constexpr float fp16_low_scale = 0x1p11f; // of the pieces l

// The magnitudes that a block of the pass met, as the bits of |x|: NaN is above infinity above all.
struct Range {
    uint32_t largest, smallest; // zeros aside: 0 and UINT32_MAX if there are only zeros
};

struct SplitOperand {
    const float *data;   // as stored: rows x columns, or if `turned` columns x rows
    int64_t ld;          // elements from stored row to stored row
    int64_t item;        // elements from item to item
    int items;           //
    int rows, columns;   // of the planes
    bool turned;         //
    bool lines_are_rows; // fp16: a line is a row of the planes, else a column
    uint16_t *planes;    // of an item one after another, rows x pitch each
    int64_t pitch;       // elements, a multiple of 64
    Range *ranges;       // bf16: range_count(shape_of(*this)) of them an item
    uint32_t *maxima;    // fp16: maxima_count(shape_of(*this)) an item, scratch
    float *roots;        // fp16: per line 2^(-s/2), NaN if an element is not finite
};

inline PlaneShape shape_of(const SplitOperand &x) {
    return {x.items, x.rows, x.columns, x.turned, x.lines_are_rows};
}
__host__ __device__ inline int line_count(const SplitOperand &operand) {
    return operand.lines_are_rows ? operand.rows : operand.columns;
}

// Splits all items of both operands, or of only one if the other is NULL; sets `flags` (count of
// them) to zero. Launched with overlap: the next kernel on the stream may begin early.
int split_bf16(Call &call, const SplitOperand *a, const SplitOperand *b, unsigned *flags,
               int flag_count);
int split_fp16(Call &call, const SplitOperand *a, const SplitOperand *b, unsigned *flags,
               int flag_count);

} // namespace pvg::matmul
