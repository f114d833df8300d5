// The kernels of ffma_tma.cu and ffma_tma_sequence.cu: float32 products on the CUDA cores whose
// stages come by TMA, so that the threads that multiply do nothing else. Compute capability 9.0.
//
// A block has three warpgroups. Two multiply: each thread reads a stage of a as [k][row] and of b
// as [k][column]. The third fills the ring of stages: one of its threads starts the copies, and
// barriers in shared memory say when a stage has come and when it has been read. TMA cannot
// transpose what it copies. So where a lies along k, as matrices by rows do, it comes as [row][k]
// into a ring of its own, and the third warpgroup moves it from there into the stages, a warp 32
// rows. That takes 40 instructions of a scheduler that has 8,600 to issue in the same time.
//
// Where k is halved the sums of the first half wait in c (ffma_tile.cuh). The third warpgroup has
// them brought back by TMA while the last stages are multiplied, into the stages that are done.
#pragma once
#include "kernels/matmul/ffma_tile.cuh"
#include "kernels/matmul/pretranspose.cuh"
#include "runtime/device.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

constexpr int producers = 128; // threads

// What lies in shared memory from a multiple of tile_alignment on: stages, a along k, barriers. A
// stage is as many boxes of k, each one copy of an operand: one, or of slices in sequence a group
// each.
template <class Tile> struct RingLayout {
    static constexpr int box_depth = Tile::sequence > 1 ? 8 : Tile::depth;
    static constexpr int boxes = Tile::depth / box_depth;
    static constexpr int a_box = box_depth * Tile::rows * 4, b_box = box_depth * Tile::columns * 4;
    static constexpr int a_bytes = boxes * a_box, bytes = a_bytes + boxes * b_box;
    static constexpr int all_bytes = Tile::stages * bytes;
    static constexpr int by_rows = 2; // stages of a along k
    static constexpr int barriers_at = all_bytes + by_rows * a_bytes;
    static constexpr int shared_size =
        hopper::tile_alignment + barriers_at + (Tile::stages + by_rows) * 16;
    static constexpr CUtensorMapSwizzle swizzle =
        box_depth == 32 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_32B;
    static_assert(box_depth == 32 || box_depth == 8, "a row of a box is as long as the swizzle");
    static_assert(Tile::rows == producers, "each producer has a row of a");
    static_assert(Tile::sum_bytes <= all_bytes && shared_size <= 227 << 10);
    static constexpr int parked_rows = bytes / (Tile::columns * 4); // of c, in a stage
    static_assert(!Tile::halves || parked_rows * Tile::stages >= Tile::rows);
};

struct TmaMaps {
    CUtensorMap a, b, c;
    bool a_along_k;
    bool parked; // c is there, for the sums of the first half
};
constexpr int parked_box = 16; // rows of c that TMA brings at a time

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// The stages of a tile in their order: where in k the boxes begin, a unit apart, and how many.
template <class Tile> struct PlainStages {
    const FfmaProduct &p;
    int at = 0;

    __device__ explicit PlainStages(const FfmaProduct &product) : p(product) {}
    __device__ bool more() const { return at < p.units; }
    __device__ int k() const { return at * Tile::depth; }
    __device__ int count() const { return 1; }
    __device__ void advance() { at++; }
};
// Of slices in sequence (ffma_sequence.cuh): the groups of chain after chain.
template <class Tile> struct ChainStages {
    const FfmaProduct &p;
    int at = 0, slice = 0;
    int first, last, unit; // of the split; the stage's first one
    unsigned split = 0;

    __device__ explicit ChainStages(const FfmaProduct &product) : p(product) { begin_split(); }
    __device__ bool more() const { return split < p.splits_in_sequence; }
    __device__ int k() const { return unit * Tile::unit + slice * 8; }
    __device__ int count() const { return min(RingLayout<Tile>::boxes, last - unit); }
    __device__ bool begins_chain() const { return unit == first; }
    __device__ void advance() {
        at++, unit += RingLayout<Tile>::boxes;
        if (unit < last) return;
        unit = first;
        if (++slice < Tile::sequence) return;
        slice = 0, split++;
        if (more()) begin_split();
    }

private:
    __device__ void begin_split() {
        unit = first = first_unit(p, split, p.splits_in_sequence);
        last = first_unit(p, split + 1, p.splits_in_sequence);
    }
};
template <class Tile>
using Stages = std::conditional_t<(Tile::sequence > 1), ChainStages<Tile>, PlainStages<Tile>>;

