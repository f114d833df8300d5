// float16, bfloat16 and TF32 products by mma.sync: the launch of the kernel of tensor.cuh.
//
// Halves are taken as they lie, in every layout. What cp.async cannot read in 16 bytes, and float32
// operands that the precision rounds to 16 bits, are copied beforehand. TF32 wants both operands
// along k, which pretranspose.cu sees to.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/pretranspose.cuh"
#include "kernels/matmul/sm80/tensor.cuh"

namespace pvg::matmul {

namespace {

// ---- Copies of operands -------------------------------------------------------------------------

// A matrix as it is stored, and its copy in another dtype, whose rows begin at multiples of 16
// bytes.
struct Conversion {
    const void *from;
    void *to;
    int64_t items, rows, columns, stride, item; // of the original
    int64_t pitch;                              // of the copies, which lie one behind another
};
constexpr int converted = 8; // elements of a thread

template <class From, class To>
__global__ void __launch_bounds__(threads) convert_kernel(Conversion job) {
    let_next_kernel_start();
    wait_for_previous_kernel();
    const int64_t packs = job.pitch / converted;
    const int64_t index = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    const int64_t line = index / packs, column = index % packs * converted;
    const int64_t row = line % job.rows, item = line / job.rows;
    if (item >= job.items) return;
    const From *from =
        static_cast<const From *>(job.from) + item * job.item + row * job.stride + column;
    Vector<To, converted> pack;
#pragma unroll
    for (int e = 0; e < converted; e++) {
        const From value = column + e < job.columns ? from[e] : From(0.0f);
        if constexpr (std::is_same_v<From, To>)
            pack.element[e] = value;
        else
            pack.element[e] = To(value);
    }
    *reinterpret_cast<decltype(pack) *>(static_cast<To *>(job.to) + line * job.pitch + column) =
        pack;
}

// Replaces an operand by the copy in `space` that the plan says; where it says none, leaves it.
template <class From, class To>
int convert(Call &call, const Plan &all, const OperandPlan &plan, const Stored &from,
            const void **data, Workspace *space) {
    if (plan.copying == Copying::none) return PVG_OK;
    PVG_PASS(space->open(call, static_cast<size_t>(plan.bytes)));
    const Conversion job = {from.data,    space->as<void>(), from.items, from.rows,
                            from.columns, from.stride,       from.item,  plan.stride};
    const int64_t size = job.items * job.rows * job.pitch;
    PVG_LAUNCH_WITH((LaunchExtras{1, all.overlap}), (convert_kernel<From, To>),
                    blocks_for(size / converted, threads), threads, 0, call.stream, job);
    *data = job.to;
    return PVG_OK;
}

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

// Operands of From (the dtype of the product), multiplied as T.
template <class From, class T>
int launch_halves(Call &call, const Gemm &given, const Plan &plan) {
    Gemm g = arranged(given, plan.a, plan.b);
    Workspace copy_a, copy_b;
    PVG_PASS((convert<From, T>(call, plan, plan.a, stored_a(given), &g.a, &copy_a)));
    PVG_PASS((convert<From, T>(call, plan, plan.b, stored_b(given), &g.b, &copy_b)));
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
    if (g.dtype == PVG_FLOAT16) return launch_halves<Half, Half>(call, g, plan);
    if (g.dtype == PVG_BFLOAT16) return launch_halves<BFloat16, BFloat16>(call, g, plan);
    if (g.precision == PVG_PRECISION_FP16) return launch_halves<float, Half>(call, g, plan);
    if (g.precision == PVG_PRECISION_BF16) return launch_halves<float, BFloat16>(call, g, plan);
    return launch_tf32(call, g, plan);
}

} // namespace pvg::matmul
#endif
