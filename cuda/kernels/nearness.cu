// pvg_isclose: where two arrays are close. pvg_nan_to_num: numbers for NaN and infinity. Floats are
// read once, and what comes of them is written once.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "arrays/operation.cuh"
#include "kernels/elementwise.cuh"

namespace pvg {

namespace {

// Rounded after each step, as when these are kernels of their own.
__device__ __forceinline__ float bound(float x, float rtol, float atol) {
    return __fadd_rn(__fmul_rn(x, rtol), atol);
}
__device__ __forceinline__ double bound(double x, double rtol, double atol) {
    return __dadd_rn(__dmul_rn(x, rtol), atol);
}

// |a - b| <= atol + rtol |b|, of which an infinite b is not asked.
template <class T> struct IsClose {
    static constexpr int inputs = 2, vector = 16 / sizeof(T);
    ComputeType<T> rtol, atol;
    bool equal_nan;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        using A = ComputeType<T>;
        A a[Access::count], b[Access::count];
        Bool close[Access::count];
        read_as<T>(access, 0, a);
        read_as<T>(access, 1, b);
#pragma unroll
        for (int e = 0; e < Access::count; e++) {
            const A size = fabs(b[e]);
            bool near = fabs(a[e] - b[e]) <= bound(size, rtol, atol) && size < A(INFINITY);
            near = near || a[e] == b[e] || (equal_nan && a[e] != a[e] && b[e] != b[e]);
            close[e] = Bool(near);
        }
        access.write(close);
    }
};

template <class T> struct NanToNum {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    ComputeType<T> nan, positive, negative;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        using A = ComputeType<T>;
        A x[Access::count];
        read_as<T>(access, 0, x);
#pragma unroll
        for (int e = 0; e < Access::count; e++) {
            const A infinite = x[e] > 0 ? positive : negative;
            x[e] = x[e] != x[e] ? nan : fabs(x[e]) == A(INFINITY) ? infinite : x[e];
        }
        write_as<T>(access, x);
    }
};

int run_isclose(Call &call, const pvg_array *a, const pvg_array *b, double rtol, double atol,
                int equal_nan, pvg_array *out, Output *result) {
    const pvg_array *operands[2] = {a, b};
    int device = -1, ndim = 0;
    int64_t shape[PVG_MAX_NDIM];
    PVG_PASS(check_operands(operands, 2, &device));
    PVG_REQUIRE(equal_nan == 0 || equal_nan == 1, PVG_ERROR_VALUE, "equal_nan is 0 or 1, not %d",
                equal_nan);
    PVG_PASS(check_kinds(a->dtype, floats));
    PVG_PASS(check_kinds(b->dtype, floats));
    PVG_PASS(broadcast_shapes(operands, 2, &ndim, shape));
    PVG_PASS(call.begin(device));
    int dtype = promote(a->dtype, b->dtype);
    Temporary converted[2], straight[2];
    for (int k = 0; k < 2; k++)
        PVG_PASS(as_dtype(call, operands[k], dtype, &converted[k], &operands[k]));
    PVG_PASS(open_elementwise(call, PVG_BOOL, ndim, shape, out, operands, 2, straight, result));
    return dispatch<floats>(dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        using A = ComputeType<T>;
        const IsClose<T> is_close = {static_cast<A>(rtol), static_cast<A>(atol), equal_nan == 1};
        return launch_map(call, is_close, result->array, {operands[0], operands[1]});
    });
}

int run_nan_to_num(Call &call, const pvg_array *a, double nan, double positive, double negative,
                   pvg_array *out, Output *result) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_kinds(a->dtype, floats));
    PVG_PASS(call.begin(device));
    Temporary straight;
    PVG_PASS(open_elementwise(call, a->dtype, a->ndim, a->shape, out, &a, 1, &straight, result));
    return dispatch<floats>(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        using A = ComputeType<T>;
        const NanToNum<T> numbers = {static_cast<A>(nan), static_cast<A>(positive),
                                     static_cast<A>(negative)};
        return launch_map(call, numbers, result->array, {a});
    });
}

} // namespace

Operations nearness_operations() {
    static constexpr Operation rows[] = {
        {PVG_ISCLOSE, "isclose", Family::other, floats, Gives::boolean},
        {PVG_NAN_TO_NUM, "nan_to_num", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_isclose(const pvg_array *a, const pvg_array *b, double rtol, double atol,
                               int equal_nan, pvg_array *out) {
    pvg::Call call("isclose");
    pvg::Output result;
    int status = pvg::run_isclose(call, a, b, rtol, atol, equal_nan, out, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_nan_to_num(const pvg_array *a, double nan, double positive, double negative,
                                  pvg_array *out) {
    pvg::Call call("nan_to_num");
    pvg::Output result;
    int status = pvg::run_nan_to_num(call, a, nan, positive, negative, out, &result);
    return result.close(call, status);
}
