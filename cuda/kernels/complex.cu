// Arithmetic, comparisons and predicates of complex numbers, as NumPy has them: one kernel per
// dtype, kind of result and access pattern (map.cuh), the operation a run-time code.
#include "arrays/map.cuh"
#include "kernels/complex.cuh"
#include "kernels/elementwise.cuh"

namespace pvg {

namespace {

// ---- One element --------------------------------------------------------------------------------

// 1 / z by Smith's method.
template <class R> __device__ __forceinline__ Complex<R> reciprocal(Complex<R> z) {
    if (fabs(z.im) <= fabs(z.re)) {
        const R ratio = z.im / z.re, length = z.re + z.im * ratio;
        return {1 / length, -ratio / length};
    }
    const R ratio = z.re / z.im, length = z.re * ratio + z.im;
    return {ratio / length, -1 / length};
}

// z / |z|, 0 of 0; of one infinite part the direction to it.
template <class R> __device__ __forceinline__ Complex<R> direction(Complex<R> z) {
    R length = hypot(z.re, z.im);
    if (z.re != z.re || z.im != z.im) return {R(NAN), R(NAN)};
    if (length == 0) return {0, 0};
    const bool re = fabs(z.re) == R(INFINITY), im = fabs(z.im) == R(INFINITY);
    if (re && im) return {R(NAN), R(NAN)};
    if (re) return {copysign(R(1), z.re), 0};
    if (im) return {0, copysign(R(1), z.im)};
    if (length == R(INFINITY)) z = {z.re / 4, z.im / 4}, length = hypot(z.re, z.im);
    return {z.re / length, z.im / length};
}

template <class R> __device__ __forceinline__ bool is_nan(Complex<R> z) {
    return z.re != z.re || z.im != z.im;
}
template <class R> __device__ __forceinline__ bool is_infinite(Complex<R> z) {
    return fabs(z.re) == R(INFINITY) || fabs(z.im) == R(INFINITY);
}

// ---- The elements of one thread -----------------------------------------------------------------

template <class T> struct ComplexUnary {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T a[Access::count], r[Access::count];
        access.read(0, a);
        switch (code) {
        case PVG_NEGATIVE: each(a, r, [](T z) { return -z; }); break;
        case PVG_CONJ: each(a, r, [](T z) { return T(z.re, -z.im); }); break;
        case PVG_SIGN: each(a, r, [](T z) { return direction(z); }); break;
        case PVG_SQUARE: each(a, r, [](T z) { return z * z; }); break;
        case PVG_RECIPROCAL: each(a, r, [](T z) { return reciprocal(z); }); break;
        case PVG_ROUND: each(a, r, [](T z) { return T(rint(z.re), rint(z.im)); }); break;
        default: each(a, r, [](T z) { return z; }); // PVG_POSITIVE
        }
        access.write(r);
    }
};

template <class T> struct ComplexLength {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T a[Access::count];
        typename T::Real r[Access::count];
        access.read(0, a);
        each(a, r, [](T z) { return hypot(z.re, z.im); });
        access.write(r);
    }
};

template <class T> struct ComplexPredicate {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T a[Access::count];
        Bool r[Access::count];
        access.read(0, a);
        switch (code) {
        case PVG_ISNAN: each(a, r, [](T z) { return Bool(is_nan(z)); }); break;
        case PVG_ISINF: each(a, r, [](T z) { return Bool(is_infinite(z)); }); break;
        default: each(a, r, [](T z) { return Bool(!is_nan(z) && !is_infinite(z)); });
        }
        access.write(r);
    }
};

template <class T> struct ComplexBinary {
    static constexpr int inputs = 2, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T a[Access::count], b[Access::count], r[Access::count];
        access.read(0, a);
        access.read(1, b);
        switch (code) {
        case PVG_ADD: each(a, b, r, [](T x, T y) { return x + y; }); break;
        case PVG_SUBTRACT: each(a, b, r, [](T x, T y) { return x - y; }); break;
        case PVG_MULTIPLY: each(a, b, r, [](T x, T y) { return x * y; }); break;
        default: each(a, b, r, [](T x, T y) { return x / y; }); // PVG_DIVIDE
        }
        access.write(r);
    }
};

template <class T> struct ComplexComparison {
    static constexpr int inputs = 2, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T a[Access::count], b[Access::count];
        Bool r[Access::count];
        access.read(0, a);
        access.read(1, b);
        const T zero = {0, 0};
        switch (code) {
        case PVG_EQUAL: each(a, b, r, [](T x, T y) { return Bool(x == y); }); break;
        case PVG_NOT_EQUAL: each(a, b, r, [](T x, T y) { return Bool(x != y); }); break;
        case PVG_LOGICAL_AND:
            each(a, b, r, [=](T x, T y) { return Bool(x != zero && y != zero); });
            break;
        case PVG_LOGICAL_OR:
            each(a, b, r, [=](T x, T y) { return Bool(x != zero || y != zero); });
            break;
        default: // PVG_LOGICAL_XOR
            each(a, b, r, [=](T x, T y) { return Bool((x != zero) != (y != zero)); });
        }
        access.write(r);
    }
};

} // namespace

int launch_complex_unary(Call &call, const Operation &operation, int dtype, pvg_array *out,
                         const pvg_array *a) {
    bool done = false;
    PVG_PASS(launch_complex_function(call, operation.code, dtype, out, a, &done));
    if (done) return PVG_OK;
    return dispatch<complexes>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if (operation.gives == Gives::boolean)
            return launch_map(call, ComplexPredicate<T>{operation.code}, out, {a});
        if (operation.gives == Gives::real) return launch_map(call, ComplexLength<T>(), out, {a});
        return launch_map(call, ComplexUnary<T>{operation.code}, out, {a});
    });
}

int launch_complex_binary(Call &call, const Operation &operation, int dtype, pvg_array *out,
                          const pvg_array *a, const pvg_array *b, const Scalar *scalar) {
    if (operation.code == PVG_POW) return launch_complex_power(call, dtype, out, a, b, scalar);
    return dispatch<complexes>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if (operation.gives == Gives::boolean)
            return launch_map(call, ComplexComparison<T>{operation.code}, out, {a, b}, scalar);
        return launch_map(call, ComplexBinary<T>{operation.code}, out, {a, b}, scalar);
    });
}

} // namespace pvg
