// What the kernels of ffma.cuh and ffma_tma.cu share: float32 products on the CUDA cores, one fused
// multiply-add (FFMA) a term.
//
// A block computes a tile of c and walks along k in stages, which lie in shared memory as
// [k][row of a] and [k][column of b]. A thread owns a microtile of 8 x 8 or 8 x 16 elements of c:
// each value that it reads from shared memory is used 8 or 16 times, which keeps the multipliers
// busy. README.md says how k is cut where there are few tiles, and where the sums of its first half
// wait.
#pragma once
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/plan.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/pretranspose.cuh"
#include "kernels/matmul/tile_order.cuh"
#include <limits.h>

namespace pvg::matmul {

namespace {

// WARPS_DOWN x WARPS_ACROSS warps, times SLICES of k; a warp is LANES_DOWN x 32 / LANES_DOWN
// threads with microtiles of MICRO_ROWS x MICRO_COLUMNS. STAGES of DEPTH of k. BLOCKS fit a
// multiprocessor. SEQUENCE is the number of slices that a thread computes one after another.
// may_idle: a warp that is outside of c does not multiply.
template <int WARPS_DOWN, int WARPS_ACROSS, int SLICES, int LANES_DOWN, int MICRO_ROWS,
          int MICRO_COLUMNS, int DEPTH, int STAGES, int BLOCKS, bool BY_TMA = false,
          int SEQUENCE = 1>
struct FfmaTile {
    static constexpr int warps_across = WARPS_ACROSS, warps = WARPS_DOWN * WARPS_ACROSS;
    static constexpr int slices = SLICES, depth = DEPTH, stages = STAGES, blocks = BLOCKS;
    static constexpr int lanes_down = LANES_DOWN, lanes_across = 32 / LANES_DOWN;
    static constexpr int micro_rows = MICRO_ROWS, micro_columns = MICRO_COLUMNS;
    static constexpr int warp_rows = lanes_down * micro_rows;
    static constexpr int warp_columns = lanes_across * micro_columns;
    static constexpr int rows = WARPS_DOWN * warp_rows, columns = WARPS_ACROSS * warp_columns;
    static constexpr int threads = 32 * warps * SLICES, slice_depth = DEPTH / SLICES;
    static constexpr bool by_tma = BY_TMA, may_idle = WARPS_ACROSS == 2 && SLICES == 1;
    static constexpr int sequence = SEQUENCE;
    static constexpr bool halves = SLICES == 1 && SEQUENCE == 1; // k is halved where it is long
    // Of k: what the splits are counted in, a stage of the tile that gives the bits.
    static constexpr int unit = SEQUENCE > 1 ? 8 * SEQUENCE : DEPTH;
    // In shared memory a slice's sums have a gap after every four rows: of the eight threads that
    // store 16 bytes each at a time, those in other rows than the first reach other banks.
    static constexpr int gap = BY_TMA ? 0 : LANES_DOWN == 8 ? 8 : 16;
    static constexpr int slice_sums = rows * columns + rows / 4 * gap;
    static constexpr int sum_bytes = SLICES * slice_sums * 4; // of all slices' sums
    static __device__ __forceinline__ int sums_of_row(int row) {
        return row * columns + row / 4 * gap;
    }
    static_assert(slice_depth % 2 == 0 && slice_depth >= 4 && threads * 4 % columns == 0);
    static_assert(SEQUENCE == 1 || (SLICES == 1 && DEPTH % 8 == 0));
};

struct FfmaProduct {
    const float *a, *b;
    Destination c;
    int64_t lda, ldb, a_item, b_item;
    Jumps jumps;
    int m, n, k;
    int tiles_down, tiles_across; // of c
    int units, last_item, last_k; // along k; the item with other terms than k, or -1; and these
    unsigned splits;              // blocks that share a tile: a cluster
    unsigned splits_in_sequence;  // what is left to one block where there are slices in sequence
    bool batched;                 // more than one item
    bool transposed;              // the tiles are those of c transposed
    bool direct;                  // from registers: they are plain, and c's rows aligned
    int first_half;               // of k, a multiple of 32; 0 where one chain goes all the way
    float *parked;                // its sums: c, or laid out like c with distances of their own
    int64_t parked_stride, parked_item, parked_jump;
};

// ---- Instructions -------------------------------------------------------------------------------

template <int STEP> __device__ __forceinline__ float4 read_shared(const float *from) {
    if constexpr (STEP == 1) return *reinterpret_cast<const float4 *>(from);
    return make_float4(from[0], from[STEP], from[2 * STEP], from[3 * STEP]);
}
// Four elements, STEP apart, that lie at the same places in the shared memory of a block of the
// cluster.
template <int STEP>
__device__ __forceinline__ float4 read_in_cluster(const float *from, unsigned rank) {
    float4 v = {};
#ifdef PVG_SIMULATOR
    const void *there = pvg_sim::in_cluster(from, rank, 12 * STEP + 4);
    v = read_shared<STEP>(static_cast<const float *>(there));
#elif PVG_TARGET >= 900
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(shared_address(from)), "r"(rank));
    if constexpr (STEP == 1)
        asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                     : "r"(there));
    else
        asm volatile("ld.shared::cluster.f32 %0, [%4];\n"
                     "ld.shared::cluster.f32 %1, [%4 + %5];\n"
                     "ld.shared::cluster.f32 %2, [%4 + 2 * %5];\n"
                     "ld.shared::cluster.f32 %3, [%4 + 3 * %5];\n"
                     : "=&f"(v.x), "=&f"(v.y), "=&f"(v.z), "=&f"(v.w)
                     : "r"(there), "n"(STEP * 4));
#endif
    return v;
}
__device__ __forceinline__ float4 sum_of(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// ---- Which part of the product ------------------------------------------------------------------

// What a block computes: a tile of an item of c, over its share of k.
struct FfmaPlace {
    int64_t item;
    int row, column;   // of the tile's first element
    int rows, columns; // left in the matrix from there, perhaps more than a tile has
    int k, terms;      // the first of k, and how many
    unsigned split;    // rank in the cluster
};

__device__ __forceinline__ const float *a_of(const FfmaProduct &p, const FfmaPlace &at) {
    return p.a + begin_of_item(at.item, p.a_item, p.jumps.inner, p.jumps.a);
}
__device__ __forceinline__ const float *b_of(const FfmaProduct &p, const FfmaPlace &at) {
    return p.b + begin_of_item(at.item, p.b_item, p.jumps.inner, p.jumps.b);
}
__device__ __forceinline__ int64_t begin_of_c(const FfmaProduct &p, const FfmaPlace &at) {
    return begin_of_item(at.item, p.c.item_stride, p.jumps.inner, p.jumps.c);
}
__device__ __forceinline__ float *parked_of(const FfmaProduct &p, const FfmaPlace &at) {
    return p.parked + begin_of_item(at.item, p.parked_item, p.jumps.inner, p.parked_jump);
}

// Where a split begins, in units of k.
__device__ __forceinline__ int first_unit(const FfmaProduct &p, unsigned split, unsigned splits) {
    return static_cast<int>(p.units * split / splits);
}

template <class Tile> __device__ __forceinline__ FfmaPlace place_of_block(const FfmaProduct &p,
                                                                          unsigned tile) {
    FfmaPlace at;
    at.k = 0, at.terms = p.k, at.split = 0;
    if (p.splits > 1) {
        at.split = tile % p.splits, tile /= p.splits;
        const int first = first_unit(p, at.split, p.splits);
        const int last = first_unit(p, at.split + 1, p.splits);
        at.k = first * Tile::depth;
        at.terms = at.split + 1 == p.splits ? p.k - at.k : (last - first) * Tile::depth;
    }
    at.item = 0;
    if (p.batched) {
        unsigned tiles = p.tiles_down * p.tiles_across;
        at.item = tile / tiles, tile %= tiles;
        if (Tile::slices == 4 && static_cast<int>(at.item) == p.last_item) at.terms = p.last_k;
    }
    int row, column;
    place_tile(static_cast<int>(tile), p.tiles_down, p.tiles_across, &row, &column);
    at.row = row * Tile::rows, at.column = column * Tile::columns;
    at.rows = p.m - at.row, at.columns = p.n - at.column;
    return at;
}

// A thread's microtile lies in groups of 4 x 4 elements, a warp's width or height apart. Of the
// threads of a warp neighbours share addresses, one bit of the lane for each operand: what lanes x
// and x ^ 1, or x and x ^ 2, read at the same address costs half as much. (The kernel of
// ffma_tma.cu is faster with lanes in plain order, all the same.)
template <class Tile> struct FfmaMicrotile {
    int slice, row, column; // of the first element in the tile

    __device__ __forceinline__ explicit FfmaMicrotile(unsigned thread) {
        const int lane = thread % 32, warp = thread / 32 % Tile::warps;
        slice = thread / 32 / Tile::warps;
        const int of_eight = Tile::by_tma ? lane % 8 : lane / 2 % 8;
        const int of_four = Tile::by_tma ? lane / 8 : lane % 2 + lane / 16 * 2;
        const bool tall = Tile::lanes_down == 8;
        static_assert(Tile::lanes_down == 8 || Tile::lanes_down == 4);
        row = warp / Tile::warps_across * Tile::warp_rows + (tall ? of_eight : of_four) * 4;
        column = warp % Tile::warps_across * Tile::warp_columns + (tall ? of_four : of_eight) * 4;
    }
    static __device__ __forceinline__ int row_step(int i) {
        return i / 4 * 4 * Tile::lanes_down + i % 4;
    }
    static __device__ __forceinline__ int column_step(int j) {
        return j / 4 * 4 * Tile::lanes_across;
    }
};

// ---- The sums -----------------------------------------------------------------------------------

template <class Tile> using FfmaSums = float[Tile::micro_rows][Tile::micro_columns];

// The elements of a and b that a thread multiplies with each other, for two successive k.
template <class Tile> struct FfmaFragments {
    float a[2][Tile::micro_rows] = {}, b[2][Tile::micro_columns] = {};

    template <class Parts>
    __device__ __forceinline__ void read(int which, uint32_t from_a, uint32_t from_b, int k) {
#pragma unroll
        for (int i = 0; i < Tile::micro_rows; i += 4)
            read_four(from_a + (k * Parts::LoaderA::pitch + i * Tile::lanes_down) * 4,
                      a[which] + i);
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j += 4)
            read_four(from_b + (k * Parts::LoaderB::pitch + j * Tile::lanes_across) * 4,
                      b[which] + j);
    }
    // Row by row, or by TMA column by column, which was measured as faster there; to and fro, so
    // that successive multiply-adds share an operand. IS_FIRST: the sums begin with these products.
    template <bool IS_FIRST = false>
    __device__ __forceinline__ void multiply(int which, FfmaSums<Tile> &sum) const {
        constexpr int outer = Tile::by_tma ? Tile::micro_columns : Tile::micro_rows;
        constexpr int inner = Tile::by_tma ? Tile::micro_rows : Tile::micro_columns;
#pragma unroll
        for (int x = 0; x < outer; x++)
#pragma unroll
            for (int step = 0; step < inner; step++) {
                const int y = x % 2 ? inner - 1 - step : step;
                const int i = Tile::by_tma ? y : x, j = Tile::by_tma ? x : y;
                const float of_a = a[which][i], of_b = b[which][j];
                sum[i][j] = IS_FIRST ? of_a * of_b : fmaf(of_a, of_b, sum[i][j]);
            }
    }
};

