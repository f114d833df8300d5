// Batches of products of floats whose m, n and k are at most 16: four to a warp, eight lanes each;
// and of float64 up to 32, a warp each. tiny.cu says what counts, and has the larger ones of the
// other dtypes. Layouts are numbers here, so that there is one kernel for all of them.
//
// The operands lie in shared memory as [k][row] and [k][column], of the type of sums. A lane owns
// 4 x 8 sums, which go back through shared memory, so that whole rows of c are stored. Every sum is
// one chain of multiply-adds over increasing k, as in the tiled kernel.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/tile.cuh"

namespace pvg::matmul {

namespace {

// SIDE: the most of m, n and k.
template <class T, int SIDE> struct MiniShape {
    using S = SumType<T>;
    using Four = Vector<S, 4>;
    static constexpr int lanes = SIDE * SIDE / 32; // of a product: each has 4 x 8 sums
    static constexpr int warps = mini_warps(sizeof(S)), products = warps * 32 / lanes;
    static constexpr int pitch = SIDE + 4, area = SIDE * pitch + 16; // 16: against bank conflicts
};

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
template <class T, int SIDE> struct MiniLoader {
    using Shape = MiniShape<T, SIDE>;
    static constexpr int lanes = Shape::lanes;
    SumType<T> values[SIDE][SIDE / lanes];

    __device__ __forceinline__ void load(const MiniOperand &x, int64_t item, int lines,
                                         int length) {
        const int at = static_cast<int>(threadIdx.x) % lanes;
        const T *from = static_cast<const T *>(x.data) + item * x.item + at;
#pragma unroll
        for (int i = 0; i < SIDE; i++) {
#pragma unroll
            for (int j = 0; j < SIDE / lanes; j++) {
                const bool exists = i < lines && at + j * lanes < length;
                values[i][j] = exists ? widen(from[j * lanes]) : SumType<T>(0);
            }
            from += x.stride;
        }
    }
    __device__ __forceinline__ void store(SumType<T> *shared, bool along_k) const {
        const int line_step = along_k ? 1 : Shape::pitch, step = along_k ? Shape::pitch : 1;
        shared += static_cast<int>(threadIdx.x) % lanes * step;
#pragma unroll
        for (int i = 0; i < SIDE; i++)
#pragma unroll
            for (int j = 0; j < SIDE / lanes; j++)
                shared[i * line_step + j * lanes * step] = values[i][j];
    }
};

// The product's sums, as rows of c in shared memory.
template <class T, int SIDE>
__device__ __forceinline__ void finish_rows(const MiniProduct &p, int64_t item, int m,
                                            const SumType<T> *shared) {
    using Shape = MiniShape<T, SIDE>;
    constexpr int each = SIDE / Shape::lanes; // of a row, a lane
    const int at = static_cast<int>(threadIdx.x) % Shape::lanes;
    const Destination c = p.c.moved(item * p.c.item_stride, sizeof(T));
    RowPart<T, each> part = {{}, {}, at, p.n - at, Shape::lanes, false};
    load_bias<T>(c, at, part.count, part.step, part.bias);
#pragma unroll 1
    for (int row = 0; row < m; row++) {
#pragma unroll
        for (int e = 0; e < each; e++)
            part.sums[e] = shared[row * Shape::pitch + at + e * Shape::lanes];
        finish(c, part);
        part.at += c.row_stride;
    }
}

template <class T, int SIDE>
__global__ void __launch_bounds__(32 * mini_warps(sizeof(SumType<T>)), 5)
    mini_product_kernel(MiniProduct p) {
    using Shape = MiniShape<T, SIDE>;
    using S = SumType<T>;
    using Four = typename Shape::Four;
    __shared__ __align__(16) S shared[Shape::products][2 * Shape::area];
    const int product = static_cast<int>(threadIdx.x) / Shape::lanes; // of the block's
    const int lane = static_cast<int>(threadIdx.x) % Shape::lanes;
    const int row = lane / (SIDE / 8) * 4, column = lane % (SIDE / 8) * 8;
    S *const shared_a = shared[product], *const shared_b = shared_a + Shape::area;
    const int64_t item = static_cast<int64_t>(blockIdx.x) * Shape::products + product;
    int m = item < p.items ? p.m : 0; // the last of one matrix's rows may be fewer
    if (p.rows && p.rows - item * p.m < m) m = static_cast<int>(p.rows - item * p.m);
    {
        MiniLoader<T, SIDE> a, b;
        const int k = m > 0 ? p.k : 0;
        a.load(p.a, item, p.a.along_k ? m : k, p.a.along_k ? k : m);
        b.load(p.b, item, p.b.along_k ? p.n : k, p.b.along_k ? k : p.n);
        a.store(shared_a, p.a.along_k);
        b.store(shared_b, p.b.along_k);
    }
    __syncwarp();
    S sums[4][8] = {};
#pragma unroll 2
    for (int k = 0; k < p.k; k++) {
        S x[4], y[8];
        const Four *const of_a = reinterpret_cast<const Four *>(shared_a + k * Shape::pitch + row);
        const Four *const of_b =
            reinterpret_cast<const Four *>(shared_b + k * Shape::pitch + column);
        const Four left = of_a[0], right[2] = {of_b[0], of_b[1]};
#pragma unroll
        for (int e = 0; e < 4; e++)
            x[e] = left.element[e], y[e] = right[0].element[e], y[4 + e] = right[1].element[e];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) sums[i][j] = multiply_add<S>(x[i], y[j], sums[i][j]);
    }
    __syncwarp(); // the operands have been read
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            const Four four = {{sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]}};
            *reinterpret_cast<Four *>(shared_a + (row + i) * Shape::pitch + column + j) = four;
        }
    __syncwarp();
    finish_rows<T, SIDE>(p, item, m, shared_a);
}

template <class T, int SIDE = mini_side> int launch(Call &call, const MiniProduct &p,
                                                    const Plan &plan) {
    PVG_LAUNCH((mini_product_kernel<T, SIDE>), blocks_for(plan.blocks, 1), plan.threads,
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
    case PVG_FLOAT64:
        return plan.rows == mini_side ? launch<double>(call, p, plan)
                                      : launch<double, tiny_side>(call, p, plan);
    default: return launch<float>(call, p, plan);
    }
}

} // namespace pvg::matmul
