// pvg_pair_loss and its backward pass: losses of two arrays, element by element, and their sum.
//
// A block reads its chunk of both arrays once and leaves the sum of its losses; one block adds
// these up. How long chunks are depends on the size alone, and each thread has the same elements
// wherever the arrays lie, so that the bits are the same from run to run and from view to view. A
// sum of few is that of one block, without the second launch. Losses of float32 and halves are
// added up in float64, those of float64 together with what rounding drops.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include "arrays/operation.cuh"
#include "kernels/elementwise.cuh"
#include <float.h>

namespace pvg {

namespace {

constexpr int loss_threads = 256;
constexpr int loss_vectors = 4;      // of a thread and an array, under way together
constexpr int64_t one_block = 2;     // rounds: with more a second launch is shorter
constexpr int64_t most_parts = 4096; // enough to keep all multiprocessors busy

// ---- Losses -------------------------------------------------------------------------------------

// Each has the loss of x and t, its derivative by x and, if `of_target`, by t.
template <class A> struct SquareLoss {
    __device__ __forceinline__ A value(A x, A t) const { return (x - t) * (x - t); }
    __device__ __forceinline__ A slope(A x, A t, bool of_target) const {
        return A(of_target ? -2 : 2) * (x - t);
    }
};

// Of distances below the limit their square, of others a line: Huber's and the absolute value.
template <class A> struct LineLoss {
    A limit, square, line, less; // square * d^2; line * (|d| - less)

    __device__ __forceinline__ A value(A x, A t) const {
        const A d = x - t, size = fabs(d);
        return size < limit ? square * d * d : line * (size - less);
    }
    __device__ __forceinline__ A slope(A x, A t, bool of_target) const {
        const A d = of_target ? t - x : x - t;
        const A sign = d > 0 ? A(1) : d < 0 ? A(-1) : d; // NaN and 0 stay
        return fabs(d) < limit ? 2 * square * d : line * sign;
    }
};

// Of logits: -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)).
template <class A> struct LogitsLoss {
    __device__ __forceinline__ A value(A x, A t) const {
        const A least = x < 0 ? -x : A(0);
        return (1 - t) * x + (log1p(exp(-fabs(x))) + least);
    }
    __device__ __forceinline__ A slope(A x, A t, bool of_target) const {
        return of_target ? -x : sigmoid(x) - t;
    }
};

template <class A> LineLoss<A> line_loss(int loss, double number) {
    if (loss == PVG_LOSS_ABSOLUTE) number = 0;
    const bool smooth = loss == PVG_LOSS_SMOOTH;
    const double most = sizeof(A) == 4 ? FLT_MAX : DBL_MAX, square = smooth ? 0.5 / number : 0.5;
    const double line = loss == PVG_LOSS_HUBER ? number : 1;
    return {static_cast<A>(number), static_cast<A>(square < most ? square : most),
            static_cast<A>(line), static_cast<A>(0.5 * number)};
}

// f(what computes the loss), in type A.
template <class A, class F> int with_loss(int loss, double number, F &&f) {
    if (loss == PVG_LOSS_SQUARE) return f(SquareLoss<A>());
    if (loss == PVG_LOSS_LOGITS) return f(LogitsLoss<A>());
    return f(line_loss<A>(loss, number));
}

// ---- Their sum ----------------------------------------------------------------------------------

struct LossSum {
    double sum, error; // error: of float64 alone

