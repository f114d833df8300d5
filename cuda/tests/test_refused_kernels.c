/* What the functions behind kernels refuse; test_refused.c: what the runtime and arrays do. */
#include "refused.h"

enum { V = PVG_ERROR_VALUE, T = PVG_ERROR_TYPE };
#define TEN_AXES 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
#define MANY_AXES TEN_AXES, TEN_AXES, TEN_AXES, 1, 1 /* PVG_MAX_NDIM */
static const int64_t two_to_31 = (int64_t)1 << 31, two_to_32 = (int64_t)1 << 32;

static void accumulate(void) {
    const int axis = 0, both[] = {0, 1};
    pvg_array *a = floats(SHAPE(8)), *value = floats(SHAPE(1)), *matrix = floats(SHAPE(3, 3));
    pvg_array *read_only = keep(MADE(pvg_broadcast_to(a, SHAPE(8))), NULL);
    pvg_array *few = integers(SHAPE(1, 2)), *far = endless(PVG_INT64, SHAPE(1, two_to_32));
    pvg_array *truths = given(PVG_BOOL, SHAPE(8)), *complex = given(PVG_COMPLEX64, SHAPE(8));
    REFUSED(V, "accumulates fewer than 2^32 indices, not 4294967296",
            pvg_accumulate(PVG_ADD, a, far, 1, &axis, 0, 1, value));
    REFUSED(V, "the array of shape (8,) and dtype float32 is read-only",
            pvg_accumulate(PVG_ADD, read_only, few, 1, &axis, 0, 1, value));
    REFUSED(V, "", pvg_accumulate(PVG_DIVIDE, a, few, 1, &axis, 0, 1, value));
    REFUSED(T, "", pvg_accumulate(PVG_SUBTRACT, truths, few, 1, &axis, 0, 1, truths));
    REFUSED(T, "", pvg_accumulate(PVG_MAXIMUM, complex, few, 1, &axis, 0, 1, complex));
    REFUSED(T, "indices are integers, not float32",
            pvg_accumulate(PVG_ADD, a, matrix, 1, &axis, 0, 1, value));
    REFUSED(V, "indices lie along one axis, not 2",
            pvg_accumulate(PVG_ADD, matrix, few, 2, both, PVG_ALONG, 1, value));
    let_go();
}

static void gather(void) {
    const int axis = 0;
    const int64_t ones[33] = {MANY_AXES, 1};
    pvg_array *a = floats(SHAPE(3, 2, 2)), *none = floats(SHAPE(0, 2));
    pvg_array *indices = integers(SHAPE(1, 2)), *deep = integers(32, ones),
              *three = integers(SHAPE(3, 2, 2));
    NOT_MADE(V, "an array has at most 32 dimensions, not 33", pvg_gather(a, deep, 1, &axis, 0, 1));
    NOT_MADE(V, "place 3 is not among 2 other axes", pvg_gather(a, indices, 1, &axis, 3, 1));
    NOT_MADE(V, "place -2 is not among 2 other axes", pvg_gather(a, indices, 1, &axis, -2, 1));
    NOT_MADE(V, "indices along 1 axes have shape (1, ...), not (3, 2, 2)",
             pvg_gather(a, three, 1, &axis, 0, 1));
    NOT_MADE(PVG_ERROR_INDEX, "an index is out of bounds for axis 0 with size 0",
             pvg_gather(none, indices, 1, &axis, 0, 1));
    let_go();
}

