// Which block computes what in a product of tiles: a grid of about as many blocks as there are
// multiprocessors walks through "units". A unit is a tile of c, or a slice of K of one.
//
// With 140 tiles on 132 multiprocessors the second round would keep 8 of them busy. So the last
// tiles of an item may be cut into slices of K. Every slice leaves its sums in a workspace, and
// whoever comes last adds them up in the order of the slices and goes on with the tile. Nobody
// waits for another block, so that no order in which blocks are started, and nothing else that runs
// on the device, can make it hang; and the sums are the same whoever was last.
// plan/schedule.cuh says what is cut.
#pragma once
#include "kernels/hopper.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/schedule.cuh"
#include "kernels/matmul/tile_order.cuh"

namespace pvg::matmul {

struct Work {
    int item, row, column; // of the tile among the item's tiles
    int k_begin, k_end;    // blocks of K
    int slice, place;      // which slice, of which of all the tiles that are cut; place -1: whole
};

// `unit` is below Schedule::units(), which is at most 2^31 in one launch.
__device__ __forceinline__ Work work_of(unsigned unit, const Schedule &s) {
    Work work;
    const int of_item = s.units_of_item();
    work.item = s.items == 1 ? 0 : static_cast<int>(unit / of_item);
    int tile = static_cast<int>(unit - static_cast<unsigned>(work.item) * of_item);
    work.slice = 0, work.place = -1, work.k_begin = 0, work.k_end = s.k_blocks;
    if (tile >= s.whole) {
        const int index = tile - s.whole, steps = s.k_blocks / s.k_step;
        work.slice = index / s.cut;
        const int of_cut = index - work.slice * s.cut;
        work.place = work.item * s.cut + of_cut;
        work.k_begin = steps * work.slice / s.slices * s.k_step;
        if (work.slice < s.slices - 1) work.k_end = steps * (work.slice + 1) / s.slices * s.k_step;
        tile = s.whole + of_cut;
    }
    place_tile(tile, s.tiles_down, s.tiles_across, &work.row, &work.column);
    return work;
}

// For the 128 threads of a warpgroup, which is `part` of `parts` that work on the tile, with a
// barrier of its own. False: another slice was not there yet, and the tile is not ours. True:
// `sums` are those of all of K.
template <int N>
__device__ __forceinline__ bool combine_slices(float (&sums)[N], const Work &work,
                                               const Schedule &s, int part, int parts,
                                               int barrier) {
    if (work.place < 0) return true;
    const int thread = threadIdx.x % 128;
    const int64_t index = int64_t(work.place) * parts + part;
    // Every thread keeps the same places in all slices: 16 bytes a thread, next to each other.
    float4 *const first = reinterpret_cast<float4 *>(s.partials) + index * s.slices * (N * 32);
    float4 *const mine = first + int64_t(work.slice) * (N * 32) + thread;
#pragma unroll
    for (int i = 0; i < N / 4; i++)
        __stcg(mine + i * 128,
               make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
    sync_threads<128>(barrier); // then one release covers the stores of all threads
    int is_last = 0;
    if (thread == 0) {
        unsigned before;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                     : "=r"(before)
                     : "l"(s.tickets + index)
                     : "memory");
        is_last = before == static_cast<unsigned>(s.slices - 1);
    }
    is_last = hopper::warpgroup_any(is_last, barrier);
    if (!is_last) return false;
    const float4 *from = first + thread;
    if (work.slice != 0) {
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            const float4 four = __ldcg(from + i * 128);
            sums[4 * i] = four.x, sums[4 * i + 1] = four.y;
            sums[4 * i + 2] = four.z, sums[4 * i + 3] = four.w;
        }
    }
    for (int slice = 1; slice < s.slices; slice++) {
        from += N * 32;
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            const float4 four = __ldcg(from + i * 128);
            sums[4 * i] += four.x, sums[4 * i + 1] += four.y;
            sums[4 * i + 2] += four.z, sums[4 * i + 3] += four.w;
            if (i % 8 == 7) asm volatile("" ::: "memory"); // at most eight loads at a time
        }
    }
    return true;
}

} // namespace pvg::matmul
