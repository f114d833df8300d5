/* Elementwise operations: values, dtypes, broadcasting, layouts, and results written into given
 * arrays. */
#include "check.h"

static const double EXACT = 1e-300; /* equal as numbers; NaN where NaN is expected */

static double apply_binary(int operation, double a, double b) {
    switch (operation) {
    case PVG_ADD: return a + b;
    case PVG_SUBTRACT: return a - b;
    case PVG_MULTIPLY: return a * b;
    case PVG_DIVIDE: return a / b;
    case PVG_MAXIMUM: return isnan(a) || isnan(b) ? NAN : fmax(a, b);
    case PVG_MINIMUM: return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    case PVG_BITWISE_AND: return (double)((int64_t)a & (int64_t)b);
    case PVG_BITWISE_OR: return (double)((int64_t)a | (int64_t)b);
    case PVG_BITWISE_XOR: return (double)((int64_t)a ^ (int64_t)b);
    case PVG_REMAINDER: return b == 0 ? NAN : copysign(a - b * floor(a / b), b);
    case PVG_FLOOR_DIVIDE: return b == 0 || a == 0 ? a / b : floor(a / b);
    case PVG_POW: return pow(a, b);
    case PVG_ATAN2: return atan2(a, b);
    case PVG_HYPOT: return hypot(a, b);
    case PVG_COPYSIGN: return copysign(a, b);
    case PVG_FMAX: return fmax(a, b);
    case PVG_FMIN: return fmin(a, b);
    case PVG_HEAVISIDE: return isnan(a) ? a : a < 0 ? 0 : a > 0 ? 1 : b;
    case PVG_LOGADDEXP: return fmax(a, b) + log1p(exp(-fabs(a - b)));
    case PVG_EQUAL: return a == b;
    case PVG_NOT_EQUAL: return a != b;
    case PVG_LESS: return a < b;
    case PVG_LESS_EQUAL: return a <= b;
    case PVG_GREATER: return a > b;
    case PVG_GREATER_EQUAL: return a >= b;
    case PVG_LOGICAL_AND: return a != 0 && b != 0;
    case PVG_LOGICAL_OR: return a != 0 || b != 0;
    case PVG_LOGICAL_XOR: return (a != 0) != (b != 0);
    }
    report(__FILE__, __LINE__, "nothing to compare operation %d with", operation);
    return NAN;
}

/* The low bytes of what two integers give, as far as it is not what floats give. */
static int64_t of_integers(int operation, int64_t a, int64_t b, int bits) {
    uint64_t power = 1;
    switch (operation) {
    case PVG_REMAINDER: return b == 0 ? 0 : (a % b + b) % b;
    case PVG_FLOOR_DIVIDE: return b == 0 ? 0 : (int64_t)floor((double)a / (double)b);
    case PVG_BITWISE_LEFT_SHIFT: return b < 0 || b >= bits ? 0 : (int64_t)((uint64_t)a << b);
    case PVG_BITWISE_RIGHT_SHIFT: return a >> (b < 0 || b >= bits ? 63 : b);
    case PVG_POW:
        if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
        while (b-- > 0) power *= (uint64_t)a;
        return (int64_t)power;
    }
    return (int64_t)apply_binary(operation, (double)a, (double)b);
}

/* How far a result may be from the host's, relative to the larger of 1 and that. */
static double error_of(int operation, int dtype) {
    if (operation != PVG_POW && operation != PVG_ATAN2 && operation != PVG_HYPOT) return EXACT;
    return dtype == PVG_BFLOAT16  ? 8e-3
           : dtype == PVG_FLOAT16 ? 1e-3
           : is_float(dtype)      ? 5e-7
                                  : EXACT;
}

static void *broadcast_copy(const pvg_array *a, int ndim, const int64_t *shape) {
    pvg_array *view = MADE(pvg_broadcast_to(a, ndim, shape));
    void *values = host_copy(view);
    RELEASE(view);
    return values;
}

