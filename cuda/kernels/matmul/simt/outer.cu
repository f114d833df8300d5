// Products of few terms: k is at most 16, or 24 of float32, so that of a large c nothing takes
// longer than to write it.
//
//     c[i][j] = epilogue(sum over k of a[i][k] b[k][j])
//
// A warp has 128 columns of c (64 of 8 bytes, or beside more than 16 terms), which its lanes share
// out by turns, and goes down the rows of its block. A lane keeps the terms of its columns in
// registers. Those of the rows, which all lanes of a warp want at the same time, the block brings
// to shared memory, 64 rows at a time, and asks for the next ones before it multiplies these.
// Operands may lie in either way and begin anywhere. Every element is one chain of multiply-adds in
// the order of k, as TILED's (but for the sign of a zero that is left where everything underflows):
// which rows a block has changes no bit.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/tiles.cuh"

namespace pvg::matmul {

namespace {

constexpr int warps = outer_warps, threads = 32 * warps, rows_at_once = outer_rows;

template <class T, int K> constexpr int columns_of_lane = outer_columns(sizeof(T), K) / 32;

struct OuterProduct {
    const void *a, *b;
    Destination c;
    int64_t lda, ldb, a_item, b_item; // elements
    int k, rows;                      // terms; rows of c that a block has
    unsigned across, down;            // blocks of an item
    bool a_along_k, b_along_k;
};

// The terms of LINES rows of a, or columns of b, of which there are K or zeros in their place, on
// their way to shared memory: there as the type of sums, where `next_line` and `next_term` say.
template <class T, int K, int LINES> struct OuterTerms {
    static constexpr int turns = LINES * K / threads;
    static_assert(LINES * K % threads == 0);
    T values[turns];

    static __device__ __forceinline__ int line_of(int turn, bool along_k) {
        const int index = static_cast<int>(threadIdx.x) + turn * threads;
        return along_k ? index / K : index % LINES;
    }
    static __device__ __forceinline__ int term_of(int turn, bool along_k) {
        const int index = static_cast<int>(threadIdx.x) + turn * threads;
        return along_k ? index % K : index / LINES;
    }
    // From the first line on, of which `left` are there.
    __device__ __forceinline__ void load(const T *first, int64_t stride, bool along_k, int64_t left,
                                         int k) {
#pragma unroll
        for (int turn = 0; turn < turns; turn++) {
            const int line = line_of(turn, along_k), term = term_of(turn, along_k);
            const bool exists = line < left && term < k;
            values[turn] = exists ? first[along_k ? line * stride + term : term * stride + line]
                                  : T(SumType<T>(0));
        }
    }
    __device__ __forceinline__ void store(SumType<T> *to, int next_line, int next_term,
                                          bool along_k) const {
#pragma unroll
        for (int turn = 0; turn < turns; turn++)
            to[line_of(turn, along_k) * next_line + term_of(turn, along_k) * next_term] =
                widen(values[turn]);
    }
};

template <class T, int K>
__global__ void __launch_bounds__(threads, 2)
    outer_product_kernel(const __grid_constant__ OuterProduct p) {
    using S = SumType<T>;
    constexpr int each = columns_of_lane<T, K>, columns = 32 * each;
    constexpr int pack = 16 / static_cast<int>(sizeof(S));
    constexpr int at_once = K > 8 ? 1 : 2; // rows of a warp: one is multiplied, another stored
    static_assert(outer_rows % (at_once * warps) == 0);
    constexpr int pitch = K + pack, column_pitch = columns + 1; // against bank conflicts, some
    __shared__ __align__(16) S rows[2][rows_at_once * pitch];
    __shared__ S shared_terms[K * column_pitch];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned index = blockIdx.x;
    const int64_t column = int64_t(index % p.across) * columns;
    index /= p.across;
    const int64_t begin = int64_t(index % p.down) * p.rows, item = index / p.down;
    const int64_t end = p.c.rows - begin < p.rows ? p.c.rows : begin + p.rows;
    const int64_t left = p.c.columns - column;
    let_next_kernel_start();
    wait_for_previous_kernel();
    const T *a = static_cast<const T *>(p.a) + item * p.a_item;
    a += begin * (p.a_along_k ? p.lda : 1);
    const T *const b = static_cast<const T *>(p.b) + item * p.b_item;
    OuterTerms<T, K, rows_at_once> next;
    next.load(a, p.lda, p.a_along_k, end - begin, p.k);
    S terms[K][each];
    {
        OuterTerms<T, K, columns> all;
        all.load(b + column * (p.b_along_k ? p.ldb : 1), p.ldb, p.b_along_k, left, p.k);
        all.store(shared_terms, 1, column_pitch, p.b_along_k);
    }
    RowPart<T, each, true> part;
    part.step = 32, part.packed = false;
    part.count = left < lane ? 0 : left - lane < columns ? static_cast<int>(left) - lane : columns;
    load_bias<T>(p.c, column + lane, part.count, part.step, part.bias);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int e = 0; e < each; e++) terms[k][e] = shared_terms[k * column_pitch + e * 32 + lane];
    int now = 0;
    for (int64_t first = begin; first < end; first += rows_at_once, now ^= 1) {
        next.store(rows[now], pitch, 1, p.a_along_k); // the other rows may still be read
        __syncthreads();
        a += rows_at_once * (p.a_along_k ? p.lda : 1);
        if (first + rows_at_once < end)
            next.load(a, p.lda, p.a_along_k, end - first - rows_at_once, p.k);
#pragma unroll 1
        for (int row = warp; row < rows_at_once && first + row < end; row += at_once * warps) {
            S sums[at_once][each] = {};
            const S *own = rows[now] + row * pitch;
#pragma unroll
            for (int k = 0; k < K; k += pack)
#pragma unroll
                for (int r = 0; r < at_once; r++) {
                    const auto x =
                        *reinterpret_cast<const Vector<S, pack> *>(own + r * warps * pitch + k);
#pragma unroll
                    for (int i = 0; i < pack; i++)
#pragma unroll
                        for (int e = 0; e < each; e++)
                            sums[r][e] = fma(x.element[i], terms[k + i][e], sums[r][e]);
                }
#pragma unroll
            for (int r = 0; r < at_once; r++) {
                if (first + row + r * warps >= end) break;
#pragma unroll
                for (int e = 0; e < each; e++) part.sums[e] = sums[r][e];
                part.at = item * p.c.item_stride + (first + row + r * warps) * p.c.row_stride +
                          column + lane;
                finish(p.c, part);
            }
        }
    }
}

OuterProduct describe(const Gemm &g, const Plan &plan) {
    OuterProduct p = {};
    p.a = g.a, p.b = g.b, p.c = destination_of(g);
    p.lda = g.lda, p.ldb = g.ldb, p.a_item = g.a_item, p.b_item = g.b_item;
    p.k = static_cast<int>(g.k), p.rows = plan.rows;
    p.across = blocks_for(g.n, plan.columns), p.down = blocks_for(g.m, plan.rows);
    p.a_along_k = g.a_along_k, p.b_along_k = g.b_along_k;
    return p;
}

template <class T>
int launch_terms(Call &call, const Plan &plan, unsigned grid, const OuterProduct &p) {
    const LaunchExtras extras{1, plan.overlap};
#define PVG_OUTER(K) \
    PVG_LAUNCH_WITH(extras, (outer_product_kernel<T, K>), grid, threads, 0, call.stream, p)
    if (p.k <= 8)
        PVG_OUTER(8);
    else if (p.k <= outer_terms)
        PVG_OUTER(outer_terms);
    else if constexpr (std::is_same_v<T, float>)
        PVG_OUTER(outer_terms_of_float32);
#undef PVG_OUTER
    return PVG_OK;
}

} // namespace

int launch_outer(Call &call, const Gemm &given, const Plan &plan) {
    return dispatch<floats>(given.dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        for (int64_t first = 0; first < given.items; first += plan.items) {
            Gemm g = moved(given, first * given.a_item, first * given.b_item, first * given.c_item);
            if (g.items > given.items - first) g.items = static_cast<int>(given.items - first);
            if (g.items > plan.items) g.items = plan.items;
            const OuterProduct p = describe(g, plan);
            const unsigned grid = blocks_for(g.items * plan.tiles, 1);
            PVG_PASS(launch_terms<T>(call, plan, grid, p));
        }
        return PVG_OK;
    });
}

} // namespace pvg::matmul
