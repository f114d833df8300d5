// The product by warpgroups (wgmma) of sm_90a: c = epilogue(a b) for float16, bfloat16 and TF32,
// sums in float32.
//
// A block of three warpgroups stays for the whole launch and walks through the units of a Schedule.
// One thread of the first warpgroup fills a ring of stages in shared memory by TMA, each with 64
// (TF32: 32) of K for 128 rows of a and N columns of b; the other two warpgroups multiply, 64 rows
// each, with the sums in registers. A stage goes back to the producer when the products that read
// it are done, one step later, so that the tensor cores always have work. While the two warpgroups
// store a tile, the producer fills the ring for the next one.
//
// Operands of 16 bits are taken as they lie: along k, or along m and n, which the instruction
// transposes. TF32, which TMA rounds to nearest, has to lie along k in shared memory, but not in
// registers: where b lies along n, the product is that of the transposed matrices, b's and a's, and
// the consumers read b from shared memory themselves, one stage ahead. Elements outside of a matrix
// come as zeros.
#pragma once
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/schedule.cuh"
#include "kernels/matmul/wgmma.cuh"

namespace pvg::matmul {

// T: __half, __nv_bfloat16 or hopper::Tf32. N: columns of the tile. "a" and "b" are the operands of
// the instruction: a TF32 tile whose a lies along m is one of c transposed, and its a is b of the
// product.
template <class T, int N_, bool A_ALONG_M, bool B_ALONG_N> struct TensorTile {
    using Element = T;
    static constexpr bool tf32 = std::is_same_v<T, hopper::Tf32>;
    using Output = std::conditional_t<tf32, float, T>;
    static constexpr bool a_along_m = A_ALONG_M, b_along_n = B_ALONG_N;
    static constexpr bool from_registers = tf32 && A_ALONG_M;
    static constexpr int element = tf32 ? 4 : 2;             // bytes
    static constexpr int m = 128, n = N_, k = 128 / element; // k: 128 bytes, the swizzle's span
    static constexpr int step = 32 / element;                // of k, in one instruction
    static constexpr int span = 128 / element; // of m or n, in a row of a slab along them
    static constexpr int a_bytes = m * 128, b_bytes = n * 128, stage_bytes = a_bytes + b_bytes;
    static constexpr int stages = N_ == 256 ? 4 : N_ == 128 ? 6 : 8;
    static constexpr int staging_at = stages * stage_bytes;
    static constexpr int barriers_at = staging_at + staging_bytes(8);
    static constexpr int shared_bytes = hopper::tile_alignment + barriers_at + 2 * stages * 8;
    static_assert(shared_bytes <= 227 << 10, "more shared memory than a block can have");
    static_assert(!(tf32 && b_along_n), "in shared memory TF32 lies along k");
    // Arrivals that empty a stage: of both warpgroups, whose products read it together, or of each
    // warp that reads it by itself.
    static constexpr int readers = from_registers ? 8 : 2;
    using Products = hopper::Wgmma<T, n>;
};

struct TensorParameters {
    Destination destination;
    Schedule schedule;
    int first_item;        // of the batch; the schedule counts from it
    bool a_items, b_items; // the operand has an item for each of c; else they share one
};

namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// The ring as both sides see it: stage and phase of step `at`.
template <class Tile> struct Ring {
    uint32_t base;

    __device__ uint32_t stage(unsigned at) const {
        return base + at % Tile::stages * Tile::stage_bytes;
    }
    __device__ uint32_t full(unsigned at) const {
        return base + Tile::barriers_at + at % Tile::stages * 8;
    }
    __device__ uint32_t empty(unsigned at) const { return full(at) + Tile::stages * 8; }
    __device__ int phase(unsigned at) const { return at / Tile::stages & 1; }
};

template <class Tile>
__device__ __forceinline__ void load_stage(const Ring<Tile> &ring, unsigned at,
                                           const CUtensorMap *map_a, const CUtensorMap *map_b,
                                           int row, int column, int k, int item_a, int item_b) {
    const uint32_t full = ring.full(at), a = ring.stage(at), b = a + Tile::a_bytes;
    hopper::expect_bytes(full, Tile::stage_bytes);
    if constexpr (Tile::a_along_m) {
#pragma unroll
        for (int slab = 0; slab < Tile::m / Tile::span; slab++)
            hopper::load_tile(a + slab * Tile::k * 128, map_a, full, row + slab * Tile::span, k,
                              item_a);
    } else {
        hopper::load_tile(a, map_a, full, k, row, item_a);
    }
    if constexpr (Tile::b_along_n) {
#pragma unroll
        for (int slab = 0; slab < Tile::n / Tile::span; slab++)
            hopper::load_tile(b + slab * Tile::k * 128, map_b, full, column + slab * Tile::span, k,
                              item_b);
    } else {
        hopper::load_tile(b, map_b, full, k, column, item_b);
    }
}

template <class Tile>
__device__ __forceinline__ void produce(const Ring<Tile> &ring, const CUtensorMap *map_a,
                                        const CUtensorMap *map_b, const TensorParameters &p) {
    unsigned at = 0;
    const unsigned units = static_cast<unsigned>(p.schedule.units());
    for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const Work work = work_of(unit, p.schedule);
        const int item = p.first_item + work.item;
        for (int k = work.k_begin; k < work.k_end; k++, at++) {
            hopper::wait(ring.empty(at), ring.phase(at) ^ 1);
            load_stage(ring, at, map_a, map_b, work.row * Tile::m, work.column * Tile::n,
                       k * Tile::k, p.a_items ? item : 0, p.b_items ? item : 0);
        }
    }
}

