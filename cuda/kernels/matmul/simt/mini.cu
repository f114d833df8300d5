// Batches of products of float32, float16 and bfloat16 whose m, n and k are at most 16: four to a
// warp, eight lanes each; tiny.cu says what counts, and has the larger ones. Layouts are numbers
// here, so that there is one kernel for all of them.
//
// The operands lie in shared memory as [k][row] and [k][column] of float32. A lane owns 4 x 8 sums,
// which go back through shared memory, so that whole rows of c are stored. Every sum is one chain of
// multiply-adds over increasing k, as in the tiled kernel.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/tile.cuh"

namespace pvg::matmul {

namespace {

constexpr int side = mini_side, warps = tiny_warps, lanes = 32 / mini_items; // of a product
constexpr int pitch = side + 4, area = side * pitch + 16; // floats; 16: against bank conflicts

struct MiniOperand {
    const void *data;
    int64_t stride, item;
    bool along_k;
};
struct MiniProduct {
    MiniOperand a, b;
    Destination c;
    int64_t items;
    int64_t rows; // of all items, where they are one matrix that is cut into items of m; or 0
    int m, n, k;
};

// `lines` lines of `length` elements as they are stored, all on their way at once.
template <class T> struct MiniLoader {
    float values[side][side / lanes];

    __device__ __forceinline__ void load(const MiniOperand &x, int64_t item, int lines,
                                         int length) {
        const int at = static_cast<int>(threadIdx.x) % lanes;
        const T *from = static_cast<const T *>(x.data) + item * x.item + at;
#pragma unroll
        for (int i = 0; i < side; i++) {
#pragma unroll
            for (int j = 0; j < side / lanes; j++) {
                const bool exists = i < lines && at + j * lanes < length;
                values[i][j] = exists ? widen(from[j * lanes]) : 0.0f;
            }
            from += x.stride;
        }
    }
    __device__ __forceinline__ void store(float *shared, bool along_k) const {
        const int line_step = along_k ? 1 : pitch, step = along_k ? pitch : 1;
        shared += static_cast<int>(threadIdx.x) % lanes * step;
#pragma unroll
        for (int i = 0; i < side; i++)
#pragma unroll
            for (int j = 0; j < side / lanes; j++)
                shared[i * line_step + j * lanes * step] = values[i][j];
    }
};

// The product's sums, as rows of c in shared memory.
template <class T>
__device__ __forceinline__ void finish_rows(const MiniProduct &p, int64_t item, int m,
                                            const float *shared) {
    const int at = static_cast<int>(threadIdx.x) % lanes;
    const Destination c = p.c.moved(item * p.c.item_stride, sizeof(T));
    RowPart<T, 2> two = {{}, {}, at, p.n - at, lanes, false};
    load_bias<T>(c, at, two.count, two.step, two.bias);
#pragma unroll 1
    for (int row = 0; row < m; row++) {
        two.sums[0] = shared[row * pitch + at], two.sums[1] = shared[row * pitch + at + lanes];
        finish(c, two);
        two.at += c.row_stride;
    }
}

template <class T>
__global__ void __launch_bounds__(32 * warps, 5) mini_product_kernel(MiniProduct p) {
    __shared__ __align__(16) float shared[warps * mini_items][2 * area];
    const int product = static_cast<int>(threadIdx.x) / lanes; // of the block's
    const int lane = static_cast<int>(threadIdx.x) % lanes, row = lane / 2 * 4,
              column = lane % 2 * 8;
    float *const shared_a = shared[product], *const shared_b = shared_a + area;
    const int64_t item = static_cast<int64_t>(blockIdx.x) * (warps * mini_items) + product;
    int m = item < p.items ? p.m : 0; // the last of one matrix's rows may be fewer
    if (p.rows && p.rows - item * p.m < m) m = static_cast<int>(p.rows - item * p.m);
    {
        MiniLoader<T> a, b;
        const int k = m ? p.k : 0;
        a.load(p.a, item, p.a.along_k ? m : k, p.a.along_k ? k : m);
        b.load(p.b, item, p.b.along_k ? p.n : k, p.b.along_k ? k : p.n);
        a.store(shared_a, p.a.along_k);
        b.store(shared_b, p.b.along_k);
    }
    __syncwarp();
    float sums[4][8] = {};
#pragma unroll 2
    for (int k = 0; k < p.k; k++) {
        float x[4], y[8];
        const Vector<float, 4> *const of_a =
            reinterpret_cast<const Vector<float, 4> *>(shared_a + k * pitch + row);
        const Vector<float, 4> *const of_b =
            reinterpret_cast<const Vector<float, 4> *>(shared_b + k * pitch + column);
#pragma unroll
        for (int e = 0; e < 4; e++)
            x[e] = of_a->element[e], y[e] = of_b->element[e], y[4 + e] = of_b[1].element[e];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) sums[i][j] = multiply_add<float>(x[i], y[j], sums[i][j]);
    }
    __syncwarp(); // the operands have been read
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            const Vector<float, 4> four = {
                {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]}};
            *reinterpret_cast<Vector<float, 4> *>(shared_a + (row + i) * pitch + column + j) = four;
        }
    __syncwarp();
    finish_rows<T>(p, item, m, shared_a);
}

template <class T> int launch(Call &call, const MiniProduct &p, const Plan &plan) {
    PVG_LAUNCH((mini_product_kernel<T>), blocks_for(plan.blocks, 1), plan.threads,
               plan.shared_bytes, call.stream, p);
    return PVG_OK;
}

} // namespace

int launch_mini(Call &call, const Gemm &g, const Plan &plan) {
    MiniProduct p = {{g.a, g.lda, g.a_item, g.a_along_k},
                     {g.b, g.ldb, g.b_item, g.b_along_k},
                     destination_of(g),
                     g.items,
                     0,
                     g.m,
                     g.n,
                     static_cast<int>(g.k)};
    if (is_folded(g)) { // rows of one product
        p.rows = int64_t(g.items) * g.m;
        p.m = plan.rows, p.items = plan.items;
        p.a.item = plan.rows * g.lda, p.c.item_stride = plan.rows * g.ldc;
    }
    switch (g.dtype) {
    case PVG_FLOAT16: return launch<Half>(call, p, plan);
    case PVG_BFLOAT16: return launch<BFloat16>(call, p, plan);
    default: return launch<float>(call, p, plan);
    }
}

} // namespace pvg::matmul
