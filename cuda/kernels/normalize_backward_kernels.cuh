// The kernels of rows for normalize_backward.cu: dx alone, or with the sums of dweight and dbias.
#pragma once
#include "kernels/normalize.cuh"

namespace pvg {

namespace {

struct SlopeRows {
    RowPlan plan;
    const void *gradient, *x, *statistics;
    void *dx, *partials; // partials: of each block [2][length], dweight and dbias
    OfChannels weight;
    int64_t each; // rows of a block
    double epsilon;
    bool centered;
};

// Both sums over a block of whole warps, up to 32.
template <class A> __device__ __forceinline__ void two_over_block(A &a, A &b, A (*of_warp)[32]) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    a = sum_of_lanes(a, 32), b = sum_of_lanes(b, 32);
    if (lane == 0) of_warp[0][threadIdx.x / 32] = a, of_warp[1][threadIdx.x / 32] = b;
    __syncthreads();
    const bool there = lane < static_cast<int>(blockDim.x / 32);
    a = sum_of_lanes(there ? of_warp[0][lane] : A(0), 32);
    b = sum_of_lanes(there ? of_warp[1][lane] : A(0), 32);
}
template <bool BLOCK, class A>
__device__ __forceinline__ void two_over_row(A &a, A &b, int lanes, A (*of_warp)[32]) {
    if (BLOCK)
        two_over_block(a, b, of_warp);
    else
        a = sum_of_lanes(a, lanes), b = sum_of_lanes(b, lanes);
}

// What a row's statistics say.
template <class A> struct Standard { A mean, scale; };
template <class A>
__device__ __forceinline__ Standard<A> standard_of(const SlopeRows &job, int64_t row) {
    const A *statistics = static_cast<const A *>(job.statistics);
    const A variance = statistics[job.plan.rows + row];
    return {statistics[row], A(1) / sqrt(variance + static_cast<A>(job.epsilon))};
}

// Of a pack: the gradient, times weight, and the standardised elements. BESIDE: there is a weight
// an element.
template <class T, bool BESIDE> struct Slope {
    using A = ComputeType<T>;
    A gradient[pack_size<T>], weighted[pack_size<T>], y[pack_size<T>];

    __device__ __forceinline__ Slope(const SlopeRows &job, int64_t row, const Standard<A> &standard,
                                     int at, const Pack<T> &g, const Pack<T> &x) {
        A weight[pack_size<T>];
        if (job.weight.numbers && BESIDE)
            numbers_beside<T>(job.weight, at, job.plan.length, weight);
        else if (job.weight.numbers)
            numbers_of<T>(job.weight, row, at, job.plan.length, weight);
        else
#pragma unroll
            for (int j = 0; j < pack_size<T>; j++) weight[j] = A(1);
        *this = Slope(standard, weight, g, x);
    }
    __device__ __forceinline__ Slope(const Standard<A> &standard, const A (&weight)[pack_size<T>],
                                     const Pack<T> &g, const Pack<T> &x) {
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) {
            gradient[j] = static_cast<A>(g.element[j]);
            weighted[j] = gradient[j] * weight[j];
            y[j] = (static_cast<A>(x.element[j]) - standard.mean) * standard.scale;
        }
    }
    // Behind the end of a row the gradient is 0.
    __device__ __forceinline__ void add(A &first, A &second) const {
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) {
            first += weighted[j];
            second = fma(weighted[j], y[j], second);
        }
    }
    __device__ __forceinline__ Pack<T> result(A scale, A first, A second) const {
        Pack<T> dx;
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++)
            dx.element[j] = static_cast<T>(scale * (weighted[j] - first - y[j] * second));
        return dx;
    }
};

// ---- dx alone -----------------------------------------------------------------------------------

template <class T, int PACKS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    slope_rows_kernel(const __grid_constant__ SlopeRows job) {
    using A = ComputeType<T>;
    constexpr bool BLOCK = THREADS > short_threads;
    PVG_DYNAMIC_SHARED(T, staged);
    __shared__ A of_warp[2][32];
    const RowPlace place = place_in_rows<BLOCK>(job.plan);
    const int64_t start = place.mine ? place.row * job.plan.length : 0;
    HeldRows<T, 2, PACKS> row(job.plan, place.mine, place.lane, place.lanes, staged);
    row.from[0] = static_cast<const T *>(job.gradient) + start;
    row.from[1] = static_cast<const T *>(job.x) + start;
    const Standard<A> standard = standard_of<A>(job, place.mine ? place.row : 0);
    A first = 0, second = 0;
    row.load([&](int at, const Pack<T>(&packs)[2]) {
        Slope<T, false>(job, place.row, standard, at, packs[0], packs[1]).add(first, second);
    });
    two_over_row<BLOCK>(first, second, place.lanes, of_warp);
    first = job.centered ? first / static_cast<A>(job.plan.length) : A(0);
    second /= static_cast<A>(job.plan.length);
    T *to = static_cast<T *>(job.dx) + start;
    row.again([&](int at, const Pack<T>(&packs)[2]) {
        const Slope<T, false> slope(job, place.row, standard, at, packs[0], packs[1]);
        store_pack(to, at, row.length, row.aligned, slope.result(standard.scale, first, second));
    });
}

