// Weak scalars; see scalar.cuh.
#include "arrays/dispatch.cuh"
#include "arrays/scalar.cuh"
#include <limits>
#include <math.h>
#include <string.h>

namespace pvg {

namespace {

// The value of a scalar as the widest type of its kind.
struct Number {
    int kind; // PVG_SCALAR_INT, PVG_SCALAR_UINT, PVG_SCALAR_FLOAT or PVG_SCALAR_COMPLEX
    int64_t i;
    uint64_t u;
    double f;
    Complex<double> c;
};
int read_number(int kind, const void *value, Number *n) {
    PVG_REQUIRE(value, PVG_ERROR_VALUE, "the scalar's value is a null pointer");
    *n = Number();
    n->kind = kind;
    switch (kind) {
    case PVG_SCALAR_BOOL:
        n->kind = PVG_SCALAR_INT;
        n->i = *static_cast<const uint8_t *>(value) != 0;
        return PVG_OK;
    case PVG_SCALAR_INT: memcpy(&n->i, value, sizeof n->i); return PVG_OK;
    case PVG_SCALAR_UINT: memcpy(&n->u, value, sizeof n->u); return PVG_OK;
    case PVG_SCALAR_FLOAT: memcpy(&n->f, value, sizeof n->f); return PVG_OK;
    case PVG_SCALAR_COMPLEX: memcpy(&n->c, value, sizeof n->c); return PVG_OK;
    }
    return fail(PVG_ERROR_VALUE, "unknown scalar kind %d", kind);
}

template <class T> int to_integer(const Number &n, T *out) {
    using Limits = std::numeric_limits<T>;
    bool fits;
    if (n.kind == PVG_SCALAR_UINT) {
        fits = n.u <= static_cast<uint64_t>(Limits::max());
        *out = static_cast<T>(n.u);
    } else if (n.kind == PVG_SCALAR_INT) {
        fits = n.i < 0 ? Limits::is_signed && n.i >= static_cast<int64_t>(Limits::min())
                       : static_cast<uint64_t>(n.i) <= static_cast<uint64_t>(Limits::max());
        *out = static_cast<T>(n.i);
    } else { // truncated toward zero; max + 1 is a power of two, so this comparison is exact
        double t = trunc(n.f), above = ldexp(1.0, Limits::digits);
        fits = t >= static_cast<double>(Limits::min()) && t < above; // false for NaN
        if (fits) *out = static_cast<T>(t);
    }
    if (fits) return PVG_OK;
    const char *name = dtype_name(DtypeOf<T>::value);
    if (n.kind == PVG_SCALAR_FLOAT)
        return fail(PVG_ERROR_OVERFLOW, "%g is out of bounds for %s", n.f, name);
    if (n.kind == PVG_SCALAR_UINT)
        return fail(PVG_ERROR_OVERFLOW, "%llu is out of bounds for %s",
                    static_cast<unsigned long long>(n.u), name);
    return fail(PVG_ERROR_OVERFLOW, "%lld is out of bounds for %s", static_cast<long long>(n.i),
                name);
}

template <class T> int convert(const Number &n, T *out) {
    if constexpr (is_complex<T>) {
        double real = 0;
        if (n.kind != PVG_SCALAR_COMPLEX) PVG_PASS(convert(n, &real));
        *out = n.kind == PVG_SCALAR_COMPLEX ? T(n.c) : T(Complex<double>(real));
        return PVG_OK;
    } else if (n.kind == PVG_SCALAR_COMPLEX) {
        if constexpr (is_bool<T>) {
            *out = T(n.c != Complex<double>(0));
            return PVG_OK;
        }
        return fail(PVG_ERROR_TYPE, "%s cannot hold a complex number",
                    dtype_name(DtypeOf<T>::value));
    } else if constexpr (is_bool<T>) {
        *out = T(n.kind == PVG_SCALAR_FLOAT  ? n.f != 0
                 : n.kind == PVG_SCALAR_UINT ? n.u != 0
                                             : n.i != 0);
        return PVG_OK;
    } else if constexpr (is_float<T>) {
        *out = n.kind == PVG_SCALAR_FLOAT  ? static_cast<T>(n.f)
               : n.kind == PVG_SCALAR_UINT ? static_cast<T>(n.u)
                                           : static_cast<T>(n.i);
        return PVG_OK;
    } else {
        return to_integer(n, out);
    }
}

} // namespace

int make_scalar(int dtype, int kind, const void *value, Scalar *out) {
    Number number = {};
    PVG_PASS(read_number(kind, value, &number));
    return dispatch(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T converted{};
        PVG_PASS(convert(number, &converted));
        memset(out->bytes, 0, sizeof out->bytes);
        memcpy(out->bytes, &converted, sizeof converted);
        return static_cast<int>(PVG_OK);
    });
}

} // namespace pvg
