// sigmoid, silu and gelu of one element. Of float32 they are right within 2 ulp over all inputs,
// by pairs (the errors that were found are in docs/accuracy.md). Of float64 they are the plain
// formulas.
#pragma once
#include "kernels/pairs.cuh"
#include <math.h>

namespace pvg {

// ---- float32 ------------------------------------------------------------------------------------

// 2^64 exp(x), which is normal, for x from -120 to 0.
__device__ __forceinline__ float shifted_exp(float x) {
    int exponent;
    const float k = nearest_integer(x * 1.44269504f, &exponent);
    const float r = fmaf(k, -1.42860682e-6f, fmaf(k, -0.693145751953125f, x));
    const float m = 1 + fmaf(r * r, exp_tail(r), r);
    return float_of_bits(float_bits(m) + (static_cast<uint32_t>(exponent + 64) << 23));
}

// 2^64 / (1 + exp(-x)), unevaluated, by exp of negative numbers only: no overflow, and small
// results keep their digits until 2^-64 makes them subnormal. NaN gives any number.
__device__ __forceinline__ Pair shifted_sigmoid(float x) {
    const float e = shifted_exp(-fminf(fabsf(x), 120.0f)), least = e * 0x1p-64f;
    const float sum = 1 + least, rest = least - (sum - 1);
    return quotient({x >= 0 ? 0x1p64f : e, 0.0f}, {sum, rest});
}

__device__ __forceinline__ float sigmoid(float x) {
    const Pair y = shifted_sigmoid(x);
    return x != x ? x : (y.high + y.low) * 0x1p-64f;
}

__device__ __forceinline__ float silu(float x) {
    const Pair y = shifted_sigmoid(x);
    const float product = fmaf(y.high, x, y.low * x) * 0x1p-64f;
    return x < -120.0f ? -0.0f : x < 120.0f ? product : x; // or NaN
}

// With y = |x| gelu is max(x, 0) - y N(-y), N the normal distribution's cumulative function, and
// N(-y) = exp(-y^2 / 2) P(v) / (y + 2), v = (y - 2) / (y + 2), where P is nearly constant: by
// Chebyshev's nodes on v from -1 to 7/9. This is (P(v) - P(0)) / v.
__device__ __forceinline__ float gelu_slopes(float v) {
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
    return fmaf(p, v, -0.3314044773578644f);
}
// P(v), to a few digits less.
__device__ __forceinline__ float gelu_factor(float v) {
    return fmaf(gelu_slopes(v), v, 0.67240800f);
}

__device__ __forceinline__ float gelu(float x) {
    const float y = fminf(fabsf(x), 16.0f); // from 14.4 on the rest is 0
    const float half = -0.5f * y, power = half * y;
    const ScaledExp e = scaled_exp(power, fmaf(half, y, -power));
    const Pair below = {y + 2, y - ((y + 2) - 2)};
    const float r = reciprocal_of(below.high), v = (y - 2) * r;
    const float v_rest = fmaf(-below.low, v, fmaf(-below.high, v, y - 2)) * r;
    const float p = gelu_slopes(v);
    const float first = 0.6724079847335815f, sum = fmaf(p, v, first); // and what rounding dropped
    const float sum_rest = fmaf(p, v, first - sum) + fmaf(p, v_rest, 2.03e-8f);
    const Pair tail = quotient(product({sum, sum_rest}, e.part), below);
    const float rest = scaled_normal(fmaf(y, tail.high, y * tail.low), e.exponent);
    return x < 0 ? -rest : x - rest; // NaN stays
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
