// pvg_pool and pvg_pool_backward: the largest elements, or the means, of windows over matrices.
//
// Forward a thread has a few windows, a block apart, so that neighbours read neighbours. Backward
// it has 16 bytes of elements side by side, and each gathers from the windows that it is in, in one
// order: no atomics. Where a maximum was is written down forward, as one comparison backward is
// cheaper than to look for it again in every window.
#include "arrays/operation.cuh"
#include "arrays/vector.cuh"
#include "kernels/windows.cuh"

namespace pvg {

namespace {

constexpr int pool_threads = 256;

struct Pool {
    const void *from;
    void *to;
    int32_t *places;            // or NULL
    int64_t size;               // elements of what is written
    Divider by_columns, by_rows; // of what is written
    Windows windows;
    bool with_padding, aligned;
};

template <class T> struct Largest {
    T best;
    int place = -1;
    __device__ __forceinline__ void add(T element, int i) {
        const auto value = static_cast<ComputeType<T>>(element);
        const auto old = static_cast<ComputeType<T>>(best);
        if (place < 0 || (!(value <= old) && old == old)) best = element, place = i;
    }
};

// Calls add(element, i) for each of a window's elements that is in the matrix, the i-th of the
// kernel. KERNEL: its side, or 0: any.
template <int KERNEL, class T, class F>
__device__ __forceinline__ void walk_window(const Windows &windows, const T *matrix, int64_t row,
                                            int64_t column, const F &add) {
    const WindowAxis &rows = windows.rows, &columns = windows.columns;
    const int64_t y = row * rows.stride - rows.before, x = column * columns.stride - columns.before;
    const int high = KERNEL ? KERNEL : static_cast<int>(rows.kernel);
    const int wide = KERNEL ? KERNEL : static_cast<int>(columns.kernel);
#pragma unroll
    for (int i = 0; i < high; i++) {
        const int64_t at_row = y + i * rows.dilation;
        if (!rows.has(at_row)) continue;
        const T *line = matrix + at_row * columns.length;
#pragma unroll
        for (int j = 0; j < wide; j++) {
            const int64_t at = x + j * columns.dilation;
            if (columns.has(at)) add(line[at], i * wide + j);
        }
    }
}

template <class T> constexpr int windows_a_thread = sizeof(T) < 8 ? 8 / sizeof(T) : 1;

template <class T, int KERNEL>
__global__ void __launch_bounds__(pool_threads) max_pool_kernel(const Pool job) {
    const int64_t matrix = job.windows.rows.length * job.windows.columns.length;
#pragma unroll
    for (int e = 0; e < windows_a_thread<T>; e++) {
        const int64_t at =
            (int64_t(blockIdx.x) * windows_a_thread<T> + e) * pool_threads + threadIdx.x;
        if (at >= job.size) return;
        int64_t column = at, row = job.by_columns.split(&column);
        const T *from = static_cast<const T *>(job.from) + job.by_rows.split(&row) * matrix;
        Largest<T> found = {static_cast<T>(-INFINITY)};
        walk_window<KERNEL>(job.windows, from, row, column,
                            [&](T element, int i) { found.add(element, i); });
        static_cast<T *>(job.to)[at] = found.best;
        if (job.places) job.places[at] = found.place;
    }
}

template <class T, int KERNEL>
__global__ void __launch_bounds__(pool_threads) mean_pool_kernel(const Pool job) {
    using A = ComputeType<T>;
    const int64_t matrix = job.windows.rows.length * job.windows.columns.length;
    const int64_t all = job.windows.rows.kernel * job.windows.columns.kernel;
#pragma unroll
    for (int e = 0; e < windows_a_thread<T>; e++) {
        const int64_t at =
            (int64_t(blockIdx.x) * windows_a_thread<T> + e) * pool_threads + threadIdx.x;
        if (at >= job.size) return;
        int64_t column = at, row = job.by_columns.split(&column);
        const T *from = static_cast<const T *>(job.from) + job.by_rows.split(&row) * matrix;
        A sum = 0;
        int64_t count = 0;
        walk_window<KERNEL>(job.windows, from, row, column, [&](T element, int) {
            sum += static_cast<A>(element);
            count++;
        });
        if (job.with_padding) count = all;
        static_cast<T *>(job.to)[at] = static_cast<T>(sum / static_cast<A>(count));
    }
}

// What element (y, x) gets of the gradients and places of a matrix of windows.
template <class T, bool LARGEST>
__device__ __forceinline__ T gathered(const Pool &job, const T *gradient, const int32_t *places,
                                      int64_t y, int64_t x) {
    using A = ComputeType<T>;
    const WindowAxis &rows = job.windows.rows, &columns = job.windows.columns;
    A sum = 0;
    rows.windows_with(y, [&](int64_t row, int64_t i) {
        columns.windows_with(x, [&](int64_t column, int64_t j) {
            const int64_t at = row * columns.windows + column;
            if constexpr (LARGEST) {
                if (places[at] == i * columns.kernel + j) sum += static_cast<A>(gradient[at]);
            } else {
                const int64_t count = job.with_padding ? 1 : rows.inside(row) * columns.inside(column);
                sum += static_cast<A>(gradient[at]) / static_cast<A>(count);
            }
        });
    });
    if (!LARGEST && job.with_padding) sum /= static_cast<A>(rows.kernel * columns.kernel);
    return static_cast<T>(sum);
}

template <class T, bool LARGEST>
__global__ void __launch_bounds__(pool_threads) pool_backward_kernel(const Pool job) {
    constexpr int count = 16 / sizeof(T);
    const WindowAxis &rows = job.windows.rows, &columns = job.windows.columns;
    const int64_t first = (int64_t(blockIdx.x) * pool_threads + threadIdx.x) * count;
    if (first >= job.size) return;
    int64_t x = first, y = job.by_columns.split(&x), matrix = job.by_rows.split(&y);
    const T *from = static_cast<const T *>(job.from);
    Vector<T, count> vector;
#pragma unroll
    for (int e = 0; e < count; e++) {
        if (first + e >= job.size) break;
        const int64_t start = matrix * rows.windows * columns.windows;
        vector.element[e] = gathered<T, LARGEST>(
            job, from + start, LARGEST ? job.places + start : nullptr, y, x);
        if (++x == columns.length) {
            x = 0;
            if (++y == rows.length) y = 0, matrix++;
        }
    }
    T *to = static_cast<T *>(job.to) + first;
    if (job.aligned && first + count <= job.size) {
        store_at_once(to, vector);
        return;
    }
#pragma unroll
    for (int e = 0; e < count; e++)
        if (first + e < job.size) to[e] = vector.element[e];
}

template <class T, int KERNEL> int launch_forward(Call &call, bool largest, const Pool &job) {
    const unsigned blocks = blocks_for(job.size, pool_threads * windows_a_thread<T>);
    if (largest)
        PVG_LAUNCH((max_pool_kernel<T, KERNEL>), blocks, pool_threads, 0, call.stream, job);
    else
        PVG_LAUNCH((mean_pool_kernel<T, KERNEL>), blocks, pool_threads, 0, call.stream, job);
    return PVG_OK;
}

int check_pool(int operation, const pvg_array *a, int with_padding) {
    PVG_REQUIRE(operation == PVG_MAX || operation == PVG_MEAN, PVG_ERROR_VALUE,
                "windows have a largest element (PVG_MAX) or a mean (PVG_MEAN), got operation %d",
                operation);
    PVG_REQUIRE(with_padding == 0 || with_padding == 1, PVG_ERROR_VALUE,
                "with_padding is 0 or 1, got %d", with_padding);
    PVG_PASS(check_kinds(a->dtype, floats));
    PVG_REQUIRE(a->ndim >= 2, PVG_ERROR_VALUE, "takes matrices, got an array of shape %s",
                shape_text(a));
    return PVG_OK;
}

int check_places(const pvg_array *places, const pvg_array *like, int ndim, const int64_t *shape) {
    int device = -1;
    const pvg_array *both[] = {like, places};
    PVG_PASS(check_operands(both, 2, &device));
    PVG_REQUIRE(places->dtype == PVG_INT32 && is_contiguous(places), PVG_ERROR_VALUE,
                "places is int32 and contiguous, got %s of shape %s", dtype_name(places->dtype),
                shape_text(places));
    PVG_REQUIRE(same_shape(places, ndim, shape), PVG_ERROR_VALUE,
                "places has shape %s, the windows have %s", shape_text(places),
                shape_text(ndim, shape));
    return PVG_OK;
}

// The job but for where things lie: `rows` and `columns` of what is written.
Pool plan_pool(const Windows &windows, int64_t size, int64_t rows, int64_t columns, int padding) {
    Pool job = {};
    job.size = size;
    job.windows = windows;
    job.by_columns = divider(columns, size), job.by_rows = divider(rows, size);
    job.with_padding = padding != 0;
    return job;
}

int run_pool(Call &call, int operation, const pvg_array *a, pvg_array *places,
             const int64_t *numbers, int with_padding, Output *result) {
    int device = -1;
    Windows windows;
    int64_t shape[PVG_MAX_NDIM];
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_pool(operation, a, with_padding));
    const int ndim = a->ndim;
    PVG_PASS(parse_windows(numbers, a->shape[ndim - 2], a->shape[ndim - 1], &windows));
    for (int i = 0; i < ndim; i++) shape[i] = a->shape[i];
    shape[ndim - 2] = windows.rows.windows, shape[ndim - 1] = windows.columns.windows;
    if (places) {
        PVG_REQUIRE(operation == PVG_MAX, PVG_ERROR_VALUE, "means have no places");
        PVG_PASS(check_places(places, a, ndim, shape));
        PVG_REQUIRE(!places->readonly && !may_overlap(a, places), PVG_ERROR_VALUE,
                    "places is read-only, or shares memory with the operand");
    }
    PVG_PASS(call.begin(device));
    Temporary straight;
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    PVG_PASS(result->open(call, a->dtype, ndim, shape, nullptr, nullptr, 0));
    const pvg_array *c = result->array;
    if (c->size == 0) return PVG_OK;
    PVG_PASS(call.reads(a));
    if (places) PVG_PASS(call.writes(places));
    Pool job =
        plan_pool(windows, c->size, windows.rows.windows, windows.columns.windows, with_padding);
    job.from = a->data, job.to = c->data, job.places = places ? data<int32_t>(places) : nullptr;
    const int64_t side = windows.rows.kernel == windows.columns.kernel ? windows.rows.kernel : 0;
    return dispatch<floats>(c->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        if (side == 2) return launch_forward<T, 2>(call, operation == PVG_MAX, job);
        if (side == 3) return launch_forward<T, 3>(call, operation == PVG_MAX, job);
        return launch_forward<T, 0>(call, operation == PVG_MAX, job);
    });
}

