// pvg_clip and pvg_within: elements within bounds, read once and written once.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "arrays/operation.cuh"
#include "kernels/elementwise.cuh"

namespace pvg {

namespace {

template <class T> struct Clip {
    static constexpr int inputs = 1, vector = 16 / sizeof(T);
    T low, high;
    bool has_low, has_high;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        using A = ComputeType<T>;
        A x[Access::count];
        read_as<T>(access, 0, x);
        const A least = static_cast<A>(low), most = static_cast<A>(high);
#pragma unroll
        for (int e = 0; e < Access::count; e++) {
            if (has_low) x[e] = maximum(x[e], least);
            if (has_high) x[e] = minimum(x[e], most);
        }
        write_as<T>(access, x);
    }
};

int run_clip(Call &call, const pvg_array *a, int kind, const void *low, const void *high,
             pvg_array *out, Output *result) {
    Scalar bounds[2] = {};
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_kinds(a->dtype, reals));
    if (low) PVG_PASS(make_scalar(a->dtype, kind, low, &bounds[0]));
    if (high) PVG_PASS(make_scalar(a->dtype, kind, high, &bounds[1]));
    PVG_REQUIRE((!low && !high) || promote_scalar(a->dtype, kind) == a->dtype, PVG_ERROR_TYPE,
                "cannot keep %s within bounds of another kind", dtype_name(a->dtype));
    PVG_PASS(call.begin(device));
    Temporary straight;
    PVG_PASS(open_elementwise(call, a->dtype, a->ndim, a->shape, out, &a, 1, &straight, result));
    return dispatch<reals>(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const Clip<T> clip = {bounds[0].as<T>(), bounds[1].as<T>(), low != nullptr,
                              high != nullptr};
        return launch_map(call, clip, result->array, {a});
    });
}

template <class T> struct Within {
    static constexpr int inputs = 3, vector = 16 / sizeof(T);

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        using A = ComputeType<T>;
        A x[Access::count], low[Access::count], high[Access::count];
        read_as<T>(access, 0, x);
        read_as<T>(access, 1, low);
        read_as<T>(access, 2, high);
#pragma unroll
        for (int e = 0; e < Access::count; e++) x[e] = minimum(maximum(x[e], low[e]), high[e]);
        write_as<T>(access, x);
    }
};

int run_within(Call &call, const pvg_array *a, const pvg_array *low, const pvg_array *high,
               pvg_array *out, Output *result) {
    const pvg_array *operands[3] = {a, low, high};
    int device = -1, ndim = 0;
    int64_t shape[PVG_MAX_NDIM];
    PVG_PASS(check_operands(operands, 3, &device));
    const int dtype = a->dtype;
    PVG_PASS(check_kinds(dtype, reals));
    for (const pvg_array *bound : {low, high})
        PVG_REQUIRE(bound->dtype == dtype, PVG_ERROR_TYPE, "bounds of %s for an array of %s",
                    dtype_name(bound->dtype), dtype_name(dtype));
    PVG_PASS(broadcast_shapes(operands, 3, &ndim, shape));
    PVG_PASS(call.begin(device));
    Temporary straight[3];
    PVG_PASS(open_elementwise(call, dtype, ndim, shape, out, operands, 3, straight, result));
    return dispatch<reals>(dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return launch_map(call, Within<T>{}, result->array,
                          {operands[0], operands[1], operands[2]});
    });
}

} // namespace

Operations clip_operations() {
    static constexpr Operation rows[] = {
        {PVG_CLIP, "clip", Family::other, reals, Gives::same},
        {PVG_WITHIN, "within", Family::other, reals, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_clip(const pvg_array *a, int kind, const void *low, const void *high,
                            pvg_array *out) {
    pvg::Call call("clip");
    pvg::Output result;
    int status = pvg::run_clip(call, a, kind, low, high, out, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_within(const pvg_array *a, const pvg_array *low, const pvg_array *high,
                              pvg_array *out) {
    pvg::Call call("within");
    pvg::Output result;
    int status = pvg::run_within(call, a, low, high, out, &result);
    return result.close(call, status);
}
