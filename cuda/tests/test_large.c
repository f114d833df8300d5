/* Offsets beyond 2^31 and 2^32: views whose elements lie far apart in one large block of memory,
 * and, on a GPU, more elements than 32 bits can count. The simulated card keeps such memory
 * virtual, so that it costs only the pages that are touched. */
#include "check.h"

enum { ROWS = 32, COLUMNS = 40 };
static const int64_t pitch = (int64_t)1 << 27, beyond = 4099; /* elements of one byte */

static pvg_array *memory, *far_apart; /* far_apart: ROWS x COLUMNS, rows 2^27 elements apart */
static uint8_t values[ROWS * COLUMNS];

static void *turned(const void *dense) {
    uint8_t *result = host_memory(PVG_UINT8, ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        result[i] = ((const uint8_t *)dense)[i % ROWS * COLUMNS + i / ROWS];
    return result;
}

static void elements_2_to_31_apart(void) {
    const int64_t start = 5, step = ((int64_t)1 << 31) + 3, length = 2, number = 77;
    const uint8_t expected[2] = {154, 154};
    pvg_array *view = MADE(pvg_slice(memory, &start, &step, &length));
    CHECK_OK(pvg_fill(view, PVG_SCALAR_INT, &number));
    pvg_array *sum = MADE(pvg_add(view, view));
    CHECK_ARRAY(sum, PVG_UINT8, SHAPE(2), expected, 0);
    const int64_t last = ROWS * pitch + beyond - 1, one = 1;
    pvg_array *end = MADE(pvg_slice(memory, &last, &one, &one));
    CHECK_OK(pvg_fill(end, PVG_SCALAR_INT, &number));
    CHECK_ARRAY(end, PVG_UINT8, SHAPE(1), ((const uint8_t[]){77}), 0);
    RELEASE(view, sum, end);
}

static void copies(void) {
    void *transposed = turned(values);
    pvg_array *view = MADE(pvg_permute(far_apart, ((const int[]){1, 0})));
    CHECK_ARRAY(far_apart, PVG_UINT8, SHAPE(ROWS, COLUMNS), values, 0);
    CHECK_ARRAY(view, PVG_UINT8, SHAPE(COLUMNS, ROWS), transposed, 0);
    pvg_array *rows = MADE(pvg_contiguous(far_apart)), *tiles = MADE(pvg_contiguous(view));
    CHECK_ARRAY(rows, PVG_UINT8, SHAPE(ROWS, COLUMNS), values, 0);
    CHECK_ARRAY(tiles, PVG_UINT8, SHAPE(COLUMNS, ROWS), transposed, 0);
    CHECK_OK(pvg_copy(tiles, view)); /* and back into the large memory */
    CHECK_ARRAY(far_apart, PVG_UINT8, SHAPE(ROWS, COLUMNS), values, 0);
    RELEASE(view, rows, tiles);
    free(transposed);
}

static void elementwise(void) {
    uint8_t expected[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) expected[i] = (uint8_t)(2 * values[i]);
    pvg_array *view = MADE(pvg_permute(far_apart, ((const int[]){1, 0})));
    pvg_array *sum = MADE(pvg_add(far_apart, far_apart)), *turned_sum = MADE(pvg_add(view, view));
    pvg_array *back = MADE(pvg_permute(turned_sum, ((const int[]){1, 0})));
    CHECK_ARRAY(sum, PVG_UINT8, SHAPE(ROWS, COLUMNS), expected, 0);
    CHECK_ARRAY(back, PVG_UINT8, SHAPE(ROWS, COLUMNS), expected, 0);
    pvg_array *wide = MADE(pvg_cast(view, PVG_FLOAT32, NULL));
    CHECK_CLOSE(element(wide, ROWS - 1), values[(ROWS - 1) * COLUMNS], 0);
    RELEASE(view, sum, turned_sum, back, wide);
}

static void reductions(void) {
    uint64_t of_columns[COLUMNS] = {0}, of_rows[ROWS] = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        of_columns[i % COLUMNS] += values[i], of_rows[i / COLUMNS] += values[i];
    pvg_array *columns = MADE(pvg_reduce(PVG_SUM, far_apart, AXES(0), 0, NULL));
    pvg_array *rows = MADE(pvg_reduce(PVG_SUM, far_apart, AXES(1), 0, NULL));
    CHECK_ARRAY(columns, PVG_UINT64, SHAPE(COLUMNS), of_columns, 0);
    CHECK_ARRAY(rows, PVG_UINT64, SHAPE(ROWS), of_rows, 0);
    RELEASE(columns, rows);
}

static void products(void) {
    uint8_t expected[ROWS * ROWS];
    for (int i = 0; i < ROWS * ROWS; i++) {
        unsigned sum = 0;
        for (int k = 0; k < COLUMNS; k++)
            sum += (unsigned)values[i / ROWS * COLUMNS + k] * values[i % ROWS * COLUMNS + k];
        expected[i] = (uint8_t)sum;
    }
    pvg_array *view = MADE(pvg_permute(far_apart, ((const int[]){1, 0})));
    pvg_array *product = MADE(pvg_matmul(far_apart, view, PVG_PRECISION_DEFAULT,
                                         NULL)); /* both are read where they lie */
    CHECK_ARRAY(product, PVG_UINT8, SHAPE(ROWS, ROWS), expected, 0);
    RELEASE(view, product);
}

#ifndef PVG_TEST_SIMULATOR
static void more_elements_than_32_bits_count(void) {
    const int64_t n = pvg_array_size(memory), one = 1, two = 2, last = n - 1, index[1] = {last};
    const uint64_t total = (uint64_t)n + 1, doubled = 2 * total;
    CHECK_OK(pvg_fill(memory, PVG_SCALAR_INT, &one));
    pvg_array *end = MADE(pvg_slice(memory, &last, &one, &one));
    CHECK_OK(pvg_fill(end, PVG_SCALAR_INT, &two));
    pvg_array *sum = MADE(pvg_sum(memory));
    CHECK_ARRAY(sum, PVG_UINT64, SCALAR, &total, 0);
    pvg_array *at = MADE(pvg_reduce(PVG_ARGMAX, memory, -1, NULL, 0, NULL));
    CHECK_ARRAY(at, PVG_INT64, SCALAR, index, 0);
    MADE(pvg_binary(PVG_ADD, memory, memory, memory));
    pvg_array *again = MADE(pvg_sum(memory));
    CHECK_ARRAY(again, PVG_UINT64, SCALAR, &doubled, 0);
    RELEASE(end, sum, at, again);
}
#endif

/* The memory outlives the sections, so they are not checked for what is left one by one. */
static void every_section(void) {
    const int64_t start[2] = {0, 3}, step[2] = {1, 1}, length[2] = {ROWS, COLUMNS};
    uint64_t state = 60;
    for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = (uint8_t)random_integer(&state, 0, 99);
    memory = MADE(pvg_array_empty(0, PVG_UINT8, SHAPE(ROWS * pitch + beyond)));
    const int64_t first = 0, one = 1, even = ROWS * pitch;
    pvg_array *head = MADE(pvg_slice(memory, &first, &one, &even));
    pvg_array *matrix = MADE(pvg_reshape(head, SHAPE(ROWS, pitch)));
    far_apart = MADE(pvg_slice(matrix, start, step, length));
    CHECK_OK(pvg_copy_from_host(far_apart, values, NULL));
    copies();
    elementwise();
    reductions();
    products();
    elements_2_to_31_apart();
#ifndef PVG_TEST_SIMULATOR
    more_elements_than_32_bits_count();
#endif
    RELEASE(head, matrix, far_apart, memory);
}

int main(void) {
#ifdef PVG_TEST_SIMULATOR
    CHECK_EQUAL(pvg_sim_set("memory", (long long)1 << 34), 0);
#endif
    begin("test_large");
    CHECK_OK(pvg_set_option(PVG_OPTION_ALLOCATOR, PVG_ALLOCATOR_DIRECT)); /* not to be filled */
    if (memory_value(PVG_MEMORY_FREE) < (ROWS + 1) * pitch) {
        printf("test_large: no device with 4.5 GB of free memory\n");
        return NO_DEVICE;
    }
    RUN(every_section);
    return finish();
}
