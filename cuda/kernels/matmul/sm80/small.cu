// Products of float16 and bfloat16 in small tiles: the kernel of small.cuh, launched as
// plan/tensor_small.cu says.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/sm80/small.cuh"

namespace pvg::matmul {

namespace {

SmallProduct describe(const Gemm &g, const Plan &plan) {
    SmallProduct p{};
    const SmallOperand a = small_operand(stored_a(g), plan.a, g.a_outer);
    const SmallOperand b = small_operand(stored_b(g), plan.b, g.b_outer);
    p.inner = g.inner, p.c_outer = g.c_outer;
    p.transposed = plan.transposed;
    p.rows = p.transposed ? b : a, p.columns = p.transposed ? a : b;
    p.c = destination_of(g);
    p.k = static_cast<int>(g.k), p.splits = plan.splits;
    p.last_k = static_cast<int>(g.last_k ? g.last_k : g.k);
    p.tiles_down = static_cast<int>(tiles(p.rows.side, small_rows[plan.tile]));
    p.tiles_across = static_cast<int>(tiles(p.columns.side, small_side));
    const int64_t four = 4 * dtype_size(g.c_dtype);
    const auto allows_four = [four](const void *data, int64_t elements) {
        return (static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)) | elements * four / 4) %
                   four ==
               0;
    };
    p.direct = plan.direct;
    p.pairs = stores_pairs(g);
    p.packed =
        allows_four(g.c, g.ldc | g.c_item | g.c_outer) && allows_four(g.epilogue.preactivation, 0);
    return p;
}

template <class T, int NUMBER> int launch_tile(Call &call, const Gemm &g, const Plan &plan) {
    constexpr int rows = small_rows[NUMBER];
    SmallProduct p = describe(g, plan);
    const int64_t size = dtype_size(g.c_dtype);
    for (int64_t first = 0; first < g.items; first += plan.items) {
        const int64_t items = g.items - first < plan.items ? g.items - first : plan.items;
        p.last_item = first + items == g.items ? items - 1 : -1;
        const LaunchExtras extras{static_cast<unsigned>(plan.splits), plan.overlap};
        PVG_LAUNCH_WITH(extras, (small_product_kernel<T, rows>),
                        blocks_for(plan.tiles * items * plan.splits, 1), plan.threads,
                        plan.shared_bytes, call.stream, p);
        p.rows.data = static_cast<const T *>(p.rows.data) + items * p.rows.item;
        p.columns.data = static_cast<const T *>(p.columns.data) + items * p.columns.item;
        p.c = p.c.moved(items * p.c.item_stride, size);
    }
    return PVG_OK;
}

template <class T> int launch_dtype(Call &call, const Gemm &g, const Plan &plan) {
    switch (plan.tile) {
    case 0: return launch_tile<T, 0>(call, g, plan);
    case 1: return launch_tile<T, 1>(call, g, plan);
    case 2: return launch_tile<T, 2>(call, g, plan);
    default: return launch_small_items(call, g, plan);
    }
}

} // namespace

int launch_tensor_small(Call &call, const Gemm &g, const Plan &plan) {
    return g.dtype == PVG_FLOAT16 ? launch_dtype<Half>(call, g, plan)
                                  : launch_dtype<BFloat16>(call, g, plan);
}

} // namespace pvg::matmul
