// Sums of products of short rows, without a plan: simt/dots.cu.
#pragma once
#include "arrays/call.cuh"

namespace pvg::matmul {

constexpr int64_t longest_dot = 1024;

// c = the sums of products of a and b along their last axes, which are of one length; c is new, of
// their dtype, a float one, and of the shape that the other axes broadcast to. Leaves *done false
// if rows are too long.
int launch_dots(Call &call, const pvg_array *a, const pvg_array *b, pvg_array *c, bool *done);

} // namespace pvg::matmul
