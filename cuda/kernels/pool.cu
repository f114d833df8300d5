// pvg_pool and pvg_pool_backward: the largest elements, or the means, of windows over matrices.
//
// A thread has a few elements of what is written, a block apart: neighbours read neighbours.
// Backward each gathers from the windows that it is in, in one order: no atomics. Where a maximum
// was is written down forward, as one comparison backward is cheaper than to look for it again in
// every window. Positions are of 32 bits where they can be: what limits these kernels beside the
// memory is arithmetic on them.
#include "arrays/operation.cuh"
#include "kernels/windows.cuh"

namespace pvg {

namespace {

constexpr int pool_threads = 256;

// I: the type of positions. With int32_t all elements that are read or written are fewer than 2^31.
template <class I> struct Pool {
    const void *from;
    void *to;
    int32_t *places;                // or NULL
    I size;                         // elements of what is written
    Divider<I> by_columns, by_rows; // of what is written
    WindowsOf<I> windows;
    bool with_padding;
};

template <class T> constexpr int elements_a_thread = sizeof(T) < 8 ? 8 / sizeof(T) : 1;

// Calls f(at, matrix, row, column) for the elements of a thread, where the `at`-th of all that is
// written lies in the matrix of that number.
template <class T, class I, class F>
__device__ __forceinline__ void walk_elements(const Pool<I> &job, const F &f) {
    const int64_t start = int64_t(blockIdx.x) * elements_a_thread<T> * pool_threads + threadIdx.x;
    if (start >= job.size) return;
    const I first = static_cast<I>(start), left = job.size - first;
#pragma unroll
    for (int e = 0; e < elements_a_thread<T>; e++) {
        if (e * pool_threads >= left) return;
        const I at = first + e * pool_threads;
        I column = at, row = split(job.by_columns, &column);
        const I matrix = split(job.by_rows, &row);
        f(at, matrix, row, column);
    }
}

// ---- Forward ------------------------------------------------------------------------------------

template <class T> struct Largest {
    T best;
    int place = -1;
    __device__ __forceinline__ void add(T element, int i) {
        const auto value = static_cast<ComputeType<T>>(element);
        const auto old = static_cast<ComputeType<T>>(best);
        if (place < 0 || (!(value <= old) && old == old)) best = element, place = i;
    }
};

// The same bits where nobody asks for the place. Nothing is less than what it begins with, and
// nothing is compared with that: compilers make a maximum of it, which has a NaN of its own.
template <class T> struct LargestAlone {
    T best;
    __device__ __forceinline__ void add(T element, int i) {
        const auto value = static_cast<ComputeType<T>>(element);
        const auto old = static_cast<ComputeType<T>>(best);
        if (i == 0 || (!(value <= old) && old == old)) best = element;
    }
};

// Calls add(element, i) for each of a window's elements that is in the matrix, the i-th of the
// kernel. KERNEL: its side, without dilation, and then all are read before the first is added; what
// is outside is `outside` and is added too, if there is such a number. Or 0: any kernel.
template <int KERNEL, bool OUTSIDE, class I, class T, class F>
__device__ __forceinline__ void walk_window(const WindowsOf<I> &windows, const T *matrix, I row,
                                            I column, T outside, const F &add) {
    const WindowAxisOf<I> &rows = windows.rows, &columns = windows.columns;
    const I y = row * rows.stride - rows.before, x = column * columns.stride - columns.before;
    if constexpr (KERNEL > 0) {
        int64_t line = static_cast<int64_t>(y) * columns.length + x; // it may begin outside
        T elements[KERNEL][KERNEL];
        bool inside[KERNEL][KERNEL];
#pragma unroll
        for (int i = 0; i < KERNEL; i++) {
#pragma unroll
            for (int j = 0; j < KERNEL; j++) {
                inside[i][j] = rows.has(y + i) && columns.has(x + j);
                elements[i][j] = inside[i][j] ? matrix[line + j] : outside;
            }
            line += columns.length;
        }
#pragma unroll
        for (int i = 0; i < KERNEL; i++)
#pragma unroll
            for (int j = 0; j < KERNEL; j++)
                if (OUTSIDE || inside[i][j]) add(elements[i][j], i * KERNEL + j);
    } else {
        for (I i = 0; i < rows.kernel; i++) {
            const I at_row = y + i * rows.dilation;
            if (!rows.has(at_row)) continue;
            const T *line = matrix + at_row * columns.length;
            for (I j = 0; j < columns.kernel; j++) {
                const I at = x + j * columns.dilation;
                if (columns.has(at)) add(line[at], static_cast<int>(i * columns.kernel + j));
            }
        }
    }
}

template <class T, class I, int KERNEL, bool PLACES>
__global__ void __launch_bounds__(pool_threads) max_pool_kernel(const Pool<I> job) {
    using Found = std::conditional_t<PLACES, Largest<T>, LargestAlone<T>>;
    const I picture = job.windows.rows.length * job.windows.columns.length;
    walk_elements<T>(job, [&](I at, I number, I row, I column) {
        const T *matrix = static_cast<const T *>(job.from) + number * picture;
        const T least = static_cast<T>(-INFINITY);
        Found found = {least};
        walk_window<KERNEL, !PLACES>(job.windows, matrix, row, column, least,
                                     [&](T element, int i) { found.add(element, i); });
        static_cast<T *>(job.to)[at] = found.best;
        if constexpr (PLACES) job.places[at] = found.place;
    });
}

// A sum of any number of elements: what is rounded off is added up, too, as one chain of additions
// would err with their number.
template <class A> struct Sum {
    A high = 0, low = 0;
    __device__ __forceinline__ void add(A element) {
        const A next = high + element;
        low += element - (next - high);
        high = next;
    }
    // Beside infinities and NaN there is nothing to be added.
    __device__ __forceinline__ A value() const { return low - low == 0 ? high + low : high; }
};

template <class T, class I, int KERNEL>
__global__ void __launch_bounds__(pool_threads) mean_pool_kernel(const Pool<I> job) {
    using A = ComputeType<T>;
    const I picture = job.windows.rows.length * job.windows.columns.length;
    walk_elements<T>(job, [&](I at, I number, I row, I column) {
        const T *matrix = static_cast<const T *>(job.from) + number * picture;
        A sum = 0;
        Sum<A> many;
        I count = 0;
        walk_window<KERNEL, false>(job.windows, matrix, row, column, T(0.0f), [&](T element, int) {
            if constexpr (KERNEL == 0)
                many.add(static_cast<A>(element));
            else
                sum += static_cast<A>(element);
            count++;
        });
        if (KERNEL == 0) sum = many.value();
        if (job.with_padding) count = job.windows.rows.kernel * job.windows.columns.kernel;
        static_cast<T *>(job.to)[at] = static_cast<T>(sum / static_cast<A>(count));
    });
}

// ---- Backward -----------------------------------------------------------------------------------

// What the `at`-th window of all, which is (row, column) of its matrix, gives to its i-th element.
template <class T, bool LARGEST, class I>
__device__ __forceinline__ ComputeType<T> share(const Pool<I> &job, I at, I row, I column, I i) {
    using A = ComputeType<T>;
    const A value = static_cast<A>(static_cast<const T *>(job.from)[at]);
    if constexpr (LARGEST) {
        return job.places[at] == i ? value : A(0);
    } else {
        if (job.with_padding) return value;
        return value /
               static_cast<A>(job.windows.rows.inside(row) * job.windows.columns.inside(column));
    }
}

// What element (y, x) gets of the windows of its matrix, whose first is `start`. REACH: it is in so
// many at most along either axis, without dilation, so that none has to be looked for; or 0: in any
// number.
template <class T, bool LARGEST, int REACH, class I>
__device__ __forceinline__ ComputeType<T> gathered(const Pool<I> &job, I start, I y, I x) {
    const WindowAxisOf<I> &rows = job.windows.rows, &columns = job.windows.columns;
    ComputeType<T> sum = 0;
    if constexpr (REACH > 0) {
        I i = y + rows.before, j = x + columns.before;
        const I row = split(rows.by_stride, &i), column = split(columns.by_stride, &j);
#pragma unroll
        for (int n = 0; n < REACH * REACH; n++) {
            const int up = n / REACH, left = n % REACH;
            const I at_row = i + up * rows.stride, at_column = j + left * columns.stride;
            const bool in_rows = at_row < rows.kernel && rows.is_window(row - up);
            const bool any =
                in_rows && at_column < columns.kernel && columns.is_window(column - left);
            // The first window stands for none, so that all can be read at the same time.
            const I at = any ? (row - up) * columns.windows + column - left : 0;
            const I place = any ? at_row * columns.kernel + at_column : 0;
            const auto value =
                share<T, LARGEST, I>(job, start + at, row - up, column - left, place);
            sum += any ? value : ComputeType<T>(0);
        }
    } else {
        rows.windows_with(y, [&](I row, I i) {
            columns.windows_with(x, [&](I column, I j) {
                sum += share<T, LARGEST, I>(job, start + row * columns.windows + column, row,
                                            column, i * columns.kernel + j);
            });
        });
    }
    return sum;
}

template <class T, class I, bool LARGEST, int REACH>
__global__ void __launch_bounds__(pool_threads) pool_backward_kernel(const Pool<I> job) {
    using A = ComputeType<T>;
    const WindowAxisOf<I> &rows = job.windows.rows, &columns = job.windows.columns;
    const I spots = rows.windows * columns.windows;
    walk_elements<T>(job, [&](I at, I number, I y, I x) {
        A sum = gathered<T, LARGEST, REACH, I>(job, number * spots, y, x);
        if (!LARGEST && job.with_padding) sum /= static_cast<A>(rows.kernel * columns.kernel);
        static_cast<T *>(job.to)[at] = static_cast<T>(sum);
    });
}

// ---- Launches -----------------------------------------------------------------------------------

// Windows that an element is in along an axis, if none has to be looked for; else 0.
int64_t reach_of(const WindowAxis &axis) {
    return axis.dilation == 1 ? (axis.kernel - 1) / axis.stride + 1 : 0;
}

// Calls function(Pool) with the job in the type of its positions.
template <class F> int with_positions(const Pool<int64_t> &job, int64_t read, const F &function) {
    const Windows &w = job.windows;
    const bool narrow = job.size < int64_t(1) << 31 && read < int64_t(1) << 31 &&
                        is_narrow(w.rows) && is_narrow(w.columns);
    if (!narrow) return function(job);
    return function(Pool<int32_t>{job.from,
                                  job.to,
                                  job.places,
                                  static_cast<int32_t>(job.size),
                                  static_cast<Divider<int32_t>>(job.by_columns),
                                  static_cast<Divider<int32_t>>(job.by_rows),
                                  {narrowed(w.rows), narrowed(w.columns)},
                                  job.with_padding});
}

template <class T, int KERNEL, class I>
int launch_forward(Call &call, bool largest, const Pool<I> &job) {
    const unsigned blocks = blocks_for(job.size, pool_threads * elements_a_thread<T>);
    if (largest && job.places)
        PVG_LAUNCH((max_pool_kernel<T, I, KERNEL, true>), blocks, pool_threads, 0, call.stream,
                   job);
    else if (largest)
        PVG_LAUNCH((max_pool_kernel<T, I, KERNEL, false>), blocks, pool_threads, 0, call.stream,
                   job);
    else
        PVG_LAUNCH((mean_pool_kernel<T, I, KERNEL>), blocks, pool_threads, 0, call.stream, job);
    return PVG_OK;
}

template <class T> int choose_forward(Call &call, bool largest, const Pool<int64_t> &job) {
    return launch_forward<T, 0>(call, largest, job);
}
template <class T> int choose_forward(Call &call, bool largest, const Pool<int32_t> &job) {
    const WindowAxisOf<int32_t> &rows = job.windows.rows, &columns = job.windows.columns;
    const bool square =
        rows.kernel == columns.kernel && rows.dilation == 1 && columns.dilation == 1;
    switch (square ? rows.kernel : 0) {
    case 2: return launch_forward<T, 2>(call, largest, job);
    case 3: return launch_forward<T, 3>(call, largest, job);
    case 5: return launch_forward<T, 5>(call, largest, job);
    default: return launch_forward<T, 0>(call, largest, job);
    }
}

template <class T, int REACH, class I> int launch_backward(Call &call, const Pool<I> &job) {
    const unsigned blocks = blocks_for(job.size, pool_threads * elements_a_thread<T>);
    if (job.places)
        PVG_LAUNCH((pool_backward_kernel<T, I, true, REACH>), blocks, pool_threads, 0, call.stream,
                   job);
    else
        PVG_LAUNCH((pool_backward_kernel<T, I, false, REACH>), blocks, pool_threads, 0, call.stream,
                   job);
    return PVG_OK;
}

template <class T> int choose_backward(Call &call, int64_t, const Pool<int64_t> &job) {
    return launch_backward<T, 0>(call, job);
}
template <class T> int choose_backward(Call &call, int64_t reach, const Pool<int32_t> &job) {
    if (reach == 1) return launch_backward<T, 1>(call, job);
    if (reach == 2) return launch_backward<T, 2>(call, job);
    return launch_backward<T, 0>(call, job);
}

// ---- Calls --------------------------------------------------------------------------------------

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
Pool<int64_t> plan_pool(const Windows &windows, int64_t size, int64_t rows, int64_t columns,
                        int padding) {
    Pool<int64_t> job = {};
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
    const int64_t rows = windows.rows.windows, columns = windows.columns.windows;
    Pool<int64_t> job = plan_pool(windows, c->size, rows, columns, with_padding);
    job.from = a->data, job.to = c->data, job.places = places ? data<int32_t>(places) : nullptr;
    return dispatch<floats>(c->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return with_positions(job, a->size, [&](const auto &there) -> int {
            return choose_forward<T>(call, operation == PVG_MAX, there);
        });
    });
}

int run_pool_backward(Call &call, int operation, const pvg_array *gradient, const pvg_array *places,
                      const int64_t *numbers, int with_padding, const int64_t *size,
                      Output *result) {
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
    Pool<int64_t> job = plan_pool(windows, c->size, size[0], size[1], with_padding);
    job.from = gradient->data, job.to = c->data;
    job.places = places ? data<int32_t>(places) : nullptr;
    const int64_t of_rows = reach_of(windows.rows), of_columns = reach_of(windows.columns);
    const int64_t most = of_rows > of_columns ? of_rows : of_columns;
    const int64_t reach = of_rows > 0 && of_columns > 0 ? most : 0;
    return dispatch<floats>(c->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return with_positions(job, gradient->size, [&](const auto &there) -> int {
            return choose_backward<T>(call, reach, there);
        });
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
