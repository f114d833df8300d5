/* What surrounds an operation: weak scalars, where, results written into given arrays (also
 * overlapping ones), the short names, waiting after each operation, and the launch log. */
#include "check.h"

static pvg_array *floats(const float *values, int64_t n) {
    return array_of(PVG_FLOAT32, SHAPE(n), values);
}

static void weak_scalars_keep_the_dtype(void) {
    const int64_t two = 2;
    const double half = 0.5;
    const uint8_t truth = 1;
    for (int d = 0; d < dtype_count; d++) {
        int dtype = all_dtypes[d], is_bool = dtype == PVG_BOOL;
        pvg_array *a = MADE(pvg_array_empty(0, dtype, SHAPE(40)));
        CHECK_OK(pvg_fill(a, PVG_SCALAR_BOOL, &truth));
        pvg_array *with_int = MADE(pvg_binary_scalar(PVG_ADD, a, PVG_SCALAR_INT, &two, 1, NULL));
        CHECK_EQUAL(pvg_array_dtype(with_int), is_bool ? PVG_INT64 : dtype);
        CHECK_CLOSE(element(with_int, 39), 3, 0);
        pvg_array *with_float =
            MADE(pvg_binary_scalar(PVG_MULTIPLY, a, PVG_SCALAR_FLOAT, &half, 1, NULL));
        CHECK_EQUAL(pvg_array_dtype(with_float), is_float(dtype) ? dtype : PVG_FLOAT32);
        CHECK_CLOSE(element(with_float, 0), 0.5, 0);
        pvg_array *with_bool =
            MADE(pvg_binary_scalar(PVG_MAXIMUM, a, PVG_SCALAR_BOOL, &truth, 1, NULL));
        CHECK_EQUAL(pvg_array_dtype(with_bool), dtype);
        pvg_array *less = MADE(pvg_binary_scalar(PVG_LESS, a, PVG_SCALAR_INT, &two, 1, NULL));
        CHECK_EQUAL(pvg_array_dtype(less), PVG_BOOL);
        CHECK_CLOSE(element(less, 7), 1, 0);
        RELEASE(a, with_int, with_float, with_bool, less);
    }
}

static void weak_scalars_on_either_side(void) {
    const int64_t ten = 10;
    pvg_array *a = floats((const float[]){1, 2, 4}, 3);
    pvg_array *right = MADE(pvg_binary_scalar(PVG_SUBTRACT, a, PVG_SCALAR_INT, &ten, 1, NULL));
    pvg_array *left = MADE(pvg_binary_scalar(PVG_DIVIDE, a, PVG_SCALAR_INT, &ten, 0, NULL));
    CHECK_ARRAY(right, PVG_FLOAT32, SHAPE(3), ((const float[]){-9, -8, -6}), 0);
    CHECK_ARRAY(left, PVG_FLOAT32, SHAPE(3), ((const float[]){10, 5, 2.5f}), 0);
    CHECK(pvg_binary_scalar(PVG_SUBTRACT, a, PVG_SCALAR_INT, &ten, 0, a) == a);
    CHECK_ARRAY(a, PVG_FLOAT32, SHAPE(3), ((const float[]){9, 8, 6}), 0);
    RELEASE(a, right, left);
}

