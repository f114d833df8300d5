// Numbers of twice the digits: unevaluated sums of two floats, by which a function of float32 can
// carry what each rounding drops to its last step, and exponentials and logarithms in them.
#pragma once
#include "dtypes/half.cuh"
#include <math.h>

namespace pvg {

// The second is at most about an ulp of the first.
struct Pair { float high, low; };

// What a function's usual way gives, without a branch; and whether that is right, or the arguments
// are some of those that take long code.
struct Tried {
    float value;
    bool is_right;
};

// a + b, rounded even where b is a product: no compiler may make both one fma.
__device__ __forceinline__ float rounded_sum(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

// a + b for |a| >= |b|, exactly.
__device__ __forceinline__ Pair ordered_sum(float a, float b) {
    const float sum = rounded_sum(a, b);
    return {sum, b - (sum - a)};
}

// a + b, exactly.
__device__ __forceinline__ Pair two_sum(float a, float b) {
    const float sum = rounded_sum(a, b), part = sum - a;
    return {sum, (a - (sum - part)) + (b - part)};
}

__device__ __forceinline__ Pair product(Pair a, Pair b) {
    const float high = a.high * b.high;
    return {high, fmaf(a.high, b.high, -high) + fmaf(a.high, b.low, a.low * b.high)};
}

// 1 / d with a relative error of 2^-23, where that is a normal number.
__device__ __forceinline__ float reciprocal_of(float d) {
#ifdef PVG_SIMULATOR
    return 1 / d;
#else
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
    return r;
#endif
}

// 1 / sqrt(x) with a relative error of 2^-22, for a normal number x.
__device__ __forceinline__ float reciprocal_root_of(float x) {
#ifdef PVG_SIMULATOR
    return 1 / sqrtf(x);
#else
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
#endif
}

// n / d where 1 / d is a normal number.
__device__ __forceinline__ Pair quotient(Pair n, Pair d) {
    const float r = reciprocal_of(d.high), q = n.high * r; // the remainder makes r's error good
    return {q, (fmaf(-d.high, q, n.high) + fmaf(-d.low, q, n.low)) * r};
}

// 2^k for k from -126 to 127.
__device__ __forceinline__ float power_of_two(int k) {
    return float_of_bits(static_cast<uint32_t>(k + 127) << 23);
}

// x 2^k for k from -252 to 254, rounded once where the result is subnormal.
__device__ __forceinline__ float scaled(float x, int k) {
    return x * power_of_two(k >> 1) * power_of_two(k - (k >> 1));
}

// The same for a normal x whose root, x 2^(k / 2), is normal too; of 0 for k 0 alone.
__device__ __forceinline__ float scaled_normal(float x, int k) {
    const int half = k >> 1;
    const float root = float_of_bits(float_bits(x) + (static_cast<uint32_t>(half) << 23));
    return root * float_of_bits((static_cast<uint32_t>(k - half) << 23) + 0x3f800000);
}

// ---- Exponentials -------------------------------------------------------------------------------

// part 2^exponent, with the part from 0.7 to 1.42, of which the second may be 2^-4 of the first.
struct ScaledExp {
    Pair part;
    int exponent;
};

// The integer next to a number below 2^22, and the same as an int.
__device__ __forceinline__ float nearest_integer(float x, int *as_int) {
    const float round = 0x1.8p23f, shifted = x + round;
    *as_int = static_cast<int>(float_bits(shifted) - float_bits(round));
    return shifted - round;
}

// p(s) of exp(s) = 1 + s + s^2 p(s), by Chebyshev's nodes on |s| <= 0.3475.
__device__ __forceinline__ float exp_tail(float s) {
    float p = 0x1.6d1254p-10f;
    p = fmaf(p, s, 0x1.120cbap-7f);
    p = fmaf(p, s, 0x1.555518p-5f);
    p = fmaf(p, s, 0x1.5554dcp-3f);
    return fmaf(p, s, 0.5f);
}

// exp(s + rest), for |s| <= 0.3475; the second is up to 2^-4 of the first.
__device__ __forceinline__ Pair exp_near_zero(float s, float rest) {
    const Pair sum = ordered_sum(1.0f, s);
    return {sum.high, sum.low + fmaf(s * s, exp_tail(s), rest)};
}

// exp(x + rest) for |x| up to 200, a rest below its ulp.
__device__ __forceinline__ ScaledExp scaled_exp(float x, float rest) {
    ScaledExp result;
    const float k = nearest_integer(x * 1.44269504f, &result.exponent);
    // ln 2 is 0.693145751953125, whose 16 digits make the first step exact, and the rest.
    const float r = fmaf(k, -0.693145751953125f, x);
    const float r_rest = fmaf(k, -1.42860682e-6f, rest);
    const float s = r + r_rest;
    result.part = exp_near_zero(s, (r - s) + r_rest);
    return result;
}

// 2^(x + rest), for |x| up to 200.
__device__ __forceinline__ ScaledExp scaled_exp2(float x, float rest) {
    ScaledExp result;
    const float r = x - nearest_integer(x, &result.exponent), sum = r + rest;
    const Pair ln2 = {0x1.62e43p-1f, -0x1.05c61p-29f};
    const Pair s = product({sum, (r - sum) + rest}, ln2);
    result.part = exp_near_zero(s.high, s.low);
    return result;
}

// ---- Logarithms ---------------------------------------------------------------------------------

// log(x) for x > 0, finite, with a relative error of 2^-33: x is m 2^k with m from 0.7 to 1.42, and
// log(m) = 2 s + 2 s^3 / 3 + 2 s^5 / 5 ..., s = (m - 1) / (m + 1).
__device__ __forceinline__ Pair log_of(Pair x) {
    const bool is_small = x.high < 0x1p-100f; // some are subnormal
    if (is_small) x.high *= 0x1p64f, x.low *= 0x1p64f;
    const uint32_t root = 0x3f3504f3; // sqrt(1/2)
    const int exponent = static_cast<int>(float_bits(x.high) - root) >> 23;
    const float m = float_of_bits(float_bits(x.high) - (static_cast<uint32_t>(exponent) << 23));
    const float m_rest = x.low == 0 ? 0.0f : scaled(x.low, -exponent);
    const Pair f = ordered_sum(m - 1, m_rest), above = ordered_sum(2.0f, f.high);
    const Pair s = quotient(f, {above.high, above.low + f.low});
    const float z = s.high * s.high;
    float p = 0.15384616f;
    p = fmaf(p, z, 0.18181819f);
    p = fmaf(p, z, 0.22222222f);
    p = fmaf(p, z, 0.28571427f);
    p = fmaf(p, z, 0.4f);
    const Pair square = {z, fmaf(s.high, s.high, -z) + 2 * s.high * s.low};
    const Pair cubic = product(product(s, square), {0x1.555556p-1f, -0x1.555556p-26f}); // 2 / 3
    const Pair both = ordered_sum(2 * s.high, cubic.high);
    const float rest = fmaf(cubic.high * z, 1.5f * p, cubic.low);
    const Pair of_m = ordered_sum(both.high, both.low + fmaf(2.0f, s.low, rest));
    const float k = static_cast<float>(is_small ? exponent - 64 : exponent);
    const Pair sum = ordered_sum(k * 0.693145751953125f, of_m.high); // k 0: exact all the same
    return ordered_sum(sum.high, sum.low + fmaf(k, 1.42860682e-6f, of_m.low));
}

} // namespace pvg
