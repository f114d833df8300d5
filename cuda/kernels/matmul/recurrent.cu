// pvg_recurrent: recurrent layers over all their steps.
//
// All steps of a small weight are one launch (recurrent_sequence.cu). Else a step of few rows and
// units is one, of a kernel whose blocks have all gates of some units. Of more it is
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

// A block has so many rows and units. A thread has one of each, all its gates, and of each stage of
// the terms one slice. What the next stage needs is under way while one is summed.
constexpr int step_rows = 32, step_units = 4, step_slices = 2;
constexpr int step_pairs = step_rows * step_units, step_threads = step_pairs * step_slices;
// Beyond it what one block reads of the weight is used too seldom for products so simple.
constexpr int64_t most_width = 512;

template <class T> inline constexpr int step_vector = 16 / sizeof(ComputeType<T>);
template <class T> inline constexpr int step_depth = 32 * step_vector<T>; // of a stage
template <class T> using StepLine = ComputeType<T>[step_depth<T> + step_vector<T>];

// A thread's part of ROWS rows of a stage.
template <class T, int ROWS> struct StepPart {
    static constexpr int count = 16 / sizeof(T), across = step_depth<T> / count;
    static constexpr int each = ROWS * across / step_threads;
    static_assert(ROWS * across % step_threads == 0);
    Vector<T, count> vectors[each];

    // Columns from `begin` on of rows of a matrix without gaps; zeros outside, which is where
    // row_of gives -1. aligned: all rows begin at multiples of 16 bytes.
    template <class RowOf>
    __device__ __forceinline__ void fetch(const void *matrix, int64_t width, int64_t begin,
                                          bool aligned, const RowOf &row_of) {
#pragma unroll
        for (int i = 0; i < each; i++) {
            const int place = static_cast<int>(threadIdx.x) + i * step_threads;
            const int64_t row = row_of(place / across), column = begin + place % across * count;
            const T *const from = static_cast<const T *>(matrix) + row * width + column;
            vectors[i] = {};
            if (row < 0 || column >= width) continue;
            if (aligned) {
                vectors[i] = *reinterpret_cast<const Vector<T, count> *>(from);
                continue;
            }
#pragma unroll
            for (int e = 0; e < count; e++)
                if (column + e < width) vectors[i].element[e] = from[e];
        }
    }
    __device__ __forceinline__ void put(StepLine<T> *stage) const {
        using A = ComputeType<T>;
#pragma unroll
        for (int i = 0; i < each; i++) {
            const int place = static_cast<int>(threadIdx.x) + i * step_threads;
            A *const to = stage[place / across] + place % across * count;
#pragma unroll
            for (int e = 0; e < count; e++) to[e] = static_cast<A>(vectors[i].element[e]);
        }
    }
};

// sums += the products of a stage's terms that are the thread's, of the row and the unit.
template <class T>
__device__ __forceinline__ void add_stage(ComputeType<T> (&sums)[saved_gates],
                                          const ComputeType<T> *hidden, const StepLine<T> *weights,
                                          int gates, int begin, int end) {
    using A = ComputeType<T>;
    constexpr int n = step_vector<T>;
    using Some = Vector<A, n>;
    A part[saved_gates] = {}; // one chain of all terms would err with their number
#pragma unroll 4
    for (int k = begin; k < end; k += n) {
        const Some h = *reinterpret_cast<const Some *>(hidden + k);
#pragma unroll
        for (int gate = 0; gate < saved_gates; gate++) {
            if (gate >= gates) break;
            const Some w = *reinterpret_cast<const Some *>(weights[gate * step_units] + k);
#pragma unroll
            for (int e = 0; e < n; e++) part[gate] += h.element[e] * w.element[e];
        }
    }
#pragma unroll
    for (int gate = 0; gate < saved_gates; gate++) sums[gate] += part[gate];
}

template <class T> __global__ void __launch_bounds__(step_threads) step_kernel(const Step step) {
    using A = ComputeType<T>;
    __shared__ __align__(16) StepLine<T> hidden[step_rows];
    __shared__ __align__(16) StepLine<T> weights[saved_gates * step_units];
    __shared__ A others[saved_gates][step_pairs];
    const int64_t across = (step.width + step_units - 1) / step_units, width = step.width;
    const int64_t top = blockIdx.x / across * step_rows, left = blockIdx.x % across * step_units;
    const int slice = threadIdx.x / step_pairs, pair = threadIdx.x % step_pairs;
    const int unit = pair % step_units, own = pair / step_units, gates = gates_of(step.cell);
    const int64_t row = top + own, column = left + unit;
    const bool finishes = slice == 0 && row < step.rows && column < width;
    A inputs[saved_gates] = {}, sums[saved_gates] = {};
    Unit<A> numbers = {};
    if (finishes) {
        const auto input = gate_of<T>(step, step.inputs, row, column);
        numbers = unit_before<T>(step, row, column);
#pragma unroll
        for (int gate = 0; gate < saved_gates; gate++)
            if (gate < gates) inputs[gate] = input(gate);
    }
    const bool aligned = (reinterpret_cast<uintptr_t>(step.hidden) |
                          reinterpret_cast<uintptr_t>(step.weight) | (width * sizeof(T))) %
                             16 ==
                         0;
    StepPart<T, step_rows> next_hidden;
    StepPart<T, saved_gates * step_units> next_weights;
    const auto fetch = [&](int64_t begin) {
        next_hidden.fetch(step.hidden, width, begin, aligned,
                          [&](int at) { return top + at < step.rows ? top + at : int64_t(-1); });
        next_weights.fetch(step.weight, width, begin, aligned, [&](int at) {
            const int gate = at / step_units, of = at % step_units;
            return gate < gates && left + of < width ? gate * width + left + of : int64_t(-1);
        });
    };
    fetch(0);
    for (int64_t begin = 0; begin < width; begin += step_depth<T>) {
        __syncthreads();
        next_hidden.put(hidden);
        next_weights.put(weights);
        __syncthreads();
        if (begin + step_depth<T> < width) fetch(begin + step_depth<T>);
        constexpr int part = step_depth<T> / step_slices;
        const int64_t end = width - begin < (slice + 1) * part ? width - begin : (slice + 1) * part;
        add_stage<T>(sums, hidden[own], weights + unit, gates, slice * part, static_cast<int>(end));
    }
    if (slice == 1) {
#pragma unroll
        for (int gate = 0; gate < saved_gates; gate++) others[gate][pair] = sums[gate];
    }
    __syncthreads();
    if (!finishes) return;
    finish_unit<T>(
        step, row, column, inputs[2],
        [&](int gate) {
            const A product =
                sums[gate] + others[gate][pair] + bias_of<T>(step, gate * width + column);
            return gate_value<A>(step.cell, gate, inputs[gate], product);
        },
        &numbers);
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
