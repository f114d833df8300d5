// pvg_searchsorted: where values would stand in a sorted array. A thread bisects for one, all in as
// many steps. For many values each block takes the first steps among samples of the sorted array in
// shared memory; there threads bisect for four at the same time, whose loads are under way
// together.
#include "arrays/call.cuh"
#include "arrays/operation.cuh"
#include "kernels/keys.cuh"
#include <type_traits>

namespace pvg {

namespace {

constexpr int bisect_threads = 256;
// As many values are worth taking samples for; of a million they took longer than the steps.
constexpr int64_t many_values = 1 << 22;                          // 16 a thread, below 4
constexpr size_t most_shared = 32 << 10, most_samples = 16 << 10; // bytes

struct BisectJob {
    const void *sorted, *values;
    int64_t *places;
    int64_t length, count;
    keys::Order order;
    bool right; // behind those that are equal
    int stride; // in shared memory is every so many-th of the sorted elements
};

// Raises each of `low`, an iterator or an index, by how many of the `length` elements from there on
// are before the value. is_before(place, value) is asked for as many of them whatever it says; all
// are among the elements.
template <class Length, class Place, class K, int N, class F>
__device__ __forceinline__ void bisect(Length length, const K (&value)[N], Place (&low)[N],
                                       F &&is_before) {
    for (Length left = length; left > 0;) { // elements that may be
        const Length half = (left + 1) / 2;
#pragma unroll
        for (int e = 0; e < N; e++)
            if (is_before(low[e] + (half - 1), value[e])) low[e] += half;
        left -= half;
    }
}

// SHARED: samples of the sorted array, or all of it, lie in shared memory, where 32 lanes that read
// 32 places are not in each other's way as they are in lines of the cache.
template <class K, bool SHARED, int AT_ONCE>
__global__ void __launch_bounds__(bisect_threads) bisect_kernel(const BisectJob job, int each) {
    PVG_DYNAMIC_SHARED(K, samples);
    const K *sorted = static_cast<const K *>(job.sorted), *end = sorted + job.length;
    const int count = SHARED ? static_cast<int>((job.length - 1) / job.stride) + 1 : 0;
    for (int i = threadIdx.x; i < count; i += bisect_threads)
        samples[i] = keys::key_of(sorted[int64_t(i) * job.stride], job.order);
    if (SHARED) __syncthreads();
    const auto precedes = [&](K key, K value) {
        return key < value || (job.right && key == value);
    };
    int64_t i = static_cast<int64_t>(blockIdx.x) * bisect_threads * each + threadIdx.x;
    for (int n = 0; n < each && i < job.count; n += AT_ONCE, i += AT_ONCE * bisect_threads) {
        K value[AT_ONCE] = {};
        int first[AT_ONCE] = {}; // samples that are before
        const K *low[AT_ONCE];   // behind the elements that are
#pragma unroll
        for (int e = 0; e < AT_ONCE; e++) {
            const int64_t at = i + e * bisect_threads;
            if (at < job.count)
                value[e] = keys::key_of(static_cast<const K *>(job.values)[at], job.order);
        }
        if (SHARED)
            bisect(count, value, first, [&](int at, K one) { return precedes(samples[at], one); });
#pragma unroll
        for (int e = 0; e < AT_ONCE; e++) // behind the last sample that is before
            low[e] = sorted + (first[e] > 0 ? (first[e] - 1) * int64_t(job.stride) + 1 : 0);
        bisect(SHARED ? int64_t(job.stride) - 1 : job.length, value, low, [&](const K *at, K one) {
            return (!SHARED || at < end) && precedes(keys::key_of(*at, job.order), one);
        });
#pragma unroll
        for (int e = 0; e < AT_ONCE; e++)
            if (i + e * bisect_threads < job.count)
                job.places[i + e * bisect_threads] = low[e] - sorted;
    }
}

template <class K> int launch_bisect(Call &call, BisectJob job) {
    constexpr int64_t room = most_shared / sizeof(K), samples = most_samples / sizeof(K);
    const bool whole = job.length <= room;
    const int64_t stride = whole ? 1 : (job.length - 1) / samples + 1;
    const bool shared = job.length > 0 && (whole || job.count >= many_values);
    const size_t bytes = whole ? static_cast<size_t>(job.length) * sizeof(K) : most_samples;
    const int each = !shared ? 1 : job.count < many_values ? 4 : 16;
    job.stride = static_cast<int>(stride);
    const unsigned blocks = blocks_for(job.count, bisect_threads * each);
    if (shared)
        PVG_LAUNCH((bisect_kernel<K, true, 4>), blocks, bisect_threads, bytes, call.stream, job,
                   each);
    else
        PVG_LAUNCH((bisect_kernel<K, false, 1>), blocks, bisect_threads, 0, call.stream, job, each);
    return PVG_OK;
}

int run_searchsorted(Call &call, const pvg_array *sorted, const pvg_array *values, int right,
                     Output *result) {
    const pvg_array *operands[2] = {sorted, values};
    int device = -1;
    PVG_PASS(check_operands(operands, 2, &device));
    PVG_REQUIRE(right == 0 || right == 1, PVG_ERROR_VALUE, "right is 0 or 1, got %d", right);
    PVG_REQUIRE(sorted->ndim == 1, PVG_ERROR_VALUE,
                "searches an array of one dimension, not one of shape %s", shape_text(sorted));
    const int dtype = promote(sorted->dtype, values->dtype);
    PVG_PASS(check_kinds(dtype, ordered));
    PVG_PASS(call.begin(device));
    Temporary holders[4];
    PVG_PASS(as_dtype(call, sorted, dtype, &holders[0], &sorted));
    PVG_PASS(as_dtype(call, values, dtype, &holders[1], &values));
    PVG_PASS(as_contiguous(call, sorted, &holders[2], &sorted));
    PVG_PASS(as_contiguous(call, values, &holders[3], &values));
    PVG_PASS(result->open(call, PVG_INT64, values->ndim, values->shape, nullptr, nullptr, 0));
    const BisectJob job = {sorted->data,
                           values->data,
                           data<int64_t>(result->array),
                           sorted->size,
                           values->size,
                           keys::order_of(dtype, false, false),
                           right != 0,
                           1};
    PVG_PASS(call.reads(sorted));
    PVG_PASS(call.reads(values));
    return dispatch_size(dtype, [&](auto tag) -> int {
        using K = typename decltype(tag)::type;
        if constexpr (sizeof(K) > sizeof(uint64_t))
            return refuse_dtype(dtype, ordered);
        else
            return launch_bisect<K>(call, job);
    });
}

} // namespace

Operations searchsorted_operations() {
    static constexpr Operation rows[] = {
        {PVG_SEARCHSORTED, "searchsorted", Family::other, ordered, Gives::index},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_searchsorted(const pvg_array *sorted, const pvg_array *values, int right) {
    pvg::Call call("searchsorted");
    pvg::Output result;
    int status = pvg::run_searchsorted(call, sorted, values, right, &result);
    return result.close(call, status);
}
