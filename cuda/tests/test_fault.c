/* Faults: a lost device and a forked child, each in a process of its own; and, on the simulated
 * card, every allocation, copy, launch, event and stream of a small training program failing
 * once. After a failure the operands are as they were, nothing has leaked, and doing it again
 * gives the same bits as if nothing had happened. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- Processes that lose the device ---------------------------------------------------------- */

/* Runs a function in a child process. Its value is the child's exit status; a child that hangs
 * is killed. */
static int in_child(int (*function)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        check_failures = 0;
        _exit(function());
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status))
        report(__FILE__, __LINE__, "a child ended by signal %d", WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Everything but asking and releasing fails, at once and with a reason. */
static void check_lost(pvg_array *survivor) {
    float number = 0;
    int count = 0;
    CHECK_EQUAL(pvg_is_healthy(), 0);
    CHECK_NULL(PVG_ERROR_DEVICE_LOST, pvg_add(survivor, survivor));
    CHECK_NULL(PVG_ERROR_DEVICE_LOST, pvg_array_empty(0, PVG_FLOAT32, SHAPE(5)));
    CHECK_STATUS(pvg_copy_to_host(survivor, &number, NULL), PVG_ERROR_DEVICE_LOST);
    CHECK_STATUS(pvg_synchronize(0), PVG_ERROR_DEVICE_LOST);
    CHECK_NULL(PVG_ERROR_DEVICE_LOST, pvg_stream_create(0));
    CHECK_OK(pvg_device_count(&count));
    CHECK_EQUAL(pvg_array_size(survivor), 1);
    RELEASE(survivor);
    CHECK_EQUAL(pvg_counter(PVG_COUNT_LIVE_ARRAYS), 0);
}

/* Addresses that are nobody's: the kernel that reads them ends all work on the device. The
 * sanitizers would end the process as well, so there the simulated card is told to fail. */
static int lose_the_device(int sync) {
    int count = 0;
    if (pvg_device_count(&count) != PVG_OK) return NO_DEVICE;
    CHECK_OK(pvg_set_option(PVG_OPTION_SYNC, sync));
    pvg_array *survivor = array_of(PVG_FLOAT32, SHAPE(1), ((const float[]){1}));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    pvg_sim_fail("device", 1);
    pvg_array *wild = MADE(pvg_reshape(survivor, SHAPE(1, 1)));
#else
    const int64_t far_apart = (int64_t)1 << 36;
    pvg_array *wild = MADE(pvg_array_wrap(pvg_array_data(survivor), 0, PVG_FLOAT32, SHAPE(100),
                                          &far_apart, NULL, NULL));
#endif
    pvg_array *result = pvg_unary(PVG_TANH, wild, NULL);
    if (sync) {
        CHECK_NULL(PVG_ERROR_DEVICE_LOST, result);
        CHECK(strcmp(pvg_last_error_operation(), "tanh") == 0 && strstr(pvg_last_error(), "tanh"));
    } else if (result) { /* found later, at the latest by a wait, which says how to find out more */
        CHECK_STATUS(pvg_synchronize(0), PVG_ERROR_DEVICE_LOST);
        CHECK(strstr(pvg_last_error(), "PVG_OPTION_SYNC"));
    }
    CHECK(pvg_last_error_value(PVG_ERROR_VALUE_CUDA_CODE) != 0 &&
          strncmp(pvg_last_error_cuda_name(), "cudaError", 9) == 0);
    RELEASE(result, wild);
    check_lost(survivor);
    return check_failures != 0;
}
static int lose_the_device_waiting(void) { return lose_the_device(1); }
static int lose_the_device_unnoticed(void) { return lose_the_device(0); }
#ifdef PVG_TEST_SIMULATOR
/* As on a GPU, a launch succeeds, and it is the wait after it that fails. */
static int lose_the_device_after_the_launch(void) {
    pvg_sim_set("deferred", 1);
    return lose_the_device(1);
}
#endif

static pvg_array *inherited;
static int use_after_fork(void) {
    float number = 0;
    int count = 0;
    CHECK_NULL(PVG_ERROR_UNAVAILABLE, pvg_array_empty(0, PVG_FLOAT32, SHAPE(5)));
    CHECK(strstr(pvg_last_error(), "fork") && strstr(pvg_last_error(), "spawn"));
    CHECK_NULL(PVG_ERROR_UNAVAILABLE, pvg_add(inherited, inherited));
    CHECK_STATUS(pvg_copy_to_host(inherited, &number, NULL), PVG_ERROR_UNAVAILABLE);
    CHECK_STATUS(pvg_device_count(&count), PVG_ERROR_UNAVAILABLE);
    RELEASE(inherited);
    return check_failures != 0;
}

static void forked_children_leave_the_device_alone(void) {
    inherited = array_of(PVG_FLOAT32, SHAPE(1), ((const float[]){7}));
    CHECK_EQUAL(in_child(use_after_fork), 0);
    CHECK_CLOSE(element(inherited, 0), 7, 0);
    pvg_array *sum = MADE(pvg_add(inherited, inherited));
    CHECK_CLOSE(element(sum, 0), 14, 0);
    RELEASE(inherited, sum);
}

#ifdef PVG_TEST_SIMULATOR

/* ---- A training program in which each call fails once ---------------------------------------- */

enum { ROWS = 12, IN = 6, HIDDEN = 9, OUT = 4, PARAMETERS = 4, MAX_CALLS = 400 };

static const int64_t shapes[PARAMETERS][2] = {{HIDDEN, IN}, {1, HIDDEN}, {OUT, HIDDEN}, {1, OUT}};
static float batch[ROWS * IN], target[ROWS * OUT];
static pvg_array *parameters[PARAMETERS];

/* The arrays of a step, and why the first that could not be made was not. */
static pvg_array *made[40];
static int made_count, first_failure;
static pvg_array *keep(pvg_array *a) {
    if (!a && first_failure == PVG_OK) first_failure = pvg_last_status();
    return made[made_count++] = a;
}
static void need(int status) {
    if (first_failure == PVG_OK) first_failure = status;
}

static pvg_array *scaled(pvg_array *a, double factor) {
    return keep(pvg_binary_scalar(PVG_MULTIPLY, a, PVG_SCALAR_FLOAT, &factor, 1, NULL));
}
static pvg_array *transposed(pvg_array *a) { return keep(pvg_permute(a, ((const int[]){1, 0}))); }

/* The gradients of the first layer: all three, or on a failure none. */
static void propagate(pvg_array *back, pvg_array *x, pvg_array *z, pvg_array **dweight,
                      pvg_array **dbias) {
    pvg_array *dx = NULL;
    *dweight = *dbias = NULL;
    int status = pvg_dense_backward(back, x, parameters[0], z, PVG_TANH, PVG_PRECISION_DEFAULT, &dx,
                                    dweight, dbias);
    need(status);
    CHECK((status == PVG_OK) == (dx && *dweight && *dbias));
    CHECK(status == PVG_OK || !(dx || *dweight || *dbias));
    keep(dx), keep(*dweight), keep(*dbias);
}

/* Gradients of the two layers, half of the work on a second stream; new[] are the parameters
 * after the step. */
static void compute_step(pvg_stream *second, pvg_array **new, float *loss) {
    pvg_array *x = keep(pvg_array_empty(0, PVG_FLOAT32, SHAPE(ROWS, IN))),
              *t = keep(pvg_array_empty(0, PVG_FLOAT32, SHAPE(ROWS, OUT)));
    if (x) need(pvg_copy_from_host(x, batch, NULL));
    if (t) need(pvg_copy_from_host(t, target, NULL));
    pvg_array *b1 = keep(pvg_reshape(parameters[1], SHAPE(HIDDEN))),
              *b2 = keep(pvg_reshape(parameters[3], SHAPE(OUT)));
    pvg_array *z = keep(pvg_array_empty(0, PVG_FLOAT32, SHAPE(ROWS, HIDDEN)));
    pvg_array *h =
        z ? keep(pvg_dense(x, parameters[0], b1, PVG_TANH, PVG_PRECISION_DEFAULT, z, NULL)) : NULL;
    pvg_array *y =
        keep(pvg_dense(h, parameters[2], b2, PVG_SIGMOID, PVG_PRECISION_DEFAULT, NULL, NULL));
    pvg_array *error = keep(pvg_binary(PVG_SUBTRACT, y, t, NULL));
    need(pvg_stream_set_current(second, 0));
    pvg_array *total = keep(pvg_reduce(PVG_MEAN, keep(pvg_binary(PVG_MULTIPLY, error, error, NULL)),
                                       -1, NULL, 0, NULL));
    pvg_array *back = keep(pvg_matmul(error, parameters[2], PVG_PRECISION_DEFAULT, NULL));
    need(pvg_stream_set_current(NULL, 0));
    pvg_array *gradients[PARAMETERS], *flat;
    propagate(back, x, z, gradients, &flat);
    gradients[1] = keep(pvg_reshape(flat, SHAPE(1, HIDDEN)));
    gradients[2] = keep(pvg_matmul(transposed(error), h, PVG_PRECISION_DEFAULT, NULL));
    gradients[3] = keep(pvg_reduce(PVG_SUM, error, AXES(0), 1, NULL));
    for (int i = 0; i < PARAMETERS; i++)
        new[i] = keep(pvg_binary(PVG_SUBTRACT, parameters[i], scaled(gradients[i], 0.1), NULL));
    if (total) need(pvg_copy_to_host(total, loss, NULL));
}

/* One step; on success parameters[] are the new ones, else they are untouched. */
static int step(float *loss) {
    pvg_array *new[PARAMETERS];
    made_count = 0;
    first_failure = PVG_OK;
    pvg_stream *second = pvg_stream_create(0);
    if (!second) return pvg_last_status();
    compute_step(second, new, loss);
    CHECK_OK(pvg_stream_set_current(NULL, 0));
    if (first_failure == PVG_OK)
        for (int i = 0; i < PARAMETERS; i++) {
            int last = made_count;
            while (made[last - 1] != new[i]) last--;
            made[last - 1] = parameters[i]; /* the old one is released instead */
            parameters[i] = new[i];
        }
    for (int i = 0; i < made_count; i++) RELEASE(made[i]);
    int status = pvg_stream_release(second);
    return first_failure != PVG_OK ? first_failure : status;
}

static void start(void) {
    for (int i = 0; i < PARAMETERS; i++) {
        uint64_t state = 100 + (uint64_t)i;
        float values[HIDDEN * IN];
        for (int64_t j = 0; j < product(2, shapes[i]); j++)
            values[j] = (float)random_real(&state, -1, 1);
        parameters[i] = array_of(PVG_FLOAT32, 2, shapes[i], values);
    }
}
static void stop(void) {
    for (int i = 0; i < PARAMETERS; i++) RELEASE(parameters[i]);
}
static void read_parameters(float *values) {
    for (int i = 0; i < PARAMETERS; i++) {
        CHECK_OK(pvg_copy_to_host(parameters[i], values, NULL));
        values += product(2, shapes[i]);
    }
}

static void every_call_of_a_step_fails_once(void) {
    static const char *const kinds[] = {"malloc", "pinned", "copy", "memset",
                                        "launch", "stream", "event"};
    enum { ALL = HIDDEN * IN + HIDDEN + OUT * HIDDEN + OUT };
    float before[ALL], after[ALL], now[ALL], loss = 0, lost = 0;
    uint64_t state = 73;
    for (int i = 0; i < ROWS * IN; i++) batch[i] = (float)random_real(&state, -1, 1);
    for (int i = 0; i < ROWS * OUT; i++) target[i] = (float)random_real(&state, 0, 1);
    start();
    read_parameters(before);
    CHECK_OK(step(&loss));
    read_parameters(after);
    CHECK(memcmp(before, after, sizeof before) != 0);
    stop();
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        int failures = 0, quiet = 0;
        for (int k = 1; quiet < 5 && k < MAX_CALLS;
             k++) { /* a failure may be survived: go on until none is left */
            start();
            CHECK_OK(pvg_synchronize(0));
            CHECK_OK(pvg_empty_cache(0));
            int64_t alive = pvg_counter(PVG_COUNT_LIVE_ARRAYS),
                    used = memory_value(PVG_MEMORY_USED);
            pvg_sim_fail(kinds[kind], k);
            int status = step(&lost);
            pvg_sim_fail(kinds[kind], 0);
            failures += status != PVG_OK;
            quiet = status == PVG_OK ? quiet + 1 : 0;
            CHECK_EQUAL(pvg_counter(PVG_COUNT_LIVE_ARRAYS), alive);
            CHECK_EQUAL(memory_value(PVG_MEMORY_USED), used);
            if (status != PVG_OK) {
                CHECK(status == PVG_ERROR_MEMORY || status == PVG_ERROR_LAUNCH ||
                      status == PVG_ERROR_CUDA);
                read_parameters(now);
                CHECK(memcmp(now, before, sizeof before) == 0);
                CHECK_OK(step(&lost));
            }
            read_parameters(now);
            CHECK(memcmp(now, after, sizeof after) == 0);
            CHECK(memcmp(&lost, &loss, sizeof loss) == 0);
            stop();
        }
        CHECK(quiet == 5);
        if (strcmp(kinds[kind], "launch") == 0 || strcmp(kinds[kind], "copy") == 0)
            CHECK(failures >= 3);
    }
    CHECK_EQUAL(pvg_is_healthy(), 1);
}

