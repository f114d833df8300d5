/* What the runtime and the functions of arrays refuse; test_refused_kernels.c: what kernels do. */
#include "refused.h"

enum { V = PVG_ERROR_VALUE };
#define TEN_AXES 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
#define MANY_AXES TEN_AXES, TEN_AXES, TEN_AXES, 1, 1 /* PVG_MAX_NDIM */

static void null_pointers(void) {
    pvg_array *a = floats(SHAPE(3));
    pvg_event *event = MADE(pvg_event_create(0));
    REFUSED(V, "count is a null pointer", pvg_device_count(NULL));
    REFUSED(V, "version is a null pointer", pvg_driver_version(NULL));
    REFUSED(V, "version is a null pointer", pvg_runtime_version(NULL));
    REFUSED(V, "device is a null pointer", pvg_memory_device(pvg_array_data(a), NULL));
    REFUSED(V, "milliseconds is a null pointer", pvg_event_elapsed(event, event, NULL));
    REFUSED(V, "address of a handle", pvg_array_drop(NULL));
    REFUSED(V, "address of a handle", pvg_stream_drop(NULL));
    REFUSED(V, "address of a handle", pvg_event_drop(NULL));
    REFUSED(V, "address of a handle", pvg_graph_drop(NULL));
    CHECK_OK(pvg_event_release(event));
    let_go();
}

static void the_default_stream(void) {
    REFUSED(V, "a device's default stream cannot be released",
            pvg_stream_release(pvg_stream_current(0)));
    CHECK_OK(pvg_stream_synchronize(pvg_stream_current(0)));
}

static void events_of_several_devices(void) {
    if (!has_two_devices()) return;
    double milliseconds = -1;
    pvg_event *first = MADE(pvg_event_create(0)), *second = MADE(pvg_event_create(1));
    REFUSED(V, "the start event was never recorded",
            pvg_event_elapsed(first, second, &milliseconds));
    CHECK_OK(pvg_event_record(first, pvg_stream_current(0)));
    REFUSED(V, "the stop event was never recorded",
            pvg_event_elapsed(first, second, &milliseconds));
    CHECK_OK(pvg_event_record(second, pvg_stream_current(1)));
    REFUSED(V, "the events are on different devices: 0 and 1",
            pvg_event_elapsed(first, second, &milliseconds));
    REFUSED(V, "the events are on different devices: 1 and 0",
            pvg_event_elapsed(second, first, &milliseconds));
    CHECK_CLOSE(milliseconds, -1, 0);
    CHECK_OK(pvg_event_release(first));
    CHECK_OK(pvg_event_release(second));
}

static void arrays_of_several_devices(void) {
    if (!has_two_devices()) return;
    const int64_t key[4] = {PVG_KEY_ARRAY, 0, 0, 0};
    int64_t items[4], there_items[4];
    pvg_array *here = floats(SHAPE(3)), *indices = integers(SHAPE(2));
    pvg_array *there = MADE(pvg_array_empty(1, PVG_FLOAT32, SHAPE(3)));
    pvg_array *other = MADE(pvg_array_empty(1, PVG_INT64, SHAPE(2)));
    memcpy(items, key, sizeof key), memcpy(there_items, key, sizeof key);
    items[1] = (int64_t)(intptr_t)indices, there_items[1] = (int64_t)(intptr_t)other;
    NOT_MADE(V, "device", pvg_binary(PVG_ADD, here, there, NULL));
    NOT_MADE(V, "out lives on device 1, the operands on device 0",
             pvg_unary(PVG_NEGATIVE, here, there));
    NOT_MADE(V, "data is memory of device 1, not of device 0",
             pvg_array_wrap(pvg_array_data(there), 0, PVG_FLOAT32, SHAPE(3), NULL, NULL, NULL));
    REFUSED(V, "values of another device", pvg_index_set(here, 1, items, there, 0, NULL));
    NOT_MADE(V, "an array that is no index here", pvg_index_get(here, 1, there_items));
    const double numbers[PVG_UPDATE_COUNT] = {0.1};
    REFUSED(V, "parameters live on device 0, their gradients on device 1",
            pvg_optimize(PVG_SGD, (pvg_array *const[]){here}, (const pvg_array *const[]){there}, 1,
                         numbers, NULL));
    pvg_array *norm = MADE(pvg_total_norm((const pvg_array *const[]){there}, 1, 2));
    REFUSED(V, "the norm lives on device 1, the arrays on device 0",
            pvg_clip_norm((pvg_array *const[]){here}, 1, norm, 1));
    RELEASE(there, other, norm);
    let_go();
    check_second_device();
}

static void views(void) {
    int64_t news[33 * 4] = {0}, counts[32];
    for (int i = 0; i < 33; i++) news[4 * i] = PVG_KEY_NEW;
    for (int i = 0; i < 32; i++) counts[i] = i < 17 ? 2 : 1;
    pvg_array *a = floats(SHAPE(3)), *many = floats(SHAPE(MANY_AXES));
    NOT_MADE(V, "an array has at most 32 dimensions, not 33", pvg_index(many, 1, news));
    NOT_MADE(V, "an array has at most 32 dimensions, not 34", pvg_index(a, 33, news));
    NOT_MADE(V, "axis 1 repeated -1 times",
             pvg_repeat(many, 32, (const int64_t[]){1, -1, MANY_AXES}, 0));
    NOT_MADE(V, "more than 32 axes that are repeated apart", pvg_repeat(many, 32, counts, 0));
    NOT_MADE(V, "more than 32 axes that are repeated apart", pvg_repeat(many, 32, counts, 1));
    let_go();
}

