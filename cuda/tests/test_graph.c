/* Graphs: what is recorded does not run before it is launched; a launch then gives the bits that
 * the calls themselves would give, in order with all other work, of all streams and threads. What
 * cannot be recorded is refused, and on the simulated card every launch, stream and graph of a
 * recording is made to fail. Their memory: test_graph_memory.c. */
#include "streams.h"

#include <pthread.h>

enum { N = 3000, SIDE = 40 };

static uint64_t random_state = 7;

static void check_refused(int line, int status) {
    if (status != PVG_ERROR_VALUE || !strstr(pvg_last_error(), "recording a graph: "))
        report(__FILE__, line, "status %d, \"%s\", instead of a refusal", status, pvg_last_error());
}
#define REFUSED(call) check_refused(__LINE__, call)

/* ---- What launches give ---------------------------------------------------------------------- */

static pvg_array *random_floats(int ndim, const int64_t *shape) {
    float *values = host_memory(PVG_FLOAT32, product(ndim, shape));
    for (int64_t i = 0; i < product(ndim, shape); i++)
        values[i] = (float)random_real(&random_state, -1, 1);
    pvg_array *a = array_of(PVG_FLOAT32, ndim, shape, values);
    free(values);
    return a;
}

/* A step of everything: element by element, transposed copies, casts, products of several kinds,
 * reductions, a layer forward and backward. x (SIDE, SIDE), w (SIDE, SIDE); writes to `results`,
 * releases what it made. 0 if a call failed. */
enum { RESULTS = 5 };
static int step(pvg_array *x, pvg_array *w, pvg_array *const *results) {
    const double half = 0.5;
    pvg_array *z = pvg_array_empty(0, PVG_FLOAT32, SHAPE(SIDE, SIDE)), *gradients[3] = {NULL};
    pvg_array *y = z ? pvg_dense(x, w, NULL, PVG_GELU, PVG_PRECISION_DEFAULT, z, NULL) : NULL;
    pvg_array *t = y ? pvg_permute(y, ((const int[]){1, 0})) : NULL;
    pvg_array *p = t ? pvg_matmul(t, w, PVG_PRECISION_DEFAULT, NULL) : NULL;
    pvg_array *d = p ? pvg_cast(p, PVG_FLOAT64, NULL) : NULL;
    pvg_array *s = d ? pvg_binary_scalar(PVG_MULTIPLY, d, PVG_SCALAR_FLOAT, &half, 1, NULL) : NULL;
    int done = s && pvg_reduce(PVG_SUM, s, AXES(0), 0, results[0]) &&
               pvg_reduce(PVG_ARGMAX, p, -1, NULL, 0, results[1]) &&
               pvg_binary(PVG_MAXIMUM, y, p, results[2]) &&
               pvg_dense_backward(p, x, w, z, PVG_GELU, PVG_PRECISION_DEFAULT, &gradients[0],
                                  &gradients[1], &gradients[2]) == PVG_OK &&
               pvg_unary(PVG_TANH, gradients[0], results[3]) &&
               pvg_binary(PVG_ADD, gradients[1], gradients[2], results[4]);
    pvg_array *const made[] = {z, y, t, p, d, s, gradients[0], gradients[1], gradients[2]};
    for (size_t i = 0; i < COUNT(made); i++)
        if (made[i] && pvg_array_release(made[i]) != PVG_OK) return 0;
    return done;
}

static void make_results(pvg_array **results) {
    results[0] = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(SIDE)));
    results[1] = MADE(pvg_array_empty(0, PVG_INT64, SCALAR));
    for (int i = 2; i < RESULTS; i++)
        results[i] = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(SIDE, SIDE)));
}

static void check_same(pvg_array *const *got, pvg_array *const *expected) {
    for (int i = 0; i < RESULTS; i++) {
        void *values = host_copy(expected[i]);
        CHECK_ARRAY(got[i], pvg_array_dtype(expected[i]), pvg_array_ndim(expected[i]),
                    pvg_array_shape(expected[i]), values, 0);
        free(values);
    }
}

