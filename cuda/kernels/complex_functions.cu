// The long functions of complex numbers. Their values are those of the toolkit's thrust::complex,
// which has C99's special cases, in float64 for both dtypes: float32 parts are rounded once. There
// is a kernel per dtype and access pattern (map.cuh), with the function as a run-time code and one
// element a thread.
#include "arrays/map.cuh"
#include "kernels/complex.cuh"
#include <thrust/complex.h>

namespace pvg {

namespace {

using Number = thrust::complex<double>;

// Not inline: the code of each is long, and the same for all kernels and for what is made of it.
#define PVG_ONCE(name, value) \
    __device__ __attribute__((noinline)) Number name(Number z) { return value; }
PVG_ONCE(exp_of, thrust::exp(z))
PVG_ONCE(plain_log_of, thrust::log(z))
PVG_ONCE(sinh_of, thrust::sinh(z))
PVG_ONCE(cosh_of, thrust::cosh(z))
PVG_ONCE(plain_tanh_of, thrust::tanh(z))
PVG_ONCE(asinh_of, thrust::asinh(z))
PVG_ONCE(acos_of, thrust::acos(z))
PVG_ONCE(atanh_of, thrust::atanh(z))
#undef PVG_ONCE

__device__ __forceinline__ bool is_finite(double x) { return fabs(x) < INFINITY; }

// The cases that thrust has from before C99's were mended.
__device__ inline Number log_of(Number z) {
    const double x = fabs(z.real()), y = fabs(z.imag());
    const bool half_known = (x == INFINITY && y != y) || (y == INFINITY && x != x);
    return half_known ? Number(INFINITY, NAN) : plain_log_of(z);
}
__device__ inline Number tanh_of(Number z) {
    return z.real() == 0 && !is_finite(z.imag()) ? Number(z.real(), NAN) : plain_tanh_of(z);
}

// f(z) = -i g(i z) for odd g with real values on the real axis: the parts exchanged, before and
// after.
__device__ __forceinline__ Number swapped(Number z) { return Number(z.imag(), z.real()); }

// acos, turned so that the real part is not negative.
__device__ inline Number acosh_of(Number z) {
    if (z.real() == 0 && z.imag() != z.imag()) return Number(NAN, 1.57079632679489661923);
    const Number angle = acos_of(z);
    const double re = angle.real(), im = angle.imag();
    if (re != re) return Number(im != im ? im : fabs(im), re);
    if (im != im) return Number(im, im);
    return Number(fabs(im), copysign(re, z.imag()));
}

// exp(x) cos(y) - 1 without cancellation where x and y are small.
__device__ inline Number expm1_of(Number z) {
    const double x = z.real(), y = z.imag(), half = sin(y / 2);
    if (y == 0) return Number(expm1(x), y);
    if (!is_finite(x) || !is_finite(y)) {
        const Number power = exp_of(z);
        return Number(power.real() - 1, power.imag());
    }
    return Number(expm1(x) * cos(y) - 2 * half * half, exp(x) * sin(y));
}

// |1 + z|^2 - 1 is x (2 + x) + y^2.
__device__ inline Number log1p_of(Number z) {
    const double x = z.real(), y = z.imag();
    if (!(fabs(x) < 0.5 && fabs(y) < 0.5)) return log_of(Number(1 + x, y));
    return Number(log1p(x * (2 + x) + y * y) / 2, atan2(y, 1 + x));
}

__device__ inline Number exp2_of(Number z) {
    constexpr double log_2 = 0.69314718055994530942;
    const double x = z.real(), angle = z.imag() * log_2;
    if (!is_finite(x) || !is_finite(angle)) return exp_of(Number(x * log_2, angle));
    const double length = exp2(x);
    return angle == 0 ? Number(length, angle) : Number(length * cos(angle), length * sin(angle));
}

__device__ __forceinline__ Number scaled(Number z, double scale) {
    return Number(z.real() * scale, z.imag() * scale);
}

// Whole powers below 100 by multiplication, as NumPy.
__device__ inline Number whole_power(Number base, int exponent) {
    Complex<double> result(1.0), factor(base.real(), base.imag());
    for (int left = exponent < 0 ? -exponent : exponent; left > 0; left /= 2) {
        if (left % 2) result = result * factor;
        if (left > 1) factor = factor * factor;
    }
    if (exponent < 0) result = Complex<double>(1.0) / result;
    return Number(result.re, result.im);
}

__device__ __attribute__((noinline)) Number power_of(Number base, Number exponent) {
    const double n = exponent.real();
    const bool is_real = exponent.imag() == 0;
    if (is_real && n == 0) return Number(1, 0);
    if (base.real() == 0 && base.imag() == 0) return n > 0 ? Number(0, 0) : Number(NAN, NAN);
    if (is_real && n == rint(n) && fabs(n) < 100) return whole_power(base, static_cast<int>(n));
    return exp_of(exponent * log_of(base));
}

// X(NAME, f(z))
#define PVG_COMPLEX_FUNCTIONS(X)                        \
    X(EXP, exp_of(z))                                   \
    X(EXPM1, expm1_of(z))                               \
    X(EXP2, exp2_of(z))                                 \
    X(LOG, log_of(z))                                   \
    X(LOG1P, log1p_of(z))                               \
    X(LOG2, scaled(log_of(z), 1.4426950408889634074))   \
    X(LOG10, scaled(log_of(z), 0.43429448190325182765)) \
    X(SQRT, thrust::sqrt(z))                            \
    X(SIN, swapped(sinh_of(swapped(z))))                \
    X(COS, cosh_of(Number(-z.imag(), z.real())))        \
    X(TAN, swapped(tanh_of(swapped(z))))                \
    X(ASIN, swapped(asinh_of(swapped(z))))              \
    X(ACOS, acos_of(z))                                 \
    X(ATAN, swapped(atanh_of(swapped(z))))              \
    X(SINH, sinh_of(z))                                 \
    X(COSH, cosh_of(z))                                 \
    X(TANH, tanh_of(z))                                 \
    X(ASINH, asinh_of(z))                               \
    X(ACOSH, acosh_of(z))                               \
    X(ATANH, atanh_of(z))

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
