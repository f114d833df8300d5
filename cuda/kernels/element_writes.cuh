// For gather.cu: writes of single elements by one index each, as they are launched, and by clusters
// where they are too many for each block to look at all of them.
//
// A cluster has places of its own, in the shared memory of its blocks, and each of these looks at
// an eighth of the indices and notes them where their places are. What all clusters read together
// costs as much as the table in memory, its clearing and the launches that this saves.
#pragma once
#include "kernels/parted_writes.cuh"

namespace pvg {

namespace {

constexpr int writers = 8, writer_each = 16; // blocks of a cluster, indices of each thread
constexpr int64_t most_in_clusters = int64_t(writers) * ranges_threads * writer_each;
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
    constexpr unsigned step = writers * ranges_threads, none = 0xffffffffu;
    const unsigned own = rank * ranges_threads + threadIdx.x; // number of the first index
    unsigned there[writer_each];                              // place in the cluster
    int64_t index[writer_each] = {};
#pragma unroll
    for (int e = 0; e < writer_each; e++)
        if (own + e * step < ranges.size)
            index[e] = index_at(ranges.indices, 0, (own + e * step) * ranges.index_step);
    for (unsigned i = threadIdx.x; i < places; i += ranges_threads) last[i] = 0;
    clusters::cluster_sync();
#pragma unroll
    for (int e = 0; e < writer_each; e++) {
        bool bad = own + e * step >= ranges.size;
        const int64_t place = bad ? 0 : counted_from_0(ranges.indices, 0, index[e], &bad) - first;
        there[e] = none;
        if (bad || place < 0 || place >= int64_t(writers) * places) continue;
        there[e] = static_cast<unsigned>(place);
        clusters::raise_of_block(last + (there[e] & (places - 1)), there[e] >> shift,
                                 own + e * step + 1);
    }
    clusters::cluster_sync(); // after which it is known which writes are the last ones
    constexpr int each = sizeof(T) <= 4 ? 8 : sizeof(T) == 8 ? 4 : 2; // at a time
    T *indexed = static_cast<T *>(ranges.indexed);
#pragma unroll
    for (int done = 0; done < writer_each; done += each) {
        T value[each] = {};
        bool is_last[each] = {};
#pragma unroll
        for (int e = 0; e < each; e++) {
            const unsigned to = there[done + e], number = own + (done + e) * step;
            if (to == none) continue;
            value[e] = static_cast<const T *>(ranges.flat)[number * ranges.flat_step];
            is_last[e] =
                clusters::read_of_block(last + (to & (places - 1)), to >> shift) == number + 1;
        }
#pragma unroll
        for (int e = 0; e < each; e++)
            if (is_last[e])
                indexed[(first + there[done + e]) * ranges.indices.stride[0]] = value[e];
    }
    clusters::cluster_sync_after_reading();
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
