// Variances, sums of exponentials, and sums and means without NaN: reductions whose accumulators
// hold more than one number, so that one reading is enough. They go the ways of pvg_reduce, by
// reduce::run, and one of their own where columns are short.
#include "arrays/call.cuh"
#include "arrays/operation.cuh"
#include "kernels/quick_exp.cuh"
#include "kernels/reduce_thin.cuh"
#include "kernels/rows.cuh"
#include <math.h>

namespace pvg {

namespace reduce {

// A sum of what is no NaN, and how many that are.
template <class Sum> struct WithoutNan {
    static constexpr bool ordered = true;
    Sum sum;
    int64_t count;

    __device__ static WithoutNan identity() { return {Sum::identity(), 0}; }
    template <class T> __device__ void add(T value, int64_t index, const Result &result) {
        if (value != value) return;
        sum.add(value, index, result);
        count++;
    }
    __device__ void merge(const WithoutNan &other) {
        sum.merge(other.sum);
        count += other.count;
    }
    // kind 1: the mean.
    template <class R> static constexpr bool gives = Sum::template gives<R>;
    template <class R> __device__ R total(const Result &result) const {
        Result own = result;
        own.is_mean = result.kind == 1, own.count = count;
        return sum.template total<R>(own);
    }
};
// With more of them than one for a row, short rows would not leave enough registers.
template <class T, class Sum> inline constexpr int row_chains<T, WithoutNan<Sum>> = 1;

namespace {

// The square root of what a result of type R has room for: of float32 and less by a root of float32
// and one step, of which 2^-40 is left. Of double precision it is as much work as fifty additions.
template <class R> __device__ double root_of(double x) {
    if constexpr (sizeof(R) < 8) {
        const float rough = sqrtf(static_cast<float>(x));
        const double near = rough;
        if (rough > 1e-15f && rough < 1e15f) return near + fma(-near, near, x) * (0.5f / rough);
    }
    return sqrt(x);
}

// The variance, or with `root` its square root, of `left`, the sum of squared distances from the
// mean; of elements whose sum and squares' sum are these.
template <class R>
__device__ R spread_of(double left, double sum, double squares, const Result &result) {
    if (left < 0) left = 0;
    if (squares - squares != 0) left = squares + squares; // infinite or NaN
    if (sum - sum != 0)
        left = sum - sum; // NaN: an element is no number
    else if (left != left)
        left = INFINITY; // squares beyond float64
    const double variance = left * result.inverse[0];
    return static_cast<R>(result.kind == 1 ? root_of<R>(variance) : variance);
}

// Distances from the first element taken in, summed with their squares in float64: of float32
// these are exact but for the last place, and an element that is far out is itself the reason for
// a variance as large. Distances from two elements are merged exactly as well.
struct Spread {
    static constexpr bool ordered = true;
    double origin, sum, squares;
    int64_t count;

    __device__ static Spread identity() { return {0, 0, 0, 0}; }
    template <class T> __device__ void add(T value, int64_t, const Result &) {
        const double x = value;
        if (count == 0) origin = x;
        const double distance = x - origin;
        sum += distance;
        squares = fma(distance, distance, squares);
        count++;
    }
    __device__ void merge(const Spread &other) {
        if (other.count == 0) return;
        if (count == 0) {
            *this = other;
            return;
        }
        const double shift = other.origin - origin, n = static_cast<double>(other.count);
        squares += other.squares + shift * fma(n, shift, 2 * other.sum);
        sum += fma(n, shift, other.sum);
        count += other.count;
    }
    // kind 1: the square root.
    template <class R> static constexpr bool gives = is_float<R>;
    template <class R> __device__ R total(const Result &result) const {
        double left = 0;
        if (count > 0) left = squares - sum * result.inverse[1] * sum;
        return spread_of<R>(left, sum, squares, result);
    }
};

// Halves and their squares, summed in float64. Where their mean is much larger than what is left,
// they are all of the same magnitude, and so multiples of the same unit: both sums are exact, as
// is then the difference of their products.
struct HalfSpread {
    static constexpr bool ordered = true;
    double sum, squares;

