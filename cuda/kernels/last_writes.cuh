// For gather.cu: of several writes to a place the last one is what it gets, whatever runs when.
//
// A few writes are told apart by every block for itself, in shared memory, in the launch that does
// them; some more of single elements, too, if each block has places of its own to write to, or a
// cluster of blocks has, which share the indices (element_writes.cuh). Many of single elements are
// parted by ranges of places (parted_writes.cuh), unless the places are far more or far less; if
// less, each place looks for its own write in a table. Other ones are done as if no place were
// named twice, while a bit of each place tells which are; a launch more then mends these. Where the
// places are too many for that, or an index is not found by the number of a write, or most places
// are named twice, it is found out first, by two launches, through a table of all places.
#pragma once
#include "arrays/operation.cuh"
#include "kernels/pictures.cuh"

namespace pvg {

namespace {

// ---- Few writes ---------------------------------------------------------------------------------

// 48 KiB of shared memory. A block of 512 threads enters all of them in some 3 us, and a launch
// more costs as much: `put` of 1,749 bytes took 132 us while each write looked at all later ones.
constexpr int few_writes = 3072;
constexpr int few_threads = 512, few_each = few_writes / few_threads;
constexpr int few_slots = 2 * few_writes;
constexpr int few_words = 4;              // of a thread at a time
constexpr unsigned most_few_blocks = 264; // two a multiprocessor; then each does more

// The walk over the indices: where they are, and where in the array. (A kernel's parameters are
// 4 KiB at most together, which is why this is no Writes.)
struct Few {
    int count;
    Locator<2> walk;
};

inline Few few_of(const Writes &writes) {
    Few few{};
    few.count = static_cast<int>(writes.size);
    const Walk<4> &walk = writes.walk.walk;
    few.walk.walk.ndim = walk.ndim;
    for (int i = 0; i < walk.ndim; i++) {
        few.walk.walk.shape[i] = walk.shape[i];
        few.walk.walk.strides[0][i] = walk.strides[0][i];
        few.walk.walk.strides[1][i] = walk.strides[3][i];
    }
    prepare(&few.walk);
    return few;
}

// Where a write would be found in the table: from here on. One product alone would put the places
// of rows of 55 or 89 words beside each other, 20 to a run.
__device__ __forceinline__ unsigned first_slot(int64_t place) {
    const uint64_t bits = static_cast<uint64_t>(place) * 0x9E3779B97F4A7C15ull;
    const unsigned mixed = static_cast<unsigned>(bits >> 32 ^ bits >> 13) * 0x85EBCA6Bu;
    return __umulhi(mixed ^ mixed >> 16, few_slots);
}
__device__ __forceinline__ unsigned next_slot(unsigned slot) {
    return slot + 1 < few_slots ? slot + 1 : 0;
}

// Notes the write as the last one to its place, unless a later one is there. A slot stays with the
// place that took it.
__device__ __forceinline__ void enter_write(unsigned number, const int64_t *places,
                                            unsigned *table) {
    const int64_t place = places[number - 1];
    for (unsigned slot = first_slot(place);; slot = next_slot(slot)) {
        const unsigned other = atomicCAS(&table[slot], 0u, number);
        if (other == 0) return;
        if (places[other - 1] != place) continue;
        atomicMax(&table[slot], number);
        return;
    }
}

__device__ __forceinline__ bool is_last(unsigned number, const int64_t *places,
                                        const unsigned *table) {
    const int64_t place = places[number - 1];
    unsigned slot = first_slot(place);
    while (places[table[slot] - 1] != place) slot = next_slot(slot);
    return table[slot] == number;
}

// Operand 2 of the moves' walk: numbers of writes.
template <class T>
__global__ void __launch_bounds__(few_threads)
    scatter_few_kernel(const __grid_constant__ Moves moves, const __grid_constant__ Few few) {
    __shared__ int64_t places[few_writes]; // words from the array's first one, or not_written
    __shared__ unsigned table[few_slots];  // numbers of writes, from 1; 0: nothing
    static_assert(sizeof(Moves) + sizeof(Few) <= 4096, "what a kernel's parameters may have");
    const int n = few.count, thread = static_cast<int>(threadIdx.x);
    for (int slot = thread; slot < few_slots; slot += few_threads) table[slot] = 0;
    for (int i = thread; i < n; i += few_threads) {
        const int64_t position[1] = {i};
        int64_t offsets[2][1], by[1] = {0}, key[1];
        locate(few.walk, position, offsets);
        displace<Way::scatter>(moves.indices, offsets[0], by, key);
        places[i] = by[0] == not_written ? not_written : by[0] + offsets[1][0];
    }
    __syncthreads();
    for (int i = thread; i < n; i += few_threads)
        if (places[i] != not_written) enter_write(static_cast<unsigned>(i) + 1, places, table);
    __syncthreads();
    unsigned lost = 0; // a bit each
#pragma unroll
    for (int e = 0; e < few_each; e++) {
        const int i = thread + e * few_threads;
        const bool is_written = i < n && places[i] != not_written;
        if (is_written && !is_last(static_cast<unsigned>(i) + 1, places, table)) lost |= 1u << e;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < few_each; e++)
        if (lost >> e & 1) places[thread + e * few_threads] = not_written;
    __syncthreads();
    const T *flat = static_cast<const T *>(moves.flat);
    T *indexed = static_cast<T *>(moves.indexed);
    const int64_t step = int64_t(gridDim.x) * few_words * few_threads;
    for (int64_t i = int64_t(blockIdx.x) * few_words * few_threads + thread; i < moves.size;
         i += step) {
        int64_t position[few_words], offsets[3][few_words], to[few_words];
        T word[few_words] = {};
#pragma unroll
        for (int e = 0; e < few_words; e++) position[e] = i + e * few_threads;
        locate(moves.walk, position, offsets);
#pragma unroll
        for (int e = 0; e < few_words; e++) {
            to[e] = position[e] < moves.size ? places[offsets[2][e]] : not_written;
            if (to[e] != not_written) word[e] = flat[offsets[0][e]];
        }
#pragma unroll
        for (int e = 0; e < few_words; e++)
            if (to[e] != not_written) indexed[offsets[1][e] + to[e]] = word[e];
    }
}

// ---- Some writes of single elements -------------------------------------------------------------

// Each block reads all indices and notes, of its own places, the last write to each; then it does
// these. What all blocks read together costs as much as the launches that this saves.
constexpr int ranges_threads = 1024, ranges_each = 12;  // indices under way at a time
constexpr int done_each = 6;                            // writes
constexpr int most_places = 12288, least_places = 2048; // of a block
// Of 35,000 indices the blocks read for 17 us, one by one, what three launches do in 10; but these
// keep the host for as long again, and by pairs an index takes a third of the instructions.
constexpr int64_t least_in_ranges = 256, most_in_ranges = 16384, most_in_pairs = 65536;
constexpr int64_t most_reads = 1 << 22, most_range_blocks = 528;

struct Ranges {
    const void *flat;
    void *indexed;
    int64_t size, flat_step, index_step;
    int places;    // of a block of scatter_ranges_kernel
    bool in_pairs; // indices of 64 bits, one behind the other, on an address for two
    Indices indices;
};

inline bool are_in_pairs(const Indices &indices, int64_t index_step) {
    return indices.wide && index_step == 1 &&
           reinterpret_cast<uintptr_t>(indices.first[0]) % 16 == 0;
}

// How many places a block is to have; 0: the writes are too many.
inline int places_of_ranges(int64_t size, int64_t keys, bool in_pairs) {
    if (size > (in_pairs ? most_in_pairs : most_in_ranges) || keys > most_reads * 16) return 0;
    int64_t each = size * keys >> 20; // some 2^20 reads, rather than the most blocks
    each = each < least_places ? least_places : each > most_places ? most_places : each;
    const int64_t blocks = keys / each + (keys % each != 0);
    return blocks <= most_range_blocks && blocks * size <= most_reads ? static_cast<int>(each) : 0;
}

// Notes a write as the last one to its place, if that is one of the block's and no later one is.
__device__ __forceinline__ void note_write(const Ranges &ranges, int64_t first, int64_t number,
                                           int64_t index, unsigned *last) {
    bool bad = false;
    const int64_t place = counted_from_0(ranges.indices, 0, index, &bad) - first;
    if (!bad && place >= 0 && place < ranges.places)
        atomicMax(&last[place], static_cast<unsigned>(number) + 1);
}

// Notes as many of the first writes as the block's threads have pairs for, and returns their
// number. Of a thread's indices it is found out together that each is from 0 and below the length,
// as nearly all are; then 32 bits tell all. There are fewer than 2^31 places.
__device__ __forceinline__ int64_t note_pairs(const Ranges &ranges, int64_t first, unsigned *last) {
    constexpr int each = ranges_each / 2;
    struct alignas(16) Pair { int64_t index[2]; };
    const Pair *pairs = static_cast<const Pair *>(ranges.indices.first[0]);
    const uint32_t most = static_cast<uint32_t>(ranges.indices.length[0]) - 1;
    const uint32_t begin = static_cast<uint32_t>(first);
    const uint32_t places = static_cast<uint32_t>(ranges.places);
    int64_t at = 0;
    for (; at + each * ranges_threads <= ranges.size / 2; at += each * ranges_threads) {
        Pair pair[each];
#pragma unroll
        for (int e = 0; e < each; e++) pair[e] = pairs[at + threadIdx.x + e * ranges_threads];
        uint32_t high = 0, low = 0; // bits above the lowest 32; the highest of these says "beyond"
#pragma unroll
        for (int e = 0; e < 2 * each; e++) {
            const uint64_t index = static_cast<uint64_t>(pair[e / 2].index[e % 2]);
            high |= static_cast<uint32_t>(index >> 32);
            low |= static_cast<uint32_t>(index) | (most - static_cast<uint32_t>(index));
        }
        const int64_t number = 2 * (at + threadIdx.x); // and that of the next one
        if (high != 0 || low >> 31 != 0) {
#pragma unroll 1
            for (int e = 0; e < 2 * each; e++) {
                const int64_t one = number + e / 2 * (2 * ranges_threads) + e % 2;
                note_write(ranges, first, one, index_at(ranges.indices, 0, one), last);
            }
            continue;
        }
#pragma unroll
        for (int e = 0; e < 2 * each; e++) {
            const uint32_t place = static_cast<uint32_t>(pair[e / 2].index[e % 2]) - begin;
            const unsigned one =
                static_cast<unsigned>(number) + e / 2 * (2 * ranges_threads) + e % 2;
            if (place < places) atomicMax(&last[place], one + 1);
        }
    }
    return 2 * at;
}

// The last writes that a block has noted for its places, from `first` on.
template <class T>
__device__ __forceinline__ void write_noted(const Ranges &ranges, int64_t first,
                                            const unsigned *last) {
    const T *flat = static_cast<const T *>(ranges.flat);
    T *indexed = static_cast<T *>(ranges.indexed);
    for (int i = static_cast<int>(threadIdx.x); i < ranges.places;
         i += ranges_threads * done_each) {
        unsigned number[done_each];
        T value[done_each] = {};
#pragma unroll
        for (int e = 0; e < done_each; e++) {
            const int place = i + e * ranges_threads;
            number[e] = place < ranges.places ? last[place] : 0;
            if (number[e] != 0) value[e] = flat[(number[e] - 1) * ranges.flat_step];
        }
#pragma unroll
        for (int e = 0; e < done_each; e++)
            if (number[e] != 0)
                indexed[(first + i + e * ranges_threads) * ranges.indices.stride[0]] = value[e];
    }
}

template <class T>
__global__ void __launch_bounds__(ranges_threads)
    scatter_ranges_kernel(const __grid_constant__ Ranges ranges) {
    __shared__ unsigned last[most_places]; // numbers of writes, from 1
    const int thread = static_cast<int>(threadIdx.x);
    const int64_t first = int64_t(blockIdx.x) * ranges.places;
    for (int i = thread; i < ranges.places; i += ranges_threads) last[i] = 0;
    __syncthreads();
    const int64_t noted = ranges.in_pairs ? note_pairs(ranges, first, last) : 0;
    for (int64_t i = noted + thread; i < ranges.size; i += ranges_threads * ranges_each) {
        int64_t index[ranges_each] = {};
#pragma unroll
        for (int e = 0; e < ranges_each; e++) {
            const int64_t number = i + e * ranges_threads;
            if (number < ranges.size)
                index[e] = index_at(ranges.indices, 0, number * ranges.index_step);
        }
#pragma unroll
        for (int e = 0; e < ranges_each; e++) {
            const int64_t number = i + e * ranges_threads;
            if (number < ranges.size) note_write(ranges, first, number, index[e], last);
        }
    }
    __syncthreads();
    write_noted<T>(ranges, first, last);
}

// ---- Many more writes of single elements than places --------------------------------------------

// Whether so many of so many places would be named twice that it costs more to mend them than to
// look at every place.
inline bool is_crowded(int64_t size, int64_t keys) { return keys / 4 < size; }

constexpr int crowd_threads = 256, crowd_each = 4; // writes and places of a thread

// Of each place the number of the last write to it, from 1, in a table of zeros. The last writes
// are the first blocks', so that of many to a place most find with a look that they are not last.
__global__ void __launch_bounds__(crowd_threads)
    number_kernel(const __grid_constant__ Ranges ranges, unsigned *last) {
    const int64_t block = int64_t(gridDim.x) - 1 - blockIdx.x;
    const int64_t first = block * crowd_each * crowd_threads + threadIdx.x;
    int64_t index[crowd_each] = {};
#pragma unroll
    for (int e = 0; e < crowd_each; e++) {
        const int64_t number = first + e * crowd_threads;
        if (number < ranges.size)
            index[e] = index_at(ranges.indices, 0, number * ranges.index_step);
    }
#pragma unroll
    for (int e = 0; e < crowd_each; e++) {
        const int64_t at = first + e * crowd_threads;
        const unsigned number = static_cast<unsigned>(at) + 1;
        bool bad = at >= ranges.size;
        if (bad) continue;
        const int64_t place = counted_from_0(ranges.indices, 0, index[e], &bad);
#ifndef PVG_SIMULATOR // which takes the look for a race
        if (static_cast<const volatile unsigned *>(last)[place] > number) continue;
#endif
        if (!bad) atomicMax(&last[place], number);
    }
}

template <class T>
__global__ void __launch_bounds__(crowd_threads)
    fetch_kernel(const __grid_constant__ Ranges ranges, const unsigned *last) {
    const T *flat = static_cast<const T *>(ranges.flat);
    T *indexed = static_cast<T *>(ranges.indexed);
    const int64_t first = int64_t(blockIdx.x) * crowd_each * crowd_threads + threadIdx.x;
    const int64_t places = ranges.indices.length[0];
    unsigned number[crowd_each];
    T value[crowd_each] = {};
#pragma unroll
    for (int e = 0; e < crowd_each; e++) {
        const int64_t place = first + e * crowd_threads;
        number[e] = place < places ? last[place] : 0;
    }
#pragma unroll
    for (int e = 0; e < crowd_each; e++)
        if (number[e] != 0) value[e] = flat[int64_t(number[e] - 1) * ranges.flat_step];
#pragma unroll
    for (int e = 0; e < crowd_each; e++)
        if (number[e] != 0)
            indexed[(first + e * crowd_threads) * ranges.indices.stride[0]] = value[e];
}

// ---- Many writes, which are mended ------------------------------------------------------------

// The simulated card tells if two threads write to one place, so that nothing is written there that
// would be mended: places that are written twice are left to two launches of mend_kernel.
#ifdef PVG_SIMULATOR
constexpr int mends = 2;
#else
constexpr int mends = 1;
#endif

constexpr int64_t bits_of_a_write = 512, least_bits = 1 << 24; // that are worth clearing
constexpr unsigned most_mend_blocks = 1056; // eight a multiprocessor; each does more if need be

inline bool is_worth_marking(int64_t size, int64_t keys) {
    return keys <= least_bits || keys / bits_of_a_write <= size;
}

// Memory for the bits, which it clears, and the table of so many writes to so many places.
int open_marks(Call &call, int64_t size, int64_t keys, Indices *indices, Workspace *found) {
    indices->wide_last = size > UINT32_MAX;
    const int64_t item = indices->wide_last ? sizeof(uint64_t) : sizeof(uint32_t);
    const int64_t words = (keys / 32 + 4) / 4 * 4, cleared = 16 + 8 * words; // bytes
    PVG_PASS(found->open(call, static_cast<size_t>(cleared + keys * item)));
    indices->twice = found->as<uint32_t>();
    indices->written = indices->twice + 4, indices->again = indices->written + words;
    indices->last = found->as<unsigned char>() + cleared;
    PVG_TRY(cudaMemsetAsync(indices->twice, 0, static_cast<size_t>(cleared), call.stream));
    return PVG_OK;
}

// Marks the places of writes of several words each.
__global__ void __launch_bounds__(index_threads)
    mark_kernel(const __grid_constant__ Indices indices, int64_t size) {
    const int64_t number[1] = {int64_t(blockIdx.x) * index_threads + threadIdx.x};
    if (number[0] >= size) return;
    int64_t by[1] = {0}, key[1];
    displace<Way::mark>(indices, number, by, key);
    mark_places(indices, key, by);
}

// Raises the number of the last write to a place; returns it.
__device__ __forceinline__ uint64_t raise_last(const Indices &indices, int64_t key, int64_t to) {
    if (indices.wide_last) {
        const unsigned long long number = static_cast<unsigned long long>(to);
        const unsigned long long before =
            atomicMax(static_cast<unsigned long long *>(indices.last) + key, number);
        return before > number ? before : number;
    }
    const unsigned number = static_cast<unsigned>(to);
    const unsigned before = atomicMax(static_cast<unsigned *>(indices.last) + key, number);
    return before > number ? before : number;
}

// Writes again to a place that is written twice. A thread says which write is its own, does the
// largest that is said, and looks again what is said: if that is larger, it does that, too. So who
// writes last has seen the largest number. flat_step: words from a write's value to the next one's.
template <class T>
__device__ __forceinline__ void mend_one(const Moves &moves, const int64_t (&position)[1],
                                         int64_t flat_step, bool writes) {
    const Indices &indices = moves.indices;
    int64_t offsets[3][1], by[1] = {0}, key[1];
    locate(moves.walk, position, offsets);
    displace<Way::mend>(indices, offsets[2], by, key);
    if (by[0] == not_written) return;
    const bool again = is_marked_again(indices, key[0]);
    if (mends == 1 && !again) return;
    const int64_t own = offsets[2][0];
    const T *flat = static_cast<const T *>(moves.flat) + offsets[0][0] - own * flat_step;
    T *to = static_cast<T *>(moves.indexed) + offsets[1][0] + by[0];
#ifdef PVG_SIMULATOR
    if (!writes && again) raise_last(indices, key[0], own);
    if (!writes || (again && last_write(indices, key[0]) != static_cast<uint64_t>(own))) return;
    *to = flat[own * flat_step];
#else
    uint64_t last = raise_last(indices, key[0], own), done;
    do {
        __threadfence();
        done = last;
        *to = flat[static_cast<int64_t>(done) * flat_step];
        __threadfence();
        last = indices.wide_last ? static_cast<const volatile uint64_t *>(indices.last)[key[0]]
                                 : static_cast<const volatile uint32_t *>(indices.last)[key[0]];
    } while (last != done);
#endif
}

template <class T>
__global__ void __launch_bounds__(index_threads)
    mend_kernel(const __grid_constant__ Moves moves, int64_t flat_step, bool writes) {
    if (mends == 1 && *moves.indices.twice == 0) return;
    int64_t position[1] = {int64_t(blockIdx.x) * index_threads + threadIdx.x};
    for (; position[0] < moves.size; position[0] += int64_t(gridDim.x) * index_threads)
        mend_one<T>(moves, position, flat_step, writes);
}

// ---- Many writes, found out first ---------------------------------------------------------------

// Each write says that it is the last one, at a place of a table that has one for all places, of
// which only those that are written are touched; then the largest number of those that it is not
// true of stays. So no result depends on the order of threads.

__global__ void __launch_bounds__(index_threads)
    claim_kernel(const __grid_constant__ Writes writes, const __grid_constant__ Indices indices,
                 int64_t *displacements, int64_t *keys) {
    const int64_t i = int64_t(blockIdx.x) * index_threads + threadIdx.x;
    if (i >= writes.size) return;
    const int64_t position[1] = {i};
    int64_t offsets[4][1];
    locate(writes.walk, position, offsets);
    int64_t to = 0, key = offsets[1][0];
    bool bad = false;
#pragma unroll 1
    for (int j = 0; j < indices.count; j++) {
        const int64_t given = index_at(indices, j, offsets[0][0]);
        const int64_t index = counted_from_0(indices, j, given, &bad);
        to += index * indices.stride[j], key += index * indices.key[j];
    }
    if (bad) to = not_written, key = writes.keys;
    displacements[i] = to, keys[i] = key;
    claim_place(indices, key, i);
}

__global__ void __launch_bounds__(index_threads)
    settle_kernel(const __grid_constant__ Indices indices, int64_t size) {
    const int64_t i = int64_t(blockIdx.x) * index_threads + threadIdx.x;
    if (i >= size) return;
    const int64_t key = indices.keys[i];
#ifndef PVG_SIMULATOR // a number that is seen is one of these writes', perhaps no more the largest
    const uint64_t seen = last_write(indices, key);
    if (seen >= static_cast<uint64_t>(i)) return;
#endif
    raise_last(indices, key, i);
}

// Puts what writes come to in the place of indices, and beside it which of them are the last.
int find_last(Call &call, const Writes &writes, Indices *indices, Workspace *found) {
    const int64_t n = writes.size;
    indices->wide_last = n > UINT32_MAX;
    const int64_t item = indices->wide_last ? sizeof(uint64_t) : sizeof(uint32_t);
    PVG_PASS(found->open(call, static_cast<size_t>(16 * n + (writes.keys + 1) * item)));
    int64_t *displacements = found->as<int64_t>(), *keys = displacements + n;
    indices->last = keys + n;
    PVG_LAUNCH(claim_kernel, blocks_for(n, index_threads), index_threads, 0, call.stream, writes,
               *indices, displacements, keys);
    indices->displacements = displacements, indices->keys = keys;
    PVG_LAUNCH(settle_kernel, blocks_for(n, index_threads), index_threads, 0, call.stream, *indices,
               n);
    return PVG_OK;
}

} // namespace

} // namespace pvg
