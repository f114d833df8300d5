// Recurrent layers of a small weight and not too many rows: all steps in one launch, forth or back.
//
// Rows do not know of each other, so a block has one row and goes through all steps by itself. A
// thread has one column of the products, that is one unit of one gate: forth its sum over the
// hidden numbers, back its gate's share of the hidden unit's gradient, a sum over the gradients of
// the gate's units. Before it the weight is laid out anew, in groups of 16 bytes of neighbouring
// terms, those of all columns side by side: so a warp reads whole lines of it. A thread keeps the
// first groups of its column in registers, as many others as there is room for stay in shared
// memory, and the rest comes from the L2 cache, each step again; which of them changes no bit. Of
// 256 KB a step reads 128 KB of shared memory, in 1,024 cycles, and waits twice for all threads,
// where a launch for each takes microseconds. A gate's function is its thread's, so that all warps
// share that work, and what a unit needs from memory is read while the products are summed.
#include "arrays/operation.cuh"
#include "arrays/vector.cuh"
#include "kernels/matmul/recurrent_sequence.cuh"
#include "runtime/device.cuh"

namespace pvg::recurrent {
namespace {

constexpr int most_columns = 512; // a thread each
// That a thread has registers for.
template <class A> inline constexpr int held_groups = sizeof(A) == 8 ? 14 : 16;
constexpr int64_t most_weight = 256 << 10;
// Of all rows: two blocks after another on each of 128 multiprocessors, or as many smaller ones. A
// step of the largest weight takes 2 us, where a product and a kernel a step take 7 and more.
constexpr int64_t most_threads = 128 * 2 * most_columns;
constexpr int pack_threads = 256;

template <class A> inline constexpr int group_size = 16 / sizeof(A);
template <class A> using Group = Vector<A, group_size<A>>;
// Of so many groups is a chain: one of all terms would err with their number.
constexpr int chain_groups = 32;

// The weight as the columns of a product read it.
struct Terms {
    const void *groups;       // (count, columns) of Group
    int count, kept, columns; // kept: those before it are in registers or in shared memory
};

// ---- The weight ---------------------------------------------------------------------------------

struct Pack {
    const void *weight;
    int64_t row_stride, column_stride;
    int width, columns;
    bool back;
    int64_t size;
};

// to[group, column, e]; zeros behind the last term.
template <class T>
__global__ void __launch_bounds__(pack_threads) pack_kernel(ComputeType<T> *to, const Pack pack) {
    using A = ComputeType<T>;
    const int64_t place = static_cast<int64_t>(blockIdx.x) * pack_threads + threadIdx.x;
    if (place >= pack.size) return;
    const int element = static_cast<int>(place % group_size<A>);
    const int64_t at = place / group_size<A>;
    const int column = static_cast<int>(at % pack.columns);
    const int term = static_cast<int>(at / pack.columns) * group_size<A> + element;
    const int gate = column / pack.width * pack.width;
    const int64_t from =
        pack.back ? (gate + term) * pack.row_stride + (column - gate) * pack.column_stride
                  : column * pack.row_stride + term * pack.column_stride;
    to[place] =
        term < pack.width ? static_cast<A>(static_cast<const T *>(pack.weight)[from]) : A(0);
}

// The weight's groups that a block reads once: the first of a column in its thread's
// registers, those up to terms.kept in shared memory.
template <class A> struct Weights {
    static constexpr int held_count = held_groups<A>, at_once = 8;
    const Terms &terms;
    Group<A> *kept;
    int column;
    Group<A> held[held_count];

    __device__ __forceinline__ Weights(const Terms &all, Group<A> *shared)
        : terms(all), kept(shared), column(static_cast<int>(threadIdx.x)) {
        const Group<A> *const groups = static_cast<const Group<A> *>(terms.groups);
        for (int i = held_count * terms.columns + column; i < terms.kept * terms.columns;
             i += static_cast<int>(blockDim.x))
            kept[i - held_count * terms.columns] = groups[i];
#pragma unroll
        for (int group = 0; group < held_count; group++)
            if (group < terms.count && column < terms.columns)
                held[group] = groups[group * terms.columns + column];
    }
    // The sum of the column's weights times `numbers`, which are in shared memory.
    __device__ __forceinline__ A weighted(const A *numbers) const {
        const Group<A> *const groups = static_cast<const Group<A> *>(terms.groups);
        A sum = 0, part = 0;
        const auto add = [&](const Group<A> &weights, int group) {
            const Group<A> some =
                *reinterpret_cast<const Group<A> *>(numbers + group * group_size<A>);
#pragma unroll
            for (int e = 0; e < group_size<A>; e++) part += weights.element[e] * some.element[e];
        };
#pragma unroll
        for (int group = 0; group < held_count; group++)
            if (group < terms.count) add(held[group], group);
        static_assert(held_count < chain_groups);
        for (int begin = 0; begin < terms.count; begin += chain_groups) {
            const int end = min(begin + chain_groups, terms.count);
            const int border = max(begin, min(end, terms.kept));
#pragma unroll at_once
            for (int group = begin ? begin : held_count; group < border; group++)
                add(kept[(group - held_count) * terms.columns + column], group);
#pragma unroll at_once
            for (int group = max(border, held_count); group < end; group++)
                add(groups[group * terms.columns + column], group);
            sum += part;
            part = 0;
        }
        return sum;
    }
};

// ---- Turns --------------------------------------------------------------------------------------

// What is `first` at turn 0 and `second` at turn 1.
template <class P> __device__ __forceinline__ P *at_turn(P *first, P *second, int64_t turn) {
    using Bytes = std::conditional_t<std::is_const_v<P>, const char, char>;
    Bytes *const begin = static_cast<Bytes *>(first);
    return first ? begin + turn * (static_cast<Bytes *>(second) - begin) : first;
}

__device__ __forceinline__ Step at_turn(const Step &first, const Step &second, int64_t turn) {
    Step step = first;
    step.inputs = at_turn(first.inputs, second.inputs, turn);
    step.hidden = at_turn(first.hidden, second.hidden, turn);
    step.state = at_turn(first.state, second.state, turn);
    step.next = at_turn(first.next, second.next, turn);
    step.next_state = at_turn(first.next_state, second.next_state, turn);
    step.gates = at_turn(first.gates, second.gates, turn);
    return step;
}

__device__ __forceinline__ StepBack at_turn(const StepBack &first, const StepBack &second,
                                            int64_t turn) {
    StepBack step = turn ? second : first; // which differ in what is given behind the last step
    step.gradient = at_turn(first.gradient, second.gradient, turn);
    step.hidden = at_turn(first.hidden, second.hidden, turn);
    step.state = at_turn(first.state, second.state, turn);
    step.next = at_turn(first.next, second.next, turn);
    step.next_state = at_turn(first.next_state, second.next_state, turn);
    step.gates = at_turn(first.gates, second.gates, turn);
    step.dinputs = at_turn(first.dinputs, second.dinputs, turn);
    step.dproducts = at_turn(first.dproducts, second.dproducts, turn);
    return step;
}

// ---- Kernels ------------------------------------------------------------------------------------

template <class T>
__global__ void __launch_bounds__(most_columns, 1)
    sequence_kernel(const Step first, const Step second, const __grid_constant__ Terms terms,
                    const int64_t steps) {
    using A = ComputeType<T>;
    PVG_DYNAMIC_SHARED(Group<A>, kept);
    const int column = static_cast<int>(threadIdx.x), width = static_cast<int>(first.width);
    const int gate = column / width, padded = terms.count * group_size<A>;
    A *const hidden =
        reinterpret_cast<A *>(kept + max(terms.kept - held_groups<A>, 0) * terms.columns);
    A *const values = hidden + padded, *const last_inputs = values + terms.columns;
    const int64_t row = blockIdx.x;
    const Weights<A> weights(terms, kept);
    Unit<A> unit = {};
    if (column < width) unit = unit_before<T>(first, row, column);
    if (column < padded) hidden[column] = unit.hidden; // zeros behind the last
    const A bias = column < terms.columns ? bias_of<T>(first, column) : A(0);
    __syncthreads();
    for (int64_t turn = 0; turn < steps; turn++) {
        const Step step = at_turn(first, second, turn);
        if (column < terms.columns) {
            const A input = number<T>(step.inputs, row * terms.columns + column);
            const A product = weights.weighted(hidden) + bias;
            values[column] = gate_value<A>(step.cell, gate, input, product);
            if (gate == 2) last_inputs[column - 2 * width] = input;
        }
        __syncthreads();
        if (column < width) {
            const A input = step.cell == PVG_CELL_GRU ? last_inputs[column] : A(0);
            finish_unit<T>(
                step, row, column, input, [&](int of) { return values[of * width + column]; },
                &unit);
            hidden[column] = unit.hidden;
        }
        __syncthreads();
    }
}

template <class T>
__global__ void __launch_bounds__(most_columns, 1)
    sequence_backward_kernel(const StepBack first, const StepBack second,
                             const __grid_constant__ Terms terms, const int64_t steps, T *dhidden) {
    using A = ComputeType<T>;
    PVG_DYNAMIC_SHARED(Group<A>, kept);
    const int column = static_cast<int>(threadIdx.x), width = static_cast<int>(first.width);
    const int gates = gates_of(first.cell), padded = terms.count * group_size<A>;
    A *const slopes =
        reinterpret_cast<A *>(kept + max(terms.kept - held_groups<A>, 0) * terms.columns);
    A *const shares = slopes + gates * padded;
    const int64_t row = blockIdx.x;
    const auto through = [&]() {
        A sum = shares[column];
        for (int gate = 1; gate < gates; gate++) sum += shares[gate * width + column];
        return sum;
    };
    const Weights<A> weights(terms, kept);
    UnitBack<A> unit = {};
    Reads<A> reads = {};
    if (column < width) {
        unit = unit_behind<T>(first, row, column);
        reads = read_back<T>(first, row, column);
    }
    for (int k = column; k < gates * padded; k += static_cast<int>(blockDim.x)) slopes[k] = A(0);
    if (column < terms.columns) shares[column] = A(0); // nothing is behind the last step
    __syncthreads();
    for (int64_t turn = 0; turn < steps; turn++) {
        if (column < width)
            go_back<T>(
                at_turn(first, second, turn), row, column, reads, through(), &unit,
                [&](int gate, T slope) { slopes[gate * padded + column] = static_cast<A>(slope); });
        __syncthreads();
        if (column < width && turn + 1 < steps)
            reads = read_back<T>(at_turn(first, second, turn + 1), row, column);
        if (column < terms.columns)
            shares[column] = weights.weighted(slopes + column / width * padded);
        __syncthreads();
    }
    if (column < width) dhidden[row * width + column] = static_cast<T>(through() + unit.direct);
}

// ---- On the host --------------------------------------------------------------------------------

// The weight's groups in `packed`, and the shared memory of a block that needs `others` numbers.
template <class T>
int pack(Call &call, const Layer &layer, const pvg_array *weight, bool back, int64_t others,
         Temporary *packed, Terms *terms, size_t *shared) {
    using A = ComputeType<T>;
    constexpr int64_t set_aside = 1 << 10; // of a block's shared memory CUDA takes some itself
    const int columns = static_cast<int>(layer.gates), width = static_cast<int>(layer.width);
    const int count = (width + group_size<A> - 1) / group_size<A>;
    const int64_t size = int64_t(count) * columns * group_size<A>;
    PVG_PASS(call.reads(weight));
    PVG_PASS(new_array(call.device, DtypeOf<A>::value, 1, &size, &packed->array));
    PVG_PASS(call.writes(packed->array));
    const Pack from = {weight->data, weight->strides[0], weight->strides[1], width, columns, back,
                       size};
    PVG_LAUNCH(pack_kernel<T>, blocks_for(size, pack_threads), pack_threads, 0, call.stream,
               data<A>(packed->array), from);
    int64_t most = 0;
    PVG_PASS(device_attribute(call.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most));
    const int64_t line = int64_t(columns) * sizeof(Group<A>), rest = others * sizeof(A);
    const int held = held_groups<A>;
    const int64_t room = (most - set_aside - rest) / line, others_of = count - held;
    const int64_t kept = room < 0 || others_of < 0 ? 0 : room < others_of ? room : others_of;
    *terms = {packed->array->data, count, static_cast<int>(held + kept), columns};
    *shared = static_cast<size_t>(kept * line + rest);
    return PVG_OK;
}

unsigned threads_of(const Terms &terms) { return (terms.columns + 31u) / 32u * 32u; }

int64_t padded_width(const Layer &layer) { return (layer.width + 3) / 4 * 4; }

} // namespace

bool is_short_sequence(const Layer &layer) {
    const int64_t item = layer.dtype == PVG_FLOAT64 ? 8 : 4;
    const int64_t threads = (layer.gates + 31) / 32 * 32;
    return layer.steps > 1 && layer.gates <= most_columns &&
           layer.rows <= most_threads / (threads > 0 ? threads : 1) &&
           layer.gates * layer.width * item <= most_weight;
}

int sequence_forth(Call &call, const Layer &layer, const pvg_array *weight, const Step *steps) {
    return dispatch<floats>(layer.dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        Temporary packed;
        Terms terms;
        size_t shared = 0;
        PVG_PASS(pack<T>(call, layer, weight, false, padded_width(layer) + 2 * layer.gates, &packed,
                         &terms, &shared));
        PVG_LAUNCH(sequence_kernel<T>, blocks_for(layer.rows, 1), threads_of(terms), shared,
                   call.stream, steps[0], steps[1], terms, layer.steps);
        return PVG_OK;
    });
}

int sequence_back(Call &call, const Layer &layer, const pvg_array *weight, const StepBack *steps,
                  pvg_array *dhidden) {
    return dispatch<floats>(layer.dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        Temporary packed;
        Terms terms;
        size_t shared = 0;
        const int64_t slopes = gates_of(layer.cell) * padded_width(layer);
        PVG_PASS(
            pack<T>(call, layer, weight, true, slopes + layer.gates, &packed, &terms, &shared));
        PVG_LAUNCH(sequence_backward_kernel<T>, blocks_for(layer.rows, 1), threads_of(terms),
                   shared, call.stream, steps[0], steps[1], terms, layer.steps, data<T>(dhidden));
        return PVG_OK;
    });
}

} // namespace pvg::recurrent
