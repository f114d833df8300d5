/* Copies between host and device, of any layout on both sides, and between arrays (copy, cast,
 * fill). */
#include "check.h"

enum { BYTES = 1 << 16, MAX_DIMENSIONS = 5 };

typedef struct {
    int ndim;
    int64_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS]; /* bytes */
    int64_t low, high; /* lowest and highest offset of an element */
} Layout;

/* A layout with random order, gaps and signs of the strides, misaligned if `skew` is not a
 * multiple of the item. */
static Layout random_layout(uint64_t *state, int ndim, const int64_t *shape, int64_t item,
                            int64_t skew) {
    Layout layout = {ndim, {0}, {0}, 0, 0};
    int64_t stride = item + skew;
    int order[MAX_DIMENSIONS];
    for (int i = 0; i < ndim; i++) {
        int j = (int)random_integer(state, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < ndim; i++) {
        int axis = order[i];
        int64_t reach = (shape[axis] - 1) * stride;
        int backwards = random_integer(state, 0, 1) == 1;
        layout.shape[axis] = shape[axis];
        layout.strides[axis] = backwards ? -stride : stride;
        *(backwards ? &layout.low : &layout.high) += backwards ? -reach : reach;
        stride = stride * shape[axis] + random_integer(state, 0, 2) * item;
    }
    return layout;
}

/* Copies the elements of a host layout to or from C order. */
static void walk(const Layout *layout, unsigned char *at_zero, unsigned char *dense, int64_t item,
                 int gather) {
    int64_t index[MAX_DIMENSIONS] = {0}, n = product(layout->ndim, layout->shape);
    for (int64_t i = 0; i < n; i++) {
        unsigned char *at = at_zero;
        for (int d = 0; d < layout->ndim; d++) at += index[d] * layout->strides[d];
        memcpy(gather ? dense + i * item : at, gather ? at : dense + i * item, (size_t)item);
        for (int d = layout->ndim - 1; d >= 0 && ++index[d] == layout->shape[d]; d--) index[d] = 0;
    }
}

static void round_trips_of_random_layouts(void) {
    static unsigned char host[BYTES], back[BYTES], untouched[BYTES];
    uint64_t state = 15;
    for (int round = 0; round < 60; round++) {
        int dtype = all_dtypes[random_integer(&state, 0, dtype_count - 1)],
            ndim = (int)random_integer(&state, 0, MAX_DIMENSIONS);
        int64_t shape[MAX_DIMENSIONS], item = pvg_dtype_size(dtype);
        for (int i = 0; i < ndim; i++)
            shape[i] = random_integer(&state, round % 8 == 0 ? 0 : 1, ndim < 3 ? 37 : 5);
        int64_t n = product(ndim, shape);
        Layout layout = random_layout(&state, ndim, shape, item, round % 3 == 0 ? 1 : 0);
        if (n == 0) layout.low = layout.high = 0;
        if (layout.high - layout.low + item >= BYTES) continue;
        unsigned char *dense = small_integers(dtype, n, &state);
        memset(host, 0xA5, BYTES);
        walk(&layout, host - layout.low, dense, item, 0);
        memcpy(untouched, host, BYTES);
        pvg_array *a = MADE(pvg_array_empty(0, dtype, ndim, shape));
        CHECK_OK(pvg_copy_from_host(a, host - layout.low, layout.strides));
        memset(host, 0xEE, BYTES); /* the source may change as soon as the call returns */
        CHECK_ARRAY(a, dtype, ndim, shape, dense, 0);
        memset(back, 0xA5, BYTES);
        CHECK_OK(pvg_copy_to_host(a, back - layout.low, layout.strides));
        CHECK(memcmp(back, untouched, BYTES) == 0); /* every element, and nothing between them */
        RELEASE(a);
        free(dense);
    }
}

/* Host layout on one side, a view with gaps and negative strides on the other. */
static void round_trips_of_views(void) {
    uint64_t state = 16;
    const int64_t start[2] = {30, 1}, step[2] = {-2, 3}, length[2] = {14, 11};
    const int axes[2] = {1, 0};
    for (int d = 0; d < dtype_count; d++) {
        int dtype = all_dtypes[d];
        void *all = small_integers(dtype, 31 * 35, &state),
             *values = small_integers(dtype, 14 * 11, &state);
        pvg_array *a = array_of(dtype, SHAPE(31, 35), all),
                  *part = MADE(pvg_slice(a, start, step, length));
        pvg_array *view = MADE(pvg_permute(part, axes));
        CHECK_OK(pvg_copy_from_host(view, values, NULL));
        CHECK_ARRAY(view, dtype, SHAPE(11, 14), values, 0);
        for (int i = 0; i < 11; i++)
            for (int j = 0; j < 14; j++)
                set_value(dtype, all, (30 - 2 * j) * 35 + 1 + 3 * i,
                          value_at(dtype, values, i * 14 + j));
        CHECK_ARRAY(a, dtype, SHAPE(31, 35), all, 0); /* nothing beside the view was written */
        RELEASE(a, part, view);
        free(all);
        free(values);
    }
}

static void repeated_and_reversed_sources(void) {
    const float number = 3, numbers[4] = {1, 2, 3, 4};
    const int64_t zero[2] = {0, 0}, row[2] = {0, 4}, reversed[1] = {-4};
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 4)));
    CHECK_OK(pvg_copy_from_host(a, &number, zero));
    CHECK_CLOSE(element(a, 11), 3, 0);
    CHECK_OK(pvg_copy_from_host(a, numbers, row));
    CHECK_CLOSE(element(a, 10), 3, 0);
    CHECK_CLOSE(element(a, 4), 1, 0);
    pvg_array *b = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(4)));
    CHECK_OK(pvg_copy_from_host(b, numbers + 3, reversed));
    CHECK_ARRAY(b, PVG_FLOAT32, SHAPE(4), ((const float[]){4, 3, 2, 1}), 0);
    RELEASE(a, b);
}

