/* Random calls of the C interface on the simulated card, with handles and numbers that are right,
 * wrong, released or NULL, and with injected faults. After each call the rules of the header hold:
 *
 * - a failure has a status that the arguments explain, and a message; a success has neither;
 * - a handle that is none of ours, or not any more, is refused; `out` itself comes back;
 * - as many arrays are alive as were given and not released, and the card is healthy.
 *
 * After each round nothing is left. Rounds run in child processes. One that fails or dies is run
 * again without each of its calls in turn, and what has to stay is printed:
 *
 *     fuzz SECONDS [SEED]      until the time is up or something is wrong
 *     fuzz replay SEED ROUND   one round, call by call
 *
 * A call's numbers follow from the seed, the round and its place, whatever came before. */
#define _GNU_SOURCE
#include "fuzz.h"

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
/* ---- Calls ----------------------------------------------------------------------------------- */

static void make_array(void) {
    int on = device(), code = dtype(), ndim = random_shape();
    const int64_t *lengths = chance(98) ? shape : NULL;
    bad |= !lengths && ndim > 0;
    TRACE("pvg_array_empty(%d, %d, %d)\n", on, code, ndim);
    pvg_array *made = pvg_array_empty(on, code, ndim, lengths);
    /* A result needs its contents: what was never written can be NaN, and is no bool. */
    if (handle_of("pvg_array_empty", made, NULL, &arrays)) {
        take_back();
        int64_t zero = 0;
        status_of("pvg_fill", pvg_fill(made, PVG_SCALAR_INT, &zero));
    }
}

static void count_deleted(void *context) { ++*(int64_t *)context; }

static void wrap_array(void) {
    int code = dtype(), ndim = random_shape();
    for (int i = 0; i < ndim && i < 64; i++)
        if (shape[i] > BASE) return;
    int64_t size = ndim >= 0 && ndim <= 5 ? product(ndim, shape) : 0;
    if (size < 0 || size * pvg_dtype_size(code) > BASE * 8) return;
    TRACE("pvg_array_wrap(dtype %d, ndim %d)\n", code, ndim);
    pvg_array *made =
        pvg_array_wrap(pvg_array_data(base), 0, code, ndim, shape, NULL, count_deleted, &deleted);
    wrapped += handle_of("pvg_array_wrap", made, NULL, &arrays);
}

static void release_array(void) {
    pvg_array *a = chance(90) && arrays.count > 0 ? one_of(&arrays) : wanted(&arrays, 100);
    TRACE("pvg_array_release(%p)\n", (void *)a);
    int status = pvg_array_release(a);
    if (status != PVG_OK) check_failure("pvg_array_release", status);
    if (bad != (status != PVG_OK))
        report(__FILE__, __LINE__, "pvg_array_release gave %d of a %s handle", status,
               bad ? "bad" : "good");
    if (status == PVG_OK) forget(&arrays, a);
}

static void ask_array(void) {
    pvg_array *a = needed(&arrays);
    int64_t info[3 + 2 * PVG_MAX_NDIM];
    TRACE("pvg_array_describe(%p)\n", (void *)a);
    int ndim = pvg_array_ndim(a);
    CHECK_EQUAL(ndim == -1, bad);
    CHECK_EQUAL(pvg_array_size(a) == -1, bad);
    CHECK_EQUAL(pvg_array_shape(a) == NULL, bad);
    CHECK_EQUAL(pvg_array_version(a) == -1, bad);
    status_of("pvg_array_describe", pvg_array_describe(a, info));
    if (bad) return;
    CHECK(info[0] == pvg_array_dtype(a) && info[2] == ndim);
    CHECK(memcmp(info + 3, pvg_array_shape(a), sizeof(int64_t) * (size_t)ndim) == 0);
    CHECK(memcmp(info + 3 + ndim, pvg_array_strides(a), sizeof(int64_t) * (size_t)ndim) == 0);
    CHECK_EQUAL(product(ndim, info + 3), pvg_array_size(a));
}