// ---- The epilogue -------------------------------------------------------------------------------

// Four neighbours, 16 bytes, if they exist; without branches, for the middle of a loop: where
// threads might part ways the compiler computes in every thread what else it computes once a warp.
__device__ __forceinline__ void store_four_predicated(float *to, const float (&v)[4], bool exists) {
#ifdef PVG_SIMULATOR
    if (exists) *reinterpret_cast<float4 *>(to) = make_float4(v[0], v[1], v[2], v[3]);
#else
    asm volatile("{\n.reg .pred exists;\n"
                 "setp.ne.s32 exists, %5, 0;\n"
                 "@exists st.global.v4.f32 [%0], {%1, %2, %3, %4};\n}\n" ::"l"(to),
                 "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "r"(int(exists))
                 : "memory");
#endif
}
__device__ __forceinline__ bool rows_allow_four(const void *first, int64_t stride) {
    return reinterpret_cast<uintptr_t>(first) % 16 == 0 && stride % 4 == 0;
}

// Where the microtile lies in an item's matrix, which is as large as c and whose rows are aligned,
// with room for a multiple of four elements: take(i, j, address, exists) for every four elements of
// so many of its rows.
template <class Tile, class Take>
__device__ __forceinline__ void visit(float *matrix, int64_t stride, const FfmaPlace &at,
                                      const FfmaMicrotile<Tile> &thread, int first, int rows,
                                      const Take &take) {
    matrix += at.row * stride + at.column;
#pragma unroll
    for (int i = first; i < first + rows; i++) {
        const int row = thread.row + thread.row_step(i);
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j += 4) {
            const int column = thread.column + thread.column_step(j);
            take(i, j, matrix + row * stride + column, row < at.rows && column < at.columns);
        }
    }
}

