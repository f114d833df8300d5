/* Complex arrays: parts, casts, weak scalars, arithmetic, sums, products, and what is refused. */
#include "check.h"

static const float numbers[] = {1, 2, -3, 0.5f, 0, -4, 7, 7}; /* (1, 2), (-3, 0.5), ... */

static pvg_array *four(void) { return array_of(PVG_COMPLEX64, SHAPE(4), numbers); }

/* The elements are these pairs, as complex64. */
static void check_pairs(int line, const pvg_array *a, const float *expected) {
    CHECK_EQUAL(pvg_array_dtype(a), PVG_COMPLEX64);
    const int64_t n = pvg_array_size(a);
    float *values = host_memory(PVG_COMPLEX64, n);
    CHECK_OK(pvg_copy_to_host(a, values, NULL));
    for (int64_t i = 0; i < 2 * n; i++)
        check_close(__FILE__, line, "a part", (double)values[i], (double)expected[i], 1e-6);
    free(values);
}
#define CHECK_PAIRS(a, ...) check_pairs(__LINE__, a, (const float[]){__VA_ARGS__})

static void parts_are_views(void) {
    pvg_array *a = four(), *re = MADE(pvg_part(a, 0)), *im = MADE(pvg_part(a, 1));
    CHECK_ARRAY(re, PVG_FLOAT32, SHAPE(4), ((const float[]){1, -3, 0, 7}), 0);
    CHECK_ARRAY(im, PVG_FLOAT32, SHAPE(4), ((const float[]){2, 0.5f, -4, 7}), 0);
    const double nine = 9;
    CHECK_OK(pvg_fill(im, PVG_SCALAR_FLOAT, &nine));
    CHECK_PAIRS(a, 1, 9, -3, 9, 0, 9, 7, 9);
    CHECK_NULL(PVG_ERROR_TYPE, pvg_part(re, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_part(a, 2));
    RELEASE(a, re, im);
}

static void casts(void) {
    pvg_array *a = four(), *wide = MADE(pvg_cast(a, PVG_COMPLEX128, NULL));
    pvg_array *back = MADE(pvg_cast(wide, PVG_COMPLEX64, NULL));
    CHECK_PAIRS(back, 1, 2, -3, 0.5f, 0, -4, 7, 7);
    pvg_array *truth = MADE(pvg_cast(a, PVG_BOOL, NULL));
    CHECK_ARRAY(truth, PVG_BOOL, SHAPE(4), ((const uint8_t[]){1, 1, 1, 1}), 0);
    pvg_array *integers = array_of(PVG_INT16, SHAPE(2), (const int16_t[]){5, -6});
    pvg_array *of_integers = MADE(pvg_cast(integers, PVG_COMPLEX64, NULL));
    CHECK_PAIRS(of_integers, 5, 0, -6, 0);
    for (int i = 0; i < dtype_count; i++)
        if (all_dtypes[i] != PVG_BOOL) CHECK_NULL(PVG_ERROR_TYPE, pvg_cast(a, all_dtypes[i], NULL));
    CHECK_STATUS(pvg_copy(of_integers, integers), PVG_ERROR_TYPE);
    RELEASE(a, wide, back, truth, integers, of_integers);
}

static void weak_scalars(void) {
    const double i[2] = {0, 1};
    pvg_array *a = four();
    pvg_array *turned = MADE(pvg_binary_scalar(PVG_MULTIPLY, a, PVG_SCALAR_COMPLEX, i, 1, NULL));
    CHECK_PAIRS(turned, -2, 1, -0.5f, -3, 4, 0, -7, 7);
    pvg_array *halves = array_of(PVG_FLOAT16, SHAPE(1), (const uint16_t[]){0x3c00}); /* 1 */
    pvg_array *sum = MADE(pvg_binary_scalar(PVG_ADD, halves, PVG_SCALAR_COMPLEX, i, 0, NULL));
    CHECK_PAIRS(sum, 1, 1);
    pvg_array *doubles = array_of(PVG_FLOAT64, SHAPE(1), (const double[]){2});
    pvg_array *wide = MADE(pvg_binary_scalar(PVG_ADD, doubles, PVG_SCALAR_COMPLEX, i, 0, NULL));
    CHECK_EQUAL(pvg_array_dtype(wide), PVG_COMPLEX128);
    CHECK_STATUS(pvg_fill(doubles, PVG_SCALAR_COMPLEX, i), PVG_ERROR_TYPE);
    CHECK_OK(pvg_fill(a, PVG_SCALAR_COMPLEX, i));
    CHECK_PAIRS(a, 0, 1, 0, 1, 0, 1, 0, 1);
    RELEASE(a, turned, halves, sum, doubles, wide);
}

static void operations(void) {
    pvg_array *a = four(), *lengths = MADE(pvg_unary(PVG_ABS, a, NULL));
    CHECK_ARRAY(lengths, PVG_FLOAT32, SHAPE(4),
                ((const float[]){2.236068f, 3.0413813f, 4, 9.8994949f}), 1e-6);
    pvg_array *total = MADE(pvg_reduce(PVG_SUM, a, -1, NULL, 0, NULL));
    CHECK_PAIRS(total, 5, 5.5f);
    pvg_array *root = MADE(pvg_unary(PVG_SQRT, a, NULL));
    pvg_array *again = MADE(pvg_binary(PVG_MULTIPLY, root, root, NULL));
    CHECK_PAIRS(again, 1, 2, -3, 0.5f, 0, -4, 7, 7);
    pvg_array *quotient = MADE(pvg_binary(PVG_DIVIDE, a, a, NULL));
    CHECK_PAIRS(quotient, 1, 0, 1, 0, 1, 0, 1, 0);
    pvg_array *same = MADE(pvg_binary(PVG_EQUAL, a, a, NULL));
    CHECK_ARRAY(same, PVG_BOOL, SHAPE(4), ((const uint8_t[]){1, 1, 1, 1}), 0);
    const int refused[] = {PVG_LESS, PVG_MAXIMUM, PVG_REMAINDER, PVG_ATAN2};
    for (size_t i = 0; i < COUNT(refused); i++)
        CHECK_NULL(PVG_ERROR_TYPE, pvg_binary(refused[i], a, a, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_unary(PVG_FLOOR, a, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_reduce(PVG_MAX, a, -1, NULL, 0, NULL));
    RELEASE(a, lengths, total, root, again, quotient, same);
}

static void products(void) {
    pvg_array *a = four(), *matrix = MADE(pvg_reshape(a, SHAPE(2, 2)));
    pvg_array *square = MADE(pvg_matmul(matrix, matrix, 0, NULL));
    CHECK_PAIRS(square, -1, 16, -28.5f, -23, 36, -32, 2, 110);
    pvg_array *dot = MADE(pvg_matmul(a, a, 0, NULL));
    CHECK_PAIRS(dot, -10.25f, 99);
    CHECK_NULL(PVG_ERROR_TYPE, pvg_dense(matrix, matrix, NULL, 0, 0, NULL, NULL));
    RELEASE(a, matrix, square, dot);
}

int main(void) {
    begin("test_complex");
    RUN(parts_are_views);
    RUN(casts);
    RUN(weak_scalars);
    RUN(operations);
    RUN(products);
    return finish();
}
