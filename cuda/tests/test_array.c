/* Arrays and views: what a handle tells, slices, permutations, reshapes, broadcasts, and memory
 * of somebody else. */
#include "check.h"

enum { ROWS = 5, COLUMNS = 7 };

/* Elements 0, 1, 2, ... in C order. */
static pvg_array *counting(int dtype, int ndim, const int64_t *shape) {
    int64_t n = product(ndim, shape);
    void *values = host_memory(dtype, n);
    for (int64_t i = 0; i < n; i++) set_value(dtype, values, i, (double)i);
    pvg_array *a = array_of(dtype, ndim, shape, values);
    free(values);
    return a;
}

static void what_a_handle_tells(void) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_INT64, SHAPE(2, 3, 4))),
              *scalar = MADE(pvg_array_empty(0, PVG_BOOL, SCALAR));
    int64_t info[3 + 2 * PVG_MAX_NDIM];
    static const int64_t expected[9] = {PVG_INT64, 0, 3, 2, 3, 4, 12, 4, 1};
    CHECK_EQUAL(pvg_array_device(a), 0);
    CHECK_EQUAL(pvg_array_dtype(a), PVG_INT64);
    CHECK_EQUAL(pvg_array_ndim(a), 3);
    CHECK_EQUAL(pvg_array_size(a), 24);
    CHECK(memcmp(pvg_array_shape(a), expected + 3, 3 * sizeof(int64_t)) == 0);
    CHECK(memcmp(pvg_array_strides(a), expected + 6, 3 * sizeof(int64_t)) == 0);
    CHECK((uintptr_t)pvg_array_data(a) % 256 == 0);
    CHECK_EQUAL(pvg_array_is_contiguous(a), 1);
    CHECK_EQUAL(pvg_array_is_readonly(a), 0);
    CHECK_OK(pvg_array_describe(a, info));
    CHECK(memcmp(info, expected, sizeof expected) == 0);
    CHECK_EQUAL(pvg_array_ndim(scalar), 0);
    CHECK_EQUAL(pvg_array_size(scalar), 1);
    CHECK_EQUAL(pvg_array_is_contiguous(scalar), 1);
    RELEASE(a, scalar);
}

static void version_counts_writes(void) {
    const double one = 1;
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(4))),
              *view = MADE(pvg_reshape(a, SHAPE(2, 2)));
    int64_t version = pvg_array_version(a);
    CHECK_OK(pvg_fill(a, PVG_SCALAR_FLOAT, &one));
    CHECK(pvg_array_version(a) > version);
    CHECK_EQUAL(pvg_array_version(view), pvg_array_version(a)); /* one memory, one version */
    version = pvg_array_version(a);
    pvg_array *sum = MADE(pvg_add(a, a));
    CHECK_EQUAL(pvg_array_version(a), version); /* reading is no writing */
    MADE(pvg_unary(PVG_NEGATIVE, view, view));
    CHECK(pvg_array_version(a) > version);
    version = pvg_array_version(a);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_ADD, a, view, a));
    CHECK_EQUAL(pvg_array_version(a), version); /* nor is a failure */
    RELEASE(a, view, sum);
}

static void slices(void) {
    const int64_t start[2] = {3, 1}, step[2] = {-1, 2}, length[2] = {3, 3};
    static const float expected[9] = {22, 24, 26, 15, 17, 19, 8, 10, 12};
    pvg_array *a = counting(PVG_FLOAT32, SHAPE(ROWS, COLUMNS)),
              *view = MADE(pvg_slice(a, start, step, length));
    CHECK_ARRAY(view, PVG_FLOAT32, SHAPE(3, 3), expected, 0);
    CHECK_EQUAL(pvg_array_is_contiguous(view), 0);
    CHECK_EQUAL(pvg_array_strides(view)[0], -COLUMNS);
    CHECK_EQUAL(pvg_array_strides(view)[1], 2);
    CHECK((char *)pvg_array_data(view) == (char *)pvg_array_data(a) + 4 * (3 * COLUMNS + 1));
    MADE(pvg_unary(PVG_NEGATIVE, view, view)); /* writing to the view writes to the array */
    CHECK_CLOSE(element(a, 22), -22, 0);
    CHECK_CLOSE(element(a, 23), 23, 0);
    const int64_t none[2] = {0, 0}, ends[2] = {ROWS, COLUMNS}, ones[2] = {1, 1};
    pvg_array *empty = MADE(pvg_slice(view, none, ones, none));
    CHECK_EQUAL(pvg_array_size(empty), 0);
    pvg_array *past_the_end =
        MADE(pvg_slice(a, ends, ones, none)); /* a[5:5, 7:7] is nothing, not an error */
    CHECK_EQUAL(pvg_array_size(past_the_end), 0);
    RELEASE(a, view, empty, past_the_end);
}