// One slice and nothing to do but store 16 bytes at a time: from registers.
template <class Tile>
__device__ __forceinline__ void store_sums(float *matrix, int64_t stride, const FfmaPlace &at,
                                           const FfmaMicrotile<Tile> &thread,
                                           const FfmaSums<Tile> &sum) {
    visit(matrix, stride, at, thread, 0, Tile::micro_rows,
          [&](int i, int j, float *to, bool exists) {
              const float four[4] = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
              store_four_predicated(to, four, exists);
          });
}

// The same to c, whose sums are finished: they are plain.
template <class Tile>
__device__ __forceinline__ void store_plain(const FfmaProduct &p, const FfmaPlace &at,
                                            const FfmaMicrotile<Tile> &thread,
                                            const FfmaSums<Tile> &sum) {
    store_sums(static_cast<float *>(p.c.data) + begin_of_c(p, at), p.c.row_stride, at, thread, sum);
}

// The first half of k is done: its sums are parked until add_parked, and the next chain begins.
// From new copies of the indices: what depends on the others the compiler would compute before the
// loop over k, and keep in registers that the loop needs.
template <class Tile>
__device__ __forceinline__ void park_sums(const FfmaProduct &p, FfmaSums<Tile> &sum) {
    const unsigned block = block_anew(), thread = thread_anew();
    const FfmaPlace at = place_of_block<Tile>(p, block);
    store_sums(parked_of(p, at), p.parked_stride, at, FfmaMicrotile<Tile>(thread), sum);
#pragma unroll
    for (int i = 0; i < Tile::micro_rows; i++)
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j++) sum[i][j] = 0;
}

