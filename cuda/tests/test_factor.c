/* pvg_solve, pvg_inverse, pvg_determinant and pvg_cholesky: by what they must give when multiplied,
 * for each way of dividing the work; and when a matrix that has no inverse is reported. */
#include "check.h"
#include <math.h>

enum { ITEMS = 5 };

/* ITEMS matrices with large elements beside the diagonal, so that rows are exchanged. */
static pvg_array *matrices(int dtype, int64_t n, double *values, int symmetric) {
    const int64_t size = ITEMS * n * n;
    void *host = malloc((size_t)size * 8);
    uint64_t state = 7 + (uint64_t)n;
    for (int64_t e = 0; e < size; e++) {
        const int64_t row = e / n % n, column = e % n;
        state = state * 6364136223846793005u + 1442695040888963407u;
        double value = (double)(state >> 40) / (1 << 24) - 0.5;
        if (symmetric && column < row) value = values[e / (n * n) * n * n + column * n + row];
        if (column == (symmetric ? row : (row + 1) % n)) value += (double)n;
        values[e] = value = (double)(float)value;
        if (dtype == PVG_FLOAT32)
            ((float *)host)[e] = (float)value;
        else
            ((double *)host)[e] = value;
    }
    const int64_t shape[3] = {ITEMS, n, n};
    pvg_array *a = MADE(pvg_array_empty(0, dtype, 3, shape));
    CHECK_STATUS(pvg_copy_from_host(a, host, NULL), PVG_OK);
    free(host);
    return a;
}

static double *numbers_of(const pvg_array *a) {
    const int64_t size = pvg_array_size(a);
    double *result = malloc((size_t)(size + 1) * 8);
    void *host = host_copy(a);
    for (int64_t e = 0; e < size; e++)
        result[e] =
            pvg_array_dtype(a) == PVG_FLOAT32 ? (double)((float *)host)[e] : ((double *)host)[e];
    free(host);
    return result;
}

/* The largest |a @ b - c| where b has `columns`; transposed: c == a @ a' of a lower a. */
static double residual(const double *a, const double *b, const double *c, int64_t n,
                       int64_t columns, int transposed) {
    double worst = 0;
    for (int64_t item = 0; item < ITEMS; item++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < columns; j++) {
                double sum = 0;
                for (int64_t k = 0; k < n; k++)
                    sum +=
                        a[(item * n + i) * n + k] *
                        (transposed ? b[(item * n + j) * n + k] : b[(item * n + k) * columns + j]);
                const double wanted = c ? c[(item * n + i) * columns + j] : i == j;
                const double error = fabs(sum - wanted);
                if (!(error <= worst)) worst = error;
            }
    return worst;
}

static void check_size(int dtype, int64_t n) {
    const double most = (double)(n * n + 1) * (dtype == PVG_FLOAT32 ? 1e-5 : 1e-13);
    double *values = malloc((size_t)(ITEMS * n * n + 1) * 8);
    pvg_array *a = matrices(dtype, n, values, 0);
    pvg_array *inverse = MADE(pvg_inverse(a)), *same = MADE(pvg_solve(a, a, 0));
    double *x = numbers_of(inverse), *one = numbers_of(same);
    CHECK(residual(values, x, NULL, n, n, 0) <= most);
    CHECK(residual(values, one, values, n, n, 0) <= most);
    pvg_array *value = MADE(pvg_determinant(a, 0)), *sign = MADE(pvg_determinant(a, 1)),
              *logarithm = MADE(pvg_determinant(a, 2));
    double *d = numbers_of(value), *s = numbers_of(sign), *l = numbers_of(logarithm);
    for (int i = 0; i < ITEMS; i++) {
        CHECK(fabs(s[i]) == 1);
        if (n < 20) CHECK(fabs(s[i] * exp(l[i]) / d[i] - 1) <= most * 10);
    }
    RELEASE(a, inverse, same, value, sign, logarithm);
    pvg_array *p = matrices(dtype, n, values, 1);
    pvg_array *lower = MADE(pvg_cholesky(p, 0)), *upper = MADE(pvg_cholesky(p, 1));
    double *f = numbers_of(lower), *u = numbers_of(upper);
    CHECK(residual(f, f, values, n, n, 1) <= most);
    for (int64_t e = 0; e < ITEMS * n * n; e++)
        CHECK(fabs(f[e] - u[e / (n * n) * n * n + e % n * n + e / n % n]) <= most);
    RELEASE(p, lower, upper);
    free(values), free(x), free(one), free(d), free(s), free(l), free(f), free(u);
}

