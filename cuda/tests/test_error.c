/* Errors: the record of the last one, and every function with handles and codes that make no
 * sense. */
#include "check.h"

#include <pthread.h>

static void record_of_a_failure(void) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2, 3)));
    pvg_array *b = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(4, 5)));
    CHECK_EQUAL(pvg_last_status(), PVG_OK);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_ADD, a, b, NULL));
    CHECK(strstr(pvg_last_error(), "(2, 3)") && strstr(pvg_last_error(), "(4, 5)"));
    CHECK(strstr(pvg_last_error(), "add"));
    CHECK(strcmp(pvg_last_error_operation(), "add") == 0);
    CHECK(strcmp(pvg_last_error_cuda_name(), "") == 0);
    CHECK_EQUAL(pvg_last_error_value(PVG_ERROR_VALUE_CUDA_CODE), 0);
    CHECK_EQUAL(pvg_last_error_value(PVG_ERROR_VALUE_DEVICE + 1), -1);
    CHECK_EQUAL(pvg_last_error_value(-1), -1);
    /* Neither asking nor cleaning up changes it; the next call that can fail does. */
    CHECK_EQUAL(pvg_last_status(), PVG_ERROR_VALUE);
    RELEASE(a);
    CHECK_EQUAL(pvg_last_status(), PVG_ERROR_VALUE);
    CHECK_OK(pvg_synchronize(0));
    CHECK(strcmp(pvg_last_error(), "") == 0 && strcmp(pvg_last_error_operation(), "") == 0);
    RELEASE(b);
}

static void *status_of_another_thread(void *status) {
    *(int *)status = pvg_last_status();
    return NULL;
}

static void one_record_per_thread(void) {
    int elsewhere = -1;
    pthread_t thread;
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_FLOAT32, SHAPE(-1)));
    CHECK_EQUAL(pthread_create(&thread, NULL, status_of_another_thread, &elsewhere), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(elsewhere, PVG_OK);
    CHECK_EQUAL(pvg_last_status(), PVG_ERROR_VALUE);
}

/* Every function that takes an array, with one that is none. */
static void use_bad_array(pvg_array *bad, pvg_array *good) {
    int64_t one[PVG_MAX_NDIM] = {1}, info[3 + 2 * PVG_MAX_NDIM], length = 1;
    float number = 1;
    double value = 1;
    int axis = 0;
    CHECK_EQUAL(pvg_array_device(bad), -1);
    CHECK_EQUAL(pvg_array_dtype(bad), -1);
    CHECK_EQUAL(pvg_array_ndim(bad), -1);
    CHECK_EQUAL(pvg_array_size(bad), -1);
    CHECK(!pvg_array_shape(bad) && !pvg_array_strides(bad) && !pvg_array_data(bad));
    CHECK_EQUAL(pvg_array_is_contiguous(bad), -1);
    CHECK_EQUAL(pvg_array_is_readonly(bad), -1);
    CHECK_EQUAL(pvg_array_version(bad), -1);
    CHECK_STATUS(pvg_array_describe(bad, info), PVG_ERROR_VALUE);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_slice(bad, one, one, one));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_permute(bad, &axis));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reshape(bad, 1, &length));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_broadcast_to(bad, 1, &length));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_contiguous(bad));
    CHECK_STATUS(pvg_copy_from_host(bad, &number, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_copy_to_host(bad, &number, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_copy(bad, good), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_copy(good, bad), PVG_ERROR_VALUE);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_cast(bad, PVG_INT32, NULL));
    CHECK_STATUS(pvg_fill(bad, PVG_SCALAR_FLOAT, &value), PVG_ERROR_VALUE);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_unary(PVG_EXP, bad, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_ADD, bad, good, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_ADD, good, bad, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary_scalar(PVG_ADD, bad, PVG_SCALAR_FLOAT, &value, 1, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_where(bad, good, good, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_SUM, bad, -1, NULL, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(bad, good, PVG_PRECISION_DEFAULT, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(good, bad, PVG_PRECISION_DEFAULT, NULL));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_dense(bad, good, NULL, PVG_NONE, PVG_PRECISION_DEFAULT, NULL, NULL));
    pvg_array *dx = good;
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(pvg_dense_backward(i == 0 ? bad : good, i == 1 ? bad : good,
                                        i == 2 ? bad : good, NULL, PVG_NONE, PVG_PRECISION_DEFAULT,
                                        &dx, NULL, NULL),
                     PVG_ERROR_VALUE);
    CHECK(dx == good); /* nothing is stored */
}

static void bad_out(pvg_array *bad, pvg_array *good) {
    double value = 1;
    CHECK_NULL(PVG_ERROR_VALUE, pvg_cast(good, PVG_INT32, bad));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_unary(PVG_EXP, good, bad));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_ADD, good, good, bad));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary_scalar(PVG_ADD, good, PVG_SCALAR_FLOAT, &value, 1, bad));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_SUM, good, -1, NULL, 0, bad));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(good, good, PVG_PRECISION_DEFAULT, bad));
    CHECK_STATUS(pvg_array_release(bad), PVG_ERROR_VALUE);
}

