// Which products are cut into stretches of k; see plan.cuh.
#include "kernels/matmul/plan/families.cuh"

namespace pvg::matmul {

// Where blocks would go through many terms, and leave half of the multiprocessors or more without
// one: as many stretches as bring the card as many blocks as it takes at a time. What is left, less
// than a step of each, is no longer than they are.
Stretches stretches_of(const Kernel &kernel, const Gemm &g) {
    Stretches cut;
    cut.terms = g.k;
    if (!kernel.share) return cut;
    const Stretching &how = *kernel.stretching;
    const Share whole = kernel.share(g);
    constexpr int64_t width = cost::tuned_multiprocessors;
    if (whole.terms < how.least_share || 2 * whole.blocks > width) return cut;
    const Kernel *const by = kernel_of(how.kernel);
    const Share share = by->share(g);
    int64_t count = width * share.at_a_time / share.blocks;
    if (count > g.k / how.least_stretch) count = g.k / how.least_stretch;
    while (count * count * how.step > g.k) count--;
    if (count < 2) return cut;
    cut.kernel = by;
    cut.count = count, cut.terms = g.k / count / how.step * how.step;
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
