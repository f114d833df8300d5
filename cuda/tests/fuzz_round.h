/* What a round of fuzz.c and of fuzz_guided.c is: up to CALLS calls of the kinds below, after each
 * of which the rules hold, and after all of which nothing is left. */
#ifndef PVG_FUZZ_ROUND_H
#define PVG_FUZZ_ROUND_H

#include "fuzz_card.h"
#include "fuzz_layers.h"

enum { CALLS = 80, MODES = 8 };

static void (*const kinds[])(void) = {
    make_array,  make_array,  make_array,    wrap_array,    release_array,  release_array,
    ask_array,   view_array,  view_array,    view_array,    copy_array,     copy_array,
    fill_array,  elementwise, elementwise,   elementwise,   elementwise,    elementwise,
    any_indices, any_keys,    known_indices, known_indices, any_matrices,   known_matrices,
    labelled,    normalised,  exponentials,  bounds,        reduce,         use_windows,
    multiply,    layer,       learning,      attention,     recurrent,      use_stream,
    use_stream,  use_event,   use_graph,     use_settings,  synchronize_it, plan,
    lesson,      share,       ask_names,     paired,        activated};

static void check_between(void) {
    int64_t live = pvg_counter(PVG_COUNT_LIVE_ARRAYS);
    if (live != arrays.count + 1)
        report(__FILE__, __LINE__, "%lld arrays are alive, not %d", (long long)live,
               arrays.count + 1);
    if (!pvg_is_healthy() || pvg_sim_message()[0] != '\0')
        report(__FILE__, __LINE__, "the card is not healthy: %s", pvg_sim_message());
    if (pvg_counter(PVG_COUNT_CANARY_ERRORS) != 0)
        report(__FILE__, __LINE__, "a canary was written to");
}

/* Back to a state in which a round can begin, and nothing is left of the last one. */
static void clean_up(void) {
    static const int64_t defaults[][2] = {{PVG_OPTION_SYNC, 0},
                                          {PVG_OPTION_LAUNCH_LOG, 0},
                                          {PVG_OPTION_DEFAULT_FLOAT, PVG_FLOAT32},
                                          {PVG_OPTION_MATMUL_PRECISION, PVG_PRECISION_FLOAT32},
                                          {PVG_OPTION_MATMUL_KERNEL, PVG_MATMUL_AUTO}};
    bad = fault = right = 0;
    pvg_graph *graph = pvg_graph_end(0);
    if (recording) recording = 0, late_graph_ended(graph);
    synchronize(0);
    if (graph) CHECK_OK(pvg_graph_release(graph));
    while (graphs.count) CHECK_OK(pvg_graph_release(graphs.live[--graphs.count]));
    while (arrays.count) RELEASE(arrays.live[--arrays.count]);
    RELEASE(base);
    CHECK_OK(pvg_stream_set_current(NULL, 0));
    while (events.count) CHECK_OK(pvg_event_release(events.live[--events.count]));
    while (streams.count) CHECK_OK(pvg_stream_release(streams.live[--streams.count]));
    for (size_t i = 0; i < COUNT(defaults); i++)
        CHECK_OK(pvg_set_option((int)defaults[i][0], defaults[i][1]));
    CHECK_OK(pvg_set_memory_limit(0, 0));
    CHECK_EQUAL(deleted, wrapped);
    check_clean();
    CHECK_OK(pvg_empty_cache(0));
    CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), 0);
    CHECK_EQUAL(pvg_sim_count("live_graphs"), 0);
}

/* mode: of MODES, which allocator there is, and whether launches are put off. */
static void begin_round(int64_t mode) {
    static const int allocators[] = {PVG_ALLOCATOR_POOL, PVG_ALLOCATOR_POOL, PVG_ALLOCATOR_DIRECT,
                                     PVG_ALLOCATOR_DEBUG};
    wrapped = deleted = late_count = recording = 0;
    for (size_t i = 0; i < BUFFER; i += sizeof(uint64_t)) {
        const uint64_t bits = i < BUFFER / 2 ? random_bits(&rng) : 0;
        memcpy(buffer + i, &bits, sizeof bits);
    }
    arrays.released = streams.released = events.released = graphs.released = 0;
    CHECK_OK(pvg_set_option(PVG_OPTION_ALLOCATOR, allocators[mode % 4]));
    CHECK_EQUAL(pvg_sim_set("deferred", mode / 4 % 2), 0);
    base = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(BASE)));
    CHECK_OK(pvg_fill(base, PVG_SCALAR_INT, &(int64_t){0}));
}

static void call_any(void) {
    bad = fault = right = early_index = 0;
    while (arrays.count > ARRAYS - 18) {
        pvg_array *oldest = arrays.live[0];
        forget(&arrays, oldest);
        RELEASE(oldest);
    }
    int64_t kind = pick(0, COUNT(kinds) - 1);
    inject();
    kinds[kind]();
    take_back();
    check_between();
}

static void end_round(void) {
    static int64_t streams_before = -1;
    if (check_failures == 0) clean_up();
    if (streams_before < 0) streams_before = pvg_sim_count("live_streams");
    CHECK(pvg_sim_count("live_streams") <= streams_before + OTHERS);
}

/* Before the first round: has the library's own stream for CUDA's default one, which else could
 * take the place of one that was released. */
static void begin_rounds(const char *program) {
    begin(program);
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(1)));
    CHECK_OK(pvg_array_lend(a, NULL));
    RELEASE(a);
}

#endif
