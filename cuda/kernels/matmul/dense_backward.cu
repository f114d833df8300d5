// The backward pass of a layer y = activation(z), z = x @ weight.T + bias: pvg_dense_backward.
//
//     dz = gradient * activation'(z)      one kernel, which also adds up
//     dbias = sum of dz over the rows     what the bias gradient needs, while dz passes by
//     dx = dz @ weight                    products
//     dweight = dz.T @ x
//
// Deterministic: a block adds up all rows of some columns if they are few, else `chunk` rows, and
// then a second kernel the blocks' sums in order; both in double.
#include "arrays/copy.cuh"
#include "kernels/matmul/dense.cuh"
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/epilogue.cuh"

namespace pvg {
namespace {

constexpr int lanes = 32, warps = 8, rows_at_once = 4;
constexpr int64_t chunk = 64, whole = 256; // rows of a block; so many are not cut into chunks

// dz = gradient * activation'(z) and sums[chunk][n] of it, or dbias of a single chunk. No z: dz =
// gradient, only the sums. No sums: null pointers.
template <class T>
__global__ void __launch_bounds__(lanes *warps)
    slope_kernel(const T *gradient, const T *z, T *dz, double *sums, T *dbias, int64_t m, int64_t n,
                 int64_t rows, int64_t blocks_across, int activation) {
    __shared__ double shared[warps][lanes];
    const int lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
    const int64_t block = blockIdx.x / blocks_across;
    const int64_t column = blockIdx.x % blocks_across * lanes + lane;
    const int64_t end = (block + 1) * rows < m ? (block + 1) * rows : m;
    double sum = 0;
    for (int64_t row = block * rows + warp; row < end; row += rows_at_once * warps) {
        T values[rows_at_once], before[rows_at_once];
#pragma unroll
        for (int j = 0; j < rows_at_once; j++) {
            const int64_t at = (row + j * warps) * n + column;
            const bool there = row + j * warps < end && column < n;
            values[j] = there ? gradient[at] : T(0);
            before[j] = there && z ? z[at] : T(0);
        }
#pragma unroll
        for (int j = 0; j < rows_at_once; j++) {
            if (row + j * warps >= end || column >= n) continue;
            if (z) {
                values[j] = matmul::gradient_before(activation, values[j], before[j]);
                dz[(row + j * warps) * n + column] = values[j];
            }
            sum += static_cast<double>(matmul::widen(values[j]));
        }
    }
    if (!sums && !dbias) return;
    shared[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || column >= n) return;
    for (int w = 1; w < warps; w++) sum += shared[w][lane];
    if (dbias)
        dbias[column] = static_cast<T>(sum);
    else
        sums[block * n + column] = sum;
}

template <class T>
__global__ void __launch_bounds__(lanes *warps)
    bias_kernel(const double *sums, T *dbias, int64_t chunks, int64_t n) {
    __shared__ double shared[warps][lanes];
    int lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
    int64_t column = static_cast<int64_t>(blockIdx.x) * lanes + lane;
    double sum = 0;
    if (column < n)
        for (int64_t c = warp; c < chunks; c += warps) sum += sums[c * n + column];
    shared[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || column >= n) return;
    for (int w = 1; w < warps; w++) sum += shared[w][lane];
    dbias[column] = static_cast<T>(sum);
}

struct BackwardLayer {
    const pvg_array *gradient, *x, *weight, *preactivation;
    int activation, precision;
    pvg_array **results[3]; // dx, dweight, dbias
};

int check_backward(const BackwardLayer &layer) {
    const pvg_array *gradient = layer.gradient, *x = layer.x, *weight = layer.weight;
    for (const pvg_array *a : {gradient, x, weight, layer.preactivation})
        PVG_REQUIRE(!a || dtype_kind(a->dtype) == Kind::floating, PVG_ERROR_TYPE,
                    "takes a float dtype, got %s", dtype_name(a->dtype));
    PVG_REQUIRE(weight->ndim == 2 && x->ndim > 0 && x->shape[x->ndim - 1] == weight->shape[1],
                PVG_ERROR_VALUE, "x of shape %s does not fit weight of shape %s (out, in)",
                shape_text(x), shape_text(weight));
    bool fits = gradient->ndim == x->ndim && gradient->shape[x->ndim - 1] == weight->shape[0];
    for (int i = 0; fits && i < x->ndim - 1; i++) fits = gradient->shape[i] == x->shape[i];
    PVG_REQUIRE(fits, PVG_ERROR_VALUE,
                "gradient of shape %s does not fit x of shape %s and weight of shape %s (out, in)",
                shape_text(gradient), shape_text(x), shape_text(weight));
    PVG_REQUIRE(layer.activation == PVG_NONE || layer.preactivation, PVG_ERROR_VALUE,
                "an activation needs the preactivation");
    PVG_REQUIRE(!layer.preactivation ||
                    same_shape(layer.preactivation, gradient->ndim, gradient->shape),
                PVG_ERROR_VALUE, "preactivation has shape %s, gradient %s",
                shape_text(layer.preactivation), shape_text(gradient));
    return PVG_OK;
}

// dz, which `gradient` itself may be, and the bias gradient if it is wanted (or NULL).
int launch_slope(Call &call, const LayerRows &gradient, const pvg_array *z, int activation,
                 pvg_array *dz, pvg_array *dbias) {
    const int64_t m = gradient.array->shape[0], n = gradient.array->shape[1];
    const int64_t rows = m <= whole ? whole : chunk;
    const int64_t chunks = matmul::tiles(m, rows), across = matmul::tiles(n, lanes);
    const bool one = dbias && m <= whole;
    Workspace sums;
    if (dbias && !one) PVG_PASS(sums.open(call, static_cast<size_t>(chunks * n) * sizeof(double)));
    PVG_PASS(call.reads(gradient.array));
    if (z) PVG_PASS(call.reads(z));
    return dispatch<floats>(gradient.array->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        double *partial = dbias && !one ? sums.as<double>() : nullptr;
        if (z || dbias)
            PVG_LAUNCH(slope_kernel<T>, blocks_for(chunks * across, 1), lanes * warps, 0,
                       call.stream, data<T>(gradient.array), z ? data<T>(z) : nullptr,
                       dz ? data<T>(dz) : nullptr, partial, one ? data<T>(dbias) : nullptr, m, n,
                       rows, across, activation);
        if (partial)
            PVG_LAUNCH(bias_kernel<T>, blocks_for(n, lanes), lanes * warps, 0, call.stream, partial,
                       data<T>(dbias), chunks, n);
        return PVG_OK;
    });
}

int launch_backward(Call &call, const BackwardLayer &layer, int dtype, pvg_array *const *results) {
    LayerRows gradient, x, z;
    Temporary weight, dz;
    const pvg_array *w, *slopes;
    PVG_PASS(gradient.open(call, layer.gradient, dtype));
    PVG_PASS(x.open(call, layer.x, dtype));
    PVG_PASS(as_dtype(call, layer.weight, dtype, &weight, &w));
    slopes = gradient.array;
    if (layer.activation != PVG_NONE) {
        PVG_PASS(z.open(call, layer.preactivation, dtype));
        PVG_PASS(new_array(call.device, dtype, 2, gradient.array->shape, &dz.array));
        slopes = dz.array;
    }
    PVG_PASS(launch_slope(call, gradient, z.array, layer.activation, dz.array, results[2]));
    if (results[0]) {
        LayerRows dx; // contiguous: a view
        PVG_PASS(dx.open(call, results[0], dtype));
        PVG_PASS(multiply(call, slopes, 0, w, 1, layer.precision, {}, dx.flat.array));
    }
    if (results[1])
        PVG_PASS(multiply(call, slopes, 1, x.array, 1, layer.precision, {}, results[1]));
    return PVG_OK;
}

int run_backward(Call &call, BackwardLayer layer) {
    const pvg_array *operands[] = {layer.gradient, layer.x, layer.weight};
    int device;
    PVG_PASS(check_operands(operands, 3, &device));
    if (layer.preactivation) {
        const pvg_array *both[] = {layer.gradient, layer.preactivation};
        PVG_PASS(check_operands(both, 2, &device));
    }
    PVG_PASS(check_activation(layer.activation));
    PVG_PASS(check_backward(layer));
    PVG_PASS(matmul::check_precision(&layer.precision));
    int dtype = promote(promote(layer.gradient->dtype, layer.x->dtype), layer.weight->dtype);
    PVG_PASS(call.begin(device));
    const pvg_array *like[] = {layer.x, layer.weight};
    Temporary made[3];
    pvg_array *results[3] = {};
    for (int i = 0; i < 3; i++) {
        if (!layer.results[i]) continue;
        int ndim = i < 2 ? like[i]->ndim : 1;
        const int64_t *shape = i < 2 ? like[i]->shape : layer.weight->shape;
        PVG_PASS(new_array(device, dtype, ndim, shape, &made[i].array));
        results[i] = made[i].array;
    }
    if (layer.gradient->size == 0) {
        const double zero = 0;
        for (pvg_array *result : results)
            if (result) PVG_PASS(fill_array(call, result, PVG_SCALAR_FLOAT, &zero));
    } else {
        PVG_PASS(launch_backward(call, layer, dtype, results));
    }
    for (int i = 0; i < 3; i++)
        if (layer.results[i]) *layer.results[i] = made[i].take();
    return PVG_OK;
}

} // namespace
} // namespace pvg

PVG_API int pvg_dense_backward(const pvg_array *gradient, const pvg_array *x,
                               const pvg_array *weight, const pvg_array *preactivation,
                               int activation, int precision, pvg_array **dx, pvg_array **dweight,
                               pvg_array **dbias) {
    pvg::Call call("dense_backward");
    return pvg::run_backward(
        call, {gradient, x, weight, preactivation, activation, precision, {dx, dweight, dbias}});
}
