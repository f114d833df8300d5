/* pvg_pool and pvg_convolution, and their gradients, of windows drawn at random: against loops over
 * the windows on the host, and that nothing beside the results is written or read. */
#include "check.h"

typedef struct {
    int64_t numbers[PVG_WINDOWS_COUNT]; /* as of pvg_windows */
    int64_t height, width, rows, columns;
} Windows;

static int64_t along(const Windows *w, int axis, int64_t window, int64_t i) {
    return window * w->numbers[PVG_WINDOWS_STRIDE + axis] - w->numbers[PVG_WINDOWS_BEFORE + axis] +
           i * w->numbers[PVG_WINDOWS_DILATION + axis];
}
/* The place in a matrix of an element of a window, or -1 around it. */
static int64_t place_of(const Windows *w, int64_t row, int64_t column, int64_t i, int64_t j) {
    const int64_t y = along(w, 0, row, i), x = along(w, 1, column, j);
    return y < 0 || x < 0 || y >= w->height || x >= w->width ? -1 : y * w->width + x;
}

static Windows random_windows(uint64_t *state) {
    for (;;) {
        Windows w;
        int64_t size[2], count[2];
        for (int axis = 0; axis < 2; axis++) {
            size[axis] = random_integer(state, 1, 9);
            w.numbers[PVG_WINDOWS_KERNEL + axis] = random_integer(state, 1, 4);
            w.numbers[PVG_WINDOWS_STRIDE + axis] = random_integer(state, 1, 3);
            w.numbers[PVG_WINDOWS_BEFORE + axis] = random_integer(state, 0, 2);
            w.numbers[PVG_WINDOWS_BEHIND + axis] = random_integer(state, 0, 2);
            w.numbers[PVG_WINDOWS_DILATION + axis] = random_integer(state, 1, 2);
            const int64_t rest =
                size[axis] + w.numbers[PVG_WINDOWS_BEFORE + axis] +
                w.numbers[PVG_WINDOWS_BEHIND + axis] - 1 -
                (w.numbers[PVG_WINDOWS_KERNEL + axis] - 1) * w.numbers[PVG_WINDOWS_DILATION + axis];
            count[axis] = rest < 0 ? 0 : rest / w.numbers[PVG_WINDOWS_STRIDE + axis] + 1;
        }
        w.height = size[0], w.width = size[1], w.rows = count[0], w.columns = count[1];
        if (w.rows > 0 && w.columns > 0) return w;
    }
}

/* Small integers; `offset` elements into memory, with what is beside them kept. */
static pvg_array *placed(int dtype, int ndim, const int64_t *shape, int64_t offset,
                         uint64_t *state) {
    const int64_t n = product(ndim, shape), start[1] = {offset}, one[1] = {1};
    pvg_array *base = random_array(dtype, SHAPE(n + offset + 1), state);
    pvg_array *part = MADE(pvg_slice(base, start, one, &n));
    pvg_array *view = MADE(pvg_reshape(part, ndim, shape));
    RELEASE(base, part);
    return view;
}

/* ---- Pools ----------------------------------------------------------------------------------- */