template <class Tile> struct Ring : RingLayout<Tile> {
    using Layout = RingLayout<Tile>;
    struct LoaderA { static constexpr int pitch = Tile::rows; };
    struct LoaderB { static constexpr int pitch = Tile::columns; };
    uint32_t base;

    // Of step `at`: its stage, two barriers and their phase; the same of a along k.
    __device__ uint32_t stage(int at) const { return base + at % Tile::stages * Layout::bytes; }
    __device__ uint32_t full(int at) const {
        return base + Layout::barriers_at + at % Tile::stages * 16;
    }
    __device__ uint32_t empty(int at) const { return full(at) + 8; }
    __device__ int phase(int at) const { return at / Tile::stages & 1; }
    __device__ uint32_t rows(int at) const {
        return base + Layout::all_bytes + at % Layout::by_rows * Layout::a_bytes;
    }
    __device__ uint32_t rows_full(int at) const {
        return base + Layout::barriers_at + (Tile::stages + at % Layout::by_rows) * 16;
    }
    __device__ uint32_t rows_empty(int at) const { return rows_full(at) + 8; }
    __device__ int rows_phase(int at) const { return at / Layout::by_rows & 1; }

    // Threads arrive one by one, each for what it has written and read itself: one for its warp
    // would do, but compute-sanitizer's racecheck follows no further, and it costs nothing.
    __device__ void make_barriers(bool a_along_k) const {
        for (int s = 0; s < Tile::stages; s++) {
            hopper::make_barrier(full(s), a_along_k ? 1 + producers : 1);
            hopper::make_barrier(empty(s), Tile::threads);
        }
        for (int s = 0; s < Layout::by_rows; s++) {
            hopper::make_barrier(rows_full(s), 1);
            hopper::make_barrier(rows_empty(s), producers);
        }
        hopper::publish_barriers();
    }
};

// ---- The warpgroup that fills the stages --------------------------------------------------------

