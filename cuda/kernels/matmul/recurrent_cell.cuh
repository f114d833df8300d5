// What kernels of recurrent layers do with one unit of a row, forth and back.
#pragma once
#include "kernels/elementwise.cuh"
#include "kernels/matmul/recurrent.cuh"

namespace pvg::recurrent {

// One step. Pointers are of T; each gate of a row has `width` numbers.
struct Step {
    int cell;
    int64_t rows, width;
    const void *inputs, *products; // (rows, gates width)
    const void *hidden, *state;    // (rows, width), before the step
    void *next, *next_state;       // behind it
    void *gates;                   // (rows, 4 width), or NULL
    const void *weight, *bias;     // of a step in one launch: (gates width, width), (gates width,)
    int64_t bias_stride;
};

template <class T>
__device__ __forceinline__ ComputeType<T> number(const void *numbers, int64_t place) {
    return numbers ? static_cast<ComputeType<T>>(static_cast<const T *>(numbers)[place])
                   : ComputeType<T>(0);
}

// The gates of a unit in an array (rows, gates width).
template <class T>
__device__ __forceinline__ auto gate_of(const Step &step, const void *gates, int64_t row,
                                        int64_t column) {
    const int64_t width = step.width, first = row * gates_of(step.cell) * width + column;
    return [=](int gate) {
        return static_cast<ComputeType<T>>(static_cast<const T *>(gates)[first + gate * width]);
    };
}

template <class T>
__device__ __forceinline__ ComputeType<T> bias_of(const Step &step, int64_t column) {
    using A = ComputeType<T>;
    if (!step.bias) return A(0);
    return static_cast<A>(static_cast<const T *>(step.bias)[column * step.bias_stride]);
}

// The numbers of a unit that go from one step to the next, as they are stored.
template <class A> struct Unit { A hidden, state; };
template <class T>
__device__ __forceinline__ Unit<ComputeType<T>> unit_before(const Step &step, int64_t row,
                                                            int64_t column) {
    const int64_t place = row * step.width + column;
    return {number<T>(step.hidden, place), number<T>(step.state, place)};
}

// A gate by its input and the product of the hidden state and its weights. GRU's last is scaled
// before it is added to its input: the product.
template <class A>
__device__ __forceinline__ A gate_value(int cell, int gate, A input, A product) {
    const A sum = input + product;
    if (cell == PVG_CELL_LSTM) return gate == 2 ? tanh(sum) : sigmoid(sum);
    if (cell == PVG_CELL_GRU) return gate == 2 ? product : sigmoid(sum);
    return cell == PVG_CELL_RELU ? relu(sum) : tanh(sum);
}

// What becomes of one unit of a row by its gates, value(gate), and the input of GRU's last. What is
// behind the step is stored.
template <class T, class Value>
__device__ __forceinline__ void finish_unit(const Step &step, int64_t row, int64_t column,
                                            ComputeType<T> last_input, const Value &value,
                                            Unit<ComputeType<T>> *unit) {
    using A = ComputeType<T>;
    const int64_t width = step.width, place = row * width + column;
    const auto save = [&](A a, A b, A c, A d) {
        if (!step.gates) return;
        T *const gates = static_cast<T *>(step.gates) + (row * saved_gates * width + column);
        gates[0] = static_cast<T>(a), gates[width] = static_cast<T>(b);
        gates[2 * width] = static_cast<T>(c), gates[3 * width] = static_cast<T>(d);
    };
    A next = value(0);
    if (step.cell == PVG_CELL_LSTM) {
        const A i = next, f = value(1), g = value(2), o = value(3);
        const A c = f * unit->state + i * g;
        const T rounded = static_cast<T>(c);
        static_cast<T *>(step.next_state)[place] = rounded;
        unit->state = static_cast<A>(rounded);
        save(i, f, g, o);
        next = o * tanh(c);
    } else if (step.cell == PVG_CELL_GRU) {
        const A r = next, z = value(1), p = value(2), n = tanh(last_input + r * p);
        save(r, z, n, p);
        next = (1 - z) * n + z * unit->hidden;
    }
    const T rounded = static_cast<T>(next);
    static_cast<T *>(step.next)[place] = rounded;
    unit->hidden = static_cast<A>(rounded);
}

// The same by inputs and products, input(gate) and product(gate).
template <class T, class Input, class Product>
__device__ __forceinline__ void finish_unit(const Step &step, int64_t row, int64_t column,
                                            const Input &input, const Product &product) {
    using A = ComputeType<T>;
    Unit<A> unit = unit_before<T>(step, row, column);
    const A last = step.cell == PVG_CELL_GRU ? input(2) : A(0);
    finish_unit<T>(
        step, row, column, last,
        [&](int gate) { return gate_value<A>(step.cell, gate, input(gate), product(gate)); },
        &unit);
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

// What the way back through one unit reads of memory.
template <class A> struct Reads {
    A given;                      // the gradient of h by what has used it
    A before, out;                // LSTM: c before the step, tanh(c); GRU: h before it; others: h
    A first, second, third, last; // its gates, as finish_unit has saved them
};
template <class T>
__device__ __forceinline__ Reads<ComputeType<T>> read_back(const StepBack &step, int64_t row,
                                                           int64_t column) {
    using A = ComputeType<T>;
    const int64_t width = step.width, place = row * width + column;
    const int64_t saved = row * saved_gates * width + column;
    const bool is_lstm = step.cell == PVG_CELL_LSTM;
    Reads<A> reads = {};
    reads.given = number<T>(step.gradient, place) + number<T>(step.last, place);
    reads.out = number<T>(is_lstm ? step.next_state : step.next, place);
    if (saves_gates(step.cell)) {
        reads.before = number<T>(is_lstm ? step.state : step.hidden, place);
        reads.first = number<T>(step.gates, saved);
        reads.second = number<T>(step.gates, saved + width);
        reads.third = number<T>(step.gates, saved + 2 * width);
        reads.last = number<T>(step.gates, saved + 3 * width);
    }
    if (is_lstm) reads.out = tanh(reads.out);
    return reads;
}

// What goes from one step back to the one before it, as it is stored.
template <class A> struct UnitBack {
    A dstate; // of c; LSTM alone
    A direct; // of h, by the gates; GRU alone
};
template <class T>
__device__ __forceinline__ UnitBack<ComputeType<T>> unit_behind(const StepBack &step, int64_t row,
                                                                int64_t column) {
    const int64_t place = row * step.width + column;
    return {number<T>(step.dstate, place), number<T>(step.dnext, place)};
}

// The way back through one unit of a row; products: of the gates of the step behind it and the
// weight. Stores the gradients and gives put(gate, gradient) those of the products.
template <class T, class Put>
__device__ __forceinline__ void go_back(const StepBack &step, int64_t row, int64_t column,
                                        const Reads<ComputeType<T>> &reads, ComputeType<T> products,
                                        UnitBack<ComputeType<T>> *unit, const Put &put) {
    using A = ComputeType<T>;
    const int64_t width = step.width, place = row * width + column;
    const int64_t first = row * gates_of(step.cell) * width + column;
    const auto store = [&](int gate, A gradient) {
        const T rounded = static_cast<T>(gradient);
        static_cast<T *>(step.dinputs)[first + gate * width] = rounded;
        return rounded;
    };
    const A dh = reads.given + products + unit->direct;
    if (step.cell == PVG_CELL_LSTM) {
        const A i = reads.first, f = reads.second, g = reads.third, o = reads.last, c = reads.out;
        const A dc = unit->dstate + dh * o * (1 - c) * (1 + c);
        put(0, store(0, dc * g * i * (1 - i)));
        put(1, store(1, dc * reads.before * f * (1 - f)));
        put(2, store(2, dc * i * (1 - g) * (1 + g)));
        put(3, store(3, dh * c * o * (1 - o)));
        const T rounded = static_cast<T>(dc * f);
        static_cast<T *>(step.dstate_before)[place] = rounded;
        unit->dstate = static_cast<A>(rounded);
    } else if (step.cell == PVG_CELL_GRU) {
        const A r = reads.first, z = reads.second, n = reads.third, p = reads.last;
        const A dn = dh * (1 - z) * (1 - n) * (1 + n);
        const A dr = dn * p * r * (1 - r);
        const A dz = dh * (reads.before - n) * z * (1 - z);
        const auto both = [&](int gate, T gradient) {
            static_cast<T *>(step.dproducts)[first + gate * width] = gradient;
            put(gate, gradient);
        };
        both(0, store(0, dr));
        both(1, store(1, dz));
        store(2, dn);
        both(2, static_cast<T>(dn * r));
        const T rounded = static_cast<T>(dh * z);
        static_cast<T *>(step.direct)[place] = rounded;
        unit->direct = static_cast<A>(rounded);
    } else {
        const A y = reads.out;
        const A through = y <= 0 ? A(0) : dh;
        put(0, store(0, step.cell == PVG_CELL_RELU ? through : dh * (1 - y) * (1 + y)));
    }
}

} // namespace pvg::recurrent
