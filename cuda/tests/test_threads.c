/* Threads: the first use raced by many, mixed operations in parallel with the results of doing
 * them one after another, one array read by all, and arrays made by one thread and released by
 * another. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 12, SIDE = 24 };

typedef struct {
    int index, own_stream, status;
    uint64_t hash;
} Work;

static pvg_array *shared;
static pthread_barrier_t together;

static void run_threads(void *(*function)(void *), Work *work) {
    pthread_t threads[THREADS];
    CHECK_EQUAL(pthread_barrier_init(&together, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, function, &work[i]), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    CHECK_EQUAL(pthread_barrier_destroy(&together), 0);
}

/* ---- The first call of the process ----------------------------------------------------------- */

static void *first_use(void *argument) {
    Work *work = argument;
    int count = 0;
    pthread_barrier_wait(&together);
    work->status = pvg_device_count(&count);
    pvg_array *a = pvg_array_empty(0, PVG_FLOAT32, SHAPE(100));
    if (work->status == PVG_OK && !a) work->status = -1;
    if (pvg_array_release(a) != PVG_OK) work->status = -1;
    return NULL;
}

static void race_to_the_first_use(void) {
    Work work[THREADS] = {{0, 0, 0, 0}};
    run_threads(first_use, work);
    for (int i = 1; i < THREADS; i++) CHECK_EQUAL(work[i].status, work[0].status);
    CHECK(work[0].status == PVG_OK || work[0].status == PVG_ERROR_UNAVAILABLE);
}

/* ---- Mixed operations ------------------------------------------------------------------------ */

static uint64_t add_to_hash(uint64_t hash, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return hash;
}

/* Arrays made by a round, released together; a failure shows as a hash that is not the serial
 * one. */
typedef struct {
    pvg_array *arrays[16];
    int count;
} Made;
static pvg_array *keep(Made *made, pvg_array *a) { return made->arrays[made->count++] = a; }

static uint64_t one_round(uint64_t *state, uint64_t hash) {
    float values[SIDE * SIDE], results[SIDE * SIDE];
    Made made = {{NULL}, 0};
    for (int i = 0; i < SIDE * SIDE; i++) values[i] = (float)random_real(state, -1, 1);
    const double factor = random_real(state, 0.5, 2);
    const int64_t rows = random_integer(state, 1, SIDE), shape[2] = {rows, SIDE};
    pvg_array *a = keep(&made, pvg_array_empty(0, PVG_FLOAT32, 2, shape));
    if (pvg_copy_from_host(a, values, NULL) != PVG_OK) return 0;
    pvg_array *b = keep(&made, pvg_matmul(a, shared, PVG_PRECISION_DEFAULT, NULL));
    pvg_array *c =
        keep(&made, pvg_binary_scalar(PVG_MULTIPLY, b, PVG_SCALAR_FLOAT, &factor, 1, NULL));
    pvg_array *d =
        keep(&made, pvg_dense(c, shared, NULL, PVG_SIGMOID, PVG_PRECISION_DEFAULT, NULL, NULL));
    pvg_array *e = keep(&made, pvg_permute(d, ((const int[]){1, 0})));
    pvg_array *f = keep(&made, pvg_contiguous(e));
    pvg_array *g = keep(&made, pvg_reduce(PVG_SUM, f, AXES(1), 0, NULL));
    pvg_array *h = keep(
        &made, pvg_binary(PVG_ADD, d, keep(&made, pvg_reduce(PVG_MAX, a, AXES(1), 1, NULL)), NULL));
    if (pvg_copy_to_host(g, results, NULL) != PVG_OK) return 0;
    hash = add_to_hash(hash, results, SIDE * sizeof *results);
    if (pvg_copy_to_host(h, results, NULL) != PVG_OK) return 0;
    hash = add_to_hash(hash, results, (size_t)(rows * SIDE) * sizeof *results);
    for (int i = 0; i < made.count; i++)
        if (pvg_array_release(made.arrays[i]) != PVG_OK) return 0;
    return hash;
}

