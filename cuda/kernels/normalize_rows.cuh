// Kernels of normalisation by rows that are read once: a team of threads holds each row in
// registers and shared memory while its mean is summed, and then the squares of distances from it.
#pragma once
#include "kernels/normalize.cuh"
#include "kernels/rows.cuh"

namespace pvg {
namespace {

struct NormRows {
    RowPlan plan;
    const void *from;
    void *to, *statistics; // statistics may be NULL
    OfChannels weight, bias;
    double epsilon, part; // part: 1 / length
    bool centered, alike; // alike: every row has the same weights and biases
};

// Weight and bias beside a pack, where there are any.
template <class T> struct Beside { ComputeType<T> weight[pack_size<T>], bias[pack_size<T>]; };
template <class T> __device__ __forceinline__ void fetch_beside(const NormRows &job, int64_t row,
                                                                int at, Beside<T> &beside) {
    if (job.weight.numbers) numbers_of<T>(job.weight, row, at, job.plan.length, beside.weight);
    if (job.bias.numbers) numbers_of<T>(job.bias, row, at, job.plan.length, beside.bias);
}

// y * weight + bias, as elements.
template <class T>
__device__ __forceinline__ Pack<T> weighted(const NormRows &job, const Beside<T> &beside,
                                            ComputeType<T> (&y)[pack_size<T>]) {
    if (job.weight.numbers)
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) y[j] *= beside.weight[j];
    if (job.bias.numbers)
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) y[j] += beside.bias[j];
    Pack<T> result;
#pragma unroll
    for (int j = 0; j < pack_size<T>; j++) result.element[j] = static_cast<T>(y[j]);
    return result;
}

template <class T, int PACKS, bool BLOCK>
__global__ void __launch_bounds__(BLOCK ? long_threads : short_threads)
    normalize_rows_kernel(const __grid_constant__ NormRows job) {
    using A = ComputeType<T>;
    constexpr int pack = pack_size<T>;
    PVG_DYNAMIC_SHARED(T, staged);
    __shared__ A of_warp[3][32];
    const RowPlace place = place_in_rows<BLOCK>(job.plan);
    HeldRows<T, 1, PACKS> row(job.plan, place.mine, place.lane, place.lanes, staged);
    const int64_t start = place.mine ? place.row * job.plan.length : 0;
    row.from[0] = static_cast<const T *>(job.from) + start;
    T *to = static_cast<T *>(job.to) + start;
    A sum = 0, squares = 0, rest = 0;
    row.load([&](int, const Pack<T>(&x)[1]) {
#pragma unroll
        for (int j = 0; j < pack; j++) sum += static_cast<A>(x[0].element[j]);
    });
    const A length = static_cast<A>(job.plan.length);
    A mean = job.centered ? sum_of_row<BLOCK>(sum, place.lanes, of_warp[0]) / length : A(0);
    row.again([&](int at, const Pack<T>(&x)[1]) {
#pragma unroll
        for (int j = 0; j < pack; j++) {
            const A distance = static_cast<A>(x[0].element[j]) - mean;
            if (at + j >= row.length) continue;
            squares = fma(distance, distance, squares);
            rest += distance; // what the mean was rounded by
        }
    });
    squares = sum_of_row<BLOCK>(squares, place.lanes, of_warp[1]) / length;
    rest = job.centered ? sum_of_row<BLOCK>(rest, place.lanes, of_warp[2]) / length : A(0);
    A variance = squares - rest * rest;
    if (variance < 0) variance = 0;
    const A scale = A(1) / sqrt(variance + static_cast<A>(job.epsilon));
    if (job.statistics && place.mine && place.lane == 0) {
        A *statistics = static_cast<A *>(job.statistics);
        statistics[place.row] = mean + rest;
        statistics[job.plan.rows + place.row] = variance;
    }
    row.template again_beside<Beside<T>>(
        [&](int at, Beside<T> &beside) { fetch_beside(job, place.row, at, beside); },
        [&](int at, const Pack<T>(&x)[1], const Beside<T> &beside) {
            A y[pack];
#pragma unroll
            for (int j = 0; j < pack; j++)
                y[j] = (static_cast<A>(x[0].element[j]) - mean - rest) * scale;
            store_pack(to, at, row.length, row.aligned, weighted<T>(job, beside, y));
        });
}

