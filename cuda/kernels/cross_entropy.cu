// pvg_cross_entropy and its backward pass, of rows of classes with a label each.
//
// Forward a row is read once: a thread sums exponentials beside the largest element that it has met
// so far, and the team of the row brings these together. Backward softmax is computed again from
// the row and the logarithm of that sum, by one read and one write. The mean of losses is a launch
// more, and its gradient, one number for all rows, is divided where it is used.
#include "arrays/operation.cuh"
#include "kernels/leave_report.cuh"
#include "kernels/quick_exp.cuh"
#include "kernels/rows.cuh"

namespace pvg {

namespace {

constexpr int row_packs = 4;            // of a thread, under way together
constexpr int label_threads = 512;      // of a block, forward; three of them have room
constexpr int64_t mean_share = 1 << 16; // losses that a block adds up

struct LabelRows {
    RowPlan plan;
    const void *x, *labels, *weight; // weight: in the type that is computed in, or NULL
    void *statistics, *to;           // statistics: [3][rows], of a mean [4][rows]
    const void *gradient;            // backward; NULL: ones
    int64_t gradient_step;
    bool of_mean; // backward: the gradient is that of the mean
    int64_t ignored;
    double smoothing;
    ReportSlot *slot;
    bool wide; // labels are int64, else int32
};

__device__ __forceinline__ int64_t label_of(const LabelRows &job, int64_t row) {
    return job.wide ? static_cast<const int64_t *>(job.labels)[row]
                    : static_cast<const int32_t *>(job.labels)[row];
}
__device__ __forceinline__ bool is_class(const LabelRows &job, int64_t label) {
    return label != job.ignored && label >= 0 && label < job.plan.length;
}
template <class A> __device__ __forceinline__ A weight_of(const LabelRows &job, int64_t at) {
    return job.weight ? static_cast<const A *>(job.weight)[at] : A(1);
}

// Of some elements of a row: the largest; and relative to it, or to 0 where that is -infinity, the
// sum of exponentials, and the weighted sum of distances below it; and the sum of weights.
template <class A> struct Gathered {
    A most, powers, below, weights;

    __device__ __forceinline__ static A base(A most) {
        return most == -static_cast<A>(INFINITY) ? A(0) : most;
    }
    __device__ __forceinline__ void rise(A to) { // what was gathered, relative to another largest
        if (to == most) return;
        const A by = base(to) - base(most);
        if (most != -static_cast<A>(INFINITY)) powers *= exp(-by);
        if (weights != 0) below += weights * by;
        most = to;
    }
};

// A pack of elements, -infinity behind the end.
template <class T, int PACKS>
__device__ __forceinline__ void gather_packs(const LabelRows &job, const Pack<T> (&packs)[PACKS],
                                             int at, int step, Gathered<ComputeType<T>> *all) {
    using A = ComputeType<T>;
    A most = all->most;
#pragma unroll
    for (int k = 0; k < PACKS; k++)
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++)
            most = larger(most, static_cast<A>(packs[k].element[j]));
    all->rise(most);
    const A base = all->base(most);
#pragma unroll
    for (int k = 0; k < PACKS; k++)
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++)
            all->powers += quick_exp(static_cast<A>(packs[k].element[j]) - base);
    if (job.smoothing == 0) return;
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) {
            const int place = at + k * step + j;
            if (place >= job.plan.length) continue;
            const A weight = weight_of<A>(job, place), x = static_cast<A>(packs[k].element[j]);
            if (weight != 0) all->below = fma(weight, base - x, all->below);
            all->weights += weight;
        }
    }
}

