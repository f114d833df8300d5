// One layer of a network: pvg_dense, activation(x @ weight.T + bias). It is one product whose
// kernel applies bias and activation to the finished sums; the formulas are in activation.cuh.
#include "kernels/activation.cuh"
#include "kernels/matmul/dense.cuh"
#include "kernels/matmul/dispatch.cuh"

namespace pvg {

int check_activation(int activation) {
    PVG_REQUIRE(activation == PVG_NONE || is_activation(activation), PVG_ERROR_VALUE,
                "operation code %d is no activation of a layer", activation);
    return PVG_OK;
}

int LayerRows::open(Call &call, const pvg_array *a, int dtype) {
    PVG_PASS(as_dtype(call, a, dtype, &converted, &a));
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    int64_t columns = a->shape[a->ndim - 1], shape[2] = {1, columns}, strides[2] = {columns, 1};
    for (int i = 0; i < a->ndim - 1; i++) shape[0] *= a->shape[i];
    PVG_PASS(new_view(a, 2, shape, strides, 0, false, &flat.array));
    array = flat.array;
    return PVG_OK;
}

int multiply(Call &call, const pvg_array *a, int a_rows, const pvg_array *b, int b_columns,
             int precision, const matmul::Epilogue &epilogue, pvg_array *c) {
    if (c->size == 0) return PVG_OK;
    return matmul::multiply(call, {a, 0, a_rows, 1 - a_rows}, {b, 0, b_columns, 1 - b_columns}, c,
                            0, 1, precision, epilogue);
}

namespace {

int check_layer(const pvg_array *x, const pvg_array *weight, const pvg_array *bias) {
    for (const pvg_array *a : {x, weight, bias})
        PVG_REQUIRE(!a || dtype_kind(a->dtype) == Kind::floating, PVG_ERROR_TYPE,
                    "takes a float dtype, got %s", dtype_name(a->dtype));
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

int check_preactivation(const pvg_array *before, int dtype, int ndim, const int64_t *shape,
                        const pvg_array *const *others, int n) {
    PVG_PASS(check_array(before, "preactivation"));
    PVG_REQUIRE(before->dtype == dtype && same_shape(before, ndim, shape) &&
                    is_contiguous(before) && !before->readonly,
                PVG_ERROR_VALUE,
                "preactivation has to be a contiguous array of shape %s and dtype %s that may be "
                "written, got %s and %s",
                shape_text(ndim, shape), dtype_name(dtype), shape_text(before),
                dtype_name(before->dtype));
    for (int i = 0; i < n; i++)
        PVG_REQUIRE(!others[i] || (device_of(others[i]) == device_of(before) &&
                                   !may_overlap(others[i], before)),
                    PVG_ERROR_VALUE,
                    "preactivation shares memory with another array, or is on another device");
    return PVG_OK;
}

struct Layer {
    const pvg_array *x, *weight, *bias;
    int activation, precision;
    pvg_array *preactivation, *out;
};

int launch_dense(Call &call, const Layer &layer, int dtype, pvg_array *c) {
    LayerRows x, y, before;
    Temporary converted_weight, converted_bias;
    const pvg_array *weight, *bias = nullptr;
    PVG_PASS(x.open(call, layer.x, dtype));
    PVG_PASS(as_dtype(call, layer.weight, dtype, &converted_weight, &weight));
    matmul::Epilogue epilogue;
    epilogue.activation = layer.activation;
    if (layer.bias) {
        PVG_PASS(as_dtype(call, layer.bias, dtype, &converted_bias, &bias));
        PVG_PASS(call.reads(bias));
        epilogue.bias = bias->data, epilogue.bias_stride = bias->strides[0];
    }
    if (layer.preactivation) {
        PVG_PASS(call.writes(layer.preactivation));
        epilogue.preactivation = layer.preactivation->data;
    }
    PVG_PASS(y.open(call, c, dtype)); // contiguous: a view
    return multiply(call, x.array, 0, weight, 0, layer.precision, epilogue, y.flat.array);
}

int run_dense(Call &call, Layer layer, Output *result) {
    const pvg_array *operands[] = {layer.x, layer.weight, layer.bias, layer.out};
    int device, dtype, ndim, n = layer.bias ? 3 : 2;
    PVG_PASS(check_operands(operands, n, &device));
    PVG_PASS(check_activation(layer.activation));
    PVG_PASS(check_layer(layer.x, layer.weight, layer.bias));
    PVG_PASS(matmul::check_precision(&layer.precision));
    dtype = promote(layer.x->dtype, layer.weight->dtype);
    if (layer.bias) dtype = promote(dtype, layer.bias->dtype);
    ndim = layer.x->ndim;
    int64_t shape[PVG_MAX_NDIM];
    for (int i = 0; i < ndim - 1; i++) shape[i] = layer.x->shape[i];
    shape[ndim - 1] = layer.weight->shape[0];
    if (layer.out) PVG_PASS(check_array(layer.out, "out")); // as preactivation is compared with it
    if (layer.preactivation)
        PVG_PASS(check_preactivation(layer.preactivation, dtype, ndim, shape, operands, 4));

    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, dtype, ndim, shape, layer.out, nullptr, 0));
    pvg_array *c = result->array;
    if (c->size == 0) return PVG_OK;
    Temporary apart;
    bool overlaps = false;
    for (int i = 0; i < n; i++) overlaps = overlaps || may_overlap(operands[i], c);
    if (overlaps || !is_contiguous(c)) {
        PVG_PASS(new_array(device, dtype, ndim, shape, &apart.array));
        c = apart.array;
    }
    PVG_PASS(launch_dense(call, layer, dtype, c));
    return apart.array ? copy_array(call, apart.array, result->array) : PVG_OK;
}

} // namespace
} // namespace pvg

PVG_API pvg_array *pvg_dense(const pvg_array *x, const pvg_array *weight, const pvg_array *bias,
                             int activation, int precision, pvg_array *preactivation,
                             pvg_array *out) {
    pvg::Call call("dense");
    pvg::Output result;
    int status =
        pvg::run_dense(call, {x, weight, bias, activation, precision, preactivation, out}, &result);
    return result.close(call, status);
}