static void view_array(void) {
    pvg_array *a = needed(&arrays);
    int64_t start[40], step[40], length[40];
    int axes[40], kind = (int)pick(0, 6), ndim = related_shape(a);
    for (int i = 0; i < 40; i++) {
        int64_t n = i < 32 && shape[i] > 0 ? shape[i] : 1;
        start[i] = chance(97) ? pick(0, n - 1) : pick(-3, n + 3);
        step[i] = pick(-2, 2);
        int64_t most = step[i] > 0 && start[i] < n ? 1 + (n - 1 - start[i]) / step[i] : 1;
        length[i] = chance(97) ? pick(0, most) : pick(-2, 40);
        axes[i] = i;
    }
    for (int i = 0; i < ndim && i < 32; i++) {
        int j = (int)pick(0, ndim < 32 ? ndim - 1 : 31), other = axes[i];
        axes[i] = axes[j], axes[j] = chance(98) ? other : (int)pick(-4, 9);
    }
    TRACE("view %d of %p\n", kind, (void *)a);
    if (kind == 0) handle_of("pvg_slice", pvg_slice(a, start, step, length), NULL, &arrays);
    if (kind == 1) handle_of("pvg_permute", pvg_permute(a, axes), NULL, &arrays);
    if (kind == 2) {
        if (ndim > 0 && chance(50)) shape[0] = -1, ndim = chance(50) ? 1 : ndim;
        if (ndim == 2 && chance(50)) shape[2] = shape[0], shape[0] = shape[1], shape[1] = shape[2];
        handle_of("pvg_reshape", pvg_reshape(a, ndim, shape), NULL, &arrays);
    }
    if (kind == 3) {
        if (ndim >= 0 && ndim < 5 && chance(60)) {
            for (int i = ndim; i > 0; i--) shape[i] = shape[i - 1];
            shape[0] = pick(0, 3), ndim++;
        }
        handle_of("pvg_broadcast_to", pvg_broadcast_to(a, ndim, shape), NULL, &arrays);
    }
    if (kind == 4) handle_of("pvg_contiguous", pvg_contiguous(a), NULL, &arrays);
    if (kind == 5) handle_of("pvg_part", pvg_part(a, (int)pick(-1, 2)), NULL, &arrays);
    if (kind == 6) {
        const int kinds[] = {0, 0, 0, 1, 5, 9, 13, 17, 21, 25, 29, 2, 3, 33};
        int64_t items[40 * 4];
        for (int i = 0; i < 40 * 4; i++) {
            items[i] = chance(97) ? pick(-4, 4) : INT64_MIN + pick(0, 2);
            if (i % 4 == 0) items[i] = kinds[pick(0, chance(99) ? 12 : 13)];
        }
        int n = chance(97) ? (int)pick(0, 4) : (int)pick(-1, 40);
        handle_of("pvg_index", pvg_index(a, n, items), NULL, &arrays);
    }
}

/* Byte strides of a layout that fits into the buffer; NULL: C order. */
static const int64_t *host_strides(const pvg_array *a, int64_t *strides) {
    int ndim = pvg_array_ndim(a);
    int64_t reach = pvg_dtype_size(pvg_array_dtype(a));
    for (int i = 0; i < ndim; i++) {
        strides[i] = pick(0, 200);
        reach += (pvg_array_shape(a)[i] - 1) * strides[i];
    }
    return ndim > 0 && reach <= BUFFER && chance(40) ? strides : NULL;
}

static void copy_array(void) {
    pvg_array *a = needed(&arrays), *b = needed(&arrays);
    int64_t strides[PVG_MAX_NDIM];
    int kind = (int)pick(0, 2);
    TRACE("copy %d of %p and %p\n", kind, (void *)a, (void *)b);
    if (kind == 0) {
        status_of("pvg_copy", pvg_copy(a, b));
        return;
    }
    bad = !is_live(&arrays, a);
    int64_t bytes = bad ? 0 : pvg_array_size(a) * pvg_dtype_size(pvg_array_dtype(a));
    if (bytes > BUFFER) return;
    const int64_t *way = bad ? NULL : host_strides(a, strides);
    void *host = chance(98) ? buffer : NULL;
    bad |= !host && bytes > 0;
    int64_t numbers[3];
    if (kind == 2 && chance(20)) {
        bad |= !bad && pvg_array_size(a) != 1;
        status_of("pvg_item", pvg_item(a, numbers));
        return;
    }
    if (kind == 1) status_of("pvg_copy_from_host", pvg_copy_from_host(a, host, way));
    if (kind == 2) status_of("pvg_copy_to_host", pvg_copy_to_host(a, host, way));
}