static void the_same_bits_as_the_calls(void) {
    const int64_t shape[2] = {SIDE, SIDE};
    pvg_array *x = random_floats(2, shape), *w = random_floats(2, shape);
    pvg_array *eager[RESULTS], *replayed[RESULTS];
    make_results(eager), make_results(replayed);
    CHECK_OK(pvg_graph_begin(0));
    CHECK(step(x, w, replayed));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    for (int round = 0; round < 3; round++) {
        pvg_array *fresh = random_floats(2, shape);
        CHECK_OK(pvg_copy(fresh, round == 1 ? w : x));
        RELEASE(fresh);
        CHECK(step(x, w, eager));
        CHECK_OK(pvg_graph_launch(graph));
        check_same(replayed, eager);
    }
    CHECK_OK(pvg_graph_release(graph));
    RELEASE(x, w);
    for (int i = 0; i < RESULTS; i++) RELEASE(eager[i], replayed[i]);
}

static void nothing_runs_before_a_launch(void) {
    pvg_array *a = filled(N, 1);
    const int64_t version = pvg_array_version(a);
    pvg_stream *usual = pvg_stream_current(0);
    CHECK_OK(pvg_graph_begin(0));
    CHECK(pvg_stream_current(0) != usual);
    MADE(pvg_binary(PVG_ADD, a, a, a));
    pvg_array *made = MADE(pvg_add(a, a));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    CHECK(pvg_stream_current(0) == usual);
    CHECK_ALL(a, 1);
    CHECK_EQUAL(pvg_array_version(a), version);
    CHECK_OK(pvg_graph_launch(graph));
    CHECK(pvg_array_version(a) != version);
    CHECK_ALL(a, 2);
    CHECK_ALL(made, 4);
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_ALL(a, 4);
    CHECK_ALL(made, 8);
    CHECK_OK(pvg_graph_release(graph));
    CHECK_ALL(made, 8); /* outlives the graph */
    RELEASE(a, made);
}

static void nothing_recorded(void) {
    CHECK_OK(pvg_graph_begin(0));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_OK(pvg_graph_release(graph));
}

/* A graph that reads what another one makes; arrays of a graph in the recording of the next. */
static void one_graph_after_another(void) {
    pvg_array *a = filled(N, 3);
    CHECK_OK(pvg_graph_begin(0));
    pvg_array *b = MADE(pvg_add(a, a));
    pvg_graph *doubles = MADE(pvg_graph_end(0));
    CHECK_OK(pvg_graph_begin(0));
    pvg_array *c = MADE(pvg_multiply(b, b));
    pvg_graph *squares = MADE(pvg_graph_end(0));
    use(first);
    CHECK_OK(pvg_graph_launch(doubles));
    use(second);
    CHECK_OK(pvg_graph_launch(squares));
    CHECK_ALL(c, 36);
    use(first);
    refill(a, 5);
    CHECK_OK(pvg_graph_launch(doubles));
    RELEASE(a, b);
    use(NULL);
    CHECK_OK(pvg_graph_release(doubles)); /* b stays: the other graph reads it */
    CHECK_OK(pvg_graph_launch(squares));
    CHECK_ALL(c, 100);
    CHECK_OK(pvg_graph_release(squares));
    RELEASE(c);
}

/* ---- Order ----------------------------------------------------------------------------------- */

static void launches_wait_and_are_waited_for(void) {
    pvg_array *in = filled(N, 0), *out = filled(N, 0);
    CHECK_OK(pvg_graph_begin(0));
    pvg_array *twice = MADE(pvg_add(in, in));
    MADE(pvg_binary(PVG_ADD, twice, in, out));
    RELEASE(twice);
    pvg_graph *graph = MADE(pvg_graph_end(0));
    for (int round = 1; round <= 3; round++) {
        use(first);
        refill(in, round); /* on one stream, launched on another, read on a third */
        use(second);
        CHECK_OK(pvg_graph_launch(graph));
        use(NULL);
        pvg_array *read = MADE(pvg_add(out, out));
        use(first);
        refill(out, -1);
        refill(in, -1);
        CHECK_ALL(read, (float)(6 * round));
        RELEASE(read);
    }
    use(NULL);
    CHECK_OK(pvg_graph_release(graph));
    RELEASE(in, out);
}

/* What a recording reads first and writes later is written by its launches. */
static void read_and_then_written(void) {
    pvg_array *a = filled(N, 1);
    CHECK_OK(pvg_graph_begin(0));
    pvg_array *twice = MADE(pvg_add(a, a));
    refill(a, 7);
    pvg_graph *graph = MADE(pvg_graph_end(0));
    const int64_t version = pvg_array_version(a);
    use(first);
    CHECK_OK(pvg_graph_launch(graph));
    CHECK(pvg_array_version(a) != version);
    use(second);
    pvg_array *read = MADE(pvg_add(a, a));
    CHECK_ALL(read, 14);
    CHECK_ALL(twice, 2);
    use(NULL);
    CHECK_OK(pvg_graph_release(graph));
    RELEASE(a, twice, read);
}

