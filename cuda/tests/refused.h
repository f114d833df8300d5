/* Calls that are refused: each row of a section is a call with one bad argument, the status that
 * it gives and what its message says. After each nothing may have happened: no handle is there, no
 * kernel was launched, no memory taken; and after the section every operand holds what it held. */
#ifndef PVG_REFUSED_H
#define PVG_REFUSED_H

#include "check.h"

enum { MOST_GIVEN = 200 };
static struct {
    pvg_array *array;
    void *bytes; /* NULL: it is larger than its memory, a view of one element */
} all_given[MOST_GIVEN];
static int given_count = 0;
static int64_t arrays_before, launches_before, used_before;

static inline pvg_array *keep(pvg_array *array, void *bytes) {
    CHECK(given_count < MOST_GIVEN);
    all_given[given_count].array = array;
    all_given[given_count++].bytes = bytes;
    return array;
}

/* An operand, kept until the end of the section. */
static inline pvg_array *given(int dtype, int ndim, const int64_t *shape) {
    uint64_t state = (uint64_t)given_count + 1;
    void *values = small_integers(dtype, product(ndim, shape), &state);
    return keep(array_of(dtype, ndim, shape, values), values);
}
static inline pvg_array *floats(int ndim, const int64_t *shape) {
    return given(PVG_FLOAT32, ndim, shape);
}
static inline pvg_array *integers(int ndim, const int64_t *shape) {
    pvg_array *array = MADE(pvg_array_empty(0, PVG_INT64, ndim, shape));
    const int64_t zero = 0;
    CHECK_OK(pvg_fill(array, PVG_SCALAR_INT, &zero));
    return keep(array, host_copy(array));
}

/* An operand of any size on the memory of one element. */
static inline pvg_array *endless(int dtype, int ndim, const int64_t *shape) {
    pvg_array *one = given(dtype, SCALAR);
    return keep(MADE(pvg_broadcast_to(one, ndim, shape)), NULL);
}
/* The same in C order and not read-only: who reads it would read beyond the memory. */
static inline pvg_array *pretended(int dtype, int ndim, const int64_t *shape) {
    pvg_array *one = given(dtype, SCALAR);
    void *data = pvg_array_data(one);
    return keep(MADE(pvg_array_wrap(data, 0, dtype, ndim, shape, NULL, NULL, NULL)), NULL);
}

static inline void let_go(void) {
    while (given_count > 0) {
        pvg_array *array = all_given[--given_count].array;
        void *bytes = all_given[given_count].bytes;
        if (bytes) {
            int dtype = pvg_array_dtype(array), ndim = pvg_array_ndim(array);
            CHECK_ARRAY(array, dtype, ndim, pvg_array_shape(array), bytes, 0);
        }
        free(bytes);
        RELEASE(array);
    }
}

static inline void before_call(void) {
    arrays_before = pvg_counter(PVG_COUNT_LIVE_ARRAYS);
    launches_before = pvg_counter(PVG_COUNT_LAUNCHES);
    used_before = memory_value(PVG_MEMORY_USED);
}

static inline void after_call(const char *file, int line, const char *call, int status,
                              int expected, const char *part) {
    check_status(file, line, call, status, expected);
    if (!strstr(pvg_last_error(), part))
        report(file, line, "%s says \"%s\", not \"%s\"", call, pvg_last_error(), part);
    check_equal(file, line, call, pvg_counter(PVG_COUNT_LIVE_ARRAYS), arrays_before);
    check_equal(file, line, call, pvg_counter(PVG_COUNT_LAUNCHES), launches_before);
    check_equal(file, line, call, memory_value(PVG_MEMORY_USED), used_before);
}

/* REFUSED(status, a part of the message, a call that gives a status) */
#define REFUSED(expected, part, ...)                                               \
    do {                                                                           \
        before_call();                                                             \
        int status_ = (__VA_ARGS__);                                               \
        after_call(__FILE__, __LINE__, #__VA_ARGS__, status_, (expected), (part)); \
    } while (0)
/* The same of a call that gives a handle. */
#define NOT_MADE(expected, part, ...)                                                        \
    do {                                                                                     \
        before_call();                                                                       \
        const void *made_ = (const void *)(__VA_ARGS__);                                     \
        check_null(__FILE__, __LINE__, #__VA_ARGS__, made_, (expected));                     \
        after_call(__FILE__, __LINE__, #__VA_ARGS__, pvg_last_status(), (expected), (part)); \
    } while (0)

/* Two devices, where the simulated card stands for them: before begin(). */
static inline void ask_for_two_devices(void) {
#ifdef PVG_TEST_SIMULATOR
    CHECK_EQUAL(pvg_sim_set("devices", 2), 0);
#endif
}
static inline int has_two_devices(void) {
    int count = 0;
    CHECK_OK(pvg_device_count(&count));
    return count > 1;
}
/* Nothing is in use on the second device. */
static inline void check_second_device(void) {
    int64_t values[PVG_MEMORY_COUNT] = {0};
    CHECK_OK(pvg_synchronize(1));
    CHECK_OK(pvg_memory_info(1, values));
    CHECK_EQUAL(values[PVG_MEMORY_USED], 0);
}

#endif
