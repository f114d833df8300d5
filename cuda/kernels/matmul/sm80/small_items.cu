// Products of float16 and bfloat16 of at most 128 rows and columns and short sums, an item of a
// batch a block: as in small.cuh, whose bits these are, but an operand is read once and as a whole.
//
// Its lines may begin at odd elements. They come by cp.async, 4 bytes at a time, from the address
// that is a multiple of 4 before a line's beginning: so those lines lie an element too far to the
// right in shared memory. There they are moved, two elements at a time, and the tensor cores' reads
// find them where they want them. c goes the same way back, so that whole words are stored.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/sm80/small.cuh"

namespace pvg::matmul {

namespace {

// Warps have every second 16 rows of the tile, and every WARPS_ACROSS-th 16 columns: so they share
// what there is.
struct ItemTile {
    static constexpr int warps_down = 2, warps_across = small_item_side / 32,
                         warps = 2 * warps_across;
    static constexpr int threads = small_item_threads, down = small_item_side / 32, across = 2;
    static_assert(threads == 32 * warps);
};

template <class T> __device__ __forceinline__ bool is_odd(const T *element) {
    return reinterpret_cast<uintptr_t>(element) % 4 != 0;
}

// An operand of an item in shared memory, with zeros up to multiples of 16.
template <int WARPS> struct ItemLoader {
    SmallPart part;
    unsigned char *shared;

    __device__ __forceinline__ ItemLoader(const SmallOperand &x, int64_t item, int64_t outer, int k,
                                          unsigned char *shared)
        : shared(shared) {
        part.from = static_cast<const uint16_t *>(x.data) + item * x.item + outer * x.outer;
        part.stride = x.stride;
        part.lines = x.along_k ? x.side : k, part.length = x.along_k ? k : x.side;
        part.all_lines = whole_steps(part.lines), part.all_length = whole_steps(part.length);
        part.pitch = 2 * part.all_length + 16;
    }
    __device__ __forceinline__ int bytes() const { return part.all_lines * part.pitch; }
    __device__ __forceinline__ const uint16_t *line_at(int line) const {
        return part.from + line * part.stride;
    }

    // All lines begin at multiples of 16 bytes.
    __device__ __forceinline__ void load_packs() const {
        const int thread = static_cast<int>(threadIdx.x), lanes = part.all_length > 64 ? 16 : 8;
        const int step = 32 * WARPS / lanes;
        for (int at = thread % lanes * 8; at < part.all_length; at += lanes * 8) {
            int line = thread / lanes;
            const uint16_t *pack = line_at(line) + at;
            uint32_t to = shared_address(shared) + line * part.pitch + at * 2;
            const int count = max(0, min(8, part.length - at)) * 2;
#pragma unroll 2
            for (; line < part.all_lines; line += step) {
                fragments::copy_async<16>(to, pack, line < part.lines ? count : 0);
                pack += step * part.stride, to += step * part.pitch;
            }
        }
    }
    // But for the first elements of odd lines.
    __device__ __forceinline__ void load_words() const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        int line = static_cast<int>(threadIdx.x) / 32;
        const uint16_t *first = line_at(line);
        uint32_t to = shared_address(shared) + line * part.pitch + lane * 4;
#pragma unroll 2
        for (; line < part.all_lines; line += WARPS) {
            const bool exists = line < part.lines;
            const int odd = exists && is_odd(first), length = exists ? part.length + odd : 0;
            const uint16_t *word = first - odd + lane * 2;
            uint32_t there = to;
            for (int at = lane * 2; at < part.all_length + odd; at += 64) {
                if (at >= odd)
                    fragments::copy_async<4>(there, word, max(0, min(2, length - at)) * 2);
                word += 64, there += 128;
            }
            first += WARPS * part.stride, to += WARPS * part.pitch;
        }
    }
    __device__ __forceinline__ bool is_odd_line(int line) const {
        return line < part.lines && is_odd(line_at(line));
    }
    __device__ __forceinline__ uint16_t first_element(int line) const {
        return is_odd_line(line) ? *line_at(line) : uint16_t(0);
    }
    __device__ __forceinline__ void put_first_element(int line, uint16_t value) const {
        if (is_odd_line(line))
            *reinterpret_cast<uint32_t *>(shared + line * part.pitch) = uint32_t(value) << 16;
    }
    // Every line, or every second one, is odd. A warp moves four at a time.
    __device__ __forceinline__ void move_odd_lines() const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int step = part.stride % 2 ? 2 : 1, first = is_odd(part.from) ? 0 : 1;
        if (first && step == 1) return;
        const int count = (part.lines - first + step - 1) / step;
        for (int number = warp * 4; number < count; number += WARPS * 4) {
            unsigned char *const line = shared + (first + number * step) * part.pitch;
            for (int base = 0; base < part.all_length / 2; base += 32) {
                const bool exists = base + lane < part.all_length / 2;
                uint32_t words[4] = {};
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    if (!exists || number + i >= count) continue;
                    const uint32_t *const from =
                        reinterpret_cast<const uint32_t *>(line + i * step * part.pitch) + base +
                        lane;
                    words[i] = from[0] >> 16 | from[1] << 16;
                }
                __syncwarp(); // a lane writes what its neighbour has read
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    if (!exists || number + i >= count) continue;
                    reinterpret_cast<uint32_t *>(line + i * step * part.pitch)[base + lane] =
                        words[i];
                }
            }
        }
    }
};