/* An array of the graph is released while a stream still reads it: the next launch waits. */
static void released_while_it_is_read(void) {
    pvg_array *in = filled(N, 4);
    CHECK_OK(pvg_graph_begin(0));
    pvg_array *result = MADE(pvg_add(in, in));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    CHECK_OK(pvg_graph_launch(graph));
    use(first);
    pvg_array *read = MADE(pvg_add(result, result));
    RELEASE(result);
    use(second);
    refill(in, 100);
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_OK(pvg_stream_synchronize(second));
    CHECK_ALL(read, 16);
    use(NULL);
    CHECK_OK(pvg_graph_release(graph));
    RELEASE(in, read);
}

static void a_release_waits_for_launches(void) {
    int done = 0;
    pvg_array *a = filled(N, 1);
    pvg_event *event = MADE(pvg_event_create(0));
    CHECK_OK(pvg_graph_begin(0));
    MADE(pvg_binary(PVG_ADD, a, a, a));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    use(first);
    CHECK_OK(pvg_graph_launch(graph));
    use(NULL);
    CHECK_OK(pvg_event_record(event, first));
    CHECK_OK(pvg_graph_release(graph));
    CHECK_OK(pvg_event_query(event, &done));
    CHECK_EQUAL(done, 1);
    CHECK_OK(pvg_event_release(event));
    RELEASE(a);
}

/* ---- Refusals and failures ------------------------------------------------------------------- */

static void what_cannot_be_recorded(void) {
    static float host[N];
    static float large[1 << 19];
    int64_t one[3] = {1, 1, 1};
    double milliseconds;
    pvg_array *a = filled(N, 1), *b = filled(1 << 19, 1), *c = filled(N, 0);
    pvg_event *event = MADE(pvg_event_create(0));
    CHECK_OK(pvg_graph_begin(0));
    pvg_graph *other = MADE(pvg_graph_end(0));
    CHECK_OK(pvg_graph_begin(0));
    MADE(pvg_binary(PVG_ADD, a, a, a));
    pvg_stream *own = pvg_stream_current(0);
    REFUSED(pvg_graph_begin(0));
    REFUSED(pvg_graph_launch(other));
    REFUSED(pvg_copy_to_host(a, host, NULL));
    REFUSED(pvg_copy_to_host(b, large, NULL));
    REFUSED(pvg_copy_from_host(a, host, NULL));
    REFUSED(pvg_copy_from_host(b, large, NULL));
    REFUSED(pvg_synchronize(0));
    REFUSED(pvg_empty_cache(0));
    REFUSED(pvg_stream_synchronize(own));
    REFUSED(pvg_stream_release(own));
    REFUSED(pvg_stream_set_current(first, 0));
    REFUSED(pvg_stream_set_current(NULL, 0));
    REFUSED(pvg_event_record(event, own));
    REFUSED(pvg_stream_wait_event(own, event));
    REFUSED(pvg_learn(PVG_LESSON_SIGMOID, one, one, a, NULL, NULL, c, 1, &milliseconds, one));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_add(a, b)); /* shapes: an error like any other */
    CHECK_OK(pvg_stream_synchronize(first));    /* other streams may be waited for */
    CHECK_OK(pvg_set_option(PVG_OPTION_SYNC, 1));
    MADE(pvg_binary(PVG_ADD, a, a, a));
    CHECK_OK(pvg_set_option(PVG_OPTION_SYNC, 0));
    pvg_graph *graph = MADE(pvg_graph_end(0)); /* intact */
    CHECK_OK(pvg_set_option(PVG_OPTION_SYNC, 1));
    const int64_t waits = pvg_counter(PVG_COUNT_WAITS);
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_EQUAL(pvg_counter(PVG_COUNT_WAITS), waits + 1);
    CHECK_OK(pvg_set_option(PVG_OPTION_SYNC, 0));
    CHECK_ALL(a, 4);
    CHECK_OK(pvg_graph_release(graph));
    CHECK_OK(pvg_graph_release(other));
    CHECK_OK(pvg_event_release(event));
    RELEASE(a, b, c);
}

