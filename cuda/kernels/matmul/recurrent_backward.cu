// pvg_recurrent_backward: the steps of pvg_recurrent from the last to the first.
//
// All steps of few rows and a small weight are one launch (recurrent_sequence.cu). Else a step is
// two: one kernel for all that is done element by element, and a product of the gates' gradient
// and the weight, which is the gradient of the hidden state before the step. The weight's own
// gradient is left to one product of all steps.
#include "kernels/matmul/dense.cuh"
#include "kernels/matmul/recurrent_cell.cuh"
#include "kernels/matmul/recurrent_sequence.cuh"

namespace pvg {
namespace recurrent {
namespace {

template <class T>
__global__ void __launch_bounds__(cell_threads) cell_backward_kernel(const StepBack step) {
    const int64_t place = static_cast<int64_t>(blockIdx.x) * cell_threads + threadIdx.x;
    if (place >= step.rows * step.width) return;
    const int64_t row = place / step.width, column = place % step.width;
    UnitBack<ComputeType<T>> unit = unit_behind<T>(step, row, column);
    go_back<T>(step, row, column, read_back<T>(step, row, column), number<T>(step.products, place),
               &unit, [](int, T) {});
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

// ---- On the host -------------------------------------------------------------------------------

struct Backward {
    const pvg_array *gradient, *dlast, *dstate, *weight, *hiddens, *states, *gates;
    // Room for the gradients of h through the gates (which dhidden is) and past them, and of c.
    pvg_array *dinputs, *dproducts, *dhidden, *dcell, *direct;
};

StepBack step_back_of(const Layer &layer, const Backward &arrays, int64_t turn) {
    const bool first = turn == layer.steps - 1;
    const int64_t step = layer.step(turn), from = layer.before(turn), to = layer.behind(turn);
    StepBack one = {};
    one.cell = layer.cell, one.rows = layer.rows, one.width = layer.width;
    one.gradient = at_step(arrays.gradient, step);
    one.last = first && arrays.dlast ? arrays.dlast->data : nullptr;
    one.products = first ? nullptr : arrays.dhidden->data;
    one.hidden = at_step(arrays.hiddens, from), one.next = at_step(arrays.hiddens, to);
    one.state = at_step(arrays.states, from), one.next_state = at_step(arrays.states, to);
    one.gates = at_step(arrays.gates, step);
    one.dinputs = at_step(arrays.dinputs, step);
    one.dproducts = at_step(arrays.dproducts, step);
    if (arrays.dcell) {
        one.dstate_before = arrays.dcell->data;
        one.dstate = !first ? arrays.dcell->data : arrays.dstate ? arrays.dstate->data : nullptr;
    }
    if (arrays.direct) {
        one.direct = arrays.direct->data;
        one.dnext = first ? nullptr : arrays.direct->data;
    }
    return one;
}

int launch_steps_back(Call &call, const Layer &layer, const Backward &arrays) {
    const pvg_array *through = arrays.dproducts ? arrays.dproducts : arrays.dinputs;
    Temporary gates;
    if (is_short_sequence(layer)) {
        const StepBack steps[] = {step_back_of(layer, arrays, layer.steps - 1),
                                  step_back_of(layer, arrays, layer.steps - 2)};
        return sequence_back(call, layer, arrays.weight, steps, arrays.dhidden);
    }
    for (int64_t turn = layer.steps - 1; turn >= 0; turn--) {
        PVG_PASS(dispatch<floats>(layer.dtype, [&](auto tag) -> int {
            using T = typename decltype(tag)::type;
            PVG_LAUNCH(cell_backward_kernel<T>, blocks_for(layer.rows * layer.width, cell_threads),
                       cell_threads, 0, call.stream, step_back_of(layer, arrays, turn));
            return PVG_OK;
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
} // namespace recurrent
} // namespace pvg

PVG_API int pvg_recurrent_backward(int cell, const pvg_array *gradient, const pvg_array *dlast,
                                   const pvg_array *dstate, const pvg_array *weight,
                                   const pvg_array *hiddens, const pvg_array *states,
                                   const pvg_array *gates, int backwards, pvg_array **dinputs,
                                   pvg_array **dproducts, pvg_array **dhidden, pvg_array **dcell) {
    pvg::Call call("recurrent_backward");
    pvg_array **const results[] = {dinputs, dproducts, dhidden, dcell};
    return pvg::recurrent::run_backward(call, cell,
                                        {gradient, dlast, dstate, weight, hiddens, states, gates,
                                         nullptr, nullptr, nullptr, nullptr, nullptr},
                                        backwards, results);
}
