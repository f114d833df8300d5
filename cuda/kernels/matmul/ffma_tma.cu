// float32 products on the CUDA cores for large matrices, compute capability 9.0 and later: stages
// come by TMA, so that the threads do nothing but multiply. One thread starts the copies; barriers
// in shared memory say when a stage has come and when it has been read.
//
// TMA cannot transpose what it copies: both operands have to be contiguous along m or n, in rows
// that begin at multiples of 16 bytes. Others are copied into that layout first (pretranspose.cu),
// which takes about 50 / n of the product's time for a and 50 / m for b.
//
// Every element of c has the same bits as from the tiles of ffma.cu without slices: one chain of
// multiply-adds in increasing k, or one for each half of k.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/ffma_tile.cuh"
#include "kernels/matmul/pretranspose.cuh"
#include "runtime/device.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

using TmaTile = FfmaTile<4, 2, 1, 4, 8, 16, 32, 4, 1, true>;

// A stage as TMA writes it: rows of 128 of a and of 256 of b, without gaps.
template <class Tile> struct TmaStage {
    struct LoaderA { static constexpr int pitch = Tile::rows; };
    struct LoaderB { static constexpr int pitch = Tile::columns; };
    static constexpr int a_bytes = Tile::depth * Tile::rows * 4;
    static constexpr int bytes = a_bytes + Tile::depth * Tile::columns * 4;
    static constexpr int all_bytes = Tile::stages * bytes;
};
// The tiles begin at a multiple of tile_alignment; behind them lie two barriers a stage.
constexpr int shared_size =
    hopper::tile_alignment + TmaStage<TmaTile>::all_bytes + 16 * TmaTile::stages;
static_assert(TmaTile::sum_bytes <= TmaStage<TmaTile>::all_bytes);

// What the thread that starts copies knows.
template <class Tile> struct Producer {
    using Parts = TmaStage<Tile>;
    const CUtensorMap *a, *b;
    int row, column, item_a, item_b;
    uint32_t tiles, full;

    __device__ __forceinline__ void load(int step, uint32_t stage) const {
        const uint32_t to = tiles + stage * Parts::bytes, barrier = full + 8 * stage;
        hopper::expect_bytes(barrier, Parts::bytes);
        hopper::load_tile(to, a, barrier, row, step * Tile::depth, item_a);
        hopper::load_tile(to + Parts::a_bytes, b, barrier, column, step * Tile::depth, item_b);
    }
};

