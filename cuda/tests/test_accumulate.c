/* pvg_accumulate against a loop on the host: runs of every length that begin and end anywhere in a
 * chunk, several rounds, elements beside the indices, indices along an array; what is refused. */
#include "check.h"
#include <math.h>

enum { PLACES = 9, MOST = 20000, WIDEST = 40 };

static int32_t combined(int operation, int32_t a, int32_t b) {
    switch (operation) {
    case PVG_SUBTRACT: return (int32_t)((uint32_t)a - (uint32_t)b);
    case PVG_MULTIPLY: return (int32_t)((uint32_t)a * (uint32_t)b);
    case PVG_MAXIMUM: return a > b ? a : b;
    case PVG_MINIMUM: return a < b ? a : b;
    }
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

/* Integers, whose order does not matter. `few`: nearly all indices name one place. */
static void integers(int operation, int64_t count, int64_t columns, int few, int along) {
    static int64_t indices[MOST];
    static int32_t values[MOST * WIDEST], expected[PLACES * WIDEST];
    const int axis = 0;
    uint64_t state = (uint64_t)count + 3;
    for (int64_t i = 0; i < PLACES * columns; i++) expected[i] = (int32_t)i - 7;
    pvg_array *a = array_of(PVG_INT32, SHAPE(PLACES, columns), expected);
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = few && i % 97 ? 4 : random_integer(&state, 0, PLACES - 1);
        indices[i] = i % 2 ? place - PLACES : place;
        for (int64_t c = 0; c < columns; c++) {
            values[i * columns + c] = (int32_t)random_integer(&state, -9, 9);
            int32_t *element = &expected[place * columns + c];
            *element = combined(operation, *element, values[i * columns + c]);
        }
    }
    pvg_array *v = array_of(PVG_INT32, SHAPE(count, columns), values);
    pvg_array *row = array_of(PVG_INT64, SHAPE(1, count), indices), *spread = NULL;
    if (along) {
        pvg_array *column = MADE(pvg_reshape(row, SHAPE(count, 1)));
        spread = MADE(pvg_broadcast_to(column, SHAPE(count, columns)));
        RELEASE(column);
    }
    CHECK_OK(pvg_accumulate(operation, a, along ? spread : row, 1, &axis, along ? PVG_ALONG : 0,
                            (int)(count & 1), v));
    CHECK_ARRAY(a, PVG_INT32, SHAPE(PLACES, columns), expected, 0);
    RELEASE(a, v, row);
    if (spread) RELEASE(spread);
}

static void every_length(void) {
    static const int64_t counts[] = {0, 1, 2, 63, 64, 65, 128, 129, 1000, 4097, MOST};
    static const int64_t widths[] = {1, 3, 33, WIDEST};
    static const int operations[] = {PVG_ADD, PVG_SUBTRACT, PVG_MULTIPLY, PVG_MAXIMUM, PVG_MINIMUM};
    for (size_t c = 0; c < COUNT(counts); c++)
        for (size_t w = 0; w < COUNT(widths); w++) {
            if (counts[c] == MOST && widths[w] > 3) continue;
            for (int few = 0; few < 2; few++)
                for (int along = 0; along < 2; along++)
                    integers(operations[(c + w) % 5], counts[c], widths[w], few, along);
        }
}

/* Sums of floats are the same bits every time, and near the exact ones. */
static void the_same_bits(void) {
    static int32_t indices[MOST];
    static float values[MOST], first[PLACES], again[PLACES];
    const int axis = 0;
    double exact[PLACES] = {0};
    uint64_t state = 11;
    for (int i = 0; i < MOST; i++) {
        indices[i] = (int32_t)random_integer(&state, 0, PLACES - 1);
        values[i] = (float)random_integer(&state, -1000000, 1000000) / 1000003.0f;
        exact[indices[i]] += values[i];
    }
    pvg_array *v = array_of(PVG_FLOAT32, SHAPE(MOST), values);
    pvg_array *rows = array_of(PVG_INT32, SHAPE(1, MOST), indices);
    for (int time = 0; time < 2; time++) {
        pvg_array *sums = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(PLACES)));
        const double zero = 0;
        CHECK_OK(pvg_fill(sums, PVG_SCALAR_FLOAT, &zero));
        CHECK_OK(pvg_accumulate(PVG_ADD, sums, rows, 1, &axis, 0, 1, v));
        CHECK_OK(pvg_copy_to_host(sums, time ? again : first, NULL));
        RELEASE(sums);
    }
    for (int i = 0; i < PLACES; i++) {
        CHECK(!memcmp(&first[i], &again[i], sizeof *first));
        CHECK(fabs(first[i] - exact[i]) <= 1e-3);
    }
    RELEASE(v, rows);
}

static void what_is_refused(void) {
    uint64_t state = 4;
    const int axis = 0;
    pvg_array *a = array_of(PVG_INT32, SHAPE(3, 2), (int32_t[]){1, 2, 3, 4, 5, 6}),
              *v = array_of(PVG_INT32, SHAPE(3, 2), (int32_t[]){10, 20, 30, 40, 50, 60}),
              *bad = array_of(PVG_INT64, SHAPE(1, 3), (int64_t[]){1, 3, 1}),
              *good = array_of(PVG_INT64, SHAPE(1, 3), (int64_t[]){0, -3, 2}),
              *complex = random_array(PVG_COMPLEX64, SHAPE(3, 2), &state),
              *truth = random_array(PVG_BOOL, SHAPE(3, 2), &state);
    pvg_array *view = MADE(pvg_broadcast_to(a, SHAPE(2, 3, 2)));
    CHECK_STATUS(pvg_accumulate(PVG_DIVIDE, a, good, 1, &axis, 0, 0, v), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_accumulate(PVG_ADD, view, good, 1, &axis, 0, 0, v), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_accumulate(PVG_ADD, a, good, 1, &axis, 0, 0, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_accumulate(PVG_ADD, a, v, 1, &axis, 0, 0, v), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_accumulate(PVG_MAXIMUM, complex, good, 1, &axis, 0, 0, complex),
                 PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_accumulate(PVG_SUBTRACT, truth, good, 1, &axis, 0, 0, truth), PVG_ERROR_TYPE);
    CHECK_ARRAY(a, PVG_INT32, SHAPE(3, 2), ((int32_t[]){1, 2, 3, 4, 5, 6}), 0);
    /* An index out of range is found at the next wait; the others count. */
    CHECK_OK(pvg_accumulate(PVG_ADD, a, bad, 1, &axis, 0, 0, v));
    CHECK_STATUS(pvg_synchronize(0), PVG_ERROR_INDEX);
    CHECK(strstr(pvg_last_error(), "accumulate: index 3 is out of bounds for axis 0 with size 3") !=
          NULL);
    CHECK_ARRAY(a, PVG_INT32, SHAPE(3, 2), ((int32_t[]){1, 2, 63, 84, 5, 6}), 0);
    /* Values that are what is written to. */
    CHECK_OK(pvg_accumulate(PVG_ADD, a, good, 1, &axis, 0, 0, a));
    CHECK_ARRAY(a, PVG_INT32, SHAPE(3, 2), ((int32_t[]){65, 88, 63, 84, 10, 12}), 0);
    RELEASE(a, v, bad, good, complex, truth, view);
}

int main(void) {
    begin("test_accumulate");
    RUN(every_length);
    RUN(the_same_bits);
    RUN(what_is_refused);
    return finish();
}
