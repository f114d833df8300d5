// The kernel of normalisation by rows that blocks share: each finds the mean of its part and the
// squares of distances from it, and of these the row's are made, as Chan, Golub and LeVeque do
// ("Updating formulae and a pairwise algorithm for computing sample variances", 1979), so that one
// exchange is enough; see row_parts.cuh. Blocks of clusters keep their part of the weights and
// biases in shared memory for all their rows: together these are twice as long as a row.
#pragma once
#include "kernels/normalize_rows.cuh"
#include "kernels/row_parts.cuh"

namespace pvg {
namespace {

template <class T> struct NormWork {
    using A = ComputeType<T>;
    static constexpr int numbers = 3, pack = pack_size<T>;
    using Numbers = Vector<A, pack>;
    struct Totals { A mean, rest, scale; }; // the row's mean is the sum of the first two
    struct alignas(16) Room { A of_warp[numbers][32]; };
    struct Kept { Numbers weight[part_packs][parts_threads], bias[part_packs][parts_threads]; };
    const NormRows &job;
    const RowParts &cut;
    const PartPlace &place;
    Room *room;
    Kept *kept; // each thread's own; NULL: weights and biases are read again for each row
    const T *operands[1];
    A share; // 1 / elements of the part

    __device__ NormWork(const NormRows &of, const RowParts &parts, const PartPlace &here,
                        Room *shared, Kept *keep)
        : job(of), cut(parts), place(here), room(shared), kept(keep),
          operands{static_cast<const T *>(of.from)},
          share(A(1) / static_cast<A>(elements_of(here.part))) {
        if (!kept) return;
#pragma unroll
        for (int k = 0; k < part_packs; k++) {
            A weight[pack], bias[pack];
            read(k, weight, bias);
            copy(weight, kept->weight[k][threadIdx.x].element);
            copy(bias, kept->bias[k][threadIdx.x].element);
        }
    }
    __device__ __forceinline__ static void copy(const A (&from)[pack], A (&to)[pack]) {
#pragma unroll
        for (int j = 0; j < pack; j++) to[j] = from[j];
    }
    // 1 and 0 where there are none.
    __device__ __forceinline__ void read(int k, A (&weight)[pack], A (&bias)[pack]) const {
#pragma unroll
        for (int j = 0; j < pack; j++) weight[j] = A(1), bias[j] = A(0);
        const int at = place.at(k, pack);
        if (job.weight.numbers) numbers_beside<T>(job.weight, at, place.end, weight);
        if (job.bias.numbers) numbers_beside<T>(job.bias, at, place.end, bias);
    }
    __device__ __forceinline__ int elements_of(int part) const {
        const int left = cut.length - part * cut.chunk;
        return left < cut.chunk ? left : cut.chunk;
    }
    // Of the part: the squares of distances from its mean, and that mean as a rounded one and what
    // it was rounded by.
    __device__ __forceinline__ void sums(int64_t, const HeldPart<T, 1> &held, A (&sums)[numbers]) {
        A sum[pack] = {}, squares[pack] = {}, rest[pack] = {};
#pragma unroll
        for (int k = 0; k < part_packs; k++)
#pragma unroll
            for (int j = 0; j < pack; j++) sum[j] += static_cast<A>(held.packs[0][k].element[j]);
        A mean = 0;
        if (job.centered) mean = over_block<true>(of_pack(sum), room->of_warp[0]) * share;
#pragma unroll
        for (int k = 0; k < part_packs; k++) {
            const int left = place.end - place.at(k, pack);
#pragma unroll
            for (int j = 0; j < pack; j++) {
                A distance = static_cast<A>(held.packs[0][k].element[j]) - mean;
                if (j >= left) distance = 0;
                squares[j] = fma(distance, distance, squares[j]);
                rest[j] += distance;
            }
        }
        A both[2] = {of_pack(squares), job.centered ? of_pack(rest) : A(0)};
        sums_of_block(both, room->of_warp + 1);
        sums[1] = both[1] * share, sums[0] = both[0] - both[1] * sums[1], sums[2] = mean;
    }
    __device__ __forceinline__ static A of_pack(const A (&sums)[pack]) {
        A sum = 0;
#pragma unroll
        for (int j = 0; j < pack; j++) sum += sums[j];
        return sum;
    }
    template <class F> __device__ __forceinline__ Totals totals(int64_t row, F &&number) {
        constexpr unsigned all = 0xffffffffu;
        const int lane = static_cast<int>(threadIdx.x % 32);
        const bool there = lane < cut.parts;
        A squares = there ? number(lane, 0) : A(0), rest = there ? number(lane, 1) : A(0);
        const A mean = there ? number(lane, 2) : A(0), part = static_cast<A>(job.part);
        const A first = __shfl_sync(all, mean, 0), rounded = __shfl_sync(all, rest, 0);
        const A count = there ? static_cast<A>(elements_of(lane)) : A(0);
        const A distance = (mean - first) + (rest - rounded); // of the part's mean from the first's
        A beside = count * distance;
        squares = fma(beside, distance, squares);
        beside = sum_of_lanes(beside, 32) * part, squares = sum_of_lanes(squares, 32);
        A variance = squares * part - beside * beside;
        if (variance < 0) variance = 0;
        if (job.statistics && place.part == 0 && threadIdx.x == 0) {
            A *const statistics = static_cast<A *>(job.statistics);
            statistics[row] = first + (rounded + beside);
            statistics[cut.rows + row] = variance;
        }
        return {first, rounded + beside, inverse_root(variance + static_cast<A>(job.epsilon))};
    }
    __device__ __forceinline__ void finish(int64_t row, const HeldPart<T, 1> &held,
                                           const Totals &of) const {
        T *const to = static_cast<T *>(job.to) + row * cut.length;
        const A beside = -of.rest * of.scale;
#pragma unroll
        for (int k = 0; k < part_packs; k++) {
            Pack<T> y;
            A weight[pack], bias[pack];
            if (kept) {
                copy(kept->weight[k][threadIdx.x].element, weight);
                copy(kept->bias[k][threadIdx.x].element, bias);
            } else {
                read(k, weight, bias);
            }
#pragma unroll
            for (int j = 0; j < pack; j++) {
                const A x = static_cast<A>(held.packs[0][k].element[j]);
                const A value = fma(x - of.mean, of.scale, beside);
                y.element[j] = static_cast<T>(fma(value, weight[j], bias[j]));
            }
            if (place.at(k, pack) < place.end)
                store_pack(to, place.at(k, pack), place.end, cut.aligned, y);
        }
    }
};

template <class T, bool CLUSTER>
__global__ void __launch_bounds__(parts_threads, 2)
    normalize_parts_kernel(const __grid_constant__ NormRows job,
                           const __grid_constant__ RowParts cut) {
    using Ring = PartRing<T, 1, 1>;
    using Work = NormWork<T>;
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    auto *const room = reinterpret_cast<typename Work::Room *>(shared);
    auto *const mail = reinterpret_cast<PartMail<Work> *>(room + 1);
    auto *const kept = reinterpret_cast<typename Work::Kept *>(mail + 1);
    const PartPlace place(cut, pack_size<T>);
    if constexpr (CLUSTER) {
        Work work(job, cut, place, room, kept);
        rows_one_by_one(cut, place, work, Ring{reinterpret_cast<Pack<T> *>(kept + 1)}, mail);
    } else {
        Work work(job, cut, place, room, nullptr);
        rows_of_blocks<T, 1>(cut, place, work);
    }
}

// As many groups of rows as a large card runs at a time, two blocks on each of 120 of its 132
// multiprocessors, which hold clusters of eight.
template <class T>
int launch_norm_parts(Call &call, const NormRows &job, int64_t rows, int64_t length) {
    constexpr size_t room = sizeof(typename NormWork<T>::Room);
    constexpr size_t all = room + sizeof(PartMail<NormWork<T>>) +
                           sizeof(typename NormWork<T>::Kept) + PartRing<T, 1, 1>::bytes;
    const void *const pointers[2] = {job.from, job.to};
    RowParts cut = cut_rows<T>(rows, length, 1, pointers);
    const int64_t together = 240 / cut.parts;
    cut.each = (rows + together - 1) / together;
    return launch_parts(call, cut, NormWork<T>::numbers * sizeof(ComputeType<T>),
                        [&](const RowParts &of, const LaunchExtras &extras, unsigned blocks) {
                            if (of.exchange == Exchange::cluster)
                                PVG_LAUNCH_WITH(extras, (normalize_parts_kernel<T, true>), blocks,
                                                parts_threads, all, call.stream, job, of);
                            else
                                PVG_LAUNCH((normalize_parts_kernel<T, false>), blocks,
                                           parts_threads, room, call.stream, job, of);
                            return static_cast<int>(PVG_OK);
                        });
}

} // namespace
} // namespace pvg
