// Float32 products from 16-bit pieces of the operands (split.cuh), by wgmma. Two schemes:
//
//   Bf16x6  six products of three bfloat16 pieces each: a0 b0 + (a1 b0 + a0 b1) + (a1 b1 + a2 b0 +
//           a0 b2). What is left out is 2^-24 of a b and less. As accurate as float32 arithmetic.
//   Fp16x3  three products of two float16 pieces each, of operands scaled by powers of two:
//           h h' + (l h' + h l') / 2^11. Its error is small against the largest elements of row
//           and column.
//
// README.md says how sums are kept from drifting. A block is three warpgroups: one loads tiles of
// all pieces with TMA into a ring of stages, two multiply, 64 rows each. A stage is K = 32 of
//   a: [piece][128 rows][32], swizzled over 64 bytes, along k
//   b: [64 columns][half of the k][piece][16 of k][64], swizzled over 128 bytes, along n
// Two blocks of a cluster compute tiles one below the other: each loads one half of b for both.
// The blocks walk through the units of a Schedule, those of all items of a batch.
#pragma once
#include "kernels/matmul/simt/recompute.cuh"
#include "kernels/matmul/sm90/schedule.cuh"
#include "kernels/matmul/sm90/split.cuh"
#include "kernels/matmul/sm90/store.cuh"
#include "kernels/wgmma.cuh"

namespace pvg::matmul {

struct Bf16x6 {
    using Element = __nv_bfloat16;
    static constexpr CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    static constexpr int pieces = bf16_planes, small_products = 5;
    // The pieces of product p, the smallest first: a digit each, of 4 bits.
    static constexpr int a_pieces = 0x01102, b_pieces = 0x10120;
    static constexpr bool scaled = false;
};
struct Fp16x3 {
    using Element = __half;
    static constexpr CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    static constexpr int pieces = fp16_planes, small_products = 2;
    static constexpr int a_pieces = 0x01, b_pieces = 0x10;
    static constexpr bool scaled = true; // the small products by 2^11, rows and columns by roots^-2
};

// A tile of 128 x COLUMNS; UNIT blocks of K between promotions, which are GROUPED or not.
template <class SCHEME, int COLUMNS, int STAGES, int CLUSTER, int UNIT, bool GROUPED = false>
struct EmulatedTile {
    using Scheme = SCHEME;
    static constexpr int columns = COLUMNS, stages = STAGES, cluster = CLUSTER, unit = UNIT;
    static constexpr int sums = COLUMNS / 2, slabs = COLUMNS / 64;
    static constexpr bool grouped = GROUPED;
    static constexpr int a_piece_bytes = emulated_rows * 64, b_piece_bytes = 16 * 128;
    static constexpr int a_bytes = SCHEME::pieces * a_piece_bytes;
    static constexpr int b_half_bytes = SCHEME::pieces * b_piece_bytes;
    static constexpr int slab_bytes = 2 * b_half_bytes;
    static constexpr int stage_bytes = a_bytes + slabs * slab_bytes;
    static constexpr int staging_at = STAGES * stage_bytes;
    static constexpr int barriers_at = staging_at + staging_bytes(8);
    static constexpr int shared_bytes = hopper::tile_alignment + barriers_at + STAGES * 16;
    static_assert(shared_bytes <= 227 << 10, "more shared memory than a block can have");
};

// Which items recompute.cu has to do again in float32 arithmetic. The blocks find it out beside
// their work: for Bf16x6 from the operands' magnitudes, for Fp16x3 from lines that are not
// finite.
struct Guard {
    const Range *ranges_a, *ranges_b; // of all items
    int range_count_a, range_count_b; // of one
    const float *roots_a, *roots_b;
    unsigned parts; // into which an item's lines are cut, to share them out
    Verdicts verdicts;
};
constexpr int lines_of_part = 512;

struct EmulatedArguments {
    Schedule schedule;
    Destination destination;
    Guard guard;
    int k;
    bool a_items, b_items; // the operand has an item for each of c; else they share one