// sum = what is parked, plus sum, four rows at a time, which fetch(first row, sums) reads. Where
// nothing is parked -0 is added, which changes no number: a branch around the additions would cost
// the loop over k some conflicts between the banks of the registers.
template <class Tile, class Fetch>
__device__ __forceinline__ void add_parked(const FfmaProduct &p, FfmaSums<Tile> &sum,
                                           const Fetch &fetch) {
    constexpr int rows = 4;
#pragma unroll
    for (int first = 0; first < Tile::micro_rows; first += rows) {
        float parked[rows][Tile::micro_columns];
#pragma unroll
        for (int i = 0; i < rows; i++)
#pragma unroll
            for (int j = 0; j < Tile::micro_columns; j++) parked[i][j] = -0.0f;
        if (p.first_half) fetch(first, parked);
#pragma unroll
        for (int i = 0; i < rows; i++)
#pragma unroll
            for (int j = 0; j < Tile::micro_columns; j++)
                sum[first + i][j] = parked[i][j] + sum[first + i][j];
    }
}
// From where they wait, loads of all four rows on their way at once.
template <class Tile>
__device__ __forceinline__ void add_parked(const FfmaProduct &p, const FfmaPlace &at,
                                           const FfmaMicrotile<Tile> &thread, FfmaSums<Tile> &sum) {
    float *matrix = parked_of(p, at);
    add_parked<Tile>(p, sum, [&](int first, auto &parked) {
        visit(matrix, p.parked_stride, at, thread, first, 4,
              [&](int i, int j, const float *from, bool exists) {
                  if (!exists) return;
                  const float4 four = *reinterpret_cast<const float4 *>(from);
                  float *to = parked[i - first] + j;
                  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
              });
    });
}

// All threads that multiply.
template <class Tile> __device__ __forceinline__ void sync_tile() {
    if constexpr (Tile::by_tma)
        sync_threads<Tile::threads>(1);
    else
        __syncthreads();
}

