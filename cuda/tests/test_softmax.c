/* pvg_softmax and pvg_var: rows of every way through the kernels, at every offset into memory, and
 * what is refused. */
#include "check.h"

/* The results of rows (rows, length) along the last axis: kind 0 softmax, 1 its logarithm, 2
 * logsumexp, 3 variance; free() them. */
static void *on_host(int kind, int dtype, int gives, const void *values, int64_t rows,
                     int64_t length) {
    void *result = host_memory(gives, rows * length);
    for (int64_t r = 0; r < rows; r++) {
        double most = -INFINITY, sum = 0, mean = 0, squares = 0;
        for (int64_t i = 0; i < length; i++) {
            const double x = value_at(dtype, values, r * length + i);
            if (x > most) most = x;
            mean += x / (double)length;
        }
        for (int64_t i = 0; i < length; i++) {
            const double x = value_at(dtype, values, r * length + i);
            sum += exp(x - most);
            squares += (x - mean) * (x - mean);
        }
        for (int64_t i = 0; i < length && kind < 2; i++) {
            const double x = value_at(dtype, values, r * length + i) - most;
            set_value(gives, result, r * length + i, kind ? x - log(sum) : exp(x) / sum);
        }
        if (kind == 2) set_value(gives, result, r, most + log(sum));
        if (kind == 3) set_value(gives, result, r, squares / (double)length);
    }
    return result;
}

static pvg_array *computed(int kind, const pvg_array *a, int axis) {
    if (kind == 3) return pvg_var(a, 1, &axis, 0, 0, 0, NULL);
    return pvg_softmax(kind == 0   ? PVG_SOFTMAX
                       : kind == 1 ? PVG_LOG_SOFTMAX
                                   : PVG_LOGSUMEXP,
                       a, 1, &axis, 0, NULL);
}

/* As rows, as columns, and as rows with a gap that begin `offset` elements into memory. */
static void check_rows(int line, int dtype, int64_t rows, int64_t length, int64_t offset,
                       uint64_t *state) {
    const int gives = is_float(dtype) ? dtype : PVG_FLOAT32;
    const double tolerance = pvg_dtype_size(gives) == 8   ? 1e-13
                             : pvg_dtype_size(gives) == 4 ? 1e-5
                                                          : 0.1;
    const int64_t wide = length + offset, one[2] = {1, 1}, start[2] = {0, offset};
    const int64_t cut[2] = {rows, length};
    const int turned[2] = {1, 0};
    pvg_array *base = random_array(dtype, SHAPE(rows, wide), state);
    pvg_array *a = MADE(pvg_slice(base, start, one, cut));
    void *values = host_copy(a);
    pvg_array *whole = array_of(dtype, SHAPE(rows, length), values);
    pvg_array *view = MADE(pvg_permute(whole, turned)), *columns = MADE(pvg_contiguous(view));
    pvg_array *back = MADE(pvg_permute(columns, turned));
    const pvg_array *operands[] = {a, whole, back};
    for (int kind = 0; kind < 4; kind++) {
        void *expected = on_host(kind, dtype, gives, values, rows, length);
        for (size_t i = 0; i < COUNT(operands); i++) {
            pvg_array *result = computed(kind, operands[i], -1);
            char text[96];
            snprintf(text, sizeof text, "kind %d, dtype %d, %d x %d, operand %d", kind, dtype,
                     (int)rows, (int)length, (int)i);
            if (!result)
                report(__FILE__, line, "%s failed: %s", text, pvg_last_error());
            else
                check_array(__FILE__, line, text, result, gives, kind < 2 ? 2 : 1, cut, expected,
                            tolerance);
            RELEASE(result);
        }
        free(expected);
    }
    free(values);
    RELEASE(base, a, whole, view, columns, back);
}

static void every_way(void) {
    static const int64_t lengths[] = {1, 3, 4, 70, 130, 500, 1100, 1500};
    const int dtypes[] = {PVG_FLOAT16, PVG_BFLOAT16, PVG_FLOAT32, PVG_FLOAT64, PVG_INT16, PVG_BOOL};
    uint64_t state = 1;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t i = 0; i < COUNT(lengths); i++)
            check_rows(__LINE__, dtypes[d], 3, lengths[i], (int64_t)i % 5, &state);
    check_rows(__LINE__, PVG_FLOAT32, 1, 17001, 3, &state);
    check_rows(__LINE__, PVG_FLOAT64, 1, 20000, 0, &state);
    check_rows(__LINE__, PVG_FLOAT32, 1, 40003, 1, &state);
    check_rows(__LINE__, PVG_FLOAT32, 70, 2, 1, &state);
}

static void what_is_refused(void) {
    uint64_t state = 2;
    const int axis = 1, twice[2] = {0, 0};
    pvg_array *row = random_array(PVG_FLOAT32, SHAPE(4), &state),
              *none = random_array(PVG_FLOAT32, SHAPE(0), &state),
              *other = random_array(PVG_COMPLEX64, SHAPE(4), &state);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_softmax(PVG_SUM, row, -1, NULL, 0, NULL));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_softmax(PVG_SOFTMAX, row, 1, &axis, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_softmax(PVG_LOG_SOFTMAX, row, 2, twice, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_softmax(PVG_SOFTMAX, none, -1, NULL, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_softmax(PVG_LOGSUMEXP, none, -1, NULL, 0, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_softmax(PVG_SOFTMAX, other, -1, NULL, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_softmax(PVG_SOFTMAX, NULL, -1, NULL, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_softmax(PVG_SOFTMAX, row, -1, NULL, 0, none));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_var(row, -1, NULL, 0, 2, 0, NULL));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_var(row, 1, &axis, 0, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_var(other, -1, NULL, 0, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_var(NULL, -1, NULL, 0, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_nansum(row, -1, NULL, 2, 0));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_nansum(row, 1, &axis, 0, 0));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_nansum(other, -1, NULL, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_nansum(NULL, -1, NULL, 1, 0));
    RELEASE(row, none, other);
}

int main(void) {
    begin("test_softmax");
    RUN(every_way);
    RUN(what_is_refused);
    return finish();
}