// The products of one stage; those of the first begin the sums anew.
template <class Tile>
__device__ __forceinline__ void multiply_stage(float (&sums)[Tile::n / 2], uint32_t stage,
                                               int warpgroup, bool is_first) {
    using namespace hopper;
    constexpr uint64_t along_k = tile_layout(16, 1024, swizzle_128);
    constexpr uint64_t along_side = tile_layout(Tile::k * 128, 1024, swizzle_128);
    constexpr int next_along_k = 32 >> 4, next_along_side = Tile::step * 128 >> 4;
    const int half = Tile::a_along_m ? Tile::k * 128 : 64 * 128; // a's rows of this warpgroup
    const uint64_t a =
        describe_tile(stage + warpgroup * half, Tile::a_along_m ? along_side : along_k);
    const uint64_t b = describe_tile(stage + Tile::a_bytes, Tile::b_along_n ? along_side : along_k);
    pin_sums(sums);
    begin_products();
#pragma unroll
    for (int i = 0; i < Tile::k / Tile::step; i++) {
        const uint64_t a_step = a + i * (Tile::a_along_m ? next_along_side : next_along_k);
        const uint64_t b_step = b + i * (Tile::b_along_n ? next_along_side : next_along_k);
        const int accumulate = !(is_first && i == 0);
        if constexpr (!Tile::tf32)
            Tile::Products::template multiply<Tile::a_along_m, Tile::b_along_n>(sums, a_step,
                                                                                b_step, accumulate);
        else
            Tile::Products::multiply(sums, a_step, b_step, accumulate);
    }
    commit_products();
    pin_sums(sums);
}

// ---- a from shared memory -----------------------------------------------------------------------

// All steps of a unit; returns the number of the next one.
template <class Tile>
__device__ __forceinline__ unsigned multiply_unit(float (&sums)[Tile::n / 2],
                                                  const Ring<Tile> &ring, unsigned at, int steps) {
    const int warpgroup = threadIdx.x / 128 - 1;
    const bool leads = threadIdx.x % 128 == 0;
    for (int i = 0; i < steps; i++, at++) {
        hopper::wait(ring.full(at), ring.phase(at));
        multiply_stage<Tile>(sums, ring.stage(at), warpgroup, i == 0);
        if (i > 0) {
            hopper::wait_for_products<1>();
            if (leads) hopper::arrive(ring.empty(at - 1));
        }
    }
    hopper::wait_for_products<0>();
    hopper::pin_sums(sums);
    if (leads) hopper::arrive(ring.empty(at - 1));
    return at;
}

// ---- a from registers: TF32 along m -------------------------------------------------------------

// A warp's elements of one stage of a, which lies in four slabs of 32 rows of k and 32 of m. TMA
// has swizzled it: 16 bytes of row k are where their number XOR k % 8 says. The rows of the tile
// that a warp takes (store_transposed names them) are such that its lanes, four of k and eight of
// m, then read 32 different banks.
struct Fragments {
    uint32_t of[4][4]; // of four instructions

    // Keeps the registers from being used for something else before this point.
    __device__ void pin() const {
#pragma unroll
        for (int i = 0; i < 16; i++) asm volatile("" ::"r"(of[i / 4][i % 4]) : "memory");
    }
    __device__ void load(const unsigned char *a) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4, q = lane / 4, c = lane % 4;
        const unsigned char *slab = a + warp / 2 * 4096 + q % 4 * 4;
#pragma unroll
        for (int g = 0; g < 2; g++) { // k and k + 4
#pragma unroll
            for (int h = 0; h < 2; h++) { // rows r and r + 8
                const int chunk = warp % 2 * 2 + h + q / 4 * 4;
                const unsigned char *from = slab + (c + 4 * g) * 128 + (chunk ^ (c + 4 * g)) * 16;
#pragma unroll
                for (int i = 0; i < 4; i++)
                    of[i][2 * g + h] = *reinterpret_cast<const uint32_t *>(from + i * 1024);
            }
        }
    }
};

