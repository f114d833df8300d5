/* pvg_sort, pvg_argsort and pvg_searchsorted beside a sort of the host's, at every offset. */
#include "check.h"

typedef struct {
    double value;
    int64_t place;
} Item;

static int direction; /* 1, or -1: descending */

static int compare(const void *a, const void *b) {
    const Item *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -direction : direction;
    return x->place < y->place ? -1 : 1;
}

/* Along the last axis of a contiguous array's values. */
static void check_sort(int line, const pvg_array *a, int descending) {
    const int ndim = pvg_array_ndim(a), dtype = pvg_array_dtype(a);
    const int64_t *shape = pvg_array_shape(a), n = pvg_array_size(a), length = shape[ndim - 1];
    void *values = host_copy(a), *sorted = host_memory(dtype, n);
    int64_t *places = host_memory(PVG_INT64, n);
    Item *items = malloc((size_t)(length ? length : 1) * sizeof *items);
    direction = descending ? -1 : 1;
    for (int64_t row = 0; row < n; row += length) {
        for (int64_t i = 0; i < length; i++)
            items[i].value = value_at(dtype, values, row + i), items[i].place = i;
        qsort(items, (size_t)length, sizeof *items, compare);
        for (int64_t i = 0; i < length; i++) {
            set_value(dtype, sorted, row + i, items[i].value);
            places[row + i] = items[i].place;
        }
    }
    pvg_array *in_order = MADE(pvg_sort(a, -1, descending, NULL));
    pvg_array *order = MADE(pvg_argsort(a, ndim - 1, descending));
    char text[80];
    snprintf(text, sizeof text, "sort of dtype %d, %" PRId64 " of %" PRId64, dtype, length, n);
    check_array(__FILE__, line, text, in_order, dtype, ndim, shape, sorted, 0);
    check_array(__FILE__, line, text, order, PVG_INT64, ndim, shape, places, 0);
    RELEASE(in_order, order);
    free(values);
    free(sorted);
    free(places);
    free(items);
}

static void every_dtype_and_length(void) {
    static const int64_t shapes[][2] = {{1, 1},    {130, 7},  {9, 64},   {3, 100}, {2, 1000},
                                        {1, 4096}, {1, 4097}, {3, 4100}, {0, 5},   {5, 0}};
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (size_t i = 0; i < COUNT(shapes); i++)
            for (int descending = 0; descending < 2; descending++) {
                pvg_array *a = random_array(all_dtypes[d], 2, shapes[i], &state);
                check_sort(__LINE__, a, descending);
                RELEASE(a);
            }
}

static void at_every_offset(void) {
    const int64_t one = 1, n = 133;
    const int dtypes[] = {PVG_BOOL, PVG_FLOAT16, PVG_INT32, PVG_FLOAT64};
    uint64_t state = 2;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int64_t offset = 0; offset < 16; offset++) {
            pvg_array *whole = random_array(dtypes[d], SHAPE(200), &state);
            pvg_array *a = MADE(pvg_slice(whole, &offset, &one, &n));
            check_sort(__LINE__, a, 0);
            RELEASE(whole, a);
        }
}

static void in_place(void) {
    static const int64_t shapes[][2] = {{5, 90}, {1, 5000}, {2, 4100}};
    const int dtypes[] = {PVG_INT32, PVG_INT64};
    uint64_t state = 3;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            pvg_array *a = random_array(dtypes[d], 2, shapes[i], &state);
            pvg_array *expected = MADE(pvg_sort(a, 1, 0, NULL));
            CHECK(pvg_sort(a, 1, 0, a) == a);
            void *values = host_copy(expected);
            check_array(__FILE__, __LINE__, "sort in place", a, dtypes[d], 2, shapes[i], values, 0);
            free(values);
            RELEASE(a, expected);
        }
}

static void places_of_values(void) {
    const int dtypes[] = {PVG_UINT8, PVG_INT16, PVG_FLOAT32, PVG_INT64};
    uint64_t state = 4;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int right = 0; right < 2; right++) {
            pvg_array *a = random_array(dtypes[d], SHAPE(70), &state);
            pvg_array *b = random_array(dtypes[d], SHAPE(300), &state);
            pvg_array *sorted = MADE(pvg_sort(a, 0, 0, NULL));
            pvg_array *found = MADE(pvg_searchsorted(sorted, b, right));
            void *in_order = host_copy(sorted), *values = host_copy(b);
            int64_t expected[300];
            for (int64_t i = 0; i < 300; i++) {
                const double value = value_at(dtypes[d], values, i);
                expected[i] = 0;
                for (int64_t j = 0; j < 70; j++) {
                    const double one = value_at(dtypes[d], in_order, j);
                    expected[i] += one < value || (right && one == value);
                }
            }
            check_array(__FILE__, __LINE__, "searchsorted", found, PVG_INT64, SHAPE(300), expected,
                        0);
            free(in_order);
            free(values);
            RELEASE(a, b, sorted, found);
        }
}