/* The result of an operation on two arrays of small integers, compared with the host's. */
static void check_binary(int line, int operation, const pvg_array *a, const pvg_array *b) {
    pvg_array *result = pvg_binary(operation, a, b, NULL);
    if (!result) {
        report(__FILE__, line, "operation %d failed: %s", operation, pvg_last_error());
        return;
    }
    int ndim = pvg_array_ndim(result), ad = pvg_array_dtype(a), bd = pvg_array_dtype(b);
    int dtype = result_dtype(row_of(operation), pvg_promote(ad, bd));
    const int64_t *shape = pvg_array_shape(result);
    int64_t n = pvg_array_size(result);
    void *x = broadcast_copy(a, ndim, shape), *y = broadcast_copy(b, ndim, shape),
         *expected = host_memory(dtype, n);
    const size_t bytes = (size_t)pvg_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) {
        const double left = value_at(ad, x, i), right = value_at(bd, y, i);
        if (is_float(dtype) || dtype == PVG_BOOL) {
            set_value(dtype, expected, i, apply_binary(operation, left, right));
        } else {
            const int64_t value =
                of_integers(operation, (int64_t)left, (int64_t)right, 8 * (int)bytes);
            memcpy((char *)expected + (size_t)i * bytes, &value, bytes);
        }
    }
    char text[64];
    snprintf(text, sizeof text, "operation %d on dtypes %d, %d", operation, ad, bd);
    check_array(__FILE__, line, text, result, dtype, ndim, shape, expected,
                error_of(operation, dtype));
    free(x);
    free(y);
    free(expected);
    RELEASE(result);
}

static void every_pair_of_dtypes(void) {
    uint64_t state = 1;
    for (int i = 0; i < dtype_count; i++)
        for (int j = 0; j < dtype_count; j++) {
            pvg_array *a = random_array(all_dtypes[i], SHAPE(37), &state);
            pvg_array *b = random_array(all_dtypes[j], SHAPE(37), &state);
            int dtype = pvg_promote(all_dtypes[i], all_dtypes[j]);
            for (int k = 0; k < operation_count; k++) {
                int operation = all_operations[k].code;
                if (!is_of(&all_operations[k], "binary")) continue;
                if (pvg_supports(operation, dtype))
                    check_binary(__LINE__, operation, a, b);
                else
                    CHECK_NULL(PVG_ERROR_TYPE, pvg_binary(operation, a, b, NULL));
            }
            RELEASE(a, b);
        }
}

static void awkward_lengths(void) {
    uint64_t state = 2;
    const int dtypes[] = {PVG_UINT8, PVG_INT64, PVG_FLOAT32};
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t i = 0; i < COUNT(awkward_sizes); i++) {
            pvg_array *a = random_array(dtypes[d], SHAPE(awkward_sizes[i]), &state);
            pvg_array *b = random_array(dtypes[d], SHAPE(awkward_sizes[i]), &state);
            check_binary(__LINE__, PVG_ADD, a, b);
            check_binary(__LINE__, PVG_LESS, a, b);
            RELEASE(a, b);
        }
}