/* ---- Results into given arrays: untouched if anything fails ---------------------------------- */

static pvg_array *square, *other, *wide, *row, *shifted;

static pvg_array *into_itself(void) {
    return pvg_matmul(square, other, PVG_PRECISION_DEFAULT, square);
}
static pvg_array *overlapping(void) {
    return pvg_binary(PVG_ADD, transposed(square), other, square);
}
static pvg_array *into_wider(void) { return pvg_unary(PVG_EXP, square, wide); }
static pvg_array *into_a_sum(void) { return pvg_reduce(PVG_SUM, square, AXES(0), 0, row); }
static pvg_array *into_a_cast(void) { return pvg_cast(square, PVG_INT32, shifted); }
static pvg_array *into_a_copy(void) {
    return pvg_copy(transposed(square), square) == PVG_OK ? square : NULL;
}
static pvg_array *into_a_layer(void) {
    return pvg_dense(square, other, row, PVG_RELU, PVG_PRECISION_DEFAULT, NULL, square);
}

static void failures_leave_out_untouched(void) {
    enum { N = 37 };
    pvg_array *(*const calls[])(void) = {into_itself, overlapping, into_wider,  into_a_sum,
                                         into_a_cast, into_a_copy, into_a_layer};
    static const char *const kinds[] = {"launch", "malloc"};
    for (size_t call = 0; call < COUNT(calls); call++)
        for (int k = 1; k < 12; k++) {
            uint64_t state = 9;
            square = random_array(PVG_FLOAT32, SHAPE(N, N), &state),
            other = random_array(PVG_FLOAT32, SHAPE(N, N), &state);
            wide = random_array(PVG_FLOAT64, SHAPE(N, N), &state),
            row = random_array(PVG_FLOAT32, SHAPE(N), &state);
            shifted = random_array(PVG_INT32, SHAPE(N, N), &state);
            CHECK_OK(pvg_synchronize(0));
            CHECK_OK(pvg_empty_cache(0));
            pvg_array *all[] = {square, other, wide, row, shifted};
            void *copies[5];
            for (int i = 0; i < 5; i++) copies[i] = host_copy(all[i]);
            made_count = 0;
            pvg_sim_fail(kinds[k % 2], (k + 1) / 2);
            pvg_array *result = calls[call]();
            pvg_sim_fail(kinds[k % 2], 0);
            if (!result) {
                for (int i = 0; i < 5; i++)
                    CHECK_ARRAY(all[i], pvg_array_dtype(all[i]), pvg_array_ndim(all[i]),
                                pvg_array_shape(all[i]), copies[i], 0);
                CHECK(calls[call]() != NULL);
            }
            for (int i = 0; i < 5; i++) free(copies[i]);
            for (int i = 0; i < made_count; i++) RELEASE(made[i]);
            RELEASE(square, other, wide, row, shifted);
        }
}

