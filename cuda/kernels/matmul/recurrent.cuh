// What the two directions of recurrent layers share.
//
// What a gate is, and which the numbers of a step are called:
//
//     LSTM    i, f, o = sigmoid, g = tanh;  c = f c + i g;  h = o tanh(c)
//     GRU     r, z = sigmoid, n = tanh(inputs + r products);  h = (1 - z) n + z h
#pragma once
#include "arrays/call.cuh"

namespace pvg::recurrent {

constexpr int cell_threads = 128;
constexpr int saved_gates = 4; // numbers of a unit that the backward pass needs
// Of so many rows at most a step does not fill a card.
constexpr int64_t few_rows = 128;

__host__ __device__ inline int gates_of(int cell) {
    return cell == PVG_CELL_LSTM ? 4 : cell == PVG_CELL_GRU ? 3 : 1;
}
__host__ __device__ inline bool saves_gates(int cell) {
    return cell == PVG_CELL_LSTM || cell == PVG_CELL_GRU;
}

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

// Errors: VALUE, TYPE.
int check_cell(int cell, int backwards);
// An array that may be NULL, beside what its shape has to be.
int check_like(const Layer &layer, const pvg_array *a, const char *what, int ndim, int64_t first,
               int64_t second, int64_t third);
// The sizes of a layer by an array (steps, rows, several of a unit) and the weight.
int find_layer(int cell, int backwards, const pvg_array *steps, const pvg_array *weight,
               Layer *layer);
// One of the steps of an array of three dimensions, as a view of two.
int view_of_step(const pvg_array *a, int64_t number, Temporary *view);

// Where it begins in memory; NULL of no array.
inline void *at_step(const pvg_array *a, int64_t number) {
    return a ? a->data + number * a->strides[0] * dtype_size(a->dtype) : nullptr;
}

} // namespace pvg::recurrent