static void weak_scalars_that_do_not_fit(void) {
    const int64_t large = 300, negative = -1, beyond = (int64_t)1 << 40;
    const uint64_t largest = UINT64_MAX;
    pvg_array *bytes = array_of(PVG_UINT8, SHAPE(2), ((const uint8_t[]){1, 2}));
    pvg_array *integers = MADE(pvg_cast(bytes, PVG_INT32, NULL)),
              *unsigned64 = MADE(pvg_cast(bytes, PVG_UINT64, NULL));
    CHECK_NULL(PVG_ERROR_OVERFLOW,
               pvg_binary_scalar(PVG_ADD, bytes, PVG_SCALAR_INT, &large, 1, NULL));
    CHECK_NULL(PVG_ERROR_OVERFLOW,
               pvg_binary_scalar(PVG_ADD, bytes, PVG_SCALAR_INT, &negative, 1, bytes));
    CHECK_NULL(PVG_ERROR_OVERFLOW,
               pvg_binary_scalar(PVG_ADD, integers, PVG_SCALAR_INT, &beyond, 1, NULL));
    CHECK_NULL(PVG_ERROR_OVERFLOW,
               pvg_binary_scalar(PVG_ADD, integers, PVG_SCALAR_UINT, &largest, 1, NULL));
    CHECK_NULL(PVG_ERROR_OVERFLOW,
               pvg_binary_scalar(PVG_ADD, unsigned64, PVG_SCALAR_INT, &negative, 1, NULL));
    pvg_array *most =
        MADE(pvg_binary_scalar(PVG_MAXIMUM, unsigned64, PVG_SCALAR_UINT, &largest, 1, NULL));
    CHECK_ARRAY(most, PVG_UINT64, SHAPE(2), ((const uint64_t[]){UINT64_MAX, UINT64_MAX}), 0);
    CHECK_ARRAY(bytes, PVG_UINT8, SHAPE(2), ((const uint8_t[]){1, 2}), 0);
    RELEASE(bytes, integers, unsigned64, most);
}

static void where(void) {
    const uint8_t truth[3] = {1, 0, 1};
    pvg_array *condition = array_of(PVG_BOOL, SHAPE(3), truth);
    pvg_array *a = array_of(PVG_INT32, SHAPE(2, 1), ((const int32_t[]){10, 20}));
    pvg_array *b = floats((const float[]){0.5f, NAN, -1}, 3);
    pvg_array *result = MADE(pvg_where(condition, a, b, NULL)); /* int32 and float32 make float64 */
    CHECK_ARRAY(result, PVG_FLOAT64, SHAPE(2, 3), ((const double[]){10, NAN, 10, 20, NAN, 20}),
                1e-300);
    CHECK_NULL(PVG_ERROR_TYPE, pvg_where(b, a, a, NULL));
    CHECK(pvg_where(condition, b, b, b) == b);
    CHECK_ARRAY(b, PVG_FLOAT32, SHAPE(3), ((const float[]){0.5f, NAN, -1}), 1e-300);
    RELEASE(condition, a, b, result);
    for (int d = 0; d < dtype_count; d++)
        for (int64_t n = 1; n < 3000; n = n * 3 + 30) {
            uint64_t state = (uint64_t)n;
            uint8_t *mask = small_integers(PVG_BOOL, n, &state);
            void *x = small_integers(all_dtypes[d], n, &state),
                 *y = small_integers(all_dtypes[d], n, &state);
            condition = array_of(PVG_BOOL, SHAPE(n), mask);
            a = array_of(all_dtypes[d], SHAPE(n), x);
            b = array_of(all_dtypes[d], SHAPE(n), y);
            for (int64_t i = 0; i < n; i++)
                if (mask[i]) set_value(all_dtypes[d], y, i, value_at(all_dtypes[d], x, i));
            result = MADE(pvg_where(condition, a, b, NULL));
            CHECK_ARRAY(result, all_dtypes[d], SHAPE(n), y, 0);
            RELEASE(condition, a, b, result);
            free(mask);
            free(x);
            free(y);
        }
}