static void check_pools(int dtype, int64_t offset, uint64_t *state) {
    const Windows w = random_windows(state);
    const int64_t n = random_integer(state, 1, 3), size = w.rows * w.columns;
    const int64_t picture = w.height * w.width, high = w.numbers[0], wide = w.numbers[1];
    pvg_array *a = placed(dtype, SHAPE(n, w.height, w.width), offset, state);
    pvg_array *g = placed(dtype, SHAPE(n, w.rows, w.columns), offset, state);
    pvg_array *places = MADE(pvg_array_empty(0, PVG_INT32, SHAPE(n, w.rows, w.columns)));
    void *values = host_copy(a), *slopes = host_copy(g);
    void *best = host_memory(dtype, n * size), *at = host_memory(PVG_INT32, n * size);
    void *means = host_memory(dtype, n * size), *of_best = host_memory(dtype, n * picture);
    void *of_means = host_memory(dtype, n * picture);
    double *sums = calloc((size_t)(2 * n * picture), sizeof *sums);
    const int inside = (int)random_integer(state, 0, 1);
    for (int64_t o = 0; o < n * size; o++) {
        const int64_t matrix = o / size * picture, row = o % size / w.columns;
        double most = -INFINITY, sum = 0, count = 0;
        int64_t found = -1, from = -1;
        for (int64_t i = 0; i < high * wide; i++) {
            const int64_t p = place_of(&w, row, o % w.columns, i / wide, i % wide);
            if (p < 0) continue;
            const double x = value_at(dtype, values, matrix + p);
            if (found < 0 || x > most) most = x, found = i, from = p;
            sum += x, count++;
        }
        if (!inside) count = (double)(high * wide);
        const double slope = value_at(dtype, slopes, o);
        for (int64_t i = 0; i < high * wide; i++) {
            const int64_t p = place_of(&w, row, o % w.columns, i / wide, i % wide);
            if (p >= 0) sums[n * picture + matrix + p] += slope / count;
        }
        if (from >= 0) sums[matrix + from] += slope;
        set_value(dtype, best, o, most);
        set_value(PVG_INT32, at, o, (double)found);
        set_value(dtype, means, o, sum / count);
    }
    for (int64_t i = 0; i < n * picture; i++) {
        set_value(dtype, of_best, i, sums[i]);
        set_value(dtype, of_means, i, sums[n * picture + i]);
    }
    const double tolerance = pvg_dtype_size(dtype) == 2 ? 0.05 : 1e-5;
    const int64_t pooled[3] = {n, w.rows, w.columns}, whole[3] = {n, w.height, w.width};
    pvg_array *y = MADE(pvg_pool(PVG_MAX, a, places, w.numbers, 1));
    pvg_array *dx = MADE(pvg_pool_backward(PVG_MAX, g, places, w.numbers, 1, w.height, w.width));
    CHECK_ARRAY(y, dtype, 3, pooled, best, 0);
    CHECK_ARRAY(places, PVG_INT32, 3, pooled, at, 0);
    CHECK_ARRAY(dx, dtype, 3, whole, of_best, 0);
    RELEASE(y, dx);
    int64_t empty = 0; /* windows beside the matrix, whose mean is of nothing */
    for (int64_t o = 0; o < n * size; o++) empty += value_at(PVG_INT32, at, o) < 0;
    if (!inside || !empty) {
        y = MADE(pvg_pool(PVG_MEAN, a, NULL, w.numbers, !inside));
        dx = MADE(pvg_pool_backward(PVG_MEAN, g, NULL, w.numbers, !inside, w.height, w.width));
        CHECK_ARRAY(y, dtype, 3, pooled, means, tolerance);
        CHECK_ARRAY(dx, dtype, 3, whole, of_means, tolerance * 4);
        RELEASE(y, dx);
    }
    free(values), free(slopes), free(best), free(at), free(means), free(of_best), free(of_means);
    free(sums);
    RELEASE(a, g, places);
}

static void pools(void) {
    const int dtypes[] = {PVG_FLOAT16, PVG_BFLOAT16, PVG_FLOAT32, PVG_FLOAT64};
    uint64_t state = 1;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int64_t i = 0; i < 25; i++) check_pools(dtypes[d], i % 5, &state);
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

