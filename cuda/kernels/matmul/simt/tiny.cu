// Batches of tiny products of float32, float16 and bfloat16, m, n and k up to 32: one warp a
// product, with no barrier of a block. What counts is to stream: a lane asks for its 32 elements of
// a and 32 of b at once, and many warps are at it at the same time. mini.cu has those up to 16, and
// float64.
//
// The operands lie in shared memory as [k][row] and [k][column] of float32, with zeros up to 32 x
// 32. A lane owns 4 x 8 sums. They go back through shared memory, so that whole rows of c are
// stored. Every sum is one chain of multiply-adds over increasing k, as in the tiled kernel.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/tile.cuh"

namespace pvg::matmul {

namespace {

constexpr int side = tiny_side, warps = tiny_warps; // of a block: a product each
constexpr int transposed_pitch = 33; // of an operand that is stored along k: no bank conflicts
constexpr int sums_pitch = 36;       // of c in shared memory: none either
constexpr int lane_rows = 4, lane_columns = 8;

struct TinyProduct {
    const void *a, *b;
    Destination c;
    int64_t lda, ldb, a_item, b_item;
    int64_t items;
    int64_t rows; // of all items, where they are one matrix that is cut into items of m; or 0
    int m, n, k;
    bool aligned, c_aligned; // rows of a and b, of c consist of packs
};

// The last item may have fewer than the others.
__device__ __forceinline__ int rows_of_item(const TinyProduct &p, int64_t item) {
    const int64_t left = p.rows - item * p.m;
    return p.rows && left < p.m ? static_cast<int>(left) : p.m;
}

using Four = Vector<float, 4>;

// An operand on its way to shared memory: `lines` rows of `length` elements as it is stored.
// ALIGNED: a lane has packs of four elements of every fourth line, else one of every line.
template <class T, bool ALONG_K, bool ALIGNED> struct TinyOperand {
    static constexpr int pitch = ALONG_K ? transposed_pitch : side;
    static constexpr int width = ALIGNED ? 4 : 1, across = side / width, down = 32 / across;
    float values[side / down][width];

    __device__ __forceinline__ void load(const T *from, int64_t stride, int lines, int length) {
        const int lane = threadIdx.x % 32, line = lane / across, at = lane % across * width;
        const int left = at < length ? lines - line : 0;
        from += line * stride + at;
#pragma unroll
        for (int i = 0; i < side / down; i++) {
            Vector<T, width> pack = {};
            if (i * down < left) pack = *reinterpret_cast<const Vector<T, width> *>(from);
#pragma unroll
            for (int e = 0; e < width; e++) values[i][e] = widen(pack.element[e]);
            from += down * stride;
        }
    }
    __device__ __forceinline__ void store(float *shared) const {
        const int lane = threadIdx.x % 32, line = lane / across, at = lane % across * width;
#pragma unroll
        for (int i = 0; i < side / down; i++) {
            if (ALONG_K) {
#pragma unroll
                for (int e = 0; e < width; e++)
                    shared[(at + e) * pitch + line + i * down] = values[i][e];
            } else if (ALIGNED) {
                Four four;
#pragma unroll
                for (int e = 0; e < width; e++) four.element[e] = values[i][e];
                *reinterpret_cast<Four *>(shared + (line + i * down) * pitch + at) = four;
            } else {
                shared[(line + i * down) * pitch + at] = values[i][0];
            }
        }
    }
};

template <class T, bool A_ALONG_K, bool B_ALONG_K, bool ALIGNED>
__device__ __forceinline__ void load_operands(const TinyProduct &p, int64_t item, int m,
                                              float *shared_a, float *shared_b) {
    TinyOperand<T, A_ALONG_K, ALIGNED> a;
    TinyOperand<T, B_ALONG_K, ALIGNED> b;
    const T *const of_a = static_cast<const T *>(p.a) + item * p.a_item;
    const T *const of_b = static_cast<const T *>(p.b) + item * p.b_item;
    a.load(of_a, p.lda, A_ALONG_K ? m : p.k, A_ALONG_K ? p.k : m);
    b.load(of_b, p.ldb, B_ALONG_K ? p.n : p.k, B_ALONG_K ? p.k : p.n);
    a.store(shared_a);
    b.store(shared_b);
}

// Which row (column) of c a lane's i-th of COUNT is, if it is number `at` of 32 / COUNT. What is
// stored along k is read one by one, else in fours.
template <bool ALONG_K, int COUNT> __device__ __forceinline__ int place(int at, int i) {
    constexpr int lanes = 32 / COUNT;
    return ALONG_K ? at + i * lanes : i / 4 * 4 * lanes + at * 4 + i % 4;
}
template <bool ALONG_K, int COUNT>
__device__ __forceinline__ void read_line(const float *shared, int at, float (&values)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        if (ALONG_K) {
#pragma unroll
            for (int e = 0; e < 4; e++) values[i + e] = shared[place<ALONG_K, COUNT>(at, i + e)];
        } else {
            const Four four =
                *reinterpret_cast<const Four *>(shared + place<ALONG_K, COUNT>(at, i));
#pragma unroll
            for (int e = 0; e < 4; e++) values[i + e] = four.element[e];
        }
    }
}

// The lane's j-th of 8 sums of a row, and the three after it.
template <bool ALONG_K>
__device__ __forceinline__ void write_line(float *row, int at, int j, const float *sums) {
    if (ALONG_K) {
#pragma unroll
        for (int e = 0; e < 4; e++) row[place<ALONG_K, lane_columns>(at, j + e)] = sums[e];
    } else {
        const Four four = {{sums[0], sums[1], sums[2], sums[3]}};
        *reinterpret_cast<Four *>(row + place<ALONG_K, lane_columns>(at, j)) = four;
    }
}

// The warp's sums, as rows of c in shared memory.
template <class T>
__device__ __forceinline__ void finish_rows(const TinyProduct &p, int64_t item, int m,
                                            const float *shared) {
    const int lane = threadIdx.x % 32;
    const Destination c = p.c.moved(item * p.c.item_stride, sizeof(T));
    if (c.plain && p.c_aligned) {
        const int at = lane % 8 * 4;
#pragma unroll
        for (int i = 0; i < side / 4; i++) {
            const int row = lane / 8 + i * 4;
            if (row >= m || at >= p.n) continue;
            const Four sums = *reinterpret_cast<const Four *>(shared + row * sums_pitch + at);
            Vector<T, 4> pack;
#pragma unroll
            for (int e = 0; e < 4; e++) pack.element[e] = narrow<T>(sums.element[e]);
            store_at_once(static_cast<T *>(c.data) + row * c.row_stride + at, pack);
        }
        return;
    }
    if (lane >= p.n) return;
    RowPart<T, 1> one = {{}, {}, lane, 1, 1, false};
    load_bias<T>(c, lane, one.count, one.step, one.bias);
#pragma unroll 1
    for (int row = 0; row < m; row++) {
        one.sums[0] = shared[row * sums_pitch + lane];
        finish(c, one);
        one.at += c.row_stride;
    }
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
__global__ void __launch_bounds__(32 * warps, 5) tiny_product_kernel(TinyProduct p) {
    constexpr int a_size = side * (A_ALONG_K ? transposed_pitch : side);
    constexpr int b_size = side * (B_ALONG_K ? transposed_pitch : side);
    __shared__ __align__(16) float shared[warps][a_size + b_size];
    const int lane = threadIdx.x % 32, lane_row = lane / 4, lane_column = lane % 4;
    float *const shared_a = shared[threadIdx.x / 32], *const shared_b = shared_a + a_size;
    const int64_t item = static_cast<int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
    if (item >= p.items) return;
    const int m = rows_of_item(p, item);
    if (p.aligned)
        load_operands<T, A_ALONG_K, B_ALONG_K, true>(p, item, m, shared_a, shared_b);
    else
        load_operands<T, A_ALONG_K, B_ALONG_K, false>(p, item, m, shared_a, shared_b);
    __syncwarp();
    float sums[lane_rows][lane_columns] = {};
#pragma unroll 2
    for (int first = 0; first < p.k; first += 4) {
#pragma unroll
        for (int k = first; k < first + 4; k++) {
            float x[lane_rows], y[lane_columns];
            read_line<A_ALONG_K>(shared_a + k * (a_size / side), lane_row, x);
            read_line<B_ALONG_K>(shared_b + k * (b_size / side), lane_column, y);
#pragma unroll
            for (int i = 0; i < lane_rows; i++)
#pragma unroll
                for (int j = 0; j < lane_columns; j++)
                    sums[i][j] = multiply_add<float>(x[i], y[j], sums[i][j]);
        }
    }
    __syncwarp(); // the operands have been read
#pragma unroll
    for (int i = 0; i < lane_rows; i++) {
        float *row = shared_a + place<A_ALONG_K, lane_rows>(lane_row, i) * sums_pitch;
#pragma unroll
        for (int j = 0; j < lane_columns; j += 4)
            write_line<B_ALONG_K>(row, lane_column, j, &sums[i][j]);
    }
    __syncwarp();
    finish_rows<T>(p, item, m, shared_a);
}

// Whether rows of `length` consist of packs of four elements that may be moved at once.
bool allows_fours(const void *data, int64_t element, int length, int64_t stride, int64_t item) {
    const int64_t bytes = (length | stride | item) * element;
    return (static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)) | bytes) % (4 * element) == 0;
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
int launch_layout(Call &call, const TinyProduct &p, const Plan &plan) {
    PVG_LAUNCH((tiny_product_kernel<T, A_ALONG_K, B_ALONG_K>), blocks_for(plan.blocks, 1),
               plan.threads, plan.shared_bytes, call.stream, p);
    return PVG_OK;
}

template <class T> int launch_dtype(Call &call, const Gemm &given, const Plan &plan) {
    constexpr int64_t element = sizeof(T);
    TinyProduct p{};
    Gemm g = given;
    if (is_folded(given)) { // rows of one product, some a warp
        p.rows = int64_t(given.items) * given.m;
        g.m = plan.rows, g.items = plan.items;
        g.a_item = g.m * g.lda, g.c_item = g.m * g.ldc;
    }
    p.a = g.a, p.b = g.b, p.c = destination_of(g);
    p.lda = g.lda, p.ldb = g.ldb, p.a_item = g.a_item, p.b_item = g.b_item;
    p.items = g.items, p.m = g.m, p.n = g.n, p.k = g.k;
    const int k = static_cast<int>(g.k);
    p.aligned = allows_fours(g.a, element, g.a_along_k ? k : g.m, g.lda, g.a_item) &&
                allows_fours(g.b, element, g.b_along_k ? k : g.n, g.ldb, g.b_item);
    p.c_aligned = allows_fours(g.c, element, g.n, g.ldc, g.c_item);
    if (g.a_along_k)
        return g.b_along_k ? launch_layout<T, true, true>(call, p, plan)
                           : launch_layout<T, true, false>(call, p, plan);
    return g.b_along_k ? launch_layout<T, false, true>(call, p, plan)
                       : launch_layout<T, false, false>(call, p, plan);
}

} // namespace

int launch_tiny(Call &call, const Gemm &g, const Plan &plan) {
    if (plan.tile) return launch_mini(call, g, plan);
    switch (g.dtype) {
    case PVG_FLOAT16: return launch_dtype<Half>(call, g, plan);
    case PVG_BFLOAT16: return launch_dtype<BFloat16>(call, g, plan);
    default: return launch_dtype<float>(call, g, plan);
    }
}

} // namespace pvg::matmul
