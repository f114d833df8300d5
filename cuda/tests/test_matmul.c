/* Matrix products: shapes around every tile size, batches, layouts read in place, all dtypes,
 * accuracy. Small integers are multiplied exactly, so those products must be equal bit for bit. */
#include "check.h"

/* The product of dense (m, k) and (k, n), exact for small integers; free() it. */
static void *multiply_on_host(int dtype, const void *a, const void *b, int64_t m, int64_t k,
                              int64_t n) {
    void *c = host_memory(dtype, m * n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += value_at(dtype, a, i * k + l) * value_at(dtype, b, l * n + j);
            set_value(dtype, c, i * n + j, sum);
        }
    return c;
}

static void check_product(int line, const pvg_array *a, const pvg_array *b) {
    int dtype = pvg_array_dtype(a);
    int64_t m = pvg_array_shape(a)[0], k = pvg_array_shape(a)[1], n = pvg_array_shape(b)[1];
    void *x = host_copy(a), *y = host_copy(b), *expected = multiply_on_host(dtype, x, y, m, k, n);
    pvg_array *c = pvg_matmul(a, b, PVG_PRECISION_DEFAULT, NULL);
    char text[100];
    snprintf(text, sizeof text, "(%d, %d) @ (%d, %d) of dtype %d", (int)m, (int)k, (int)k, (int)n,
             dtype);
    if (!c)
        report(__FILE__, line, "%s failed: %s", text, pvg_last_error());
    else
        check_array(__FILE__, line, text, c, dtype, SHAPE(m, n), expected, 1e-300);
    RELEASE(c);
    free(x);
    free(y);
    free(expected);
}

static void every_dtype(void) {
    static const int64_t shapes[][3] = {{1, 1, 1}, {5, 7, 3}, {17, 33, 9}, {40, 20, 35}};
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            pvg_array *a = random_array(all_dtypes[d], SHAPE(shapes[i][0], shapes[i][1]), &state);
            pvg_array *b = random_array(all_dtypes[d], SHAPE(shapes[i][1], shapes[i][2]), &state);
            check_product(__LINE__, a, b);
            RELEASE(a, b);
        }
}

static void awkward_shapes(void) {
    static const int64_t shapes[][3] = {{64, 16, 64},  {65, 17, 63},   {1, 100, 70}, {70, 100, 1},
                                        {128, 8, 128}, {129, 33, 130}, {3, 1000, 2}, {31, 1, 32},
                                        {2, 2, 200},   {100, 3, 1},    {1, 1, 97},   {16, 129, 16},
                                        {127, 64, 5},  {1, 513, 1}};
    uint64_t state = 2;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        pvg_array *a = random_array(PVG_FLOAT32, SHAPE(shapes[i][0], shapes[i][1]), &state);
        pvg_array *b = random_array(PVG_FLOAT32, SHAPE(shapes[i][1], shapes[i][2]), &state);
        check_product(__LINE__, a, b);
        RELEASE(a, b);
    }
}

/* Transposed, with gaps, reversed, repeated, and not aligned to 16 bytes. */
static void every_layout(void) {
    static const int64_t starts[][2] = {{0, 0}, {0, 0}, {0, 1}, {36, 0}, {1, 3}},
                         steps[][2] = {{1, 1}, {2, 1}, {1, 2}, {-1, 1}, {1, 1}};
    const int64_t length[2] = {18, 18};
    const int swapped[2] = {1, 0};
    uint64_t state = 3;
    pvg_array *memory[2], *views[12];
    int n = 0;
    for (int i = 0; i < 2; i++)
        memory[i] = random_array(i ? PVG_FLOAT64 : PVG_FLOAT32, SHAPE(37, 37), &state);
    for (int i = 0; i < 2; i++) {
        n = 0;
        for (size_t j = 0; j < COUNT(starts); j++) {
            views[n] = MADE(pvg_slice(memory[i], starts[j], steps[j], length));
            views[n + 1] = MADE(pvg_permute(views[n], swapped));
            n += 2;
        }
        pvg_array *row = MADE(pvg_reshape(memory[i], SHAPE(1, 37 * 37)));
        pvg_array *part = MADE(pvg_slice(row, ((const int64_t[]){0, 5}), ((const int64_t[]){1, 1}),
                                         ((const int64_t[]){1, 18})));
        views[n++] = MADE(pvg_broadcast_to(part, SHAPE(18, 18)));
        for (int a = 0; a < n; a++)
            for (int b = a % 3; b < n; b += 3) check_product(__LINE__, views[a], views[b]);
        while (n > 0) RELEASE(views[--n]);
        RELEASE(row, part);
    }
    RELEASE(memory[0], memory[1]);
}

