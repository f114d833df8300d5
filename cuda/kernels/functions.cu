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
        apply_unary_function(code, a, r);
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