// Puts the sums of all slices into shared memory, as [slice][row][column], with gaps.
template <class Tile>
__device__ __forceinline__ void share_sums(float *shared, const FfmaMicrotile<Tile> &thread,
                                           const FfmaSums<Tile> &sum) {
    sync_tile<Tile>(); // the last stage has been read
    float *first = shared + thread.slice * Tile::slice_sums + Tile::sums_of_row(thread.row) +
                   thread.column; // rows of microtiles begin at multiples of four
#pragma unroll
    for (int i = 0; i < Tile::micro_rows; i++)
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j += 4)
            *reinterpret_cast<float4 *>(first + Tile::sums_of_row(thread.row_step(i)) +
                                        thread.column_step(j)) =
                make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}

// Four elements, STEP apart, summed over the slices of all blocks of the cluster, in order.
template <class Tile, int STEP>
__device__ __forceinline__ float4 sum_slices(const float *shared, int element, unsigned splits) {
    constexpr int size = Tile::slice_sums;
    float4 total = make_float4(0, 0, 0, 0);
    if (Tile::slices > 1 && splits > 1) {
        for (unsigned split = 0; has_clusters && split < splits; split++) {
            float4 part[Tile::slices];
#pragma unroll
            for (int s = 0; s < Tile::slices; s++)
                part[s] = read_in_cluster<STEP>(shared + s * size + element, split);
#pragma unroll
            for (int s = 0; s < Tile::slices; s++) total = sum_of(total, part[s]);
        }
    } else {
#pragma unroll
        for (int s = 0; s < Tile::slices; s++)
            total = sum_of(total, read_shared<STEP>(shared + s * size + element));
    }
    return total;
}

// The block's share of the finished tile: sums, bias, activation. A thread stays in its four
// columns: neighbours, or if rows of c begin anywhere, a quarter of the tile apart: then a store of
// neighbouring lanes fills all sectors but the first and the last of a row, while stores of every
// fourth element would leave parts in all of them.
template <class Tile>
__device__ __forceinline__ void finish_tile(const FfmaProduct &p, const FfmaPlace &at,
                                            float *shared) {
    constexpr int quads = Tile::columns / 4;
    const int first = at.split * Tile::threads + threadIdx.x, quad = first % quads;
    const Destination c =
        p.c.moved(begin_of_c(p, at) + at.row * p.c.row_stride + at.column, sizeof(float));
    const bool aligned = rows_allow_four(c.data, c.row_stride) &&
                         (!c.preactivation || rows_allow_four(c.preactivation, c.row_stride));
    const int column = aligned ? quad * 4 : quad;
    RowPart<float, 4> four;
    four.count = at.columns - column, four.step = aligned ? 1 : quads, four.packed = aligned;
    load_bias<float>(c, int64_t(at.column) + column, four.count, four.step, four.bias);
#pragma unroll 1
    for (int row = first / quads; row < Tile::rows; row += p.splits * (Tile::threads / quads)) {
        if (row >= at.rows || four.count <= 0) break;
        const int element = Tile::sums_of_row(row) + column;
        const float4 total = aligned ? sum_slices<Tile, 1>(shared, element, p.splits)
                                     : sum_slices<Tile, quads>(shared, element, p.splits);
        four.sums[0] = total.x, four.sums[1] = total.y;
        four.sums[2] = total.z, four.sums[3] = total.w;
        four.at = row * c.row_stride + column;
        finish(c, four);
    }
}

