// Complex numbers as two floats side by side, as NumPy and C have them, and their arithmetic.
#pragma once
#include <math.h>
#include <stddef.h>

namespace pvg {

template <class R> struct alignas(2 * sizeof(R)) Complex {
    using Real = R;
    R re, im;
    Complex() = default;
    __host__ __device__ constexpr Complex(R real, R imaginary) : re(real), im(imaginary) {}
    __host__ __device__ explicit constexpr Complex(R real) : re(real), im(0) {}
    template <class Q>
    __host__ __device__ explicit constexpr Complex(const Complex<Q> &other)
        : re(static_cast<R>(other.re)), im(static_cast<R>(other.im)) {}
};
static_assert(sizeof(Complex<float>) == 8 && sizeof(Complex<double>) == 16, "two floats");

template <class R> __host__ __device__ inline Complex<R> operator-(Complex<R> z) {
    return {-z.re, -z.im};
}
template <class R> __host__ __device__ inline Complex<R> operator+(Complex<R> a, Complex<R> b) {
    return {a.re + b.re, a.im + b.im};
}
template <class R> __host__ __device__ inline Complex<R> operator-(Complex<R> a, Complex<R> b) {
    return {a.re - b.re, a.im - b.im};
}
// nvcc may round either of two products before it adds them, and does not choose the same one
// everywhere: a reduction's bits would depend on which loop read the elements.
template <class R> __host__ __device__ inline Complex<R> operator*(Complex<R> a, Complex<R> b) {
#ifdef __CUDA_ARCH__
    return {fma(a.re, b.re, -(a.im * b.im)), fma(a.re, b.im, a.im * b.re)};
#else
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
#endif
}
template <class R> __host__ __device__ inline Complex<R> &operator*=(Complex<R> &a, Complex<R> b) {
    return a = a * b;
}
template <class R> __host__ __device__ inline bool operator==(Complex<R> a, Complex<R> b) {
    return a.re == b.re && a.im == b.im;
}
template <class R> __host__ __device__ inline bool operator!=(Complex<R> a, Complex<R> b) {
    return !(a == b);
}

// By Smith's method (1962), as NumPy: no overflow in between where the quotient has none.
template <class R> __host__ __device__ inline Complex<R> operator/(Complex<R> a, Complex<R> b) {
    const R re = fabs(b.re), im = fabs(b.im);
    if (re >= im) {
        if (re == 0 && im == 0) return {a.re / re, a.im / re};
        const R ratio = b.im / b.re, scale = R(1) / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const R ratio = b.re / b.im, scale = R(1) / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}

} // namespace pvg
