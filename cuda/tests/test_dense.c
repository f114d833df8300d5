/* Dense layers, activation(x @ weight.T + bias): every activation, dtype, shape and layout, the
 * preactivation and the backward pass, compared with the host. */
#include "check.h"

static const int activations[] = {PVG_NONE, PVG_SIGMOID, PVG_TANH, PVG_RELU, PVG_GELU, PVG_SILU};

static double activate(int activation, double value) {
    switch (activation) {
    case PVG_SIGMOID: return 1 / (1 + exp(-value));
    case PVG_TANH: return tanh(value);
    case PVG_RELU: return isnan(value) || value > 0 ? value : 0;
    case PVG_GELU: return 0.5 * value * erfc(-value * sqrt(0.5));
    case PVG_SILU: return value / (1 + exp(-value));
    default: return value;
    }
}

static const int float_dtypes[] = {PVG_FLOAT32, PVG_FLOAT64, PVG_FLOAT16, PVG_BFLOAT16};

/* Twice the largest relative error of rounding to the dtype. */
static double rounding(int dtype) {
    switch (dtype) {
    case PVG_FLOAT16: return 0x1p-10;
    case PVG_BFLOAT16: return 0x1p-7;
    case PVG_FLOAT32: return 0x1p-23;
    default: return 0x1p-52;
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
    pvg_array *y = pvg_dense(input, weight, with_bias ? bias : NULL, activation,
                             PVG_PRECISION_DEFAULT, NULL, NULL);
    double tolerance = (double)(inputs + 8) * (dtype == PVG_FLOAT64 ? 0x1p-51 : 0x1p-23);
    tolerance += rounding(dtype);
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
        for (size_t f = 0; f < COUNT(activations); f++)
            for (int d = 0; d < 4; d++)
                check_layer(__LINE__, float_dtypes[d], shapes[i][0], shapes[i][1], shapes[i][2],
                            activations[f], ((int)f + d) % 2);
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
    pvg_array *y = MADE(
        pvg_dense(dense_x, dense_weight, dense_bias, PVG_RELU, PVG_PRECISION_DEFAULT, NULL, NULL));
    float *expected = host_copy(y);
    pvg_array *of_views =
        MADE(pvg_dense(x, weight, bias, PVG_RELU, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_ARRAY(of_views, PVG_FLOAT32, SHAPE(15, 15), expected, 0);
    pvg_array *out = MADE(pvg_slice(all, ((const int64_t[]){0, 0}), ((const int64_t[]){2, 1}),
                                    ((const int64_t[]){15, 15})));
    CHECK(pvg_dense(x, weight, bias, PVG_RELU, PVG_PRECISION_DEFAULT, NULL, out) ==
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
              *y =
                  MADE(pvg_dense(input, weight, bias, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_ARRAY(y, PVG_FLOAT32, SHAPE(3, 2, 3), expected, 0);
    pvg_array *one = array_of(PVG_FLOAT32, SHAPE(2), x),
              *row =
                  MADE(pvg_dense(one, weight, bias, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_ARRAY(row, PVG_FLOAT32, SHAPE(3), expected, 0);
    pvg_array *none = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(0, 2))),
              *nothing =
                  MADE(pvg_dense(none, weight, bias, PVG_TANH, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_ARRAY(nothing, PVG_FLOAT32, SHAPE(0, 3), NULL, 0);
    pvg_array *empty_x = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2, 0))),
              *empty_w = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 0)));
    pvg_array *only_bias = MADE(pvg_dense(empty_x, empty_w, bias, PVG_RELU, PVG_PRECISION_DEFAULT,
                                          NULL, NULL)); /* without inputs, the bias alone */
    CHECK_ARRAY(only_bias, PVG_FLOAT32, SHAPE(2, 3), ((const float[]){0.5f, 0, 0, 0.5f, 0, 0}),
                1e-300);
    RELEASE(input, weight, bias, y, one, row, none, nothing, empty_x, empty_w, only_bias);
}

static void nan_goes_through(void) {
    pvg_array *x = array_of(PVG_FLOAT32, SHAPE(1, 1), ((const float[]){NAN})),
              *w = array_of(PVG_FLOAT32, SHAPE(1, 1), ((const float[]){1}));
    for (size_t f = 0; f < COUNT(activations); f++) {
        pvg_array *y =
            MADE(pvg_dense(x, w, NULL, activations[f], PVG_PRECISION_DEFAULT, NULL, NULL));
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
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(x, x, x, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_dense(x, bias, NULL, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_dense(x, weight, scalar, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_dense(scalar, weight, bias, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_dense(bias, weight, bias, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_dense(x, weight, bias, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, out));
    CHECK_NULL(PVG_ERROR_TYPE,
               pvg_dense(integers, integers, NULL, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
    for (int code = -1; code <= PVG_DENSE; code++) { /* whatever is no activation */
        int known = 0;
        for (size_t i = 0; i < COUNT(activations); i++) known = known || code == activations[i];
        if (known) continue;
        CHECK_NULL(PVG_ERROR_VALUE,
                   pvg_dense(x, weight, bias, code, PVG_PRECISION_DEFAULT, NULL, NULL));
        CHECK(strstr(pvg_last_error(), "is no activation of a layer"));
    }
    RELEASE(x, weight, bias, integers, scalar, out);
}

/* ---- Preactivations -------------------------------------------------------------------------- */

static void preactivations(void) {
    enum { M = 33, K = 20, N = 37 };
    uint64_t state = 2;
    for (int d = 0; d < 4; d++) {
        int dtype = float_dtypes[d];
        void *values[] = {random_reals(dtype, M * K, &state), random_reals(dtype, N * K, &state),
                          random_reals(dtype, N, &state)};
        pvg_array *x = array_of(dtype, SHAPE(3, M / 3, K), values[0]),
                  *weight = array_of(dtype, SHAPE(N, K), values[1]),
                  *bias = array_of(dtype, SHAPE(N), values[2]);
        pvg_array *plain =
            MADE(pvg_dense(x, weight, bias, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
        void *z = host_copy(plain);
        for (size_t f = 0; f < COUNT(activations); f++) {
            pvg_array *before = MADE(pvg_array_empty(0, dtype, SHAPE(3, M / 3, N)));
            pvg_array *y = MADE(
                pvg_dense(x, weight, bias, activations[f], PVG_PRECISION_DEFAULT, before, NULL));
            pvg_array *alone =
                MADE(pvg_dense(x, weight, bias, activations[f], PVG_PRECISION_DEFAULT, NULL, NULL));
            void *expected = host_copy(alone);
            CHECK_ARRAY(before, dtype, SHAPE(3, M / 3, N), z, 0);
            CHECK_ARRAY(y, dtype, SHAPE(3, M / 3, N), expected, 0);
            free(expected);
            RELEASE(before, y, alone);
        }
        for (int i = 0; i < 3; i++) free(values[i]);
        free(z);
        RELEASE(x, weight, bias, plain);
    }
}

static void preactivations_that_do_not_fit(void) {
    uint64_t state = 3;
    pvg_array *x = random_array(PVG_FLOAT32, SHAPE(6, 6), &state),
              *weight = random_array(PVG_FLOAT32, SHAPE(6, 6), &state),
              *memory = random_array(PVG_FLOAT32, SHAPE(12, 6), &state);
    const int64_t zero[2] = {0, 0}, three[2] = {3, 0}, one[2] = {1, 1}, two[2] = {2, 1},
                  six[2] = {6, 6};
    pvg_array *bad[] = {x,
                        weight,
                        MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(6, 5))),
                        MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(36))),
                        MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(6, 6))),
                        MADE(pvg_permute(memory, ((const int[]){1, 0}))),
                        MADE(pvg_slice(memory, zero, two, six)),
                        MADE(pvg_slice(memory, three, one, six))};
    pvg_array *out = MADE(pvg_slice(memory, zero, one, six));
    void *before = host_copy(memory);
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK_NULL(PVG_ERROR_VALUE,
                   pvg_dense(x, weight, NULL, PVG_RELU, PVG_PRECISION_DEFAULT, bad[i], out));
        CHECK(strstr(pvg_last_error(), "preactivation"));
    }
    CHECK_ARRAY(memory, PVG_FLOAT32, SHAPE(12, 6), before, 0);
    free(before);
    for (size_t i = 2; i < COUNT(bad); i++) RELEASE(bad[i]);
    pvg_array *place = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(6, 6)));
    RELEASE(out); /* which the preactivation is not compared with any more */
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_dense(x, weight, NULL, PVG_RELU, PVG_PRECISION_DEFAULT, place, out));
    RELEASE(x, weight, memory, place);
}

/* ---- The backward pass ----------------------------------------------------------------------- */

static double slope(int activation, double z) {
    double s = 1 / (1 + exp(-z)), t = tanh(z);
    switch (activation) {
    case PVG_SIGMOID: return s * (1 - s);
    case PVG_TANH: return 1 - t * t;
    case PVG_RELU: return z > 0;
    case PVG_GELU: return 0.5 * erfc(-z * sqrt(0.5)) + z * exp(-0.5 * z * z) / sqrt(2 * acos(-1));
    case PVG_SILU: return s * (1 + z * (1 - s));
    default: return 1;
    }
}

/* The sums of dz[i, j] other[...] that the three gradients are: dx, dweight, dbias. */
static void check_gradients(int dtype, int activation, int64_t m, int64_t k, int64_t n,
                            void *const *host, pvg_array *const *results) {
    const int64_t sizes[3][3] = {{m, k, n}, {n, k, m}, {n, 1, m}}; /* rows, columns, terms */
    double *dz = host_memory(PVG_FLOAT64, m * n);
    for (int64_t i = 0; i < m * n; i++)
        dz[i] = value_at(dtype, host[0], i) * slope(activation, value_at(dtype, host[3], i));
    for (int which = 0; which < 3; which++) {
        int64_t rows = sizes[which][0], columns = sizes[which][1], terms = sizes[which][2];
        double *expected = host_memory(PVG_FLOAT64, rows * columns);
        for (int64_t i = 0; i < rows * columns; i++)
            for (int64_t l = 0; l < terms; l++) {
                int64_t r = i / columns, c = i % columns;
                double left = which ? dz[l * n + r] : dz[r * n + l];
                double right = which == 2 ? 1 : value_at(dtype, host[2 - which], l * k + c);
                expected[i] += left * right;
            }
        pvg_array *wide = MADE(pvg_cast(results[which], PVG_FLOAT64, NULL));
        double tolerance = (double)(terms + 16) * (dtype == PVG_FLOAT64 ? 0x1p-51 : 0x1p-23) +
                           (double)terms * rounding(dtype);
        pvg_array *flat = MADE(pvg_reshape(wide, SHAPE(rows * columns)));
        CHECK_EQUAL(pvg_array_dtype(results[which]), dtype);
        CHECK_ARRAY(flat, PVG_FLOAT64, SHAPE(rows * columns), expected, tolerance);
        free(expected);
        RELEASE(wide, flat);
    }
    free(dz);
}

static void gradients(void) {
    static const int64_t shapes[][3] = {{1, 1, 1},    {4, 3, 2},    {65, 5, 129},
                                        {130, 33, 7}, {1, 70, 40},  {40, 70, 1},
                                        {256, 3, 33}, {257, 2, 32}, {321, 1, 5}};
    uint64_t state = 4;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t f = 0; f < COUNT(activations); f++)
            for (int d = 0; d < 4; d++) {
                int dtype = float_dtypes[d], activation = activations[f];
                int64_t m = shapes[i][0], k = shapes[i][1], n = shapes[i][2];
                void *host[] = {
                    random_reals(dtype, m * n, &state), random_reals(dtype, m * k, &state),
                    random_reals(dtype, n * k, &state), random_reals(dtype, m * n, &state)};
                pvg_array *gradient = array_of(dtype, SHAPE(m, n), host[0]),
                          *x = array_of(dtype, SHAPE(m, k), host[1]),
                          *weight = array_of(dtype, SHAPE(n, k), host[2]),
                          *before = array_of(dtype, SHAPE(m, n), host[3]), *results[3];
                CHECK_OK(pvg_dense_backward(gradient, x, weight, activation ? before : NULL,
                                            activation, PVG_PRECISION_DEFAULT, &results[0],
                                            &results[1], &results[2]));
                check_gradients(dtype, activation, m, k, n, host, results);
                for (int j = 0; j < 4; j++) free(host[j]);
                RELEASE(gradient, x, weight, before, results[0], results[1], results[2]);
            }
}

