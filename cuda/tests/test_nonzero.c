/* pvg_nonzero: the indices of elements that are not 0, at every offset into memory. */
#include "check.h"

static void check_nonzero(int line, const pvg_array *a) {
    const int ndim = pvg_array_ndim(a), dtype = pvg_array_dtype(a);
    const int64_t *shape = pvg_array_shape(a), n = pvg_array_size(a);
    void *values = host_copy(a);
    int64_t count = 0, at = 0;
    for (int64_t i = 0; i < n; i++) count += value_at(dtype, values, i) != 0;
    int64_t *expected = host_memory(PVG_INT64, ndim * count);
    for (int64_t i = 0; i < n; i++) {
        if (!(value_at(dtype, values, i) != 0)) continue;
        int64_t rest = i;
        for (int d = ndim - 1; d >= 0; d--) {
            expected[d * count + at] = rest % shape[d];
            rest /= shape[d];
        }
        at++;
    }
    pvg_array *result = pvg_nonzero(a);
    char text[80];
    snprintf(text, sizeof text, "nonzero of dtype %d, %" PRId64 " elements", dtype, n);
    if (!result)
        report(__FILE__, line, "%s failed: %s", text, pvg_last_error());
    else
        check_array(__FILE__, line, text, result, PVG_INT64, SHAPE(ndim, count), expected, 0);
    RELEASE(result);
    free(values);
    free(expected);
}

/* Zeros but for one of `each` elements. */
static pvg_array *sparse_array(int dtype, int ndim, const int64_t *shape, int64_t each,
                               uint64_t *state) {
    const int64_t n = product(ndim, shape);
    void *values = host_memory(dtype, n);
    for (int64_t i = 0; i < n; i++)
        set_value(dtype, values, i, (double)(random_integer(state, 1, each) == 1));
    pvg_array *a = array_of(dtype, ndim, shape, values);
    free(values);
    return a;
}

static void every_dtype_and_shape(void) {
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7},    {2, 70, 40}, {3, 1, 1600},
                                        {2, 0, 3}, {1, 1, 9000}, {700, 1, 1}, {20, 30, 40}};
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (size_t i = 0; i < COUNT(shapes); i++)
            for (int64_t each = 1; each < 1000; each *= 10) {
                pvg_array *a = sparse_array(all_dtypes[d], 3, shapes[i], each, &state);
                check_nonzero(__LINE__, a);
                RELEASE(a);
            }
}

static void at_every_offset(void) {
    const int64_t one = 1, n = 133;
    const int dtypes[] = {PVG_BOOL, PVG_FLOAT16, PVG_INT32, PVG_FLOAT64};
    uint64_t state = 2;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int64_t offset = 0; offset < 16; offset++) {
            pvg_array *whole = sparse_array(dtypes[d], SHAPE(200), 2, &state);
            pvg_array *a = MADE(pvg_slice(whole, &offset, &one, &n));
            check_nonzero(__LINE__, a);
            RELEASE(whole, a);
        }
}

static void what_is_refused(void) {
    uint64_t state = 3;
    pvg_array *scalar = random_array(PVG_INT32, SCALAR, &state);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_nonzero(scalar));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_nonzero(NULL));
    RELEASE(scalar);
}

int main(void) {
    begin("test_nonzero");
    RUN(every_dtype_and_shape);
    RUN(at_every_offset);
    RUN(what_is_refused);
    return finish();
}
