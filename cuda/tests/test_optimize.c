/* pvg_optimize, pvg_total_norm and pvg_clip_norm: formulas on the host, lists longer than a launch
 * takes, at every offset into memory, and what is refused. */
#include "check.h"

#ifdef __SANITIZE_THREAD__
enum { MOST = 140 }; /* of the others the arrays alone would take minutes to make */
#else
enum { MOST = 1400 }; /* more than one launch takes, which are long from some 70 on */
#endif

typedef struct { double numbers[PVG_UPDATE_COUNT]; } Numbers;

static Numbers with_rate(double rate) {
    Numbers n = {{0}};
    n.numbers[PVG_UPDATE_RATE] = rate;
    return n;
}

/* A float64 array of `size` values, `offset` elements into its memory. */
static pvg_array *at_offset(int64_t size, int64_t offset, uint64_t *state, pvg_array **base) {
    const int64_t one[1] = {1};
    *base = random_array(PVG_FLOAT64, SHAPE(offset + size), state);
    return MADE(pvg_slice(*base, &offset, one, &size));
}

/* One step of an algorithm for one element: x is the parameter, its states and the gradient. */
static void step_on_host(int algorithm, const double *n, double *x) {
    if (algorithm == PVG_SGD) {
        const double g = x[2] + x[0] * n[PVG_UPDATE_WEIGHT_DECAY];
        x[1] = x[1] * n[PVG_UPDATE_MOMENTUM] + g;
        x[0] -= x[1] * n[PVG_UPDATE_RATE];
    } else if (algorithm == PVG_ADAM) {
        const double one = n[PVG_UPDATE_BETA1], two = n[PVG_UPDATE_BETA2], g = x[3];
        x[1] = x[1] * one + g * (1 - one);
        x[2] = x[2] * two + g * g * (1 - two);
        x[0] = x[0] * (1 - n[PVG_UPDATE_SHRINK]) -
               x[1] / n[PVG_UPDATE_SHARE1] * n[PVG_UPDATE_RATE] /
                   (sqrt(x[2] / n[PVG_UPDATE_SHARE2]) + n[PVG_UPDATE_EPSILON]);
    } else {
        const double two = n[PVG_UPDATE_BETA2], g = x[2];
        x[1] = x[1] * two + g * g * (1 - two);
        x[0] -= g / (sqrt(x[1]) + n[PVG_UPDATE_EPSILON]) * n[PVG_UPDATE_RATE];
    }
}

/* n parameters of sizes around that of a chunk, whose second state is not negative. */
static void check_step(int line, int algorithm, const double *numbers, int n, uint64_t *state) {
    Numbers given = {{0}};
    given.numbers[PVG_UPDATE_MOMENTUM] = numbers[PVG_UPDATE_MOMENTUM];
    given.numbers[PVG_UPDATE_SHARE1] = given.numbers[PVG_UPDATE_SHARE2] = 1;
    pvg_array *renewed = NULL;
    if (n % 2) { /* what the kernels read; the call then only says how many states there are */
        renewed = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(PVG_UPDATE_COUNT)));
        CHECK_OK(pvg_copy_from_host(renewed, numbers, NULL));
    }
    const int states = algorithm == PVG_ADAM ? 2 : 1, rows = states + 2;
    pvg_array *arrays[4 * MOST], *bases[4 * MOST];
    double *before[4 * MOST];
    for (int i = 0; i < n; i++) {
        const int64_t size = random_integer(state, 0, n > 9 ? 5 : 1100);
        for (int r = 0; r < rows; r++) {
            pvg_array **a = &arrays[r * n + i];
            *a = at_offset(size, random_integer(state, 0, 3), state, &bases[r * n + i]);
            if (r >= 1 && r == states) CHECK(pvg_unary(PVG_ABS, *a, *a) == *a);
            before[r * n + i] = host_copy(*a);
        }
    }
    CHECK_OK(pvg_optimize(algorithm, arrays, (const pvg_array *const *)arrays + (rows - 1) * n, n,
                          renewed ? given.numbers : numbers, renewed));
    for (int i = 0; i < n; i++) {
        double *after = host_copy(arrays[i]);
        for (int64_t e = 0; e < pvg_array_size(arrays[i]); e++) {
            double x[4];
            for (int r = 0; r < rows; r++) x[r] = before[r * n + i][e];
            step_on_host(algorithm, numbers, x);
            check_close(__FILE__, line, "a parameter", after[e], x[0], 1e-12 * (1 + fabs(x[0])));
        }
        free(after);
    }
    for (int i = 0; i < rows * n; i++) {
        RELEASE(arrays[i], bases[i]);
        free(before[i]);
    }
    CHECK_OK(pvg_array_release(renewed));
}

static void algorithms(void) {
    uint64_t state = 1;
    Numbers sgd = with_rate(0.1), adam = with_rate(0.01), rmsprop = with_rate(0.01);
    sgd.numbers[PVG_UPDATE_MOMENTUM] = 0.9, sgd.numbers[PVG_UPDATE_WEIGHT_DECAY] = 0.01;
    adam.numbers[PVG_UPDATE_BETA1] = 0.9, adam.numbers[PVG_UPDATE_BETA2] = 0.99;
    adam.numbers[PVG_UPDATE_SHARE1] = 1 - pow(0.9, 3);
    adam.numbers[PVG_UPDATE_SHARE2] = 1 - pow(0.99, 3);
    adam.numbers[PVG_UPDATE_SHRINK] = 0.01, adam.numbers[PVG_UPDATE_EPSILON] = 1e-3;
    rmsprop.numbers[PVG_UPDATE_BETA2] = 0.9, rmsprop.numbers[PVG_UPDATE_EPSILON] = 1e-3;
    for (int n = 1; n <= MOST; n = n * 3 + n / 3) {
        check_step(__LINE__, PVG_SGD, sgd.numbers, n, &state);
        check_step(__LINE__, PVG_ADAM, adam.numbers, n, &state);
        check_step(__LINE__, PVG_RMSPROP, rmsprop.numbers, n, &state);
    }
    check_step(__LINE__, PVG_SGD, sgd.numbers, 140, &state);
    check_step(__LINE__, PVG_SGD, sgd.numbers, MOST, &state);
}

