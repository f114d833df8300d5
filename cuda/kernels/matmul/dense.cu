// One layer of a network in one launch: pvg_dense, activation(x @ weight.T + bias). It is the tiled
// product of tile.cuh with bias and activation applied to the finished sums in registers; the
// formulas are those of pvg_unary.
#include "kernels/elementwise.cuh"
#include "kernels/matmul/operands.cuh"

namespace pvg {
namespace {

using matmul::group, matmul::Matrix, matmul::Pack, matmul::Product;

// Not inlined: once in the kernel instead of once for each element of a microtile.
template <class T>
__device__ __attribute__((noinline)) Pack<T, group> activate(Pack<T, group> x, int activation) {
    for (T &value : x.values) {
        if (activation == PVG_ACTIVATION_SIGMOID) value = sigmoid(value);
        if (activation == PVG_ACTIVATION_TANH) value = hyperbolic_tangent(value);
        if (activation == PVG_ACTIVATION_RELU) value = relu(value);
    }
    return x;
}

// The epilogue of a layer. No bias: a null pointer.
template <class T> struct Layer {
    const T *bias;
    int64_t bias_stride;
    int activation;

    __device__ void operator()(T (&values)[group], int64_t column, int count) const {
        Pack<T, group> x;
#pragma unroll
        for (int j = 0; j < group; j++)
            x.values[j] =
                bias && j < count ? values[j] + bias[(column + j) * bias_stride] : values[j];
        if (activation != PVG_ACTIVATION_NONE) x = activate(x, activation);
#pragma unroll
        for (int j = 0; j < group; j++) values[j] = x.values[j];
    }
};

int check_layer(const pvg_array *x, const pvg_array *weight, const pvg_array *bias,
                int activation) {
    PVG_REQUIRE(activation >= PVG_ACTIVATION_NONE && activation <= PVG_ACTIVATION_RELU,
                PVG_ERROR_VALUE, "unknown activation code %d", activation);
    for (const pvg_array *a : {x, weight, bias})
        PVG_REQUIRE(!a || dtype_kind(a->dtype) == Kind::floating, PVG_ERROR_TYPE,
                    "takes float32 or float64, got %s", dtype_name(a->dtype));
    PVG_REQUIRE(weight->ndim == 2, PVG_ERROR_VALUE, "weight must have shape (out, in), got %s",
                shape_text(weight));
    PVG_REQUIRE(x->ndim > 0 && x->shape[x->ndim - 1] == weight->shape[1], PVG_ERROR_VALUE,
                "x of shape %s does not fit weight of shape %s (out, in)", shape_text(x),
                shape_text(weight));
    PVG_REQUIRE(!bias || (bias->ndim == 1 && bias->shape[0] == weight->shape[0]), PVG_ERROR_VALUE,
                "bias of shape %s does not fit weight of shape %s (out, in)", shape_text(bias),
                shape_text(weight));
    return PVG_OK;
}

int launch_dense(Operation &op, const pvg_array *x, const pvg_array *weight, const pvg_array *bias,
                 int activation, pvg_array *c) {
    // Rows of x: axis 0 if there are two; else a batch of single ones, which lie evenly if x is
    // contiguous.
    int last = x->ndim - 1, row_axis = x->ndim == 2 ? 0 : -1;
    Matrix rows = {x, row_axis < 0 ? last : 0, row_axis, last}, weights = {weight, 0, 0, 1};
    Temporary straight_x, straight_weight;
    if (row_axis < 0) PVG_PASS(as_contiguous(op, x, &straight_x, &rows.array));
    if (row_axis == 0) PVG_PASS(matmul::make_readable(op, &rows, &straight_x));
    PVG_PASS(matmul::make_readable(op, &weights, &straight_weight));
    PVG_PASS(op.reads(rows.array));
    PVG_PASS(op.reads(weights.array));
    if (bias) PVG_PASS(op.reads(bias));
    Product product;
    int64_t batch;
    matmul::describe_product(rows, weights, c, row_axis, last, &product, &batch);
    return dispatch_float(c->dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        Layer<T> layer = {bias ? data<T>(bias) : nullptr, bias ? bias->strides[0] : 0, activation};
        return matmul::launch_product<T>(op.stream, product, batch, layer);
    });
}

int run_dense(Operation &op, const pvg_array *x, const pvg_array *weight, const pvg_array *bias,
              int activation, pvg_array *out, Output *result) {
    const pvg_array *operands[] = {x, weight, bias};
    int device, dtype;
    PVG_PASS(check_operands(operands, bias ? 3 : 2, &device));
    PVG_PASS(check_layer(x, weight, bias, activation));
    dtype = promote(x->dtype, weight->dtype);
    if (bias) dtype = promote(dtype, bias->dtype);
    int64_t shape[PVG_MAX_NDIM];
    for (int i = 0; i < x->ndim - 1; i++) shape[i] = x->shape[i];
    shape[x->ndim - 1] = weight->shape[0];

    PVG_PASS(op.begin(device));
    PVG_PASS(result->open(op, dtype, x->ndim, shape, out, nullptr, 0));
    pvg_array *c = result->array;
    if (c->size == 0) return PVG_OK;
    Temporary converted_x, converted_weight, converted_bias, apart;
    if (may_overlap(x, c) || may_overlap(weight, c) || (bias && may_overlap(bias, c))) {
        PVG_PASS(new_array(device, dtype, x->ndim, shape, &apart.array));
        c = apart.array;
    }
    PVG_PASS(as_dtype(op, x, dtype, &converted_x, &x));
    PVG_PASS(as_dtype(op, weight, dtype, &converted_weight, &weight));
    if (bias) PVG_PASS(as_dtype(op, bias, dtype, &converted_bias, &bias));
    PVG_PASS(launch_dense(op, x, weight, bias, activation, c));
    return apart.array ? copy_array(op, apart.array, result->array) : PVG_OK;
}

} // namespace
} // namespace pvg

PVG_API pvg_array *pvg_dense(const pvg_array *x, const pvg_array *weight, const pvg_array *bias,
                             int activation, pvg_array *out) {
    pvg::Operation op("dense");
    pvg::Output result;
    int status = pvg::run_dense(op, x, weight, bias, activation, out, &result);
    return result.close(op, status);
}