// ---- dx and the sums at once --------------------------------------------------------------------

constexpr int fused_packs = 2;     // of a thread
constexpr int teams_threads = 256; // of a block whose warps have rows

// Adds up what the teams of a block have, in the order of the warps; afterwards the first `lanes`
// threads of the first warp have all of it.
template <class A, int N>
__device__ __forceinline__ void add_up_teams(A (&sums)[N], int lanes, A (*room)[32]) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
    for (int i = 0; i < N; i++) {
        for (int mask = lanes; mask < 32; mask *= 2)
            sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], mask);
        room[warp][lane] = sums[i];
        __syncthreads();
        sums[i] = 0;
        for (int k = 0; k < teams_threads / 32; k++) sums[i] += room[k][lane];
        __syncthreads();
    }
}

__device__ __forceinline__ void ask_for([[maybe_unused]] const void *address) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#endif
}

// A team's part of a row: packs of the gradient and of x.
template <class T> using PartOfRow = Pack<T>[fused_packs][2];

// Loads a row below `end`, or only asks for it, so that it is found in the L2 cache.
template <class T>
__device__ __forceinline__ void fetch_row(const SlopeRows &job, int64_t row, int64_t end, int lane,
                                          int lanes, bool only_ask, PartOfRow<T> &part) {
    const int64_t start = row < end ? row * job.plan.length : 0;
    const T *gradient = static_cast<const T *>(job.gradient) + start;
    const T *x = static_cast<const T *>(job.x) + start;
    const int left = row < end ? job.plan.length : 0;
#pragma unroll
    for (int k = 0; k < fused_packs; k++) {
        const int at = (k * lanes + lane) * pack_size<T>;
        if (only_ask) {
            if (at < left) ask_for(gradient + at), ask_for(x + at);
            continue;
        }
        part[k][0] = load_pack(gradient, at, left, job.plan.aligned, 0);
        part[k][1] = load_pack(x, at, left, job.plan.aligned, 0);
    }
}

// Stores dx of a row, and adds the row to the sums; the row may be one that is not there.
template <class T, int N>
__device__ __forceinline__ void
finish_row(const SlopeRows &job, int64_t row, bool mine, const Standard<ComputeType<T>> &standard,
           const PartOfRow<T> &part, int lane, int lanes, ComputeType<T> first,
           ComputeType<T> second, ComputeType<T> (&dweight)[N], ComputeType<T> (&dbias)[N]) {
    constexpr int pack = pack_size<T>;
    const int length = mine ? job.plan.length : 0;
    T *to = static_cast<T *>(job.dx) + row * length;
#pragma unroll
    for (int k = 0; k < fused_packs; k++) {
        const int at = (k * lanes + lane) * pack;
        const Slope<T, true> slope(job, row, standard, at, part[k][0], part[k][1]);
        store_pack(to, at, length, job.plan.aligned, slope.result(standard.scale, first, second));
#pragma unroll
        for (int j = 0; j < pack; j++) {
            ComputeType<T> &sum = dweight[k * pack + j]; // nothing is there behind the end
            sum = at + j < length ? fma(slope.gradient[j], slope.y[j], sum) : sum;
            dbias[k * pack + j] += slope.gradient[j];
        }
    }
}