/* A released handle is told from a live one until a new array takes its place. */
static void bad_handles(void) {
    static uint64_t foreign[256];
    pvg_array *good = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(1)));
    pvg_array *released = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(1)));
    pvg_array *const bad[] = {NULL, released, (pvg_array *)foreign,
                              (pvg_array *)((char *)good + 8)};
    RELEASE(released, NULL);
    for (size_t i = 0; i < COUNT(bad); i++) use_bad_array(bad[i], good);
    for (size_t i = 1; i < COUNT(bad); i++) bad_out(bad[i], good);
    for (size_t i = 0; i < COUNT(foreign); i++) CHECK(foreign[i] == 0);
    RELEASE(good);
}

static void bad_codes(void) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(2, 2)));
    int64_t n = 2;
    double value = 1;
    CHECK_NULL(PVG_ERROR_TYPE, pvg_array_empty(0, 99, 1, &n));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_array_empty(0, -1, 1, &n));
    CHECK_NULL(PVG_ERROR_UNAVAILABLE, pvg_array_empty(1000, PVG_FLOAT32, 1, &n));
    CHECK_NULL(PVG_ERROR_UNAVAILABLE, pvg_array_empty(-1, PVG_FLOAT32, 1, &n));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_cast(a, 99, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_unary(PVG_ADD, a, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_unary(0, a, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_EXP, a, a, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary_scalar(-5, a, PVG_SCALAR_FLOAT, &value, 1, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary_scalar(PVG_ADD, a, 9, &value, 1, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary_scalar(PVG_ADD, a, PVG_SCALAR_FLOAT, NULL, 1, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_binary_scalar(PVG_ADD, a, PVG_SCALAR_FLOAT, &value, 2, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_reduce(PVG_ADD, a, -1, NULL, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(a, a, NULL, PVG_EXP, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(a, a, NULL, -1, PVG_PRECISION_DEFAULT, NULL, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dense(a, a, NULL, PVG_NONE, 7, NULL, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(a, a, -1, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_matmul(a, a, 7, NULL));
    CHECK_STATUS(pvg_fill(a, 7, &value), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_fill(a, PVG_SCALAR_FLOAT, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_copy_from_host(a, NULL, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_copy_to_host(a, NULL, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_array_describe(a, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_memory_info(0, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_device_count(NULL), PVG_ERROR_VALUE);
    RELEASE(a);
}

/* After each kind of failure the next operation works, and what was there is as it was. */
static void operations_after_errors(void) {
    const float values[4] = {1, 2, 3, 4}, doubled[4] = {2, 4, 6, 8};
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(4), values);
    pvg_array *out = array_of(PVG_FLOAT32, SHAPE(4), doubled);
    pvg_array *small = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3)));
    pvg_array *integers = MADE(pvg_array_empty(0, PVG_INT32, SHAPE(4)));
    int axis = 1;
    for (int i = 0; i < 6; i++) {
        if (i == 0) CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_ADD, a, small, out));
        if (i == 1) CHECK_NULL(PVG_ERROR_VALUE, pvg_binary(PVG_ADD, a, a, small));
        if (i == 2) CHECK_NULL(PVG_ERROR_TYPE, pvg_binary(PVG_ADD, a, a, integers));
        if (i == 3) CHECK_NULL(PVG_ERROR_AXIS, pvg_reduce(PVG_SUM, a, 1, &axis, 0, NULL));
        if (i == 4)
            CHECK_NULL(PVG_ERROR_MEMORY, pvg_array_empty(0, PVG_UINT8, SHAPE((int64_t)1 << 60)));
        if (i == 5) CHECK_NULL(PVG_ERROR_UNAVAILABLE, pvg_array_empty(77, PVG_FLOAT32, SHAPE(1)));
        CHECK_ARRAY(a, PVG_FLOAT32, SHAPE(4), values, 0);
        CHECK_ARRAY(out, PVG_FLOAT32, SHAPE(4), doubled, 0);
        pvg_array *sum = MADE(pvg_add(a, a));
        CHECK_ARRAY(sum, PVG_FLOAT32, SHAPE(4), doubled, 0);
        RELEASE(sum);
    }
    RELEASE(a, out, small, integers);
}

int main(void) {
    begin("test_error");
    RUN(record_of_a_failure);
    RUN(one_record_per_thread);
    RUN(bad_handles);
    RUN(bad_codes);
    RUN(operations_after_errors);
    return finish();
}
