/* Streams: work on several of them is ordered by who wrote and who read an array, never by luck. */
#include "streams.h"

enum { N = 1500 };

#ifdef PVG_TEST_SIMULATOR
/* Two handles that the library cannot know to be one memory: nobody waits, and the reader sees
 * the old values. So in deferred mode the other sections would fail if a wait were missing. */
static void a_missing_wait_is_visible(void) {
    CHECK_EQUAL(pvg_sim_set("deferred", 1), 0);
    pvg_array *memory = filled(N, 1);
    CHECK_OK(pvg_synchronize(0));
    void *data = pvg_array_data(memory);
    pvg_array *written = MADE(pvg_array_wrap(data, 0, PVG_FLOAT32, SHAPE(N), NULL, NULL, NULL));
    pvg_array *read = MADE(pvg_array_wrap(data, 0, PVG_FLOAT32, SHAPE(N), NULL, NULL, NULL));
    use(first);
    refill(written, 2);
    use(second);
    pvg_array *sum = MADE(pvg_add(read, read));
    CHECK_ALL(sum, 2); /* 1 + 1: what `first` has to do is still waiting */
    use(NULL);
    CHECK_OK(pvg_synchronize(0));
    CHECK_ALL(memory, 2);
    RELEASE(written, read, sum, memory);
    CHECK_EQUAL(pvg_sim_set("deferred", 0), 0);
}
#endif

static void read_waits_for_the_writer(void) {
    for (int round = 0; round < 3; round++) {
        use(first);
        pvg_array *a = filled(N, 1);
        refill(a, 2);
        use(second);
        pvg_array *b = MADE(pvg_add(a, a));
        use(NULL);
        pvg_array *c = MADE(pvg_add(b, a));
        CHECK_ALL(c, 6);
        RELEASE(a, b, c);
    }
}

static void write_waits_for_readers(void) {
    use(first);
    pvg_array *a = filled(N, 3);
    use(second);
    pvg_array *b = MADE(pvg_multiply(a, a));
    use(first);
    refill(a, 100); /* must wait for the product on the second stream */
    CHECK_OK(pvg_stream_synchronize(first));
    CHECK_ALL(b, 9);
    CHECK_ALL(a, 100);
    use(second);
    refill(a, 5); /* and the second writer for the first */
    use(first);
    refill(a, 6);
    CHECK_ALL(a, 6);
    use(NULL);
    RELEASE(a, b);
}

/* More readers than a storage has room to remember. */
static void many_readers(void) {
    enum { STREAMS = 9 };
    pvg_stream *streams[STREAMS];
    pvg_array *results[STREAMS];
    pvg_array *a = filled(N, 4);
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = MADE(pvg_stream_create(0));
        use(streams[i]);
        results[i] = MADE(pvg_add(a, a));
    }
    use(NULL);
    refill(a, 50);
    CHECK_OK(pvg_stream_synchronize(pvg_stream_current(0)));
    for (int i = 0; i < STREAMS; i++) {
        CHECK_ALL(results[i], 8);
        RELEASE(results[i]);
        CHECK_OK(pvg_stream_release(streams[i]));
    }
    RELEASE(a);
}

/* The memory of an array that another stream still reads is not handed out before that stream is
 * done. */
static void freed_while_another_stream_reads(void) {
    for (int round = 0; round < 5; round++) {
        use(first);
        pvg_array *a = filled(N, 7);
        use(second);
        pvg_array *b = MADE(pvg_add(a, a));
        pvg_array *c = MADE(pvg_multiply(b, a));
        RELEASE(a);
        use(first);
        pvg_array *reused = filled(N, -1);
        CHECK_OK(pvg_stream_synchronize(first));
        CHECK_ALL(c, 98);
        CHECK_ALL(reused, -1);
        use(NULL);
        RELEASE(b, c, reused);
    }
}

/* A temporary made and released on one stream while its values are still to be computed. */
static void released_before_it_ran(void) {
    use(first);
    pvg_array *a = filled(N, 1), *sum = filled(N, 0);
    for (int i = 0; i < 20; i++) {
        pvg_array *twice = MADE(pvg_add(a, a));
        MADE(pvg_binary(PVG_ADD, sum, twice, sum));
        RELEASE(twice);
    }
    RELEASE(a);
    CHECK_ALL(sum, 40);
    RELEASE(sum);
    use(NULL);
}

static void streams_of_somebody_else(void) {
    void *handle = pvg_stream_handle(first);
    CHECK(handle != NULL);
    pvg_stream *wrapped = MADE(pvg_stream_wrap(handle, 0));
    CHECK(pvg_stream_handle(wrapped) == handle);
    use(wrapped);
    CHECK(pvg_stream_current(0) == wrapped);
    pvg_array *a = filled(N, 2);
    use(second);
    pvg_array *b = MADE(pvg_add(a, a));
    CHECK_ALL(b, 4);
    CHECK_OK(pvg_stream_release(wrapped));
    use(first); /* still its owner's, still good */
    refill(a, 3);
    CHECK_ALL(a, 3);
    use(NULL);
    RELEASE(a, b);
}