static void fill_array(void) {
    pvg_array *a = needed(&arrays);
    Scalar s = scalar();
    const void *value = chance(98) ? &s.value : NULL;
    if (chance(30)) {
        TRACE("pvg_random(%p, %d)\n", (void *)a, s.kind);
        status_of("pvg_random", pvg_random(a, s.kind, 1, 2, 3));
        return;
    }
    bad |= !value;
    TRACE("pvg_fill(%p, %d)\n", (void *)a, s.kind);
    status_of("pvg_fill", pvg_fill(a, s.kind, value));
}

static pvg_array *factored(pvg_array *a) {
    int kind = chance(95) ? (int)pick(0, 2) : (int)pick(-1, 9);
    switch (pick(0, 3)) {
    case 0: return pvg_cholesky(a, kind);
    case 1: return pvg_solve(a, needed(&arrays), kind);
    case 2: return pvg_inverse(a);
    }
    return pvg_determinant(a, kind);
}

static void elementwise(void) {
    pvg_array *a = needed(&arrays), *b = NULL, *c = NULL, *made = NULL;
    int kind = (int)pick(0, 13), code = (int)(kind == 0 ? pick(0, 12) : pick(99, 129));
    if (kind == 1 || kind == 3 || kind == 10) b = chance(50) ? a : needed(&arrays);
    if (kind == 3) c = chance(50) ? b : needed(&arrays);
    pvg_array *out = kind == 7 || kind >= 9 ? NULL : wanted(&arrays, 30); /* those take none */
    Scalar s = scalar();
    TRACE("elementwise or scan %d, code %d, %p %p %p, out %p\n", kind, code, (void *)a, (void *)b,
          (void *)c, (void *)out);
    if (kind == 0) made = pvg_unary(code, a, out);
    if (kind == 1) made = pvg_binary(code, a, b, out);
    if (kind == 2)
        made = pvg_binary_scalar(code, a, s.kind, &s.value, chance(98) ? (int)pick(0, 1) : 2, out);
    if (kind == 3) made = chance(70) ? pvg_where(a, b, c, out) : pvg_within(a, b, c, out);
    if (kind == 4) made = pvg_cast(a, dtype(), out);
    if (kind == 5) made = pvg_triangle(a, chance(98) ? (int)pick(0, 1) : 3, pick(-9, 9), out);
    if (kind == 6)
        made = pvg_scan(chance(95) ? (chance(50) ? PVG_SUM : PVG_PROD) : code, a, (int)pick(-3, 3),
                        chance(98) ? (int)pick(0, 1) : 2, out);
    if (kind == 7) made = pvg_nonzero(a);
    int way = chance(98) ? (int)pick(0, 1) : 2;
    if (kind == 8) made = pvg_sort(a, (int)pick(-3, 3), way, out);
    if (kind == 9) made = pvg_argsort(a, (int)pick(-3, 3), way);
    if (kind == 10) made = pvg_searchsorted(a, b, way);
    if (kind == 11) made = pvg_bincount(a, b, pick(-1, 5000));
    if (kind == 12) made = factored(a);
    if (kind == 13) {
        const pvg_array *parts[5];
        const int n = (int)pick(chance(95), 5);
        bad = 0; /* that of `a` does not count where it is no part */
        for (int i = 0; i < n; i++) {
            parts[i] = chance(60) ? a : needed(&arrays);
            bad |= !is_live(&arrays, parts[i]);
        }
        made = pvg_concat(chance(98) ? parts : NULL, n, (int)pick(-3, 3), way,
                          chance(80) ? -1 : dtype());
    }
    handle_of("an elementwise function", made, out, &arrays);
}

