// float64 products by the tensor cores (DMMA), compute capability 8.0 and later: the kernel that
// dmma.cu launches.
//
// A block of eight warps computes a tile of 128 x 128 of c and walks along k in stages of 16: while
// it multiplies one, the next three are on their way to shared memory by cp.async. A warp owns
// 64 x 32 of the tile. It multiplies four of k at a time, and reads the fragments of the next four
// before it multiplies these; the last four of a stage are multiplied behind the barrier that opens
// the next stage, to hide the barrier and the first reads. Small matrices have tiles of 64 x 64,
// of four warps with 32 x 32 each, several blocks a multiprocessor; where blocks are few, up to six
// stages of theirs are on their way, as operands that are read once come from memory. Between them
// there are tiles of 96 x 96 and 96 x 128, of eight warps: every sum is the same chain. The smaller
// a tile, the more of its time it waits for the second-level cache, which gives a multiprocessor
// some 25 bytes a clock cycle: 64 x 64 takes 1.4 times what its products would.
//
// With few tiles most of the card would be idle. Then a cluster of blocks shares a tile, each with
// a part of k ("split k"), and every block sums its share of the tile over the shared memory of all
// of them, in their order. Where a batch brings enough tiles, a block with a small one computes all
// parts, one after another.
#pragma once
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/sm80/mma.cuh"
#include "kernels/matmul/sm80/sums.cuh"

namespace pvg::matmul {

namespace {

constexpr int depth = 16; // of a stage
constexpr int pad = 4;

// A block's tile of c, and a warp's part of it: instructions of 16 rows and 8 columns, which the
// warps take in turns, so that each has as many of those that are in c at all.
template <int ROWS, int COLUMNS, bool IN_SEQUENCE = false> struct DmmaTile {
    static constexpr int rows = ROWS, columns = COLUMNS;
    static constexpr int threads = dmma_threads(ROWS), stages = dmma_stages(ROWS); // at least
    static constexpr int warps_down = 2, warps_across = threads / 64;
    static constexpr int warp_rows = ROWS / warps_down, warp_columns = COLUMNS / warps_across;
    // That a multiprocessor takes; copies of one element need more registers.
    static constexpr int blocks(int copied) {
        return IN_SEQUENCE
                   ? dmma_sequence_blocks
                   : dmma_blocks(ROWS, COLUMNS) - (ROWS == 32 && COLUMNS == 64 && copied == 1);
    }
    static constexpr int step = ROWS == 128 ? 4 : 8; // of k, in one instruction
    static constexpr int down = warp_rows / 16, across = warp_columns / 8; // instructions
    static constexpr int next_row = warps_down * 16, next_column = warps_across * 8;
    static constexpr int sums_pitch = dmma_sums_pitch(COLUMNS); // against bank conflicts
    static constexpr bool in_sequence = IN_SEQUENCE;            // splits: registers hold two sums
    static constexpr bool skips = ROWS <= 64;                   // what is outside of c
    using Sums = double[down][across][4];
    template <bool ALONG_K, int V>
    using LoaderA = TileLoader<double, ROWS, depth, ALONG_K, V, pad, threads>;
    template <bool ALONG_K, int V>
    using LoaderB = TileLoader<double, COLUMNS, depth, ALONG_K, V, pad, threads>;
    template <bool A_ALONG_K, bool B_ALONG_K>
    static constexpr int stage_bytes = LoaderA<A_ALONG_K, 1>::bytes + LoaderB<B_ALONG_K, 1>::bytes;
    // Of so many rows (columns) of c from the warp's first one on, the instructions.
    static __device__ __forceinline__ int rows_inside(int left) {
        return (left + next_row - 1) / next_row;
    }
    static __device__ __forceinline__ int columns_inside(int left) {
        return (left + next_column - 1) / next_column;
    }
};

struct DmmaProduct {
    const double *a, *b;
    Destination c;
    int64_t lda, ldb, a_item, b_item;
    Jumps jumps;
    int m, n, k, last_k; // last_k: of the last item, which may be a shorter stretch
    int64_t last_item;
    int tiles_down, tiles_across; // of c
    unsigned splits;              // blocks that share a tile: a cluster
    unsigned splits_in_sequence;  // that one block of a small tile computes one after another
    int stages;                   // in shared memory, of small tiles
    bool aligned;                 // pairs of a row of c may be stored at once
};

// What a block computes: a tile of an item of c, over its part of k.
struct DmmaPlace : TilePlace {
    int k, terms;   // the first of k, and how many
    unsigned split; // rank in the cluster
};

template <class Tile> __device__ __forceinline__ DmmaPlace place_of_block(const DmmaProduct &p) {
    const unsigned split = p.splits > 1 ? blockIdx.x % p.splits : 0;
    DmmaPlace at;
    static_cast<TilePlace &>(at) = place_of_tile<Tile::rows, Tile::columns>(
        p.splits > 1 ? blockIdx.x / p.splits : blockIdx.x, p);
    const int k = at.item == p.last_item ? p.last_k : p.k;
    at.k = 0, at.terms = k;
    if (p.splits > 1) { // stages are less than 2^28: splits are no more than 8
        const unsigned stages = static_cast<unsigned>(k - 1) / depth + 1;
        at.k = static_cast<int>(stages * split / p.splits) * depth;
        const int end = static_cast<int>(stages * (split + 1) / p.splits) * depth;
        at.terms = min(end, k) - at.k;
    }
    at.split = split;
    return at;
}

__device__ __forceinline__ int64_t begin_of_c(const DmmaProduct &p, const DmmaPlace &at) {
    return begin_of_item(at.item, p.c.item_stride, p.jumps.inner, p.jumps.c);
}

// ---- The sums -----------------------------------------------------------------------------------

// A warp's part of the tile: sums[i][j] are those of 16 rows and 8 columns, of which a thread has
// columns 2 (lane % 4) and the one after it of rows lane / 4 and lane / 4 + 8.

__device__ __forceinline__ double read_shared(uint32_t from) {
    double value;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(value) : "r"(from));
    return value;
}

// Of 4 of k: a has rows r and r + 8. Of 8 of k, which is faster as one instruction, behind these
// the same of the next four.
__device__ __forceinline__ void multiply(double (&sum)[4], const double (&a)[2],
                                         const double (&b)[1]) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(a[0]), "d"(a[1]), "d"(b[0]));