template <bool BLOCK, class A>
__device__ __forceinline__ void gather_row(Gathered<A> *all, int lanes, bool smooth,
                                           A (*of_warp)[32]) {
    const A most =
        BLOCK ? over_block<false>(all->most, of_warp[0]) : largest_of_lanes(all->most, lanes);
    all->rise(most);
    all->powers = sum_of_row<BLOCK>(all->powers, lanes, of_warp[1]);
    if (!smooth) return;
    all->below = sum_of_row<BLOCK>(all->below, lanes, of_warp[2]);
    all->weights = sum_of_row<BLOCK>(all->weights, lanes, of_warp[3]);
}

// What one thread of the team does with all of a row; own: the label's element.
template <class A>
__device__ inline void write_loss(const LabelRows &job, int64_t row, int64_t label, A own,
                                  const Gathered<A> &all) {
    const int64_t rows = job.plan.rows;
    const A logarithm = log(all.powers);
    A loss = 0, counts = 0, part = 0;
    if (is_class(job, label)) {
        const A smoothing = static_cast<A>(job.smoothing);
        counts = weight_of<A>(job, label);
        part = (1 - smoothing) * counts;
        loss = part == 0 ? A(0) : part * (logarithm + (all.base(all.most) - own));
        if (smoothing != 0) {
            const A each = smoothing / static_cast<A>(job.plan.length);
            loss += each * (all.weights * logarithm + all.below);
            part += each * all.weights;
        }
    } else if (label != job.ignored) {
        leave_report(job.slot, Report::label, label, 0, job.plan.length);
    }
    A *statistics = static_cast<A *>(job.statistics);
    const A base = all.base(all.most), whole = base + logarithm;
    statistics[row] = whole;
    statistics[rows + row] = counts;
    // Far from 0 a sum that is rounded has lost digits of the logarithm: with what it was rounded
    // by, exp(x - whole) times this is as exact as if it had not.
    statistics[2 * rows + row] = part * exp((whole - base) - logarithm);
    static_cast<A *>(job.to)[row] = loss;
}

template <class T, int PACKS, bool BLOCK>
__global__ void __launch_bounds__(BLOCK ? label_threads : short_threads,
                                  BLOCK && sizeof(T) < 8 ? 3 : 1)
    cross_entropy_kernel(const __grid_constant__ LabelRows job) {
    using A = ComputeType<T>;
    __shared__ A of_warp[4][32];
    const RowPlace place = place_in_rows<BLOCK>(job.plan);
    const int length = place.mine ? job.plan.length : 0;
    const int step = place.lanes * pack_size<T>;
    const T *x = static_cast<const T *>(job.x) + (place.mine ? place.row * length : 0);
    const bool first = place.mine && place.lane == 0; // of the team
    int64_t label = job.ignored;
    A own = 0;
    if (first) label = label_of(job, place.row); // on its way while the row is
    Gathered<A> all = {-static_cast<A>(INFINITY), 0, 0, 0};
    for (int at = place.lane * pack_size<T>; at < length; at += PACKS * step) {
        Pack<T> packs[PACKS];
#pragma unroll
        for (int k = 0; k < PACKS; k++)
            packs[k] =
                load_pack(x, at + k * step, length, job.plan.aligned, -static_cast<A>(INFINITY));
        gather_packs<T>(job, packs, at, step, &all);
    }
    if (is_class(job, label)) own = static_cast<A>(x[label]);
    gather_row<BLOCK>(&all, place.lanes, job.smoothing != 0, of_warp);
    if (!first) return;
    write_loss<A>(job, place.row, label, own, all);
}

