// From a problem to a plan; see plan.cuh.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>

namespace pvg::matmul {

bool describe_gemm(const Problem &problem, int inner, Gemm *g) {
    const Product &p = problem.product;
    if (p.k == 0 || p.m > INT_MAX || p.n > INT_MAX) return false;
    *g = Gemm();
    g->m = static_cast<int>(p.m), g->n = static_cast<int>(p.n), g->k = p.k;
    g->items = 1;
    if (inner >= 0) {
        if (p.batch.shape[inner] > INT_MAX) return false;
        g->items = static_cast<int>(p.batch.shape[inner]);
        g->c_item = p.batch.strides[0][inner];
        g->a_item = p.batch.strides[1][inner];
        g->b_item = p.batch.strides[2][inner];
    }
    g->a = p.a.data, g->b = p.b.data, g->c = p.c;
    g->a_along_k = p.a.along_k, g->b_along_k = p.b.along_k;
    g->lda = p.a.along_k ? p.a.stride : p.a.k_stride;
    g->ldb = p.b.along_k ? p.b.stride : p.b.k_stride;
    g->ldc = p.c_row;
    g->dtype = g->c_dtype = problem.dtype, g->precision = problem.precision,
    g->device = problem.device;
    g->epilogue = problem.epilogue;
    return true;
}

int64_t blocks_each(const Card &card, const Plan &plan) {
    const int most = cost::at_a_time[plan.cluster - 1];
    const int reached = card.multiprocessors * most / cost::at_a_time[0];
    return tiles(plan.blocks, reached > 0 ? reached : 1);
}

void spread_blocks(int fit, const Card &card, Plan *plan) {
    const int64_t each = blocks_each(card, *plan);
    const int64_t bytes = card.shared_of_multiprocessor / (each + 1) / 16 * 16;
    if (each < fit && plan->shared_bytes <= bytes && bytes <= card.shared_of_block)
        plan->shared_bytes = static_cast<int>(bytes);
}

Plan plan_gemm(const Kernel &kernel, const Gemm &g, const Card &card) {
    Plan plan;
    plan.kernel = kernel.code;
    kernel.plan(g, card, &plan);
    return plan;
}

} // namespace pvg::matmul
