// Which kernel computes a product: see the table in dispatch.cu.
#pragma once
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

// Launches the product, with the kernel that fits it best or the one that PVG_OPTION_MATMUL_KERNEL
// forces. Errors: VALUE (the forced kernel cannot compute it), MEMORY (workspace), CUDA.
int launch_product(Call &call, const Problem &problem);

// Replaces PVG_PRECISION_DEFAULT by what PVG_OPTION_MATMUL_PRECISION says. Errors: VALUE.
int check_precision(int *precision);

// The kernel that takes every problem; in tiled.cu.
int launch_tiled(Call &call, const Problem &problem);

} // namespace pvg::matmul
