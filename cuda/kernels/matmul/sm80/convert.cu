// Copies of operands for products by mma.sync; see convert.cuh. A thread makes eight elements.
#include "arrays/vector.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/sm80/convert.cuh"

namespace pvg::matmul {

namespace {

constexpr int threads = 256;

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
    let_next_kernel_start();
    wait_for_previous_kernel();
    const int64_t packs = job.pitch / converted;
    const int64_t index = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    const int64_t line = index / packs, column = index % packs * converted;
    const int64_t row = line % job.rows, item = line / job.rows;
    if (item >= job.items) return;
    const From *from =
        static_cast<const From *>(job.from) + item * job.item + row * job.stride + column;
    Vector<To, converted> pack;
#pragma unroll
    for (int e = 0; e < converted; e++) {
        const From value = column + e < job.columns ? from[e] : From(0.0f);
        if constexpr (std::is_same_v<From, To>)
            pack.element[e] = value;
        else
            pack.element[e] = To(value);
    }
    *reinterpret_cast<decltype(pack) *>(static_cast<To *>(job.to) + line * job.pitch + column) =
        pack;
}

template <class From, class To>
int launch(Call &call, const Conversion &job, bool overlap) {
    const int64_t size = job.items * job.rows * job.pitch;
    PVG_LAUNCH_WITH((LaunchExtras{1, overlap}), (convert_kernel<From, To>),
                    blocks_for(size / converted, threads), threads, 0, call.stream, job);
    return PVG_OK;
}

} // namespace

int convert_operand(Call &call, int dtype, int type, const Plan &all, const OperandPlan &plan,
                    const Stored &from, const void **data, Workspace *space) {
    if (plan.copying == Copying::none) return PVG_OK;
    PVG_PASS(space->open(call, static_cast<size_t>(plan.bytes)));
    const Conversion job = {from.data,    space->as<void>(), from.items, from.rows,
                            from.columns, from.stride,       from.item,  plan.stride};
    *data = job.to;
    if (dtype == PVG_FLOAT16) return launch<Half, Half>(call, job, all.overlap);
    if (dtype == PVG_BFLOAT16) return launch<BFloat16, BFloat16>(call, job, all.overlap);
    if (type == PVG_FLOAT16) return launch<float, Half>(call, job, all.overlap);
    return launch<float, BFloat16>(call, job, all.overlap);
}

} // namespace pvg::matmul
