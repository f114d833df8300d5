// The arithmetic of elementwise operations, one element at a time, and the switch over operation
// codes that kernels run (the same code in every thread: no divergence).
//
// A new operation is a __device__ function and a `case` here, an entry in pvg_operation, and a row
// in the table of elementwise.cu.
#pragma once
#include "dtypes/dtype.cuh"
#include <math.h>
#include <type_traits>

namespace pvg {

// What the table of elementwise.cu knows about an operation.
struct Operation {
    int code;
    const char *name;
    int operands;     // 1: pvg_unary, 2: pvg_binary, 3: pvg_where
    bool takes_bool;  // operands that are all bool
    bool gives_float; // integers and bools are computed in the default float dtype
    bool gives_bool;  // a comparison
};
// The row of a code that takes so many operands; NULL for any other.
const Operation *find_elementwise(int code, int operands);

// ---- One element --------------------------------------------------------------------------------

__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
__device__ __forceinline__ float logarithm(float x) { return logf(x); }
__device__ __forceinline__ double logarithm(double x) { return log(x); }
__device__ __forceinline__ float square_root(float x) { return sqrtf(x); }
__device__ __forceinline__ double square_root(double x) { return sqrt(x); }
__device__ __forceinline__ float hyperbolic_tangent(float x) { return tanhf(x); }
__device__ __forceinline__ double hyperbolic_tangent(double x) { return tanh(x); }
__device__ __forceinline__ float error_complement(float x) { return erfcf(x); }
__device__ __forceinline__ double error_complement(double x) { return erfc(x); }
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) {
    return fma(a, b, c);
}
__device__ __forceinline__ float absolute(float x) { return fabsf(x); }
__device__ __forceinline__ double absolute(double x) { return fabs(x); }
__device__ __forceinline__ bool sign_bit(float x) { return copysignf(1.0f, x) < 0; }
__device__ __forceinline__ bool sign_bit(double x) { return copysign(1.0, x) < 0; }

// n / d for n from 0 to 1 and d from 1 to 2. A card's division of float32 branches for extreme
// operands, which keeps the divisions of a thread from overlapping; these are the steps that it
// takes for all others. The result is at most one ulp from that of IEEE division, and only where it
// is subnormal or d is next to 2.
__device__ __forceinline__ float divide_small(float n, float d) {
#ifdef PVG_SIMULATOR
    return n / d;
#else
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
    r = fmaf(r, fmaf(-d, r, 1.0f), r);
    const float q = n * r;
    return fmaf(fmaf(-d, q, n), r, q);
#endif
}
__device__ __forceinline__ double divide_small(double n, double d) { return n / d; }

// 1 / (1 + exp(-x)), with exp of negative numbers only: no overflow, and small results keep their
// digits down to the subnormals.
template <class T> __device__ __forceinline__ T sigmoid(T x) {
    T e = exponential(-absolute(x)); // NaN stays NaN
    return divide_small(x >= 0 ? T(1) : e, 1 + e);
}

// erfc(-x sqrt(1/2)), twice the normal distribution's cumulative function. Where erfc is steep, the
// argument's own rounding error, `rest`, would cost digits: erfc(t + rest) is about
// erfc(t) (1 - 2 t rest).
template <class T> __device__ __forceinline__ T twice_normal_cdf(T x) {
    constexpr T root = T(0.70710678118654752440); // rounded
    constexpr T root_rest = sizeof(T) == 4 ? T(1.2101617104478970e-8) : T(-4.8336466567264567e-17);
    const T t = -x * root, twice = error_complement(t);
    if (!(x < T(-1) && x > T(-40))) return twice;
    const T rest = multiply_add(-x, root, -t) - x * root_rest;
    return multiply_add(T(-2) * t * twice, rest, twice);
}

// The limit of both at -inf is 0, where their products would be NaN.
template <class T> __device__ __forceinline__ T gelu(T x) {
    return x < T(-40) ? T(-0.0) : T(0.5) * x * twice_normal_cdf(x);
}
// x / (1 + exp(-x)), with exp as a square: results keep their digits down to the subnormals.
template <class T> __device__ __forceinline__ T silu(T x) {
    if (x < T(-800)) return T(-0.0);
    const T root = exponential(T(-0.5) * absolute(x)), side = x >= 0 ? T(1) : root;
    return x * side / (1 + root * root) * side;
}

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
        return absolute(x);
    else if constexpr (is_integer<T> && std::is_signed<T>::value)
        return x < 0 ? negative(x) : x;
    else
        return x;
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

