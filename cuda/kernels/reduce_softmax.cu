// pvg_softmax: exponentials over their sum, and the logarithm of that.
//
// Rows that are short enough stay in registers, and longer ones beside them in shared memory, so
// that each is read once and written once; so do short columns (softmax_columns.cuh). Others are
// read twice: a reduction
// finds the largest element and the sum of exponentials of each (kernels/reduce.cuh), and an
// elementwise kernel does the rest.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "arrays/operation.cuh"
#include "kernels/reduce.cuh"
#include "kernels/rows.cuh"
#include "kernels/softmax_columns.cuh"
#include <math.h>

namespace pvg {

namespace {

template <class T> inline constexpr int loads_in_flight = sizeof(T) == 8 ? 2 : 4; // registers

struct SoftRows {
    const void *from;
    void *to;
    int64_t rows, from_stride; // elements from row to row; those of `to` lie side by side
    int length, lanes;         // lanes: of a short row, a power of two
    bool logarithm, aligned;   // aligned: every pack may be loaded and stored at once
};

// The elements from `at` on; -infinity, whose exponential is 0, behind the end.
template <class T>
__device__ __forceinline__ Pack<T> load_powers(const T *row, int at, int length, bool aligned) {
    return load_pack(row, at, length, aligned, -static_cast<ComputeType<T>>(INFINITY));
}

template <class T, class A> __device__ __forceinline__ A largest_of(const Pack<T> &pack, A most) {
#pragma unroll
    for (int j = 0; j < pack_size<T>; j++) most = larger(most, static_cast<A>(pack.element[j]));
    return most;
}

// x[j] - most, and the sum of the exponentials; of softmax x becomes the exponential.
template <class T, int N, class A>
__device__ __forceinline__ A exponentials(A (&x)[N], A most, bool logarithm) {
    A sum = 0;
#pragma unroll
    for (int j = 0; j < N; j++) {
        x[j] -= most;
        const A power = exp_for<T>(x[j]);
        if (!logarithm) x[j] = power;
        sum += power;
    }
    return sum;
}

template <class T, int PACKS>
__global__ void __launch_bounds__(short_threads) softmax_short_rows_kernel(const SoftRows job) {
    using A = ComputeType<T>;
    constexpr int pack = pack_size<T>;
    const unsigned lanes = job.lanes, lane = threadIdx.x % lanes;
    const int64_t row =
        static_cast<int64_t>(blockIdx.x) * (short_threads / lanes) + threadIdx.x / lanes;
    const int length = row < job.rows ? job.length : 0, first = static_cast<int>(lane) * pack;
    const int step = job.lanes * pack;
    const T *from = static_cast<const T *>(job.from) + (length ? row * job.from_stride : 0);
    T *to = static_cast<T *>(job.to) + (length ? row * job.length : 0);
    Pack<T> loaded[PACKS];
    A x[PACKS][pack], most = -static_cast<A>(INFINITY), sum = 0;
#pragma unroll
    for (int k = 0; k < PACKS; k++)
        if (k == 0 || k * step < job.length)
            loaded[k] = load_powers(from, first + k * step, length, job.aligned);
#pragma unroll
    for (int k = 0; k < PACKS; k++)
        if (k == 0 || k * step < job.length) most = largest_of(loaded[k], most);
    most = largest_of_lanes(most, job.lanes);
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        if (k > 0 && k * step >= job.length) continue; // exponentials of nothing take as long
#pragma unroll
        for (int j = 0; j < pack; j++) x[k][j] = static_cast<A>(loaded[k].element[j]);
        sum += exponentials<T>(x[k], most, job.logarithm);
    }
    sum = sum_of_lanes(sum, job.lanes);
    const A total = total_of<T>(sum, job.logarithm);
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        if (k > 0 && k * step >= job.length) continue;
        Pack<T> result;
#pragma unroll
        for (int j = 0; j < pack; j++)
            result.element[j] = static_cast<T>(finished<T>(x[k][j], total, job.logarithm));
        store_pack(to, first + k * step, length, job.aligned, result);
    }
}

