// float32 products rounded to TF32 whose operands are read as they lie: the kernel of tf32.cuh,
// launched as plan/tf32.cu says.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/sm80/tf32.cuh"

namespace pvg::matmul {

namespace {

Tf32Operand operand_of(const Stored &x, const OperandPlan &plan) {
    const int64_t side = x.along_k ? x.rows : x.columns;
    return {static_cast<const float *>(x.data),
            x.rows > 1 ? x.stride : 0, // of one row no other address is made
            x.item,
            static_cast<int>(side),
            plan.alignment,
            x.along_k};
}

Tf32Product describe(const Gemm &g, const Plan &plan) {
    Tf32Product p{};
    p.a = operand_of(stored_a(g), plan.a), p.b = operand_of(stored_b(g), plan.b);
    p.c = destination_of(g);
    p.k = static_cast<int>(g.k);
    p.last_k = static_cast<int>(g.last_k ? g.last_k : g.k);
    p.rows = plan.rows, p.columns = plan.columns;
    p.tiles_down = static_cast<int>(tiles(g.m, plan.rows));
    p.tiles_across = static_cast<int>(tiles(g.n, plan.columns));
    p.packed = allows_16_bytes(g.c, g.ldc, g.c_item, 4) &&
               allows_16_bytes(g.epilogue.preactivation, 0, 0, 4);
    return p;
}

template <int NUMBER> int launch_tile(Call &call, const Gemm &g, const Plan &plan) {
    Tf32Product p = describe(g, plan);
    for (int64_t first = 0; first < g.items; first += plan.items) {
        const int64_t items = g.items - first < plan.items ? g.items - first : plan.items;
        p.last_item = first + items == g.items ? items - 1 : -1;
        PVG_LAUNCH_WITH((LaunchExtras{1, plan.overlap}), tf32_kernel<NUMBER>,
                        blocks_for(plan.tiles * items, 1), plan.threads, plan.shared_bytes,
                        call.stream, p);
        p.a.data += items * p.a.item, p.b.data += items * p.b.item;
        p.c = p.c.moved(items * p.c.item_stride, 4);
    }
    return PVG_OK;
}

} // namespace

int launch_tensor_tf32(Call &call, const Gemm &g, const Plan &plan) {
    switch (plan.tile) {
    case 0: return launch_tile<0>(call, g, plan);
    case 1: return launch_tile<1>(call, g, plan);
    case 2: return launch_tile<2>(call, g, plan);
    }
    return launch_tile<3>(call, g, plan);
}

} // namespace pvg::matmul
