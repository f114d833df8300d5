/* What the calls of fuzz.c and fuzz_guided.c are made of: handles that live or not any more, the
 * rules that hold after each call, injected faults, and random arguments, most of which make sense.
 * Numbers are drawn from a generator, or from bytes that somebody else chose. */
#ifndef PVG_FUZZ_H
#define PVG_FUZZ_H

#include "check.h"

enum { ARRAYS = 40, OTHERS = 4, BUFFER = 1 << 20, BASE = 4096 };

static int tracing = 0;
static uint64_t rng;
static const uint8_t *chosen; /* bytes that take the place of random numbers, if not NULL */
static size_t chosen_left;

/* Handles that live, and some that were released. */
typedef struct {
    void *live[ARRAYS], *stale[OTHERS];
    int count, released;
} Handles;
static Handles arrays, streams, events, graphs;
static pvg_array *base; /* what arrays of somebody else's memory lie in */
static int64_t wrapped, deleted;
static int bad;       /* an argument of this call makes no sense */
static int right;     /* all arguments of this call are as the header asks for */
static int fault;     /* one was injected */
static int recording; /* a graph, whose calls do nothing now and may be refused */
static unsigned char buffer[BUFFER];
static uint64_t foreign[64];

/* A number below `count`, any for 0. After the last of the bytes that were chosen it is `rest`. */
static uint64_t draw(uint64_t count, uint64_t rest) {
    if (!chosen) return count ? random_bits(&rng) % count : random_bits(&rng);
    uint64_t drawn = 0;
    const uint64_t most = count - 1;
    for (uint64_t seen = 0; seen < most; seen = seen << 8 | 255) {
        if (chosen_left == 0) return rest;
        drawn = drawn << 8 | *chosen++, chosen_left--;
    }
    return count ? drawn % count : drawn;
}
static int chance(int percent) { return draw(100, 50) < (uint64_t)percent; }
static int64_t pick(int64_t low, int64_t high) {
    return low + (int64_t)draw((uint64_t)(high - low) + 1, 0);
}

/* ---- Handles --------------------------------------------------------------------------------- */

static void *one_of(const Handles *h) { return h->live[pick(0, h->count - 1)]; }

static int is_live(const Handles *h, const void *handle) {
    for (int i = 0; i < h->count; i++)
        if (h->live[i] == handle) return 1;
    return 0;
}

/* A handle that a call needs: seldom a wrong one. */
static void *needed(const Handles *h) {
    void *handle = h->count > 0 && !chance(6) ? one_of(h) : NULL;
    if (!handle && chance(40) && h->released > 0) handle = h->stale[pick(0, h->released - 1)];
    if (!handle && chance(40)) handle = foreign + 8;
    bad |= !is_live(h, handle);
    return handle;
}

/* A handle that a call can do without, as those that release one can: NULL is fine. */
static void *wanted(const Handles *h, int percent) {
    int before = bad;
    void *handle = chance(percent) ? needed(h) : NULL;
    if (!handle) bad = before;
    return handle;
}

static void keep(Handles *h, void *handle) { h->live[h->count++] = handle; }

static void forget(Handles *h, void *handle) {
    if (!handle) return;
    for (int i = 0; i < h->count; i++)
        if (h->live[i] == handle) h->live[i] = h->live[--h->count];
    h->stale[h->released < OTHERS ? h->released++ : pick(0, OTHERS - 1)] = handle;
}

/* ---- The rules ------------------------------------------------------------------------------- */

#define TRACE(...)                                      \
    do {                                                \
        if (tracing) fprintf(stderr, "  " __VA_ARGS__); \
    } while (0)

static int is_explained(int status); /* an error of an index or of a matrix: fuzz_late.h */

static void check_failure(const char *name, int status) {
    static const int by_arguments[] = {PVG_ERROR_VALUE, PVG_ERROR_TYPE, PVG_ERROR_AXIS,
                                       PVG_ERROR_OVERFLOW, PVG_ERROR_UNAVAILABLE};
    static const int by_faults[] = {PVG_ERROR_HOST_MEMORY, PVG_ERROR_LAUNCH, PVG_ERROR_CUDA};
    int known = status == PVG_ERROR_MEMORY || is_explained(status);
    const int sound = right && !bad;
    for (size_t i = 0; i < COUNT(by_arguments); i++) known |= !sound && status == by_arguments[i];
    for (size_t i = 0; i < COUNT(by_faults); i++) known |= fault && status == by_faults[i];
    if (status == PVG_ERROR_VALUE && sound) /* a recording, or a kernel that a setting asks for */
        known |= (recording && strstr(pvg_last_error(), "recording a graph")) ||
                 strstr(pvg_last_error(), "the kernel that is forced");
    TRACE("-> status %d: %s\n", status, pvg_last_error());
    if (!known) report(__FILE__, __LINE__, "%s: status %d: %s", name, status, pvg_last_error());
    if (pvg_last_status() != status || pvg_last_error()[0] == '\0')
        report(__FILE__, __LINE__, "%s: status %d, recorded %d: \"%s\"", name, status,
               pvg_last_status(), pvg_last_error());
}

