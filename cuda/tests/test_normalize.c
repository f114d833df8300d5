/* pvg_normalize, pvg_cross_entropy, pvg_softmax_backward and their backward passes: rows of every
 * way through the kernels, at every offset into memory, and what is refused. */
#include "check.h"

/* Rows of (rows, length) that begin `offset` elements into memory, contiguous. */
static pvg_array *rows_at(int dtype, int64_t rows, int64_t length, int64_t offset,
                          uint64_t *state) {
    const int64_t start[1] = {offset}, step[1] = {1}, cut[1] = {rows * length};
    const int64_t shape[2] = {rows, length};
    pvg_array *base = random_array(dtype, SHAPE(rows * length + offset), state);
    pvg_array *flat = MADE(pvg_slice(base, start, step, cut));
    pvg_array *result = MADE(pvg_reshape(flat, 2, shape));
    RELEASE(base, flat);
    return result;
}

/* The largest distance of results from what is expected has to be this or less. */
static double tolerance_of(int dtype) {
    return pvg_dtype_size(dtype) == 8 ? 1e-11 : pvg_dtype_size(dtype) == 4 ? 2e-4 : 0.2;
}

static void check_rows(int dtype, int64_t rows, int64_t length, int64_t offset, uint64_t *state) {
    const int wide = dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32;
    const int64_t shape[2] = {rows, length};
    pvg_array *x = rows_at(dtype, rows, length, offset, state);
    pvg_array *g = rows_at(dtype, rows, length, offset, state);
    pvg_array *w = random_array(dtype, SHAPE(length), state);
    pvg_array *s = random_array(wide, SHAPE(2, rows), state);
    pvg_array *y = pvg_normalize(x, w, NULL, 1, 1, 1, 1, 1.0, s), *dx = NULL, *dw = NULL;
    pvg_array *db = NULL;
    CHECK(y);
    CHECK_OK(pvg_normalize_backward(g, x, w, s, 1, 1, 1, 1, 1.0, &dx, &dw, &db));
    void *values = host_copy(x), *slopes = host_copy(g), *weights = host_copy(w);
    void *wanted = host_memory(dtype, rows * length),
         *wanted_dx = host_memory(dtype, rows * length);
    void *sums = host_memory(dtype, length), *biases = host_memory(dtype, length);
    double *dweight = calloc((size_t)length, sizeof *dweight);
    double *dbias = calloc((size_t)length, sizeof *dbias);
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, squares = 0, first = 0, second = 0;
        for (int64_t i = 0; i < length; i++)
            mean += value_at(dtype, values, r * length + i) / (double)length;
        for (int64_t i = 0; i < length; i++) {
            const double d = value_at(dtype, values, r * length + i) - mean;
            squares += d * d / (double)length;
        }
        const double scale = 1 / sqrt(squares + 1.0);
        for (int64_t i = 0; i < length; i++) {
            const double z = (value_at(dtype, values, r * length + i) - mean) * scale;
            const double of_y = value_at(dtype, slopes, r * length + i);
            const double weight = value_at(dtype, weights, i);
            set_value(dtype, wanted, r * length + i, z * weight);
            first += of_y * weight / (double)length, second += of_y * weight * z / (double)length;
            dweight[i] += of_y * z, dbias[i] += of_y;
        }
        for (int64_t i = 0; i < length; i++) {
            const double z = (value_at(dtype, values, r * length + i) - mean) * scale;
            const double part =
                value_at(dtype, slopes, r * length + i) * value_at(dtype, weights, i);
            set_value(dtype, wanted_dx, r * length + i, scale * (part - first - z * second));
        }
    }
    for (int64_t i = 0; i < length; i++) {
        set_value(dtype, sums, i, dweight[i]);
        set_value(dtype, biases, i, dbias[i]);
    }
    char text[96];
    snprintf(text, sizeof text, "dtype %d, %d x %d, at %d", dtype, (int)rows, (int)length,
             (int)offset);
    const double tolerance = tolerance_of(dtype);
    check_array(__FILE__, __LINE__, text, y, dtype, 2, shape, wanted, tolerance);
    check_array(__FILE__, __LINE__, text, dx, dtype, 2, shape, wanted_dx, tolerance);
    check_array(__FILE__, __LINE__, text, dw, dtype, 1, shape + 1, sums, tolerance);
    check_array(__FILE__, __LINE__, text, db, dtype, 1, shape + 1, biases, tolerance);
    free(values), free(slopes), free(weights), free(wanted), free(wanted_dx), free(sums);
    free(biases), free(dweight), free(dbias);
    RELEASE(x, g, w, s, y, dx, dw, db);
}

