// Exponentials for sums of many, and logarithms for few digits: of float32 by the card's own power
// of two and its inverse, in a few instructions where exp takes ten.
#pragma once
#include <math.h>

namespace pvg {

// 2 to the power of x, to two units in the last place; below 2^-126 zero.
__device__ __forceinline__ float quick_exp2(float x) {
#ifdef PVG_SIMULATOR
    return exp2f(x);
#else
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#endif
}

// exp(x) to 2 + |x| units in the last place, for terms of a sum whose largest is 1.
__device__ __forceinline__ float quick_exp(float x) { return quick_exp2(x * 1.44269504f); }
__device__ __forceinline__ double quick_exp(double x) { return exp(x); }

// exp(x) for an element of type T, computed in A: of halves the last digits are rounded away.
template <class T, class A> __device__ __forceinline__ A exp_for(A x) {
    if constexpr (sizeof(T) < sizeof(A))
        return quick_exp(x);
    else
        return exp(x);
}

// The logarithm of base 2 of x from 1 to 2, with an error of 2^-22.
__device__ __forceinline__ float quick_log2(float x) {
#ifdef PVG_SIMULATOR
    return log2f(x);
#else
    float result;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#endif
}

} // namespace pvg