using ItemSums = float[ItemTile::down][2 * ItemTile::across][4];

template <class T>
__device__ __forceinline__ void
multiply_item(const SmallProduct &p, const SmallPart &part_a, const SmallPart &part_b,
              uint32_t stage_a, uint32_t stage_b, int row, int column, ItemSums &sums) {
    using Tile = ItemTile;
    SmallFragments a(true, p.rows.along_k, 16 * row, part_a.pitch);
    SmallFragments b(false, p.columns.along_k, 16 * column, part_b.pitch);
    a.next *= Tile::warps_down, b.next *= Tile::warps_across;
    const int rows =
        (whole_steps(p.rows.side) / 16 - row + Tile::warps_down - 1) / Tile::warps_down;
    const int columns =
        (whole_steps(p.columns.side) / 16 - column + Tile::warps_across - 1) / Tile::warps_across;
    if (rows <= 0 || columns <= 0) return;
    const int steps = whole_steps(p.k) / 16;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        uint32_t left[Tile::down][4], right[Tile::across][4];
#pragma unroll
        for (int i = 0; i < Tile::down; i++)
            if (i < rows) a.read(stage_a, step, i, left[i]);
#pragma unroll
        for (int j = 0; j < Tile::across; j++)
            if (j < columns) b.read(stage_b, step, j, right[j]);
#pragma unroll
        for (int j = 0; j < Tile::across; j++) {
            if (j >= columns) break;
#pragma unroll
            for (int i = 0; i < Tile::down; i++) {
                if (i >= rows) break;
                fragments::multiply<T>(sums[i][2 * j], left[i], right[j][0], right[j][1]);
                fragments::multiply<T>(sums[i][2 * j + 1], left[i], right[j][2], right[j][3]);
            }
        }
    }
}

