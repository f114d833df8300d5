// Computes a product again, as the tiled kernel would (tile.cuh), if an earlier kernel on the
// stream says so. It is always launched, and ends at once when there is nothing to do, so that the
// host need not wait to know.
#pragma once
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

// For the first item of the Gemm: c is computed again if one of the words is not zero.
int launch_recompute(Operation &op, const Gemm &g, const unsigned *verdicts, int count);

} // namespace pvg::matmul
