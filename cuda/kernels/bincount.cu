// pvg_bincount: how often each number is there, or the sum of the weights that stand beside it.
//
// Numbers are counted by adding, in shared memory first where there are few of them: integers, so
// that the order makes no difference. Weights are put in the order of their numbers and added one
// after the other as they stood, by a warp for each number: the same bits as NumPy's.
#include "arrays/copy.cuh"
#include "arrays/operation.cuh"
#include "kernels/radix.cuh"

namespace pvg {

namespace {

constexpr int count_threads = 256, count_each = 16;
constexpr int few_numbers = 4096; // that are counted in shared memory

// Numbers out of range are not counted.
template <class T>
__global__ void __launch_bounds__(count_threads)
    count_few_kernel(const T *numbers, int64_t size, int length, unsigned long long *counts) {
    __shared__ uint32_t own[few_numbers];
    for (int i = threadIdx.x; i < length; i += count_threads) own[i] = 0;
    __syncthreads();
    const int64_t first = static_cast<int64_t>(blockIdx.x) * count_threads * count_each;
    for (int e = 0; e < count_each; e++) {
        const int64_t i = first + e * count_threads + threadIdx.x;
        if (i >= size) break;
        const int64_t number = static_cast<int64_t>(numbers[i]);
        if (number >= 0 && number < length) atomicAdd(&own[number], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < length; i += count_threads)
        if (own[i]) atomicAdd(&counts[i], static_cast<unsigned long long>(own[i]));
}

template <class T>
__global__ void __launch_bounds__(count_threads)
    count_many_kernel(const T *numbers, int64_t size, int64_t length, unsigned long long *counts) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * count_threads + threadIdx.x;
    if (i >= size) return;
    const int64_t number = static_cast<int64_t>(numbers[i]);
    if (number >= 0 && number < length) atomicAdd(&counts[number], 1ull);
}

// Numbers as keys, those out of range as `length`, and their places.
template <class T>
__global__ void __launch_bounds__(count_threads)
    make_numbers_kernel(const T *numbers, int64_t size, int64_t length, uint32_t *keys,
                        uint32_t *places) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * count_threads + threadIdx.x;
    if (i >= size) return;
    const int64_t number = static_cast<int64_t>(numbers[i]);
    keys[i] = static_cast<uint32_t>(number >= 0 && number < length ? number : length);
    places[i] = static_cast<uint32_t>(i);
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
int launch_count(Call &call, const pvg_array *numbers, int64_t length, pvg_array *target) {
    const T *from = data<T>(numbers);
    auto *counts = data<unsigned long long>(target);
    const int64_t zero = 0;
    PVG_PASS(fill_array(call, target, PVG_SCALAR_INT, &zero));
    if (length <= few_numbers)
        PVG_LAUNCH(count_few_kernel<T>, blocks_for(numbers->size, count_threads * count_each),
                   count_threads, 0, call.stream, from, numbers->size, static_cast<int>(length),
                   counts);
    else
        PVG_LAUNCH(count_many_kernel<T>, blocks_for(numbers->size, count_threads), count_threads, 0,
                   call.stream, from, numbers->size, length, counts);
    return PVG_OK;
}

template <class T>
int launch_sums(Call &call, const pvg_array *numbers, const pvg_array *weights, int64_t length,
                pvg_array *target) {
    const int64_t size = numbers->size;
    PVG_REQUIRE(size < UINT32_MAX && length < UINT32_MAX, PVG_ERROR_VALUE,
                "adds fewer than 2^32 weights up to as many sums");
    const size_t n = static_cast<size_t>(size);
    Workspace memory;
    PVG_PASS(memory.open(call, (4 * n + 1) * sizeof(uint32_t)));
    uint32_t *at = memory.as<uint32_t>();
    radix::Buffers<uint32_t> buffers = {at, at + n, at + 2 * n, at + 3 * n};
    PVG_LAUNCH(make_numbers_kernel<T>, blocks_for(size, count_threads), count_threads, 0,
               call.stream, data<T>(numbers), size, length, buffers.keys, buffers.values);
    int bits = 0;
    while (length >> bits) bits++;
    PVG_PASS(radix::sort(call, &buffers, size, bits));
    PVG_LAUNCH(sum_weights_kernel, blocks_for(length, count_threads / 32), count_threads, 0,
               call.stream, buffers.keys, buffers.values, data<double>(weights), size, length,
               data<double>(target));
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
    pvg_array *target = result->array;
    return dispatch<integers>(numbers->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return weights ? launch_sums<T>(call, numbers, weights, length, target)
                       : launch_count<T>(call, numbers, length, target);
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
