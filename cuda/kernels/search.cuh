// For nonzero.cu and gather.cu: elements that are not 0, their number and their places. Blocks
// count those of their chunks, and the counts come to the host, which makes the result: the one
// wait. Then the blocks go through their chunks again and write.
#pragma once
#include "arrays/call.cuh"
#include "kernels/scan.cuh"
#include "runtime/device.cuh"
#include "runtime/report.cuh"

namespace pvg::search {

using scan::packs, scan::pack_size, scan::segment, scan::threads, scan::tile;

namespace {

struct Search {
    const void *data;
    int64_t size, chunk, chunks;
    uint64_t mask;    // bits of an element that are not all 0: without the sign of floats
    uint64_t *counts; // [chunks]: elements found in each
    bool aligned;     // every pack may be loaded at once
};

struct Found {
    int64_t *indices; // [ndim][count]
    int64_t count;
    int ndim;
    bool narrow; // size is below 2^32
    int64_t shape[PVG_MAX_NDIM];
};

// Which of a lane's packs of a segment are not 0, of the `left` elements that are there.
template <class T, int N>
__device__ __forceinline__ void load_flags(const Search &job, const T *from, int64_t left,
                                           uint32_t (&flag)[packs][N]) {
    Vector<T, N> loaded[packs];
    const int first = static_cast<int>(threadIdx.x % 32) * N;
#pragma unroll
    for (int k = 0; k < packs; k++) {
        const int at = first + k * 32 * N;
        if (job.aligned && at + N <= left) {
            loaded[k] = *reinterpret_cast<const Vector<T, N> *>(from + at);
        } else {
#pragma unroll
            for (int j = 0; j < N; j++) loaded[k].element[j] = at + j < left ? from[at + j] : T(0);
        }
    }
#pragma unroll
    for (int k = 0; k < packs; k++)
#pragma unroll
        for (int j = 0; j < N; j++)
            flag[k][j] = (loaded[k].element[j] & static_cast<T>(job.mask)) != 0;
}

// What the threads of a block have found, as the count of its chunk. All of them call it.
__device__ __forceinline__ void leave_count(const Search &job, uint32_t *of_warp, uint32_t count) {
    count = scan::scan_lanes<scan::Sum>(count, 32);
    if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x != 0) return;
    uint64_t total = 0;
    for (int w = 0; w < scan::warps; w++) total += of_warp[w];
    job.counts[blockIdx.x] = total;
}

template <class T>
__global__ void __launch_bounds__(threads) count_nonzero_kernel(const Search job) {
    __shared__ uint32_t of_warp[scan::warps];
    const int64_t begin = blockIdx.x * job.chunk;
    const int64_t end = begin + job.chunk < job.size ? begin + job.chunk : job.size;
    const T *data = static_cast<const T *>(job.data);
    uint32_t count = 0;
    for (int64_t at = begin + threadIdx.x / 32 * segment<T>; at < end; at += tile<T>) {
        uint32_t flag[packs][pack_size<T>];
        load_flags(job, data + at, end - at, flag);
#pragma unroll
        for (int k = 0; k < packs; k++)
#pragma unroll
            for (int j = 0; j < pack_size<T>; j++) count += flag[k][j];
    }
    leave_count(job, of_warp, count);
}

// How many elements are found in the chunks before the block's. All its threads call it.
__device__ __forceinline__ uint64_t count_before(const Search &job) {
    __shared__ uint64_t of_warp[scan::warps];
    uint64_t count = 0;
    for (unsigned i = threadIdx.x; i < blockIdx.x; i += threads) count += job.counts[i];
    count = scan::scan_lanes<scan::Sum>(count, 32);
    if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = count;
    __syncthreads();
    count = 0;
    for (int w = 0; w < scan::warps; w++) count += of_warp[w];
    return count;
}

// A lane's flags of a segment as bits.
template <int N>
__device__ __forceinline__ uint32_t flag_bits(const uint32_t (&flag)[packs][N]) {
    uint32_t bits = 0;
#pragma unroll
    for (int k = 0; k < packs; k++)
#pragma unroll
        for (int j = 0; j < N; j++) bits |= flag[k][j] << (k * N + j);
    return bits;
}

// The places in a tile, of which `left` elements are there, of what is found in it: in order, so
// that the threads can write them side by side. Returns how many they are. All threads of the block
// call it, and wait before they read.
template <class T>
__device__ __forceinline__ uint32_t places_of_tile(const Search &job, const T *from, int64_t left,
                                                   uint32_t *of_warp, uint16_t *places) {
    constexpr int N = pack_size<T>;
    const int own = static_cast<int>(threadIdx.x) / 32 * segment<T>;
    uint32_t upto[packs][N], count = 0;
    load_flags(job, from + own, left - own, upto);
    const uint32_t flags = flag_bits(upto); // as `upto` is going to be summed
    const uint32_t total = scan::scan_segment<scan::Sum>(upto, packs, 32);
    const uint32_t before = scan::before_warp<scan::Sum>(total, of_warp, &count);
    const int first = own + static_cast<int>(threadIdx.x) % 32 * N;
#pragma unroll
    for (int k = 0; k < packs; k++)
#pragma unroll
        for (int j = 0; j < N; j++)
            if (flags >> (k * N + j) & 1)
                places[before + upto[k][j] - 1] = static_cast<uint16_t>(first + k * 32 * N + j);
    return count;
}

// The index of the element at `place` in C order, as the result's column `at`.
__device__ __forceinline__ void write_index(const Found &found, int64_t place, int64_t at) {
    uint64_t rest = static_cast<uint64_t>(place);
    for (int d = found.ndim - 1; d > 0; d--) {
        const uint64_t length = static_cast<uint64_t>(found.shape[d]);
        const uint64_t quotient = found.narrow
                                      ? static_cast<uint32_t>(rest) / static_cast<uint32_t>(length)
                                      : rest / length;
        found.indices[d * found.count + at] = static_cast<int64_t>(rest - quotient * length);
        rest = quotient;
    }
    found.indices[at] = static_cast<int64_t>(rest);
}

template <class T>
__global__ void __launch_bounds__(threads)
    write_nonzero_kernel(const Search job, const Found found) {
    __shared__ uint32_t of_warp[2][scan::warps]; // in turns, so that two barriers a tile are enough
    __shared__ uint16_t places[2][tile<T>];      // in the tile
    if (job.counts[blockIdx.x] == 0) return;     // the whole block
    const int64_t before_chunk = static_cast<int64_t>(count_before(job));
    const int64_t begin = blockIdx.x * job.chunk;
    const int64_t end = begin + job.chunk < job.size ? begin + job.chunk : job.size;
    const T *data = static_cast<const T *>(job.data);
    uint32_t carry = 0;
    int turn = 0;
    for (int64_t at = begin; at < end; at += tile<T>, turn ^= 1) {
        const uint32_t before_tile = carry;
        carry += places_of_tile(job, data + at, end - at, of_warp[turn], places[turn]);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < carry - before_tile; i += threads)
            write_index(found, at + places[turn][i], before_chunk + before_tile + i);
    }
}

