// float32 products on the CUDA cores for large matrices, compute capability 9.0: stages come by
// TMA, and the threads that multiply do nothing else.
//
// A block has three warpgroups. Two multiply: each thread reads a stage of a as [k][row] and of b
// as [k][column]. The third fills the ring of stages: one of its threads starts the copies, and
// barriers in shared memory say when a stage has come and when it has been read. TMA cannot
// transpose what it copies: an a along k comes as [row][k] into a ring of its own, and the third
// warpgroup moves it from there into the stages, a warp 32 rows. Every element of c has the same
// bits as from the tiles of ffma.cu without slices. More in README.md.
#include "kernels/hopper.cuh"
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/simt/ffma_tile.cuh"

namespace pvg::matmul {

namespace {

using TmaTile = FfmaTile<4, 2, 1, 4, 8, 16, 32, 4, 1, true>;
constexpr int producers = 128; // threads

// What lies in shared memory from a multiple of tile_alignment on: stages, a along k, barriers.
struct FfmaRingLayout {
    static constexpr int a_bytes = TmaTile::depth * TmaTile::rows * 4;
    static constexpr int b_bytes = TmaTile::depth * TmaTile::columns * 4;
    static constexpr int bytes = a_bytes + b_bytes, all_bytes = TmaTile::stages * bytes;
    static constexpr int by_rows = 2; // stages of a along k
    static constexpr int barriers_at = all_bytes + by_rows * a_bytes;
    static constexpr int shared_size =
        hopper::tile_alignment + barriers_at + (TmaTile::stages + by_rows) * 16;
    static_assert(TmaTile::depth * 4 == 128, "a row of a along k is as long as the swizzle's span");
    static_assert(TmaTile::sum_bytes <= all_bytes && shared_size <= 227 << 10);
    static constexpr int parked_rows = bytes / (TmaTile::columns * 4); // in a stage
    static_assert(parked_rows * TmaTile::stages >= TmaTile::rows);
    // The second half has as many steps as there are stages: when the stages behind the last one
    // are empty, all threads have parked their sums.
    static_assert(least_halved / 2 / TmaTile::depth >= TmaTile::stages);
};

struct TmaMaps {
    CUtensorMap a, b, parked; // parked: the sums of the first half, if there is one
    bool a_along_k;
};
constexpr int parked_box = 16; // rows that TMA brings at a time

#if PVG_TARGET_IS_90A

struct FfmaRing : FfmaRingLayout {
    struct LoaderA { static constexpr int pitch = TmaTile::rows; };
    struct LoaderB { static constexpr int pitch = TmaTile::columns; };
    uint32_t base;

    // Of step `at`: its stage, two barriers and their phase; the same of a along k.
    __device__ uint32_t stage(int at) const { return base + at % TmaTile::stages * bytes; }
    __device__ uint32_t full(int at) const {
        return base + barriers_at + at % TmaTile::stages * 16;
    }
    __device__ uint32_t empty(int at) const { return full(at) + 8; }
    __device__ int phase(int at) const { return at / TmaTile::stages & 1; }
    __device__ uint32_t rows(int at) const { return base + all_bytes + at % by_rows * a_bytes; }
    __device__ uint32_t rows_full(int at) const {
        return base + barriers_at + (TmaTile::stages + at % by_rows) * 16;
    }
    __device__ uint32_t rows_empty(int at) const { return rows_full(at) + 8; }
    __device__ int rows_phase(int at) const { return at / by_rows & 1; }

    // Threads arrive one by one, each for what it has written and read itself: one for its warp
    // would do, but compute-sanitizer's racecheck follows no further, and it costs nothing.
    __device__ void make_barriers(bool a_along_k) const {
        for (int s = 0; s < TmaTile::stages; s++) {
            hopper::make_barrier(full(s), a_along_k ? 1 + producers : 1);
            hopper::make_barrier(empty(s), TmaTile::threads);
        }
        for (int s = 0; s < by_rows; s++) {
            hopper::make_barrier(rows_full(s), 1);
            hopper::make_barrier(rows_empty(s), producers);
        }
        hopper::publish_barriers();
    }
};

// ---- The warpgroup that fills the stages --------------------------------------------------------

struct Producer {
    const TmaMaps &maps;
    int row, column, item_a, item_b, item;
    int thread; // of the warpgroup