#else
#pragma unroll
    for (int half = 0; half < 2; half++)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
                     "{%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(sum[2 * half]), "+d"(sum[2 * half + 1])
                     : "d"(a[half]), "d"(b[0]));
#endif
}
__device__ __forceinline__ void multiply(double (&sum)[4], const double (&a)[4],
                                         const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    for (int k = 0; k < 2; k++) {
        const double rows[2] = {a[2 * k], a[2 * k + 1]}, column[1] = {b[k]};
        multiply(sum, rows, column);
    }
#endif
}

// The elements that a warp multiplies with each other, for two successive steps of k.
template <class Tile, bool A_ALONG_K, bool B_ALONG_K> struct DmmaFragments {
    static constexpr int down = Tile::down, across = Tile::across;
    using LoaderA = typename Tile::template LoaderA<A_ALONG_K, 1>;
    using LoaderB = typename Tile::template LoaderB<B_ALONG_K, 1>;
    static constexpr int fours = Tile::step / 4; // of k
    double a[2][down][2 * fours] = {}, b[2][across][fours] = {};

    // Where the thread's first elements lie in the tiles of a and b, in bytes.
    static __device__ __forceinline__ uint32_t first_a(int row, int lane) {
        row += lane / 4;
        return (A_ALONG_K ? row * LoaderA::pitch + lane % 4 : lane % 4 * LoaderA::pitch + row) * 8;
    }
    static __device__ __forceinline__ uint32_t first_b(int column, int lane) {
        column += lane / 4;
        return (B_ALONG_K ? column * LoaderB::pitch + lane % 4
                          : lane % 4 * LoaderB::pitch + column) *
               8;
    }
    __device__ __forceinline__ void read(int which, uint32_t from_a, uint32_t from_b, int k) {
        constexpr int a_k = A_ALONG_K ? 8 : LoaderA::pitch * 8;
        constexpr int a_row = A_ALONG_K ? LoaderA::pitch * 8 : 8;
        constexpr int b_k = B_ALONG_K ? 8 : LoaderB::pitch * 8;
        constexpr int b_column = B_ALONG_K ? LoaderB::pitch * 8 : 8;
#pragma unroll
        for (int four = 0; four < fours; four++) {
            const uint32_t a_here = from_a + (k + four * 4) * a_k;
            const uint32_t b_here = from_b + (k + four * 4) * b_k;
#pragma unroll
            for (int i = 0; i < down; i++)
#pragma unroll
                for (int half = 0; half < 2; half++)
                    a[which][i][2 * four + half] =
                        read_shared(a_here + (i * Tile::next_row + half * 8) * a_row);
#pragma unroll
            for (int j = 0; j < across; j++)
                b[which][j][four] = read_shared(b_here + j * Tile::next_column * b_column);
        }
    }
    // rows, columns: how many of the warp's instructions are in c.
    __device__ __forceinline__ void multiply_into(typename Tile::Sums &sums, int which, int rows,
                                                  int columns) const {
#pragma unroll
        for (int i = 0; i < Tile::down; i++) {
            if (Tile::skips && i >= rows) break;
#pragma unroll
            for (int j = 0; j < Tile::across; j++)
                if (!Tile::skips || j < columns) multiply(sums[i][j], a[which][i], b[which][j]);
        }
    }
};

