// Products of float16 and bfloat16 of many small matrices: the kernel of small_items.cuh, launched
// as plan/tensor_small.cu says.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/sm80/small_items.cuh"

namespace pvg::matmul {

namespace {

// Behind the last of an operand's elements, wherever strides lead. x: the last item, which may be a
// shorter stretch than the others.
const uint16_t *behind_all(const Stored &x, const Gemm &g, int64_t outer) {
    const auto reach = [](int64_t count, int64_t step) {
        return step > 0 ? (count - 1) * step : 0;
    };
    const int64_t inner = g.inner ? g.inner : g.items;
    return static_cast<const uint16_t *>(x.data) + reach(x.rows, x.stride) + x.columns +
           reach(inner, x.item) + reach(g.items / inner, outer);
}

SmallItems describe(const Gemm &g, const Plan &plan) {
    const int side = small_items_side(plan.tile), k = static_cast<int>(g.k);
    SmallItems p{};
    p.a = small_operand(stored_a(g), plan.a, g.a_outer);
    p.b = small_operand(stored_b(g), plan.b, g.b_outer);
    Gemm last = g;
    last.k = g.last_k ? g.last_k : g.k;
    p.a.behind = behind_all(stored_a(last), g, g.a_outer);
    p.b.behind = behind_all(stored_b(last), g, g.b_outer);
    p.c = g.c, p.c_row = g.ldc, p.c_item = g.c_item, p.c_outer = g.c_outer;
    p.k = k, p.last_k = static_cast<int>(last.k), p.items = g.items, p.inner = g.inner;
    p.a_bytes = small_items_part_bytes(g.m, side, k, g.a_along_k);
    p.stage_bytes = plan.shared_bytes / small_items_stages / 16 * 16;
    p.single = g.c_dtype == PVG_FLOAT32;
    p.pairs = stores_pairs(g);
    return p;
}

template <class T> int launch_dtype(Call &call, const Gemm &g, const Plan &plan) {
    const SmallItems p = describe(g, plan);
    const LaunchExtras extras{1, plan.overlap};
#define PVG_SMALL_ITEMS(TILE)                                                          \
    PVG_LAUNCH_WITH(extras, (small_items_kernel<T, TILE>), blocks_for(plan.blocks, 1), \
                    plan.threads, plan.shared_bytes, call.stream, p)
    if (plan.tile == small_items_128)
        PVG_SMALL_ITEMS(small_items_128);
    else
        PVG_SMALL_ITEMS(small_items_packs);
#undef PVG_SMALL_ITEMS
    return PVG_OK;
}

} // namespace

int launch_small_items(Call &call, const Gemm &g, const Plan &plan) {
    return g.dtype == PVG_FLOAT16 ? launch_dtype<Half>(call, g, plan)
                                  : launch_dtype<BFloat16>(call, g, plan);
}

} // namespace pvg::matmul
