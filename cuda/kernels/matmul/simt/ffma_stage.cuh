// How the stages of the kernel of ffma.cuh come to shared memory: by cp.async, which needs no
// registers.
//
// An operand that is contiguous along k is transposed on the way, element by element: the lanes of
// a warp read 4 whole sectors and write to 32 different banks.
#pragma once
#include "kernels/matmul/simt/ffma_tile.cuh"

namespace pvg::matmul {

namespace {

// A thread's share of one operand's part of a stage: SIZE rows (of b: columns), DEPTH of k. Rows
// beyond the matrix hold anything, as they are not stored; along k there are zeros beyond it.
template <int SIZE, int DEPTH, bool ALONG_K, int V, int THREADS> struct StageLoader;

// Contiguous along k, any alignment. 8 threads read a sector of 8 elements of k.
template <int SIZE, int DEPTH, int THREADS> struct StageLoader<SIZE, DEPTH, true, 1, THREADS> {
    static constexpr int pitch = SIZE + 4, bytes = DEPTH * pitch * 4; // 4: against bank conflicts
    static constexpr int down = THREADS / 8, row_steps = SIZE / down, k_steps = DEPTH / 8;
    static_assert(SIZE % down == 0 && DEPTH % 8 == 0);
    const float *from[row_steps];
    uint32_t to;
    int k;

    // The part begins at first_row and first_k of the matrix, where `rows` rows are left.
    __device__ __forceinline__ void begin(const float *matrix, int64_t stride, int first_row,
                                          int first_k, int rows) {
        k = threadIdx.x % 8;
        int row = threadIdx.x / 8;
        to = (k * pitch + row) * 4;
        matrix += first_row * stride + first_k + k;
#pragma unroll
        for (int i = 0; i < row_steps; i++)
            from[i] = matrix + min(row + i * down, rows - 1) * stride;
    }
    // The next stage, of whose k so much is in the matrix.
    __device__ __forceinline__ void load(uint32_t stage, int depth) {
#pragma unroll
        for (int i = 0; i < row_steps; i++) {
#pragma unroll
            for (int j = 0; j < k_steps; j++)
                copy_async_if<4>(j * 8 < depth - k, stage + to + (j * 8 * pitch + i * down) * 4,
                                 from[i] + j * 8);
            from[i] += DEPTH;
        }
    }
    // 8 elements of k, so far from the next one, to a group of a stage; `depth` as in load.
    __device__ __forceinline__ void load_group(uint32_t stage, int group, int k_from_here, int64_t,
                                               int depth) const {
#pragma unroll
        for (int i = 0; i < row_steps; i++)
            copy_async_if<4>(k < depth, stage + to + (group * 8 * pitch + i * down) * 4,
                             from[i] + k_from_here);
    }
    __device__ __forceinline__ void move(int distance, int64_t) {
#pragma unroll
        for (int i = 0; i < row_steps; i++) from[i] += distance;
    }
};

// Contiguous along the rows of a (the columns of b). V = 4 needs addresses that allow 16 bytes, and
// memory up to the next multiple of 4 rows.
template <int SIZE, int DEPTH, int V, int THREADS>
struct StageLoader<SIZE, DEPTH, false, V, THREADS> {
    static constexpr int pitch = SIZE, bytes = DEPTH * pitch * 4;
    static constexpr int across = SIZE / V, down = THREADS / across, steps = DEPTH / down;
    static_assert(THREADS % across == 0 && DEPTH % down == 0);
    const float *from;
    int64_t step;
    uint32_t to;
    int k; // 2^30 if the thread's rows are not in the matrix: then, or nearly, nothing is loaded

    __device__ __forceinline__ void begin(const float *matrix, int64_t stride, int first_row,
                                          int first_k, int rows) {
        int row = threadIdx.x % across * V;
        k = threadIdx.x / across;
        to = (k * pitch + row) * 4;
        from = matrix + (int64_t(first_k) + k) * stride + first_row + row;
        step = down * stride;
        if (row >= rows) k = 1 << 30;
    }
    __device__ __forceinline__ void load(uint32_t stage, int depth) {
#pragma unroll
        for (int i = 0; i < steps; i++) {
            copy_async_if<4 * V>(i * down < depth - k, stage + to + i * down * pitch * 4, from);
            from += step;
        }
    }
    __device__ __forceinline__ void load_group(uint32_t stage, int group, int k_from_here,
                                               int64_t stride, int depth) const {
        static_assert(8 % down == 0);
        const float *at = from + k_from_here * stride;
#pragma unroll
        for (int i = 0; i < 8 / down; i++) {
            copy_async_if<4 * V>(i * down < depth - k,
                                 stage + to + (group * 8 + i * down) * pitch * 4, at);
            at += step;
        }
    }
    __device__ __forceinline__ void move(int distance, int64_t stride) {
        from += distance * stride;
    }
};

template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V> struct FfmaStage {
    using LoaderA =
        StageLoader<Tile::rows, Tile::depth, A_ALONG_K, A_ALONG_K ? 1 : V, Tile::threads>;
    using LoaderB =
        StageLoader<Tile::columns, Tile::depth, B_ALONG_K, B_ALONG_K ? 1 : V, Tile::threads>;
    static constexpr int a_bytes = LoaderA::bytes, bytes = a_bytes + LoaderB::bytes;
    static constexpr int all_bytes = Tile::stages * bytes;
};

} // namespace

} // namespace pvg::matmul
