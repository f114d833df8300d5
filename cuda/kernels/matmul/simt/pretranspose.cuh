// Operands in the layout that a kernel wants: copies of 4-byte elements, transposed or with rows
// that begin at multiples of 16 bytes, made by one launch for both operands before the product.
#pragma once
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

// What a kernel asks of an operand: which index is contiguous, and a number of elements (1, or a
// multiple of 4) that the address, the distance of rows and that of items have to be multiples of.
struct Layout {
    bool along_k;
    int alignment;
};

// Whether rows of 4-byte elements have that alignment and a multiple of 4 elements, no row overlaps
// the next, and distances fit what TMA can express; alignment 1 asks nothing. One stored row may
// have any distance.
bool is_aligned(const void *data, int64_t rows, int64_t length, int64_t stride, int64_t items,
                int64_t item, int alignment);
bool has_layout_a(const Gemm &g, Layout layout);
bool has_layout_b(const Gemm &g, Layout layout);

// Replaces the operands that are not laid out so by copies in `space`; an operand that all items
// share is copied once. Afterwards both distances of rows have the alignment, even of a single row.
// What lies between the rows of a copy is no number to rely on. The stream's next kernel may be
// launched with overlap. For float32.
int arrange_operands(Call &call, Gemm *g, Layout a, Layout b, Workspace *space);

} // namespace pvg::matmul