static void normalised_rows(void) {
    static const int64_t lengths[] = {1, 3, 4, 70, 130, 500, 1100, 4100};
    const int dtypes[] = {PVG_FLOAT16, PVG_BFLOAT16, PVG_FLOAT32, PVG_FLOAT64};
    uint64_t state = 1;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t i = 0; i < COUNT(lengths); i++)
            check_rows(dtypes[d], 3, lengths[i], (int64_t)i % 5, &state);
    check_rows(PVG_FLOAT32, 1, 17001, 3, &state);
    check_rows(PVG_FLOAT64, 1, 20000, 0, &state);
    check_rows(PVG_FLOAT32, 1, 40003, 1, &state);
    check_rows(PVG_FLOAT32, 300, 2, 1, &state);
}

/* Losses of (rows, classes), and their gradient for a gradient of 1. */
static void check_labels(int dtype, int64_t rows, int64_t classes, int64_t offset,
                         uint64_t *state) {
    const int wide = dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32;
    const int64_t shape[2] = {rows, classes};
    const double one = 1;
    pvg_array *x = rows_at(dtype, rows, classes, offset, state);
    pvg_array *s = random_array(wide, SHAPE(3, rows), state);
    pvg_array *g = random_array(wide, SHAPE(rows), state);
    void *values = host_copy(x), *wanted = host_memory(wide, rows);
    void *slopes = host_memory(dtype, rows * classes), *soft = host_memory(dtype, rows * classes);
    int32_t *labels = malloc((size_t)rows * sizeof *labels);
    CHECK_OK(pvg_fill(g, PVG_SCALAR_FLOAT, &one));
    for (int64_t r = 0; r < rows; r++) {
        double most = -INFINITY, sum = 0;
        labels[r] = (int32_t)(r % 3 == 2 ? 77777 : r * 7 % classes);
        for (int64_t i = 0; i < classes; i++)
            most = fmax(most, value_at(dtype, values, r * classes + i));
        for (int64_t i = 0; i < classes; i++)
            sum += exp(value_at(dtype, values, r * classes + i) - most);
        const int counts = labels[r] != 77777;
        const double logarithm = most + log(sum);
        set_value(wide, wanted, r,
                  counts ? logarithm - value_at(dtype, values, r * classes + labels[r]) : 0);
        for (int64_t i = 0; i < classes; i++) {
            const double p = exp(value_at(dtype, values, r * classes + i) - logarithm);
            set_value(dtype, slopes, r * classes + i, counts ? p - (i == labels[r]) : 0);
        }
    }
    pvg_array *given = array_of(PVG_INT32, SHAPE(rows), labels);
    pvg_array *losses = pvg_cross_entropy(x, given, NULL, 77777, 0, s);
    pvg_array *dx = pvg_cross_entropy_backward(g, x, given, NULL, s, 77777, 0),
              *of_ones = MADE(pvg_cross_entropy_backward(NULL, x, given, NULL, s, 77777, 0));
    /* The mean, and its gradient for as many as count. */
    double mean = 0, count = 0;
    for (int64_t r = 0; r < rows; r++)
        mean += value_at(wide, wanted, r), count += labels[r] != 77777;
    pvg_array *s4 = random_array(wide, SHAPE(4, rows), state),
              *loss = MADE(pvg_cross_entropy(x, given, NULL, 77777, 0, s4)),
              *of_mean = MADE(pvg_cross_entropy_backward(loss, x, given, NULL, s4, 77777, 0));
    double *expected = host_memory(PVG_FLOAT64, rows * classes), *number = host_memory(wide, 1);
    mean /= count;
    set_value(wide, number, 0, mean);
    for (int64_t i = 0; i < rows * classes; i++)
        expected[i] = value_at(dtype, slopes, i) * mean / count;
    pvg_array *found = MADE(pvg_cast(of_mean, PVG_FLOAT64, NULL));
    if (count > 0) {
        CHECK_ARRAY(loss, wide, SCALAR, number, tolerance_of(dtype));
        CHECK_ARRAY(found, PVG_FLOAT64, SHAPE(rows, classes), expected,
                    (1 + mean) * tolerance_of(dtype));
    }
    free(expected), free(number);
    RELEASE(s4, loss, of_mean, found);
    char text[96];
    snprintf(text, sizeof text, "labels, dtype %d, %d x %d", dtype, (int)rows, (int)classes);
    check_array(__FILE__, __LINE__, text, losses, wide, 1, shape, wanted, tolerance_of(dtype));
    check_array(__FILE__, __LINE__, text, dx, dtype, 2, shape, slopes, tolerance_of(dtype));
    check_array(__FILE__, __LINE__, text, of_ones, dtype, 2, shape, slopes, tolerance_of(dtype));
    RELEASE(of_ones);

    /* Of y = x the gradient of softmax for a gradient of x is x * (x - sum of squares). */
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < classes; i++) {
            const double y = value_at(dtype, values, r * classes + i) / 64;
            sum += y * y;
        }
        for (int64_t i = 0; i < classes; i++) {
            const double y = value_at(dtype, values, r * classes + i) / 64;
            set_value(dtype, soft, r * classes + i, y * (y - sum));
        }
    }
    const double part = 1.0 / 64;
    pvg_array *small = MADE(pvg_binary_scalar(PVG_MULTIPLY, x, PVG_SCALAR_FLOAT, &part, 1, NULL));
    pvg_array *back = pvg_softmax_backward(PVG_SOFTMAX, small, small, 1);
    check_array(__FILE__, __LINE__, "softmax", back, dtype, 2, shape, soft, tolerance_of(dtype));
    free(values), free(wanted), free(slopes), free(soft), free(labels);
    RELEASE(x, s, g, given, losses, dx, small, back);
}

