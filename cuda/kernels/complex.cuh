// Elementwise operations of complex numbers, which have kernels of their own: short arithmetic in
// complex.cu, long functions in complex_functions.cu.
#pragma once
#include "arrays/call.cuh"
#include "arrays/operation.cuh"
#include "arrays/scalar.cuh"

namespace pvg {

// What the families of unary.cu and binary.cu launch for operands of a complex dtype; out is open.
int launch_complex_unary(Call &call, const Operation &operation, int dtype, pvg_array *out,
                         const pvg_array *a);
int launch_complex_binary(Call &call, const Operation &operation, int dtype, pvg_array *out,
                          const pvg_array *a, const pvg_array *b, const Scalar *scalar);

// False in *done: the code is none of the long functions.
int launch_complex_function(Call &call, int code, int dtype, pvg_array *out, const pvg_array *a,
                            bool *done);
int launch_complex_power(Call &call, int dtype, pvg_array *out, const pvg_array *a,
                         const pvg_array *b, const Scalar *scalar);

} // namespace pvg
