/* Graphs: what is recorded does not run before it is launched; a launch then gives the bits that
 * the calls themselves would give, in order with all other work; the memory of a recording is
 * nobody else's as long as the graph lives, and comes back afterwards.
 *
 * On the simulated card every section also runs with deferred streams, where a missing wait always
 * shows, and every allocation and every launch of a recording is made to fail. */
#include "check.h"

#include <pthread.h>

enum { N = 3000, SIDE = 40 };

static pvg_stream *first, *second;
static uint64_t random_state = 7;

static void use(pvg_stream *stream) { CHECK_OK(pvg_stream_set_current(stream, 0)); }
static pvg_array *filled(int64_t n, double value) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(n)));
    CHECK_OK(pvg_fill(a, PVG_SCALAR_FLOAT, &value));
    return a;
}
static void refill(pvg_array *a, double value) { CHECK_OK(pvg_fill(a, PVG_SCALAR_FLOAT, &value)); }

/* Whether freed memory is handed out again without a driver call. */
static int is_pooled(void) {
    const char *allocator = getenv("PVG_TEST_ALLOCATOR");
    return !allocator || strcmp(allocator, "pool") == 0;
}

static void check_all(int line, const pvg_array *a, float value) {
    float *values = host_copy(a);
    for (int64_t i = 0; i < pvg_array_size(a); i++)
        if (!(values[i] == value)) {
            report(__FILE__, line, "element %d is %g, expected %g", (int)i, (double)values[i],
                   (double)value);
            break;
        }
    free(values);
}
#define CHECK_ALL(array, value) check_all(__LINE__, array, value)

static void check_refused(int line, int status) {
    if (status != PVG_ERROR_VALUE || !strstr(pvg_last_error(), "recording a graph: "))
        report(__FILE__, line, "status %d, \"%s\", instead of a refusal", status, pvg_last_error());
}
#define REFUSED(call) check_refused(__LINE__, call)
#define REFUSED_NULL(call) check_refused(__LINE__, (call) ? PVG_OK : pvg_last_status())

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

/* Its memory goes to other arrays when the graph is gone, but not before a stream has read it. */
static void read_after_the_graph(void) {
    enum { LARGE = 1 << 19 }; /* a size that the pool has no other memory for */
    pvg_array *in = filled(LARGE, 4), *read = filled(LARGE, 0);
    CHECK_OK(pvg_empty_cache(0));
    CHECK_OK(pvg_graph_begin(0));
    pvg_array *result = MADE(pvg_add(in, in));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_OK(pvg_graph_release(graph));
    use(first);
    MADE(pvg_binary(PVG_ADD, result, result, read));
    use(NULL);
    RELEASE(result);
    const int64_t calls = memory_value(PVG_MEMORY_DRIVER_CALLS);
    pvg_array *other = filled(LARGE, -1);
    if (is_pooled()) CHECK_EQUAL(memory_value(PVG_MEMORY_DRIVER_CALLS), calls);
    CHECK_OK(pvg_stream_synchronize(pvg_stream_current(0)));
    CHECK_ALL(read, 16);
    RELEASE(in, read, other);
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

/* ---- Memory ---------------------------------------------------------------------------------- */

/* A graph with temporaries of many sizes: out = 6 in. */
static pvg_graph *with_temporaries(pvg_array *in, pvg_array *out) {
    CHECK_OK(pvg_graph_begin(0));
    for (int i = 1; i <= 6; i++) {
        pvg_array *wide = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(i * 100000)));
        refill(wide, 77);
        pvg_array *sum = MADE(pvg_reduce(PVG_SUM, wide, -1, NULL, 0, NULL));
        RELEASE(wide, sum);
    }
    pvg_array *twice = MADE(pvg_add(in, in));
    pvg_array *four = MADE(pvg_add(twice, twice));
    MADE(pvg_binary(PVG_ADD, twice, four, out));
    RELEASE(twice, four);
    return MADE(pvg_graph_end(0));
}