// NaN wins; of two zeros the positive one.
template <class T> __device__ __forceinline__ T maximum(T a, T b) {
    if constexpr (is_float<T>) {
        if (a != a) return a;
        if (a == b) return sign_bit(a) ? b : a;
    }
    return comparable(a) > comparable(b) ? a : b; // b where b is NaN
}

// NaN wins; of two zeros the negative one.
template <class T> __device__ __forceinline__ T minimum(T a, T b) {
    if constexpr (is_float<T>) {
        if (a != a) return a;
        if (a == b) return sign_bit(a) ? a : b;
    }
    return comparable(a) < comparable(b) ? a : b;
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

// Codes that the table does not allow for T leave r as it is.
template <class T, int N>
__device__ __forceinline__ void apply_unary(int code, const T (&a)[N], T (&r)[N]) {
    if constexpr (!is_bool<T>) {
        switch (code) {
        case PVG_NEGATIVE: return each(a, r, [](T x) { return negative(x); });
        case PVG_RELU: return each(a, r, [](T x) { return relu(x); });
        }
    }
    if constexpr (is_float<T>) {
        switch (code) {
        case PVG_EXP: return each(a, r, [](T x) { return exponential(x); });
        case PVG_LOG: return each(a, r, [](T x) { return logarithm(x); });
        case PVG_SQRT: return each(a, r, [](T x) { return square_root(x); });
        case PVG_TANH: return each(a, r, [](T x) { return hyperbolic_tangent(x); });
        case PVG_SIGMOID: return each(a, r, [](T x) { return sigmoid(x); });
        case PVG_GELU: return each(a, r, [](T x) { return gelu(x); });
        case PVG_SILU: return each(a, r, [](T x) { return silu(x); });
        }
    }
    if (code == PVG_ABS) each(a, r, [](T x) { return magnitude(x); });
}

template <class T, int N>
__device__ __forceinline__ void apply_binary(int code, const T (&a)[N], const T (&b)[N],
                                             T (&r)[N]) {
    switch (code) {
    case PVG_ADD: return each(a, b, r, [](T x, T y) { return add(x, y); });
    case PVG_MULTIPLY: return each(a, b, r, [](T x, T y) { return multiply(x, y); });
    case PVG_MAXIMUM: return each(a, b, r, [](T x, T y) { return maximum(x, y); });
    case PVG_MINIMUM: return each(a, b, r, [](T x, T y) { return minimum(x, y); });
    }
    if constexpr (!is_bool<T>)
        if (code == PVG_SUBTRACT) each(a, b, r, [](T x, T y) { return subtract(x, y); });
    if constexpr (is_float<T>)
        if (code == PVG_DIVIDE) each(a, b, r, [](T x, T y) { return x / y; });
}

template <class A, class B, int N>
__device__ __forceinline__ void apply_comparison(int code, const A (&a)[N], const B (&b)[N],
                                                 Bool (&r)[N]) {
    switch (code) {
    case PVG_EQUAL: return each(a, b, r, [](A x, B y) { return Bool(equals(x, y)); });
    case PVG_NOT_EQUAL: return each(a, b, r, [](A x, B y) { return Bool(!equals(x, y)); });
    case PVG_LESS: return each(a, b, r, [](A x, B y) { return Bool(is_less(x, y)); });
    case PVG_GREATER: return each(a, b, r, [](A x, B y) { return Bool(is_greater(x, y)); });
    case PVG_LESS_EQUAL: // not "not greater": NaN
        return each(a, b, r, [](A x, B y) { return Bool(is_less(x, y) || equals(x, y)); });
    case PVG_GREATER_EQUAL:
        return each(a, b, r, [](A x, B y) { return Bool(is_greater(x, y) || equals(x, y)); });
    }
}

} // namespace pvg
