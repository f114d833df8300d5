// pvg_unary: out[i] = f(a[i]). One kernel per dtype and access pattern (map.cuh); which function it
// is, is a run-time code (elementwise.cuh).
#include "kernels/copy.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/map.cuh"

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

int run_unary(Operation &op, int code, const ElementwiseOperation *operation, const pvg_array *a,
              pvg_array *out, Output *result) {
    PVG_REQUIRE(operation, PVG_ERROR_VALUE, "unknown operation code %d", code);
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(operation->takes_bool || a->dtype != PVG_BOOL, PVG_ERROR_TYPE,
                "does not take bool, got an array of shape %s and dtype bool", shape_text(a));
    PVG_PASS(op.begin(device));
    int dtype = operation->gives_float ? float_dtype(a->dtype) : a->dtype;
    Temporary converted, straight;
    PVG_PASS(as_dtype(op, a, dtype, &converted, &a));
    PVG_PASS(as_readable(op, a, &straight, &a));
    PVG_PASS(result->open(op, dtype, a->ndim, a->shape, out, &a, 1));
    return dispatch(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(op, Unary<T>{code}, result->array, {a});
    });
}

} // namespace

} // namespace pvg

PVG_API pvg_array *pvg_unary(int code, const pvg_array *a, pvg_array *out) {
    const pvg::ElementwiseOperation *operation = pvg::find_elementwise(code, 1);
    pvg::Operation op(operation ? operation->name : "unary");
    pvg::Output result;
    int status = pvg::run_unary(op, code, operation, a, out, &result);
    return result.close(op, status);
}