static void release_with_work_pending(void) {
    pvg_stream *stream = MADE(pvg_stream_create(0)), *usual = pvg_stream_current(0);
    use(stream);
    CHECK(pvg_stream_current(0) == stream);
    pvg_array *a = filled(N, 1);
    for (int i = 0; i < 10; i++) MADE(pvg_binary(PVG_ADD, a, a, a));
    CHECK_OK(pvg_stream_release(stream));
    CHECK(pvg_stream_current(0) == usual);
    pvg_array *b = MADE(pvg_add(a, a));
    CHECK_ALL(b, 2048);
    RELEASE(a); /* memory that was allocated for a stream which is no more */
    RELEASE(b);
    CHECK_STATUS(pvg_stream_synchronize(stream), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_stream_release(stream), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_stream_set_current(stream, 0), PVG_ERROR_VALUE);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_stream_handle(stream));
    CHECK_OK(pvg_stream_release(NULL));
}

static void events(void) {
    int done = -1;
    double milliseconds = -1;
    pvg_event *start = MADE(pvg_event_create(0)), *stop = MADE(pvg_event_create(0));
    CHECK_OK(pvg_event_record(start, first));
    use(first);
    pvg_array *a = filled(N, 1);
    for (int i = 0; i < 4; i++) MADE(pvg_binary(PVG_ADD, a, a, a));
    CHECK_OK(pvg_event_record(stop, first));
    CHECK_OK(pvg_stream_wait_event(second, stop));
    CHECK_OK(pvg_event_query(stop, &done));
    CHECK(done == 0 || done == 1);
    CHECK_OK(pvg_event_synchronize(stop));
    CHECK_OK(pvg_event_query(stop, &done));
    CHECK_EQUAL(done, 1);
    CHECK_OK(pvg_event_elapsed(start, stop, &milliseconds));
    CHECK(milliseconds >= 0 && milliseconds < 60000);
    CHECK_ALL(a, 16);
    RELEASE(a);
    use(NULL);
    CHECK_STATUS(pvg_event_elapsed(start, stop, NULL), PVG_ERROR_VALUE);
    pvg_event *never = MADE(pvg_event_create(0));
    CHECK_STATUS(pvg_event_elapsed(never, stop, &milliseconds), PVG_ERROR_VALUE);
    CHECK(strstr(pvg_last_error(), "start event was never recorded"));
    CHECK_STATUS(pvg_event_elapsed(start, never, &milliseconds), PVG_ERROR_VALUE);
    CHECK(strstr(pvg_last_error(), "stop event was never recorded"));
    CHECK_OK(pvg_event_release(never));
    never = MADE(pvg_event_create(0)); /* a handle that was used before begins anew */
    CHECK_OK(pvg_event_record(never, first));
    CHECK_OK(pvg_event_release(never));
    never = MADE(pvg_event_create(0));
    CHECK_STATUS(pvg_event_elapsed(never, stop, &milliseconds), PVG_ERROR_VALUE);
    CHECK_OK(pvg_event_release(never));
    CHECK_STATUS(pvg_event_query(stop, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_event_record(NULL, first), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_event_record(stop, NULL), PVG_ERROR_VALUE);
    CHECK_OK(pvg_event_release(start));
    CHECK_OK(pvg_event_release(stop));
    CHECK_OK(pvg_event_release(NULL));
}

static void dropped(void) {
    pvg_stream *stream = MADE(pvg_stream_create(0)), *usual = pvg_stream_current(0);
    pvg_event *event = MADE(pvg_event_create(0));
    pvg_stream *stale_stream = stream;
    pvg_event *stale_event = event;
    use(stream);
    CHECK_STATUS(pvg_event_record(event, NULL), PVG_ERROR_VALUE);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(pvg_stream_drop(&stream), PVG_OK);
        CHECK_EQUAL(pvg_event_drop(&event), PVG_OK);
        CHECK(!stream && !event);
        CHECK_EQUAL(pvg_last_status(), PVG_ERROR_VALUE); /* of the call before */
        CHECK(strstr(pvg_last_error(), "not a stream") != NULL);
    }
    CHECK(pvg_stream_current(0) == usual);
    CHECK_STATUS(pvg_stream_drop(&stale_stream), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_event_drop(&stale_event), PVG_ERROR_VALUE);
    CHECK(!stale_stream && !stale_event);
    CHECK_STATUS(pvg_stream_drop(NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_event_drop(NULL), PVG_ERROR_VALUE);
}

/* The order of two handles on one memory, made by hand with an event. */
static void waiting_for_an_event(void) {
    pvg_array *memory = filled(N, 1);
    CHECK_OK(pvg_synchronize(0));
    pvg_array *same =
        MADE(pvg_array_wrap(pvg_array_data(memory), 0, PVG_FLOAT32, SHAPE(N), NULL, NULL, NULL));
    pvg_event *event = MADE(pvg_event_create(0));
    use(first);
    refill(memory, 5);
    CHECK_OK(pvg_event_record(event, first));
    CHECK_OK(pvg_stream_wait_event(second, event));
    use(second);
    pvg_array *sum = MADE(pvg_add(same, same));
    CHECK_ALL(sum, 10);
    use(NULL);
    CHECK_OK(pvg_event_release(event));
    RELEASE(sum, same);
    CHECK_OK(pvg_synchronize(0));
    RELEASE(memory);
}

static void every_section(void) {
    RUN(read_waits_for_the_writer);
    RUN(write_waits_for_readers);
    RUN(many_readers);
    RUN(freed_while_another_stream_reads);
    RUN(released_before_it_ran);
    RUN(streams_of_somebody_else);
    RUN(release_with_work_pending);
    RUN(dropped);
    RUN(events);
    RUN(waiting_for_an_event);
}

int main(void) {
    begin("test_stream");
    make_streams();
    run_in_both_modes(every_section);
#ifdef PVG_TEST_SIMULATOR
    RUN(a_missing_wait_is_visible);
#endif
    release_streams();
    return finish();
}
