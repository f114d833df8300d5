/* pvg_isclose and pvg_nan_to_num: every float, at every offset into memory, with and without an
 * out, and that nothing beside it is written. */
#include "check.h"

enum { N = 37, ALL = 60 };

static const int floats[] = {PVG_FLOAT16, PVG_BFLOAT16, PVG_FLOAT32, PVG_FLOAT64};

/* Values of every kind in a row of memory; those of `other` are sometimes close. */
static double special(int64_t i, int other) {
    const double kinds[] = {1, -2, NAN, INFINITY, -INFINITY, 0, 8, 100};
    double x = kinds[(i + (other && i % 5 == 0)) % 8];
    return other && i % 3 == 0 ? x + 0.5 : x;
}

static pvg_array *row_with(int dtype, int other) {
    void *values = host_memory(dtype, ALL);
    for (int64_t i = 0; i < ALL; i++) set_value(dtype, values, i, special(i, other));
    pvg_array *a = MADE(pvg_array_empty(0, dtype, SHAPE(ALL)));
    CHECK_OK(pvg_copy_from_host(a, values, NULL));
    free(values);
    return a;
}

static int is_close(double a, double b, int equal_nan) {
    if (isnan(a) || isnan(b)) return equal_nan && isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= 0.25 + 0.0625 * fabs(b);
}

static void closeness(void) {
    const int64_t n = N, one = 1;
    for (size_t d = 0; d < COUNT(floats); d++)
        for (int64_t offset = 0; offset < 16; offset++)
            for (int equal_nan = 0; equal_nan <= 1; equal_nan++) {
                const int64_t beside = 15 - offset;
                pvg_array *first = row_with(floats[d], 0), *second = row_with(floats[d], 1);
                pvg_array *a = MADE(pvg_slice(first, &offset, &one, &n)),
                          *b = MADE(pvg_slice(second, &beside, &one, &n));
                uint64_t state = 4;
                pvg_array *base = random_array(PVG_BOOL, SHAPE(ALL), &state);
                pvg_array *out = MADE(pvg_slice(base, &offset, &one, &n));
                uint8_t *expected = host_copy(base);
                for (int64_t i = 0; i < N; i++)
                    expected[offset + i] = (uint8_t)is_close(special(offset + i, 0),
                                                             special(beside + i, 1), equal_nan);
                CHECK(pvg_isclose(a, b, 0.0625, 0.25, equal_nan, out) == out);
                CHECK_ARRAY(base, PVG_BOOL, SHAPE(ALL), expected, 0);
                pvg_array *made = MADE(pvg_isclose(a, b, 0.0625, 0.25, equal_nan, NULL));
                CHECK_ARRAY(made, PVG_BOOL, SHAPE(N), expected + offset, 0);
                RELEASE(first, second, a, b, base, out, made);
                free(expected);
            }
}

static void mixed(void) {
    pvg_array *a = row_with(PVG_FLOAT32, 0), *b = row_with(PVG_FLOAT64, 0);
    pvg_array *column = MADE(pvg_reshape(b, SHAPE(ALL, 1)));
    pvg_array *close = MADE(pvg_isclose(a, column, 0, 0, 1, NULL));
    uint8_t expected[ALL * ALL];
    for (int i = 0; i < ALL * ALL; i++) expected[i] = i % ALL % 8 == i / ALL % 8;
    CHECK_ARRAY(close, PVG_BOOL, SHAPE(ALL, ALL), expected, 0);
    RELEASE(a, b, column, close);
}

static void numbers(void) {
    const int64_t n = N, one = 1;
    for (size_t d = 0; d < COUNT(floats); d++)
        for (int64_t offset = 0; offset < 9; offset++) {
            pvg_array *base = row_with(floats[d], 0);
            pvg_array *a = MADE(pvg_slice(base, &offset, &one, &n));
            void *expected = host_copy(base);
            for (int64_t i = offset; i < offset + N; i++) {
                double x = special(i, 0);
                if (isnan(x)) set_value(floats[d], expected, i, 3);
                if (isinf(x)) set_value(floats[d], expected, i, x > 0 ? 4 : -5);
            }
            CHECK(pvg_nan_to_num(a, 3, 4, -5, a) == a);
            CHECK_ARRAY(base, floats[d], SHAPE(ALL), expected, 0);
            RELEASE(base, a);
            free(expected);
        }
}

static void what_is_refused(void) {
    uint64_t state = 5;
    pvg_array *whole = random_array(PVG_INT32, SHAPE(4), &state), *a = row_with(PVG_FLOAT32, 0);
    CHECK_NULL(PVG_ERROR_TYPE, pvg_isclose(whole, whole, 0, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_isclose(a, whole, 0, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_isclose(a, a, 0, 0, 2, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_isclose(a, NULL, 0, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_nan_to_num(whole, 0, 1, 2, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_nan_to_num(NULL, 0, 1, 2, NULL));
    pvg_array *other = MADE(pvg_reshape(a, SHAPE(2, 30)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_nan_to_num(a, 0, 1, 2, other));
    RELEASE(whole, a, other);
}

int main(void) {
    begin("test_nearness");
    RUN(closeness);
    RUN(mixed);
    RUN(numbers);
    RUN(what_is_refused);
    return finish();
}
