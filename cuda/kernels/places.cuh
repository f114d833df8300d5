// For gather.cu and accumulate.cu: what indices say of places, and whether they are in range.
#pragma once
#include "arrays/call.cuh"
#include "arrays/locate.cuh"
#include "arrays/scalar.cuh"
#include "kernels/leave_report.cuh"

namespace pvg {

namespace {

// Indices along some axes of an array: one plane of them for each axis, all with the same strides.
struct Indices {
    const void *first[PVG_MAX_NDIM] = {};
    const int64_t *displacements = nullptr; // what the indices come to, instead of them
    const int64_t *keys = nullptr;          // beside those: numbers of the places
    // Of each place the number of the last write to it; and, by bits, whether it is written at all,
    // and whether twice, with a word before them that says whether any is.
    void *last = nullptr;
    uint32_t *written = nullptr, *again = nullptr, *twice = nullptr;
    bool wide_last = false; // uint64, else uint32
    bool wide = false;      // int64 or uint64, else int32
    bool from_end = true;   // negative ones count from the end, or are out of range
    uint64_t natural = 0;   // of each axis a bit: uint64
    int64_t words = 1;      // moved by each write, one after another, of which the first marks
    int count = 0;          // axes
    // Of each axis: its length and its stride, in words; the stride of the numbers that tell places
    // apart.
    int64_t length[PVG_MAX_NDIM], stride[PVG_MAX_NDIM], key[PVG_MAX_NDIM];
    int8_t axis[PVG_MAX_NDIM];
    // Where one that is out of range is reported, which is not looked for without a slot, and by
    // what operation.
    ReportSlot *slot = nullptr;
    Report operation = Report::none;
};

// What gather_kernel works on. Operands of the walk: the side without indices, the other, indices.
struct Moves {
    void *flat, *indexed; // flat NULL: `word` is written everywhere
    Scalar word;
    int64_t size; // words
    Indices indices;
    Locator<3> walk;
};

// All that is written, in the order in which the last one wins. Operands: the indices, the keys
// beside them, the values, and the array, along axes that are not indexed.
struct Writes {
    int64_t size, keys;
    Locator<4> walk;
};

// What is found out of each write, for those who want it: where it goes, or not_written; where its
// value is; a number of its place, `keys` if there is none; and its own number.
struct Places {
    int64_t *displacements, *sources;
    void *keys;
    uint32_t *numbers;
    bool wide; // keys are uint64, else uint32
};

constexpr int index_threads = 256;
constexpr int64_t not_written = INT64_MIN;

// What int64 cannot hold is beyond every length, as the largest int64 is.
__device__ __forceinline__ int64_t index_at(const Indices &indices, int j, int64_t at) {
    if (!indices.wide) return static_cast<const int32_t *>(indices.first[j])[at];
    const int64_t index = static_cast<const int64_t *>(indices.first[j])[at];
    return index < 0 && indices.natural >> j & 1 ? INT64_MAX : index;
}

// The j-th index counted from 0. One out of range would be an element beside the array, so that it
// is taken for the nearest one; and reported, if that is asked for, and made known by `bad`.
__device__ __forceinline__ int64_t counted_from_0(const Indices &indices, int j, int64_t index,
                                                  bool *bad) {
    const int64_t length = indices.length[j];
    const int64_t found = index < 0 && indices.from_end ? index + length : index;
    if (found >= 0 && found < length) return found;
    if (indices.slot) {
        *bad = true;
        leave_report(indices.slot, indices.operation, index, indices.axis[j], length);
    }
    return found < 0 ? 0 : length - 1;
}

// What a kernel does with the places that it finds: read them; write to them; do that and mark them
// as written; write again to those that were marked twice.
enum class Way { gather, scatter, mark, mend };

__device__ __forceinline__ uint64_t last_write(const Indices &indices, int64_t key) {
    return indices.wide_last ? static_cast<const uint64_t *>(indices.last)[key]
                             : static_cast<const uint32_t *>(indices.last)[key];
}

__device__ __forceinline__ void claim_place(const Indices &indices, int64_t key, int64_t number) {
    unsigned long long *wide = static_cast<unsigned long long *>(indices.last) + key;
    unsigned *narrow = static_cast<unsigned *>(indices.last) + key;
#ifdef PVG_SIMULATOR // by several threads, perhaps
    if (indices.wide_last)
        atomicExch(wide, static_cast<unsigned long long>(number));
    else
        atomicExch(narrow, static_cast<unsigned>(number));
#else // initcheck takes an exchange for a read
    if (indices.wide_last)
        *wide = static_cast<unsigned long long>(number);
    else
        *narrow = static_cast<unsigned>(number);
#endif
}

// Marks places as written, and those that were so already as written twice.
template <int COUNT>
__device__ __forceinline__ void mark_places(const Indices &indices, const int64_t (&key)[COUNT],
                                            const int64_t (&by)[COUNT]) {
    uint32_t before[COUNT] = {};
#pragma unroll
    for (int e = 0; e < COUNT; e++)
        if (by[e] != not_written)
            before[e] = atomicOr(indices.written + key[e] / 32, 1u << key[e] % 32);
#pragma unroll
    for (int e = 0; e < COUNT; e++) {
        if (!(before[e] >> key[e] % 32 & 1)) continue;
        atomicOr(indices.again + key[e] / 32, 1u << key[e] % 32);
        claim_place(indices, key[e], 0);
#ifndef PVG_SIMULATOR // many find the same
        if (*static_cast<volatile uint32_t *>(indices.twice)) continue;
#endif
        atomicOr(indices.twice, 1u);
    }
}

__device__ __forceinline__ bool is_marked_again(const Indices &indices, int64_t key) {
    return indices.again[key / 32] >> key % 32 & 1;
}

// Adds to each of COUNT numbers, but those that are not_written, the words from the place that the
// other axes name to the one that the indices name, too; or makes it not_written, which a write is
// by an index out of range, or to a place that is written again. `at`: where the indices lie; `key`
// becomes the number of the place, of ways that mark places. The loads of all of them are under way
// at the same time, and so are those of two axes of gathers.
template <Way WAY, int COUNT>
__device__ __forceinline__ void displace(const Indices &indices, const int64_t (&at)[COUNT],
                                         int64_t (&by)[COUNT], int64_t (&key)[COUNT]) {
    constexpr bool keyed = WAY == Way::mark || WAY == Way::mend;
    constexpr int axes = WAY == Way::gather ? 2 : 1; // at a time
#pragma unroll
    for (int e = 0; e < COUNT; e++) key[e] = 0;
    if (WAY == Way::scatter && indices.displacements) {
#pragma unroll
        for (int e = 0; e < COUNT; e++) {
            if (by[e] == not_written) continue;
            by[e] = indices.displacements[at[e]], key[e] = indices.keys[at[e]];
            if (last_write(indices, key[e]) != static_cast<uint64_t>(at[e])) by[e] = not_written;
        }
        return;
    }
#pragma unroll 1
    for (int j = 0; j < indices.count; j += axes) {
        int64_t index[axes][COUNT] = {};
#pragma unroll
        for (int k = 0; k < axes; k++)
#pragma unroll
            for (int e = 0; e < COUNT; e++)
                if (by[e] != not_written && j + k < indices.count)
                    index[k][e] = index_at(indices, j + k, at[e]);
#pragma unroll
        for (int k = 0; k < axes; k++) {
            if (j + k == indices.count) break;
#pragma unroll
            for (int e = 0; e < COUNT; e++) {
                bool bad = false;
                if (by[e] == not_written) continue;
                const int64_t place = counted_from_0(indices, j + k, index[k][e], &bad);
                by[e] += place * indices.stride[j + k];
                if (keyed) key[e] += place * indices.key[j + k];
                if (WAY != Way::gather && bad) by[e] = not_written;
            }
        }
    }
}

__global__ void __launch_bounds__(index_threads)
    places_kernel(const __grid_constant__ Writes writes, const __grid_constant__ Indices indices,
                  const __grid_constant__ Places places) {
    const int64_t i = int64_t(blockIdx.x) * index_threads + threadIdx.x;
    if (i >= writes.size) return;
    const int64_t position[1] = {i};
    int64_t offsets[4][1];
    locate(writes.walk, position, offsets);
    int64_t to = offsets[3][0], key = offsets[1][0], at = offsets[0][0];
    bool bad = false;
#pragma unroll 1
    for (int j = 0; j < indices.count; j++) {
        const int64_t index = counted_from_0(indices, j, index_at(indices, j, at), &bad);
        to += index * indices.stride[j], key += index * indices.key[j];
    }
    if (bad) to = not_written, key = writes.keys;
    if (places.displacements) places.displacements[i] = to;
    if (places.sources) places.sources[i] = offsets[2][0];
    if (places.numbers) places.numbers[i] = static_cast<uint32_t>(i);
    if (places.keys && places.wide) static_cast<int64_t *>(places.keys)[i] = key;
    if (places.keys && !places.wide)
        static_cast<uint32_t *>(places.keys)[i] = static_cast<uint32_t>(key);
}

// Calls function(tag of a type of so many bytes).
template <class F> int dispatch_words(int64_t bytes, F &&function) {
    switch (bytes) {
    case 1: return function(Tag<uint8_t>());
    case 2: return function(Tag<uint16_t>());
    case 4: return function(Tag<uint32_t>());
    case 8: return function(Tag<uint64_t>());
    }
    return function(Tag<Bytes16>());
}

} // namespace

} // namespace pvg