/* A backward pass that converts and copies every operand: nothing is stored, nothing is left. */
static void failing_gradients_leave_nothing(void) {
    enum { M = 300, N = 9, K = 5 }; /* sums of the rows in two steps */
    static const char *const kinds[] = {"launch", "malloc"};
    uint64_t state = 10;
    int64_t allocator = 0;
    CHECK_OK(pvg_get_option(PVG_OPTION_ALLOCATOR, &allocator));
    CHECK_OK(pvg_set_option(PVG_OPTION_ALLOCATOR, PVG_ALLOCATOR_DIRECT)); /* a malloc an array */
    pvg_array *operands[] = {random_array(PVG_FLOAT16, SHAPE(N, M), &state),
                             random_array(PVG_FLOAT32, SHAPE(K, M), &state),
                             random_array(PVG_FLOAT64, SHAPE(K, N), &state),
                             random_array(PVG_BFLOAT16, SHAPE(N, M), &state)};
    pvg_array *views[4];
    for (int i = 0; i < 4; i++) views[i] = MADE(pvg_permute(operands[i], ((const int[]){1, 0})));
    for (int kind = 0; kind < 2; kind++) {
        int status = PVG_ERROR_CUDA, failures = -1;
        for (int k = 1; status != PVG_OK && k < 100; k++, failures++) {
            CHECK_OK(pvg_synchronize(0));
            int64_t alive = pvg_counter(PVG_COUNT_LIVE_ARRAYS),
                    used = memory_value(PVG_MEMORY_USED);
            pvg_array *results[3] = {views[0], views[0], views[0]};
            pvg_sim_fail(kinds[kind], k);
            status =
                pvg_dense_backward(views[0], views[1], views[2], views[3], PVG_GELU,
                                   PVG_PRECISION_DEFAULT, &results[0], &results[1], &results[2]);
            pvg_sim_fail(kinds[kind], 0);
            for (int i = 0; i < 3; i++) {
                CHECK((status == PVG_OK) == (results[i] != views[0]));
                if (status == PVG_OK) RELEASE(results[i]);
            }
            CHECK_EQUAL(pvg_counter(PVG_COUNT_LIVE_ARRAYS), alive);
            CHECK_EQUAL(memory_value(PVG_MEMORY_USED), used);
        }
        CHECK_EQUAL(status, PVG_OK);
        CHECK(failures >= 7);
    }
    for (int i = 0; i < 4; i++) RELEASE(operands[i], views[i]);
    CHECK_OK(pvg_set_option(PVG_OPTION_ALLOCATOR, allocator));
}

