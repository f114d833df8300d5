// The product by warpgroups (wgmma) of sm_90a: c = epilogue(a b) for float16, bfloat16 and TF32,
// sums in float32.
//
// A block of three warpgroups stays for the whole launch and walks through the units of a Schedule.
// One thread of the first warpgroup fills a ring of stages in shared memory by TMA; the other two
// warpgroups multiply, 64 rows each, with the sums in registers (small products: 64 rows, and one
// such warpgroup; tiles of 192 rows: three). While a tile is stored, the producer fills the ring
// for the next one. README.md says how two blocks share what they load, how TF32 is read that lies
// along n, and why nobody is ever ahead by a round.
#pragma once
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/sm90/schedule.cuh"
#include "kernels/matmul/sm90/store.cuh"
#include "kernels/wgmma.cuh"

namespace pvg::matmul {

// T: __half, __nv_bfloat16 or hopper::Tf32. M, N: rows and columns of the tile. "a" and "b" are the
// operands of the instruction: a TF32 tile whose a lies along m is one of c transposed, and its a
// is b of the product, which may come in classes of rows.
template <class T, int M_, int N_, bool A_ALONG_M, bool B_ALONG_N, bool IN_CLASSES = false>
struct TensorTile {
    using Element = T;
    static constexpr bool tf32 = std::is_same_v<T, hopper::Tf32>;
    using OfC = // of c, where that is not float32
        std::conditional_t<tf32, float,
                           std::conditional_t<std::is_same_v<T, __half>, Half, BFloat16>>;
    static constexpr bool a_along_m = A_ALONG_M, b_along_n = B_ALONG_N;
    static constexpr bool from_registers = tf32 && A_ALONG_M;
    static constexpr int element = tf32 ? 4 : 2;              // bytes
    static constexpr int m = M_, n = N_, k = 128 / element;   // k: 128 bytes, the swizzle's span
    static constexpr int warpgroups = m / 64, warps = m / 16; // that multiply
    static constexpr int threads = 128 + warpgroups * 128;
    // Blocks for which a multiprocessor has room, small ones of launches that overlap.
    static constexpr bool is_small = tensor_is_small(m, n) && !from_registers;
    static constexpr int at_a_time = is_small ? 2 : 1;
    static constexpr int step = 32 / element;  // of k, in one instruction
    static constexpr int span = 128 / element; // of m or n, in a row of a slab along them
    static constexpr int b_span = b_along_n && n < span ? n : span; // the same of b
    static constexpr bool in_classes = IN_CLASSES;
    static constexpr int classes = in_classes ? 4 : 1; // of a's rows
    static constexpr int class_row = m + 4, class_bytes = k / 4 * class_row * element;
    static constexpr int a_loaded = in_classes ? 4 * class_bytes : m * 128; // bytes
    static constexpr int a_bytes =
        (a_loaded + hopper::tile_alignment - 1) / hopper::tile_alignment * hopper::tile_alignment;
    static constexpr int b_bytes = n * 128, stage_bytes = a_bytes + b_bytes;
    static constexpr int stages = tensor_stages(m, n);
    static constexpr int staging = staging_bytes(warps);
    static constexpr int shared_bytes =
        hopper::tile_alignment + stages * (stage_bytes + 2 * 8) + staging;
    static_assert(shared_bytes <= (is_small ? 113 : 227) << 10, "more shared memory than there is");
    static_assert(!b_along_n || n % b_span == 0, "b comes in whole slabs");
    static_assert(!(tf32 && b_along_n), "in shared memory TF32 lies along k");
    static_assert(from_registers || !in_classes, "wgmma itself cannot read classes of rows");
    static_assert(class_bytes % 128 == 0, "TMA writes to multiples of 128 bytes");
    // Arrivals that empty a stage: of all warpgroups, whose products read it together, or of each
    // warp that reads it by itself.
    static constexpr int readers = from_registers ? warps : warpgroups;
    using Products = hopper::Wgmma<T, n>;
};

// How TMA sees a: as one matrix, or as its four classes of rows (i, i + 4, i + 8, ...), of which
// each begins `shift` elements before its first row.
template <int CLASSES> struct MapsOfA {
    CUtensorMap map[CLASSES];
    int shift[CLASSES];
};

// What TMA brings of an operand for a stage, which takes as long whether there are such rows or
// not: where the operand is no larger than a tile, no more of it than there is. What lies behind in
// the stage is of no element of c.
struct TensorBoxes {
    int boxes, rows; // slabs of an operand along m or n, else one; rows of each
    int bytes;       // of all, from both blocks of a pair that shares them
};

struct TensorParameters {
    Destination destination;
    Schedule schedule;
    int rest;              // instructions for the last block of K; 0: as many as for the others
    int first_item;        // of the batch; the schedule counts from it
    bool a_items, b_items; // the operand has an item for each of c; else they share one
    int stretch;           // of k, where the items are stretches of shared operands; else 0
    int pair;     // 1: two blocks to a tile of the schedule, M x 2 N, which share a; else 0
    bool down;    // the two share b, and their tile is 2 M x N
    bool upright; // a tile of c transposed is one of c itself: Gemm's c_turned
    unsigned stages;
    TensorBoxes a, b;
};

namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// The ring as both sides see it: stage and phase of step `at`.
template <class Tile> struct TensorRing {
    uint32_t base;
    int pair, rank; // pair: 1 if two blocks share loads, of which this is number `rank`; else 0, 0
    bool down;      // they share b
    unsigned given, inverse; // stages of a small tile, and 2^32 by them, rounded up

    __device__ unsigned stages() const { return Tile::is_small ? given : Tile::stages; }
    __device__ unsigned round(unsigned at) const { // steps are far less than 2^32 by stages
        return Tile::is_small ? __umulhi(at, inverse) : at / Tile::stages;
    }
    __device__ unsigned place(unsigned at) const { return at - round(at) * stages(); }
    __device__ unsigned staging_at() const { return stages() * Tile::stage_bytes; }
    __device__ uint32_t stage(unsigned at) const { return base + place(at) * Tile::stage_bytes; }
    __device__ uint32_t full(unsigned at) const {
        return base + staging_at() + Tile::staging + place(at) * 8;
    }
    __device__ uint32_t empty(unsigned at) const { return full(at) + stages() * 8; }
    __device__ int phase(unsigned at) const { return round(at) & 1; }
    // Of the tiles along m (n) the block's, where `work` counts those of a pair.
    __device__ int row(const Work &work) const {
        return ((work.row << int(down)) + (down ? rank : 0)) * Tile::m;
    }
    __device__ int column(const Work &work) const {
        return ((work.column << (pair - int(down))) + (down ? 0 : rank)) * Tile::n;
    }
};

// A warp or warpgroup, in which the thread has this place, has read the stage of this step.
template <class Tile>
__device__ __forceinline__ void release(const TensorRing<Tile> &ring, unsigned at, unsigned place) {
    if (ring.pair) {
        if (place < 2) hopper::arrive_in_cluster(ring.empty(at), place);
    } else if (place == 0) {
        hopper::arrive(ring.empty(at));
    }
}

// A box, if they share it for both blocks of a pair.
__device__ __forceinline__ void load_box(bool shared, uint32_t to, const CUtensorMap *map,
                                         uint32_t full, int x, int y, int item) {
    if (shared)
        hopper::load_tile_multicast(to, map, full, x, y, item, 3);
    else
        hopper::load_tile(to, map, full, x, y, item);
}

template <class Tile>
__device__ __forceinline__ void load_stage(const TensorRing<Tile> &ring, unsigned at,
                                           const CUtensorMap *map_a, const CUtensorMap *map_b,
                                           int row, int column, int k, int item_a, int item_b,
                                           const TensorParameters &p) {
    const uint32_t full = ring.full(at), a = ring.stage(at), b = a + Tile::a_bytes;
    const bool shares_a = ring.pair && !ring.down, shares_b = ring.pair && ring.down;
    hopper::expect_bytes(full, p.a.bytes + p.b.bytes);
    if constexpr (Tile::in_classes) {
#pragma unroll
        for (int i = 0; i < Tile::classes; i++)
            if (!shares_a || i / 2 == ring.rank)
                load_box(shares_a, a + i * Tile::class_bytes, map_a + i, full, row, k / 4, item_a);
    } else if constexpr (Tile::a_along_m) {
        constexpr int slabs = Tile::m / Tile::span;
#pragma unroll
        for (int slab = 0; slab < slabs; slab++)
            if (slab < p.a.boxes && (!shares_a || slab * 2 / slabs == ring.rank))
                load_box(shares_a, a + slab * Tile::k * 128, map_a, full, row + slab * Tile::span,
                         k, item_a);
    } else { // boxes have half of the rows for a pair that shares them
        const int first = shares_a ? ring.rank * p.a.rows : 0;
        load_box(shares_a, a + first * 128, map_a, full, k, row + first, item_a);
    }
    if constexpr (Tile::b_along_n) {
        constexpr int slabs = Tile::n / Tile::b_span;
#pragma unroll
        for (int slab = 0; slab < slabs; slab++)
            if (slab < p.b.boxes && (!shares_b || slab * 2 / slabs == ring.rank))
                load_box(shares_b, b + slab * Tile::k * 128, map_b, full,
                         column + slab * Tile::b_span, k, item_b);
    } else {
        const int first = shares_b ? ring.rank * p.b.rows : 0;
        load_box(shares_b, b + first * 128, map_b, full, k, column + first, item_b);
    }
}

template <class Tile>
__device__ __forceinline__ void produce(const TensorRing<Tile> &ring, const CUtensorMap *map_a,
                                        const CUtensorMap *map_b, const TensorParameters &p) {
    unsigned at = 0;
    const unsigned units = static_cast<unsigned>(p.schedule.units());
    for (unsigned unit = blockIdx.x >> p.pair; unit < units; unit += gridDim.x >> p.pair) {
        const Work work = work_of(unit, p.schedule);
        const int item = p.first_item + work.item;
        const int row = ring.row(work), column = ring.column(work), begin = item * p.stretch;
#pragma unroll 1 // the producer has few registers
        for (int k = work.k_begin; k < work.k_end; k++, at++) {
            hopper::wait(ring.empty(at), ring.phase(at) ^ 1);
            load_stage(ring, at, map_a, map_b, row, column, begin + k * Tile::k,
                       p.a_items ? item : 0, p.b_items ? item : 0, p);
        }
    }
}

// The products of one stage, or COUNT steps of it from `first` on; the first of all begin the sums
// anew.
template <class Tile, int COUNT = Tile::k / Tile::step>
__device__ __forceinline__ void multiply_stage(float (&sums)[Tile::n / 2], uint32_t stage,
                                               int warpgroup, bool is_first, int first = 0) {
    using namespace hopper;
    constexpr uint64_t along_k = tile_layout(16, 1024, swizzle_128);
    constexpr uint64_t along_side = tile_layout(Tile::k * 128, 1024, swizzle_128);
    constexpr int b_row = Tile::b_span * Tile::element; // bytes: 128, or 64 of a tile of 32 columns
    constexpr uint64_t b_along_side =
        tile_layout(Tile::k * 128, 8 * b_row, b_row == 64 ? swizzle_64 : swizzle_128);
    constexpr int next_along_k = 32 >> 4, next_along_side = Tile::step * 128 >> 4;
    constexpr int next_of_b = Tile::b_along_n ? Tile::step * b_row >> 4 : next_along_k;
    const int half = Tile::a_along_m ? Tile::k * 128 : 64 * 128; // a's rows of this warpgroup
    uint64_t a = describe_tile(stage + warpgroup * half, Tile::a_along_m ? along_side : along_k);
    uint64_t b = describe_tile(stage + Tile::a_bytes, Tile::b_along_n ? b_along_side : along_k);
    a += first * (Tile::a_along_m ? next_along_side : next_along_k);
    b += first * next_of_b;
    pin_sums(sums);
    begin_products();
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const uint64_t a_step = a + i * (Tile::a_along_m ? next_along_side : next_along_k);
        const uint64_t b_step = b + i * next_of_b;
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

// All steps of a unit, and `rest` products of one more; returns the number of the next one.
template <class Tile>
__device__ __forceinline__ unsigned multiply_unit(float (&sums)[Tile::n / 2],
                                                  const TensorRing<Tile> &ring, unsigned at,
                                                  int steps, int rest) {
    const int warpgroup = threadIdx.x / 128 - 1;
    const unsigned place = threadIdx.x % 128;
    for (int i = 0; i < steps; i++, at++) {
        hopper::wait(ring.full(at), ring.phase(at));
        multiply_stage<Tile>(sums, ring.stage(at), warpgroup, i == 0);
        if (i > 0) {
            hopper::wait_for_products<1>();
            release(ring, at - 1, place);
        }
    }
    if (rest > 0) {
        hopper::wait(ring.full(at), ring.phase(at));
#pragma unroll 1
        for (int i = 0; i < rest; i++)
            multiply_stage<Tile, 1>(sums, ring.stage(at), warpgroup, steps == 0 && i == 0, i);
        at++;
    }
    hopper::wait_for_products<0>();
    hopper::pin_sums(sums);
    if (rest > 0 && steps > 0) release(ring, at - 2, place);
    release(ring, at - 1, place);
    return at;
}

// ---- a from registers: TF32 along m -------------------------------------------------------------

// A warp's elements of one stage of a. Which rows of the tile it takes (Order in store.cuh names
// them) is such that its lanes, four of k and eight of m, read 32 different banks.
struct WgmmaFragments {
    uint32_t of[4][4]; // of four instructions

    // Keeps the registers from being used for something else before this point.
    __device__ void pin() const {
#pragma unroll
        for (int i = 0; i < 16; i++) asm volatile("" ::"r"(of[i / 4][i % 4]) : "memory");
    }
    // From four slabs of 32 rows of k and 32 of m. TMA has swizzled them: 16 bytes of row k are
    // where their number XOR k % 8 says.
    __device__ void load_slabs(const unsigned char *a) {
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
    // From classes of rows, k = 4 j + c being row j of class c: lane % 4 is the class, and where in
    // a stage the lane's first element is. All classes begin in the same bank, and the shifts, if
    // they differ, are what keeps them apart.
    template <class Tile> static __device__ int place_in_classes(const int *shift) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4, q = lane / 4, c = lane % 4;
        const int column = warp / 2 * 32 + q * 4 + warp % 2 * 2 + shift[c];
        return c * Tile::class_bytes + column * Tile::element;
    }
    template <class Tile> __device__ void load_classes(const unsigned char *from) {
        const uint32_t *const elements = reinterpret_cast<const uint32_t *>(from);
#pragma unroll
        for (int j = 0; j < Tile::k / 4; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) // rows r and r + 8
                of[j / 2][j % 2 * 2 + h] = elements[j * Tile::class_row + h];
    }
    template <class Tile> __device__ void load(const unsigned char *a) {
        if constexpr (Tile::in_classes)
            load_classes<Tile>(a);
        else
            load_slabs(a);
    }
};

template <class Tile>
__device__ __forceinline__ void multiply_fragments(float (&sums)[Tile::n / 2], WgmmaFragments &a,
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

// One more step, whose elements are read while the products of the step before are at work, and
// whose products queue up behind those: the tensor cores do not wait for a warpgroup to see that
// one group is done and to issue the next.
template <class Tile>
__device__ __forceinline__ void
follow_with(float (&sums)[Tile::n / 2], WgmmaFragments &now, const WgmmaFragments &before,
            const TensorRing<Tile> &ring, const unsigned char *a, unsigned at) {
    hopper::wait(ring.full(at), ring.phase(at));
    now.load<Tile>(a + at % Tile::stages * Tile::stage_bytes);
    multiply_fragments<Tile>(sums, now, ring.stage(at), false);
    hopper::wait_for_products<1>();
    before.pin();
    release(ring, at - 1, threadIdx.x % 32);
}

// Two sets of registers take turns, because those of products at work cannot be moved. `a`: the
// ring, or in classes where the lane begins to read in it.
template <class Tile>
__device__ __forceinline__ unsigned
multiply_unit_from_registers(float (&sums)[Tile::n / 2], const TensorRing<Tile> &ring,
                             const unsigned char *a, unsigned at, int steps) {
    WgmmaFragments even, odd = {};
    hopper::wait(ring.full(at), ring.phase(at));
    even.load<Tile>(a + at % Tile::stages * Tile::stage_bytes);
    multiply_fragments<Tile>(sums, even, ring.stage(at), true);
    at++;
    for (int i = 2; i < steps; i += 2) {
        follow_with(sums, odd, even, ring, a, at++);
        follow_with(sums, even, odd, ring, a, at++);
    }
    if (steps % 2 == 0) follow_with(sums, odd, even, ring, a, at++);
    hopper::wait_for_products<0>();
    hopper::pin_sums(sums);
    even.pin();
    odd.pin();
    release(ring, at - 1, threadIdx.x % 32);
    return at;
}

// ---- A warpgroup's way through its units --------------------------------------------------------

template <class Tile>
__device__ __forceinline__ void consume(const TensorRing<Tile> &ring, unsigned char *shared,
                                        const int *shift, const TensorParameters &p) {
    const int warpgroup = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 - 4;
    float *const staging = reinterpret_cast<float *>(shared + ring.staging_at());
    const unsigned char *a = shared;
    if constexpr (Tile::in_classes) a += WgmmaFragments::place_in_classes<Tile>(shift);
    float sums[Tile::n / 2];
    unsigned at = 0;
    const unsigned units = static_cast<unsigned>(p.schedule.units());
    for (unsigned unit = blockIdx.x >> p.pair; unit < units; unit += gridDim.x >> p.pair) {
        int steps, rest;
        {
            const Work work = work_of(unit, p.schedule);
            rest = work.k_end == p.schedule.k_blocks ? p.rest : 0;
            steps = work.k_end - work.k_begin - (rest > 0);
        }
        if constexpr (Tile::from_registers)
            at = multiply_unit_from_registers<Tile>(sums, ring, a, at, steps);
        else
            at = multiply_unit<Tile>(sums, ring, at, steps, rest);
        // Where the tile is, is worked out again: the main loop needs the registers.
        unsigned again = unit;
        asm volatile("" : "+r"(again));
        const Work work = work_of(again, p.schedule);
        if constexpr (Tile::m == 128 && Tile::n <= 128) {
            if (!combine_slices(sums, work, p.schedule, ring.rank * 2 + warpgroup, 2 << p.pair,
                                1 + warpgroup))
                continue;
        }
        const int item = p.first_item + work.item, row = ring.row(work) + warpgroup * 64;
        const int column = ring.column(work);
        if (Tile::from_registers && !Tile::in_classes && p.upright)
            store_upright<Tile::n>(sums, p.destination, item, row, column, warp);
        else if constexpr (Tile::from_registers)
            store_transposed<Tile::n, Tile::in_classes ? Order::classes : Order::slabs>(
                sums, p.destination, item, column, row, staging, warp);
        else
            store_sums<typename Tile::OfC, Tile::n>(sums, p.destination, item, row, column, staging,
                                                    warp);
    }
}

#endif

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::at_a_time)
    tensor_product_kernel(const __grid_constant__ MapsOfA<Tile::classes> a,
                          const __grid_constant__ CUtensorMap map_b, const TensorParameters p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t start = shared_address(shared);
    const uint32_t base = (start + hopper::tile_alignment - 1) & ~(hopper::tile_alignment - 1u);
    const TensorRing<Tile> ring = {base,
                                   p.pair,
                                   p.pair ? static_cast<int>(hopper::cluster_rank()) : 0,
                                   !Tile::from_registers && p.down,
                                   p.stages,
                                   0xFFFFFFFFu / p.stages + 1};
    if (threadIdx.x == 0) {
        for (unsigned s = 0; s < ring.stages(); s++) {
            hopper::make_barrier(ring.full(s), 1);
            hopper::make_barrier(ring.empty(s), Tile::readers << p.pair);
        }
        hopper::publish_barriers();
        for (const CUtensorMap &map : a.map) hopper::prefetch_map(&map);
        hopper::prefetch_map(&map_b);
    }
    let_next_kernel_start();
    wait_for_previous_kernel();
    if (p.pair)
        cluster_sync();
    else
        __syncthreads();
    if (threadIdx.x < 128) {
        if constexpr (Tile::warpgroups > 1) hopper::give_registers<40>();
        if (threadIdx.x == 0) produce<Tile>(ring, a.map, &map_b, p);
    } else {
        if constexpr (Tile::warpgroups == 2) hopper::take_registers<232>();
        if constexpr (Tile::warpgroups == 3) hopper::take_registers<152>();
        consume<Tile>(ring, shared + (base - start), a.shift, p);
    }
    __syncwarp();
    if (p.pair) cluster_sync(); // the other block may still load for this one, or arrive
#endif
}

} // namespace

} // namespace pvg::matmul
