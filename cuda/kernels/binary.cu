// pvg_binary and pvg_binary_scalar: out[i] = f(a[i], b[i]), arithmetic and comparisons. One kernel
// per dtype and access pattern (map.cuh); which function it is, is a run-time code
// (elementwise.cuh). A weak scalar is an operand that the kernel takes from its parameters.
// Functions with long code are launched by binary_functions.cu.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "kernels/complex.cuh"
#include "kernels/functions.cuh"
#include "kernels/packed.cuh"

namespace pvg {

namespace {

template <class T> struct Binary {
    static constexpr int inputs = 2, vector = 16 / sizeof(T);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        ComputeType<T> a[Access::count], b[Access::count], r[Access::count] = {};
        read_both_as<T, T>(access, a, b);
        apply_binary(code, a, b, r);
        write_as<T>(access, r);
    }
};

// Integers and bools divided in float32, which they become in the same kernel.
struct Quotient {
    static constexpr int inputs = 2, vector = 4;
    int from[2]; // dtypes of the operands; float32 of a scalar

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        float a[Access::count] = {}, b[Access::count] = {};
        read_float(access, 0, a);
        read_float(access, 1, b);
#pragma unroll
        for (int e = 0; e < Access::count; e++) a[e] /= b[e];
        access.write(a);
    }

private:
    template <class Access>
    __device__ __forceinline__ void read_float(const Access &access, int k,
                                               float (&x)[Access::count]) const {
        switch (from[k]) {
#define PVG_CASE(NAME, code, name, From, computed, kind)                  \
    case PVG_##NAME:                                                      \
        if constexpr (!is_complex<From> && !std::is_same_v<From, double>) \
            read_from<From>(access, k, x);                                \
        break;
            PVG_PRESENT_DTYPES(PVG_CASE)
#undef PVG_CASE
        }
    }
    template <class From, class Access>
    static __device__ __forceinline__ void read_from(const Access &access, int k,
                                                     float (&x)[Access::count]) {
        From stored[Access::count];
        access.read(k, stored);
#pragma unroll
        for (int e = 0; e < Access::count; e++)
            x[e] = static_cast<float>(comparable(static_cast<ComputeType<From>>(stored[e])));
    }
};

bool is_quotient(int code, const Dtypes &dtypes, const pvg_array *a, const pvg_array *b) {
    constexpr Kinds kinds = booleans | integers;
    return code == PVG_DIVIDE && dtypes.computed == PVG_FLOAT32 && is_among(a->dtype, kinds) &&
           is_among(b->dtype, kinds);
}

// A and B differ only for int64 beside uint64.
template <class A, class B> struct Comparison {
    static constexpr int inputs = 2, vector = 16 / sizeof(A);
    int code;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        Bool r[Access::count] = {};
        if constexpr (sizeof(A) == 1) {
            constexpr int words = Access::count / 4;
            uint32_t a[words], b[words], answers[words] = {};
            read_both_packed(access, a, b);
            compare_bytes<A>(code, a, b, answers);
            memcpy(r, answers, sizeof r);
        } else {
            ComputeType<A> a[Access::count];
            ComputeType<B> b[Access::count];
            read_both_as<A, B>(access, a, b);
            apply_comparison(code, a, b, r);
        }
        access.write(r);
    }
};

bool is_comparison(const Operation &operation) { return operation.gives == Gives::boolean; }

// A comparison of which an operand beyond the other's range tells all.
bool is_ordering(const Operation &operation) {
    return is_comparison(operation) && operation.code <= PVG_GREATER_EQUAL;
}

// Operands are NULL (the scalar) or have the dtype.
int launch_binary(Call &call, const Operation &operation, int dtype, pvg_array *out,
                  const pvg_array *a, const pvg_array *b, const Scalar *scalar) {
    if (is_among(dtype, complexes))
        return launch_complex_binary(call, operation, dtype, out, a, b, scalar);
    if (is_binary_function(operation.code))
        return launch_binary_function(call, operation, dtype, out, a, b, scalar);
    return dispatch<ordered>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if (is_comparison(operation))
            return launch_map(call, Comparison<T, T>{operation.code}, out, {a, b}, scalar);
        return launch_map(call, Binary<T>{operation.code}, out, {a, b}, scalar);
    });
}

bool are_int64_and_uint64(const pvg_array *a, const pvg_array *b) {
    return (a->dtype == PVG_INT64 && b->dtype == PVG_UINT64) ||
           (a->dtype == PVG_UINT64 && b->dtype == PVG_INT64);
}

// Opens the result for two operands that have been converted. Errors: VALUE.
int open_broadcast(Call &call, int dtype, const pvg_array **operands, pvg_array *out,
                   Temporary *straight, Output *result) {
    const pvg_array *a = operands[0], *b = operands[1];
    if (same_shape(a, b->ndim, b->shape))
        return open_elementwise(call, dtype, a->ndim, a->shape, out, operands, 2, straight, result);
    int ndim = 0;
    int64_t shape[PVG_MAX_NDIM];
    PVG_PASS(broadcast_shapes(operands, 2, &ndim, shape));
    return open_elementwise(call, dtype, ndim, shape, out, operands, 2, straight, result);
}

