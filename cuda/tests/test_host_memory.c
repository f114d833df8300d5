/* The library when the host has no memory: each malloc, calloc and realloc of a call fails in turn,
 * alone or with all that follow. A call that fails says so, leaves nothing behind, and the next one
 * goes right. Of the simulated card alone: CUDA's own runtime allocates memory of the host too. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <string.h>

#if defined(PVG_TEST_SIMULATOR) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/* `left` allocations go right before one fails, and with all_fail those behind it too. */
static int armed, left, all_fail, failed;

/* These stand before the C library's own, for all of the process. Those of operator new, which the
 * simulator lives on, go right: their caller is another library. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static int fails(const void *caller) {
    Dl_info info;
    if (!armed || !dladdr(caller, &info) || !strstr(info.dli_fname, "libpyvecgpu")) return 0;
    if (left-- > 0 || (failed && !all_fail)) return 0;
    failed++;
    return 1;
}
void *malloc(size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, bytes);
}
void *realloc(void *memory, size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}

/* ---- Calls: each gives its status, and releases what it has made ----------------------------- */

enum { MOST = 100 };
static int made; /* calls so far: a call's streams, events and sizes are new ones each time */

static int status_of(pvg_array *result) {
    const int status = result ? PVG_OK : pvg_last_status();
    pvg_array_release(result);
    return status;
}

/* Records are used again: only as many at once as never before take memory. */
static pvg_stream *streams[MOST];
static pvg_event *events[MOST];
static int stream_count, event_count;

static int makes_a_stream(void) {
    pvg_stream *stream = pvg_stream_create(0);
    if (stream) streams[stream_count++] = stream;
    return stream ? PVG_OK : pvg_last_status();
}
static int makes_an_event(void) {
    pvg_event *event = pvg_event_create(0);
    if (event) events[event_count++] = event;
    return event ? PVG_OK : pvg_last_status();
}
static int makes_an_array(void) {
    return status_of(pvg_array_empty(0, PVG_FLOAT32, SHAPE(1000000 * (1 + made % 7))));
}
/* A new stream has no memory of its own yet. */
static int makes_an_array_on_a_new_stream(void) {
    pvg_stream *stream = pvg_stream_create(0);
    if (!stream) return pvg_last_status();
    int status = pvg_stream_set_current(stream, 0);
    if (status == PVG_OK) status = status_of(pvg_array_empty(0, PVG_FLOAT32, SHAPE(300)));
    pvg_stream_set_current(NULL, 0);
    pvg_stream_release(stream);
    return status;
}
/* More arrays than there are handles for. */
static int makes_many_arrays(void) {
    static pvg_array *arrays[3000];
    int n = 0, status = PVG_OK;
    while (n < 3000 && status == PVG_OK) {
        arrays[n] = pvg_array_empty(0, PVG_FLOAT32, SHAPE(0));
        status = arrays[n] ? PVG_OK : pvg_last_status();
        n += arrays[n] != NULL;
    }
    while (n > 0) pvg_array_release(arrays[--n]);
    return status;
}
static void nothing(void *context) { (void)context; }
static int wraps_memory(void) {
    static pvg_array *under;
    under = pvg_array_empty(0, PVG_FLOAT32, SHAPE(4));
    if (!under) return pvg_last_status();
    const int status = status_of(
        pvg_array_wrap(pvg_array_data(under), 0, PVG_FLOAT32, SHAPE(4), NULL, nothing, NULL));
    pvg_array_release(under);
    return status;
}

