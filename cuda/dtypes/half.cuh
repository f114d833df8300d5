// float16 and bfloat16: numbers of two bytes that are stored as they are and computed as float.
//
// Every conversion to them rounds once, to the nearest and of two nearest to the even one, as NumPy
// does. A float is rounded directly. A double or a large integer becomes a float first, rounded to
// odd: what does not fit leaves its trace in the last bit, so that the second rounding sees on
// which side of a tie the number was. Rounding twice to the nearest would give another result for
// some numbers just beside a tie.
#pragma once
#include <stdint.h>
#include <string.h>
#include <type_traits>

namespace pvg {

__host__ __device__ __forceinline__ uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
__host__ __device__ __forceinline__ float float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The float that x is, or of the two on either side of it the one whose last bit is 1.
__host__ __device__ __forceinline__ float round_to_odd(double x) {
    const float nearest = static_cast<float>(x);
    const double back = nearest;
    if (back == x || x != x) return nearest;
    const bool away = x < 0 ? back < x : back > x; // from zero
    return float_of_bits((float_bits(nearest) - away) | 1);
}

template <class Integer> __host__ __device__ __forceinline__ float round_to_odd(Integer x) {
    if constexpr (sizeof(Integer) < 4) {
        return static_cast<float>(x);
    } else if constexpr (sizeof(Integer) < 8) {
        return round_to_odd(static_cast<double>(x));
    } else { // more digits than a double has: these are rounded to odd as well
        bool negative = false;
        if constexpr (std::is_signed_v<Integer>) negative = x < 0;
        uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
        constexpr uint64_t dropped = (1 << 11) - 1;
        if (magnitude >> 53) magnitude = (magnitude | ((magnitude & dropped) + dropped)) & ~dropped;
        const double exact = static_cast<double>(magnitude);
        return round_to_odd(negative ? -exact : exact);
    }
}

// float16, IEEE 754's binary16: 5 bits of exponent, 10 of fraction.
struct Half {
    uint16_t bits;
    Half() = default;
    __host__ __device__ explicit Half(float x) : bits(round(x)) {}
    template <class Number>
    __host__ __device__ explicit Half(Number x) : bits(round(round_to_odd(x))) {}

    __host__ __device__ explicit operator float() const {
#ifdef __CUDA_ARCH__
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
#else
        const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
        const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
        if (magnitude >= 0x0f800000) return float_of_bits(sign | magnitude | 0x7f800000);
        const float scale = 0x1p112f; // between the two biases of the exponent
        return float_of_bits(sign | float_bits(float_of_bits(magnitude) * scale));
#endif
    }

private:
    __host__ __device__ static uint16_t round(float x) {
#ifdef __CUDA_ARCH__
        uint16_t result;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(x));
        return result;
#else
        const uint32_t all = float_bits(x), sign = all >> 16 & 0x8000, magnitude = all & 0x7fffffff;
        uint32_t result;
        if (magnitude > 0x7f800000) return 0x7fff; // NaN, as the device's instruction makes it
        if (magnitude >= 0x477ff000)
            result = 0x7c00;             // from 65520 on: infinity
        else if (magnitude < 0x38800000) // below 2^-14 the last digit is always worth 2^-24, like
            result = float_bits(float_of_bits(magnitude) + 0.5f) - 0x3f000000; // that of 0.5 to 1
        else
            result = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
        return static_cast<uint16_t>(sign | result);
#endif
    }
};

// bfloat16: the upper half of a float, 8 bits of exponent, 7 of fraction.
struct BFloat16 {
    uint16_t bits;
    BFloat16() = default;
    __host__ __device__ explicit BFloat16(float x) : bits(round(x)) {}
    template <class Number>
    __host__ __device__ explicit BFloat16(Number x) : bits(round(round_to_odd(x))) {}

    __host__ __device__ explicit operator float() const {
        return float_of_bits(static_cast<uint32_t>(bits) << 16);
    }

private:
    __host__ __device__ static uint16_t round(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        uint16_t result;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(x));
        return result;
#else
        if (x != x) return 0x7fff; // as the instruction makes it
        const uint32_t all = float_bits(x);
        return static_cast<uint16_t>((all + 0x7fff + (all >> 16 & 1)) >> 16);
#endif
    }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2, "stored in two bytes");

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

} // namespace pvg
