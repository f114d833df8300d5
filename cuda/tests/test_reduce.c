/* Reductions: over every set of axes, layout and dtype, compared with sums made one element
 * after another. */
#include "check.h"

/* The reduction of dense values over the axes whose bits are set in `mask`; free() the result. */
static void *reduce_on_host(int operation, int dtype, const void *values, int ndim,
                            const int64_t *shape, unsigned mask) {
    int64_t n = product(ndim, shape), results = 1, index[8] = {0};
    for (int d = 0; d < ndim; d++) results *= mask >> d & 1 ? 1 : shape[d];
    int64_t count = results ? n / results : 0;
    double *totals = calloc((size_t)results + 1, sizeof *totals);
    const int starts_from_one = operation == PVG_PROD || operation == PVG_ALL;
    for (int64_t i = 0; starts_from_one && i < results; i++) totals[i] = 1;
    int64_t *seen = calloc((size_t)results + 1, sizeof *seen),
            *best = calloc((size_t)results + 1, sizeof *best);
    const int smallest = operation == PVG_MIN || operation == PVG_ARGMIN;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        for (int d = 0; d < ndim; d++) at = mask >> d & 1 ? at : at * shape[d] + index[d];
        double value = value_at(dtype, values, i), *total = &totals[at];
        int better = seen[at] == 0 || (smallest ? value < *total : value > *total) || isnan(value);
        switch (operation) {
        case PVG_SUM:
        case PVG_MEAN: *total += value; break;
        case PVG_PROD: *total *= value; break;
        case PVG_ANY: *total = *total != 0 || value != 0; break;
        case PVG_ALL: *total = *total != 0 && value != 0; break;
        case PVG_MAX:
        case PVG_MIN:
        case PVG_ARGMAX:
        case PVG_ARGMIN:
            if (better && !(seen[at] > 0 && isnan(*total))) *total = value, best[at] = seen[at];
            break;
        default:
            report(__FILE__, __LINE__, "nothing to compare reduction %d with", operation);
            i = n; /* once is enough */
        }
        seen[at]++;
        for (int d = ndim - 1; d >= 0 && ++index[d] == shape[d]; d--) index[d] = 0;
    }
    int gives = result_dtype(row_of(operation), dtype);
    const int gives_index = operation == PVG_ARGMAX || operation == PVG_ARGMIN;
    void *result = host_memory(gives, results);
    for (int64_t i = 0; i < results; i++)
        set_value(gives, result, i,
                  operation == PVG_MEAN ? totals[i] / (double)count
                  : gives_index         ? (double)best[i]
                                        : totals[i]);
    free(totals);
    free(seen);
    free(best);
    return result;
}

static void check_reduction(int line, int operation, const pvg_array *a, unsigned mask,
                            int keepdims) {
    int ndim = pvg_array_ndim(a), naxes = 0, axes[8], left = 0, dtype = pvg_array_dtype(a);
    const int64_t *shape = pvg_array_shape(a);
    int64_t result_shape[8];
    for (int d = 0; d < ndim; d++) {
        if (mask >> d & 1) axes[naxes++] = d % 2 ? d : d - ndim; /* from either end */
        if (!(mask >> d & 1))
            result_shape[left++] = shape[d];
        else if (keepdims)
            result_shape[left++] = 1;
    }
    void *values = host_copy(a),
         *expected = reduce_on_host(operation, dtype, values, ndim, shape, mask);
    pvg_array *result = pvg_reduce(operation, a, naxes, axes, keepdims, NULL);
    char text[80];
    snprintf(text, sizeof text, "reduction %d of dtype %d over axes %#x, keepdims %d", operation,
             dtype, mask, keepdims);
    if (!result)
        report(__FILE__, line, "%s failed: %s", text, pvg_last_error());
    else
        check_array(__FILE__, line, text, result, result_dtype(row_of(operation), dtype), left,
                    result_shape, expected, operation == PVG_MEAN ? 1e-7 : 1e-300);
    RELEASE(result);
    free(values);
    free(expected);
}

/* Ones, and in a few places other small factors: their product is exact in every dtype. Of bools
 * one may be false. */
static pvg_array *random_factors(int dtype, int64_t n, uint64_t *state) {
    static const double of_unsigned[] = {7, 5, 3, 2}, of_others[] = {7, -5, -3, -2};
    void *values = host_memory(dtype, n);
    for (int64_t i = 0; i < n; i++) set_value(dtype, values, i, 1);
    for (int k = 0; k < 4; k++)
        set_value(dtype, values, random_integer(state, 0, n - 1),
                  (kind_of(dtype) == 'u' ? of_unsigned : of_others)[k]);
    if (dtype == PVG_BOOL) set_value(dtype, values, 0, (double)random_integer(state, 0, 1));
    pvg_array *a = array_of(dtype, SHAPE(n), values);
    free(values);
    return a;
}

