// pvg_copy, pvg_cast and pvg_fill. Copies within a dtype move elements by their size, one kernel
// per size and access pattern (map.cuh), or through transpose.cu; a fill is a copy of a kernel
// parameter. Casts are one kernel per destination dtype, the source dtype a run-time code.
#include "arrays/complex.cuh"
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "arrays/operation.cuh"
#include <limits>
#include <string.h>

namespace pvg {

namespace {

template <class T> struct Copy {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T x[Access::count];
        access.read(0, x);
        access.write(x);
    }
};

// Elements are only moved: a kernel for each size of element and access pattern.
template <class T> struct Where {
    static constexpr int inputs = 3, vector = 16 / sizeof(T);

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        Bool mask[Access::count];
        T a[Access::count], b[Access::count];
        access.read(0, mask);
        access.read(1, a);
        access.read(2, b);
#pragma unroll
        for (int e = 0; e < Access::count; e++) a[e] = bool(mask[e]) ? a[e] : b[e];
        access.write(a);
    }
};

template <class T> constexpr T lowest = std::numeric_limits<T>::min();
template <class T> constexpr T highest = std::numeric_limits<T>::max();

// Toward zero and clamped to the range; NaN gives 0. The bounds are powers of two, so exact.
template <class T, class Float> __device__ __forceinline__ T to_integer(Float x) {
    constexpr Float low = static_cast<Float>(lowest<T>);
    constexpr Float above = static_cast<Float>(highest<T> / 2 + 1) * 2;
    if (x != x) return 0;
    if (x <= low) return lowest<T>;
    return x >= above ? highest<T> : static_cast<T>(x);
}

template <class T, class From> __device__ __forceinline__ T convert(From x) {
    if constexpr (is_bool<From>)
        return static_cast<T>(bool(x));
    else if constexpr (is_bool<T>)
        return T(x != 0); // NaN is true
    else if constexpr (is_float<From> && is_integer<T>)
        return to_integer<T>(x);
    else
        return static_cast<T>(x);
}

// Reads by the size of an element, converts by its dtype, and writes once: so the code for each of
// the many dtypes is the conversion alone. Elements of 8 bytes need twice the registers of others.
template <class T> struct Cast {
    static constexpr int inputs = 1, vector = sizeof(T) == 1 ? 8 : 16 / sizeof(T);
    int from, item; // the source's dtype, and the bytes of its elements

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        T result[Access::count] = {};
        if (item == 8) {
            uint64_t bits[Access::count];
            access.read(0, bits);
            convert_all(bits, result);
        } else {
            uint32_t bits[Access::count];
            switch (item) {
            case 1: read_bits<uint8_t>(access, bits); break;
            case 2: read_bits<uint16_t>(access, bits); break;
            default: access.read(0, bits);
            }
            convert_all(bits, result);
        }
        access.write(result);
    }

private:
    template <class Word, class Access>
    static __device__ __forceinline__ void read_bits(const Access &access,
                                                     uint32_t (&bits)[Access::count]) {
        Word words[Access::count];
        access.read(0, words);
#pragma unroll
        for (int e = 0; e < Access::count; e++) bits[e] = words[e];
    }
    // Bits: of 8 bytes, or those of 4 and less.
    template <class Bits, int N>
    __device__ __forceinline__ void convert_all(const Bits (&bits)[N], T (&result)[N]) const {
        switch (from) {
#define PVG_CASE(NAME, code, name, From, computed, kind)                               \
    case PVG_##NAME:                                                                   \
        if constexpr (!is_complex<From> && (sizeof(From) == 8) == (sizeof(Bits) == 8)) \
            convert_bits<From>(bits, result);                                          \
        break;
            PVG_PRESENT_DTYPES(PVG_CASE)
#undef PVG_CASE
        }
    }
    template <class From, class Bits, int N>
    static __device__ __forceinline__ void convert_bits(const Bits (&bits)[N], T (&result)[N]) {
        static_assert(sizeof(From) <= sizeof(Bits), "bits of one element");
#pragma unroll
        for (int e = 0; e < N; e++) {
            From x;
            memcpy(&x, &bits[e], sizeof x); // the low bytes
            result[e] = convert<T>(static_cast<ComputeType<From>>(x));
        }
    }
};

// Sets *leading to the source's leading axes of length 1 that the destination lacks.
// Errors: VALUE if the source cannot be broadcast to the destination.
int check_assignable(const pvg_array *source, const pvg_array *destination, int *leading) {
    *leading = source->ndim > destination->ndim ? source->ndim - destination->ndim : 0;
    bool fits = true;
    for (int i = 0; i < source->ndim; i++) {
        int j = i + destination->ndim - source->ndim;
        fits = fits &&
               (source->shape[i] == 1 || (j >= 0 && source->shape[i] == destination->shape[j]));
    }
    PVG_REQUIRE(fits, PVG_ERROR_VALUE, "an array of shape %s cannot be broadcast to shape %s",
                shape_text(source), shape_text(destination));
    return PVG_OK;
}

