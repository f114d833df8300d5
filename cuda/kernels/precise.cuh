// Functions of float32 that CUDA's own miss by more than 2 ulp somewhere, or that it lacks: mostly
// by pairs (pairs.cuh) they are right within 1.5 over all inputs (docs/accuracy.md has what was
// found). Of float64 they are CUDA's.
#pragma once
#include "kernels/pairs.cuh"
#include "kernels/quick_exp.cuh"
#include <math.h>

namespace pvg::precise {

// ---- Exponentials -------------------------------------------------------------------------------

// (exp(y) + side exp(-y)) / 2 for y from 0 on, side 1 or -1.
__device__ __forceinline__ float half_sum(float y, float side) {
    const ScaledExp e = scaled_exp(fminf(y, 100.0f), 0.0f); // infinity from 89.5 on
    const int down = e.exponent > 63 ? 63 : e.exponent;
    const float scale = side * power_of_two(-2 * down);
    const Pair part = ordered_sum(e.part.high, e.part.low);
    const Pair inverse = quotient({1.0f, 0.0f}, part);
    const Pair sum = ordered_sum(part.high, inverse.high * scale);
    const float low = sum.low + fmaf(inverse.low, scale, part.low);
    return scaled(sum.high + low, e.exponent - 1);
}

__device__ __forceinline__ float sinh(float x) {
    const float y = fabsf(x), z = x * x;
    if (y < 0.3f) {
        const float p = fmaf(fmaf(z, 1.0f / 5040, 1.0f / 120), z, 1.0f / 6);
        return fmaf(x * z, p, x);
    }
    return x != x ? x : copysignf(half_sum(y, -1.0f), x);
}
__device__ __forceinline__ float cosh(float x) { return x != x ? x : half_sum(fabsf(x), 1.0f); }

__device__ __forceinline__ float exp2(float x) {
    const ScaledExp y = scaled_exp2(fminf(fmaxf(x, -200.0f), 200.0f), 0.0f);
    return x != x ? x : scaled(y.part.high + y.part.low, y.exponent);
}

// ---- Logarithms ---------------------------------------------------------------------------------

// By a polynomial near 0, where CUDA's is furthest off.
__device__ __forceinline__ float atanh(float x) {
    const float z = x * x;
    if (!(fabsf(x) < 0.5f)) return atanhf(x);
    // (atanh(x) - x) / x^3 by Chebyshev's nodes on x^2 up to 0.2505
    float p = 0.15658745f;
    p = fmaf(p, z, 0.04071386f);
    p = fmaf(p, z, 0.09757084f);
    p = fmaf(p, z, 0.11050235f);
    p = fmaf(p, z, 0.14288317f);
    p = fmaf(p, z, 0.19999959f);
    p = fmaf(p, z, 0.33333334f);
    return fmaf(x * z, p, x);
}

// A positive number is (1 + fraction) 2^exponent, the fraction from -1/3 to 1/3.
struct NearOne {
    float fraction;
    int exponent;
};

// Of a normal number, exactly.
__device__ __forceinline__ NearOne near_one(float x) {
    const int exponent = static_cast<int>(float_bits(x) - 0x3f2aaaab) >> 23; // of 2/3
    return {float_of_bits(float_bits(x) - (static_cast<uint32_t>(exponent) << 23)) - 1, exponent};
}

// p(f) of log(1 + f) = f + f^2 p(f), minimax on |f| <= 1/3.
__device__ __forceinline__ float log_tail(float f) {
    float p = -0.12948781f;
    p = fmaf(p, f, 0.14004771f);
    p = fmaf(p, f, -0.12167197f);
    p = fmaf(p, f, 0.14001158f);
    p = fmaf(p, f, -0.16682303f);
    p = fmaf(p, f, 0.20010749f);
    p = fmaf(p, f, -0.24999717f);
    p = fmaf(p, f, 0.3333321f);
    return fmaf(p, f, -0.5f);
}

__device__ __forceinline__ float log10(float x) {
    const bool is_small = x < 0x1p-126f;
    const NearOne parts = near_one(is_small ? x * 0x1p24f : x);
    const float f = parts.fraction, k = static_cast<float>(parts.exponent - (is_small ? 24 : 0));
    // 1 / ln 10 and log10(2) are pairs, their first products kept exactly.
    const float of_two = k * 0.301025390625f, high = fmaf(f, 0.4342945f, of_two);
    const float low = fmaf(f, fmaf(f, 0.4342945f * log_tail(f), -1.010305e-08f),
                           fmaf(f, 0.4342945f, of_two - high));
    const float result = high + fmaf(k, 4.605039e-06f, low);
    return x > 0 ? x < INFINITY ? result : x : x == 0 ? -INFINITY : NAN;
}

// log(x + sqrt(x^2 - 1)): 1 + d + sqrt(d^2 + 2 d), whose digits beyond a float count near 1.
__device__ __forceinline__ float acosh(float x) {
    const float d = x - 1, square = fmaf(d, d, 2 * d), square_rest = fmaf(d, d, 2 * d - square);
    const float r = reciprocal_root_of(square + 0x1p-100f), root = square * r;
    const float root_rest = (fmaf(-root, root, square) + square_rest) * (0.5f * r);
    const Pair above = ordered_sum(root, d), sum = ordered_sum(1.0f, above.high);
    const bool is_large = x > 0x1p13f; // log(2 x) is the same
    const NearOne parts = near_one(is_large ? x : sum.high);
    const float sum_rest = sum.low + (above.low + root_rest);
    const Pair f =
        ordered_sum(parts.fraction, is_large ? 0.0f : sum_rest * power_of_two(-parts.exponent));
    const float k = static_cast<float>(parts.exponent + is_large);
    const float of_two = k * 0.693145751953125f, high = of_two + f.high;
    const float low = fmaf(f.high * f.high, log_tail(f.high), fmaf(-f.low, f.high, f.low));
    const float result = high + (fmaf(k, 1.42860682e-6f, low) + (f.high + (of_two - high)));
    return x >= 1 ? x < INFINITY ? result : x : NAN;
}

// exp(x), with an error of 2^-30, for x from -150 to 0.
__device__ __forceinline__ Pair exp_of_negative(Pair x) {
    int exponent;
    const float k = nearest_integer(x.high * 1.44269504f, &exponent);
    const float r = fmaf(k, -0.693145751953125f, x.high);
    const float r_rest = fmaf(k, -1.42860682e-6f, x.low), s = r + r_rest;
    // exp(s) = 1 + s + s^2 / 2 + s^3 p(s), minimax
    float p = fmaf(fmaf(0.00019918231f, s, 0.0013946381f), s, 0.008333265f);
    p = fmaf(fmaf(p, s, 0.041666266f), s, 0.16666667f);
    const float z = s * s, z_rest = fmaf(s, s, -z);
    const Pair first = ordered_sum(1.0f, s), sum = ordered_sum(first.high, 0.5f * z);
    const float rest = fmaf(z * s, p, fmaf(0.5f, z_rest, (r - s) + r_rest));
    const Pair part = ordered_sum(sum.high, sum.low + (first.low + rest));
    return {scaled(part.high, exponent), scaled(part.low, exponent)};
}

// max(x, y) + log(1 + exp(-|x - y|)), in float64 where the two all but cancel.
__device__ __forceinline__ double logaddexp(double x, double y) {
    if (x == y) return x + 0.69314718055994530942; // infinities, too
    const double most = x > y ? x : y, least = x > y ? y : x;
    return x != x || y != y ? x + y : most + ::log1p(::exp(least - most));
}
__device__ __forceinline__ bool is_usual_logarithm(float x) { return fabsf(x) >= 0x1p-7f; }
__device__ __forceinline__ Tried tried_logaddexp(float x, float y) {
    const float most = x > y ? x : y, least = x > y ? y : x;
    const Pair apart = two_sum(least, -most);
    const Pair power = exp_of_negative(apart);
    Pair sum = ordered_sum(1.0f, power.high);
    sum.low += power.low;
    const Pair log = log_of(sum), larger = two_sum(most, log.high);
    const float result = larger.high + (larger.low + log.low);
    return {result, apart.high > -150 && is_usual_logarithm(result)};
}
// Of halves: the card's own logarithm and power of two have the digits.
__device__ __forceinline__ Tried tried_logaddexp_of_halves(float x, float y) {
    const float most = x > y ? x : y, apart = (x > y ? y : x) - most;
    const float result = fmaf(quick_log2(1 + quick_exp(apart)), 0.693147181f, most);
    return {result, apart <= 0 && is_usual_logarithm(result)};
}
// Of those that no usual way is right of.
__device__ __forceinline__ float rare_logaddexp(float x, float y) {
    const float most = x > y ? x : y, apart = (x > y ? y : x) - most;
    if (apart > -150) return static_cast<float>(logaddexp(double(x), double(y)));
    return x == y ? x : x != x || y != y ? x + y : most;
}

// ---- Roots --------------------------------------------------------------------------------------

// sqrt(x^2 + y^2) of halves, whose squares float32 mostly holds.
__device__ __forceinline__ Tried tried_hypot_of_halves(float x, float y) {
    const float sum = fmaf(x, x, y * y);
    return {sum * reciprocal_root_of(sum), sum > 0x1p-100f && sum < 0x1p120f};
}
__device__ __forceinline__ Tried tried_hypot(float x, float y) { return {hypotf(x, y), true}; }

// ---- Tangents -----------------------------------------------------------------------------------

// The 32 digits from `bit` on of 2 / pi, which begin after a word of 0.
__device__ __forceinline__ uint32_t digits_of_two_over_pi(int bit) {
    constexpr uint32_t word[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    const uint64_t both = static_cast<uint64_t>(word[bit / 32]) << 32 | word[bit / 32 + 1];
    return static_cast<uint32_t>(both >> (32 - bit % 32));
}

// |x| = (quadrant + 4 n) pi / 2 + result for |x| from 2^16 on, finite: x is m 2^e, and of
// m 2^e 2 / pi the digits from 2 above the point on are enough (Payne and Hanek, 1983).
__device__ __forceinline__ Pair large_remainder(float x, int *quadrant) {
    const uint32_t bits = float_bits(x) & 0x7fffffff, m = (bits & 0x7fffff) | 0x800000;
    const int e = static_cast<int>(bits >> 23) - 150, first = e - 2 + 32;
    const uint64_t low = static_cast<uint64_t>(m) * digits_of_two_over_pi(first + 64);
    const uint64_t middle = static_cast<uint64_t>(m) * digits_of_two_over_pi(first + 32);
    const uint64_t high = static_cast<uint64_t>(m) * digits_of_two_over_pi(first);
    const uint64_t digits = middle + (low >> 32) + (high << 32); // modulo 4, in units of 2^-62
    *quadrant = static_cast<int>((digits + (uint64_t(1) << 61)) >> 62) & 3;
    const int64_t rest = static_cast<int64_t>(digits << 2) / 4; // less the nearest integer
    const double angle = static_cast<double>(rest) * (1.57079632679489661923 * 0x1p-62);
    const float nearest = static_cast<float>(angle);
    return {nearest, static_cast<float>(angle - nearest)};
}

__device__ __forceinline__ Pair small_remainder(float x, int *quadrant) {
    const float k = nearest_integer(x * 0.636619772f, quadrant);
    const float first = fmaf(k, -0x1.921fb6p+0f, x); // exact
    const float by = k * 0x1.777a5cp-25f, by_rest = fmaf(k, 0x1.777a5cp-25f, -by);
    const Pair sum = two_sum(first, by);
    return ordered_sum(sum.high, sum.low + fmaf(k, 0x1.ee59dap-50f, by_rest));
}

__device__ __forceinline__ float tan(float x) {
    if (!(fabsf(x) < INFINITY)) return NAN;
    int quadrant;
    const bool is_large = fabsf(x) >= 0x1p16f;
    Pair r = is_large ? large_remainder(x, &quadrant) : small_remainder(x, &quadrant);
    if (is_large && x < 0) r = {-r.high, -r.low}, quadrant = -quadrant;
    const float z = r.high * r.high;
    // (tan(r) - r) / r^3 by Chebyshev's nodes on r^2 up to 0.62
    float p = 0.0038610685151070356f;
    p = fmaf(p, z, 0.0011550423223525286f);
    p = fmaf(p, z, 0.009981141425669193f);
    p = fmaf(p, z, 0.02161569893360138f);
    p = fmaf(p, z, 0.05399515479803085f);
    p = fmaf(p, z, 0.1333322823047638f);
    p = fmaf(p, z, 0.3333333432674408f);
    const float tail = r.high * z * p, whole = r.high + tail;
    const Pair t = ordered_sum(r.high, fmaf(r.low, fmaf(whole, whole, 1.0f), tail));
    if (quadrant % 2 == 0) return x == 0 ? x : t.high + t.low;
    const Pair inverse = quotient({-1.0f, 0.0f}, t);
    return inverse.high + inverse.low;
}

// ---- float64 ------------------------------------------------------------------------------------

__device__ __forceinline__ double sinh(double x) { return ::sinh(x); }
__device__ __forceinline__ double cosh(double x) { return ::cosh(x); }
__device__ __forceinline__ double exp2(double x) { return ::exp2(x); }
__device__ __forceinline__ double atanh(double x) { return ::atanh(x); }
__device__ __forceinline__ double tan(double x) { return ::tan(x); }
__device__ __forceinline__ double log10(double x) { return ::log10(x); }
__device__ __forceinline__ double acosh(double x) { return ::acosh(x); }

} // namespace pvg::precise
