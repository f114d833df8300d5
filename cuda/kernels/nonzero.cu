// pvg_nonzero: where elements are not 0; and what is there where a mask is true. Blocks count those
// of their chunks, and the counts come to the host, which makes the result: the one wait. Then the
// blocks go through their chunks again and write.
#include "arrays/call.cuh"
#include "arrays/operation.cuh"
#include "kernels/masks.cuh"
#include "kernels/scan.cuh"
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/report.cuh"
#include <type_traits>

namespace pvg {
namespace {

using scan::packs, scan::pack_size, scan::segment, scan::threads, scan::tile;

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
    count = scan::scan_lanes<scan::Sum>(count, 32);
    if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x != 0) return;
    uint64_t total = 0;
    for (int w = 0; w < scan::warps; w++) total += of_warp[w];
    job.counts[blockIdx.x] = total;
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
    __shared__ uint32_t of_warp[2][scan::warps]; // in turns, so that one barrier a tile is enough
    if (job.counts[blockIdx.x] == 0) return; // the whole block
    const uint64_t before_chunk = count_before(job);
    const int64_t begin = blockIdx.x * job.chunk;
    const int64_t end = begin + job.chunk < job.size ? begin + job.chunk : job.size;
    const T *data = static_cast<const T *>(job.data);
    uint32_t carry = 0;
    int turn = 0;
    for (int64_t at = begin; at < end; at += tile<T>, turn ^= 1) {
        const int64_t mine = at + threadIdx.x / 32 * segment<T>;
        constexpr int N = pack_size<T>;
        uint32_t upto[packs][N];
        load_flags(job, data + mine, end - mine, upto);
        const uint32_t flags = flag_bits(upto); // as `upto` is going to be summed
        const uint32_t total = scan::scan_segment<scan::Sum>(upto, packs, 32);
        const uint32_t before = scan::before_warp<scan::Sum>(total, of_warp[turn], &carry);
        const int64_t first = mine + threadIdx.x % 32 * N;
#pragma unroll
        for (int k = 0; k < packs; k++)
#pragma unroll
            for (int j = 0; j < N; j++)
                if (flags >> (k * N + j) & 1)
                    write_index(found, first + k * 32 * N + j,
                                static_cast<int64_t>(before_chunk + before + upto[k][j]) - 1);
    }
}

// Elements of a source where bools are true. Those of a tile are found first, so that the threads
// can write them side by side.
template <class T>
__global__ void __launch_bounds__(threads)
    select_kernel(const Search job, const T *source, T *result) {
    using B = uint8_t;
    constexpr int N = pack_size<B>;
    __shared__ uint32_t of_warp[2][scan::warps];  // in turns, so that two barriers a tile are enough
    __shared__ uint16_t found[2][tile<B>];        // places in the tile
    if (job.counts[blockIdx.x] == 0) return; // the whole block
    T *to = result + count_before(job);
    const int64_t begin = blockIdx.x * job.chunk;
    const int64_t end = begin + job.chunk < job.size ? begin + job.chunk : job.size;
    const B *data = static_cast<const B *>(job.data);
    uint32_t carry = 0;
    int turn = 0;
    for (int64_t at = begin; at < end; at += tile<B>, turn ^= 1) {
        const int own = static_cast<int>(threadIdx.x) / 32 * segment<B>;
        const uint32_t before_tile = carry;
        uint32_t upto[packs][N];
        load_flags(job, data + at + own, end - at - own, upto);
        const uint32_t flags = flag_bits(upto);
        const uint32_t total = scan::scan_segment<scan::Sum>(upto, packs, 32);
        const uint32_t before = scan::before_warp<scan::Sum>(total, of_warp[turn], &carry);
        const int first = own + static_cast<int>(threadIdx.x) % 32 * N;
#pragma unroll
        for (int k = 0; k < packs; k++)
#pragma unroll
            for (int j = 0; j < N; j++)
                if (flags >> (k * N + j) & 1)
                    found[turn][before - before_tile + upto[k][j] - 1] =
                        static_cast<uint16_t>(first + k * 32 * N + j);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < carry - before_tile; i += threads)
            to[before_tile + i] = source[at + found[turn][i]];
    }
}

// Bits in which a 0 has none: all, but for the sign of a float.
uint64_t significant_bits(int dtype) {
    const int bits = static_cast<int>(dtype_size(dtype)) * 8;
    const uint64_t all = ~uint64_t(0) >> (64 - bits);
    return dtype_kind(dtype) == Kind::floating ? all >> 1 : all;
}

