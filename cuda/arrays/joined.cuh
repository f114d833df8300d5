// Where the elements of one thread of map.cuh's joined_kernel lie, which works on rows as if they
// were joined end to end.
//
// The output is one piece of memory, in whose vectors rows begin and end anywhere: a vector is part
// of one row, or the end of a row and the beginning of the next. What an operand has of either lies
// anywhere, and may run backwards. It is put together in registers from granules of memory, 16
// bytes on an aligned address (or as many as the vector has, if they are fewer), of which a thread
// loads those in which its elements lie. Where they are not all within the operand's bytes elements
// are read one by one.
//
// Most of the time would go into integers of 64 bits: offsets are bytes, modulo 2^32.
#pragma once
#include "arrays/access.cuh"
#include "arrays/granules.cuh"

namespace pvg {

template <int N> struct Joined {
    Operands<N> operands;
    const char *origin[N];  // the first whole granule of the operand's bytes: offsets are from here
    uint32_t begin[N];      // the offset of the first vector's lowest element
    uint32_t along[N];      // from element to element of a row; 0 of a repeated one
    uint32_t apart[N];      // from row to row, if there is one dimension of them
    uint32_t limit[N];      // below it a vector may begin of which all granules are the operand's
    uint32_t item[N];       // bytes of an element
    bool flat[N];           // lies as the output does: no end of a row is one of its own
    bool backwards[N];      // the first element of a row is the last in memory
    uint32_t size, columns; // elements of all rows, and of each
    uint32_t multiplier, shift; // to divide by `columns` with
    Locator<N + 1> outer;       // the dimensions above a row; operand 0 is the output
};

namespace {

constexpr uint32_t most_joined = 1u << 31;     // elements
constexpr int64_t joined_bytes = 0xffff0000ll; // of an operand
constexpr uint32_t joined_margin = 1u << 10;   // a vector begins no farther before the origin

// Takes the bits from `here` on from `rest`.
template <int WORDS>
__device__ __forceinline__ void merge(uint32_t (&whole)[WORDS], const uint32_t (&rest)[WORDS],
                                      int here) {
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        const int bits = here - 32 * i;
        const uint32_t mask = bits >= 32 ? ~0u : bits <= 0 ? 0 : (1u << bits) - 1;
        whole[i] = (whole[i] & mask) | (rest[i] & ~mask);
    }
}

// COUNT elements from `position` on: `here` of one row, and then those that begin the next.
template <int N, int COUNT> struct JoinedAccess {
    static constexpr int count = COUNT;
    static constexpr bool is_whole = false;
    static constexpr bool is_joined = true;
    const Joined<N> &joined;
    uint32_t position;
    int here, left; // at most COUNT
    uint32_t offsets[N]
                    [2]; // of the vector's lowest element, if all were in the row, or in the next

    __device__ __forceinline__ void find() {
        const uint32_t columns = joined.columns, rest = joined.size - position;
        const uint32_t row = (__umulhi(position, joined.multiplier) + position) >> joined.shift;
        const uint32_t column = position - row * columns;
        left = rest < COUNT ? static_cast<int>(rest) : COUNT;
        here = columns - column < COUNT ? static_cast<int>(columns - column) : COUNT;
        find_rows(row);
#pragma unroll
        for (int k = 0; k < N; k++) {
            offsets[k][0] += joined.begin[k] + column * joined.along[k];
            offsets[k][1] += joined.begin[k] - static_cast<uint32_t>(here) * joined.along[k];
        }
    }

    template <class T> __device__ __forceinline__ void read(int k, T (&x)[COUNT]) const {
        if constexpr (sizeof x >= 4) {
            Granules<T, COUNT> granules;
            prepare_read(k, granules);
            finish_read(k, granules, x);
        } else if (is_row(k)) {
            read_singly(k, x);
        } else {
            repeat(k, x);
        }
    }
    // Operands 0 and 1, of which both are on their way before either is looked at.
    template <class A, class B>
    __device__ __forceinline__ void read_both(A (&a)[COUNT], B (&b)[COUNT]) const {
        if constexpr (sizeof a >= 4 && sizeof b >= 4) {
            Granules<A, COUNT> of_a;
            Granules<B, COUNT> of_b;
            prepare_read(0, of_a);
            prepare_read(1, of_b);
            finish_read(0, of_a, a);
            finish_read(1, of_b, b);
        } else {
            read(0, a);
            read(1, b);
        }
    }
    template <class T> __device__ __forceinline__ void write(const T (&x)[COUNT]) const {
        T *to = static_cast<T *>(joined.operands.output) + position;
        if (left == COUNT) {
            using V = Vector<T, COUNT>;
            V v;
#pragma unroll
            for (int e = 0; e < COUNT; e++) v.element[e] = x[e];
            *reinterpret_cast<V *>(to) = v;
        } else {
#pragma unroll
            for (int e = 0; e < COUNT; e++)
                if (e < left) to[e] = x[e];
        }
    }

private:
    // Of this row and the next one, which may not exist.
    __device__ __forceinline__ void find_rows(uint32_t row) {
        if (joined.outer.walk.ndim > 1) {
            const int64_t rows[2] = {row, row + 1};
            int64_t elements[N + 1][2];
            locate_narrow(joined.outer, rows, elements);
#pragma unroll
            for (int k = 0; k < N; k++)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    offsets[k][i] = static_cast<uint32_t>(elements[k + 1][i]) * joined.item[k];
        } else {
#pragma unroll
            for (int k = 0; k < N; k++) {
                offsets[k][0] = row * joined.apart[k];
                offsets[k][1] = offsets[k][0] + joined.apart[k];
            }
        }
    }

    __device__ __forceinline__ bool is_row(int k) const {
        return joined.operands.input[k] != nullptr && !joined.operands.repeated[k];
    }
    __device__ __forceinline__ bool is_split(int k) const { return here < left && !joined.flat[k]; }
    template <class T> __device__ __forceinline__ const T *at(int k, uint32_t offset) const {
        const char *before = joined.origin[k] - joined_margin;
        return reinterpret_cast<const T *>(before + (offset + joined_margin));
    }

    template <class T> __device__ __forceinline__ void repeat(int k, T (&x)[COUNT]) const {
        const bool is_scalar = joined.operands.input[k] == nullptr;
        const T value =
            is_scalar ? joined.operands.scalar.template as<T>() : *at<T>(k, offsets[k][0]);
        const T next = is_scalar || !is_split(k) ? value : *at<T>(k, offsets[k][1]);
#pragma unroll
        for (int e = 0; e < COUNT; e++) x[e] = e < here ? value : next;
    }
    template <class T> __device__ __forceinline__ void read_singly(int k, T (&x)[COUNT]) const {
        const T *row = at<T>(k, offsets[k][0]), *next = at<T>(k, offsets[k][1]);
        const bool backwards = joined.backwards[k];
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            x[e] = e < left ? (e < here ? row : next)[backwards ? COUNT - 1 - e : e] : T();
    }

    // The granules of what is in the first row (part 0) or in the next one.
    template <class T> __device__ __forceinline__ void
    load_part(int k, int part, Granules<T, COUNT> &granules) const {
        constexpr int item = sizeof(T), extent = item * COUNT;
        const int end = joined.flat[k] ? extent : here * item; // of the first row's bytes
        const bool is_low = (part == 0) != joined.backwards[k];
        const int border = joined.backwards[k] ? extent - end : end;
        granules.load_part(joined.origin[k], offsets[k][part], joined.limit[k], is_low ? 0 : border,
                           is_low ? border : extent);
    }
    template <class T>
    __device__ __forceinline__ void prepare_read(int k, Granules<T, COUNT> &granules) const {
        if (!is_row(k) || left < COUNT) return;
        if (joined.operands.shifted[k])
            load_part(k, 0, granules);
        else
            granules.load_aligned(at<char>(k, offsets[k][0]));
    }
    template <class T>
    __device__ __forceinline__ void finish_read(int k, const Granules<T, COUNT> &granules,
                                                T (&x)[COUNT]) const {
        if (!is_row(k)) return repeat(k, x);
        uint32_t whole[Granules<T, COUNT>::words];
        bool found = granules.found;
        granules.align(whole);
        granules.turn(whole, joined.backwards[k]);
        if (is_split(k) && found) {
            Granules<T, COUNT> others;
            uint32_t rest[Granules<T, COUNT>::words];
            load_part(k, 1, others);
            found = others.found;
            others.align(rest);
            others.turn(rest, joined.backwards[k]);
            merge(whole, rest, here * static_cast<int>(sizeof(T)) * 8);
        }
        if (found)
            memcpy(x, whole, sizeof x);
        else
            read_singly(k, x);
    }
};

} // namespace

