// Which products are cut into stretches of k; see plan.cuh.
#include "kernels/matmul/plan/families.cuh"

namespace pvg::matmul {

// As many as bring the card about one block a multiprocessor. Their terms are a multiple of a step,
// so that they begin in the lines of memory as the operands do, and what is left, less than a step
// of each, is no longer than they are.
Stretches stretches_of(const Kernel &kernel, const Gemm &g) {
    const int64_t step = kernel.least_stretch / 16;
    Stretches cut;
    cut.terms = g.k;
    if (!kernel.share) return cut;
    const Share share = kernel.share(g);
    if (share.terms < kernel.least_share) return cut;
    int64_t count = cost::tuned_multiprocessors / share.blocks;
    if (count > g.k / kernel.least_stretch) count = g.k / kernel.least_stretch;
    while (count * count * step > g.k) count--;
    if (count < 2) return cut;
    cut.count = count, cut.terms = g.k / count / step * step;
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
