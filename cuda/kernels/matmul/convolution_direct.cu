// Convolutions of few channels in a group, such as one (depthwise): sums made element by element,
// where a product's tiles would be all but empty. In the compute type, rounded once.
#include "kernels/matmul/convolution.cuh"

namespace pvg {
namespace {

constexpr int direct_threads = 256, weight_threads = 128;
constexpr int most_channels = 4; // of a group, on either side
// The gradient of the weight: blocks to have, and windows that one goes through at least.
constexpr int64_t enough_blocks = 1024, least_windows = 4096;

struct Direct {
    const void *a, *b; // the operands in the order of the call
    void *to;
    int64_t size; // of what is written
    int64_t images, channels, out, inputs, results;
    int64_t chunk; // of the windows of all images, for the weight
    Divider<int64_t> by_columns, by_rows, by_channels, by_group;
    Windows windows;
};

// x at a row and a column, and 0 around it.
template <class T>
__device__ __forceinline__ ComputeType<T> value_at(const Windows &windows, const T *matrix,
                                                   int64_t row, int64_t column) {
    using A = ComputeType<T>;
    const bool inside = windows.rows.has(row) && windows.columns.has(column);
    return inside ? static_cast<A>(matrix[row * windows.columns.length + column]) : A(0);
}

template <class T>
__global__ void __launch_bounds__(direct_threads) direct_kernel(const Direct job) {
    const int64_t at = int64_t(blockIdx.x) * direct_threads + threadIdx.x;
    if (at >= job.size) return;
    const WindowAxis &rows = job.windows.rows, &columns = job.windows.columns;
    int64_t column = at, row = split(job.by_columns, &column), result = split(job.by_rows, &row);
    const int64_t image = split(job.by_channels, &result);   // of all results
    const int64_t group = quotient_of(job.by_group, result); // by results of a group
    const int64_t picture = rows.length * columns.length;
    const T *x =
        static_cast<const T *>(job.a) + (image * job.channels + group * job.inputs) * picture;
    const T *weight =
        static_cast<const T *>(job.b) + result * job.inputs * (rows.kernel * columns.kernel);
    const int64_t top = row * rows.stride - rows.before;
    const int64_t left = column * columns.stride - columns.before;
    ComputeType<T> sum = 0;
    for (int64_t input = 0; input < job.inputs; input++, x += picture)
        for (int64_t i = 0; i < rows.kernel; i++)
            for (int64_t j = 0; j < columns.kernel; j++)
                sum +=
                    value_at(job.windows, x, top + i * rows.dilation, left + j * columns.dilation) *
                    static_cast<ComputeType<T>>(*weight++);
    static_cast<T *>(job.to)[at] = static_cast<T>(sum);
}

template <class T>
__global__ void __launch_bounds__(direct_threads) direct_input_kernel(const Direct job) {
    using A = ComputeType<T>;
    const int64_t at = int64_t(blockIdx.x) * direct_threads + threadIdx.x;
    if (at >= job.size) return;
    const WindowAxis &rows = job.windows.rows, &columns = job.windows.columns;
    int64_t x = at, y = split(job.by_columns, &x), input = split(job.by_rows, &y);
    const int64_t image = split(job.by_channels, &input);
    const int64_t group = split(job.by_group, &input);
    const int64_t spots = rows.windows * columns.windows, kernel = rows.kernel * columns.kernel;
    const T *gradient =
        static_cast<const T *>(job.a) + (image * job.out + group * job.results) * spots;
    const T *weight =
        static_cast<const T *>(job.b) + (group * job.results * job.inputs + input) * kernel;
    A sum = 0;
    for (int64_t result = 0; result < job.results; result++) {
        rows.windows_with(y, [&](int64_t row, int64_t i) {
            columns.windows_with(x, [&](int64_t column, int64_t j) {
                sum += static_cast<A>(gradient[row * columns.windows + column]) *
                       static_cast<A>(weight[i * columns.kernel + j]);
            });
        });
        gradient += spots, weight += job.inputs * kernel;
    }
    static_cast<T *>(job.to)[at] = static_cast<T>(sum);
}

// A block has one element of the weight and one chunk of the windows of all images.
template <class T>
__global__ void __launch_bounds__(weight_threads) direct_weight_kernel(const Direct job) {
    using A = ComputeType<T>;
    __shared__ A shared[weight_threads];
    const WindowAxis &rows = job.windows.rows, &columns = job.windows.columns;
    const int64_t element = blockIdx.x % job.size, part = blockIdx.x / job.size;
    const int64_t j = element % columns.kernel, i = element / columns.kernel % rows.kernel;
    const int64_t pair = element / (columns.kernel * rows.kernel), result = pair / job.inputs;
    const int64_t channel = result / job.results * job.inputs + pair % job.inputs;
    const int64_t spots = rows.windows * columns.windows, picture = rows.length * columns.length;
    const int64_t all = job.images * spots;
    const int64_t end = (part + 1) * job.chunk < all ? (part + 1) * job.chunk : all;
    const T *gradient = static_cast<const T *>(job.a) + result * spots;
    const T *x = static_cast<const T *>(job.b) + channel * picture;
    A sum = 0;
    for (int64_t at = part * job.chunk + threadIdx.x; at < end; at += weight_threads) {
        int64_t column = at, row = split(job.by_columns, &column);
        const int64_t image = split(job.by_rows, &row);
        const A value = value_at(job.windows, x + image * job.channels * picture,
                                 row * rows.stride - rows.before + i * rows.dilation,
                                 column * columns.stride - columns.before + j * columns.dilation);
        sum += value *
               static_cast<A>(gradient[image * job.out * spots + row * columns.windows + column]);
    }
    shared[threadIdx.x] = sum;
    for (unsigned half = weight_threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0) static_cast<A *>(job.to)[blockIdx.x] = shared[0];
}

Direct plan_direct(const Convolution &c, const pvg_array *a, const pvg_array *b, void *to) {
    Direct job = {};
    job.a = a->data, job.b = b->data, job.to = to;
    job.images = c.images, job.channels = c.channels, job.out = c.out;
    job.inputs = c.inputs(), job.results = c.results();
    job.windows = c.windows;
    return job;
}

} // namespace

bool is_direct(const Convolution &c) {
    return c.groups > 1 && c.inputs() <= most_channels && c.results() <= most_channels;
}

int launch_direct(Call &call, const Convolution &c, const pvg_array *x, const pvg_array *weight,
                  const pvg_array *y) {
    Direct job = plan_direct(c, x, weight, y->data);
    job.size = y->size;
    job.by_columns = divider(c.windows.columns.windows, job.size);
    job.by_rows = divider(c.windows.rows.windows, job.size);
    job.by_channels = divider(c.out, job.size), job.by_group = divider(c.results(), job.size);
    PVG_PASS(call.reads(x));
    PVG_PASS(call.reads(weight));
    return dispatch<floats>(y->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(direct_kernel<T>, blocks_for(job.size, direct_threads), direct_threads, 0,
                   call.stream, job);
        return PVG_OK;
    });
}

