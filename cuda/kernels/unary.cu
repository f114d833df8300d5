// pvg_unary: out[i] = f(a[i]). One kernel per dtype and access pattern (map.cuh); which function it
// is, is a run-time code (elementwise.cuh).
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "kernels/elementwise.cuh"

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
    PVG_REQUIRE(operation->takes_bool || a->dtype != PVG_BOOL, PVG_ERROR_TYPE,
                "does not take bool, got an array of shape %s and dtype bool", shape_text(a));
    PVG_PASS(call.begin(device));
    int dtype = operation->gives_float ? float_dtype(a->dtype) : a->dtype;
    Temporary converted, straight;
    PVG_PASS(as_dtype(call, a, dtype, &converted, &a));
    PVG_PASS(as_readable(call, a, &straight, &a));
    PVG_PASS(result->open(call, dtype, a->ndim, a->shape, out, &a, 1));
    return dispatch(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(call, Unary<T>{code}, result->array, {a});
    });
}

} // namespace

} // namespace pvg

PVG_API pvg_array *pvg_unary(int code, const pvg_array *a, pvg_array *out) {
    const pvg::Operation *operation = pvg::find_elementwise(code, 1);
    pvg::Call call(operation ? operation->name : "unary");
    pvg::Output result;
    int status = pvg::run_unary(call, code, operation, a, out, &result);
    return result.close(call, status);
}
