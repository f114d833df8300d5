// Products of complex matrices; see complex.cu.
#pragma once
#include "kernels/matmul/operands.cuh"

namespace pvg::matmul {

// As multiply, of matrices of one complex dtype; the rows of c have no gaps.
int multiply_complex(Call &call, Matrix a, const Matrix &b, pvg_array *c, int row_axis,
                     int column_axis, int precision);

} // namespace pvg::matmul
