// For gather.cu: writes of single elements by one index each, as they are launched, and by clusters
// where they are too many for each block to look at all of them.
//
// A cluster has places of its own, in the shared memory of its blocks, and each of these looks at
// an eighth of the indices and notes them where their places are. What all clusters read together
// costs as much as the table in memory, its clearing and the launches that this saves.
#pragma once
#include "kernels/clusters.cuh"
#include "kernels/parted_writes.cuh"
#include "runtime/architecture.cuh"

namespace pvg {

namespace {

constexpr int writers = 8; // blocks of a cluster
constexpr int64_t most_in_clusters = 1 << 17;
constexpr int most_cluster_places = 1 << 15; // of a block: 128 KiB
constexpr int64_t most_cluster_blocks = 128; // that run at the same time

// How many places a block is to have, a power of two; 0: they are too many, or so few that writes
// would wait for each other, or the card has no clusters.
inline int places_of_clusters(Call &call, int64_t size, int64_t keys, int *places) {
    int architecture = 0, each = least_places;
    int64_t shared = 0;
    PVG_PASS(architecture_of(call.device, &architecture));
    PVG_PASS(device_attribute(call.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared));
    while (each < most_cluster_places && keys > most_cluster_blocks * each) each *= 2;
    const bool fits = size <= most_in_clusters && size / 8 <= keys &&
                      keys <= most_cluster_blocks * each &&
                      each * static_cast<int64_t>(sizeof(unsigned)) <= shared;
    *places = architecture >= 90 && fits ? each : 0;
    return PVG_OK;
}

template <class T>
__global__ void __launch_bounds__(ranges_threads)
    scatter_clusters_kernel(const __grid_constant__ Ranges ranges) {
    PVG_DYNAMIC_SHARED(unsigned, last); // numbers of writes, from 1
    const unsigned rank = blockIdx.x % writers, places = static_cast<unsigned>(ranges.places);
    const int64_t first = int64_t(blockIdx.x - rank) * places; // the cluster's
    const int shift = 31 - __clz(ranges.places);
    for (unsigned i = threadIdx.x; i < places; i += ranges_threads) last[i] = 0;
    clusters::cluster_sync();
    constexpr int64_t step = int64_t(writers) * ranges_threads;
    for (int64_t i = rank * ranges_threads + threadIdx.x; i < ranges.size;
         i += step * ranges_each) {
        int64_t index[ranges_each] = {};
#pragma unroll
        for (int e = 0; e < ranges_each; e++)
            if (i + e * step < ranges.size)
                index[e] = index_at(ranges.indices, 0, (i + e * step) * ranges.index_step);
#pragma unroll
        for (int e = 0; e < ranges_each; e++) {
            bool bad = i + e * step >= ranges.size;
            if (bad) break;
            const int64_t place = counted_from_0(ranges.indices, 0, index[e], &bad) - first;
            if (bad || place < 0 || place >= int64_t(writers) * places) continue;
            const unsigned there = static_cast<unsigned>(place);
            clusters::raise_of_block(last + (there & (places - 1)), there >> shift,
                                     static_cast<unsigned>(i + e * step) + 1);
        }
    }
    clusters::cluster_sync(); // after which each has its own
    write_noted<T>(ranges, first + int64_t(rank) * places, last);
}

// ---- Launches -----------------------------------------------------------------------------------

// Of a few writes, the last one to each place.
int launch_few(Call &call, const Moves &moves, const Writes &writes, int64_t bytes) {
    return dispatch_words(bytes, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        unsigned blocks = blocks_for(moves.size, few_threads * few_words);
        if (blocks > most_few_blocks) blocks = most_few_blocks;
        PVG_LAUNCH(scatter_few_kernel<T>, blocks, few_threads, 0, call.stream, moves,
                   few_of(writes));
        return PVG_OK;
    });
}

// Of some writes to single elements, the last one to each.
int launch_ranges(Call &call, const Ranges &ranges, int64_t keys, int64_t item) {
    return dispatch_words(item, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(scatter_ranges_kernel<T>, blocks_for(keys, ranges.places), ranges_threads, 0,
                   call.stream, ranges);
        return PVG_OK;
    });
}

// Of more writes to single elements, the last one to each. ranges.places: as of places_of_clusters.
int launch_clusters(Call &call, const Ranges &ranges, int64_t keys, int64_t item) {
    const unsigned blocks = writers * blocks_for(keys, int64_t(writers) * ranges.places);
    return dispatch_words(item, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH_WITH(LaunchExtras{writers}, scatter_clusters_kernel<T>, blocks, ranges_threads,
                        static_cast<size_t>(ranges.places) * sizeof(unsigned), call.stream, ranges);
        return PVG_OK;
    });
}

// Of many writes to a few elements, the last one to each place.
int launch_crowd(Call &call, const Ranges &ranges, int64_t keys, int64_t item) {
    Workspace table;
    const size_t bytes = static_cast<size_t>(keys) * sizeof(unsigned);
    constexpr int64_t of_block = crowd_threads * crowd_each;
    PVG_PASS(table.open(call, bytes));
    unsigned *last = table.as<unsigned>();
    PVG_TRY(cudaMemsetAsync(last, 0, bytes, call.stream));
    PVG_LAUNCH(number_kernel, blocks_for(ranges.size, of_block), crowd_threads, 0, call.stream,
               ranges, last);
    return dispatch_words(item, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(fetch_kernel<T>, blocks_for(keys, of_block), crowd_threads, 0, call.stream,
                   ranges, last);
        return PVG_OK;
    });
}

} // namespace

} // namespace pvg
