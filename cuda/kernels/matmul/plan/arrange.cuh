// What becomes of an operand before its product: it is read where it is, or a copy is, in the
// layout that the kernel wants. The copies are made by simt/pretranspose.cu, sm80/convert.cu and
// sm90/tensor_operands.cu.
#pragma once
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

// What a kernel asks of an operand: which index is contiguous, and a number of elements (1, or a
// multiple of 4) that the address, the distance of rows and that of items have to be multiples of.
struct OperandLayout {
    bool along_k;
    int alignment;
};

enum class Copying {
    none,       // read where it is
    rows,       // row by row, to rows that begin at multiples of 16 bytes; perhaps rounded
    transposed, //
    pieces,     // split into 16-bit pieces
};

// An operand as the kernel reads it.
struct OperandPlan {
    Copying copying = Copying::none;
    bool along_k = false;
    int alignment = 1;            // of OperandLayout: what the kernel may rely on
    int64_t stride = 0, item = 0; // elements from row to row, and from item to item
    int64_t bytes = 0;            // of the copies of all items; an operand that all share has one
    bool by_fours = false;        // the copy's source can be read 16 bytes at a time
};

// As it is stored: `rows` rows of `columns` elements.
struct Stored {
    const void *data;
    int64_t rows, columns, stride, items, item; // items: 1 if all items of c share it
    bool along_k;
};
Stored stored_a(const Gemm &g);
Stored stored_b(const Gemm &g);

// Whether the items are stretches of one product, which follow one another along k; and these again
// as that product's operands, of which TENSOR finds a stretch by where it begins: what is past the
// last one is then past the operand, and zero.
bool are_stretches(const Gemm &g);
Gemm joined(const Gemm &g);

// Whether rows of 4-byte elements have that alignment and a multiple of 4 elements, no row overlaps
// the next, and distances fit what TMA can express; alignment 1 asks nothing. One stored row may
// have any distance.
bool is_aligned(const void *data, int64_t rows, int64_t length, int64_t stride, int64_t items,
                int64_t item, int alignment);
bool has_layout(const Stored &operand, OperandLayout layout);

// The operand, or a copy in the layout, of 4-byte elements. Afterwards the distance of rows has the
// alignment, even of a single row.
OperandPlan arrange(const Stored &operand, OperandLayout layout);

// g with the operands' layout that two plans say; the copies' addresses are not known yet.
Gemm arranged(const Gemm &g, const OperandPlan &a, const OperandPlan &b);

// Whether 16 bytes may be loaded at once: at the start, from row to row, from item to item.
inline bool allows_16_bytes(const void *data, int64_t stride, int64_t item, int64_t element) {
    return (static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)) | stride * element |
            item * element) %
               16 ==
           0;
}

// How many elements of 4 bytes may be loaded or stored at once: 4, 2 or 1, of rows of `length`.
inline int items_width(const void *data, int64_t length, int64_t stride, int64_t items,
                       int64_t item, int64_t outer) {
    const int64_t all = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)) / 4 | length |
                        stride | (items > 1 ? item : 0) | outer;
    return all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
}

inline int64_t round_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

} // namespace pvg::matmul
