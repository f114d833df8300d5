/* Calls of fuzz_round.h: what a kernel finds out late: indices, matrices; rows. */
#ifndef PVG_FUZZ_ROWS_H
#define PVG_FUZZ_ROWS_H

#include "fuzz_arrays.h"

/* ---- Indices and matrices -------------------------------------------------------------------- */

/* New integers from low to high; whether their values are known, which those of a recording, or
 * after a fault, are not. */
static pvg_array *numbers_of(int64_t *values, int ndim, const int64_t *lengths, int64_t low,
                             int64_t high, int *known) {
    const int code = chance(50) ? PVG_INT32 : PVG_INT64;
    const int64_t n = product(ndim, lengths);
    pvg_array *a = fresh(code, ndim, lengths);
    int32_t narrow[64];
    for (int i = 0; i < n; i++) values[i] = pick(low, high), narrow[i] = (int32_t)values[i];
    *known = a && !recording && n <= 64;
    if (!*known) return a;
    prepare();
    const int status = pvg_copy_from_host(a, code == PVG_INT32 ? (void *)narrow : values, NULL);
    status_of("pvg_copy_from_host", status);
    prepared();
    *known = status == PVG_OK;
    return a;
}

/* Elements of an array at indices of which some are out of range, seldom all are known to fit. */
static void known_indices(void) {
    int64_t values[64];
    const int64_t length = pick(1, 9), n = pick(0, 8), beyond = chance(50) ? pick(0, 2) : 0;
    const int kind = (int)pick(0, 2), code = chance(80) ? PVG_FLOAT32 : PVG_INT16, axes[1] = {0};
    static const char *const names[] = {"gather", "scatter", "accumulate"};
    int known = 0;
    pvg_array *a = fresh(code, SHAPE(length, 3));
    pvg_array *indices =
        numbers_of(values, SHAPE(1, n), -length - beyond, length - 1 + beyond, &known);
    pvg_array *given = kind ? fresh(code, SHAPE(n, 3)) : NULL;
    const int before = late_count;
    right = !bad;
    for (int i = 0; i < n; i++)
        if (!known || values[i] < -length || values[i] >= length)
            expect_late(names[kind], known ? values[i] : ANY, 0, length, known && right);
    TRACE("%s at %" PRId64 " known indices, %d of them out of range\n", names[kind], n,
          late_count - before);
    const int64_t key[] = {PVG_KEY_ARRAY, (int64_t)indices, 0, 0};
    if (kind == 0 && chance(50))
        handle_of("pvg_index_get", pvg_index_get(a, 1, key), NULL, &arrays);
    else if (kind == 0)
        handle_of("pvg_gather", pvg_gather(a, indices, 1, axes, 0, 0), NULL, &arrays);
    else if (kind == 1 && chance(50) && given)
        status_of("pvg_index_set", pvg_index_set(a, 1, key, given, 0, NULL));
    else
        status_of(names[kind], kind == 1
                                   ? pvg_scatter(a, indices, 1, axes, 0, 0, given)
                                   : pvg_accumulate(PVG_ADD, a, indices, 1, axes, 0, 0, given));
    ended(before, pvg_last_status());
}

/* singular: 1 if a matrix is, -1 if none is, 0 if nobody knows. */
static void factor(pvg_array *a, pvg_array *b, int operation, int kind, int singular) {
    static const char *const names[] = {"cholesky", "solve", "inv", "det"};
    const int before = late_count;
    if (operation < 3 && singular >= 0)
        expect_late(operation == 1 && kind > 0 ? "solve_triangular" : names[operation], ANY, 0, 0,
                    singular);
    TRACE("%s of %p, %p, kind %d, singular %d\n", names[operation], (void *)a, (void *)b, kind,
          singular);
    pvg_array *made = operation == 0   ? pvg_cholesky(a, kind)
                      : operation == 1 ? pvg_solve(a, b, kind)
                      : operation == 2 ? pvg_inverse(a)
                                       : pvg_determinant(a, kind);
    handle_of(names[operation], made, NULL, &arrays);
    ended(before, pvg_last_status());
}

