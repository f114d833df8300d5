// float32 products rounded to TF32 whose operands are read once and as they lie, by the tensor-core
// instructions of a warp, compute capability 8.0 and later: the kernel that tf32.cu launches.
//
// The instructions want of both operands single elements in registers. So what lies along m or n
// needs no transposed copy: a lane reads its elements one by one from shared memory, in either
// layout, and rounds them. Operands lie anywhere: 16, 8 or 4 bytes at a time come by cp.async.
//
// A block of eight warps walks along k in stages of 32, of which the next ones are on their way
// while one is multiplied. Its tile is no larger than it has to be, up to 192 x 192 or 96 x 96, so
// that of a long k all of c, or much of it, is one tile, and each element of the operands is read
// by one block or two: it is shared evenly by two warps down and four across.
#pragma once
#include "kernels/fragments.cuh"
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/tiles.cuh"
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
    int tiles_down, tiles_across, rows, columns; // of a tile: multiples of 16 and 8
    bool packed;                                 // four of a row of c may be stored at once
};

template <int SIDE> struct Tf32Tile {
    static constexpr int warps_down = 2, warps_across = 4, warps = warps_down * warps_across;
    // Instructions that cover a warp's part of the largest tile.
    static constexpr int down = SIDE / warps_down / 16, across = SIDE / warps_across / 8;
    static constexpr int part = tf32_part(SIDE), stage = 2 * part; // elements
    static constexpr int stages = tf32_sizes[SIDE == 96].stages;
    static constexpr int sums_pitch = SIDE + tf32_gap_across;
    static_assert(tf32_sizes[SIDE == 96].side == SIDE && warps * 32 == tf32_threads);
};
template <int SIDE> using Tf32Sums = float[Tf32Tile<SIDE>::down][Tf32Tile<SIDE>::across][4];

struct Tf32Place {
    int64_t item;
    int row, column, k; // of the tile's first element; k: of the item
};
__device__ __forceinline__ Tf32Place place_of_tf32_tile(const Tf32Product &p) {
    const unsigned tiles = static_cast<unsigned>(p.tiles_down) * p.tiles_across;
    Tf32Place at;
    at.item = blockIdx.x / tiles;
    place_tile(static_cast<int>(blockIdx.x % tiles), p.tiles_down, p.tiles_across, &at.row,
               &at.column);
    at.row *= p.rows, at.column *= p.columns;
    at.k = at.item == p.last_item ? p.last_k : p.k;
    return at;
}

__device__ __forceinline__ int whole_parts(int count, int part) {
    return (count + part - 1) / part * part;
}

// ---- From memory to shared memory ---------------------------------------------------------------

// The tile's rows (or columns) of an operand. What the operand says stays where the kernel's
// parameters are.
template <int SIDE> struct Tf32Loader {
    const Tf32Operand &operand;
    const float *from; // the thread's first pack of the next stage
    int left;          // of the side
    int line, at;      // of the thread's first pack in a stage: stored row, and place there
    int down;          // stored rows from one of its packs to the next

    __device__ __forceinline__ Tf32Loader(const Tf32Operand &x, int64_t item, int first, int most)
        : operand(x), left(min(most, x.side - first)) {
        // Lanes for a row, as a power of two: packs of a stage's k, or a warp.
        const int across = !x.along_k || x.width == 1 ? 5 : x.width == 2 ? 4 : 3;
        const int thread = static_cast<int>(threadIdx.x);
        line = thread >> across, down = tf32_threads >> across;
        at = (thread & ((1 << across) - 1)) * x.width;
        from =
            x.data + item * x.item + (x.along_k ? first * x.stride : first) + line * x.stride + at;
    }
    __device__ __forceinline__ int pitch() const {
        return operand.along_k ? tf32_depth + tf32_gap_along : SIDE + tf32_gap_across;
    }

    // Of `lines` rows `length` elements, and zeros up to all_lines and all_length.
    template <int WIDTH>
    __device__ __forceinline__ void load_packs(uint32_t to, int lines, int length, int all_lines,
                                               int all_length) const {
        const int64_t step = down * operand.stride;
        const uint32_t to_step = static_cast<uint32_t>(down * pitch() * 4);
        to += static_cast<uint32_t>((line * pitch() + at) * 4);
        const float *packs = from;
#pragma unroll 1
        for (int here = at; here < all_length; here += 32 * WIDTH) { // along k: once
            const int count = max(0, min(WIDTH, length - here)) * 4;
            const float *pack = packs;
            uint32_t there = to;
#pragma unroll 4
            for (int row = line; row < all_lines; row += down) {
                fragments::copy_async<4 * WIDTH>(there, pack, row < lines ? count : 0);
                pack += step, there += to_step;
            }
            packs += 32 * WIDTH, to += 32 * WIDTH * 4;
        }
    }
    // The next stage, of which `deep` of k are in the matrix.
    __device__ __forceinline__ void load(float *to, int deep) {
        const bool along_k = operand.along_k;
        const int all_deep = whole_parts(deep, 8), all_left = whole_parts(left, 16);
        const int lines = along_k ? left : deep, length = along_k ? deep : left;
        const int all_lines = along_k ? all_left : all_deep;
        const int all_length = along_k ? all_deep : all_left;
        if (operand.width == 4)
            load_packs<4>(shared_address(to), lines, length, all_lines, all_length);
        else if (operand.width == 2)
            load_packs<2>(shared_address(to), lines, length, all_lines, all_length);
        else
            load_packs<1>(shared_address(to), lines, length, all_lines, all_length);
        from += along_k ? tf32_depth : tf32_depth * operand.stride;
    }
};