int launch_direct_input(Call &call, const Convolution &c, const pvg_array *gradient,
                        const pvg_array *weight, const pvg_array *dx) {
    Direct job = plan_direct(c, gradient, weight, dx->data);
    job.size = dx->size;
    job.by_columns = divider(c.windows.columns.length, job.size);
    job.by_rows = divider(c.windows.rows.length, job.size);
    job.by_channels = divider(c.channels, job.size), job.by_group = divider(c.inputs(), job.size);
    PVG_PASS(call.reads(gradient));
    PVG_PASS(call.reads(weight));
    return dispatch<floats>(dx->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(direct_input_kernel<T>, blocks_for(job.size, direct_threads), direct_threads, 0,
                   call.stream, job);
        return PVG_OK;
    });
}

int launch_direct_weight(Call &call, const Convolution &c, const pvg_array *gradient,
                         const pvg_array *x, const pvg_array *dweight) {
    const int64_t all = c.images * c.spots(), most = (all - 1) / least_windows + 1;
    const int64_t wanted = (enough_blocks - 1) / dweight->size + 1;
    const int64_t chunks = wanted < most ? wanted : most;
    Temporary parts;
    return dispatch<floats>(dweight->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const int64_t shape[] = {chunks * dweight->size};
        PVG_PASS(new_array(call.device, DtypeOf<ComputeType<T>>::value, 1, shape, &parts.array));
        Direct job = plan_direct(c, gradient, x, parts.array->data);
        job.size = dweight->size;
        job.chunk = (all - 1) / chunks + 1;
        job.by_columns = divider(c.windows.columns.windows, all);
        job.by_rows = divider(c.windows.rows.windows, all);
        PVG_PASS(call.reads(gradient));
        PVG_PASS(call.reads(x));
        PVG_LAUNCH(direct_weight_kernel<T>, blocks_for(chunks * job.size, 1), weight_threads, 0,
                   call.stream, job);
        return launch_sum_of_parts(call, parts.array, chunks, dweight);
    });
}

} // namespace pvg
