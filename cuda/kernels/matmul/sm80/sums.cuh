// The sums of instructions of a warp (mma.sync) on their way to shared memory, in products of three
// kinds: tensor.cuh, small.cuh and dmma.cuh.
#pragma once
#include "arrays/vector.cuh"
#include "kernels/matmul/instructions.cuh"

namespace pvg::matmul {

namespace {

// Writes the sums of a warp's DOWN x ACROSS instructions, which begin at a row and column of the
// block's tile, over the stages of the operands. Rows of the tile are PITCH elements apart, the
// instructions NEXT_ROW rows and NEXT_COLUMN columns. The caller waits until every warp has
// written.
template <int PITCH, int NEXT_ROW = 16, int NEXT_COLUMN = 8, class T, int DOWN, int ACROSS>
__device__ __forceinline__ void share_sums(T *shared, int row, int column,
                                           const T (&sums)[DOWN][ACROSS][4]) {
    wait_for_copies<0>();
    __syncthreads(); // the last stage has been read, and nothing comes any more
    const int lane = threadIdx.x % 32;
    T *const own = shared + (row + lane / 4) * PITCH + column + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < ACROSS; j++)
                *reinterpret_cast<Vector<T, 2> *>(own + (i * NEXT_ROW + half * 8) * PITCH +
                                                  j * NEXT_COLUMN) = {
                    {sums[i][j][2 * half], sums[i][j][2 * half + 1]}};
}

} // namespace

} // namespace pvg::matmul
