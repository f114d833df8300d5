// pvg_total_norm and pvg_clip_norm: the norm of all gradients, and all of them scaled by it.
//
// Each block of the first kernel leaves the part of the norm that is in its chunk of one array; one
// block merges these in a fixed order. How long chunks are depends on the sizes alone, and there
// are no atomics: the bits are the same from run to run. The norm stays on the card, where the
// third kernel reads it.
#include "arrays/operation.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/together.cuh"

namespace pvg {

namespace {

constexpr int norm_threads = 256;
constexpr int merge_threads = 1024;
constexpr int at_a_time = 4;          // vectors of a thread whose loads are under way together
constexpr int64_t many_chunks = 4096; // enough to keep all multiprocessors busy

enum class NormOrder : int { one, two, infinity };

// Part of a norm: a sum, or the largest, in `middle`. Squares of float64 may overflow or vanish, so
// those of large and of small numbers are scaled and summed by themselves (Blue, 1978; the bounds
// are those of LAPACK's dnrm2).
struct Partial {
    double middle, large, small;

    __device__ __forceinline__ void merge(const Partial &other, NormOrder order) {
        if (order == NormOrder::infinity)
            middle = maximum(middle, other.middle);
        else
            middle += other.middle, large += other.large, small += other.small;
    }
    __device__ __forceinline__ void add_square(double x) {
        const double size = fabs(x);
        if (size > 0x1p486)
            large += (x * 0x1p-538) * (x * 0x1p-538);
        else if (size < 0x1p-511)
            small += (x * 0x1p537) * (x * 0x1p537);
        else
            middle += x * x; // NaN, too
    }
    template <class T> __device__ __forceinline__ void add(T element, NormOrder order) {
        const double x = static_cast<double>(ComputeType<T>(element));
        if (order == NormOrder::infinity)
            middle = maximum(middle, fabs(x));
        else if (order == NormOrder::one)
            middle += fabs(x);
        else if constexpr (sizeof(T) == 8)
            add_square(x);
        else
            middle += x * x;
    }
    __device__ double norm(NormOrder order) const {
        if (order != NormOrder::two) return middle;
        if (large > 0 || large != large)
            return sqrt(large + (middle * 0x1p-538) * 0x1p-538) * 0x1p538;
        if (!(small > 0)) return sqrt(middle);
        const double low = sqrt(small) * 0x1p-537, high = sqrt(middle);
        if (middle != middle) return middle;
        const double most = low > high ? low : high, least = low > high ? high : low;
        return most * sqrt(1 + (least / most) * (least / most));
    }
};

// All of a block's partials, in that of each of its threads.
template <int THREADS> __device__ __forceinline__ void merge_block(Partial *own, NormOrder order) {
    __shared__ Partial shared[THREADS];
    shared[threadIdx.x] = *own;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) shared[threadIdx.x].merge(shared[threadIdx.x + half], order);
    }
    __syncthreads(); // for all: a compiler reads ahead of a condition
    *own = shared[0];
}

struct NormJob {
    Partial *partials; // of the batch's chunks
    int64_t chunk;     // elements
    NormOrder order;
};

template <class T, class List>
__global__ void __launch_bounds__(norm_threads) norm_kernel(const __grid_constant__ List batch) {
    constexpr int count = 16 / sizeof(T), stride = norm_threads * count;
    int64_t number;
    const Part<1> &part = batch.find(blockIdx.x, &number);
    const T *data = static_cast<const T *>(part.at[0]);
    const NormOrder order = batch.job.order;
    const int64_t begin = number * batch.job.chunk;
    const int64_t end = begin + batch.job.chunk < part.size ? begin + batch.job.chunk : part.size;
    Partial own = {0, 0, 0};
    int64_t done = begin; // elements before it are read as vectors, by the whole block
    if (is_aligned(part)) {
        for (; done + at_a_time * stride <= end; done += at_a_time * stride) {
            Vector<T, count> in[at_a_time];
            const T *from = data + done + threadIdx.x * count;
#pragma unroll
            for (int v = 0; v < at_a_time; v++) in[v] = load_once<T, count>(from + v * stride);
#pragma unroll
            for (int v = 0; v < at_a_time; v++)
#pragma unroll
                for (int e = 0; e < count; e++) own.add(in[v].element[e], order);
        }
    }
    for (int64_t i = done + threadIdx.x; i < end; i += norm_threads) own.add(data[i], order);
    merge_block<norm_threads>(&own, order);
    if (threadIdx.x == 0) batch.job.partials[blockIdx.x] = own;
}

