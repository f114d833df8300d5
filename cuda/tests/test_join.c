/* pvg_concat: every dtype, axis and number of parts, at every offset into memory, and what is
 * refused. */
#include "check.h"

/* A part (rows, length, inner) of values of its own; a view that begins `offset` elements into its
 * memory, and whose rows have `gap` elements between them. */
static pvg_array *part_at(int dtype, const int64_t *shape, int64_t offset, int64_t gap,
                          uint64_t *state, pvg_array **base) {
    const int64_t row = shape[1] * shape[2] + gap, one[2] = {1, 1};
    *base = random_array(dtype, SHAPE(offset + shape[0] * row + 1), state);
    const int64_t size = shape[0] * row, rows[2] = {shape[0], row}, start[2] = {0, 0};
    const int64_t cut[2] = {shape[0], shape[1] * shape[2]};
    pvg_array *flat = MADE(pvg_slice(*base, &offset, one, &size));
    pvg_array *matrix = MADE(pvg_reshape(flat, 2, rows));
    pvg_array *inside = MADE(pvg_slice(matrix, start, one, cut));
    pvg_array *result = MADE(pvg_reshape(inside, 3, shape));
    RELEASE(flat, matrix, inside);
    return result;
}

/* The parts joined along axis 1, as bytes; free() them. */
static void *joined_on_host(pvg_array **parts, int n, int dtype, int64_t rows, int64_t width) {
    const size_t item = (size_t)pvg_dtype_size(dtype);
    unsigned char *result = host_memory(dtype, rows * width);
    int64_t column = 0;
    for (int i = 0; i < n; i++) {
        const int64_t row = pvg_array_size(parts[i]) / rows;
        unsigned char *values = host_copy(parts[i]);
        for (int64_t r = 0; r < rows; r++)
            memcpy(result + (size_t)(r * width + column) * item, values + (size_t)(r * row) * item,
                   (size_t)row * item);
        free(values);
        column += row;
    }
    return result;
}

enum { MOST = 70 }; /* more than one launch takes */

static void check_join(int line, int dtype, int n, int64_t rows, int64_t inner, int64_t gap,
                       uint64_t *state) {
    pvg_array *parts[MOST], *bases[MOST];
    int64_t length = 0;
    for (int i = 0; i < n; i++) {
        const int64_t shape[3] = {rows, random_integer(state, n > 9 ? 1 : 0, 9), inner};
        parts[i] = part_at(dtype, shape, random_integer(state, 0, 15), gap, state, &bases[i]);
        length += shape[1];
    }
    void *expected = joined_on_host(parts, n, dtype, rows, length * inner);
    pvg_array *result = pvg_concat((const pvg_array *const *)parts, n, -2, 0, -1);
    char text[96];
    snprintf(text, sizeof text, "%d parts of dtype %d, %d rows, inner %d, gap %d", n, dtype,
             (int)rows, (int)inner, (int)gap);
    if (!result)
        report(__FILE__, line, "%s failed: %s", text, pvg_last_error());
    else
        check_array(__FILE__, line, text, result, dtype, SHAPE(rows, length, inner), expected, 0);
    for (int i = 0; i < n; i++) RELEASE(parts[i], bases[i]);
    RELEASE(result);
    free(expected);
}

static void every_dtype_and_offset(void) {
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (int n = 1; n <= 5; n += 2)
            for (int64_t rows = 1; rows <= 7; rows += 3)
                for (int64_t inner = 1; inner <= 8; inner += 7) {
                    check_join(__LINE__, all_dtypes[d], n, rows, inner, 0, &state);
                    check_join(__LINE__, all_dtypes[d], n, rows, inner, 3, &state);
                }
    const int sizes[] = {PVG_UINT8, PVG_INT16, PVG_FLOAT32, PVG_COMPLEX128};
    for (size_t d = 0; d < COUNT(sizes); d++)
        for (int64_t rows = 1; rows <= 5; rows += 4)
            check_join(__LINE__, sizes[d], MOST, rows, 1, 0, &state);
}

static void side_by_side(void) {
    uint64_t state = 2;
    const int dtypes[] = {PVG_BOOL, PVG_INT16, PVG_FLOAT32, PVG_FLOAT64, PVG_COMPLEX128};
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int n = 1; n <= 3; n++) {
            enum { SIZE = 21 };
            pvg_array *parts[3];
            const size_t item = (size_t)pvg_dtype_size(dtypes[d]);
            unsigned char *expected = host_memory(dtypes[d], n * SIZE);
            for (int i = 0; i < n; i++) {
                parts[i] = random_array(dtypes[d], SHAPE(SIZE), &state);
                unsigned char *values = host_copy(parts[i]);
                for (int k = 0; k < SIZE; k++)
                    memcpy(expected + (size_t)(k * n + i) * item, values + (size_t)k * item, item);
                free(values);
            }
            pvg_array *result = MADE(pvg_concat((const pvg_array *const *)parts, n, 1, 1, -1));
            CHECK_ARRAY(result, dtypes[d], SHAPE(SIZE, n), expected, 0);
            RELEASE(result);
            for (int i = 0; i < n; i++) RELEASE(parts[i]);
            free(expected);
        }
}

