// Batches of float32 products in tiles of 128 x 128 that compute eight slices of k in sequence.
#pragma once
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

// Whether TMA can read the operands where they are, on this device.
bool can_sequence_by_tma(const Gemm &g);
// Of an item.
int64_t blocks_of_sequence_by_tma(const Gemm &g);
// splits: of the product alone by tiles of 64 x 32 (ffma.cu), one after another here.
int launch_sequence_by_tma(Operation &op, const Gemm &g, unsigned splits);

} // namespace pvg::matmul
