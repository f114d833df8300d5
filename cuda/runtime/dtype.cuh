// Dtypes: names, sizes, promotion, and the one switch over C++ types.
//
//     pvg::dispatch(dtype, [&](auto tag) {
//         using T = typename decltype(tag)::type;
//         ...
//         return status;
//     });
#pragma once
#include "error.cuh"
#include "half.cuh"

namespace pvg {

template <class T> struct Tag { using type = T; };

// The bool dtype: one byte, 0 or 1, and a type of its own so that kernels can tell it from uint8.
// Arithmetic on it is done in int; anything other than 0 stores as 1.
struct Bool {
    unsigned char byte;
    Bool() = default;
    __host__ __device__ explicit constexpr Bool(bool value) : byte(value ? 1 : 0) {}
    __host__ __device__ explicit constexpr operator bool() const { return byte != 0; }
};
static_assert(sizeof(Bool) == 1, "a bool array is an array of bytes");

template <class T> struct DtypeOf;
template <> struct DtypeOf<Bool> { static constexpr int value = PVG_BOOL; };
template <> struct DtypeOf<int32_t> { static constexpr int value = PVG_INT32; };
template <> struct DtypeOf<int64_t> { static constexpr int value = PVG_INT64; };
template <> struct DtypeOf<uint8_t> { static constexpr int value = PVG_UINT8; };
template <> struct DtypeOf<uint64_t> { static constexpr int value = PVG_UINT64; };
template <> struct DtypeOf<Half> { static constexpr int value = PVG_FLOAT16; };
template <> struct DtypeOf<BFloat16> { static constexpr int value = PVG_BFLOAT16; };
template <> struct DtypeOf<float> { static constexpr int value = PVG_FLOAT32; };
template <> struct DtypeOf<double> { static constexpr int value = PVG_FLOAT64; };

template <class T>
inline constexpr bool is_float =
    is_half<T> || DtypeOf<T>::value == PVG_FLOAT32 || DtypeOf<T>::value == PVG_FLOAT64;
template <class T> inline constexpr bool is_bool = DtypeOf<T>::value == PVG_BOOL;
template <class T> inline constexpr bool is_integer = !is_float<T> && !is_bool<T>;

// Kinds in NumPy's order of "same_kind" casting.
enum class Kind { boolean = 0, unsigned_integer = 1, signed_integer = 2, floating = 3 };

const char *dtype_name(int dtype); // "float32"; "?" for an unknown one
int64_t dtype_size(int dtype);     // 0 for an unknown one
Kind dtype_kind(int dtype);
bool dtype_is_valid(int dtype);
// NumPy's result_type. bfloat16, which NumPy does not know, stays bfloat16 beside bool and integers
// and gives float32 beside float16.
int promote(int a, int b);
int float_dtype(int dtype); // of a float function of this operand: itself, or the default float
bool can_cast_same_kind(int from, int to);
int default_float();
void set_default_float(int dtype);

// Call function(Tag<T>()) with the type of the dtype; its status is returned. One case per dtype of
// the library.
template <class F> int dispatch(int dtype, F &&function) {
    switch (dtype) {
    case PVG_BOOL: return function(Tag<Bool>());
    case PVG_INT32: return function(Tag<int32_t>());
    case PVG_INT64: return function(Tag<int64_t>());
    case PVG_UINT8: return function(Tag<uint8_t>());
    case PVG_UINT64: return function(Tag<uint64_t>());
    case PVG_FLOAT16: return function(Tag<Half>());
    case PVG_BFLOAT16: return function(Tag<BFloat16>());
    case PVG_FLOAT32: return function(Tag<float>());
    case PVG_FLOAT64: return function(Tag<double>());
    }
    return fail(PVG_ERROR_TYPE, "unknown dtype code %d", dtype);
}
// The same for kernels that only move elements: by size, as unsigned integers of 1, 2, 4 or 8
// bytes.
template <class F> int dispatch_size(int dtype, F &&function) {
    switch (dtype_size(dtype)) {
    case 1: return function(Tag<uint8_t>());
    case 2: return function(Tag<uint16_t>());
    case 4: return function(Tag<uint32_t>());
    case 8: return function(Tag<uint64_t>());
    }
    return fail(PVG_ERROR_TYPE, "unknown dtype code %d", dtype);
}
// The same for float dtypes only.
template <class F> int dispatch_float(int dtype, F &&function) {
    switch (dtype) {
    case PVG_FLOAT16: return function(Tag<Half>());
    case PVG_BFLOAT16: return function(Tag<BFloat16>());
    case PVG_FLOAT32: return function(Tag<float>());
    case PVG_FLOAT64: return function(Tag<double>());
    }
    return fail(PVG_ERROR_TYPE, "takes a float dtype, got %s", dtype_name(dtype));
}

// A weak scalar in the dtype it is used with, ready to be a kernel parameter.
struct Scalar {
    alignas(8) unsigned char bytes[8];
    template <class T> __host__ __device__ T as() const {
        return *reinterpret_cast<const T *>(bytes);
    }
};
// The dtype that an array of `dtype` and a weak scalar of `kind` are promoted to.
int promote_scalar(int dtype, int kind);
// Convert *value (see pvg_scalar_kind) to `dtype`. Errors: VALUE, OVERFLOW.
int make_scalar(int dtype, int kind, const void *value, Scalar *out);

} // namespace pvg