template <class R>
__global__ void __launch_bounds__(merge_threads)
    norm_merge_kernel(const Partial *partials, int64_t count, NormOrder order, R *result) {
    Partial own = {0, 0, 0};
    for (int64_t i = threadIdx.x; i < count; i += merge_threads) own.merge(partials[i], order);
    merge_block<merge_threads>(&own, order);
    if (threadIdx.x == 0) *result = R(own.norm(order));
}

struct ClipJob {
    const void *norm; // NULL: the factor is `most`
    int dtype;        // of the norm
    double most;

    template <class R> __device__ double read() const {
        return static_cast<double>(ComputeType<R>(*static_cast<const R *>(norm)));
    }
    __device__ double factor() const {
        if (!norm) return most;
        const double value = dtype == PVG_FLOAT32   ? read<float>()
                             : dtype == PVG_FLOAT64 ? read<double>()
                             : dtype == PVG_FLOAT16 ? read<Half>()
                                                    : read<BFloat16>();
        return minimum(most / (value + 1e-6), 1.0);
    }
};

template <class T, class List>
__global__ void __launch_bounds__(norm_threads)
    clip_norm_kernel(const __grid_constant__ List batch) {
    using C = ComputeType<T>;
    constexpr int count = 16 / sizeof(T), chunk = norm_threads * count;
    const double exact = batch.job.factor();
    if (exact == 1) return;
    const C factor = static_cast<C>(exact);
    int64_t number;
    const Part<1> &part = batch.find(blockIdx.x, &number);
    T *data = static_cast<T *>(part.at[0]) + number * chunk;
    const int64_t left = part.size - number * chunk;
    if (left >= chunk && is_aligned(part)) {
        T *place = data + threadIdx.x * count;
        auto vector = *reinterpret_cast<const Vector<T, count> *>(place);
#pragma unroll
        for (int e = 0; e < count; e++) vector.element[e] = T(C(vector.element[e]) * factor);
        store_at_once(place, vector);
        return;
    }
    for (int64_t i = threadIdx.x; i < chunk && i < left; i += norm_threads)
        data[i] = T(C(data[i]) * factor);
}

// ---- The norm -----------------------------------------------------------------------------------

// Elements of a chunk: about as many chunks as keep the card busy, whole rounds of loads each.
template <class T> int64_t chunk_length(const Together &arrays, int n) {
    constexpr int64_t round = at_a_time * norm_threads * (16 / sizeof(T));
    int64_t size = 0;
    for (int i = 0; i < n; i++)
        if (arrays[i]->dtype == DtypeOf<T>::value) size += arrays[i]->size;
    const int64_t rounds = size / (round * many_chunks) + 1;
    return rounds * round;
}

template <class T> int64_t count_chunks(const Together &arrays, int n) {
    const int64_t length = chunk_length<T>(arrays, n);
    int64_t chunks = 0;
    for (int i = 0; i < n; i++)
        if (arrays[i]->dtype == DtypeOf<T>::value)
            chunks += arrays[i]->size / length + (arrays[i]->size % length != 0);
    return chunks;
}

// The partials of all arrays of one dtype, behind *partials, which is moved on.
template <class T>
int launch_norm(Call &call, const Together &arrays, int n, NormOrder order, Partial **partials) {
    const int64_t length = chunk_length<T>(arrays, n);
    Batches<1, NormJob> batches({nullptr, length, order}, length);
    const auto launch = [&](auto &batch) -> int {
        batch.job.partials = *partials;
        *partials += batch.chunks();
        PVG_LAUNCH((norm_kernel<T, std::decay_t<decltype(batch)>>), blocks_for(batch.chunks(), 1),
                   norm_threads, 0, call.stream, batch);
        return PVG_OK;
    };
    for (int i = 0; i < n; i++) {
        if (arrays[i]->dtype != DtypeOf<T>::value) continue;
        void *const at[1] = {arrays[i]->data};
        PVG_PASS(batches.add(at, arrays[i]->size, launch));
    }
    return batches.finish(launch);
}

template <class F> int for_floats(F &&function) {
    for (const int dtype : {PVG_FLOAT16, PVG_BFLOAT16, PVG_FLOAT32, PVG_FLOAT64})
        PVG_PASS(dispatch<floats>(dtype, function));
    return PVG_OK;
}

