// Dtypes: the one list of them, and what is derived from it: C++ traits, names, sizes, kinds and
// promotion. A leaf: it includes nothing of the floors above (runtime/, arrays/, kernels/).
#pragma once
#include "dtypes/complex.cuh"
#include "dtypes/half.cuh"
#include "pyvecgpu.h"

namespace pvg {

// The bool dtype: one byte, 0 or 1, and a type of its own so that kernels can tell it from uint8.
// Arithmetic on it is done in int; anything other than 0 stores as 1.
struct Bool {
    unsigned char byte;
    Bool() = default;
    __host__ __device__ explicit constexpr Bool(bool value) : byte(value ? 1 : 0) {}
    __host__ __device__ explicit constexpr operator bool() const { return byte != 0; }
};
static_assert(sizeof(Bool) == 1, "a bool array is an array of bytes");

// PRESENT(NAME, code, "name", element type, type that it is computed in, kind), or RESERVED of the
// same: arrays can have the present ones. The others' codes and facts are fixed already; one
// becomes present when every function knows what to do with it.
#define PVG_DTYPES(PRESENT, RESERVED)                                            \
    PRESENT(BOOL, 0, "bool", Bool, Bool, boolean)                                \
    PRESENT(INT8, 1, "int8", int8_t, int8_t, signed_integer)                     \
    PRESENT(INT16, 2, "int16", int16_t, int16_t, signed_integer)                 \
    PRESENT(INT32, 3, "int32", int32_t, int32_t, signed_integer)                 \
    PRESENT(INT64, 4, "int64", int64_t, int64_t, signed_integer)                 \
    PRESENT(UINT8, 5, "uint8", uint8_t, uint8_t, unsigned_integer)               \
    PRESENT(UINT16, 6, "uint16", uint16_t, uint16_t, unsigned_integer)           \
    PRESENT(UINT32, 7, "uint32", uint32_t, uint32_t, unsigned_integer)           \
    PRESENT(UINT64, 8, "uint64", uint64_t, uint64_t, unsigned_integer)           \
    PRESENT(FLOAT16, 9, "float16", Half, float, floating)                        \
    PRESENT(BFLOAT16, 10, "bfloat16", BFloat16, float, floating)                 \
    PRESENT(FLOAT32, 11, "float32", float, float, floating)                      \
    PRESENT(FLOAT64, 12, "float64", double, double, floating)                    \
    PRESENT(COMPLEX64, 13, "complex64", Complex<float>, Complex<float>, complex) \
    PRESENT(COMPLEX128, 14, "complex128", Complex<double>, Complex<double>, complex)
#define PVG_NO_DTYPE(NAME, code, name, type, computed, kind)
#define PVG_PRESENT_DTYPES(X) PVG_DTYPES(X, PVG_NO_DTYPE)

#define PVG_CHECK_CODE(NAME, code, name, type, computed, kind) \
    static_assert(PVG_##NAME == code, "the header and the list of dtypes differ in " name);
PVG_PRESENT_DTYPES(PVG_CHECK_CODE)
#undef PVG_CHECK_CODE

// ---- Traits -------------------------------------------------------------------------------------

// In NumPy's order of "same_kind" casting.
enum class Kind { boolean, unsigned_integer, signed_integer, floating, complex };

// Sets of kinds, to say what a function takes.
using Kinds = unsigned;
constexpr Kinds only(Kind kind) { return 1u << static_cast<int>(kind); }
constexpr Kinds booleans = only(Kind::boolean);
constexpr Kinds integers = only(Kind::unsigned_integer) | only(Kind::signed_integer);
constexpr Kinds floats = only(Kind::floating);
constexpr Kinds reals = integers | floats; // numbers with an order
constexpr Kinds complexes = only(Kind::complex);
constexpr Kinds numbers = reals | complexes;
constexpr Kinds ordered = booleans | reals;
constexpr Kinds all_kinds = booleans | numbers;

template <class T> struct Tag { using type = T; };

template <class T> struct DtypeOf;
#define PVG_TRAITS(NAME, code, name, T, computed, its_kind) \
    template <> struct DtypeOf<T> {                         \
        static constexpr int value = code;                  \
        static constexpr Kind kind = Kind::its_kind;        \
        using compute = computed;                           \
    };
PVG_DTYPES(PVG_TRAITS, PVG_TRAITS)
#undef PVG_TRAITS

template <class T> inline constexpr Kinds kinds_of = only(DtypeOf<T>::kind);
template <class T> inline constexpr bool is_bool = DtypeOf<T>::kind == Kind::boolean;
template <class T> inline constexpr bool is_unsigned = DtypeOf<T>::kind == Kind::unsigned_integer;
template <class T> inline constexpr bool is_signed = DtypeOf<T>::kind == Kind::signed_integer;
template <class T> inline constexpr bool is_integer = is_unsigned<T> || is_signed<T>;
template <class T> inline constexpr bool is_float = DtypeOf<T>::kind == Kind::floating;
template <class T> inline constexpr bool is_complex = DtypeOf<T>::kind == Kind::complex;
// The type that elements of type T are computed in.
template <class T> using ComputeType = typename DtypeOf<T>::compute;

// ---- Facts at run time --------------------------------------------------------------------------

constexpr int64_t largest_item = 16; // bytes of an element

bool dtype_is_valid(int dtype);    // arrays can have it
const char *dtype_name(int dtype); // "float32", of reserved ones too; "?" for an unknown one
int64_t dtype_size(int dtype);     // 0 for one that arrays cannot have
Kind dtype_kind(int dtype);        // of any in the list
inline bool is_among(int dtype, Kinds kinds) {
    return dtype_is_valid(dtype) && (only(dtype_kind(dtype)) & kinds) != 0;
}
// NumPy's result_type of two dtypes in the list, which may be a reserved one; -1 if one is not in
// it. bfloat16, which NumPy does not know, stays bfloat16 beside bool and integers and gives
// float32 beside float16.
int promote(int a, int b);
int float_dtype(int dtype);   // of a float function of this operand: itself, or the default float
int real_dtype(int dtype);    // of a part of such a number: itself, or of a complex one its parts'
int complex_dtype(int dtype); // that has such parts: complex128 of float64, else complex64
int wide_dtype(int dtype);    // of sums: itself, or of bool and integers the one of 64 bits
bool can_cast_same_kind(int from, int to);
int default_float();
void set_default_float(int dtype);
// The dtype that an array of `dtype` and a weak scalar of `kind` are promoted to.
int promote_scalar(int dtype, int kind);

} // namespace pvg
