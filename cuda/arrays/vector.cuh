// Neighbouring elements that a thread moves at once.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

namespace pvg {

// V elements as one access of up to 16 bytes (or several of 16).
constexpr size_t vector_alignment(size_t bytes) { return bytes < 16 ? bytes : 16; }
template <class T, int V> struct alignas(vector_alignment(sizeof(T) * V)) Vector { T element[V]; };

// Stores all of them so. (The compiler may make several stores of an assignment, but not of
// __stwb.)
template <class T, int V>
__device__ __forceinline__ void store_at_once(T *to, const Vector<T, V> &vector) {
    constexpr size_t size = alignof(Vector<T, V>);
    using Word = std::conditional_t<
        size == 16, uint4,
        std::conditional_t<size == 8, uint2,
                           std::conditional_t<size == 4, uint32_t,
                                              std::conditional_t<size == 2, uint16_t, uint8_t>>>>;
    Word words[sizeof vector / size];
    memcpy(words, &vector, sizeof words);
#pragma unroll
    for (size_t i = 0; i < sizeof vector / size; i++)
        __stwb(reinterpret_cast<Word *>(to) + i, words[i]);
}

} // namespace pvg
