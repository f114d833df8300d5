// The conditional product; see recompute.cuh. A grid that fills the device walks through the tiles.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/hopper.cuh"
#include "kernels/matmul/recompute.cuh"
#include "kernels/matmul/tile.cuh"
#include "runtime/device.cuh"

namespace pvg::matmul {

namespace {

using Shape = Tile<128, 128, 8, 8>;
constexpr int blocks_a_multiprocessor = 2;

__global__ void __launch_bounds__(Shape::threads, blocks_a_multiprocessor)
    recompute_kernel(const __grid_constant__ Product p, int64_t down, int64_t across,
                     const __grid_constant__ Layer finish, const unsigned *verdicts, int count) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __shared__ SharedSlabs<float, Shape> shared;
    hopper::let_next_kernel_start();
    hopper::wait_for_previous_kernel();
    unsigned verdict = 0;
    for (int i = threadIdx.x; i < count; i += Shape::threads) verdict |= verdicts[i];
    if (!__syncthreads_or(verdict != 0)) return;
    const int64_t offset[3] = {0, 0, 0};
    for (int64_t tile = blockIdx.x; tile < down * across; tile += gridDim.x)
        multiply_tile<float, Shape>(
            {p, offset, static_cast<unsigned>(tile / across), static_cast<unsigned>(tile % across)},
            shared, finish);
#endif
}

bool is_aligned(const void *data, int64_t stride) {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride % 4 == 0;
}

Operand operand_of(const void *data, int64_t ld, bool along_k) {
    return {data, along_k ? ld : 1, along_k ? 1 : ld, along_k, is_aligned(data, ld)};
}

} // namespace

int launch_recompute(Operation &op, const Gemm &g, const unsigned *verdicts, int count) {
    Product p = {};
    p.m = g.m, p.n = g.n, p.k = g.k;
    p.a = operand_of(g.a, g.lda, g.a_along_k), p.b = operand_of(g.b, g.ldb, g.b_along_k);
    p.c = g.c, p.c_row = g.ldc, p.c_column = 1;
    p.c_aligned = is_aligned(g.c, g.ldc);
    const int64_t down = tiles(g.m, Shape::rows), across = tiles(g.n, Shape::columns);
    int64_t multiprocessors;
    PVG_PASS(device_attribute(g.device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    const int64_t most = blocks_a_multiprocessor * multiprocessors;
    PVG_LAUNCH_WITH((LaunchExtras{1, true}), recompute_kernel,
                    blocks_for(down * across < most ? down * across : most, 1), Shape::threads, 0,
                    op.stream, p, down, across, Layer{g.epilogue}, verdicts, count);
    return PVG_OK;
}

} // namespace pvg::matmul
#endif