// Bits in which a 0 has none: all, but for the sign of a float.
inline uint64_t significant_bits(int dtype) {
    const int bits = static_cast<int>(dtype_size(dtype)) * 8;
    const uint64_t all = ~uint64_t(0) >> (64 - bits);
    return dtype_kind(dtype) == Kind::floating ? all >> 1 : all;
}

// Chunks of whole tiles, and memory for their counts.
template <class T> int open_counts(Call &call, Search *job, Workspace *workspace) {
    constexpr int64_t size = tile<T>;
    const int64_t tiles = job->size / size + (job->size % size != 0);
    job->chunk = (tiles / scan::most_chunks + (tiles % scan::most_chunks != 0)) * size;
    job->chunks = job->size / job->chunk + (job->size % job->chunk != 0);
    PVG_PASS(workspace->open(call, static_cast<size_t>(job->chunks) * sizeof(uint64_t)));
    job->counts = workspace->as<uint64_t>();
    return PVG_OK;
}

// Waits for the number of elements found.
inline int fetch_counts(Call &call, const Search &job, int64_t *count) {
    uint64_t counts[scan::most_chunks];
    PVG_TRY(cudaMemcpyAsync(counts, job.counts, static_cast<size_t>(job.chunks) * sizeof *counts,
                            cudaMemcpyDeviceToHost, call.stream));
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(cudaStreamSynchronize(call.stream));
    PVG_PASS(check_reports(call.device));
    *count = 0;
    for (int64_t i = 0; i < job.chunks; i++) *count += static_cast<int64_t>(counts[i]);
    return PVG_OK;
}

// The same of elements that are not 0.
template <class T>
int count_nonzero(Call &call, Search *job, Workspace *workspace, int64_t *count) {
    job->aligned = reinterpret_cast<uintptr_t>(job->data) % alignof(Vector<T, pack_size<T>>) == 0;
    PVG_PASS(open_counts<T>(call, job, workspace));
    PVG_LAUNCH(count_nonzero_kernel<T>, blocks_for(job->chunks, 1), threads, 0, call.stream, *job);
    return fetch_counts(call, *job, count);
}

template <class T> int write_nonzero(Call &call, const Search &job, const Found &found) {
    if (found.count == 0) return PVG_OK;
    PVG_LAUNCH(write_nonzero_kernel<T>, blocks_for(job.chunks, 1), threads, 0, call.stream, job,
               found);
    return PVG_OK;
}

} // namespace

} // namespace pvg::search