/* A product of a batch is the same bits as each of its products alone. */
static void batches(void) {
    enum { M = 9, K = 40, N = 11 };
    uint64_t state = 4;
    static float x[2 * 1 * M * K], y[3 * K * N];
    for (size_t i = 0; i < COUNT(x); i++) x[i] = (float)random_real(&state, -1, 1);
    for (size_t i = 0; i < COUNT(y); i++) y[i] = (float)random_real(&state, -1, 1);
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(2, 1, M, K), x),
              *b = array_of(PVG_FLOAT32, SHAPE(3, K, N), y);
    pvg_array *c = MADE(pvg_matmul(a, b, PVG_PRECISION_DEFAULT, NULL));
    CHECK_EQUAL(pvg_array_ndim(c), 4);
    CHECK_EQUAL(pvg_array_shape(c)[0] * 10 + pvg_array_shape(c)[1], 23);
    float *all = host_copy(c);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            pvg_array *p = array_of(PVG_FLOAT32, SHAPE(M, K), x + i * M * K),
                      *q = array_of(PVG_FLOAT32, SHAPE(K, N), y + j * K * N);
            pvg_array *one = MADE(pvg_matmul(p, q, PVG_PRECISION_DEFAULT, NULL));
            CHECK_ARRAY(one, PVG_FLOAT32, SHAPE(M, N), all + (i * 3 + j) * M * N, 0);
            RELEASE(p, q, one);
        }
    free(all);
    RELEASE(a, b, c);
}

static void rows_and_columns(void) {
    const float matrix[6] = {1, 2, 3, 4, 5, 6};
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(2, 3), matrix),
              *v = array_of(PVG_FLOAT32, SHAPE(3), matrix);
    pvg_array *w = array_of(PVG_FLOAT32, SHAPE(2), matrix), *results[3];
    CHECK_ARRAY(results[0] = MADE(pvg_matmul(a, v, PVG_PRECISION_DEFAULT, NULL)), PVG_FLOAT32,
                SHAPE(2), ((const float[]){14, 32}), 0);
    CHECK_ARRAY(results[1] = MADE(pvg_matmul(w, a, PVG_PRECISION_DEFAULT, NULL)), PVG_FLOAT32,
                SHAPE(3), ((const float[]){9, 12, 15}), 0);
    CHECK_ARRAY(results[2] = MADE(pvg_matmul(v, v, PVG_PRECISION_DEFAULT, NULL)), PVG_FLOAT32,
                SCALAR, ((const float[]){14}), 0);
    for (int i = 0; i < 3; i++) RELEASE(results[i]);
    RELEASE(a, v, w);
}

/* Packs of four elements are loaded at once, where both operands allow it. */
static void dots_of_rows_that_begin_anywhere(void) {
    enum { ROWS = 5, LENGTH = 12 };
    const int64_t step = 1, length = ROWS * LENGTH;
    float values[8 + ROWS * LENGTH];
    for (size_t i = 0; i < COUNT(values); i++) values[i] = (float)(i % 7) - 2;
    for (int64_t i = 0; i < 6; i++)
        for (int64_t j = 0; j < 6; j += i == j ? 1 : 3) {
            float expected[ROWS] = {0};
            for (int e = 0; e < ROWS * LENGTH; e++)
                expected[e / LENGTH] += values[i + e] * values[j + e];
            pvg_array *all = array_of(PVG_FLOAT32, SHAPE(COUNT(values)), values),
                      *x = MADE(pvg_slice(all, &i, &step, &length)),
                      *y = MADE(pvg_slice(all, &j, &step, &length));
            pvg_array *a = MADE(pvg_reshape(x, SHAPE(ROWS, LENGTH))),
                      *b = MADE(pvg_reshape(y, SHAPE(ROWS, LENGTH)));
            pvg_array *c = MADE(pvg_vecdot(a, b, PVG_PRECISION_DEFAULT));
            CHECK_ARRAY(c, PVG_FLOAT32, SHAPE(ROWS), expected, 0);
            RELEASE(all, x, y, a, b, c);
        }
}

static void mixed_dtypes(void) {
    pvg_array *a = array_of(PVG_INT32, SHAPE(1, 2), ((const int32_t[]){1, 2})),
              *b = array_of(PVG_FLOAT32, SHAPE(2, 1), ((const float[]){0.5f, 4}));
    pvg_array *c = MADE(pvg_matmul(a, b, PVG_PRECISION_DEFAULT, NULL));
    CHECK_ARRAY(c, PVG_FLOAT64, SHAPE(1, 1), ((const double[]){8.5}), 0);
    pvg_array *large = array_of(PVG_INT32, SHAPE(1, 2), ((const int32_t[]){1 << 30, 1 << 30}));
    pvg_array *fours = array_of(PVG_INT32, SHAPE(2, 1), ((const int32_t[]){4, 1})),
              *wrapped = MADE(pvg_matmul(large, fours, PVG_PRECISION_DEFAULT, NULL));
    CHECK_ARRAY(wrapped, PVG_INT32, SHAPE(1, 1), ((const int32_t[]){1 << 30}), 0);
    RELEASE(a, b, c, large, fours, wrapped);
}