static void *mixed_operations(void *argument) {
    Work *work = argument;
    uint64_t state = 1000 + (uint64_t)work->index;
    pvg_stream *stream = work->own_stream ? pvg_stream_create(0) : NULL;
    if (stream && pvg_stream_set_current(stream, 0) != PVG_OK) return NULL;
    work->hash = 0xCBF29CE484222325u;
    for (int round = 0; round < ROUNDS; round++) work->hash = one_round(&state, work->hash);
    if (pvg_stream_release(stream) != PVG_OK) work->hash = 0;
    return NULL;
}

static void equal_to_serial(void) {
    Work serial[THREADS], parallel[THREADS];
    uint64_t state = 95;
    shared = random_array(PVG_FLOAT32, SHAPE(SIDE, SIDE), &state);
    for (int i = 0; i < THREADS; i++) {
        serial[i] = (Work){i, 0, 0, 0};
        mixed_operations(&serial[i]);
        CHECK(serial[i].hash != 0 && (i == 0 || serial[i].hash != serial[i - 1].hash));
    }
    for (int own_stream = 0; own_stream < 2; own_stream++) {
        for (int i = 0; i < THREADS; i++) parallel[i] = (Work){i, own_stream, 0, 0};
        run_threads(mixed_operations, parallel);
        for (int i = 0; i < THREADS; i++) CHECK(parallel[i].hash == serial[i].hash);
    }
    RELEASE(shared);
}

/* ---- From hand to hand ----------------------------------------------------------------------- */

static pvg_array *slots[THREADS];

/* Each thread fills a new array on its own stream; its neighbour reads it on another and
 * releases it. */
static void *pass_on(void *argument) {
    Work *work = argument;
    int64_t size = 700 + 50 * work->index;
    pvg_stream *stream = pvg_stream_create(0);
    int bad = !stream || pvg_stream_set_current(stream, 0) != PVG_OK;
    for (int round = 0; round < ROUNDS; round++) {
        double number = round * THREADS + work->index;
        slots[work->index] = pvg_array_empty(0, PVG_FLOAT64, 1, &size);
        bad |= pvg_fill(slots[work->index], PVG_SCALAR_FLOAT, &number) != PVG_OK;
        pthread_barrier_wait(&together);
        int from = (work->index + 1) % THREADS;
        double total = 0;
        pvg_array *sum = pvg_sum(slots[from]);
        bad |= pvg_array_release(slots[from]) != PVG_OK;
        bad |= pvg_copy_to_host(sum, &total, NULL) != PVG_OK;
        bad |= total != (double)(round * THREADS + from) * (700 + 50 * from);
        bad |= pvg_array_release(sum) != PVG_OK;
        pthread_barrier_wait(&together);
    }
    bad |= pvg_stream_release(stream) != PVG_OK;
    work->status = bad;
    return NULL;
}

static void made_here_released_there(void) {
    Work work[THREADS];
    for (int i = 0; i < THREADS; i++) work[i] = (Work){i, 1, -1, 0};
    run_threads(pass_on, work);
    for (int i = 0; i < THREADS; i++) CHECK_EQUAL(work[i].status, 0);
}

/* ---- Errors that kernels report -------------------------------------------------------------- */

enum { LARGEST = 100 * THREADS };
static int raised[LARGEST]; /* by the index in the error */

/* Note the error of a wait; whether it is one of those that provoke_reports leaves, whole. */
static int is_whole(void) {
    long long index = -1, size = -1;
    const char *text = strstr(pvg_last_error(), "gather: index ");
    if (!text ||
        sscanf(text, "gather: index %lld is out of bounds for axis 0 with size %lld", &index,
               &size) != 2 ||
        index < 100 || index >= LARGEST + 100 || size != index / 100)
        return 0;
    __atomic_fetch_add(&raised[index - 100], 1, __ATOMIC_RELAXED);
    return 1;
}

/* Indices out of range, of another number and size each time, on an own stream. */
static void *provoke_reports(void *argument) {
    Work *work = argument;
    const int axis = 0;
    pvg_stream *stream = pvg_stream_create(0);
    int bad = !stream || pvg_stream_set_current(stream, 0) != PVG_OK;
    pvg_array *a = pvg_array_empty(0, PVG_FLOAT32, SHAPE(work->index + 1)),
              *place = pvg_array_empty(0, PVG_INT64, SHAPE(1, 1));
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t index = 100 * (work->index + 1) + round;
        bad |= pvg_copy_from_host(place, &index, NULL) != PVG_OK && !is_whole();
        pthread_barrier_wait(&together);
        bad |= pvg_array_release(pvg_gather(a, place, 1, &axis, 0, 0)) != PVG_OK;
        bad |= pvg_synchronize(0) != PVG_OK && !is_whole();
    }
    bad |= pvg_array_release(a) != PVG_OK || pvg_array_release(place) != PVG_OK;
    bad |= pvg_stream_release(stream) != PVG_OK;
    work->status = bad;
    return NULL;
}

