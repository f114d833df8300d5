/* pvg_attention and its backward pass beside loops over all queries and keys, at offsets into
 * memory, and what is refused. */
#include "check.h"
#include <math.h>

enum { ITEMS = 2, MOST = 70 };

typedef struct {
    int64_t length, size, features, width;
    int causal, mask; /* mask: 0 none, 1 bool, 2 of float64, of every key */
} Case;

/* The weights (ITEMS, length, size) and the result of rows as they lie; scores are of 0.25. */
static void weights_on_host(const Case *c, const double *q, const double *k, const double *mask,
                            double *weights) {
    for (int64_t row = 0; row < ITEMS * c->length; row++) {
        double *own = weights + row * c->size, most = -INFINITY, sum = 0;
        for (int64_t s = 0; s < c->size; s++) {
            const int64_t key = row / c->length * c->size + s;
            double score = 0;
            for (int64_t e = 0; e < c->features; e++)
                score += q[row * c->features + e] * k[key * c->features + e];
            score *= 0.25;
            if (c->mask == 2) score += mask[s];
            if ((c->mask == 1 && mask[s] == 0) || (c->causal && s > row % c->length))
                score = -INFINITY;
            own[s] = score;
            if (score > most) most = score;
        }
        for (int64_t s = 0; s < c->size; s++) sum += own[s] = exp(own[s] - most);
        for (int64_t s = 0; s < c->size; s++) own[s] /= sum;
    }
}

/* Random numbers of a dtype, as an array that begins an element into its memory, and as doubles. */
static pvg_array *numbers(int dtype, int64_t items, int64_t rows, int64_t columns, double **values,
                          uint64_t *state) {
    const int64_t n = items * rows * columns, one = 1;
    void *whole = host_memory(dtype, n + 1);
    *values = host_memory(PVG_FLOAT64, n);
    for (int64_t i = 0; i <= n; i++) set_value(dtype, whole, i, random_real(state, -1, 1));
    for (int64_t i = 0; i < n; i++) (*values)[i] = value_at(dtype, whole, i + 1);
    pvg_array *all = array_of(dtype, SHAPE(n + 1), whole),
              *flat = MADE(pvg_slice(all, &one, &one, &n));
    pvg_array *result = MADE(pvg_reshape(flat, SHAPE(items, rows, columns)));
    RELEASE(all, flat);
    free(whole);
    return result;
}

static void check_result(int line, const char *what, pvg_array *result, int64_t rows,
                         int64_t columns, const double *expected) {
    const int dtype = pvg_array_dtype(result);
    const double tolerance = pvg_dtype_size(dtype) == 8   ? 1e-12
                             : pvg_dtype_size(dtype) == 4 ? 1e-4
                                                          : 0.1;
    void *rounded = host_memory(dtype, ITEMS * rows * columns);
    for (int64_t i = 0; i < ITEMS * rows * columns; i++) set_value(dtype, rounded, i, expected[i]);
    check_array(__FILE__, line, what, result, dtype, SHAPE(ITEMS, rows, columns), rounded,
                tolerance);
    free(rounded);
}

/* result = weights @ values, and the gradients by the weights and the result's gradient. */
static void gradients_on_host(const Case *c, const double *weights, const double *q,
                              const double *k, const double *v, const double *g, double *result,
                              double *dq, double *dk, double *dv) {
    for (int64_t row = 0; row < ITEMS * c->length; row++) {
        const int64_t first = row / c->length * c->size;
        double *out = result + row * c->width, whole = 0;
        for (int64_t w = 0; w < c->width; w++) {
            for (int64_t s = 0; s < c->size; s++)
                out[w] += weights[row * c->size + s] * v[(first + s) * c->width + w];
            whole += out[w] * g[row * c->width + w];
        }
        for (int64_t s = 0; s < c->size; s++) {
            const double weight = weights[row * c->size + s];
            double slope = 0;
            for (int64_t w = 0; w < c->width; w++) {
                slope += g[row * c->width + w] * v[(first + s) * c->width + w];
                dv[(first + s) * c->width + w] += weight * g[row * c->width + w];
            }
            slope = weight * (slope - whole) * 0.25;
            for (int64_t e = 0; e < c->features; e++) {
                dq[row * c->features + e] += slope * k[(first + s) * c->features + e];
                dk[(first + s) * c->features + e] += slope * q[row * c->features + e];
            }
        }
    }
}

static pvg_array *mask_of(const Case *c, double *mask, uint64_t *state) {
    const int dtype = c->mask == 1 ? PVG_BOOL : PVG_FLOAT64;
    void *values = host_memory(dtype, c->size);
    for (int64_t s = 0; s < c->size; s++) {
        mask[s] =
            c->mask == 1 ? s == 0 || random_integer(state, 0, 3) > 0 : random_real(state, -1, 1);
        set_value(dtype, values, s, mask[s]);
    }
    pvg_array *array = c->mask ? array_of(dtype, SHAPE(c->size), values) : NULL;
    free(values);
    return array;
}

