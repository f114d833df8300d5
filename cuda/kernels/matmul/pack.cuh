// Two numbers of 16 bits in a word, as they are stored and copied.
#pragma once
#include "kernels/matmul/instructions.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>

namespace pvg::matmul {

// Two numbers rounded to T, a type of 16 bits, the first in the lower half.
template <class T> __device__ __forceinline__ uint32_t pack_pair(float low, float high) {
    uint32_t word;
    if constexpr (std::is_same_v<T, BFloat16>) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        memcpy(&word, &pair, sizeof word);
    } else {
        const __half2 pair = __floats2half2_rn(low, high);
        memcpy(&word, &pair, sizeof word);
    }
    return word;
}

} // namespace pvg::matmul
