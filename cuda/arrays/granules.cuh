// Elements that begin at any address, put together in registers from granules of memory: 16 bytes
// on an aligned address, or as many as the elements have, if they are fewer. A granule that has one
// of them may have bytes of others: who loads it knows that these exist.
#pragma once
#include "arrays/vector.cuh"

namespace pvg {

namespace {

// The granules in which COUNT elements may lie.
template <class T, int COUNT> struct Granules {
    static constexpr int item = sizeof(T);
    static constexpr int words = item * COUNT / 4;     // of the elements
    static constexpr int each = words < 4 ? words : 4; // of a granule
    static constexpr unsigned mask = 4u * each - 1;    // of the bytes of a granule
    using Granule = Vector<uint32_t, each>;

    uint32_t word[words + each] = {};
    int begin = 0;      // of the elements in the first granule, in bytes
    bool found = false; // all of them have been loaded

    __device__ __forceinline__ void load(const char *from, int i) { load(from, i, i); }
    __device__ __forceinline__ void load(const char *from, int which, int i) {
        const Granule granule = reinterpret_cast<const Granule *>(from)[which];
#pragma unroll
        for (int j = 0; j < each; j++) word[i * each + j] = granule.element[j];
    }
    __device__ __forceinline__ void load_aligned(const char *from) {
        found = true;
#pragma unroll
        for (int i = 0; i < words / each; i++) load(from, i);
    }
    // One or two of them, without a condition: those in which the first `bytes` from `at` on lie.
    __device__ __forceinline__ void load_around(const void *at, int bytes) {
        static_assert(words == each, "two granules");
        const uintptr_t address = reinterpret_cast<uintptr_t>(at);
        begin = static_cast<int>(address & mask);
        const char *from = reinterpret_cast<const char *>(address - static_cast<unsigned>(begin));
        load(from, 0, 0);
        load(from, begin + bytes > 4 * each, 1);
    }
    // Those in which bytes `from` to `to` of the elements lie.
    __device__ __forceinline__ void load_part(const char *origin, uint32_t offset, uint32_t limit,
                                              int from, int to) {
        begin = static_cast<int>(offset & mask);
        found = offset < limit;
#pragma unroll
        for (int i = 0; i <= words / each; i++) {
            const int first = 4 * each * i - begin;
            const bool is_late = i > 0 && first >= to;
            const bool is_early = i < words / each && first + 4 * each <= from;
            if (found && !is_late && !is_early) load(origin + (offset & ~mask), i);
        }
    }
    // By so many words, if the elements begin where that is a part of how far.
    template <int BY>
    __device__ __forceinline__ void move_words(uint32_t (&near)[words + each]) const {
        const bool moves = (begin & (4 * BY)) != 0;
#pragma unroll
        for (int i = 0; i + BY < words + each; i++) near[i] = moves ? near[i + BY] : near[i];
    }
    // The words of the elements: granules are shifted by whole words, and these by bytes.
    __device__ __forceinline__ void align(uint32_t (&whole)[words]) const {
        uint32_t near[words + each];
#pragma unroll
        for (int i = 0; i < words + each; i++) near[i] = word[i];
        if constexpr (each >= 4 && item <= 8) move_words<2>(near);
        if constexpr (each >= 2 && item <= 4) move_words<1>(near);
#pragma unroll
        for (int i = 0; i < words; i++)
            whole[i] = item < 4 ? __funnelshift_r(near[i], near[i + 1], begin * 8) : near[i];
    }
    // Puts the last element first, if `backwards`.
    static __device__ __forceinline__ void turn(uint32_t (&whole)[words], bool backwards) {
        constexpr unsigned turned = item == 1 ? 0x4567 : item == 2 ? 0x5476 : 0x7654;
        constexpr int together = item > 4 ? item / 4 : 1; // words of an element
        const unsigned selector = backwards ? turned : 0x3210;
        uint32_t from[words];
#pragma unroll
        for (int i = 0; i < words; i++) from[i] = whole[i];
#pragma unroll
        for (int i = 0; i < words; i++) {
            const int other = words - together - i + 2 * (i % together);
            whole[i] = __byte_perm(from[i], from[other], selector);
        }
    }
};

} // namespace

} // namespace pvg
