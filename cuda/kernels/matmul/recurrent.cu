// pvg_recurrent: recurrent layers over all their steps.
//
// All steps of few rows and a small weight are one launch (recurrent_sequence.cu). Else a step of
// few rows and units is one, of a kernel whose blocks have all gates of some units. Of more it is
// two: a product of the hidden state and the weight by the kernels for products, and one kernel
// for all that is done element by element.
#include "arrays/operation.cuh"
#include "arrays/vector.cuh"
#include "kernels/matmul/dense.cuh"
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/recurrent_cell.cuh"
#include "kernels/matmul/recurrent_sequence.cuh"

namespace pvg {
namespace recurrent {
namespace {

template <class T> __global__ void __launch_bounds__(cell_threads) cell_kernel(const Step step) {
    const int64_t place = static_cast<int64_t>(blockIdx.x) * cell_threads + threadIdx.x;
    if (place >= step.rows * step.width) return;
    const int64_t row = place / step.width, column = place % step.width;
    finish_unit<T>(step, row, column, gate_of<T>(step, step.inputs, row, column),
                   gate_of<T>(step, step.products, row, column));
}

// ---- A step in one launch -----------------------------------------------------------------------

// A block has so many rows and units, a thread one of each: all its gates.
constexpr int step_rows = 32, step_units = 8, step_threads = step_rows * step_units;
// Beyond it what one block reads of the weight is used too seldom for products so simple.
constexpr int64_t most_width = 512;

template <class T> inline constexpr int step_vector = 16 / sizeof(ComputeType<T>);
template <class T> inline constexpr int step_depth = 32 * step_vector<T>; // of a stage

// Columns from `begin` on of rows of a matrix without gaps; zeros outside.
template <class T, int ROWS, class Stage, class RowOf>
__device__ __forceinline__ void load_rows(Stage &stage, const void *matrix, int64_t width,
                                          int64_t begin, const RowOf &row_of) {
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * step_depth<T>; i += step_threads) {
        const int row = i / step_depth<T>, column = i % step_depth<T>;
        const int64_t from = row_of(row);
        stage[row][column] = from >= 0 && begin + column < width
                                 ? static_cast<ComputeType<T>>(static_cast<const T *>(
                                       matrix)[from * width + begin + column])
                                 : ComputeType<T>(0);
    }
}

template <class T> __global__ void __launch_bounds__(step_threads) step_kernel(const Step step) {
    using A = ComputeType<T>;
    constexpr int n = step_vector<T>, padded = step_depth<T> + n;
    using Some = Vector<A, n>;
    __shared__ __align__(16) A hidden[step_rows][padded];
    __shared__ __align__(16) A weights[saved_gates * step_units][padded];
    const int64_t across = (step.width + step_units - 1) / step_units;
    const int64_t top = blockIdx.x / across * step_rows, left = blockIdx.x % across * step_units;
    const int unit = threadIdx.x % step_units, own = threadIdx.x / step_units;
    const int gates = gates_of(step.cell);
    A sums[saved_gates] = {};
    for (int64_t begin = 0; begin < step.width; begin += step_depth<T>) {
        __syncthreads();
        load_rows<T, step_rows>(hidden, step.hidden, step.width, begin, [&](int row) {
            return top + row < step.rows ? top + row : int64_t(-1);
        });
        load_rows<T, saved_gates * step_units>(
            weights, step.weight, step.width, begin, [&](int row) {
                const int gate = row / step_units, column = row % step_units;
                const bool inside = gate < gates && left + column < step.width;
                return inside ? gate * step.width + left + column : int64_t(-1);
            });
        __syncthreads();
        const int64_t left_over = step.width - begin;
        const int end = left_over < step_depth<T> ? static_cast<int>(left_over) : step_depth<T>;
        // Of this stage: one chain of all terms would err with their number.
        A part[saved_gates] = {};
#pragma unroll 4
        for (int k = 0; k < end; k += n) {
            const Some h = *reinterpret_cast<const Some *>(&hidden[own][k]);
#pragma unroll
            for (int gate = 0; gate < saved_gates; gate++) {
                if (gate >= gates) break;
                const Some w =
                    *reinterpret_cast<const Some *>(&weights[gate * step_units + unit][k]);
#pragma unroll
                for (int e = 0; e < n; e++) part[gate] += h.element[e] * w.element[e];
            }
        }
#pragma unroll
        for (int gate = 0; gate < saved_gates; gate++) sums[gate] += part[gate];
    }
    if (top + own >= step.rows || left + unit >= step.width) return;
    const auto input = gate_of<T>(step, step.inputs, top + own, left + unit);
    finish_unit<T>(step, top + own, left + unit, input, [&](int gate) {
        return sums[gate] + bias_of<T>(step, gate * step.width + left + unit);
    });
}

} // namespace

// ---- Checks -------------------------------------------------------------------------------------

int check_cell(int cell, int backwards) {
    PVG_REQUIRE(cell >= PVG_CELL_TANH && cell <= PVG_CELL_GRU, PVG_ERROR_VALUE, "unknown cell %d",
                cell);
    PVG_REQUIRE(backwards == 0 || backwards == 1, PVG_ERROR_VALUE, "backwards is 0 or 1, got %d",
                backwards);
    return PVG_OK;
}

int check_like(const Layer &layer, const pvg_array *a, const char *what, int ndim, int64_t first,
               int64_t second, int64_t third) {
    const int64_t shape[] = {first, second, third};
    if (!a) return PVG_OK;
    PVG_REQUIRE(a->dtype == layer.dtype, PVG_ERROR_TYPE, "takes one dtype, got %s and %s",
                dtype_name(layer.dtype), dtype_name(a->dtype));
    PVG_REQUIRE(same_shape(a, ndim, shape), PVG_ERROR_VALUE, "%s of shape %s, not %s", what,
                shape_text(a), shape_text(ndim, shape));
    return PVG_OK;
}

int find_layer(int cell, int backwards, const pvg_array *steps, const pvg_array *weight,
               Layer *layer) {
    PVG_REQUIRE(is_among(weight->dtype, floats), PVG_ERROR_TYPE, "takes a float dtype, got %s",
                dtype_name(weight->dtype));
    PVG_REQUIRE(steps->ndim == 3 && steps->shape[0] > 0 && weight->ndim == 2 &&
                    weight->shape[0] == gates_of(cell) * weight->shape[1],
                PVG_ERROR_VALUE, "steps of shape %s, and a weight of shape %s", shape_text(steps),
                shape_text(weight));
    *layer = {cell,
              PVG_PRECISION_DEFAULT,
              steps->shape[0],
              steps->shape[1],
              weight->shape[1],
              weight->shape[0],
              weight->dtype,
              backwards != 0};
    return matmul::check_precision(&layer->precision);
}

int view_of_step(const pvg_array *a, int64_t number, Temporary *view) {
    release(view->take());
    return new_view(a, 2, a->shape + 1, a->strides + 1, number * a->strides[0], false,
                    &view->array);
}

namespace {

// ---- Steps --------------------------------------------------------------------------------------

struct Forward {
    const pvg_array *inputs, *weight, *bias, *hidden, *state;
    pvg_array *hiddens, *states, *gates, *products;
};

// What a step reads and writes, but the products.
Step step_of(const Layer &layer, const Forward &arrays, int64_t turn) {
    const int64_t number = layer.step(turn), from = layer.before(turn), to = layer.behind(turn);
    Step step = {};
    step.cell = layer.cell, step.rows = layer.rows, step.width = layer.width;
    step.inputs = at_step(arrays.inputs, number);
    step.hidden = at_step(arrays.hiddens, from), step.next = at_step(arrays.hiddens, to);
    step.state = at_step(arrays.states, from), step.next_state = at_step(arrays.states, to);
    step.gates = at_step(arrays.gates, number);
    if (arrays.bias) step.bias = arrays.bias->data, step.bias_stride = arrays.bias->strides[0];
    return step;
}

template <class T> int launch_at_once(Call &call, const Layer &layer, const Forward &arrays) {
    const unsigned blocks = blocks_for(layer.rows, step_rows) * blocks_for(layer.width, step_units);
    for (int64_t turn = 0; turn < layer.steps; turn++) {
        Step step = step_of(layer, arrays, turn);
        step.weight = arrays.weight->data;
        PVG_LAUNCH(step_kernel<T>, blocks, step_threads, 0, call.stream, step);
    }
    return PVG_OK;
}

template <class T> int launch_in_two(Call &call, const Layer &layer, const Forward &arrays) {
    const unsigned blocks = blocks_for(layer.rows * layer.width, cell_threads);
    Temporary before;
    matmul::Epilogue epilogue;
    if (arrays.bias)
        epilogue.bias = arrays.bias->data, epilogue.bias_stride = arrays.bias->strides[0];
    for (int64_t turn = 0; turn < layer.steps; turn++) {
        PVG_PASS(view_of_step(arrays.hiddens, layer.before(turn), &before));
        PVG_PASS(multiply(call, before.array, 0, arrays.weight, 0, layer.precision, epilogue,
                          arrays.products));
        Step step = step_of(layer, arrays, turn);
        step.products = arrays.products->data;
        PVG_LAUNCH(cell_kernel<T>, blocks, cell_threads, 0, call.stream, step);
    }
    return PVG_OK;
}

int launch_steps(Call &call, const Layer &layer, Forward arrays) {
    const int64_t shape[] = {layer.rows, layer.gates};
    const bool at_once = layer.rows <= few_rows && layer.width <= most_width;
    Temporary straight, products;
    if (arrays.bias) PVG_PASS(call.reads(arrays.bias));
    if (is_short_sequence(layer)) {
        const Step steps[] = {step_of(layer, arrays, 0), step_of(layer, arrays, 1)};
        return sequence_forth(call, layer, arrays.weight, steps);
    }
    if (at_once) {
        PVG_PASS(as_contiguous(call, arrays.weight, &straight, &arrays.weight));
    } else {
        PVG_PASS(new_array(call.device, layer.dtype, 2, shape, &products.array));
        arrays.products = products.array;
    }
    PVG_PASS(call.reads(arrays.weight));
    return dispatch<floats>(layer.dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return at_once ? launch_at_once<T>(call, layer, arrays)
                       : launch_in_two<T>(call, layer, arrays);
    });
}

// Copies what is before the first step to its place.
int begin_with(Call &call, const Layer &layer, const pvg_array *given, pvg_array *all) {
    Temporary place;
    PVG_PASS(view_of_step(all, layer.before(0), &place));
    return copy_array(call, given, place.array);
}

int run_recurrent(Call &call, int cell, Forward arrays, int backwards, pvg_array **const *given) {
    const pvg_array *all[] = {arrays.inputs, arrays.weight, arrays.hidden, arrays.state,
                              arrays.bias};
    const bool has_state = cell == PVG_CELL_LSTM;
    int device = -1;
    Layer layer;
    PVG_PASS(check_cell(cell, backwards));
    PVG_REQUIRE((arrays.state != nullptr) == has_state, PVG_ERROR_VALUE,
                "a state is of LSTM, and of LSTM alone");
    PVG_REQUIRE(given[0] && (given[1] || !has_state), PVG_ERROR_VALUE,
                "hiddens or states is a null pointer");
    PVG_PASS(check_operands(all, has_state ? 4 : 3, &device));
    if (arrays.bias) {
        const pvg_array *both[] = {arrays.inputs, arrays.bias};
        PVG_PASS(check_operands(both, 2, &device));
    }
    PVG_PASS(find_layer(cell, backwards, arrays.inputs, arrays.weight, &layer));
    PVG_PASS(check_like(layer, arrays.inputs, "inputs", 3, layer.steps, layer.rows, layer.gates));
    PVG_PASS(check_like(layer, arrays.bias, "bias", 1, layer.gates, 0, 0));
    PVG_PASS(check_like(layer, arrays.hidden, "hidden", 2, layer.rows, layer.width, 0));
    PVG_PASS(check_like(layer, arrays.state, "state", 2, layer.rows, layer.width, 0));
    PVG_PASS(call.begin(device));

    const int64_t rows[] = {layer.steps + 1, layer.rows, layer.width};
    const int64_t saved[] = {layer.steps, layer.rows, saved_gates * layer.width};
    const bool keeps = given[2] && saves_gates(cell);
    Temporary straight, made[3];
    PVG_PASS(as_contiguous(call, arrays.inputs, &straight, &arrays.inputs));
    PVG_PASS(new_array(device, layer.dtype, 3, rows, &made[0].array));
    if (has_state) PVG_PASS(new_array(device, layer.dtype, 3, rows, &made[1].array));
    if (keeps) PVG_PASS(new_array(device, layer.dtype, 3, saved, &made[2].array));
    arrays.hiddens = made[0].array, arrays.states = made[1].array, arrays.gates = made[2].array;
    PVG_PASS(begin_with(call, layer, arrays.hidden, arrays.hiddens));
    if (has_state) PVG_PASS(begin_with(call, layer, arrays.state, arrays.states));
    PVG_PASS(call.reads(arrays.inputs));
    if (keeps) PVG_PASS(call.writes(arrays.gates));
    if (layer.rows * layer.width > 0) PVG_PASS(launch_steps(call, layer, arrays));
    for (int i = 0; i < 3; i++)
        if (given[i]) *given[i] = made[i].take();
    return PVG_OK;
}

} // namespace
} // namespace recurrent

Operations recurrent_operations() {
    static constexpr Operation rows[] = {
        {PVG_RECURRENT, "recurrent", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API int pvg_recurrent(int cell, const pvg_array *inputs, const pvg_array *weight,
                          const pvg_array *bias, const pvg_array *hidden, const pvg_array *state,
                          int backwards, pvg_array **hiddens, pvg_array **states,
                          pvg_array **gates) {
    pvg::Call call("recurrent");
    pvg_array **const results[] = {hiddens, states, gates};
    return pvg::recurrent::run_recurrent(
        call, cell, {inputs, weight, bias, hidden, state, nullptr, nullptr, nullptr, nullptr},
        backwards, results);
}
