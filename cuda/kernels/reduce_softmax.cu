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

template <class T> inline constexpr int loads_in_flight = sizeof(T) == 4 ? 4 : 2; // registers
template <class T> inline constexpr int packs_held = sizeof(T) == 2 ? 3 : 4;      // of a long row
template <class T> inline constexpr int long_pack = static_cast<int>(16 / sizeof(T)); // of a load

struct SoftRows {
    const void *from;
    void *to;
    int64_t rows, from_stride; // elements from row to row; those of `to` lie side by side
    int length, lanes;         // lanes: of a short row, a power of two
    bool logarithm;
    bool alternate; // a row is no whole number of packs: its elements are dealt one by one
    bool aligned;   // every pack may be loaded and stored at once
};

// The elements of a stretch, from `start` on, that are a lane's: a pack of neighbours, or every
// lanes-th one, so that lanes side by side read side by side. Which it is depends on the length
// alone, and so do the bits of a sum.
struct Share {
    int at, gap; // of the first element, and from one to the next
};
template <int N>
__device__ __forceinline__ Share share_of(const SoftRows &job, int start, int lane, int lanes) {
    return job.alternate ? Share{start + lane, lanes} : Share{start + lane * N, 1};
}

// These elements, and -infinity, whose exponential is 0, behind the end.
template <class T, int N>
__device__ __forceinline__ Vector<T, N> load_share(const SoftRows &job, const T *row,
                                                   const Share &share, int length) {
    if (job.aligned && share.at + N <= length)
        return *reinterpret_cast<const Vector<T, N> *>(row + share.at);
    Vector<T, N> pack;
#pragma unroll
    for (int j = 0; j < N; j++) {
        const int at = share.at + j * share.gap;
        pack.element[j] =
            at < length ? row[at] : static_cast<T>(-static_cast<ComputeType<T>>(INFINITY));
    }
    return pack;
}
template <class T, int N>
__device__ __forceinline__ void store_share(const SoftRows &job, T *row, const Share &share,
                                            int length, const Vector<T, N> &pack) {
    if (job.aligned && share.at + N <= length) {
        *reinterpret_cast<Vector<T, N> *>(row + share.at) = pack;
        return;
    }
#pragma unroll
    for (int j = 0; j < N; j++)
        if (share.at + j * share.gap < length) row[share.at + j * share.gap] = pack.element[j];
}

template <class T, int N, class A>
__device__ __forceinline__ A largest_of(const Vector<T, N> &pack, A most) {
#pragma unroll
    for (int j = 0; j < N; j++) most = larger(most, static_cast<A>(pack.element[j]));
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
    const int lanes = job.lanes, lane = static_cast<int>(threadIdx.x % job.lanes);
    const int64_t row =
        static_cast<int64_t>(blockIdx.x) * (short_threads / lanes) + threadIdx.x / lanes;
    const int length = row < job.rows ? job.length : 0, step = lanes * pack;
    const T *from = static_cast<const T *>(job.from) + (length ? row * job.from_stride : 0);
    T *to = static_cast<T *>(job.to) + (length ? row * job.length : 0);
    Vector<T, pack> loaded[PACKS];
    A x[PACKS][pack], most = -static_cast<A>(INFINITY), sum = 0;
#pragma unroll
    for (int k = 0; k < PACKS; k++)
        if (k == 0 || k * step < job.length)
            loaded[k] =
                load_share<T, pack>(job, from, share_of<pack>(job, k * step, lane, lanes), length);
#pragma unroll
    for (int k = 0; k < PACKS; k++)
        if (k == 0 || k * step < job.length) most = largest_of(loaded[k], most);
    most = largest_of_lanes(most, lanes);
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        if (k > 0 && k * step >= job.length) continue; // exponentials of nothing take as long
#pragma unroll
        for (int j = 0; j < pack; j++) x[k][j] = static_cast<A>(loaded[k].element[j]);
        sum += exponentials<T>(x[k], most, job.logarithm);
    }
    sum = sum_of_lanes(sum, lanes);
    const A total = total_of<T>(sum, job.logarithm);
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        if (k > 0 && k * step >= job.length) continue;
        Vector<T, pack> result;
#pragma unroll
        for (int j = 0; j < pack; j++)
            result.element[j] = static_cast<T>(finished<T>(x[k][j], total, job.logarithm));
        store_share(job, to, share_of<pack>(job, k * step, lane, lanes), length, result);
    }
}

// What a thread keeps of a pack from one time over the row to the next: of numbers that are their
// own type to compute in the exponentials, or the differences; halves as they were.
template <class T, int N, class A>
__device__ __forceinline__ A keep_exponentials(Vector<T, N> &pack, A most, bool logarithm) {
    A x[N];
#pragma unroll
    for (int j = 0; j < N; j++) x[j] = static_cast<A>(pack.element[j]);
    const A sum = exponentials<T>(x, most, logarithm);
    if constexpr (sizeof(T) == sizeof(A)) {
#pragma unroll
        for (int j = 0; j < N; j++) pack.element[j] = static_cast<T>(x[j]);
    }
    return sum;
}
template <class T, int N, class A>
__device__ __forceinline__ Vector<T, N> finished_pack(const Vector<T, N> &pack, A most, A total,
                                                      bool logarithm) {
    Vector<T, N> result;
#pragma unroll
    for (int j = 0; j < N; j++) {
        A x = static_cast<A>(pack.element[j]);
        if constexpr (sizeof(T) != sizeof(A)) x = logarithm ? x - most : exp_for<T>(x - most);
        result.element[j] = static_cast<T>(finished<T>(x, total, logarithm));
    }
    return result;
}