static void slices_that_do_not_fit(void) {
    static const int64_t wrong[][3] = {
        {-1, 1, 2}, {5, 1, 1},         {0, 1, 6},         {0, 2, 4},         {4, -1, 6},
        {0, 0, 2},  {0, INT64_MAX, 3}, {INT64_MIN, 1, 2}, {0, 1, INT64_MAX}, {4, INT64_MIN, 2}};
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(ROWS)));
    for (size_t i = 0; i < COUNT(wrong); i++)
        CHECK_NULL(PVG_ERROR_INDEX, pvg_slice(a, &wrong[i][0], &wrong[i][1], &wrong[i][2]));
    const int64_t zero = 0, one = 1, negative = -2;
    CHECK_NULL(PVG_ERROR_VALUE, pvg_slice(a, &zero, &one, &negative));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_slice(a, NULL, &one, &one));
    RELEASE(a);
}

static void permutations(void) {
    const int axes[3] = {2, 0, -2}, twice[3] = {0, 0, 1}, beyond[3] = {0, 1, 3};
    pvg_array *a = counting(PVG_INT32, SHAPE(2, 3, 4)), *view = MADE(pvg_permute(a, axes));
    int32_t expected[24];
    for (int i = 0; i < 24; i++) expected[i] = i / 6 + 12 * (i / 3 % 2) + 4 * (i % 3);
    CHECK_ARRAY(view, PVG_INT32, SHAPE(4, 2, 3), expected, 0);
    CHECK(pvg_array_data(view) == pvg_array_data(a));
    pvg_array *copy = MADE(pvg_contiguous(view)), *same = MADE(pvg_contiguous(a));
    CHECK_ARRAY(copy, PVG_INT32, SHAPE(4, 2, 3), expected, 0);
    CHECK_EQUAL(pvg_array_is_contiguous(copy), 1);
    CHECK(same != a && pvg_array_data(same) == pvg_array_data(a)); /* a new handle, no copy */
    CHECK_NULL(PVG_ERROR_VALUE, pvg_permute(a, twice));
    CHECK_NULL(PVG_ERROR_AXIS, pvg_permute(a, beyond));
    pvg_array *reversed = MADE(pvg_permute(a, NULL));
    for (int i = 0; i < 24; i++) expected[i] = i / 6 + 4 * (i / 2 % 3) + 12 * (i % 2);
    CHECK_ARRAY(reversed, PVG_INT32, SHAPE(4, 3, 2), expected, 0);
    RELEASE(a, view, copy, same, reversed);
}

static void keys(void) {
    const int64_t rows[] = {
        PVG_KEY_INTEGER, -1, 0, 0, PVG_KEY_NEW, 0, 0, 0, PVG_KEY_SLICE | PVG_KEY_STEP, 0, 0, -2};
    pvg_array *a = counting(PVG_INT32, SHAPE(2, 5, 3)), *view = MADE(pvg_index(a, 3, rows));
    const int32_t expected[] = {27, 28, 29, 21, 22, 23, 15, 16, 17};
    CHECK_ARRAY(view, PVG_INT32, SHAPE(1, 3, 3), expected, 0); /* a[-1, None, ::-2] */
    const int64_t last[] = {PVG_KEY_REST, 0, 0, 0, PVG_KEY_SLICE | PVG_KEY_START, -2, 9, 9};
    pvg_array *columns = MADE(pvg_index(view, 2, last)); /* [..., -2:] */
    const int32_t two[] = {28, 29, 22, 23, 16, 17};
    CHECK_ARRAY(columns, PVG_INT32, SHAPE(1, 3, 2), two, 0);
    const int64_t none[] = {PVG_KEY_SLICE | PVG_KEY_START | PVG_KEY_STOP, 4, 1, 0};
    pvg_array *nothing = MADE(pvg_index(a, 1, none));
    CHECK_ARRAY(nothing, PVG_INT32, SHAPE(0, 5, 3), NULL, 0);
    CHECK(pvg_array_data(nothing) == pvg_array_data(a));
    const int64_t wrong[][4] = {{PVG_KEY_INTEGER, 2, 0, 0}, {PVG_KEY_INTEGER, -3, 0, 0}};
    for (int i = 0; i < 2; i++) CHECK_NULL(PVG_ERROR_INDEX, pvg_index(a, 1, wrong[i]));
    const int64_t twice[] = {PVG_KEY_REST, 0, 0, 0, PVG_KEY_REST, 0, 0, 0},
                  whole[16] = {PVG_KEY_SLICE, 0, 0, 0, PVG_KEY_SLICE, 0, 0, 0,
                               PVG_KEY_SLICE, 0, 0, 0, PVG_KEY_SLICE};
    CHECK_NULL(PVG_ERROR_INDEX, pvg_index(a, 2, twice));
    CHECK_NULL(PVG_ERROR_INDEX, pvg_index(a, 4, whole));
    const int64_t still[] = {PVG_KEY_SLICE | PVG_KEY_STEP, 0, 0, 0}, kind[] = {7, 0, 0, 0};
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index(a, 1, still));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index(a, 1, kind));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index(a, 1, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_index(NULL, 0, NULL));
    RELEASE(a, view, columns, nothing);
}

