// For gather.cu: many writes of single elements, which are parted by ranges of places first.
//
// Stores to any places of an array take a card 17 ps each, and so do atomic operations, however
// small the elements are and even if all lie in its L2 cache: of 5 million writes a store each is
// 85 us, while their indices and values are read in 20. So a block of part_kernel sorts a piece of
// the writes by ranges of places, in shared memory, and writes it in one go; a block of
// write_parts_kernel finds those of its own range in all pieces, notes in shared memory which write
// of a place is the last one, and then writes its range from the first place to the last.
#pragma once
#include "kernels/clusters.cuh"
#include "kernels/last_writes.cuh"
#include "runtime/any_order.cuh"
#include "runtime/architecture.cuh"
#include "runtime/device.cuh"

namespace pvg {

namespace {

constexpr int part_threads = 512, part_each = 8; // most threads of a block; writes of each
constexpr int place_threads = 1024;
constexpr int listed = 2 * place_threads; // pieces that a block looks at together
constexpr int number_bits = 12;           // of a write in its piece
constexpr int64_t most_parted = 1 << 27;  // writes, of which memory holds a copy
constexpr int64_t most_parts = 4096;      // counters in shared memory
constexpr int64_t most_places_of_part = 1 << 15;
constexpr int64_t parts_at_once = 128;      // blocks that run at the same time
constexpr int64_t least_whole_pieces = 264; // smaller ones if all multiprocessors have not two
static_assert(part_threads * part_each <= 1 << number_bits);

// Part p has `places` places from p * places on. Of each write that is none out of range its piece
// has, part after part, the value and an entry: place in the part << number_bits | number in the
// piece. begins: of each piece where its parts begin, and the end of the last.
struct Parting {
    uint32_t parts, places, pieces, piece; // piece: writes of each
    uint32_t multiplier, shift; // place / places == (place * multiplier / 2^32 + place) >> shift
    uint32_t *entries;
    void *values;
    uint16_t *begins;
};

// Adds one to the counter of the part; returns what it was. Neighbours are often of one part: 32
// additions would wait for each other. All lanes of the warp call it.
__device__ __forceinline__ uint32_t take_rank(uint32_t *counts, uint32_t part, bool counted) {
    constexpr unsigned all = 0xffffffffu;
    const unsigned lane = threadIdx.x % 32;
    const uint32_t first = __shfl_sync(all, part, 0);
    if (__all_sync(all, counted && part == first)) {
        uint32_t before = 0;
        if (lane == 0) before = atomicAdd(counts + part, 32u);
        return __shfl_sync(all, before, 0) + lane;
    }
    return counted ? atomicAdd(counts + part, 1u) : 0;
}

// The sum of the values of the block's threads before the caller, and of all of them. sums: one
// word for each warp; a barrier must come before they are used again.
__device__ __forceinline__ uint32_t add_before(uint32_t value, uint32_t *sums, uint32_t *total) {
    constexpr unsigned all = 0xffffffffu;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    uint32_t upto = value;
    for (unsigned delta = 1; delta < 32; delta *= 2) {
        const uint32_t other = __shfl_up_sync(all, upto, delta);
        if (lane >= delta) upto += other;
    }
    if (lane == 31) sums[warp] = upto;
    __syncthreads();
    uint32_t warps_upto = lane < warps ? sums[lane] : 0;
    for (unsigned delta = 1; delta < 32; delta *= 2) {
        const uint32_t other = __shfl_up_sync(all, warps_upto, delta);
        if (lane >= delta) warps_upto += other;
    }
    const uint32_t before = __shfl_sync(all, warps_upto, warp == 0 ? 0 : warp - 1);
    *total = __shfl_sync(all, warps_upto, 31);
    return upto - value + (warp == 0 ? 0 : before);
}

// Makes of the counters of the parts where each begins, and writes that for the other kernel.
__device__ __forceinline__ void begin_parts(const Parting &parting, uint32_t *counts,
                                            uint32_t *sums) {
    const uint32_t each = (parting.parts + blockDim.x - 1) / blockDim.x;
    const uint32_t first = threadIdx.x * each;
    const uint32_t end = min(first + each, parting.parts);
    uint16_t *begins = parting.begins + blockIdx.x * size_t(parting.parts + 1);
    uint32_t sum = 0, total = 0;
    for (uint32_t p = first; p < end; p++) sum += counts[p];
    uint32_t begin = add_before(sum, sums, &total);
    for (uint32_t p = first; p < end; p++) {
        const uint32_t count = counts[p];
        counts[p] = begin, begins[p] = static_cast<uint16_t>(begin);
        begin += count;
    }
    if (threadIdx.x == 0)
        counts[parting.parts] = total, begins[parting.parts] = static_cast<uint16_t>(total);
}

// A block has part_each writes for each of its threads.
template <class T>
__global__ void __launch_bounds__(part_threads, sizeof(T) > 8 ? 1 : 2)
    part_kernel(const __grid_constant__ Ranges ranges, const __grid_constant__ Parting parting) {
    PVG_DYNAMIC_SHARED(T, values);
    __shared__ uint32_t sums[part_threads / 32];
    uint32_t *entries = reinterpret_cast<uint32_t *>(values + parting.piece);
    uint32_t *counts = entries + parting.piece;
    const uint32_t threads = blockDim.x, thread = threadIdx.x;
    const int64_t first = int64_t(blockIdx.x) * parting.piece;
    int64_t index[part_each] = {};
    T value[part_each] = {};
    clusters::let_next_kernel_start();
#pragma unroll
    for (int e = 0; e < part_each; e++) {
        const int64_t number = first + thread + e * threads;
        if (number < ranges.size)
            index[e] = index_at(ranges.indices, 0, number * ranges.index_step);
    }
#pragma unroll
    for (int e = 0; e < part_each; e++) {
        const int64_t number = first + thread + e * threads;
        if (number < ranges.size)
            value[e] = static_cast<const T *>(ranges.flat)[number * ranges.flat_step];
    }
    for (uint32_t p = thread; p < parting.parts; p += threads) counts[p] = 0;
    __syncthreads();
    constexpr uint32_t none = 0xffffffffu;
    uint32_t part[part_each], entry[part_each], rank[part_each];
#pragma unroll
    for (int e = 0; e < part_each; e++) {
        const uint32_t number = thread + e * threads;
        bool bad = first + number >= ranges.size;
        const int64_t found = bad ? 0 : counted_from_0(ranges.indices, 0, index[e], &bad);
        const uint32_t place = static_cast<uint32_t>(found);
        part[e] = (__umulhi(place, parting.multiplier) + place) >> parting.shift;
        entry[e] = (place - part[e] * parting.places) << number_bits | number;
        rank[e] = take_rank(counts, part[e], !bad);
        if (bad) part[e] = none;
    }
    __syncthreads();
    begin_parts(parting, counts, sums);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < part_each; e++) {
        if (part[e] == none) continue;
        const uint32_t at = counts[part[e]] + rank[e];
        entries[at] = entry[e], values[at] = value[e];
    }
    __syncthreads();
    const uint32_t total = counts[parting.parts];
    for (uint32_t i = thread; i < total; i += threads) {
        parting.entries[first + i] = entries[i];
        static_cast<T *>(parting.values)[first + i] = values[i];
    }
}

// What a block knows of up to `listed` pieces. The writes of its part are counted through all of
// them: upto, how many are in the pieces before; from, what to add to reach the entry's position.
struct Listed { uint32_t upto[listed + 1], from[listed], sums[place_threads / 32]; };

// Lists the pieces from `first` on; returns how many writes of the part are in them.
__device__ __forceinline__ uint32_t list_pieces(const Parting &parting, uint32_t first,
                                                Listed *list) {
    constexpr int each = listed / place_threads;
    uint32_t begin[each], count[each], sum = 0, total = 0;
#pragma unroll
    for (int k = 0; k < each; k++) {
        const uint32_t piece = first + threadIdx.x * each + k;
        begin[k] = count[k] = 0;
        if (piece >= parting.pieces) continue;
        const uint16_t *begins = parting.begins + piece * size_t(parting.parts + 1) + blockIdx.x;
        begin[k] = begins[0], count[k] = begins[1] - begin[k];
        sum += count[k];
    }
    uint32_t before = add_before(sum, list->sums, &total);
#pragma unroll
    for (int k = 0; k < each; k++) {
        const uint32_t at = threadIdx.x * each + k;
        list->upto[at] = before, list->from[at] = (first + at) * parting.piece + begin[k] - before;
        before += count[k];
    }
    if (threadIdx.x == 0) list->upto[listed] = total;
    __syncthreads();
    return total;
}

// Goes through `total` writes of the listed pieces, of which each warp has some one after another:
// visit(place in the part, number from 1, position), for up to EACH at a time.
template <int EACH, class F>
__device__ __forceinline__ void visit_writes(const Parting &parting, uint32_t first, uint32_t total,
                                             const Listed &list, const F &visit) {
    constexpr uint32_t warps = place_threads / 32;
    const uint32_t share = (total + 32 * warps - 1) / (32 * warps) * 32; // of a warp
    const uint32_t begin = threadIdx.x / 32 * share;
    const uint32_t end = min(begin + share, total);
    uint32_t at = begin + threadIdx.x % 32;
    if (at >= end) return;
    uint32_t k = 0; // the last piece before which there are at most `at`
    for (uint32_t step = listed / 2; step > 0; step /= 2)
        if (list.upto[k + step] <= at) k += step;
    for (; at < end; at += 32 * EACH) {
        uint32_t position[EACH], number[EACH], entry[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (at + e * 32 >= end) break;
            while (list.upto[k + 1] <= at + e * 32) k++;
            position[e] = list.from[k] + at + e * 32, number[e] = (first + k) * parting.piece + 1;
            entry[e] = parting.entries[position[e]];
        }
        const int count = static_cast<int>((end - at + 31) / 32);
        visit(position, number, entry, count);
    }
}

// A block has a part.
template <class T>
__global__ void __launch_bounds__(place_threads)
    write_parts_kernel(const __grid_constant__ Ranges ranges,
                       const __grid_constant__ Parting parting) {
    PVG_DYNAMIC_SHARED(T, values);
    uint32_t *last = reinterpret_cast<uint32_t *>(values + parting.places); // numbers from 1
    Listed *list = reinterpret_cast<Listed *>(last + parting.places);
    constexpr int each = sizeof(T) > 8 ? 4 : 8;
    constexpr uint32_t in_piece = (1u << number_bits) - 1;
    uint32_t total = 0;
    for (uint32_t i = threadIdx.x; i < parting.places; i += place_threads) last[i] = 0;
    clusters::wait_for_previous_kernel();
    for (uint32_t first = 0; first < parting.pieces; first += listed) {
        __syncthreads();
        total = list_pieces(parting, first, list);
        visit_writes<each>(parting, first, total, *list,
                           [&](auto &, auto &number, auto &entry, int n) {
#pragma unroll
                               for (int e = 0; e < each; e++) {
                                   if (e >= n) break;
                                   uint32_t *noted = last + (entry[e] >> number_bits);
                                   const uint32_t own = number[e] + (entry[e] & in_piece);
#ifndef PVG_SIMULATOR // which takes the look for a race
                                   if (*static_cast<const volatile uint32_t *>(noted) > own)
                                       continue;
#endif
                                   atomicMax(noted, own);
                               }
                           });
    }
    for (uint32_t first = 0; first < parting.pieces; first += listed) {
        __syncthreads();
        if (parting.pieces > listed) total = list_pieces(parting, first, list);
        visit_writes<each>(
            parting, first, total, *list, [&](auto &position, auto &number, auto &entry, int n) {
                T value[each] = {};
#pragma unroll
                for (int e = 0; e < each; e++)
                    if (e < n) value[e] = static_cast<const T *>(parting.values)[position[e]];
#pragma unroll
                for (int e = 0; e < each; e++) {
                    const uint32_t place = e < n ? entry[e] >> number_bits : 0;
                    if (e < n && last[place] == number[e] + (entry[e] & in_piece))
                        values[place] = value[e];
                }
            });
    }
    __syncthreads();
    T *indexed = static_cast<T *>(ranges.indexed) +
                 int64_t(blockIdx.x) * parting.places * ranges.indices.stride[0];
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < parting.places; i += place_threads)
        if (last[i] != 0) indexed[i * ranges.indices.stride[0]] = values[i];
}