int run_copy(Call &call, const pvg_array *source, pvg_array *destination) {
    const pvg_array *operands[2] = {source, destination};
    int device = -1, leading = 0;
    PVG_PASS(check_operands(operands, 2, &device));
    PVG_REQUIRE(!destination->readonly, PVG_ERROR_VALUE,
                "the destination of shape %s and dtype %s is read-only", shape_text(destination),
                dtype_name(destination->dtype));
    PVG_PASS(check_assignable(source, destination, &leading));
    PVG_PASS(call.begin(device));
    if (leading == 0) return copy_array(call, source, destination);
    Temporary view;
    PVG_PASS(new_view(source, source->ndim - leading, source->shape + leading,
                      source->strides + leading, 0, source->readonly, &view.array));
    return copy_array(call, view.array, destination);
}

int run_cast(Call &call, const pvg_array *a, int dtype, pvg_array *out, Output *result) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    if (dtype == -1) dtype = a->dtype;
    PVG_PASS(check_kinds(dtype, all_kinds));
    PVG_PASS(check_castable(a->dtype, dtype));
    PVG_PASS(call.begin(device));
    Temporary straight;
    if (dtype == a->dtype) // a copy, in C order
        PVG_PASS(result->open(call, dtype, a->ndim, a->shape, out, &a, 1));
    else
        PVG_PASS(open_elementwise(call, dtype, a->ndim, a->shape, out, &a, 1, &straight, result));
    return copy_array(call, a, result->array);
}

int run_fill(Call &call, pvg_array *array, int kind, const void *value) {
    const pvg_array *operand = array;
    Scalar scalar;
    int device = -1;
    PVG_PASS(check_operands(&operand, 1, &device));
    PVG_PASS(make_scalar(array->dtype, kind, value, &scalar)); // of two mistakes the value's
    PVG_REQUIRE(!array->readonly, PVG_ERROR_VALUE,
                "the array of shape %s and dtype %s is read-only", shape_text(array),
                dtype_name(array->dtype));
    PVG_PASS(call.begin(device));
    return fill_array(call, array, kind, value);
}

} // namespace

int fill_array(Call &call, pvg_array *array, int kind, const void *value) {
    Scalar scalar;
    PVG_PASS(make_scalar(array->dtype, kind, value, &scalar));
    PVG_PASS(call.writes(array));
    return dispatch_size(array->dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(call, Copy<T>{}, array, {nullptr}, &scalar);
    });
}

int fill_where(Call &call, pvg_array *array, const pvg_array *mask, const Scalar &scalar) {
    Temporary copied;
    if (!safe_in_place(mask, array->ndim, array->shape, array)) {
        PVG_PASS(new_array(call.device, mask->dtype, mask->ndim, mask->shape, &copied.array));
        PVG_PASS(copy_array(call, mask, copied.array));
        mask = copied.array;
    }
    PVG_PASS(call.writes(array));
    return select_where(call, array, mask, nullptr, array, &scalar);
}

int select_where(Call &call, pvg_array *to, const pvg_array *mask, const pvg_array *a,
                 const pvg_array *b, const Scalar *scalar) {
    return dispatch_size(to->dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(call, Where<T>{}, to, {mask, a, b}, scalar);
    });
}

// True if all operands of the result's shape lie alike: as `out` does, or, if that is NULL, densely
// in an order of the axes other than C's. `strides` are theirs.
static bool lie_alike(const pvg_array *const *operands, int n, int ndim, const int64_t *shape,
                      const pvg_array *out, int64_t *strides) {
    const pvg_array *first = out;
    if (out && !(is_array(out) && same_shape(out, ndim, shape))) return false;
    for (int k = 0; k < n; k++) {
        if (!same_shape(operands[k], ndim, shape)) continue;
        if (!first) first = operands[k];
        for (int i = 0; i < ndim; i++)
            if (shape[i] != 1 && operands[k]->strides[i] != first->strides[i]) return false;
    }
    if (!first || out || is_contiguous(first)) return out != nullptr;
    Walk<1> walk;
    walk.ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        walk.shape[i] = shape[i];
        walk.strides[0][i] = strides[i] = first->strides[i];
    }
    collapse(&walk);
    return walk.ndim == 1 && walk.strides[0][0] == 1;
}