// ---- Host ---------------------------------------------------------------------------------------

// Fills in what joined_kernel reads of operand k, in a walk of which the last dimension is rows.
// False if that is too far apart.
template <int N> bool join_operand(const pvg_array *a, int k, int vector, Joined<N> *joined) {
    constexpr uintptr_t granule = 16;
    const Walk<N + 1> &walk = joined->outer.walk;
    const int last = walk.ndim - 1;
    const int64_t *strides = walk.strides[k + 1], item = dtype_size(a->dtype), step = strides[last];
    int64_t low = 0, high = 1; // from the first element, in elements
    bool still = true, alike = true;
    for (int i = 0; i <= last; i++) {
        (strides[i] < 0 ? low : high) += strides[i] * (walk.shape[i] - 1);
        still = still && strides[i] == 0;
        alike = alike && strides[i] == walk.strides[0][i];
    }
    if (high - low > joined_bytes / item) return false;
    const uintptr_t data = reinterpret_cast<uintptr_t>(a->data);
    const uintptr_t origin = (data + static_cast<uintptr_t>(low * item) + granule - 1) & -granule;
    const uintptr_t end = (data + static_cast<uintptr_t>(high * item)) & -granule;
    const uintptr_t extent = static_cast<uintptr_t>(vector * item);
    const int64_t before = step < 0 ? (vector - 1) * item : 0; // the first element in its vector
    const auto bytes = [](int64_t n) { return static_cast<uint32_t>(n); };
    joined->origin[k] = reinterpret_cast<const char *>(origin);
    joined->begin[k] = bytes(static_cast<int64_t>(data - origin) - before);
    joined->limit[k] = origin + extent > end ? 0 : bytes(int64_t(end - extent - origin) + 1);
    joined->item[k] = bytes(item), joined->along[k] = bytes(step * item);
    joined->apart[k] = last > 0 ? bytes(strides[last - 1] * item) : 0;
    joined->flat[k] = still || alike, joined->backwards[k] = step < 0;
    const bool whole = walk.shape[last] % vector == 0; // vectors, so that no row ends within one
    const bool aligned = alike ? is_aligned(a, vector, 0, nullptr)
                               : step == 1 && whole && is_aligned(a, vector, last, strides);
    joined->operands.shifted[k] = !aligned;
    joined->operands.repeated[k] = step == 0;
    return true;
}