static void check_case(int line, int dtype, Case c, uint64_t *state) {
    double *q, *k, *v, *g, mask[MOST];
    pvg_array *query = numbers(dtype, ITEMS, c.length, c.features, &q, state),
              *keys = numbers(dtype, ITEMS, c.size, c.features, &k, state),
              *values = numbers(dtype, ITEMS, c.size, c.width, &v, state),
              *gradient = numbers(dtype, ITEMS, c.length, c.width, &g, state);
    pvg_array *given = mask_of(&c, mask, state);
    pvg_array *logsum = MADE(pvg_array_empty(0, dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32,
                                             SHAPE(ITEMS, c.length)));
    double *weights = calloc((size_t)(ITEMS * c.length * c.size), sizeof(double));
    double *exact[4];
    const int64_t rows[] = {c.length, c.length, c.size, c.size};
    const int64_t columns[] = {c.width, c.features, c.features, c.width};
    for (int i = 0; i < 4; i++)
        exact[i] = calloc((size_t)(ITEMS * rows[i] * columns[i]), sizeof(double));
    weights_on_host(&c, q, k, mask, weights);
    gradients_on_host(&c, weights, q, k, v, g, exact[0], exact[1], exact[2], exact[3]);
    pvg_array *found[4] = {NULL, NULL, NULL, NULL};
    found[0] = MADE(pvg_attention(query, keys, values, given, 0.25, c.causal, logsum));
    CHECK_OK(pvg_attention_backward(gradient, query, keys, values, given, found[0], logsum, 0.25,
                                    c.causal, &found[1], &found[2], &found[3]));
    static const char *const names[] = {"result", "dquery", "dkeys", "dvalues"};
    for (int i = 0; i < 4; i++) {
        check_result(line, names[i], found[i], rows[i], columns[i], exact[i]);
        RELEASE(found[i]);
        free(exact[i]);
    }
    RELEASE(query, keys, values, gradient, given, logsum);
    free(q), free(k), free(v), free(g), free(weights);
}

static void tiles_and_their_edges(void) {
    static const Case cases[] = {{1, 1, 1, 1, 0, 0},     {5, 3, 4, 2, 0, 1},
                                 {33, 70, 8, 5, 0, 2},   {65, 64, 33, 64, 1, 0},
                                 {70, 70, 3, 9, 1, 1},   {7, 65, 65, 130, 0, 0},
                                 {3, 5, 256, 255, 1, 2}, {2, 40, 6, 31, 0, 1}};
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (size_t i = 0; i < COUNT(cases) && is_float(all_dtypes[d]); i++)
            check_case(__LINE__, all_dtypes[d], cases[i], &state);
}

static void what_is_refused(void) {
    uint64_t state = 2;
    pvg_array *x = random_array(PVG_FLOAT32, SHAPE(3, 4), &state),
              *other = random_array(PVG_FLOAT64, SHAPE(3, 4), &state),
              *whole = random_array(PVG_INT32, SHAPE(3, 3), &state),
              *wide = random_array(PVG_FLOAT32, SHAPE(3, 257), &state),
              *sums = random_array(PVG_FLOAT32, SHAPE(3), &state), *a, *b, *c;
    CHECK_NULL(PVG_ERROR_VALUE, pvg_attention(NULL, x, x, NULL, 1, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_attention(sums, x, x, NULL, 1, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_attention(x, wide, x, NULL, 1, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_attention(x, x, wide, NULL, 1, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_attention(x, x, x, NULL, 1, 2, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_attention(x, x, x, x, 1, 0, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_attention(x, x, other, NULL, 1, 0, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_attention(x, x, x, whole, 1, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_attention(x, x, x, NULL, 1, 0, x));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_attention(x, x, x, sums, 1, 0, sums));
    CHECK_STATUS(pvg_attention_backward(wide, x, x, x, NULL, x, sums, 1, 0, &a, &b, &c),
                 PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_attention_backward(x, x, x, x, NULL, x, x, 1, 0, &a, &b, &c), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_attention_backward(other, x, x, x, NULL, x, sums, 1, 0, &a, &b, &c),
                 PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_attention_backward(x, x, x, x, NULL, x, sums, 1, 0, &a, NULL, &c),
                 PVG_ERROR_VALUE);
    RELEASE(x, other, whole, wide, sums);
}

int main(void) {
    begin("test_attention");
    RUN(tiles_and_their_edges);
    RUN(what_is_refused);
    return finish();
}
