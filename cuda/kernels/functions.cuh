// Elementwise functions whose code is long: trigonometry, powers, division with a remainder, and
// predicates. They have kernels of their own (functions.cu, binary_functions.cu), so that they cost
// those of elementwise.cuh no registers. Rows are as there.
#pragma once
#include "arrays/call.cuh"
#include "arrays/scalar.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/powers.cuh"
#include "kernels/precise.cuh"

namespace pvg {

// ---- One element --------------------------------------------------------------------------------

// Of two integers of up to 16 bits the quotient rounded down, and what is left. A quotient by an
// approximate reciprocal is rounded to the nearest integer, which is the one or the one above.
// Both are 0 where the divisor is.
struct SmallQuotient {
    float quotient, rest;
    template <class T> __device__ __forceinline__ SmallQuotient(T x, T y) {
        const float a = y == 0 ? 0.0f : static_cast<float>(x), shift = 0x1.8p23f;
        const float b = y == 0 ? 1.0f : static_cast<float>(y);
        quotient = fmaf(a, reciprocal_of(b), shift) - shift;
        rest = fmaf(-quotient, b, a);
        const bool is_above = rest * b < 0;
        quotient = is_above ? quotient - 1 : quotient;
        rest = is_above ? rest + b : rest;
    }
};
template <class T> inline constexpr bool is_small = !is_float<T> && sizeof(T) <= 2;

// x / y, rounded toward zero, of integers of 32 bits and more, y neither 0 nor, beside the lowest
// one, -1. Of 64 bits a division of 32 takes a third of the time where it will do.
template <class T> __device__ __forceinline__ T divided(T x, T y) {
    if constexpr (sizeof(T) == 8) {
        const uint64_t n = static_cast<uint64_t>(magnitude(x));
        const uint64_t d = static_cast<uint64_t>(magnitude(y));
        if ((n | d) >> 32 == 0) {
            const T quotient = static_cast<T>(static_cast<uint32_t>(n) / static_cast<uint32_t>(d));
            return is_signed<T> && (x < 0) != (y < 0) ? negative(quotient) : quotient;
        }
    }
    return x / y;
}

// Of two integers: what is left has the divisor's sign, as in Python. Dividing by 0 gives 0.
template <class T> __device__ __forceinline__ T integer_remainder(T x, T y) {
    if constexpr (is_small<T>) {
        return static_cast<T>(static_cast<int>(SmallQuotient(x, y).rest));
    } else if constexpr (is_signed<T>) {
        if (y == 0 || y == -1) return 0; // the lowest integer by -1 overflows
        const T rest = static_cast<T>(x - divided(x, y) * y);
        return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
    } else {
        return y == 0 ? T(0) : static_cast<T>(x - divided(x, y) * y);
    }
}
// What is left of x by the integer next to x / y, where an approximate quotient tells that: below
// 2^20. It is exact, but for x less than y, and its sign may be either.
struct NearQuotient {
    float quotient, rest;
    bool is_near;
    __device__ __forceinline__ NearQuotient(float x, float y) {
        quotient = rint(x * reciprocal_of(y));
        rest = fmaf(-quotient, y, x);
        constexpr float most = 0x1p126f; // 1 / y is normal, and x - y finite
        is_near = fabs(quotient) < 0x1p20f && fabs(y) < most && fabs(x) < most;
    }
};
template <class T> __device__ __forceinline__ bool is_beside(T rest, T y) {
    return rest != 0 && (rest < 0) != (y < 0);
}

template <class T> __device__ __forceinline__ T settled_remainder(T rest, T y) {
    const T inside = is_beside(rest, y) ? rest + y : rest;
    return rest == 0 ? copysign(T(0), y) : inside;
}
__device__ __forceinline__ Tried tried_remainder(float x, float y) {
    const NearQuotient near(x, y);
    return {settled_remainder(fabs(x) < fabs(y) ? x : near.rest, y), near.is_near};
}
// The same of float64, whose fmod takes longer than the memory.
struct NearDoubleQuotient {
    double quotient, rest;
    bool is_near;
    __device__ __forceinline__ NearDoubleQuotient(double x, double y) {
        quotient = rint(x * (1 / y));
        rest = fma(-quotient, y, x);
        constexpr double most = 0x1p1022;
        is_near = fabs(quotient) < 0x1p49 && fabs(y) < most && fabs(x) < most;
    }
};
template <class T> __device__ __forceinline__ T remainder_of(T x, T y) {
    if constexpr (std::is_same_v<T, double>) {
        const NearDoubleQuotient near(x, y);
        const double rest = fabs(x) < fabs(y) ? x : near.rest;
        return settled_remainder(near.is_near ? rest : fmod(x, y), y);
    } else if constexpr (is_float<T>)
        return settled_remainder(fmod(x, y), y);
    else
        return integer_remainder(x, y);
}

// The quotient rounded down, so that x is quotient * y + remainder; of floats as Python has it.
__device__ __forceinline__ Tried tried_floor_divide(float x, float y) {
    const NearQuotient near(x, y);
    return {is_beside(near.rest, y) ? near.quotient - 1 : near.quotient, near.is_near};
}
template <class T> __device__ __forceinline__ T floor_divide(T x, T y) {
    if constexpr (is_small<T>) {
        return static_cast<T>(static_cast<int>(SmallQuotient(x, y).quotient));
    } else if constexpr (is_signed<T> && !is_float<T>) {
        if (y == 0) return 0;
        if (y == -1) return negative(x);
        const T quotient = divided(x, y), rest = static_cast<T>(x - quotient * y);
        return static_cast<T>(quotient - (rest != 0 && (x < 0) != (y < 0)));
    } else if constexpr (!is_float<T>) {
        return y == 0 ? T(0) : divided(x, y);
    } else {
        if constexpr (std::is_same_v<T, double>) {
            const NearDoubleQuotient near(x, y);
            if (near.is_near) return near.quotient - is_beside(near.rest, y);
        }
        if (y == 0) return x / y;
        const T rest = fmod(x, y);
        T quotient = (x - rest) / y;
        if (is_beside(rest, y)) quotient -= 1;
        if (quotient == 0) return copysign(T(0), x / y);
        const T whole = floor(quotient); // rounding has left it next to an integer
        return quotient - whole > T(0.5) ? whole + 1 : whole;
    }
}

// Squares and cubes, mostly of a whole array by one number, are products: the first rounds once,
// the other twice.
__device__ __forceinline__ double power(double x, double y) {
    if (y == 2) return x * x;
    return y == 3 ? x * x * x : precise::pow(x, y);
}
__device__ __forceinline__ Tried product_or_power(float x, float y, Tried power) {
    const float square = x * x, product = y == 2 ? square : square * x;
    return y == 2 || y == 3 ? Tried{product, true} : power;
}

// Powers of integers wrap; a negative power is a fraction, and rounded toward zero.
template <class T, int N>
__device__ __forceinline__ void integer_powers(const T (&a)[N], const T (&b)[N], T (&r)[N]) {
    Unsigned<T> power[N], factor[N], left[N];
#pragma unroll
    for (int e = 0; e < N; e++) {
        power[e] = 1, factor[e] = static_cast<Unsigned<T>>(a[e]);
        left[e] = is_signed<T> && b[e] < 0 ? 0 : static_cast<Unsigned<T>>(b[e]);
    }
    bool is_one = true; // exponent for all, mostly a number beside an array
#pragma unroll
    for (int e = 1; e < N; e++) is_one &= left[e] == left[0];
    for (Unsigned<T> n = left[0]; is_one && n != 0;) {
#pragma unroll
        for (int e = 0; e < N; e++) power[e] = n % 2 ? power[e] * factor[e] : power[e];
        n /= 2;
#pragma unroll
        for (int e = 0; e < N && n != 0; e++) factor[e] *= factor[e];
    }
    for (bool more = !is_one; more;) {
        more = false;
#pragma unroll
        for (int e = 0; e < N; e++) {
            power[e] = left[e] % 2 ? power[e] * factor[e] : power[e];
            factor[e] *= factor[e], left[e] /= 2;
            more |= left[e] != 0;
        }
    }
#pragma unroll
    for (int e = 0; e < N; e++) {
        r[e] = static_cast<T>(power[e]);
        if constexpr (is_signed<T>) {
            const T unit = a[e] == -1 && b[e] % 2 == 0 ? T(1) : a[e]; // of 1 and -1
            if (b[e] < 0) r[e] = a[e] == 1 || a[e] == -1 ? unit : T(0);
        }
    }
}

// Shifts by the width and more, and by negative numbers, leave the sign alone. Small integers are
// shifted in 32 bits, where 31 are enough to leave nothing else of them.
template <class T> __device__ __forceinline__ bool is_shift(T y) {
    return static_cast<std::make_unsigned_t<T>>(y) < 8 * sizeof(T);
}
template <class T> __device__ __forceinline__ unsigned most_shift(T y) {
    const unsigned by = static_cast<std::make_unsigned_t<T>>(y);
    return by < 31 ? by : 31;
}
template <class T> __device__ __forceinline__ T shifted_left(T x, T y) {
    if constexpr (is_small<T>)
        return static_cast<T>(static_cast<unsigned>(x) << most_shift(y));
    else
        return is_shift(y) ? static_cast<T>(static_cast<Unsigned<T>>(x) << y) : T(0);
}
template <class T> __device__ __forceinline__ T shifted_right(T x, T y) {
    if constexpr (is_small<T>) {
        return static_cast<T>(static_cast<int>(x) >> most_shift(y));
    } else {
        if (is_shift(y)) return static_cast<T>(x >> y);
        if constexpr (is_signed<T>)
            return x < 0 ? T(-1) : T(0);
        else
            return T(0);
    }
}

// Predicates look at elements as they are stored.
template <class T> __device__ __forceinline__ bool is_nan(T x) {
    if constexpr (is_half<T>)
        return is_nan(static_cast<float>(x));
    else if constexpr (is_float<T>)
        return x != x;
    else
        return false;
}
template <class T> __device__ __forceinline__ bool is_infinite(T x) {
    if constexpr (is_half<T>)
        return is_infinite(static_cast<float>(x));
    else if constexpr (is_float<T>)
        return fabs(x) == T(INFINITY);
    else
        return false;
}
template <class T> __device__ __forceinline__ bool has_sign(T x) {
    if constexpr (is_half<T>)
        return x.bits >> 15; // a card's conversion to float32 loses the sign of NaN
    else if constexpr (is_float<T>)
        return copysign(T(1), x) < 0; // g++ 12 fails to vectorise signbit
    else if constexpr (is_signed<T>)
        return x < 0;
    else
        return false;
}

// ---- The operations -----------------------------------------------------------------------------

// X(NAME, "name", domain, result, f(x)): all give floats.
#define PVG_UNARY_FUNCTIONS(X)                                \
    X(SIN, "sin", all_kinds, floating, sin(x))                \
    X(COS, "cos", all_kinds, floating, cos(x))                \
    X(TAN, "tan", all_kinds, floating, precise::tan(x))       \
    X(ASIN, "asin", all_kinds, floating, asin(x))             \
    X(ACOS, "acos", all_kinds, floating, acos(x))             \
    X(ATAN, "atan", all_kinds, floating, atan(x))             \
    X(SINH, "sinh", all_kinds, floating, precise::sinh(x))    \
    X(COSH, "cosh", all_kinds, floating, precise::cosh(x))    \
    X(ASINH, "asinh", all_kinds, floating, asinh(x))          \
    X(ACOSH, "acosh", all_kinds, floating, precise::acosh(x)) \
    X(ATANH, "atanh", all_kinds, floating, precise::atanh(x)) \
    X(EXP2, "exp2", all_kinds, floating, precise::exp2(x))    \
    X(LOG1P, "log1p", all_kinds, floating, log1p(x))          \
    X(LOG2, "log2", all_kinds, floating, log2(x))             \
    X(LOG10, "log10", all_kinds, floating, precise::log10(x))

// X(NAME, "name", domain, result, f(x)): all give bools.
#define PVG_PREDICATES(X)                                                      \
    X(ISNAN, "isnan", all_kinds, boolean, is_nan(x))                           \
    X(ISINF, "isinf", all_kinds, boolean, is_infinite(x))                      \
    X(ISFINITE, "isfinite", all_kinds, boolean, !is_nan(x) && !is_infinite(x)) \
    X(SIGNBIT, "signbit", ordered, boolean, has_sign(x))

// X(NAME, "name", domain, result, f(x, y)).
#define PVG_BINARY_FUNCTIONS(X)                                                        \
    X(REMAINDER, "remainder", reals, same, remainder_of(x, y))                         \
    X(FLOOR_DIVIDE, "floor_divide", reals, same, floor_divide(x, y))                   \
    X(POW, "pow", numbers, same, power(x, y))                                          \
    X(BITWISE_LEFT_SHIFT, "bitwise_left_shift", integers, same, shifted_left(x, y))    \
    X(BITWISE_RIGHT_SHIFT, "bitwise_right_shift", integers, same, shifted_right(x, y)) \
    X(ATAN2, "atan2", ordered, floating, atan2(x, y))                                  \
    X(HYPOT, "hypot", ordered, floating, hypot(x, y))                                  \
    X(COPYSIGN, "copysign", ordered, floating, copysign(x, y))                         \
    X(LOGADDEXP, "logaddexp", ordered, floating, precise::logaddexp(x, y))

// X(NAME, usual(x, y), exact(x, y)): those of float32, and of halves in it, that have a usual way.
// S: what is stored. `value`: what the usual way gave.
#define PVG_TRIED_FUNCTIONS(X)                                                                \
    X(REMAINDER, tried_remainder(x, y), remainder_of(x, y))                                   \
    X(FLOOR_DIVIDE, tried_floor_divide(x, y), floor_divide(x, y))                             \
    X(POW,                                                                                    \
      product_or_power(                                                                       \
          x, y, is_half<S> ? precise::tried_pow_of_halves(x, y) : precise::tried_pow(x, y)),  \
      precise::special_power(x, y, value))                                                    \
    X(HYPOT, is_half<S> ? precise::tried_hypot_of_halves(x, y) : precise::tried_hypot(x, y),  \
      hypot(x, y))                                                                            \
    X(LOGADDEXP,                                                                              \
      is_half<S> ? precise::tried_logaddexp_of_halves(x, y) : precise::tried_logaddexp(x, y), \
      precise::rare_logaddexp(x, y))

constexpr bool has_usual_way(int code) {
#define PVG_CASE(NAME, usual, exact) case PVG_##NAME:
    switch (code) { PVG_TRIED_FUNCTIONS(PVG_CASE) return true; }
#undef PVG_CASE
    return false;
}
template <class T, int CODE>
inline constexpr bool is_tried = std::is_same_v<T, float> && has_usual_way(CODE);

// What the families of unary.cu and binary.cu launch for these; operands have the dtype that the
// operation computes in, out is open. False: the code is none of these.
bool is_unary_function(int code);
int launch_unary_function(Call &call, const Operation &operation, int dtype, pvg_array *out,
                          const pvg_array *a);
bool is_binary_function(int code);
int launch_binary_function(Call &call, const Operation &operation, int dtype, pvg_array *out,
                           const pvg_array *a, const pvg_array *b, const Scalar *scalar);

} // namespace pvg