    __device__ int64_t item_of_a(int item) const { return a_items ? item : 0; }
    __device__ int64_t item_of_b(int item) const { return b_items ? item : 0; }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// ---- The guard ----------------------------------------------------------------------------------

__device__ __forceinline__ Range range_of(const Range *ranges, int count) {
    Range all = {0, ~0u};
    for (int i = threadIdx.x % 32; i < count; i += 32) {
        const Range range = ranges[i];
        all.largest = max(all.largest, range.largest);
        all.smallest = min(all.smallest, range.smallest);
    }
    return {__reduce_max_sync(~0u, all.largest), __reduce_min_sync(~0u, all.smallest)};
}

__device__ __forceinline__ int exponent_of(uint32_t magnitude) {
    return static_cast<int>(magnitude >> 23) - 127;
}

// Whether Bf16x6 is as accurate as float32 arithmetic for all elements of these magnitudes.
__device__ __forceinline__ bool is_safe(const Range &a, const Range &b, int k) {
    // All pieces are normal numbers or zero, and the largest one does not round to infinity: so the
    // pieces add up to the element exactly. Above are infinity and NaN.
    constexpr int least = -103, most = 126;
    if (exponent_of(a.largest) > most || exponent_of(b.largest) > most) return false;
    if (exponent_of(a.smallest) < least || exponent_of(b.smallest) < least) return false;
    // No sum of such products overflows, in whatever order they are added.
    const int terms = 32 - __clz(k); // k < 2^terms
    if (exponent_of(a.largest) + exponent_of(b.largest) + 2 + terms > 126) return false;
    // Even if tensor cores took sums below 2^-126 for zero, that would be little beside a product.
    constexpr int least_product = -97;
    return exponent_of(a.smallest) + exponent_of(b.smallest) >= least_product;
}

// Whether all lines of this part are finite: rows of a, and after them columns of b.
__device__ __forceinline__ bool are_finite(const float *roots_a, const float *roots_b, int64_t m,
                                           int64_t n, unsigned part) {
    bool finite = true;
    const int64_t first = int64_t(part) * lines_of_part + threadIdx.x % 32;
#pragma unroll 4
    for (int i = 0; i < lines_of_part; i += 32) {
        const int64_t line = first + i;
        if (line >= m + n) break;
        const float root = line < m ? roots_a[line] : roots_b[line - m];
        finite &= root == root;
    }
    return __all_sync(~0u, finite);
}

// One warp of every block.
template <class Scheme>
__device__ __forceinline__ void judge(const EmulatedArguments &arguments) {
    const Guard &guard = arguments.guard;
    const int m = static_cast<int>(arguments.destination.rows);
    const int n = static_cast<int>(arguments.destination.columns);
    const unsigned count = static_cast<unsigned>(arguments.schedule.items) * guard.parts;
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        const int item = static_cast<int>(i / guard.parts);
        const int64_t of_a = arguments.item_of_a(item), of_b = arguments.item_of_b(item);
        bool is_fine;
        if constexpr (Scheme::scaled) {
            is_fine = are_finite(guard.roots_a + of_a * m, guard.roots_b + of_b * n, m, n,
                                 i % guard.parts);
        } else {
            const Range a =
                range_of(guard.ranges_a + of_a * guard.range_count_a, guard.range_count_a);
            const Range b =
                range_of(guard.ranges_b + of_b * guard.range_count_b, guard.range_count_b);
            is_fine = is_safe(a, b, arguments.k);
        }
        if (!is_fine && threadIdx.x % 32 == 0) *guard.verdicts.any = guard.verdicts.items[item] = 1;
    }
}

// ---- Loading ------------------------------------------------------------------------------------

// The ring: a stage's tiles, and its barriers behind all stages and the staging of the epilogue.
template <class Tile> struct EmulatedRing {
    uint32_t base;

    __device__ __forceinline__ uint32_t stage(int block) const {
        return base + block % Tile::stages * Tile::stage_bytes;
    }
    __device__ __forceinline__ uint32_t full(int block) const {
        return base + Tile::barriers_at + block % Tile::stages * 16;
    }
    __device__ __forceinline__ uint32_t empty(int block) const { return full(block) + 8; }
    __device__ __forceinline__ int round(int block) const { return block / Tile::stages & 1; }
};

// One thread, for all units of its block.
template <class Tile>
__device__ __forceinline__ void load_tiles(const CUtensorMap &map_a, const CUtensorMap &map_b,
                                           const EmulatedArguments &arguments,
                                           const EmulatedRing<Tile> &ring, int rank) {
    const Schedule &schedule = arguments.schedule;
    constexpr int pieces = Tile::Scheme::pieces;
    const int units = static_cast<int>(schedule.units());
    int block = 0; // of K, counted through all units
    for (int unit = blockIdx.x / Tile::cluster; unit < units; unit += gridDim.x / Tile::cluster) {
        const Work work = work_of(static_cast<unsigned>(unit), schedule);
        const int row = (work.row * Tile::cluster + rank) * emulated_rows;
        const int column = work.column * Tile::columns;
        const int piece_a = static_cast<int>(arguments.item_of_a(work.item)) * pieces;
        const int piece_b = static_cast<int>(arguments.item_of_b(work.item)) * pieces;
        for (int kb = work.k_begin; kb < work.k_end; kb++, block++) {
            const uint32_t a = ring.stage(block), b = a + Tile::a_bytes, full = ring.full(block);
            const int k = kb * emulated_k;
            hopper::wait(ring.empty(block), ring.round(block) ^ 1);
            hopper::expect_bytes(full, Tile::stage_bytes);
            hopper::load_tile(a, &map_a, full, k, row, piece_a);
#pragma unroll
            for (int j = 0; j < Tile::slabs; j++) {
                const uint32_t slab = b + j * Tile::slab_bytes;
                const int at = column + j * 64;
                if constexpr (Tile::cluster == 2) {
                    hopper::load_tile_multicast(slab + rank * Tile::b_half_bytes, &map_b, full, at,
                                                k + rank * 16, piece_b, 3);
                } else {
                    hopper::load_tile(slab, &map_b, full, at, k, piece_b);
                    hopper::load_tile(slab + Tile::b_half_bytes, &map_b, full, at, k + 16, piece_b);
                }
            }
        }
    }
}

// ---- Multiplying --------------------------------------------------------------------------------

// Both steps of 16 in a block of K: the product of two pieces.
template <class Tile>
__device__ __forceinline__ void multiply(float (&sums)[Tile::sums], uint64_t a, uint64_t b,
                                         int a_piece, int b_piece, int step, int accumulate) {
    hopper::Wgmma<typename Tile::Scheme::Element, Tile::columns>::template multiply<false, true>(
        sums, a + a_piece * (Tile::a_piece_bytes / 16) + 2 * step,
        b + b_piece * (Tile::b_piece_bytes / 16) + step * (Tile::b_half_bytes / 16), accumulate);
}

template <class Tile>
__device__ __forceinline__ void describe(const EmulatedRing<Tile> &ring, int block, int warpgroup,
                                         uint64_t *a, uint64_t *b) {
    const uint32_t stage = ring.stage(block);
    *a = hopper::describe_tile(stage + warpgroup * 64 * 64,
                               hopper::tile_layout(16, 512, hopper::swizzle_64));
    *b = hopper::describe_tile(stage + Tile::a_bytes,
                               hopper::tile_layout(Tile::slab_bytes, 1024, hopper::swizzle_128));
}

// The stage is free, for all blocks that load into it.
template <class Tile> __device__ __forceinline__ void release(const EmulatedRing<Tile> &ring,
                                                              int block) {
    const uint32_t thread = threadIdx.x % 128;
    if constexpr (Tile::cluster == 2) {
        if (thread < 2) hopper::arrive_in_cluster(ring.empty(block), thread);
    } else if (thread == 0) {
        hopper::arrive(ring.empty(block));
    }
}

// Of grouped tiles the two warpgroups that multiply take turns: one adds up while the other
// multiplies, where they might else do both at the same times. A turn ends when all products of a
// unit are under way.
__device__ __forceinline__ void wait_for_turn(int warpgroup) { sync_threads<256>(3 + warpgroup); }
__device__ __forceinline__ void give_turn(int warpgroup) { arrive_at<256>(3 + warpgroup); }

// The sums of a warpgroup, and of grouped tiles those of the units since the last four.
template <class Tile> struct Totals {
    float sums[Tile::sums] = {}, group[Tile::grouped ? Tile::sums : 1] = {};
    int count = 0; // of units in the group

    __device__ __forceinline__ void add(const float (&part)[Tile::sums]) {
        if constexpr (Tile::grouped) {
#pragma unroll
            for (int i = 0; i < Tile::sums; i++) group[i] += part[i];
            if (++count == 4) finish();
        } else {
#pragma unroll
            for (int i = 0; i < Tile::sums; i++) sums[i] += part[i];
        }
    }
    __device__ __forceinline__ void finish() {
        if constexpr (Tile::grouped)
#pragma unroll
            for (int i = 0; i < Tile::sums; i++) sums[i] += group[i], group[i] = 0;
        count = 0;
    }
};

// One unit of K, which begins with this block: totals += its products. is_last: of all that this
// block has to do.
template <class Tile>
__device__ __forceinline__ void multiply_unit(Totals<Tile> &totals, float (&part)[Tile::sums],
                                              const EmulatedRing<Tile> &ring, int block,
                                              int warpgroup, bool is_last) {
    using Scheme = typename Tile::Scheme;
    uint64_t a, b;
    if (Tile::grouped) wait_for_turn(warpgroup);
#pragma unroll
    for (int j = 0; j < Tile::unit; j++) {
        hopper::wait(ring.full(block + j), ring.round(block + j));
        describe(ring, block + j, warpgroup, &a, &b);
        if (j == 0) hopper::pin_sums(part);
        hopper::begin_products();
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int p = 0; p < Scheme::small_products; p++)
                multiply<Tile>(part, a, b, Scheme::a_pieces >> 4 * p & 15,
                               Scheme::b_pieces >> 4 * p & 15, step, (j | step | p) != 0);
        hopper::commit_products();
    }
    if constexpr (Scheme::scaled) {
        hopper::wait_for_products<0>();
        hopper::pin_sums(part);
#pragma unroll
        for (int i = 0; i < Tile::sums; i++)
            totals.sums[i] = fmaf(part[i], 1 / fp16_low_scale, totals.sums[i]);
        hopper::pin_sums(part);
    }
#pragma unroll
    for (int j = 0; j < Tile::unit; j++) {
        describe(ring, block + j, warpgroup, &a, &b);
        hopper::begin_products();
#pragma unroll
        for (int step = 0; step < 2; step++)
            multiply<Tile>(part, a, b, 0, 0, step, !Scheme::scaled || (j | step) != 0);
        hopper::commit_products();
        if (j > 0) {
            hopper::wait_for_products<1>();
            release(ring, block + j - 1);
        }
    }
    if (Tile::grouped && !(is_last && warpgroup == 1)) give_turn(1 - warpgroup);
    hopper::wait_for_products<0>();
    hopper::pin_sums(part);
    release(ring, block + Tile::unit - 1);
    totals.add(part);
}