static void results_written_into_given_arrays(void) {
    const float twos[4] = {2, 4, 6, 8};
    pvg_array *a = floats((const float[]){1, 2, 3, 4}, 4),
              *wide = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(4)));
    pvg_array *narrow = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(4))),
              *integers = array_of(PVG_INT32, SHAPE(4), ((const int32_t[]){1, 2, 3, 4}));
    CHECK(pvg_binary(PVG_ADD, a, a, narrow) == narrow);
    CHECK_ARRAY(narrow, PVG_FLOAT32, SHAPE(4), twos, 0);
    CHECK(pvg_binary(PVG_ADD, a, a, wide) ==
          wide); /* float32 to float64, and float64 to float32 too */
    CHECK_ARRAY(wide, PVG_FLOAT64, SHAPE(4), ((const double[]){2, 4, 6, 8}), 0);
    CHECK(pvg_binary(PVG_ADD, wide, a, narrow) == narrow);
    CHECK_ARRAY(narrow, PVG_FLOAT32, SHAPE(4), ((const float[]){3, 6, 9, 12}), 0);
    CHECK(pvg_binary(PVG_ADD, integers, integers, narrow) == narrow);
    CHECK_ARRAY(narrow, PVG_FLOAT32, SHAPE(4), twos, 0);
    CHECK_NULL(PVG_ERROR_TYPE,
               pvg_binary(PVG_ADD, a, integers, integers)); /* not a float into an integer */
    CHECK_NULL(PVG_ERROR_TYPE, pvg_unary(PVG_EXP, integers, integers));
    CHECK_ARRAY(integers, PVG_INT32, SHAPE(4), ((const int32_t[]){1, 2, 3, 4}), 0);
    pvg_array *matrix = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2, 4)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_ADD, a, a, matrix)); /* `out` is not broadcast */
    CHECK_EQUAL(pvg_counter(PVG_COUNT_LIVE_ARRAYS), 5); /* and no reference was added to it */
    RELEASE(a, wide, narrow, integers, matrix);
}

/* Operands that overlap the result in every way: as if they had been copied first. */
static void overlapping_operands(void) {
    enum { N = 600 };
    const int64_t zero = 0, one = 1, backwards = -1, n = N - 1, last = N - 1, all = N;
    for (int way = 0; way < 4; way++) {
        float values[N], expected[N];
        for (int i = 0; i < N; i++) values[i] = expected[i] = (float)i;
        pvg_array *a = floats(values, N), *head = MADE(pvg_slice(a, &zero, &one, &n));
        pvg_array *tail = MADE(pvg_slice(a, &one, &one, &n)),
                  *reversed = MADE(pvg_slice(a, &last, &backwards, &all));
        if (way == 0) MADE(pvg_binary(PVG_ADD, head, head, tail));
        if (way == 1) MADE(pvg_binary(PVG_ADD, tail, head, head));
        if (way == 2) MADE(pvg_binary(PVG_ADD, a, a, reversed));
        if (way == 3) MADE(pvg_binary(PVG_ADD, a, reversed, a));
        for (int i = 0; i < N; i++) {
            if (way == 0 && i > 0) expected[i] = 2 * values[i - 1];
            if (way == 1 && i < N - 1) expected[i] = values[i] + values[i + 1];
            if (way == 2) expected[i] = 2 * values[N - 1 - i];
            if (way == 3) expected[i] = N - 1;
        }
        CHECK_ARRAY(a, PVG_FLOAT32, SHAPE(N), expected, 0);
        RELEASE(a, head, tail, reversed);
    }
    float square[40 * 40], expected[40 * 40]; /* a += a.T */
    for (int i = 0; i < 1600; i++) square[i] = (float)i;
    for (int i = 0; i < 1600; i++) expected[i] = square[i] + square[i % 40 * 40 + i / 40];
    const int axes[2] = {1, 0};
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(40, 40), square),
              *transposed = MADE(pvg_permute(a, axes));
    MADE(pvg_binary(PVG_ADD, a, transposed, a));
    CHECK_ARRAY(a, PVG_FLOAT32, SHAPE(40, 40), expected, 0);
    RELEASE(a, transposed);
}