static void every_bit_arrives(void) {
    static const uint32_t singles[] = {0x80000000u, 0x00000001u, 0x807FFFFFu, 0x7F800000u,
                                       0x7FC12345u, 0xFFA00001u, 0x7F800001u, 0xFF800000u,
                                       0x007FFFFFu, 0x3F800000u};
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(10),
                            singles); /* -0.0, subnormals, infinities, NaN with payloads */
    CHECK_ARRAY(a, PVG_FLOAT32, SHAPE(10), singles, 0);
    pvg_array *copy = MADE(pvg_cast(a, PVG_FLOAT32, NULL));
    CHECK_ARRAY(copy, PVG_FLOAT32, SHAPE(10), singles, 0);
    const int64_t start = 9, step = -1, length = 10;
    pvg_array *reversed = MADE(pvg_slice(a, &start, &step, &length)),
              *dense = MADE(pvg_contiguous(reversed));
    uint32_t *bits = host_copy(dense);
    for (int i = 0; i < 10; i++) CHECK(bits[i] == singles[9 - i]);
    free(bits);
    RELEASE(a, copy, reversed, dense);
}

static void bytes_other_than_0_become_true(void) {
    static const uint8_t bytes[6] = {0, 1, 2, 128, 255, 0}, expected[6] = {0, 1, 1, 1, 1, 0};
    static const uint8_t apart[11] = {0, 9, 1, 9, 2, 9, 128, 9, 255, 9, 0};
    const int64_t stride = 2;
    pvg_array *a = array_of(PVG_BOOL, SHAPE(6), bytes);
    CHECK_ARRAY(a, PVG_BOOL, SHAPE(6), expected, 0);
    CHECK_OK(pvg_copy_from_host(a, apart, &stride));
    CHECK_ARRAY(a, PVG_BOOL, SHAPE(6), expected, 0);
    RELEASE(a);
}

/* Larger than any staging buffer is likely to be, in pieces that do not divide evenly. */
static void large_copies(void) {
    const int64_t n = 3000001, strides[1] = {-4}, pairs[2] = {8, 4};
    float *values = host_memory(PVG_FLOAT32, n), *back = host_memory(PVG_FLOAT32, n);
    for (int64_t i = 0; i < n; i++) values[i] = (float)i;
    pvg_array *a = array_of(PVG_FLOAT32, 1, &n, values);
    CHECK_OK(pvg_copy_to_host(a, back + n - 1, strides));
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += back[i] != (float)(n - 1 - i);
    CHECK_EQUAL(wrong, 0);
    pvg_array *matrix = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(n / 2, 2)));
    CHECK_OK(pvg_copy_from_host(matrix, values, pairs));
    CHECK_OK(pvg_copy_to_host(matrix, back, NULL));
    CHECK(memcmp(values, back, (size_t)(n - 1) * sizeof *values) == 0);
    RELEASE(a, matrix);
    CHECK_OK(pvg_empty_cache(0)); /* the order check compares pinned memory after each launch */
    free(values);
    free(back);
}