static void what_differs(void) {
    const double values[] = {3, 1, (double)NAN, 1, 0, 3, -2, (double)NAN, -0.0},
                 expected[] = {-2, 0, 1, 3, (double)NAN, (double)NAN};
    const int dtypes[] = {PVG_FLOAT32, PVG_FLOAT64, PVG_FLOAT16, PVG_BFLOAT16};
    pvg_array *wide = array_of(PVG_FLOAT64, SHAPE(3, 3), values);
    for (int d = 0; d < 4; d++)
        for (int equal_nan = 0; equal_nan < 2; equal_nan++) {
            pvg_array *a = MADE(pvg_cast(wide, dtypes[d], NULL)),
                      *found = MADE(pvg_unique(a, equal_nan));
            CHECK_EQUAL(pvg_array_size(found), 6 - equal_nan);
            void *all = host_copy(found);
            for (int i = 0; i < 6 - equal_nan; i++) {
                const double x = value_at(dtypes[d], all, i), y = expected[i];
                CHECK(x == y || (x != x && y != y));
            }
            free(all);
            RELEASE(a, found);
        }
    RELEASE(wide);
}

/* Of 4, 9, -1, 9 and 200 zeros in two columns, one of them backwards. */
static void first_few(void) {
    int16_t values[204 * 2] = {0};
    const int16_t some[] = {4, 9, -1, 9};
    const int16_t largest[] = {9, 9, 9, 9, 4, 4}, smallest[] = {-1, -1, 0, 0};
    const int64_t at[] = {1, 200, 3, 202, 0, 203}, where[] = {2, 201, 4, 0};
    for (int i = 0; i < 4; i++) values[2 * i] = some[i], values[2 * (203 - i) + 1] = some[i];
    pvg_array *a = array_of(PVG_INT16, SHAPE(204, 2), values), *places = NULL;
    pvg_array *found = MADE(pvg_top_k(a, 3, 0, 0, &places));
    CHECK_ARRAY(found, PVG_INT16, SHAPE(3, 2), largest, 0);
    CHECK_ARRAY(places, PVG_INT64, SHAPE(3, 2), at, 0);
    RELEASE(found, places);
    found = MADE(pvg_top_k(a, 2, -2, 1, &places));
    CHECK_ARRAY(found, PVG_INT16, SHAPE(2, 2), smallest, 0);
    CHECK_ARRAY(places, PVG_INT64, SHAPE(2, 2), where, 0);
    RELEASE(a, found, places);
}

static void what_is_refused(void) {
    uint64_t state = 5;
    pvg_array *a = random_array(PVG_FLOAT32, SHAPE(3, 4), &state);
    pvg_array *scalar = random_array(PVG_FLOAT32, SCALAR, &state);
    CHECK_NULL(PVG_ERROR_AXIS, pvg_sort(a, 2, 0, NULL));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_argsort(scalar, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_sort(a, 0, 2, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_sort(NULL, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_searchsorted(a, a, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_searchsorted(a, NULL, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_unique(NULL, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_unique(a, 2));
    pvg_array *places = a;
    CHECK_NULL(PVG_ERROR_VALUE, pvg_top_k(NULL, 1, 0, 0, &places));
    CHECK(places == NULL);
    CHECK_NULL(PVG_ERROR_AXIS, pvg_top_k(a, 1, 2, 0, &places));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_top_k(a, 1, 0, 2, &places));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_top_k(a, 4, 0, 0, &places));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_top_k(a, 0, 0, 0, &places));
    RELEASE(a, scalar);
}

int main(void) {
    begin("test_sort");
    RUN(every_dtype_and_length);
    RUN(at_every_offset);
    RUN(in_place);
    RUN(places_of_values);
    RUN(what_differs);
    RUN(first_few);
    RUN(what_is_refused);
    return finish();
}