static void dimensions_of_length_0(void) {
    static const int64_t shapes[][3] = {{0, 4, 5}, {4, 0, 5}, {4, 5, 0}, {0, 0, 0}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(shapes[i][0], shapes[i][1])));
        pvg_array *b = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(shapes[i][1], shapes[i][2])));
        const float zeros[20] = {0};
        pvg_array *c = MADE(pvg_matmul(a, b, PVG_PRECISION_DEFAULT, NULL));
        CHECK_ARRAY(c, PVG_FLOAT32, SHAPE(shapes[i][0], shapes[i][2]), zeros, 0);
        RELEASE(a, b, c);
    }
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(0, 2, 3))),
              *b = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 4)));
    pvg_array *c = MADE(pvg_matmul(a, b, PVG_PRECISION_DEFAULT, NULL));
    CHECK_ARRAY(c, PVG_FLOAT32, SHAPE(0, 2, 4), NULL, 0);
    RELEASE(a, b, c);
}

/* Every element within k units of rounding of |a| @ |b|, the bound for any order of summation. */
static void accuracy(void) {
    enum { M = 20, K = 700, N = 24 };
    static double x[M * K], y[K * N];
    uint64_t state = 5;
    for (int wide = 0; wide < 2; wide++) {
        int dtype = wide ? PVG_FLOAT64 : PVG_FLOAT32;
        void *p = host_memory(dtype, M * K), *q = host_memory(dtype, K * N);
        for (int i = 0; i < M * K; i++)
            set_value(dtype, p, i, random_real(&state, -1, 1)), x[i] = value_at(dtype, p, i);
        for (int i = 0; i < K * N; i++)
            set_value(dtype, q, i, random_real(&state, -1, 1)), y[i] = value_at(dtype, q, i);
        pvg_array *a = array_of(dtype, SHAPE(M, K), p), *b = array_of(dtype, SHAPE(K, N), q),
                  *c = MADE(pvg_matmul(a, b, PVG_PRECISION_DEFAULT, NULL));
        void *values = host_copy(c);
        for (int i = 0; i < M * N; i++) {
            double sum = 0, magnitude = 0;
            for (int l = 0; l < K; l++) {
                sum += x[i / N * K + l] * y[l * N + i % N];
                magnitude += fabs(x[i / N * K + l] * y[l * N + i % N]);
            }
            CHECK_CLOSE(value_at(dtype, values, i), sum,
                        K * magnitude * (wide ? 0x1p-52 : 0x1p-24));
        }
        free(values);
        free(p);
        free(q);
        RELEASE(a, b, c);
    }
}

static void results_over_the_operands(void) {
    uint64_t state = 6;
    pvg_array *a = random_array(PVG_FLOAT32, SHAPE(33, 33), &state),
              *b = random_array(PVG_FLOAT32, SHAPE(33, 33), &state);
    pvg_array *c = MADE(pvg_matmul(a, b, PVG_PRECISION_DEFAULT, NULL));
    float *expected = host_copy(c);
    CHECK(pvg_matmul(a, b, PVG_PRECISION_DEFAULT, a) == a);
    CHECK_ARRAY(a, PVG_FLOAT32, SHAPE(33, 33), expected, 0);
    const int axes[2] = {1, 0};
    pvg_array *transposed = MADE(pvg_permute(c, axes)); /* a result that is not contiguous */
    free(expected);
    RELEASE(c);
    c = MADE(pvg_matmul(b, b, PVG_PRECISION_DEFAULT, NULL));
    expected = host_copy(c);
    CHECK(pvg_matmul(b, b, PVG_PRECISION_DEFAULT, transposed) == transposed);
    CHECK_ARRAY(transposed, PVG_FLOAT32, SHAPE(33, 33), expected, 0);
    CHECK(pvg_matmul(b, b, PVG_PRECISION_DEFAULT, b) == b);
    CHECK_ARRAY(b, PVG_FLOAT32, SHAPE(33, 33), expected, 0);
    free(expected);
    RELEASE(a, b, c, transposed);
}