static void reshapes(void) {
    pvg_array *a = counting(PVG_INT32, SHAPE(4, 6));
    int32_t expected[24];
    for (int i = 0; i < 24; i++) expected[i] = i;
    pvg_array *view = MADE(pvg_reshape(a, SHAPE(2, -1, 3, 1)));
    CHECK_ARRAY(view, PVG_INT32, SHAPE(2, 4, 3, 1), expected, 0);
    CHECK(pvg_array_data(view) == pvg_array_data(a));
    const int axes[2] = {1, 0};
    pvg_array *transposed = MADE(pvg_permute(a, axes)),
              *flat = MADE(pvg_reshape(transposed, SHAPE(-1)));
    for (int i = 0; i < 24; i++) expected[i] = i % 4 * 6 + i / 4;
    CHECK_ARRAY(flat, PVG_INT32, SHAPE(24), expected, 0); /* C order of the view, so a copy */
    CHECK(pvg_array_data(flat) != pvg_array_data(a));
    const int64_t start[2] = {0, 0}, step[2] = {1, 2}, length[2] = {4, 3};
    pvg_array *strided = MADE(pvg_slice(a, start, step, length)),
              *merged = MADE(pvg_reshape(strided, SHAPE(2, 6)));
    for (int i = 0; i < 12; i++) expected[i] = 2 * i;
    CHECK_ARRAY(merged, PVG_INT32, SHAPE(2, 6), expected, 0);
    CHECK(pvg_array_data(merged) == pvg_array_data(a)); /* evenly spaced, so a view can do it */
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(a, SHAPE(5, 5)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(a, SHAPE(-1, -1)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(a, SHAPE(-2, 12)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(a, SHAPE(-1, 0)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(a, SHAPE((int64_t)1 << 32, (int64_t)1 << 32)));
    pvg_array *empty = MADE(pvg_array_empty(0, PVG_INT32, SHAPE(0, 3)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(empty, SHAPE(0, -1)));
    pvg_array *still_empty = MADE(pvg_reshape(empty, SHAPE(5, 0)));
    pvg_array *squeezed = MADE(pvg_reshape(view, -1, NULL)); /* from 2, 4, 3, 1 */
    CHECK_EQUAL(pvg_array_ndim(squeezed), 3);
    CHECK(pvg_array_data(squeezed) == pvg_array_data(a));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(a, -1, pvg_array_shape(a)));
    pvg_array *copied = MADE(pvg_cast(transposed, -1, NULL));
    for (int i = 0; i < 24; i++) expected[i] = i % 4 * 6 + i / 4;
    CHECK_ARRAY(copied, PVG_INT32, SHAPE(6, 4), expected, 0);
    CHECK_NULL(PVG_ERROR_TYPE, pvg_cast(a, -2, NULL));
    RELEASE(a, view, transposed, flat, strided, merged, empty, still_empty, squeezed, copied);
}

static void broadcasts(void) {
    pvg_array *a = counting(PVG_FLOAT32, SHAPE(3, 1)),
              *view = MADE(pvg_broadcast_to(a, SHAPE(2, 3, 4)));
    float expected[24];
    const double one = 1;
    for (int i = 0; i < 24; i++) expected[i] = (float)(i / 4 % 3);
    CHECK_ARRAY(view, PVG_FLOAT32, SHAPE(2, 3, 4), expected, 0);
    CHECK_EQUAL(pvg_array_is_readonly(view), 1);
    CHECK_STATUS(pvg_fill(view, PVG_SCALAR_FLOAT, &one), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_copy_from_host(view, expected, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_copy(a, view), PVG_ERROR_VALUE);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_unary(PVG_EXP, view, view));
    CHECK_ARRAY(a, PVG_FLOAT32, SHAPE(3, 1), ((const float[]){0, 1, 2}), 0);
    const int64_t start[3] = {1, 1, 1}, ones[3] = {1, 1, 1};
    pvg_array *part =
        MADE(pvg_slice(view, start, ones, ones)); /* a view of it is no more writable */
    CHECK_EQUAL(pvg_array_is_readonly(part), 1);
    pvg_array *huge = MADE(pvg_broadcast_to(part, SHAPE((int64_t)1 << 25, (int64_t)1 << 25, 1)));
    CHECK_EQUAL(pvg_array_size(huge), (int64_t)1 << 50);
    CHECK_NULL(PVG_ERROR_MEMORY, pvg_contiguous(huge)); /* as a view it costs nothing */
    CHECK_NULL(PVG_ERROR_VALUE, pvg_broadcast_to(a, SHAPE(4, 1)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_broadcast_to(a, SHAPE(3)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_broadcast_to(a, SHAPE(3, -1)));
    RELEASE(a, view, part, huge);
}

static void views_outlive_their_array(void) {
    const int axes[2] = {1, 0};
    pvg_array *a = counting(PVG_FLOAT64, SHAPE(2, 2)), *view = MADE(pvg_permute(a, axes));
    RELEASE(a);
    CHECK_ARRAY(view, PVG_FLOAT64, SHAPE(2, 2), ((const double[]){0, 2, 1, 3}), 0);
    RELEASE(view);
}

/* A variable that is dropped is NULL, whatever was in it, and the last error stays what it was. */
static void dropped(void) {
    pvg_array *a = counting(PVG_FLOAT32, SHAPE(4)), *view = MADE(pvg_reshape(a, SHAPE(2, 2))),
              *stale = view;
    char text[1024];
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(a, SHAPE(3)));
    snprintf(text, sizeof text, "%s", pvg_last_error());
    int64_t arrays = pvg_counter(PVG_COUNT_LIVE_ARRAYS);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(pvg_array_drop(&view), PVG_OK);
        CHECK(view == NULL);
        CHECK_EQUAL(pvg_last_status(), PVG_ERROR_VALUE);
        CHECK(strcmp(pvg_last_error(), text) == 0);
        CHECK_EQUAL(pvg_counter(PVG_COUNT_LIVE_ARRAYS), arrays - 1);
    }
    CHECK_STATUS(pvg_array_drop(&stale), PVG_ERROR_VALUE);
    CHECK(stale == NULL);
    CHECK_EQUAL(pvg_array_drop(&stale), PVG_OK);
    CHECK_STATUS(pvg_array_drop(NULL), PVG_ERROR_VALUE);
    CHECK_EQUAL(pvg_array_drop(&a), PVG_OK);
    CHECK_EQUAL(pvg_counter(PVG_COUNT_LIVE_ARRAYS), arrays - 2);
}

static void largest_number_of_dimensions(void) {
    int64_t shape[PVG_MAX_NDIM], start[PVG_MAX_NDIM] = {0}, step[PVG_MAX_NDIM],
                                 strides[PVG_MAX_NDIM];
    int axes[PVG_MAX_NDIM];
    for (int i = 0; i < PVG_MAX_NDIM; i++) {
        shape[i] = i % 4 == 0 ? 2 : 1;
        step[i] = 1;
        axes[i] = PVG_MAX_NDIM - 1 - i;
    }
    pvg_array *a = counting(PVG_INT32, PVG_MAX_NDIM, shape), *view = MADE(pvg_permute(a, axes));
    int32_t expected[256];
    for (int i = 0; i < 256; i++) { /* the 8 bits of the index in reverse */
        expected[i] = 0;
        for (int bit = 0; bit < 8; bit++) expected[i] |= (i >> bit & 1) << (7 - bit);
    }
    for (int i = 0; i < PVG_MAX_NDIM; i++) strides[i] = shape[axes[i]];
    CHECK_ARRAY(view, PVG_INT32, PVG_MAX_NDIM, strides, expected, 0);
    pvg_array *same = MADE(pvg_slice(view, start, step, pvg_array_shape(view)));
    pvg_array *sum = MADE(pvg_add(same, a)); /* both layouts at once; broadcasting to nothing new */
    CHECK_EQUAL(pvg_array_ndim(sum), PVG_MAX_NDIM);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(a, PVG_MAX_NDIM + 1, shape));
    RELEASE(a, view, same, sum);
}

static void count_call(void *context) { ++*(int *)context; }

static void memory_of_somebody_else(void) {
    int calls = 0;
    pvg_array *owner = counting(PVG_FLOAT32, SHAPE(4, 6));
    CHECK_OK(pvg_synchronize(0));
    float *data = pvg_array_data(owner);
    const int64_t strides[2] = {1, 6}, backwards[1] = {-1};
    pvg_array *a =
        MADE(pvg_array_wrap(data, 0, PVG_FLOAT32, SHAPE(6, 4), strides, count_call, &calls));
    CHECK(pvg_array_data(a) == (void *)data);
    CHECK_CLOSE(element(a, 1), 6, 0);
    const int64_t start[2] = {1, 1}, step[2] = {2, 1}, length[2] = {2, 2};
    pvg_array *view = MADE(pvg_slice(a, start, step, length)),
              *again = MADE(pvg_reshape(view, SHAPE(4)));
    RELEASE(a);
    CHECK_EQUAL(calls, 0);
    CHECK_ARRAY(view, PVG_FLOAT32, SHAPE(2, 2), ((const float[]){7, 13, 9, 15}), 0);
    RELEASE(view);
    CHECK_OK(pvg_synchronize(0));
    RELEASE(again);
    CHECK_EQUAL(calls, 1); /* once, when the last handle is gone */
    a = MADE(pvg_array_wrap(data + 23, 0, PVG_FLOAT32, SHAPE(24), backwards, NULL, NULL));
    CHECK_CLOSE(element(a, 0), 23, 0);
    CHECK_CLOSE(element(a, 23), 0, 0);
    RELEASE(a);
    a = MADE(pvg_array_wrap(NULL, 0, PVG_FLOAT32, SHAPE(0, 3), NULL, count_call, &calls));
    RELEASE(a);
    CHECK_EQUAL(calls, 2);
    RELEASE(owner);
}

static void memory_that_cannot_be_wrapped(void) {
    int calls = 0;
    pvg_array *owner = counting(PVG_FLOAT32, SHAPE(8));
    char *data = pvg_array_data(owner);
    const int64_t far_apart[2] = {INT64_MAX, INT64_MAX}, shape[2] = {2, 2};
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_array_wrap(NULL, 0, PVG_FLOAT32, SHAPE(2), NULL, count_call, &calls));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_array_wrap(data + 1, 0, PVG_FLOAT32, SHAPE(2), NULL, count_call, &calls));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_array_wrap(data, 0, PVG_FLOAT32, SHAPE(-2), NULL, count_call, &calls));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_array_wrap(data, 0, PVG_FLOAT32, 33, shape, NULL, count_call, &calls));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_array_wrap(data, 0, PVG_FLOAT32, 2, shape, far_apart, count_call, &calls));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_array_wrap(data, 0, 99, SHAPE(2), NULL, count_call, &calls));
    CHECK_NULL(PVG_ERROR_UNAVAILABLE,
               pvg_array_wrap(data, 64, PVG_FLOAT32, SHAPE(2), NULL, count_call, &calls));
    float of_the_host[2] = {0};
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_array_wrap(of_the_host, 0, PVG_FLOAT32, SHAPE(2), NULL, count_call, &calls));
    CHECK_EQUAL(calls, 0); /* on error the memory stays its owner's */
    RELEASE(owner);
}