// ---- Launches -----------------------------------------------------------------------------------

inline size_t bytes_of_piece(const Parting &parting, int64_t item) {
    return parting.piece * static_cast<size_t>(item + 4) + 4 * size_t(parting.parts + 1);
}
inline size_t bytes_of_part(const Parting &parting, int64_t item) {
    return parting.places * static_cast<size_t>(item + 4) + sizeof(Listed);
}

// The parts that so many writes to so many places take; none if these are too many, or if so few
// of them are written that it takes longer to look at all.
inline int plan_parting(Call &call, int64_t size, int64_t keys, int64_t item, Parting *parting) {
    int64_t shared = 0;
    PVG_PASS(device_attribute(call.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared));
    int64_t most = (shared - static_cast<int64_t>(sizeof(Listed))) / (item + 4);
    most = most < most_places_of_part ? most / 4 * 4 : most_places_of_part;
    const int64_t times = blocks_for(keys, parts_at_once * most);
    const int64_t fewest = blocks_for(keys, parts_at_once * times);
    const int64_t places =
        (fewest + 3) / 4 * 4; // so that counters behind values lie on their addresses
    const int64_t parts = blocks_for(keys, places);
    if (size > most_parted || keys / 16 > size || parts > most_parts) return PVG_OK;
    parting->parts = static_cast<uint32_t>(parts), parting->places = static_cast<uint32_t>(places);
    while ((1u << parting->shift) < parting->places) parting->shift++;
    const uint64_t above = (uint64_t(1) << parting->shift) - parting->places;
    parting->multiplier = static_cast<uint32_t>((above << 32) / parting->places + 1);
    parting->piece = part_threads * part_each;
    if (size < least_whole_pieces * parting->piece ||
        2 * bytes_of_piece(*parting, item) > static_cast<size_t>(shared))
        parting->piece /= 2;
    parting->pieces = blocks_for(size, parting->piece);
    return PVG_OK;
}

