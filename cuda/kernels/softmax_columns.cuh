// Softmax along an axis that others follow: [outer][length][inner], of short columns. A thread, or
// a power of two of them one below the other, has a column in registers, so that it is read once
// and written once, by one launch; columns side by side, also those of neighbouring outer items,
// are neighbouring threads'.
#pragma once
#include "kernels/pairs.cuh"
#include "kernels/quick_exp.cuh"
#include "kernels/quotient.cuh"
#include "kernels/rows.cuh"

namespace pvg {

namespace {

constexpr int column_threads = 256, most_threads = 1024; // of a block: of long columns the most
constexpr int held_rows = 16; // of a thread, of long columns half of it, of the shortest 4
constexpr int most_down = 64; // threads of a column that is not long

// What all exponentials of a row or column are divided by, or their logarithms less. Of halves a
// product with its inverse has the digits.
template <class T, class A> __device__ __forceinline__ A total_of(A sum, bool logarithm) {
    if constexpr (is_half<T>)
        return logarithm ? log(sum) : reciprocal_of(sum);
    else
        return logarithm ? log(sum) : sum;
}
// Where the largest is infinite, infinity minus infinity has made the sum NaN.
template <class T, class A>
__device__ __forceinline__ A finished(A x, A total, bool logarithm) {
    if (logarithm) return x - total;
    return is_half<T> ? x * total : x / total;
}

struct SoftColumns {
    const void *from;
    void *to;
    int64_t columns, inner;             // columns of all outer items, and of one
    int64_t from_outer, from_row, step; // elements; those of `to` lie side by side
    int length, down;
    bool logarithm;
};

// Of all threads of a column: the largest, or the sum; in one order, whoever asks.
template <bool SUM, class A>
__device__ __forceinline__ A over_column(A value, A *shared, int x, int y, int across, int down) {
    for (int half = down / 2; half > 0; half /= 2) {
        if (y >= half && y < 2 * half) shared[y * across + x] = value;
        __syncthreads();
        if (y < half) {
            const A other = shared[(y + half) * across + x];
            value = SUM ? value + other : larger(value, other);
        }
    }
    if (down == 1) return value;
    if (y == 0) shared[x] = value;
    __syncthreads();
    value = shared[x];
    __syncthreads();
    return value;
}

template <class T, int HELD>
__global__ void __launch_bounds__(HELD == held_rows / 2 ? most_threads : column_threads)
    softmax_columns_kernel(const SoftColumns job) {
    using A = ComputeType<T>;
    __shared__ A shared[HELD == held_rows / 2 ? most_threads : column_threads];
    const int across = static_cast<int>(blockDim.x) / job.down, x = threadIdx.x % across;
    const int y = threadIdx.x / across, down = job.down;
    const int64_t column = static_cast<int64_t>(blockIdx.x) * across + x;
    const bool here = column < job.columns;
    const bool is_first = !here || column < job.inner; // as all are without outer items
    const int64_t outer = is_first ? 0 : quotient(column, job.inner);
    const int64_t inner = here ? column - outer * job.inner : 0;
    const int length = here ? job.length : 0;
    const T *from = static_cast<const T *>(job.from) + outer * job.from_outer + inner * job.step;
    T *to = static_cast<T *>(job.to) + outer * job.length * job.inner + inner;
    T loaded[HELD];
    A held[HELD], most = -static_cast<A>(INFINITY), sum = 0;
#pragma unroll
    for (int k = 0; k < HELD; k++)
        if (y + k * down < length) loaded[k] = from[(y + k * down) * job.from_row];
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        held[k] = y + k * down < length ? static_cast<A>(loaded[k]) : -static_cast<A>(INFINITY);
        most = larger(most, held[k]);
    }
    most = over_column<false>(most, shared, x, y, across, down);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        if (y + k * down >= length) continue;
        held[k] -= most;
        const A power = exp_for<T>(held[k]);
        if (!job.logarithm) held[k] = power;
        sum += power;
    }
    sum = over_column<true>(sum, shared, x, y, across, down);
    const A total = total_of<T>(sum, job.logarithm);
#pragma unroll
    for (int k = 0; k < HELD; k++)
        if (y + k * down < length)
            to[(y + k * down) * job.inner] =
                static_cast<T>(finished<T>(held[k], total, job.logarithm));
}

// If the axes are [outer][length][inner], each stepped through evenly, with a short one in the
// middle that is softmax's, and the result is contiguous.
inline bool find_columns(const pvg_array *a, const bool *reduced, const pvg_array *target,
                         SoftColumns *job) {
    if (!is_contiguous(target)) return false;
    int64_t length[3] = {1, 1, 1}, stride[3] = {0, 0, 0}; // inner, length, outer
    int part = 0;
    for (int i = a->ndim - 1; i >= 0; i--) {
        if (a->shape[i] == 1) continue;
        if (part != 1 && reduced[i]) part++;
        if (part == 1 && !reduced[i]) part++;
        if (part > 2 || (part != 1 && reduced[i])) return false;
        if (length[part] == 1)
            stride[part] = a->strides[i];
        else if (a->strides[i] != stride[part] * length[part])
            return false;
        length[part] *= a->shape[i];
    }
    if (length[1] > held_rows / 2 * most_threads || length[1] == 1) return false;
    *job = {a->data,   target->data, length[0] * length[2],       length[0], stride[2],
            stride[1], stride[0],    static_cast<int>(length[1]), 1,         false};
    return job->columns < INT32_MAX;
}

// Others are better read twice, by warps whose lanes have neighbouring columns. The way depends, as
// who adds what, on lengths alone, and not on the number of outer items, which may be a batch.
inline bool suits_columns(const SoftColumns &job) {
    return job.length <= 8 * held_rows || job.inner <= 32;
}

template <class T> int launch_soft_columns(Call &call, SoftColumns job) {
    constexpr int few_rows = held_rows / 2, least_rows = held_rows / 4;
    const bool is_long = job.length > held_rows * most_down;
    const int threads = is_long ? most_threads : column_threads;
    while (job.down < (is_long ? most_threads : most_down) && job.length > few_rows * job.down)
        job.down *= 2;
    const unsigned blocks = blocks_for(job.columns, threads / job.down);
    if (job.length <= least_rows)
        PVG_LAUNCH((softmax_columns_kernel<T, least_rows>), blocks, threads, 0, call.stream, job);
    else if (job.length <= few_rows * job.down)
        PVG_LAUNCH((softmax_columns_kernel<T, few_rows>), blocks, threads, 0, call.stream, job);
    else
        PVG_LAUNCH((softmax_columns_kernel<T, held_rows>), blocks, threads, 0, call.stream, job);
    return PVG_OK;
}

} // namespace

} // namespace pvg
