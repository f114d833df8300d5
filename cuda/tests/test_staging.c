/* Large copies, which go through pinned slots: every length around pieces, chunks and the ring of
 * slots, at odd addresses; sources that change at once; several threads; orders between streams;
 * and, on the simulated card, calls that fail. */
#include "check.h"

#include <pthread.h>

enum { MIB = 1 << 20, GUARD = 5000, MOST = 40 * MIB, SLOTS = 12 };

/* SLOTS: of each direction, in staging.cu. */
static unsigned char *source, *target; /* MOST + 2 * GUARD bytes each */

/* Bytes that are different at any two places that a mistake could exchange. */
static void fill_source(uint64_t seed) {
    uint64_t state = seed;
    for (size_t at = 0; at + 8 <= MOST + 2 * GUARD; at += 8) {
        uint64_t bits = random_bits(&state);
        memcpy(source + at, &bits, 8);
    }
}

static pvg_array *bytes_on_device(int64_t n) {
    return MADE(pvg_array_empty(0, PVG_UINT8, SHAPE(n)));
}

static int all_equal(const unsigned char *bytes, int value, int64_t n) {
    return n == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, (size_t)n - 1) == 0);
}

/* There and back; nothing is written around the target. */
static void round_trip(int64_t n, int64_t from, int64_t to) {
    pvg_array *a = bytes_on_device(n);
    CHECK_OK(pvg_copy_from_host(a, source + from, NULL));
    memset(target, 0xA5, (size_t)(n + 2 * GUARD));
    CHECK_OK(pvg_copy_to_host(a, target + to, NULL));
    CHECK(memcmp(target + to, source + from, (size_t)n) == 0);
    CHECK(all_equal(target, 0xA5, to) && all_equal(target + to + n, 0xA5, 2 * GUARD - to));
    RELEASE(a);
}

static void lengths_and_addresses(void) {
    static const int64_t lengths[] = {MIB - 1,      MIB,          MIB + 1,      MIB + 131073,
                                      2 * MIB - 16, 3 * MIB + 7,  12 * MIB,     12 * MIB + 1,
                                      16 * MIB,     16 * MIB + 1, 17 * MIB - 5, 33 * MIB + 4099};
    static const int64_t offsets[] = {0, 1, 16, 4095, 4096};
    fill_source(1);
    for (size_t i = 0; i < COUNT(lengths); i++)
        round_trip(lengths[i], offsets[i % COUNT(offsets)], offsets[(i + 2) % COUNT(offsets)]);
    uint64_t state = 2;
    for (int i = 0; i < 8; i++)
        round_trip(random_integer(&state, MIB / 2, 5 * MIB), random_integer(&state, 0, GUARD),
                   random_integer(&state, 0, GUARD));
}

/* The source is the caller's again when the call returns. */
static void sources_that_change(void) {
    enum { ARRAYS = 5, N = 7 * MIB + 3 };
    pvg_array *arrays[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        arrays[i] = bytes_on_device(N);
        fill_source(10 + (uint64_t)i);
        CHECK_OK(pvg_copy_from_host(arrays[i], source, NULL));
        memset(source, 0xEE, N);
    }
    for (int i = 0; i < ARRAYS; i++) {
        fill_source(10 + (uint64_t)i);
        CHECK_OK(pvg_copy_to_host(arrays[i], target, NULL));
        CHECK(memcmp(source, target, N) == 0);
        RELEASE(arrays[i]);
    }
}

/* Layouts that are dense in another order of the axes, and views with gaps on the device. */
static void layouts(void) {
    enum { ROWS = 1030, COLUMNS = 1027 };
    const int64_t transposed[2] = {4, 4 * ROWS}, start[2] = {0, 1}, step[2] = {1, 1};
    const int64_t length[2] = {ROWS, COLUMNS - 1};
    fill_source(3);
    pvg_array *a = MADE(pvg_array_empty(0, PVG_INT32, SHAPE(ROWS, COLUMNS)));
    CHECK_OK(pvg_copy_from_host(a, source, transposed));
    CHECK_OK(pvg_copy_to_host(a, target, NULL));
    const int32_t *columns = (const int32_t *)source, *rows = (const int32_t *)target;
    int64_t wrong = 0;
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLUMNS; j++)
            wrong += rows[i * COLUMNS + j] != columns[j * ROWS + i];
    CHECK_EQUAL(wrong, 0);
    CHECK_OK(pvg_copy_to_host(a, target, transposed));
    CHECK(memcmp(source, target, 4 * ROWS * COLUMNS) == 0);
    pvg_array *part = MADE(pvg_slice(a, start, step, length));
    CHECK_OK(pvg_copy_to_host(part, target, NULL));
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 1; j < COLUMNS; j++)
            wrong += rows[i * (COLUMNS - 1) + j - 1] != columns[j * ROWS + i];
    CHECK_EQUAL(wrong, 0);
    RELEASE(a, part);
}