// Rows of a pack for each lane: a team has `each` of them under way together, up to rows_together,
// and fetches weight and bias once.
constexpr int rows_together = 4;
constexpr int64_t many_rows = 1 << 15; // of which each block may have several times as many

template <int N, class A> __device__ __forceinline__ void sums_of_lanes(A (&values)[N], int lanes) {
    for (int mask = lanes / 2; mask > 0; mask /= 2)
#pragma unroll
        for (int i = 0; i < N; i++) values[i] += __shfl_xor_sync(0xffffffffu, values[i], mask);
}

// 1 / sqrt(x), within 1 ulp in float32: an approximation and one step of Newton's method.
template <class A> __device__ __forceinline__ A inverse_root(A x) { return A(1) / sqrt(x); }
__device__ __forceinline__ float inverse_root(float x) {
    const float y = rsqrtf(x), wrong = fmaf(-x * y, y, 1.0f);
    return y == 0 || x == 0 ? y : fmaf(0.5f * y, wrong, y);
}

template <class T>
__global__ void __launch_bounds__(short_threads, 5)
    normalize_short_rows_kernel(const __grid_constant__ NormRows job, int each) {
    using A = ComputeType<T>;
    constexpr int pack = pack_size<T>, N = rows_together;
    const int lanes = job.plan.lanes, teams = short_threads / lanes;
    const int at = threadIdx.x % lanes * pack, length = job.plan.length;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * teams * each + threadIdx.x / lanes;
    const A part = static_cast<A>(job.part);
    Pack<T> x[N];
    Beside<T> beside = {};
    A mean[N], squares[2 * N] = {};
#pragma unroll
    for (int r = 0; r < N; r++) {
        const int64_t row = first + r * teams;
        const bool mine = r < each && row < job.plan.rows;
        x[r] = load_pack(static_cast<const T *>(job.from) + row * length, at, mine ? length : 0,
                         job.plan.aligned, 0);
    }
    if (job.alike && at < length) fetch_beside(job, 0, at, beside);
#pragma unroll
    for (int r = 0; r < N; r++) {
        mean[r] = 0;
#pragma unroll
        for (int j = 0; j < pack; j++) mean[r] += static_cast<A>(x[r].element[j]);
    }
    sums_of_lanes(mean, lanes);
#pragma unroll
    for (int r = 0; r < N; r++) {
        mean[r] = job.centered ? mean[r] * part : A(0);
#pragma unroll
        for (int j = 0; j < pack; j++) {
            const A distance = static_cast<A>(x[r].element[j]) - mean[r];
            if (at + j >= length) continue;
            squares[r] = fma(distance, distance, squares[r]);
            squares[N + r] += distance; // what the mean was rounded by
        }
    }
    sums_of_lanes(squares, lanes);
    A variance[N];
#pragma unroll
    for (int r = 0; r < N; r++) {
        const A rest = job.centered ? squares[N + r] * part : A(0);
        variance[r] = squares[r] * part - rest * rest;
        if (variance[r] < 0) variance[r] = 0;
        const A scale = inverse_root(variance[r] + static_cast<A>(job.epsilon));
        A y[pack];
#pragma unroll
        for (int j = 0; j < pack; j++)
            y[j] = (static_cast<A>(x[r].element[j]) - mean[r] - rest) * scale;
        mean[r] += rest;
        const int64_t row = first + r * teams;
        if (at >= length) continue;
        if (!job.alike) fetch_beside(job, row < job.plan.rows ? row : 0, at, beside);
        x[r] = weighted<T>(job, beside, y);
    }
#pragma unroll
    for (int r = 0; r < N; r++) {
        const int64_t row = first + r * teams;
        if (r >= each || row >= job.plan.rows) break;
        store_pack(static_cast<T *>(job.to) + row * length, at, length, job.plan.aligned, x[r]);
        if (job.statistics && at == 0) {
            A *statistics = static_cast<A *>(job.statistics);
            statistics[row] = mean[r];
            statistics[job.plan.rows + row] = variance[r];
        }
    }
}

} // namespace
} // namespace pvg