static void broadcasting(void) {
    static const int64_t pairs[][2][3] = {
        {{5, 33, 7}, {1, 1, 1}},  {{5, 33, 7}, {1, 1, 7}},  {{5, 33, 7}, {1, 33, 1}},
        {{5, 1, 7}, {1, 33, 7}},  {{5, 33, 1}, {5, 1, 7}},  {{1, 33, 1}, {5, 1, 7}},
        {{5, 1, 1}, {5, 33, 70}}, {{1, 1, 200}, {9, 3, 1}}, {{0, 3, 1}, {1, 1, 4}}};
    uint64_t state = 3;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        pvg_array *a = random_array(PVG_FLOAT32, 3, pairs[i][0], &state);
        pvg_array *b = random_array(PVG_FLOAT32, 3, pairs[i][1], &state);
        check_binary(__LINE__, PVG_SUBTRACT, a, b);
        check_binary(__LINE__, PVG_SUBTRACT, b, a);
        RELEASE(a, b);
    }
    pvg_array *matrix = random_array(PVG_INT32, SHAPE(6, 4), &state),
              *row = random_array(PVG_INT32, SHAPE(4), &state);
    pvg_array *scalar = random_array(PVG_INT64, SCALAR, &state),
              *column = random_array(PVG_INT32, SHAPE(6), &state);
    check_binary(__LINE__, PVG_MULTIPLY, matrix, row);
    check_binary(__LINE__, PVG_MULTIPLY, scalar, matrix);
    check_binary(__LINE__, PVG_ADD, scalar, scalar);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_ADD, matrix, column, NULL));
    RELEASE(matrix, row, scalar, column);
}

/* Views that begin 0 to 15 elements into their memory: wide loads must look at the pointer. And
 * nothing beside the result is written. */
static void views_at_every_offset(void) {
    uint64_t state = 4;
    const int dtypes[] = {PVG_UINT8, PVG_INT32, PVG_FLOAT64};
    const int64_t one = 1, n = 300;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int64_t offset = 0; offset < 16; offset++) {
            int64_t other = (offset * 7 + 3) % 16, at = (offset * 5 + 1) % 16;
            pvg_array *all = random_array(dtypes[d], SHAPE(320), &state),
                      *out = random_array(dtypes[d], SHAPE(320), &state);
            pvg_array *a = MADE(pvg_slice(all, &offset, &one, &n)),
                      *b = MADE(pvg_slice(all, &other, &one, &n));
            pvg_array *part = MADE(pvg_slice(out, &at, &one, &n));
            unsigned char *x = host_copy(a), *y = host_copy(b), *expected = host_copy(out);
            for (int64_t i = 0; i < n; i++)
                set_value(dtypes[d], expected, at + i,
                          value_at(dtypes[d], x, i) + value_at(dtypes[d], y, i));
            CHECK(pvg_binary(PVG_ADD, a, b, part) == part);
            CHECK_ARRAY(out, dtypes[d], SHAPE(320), expected, EXACT);
            RELEASE(all, out, a, b, part);
            free(x);
            free(y);
            free(expected);
        }
}

