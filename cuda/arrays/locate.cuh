// From a position in a walk (arrays/array.cuh) to where each operand's element lies, on the
// device.
//
// Positions are divided by the lengths of the dimensions, innermost first; a division is a
// multiplication by a number that the host prepares. Where every position of the walk is below 2^31
// and every stride fits 32 bits, so do the numbers that are multiplied, and a card needs one
// instruction for each. Offsets are always 64 bits.
#pragma once
#include "arrays/layout.cuh"

namespace pvg {

// A kernel's parameter, read dimension by dimension: the first few of each table are in one line of
// the constant cache.
template <int N> struct alignas(64) Locator {
    Walk<N> walk;
    bool narrow; // every position is below 2^31, every stride fits 32 bits; else 2^63 and 64
    // n / d == (n * multiplier / 2^B + n) >> shift, where d is the length and B is 32 or 64
    alignas(64) uint64_t multiplier[PVG_MAX_NDIM];
    uint32_t shift[PVG_MAX_NDIM];
};

// What division by `length` needs.
inline void prepare_division(uint64_t length, bool narrow, uint64_t *multiplier, uint32_t *shift) {
    using Wide = unsigned __int128;
    const Wide unit = Wide(1) << (narrow ? 32 : 64);
    *shift = 0;
    while ((Wide(1) << *shift) < length) ++*shift;
    *multiplier = static_cast<uint64_t>(unit * ((uint64_t(1) << *shift) - length) / length + 1);
}

// Fills in what division needs, once the walk is final.
template <int N> void prepare(Locator<N> *locator) {
    int64_t positions = 1;
    for (int i = 0; i < locator->walk.ndim; i++) positions *= locator->walk.shape[i];
    locator->narrow = positions <= int64_t(1) << 31;
    for (int i = 0; i < locator->walk.ndim; i++)
        for (int k = 0; k < N; k++)
            locator->narrow &= locator->walk.strides[k][i] == int32_t(locator->walk.strides[k][i]);
    for (int i = 1; i < locator->walk.ndim; i++)
        prepare_division(static_cast<uint64_t>(locator->walk.shape[i]), locator->narrow,
                         &locator->multiplier[i], &locator->shift[i]);
}

// a * b + c: one instruction, which the compiler makes four of where it has seen that a stride was
// 64 bits.
__device__ __forceinline__ int64_t multiply_add(int32_t a, int32_t b, int64_t c) {
#ifdef __CUDA_ARCH__
    asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(c) : "r"(a), "r"(b));
    return c;
#else
    return int64_t(a) * b + c;
#endif
}

__device__ __forceinline__ int64_t multiply_add(int64_t a, int64_t b, int64_t c) {
    return a * b + c;
}

// The same for a narrow walk, where all of the time goes into arithmetic.
template <int N, int COUNT>
__device__ __forceinline__ void locate_narrow(const Locator<N> &locator,
                                              const int64_t (&position)[COUNT],
                                              int64_t (&offsets)[N][COUNT]) {
    uint32_t rest[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; e++) {
        rest[e] = static_cast<uint32_t>(position[e]);
        for (int k = 0; k < N; k++) offsets[k][e] = 0;
    }
#pragma unroll 1
    for (int i = locator.walk.ndim - 1; i >= 0; i--) {
        const uint32_t length = static_cast<uint32_t>(locator.walk.shape[i]);
        const uint32_t multiplier = static_cast<uint32_t>(locator.multiplier[i]);
#pragma unroll
        for (int e = 0; e < COUNT; e++) {
            uint32_t quotient = 0;
            if (i > 0) quotient = (__umulhi(rest[e], multiplier) + rest[e]) >> locator.shift[i];
            const int32_t index = static_cast<int32_t>(rest[e] - quotient * length);
            rest[e] = quotient;
#pragma unroll
            for (int k = 0; k < N; k++)
                offsets[k][e] = multiply_add(
                    index, static_cast<int32_t>(locator.walk.strides[k][i]), offsets[k][e]);
        }
    }
}

// offsets[k][e]: elements from operand k's first element to the one at position[e].
template <int N, int COUNT>
__device__ __forceinline__ void locate(const Locator<N> &locator, const int64_t (&position)[COUNT],
                                       int64_t (&offsets)[N][COUNT]) {
    if (locator.narrow) return locate_narrow(locator, position, offsets);
    uint64_t rest[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; e++) {
        rest[e] = static_cast<uint64_t>(position[e]);
        for (int k = 0; k < N; k++) offsets[k][e] = 0;
    }
#pragma unroll 1
    for (int i = locator.walk.ndim - 1; i >= 0; i--) {
        const uint64_t length = static_cast<uint64_t>(locator.walk.shape[i]);
        const uint64_t multiplier = locator.multiplier[i];
#pragma unroll
        for (int e = 0; e < COUNT; e++) {
            uint64_t quotient = 0;
            if (i > 0) quotient = (__umul64hi(rest[e], multiplier) + rest[e]) >> locator.shift[i];
            const int64_t index = static_cast<int64_t>(rest[e] - quotient * length);
            rest[e] = quotient;
#pragma unroll
            for (int k = 0; k < N; k++) offsets[k][e] += index * locator.walk.strides[k][i];
        }
    }
}

} // namespace pvg
