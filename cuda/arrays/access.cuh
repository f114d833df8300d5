// Where the elements of one thread of map.cuh's kernels lie: what it hands to a function object.
#pragma once
#include "arrays/array.cuh"
#include "arrays/locate.cuh"
#include "arrays/scalar.cuh"
#include "arrays/vector.cuh"
#include <string.h>

namespace pvg {

// What a kernel works on, besides where the elements lie.
template <int N> struct Operands {
    const void *input[N]; // NULL: `scalar` instead
    bool repeated[N];     // the same element all along a row
    bool shifted[N];      // addresses of vectors are those of any element
    int32_t steps[N + 1]; // from one element of a row to the next, where it is no vector; 0: output
    void *output;
    Scalar scalar;
};

// One dimension of the walk is dealt out: of `length` positions along it a thread has those `step`
// apart from its first, and threads of neighbouring ones lie side by side.
template <int N> struct Strided {
    Operands<N> operands;
    int64_t apart[N + 1]; // elements, from one of a thread's to its next; operand 0 is the output
    int64_t threads, length;
    unsigned step;
    Locator<N + 2> first; // a thread's first element; operand N + 1 is its position along `length`
};

namespace {

// Elements so small that a thread's are put together from the words in which they lie.
constexpr bool is_shiftable(int64_t item, int count) { return item <= 2 && item * count >= 4; }

// COUNT elements from `first` on, by words; those before and after it in these words exist.
template <class T, int COUNT>
__device__ __forceinline__ void read_shifted(const T *first, T (&x)[COUNT]) {
    constexpr int words = static_cast<int>(sizeof x / 4);
    const uintptr_t address = reinterpret_cast<uintptr_t>(first);
    const uint32_t *from = reinterpret_cast<const uint32_t *>(address & ~uintptr_t(3));
    const unsigned shift = static_cast<unsigned>(address & 3) * 8;
    uint32_t word[words + 1], whole[words];
#pragma unroll
    for (int i = 0; i < words; i++) word[i] = from[i];
    word[words] = shift != 0 ? from[words] : 0;
#pragma unroll
    for (int i = 0; i < words; i++) whole[i] = __funnelshift_r(word[i], word[i + 1], shift);
    memcpy(x, whole, sizeof x);
}

// COUNT elements of one row: the first `left` of start, start + step, start + 2 * step, ...; with
// `whole`, COUNT consecutive ones on an aligned address.
template <int N, int COUNT> struct RowAccess {
    static constexpr int count = COUNT;
    static constexpr bool is_whole = false; // not always
    static constexpr bool is_joined = false;
    const Operands<N> &operands;
    int64_t offsets[N + 1][1]; // of the row, in elements; 0 is the output's
    int64_t start;
    unsigned step, left; // left: counted in steps of 1
    bool whole;

    template <class T> __device__ __forceinline__ void read(int k, T (&x)[COUNT]) const {
        const T *row = static_cast<const T *>(operands.input[k]);
        if (row == nullptr || operands.repeated[k]) {
            T value = row == nullptr ? operands.scalar.template as<T>() : row[offsets[k + 1][0]];
#pragma unroll
            for (int e = 0; e < COUNT; e++) x[e] = value;
            return;
        }
        if (whole && !operands.shifted[k]) {
            using V = Vector<T, COUNT>;
            V v = *reinterpret_cast<const V *>(row + offsets[k + 1][0] + start);
#pragma unroll
            for (int e = 0; e < COUNT; e++) x[e] = v.element[e];
            return;
        }
        bool by_words = false;
        if constexpr (sizeof(T) <= 2 && sizeof x >= 4) { // is_shiftable
            constexpr int beside = 4 / sizeof(T);
            by_words = whole && start >= beside && left >= COUNT + beside;
            if (by_words) read_shifted(row + offsets[k + 1][0] + start, x);
        }
        if (!by_words) {
            row += offsets[k + 1][0] + start * operands.steps[k + 1];
            const int64_t apart = static_cast<int>(step) * operands.steps[k + 1];
#pragma unroll
            for (int e = 0; e < COUNT; e++, row += apart) x[e] = e * step < left ? *row : T();
        }
    }
    template <class T> __device__ __forceinline__ void write(const T (&x)[COUNT]) const {
        T *row = static_cast<T *>(operands.output) + offsets[0][0];
        if (whole) {
            using V = Vector<T, COUNT>;
            V v;
#pragma unroll
            for (int e = 0; e < COUNT; e++) v.element[e] = x[e];
            *reinterpret_cast<V *>(row + start) = v;
        } else {
            row += start * operands.steps[0];
            const int64_t apart = static_cast<int>(step) * operands.steps[0];
#pragma unroll
            for (int e = 0; e < COUNT; e++, row += apart)
                if (e * step < left) *row = x[e];
        }
    }
};

// COUNT consecutive elements on addresses for vectors: nothing to find out but which operands are
// repeated. RowAccess's hundred instructions a thread take longer than data in the cache.
template <int N, int COUNT> struct WholeAccess {
    static constexpr int count = COUNT;
    static constexpr bool is_whole = true;
    static constexpr bool is_joined = false;
    const Operands<N> &operands;
    int64_t start;

    template <class T> __device__ __forceinline__ void read(int k, T (&x)[COUNT]) const {
        const T *from = static_cast<const T *>(operands.input[k]);
        if (from == nullptr || operands.repeated[k]) {
            T value = from == nullptr ? operands.scalar.template as<T>() : *from;
#pragma unroll
            for (int e = 0; e < COUNT; e++) x[e] = value;
            return;
        }
        using V = Vector<T, COUNT>;
        V v = *reinterpret_cast<const V *>(from + start);
#pragma unroll
        for (int e = 0; e < COUNT; e++) x[e] = v.element[e];
    }
    template <class T> __device__ __forceinline__ void write(const T (&x)[COUNT]) const {
        using V = Vector<T, COUNT>;
        V v;
#pragma unroll
        for (int e = 0; e < COUNT; e++) v.element[e] = x[e];
        *reinterpret_cast<V *>(static_cast<T *>(operands.output) + start) = v;
    }
    // Bytes, four a word.
    __device__ __forceinline__ void read_words(int k, uint32_t (&words)[COUNT / 4]) const {
        using V = Vector<uint32_t, COUNT / 4>;
        const uint8_t *from = static_cast<const uint8_t *>(operands.input[k]);
        V v;
        if (from == nullptr || operands.repeated[k]) {
            const uint32_t byte = from == nullptr ? operands.scalar.bytes[0] : *from;
#pragma unroll
            for (int i = 0; i < COUNT / 4; i++) v.element[i] = byte * 0x01010101u;
        } else {
            v = *reinterpret_cast<const V *>(from + start);
        }
#pragma unroll
        for (int i = 0; i < COUNT / 4; i++) words[i] = v.element[i];
    }
};

// Operands 0 and 1. Where it takes more than a load to read one, both are loaded first.
template <class A, class B, class Access>
__device__ __forceinline__ void read_both(const Access &access, A (&a)[Access::count],
                                          B (&b)[Access::count]) {
    if constexpr (Access::is_joined) {
        access.read_both(a, b);
    } else {
        access.read(0, a);
        access.read(1, b);
    }
}

// The same of bytes, four a word.
template <class Access>
__device__ __forceinline__ void read_both_packed(const Access &access,
                                                 uint32_t (&a)[Access::count / 4],
                                                 uint32_t (&b)[Access::count / 4]) {
    if constexpr (Access::is_whole) {
        access.read_words(0, a);
        access.read_words(1, b);
    } else {
        uint8_t bytes_a[Access::count], bytes_b[Access::count];
        read_both(access, bytes_a, bytes_b);
        memcpy(a, bytes_a, sizeof a);
        memcpy(b, bytes_b, sizeof b);
    }
}

// COUNT elements, each as far from the one before.
template <int N, int COUNT> struct StridedAccess {
    static constexpr int count = COUNT;
    static constexpr bool is_whole = false;
    static constexpr bool is_joined = false;
    const Strided<N> &strided;
    int64_t offsets[N + 2][1]; // of the first one; 0 is the output's
    unsigned left;             // counted in steps of 1

    template <class T> __device__ __forceinline__ void read(int k, T (&x)[COUNT]) const {
        const T *at = static_cast<const T *>(strided.operands.input[k]);
        const int64_t apart = strided.apart[k + 1];
        if (at != nullptr) at += offsets[k + 1][0];
        if (at == nullptr || apart == 0) {
            T value = at == nullptr ? strided.operands.scalar.template as<T>() : *at;
#pragma unroll
            for (int e = 0; e < COUNT; e++) x[e] = value;
        } else {
#pragma unroll
            for (int e = 0; e < COUNT; e++, at += apart) x[e] = e * strided.step < left ? *at : T();
        }
    }
    template <class T> __device__ __forceinline__ void write(const T (&x)[COUNT]) const {
        T *at = static_cast<T *>(strided.operands.output) + offsets[0][0];
#pragma unroll
        for (int e = 0; e < COUNT; e++, at += strided.apart[0])
            if (e * strided.step < left) *at = x[e];
    }
};

// Operand k, whose elements are stored as T, in the type that they are computed in; and the result,
// rounded to T when it is stored.
template <class T, class Access>
__device__ __forceinline__ void read_as(const Access &access, int k,
                                        ComputeType<T> (&x)[Access::count]) {
    T stored[Access::count];
    access.read(k, stored);
#pragma unroll
    for (int e = 0; e < Access::count; e++) x[e] = static_cast<ComputeType<T>>(stored[e]);
}
template <class A, class B, class Access>
__device__ __forceinline__ void read_both_as(const Access &access,
                                             ComputeType<A> (&a)[Access::count],
                                             ComputeType<B> (&b)[Access::count]) {
    A stored_a[Access::count];
    B stored_b[Access::count];
    read_both(access, stored_a, stored_b);
#pragma unroll
    for (int e = 0; e < Access::count; e++) {
        a[e] = static_cast<ComputeType<A>>(stored_a[e]);
        b[e] = static_cast<ComputeType<B>>(stored_b[e]);
    }
}
template <class T, class Access>
__device__ __forceinline__ void write_as(const Access &access,
                                         const ComputeType<T> (&x)[Access::count]) {
    T stored[Access::count];
#pragma unroll
    for (int e = 0; e < Access::count; e++) stored[e] = static_cast<T>(x[e]);
    access.write(stored);
}

} // namespace

// True if `a` and its rows (strides, in elements) allow accesses of `vector` elements.
inline bool is_aligned(const pvg_array *a, int vector, int rows, const int64_t *strides) {
    uint64_t item = static_cast<uint64_t>(dtype_size(a->dtype));
    uint64_t bits = reinterpret_cast<uintptr_t>(a->data);
    for (int i = 0; i < rows; i++) bits |= static_cast<uint64_t>(strides[i]) * item;
    return bits % vector_alignment(static_cast<size_t>(item) * static_cast<size_t>(vector)) == 0;
}

} // namespace pvg