// A block has a row: of each thread the first packs in registers, and the others in shared memory,
// where no thread reads another's.
template <class T>
__global__ void __launch_bounds__(long_threads) softmax_long_rows_kernel(const SoftRows job) {
    using A = ComputeType<T>;
    constexpr int pack = pack_size<T>;
    constexpr bool keeps = sizeof(T) == sizeof(A); // exponentials fit where elements were
    PVG_DYNAMIC_SHARED(T, staged);
    __shared__ A of_warp[2][32];
    const int step = static_cast<int>(blockDim.x) * pack, first = threadIdx.x * pack;
    const int held = held_packs * step, length = job.length;
    const int64_t row = blockIdx.x;
    const T *from = static_cast<const T *>(job.from) + row * job.from_stride;
    T *to = static_cast<T *>(job.to) + row * length;
    Pack<T> loaded[held_packs];
    A most = -static_cast<A>(INFINITY), sum = 0;
#pragma unroll
    for (int k = 0; k < held_packs; k++)
        loaded[k] = load_powers(from, first + k * step, length, job.aligned);
    for (int at = held + first; at < length; at += loads_in_flight<T> * step) {
        Pack<T> more[loads_in_flight<T>];
#pragma unroll
        for (int k = 0; k < loads_in_flight<T>; k++)
            more[k] = load_powers(from, at + k * step, length, job.aligned);
#pragma unroll
        for (int k = 0; k < loads_in_flight<T>; k++) {
            most = largest_of(more[k], most);
            if (at + k * step < length)
                *reinterpret_cast<Pack<T> *>(staged + (at + k * step - held)) = more[k];
        }
    }
    A x[held_packs][pack];
#pragma unroll
    for (int k = 0; k < held_packs; k++) most = largest_of(loaded[k], most);
    most = over_block<false>(most, of_warp[0]);
#pragma unroll
    for (int k = 0; k < held_packs; k++) {
#pragma unroll
        for (int j = 0; j < pack; j++) x[k][j] = static_cast<A>(loaded[k].element[j]);
        sum += exponentials<T>(x[k], most, job.logarithm);
    }
    for (int at = held + first; at < length; at += step) {
        Pack<T> *mine = reinterpret_cast<Pack<T> *>(staged + (at - held));
        Pack<T> elements = *mine;
        A y[pack];
#pragma unroll
        for (int j = 0; j < pack; j++) y[j] = static_cast<A>(elements.element[j]);
        sum += exponentials<T>(y, most, job.logarithm);
        if constexpr (keeps) {
#pragma unroll
            for (int j = 0; j < pack; j++) elements.element[j] = static_cast<T>(y[j]);
            *mine = elements;
        }
    }
    sum = over_block<true>(sum, of_warp[1]);
    const A total = total_of<T>(sum, job.logarithm);
#pragma unroll
    for (int k = 0; k < held_packs; k++) {
        Pack<T> result;
#pragma unroll
        for (int j = 0; j < pack; j++)
            result.element[j] = static_cast<T>(finished<T>(x[k][j], total, job.logarithm));
        store_pack(to, first + k * step, length, job.aligned, result);
    }
    for (int at = held + first; at < length; at += step) {
        Pack<T> result = *reinterpret_cast<const Pack<T> *>(staged + (at - held));
#pragma unroll
        for (int j = 0; j < pack; j++) {
            A y[1] = {static_cast<A>(result.element[j])};
            if constexpr (!keeps) y[0] = job.logarithm ? y[0] - most : exp_for<T>(y[0] - most);
            result.element[j] = static_cast<T>(finished<T>(y[0], total, job.logarithm));
        }
        store_pack(to, at, length, job.aligned, result);
    }
}

// ---- Rows ---------------------------------------------------------------------------------------

