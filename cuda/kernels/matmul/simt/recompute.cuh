// Computes items of a batch again, in float32 arithmetic, if an earlier kernel on the stream says
// so. It is always launched, and ends at once when there is nothing to do, so that the host need
// not wait to know.
#pragma once
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

// What is not zero: an item that is to be computed again, and whether there is one.
struct Verdicts { unsigned *items, *any; };

int launch_recompute(Call &call, const Gemm &g, const Verdicts &verdicts);

} // namespace pvg::matmul
