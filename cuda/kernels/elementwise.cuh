// Elementwise operations: the arithmetic of one element, the rows of the operations, and the switch
// over their codes that kernels run (the same code in every thread: no divergence).
//
// A new operation is a row in one of the lists below, its __device__ function if it needs one of
// its own, and an entry in pvg_operation.
#pragma once
#include "arrays/operation.cuh"
#include "kernels/exponentials.cuh"
#include <math.h>
#include <type_traits>

namespace pvg {

// ---- One element --------------------------------------------------------------------------------

// Integers are computed as unsigned ones, at least an unsigned int wide: they wrap, where signed
// overflow would be undefined.
template <class T> using Unsigned = std::make_unsigned_t<decltype(T() + T())>;

template <class T> __device__ __forceinline__ T negative(T x) {
    if constexpr (is_float<T>)
        return -x;
    else
        return static_cast<T>(0 - static_cast<Unsigned<T>>(x));
}

template <class T> __device__ __forceinline__ T magnitude(T x) {
    if constexpr (is_float<T>)
        return fabs(x);
    else if constexpr (is_signed<T>)
        return x < 0 ? negative(x) : x;
    else
        return x;
}

// To an integer in one way or another; integers stay.
template <class T, class F> __device__ __forceinline__ T rounded(T x, F way) {
    if constexpr (is_float<T>)
        return way(x);
    else
        return x;
}

template <class T> __device__ __forceinline__ T sign(T x) {
    if (x > 0) return T(1);
    if constexpr (!is_unsigned<T>)
        if (x < 0) return T(-1);
    return x == 0 ? T(0) : x; // NaN stays
}

template <class T> __device__ __forceinline__ T inverted(T x) {
    if constexpr (is_bool<T>)
        return T(!bool(x));
    else
        return static_cast<T>(~x);
}

// NaN and positive numbers stay; -0.0 becomes 0.0.
template <class T> __device__ __forceinline__ T relu(T x) { return x <= 0 ? T(0) : x; }

template <class T> __device__ __forceinline__ T add(T a, T b) {
    if constexpr (is_float<T>)
        return a + b;
    else if constexpr (is_bool<T>)
        return T(bool(a) || bool(b));
    else
        return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}

template <class T> __device__ __forceinline__ T subtract(T a, T b) {
    if constexpr (is_float<T>)
        return a - b;
    else
        return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}

template <class T> __device__ __forceinline__ T multiply(T a, T b) {
    if constexpr (is_float<T>)
        return a * b;
    else if constexpr (is_bool<T>)
        return T(bool(a) && bool(b));
    else
        return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
}

// Numbers that kernels may compare: bool as int.
template <class T> __device__ __forceinline__ auto comparable(T x) {
    if constexpr (is_bool<T>)
        return static_cast<int>(bool(x));
    else
        return x;
}

// bool is a byte of 0 or 1, which these keep.
template <class T, class F> __device__ __forceinline__ T bitwise(T x, T y, F f) {
    return static_cast<T>(f(comparable(x), comparable(y)));
}

// One instruction does what follows of float32, which halves are computed in, too. Which NaN it
// gives is nobody's business.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define PVG_EXTREME(T, instruction, a, b)                                    \
    if constexpr (std::is_same_v<T, float>) {                                \
        float result;                                                        \
        asm(instruction ".f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b)); \
        return result;                                                       \
    }
#else
#define PVG_EXTREME(T, instruction, a, b)
#endif

// NaN wins; of two zeros the positive one.
template <class T> __device__ __forceinline__ T maximum(T a, T b) {
    PVG_EXTREME(T, "max.NaN", a, b)
    if constexpr (is_float<T>) {
        if (a != a) return a;
        if (a == b) return signbit(a) ? b : a;
    }
    return comparable(a) > comparable(b) ? a : b; // b where b is NaN
}

// NaN wins; of two zeros the negative one.
template <class T> __device__ __forceinline__ T minimum(T a, T b) {
    PVG_EXTREME(T, "min.NaN", a, b)
    if constexpr (is_float<T>) {
        if (a != a) return a;
        if (a == b) return signbit(a) ? a : b;
    }
    return comparable(a) < comparable(b) ? a : b;
}

// The other one where one is NaN.
template <class T> __device__ __forceinline__ T larger_number(T a, T b) {
    PVG_EXTREME(T, "max", a, b)
    if constexpr (is_float<T>) {
        if (a != a) return b;
        if (b != b) return a;
    }
    return maximum(a, b);
}
template <class T> __device__ __forceinline__ T smaller_number(T a, T b) {
    PVG_EXTREME(T, "min", a, b)
    if constexpr (is_float<T>) {
        if (a != a) return b;
        if (b != b) return a;
    }
    return minimum(a, b);
}
#undef PVG_EXTREME

// NaN stays NaN.
template <class T> __device__ __forceinline__ T step_at(T x, T at_zero) {
    return x == 0 ? at_zero : x < 0 ? T(0) : x > 0 ? T(1) : x;
}

// Exact comparisons of an int64 with a uint64, which no common dtype holds.
__device__ __forceinline__ bool equals(int64_t a, uint64_t b) {
    return a >= 0 && static_cast<uint64_t>(a) == b;
}
__device__ __forceinline__ bool is_less(int64_t a, uint64_t b) {
    return a < 0 || static_cast<uint64_t>(a) < b;
}
__device__ __forceinline__ bool is_greater(int64_t a, uint64_t b) {
    return a >= 0 && static_cast<uint64_t>(a) > b;
}
template <class T> __device__ __forceinline__ bool equals(T a, T b) {
    return comparable(a) == comparable(b);
}
template <class T> __device__ __forceinline__ bool is_less(T a, T b) {
    return comparable(a) < comparable(b);
}
template <class T> __device__ __forceinline__ bool is_greater(T a, T b) {
    return comparable(a) > comparable(b);
}

// Whether a number is other than 0, as NaN is.
template <class T> __device__ __forceinline__ bool is_true(T x) { return comparable(x) != 0; }

// ---- The operations -----------------------------------------------------------------------------

// X(NAME, "name", domain, result, f(x)): out[i] = f(a[i]).
#define PVG_UNARY_OPERATIONS(X)                                                  \
    X(NEGATIVE, "negative", numbers, same, negative(x))                          \
    X(ABS, "abs", all_kinds, real, magnitude(x))                                 \
    X(CONJ, "conj", numbers, same, x)                                            \
    X(POSITIVE, "positive", numbers, same, x)                                    \
    X(SIGN, "sign", numbers, same, sign(x))                                      \
    X(SQUARE, "square", numbers, same, multiply(x, x))                           \
    X(RECIPROCAL, "reciprocal", all_kinds, floating, 1 / x)                      \
    X(FLOOR, "floor", reals, same, rounded(x, [](auto v) { return floor(v); }))  \
    X(CEIL, "ceil", reals, same, rounded(x, [](auto v) { return ceil(v); }))     \
    X(TRUNC, "trunc", reals, same, rounded(x, [](auto v) { return trunc(v); }))  \
    X(ROUND, "round", numbers, same, rounded(x, [](auto v) { return rint(v); })) \
    X(BITWISE_INVERT, "bitwise_invert", booleans | integers, same, inverted(x))  \
    X(EXP, "exp", all_kinds, floating, exp(x))                                   \
    X(EXPM1, "expm1", all_kinds, floating, expm1(x))                             \
    X(LOG, "log", all_kinds, floating, log(x))                                   \
    X(SQRT, "sqrt", all_kinds, floating, sqrt(x))                                \
    X(TANH, "tanh", all_kinds, floating, tanh(x))                                \
    X(SIGMOID, "sigmoid", ordered, floating, sigmoid(x))                         \
    X(RELU, "relu", reals, same, relu(x))                                        \
    X(GELU, "gelu", ordered, floating, gelu(x))                                  \
    X(SILU, "silu", ordered, floating, silu(x))

// X(NAME, "name", domain, result, f(x, y)): out[i] = f(a[i], b[i]).
#define PVG_BINARY_OPERATIONS(X)                             \
    X(ADD, "add", all_kinds, same, add(x, y))                \
    X(SUBTRACT, "subtract", numbers, same, subtract(x, y))   \
    X(MULTIPLY, "multiply", all_kinds, same, multiply(x, y)) \
    X(DIVIDE, "divide", all_kinds, floating, x / y)          \
    X(MAXIMUM, "maximum", ordered, same, maximum(x, y))      \
    X(MINIMUM, "minimum", ordered, same, minimum(x, y))      \
    X(BITWISE_AND, "bitwise_and", booleans | integers, same, \
      bitwise(x, y, [](auto v, auto w) { return v & w; }))   \
    X(BITWISE_OR, "bitwise_or", booleans | integers, same,   \
      bitwise(x, y, [](auto v, auto w) { return v | w; }))   \
    X(BITWISE_XOR, "bitwise_xor", booleans | integers, same, \
      bitwise(x, y, [](auto v, auto w) { return v ^ w; }))   \
    X(FMAX, "fmax", ordered, same, larger_number(x, y))      \
    X(FMIN, "fmin", ordered, same, smaller_number(x, y))     \
    X(HEAVISIDE, "heaviside", ordered, floating, step_at(x, y))

// X(NAME, "name", domain, MIRRORED, f(x, y)): comparisons, and logic of two numbers. MIRRORED gives
// the same with the operands exchanged. With NaN "less or equal" is not "not greater".
#define PVG_COMPARISONS(X)                                                                   \
    X(EQUAL, "equal", all_kinds, EQUAL, equals(x, y))                                        \
    X(NOT_EQUAL, "not_equal", all_kinds, NOT_EQUAL, !equals(x, y))                           \
    X(LESS, "less", ordered, GREATER, is_less(x, y))                                         \
    X(LESS_EQUAL, "less_equal", ordered, GREATER_EQUAL, is_less(x, y) || equals(x, y))       \
    X(GREATER, "greater", ordered, LESS, is_greater(x, y))                                   \
    X(GREATER_EQUAL, "greater_equal", ordered, LESS_EQUAL, is_greater(x, y) || equals(x, y)) \
    X(LOGICAL_AND, "logical_and", all_kinds, LOGICAL_AND, is_true(x) && is_true(y))          \
    X(LOGICAL_OR, "logical_or", all_kinds, LOGICAL_OR, is_true(x) || is_true(y))             \
    X(LOGICAL_XOR, "logical_xor", all_kinds, LOGICAL_XOR, is_true(x) != is_true(y))

Operations unary_operations();
Operations binary_operations(); // the comparisons among them

// ---- The elements of one thread -----------------------------------------------------------------

// r[e] = f(a[e]) and r[e] = f(a[e], b[e]).
template <class A, class R, int N, class F>
__device__ __forceinline__ void each(const A (&a)[N], R (&r)[N], F f) {
#pragma unroll
    for (int e = 0; e < N; e++) r[e] = f(a[e]);
}
template <class A, class B, class R, int N, class F>
__device__ __forceinline__ void each(const A (&a)[N], const B (&b)[N], R (&r)[N], F f) {
#pragma unroll
    for (int e = 0; e < N; e++) r[e] = f(a[e], b[e]);
}

// Elements of type T are computed in for this row; the others need no code, and the host refuses
// them before a launch (check_domain).
template <class T, Kinds DOMAIN, Gives GIVES>
inline constexpr bool is_computed = (kinds_of<T> & computed_kinds(DOMAIN, GIVES)) != 0;

template <class T, int N>
__device__ __forceinline__ void apply_unary(int code, const T (&a)[N], T (&r)[N]) {
#define PVG_CASE(NAME, name, domain, result, value)          \
    case PVG_##NAME:                                         \
        if constexpr (is_computed<T, domain, Gives::result>) \
            each(a, r, [](T x) { return value; });           \
        return;
    switch (code) { PVG_UNARY_OPERATIONS(PVG_CASE) }
#undef PVG_CASE
}

template <class T, int N>
__device__ __forceinline__ void apply_binary(int code, const T (&a)[N], const T (&b)[N],
                                             T (&r)[N]) {
#define PVG_CASE(NAME, name, domain, result, value)          \
    case PVG_##NAME:                                         \
        if constexpr (is_computed<T, domain, Gives::result>) \
            each(a, b, r, [](T x, T y) { return value; });   \
        return;
    switch (code) { PVG_BINARY_OPERATIONS(PVG_CASE) }
#undef PVG_CASE
}

template <class A, class B, int N>
__device__ __forceinline__ void apply_comparison(int code, const A (&a)[N], const B (&b)[N],
                                                 Bool (&r)[N]) {
#define PVG_CASE(NAME, name, domain, MIRRORED, value)            \
    case PVG_##NAME:                                             \
        if constexpr (is_computed<A, domain, Gives::boolean>)    \
            each(a, b, r, [](A x, B y) { return Bool(value); }); \
        return;
    switch (code) { PVG_COMPARISONS(PVG_CASE) }
#undef PVG_CASE
}

} // namespace pvg