    __device__ __forceinline__ void add(float value) { sum += value; }
    __device__ __forceinline__ void add(double value) { // Knuth's TwoSum
        const double total = sum + value, part = total - sum;
        error += (sum - (total - part)) + (value - part);
        sum = total;
    }
    __device__ __forceinline__ void merge(const LossSum &other) {
        add(other.sum);
        error += other.error;
    }
    __device__ __forceinline__ double total() const {
        const double all = sum + error;
        return all == all ? all : sum; // the error of an infinite sum is NaN
    }
};

__device__ __forceinline__ LossSum merge_losses(const LossSum &own) {
    __shared__ LossSum shared[loss_threads];
    shared[threadIdx.x] = own;
    for (unsigned half = loss_threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) shared[threadIdx.x].merge(shared[threadIdx.x + half]);
    }
    return shared[0]; // of thread 0 alone
}

struct LossJob {
    const void *x, *target;
    LossSum *parts; // of blocks; NULL: there is one block, which writes `to`
    void *to;
    int64_t size, chunk; // elements; of a block
    double count;        // that the sum is divided by
    bool aligned;
};

// 16 bytes as one word, which the compiler takes apart no more. They stay in the cache, for the
// backward pass reads them again.
template <class T> __device__ __forceinline__ Vector<T, 16 / sizeof(T)> load_whole(const T *from) {
    const uint4 words = *reinterpret_cast<const uint4 *>(from);
    Vector<T, 16 / sizeof(T)> vector;
    memcpy(&vector, &words, sizeof vector);
    return vector;
}

// A thread's part of a round, at x and t: vectors side by side with those of its neighbours, of
// which `left` elements are before the end; with WHOLE all are, on addresses for vectors.
template <bool WHOLE, class T, class L>
__device__ __forceinline__ void add_round(const L &loss, const T *x, const T *t, int left,
                                          LossSum *own) {
    using A = ComputeType<T>;
    constexpr int count = 16 / sizeof(T), stride = loss_threads * count;
    Vector<T, count> of_x[loss_vectors], of_t[loss_vectors];
#pragma unroll
    for (int v = 0; v < loss_vectors; v++) {
        if constexpr (WHOLE) {
            of_x[v] = load_whole(x + v * stride);
            of_t[v] = load_whole(t + v * stride);
        } else {
#pragma unroll
            for (int e = 0; e < count; e++) {
                const int place = v * stride + e;
                of_x[v].element[e] = place < left ? x[place] : T();
                of_t[v].element[e] = place < left ? t[place] : T();
            }
        }
    }
#pragma unroll
    for (int v = 0; v < loss_vectors; v++)
#pragma unroll
        for (int e = 0; e < count; e++)
            if (WHOLE || v * stride + e < left)
                own->add(loss.value(static_cast<A>(of_x[v].element[e]),
                                    static_cast<A>(of_t[v].element[e])));
}

template <class T, class L>
__global__ void __launch_bounds__(loss_threads) loss_sum_kernel(const L loss, const LossJob job) {
    using A = ComputeType<T>;
    constexpr int count = 16 / sizeof(T), round = loss_threads * count * loss_vectors;
    const T *x = static_cast<const T *>(job.x), *t = static_cast<const T *>(job.target);
    const int64_t begin = blockIdx.x * job.chunk, behind = begin + job.chunk;
    const int64_t end = behind < job.size ? behind : job.size;
    LossSum own = {0, 0};
    int64_t done = begin;
    for (; job.aligned && done + round <= end; done += round) {
        const int64_t at = done + threadIdx.x * count;
        add_round<true>(loss, x + at, t + at, round, &own);
    }
    for (; done < end; done += round) {
        const int64_t at = done + threadIdx.x * count;
        const int64_t left = end - at < round ? end - at : round;
        add_round<false>(loss, x + at, t + at, static_cast<int>(left), &own);
    }
    own = merge_losses(own);
    if (threadIdx.x > 0) return;
    if (job.parts)
        job.parts[blockIdx.x] = own;
    else
        *static_cast<A *>(job.to) = static_cast<A>(own.total() / job.count);
}

template <class A>
__global__ void __launch_bounds__(loss_threads)
    loss_parts_kernel(const LossSum *parts, int64_t count, double divisor, A *to) {
    LossSum own = {0, 0};
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < count; i += loss_threads) own.merge(parts[i]);
    own = merge_losses(own);
    if (threadIdx.x == 0) *to = static_cast<A>(own.total() / divisor);
}

template <class T, class L>
int launch_sum(Call &call, const L &loss, const pvg_array *x, const pvg_array *target, bool is_mean,
               pvg_array *to) {
    using A = ComputeType<T>;
    constexpr int count = 16 / sizeof(T);
    constexpr int64_t round = loss_threads * count * loss_vectors;
    const int64_t size = x->size;
    const int64_t rounds = size <= one_block * round ? one_block : size / (round * most_parts) + 1;
    const double divisor = is_mean ? static_cast<double>(size) : 1;
    const bool aligned = is_aligned(x, count, 0, nullptr) && is_aligned(target, count, 0, nullptr);
    LossJob job = {x->data, target->data,   nullptr, to->data,
                   size,    rounds * round, divisor, aligned};
    const unsigned blocks = size ? blocks_for(size, job.chunk) : 1;
    Workspace memory;
    if (blocks > 1) {
        PVG_PASS(memory.open(call, blocks * sizeof(LossSum)));
        job.parts = memory.as<LossSum>();
    }
    PVG_LAUNCH((loss_sum_kernel<T, L>), blocks, loss_threads, 0, call.stream, loss, job);
    if (blocks > 1)
        PVG_LAUNCH(loss_parts_kernel<A>, 1, loss_threads, 0, call.stream, job.parts,
                   int64_t(blocks), divisor, data<A>(to));
    return PVG_OK;
}

