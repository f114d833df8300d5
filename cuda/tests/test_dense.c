/* Dense layers, activation(x @ weight.T + bias): every activation, shape and layout, compared
 * with the host. */
#include "check.h"

static double activate(int activation, double value) {
    switch (activation) {
    case PVG_ACTIVATION_SIGMOID: return 1 / (1 + exp(-value));
    case PVG_ACTIVATION_TANH: return tanh(value);
    case PVG_ACTIVATION_RELU: return isnan(value) || value > 0 ? value : 0;
    default: return value;
    }
}

static void *random_reals(int dtype, int64_t n, uint64_t *state) {
    void *values = host_memory(dtype, n);
    for (int64_t i = 0; i < n; i++) set_value(dtype, values, i, random_real(state, -1, 1));
    return values;
}

/* rows of x through a layer of `inputs` to `outputs`. */
static void check_layer(int line, int dtype, int64_t rows, int64_t inputs, int64_t outputs,
                        int activation, int with_bias) {
    uint64_t state = (uint64_t)(rows * 1000003 + inputs * 1009 + outputs);
    void *x = random_reals(dtype, rows * inputs, &state),
         *w = random_reals(dtype, outputs * inputs, &state);
    void *b = random_reals(dtype, outputs, &state), *expected = host_memory(dtype, rows * outputs);
    for (int64_t i = 0; i < rows * outputs; i++) {
        double sum = with_bias ? value_at(dtype, b, i % outputs) : 0;
        for (int64_t l = 0; l < inputs; l++)
            sum += value_at(dtype, x, i / outputs * inputs + l) *
                   value_at(dtype, w, i % outputs * inputs + l);
        set_value(dtype, expected, i, activate(activation, sum));
    }
    pvg_array *input = array_of(dtype, SHAPE(rows, inputs), x),
              *weight = array_of(dtype, SHAPE(outputs, inputs), w);
    pvg_array *bias = array_of(dtype, SHAPE(outputs), b);
    pvg_array *y = pvg_dense(input, weight, with_bias ? bias : NULL, activation, NULL);
    double tolerance = (double)(inputs + 8) * (dtype == PVG_FLOAT32 ? 0x1p-23 : 0x1p-51);
    if (!y)
        report(__FILE__, line, "layer failed: %s", pvg_last_error());
    else
        check_array(__FILE__, line, "layer", y, dtype, SHAPE(rows, outputs), expected, tolerance);
    RELEASE(input, weight, bias, y);
    void *host[] = {x, w, b, expected};
    for (size_t i = 0; i < COUNT(host); i++) free(host[i]);
}

static void activations_and_shapes(void) {
    static const int64_t shapes[][3] = {{1, 1, 1},   {4, 3, 2},   {32, 64, 10}, {33, 65, 129},
                                        {1, 200, 7}, {100, 2, 1}, {64, 8, 64},  {3, 500, 33}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int activation = PVG_ACTIVATION_NONE; activation <= PVG_ACTIVATION_RELU; activation++)
            for (int wide = 0; wide < 2; wide++)
                check_layer(__LINE__, wide ? PVG_FLOAT64 : PVG_FLOAT32, shapes[i][0], shapes[i][1],
                            shapes[i][2], activation, (activation + wide) % 2);
}

/* Small integers are exact, so views of any layout must give the same bits as dense arrays. */
static void layouts(void) {
    uint64_t state = 1;
    void *values = small_integers(PVG_FLOAT32, 40 * 40, &state),
         *numbers = small_integers(PVG_FLOAT32, 60, &state);
    const int64_t start[2] = {1, 39}, step[2] = {2, -1}, length[2] = {15, 20}, zero = 1, three = 3,
                  count = 15;
    const int axes[2] = {1, 0};
    pvg_array *all = array_of(PVG_FLOAT32, SHAPE(40, 40), values),
              *line = array_of(PVG_FLOAT32, SHAPE(60), numbers);
    pvg_array *transposed = MADE(pvg_permute(all, axes)),
              *x = MADE(pvg_slice(transposed, start, step, length));
    pvg_array *weight = MADE(pvg_slice(all, start, step, length)),
              *bias = MADE(pvg_slice(line, &zero, &three, &count));
    pvg_array *dense_x = MADE(pvg_contiguous(x)), *dense_weight = MADE(pvg_contiguous(weight)),
              *dense_bias = MADE(pvg_contiguous(bias));
    pvg_array *y = MADE(pvg_dense(dense_x, dense_weight, dense_bias, PVG_ACTIVATION_RELU, NULL));
    float *expected = host_copy(y);
    pvg_array *of_views = MADE(pvg_dense(x, weight, bias, PVG_ACTIVATION_RELU, NULL));
    CHECK_ARRAY(of_views, PVG_FLOAT32, SHAPE(15, 15), expected, 0);
    pvg_array *out = MADE(pvg_slice(all, ((const int64_t[]){0, 0}), ((const int64_t[]){2, 1}),
                                    ((const int64_t[]){15, 15})));
    CHECK(pvg_dense(x, weight, bias, PVG_ACTIVATION_RELU, out) ==
          out); /* strided, and over the operands */
    CHECK_ARRAY(out, PVG_FLOAT32, SHAPE(15, 15), expected, 0);
    RELEASE(all, line, transposed, x, weight, bias, dense_x, dense_weight, dense_bias, y, of_views,
            out);
    free(values);
    free(numbers);
    free(expected);
}