// The same of c transposed. A thread has four rows of a column of the tile; a warp eight columns
// and four times four rows, in different banks, or the same ones twice, thanks to the gaps.
template <class Tile>
__device__ __forceinline__ void finish_transposed(const FfmaProduct &p, const FfmaPlace &at,
                                                  const float *shared) {
    constexpr int down = Tile::rows / 16, parts = down * (Tile::columns / 8);
    constexpr int warps = Tile::threads / 32;
    const Destination c =
        p.c.moved(begin_of_c(p, at) + at.column * p.c.row_stride + at.row, sizeof(float));
    const bool aligned = rows_allow_four(c.data, c.row_stride) &&
                         (!c.preactivation || rows_allow_four(c.preactivation, c.row_stride));
    const int lane = static_cast<int>(threadIdx.x) % 32;
    RowPart<float, 4> four = {{}, {}, 0, 0, 1, aligned};
#pragma unroll 1
    for (int part = at.split * warps + threadIdx.x / 32; part < parts; part += p.splits * warps) {
        const int row = part % down * 16 + lane / 8 * 4, column = part / down * 8 + lane % 8;
        if (row >= at.rows || column >= at.columns) continue;
        four.count = at.rows - row;
        load_bias<float>(c, int64_t(at.row) + row, four.count, four.step, four.bias);
        const int element = Tile::sums_of_row(row) + column;
        const float4 total = sum_slices<Tile, Tile::columns>(shared, element, p.splits);
        four.sums[0] = total.x, four.sums[1] = total.y;
        four.sums[2] = total.z, four.sums[3] = total.w;
        four.at = column * c.row_stride + row;
        finish(c, four);
    }
}

// ---- On the host --------------------------------------------------------------------------------

// The planner knows the tile as it is.
template <class Tile> constexpr bool is_size(const FfmaSize &size) {
    return size.rows == Tile::rows && size.columns == Tile::columns &&
           size.slices == Tile::slices && size.sequence == Tile::sequence &&
           size.blocks == Tile::blocks && size.depth == Tile::depth &&
           size.stages == Tile::stages && size.threads == Tile::threads && size.gap == Tile::gap &&
           size.halves() == Tile::halves && size.sum_bytes() == Tile::sum_bytes;
}

template <class Tile> FfmaProduct describe_ffma(const Gemm &g, const Plan &plan) {
    FfmaProduct p{};
    p.a = static_cast<const float *>(g.a), p.b = static_cast<const float *>(g.b);
    p.c = destination_of(g), p.batched = g.items > 1;
    p.direct = plan.direct, p.transposed = plan.transposed;
    if (Tile::halves) p.first_half = static_cast<int>(first_half(g.k));
    p.m = g.m, p.n = g.n, p.k = g.k;
    p.splits = static_cast<unsigned>(plan.splits);
    p.splits_in_sequence = static_cast<unsigned>(plan.splits_in_sequence);
    p.lda = g.lda, p.ldb = g.ldb, p.a_item = g.a_item, p.b_item = g.b_item;
    p.jumps = jumps_of(g);
    p.tiles_down = static_cast<int>(tiles(g.m, Tile::rows));
    p.tiles_across = static_cast<int>(tiles(g.n, Tile::columns));
    p.units = static_cast<int>(tiles(g.k, Tile::unit));
    p.last_item = g.last_k ? g.items - 1 : -1, p.last_k = static_cast<int>(g.last_k);
    return p;
}

// start(part, p) for so many items, or rows of one, at a time as the plan says. Operands are laid
// out as the kernel wants them.
template <class Tile, class Start>
int launch_in_parts(Call &call, const Gemm &g, const Plan &plan, const Start &start) {
    Workspace parking; // for the sums of k's first half, of one part after the other
    if (plan.workspace) PVG_PASS(parking.open(call, static_cast<size_t>(plan.workspace)));
    const int64_t items = plan.items, rows = plan.transposed ? g.m : plan.part_rows;
    for (int64_t item = 0; item < g.items; item += items)
        for (int64_t row = 0; row < g.m; row += rows) {
            Gemm part = moved(g, item * g.a_item + row * (g.a_along_k ? g.lda : 1), item * g.b_item,
                              item * g.c_item + row * g.ldc);
            part.items = static_cast<int>(g.items - item < items ? g.items - item : items);
            part.m = static_cast<int>(g.m - row < rows ? g.m - row : rows);
            if (item + items < g.items) part.last_k = 0; // the last one is yet to come
            FfmaProduct p = describe_ffma<Tile>(part, plan);
            p.parked = static_cast<float *>(p.c.data);
            p.parked_stride = p.c.row_stride, p.parked_item = p.c.item_stride;
            p.parked_jump = p.jumps.c;
            if (plan.workspace)
                p.parked = parking.as<float>(), p.parked_stride = parked_stride(g.n),
                p.parked_item = rows * p.parked_stride, p.parked_jump = 0;
            PVG_PASS(start(part, p));
        }
    return PVG_OK;
}

} // namespace

} // namespace pvg::matmul
