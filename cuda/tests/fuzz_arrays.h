/* Calls of fuzz_round.h: arrays, their memory, views, copies and elementwise functions. */
#ifndef PVG_FUZZ_ARRAYS_H
#define PVG_FUZZ_ARRAYS_H

#include "fuzz_late.h"

/* ---- New arrays ------------------------------------------------------------------------------ */

/* Contents, which every result needs: what was never written can be NaN, and is no bool, and a
 * round does the same again only if nothing is left of others. */
static void fill(pvg_array *a) {
    const int code = pvg_array_dtype(a);
    int64_t numbers[64], n = pvg_array_size(a), whole = pick(0, 3);
    const int numeric = code >= PVG_INT8 && code <= PVG_UINT64;
    if (is_float(code) && chance(50)) {
        status_of("pvg_random", pvg_random(a, (int)pick(1, 3), draw(0, 1), 0, 0));
    } else if (numeric && n <= 64 && !recording && chance(50)) {
        for (int i = 0; i < 64; i++) set_value(code, numbers, i, (double)pick(0, 5));
        status_of("pvg_copy_from_host", pvg_copy_from_host(a, numbers, NULL));
    } else {
        status_of("pvg_fill",
                  pvg_fill(a, PVG_SCALAR_INT, code == PVG_BOOL ? &(int64_t){whole & 1} : &whole));
    }
}

static pvg_array *fresh(int code, int ndim, const int64_t *lengths) {
    prepare();
    pvg_array *made = pvg_array_empty(0, code, ndim, lengths);
    if (handle_of("pvg_array_empty", made, NULL, &arrays)) fill(made);
    prepared();
    bad |= !made;
    return made;
}

/* The same, but for some that do not fit. */
static pvg_array *operand(int code, int ndim, const int64_t *lengths) {
    if (chance(96)) return fresh(code, ndim, lengths);
    right = 0;
    return needed(&arrays);
}

/* One that a call can do without. */
static pvg_array *optional(int percent, int code, int ndim, const int64_t *lengths) {
    const int before = bad;
    pvg_array *a = chance(percent) ? operand(code, ndim, lengths) : NULL;
    if (!a) bad = before;
    return a;
}

static void make_array(void) {
    int on = device(), code = dtype(), ndim = random_shape();
    const int64_t *lengths = chance(98) ? shape : NULL;
    bad |= !lengths && ndim > 0;
    TRACE("pvg_array_empty(%d, %d, %d)\n", on, code, ndim);
    pvg_array *made = pvg_array_empty(on, code, ndim, lengths);
    if (handle_of("pvg_array_empty", made, NULL, &arrays)) {
        take_back();
        fill(made);
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
    pvg_array *variable = a;
    if (released("pvg_array_release",
                 chance(50) ? pvg_array_release(a) : pvg_array_drop(&variable)))
        forget(&arrays, a);
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
    CHECK_EQUAL(pvg_array_device(a) == -1, bad);
    CHECK_EQUAL(pvg_array_is_contiguous(a) == -1, bad);
    CHECK_EQUAL(pvg_array_is_readonly(a) == -1, bad);
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
    early_index = kind == 0 || kind == 6;
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
    if (kind == 2 && chance(20)) {
        int64_t numbers[3];
        bad = !is_live(&arrays, a) || pvg_array_size(a) != 1;
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

static void elementwise(void) {
    pvg_array *a = needed(&arrays), *b = NULL, *c = NULL, *made = NULL;
    int kind = (int)pick(0, 12), code = (int)(kind == 0 ? pick(0, 49) : pick(99, 130));
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
    if (kind == 4) made = pvg_cast(a, chance(80) ? dtype() : -1, out);
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
    if (kind == 12) {
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

#endif
