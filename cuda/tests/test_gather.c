/* pvg_gather and pvg_scatter: every dtype, rows at every offset into memory, the last of several
 * values, and what is refused; the same by keys. */
#include "check.h"

enum { ROWS = 9, PICKED = 13 };

/* Bytes of the rows of `values` that `rows` names, one behind the other; free() them. */
static void *picked_rows(int dtype, const void *values, const int64_t *rows, int64_t columns) {
    const size_t row = (size_t)(columns * pvg_dtype_size(dtype));
    char *result = malloc(row * PICKED + 1);
    for (int i = 0; i < PICKED; i++) {
        const int64_t from = rows[i] < 0 ? rows[i] + ROWS : rows[i];
        memcpy(result + (size_t)i * row, (const char *)values + (size_t)from * row, row);
    }
    return result;
}

/* Row numbers, some of them from the end, as an array of one plane. */
static pvg_array *random_rows(int dtype, int64_t *rows, uint64_t *state) {
    void *values = host_memory(dtype, PICKED);
    for (int i = 0; i < PICKED; i++) {
        rows[i] = random_integer(state, -ROWS, ROWS - 1);
        set_value(dtype, values, i, (double)rows[i]);
    }
    pvg_array *result = array_of(dtype, SHAPE(1, PICKED), values);
    free(values);
    return result;
}

static void rows_of_every_dtype_and_offset(void) {
    static const int index_dtypes[] = {PVG_INT64, PVG_INT32, PVG_INT8};
    static const int64_t lengths[] = {1, 2, 3, 4, 8, 16, 21};
    const int axis = 0;
    const int64_t one = 1;
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (size_t l = 0; l < COUNT(lengths); l++)
            for (int64_t offset = 0; offset < 5; offset++) {
                const int dtype = all_dtypes[d];
                const int64_t columns = lengths[l], n = ROWS * columns;
                int64_t numbers[PICKED];
                pvg_array *memory = random_array(dtype, SHAPE(n + 5), &state);
                pvg_array *part = MADE(pvg_slice(memory, &offset, &one, &n));
                pvg_array *a = MADE(pvg_reshape(part, SHAPE(ROWS, columns)));
                pvg_array *rows = random_rows(index_dtypes[offset % 3], numbers, &state);
                void *before = host_copy(a);
                void *expected = picked_rows(dtype, before, numbers, columns);
                pvg_array *result = MADE(pvg_gather(a, rows, 1, &axis, 0, (int)(offset & 1)));
                CHECK_ARRAY(result, dtype, SHAPE(PICKED, columns), expected, 0);

                pvg_array *values = random_array(dtype, SHAPE(PICKED, columns), &state);
                void *given = host_copy(values), *after = host_copy(memory);
                const size_t row = (size_t)(columns * pvg_dtype_size(dtype));
                char *first = (char *)after + offset * pvg_dtype_size(dtype);
                for (int i = 0; i < PICKED; i++)
                    memcpy(first + (size_t)(numbers[i] < 0 ? numbers[i] + ROWS : numbers[i]) * row,
                           (char *)given + (size_t)i * row, row);
                CHECK_OK(pvg_scatter(a, rows, 1, &axis, 0, (int)(offset & 1), values));
                CHECK_ARRAY(memory, dtype, SHAPE(n + 5), after, 0);
                RELEASE(memory, part, a, rows, result, values);
                free(before), free(expected), free(given), free(after);
            }
}

/* Planes of indices along two axes that do not touch, and where their axes go. */
static void two_axes(void) {
    uint64_t state = 2;
    const int axes[] = {2, 0};
    const int64_t planes[] = {1, 4, 2, -1, 0, 2}; /* of (2, 3): axis 2, then axis 0 */
    pvg_array *a = random_array(PVG_INT32, SHAPE(3, 4, 5), &state),
              *indices = array_of(PVG_INT64, SHAPE(2, 3), planes);
    for (int place = 0; place < 2; place++) {
        pvg_array *result = MADE(pvg_gather(a, indices, 2, axes, place, 0));
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 4; j++) {
                const int64_t row = planes[3 + i] < 0 ? planes[3 + i] + 3 : planes[3 + i];
                CHECK(element(result, place ? j * 3 + i : i * 4 + j) ==
                      element(a, row * 20 + j * 5 + planes[i]));
            }
        RELEASE(result);
    }
    RELEASE(a, indices);
}

/* Of several values for one element the last one stays: few are compared, many use a table or are
 * parted by ranges of elements. */