inline int launch_parted(Call &call, const Ranges &ranges, Parting parting, int64_t item) {
    Workspace memory;
    int architecture = 0;
    PVG_PASS(architecture_of(call.device, &architecture));
    const size_t writes = size_t(parting.pieces) * parting.piece;
    const size_t begins = size_t(parting.pieces) * (parting.parts + 1);
    PVG_PASS(memory.open(call, writes * static_cast<size_t>(item + 4) + 2 * begins));
    parting.values = memory.as<void>();
    parting.entries =
        reinterpret_cast<uint32_t *>(memory.as<char>() + writes * static_cast<size_t>(item));
    parting.begins = reinterpret_cast<uint16_t *>(parting.entries + writes);
    return dispatch_words(item, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        in_any_order(parting.values, writes * static_cast<size_t>(item + 4)); // and the entries
        PVG_LAUNCH(part_kernel<T>, parting.pieces, parting.piece / part_each,
                   bytes_of_piece(parting, item), call.stream, ranges, parting);
        PVG_LAUNCH_WITH((LaunchExtras{1, architecture >= 90}), write_parts_kernel<T>, parting.parts,
                        place_threads, bytes_of_part(parting, item), call.stream, ranges, parting);
        return PVG_OK;
    });
}

} // namespace

} // namespace pvg