template <class T, int PACKS, bool BLOCK>
__global__ void __launch_bounds__(BLOCK ? long_threads : short_threads)
    cross_entropy_backward_kernel(const __grid_constant__ LabelRows job) {
    using A = ComputeType<T>;
    constexpr int pack = pack_size<T>;
    const RowPlace place = place_in_rows<BLOCK>(job.plan);
    if (!place.mine) return;
    const int length = job.plan.length, step = place.lanes * pack;
    const int64_t row = place.row, rows = job.plan.rows, label = label_of(job, row);
    const T *x = static_cast<const T *>(job.x) + row * length;
    T *to = static_cast<T *>(job.to) + row * length;
    const A *statistics = static_cast<const A *>(job.statistics);
    const bool counts = is_class(job, label);
    const A logarithm = statistics[row], part = statistics[2 * rows + row];
    A gradient = 1;
    if (job.gradient) gradient = static_cast<const A *>(job.gradient)[row * job.gradient_step];
    if (job.of_mean) gradient /= statistics[3 * rows];
    const A chosen = (1 - static_cast<A>(job.smoothing)) * statistics[rows + row];
    const A each = static_cast<A>(job.smoothing) / static_cast<A>(length);
    const int of_label = counts ? static_cast<int>(label) : -1;
    for (int at = place.lane * pack; at < length; at += PACKS * step) {
        Pack<T> packs[PACKS];
#pragma unroll
        for (int k = 0; k < PACKS; k++)
            packs[k] = load_pack(x, at + k * step, length, job.plan.aligned, 0);
#pragma unroll
        for (int k = 0; k < PACKS; k++) {
#pragma unroll
            for (int j = 0; j < pack; j++) {
                const int place_of = at + k * step + j;
                A slope = exp(static_cast<A>(packs[k].element[j]) - logarithm) * part;
                if (each != 0 && place_of < length) slope -= each * weight_of<A>(job, place_of);
                if (place_of == of_label) slope -= chosen;
                packs[k].element[j] = static_cast<T>(counts ? gradient * slope : A(0));
            }
            store_pack(to, at + k * step, length, job.plan.aligned, packs[k]);
        }
    }
}

// The sum of losses over the sum of weights, by one block; or both sums of each block's share, for
// a second launch. A fixed order for each n. total: the sum of weights; NULL: nowhere.
template <class T, class Out>
__global__ void __launch_bounds__(long_threads)
    mean_kernel(const T *losses, const T *weights, int64_t n, double *partial, Out *mean,
                Out *total) {
    __shared__ double of_warp[2][32];
    const int64_t first = blockIdx.x * mean_share;
    const int64_t end = first + mean_share < n ? first + mean_share : n;
    double sums[2] = {0, 0};
#pragma unroll 4
    for (int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
        sums[0] += static_cast<double>(losses[i]);
        sums[1] += static_cast<double>(weights[i]);
    }
    sums[0] = over_block<true>(sums[0], of_warp[0]);
    sums[1] = over_block<true>(sums[1], of_warp[1]);
    if (threadIdx.x != 0) return;
    if (partial) {
        partial[blockIdx.x] = sums[0], partial[gridDim.x + blockIdx.x] = sums[1];
        return;
    }
    *mean = static_cast<Out>(sums[0] / sums[1]);
    if (total) *total = static_cast<Out>(sums[1]);
}

// ---- The calls ----------------------------------------------------------------------------------

struct Labelled {
    const pvg_array *x, *labels, *weight, *statistics;
    int64_t ignored;
    double smoothing;
    bool of_mean() const { return statistics->ndim > 0 && statistics->shape[0] == 4; }
};