static void keep_the_last_value(int places, int narrow) {
    enum { PLACES = 5000, MOST = 20000 };
    static const int64_t counts[] = {1, 2, 300, 3072, 3073, MOST};
    static int64_t indices[MOST];
    static int32_t values[MOST], expected[PLACES], low[MOST];
    const int axis = 0, dtype = narrow ? PVG_INT32 : PVG_INT64;
    uint64_t state = 3;
    for (size_t c = 0; c < COUNT(counts); c++)
        for (int along = 0; along < 2; along++) {
            memset(expected, 0, sizeof expected);
            pvg_array *a = array_of(PVG_INT32, SHAPE(places), expected);
            for (int64_t i = 0; i < counts[c]; i++) {
                indices[i] = random_integer(&state, -places, places - 1);
                low[i] = (int32_t)indices[i];
                values[i] = (int32_t)i + 1;
                expected[indices[i] < 0 ? indices[i] + places : indices[i]] = values[i];
            }
            const void *given = narrow ? (const void *)low : (const void *)indices;
            pvg_array *v = array_of(PVG_INT32, SHAPE(counts[c]), values),
                      *i = along ? array_of(dtype, SHAPE(counts[c]), given)
                                 : array_of(dtype, SHAPE(1, counts[c]), given);
            CHECK_OK(pvg_scatter(a, i, 1, &axis, along ? PVG_ALONG : 0, 0, v));
            CHECK_ARRAY(a, PVG_INT32, SHAPE(places), expected, 0);
            RELEASE(a, v, i);
        }
}

static void the_last_value_stays(void) {
    for (int narrow = 0; narrow < 2; narrow++) {
        keep_the_last_value(37, narrow);
        keep_the_last_value(5000, narrow);
    }
}