static void transfers_are_counted(void) {
    float values[100] = {0};
    int64_t to = pvg_counter(PVG_COUNT_COPIES_TO_DEVICE),
            to_bytes = pvg_counter(PVG_COUNT_BYTES_TO_DEVICE);
    int64_t back = pvg_counter(PVG_COUNT_COPIES_TO_HOST),
            back_bytes = pvg_counter(PVG_COUNT_BYTES_TO_HOST);
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(100), values), *sum = MADE(pvg_add(a, a));
    CHECK_EQUAL(pvg_counter(PVG_COUNT_COPIES_TO_DEVICE), to + 1);
    CHECK_EQUAL(pvg_counter(PVG_COUNT_BYTES_TO_DEVICE), to_bytes + 400);
    CHECK_EQUAL(pvg_counter(PVG_COUNT_COPIES_TO_HOST), back);
    CHECK_OK(pvg_copy_to_host(sum, values, NULL));
    CHECK_EQUAL(pvg_counter(PVG_COUNT_COPIES_TO_HOST), back + 1);
    CHECK_EQUAL(pvg_counter(PVG_COUNT_BYTES_TO_HOST), back_bytes + 400);
    RELEASE(a, sum);
}

/* One element of every dtype, as pvg_item gives it, the last of a view among others. */
static void items(void) {
    static const double numbers[] = {1, 0, 100, 2};
    const int64_t third = 2, one = 1;
    for (int i = 0; i < dtype_count; i++) {
        const int dtype = all_dtypes[i];
        const char kind = kind_of(dtype);
        void *values = host_memory(dtype, 4);
        for (int k = 0; k < 4; k++) set_value(dtype, values, k, numbers[k]);
        pvg_array *a = array_of(dtype, SHAPE(4), values);
        pvg_array *b = MADE(pvg_slice(a, &third, &one, &one));
        int64_t found[3] = {-1, -1, -1};
        double parts[2];
        CHECK_OK(pvg_item(b, found));
        memcpy(parts, found + 1, sizeof parts);
        if (kind == 'b') CHECK(found[0] == PVG_SCALAR_BOOL && found[1] == 1);
        if (kind == 'i') CHECK(found[0] == PVG_SCALAR_INT && found[1] == 100);
        if (kind == 'u')
            CHECK(found[0] == (dtype == PVG_UINT64 ? PVG_SCALAR_UINT : PVG_SCALAR_INT) &&
                  found[1] == 100);
        if (kind == 'f') CHECK(found[0] == PVG_SCALAR_FLOAT && parts[0] == 100);
        if (kind == 'c') CHECK(found[0] == PVG_SCALAR_COMPLEX && parts[0] == 100);
        CHECK_STATUS(pvg_item(a, found), PVG_ERROR_VALUE);
        RELEASE(a, b);
        free(values);
    }
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(1)));
    pvg_array *none = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(0)));
    int64_t found[3];
    CHECK_STATUS(pvg_item(a, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_item(NULL, found), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_item(none, found), PVG_ERROR_VALUE);
    RELEASE(a, none);
}

static void casts(void) {
    static const double numbers[] = {0, 1, 2, 7, 100, 127};
    for (int i = 0; i < dtype_count; i++)
        for (int j = 0; j < dtype_count; j++) {
            int from = all_dtypes[i], to = all_dtypes[j];
            void *values = host_memory(from, 6), *expected = host_memory(to, 6);
            for (int k = 0; k < 6; k++) {
                set_value(from, values, k, numbers[k]);
                set_value(to, expected, k, value_at(from, values, k));
            }
            pvg_array *a = array_of(from, SHAPE(6), values), *b = MADE(pvg_cast(a, to, NULL));
            CHECK_ARRAY(b, to, SHAPE(6), expected, 0);
            RELEASE(a, b);
            free(values);
            free(expected);
        }
}

/* Floats beyond an integer dtype's range are clamped to it, NaN is 0; integers wrap; truth is
 * anything but 0. */