/* A copy waits for what other streams do with the array, and they for it. */
static void between_streams(void) {
    enum { N = 3 * MIB + 1 };
    pvg_stream *other = MADE(pvg_stream_create(0));
    pvg_array *a = bytes_on_device(N), *b = bytes_on_device(N);
    for (int64_t round = 1; round < 4; round++) {
        memset(source, (int)round, N);
        CHECK_OK(pvg_copy_from_host(a, source, NULL));
        CHECK_OK(pvg_stream_set_current(other, 0));
        CHECK_OK(pvg_copy(a, b));
        CHECK_OK(pvg_stream_set_current(NULL, 0));
        memset(source, 0x77, N);
        CHECK_OK(pvg_copy_from_host(a, source, NULL)); /* after the copy to b has read it */
        CHECK_OK(pvg_copy_to_host(b, target, NULL));
        CHECK(all_equal(target, (int)round, N));
    }
    CHECK_OK(pvg_stream_release(other));
    RELEASE(a, b);
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { THREADS = 4 };

typedef struct { int index, own_stream, wrong; } Copier;

/* What another thread has at the same place is never the same. */
static void *copy_in_a_thread(void *argument) {
    Copier *work = argument;
    int64_t n = (2 + work->index) * MIB + 13 * work->index;
    unsigned char *values = malloc((size_t)n), *back = malloc((size_t)n);
    pvg_stream *stream = work->own_stream ? pvg_stream_create(0) : NULL;
    pvg_array *a = pvg_array_empty(0, PVG_UINT8, SHAPE(n));
    work->wrong = !values || !back || !a || (work->own_stream && !stream);
    if (stream) work->wrong |= pvg_stream_set_current(stream, 0) != PVG_OK;
    for (int round = 0; round < 4 && !work->wrong; round++) {
        for (int64_t i = 0; i < n; i++)
            values[i] = (unsigned char)(i * 7 + i / 251 + work->index * 50 + round);
        work->wrong |= pvg_copy_from_host(a, values, NULL) != PVG_OK;
        work->wrong |= pvg_copy_to_host(a, back, NULL) != PVG_OK;
        work->wrong |= memcmp(values, back, (size_t)n) != 0;
    }
    work->wrong |= pvg_array_release(a) != PVG_OK || pvg_stream_release(stream) != PVG_OK;
    free(values);
    free(back);
    return NULL;
}

static void several_threads(void) {
    for (int own_stream = 0; own_stream < 2; own_stream++) {
        pthread_t threads[THREADS];
        Copier work[THREADS];
        for (int i = 0; i < THREADS; i++) {
            work[i] = (Copier){i, own_stream, 0};
            CHECK_EQUAL(pthread_create(&threads[i], NULL, copy_in_a_thread, &work[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
            CHECK_EQUAL(work[i].wrong, 0);
        }
    }
}

#ifdef PVG_TEST_SIMULATOR

/* ---- The simulated card ---------------------------------------------------------------------- */

/* Work on streams is recorded and runs late: a slot that is filled again too early shows. */
static void as_late_as_allowed(void) {
    CHECK_EQUAL(pvg_sim_set("deferred", 1), 0);
    fill_source(5);
    round_trip(33 * MIB + 4099, 1, 16);
    round_trip(13 * MIB, 16, 1);
    sources_that_change();
    between_streams();
    CHECK_EQUAL(pvg_sim_set("deferred", getenv("PVG_TEST_SIM_DEFERRED") ? 1 : 0), 0);
}

/* Slots are made for what a copy needs, kept, and given back with the other caches. */
static void slots_are_given_back(void) {
    CHECK_OK(pvg_empty_cache(0));
    int64_t pinned = pvg_sim_count("live_pinned"), events = pvg_sim_count("live_events");
    round_trip(MIB - 1, 0, 0);
    CHECK_EQUAL(pvg_sim_count("live_pinned"), pinned);
    round_trip(2 * MIB, 0, 0);
    int64_t few = pvg_sim_count("live_pinned");
    CHECK(few == pinned + 4 || few == pinned + 5); /* the target may begin within a chunk */
    round_trip(2 * MIB, 0, 0);
    CHECK_EQUAL(pvg_sim_count("live_pinned"), few);
    round_trip(33 * MIB, 0, 0);
    CHECK_EQUAL(pvg_sim_count("live_pinned"), pinned + 2 * SLOTS);
    round_trip(MOST, 0, 0);
    CHECK_EQUAL(pvg_sim_count("live_pinned"), pinned + 2 * SLOTS);
    CHECK_OK(pvg_empty_cache(0));
    CHECK_EQUAL(pvg_sim_count("live_pinned"), pinned);
    CHECK_EQUAL(pvg_sim_count("live_events"), events);
}

/* Both directions, with an upload on its way when the download begins; what it read is gone. */
static int there_and_back(pvg_array *a) {
    size_t n = (size_t)pvg_array_size(a);
    void *values = MADE(malloc(n));
    memcpy(values, source, n);
    int status = pvg_copy_from_host(a, values, NULL);
    free(values);
    return status == PVG_OK ? pvg_copy_to_host(a, target, NULL) : status;
}

/* One call at a time: every third of a kind, which takes turns with chunks and slots. */
static void calls_fail(void) {
    static const char *const kinds[] = {"copy", "event", "pinned"};
    enum { N = 14 * MIB + 5 }; /* more chunks than slots */
    pvg_array *a = bytes_on_device(N);
    fill_source(6);
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        int failures = 0, quiet = 0, k = 1;
        for (; quiet < 2 && k < 200; k += 3) {
            CHECK_OK(pvg_empty_cache(0));
            int64_t pinned = pvg_sim_count("live_pinned"), events = pvg_sim_count("live_events");
            long long calls = pvg_sim_count("pinned_malloc");
            memset(target, 0, N);
            pvg_sim_fail(kinds[kind], k);
            int status = there_and_back(a);
            pvg_sim_fail(kinds[kind], 0);
            int reached = status != PVG_OK || pvg_sim_count("pinned_malloc") - calls < 2 * SLOTS;
            if (status == PVG_OK)
                CHECK(memcmp(source, target, N) == 0);
            else
                CHECK_EQUAL(status, PVG_ERROR_CUDA);
            memset(target, 0x11, N); /* the target is the caller's again, and nobody works on it */
            CHECK_OK(pvg_copy_from_host(a, source, NULL));
            CHECK(all_equal(target, 0x11, N));
            failures += status != PVG_OK;
            quiet = reached ? 0 : quiet + 1;
            CHECK_OK(there_and_back(a)); /* nothing is stuck */
            CHECK(memcmp(source, target, N) == 0);
            CHECK_OK(pvg_empty_cache(0));
            CHECK_EQUAL(pvg_sim_count("live_pinned"), pinned);
            CHECK_EQUAL(pvg_sim_count("live_events"), events);
        }
        CHECK_EQUAL(quiet, 2);
        /* With fewer slots, or none, it works all the same; the copy or event of each chunk is
         * needed, in both directions. */
        CHECK(strcmp(kinds[kind], "pinned") == 0 ? failures == 0 : failures >= 9);
    }
    RELEASE(a);
}

#endif

int main(void) {
    begin("test_staging");
    source = host_memory(PVG_UINT8, MOST + 2 * GUARD);
    target = host_memory(PVG_UINT8, MOST + 2 * GUARD);
    RUN(lengths_and_addresses);
    RUN(sources_that_change);
    RUN(layouts);
    RUN(between_streams);
    RUN(several_threads);
#ifdef PVG_TEST_SIMULATOR
    RUN(as_late_as_allowed);
    RUN(slots_are_given_back);
    RUN(calls_fail);
    pvg_sim_reset();
#endif
    free(source);
    free(target);
    return finish();
}
