// pvg_bincount: how often each number is there, or the sum of the weights that stand beside it.
//
// The numbers are sorted, by the few bits that they have; equal ones then lie side by side. Their
// weights are added one after the other as they stood, by a warp for each number: the same bits as
// NumPy's.
#include "arrays/operation.cuh"
#include "kernels/radix.cuh"

namespace pvg {

namespace {

constexpr int count_threads = 256;

// Numbers as keys, those out of range as `length`, and their places unless that is NULL.
template <class T>
__global__ void __launch_bounds__(count_threads)
    make_numbers_kernel(const T *numbers, int64_t size, int64_t length, uint32_t *keys,
                        uint32_t *places) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * count_threads + threadIdx.x;
    if (i >= size) return;
    const int64_t number = static_cast<int64_t>(numbers[i]);
    keys[i] = static_cast<uint32_t>(number >= 0 && number < length ? number : length);
    if (places) places[i] = static_cast<uint32_t>(i);
}

// How many of the sorted keys are less.
__device__ __forceinline__ int64_t keys_before(const uint32_t *keys, int64_t size, int64_t key) {
    int64_t low = 0, high = size;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

__global__ void __launch_bounds__(count_threads)
    count_keys_kernel(const uint32_t *keys, int64_t size, int64_t length, int64_t *counts) {
    const int64_t number = static_cast<int64_t>(blockIdx.x) * count_threads + threadIdx.x;
    if (number >= length) return;
    counts[number] = keys_before(keys, size, number + 1) - keys_before(keys, size, number);
}

__global__ void __launch_bounds__(count_threads)
    sum_weights_kernel(const uint32_t *keys, const uint32_t *places, const double *weights,
                       int64_t size, int64_t length, double *sums) {
    const int64_t number =
        static_cast<int64_t>(blockIdx.x) * (count_threads / 32) + threadIdx.x / 32;
    if (number >= length) return; // the whole warp
    const int lane = threadIdx.x % 32;
    const int64_t end = keys_before(keys, size, number + 1);
    double sum = 0;
    for (int64_t at = keys_before(keys, size, number); at < end; at += 32) {
        const double weight = at + lane < end ? weights[places[at + lane]] : 0.0;
        const int count = end - at < 32 ? static_cast<int>(end - at) : 32;
        for (int j = 0; j < count; j++) sum += __shfl_sync(0xffffffffu, weight, j);
    }
    if (lane == 0) sums[number] = sum;
}

template <class T>
int launch_bincount(Call &call, const pvg_array *numbers, const pvg_array *weights, int64_t length,
                    pvg_array *target) {
    const int64_t size = numbers->size;
    PVG_REQUIRE(size < UINT32_MAX && length < UINT32_MAX, PVG_ERROR_VALUE,
                "counts fewer than 2^32 numbers, each below 2^32 - 1");
    const size_t n = static_cast<size_t>(size);
    Workspace memory;
    PVG_PASS(memory.open(call, ((weights ? 4 : 2) * n + 1) * sizeof(uint32_t)));
    uint32_t *at = memory.as<uint32_t>();
    radix::Buffers<uint32_t> buffers = {at, at + n, nullptr, nullptr};
    if (weights) buffers.values = at + 2 * n, buffers.other_values = at + 3 * n;
    PVG_LAUNCH(make_numbers_kernel<T>, blocks_for(size, count_threads), count_threads, 0,
               call.stream, data<T>(numbers), size, length, buffers.keys, buffers.values);
    int bits = 0;
    while (length >> bits) bits++;
    PVG_PASS(radix::sort(call, &buffers, size, bits));
    if (weights)
        PVG_LAUNCH(sum_weights_kernel, blocks_for(length, count_threads / 32), count_threads, 0,
                   call.stream, buffers.keys, buffers.values, data<double>(weights), size, length,
                   data<double>(target));
    else
        PVG_LAUNCH(count_keys_kernel, blocks_for(length, count_threads), count_threads, 0,
                   call.stream, buffers.keys, size, length, data<int64_t>(target));
    return PVG_OK;
}

int run_bincount(Call &call, const pvg_array *numbers, const pvg_array *weights, int64_t length,
                 Output *result) {
    const pvg_array *operands[2] = {numbers, weights};
    int device = -1;
    PVG_PASS(check_operands(operands, weights ? 2 : 1, &device));
    PVG_REQUIRE(length >= 0, PVG_ERROR_VALUE, "length must not be negative, got %lld",
                static_cast<long long>(length));
    PVG_PASS(check_kinds(numbers->dtype, integers));
    PVG_REQUIRE(!weights || (weights->ndim == numbers->ndim &&
                             same_shape(weights, numbers->ndim, numbers->shape)),
                PVG_ERROR_VALUE, "weights of shape %s for numbers of shape %s", shape_text(weights),
                shape_text(numbers));
    PVG_PASS(call.begin(device));
    Temporary holders[3];
    PVG_PASS(as_contiguous(call, numbers, &holders[0], &numbers));
    if (weights) {
        PVG_PASS(check_kinds(weights->dtype, ordered));
        PVG_PASS(as_dtype(call, weights, PVG_FLOAT64, &holders[1], &weights));
        PVG_PASS(as_contiguous(call, weights, &holders[2], &weights));
        PVG_PASS(call.reads(weights));
    }
    PVG_PASS(call.reads(numbers));
    PVG_PASS(
        result->open(call, weights ? PVG_FLOAT64 : PVG_INT64, 1, &length, nullptr, nullptr, 0));
    return dispatch<integers>(numbers->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return launch_bincount<T>(call, numbers, weights, length, result->array);
    });
}

} // namespace

Operations bincount_operations() {
    static constexpr Operation rows[] = {
        {PVG_BINCOUNT, "bincount", Family::other, integers, Gives::index},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_bincount(const pvg_array *numbers, const pvg_array *weights,
                                int64_t length) {
    pvg::Call call("bincount");
    pvg::Output result;
    int status = pvg::run_bincount(call, numbers, weights, length, &result);
    return result.close(call, status);
}