static void gather(void) {
    pvg_array *a = needed(&arrays), *indices = needed(&arrays);
    int axes[3], count = chance(90) ? 1 : (int)pick(-1, 3), trusted = chance(50);
    int place = (int)pick(-2, 2), writes = chance(50);
    for (int i = 0; i < 3; i++) axes[i] = (int)(chance(90) ? i : pick(-1, 3));
    const int *list = chance(97) ? axes : NULL;
    pvg_array *values = writes ? needed(&arrays) : NULL;
    TRACE("gather or scatter, %p at %p, %d axes, place %d, trusted %d, values %p\n", (void *)a,
          (void *)indices, count, place, trusted, (void *)values);
    const int operation = PVG_ADD + (int)pick(0, 8);
    if (writes && chance(50))
        status_of("pvg_accumulate",
                  pvg_accumulate(operation, a, indices, count, list, place, trusted, values));
    else if (writes)
        status_of("pvg_scatter", pvg_scatter(a, indices, count, list, place, trusted, values));
    else
        handle_of("pvg_gather", pvg_gather(a, indices, count, list, place, trusted), NULL, &arrays);
}

/* States are other parameters, or the same: what belongs together seldom has another shape. */
static void learning(void) {
    pvg_array *targets[8], *gradients[2] = {NULL, NULL};
    double numbers[PVG_UPDATE_COUNT];
    const int kind = (int)pick(0, 3), n = kind == 3 ? 1 : (int)pick(1, 2);
    for (int i = 0; i < n; i++) targets[i] = i && chance(30) ? targets[0] : needed(&arrays);
    for (int i = n; i < 8; i++) targets[i] = targets[i % n];
    for (int i = 0; i < n && (kind == 0 || i == 0) && kind % 2 == 0; i++)
        gradients[i] = chance(50) ? targets[i] : needed(&arrays);
    for (int i = 0; i < PVG_UPDATE_COUNT; i++) numbers[i] = (double)pick(0, 1);
    const int count = chance(97) ? n : -1, missing = chance(2);
    const double order = chance(90) ? 1 + chance(50) : (double)pick(0, 4);
    TRACE("learning %d, %d of %p %p, gradients %p %p\n", kind, count, (void *)targets[0],
          (void *)targets[1], (void *)gradients[0], (void *)gradients[1]);
    pvg_array *const *list = missing ? NULL : targets;
    if (kind == 0)
        status_of("pvg_optimize", pvg_optimize((int)(chance(98) ? pick(0, 2) : pick(-1, 3)), list,
                                               (const pvg_array *const *)gradients, count,
                                               chance(98) ? numbers : NULL));
    if (kind == 1)
        handle_of("pvg_total_norm", pvg_total_norm((const pvg_array *const *)list, count, order),
                  NULL, &arrays);
    if (kind == 2)
        status_of("pvg_clip_norm", pvg_clip_norm(list, count, gradients[0], (double)pick(0, 9)));
    if (kind == 3)
        handle_of("pvg_dropout", pvg_dropout(targets[0], (double)pick(0, 5) / 4, 1, 2, 3), NULL,
                  &arrays);
}

static void reduce(void) {
    pvg_array *a = needed(&arrays), *out = wanted(&arrays, 20);
    int axes[40], code = (int)pick(199, 209), naxes = chance(95) ? (int)pick(-1, 2) : 33;
    for (int i = 0; i < 40; i++) axes[i] = (int)pick(-3, 3);
    const int *list = naxes < 0 && chance(95) ? NULL : axes;
    int keepdims = chance(98) ? (int)pick(0, 1) : 2;
    TRACE("pvg_reduce(%d, %p, %d axes, out %p)\n", code, (void *)a, naxes, (void *)out);
    handle_of("pvg_reduce", pvg_reduce(code, a, naxes, list, keepdims, out), out, &arrays);
}