int check_rows(const Labelled &rows, const pvg_array *gradient, int *device) {
    const pvg_array *x = rows.x, *operands[5] = {x, rows.labels, rows.statistics};
    int n = 3;
    for (const pvg_array *a : {rows.weight, gradient})
        if (a) operands[n++] = a;
    PVG_PASS(check_operands(operands, n, device));
    for (int i = 0; i < n; i++)
        if (i != 1) PVG_PASS(check_kinds(operands[i]->dtype, floats));
    PVG_REQUIRE(is_among(rows.labels->dtype, integers), PVG_ERROR_TYPE,
                "labels are integers, not %s", dtype_name(rows.labels->dtype));
    PVG_REQUIRE(x->ndim > 0, PVG_ERROR_VALUE, "x has no axis of classes");
    const int64_t classes = x->shape[x->ndim - 1];
    PVG_REQUIRE(classes > 0 && classes <= INT32_MAX / 2, PVG_ERROR_VALUE,
                "takes from 1 to 2^30 classes, not %lld", static_cast<long long>(classes));
    PVG_REQUIRE(same_shape(rows.labels, x->ndim - 1, x->shape), PVG_ERROR_VALUE,
                "labels of shape %s for x of %s", shape_text(rows.labels), shape_text(x));
    const bool of_mean = rows.of_mean();
    PVG_REQUIRE(!gradient || same_shape(gradient, of_mean ? 0 : x->ndim - 1, x->shape),
                PVG_ERROR_VALUE, "gradient of shape %s for %s of x of %s", shape_text(gradient),
                of_mean ? "the mean" : "losses", shape_text(x));
    PVG_REQUIRE(!rows.weight || same_shape(rows.weight, 1, &classes), PVG_ERROR_VALUE,
                "a weight of shape %s for %lld classes", shape_text(rows.weight),
                static_cast<long long>(classes));
    const pvg_array *a = rows.statistics;
    const int dtype = x->dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32;
    PVG_REQUIRE(a->dtype == dtype, PVG_ERROR_TYPE, "statistics are %s, not %s", dtype_name(dtype),
                dtype_name(a->dtype));
    PVG_REQUIRE(is_contiguous(a) && a->ndim > 0 && (a->shape[0] == 3 || of_mean) &&
                    a->size == a->shape[0] * rows.labels->size,
                PVG_ERROR_VALUE,
                "statistics of shape %s for labels of %s: contiguous, (3, ...) or (4, ...)",
                shape_text(a), shape_text(rows.labels));
    PVG_REQUIRE(rows.smoothing >= 0 && rows.smoothing <= 1, PVG_ERROR_VALUE,
                "smoothing is from 0 to 1, not %g", rows.smoothing);
    return PVG_OK;
}

// Brings the operands into the form that kernels take, and notes where they lie.
int prepare_rows(Call &call, Labelled *rows, Temporary (&holders)[6], LabelRows *job) {
    const int dtype = rows->x->dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32;
    PVG_PASS(as_contiguous(call, rows->x, &holders[0], &rows->x));
    if (rows->labels->dtype != PVG_INT32)
        PVG_PASS(as_dtype(call, rows->labels, PVG_INT64, &holders[1], &rows->labels));
    PVG_PASS(as_contiguous(call, rows->labels, &holders[2], &rows->labels));
    if (rows->weight) {
        PVG_PASS(as_dtype(call, rows->weight, dtype, &holders[3], &rows->weight));
        PVG_PASS(as_contiguous(call, rows->weight, &holders[4], &rows->weight));
        PVG_PASS(call.reads(rows->weight));
    }
    PVG_PASS(call.reads(rows->x));
    PVG_PASS(call.reads(rows->labels));
    job->x = rows->x->data, job->labels = rows->labels->data;
    job->weight = rows->weight ? rows->weight->data : nullptr;
    job->statistics = rows->statistics->data;
    job->wide = rows->labels->dtype == PVG_INT64;
    job->ignored = rows->ignored, job->smoothing = rows->smoothing;
    return PVG_OK;
}

// Rows of a block: threads enough for row_packs each. Forward a lane has as many of a short row,
// too, where all else that is done for a row weighs the less, the more rows a warp has.
template <class T, bool BACKWARD>
int share_rows(const LabelRows &job, int64_t rows, int64_t length, RowPlan *plan) {
    constexpr int64_t pack = pack_size<T>;
    const int64_t packs = (length + pack - 1) / pack;
    const uintptr_t bits =
        reinterpret_cast<uintptr_t>(job.x) | (BACKWARD ? reinterpret_cast<uintptr_t>(job.to) : 0);
    plan->rows = rows, plan->length = static_cast<int>(length);
    plan->aligned = bits % alignof(Pack<T>) == 0 && (rows == 1 || length % pack == 0);
    const int64_t shares = BACKWARD ? packs : (packs + row_packs - 1) / row_packs;
    plan->lanes = static_cast<int>(shares < 32 ? power_of_two_from(shares) : 32);
    if (packs <= 32 * most_packs) return short_threads;
    int threads = short_threads;
    const int most = BACKWARD ? long_threads : label_threads;
    while (threads < most && threads * row_packs < packs) threads *= 2;
    plan->lanes = threads;
    return threads;
}

