// pvg_unary: out[i] = f(a[i]). One kernel per dtype and access pattern (map.cuh); which function it
// is, is a run-time code (elementwise.cuh). Functions with long code are launched by functions.cu.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "kernels/complex.cuh"
#include "kernels/functions.cuh"

namespace pvg {

namespace {

template <class T> struct Unary {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        ComputeType<T> a[Access::count], r[Access::count] = {};
        read_as<T>(access, 0, a);
        apply_unary(code, a, r);
        write_as<T>(access, r);
    }
};

int run_unary(Call &call, int code, const Operation *operation, const pvg_array *a, pvg_array *out,
              Output *result) {
    PVG_REQUIRE(operation, PVG_ERROR_VALUE, "unknown operation code %d", code);
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_domain(*operation, a->dtype, &a, 1));
    PVG_PASS(call.begin(device));
    const Dtypes dtypes = dtypes_of(*operation, a->dtype);
    Temporary converted, straight;
    PVG_PASS(as_dtype(call, a, dtypes.computed, &converted, &a));
    PVG_PASS(
        open_elementwise(call, dtypes.result, a->ndim, a->shape, out, &a, 1, &straight, result));
    if (is_among(dtypes.computed, complexes))
        return launch_complex_unary(call, *operation, dtypes.computed, result->array, a);
    if (is_unary_function(code))
        return launch_unary_function(call, *operation, dtypes.computed, result->array, a);
    return dispatch<ordered>(dtypes.computed, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(call, Unary<T>{code}, result->array, {a});
    });
}

} // namespace

} // namespace pvg

PVG_API pvg_array *pvg_unary(int code, const pvg_array *a, pvg_array *out) {
    const pvg::Operation *operation = pvg::unary_operations().find(code);
    pvg::Call call(operation ? operation->name : "unary");
    pvg::Output result;
    int status = pvg::run_unary(call, code, operation, a, out, &result);
    return result.close(call, status);
}
