// TF32: floats as fragments::multiply_singles takes them.
#pragma once
#include "kernels/fragments.cuh"

namespace pvg::matmul {

namespace {

// A float to the nearest of 11 bits, as multiply_singles takes them; of two nearest to the even
// one, before compute capability 9.0 to the larger one.
__device__ __forceinline__ uint32_t round_single(float value) {
    uint32_t bits;
#if defined(PVG_SIMULATOR) || !PVG_HAS_FRAGMENTS
    memcpy(&bits, &value, 4);
    if ((bits & 0x7f800000) == 0x7f800000)
        return bits | (bits & 0x1fff ? 0x2000 : 0); // infinity, NaN
    bits = (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
#elif __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#endif
    return bits;
}

} // namespace

} // namespace pvg::matmul
