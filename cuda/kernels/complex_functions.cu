// The long functions of complex numbers. Their values are those of the toolkit's thrust::complex,
// which has C99's special cases, in float64 for both dtypes: float32 parts are rounded once. One
// kernel per dtype and access pattern (map.cuh), the function a run-time code, one element a thread.
#include "arrays/map.cuh"
#include "kernels/complex.cuh"
#include <thrust/complex.h>

namespace pvg {

namespace {

using Number = thrust::complex<double>;

__device__ __forceinline__ bool is_finite(double x) { return fabs(x) < INFINITY; }

// exp(x) cos(y) - 1 without cancellation where x and y are small.
__device__ inline Number expm1_of(Number z) {
    const double x = z.real(), y = z.imag(), half = sin(y / 2);
    if (y == 0) return Number(expm1(x), y);
    if (!is_finite(x) || !is_finite(y)) {
        const Number e = thrust::exp(z);
        return Number(e.real() - 1, e.imag());
    }
    return Number(expm1(x) * cos(y) - 2 * half * half, exp(x) * sin(y));
}

// |1 + z|^2 - 1 is x (2 + x) + y^2.
__device__ inline Number log1p_of(Number z) {
    const double x = z.real(), y = z.imag();
    if (!(fabs(x) < 0.5 && fabs(y) < 0.5)) return thrust::log(Number(1 + x, y));
    return Number(log1p(x * (2 + x) + y * y) / 2, atan2(y, 1 + x));
}

__device__ inline Number exp2_of(Number z) {
    constexpr double log_2 = 0.69314718055994530942;
    const double x = z.real(), angle = z.imag() * log_2;
    if (!is_finite(x) || !is_finite(angle)) return thrust::exp(Number(x * log_2, angle));
    const double length = exp2(x);
    return angle == 0 ? Number(length, angle) : Number(length * cos(angle), length * sin(angle));
}

__device__ inline Number scaled_log(Number z, double scale) {
    const Number result = thrust::log(z);
    return Number(result.real() * scale, result.imag() * scale);
}

// Small whole powers are products, which are exact where these are.
__device__ __attribute__((noinline)) Number power_of(Number base, Number exponent) {
    const double n = exponent.real();
    if (exponent.imag() == 0) {
        if (n == 0) return Number(1, 0);
        if (base.real() == 0 && base.imag() == 0) return n > 0 ? Number(0, 0) : Number(NAN, NAN);
        if (n == rint(n) && fabs(n) < 100) {
            Complex<double> result(1.0), factor(base.real(), base.imag());
            for (int left = static_cast<int>(fabs(n)); left > 0; left /= 2) {
                if (left % 2) result = result * factor;
                if (left > 1) factor = factor * factor;
            }
            if (n < 0) result = Complex<double>(1.0) / result;
            return Number(result.re, result.im);
        }
    } else if (base.real() == 0 && base.imag() == 0) {
        return n > 0 ? Number(0, 0) : Number(NAN, NAN);
    }
    return thrust::exp(exponent * thrust::log(base));
}

// X(NAME, f(z))
#define PVG_COMPLEX_FUNCTIONS(X)                    \
    X(EXP, thrust::exp(z))                          \
    X(EXPM1, expm1_of(z))                           \
    X(EXP2, exp2_of(z))                             \
    X(LOG, thrust::log(z))                          \
    X(LOG1P, log1p_of(z))                           \
    X(LOG2, scaled_log(z, 1.4426950408889634074))   \
    X(LOG10, scaled_log(z, 0.43429448190325182765)) \
    X(SQRT, thrust::sqrt(z))                        \
    X(SIN, thrust::sin(z))                          \
    X(COS, thrust::cos(z))                          \
    X(TAN, thrust::tan(z))                          \
    X(ASIN, thrust::asin(z))                        \
    X(ACOS, thrust::acos(z))                        \
    X(ATAN, thrust::atan(z))                        \
    X(SINH, thrust::sinh(z))                        \
    X(COSH, thrust::cosh(z))                        \
    X(TANH, thrust::tanh(z))                        \
    X(ASINH, thrust::asinh(z))                      \
    X(ACOSH, thrust::acosh(z))                      \
    X(ATANH, thrust::atanh(z))

// Not inline: the code is long, and the same for all kernels.
__device__ __attribute__((noinline)) Number value_of(int code, Number z) {
#define PVG_CASE(NAME, value) \
    case PVG_##NAME: return value;
    switch (code) { PVG_COMPLEX_FUNCTIONS(PVG_CASE) }
#undef PVG_CASE
    return z;
}

template <class T> __device__ __forceinline__ Number wide(T z) { return Number(z.re, z.im); }
template <class T> __device__ __forceinline__ T narrow(Number z) {
    return T(Complex<double>(z.real(), z.imag()));
}

template <class T> struct ComplexFunction {
    static constexpr int inputs = 1, vector = 1;
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T z[1];
        access.read(0, z);
        z[0] = narrow<T>(value_of(code, wide(z[0])));
        access.write(z);
    }
};

template <class T> struct ComplexPower {
    static constexpr int inputs = 2, vector = 1;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T base[1], exponent[1];
        access.read(0, base);
        access.read(1, exponent);
        base[0] = narrow<T>(power_of(wide(base[0]), wide(exponent[0])));
        access.write(base);
    }
};

bool is_function(int code) {
#define PVG_CASE(NAME, value) case PVG_##NAME:
    switch (code) { PVG_COMPLEX_FUNCTIONS(PVG_CASE) return true; }
#undef PVG_CASE
    return false;
}

} // namespace

int launch_complex_function(Call &call, int code, int dtype, pvg_array *out, const pvg_array *a,
                            bool *done) {
    *done = is_function(code);
    if (!*done) return PVG_OK;
    return dispatch<complexes>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(call, ComplexFunction<T>{code}, out, {a});
    });
}

int launch_complex_power(Call &call, int dtype, pvg_array *out, const pvg_array *a,
                         const pvg_array *b, const Scalar *scalar) {
    return dispatch<complexes>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(call, ComplexPower<T>(), out, {a, b}, scalar);
    });
}

} // namespace pvg