    // Both operands of a stage, or b's alone where a is moved there.
    __device__ __forceinline__ void load(const FfmaRing &ring, int step) const {
        const uint32_t to = ring.stage(step), full = ring.full(step);
        hopper::expect_bytes(full, maps.a_along_k ? ring.b_bytes : ring.bytes);
        hopper::load_tile(to + ring.a_bytes, &maps.b, full, column, step * TmaTile::depth, item_b);
        if (!maps.a_along_k)
            hopper::load_tile(to, &maps.a, full, row, step * TmaTile::depth, item_a);
    }
    __device__ __forceinline__ void load_rows(const FfmaRing &ring, int step) const {
        hopper::expect_bytes(ring.rows_full(step), ring.a_bytes);
        hopper::load_tile(ring.rows(step), &maps.a, ring.rows_full(step), step * TmaTile::depth,
                          row, item_a);
    }
    // A lane's row of a to the stage. TMA has swizzled it: 16 bytes of row r are where their number
    // XOR r % 8 says, so that the lanes read different banks.
    __device__ __forceinline__ void transpose(const FfmaRing &ring, int step) const {
        const uint32_t from = ring.rows(step) + thread * 128, to = ring.stage(step) + thread * 4;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float k[16];
#pragma unroll
            for (int i = 0; i < 4; i++)
                read_four(from + ((half * 4 + i) ^ thread % 8) * 16, k + i * 4);
#pragma unroll
            for (int i = 0; i < 16; i++) write_one(to + (half * 16 + i) * TmaTile::rows * 4, k[i]);
        }
    }
    __device__ __forceinline__ void produce_rows(const FfmaRing &ring, int steps) const {
        const bool is_first = thread == 0;
        if (is_first)
            for (int step = 0; step < ring.by_rows && step < steps; step++) load_rows(ring, step);
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            hopper::wait(ring.empty(step), ring.phase(step) ^ 1);
            if (is_first) load(ring, step);
            hopper::wait(ring.rows_full(step), ring.rows_phase(step));
            transpose(ring, step);
            hopper::arrive(ring.full(step));
            hopper::arrive(ring.rows_empty(step));
            if (is_first && step + ring.by_rows < steps) {
                hopper::wait(ring.rows_empty(step), ring.rows_phase(step));
                load_rows(ring, step + ring.by_rows);
            }
            __syncwarp(); // together again
        }
    }
    __device__ __forceinline__ void produce(const FfmaRing &ring, int steps) const {
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            hopper::wait(ring.empty(step), ring.phase(step) ^ 1);
            load(ring, step);
        }
    }
    // The sums of the first half to the stages after the last one.
    __device__ __forceinline__ void fetch_parked(const FfmaRing &ring, int steps) const {
        for (int first = 0; first < TmaTile::rows; first += ring.parked_rows, steps++) {
            const uint32_t to = ring.stage(steps), full = ring.full(steps);
            const int rows = min(ring.parked_rows, TmaTile::rows - first);
            hopper::wait(ring.empty(steps), ring.phase(steps) ^ 1);
            hopper::fence_async_proxy(); // a's part of the stage was written by ordinary stores
            hopper::expect_bytes(full, rows * TmaTile::columns * 4);
            for (int i = 0; i < rows; i += parked_box)
                hopper::load_tile(to + i * TmaTile::columns * 4, &maps.parked, full, column,
                                  row + first + i, item);
            if (maps.a_along_k) hopper::arrive(full, producers);
        }
    }
};

// ---- The warpgroups that multiply ---------------------------------------------------------------

