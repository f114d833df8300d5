/* pvg_recurrent beside loops on the host, its backward pass beside differences of it, and what is
 * refused. */
#include "check.h"
#include <math.h>

enum { STEPS = 3, ROWS = 2, WIDTH = 5, STATE = ROWS * WIDTH };
static const int gates_of[] = {1, 1, 4, 3};

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* A unit's next h; *c is the state before it and becomes that behind it. */
static double unit(int cell, const double *x, const double *p, double h, double *c) {
    if (cell == PVG_CELL_TANH) return tanh(x[0] + p[0]);
    if (cell == PVG_CELL_RELU) return x[0] + p[0] > 0 ? x[0] + p[0] : 0;
    if (cell == PVG_CELL_LSTM) {
        *c = sigmoid(x[1] + p[1]) * *c + sigmoid(x[0] + p[0]) * tanh(x[2] + p[2]);
        return sigmoid(x[3] + p[3]) * tanh(*c);
    }
    const double z = sigmoid(x[1] + p[1]);
    return (1 - z) * tanh(x[2] + sigmoid(x[0] + p[0]) * p[2]) + z * h;
}

typedef struct { double *inputs, *weight, *bias, *hidden, *state; } Numbers;

/* h before, between and behind the steps: (STEPS + 1, ROWS, WIDTH). */
static void on_host(int cell, int backwards, const Numbers *n, double *hiddens) {
    const int gates = gates_of[cell];
    double state[STATE];
    for (int i = 0; i < STATE; i++) state[i] = n->state[i];
    for (int i = 0; i < STATE; i++) hiddens[(backwards ? STEPS : 0) * STATE + i] = n->hidden[i];
    for (int turn = 0; turn < STEPS; turn++) {
        const int step = backwards ? STEPS - 1 - turn : turn;
        const double *before = hiddens + (step + backwards) * STATE;
        for (int i = 0; i < STATE; i++) {
            const int row = i / WIDTH, column = i % WIDTH;
            double x[4], p[4];
            for (int g = 0; g < gates; g++) {
                x[g] = n->inputs[(step * ROWS + row) * gates * WIDTH + g * WIDTH + column];
                p[g] = n->bias[g * WIDTH + column];
                for (int j = 0; j < WIDTH; j++)
                    p[g] += before[row * WIDTH + j] * n->weight[(g * WIDTH + column) * WIDTH + j];
            }
            hiddens[(step + !backwards) * STATE + i] = unit(cell, x, p, before[i], &state[i]);
        }
    }
}

static pvg_array *numbers(int dtype, int ndim, const int64_t *shape, double **values,
                          uint64_t *state) {
    const int64_t n = product(ndim, shape);
    void *own = host_memory(dtype, n);
    *values = host_memory(PVG_FLOAT64, n);
    for (int64_t i = 0; i < n; i++) {
        set_value(dtype, own, i, random_real(state, -1, 1));
        (*values)[i] = value_at(dtype, own, i);
    }
    pvg_array *array = array_of(dtype, ndim, shape, own);
    free(own);
    return array;
}

/* The sum of what was given with every h behind a step. */
static double total(int cell, int backwards, const Numbers *n, const double *gradient) {
    double hiddens[(STEPS + 1) * STATE], sum = 0;
    on_host(cell, backwards, n, hiddens);
    for (int i = 0; i < STEPS * STATE; i++) sum += gradient[i] * hiddens[(!backwards) * STATE + i];
    return sum;
}

static void check_slopes(int line, int cell, int backwards, const Numbers *n,
                         const double *gradient, double *operand, const pvg_array *found) {
    for (int64_t i = 0; i < pvg_array_size(found); i++) {
        const double old = operand[i], step = 1e-6;
        operand[i] = old + step;
        const double above = total(cell, backwards, n, gradient);
        operand[i] = old - step;
        const double below = total(cell, backwards, n, gradient);
        operand[i] = old;
        check_close(__FILE__, line, "slope", element(found, i), (above - below) / (2 * step), 1e-7);
    }
}

