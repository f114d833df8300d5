// Activations of a layer: the unary operations that products apply to their sums, and their
// derivatives, which the backward pass of a layer multiplies with.
#pragma once
#include "kernels/elementwise.cuh"

namespace pvg {

// The standard normal distribution's density.
template <class T> __device__ __forceinline__ T normal_density(T x) {
    return T(0.39894228040143267794) * exponential(T(-0.5) * x * x);
}

// 1 - y would lose the digits of a y near 1.
template <class T> __device__ __forceinline__ T sigmoid_slope(T x) {
    return sigmoid(x) * sigmoid(-x);
}
template <class T> __device__ __forceinline__ T tanh_slope(T x) {
    T y = hyperbolic_tangent(x);
    return (1 - y) * (1 + y);
}
template <class T> __device__ __forceinline__ T relu_slope(T x) {
    return x != x ? x : T(x > 0 ? 1 : 0);
}
template <class T> __device__ __forceinline__ T gelu_slope(T x) {
    return T(0.5) * twice_normal_cdf(x) + x * normal_density(x);
}
template <class T> __device__ __forceinline__ T silu_slope(T x) {
    return sigmoid(x) * (1 + x * sigmoid(-x));
}

// X(code, the function's value, its derivative): every activation.
#define PVG_ACTIVATIONS(X)                            \
    X(PVG_SIGMOID, sigmoid(x), sigmoid_slope(x))      \
    X(PVG_TANH, hyperbolic_tangent(x), tanh_slope(x)) \
    X(PVG_RELU, relu(x), relu_slope(x))               \
    X(PVG_GELU, gelu(x), gelu_slope(x))               \
    X(PVG_SILU, silu(x), silu_slope(x))

constexpr bool is_activation(int code) {
#define PVG_CASE(row_code, value, slope) \
    case row_code: return true;
    switch (code) { PVG_ACTIVATIONS(PVG_CASE) }
#undef PVG_CASE
    return false;
}

template <class T> __device__ __forceinline__ T activate(int code, T x) {
#define PVG_CASE(row_code, value, slope) \
    case row_code: return value;
    switch (code) { PVG_ACTIVATIONS(PVG_CASE) }
#undef PVG_CASE
    return x;
}

// The derivative at the preactivation x.
template <class T> __device__ __forceinline__ T activation_slope(int code, T x) {
    // 0 times infinity would be NaN; further out no derivative changes any more. NaN stays.
    x = x < T(-800) ? T(-800) : x > T(800) ? T(800) : x;
#define PVG_CASE(row_code, value, slope) \
    case row_code: return slope;
    switch (code) { PVG_ACTIVATIONS(PVG_CASE) }
#undef PVG_CASE
    return T(1);
}

} // namespace pvg
