// Copies inside a device, for the operations that need one; pvg::copy_array is in call.cuh.
#pragma once
#include "arrays/call.cuh"
#include "arrays/layout.cuh"
#include "arrays/scalar.cuh"

namespace pvg {

// Every element of an open or fresh array = the weak scalar. Errors: VALUE, OVERFLOW.
int fill_array(Call &call, pvg_array *array, int kind, const void *value);

// Every element of an array, at which a mask of its shape is true, = the scalar.
int fill_where(Call &call, pvg_array *array, const pvg_array *mask, const Scalar &scalar);

// to[i] = mask[i] ? a[i] : b[i], of one dtype; NULL for a or b is the scalar. The arrays are open.
int select_where(Call &call, pvg_array *to, const pvg_array *mask, const pvg_array *a,
                 const pvg_array *b, const Scalar *scalar);

// Does destination[...] = source (same dtype, broadcast, disjoint) through tiles in shared memory
// if the two lie transposed to each other; else leaves *done false. The destination is open for
// writing.
int copy_transposed(Call &call, const pvg_array *source, pvg_array *destination, bool *done);

// The same where axes are too short for that, of a collapsed walk over destination and source.
int copy_permuted(Call &call, const pvg_array *source, pvg_array *destination, const Walk<2> &walk,
                  bool *done);

// An operand as elementwise kernels should read it: itself, or a contiguous copy in `holder` if it
// is large and lies transposed so that caches do not keep the rest of a sector until it is read.
// Two passes at full speed beat one that reads a whole sector an element.
int as_readable(Call &call, const pvg_array *a, Temporary *holder, const pvg_array **result);

// Opens the result of an elementwise operation, of n operands that broadcast to its shape: it lies
// as they do, if they lie alike, as NumPy's does; else in C order, and they become readable.
// Errors: those of Output::open.
int open_elementwise(Call &call, int dtype, int ndim, const int64_t *shape, pvg_array *out,
                     const pvg_array **operands, int n, Temporary *straight, Output *result);

} // namespace pvg