/* Each alone, in every combination, has the bits that it has beside the others. */
static void some_of_the_gradients(void) {
    uint64_t state = 5;
    pvg_array *gradient = random_array(PVG_FLOAT32, SHAPE(2, 40, 9), &state),
              *x = random_array(PVG_FLOAT32, SHAPE(2, 40, 5), &state),
              *weight = random_array(PVG_FLOAT32, SHAPE(9, 5), &state), *all[3];
    for (int activation = 0; activation <= PVG_TANH; activation += PVG_TANH) {
        CHECK_OK(pvg_dense_backward(gradient, x, weight, gradient, activation, PVG_PRECISION_IEEE,
                                    &all[0], &all[1], &all[2]));
        void *expected[3];
        for (int i = 0; i < 3; i++) expected[i] = host_copy(all[i]);
        for (int wanted = 0; wanted < 8; wanted++) {
            pvg_array *some[3] = {gradient, gradient, gradient};
            CHECK_OK(pvg_dense_backward(gradient, x, weight, gradient, activation,
                                        PVG_PRECISION_IEEE, wanted & 1 ? &some[0] : NULL,
                                        wanted & 2 ? &some[1] : NULL,
                                        wanted & 4 ? &some[2] : NULL));
            for (int i = 0; i < 3; i++) {
                if (!(wanted >> i & 1)) continue;
                CHECK_ARRAY(some[i], PVG_FLOAT32, pvg_array_ndim(all[i]), pvg_array_shape(all[i]),
                            expected[i], 0);
                RELEASE(some[i]);
            }
        }
        for (int i = 0; i < 3; i++) free(expected[i]);
        RELEASE(all[0], all[1], all[2]);
    }
    RELEASE(gradient, x, weight);
}