int run_pool_backward(Call &call, int operation, const pvg_array *gradient,
                      const pvg_array *places, const int64_t *numbers, int with_padding,
                      const int64_t *size, Output *result) {
    int device = -1;
    Windows windows;
    int64_t shape[PVG_MAX_NDIM];
    PVG_PASS(check_operands(&gradient, 1, &device));
    PVG_PASS(check_pool(operation, gradient, with_padding));
    const int ndim = gradient->ndim;
    PVG_PASS(parse_windows(numbers, size[0], size[1], &windows));
    PVG_REQUIRE(gradient->shape[ndim - 2] == windows.rows.windows &&
                    gradient->shape[ndim - 1] == windows.columns.windows,
                PVG_ERROR_VALUE, "a gradient of shape %s for (%lld, %lld) windows",
                shape_text(gradient), static_cast<long long>(windows.rows.windows),
                static_cast<long long>(windows.columns.windows));
    PVG_REQUIRE((places != nullptr) == (operation == PVG_MAX), PVG_ERROR_VALUE,
                "the largest elements have places, and means have none");
    if (places) PVG_PASS(check_places(places, gradient, ndim, gradient->shape));
    for (int i = 0; i < ndim; i++) shape[i] = gradient->shape[i];
    shape[ndim - 2] = size[0], shape[ndim - 1] = size[1];
    PVG_PASS(call.begin(device));
    Temporary straight;
    PVG_PASS(as_contiguous(call, gradient, &straight, &gradient));
    PVG_PASS(result->open(call, gradient->dtype, ndim, shape, nullptr, nullptr, 0));
    const pvg_array *c = result->array;
    if (c->size == 0) return PVG_OK;
    PVG_PASS(call.reads(gradient));
    if (places) PVG_PASS(call.reads(places));
    Pool job = plan_pool(windows, c->size, size[0], size[1], with_padding);
    job.from = gradient->data, job.to = c->data;
    job.places = places ? data<int32_t>(places) : nullptr;
    job.aligned = reinterpret_cast<uintptr_t>(c->data) % 16 == 0;
    return dispatch<floats>(c->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const unsigned blocks = blocks_for(c->size, pool_threads * (16 / sizeof(T)));
        if (places)
            PVG_LAUNCH((pool_backward_kernel<T, true>), blocks, pool_threads, 0, call.stream, job);
        else
            PVG_LAUNCH((pool_backward_kernel<T, false>), blocks, pool_threads, 0, call.stream, job);
        return PVG_OK;
    });
}

} // namespace

Operations pool_operations() {
    static constexpr Operation rows[] = {
        {PVG_POOL, "pool", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_pool(int operation, const pvg_array *a, pvg_array *places,
                            const int64_t *windows, int with_padding) {
    pvg::Call call("pool");
    pvg::Output result;
    int status = pvg::run_pool(call, operation, a, places, windows, with_padding, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_pool_backward(int operation, const pvg_array *gradient,
                                     const pvg_array *places, const int64_t *windows,
                                     int with_padding, int64_t height, int64_t width) {
    pvg::Call call("pool_backward");
    pvg::Output result;
    const int64_t size[] = {height, width};
    int status = pvg::run_pool_backward(call, operation, gradient, places, windows, with_padding,
                                        size, &result);
    return result.close(call, status);
}
