// Sorting of unsigned integers in device memory, stable, by CUB's radix sort; see radix.cu.
#pragma once
#include "arrays/call.cuh"

namespace pvg::radix {

// Two places for keys, and for values that go with them: NULL without.
template <class K> struct Buffers {
    K *keys, *other_keys;
    uint32_t *values, *other_values;
};

// Memory that nobody uses during a sort, and that becomes zeros meanwhile.
struct Zeros {
    void *first;
    int64_t bytes;
};

// So few keys are sorted by one launch, which has no other use for the memory's speed.
constexpr int64_t few_keys = 8192; // 2^26 comparisons take as long as two launches of a radix sort

// Sorts `count` keys, fewer than 2^32, by their lowest `bits` bits. Then `keys` and `values` are
// the sorted ones, in either place. zeros: of few keys alone. Errors: MEMORY, LAUNCH, CUDA.
template <class K>
int sort(Call &call, Buffers<K> *buffers, int64_t count, int bits, const Zeros &zeros = {});

} // namespace pvg::radix
