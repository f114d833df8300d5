/* What the tests of streams and of graphs share: two streams beside the default one, and arrays of
 * one value.
 *
 * On the simulated card every section also runs with deferred streams: work is recorded, and a
 * wait runs only what it waits for. A missing dependency then gives the old values, always;
 * test_stream.c shows that it does. */
#ifndef PVG_TEST_STREAMS_H
#define PVG_TEST_STREAMS_H

#include "check.h"

static pvg_stream *first, *second;

static inline void use(pvg_stream *stream) { CHECK_OK(pvg_stream_set_current(stream, 0)); }
static inline void refill(pvg_array *a, double value) {
    CHECK_OK(pvg_fill(a, PVG_SCALAR_FLOAT, &value));
}
static inline pvg_array *filled(int64_t n, double value) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(n)));
    refill(a, value);
    return a;
}

static inline void check_all(const char *file, int line, const pvg_array *a, float value) {
    float *values = host_copy(a);
    for (int64_t i = 0; i < pvg_array_size(a); i++)
        if (!(values[i] == value)) {
            report(file, line, "element %d is %g, expected %g", (int)i, (double)values[i],
                   (double)value);
            break;
        }
    free(values);
}
#define CHECK_ALL(array, value) check_all(__FILE__, __LINE__, array, value)

static inline void make_streams(void) {
    first = MADE(pvg_stream_create(0));
    second = MADE(pvg_stream_create(0));
}
static inline void release_streams(void) {
    CHECK_OK(pvg_stream_release(first));
    CHECK_OK(pvg_stream_release(second));
}

/* Runs the sections at once, and on the simulated card deferred. */
static inline void run_in_both_modes(void (*sections)(void)) {
    sections();
#ifdef PVG_TEST_SIMULATOR
    CHECK_EQUAL(pvg_sim_set("deferred", 1), 0);
    sections();
    CHECK_OK(pvg_synchronize(0));
    CHECK_EQUAL(pvg_sim_set("deferred", 0), 0);
#endif
}

#endif
