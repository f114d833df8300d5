// The tiled matrix product: c[i][j] = sum over k of a[i][k] * b[k][j], for any dtype, strides and
// batch.
//
// A block computes a tile of c. It walks along k in steps of `depth`: while it multiplies one slab
// of a and b, which lies in shared memory as [k][row], every thread already has its share of the
// next slab on the way from memory into registers. A thread owns a microtile of c, in groups of 4 x
// 4 so that it reads shared memory 16 bytes at a time.
//
// Every element of c is one chain of multiply-adds over k in increasing order, whatever the tile,
// the batch or the layout: so they choose speed alone, and an item of a batch has the same bits as
// the product of that item.
#pragma once
#include "runtime/array.cuh"
#include "runtime/launch.cuh"
#include <type_traits>

namespace pvg::matmul {

constexpr int depth = 8; // of a slab, along k
constexpr int group = 4; // rows and columns of a microtile that lie side by side

// A tile of `rows` x `columns` by threads with microtiles of micro_rows x micro_columns each.
template <int ROWS, int COLUMNS, int MICRO_ROWS, int MICRO_COLUMNS> struct Tile {
    static constexpr int rows = ROWS, columns = COLUMNS, micro_rows = MICRO_ROWS,
                         micro_columns = MICRO_COLUMNS;
    static constexpr int threads_across = COLUMNS / MICRO_COLUMNS;
    static constexpr int threads = ROWS / MICRO_ROWS * threads_across;
};

// One operand as the kernel sees it: a is [row][k], b is [column][k]; one of the strides is 1.
struct Operand {
    const void *data;
    int64_t stride, k_stride; // elements, from row (column) to row and along k
    bool along_k;             // k_stride is 1, else stride is 1
    bool aligned;             // packs may be loaded at once
};

struct Product {
    int64_t m, n, k;
    Operand a, b;
    void *c;
    int64_t c_row, c_column; // strides, elements
    bool c_aligned;          // groups of a row of c may be stored at once
    int64_t tiles_down, tiles_across;
    int64_t first_item; // of the batch, that this launch computes
    Walk<3> batch;      // c, a, b
};

// ---- Arithmetic ---------------------------------------------------------------------------------

// Integers are multiplied as unsigned ones, which wrap. Bools lie in shared memory as 0 and 1.
template <class T>
using Compute = std::conditional_t<std::is_floating_point_v<T>, T,
                                   std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

template <class T> __device__ Compute<T> widen(T value) {
    if constexpr (std::is_same_v<T, Bool>)
        return bool(value);
    else
        return static_cast<Compute<T>>(value);
}
template <class T> __device__ T narrow(Compute<T> value) {
    if constexpr (std::is_same_v<T, Bool>)
        return Bool(value != 0);
    else
        return static_cast<T>(value);
}
template <class T> __device__ Compute<T> multiply_add(Compute<T> a, Compute<T> b, Compute<T> sum) {
    if constexpr (std::is_same_v<T, Bool>)
        return sum | (a & b);
    else
        return sum + a * b;
}

// What becomes of the finished elements of one row of c, in columns column, column + 1, ...:
// nothing.
struct Plain {
    template <class T, int N> __device__ void operator()(T (&)[N], int64_t, int) const {}
};

// ---- From memory to shared memory ---------------------------------------------------------------

constexpr int least(int a, int b) { return a < b ? a : b; }

// N neighbours, moved with accesses of up to 16 bytes.
template <class T, int N> struct alignas(least(16, N * sizeof(T))) Pack { T values[N]; };
template <class T> inline constexpr int pack_size = least(4, 16 / sizeof(T));

// A thread's share of the slabs of one operand: SIZE rows (of b: columns), `depth` deep. Packs lie
// along the stride of 1. Outside of the matrix there are zeros: along k they add nothing, and other
// rows and columns are not stored.
template <class T, int SIZE, int THREADS> struct Slab {
    static constexpr int pack = pack_size<T>, packs = SIZE * depth / pack;
    static constexpr int share = (packs + THREADS - 1) / THREADS;
    struct alignas(16) Shared {
        Compute<T> at[depth][SIZE + group]; // [k][row], padded against bank conflicts
    };

    const T *from[share];
    int64_t step;
    int row[share], k[share], rows;
    bool along_k, aligned;
    Pack<T, pack> loaded[share];

    // `first` is the slab's first row, of `total`.
    __device__ Slab(const Operand &operand, int64_t offset, int64_t first, int64_t total)
        : step(depth * operand.k_stride),
          rows(static_cast<int>(total - first < SIZE ? total - first : SIZE)),
          along_k(operand.along_k), aligned(operand.aligned) {
        const T *data = static_cast<const T *>(operand.data) + offset + first * operand.stride;
#pragma unroll
        for (int i = 0; i < share; i++) {
            int index = static_cast<int>(threadIdx.x) + i * THREADS;
            row[i] = along_k ? index / (depth / pack) : index % (SIZE / pack) * pack;
            k[i] = along_k ? index % (depth / pack) * pack : index / (SIZE / pack);
            from[i] = data + row[i] * operand.stride + k[i] * operand.k_stride;
        }
    }

    // Start loading the next slab, of which `left` of k are in the matrix.
    __device__ void load(int64_t left) {
#pragma unroll
        for (int i = 0; i < share; i++) {
            int64_t count =
                along_k ? (row[i] < rows ? left - k[i] : 0) : (k[i] < left ? rows - row[i] : 0);
            if (aligned && count >= pack) {
                loaded[i] = *reinterpret_cast<const Pack<T, pack> *>(from[i]);
            } else {
#pragma unroll
                for (int j = 0; j < pack; j++) loaded[i].values[j] = j < count ? from[i][j] : T();
            }
            from[i] += step;
        }
    }

    __device__ void store(Shared &shared) const {
#pragma unroll
        for (int i = 0; i < share; i++) {
            if (packs % THREADS != 0 && threadIdx.x + i * THREADS >= packs) continue;
            Pack<Compute<T>, pack> wide;
#pragma unroll
            for (int j = 0; j < pack; j++) wide.values[j] = widen(loaded[i].values[j]);
            if (along_k) {
#pragma unroll
                for (int j = 0; j < pack; j++) shared.at[k[i] + j][row[i]] = wide.values[j];
            } else {
                *reinterpret_cast<Pack<Compute<T>, pack> *>(&shared.at[k[i]][row[i]]) = wide;
            }
        }
    }
};

// ---- The microtile ------------------------------------------------------------------------------

// Where a thread's group g of rows (or columns) begins, for the thread with number `at` along that
// side of the tile.
template <int SIZE, int MICRO> __device__ int group_begin(int g, int at) {
    return g * (SIZE * group / MICRO) + at * group;
}

template <class S, int SIZE, int MICRO> __device__ void read_fragment(const S *shared, int at,
                                                                      S (&fragment)[MICRO]) {
#pragma unroll
    for (int g = 0; g < MICRO / group; g++) {
        auto four =
            *reinterpret_cast<const Pack<S, group> *>(shared + group_begin<SIZE, MICRO>(g, at));
#pragma unroll
        for (int i = 0; i < group; i++) fragment[g * group + i] = four.values[i];
    }
}

template <class T, class Shape, class SlabA, class SlabB>
__device__ void multiply_slab(const SlabA &a, const SlabB &b, int ty, int tx,
                              Compute<T> (&sum)[Shape::micro_rows][Shape::micro_columns]) {
#pragma unroll
    for (int k = 0; k < depth; k++) {
        Compute<T> x[Shape::micro_rows], y[Shape::micro_columns];
        read_fragment<Compute<T>, Shape::rows>(a.at[k], ty, x);
        read_fragment<Compute<T>, Shape::columns>(b.at[k], tx, y);
#pragma unroll
        for (int j = 0; j < Shape::micro_columns; j++)
#pragma unroll
            for (int i = 0; i < Shape::micro_rows; i++)
                sum[i][j] = multiply_add<T>(x[i], y[j], sum[i][j]);
    }
}

template <class T, class Shape, class Epilogue>
__device__ void store_tile(const Product &p, T *c, int64_t first_row, int64_t first_column, int ty,
                           int tx, const Compute<T> (&sum)[Shape::micro_rows][Shape::micro_columns],
                           const Epilogue &epilogue) {
#pragma unroll
    for (int i = 0; i < Shape::micro_rows; i++) {
        int64_t row =
            first_row + group_begin<Shape::rows, Shape::micro_rows>(i / group, ty) + i % group;
        if (row >= p.m) continue;
#pragma unroll
        for (int g = 0; g < Shape::micro_columns / group; g++) {
            int64_t column =
                first_column + group_begin<Shape::columns, Shape::micro_columns>(g, tx);
            int count = static_cast<int>(p.n - column < group ? p.n - column : group);
            if (count <= 0) continue;
            Pack<T, group> four;
#pragma unroll
            for (int j = 0; j < group; j++) four.values[j] = narrow<T>(sum[i][g * group + j]);
            epilogue(four.values, column, count);
            T *to = c + row * p.c_row + column * p.c_column;
            if (p.c_aligned && count == group) {
                *reinterpret_cast<Pack<T, group> *>(to) = four;
            } else {
#pragma unroll
                for (int j = 0; j < group; j++)
                    if (j < count) to[j * p.c_column] = four.values[j];
            }
        }
    }
}

// ---- The kernel ---------------------------------------------------------------------------------

namespace {

template <class T, class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::threads, 512 / Shape::threads)
    product_kernel(Product p, Epilogue epilogue) {
    using SlabA = Slab<T, Shape::rows, Shape::threads>;
    using SlabB = Slab<T, Shape::columns, Shape::threads>;
    __shared__ typename SlabA::Shared shared_a[2];
    __shared__ typename SlabB::Shared shared_b[2];

    int64_t tile = blockIdx.x, item = p.first_item + tile / (p.tiles_down * p.tiles_across);
    int64_t first_row = tile / p.tiles_across % p.tiles_down * Shape::rows;
    int64_t first_column = tile % p.tiles_across * Shape::columns;
    int64_t offset[3] = {0, 0, 0}; // of the item in c, a and b
    for (int i = p.batch.ndim; i-- > 0; item /= p.batch.shape[i])
        for (int operand = 0; operand < 3; operand++)
            offset[operand] += item % p.batch.shape[i] * p.batch.strides[operand][i];

    // A warp's threads lie 4 x 8, so that it reads little of shared memory more than once.
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int ty = warp / (Shape::threads_across / 8) * 4 + lane / 8,
        tx = warp % (Shape::threads_across / 8) * 8 + lane % 8;

    Compute<T> sum[Shape::micro_rows][Shape::micro_columns] = {};
    SlabA a(p.a, offset[1], first_row, p.m);
    SlabB b(p.b, offset[2], first_column, p.n);
    a.load(p.k);
    b.load(p.k);
    a.store(shared_a[0]);
    b.store(shared_b[0]);
    __syncthreads();
    int now = 0;
    for (int64_t left = p.k; left > 0; left -= depth, now ^= 1) {
        bool more = left > depth;
        if (more) {
            a.load(left - depth);
            b.load(left - depth);
        }
        multiply_slab<T, Shape>(shared_a[now], shared_b[now], ty, tx, sum);
        if (more) {
            a.store(shared_a[now ^ 1]);
            b.store(shared_b[now ^ 1]);
        }
        __syncthreads();
    }
    store_tile<T, Shape>(p, static_cast<T *>(p.c) + offset[0], first_row, first_column, ty, tx, sum,
                         epilogue);
}

} // namespace