static void short_names(void) {
    pvg_array *a = floats((const float[]){1, 4}, 2), *b = floats((const float[]){2, 2}, 2),
              *results[9];
    int n = 0;
    CHECK_ARRAY(results[n++] = MADE(pvg_add(a, b)), PVG_FLOAT32, SHAPE(2), ((const float[]){3, 6}),
                0);
    CHECK_ARRAY(results[n++] = MADE(pvg_subtract(a, b)), PVG_FLOAT32, SHAPE(2),
                ((const float[]){-1, 2}), 0);
    CHECK_ARRAY(results[n++] = MADE(pvg_multiply(a, b)), PVG_FLOAT32, SHAPE(2),
                ((const float[]){2, 8}), 0);
    CHECK_ARRAY(results[n++] = MADE(pvg_divide(a, b)), PVG_FLOAT32, SHAPE(2),
                ((const float[]){0.5f, 2}), 0);
    CHECK_CLOSE(element(results[n++] = MADE(pvg_exp(a)), 0), exp(1), 1e-6);
    CHECK_CLOSE(element(results[n++] = MADE(pvg_tanh(a)), 0), tanh(1), 1e-6);
    CHECK_CLOSE(element(results[n++] = MADE(pvg_sigmoid(a)), 0), 1 / (1 + exp(-1)), 1e-6);
    CHECK_CLOSE(element(results[n++] = MADE(pvg_relu(a)), 1), 4, 0);
    CHECK_CLOSE(element(results[n++] = MADE(pvg_sum(a)), 0), 5, 0);
    while (n > 0) RELEASE(results[--n]);
    RELEASE(a, b);
}

static void waiting_after_each_operation(void) {
    pvg_array *a = floats((const float[]){1, 2}, 2);
    int64_t waits = pvg_counter(PVG_COUNT_WAITS);
    pvg_array *b = MADE(pvg_add(a, a));
    CHECK_EQUAL(pvg_counter(PVG_COUNT_WAITS), waits); /* by default nobody waits */
    CHECK_OK(pvg_set_option(PVG_OPTION_SYNC, 1));
    pvg_array *c = MADE(pvg_add(a, a));
    CHECK(pvg_counter(PVG_COUNT_WAITS) > waits);
    CHECK_OK(pvg_set_option(PVG_OPTION_SYNC, 0));
    RELEASE(a, b, c);
}

static void launch_log(void) {
    pvg_array *a = floats((const float[]){1, 2}, 2);
    CHECK(strcmp(pvg_launch_log(), "") == 0);
    CHECK_OK(pvg_set_option(PVG_OPTION_LAUNCH_LOG, 1));
    int64_t before = pvg_counter(PVG_COUNT_LAUNCHES);
    for (int i = 0; i < 3; i++) MADE(pvg_binary(PVG_ADD, a, a, a));
    int64_t launched = pvg_counter(PVG_COUNT_LAUNCHES) - before, logged = 0;
    CHECK_OK(pvg_set_option(PVG_OPTION_LAUNCH_LOG, 0));
    MADE(pvg_unary(PVG_NEGATIVE, a, a));
    for (const char *line = pvg_launch_log(); *line; line = strchr(line, '\n') + 1) {
        char *end;
        CHECK(strtoull(line, &end, 16) > 0 && *end == ' '); /* offset launches expression */
        logged += strtoll(end, &end, 10);
        CHECK(*end == ' ' && strchr(end, '\n') && strstr(end, "_kernel"));
        if (!strchr(line, '\n')) break;
    }
    CHECK(launched >= 3);
    CHECK_EQUAL(logged, launched);
    RELEASE(a);
}

int main(void) {
    begin("test_operands");
    RUN(weak_scalars_keep_the_dtype);
    RUN(weak_scalars_on_either_side);
    RUN(weak_scalars_that_do_not_fit);
    RUN(where);
    RUN(results_written_into_given_arrays);
    RUN(overlapping_operands);
    RUN(short_names);
    RUN(waiting_after_each_operation);
    RUN(launch_log);
    return finish();
}
