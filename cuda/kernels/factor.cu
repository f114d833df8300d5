// Systems of linear equations, inverses, determinants and Cholesky's factors of batches of small
// matrices; the kernels are in factor_kernels.cuh. A matrix that has no inverse, or no factor, is
// reported (runtime/report.cuh): the wait that follows raises it.
#include "arrays/operation.cuh"
#include "kernels/factor_kernels.cuh"

namespace pvg {

namespace {

constexpr size_t most_shared = 48 << 10; // what every card has without asking

int check_matrices(const pvg_array *a) {
    PVG_REQUIRE(a->dtype == PVG_FLOAT32 || a->dtype == PVG_FLOAT64, PVG_ERROR_TYPE,
                "takes float32 or float64, not %s", dtype_name(a->dtype));
    PVG_REQUIRE(a->ndim >= 2 && a->shape[a->ndim - 1] == a->shape[a->ndim - 2], PVG_ERROR_VALUE,
                "takes square matrices, got an array of shape %s", shape_text(a));
    PVG_REQUIRE(a->shape[a->ndim - 1] <= largest_factored, PVG_ERROR_VALUE,
                "takes matrices of up to %d x %d, got an array of shape %s", largest_factored,
                largest_factored, shape_text(a));
    return PVG_OK;
}

int logarithm_of(int64_t n) { // the least power of two that is not below n
    int shift = 0;
    while (int64_t(1) << shift < n) shift++;
    return shift;
}

// Fills in what follows from the matrices and the number of right-hand sides, 0 if there are none.
void prepare_job(const pvg_array *a, int64_t columns, Job *job) {
    job->n = static_cast<int>(a->shape[a->ndim - 1]);
    job->items = 1;
    for (int i = 0; i < a->ndim - 2; i++) job->items *= a->shape[i];
    job->columns = columns;
    job->spread = 1 << logarithm_of(job->n);
    job->width = static_cast<int>(columns < most_columns ? columns : most_columns);
    job->rows_shift = logarithm_of(job->width);
    const size_t item = static_cast<size_t>(dtype_size(a->dtype));
    const size_t elements = static_cast<size_t>(job->n * ((job->n | 1) + job->width));
    const size_t bytes = elements * item + static_cast<size_t>(job->n + 3) * sizeof(int);
    job->bytes = (bytes + 15) / 16 * 16;
}

// Calls function(Tag<T>(), team) with the size of a team as a constant.
template <class F> int dispatch_job(int dtype, int n, F &&function) {
    const auto by_size = [&](auto tag) -> int {
        if (n <= largest_of_warp) return function(tag, std::integral_constant<int, 32>());
        return function(tag, std::integral_constant<int, large_team>());
    };
    return dtype == PVG_FLOAT32 ? by_size(Tag<float>()) : by_size(Tag<double>());
}

#define PVG_LAUNCH_JOB(kernel, call, dtype, job)                                                  \
    dispatch_job(dtype, (job).n, [&](auto tag, auto team) -> int {                                \
        using T = typename decltype(tag)::type;                                                   \
        constexpr int TEAM = decltype(team)::value;                                               \
        const int teams = TEAM == 32 ? teams_of_block((job).bytes) : 1;                           \
        PVG_LAUNCH((kernel<T, TEAM>), blocks_for((job).items, teams),                             \
                   static_cast<unsigned>(teams * TEAM), static_cast<size_t>(teams) * (job).bytes, \
                   (call).stream, job);                                                           \
        return PVG_OK;                                                                            \
    })

int teams_of_block(size_t bytes) {
    int teams = warps_of_block;
    while (teams > 1 && static_cast<size_t>(teams) * bytes > most_shared) teams--;
    return teams;
}

int run_cholesky(Call &call, const pvg_array *a, int upper, Output *result) {
    int device = -1;
    Temporary straight;
    Job job{};
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_matrices(a));
    PVG_REQUIRE(upper == 0 || upper == 1, PVG_ERROR_VALUE, "upper is 0 or 1, got %d", upper);
    PVG_PASS(call.begin(device));
    PVG_PASS(call.reports(&job.slot));
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    PVG_PASS(result->open(call, a->dtype, a->ndim, a->shape, nullptr, &a, 1));
    if (a->size == 0) return PVG_OK;
    prepare_job(a, 0, &job);
    job.a = a->data, job.result = result->array->data, job.kind = upper;
    PVG_PASS(call.reads(a));
    return PVG_LAUNCH_JOB(cholesky_kernel, call, a->dtype, job);
}

int run_determinant(Call &call, const pvg_array *a, int kind, Output *result) {
    int device = -1;
    Temporary straight;
    Job job{};
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_matrices(a));
    PVG_REQUIRE(kind >= 0 && kind <= 2, PVG_ERROR_VALUE, "kind is 0, 1 or 2, got %d", kind);
    PVG_PASS(call.begin(device));
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    PVG_PASS(result->open(call, a->dtype, a->ndim - 2, a->shape, nullptr, &a, 1));
    prepare_job(a, 0, &job);
    if (job.items == 0) return PVG_OK;
    job.a = a->data, job.result = result->array->data, job.kind = kind;
    PVG_PASS(call.reads(a));
    return PVG_LAUNCH_JOB(determinant_kernel, call, a->dtype, job);
}

