/* Random calls of the C interface on the simulated card, with handles and numbers that are right,
 * wrong, released or NULL, and with injected faults. After each call the rules of the header hold:
 *
 * - a failure has a status that the arguments explain, and a message; a success has neither;
 * - a handle that is none of ours, or not any more, is refused; `out` itself comes back;
 * - as many arrays are alive as were given and not released, and the card is healthy.
 *
 * What is found out late has to be what a call of the round can have caused (fuzz_late.h). After
 * each round nothing is left. Rounds run in child processes. One that fails or dies is run
 * again without each of its calls in turn, and what has to stay is printed:
 *
 *     fuzz SECONDS [SEED]              until the time is up or something is wrong
 *     fuzz replay SEED ROUND [FIRST]   one round, call by call; or those from FIRST on
 *
 * A call's numbers follow from the seed, the round and its place, whatever came before. */
#define _GNU_SOURCE
#include "fuzz_card.h"
#include "fuzz_layers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 80, BATCH = 60 }; /* of a round; rounds of a child process */

typedef struct {
    int64_t round;
    int calls;
    char skipped[CALLS];
} Shared;

static Shared *shared;
static void (*const kinds[])(void) = {
    make_array,  make_array,  make_array,    wrap_array,    release_array,  release_array,
    ask_array,   view_array,  view_array,    view_array,    copy_array,     copy_array,
    fill_array,  elementwise, elementwise,   elementwise,   elementwise,    elementwise,
    any_indices, any_keys,    known_indices, known_indices, any_matrices,   known_matrices,
    labelled,    normalised,  exponentials,  bounds,        reduce,         use_windows,
    multiply,    layer,       learning,      attention,     recurrent,      use_stream,
    use_stream,  use_event,   use_graph,     use_settings,  synchronize_it, plan,
    lesson,      share,       ask_names,     paired,        activated};

/* ---- Rounds ---------------------------------------------------------------------------------- */

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

static void run_round(uint64_t seed, int64_t round) {
    static int64_t streams_before = -1;
    rng = seed * 1000003 + (uint64_t)round;
    wrapped = deleted = late_count = recording = 0;
    for (size_t i = 0; i < BUFFER; i += sizeof(uint64_t)) {
        const uint64_t bits = i < BUFFER / 2 ? random_bits(&rng) : 0;
        memcpy(buffer + i, &bits, sizeof bits);
    }
    arrays.released = streams.released = events.released = graphs.released = 0;
    static const int modes[] = {PVG_ALLOCATOR_POOL, PVG_ALLOCATOR_POOL, PVG_ALLOCATOR_DIRECT,
                                PVG_ALLOCATOR_DEBUG};
    CHECK_OK(pvg_set_option(PVG_OPTION_ALLOCATOR, modes[round % 4]));
    CHECK_EQUAL(pvg_sim_set("deferred", round / 4 % 2), 0);
    base = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(BASE)));
    CHECK_OK(pvg_fill(base, PVG_SCALAR_INT, &(int64_t){0}));
    for (int i = 0; i < CALLS && check_failures == 0; i++) {
        if (shared->skipped[i]) continue;
        rng = (seed * 1000003 + (uint64_t)round) * 1000003 + (uint64_t)i;
        bad = fault = right = early_index = 0;
        if (tracing) fprintf(stderr, "%d:\n", i);
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
        shared->calls++;
    }
    if (check_failures == 0) clean_up();
    if (streams_before < 0) streams_before = pvg_sim_count("live_streams");
    CHECK(pvg_sim_count("live_streams") <= streams_before + OTHERS);
}

/* Runs rounds in a child process; whether all was well. */
static int in_child(uint64_t seed, int64_t first, int64_t count, int trace) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(300);
        tracing = trace;
        if (trace < 0) {
            int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, 1), dup2(nowhere, 2);
            tracing = 0;
        }
        begin("fuzz");
        /* Has the library's own stream for CUDA's default one, which else could take the place of
         * one that was released. */
        pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(1)));
        CHECK_OK(pvg_array_lend(a, NULL));
        RELEASE(a);
        for (int64_t i = 0; i < count && check_failures == 0; i++) {
            shared->round = first + i;
            run_round(seed, first + i);
        }
        _exit(check_failures != 0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) exit(2);
    if (WIFSIGNALED(status) && trace >= 0)
        fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    return status == 0;
}

/* The calls of a round without which it is right again, run aloud. */
static void explain(uint64_t seed, int64_t round) {
    if (in_child(seed, round, 1, -1)) {
        printf("round %lld fails only after those before it\n", (long long)round);
        return;
    }
    for (int i = CALLS - 1; i >= 0; i--) {
        shared->skipped[i] = 1;
        if (in_child(seed, round, 1, -1)) shared->skipped[i] = 0;
    }
    printf("what is left of seed %llu, round %lld:\n", (unsigned long long)seed, (long long)round);
    in_child(seed, round, 1, 1);
}

int main(int argc, char **argv) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || argc < 2) return 2;
    if (strcmp(argv[1], "replay") == 0 && argc >= 4) {
        const int64_t last = strtoll(argv[3], NULL, 10);
        const int64_t start = argc > 4 ? strtoll(argv[4], NULL, 10) : last;
        return !in_child(strtoull(argv[2], NULL, 10), start, last - start + 1, 1);
    }
    time_t end = time(NULL) + strtol(argv[1], NULL, 10);
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL) % 1000000;
    int64_t first = 0, calls = 0;
    int well = 1;
    for (; well && time(NULL) < end; first += BATCH) {
        shared->calls = 0;
        well = in_child(seed, first, BATCH, 0);
        calls += shared->calls;
    }
    printf("fuzz: seed %llu: %lld calls%s\n", (unsigned long long)seed, (long long)calls,
           well ? ", nothing wrong" : "");
    if (!well) explain(seed, shared->round);
    return !well;
}