// sum += the tile's rows of a times its columns of b, as in ffma.cuh.
__device__ __forceinline__ void multiply(const FfmaProduct &p, const FfmaRing &ring, int steps,
                                         const FfmaMicrotile<TmaTile> &thread,
                                         FfmaSums<TmaTile> &sum) {
    // Of k, in the inner loop: 18 KB of instructions. A whole stage of them, 70 KB, is slower.
    constexpr int unrolled = 8, parts = TmaTile::depth / unrolled;
    const uint32_t in_a = thread.row * 4, in_b = ring.a_bytes + thread.column * 4;
    FfmaFragments<TmaTile> fragments;
    int step = 0, end = p.first_half ? p.first_half / TmaTile::depth : steps;
    for (;;) {
#pragma unroll 1
        for (; step < end; step++) {
            uint32_t from_a = ring.stage(step) + in_a, from_b = ring.stage(step) + in_b;
            hopper::wait(ring.full(step), ring.phase(step));
#pragma unroll 1
            for (int part = 0; part < parts; part++) {
                fragments.template read<FfmaRing>(0, from_a, from_b, 0);
                fragments.multiply(1, sum);
#pragma unroll
                for (int k = 0; k < unrolled - 1; k++) {
                    fragments.template read<FfmaRing>((k + 1) % 2, from_a, from_b, k + 1);
                    fragments.multiply(k % 2, sum);
                }
                from_a += unrolled * TmaTile::rows * 4;
                from_b += unrolled * TmaTile::columns * 4;
            }
            hopper::arrive(ring.empty(step));
        }
        fragments.multiply(1, sum);
        if (end == steps) break;
        park_sums<TmaTile>(p, sum);
        hopper::fence_async_proxy_global(); // TMA may read them
        fragments = FfmaFragments<TmaTile>();
        end = steps;
    }
}

// Rows of the microtile from `first` on, parked and brought back to the stages.
template <int ROWS>
__device__ __forceinline__ void read_parked(const FfmaRing &ring, int steps,
                                            const FfmaMicrotile<TmaTile> &thread, int first,
                                            float (&parked)[ROWS][TmaTile::micro_columns]) {
    static_assert(ROWS == 4 && ring.parked_rows % 4 == 0); // neighbours, in the same stage
    const int row = thread.row + thread.row_step(first), at = steps + row / ring.parked_rows;
    const uint32_t from =
        ring.stage(at) + (row % ring.parked_rows * TmaTile::columns + thread.column) * 4;
    hopper::wait(ring.full(at), ring.phase(at));
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < TmaTile::micro_columns; j += 4)
            read_four(from + (i * TmaTile::columns + thread.column_step(j)) * 4, parked[i] + j);
}

#endif

__global__ void __launch_bounds__(TmaTile::threads + producers, 1)
    tma_kernel(const __grid_constant__ TmaMaps maps, const __grid_constant__ FfmaProduct p) {
#if PVG_TARGET_IS_90A
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const uint32_t offset = -shared_address(memory) % hopper::tile_alignment;
    const FfmaRing ring = {{}, shared_address(memory) + offset};
    const int steps = p.units;
    if (threadIdx.x == 0) {
        hopper::prefetch_map(&maps.a);
        hopper::prefetch_map(&maps.b);
        ring.make_barriers(maps.a_along_k);
    }
    __syncthreads();
    let_next_kernel_start();
    wait_for_previous_kernel();
    const FfmaPlace at = place_of_block<TmaTile>(p, blockIdx.x);
    if (threadIdx.x >= TmaTile::threads) {
        hopper::give_registers<40>();
        const int item = static_cast<int>(at.item);
        const Producer producer = {maps,
                                   at.row,
                                   at.column,
                                   p.a_item ? item : 0,
                                   p.b_item ? item : 0,
                                   item,
                                   static_cast<int>(threadIdx.x) - TmaTile::threads};
        if (maps.a_along_k)
            producer.produce_rows(ring, steps);
        else if (producer.thread == 0)
            producer.produce(ring, steps);
        if (p.first_half && producer.thread == 0) producer.fetch_parked(ring, steps);
        return;
    }
    hopper::take_registers<232>();
    const FfmaMicrotile<TmaTile> thread(threadIdx.x);
    FfmaSums<TmaTile> sum = {};
    multiply(p, ring, steps, thread, sum);
    add_parked<TmaTile>(
        p, sum, [&](int first, auto &parked) { read_parked(ring, steps, thread, first, parked); });
    if (p.direct) {
        store_plain(p, at, thread, sum);
        return;
    }
    float *sums = reinterpret_cast<float *>(memory + offset);
    share_sums(sums, thread, sum);
    sync_tile<TmaTile>();
    finish_tile<TmaTile>(p, at, sums);
#endif
}