// Waits for the number of elements found.
template <class T>
int count_nonzero(Call &call, Search *job, Workspace *workspace, int64_t *count) {
    constexpr int64_t size = tile<T>;
    job->aligned = reinterpret_cast<uintptr_t>(job->data) % alignof(Vector<T, pack_size<T>>) == 0;
    const int64_t tiles = job->size / size + (job->size % size != 0);
    job->chunk = (tiles / scan::most_chunks + (tiles % scan::most_chunks != 0)) * size;
    job->chunks = job->size / job->chunk + (job->size % job->chunk != 0);
    const size_t bytes = static_cast<size_t>(job->chunks) * sizeof(uint64_t);
    PVG_PASS(workspace->open(call, bytes));
    job->counts = workspace->as<uint64_t>();
    PVG_LAUNCH(count_nonzero_kernel<T>, blocks_for(job->chunks, 1), threads, 0, call.stream, *job);
    uint64_t counts[scan::most_chunks];
    PVG_TRY(cudaMemcpyAsync(counts, job->counts, bytes, cudaMemcpyDeviceToHost, call.stream));
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(cudaStreamSynchronize(call.stream));
    PVG_PASS(check_reports(call.device));
    *count = 0;
    for (int64_t i = 0; i < job->chunks; i++) *count += static_cast<int64_t>(counts[i]);
    return PVG_OK;
}

template <class T> int write_nonzero(Call &call, const Search &job, const Found &found) {
    if (found.count == 0) return PVG_OK;
    PVG_LAUNCH(write_nonzero_kernel<T>, blocks_for(job.chunks, 1), threads, 0, call.stream, job,
               found);
    return PVG_OK;
}

int run_nonzero(Call &call, const pvg_array *a, Output *result) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(a->ndim > 0, PVG_ERROR_VALUE, "an array without axes has no indices");
    PVG_PASS(call.begin(device));
    PVG_PASS(refuse_recording(device, "nonzero, which waits for its number of elements,"));
    Temporary truth, straight;
    Workspace workspace;
    Search job = {};
    int64_t shape[2] = {a->ndim, 0};
    if (a->size == 0) return result->open(call, PVG_INT64, 2, shape, nullptr, nullptr, 0);
    if (is_among(a->dtype, complexes)) PVG_PASS(as_dtype(call, a, PVG_BOOL, &truth, &a));
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    job.data = a->data, job.size = a->size, job.mask = significant_bits(a->dtype);
    PVG_PASS(call.reads(a));
    return dispatch_size(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        if constexpr (sizeof(T) > sizeof(uint64_t)) {
            return refuse_dtype(a->dtype, ordered); // 16 bytes: complex128, which is bool by now
        } else {
            PVG_PASS(count_nonzero<T>(call, &job, &workspace, &shape[1]));
            PVG_PASS(result->open(call, PVG_INT64, 2, shape, nullptr, nullptr, 0));
            Found found = {};
            found.indices = data<int64_t>(result->array), found.count = shape[1];
            found.ndim = a->ndim, found.narrow = a->size <= UINT32_MAX;
            for (int d = 0; d < a->ndim; d++) found.shape[d] = a->shape[d];
            return write_nonzero<T>(call, job, found);
        }
    });
}

// What there is to search of a mask, which is not empty.
int read_mask(Call &call, const pvg_array *mask, Temporary *straight, Search *job) {
    PVG_PASS(refuse_recording(call.device, "a mask, which waits for its number of elements,"));
    PVG_PASS(as_contiguous(call, mask, straight, &mask));
    job->data = mask->data, job->size = mask->size, job->mask = significant_bits(PVG_BOOL);
    return call.reads(mask);
}

} // namespace

int select_where(Call &call, const pvg_array *a, const pvg_array *mask, Output *result) {
    Temporary straight[2];
    Workspace workspace;
    Search job = {};
    int64_t count = 0;
    if (mask->size > 0) {
        PVG_PASS(read_mask(call, mask, &straight[0], &job));
        PVG_PASS(count_nonzero<uint8_t>(call, &job, &workspace, &count));
    }
    PVG_PASS(result->open(call, a->dtype, 1, &count, nullptr, nullptr, 0));
    if (count == 0) return PVG_OK;
    PVG_PASS(as_contiguous(call, a, &straight[1], &a));
    PVG_PASS(call.reads(a));
    return dispatch_size(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(select_kernel<T>, blocks_for(job.chunks, 1), threads, 0, call.stream, job,
                   data<const T>(a), data<T>(result->array));
        return PVG_OK;
    });
}

int find_where(Call &call, const pvg_array *mask, Temporary *places) {
    Temporary straight;
    Workspace workspace;
    Search job = {};
    Found found = {};
    if (mask->size > 0) {
        PVG_PASS(read_mask(call, mask, &straight, &job));
        PVG_PASS(count_nonzero<uint8_t>(call, &job, &workspace, &found.count));
    }
    PVG_PASS(new_array(call.device, PVG_INT64, 1, &found.count, &places->array));
    found.indices = data<int64_t>(places->array);
    found.ndim = 1, found.shape[0] = mask->size, found.narrow = mask->size <= UINT32_MAX;
    return write_nonzero<uint8_t>(call, job, found);
}

Operations nonzero_operations() {
    static constexpr Operation rows[] = {
        {PVG_NONZERO, "nonzero", Family::other, all_kinds, Gives::index},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_nonzero(const pvg_array *a) {
    pvg::Call call("nonzero");
    pvg::Output result;
    int status = pvg::run_nonzero(call, a, &result);
    return result.close(call, status);
}