/* Of reports at the same time one is raised, by one thread, with its own numbers: none is made of
 * two, and none is raised twice. */
static void reports_at_the_same_time(void) {
    Work work[THREADS];
    int all = 0;
    for (int i = 0; i < THREADS; i++) work[i] = (Work){i, 1, -1, 0};
    run_threads(provoke_reports, work);
    if (pvg_synchronize(0) != PVG_OK) CHECK(is_whole());
    for (int i = 0; i < LARGEST; i++) {
        CHECK(raised[i] <= 1);
        all += raised[i];
    }
    CHECK(all >= ROUNDS); /* at least one of each round, which all begin together */
    for (int i = 0; i < THREADS; i++) CHECK_EQUAL(work[i].status, 0);
    CHECK_OK(pvg_synchronize(0));
}

/* ---- The launch log -------------------------------------------------------------------------- */

enum { OFTEN = 200 };

/* The launches of all kernels in the log. */
static int64_t logged(void) {
    int64_t all = 0;
    for (const char *line = pvg_launch_log(); line && *line; line = strchr(line, '\n')) {
        int64_t launches = 0;
        line += *line == '\n';
        if (sscanf(line, "%*s %" SCNd64, &launches) == 1) all += launches;
    }
    return all;
}

static void *launch_often(void *argument) {
    Work *work = argument;
    pvg_array *a = pvg_array_empty(0, PVG_FLOAT32, SHAPE(3));
    pthread_barrier_wait(&together);
    for (int i = 0; i < OFTEN; i++) work->status |= pvg_unary(PVG_NEGATIVE, a, a) != a;
    work->status |= pvg_array_release(a);
    return NULL;
}

/* Reads the log while others write it; every line of it is whole. */
static void *read_often(void *argument) {
    Work *work = argument;
    pthread_barrier_wait(&together);
    for (int i = 0; i < OFTEN / 4; i++) {
        const char *line = pvg_launch_log();
        for (const char *end; line && (end = strchr(line, '\n')); line = end + 1) {
            int64_t launches = 0;
            int read = 0;
            work->status |= sscanf(line, "%*x %" SCNd64 " %n", &launches, &read) != 1 ||
                            launches < 1 || read == 0 || line + read >= end;
        }
        work->status |= !line || *line;
    }
    return NULL;
}
static void *launch_or_read(void *argument) {
    Work *work = argument;
    return work->index ? launch_often(argument) : read_often(argument);
}

/* Threads that launch one kernel at the same time: none of the launches is lost, while the first
 * of them reads the log. */
static void every_launch_is_logged(void) {
    Work work[THREADS] = {{0, 0, 0, 0}};
    for (int i = 0; i < THREADS; i++) work[i].index = i;
    CHECK_OK(pvg_set_option(PVG_OPTION_LAUNCH_LOG, 1));
    int64_t before = logged(), counted = pvg_counter(PVG_COUNT_LAUNCHES);
    run_threads(launch_or_read, work);
    CHECK_EQUAL(pvg_counter(PVG_COUNT_LAUNCHES) - counted, (THREADS - 1) * OFTEN);
    CHECK_EQUAL(logged() - before, (THREADS - 1) * OFTEN);
    for (int i = 0; i < THREADS; i++) CHECK_EQUAL(work[i].status, 0);
    CHECK_OK(pvg_set_option(PVG_OPTION_LAUNCH_LOG, 0));
}

int main(void) {
    check_section = "race_to_the_first_use";
    race_to_the_first_use();
    begin("test_threads");
    RUN(equal_to_serial);
    RUN(made_here_released_there);
    RUN(reports_at_the_same_time);
    RUN(every_launch_is_logged);
    return finish();
}