// Rows of c in shared memory, those that begin at odd elements an element further to the right.
template <class T>
__device__ __forceinline__ void share_item(const SmallProduct &p, const T *c, unsigned char *shared,
                                           int row, int column, const ItemSums &sums) {
    using Tile = ItemTile;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int pitch = 2 * whole_steps(p.columns.side) + 16;
#pragma unroll
    for (int i = 0; i < 2 * Tile::down; i++) {
        const int at = (row + i / 2 * Tile::warps_down) * 16 + i % 2 * 8 + lane / 4;
        if (at >= p.rows.side) break;
        const bool odd = is_odd(c + at * p.c.row_stride);
        T *const line = reinterpret_cast<T *>(shared + at * pitch) + odd;
#pragma unroll
        for (int j = 0; j < 2 * Tile::across; j++) {
            const int first = (column + j / 2 * Tile::warps_across) * 16 + j % 2 * 8;
            if (first >= p.columns.side) break;
            const float *const pair = &sums[i / 2][j][i % 2 * 2];
            const Vector<T, 2> both = {{narrow<T>(pair[0]), narrow<T>(pair[1])}};
            T *const to = line + first + lane % 4 * 2;
            if (odd)
                to[0] = both.element[0], to[1] = both.element[1];
            else
                *reinterpret_cast<Vector<T, 2> *>(to) = both;
        }
    }
}
template <class T>
__device__ __forceinline__ void store_item(const SmallProduct &p, T *c,
                                           const unsigned char *shared) {
    const int lane = static_cast<int>(threadIdx.x) % 32, columns = p.columns.side;
    const int pitch = 2 * whole_steps(columns) + 16;
#pragma unroll 2
    for (int row = static_cast<int>(threadIdx.x) / 32; row < p.rows.side; row += ItemTile::warps) {
        T *const first = c + row * p.c.row_stride;
        const int odd = is_odd(first);
        for (int at = lane * 2; at < columns + odd; at += 64) {
            const T *const from = reinterpret_cast<const T *>(shared + row * pitch) + at;
            T *const to = first + at - odd;
            if (at >= odd && at + 1 < columns + odd)
                *reinterpret_cast<Vector<T, 2> *>(to) =
                    *reinterpret_cast<const Vector<T, 2> *>(from);
            else if (at >= odd)
                to[0] = from[0];
            else
                to[1] = from[1];
        }
    }
}

template <class T>
__global__ void __launch_bounds__(small_item_threads, small_item_blocks)
    small_items_kernel(const __grid_constant__ SmallProduct p) {
#if PVG_HAS_FRAGMENTS
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    using Tile = ItemTile;
    int64_t item = blockIdx.x, outer = 0;
    if (p.inner) outer = blockIdx.x / p.inner, item = blockIdx.x % p.inner;
    const ItemLoader<Tile::warps> a(p.rows, item, outer, p.k, memory);
    const ItemLoader<Tile::warps> b(p.columns, item, outer, p.k, memory + a.bytes());
    let_next_kernel_start();
    wait_for_previous_kernel();
    const bool a_by_packs = p.rows.width == 8, b_by_packs = p.columns.width == 8;
    a_by_packs ? a.load_packs() : a.load_words();
    b_by_packs ? b.load_packs() : b.load_words();
    const bool has_odd_lines = p.rows.width == 1 || p.columns.width == 1;
    const int lines = has_odd_lines ? max(a.part.lines, b.part.lines) : 0;
    for (int line = static_cast<int>(threadIdx.x); line < lines; line += Tile::threads) {
        const uint16_t of_a = a.first_element(line), of_b = b.first_element(line);
        a.put_first_element(line, of_a);
        b.put_first_element(line, of_b);
    }
    fragments::wait_for_copies();
    __syncthreads();
    if (has_odd_lines) {
        if (p.rows.width == 1) a.move_odd_lines();
        if (p.columns.width == 1) b.move_odd_lines();
        __syncthreads();
    }
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int row = warp / Tile::warps_across, column = warp % Tile::warps_across;
    ItemSums sums = {};
    multiply_item<T>(p, a.part, b.part, shared_address(memory), shared_address(memory) + a.bytes(),
                     row, column, sums);
    __syncthreads(); // the operands have been read
    T *const c = static_cast<T *>(p.c.data) + item * p.c.item_stride + outer * p.c_outer;
    share_item<T>(p, c, memory, row, column, sums);
    __syncthreads();
    store_item<T>(p, c, memory);
#endif
}

template <class T> int launch_dtype(Call &call, const SmallProduct &p, const Plan &plan) {
    const LaunchExtras extras{1, plan.overlap};
    PVG_LAUNCH_WITH(extras, small_items_kernel<T>, blocks_for(plan.blocks, 1), plan.threads,
                    plan.shared_bytes, call.stream, p);
    return PVG_OK;
}

} // namespace

int launch_small_items(Call &call, const Gemm &g, const Plan &plan) {
    const SmallProduct p = describe_small(g, plan);
    return g.dtype == PVG_FLOAT16 ? launch_dtype<Half>(call, p, plan)
                                  : launch_dtype<BFloat16>(call, p, plan);
}

} // namespace pvg::matmul
