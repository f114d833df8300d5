// The kernels of rows for normalize_backward.cu: dx alone, or with the sums of dweight and dbias.
#pragma once
#include "kernels/normalize.cuh"
#include "kernels/row_parts.cuh"

namespace pvg {

namespace {

// How blocks that share a row tell each other its sums: not at all, in a cluster, or through memory,
// where one launch leaves them and another one goes on from there.
enum class Exchange { none, cluster, leave, take };

struct SlopeRows {
    RowPlan plan;
    const void *gradient, *x, *statistics;
    void *dx, *partials; // partials: of each block [2][length], dweight and dbias
    OfChannels weight;
    int64_t each; // rows of a block
    RowParts cut; // each part is a block's; one, where a block or a team has the row
    Exchange exchange;
    void *sums; // of each row and part two, where they are exchanged in memory
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
#pragma unroll
        for (int j = 0; j < pack_size<T>; j++) {
            gradient[j] = static_cast<A>(g.element[j]);
            weighted[j] = job.weight.numbers ? gradient[j] * weight[j] : gradient[j];
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
template <class T> constexpr int most_fused = long_threads * fused_packs * pack_size<T>;

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

// A team's part of a row: packs of the gradient and of x, from `first` on and below `end`.
template <class T> struct PartOfSlope {
    Pack<T> packs[fused_packs][2];
};
struct Span {
    int first, step, end; // of this thread's packs
    __device__ __forceinline__ int at(int k) const { return first + k * step; }
};

// Loads a row below `behind`, or only asks for it, so that it is found in the L2 cache.
template <class T>
__device__ __forceinline__ void fetch_row(const SlopeRows &job, int64_t row, int64_t behind,
                                          const Span &span, bool only_ask, PartOfSlope<T> &part) {
    const int64_t start = row < behind ? row * job.plan.length : 0;
    const T *gradient = static_cast<const T *>(job.gradient) + start;
    const T *x = static_cast<const T *>(job.x) + start;
    const int end = row < behind ? span.end : 0;
#pragma unroll
    for (int k = 0; k < fused_packs; k++) {
        const int at = span.at(k);
        if (only_ask) {
            if (at < end) ask_for(gradient + at), ask_for(x + at);
            continue;
        }
        part.packs[k][0] = load_pack(gradient, at, end, job.plan.aligned, 0);
        part.packs[k][1] = load_pack(x, at, end, job.plan.aligned, 0);
    }
}

// Stores dx of a row, and adds the row to the sums; the row may be one that is not there.
template <class T, int N>
__device__ __forceinline__ void
finish_row(const SlopeRows &job, int64_t row, bool mine, const Standard<ComputeType<T>> &standard,
           const PartOfSlope<T> &part, const Span &span, ComputeType<T> first,
           ComputeType<T> second, ComputeType<T> (&dweight)[N], ComputeType<T> (&dbias)[N]) {
    constexpr int pack = pack_size<T>;
    const int end = mine ? span.end : 0;
    T *to = static_cast<T *>(job.dx) + (mine ? row * job.plan.length : 0);
#pragma unroll
    for (int k = 0; k < fused_packs; k++) {
        const int at = span.at(k);
        const Slope<T, true> slope(job, row, standard, at, part.packs[k][0], part.packs[k][1]);
        store_pack(to, at, end, job.plan.aligned, slope.result(standard.scale, first, second));
#pragma unroll
        for (int j = 0; j < pack; j++) {
            ComputeType<T> &sum = dweight[k * pack + j]; // nothing is there behind the end
            sum = at + j < end ? fma(slope.gradient[j], slope.y[j], sum) : sum;
            dbias[k * pack + j] += slope.gradient[j];
        }
    }
}

// The shared memory of slope_and_sums_kernel: what a part has of a row's sums, of two rows in turn,
// and room for sums of warps and teams.
template <class A> struct SlopeRoom {
    A of_part[2][2], of_warp[2][2][32], of_teams[teams_threads / 32][32];
};

// The sums of a row, from those of its parts. False: they are left for the next launch.
template <class A>
__device__ __forceinline__ bool exchange_sums(const SlopeRows &job, int64_t row, A &first, A &second,
                                              A (&own)[2]) {
    const int parts = job.cut.parts, part = static_cast<int>(blockIdx.x % parts);
    A *const sums = static_cast<A *>(job.sums) + row * parts * 2;
    if (job.exchange == Exchange::none) return true;
    if (job.exchange == Exchange::leave) {
        if (threadIdx.x == 0) sums[part * 2] = first, sums[part * 2 + 1] = second;
        return false;
    }
    if (job.exchange == Exchange::take) {
        first = sum_of_parts<A>(parts, [&](int i) { return sums[i * 2]; });
        second = sum_of_parts<A>(parts, [&](int i) { return sums[i * 2 + 1]; });
        return true;
    }
    if (threadIdx.x == 0) own[0] = first, own[1] = second;
    clusters::cluster_sync();
    first = sum_of_parts<A>(parts, [&](int i) { return clusters::read_of_block(&own[0], i); });
    second = sum_of_parts<A>(parts, [&](int i) { return clusters::read_of_block(&own[1], i); });
    return true;
}

// The next rows are loaded into registers, or, by as many threads as leave no room for them, only
// asked for.
template <class T, int THREADS>
__global__ void __launch_bounds__(THREADS)
    slope_and_sums_kernel(const __grid_constant__ SlopeRows job) {
    using A = ComputeType<T>;
    constexpr bool BLOCK = THREADS > teams_threads, ask = THREADS >= long_threads;
    constexpr int pack = pack_size<T>, packs = fused_packs;
    PVG_DYNAMIC_SHARED(SlopeRoom<A>, room);
    const int lanes = BLOCK ? static_cast<int>(blockDim.x) : job.plan.lanes;
    const int lane = static_cast<int>(threadIdx.x) % lanes, length = job.plan.length;
    const int team = static_cast<int>(threadIdx.x) / lanes, teams = blockDim.x / lanes;
    const int64_t group = blockIdx.x / job.cut.parts, first_row = group * job.each;
    const int start = static_cast<int>(blockIdx.x % job.cut.parts) * job.cut.chunk;
    const int behind = start + job.cut.chunk;
    const Span span = {start + lane * pack, lanes * pack, behind < length ? behind : length};
    const int64_t last = first_row + job.each, end = last < job.plan.rows ? last : job.plan.rows;
    PartOfSlope<T> next;
    A dweight[packs * pack] = {}, dbias[packs * pack] = {};
    fetch_row<T>(job, first_row + team, end, span, ask, next);
    int side = 0;
    for (int64_t base = first_row; base < end; base += teams, side ^= 1) {
        const int64_t row = base + team;
        if (ask) fetch_row<T>(job, row, end, span, false, next);
        const PartOfSlope<T> now = next;
        fetch_row<T>(job, row + teams, end, span, ask, next);
        const Standard<A> standard = standard_of<A>(job, row < end ? row : first_row);
        A first = 0, second = 0;
#pragma unroll
        for (int k = 0; k < packs; k++)
            Slope<T, true>(job, row, standard, span.at(k), now.packs[k][0], now.packs[k][1])
                .add(first, second);
        two_over_row<BLOCK>(first, second, lanes, room->of_warp[side]);
        if (BLOCK && !exchange_sums(job, row, first, second, room->of_part[side])) continue;
        first = job.centered ? first / static_cast<A>(length) : A(0);
        second /= static_cast<A>(length);
        finish_row<T>(job, row, row < end, standard, now, span, first, second, dweight, dbias);
    }
    if (BLOCK && job.exchange == Exchange::cluster) clusters::cluster_sync_after_reading();
    if (BLOCK && job.exchange == Exchange::leave) return;
    if (!BLOCK) {
        add_up_teams(dweight, lanes, room->of_teams);
        add_up_teams(dbias, lanes, room->of_teams);
        if (threadIdx.x >= static_cast<unsigned>(lanes)) return;
    }
    A *to = static_cast<A *>(job.partials) + group * 2 * length;
#pragma unroll
    for (int i = 0; i < packs * pack; i++) {
        const int at = span.at(i / pack) + i % pack;
        if (at < span.end) to[at] = dweight[i], to[length + at] = dbias[i];
    }
}

// Adds up the parts: a column a lane, and of its numbers a 32nd a warp. dweight lies before dbias.
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

} // namespace

} // namespace pvg