static void what_is_refused(void) {
    uint64_t state = 3;
    pvg_array *row = random_array(PVG_INT32, SHAPE(4), &state),
              *matrix = random_array(PVG_FLOAT32, SHAPE(4, 3), &state),
              *number = random_array(PVG_COMPLEX64, 0, NULL, &state);
    const pvg_array *parts[3] = {row, matrix, number}, *none[1] = {NULL};
    CHECK_NULL(PVG_ERROR_VALUE, pvg_concat(parts, 2, 0, 0, -1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_concat(parts, 2, 0, 1, -1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_concat(parts, 0, 0, 0, -1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_concat(NULL, 1, 0, 0, -1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_concat(none, 1, 0, 0, -1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_concat(parts, 1, 0, 2, -1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_concat(parts + 2, 1, 0, 0, -1));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_concat(parts, 1, 1, 0, -1));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_concat(parts, 1, -3, 1, -1));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_concat(parts, 1, 0, 0, 99));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_concat(parts + 2, 1, 0, 1, PVG_FLOAT32));
    RELEASE(row, matrix, number);
}

/* pvg_roll, pvg_repeat, pvg_pad, pvg_diag and the view pvg_diagonal, of 0, 1, 2 and 3, 4, 5. */
static void arranged(void) {
    const int64_t counts[] = {2, 1, 2}, widths[] = {1, 0, 0, 2}, minus[] = {0, -1, 0, 0};
    const int64_t huge[] = {INT64_MAX, 0, 0, 0}, nine = 9, many[] = {INT64_MAX, 2};
    const int32_t rolled[] = {2, 0, 1, 5, 3, 4}, in_a_row[] = {5, 0, 1, 2, 3, 4};
    const int32_t tiled[] = {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5,
                             0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5};
    const int32_t each[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
    const int32_t padded[] = {9, 9, 9, 9, 9, 0, 1, 2, 9, 9, 3, 4, 5, 9, 9};
    const int32_t matrix[] = {0, 0, 0, 1, 0, 0, 0, 5, 0}, shown[] = {1, 5};
    const int32_t numbers[] = {0, 1, 2, 3, 4, 5};
    pvg_array *a = MADE(pvg_array_empty(0, PVG_INT32, SHAPE(2, 3)));
    CHECK_OK(pvg_copy_from_host(a, numbers, NULL));
    pvg_array *of_rows = MADE(pvg_roll(a, -1, 0, 4)), *of_all = MADE(pvg_roll(a, 0, 1, -5));
    pvg_array *whole = MADE(pvg_repeat(a, 3, counts, 1)),
              *apart = MADE(pvg_repeat(a, 2, counts + 1, 0));
    pvg_array *wide = MADE(pvg_pad(a, PVG_SCALAR_INT, &nine, widths));
    pvg_array *view = MADE(pvg_diagonal(a, 1, 0, 1)), *square = MADE(pvg_diag(view, -1));
    CHECK_ARRAY(of_rows, PVG_INT32, SHAPE(2, 3), rolled, 0);
    CHECK_ARRAY(of_all, PVG_INT32, SHAPE(2, 3), in_a_row, 0);
    CHECK_ARRAY(whole, PVG_INT32, SHAPE(2, 2, 6), tiled, 0);
    CHECK_ARRAY(apart, PVG_INT32, SHAPE(2, 6), each, 0);
    CHECK_ARRAY(wide, PVG_INT32, SHAPE(3, 5), padded, 0);
    CHECK_ARRAY(view, PVG_INT32, SHAPE(2), shown, 0);
    CHECK_ARRAY(square, PVG_INT32, SHAPE(3, 3), matrix, 0);
    CHECK_NULL(PVG_ERROR_AXIS, pvg_roll(a, 2, 0, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_roll(a, 0, 2, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_roll(NULL, 0, 0, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_repeat(a, 1, counts, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_repeat(a, 2, NULL, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_repeat(a, 2, counts, 2));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_repeat(a, 2, minus, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_repeat(a, 2, many, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pad(a, PVG_SCALAR_INT, &nine, minus));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pad(a, PVG_SCALAR_INT, &nine, huge));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pad(a, PVG_SCALAR_INT, &nine, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pad(a, PVG_SCALAR_INT, NULL, widths));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_diag(a, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_diag(view, INT64_MIN));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_diag(view, INT64_MAX));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_diagonal(view, 0, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_diagonal(a, 0, 1, -1));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_diagonal(a, 0, 2, 0));
    RELEASE(a, of_rows, of_all, whole, apart, wide, view, square);
}

int main(void) {
    begin("test_join");
    RUN(every_dtype_and_offset);
    RUN(side_by_side);
    RUN(what_is_refused);
    RUN(arranged);
    return finish();
}