    __device__ static HalfSpread identity() { return {0, 0}; }
    __device__ void add(float value, int64_t, const Result &) {
        const double x = value;
        sum += x;
        squares = fma(x, x, squares);
    }
    __device__ void merge(const HalfSpread &other) {
        sum += other.sum;
        squares += other.squares;
    }
    template <class R> static constexpr bool gives = is_float<R>;
    template <class R> __device__ R total(const Result &result) const {
        const double n = static_cast<double>(result.count);
        const double product = n * squares, square = sum * sum;
        const double rest = fma(n, squares, -product) - fma(sum, sum, -square);
        const double left = result.count > 0 ? (product - square + rest) * result.inverse[1] : 0;
        return spread_of<R>(left, sum, squares, result);
    }
};
template <class T> using SpreadOf = std::conditional_t<is_half<T>, HalfSpread, Spread>;

// The largest element and the sum of exp(x - largest), by one exponential an element.
template <class A> struct Exponentials {
    static constexpr bool ordered = true;
    A most, sum;

    __device__ static Exponentials identity() { return {-static_cast<A>(INFINITY), 0}; }
    __device__ void add(A value, int64_t, const Result &) {
        const A part = value == most ? A(1) : exp(-fabs(value - most)); // NaN stays
        const bool larger = value > most;
        sum = larger ? fma(sum, part, A(1)) : sum + part;
        most = larger ? value : most;
    }
    __device__ void merge(const Exponentials &other) {
        const A part = other.most == most ? A(1) : exp(-fabs(other.most - most));
        const bool larger = other.most > most;
        sum = larger ? fma(sum, part, other.sum) : fma(other.sum, part, sum);
        most = larger ? other.most : most;
    }
    // Of the sum its logarithm; or both numbers for softmax, kind 1, and for its logarithm, 2.
    template <class R>
    static constexpr bool gives =
        (is_float<R> && (sizeof(R) == 8) == (sizeof(A) == 8)) || std::is_same_v<R, Complex<A>>;
    template <class R> __device__ R total(const Result &result) const {
        if constexpr (is_complex<R>) {
            const A all = most - most != 0 ? static_cast<A>(NAN) : sum;
            return R(most, result.kind == 2 ? log(all) : all);
        } else {
            return static_cast<R>(most + log(sum));
        }
    }
};
template <class T> using ExponentialsOf = Exponentials<ComputeType<T>>;

// Rows of which lanes of a warp have all elements in registers: the largest is known before the
// first exponential, so that an element takes one quick one.
struct HeldExponentials {
    const void *data;
    int64_t rows, stride;
    int length, lanes;
    bool aligned;
};

template <class T, int PACKS>
__global__ void __launch_bounds__(short_threads)
    held_exponentials_kernel(const HeldExponentials job, const Result result) {
    using A = ComputeType<T>;
    const int lanes = job.lanes, lane = static_cast<int>(threadIdx.x) % lanes;
    const int64_t row =
        static_cast<int64_t>(blockIdx.x) * (short_threads / lanes) + threadIdx.x / lanes;
    const int length = row < job.rows ? job.length : 0;
    const T *from = static_cast<const T *>(job.data) + (length ? row * job.stride : 0);
    pvg::Pack<T> held[PACKS];
    A most = -static_cast<A>(INFINITY), sum = 0;
#pragma unroll
    for (int k = 0; k < PACKS; k++)
        held[k] =
            pvg::load_pack(from, (k * lanes + lane) * pvg::pack_size<T>, length, job.aligned, most);
#pragma unroll
    for (int k = 0; k < PACKS; k++)
#pragma unroll
        for (int j = 0; j < pvg::pack_size<T>; j++)
            most = larger(most, static_cast<A>(held[k].element[j]));
    most = largest_of_lanes(most, lanes);
#pragma unroll
    for (int k = 0; k < PACKS; k++)
#pragma unroll
        for (int j = 0; j < pvg::pack_size<T>; j++)
            sum += quick_exp(static_cast<A>(held[k].element[j]) - most);
    sum = sum_of_lanes(sum, lanes);
    const bool finite = most - most == 0; // of infinity and NaN the largest is the result
    if (lane == 0 && length)
        static_cast<T *>(result.data)[row * result.outer_stride] =
            static_cast<T>(finite ? most + log(sum) : most);
}

template <class T>
using SumWithoutNan =
    WithoutNan<std::conditional_t<sizeof(T) == 8, DoubleSum,
                                  std::conditional_t<sizeof(T) == 4, FloatSum, HalfSum>>>;

int launch_without_nan(Call &call, const Operation &, const pvg_array *a, const Layout &p,
                       const Result &result) {
    return dispatch<floats>(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return reduce_large<T, SumWithoutNan<T>>(call, a->data, p, result);
    });
}

int launch_spread(Call &call, const Operation &, const pvg_array *a, const Layout &p,
                  const Result &result) {
    return dispatch<floats>(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return is_wide(p) ? reduce_wide<T, SpreadOf<T>>(call, a->data, p, result)
                          : reduce_large<T, SpreadOf<T>>(call, a->data, p, result);
    });
}

// Four packs a lane where that is enough, else eight.
template <class T>
int launch_held_exponentials(Call &call, HeldExponentials job, const Result &result) {
    constexpr int few = 4;
    const int packs = (job.length + pvg::pack_size<T> - 1) / pvg::pack_size<T>;
    const int64_t lanes = power_of_two_from((packs + few - 1) / few);
    job.lanes = lanes < 32 ? static_cast<int>(lanes) : 32;
    job.aligned = packs_lie_well<T>(&job.data, 1, job.rows, job.stride);
    const unsigned blocks = blocks_for(job.rows, short_threads / job.lanes);
    if (packs <= few * job.lanes)
        PVG_LAUNCH((held_exponentials_kernel<T, few>), blocks, short_threads, 0, call.stream, job,
                   result);
    else
        PVG_LAUNCH((held_exponentials_kernel<T, most_packs>), blocks, short_threads, 0, call.stream,
                   job, result);
    return PVG_OK;
}

// Whether an operand has short rows, whose elements lie side by side, for results like it.
template <class T>
bool are_held(const pvg_array *a, const Layout &p, const Result &result) {
    constexpr int64_t most = 32 * most_packs * pvg::pack_size<T>, most_rows = int64_t(1) << 30;
    return result.kind == 0 && result.dtype == a->dtype && !p.anywhere && !p.after &&
           p.inner == 1 && p.length_stride == 1 && p.length <= most && p.outer <= most_rows;
}

int launch_exponentials(Call &call, const Operation &, const pvg_array *a, const Layout &p,
                        const Result &result) {
    return dispatch<floats>(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        if (!are_held<T>(a, p, result))
            return reduce_large<T, ExponentialsOf<T>>(call, a->data, p, result);
        const int length = static_cast<int>(p.length);
        const HeldExponentials job = {a->data, p.outer, p.outer_stride, length, 0, false};
        return launch_held_exponentials<T>(call, job, result);
    });
}