static void handles_that_are_none(void) {
    char nothing[64] = "";
    CHECK_NULL(PVG_ERROR_VALUE, pvg_graph_end(0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_graph_end(-1));
    CHECK_STATUS(pvg_graph_begin(1000), PVG_ERROR_UNAVAILABLE);
    CHECK_STATUS(pvg_graph_begin(-1), PVG_ERROR_UNAVAILABLE);
    CHECK_STATUS(pvg_graph_launch(NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_graph_launch((pvg_graph *)nothing), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_graph_release((pvg_graph *)nothing), PVG_ERROR_VALUE);
    CHECK_OK(pvg_graph_release(NULL));
    CHECK_OK(pvg_graph_begin(0));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    CHECK_OK(pvg_graph_release(graph));
    CHECK_STATUS(pvg_graph_release(graph), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_graph_launch(graph), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_graph_drop(&graph), PVG_ERROR_VALUE);
    CHECK(graph == NULL);
    CHECK_STATUS(pvg_graph_drop(NULL), PVG_ERROR_VALUE);
    CHECK_OK(pvg_graph_begin(0));
    graph = MADE(pvg_graph_end(0));
    pvg_graph *stale = graph;
    CHECK_STATUS(pvg_graph_launch(NULL), PVG_ERROR_VALUE);
    CHECK_EQUAL(pvg_graph_drop(&graph), PVG_OK);
    CHECK_EQUAL(pvg_graph_drop(&graph), PVG_OK);
    CHECK(graph == NULL);
    CHECK_EQUAL(pvg_last_status(), PVG_ERROR_VALUE); /* of the call before */
    CHECK_STATUS(pvg_graph_launch(stale), PVG_ERROR_VALUE);
}

#ifdef PVG_TEST_SIMULATOR
/* Each failure of a kind in turn, until a recording goes through: nothing is left behind, the next
 * recording works, and nothing of a failed one runs. */
static void failures_of(const char *kind) {
    const int64_t shape[2] = {SIDE, SIDE};
    pvg_array *x = random_floats(2, shape), *w = random_floats(2, shape);
    pvg_array *eager[RESULTS], *replayed[RESULTS];
    make_results(eager), make_results(replayed);
    CHECK(step(x, w, eager));
    CHECK_OK(pvg_empty_cache(0));
    const int64_t reserved = memory_value(PVG_MEMORY_RESERVED);
    const int64_t used = memory_value(PVG_MEMORY_USED), blocks = memory_value(PVG_MEMORY_BLOCKS);
    const long long streams = pvg_sim_count("live_streams");
    int failures = 0;
    for (pvg_graph *graph = NULL; !graph; failures += !graph) {
        pvg_sim_fail(kind, failures + 1);
        int begun = pvg_graph_begin(0) == PVG_OK, done = begun && step(x, w, replayed);
        if (begun) graph = pvg_graph_end(0);
        pvg_sim_fail(kind, 0);
        if (begun && !done) CHECK(!graph);
        if (graph) {
            CHECK_OK(pvg_graph_launch(graph));
            check_same(replayed, eager);
            CHECK_OK(pvg_graph_release(graph));
        } else {
            CHECK(pvg_last_status() >= PVG_ERROR_MEMORY);
        }
        CHECK_OK(pvg_empty_cache(0));
        CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), reserved);
        CHECK_EQUAL(memory_value(PVG_MEMORY_USED), used);
        CHECK_EQUAL(memory_value(PVG_MEMORY_BLOCKS), blocks);
        CHECK_EQUAL(pvg_sim_count("live_streams"), streams);
        CHECK_EQUAL(pvg_sim_count("live_graphs"), 0);
        if (failures > 100) break;
    }
    CHECK(failures >= 1 && failures < 100);
    RELEASE(x, w);
    for (int i = 0; i < RESULTS; i++) RELEASE(eager[i], replayed[i]);
}
static void failures_while_recording(void) {
    failures_of("launch"), failures_of("stream"), failures_of("graph");
}

static void failing_launches(void) {
    pvg_array *a = filled(N, 1);
    CHECK_OK(pvg_graph_begin(0));
    MADE(pvg_binary(PVG_ADD, a, a, a));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    pvg_sim_fail("graph", 1);
    CHECK_STATUS(pvg_graph_launch(graph), PVG_ERROR_MEMORY);
    CHECK_ALL(a, 1);
    use(first);
    pvg_sim_fail("event", 1); /* the wait for the stream that filled it */
    CHECK_STATUS(pvg_graph_launch(graph), PVG_ERROR_CUDA);
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_ALL(a, 2);
    use(NULL);
    CHECK_OK(pvg_graph_release(graph));
    RELEASE(a);
}
#endif

