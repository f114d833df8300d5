// The binary functions of functions.cuh: one kernel per dtype and access pattern (map.cuh), with
// the function as a run-time code.
#include "arrays/map.cuh"
#include "kernels/functions.cuh"

namespace pvg {

namespace {

// One element after another: the code of each function is long, and elements of a thread need not
// overlap where many threads do. The values go round, because registers have no index.
template <class T, int N>
__device__ __forceinline__ void apply_binary_function(int code, const T (&a)[N], const T (&b)[N],
                                                      T (&r)[N]) {
    T left[N], right[N];
#pragma unroll
    for (int e = 0; e < N; e++) left[e] = a[e], right[e] = b[e];
#pragma unroll 1
    for (int i = 0; i < N; i++) {
        const T x = left[0], y = right[0];
        T last = 0;
#define PVG_CASE(NAME, name, domain, result, value)                           \
    case PVG_##NAME:                                                          \
        if constexpr (is_computed<T, domain, Gives::result>) last = T(value); \
        break;
        switch (code) { PVG_BINARY_FUNCTIONS(PVG_CASE) }
#undef PVG_CASE
#pragma unroll
        for (int e = 0; e < N - 1; e++)
            left[e] = left[e + 1], right[e] = right[e + 1], r[e] = r[e + 1];
        r[N - 1] = last;
    }
}

template <class T> struct BinaryFunction {
    static constexpr int inputs = 2, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        ComputeType<T> a[Access::count], b[Access::count], r[Access::count] = {};
        read_as<T>(access, 0, a);
        read_as<T>(access, 1, b);
        apply_binary_function(code, a, b, r);
        write_as<T>(access, r);
    }
};

} // namespace

bool is_binary_function(int code) {
#define PVG_CASE(NAME, name, domain, result, value) case PVG_##NAME:
    switch (code) { PVG_BINARY_FUNCTIONS(PVG_CASE) return true; }
#undef PVG_CASE
    return false;
}

int launch_binary_function(Call &call, const Operation &operation, int dtype, pvg_array *out,
                           const pvg_array *a, const pvg_array *b, const Scalar *scalar) {
    return dispatch<reals>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(call, BinaryFunction<T>{operation.code}, out, {a, b}, scalar);
    });
}

} // namespace pvg
