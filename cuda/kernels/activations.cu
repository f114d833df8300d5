// pvg_activate and pvg_activate_backward: activations with numbers (softplus, leaky_relu, elu), and
// the gradients of all activations, each by one launch that reads its operands once.
//
// Operands that do not lie in order are put in order before: no other kernels are needed.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "arrays/operation.cuh"
#include "kernels/activation.cuh"
#include "kernels/quick_exp.cuh"

namespace pvg {

namespace {

// Of halves the last digits of float32 are rounded away: exp and its kin in a few instructions.
template <class T> __device__ __forceinline__ ComputeType<T> exp_of(ComputeType<T> x) {
    if constexpr (is_half<T>)
        return quick_exp(x);
    else
        return exp(x);
}
// log(1 + exp(x)): no overflow.
template <class T> __device__ __forceinline__ ComputeType<T> soft_of(ComputeType<T> x) {
    using A = ComputeType<T>;
    const A e = exp_of<T>(-fabs(x)), least = x > 0 ? x : A(0);
    if constexpr (is_half<T>) { // a logarithm of nearly 1 has few digits
        const A series = e * (1 - e * (0.5f - e * 0.33333333f));
        return least + (e < 0.03f ? series : quick_log2(1 + e) * 0.69314718f);
    } else {
        return least + log1p(e);
    }
}
// 1 / (1 + exp(-x)), and what is left of 1.
template <class T>
__device__ __forceinline__ ComputeType<T> sigmoid_of(ComputeType<T> x, ComputeType<T> *rest) {
    if constexpr (is_half<T>) {
        const float e = quick_exp(-fabsf(x)), larger = reciprocal_of(1 + e), smaller = e * larger;
        *rest = x >= 0 ? smaller : larger;
        return x >= 0 ? larger : smaller;
    } else {
        *rest = sigmoid(-x);
        return sigmoid(x);
    }
}
// exp(x) - 1 for x up to 0.
template <class T> __device__ __forceinline__ ComputeType<T> exp_less_one(ComputeType<T> x) {
    if constexpr (is_half<T>) {
        const float series = x * (1 + x * (0.5f + x * (0.16666667f + x * 0.041666667f)));
        return x > -0.25f ? series : quick_exp(x) - 1;
    } else {
        return expm1(x);
    }
}

// The numbers of a curve, in the type that it is computed in: beta and 1 / beta, or what x is
// multiplied by below 0; and the threshold.
template <class A> struct CurveNumbers { A first, inverse, second; };

template <class T, int CURVE>
__device__ __forceinline__ ComputeType<T> curve_of(ComputeType<T> x,
                                                   const CurveNumbers<ComputeType<T>> &with) {
    if constexpr (CURVE == PVG_CURVE_SOFTPLUS) {
        const auto scaled = x * with.first;
        return scaled > with.second ? x : soft_of<T>(scaled) * with.inverse;
    } else if constexpr (CURVE == PVG_CURVE_LEAKY_RELU) {
        return x > 0 ? x : with.first * x;
    } else {
        return x > 0 ? x : with.first * exp_less_one<T>(x);
    }
}

// The derivative's product with g. x: the result for those that know it from that.
template <class T, int CURVE>
__device__ __forceinline__ ComputeType<T> slope_of(ComputeType<T> g, ComputeType<T> x,
                                                   const CurveNumbers<ComputeType<T>> &with) {
    using A = ComputeType<T>;
    if constexpr (CURVE == PVG_CURVE_SOFTPLUS) {
        const A scaled = x * with.first;
        A rest;
        return scaled > with.second ? g : g * sigmoid_of<T>(scaled, &rest);
    } else if constexpr (CURVE == PVG_CURVE_LEAKY_RELU) {
        return x > 0 ? g : with.first * g;
    } else if constexpr (CURVE == PVG_CURVE_ELU) {
        return x > 0 ? g : g * (with.first * exp_of<T>(x));
    } else if constexpr (CURVE == PVG_CURVE_RELU) {
        return x <= 0 ? A(0) : g;
    } else if constexpr (CURVE == PVG_CURVE_SIGMOID) {
        return g * (x * (1 - x));
    } else if constexpr (CURVE == PVG_CURVE_TANH) {
        return g * (1 - x * x);
    } else {
        const A most = 800; // see activation_slope
        x = x < -most ? -most : x > most ? most : x;
        if constexpr (CURVE == PVG_CURVE_GELU) return g * gelu_slope(x);
        A rest;
        const A share = sigmoid_of<T>(x, &rest);
        return g * (share * (1 + x * rest));
    }
}

template <class T, int CURVE> struct Curve {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    CurveNumbers<ComputeType<T>> numbers;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        ComputeType<T> x[Access::count];
        read_as<T>(access, 0, x);
#pragma unroll
        for (int e = 0; e < Access::count; e++) x[e] = curve_of<T, CURVE>(x[e], numbers);
        write_as<T>(access, x);
    }
};

template <class T, int CURVE> struct CurveSlope {
    static constexpr int inputs = 2, vector = 16 / sizeof(T);
    CurveNumbers<ComputeType<T>> numbers;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        ComputeType<T> g[Access::count], x[Access::count];
        read_as<T>(access, 0, g);
        read_as<T>(access, 1, x);
#pragma unroll
        for (int e = 0; e < Access::count; e++) g[e] = slope_of<T, CURVE>(g[e], x[e], numbers);
        write_as<T>(access, g);
    }
};
// Blocks of 1024 threads would leave exponentials too few registers.
template <class T, int CURVE>
constexpr bool is_long<CurveSlope<T, CURVE>> =
    CURVE == PVG_CURVE_SOFTPLUS || CURVE == PVG_CURVE_ELU || CURVE >= PVG_CURVE_GELU;

