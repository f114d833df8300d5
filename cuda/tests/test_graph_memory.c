/* The memory of graphs: that of a recording is nobody else's as long as the graph or an array of it
 * lives, and comes back afterwards; operands from elsewhere live as long as the graph. Without
 * memory there is no graph, and nothing is left behind. */
#include "streams.h"

enum { N = 3000 };

/* Whether freed memory is handed out again without a driver call. */
static int is_pooled(void) {
    const char *allocator = getenv("PVG_TEST_ALLOCATOR");
    return !allocator || strcmp(allocator, "pool") == 0;
}

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

/* An array without contents where a temporary was before: launches write to it. */
static void the_memory_of_a_temporary(void) {
    pvg_array *in = filled(N, 3), *out = filled(N, 0);
    CHECK_OK(pvg_graph_begin(0));
    pvg_array *twice = MADE(pvg_add(in, in));
    MADE(pvg_binary(PVG_ADD, twice, in, out));
    void *const memory = pvg_array_data(twice);
    RELEASE(twice);
    pvg_array *later = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(N)));
    CHECK(pvg_array_data(later) == memory);
    pvg_graph *graph = MADE(pvg_graph_end(0));
    use(first);
    refill(later, -1);
    const int64_t version = pvg_array_version(later);
    use(second);
    CHECK_OK(pvg_graph_launch(graph));
    CHECK(pvg_array_version(later) != version);
    use(first);
    CHECK_ALL(later, 6);
    use(NULL);
    CHECK_OK(pvg_graph_release(graph));
    RELEASE(in, out, later);
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

static void every_section(void) {
    RUN(read_after_the_graph);
    RUN(its_memory_is_nobody_elses);
    RUN(its_memory_comes_back);
    RUN(arrays_of_a_graph);
    RUN(the_memory_of_a_temporary);
    RUN(operands_are_kept);
    RUN(releases_while_recording);
    RUN(out_of_memory);
    RUN(out_of_memory_anywhere);
}

int main(void) {
    begin("test_graph_memory");
    make_streams();
    run_in_both_modes(every_section);
    release_streams();
    return finish();
}
