// pvg_plan_product and its like: what plans are, for tests. No device is asked but by
// pvg_plan_card.
#include "kernels/matmul/plan/plan.cuh"
#include "runtime/device.cuh"

namespace pvg::matmul {

namespace {

// A pointer that is only looked at.
void *address(int64_t number) { return reinterpret_cast<void *>(static_cast<uintptr_t>(number)); }

Operand operand_of(int64_t where, int64_t stride, bool along_k) {
    return {address(where), along_k ? stride : 1, along_k ? 1 : stride, along_k, false};
}

int problem_of(const int64_t *x, Problem *problem) {
    const int64_t dtype = x[PVG_PRODUCT_DTYPE], precision = x[PVG_PRODUCT_PRECISION];
    PVG_REQUIRE(x[PVG_PRODUCT_M] > 0 && x[PVG_PRODUCT_N] > 0 && x[PVG_PRODUCT_K] >= 0 &&
                    x[PVG_PRODUCT_ITEMS] > 0,
                PVG_ERROR_VALUE, "a product has rows, columns and items");
    PVG_REQUIRE(dtype >= 0 && dtype < 64 && dtype_size(static_cast<int>(dtype)) > 0,
                PVG_ERROR_VALUE, "unknown dtype code %lld", static_cast<long long>(dtype));
    PVG_REQUIRE(precision >= PVG_PRECISION_IEEE && precision <= PVG_PRECISION_FP16, PVG_ERROR_VALUE,
                "unknown precision code %lld", static_cast<long long>(precision));
    *problem = Problem();
    problem->dtype = static_cast<int>(dtype), problem->precision = static_cast<int>(precision);
    problem->items = x[PVG_PRODUCT_ITEMS];
    if (x[PVG_PRODUCT_HAS_BIAS]) problem->epilogue.bias = address(256);
    Product &p = problem->product;
    p.m = x[PVG_PRODUCT_M], p.n = x[PVG_PRODUCT_N], p.k = x[PVG_PRODUCT_K];
    p.a = operand_of(x[PVG_PRODUCT_A_ADDRESS], x[PVG_PRODUCT_A_STRIDE],
                     x[PVG_PRODUCT_A_ALONG_K] != 0);
    p.b = operand_of(x[PVG_PRODUCT_B_ADDRESS], x[PVG_PRODUCT_B_STRIDE],
                     x[PVG_PRODUCT_B_ALONG_K] != 0);
    p.c = address(x[PVG_PRODUCT_C_ADDRESS]);
    p.c_row = x[PVG_PRODUCT_C_STRIDE];
    if (problem->items == 1) return PVG_OK;
    p.batch.ndim = 1, p.batch.shape[0] = problem->items;
    p.batch.strides[0][0] = x[PVG_PRODUCT_C_ITEM];
    p.batch.strides[1][0] = x[PVG_PRODUCT_A_ITEM];
    p.batch.strides[2][0] = x[PVG_PRODUCT_B_ITEM];
    return PVG_OK;
}

int plan_problem(const Card &card, const Problem &problem, int forced, Plan *plan, Stretches *cut) {
    Gemm g;
    const bool is_gemm = describe_gemm(problem, problem.product.batch.ndim - 1, &g);
    const Kernel *kernel =
        forced == PVG_MATMUL_AUTO && is_gemm ? choose_by_rules(g, card) : nullptr;
    if (forced != PVG_MATMUL_AUTO && forced != PVG_MATMUL_TILED) {
        kernel = kernel_of(forced);
        PVG_REQUIRE(kernel && is_gemm && is_able(*kernel, g, card), PVG_ERROR_VALUE,
                    "kernel %d cannot compute the product on this card", forced);
    }
    cut->terms = problem.product.k;
    if (kernel && forced == PVG_MATMUL_AUTO) *cut = stretches_of(*kernel, g);
    if (cut->kernel) {
        g = stretch_of(cut->turned ? turned(g) : g, 0, cut->terms, cut->parts());
        kernel = cut->kernel;
        if (cut->parts() > 1) g.last_k = cut->rest ? cut->rest : cut->terms;
    }
    *plan = kernel ? plan_gemm(*kernel, g, card) : plan_tiled(problem);
    return PVG_OK;
}

void write_plan(const Plan &plan, const Stretches &cut, int64_t *to) {
    const bool has_schedule = plan.schedule.k_blocks > 0;
    to[PVG_PLAN_KERNEL] = plan.kernel;
    to[PVG_PLAN_ROWS] = plan.rows, to[PVG_PLAN_COLUMNS] = plan.columns;
    to[PVG_PLAN_TILES] = plan.tiles;
    to[PVG_PLAN_SLICES] = plan.slices, to[PVG_PLAN_SPLITS] = plan.splits;
    to[PVG_PLAN_SPLITS_IN_SEQUENCE] = plan.splits_in_sequence;
    to[PVG_PLAN_DEPTH] = plan.depth, to[PVG_PLAN_TERMS] = plan.terms;
    to[PVG_PLAN_K_BLOCKS] = has_schedule ? plan.schedule.k_blocks : 0;
    to[PVG_PLAN_K_STEP] = has_schedule ? plan.schedule.k_step : 0;
    to[PVG_PLAN_WHOLE] = has_schedule ? plan.schedule.whole : 0;
    to[PVG_PLAN_CUT] = has_schedule ? plan.schedule.cut : 0;
    to[PVG_PLAN_PAIR] = plan.pair + plan.down, to[PVG_PLAN_CLUSTER] = plan.cluster;
    to[PVG_PLAN_PART_ROWS] = plan.part_rows, to[PVG_PLAN_ITEMS] = plan.items;
    to[PVG_PLAN_BLOCKS] = plan.blocks, to[PVG_PLAN_THREADS] = plan.threads;
    to[PVG_PLAN_SHARED_BYTES] = plan.shared_bytes, to[PVG_PLAN_WORKSPACE] = plan.workspace;
    to[PVG_PLAN_A_COPIED] = static_cast<int>(plan.a.copying);
    to[PVG_PLAN_B_COPIED] = static_cast<int>(plan.b.copying);
    to[PVG_PLAN_A_BYTES] = plan.a.bytes, to[PVG_PLAN_B_BYTES] = plan.b.bytes;
    to[PVG_PLAN_RECKONED] = static_cast<int64_t>(plan.reckoned);
    to[PVG_PLAN_STRETCHES] = cut.parts();
    to[PVG_PLAN_STRETCH_TERMS] = cut.terms;
    to[PVG_PLAN_TURNED] = cut.turned;
}

} // namespace

static int plan_product(const int64_t *numbers, const int64_t *product, int64_t *to) {
    PVG_REQUIRE(numbers && product && to, PVG_ERROR_VALUE, "a null pointer");
    Problem problem;
    PVG_PASS(problem_of(product, &problem));
    const Card card = {static_cast<int>(numbers[PVG_CARD_ARCHITECTURE]),
                       static_cast<int>(numbers[PVG_CARD_MULTIPROCESSORS]),
                       numbers[PVG_CARD_SHARED_OF_BLOCK],
                       numbers[PVG_CARD_SHARED_OF_MULTIPROCESSOR]};
    PVG_REQUIRE(card.multiprocessors > 0, PVG_ERROR_VALUE, "a card has multiprocessors");
    Plan plan;
    Stretches cut;
    const int forced = static_cast<int>(product[PVG_PRODUCT_KERNEL]);
    PVG_PASS(plan_problem(card, problem, forced, &plan, &cut));
    write_plan(plan, cut, to);
    return PVG_OK;
}

static int plan_card(int device, int64_t *to) {
    PVG_REQUIRE(to, PVG_ERROR_VALUE, "a null pointer");
    PVG_PASS(check_device(device));
    Card card;
    PVG_PASS(card_of(device, &card));
    to[PVG_CARD_ARCHITECTURE] = card.architecture;
    to[PVG_CARD_MULTIPROCESSORS] = card.multiprocessors;
    to[PVG_CARD_SHARED_OF_BLOCK] = card.shared_of_block;
    to[PVG_CARD_SHARED_OF_MULTIPROCESSOR] = card.shared_of_multiprocessor;
    return PVG_OK;
}

} // namespace pvg::matmul

PVG_API int pvg_plan_product(const int64_t *card, const int64_t *product, int64_t *plan) {
    pvg::clear_error();
    return pvg::matmul::plan_product(card, product, plan);
}

PVG_API int pvg_plan_card(int device, int64_t *card) {
    pvg::clear_error();
    return pvg::matmul::plan_card(device, card);
}

PVG_API const char *pvg_plan_rule(int number) { return pvg::matmul::rule_in_words(number); }
