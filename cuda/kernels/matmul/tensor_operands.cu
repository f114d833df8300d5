// The pass before a product by tensor cores, where there has to be one: rows that do not begin at
// multiples of 16 bytes are copied to where they do, and float32 is rounded to 16 bits. One launch
// for both operands; a thread makes 16 bytes. See tensor_operands.cuh.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/hopper.cuh"
#include "kernels/matmul/pretranspose.cuh"
#include "kernels/matmul/tensor_operands.cuh"

namespace pvg::matmul {

namespace {

constexpr int vector = 8; // elements of 16 bits that a thread makes

struct Rows {
    const void *from;
    uint16_t *to;
    int64_t columns, rows, from_stride, from_item, to_stride; // to: rows of all items, evenly
    int64_t vectors;                                          // of a row
};
struct RowCopies {
    Rows of[2];
    int64_t first_of_second, total; // vectors
};

// n elements at `from`, with zeros after them. `begin` and `end` enclose the row: 16 aligned bytes
// within it may be read at once even if they are not wholly asked for.
__device__ __forceinline__ uint4 load_halves(const uint16_t *from, int n, const uint16_t *begin,
                                             const uint16_t *end) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(from), low = address / 16 * 16;
    const unsigned offset = static_cast<unsigned>(address - low);
    if (offset == 0 && n >= vector) return *reinterpret_cast<const uint4 *>(from);
    if (low >= reinterpret_cast<uintptr_t>(begin) && low + 32 <= reinterpret_cast<uintptr_t>(end)) {
        const uint4 x = *reinterpret_cast<const uint4 *>(low);
        const uint4 y = *(reinterpret_cast<const uint4 *>(low) + 1);
        // The eight words, moved down by two and by one; then by half a word.
        const bool two = offset & 8, one = offset & 4;
        const uint32_t a0 = two ? x.z : x.x, a1 = two ? x.w : x.y, a2 = two ? y.x : x.z;
        const uint32_t a3 = two ? y.y : x.w, a4 = two ? y.z : y.x, a5 = two ? y.w : y.y;
        const uint32_t b0 = one ? a1 : a0, b1 = one ? a2 : a1, b2 = one ? a3 : a2;
        const uint32_t b3 = one ? a4 : a3, b4 = one ? a5 : a4;
        const unsigned bits = (offset & 2) * 8;
        return make_uint4(__funnelshift_r(b0, b1, bits), __funnelshift_r(b1, b2, bits),
                          __funnelshift_r(b2, b3, bits), __funnelshift_r(b3, b4, bits));
    }
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int e = 0; e < vector; e++)
        if (e < n) words[e / 2] |= static_cast<uint32_t>(from[e]) << 16 * (e % 2);
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// The same from float32, rounded.
template <class T>
__device__ __forceinline__ uint4 round_floats(const float *from, int n) {
    float x[vector];
    if (n >= vector && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
        const float4 low = *reinterpret_cast<const float4 *>(from);
        const float4 high = *(reinterpret_cast<const float4 *>(from) + 1);
        x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
        x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
    } else {
#pragma unroll
        for (int e = 0; e < vector; e++) x[e] = e < n ? from[e] : 0.0f;
    }
    return make_uint4(pack_pair<T>(x[0], x[1]), pack_pair<T>(x[2], x[3]), pack_pair<T>(x[4], x[5]),
                      pack_pair<T>(x[6], x[7]));
}

// dividend / divisor; 64-bit division only where it has to be.
__device__ __forceinline__ int64_t divide(int64_t dividend, int64_t divisor) {
    if ((dividend | divisor) >> 32) return dividend / divisor;
    return static_cast<uint32_t>(dividend) / static_cast<uint32_t>(divisor);
}

// FROM: uint16_t, copied, or float, rounded to T.
template <class FROM, class T>
__global__ void __launch_bounds__(256) copy_rows_kernel(const __grid_constant__ RowCopies copies) {
#if __CUDA_ARCH__ >= 900
    hopper::let_next_kernel_start();
    hopper::wait_for_previous_kernel();
#endif
    int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= copies.total) return;
    const bool second = index >= copies.first_of_second;
    if (second) index -= copies.first_of_second;
    const Rows &rows = copies.of[second];
    const int64_t row = divide(index, rows.vectors), item = divide(row, rows.rows);
    const int64_t column = (index - row * rows.vectors) * vector;
    const FROM *begin = static_cast<const FROM *>(rows.from) + item * rows.from_item +
                        (row - item * rows.rows) * rows.from_stride;
    const int n = static_cast<int>(min(rows.columns - column, int64_t(vector)));
    uint4 result;
    if constexpr (sizeof(FROM) == 2)
        result = load_halves(begin + column, n, begin, begin + rows.columns);
    else
        result = round_floats<T>(begin + column, n);
    *reinterpret_cast<uint4 *>(rows.to + row * rows.to_stride + column) = result;
}