static void every_size(void) {
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 17, 32, 33, 50, 64};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        check_size(PVG_FLOAT32, sizes[i]);
        check_size(PVG_FLOAT64, sizes[i]);
    }
}

/* The first wait tells, whatever it waits for, and no other. */
static void reports(void) {
    pvg_array *zeros = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 3)));
    const double zero = 0;
    float host[9];
    CHECK_STATUS(pvg_fill(zeros, PVG_SCALAR_FLOAT, &zero), PVG_OK);
    for (int i = 0; i < 4; i++) {
        pvg_array *result = i == 0   ? MADE(pvg_inverse(zeros))
                            : i == 1 ? MADE(pvg_solve(zeros, zeros, 0))
                            : i == 2 ? MADE(pvg_solve(zeros, zeros, 1))
                                     : MADE(pvg_cholesky(zeros, 0));
        CHECK_STATUS(i % 2 ? pvg_synchronize(0) : pvg_copy_to_host(result, host, NULL),
                     PVG_ERROR_LINALG);
        CHECK_STATUS(pvg_copy_to_host(zeros, host, NULL), PVG_OK);
        RELEASE(result);
    }
    pvg_array *determinant = MADE(pvg_determinant(zeros, 0));
    CHECK_STATUS(pvg_copy_to_host(determinant, host, NULL), PVG_OK);
    CHECK(host[0] == 0);
    RELEASE(zeros, determinant);
}

/* The word that reports go through is given back with the cache, and what stands in it is not lost;
 * a graph, which has the word's address, keeps it. */
static void the_word_is_given_back(void) {
    const double zero = 0;
    pvg_array *zeros = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 3)));
    CHECK_OK(pvg_fill(zeros, PVG_SCALAR_FLOAT, &zero));
    for (int i = 0; i < 3; i++) {
        pvg_array *result = MADE(pvg_inverse(zeros));
        CHECK_OK(pvg_empty_cache(0));
#ifdef PVG_TEST_SIMULATOR
        CHECK_EQUAL(pvg_sim_count("live_pinned"), 0);
#endif
        CHECK_STATUS(pvg_synchronize(0), PVG_ERROR_LINALG);
        CHECK_OK(pvg_synchronize(0));
        RELEASE(result);
    }
    CHECK_OK(pvg_graph_begin(0));
    pvg_array *result = MADE(pvg_cholesky(zeros, 0));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(pvg_empty_cache(0));
        CHECK_OK(pvg_graph_launch(graph));
        CHECK_STATUS(pvg_synchronize(0), PVG_ERROR_LINALG);
    }
    CHECK_OK(pvg_graph_release(graph));
    RELEASE(zeros, result);
}

static void what_is_refused(void) {
    uint64_t state = 3;
    pvg_array *row = random_array(PVG_FLOAT32, SHAPE(4), &state),
              *wide = random_array(PVG_FLOAT32, SHAPE(3, 4), &state),
              *whole = random_array(PVG_INT32, SHAPE(4, 4), &state),
              *large = random_array(PVG_FLOAT32, SHAPE(65, 65), &state),
              *matrix = random_array(PVG_FLOAT32, SHAPE(4, 4), &state),
              *other = random_array(PVG_FLOAT64, SHAPE(4, 4), &state);
    pvg_array *const bad[] = {row, wide, large, NULL};
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK_NULL(PVG_ERROR_VALUE, pvg_inverse(bad[i]));
        CHECK_NULL(PVG_ERROR_VALUE, pvg_cholesky(bad[i], 0));
        CHECK_NULL(PVG_ERROR_VALUE, pvg_determinant(bad[i], 0));
        CHECK_NULL(PVG_ERROR_VALUE, pvg_solve(bad[i], matrix, 0));
    }
    CHECK_NULL(PVG_ERROR_TYPE, pvg_inverse(whole));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_solve(matrix, other, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_solve(matrix, wide, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_solve(matrix, row, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_solve(matrix, matrix, 3));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_determinant(matrix, -1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_cholesky(matrix, 2));
    RELEASE(row, wide, whole, large, matrix, other);
}

int main(void) {
    begin("test_factor");
    RUN(every_size);
    RUN(reports);
    RUN(the_word_is_given_back);
    RUN(what_is_refused);
    return finish();
}
