/* What pvg_learn, which launches the kernels of lessons, refuses. */
#include "refused.h"

enum { V = PVG_ERROR_VALUE, T = PVG_ERROR_TYPE };
static const int64_t two_to_31 = (int64_t)1 << 31;

static void lessons(void) {
    pvg_array *a = floats(SHAPE(4, 4)), *b = floats(SHAPE(4, 4)), *out = floats(SHAPE(4, 4)),
              *line = floats(SHAPE(4)), *wide = given(PVG_FLOAT64, SHAPE(4, 4)),
              *tall = floats(SHAPE(5, 4)), *far = floats(SHAPE(0, two_to_31)),
              *from_far = floats(SHAPE(two_to_31, 0)), *none = floats(SHAPE(0, 0));
    const int turn[] = {1, 0};
    pvg_array *turned = keep(MADE(pvg_permute(out, turn)), NULL);
    pvg_array *read_only = keep(MADE(pvg_broadcast_to(out, SHAPE(4, 4))), NULL);
    double milliseconds = -1;
    int64_t occupancy = -1;
    const int64_t most = INT32_MAX;
    enum {
        ADD = PVG_LESSON_VECTOR_ADD,
        ROWS = PVG_LESSON_MATRIX_ADD,
        DEPTH = PVG_LESSON_TENSOR_ADD,
        NAIVE = PVG_LESSON_MATMUL_NAIVE,
        TILED = PVG_LESSON_MATMUL_TILED,
        REGISTERS = PVG_LESSON_MATMUL_REGISTERS,
        LAYER = PVG_LESSON_LAYER
    };
    struct {
        int status;
        const char *says;
        int kernel;
        pvg_array *a, *b, *c, *out;
        int64_t launches, grid[3], block[3];
    } rows[] = {
        {V, "unknown lesson kernel -1", -1, a, b, NULL, out, 1, {1, 1, 1}, {4, 4, 1}},
        {V, "unknown lesson kernel 10", 10, a, b, NULL, out, 1, {1, 1, 1}, {4, 4, 1}},
        {T, "takes float32, got float64", ADD, a, wide, NULL, out, 1, {1, 1, 1}, {4, 1, 1}},
        {T, "takes float32, got float64", ADD, a, b, NULL, wide, 1, {1, 1, 1}, {4, 1, 1}},
        {V, "takes contiguous arrays (C order)", ADD, turned, b, NULL, a, 1, {1, 1, 1}, {4, 1, 1}},
        {V, "takes contiguous arrays (C order)", ADD, a, b, NULL, turned, 1, {1, 1, 1}, {4, 1, 1}},
        {V, "out must not share memory", ADD, a, b, NULL, b, 1, {1, 1, 1}, {4, 1, 1}},
        {V, "out is read-only", ADD, a, b, NULL, read_only, 1, {1, 1, 1}, {4, 1, 1}},
        {V,
         "takes arrays of 2 dimensions, got shape (4,)",
         ROWS,
         a,
         b,
         NULL,
         line,
         1,
         {1, 1, 1},
         {4, 1, 1}},
        {V,
         "takes arrays of 3 dimensions, got shape (4, 4)",
         DEPTH,
         a,
         b,
         NULL,
         out,
         1,
         {1, 1, 1},
         {4, 1, 1}},
        {V,
         "shapes differ: (5, 4) and out's (4, 4)",
         ADD,
         a,
         tall,
         NULL,
         out,
         1,
         {1, 1, 1},
         {4, 1, 1}},
        {V,
         "takes (m, k), (k, n) and an out of (m, n), got (4, 4), (5, 4), (4, 4)",
         NAIVE,
         a,
         tall,
         NULL,
         out,
         1,
         {1, 1, 1},
         {4, 1, 1}},
        {V,
         "an out of (batch, outputs), got (4, 4), (4, 4), (4, 4), (4, 4)",
         LAYER,
         a,
         b,
         a,
         out,
         1,
         {1, 1, 1},
         {256, 1, 1}},
        {V,
         "grid.y is 5, more than the batch of 4",
         LAYER,
         a,
         b,
         line,
         out,
         1,
         {1, 5, 1},
         {256, 1, 1}},
        {V, "the block must be (32, 32, 1)", TILED, a, b, NULL, out, 1, {1, 1, 1}, {32, 16, 1}},
        {V, "the block must be (16, 16, 1)", REGISTERS, a, b, NULL, out, 1, {1, 1, 1}, {16, 16, 2}},
        {V, "the block must be (256, 1, 1)", LAYER, a, b, line, out, 1, {1, 1, 1}, {128, 1, 1}},
        {V,
         "takes up to 2^30 rows and columns, got shape (0, 2147483648)",
         NAIVE,
         far,
         from_far,
         NULL,
         none,
         1,
         {1, 1, 1},
         {4, 4, 1}},
        {V,
         "the grid is larger than the kernel can count",
         NAIVE,
         a,
         b,
         NULL,
         out,
         1,
         {most, 1, 1},
         {4, 4, 1}},
        {V,
         "the grid is larger than the kernel can count",
         NAIVE,
         a,
         b,
         NULL,
         out,
         1,
         {1, most, 1},
         {4, 4, 1}},
        {V, "launches must be at least 1", ADD, a, b, NULL, out, 0, {1, 1, 1}, {4, 1, 1}},
        {V,
         "grid and block must be from 1 to 2^31 - 1",
         ADD,
         a,
         b,
         NULL,
         out,
         1,
         {0, 1, 1},
         {4, 1, 1}},
        {V,
         "grid and block must be from 1 to 2^31 - 1",
         ADD,
         a,
         b,
         NULL,
         out,
         1,
         {1, 1, 1},
         {4, 1, (int64_t)1 << 31}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_section = rows[i].says;
        REFUSED(rows[i].status, rows[i].says,
                pvg_learn(rows[i].kernel, rows[i].grid, rows[i].block, rows[i].a, rows[i].b,
                          rows[i].c, rows[i].out, rows[i].launches, &milliseconds, &occupancy));
    }
    const int64_t ones[3] = {1, 1, 1};
    const char *null = "grid, block, milliseconds or occupancy is NULL";
    REFUSED(V, null, pvg_learn(ADD, NULL, ones, a, b, NULL, out, 1, &milliseconds, &occupancy));
    REFUSED(V, null, pvg_learn(ADD, ones, NULL, a, b, NULL, out, 1, &milliseconds, &occupancy));
    REFUSED(V, null, pvg_learn(ADD, ones, ones, a, b, NULL, out, 1, NULL, &occupancy));
    REFUSED(V, null, pvg_learn(ADD, ones, ones, a, b, NULL, out, 1, &milliseconds, NULL));
    CHECK_CLOSE(milliseconds, -1, 0);
    CHECK_EQUAL(occupancy, -1);
    let_go();
}

int main(void) {
    begin("test_refused_lessons");
    RUN(lessons);
    return finish();
}
