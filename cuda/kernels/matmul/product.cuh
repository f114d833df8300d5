// What the kernels of this folder are given: c = epilogue(a b), a batch of products that
// pvg_matmul, pvg_dense and others have described. Kernels never see arrays.
//
// A Problem is general: any strides of c, any batch that broadcasts. A Gemm is the form that the
// fast kernels take: rows of c without gaps inside, one stride from item to item.
#pragma once
#include "arrays/array.cuh"
#include "arrays/call.cuh"

namespace pvg::matmul {

// One operand as the kernels see it: a is [row][k], b is [column][k]; one of the strides is 1.
struct Operand {
    const void *data;
    int64_t stride, k_stride; // elements, from row (column) to row and along k
    bool along_k;             // k_stride is 1, else stride is 1
    bool aligned;             // packs may be loaded at once
};

struct Product {
    int64_t m, n, k;
    Operand a, b;
    void *c;
    int64_t c_row;  // from row to row, whose elements have no gaps, in elements
    bool c_aligned; // groups of a row of c may be stored at once
    Walk<3> batch;  // c, a, b
};

// What becomes of the sums before they are stored: c = activation(sum + bias[column]). Everything
// is computed in the dtype of the sums (float32 for float16 and bfloat16) and rounded once.
struct Epilogue {
    const void *bias = nullptr; // n elements of c's dtype, or NULL
    int64_t bias_stride = 1;    // elements
    int activation = PVG_NONE;
    // sum + bias, or NULL: c's dtype, shape and strides, from item to item too.
    void *preactivation = nullptr;

    bool is_plain() const { return !bias && activation == PVG_NONE && !preactivation; }
};

struct Problem {
    int dtype;     // of a, b and c
    int precision; // pvg_precision; only float32 looks at it
    int device;
    Product product;
    int64_t items; // of the batch
    Epilogue epilogue;
};

// The batch's innermost dimension, for the fast kernels. Matrices are stored by rows: a is (m, k),
// or if a_along_k is false (k, m); b is (k, n), or if b_along_k is true (n, k); c is (m, n).
struct Gemm {
    int m, n, items;
    int64_t k; // beyond 2^31 for gemv_kernel alone
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;          // elements from stored row to stored row
    int64_t a_item, b_item, c_item; // elements from item to item; 0: the same one
    // Of stretches of one product: they are not split any more, and the last item has so many
    // terms. 0: these are no stretches.
    int64_t last_k = 0;
    // Of a batch in two dimensions, for kernels that take both: so many of the items are in the
    // inner one; elements from one row of these to the next. 0: all are.
    int inner = 0;
    int64_t a_outer = 0, b_outer = 0, c_outer = 0;
    bool a_along_k, b_along_k;
    int dtype, precision, device;
    int c_dtype; // of c and what the epilogue reads and writes: dtype, or that of its sums
    Epilogue epilogue;
    // TENSOR of TF32: element (i, j) goes to row j of c, column i. Sums go there as they are, and
    // c's rows begin at multiples of 16 bytes, as b's do.
    bool c_turned = false;
};

// Of a batch in two dimensions, as kernels see it: behind each `inner` items there is a jump, in
// elements. inner is 0: there is none.
struct Jumps {
    int inner = 0;
    int64_t a = 0, b = 0, c = 0;
};
inline Jumps jumps_of(const Gemm &g) {
    if (!g.inner) return {};
    return {g.inner, g.a_outer - g.inner * g.a_item, g.b_outer - g.inner * g.b_item,
            g.c_outer - g.inner * g.c_item};
}
// Where an item begins, `step` elements behind the one before it.
__host__ __device__ inline int64_t begin_of_item(int64_t item, int64_t step, int inner,
                                                 int64_t jump) {
    if (inner == 0) return item * step;
    return item * step + int64_t(static_cast<unsigned>(item) / static_cast<unsigned>(inner)) * jump;
}

// Tiles of `size` that cover `length`.
inline int64_t tiles(int64_t length, int size) { return length / size + (length % size != 0); }

// A float32 sum of one chain of multiply-adds errs, even of random data, by more than (sqrt(k) + 8)
// 2^-24 of its terms' magnitudes where k is long, if only in one of millions of elements. So
// kernels whose threads would go through all of k in one chain halve it: they add the sums of its
// first so many terms to those of the rest. A multiple of 32, or 0 where k is short enough for one
// chain.
constexpr int least_halved = 256;
__host__ __device__ inline int64_t first_half(int64_t k) {
    return k >= least_halved ? k / 64 * 32 : 0;
}

// The data so many elements further on; null stays null.
template <class Pointer> Pointer step_by(Pointer data, int64_t elements, int dtype) {
    return data ? static_cast<char *>(const_cast<void *>(static_cast<const void *>(data))) +
                      elements * dtype_size(dtype)
                : nullptr;
}

// The same product so many elements further on in a, b and c, and in the preactivation, which lies
// as c does.
inline Gemm moved(const Gemm &g, int64_t in_a, int64_t in_b, int64_t in_c) {
    Gemm there = g;
    there.a = step_by(g.a, in_a, g.dtype);
    there.b = step_by(g.b, in_b, g.dtype);
    there.c = step_by(g.c, in_c, g.c_dtype);
    there.epilogue.preactivation = step_by(g.epilogue.preactivation, in_c, g.c_dtype);
    return there;
}

// The product of the transposed matrices, b's and a's: c transposed, which lies where c does.
inline Gemm turned(const Gemm &g) {
    Gemm other = g;
    other.m = g.n, other.n = g.m;
    other.a = g.b, other.b = g.a;
    other.lda = g.ldb, other.ldb = g.lda;
    other.a_item = g.b_item, other.b_item = g.a_item;
    other.a_outer = g.b_outer, other.b_outer = g.a_outer;
    other.a_along_k = g.b_along_k, other.b_along_k = g.a_along_k;
    return other;
}

} // namespace pvg::matmul
