// From a problem to launches: the plan of a product, or of each of a batch's rounds, goes to the
// kernel that it names.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "runtime/device.cuh"

namespace pvg {

std::atomic<int64_t> option_matmul_kernel, option_matmul_precision{PVG_PRECISION_FLOAT32};

namespace matmul {

namespace {

using Launch = int (*)(Call &, const Gemm &, const Plan &);

// Null: the kernel is not in this library.
Launch launch_of(int code) {
    switch (code) {
    case PVG_MATMUL_GEMV: return launch_gemv;
    case PVG_MATMUL_TINY: return launch_tiny;
    case PVG_MATMUL_THIN: return launch_thin;
    case PVG_MATMUL_OUTER: return launch_outer;
    case PVG_MATMUL_FFMA_128X128:
    case PVG_MATMUL_FFMA_64X128:
    case PVG_MATMUL_FFMA_64X64:
    case PVG_MATMUL_FFMA_64X32: return launch_ffma;
    case PVG_MATMUL_FFMA_TMA: return launch_ffma_tma;
    case PVG_MATMUL_TENSOR_SMALL: return launch_tensor_small;
    case PVG_MATMUL_TENSOR_TF32: return launch_tensor_tf32;
#ifndef PVG_SIMULATOR // it has no tensor cores
    case PVG_MATMUL_TENSOR: return launch_tensor;
    case PVG_MATMUL_TENSOR_SM80: return launch_tensor_sm80;
    case PVG_MATMUL_BF16X6: return launch_bf16x6;
    case PVG_MATMUL_FP16X3: return launch_fp16x3;
    case PVG_MATMUL_DMMA: return launch_dmma;
#endif
    }
    return nullptr;
}

constexpr int64_t most_rounds = 4; // of launches of tiny products

// The batch's dimension that is left to the kernel: the longest; -1 without a batch.
int longest(const Walk<3> &batch) {
    int best = -1;
    for (int i = 0; i < batch.ndim; i++)
        if (best < 0 || batch.shape[i] > batch.shape[best]) best = i;
    return best;
}

// Both dimensions of a batch, for the kernels that take them in one launch.
bool describe_both(const Problem &problem, int inner, Gemm *g) {
    const Walk<3> &batch = problem.product.batch;
    constexpr int64_t most = 1 << 20; // items
    if (batch.ndim != 2 || problem.items > most) return false;
    const int outer = 1 - inner;
    g->inner = g->items, g->items = static_cast<int>(problem.items);
    g->c_outer = batch.strides[0][outer];
    g->a_outer = batch.strides[1][outer], g->b_outer = batch.strides[2][outer];
    return true;
}

// Whether the outer dimension's distance keeps the alignment of rows and items, up to 4 elements,
// which is all that plans ask of these. (That of TENSOR_SMALL looks at the distance itself.)
bool keeps_alignment(int64_t outer, int64_t row, int64_t item) {
    const int64_t others = row | item | 4;
    return outer % (others & -others) == 0;
}
bool keeps_alignment(const Gemm &g) {
    return keeps_alignment(g.a_outer, g.lda, g.a_item) &&
           keeps_alignment(g.b_outer, g.ldb, g.b_item) &&
           keeps_alignment(g.c_outer, g.ldc, g.c_item);
}

// Of the kernels that may take both dimensions, if the plan reads operands in place and takes all
// items at a time. Where the other dimension's distance is an odd one, that dimension is the inner
// one: a plan asks of the items' distance what vectors it may have.
bool plan_both(const Problem &problem, int inner, const Kernel &kernel, const Card &card, Gemm *g,
               Plan *plan) {
    const bool is_small = kernel.code == PVG_MATMUL_TENSOR_SMALL;
    const bool may =
        is_small || kernel.code == PVG_MATMUL_DMMA || launch_of(kernel.code) == launch_ffma;
    if (!may || !describe_both(problem, inner, g)) return false;
    if (!is_small && !keeps_alignment(*g) &&
        !(describe_gemm(problem, 1 - inner, g) && describe_both(problem, 1 - inner, g) &&
          keeps_alignment(*g) && is_able(kernel, *g, card)))
        return false;
    *plan = recall_plan(kernel, *g, card);
    return plan->items == g->items && plan->a.copying == Copying::none &&
           plan->b.copying == Copying::none;
}

// A plan looks at addresses too, so each round has its own.
int launch_batch(Call &call, const Kernel &kernel, const Card &card, const Problem &problem,
                 const Gemm &first, int inner, bool may_be_cut) {
    const Walk<3> &batch = problem.product.batch;
    const Stretches cut = may_be_cut ? recall_stretches(kernel, first) : Stretches();
    Gemm both = first;
    Plan plan;
    if (!cut.kernel && plan_both(problem, inner, kernel, card, &both, &plan))
        return launch_of(kernel.code)(call, both, plan);
    if (!cut.kernel && batch.ndim == 1 && fold_rows(kernel, first, &both) &&
        is_able(kernel, both, card))
        return launch_planned(call, kernel, both, card);
    int64_t rounds = problem.items / first.items;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t offset[3] = {0, 0, 0}, rest = round;
        for (int i = batch.ndim; i-- > 0;) {
            if (i == inner) continue;
            for (int operand = 0; operand < 3; operand++)
                offset[operand] += rest % batch.shape[i] * batch.strides[operand][i];
            rest /= batch.shape[i];
        }
        const Gemm g = moved(first, offset[1], offset[2], offset[0]);
        if (cut.kernel)
            PVG_PASS(launch_stretches(call, g, card, cut));
        else
            PVG_PASS(launch_planned(call, kernel, g, card));
    }
    return PVG_OK;
}

} // namespace

int launch_planned(Call &call, const Kernel &kernel, const Gemm &g, const Card &card) {
    return launch_of(kernel.code)(call, g, recall_plan(kernel, g, card));
}

int check_precision(int *precision) {
    if (*precision == PVG_PRECISION_DEFAULT) *precision = static_cast<int>(option_matmul_precision);
    PVG_REQUIRE(*precision >= PVG_PRECISION_IEEE && *precision <= PVG_PRECISION_FP16,
                PVG_ERROR_VALUE, "unknown precision code %d", *precision);
    return PVG_OK;
}

int launch_product(Call &call, const Problem &problem) {
    int forced = static_cast<int>(option_matmul_kernel), inner = longest(problem.product.batch);
    if (forced == PVG_MATMUL_TILED) return launch_tiled(call, problem);
    Card card;
    PVG_PASS(card_of(problem.device, &card));
    Gemm g;
    bool is_gemm = describe_gemm(problem, inner, &g);
    const Kernel *kernel = nullptr;
    if (forced != PVG_MATMUL_AUTO) {
        kernel = kernel_of(forced);
        PVG_REQUIRE(
            kernel && is_gemm && is_able(*kernel, g, card), PVG_ERROR_VALUE,
            "the kernel that is forced (%s) cannot compute %s of (%lld, %lld) @ (%lld, "
            "%lld) on this device",
            kernel ? kernel->name : "unknown", dtype_name(problem.dtype),
            static_cast<long long>(problem.product.m), static_cast<long long>(problem.product.k),
            static_cast<long long>(problem.product.k), static_cast<long long>(problem.product.n));
    } else if (is_gemm) {
        kernel = recall_choice(g, card);
        // A batch in several dimensions: the tiled kernel takes all of it at once, with the bits of
        // the tiny one.
        if (kernel && kernel->code == PVG_MATMUL_TINY && problem.items / g.items > most_rounds)
            kernel = nullptr;
    }
    const bool may_be_cut = forced == PVG_MATMUL_AUTO;
    return kernel ? launch_batch(call, *kernel, card, problem, g, inner, may_be_cut)
                  : launch_tiled(call, problem);
}

} // namespace matmul
} // namespace pvg