// A block has a row: of each thread the first packs in registers, and the others in shared memory,
// where no thread reads another's.
template <class T>
__global__ void __launch_bounds__(long_threads) softmax_long_rows_kernel(const SoftRows job) {
    using A = ComputeType<T>;
    constexpr int pack = long_pack<T>;
    using Part = Vector<T, pack>;
    PVG_DYNAMIC_SHARED(T, staged);
    __shared__ A of_warp[2][32];
    const int lane = threadIdx.x, lanes = static_cast<int>(blockDim.x), step = lanes * pack;
    const int held = packs_held<T> * step, length = job.length;
    const int64_t row = blockIdx.x;
    const T *from = static_cast<const T *>(job.from) + row * job.from_stride;
    T *to = static_cast<T *>(job.to) + row * length;
    Part *mine = reinterpret_cast<Part *>(staged) + lane; // one from each stretch that is staged
    Part loaded[packs_held<T>];
    A most = -static_cast<A>(INFINITY), sum = 0;
#pragma unroll
    for (int k = 0; k < packs_held<T>; k++)
        loaded[k] =
            load_share<T, pack>(job, from, share_of<pack>(job, k * step, lane, lanes), length);
    for (int start = held; start < length; start += loads_in_flight<T> * step) {
        Part more[loads_in_flight<T>];
#pragma unroll
        for (int k = 0; k < loads_in_flight<T>; k++)
            more[k] = load_share<T, pack>(
                job, from, share_of<pack>(job, start + k * step, lane, lanes), length);
#pragma unroll
        for (int k = 0; k < loads_in_flight<T>; k++) {
            most = largest_of(more[k], most);
            if (start + k * step < length) mine[(start + k * step - held) / pack] = more[k];
        }
    }
#pragma unroll
    for (int k = 0; k < packs_held<T>; k++) most = largest_of(loaded[k], most);
    most = over_block<false>(most, of_warp[0]);
#pragma unroll
    for (int k = 0; k < packs_held<T>; k++)
        if (k * step < length) sum += keep_exponentials(loaded[k], most, job.logarithm);
    for (int start = held; start < length; start += step) {
        Part &part = mine[(start - held) / pack];
        sum += keep_exponentials(part, most, job.logarithm);
    }
    sum = over_block<true>(sum, of_warp[1]);
    const A total = total_of<T>(sum, job.logarithm);
#pragma unroll
    for (int k = 0; k < packs_held<T>; k++)
        if (k * step < length)
            store_share(job, to, share_of<pack>(job, k * step, lane, lanes), length,
                        finished_pack(loaded[k], most, total, job.logarithm));
    for (int start = held; start < length; start += step)
        store_share(job, to, share_of<pack>(job, start, lane, lanes), length,
                    finished_pack(mine[(start - held) / pack], most, total, job.logarithm));
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

// Packs of N elements: whether they share out whole rows, and may be loaded and stored at once.
template <class T, int N> int deal(SoftRows *job) {
    const uintptr_t bits =
        reinterpret_cast<uintptr_t>(job->from) | reinterpret_cast<uintptr_t>(job->to);
    job->alternate = job->length % N != 0;
    job->aligned = !job->alternate && bits % alignof(Vector<T, N>) == 0 &&
                   (job->rows == 1 || job->from_stride % N == 0);
    return (job->length + N - 1) / N;
}

template <class T> int launch_short_rows(Call &call, SoftRows job) {
    const int packs = deal<T, pack_size<T>>(&job);
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
    constexpr int64_t other_shared = 1 << 10, part = sizeof(Vector<T, long_pack<T>>);
    *done = true;
    if (job.length <= 32 * most_packs * pack_size<T>) return launch_short_rows<T>(call, job);
    const int packs = deal<T, long_pack<T>>(&job);
    // No more threads than have their packs in registers: small blocks share a multiprocessor, and
    // one computes while others load.
    const int warps = (packs + 32 * packs_held<T> - 1) / (32 * packs_held<T>);
    const int wanted = warps * 32 < long_threads ? warps * 32 : long_threads;
    const int threads = wanted < short_threads ? short_threads : wanted;
    const int stretches = (packs + threads - 1) / threads;
    int64_t shared = 0, most = 0;
    if (stretches > packs_held<T>) {
        shared = int64_t(stretches - packs_held<T>) * threads * part;
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
// Threads that have several rows find out once where the two numbers beside each are.
template <class T> constexpr bool takes_joined<Normalise<T>> = false;

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