static void multiply(void) {
    pvg_array *a = needed(&arrays), *b = chance(30) ? a : needed(&arrays);
    if (chance(60)) { /* operands that fit */
        int64_t sides[3] = {pick(0, 20), pick(0, 20), pick(0, 20)};
        int code = chance(60) ? PVG_FLOAT32 : dtype();
        a = pvg_array_empty(0, code, 2, sides);
        if (a) keep(&arrays, a);
        b = pvg_array_empty(0, code, 2, sides + 1);
        if (b) keep(&arrays, b);
        bad = !a || !b;
    }
    pvg_array *out = wanted(&arrays, 20);
    TRACE("pvg_matmul(%p, %p, out %p)\n", (void *)a, (void *)b, (void *)out);
    handle_of("pvg_matmul", pvg_matmul(a, b, precision(), out), out, &arrays);
}

static void layer(void) {
    int64_t rows = pick(0, 9), inputs = pick(0, 9), outputs = pick(0, 9);
    int code = chance(90) ? PVG_FLOAT32 : dtype(), mode = activation();
    pvg_array *x = NULL, *weight = NULL, *bias = NULL, *z = NULL, *results[3];
    if (chance(85)) {
        x = pvg_array_empty(0, code, 2, (int64_t[]){rows, inputs});
        if (x) keep(&arrays, x);
        weight = pvg_array_empty(0, code, 2, (int64_t[]){outputs, inputs});
        if (weight) keep(&arrays, weight);
        z = pvg_array_empty(0, code, 2, (int64_t[]){rows, outputs});
        if (z) keep(&arrays, z);
    } else {
        x = needed(&arrays), weight = needed(&arrays), z = needed(&arrays);
    }
    bad = !is_live(&arrays, x) || !is_live(&arrays, weight) || (z && !is_live(&arrays, z));
    bias = wanted(&arrays, 20);
    TRACE("dense: %p %p, bias %p, preactivation %p\n", (void *)x, (void *)weight, (void *)bias,
          (void *)z);
    if (chance(50)) {
        pvg_array *out = wanted(&arrays, 10);
        pvg_array *made = pvg_dense(x, weight, bias, mode, precision(), z, out);
        handle_of("pvg_dense", made, out, &arrays);
        return;
    }
    for (int i = 0; i < 3; i++) results[i] = base;
    bad = !is_live(&arrays, x) || !is_live(&arrays, weight) || !is_live(&arrays, z);
    int status = pvg_dense_backward(z, x, weight, z, mode, precision(), &results[0],
                                    chance(50) ? &results[1] : NULL, &results[2]);
    status_of("pvg_dense_backward", status);
    for (int i = 0; i < 3; i++) {
        if (status != PVG_OK) CHECK(results[i] == base);
        if (results[i] != base) keep(&arrays, results[i]);
    }
}

static pvg_array *picture(int code, int64_t n, int64_t channels, int64_t rows, int64_t columns) {
    if (chance(10)) return needed(&arrays);
    pvg_array *a = pvg_array_empty(0, code, SHAPE(n, channels, rows, columns));
    if (a) keep(&arrays, a);
    bad |= !a;
    return a;
}

static void use_windows(void) {
    int64_t numbers[PVG_WINDOWS_COUNT], groups = pick(1, 3);
    const int64_t height = pick(1, 9), width = pick(0, 9);
    for (int i = 0; i < PVG_WINDOWS_COUNT; i++)
        numbers[i] = chance(1) ? -1 : pick(i / 2 == 2 || i / 2 == 3 ? 0 : 1, 2);
    if (chance(5)) numbers[PVG_WINDOWS_STRIDE] = pick(1LL << 30, 1LL << 31);
    const int64_t channels = groups * pick(1, 3), out = groups * pick(1, 3), n = pick(0, 3);
    const int64_t rows = pick(1, 5), columns = pick(1, 5), inputs = channels / groups;
    int code = chance(90) ? PVG_FLOAT32 : dtype(), kind = (int)pick(0, 4);
    int operation = chance(50) ? PVG_MAX : chance(90) ? PVG_MEAN : PVG_SUM;
    if (chance(5)) groups = pick(-1, 4);
    pvg_array *a, *b = NULL, *made = NULL;
    a = kind < 1 || kind == 2 ? picture(code, n, channels, height, width)
                              : picture(code, n, out, rows, columns);
    if (kind == 1 && operation == PVG_MAX) b = picture(PVG_INT32, n, out, rows, columns);
    if (kind == 2 || kind == 3) b = picture(code, out, inputs, numbers[0], numbers[1]);
    if (kind == 4) b = picture(code, n, channels, height, width);
    TRACE("windows, kind %d of %p, %p\n", kind, (void *)a, (void *)b);
    if (kind == 0) made = pvg_pool(operation, a, NULL, numbers, 1);
    if (kind == 1) made = pvg_pool_backward(operation, a, b, numbers, 0, height, width);
    if (kind == 2) made = pvg_convolution(a, b, numbers, groups);
    if (kind == 3) made = pvg_convolution_input(a, b, numbers, groups, height, width);
    if (kind == 4) made = pvg_convolution_weight(a, b, numbers, groups);
    handle_of("windows", made, NULL, &arrays);
}

