// What the kernels of ffma.cuh and ffma_tma.cu share: float32 products on the CUDA cores, one fused
// multiply-add (FFMA) a term.
//
// A block computes a tile of c and walks along k in stages, which lie in shared memory as
// [k][row of a] and [k][column of b]. A thread owns a microtile of 8 x 8 or 8 x 16 elements of c:
// each value that it reads from shared memory is used 8 or 16 times, which keeps the multipliers
// busy.
//
// Small products have too few microtiles for that, so several warps share one: each multiplies its
// slice of every stage, and the slices are summed at the end ("sliced k"). Products that still
// leave most of the card idle give k to a cluster of blocks, which read each other's sums from
// shared memory ("split k"). Both depend on m, n, k and the tile alone, and sums are added in a
// fixed order. Where many such products come at once there are enough tiles, and a large tile whose
// threads compute the slices one after another gives the same bits ("slices in sequence").
//
// Tiles without slices compute an element as one chain of multiply-adds in increasing k, or where k
// is long as one for each half of it (first_half in product.cuh): in the middle of its loop a
// thread parks its sums in c, as it has no registers left for them, and in the end it adds them to
// those of the second half.
#pragma once
#include "kernels/activation.cuh"
#include "kernels/matmul/hopper.cuh"
#include "kernels/matmul/product.cuh"
#include "kernels/matmul/schedule.cuh"

