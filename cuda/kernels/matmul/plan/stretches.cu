// Which products are cut into stretches of k; see plan.cuh.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>

namespace pvg::matmul {

// An a along m beside a b along k: the product of the transposed matrices needs no copy of them,
// and costs stores of c, which are few where k is long. TENSOR_TF32 never copies; TENSOR knows what
// turning saves.
static bool pays_turning(const Kernel &kernel, const Gemm &g) {
    return kernel.code != PVG_MATMUL_TENSOR && kernel.code != PVG_MATMUL_TENSOR_TF32 &&
           !g.a_along_k && g.b_along_k && g.k >= g.m && g.k >= g.n;
}

// Terms of k up to which a kernel never splits k, whatever m and n are.
static int64_t never_split(int kernel) {
    switch (kernel) {
    case PVG_MATMUL_TENSOR_SMALL: return cost::least_k_to_split_small - 1;
    case PVG_MATMUL_DMMA: return 7 * dmma_depth; // two splits are of four stages each
    case PVG_MATMUL_OUTER: return INT_MAX;       // has one chain
    case PVG_MATMUL_FFMA_128X128: return 255;    // has no splits, but from 256 on halves that wait
    }
    return 0;
}

bool fold_rows(const Kernel &kernel, const Gemm &g, Gemm *tall) {
    const bool evenly = g.a_along_k && g.b_item == 0 && g.a_item == g.m * g.lda &&
                        g.c_item == g.m * g.ldc && int64_t(g.m) * g.items <= INT_MAX / 2;
    if (!evenly || g.items < 2 || g.k > never_split(kernel.code) || !g.epilogue.is_plain())
        return false;
    // TENSOR_SMALL computes c transposed by its sides, which the taller one's must not change.
    if (g.n <= small_rows[1] && g.n >= g.m) return false;
    *tall = g;
    tall->m = g.m * g.items, tall->items = 1;
    tall->a_item = tall->c_item = 0;
    return true;
}

Stretches stretches_of(const Kernel &kernel, const Gemm &g) {
    Stretches cut;
    cut.terms = g.k;
    cut.turned = kernel.code == PVG_MATMUL_TENSOR && turning_saves_copies(g);
    const Gemm computed = cut.turned ? turned(g) : g;
    const int64_t count = kernel.stretches ? kernel.stretches(computed) : 1;
    if (count < 2) {
        if (cut.turned) cut.kernel = &kernel;
        return cut;
    }
    const Stretching &how = *kernel.stretching;
    cut.kernel = kernel_of(how.kernel);
    const int64_t steps = (g.k + how.step - 1) / how.step;
    cut.terms = (steps + count - 1) / count * how.step; // the last one is not longer
    cut.count = g.k / cut.terms;
    cut.turned = cut.turned || pays_turning(kernel, g);
    cut.rest = g.k - cut.count * cut.terms;
    return cut;
}

Gemm stretch_of(const Gemm &g, int64_t first, int64_t terms, int64_t count) {
    const int64_t in_a = g.a_along_k ? 1 : g.lda, in_b = g.b_along_k ? 1 : g.ldb; // along k
    Gemm part = moved(g, first * in_a, first * in_b, 0);
    part.k = terms;
    part.items = static_cast<int>(count);
    part.a_item = terms * in_a, part.b_item = terms * in_b;
    part.epilogue = Epilogue();
    part.c_dtype = g.dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32;
    part.ldc = g.n, part.c_item = int64_t(g.m) * g.n;
    return part;
}

} // namespace pvg::matmul