/* Matrices of zeros, of ones, or with ones on the diagonal alone. */
static void known_matrices(void) {
    const int64_t n = pick(0, 5), items = pick(0, 2), columns = pick(0, 2), zero = 0, one = 1;
    const int code = chance(50) ? PVG_FLOAT32 : PVG_FLOAT64, content = (int)pick(0, 2);
    const int operation = (int)pick(0, 3), kind = (int)pick(0, operation % 2 ? 2 : 1);
    pvg_array *a = fresh(code, SHAPE(items, n, n));
    pvg_array *b = operation == 1 ? fresh(code, SHAPE(items, n, columns)) : NULL;
    if (bad) return;
    prepare();
    const int status =
        content == 2 ? pvg_eye(a, 0) : pvg_fill(a, PVG_SCALAR_INT, content ? &one : &zero);
    status_of("contents of matrices", status);
    prepared();
    /* Ones: their first pivot is 1, and the next one 0; as triangles they are none of this. */
    const int zero_pivot = content == 0 || (content == 1 && n > 1 && !(operation == 1 && kind > 0));
    const int launched = items > 0 && n > 0 && (operation != 1 || columns > 0);
    right = 1;
    factor(a, b, operation, kind,
           status != PVG_OK || recording ? 0
           : launched && zero_pivot      ? 1
                                         : -1);
}

static void any_matrices(void) {
    pvg_array *a = needed(&arrays), *b = NULL;
    const int kind = chance(95) ? (int)pick(0, 2) : (int)pick(-1, 9), operation = (int)pick(0, 3);
    if (operation == 1) b = needed(&arrays);
    factor(a, b, operation, kind, 0);
}

/* An index for every axis that is named can be out of range; along one of length 0 it is, which
 * nobody has to look for. */
static void any_indices(void) {
    pvg_array *a = needed(&arrays), *indices = needed(&arrays);
    int axes[3], count = chance(90) ? 1 : (int)pick(-1, 3), trusted = chance(50);
    int place = (int)pick(-2, 2), writes = (int)pick(0, 2);
    for (int i = 0; i < 3; i++) axes[i] = (int)(chance(90) ? i : pick(-1, 3));
    const int *list = chance(97) ? axes : NULL, before = late_count;
    pvg_array *values = writes ? needed(&arrays) : NULL;
    static const char *const names[] = {"gather", "scatter", "accumulate"};
    for (int i = 0; i < count && list && is_live(&arrays, a); i++) {
        if (axes[i] < 0 || axes[i] >= pvg_array_ndim(a)) continue;
        const int64_t length = pvg_array_shape(a)[axes[i]];
        early_index |= length == 0;
        if (!trusted && length > 0) expect_late(names[writes], ANY, axes[i], length, 0);
    }
    TRACE("%s, %p at %p, %d axes, place %d, trusted %d, values %p\n", names[writes], (void *)a,
          (void *)indices, count, place, trusted, (void *)values);
    const int operation = chance(80) ? PVG_ADD + (int)pick(0, 8) : PVG_SUM;
    if (writes == 2)
        status_of("pvg_accumulate",
                  pvg_accumulate(operation, a, indices, count, list, place, trusted, values));
    else if (writes)
        status_of("pvg_scatter", pvg_scatter(a, indices, count, list, place, trusted, values));
    else
        handle_of("pvg_gather", pvg_gather(a, indices, count, list, place, trusted), NULL, &arrays);
    ended(before, pvg_last_status());
}

