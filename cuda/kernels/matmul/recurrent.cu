// pvg_recurrent and pvg_recurrent_backward: recurrent layers over all their steps.
//
// A step is two launches each way: a product of the hidden state and the weight, or of the gates'
// gradient and the weight, and one kernel for all that is done element by element. What a gate is
// and which the numbers of a step are called is the same in both kernels:
//
//     LSTM    i, f, o = sigmoid, g = tanh;  c = f c + i g;  h = o tanh(c)
//     GRU     r, z = sigmoid, n = tanh(inputs + r products);  h = (1 - z) n + z h
#include "arrays/operation.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/matmul/dense.cuh"
#include "kernels/matmul/dispatch.cuh"

namespace pvg {
namespace {

constexpr int cell_threads = 128;
constexpr int saved_gates = 4; // numbers of a unit that the backward pass needs

int gates_of(int cell) { return cell == PVG_CELL_LSTM ? 4 : cell == PVG_CELL_GRU ? 3 : 1; }
bool saves_gates(int cell) { return cell == PVG_CELL_LSTM || cell == PVG_CELL_GRU; }

// One step. Pointers are of T; each gate of a row has `width` numbers.
struct Step {
    int cell;
    int64_t rows, width;
    const void *inputs, *products; // (rows, gates width)
    const void *hidden, *state;    // (rows, width), before the step
    void *next, *next_state;       // behind it
    void *gates;                   // (rows, 4 width), or NULL
};

template <class T> __global__ void __launch_bounds__(cell_threads) cell_kernel(const Step step) {
    using A = ComputeType<T>;
    const int64_t place = static_cast<int64_t>(blockIdx.x) * cell_threads + threadIdx.x;
    if (place >= step.rows * step.width) return;
    const int64_t width = step.width, row = place / width, column = place % width;
    const int count = step.cell == PVG_CELL_LSTM ? 4 : step.cell == PVG_CELL_GRU ? 3 : 1;
    const int64_t first = row * count * width + column;
    const auto input = [&](int gate) {
        return static_cast<A>(static_cast<const T *>(step.inputs)[first + gate * width]);
    };
    const auto product = [&](int gate) {
        return static_cast<A>(static_cast<const T *>(step.products)[first + gate * width]);
    };
    const auto save = [&](A a, A b, A c, A d) {
        if (!step.gates) return;
        T *const gates = static_cast<T *>(step.gates) + (row * saved_gates * width + column);
        gates[0] = static_cast<T>(a), gates[width] = static_cast<T>(b);
        gates[2 * width] = static_cast<T>(c), gates[3 * width] = static_cast<T>(d);
    };
    A next;
    if (step.cell == PVG_CELL_LSTM) {
        const A i = sigmoid(input(0) + product(0)), f = sigmoid(input(1) + product(1));
        const A g = tanh(input(2) + product(2)), o = sigmoid(input(3) + product(3));
        const A c = f * static_cast<A>(static_cast<const T *>(step.state)[place]) + i * g;
        static_cast<T *>(step.next_state)[place] = static_cast<T>(c);
        save(i, f, g, o);
        next = o * tanh(c);
    } else if (step.cell == PVG_CELL_GRU) {
        const A r = sigmoid(input(0) + product(0)), z = sigmoid(input(1) + product(1));
        const A p = product(2), n = tanh(input(2) + r * p);
        save(r, z, n, p);
        next = (1 - z) * n + z * static_cast<A>(static_cast<const T *>(step.hidden)[place]);
    } else {
        const A g = input(0) + product(0);
        next = step.cell == PVG_CELL_RELU ? relu(g) : tanh(g);
    }
    static_cast<T *>(step.next)[place] = static_cast<T>(next);
}

// The way back through a step.
struct StepBack {
    int cell;
    int64_t rows, width;
    const void *gradient;          // of h behind the step by what has used it, (rows, width)
    const void *last;              // beside it, of what was given by itself, or NULL
    const void *products;          // by the gates of the step behind it, or NULL
    const void *hidden, *state;    // before the step
    const void *next, *next_state; // behind it
    const void *gates;
    const void *dstate;   // of c behind the step; or NULL
    void *dinputs;        // (rows, gates width)
    void *dproducts;      // the same, of GRU alone
    void *dstate_before;  // of c before it
    void *direct, *dnext; // GRU: what passes by the gates, before the step and behind it, or NULL
};

template <class T>
__device__ __forceinline__ ComputeType<T> number(const void *numbers, int64_t place) {
    return numbers ? static_cast<ComputeType<T>>(static_cast<const T *>(numbers)[place])
                   : ComputeType<T>(0);
}

template <class T>
__global__ void __launch_bounds__(cell_threads) cell_backward_kernel(const StepBack step) {
    using A = ComputeType<T>;
    const int64_t place = static_cast<int64_t>(blockIdx.x) * cell_threads + threadIdx.x;
    if (place >= step.rows * step.width) return;
    const int64_t width = step.width, row = place / width, column = place % width;
    const int count = step.cell == PVG_CELL_LSTM ? 4 : step.cell == PVG_CELL_GRU ? 3 : 1;
    const int64_t first = row * count * width + column;
    const int64_t saved = row * saved_gates * width + column;
    T *const dinputs = static_cast<T *>(step.dinputs) + first;
    const A dh = number<T>(step.gradient, place) + number<T>(step.last, place) +
                 number<T>(step.products, place) + number<T>(step.dnext, place);
    if (step.cell == PVG_CELL_LSTM) {
        const A i = number<T>(step.gates, saved), f = number<T>(step.gates, saved + width);
        const A g = number<T>(step.gates, saved + 2 * width);
        const A o = number<T>(step.gates, saved + 3 * width);
        const A c = tanh(number<T>(step.next_state, place));
        const A dc = number<T>(step.dstate, place) + dh * o * (1 - c) * (1 + c);
        dinputs[0] = static_cast<T>(dc * g * i * (1 - i));
        dinputs[width] = static_cast<T>(dc * number<T>(step.state, place) * f * (1 - f));
        dinputs[2 * width] = static_cast<T>(dc * i * (1 - g) * (1 + g));
        dinputs[3 * width] = static_cast<T>(dh * c * o * (1 - o));
        static_cast<T *>(step.dstate_before)[place] = static_cast<T>(dc * f);
    } else if (step.cell == PVG_CELL_GRU) {
        const A r = number<T>(step.gates, saved), z = number<T>(step.gates, saved + width);
        const A n = number<T>(step.gates, saved + 2 * width);
        const A p = number<T>(step.gates, saved + 3 * width);
        const A dn = dh * (1 - z) * (1 - n) * (1 + n);
        const A dr = dn * p * r * (1 - r);
        const A dz = dh * (number<T>(step.hidden, place) - n) * z * (1 - z);
        T *const dproducts = static_cast<T *>(step.dproducts) + first;
        dinputs[0] = dproducts[0] = static_cast<T>(dr);
        dinputs[width] = dproducts[width] = static_cast<T>(dz);
        dinputs[2 * width] = static_cast<T>(dn);
        dproducts[2 * width] = static_cast<T>(dn * r);
        static_cast<T *>(step.direct)[place] = static_cast<T>(dh * z);
    } else {
        const A y = number<T>(step.next, place);
        const A through = y <= 0 ? A(0) : dh;
        dinputs[0] = static_cast<T>(step.cell == PVG_CELL_RELU ? through : dh * (1 - y) * (1 + y));
    }
}

// What a GRU passes to the state before its first step beside what goes through the gates.
template <class T>
__global__ void __launch_bounds__(cell_threads)
    cell_direct_kernel(T *dhidden, const T *direct, int64_t size) {
    const int64_t place = static_cast<int64_t>(blockIdx.x) * cell_threads + threadIdx.x;
    if (place < size)
        dhidden[place] = static_cast<T>(static_cast<ComputeType<T>>(dhidden[place]) +
                                        static_cast<ComputeType<T>>(direct[place]));
}

// ---- Checks -------------------------------------------------------------------------------------

struct Layer {
    int cell, precision;
    int64_t steps, rows, width, gates; // gates: of all units
    int dtype;
    bool backwards;
    // The rows of (steps + 1, rows, width) before and behind a step, and its number.
    int64_t step(int64_t turn) const { return backwards ? steps - 1 - turn : turn; }
    int64_t before(int64_t turn) const { return step(turn) + (backwards ? 1 : 0); }
    int64_t behind(int64_t turn) const { return step(turn) + (backwards ? 0 : 1); }
};

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

// The sizes of a layer by an array (steps, rows, several of a unit) and the weight.
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

// One of the steps of an array of three dimensions, as a view of two.
int view_of_step(const pvg_array *a, int64_t number, Temporary *view) {
    release(view->take());
    return new_view(a, 2, a->shape + 1, a->strides + 1, number * a->strides[0], false,
                    &view->array);
}

template <class T> T *at_step(const pvg_array *a, int64_t number) {
    return a ? data<T>(a) + number * a->strides[0] : nullptr;
}

// ---- Forward ------------------------------------------------------------------------------------

struct Forward {
    const pvg_array *inputs, *weight, *bias, *hidden, *state;
    pvg_array *hiddens, *states, *gates, *products;
};

int launch_steps(Call &call, const Layer &layer, const Forward &arrays) {
    const unsigned blocks = blocks_for(layer.rows * layer.width, cell_threads);
    Temporary before;
    matmul::Epilogue epilogue;
    if (arrays.bias) {
        PVG_PASS(call.reads(arrays.bias));
        epilogue.bias = arrays.bias->data, epilogue.bias_stride = arrays.bias->strides[0];
    }
    for (int64_t turn = 0; turn < layer.steps; turn++) {
        PVG_PASS(view_of_step(arrays.hiddens, layer.before(turn), &before));
        PVG_PASS(multiply(call, before.array, 0, arrays.weight, 0, layer.precision, epilogue,
                          arrays.products));
        PVG_PASS(dispatch<floats>(layer.dtype, [&](auto tag) -> int {
            using T = typename decltype(tag)::type;
            const int64_t step = layer.step(turn), from = layer.before(turn),
                          to = layer.behind(turn);
            const Step one = {layer.cell,
                              layer.rows,
                              layer.width,
                              at_step<T>(arrays.inputs, step),
                              arrays.products->data,
                              at_step<T>(arrays.hiddens, from),
                              at_step<T>(arrays.states, from),
                              at_step<T>(arrays.hiddens, to),
                              at_step<T>(arrays.states, to),
                              at_step<T>(arrays.gates, step)};
            PVG_LAUNCH(cell_kernel<T>, blocks, cell_threads, 0, call.stream, one);
            return PVG_OK;
        }));
    }
    return PVG_OK;
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
    const int64_t products[] = {layer.rows, layer.gates};
    const bool keeps = given[2] && saves_gates(cell);
    Temporary straight, made[3], product;
    PVG_PASS(as_contiguous(call, arrays.inputs, &straight, &arrays.inputs));
    PVG_PASS(new_array(device, layer.dtype, 3, rows, &made[0].array));
    if (has_state) PVG_PASS(new_array(device, layer.dtype, 3, rows, &made[1].array));
    if (keeps) PVG_PASS(new_array(device, layer.dtype, 3, saved, &made[2].array));
    PVG_PASS(new_array(device, layer.dtype, 2, products, &product.array));
    arrays.hiddens = made[0].array, arrays.states = made[1].array, arrays.gates = made[2].array;
    arrays.products = product.array;
    PVG_PASS(begin_with(call, layer, arrays.hidden, arrays.hiddens));
    if (has_state) PVG_PASS(begin_with(call, layer, arrays.state, arrays.states));
    PVG_PASS(call.reads(arrays.inputs));
    if (keeps) PVG_PASS(call.writes(arrays.gates));
    if (layer.rows * layer.width > 0) PVG_PASS(launch_steps(call, layer, arrays));
    for (int i = 0; i < 3; i++)
        if (given[i]) *given[i] = made[i].take();
    return PVG_OK;
}

// ---- Backward -----------------------------------------------------------------------------------

struct Backward {
    const pvg_array *gradient, *dlast, *dstate, *weight, *hiddens, *states, *gates;
    // Room for the gradients of h through the gates (which dhidden is) and past them, and of c.
    pvg_array *dinputs, *dproducts, *dhidden, *dcell, *direct;
};

template <class T> int launch_step_back(Call &call, const Layer &layer, const Backward &arrays,
                                        int64_t turn) {
    const bool first = turn == layer.steps - 1;
    const int64_t step = layer.step(turn), from = layer.before(turn), to = layer.behind(turn);
    StepBack one = {};
    one.cell = layer.cell, one.rows = layer.rows, one.width = layer.width;
    one.gradient = at_step<T>(arrays.gradient, step);
    one.last = first && arrays.dlast ? arrays.dlast->data : nullptr;
    one.products = first ? nullptr : arrays.dhidden->data;
    one.hidden = at_step<T>(arrays.hiddens, from), one.next = at_step<T>(arrays.hiddens, to);
    one.state = at_step<T>(arrays.states, from), one.next_state = at_step<T>(arrays.states, to);
    one.gates = at_step<T>(arrays.gates, step);
    one.dinputs = at_step<T>(arrays.dinputs, step);
    one.dproducts = at_step<T>(arrays.dproducts, step);
    if (arrays.dcell) {
        one.dstate_before = arrays.dcell->data;
        one.dstate = !first ? arrays.dcell->data : arrays.dstate ? arrays.dstate->data : nullptr;
    }
    if (arrays.direct) {
        one.direct = arrays.direct->data;
        one.dnext = first ? nullptr : arrays.direct->data;
    }
    PVG_LAUNCH(cell_backward_kernel<T>, blocks_for(layer.rows * layer.width, cell_threads),
               cell_threads, 0, call.stream, one);
    return PVG_OK;
}

int launch_steps_back(Call &call, const Layer &layer, const Backward &arrays) {
    const pvg_array *through = arrays.dproducts ? arrays.dproducts : arrays.dinputs;
    Temporary gates;
    for (int64_t turn = layer.steps - 1; turn >= 0; turn--) {
        PVG_PASS(dispatch<floats>(layer.dtype, [&](auto tag) -> int {
            return launch_step_back<typename decltype(tag)::type>(call, layer, arrays, turn);
        }));
        PVG_PASS(view_of_step(through, layer.step(turn), &gates));
        PVG_PASS(
            multiply(call, gates.array, 0, arrays.weight, 1, layer.precision, {}, arrays.dhidden));
    }
    if (!arrays.direct) return PVG_OK;
    return dispatch<floats>(layer.dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const int64_t size = layer.rows * layer.width;
        PVG_LAUNCH(cell_direct_kernel<T>, blocks_for(size, cell_threads), cell_threads, 0,
                   call.stream, data<T>(arrays.dhidden), data<T>(arrays.direct), size);
        return PVG_OK;
    });
}

int check_back(int cell, int backwards, const Backward &arrays, Layer *layer) {
    const bool has_state = cell == PVG_CELL_LSTM;
    PVG_PASS(find_layer(cell, backwards, arrays.gradient, arrays.weight, layer));
    const int64_t steps = layer->steps, rows = layer->rows, width = layer->width;
    PVG_REQUIRE((arrays.states != nullptr) == has_state && (has_state || !arrays.dstate),
                PVG_ERROR_VALUE, "states are of LSTM, and of LSTM alone");
    PVG_REQUIRE((arrays.gates != nullptr) == saves_gates(cell), PVG_ERROR_VALUE,
                "gates are of LSTM and GRU");
    PVG_PASS(check_like(*layer, arrays.gradient, "gradient", 3, steps, rows, width));
    PVG_PASS(check_like(*layer, arrays.dlast, "dlast", 2, rows, width, 0));
    PVG_PASS(check_like(*layer, arrays.dstate, "dstate", 2, rows, width, 0));
    PVG_PASS(check_like(*layer, arrays.hiddens, "hiddens", 3, steps + 1, rows, width));
    PVG_PASS(check_like(*layer, arrays.states, "states", 3, steps + 1, rows, width));
    return check_like(*layer, arrays.gates, "gates", 3, steps, rows, saved_gates * width);
}

// New arrays for what is wanted, and room for what a GRU passes by its gates.
int make_gradients(Call &call, const Layer &layer, Temporary *made, Temporary *direct) {
    const int64_t gates[] = {layer.steps, layer.rows, layer.gates};
    const int64_t rows[] = {layer.rows, layer.width};
    const bool is_gru = layer.cell == PVG_CELL_GRU;
    const bool wanted[] = {true, is_gru, true, layer.cell == PVG_CELL_LSTM};
    for (int i = 0; i < 4; i++) {
        if (!wanted[i]) continue;
        PVG_PASS(new_array(call.device, layer.dtype, i < 2 ? 3 : 2, i < 2 ? gates : rows,
                           &made[i].array));
        PVG_PASS(call.writes(made[i].array));
    }
    return is_gru ? new_array(call.device, layer.dtype, 2, rows, &direct->array) : PVG_OK;
}

int run_backward(Call &call, int cell, Backward arrays, int backwards, pvg_array **const *given) {
    const pvg_array **const all[] = {&arrays.gradient, &arrays.hiddens, &arrays.dlast,
                                     &arrays.dstate,   &arrays.states,  &arrays.gates};
    int device = -1;
    Layer layer;
    PVG_PASS(check_cell(cell, backwards));
    const pvg_array *needed[] = {arrays.gradient, arrays.weight, arrays.hiddens};
    PVG_PASS(check_operands(needed, 3, &device));
    for (const pvg_array **a : all) {
        const pvg_array *both[] = {arrays.weight, *a};
        if (*a) PVG_PASS(check_operands(both, 2, &device));
    }
    PVG_PASS(check_back(cell, backwards, arrays, &layer));
    const bool wanted[] = {true, cell == PVG_CELL_GRU, true, cell == PVG_CELL_LSTM};
    for (int i = 0; i < 4; i++)
        PVG_REQUIRE(given[i] || !wanted[i], PVG_ERROR_VALUE,
                    "dinputs, dproducts, dhidden or dcell is a null pointer");
    PVG_PASS(call.begin(device));
    Temporary straight[6], made[4], direct;
    for (int i = 0; i < 6; i++) {
        if (!*all[i]) continue;
        PVG_PASS(as_contiguous(call, *all[i], &straight[i], all[i]));
        PVG_PASS(call.reads(*all[i]));
    }
    PVG_PASS(make_gradients(call, layer, made, &direct));
    arrays.dinputs = made[0].array, arrays.dproducts = made[1].array;
    arrays.dhidden = made[2].array, arrays.dcell = made[3].array, arrays.direct = direct.array;
    if (layer.rows * layer.width > 0) PVG_PASS(launch_steps_back(call, layer, arrays));
    for (int i = 0; i < 4; i++)
        if (given[i]) *given[i] = made[i].take();
    return PVG_OK;
}

} // namespace

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
    return pvg::run_recurrent(
        call, cell, {inputs, weight, bias, hidden, state, nullptr, nullptr, nullptr, nullptr},
        backwards, results);
}

PVG_API int pvg_recurrent_backward(int cell, const pvg_array *gradient, const pvg_array *dlast,
                                   const pvg_array *dstate, const pvg_array *weight,
                                   const pvg_array *hiddens, const pvg_array *states,
                                   const pvg_array *gates, int backwards, pvg_array **dinputs,
                                   pvg_array **dproducts, pvg_array **dhidden, pvg_array **dcell) {
    pvg::Call call("recurrent_backward");
    pvg_array **const results[] = {dinputs, dproducts, dhidden, dcell};
    return pvg::run_backward(call, cell,
                             {gradient, dlast, dstate, weight, hiddens, states, gates, nullptr,
                              nullptr, nullptr, nullptr, nullptr},
                             backwards, results);
}