template <class Tile> struct Producer {
    using Layout = RingLayout<Tile>;
    const TmaMaps &maps;
    const Ring<Tile> &ring;
    int row, column, item_a, item_b, item_c;
    int thread; // of the warpgroup

    // Both operands of a stage, or b's alone where a is moved there.
    __device__ __forceinline__ void load(const Stages<Tile> &stages) const {
        const uint32_t to = ring.stage(stages.at), full = ring.full(stages.at);
        const int count = stages.count();
        hopper::expect_bytes(full, count * (Layout::b_box + (maps.a_along_k ? 0 : Layout::a_box)));
        for (int i = 0; i < count; i++) {
            const int k = stages.k() + i * Tile::unit;
            hopper::load_tile(to + Layout::a_bytes + i * Layout::b_box, &maps.b, full, column, k,
                              item_b);
            if (!maps.a_along_k)
                hopper::load_tile(to + i * Layout::a_box, &maps.a, full, row, k, item_a);
        }
    }
    __device__ __forceinline__ void load_rows(const Stages<Tile> &stages) const {
        const uint32_t to = ring.rows(stages.at), full = ring.rows_full(stages.at);
        const int count = stages.count();
        hopper::expect_bytes(full, count * Layout::a_box);
        for (int i = 0; i < count; i++)
            hopper::load_tile(to + i * Layout::a_box, &maps.a, full, stages.k() + i * Tile::unit,
                              row, item_a);
    }
    // The thread's row of a to the stage. TMA has swizzled it: 16 bytes of row r are where their
    // number XOR that of the row's 128 bytes says, so that the lanes read different banks.
    __device__ __forceinline__ void transpose(const Stages<Tile> &stages) const {
        constexpr int chunks = Layout::box_depth / 4, at_once = chunks < 4 ? chunks : 4;
        uint32_t from = ring.rows(stages.at) + thread * (chunks * 16);
        uint32_t to = ring.stage(stages.at) + thread * 4;
        const int moved = thread * chunks / 8 % chunks;
#pragma unroll 1
        for (int i = 0; i < stages.count(); i++, from += Layout::a_box, to += Layout::a_box) {
#pragma unroll
            for (int first = 0; first < chunks; first += at_once) {
                float k[at_once * 4];
#pragma unroll
                for (int c = 0; c < at_once; c++)
                    read_four(from + ((first + c) ^ moved) * 16, k + c * 4);
#pragma unroll
                for (int e = 0; e < at_once * 4; e++)
                    asm volatile(
                        "st.shared.f32 [%0], %1;" ::"r"(to + (first * 4 + e) * Tile::rows * 4),
                        "f"(k[e]));
            }
        }
    }
    // All stages of an a along k.
    __device__ __forceinline__ void produce_rows(Stages<Tile> stages) const {
        Stages<Tile> ahead = stages;
        const bool is_first = thread == 0;
        for (int i = 0; is_first && i < Layout::by_rows && ahead.more(); i++) {
            load_rows(ahead);
            ahead.advance();
        }
#pragma unroll 1
        for (; stages.more(); stages.advance()) {
            hopper::wait(ring.empty(stages.at), ring.phase(stages.at) ^ 1);
            if (is_first) load(stages);
            hopper::wait(ring.rows_full(stages.at), ring.rows_phase(stages.at));
            transpose(stages);
            hopper::arrive(ring.full(stages.at));
            hopper::arrive(ring.rows_empty(stages.at));
            if (is_first && ahead.more()) {
                hopper::wait(ring.rows_empty(stages.at), ring.rows_phase(stages.at));
                load_rows(ahead);
                ahead.advance();
            }
            __syncwarp(); // together again
        }
    }
    __device__ __forceinline__ void produce(Stages<Tile> stages) const {
#pragma unroll 1
        for (; stages.more(); stages.advance()) {
            hopper::wait(ring.empty(stages.at), ring.phase(stages.at) ^ 1);
            load(stages);
        }
    }
    // The sums of the first half to the stages from `at` on.
    __device__ __forceinline__ void fetch_parked(int at) const {
        for (int first = 0; first < Tile::rows; first += Layout::parked_rows, at++) {
            const uint32_t to = ring.stage(at), full = ring.full(at);
            const int rows = min(Layout::parked_rows, Tile::rows - first);
            hopper::wait(ring.empty(at), ring.phase(at) ^ 1);
            hopper::expect_bytes(full, rows * Tile::columns * 4);
            for (int i = 0; i < rows; i += parked_box)
                hopper::load_tile(to + i * Tile::columns * 4, &maps.c, full, column,
                                  row + first + i, item_c);
            if (maps.a_along_k) hopper::arrive(full, producers);
        }
    }
};

// ---- The warpgroups that multiply ---------------------------------------------------------------

// Rows of the microtile from `first` on, parked in c and brought to the stages from `at` on.
template <class Tile, int ROWS>
__device__ __forceinline__ void read_parked(const Ring<Tile> &ring, int at,
                                            const Position<Tile> &thread, int first,
                                            float (&parked)[ROWS][Tile::micro_columns]) {
    constexpr int rows = RingLayout<Tile>::parked_rows;
    static_assert(ROWS == 4 && rows % 4 == 0); // neighbours, in the same stage
    const int row = thread.row + thread.row_step(first);
    at += row / rows;
    const uint32_t from = ring.stage(at) + (row % rows * Tile::columns + thread.column) * 4;
    hopper::wait(ring.full(at), ring.phase(at));
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j += 4)
            read_four(from + (i * Tile::columns + thread.column_step(j)) * 4, parked[i] + j);
}