static void its_memory_is_nobody_elses(void) {
    enum { OTHERS = 8 };
    pvg_array *in = filled(N, 1), *out = filled(N, 0), *others[OTHERS];
    for (int i = 0; i < OTHERS; i++) others[i] = filled(100000 * (i + 1), -1);
    for (int i = 0; i < OTHERS; i++) RELEASE(others[i]); /* cached: not for the recording */
    pvg_graph *graph = with_temporaries(in, out);
    for (int i = 0; i < OTHERS; i++) others[i] = filled(100000 * (i + 1), i);
    CHECK_OK(pvg_empty_cache(0));
    for (int round = 0; round < 2; round++) {
        refill(in, 7 + round);
        CHECK_OK(pvg_graph_launch(graph));
        for (int i = 0; i < OTHERS; i++) CHECK_ALL(others[i], (float)i);
        CHECK_ALL(out, (float)(6 * (7 + round)));
    }
    CHECK_OK(pvg_graph_release(graph));
    for (int i = 0; i < OTHERS; i++) RELEASE(others[i]);
    RELEASE(in, out);
}

static void its_memory_comes_back(void) {
    pvg_array *in = filled(N, 1), *out = filled(N, 0);
    CHECK_OK(pvg_empty_cache(0));
    const int64_t before = memory_value(PVG_MEMORY_RESERVED), used = memory_value(PVG_MEMORY_USED);
    pvg_graph *graph = with_temporaries(in, out);
    CHECK_EQUAL(memory_value(PVG_MEMORY_USED), used); /* temporaries are free within the arena, */
    CHECK_OK(pvg_empty_cache(0));
    const int64_t held = memory_value(PVG_MEMORY_RESERVED); /* but it stays */
    CHECK(held >= before + 600000 * 4);
    CHECK(held <= before + (20 << 20)); /* they had the same memory, one after another */
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_OK(pvg_graph_release(graph));
    CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), held); /* the pool's to hand out: */
    const int64_t calls = memory_value(PVG_MEMORY_DRIVER_CALLS);
    pvg_array *reused = filled(600000, 1);
    if (is_pooled()) CHECK_EQUAL(memory_value(PVG_MEMORY_DRIVER_CALLS), calls);
    RELEASE(reused);
    CHECK_OK(pvg_empty_cache(0));
    CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), before);
    RELEASE(in, out);
}

/* Arrays of the arena keep it, in both orders of release. */
static void arrays_of_a_graph(void) {
    pvg_array *in = filled(N, 2);
    CHECK_OK(pvg_empty_cache(0));
    const int64_t before = memory_value(PVG_MEMORY_RESERVED);
    for (int graph_first = 0; graph_first < 2; graph_first++) {
        CHECK_OK(pvg_graph_begin(0));
        pvg_array *result = MADE(pvg_add(in, in)),
                  *view = MADE(pvg_slice(result, (const int64_t[]){1}, (const int64_t[]){2},
                                         (const int64_t[]){10}));
        pvg_graph *graph = MADE(pvg_graph_end(0));
        CHECK_OK(pvg_graph_launch(graph));
        RELEASE(result);
        if (graph_first) CHECK_OK(pvg_graph_release(graph));
        CHECK_OK(pvg_empty_cache(0));
        CHECK(memory_value(PVG_MEMORY_RESERVED) > before);
        CHECK_ALL(view, 4);
        RELEASE(view);
        if (!graph_first) {
            CHECK_OK(pvg_empty_cache(0));
            CHECK(memory_value(PVG_MEMORY_RESERVED) > before);
            CHECK_OK(pvg_graph_release(graph));
        }
        CHECK_OK(pvg_empty_cache(0));
        CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), before);
    }
    RELEASE(in);
}

/* Operands that the application releases, within the recording and after it, live on. */
static void operands_are_kept(void) {
    pvg_array *out = filled(N, 0), *in = filled(N, 5), *other = filled(N, 6);
    CHECK_OK(pvg_graph_begin(0));
    MADE(pvg_binary(PVG_MULTIPLY, in, other, out));
    RELEASE(in);
    pvg_array *unused = filled(100, 1);
    RELEASE(unused);
    pvg_graph *graph = MADE(pvg_graph_end(0));
    RELEASE(other);
    pvg_array *more = filled(N, -1), *others = filled(N, -1);
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_ALL(out, 30);
    CHECK_OK(pvg_graph_release(graph));
    RELEASE(out, more, others);
}

