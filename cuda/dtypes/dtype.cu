// Names, sizes and promotion of dtypes; see dtype.cuh.
#include "dtypes/dtype.cuh"
#include <atomic>

namespace pvg {

namespace {

struct Fact {
    int code;
    const char *name;
    int64_t size;
    Kind kind;
    bool present;
};
#define PVG_PRESENT_FACT(NAME, code, name, type, computed, kind) \
    {code, name, sizeof(type), Kind::kind, true},
#define PVG_RESERVED_FACT(NAME, code, name, type, computed, kind) \
    {code, name, sizeof(type), Kind::kind, false},
constexpr Fact facts[] = {PVG_DTYPES(PVG_PRESENT_FACT, PVG_RESERVED_FACT)};
#undef PVG_PRESENT_FACT
#undef PVG_RESERVED_FACT
constexpr int count = sizeof facts / sizeof facts[0];

constexpr bool is_complete() {
    for (int code = 0; code < count; code++)
        if (facts[code].code != code || facts[code].size > largest_item) return false;
    return true;
}
static_assert(is_complete(), "dtypes are listed by code, from 0 on");

bool is_known(int dtype) { return dtype >= 0 && dtype < count; }
const Fact &fact_of(int dtype) { return facts[is_known(dtype) ? dtype : 0]; }

std::atomic<int> default_float_dtype{PVG_FLOAT32};

// The dtype of a kind and a size, of which there is one (there are two halves).
int find(Kind kind, int64_t size) {
    for (const Fact &fact : facts)
        if (fact.kind == kind && fact.size == size) return fact.code;
    return -1;
}

} // namespace

bool dtype_is_valid(int dtype) { return is_known(dtype) && fact_of(dtype).present; }
const char *dtype_name(int dtype) { return is_known(dtype) ? fact_of(dtype).name : "?"; }
int64_t dtype_size(int dtype) { return dtype_is_valid(dtype) ? fact_of(dtype).size : 0; }
Kind dtype_kind(int dtype) { return fact_of(dtype).kind; }

// NumPy's rule: the smallest dtype that holds every value of both; float64 where no integer dtype
// does, and for an integer of 32 bits or more beside a smaller float. bfloat16 beside bool and
// 8-bit integers is as in ml_dtypes; beside what ml_dtypes refuses, it is as in JAX and torch.
int promote(int a, int b) {
    if (!is_known(a) || !is_known(b)) return -1;
    if (a == b) return a;
    const Fact *low = &fact_of(a), *high = &fact_of(b);
    if (low->kind > high->kind || (low->kind == high->kind && low->size > high->size)) {
        const Fact *other = low;
        low = high, high = other;
    }
    if (low->kind == high->kind) return low->size == high->size ? PVG_FLOAT32 : high->code;
    if (low->kind == Kind::boolean || high->code == PVG_BFLOAT16) return high->code;
    const bool is_float = low->kind == Kind::floating;
    switch (high->kind) {
    case Kind::complex: // of two floats; an integer needs one that holds it
        return low->size > (is_float ? 4 : 2) ? find(Kind::complex, 16) : high->code;
    case Kind::floating:
        if (low->size >= 4) return PVG_FLOAT64;
        return low->size == 2 && high->size == 2 ? PVG_FLOAT32 : high->code;
    default: // unsigned into a larger signed
        if (low->size < high->size) return high->code;
        return low->size < 8 ? find(Kind::signed_integer, 2 * low->size) : PVG_FLOAT64;
    }
}

int default_float() { return default_float_dtype.load(std::memory_order_relaxed); }
void set_default_float(int dtype) { default_float_dtype.store(dtype); }

int float_dtype(int dtype) { return dtype_kind(dtype) >= Kind::floating ? dtype : default_float(); }
int real_dtype(int dtype) {
    const Fact &fact = fact_of(dtype);
    return fact.kind == Kind::complex ? find(Kind::floating, fact.size / 2) : dtype;
}
int complex_dtype(int dtype) {
    if (dtype_kind(dtype) == Kind::complex) return dtype;
    return float_dtype(dtype) == PVG_FLOAT64 ? PVG_COMPLEX128 : PVG_COMPLEX64;
}
int wide_dtype(int dtype) {
    switch (dtype_kind(dtype)) {
    case Kind::boolean:
    case Kind::signed_integer: return PVG_INT64;
    case Kind::unsigned_integer: return PVG_UINT64;
    case Kind::floating:
    case Kind::complex: break;
    }
    return dtype;
}

bool can_cast_same_kind(int from, int to) { return dtype_kind(from) <= dtype_kind(to); }

int promote_scalar(int dtype, int kind) {
    switch (kind) {
    case PVG_SCALAR_INT:
    case PVG_SCALAR_UINT: return dtype == PVG_BOOL ? PVG_INT64 : dtype;
    case PVG_SCALAR_FLOAT: return float_dtype(dtype);
    case PVG_SCALAR_COMPLEX: return complex_dtype(dtype);
    }
    return dtype;
}

} // namespace pvg

PVG_API int pvg_promote(int dtype_a, int dtype_b) {
    const bool valid = pvg::dtype_is_valid(dtype_a) && pvg::dtype_is_valid(dtype_b);
    return valid ? pvg::promote(dtype_a, dtype_b) : -1;
}
PVG_API const char *pvg_dtype_name(int dtype) { return pvg::dtype_name(dtype); }
PVG_API int64_t pvg_dtype_size(int dtype) { return pvg::dtype_size(dtype); }