static void what_is_refused(void) {
    uint64_t state = 4;
    const int axes[] = {0, 0, 7}, last = 1;
    pvg_array *a = random_array(PVG_FLOAT32, SHAPE(3, 4), &state);
    pvg_array *good = array_of(PVG_INT64, SHAPE(1, 2), (int64_t[]){0, -3}),
              *bad = array_of(PVG_INT64, SHAPE(1, 3), (int64_t[]){0, 3, -9}),
              *pair = array_of(PVG_INT64, SHAPE(2, 1), (int64_t[]){0, 0});
    void *before = host_copy(a);
    /* Found at the next wait, whatever it is for, and once; the first value of `a` stays as it is,
     * for a scatter of a's first row to itself is all that `bad` has in range. */
    pvg_array *nearest = MADE(pvg_gather(a, bad, 1, axes, 0, 0));
    CHECK_STATUS(pvg_synchronize(0), PVG_ERROR_INDEX);
    const char *text = strstr(pvg_last_error(), "gather: index ");
    CHECK(text != NULL && strstr(text, " is out of bounds for axis 0 with size 3") != NULL);
    CHECK_OK(pvg_synchronize(0));
    RELEASE(nearest);
    CHECK_OK(pvg_scatter(a, bad, 1, axes, 0, 0, a));
    CHECK_STATUS(pvg_synchronize(0), PVG_ERROR_INDEX);
    CHECK(strstr(pvg_last_error(), "scatter: index ") != NULL);
    CHECK_NULL(PVG_ERROR_TYPE, pvg_gather(a, a, 1, axes, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_gather(a, pair, 2, axes, 0, 0));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_gather(a, good, 1, axes + 2, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_gather(a, pair, 1, axes, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_gather(a, good, 0, axes, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_gather(a, good, 1, NULL, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_gather(a, good, 1, axes, 2, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_gather(a, good, 1, &axes[0], PVG_ALONG, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_gather(a, good, 1, &last, -2, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_gather(NULL, good, 1, axes, 0, 0));
    CHECK_STATUS(pvg_scatter(a, good, 1, axes, 0, 0, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_scatter(a, good, 1, axes, 0, 0, a), PVG_ERROR_VALUE);
    pvg_array *view = MADE(pvg_broadcast_to(a, SHAPE(2, 3, 4)));
    CHECK_STATUS(pvg_scatter(view, good, 1, axes, 0, 0, a), PVG_ERROR_VALUE);
    CHECK_ARRAY(a, PVG_FLOAT32, SHAPE(3, 4), before, 0);
    /* Vouched for in vain: the nearest. */
    pvg_array *clamped = MADE(pvg_gather(a, bad, 1, axes, 0, 1));
    CHECK(element(clamped, 4) == element(a, 8) && element(clamped, 8) == element(a, 0));
    RELEASE(a, good, bad, pair, view, clamped);
    free(before);
}

/* Keys: an array between a slice and an integer, two of different shapes, and bools. */
static void by_key(void) {
    uint64_t state = 5;
    pvg_array *a = random_array(PVG_INT32, SHAPE(4, 5, 6), &state),
              *rows = array_of(PVG_INT64, SHAPE(2, 1), (int64_t[]){3, -4}),
              *columns = array_of(PVG_INT8, SHAPE(3), (int8_t[]){0, 5, -1});
    const int64_t one[] = {PVG_KEY_SLICE | PVG_KEY_START,
                           2,
                           0,
                           0,
                           PVG_KEY_ARRAY,
                           (int64_t)columns,
                           0,
                           0,
                           PVG_KEY_INTEGER,
                           -2,
                           0,
                           0};
    const int64_t two[] = {PVG_KEY_ARRAY, (int64_t)rows,    0, 0, PVG_KEY_REST, 0, 0, 0,
                           PVG_KEY_ARRAY, (int64_t)columns, 0, 0};
    pvg_array *result = MADE(pvg_index_get(a, 3, two));
    CHECK(pvg_array_ndim(result) == 3);
    for (int64_t i = 0; i < 2 * 3 * 5; i++) {
        const int64_t row = i / 15 ? 0 : 3, column = i / 5 % 3 ? 5 : 0;
        CHECK(element(result, i) == element(a, row * 30 + i % 5 * 6 + column));
    }
    RELEASE(result);
    pvg_array *short_axis = array_of(PVG_INT8, SHAPE(3), (int8_t[]){0, 4, -1});
    int64_t middle[12];
    memcpy(middle, one, sizeof middle);
    middle[5] = (int64_t)short_axis;
    result = MADE(pvg_index_get(a, 3, middle));
    for (int64_t i = 0; i < 2 * 3; i++)
        CHECK(element(result, i) == element(a, (2 + i / 3) * 30 + (i % 3 ? 4 : 0) * 6 + 4));
    const int64_t seven = 7;
    pvg_array *apart = array_of(PVG_INT8, SHAPE(3), (int8_t[]){0, 4, 2}); /* no place twice */
    middle[5] = (int64_t)apart;
    CHECK_OK(pvg_index_set(a, 3, middle, NULL, PVG_SCALAR_INT, &seven));
    middle[5] = (int64_t)short_axis;
    CHECK(element(a, 2 * 30 + 4) == 7 && element(a, 3 * 30 + 4 * 6 + 4) == 7);
    CHECK_OK(pvg_index_set(a, 3, middle, result, 0, NULL));
    for (int64_t i = 0; i < 2 * 3; i++)
        CHECK(element(result, i) == element(a, (2 + i / 3) * 30 + (i % 3 ? 4 : 0) * 6 + 4));
    RELEASE(result);

    pvg_array *bools = array_of(PVG_BOOL, SHAPE(4), (uint8_t[]){1, 0, 0, 1});
    const int64_t mask[] = {PVG_KEY_ARRAY, (int64_t)bools, 0, 0, PVG_KEY_REST, 0, 0, 0};
    result = MADE(pvg_index_get(a, 1, mask));
    CHECK(pvg_array_size(result) == 2 * 30 && element(result, 30) == element(a, 90));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index_get(a, 2, mask));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index_get(a, 0, mask));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index_get(a, 1, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index_get(NULL, 1, mask));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index_get(a, 1, (int64_t[]){PVG_KEY_ARRAY, 8, 0, 0}));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index_get(a, 1, (int64_t[]){PVG_KEY_ARRAY + 1, 0, 0, 0}));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index_get(a, 1, (int64_t[]){PVG_KEY_SLICE, 0, 0, 0}));
    const int64_t large = INT64_MAX;
    CHECK_STATUS(pvg_index_set(a, 3, middle, NULL, PVG_SCALAR_INT, &large), PVG_ERROR_OVERFLOW);
    CHECK_STATUS(pvg_index_set(a, 1, mask, NULL, PVG_SCALAR_INT, &seven), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_index_set(a, 3, middle, bools, 0, NULL), PVG_ERROR_VALUE);
    RELEASE(a, rows, columns, apart, short_axis, bools, result);
}

int main(void) {
    begin("test_gather");
    RUN(rows_of_every_dtype_and_offset);
    RUN(two_axes);
    RUN(the_last_value_stays);
    RUN(by_key);
    RUN(what_is_refused);
    return finish();
}
