// What the forward and the backward pass of a layer share.
#pragma once
#include "kernels/matmul/operands.cuh"

namespace pvg {

int check_activation(int activation);
// Contiguous arrays of the layer (operands' positions are those of the calls), all with one dtype.
struct LayerRows {
    Temporary converted, straight, flat;
    const pvg_array *array = nullptr; // (rows, columns), contiguous
    int open(Call &call, const pvg_array *a, int dtype);
};

// c = a b for two-dimensional arrays; a_rows is a's axis of c's rows, b_columns b's of its columns.
int multiply(Call &call, const pvg_array *a, int a_rows, const pvg_array *b, int b_columns,
             int precision, const matmul::Epilogue &epilogue, pvg_array *c);

} // namespace pvg
