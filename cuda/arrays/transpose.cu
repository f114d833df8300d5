// Copies between arrays that lie transposed to each other: where the source has stride 1, the
// destination has not. Tiles go through shared memory, so that both sides are read and written in
// whole rows. Two kernels per size of element; batches of matrices are part of the grid.
//
// aligned: addresses allow vectors on both sides.
// shifted: they do not. Each row of a tile is moved to the left until it begins on a sector of the
//          destination's memory, by a different amount each: the tile holds a few lines (the halo)
//          more of the source than it is wide, and is written in aligned vectors all the same.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include <string.h>
#include <type_traits>

namespace pvg {

namespace {

constexpr int tile_threads = 256;
constexpr int64_t shortest_side = 16; // below that, tiles are mostly empty
constexpr size_t largest_tiled = 8;   // bytes an element: 16 are half a sector, wherever they lie

// Elements of a sector of memory, 32 bytes.
template <class T> constexpr int sector = 32 / sizeof(T);
// Elements an access. 16 single bytes would meet in few banks of shared memory.
template <class T> constexpr int tile_vector = sizeof(T) == 8 ? 2 : 4;
// Written with an intrinsic: nvcc would take an assignment apart into single elements.
template <class T>
using TileVector =
    std::conditional_t<sizeof(T) == 1, unsigned, std::conditional_t<sizeof(T) == 2, uint2, uint4>>;

// A tile has `columns` columns and `rows` rows of the destination. In shared memory it is stored
// as the source has it, a line for each column; the odd pitch spreads a row over the banks.
template <class T, bool SHIFTED> struct Tile {
    static constexpr int columns = sizeof(T) == 1 ? 128 : 64;
    static constexpr int rows = SHIFTED && sizeof(T) > 1 ? columns / 2 : columns;
    static constexpr int halo = SHIFTED ? sector<T> - 1 : 0;
    static constexpr int lines = columns + halo;
    T line[lines][rows + 1];
};

// destination[r * destination_stride + c] = source[r + c * source_stride], for every matrix.
struct Transpose {
    const void *source;
    void *destination;
    int64_t rows, columns; // as the destination has them
    int64_t source_stride, destination_stride;
    uint32_t row_tiles, column_tiles; // fewer than a grid has blocks
    Locator<2> batch;                 // of matrices; operand 0 is the destination
};

// Reads lines `low` to `high` (exclusive) of a tile, each of them `wide` elements, from memory.
template <class T>
__device__ __forceinline__ void load_tile(Tile<T, false> &tile, const T *source, int64_t stride,
                                          int low, int high, int wide) {
    using Shape = Tile<T, false>;
    constexpr int width = tile_vector<T>, across = Shape::rows / width;
    constexpr int down = tile_threads / across, steps = Shape::lines / down;
    TileVector<T> v[steps];
    const int x = threadIdx.x % across * width, y = threadIdx.x / across;
#pragma unroll
    for (int i = 0; i < steps; i++)
        if (y + i * down >= low && y + i * down < high && x < wide)
            v[i] = *reinterpret_cast<const TileVector<T> *>(source + (y + i * down) * stride + x);
#pragma unroll
    for (int i = 0; i < steps; i++) {
        if (y + i * down < low || y + i * down >= high || x >= wide) continue;
        T element[width];
        memcpy(element, &v[i], sizeof element);
#pragma unroll
        for (int e = 0; e < width; e++) tile.line[y + i * down][x + e] = element[e];
    }
}

template <class T>
__device__ __forceinline__ void load_tile(Tile<T, true> &tile, const T *source, int64_t stride,
                                          int low, int high, int wide) {
    using Shape = Tile<T, true>;
    constexpr int down = tile_threads / Shape::rows, steps = (Shape::lines + down - 1) / down;
    constexpr int batch = steps < 20 ? steps : 20; // elements on their way at a time
    const int x = threadIdx.x % Shape::rows;
    if (x >= wide) return;
    for (int first = threadIdx.x / Shape::rows; first < high; first += down * batch) {
        T v[batch];
#pragma unroll
        for (int i = 0; i < batch; i++)
            if (first + i * down >= low && first + i * down < high)
                v[i] = source[(first + i * down) * stride + x];
#pragma unroll
        for (int i = 0; i < batch; i++)
            if (first + i * down >= low && first + i * down < high)
                tile.line[first + i * down][x] = v[i];
    }
}

// Elements from the last boundary between sectors to a row's first element in a tile.
template <class T>
__device__ __forceinline__ int shift_of(const T *row) {
    return static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(T) % sector<T>);
}

// Writes `high` rows of the destination. Column c of the first one is at `destination`, and was
// read as line `halo`; the matrix has `columns` columns.
template <class T, bool SHIFTED>
__device__ __forceinline__ void store_tile(const Tile<T, SHIFTED> &tile, T *destination,
                                           int64_t stride, int high, int64_t c, int64_t columns) {
    using Shape = Tile<T, SHIFTED>;
    constexpr int width = tile_vector<T>, across = Shape::columns / width;
    constexpr int down = tile_threads / across;
    // Read together, then written together; the shifted kernel would need too many registers.
    constexpr int batch = SHIFTED ? 1 : 4;
    const int x = threadIdx.x % across * width;
#pragma unroll 1
    for (int first = threadIdx.x / across; first < high; first += down * batch) {
        TileVector<T> packed[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            const int y = first + i * down;
            const int from = x - (SHIFTED ? shift_of(destination + y * stride) : 0);
            T v[width];
#pragma unroll
            for (int e = 0; e < width; e++) v[e] = tile.line[Shape::halo + from + e][y];
            memcpy(&packed[i], v, sizeof v);
        }
#pragma unroll
        for (int i = 0; i < batch; i++) {
            const int y = first + i * down;
            if (y >= high) continue;
            T *to = destination + y * stride;
            const int from = x - (SHIFTED ? shift_of(to) : 0); // columns from c
            to += from;
            if ((!SHIFTED || c + from >= 0) && c + from + width <= columns) {
                __stwb(reinterpret_cast<TileVector<T> *>(to), packed[i]);
            } else if (SHIFTED) {
                T v[width];
                memcpy(v, &packed[i], sizeof v);
#pragma unroll
                for (int e = 0; e < width; e++)
                    if (c + from + e >= 0 && c + from + e < columns) to[e] = v[e];
            }
        }
    }
}

template <class T, bool SHIFTED>
__global__ void __launch_bounds__(tile_threads)
    transpose_kernel(const __grid_constant__ Transpose job) {
    using Shape = Tile<T, SHIFTED>;
    __shared__ Shape tile;
    const uint32_t band = blockIdx.x / job.row_tiles;
    const int64_t r = int64_t(blockIdx.x - band * job.row_tiles) * Shape::rows;
    const int64_t matrix[1] = {band / job.column_tiles};
    const int64_t c = int64_t(band % job.column_tiles) * Shape::columns;
    int64_t offsets[2][1];
    locate(job.batch, matrix, offsets);
    const T *source = static_cast<const T *>(job.source) + offsets[1][0];
    T *destination = static_cast<T *>(job.destination) + offsets[0][0];
    const int rows = static_cast<int>(job.rows - r < Shape::rows ? job.rows - r : Shape::rows);
    const int low = c == 0 ? Shape::halo : 0; // there are no columns before the first
    const int64_t left = job.columns - c + Shape::halo;
    const int high = static_cast<int>(left < Shape::lines ? left : Shape::lines);
    load_tile(tile, source + r + (c - Shape::halo) * job.source_stride, job.source_stride, low,
              high, rows);
    __syncthreads();
    store_tile(tile, destination + r * job.destination_stride + c, job.destination_stride, rows, c,
               job.columns);
}

// The dimension along which the source has stride 1, if tiles pay; else -1.
int transposed_dimension(const Walk<2> &walk) {
    int last = walk.ndim - 1;
    if (last < 1 || walk.strides[0][last] != 1) return -1;
    if (walk.strides[1][last] == 0 || walk.strides[1][last] == 1) return -1; // rows_kernel
    if (walk.shape[last] < shortest_side) return -1;
    for (int i = 0; i < last; i++)
        if (walk.strides[1][i] == 1 && walk.shape[i] >= shortest_side) return i;
    return -1;
}

// Half of each tile at least would be there. Where the innermost axis is the same for both sides,
// and not too short, no tiles are wanted.
bool fills_tiles(const Walk<2> &walk, int across, int64_t item) {
    const int last = walk.ndim - 1;
    constexpr int64_t long_row = 64; // bytes
    if (last < 1) return true;
    if (across < 0) return walk.strides[1][last] == 1 && walk.shape[last] * item >= long_row;
    const int64_t side = item == 1 ? 128 : 64;
    const auto share = [&](int64_t length) {
        const int64_t whole = (length + side - 1) / side * side;
        return static_cast<double>(length) / static_cast<double>(whole);
    };
    return share(walk.shape[across]) * share(walk.shape[last]) >= 0.5;
}

// Vectors of `width` elements fit the rows of one side: length, strides and first address.
bool rows_are_aligned(const pvg_array *a, int width, int64_t length, int64_t stride,
                      const Locator<2> &batch, int operand) {
    return length % width == 0 && is_aligned(a, width, 1, &stride) &&
           is_aligned(a, width, batch.walk.ndim, batch.walk.strides[operand]);
}

template <class T, bool SHIFTED> int launch_tiles(Call &call, Transpose *job, int64_t matrices) {
    using Shape = Tile<T, SHIFTED>;
    job->row_tiles = blocks_for(job->rows, Shape::rows);
    job->column_tiles = blocks_for(job->columns + Shape::halo, Shape::columns);
    int64_t tiles = matrices * job->row_tiles * job->column_tiles;
    PVG_LAUNCH((transpose_kernel<T, SHIFTED>), blocks_for(tiles, 1), tile_threads, 0, call.stream,
               *job);
    return PVG_OK;
}

template <class T>
int launch_transpose(Call &call, const pvg_array *source, pvg_array *destination,
                     const Walk<2> &walk, int across) {
    const int last = walk.ndim - 1, width = tile_vector<T>;
    Transpose job{};
    job.source = source->data;
    job.destination = destination->data;
    job.rows = walk.shape[across];
    job.columns = walk.shape[last];
    job.source_stride = walk.strides[1][last];
    job.destination_stride = walk.strides[0][across];
    int64_t matrices = 1;
    for (int i = 0; i < last; i++) {
        if (i == across) continue;
        int j = job.batch.walk.ndim++;
        job.batch.walk.shape[j] = walk.shape[i];
        for (int k = 0; k < 2; k++) job.batch.walk.strides[k][j] = walk.strides[k][i];
        matrices *= walk.shape[i];
    }
    prepare(&job.batch);
    if (rows_are_aligned(source, width, job.rows, job.source_stride, job.batch, 1) &&
        rows_are_aligned(destination, width, job.columns, job.destination_stride, job.batch, 0))
        return launch_tiles<T, false>(call, &job, matrices);
    return launch_tiles<T, true>(call, &job, matrices);
}

} // namespace

int copy_transposed(Call &call, const pvg_array *source, pvg_array *destination, bool *done) {
    *done = false;
    if (is_contiguous(source) && same_shape(source, destination->ndim, destination->shape) &&
        is_contiguous(destination))
        return PVG_OK;
    Walk<2> walk;
    walk.ndim = destination->ndim;
    for (int i = 0; i < walk.ndim; i++) {
        walk.shape[i] = destination->shape[i];
        walk.strides[0][i] = destination->strides[i];
    }
    broadcast_strides(source, walk.ndim, walk.shape, walk.strides[1]);
    collapse(&walk);
    int across = transposed_dimension(walk);
    if (!fills_tiles(walk, across, dtype_size(source->dtype))) {
        PVG_PASS(copy_permuted(call, source, destination, walk, done));
        if (*done) return PVG_OK;
    }
    if (across < 0) return PVG_OK;
    PVG_PASS(call.reads(source));
    return dispatch_size(source->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        if constexpr (sizeof(T) <= largest_tiled) {
            *done = true;
            return launch_transpose<T>(call, source, destination, walk, across);
        } else {
            return PVG_OK;
        }
    });
}

} // namespace pvg
