// What gather.cu does by an array of bools.
#pragma once
#include "arrays/call.cuh"
#include "arrays/scalar.cuh"

namespace pvg {

// The elements of `a` at which a mask of its shape is true, in C order, as the result. Waits for
// their number. In nonzero.cu.
int select_where(Call &call, const pvg_array *a, const pvg_array *mask, Output *result);
// The places in C order at which a mask is true: int64, 1-D. Waits for their number.
int find_where(Call &call, const pvg_array *mask, Temporary *places);
// Every element of `a` at which a mask of its shape is true = the scalar. In where.cu.
int fill_where(Call &call, pvg_array *a, const pvg_array *mask, const Scalar &scalar);

} // namespace pvg
