// Comparisons and logic of bytes, four in a word: byte by byte they take longer than the memory.
#pragma once
#include "kernels/elementwise.cuh"

namespace pvg {

namespace packed {

constexpr uint32_t ones = 0x01010101u, highs = 0x80808080u; // bits of each byte

// 1 where a byte is not 0.
__device__ __forceinline__ uint32_t nonzero(uint32_t x) {
    return (((x & ~highs) + ~highs) | x) >> 7 & ones;
}

// 1 where a byte of a is less. Where the highest bits are equal the others tell, whose difference
// borrows from no other byte.
template <bool IS_SIGNED> __device__ __forceinline__ uint32_t less(uint32_t a, uint32_t b) {
    const uint32_t not_less = (a | highs) - (b & ~highs);
    const uint32_t by_highest = IS_SIGNED ? a & ~b : ~a & b;
    return (by_highest | (~(a ^ b) & ~not_less)) >> 7 & ones;
}

} // namespace packed

// r[i] = the answers of a comparison for a[i] and b[i], bytes of 0 or 1; of bools whether they are
// true is what is compared.
template <class T, int N>
__device__ __forceinline__ void compare_bytes(int code, uint32_t (&a)[N], uint32_t (&b)[N],
                                              uint32_t (&r)[N]) {
    constexpr auto less = packed::less<is_signed<T>>;
    if (is_bool<T> || code >= PVG_LOGICAL_AND) {
#pragma unroll
        for (int i = 0; i < N; i++) a[i] = packed::nonzero(a[i]), b[i] = packed::nonzero(b[i]);
    }
#define PVG_CASE(NAME, value) \
    case PVG_##NAME: each(a, b, r, [](uint32_t x, uint32_t y) { return value; }); return;
    switch (code) {
        PVG_CASE(EQUAL, packed::nonzero(x ^ y) ^ packed::ones)
        PVG_CASE(NOT_EQUAL, packed::nonzero(x ^ y))
        PVG_CASE(LESS, less(x, y))
        PVG_CASE(LESS_EQUAL, less(y, x) ^ packed::ones)
        PVG_CASE(GREATER, less(y, x))
        PVG_CASE(GREATER_EQUAL, less(x, y) ^ packed::ones)
        PVG_CASE(LOGICAL_AND, x & y)
        PVG_CASE(LOGICAL_OR, x | y)
        PVG_CASE(LOGICAL_XOR, x ^ y)
    }
#undef PVG_CASE
}

} // namespace pvg