// Takes the scales of rows and columns off: root^2 of both, in an order that overflows, or loses
// digits, only if the result does.
template <class Tile>
__device__ __forceinline__ void unscale(float (&sums)[Tile::sums],
                                        const EmulatedArguments &arguments, int item, int row,
                                        int column) {
    const int m = static_cast<int>(arguments.destination.rows);
    const int n = static_cast<int>(arguments.destination.columns);
    const float *const roots_a = arguments.guard.roots_a + arguments.item_of_a(item) * m;
    const float *const roots_b = arguments.guard.roots_b + arguments.item_of_b(item) * n;
    const int thread = threadIdx.x % 128, lane = thread % 32;
    row += thread / 32 * 16 + lane / 4, column += lane % 4 * 2;
    const float upper = row < m ? roots_a[row] : 0.0f;
    const float lower = row + 8 < m ? roots_a[row + 8] : 0.0f;
#pragma unroll
    for (int i = 0; i < Tile::sums; i++) {
        const int at = column + i / 4 * 8 + i % 2;
        const float root = (at < n ? roots_b[at] : 0.0f) * (i % 4 < 2 ? upper : lower);
        sums[i] = sums[i] * root * root;
    }
}

// One of the two warpgroups that multiply, for all units of its block.
template <class Tile>
__device__ __forceinline__ void multiply_tiles(const EmulatedArguments &arguments,
                                               const EmulatedRing<Tile> &ring, float *staging,
                                               int rank) {
    const Schedule &schedule = arguments.schedule;
    const Destination &destination = arguments.destination;
    const int warpgroup = static_cast<int>(threadIdx.x) / 128 - 1;
    const int units = static_cast<int>(schedule.units());
    const int step = static_cast<int>(gridDim.x) / Tile::cluster;
    int block = 0;
    if (Tile::grouped && warpgroup == 1) give_turn(0);
    for (int unit = blockIdx.x / Tile::cluster; unit < units; unit += step) {
        const Work work = work_of(static_cast<unsigned>(unit), schedule);
        Totals<Tile> totals;
        float part[Tile::sums];
        for (int kb = work.k_begin; kb < work.k_end; kb += Tile::unit, block += Tile::unit)
            multiply_unit<Tile>(totals, part, ring, block, warpgroup,
                                unit + step >= units && kb + Tile::unit >= work.k_end);
        totals.finish();
        float (&sums)[Tile::sums] = totals.sums;
        if (!combine_slices(sums, work, schedule, rank * 2 + warpgroup, Tile::cluster * 2,
                            1 + warpgroup))
            continue;
        const int row = (work.row * Tile::cluster + rank) * emulated_rows + warpgroup * 64;
        const int column = work.column * Tile::columns;
        if constexpr (Tile::Scheme::scaled) unscale<Tile>(sums, arguments, work.item, row, column);
        store_sums<float, Tile::columns>(sums, destination, work.item, row, column, staging,
                                         static_cast<int>(threadIdx.x) / 32 - 4);
    }
}