static void every_length_and_dtype(void) {
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (size_t i = 0; i < COUNT(awkward_sizes); i++) {
            if (awkward_sizes[i] == 0) continue;
            pvg_array *a = random_array(all_dtypes[d], SHAPE(awkward_sizes[i]), &state);
            pvg_array *factors = random_factors(all_dtypes[d], awkward_sizes[i], &state);
            for (int k = 0; k < operation_count; k++) {
                int operation = all_operations[k].code;
                const int of_factors = operation == PVG_PROD || operation == PVG_ALL;
                if (is_of(&all_operations[k], "reduce"))
                    check_reduction(__LINE__, operation, of_factors ? factors : a, 1, 0);
            }
            RELEASE(a, factors);
        }
}

static void every_set_of_axes(void) {
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    uint64_t state = 2;
    const int64_t start[3] = {4, 0, 1}, step[3] = {-1, 1, 2}, length[3] = {5, 6, 16};
    pvg_array *a = random_array(PVG_INT32, SHAPE(5, 6, 33), &state),
              *part = MADE(pvg_slice(a, start, step, length));
    for (size_t i = 0; i < COUNT(orders); i++)
        for (int sliced = 0; sliced < 2; sliced++) {
            pvg_array *view = MADE(pvg_permute(sliced ? part : a, orders[i]));
            for (unsigned mask = 0; mask < 8; mask++) {
                check_reduction(__LINE__, PVG_SUM, view, mask, 0);
                check_reduction(__LINE__, PVG_MAX, view, mask, 1);
                if (mask == 1 || mask == 2 || mask == 4)
                    check_reduction(__LINE__, i % 2 ? PVG_ARGMAX : PVG_ARGMIN, view, mask,
                                    (int)i % 2);
            }
            RELEASE(view);
        }
    RELEASE(a, part);
}

/* Those of several columns are merged by their block; some columns are more than a block has. */
static void neighbours_of_two_axes(void) {
    static const int64_t shapes[][4] = {{132, 5, 37, 7}, {2, 16, 2400, 7}};
    static const int dtypes[] = {PVG_FLOAT64, PVG_INT32};
    uint64_t state = 12;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t d = 0; d < COUNT(dtypes); d++) {
            pvg_array *a = random_array(dtypes[d], 4, shapes[i], &state);
            check_reduction(__LINE__, PVG_SUM, a, 1 << 1 | 1 << 3, 0);
            check_reduction(__LINE__, PVG_MAX, a, 1 << 1 | 1 << 3, 1);
            RELEASE(a);
        }
}

static void tall_and_wide(void) {
    static const int64_t shapes[][2] = {{3000, 1}, {1, 3000}, {700, 3}, {3, 700},
                                        {65, 129}, {2, 5000}, {5000, 2}};
    uint64_t state = 3;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        pvg_array *a = random_array(PVG_FLOAT32, 2, shapes[i], &state);
        for (unsigned mask = 1; mask < 4; mask++) {
            check_reduction(__LINE__, PVG_SUM, a, mask, 0);
            check_reduction(__LINE__, PVG_MIN, a, mask, 0);
            if (mask < 3) check_reduction(__LINE__, PVG_ARGMAX, a, mask, 0);
        }
        RELEASE(a);
    }
    pvg_array *row = random_array(PVG_FLOAT32, SHAPE(1, 50), &state),
              *repeated = MADE(pvg_broadcast_to(row, SHAPE(40, 50)));
    check_reduction(__LINE__, PVG_SUM, repeated, 1, 0);
    check_reduction(__LINE__, PVG_SUM, repeated, 3, 0);
    RELEASE(row, repeated);
}

static void all_axes_at_once(void) {
    uint64_t state = 4;
    pvg_array *a = random_array(PVG_FLOAT64, SHAPE(7, 11, 13), &state),
              *scalar = random_array(PVG_INT32, SCALAR, &state);
    double *values = host_copy(a), sum = 0;
    int64_t first = 0;
    for (int i = 0; i < 1001; i++) {
        sum += values[i];
        if (values[i] > values[first]) first = i;
    }
    pvg_array *total = MADE(pvg_reduce(PVG_SUM, a, -1, NULL, 0, NULL)),
              *kept = MADE(pvg_reduce(PVG_SUM, a, -1, NULL, 1, NULL));
    pvg_array *at = MADE(pvg_reduce(PVG_ARGMAX, a, -1, NULL, 0, NULL)),
              *one = MADE(pvg_reduce(PVG_SUM, scalar, -1, NULL, 0, NULL));
    CHECK_ARRAY(total, PVG_FLOAT64, SCALAR, &sum, 0);
    CHECK_ARRAY(kept, PVG_FLOAT64, SHAPE(1, 1, 1), &sum, 0);
    CHECK_ARRAY(at, PVG_INT64, SCALAR, &first, 0);
    CHECK_CLOSE(element(one, 0), element(scalar, 0), 0);
    RELEASE(a, scalar, total, kept, at, one);
    free(values);
}