int check_sides(const pvg_array *a, const pvg_array *b) {
    PVG_REQUIRE(b->dtype == a->dtype, PVG_ERROR_TYPE, "takes operands of one dtype, not %s and %s",
                dtype_name(a->dtype), dtype_name(b->dtype));
    bool fits = b->ndim == a->ndim;
    for (int i = 0; fits && i < a->ndim - 1; i++) fits = a->shape[i] == b->shape[i];
    PVG_REQUIRE(fits, PVG_ERROR_VALUE, "right-hand sides of shape %s do not fit matrices of %s",
                shape_text(b), shape_text(a));
    return PVG_OK;
}

int launch_solve(Call &call, const pvg_array *a, const pvg_array *b, int kind, Output *result) {
    Job job{};
    PVG_PASS(call.reports(&job.slot));
    const pvg_array *shaped = b ? b : a, *inputs[2] = {a, shaped};
    PVG_PASS(result->open(call, a->dtype, a->ndim, shaped->shape, nullptr, inputs, 2));
    prepare_job(a, shaped->shape[shaped->ndim - 1], &job);
    if (result->array->size == 0) return PVG_OK;
    job.a = a->data, job.b = b ? b->data : nullptr, job.result = result->array->data;
    job.kind = kind;
    PVG_PASS(call.reads(a));
    if (b) PVG_PASS(call.reads(b));
    return PVG_LAUNCH_JOB(solve_kernel, call, a->dtype, job);
}

int run_solve(Call &call, const pvg_array *a, const pvg_array *b, int kind, Output *result) {
    const pvg_array *operands[2] = {a, b};
    int device = -1;
    Temporary holders[2];
    PVG_PASS(check_operands(operands, 2, &device));
    PVG_PASS(check_matrices(a));
    PVG_PASS(check_sides(a, b));
    PVG_REQUIRE(kind >= 0 && kind <= 2, PVG_ERROR_VALUE, "kind is 0, 1 or 2, got %d", kind);
    PVG_PASS(call.begin(device));
    PVG_PASS(as_contiguous(call, a, &holders[0], &a));
    PVG_PASS(as_contiguous(call, b, &holders[1], &b));
    return launch_solve(call, a, b, kind, result);
}

int run_inverse(Call &call, const pvg_array *a, Output *result) {
    int device = -1;
    Temporary straight;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_matrices(a));
    PVG_PASS(call.begin(device));
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    return launch_solve(call, a, nullptr, static_cast<int>(System::general), result);
}

} // namespace

Operations factor_operations() {
    static constexpr Operation rows[] = {
        {PVG_CHOLESKY, "cholesky", Family::other, floats, Gives::same},
        {PVG_SOLVE, "solve", Family::other, floats, Gives::same},
        {PVG_INVERSE, "inverse", Family::other, floats, Gives::same},
        {PVG_DETERMINANT, "determinant", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_cholesky(const pvg_array *a, int upper) {
    pvg::Call call("cholesky");
    pvg::Output result;
    int status = pvg::run_cholesky(call, a, upper, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_solve(const pvg_array *a, const pvg_array *b, int kind) {
    pvg::Call call("solve");
    pvg::Output result;
    int status = pvg::run_solve(call, a, b, kind, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_inverse(const pvg_array *a) {
    pvg::Call call("inv");
    pvg::Output result;
    int status = pvg::run_inverse(call, a, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_determinant(const pvg_array *a, int kind) {
    pvg::Call call("det");
    pvg::Output result;
    int status = pvg::run_determinant(call, a, kind, &result);
    return result.close(call, status);
}