static void use_stream(void) {
    pvg_stream *s = NULL;
    int kind = (int)pick(0, 6);
    TRACE("stream %d\n", kind);
    if (kind <= 1 && streams.count < OTHERS) {
        s = kind == 0 ? pvg_stream_create(device()) : pvg_stream_wrap(NULL, 0);
        handle_of("pvg_stream_create", s, NULL, &streams);
    }
    if (kind == 2) {
        int status = pvg_stream_release(s = wanted(&streams, 100));
        status_of("pvg_stream_release", status);
        if (status == PVG_OK) forget(&streams, s);
    }
    if (kind == 3) status_of("pvg_stream_synchronize", pvg_stream_synchronize(needed(&streams)));
    if (kind == 4 || kind == 5) {
        s = wanted(&streams, 70);
        status_of("pvg_stream_set_current", pvg_stream_set_current(s, 0));
    }
    if (kind == 6) {
        s = needed(&streams);
        pvg_event *e = needed(&events);
        status_of("pvg_stream_wait_event", pvg_stream_wait_event(s, e));
    }
    CHECK(pvg_stream_current(0) != NULL);
}

static void use_event(void) {
    pvg_event *e = NULL;
    double milliseconds = 0;
    int kind = (int)pick(0, 5), done = -1;
    TRACE("event %d\n", kind);
    if (kind == 0 && events.count < OTHERS)
        handle_of("pvg_event_create", pvg_event_create(device()), NULL, &events);
    if (kind == 1) {
        int status = pvg_event_release(e = wanted(&events, 100));
        status_of("pvg_event_release", status);
        if (status == PVG_OK) forget(&events, e);
    }
    if (kind == 2) {
        e = needed(&events);
        status_of("pvg_event_record", pvg_event_record(e, needed(&streams)));
    }
    if (kind == 3) status_of("pvg_event_synchronize", pvg_event_synchronize(needed(&events)));
    if (kind == 4) status_of("pvg_event_query", pvg_event_query(needed(&events), &done));
    if (kind == 5) {
        fault = 1; /* one that was not recorded, or is not over yet, is the runtime's error */
        e = needed(&events);
        int status = pvg_event_elapsed(e, needed(&events), &milliseconds);
        status_of("pvg_event_elapsed", status);
    }
}

static void use_graph(void) {
    int kind = (int)pick(0, 3);
    TRACE("graph %d\n", kind);
    if (kind == 0) status_of("pvg_graph_begin", pvg_graph_begin(device()));
    if (kind == 1) fault = 1; /* tells what failed while it was recorded */
    if (kind == 1 && graphs.count < OTHERS)
        handle_of("pvg_graph_end", pvg_graph_end(device()), NULL, &graphs);
    if (kind == 2) status_of("pvg_graph_launch", pvg_graph_launch(needed(&graphs)));
    if (kind == 3) {
        pvg_graph *g = wanted(&graphs, 100);
        int status = pvg_graph_release(g);
        status_of("pvg_graph_release", status);
        if (status == PVG_OK) forget(&graphs, g);
    }
}