static void nan_wins(void) {
    enum { N = 3000 };
    float values[N];
    for (int place = 0; place < N; place += 599) {
        for (int i = 0; i < N; i++) values[i] = (float)(i % 100);
        values[place] = values[N - 1] = NAN;
        pvg_array *a = array_of(PVG_FLOAT32, SHAPE(N), values),
                  *rows = MADE(pvg_reshape(a, SHAPE(3, 1000)));
        pvg_array *largest = MADE(pvg_reduce(PVG_MAX, a, -1, NULL, 0, NULL));
        pvg_array *smallest = MADE(pvg_reduce(PVG_MIN, a, -1, NULL, 0, NULL));
        pvg_array *at = MADE(pvg_reduce(PVG_ARGMAX, a, -1, NULL, 0, NULL));
        CHECK(isnan(element(largest, 0)) && isnan(element(smallest, 0)));
        CHECK_CLOSE(element(at, 0), place, 0); /* the first of them */
        for (unsigned mask = 1; mask < 3; mask++) {
            check_reduction(__LINE__, PVG_MAX, rows, mask, 0);
            check_reduction(__LINE__, PVG_MIN, rows, mask, 0);
            check_reduction(__LINE__, PVG_ARGMAX, rows, mask, 0);
        }
        RELEASE(a, rows, largest, smallest, at);
    }
}

static void extremes(void) {
    const float infinities[3] = {-INFINITY, -INFINITY, -INFINITY};
    static const uint64_t unsigneds[3] = {0, UINT64_MAX, (uint64_t)1 << 63};
    static const int64_t integers[3] = {INT64_MIN, INT64_MAX, 1}, bound = INT64_MAX;
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(3), infinities),
              *b = array_of(PVG_UINT64, SHAPE(3), unsigneds);
    pvg_array *c = array_of(PVG_INT64, SHAPE(3), integers), *results[5];
    CHECK_ARRAY(results[0] = MADE(pvg_reduce(PVG_MAX, a, -1, NULL, 0, NULL)), PVG_FLOAT32, SCALAR,
                infinities, 0);
    CHECK_ARRAY(results[1] = MADE(pvg_reduce(PVG_ARGMAX, a, -1, NULL, 0, NULL)), PVG_INT64, SCALAR,
                ((const int64_t[]){0}), 0);
    CHECK_ARRAY(results[2] = MADE(pvg_reduce(PVG_MAX, b, -1, NULL, 0, NULL)), PVG_UINT64, SCALAR,
                &unsigneds[1], 0);
    CHECK_ARRAY(results[3] = MADE(pvg_reduce(PVG_MAX, c, -1, NULL, 0, NULL)), PVG_INT64, SCALAR,
                &bound, 0);
    CHECK_ARRAY(results[4] = MADE(pvg_sum(c)), PVG_INT64, SCALAR, ((const int64_t[]){0}),
                0); /* MIN + MAX + 1 */
    for (int i = 0; i < 5; i++) RELEASE(results[i]);
    RELEASE(a, b, c);
}

/* Summed as if in twice the precision: the error is that of one rounding, also where much
 * cancels. */
static void sums_are_accurate(void) {
    enum { N = 200001 }; /* of several chunks */
    static float values[N];
    uint64_t state = 5;
    for (int kind = 0; kind < 3; kind++) {
        double sum = 0, magnitude = 0;
        for (int i = 0; i < N; i++) {
            values[i] = kind == 0   ? 0.1f
                        : kind == 1 ? (float)random_real(&state, -1, 1)
                                    : 1e8f * (float)(1 - i % 2 * 2) + (float)(i % 7);
            sum += values[i];
            magnitude += fabs((double)values[i]);
        }
        pvg_array *a = array_of(PVG_FLOAT32, SHAPE(N), values), *total = MADE(pvg_sum(a));
        pvg_array *again = MADE(pvg_sum(a)),
                  *mean = MADE(pvg_reduce(PVG_MEAN, a, -1, NULL, 0, NULL));
        CHECK_CLOSE(element(total, 0), sum, fabs(sum) * 0x1p-24 + magnitude * 0x1p-40);
        CHECK_CLOSE(element(mean, 0), sum / N, (fabs(sum) * 0x1p-23 + magnitude * 0x1p-40) / N);
        float *bits = host_copy(total);
        CHECK_ARRAY(again, PVG_FLOAT32, SCALAR, bits, 0);
        free(bits);
        RELEASE(a, total, again, mean);
    }
}