static void check_convolution(int dtype, int64_t offset, uint64_t *state) {
    const Windows w = random_windows(state);
    const int64_t groups = random_integer(state, 1, 3), inputs = random_integer(state, 1, 3);
    const int64_t outputs = random_integer(state, 1, 3), n = random_integer(state, 1, 2);
    const int64_t size = w.rows * w.columns, picture = w.height * w.width;
    const int64_t wide = w.numbers[1], kernel = w.numbers[0] * wide, channels = groups * inputs;
    const int64_t out = groups * outputs, xs[4] = {n, channels, w.height, w.width};
    const int64_t ws[4] = {out, inputs, w.numbers[0], wide}, gs[4] = {n, out, w.rows, w.columns};
    pvg_array *x = placed(dtype, 4, xs, offset, state), *weight = placed(dtype, 4, ws, 1, state);
    pvg_array *g = placed(dtype, 4, gs, offset, state);
    void *hx = host_copy(x), *hw = host_copy(weight), *hg = host_copy(g);
    double *y = calloc((size_t)product(4, gs), sizeof *y);
    double *dx = calloc((size_t)product(4, xs), sizeof *dx);
    double *dw = calloc((size_t)product(4, ws), sizeof *dw);
    for (int64_t o = 0; o < n * out * size; o++) {
        const int64_t k = o / size % out, first = o / size / out * channels + k / outputs * inputs;
        for (int64_t i = 0; i < inputs * kernel; i++) {
            const int64_t p =
                place_of(&w, o % size / w.columns, o % w.columns, i % kernel / wide, i % wide);
            if (p < 0) continue;
            const int64_t at = (first + i / kernel) * picture + p, e = k * inputs * kernel + i;
            const double slope = value_at(dtype, hg, o);
            y[o] += value_at(dtype, hx, at) * value_at(dtype, hw, e);
            dx[at] += slope * value_at(dtype, hw, e);
            dw[e] += slope * value_at(dtype, hx, at);
        }
    }
    pvg_array *results[] = {
        MADE(pvg_convolution(x, weight, w.numbers, groups)),
        MADE(pvg_convolution_input(g, weight, w.numbers, groups, w.height, w.width)),
        MADE(pvg_convolution_weight(g, x, w.numbers, groups))};
    const int64_t *shapes[] = {gs, xs, ws};
    const double *sums[] = {y, dx, dw};
    for (int i = 0; i < 3; i++) {
        const int64_t count = product(4, shapes[i]);
        void *expected = host_memory(dtype, count);
        for (int64_t e = 0; e < count; e++) set_value(dtype, expected, e, sums[i][e]);
        CHECK_ARRAY(results[i], dtype, 4, shapes[i], expected, 0); /* integers: exact */
        free(expected);
        RELEASE(results[i]);
    }
    free(hx), free(hw), free(hg), free(y), free(dx), free(dw);
    RELEASE(x, weight, g);
}

static void convolutions(void) {
    const int dtypes[] = {PVG_FLOAT16, PVG_FLOAT32, PVG_FLOAT64};
    uint64_t state = 2;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int64_t i = 0; i < 25; i++) check_convolution(dtypes[d], i % 5, &state);
}

static void what_is_refused(void) {
    uint64_t state = 3;
    const int64_t plain[PVG_WINDOWS_COUNT] = {2, 2, 2, 2, 0, 0, 0, 0, 1, 1};
    const int64_t large[PVG_WINDOWS_COUNT] = {5, 2, 2, 2, 0, 0, 0, 0, 1, 1};
    const int64_t none[PVG_WINDOWS_COUNT] = {2, 2, 0, 2, 0, 0, 0, 0, 1, 1};
    pvg_array *x = random_array(PVG_FLOAT32, SHAPE(1, 2, 4, 4), &state),
              *w = random_array(PVG_FLOAT32, SHAPE(2, 2, 2, 2), &state),
              *g = random_array(PVG_FLOAT32, SHAPE(1, 2, 2, 2), &state),
              *places = random_array(PVG_INT32, SHAPE(1, 2, 2, 2), &state);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool(PVG_SUM, x, NULL, plain, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool(PVG_MAX, x, NULL, large, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool(PVG_MAX, x, NULL, none, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool(PVG_MAX, x, NULL, NULL, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool(PVG_MAX, x, g, plain, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool(PVG_MEAN, x, places, plain, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool(PVG_MEAN, x, NULL, plain, 2));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_pool(PVG_MEAN, places, NULL, plain, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool(PVG_MEAN, NULL, NULL, plain, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool_backward(PVG_MAX, g, NULL, plain, 1, 4, 4));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_pool_backward(PVG_MAX, g, places, plain, 1, 4, 6));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_convolution(x, w, large, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_convolution(x, w, plain, 2));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_convolution(x, w, plain, 0));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_convolution(x, places, plain, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_convolution(NULL, w, plain, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_convolution_input(g, w, plain, 1, 4, 9));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_convolution_input(g, w, plain, 3, 4, 4));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_convolution_weight(x, x, plain, 1));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_convolution_weight(g, x, none, 1));
    RELEASE(x, w, g, places);
}

int main(void) {
    begin("test_windows");
    RUN(pools);
    RUN(convolutions);
    RUN(what_is_refused);
    return finish();
}
