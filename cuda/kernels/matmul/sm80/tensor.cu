// float16, bfloat16 and TF32 products by mma.sync: the launch of the kernel of tensor_sm80.cuh.
//
// Halves are taken as they lie, in every layout. What cp.async cannot read in 16 bytes, and float32
// operands that the precision rounds to 16 bits, are copied beforehand. TF32 wants both operands
// along k, which pretranspose.cu sees to.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/simt/pretranspose.cuh"
#include "kernels/matmul/sm80/tensor.cuh"
#include "runtime/device.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

// ---- Copies of operands -------------------------------------------------------------------------

// A matrix as it is stored, and its copy in another dtype, whose rows begin at multiples of 16
// bytes.
struct Conversion {
    const void *from;
    void *to;
    int64_t items, rows, columns, stride, item; // of the original
    int64_t pitch;                              // of the copies, which lie one behind another
};
constexpr int converted = 8; // elements of a thread

template <class From, class To>
__global__ void __launch_bounds__(threads) convert_kernel(Conversion job) {
#if __CUDA_ARCH__ >= 900
    hopper::let_next_kernel_start();
    hopper::wait_for_previous_kernel();
#endif
    const int64_t packs = job.pitch / converted;
    const int64_t index = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    const int64_t line = index / packs, column = index % packs * converted;
    const int64_t row = line % job.rows, item = line / job.rows;
    if (item >= job.items) return;
    const From *from =
        static_cast<const From *>(job.from) + item * job.item + row * job.stride + column;
    struct alignas(16) { To values[converted]; } pack;
#pragma unroll
    for (int e = 0; e < converted; e++) {
        const From value = column + e < job.columns ? from[e] : From(0.0f);
        if constexpr (std::is_same_v<From, To>)
            pack.values[e] = value;
        else
            pack.values[e] = To(value);
    }
    *reinterpret_cast<decltype(pack) *>(static_cast<To *>(job.to) + line * job.pitch + column) =
        pack;
}

// Replaces an operand, `rows` x `columns` as it is stored, by a copy in `space`.
template <class From, class To>
int convert(Call &call, const Gemm &g, const void **data, int64_t rows, int64_t columns,
            int64_t *stride, int64_t *item, Workspace *space) {
    Conversion job{};
    job.items = *item == 0 ? 1 : g.items; // what all items share is copied once
    job.rows = rows, job.columns = columns, job.stride = *stride, job.item = *item;
    job.pitch = tiles(columns, 64) * 64;
    const int64_t size = rows * job.pitch;
    PVG_PASS(space->open(call, static_cast<size_t>(job.items * size) * sizeof(To)));
    job.from = *data, job.to = space->as<void>();
    const LaunchExtras extras = {1, tensor_architecture(g.device) >= 90};
    PVG_LAUNCH_WITH(extras, (convert_kernel<From, To>),
                    blocks_for(job.items * size / converted, threads), threads, 0, call.stream,
                    job);
    *data = job.to, *stride = job.pitch;
    if (*item != 0) *item = size;
    return PVG_OK;
}

// ---- Launching ----------------------------------------------------------------------------------

template <class T, bool A_ALONG_K, bool B_ALONG_K> constexpr int shared_bytes() {
    constexpr int pipeline = stages * (Loader<T, A_ALONG_K>::bytes + Loader<T, B_ALONG_K>::bytes);
    constexpr int sums = side * sums_pitch * static_cast<int>(sizeof(float));
    return pipeline > sums ? pipeline : sums;
}

bool can(const Gemm &g) {
    int64_t most = 0;
    const bool is_rounded = g.precision == PVG_PRECISION_TF32 ||
                            g.precision == PVG_PRECISION_BF16 || g.precision == PVG_PRECISION_FP16;
    const bool fits =
        g.dtype == PVG_FLOAT16 || g.dtype == PVG_BFLOAT16 || (g.dtype == PVG_FLOAT32 && is_rounded);
    if (!fits || tensor_architecture(g.device) < 80 ||
        device_attribute(g.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most) != PVG_OK)
        return false;
    return shared_bytes<Half, true, true>() <= most &&
           tiles(g.m, side) * tiles(g.n, side) <= INT_MAX;
}