static void shapes_that_do_not_match(void) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2, 3))),
              *scalar = MADE(pvg_array_empty(0, PVG_FLOAT32, SCALAR));
    pvg_array *batch2 = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2, 3, 3))),
              *batch3 = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 3, 3)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(a, a, PVG_PRECISION_DEFAULT, NULL));
    CHECK(strstr(pvg_last_error(), "matmul") && strstr(pvg_last_error(), "(2, 3)"));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(a, scalar, PVG_PRECISION_DEFAULT, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(scalar, a, PVG_PRECISION_DEFAULT, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(batch2, batch3, PVG_PRECISION_DEFAULT, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(a, batch2, PVG_PRECISION_DEFAULT, a));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_vecdot(a, scalar, PVG_PRECISION_DEFAULT));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_vecdot(batch2, batch3, PVG_PRECISION_DEFAULT));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_vecdot(a, a, 99));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_vecdot(a, NULL, PVG_PRECISION_DEFAULT));
    RELEASE(a, scalar, batch2, batch3);
}

/* Small integers are exact in every precision; codes that there are not, are errors. */
static void precisions(void) {
    uint64_t state = 7;
    pvg_array *a = random_array(PVG_FLOAT32, SHAPE(40, 70), &state),
              *b = random_array(PVG_FLOAT32, SHAPE(70, 33), &state);
    void *x = host_copy(a), *y = host_copy(b),
         *expected = multiply_on_host(PVG_FLOAT32, x, y, 40, 70, 33);
    for (int code = PVG_PRECISION_DEFAULT; code <= PVG_PRECISION_FP16; code++) {
        int by_default = code == PVG_PRECISION_DEFAULT ? PVG_PRECISION_FLOAT32 : code;
        CHECK_OK(pvg_set_option(PVG_OPTION_MATMUL_PRECISION, by_default));
        pvg_array *c = MADE(pvg_matmul(a, b, code, NULL)),
                  *d = MADE(pvg_matmul(a, b, PVG_PRECISION_DEFAULT, NULL));
        CHECK_ARRAY(c, PVG_FLOAT32, SHAPE(40, 33), expected, 1e-300);
        CHECK_ARRAY(d, PVG_FLOAT32, SHAPE(40, 33), expected, 1e-300);
        RELEASE(c, d);
    }
    CHECK_OK(pvg_set_option(PVG_OPTION_MATMUL_PRECISION, PVG_PRECISION_FLOAT32));
    static const int wrong[] = {-1, 7, 1000};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(a, b, wrong[i], NULL));
        CHECK(strstr(pvg_last_error(), "matmul") && strstr(pvg_last_error(), "precision"));
    }
    free(x);
    free(y);
    free(expected);
    RELEASE(a, b);
}

/* The portable kernel takes everything; one that cannot compute a product says so, and `out` stays
 * as it was. */
static void kernels_that_are_forced(void) {
    uint64_t state = 8;
    pvg_array *a = random_array(PVG_FLOAT32, SHAPE(33, 20), &state),
              *b = random_array(PVG_FLOAT32, SHAPE(20, 37), &state),
              *integers = random_array(PVG_INT64, SHAPE(20, 20), &state);
    CHECK_OK(pvg_set_option(PVG_OPTION_MATMUL_KERNEL, PVG_MATMUL_TILED));
    check_product(__LINE__, a, b);
    check_product(__LINE__, integers, integers);
    CHECK_OK(pvg_set_option(PVG_OPTION_MATMUL_KERNEL, PVG_MATMUL_OUTER));
    check_product(__LINE__, a, b);
    void *zeros = host_memory(PVG_INT64, 400);
    pvg_array *out = array_of(PVG_INT64, SHAPE(20, 20), zeros);
    for (int kernel = PVG_MATMUL_TILED + 1; kernel <= PVG_MATMUL_OUTER; kernel++) {
        CHECK_OK(pvg_set_option(PVG_OPTION_MATMUL_KERNEL, kernel)); /* none takes integers */
        CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(integers, integers, PVG_PRECISION_DEFAULT, out));
        CHECK(strstr(pvg_last_error(), "forced") && strstr(pvg_last_error(), "(20, 20)"));
        CHECK_ARRAY(out, PVG_INT64, SHAPE(20, 20), zeros, 0);
    }
    free(zeros);
    CHECK_OK(pvg_set_option(PVG_OPTION_MATMUL_KERNEL, PVG_MATMUL_AUTO));
    check_product(__LINE__, integers, integers);
    RELEASE(a, b, integers, out);
}

int main(void) {
    begin("test_matmul");
    RUN(every_dtype);
    RUN(awkward_shapes);
    RUN(every_layout);
    RUN(batches);
    RUN(rows_and_columns);
    RUN(dots_of_rows_that_begin_anywhere);
    RUN(mixed_dtypes);
    RUN(dimensions_of_length_0);
    RUN(accuracy);
    RUN(results_over_the_operands);
    RUN(shapes_that_do_not_match);
    RUN(precisions);
    RUN(kernels_that_are_forced);
    return finish();
}