int run_norm(Call &call, const pvg_array *const *parts, int n, double order, Output *result) {
    int device = -1;
    PVG_REQUIRE(n >= 1 && parts, PVG_ERROR_VALUE, "needs at least one array");
    PVG_REQUIRE(order == 1 || order == 2 || order == HUGE_VAL, PVG_ERROR_VALUE,
                "norms are of order 1, 2 or infinity, not %g", order);
    PVG_PASS(check_operands(parts, n, &device));
    int dtype = parts[0]->dtype;
    for (int i = 0; i < n; i++) {
        PVG_PASS(check_kinds(parts[i]->dtype, floats));
        dtype = promote(dtype, parts[i]->dtype);
    }
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, dtype, 0, nullptr, nullptr, nullptr, 0));
    Together arrays;
    PVG_PASS(arrays.open(call, nullptr, 0, parts, n));
    int64_t chunks = 0;
    PVG_PASS(for_floats([&](auto tag) -> int {
        chunks += count_chunks<typename decltype(tag)::type>(arrays, n);
        return PVG_OK;
    }));
    Workspace memory;
    PVG_PASS(memory.open(call, static_cast<size_t>(chunks + 1) * sizeof(Partial)));
    const NormOrder which = order == 1   ? NormOrder::one
                            : order == 2 ? NormOrder::two
                                         : NormOrder::infinity;
    Partial *next = memory.as<Partial>();
    PVG_PASS(for_floats([&](auto tag) -> int {
        return launch_norm<typename decltype(tag)::type>(call, arrays, n, which, &next);
    }));
    return dispatch<floats>(dtype, [&](auto tag) -> int {
        using R = typename decltype(tag)::type;
        PVG_LAUNCH(norm_merge_kernel<R>, 1, merge_threads, 0, call.stream, memory.as<Partial>(),
                   chunks, which, data<R>(result->array));
        return PVG_OK;
    });
}

// ---- Clipping -----------------------------------------------------------------------------------

template <class T>
int launch_clip(Call &call, const Together &arrays, int n, const ClipJob &job) {
    const auto launch = [&](const auto &batch) -> int {
        PVG_LAUNCH((clip_norm_kernel<T, std::decay_t<decltype(batch)>>),
                   blocks_for(batch.chunks(), 1), norm_threads, 0, call.stream, batch);
        return PVG_OK;
    };
    Batches<1, ClipJob> batches(job, norm_threads * (16 / sizeof(T)));
    for (int i = 0; i < n; i++) {
        if (arrays[i]->dtype != DtypeOf<T>::value) continue;
        void *const at[1] = {arrays[i]->data};
        PVG_PASS(batches.add(at, arrays[i]->size, launch));
    }
    return batches.finish(launch);
}

int run_clip_norm(Call &call, pvg_array *const *targets, int n, const pvg_array *norm,
                  double most) {
    int device = -1, other = -1;
    if (norm) {
        PVG_PASS(check_operands(&norm, 1, &device));
        PVG_PASS(check_kinds(norm->dtype, floats));
        PVG_REQUIRE(norm->size == 1, PVG_ERROR_VALUE, "the norm is one number, got shape %s",
                    shape_text(norm));
    }
    PVG_REQUIRE(n >= 0 && (targets || n == 0), PVG_ERROR_VALUE, "%d arrays", n);
    if (n == 0) return PVG_OK;
    PVG_PASS(check_operands(targets, n, &other));
    PVG_REQUIRE(!norm || device == other, PVG_ERROR_VALUE,
                "the norm lives on device %d, the arrays on device %d", device, other);
    PVG_PASS(call.begin(other));
    Together arrays;
    PVG_PASS(arrays.open(call, targets, n, &norm, norm ? 1 : 0)); // it may lie in one of them
    const ClipJob job = {norm ? arrays[n]->data : nullptr, norm ? norm->dtype : 0, most};
    PVG_PASS(for_floats([&](auto tag) -> int {
        return launch_clip<typename decltype(tag)::type>(call, arrays, n, job);
    }));
    return arrays.close(call);
}

} // namespace

Operations norm_operations() {
    static constexpr Operation rows[] = {
        {PVG_TOTAL_NORM, "total_norm", Family::other, floats, Gives::same},
        {PVG_CLIP_NORM, "clip_norm", Family::other, floats, Gives::none},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_total_norm(const pvg_array *const *parts, int n, double order) {
    pvg::Call call("total_norm");
    pvg::Output result;
    int status = pvg::run_norm(call, parts, n, order, &result);
    return result.close(call, status);
}

PVG_API int pvg_clip_norm(pvg_array *const *targets, int n, const pvg_array *norm, double most) {
    pvg::Call call("clip_norm");
    return pvg::run_clip_norm(call, targets, n, norm, most);
}