#endif // __CUDA_ARCH_FEAT_SM90_ALL

// ---- The kernel ---------------------------------------------------------------------------------

namespace {

template <class Tile>
__global__ void __launch_bounds__(emulated_threads, 1)
    emulated_kernel(const __grid_constant__ CUtensorMap map_a,
                    const __grid_constant__ CUtensorMap map_b,
                    const __grid_constant__ EmulatedArguments arguments) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    constexpr uint32_t alignment = hopper::tile_alignment;
    const uint32_t start = shared_address(memory);
    const EmulatedRing<Tile> ring = {(start + alignment - 1) / alignment * alignment};
    float *const staging =
        reinterpret_cast<float *>(memory + (ring.base - start) + Tile::staging_at);
    const int rank = Tile::cluster == 2 ? static_cast<int>(hopper::cluster_rank()) : 0;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < Tile::stages; stage++) {
            hopper::make_barrier(ring.full(stage), 1);
            hopper::make_barrier(ring.empty(stage), 2 * Tile::cluster);
        }
        hopper::publish_barriers();
        hopper::prefetch_map(&map_a);
        hopper::prefetch_map(&map_b);
    }
    let_next_kernel_start(); // and until here this one ran beside the one before it
    wait_for_previous_kernel();
    if constexpr (Tile::cluster == 2)
        cluster_sync();
    else
        __syncthreads();

    if (threadIdx.x < 128) {
        hopper::give_registers<40>();
        if (threadIdx.x == 0) load_tiles<Tile>(map_a, map_b, arguments, ring, rank);
        if (threadIdx.x / 32 == 1) judge<typename Tile::Scheme>(arguments);
        __syncwarp();
    } else {
        hopper::take_registers<232>();
        multiply_tiles<Tile>(arguments, ring, staging, rank);
    }
    if constexpr (Tile::cluster == 2) cluster_sync(); // the other block may still signal
#endif
}

} // namespace

} // namespace pvg::matmul