static void casts_at_the_limits(void) {
    const float floats[8] = {NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 2.9f, -2.9f, -0.0f};
    static const int32_t int32s[8] = {0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 2, -2, 0};
    static const int64_t int64s[8] = {0, INT64_MAX, INT64_MIN, 3000000000, -3000000000, 2, -2, 0};
    static const uint8_t bytes[8] = {0, 255, 0, 255, 0, 2, 0, 0},
                         truths[8] = {1, 1, 1, 1, 1, 1, 1, 0};
    static const uint64_t uint64s[8] = {0, UINT64_MAX, 0, 3000000000, 0, 2, 0, 0};
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(8), floats), *results[5];
    CHECK_ARRAY(results[0] = MADE(pvg_cast(a, PVG_INT32, NULL)), PVG_INT32, SHAPE(8), int32s, 0);
    CHECK_ARRAY(results[1] = MADE(pvg_cast(a, PVG_INT64, NULL)), PVG_INT64, SHAPE(8), int64s, 0);
    CHECK_ARRAY(results[2] = MADE(pvg_cast(a, PVG_UINT8, NULL)), PVG_UINT8, SHAPE(8), bytes, 0);
    CHECK_ARRAY(results[3] = MADE(pvg_cast(a, PVG_UINT64, NULL)), PVG_UINT64, SHAPE(8), uint64s, 0);
    CHECK_ARRAY(results[4] = MADE(pvg_cast(a, PVG_BOOL, NULL)), PVG_BOOL, SHAPE(8), truths, 0);
    for (int i = 0; i < 5; i++) RELEASE(results[i]);
    RELEASE(a);
    static const int64_t integers[4] = {-1, 256, INT64_MIN, ((int64_t)1 << 32) + 5};
    a = array_of(PVG_INT64, SHAPE(4), integers);
    CHECK_ARRAY(results[0] = MADE(pvg_cast(a, PVG_UINT8, NULL)), PVG_UINT8, SHAPE(4),
                ((const uint8_t[]){255, 0, 0, 5}), 0);
    CHECK_ARRAY(results[1] = MADE(pvg_cast(a, PVG_INT32, NULL)), PVG_INT32, SHAPE(4),
                ((const int32_t[]){-1, 256, 0, 5}), 0);
    CHECK_ARRAY(results[2] = MADE(pvg_cast(a, PVG_BOOL, NULL)), PVG_BOOL, SHAPE(4),
                ((const uint8_t[]){1, 1, 1, 1}), 0);
    for (int i = 0; i < 3; i++) RELEASE(results[i]);
    RELEASE(a);
}

static void copies_between_arrays(void) {
    const int32_t column[3] = {1, 2, 3};
    const float expected[6] = {1, 1, 2, 2, 3, 3};
    pvg_array *a = array_of(PVG_INT32, SHAPE(3, 1), column),
              *b = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 2)));
    CHECK_OK(pvg_copy(a, b)); /* broadcast and cast */
    CHECK_ARRAY(b, PVG_FLOAT32, SHAPE(3, 2), expected, 0);
    CHECK_STATUS(pvg_copy(b, a), PVG_ERROR_VALUE);
    CHECK_ARRAY(a, PVG_INT32, SHAPE(3, 1), column, 0);
    RELEASE(a, b);
    /* Overlapping: the result is as if the source had been copied first. */
    int32_t values[500];
    for (int i = 0; i < 500; i++) values[i] = i;
    pvg_array *all = array_of(PVG_INT32, SHAPE(500), values);
    const int64_t zero = 0, one = 1, backwards = -1, n = 499, last = 498;
    pvg_array *head = MADE(pvg_slice(all, &zero, &one, &n)),
              *tail = MADE(pvg_slice(all, &one, &one, &n));
    pvg_array *reversed = MADE(pvg_slice(all, &last, &backwards, &n));
    CHECK_OK(pvg_copy(head, tail));
    for (int i = 499; i > 0; i--) values[i] = values[i - 1];
    CHECK_ARRAY(all, PVG_INT32, SHAPE(500), values, 0);
    CHECK_OK(pvg_copy(reversed, head));
    for (int i = 0; i < 249; i++) {
        int32_t swapped = values[i];
        values[i] = values[498 - i];
        values[498 - i] = swapped;
    }
    CHECK_ARRAY(all, PVG_INT32, SHAPE(500), values, 0);
    RELEASE(all, head, tail, reversed);
}