/* Whoever is given the code of a dtype that arrays cannot have says which one it is. */
static void dtypes_that_are_none(void) {
    pvg_array *a = counting(PVG_FLOAT32, SHAPE(4));
    for (int code = -1; code < 30; code++) {
        const int is_reserved = pvg_dtype_name(code)[0] != '?';
        const char *said = is_reserved ? pvg_dtype_name(code) : "unknown dtype code";
        if (pvg_dtype_size(code) > 0) continue;
        CHECK_NULL(PVG_ERROR_TYPE, pvg_array_empty(0, code, SHAPE(2)));
        CHECK(strstr(pvg_last_error(), said) != NULL);
        if (code == -1) continue; /* of a cast: the array's own */
        CHECK_NULL(PVG_ERROR_TYPE, pvg_cast(a, code, NULL));
        CHECK(strstr(pvg_last_error(), said) != NULL);
    }
    RELEASE(a);
}

int main(void) {
    begin("test_array");
    RUN(what_a_handle_tells);
    RUN(version_counts_writes);
    RUN(slices);
    RUN(slices_that_do_not_fit);
    RUN(permutations);
    RUN(keys);
    RUN(reshapes);
    RUN(broadcasts);
    RUN(views_outlive_their_array);
    RUN(dropped);
    RUN(largest_number_of_dimensions);
    RUN(memory_of_somebody_else);
    RUN(memory_that_cannot_be_wrapped);
    RUN(dtypes_that_are_none);
    return finish();
}
