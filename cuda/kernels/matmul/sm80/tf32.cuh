// float32 products rounded to TF32 whose operands are read once and as they lie, by the tensor-core
// instructions of a warp, compute capability 8.0 and later: the kernel that tf32.cu launches.
//
// The instructions want of both operands single elements in registers. So what lies along m or n
// needs no transposed copy: of it a lane reads two neighbours at once, which are taken for rows (or
// columns) of the instruction that lie apart; what lies along k comes by ldmatrix. Operands lie
// anywhere: 16, 8 or 4 bytes at a time come by cp.async.
//
// A block walks along k in stages of 32, of which the next ones are on their way while one is
// multiplied. Its tile of c has up to 96 rows and up to 96 columns, by four warps, and two such
// blocks share a multiprocessor; or up to 128 of both, by eight: then of a c that is no larger both
// operands are read once. What is past the matrix is zero in shared memory, so that the code of a
// stage is without branches: short ones, between every few instructions, once took five times as
// long as the instructions.
#pragma once
#include "kernels/fragments.cuh"
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/sm80/rounding.cuh"
#include "kernels/matmul/tile_order.cuh"

namespace pvg::matmul {

namespace {

// An operand: m rows of a, or n columns of b, as they are stored.
struct Tf32Operand {
    const float *data;
    int64_t stride, item; // from row to row, and from item to item
    int side, width;      // width: elements that may be loaded at once, 4, 2 or 1
    bool along_k;
};

struct Tf32Product {
    Tf32Operand a, b;
    Destination c;
    int k, last_k; // last_k: of the last item, which may be a shorter stretch
    int64_t last_item;
    int tiles_down, tiles_across, rows, columns; // of a tile: multiples of 16
    bool packed;                                 // four of a row of c may be stored at once
};

// NUMBER: of tf32_sizes.
template <int NUMBER> struct Tf32Tile {
    static constexpr Tf32Size size = tf32_sizes[NUMBER];
    static constexpr int rows = size.rows, columns = size.columns, threads = size.threads;
    static constexpr int warps = threads / 32, warps_down = 2, warps_across = warps / warps_down;
    // Of a warp, and the instructions that cover them.
    static constexpr int warp_rows = rows / warps_down, warp_columns = columns / warps_across;
    static constexpr int down = warp_rows / 16, across = warp_columns / 8;
    static constexpr int a_part = tf32_part(rows), stage = a_part + tf32_part(columns);
    static constexpr int stages = tf32_stages, sums_pitch = columns + tf32_gap_across;
    static_assert(across % 2 == 0 && warp_rows % 16 == 0 && warp_columns % 16 == 0);
};
template <int NUMBER> using Tf32Sums = float[Tf32Tile<NUMBER>::down][Tf32Tile<NUMBER>::across][4];

struct Tf32Place {
    int64_t item;
    int row, column, k;        // of the tile's first element; k: of the item
    int rows, columns;         // of the tile, in the matrix
    int warp_row, warp_column; // in the tile
};
template <int NUMBER>
__device__ __forceinline__ Tf32Place place_of_tf32_tile(const Tf32Product &p) {
    using Tile = Tf32Tile<NUMBER>;
    const unsigned tiles = static_cast<unsigned>(p.tiles_down) * p.tiles_across;
    Tf32Place at;
    at.item = blockIdx.x / tiles;
    place_tile(static_cast<int>(blockIdx.x % tiles), p.tiles_down, p.tiles_across, &at.row,
               &at.column);
    at.row *= p.rows, at.column *= p.columns;
    at.k = at.item == p.last_item ? p.last_k : p.k;
    at.rows = min(p.rows, p.a.side - at.row), at.columns = min(p.columns, p.b.side - at.column);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    at.warp_row = warp / Tile::warps_across * Tile::warp_rows;
    at.warp_column = warp % Tile::warps_across * Tile::warp_columns;
    return at;
}

// ---- From memory to shared memory ---------------------------------------------------------------

// SIDE rows (or columns) of an operand, of which the first `left` are in the tile. A thread has the
// same places of each 32 x 32 elements. What the operand says stays where the kernel's parameters
// are.
template <int SIDE, int THREADS> struct Tf32Loader {
    const Tf32Operand &operand;
    const float *from; // the thread's first pack of the next stage
    int left;

    __device__ __forceinline__ Tf32Loader(const Tf32Operand &x, int64_t item, int first, int left)
        : operand(x), left(left) {
        from = x.data + item * x.item + (x.along_k ? first * x.stride : first) + line() * x.stride +
               place();
    }
    // Of the thread's first pack in a stage: the stored row, and the place in it.
    __device__ __forceinline__ int line() const {
        const int lanes = operand.width == 4 ? 3 : operand.width == 2 ? 4 : 5; // a power of two
        return static_cast<int>(threadIdx.x) >> lanes;
    }
    __device__ __forceinline__ int place() const {
        return static_cast<int>(threadIdx.x) * operand.width % 32;
    }

    // The next stage, of which `deep` of k are in the matrix; zeros in place of the rest.
    template <int WIDTH, bool ALONG_K>
    __device__ __forceinline__ void load_packs(uint32_t to, int deep) const {
        constexpr int pitch = ALONG_K ? tf32_depth + tf32_gap_along : SIDE + tf32_gap_across;
        constexpr int down = THREADS * WIDTH / 32; // stored rows from pack to pack
        const int at = static_cast<int>(threadIdx.x) % (32 / WIDTH) * WIDTH;
        const int row = static_cast<int>(threadIdx.x) / (32 / WIDTH);
        const int64_t step = down * operand.stride;
        to += static_cast<uint32_t>((row * pitch + at) * 4);
        const int along = max(0, min(WIDTH, deep - at)) * 4; // bytes of a pack along k
        const float *pack = from;
#pragma unroll
        for (int j = 0; j < (ALONG_K ? SIDE : 32) / down; j++) {
#pragma unroll
            for (int i = 0; i < (ALONG_K ? 1 : SIDE / 32); i++) {
                int count;
                if constexpr (ALONG_K)
                    count = row + j * down < left ? along : 0;
                else
                    count = row + j * down < deep ? max(0, min(WIDTH, left - at - i * 32)) * 4 : 0;
                fragments::copy_async<4 * WIDTH>(to + (j * down * pitch + i * 32) * 4,
                                                 pack + i * 32, count);
            }
            pack += step;
        }
    }
    template <bool ALONG_K> __device__ __forceinline__ void load_along(uint32_t to, int deep) {
        if (operand.width == 4)
            load_packs<4, ALONG_K>(to, deep);
        else if (operand.width == 2)
            load_packs<2, ALONG_K>(to, deep);
        else
            load_packs<1, ALONG_K>(to, deep);
        from += ALONG_K ? tf32_depth : tf32_depth * operand.stride;
    }
    __device__ __forceinline__ void load(float *to, int deep) {
        if (operand.along_k)
            load_along<true>(fragments::shared_address(to), deep);
        else
            load_along<false>(fragments::shared_address(to), deep);
    }
};

// ---- Products -----------------------------------------------------------------------------------

// Which of 16 rows a lane's row `half` (0 or 1) of an instruction is, and which of 16 columns its
// column e of the instruction `number` of two is.
template <bool ALONG_K> __device__ __forceinline__ int tf32_row(int lane, int half) {
    return ALONG_K ? lane / 4 + half * 8 : lane / 4 * 2 + half;
}
template <bool ALONG_K> __device__ __forceinline__ int tf32_column(int lane, int number, int e) {
    return ALONG_K ? number * 8 + lane % 4 * 2 + e : lane % 4 * 4 + e * 2 + number;
}

// Four elements of 16 rows (or columns) and 8 of k. Rows first: elements 0 and 1 are of two rows,
// 2 and 3 of the same four of k on; or else 1 is four of k on, and 2 and 3 are of the other row.
template <int SIDE, bool ALONG_K, bool ROWS_FIRST> struct Tf32Reader {
    static constexpr int pitch = ALONG_K ? tf32_depth + tf32_gap_along : SIDE + tf32_gap_across;
    int first; // the lane's place

    __device__ __forceinline__ explicit Tf32Reader(int side) {
        const int lane = static_cast<int>(threadIdx.x) % 32, low = lane / 8 % 2, high = lane / 16;
        if constexpr (ALONG_K) // of the row that the lane gives ldmatrix
            first = (side + lane % 8 + (ROWS_FIRST ? low : high) * 8) * pitch +
                    (ROWS_FIRST ? high : low) * 4;
        else
            first = lane % 4 * pitch + side + lane / 4 * 2;
    }
    __device__ __forceinline__ void read(const float *part, int group, int step,
                                         float (&to)[4]) const {
        const float *const from =
            part + first +
            (ALONG_K ? group * 16 * pitch + step * 8 : group * 16 + step * 8 * pitch);
        if constexpr (ALONG_K) {
            uint32_t bits[4];
            fragments::read_matrices<false>(fragments::shared_address(from), bits);
#pragma unroll
            for (int e = 0; e < 4; e++) to[e] = __uint_as_float(bits[e]);
        } else {
            const float2 near = *reinterpret_cast<const float2 *>(from);
            const float2 far = *reinterpret_cast<const float2 *>(from + 4 * pitch);
            to[0] = near.x, to[3] = far.y;
            to[ROWS_FIRST ? 1 : 2] = near.y, to[ROWS_FIRST ? 2 : 1] = far.x;
        }
    }
};

// What is multiplied next is read before, and rounded when its turn comes, so that no warp waits
// for what it has just asked for.
template <int NUMBER, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void multiply_tf32_stage(const float *stage, const Tf32Place &at,
                                                    Tf32Sums<NUMBER> &sums) {
    using Tile = Tf32Tile<NUMBER>;
    const Tf32Reader<Tile::rows, A_ALONG_K, true> a(at.warp_row);
    const Tf32Reader<Tile::columns, B_ALONG_K, false> b(at.warp_column);
    const float *const stage_b = stage + Tile::a_part;
    constexpr int pairs = Tile::across / 2, steps = tf32_depth / 8;
    float left[2][Tile::down][4], right[2][pairs][4];
#pragma unroll
    for (int step = -1; step < steps; step++) {
        if (step + 1 < steps) {
            const int next = (step + 1) % 2;
#pragma unroll
            for (int j = 0; j < pairs; j++) b.read(stage_b, j, step + 1, right[next][j]);
#pragma unroll
            for (int i = 0; i < Tile::down; i++) a.read(stage, i, step + 1, left[next][i]);
        }
        if (step < 0) continue;
        uint32_t columns[pairs][4];
#pragma unroll
        for (int j = 0; j < pairs; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) columns[j][e] = round_single(right[step % 2][j][e]);
#pragma unroll
        for (int i = 0; i < Tile::down; i++) {
            uint32_t rows[4];
#pragma unroll
            for (int e = 0; e < 4; e++) rows[e] = round_single(left[step % 2][i][e]);
#pragma unroll
            for (int j = 0; j < Tile::across; j++)
                fragments::multiply_singles(sums[i][j], rows, columns[j / 2][j % 2 * 2],
                                            columns[j / 2][j % 2 * 2 + 1]);
        }
    }
}
template <int NUMBER>
__device__ __forceinline__ void multiply_tf32_stage(const Tf32Product &p, const float *stage,
                                                    const Tf32Place &at, Tf32Sums<NUMBER> &sums) {
    if (at.warp_row >= at.rows || at.warp_column >= at.columns) return;
    if (p.a.along_k) {
        if (p.b.along_k)
            multiply_tf32_stage<NUMBER, true, true>(stage, at, sums);
        else
            multiply_tf32_stage<NUMBER, true, false>(stage, at, sums);
    } else {
        if (p.b.along_k)
            multiply_tf32_stage<NUMBER, false, true>(stage, at, sums);
        else
            multiply_tf32_stage<NUMBER, false, false>(stage, at, sums);
    }
}

template <int NUMBER>
__device__ __forceinline__ void multiply_tf32(const Tf32Product &p, const Tf32Place &at,
                                              float *shared, Tf32Sums<NUMBER> &sums) {
    using Tile = Tf32Tile<NUMBER>;
    Tf32Loader<Tile::rows, Tile::threads> a(p.a, at.item, at.row, at.rows);
    Tf32Loader<Tile::columns, Tile::threads> b(p.b, at.item, at.column, at.columns);
    const int count = (at.k - 1) / tf32_depth + 1;
    int loading = at.k; // of k, from the stage on that is loaded next
    int reading = 0, writing = 0;
    // Some more rounds than there are stages: there is one place in the code that loads.
#pragma unroll 1
    for (int stage = 1 - Tile::stages; stage < count; stage++) {
        if (stage >= 0) {
            // This stage has come, for every thread; and every thread has read the one before, in
            // whose place the next is loaded.
            wait_for_copies<Tile::stages - 2>();
            __syncthreads();
        }
        if (stage + Tile::stages - 1 < count) {
            float *const to = shared + writing * Tile::stage;
            a.load(to, min(tf32_depth, loading));
            b.load(to + Tile::a_part, min(tf32_depth, loading));
            loading -= tf32_depth;
            writing = writing + 1 == Tile::stages ? 0 : writing + 1;
        }
        commit_copies();
        if (stage < 0) continue;
        multiply_tf32_stage<NUMBER>(p, shared + reading * Tile::stage, at, sums);
        reading = reading + 1 == Tile::stages ? 0 : reading + 1;
    }
}

// ---- The epilogue -------------------------------------------------------------------------------

// Writes the warp's sums over the stages.
template <int NUMBER>
__device__ __forceinline__ void share_tf32_sums(const Tf32Product &p, float *shared,
                                                const Tf32Place &at, const Tf32Sums<NUMBER> &sums) {
    using Tile = Tf32Tile<NUMBER>;
    wait_for_copies<0>();
    __syncthreads(); // the last stage has been read
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int row = p.a.along_k ? tf32_row<true>(lane, e / 2) : tf32_row<false>(lane, e / 2);
#pragma unroll
        for (int number = 0; number < 2; number++) {
            const int column = p.b.along_k ? tf32_column<true>(lane, number, e % 2)
                                           : tf32_column<false>(lane, number, e % 2);
            float *const own =
                shared + (at.warp_row + row) * Tile::sums_pitch + at.warp_column + column;
#pragma unroll
            for (int i = 0; i < Tile::down; i++)
#pragma unroll
                for (int j = number; j < Tile::across; j += 2)
                    own[i * 16 * Tile::sums_pitch + j / 2 * 16] = sums[i][j][e];
        }
    }
    __syncthreads();
}

// The finished tile: a warp has every fourth row, of which a lane has four elements at a time:
// neighbours, or if rows begin anywhere, a quarter of the tile apart, so that neighbouring lanes
// fill sectors.
template <int NUMBER>
__device__ __forceinline__ void finish_tf32_tile(const Tf32Product &p, const Tf32Place &at,
                                                 const float *shared) {
    using Tile = Tf32Tile<NUMBER>;
    const int quads = (at.columns + 3) / 4, warp = static_cast<int>(threadIdx.x) / 32;
    const Destination &c = p.c;
    RowPart<float, 4, true> four;
    four.step = p.packed ? 1 : quads, four.packed = p.packed;
#pragma unroll 1
    for (int quad = static_cast<int>(threadIdx.x) % 32; quad < quads; quad += 32) {
        const int column = p.packed ? quad * 4 : quad;
        four.count = at.columns - column;
        load_bias<float>(c, at.column + column, four.count, four.step, four.bias);
        const int64_t corner = at.item * c.item_stride + at.row * c.row_stride + at.column + column;
#pragma unroll 1
        for (int row = warp; row < at.rows; row += Tile::warps) {
            const float *const from = shared + row * Tile::sums_pitch + column;
            if (p.packed) {
                const float4 all = *reinterpret_cast<const float4 *>(from);
                four.sums[0] = all.x, four.sums[1] = all.y;
                four.sums[2] = all.z, four.sums[3] = all.w;
            } else {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    four.sums[e] = e * quads < four.count ? from[e * quads] : 0.0f;
            }
            four.at = corner + row * c.row_stride;
            finish(c, four);
        }
    }
}

// ---- The kernel ---------------------------------------------------------------------------------

template <int NUMBER>
__global__ void __launch_bounds__(Tf32Tile<NUMBER>::threads, Tf32Tile<NUMBER>::size.blocks)
    tf32_kernel(const __grid_constant__ Tf32Product p) {
#if PVG_HAS_FRAGMENTS
    PVG_DYNAMIC_SHARED(float, memory);
    const Tf32Place at = place_of_tf32_tile<NUMBER>(p);
    Tf32Sums<NUMBER> sums = {};
    let_next_kernel_start();
    wait_for_previous_kernel();
    multiply_tf32<NUMBER>(p, at, memory, sums);
    share_tf32_sums<NUMBER>(p, memory, at, sums);
    finish_tf32_tile<NUMBER>(p, at, memory);
#endif
}

} // namespace

} // namespace pvg::matmul
