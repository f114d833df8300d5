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
struct SmallQuotient {
    float quotient, rest;
    template <class T> __device__ __forceinline__ SmallQuotient(T x, T y) {
        const float a = static_cast<float>(x), b = static_cast<float>(y), shift = 0x1.8p23f;
        quotient = fmaf(a, reciprocal_of(b), shift) - shift;
        rest = fmaf(-quotient, b, a);
        if (rest * b < 0) quotient -= 1, rest += b;
    }
};
template <class T> inline constexpr bool is_small = !is_float<T> && sizeof(T) <= 2;

// Of two integers: what is left has the divisor's sign, as in Python. Dividing by 0 gives 0.
template <class T> __device__ __forceinline__ T integer_remainder(T x, T y) {
    if (y == 0) return 0;
    if constexpr (is_small<T>) {
        return static_cast<T>(static_cast<int>(SmallQuotient(x, y).rest));
    } else if constexpr (is_signed<T>) {
        if (y == -1) return 0; // the lowest integer by -1 overflows
        const T rest = static_cast<T>(x % y);
        return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
    } else {
        return static_cast<T>(x % y);
    }
}
// What is left of x by a multiple of y that is less than y, and exact: fmod, or of a quotient below
// 2^20 by the nearest integer to an approximate one, so that its sign may be either.
__device__ __forceinline__ double rest_of(double x, double y) { return fmod(x, y); }
__device__ __forceinline__ float rest_of(float x, float y) {
    const float quotient = rint(x * reciprocal_of(y));
    constexpr float most = 0x1p126f; // 1 / y is normal, and x - y finite
    const bool is_near = fabs(quotient) < 0x1p20f && fabs(y) < most && fabs(x) < most;
    if (!is_near) return fmod(x, y);
    return fabs(x) < fabs(y) ? x : fmaf(-quotient, y, x);
}
template <class T> __device__ __forceinline__ T remainder_of(T x, T y) {
    if constexpr (is_float<T>) {
        const T rest = rest_of(x, y);
        if (rest == 0) return copysign(T(0), y);
        return (rest < 0) != (y < 0) ? rest + y : rest;
    } else {
        return integer_remainder(x, y);
    }
}

// The quotient rounded down, so that x is quotient * y + remainder; of floats as Python has it.
template <class T> __device__ __forceinline__ T floor_divide(T x, T y) {
    if constexpr (!is_float<T>) {
        if (y == 0) return 0;
        if constexpr (is_small<T>) {
            return static_cast<T>(static_cast<int>(SmallQuotient(x, y).quotient));
        } else if constexpr (is_signed<T>) {
            if (y == -1) return negative(x);
            return static_cast<T>(x / y - (x % y != 0 && (x < 0) != (y < 0)));
        } else {
            return static_cast<T>(x / y);
        }
    } else {
        if (y == 0) return x / y;
        const T rest = rest_of(x, y);
        T quotient = (x - rest) / y;
        if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
        if (quotient == 0) return copysign(T(0), x / y);
        const T whole = floor(quotient); // rounding has left it next to an integer
        return quotient - whole > T(0.5) ? whole + 1 : whole;
    }
}

// Integers wrap; a negative power is a fraction, and rounded toward zero. Squares and cubes, mostly
// of a whole array by one number, are products: the first rounds once, the other twice.
template <class T> __device__ __forceinline__ T power(T x, T y) {
    if (y == 2) return multiply(x, x);
    if (y == 3) return multiply(multiply(x, x), x);
    if constexpr (is_float<T>) {
        return precise::pow(x, y);
    } else {
        if constexpr (is_signed<T>)
            if (y < 0) return x == 1 ? T(1) : x == -1 ? T(y % 2 ? -1 : 1) : T(0);
        Unsigned<T> result = 1, factor = static_cast<Unsigned<T>>(x);
        for (Unsigned<T> left = static_cast<Unsigned<T>>(y); left != 0; left /= 2) {
            if (left % 2) result *= factor;
            factor *= factor;
        }
        return static_cast<T>(result);
    }
}

// Shifts by the width and more, and by negative numbers, leave the sign alone.
template <class T> __device__ __forceinline__ bool is_shift(T y) {
    return static_cast<std::make_unsigned_t<T>>(y) < 8 * sizeof(T);
}
template <class T> __device__ __forceinline__ T shifted_left(T x, T y) {
    return is_shift(y) ? static_cast<T>(static_cast<Unsigned<T>>(x) << y) : T(0);
}
template <class T> __device__ __forceinline__ T shifted_right(T x, T y) {
    if (is_shift(y)) return static_cast<T>(x >> y);
    if constexpr (is_signed<T>)
        return x < 0 ? T(-1) : T(0);
    else
        return T(0);
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

// What the families of unary.cu and binary.cu launch for these; operands have the dtype that the
// operation computes in, out is open. False: the code is none of these.
bool is_unary_function(int code);
int launch_unary_function(Call &call, const Operation &operation, int dtype, pvg_array *out,
                          const pvg_array *a);
bool is_binary_function(int code);
int launch_binary_function(Call &call, const Operation &operation, int dtype, pvg_array *out,
                           const pvg_array *a, const pvg_array *b, const Scalar *scalar);

} // namespace pvg
