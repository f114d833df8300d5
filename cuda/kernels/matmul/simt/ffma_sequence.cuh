// Slices in sequence, for the kernel of ffma.cuh. A tile of s slices multiplies, in its slice i,
// the groups of 8 of k that begin at 8 i, 8 (i + s), 8 (i + 2 s) ... Here a block loads the same
// groups in the same order, some a stage, one slice (a chain of multiply-adds) after another, and
// adds the finished chains in the order in which the other tile's last step does. A chain ends with
// a stage; groups that are missing there are zeros.
#pragma once
#include "kernels/matmul/simt/ffma_stage.cuh"

namespace pvg::matmul {

namespace {

// Loads the groups of chain after chain, so many a stage; the last stage of a chain may have less.
// It remembers where chains begin until these stages are multiplied: Tile::stages - 1 later.
template <class Tile, class Parts> struct ChainLoader {
    static constexpr int groups = Tile::depth / 8, stage_k = groups * Tile::unit;
    const FfmaProduct &p;
    typename Parts::LoaderA a;
    typename Parts::LoaderB b;
    int k = 0, end = 0;       // of the next group; of the split, or 0 beyond the last
    int left = 0, length = 0; // stages of the chain from the next on; groups of the longest chain
    int slice = 0, first = 0; // of k: where the split begins
    unsigned split = 0;
    unsigned begins = 0; // bit i: with the stage i before this one a chain begins, or the tile ends

    __device__ __forceinline__ ChainLoader(const FfmaProduct &product, const FfmaPlace &at)
        : p(product) {
        a.begin(a_of(p, at), p.lda, at.row, 0, at.rows);
        b.begin(b_of(p, at), p.ldb, at.column, 0, at.columns);
        begin_split();
        left = length_of_chain();
    }
    // One group at a time, in the course of the stage before: all at once hold up the products.
    __device__ __forceinline__ void load_group(uint32_t stage, int group) const {
        const int distance = group * Tile::unit, depth = end - k - distance;
        a.load_group(stage, group, distance, p.lda, depth);
        b.load_group(stage + Parts::a_bytes, group, distance, p.ldb, depth);
    }
    __device__ __forceinline__ void load(uint32_t stage) const {
#pragma unroll
        for (int group = 0; group < groups; group++) load_group(stage, group);
    }
    // To the next stage: of the chain, or of the chain after it.
    __device__ __forceinline__ void advance() {
        begins <<= 1;
        k += stage_k;
        a.move(stage_k, p.lda);
        b.move(stage_k, p.ldb);
        if (--left) return; // also beyond the last chain
        begins |= 1;
        const int before = k;
        if (++slice == Tile::sequence) {
            slice = 0;
            if (++split == p.splits_in_sequence) {
                end = 0;
                return;
            }
            begin_split();
        }
        left = length_of_chain();
        k = first + slice * 8;
        a.move(k - before, p.lda);
        b.move(k - before, p.ldb);
    }
    // Of the stage that is multiplied while this one is loaded.
    __device__ __forceinline__ bool is_after_chain() const {
        return begins & 1u << (Tile::stages - 1);
    }
    __device__ __forceinline__ bool is_after_last_chain() const {
        return end == 0 && (begins & ((1u << (Tile::stages - 1)) - 1)) == 0;
    }

private:
    __device__ __forceinline__ void begin_split() {
        first = first_unit(p, split, p.splits_in_sequence);
        length = first_unit(p, split + 1, p.splits_in_sequence) - first;
        first *= Tile::unit;
        end = first + min(p.k - first, length * Tile::unit);
    }
    // In stages, at least one: of all groups or, where the last ones begin beyond the end, of one
    // less.
    __device__ __forceinline__ int length_of_chain() const {
        const int missing = first + slice * 8 + (length - 1) * Tile::unit >= end;
        return max(1, (length - missing + groups - 1) / groups);
    }
};

template <class Tile>
__device__ __forceinline__ void add(const FfmaSums<Tile> &sum, FfmaSums<Tile> &total) {
#pragma unroll
    for (int i = 0; i < Tile::micro_rows; i++)
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j++) total[i][j] += sum[i][j];
}

// total += the tile's rows of a times its columns of b. Stages go round as in `multiply`, and their
// last k too is multiplied behind the barrier.
template <class Tile, class Parts>
__device__ __forceinline__ void multiply_in_sequence(const FfmaProduct &p, const FfmaPlace &at,
                                                     const FfmaMicrotile<Tile> &thread,
                                                     uint32_t shared, FfmaSums<Tile> &total) {
    ChainLoader<Tile, Parts> loader(p, at);
#pragma unroll
    for (int s = 0; s < Tile::stages - 1; s++) {
        if (s) loader.advance();
        loader.load(shared + s * Parts::bytes);
        commit_copies();
    }
    constexpr int depth = Tile::depth;
    const uint32_t in_a = thread.row * 4, in_b = Parts::a_bytes + thread.column * 4;
    const uint32_t last = shared + (Tile::stages - 1) * Parts::bytes;
    uint32_t reading = shared, writing = last;
    FfmaFragments<Tile> fragments;
    FfmaSums<Tile> sum = {};
    // A warp that is outside of c loads for the others.
    const bool idles = thread.column / Tile::warp_columns * Tile::warp_columns >= at.columns;
#pragma unroll 1
    for (;;) {
        wait_for_copies<Tile::stages - 2>();
        __syncthreads();
        if (idles) {
            loader.advance();
            if (loader.is_after_chain() && loader.is_after_last_chain()) return;
            loader.load(writing);
            commit_copies();
            writing = writing == last ? shared : writing + Parts::bytes;
            continue;
        }
        const uint32_t from_a = reading + in_a, from_b = reading + in_b;
        fragments.template read<Parts>(0, from_a, from_b, 0);
        fragments.multiply((depth - 1) % 2, sum);
        loader.advance();
        if (loader.is_after_chain()) {
            add<Tile>(sum, total);
            if (loader.is_after_last_chain()) return;
            fragments.template read<Parts>(1, from_a, from_b, 1);
            fragments.template multiply<true>(0, sum);
        } else {
            fragments.template read<Parts>(1, from_a, from_b, 1);
            fragments.multiply(0, sum);
        }
#pragma unroll
        for (int k = 1; k < depth - 1; k++) {
            fragments.template read<Parts>((k + 1) % 2, from_a, from_b, k + 1);
            if (k % 8 == 1) loader.load_group(writing, k / 8);
            if (k == depth - 2) commit_copies();
            fragments.multiply(k % 2, sum);
        }
        reading = reading == last ? shared : reading + Parts::bytes;
        writing = writing == last ? shared : writing + Parts::bytes;
    }
}

} // namespace

} // namespace pvg::matmul
