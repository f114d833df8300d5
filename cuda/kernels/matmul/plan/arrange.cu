// Layouts of operands, and of their copies; see arrange.cuh.
#include "kernels/matmul/plan/arrange.cuh"

namespace pvg::matmul {

Stored stored_a(const Gemm &g) {
    const bool k = g.a_along_k;
    const int64_t rows = k ? g.m : g.k, columns = k ? g.k : g.m;
    return {g.a, rows, columns, g.lda, g.a_item == 0 ? 1 : g.items, g.a_item, k};
}
Stored stored_b(const Gemm &g) {
    const bool k = g.b_along_k;
    const int64_t rows = k ? g.n : g.k, columns = k ? g.k : g.n;
    return {g.b, rows, columns, g.ldb, g.b_item == 0 ? 1 : g.items, g.b_item, k};
}

bool are_stretches(const Gemm &g) {
    return g.last_k > 0 && g.items > 1 && g.a_item == g.k * (g.a_along_k ? 1 : g.lda) &&
           g.b_item == g.k * (g.b_along_k ? 1 : g.ldb);
}
Gemm joined(const Gemm &g) {
    if (!are_stretches(g)) return g;
    Gemm one = g;
    one.k = (g.items - 1) * g.k + g.last_k;
    one.items = 1, one.a_item = one.b_item = 0;
    return one;
}

bool is_aligned(const void *data, int64_t rows, int64_t length, int64_t stride, int64_t items,
                int64_t item, int alignment) {
    if (alignment == 1) return true;
    const int64_t most = int64_t(1) << 38; // elements; TMA has 40 bits for bytes
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0 || length % 4 != 0) return false;
    if (rows > 1 && (stride < length || stride % alignment != 0 || stride >= most)) return false;
    return items == 1 || (item >= 0 && item % 4 == 0 && item < most);
}

static bool is_aligned(const Stored &x, int alignment) {
    return is_aligned(x.data, x.rows, x.columns, x.stride, x.items, x.item, alignment);
}

bool has_layout(const Stored &operand, OperandLayout layout) {
    return operand.along_k == layout.along_k && is_aligned(operand, layout.alignment);
}

OperandPlan arrange(const Stored &operand, OperandLayout layout) {
    OperandPlan plan;
    plan.along_k = layout.along_k, plan.alignment = layout.alignment;
    plan.stride = operand.rows == 1 ? round_up(operand.columns, 64) : operand.stride;
    plan.item = operand.item;
    if (has_layout(operand, layout)) return plan;
    const bool transposed = operand.along_k != layout.along_k;
    const int64_t rows = transposed ? operand.columns : operand.rows;
    const int64_t columns = transposed ? operand.rows : operand.columns;
    plan.copying = transposed ? Copying::transposed : Copying::rows;
    plan.stride = round_up(columns, layout.alignment < 4 ? 4 : layout.alignment);
    const int64_t size = round_up(rows * plan.stride, 64); // copies begin at multiples of 256 bytes
    plan.item = operand.items > 1 ? size : 0;
    plan.bytes = operand.items * size * static_cast<int64_t>(sizeof(float));
    plan.by_fours = is_aligned(operand, 4);
    return plan;
}

Gemm arranged(const Gemm &g, const OperandPlan &a, const OperandPlan &b) {
    Gemm result = g;
    result.a_along_k = a.along_k, result.lda = a.stride, result.a_item = a.item;
    result.b_along_k = b.along_k, result.ldb = b.stride, result.b_item = b.item;
    return result;
}

} // namespace pvg::matmul
