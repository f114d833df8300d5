// Recurrent layers of few rows and a small weight: all steps in one launch, forth or back.
//
// Rows do not know of each other, so a block has one row and goes through all steps by itself. A
// thread has one column of the products, that is one unit of one gate: forth its sum over the
// hidden numbers, back its gate's share of the hidden unit's gradient, a sum over the gradients of
// the gate's units. Before it the weight is laid out anew, in groups of 16 bytes of neighbouring
// terms, those of all columns side by side: so a warp reads whole lines of it, each step again. As
// many groups as there is room for stay in shared memory, the others come from the L2 cache; which
// of them changes no bit. A step takes as long as reading the weight, of 256 KB in shared memory
// at least 2,048 cycles, and two waits of a block, where a launch for each takes microseconds.
#include "arrays/operation.cuh"
#include "arrays/vector.cuh"
#include "kernels/matmul/recurrent_sequence.cuh"
#include "runtime/device.cuh"

namespace pvg::recurrent {
namespace {

constexpr int most_columns = 1024; // a thread each
constexpr int64_t most_weight = 256 << 10;
constexpr int pack_threads = 256;

template <class A> inline constexpr int group_size = 16 / sizeof(A);
template <class A> using Group = Vector<A, group_size<A>>;
// Of so many groups is a chain: one of all terms would err with their number.
constexpr int chain_groups = 32;

// The weight as the columns of a product read it.
struct Terms {
    const void *groups;       // (count, columns) of Group
    int count, kept, columns; // kept: how many lie in shared memory
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

template <class A> __device__ __forceinline__ void keep(const Terms &terms, Group<A> *kept) {
    const Group<A> *const groups = static_cast<const Group<A> *>(terms.groups);
    for (int i = static_cast<int>(threadIdx.x); i < terms.kept * terms.columns;
         i += static_cast<int>(blockDim.x))
        kept[i] = groups[i];
}

// The sum of a column's weights times `numbers`, which are in shared memory.
template <class A>
__device__ __forceinline__ A weighted(const Terms &terms, const Group<A> *kept, int column,
                                      const A *numbers) {
    const Group<A> *const groups = static_cast<const Group<A> *>(terms.groups);
    A sum = 0, part = 0;
    const auto add = [&](const Group<A> &weights, int group) {
        const Group<A> some = *reinterpret_cast<const Group<A> *>(numbers + group * group_size<A>);
#pragma unroll
        for (int e = 0; e < group_size<A>; e++) part += weights.element[e] * some.element[e];
    };
    for (int begin = 0; begin < terms.count; begin += chain_groups) {
        const int end = min(begin + chain_groups, terms.count);
        const int border = max(begin, min(end, terms.kept));
        part = 0;
#pragma unroll 4
        for (int group = begin; group < border; group++)
            add(kept[group * terms.columns + column], group);
#pragma unroll 8
        for (int group = border; group < end; group++)
            add(groups[group * terms.columns + column], group);
        sum += part;
    }
    return sum;
}

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
__global__ void __launch_bounds__(most_columns)
    sequence_kernel(const Step first, const Step second, const Terms terms, const int64_t steps) {
    using A = ComputeType<T>;
    PVG_DYNAMIC_SHARED(Group<A>, kept);
    A *const hidden = reinterpret_cast<A *>(kept + terms.kept * terms.columns);
    A *const products = hidden + terms.count * group_size<A>, *const inputs =
                                                                  products + terms.columns;
    const int column = static_cast<int>(threadIdx.x), width = static_cast<int>(first.width);
    const int64_t row = blockIdx.x;
    keep(terms, kept);
    for (int k = column; k < terms.count * group_size<A>; k += static_cast<int>(blockDim.x))
        hidden[k] = k < width
                        ? static_cast<A>(static_cast<const T *>(first.hidden)[row * width + k])
                        : A(0);
    const A bias = column < terms.columns ? bias_of<T>(first, column) : A(0);
    __syncthreads();
    for (int64_t turn = 0; turn < steps; turn++) {
        const Step step = at_turn(first, second, turn);
        if (column < terms.columns) {
            const int64_t place = row * terms.columns + column;
            const A input = static_cast<A>(static_cast<const T *>(step.inputs)[place]);
            products[column] = weighted(terms, kept, column, hidden) + bias;
            inputs[column] = input;
        }
        __syncthreads();
        if (column < width)
            hidden[column] = finish_unit<T>(
                step, row, column, [&](int gate) { return inputs[gate * width + column]; },
                [&](int gate) { return products[gate * width + column]; });
        __syncthreads();
    }
}

template <class T>
__global__ void __launch_bounds__(most_columns)
    sequence_backward_kernel(const StepBack first, const StepBack second, const Terms terms,
                             const int64_t steps, T *dhidden) {
    using A = ComputeType<T>;
    PVG_DYNAMIC_SHARED(Group<A>, kept);
    const int column = static_cast<int>(threadIdx.x), width = static_cast<int>(first.width);
    const int gates = gates_of(first.cell), padded = terms.count * group_size<A>;
    A *const slopes = reinterpret_cast<A *>(kept + terms.kept * terms.columns);
    A *const shares = slopes + gates * padded;
    const int64_t row = blockIdx.x;
    const auto through = [&]() {
        A sum = shares[column];
        for (int gate = 1; gate < gates; gate++) sum += shares[gate * width + column];
        return sum;
    };
    keep(terms, kept);
    for (int k = column; k < gates * padded; k += static_cast<int>(blockDim.x)) slopes[k] = A(0);
    if (column < terms.columns) shares[column] = A(0); // nothing is behind the last step
    __syncthreads();
    for (int64_t turn = 0; turn < steps; turn++) {
        if (column < width)
            go_back<T>(
                at_turn(first, second, turn), row, column, through(),
                [&](int gate, T slope) { slopes[gate * padded + column] = static_cast<A>(slope); });
        __syncthreads();
        if (column < terms.columns)
            shares[column] = weighted(terms, kept, column, slopes + column / width * padded);
        __syncthreads();
    }
    if (column >= width) return;
    const int64_t place = row * width + column;
    dhidden[place] = static_cast<T>(through() + number<T>(first.direct, place));
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
    const int64_t room = (most - set_aside - rest) / line;
    const int64_t kept = room < 0 ? 0 : room < count ? room : count;
    *terms = {packed->array->data, count, static_cast<int>(kept), columns};
    *shared = static_cast<size_t>(kept * line + rest);
    return PVG_OK;
}

unsigned threads_of(const Terms &terms) { return (terms.columns + 31u) / 32u * 32u; }

int64_t padded_width(const Layer &layer) { return (layer.width + 3) / 4 * 4; }

} // namespace

bool is_short_sequence(const Layer &layer) {
    const int64_t item = layer.dtype == PVG_FLOAT64 ? 8 : 4;
    return layer.steps > 1 && layer.rows <= few_rows && layer.gates <= most_columns &&
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