int copy_array(Call &call, const pvg_array *source, pvg_array *destination) {
    PVG_PASS(check_castable(source->dtype, destination->dtype));
    if (destination->size == 0) return PVG_OK;
    Temporary copied, straight;
    if (!safe_in_place(source, destination->ndim, destination->shape, destination)) {
        PVG_PASS(new_array(call.device, source->dtype, source->ndim, source->shape, &copied.array));
        PVG_PASS(copy_array(call, source, copied.array));
        source = copied.array;
    }
    if (source->dtype != destination->dtype) {
        int64_t strides[PVG_MAX_NDIM];
        const int ndim = destination->ndim;
        if (!same_shape(source, ndim, destination->shape) ||
            !lie_alike(&source, 1, ndim, destination->shape, destination, strides))
            PVG_PASS(as_readable(call, source, &straight, &source));
        PVG_PASS(call.writes(destination));
        if (is_among(source->dtype, complexes) || is_among(destination->dtype, complexes))
            return cast_complex(call, source, destination);
        const int item = static_cast<int>(dtype_size(source->dtype));
        return dispatch<ordered>(destination->dtype, [&](auto tag) {
            using T = typename decltype(tag)::type;
            return launch_map(call, Cast<T>{source->dtype, item}, destination, {source});
        });
    }
    PVG_PASS(call.writes(destination));
    bool done = false;
    PVG_PASS(copy_transposed(call, source, destination, &done));
    if (done) return PVG_OK;
    return dispatch_size(source->dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return launch_map(call, Copy<T>{}, destination, {source});
    });
}

namespace {

// Whether elements `stride` apart are read as fast as if they were neighbours: their sectors of
// memory, of 32 bytes, stay in a cache until the next row of the result, `inner` elements on, reads
// the rest of them. Small elements have more of a row in flight: lines that are a multiple of 1 KiB
// apart take each other's place then, and of single bytes a copy by vectors is faster.
bool caches_keep(size_t item, int64_t stride, int64_t inner) {
    constexpr int64_t most = 1 << 17, conflict = 1 << 10, vector = 4;
    if (inner > most) return false;
    return item == 1 ? stride % vector != 0 : item > 2 || stride * 2 % conflict != 0;
}

} // namespace

int as_readable(Call &call, const pvg_array *a, Temporary *holder, const pvg_array **result) {
    constexpr int64_t large = 3 << 18, long_axis = 16; // fewer are read as fast as they lie
    *result = a;
    if (a->size < large) return PVG_OK;
    int last = -1;
    int64_t inner = 1; // inside of the axis along memory
    bool repeated = false, transposed = false;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] == 1) continue;
        const bool along = a->strides[i] == 1 && a->shape[i] >= long_axis;
        inner = along ? 1 : inner * a->shape[i];
        repeated = repeated || a->strides[i] == 0;
        transposed = transposed || along;
        last = i;
    }
    if (repeated || !transposed || a->strides[last] == 1 || a->shape[last] < long_axis)
        return PVG_OK;
    if (caches_keep(dtype_size(a->dtype), a->strides[last], inner)) return PVG_OK;
    return as_contiguous(call, a, holder, result);
}

int open_elementwise(Call &call, int dtype, int ndim, const int64_t *shape, pvg_array *out,
                     const pvg_array **operands, int n, Temporary *straight, Output *result) {
    int64_t strides[PVG_MAX_NDIM];
    const bool alike = lie_alike(operands, n, ndim, shape, out, strides);
    for (int k = 0; k < n; k++)
        if (!alike || !same_shape(operands[k], ndim, shape))
            PVG_PASS(as_readable(call, operands[k], &straight[k], &operands[k]));
    PVG_PASS(result->open(call, dtype, ndim, shape, out, operands, n));
    if (alike && !out)
        for (int i = 0; i < ndim; i++) result->array->strides[i] = strides[i];
    return PVG_OK;
}

Operations copy_operations() {
    static constexpr Operation rows[] = {
        {PVG_FILL, "fill", Family::other, all_kinds, Gives::none},
        {PVG_COPY, "copy", Family::other, all_kinds, Gives::none},
        {PVG_CAST, "cast", Family::other, all_kinds, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API int pvg_copy(const pvg_array *source, pvg_array *destination) {
    pvg::Call call("copy");
    return pvg::run_copy(call, source, destination);
}

PVG_API pvg_array *pvg_cast(const pvg_array *a, int dtype, pvg_array *out) {
    pvg::Call call("cast");
    pvg::Output result;
    int status = pvg::run_cast(call, a, dtype, out, &result);
    return result.close(call, status);
}

PVG_API int pvg_fill(pvg_array *array, int kind, const void *value) {
    pvg::Call call("fill");
    return pvg::run_fill(call, array, kind, value);
}