/* a[key] and a[key] = values, of keys with arrays or with what are none. */
static void any_keys(void) {
    static const int kinds[] = {0, 1, 1, 2, 3, 32, 32, 32, 33};
    const int writes = chance(50), n = chance(97) ? (int)pick(1, 4) : (int)pick(-1, 6);
    pvg_array *a = needed(&arrays), *values = NULL;
    const int before = late_count, sense = bad;
    int from_start = 0;
    if (writes && chance(60)) values = needed(&arrays);
    if (!values) bad = sense; /* a number, then */
    int64_t items[6 * 4];
    for (int i = 0; i < 6 * 4; i++) items[i] = pick(-4, 4);
    for (int i = 0; i < 6; i++) {
        items[4 * i] = kinds[pick(0, chance(99) ? 7 : 8)];
        if (items[4 * i] == 32 && i < n) items[4 * i + 1] = (int64_t)needed(&arrays);
        from_start |= items[4 * i] == 32 && i < n && items[4 * i + 2] == PVG_FROM_START;
    }
    for (int i = 0; is_live(&arrays, a) && i < pvg_array_ndim(a); i++) {
        if (pvg_array_shape(a)[i] == 0) continue;
        expect_late(writes ? "scatter" : "gather", ANY, i, pvg_array_shape(a)[i], 0);
        lates[late_count - 1].from_start = from_start;
    }
    const Scalar number = scalar();
    TRACE("a key of %d items of %p, values %p\n", n, (void *)a, (void *)values);
    if (writes)
        status_of("pvg_index_set", pvg_index_set(a, n, items, values, number.kind, &number.value));
    else
        handle_of("pvg_index_get", pvg_index_get(a, n, items), NULL, &arrays);
    ended(before, pvg_last_status());
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static int wide(int code) { return code == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32; }

static int float_dtype(void) { return (int)pick(PVG_FLOAT16, PVG_FLOAT64); }

static void labelled(void) {
    int64_t values[64];
    const int64_t rows = pick(0, 6), classes = pick(1, 40), ignored = chance(50) ? -100 : 0;
    const int64_t beyond = chance(40) ? pick(0, 3) : 0;
    const int code = float_dtype();
    const double smoothing = chance(95) ? (double)pick(0, 4) / 4 : -1;
    int known = 0;
    right = smoothing >= 0;
    pvg_array *x = operand(code, SHAPE(rows, classes));
    pvg_array *labels = numbers_of(values, SHAPE(rows), -beyond, classes - 1 + beyond, &known);
    pvg_array *weight = optional(40, wide(code), SHAPE(classes));
    const int of_mean = chance(40);
    pvg_array *statistics = operand(wide(code), SHAPE(3 + of_mean, rows));
    const int before = late_count, ndim = pvg_array_ndim(x);
    const int64_t most = ndim > 0 ? pvg_array_shape(x)[ndim - 1] : 0;
    for (int i = 0; i < rows && most > 0; i++)
        if (!known || (values[i] != ignored && (values[i] < 0 || values[i] >= most)))
            expect_late("cross_entropy", known ? values[i] : ANY, 0, most, known && right);
    TRACE("pvg_cross_entropy of %p, %p, %d labels out of range\n", (void *)x, (void *)labels,
          late_count - before);
    pvg_array *losses = pvg_cross_entropy(x, labels, weight, ignored, smoothing, statistics);
    handle_of("pvg_cross_entropy", losses, NULL, &arrays);
    ended(before, pvg_last_status());
    if (!losses) return;
    pvg_array *gradient = chance(80) ? losses : NULL; /* NULL: ones */
    if (gradient && chance(50) && !of_mean) gradient = optional(100, wide(code), SHAPE(rows));
    handle_of(
        "pvg_cross_entropy_backward",
        pvg_cross_entropy_backward(gradient, x, labels, weight, statistics, ignored, smoothing),
        NULL, &arrays);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Three new handles, or none of them where something failed. */
static void three_of(const char *name, int status, pvg_array *const *results) {
    status_of(name, status);
    for (int i = 0; i < 3; i++) {
        if (status != PVG_OK) CHECK(results[i] == base);
        if (results[i] && results[i] != base) keep(&arrays, results[i]);
    }
}

static void normalised(void) {
    const int64_t items = pick(0, 3), parts = pick(1, 3), channels = parts * pick(1, 3);
    const int64_t inner = chance(50) ? 1 : pick(1, 40), way = pick(0, 2);
    const int64_t groups = way == 0 ? parts : way == 1 ? 0 : chance(50) ? -1 : 1;
    const int code = float_dtype(), centered = groups > 0 ? (int)pick(0, 1) : 1;
    const int64_t count = groups > 0 ? items * groups : channels;
    pvg_array *results[3] = {base, base, base};
    right = 1;
    pvg_array *x = operand(code, SHAPE(items, channels, inner));
    pvg_array *weight = optional(70, chance(80) ? code : float_dtype(), SHAPE(channels));
    pvg_array *bias = optional(70, chance(80) ? code : float_dtype(), SHAPE(channels));
    pvg_array *statistics = groups > 0 ? optional(80, wide(code), SHAPE(2, count))
                                       : operand(wide(code), SHAPE(2, count));
    if (items == 0 && groups <= 0) right = 0;
    TRACE("pvg_normalize(%p, %p, %p, groups %" PRId64 ", %d, %p)\n", (void *)x, (void *)weight,
          (void *)bias, groups, centered, (void *)statistics);
    pvg_array *made =
        pvg_normalize(x, weight, bias, 1, 1, groups, centered, chance(90) ? 1e-5 : 0, statistics);
    handle_of("pvg_normalize", made, NULL, &arrays);
    if (!made || !statistics) return;
    const int wanted_too = chance(70);
    pvg_array *gradient = chance(50) ? made : operand(code, SHAPE(items, channels, inner));
    if (!wanted_too) results[1] = results[2] = NULL;
    const int status = pvg_normalize_backward(
        gradient, x, weight, statistics, 1, 1, groups, centered, 1e-5, &results[0],
        wanted_too ? &results[1] : NULL, wanted_too ? &results[2] : NULL);
    if (!wanted_too && status != PVG_OK) results[1] = results[2] = base;
    three_of("pvg_normalize_backward", status, results);
}

static void activated(void) {
    const int code = float_dtype(), which = (int)(chance(97) ? pick(0, 7) : pick(-1, 9));
    const int64_t n = chance(80) ? pick(0, 70) : pick(0, 9000);
    right = which >= 0 && which <= PVG_CURVE_ELU;
    pvg_array *x = operand(code, SHAPE(n));
    TRACE("activation %d of %p\n", which, (void *)x);
    handle_of("pvg_activate", pvg_activate(which, x, 0.5, 1), NULL, &arrays);
    bad = 0, right = which >= 0 && which <= PVG_CURVE_SILU;
    x = operand(code, SHAPE(n));
    pvg_array *gradient = operand(code, SHAPE(n));
    TRACE("activation %d, backward, of %p, %p\n", which, (void *)gradient, (void *)x);
    handle_of("pvg_activate_backward", pvg_activate_backward(which, gradient, x, 0.5, 1), NULL,
              &arrays);
}

static void paired(void) {
    const int code = float_dtype(), reduction = (int)pick(0, 2);
    const int which = (int)(chance(97) ? pick(0, 4) : pick(-1, 6));
    const int64_t n = chance(80) ? pick(0, 70) : pick(0, 9000);
    const double number = chance(95) ? (double)pick(0, 3) / 2 : -1;
    right = which >= 0 && which <= PVG_LOSS_LOGITS && number >= 0;
    pvg_array *x = operand(code, SHAPE(n)), *t = operand(code, SHAPE(n));
    TRACE("loss %d of %p, %p, reduction %d\n", which, (void *)x, (void *)t, reduction);
    pvg_array *made = pvg_pair_loss(which, x, t, number, reduction);
    handle_of("pvg_pair_loss", made, NULL, &arrays);
    if (!made) return;
    pvg_array *gradient = chance(80) ? made : NULL;
    made = pvg_pair_loss_backward(which, gradient, x, t, number, reduction, (int)pick(0, 1));
    handle_of("pvg_pair_loss_backward", made, NULL, &arrays);
}

static void exponentials(void) {
    const int operation = PVG_SOFTMAX + (int)pick(0, 2), kind = (int)pick(0, 2);
    pvg_array *a = needed(&arrays), *out = wanted(&arrays, 15), *made = NULL;
    int axes[3] = {(int)pick(-1, 1), (int)pick(-3, 2), 0}, naxes = (int)pick(-1, 2);
    const int *list = naxes < 0 && chance(95) ? NULL : axes, keepdims = (int)pick(0, 1);
    TRACE("exponentials %d, %d of %p, out %p\n", kind, operation, (void *)a, (void *)out);
    if (kind == 0) {
        made = pvg_softmax(operation, a, naxes, list, keepdims, out);
        handle_of("pvg_softmax", made, out, &arrays);
    } else if (kind == 1) {
        made = pvg_var(a, naxes, list, (double)pick(0, 4) / 2, (int)pick(0, 1), keepdims, out);
        handle_of("pvg_var", made, out, &arrays);
    } else {
        bad = 0, right = 1;
        const int code = float_dtype();
        pvg_array *y = operand(code, SHAPE(3, 33)), *gradient = operand(code, SHAPE(3, 33));
        made = pvg_softmax_backward(chance(50) ? PVG_SOFTMAX : PVG_LOG_SOFTMAX, gradient, y,
                                    (int)pick(0, 2));
        handle_of("pvg_softmax_backward", made, NULL, &arrays);
    }
}

static void bounds(void) {
    const int kind = (int)pick(0, 4);
    pvg_array *a = needed(&arrays), *b = kind == 1 ? needed(&arrays) : NULL, *made = NULL;
    pvg_array *out = kind < 3 ? wanted(&arrays, 20) : NULL;
    Scalar low = scalar(), high = scalar();
    high.kind = low.kind;
    TRACE("bounds %d of %p %p, out %p\n", kind, (void *)a, (void *)b, (void *)out);
    if (kind == 0)
        made = pvg_clip(a, low.kind, chance(80) ? &low.value : NULL,
                        chance(80) ? &high.value : NULL, out);
    if (kind == 1) made = pvg_isclose(a, b, 1e-5, 1e-8, chance(98) ? (int)pick(0, 1) : 2, out);
    if (kind == 2) made = pvg_nan_to_num(a, 0, 1, -1, out);
    if (kind < 3) {
        handle_of("bounds", made, out, &arrays);
    } else if (kind == 3) {
        status_of("pvg_eye", pvg_eye(a, pick(-9, 9)));
    } else {
        const int64_t start = pick(-9, 9), step = pick(-2, 2);
        const double from = (double)start / 2, by = (double)step / 2;
        const int of_floats = chance(90) && is_live(&arrays, a) && is_float(pvg_array_dtype(a));
        status_of("pvg_sequence",
                  of_floats
                      ? pvg_sequence(a, PVG_SCALAR_FLOAT, &from, &by, chance(50) ? &by : NULL)
                      : pvg_sequence(a, PVG_SCALAR_INT, &start, &step, chance(50) ? &step : NULL));
    }
}

#endif
