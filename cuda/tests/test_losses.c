/* pvg_activate, pvg_pair_loss and their backward passes: every activation and loss, in every dtype,
 * at every offset into memory; sums of one block and of several; and what is refused. */
#include "check.h"

/* `length` elements that begin `offset` elements into memory. */
static pvg_array *row_at(int dtype, int64_t length, int64_t offset, uint64_t *state) {
    const int64_t step = 1;
    pvg_array *base = random_array(dtype, SHAPE(length + offset), state);
    pvg_array *result = MADE(pvg_slice(base, &offset, &step, &length));
    RELEASE(base);
    return result;
}

static double tolerance_of(int dtype) {
    return pvg_dtype_size(dtype) == 8 ? 1e-11 : pvg_dtype_size(dtype) == 4 ? 2e-4 : 0.2;
}
static double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }

/* An activation, or its derivative; x is what pvg_activate_backward gets. */
static double curve_of(int curve, double x) {
    if (curve == PVG_CURVE_SOFTPLUS) return 0.5 * x > 1.5 ? x : log1p(exp(0.5 * x)) / 0.5;
    return x > 0 ? x : 0.5 * (curve == PVG_CURVE_ELU ? expm1(x) : x);
}
static double slope_of(int curve, double x) {
    const double s = sigmoid_of(x), root = sqrt(0.5);
    switch (curve) {
    case PVG_CURVE_SOFTPLUS: return 0.5 * x > 1.5 ? 1 : sigmoid_of(0.5 * x);
    case PVG_CURVE_LEAKY_RELU: return x > 0 ? 1 : 0.5;
    case PVG_CURVE_ELU: return x > 0 ? 1 : 0.5 * exp(x);
    case PVG_CURVE_RELU: return x > 0;
    case PVG_CURVE_SIGMOID: return x * (1 - x);
    case PVG_CURVE_TANH: return 1 - x * x;
    case PVG_CURVE_GELU: return 0.5 * erfc(-x * root) + x * exp(-x * x / 2) * 0.3989422804014327;
    default: return s * (1 + x * (1 - s));
    }
}

static const int dtypes[] = {PVG_FLOAT16, PVG_BFLOAT16, PVG_FLOAT32, PVG_FLOAT64};

static void activations(void) {
    uint64_t state = 1;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int64_t offset = 0; offset < 9; offset++) {
            const int dtype = dtypes[d];
            const int64_t length = 29 + 37 * offset;
            pvg_array *x = row_at(dtype, length, offset * 5 % 9, &state);
            pvg_array *g = row_at(dtype, length, offset, &state);
            void *values = host_copy(x), *slopes = host_copy(g);
            void *wanted = host_memory(dtype, length);
            for (int curve = 0; curve <= PVG_CURVE_SILU; curve++) {
                for (int64_t i = 0; i < length; i++)
                    set_value(dtype, wanted, i,
                              value_at(dtype, slopes, i) *
                                  slope_of(curve, value_at(dtype, values, i)));
                pvg_array *dx = MADE(pvg_activate_backward(curve, g, x, 0.5, 1.5));
                CHECK_ARRAY(dx, dtype, SHAPE(length), wanted, tolerance_of(dtype));
                RELEASE(dx);
                if (curve > PVG_CURVE_ELU) continue;
                for (int64_t i = 0; i < length; i++)
                    set_value(dtype, wanted, i, curve_of(curve, value_at(dtype, values, i)));
                pvg_array *y = MADE(pvg_activate(curve, x, 0.5, 1.5));
                CHECK_ARRAY(y, dtype, SHAPE(length), wanted, tolerance_of(dtype));
                RELEASE(y);
            }
            free(values), free(slopes), free(wanted);
            RELEASE(x, g);
        }
}