// If the operand's rows are contiguous and follow each other by one stride, and those of the
// result side by side, that is what the kernels take.
bool find_rows(const pvg_array *a, const bool *reduced, const pvg_array *target, SoftRows *job) {
    if (!is_contiguous(target)) return false;
    int64_t expected = 1, length = 1;
    int i = a->ndim - 1;
    for (; i >= 0 && (reduced[i] || a->shape[i] == 1); i--) {
        if (a->shape[i] == 1) continue;
        if (a->strides[i] != expected) return false;
        expected = length *= a->shape[i];
    }
    bool found = false;
    job->from_stride = 0;
    for (; i >= 0; i--) {
        if (a->shape[i] == 1) continue;
        if (reduced[i] || (found && a->strides[i] != expected)) return false;
        if (!found) job->from_stride = a->strides[i];
        found = true;
        expected = a->strides[i] * a->shape[i];
    }
    if (length > INT32_MAX / 2) return false;
    job->from = a->data, job->to = target->data;
    job->length = static_cast<int>(length), job->rows = target->size / length;
    return true;
}

template <class T> int launch_short_rows(Call &call, SoftRows job) {
    const int packs = (job.length + pack_size<T> - 1) / pack_size<T>;
    constexpr int each = 4; // packs of a lane: more are under way at once, and fewer lanes agree
    const int lanes = packs <= each ? packs : packs <= 4 * each ? each : (packs + each - 1) / each;
    job.lanes = lanes < 32 ? static_cast<int>(power_of_two_from(lanes)) : 32;
    const unsigned blocks = blocks_for(job.rows, short_threads / job.lanes);
    if (packs <= job.lanes)
        PVG_LAUNCH((softmax_short_rows_kernel<T, 1>), blocks, short_threads, 0, call.stream, job);
    else if (packs <= each * job.lanes)
        PVG_LAUNCH((softmax_short_rows_kernel<T, each>), blocks, short_threads, 0, call.stream,
                   job);
    else
        PVG_LAUNCH((softmax_short_rows_kernel<T, most_packs>), blocks, short_threads, 0,
                   call.stream, job);
    return PVG_OK;
}

// Leaves *done false if the rows are too long.
template <class T> int launch_soft_rows(Call &call, SoftRows job, bool *done) {
    constexpr int pack = pack_size<T>;
    constexpr int64_t item = sizeof(T), other_shared = 1 << 10;
    job.aligned = (reinterpret_cast<uintptr_t>(job.from) | reinterpret_cast<uintptr_t>(job.to)) %
                          alignof(Pack<T>) ==
                      0 &&
                  (job.rows == 1 || (job.from_stride % pack == 0 && job.length % pack == 0));
    const int packs = (job.length + pack - 1) / pack;
    *done = true;
    if (packs <= 32 * most_packs) return launch_short_rows<T>(call, job);
    int threads = short_threads;
    while (threads < long_threads && threads * held_packs < packs) threads *= 2;
    int64_t shared = 0, most = 0;
    if (packs > threads * held_packs) {
        shared = int64_t(packs - threads * held_packs) * pack * item;
        PVG_PASS(device_attribute(call.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most));
        *done = shared + other_shared <= most;
    }
    if (*done)
        PVG_LAUNCH(softmax_long_rows_kernel<T>, blocks_for(job.rows, 1), threads,
                   static_cast<size_t>(shared), call.stream, job);
    return PVG_OK;
}

// ---- Everything else ----------------------------------------------------------------------------

// Elements beside the largest of their row and the sum of exponentials, or its logarithm.
template <class T> struct Normalise {
    static constexpr int inputs = 2, vector = pack_size<T>;
    bool logarithm;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        using A = ComputeType<T>;
        A x[Access::count];
        Complex<A> of_row[Access::count];
        read_as<T>(access, 0, x);
        access.read(1, of_row);
#pragma unroll
        for (int e = 0; e < Access::count; e++) {
            const A rest = x[e] - of_row[e].re, sum = of_row[e].im;
            const A total = logarithm ? sum : total_of<T>(sum, false);
            x[e] = finished<T>(logarithm ? rest : exp_for<T>(rest), total, logarithm);
        }
        write_as<T>(access, x);
    }
};

