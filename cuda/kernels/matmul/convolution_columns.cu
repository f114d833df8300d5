// Columns of images, the way back from them, and sums of parts.
//
// A thread has one window of one channel, and goes through the kernel: it divides its position
// once, neighbours read neighbours, and what they write lies side by side.
#include "kernels/matmul/convolution.cuh"

namespace pvg {
namespace {

constexpr int columns_threads = 256;

struct Columns {
    const void *from;
    void *to;
    int64_t size; // positions, each a thread
    int64_t channels, kernel_step, image_step;
    Divider<int64_t> by_columns, by_rows, by_channels;
    Windows windows;
};

template <class T>
__global__ void __launch_bounds__(columns_threads) columns_kernel(const Columns job) {
    const int64_t at = int64_t(blockIdx.x) * columns_threads + threadIdx.x;
    if (at >= job.size) return;
    const WindowAxis &rows = job.windows.rows, &columns = job.windows.columns;
    int64_t column = at, row = split(job.by_columns, &column);
    const int64_t matrix = split(job.by_rows, &row);
    int64_t channel = matrix;
    const int64_t image = split(job.by_channels, &channel);
    const T *from = static_cast<const T *>(job.from) + matrix * (rows.length * columns.length);
    T *to = static_cast<T *>(job.to) + image * job.image_step +
            channel * (rows.kernel * columns.kernel) * job.kernel_step + row * columns.windows +
            column;
    const int64_t y = row * rows.stride - rows.before, x = column * columns.stride - columns.before;
    for (int64_t i = 0; i < rows.kernel; i++) {
        const int64_t at_row = y + i * rows.dilation;
        const bool inside = rows.has(at_row);
        for (int64_t j = 0; j < columns.kernel; j++) {
            const int64_t at_column = x + j * columns.dilation;
            const bool there = inside && columns.has(at_column);
            *to = there ? from[at_row * columns.length + at_column] : T(0.0f);
            to += job.kernel_step;
        }
    }
}

template <class From, class To>
__global__ void __launch_bounds__(columns_threads) picture_kernel(const Columns job) {
    const int64_t at = int64_t(blockIdx.x) * columns_threads + threadIdx.x;
    if (at >= job.size) return;
    const WindowAxis &rows = job.windows.rows, &columns = job.windows.columns;
    int64_t x = at, y = split(job.by_columns, &x), channel = split(job.by_rows, &y);
    const int64_t image = split(job.by_channels, &channel);
    const From *from = static_cast<const From *>(job.from) + image * job.image_step +
                       channel * (rows.kernel * columns.kernel) * job.kernel_step;
    ComputeType<To> sum = 0;
    rows.windows_with(y, [&](int64_t row, int64_t i) {
        columns.windows_with(x, [&](int64_t column, int64_t j) {
            const From value =
                from[(i * columns.kernel + j) * job.kernel_step + row * columns.windows + column];
            sum += static_cast<ComputeType<To>>(value);
        });
    });
    static_cast<To *>(job.to)[at] = static_cast<To>(sum);
}

template <class T>
__global__ void __launch_bounds__(columns_threads)
    sum_of_parts_kernel(const ComputeType<T> *parts, int64_t count, int64_t size, T *to) {
    const int64_t at = int64_t(blockIdx.x) * columns_threads + threadIdx.x;
    if (at >= size) return;
    ComputeType<T> sum = 0;
    for (int64_t i = 0; i < count; i++) sum += parts[i * size + at];
    to[at] = static_cast<T>(sum);
}

Columns plan_columns(const Convolution &c, const ColumnsPart &part, int64_t rows, int64_t columns) {
    Columns job = {};
    const int64_t windows = c.spots();
    job.size = part.images * c.channels * rows * columns;
    job.channels = c.channels;
    job.kernel_step = part.side_by_side ? part.images * windows : windows;
    job.image_step = part.side_by_side ? windows : c.channels * c.kernel() * windows;
    job.by_columns = divider(columns, job.size), job.by_rows = divider(rows, job.size);
    job.by_channels = divider(c.channels, job.size);
    job.windows = c.windows;
    return job;
}

void *from_image(const Convolution &c, const ColumnsPart &part, const pvg_array *a) {
    return a->data + part.first * c.channels * c.picture() * dtype_size(a->dtype);
}

} // namespace

int launch_columns(Call &call, const Convolution &c, const ColumnsPart &part, const pvg_array *x,
                   const pvg_array *columns) {
    Columns job = plan_columns(c, part, c.windows.rows.windows, c.windows.columns.windows);
    job.from = from_image(c, part, x), job.to = columns->data;
    PVG_PASS(call.reads(x));
    return dispatch<floats>(x->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(columns_kernel<T>, blocks_for(job.size, columns_threads), columns_threads, 0,
                   call.stream, job);
        return PVG_OK;
    });
}

int launch_picture(Call &call, const Convolution &c, const ColumnsPart &part,
                   const pvg_array *columns, const pvg_array *dx) {
    Columns job = plan_columns(c, part, c.windows.rows.length, c.windows.columns.length);
    job.from = columns->data, job.to = from_image(c, part, dx);
    const unsigned blocks = blocks_for(job.size, columns_threads);
    return dispatch<floats>(dx->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        using A = ComputeType<T>;
        if (columns->dtype == dx->dtype)
            PVG_LAUNCH((picture_kernel<T, T>), blocks, columns_threads, 0, call.stream, job);
        else
            PVG_LAUNCH((picture_kernel<A, T>), blocks, columns_threads, 0, call.stream, job);
        return PVG_OK;
    });
}

int launch_sum_of_parts(Call &call, const pvg_array *parts, int64_t count, const pvg_array *to) {
    return dispatch<floats>(to->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(sum_of_parts_kernel<T>, blocks_for(to->size, columns_threads), columns_threads,
                   0, call.stream, data<ComputeType<T>>(parts), count, to->size, data<T>(to));
        return PVG_OK;
    });
}

} // namespace pvg
