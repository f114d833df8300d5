// Exponentials for sums of many: of float32 by the card's own power of two, in three instructions
// where exp takes ten.
#pragma once
#include <math.h>

namespace pvg {

// exp(x) to 2 + |x| units in the last place, for terms of a sum whose largest is 1; below 2^-126 0.
__device__ __forceinline__ float quick_exp(float x) {
#ifdef PVG_SIMULATOR
    return exp2f(x * 1.44269504f);
#else
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.44269504f));
    return result;
#endif
}
__device__ __forceinline__ double quick_exp(double x) { return exp(x); }

} // namespace pvg
