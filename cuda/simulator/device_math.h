/* Arithmetic that CUDA's device code has and <math.h> has not.
 *
 * The host's libm stands in for CUDA's: results may differ from a card's in the last places, and
 * g++ fuses no a * b + c, so tests compare with tolerances or use integer-valued operands. */
#pragma once
#include <limits>
#include <math.h>
#include <stdlib.h>

/* ---- min and max: CUDA's own overloads, ambiguous where nvcc's are ---- */

#define PVG_SIM_MIN_MAX(R, A, B)                                    \
    constexpr R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; } \
    constexpr R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
#define PVG_SIM_MIN_MAX_INTEGER(T)                      \
    PVG_SIM_MIN_MAX(T, T, T)                            \
    PVG_SIM_MIN_MAX(unsigned T, unsigned T, unsigned T) \
    PVG_SIM_MIN_MAX(unsigned T, T, unsigned T)          \
    PVG_SIM_MIN_MAX(unsigned T, unsigned T, T)

PVG_SIM_MIN_MAX_INTEGER(int)
PVG_SIM_MIN_MAX_INTEGER(long)
PVG_SIM_MIN_MAX_INTEGER(long long)
#undef PVG_SIM_MIN_MAX_INTEGER
#undef PVG_SIM_MIN_MAX

#define PVG_SIM_MIN_MAX_FLOAT(R, A, B, suffix)            \
    inline R min(A a, B b) { return fmin##suffix(a, b); } \
    inline R max(A a, B b) { return fmax##suffix(a, b); }
PVG_SIM_MIN_MAX_FLOAT(float, float, float, f)
PVG_SIM_MIN_MAX_FLOAT(double, double, double, )
PVG_SIM_MIN_MAX_FLOAT(double, float, double, )
PVG_SIM_MIN_MAX_FLOAT(double, double, float, )
#undef PVG_SIM_MIN_MAX_FLOAT

/* ---- Functions: the float version computes in double and rounds once ---- */

#define PVG_SIM_FUNCTION(name, expression)              \
    inline double name(double x) { return expression; } \
    inline float name##f(float x) { return (float)name((double)x); }

PVG_SIM_FUNCTION(rsqrt, 1.0 / sqrt(x))
PVG_SIM_FUNCTION(rcbrt, 1.0 / cbrt(x))
/* Reduced to [-1, 1] first, where x * pi is exact enough; whole and half turns are exact. */
PVG_SIM_FUNCTION(sinpi, (x = x - 2 * rint(x / 2), x == rint(x) ? copysign(0.0, x) : sin(x * M_PI)))
PVG_SIM_FUNCTION(cospi, (x = fabs(x - 2 * rint(x / 2)), x == 0.5 ? 0.0 : cos(x * M_PI)))
PVG_SIM_FUNCTION(normcdf, 0.5 * erfc(-x * M_SQRT1_2))
#undef PVG_SIM_FUNCTION

inline void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
inline float fdividef(float a, float b) { return a / b; }
inline float rhypotf(float a, float b) { return (float)(1.0 / hypot((double)a, (double)b)); }
inline double rhypot(double a, double b) { return 1.0 / hypot(a, b); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; /* NaN gives 0 */ }

/* ---- Arithmetic with the rounding in its name: to nearest ---- */

#define PVG_SIM_ROUNDED(T, prefix, square_root)             \
    inline T __##prefix##add_rn(T a, T b) { return a + b; } \
    inline T __##prefix##sub_rn(T a, T b) { return a - b; } \
    inline T __##prefix##mul_rn(T a, T b) { return a * b; } \
    inline T __##prefix##div_rn(T a, T b) { return a / b; } \
    inline T __##prefix##rcp_rn(T a) { return 1 / a; }      \
    inline T __##prefix##sqrt_rn(T a) { return square_root(a); }

PVG_SIM_ROUNDED(float, f, sqrtf)
PVG_SIM_ROUNDED(double, d, sqrt)
#undef PVG_SIM_ROUNDED

inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __double2float_rn(double x) { return (float)x; }
inline float __int2float_rn(int x) { return (float)x; }
inline double __int2double_rn(int x) { return (double)x; }

/* Float to integer saturates and gives 0 for NaN, as the hardware does; a C cast would not. */
template <class T> T pvg_sim_to_integer(double whole) {
    constexpr double lowest = (double)std::numeric_limits<T>::min();
    constexpr double beyond = 2.0 * (double)((T)1 << (std::numeric_limits<T>::digits - 1));
    if (whole != whole) return 0;
    if (whole <= lowest) return std::numeric_limits<T>::min();
    return whole >= beyond ? std::numeric_limits<T>::max() : (T)whole;
}
#define PVG_SIM_TO_INTEGER(name, T, From)                                          \
    inline T name##_rn(From x) { return pvg_sim_to_integer<T>(rint((double)x)); }  \
    inline T name##_rz(From x) { return pvg_sim_to_integer<T>(trunc((double)x)); } \
    inline T name##_rd(From x) { return pvg_sim_to_integer<T>(floor((double)x)); } \
    inline T name##_ru(From x) { return pvg_sim_to_integer<T>(ceil((double)x)); }
PVG_SIM_TO_INTEGER(__float2int, int, float)
PVG_SIM_TO_INTEGER(__float2uint, unsigned, float)
PVG_SIM_TO_INTEGER(__float2ll, long long, float)
PVG_SIM_TO_INTEGER(__float2ull, unsigned long long, float)
PVG_SIM_TO_INTEGER(__double2int, int, double)
PVG_SIM_TO_INTEGER(__double2uint, unsigned, double)
PVG_SIM_TO_INTEGER(__double2ll, long long, double)
PVG_SIM_TO_INTEGER(__double2ull, unsigned long long, double)
#undef PVG_SIM_TO_INTEGER

/* ---- Bits ---- */

template <class To, class From> To pvg_sim_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a cast of bits needs equal sizes");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
inline int __float_as_int(float x) { return pvg_sim_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return pvg_sim_bits<unsigned>(x); }
inline float __int_as_float(int x) { return pvg_sim_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return pvg_sim_bits<float>(x); }
inline long long __double_as_longlong(double x) { return pvg_sim_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return pvg_sim_bits<double>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++) reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((uint64_t)a * b) >> 32); }
inline int __mulhi(int a, int b) { return (int)(((int64_t)a * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
inline long long __mul64hi(long long a, long long b) {
    return (long long)(((__int128)a * b) >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((uint64_t)high << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
// Each digit of the selector names a byte of both; a byte's sign, 8 and more, nobody asks for.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    const uint64_t both = (uint64_t)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 32; i += 8)
        result |= (unsigned)(both >> (selector >> i / 2 & 7) * 8 & 255) << i;
    return result;
}
