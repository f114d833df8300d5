// pvg_unary: out[i] = f(a[i]). One kernel per dtype and access pattern (map.cuh); which function it
// is, is a run-time code (elementwise.cuh). Functions with long code are launched by functions.cu.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "kernels/complex.cuh"
#include "kernels/functions.cuh"
#include "kernels/quick_exp.cuh"

namespace pvg {

namespace {

// Of halves the last digits of float32 are rounded away: these by the card's own power of two, in a
// third of the instructions. Powers are 2^64 times as large, as far as results may be subnormal.
__device__ __forceinline__ Tried halves_sigmoid(float x) {
    const float power = quick_exp2(fmaf(fabsf(x), -1.44269504f, 64.0f));
    const float inverse = reciprocal_of(fmaf(power, 0x1p-64f, 1.0f));
    return {x >= 0 ? inverse : power * inverse, x >= 0}; // whether as large as it is
}
__device__ __forceinline__ float sigmoid_of_half(float x) {
    const Tried y = halves_sigmoid(x);
    return y.is_right ? y.value : y.value * 0x1p-64f;
}
__device__ __forceinline__ float silu_of_half(float x) {
    const Tried y = halves_sigmoid(x);
    return y.is_right ? y.value * x : x < -120.0f ? -0.0f : y.value * x * 0x1p-64f;
}
__device__ __forceinline__ float tanh_of_half(float x) {
    const float power = quick_exp2(fabsf(x) * -2.88539008f), z = x * x;
    const float large = (1 - power) * reciprocal_of(1 + power);
    const float series = fmaf(x * z, fmaf(z, 0.13333334f, -0.33333334f), x);
    return copysignf(z < 0.0625f ? series : large, x); // of -0.0, too; NaN stays
}

__device__ __forceinline__ float gelu_of_half(float x) {
    const float y = fminf(fabsf(x), 16.0f), inverse = reciprocal_of(y + 2);
    const float power = quick_exp2(fmaf(y * y, -0.72134752f, 64.0f));
    const float rest = power * (y * inverse) * gelu_factor((y - 2) * inverse) * 0x1p-64f;
    return x < 0 ? -rest : x - rest; // NaN stays
}

template <int N>
__device__ __forceinline__ void apply_unary_to_halves(int code, const float (&a)[N],
                                                      float (&r)[N]) {
    switch (code) {
    case PVG_SIGMOID: return each(a, r, [](float x) { return sigmoid_of_half(x); });
    case PVG_SILU: return each(a, r, [](float x) { return silu_of_half(x); });
    case PVG_TANH: return each(a, r, [](float x) { return tanh_of_half(x); });
    case PVG_GELU: return each(a, r, [](float x) { return gelu_of_half(x); });
    }
    apply_unary(code, a, r);
}

template <class T> struct Unary {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        ComputeType<T> a[Access::count], r[Access::count] = {};
        read_as<T>(access, 0, a);
        if constexpr (is_half<T>)
            apply_unary_to_halves(code, a, r);
        else
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