static void outs(void) {
    const int64_t zero_stride[] = {3, 0};
    pvg_array *a = floats(SHAPE(2, 3)), *whole = floats(SHAPE(2, 3)), *turned = floats(SHAPE(3, 2));
    pvg_array *read_only = keep(MADE(pvg_broadcast_to(whole, SHAPE(2, 3))), NULL);
    pvg_array *repeats = keep(MADE(pvg_array_wrap(pvg_array_data(whole), 0, PVG_FLOAT32,
                                                  SHAPE(2, 3), zero_stride, NULL, NULL)),
                              NULL);
    NOT_MADE(V, "out of shape (2, 3) repeats its elements along axis 1",
             pvg_unary(PVG_NEGATIVE, a, repeats));
    NOT_MADE(V, "out is read-only", pvg_unary(PVG_NEGATIVE, a, read_only));
    NOT_MADE(V, "out has shape (2, 3), the result has (3, 2)",
             pvg_unary(PVG_NEGATIVE, turned, whole));
    let_go();
}

static void tensors_of_dlpack(void) {
    uint32_t tensor[64] = {2, 7}; /* a version to come */
    NOT_MADE(V, "the tensor is of version 2.7, this library knows 1",
             pvg_dlpack_import(tensor, 1, 0));
    tensor[0] = 0;
    NOT_MADE(V, "the tensor is of version 0.7, this library knows 1",
             pvg_dlpack_import(tensor, 1, 0));
    NOT_MADE(V, "the tensor is a null pointer", pvg_dlpack_import(NULL, 0, 0));
    CHECK_EQUAL(tensor[1], 7);
}

static void scalars(void) {
    const double large = 1e10, small = -1e10, undefined = NAN;
    const int64_t many = 1000, negative = -1;
    const uint64_t most = UINT64_MAX;
    pvg_array *bytes = given(PVG_INT8, SHAPE(3)), *natural = given(PVG_UINT64, SHAPE(3));
    REFUSED(PVG_ERROR_OVERFLOW, "1e+10 is out of bounds for int8",
            pvg_fill(bytes, PVG_SCALAR_FLOAT, &large));
    REFUSED(PVG_ERROR_OVERFLOW, "-1e+10 is out of bounds for int8",
            pvg_fill(bytes, PVG_SCALAR_FLOAT, &small));
    REFUSED(PVG_ERROR_OVERFLOW, "nan is out of bounds for int8",
            pvg_fill(bytes, PVG_SCALAR_FLOAT, &undefined));
    REFUSED(PVG_ERROR_OVERFLOW, "1000 is out of bounds for int8",
            pvg_fill(bytes, PVG_SCALAR_INT, &many));
    REFUSED(PVG_ERROR_OVERFLOW, "-1 is out of bounds for uint64",
            pvg_fill(natural, PVG_SCALAR_INT, &negative));
    REFUSED(PVG_ERROR_OVERFLOW, "18446744073709551615 is out of bounds for int8",
            pvg_fill(bytes, PVG_SCALAR_UINT, &most));
    let_go();
}

/* An index or a label that the device finds is the error of the wait that follows. */
static void what_the_device_reports(void) {
    const int64_t labels[] = {1, 7};
    pvg_array *x = floats(SHAPE(2, 3)), *of = array_of(PVG_INT64, SHAPE(2), labels);
    pvg_array *statistics = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, 2)));
    pvg_array *losses = MADE(pvg_cross_entropy(x, of, NULL, -100, 0, statistics));
    before_call();
    int status = pvg_synchronize(0);
    after_call(__FILE__, __LINE__, "a label", status, PVG_ERROR_INDEX,
               "cross_entropy: label 7 is out of bounds for 3 classes");
    CHECK_OK(pvg_synchronize(0)); /* it is said once */
    RELEASE(losses, statistics, of);
    let_go();
}

static void recordings(void) {
    pvg_array *p = floats(SHAPE(4)), *g = floats(SHAPE(4)), *first = floats(SHAPE(4)),
              *second = floats(SHAPE(4));
    double numbers[PVG_UPDATE_COUNT] = {0.1};
    numbers[PVG_UPDATE_SHARE1] = numbers[PVG_UPDATE_SHARE2] = 0.5;
    numbers[PVG_UPDATE_BETA1] = numbers[PVG_UPDATE_BETA2] = 0.5;
    const pvg_array *const gradients[] = {g};
    CHECK_OK(pvg_graph_begin(0));
    REFUSED(V, "recording a graph: a step of Adam with numbers of the host",
            pvg_optimize(PVG_ADAM, (pvg_array *const[]){p, first, second}, gradients, 1, numbers,
                         NULL));
    numbers[PVG_UPDATE_MOMENTUM] = 0.9, numbers[PVG_UPDATE_FIRST] = 1;
    REFUSED(V, "recording a graph: states that begin in it",
            pvg_optimize(PVG_SGD, (pvg_array *const[]){p, first}, gradients, 1, numbers, NULL));
    numbers[PVG_UPDATE_FIRST] = 0;
    pvg_array *made = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(4)));
    REFUSED(V, "recording a graph: states that begin in it",
            pvg_optimize(PVG_SGD, (pvg_array *const[]){p, made}, gradients, 1, numbers, NULL));
    pvg_graph *graph = MADE(pvg_graph_end(0));
    RELEASE(made);
    CHECK_OK(pvg_graph_release(graph));
    let_go();
}

int main(void) {
    ask_for_two_devices();
    begin("test_refused");
    RUN(null_pointers);
    RUN(the_default_stream);
    RUN(events_of_several_devices);
    RUN(arrays_of_several_devices);
    RUN(views);
    RUN(outs);
    RUN(tensors_of_dlpack);
    RUN(scalars);
    RUN(what_the_device_reports);
    RUN(recordings);
    return finish();
}