static void check_layer(int dtype, int cell, int backwards, uint64_t *state) {
    const int64_t rows = gates_of[cell] * WIDTH;
    Numbers n;
    double *slopes, hiddens[(STEPS + 1) * STATE];
    pvg_array *inputs = numbers(dtype, SHAPE(STEPS, ROWS, rows), &n.inputs, state),
              *weight = numbers(dtype, SHAPE(rows, WIDTH), &n.weight, state),
              *bias = numbers(dtype, SHAPE(rows), &n.bias, state),
              *hidden = numbers(dtype, SHAPE(ROWS, WIDTH), &n.hidden, state),
              *first = numbers(dtype, SHAPE(ROWS, WIDTH), &n.state, state),
              *gradient = numbers(dtype, SHAPE(STEPS, ROWS, WIDTH), &slopes, state);
    pvg_array *made[3] = {NULL, NULL, NULL}, *back[4] = {NULL, NULL, NULL, NULL};
    const int is_lstm = cell == PVG_CELL_LSTM;
    CHECK_OK(pvg_recurrent(cell, inputs, weight, bias, hidden, is_lstm ? first : NULL, backwards,
                           &made[0], &made[1], &made[2]));
    CHECK((made[1] != NULL) == is_lstm && (made[2] != NULL) == (cell >= PVG_CELL_LSTM));
    on_host(cell, backwards, &n, hiddens);
    const double tolerance = pvg_dtype_size(dtype) == 8   ? 1e-12
                             : pvg_dtype_size(dtype) == 4 ? 1e-5
                                                          : 0.1;
    for (int i = 0; i < (STEPS + 1) * STATE; i++)
        check_close(__FILE__, __LINE__, "h", element(made[0], i), hiddens[i], tolerance);
    if (dtype == PVG_FLOAT64) {
        CHECK_OK(pvg_recurrent_backward(cell, gradient, NULL, NULL, weight, made[0], made[1],
                                        made[2], backwards, &back[0], &back[1], &back[2],
                                        &back[3]));
        CHECK((back[1] != NULL) == (cell == PVG_CELL_GRU) && (back[3] != NULL) == is_lstm);
        check_slopes(__LINE__, cell, backwards, &n, slopes, n.inputs, back[0]);
        check_slopes(__LINE__, cell, backwards, &n, slopes, n.hidden, back[2]);
        if (is_lstm) check_slopes(__LINE__, cell, backwards, &n, slopes, n.state, back[3]);
    }
    RELEASE(inputs, weight, bias, hidden, first, gradient, made[0], made[1], made[2], back[0],
            back[1], back[2], back[3]);
    free(n.inputs), free(n.weight), free(n.bias), free(n.hidden), free(n.state), free(slopes);
}

static void every_cell(void) {
    uint64_t state = 1;
    for (int d = 0; d < dtype_count; d++)
        for (int cell = PVG_CELL_TANH; cell <= PVG_CELL_GRU && is_float(all_dtypes[d]); cell++)
            for (int backwards = 0; backwards < 2; backwards++)
                check_layer(all_dtypes[d], cell, backwards, &state);
}

static void what_is_refused(void) {
    uint64_t state = 2;
    pvg_array *x = random_array(PVG_FLOAT32, SHAPE(3, 2, 5), &state),
              *w = random_array(PVG_FLOAT32, SHAPE(5, 5), &state),
              *h = random_array(PVG_FLOAT32, SHAPE(2, 5), &state),
              *other = random_array(PVG_FLOAT64, SHAPE(2, 5), &state),
              *all = random_array(PVG_FLOAT32, SHAPE(4, 2, 5), &state), *a = NULL, *b = NULL, *c;
    CHECK_STATUS(pvg_recurrent(4, x, w, NULL, h, NULL, 0, &a, &b, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_recurrent(0, x, w, NULL, h, NULL, 2, &a, &b, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_recurrent(0, x, w, NULL, h, h, 0, &a, &b, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_recurrent(0, x, w, NULL, h, NULL, 0, NULL, &b, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_recurrent(0, x, w, NULL, other, NULL, 0, &a, &b, NULL), PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_recurrent(0, x, w, h, h, NULL, 0, &a, &b, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_recurrent(2, x, w, NULL, h, h, 0, &a, &b, NULL), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_recurrent(0, h, w, NULL, h, NULL, 0, &a, &b, NULL), PVG_ERROR_VALUE);
    CHECK(a == NULL && b == NULL);
    CHECK_STATUS(pvg_recurrent_backward(0, x, NULL, NULL, w, x, NULL, NULL, 0, &a, &b, &c, NULL),
                 PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_recurrent_backward(0, x, other, NULL, w, all, NULL, NULL, 0, &a, &b, &c, NULL),
                 PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_recurrent_backward(0, x, NULL, NULL, w, all, all, NULL, 0, &a, &b, &c, NULL),
                 PVG_ERROR_VALUE);
    CHECK_STATUS(
        pvg_recurrent_backward(0, x, NULL, NULL, w, all, NULL, NULL, 0, &a, &b, NULL, NULL),
        PVG_ERROR_VALUE);
    CHECK(a == NULL && b == NULL);
    RELEASE(x, w, h, other, all);
}

int main(void) {
    begin("test_recurrent");
    RUN(every_cell);
    RUN(what_is_refused);
    return finish();
}