/* Of arrays that are there before memory is short. */
static pvg_array *x, *square;
static int uploads_gathered(void) {
    static float host[2 * 64 * 64];
    const int64_t steps[2] = {8 * 64, 8};
    return pvg_copy_from_host(square, host, steps);
}
static int downloads_scattered(void) {
    static float host[2 * 64 * 64];
    const int64_t steps[2] = {8 * 64, 8};
    return pvg_copy_to_host(square, host, steps);
}
/* The beginning of a DLManagedTensorVersioned. */
typedef struct Versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct Versioned *);
} Versioned;
static int is_exported(void) {
    void *tensor = pvg_dlpack_export(x, 1, 0, 0);
    if (!tensor) return pvg_last_status();
    pvg_array *array = pvg_dlpack_import(tensor, 1, 0); /* if it works, the tensor is the array's */
    const int status = array ? PVG_OK : pvg_last_status();
    if (!array) ((Versioned *)tensor)->deleter(tensor);
    pvg_array_release(array);
    return status;
}
static int adds(void) { return status_of(pvg_binary(PVG_ADD, x, x, NULL)); }
static int sorts(void) { return status_of(pvg_sort(x, 0, 0, NULL)); }
static int multiplies(void) {
    return status_of(pvg_matmul(square, square, PVG_PRECISION_DEFAULT, NULL));
}
static int takes_a_norm(void) {
    const pvg_array *parts[] = {x, square};
    return status_of(pvg_total_norm(parts, 2, 2.0));
}
static int clips(void) {
    pvg_array *targets[] = {square, square};
    return pvg_clip_norm(targets, 2, NULL, 1.0);
}
static int records(void) {
    int status = pvg_graph_begin(0);
    if (status != PVG_OK) return status;
    for (int i = 0; i < 90 && status == PVG_OK; i++) status = adds();
    pvg_graph *graph = pvg_graph_end(0);
    if (!graph) return status == PVG_OK ? pvg_last_status() : status;
    const int launched = pvg_graph_launch(graph);
    pvg_graph_release(graph);
    return status == PVG_OK ? launched : status;
}

/* ---- What holds of all ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*call)(void);
    int least; /* allocations that fail at least */
} calls[] = {
    {"makes_a_stream", makes_a_stream, 1},
    {"makes_an_event", makes_an_event, 1},
    {"makes_an_array", makes_an_array, 1},
    {"makes_an_array_on_a_new_stream", makes_an_array_on_a_new_stream, 3},
    {"makes_many_arrays", makes_many_arrays, 2},
    {"wraps_memory", wraps_memory, 1},
    {"uploads_gathered", uploads_gathered, 1},
    {"downloads_scattered", downloads_scattered, 1},
    {"is_exported", is_exported, 2},
    {"adds", adds, 1},
    {"sorts", sorts, 1},
    {"multiplies", multiplies, 0},
    {"takes_a_norm", takes_a_norm, 1},
    {"clips", clips, 1},
    {"records", records, 2},
};

static void check_call(size_t number) {
    const int64_t arrays = pvg_counter(PVG_COUNT_LIVE_ARRAYS), used = memory_value(PVG_MEMORY_USED);
    int most = 0;
    for (int all = 0; all < 2; all++)
        for (int n = 0; n < MOST; n++) {
            char text[96];
            snprintf(text, sizeof text, "%s, allocation %d%s", calls[number].name, n,
                     all ? " and all behind it" : "");
            left = n, all_fail = all, failed = 0, armed = 1;
            made++;
            const int status = calls[number].call();
            armed = 0;
            if (status != PVG_OK && (status != PVG_ERROR_HOST_MEMORY || !failed))
                report(__FILE__, __LINE__, "%s: status %d: %s", text, status, pvg_last_error());
            if (pvg_synchronize(0) != PVG_OK) /* and what failed is no longer in the way */
                report(__FILE__, __LINE__, "%s: then %s", text, pvg_last_error());
            if (pvg_counter(PVG_COUNT_LIVE_ARRAYS) != arrays ||
                memory_value(PVG_MEMORY_USED) != used)
                report(__FILE__, __LINE__, "%s: something is left behind", text);
            if (!failed) break;
            most += status != PVG_OK;
        }
    if (most < calls[number].least)
        report(__FILE__, __LINE__, "%s: %d failures only", calls[number].name, most);
}

static void each_allocation_fails(void) {
    uint64_t state = 1;
    x = random_array(PVG_FLOAT32, SHAPE(3000), &state);
    square = random_array(PVG_FLOAT32, SHAPE(64, 64), &state);
    for (size_t i = 0; i < COUNT(calls); i++) {
        check_call(i);
        CHECK_OK(calls[i].call());
    }
    while (stream_count > 0) CHECK_OK(pvg_stream_release(streams[--stream_count]));
    while (event_count > 0) CHECK_OK(pvg_event_release(events[--event_count]));
    RELEASE(x, square);
}

int main(void) {
    begin("test_host_memory");
    RUN(each_allocation_fails);
    return finish();
}

#else

int main(void) {
    begin("test_host_memory");
    return finish();
}

#endif