static void gradients_of_nothing(void) {
    static const int64_t shapes[][3] = {{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {0, 0, 0}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        int64_t m = shapes[i][0], k = shapes[i][1], n = shapes[i][2];
        pvg_array *gradient = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(m, n))),
                  *x = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(m, k))),
                  *weight = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(n, k))), *results[3];
        const double one = 1;
        float expected[20] = {0};
        CHECK_OK(pvg_fill(gradient, PVG_SCALAR_FLOAT, &one));
        CHECK_OK(pvg_dense_backward(gradient, x, weight, gradient, PVG_RELU, PVG_PRECISION_DEFAULT,
                                    &results[0], &results[1], &results[2]));
        CHECK_ARRAY(results[0], PVG_FLOAT32, SHAPE(m, k), expected, 0);
        CHECK_ARRAY(results[1], PVG_FLOAT32, SHAPE(n, k), expected, 0);
        for (int j = 0; j < 20; j++) expected[j] = (float)m;
        CHECK_ARRAY(results[2], PVG_FLOAT32, SHAPE(n), expected, 0);
        RELEASE(gradient, x, weight, results[0], results[1], results[2]);
    }
}

static void backward_refuses(void) {
    pvg_array *gradient = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 2))),
              *x = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 4))),
              *weight = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2, 4))),
              *integers = MADE(pvg_array_empty(0, PVG_INT32, SHAPE(3, 2))),
              *scalar = MADE(pvg_array_empty(0, PVG_FLOAT32, SCALAR));
    enum { RELU = PVG_RELU, NONE = PVG_NONE };
    const struct {
        const pvg_array *gradient, *x, *weight, *preactivation;
        int activation, precision, status;
    } calls[] = {
        {x, x, weight, NULL, NONE, 0, PVG_ERROR_VALUE},
        {weight, x, weight, NULL, NONE, 0, PVG_ERROR_VALUE},
        {scalar, x, weight, NULL, NONE, 0, PVG_ERROR_VALUE},
        {gradient, gradient, weight, NULL, NONE, 0, PVG_ERROR_VALUE},
        {gradient, scalar, weight, NULL, NONE, 0, PVG_ERROR_VALUE},
        {gradient, x, scalar, NULL, NONE, 0, PVG_ERROR_VALUE},
        {gradient, x, weight, NULL, RELU, 0, PVG_ERROR_VALUE},
        {gradient, x, weight, x, RELU, 0, PVG_ERROR_VALUE},
        {gradient, x, weight, gradient, PVG_EXP, 0, PVG_ERROR_VALUE},
        {gradient, x, weight, gradient, -1, 0, PVG_ERROR_VALUE},
        {gradient, x, weight, gradient, PVG_ADD, 0, PVG_ERROR_VALUE},
        {gradient, x, weight, gradient, RELU, 7, PVG_ERROR_VALUE},
        {gradient, x, weight, gradient, RELU, -1, PVG_ERROR_VALUE},
        {integers, x, weight, NULL, NONE, 0, PVG_ERROR_TYPE},
        {gradient, x, weight, integers, RELU, 0, PVG_ERROR_TYPE},
    };
    for (size_t i = 0; i < COUNT(calls); i++) {
        pvg_array *results[3] = {x, x, x};
        CHECK_STATUS(pvg_dense_backward(calls[i].gradient, calls[i].x, calls[i].weight,
                                        calls[i].preactivation, calls[i].activation,
                                        calls[i].precision, &results[0], &results[1], &results[2]),
                     calls[i].status);
        CHECK(strstr(pvg_last_error(), "dense_backward"));
        for (int j = 0; j < 3; j++) CHECK(results[j] == x); /* nothing is stored */
    }
    RELEASE(gradient, x, weight, integers, scalar);
}

int main(void) {
    begin("test_dense");
    RUN(activations_and_shapes);
    RUN(layouts);
    RUN(leading_dimensions);
    RUN(nan_goes_through);
    RUN(operands_that_do_not_fit);
    RUN(preactivations);
    RUN(preactivations_that_do_not_fit);
    RUN(gradients);
    RUN(some_of_the_gradients);
    RUN(gradients_of_nothing);
    RUN(backward_refuses);
    return finish();
}
