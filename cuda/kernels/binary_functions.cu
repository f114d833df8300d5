// The binary functions of functions.cuh: one kernel per dtype and access pattern (map.cuh), with
// the function as a run-time code.
#include "arrays/map.cuh"
#include "kernels/functions.cuh"
#include <string.h>

namespace pvg {

namespace {

// r[e] is what the usual way gives, all N at the same time; then each thread turns to those of its
// own that this is not right of, one after another.
template <int N, class Usual, class Exact>
__device__ __forceinline__ void each_tried(const float (&a)[N], const float (&b)[N], float (&r)[N],
                                           Usual usual, Exact exact) {
    unsigned left = 0; // a bit each
#pragma unroll
    for (int e = 0; e < N; e++) {
        const Tried tried = usual(a[e], b[e]);
        r[e] = tried.value;
        if (!tried.is_right) left |= 1u << e;
    }
#pragma unroll 1
    for (; left != 0; left &= left - 1) {
        const unsigned one = left & -left;
        float x = a[0], y = b[0], value = r[0];
#pragma unroll
        for (int e = 1; e < N; e++)
            if (one >> e & 1) x = a[e], y = b[e], value = r[e];
        value = exact(x, y, value);
#pragma unroll
        for (int e = 0; e < N; e++)
            if (one >> e & 1) r[e] = value;
    }
}

// Functions whose elements have nothing to do with each other.
template <class T, int CODE>
constexpr bool is_each = !is_tried<T, CODE> && (CODE != PVG_POW || is_float<T>);

// r[e] = f(a[e], b[e]); `code` says which function. S: what is stored.
template <class S, class T, int N>
__device__ __forceinline__ void apply_binary_function(int code, const T (&a)[N], const T (&b)[N],
                                                      T (&r)[N]) {
#define PVG_CASE(NAME, usual, exact)                                \
    case PVG_##NAME:                                                \
        return each_tried(                                          \
            a, b, r, [](float x, float y) { return Tried(usual); }, \
            [](float x, float y, [[maybe_unused]] float value) { return exact; });
    if constexpr (std::is_same_v<T, float>) {
        switch (code) { PVG_TRIED_FUNCTIONS(PVG_CASE) }
    } else if constexpr (!is_float<T>) {
        if (code == PVG_POW) return integer_powers(a, b, r);
    }
#undef PVG_CASE
#define PVG_CASE(NAME, name, domain, result, value)                                    \
    case PVG_##NAME:                                                                   \
        if constexpr (is_computed<T, domain, Gives::result> && is_each<T, PVG_##NAME>) \
            each(a, b, r, [](T x, T y) { return T(value); });                          \
        return;
    switch (code) { PVG_BINARY_FUNCTIONS(PVG_CASE) }
#undef PVG_CASE
}

// Four elements at a time, whose steps overlap; the code of each function is long, so not more. All
// go round as words of what is stored, because registers have no index.
template <class T, int N>
__device__ __forceinline__ void apply_in_turns(int code, const T (&a)[N], const T (&b)[N],
                                               T (&r)[N]) {
    constexpr int step = 4, turns = N / step;
    using Word = std::conditional_t<sizeof(T) == 1, uint32_t, uint64_t>;
    static_assert(step * sizeof(T) == sizeof(Word), "small elements");
    Word left[turns], right[turns], result[turns] = {};
    memcpy(left, a, sizeof left);
    memcpy(right, b, sizeof right);
#pragma unroll 1
    for (int i = 0; i < turns; i++) {
        T x[step], y[step];
        memcpy(x, &left[0], sizeof x);
        memcpy(y, &right[0], sizeof y);
        ComputeType<T> first[step], second[step], last[step] = {};
#pragma unroll
        for (int e = 0; e < step; e++)
            first[e] = static_cast<ComputeType<T>>(x[e]),
            second[e] = static_cast<ComputeType<T>>(y[e]);
        apply_binary_function<T>(code, first, second, last);
#pragma unroll
        for (int e = 0; e < step; e++) x[e] = static_cast<T>(last[e]);
#pragma unroll
        for (int j = 0; j + 1 < turns; j++)
            left[j] = left[j + 1], right[j] = right[j + 1], result[j] = result[j + 1];
        memcpy(&result[turns - 1], x, sizeof x);
    }
    memcpy(r, result, sizeof result);
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
        if constexpr (is_half<T>)
            if (code == PVG_COPYSIGN) return copy_signs(access);
        if constexpr (Access::count > 4) {
            T a[Access::count], b[Access::count], r[Access::count];
            access.read(0, a);
            access.read(1, b);
            apply_in_turns(code, a, b, r);
            access.write(r);
        } else {
            ComputeType<T> a[Access::count], b[Access::count], r[Access::count] = {};
            read_as<T>(access, 0, a);
            read_as<T>(access, 1, b);
            apply_binary_function<T>(code, a, b, r);
            write_as<T>(access, r);
        }
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

// Powers of an array by one whole number, which is the same for all threads: products. Of floats
// those are squares and cubes, see power.
template <class T> struct WholePower {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    uint64_t exponent;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        ComputeType<T> x[Access::count], r[Access::count];
        read_as<T>(access, 0, x);
        if constexpr (is_float<ComputeType<T>>) {
#pragma unroll
            for (int e = 0; e < Access::count; e++)
                r[e] = exponent == 2 ? x[e] * x[e] : x[e] * x[e] * x[e];
        } else {
            Unsigned<T> factor[Access::count], power[Access::count];
#pragma unroll
            for (int e = 0; e < Access::count; e++)
                factor[e] = static_cast<Unsigned<T>>(x[e]), power[e] = 1;
#pragma unroll 1
            for (uint64_t n = exponent; n != 0; n /= 2) {
#pragma unroll
                for (int e = 0; e < Access::count; e++) {
                    if (n % 2) power[e] *= factor[e];
                    factor[e] *= factor[e];
                }
            }
#pragma unroll
            for (int e = 0; e < Access::count; e++) r[e] = static_cast<T>(power[e]);
        }
        write_as<T>(access, r);
    }
};

// Whether a number beside an array is an exponent of WholePower.
template <class T> bool is_whole_exponent(const Scalar &scalar, uint64_t *exponent) {
    const auto number = static_cast<ComputeType<T>>(scalar.as<T>());
    if constexpr (is_float<ComputeType<T>>)
        if (number != 2 && number != 3) return false;
    if constexpr (is_signed<T>)
        if (number < 0) return false;
    *exponent = static_cast<uint64_t>(number);
    return true;
}

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
        uint64_t exponent = 0;
        if constexpr (!is_bool<T>)
            if (operation.code == PVG_POW && !b && is_whole_exponent<T>(*scalar, &exponent))
                return launch_map(call, WholePower<T>{exponent}, out, {a});
        return launch_map(call, BinaryFunction<T>{operation.code}, out, {a, b}, scalar);
    });
}

} // namespace pvg
