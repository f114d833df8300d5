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

// What becomes of one unit of a row: its hidden number, which is stored, too. input(gate) is the
// gate's input, product(gate) of the hidden state and the gate's weights.
template <class T, class Input, class Product>
__device__ __forceinline__ ComputeType<T> finish_unit(const Step &step, int64_t row, int64_t column,
                                                      const Input &input, const Product &product) {
    using A = ComputeType<T>;
    const int64_t width = step.width, place = row * width + column;
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
    const T rounded = static_cast<T>(next);
    static_cast<T *>(step.next)[place] = rounded;
    return static_cast<A>(rounded);
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

// The way back through one unit of a row; products: of the gates of the step behind it and the
// weight. Stores the gradients and gives put(gate, gradient) those of the products.
template <class T, class Put>
__device__ __forceinline__ void go_back(const StepBack &step, int64_t row, int64_t column,
                                        ComputeType<T> products, const Put &put) {
    using A = ComputeType<T>;
    const int64_t width = step.width, place = row * width + column;
    const int64_t first = row * gates_of(step.cell) * width + column;
    const int64_t saved = row * saved_gates * width + column;
    const auto store = [&](int gate, A gradient) {
        const T rounded = static_cast<T>(gradient);
        static_cast<T *>(step.dinputs)[first + gate * width] = rounded;
        return rounded;
    };
    const A dh = number<T>(step.gradient, place) + number<T>(step.last, place) + products +
                 number<T>(step.dnext, place);
    if (step.cell == PVG_CELL_LSTM) {
        const A i = number<T>(step.gates, saved), f = number<T>(step.gates, saved + width);
        const A g = number<T>(step.gates, saved + 2 * width);
        const A o = number<T>(step.gates, saved + 3 * width);
        const A c = tanh(number<T>(step.next_state, place));
        const A dc = number<T>(step.dstate, place) + dh * o * (1 - c) * (1 + c);
        put(0, store(0, dc * g * i * (1 - i)));
        put(1, store(1, dc * number<T>(step.state, place) * f * (1 - f)));
        put(2, store(2, dc * i * (1 - g) * (1 + g)));
        put(3, store(3, dh * c * o * (1 - o)));
        static_cast<T *>(step.dstate_before)[place] = static_cast<T>(dc * f);
    } else if (step.cell == PVG_CELL_GRU) {
        const A r = number<T>(step.gates, saved), z = number<T>(step.gates, saved + width);
        const A n = number<T>(step.gates, saved + 2 * width);
        const A p = number<T>(step.gates, saved + 3 * width);
        const A dn = dh * (1 - z) * (1 - n) * (1 + n);
        const A dr = dn * p * r * (1 - r);
        const A dz = dh * (number<T>(step.hidden, place) - n) * z * (1 - z);
        const auto both = [&](int gate, T gradient) {
            static_cast<T *>(step.dproducts)[first + gate * width] = gradient;
            put(gate, gradient);
        };
        both(0, store(0, dr));
        both(1, store(1, dz));
        store(2, dn);
        both(2, static_cast<T>(dn * r));
        static_cast<T *>(step.direct)[place] = static_cast<T>(dh * z);
    } else {
        const A y = number<T>(step.next, place);
        const A through = y <= 0 ? A(0) : dh;
        put(0, store(0, step.cell == PVG_CELL_RELU ? through : dh * (1 - y) * (1 + y)));
    }
}

} // namespace pvg::recurrent