template <bool BACKWARD> int launch_labels(Call &call, LabelRows job, const pvg_array *x) {
    const int64_t length = x->shape[x->ndim - 1], rows = x->size / length;
    return dispatch<floats>(x->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const int threads = share_rows<T, BACKWARD>(job, rows, length, &job.plan);
        const bool in_block = job.plan.lanes > 32;
        const bool few = length <= (BACKWARD ? 32 : 1) * pack_size<T>; // for one pack of a lane
        const unsigned blocks =
            in_block ? blocks_for(rows, 1) : blocks_for(rows, threads / job.plan.lanes);
        if (BACKWARD && in_block)
            PVG_LAUNCH((cross_entropy_backward_kernel<T, row_packs, true>), blocks, threads, 0,
                       call.stream, job);
        else if (BACKWARD && few)
            PVG_LAUNCH((cross_entropy_backward_kernel<T, 1, false>), blocks, threads, 0,
                       call.stream, job);
        else if (BACKWARD)
            PVG_LAUNCH((cross_entropy_backward_kernel<T, row_packs, false>), blocks, threads, 0,
                       call.stream, job);
        else if (in_block)
            PVG_LAUNCH((cross_entropy_kernel<T, row_packs, true>), blocks, threads, 0, call.stream,
                       job);
        else if (few)
            PVG_LAUNCH((cross_entropy_kernel<T, 1, false>), blocks, threads, 0, call.stream, job);
        else
            PVG_LAUNCH((cross_entropy_kernel<T, row_packs, false>), blocks, threads, 0, call.stream,
                       job);
        return PVG_OK;
    });
}

template <class T> int launch_mean(Call &call, const void *losses, void *statistics, int64_t n,
                                   void *mean) {
    const T *each = static_cast<const T *>(losses);
    T *weights = static_cast<T *>(statistics) + n, *to = static_cast<T *>(mean);
    T *total = n > 0 ? static_cast<T *>(statistics) + 3 * n : nullptr;
    const int threads = n <= 8 * short_threads ? short_threads : long_threads;
    const int64_t blocks = (n + mean_share - 1) / mean_share;
    if (blocks <= 1) {
        PVG_LAUNCH((mean_kernel<T, T>), 1, threads, 0, call.stream, each, weights, n, nullptr, to,
                   total);
        return PVG_OK;
    }
    Workspace sums;
    PVG_PASS(sums.open(call, static_cast<size_t>(2 * blocks) * sizeof(double)));
    double *partial = sums.as<double>();
    PVG_LAUNCH((mean_kernel<T, T>), blocks_for(blocks, 1), threads, 0, call.stream, each, weights,
               n, partial, nullptr, nullptr);
    PVG_LAUNCH((mean_kernel<double, T>), 1, threads, 0, call.stream, partial, partial + blocks,
               blocks, nullptr, to, total);
    return PVG_OK;
}

// The mean of losses, which are written beside it and forgotten.
int run_mean(Call &call, LabelRows job, const Labelled &rows, pvg_array *mean) {
    const int64_t n = rows.labels->size;
    Temporary losses;
    PVG_PASS(new_array(call.device, mean->dtype, 1, &n, &losses.array));
    PVG_PASS(call.writes(losses.array));
    job.to = losses.array->data;
    if (n > 0) PVG_PASS(launch_labels<false>(call, job, rows.x));
    return mean->dtype == PVG_FLOAT64
               ? launch_mean<double>(call, job.to, job.statistics, n, mean->data)
               : launch_mean<float>(call, job.to, job.statistics, n, mean->data);
}