/* A failure of one call is not blamed on the next. */
static void failures_do_not_linger(void) {
    pvg_array *a = array_of(PVG_FLOAT32, SHAPE(3), ((const float[]){1, 2, 3}));
    pvg_sim_fail("launch", 1);
    CHECK_NULL(PVG_ERROR_LAUNCH, pvg_add(a, a));
    CHECK(strstr(pvg_last_error(), "add") &&
          strstr(pvg_last_error(), "cudaErrorLaunchOutOfResources"));
    CHECK(strcmp(pvg_last_error_cuda_name(), "cudaErrorLaunchOutOfResources") == 0);
    pvg_array *sum = MADE(pvg_add(a, a));
    CHECK_CLOSE(element(sum, 2), 6, 0);
    RELEASE(a, sum);
}

#endif

int main(void) {
    check_program = "test_fault";
    int status = in_child(lose_the_device_waiting);
    if (status != NO_DEVICE) {
        CHECK_EQUAL(status, 0);
        CHECK_EQUAL(in_child(lose_the_device_unnoticed), 0);
#ifdef PVG_TEST_SIMULATOR
        CHECK_EQUAL(in_child(lose_the_device_after_the_launch), 0);
#endif
    }
    begin("test_fault");
    RUN(forked_children_leave_the_device_alone);
#ifdef PVG_TEST_SIMULATOR
    RUN(failures_do_not_linger);
    RUN(failures_leave_out_untouched);
    RUN(failing_gradients_leave_nothing);
    RUN(every_call_of_a_step_fails_once);
    pvg_sim_reset();
#endif
    return finish();
}
