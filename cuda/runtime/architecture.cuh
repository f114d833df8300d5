// Which of the library's code a device runs, for what chooses kernels by it.
#pragma once
#include "runtime/error.cuh"

namespace pvg {

// Compute capability times ten that the library's code for the device was built for: 90 with the
// instructions of 9.0a, as on an H200, 89 for code of 9.0 without them. 0 where no code runs.
// Errors: CUDA.
int architecture_of(int device, int *architecture);

} // namespace pvg
