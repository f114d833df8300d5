// Eight neighbours of a float32 matrix, and how they are split into 16-bit pieces; split.cuh says
// what pieces are.
#pragma once
#include "kernels/matmul/sm90/split.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>

namespace pvg::matmul {

namespace {

constexpr int pack = split_pack;

#if PVG_TARGET_IS_90A

// The first `count` of eight neighbours, and zeros.
__device__ __forceinline__ void load_pack(const float *from, int count, float (&x)[pack]) {
    if (count >= pack && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
        const float4 first = reinterpret_cast<const float4 *>(from)[0];
        const float4 second = reinterpret_cast<const float4 *>(from)[1];
        x[0] = first.x, x[1] = first.y, x[2] = first.z, x[3] = first.w;
        x[4] = second.x, x[5] = second.y, x[6] = second.z, x[7] = second.w;
        return;
    }
#pragma unroll
    for (int e = 0; e < pack; e++) x[e] = e < count ? from[e] : 0.0f;
}

template <class T>
__device__ __forceinline__ void store_piece(const T (&values)[pack], uint16_t *to) {
    uint4 words;
    memcpy(&words, values, sizeof words);
    *reinterpret_cast<uint4 *>(to) = words;
}

// Each piece is the nearest bfloat16 to what is left, and what is left then is exact.
struct Bf16Pieces {
    __device__ static __forceinline__ void store(const float (&x)[pack], uint16_t *to,
                                                 int64_t plane) {
        float rest[pack];
#pragma unroll
        for (int e = 0; e < pack; e++) rest[e] = x[e];
#pragma unroll
        for (int i = 0; i < bf16_planes; i++) {
            __nv_bfloat16 piece[pack];
#pragma unroll
            for (int e = 0; e < pack; e++) {
                piece[e] = __float2bfloat16_rn(rest[e]);
                rest[e] -= __bfloat162float(piece[e]);
            }
            store_piece(piece, to + i * plane);
        }
    }
};

// Of elements that have been scaled.
struct Fp16Pieces {
    __device__ static __forceinline__ void store(const float (&x)[pack], uint16_t *to,
                                                 int64_t plane) {
        __half high[pack], low[pack];
#pragma unroll
        for (int e = 0; e < pack; e++) {
            high[e] = __float2half_rn(x[e]);
            low[e] = __float2half_rn((x[e] - __half2float(high[e])) * fp16_low_scale);
        }
        store_piece(high, to);
        store_piece(low, to + plane);
    }
};

#endif

} // namespace

} // namespace pvg::matmul
