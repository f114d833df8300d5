// Activations of a layer and their derivatives, by pvg_activation code: what products apply to
// their sums and what the backward pass of a layer multiplies with.
#pragma once
#include "kernels/elementwise.cuh"

namespace pvg {

// The standard normal distribution's density.
template <class T> __device__ __forceinline__ T normal_density(T x) {
    return T(0.39894228040143267794) * exponential(T(-0.5) * x * x);
}

template <class T> __device__ __forceinline__ T activate(int activation, T x) {
    switch (activation) {
    case PVG_ACTIVATION_SIGMOID: return sigmoid(x);
    case PVG_ACTIVATION_TANH: return hyperbolic_tangent(x);
    case PVG_ACTIVATION_RELU: return relu(x);
    case PVG_ACTIVATION_GELU: return gelu(x);
    case PVG_ACTIVATION_SILU: return silu(x);
    }
    return x;
}

// The derivative at the preactivation x.
template <class T> __device__ __forceinline__ T activation_slope(int activation, T x) {
    // 0 times infinity would be NaN; further out no derivative changes any more. NaN stays.
    x = x < T(-800) ? T(-800) : x > T(800) ? T(800) : x;
    switch (activation) {
    case PVG_ACTIVATION_SIGMOID: {
        T y = sigmoid(x);
        return y * sigmoid(-x); // 1 - y would lose the digits of a y near 1
    }
    case PVG_ACTIVATION_TANH: {
        T y = hyperbolic_tangent(x);
        return (1 - y) * (1 + y);
    }
    case PVG_ACTIVATION_RELU: return x != x ? x : T(x > 0 ? 1 : 0);
    case PVG_ACTIVATION_GELU: return T(0.5) * twice_normal_cdf(x) + x * normal_density(x);
    case PVG_ACTIVATION_SILU: {
        T y = sigmoid(x);
        return y * (1 + x * sigmoid(-x));
    }
    }
    return T(1);
}

} // namespace pvg
