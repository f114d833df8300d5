// sigmoid, silu and gelu of one element. Of float32 they are right within an ulp or two over all
// inputs, by pairs (the errors that were found are in docs/measured). Of float64 they are the plain
// formulas.
#pragma once
#include "kernels/pairs.cuh"
#include <math.h>

namespace pvg {

// ---- float32 ------------------------------------------------------------------------------------

// 1 / (1 + exp(-x)) as a quotient times 2^exponent, by exp of negative numbers only: no overflow,
// and small results keep their digits down to the subnormals. NaN gives any number.
__device__ __forceinline__ ScaledExp scaled_sigmoid(float x) {
    const ScaledExp e = scaled_exp(-fminf(fabsf(x), 150.0f), 0.0f);
    const float scale = power_of_two(e.exponent < -126 ? -126 : e.exponent);
    const float high = e.part.high * scale, sum = 1 + high;
    const Pair below = {sum, (high - (sum - 1)) + e.part.low * scale};
    if (x >= 0) return {quotient({1.0f, 0.0f}, below), 0};
    return {quotient(e.part, below), e.exponent};
}

__device__ __forceinline__ float sigmoid(float x) {
    const ScaledExp y = scaled_sigmoid(x);
    return x != x ? x : scaled(y.part.high + y.part.low, y.exponent);
}

__device__ __forceinline__ float silu(float x) {
    const ScaledExp y = scaled_sigmoid(x);
    if (x < -150.0f) return -0.0f;
    if (!(x < 150.0f)) return x; // or NaN
    return scaled(fmaf(y.part.high, x, y.part.low * x), y.exponent);
}

// With y = |x| this is max(x, 0) - y N(-y), N the normal distribution's cumulative function, and
// N(-y) = exp(-y^2 / 2) P(v) / (y + 2), v = (y - 2) / (y + 2), where P is nearly constant: by
// Chebyshev's nodes on v from -1 to 7/9.
__device__ __forceinline__ float gelu(float x) {
    const float y = fminf(fabsf(x), 16.0f); // from 14.4 on the rest is 0
    const float square = y * y, square_rest = fmaf(y, y, -square);
    const ScaledExp e = scaled_exp(-0.5f * square, -0.5f * square_rest);
    const Pair below = {y + 2, y - ((y + 2) - 2)};
    const float v = quotient({y - 2, 0.0f}, {below.high, 0.0f}).high;
    float p = -6.702056271024048e-05f;
    p = fmaf(p, v, -0.00015146021905820817f);
    p = fmaf(p, v, 0.00013422976189758629f);
    p = fmaf(p, v, 0.0008395939948968589f);
    p = fmaf(p, v, 0.0008235601708292961f);
    p = fmaf(p, v, -0.00195296888705343f);
    p = fmaf(p, v, -0.006734696216881275f);
    p = fmaf(p, v, -0.00046948620001785457f);
    p = fmaf(p, v, 0.036719437688589096f);
    p = fmaf(p, v, 0.02879735454916954f);
    p = fmaf(p, v, -0.3314044773578644f);
    const float first = 0.6724079847335815f, first_rest = 2.03e-8f; // P(0)
    const float w = fmaf(p, v, first), w_rest = fmaf(p, v, first - w) + first_rest;
    const float n = w * e.part.high;
    const float n_rest = fmaf(w, e.part.high, -n) + fmaf(w, e.part.low, w_rest * e.part.high);
    const Pair tail = quotient({n, n_rest}, below);
    const float product = scaled(fmaf(y, tail.high, y * tail.low), e.exponent);
    return x < 0 ? -product : x - product; // NaN stays
}

// ---- float64 ------------------------------------------------------------------------------------

__device__ __forceinline__ double sigmoid(double x) {
    const double e = exp(-fabs(x)); // NaN stays NaN
    return (x >= 0 ? 1 : e) / (1 + e);
}

// x / (1 + exp(-x)), with exp as a square: results keep their digits down to the subnormals.
__device__ __forceinline__ double silu(double x) {
    if (x < -800) return -0.0;
    const double root = exp(-0.5 * fabs(x)), side = x >= 0 ? 1 : root;
    return x * side / (1 + root * root) * side;
}

// erfc(-x sqrt(1/2)), twice the normal distribution's cumulative function. Where erfc is steep, the
// argument's own rounding error, `rest`, would cost digits: erfc(t + rest) is about
// erfc(t) (1 - 2 t rest).
template <class T> __device__ __forceinline__ T twice_normal_cdf(T x) {
    constexpr T root = T(0.70710678118654752440); // rounded
    constexpr T root_rest = sizeof(T) == 4 ? T(1.2101617104478970e-8) : T(-4.8336466567264567e-17);
    const T t = -x * root, twice = erfc(t);
    if (!(x < T(-1) && x > T(-40))) return twice;
    const T rest = fma(-x, root, -t) - x * root_rest;
    return fma(T(-2) * t * twice, rest, twice);
}

// The limit at -inf is 0, where the product would be NaN.
__device__ __forceinline__ double gelu(double x) {
    return x < -40 ? -0.0 : 0.5 * x * twice_normal_cdf(x);
}

} // namespace pvg