// Whether joined_kernel may run on operands and a collapsed walk over them, which are in `joined`;
// fills in the rest then.
template <int N> bool join(const pvg_array *out, const pvg_array *const *inputs, int vector,
                           Joined<N> *joined) {
    Walk<N + 1> &walk = joined->outer.walk;
    const int last = walk.ndim - 1;
    if (last < 0 || walk.shape[last] < vector || out->size > most_joined ||
        !is_aligned(out, vector, 0, nullptr))
        return false;
    int64_t inside = 1;
    for (int i = last; i >= 0; inside *= walk.shape[i--])
        if (walk.strides[0][i] != inside) return false;
    for (int k = 0; k < N; k++) {
        if (walk.strides[k + 1][last] < -1 || walk.strides[k + 1][last] > 1) return false;
        if (inputs[k] && !join_operand(inputs[k], k, vector, joined)) return false;
    }
    uint64_t multiplier;
    prepare_division(static_cast<uint64_t>(walk.shape[last]), true, &multiplier, &joined->shift);
    joined->multiplier = static_cast<uint32_t>(multiplier);
    joined->size = static_cast<uint32_t>(out->size);
    joined->columns = static_cast<uint32_t>(walk.shape[last]);
    walk.ndim = last;
    prepare(&joined->outer);
    return joined->outer.narrow;
}

} // namespace pvg