// Of elements and two numbers beside each, in 32 registers they would not fit.
template <class T> constexpr int rows_blocks<Normalise<T>> = blocks_held(10, map_threads);

int normalise(Call &call, const pvg_array *a, int naxes, const int *axes, bool logarithm,
              pvg_array *target) {
    Temporary straight;
    Output of_rows;
    PVG_PASS(as_readable(call, a, &straight, &a));
    PVG_PASS(reduce::exponential_sums(call, a, naxes, axes, logarithm, &of_rows));
    return dispatch<floats>(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return launch_map(call, Normalise<T>{logarithm}, target, {a, of_rows.array});
    });
}

constexpr Operation softmax_rows[] = {
    {PVG_SOFTMAX, "softmax", Family::other, ordered, Gives::floating},
    {PVG_LOG_SOFTMAX, "log_softmax", Family::other, ordered, Gives::floating},
    {PVG_LOGSUMEXP, "logsumexp", Family::other, ordered, Gives::floating},
};

int run_softmax(Call &call, const Operation &operation, const pvg_array *a, int naxes,
                const int *axes, pvg_array *out, Output *result) {
    const bool logarithm = operation.code == PVG_LOG_SOFTMAX;
    int device = -1;
    bool reduced[PVG_MAX_NDIM], empty = false, done = false;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_domain(operation, a->dtype, &a, 1));
    PVG_PASS(reduce::mark_axes(operation, a, naxes, axes, reduced));
    for (int i = 0; i < a->ndim; i++) empty = empty || (reduced[i] && a->shape[i] == 0);
    PVG_REQUIRE(!empty, PVG_ERROR_VALUE,
                "zero-size array to reduction operation maximum which has no identity");
    PVG_PASS(call.begin(device));
    Temporary as_floats;
    PVG_PASS(as_dtype(call, a, dtypes_of(operation, a->dtype).result, &as_floats, &a));
    PVG_PASS(result->open(call, a->dtype, a->ndim, a->shape, out, &a, 1));
    if (a->size == 0) return PVG_OK;
    SoftRows job = {};
    SoftColumns columns = {};
    job.logarithm = logarithm;
    if (find_rows(a, reduced, result->array, &job)) {
        PVG_PASS(call.reads(a));
        PVG_PASS(dispatch<floats>(a->dtype, [&](auto tag) -> int {
            return launch_soft_rows<typename decltype(tag)::type>(call, job, &done);
        }));
    } else if (find_columns(a, reduced, result->array, &columns) && suits_columns(columns)) {
        columns.logarithm = logarithm, done = true;
        PVG_PASS(call.reads(a));
        PVG_PASS(dispatch<floats>(a->dtype, [&](auto tag) -> int {
            return launch_soft_columns<typename decltype(tag)::type>(call, columns);
        }));
    }
    return done ? static_cast<int>(PVG_OK)
                : normalise(call, a, naxes, axes, logarithm, result->array);
}

} // namespace

Operations softmax_operations() { return softmax_rows; }

} // namespace pvg

PVG_API pvg_array *pvg_softmax(int operation, const pvg_array *a, int naxes, const int *axes,
                               int keepdims, pvg_array *out) {
    const pvg::Operation *row = pvg::softmax_operations().find(operation);
    pvg::Call call(row ? row->name : "softmax");
    pvg::Output result;
    int status = PVG_OK;
    if (!row)
        status = pvg::fail(PVG_ERROR_VALUE, "unknown operation code %d", operation);
    else if (operation == PVG_LOGSUMEXP)
        status = pvg::reduce::logarithm_of_sums(call, a, naxes, axes, keepdims != 0, out, &result);
    else
        status = pvg::run_softmax(call, *row, a, naxes, axes, out, &result);
    return result.close(call, status);
}
