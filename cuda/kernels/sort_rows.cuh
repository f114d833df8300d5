// Rows of up to row_limit elements, sorted by groups of threads in shared memory: each thread sorts
// eight elements in registers, and then neighbouring runs are merged, round by round; a thread
// finds by bisection where its eight of the merged run come from. All of it is stable.
#pragma once
#include "kernels/keys.cuh"
#include "runtime/launch.cuh"

namespace pvg {

namespace {

constexpr int row_each = 8, row_threads = 512, row_limit = row_each * row_threads;

struct RowsJob {
    const void *from; // [rows, length]
    void *to;         // elements, or int64: where they stood
    int64_t rows, length;
    int group; // threads that have a row, a power of two
    keys::Order order;
};

// Places of shared memory, one in 32 left out: steps of eight would meet in the same banks.
__host__ __device__ constexpr int spread(int place) { return place + place / 32; }

template <class K, bool INDEX> constexpr size_t row_bytes(int group) {
    return static_cast<size_t>(spread(group * row_each)) *
           (sizeof(K) + (INDEX ? sizeof(uint16_t) : 0));
}

// The keys of a group, and with INDEX where they stood in the row.
template <class K, bool INDEX> struct Shared {
    K *keys;
    uint16_t *places;
    __device__ __forceinline__ void store(int first, const K (&key)[row_each],
                                          const uint16_t (&place)[row_each]) const {
#pragma unroll
        for (int e = 0; e < row_each; e++) {
            keys[spread(first + e)] = key[e];
            if (INDEX) places[spread(first + e)] = place[e];
        }
    }
};

// Odd-even transposition: as many phases as elements.
template <class K>
__device__ __forceinline__ void sort_own(K (&key)[row_each], uint16_t (&place)[row_each]) {
#pragma unroll
    for (int phase = 0; phase < row_each; phase++)
#pragma unroll
        for (int e = phase % 2; e + 1 < row_each; e += 2) {
            const bool swap = key[e + 1] < key[e];
            const K low = swap ? key[e + 1] : key[e], high = swap ? key[e] : key[e + 1];
            const uint16_t at_low = swap ? place[e + 1] : place[e];
            const uint16_t at_high = swap ? place[e] : place[e + 1];
            key[e] = low, key[e + 1] = high, place[e] = at_low, place[e + 1] = at_high;
        }
}

// The eight elements from `first` on of two merged runs of `run` elements.
template <class K, bool INDEX>
__device__ __forceinline__ void merge_runs(const Shared<K, INDEX> &shared, int first, int run,
                                           K (&key)[row_each], uint16_t (&place)[row_each]) {
    const int left = first / (2 * run) * (2 * run), right = left + run, before = first - left;
    int low = before > run ? before - run : 0, high = before < run ? before : run;
    while (low < high) { // how many of those before come from the left run
        const int middle = (low + high) / 2;
        if (shared.keys[spread(right + before - 1 - middle)] < shared.keys[spread(left + middle)])
            high = middle;
        else
            low = middle + 1;
    }
    int i = low, j = before - low;
    K a = i < run ? shared.keys[spread(left + i)] : K(0);
    K b = j < run ? shared.keys[spread(right + j)] : K(0);
#pragma unroll
    for (int e = 0; e < row_each; e++) {
        const bool takes_left = j >= run || (i < run && !(b < a));
        key[e] = takes_left ? a : b;
        if (INDEX) place[e] = shared.places[spread(takes_left ? left + i : right + j)];
        if (takes_left)
            a = ++i < run ? shared.keys[spread(left + i)] : K(0);
        else
            b = ++j < run ? shared.keys[spread(right + j)] : K(0);
    }
}

// Sorts `length` elements from `from` on by a group of threads: what they leave in shared memory is
// sorted, and each has its eight, and where they stood. All threads of the block take part.
template <class K, bool INDEX>
__device__ __forceinline__ void sort_row(const Shared<K, INDEX> &shared, const K *from, int length,
                                         keys::Order order, int lane, int group, K (&key)[row_each],
                                         uint16_t (&place)[row_each]) {
#pragma unroll
    for (int e = 0; e < row_each; e++) { // what is missing counts as the largest
        const int at = e * group + lane;
        shared.keys[spread(at)] =
            at < length ? keys::key_of(from[at], order) : static_cast<K>(~K(0));
    }
    __syncthreads();
    const int first = lane * row_each;
#pragma unroll
    for (int e = 0; e < row_each; e++) {
        key[e] = shared.keys[spread(first + e)];
        place[e] = static_cast<uint16_t>(first + e);
    }
    sort_own(key, place);
    for (int run = row_each; run < group * row_each; run *= 2) {
        __syncthreads();
        shared.store(first, key, place);
        __syncthreads();
        merge_runs(shared, first, run, key, place);
    }
    __syncthreads();
    shared.store(first, key, place);
    __syncthreads();
}

template <class K, bool INDEX>
__global__ void __launch_bounds__(row_threads) sort_rows_kernel(const RowsJob job) {
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const int group = job.group, groups = blockDim.x / group, room = spread(group * row_each);
    const int own = threadIdx.x / group, lane = threadIdx.x % group;
    Shared<K, INDEX> shared;
    shared.keys = reinterpret_cast<K *>(memory) + own * room;
    shared.places = reinterpret_cast<uint16_t *>(memory + groups * room * sizeof(K)) + own * room;
    const int64_t row = static_cast<int64_t>(blockIdx.x) * groups + own;
    const int length = row < job.rows ? static_cast<int>(job.length) : 0;
    const K *from = static_cast<const K *>(job.from) + (length ? row * job.length : 0);
    K key[row_each];
    uint16_t place[row_each];
    sort_row(shared, from, length, job.order, lane, group, key, place);
#pragma unroll
    for (int e = 0; e < row_each; e++) {
        const int at = e * group + lane;
        if (at >= length) continue;
        if (INDEX)
            static_cast<int64_t *>(job.to)[row * job.length + at] = shared.places[spread(at)];
        else
            static_cast<K *>(job.to)[row * job.length + at] =
                keys::bits_of(shared.keys[spread(at)], job.order);
    }
}

template <class K, bool INDEX> int sort_rows(cudaStream_t stream, RowsJob job) {
    constexpr int least = 128; // threads of a block
    for (job.group = 1; job.group * row_each < job.length; job.group *= 2) {}
    const int threads = job.group < least ? least : job.group, groups = threads / job.group;
    PVG_LAUNCH((sort_rows_kernel<K, INDEX>), blocks_for(job.rows, groups), threads,
               static_cast<size_t>(groups) * row_bytes<K, INDEX>(job.group), stream, job);
    return PVG_OK;
}

} // namespace

} // namespace pvg
