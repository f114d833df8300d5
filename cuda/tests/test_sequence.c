/* pvg_sequence, pvg_eye and pvg_clip: every dtype, at every offset into memory, and that nothing
 * beside the array is written. */
#include "check.h"

enum { N = 37, ALL = N + 20 };

static void every_offset(void) {
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++) {
        const int dtype = all_dtypes[d];
        if (dtype == PVG_BOOL || kind_of(dtype) == 'c') continue;
        const int64_t integers[2] = {3, 2};
        const double floats[3] = {3, 0.5, 40};
        for (int64_t offset = 0; offset < 16; offset++)
            for (int64_t step = 1; step <= 2; step++) {
                const int64_t n = step == 1 ? N : 20;
                pvg_array *base = random_array(dtype, SHAPE(ALL), &state);
                pvg_array *a = MADE(pvg_slice(base, &offset, &step, &n));
                void *expected = host_copy(base);
                for (int64_t i = 0; i < n; i++) {
                    const double x = is_float(dtype) ? (i == n - 1 ? 40.0 : 3 + 0.5 * (double)i)
                                                     : (double)(3 + 2 * i);
                    set_value(dtype, expected, offset + i * step, x);
                }
                if (is_float(dtype))
                    CHECK_OK(pvg_sequence(a, PVG_SCALAR_FLOAT, floats, floats + 1, floats + 2));
                else
                    CHECK_OK(pvg_sequence(a, PVG_SCALAR_INT, integers, integers + 1, NULL));
                CHECK_ARRAY(base, dtype, SHAPE(ALL), expected, 0);
                RELEASE(base, a);
                free(expected);
            }
    }
}

static void matrices(void) {
    static const int64_t shapes[][3] = {{1, 1, 1}, {2, 5, 7}, {3, 9, 4}, {2, 1, 70}, {2, 70, 1}};
    for (int d = 0; d < dtype_count; d++)
        for (size_t i = 0; i < COUNT(shapes); i++)
            for (int64_t diagonal = -8; diagonal <= 8; diagonal += 4) {
                const int dtype = all_dtypes[d];
                const int64_t n = product(3, shapes[i]), columns = shapes[i][2];
                if (kind_of(dtype) == 'c') continue;
                void *expected = host_memory(dtype, n);
                for (int64_t k = 0; k < n; k++)
                    set_value(dtype, expected, k,
                              k % columns - k / columns % shapes[i][1] == diagonal);
                pvg_array *a = MADE(pvg_array_empty(0, dtype, 3, shapes[i]));
                CHECK_OK(pvg_eye(a, diagonal));
                CHECK_ARRAY(a, dtype, 3, shapes[i], expected, 0);
                RELEASE(a);
                free(expected);
            }
}

static void bounds(void) {
    uint64_t state = 2;
    const int64_t low = 1, high = 5, one = 1, n = N;
    for (int d = 0; d < dtype_count; d++) {
        const int dtype = all_dtypes[d];
        if (dtype == PVG_BOOL || kind_of(dtype) == 'c') continue;
        for (int64_t offset = 0; offset < 5; offset++) {
            pvg_array *base = random_array(dtype, SHAPE(ALL), &state);
            pvg_array *a = MADE(pvg_slice(base, &offset, &one, &n));
            void *expected = host_copy(base);
            for (int64_t i = offset; i < offset + n; i++)
                set_value(dtype, expected, i, fmin(fmax(value_at(dtype, expected, i), 1), 5));
            CHECK(pvg_clip(a, PVG_SCALAR_INT, &low, &high, a) == a);
            CHECK_ARRAY(base, dtype, SHAPE(ALL), expected, 0);
            RELEASE(base, a);
            free(expected);
        }
    }
}

/* The same bounds as arrays: of one element, repeated, and one each. */
static void bounds_of_arrays(void) {
    uint64_t state = 4;
    const int64_t low = 1, high = 5, one = 1, n = N;
    for (int d = 0; d < dtype_count; d++) {
        const int dtype = all_dtypes[d];
        if (dtype == PVG_BOOL || kind_of(dtype) == 'c') continue;
        pvg_array *least = MADE(pvg_array_empty(0, dtype, SHAPE(1)));
        pvg_array *most = MADE(pvg_array_empty(0, dtype, SHAPE(N)));
        CHECK_OK(pvg_fill(least, PVG_SCALAR_INT, &low));
        CHECK_OK(pvg_fill(most, PVG_SCALAR_INT, &high));
        for (int64_t offset = 0; offset < 5; offset++) {
            pvg_array *base = random_array(dtype, SHAPE(ALL), &state);
            pvg_array *a = MADE(pvg_slice(base, &offset, &one, &n));
            void *expected = host_copy(base);
            for (int64_t i = offset; i < offset + n; i++)
                set_value(dtype, expected, i, fmin(fmax(value_at(dtype, expected, i), 1), 5));
            CHECK(pvg_within(a, least, most, a) == a);
            CHECK_ARRAY(base, dtype, SHAPE(ALL), expected, 0);
            RELEASE(base, a);
            free(expected);
        }
        RELEASE(least, most);
    }
}

static void what_is_refused(void) {
    uint64_t state = 3;
    const int64_t one = 1, much = 300;
    const double half = 0.5;
    pvg_array *row = random_array(PVG_INT8, SHAPE(4), &state),
              *matrix = random_array(PVG_FLOAT32, SHAPE(2, 2), &state),
              *bools = random_array(PVG_BOOL, SHAPE(3), &state);
    pvg_array *fixed = MADE(pvg_broadcast_to(row, SHAPE(2, 4)));
    CHECK_STATUS(pvg_sequence(matrix, PVG_SCALAR_FLOAT, &half, &half, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_sequence(row, PVG_SCALAR_FLOAT, &half, &half, NULL), PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_sequence(bools, PVG_SCALAR_INT, &one, &one, NULL), PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_sequence(row, PVG_SCALAR_BOOL, &one, &one, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_sequence(row, PVG_SCALAR_INT, NULL, &one, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_sequence(NULL, PVG_SCALAR_INT, &one, &one, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_eye(row, 0), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_eye(fixed, 0), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_eye(NULL, 0), PVG_ERROR_VALUE);
    CHECK_NULL(PVG_ERROR_TYPE, pvg_clip(bools, PVG_SCALAR_INT, &one, NULL, NULL));
    CHECK_NULL(PVG_ERROR_OVERFLOW, pvg_clip(row, PVG_SCALAR_INT, NULL, &much, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_clip(row, PVG_SCALAR_FLOAT, &half, NULL, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_clip(NULL, PVG_SCALAR_INT, &one, NULL, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_within(bools, bools, bools, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_within(row, row, matrix, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_within(row, NULL, row, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_within(row, row, row, fixed));
    RELEASE(row, matrix, bools, fixed);
}

int main(void) {
    begin("test_sequence");
    RUN(every_offset);
    RUN(matrices);
    RUN(bounds);
    RUN(bounds_of_arrays);
    RUN(what_is_refused);
    return finish();
}
