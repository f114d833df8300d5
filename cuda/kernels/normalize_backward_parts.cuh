// The kernel of normalisation's backward pass by rows that blocks share: dx, and each group's part
// of dweight and dbias, which a block keeps in registers; see row_parts.cuh.
#pragma once
#include "kernels/normalize_backward_kernels.cuh"
#include "kernels/row_parts.cuh"

namespace pvg {
namespace {

constexpr int slope_stages = 3; // of two operands: what shared memory has room for

template <class T> struct SlopeWork {
    using A = ComputeType<T>;
    static constexpr int numbers = 2, pack = pack_size<T>;
    // Means over the row: of the weighted gradient, and of its product with what is standardised.
    struct Totals {
        Standard<A> standard;
        A first, second;
    };
    struct alignas(16) Room { A of_warp[2][numbers][32]; };
    const SlopeRows &job;
    const RowParts &cut;
    const PartPlace &place;
    Room *room;
    const T *operands[2];
    A weight[part_packs][pack], dweight[part_packs][pack], dbias[part_packs][pack];
    Standard<A> standard; // of the row whose sums were the last
    A mean, variance;     // of the next one, which are under way meanwhile
    int turn = 0;

    __device__ SlopeWork(const SlopeRows &of, const RowParts &parts, const PartPlace &here,
                         Room *shared)
        : job(of), cut(parts), place(here), room(shared),
          operands{static_cast<const T *>(of.gradient), static_cast<const T *>(of.x)} {
#pragma unroll
        for (int k = 0; k < part_packs; k++) {
            if (job.weight.numbers)
                numbers_beside<T>(job.weight, place.at(k, pack), place.end, weight[k]);
#pragma unroll
            for (int j = 0; j < pack; j++) {
                if (!job.weight.numbers) weight[k][j] = A(1);
                dweight[k][j] = dbias[k][j] = A(0);
            }
        }
        ask(place.row);
    }
    __device__ __forceinline__ void ask(int64_t row) {
        const A *const statistics = static_cast<const A *>(job.statistics);
        mean = statistics[row], variance = statistics[cut.rows + row];
    }
    __device__ __forceinline__ void sums(int64_t row, const HeldPart<T, 2> &held,
                                         A (&sums)[numbers]) {
        standard = {mean, A(1) / sqrt(variance + static_cast<A>(job.epsilon))};
        if (row + 1 < place.behind) ask(row + 1);
        sums[0] = sums[1] = 0;
#pragma unroll
        for (int k = 0; k < part_packs; k++)
            Slope<T, true>(standard, weight[k], held.packs[0][k], held.packs[1][k])
                .add(sums[0], sums[1]);
        sums_of_block(sums, room->of_warp[turn]);
        turn ^= 1;
    }
    template <class F> __device__ __forceinline__ Totals totals(int64_t row, F &&number) {
        if (cut.exchange == Exchange::take) standard = standard_of<A>(job, row);
        const A length = static_cast<A>(cut.length);
        A sums[numbers];
        sums_of_parts(cut.parts, sums, number);
        return {standard, job.centered ? sums[0] / length : A(0), sums[1] / length};
    }
    __device__ __forceinline__ void finish(int64_t row, const HeldPart<T, 2> &held,
                                           const Totals &of) {
        T *const to = static_cast<T *>(job.dx) + row * cut.length;
#pragma unroll
        for (int k = 0; k < part_packs; k++) {
            const Slope<T, true> slope(of.standard, weight[k], held.packs[0][k], held.packs[1][k]);
            const int at = place.at(k, pack);
            if (at < place.end)
                store_pack(to, at, place.end, cut.aligned,
                           slope.result(of.standard.scale, of.first, of.second));
#pragma unroll
            for (int j = 0; j < pack; j++) {
                A &sum = dweight[k][j]; // nothing is there behind the end
                sum = at + j < place.end ? fma(slope.gradient[j], slope.y[j], sum) : sum;
                dbias[k][j] += slope.gradient[j];
            }
        }
    }
    __device__ __forceinline__ void leave_gradients() const {
        const int64_t group = blockIdx.x / cut.parts;
        A *const to = static_cast<A *>(job.partials) + group * 2 * cut.length;
#pragma unroll
        for (int k = 0; k < part_packs; k++)
#pragma unroll
            for (int j = 0; j < pack; j++) {
                const int at = place.at(k, pack) + j;
                if (at < place.end) to[at] = dweight[k][j], to[cut.length + at] = dbias[k][j];
            }
    }
};

template <class T, bool CLUSTER>
__global__ void __launch_bounds__(parts_threads)
    slope_parts_kernel(const __grid_constant__ SlopeRows job,
                       const __grid_constant__ RowParts cut) {
    using Ring = PartRing<T, 2, slope_stages>;
    using Work = SlopeWork<T>;
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    auto *const room = reinterpret_cast<typename Work::Room *>(shared);
    auto *const mail = reinterpret_cast<PartMail<Work> *>(room + 1);
    const PartPlace place(cut, pack_size<T>);
    Work work(job, cut, place, room);
    if constexpr (CLUSTER)
        rows_of_cluster(cut, place, work, Ring{reinterpret_cast<Pack<T> *>(mail + 1)}, mail);
    else
        rows_of_blocks<T, 2>(cut, place, work);
    if (CLUSTER || cut.exchange == Exchange::take) work.leave_gradients();
}

// How many rows a group has: as each leaves sums as long as a row, some 32, but of few rows fewer,
// as there are to be enough groups for a large card; and as many groups as it runs at a time, or a
// multiple, where 120 of its 132 multiprocessors hold clusters of eight. A number that depends on
// the shape alone.
inline int64_t rows_of_group(int64_t rows, int parts) {
    const int64_t together = 120 / parts, turns = rows / 32 / together;
    const int64_t groups = together * (turns > 1 ? turns : 1);
    return (rows + groups - 1) / groups;
}

template <class T> int launch_slope_parts(Call &call, SlopeRows job, const RowParts &cut) {
    constexpr size_t room = sizeof(typename SlopeWork<T>::Room);
    constexpr size_t all =
        room + sizeof(PartMail<SlopeWork<T>>) + PartRing<T, 2, slope_stages>::bytes;
    job.plan.rows = cut.rows;
    return launch_parts(call, cut, SlopeWork<T>::numbers * sizeof(ComputeType<T>),
                        [&](const RowParts &of, const LaunchExtras &extras, unsigned blocks) {
                            if (of.exchange == Exchange::cluster)
                                PVG_LAUNCH_WITH(extras, (slope_parts_kernel<T, true>), blocks,
                                                parts_threads, all, call.stream, job, of);
                            else
                                PVG_LAUNCH((slope_parts_kernel<T, false>), blocks, parts_threads,
                                           room, call.stream, job, of);
                            return static_cast<int>(PVG_OK);
                        });
}

} // namespace
} // namespace pvg
