// Views of complex arrays as reals, which share their memory: what is done to parts one by one
// needs no kernel of its own.
#pragma once
#include "arrays/call.cuh"

namespace pvg {

// The real or the imaginary parts, in the array's shape.
int part_view(const pvg_array *a, bool imaginary, pvg_array **result);
// Both, along a new last axis. The array has less than PVG_MAX_NDIM dimensions.
int parts_view(const pvg_array *a, pvg_array **result);
// The same elements, of an array whose last axis has no gaps: real parts and imaginary ones in
// turns along it.
int interleaved_view(const pvg_array *a, pvg_array **result);

// Errors: TYPE, for complex numbers to reals.
int check_castable(int from, int to);
// destination[...] = source, broadcast and cast, where either is complex and the cast is possible;
// they are disjoint, and the destination is open for writing.
int cast_complex(Call &call, const pvg_array *source, pvg_array *destination);

} // namespace pvg
