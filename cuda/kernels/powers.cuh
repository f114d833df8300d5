// Powers of floats. CUDA's of float32 is off by more than 2 ulp somewhere; here, mostly by pairs
// (pairs.cuh), the logarithm has the 32 digits that a power as large as any takes.
#pragma once
#include "kernels/precise.cuh"
#include <math.h>

namespace pvg::precise {

// log(x) for a normal number x > 0, of which the second is up to 2^-7 of the first. x is
// m 2^exponent, m from 0.8165 to 1.633; a large m is taken 3/4 times, which leaves 1 + f, f exact,
// |f| < 0.225. log(1 + f) = q + q^3 / 12 + q^5 / 80 ..., q = f / (1 + f / 2).
__device__ __forceinline__ Pair log_for_power(float x, int more) {
    const int exponent = static_cast<int>(float_bits(x) - 0x3f5105ec) >> 23; // of 0.8165
    const float m = float_of_bits(float_bits(x) - (static_cast<uint32_t>(exponent) << 23));
    const bool is_large = m > 1.1547f;
    const float f = fmaf(m, is_large ? 0.75f : 1.0f, -1.0f);
    const float d = fmaf(f, 0.5f, 1.0f), d_rest = fmaf(f, 0.5f, 1 - d);
    const float r = reciprocal_of(d), q = f * r, z = q * q;
    const float p = fmaf(fmaf(0.0022670829f, z, 0.012499157f), z, 0.083333336f); // minimax
    const float missing = fmaf(-d_rest, q, fmaf(-d, q, f)) * r;
    const float q_rest = fmaf(0.25f * z, missing, missing); // with what it adds to the cube
    // ln 2 and ln(4/3) to 16 digits, by which the first sum is exact, and the rest.
    const float k = static_cast<float>(exponent + more);
    const float whole = fmaf(k, 0.693145751953125f, is_large ? 0.287689208984375f : 0.0f);
    const float rest = fmaf(k, 1.42860682e-6f, is_large ? -7.1365325e-6f : 0.0f);
    const Pair sum = ordered_sum(whole, q);
    return {sum.high, fmaf(q * z, p, sum.low + (q_rest + rest))};
}

// x^y where x is 0, infinite or NaN, or negative with a large y, or the power's logarithm is
// infinite or NaN; `power` is that of the magnitude of x if both are finite and x is not 0.
__device__ __forceinline__ float special_power(float x, float y, float power) {
    const float base = fabsf(x);
    if (x == 1 || y == 0) return 1;
    if (x != x || y != y) return x + y;
    if (base == 0 || base == INFINITY || fabsf(y) == INFINITY)
        power = base == 1 ? 1.0f : (base > 1) == (y > 0) ? INFINITY : 0.0f;
    const bool is_whole = truncf(y) == y, is_odd = is_whole && 2 * truncf(0.5f * y) != y;
    if (x < 0 && base != INFINITY && !is_whole) return NAN;
    return is_odd ? copysignf(power, x) : power; // of -0, too
}

// Right, or the `power` of special_power. `log_power` is the logarithm of the magnitude's power, of
// any base. Of a number that is negative, as half of many arrays are, the nearest integer to the
// exponent is the lowest bits of a sum.
__device__ __forceinline__ Tried tried_power(float x, float y, float power, float log_power) {
    const float shifted = y + 0x1.8p23f;
    const float negative = float_of_bits(float_bits(power) ^ float_bits(shifted) << 31);
    const bool is_whole = shifted - 0x1.8p23f == y, is_negative = x < 0 && fabsf(y) < 0x1p22f;
    return {is_negative ? is_whole ? negative : NAN : power,
            (x > 0 || is_negative) && fabsf(x) < INFINITY && fabsf(log_power) < INFINITY};
}

__device__ __forceinline__ Tried tried_pow(float x, float y) {
    const bool is_small = fabsf(x) < 0x1p-126f;
    const Pair log = log_for_power(fabsf(x) * (is_small ? 0x1p24f : 1.0f), is_small ? -24 : 0);
    const float high = log.high * y, low = fmaf(log.low, y, fmaf(log.high, y, -high));
    int exponent;
    const float k = nearest_integer((high + low) * 1.44269504f, &exponent);
    const float r = fmaf(k, -0.693145751953125f, high), r_rest = fmaf(k, -1.42860682e-6f, low);
    const float s = r + r_rest;
    const Pair part = exp_near_zero(s, (r - s) + r_rest);
    float power = scaled_normal(part.high + part.low, exponent);
    if (fabsf(high) >= 150) power = high > 0 ? INFINITY : 0.0f;
    return tried_power(x, y, power, high);
}

// Of halves: the result has 11 digits, the power's logarithm of base 2 is up to 150.
__device__ __forceinline__ Tried tried_pow_of_halves(float x, float y) {
    const bool is_small = fabsf(x) < 0x1p-126f; // of bfloat16
    const NearOne parts = near_one(fabsf(x) * (is_small ? 0x1p24f : 1.0f));
    const float f = parts.fraction, k = static_cast<float>(parts.exponent - (is_small ? 24 : 0));
    const float exponent = fmaf(fmaf(f * f, log_tail(f), f), 1.44269504f, k) * y;
    return tried_power(x, y, exp2f(exponent), exponent);
}

__device__ __forceinline__ double pow(double x, double y) { return ::pow(x, y); }

} // namespace pvg::precise
