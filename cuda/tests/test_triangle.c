/* pvg_triangle: which elements stay, at every offset into memory, and that nothing beside the
 * result is written. */
#include "check.h"

static int is_kept(int upper, int64_t diagonal, int64_t row, int64_t column) {
    return upper ? column - row >= diagonal : column - row <= diagonal;
}

/* The triangles of `a`, matrices of its last two axes; free() them. */
static void *triangles_on_host(const pvg_array *a, int upper, int64_t diagonal) {
    const int ndim = pvg_array_ndim(a), dtype = pvg_array_dtype(a);
    const int64_t *shape = pvg_array_shape(a), rows = shape[ndim - 2], columns = shape[ndim - 1];
    void *values = host_copy(a);
    for (int64_t i = 0; i < pvg_array_size(a); i++)
        if (!is_kept(upper, diagonal, i / columns % rows, i % columns))
            set_value(dtype, values, i, 0);
    return values;
}

static void every_dtype_and_diagonal(void) {
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {2, 33, 4}, {2, 1, 70}, {2, 70, 1}};
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            pvg_array *a = random_array(all_dtypes[d], 3, shapes[i], &state);
            for (int64_t diagonal = -6; diagonal <= 6; diagonal += 2)
                for (int upper = 0; upper < 2; upper++) {
                    void *expected = triangles_on_host(a, upper, diagonal);
                    pvg_array *result = MADE(pvg_triangle(a, upper, diagonal, NULL));
                    CHECK_ARRAY(result, all_dtypes[d], 3, shapes[i], expected, 0);
                    RELEASE(result);
                    free(expected);
                }
            RELEASE(a);
        }
}

/* Views that begin 0 to 15 elements into their memory, of sizes that no vector divides. */
static void at_every_offset(void) {
    enum { ROWS = 7, COLUMNS = 19, N = ROWS * COLUMNS, ALL = N + 40 };
    const int dtypes[] = {PVG_UINT8, PVG_INT16, PVG_FLOAT32, PVG_FLOAT64};
    const int64_t one = 1, n = N;
    uint64_t state = 2;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int64_t offset = 0; offset < 16; offset++) {
            const int64_t at = offset * 5 % 16;
            pvg_array *from = random_array(dtypes[d], SHAPE(ALL), &state),
                      *to = random_array(dtypes[d], SHAPE(ALL), &state);
            pvg_array *a = MADE(pvg_slice(from, &offset, &one, &n)),
                      *b = MADE(pvg_slice(to, &at, &one, &n));
            pvg_array *matrix = MADE(pvg_reshape(a, SHAPE(ROWS, COLUMNS))),
                      *place = MADE(pvg_reshape(b, SHAPE(ROWS, COLUMNS)));
            void *expected = host_copy(to), *triangle = triangles_on_host(matrix, 1, 2);
            const size_t item = (size_t)pvg_dtype_size(dtypes[d]);
            memcpy((char *)expected + (size_t)at * item, triangle, N * item);
            CHECK(pvg_triangle(matrix, 1, 2, place) == place);
            CHECK_ARRAY(to, dtypes[d], SHAPE(ALL), expected, 0);
            RELEASE(from, to, a, b, matrix, place);
            free(expected);
            free(triangle);
        }
}

static void what_is_refused(void) {
    uint64_t state = 3;
    pvg_array *row = random_array(PVG_INT32, SHAPE(4), &state),
              *matrix = random_array(PVG_INT32, SHAPE(4, 4), &state);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_triangle(row, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_triangle(matrix, 2, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_triangle(matrix, -1, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_triangle(matrix, 0, 0, row));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_triangle(NULL, 0, 0, NULL));
    RELEASE(row, matrix);
}

int main(void) {
    begin("test_triangle");
    RUN(every_dtype_and_diagonal);
    RUN(at_every_offset);
    RUN(what_is_refused);
    return finish();
}