static void strided_in_many_dimensions(void) {
    static const int64_t shape[8] = {2, 3, 1, 2, 3, 2, 1, 4};
    static const int orders[][8] = {
        {7, 6, 5, 4, 3, 2, 1, 0}, {0, 2, 4, 6, 1, 3, 5, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
    uint64_t state = 5;
    for (size_t i = 0; i < COUNT(orders); i++) {
        int64_t start[8] = {0}, step[8] = {1, -1, 1, 1, -1, 1, 1, 2},
                length[8] = {2, 3, 1, 2, 3, 2, 1, 2};
        for (int d = 0; d < 8; d++) start[d] = step[d] < 0 ? shape[d] - 1 : 0;
        pvg_array *a = random_array(PVG_FLOAT32, 8, shape, &state),
                  *b = MADE(pvg_slice(a, start, step, length));
        pvg_array *c = MADE(pvg_permute(b, orders[i])), *d = MADE(pvg_contiguous(c));
        check_binary(__LINE__, PVG_SUBTRACT, c, d);
        check_binary(__LINE__, PVG_GREATER, d, c);
        RELEASE(a, b, c, d);
    }
}

/* Within so many units in the last place of the exact result. */
static void check_ulps(int line, int operation, int dtype, double x, double value, double expected,
                       double ulps) {
    double digits = dtype == PVG_FLOAT32 ? 0x1p-23 : 0x1p-52,
           smallest = dtype == PVG_FLOAT32 ? 0x1p-149 : 0x1p-1074;
    if (dtype == PVG_FLOAT32) expected = (float)expected; /* also makes what overflows infinite */
    if (value == expected || (isnan(value) && isnan(expected))) return;
    if (!(fabs(value - expected) <= ulps * fmax(digits * fabs(expected), smallest)))
        report(__FILE__, line, "operation %d of %.9g is %.17g, expected %.17g", operation, x, value,
               expected);
}

static double apply_unary(int operation, double a) {
    switch (operation) {
    case PVG_NEGATIVE: return -a;
    case PVG_ABS: return fabs(a);
    case PVG_EXP: return exp(a);
    case PVG_EXPM1: return expm1(a);
    case PVG_LOG: return log(a);
    case PVG_SQRT: return sqrt(a);
    case PVG_TANH: return tanh(a);
    case PVG_GELU: return a < -40 ? 0 : (double)(0.5L * a * erfcl(-a * sqrtl(0.5L)));
    case PVG_SILU: return a < -800 ? 0 : a / (1 + exp(-a));
    case PVG_SIGMOID: return a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a));
    case PVG_RELU: return isnan(a) || a > 0 ? a : 0;
    case PVG_CONJ:
    case PVG_POSITIVE: return a;
    case PVG_SIGN: return isnan(a) ? a : (a > 0) - (a < 0);
    case PVG_SQUARE: return a * a;
    case PVG_RECIPROCAL: return 1 / a;
    case PVG_SIN: return sin(a);
    case PVG_COS: return cos(a);
    case PVG_TAN: return tan(a);
    case PVG_ASIN: return asin(a);
    case PVG_ACOS: return acos(a);
    case PVG_ATAN: return atan(a);
    case PVG_SINH: return sinh(a);
    case PVG_COSH: return cosh(a);
    case PVG_ASINH: return asinh(a);
    case PVG_ACOSH: return acosh(a);
    case PVG_ATANH: return atanh(a);
    case PVG_EXP2: return exp2(a);
    case PVG_LOG1P: return log1p(a);
    case PVG_LOG2: return log2(a);
    case PVG_LOG10: return log10(a);
    case PVG_ISNAN: return isnan(a) != 0;
    case PVG_ISINF: return isinf(a) != 0;
    case PVG_ISFINITE: return isfinite(a) != 0;
    case PVG_SIGNBIT: return signbit(a) != 0;
    case PVG_FLOOR: return floor(a);
    case PVG_CEIL: return ceil(a);
    case PVG_TRUNC: return trunc(a);
    case PVG_ROUND: return rint(a);
    }
    report(__FILE__, __LINE__, "nothing to compare operation %d with", operation);
    return NAN;
}

static double ulps_of(int operation) {
    switch (operation) {
    case PVG_NEGATIVE:
    case PVG_ABS:
    case PVG_CONJ:
    case PVG_POSITIVE:
    case PVG_SIGN:
    case PVG_FLOOR:
    case PVG_CEIL:
    case PVG_TRUNC:
    case PVG_ROUND:
    case PVG_RELU: return 0;
    case PVG_SQUARE:
    case PVG_RECIPROCAL:
    case PVG_SQRT: return 0.51;
    case PVG_SIGMOID:
    case PVG_TAN:
    case PVG_ASIN:
    case PVG_SINH:
    case PVG_COSH:
    case PVG_ASINH:
    case PVG_ACOSH:
    case PVG_ATANH:
    case PVG_LOG10: return 4;
    case PVG_GELU: return 24;
    case PVG_SILU: return 8;
    }
    return 2;
}

