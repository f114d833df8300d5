// For gather.cu: what indices say of places, whether all of them are in range, and which of several
// writes to one place is the last.
#pragma once
#include "arrays/call.cuh"
#include "arrays/locate.cuh"
#include "runtime/device.cuh"
#include "runtime/graph.cuh"

namespace pvg {

namespace {

// Indices along some axes of an array: one plane of them for each axis.
struct Indices {
    const void *first = nullptr;
    const int64_t *displacements = nullptr; // what the indices come to, instead of them
    bool wide = false;                      // int64, else int32
    int count = 0;                          // axes
    int64_t plane = 0;                      // elements from one plane to the next
    // Of each axis: its length and its stride, in words; the stride of the numbers that tell places
    // apart.
    int64_t length[PVG_MAX_NDIM], stride[PVG_MAX_NDIM], key[PVG_MAX_NDIM];
};

// What gather_kernel works on. Operands of the walk: the side without indices, the other, indices.
struct Moves {
    void *flat, *indexed;
    int64_t size; // words
    Indices indices;
    Locator<3> walk;
};

// All that is written, in the order in which the last one wins. Operands: the indices, and the keys
// beside them.
struct Writes {
    int64_t size, keys;
    Locator<2> walk;
};

constexpr int index_threads = 256;
constexpr unsigned most_check_blocks = 128;
constexpr int64_t few_writes = 2048; // compared with each other, without a table
constexpr int64_t not_written = INT64_MIN;

__device__ __forceinline__ int64_t index_at(const Indices &indices, int64_t at) {
    return indices.wide ? static_cast<const int64_t *>(indices.first)[at]
                        : static_cast<const int32_t *>(indices.first)[at];
}

// An index counted from 0. One out of range would be an element beside the array, so that what the
// caller vouched for in vain is the nearest one.
__device__ __forceinline__ int64_t counted_from_0(int64_t index, int64_t length) {
    if (index < 0) index += length;
    if (index < 0) return 0;
    return index < length ? index : length - 1;
}

// Adds to each of COUNT numbers, but those that are not_written, the words from the place that the
// other axes name to the one that the indices name, too; or makes it not_written. `at`: where the
// indices lie. The loads of all of them are under way at the same time.
template <int COUNT>
__device__ __forceinline__ void displace(const Indices &indices, int64_t (&at)[COUNT],
                                         int64_t (&by)[COUNT]) {
    if (indices.displacements) {
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            if (by[e] != not_written) by[e] = indices.displacements[at[e]];
        return;
    }
#pragma unroll 1
    for (int j = 0; j < indices.count; j++) {
        const int64_t length = indices.length[j], stride = indices.stride[j];
        int64_t index[COUNT] = {};
#pragma unroll
        for (int e = 0; e < COUNT; e++) {
            if (by[e] != not_written) index[e] = index_at(indices, at[e]);
            at[e] += indices.plane;
        }
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            if (by[e] != not_written) by[e] += counted_from_0(index[e], length) * stride;
    }
}

// ---- Range --------------------------------------------------------------------------------------

struct RangeCheck {
    Indices indices;
    int64_t size, of_plane; // indices: all of them, and along each axis
    int64_t *first;         // of each block: the first that is out of range, or `size`
    Locator<1> walk;
};

__global__ void __launch_bounds__(index_threads)
    index_range_kernel(const __grid_constant__ RangeCheck check) {
    __shared__ int64_t first[index_threads];
    int64_t found = check.size;
    const int64_t step = int64_t(gridDim.x) * index_threads;
    for (int64_t i = int64_t(blockIdx.x) * index_threads + threadIdx.x; i < check.size; i += step) {
        const int64_t position[1] = {i};
        int64_t offsets[1][1];
        locate(check.walk, position, offsets);
        const int64_t index = index_at(check.indices, offsets[0][0]);
        const int64_t plane = check.indices.count > 1 ? i / check.of_plane : 0;
        const int64_t length = check.indices.length[plane];
        if (index < -length || index >= length) {
            found = i;
            break;
        }
    }
    first[threadIdx.x] = found;
    for (int half = index_threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (int(threadIdx.x) < half && first[threadIdx.x + half] < first[threadIdx.x])
            first[threadIdx.x] = first[threadIdx.x + half];
    }
    if (threadIdx.x == 0) check.first[blockIdx.x] = first[0];
}

inline int read_back(Call &call, void *to, const void *from, size_t bytes) {
    PVG_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, call.stream));
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(cudaStreamSynchronize(call.stream));
    return PVG_OK;
}