// The next rows are loaded into registers, or, by as many threads as leave no room for them, only
// asked for.
template <class T, int THREADS>
__global__ void __launch_bounds__(THREADS)
    slope_and_sums_kernel(const __grid_constant__ SlopeRows job) {
    using A = ComputeType<T>;
    constexpr bool BLOCK = THREADS > teams_threads, ask = THREADS >= long_threads;
    constexpr int pack = pack_size<T>, packs = fused_packs;
    __shared__ A of_warp[2][2][32], room[teams_threads / 32][32];
    const int lanes = BLOCK ? static_cast<int>(blockDim.x) : job.plan.lanes;
    const int lane = static_cast<int>(threadIdx.x) % lanes, length = job.plan.length;
    const int team = static_cast<int>(threadIdx.x) / lanes, teams = blockDim.x / lanes;
    const int64_t first_row = blockIdx.x * job.each, behind = first_row + job.each;
    const int64_t end = behind < job.plan.rows ? behind : job.plan.rows;
    PartOfRow<T> next;
    A dweight[packs * pack] = {}, dbias[packs * pack] = {};
    fetch_row<T>(job, first_row + team, end, lane, lanes, ask, next);
    int side = 0;
    for (int64_t base = first_row; base < end; base += teams, side ^= 1) {
        const int64_t row = base + team;
        if (ask) fetch_row<T>(job, row, end, lane, lanes, false, next);
        PartOfRow<T> now;
#pragma unroll
        for (int k = 0; k < packs; k++) now[k][0] = next[k][0], now[k][1] = next[k][1];
        fetch_row<T>(job, row + teams, end, lane, lanes, ask, next);
        const Standard<A> standard = standard_of<A>(job, row < end ? row : first_row);
        A first = 0, second = 0;
#pragma unroll
        for (int k = 0; k < packs; k++) {
            const int at = (k * lanes + lane) * pack;
            const Slope<T, true> slope(job, row, standard, at, now[k][0], now[k][1]);
            slope.add(first, second);
        }
        two_over_row<BLOCK>(first, second, lanes, of_warp[side]);
        first = job.centered ? first / static_cast<A>(length) : A(0);
        second /= static_cast<A>(length);
        finish_row<T>(job, row, row < end, standard, now, lane, lanes, first, second, dweight,
                      dbias);
    }
    if (!BLOCK) {
        add_up_teams(dweight, lanes, room);
        add_up_teams(dbias, lanes, room);
        if (threadIdx.x >= static_cast<unsigned>(lanes)) return;
    }
    A *to = static_cast<A *>(job.partials) + int64_t(blockIdx.x) * 2 * length;
#pragma unroll
    for (int i = 0; i < packs * pack; i++) {
        const int at = (i / pack * lanes + lane) * pack + i % pack;
        if (at < length) to[at] = dweight[i], to[length + at] = dbias[i];
    }
}

// Adds up few parts: a pack of columns a thread, all of them. dweight lies before dbias.
constexpr int64_t few_parts = 64;
constexpr int few_parts_threads = 128;
template <class A, int N>
__global__ void __launch_bounds__(few_parts_threads)
    add_few_parts_kernel(const A *parts, int64_t count, int64_t columns, A *dweight, A *dbias) {
    using V = Vector<A, N>;
    const int64_t column = (int64_t(blockIdx.x) * few_parts_threads + threadIdx.x) * N;
    if (column >= 2 * columns) return;
    double sums[N] = {};
#pragma unroll 8
    for (int64_t i = 0; i < count; i++) {
        const V part = *reinterpret_cast<const V *>(parts + i * 2 * columns + column);
#pragma unroll
        for (int j = 0; j < N; j++) sums[j] += static_cast<double>(part.element[j]);
    }
#pragma unroll
    for (int j = 0; j < N; j++) {
        const int64_t at = column + j;
        (at < columns ? dweight[at] : dbias[at - columns]) = static_cast<A>(sums[j]);
    }
}

// Adds up many parts: a column a lane, and of its numbers a 32nd a warp.
template <class A>
__global__ void __launch_bounds__(long_threads)
    add_parts_kernel(const A *parts, int64_t count, int64_t columns, A *dweight, A *dbias) {
    __shared__ double sums[32][33];
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int64_t column = int64_t(blockIdx.x) * 32 + lane;
    double sum = 0;
    if (column < 2 * columns)
#pragma unroll 4
        for (int64_t i = warp; i < count; i += 32) sum += parts[i * 2 * columns + column];
    sums[warp][lane] = sum;
    __syncthreads();
    const double all = sum_of_lanes(sums[lane][warp], 32);
    const int64_t mine = int64_t(blockIdx.x) * 32 + warp;
    if (lane != 0 || mine >= 2 * columns) return;
    A *to = mine < columns ? dweight : dbias;
    to[mine < columns ? mine : mine - columns] = static_cast<A>(all);
}

template <class A, int N>
int launch_add_few_parts(Call &call, const A *parts, int64_t count, int64_t columns, A *dweight,
                         A *dbias) {
    PVG_LAUNCH((add_few_parts_kernel<A, N>), blocks_for(2 * columns, few_parts_threads * N),
               few_parts_threads, 0, call.stream, parts, count, columns, dweight, dbias);
    return PVG_OK;
}
template <class A> int launch_add_parts(Call &call, const A *parts, int64_t count, int64_t columns,
                                        A *dweight, A *dbias) {
    constexpr int pack = pack_size<A>;
    if (count > few_parts) {
        PVG_LAUNCH(add_parts_kernel<A>, blocks_for(2 * columns, 32), long_threads, 0, call.stream,
                   parts, count, columns, dweight, dbias);
        return PVG_OK;
    }
    if constexpr (pack > 2) // as there are two sums for each column
        if (2 * columns % pack != 0)
            return launch_add_few_parts<A, 1>(call, parts, count, columns, dweight, dbias);
    return launch_add_few_parts<A, pack>(call, parts, count, columns, dweight, dbias);
}

} // namespace

} // namespace pvg