// multiply(ring, thread, sum): sum += the tile's rows of a times its columns of b.
template <class Tile, class Multiply>
__device__ __forceinline__ void compute_tile(const TmaMaps &maps, const FfmaProduct &p,
                                             const Multiply &multiply) {
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const uint32_t offset = -hopper::shared_address(memory) % hopper::tile_alignment;
    const Ring<Tile> ring = {{}, hopper::shared_address(memory) + offset};
    if (threadIdx.x == 0) {
        hopper::prefetch_map(&maps.a);
        hopper::prefetch_map(&maps.b);
        ring.make_barriers(maps.a_along_k);
    }
    __syncthreads();
    hopper::let_next_kernel_start();
    hopper::wait_for_previous_kernel();
    const Place at = place_of_block<Tile>(p, blockIdx.x);
    if (threadIdx.x >= Tile::threads) {
        hopper::give_registers<40>();
        const int item = static_cast<int>(at.item);
        const Producer<Tile> producer = {maps,
                                         ring,
                                         at.row,
                                         at.column,
                                         p.a_item ? item : 0,
                                         p.b_item ? item : 0,
                                         item,
                                         static_cast<int>(threadIdx.x) - Tile::threads};
        if (maps.a_along_k)
            producer.produce_rows(Stages<Tile>(p));
        else if (producer.thread == 0)
            producer.produce(Stages<Tile>(p));
        if (Tile::halves && maps.parked && producer.thread == 0) producer.fetch_parked(p.units);
        return;
    }
    hopper::take_registers<232>();
    const Position<Tile> thread(threadIdx.x);
    Sums<Tile> sum = {};
    multiply(ring, thread, sum);
    if constexpr (Tile::halves)
        add_parked<Tile>(p, at, thread, sum, maps.parked, [&](int first, auto &parked) {
            read_parked(ring, p.units, thread, first, parked);
        });
    if (p.plain) {
        store_sums(p, at, thread, sum);
        return;
    }
    float *sums = reinterpret_cast<float *>(memory + offset);
    share_sums(sums, thread, sum);
    sync_tile<Tile>();
    finish_tile<Tile>(p, at, sums);
}

#endif

// ---- On the host --------------------------------------------------------------------------------

template <class Tile> bool can_by_tma(const Gemm &g) {
    int64_t most = 0;
    return g.dtype == PVG_FLOAT32 && tensor_architecture(g.device) == 90 &&
           device_attribute(g.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most) == PVG_OK &&
           RingLayout<Tile>::shared_size <= most &&
           tiles(g.m, Tile::rows) * tiles(g.n, Tile::columns) <= INT_MAX;
}

// A matrix of so many rows, or one for each item; box: of a load.
struct Matrix {
    const void *data;
    int64_t rows, columns, stride, item;
    int box_rows, box_columns;
    CUtensorMapSwizzle swizzle;
};

inline int make_map(const Gemm &g, const Matrix &x, CUtensorMap *map) {
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

constexpr Layout rows_along_k = {true, 4}, rows_along_side = {false, 4};

// start(maps, p, blocks) launches the kernel, when TMA can read its operands.
template <class Tile, class Launch>
int launch_by_tma(Operation &op, const Gemm &given, unsigned splits, const Launch &start) {
    using Parts = RingLayout<Tile>;
    constexpr CUtensorMapSwizzle plain = CU_TENSOR_MAP_SWIZZLE_NONE;
    Gemm g = given;
    Workspace space;
    TmaMaps maps{};
    if (g.items == 1) g.a_item = g.b_item = g.c_item = 0;
    maps.a_along_k = has_layout_a(g, rows_along_k);
    PVG_PASS(arrange_operands(op, &g, maps.a_along_k ? rows_along_k : rows_along_side,
                              rows_along_side, &space));
    FfmaProduct p = describe_ffma<Tile>(g);
    p.splits_in_sequence = splits;
    Matrix a = {g.a, g.k, g.m, g.lda, g.a_item, Parts::box_depth, Tile::rows, plain};
    if (maps.a_along_k)
        a = {g.a, g.m, g.k, g.lda, g.a_item, Tile::rows, Parts::box_depth, Parts::swizzle};
    const Matrix b = {g.b, g.k, g.n, g.ldb, g.b_item, Parts::box_depth, Tile::columns, plain};
    const Matrix c = {g.c, g.m, g.n, g.ldc, g.c_item, parked_box, Tile::columns, plain};
    maps.parked = p.first_half && is_aligned(g.c, g.m, g.n, g.ldc, g.items, g.c_item, 4);
    PVG_PASS(make_map(g, a, &maps.a));
    PVG_PASS(make_map(g, b, &maps.b));
    if (maps.parked) PVG_PASS(make_map(g, c, &maps.c));
    return start(maps, p, blocks_for(int64_t(p.tiles_down) * p.tiles_across * g.items, 1));
}

} // namespace

} // namespace pvg::matmul