static void leading_dimensions(void) {
    const float x[12] = {1, 0, 0, 1, 1, 1, 2, 0, 0, 2, 2, 2}, w[6] = {1, 2, 3, 4, 5, 6},
                b[3] = {0.5f, 0, -100};
    const float expected[18] = {1.5f, 3, -95, 2.5f, 4, -94, 3.5f, 7,  -89,
                                2.5f, 6, -90, 4.5f, 8, -88, 6.5f, 14, -78};
    pvg_array *input = array_of(PVG_FLOAT32, SHAPE(3, 2, 2), x),
              *weight = array_of(PVG_FLOAT32, SHAPE(3, 2), w);
    pvg_array *bias = array_of(PVG_FLOAT32, SHAPE(3), b),
              *y = MADE(pvg_dense(input, weight, bias, PVG_ACTIVATION_NONE, NULL));
    CHECK_ARRAY(y, PVG_FLOAT32, SHAPE(3, 2, 3), expected, 0);
    pvg_array *one = array_of(PVG_FLOAT32, SHAPE(2), x),
              *row = MADE(pvg_dense(one, weight, bias, PVG_ACTIVATION_NONE, NULL));
    CHECK_ARRAY(row, PVG_FLOAT32, SHAPE(3), expected, 0);
    pvg_array *none = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(0, 2))),
              *nothing = MADE(pvg_dense(none, weight, bias, PVG_ACTIVATION_TANH, NULL));
    CHECK_ARRAY(nothing, PVG_FLOAT32, SHAPE(0, 3), NULL, 0);
    pvg_array *empty_x = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2, 0))),
              *empty_w = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 0)));
    pvg_array *only_bias = MADE(pvg_dense(empty_x, empty_w, bias, PVG_ACTIVATION_RELU,
                                          NULL)); /* without inputs, the bias alone */
    CHECK_ARRAY(only_bias, PVG_FLOAT32, SHAPE(2, 3), ((const float[]){0.5f, 0, 0, 0.5f, 0, 0}),
                1e-300);
    RELEASE(input, weight, bias, y, one, row, none, nothing, empty_x, empty_w, only_bias);
}

static void nan_goes_through(void) {
    pvg_array *x = array_of(PVG_FLOAT32, SHAPE(1, 1), ((const float[]){NAN})),
              *w = array_of(PVG_FLOAT32, SHAPE(1, 1), ((const float[]){1}));
    for (int activation = PVG_ACTIVATION_NONE; activation <= PVG_ACTIVATION_RELU; activation++) {
        pvg_array *y = MADE(pvg_dense(x, w, NULL, activation, NULL));
        CHECK(isnan(element(y, 0)));
        RELEASE(y);
    }
    RELEASE(x, w);
}

static void operands_that_do_not_fit(void) {
    pvg_array *x = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(4, 3))),
              *weight = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2, 3)));
    pvg_array *bias = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2))),
              *integers = MADE(pvg_array_empty(0, PVG_INT32, SHAPE(4, 3)));
    pvg_array *scalar = MADE(pvg_array_empty(0, PVG_FLOAT32, SCALAR)),
              *out = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(4, 3)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(x, x, x, PVG_ACTIVATION_NONE, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(x, bias, NULL, PVG_ACTIVATION_NONE, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(x, weight, scalar, PVG_ACTIVATION_NONE, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(scalar, weight, bias, PVG_ACTIVATION_NONE, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(bias, weight, bias, PVG_ACTIVATION_NONE, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(x, weight, bias, PVG_ACTIVATION_NONE, out));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_dense(integers, integers, NULL, PVG_ACTIVATION_NONE, NULL));
    RELEASE(x, weight, bias, integers, scalar, out);
}

int main(void) {
    begin("test_dense");
    RUN(activations_and_shapes);
    RUN(layouts);
    RUN(leading_dimensions);
    RUN(nan_goes_through);
    RUN(operands_that_do_not_fit);
    return finish();
}