/* Each row's sum is the bits of that row summed alone: no result depends on its neighbours. */
static void rows_do_not_depend_on_the_batch(void) {
    enum { ROWS = 9, COLUMNS = 1500 };
    static float values[ROWS * COLUMNS];
    uint64_t state = 6;
    for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = (float)random_real(&state, -1, 1);
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(ROWS, COLUMNS), values);
    pvg_array *sums = MADE(pvg_reduce(PVG_SUM, a, AXES(1), 0, NULL));
    float *together = host_copy(sums);
    for (int64_t i = 0; i < ROWS; i++) {
        pvg_array *row = array_of(PVG_FLOAT32, SHAPE(1, COLUMNS), values + i * COLUMNS);
        pvg_array *sum = MADE(pvg_reduce(PVG_SUM, row, AXES(1), 0, NULL));
        CHECK_ARRAY(sum, PVG_FLOAT32, SHAPE(1), &together[i], 0);
        RELEASE(row, sum);
    }
    free(together);
    RELEASE(a, sums);
}

static void nothing_to_reduce(void) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 0))), *sum = MADE(pvg_sum(a));
    pvg_array *mean = MADE(pvg_reduce(PVG_MEAN, a, -1, NULL, 0, NULL)),
              *rows = MADE(pvg_reduce(PVG_SUM, a, AXES(1), 0, NULL));
    pvg_array *none = MADE(pvg_reduce(PVG_MAX, a, AXES(0), 0, NULL)),
              *product_of_none = MADE(pvg_reduce(PVG_PROD, a, -1, NULL, 0, NULL));
    CHECK_CLOSE(element(sum, 0), 0, 0);
    CHECK_CLOSE(element(product_of_none, 0), 1, 0);
    CHECK(isnan(element(mean, 0)));
    CHECK_ARRAY(rows, PVG_FLOAT32, SHAPE(3), ((const float[]){0, 0, 0}), 0);
    CHECK_ARRAY(none, PVG_FLOAT32, SHAPE(0), NULL, 0);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_MAX, a, -1, NULL, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_MIN, a, AXES(1), 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_ARGMAX, a, AXES(1), 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_ARGMIN, a, AXES(1), 0, NULL));
    RELEASE(a, sum, mean, rows, none, product_of_none);
}

static void wrong_axes_and_results(void) {
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(2, 2), ((const float[]){1, 2, 3, 4})),
              *out = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(2)));
    pvg_array *integers = MADE(pvg_array_empty(0, PVG_INT64, SHAPE(2))),
              *flags = MADE(pvg_array_empty(0, PVG_BOOL, SHAPE(2)));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_reduce(PVG_SUM, a, AXES(2), 0, NULL));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_reduce(PVG_SUM, a, AXES(-3), 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_SUM, a, AXES(0, -2), 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_ARGMAX, a, AXES(0, 1), 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_SUM, a, 1, NULL, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_SUM, a, -1, NULL, 0, out));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_reduce(PVG_SUM, a, AXES(0), 0, integers));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_reduce(PVG_ARGMAX, a, AXES(0), 0, flags));
    CHECK(pvg_reduce(PVG_SUM, a, AXES(0), 0, out) == out);
    CHECK_ARRAY(out, PVG_FLOAT64, SHAPE(2), ((const double[]){4, 6}), 0);
    const int64_t start[2] = {1, 0}, ones[2] = {1, 1}, length[2] = {1, 2};
    pvg_array *row = MADE(pvg_slice(a, start, ones, length)); /* the result goes into the operand */
    CHECK(pvg_reduce(PVG_SUM, a, AXES(0), 1, row) == row);
    CHECK_ARRAY(a, PVG_FLOAT32, SHAPE(2, 2), ((const float[]){1, 2, 4, 6}), 0);
    RELEASE(a, out, integers, flags, row);
}

int main(void) {
    begin("test_reduce");
    RUN(every_length_and_dtype);
    RUN(every_set_of_axes);
    RUN(neighbours_of_two_axes);
    RUN(tall_and_wide);
    RUN(all_axes_at_once);
    RUN(nan_wins);
    RUN(extremes);
    RUN(sums_are_accurate);
    RUN(rows_do_not_depend_on_the_batch);
    RUN(nothing_to_reduce);
    RUN(wrong_axes_and_results);
    return finish();
}
