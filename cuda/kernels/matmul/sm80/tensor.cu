// float16, bfloat16 and TF32 products by mma.sync: the launch of the kernel of tensor.cuh.
//
// Halves are taken as they lie, in every layout. What cp.async cannot read in 16 bytes, and float32
// operands that the precision rounds to 16 bits, are copied beforehand (convert.cuh). TF32 wants
// both operands along k, which pretranspose.cu sees to.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/pretranspose.cuh"
#include "kernels/matmul/sm80/convert.cuh"
#include "kernels/matmul/sm80/tensor.cuh"

namespace pvg::matmul {

namespace {

// ---- Launching ----------------------------------------------------------------------------------

static_assert(side == warp_side && threads == warp_threads && stages == warp_stages &&
              sums_pitch == warp_sums_pitch);
static_assert(MmaLoader<Half, true>::bytes == warp_stage_bytes(2, true) &&
              MmaLoader<Half, false>::bytes == warp_stage_bytes(2, false) &&
              MmaLoader<float, true>::bytes == warp_stage_bytes(4, true));

WarpProduct describe(const Gemm &g) {
    WarpProduct p{};
    p.a = g.a, p.b = g.b, p.c = destination_of(g);
    p.lda = g.lda, p.ldb = g.ldb, p.a_item = g.a_item, p.b_item = g.b_item;
    p.m = g.m, p.n = g.n, p.k = g.k;
    p.tiles_down = static_cast<int>(tiles(g.m, side));
    p.tiles_across = static_cast<int>(tiles(g.n, side));
    const int64_t size = dtype_size(g.dtype);
    p.aligned = allows_16_bytes(g.c, g.ldc, g.c_item, size) &&
                allows_16_bytes(g.epilogue.preactivation, 0, 0, size);
    return p;
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
int launch_layout(Call &call, const Gemm &g, const Plan &plan) {
    WarpProduct p = describe(g);
    const int64_t size = dtype_size(g.dtype);
    for (int64_t first = 0; first < g.items; first += plan.items) {
        const int64_t items = g.items - first < plan.items ? g.items - first : plan.items;
        PVG_LAUNCH_WITH((LaunchExtras{1, plan.overlap}), (mma_kernel<T, A_ALONG_K, B_ALONG_K>),
                        blocks_for(plan.tiles * items, 1), plan.threads, plan.shared_bytes,
                        call.stream, p);
        p.a = static_cast<const T *>(p.a) + items * p.a_item;
        p.b = static_cast<const T *>(p.b) + items * p.b_item;
        p.c = p.c.moved(items * p.c.item_stride, size);
    }
    return PVG_OK;
}

// Operands that are multiplied as T.
template <class T>
int launch_halves(Call &call, const Gemm &given, const Plan &plan) {
    Gemm g = arranged(given, plan.a, plan.b);
    Workspace copy_a, copy_b;
    const int type = std::is_same_v<T, Half> ? PVG_FLOAT16 : PVG_BFLOAT16;
    PVG_PASS(convert_operand(call, g.dtype, type, plan, plan.a, stored_a(given), &g.a, &copy_a));
    PVG_PASS(convert_operand(call, g.dtype, type, plan, plan.b, stored_b(given), &g.b, &copy_b));
    if (g.a_along_k)
        return g.b_along_k ? launch_layout<T, true, true>(call, g, plan)
                           : launch_layout<T, true, false>(call, g, plan);
    return g.b_along_k ? launch_layout<T, false, true>(call, g, plan)
                       : launch_layout<T, false, false>(call, g, plan);
}

int launch_tf32(Call &call, const Gemm &given, const Plan &plan) {
    Gemm g = given;
    Workspace space;
    PVG_PASS(arrange_operands(call, &g, plan, &space));
    return launch_layout<float, true, true>(call, g, plan);
}

} // namespace

int launch_tensor_sm80(Call &call, const Gemm &g, const Plan &plan) {
    switch (multiplied_type(g)) {
    case PVG_FLOAT16: return launch_halves<Half>(call, g, plan);
    case PVG_BFLOAT16: return launch_halves<BFloat16>(call, g, plan);
    default: return launch_tf32(call, g, plan);
    }
}

} // namespace pvg::matmul
#endif