namespace pvg::matmul {

namespace {

// WARPS_DOWN x WARPS_ACROSS warps, times SLICES of k; a warp is LANES_DOWN x 32 / LANES_DOWN
// threads with microtiles of MICRO_ROWS x MICRO_COLUMNS. STAGES of DEPTH of k. BLOCKS fit a
// multiprocessor. SEQUENCE is the number of slices that a thread computes one after another.
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
    static constexpr bool by_tma = BY_TMA;
    static constexpr int sequence = SEQUENCE;
    static constexpr bool halves = SLICES == 1 && SEQUENCE == 1; // k is halved where it is long
    // Of k: what the splits are counted in, a stage of the tile that gives the bits.
    static constexpr int unit = SEQUENCE > 1 ? 8 * SEQUENCE : DEPTH;
    static constexpr int sum_bytes = SLICES * rows * columns * 4; // of all slices' sums
    static_assert(slice_depth % 2 == 0 && slice_depth >= 4 && threads * 4 % columns == 0);
    static_assert(SEQUENCE == 1 || (SLICES == 1 && DEPTH % 8 == 0));
};

struct FfmaProduct {
    const float *a, *b, *bias;
    float *c, *preactivation;
    int64_t lda, ldb, ldc, a_item, b_item, c_item, bias_stride;
    int m, n, k, activation;
    int tiles_down, tiles_across; // of c
    int units;                    // along k
    unsigned splits;              // blocks that share a tile: a cluster
    unsigned splits_in_sequence;  // what is left to one block where there are slices in sequence
    bool batched, plain;          // more than one item; sums are stored as they are
    int first_half;               // of k, a multiple of 32; 0 where one chain goes all the way
};

// ---- Instructions -------------------------------------------------------------------------------

// Four elements of shared memory, volatile: the compiler would load them later than is good.
__device__ __forceinline__ void read_four(uint32_t from, float *to) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from));
}
#if __CUDA_ARCH__ >= 900
// Four elements that lie at the same place in the shared memory of a block of the cluster.
__device__ __forceinline__ float4 read_in_cluster(const float *from, unsigned rank) {
    uint32_t there;
    float4 v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(hopper::shared_address(from)), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(there));
    return v;
}
#endif
__device__ __forceinline__ float4 sum_of(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// ---- Which part of the product ------------------------------------------------------------------

// What a block computes: a tile of an item of c, over its share of k.
struct Place {
    int64_t item;
    int row, column;   // of the tile's first element
    int rows, columns; // left in the matrix from there, perhaps more than a tile has
    int k, terms;      // the first of k, and how many
    unsigned split;    // rank in the cluster
};

// Where a split begins, in units of k.
__device__ __forceinline__ int first_unit(const FfmaProduct &p, unsigned split, unsigned splits) {
    return static_cast<int>(p.units * split / splits);
}

template <class Tile> __device__ __forceinline__ Place place_of_block(const FfmaProduct &p,
                                                                      unsigned tile) {
    Place at;
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
template <class Tile> struct Position {
    int slice, row, column; // of the first element in the tile

    __device__ __forceinline__ explicit Position(unsigned thread) {
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

template <class Tile> using Sums = float[Tile::micro_rows][Tile::micro_columns];

// The elements of a and b that a thread multiplies with each other, for two successive k.
template <class Tile> struct Fragments {
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
    __device__ __forceinline__ void multiply(int which, Sums<Tile> &sum) const {
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

// The first `count` of four elements of a row.
__device__ __forceinline__ void store_four(float *to, const float (&v)[4], int count,
                                           bool aligned) {
    if (aligned && count >= 4) {
        *reinterpret_cast<float4 *>(to) = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (e < count) to[e] = v[e];
    }
}
// The same without branches, for the middle of a loop: where threads might part ways the compiler
// computes in every thread what else it computes once a warp.
__device__ __forceinline__ void store_four_predicated(float *to, const float (&v)[4], int count,
                                                      bool aligned) {
    const int all = aligned && count >= 4;
    asm volatile(
        "{\n.reg .pred all, one;\n"
        "setp.ne.s32 all, %5, 0;\n"
        "@all st.global.v4.f32 [%0], {%1, %2, %3, %4};\n"
        "setp.gt.and.s32 one, %6, 0, !all;\n@one st.global.f32 [%0], %1;\n"
        "setp.gt.and.s32 one, %6, 1, !all;\n@one st.global.f32 [%0 + 4], %2;\n"
        "setp.gt.and.s32 one, %6, 2, !all;\n@one st.global.f32 [%0 + 8], %3;\n"
        "setp.gt.and.s32 one, %6, 3, !all;\n@one st.global.f32 [%0 + 12], %4;\n}\n" ::"l"(to),
        "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "r"(all), "r"(count)
        : "memory");
}
__device__ __forceinline__ void load_four(const float *from, float *v, int count, bool aligned) {
    if (aligned && count >= 4) {
        const float4 four = *reinterpret_cast<const float4 *>(from);
        v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (e < count) v[e] = from[e];
    }
}
__device__ __forceinline__ bool rows_allow_four(const float *first, int64_t stride) {
    return reinterpret_cast<uintptr_t>(first) % 16 == 0 && stride % 4 == 0;
}

// Where the microtile lies in c: take(i, j, address, count, aligned) for every four elements of so
// many of its rows. In tiles that lie wholly in the matrix it compiles to the accesses and little
// else.
template <class Tile, bool IS_WHOLE, class Take>
__device__ __forceinline__ void visit_rows(const FfmaProduct &p, const Place &at,
                                           const Position<Tile> &thread, int first, int rows,
                                           bool aligned, const Take &take) {
    float *c = p.c + at.item * p.c_item + at.row * p.ldc + at.column;
#pragma unroll
    for (int i = first; i < first + rows; i++) {
        const int row = thread.row + thread.row_step(i);
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j += 4) {
            const int column = thread.column + thread.column_step(j);
            const int left = row < at.rows ? at.columns - column : 0;
            take(i, j, c + row * p.ldc + column, IS_WHOLE ? 4 : left, IS_WHOLE || aligned);
        }
    }
}
template <class Tile, class Take>
__device__ __forceinline__ void visit(const FfmaProduct &p, const Place &at,
                                      const Position<Tile> &thread, int first, int rows,
                                      const Take &take) {
    const float *c = p.c + at.item * p.c_item + at.row * p.ldc + at.column;
    const bool aligned = rows_allow_four(c, p.ldc);
    if (aligned && at.rows >= Tile::rows && at.columns >= Tile::columns)
        visit_rows<Tile, true>(p, at, thread, first, rows, true, take);
    else
        visit_rows<Tile, false>(p, at, thread, first, rows, aligned, take);
}

// One slice and nothing to do but store: from registers.
template <class Tile>
__device__ __forceinline__ void store_sums(const FfmaProduct &p, const Place &at,
                                           const Position<Tile> &thread, const Sums<Tile> &sum) {
    visit(p, at, thread, 0, Tile::micro_rows,
          [&](int i, int j, float *to, int count, bool aligned) {
              const float four[4] = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
              store_four_predicated(to, four, count, aligned);
          });
}

// The first half of k is done: its sums go to c, until add_parked, and the next chain begins. From
// new copies of the indices: what depends on the others the compiler would compute before the loop
// over k, and keep in registers that the loop needs.
template <class Tile>
__device__ __forceinline__ void park_sums(const FfmaProduct &p, Sums<Tile> &sum) {
    unsigned block, thread;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    store_sums(p, place_of_block<Tile>(p, block), Position<Tile>(thread), sum);
#pragma unroll
    for (int i = 0; i < Tile::micro_rows; i++)
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j++) sum[i][j] = 0;
}

// sum = what is parked in c, plus sum, four rows at a time. They are read from c, loads of all four
// on their way at once, or where `is_fetched` by fetch(first row, sums). Where nothing is parked -0
// is added, which changes no number: a branch around the additions would cost the loop over k some
// conflicts between the banks of the registers.
template <class Tile, class Fetch>
__device__ __forceinline__ void add_parked(const FfmaProduct &p, const Place &at,
                                           const Position<Tile> &thread, Sums<Tile> &sum,
                                           bool is_fetched, const Fetch &fetch) {
    constexpr int rows = 4;
#pragma unroll
    for (int first = 0; first < Tile::micro_rows; first += rows) {
        float parked[rows][Tile::micro_columns];
#pragma unroll
        for (int i = 0; i < rows; i++)
#pragma unroll
            for (int j = 0; j < Tile::micro_columns; j++) parked[i][j] = -0.0f;
        if (is_fetched)
            fetch(first, parked);
        else if (p.first_half)
            visit(p, at, thread, first, rows,
                  [&](int i, int j, const float *from, int count, bool aligned) {
                      load_four(from, parked[i - first] + j, count, aligned);
                  });
#pragma unroll
        for (int i = 0; i < rows; i++)
#pragma unroll
            for (int j = 0; j < Tile::micro_columns; j++)
                sum[first + i][j] = parked[i][j] + sum[first + i][j];
    }
}
template <class Tile>
__device__ __forceinline__ void add_parked(const FfmaProduct &p, const Place &at,
                                           const Position<Tile> &thread, Sums<Tile> &sum) {
    add_parked(p, at, thread, sum, false, [](int, auto &) {});
}

// All threads that multiply.
template <class Tile> __device__ __forceinline__ void sync_tile() {
    if constexpr (Tile::by_tma)
        asm volatile("bar.sync 1, %0;" ::"n"(Tile::threads) : "memory");
    else
        __syncthreads();
}

// Puts the sums of all slices into shared memory, as [slice][row][column].
template <class Tile>
__device__ __forceinline__ void share_sums(float *shared, const Position<Tile> &thread,
                                           const Sums<Tile> &sum) {
    sync_tile<Tile>(); // the last stage has been read
    float *first =
        shared + (thread.slice * Tile::rows + thread.row) * Tile::columns + thread.column;
#pragma unroll
    for (int i = 0; i < Tile::micro_rows; i++)
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j += 4)
            *reinterpret_cast<float4 *>(first + thread.row_step(i) * Tile::columns +
                                        thread.column_step(j)) =
                make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}

// Four elements summed over the slices of all blocks of the cluster, in order.
template <class Tile>
__device__ __forceinline__ float4 sum_slices(const float *shared, int element, unsigned splits) {
    constexpr int size = Tile::rows * Tile::columns;
    float4 total = make_float4(0, 0, 0, 0);
    if (Tile::slices > 1 && splits > 1) {
#if __CUDA_ARCH__ >= 900
        for (unsigned split = 0; split < splits; split++) {
            float4 part[Tile::slices];
#pragma unroll
            for (int s = 0; s < Tile::slices; s++)
                part[s] = read_in_cluster(shared + s * size + element, split);
#pragma unroll
            for (int s = 0; s < Tile::slices; s++) total = sum_of(total, part[s]);
        }
#endif
    } else {
#pragma unroll
        for (int s = 0; s < Tile::slices; s++)
            total = sum_of(total, *reinterpret_cast<const float4 *>(shared + s * size + element));
    }
    return total;
}

// The block's share of the finished tile: sums, bias, activation. A thread stays in its columns.
template <class Tile>
__device__ __forceinline__ void finish_tile(const FfmaProduct &p, const Place &at, float *shared) {
    const int first = (at.split * Tile::threads + threadIdx.x) * 4, column = first % Tile::columns;
    const int count = at.columns - column;
    const int64_t corner = at.item * p.c_item + at.row * p.ldc + at.column + column;
    float *c = p.c + corner, *before = p.preactivation ? p.preactivation + corner : nullptr;
    const bool aligned = rows_allow_four(c, p.ldc) && (!before || rows_allow_four(before, p.ldc));
    float bias[4] = {};
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (p.bias && e < count)
            bias[e] = p.bias[(int64_t(at.column) + column + e) * p.bias_stride];
#pragma unroll 1
    for (int element = first; element < Tile::rows * Tile::columns;
         element += p.splits * Tile::threads * 4) {
        const int row = element / Tile::columns;
        if (row >= at.rows || count <= 0) break;
        const float4 total = sum_slices<Tile>(shared, element, p.splits);
        float four[4] = {total.x, total.y, total.z, total.w};
        if (!p.plain) {
            if (p.bias)
#pragma unroll
                for (int e = 0; e < 4; e++) four[e] += bias[e];
            if (before) store_four(before + row * p.ldc, four, count, aligned);
#pragma unroll
            for (int e = 0; e < 4; e++) four[e] = activate(p.activation, four[e]);
        }
        store_four(c + row * p.ldc, four, count, aligned);
    }
}

// ---- On the host --------------------------------------------------------------------------------

template <class Tile> FfmaProduct describe_ffma(const Gemm &g) {
    FfmaProduct p{};
    p.a = static_cast<const float *>(g.a), p.b = static_cast<const float *>(g.b);
    p.c = static_cast<float *>(g.c);
    p.bias = static_cast<const float *>(g.epilogue.bias);
    p.preactivation = static_cast<float *>(g.epilogue.preactivation);
    p.bias_stride = g.epilogue.bias_stride, p.activation = g.epilogue.activation;
    p.plain = g.epilogue.is_plain(), p.batched = g.items > 1;
    if (Tile::halves) p.first_half = static_cast<int>(first_half(g.k));
    p.m = g.m, p.n = g.n, p.k = g.k, p.splits = p.splits_in_sequence = 1;
    p.lda = g.lda, p.ldb = g.ldb, p.ldc = g.ldc;
    p.a_item = g.a_item, p.b_item = g.b_item, p.c_item = g.c_item;
    p.tiles_down = static_cast<int>(tiles(g.m, Tile::rows));
    p.tiles_across = static_cast<int>(tiles(g.n, Tile::columns));
    p.units = static_cast<int>(tiles(g.k, Tile::unit));
    return p;
}

} // namespace

} // namespace pvg::matmul
