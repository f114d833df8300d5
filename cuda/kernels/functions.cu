// The unary functions and predicates of functions.cuh: one kernel of each per dtype and access
// pattern (map.cuh), with the function as a run-time code.
#include "arrays/map.cuh"
#include "kernels/functions.cuh"

namespace pvg {

namespace {

template <class T, int N>
__device__ __forceinline__ void apply_unary_function(int code, const T (&a)[N], T (&r)[N]) {
#define PVG_CASE(NAME, name, domain, result, value) \
    case PVG_##NAME: each(a, r, [](T x) { return T(value); }); return;
    switch (code) { PVG_UNARY_FUNCTIONS(PVG_CASE) }
#undef PVG_CASE
}

// The functions of precise.cuh whose results are rounded to halves: those of CUDA, which are off by
// less than halves can tell and take half the time. False: another function.
template <int N>
__device__ __forceinline__ bool apply_for_halves(int code, const float (&a)[N], float (&r)[N]) {
    switch (code) {
    case PVG_TAN: each(a, r, [](float x) { return tanf(x); }); return true;
    case PVG_SINH: each(a, r, [](float x) { return sinhf(x); }); return true;
    case PVG_COSH: each(a, r, [](float x) { return coshf(x); }); return true;
    case PVG_ACOSH: each(a, r, [](float x) { return acoshf(x); }); return true;
    case PVG_ATANH: each(a, r, [](float x) { return atanhf(x); }); return true;
    case PVG_EXP2: each(a, r, [](float x) { return exp2f(x); }); return true;
    case PVG_LOG10: each(a, r, [](float x) { return log10f(x); }); return true;
    }
    return false;
}

template <class T, int N>
__device__ __forceinline__ void apply_predicate(int code, const T (&a)[N], Bool (&r)[N]) {
#define PVG_CASE(NAME, name, domain, result, value) \
    case PVG_##NAME: each(a, r, [](T x) { return Bool(value); }); return;
    switch (code) { PVG_PREDICATES(PVG_CASE) }
#undef PVG_CASE
}

template <class T> struct UnaryFunction {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        ComputeType<T> a[Access::count], r[Access::count] = {};
        read_as<T>(access, 0, a);
        bool done = false;
        if constexpr (is_half<T>) done = apply_for_halves(code, a, r);
        if (!done) apply_unary_function(code, a, r);
        write_as<T>(access, r);
    }
};

template <class T> struct Predicate {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T a[Access::count];
        Bool r[Access::count] = {};
        access.read(0, a);
        apply_predicate(code, a, r);
        access.write(r);
    }
};

} // namespace

bool is_unary_function(int code) {
#define PVG_CASE(NAME, name, domain, result, value) case PVG_##NAME:
    switch (code) {
        PVG_UNARY_FUNCTIONS(PVG_CASE)
        PVG_PREDICATES(PVG_CASE)
        return true;
    }
#undef PVG_CASE
    return false;
}

int launch_unary_function(Call &call, const Operation &operation, int dtype, pvg_array *out,
                          const pvg_array *a) {
    if (operation.gives == Gives::boolean)
        return dispatch<ordered>(dtype, [&](auto tag) {
            using T = typename decltype(tag)::type;
            return launch_map(call, Predicate<T>{operation.code}, out, {a});
        });
    return dispatch<floats>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(call, UnaryFunction<T>{operation.code}, out, {a});
    });
}

} // namespace pvg