template <class Tile>
__device__ __forceinline__ void add_and_clear(typename Tile::Sums &sums,
                                              typename Tile::Sums &total) {
#pragma unroll
    for (int i = 0; i < Tile::down; i++)
#pragma unroll
        for (int j = 0; j < Tile::across; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) total[i][j][e] += sums[i][j][e], sums[i][j][e] = 0;
}

// The oldest of the stages that are on their way has come: one less than there are is.
template <class Tile> __device__ __forceinline__ void wait_for_stage(int stages) {
    constexpr int most = dmma_more_stages[0], more = dmma_more_stages[1];
    if (Tile::skips && stages == most)
        wait_for_copies<most - 2>();
    else if (Tile::skips && stages == more)
        wait_for_copies<more - 2>();
    else
        wait_for_copies<Tile::stages - 2>();
}

// `row` and `column` are those of the warp's part in the tile.
template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V>
__device__ __forceinline__ void multiply_tile(const DmmaProduct &p, const DmmaPlace &at, int row,
                                              int column, uint32_t shared,
                                              typename Tile::Sums &sums) {
    using LoaderA = typename Tile::template LoaderA<A_ALONG_K, V>;
    using LoaderB = typename Tile::template LoaderB<B_ALONG_K, V>;
    constexpr int step = Tile::step;
    const int stages = Tile::skips ? p.stages : Tile::stages;
    using Parts = DmmaFragments<Tile, A_ALONG_K, B_ALONG_K>;
    constexpr int bytes = LoaderA::bytes + LoaderB::bytes;
    LoaderA a(p.a + begin_of_item(at.item, p.a_item, p.jumps.inner, p.jumps.a), p.lda, at.row, at.k,
              at.rows);
    LoaderB b(p.b + begin_of_item(at.item, p.b_item, p.jumps.inner, p.jumps.b), p.ldb, at.column,
              at.k, at.columns);
    int left = at.terms; // of k, from the stage on that is loaded next
    auto load = [&](uint32_t stage) {
        a.load(stage, left);
        b.load(stage + LoaderA::bytes, left);
        commit_copies();
        left -= depth;
    };
    if (Tile::skips) {
#pragma unroll 1
        for (int s = 0; s < stages - 1; s++) load(shared + s * bytes);
    } else {
#pragma unroll
        for (int s = 0; s < Tile::stages - 1; s++) load(shared + s * bytes);
    }
    const int lane = threadIdx.x % 32;
    const uint32_t in_a = Parts::first_a(row, lane);
    const uint32_t in_b = LoaderA::bytes + Parts::first_b(column, lane);
    const uint32_t last = shared + (stages - 1) * bytes;
    uint32_t reading = shared, writing = last;
    Parts fragments;
    const int count = (at.terms - 1) / depth + 1;
    const int rows = Tile::rows_inside(at.rows - row);
    const int columns = Tile::columns_inside(at.columns - column);
    const bool multiplies = !Tile::skips || (rows > 0 && columns > 0);
    // Splits in sequence: sums are those of one of them, the others' are added up.
    const auto first_stage = [&p, count](unsigned split) {
        return static_cast<int>(int64_t(count) * split / p.splits_in_sequence);
    };
    typename Tile::Sums total = {};
    unsigned split = 1;
    int next =
        Tile::in_sequence ? first_stage(split) : 0; // the stage that the next one begins with
#pragma unroll 1
    for (int stage = 0; stage < count; stage++) {
        // This stage has come, for every thread; and every thread has read the one before, in whose
        // place the next is loaded.
        wait_for_stage<Tile>(stages);
        __syncthreads();
        if (!multiplies) { // it loads for the others
            load(writing);
            writing = writing == last ? shared : writing + bytes;
            continue;
        }
        fragments.read(0, reading + in_a, reading + in_b, 0);
        fragments.multiply_into(sums, 1, rows, columns);
        if (Tile::in_sequence && stage == next) {
            add_and_clear<Tile>(sums, total);
            next = first_stage(++split);
        }
        load(writing);
#pragma unroll
        for (int k = 0; k < depth / step - 1; k++) {
            fragments.read((k + 1) % 2, reading + in_a, reading + in_b, (k + 1) * step);
            fragments.multiply_into(sums, k % 2, rows, columns);
        }
        reading = reading == last ? shared : reading + bytes;
        writing = writing == last ? shared : writing + bytes;
    }
    fragments.multiply_into(sums, 1, rows, columns);
    if (!Tile::in_sequence) return;
    add_and_clear<Tile>(sums, total);
    add_and_clear<Tile>(total, sums);
}

