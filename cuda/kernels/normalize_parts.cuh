// The kernel of normalisation by rows that are too long for a block's registers: see row_parts.cuh.
// A cluster holds a row and reads it once. A block alone reads each part three times, for the mean,
// the distances from it and the result; the second and the third time it is in the L2 cache.
#pragma once
#include "kernels/normalize_rows.cuh"
#include "kernels/row_parts.cuh"

namespace pvg {
namespace {

constexpr int parts_threads = 512, part_packs = 4; // of a thread
template <class T> constexpr int most_of_part = parts_threads * part_packs * pack_size<T>;

// A thread's place in the parts of a row, and what it has of one.
template <class T, bool CLUSTER> struct NormParts {
    using A = ComputeType<T>;
    static constexpr int pack = pack_size<T>;
    // Sums of warps, in turns, and three numbers of each part that the block has.
    struct Room { A of_warp[2][32], of_part[most_parts][3]; };
    const NormRows &job;
    const RowParts &cut;
    Room *room;
    int64_t row;
    int first_part, behind_part;
    Pack<T> held[part_packs];
    int first, end; // of the part at hand
    int turn = 0;   // of the rooms for sums of warps

    __device__ NormParts(const NormRows &of, const RowParts &parts, Room *shared)
        : job(of), cut(parts), room(shared) {
        row = CLUSTER ? blockIdx.x / cut.parts : blockIdx.x;
        first_part = CLUSTER ? static_cast<int>(blockIdx.x % cut.parts) : 0;
        behind_part = CLUSTER ? first_part + 1 : cut.parts;
        if (CLUSTER) load(first_part);
    }
    __device__ __forceinline__ void load(int part) {
        const T *const from = static_cast<const T *>(job.from) + row * job.plan.length;
        const int behind = (part + 1) * cut.chunk;
        first = part * cut.chunk + static_cast<int>(threadIdx.x) * pack;
        end = behind < job.plan.length ? behind : job.plan.length;
#pragma unroll
        for (int k = 0; k < part_packs; k++)
            held[k] = load_pack(from, at(k), end, job.plan.aligned, 0);
    }
    __device__ __forceinline__ int at(int k) const { return first + k * parts_threads * pack; }

    // f(part) for the parts of this block, each of them held.
    template <class F> __device__ __forceinline__ void each_part(F &&f) {
        for (int part = first_part; part < behind_part; part++) {
            if (!CLUSTER) load(part);
            f(part);
        }
    }
    // Leaves a part's sum as its number i, which after `exchange` everybody may read.
    __device__ __forceinline__ void leave(int part, int i, A sum) {
        sum = over_block<true>(sum, room->of_warp[turn]);
        turn ^= 1;
        if (threadIdx.x == 0) room->of_part[CLUSTER ? 0 : part][i] = sum;
    }
    __device__ __forceinline__ void exchange() const {
        if (CLUSTER)
            clusters::cluster_sync();
        else
            __syncthreads();
    }
    __device__ __forceinline__ A total(int i) const {
        return sum_of_parts<A>(cut.parts, [&](int part) {
            return CLUSTER ? clusters::read_of_block(&room->of_part[0][i], part)
                           : room->of_part[part][i];
        });
    }
};

template <class T, bool CLUSTER>
__global__ void __launch_bounds__(parts_threads, 2)
    normalize_parts_kernel(const __grid_constant__ NormRows job,
                           const __grid_constant__ RowParts cut) {
    using A = ComputeType<T>;
    using Parts = NormParts<T, CLUSTER>;
    constexpr int pack = pack_size<T>;
    PVG_DYNAMIC_SHARED(typename Parts::Room, room);
    Parts parts(job, cut, room);
    const A length = static_cast<A>(job.plan.length);
    A mean = 0;
    if (job.centered) {
        parts.each_part([&](int part) {
            A sum = 0;
#pragma unroll
            for (int k = 0; k < part_packs; k++)
#pragma unroll
                for (int j = 0; j < pack; j++) sum += static_cast<A>(parts.held[k].element[j]);
            parts.leave(part, 0, sum);
        });
        parts.exchange();
        mean = parts.total(0) / length;
    }
    parts.each_part([&](int part) {
        A squares = 0, rest = 0;
#pragma unroll
        for (int k = 0; k < part_packs; k++)
#pragma unroll
            for (int j = 0; j < pack; j++) {
                const A distance = static_cast<A>(parts.held[k].element[j]) - mean;
                if (parts.at(k) + j >= parts.end) continue;
                squares = fma(distance, distance, squares);
                rest += distance; // what the mean was rounded by
            }
        parts.leave(part, 1, squares);
        parts.leave(part, 2, rest);
    });
    parts.exchange();
    const A rest = job.centered ? parts.total(2) / length : A(0);
    A variance = parts.total(1) / length - rest * rest;
    if (variance < 0) variance = 0;
    const A scale = A(1) / sqrt(variance + static_cast<A>(job.epsilon));
    if (CLUSTER) clusters::cluster_has_read();
    if (job.statistics && parts.first_part == 0 && threadIdx.x == 0) {
        A *statistics = static_cast<A *>(job.statistics);
        statistics[parts.row] = mean + rest;
        statistics[job.plan.rows + parts.row] = variance;
    }
    T *const to = static_cast<T *>(job.to) + parts.row * job.plan.length;
    parts.each_part([&](int) {
#pragma unroll
        for (int k = 0; k < part_packs; k++) {
            A y[pack];
#pragma unroll
            for (int j = 0; j < pack; j++)
                y[j] = (static_cast<A>(parts.held[k].element[j]) - mean - rest) * scale;
            if (parts.at(k) < parts.end)
                store_pack(to, parts.at(k), parts.end, job.plan.aligned,
                           weighted<T>(job, parts.row, parts.at(k), y));
        }
    });
    if (CLUSTER) clusters::wait_for_cluster(); // which reads this block's sums until then
}

// Cuts the rows, whose length is more than a part's and at most most_parts of them.
template <class T> int launch_norm_parts(Call &call, const Norm &norm, NormRows job) {
    const RowParts cut = parts_of_row(norm.length, most_of_part<T>, pack_size<T>);
    const void *const pointers[2] = {job.from, job.to};
    bool has = false;
    PVG_PASS(has_clusters(call.device, &has));
    job.plan.rows = norm.count, job.plan.length = static_cast<int>(norm.length);
    job.plan.aligned = packs_lie_well<T>(pointers, 2, norm.count, norm.length);
    if (has)
        PVG_LAUNCH_WITH((LaunchExtras{static_cast<unsigned>(cut.parts)}),
                        (normalize_parts_kernel<T, true>), blocks_for(norm.count * cut.parts, 1),
                        parts_threads, sizeof(typename NormParts<T, true>::Room), call.stream, job,
                        cut);
    else
        PVG_LAUNCH((normalize_parts_kernel<T, false>), blocks_for(norm.count, 1), parts_threads,
                   sizeof(typename NormParts<T, false>::Room), call.stream, job, cut);
    return PVG_OK;
}

} // namespace
} // namespace pvg