// ---- On the host --------------------------------------------------------------------------------

// A matrix of so many rows, or one for each item; box: of a load.
struct TmaMatrix {
    const void *data;
    int64_t rows, columns, stride, item;
    int box_rows, box_columns;
    CUtensorMapSwizzle swizzle;
};

int make_map(const Gemm &g, const TmaMatrix &x, CUtensorMap *map) {
    hopper::TensorView view{};
    view.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, view.swizzle = x.swizzle;
    view.data = x.data, view.rank = 3;
    view.size[0] = static_cast<uint64_t>(x.columns), view.size[1] = static_cast<uint64_t>(x.rows);
    view.size[2] = x.item ? static_cast<uint64_t>(g.items) : 1;
    view.stride[0] = static_cast<uint64_t>(x.stride) * 4;
    view.stride[1] = x.item ? static_cast<uint64_t>(x.item) * 4 : view.stride[0];
    view.box[0] = static_cast<uint32_t>(x.box_columns);
    view.box[1] = static_cast<uint32_t>(x.box_rows), view.box[2] = 1;
    return hopper::make_tensor_map(map, view);
}

// One launch, of operands that are laid out so.
int launch_part(Call &call, const Gemm &g, const FfmaProduct &p, const Plan &plan) {
    constexpr CUtensorMapSwizzle plain = CU_TENSOR_MAP_SWIZZLE_NONE;
    TmaMaps maps{};
    maps.a_along_k = g.a_along_k;
    TmaMatrix a = {g.a, g.k, g.m, g.lda, g.a_item, TmaTile::depth, TmaTile::rows, plain};
    if (maps.a_along_k)
        a = {g.a,
             g.m,
             g.k,
             g.lda,
             g.a_item,
             TmaTile::rows,
             TmaTile::depth,
             CU_TENSOR_MAP_SWIZZLE_128B};
    const TmaMatrix b = {g.b, g.k, g.n, g.ldb, g.b_item, TmaTile::depth, TmaTile::columns, plain};
    const TmaMatrix parked = {
        p.parked, g.m, g.n, p.parked_stride, p.parked_item, parked_box, TmaTile::columns, plain};
    PVG_PASS(make_map(g, a, &maps.a));
    PVG_PASS(make_map(g, b, &maps.b));
    if (p.first_half) PVG_PASS(make_map(g, parked, &maps.parked));
    PVG_LAUNCH_WITH((LaunchExtras{1, plan.overlap}), tma_kernel,
                    blocks_for(int64_t(p.tiles_down) * p.tiles_across * g.items, 1), plan.threads,
                    plan.shared_bytes, call.stream, maps, p);
    return PVG_OK;
}

} // namespace

int launch_ffma_tma(Call &call, const Gemm &given, const Plan &plan) {
    static_assert(is_size<TmaTile>(ffma_sizes[ffma_by_tma]) && producers == ffma_tma_producers &&
                  FfmaRingLayout::shared_size == ffma_tma_shared_bytes);
    Gemm g = given;
    Workspace space;
    PVG_PASS(arrange_operands(call, &g, plan, &space));
    if (g.items == 1) g.a_item = g.b_item = g.c_item = 0;
    return launch_in_parts<TmaTile>(call, g, plan, [&](const Gemm &part, const FfmaProduct &p) {
        return launch_part(call, part, p, plan);
    });
}

} // namespace pvg::matmul
