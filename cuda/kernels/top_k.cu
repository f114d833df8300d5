// pvg_top_k: the first few of a stable order along an axis, without the others'. A block has a row
// in registers, and looks k times for the first element of those that are left: each thread knows
// which of its own that is, and only the one that lost it looks again.
#include "arrays/call.cuh"
#include "arrays/dispatch.cuh"
#include "arrays/operation.cuh"
#include "kernels/keys.cuh"

namespace pvg {

namespace {

constexpr int64_t most_taken = 64; // of a row; a sort takes as long then
// Shorter rows are sorted by a few threads each, unless there are so few that nothing is waited for
// but the one launch.
constexpr int64_t least_row = 129, few_rows = 1024;
// Along another axis than the last one each element is read with its sector, from the cache.
constexpr int64_t most_apart = 1 << 21;
constexpr int64_t most_row = 16384;

struct TopK {
    const void *from; // [outer, length, inner], and so the results, with k for the length
    void *values;
    int64_t *places;
    int64_t rows, inner;
    int length, k;
    keys::Order order;
};

// The first of some elements: by their keys, and of equal ones by their places in the row.
template <class K> struct First {
    K key;
    uint32_t place; // UINT32_MAX, with the largest key: none

    __device__ __forceinline__ void take(K other, uint32_t at) {
        if (other < key || (other == key && at < place)) key = other, place = at;
    }
    __device__ __forceinline__ void take_warp() {
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) {
            const K other = __shfl_xor_sync(~0u, key, apart);
            take(other, __shfl_xor_sync(~0u, place, apart));
        }
    }
};
template <class K> constexpr K largest_key = static_cast<K>(~K(0));
// What shuffles take.
template <class K> using WideKey = std::conditional_t<sizeof(K) < 4, uint32_t, K>;

template <class T, int THREADS, int EACH>
__global__ void __launch_bounds__(THREADS) top_k_kernel(const TopK job) {
    using K = WideKey<T>;
    constexpr int warps = THREADS / 32;
    __shared__ First<K> of_warp[warps], of_row;
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    const int64_t outer = blockIdx.x / job.inner, column = blockIdx.x % job.inner;
    const T *from = static_cast<const T *>(job.from) + outer * job.length * job.inner + column;
    T bits[EACH] = {};
    K key[EACH];
    unsigned left = 0; // a bit each
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (thread + e * THREADS < job.length) bits[e] = from[(thread + e * THREADS) * job.inner];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        key[e] = keys::key_of(bits[e], job.order);
        if (thread + e * THREADS < job.length) left |= 1u << e;
    }
    bool is_due = true;
    for (int n = 0; n < job.k; n++) {
        if (is_due) {
            First<K> own = {largest_key<K>, UINT32_MAX};
#pragma unroll
            for (int e = 0; e < EACH; e++)
                if (left >> e & 1) own.take(key[e], static_cast<uint32_t>(thread + e * THREADS));
            own.take_warp();
            if (lane == 0) of_warp[warp] = own;
        }
        __syncthreads();
        if (warp == 0) {
            First<K> found = {largest_key<K>, UINT32_MAX};
            if (lane < warps) found = of_warp[lane];
            found.take_warp();
            if (lane == 0) of_row = found;
        }
        __syncthreads();
        const uint32_t place = of_row.place;
        is_due = static_cast<int>(place) % THREADS / 32 == warp;
        if (static_cast<int>(place) % THREADS != thread) continue;
        left &= ~(1u << static_cast<int>(place) / THREADS);
        const int64_t to = (outer * job.k + n) * job.inner + column;
        static_cast<T *>(job.values)[to] = from[place * job.inner];
        job.places[to] = place;
    }
}

template <class T, int THREADS, int EACH> int launch(Call &call, const TopK &job) {
    PVG_LAUNCH((top_k_kernel<T, THREADS, EACH>), blocks_for(job.rows, 1), THREADS, 0, call.stream,
               job);
    return PVG_OK;
}
template <class T> int launch_top_k(Call &call, const TopK &job) {
    if (job.length <= 128 * 4) return launch<T, 128, 4>(call, job);
    if (job.length <= 256 * 8) return launch<T, 256, 8>(call, job);
    if (job.length <= 512 * 16) return launch<T, 512, 16>(call, job);
    return launch<T, 1024, 16>(call, job);
}

int run_top_k(Call &call, const pvg_array *a, int64_t k, int axis, int smallest, Output *values,
              Output *places) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(smallest == 0 || smallest == 1, PVG_ERROR_VALUE, "smallest is 0 or 1, got %d",
                smallest);
    PVG_PASS(check_kinds(a->dtype, ordered));
    PVG_PASS(normalize_axis(axis, a->ndim, &axis));
    const int64_t length = a->shape[axis];
    PVG_REQUIRE(k >= 1 && k <= length && k <= most_taken, PVG_ERROR_VALUE,
                "takes 1 to %lld of %lld elements, not %lld", static_cast<long long>(most_taken),
                static_cast<long long>(length), static_cast<long long>(k));
    const int64_t rows = a->size / length;
    int64_t inner = 1, shape[PVG_MAX_NDIM];
    for (int i = 0; i < a->ndim; i++) shape[i] = i == axis ? k : a->shape[i];
    for (int i = axis + 1; i < a->ndim; i++) inner *= a->shape[i];
    PVG_REQUIRE(length <= most_row && (length >= least_row || rows <= few_rows) &&
                    (inner == 1 || a->size <= most_apart) && rows <= INT32_MAX,
                PVG_ERROR_VALUE, "a sort takes less along axis %d of shape %s", axis,
                shape_text(a));
    PVG_PASS(call.begin(device));
    Temporary straight;
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    PVG_PASS(values->open(call, a->dtype, a->ndim, shape, nullptr, nullptr, 0));
    PVG_PASS(places->open(call, PVG_INT64, a->ndim, shape, nullptr, nullptr, 0));
    if (rows == 0) return PVG_OK;
    PVG_PASS(call.reads(a));
    const TopK job = {a->data,
                      values->array->data,
                      data<int64_t>(places->array),
                      rows,
                      inner,
                      static_cast<int>(length),
                      static_cast<int>(k),
                      keys::order_of(a->dtype, false, smallest == 0)};
    switch (dtype_size(a->dtype)) {
    case 1: return launch_top_k<uint8_t>(call, job);
    case 2: return launch_top_k<uint16_t>(call, job);
    case 4: return launch_top_k<uint32_t>(call, job);
    }
    return launch_top_k<uint64_t>(call, job);
}

} // namespace

} // namespace pvg

PVG_API pvg_array *pvg_top_k(const pvg_array *a, int64_t k, int axis, int smallest,
                             pvg_array **indices) {
    pvg::Call call("top_k");
    pvg::Output values, places;
    const int status = pvg::run_top_k(call, a, k, axis, smallest, &values, &places);
    pvg_array *result = values.close(call, status);
    *indices = places.close(call, result ? status : static_cast<int>(PVG_ERROR_VALUE));
    return result;
}