static double loss_of(int loss, double x, double t, double *slope) {
    const double d = x - t, size = fabs(d), sign = d > 0 ? 1 : d < 0 ? -1 : 0, number = 1.25;
    const int near = size < number;
    switch (loss) {
    case PVG_LOSS_SQUARE: *slope = 2 * d; return d * d;
    case PVG_LOSS_ABSOLUTE: *slope = sign; return size;
    case PVG_LOSS_HUBER:
    case PVG_LOSS_SMOOTH: {
        const double by = loss == PVG_LOSS_SMOOTH ? number : 1;
        *slope = (near ? d : number * sign) / by;
        return (near ? d * d / 2 : number * (size - number / 2)) / by;
    }
    default: *slope = sigmoid_of(x) - t; return (1 - t) * x + log1p(exp(-fabs(x))) + fmax(-x, 0);
    }
}

/* Of one size: each loss, their sum and mean, and all gradients. */
static void check_losses(int dtype, int64_t length, int64_t offset, uint64_t *state) {
    const int wide = dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32;
    pvg_array *x = row_at(dtype, length, offset, state);
    pvg_array *t = row_at(dtype, length, offset * 3 % 8, state);
    pvg_array *g = row_at(wide, length, offset, state);
    void *values = host_copy(x), *targets = host_copy(t), *given = host_copy(g);
    void *wanted = host_memory(wide, length), *slopes = host_memory(dtype, length);
    void *of_target = host_memory(dtype, length), *number = host_memory(wide, 1);
    for (int loss = 0; loss <= PVG_LOSS_LOGITS; loss++) {
        double sum = 0, slope = 0, size = 0;
        for (int64_t i = 0; i < length; i++) {
            const double a = value_at(dtype, values, i), b = value_at(dtype, targets, i);
            const double by = value_at(wide, given, i), one = loss_of(loss, a, b, &slope);
            sum += one, size += fabs(one);
            set_value(wide, wanted, i, one);
            set_value(dtype, slopes, i, by * slope);
            set_value(dtype, of_target, i, by * (loss == PVG_LOSS_LOGITS ? -a : -slope));
        }
        pvg_array *each = MADE(pvg_pair_loss(loss, x, t, 1.25, PVG_LOSSES_EACH)),
                  *all = MADE(pvg_pair_loss(loss, x, t, 1.25, PVG_LOSSES_SUM)),
                  *mean = MADE(pvg_pair_loss(loss, x, t, 1.25, PVG_LOSSES_MEAN)),
                  *dx = MADE(pvg_pair_loss_backward(loss, g, x, t, 1.25, PVG_LOSSES_EACH, 0)),
                  *dt = MADE(pvg_pair_loss_backward(loss, g, x, t, 1.25, PVG_LOSSES_EACH, 1)),
                  *ones = MADE(pvg_pair_loss_backward(loss, NULL, x, t, 1.25, PVG_LOSSES_SUM, 0)),
                  *part = MADE(pvg_pair_loss_backward(loss, mean, x, t, 1.25, PVG_LOSSES_MEAN, 0));
        CHECK_ARRAY(each, wide, SHAPE(length), wanted, 1e-2 * tolerance_of(wide));
        CHECK_ARRAY(dx, dtype, SHAPE(length), slopes, tolerance_of(dtype));
        CHECK_ARRAY(dt, dtype, SHAPE(length), of_target, tolerance_of(dtype));
        set_value(wide, number, 0, sum);
        const double unit = wide == PVG_FLOAT64 ? 1e-13 : 5e-7;
        CHECK_ARRAY(all, wide, SCALAR, number, unit * (1 + size));
        set_value(wide, number, 0, sum / (double)length);
        CHECK_ARRAY(mean, wide, SCALAR, number, unit * (1 + size / (double)length));
        for (int way = 0; way < 2; way++) {
            for (int64_t i = 0; i < length; i++) {
                loss_of(loss, value_at(dtype, values, i), value_at(dtype, targets, i), &slope);
                const double by = way ? sum / (double)length / (double)length : 1;
                set_value(dtype, slopes, i, slope * by);
            }
            CHECK_ARRAY(way ? part : ones, dtype, SHAPE(length), slopes, tolerance_of(dtype));
        }
        RELEASE(each, all, mean, dx, dt, ones, part);
    }
    free(values), free(targets), free(given), free(wanted), free(slopes), free(of_target);
    free(number);
    RELEASE(x, t, g);
}

