// Names, sizes and promotion of dtypes, and weak scalars; see dtype.cuh.
#include "runtime/dtype.cuh"
#include <atomic>
#include <limits>
#include <math.h>
#include <string.h>

namespace pvg {

namespace {

struct DtypeRow {
    int code;
    const char *name;
    int64_t size;
    Kind kind;
};
const DtypeRow dtypes[] = {
    {PVG_BOOL, "bool", 1, Kind::boolean},
    {PVG_UINT8, "uint8", 1, Kind::unsigned_integer},
    {PVG_UINT64, "uint64", 8, Kind::unsigned_integer},
    {PVG_INT32, "int32", 4, Kind::signed_integer},
    {PVG_INT64, "int64", 8, Kind::signed_integer},
    {PVG_FLOAT16, "float16", 2, Kind::floating},
    {PVG_BFLOAT16, "bfloat16", 2, Kind::floating},
    {PVG_FLOAT32, "float32", 4, Kind::floating},
    {PVG_FLOAT64, "float64", 8, Kind::floating},
};
const DtypeRow *find(int dtype) {
    for (const DtypeRow &row : dtypes)
        if (row.code == dtype) return &row;
    return nullptr;
}
std::atomic<int> default_float_dtype{PVG_FLOAT32};

} // namespace

const char *dtype_name(int dtype) {
    const DtypeRow *row = find(dtype);
    return row ? row->name : "?";
}
int64_t dtype_size(int dtype) {
    switch (dtype) {
    case PVG_BOOL:
    case PVG_UINT8: return 1;
    case PVG_FLOAT16:
    case PVG_BFLOAT16: return 2;
    case PVG_INT32:
    case PVG_FLOAT32: return 4;
    case PVG_INT64:
    case PVG_UINT64:
    case PVG_FLOAT64: return 8;
    }
    return 0;
}
Kind dtype_kind(int dtype) {
    const DtypeRow *row = find(dtype);
    return row ? row->kind : Kind::boolean;
}
bool dtype_is_valid(int dtype) { return dtype_size(dtype) != 0; }

// NumPy's rule: the smallest dtype that holds every value of both; float64 where no integer dtype
// does, and for an integer of 32 bits or more beside a float16 or float32. bfloat16 beside bool and
// uint8 is as in ml_dtypes; beside what ml_dtypes refuses, it is as in JAX and torch.
int promote(int a, int b) {
    if (a == b) return a;
    if (!dtype_is_valid(a) || !dtype_is_valid(b)) return -1;
    Kind ka = dtype_kind(a), kb = dtype_kind(b);
    if (ka > kb || (ka == kb && dtype_size(a) > dtype_size(b))) {
        int d = a;
        a = b, b = d;
        ka = dtype_kind(a), kb = dtype_kind(b);
    }
    // b is now of the higher kind, or of the same kind and larger
    if (ka == kb) return dtype_size(a) == dtype_size(b) ? PVG_FLOAT32 : b; // the same: two halves
    if (ka == Kind::boolean || b == PVG_BFLOAT16) return b;
    if (kb == Kind::floating) return dtype_size(a) < 4 ? b : PVG_FLOAT64;
    if (dtype_size(a) < dtype_size(b)) return b; // unsigned into a larger signed
    return PVG_FLOAT64;                          // uint64 beside a signed integer
}

int default_float() { return default_float_dtype.load(std::memory_order_relaxed); }
void set_default_float(int dtype) { default_float_dtype.store(dtype); }

int float_dtype(int dtype) { return dtype_kind(dtype) == Kind::floating ? dtype : default_float(); }

bool can_cast_same_kind(int from, int to) { return dtype_kind(from) <= dtype_kind(to); }

int promote_scalar(int dtype, int kind) {
    Kind k = dtype_kind(dtype);
    switch (kind) {
    case PVG_SCALAR_BOOL: return dtype;
    case PVG_SCALAR_INT:
    case PVG_SCALAR_UINT: return k == Kind::boolean ? PVG_INT64 : dtype;
    case PVG_SCALAR_FLOAT: return float_dtype(dtype);
    }
    return dtype;
}

namespace {

// The value of a scalar as the widest type of its kind.
struct Number {
    int kind; // PVG_SCALAR_INT, PVG_SCALAR_UINT or PVG_SCALAR_FLOAT
    int64_t i;
    uint64_t u;
    double f;
};
int read_number(int kind, const void *value, Number *n) {
    PVG_REQUIRE(value, PVG_ERROR_VALUE, "the scalar's value is a null pointer");
    memset(n, 0, sizeof *n);
    n->kind = kind;
    switch (kind) {
    case PVG_SCALAR_BOOL:
        n->kind = PVG_SCALAR_INT;
        n->i = *static_cast<const uint8_t *>(value) != 0;
        return PVG_OK;
    case PVG_SCALAR_INT: memcpy(&n->i, value, sizeof n->i); return PVG_OK;
    case PVG_SCALAR_UINT: memcpy(&n->u, value, sizeof n->u); return PVG_OK;
    case PVG_SCALAR_FLOAT: memcpy(&n->f, value, sizeof n->f); return PVG_OK;
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
    if constexpr (is_bool<T>) {
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
    Number number;
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

PVG_API int pvg_promote(int dtype_a, int dtype_b) {
    return pvg::dtype_is_valid(dtype_a) && pvg::dtype_is_valid(dtype_b)
               ? pvg::promote(dtype_a, dtype_b)
               : -1;
}
PVG_API int64_t pvg_dtype_size(int dtype) { return pvg::dtype_size(dtype); }