// 16-bit elements as they are in g.
bool is_readable(const TensorOperand &x) {
    const bool items = x.items == 1 || hopper::is_readable_by_tma(x.data, 2 * x.item);
    const bool rows = x.stride >= x.columns && hopper::is_readable_by_tma(x.data, 2 * x.stride);
    return items && (rows || (x.rows == 1 && hopper::is_readable_by_tma(x.data, 16)));
}

// Copies have rows of whole 128 bytes, so that the box of a tile is whole lines of memory; short
// ones of whole 16.
int64_t copy_stride(const TensorOperand &x) {
    const int64_t multiple = x.columns > 64 ? 64 : 8;
    return (x.columns + multiple - 1) / multiple * multiple;
}

TensorOperand operand_a(const Gemm &g) {
    const int64_t rows = g.a_along_k ? g.m : g.k, columns = g.a_along_k ? g.k : g.m;
    const int64_t items = g.a_item == 0 ? 1 : g.items;
    return {g.a, rows, columns, g.lda, items, g.a_item};
}
TensorOperand operand_b(const Gemm &g) {
    const int64_t rows = g.b_along_k ? g.n : g.k, columns = g.b_along_k ? g.k : g.n;
    const int64_t items = g.b_item == 0 ? 1 : g.items;
    return {g.b, rows, columns, g.ldb, items, g.b_item};
}

template <class FROM, class T> int launch_copies(Operation &op, const RowCopies &copies) {
    PVG_LAUNCH_WITH((LaunchExtras{1, true}), (copy_rows_kernel<FROM, T>),
                    blocks_for(copies.total, 256), 256, 0, op.stream, copies);
    return PVG_OK;
}

// Replaces what `copied` says by copies in the workspace.
int copy_operands(Operation &op, int dtype, int type, const bool (&copied)[2],
                  TensorOperand *const (&operands)[2], Workspace *space) {
    RowCopies copies = {};
    int64_t offsets[2], bytes = 0;
    for (int i = 0; i < 2; i++) {
        TensorOperand &x = *operands[i];
        if (i == 1) copies.first_of_second = copies.total;
        if (!copied[i]) continue;
        Rows &rows = copies.of[i];
        rows.from = x.data, rows.columns = x.columns, rows.rows = x.rows;
        rows.from_stride = x.stride, rows.from_item = x.items > 1 ? x.item : 0;
        rows.to_stride = copy_stride(x), rows.vectors = (x.columns + vector - 1) / vector;
        x.stride = rows.to_stride, x.item = x.rows * rows.to_stride;
        copies.total += x.items * x.rows * rows.vectors;
        offsets[i] = bytes;
        bytes += (x.items * x.item * 2 + 255) / 256 * 256;
    }
    PVG_PASS(space->open(op, static_cast<size_t>(bytes)));
    for (int i = 0; i < 2; i++) {
        if (!copied[i]) continue;
        copies.of[i].to = reinterpret_cast<uint16_t *>(space->as<char>() + offsets[i]);
        operands[i]->data = copies.of[i].to;
    }
    if (dtype != PVG_FLOAT32) return launch_copies<uint16_t, uint16_t>(op, copies);
    if (type == PVG_FLOAT16) return launch_copies<float, __half>(op, copies);
    return launch_copies<float, __nv_bfloat16>(op, copies);
}

} // namespace

int prepare_operands(Operation &op, const Gemm &g, int type, TensorOperands *operands) {
    if (type == PVG_FLOAT32) {
        Gemm arranged = g;
        PVG_PASS(arrange_operands(op, &arranged, {true, 4}, {g.b_along_k, 4}, &operands->space));
        operands->a = operand_a(arranged), operands->b = operand_b(arranged);
        operands->a_along_k = true, operands->b_along_k = g.b_along_k;
        return PVG_OK;
    }
    operands->a = operand_a(g), operands->b = operand_b(g);
    operands->a_along_k = g.a_along_k, operands->b_along_k = g.b_along_k;
    const bool rounded = g.dtype == PVG_FLOAT32;
    const bool copied[2] = {rounded || !is_readable(operands->a),
                            rounded || !is_readable(operands->b)};
    if (!copied[0] && !copied[1]) return PVG_OK;
    return copy_operands(op, g.dtype, type, copied, {&operands->a, &operands->b}, &operands->space);
}

} // namespace pvg::matmul
#endif