// ---- Launching ----------------------------------------------------------------------------------

inline int64_t tiles(int64_t length, int size) { return length / size + (length % size != 0); }

// The largest tile that leaves a large card busy and wastes at most half of itself.
template <class Shape> bool is_tile_for(const Product &p, int64_t batch) {
    return p.m > Shape::rows / 2 && p.n > Shape::columns / 2 &&
           tiles(p.m, Shape::rows) * tiles(p.n, Shape::columns) * batch >= 120;
}

template <class T, class Shape, class Epilogue>
int launch_tiles(cudaStream_t stream, Product p, int64_t batch, const Epilogue &epilogue) {
    p.tiles_down = tiles(p.m, Shape::rows), p.tiles_across = tiles(p.n, Shape::columns);
    int64_t of_item = p.tiles_down * p.tiles_across, most = INT32_MAX / of_item; // items a grid
    for (p.first_item = 0; p.first_item < batch; p.first_item += most) {
        int64_t items = batch - p.first_item < most ? batch - p.first_item : most;
        PVG_LAUNCH((product_kernel<T, Shape, Epilogue>), blocks_for(of_item * items, 1),
                   Shape::threads, 0, stream, p, epilogue);
    }
    return PVG_OK;
}

template <class T, class Epilogue>
int launch_product(cudaStream_t stream, const Product &p, int64_t batch, const Epilogue &epilogue) {
    using Small = Tile<32, 32, 4, 4>;
    if constexpr (std::is_same_v<T, float>) {
        using Large = Tile<128, 128, 8, 8>;
        using Medium = Tile<64, 64, 8, 4>;
        if (is_tile_for<Large>(p, batch)) return launch_tiles<T, Large>(stream, p, batch, epilogue);
        if (is_tile_for<Medium>(p, batch))
            return launch_tiles<T, Medium>(stream, p, batch, epilogue);
    } else {
        using Medium = Tile<64, 64, 4, 4>;
        if (is_tile_for<Medium>(p, batch))
            return launch_tiles<T, Medium>(stream, p, batch, epilogue);
    }
    return launch_tiles<T, Small>(stream, p, batch, epilogue);
}

} // namespace pvg::matmul
