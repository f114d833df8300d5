/* pvg_scan: sums and products up to each element, at every offset into memory, and that nothing
 * beside the result is written. */
#include "check.h"

/* The scan of `a` along an axis, as double; free() it. Values are small, so that all is exact. */
static void *scan_on_host(int operation, const pvg_array *a, int axis, int initial, int gives) {
    const int ndim = pvg_array_ndim(a), dtype = pvg_array_dtype(a);
    const int64_t *shape = pvg_array_shape(a), length = shape[axis];
    const int64_t outer = product(axis, shape), inner = product(ndim - axis - 1, shape + axis + 1);
    void *values = host_copy(a), *result = host_memory(gives, outer * (length + initial) * inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            double total = operation == PVG_PROD;
            int64_t to = o * (length + initial) * inner + i;
            if (initial) set_value(gives, result, to, total), to += inner;
            for (int64_t k = 0; k < length; k++, to += inner) {
                const double value = value_at(dtype, values, (o * length + k) * inner + i);
                total = operation == PVG_PROD ? total * value : total + value;
                set_value(gives, result, to, total);
            }
        }
    free(values);
    return result;
}

/* Terms of 0 and 1 whose sums fit into every dtype, or factors of 1 and few of 0. */
static pvg_array *random_terms(int operation, int dtype, int ndim, const int64_t *shape,
                               uint64_t *state) {
    const int64_t n = product(ndim, shape);
    void *values = host_memory(dtype, n);
    for (int64_t i = 0; i < n; i++)
        set_value(dtype, values, i,
                  operation == PVG_PROD ? (double)(random_integer(state, 0, 99) > 0)
                                        : (double)(random_integer(state, 0, 49) == 0));
    pvg_array *a = array_of(dtype, ndim, shape, values);
    free(values);
    return a;
}

static void check_scan(int line, int operation, const pvg_array *a, int axis, int initial) {
    const int ndim = pvg_array_ndim(a), dtype = pvg_array_dtype(a);
    const int gives = result_dtype(row_of(operation), dtype);
    int64_t shape[8];
    for (int d = 0; d < ndim; d++) shape[d] = pvg_array_shape(a)[d] + (d == axis && initial);
    void *expected = scan_on_host(operation, a, axis, initial, gives);
    pvg_array *result = pvg_scan(operation, a, axis - ndim, initial, NULL);
    char text[80];
    snprintf(text, sizeof text, "scan %d of dtype %d along %d", operation, dtype, axis);
    if (!result)
        report(__FILE__, line, "%s failed: %s", text, pvg_last_error());
    else
        check_array(__FILE__, line, text, result, gives, ndim, shape, expected, 0);
    RELEASE(result);
    free(expected);
}

static void every_dtype_and_axis(void) {
    static const int64_t shapes[][3] = {{1, 1, 1},    {3, 5, 7},   {2, 70, 4}, {3, 1, 600},
                                        {1, 1, 9000}, {1, 300, 2}, {2, 0, 3},  {700, 1, 1}};
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (size_t i = 0; i < COUNT(shapes); i++)
            for (int k = 0; k < 2; k++) {
                const int operation = k ? PVG_PROD : PVG_SUM;
                pvg_array *a = random_terms(operation, all_dtypes[d], 3, shapes[i], &state);
                for (int axis = 0; axis < 3; axis++)
                    for (int initial = 0; initial < 2; initial++)
                        check_scan(__LINE__, operation, a, axis, initial);
                RELEASE(a);
            }
}

static void rows_in_chunks(void) {
    uint64_t state = 2;
    const int dtypes[] = {PVG_UINT8, PVG_FLOAT32, PVG_INT64};
    for (size_t d = 0; d < COUNT(dtypes); d++) {
        pvg_array *a = random_terms(PVG_SUM, dtypes[d], SHAPE(2, 20001), &state);
        check_scan(__LINE__, PVG_SUM, a, 1, 0);
        check_scan(__LINE__, PVG_SUM, a, 1, 1);
        RELEASE(a);
    }
}

/* Views that begin 0 to 15 elements into their memory, of a length that no vector divides. */
static void at_every_offset(void) {
    enum { N = 133, ALL = N + 40 };
    const int64_t one = 1, n = N;
    uint64_t state = 3;
    for (int64_t offset = 0; offset < 16; offset++) {
        const int64_t at = offset * 5 % 16;
        pvg_array *from = random_terms(PVG_SUM, PVG_FLOAT32, SHAPE(ALL), &state),
                  *to = random_array(PVG_FLOAT32, SHAPE(ALL), &state);
        pvg_array *a = MADE(pvg_slice(from, &offset, &one, &n)),
                  *b = MADE(pvg_slice(to, &at, &one, &n));
        void *expected = host_copy(to), *scanned = scan_on_host(PVG_SUM, a, 0, 0, PVG_FLOAT32);
        memcpy((float *)expected + at, scanned, N * sizeof(float));
        CHECK(pvg_scan(PVG_SUM, a, 0, 0, b) == b);
        CHECK_ARRAY(to, PVG_FLOAT32, SHAPE(ALL), expected, 0);
        RELEASE(from, to, a, b);
        free(expected);
        free(scanned);
    }
}

static void what_is_refused(void) {
    uint64_t state = 4;
    pvg_array *a = random_array(PVG_INT32, SHAPE(2, 4), &state),
              *scalar = random_array(PVG_INT32, SCALAR, &state);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_scan(PVG_MAX, a, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_scan(PVG_SUM, a, 0, 2, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_scan(PVG_SUM, a, 0, -1, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_scan(PVG_SUM, a, 0, 1, a));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_scan(PVG_SUM, NULL, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_scan(PVG_SUM, a, 2, 0, NULL));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_scan(PVG_SUM, a, -3, 0, NULL));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_scan(PVG_SUM, scalar, 0, 0, NULL));
    RELEASE(a, scalar);
}

int main(void) {
    begin("test_scan");
    RUN(every_dtype_and_axis);
    RUN(rows_in_chunks);
    RUN(at_every_offset);
    RUN(what_is_refused);
    return finish();
}
