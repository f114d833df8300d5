// For gather.cu: writes of single elements that are too many for each block to look at all of them.
// A cluster has places of its own, in the shared memory of its blocks, and each of these looks at
// an eighth of the indices and notes them where their places are. What all clusters read together
// costs as much as the table in memory, its clearing and the launches that this saves.
#pragma once
#include "kernels/clusters.cuh"
#include "kernels/last_writes.cuh"
#include "runtime/architecture.cuh"
#include "runtime/device.cuh"

namespace pvg {

namespace {

constexpr int writers = 8; // blocks of a cluster
constexpr int64_t most_in_clusters = 1 << 19;
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

} // namespace

} // namespace pvg
