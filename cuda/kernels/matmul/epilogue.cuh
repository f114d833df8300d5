// The epilogue of all kernels: what becomes of a finished sum, said once.
//
//     c = activation(sum + bias of the column), rounded once; sum + bias itself on request
//
// A Destination says where the sums of a launch go; the host makes it, by destination_of. Kernels
// decide how they bring sums to the threads that finish them, and hand them to `finish` there: a
// RowPart where they are in a thread's registers, or a type of their own with the same three
// functions (sm90/store.cuh has one for sums that lie in shared memory). Everything is computed in
// the type of the sums, which is float32 for float16 and bfloat16.
#pragma once
#include "arrays/vector.cuh"
#include "kernels/activation.cuh"
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

// Rows and columns without gaps in a row, once for each item of a batch; kernels decide what more
// they know of addresses.
struct Destination {
    void *data;                                   // of c
    void *preactivation;                          // sum + bias, lies as c does; or NULL
    const void *bias;                             // of each column, or NULL
    int64_t rows, columns;                        // of an item
    int64_t row_stride, item_stride, bias_stride; // elements
    int dtype;                                    // of c, preactivation and bias
    int activation;                               // PVG_NONE, or an operation's code
    bool plain;                                   // sums are stored as they are

    // The same so many elements further on, of `size` bytes each.
    __host__ __device__ __forceinline__ Destination moved(int64_t elements, int64_t size) const {
        Destination there = *this;
        there.data = static_cast<char *>(data) + elements * size;
        if (preactivation)
            there.preactivation = static_cast<char *>(preactivation) + elements * size;
        return there;
    }
};
// One that is known to be plain when the kernel is compiled.
struct PlainDestination : Destination {
    __host__ __device__ explicit PlainDestination(const Destination &d) : Destination(d) {}
};

inline Destination destination_of(const Gemm &g) {
    const Epilogue &e = g.epilogue;
    return {g.c,      e.preactivation, e.bias,    g.m,          g.n,         g.ldc,
            g.c_item, e.bias_stride,   g.c_dtype, e.activation, e.is_plain()};
}
// Of a general product, whose items begin where its batch says.
inline Destination destination_of(const Product &p, const Epilogue &e, int dtype) {
    return {p.c, e.preactivation, e.bias, p.m,          p.n,         p.c_row,
            0,   e.bias_stride,   dtype,  e.activation, e.is_plain()};
}

// ---- Types --------------------------------------------------------------------------------------

// What elements of type T are added up in. Integers are multiplied as unsigned ones, which wrap;
// bools are 0 and 1; float16 and bfloat16 are float32, in which their products are exact.
template <class T>
using SumType =
    std::conditional_t<is_half<T>, float,
                       std::conditional_t<std::is_floating_point_v<T>, T,
                                          std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>>;

template <class T> __device__ __forceinline__ SumType<T> widen(T value) {
    if constexpr (std::is_same_v<T, Bool>)
        return bool(value);
    else
        return static_cast<SumType<T>>(value);
}
// The one rounding of a result.
template <class T> __device__ __forceinline__ T narrow(SumType<T> value) {
    if constexpr (std::is_same_v<T, Bool>)
        return Bool(value != 0);
    else
        return static_cast<T>(value);
}

// ---- The parts of an epilogue -------------------------------------------------------------------

template <class T>
__device__ __forceinline__ SumType<T> bias_of(const Destination &to, int64_t column) {
    return widen(static_cast<const T *>(to.bias)[column * to.bias_stride]);
}
// Of N columns, `step` apart, as far as they are among the next `count`.
template <class T, int N>
__device__ __forceinline__ void load_bias(const Destination &to, int64_t column, int count,
                                          int step, SumType<T> (&bias)[N]) {
#pragma unroll
    for (int e = 0; e < N; e++)
        bias[e] = to.bias && e * step < count ? bias_of<T>(to, column + e * step) : SumType<T>(0);
}
template <class T, int N>
__device__ __forceinline__ void load_bias(const PlainDestination &, int64_t, int, int,
                                          SumType<T> (&)[N]) {}