static void norms(void) {
    uint64_t state = 2;
    pvg_array *arrays[MOST], *bases[MOST];
    for (int n = 1; n <= MOST; n += n < 139 ? 46 : 1261) {
        double sums[3] = {0, 0, 0}, *before[MOST];
        for (int i = 0; i < n; i++) {
            arrays[i] = at_offset(random_integer(&state, 0, n == 1 ? 50000 : 90),
                                  random_integer(&state, 0, 3), &state, &bases[i]);
            before[i] = host_copy(arrays[i]);
            for (int64_t e = 0; e < pvg_array_size(arrays[i]); e++) {
                const double x = fabs(before[i][e]);
                sums[0] += x, sums[1] += x * x, sums[2] = x > sums[2] ? x : sums[2];
            }
        }
        const double orders[3] = {1, 2, HUGE_VAL};
        sums[1] = sqrt(sums[1]);
        for (int k = 0; k < 3; k++) {
            pvg_array *norm = MADE(pvg_total_norm((const pvg_array *const *)arrays, n, orders[k]));
            double *value = host_copy(norm);
            CHECK_CLOSE(*value, sums[k], 1e-11 * sums[k]);
            if (orders[k] == 2) {
                CHECK_OK(pvg_clip_norm(arrays, n, norm, 0.5 * sums[k]));
                for (int i = 0; i < n; i++) {
                    double *after = host_copy(arrays[i]);
                    for (int64_t e = 0; e < pvg_array_size(arrays[i]); e++)
                        CHECK_CLOSE(after[e], before[i][e] * 0.5, 1e-6 * fabs(before[i][e]));
                    free(after);
                }
                for (int i = 0; i < n; i++) /* for the third norm */
                    CHECK_OK(pvg_copy_from_host(arrays[i], before[i], NULL));
            }
            free(value);
            RELEASE(norm);
        }
        for (int i = 0; i < n; i++) {
            RELEASE(arrays[i], bases[i]);
            free(before[i]);
        }
    }
}

static void refusals(void) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3)));
    pvg_array *b = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(4)));
    pvg_array *whole = MADE(pvg_array_empty(0, PVG_INT32, SHAPE(3)));
    pvg_array *view = MADE(pvg_broadcast_to(a, SHAPE(2, 3)));
    pvg_array *one[2] = {a, b}, *read_only[1] = {view}, *none[1] = {NULL}, *ints[1] = {whole};
    const pvg_array *gradient[1] = {a}, *other[1] = {b}, *wide[1] = {view}, *integers[1] = {whole};
    Numbers n = with_rate(1);
    CHECK_OK(pvg_optimize(PVG_SGD, NULL, NULL, 0, n.numbers, NULL));
    CHECK_STATUS(pvg_optimize(3, one, gradient, 1, n.numbers, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_optimize(PVG_ADAM, one, gradient, 1, n.numbers, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_optimize(PVG_SGD, one, gradient, 1, NULL, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_optimize(PVG_SGD, one, gradient, -1, n.numbers, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_optimize(PVG_SGD, one, NULL, 1, n.numbers, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_optimize(PVG_SGD, none, gradient, 1, n.numbers, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_optimize(PVG_SGD, one, other, 1, n.numbers, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_optimize(PVG_SGD, read_only, wide, 1, n.numbers, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_optimize(PVG_SGD, one, integers, 1, n.numbers, NULL), PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_optimize(PVG_SGD, ints, integers, 1, n.numbers, NULL), PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_optimize(PVG_SGD, one, gradient, 1, n.numbers, a), PVG_ERROR_TYPE);
    pvg_array *few = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(PVG_UPDATE_COUNT - 1)));
    CHECK_STATUS(pvg_optimize(PVG_SGD, one, gradient, 1, n.numbers, few), PVG_ERROR_VALUE);
    RELEASE(few);
    n.numbers[PVG_UPDATE_SHARE1] = 1, n.numbers[PVG_UPDATE_SHARE2] = 1.5;
    CHECK_STATUS(pvg_optimize(PVG_ADAM, one, gradient, 1, n.numbers, NULL), PVG_ERROR_VALUE);
    n.numbers[PVG_UPDATE_MOMENTUM] = 1;
    CHECK_STATUS(pvg_optimize(PVG_SGD, one, gradient, 1, n.numbers, NULL), PVG_ERROR_VALUE);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_total_norm(NULL, 1, 2));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_total_norm(gradient, 0, 2));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_total_norm(gradient, 1, 3));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_total_norm(integers, 1, 2));
    CHECK_STATUS(pvg_clip_norm(none, 1, NULL, 1), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_clip_norm(one, 1, b, 1), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_clip_norm(one, 1, whole, 1), PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_clip_norm(NULL, 1, a, 1), PVG_ERROR_VALUE);
    RELEASE(a, b, whole, view);
}

int main(void) {
    begin("test_optimize");
    RUN(algorithms);
    RUN(norms);
    RUN(refusals);
    return finish();
}