// ---- Each of them, and gradients ----------------------------------------------------------------

template <class T, class L> struct EachLoss {
    using A = ComputeType<T>;
    static constexpr int inputs = 2, vector = 16 / sizeof(A);
    L loss;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        A x[Access::count], t[Access::count];
        read_as<T>(access, 0, x);
        read_as<T>(access, 1, t);
#pragma unroll
        for (int e = 0; e < Access::count; e++) x[e] = loss.value(x[e], t[e]);
        write_as<A>(access, x);
    }
};

template <class T, class L> struct LossSlope {
    using A = ComputeType<T>;
    static constexpr int inputs = 3, vector = 16 / sizeof(T);
    L loss;
    A count; // of a mean, whose gradient is one number; else 1
    bool of_target;

    template <class Access> __device__ __forceinline__ void operator()(const Access &access) const {
        A x[Access::count], t[Access::count], g[Access::count];
        read_as<T>(access, 0, x);
        read_as<T>(access, 1, t);
        read_as<A>(access, 2, g);
        if (count != 1) {
            const A each = g[0] / count;
#pragma unroll
            for (int e = 0; e < Access::count; e++) g[e] = each;
        }
#pragma unroll
        for (int e = 0; e < Access::count; e++) x[e] = g[e] * loss.slope(x[e], t[e], of_target);
        write_as<T>(access, x);
    }
};
// Blocks of 1024 threads would leave exponentials too few registers.
template <class T, class L> constexpr bool is_long<EachLoss<T, L>> = true;
template <class T, class L> constexpr bool is_long<LossSlope<T, L>> = true;

struct PairJob {
    int loss;
    const pvg_array *x, *target;
    double number;
    int reduction;
};

int check_pair(const PairJob &job, const pvg_array *gradient, int *device) {
    const pvg_array *operands[3] = {job.x, job.target, gradient};
    PVG_REQUIRE(job.loss >= PVG_LOSS_SQUARE && job.loss <= PVG_LOSS_LOGITS, PVG_ERROR_VALUE,
                "%d is not the code of a loss", job.loss);
    PVG_REQUIRE(job.reduction >= PVG_LOSSES_EACH && job.reduction <= PVG_LOSSES_MEAN,
                PVG_ERROR_VALUE, "%d is not the code of a reduction", job.reduction);
    PVG_REQUIRE(job.number >= 0, PVG_ERROR_VALUE, "the loss's number is 0 or more, not %g",
                job.number);
    PVG_PASS(check_operands(operands, gradient ? 3 : 2, device));
    for (int i = 0; i < (gradient ? 3 : 2); i++) PVG_PASS(check_kinds(operands[i]->dtype, floats));
    PVG_REQUIRE(job.x->dtype == job.target->dtype, PVG_ERROR_TYPE, "target of %s, input of %s",
                dtype_name(job.target->dtype), dtype_name(job.x->dtype));
    PVG_REQUIRE(same_shape(job.target, job.x->ndim, job.x->shape), PVG_ERROR_VALUE,
                "target of shape %s, input of %s", shape_text(job.target), shape_text(job.x));
    if (!gradient) return PVG_OK;
    const int ndim = job.reduction == PVG_LOSSES_EACH ? job.x->ndim : 0;
    PVG_REQUIRE(same_shape(gradient, ndim, job.x->shape), PVG_ERROR_VALUE,
                "gradient of shape %s for an input of %s", shape_text(gradient), shape_text(job.x));
    return PVG_OK;
}

int sum_dtype(const pvg_array *x) { return x->dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32; }

