// For gather.cu: what is there, or where that is, where bools are true.
#pragma once
#include "arrays/dispatch.cuh"
#include "kernels/search.cuh"
#include "runtime/graph.cuh"

namespace pvg {

namespace {

// Elements of a source where bools are true. Those of a tile are found first, so that the threads
// can write them side by side.
template <class T>
__global__ void __launch_bounds__(scan::threads)
    select_kernel(const search::Search job, const T *source, T *result) {
    using B = uint8_t;
    __shared__ uint32_t of_warp[2][scan::warps]; // in turns, so that two barriers a tile are enough
    __shared__ uint16_t found[2][scan::tile<B>]; // places in the tile
    if (job.counts[blockIdx.x] == 0) return;     // the whole block
    T *to = result + search::count_before(job);
    const int64_t begin = blockIdx.x * job.chunk;
    const int64_t end = begin + job.chunk < job.size ? begin + job.chunk : job.size;
    const B *data = static_cast<const B *>(job.data);
    uint32_t carry = 0;
    int turn = 0;
    for (int64_t at = begin; at < end; at += scan::tile<B>, turn ^= 1) {
        const uint32_t before_tile = carry;
        carry += search::places_of_tile(job, data + at, end - at, of_warp[turn], found[turn]);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < carry - before_tile; i += scan::threads)
            to[before_tile + i] = source[at + found[turn][i]];
    }
}

// What there is to search of a mask, which is not empty.
inline int search_mask(Call &call, const pvg_array *mask, Temporary *straight,
                       search::Search *job) {
    PVG_PASS(refuse_recording(call.device, "a mask, which waits for its number of elements,"));
    PVG_PASS(as_contiguous(call, mask, straight, &mask));
    job->data = mask->data, job->size = mask->size, job->mask = search::significant_bits(PVG_BOOL);
    return call.reads(mask);
}

// The elements of `a` at which a mask of its shape is true, in C order, as the result. Waits for
// their number.
inline int select_where(Call &call, const pvg_array *a, const pvg_array *mask, Output *result) {
    Temporary straight[2];
    Workspace workspace;
    search::Search job = {};
    int64_t count = 0;
    if (mask->size > 0) {
        PVG_PASS(search_mask(call, mask, &straight[0], &job));
        PVG_PASS(search::count_nonzero<uint8_t>(call, &job, &workspace, &count));
    }
    PVG_PASS(result->open(call, a->dtype, 1, &count, nullptr, nullptr, 0));
    if (count == 0) return PVG_OK;
    PVG_PASS(as_contiguous(call, a, &straight[1], &a));
    PVG_PASS(call.reads(a));
    return dispatch_size(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(select_kernel<T>, blocks_for(job.chunks, 1), scan::threads, 0, call.stream, job,
                   data<const T>(a), data<T>(result->array));
        return PVG_OK;
    });
}

// The places in C order at which a mask is true: int64, 1-D. Waits for their number.
inline int find_where(Call &call, const pvg_array *mask, Temporary *places) {
    Temporary straight;
    Workspace workspace;
    search::Search job = {};
    search::Found found = {};
    if (mask->size > 0) {
        PVG_PASS(search_mask(call, mask, &straight, &job));
        PVG_PASS(search::count_nonzero<uint8_t>(call, &job, &workspace, &found.count));
    }
    PVG_PASS(new_array(call.device, PVG_INT64, 1, &found.count, &places->array));
    found.indices = data<int64_t>(places->array);
    found.ndim = 1, found.shape[0] = mask->size, found.narrow = mask->size <= UINT32_MAX;
    return search::write_nonzero<uint8_t>(call, job, found);
}

} // namespace

} // namespace pvg
