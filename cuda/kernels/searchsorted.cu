// pvg_searchsorted: where values would stand in a sorted array. A thread bisects for one, or for
// four at the same time, whose loads are under way together; all in as many steps.
#include "arrays/call.cuh"
#include "arrays/operation.cuh"
#include "kernels/keys.cuh"
#include <type_traits>

namespace pvg {

namespace {

constexpr int bisect_threads = 256;
constexpr int64_t few_values = 1 << 16, many_values = 1 << 22; // one, 4 and 16 a thread
constexpr size_t most_shared = 32 << 10;

struct BisectJob {
    const void *sorted, *values;
    int64_t *places;
    int64_t length, count;
    keys::Order order;
    bool right; // behind those that are equal
};

// SHARED: the sorted array fits into shared memory, where 32 lanes that read 32 places are not in
// each other's way as they are in lines of the cache.
template <class K, bool SHARED, int AT_ONCE>
__global__ void __launch_bounds__(bisect_threads) bisect_kernel(const BisectJob job, int each) {
    using Index = std::conditional_t<SHARED, int32_t, int64_t>;
    const K *sorted = static_cast<const K *>(job.sorted);
    const Index length = static_cast<Index>(job.length);
    if constexpr (SHARED) {
        PVG_DYNAMIC_SHARED(K, keys);
        for (Index i = threadIdx.x; i < length; i += bisect_threads)
            keys[i] = keys::key_of(sorted[i], job.order);
        __syncthreads();
        sorted = keys;
    }
    const auto is_before = [&](Index at, K value) {
        const K key = SHARED ? sorted[at] : keys::key_of(sorted[at], job.order);
        return key < value || (job.right && key == value);
    };
    int64_t i = static_cast<int64_t>(blockIdx.x) * bisect_threads * each + threadIdx.x;
    for (int n = 0; n < each && i < job.count; n += AT_ONCE, i += AT_ONCE * bisect_threads) {
        K value[AT_ONCE] = {};
        Index low[AT_ONCE] = {}; // elements that are before
#pragma unroll
        for (int e = 0; e < AT_ONCE; e++) {
            const int64_t at = i + e * bisect_threads;
            if (at < job.count)
                value[e] = keys::key_of(static_cast<const K *>(job.values)[at], job.order);
        }
        for (Index left = length; left > 0;) { // elements that may be
            const Index half = (left + 1) / 2;
#pragma unroll
            for (int e = 0; e < AT_ONCE; e++)
                if (is_before(low[e] + half - 1, value[e])) low[e] += half;
            left -= half;
        }
#pragma unroll
        for (int e = 0; e < AT_ONCE; e++)
            if (i + e * bisect_threads < job.count) job.places[i + e * bisect_threads] = low[e];
    }
}

template <class K> int launch_bisect(Call &call, const BisectJob &job) {
    const bool few = job.count < few_values;
    const size_t bytes = static_cast<size_t>(job.length) * sizeof(K);
    const bool shared = job.length <= static_cast<int64_t>(most_shared / sizeof(K));
    const int each = few && !shared ? 1 : job.count < many_values ? 4 : 16;
    const unsigned blocks = blocks_for(job.count, bisect_threads * each);
    if (shared)
        PVG_LAUNCH((bisect_kernel<K, true, 4>), blocks, bisect_threads, bytes, call.stream, job,
                   each);
    else if (few)
        PVG_LAUNCH((bisect_kernel<K, false, 1>), blocks, bisect_threads, 0, call.stream, job, each);
    else
        PVG_LAUNCH((bisect_kernel<K, false, 4>), blocks, bisect_threads, 0, call.stream, job, each);
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
    const BisectJob job = {sorted->data, values->data, data<int64_t>(result->array),
                           sorted->size, values->size, keys::order_of(dtype, false, false),
                           right != 0};
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
