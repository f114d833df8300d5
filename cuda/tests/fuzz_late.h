/* Errors that fuzz.c has to expect late: what a kernel found out, an index out of range or a
 * singular matrix, fails the next wait, whichever that is. Each call that can leave such an error
 * is written down with all that the error has to say; and those that must, since their contents are
 * known, with that. An error that no call could have caused is a finding, and so is one that a call
 * must have caused if the device has been waited for without it. */
#ifndef PVG_FUZZ_LATE_H
#define PVG_FUZZ_LATE_H

#include "fuzz.h"

enum { MOST_LATE = 1024, ANY = INT32_MIN };

typedef struct {
    const char *operation;       /* as pvg_last_error_operation names it */
    int64_t index, axis, length; /* index ANY: contents are not known; length 0: a matrix */
    int due, certain;            /* it has run, or may run until somebody waits; and has to fail */
    int recorded;                /* in a graph that is being recorded */
    int from_start;              /* negative indices are out of range, too */
    const void *graph;           /* it may run whenever this one is launched */
} Late;
static Late lates[MOST_LATE];
static int late_count;
static int early_index; /* this call may find an index out of range by itself, without a kernel */

/* A call that follows can leave this error, and must if it is `certain` and succeeds. */
static void expect_late(const char *operation, int64_t index, int64_t axis, int64_t length,
                        int certain) {
    const Late late = {operation,  recording ? ANY : index,         axis,      length,
                       !recording, certain && !recording && !fault, recording, 0,
                       NULL};
    if (late_count == MOST_LATE)
        report(__FILE__, __LINE__, "no room for another late error");
    else
        lates[late_count++] = late;
}

/* The call behind expect_late, before which there were `before` of them: what was refused has not
 * run, and what was not done as a whole need not have come to the error. */
static void ended(int before, int status) {
    const int refused = status == PVG_ERROR_VALUE || status == PVG_ERROR_TYPE ||
                        status == PVG_ERROR_AXIS || status == PVG_ERROR_UNAVAILABLE ||
                        status == PVG_ERROR_OVERFLOW;
    if (refused) late_count = before;
    for (int i = before; i < late_count; i++) lates[i].certain &= status == PVG_OK;
}

static int fits_message(const Late *late) {
    long long index, axis, length;
    const char *at = strstr(pvg_last_error(), ": ");
    if (!at || strcmp(late->operation, pvg_last_error_operation()) != 0) return 0;
    if (late->length == 0) return strstr(at, "a matrix is ") != NULL;
    if (strcmp(late->operation, "cross_entropy") == 0) {
        if (sscanf(at, ": label %lld is out of bounds for %lld classes", &index, &length) != 2)
            return 0;
        return length == late->length && (late->index == ANY || late->index == index) &&
               (index < 0 || index >= length);
    }
    if (sscanf(at, ": index %lld is out of bounds for axis %lld with size %lld", &index, &axis,
               &length) != 3)
        return 0;
    return axis == late->axis && length == late->length &&
           (late->index == ANY || late->index == index) &&
           (index < (late->from_start ? 0 : -length) || index >= length);
}

static int is_explained(int status) {
    if (status != PVG_ERROR_INDEX && status != PVG_ERROR_LINALG) return 0;
    int found = 0;
    for (int i = 0; i < late_count && !found; i++)
        found = lates[i].due && (lates[i].length == 0) == (status == PVG_ERROR_LINALG) &&
                fits_message(&lates[i]);
    /* Of several the first one is told. */
    for (int i = 0; found && i < late_count; i++) lates[i].certain = 0;
    return found || (status == PVG_ERROR_INDEX && early_index);
}

/* The device has been waited for, and what was found was told. */
static void nothing_is_due(int status) {
    int kept = 0;
    for (int i = 0; i < late_count; i++) {
        if (lates[i].certain && status == PVG_OK)
            report(__FILE__, __LINE__, "an error of %s was never told", lates[i].operation);
        lates[i].due = lates[i].certain = 0;
        if (lates[i].graph || lates[i].recorded) lates[kept++] = lates[i];
    }
    late_count = kept;
}

static void late_graph_ended(const void *graph) {
    int kept = 0;
    for (int i = 0; i < late_count; i++) {
        if (lates[i].recorded) lates[i].graph = graph;
        lates[i].recorded = 0;
        if (lates[i].graph || lates[i].due) lates[kept++] = lates[i];
    }
    late_count = kept;
}

static void late_graph_launched(const void *graph) {
    for (int i = 0; i < late_count; i++) lates[i].due |= lates[i].graph == graph;
}

static void late_graph_released(const void *graph) {
    int kept = 0;
    for (int i = 0; i < late_count; i++) {
        if (lates[i].graph == graph) lates[i].graph = NULL;
        if (lates[i].graph || lates[i].recorded || lates[i].due) lates[kept++] = lates[i];
    }
    late_count = kept;
}

#endif
