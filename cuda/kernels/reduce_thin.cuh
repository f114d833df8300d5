// Columns that are short: [outer][length][inner] with a short axis in the middle, whose
// accumulators are large. columns_kernel deals each column to several threads, whose accumulators
// it merges; here that would be most of the work. So a thread has a column, or two to eight have a
// longer one: columns side by side, also those of neighbouring outer items, are neighbouring
// threads'.
//
// Who adds what depends on the lengths alone, as everywhere.
#pragma once
#include "kernels/quotient.cuh"
#include "kernels/reduce_launch.cuh"

namespace pvg::reduce {

namespace {

constexpr int thin_threads = 256, thin_rows_in_flight = 8;
constexpr int64_t thin_rows = 1 << 6; // up to which it always pays

struct Thin {
    const void *data;
    int64_t columns, inner; // columns of all outer items, and of one
    int64_t outer_stride, row_stride, step;
    int length, down; // threads of a column, a power of two
};

template <class T, class Acc>
__global__ void __launch_bounds__(thin_threads) thin_columns_kernel(Thin c, Result result) {
    __shared__ Acc shared[thin_threads];
    const int across = thin_threads / c.down, x = threadIdx.x % across, y = threadIdx.x / across;
    const int64_t column = static_cast<int64_t>(blockIdx.x) * across + x;
    const bool here = column < c.columns;
    const bool is_first = !here || column < c.inner; // as all are without outer items
    const int64_t i = is_first ? 0 : quotient(column, c.inner), j = column - i * c.inner;
    const T *from = static_cast<const T *>(c.data) + i * c.outer_stride + j * c.step;
    Acc acc[1] = {Acc::identity()};
    for (int row = y; here && row < c.length; row += thin_rows_in_flight * c.down) {
        T loaded[thin_rows_in_flight];
#pragma unroll
        for (int k = 0; k < thin_rows_in_flight; k++)
            if (row + k * c.down < c.length) loaded[k] = from[(row + k * c.down) * c.row_stride];
#pragma unroll
        for (int k = 0; k < thin_rows_in_flight; k++)
            if (row + k * c.down < c.length)
                acc[0].add(computed(loaded[k]), row + k * c.down, result);
    }
    merge_down<thin_threads>(acc, shared, y, across, c.down);
    if (here && y == 0) store(acc[0], result, i * result.outer_stride + j * result.inner_stride);
}

// Short columns, or those that leave columns_kernel's blocks with less than a warp side by side.
// The number of outer items, which may be a batch, does not count.
inline bool is_thin(const Layout &p) {
    if (p.anywhere || p.after || p.nested || p.inner == 1 || p.length == 0) return false;
    if (p.outer * p.inner / thin_threads > INT32_MAX / 8) return false;
    const bool narrow = p.inner <= 32 || p.inner >= 512 * thin_rows;
    return p.length <= thin_rows || (narrow && p.length <= 8 * thin_rows);
}

template <class T, class Acc> int reduce_thin(Call &call, const void *data, const Layout &p,
                                              const Result &result) {
    PVG_REQUIRE(can_store<Acc>(result.dtype), PVG_ERROR_TYPE, "cannot give %s",
                dtype_name(result.dtype));
    Thin c = {data,           p.outer * p.inner,          p.inner, p.outer_stride, p.length_stride,
              p.inner_stride, static_cast<int>(p.length), 1};
    constexpr int64_t many = 1 << 18; // as many threads fill a large card
    while (c.down < 8 && p.length >= 16 * c.down && p.inner * c.down < many) c.down *= 2;
    PVG_LAUNCH((thin_columns_kernel<T, Acc>), blocks_for(c.columns, thin_threads / c.down),
               thin_threads, 0, call.stream, c, result);
    return PVG_OK;
}

// Columns side by side that are many: a thread has some of them, so that a row's loads of all are
// under way together, and takes no step for rows that there are not.
template <class T, class Acc> constexpr int wide_each = sizeof(Acc) > 16 ? 2 : 4; // columns

template <class T, class Acc>
__global__ void __launch_bounds__(thin_threads)
    wide_columns_kernel(Thin c, unsigned across, Result result) {
    constexpr int each = wide_each<T, Acc>;
    const int64_t i = blockIdx.x / across;
    const int64_t first = int64_t(blockIdx.x % across) * (thin_threads * each) + threadIdx.x;
    const T *from[each];
    Acc acc[each];
    T next[each];
#pragma unroll
    for (int e = 0; e < each; e++) {
        const int64_t column = first + e * thin_threads, there = c.inner - 1;
        from[e] = static_cast<const T *>(c.data) + i * c.outer_stride +
                  (column < c.inner ? column : there) * c.step;
        acc[e] = Acc::identity();
        next[e] = *from[e];
    }
    for (int row = 0; row < c.length; row++) {
        T loaded[each];
#pragma unroll
        for (int e = 0; e < each; e++) {
            loaded[e] = next[e], from[e] += c.row_stride;
            if (row + 1 < c.length) next[e] = *from[e];
        }
#pragma unroll
        for (int e = 0; e < each; e++) acc[e].add(computed(loaded[e]), row, result);
    }
#pragma unroll
    for (int e = 0; e < each; e++) {
        const int64_t column = first + e * thin_threads;
        if (column < c.inner)
            store(acc[e], result, i * result.outer_stride + column * result.inner_stride);
    }
}

inline bool is_wide(const Layout &p) { return is_thin(p) && p.length < 16 && p.inner >= 1 << 16; }

template <class T, class Acc> int reduce_wide(Call &call, const void *data, const Layout &p,
                                              const Result &result) {
    PVG_REQUIRE(can_store<Acc>(result.dtype), PVG_ERROR_TYPE, "cannot give %s",
                dtype_name(result.dtype));
    const Thin c = {
        data,           p.outer * p.inner,          p.inner, p.outer_stride, p.length_stride,
        p.inner_stride, static_cast<int>(p.length), 1};
    const unsigned across = blocks_for(p.inner, thin_threads * wide_each<T, Acc>);
    PVG_LAUNCH((wide_columns_kernel<T, Acc>), blocks_for(p.outer * across, 1), thin_threads, 0,
               call.stream, c, across, result);
    return PVG_OK;
}

// The way that the layout wants.
template <class T, class Acc> int reduce_large(Call &call, const void *data, const Layout &p,
                                               const Result &result) {
    return is_thin(p) ? reduce_thin<T, Acc>(call, data, p, result)
                      : reduce_as<T, Acc>(call, data, p, result);
}

} // namespace

} // namespace pvg::reduce