static void use_settings(void) {
    static const int options[] = {PVG_OPTION_SYNC,          PVG_OPTION_LAUNCH_LOG,
                                  PVG_OPTION_DEFAULT_FLOAT, PVG_OPTION_MATMUL_PRECISION,
                                  PVG_OPTION_MATMUL_KERNEL, PVG_OPTION_ALLOCATOR};
    int64_t values[PVG_MEMORY_COUNT], value = 0;
    int kind = (int)pick(0, 6), option = options[pick(0, COUNT(options) - 1)];
    TRACE("settings %d\n", kind);
    if (kind == 0) status_of("pvg_set_option", pvg_set_option(option, pick(-1, 14)));
    if (kind == 1) status_of("pvg_get_option", pvg_get_option((int)pick(-1, 7), &value));
    if (kind == 2) status_of("pvg_memory_info", pvg_memory_info(device(), values));
    if (kind == 3)
        status_of("pvg_set_memory_limit",
                  pvg_set_memory_limit(0, chance(50) ? 0 : pick(-9, (int64_t)1 << 24)));
    if (kind == 4) status_of("pvg_empty_cache", pvg_empty_cache(device()));
    if (kind == 5) status_of("pvg_synchronize", pvg_synchronize(device()));
    if (kind == 6)
        status_of("pvg_device_attribute",
                  pvg_device_attribute(device(), (int)pick(-2, 50), &value));
}

static void plan(void) {
    int64_t card[PVG_CARD_COUNT], wish[PVG_PRODUCT_COUNT], found[PVG_PLAN_COUNT];
    status_of("pvg_plan_card", pvg_plan_card(0, card));
    for (int i = 0; i < PVG_PRODUCT_COUNT; i++) wish[i] = pick(0, chance(80) ? 40 : 5000);
    wish[PVG_PRODUCT_DTYPE] = dtype(), wish[PVG_PRODUCT_KERNEL] = chance(80) ? 0 : pick(-1, 14);
    wish[PVG_PRODUCT_PRECISION] = precision();
    wish[PVG_PRODUCT_A_ALONG_K] = pick(0, 1), wish[PVG_PRODUCT_B_ALONG_K] = pick(0, 1);
    if (chance(50)) card[PVG_CARD_ARCHITECTURE] = chance(80) ? 90 : pick(-5, 130);
    TRACE("pvg_plan_product\n");
    status_of("pvg_plan_product", pvg_plan_product(card, wish, found));
}

static void lesson(void) {
    int64_t grid[3], block[3], occupancy = 0;
    double milliseconds = 0;
    pvg_array *operands[3], *out = needed(&arrays);
    for (int i = 0; i < 3; i++) {
        grid[i] = chance(97) ? pick(1, 3) : pick(-1, 70000);
        block[i] = chance(97) ? pick(1, 8) : pick(-1, 2000);
        operands[i] = wanted(&arrays, 70);
    }
    if (grid[0] * grid[1] * grid[2] > 100 && block[0] * block[1] * block[2] <= 1024) return;
    TRACE("pvg_learn\n");
    bad = 0; /* which operands a kernel takes is its own business */
    status_of("pvg_learn", pvg_learn((int)pick(-1, 10), grid, block, operands[0], operands[1],
                                     operands[2], out, pick(0, 2), &milliseconds, &occupancy));
}

static void (*const kinds[])(void) = {
    make_array, make_array,  make_array,   wrap_array,  release_array, release_array,
    ask_array,  view_array,  view_array,   view_array,  copy_array,    copy_array,
    fill_array, elementwise, elementwise,  elementwise, elementwise,   gather,
    reduce,     use_windows, multiply,     layer,       use_stream,    use_stream,
    use_event,  use_graph,   use_settings, plan,        lesson,        learning};

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
    pvg_graph *graph = pvg_graph_end(0);
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
    wrapped = deleted = 0;
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
        bad = fault = 0;
        if (tracing) fprintf(stderr, "%d:\n", i);
        while (arrays.count > ARRAYS - 8) {
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
    if (strcmp(argv[1], "replay") == 0 && argc == 4)
        return !in_child(strtoull(argv[2], NULL, 10), strtoll(argv[3], NULL, 10), 1, 1);
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
