// Copies of operands by rows, as they are: the kernel of copy_rows.cuh.
#include "kernels/matmul/simt/copy_rows.cuh"

namespace pvg::matmul {

int copy_rows(Call &call, int dtype, const Plan &plan, void *to, Stored *a, Stored *b) {
    const int halves = static_cast<int>(dtype_size(dtype)) / 2;
    return launch_copies<uint16_t, uint16_t>(call, row_copies(plan, halves, 2, to, a, b),
                                             plan.overlap);
}

} // namespace pvg::matmul
