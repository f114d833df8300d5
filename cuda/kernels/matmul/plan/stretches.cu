// Which products are cut into stretches of k; see plan.cuh.
#include "kernels/matmul/plan/families.cuh"

namespace pvg::matmul {

int64_t with_short_rest(int64_t k, int64_t count, int step) {
    const auto terms = [=](int64_t parts) { return k / parts / step * step; };
    while (count > 1 && k - count * terms(count) > terms(count)) count--;
    return count;
}

// An a along m beside a b along k: the product of the transposed matrices needs no copy of them,
// and costs stores of c, which are few where k is long.
static bool pays_turning(const Gemm &g) {
    return !g.a_along_k && g.b_along_k && g.k >= g.m && g.k >= g.n;
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
    cut.together = how.together;
    if (how.together) { // as long as the last one is not longer
        const int64_t steps = (g.k + how.step - 1) / how.step;
        cut.terms = (steps + count - 1) / count * how.step;
        cut.count = g.k / cut.terms;
        cut.turned = pays_turning(g);
    } else {
        cut.count = count, cut.terms = g.k / count / how.step * how.step;
    }
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