/* ---- Threads --------------------------------------------------------------------------------- */

typedef struct {
    pvg_array *in, *recording;
    pvg_stream *recorded_on;
    double seen;
    int failures;
} Other;

static pthread_barrier_t together;

/* Works as ever while another thread records: even waits for the device. */
static void *work_beside(void *argument) {
    Other *o = argument;
    float values[N];
    pthread_barrier_wait(&together); /* the other one records */
    o->failures += pvg_synchronize(0) != PVG_OK || pvg_empty_cache(0) != PVG_OK;
    for (int i = 0; i < 20; i++) {
        pvg_array *b = pvg_add(o->in, o->in), *c = b ? pvg_add(b, b) : NULL;
        o->failures += !c || pvg_copy_to_host(c, values, NULL) != PVG_OK;
        o->seen += values[N - 1];
        o->failures += pvg_array_release(b) != PVG_OK || pvg_array_release(c) != PVG_OK;
    }
    /* What the recording makes has no values yet; its stream is its own. */
    pvg_array *early = pvg_add(o->recording, o->recording);
    o->failures += early || !strstr(pvg_last_error(), "recording a graph: ");
    o->failures += pvg_stream_set_current(o->recorded_on, 0) != PVG_ERROR_VALUE;
    o->failures += pvg_stream_synchronize(o->recorded_on) != PVG_ERROR_VALUE;
    o->failures += pvg_graph_end(0) != NULL;
    pvg_array *out = pvg_array_empty(0, PVG_FLOAT32, SHAPE(N)); /* and a recording of its own */
    o->failures += pvg_graph_begin(0) != PVG_OK || !pvg_binary(PVG_ADD, o->in, o->in, out);
    o->failures += pvg_add(o->recording, o->in) != NULL;
    pvg_graph *graph = pvg_graph_end(0);
    o->failures += pvg_graph_launch(graph) != PVG_OK ||
                   pvg_copy_to_host(out, values, NULL) != PVG_OK || !(values[0] == 6);
    o->failures += pvg_graph_release(graph) != PVG_OK || pvg_array_release(out) != PVG_OK;
    pthread_barrier_wait(&together);
    return NULL;
}

static void two_threads(void) {
    Other other = {filled(N, 3), NULL, NULL, 0, 0};
    pthread_t thread;
    CHECK_EQUAL(pthread_barrier_init(&together, NULL, 2), 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, work_beside, &other), 0);
    pvg_array *a = filled(N, 1);
    CHECK_OK(pvg_graph_begin(0));
    MADE(pvg_binary(PVG_ADD, a, a, a));
    other.recording = MADE(pvg_add(a, a)), other.recorded_on = pvg_stream_current(0);
    pthread_barrier_wait(&together);
    for (int i = 0; i < 10; i++) {
        pvg_array *t = MADE(pvg_add(a, a));
        MADE(pvg_binary(PVG_SUBTRACT, t, a, a));
        RELEASE(t);
    }
    pthread_barrier_wait(&together);
    pvg_graph *graph = MADE(pvg_graph_end(0));
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(other.failures, 0);
    CHECK_CLOSE(other.seen, 20 * 12, 0);
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_ALL(a, 2);
    CHECK_ALL(other.recording, 4);
    CHECK_OK(pvg_graph_release(graph));
    CHECK_EQUAL(pthread_barrier_destroy(&together), 0);
    RELEASE(a, other.in, other.recording);
}

static void every_section(void) {
    RUN(the_same_bits_as_the_calls);
    RUN(nothing_runs_before_a_launch);
    RUN(nothing_recorded);
    RUN(one_graph_after_another);
    RUN(launches_wait_and_are_waited_for);
    RUN(read_and_then_written);
    RUN(released_while_it_is_read);
    RUN(a_release_waits_for_launches);
    RUN(what_cannot_be_recorded);
    RUN(handles_that_are_none);
    RUN(two_threads);
}

int main(void) {
    begin("test_graph");
    make_streams();
    run_in_both_modes(every_section);
#ifdef PVG_TEST_SIMULATOR
    RUN(failures_while_recording);
    RUN(failing_launches);
#endif
    release_streams();
    return finish();
}