int run_binary(Call &call, int code, const Operation *operation, const pvg_array *a,
               const pvg_array *b, pvg_array *out, Output *result) {
    PVG_REQUIRE(operation, PVG_ERROR_VALUE, "unknown operation code %d", code);
    const pvg_array *operands[2] = {a, b};
    int device = -1;
    PVG_PASS(check_operands(operands, 2, &device));
    int dtype = promote(a->dtype, b->dtype);
    PVG_PASS(check_domain(*operation, dtype, operands, 2));
    const Dtypes dtypes = dtypes_of(*operation, dtype);
    PVG_PASS(call.begin(device));
    bool exact = is_comparison(*operation) && are_int64_and_uint64(a, b);
    Temporary converted[2], straight[2];
    const bool quotient = is_quotient(code, dtypes, a, b);
    for (int k = 0; k < 2 && !exact && !quotient; k++)
        PVG_PASS(as_dtype(call, operands[k], dtypes.computed, &converted[k], &operands[k]));
    PVG_PASS(open_broadcast(call, dtypes.result, operands, out, straight, result));
    a = operands[0], b = operands[1];
    if (quotient) return launch_map(call, Quotient{{a->dtype, b->dtype}}, result->array, {a, b});
    if (!exact)
        return launch_binary(call, *operation, dtypes.computed, result->array, a, b, nullptr);
    using Exact = Comparison<int64_t, uint64_t>;
    if (a->dtype == PVG_INT64) return launch_map(call, Exact{code}, result->array, {a, b});
    return launch_map(call, Exact{operation->mirrored}, result->array, {b, a});
}

// A comparison with an integer that the array's dtype cannot hold: the same answer for every
// element. `above`: the integer is larger than any element.
int compare_out_of_range(Call &call, int code, const pvg_array *a, bool above, pvg_array *out,
                         Output *result) {
    clear_error();
    bool answer =
        code == PVG_NOT_EQUAL || (above ? code == PVG_LESS || code == PVG_LESS_EQUAL
                                        : code == PVG_GREATER || code == PVG_GREATER_EQUAL);
    PVG_PASS(result->open(call, PVG_BOOL, a->ndim, a->shape, out, &a, 1));
    const uint8_t value = answer;
    return fill_array(call, result->array, PVG_SCALAR_BOOL, &value);
}

bool is_negative(int kind, const void *value) {
    return kind == PVG_SCALAR_INT && *static_cast<const int64_t *>(value) < 0;
}

int run_binary_scalar(Call &call, int code, const Operation *operation, const pvg_array *a,
                      int kind, const void *value, int side, pvg_array *out, Output *result) {
    PVG_REQUIRE(operation, PVG_ERROR_VALUE, "unknown operation code %d", code);
    PVG_REQUIRE(side == 0 || side == 1, PVG_ERROR_VALUE, "side is 0 or 1, got %d", side);
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    int dtype = promote_scalar(a->dtype, kind);
    PVG_PASS(check_domain(*operation, dtype, &a, 1));
    const Dtypes dtypes = dtypes_of(*operation, dtype);
    PVG_PASS(call.begin(device));
    Scalar scalar;
    int status = make_scalar(dtypes.computed, kind, value, &scalar);
    if (status == PVG_ERROR_OVERFLOW && is_ordering(*operation)) {
        int as_right = side == 1 ? code : operation->mirrored;
        return compare_out_of_range(call, as_right, a, !is_negative(kind, value), out, result);
    }
    PVG_PASS(status);
    Temporary converted, straight;
    const bool quotient = is_quotient(code, dtypes, a, a);
    if (!quotient) PVG_PASS(as_dtype(call, a, dtypes.computed, &converted, &a));
    PVG_PASS(
        open_elementwise(call, dtypes.result, a->ndim, a->shape, out, &a, 1, &straight, result));
    const pvg_array *left = side == 1 ? a : nullptr, *right = side == 1 ? nullptr : a;
    if (quotient) {
        const int from[2] = {left ? a->dtype : PVG_FLOAT32, right ? a->dtype : PVG_FLOAT32};
        return launch_map(call, Quotient{{from[0], from[1]}}, result->array, {left, right},
                          &scalar);
    }
    return launch_binary(call, *operation, dtypes.computed, result->array, left, right, &scalar);
}

} // namespace

} // namespace pvg

PVG_API pvg_array *pvg_binary(int code, const pvg_array *a, const pvg_array *b, pvg_array *out) {
    const pvg::Operation *operation = pvg::binary_operations().find(code);
    pvg::Call call(operation ? operation->name : "binary");
    pvg::Output result;
    int status = pvg::run_binary(call, code, operation, a, b, out, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_binary_scalar(int code, const pvg_array *a, int kind, const void *value,
                                     int side, pvg_array *out) {
    const pvg::Operation *operation = pvg::binary_operations().find(code);
    pvg::Call call(operation ? operation->name : "binary_scalar");
    pvg::Output result;
    int status = pvg::run_binary_scalar(call, code, operation, a, kind, value, side, out, &result);
    return result.close(call, status);
}
