// Neighbouring elements that a thread moves at once.
#pragma once
#include <stddef.h>

namespace pvg {

// V elements as one access of up to 16 bytes (or several of 16).
constexpr size_t vector_alignment(size_t bytes) { return bytes < 16 ? bytes : 16; }
template <class T, int V> struct alignas(vector_alignment(sizeof(T) * V)) Vector { T element[V]; };

} // namespace pvg