static void unary_functions(void) {
    static const double special[] = {0,      -0.0, 1,  -1,  NAN,  INFINITY, -INFINITY, 1e-40,
                                     -1e-40, 88.7, 89, -87, -103, -104,     1e4,       -1e4};
    enum { RANDOM = 1000, ALL = RANDOM + (int)COUNT(special) };
    uint64_t state = 6;
    for (int wide = 0; wide < 2; wide++) {
        int dtype = wide ? PVG_FLOAT64 : PVG_FLOAT32;
        void *x = host_memory(dtype, ALL);
        for (int i = 0; i < ALL; i++)
            set_value(dtype, x, i,
                      i < RANDOM
                          ? ldexp(random_real(&state, -1, 1), (int)random_integer(&state, -20, 7))
                          : special[i - RANDOM]);
        pvg_array *a = array_of(dtype, SHAPE(ALL), x);
        for (int k = 0; k < operation_count; k++) {
            int operation = all_operations[k].code;
            if (!is_of(&all_operations[k], "unary")) continue;
            if (!pvg_supports(operation, dtype)) {
                CHECK_NULL(PVG_ERROR_TYPE, pvg_unary(operation, a, NULL));
                continue;
            }
            pvg_array *result = MADE(pvg_unary(operation, a, NULL));
            const int gives = result_dtype(&all_operations[k], dtype);
            CHECK_EQUAL(pvg_array_dtype(result), gives);
            void *values = host_copy(result);
            for (int i = 0; i < ALL; i++) {
                double in = value_at(dtype, x, i);
                if (gives == PVG_BOOL) {
                    CHECK(value_at(gives, values, i) == apply_unary(operation, in));
                    continue;
                }
                check_ulps(__LINE__, operation, dtype, in, value_at(dtype, values, i),
                           apply_unary(operation, in), ulps_of(operation));
            }
            free(values);
            RELEASE(result);
        }
        RELEASE(a);
        free(x);
    }
}

static void unary_functions_of_integers(void) {
    uint64_t state = 7;
    for (int d = 0; d < dtype_count; d++) {
        int dtype = all_dtypes[d];
        if (is_float(dtype)) continue;
        pvg_array *a = random_array(dtype, SHAPE(100), &state);
        void *x = host_copy(a);
        for (int k = 0; k < operation_count; k++) {
            int operation = all_operations[k].code;
            if (!is_of(&all_operations[k], "unary")) continue;
            int gives = result_dtype(&all_operations[k], dtype);
            if (!pvg_supports(operation, dtype)) {
                CHECK_NULL(PVG_ERROR_TYPE, pvg_unary(operation, a, NULL));
                continue;
            }
            pvg_array *result = MADE(pvg_unary(operation, a, NULL));
            if (operation == PVG_BITWISE_INVERT) { /* with a it has all bits, and twice it is a */
                pvg_array *all = MADE(pvg_binary(PVG_BITWISE_XOR, result, a, NULL));
                pvg_array *none = MADE(pvg_unary(operation, all, NULL));
                unsigned char *bits = host_copy(none);
                for (int64_t i = 0; i < 100 * pvg_dtype_size(dtype); i++) CHECK(bits[i] == 0);
                MADE(pvg_unary(operation, result, result));
                CHECK_ARRAY(result, dtype, SHAPE(100), x, EXACT);
                free(bits);
                RELEASE(all, none, result);
                continue;
            }
            void *expected = host_memory(gives, 100);
            for (int i = 0; i < 100; i++)
                set_value(gives, expected, i, apply_unary(operation, value_at(dtype, x, i)));
            CHECK_ARRAY(result, gives, SHAPE(100), expected, is_float(gives) ? 1e-6 : EXACT);
            RELEASE(result);
            free(expected);
        }
        RELEASE(a);
        free(x);
    }
}

