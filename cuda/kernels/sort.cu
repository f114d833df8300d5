// pvg_sort and pvg_argsort: along an axis, which is made the last one first; both are stable.
//
// Rows of up to row_limit elements are sorted by groups of threads (sort_rows.cuh). Longer ones by
// the radix sort of the whole card: the keys of several rows at once have the row above them, which
// takes wider keys; the widest are sorted twice, by themselves and by rows. Very long rows are
// sorted one by one.
#include "arrays/operation.cuh"
#include "kernels/radix.cuh"
#include "kernels/sort_rows.cuh"
#include <type_traits>

namespace pvg {

namespace {

constexpr int sort_threads = 256;
constexpr int64_t most_keys = UINT32_MAX;   // of one radix sort
constexpr int64_t most_of_rows = 1 << 30;   // the same, of several rows
constexpr int64_t most_rows = 1 << 16;      // that are sorted together
constexpr int64_t alone = int64_t(1) << 21; // rows that are so long are sorted one by one

// Some rows of one length, C order.
struct SortJob {
    const void *from;
    void *to; // elements, or int64: where they stood
    int64_t rows, length;
    keys::Order order;
};

// A thread for each of the elements, of which there are fewer than 2^32.
__device__ __forceinline__ int64_t element() {
    return static_cast<int64_t>(blockIdx.x) * sort_threads + threadIdx.x;
}

// Keys, with the number of their row above them if they are wider than elements; and in `values`,
// unless it is NULL, the numbers of the elements.
template <class T, class K>
__global__ void __launch_bounds__(sort_threads)
    make_keys_kernel(const SortJob job, K *keys, uint32_t *values) {
    const int64_t i = element();
    if (i >= job.rows * job.length) return;
    K key = keys::key_of(static_cast<const T *>(job.from)[i], job.order);
    if constexpr (sizeof(K) > sizeof(T)) {
        const uint32_t row = static_cast<uint32_t>(i) / static_cast<uint32_t>(job.length);
        key |= static_cast<K>(row) << (8 * sizeof(T));
    }
    keys[i] = key;
    if (values) values[i] = static_cast<uint32_t>(i);
}

template <class T, class K>
__global__ void __launch_bounds__(sort_threads) take_keys_kernel(const SortJob job, const K *keys) {
    const int64_t i = element();
    if (i < job.rows * job.length)
        static_cast<T *>(job.to)[i] = keys::bits_of(static_cast<T>(keys[i]), job.order);
}

// Where in their rows the elements stood that have these numbers.
__global__ void __launch_bounds__(sort_threads)
    take_places_kernel(const SortJob job, const uint32_t *values) {
    const int64_t i = element();
    if (i >= job.rows * job.length) return;
    static_cast<int64_t *>(job.to)[i] =
        job.rows == 1 ? values[i] : values[i] % static_cast<uint32_t>(job.length);
}

__global__ void __launch_bounds__(sort_threads)
    make_rows_kernel(const SortJob job, const uint32_t *values, uint32_t *rows) {
    const int64_t i = element();
    if (i < job.rows * job.length) rows[i] = values[i] / static_cast<uint32_t>(job.length);
}

__global__ void __launch_bounds__(sort_threads)
    take_elements_kernel(const SortJob job, const uint32_t *values) {
    const int64_t i = element();
    if (i < job.rows * job.length)
        static_cast<uint64_t *>(job.to)[i] = static_cast<const uint64_t *>(job.from)[values[i]];
}

int bits_for(int64_t rows) {
    int bits = 0;
    while (int64_t(1) << bits < rows) bits++;
    return bits;
}

size_t rounded_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Memory for the keys and, if they are asked for, the values of `count` elements.
template <class K>
int open_buffers(Call &call, int64_t count, bool values, Workspace *memory,
                 radix::Buffers<K> *buffers) {
    const size_t n = static_cast<size_t>(count);
    const size_t of_keys = rounded_up(n * sizeof(K));
    const size_t of_values = values ? rounded_up(n * sizeof(uint32_t)) : 0;
    PVG_PASS(memory->open(call, 2 * (of_keys + of_values)));
    unsigned char *at = memory->as<unsigned char>();
    buffers->keys = reinterpret_cast<K *>(at);
    buffers->other_keys = reinterpret_cast<K *>(at + of_keys);
    at += 2 * of_keys;
    buffers->values = values ? reinterpret_cast<uint32_t *>(at) : nullptr;
    buffers->other_values = values ? reinterpret_cast<uint32_t *>(at + of_values) : nullptr;
    return PVG_OK;
}

// All rows by one radix sort, of keys of type K.
template <class T, class K> int sort_at_once(Call &call, const SortJob &job, bool index) {
    const int64_t count = job.rows * job.length;
    const unsigned blocks = blocks_for(count, sort_threads);
    Workspace memory;
    radix::Buffers<K> buffers = {};
    PVG_PASS(open_buffers(call, count, index, &memory, &buffers));
    PVG_LAUNCH((make_keys_kernel<T, K>), blocks, sort_threads, 0, call.stream, job, buffers.keys,
               buffers.values);
    const int bits = static_cast<int>(8 * sizeof(T)) + bits_for(job.rows);
    PVG_PASS(radix::sort(call, &buffers, count, bits));
    if (index)
        PVG_LAUNCH(take_places_kernel, blocks, sort_threads, 0, call.stream, job, buffers.values);
    else
        PVG_LAUNCH((take_keys_kernel<T, K>), blocks, sort_threads, 0, call.stream, job,
                   buffers.keys);
    return PVG_OK;
}

// All rows by two radix sorts; `to` is not `from`.
int sort_twice(Call &call, const SortJob &job, bool index) {
    const int64_t count = job.rows * job.length;
    const unsigned blocks = blocks_for(count, sort_threads);
    Workspace memory;
    radix::Buffers<uint64_t> buffers = {};
    PVG_PASS(open_buffers(call, count, true, &memory, &buffers));
    PVG_LAUNCH((make_keys_kernel<uint64_t, uint64_t>), blocks, sort_threads, 0, call.stream, job,
               buffers.keys, buffers.values);
    PVG_PASS(radix::sort(call, &buffers, count, 64));
    radix::Buffers<uint32_t> rows = {reinterpret_cast<uint32_t *>(buffers.keys),
                                     reinterpret_cast<uint32_t *>(buffers.other_keys),
                                     buffers.values, buffers.other_values};
    PVG_LAUNCH(make_rows_kernel, blocks, sort_threads, 0, call.stream, job, rows.values, rows.keys);
    PVG_PASS(radix::sort(call, &rows, count, bits_for(job.rows)));
    if (index)
        PVG_LAUNCH(take_places_kernel, blocks, sort_threads, 0, call.stream, job, rows.values);
    else
        PVG_LAUNCH(take_elements_kernel, blocks, sort_threads, 0, call.stream, job, rows.values);
    return PVG_OK;
}

// How many rows are sorted together.
int64_t rows_at_once(const SortJob &job) {
    if (job.length >= alone) return 1;
    const int64_t fitting = most_of_rows / job.length;
    const int64_t most = fitting < most_rows ? fitting : most_rows;
    return job.rows < most ? job.rows : most;
}

template <class T> int sort_long_rows(Call &call, SortJob job, bool index) {
    using Wider = std::conditional_t<sizeof(T) < 4, uint32_t, uint64_t>;
    PVG_REQUIRE(job.length <= most_keys, PVG_ERROR_VALUE,
                "sorts fewer than 2^32 elements along an axis, not %lld",
                static_cast<long long>(job.length));
    const int64_t step = rows_at_once(job), item = index ? sizeof(int64_t) : sizeof(T);
    const int64_t rows = job.rows;
    for (int64_t row = 0; row < rows; row += step) {
        job.rows = rows - row < step ? rows - row : step;
        if (job.rows == 1)
            PVG_PASS((sort_at_once<T, T>(call, job, index)));
        else if constexpr (sizeof(T) == 8)
            PVG_PASS(sort_twice(call, job, index));
        else
            PVG_PASS((sort_at_once<T, Wider>(call, job, index)));
        job.from = static_cast<const T *>(job.from) + job.rows * job.length;
        job.to = static_cast<unsigned char *>(job.to) + job.rows * job.length * item;
    }
    return PVG_OK;
}

template <class T> int sort_contiguous(Call &call, const SortJob &job, bool index) {
    if (job.length > row_limit) return sort_long_rows<T>(call, job, index);
    const RowsJob rows = {job.from, job.to, job.rows, job.length, 1, job.order};
    return index ? sort_rows<T, true>(call.stream, rows) : sort_rows<T, false>(call.stream, rows);
}

// Both contiguous, sorted along the last axis, and the same memory or none that is shared.
int launch_sort(Call &call, const pvg_array *a, bool index, bool descending, pvg_array *target) {
    SortJob job = {};
    job.from = a->data, job.to = target->data;
    job.length = a->shape[a->ndim - 1], job.rows = a->size / job.length;
    job.order = keys::order_of(a->dtype, !index, descending);
    Temporary copied;
    if (a->data == target->data && job.length > row_limit && dtype_size(a->dtype) == 8) {
        PVG_PASS(new_array(call.device, a->dtype, a->ndim, a->shape, &copied.array));
        PVG_PASS(copy_array(call, a, copied.array));
        job.from = copied.array->data;
    }
    PVG_PASS(call.reads(a));
    switch (dtype_size(a->dtype)) {
    case 1: return sort_contiguous<uint8_t>(call, job, index);
    case 2: return sort_contiguous<uint16_t>(call, job, index);
    case 4: return sort_contiguous<uint32_t>(call, job, index);
    }
    return sort_contiguous<uint64_t>(call, job, index);
}

// The same array with an axis behind all others.
int with_axis_last(const pvg_array *a, int axis, Temporary *view) {
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    for (int i = 0, j = 0; i < a->ndim; i++)
        if (i != axis) shape[j] = a->shape[i], strides[j++] = a->strides[i];
    shape[a->ndim - 1] = a->shape[axis], strides[a->ndim - 1] = a->strides[axis];
    return new_view(a, a->ndim, shape, strides, 0, a->readonly, &view->array);
}

int run_sort(Call &call, const pvg_array *a, int axis, bool index, int descending, pvg_array *out,
             Output *result) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(descending == 0 || descending == 1, PVG_ERROR_VALUE, "descending is 0 or 1, got %d",
                descending);
    PVG_PASS(check_kinds(a->dtype, ordered));
    PVG_PASS(normalize_axis(axis, a->ndim, &axis));
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, index ? static_cast<int>(PVG_INT64) : a->dtype, a->ndim, a->shape,
                          out, &a, 1));
    pvg_array *c = result->array;
    if (c->size == 0) return PVG_OK;
    Temporary from, to, straight, whole;
    PVG_PASS(with_axis_last(a, axis, &from));
    PVG_PASS(with_axis_last(c, axis, &to));
    const pvg_array *rows = nullptr;
    PVG_PASS(as_contiguous(call, from.array, &straight, &rows));
    if (is_contiguous(to.array)) return launch_sort(call, rows, index, descending != 0, to.array);
    PVG_PASS(new_array(device, c->dtype, c->ndim, to.array->shape, &whole.array));
    PVG_PASS(launch_sort(call, rows, index, descending != 0, whole.array));
    return copy_array(call, whole.array, to.array);
}

} // namespace

Operations sort_operations() {
    static constexpr Operation rows[] = {
        {PVG_SORT, "sort", Family::other, ordered, Gives::same},
        {PVG_ARGSORT, "argsort", Family::other, ordered, Gives::index},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_sort(const pvg_array *a, int axis, int descending, pvg_array *out) {
    pvg::Call call("sort");
    pvg::Output result;
    int status = pvg::run_sort(call, a, axis, false, descending, out, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_argsort(const pvg_array *a, int axis, int descending) {
    pvg::Call call("argsort");
    pvg::Output result;
    int status = pvg::run_sort(call, a, axis, true, descending, nullptr, &result);
    return result.close(call, status);
}