// ---- Products -----------------------------------------------------------------------------------

// Where the lane's elements of an operand are in a stage: the first one, and how far it is to those
// of eight rows further on, and of four of k.
struct Tf32Fragments {
    int first, rows, half;

    __device__ __forceinline__ Tf32Fragments(bool along_k, int row, int pitch)
        : rows(along_k ? 8 * pitch : 8), half(along_k ? 4 : 4 * pitch) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        first = along_k ? (row + lane / 4) * pitch + lane % 4 : lane % 4 * pitch + row + lane / 4;
    }
};

// What a warp multiplies at a time: eight of k of b's columns, and of the first 16 rows of a.
template <int SIDE> struct Tf32Step {
    float left[4], right[Tf32Tile<SIDE>::across][2];

    // from_a, from_b: the lane's first elements.
    __device__ __forceinline__ void read(const float *from_a, const float *from_b,
                                         const Tf32Fragments &a, const Tf32Fragments &b,
                                         int columns) {
        read_left(from_a, a, left);
#pragma unroll
        for (int j = 0; j < Tf32Tile<SIDE>::across; j++) {
            if (j >= columns) break;
            right[j][0] = from_b[j * b.rows], right[j][1] = from_b[j * b.rows + b.half];
        }
    }
    static __device__ __forceinline__ void read_left(const float *from, const Tf32Fragments &a,
                                                     float (&to)[4]) {
        to[0] = from[0], to[1] = from[a.rows];
        to[2] = from[a.half], to[3] = from[a.rows + a.half];
    }
};

// rows, columns: how many instructions cover the warp's part. What is multiplied next is read
// before, and rounded when its turn comes, so that no warp waits for what it has just asked for.
template <int SIDE>
__device__ __forceinline__ void multiply_stage(const float *stage, int steps,
                                               const Tf32Fragments &a, const Tf32Fragments &b,
                                               int rows, int columns, Tf32Sums<SIDE> &sums) {
    using Tile = Tf32Tile<SIDE>;
    using Step = Tf32Step<SIDE>;
    if (rows <= 0 || columns <= 0) return;
    const float *from_a = stage + a.first, *from_b = stage + Tile::part + b.first;
    Step part[2];
    part[0].read(from_a, from_b, a, b, columns);
#pragma unroll
    for (int step = 0; step < tf32_depth / 8; step++) {
        if (step >= steps) break;
        const Step &now = part[step % 2];
        const float *const next_a = from_a + 2 * a.half;
        from_b += 2 * b.half;
        uint32_t left[4], right[Tile::across][2];
#pragma unroll
        for (int j = 0; j < Tile::across; j++) {
            if (j >= columns) break;
            right[j][0] = fragments::round_single(now.right[j][0]);
            right[j][1] = fragments::round_single(now.right[j][1]);
        }
        float rest[2][4];
#pragma unroll
        for (int e = 0; e < 4; e++) rest[0][e] = now.left[e];
        if (step + 1 < steps) part[(step + 1) % 2].read(next_a, from_b, a, b, columns);
#pragma unroll
        for (int i = 0; i < Tile::down; i++) {
            if (i >= rows) break;
            if (i + 1 < rows) Step::read_left(from_a + (i + 1) * 2 * a.rows, a, rest[(i + 1) % 2]);
#pragma unroll
            for (int e = 0; e < 4; e++) left[e] = fragments::round_single(rest[i % 2][e]);
#pragma unroll
            for (int j = 0; j < Tile::across; j++) {
                if (j >= columns) break;
                fragments::multiply_singles(sums[i][j], left, right[j][0], right[j][1]);
            }
        }
        from_a = next_a;
    }
}