static void integers_wrap(void) {
    static const int32_t extremes[3] = {INT32_MIN, INT32_MAX, -1};
    static const uint8_t bytes[3] = {255, 128, 1};
    pvg_array *a = array_of(PVG_INT32, SHAPE(3), extremes),
              *b = array_of(PVG_UINT8, SHAPE(3), bytes), *results[6];
    CHECK_ARRAY(results[0] = MADE(pvg_add(a, a)), PVG_INT32, SHAPE(3),
                ((const int32_t[]){0, -2, -2}), 0);
    CHECK_ARRAY(results[1] = MADE(pvg_multiply(a, a)), PVG_INT32, SHAPE(3),
                ((const int32_t[]){0, 1, 1}), 0);
    CHECK_ARRAY(results[2] = MADE(pvg_unary(PVG_ABS, a, NULL)), PVG_INT32, SHAPE(3),
                ((const int32_t[]){INT32_MIN, INT32_MAX, 1}), 0);
    CHECK_ARRAY(results[3] = MADE(pvg_unary(PVG_NEGATIVE, a, NULL)), PVG_INT32, SHAPE(3),
                ((const int32_t[]){INT32_MIN, -INT32_MAX, 1}), 0);
    CHECK_ARRAY(results[4] = MADE(pvg_add(b, b)), PVG_UINT8, SHAPE(3),
                ((const uint8_t[]){254, 0, 2}), 0);
    CHECK_ARRAY(results[5] = MADE(pvg_multiply(b, b)), PVG_UINT8, SHAPE(3),
                ((const uint8_t[]){1, 0, 1}), 0);
    for (int i = 0; i < 6; i++) RELEASE(results[i]);
    RELEASE(a, b);
}

static void nan_and_signed_zero(void) {
    const float x[6] = {NAN, 1, NAN, -0.0f, 0.0f, INFINITY}, y[6] = {1, NAN, NAN, 0.0f, -0.0f, NAN};
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(6), x), *b = array_of(PVG_FLOAT32, SHAPE(6), y);
    pvg_array *largest = MADE(pvg_binary(PVG_MAXIMUM, a, b, NULL)),
              *smallest = MADE(pvg_binary(PVG_MINIMUM, a, b, NULL));
    for (int i = 0; i < 6; i++) {
        CHECK(isnan(element(largest, i)) == (i != 3 && i != 4));
        CHECK(isnan(element(smallest, i)) == (i != 3 && i != 4));
    }
    for (int i = 3; i < 5; i++) {
        CHECK(!signbit(element(largest, i)));
        CHECK(signbit(element(smallest, i)) != 0);
    }
    check_binary(__LINE__, PVG_EQUAL, a, b);
    check_binary(__LINE__, PVG_NOT_EQUAL, a, b);
    check_binary(__LINE__, PVG_LESS_EQUAL, a, b);
    pvg_array *relu = MADE(pvg_relu(a));
    CHECK(isnan(element(relu, 0)) && element(relu, 1) == 1 && element(relu, 3) == 0);
    RELEASE(a, b, largest, smallest, relu);
}

/* The elements on one side of a diagonal, of every dtype, whole vectors and what is left of one. */
static void triangles(void) {
    for (int i = 0; i < dtype_count; i++) {
        int dtype = all_dtypes[i];
        for (int64_t columns = 15; columns <= 16; columns++) {
            uint64_t state = 5;
            void *values = small_integers(dtype, 9 * columns, &state);
            pvg_array *a = array_of(dtype, SHAPE(9, columns), values);
            pvg_array *upper = MADE(pvg_triangle(a, 1, -2, NULL));
            for (int64_t k = 0; k < 9 * columns; k++)
                if (k % columns - k / columns < -2) set_value(dtype, values, k, 0);
            CHECK_ARRAY(upper, dtype, SHAPE(9, columns), values, 0);
            RELEASE(a, upper);
            free(values);
        }
    }
}

int main(void) {
    begin("test_elementwise");
    RUN(every_pair_of_dtypes);
    RUN(awkward_lengths);
    RUN(broadcasting);
    RUN(views_at_every_offset);
    RUN(strided_in_many_dimensions);
    RUN(unary_functions);
    RUN(unary_functions_of_integers);
    RUN(integers_wrap);
    RUN(nan_and_signed_zero);
    RUN(triangles);
    return finish();
}