// Waits for the stream. Errors: INDEX, which names the first index, in C order, that is out of
// range; VALUE while a graph is recorded.
int check_range(Call &call, const pvg_array *a, const int *axes, const Indices &indices) {
    if (a->size == 0) return PVG_OK;
    PVG_PASS(refuse_recording(call.device, "indices that have to be checked"));
    RangeCheck check{};
    check.indices = indices;
    check.size = a->size, check.of_plane = a->size / indices.count;
    Walk<2> walk; // C order; the indices
    walk.ndim = a->ndim;
    contiguous_strides(a->ndim, a->shape, walk.strides[0]);
    for (int i = 0; i < a->ndim; i++)
        walk.shape[i] = a->shape[i], walk.strides[1][i] = a->strides[i];
    collapse(&walk);
    Walk<1> &to = check.walk.walk;
    to.ndim = walk.ndim;
    for (int i = 0; i < walk.ndim; i++)
        to.shape[i] = walk.shape[i], to.strides[0][i] = walk.strides[1][i];
    prepare(&check.walk);
    unsigned blocks = blocks_for(check.size, index_threads);
    if (blocks > most_check_blocks) blocks = most_check_blocks;
    Workspace found;
    PVG_PASS(found.open(call, blocks * sizeof(int64_t)));
    check.first = found.as<int64_t>();
    PVG_PASS(call.reads(a));
    PVG_LAUNCH(index_range_kernel, blocks, index_threads, 0, call.stream, check);
    int64_t of_blocks[most_check_blocks], first = check.size;
    PVG_PASS(read_back(call, of_blocks, check.first, blocks * sizeof(int64_t)));
    for (unsigned i = 0; i < blocks; i++) first = of_blocks[i] < first ? of_blocks[i] : first;
    if (first >= check.size) return PVG_OK;
    int64_t offset = 0, rest = first, index = 0;
    for (int i = a->ndim - 1; i >= 0; rest /= a->shape[i--])
        offset += rest % a->shape[i] * a->strides[i];
    const size_t item = indices.wide ? sizeof(int64_t) : sizeof(int32_t);
    int32_t narrow = 0;
    PVG_PASS(read_back(call, indices.wide ? static_cast<void *>(&index) : &narrow,
                       a->data + offset * static_cast<int64_t>(item), item));
    const int64_t j = first / check.of_plane;
    return fail(PVG_ERROR_INDEX, "index %lld is out of bounds for axis %d with size %lld",
                static_cast<long long>(indices.wide ? index : narrow), axes[j],
                static_cast<long long>(indices.length[j]));
}

// ---- The last of several writes -----------------------------------------------------------------

__global__ void __launch_bounds__(index_threads)
    displacements_kernel(const __grid_constant__ Writes writes,
                         const __grid_constant__ Indices indices, int64_t *displacements,
                         int64_t *keys) {
    const int64_t i = int64_t(blockIdx.x) * index_threads + threadIdx.x;
    if (i >= writes.size) return;
    const int64_t position[1] = {i};
    int64_t offsets[2][1];
    locate(writes.walk, position, offsets);
    int64_t to = 0, key = offsets[1][0], at = offsets[0][0];
#pragma unroll 1
    for (int j = 0; j < indices.count; j++, at += indices.plane) {
        const int64_t index = counted_from_0(index_at(indices, at), indices.length[j]);
        to += index * indices.stride[j], key += index * indices.key[j];
    }
    displacements[i] = to, keys[i] = key;
}

// Each thread looks for a later write to its place.
__global__ void __launch_bounds__(index_threads)
    last_of_few_kernel(const int64_t *keys, int64_t size, int64_t *displacements) {
    const int64_t i = int64_t(blockIdx.x) * index_threads + threadIdx.x;
    if (i >= size) return;
    const int64_t key = keys[i];
    for (int64_t later = i + 1; later < size; later++)
        if (keys[later] == key) {
            displacements[i] = not_written;
            return;
        }
}

// A table of all places, of which only those that are written are touched: cleared first, then the
// largest number of a write to it, which others are held against. No step depends on the order of
// threads.
enum class Step { clear, claim, compare };
template <Step STEP>
__global__ void __launch_bounds__(index_threads)
    last_of_many_kernel(const int64_t *keys, int64_t size, unsigned long long *table,
                        int64_t *displacements) {
    const int64_t i = int64_t(blockIdx.x) * index_threads + threadIdx.x;
    if (i >= size) return;
    const unsigned long long number = static_cast<unsigned long long>(i) + 1;
    if (STEP == Step::clear)
#ifdef PVG_SIMULATOR
        atomicExch(&table[keys[i]], 0ull); // by several threads, perhaps
#else
        table[keys[i]] = 0; // initcheck takes an exchange for a read
#endif
    else if (STEP == Step::claim)
        atomicMax(&table[keys[i]], number);
    else if (table[keys[i]] != number)
        displacements[i] = not_written;
}

// Puts displacements in the place of indices, `not_written` for all but the last write to a place.
int find_last(Call &call, const Writes &writes, Indices *indices, Workspace *found) {
    const int64_t n = writes.size, table_size = n > few_writes ? writes.keys : 0;
    const unsigned blocks = blocks_for(n, index_threads);
    PVG_PASS(found->open(call, static_cast<size_t>(2 * n + table_size) * sizeof(int64_t)));
    int64_t *displacements = found->as<int64_t>(), *keys = displacements + n;
    PVG_LAUNCH(displacements_kernel, blocks, index_threads, 0, call.stream, writes, *indices,
               displacements, keys);
    if (table_size) {
        unsigned long long *table = reinterpret_cast<unsigned long long *>(keys + n);
        PVG_LAUNCH(last_of_many_kernel<Step::clear>, blocks, index_threads, 0, call.stream, keys, n,
                   table, displacements);
        PVG_LAUNCH(last_of_many_kernel<Step::claim>, blocks, index_threads, 0, call.stream, keys, n,
                   table, displacements);
        PVG_LAUNCH(last_of_many_kernel<Step::compare>, blocks, index_threads, 0, call.stream, keys,
                   n, table, displacements);
    } else {
        PVG_LAUNCH(last_of_few_kernel, blocks, index_threads, 0, call.stream, keys, n,
                   displacements);
    }
    indices->displacements = displacements;
    return PVG_OK;
}

} // namespace

} // namespace pvg