static void keys(void) {
    enum { ARRAY = PVG_KEY_ARRAY, INTEGER = PVG_KEY_INTEGER, REST = PVG_KEY_REST };
    const int turn[] = {0, 2, 1};
    pvg_array *a = floats(SHAPE(3, 2, 4)), *none = floats(SHAPE(0, 2)), *line = floats(SHAPE(3));
    pvg_array *turned = keep(MADE(pvg_permute(a, turn)), NULL);
    pvg_array *indices = integers(SHAPE(2)), *reals = floats(SHAPE(2)), *point = integers(SCALAR);
    pvg_array *mask = given(PVG_BOOL, SHAPE(3, 4)), *other = given(PVG_BOOL, SHAPE(3, 3)),
              *deep = given(PVG_BOOL, SHAPE(3, 2, 4, 1));
    const int64_t at = (int64_t)(intptr_t)indices, real = (int64_t)(intptr_t)reals,
                  spot = (int64_t)(intptr_t)point, where = (int64_t)(intptr_t)mask,
                  wrong = (int64_t)(intptr_t)other, deeper = (int64_t)(intptr_t)deep;
    int64_t news[4 * 34] = {ARRAY, at};
    for (int i = 1; i < 34; i++) news[4 * i] = PVG_KEY_NEW;
    const int64_t zero = 0;
    struct {
        pvg_array *a;
        const char *says;
        int n;
        int64_t items[12];
    } rows[] = {
        {a, "an index out of range", 2, {ARRAY, at, 0, 0, INTEGER, 2}},
        {a, "an index out of range", 2, {ARRAY, at, 0, 0, INTEGER, -3}},
        {none, "an axis of size 0", 1, {ARRAY, at}},
        {a,
         "1 items and 2 ellipses for an array of 3 dimensions",
         3,
         {ARRAY, at, 0, 0, REST, 0, 0, 0, REST}},
        {line,
         "2 items and 0 ellipses for an array of 1 dimensions",
         2,
         {ARRAY, at, 0, 0, INTEGER, 0}},
        {a, "bools of shape (3, 3) for an array of shape (3, 2, 4)", 1, {ARRAY, wrong}},
        {a, "bools of shape (3, 2, 4, 1) for an array of shape (3, 2, 4)", 1, {ARRAY, deeper}},
        {turned, "bools of shape (3, 3) for an array of shape (3, 4, 2)", 1, {ARRAY, wrong}},
        {a, "an array that is no index here", 1, {ARRAY, real}},
        {a, "an array that is no index here", 1, {ARRAY, spot}},
        {a, "an array that is no index here", 2, {INTEGER, 0, 0, 0, ARRAY, wrong}},
        {a,
         "slice step cannot be zero",
         2,
         {ARRAY, at, 0, 0, PVG_KEY_SLICE | PVG_KEY_STEP, 0, 0, 0}},
        {a, "item 1 of a key is of no kind", 2, {ARRAY, at, 0, 0, 99, 0, 0, 0}},
        {a, "a key without arrays", 1, {INTEGER, 0}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        NOT_MADE(V, rows[i].says, pvg_index_get(rows[i].a, rows[i].n, rows[i].items));
        REFUSED(V, rows[i].says,
                pvg_index_set(rows[i].a, rows[i].n, rows[i].items, NULL, PVG_SCALAR_INT, &zero));
    }
    NOT_MADE(V, "a view of too many axes", pvg_index_get(line, 34, news));
    NOT_MADE(V, "a key of 0 items", pvg_index_get(line, 0, news));
    NOT_MADE(V, "a key of 65 items", pvg_index_get(line, 65, news));
    NOT_MADE(V, "a key of 1 items", pvg_index_get(line, 1, NULL));
    const int64_t by_mask[4] = {ARRAY, where};
    NOT_MADE(V, "axes that are not one behind the other", pvg_index_get(turned, 1, by_mask));
    REFUSED(V, "bools of shape (3, 4) for values or rows",
            pvg_index_set(turned, 1, by_mask, line, 0, NULL));
    REFUSED(V, "bools of shape (3, 4) for values or rows",
            pvg_index_set(turned, 1, by_mask, NULL, PVG_SCALAR_INT, &zero));
    let_go();
}

static void attention(void) {
    pvg_array *q = floats(SHAPE(2, 3, 4)), *k = floats(SHAPE(2, 5, 4)),
              *three = floats(SHAPE(3, 5, 4)), *none = floats(SHAPE(2, 0, 4)),
              *wide = given(PVG_FLOAT64, SHAPE(2, 3)), *logsum = floats(SHAPE(2, 3)),
              *small = floats(SHAPE(2, 2)), *whole = floats(SHAPE(2, 3, 4)),
              *narrow = floats(SHAPE(2, 3, 3)), *mask = floats(SHAPE(3, 4)),
              *numbers = integers(SHAPE(3, 5));
    pvg_array *to[3] = {NULL};
    NOT_MADE(V, "takes one key at least", pvg_attention(q, none, none, NULL, 1, 0, NULL));
    NOT_MADE(V,
             "query, keys and values of shapes (2, 3, 4), (3, 5, 4) and (3, 5, 4) do not broadcast",
             pvg_attention(q, three, three, NULL, 1, 0, NULL));
    NOT_MADE(V, "query, keys and values of shapes (2, 3, 4), (2, 5, 4) and (2, 3, 4)",
             pvg_attention(q, k, whole, NULL, 1, 0, NULL));
    NOT_MADE(V, "causal is 0 or 1, got 2", pvg_attention(q, k, k, NULL, 1, 2, NULL));
    NOT_MADE(V, "a mask of shape (3, 4) does not broadcast to (2, 3, 5)",
             pvg_attention(q, k, k, mask, 1, 0, NULL));
    NOT_MADE(T, "takes a mask of bool or a float dtype, got int64",
             pvg_attention(q, k, k, numbers, 1, 0, NULL));
    REFUSED(T, "logsum of dtype float64, not float32",
            pvg_attention_backward(whole, q, k, k, NULL, whole, wide, 1, 0, to, to + 1, to + 2));
    REFUSED(V, "logsum of shape (2, 2), not (2, 3)",
            pvg_attention_backward(whole, q, k, k, NULL, whole, small, 1, 0, to, to + 1, to + 2));
    REFUSED(V, "gradient and result of shapes (2, 3, 3) and (2, 3, 4), not (2, 3, 4)",
            pvg_attention_backward(narrow, q, k, k, NULL, whole, logsum, 1, 0, to, to + 1, to + 2));
    for (int i = 0; i < 3; i++) CHECK(!to[i]);
    let_go();
}

static void counts(void) {
    pvg_array *numbers = integers(SHAPE(4)), *weights = floats(SHAPE(3)),
              *far = pretended(PVG_UINT8, SHAPE(two_to_32)),
              *wide = pretended(PVG_INT32, SHAPE(two_to_32)), *reals = floats(SHAPE(4));
    NOT_MADE(V, "length must not be negative, got -1", pvg_bincount(numbers, NULL, -1));
    NOT_MADE(V, "weights of shape (3,) for numbers of shape (4,)",
             pvg_bincount(numbers, weights, 4));
    NOT_MADE(V, "counts fewer than 2^32 numbers, each below 2^32 - 1", pvg_bincount(far, NULL, 4));
    NOT_MADE(T, "", pvg_bincount(reals, NULL, 4));
    NOT_MADE(V, "right is 0 or 1, got 2", pvg_searchsorted(numbers, numbers, 2));
    NOT_MADE(V, "right is 0 or 1, got -1", pvg_searchsorted(numbers, numbers, -1));
    NOT_MADE(V, "sorts fewer than 2^32 elements, not 4294967296", pvg_unique(wide, 0));
    let_go();
}

static void cross_entropy(void) {
    pvg_array *x = floats(SHAPE(2, 3)), *labels = integers(SHAPE(2)),
              *no_classes = floats(SHAPE(2, 0)), *point = floats(SCALAR), *row = floats(SHAPE(3)),
              *label = integers(SCALAR), *statistics = floats(SHAPE(3, 2)),
              *of_one = floats(SHAPE(3)), *two = floats(SHAPE(2, 2)),
              *wide = given(PVG_FLOAT64, SHAPE(3, 2)),
              *many = endless(PVG_FLOAT32, SHAPE(1, two_to_31)), *single = integers(SHAPE(1)),
              *of_single = floats(SHAPE(3, 1));
    pvg_array *read_only = keep(MADE(pvg_broadcast_to(statistics, SHAPE(3, 2))), NULL);
    struct {
        int status;
        const char *says;
        const pvg_array *x, *labels, *weight;
        double smoothing;
        pvg_array *statistics;
    } rows[] = {
        {V, "x has no axis of classes", point, labels, NULL, 0, statistics},
        {V, "takes from 1 to 2^30 classes, not 0", no_classes, labels, NULL, 0, statistics},
        {V, "takes from 1 to 2^30 classes, not 2147483648", many, single, NULL, 0, of_single},
        {V, "labels of shape (1,) for x of (2, 3)", x, single, NULL, 0, statistics},
        {V, "labels of shape () for x of (2, 3)", x, label, NULL, 0, statistics},
        {T, "labels are integers, not float32", x, row, NULL, 0, statistics},
        {V, "a weight of shape () for 3 classes", x, labels, point, 0, statistics},
        {V, "a weight of shape (2, 2) for 3 classes", x, labels, two, 0, statistics},
        {T, "statistics are float32, not float64", x, labels, NULL, 0, wide},
        {V, "statistics of shape (2, 2) for labels of (2,)", x, labels, NULL, 0, two},
        {V, "statistics of shape (3,) for labels of (2,)", x, labels, NULL, 0, of_one},
        {V, "smoothing is from 0 to 1, not 1.5", x, labels, NULL, 1.5, statistics},
        {V, "smoothing is from 0 to 1, not -0.5", x, labels, NULL, -0.5, statistics},
        {V, "smoothing is from 0 to 1, not nan", x, labels, NULL, fabs(NAN), statistics},
        {V, "statistics are read-only, or share memory", x, labels, NULL, 0, read_only},
        {V, "statistics are read-only, or share memory", row, label, NULL, 0, row},
        {V, "statistics are read-only, or share memory", row, label, of_one, 0, of_one},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        NOT_MADE(rows[i].status, rows[i].says,
                 pvg_cross_entropy(rows[i].x, rows[i].labels, rows[i].weight, -100,
                                   rows[i].smoothing, rows[i].statistics));
    NOT_MADE(V, "gradient of shape (3,) for losses of x of (2, 3)",
             pvg_cross_entropy_backward(row, x, labels, NULL, statistics, -100, 0));
    let_go();
}

static void normalize(void) {
    pvg_array *x = floats(SHAPE(2, 2)), *wide = given(PVG_FLOAT64, SHAPE(2, 2)),
              *three = floats(SHAPE(3, 2)), *gradient = floats(SHAPE(2, 2)),
              *statistics = floats(SHAPE(2, 2)), *weight = floats(SHAPE(2)),
              *far = endless(PVG_FLOAT32, SHAPE(two_to_31)), *of_one = floats(SHAPE(2, 1)),
              *more = floats(SHAPE(3));
    pvg_array *read_only = keep(MADE(pvg_broadcast_to(statistics, SHAPE(2, 2))), NULL);
    pvg_array *to[3] = {NULL};
    NOT_MADE(T, "statistics are float32, not float64",
             pvg_normalize(x, NULL, NULL, 1, 1, 1, 1, 1e-5, wide));
    NOT_MADE(V, "statistics of shape (3, 2): 2 times 2, contiguous",
             pvg_normalize(x, NULL, NULL, 1, 1, 1, 1, 1e-5, three));
    NOT_MADE(V, "statistics of shape (2,): 2 times 2, contiguous",
             pvg_normalize(x, NULL, NULL, 1, 1, 1, 1, 1e-5, weight));
    NOT_MADE(V, "statistics are read-only, or share memory with another array",
             pvg_normalize(x, NULL, NULL, 1, 1, 1, 1, 1e-5, x));
    NOT_MADE(V, "statistics are read-only, or share memory with another array",
             pvg_normalize(x, NULL, NULL, 1, 1, 1, 1, 1e-5, read_only));
    NOT_MADE(V, "of shape (3,) does not fit the channels of x (2, 2)",
             pvg_normalize(x, more, NULL, 1, 1, 1, 1, 1e-5, statistics));
    NOT_MADE(V, "statistics of channels are not optional",
             pvg_normalize(x, NULL, NULL, 1, 1, 0, 1, 1e-5, NULL));
    REFUSED(V, "takes rows of up to 2^30 elements",
            pvg_normalize_backward(far, far, NULL, of_one, 0, 1, 1, 1, 1e-5, to, NULL, NULL));
    REFUSED(V, "dx is wanted, and dweight and dbias both or neither",
            pvg_normalize_backward(gradient, x, weight, statistics, 1, 1, 1, 1, 1e-5, to, to + 1,
                                   NULL));
    REFUSED(
        V, "statistics are needed",
        pvg_normalize_backward(gradient, x, weight, NULL, 1, 1, 1, 1, 1e-5, to, to + 1, to + 2));
    NOT_MADE(V, "takes rows of up to 2^30 elements",
             pvg_softmax_backward(PVG_SOFTMAX, far, far, 1));
    NOT_MADE(V, "gradient of shape (2, 2), result of (2,)",
             pvg_softmax_backward(PVG_SOFTMAX, gradient, weight, 1));
    NOT_MADE(PVG_ERROR_AXIS, "3 last axes of 2", pvg_softmax_backward(PVG_SOFTMAX, gradient, x, 3));
    for (int i = 0; i < 3; i++) CHECK(!to[i]);
    let_go();
}

static void lists_of_arrays(void) {
    const int64_t ones[] = {MANY_AXES};
    double numbers[PVG_UPDATE_COUNT] = {0.1};
    pvg_array *p = floats(SHAPE(3)), *g = floats(SHAPE(3)), *other = floats(SHAPE(2)),
              *wide = given(PVG_FLOAT64, SHAPE(3)), *deep = floats(32, ones);
    pvg_array *const targets[] = {p};
    const pvg_array *const parts[] = {p, g}, *const wrong[] = {other}, *const wider[] = {wide},
                           *const deeper[] = {deep, deep};
    REFUSED(V, "-1 arrays", pvg_clip_norm(targets, -1, NULL, 1));
    REFUSED(V, "1 arrays", pvg_clip_norm(NULL, 1, NULL, 1));
    REFUSED(V, "the norm is one number, got shape (2,)", pvg_clip_norm(targets, 1, other, 1));
    REFUSED(V, "-1 parameters", pvg_optimize(PVG_SGD, targets, parts, -1, numbers, NULL));
    REFUSED(V, "there are no numbers", pvg_optimize(PVG_SGD, targets, parts, 1, NULL, NULL));
    REFUSED(V, "9 is no algorithm of optimisers",
            pvg_optimize(9, targets, parts, 1, numbers, NULL));
    REFUSED(V, "the share of means is above 0, at most 1, not 0",
            pvg_optimize(PVG_ADAM, targets, parts, 1, numbers, NULL));
    REFUSED(V, "the lists of arrays are missing",
            pvg_optimize(PVG_SGD, NULL, parts, 1, numbers, NULL));
    REFUSED(V, "a gradient of shape (2,) for a parameter of (3,)",
            pvg_optimize(PVG_SGD, targets, wrong, 1, numbers, NULL));
    REFUSED(T, "a gradient of dtype float64 for a parameter of float32",
            pvg_optimize(PVG_SGD, targets, wider, 1, numbers, NULL));
    NOT_MADE(V, "an array has at most 32 dimensions, not 33", pvg_concat(deeper, 2, 0, 1, -1));
    let_go();
}

static void windows(void) {
    int64_t numbers[PVG_WINDOWS_COUNT] = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1};
    int64_t large[PVG_WINDOWS_COUNT] = {65536, 65536, 1, 1, 65536, 65536, 0, 0, 1, 1};
    pvg_array *a = floats(SHAPE(2, 3, 3)), *places = given(PVG_INT32, SHAPE(2, 3, 3)),
              *fewer = given(PVG_INT32, SHAPE(2, 3)), *line = floats(SHAPE(3)),
              *weight = floats(SHAPE(2, 1, 1, 1)), *image = floats(SHAPE(1, 1, 3, 3));
    pvg_array *read_only = keep(MADE(pvg_broadcast_to(places, SHAPE(2, 3, 3))), NULL);
    pvg_array *shared = keep(
        MADE(pvg_array_wrap(pvg_array_data(a), 0, PVG_INT32, SHAPE(2, 3, 3), NULL, NULL, NULL)),
        NULL);
    NOT_MADE(V, "places has shape (2, 3), the windows have (2, 3, 3)",
             pvg_pool(PVG_MAX, a, fewer, numbers, 0));
    NOT_MADE(V, "places is read-only, or shares memory with the operand",
             pvg_pool(PVG_MAX, a, read_only, numbers, 0));
    NOT_MADE(V, "places is read-only, or shares memory with the operand",
             pvg_pool(PVG_MAX, a, shared, numbers, 0));
    NOT_MADE(V, "means have no places", pvg_pool(PVG_MEAN, a, places, numbers, 0));
    NOT_MADE(V, "places is int32 and contiguous, got float32", pvg_pool(PVG_MAX, a, a, numbers, 0));
    NOT_MADE(V, "with_padding is 0 or 1, got 2", pvg_pool(PVG_MAX, a, NULL, numbers, 2));
    NOT_MADE(V, "takes matrices", pvg_pool(PVG_MAX, line, NULL, numbers, 0));
    NOT_MADE(V, "windows is NULL", pvg_pool(PVG_MAX, a, NULL, NULL, 0));
    NOT_MADE(V, "a kernel has fewer than 2^31 elements", pvg_pool(PVG_MAX, a, NULL, large, 0));
    NOT_MADE(V, "no matrix is (-1, 3) large",
             pvg_pool_backward(PVG_MAX, a, places, numbers, 0, -1, 3));
    NOT_MADE(V, "no matrix is (3, 4611686018427387904) large",
             pvg_pool_backward(PVG_MAX, a, places, numbers, 0, 3, (int64_t)1 << 62));
    NOT_MADE(V, "has four axes, not shape (2, 3, 3)", pvg_convolution(a, weight, numbers, 1));
    NOT_MADE(V, "has four axes, not shape (2, 3, 3)", pvg_convolution(image, a, numbers, 1));
    NOT_MADE(V, "1 channels and 2 results in 0 groups", pvg_convolution(image, weight, numbers, 0));
    let_go();
}

static void recurrent(void) {
    pvg_array *gradient = floats(SHAPE(2, 1, 3)), *weight = floats(SHAPE(3, 3)),
              *four = floats(SHAPE(12, 3)), *hiddens = floats(SHAPE(3, 1, 3)),
              *gates = floats(SHAPE(2, 1, 12));
    pvg_array *to[4] = {NULL};
    REFUSED(V, "gates are of LSTM and GRU",
            pvg_recurrent_backward(PVG_CELL_TANH, gradient, NULL, NULL, weight, hiddens, NULL,
                                   gates, 0, to, NULL, to + 2, NULL));
    REFUSED(V, "gates are of LSTM and GRU",
            pvg_recurrent_backward(PVG_CELL_LSTM, gradient, NULL, NULL, four, hiddens, hiddens,
                                   NULL, 0, to, to + 1, to + 2, to + 3));
    REFUSED(V, "states are of LSTM, and of LSTM alone",
            pvg_recurrent_backward(PVG_CELL_TANH, gradient, NULL, NULL, weight, hiddens, hiddens,
                                   NULL, 0, to, NULL, to + 2, NULL));
    for (int i = 0; i < 4; i++) CHECK(!to[i]);
    let_go();
}

static void plans(void) {
    const int64_t card[PVG_CARD_COUNT] = {80, 0, 100000, 100000};
    int64_t product_[PVG_PRODUCT_COUNT] = {8, 8, 8, 1, PVG_FLOAT32, PVG_PRECISION_IEEE}, plan[40];
    product_[PVG_PRODUCT_A_ALONG_K] = product_[PVG_PRODUCT_B_ALONG_K] = 1;
    for (int i = PVG_PRODUCT_A_STRIDE; i <= PVG_PRODUCT_C_STRIDE; i++) product_[i] = 8;
    for (int i = 0; i < 40; i++) plan[i] = -7;
    REFUSED(V, "a card has multiprocessors", pvg_plan_product(card, product_, plan));
    REFUSED(V, "a null pointer", pvg_plan_product(NULL, product_, plan));
    REFUSED(V, "a null pointer", pvg_plan_card(0, NULL));
    for (int i = 0; i < 40; i++) CHECK_EQUAL(plan[i], -7);
}

int main(void) {
    begin("test_refused_kernels");
    RUN(accumulate);
    RUN(gather);
    RUN(keys);
    RUN(attention);
    RUN(counts);
    RUN(cross_entropy);
    RUN(normalize);
    RUN(lists_of_arrays);
    RUN(windows);
    RUN(recurrent);
    RUN(plans);
    return finish();
}
