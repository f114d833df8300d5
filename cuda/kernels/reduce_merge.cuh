// Accumulators (reduce_accumulators.cuh) merged across the threads of a warp, through shuffles, and
// of a block, through shared memory: always in the same order.
#pragma once
#include "kernels/reduce_accumulators.cuh"

namespace pvg::reduce {

// The accumulator of the lane whose number differs from the caller's in the bits of `mask`.
template <class Acc> __device__ Acc from_lane(Acc mine, int mask) {
    constexpr int words = sizeof(Acc) / sizeof(int);
    int word[words];
    memcpy(word, &mine, sizeof mine);
#pragma unroll
    for (int i = 0; i < words; i++) word[i] = __shfl_xor_sync(0xffffffffu, word[i], mask);
    Acc other;
    memcpy(&other, word, sizeof other);
    return other;
}

// Merge the accumulators of neighbouring lanes, a power of two; all lanes of the warp call it.
template <class Acc> __device__ void merge_lanes(Acc *acc, int lanes) {
    for (int mask = lanes / 2; mask > 0; mask /= 2) acc->merge(from_lane(*acc, mask));
}

// Accumulators in shared memory, word by word: those of neighbouring threads, of any size, are in
// neighbouring banks. `shared` has room for SLOTS of them.
template <class Acc>
using WordOf = std::conditional_t<alignof(Acc) % sizeof(uint64_t) == 0, uint64_t, uint32_t>;

template <int SLOTS, class Acc>
__device__ __forceinline__ void put_words(const Acc &acc, Acc *shared, int slot) {
    constexpr int words = sizeof(Acc) / sizeof(WordOf<Acc>);
    WordOf<Acc> word[words], *to = reinterpret_cast<WordOf<Acc> *>(shared) + slot;
    memcpy(word, &acc, sizeof acc);
#pragma unroll
    for (int i = 0; i < words; i++) to[i * SLOTS] = word[i];
}

template <int SLOTS, class Acc>
__device__ __forceinline__ Acc get_words(const Acc *shared, int slot) {
    constexpr int words = sizeof(Acc) / sizeof(WordOf<Acc>);
    WordOf<Acc> word[words];
    const WordOf<Acc> *from = reinterpret_cast<const WordOf<Acc> *>(shared) + slot;
#pragma unroll
    for (int i = 0; i < words; i++) word[i] = from[i * SLOTS];
    Acc acc;
    memcpy(&acc, word, sizeof acc);
    return acc;
}

// A tree over the threads of a block, or of one of several items in it, arranged as `down` (a power
// of two) times `across`: the first of these threads get the columns. N accumulators each; `shared`
// has room for those of THREADS threads. All threads of the block call it.
template <int THREADS, int N, class Acc>
__device__ void merge_down(Acc (&acc)[N], Acc *shared, int y, int across, int down) {
    const int thread = static_cast<int>(threadIdx.x);
    for (int half = down / 2; half > 0; half /= 2) {
        if (y >= half && y < 2 * half)
#pragma unroll
            for (int j = 0; j < N; j++) put_words<THREADS>(acc[j], shared + j * THREADS, thread);
        __syncthreads();
        if (y < half)
#pragma unroll
            for (int j = 0; j < N; j++)
                acc[j].merge(get_words<THREADS>(shared + j * THREADS, thread + half * across));
    }
}

} // namespace pvg::reduce
