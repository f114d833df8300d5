/* A thread's first call: products whose kernel wants something of the driver itself, each as the
 * first thing that a new thread does on a device. CUDA's runtime binds a context to a thread in
 * some of its calls only, and the driver finds none before one of them. */
#include "check.h"

#include <pthread.h>

enum { SIDE = 64 };

typedef struct {
    const pvg_array *a, *b;
    pvg_array *out;
    int status;
    char message[200];
} Work;

static void *multiply(void *argument) {
    Work *work = argument;
    work->status = pvg_matmul(work->a, work->b, PVG_PRECISION_IEEE, work->out) ? PVG_OK : -1;
    if (work->status != PVG_OK)
        snprintf(work->message, sizeof work->message, "%s", pvg_last_error());
    return NULL;
}

/* The kernel if the device has it, else the one that the library chooses. */
static void force(int kernel, Work *work) {
    CHECK_OK(pvg_set_option(PVG_OPTION_MATMUL_KERNEL, kernel));
    multiply(work);
#ifdef PVG_TEST_SIMULATOR
    CHECK_EQUAL(work->status, PVG_OK); /* it has all of these */
#endif
    if (work->status != PVG_OK) CHECK_OK(pvg_set_option(PVG_OPTION_MATMUL_KERNEL, PVG_MATMUL_AUTO));
}

static void a_product_is_the_first_call(void) {
    static const int kernels[] = {PVG_MATMUL_FFMA_TMA, PVG_MATMUL_FFMA_64X64, PVG_MATMUL_TILED};
    uint64_t state = 7;
    pvg_array *a = random_array(PVG_FLOAT32, SHAPE(SIDE, SIDE), &state);
    pvg_array *b = random_array(PVG_FLOAT32, SHAPE(SIDE, SIDE), &state);
    pvg_array *first = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(SIDE, SIDE)));
    pvg_array *again = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(SIDE, SIDE)));
    for (size_t i = 0; i < COUNT(kernels); i++) {
        Work here = {a, b, first, 0, ""}, there = {a, b, again, 0, ""};
        pthread_t thread;
        force(kernels[i], &here);
        CHECK_EQUAL(pthread_create(&thread, NULL, multiply, &there), 0);
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
        if (there.status != PVG_OK) report(__FILE__, __LINE__, "in a thread: %s", there.message);
        void *expected = host_copy(first);
        CHECK_ARRAY(again, PVG_FLOAT32, SHAPE(SIDE, SIDE), expected, 0);
        free(expected);
        CHECK_OK(pvg_set_option(PVG_OPTION_MATMUL_KERNEL, PVG_MATMUL_AUTO));
    }
    RELEASE(a, b, first, again);
}

int main(void) {
#ifdef PVG_TEST_SIMULATOR
    CHECK_EQUAL(pvg_sim_set("card0", 90), 0);
#endif
    begin("test_contexts");
    RUN(a_product_is_the_first_call);
    return finish();
}