WarpProduct describe(const Gemm &g) {
    const Epilogue &e = g.epilogue;
    WarpProduct p{};
    p.a = g.a, p.b = g.b, p.c = g.c, p.bias = e.bias, p.preactivation = e.preactivation;
    p.bias_stride = e.bias_stride, p.activation = e.activation, p.plain = e.is_plain();
    p.lda = g.lda, p.ldb = g.ldb, p.ldc = g.ldc;
    p.a_item = g.a_item, p.b_item = g.b_item, p.c_item = g.c_item;
    p.m = g.m, p.n = g.n, p.k = g.k;
    p.tiles_down = static_cast<int>(tiles(g.m, side));
    p.tiles_across = static_cast<int>(tiles(g.n, side));
    const int64_t size = dtype_size(g.dtype);
    p.wide = g.dtype == PVG_FLOAT32;
    p.aligned =
        allows_16_bytes(g.c, g.ldc, g.c_item, size) && allows_16_bytes(e.preactivation, 0, 0, size);
    return p;
}

template <class T, bool A_ALONG_K, bool B_ALONG_K> int launch_layout(Call &call, const Gemm &g) {
    WarpProduct p = describe(g);
    const int64_t blocks = int64_t(p.tiles_down) * p.tiles_across, size = dtype_size(g.dtype);
    const LaunchExtras extras = {1, tensor_architecture(g.device) >= 90};
    const int64_t most = INT_MAX / blocks; // items a grid
    for (int64_t first = 0; first < g.items; first += most) {
        const int64_t items = g.items - first < most ? g.items - first : most;
        PVG_LAUNCH_WITH(extras, (mma_kernel<T, A_ALONG_K, B_ALONG_K>),
                        blocks_for(blocks * items, 1), threads,
                        (shared_bytes<T, A_ALONG_K, B_ALONG_K>()), call.stream, p);
        p.a = static_cast<const T *>(p.a) + items * p.a_item;
        p.b = static_cast<const T *>(p.b) + items * p.b_item;
        p.c = static_cast<char *>(p.c) + items * p.c_item * size;
        if (p.preactivation)
            p.preactivation = static_cast<char *>(p.preactivation) + items * p.c_item * size;
    }
    return PVG_OK;
}

// Operands of From (the dtype of the product), multiplied as T.
template <class From, class T> int launch_halves(Call &call, const Gemm &given) {
    Gemm g = given;
    Workspace copy_a, copy_b;
    constexpr bool converts = !std::is_same_v<From, T>;
    if (converts || !allows_16_bytes(g.a, g.lda, g.a_item, sizeof(T)))
        PVG_PASS((convert<From, T>(call, g, &g.a, g.a_along_k ? g.m : g.k, g.a_along_k ? g.k : g.m,
                                   &g.lda, &g.a_item, &copy_a)));
    if (converts || !allows_16_bytes(g.b, g.ldb, g.b_item, sizeof(T)))
        PVG_PASS((convert<From, T>(call, g, &g.b, g.b_along_k ? g.n : g.k, g.b_along_k ? g.k : g.n,
                                   &g.ldb, &g.b_item, &copy_b)));
    if (g.a_along_k)
        return g.b_along_k ? launch_layout<T, true, true>(call, g)
                           : launch_layout<T, true, false>(call, g);
    return g.b_along_k ? launch_layout<T, false, true>(call, g)
                       : launch_layout<T, false, false>(call, g);
}

int launch_tf32(Call &call, const Gemm &given) {
    Gemm g = given;
    Workspace space;
    PVG_PASS(arrange_operands(call, &g, {true, 4}, {true, 4}, &space));
    return launch_layout<float, true, true>(call, g);
}

int launch(Call &call, const Gemm &g) {
    if (g.dtype == PVG_FLOAT16) return launch_halves<Half, Half>(call, g);
    if (g.dtype == PVG_BFLOAT16) return launch_halves<BFloat16, BFloat16>(call, g);
    if (g.precision == PVG_PRECISION_FP16) return launch_halves<float, Half>(call, g);
    if (g.precision == PVG_PRECISION_BF16) return launch_halves<float, BFloat16>(call, g);
    return launch_tf32(call, g);
}

} // namespace

const Kernel tensor_sm80_kernel = {PVG_MATMUL_TENSOR_SM80, "tensor_sm80", can, launch};

} // namespace pvg::matmul
#endif