/* Transposed copies go through tiles: sides around a tile's, sizes of element, and addresses that
 * allow wide accesses on both sides, on one, or on none. */
static void transposed_copies(void) {
    static const int64_t sides[][2] = {{16, 16},  {17, 40},  {63, 65},
                                       {64, 128}, {130, 31}, {200, 64}};
    static const int dtypes[] = {PVG_UINT8, PVG_INT32, PVG_FLOAT64};
    const int axes[2] = {1, 0};
    uint64_t state = 17;
    for (size_t i = 0; i < COUNT(sides); i++)
        for (size_t d = 0; d < COUNT(dtypes); d++)
            for (int64_t offset = 0; offset < 6; offset += 3) {
                int64_t rows = sides[i][0], columns = sides[i][1], start = offset, one = 1;
                int64_t n = rows * columns;
                pvg_array *line = random_array(dtypes[d], SHAPE(n + offset), &state);
                pvg_array *part = MADE(pvg_slice(line, &start, &one, &n));
                pvg_array *matrix = MADE(pvg_reshape(part, SHAPE(rows, columns)));
                pvg_array *view = MADE(pvg_permute(matrix, axes)),
                          *copy = MADE(pvg_contiguous(view));
                void *values = host_copy(part), *expected = host_memory(dtypes[d], n);
                for (int64_t at = 0; at < n; at++)
                    set_value(dtypes[d], expected, at,
                              value_at(dtypes[d], values, at % rows * columns + at / rows));
                CHECK_ARRAY(copy, dtypes[d], SHAPE(columns, rows), expected, 0);
                CHECK_OK(pvg_copy(copy, view)); /* and back, into the offset memory */
                CHECK_ARRAY(matrix, dtypes[d], SHAPE(rows, columns), values, 0);
                free(values);
                free(expected);
                RELEASE(line, part, matrix, view, copy);
            }
}

static void fills(void) {
    const int64_t number = 5, large = 300, negative = -1;
    const uint64_t largest = UINT64_MAX;
    const double half = 0.5;
    const uint8_t truth = 1;
    for (int d = 0; d < dtype_count; d++) {
        int dtype = all_dtypes[d];
        pvg_array *a = MADE(pvg_array_empty(0, dtype, SHAPE(1025)));
        CHECK_OK(pvg_fill(a, PVG_SCALAR_INT, &number));
        CHECK_CLOSE(element(a, 1024), dtype == PVG_BOOL ? 1 : 5, 0);
        CHECK_OK(pvg_fill(a, PVG_SCALAR_BOOL, &truth));
        CHECK_CLOSE(element(a, 0), 1, 0);
        RELEASE(a);
    }
    pvg_array *a = array_of(PVG_UINT8, SHAPE(3), ((const uint8_t[]){1, 2, 3}));
    CHECK_STATUS(pvg_fill(a, PVG_SCALAR_INT, &large), PVG_ERROR_OVERFLOW);
    CHECK_STATUS(pvg_fill(a, PVG_SCALAR_INT, &negative), PVG_ERROR_OVERFLOW);
    CHECK_STATUS(pvg_fill(a, PVG_SCALAR_UINT, &largest), PVG_ERROR_OVERFLOW);
    CHECK_ARRAY(a, PVG_UINT8, SHAPE(3), ((const uint8_t[]){1, 2, 3}), 0);
    RELEASE(a);
    a = MADE(pvg_array_empty(0, PVG_UINT64, SHAPE(1)));
    CHECK_OK(pvg_fill(a, PVG_SCALAR_UINT, &largest));
    CHECK_ARRAY(a, PVG_UINT64, SHAPE(1), &largest, 0);
    RELEASE(a);
    a = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(2)));
    CHECK_OK(pvg_fill(a, PVG_SCALAR_FLOAT, &half));
    CHECK_CLOSE(element(a, 1), 0.5, 0);
    RELEASE(a);
}

int main(void) {
    begin("test_transfer");
    RUN(round_trips_of_random_layouts);
    RUN(round_trips_of_views);
    RUN(repeated_and_reversed_sources);
    RUN(every_bit_arrives);
    RUN(bytes_other_than_0_become_true);
    RUN(large_copies);
    RUN(transfers_are_counted);
    RUN(items);
    RUN(casts);
    RUN(casts_at_the_limits);
    RUN(copies_between_arrays);
    RUN(transposed_copies);
    RUN(fills);
    return finish();
}