template <class Tile>
__device__ __forceinline__ void multiply_fragments(float (&sums)[Tile::n / 2], Fragments &a,
                                                   uint32_t stage, bool is_first) {
    using namespace hopper;
    const uint64_t b = describe_tile(stage + Tile::a_bytes, tile_layout(16, 1024, swizzle_128));
    pin_sums(sums);
    begin_products();
#pragma unroll
    for (int i = 0; i < 4; i++)
        Tile::Products::multiply(sums, a.of[i], b + i * 2, !(is_first && i == 0));
    commit_products();
    pin_sums(sums);
}

// While the products of one stage are at work, the warps read the next one. Their registers are
// free again only when the products are done: until the warpgroup has issued the next ones, the
// other warpgroup's keep the tensor cores busy.
template <class Tile>
__device__ __forceinline__ unsigned
multiply_unit_from_registers(float (&sums)[Tile::n / 2], const Ring<Tile> &ring,
                             const unsigned char *shared, unsigned at, int steps) {
    Fragments now, next;
    hopper::wait(ring.full(at), ring.phase(at));
    now.load(shared + at % Tile::stages * Tile::stage_bytes);
    for (int i = 0; i < steps; i++, at++) {
        multiply_fragments<Tile>(sums, now, ring.stage(at), i == 0);
        if (i + 1 < steps) {
            hopper::wait(ring.full(at + 1), ring.phase(at + 1));
            next.load(shared + (at + 1) % Tile::stages * Tile::stage_bytes);
        }
        hopper::wait_for_products<0>();
        hopper::pin_sums(sums);
        now.pin();
        // The warp's elements of this stage have been multiplied, so they were read.
        if (threadIdx.x % 32 == 0) hopper::arrive(ring.empty(at));
        now = next;
    }
    return at;
}

// ---- A warpgroup's way through its units --------------------------------------------------------

template <class Tile>
__device__ __forceinline__ void consume(const Ring<Tile> &ring, unsigned char *shared,
                                        const TensorParameters &p) {
    const int warpgroup = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 - 4;
    float *const staging = reinterpret_cast<float *>(shared + Tile::staging_at);
    float sums[Tile::n / 2];
    unsigned at = 0;
    const unsigned units = static_cast<unsigned>(p.schedule.units());
    for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x) {
        int steps;
        {
            const Work work = work_of(unit, p.schedule);
            steps = work.k_end - work.k_begin;
        }
        if constexpr (Tile::from_registers)
            at = multiply_unit_from_registers<Tile>(sums, ring, shared, at, steps);
        else
            at = multiply_unit<Tile>(sums, ring, at, steps);
        // Where the tile is, is worked out again: the main loop needs the registers.
        unsigned again = unit;
        asm volatile("" : "+r"(again));
        const Work work = work_of(again, p.schedule);
        if constexpr (Tile::n < 256) {
            if (!combine_slices(sums, work, p.schedule, warpgroup, 2, 1 + warpgroup)) continue;
        }
        const int item = p.first_item + work.item, row = work.row * Tile::m + warpgroup * 64;
        if constexpr (Tile::from_registers)
            store_transposed<Tile::n>(sums, p.destination, item, work.column * Tile::n, row,
                                      staging, warp);
        else
            store_sums<typename Tile::Output, Tile::n>(sums, p.destination, item, row,
                                                       work.column * Tile::n, staging, warp);
    }
}

#endif

template <class Tile>
__global__ void __launch_bounds__(384, 1)
    tensor_product_kernel(const __grid_constant__ CUtensorMap map_a,
                          const __grid_constant__ CUtensorMap map_b, const TensorParameters p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t start = hopper::shared_address(shared);
    const uint32_t base = (start + hopper::tile_alignment - 1) & ~(hopper::tile_alignment - 1u);
    const Ring<Tile> ring = {base};
    if (threadIdx.x == 0) {
        for (int s = 0; s < Tile::stages; s++) {
            hopper::make_barrier(ring.full(s), 1);
            hopper::make_barrier(ring.empty(s), Tile::readers);
        }
        hopper::publish_barriers();
        hopper::prefetch_map(&map_a);
        hopper::prefetch_map(&map_b);
    }
    hopper::let_next_kernel_start();
    hopper::wait_for_previous_kernel();
    __syncthreads();
    if (threadIdx.x < 128) {
        hopper::give_registers<40>();
        if (threadIdx.x == 0) produce<Tile>(ring, &map_a, &map_b, p);
        __syncwarp();
    } else {
        hopper::take_registers<232>();
        consume<Tile>(ring, shared + (base - start), p);
    }
#endif
}

} // namespace

} // namespace pvg::matmul
