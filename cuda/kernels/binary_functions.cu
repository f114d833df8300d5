// The binary functions of functions.cuh: one kernel per dtype and access pattern (map.cuh), with
// the function as a run-time code.
#include "arrays/map.cuh"
#include "kernels/functions.cuh"

namespace pvg {

namespace {

// Four elements at a time, whose steps overlap; the code of each function is long, so not more. The
// values go round, because registers have no index.
template <class T, int N>
__device__ __forceinline__ void apply_binary_function(int code, const T (&a)[N], const T (&b)[N],
                                                      T (&r)[N]) {
    constexpr int step = N < 4 ? N : 4;
    T left[N], right[N];
#pragma unroll
    for (int e = 0; e < N; e++) left[e] = a[e], right[e] = b[e];
#pragma unroll 1
    for (int i = 0; i < N; i += step) {
        T first[step], second[step], last[step] = {};
#pragma unroll
        for (int e = 0; e < step; e++) first[e] = left[e], second[e] = right[e];
#define PVG_CASE(NAME, name, domain, result, value)                       \
    case PVG_##NAME:                                                      \
        if constexpr (is_computed<T, domain, Gives::result>)              \
            each(first, second, last, [](T x, T y) { return T(value); }); \
        break;
        switch (code) { PVG_BINARY_FUNCTIONS(PVG_CASE) }
#undef PVG_CASE
#pragma unroll
        for (int e = 0; e + step < N; e++)
            left[e] = left[e + step], right[e] = right[e + step], r[e] = r[e + step];
#pragma unroll
        for (int e = 0; e < step; e++) r[N - step + e] = last[e];
    }
}

// The magnitude of one with the sign of another, by their bits: a card's conversion of halves to
// float32 loses the sign of NaN.
template <class T> __device__ __forceinline__ T signed_as(T x, T y) {
    x.bits = static_cast<uint16_t>((x.bits & 0x7fff) | (y.bits & 0x8000));
    return x;
}

template <class T> struct BinaryFunction {
    static constexpr int inputs = 2, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        ComputeType<T> a[Access::count], b[Access::count], r[Access::count] = {};
        if constexpr (is_half<T>)
            if (code == PVG_COPYSIGN) return copy_signs(access);
        read_as<T>(access, 0, a);
        read_as<T>(access, 1, b);
        apply_binary_function(code, a, b, r);
        write_as<T>(access, r);
    }
    template <class Access> __device__ __forceinline__ void copy_signs(const Access &access) const {
        T a[Access::count], b[Access::count];
        access.read(0, a);
        access.read(1, b);
#pragma unroll
        for (int e = 0; e < Access::count; e++) a[e] = signed_as(a[e], b[e]);
        access.write(a);
    }
};

// Some blocks compute while others load, which those of 1,024 threads leave no registers for.
template <class T> constexpr bool is_long<BinaryFunction<T>> = true;

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