static void status_of(const char *name, int status) {
    if (status != PVG_OK) {
        check_failure(name, status);
        return;
    }
    if (bad) report(__FILE__, __LINE__, "%s took an argument that makes no sense", name);
    if (pvg_last_status() != PVG_OK || pvg_last_error()[0] != '\0')
        report(__FILE__, __LINE__, "%s succeeded, recorded %d: %s", name, pvg_last_status(),
               pvg_last_error());
}

/* Of a call that gives a handle back; one that succeeds may leave the record as it was. */
static int released(const char *name, int status) {
    if (status != PVG_OK) check_failure(name, status);
    if (bad != (status != PVG_OK))
        report(__FILE__, __LINE__, "%s gave %d of a %s handle", name, status, bad ? "bad" : "good");
    return status == PVG_OK;
}

/* Whether a handle came back; a new one is kept. */
static int handle_of(const char *name, void *result, const void *out, Handles *h) {
    status_of(name, result ? PVG_OK : pvg_last_status());
    if (!result && pvg_last_status() == PVG_OK)
        report(__FILE__, __LINE__, "%s gave NULL without an error", name);
    if (result && out && result != out)
        report(__FILE__, __LINE__, "%s did not give out back", name);
    if (result && !out) keep(h, result);
    return result != NULL;
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static const char *injected;
static int64_t nth;

static void arm(void) {
    if (injected) pvg_sim_fail(injected, nth);
}

static void inject(void) {
    static const char *const faults[] = {"malloc", "pinned", "copy",  "memset",
                                         "launch", "stream", "event", "graph"};
    injected = chance(5) ? faults[pick(0, COUNT(faults) - 1)] : NULL;
    nth = pick(1, 3), fault = injected != NULL;
    if (injected) TRACE("call %" PRId64 " of kind %s fails\n", nth, injected);
    arm();
}

/* What has not failed yet will not. */
static void take_back(void) {
    if (injected) pvg_sim_fail(injected, 0);
    injected = NULL, fault = 0;
}

/* What is between these two makes operands for a call, whose faults are for the call itself. */
static int of_call[3];
static void prepare(void) {
    of_call[0] = fault, of_call[1] = bad, of_call[2] = right;
    fault = bad = right = 0;
    if (injected) pvg_sim_fail(injected, 0);
}
static void prepared(void) {
    fault = of_call[0], bad = of_call[1], right = of_call[2];
    arm();
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static int64_t shape[64];

static int random_shape(void) {
    static const int64_t lengths[] = {0, 1, 1, 2, 3, 3, 5, 17, 33};
    int ndim = (int)pick(0, chance(90) ? 3 : 5);
    for (int i = 0; i < 64; i++) shape[i] = lengths[pick(0, COUNT(lengths) - 1)];
    if (chance(2)) shape[pick(0, 3)] = -pick(1, 5);
    if (chance(1)) shape[pick(0, 3)] = (int64_t)1 << pick(30, 62);
    if (chance(2)) {
        ndim = (int)(chance(50) ? -pick(1, 3) : pick(PVG_MAX_NDIM - 1, PVG_MAX_NDIM + 8));
        for (int i = 0; i < 64; i++) shape[i] = 1;
    }
    return ndim;
}

/* A shape like that of an array, so that it fits more often. */
static int related_shape(const pvg_array *a) {
    int ndim = random_shape();
    if (!is_live(&arrays, a) || chance(10)) return ndim;
    ndim = pvg_array_ndim(a);
    for (int i = 0; i < ndim; i++) shape[i] = pvg_array_shape(a)[i];
    return ndim;
}

static int device(void) { return chance(97) ? 0 : (int)pick(-2, 9); }
static int dtype(void) {
    return chance(85) ? all_dtypes[pick(0, dtype_count - 1)]
                      : (int)(chance(80) ? pick(PVG_COMPLEX64, PVG_COMPLEX128) : pick(-1, 16));
}
static int precision(void) { return chance(95) ? (int)pick(0, 6) : (int)pick(-2, 9); }
static int activation(void) {
    static const int every[] = {PVG_NONE, PVG_SIGMOID, PVG_TANH, PVG_RELU, PVG_GELU, PVG_SILU};
    return chance(95) ? every[pick(0, COUNT(every) - 1)] : (int)pick(-1, 200);
}

typedef struct {
    union {
        uint8_t truth;
        int64_t whole;
        uint64_t natural;
        double real;
    } value;
    int kind;
    const void *pointer;
} Scalar;

static Scalar scalar(void) {
    Scalar s;
    memset(&s, 0, sizeof s);
    s.kind = chance(96) ? (int)pick(0, 3) : (int)pick(-1, 6);
    int64_t whole = chance(80) ? pick(-3, 9) : (int64_t)draw(0, 0);
    switch (s.kind) {
    case PVG_SCALAR_BOOL: s.value.truth = (uint8_t)(whole & 1); break;
    case PVG_SCALAR_FLOAT: s.value.real = chance(90) ? (double)whole / 2 : NAN; break;
    default: s.value.whole = whole;
    }
    return s;
}

#endif