int run_cross_entropy(Call &call, Labelled rows, pvg_array *statistics, Output *result) {
    int device = -1;
    Temporary holders[6];
    LabelRows job = {};
    PVG_PASS(check_rows(rows, nullptr, &device));
    bool shared = statistics->readonly || may_overlap(statistics, rows.x) ||
                  may_overlap(statistics, rows.labels) ||
                  (rows.weight && may_overlap(statistics, rows.weight));
    PVG_REQUIRE(!shared, PVG_ERROR_VALUE,
                "statistics are read-only, or share memory with another array");
    PVG_PASS(call.begin(device));
    const int ndim = rows.of_mean() ? 0 : rows.labels->ndim;
    PVG_PASS(result->open(call, statistics->dtype, ndim, rows.labels->shape, nullptr, nullptr, 0));
    PVG_PASS(call.writes(statistics));
    if (rows.labels->size > 0) {
        PVG_PASS(prepare_rows(call, &rows, holders, &job));
        PVG_PASS(call.reports(&job.slot));
    }
    if (rows.of_mean()) return run_mean(call, job, rows, result->array);
    job.to = result->array->data;
    return rows.labels->size > 0 ? launch_labels<false>(call, job, rows.x) : PVG_OK;
}

int run_cross_entropy_backward(Call &call, Labelled rows, const pvg_array *gradient,
                               Output *result) {
    int device = -1;
    Temporary holders[6], cast, straight;
    LabelRows job = {};
    PVG_PASS(check_rows(rows, gradient, &device));
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, rows.x->dtype, rows.x->ndim, rows.x->shape, nullptr, nullptr, 0));
    if (rows.labels->size == 0) return PVG_OK;
    PVG_PASS(prepare_rows(call, &rows, holders, &job));
    if (gradient) {
        bool repeated = true; // one number for all rows, as of a sum or a mean
        for (int i = 0; i < gradient->ndim; i++)
            repeated = repeated && (gradient->shape[i] == 1 || gradient->strides[i] == 0);
        if (!repeated || gradient->dtype != rows.statistics->dtype) {
            PVG_PASS(as_dtype(call, gradient, rows.statistics->dtype, &cast, &gradient));
            PVG_PASS(as_contiguous(call, gradient, &straight, &gradient));
            repeated = false;
        }
        PVG_PASS(call.reads(gradient));
        job.gradient = gradient->data, job.gradient_step = repeated ? 0 : 1;
    }
    PVG_PASS(call.reads(rows.statistics));
    job.of_mean = rows.of_mean();
    job.to = result->array->data;
    return launch_labels<true>(call, job, rows.x);
}

} // namespace

Operations label_operations() {
    static constexpr Operation rows[] = {
        {PVG_CROSS_ENTROPY, "cross_entropy", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_cross_entropy(const pvg_array *x, const pvg_array *labels,
                                     const pvg_array *weight, int64_t ignored, double smoothing,
                                     pvg_array *statistics) {
    pvg::Call call("cross_entropy");
    pvg::Output result;
    const pvg::Labelled rows = {x, labels, weight, statistics, ignored, smoothing};
    int status = pvg::run_cross_entropy(call, rows, statistics, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_cross_entropy_backward(const pvg_array *gradient, const pvg_array *x,
                                              const pvg_array *labels, const pvg_array *weight,
                                              const pvg_array *statistics, int64_t ignored,
                                              double smoothing) {
    pvg::Call call("cross_entropy_backward");
    pvg::Output result;
    const pvg::Labelled rows = {x, labels, weight, statistics, ignored, smoothing};
    int status = pvg::run_cross_entropy_backward(call, rows, gradient, &result);
    return result.close(call, status);
}