// sum += the tile's rows of a times its columns of b, as in ffma.cuh.
template <class Tile>
__device__ __forceinline__ void multiply(const FfmaProduct &p, const Producer<Tile> &producer,
                                         int steps, const Position<Tile> &thread, Sums<Tile> &sum) {
    using Parts = TmaStage<Tile>;
    // Of k, in the inner loop: 18 KB of instructions. A whole stage of them, 70 KB, is slower.
    constexpr int unrolled = 8, parts = Tile::depth / unrolled;
    const uint32_t full = producer.full, empty = full + 8 * Tile::stages;
    const uint32_t in_a = thread.row * 4, in_b = Parts::a_bytes + thread.column * 4;
    Fragments<Tile> fragments;
    uint32_t stage = 0, refill = Tile::stages - 1; // being read, and to be loaded next
    int parity = 0, refill_parity = 0;
    int step = 0, end = p.first_half ? p.first_half / Tile::depth : steps;
    for (;;) {
#pragma unroll 1
        for (; step < end; step++) {
            uint32_t from_a = producer.tiles + stage * Parts::bytes + in_a;
            uint32_t from_b = producer.tiles + stage * Parts::bytes + in_b;
            hopper::wait(full + 8 * stage, parity);
#pragma unroll 1
            for (int part = 0; part < parts; part++) {
                fragments.template read<Parts>(0, from_a, from_b, 0);
                fragments.multiply(1, sum);
#pragma unroll
                for (int k = 0; k < unrolled - 1; k++) {
                    // In the middle of a stage all warps have long left the one before it.
                    if (k == unrolled / 2 && part == parts / 2 && threadIdx.x == 0 &&
                        step + Tile::stages - 1 < steps) {
                        if (step > 0) hopper::wait(empty + 8 * refill, refill_parity);
                        producer.load(step + Tile::stages - 1, refill);
                    }
                    fragments.template read<Parts>((k + 1) % 2, from_a, from_b, k + 1);
                    fragments.multiply(k % 2, sum);
                }
                from_a += unrolled * Tile::rows * 4;
                from_b += unrolled * Tile::columns * 4;
            }
            __syncwarp();
            if (threadIdx.x % 32 == 0) hopper::arrive(empty + 8 * stage);
            refill = stage, refill_parity = parity;
            if (++stage == Tile::stages) stage = 0, parity ^= 1;
        }
        fragments.multiply(1, sum);
        if (end == steps) break;
        park_sums<Tile>(p, sum);
        fragments = Fragments<Tile>();
        end = steps;
    }
}

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    tma_kernel(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
               const __grid_constant__ FfmaProduct p) {
#if __CUDA_ARCH__ >= 900
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const uint32_t offset = -hopper::shared_address(memory) % hopper::tile_alignment;
    const uint32_t tiles = hopper::shared_address(memory) + offset;
    const uint32_t full = tiles + TmaStage<Tile>::all_bytes, empty = full + 8 * Tile::stages;
    const Place at = place_of_block<Tile>(p, blockIdx.x);
    const int item = static_cast<int>(at.item);
    const Producer<Tile> producer = {
        &a, &b, at.row, at.column, p.a_item ? item : 0, p.b_item ? item : 0, tiles, full};
    const int steps = p.units;
    if (threadIdx.x == 0) {
        hopper::prefetch_map(&a);
        hopper::prefetch_map(&b);
        for (int s = 0; s < Tile::stages; s++) {
            hopper::make_barrier(full + 8 * s, 1);
            hopper::make_barrier(empty + 8 * s, Tile::threads / 32);
        }
        hopper::publish_barriers();
    }
    __syncthreads();
    hopper::let_next_kernel_start();
    hopper::wait_for_previous_kernel();
    if (threadIdx.x == 0)
        for (int s = 0; s < Tile::stages - 1 && s < steps; s++) producer.load(s, s);
    const Position<Tile> thread(threadIdx.x);
    Sums<Tile> sum = {};
    multiply(p, producer, steps, thread, sum);
    add_parked(p, at, thread, sum);
    if (p.plain) {
        store_sums(p, at, thread, sum);
        return;
    }
    float *sums = reinterpret_cast<float *>(memory + offset);
    share_sums(sums, thread, sum);
    __syncthreads();
    finish_tile<Tile>(p, at, sums);
#endif
}

bool can(const Gemm &g) {
    int64_t most = 0;
    return g.dtype == PVG_FLOAT32 && tensor_architecture(g.device) >= 90 &&
           device_attribute(g.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most) == PVG_OK &&
           shared_size <= most &&
           tiles(g.m, TmaTile::rows) * tiles(g.n, TmaTile::columns) <= INT_MAX;
}

// `length` is m or n; boxes of so many elements of it and of a stage's k.
int make_map(const Gemm &g, const void *data, int length, int64_t stride, int64_t item, int box,
             CUtensorMap *map) {
    hopper::TensorView view{};
    view.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, view.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    view.data = data, view.rank = 3;
    view.size[0] = static_cast<uint64_t>(length), view.size[1] = static_cast<uint64_t>(g.k);
    view.size[2] = item ? static_cast<uint64_t>(g.items) : 1;
    view.stride[0] = static_cast<uint64_t>(stride) * 4;
    view.stride[1] = item ? static_cast<uint64_t>(item) * 4 : view.stride[0];
    view.box[0] = static_cast<uint32_t>(box), view.box[1] = TmaTile::depth, view.box[2] = 1;
    return hopper::make_tensor_map(map, view);
}

int launch(Operation &op, const Gemm &given) {
    Gemm g = given;
    Workspace space;
    CUtensorMap a, b;
    if (g.items == 1) g.a_item = g.b_item = 0;
    PVG_PASS(arrange_operands(op, &g, Layout{false, 4}, Layout{false, 4}, &space));
    PVG_PASS(make_map(g, g.a, g.m, g.lda, g.a_item, TmaTile::rows, &a));
    PVG_PASS(make_map(g, g.b, g.n, g.ldb, g.b_item, TmaTile::columns, &b));
    const FfmaProduct p = describe_ffma<TmaTile>(g);
    const LaunchExtras extras = {1, true};
    PVG_LAUNCH_WITH(extras, tma_kernel<TmaTile>,
                    blocks_for(int64_t(p.tiles_down) * p.tiles_across * g.items, 1),
                    TmaTile::threads, shared_size, op.stream, a, b, p);
    return PVG_OK;
}

} // namespace

const Kernel ffma_tma_kernel = {PVG_MATMUL_FFMA_TMA, "ffma_tma", can, launch};

} // namespace pvg::matmul
#endif