static void losses(void) {
    uint64_t state = 2;
    const int64_t lengths[] = {1, 2, 77, 1031, 2048};
    for (size_t d = 0; d < COUNT(dtypes); d++) {
        for (size_t i = 0; i < COUNT(lengths); i++)
            for (int64_t offset = 0; offset < 8; offset += 1 + (i > 2))
                check_losses(dtypes[d], lengths[i], offset, &state);
        for (int64_t round = 2048; round <= 8192; round *= 2) /* of a block, and one element less */
            for (int64_t less = 0; less < 2; less++)
                check_losses(dtypes[d], round - less, 0, &state);
        check_losses(dtypes[d], 16385, 0, &state);
        check_losses(dtypes[d], 20000, 3, &state);
    }
}

/* The same elements have the same sum, wherever they lie. */
static void the_same_bits(void) {
    enum { LENGTH = 9001 };
    uint64_t state = 3;
    for (size_t d = 0; d < COUNT(dtypes); d++) {
        pvg_array *x = row_at(dtypes[d], LENGTH, 0, &state);
        pvg_array *t = row_at(dtypes[d], LENGTH, 0, &state);
        pvg_array *y = row_at(dtypes[d], LENGTH, 1, &state);
        pvg_array *u = row_at(dtypes[d], LENGTH, 1, &state);
        CHECK_OK(pvg_copy(x, y));
        CHECK_OK(pvg_copy(t, u));
        pvg_array *first = MADE(pvg_pair_loss(PVG_LOSS_LOGITS, x, t, 0, PVG_LOSSES_SUM));
        pvg_array *second = MADE(pvg_pair_loss(PVG_LOSS_LOGITS, y, t, 0, PVG_LOSSES_SUM));
        pvg_array *third = MADE(pvg_pair_loss(PVG_LOSS_LOGITS, x, u, 0, PVG_LOSSES_SUM));
        void *wanted = host_copy(first);
        CHECK_ARRAY(third, pvg_array_dtype(first), SCALAR, wanted, 0);
        CHECK_ARRAY(second, pvg_array_dtype(first), SCALAR, wanted, 0);
        free(wanted);
        RELEASE(x, t, y, u, first, second, third);
    }
}

static void what_is_refused(void) {
    uint64_t state = 4;
    pvg_array *x = random_array(PVG_FLOAT32, SHAPE(4), &state),
              *five = random_array(PVG_FLOAT32, SHAPE(5), &state),
              *wide = random_array(PVG_FLOAT64, SHAPE(4), &state),
              *whole = random_array(PVG_INT32, SHAPE(4), &state);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_activate(PVG_CURVE_RELU, x, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_activate(-1, x, 0, 0));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_activate(PVG_CURVE_ELU, whole, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_activate(PVG_CURVE_ELU, NULL, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_activate_backward(8, x, x, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_activate_backward(-1, x, x, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_activate_backward(0, five, x, 0, 0));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_activate_backward(0, whole, x, 0, 0));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_activate_backward(0, x, whole, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pair_loss(5, x, x, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pair_loss(-1, x, x, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pair_loss(0, x, x, 0, 3));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pair_loss(0, x, x, 0, -1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pair_loss(2, x, x, -1, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pair_loss(0, x, five, 0, 0));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_pair_loss(0, x, wide, 0, 0));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_pair_loss(0, whole, whole, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pair_loss_backward(0, x, x, x, 0, 1, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pair_loss_backward(0, five, x, x, 0, 0, 0));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_pair_loss_backward(0, whole, x, x, 0, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pair_loss_backward(0, x, x, x, 0, 0, 2));
    RELEASE(x, five, wide, whole);
}

int main(void) {
    begin("test_losses");
    RUN(activations);
    RUN(losses);
    RUN(the_same_bits);
    RUN(what_is_refused);
    return finish();
}