// Of nothing a variance is NaN, and so it goes as if it had an identity.
constexpr Operation variance = {PVG_VAR,         "var", Family::other, pvg::ordered,
                                Gives::floating, 0,     Identity::zero};
constexpr Operation without_nan = {PVG_NONE,        "nansum", Family::other, floats,
                                   Gives::floating, 0,        Identity::zero};
// As of a maximum: without elements there is none.
constexpr Operation exponential = {PVG_LOGSUMEXP,   "logsumexp", Family::other,  pvg::ordered,
                                   Gives::floating, 0,           Identity::none, Order::largest};

} // namespace

int logarithm_of_sums(Call &call, const pvg_array *a, int naxes, const int *axes, bool keepdims,
                      pvg_array *out, Output *result) {
    Reduction reduction = {exponential, launch_exponentials, default_float()};
    reduction.large = true;
    return run(call, reduction, a, naxes, axes, keepdims, out, result);
}

int exponential_sums(Call &call, const pvg_array *a, int naxes, const int *axes, bool logarithm,
                     Output *result) {
    Reduction reduction = {exponential, launch_exponentials};
    reduction.large = true;
    reduction.kind = logarithm ? 2 : 1;
    reduction.gives = a->dtype == PVG_FLOAT64 ? PVG_COMPLEX128 : PVG_COMPLEX64;
    return run(call, reduction, a, naxes, axes, true, nullptr, result);
}

} // namespace reduce

namespace {

int run_var(Call &call, const pvg_array *a, int naxes, const int *axes, double ddof, int root,
            bool keepdims, pvg_array *out, Output *result) {
    PVG_REQUIRE(root == 0 || root == 1, PVG_ERROR_VALUE, "root is 0 or 1, got %d", root);
    reduce::Reduction reduction = {reduce::variance, reduce::launch_spread, PVG_FLOAT64};
    reduction.kind = root, reduction.ddof = ddof, reduction.large = true;
    return reduce::run(call, reduction, a, naxes, axes, keepdims, out, result);
}

int run_nansum(Call &call, const pvg_array *a, int naxes, const int *axes, int mean, bool keepdims,
               Output *result) {
    PVG_REQUIRE(mean == 0 || mean == 1, PVG_ERROR_VALUE, "mean is 0 or 1, got %d", mean);
    reduce::Reduction reduction = {reduce::without_nan, reduce::launch_without_nan};
    reduction.kind = mean;
    return reduce::run(call, reduction, a, naxes, axes, keepdims, nullptr, result);
}

} // namespace

Operations statistics_operations() {
    static constexpr Operation rows[] = {
        {PVG_VAR, "var", Family::other, ordered, Gives::floating},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_var(const pvg_array *a, int naxes, const int *axes, double ddof, int root,
                           int keepdims, pvg_array *out) {
    pvg::Call call(root ? "std" : "var");
    pvg::Output result;
    int status = pvg::run_var(call, a, naxes, axes, ddof, root, keepdims != 0, out, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_nansum(const pvg_array *a, int naxes, const int *axes, int mean,
                              int keepdims) {
    pvg::Call call(mean ? "nanmean" : "nansum");
    pvg::Output result;
    int status = pvg::run_nansum(call, a, naxes, axes, mean, keepdims != 0, &result);
    return result.close(call, status);
}
