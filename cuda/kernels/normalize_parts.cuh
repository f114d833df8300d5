// The kernel of normalisation by rows that blocks share: see row_parts.cuh. A part has its own mean
// and the squares of distances from it; of these the row's are made as Chan, Golub and LeVeque do
// (Updating formulae and a pairwise algorithm for computing sample variances, 1979).
#pragma once
#include "kernels/normalize_rows.cuh"
#include "kernels/row_parts.cuh"

namespace pvg {
namespace {

constexpr int norm_stages = 4;

template <class T> struct NormWork {
    using A = ComputeType<T>;
    static constexpr int numbers = 3, pack = pack_size<T>;
    // The first part's mean, what the row's is more, and 1 / deviation.
    struct Totals { A mean, more, scale; };
    const NormRows &job;
    const RowParts &cut;
    const PartPlace &place;
    A (*of_warp)[32]; // three
    const T *operands[1];

    // How many elements a part has.
    __device__ __forceinline__ A size_of(int part) const {
        const int first = part * cut.chunk, behind = first + cut.chunk;
        return static_cast<A>((behind < cut.length ? behind : cut.length) - first);
    }
    __device__ __forceinline__ void sums(int64_t, const HeldPart<T, 1> &held, A *to) const {
        const A size = size_of(place.part);
        A sum = 0, squares = 0, rest = 0;
#pragma unroll
        for (int k = 0; k < part_packs; k++)
#pragma unroll
            for (int j = 0; j < pack; j++) sum += static_cast<A>(held.packs[0][k].element[j]);
        const A mean = job.centered ? over_block<true>(sum, of_warp[0]) / size : A(0);
#pragma unroll
        for (int k = 0; k < part_packs; k++)
#pragma unroll
            for (int j = 0; j < pack; j++) {
                const A distance = static_cast<A>(held.packs[0][k].element[j]) - mean;
                if (place.at(k, pack) + j >= place.end) continue;
                squares = fma(distance, distance, squares);
                rest += distance; // what the mean was rounded by
            }
        squares = sum_of_lanes(squares, 32), rest = sum_of_lanes(rest, 32);
        if (threadIdx.x % 32 == 0)
            of_warp[1][threadIdx.x / 32] = squares, of_warp[2][threadIdx.x / 32] = rest;
        __syncthreads();
        if (threadIdx.x >= 32) return;
        const bool there = threadIdx.x < parts_threads / 32;
        squares = sum_of_lanes(there ? of_warp[1][threadIdx.x] : A(0), 32);
        rest = sum_of_lanes(there ? of_warp[2][threadIdx.x] : A(0), 32);
        if (threadIdx.x != 0) return;
        rest = job.centered ? rest / size : A(0);
        to[0] = mean, to[1] = rest, to[2] = squares - size * rest * rest;
    }
    template <class F> __device__ __forceinline__ Totals totals(int64_t row, F &&number) const {
        const int lane = static_cast<int>(threadIdx.x % 32);
        const bool there = lane < cut.parts;
        const A mine = there ? number(lane, 0) : A(0), rest = there ? number(lane, 1) : A(0);
        const A squares = there ? number(lane, 2) : A(0), size = there ? size_of(lane) : A(0);
        const A mean = __shfl_sync(0xffffffffu, mine, 0), length = static_cast<A>(cut.length);
        const A off = there ? mine - mean + rest : A(0);
        const A more = sum_of_lanes(size * off, 32) / length;
        const A apart = off - more;
        A variance = sum_of_lanes(squares + size * apart * apart, 32) / length;
        if (variance < 0) variance = 0;
        if (job.statistics && place.part == 0 && threadIdx.x == 0) {
            A *statistics = static_cast<A *>(job.statistics);
            statistics[row] = mean + more;
            statistics[cut.rows + row] = variance;
        }
        return {mean, more, A(1) / sqrt(variance + static_cast<A>(job.epsilon))};
    }
    __device__ __forceinline__ void finish(int64_t row, const HeldPart<T, 1> &held,
                                           const Totals &of) const {
        T *const to = static_cast<T *>(job.to) + row * cut.length;
#pragma unroll
        for (int k = 0; k < part_packs; k++) {
            const int at = place.at(k, pack);
            if (at >= place.end) continue;
            A y[pack];
#pragma unroll
            for (int j = 0; j < pack; j++)
                y[j] = (static_cast<A>(held.packs[0][k].element[j]) - of.mean - of.more) * of.scale;
            store_pack(to, at, place.end, cut.aligned, weighted<T>(job, row, at, y));
        }
    }
};

template <class A> struct NormRoom { A of_warp[3][32], own[2 * 3]; };

template <class T, bool CLUSTER>
__global__ void __launch_bounds__(parts_threads)
    normalize_parts_kernel(const __grid_constant__ NormRows job,
                           const __grid_constant__ RowParts cut) {
    using A = ComputeType<T>;
    using Ring = PartRing<T, 1, norm_stages>;
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    NormRoom<A> *const room = reinterpret_cast<NormRoom<A> *>(shared + (CLUSTER ? Ring::bytes : 0));
    const PartPlace place(cut, pack_size<T>);
    NormWork<T> work = {job, cut, place, room->of_warp, {static_cast<const T *>(job.from)}};
    if constexpr (CLUSTER)
        rows_of_cluster(cut, place, work, Ring{reinterpret_cast<Pack<T> *>(shared)}, room->own);
    else
        rows_of_blocks<T, 1>(cut, place, work);
}

template <class T> int launch_norm_parts(Call &call, const Norm &norm, NormRows job) {
    using A = ComputeType<T>;
    constexpr size_t room = sizeof(NormRoom<A>);
    int64_t multiprocessors = 0;
    PVG_PASS(device_attribute(call.device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    const void *const pointers[2] = {job.from, job.to};
    RowParts cut = cut_rows<T>(norm.count, norm.length, 1, pointers);
    // Groups for four times as many blocks as the card has room for; no bit depends on them.
    cut.each = norm.count * cut.parts / (4 * multiprocessors);
    if (cut.each < 1) cut.each = 1;
    job.plan.length = cut.length; // weights lie as rows do
    return launch_parts(call, cut, NormWork<T>::numbers * sizeof(A),
                        [&](const RowParts &of, const LaunchExtras &extras, unsigned blocks) {
        if (of.exchange == Exchange::cluster)
            PVG_LAUNCH_WITH(extras, (normalize_parts_kernel<T, true>), blocks, parts_threads,
                            room + PartRing<T, 1, norm_stages>::bytes, call.stream, job, of);
        else
            PVG_LAUNCH((normalize_parts_kernel<T, false>), blocks, parts_threads, room, call.stream,
                       job, of);
        return static_cast<int>(PVG_OK);
    });
}

} // namespace
} // namespace pvg
