// pvg_where: out[i] = condition[i] ? a[i] : b[i], by the kernel that fills where a mask is true.
#include "arrays/copy.cuh"
#include "arrays/operation.cuh"

namespace pvg {

namespace {

int run_where(Call &call, const pvg_array *condition, const pvg_array *a, const pvg_array *b,
              pvg_array *out, Output *result) {
    const pvg_array *operands[3] = {condition, a, b};
    int device = -1, ndim = 0;
    int64_t shape[PVG_MAX_NDIM];
    PVG_PASS(check_operands(operands, 3, &device));
    PVG_REQUIRE(condition->dtype == PVG_BOOL, PVG_ERROR_TYPE,
                "the condition must be bool, got an array of shape %s and dtype %s",
                shape_text(condition), dtype_name(condition->dtype));
    PVG_PASS(broadcast_shapes(operands, 3, &ndim, shape));
    PVG_PASS(call.begin(device));
    int dtype = promote(a->dtype, b->dtype);
    Temporary converted[2], straight[3];
    for (int k = 1; k < 3; k++)
        PVG_PASS(as_dtype(call, operands[k], dtype, &converted[k - 1], &operands[k]));
    PVG_PASS(open_elementwise(call, dtype, ndim, shape, out, operands, 3, straight, result));
    return select_where(call, result->array, operands[0], operands[1], operands[2], nullptr);
}

} // namespace

Operations where_operations() {
    static constexpr Operation rows[] = {
        {PVG_WHERE, "where", Family::other, all_kinds, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_where(const pvg_array *condition, const pvg_array *a, const pvg_array *b,
                             pvg_array *out) {
    pvg::Call call("where");
    pvg::Output result;
    int status = pvg::run_where(call, condition, a, b, out, &result);
    return result.close(call, status);
}
