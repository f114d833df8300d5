// Views of parts, and casts from and to complex dtypes; see complex.cuh.
#include "arrays/complex.cuh"
#include "arrays/map.cuh"
#include <string.h>

namespace pvg {

namespace {

// The array in the dtype of its parts, all strides counted in these.
int as_reals(const pvg_array *a, int ndim, const int64_t *shape, const int64_t *strides,
             pvg_array **result) {
    pvg_array *view = nullptr;
    PVG_PASS(new_view(a, ndim, shape, strides, 0, false, &view));
    view->dtype = real_dtype(a->dtype);
    *result = view;
    return PVG_OK;
}

void double_strides(const pvg_array *a, int64_t *strides) {
    for (int i = 0; i < a->ndim; i++) strides[i] = 2 * a->strides[i];
}

template <class From, class To> struct Convert {
    static constexpr int inputs = 1;
    static constexpr int vector = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        From x[Access::count];
        To r[Access::count];
        access.read(0, x);
#pragma unroll
        for (int e = 0; e < Access::count; e++) {
            if constexpr (is_bool<To>)
                r[e] = To(x[e] != From(0)); // NaN is true
            else
                r[e] = To(x[e]);
        }
        access.write(r);
    }
};

// From the other complex dtype, or from the parts' one.
template <class To> int widen(Call &call, const pvg_array *source, pvg_array *destination) {
    using Other = std::conditional_t<sizeof(To) == 8, Complex<double>, Complex<float>>;
    if (dtype_kind(source->dtype) == Kind::complex)
        return launch_map(call, Convert<Other, To>(), destination, {source});
    Temporary real;
    PVG_PASS(as_dtype(call, source, real_dtype(destination->dtype), &real, &source));
    return launch_map(call, Convert<typename To::Real, To>(), destination, {source});
}

} // namespace

int part_view(const pvg_array *a, bool imaginary, pvg_array **result) {
    int64_t strides[PVG_MAX_NDIM];
    double_strides(a, strides);
    PVG_PASS(as_reals(a, a->ndim, a->shape, strides, result));
    if (imaginary && a->size > 0) (*result)->data += dtype_size((*result)->dtype);
    return PVG_OK;
}

int parts_view(const pvg_array *a, pvg_array **result) {
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    PVG_REQUIRE(a->ndim < PVG_MAX_NDIM, PVG_ERROR_VALUE, "too many dimensions: %d", a->ndim);
    memcpy(shape, a->shape, sizeof shape);
    double_strides(a, strides);
    shape[a->ndim] = 2, strides[a->ndim] = 1;
    return as_reals(a, a->ndim + 1, shape, strides, result);
}

int interleaved_view(const pvg_array *a, pvg_array **result) {
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    const int last = a->ndim - 1;
    memcpy(shape, a->shape, sizeof shape);
    double_strides(a, strides);
    shape[last] *= 2, strides[last] = 1;
    return as_reals(a, a->ndim, shape, strides, result);
}

int check_castable(int from, int to) {
    PVG_REQUIRE(!is_among(from, complexes) || is_among(to, complexes | booleans), PVG_ERROR_TYPE,
                "complex numbers have no cast from %s to %s: take their real parts, or abs",
                dtype_name(from), dtype_name(to));
    return PVG_OK;
}

int cast_complex(Call &call, const pvg_array *source, pvg_array *destination) {
    if (dtype_kind(destination->dtype) == Kind::complex)
        return dispatch<complexes>(destination->dtype, [&](auto tag) {
            return widen<typename decltype(tag)::type>(call, source, destination);
        });
    return dispatch<complexes>(source->dtype, [&](auto tag) {
        using From = typename decltype(tag)::type;
        return launch_map(call, Convert<From, Bool>(), destination, {source});
    });
}

static int part(const pvg_array *a, int imaginary, pvg_array **result) {
    PVG_PASS(check_array(a, "a"));
    PVG_PASS(check_kinds(a->dtype, complexes));
    PVG_REQUIRE(imaginary == 0 || imaginary == 1, PVG_ERROR_VALUE, "imaginary is 0 or 1, got %d",
                imaginary);
    return part_view(a, imaginary != 0, result);
}

} // namespace pvg

PVG_API pvg_array *pvg_part(const pvg_array *a, int imaginary) {
    pvg::Call call("part");
    pvg_array *result = nullptr;
    return pvg::part(a, imaginary, &result) == PVG_OK ? result : nullptr;
}