/* Arrays from elsewhere may come and go while a recording lasts. */
static void releases_while_recording(void) {
    pvg_array *a = filled(N, 1), *b = filled(N, 2), *c = filled(1 << 20, 3);
    use(first);
    pvg_array *d = MADE(pvg_add(a, a));
    use(NULL);
    CHECK_OK(pvg_graph_begin(0));
    RELEASE(b, d, c);
    MADE(pvg_binary(PVG_ADD, a, a, a));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    CHECK_OK(pvg_graph_launch(graph));
    CHECK_ALL(a, 2);
    CHECK_OK(pvg_graph_release(graph));
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
    CHECK_OK(pvg_graph_launch(graph));
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

/* Out of memory: the recording is lost, with the reason; what was made in it lives on. */
static void out_of_memory(void) {
    pvg_array *a = filled(N, 1), *b = filled(1, 1);
    CHECK_OK(pvg_empty_cache(0));
    const int64_t before = memory_value(PVG_MEMORY_RESERVED);
    CHECK_OK(pvg_set_memory_limit(0, before + (8 << 20)));
    CHECK_OK(pvg_graph_begin(0));
    MADE(pvg_binary(PVG_ADD, a, a, a));
    pvg_array *kept = MADE(pvg_add(a, a));
    pvg_array *wide = MADE(pvg_broadcast_to(b, SHAPE(16 << 20)));
    CHECK_NULL(PVG_ERROR_MEMORY, pvg_add(wide, wide));
    RELEASE(wide);
    CHECK_NULL(PVG_ERROR_MEMORY, pvg_graph_end(0));
    CHECK(strstr(pvg_last_error(), "recording a graph: ") != NULL);
    CHECK_EQUAL(pvg_last_error_value(PVG_ERROR_VALUE_REQUESTED), 64 << 20);
    CHECK_OK(pvg_set_memory_limit(0, 0));
    CHECK_ALL(a, 1);
    refill(kept, 9);
    CHECK_ALL(kept, 9);
    RELEASE(kept, b);
    CHECK_OK(pvg_empty_cache(0));
    CHECK(memory_value(PVG_MEMORY_RESERVED) <= before);
    RELEASE(a);
}

/* Memory for none of the results, for one, for two, and so on. */
static void out_of_memory_anywhere(void) {
    enum { CHAIN = 4, LARGE = 1 << 19 };
    pvg_array *in = filled(LARGE, 1);
    CHECK_OK(pvg_empty_cache(0));
    const int64_t before = memory_value(PVG_MEMORY_RESERVED);
    for (int room = 0; room <= CHAIN; room++) {
        pvg_array *chain[CHAIN + 1] = {in};
        int made = 0;
        CHECK_OK(pvg_set_memory_limit(0, before + room * 4 * LARGE));
        CHECK_OK(pvg_graph_begin(0));
        for (; made < CHAIN; made++) {
            chain[made + 1] = pvg_add(chain[made], chain[made]);
            if (!chain[made + 1]) break;
        }
        CHECK_EQUAL(made, room);
        pvg_graph *graph = pvg_graph_end(0);
        if (made < CHAIN) CHECK_NULL(PVG_ERROR_MEMORY, graph);
        CHECK_OK(pvg_set_memory_limit(0, 0));
        if (made == CHAIN) CHECK_OK(pvg_graph_launch(graph));
        if (made == CHAIN) CHECK_ALL(chain[CHAIN], 16);
        CHECK_OK(pvg_graph_release(graph));
        for (int i = 1; i <= made; i++) RELEASE(chain[i]);
        CHECK_OK(pvg_empty_cache(0));
        CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), before);
    }
    RELEASE(in);
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
    RUN(released_while_it_is_read);
    RUN(read_after_the_graph);
    RUN(a_release_waits_for_launches);
    RUN(its_memory_is_nobody_elses);
    RUN(its_memory_comes_back);
    RUN(arrays_of_a_graph);
    RUN(operands_are_kept);
    RUN(releases_while_recording);
    RUN(what_cannot_be_recorded);
    RUN(handles_that_are_none);
    RUN(out_of_memory);
    RUN(out_of_memory_anywhere);
    RUN(two_threads);
}

int main(void) {
    begin("test_graph");
    first = MADE(pvg_stream_create(0));
    second = MADE(pvg_stream_create(0));
    every_section();
#ifdef PVG_TEST_SIMULATOR
    RUN(failures_while_recording);
    RUN(failing_launches);
    CHECK_EQUAL(pvg_sim_set("deferred", 1), 0);
    every_section();
    CHECK_OK(pvg_synchronize(0));
    CHECK_EQUAL(pvg_sim_set("deferred", 0), 0);
#endif
    CHECK_OK(pvg_stream_release(first));
    CHECK_OK(pvg_stream_release(second));
    return finish();
}
