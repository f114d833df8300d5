/* Calls of fuzz_round.h: reductions, products, and what networks are made of. */
#ifndef PVG_FUZZ_LAYERS_H
#define PVG_FUZZ_LAYERS_H

#include "fuzz_rows.h"

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
                                               chance(98) ? numbers : NULL, wanted(&arrays, 10)));
    if (kind == 1)
        handle_of("pvg_total_norm", pvg_total_norm((const pvg_array *const *)list, count, order),
                  NULL, &arrays);
    if (kind == 2) {
        const pvg_array *norm = chance(90) ? gradients[0] : NULL;
        if (!norm) bad = !is_live(&arrays, targets[0]) || !is_live(&arrays, targets[n - 1]);
        status_of("pvg_clip_norm", pvg_clip_norm(list, count, norm, (double)pick(0, 9)));
    }
    if (kind == 3)
        handle_of("pvg_dropout",
                  pvg_dropout(targets[0], (double)pick(0, 5) / 4, 1, 2, 3, wanted(&arrays, 10)),
                  NULL, &arrays);
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
        bad = 0;
        a = fresh(code, 2, sides), b = fresh(code, 2, sides + 1);
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
        x = fresh(code, SHAPE(rows, inputs)), weight = fresh(code, SHAPE(outputs, inputs));
        z = fresh(code, SHAPE(rows, outputs));
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
    three_of("pvg_dense_backward", status, results);
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
    a = kind < 1 || kind == 2 ? operand(code, SHAPE(n, channels, height, width))
                              : operand(code, SHAPE(n, out, rows, columns));
    if (kind == 1 && operation == PVG_MAX) b = operand(PVG_INT32, SHAPE(n, out, rows, columns));
    if (kind == 2 || kind == 3) b = operand(code, SHAPE(out, inputs, numbers[0], numbers[1]));
    if (kind == 4) b = operand(code, SHAPE(n, channels, height, width));
    TRACE("windows, kind %d of %p, %p\n", kind, (void *)a, (void *)b);
    if (kind == 0) made = pvg_pool(operation, a, NULL, numbers, 1);
    if (kind == 1) made = pvg_pool_backward(operation, a, b, numbers, 0, height, width);
    if (kind == 2) made = pvg_convolution(a, b, numbers, groups);
    if (kind == 3) made = pvg_convolution_input(a, b, numbers, groups, height, width);
    if (kind == 4) made = pvg_convolution_weight(a, b, numbers, groups);
    handle_of("windows", made, NULL, &arrays);
}

/* Sequences of rows (..., length, features), whose leading dimensions broadcast. */
static void attention(void) {
    const int64_t batch = pick(0, 2), heads = pick(1, 3), queries = pick(0, 9), keys = pick(1, 9);
    const int64_t features = pick(1, chance(90) ? 20 : 200), width = pick(1, 20);
    const int code = float_dtype(), causal = (int)pick(0, 1), shared_keys = chance(30);
    pvg_array *results[3] = {base, base, base};
    right = 1;
    pvg_array *query = operand(code, SHAPE(batch, heads, queries, features));
    pvg_array *k = operand(code, SHAPE(batch, shared_keys ? 1 : heads, keys, features));
    pvg_array *v = operand(code, SHAPE(batch, shared_keys ? 1 : heads, keys, width));
    const int of_mask = chance(50) ? PVG_BOOL : code;
    pvg_array *mask = chance(50) ? optional(60, of_mask, SHAPE(queries, keys))
                                 : optional(40, of_mask, SHAPE(batch, 1, 1, keys));
    pvg_array *logsum = optional(70, wide(code), SHAPE(batch, heads, queries));
    TRACE("pvg_attention(%p, %p, %p, mask %p, causal %d, %p)\n", (void *)query, (void *)k,
          (void *)v, (void *)mask, causal, (void *)logsum);
    pvg_array *made = pvg_attention(query, k, v, mask, 0.5, causal, logsum);
    handle_of("pvg_attention", made, NULL, &arrays);
    if (!made || !logsum) return;
    pvg_array *gradient = chance(50) ? made : operand(code, SHAPE(batch, heads, queries, width));
    three_of("pvg_attention_backward",
             pvg_attention_backward(gradient, query, k, v, mask, made, logsum, 0.5, causal,
                                    &results[0], &results[1], &results[2]),
             results);
}

static void recurrent_backward(int cell, const int64_t *sides, int code, pvg_array *weight,
                               int backwards, pvg_array *const *saved) {
    const int is_lstm = cell == PVG_CELL_LSTM;
    pvg_array *results[4] = {base, base, base, base};
    pvg_array *gradient = operand(code, SHAPE(sides[0], sides[1], sides[2]));
    pvg_array *last = optional(50, code, SHAPE(sides[1], sides[2]));
    pvg_array *state = optional(50 * is_lstm, code, SHAPE(sides[1], sides[2]));
    const int status = pvg_recurrent_backward(
        cell, gradient, last, state, weight, saved[0], saved[1], saved[2], backwards, &results[0],
        &results[1], &results[2], is_lstm ? &results[3] : NULL);
    three_of("pvg_recurrent_backward", status, results);
    if (status == PVG_OK && results[3] && results[3] != base) keep(&arrays, results[3]);
    if (status != PVG_OK) CHECK(results[3] == base);
}

static void recurrent(void) {
    static const int gates[] = {1, 1, 4, 3};
    const int64_t sides[3] = {pick(1, 4), pick(0, 5), pick(1, 9)}; /* steps, N, H */
    const int cell = (int)pick(0, 3), is_lstm = cell == PVG_CELL_LSTM, backwards = (int)pick(0, 1);
    const int code = float_dtype(), saves = chance(80);
    const int64_t width = gates[cell] * sides[2];
    pvg_array *results[3] = {base, base, base};
    right = 1;
    pvg_array *inputs = operand(code, SHAPE(sides[0], sides[1], width));
    pvg_array *weight = operand(code, SHAPE(width, sides[2]));
    pvg_array *bias = optional(60, code, SHAPE(width));
    pvg_array *hidden = operand(code, SHAPE(sides[1], sides[2]));
    pvg_array *state = is_lstm ? operand(code, SHAPE(sides[1], sides[2])) : NULL;
    TRACE("pvg_recurrent(%d, %p, %p, %p, %p, %p)\n", cell, (void *)inputs, (void *)weight,
          (void *)bias, (void *)hidden, (void *)state);
    const int status =
        pvg_recurrent(cell, inputs, weight, bias, hidden, state, backwards, &results[0],
                      is_lstm || saves ? &results[1] : NULL, saves ? &results[2] : NULL);
    three_of("pvg_recurrent", status, results);
    if (status != PVG_OK || !saves) return;
    for (int i = 0; i < 3; i++) CHECK(results[i] != base);
    recurrent_backward(cell, sides, code, weight, backwards, results);
}

#endif