template <class F>
int launch_curve(Call &call, const F &f, pvg_array *out,
                 const pvg_array *const (&inputs)[F::inputs]) {
    Operands<F::inputs> operands{};
    bool contiguous, aligned;
    PVG_PASS(open_map(call, out, inputs, F::vector, &operands, &contiguous, &aligned));
    return launch_contiguous(call, f, operands, out->size, aligned);
}

template <class T> CurveNumbers<ComputeType<T>> numbers_of(double first, double second) {
    using A = ComputeType<T>;
    return {static_cast<A>(first), static_cast<A>(1 / first), static_cast<A>(second)};
}

int run_curve(Call &call, int curve, const pvg_array *x, double first, double second,
              Output *result) {
    int device = -1;
    Temporary straight;
    PVG_REQUIRE(curve >= PVG_CURVE_SOFTPLUS && curve <= PVG_CURVE_ELU, PVG_ERROR_VALUE,
                "%d is not the code of an activation with numbers", curve);
    PVG_PASS(check_operands(&x, 1, &device));
    PVG_PASS(check_kinds(x->dtype, floats));
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, x->dtype, x->ndim, x->shape, nullptr, nullptr, 0));
    if (x->size == 0) return PVG_OK;
    PVG_PASS(as_contiguous(call, x, &straight, &x));
    return dispatch<floats>(x->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const auto with = numbers_of<T>(first, second);
#define PVG_CASE(code) \
    case code: return launch_curve(call, Curve<T, code>{with}, result->array, {x});
        switch (curve) {
            PVG_CASE(PVG_CURVE_SOFTPLUS)
            PVG_CASE(PVG_CURVE_LEAKY_RELU)
            PVG_CASE(PVG_CURVE_ELU)
        }
#undef PVG_CASE
        return PVG_OK;
    });
}

int run_curve_slope(Call &call, int curve, const pvg_array *g, const pvg_array *x, double first,
                    double second, Output *result) {
    const pvg_array *operands[2] = {g, x};
    int device = -1;
    Temporary cast, straight[2];
    PVG_REQUIRE(curve >= PVG_CURVE_SOFTPLUS && curve <= PVG_CURVE_SILU, PVG_ERROR_VALUE,
                "%d is not the code of an activation", curve);
    PVG_PASS(check_operands(operands, 2, &device));
    for (const pvg_array *a : operands) PVG_PASS(check_kinds(a->dtype, floats));
    PVG_REQUIRE(same_shape(g, x->ndim, x->shape), PVG_ERROR_VALUE,
                "gradient of shape %s, operand of %s", shape_text(g), shape_text(x));
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, x->dtype, x->ndim, x->shape, nullptr, nullptr, 0));
    if (x->size == 0) return PVG_OK;
    PVG_PASS(as_dtype(call, g, x->dtype, &cast, &g));
    PVG_PASS(as_contiguous(call, g, &straight[0], &g));
    PVG_PASS(as_contiguous(call, x, &straight[1], &x));
    return dispatch<floats>(x->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const auto with = numbers_of<T>(first, second);
#define PVG_CASE(code) \
    case code: return launch_curve(call, CurveSlope<T, code>{with}, result->array, {g, x});
        switch (curve) {
            PVG_CASE(PVG_CURVE_SOFTPLUS)
            PVG_CASE(PVG_CURVE_LEAKY_RELU)
            PVG_CASE(PVG_CURVE_ELU)
            PVG_CASE(PVG_CURVE_RELU)
            PVG_CASE(PVG_CURVE_SIGMOID)
            PVG_CASE(PVG_CURVE_TANH)
            PVG_CASE(PVG_CURVE_GELU)
            PVG_CASE(PVG_CURVE_SILU)
        }
#undef PVG_CASE
        return PVG_OK;
    });
}

} // namespace

Operations curve_operations() {
    static constexpr Operation rows[] = {
        {PVG_ACTIVATE, "activate", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_activate(int curve, const pvg_array *x, double first, double second) {
    pvg::Call call("activate");
    pvg::Output result;
    int status = pvg::run_curve(call, curve, x, first, second, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_activate_backward(int curve, const pvg_array *gradient, const pvg_array *x,
                                         double first, double second) {
    pvg::Call call("activate_backward");
    pvg::Output result;
    int status = pvg::run_curve_slope(call, curve, gradient, x, first, second, &result);
    return result.close(call, status);
}
