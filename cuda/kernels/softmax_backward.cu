// pvg_softmax_backward: of y = softmax(x) the gradient of x is y * (g - sum of g * y) along a row,
// and of y = log_softmax(x) it is g - exp(y) * sum of g. A row of both is held while it is summed,
// so that each is read once.
#include "arrays/call.cuh"
#include "kernels/rows.cuh"

namespace pvg {

namespace {

struct SoftSlopes {
    RowPlan plan;
    const void *gradient, *y;
    void *dx;
    bool logarithm;
};

template <class T, int PACKS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    softmax_backward_kernel(const __grid_constant__ SoftSlopes job) {
    using A = ComputeType<T>;
    constexpr int pack = pack_size<T>;
    constexpr bool BLOCK = THREADS > short_threads;
    PVG_DYNAMIC_SHARED(T, staged);
    __shared__ A of_warp[32];
    const RowPlace place = place_in_rows<BLOCK>(job.plan);
    const int64_t start = place.mine ? place.row * job.plan.length : 0;
    HeldRows<T, 2, PACKS> row(job.plan, place.mine, place.lane, place.lanes, staged);
    row.from[0] = static_cast<const T *>(job.gradient) + start;
    row.from[1] = static_cast<const T *>(job.y) + start;
    A sum = 0;
    row.load([&](int, const Pack<T>(&packs)[2]) { // behind the end both are 0
#pragma unroll
        for (int j = 0; j < pack; j++) {
            const A g = static_cast<A>(packs[0].element[j]),
                    y = static_cast<A>(packs[1].element[j]);
            sum = job.logarithm ? sum + g : fma(g, y, sum);
        }
    });
    sum = sum_of_row<BLOCK>(sum, place.lanes, of_warp);
    T *to = static_cast<T *>(job.dx) + start;
    row.again([&](int at, const Pack<T>(&packs)[2]) {
        Pack<T> dx;
#pragma unroll
        for (int j = 0; j < pack; j++) {
            const A g = static_cast<A>(packs[0].element[j]),
                    y = static_cast<A>(packs[1].element[j]);
            dx.element[j] = static_cast<T>(job.logarithm ? g - exp(y) * sum : y * (g - sum));
        }
        store_pack(to, at, row.length, row.aligned, dx);
    });
}

template <class T> int launch_soft_slopes(Call &call, SoftSlopes job, int64_t rows,
                                          int64_t length) {
    const void *pointers[3] = {job.gradient, job.y, job.dx};
    int threads = 0;
    size_t shared = 0;
    bool whole = false;
    PVG_PASS(
        (plan_rows<T, 2>(call, rows, length, pointers, 3, &job.plan, &threads, &shared, &whole)));
    if (job.plan.lanes > middle_threads) {
        PVG_LAUNCH((softmax_backward_kernel<T, held_packs, long_threads>), blocks_for(rows, 1),
                   threads, shared, call.stream, job);
        return PVG_OK;
    }
    if (job.plan.lanes > 32) {
        PVG_LAUNCH((softmax_backward_kernel<T, held_packs, middle_threads>), blocks_for(rows, 1),
                   threads, shared, call.stream, job);
        return PVG_OK;
    }
    const unsigned blocks = blocks_for(rows, short_threads / job.plan.lanes);
    if (length <= 32 * pack_size<T>)
        PVG_LAUNCH((softmax_backward_kernel<T, 1, short_threads>), blocks, short_threads, 0,
                   call.stream, job);
    else
        PVG_LAUNCH((softmax_backward_kernel<T, most_packs / 2, short_threads>), blocks,
                   short_threads, 0, call.stream, job);
    return PVG_OK;
}

int run_soft_slopes(Call &call, int operation, const pvg_array *gradient, const pvg_array *y,
                    int naxes, Output *result) {
    const pvg_array *operands[2] = {gradient, y};
    int device = -1;
    int64_t length = 1;
    Temporary cast, straight[2];
    PVG_REQUIRE(operation == PVG_SOFTMAX || operation == PVG_LOG_SOFTMAX, PVG_ERROR_VALUE,
                "operation %d is not that of softmax or of its logarithm", operation);
    PVG_PASS(check_operands(operands, 2, &device));
    for (const pvg_array *a : operands) PVG_PASS(check_kinds(a->dtype, floats));
    PVG_REQUIRE(same_shape(gradient, y->ndim, y->shape), PVG_ERROR_VALUE,
                "gradient of shape %s, result of %s", shape_text(gradient), shape_text(y));
    PVG_REQUIRE(naxes >= 0 && naxes <= y->ndim, PVG_ERROR_AXIS, "%d last axes of %d", naxes,
                y->ndim);
    for (int i = y->ndim - naxes; i < y->ndim; i++) length *= y->shape[i];
    PVG_REQUIRE(length <= INT32_MAX / 2, PVG_ERROR_VALUE, "takes rows of up to 2^30 elements");
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, y->dtype, y->ndim, y->shape, nullptr, nullptr, 0));
    if (y->size == 0) return PVG_OK;
    PVG_PASS(as_dtype(call, gradient, y->dtype, &cast, &gradient));
    PVG_PASS(as_contiguous(call, gradient, &straight[0], &gradient));
    PVG_PASS(as_contiguous(call, y, &straight[1], &y));
    PVG_PASS(call.reads(gradient));
    PVG_PASS(call.reads(y));
    const SoftSlopes job = {
        {}, gradient->data, y->data, result->array->data, operation == PVG_LOG_SOFTMAX};
    return dispatch<floats>(y->dtype, [&](auto tag) -> int {
        return launch_soft_slopes<typename decltype(tag)::type>(call, job, y->size / length,
                                                                length);
    });
}

} // namespace

} // namespace pvg

PVG_API pvg_array *pvg_softmax_backward(int operation, const pvg_array *gradient,
                                        const pvg_array *softmax, int naxes) {
    pvg::Call call("softmax_backward");
    pvg::Output result;
    int status = pvg::run_soft_slopes(call, operation, gradient, softmax, naxes, &result);
    return result.close(call, status);
}