// A warp's part of the tile: its first row and column, and the instructions that cover it.
struct Tf32Part { int row, column, rows, columns; };
template <int SIDE>
__device__ __forceinline__ Tf32Part part_of_warp(const Tf32Product &p, const Tf32Place &at) {
    using Tile = Tf32Tile<SIDE>;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int rows = min(p.rows, p.a.side - at.row), columns = min(p.columns, p.b.side - at.column);
    const int down = whole_parts((rows + Tile::warps_down - 1) / Tile::warps_down, 16);
    const int across = whole_parts((columns + Tile::warps_across - 1) / Tile::warps_across, 8);
    Tf32Part part;
    part.row = warp / Tile::warps_across * down, part.column = warp % Tile::warps_across * across;
    part.rows = (min(down, rows - part.row) + 15) / 16;
    part.columns = (min(across, columns - part.column) + 7) / 8;
    return part;
}

template <int SIDE>
__device__ __forceinline__ void multiply_tf32(const Tf32Product &p, const Tf32Place &at,
                                              const Tf32Part &part, float *shared,
                                              Tf32Sums<SIDE> &sums) {
    using Tile = Tf32Tile<SIDE>;
    Tf32Loader<SIDE> a(p.a, at.item, at.row, p.rows), b(p.b, at.item, at.column, p.columns);
    const Tf32Fragments part_a(p.a.along_k, part.row, a.pitch());
    const Tf32Fragments part_b(p.b.along_k, part.column, b.pitch());
    const int count = (at.k - 1) / tf32_depth + 1;
    int left = at.k, loading = at.k; // of k, from the stage on that is multiplied, or loaded, next
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
            b.load(to + Tile::part, min(tf32_depth, loading));
            loading -= tf32_depth;
            writing = writing + 1 == Tile::stages ? 0 : writing + 1;
        }
        commit_copies();
        if (stage < 0) continue;
        multiply_stage<SIDE>(shared + reading * Tile::stage, (min(tf32_depth, left) + 7) / 8,
                             part_a, part_b, part.rows, part.columns, sums);
        left -= tf32_depth;
        reading = reading + 1 == Tile::stages ? 0 : reading + 1;
    }
}

// ---- The epilogue -------------------------------------------------------------------------------

// Writes the warp's sums over the stages.
template <int SIDE>
__device__ __forceinline__ void share_tf32_sums(float *shared, const Tf32Part &part,
                                                const Tf32Sums<SIDE> &sums) {
    using Tile = Tf32Tile<SIDE>;
    wait_for_copies<0>();
    __syncthreads(); // the last stage has been read
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float *const own =
        shared + (part.row + lane / 4) * Tile::sums_pitch + part.column + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < Tile::down; i++) {
        if (i >= part.rows) break;
#pragma unroll
        for (int j = 0; j < Tile::across; j++) {
            if (j >= part.columns) break;
            float *const first = own + i * 16 * Tile::sums_pitch + j * 8;
            *reinterpret_cast<float2 *>(first) = {sums[i][j][0], sums[i][j][1]};
            *reinterpret_cast<float2 *>(first + 8 * Tile::sums_pitch) = {sums[i][j][2],
                                                                         sums[i][j][3]};
        }
    }
    __syncthreads();
}

// The finished tile: a warp has every eighth row, of which a lane has four elements at a time:
// neighbours, or if rows begin anywhere, a quarter of the tile apart, so that neighbouring lanes
// fill sectors.
template <int SIDE>
__device__ __forceinline__ void finish_tf32_tile(const Tf32Product &p, const Tf32Place &at,
                                                 const float *shared) {
    using Tile = Tf32Tile<SIDE>;
    const int rows = min(p.rows, p.a.side - at.row), columns = min(p.columns, p.b.side - at.column);
    const int quads = (columns + 3) / 4, warp = static_cast<int>(threadIdx.x) / 32;
    const Destination &c = p.c;
    RowPart<float, 4, true> four;
    four.step = p.packed ? 1 : quads, four.packed = p.packed;
#pragma unroll 1
    for (int quad = static_cast<int>(threadIdx.x) % 32; quad < quads; quad += 32) {
        const int column = p.packed ? quad * 4 : quad;
        four.count = columns - column;
        load_bias<float>(c, at.column + column, four.count, four.step, four.bias);
        const int64_t corner = at.item * c.item_stride + at.row * c.row_stride + at.column + column;
#pragma unroll 1
        for (int row = warp; row < rows; row += Tile::warps) {
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

template <int SIDE>
__global__ void __launch_bounds__(tf32_threads, SIDE == 96 ? 2 : 1)
    tf32_kernel(const __grid_constant__ Tf32Product p) {
#if PVG_HAS_FRAGMENTS
    PVG_DYNAMIC_SHARED(float, memory);
    const Tf32Place at = place_of_tf32_tile(p);
    const Tf32Part part = part_of_warp<SIDE>(p, at);
    Tf32Sums<SIDE> sums = {};
    let_next_kernel_start();
    wait_for_previous_kernel();
    multiply_tf32<SIDE>(p, at, part, memory, sums);
    share_tf32_sums<SIDE>(memory, part, sums);
    finish_tf32_tile<SIDE>(p, at, memory);
#endif
}

} // namespace

} // namespace pvg::matmul