// ---- The epilogue -------------------------------------------------------------------------------

// One block and nothing to do but store: from registers.
template <class Tile>
__device__ __forceinline__ void store_sums(const DmmaProduct &p, const DmmaPlace &at, int row,
                                           int column, const typename Tile::Sums &sums) {
    const PlainDestination c(
        p.c.moved(begin_of_c(p, at) + at.row * p.c.row_stride + at.column, sizeof(double)));
    const int lane = threadIdx.x % 32;
    row += lane / 4, column += lane % 4 * 2;
    RowPart<double, 2> pair;
    pair.step = 1, pair.packed = p.aligned;
#pragma unroll
    for (int i = 0; i < Tile::down; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int r = row + i * Tile::next_row + half * 8;
            if (r >= at.rows) continue;
#pragma unroll
            for (int j = 0; j < Tile::across; j++) {
                pair.sums[0] = sums[i][j][2 * half], pair.sums[1] = sums[i][j][2 * half + 1];
                pair.at = r * c.row_stride + column + j * Tile::next_column;
                pair.count = at.columns - column - j * Tile::next_column;
                finish(c, pair);
            }
        }
}

// A pair of sums over the blocks of the cluster, in order.
__device__ __forceinline__ double sum_splits(const double *shared, unsigned splits) {
    double total = *shared;
#if __CUDA_ARCH__ >= 900
    if (splits > 1) {
        total = 0;
        for (unsigned split = 0; split < splits; split++)
            total += *static_cast<const double *>(__cluster_map_shared_rank(shared, split));
    }
#endif
    return total;
}

// The block's share of the finished tile: sums, bias, activation. A thread stays in its columns.
template <class Tile>
__device__ __forceinline__ void finish_tile(const DmmaProduct &p, const DmmaPlace &at,
                                            const double *shared) {
    constexpr int across = Tile::columns / 2; // threads of a row
    RowPart<double, 2> pair;
    pair.packed = p.aligned, pair.step = p.aligned ? 1 : across;
    const int column = static_cast<int>(threadIdx.x) % across * (p.aligned ? 2 : 1);
    pair.count = at.columns - column;
    if (pair.count <= 0) return;
    constexpr int rows_at_once = Tile::threads / across;
    const int own = static_cast<int>(threadIdx.x) / across;
    if (Tile::threads % across != 0 && own >= rows_at_once) return;
    const int first = static_cast<int>(at.split) * rows_at_once + own;
    const Destination c =
        p.c.moved(begin_of_c(p, at) + at.row * p.c.row_stride + at.column + column, sizeof(double));
    load_bias<double>(c, int64_t(at.column) + column, pair.count, pair.step, pair.bias);
#pragma unroll 1
    for (int row = first; row < Tile::rows && row < at.rows;
         row += static_cast<int>(p.splits) * rows_at_once) {
        const double *const from = shared + row * Tile::sums_pitch + column;
        pair.sums[0] = sum_splits(from, p.splits);
        pair.sums[1] = sum_splits(from + pair.step, p.splits);
        pair.at = row * c.row_stride;
        finish(c, pair);
    }
}

// ---- The kernel ---------------------------------------------------------------------------------

template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks(V))
    dmma_tile_kernel(const __grid_constant__ DmmaProduct p) {
#if __CUDA_ARCH__ >= 800
    PVG_DYNAMIC_SHARED(double, memory);
    const DmmaPlace at = place_of_block<Tile>(p);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int row = warp / Tile::warps_across * 16;
    const int column = warp % Tile::warps_across * 8;
    typename Tile::Sums sums = {};
#if __CUDA_ARCH__ >= 900
    let_next_kernel_start();
    wait_for_previous_kernel();
#endif
    multiply_tile<Tile, A_ALONG_K, B_ALONG_K, V>(p, at, row, column, shared_address(memory), sums);
    if (p.c.plain && p.aligned && p.splits == 1) {
        store_sums<Tile>(p, at, row, column, sums);
        return;
    }
    share_sums<Tile::sums_pitch, Tile::next_row, Tile::next_column>(memory, row, column, sums);
#if __CUDA_ARCH__ >= 900
    if (p.splits > 1)
        cluster_sync();
    else
#endif
        __syncthreads();
    finish_tile<Tile>(p, at, memory);
#if __CUDA_ARCH__ >= 900
    if (p.splits > 1) cluster_sync_after_reading(); // no block leaves while another reads its sums
#endif
#endif
}

} // namespace

} // namespace pvg::matmul