static void labelled_rows(void) {
    static const int64_t lengths[] = {1, 3, 4, 70, 130, 500, 1100, 4100};
    const int dtypes[] = {PVG_FLOAT16, PVG_BFLOAT16, PVG_FLOAT32, PVG_FLOAT64};
    uint64_t state = 3;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t i = 0; i < COUNT(lengths); i++)
            check_labels(dtypes[d], 4, lengths[i], (int64_t)i % 5, &state);
    check_labels(PVG_FLOAT32, 300, 2, 1, &state);
}

static void what_is_refused(void) {
    uint64_t state = 2;
    pvg_array *x = random_array(PVG_FLOAT32, SHAPE(4, 6), &state),
              *s = random_array(PVG_FLOAT32, SHAPE(2, 4), &state),
              *three = random_array(PVG_FLOAT32, SHAPE(3, 4), &state),
              *i = random_array(PVG_INT32, SHAPE(4), &state),
              *other = random_array(PVG_INT32, SHAPE(4, 6), &state), *dx = NULL;
    CHECK_NULL(PVG_ERROR_VALUE, pvg_normalize(x, NULL, NULL, 1, 1, 4, 1, 0, s));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_normalize(x, NULL, NULL, 2, 1, 1, 1, 0, s));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_normalize(x, NULL, NULL, 1, 2, 1, 1, 0, s));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_normalize(x, NULL, NULL, 1, 1, 1, 2, 0, s));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_normalize(x, NULL, NULL, 1, 1, 0, 1, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_normalize(x, s, NULL, 1, 1, 1, 1, 0, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_normalize(other, NULL, NULL, 1, 1, 1, 1, 0, NULL));
    CHECK_STATUS(pvg_normalize_backward(x, x, NULL, s, 1, 1, 1, 1, 0, NULL, NULL, NULL),
                 PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_normalize_backward(x, x, NULL, s, 1, 1, 1, 1, 0, &dx, &dx, NULL),
                 PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_normalize_backward(s, x, NULL, s, 1, 1, 1, 1, 0, &dx, NULL, NULL),
                 PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_normalize_backward(x, x, NULL, NULL, 1, 1, 1, 1, 0, &dx, NULL, NULL),
                 PVG_ERROR_VALUE);
    CHECK_NULL(PVG_ERROR_TYPE, pvg_cross_entropy(x, s, NULL, 0, 0, three));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_cross_entropy(x, i, NULL, 0, 2, three));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_cross_entropy(x, i, NULL, 0, 0, s));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_cross_entropy(x, i, NULL, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_cross_entropy_backward(x, x, i, NULL, three, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_softmax_backward(PVG_SUM, x, x, 1));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_softmax_backward(PVG_SOFTMAX, x, x, 3));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_softmax_backward(PVG_SOFTMAX, x, s, 1));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_softmax_backward(PVG_SOFTMAX, other, other, 1));
    CHECK(dx == NULL);
    RELEASE(x, s, three, i, other);
}

int main(void) {
    begin("test_normalize");
    RUN(normalised_rows);
    RUN(labelled_rows);
    RUN(what_is_refused);
    return finish();
}