int run_pair_loss(Call &call, PairJob job, Output *result) {
    int device = -1;
    Temporary straight[2];
    PVG_PASS(check_pair(job, nullptr, &device));
    PVG_PASS(call.begin(device));
    const bool each = job.reduction == PVG_LOSSES_EACH, is_mean = job.reduction == PVG_LOSSES_MEAN;
    PVG_PASS(result->open(call, sum_dtype(job.x), each ? job.x->ndim : 0, job.x->shape, nullptr,
                          nullptr, 0));
    PVG_PASS(as_contiguous(call, job.x, &straight[0], &job.x));
    PVG_PASS(as_contiguous(call, job.target, &straight[1], &job.target));
    PVG_PASS(call.reads(job.x));
    PVG_PASS(call.reads(job.target));
    if (each && job.x->size == 0) return PVG_OK;
    return dispatch<floats>(job.x->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return with_loss<ComputeType<T>>(job.loss, job.number, [&](const auto &loss) -> int {
            using F = EachLoss<T, std::decay_t<decltype(loss)>>;
            pvg_array *out = result->array;
            if (!each) return launch_sum<T>(call, loss, job.x, job.target, is_mean, out);
            const pvg_array *const inputs[2] = {job.x, job.target};
            Operands<2> operands{};
            bool contiguous, aligned;
            PVG_PASS(open_map(call, out, inputs, F::vector, &operands, &contiguous, &aligned));
            return launch_contiguous(call, F{loss}, operands, out->size, aligned);
        });
    });
}

int run_pair_slope(Call &call, PairJob job, const pvg_array *gradient, int of_target,
                   Output *result) {
    int device = -1;
    Temporary straight[3], cast;
    PVG_PASS(check_pair(job, gradient, &device));
    PVG_REQUIRE(of_target == 0 || of_target == 1, PVG_ERROR_VALUE, "of_target is 0 or 1, got %d",
                of_target);
    PVG_PASS(call.begin(device));
    PVG_PASS(result->open(call, job.x->dtype, job.x->ndim, job.x->shape, nullptr, nullptr, 0));
    if (job.x->size == 0) return PVG_OK;
    PVG_PASS(as_contiguous(call, job.x, &straight[0], &job.x));
    PVG_PASS(as_contiguous(call, job.target, &straight[1], &job.target));
    bool repeated = gradient != nullptr; // one number for all, as of a sum or a mean
    if (gradient) {
        PVG_PASS(as_dtype(call, gradient, sum_dtype(job.x), &cast, &gradient));
        for (int i = 0; i < gradient->ndim; i++)
            repeated = repeated && (gradient->shape[i] == 1 || gradient->strides[i] == 0);
        if (!repeated) PVG_PASS(as_contiguous(call, gradient, &straight[2], &gradient));
    }
    return dispatch<floats>(job.x->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        using A = ComputeType<T>;
        return with_loss<A>(job.loss, job.number, [&](const auto &loss) -> int {
            using F = LossSlope<T, std::decay_t<decltype(loss)>>;
            const A count = job.reduction == PVG_LOSSES_MEAN ? static_cast<A>(job.x->size) : A(1);
            const pvg_array *const inputs[3] = {job.x, job.target, repeated ? nullptr : gradient};
            Operands<3> operands{};
            bool contiguous, aligned;
            PVG_PASS(
                open_map(call, result->array, inputs, F::vector, &operands, &contiguous, &aligned));
            if (repeated) {
                PVG_PASS(call.reads(gradient));
                operands.input[2] = gradient->data, operands.repeated[2] = true;
            }
            const A one = 1; // what an input that is NULL is read as
            memcpy(operands.scalar.bytes, &one, sizeof one);
            return launch_contiguous(call, F{loss, count, of_target == 1}, operands, job.x->size,
                                     aligned);
        });
    });
}

} // namespace

Operations pair_loss_operations() {
    static constexpr Operation rows[] = {
        {PVG_PAIR_LOSS, "pair_loss", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_pair_loss(int loss, const pvg_array *x, const pvg_array *target,
                                 double number, int reduction) {
    pvg::Call call("pair_loss");
    pvg::Output result;
    int status = pvg::run_pair_loss(call, {loss, x, target, number, reduction}, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_pair_loss_backward(int loss, const pvg_array *gradient, const pvg_array *x,
                                          const pvg_array *target, double number, int reduction,
                                          int of_target) {
    pvg::Call call("pair_loss_backward");
    pvg::Output result;
    const pvg::PairJob job = {loss, x, target, number, reduction};
    int status = pvg::run_pair_slope(call, job, gradient, of_target, &result);
    return result.close(call, status);
}
