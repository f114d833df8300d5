// Sorting of unsigned integers in device memory, stable, by CUB's radix sort; see radix.cu.
#pragma once
#include "arrays/call.cuh"

namespace pvg::radix {

// Two places for keys, and for values that go with them: NULL without.
template <class K> struct Buffers {
    K *keys, *other_keys;
    uint32_t *values, *other_values;
};

// Sorts `count` keys, fewer than 2^32, by their lowest `bits` bits. Then `keys` and `values` are
// the sorted ones, in either place. Errors: MEMORY, LAUNCH, CUDA.
template <class K> int sort(Call &call, Buffers<K> *buffers, int64_t count, int bits);

} // namespace pvg::radix