// One switch for all, so that the chains of instructions of neighbours overlap.
template <class S, int N> __device__ __forceinline__ void activate_all(int activation, S (&x)[N]) {
#define PVG_CASE(code, value, slope)          \
    case code:                                \
        for (S &y : x) y = activate(code, y); \
        break;
    switch (activation) { PVG_ACTIVATIONS(PVG_CASE) }
#undef PVG_CASE
}
// One after another: the code of double functions is long, and so it is there once.
template <class S, int N>
__device__ __forceinline__ void activate_in_turn(int activation, S (&x)[N]) {
#pragma unroll 1
    for (int i = 0; i < N; i++) { // the values go round: registers have no index
        const S first = activate(activation, x[0]);
#pragma unroll
        for (int e = 0; e < N - 1; e++) x[e] = x[e + 1];
        x[N - 1] = first;
    }
}
// All, in a function that is called: for kernels with many groups of sums one after another.
template <class S, int N>
__device__ __attribute__((noinline)) Vector<S, N> activate_apart(int activation, Vector<S, N> x) {
    activate_all(activation, x.element);
    return x;
}

// What a gradient of c is on the other side of the activation: times the derivative there.
template <class T>
__device__ __forceinline__ T gradient_before(int activation, T gradient, T preactivation) {
    const SumType<T> slope = activation_slope(activation, widen(preactivation));
    return narrow<T>(widen(gradient) * slope);
}

// ---- In registers -------------------------------------------------------------------------------

// N sums of a thread that go to one row of c, elements of type T. CALLS: see activate_apart.
template <class T, int N, bool CALLS = false> struct RowPart {
    SumType<T> sums[N], bias[N];
    int64_t at;  // of the first one's place, from the beginning of c
    int count;   // of the columns from there on: the others do not exist
    int step;    // columns from one to the next
    bool packed; // they are neighbours, and their addresses allow one access

    __device__ __forceinline__ void add_bias(const Destination &) {
#pragma unroll
        for (int e = 0; e < N; e++) sums[e] += bias[e];
    }
    __device__ __forceinline__ void apply(const Destination &, int activation) {
        if constexpr (CALLS) {
            if (activation == PVG_NONE) return;
            Vector<SumType<T>, N> all;
#pragma unroll
            for (int e = 0; e < N; e++) all.element[e] = sums[e];
            all = activate_apart(activation, all);
#pragma unroll
            for (int e = 0; e < N; e++) sums[e] = all.element[e];
        } else if constexpr (sizeof(SumType<T>) == 8) {
            activate_in_turn(activation, sums);
        } else {
            activate_all(activation, sums);
        }
    }
    __device__ __forceinline__ void store(const Destination &, void *matrix) const {
        T *const first = static_cast<T *>(matrix) + at;
        Vector<T, N> all;
#pragma unroll
        for (int e = 0; e < N; e++) all.element[e] = narrow<T>(sums[e]);
        if (packed && count >= N) {
            store_at_once(first, all);
        } else {
#pragma unroll
            for (int e = 0; e < N; e++)
                if (e * step < count) first[e * step] = all.element[e];
        }
    }
};

// ---- The epilogue -------------------------------------------------------------------------------

// Holder: what holds finished sums, and knows where in c they go.
template <class Holder> __device__ __forceinline__ void finish(const Destination &to,
                                                               Holder &sums) {
    if (!to.plain) {
        if (to.bias) sums.add_bias(to);
        if (to.preactivation) sums.store(to, to.preactivation);
        sums.apply(to, to.activation);
    }
    sums.store(to, to.data);
}
template <class Holder>
__device__ __forceinline__ void finish(const PlainDestination &to, Holder &sums) {
    sums.store(to, to.data);
}

} // namespace pvg::matmul
