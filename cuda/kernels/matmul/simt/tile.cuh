// The tiled matrix product: c[i][j] = sum over k of a[i][k] * b[k][j], for any dtype, strides and
// batch.
//
// A block computes a tile of c. It walks along k in steps of `depth`: while it multiplies one slab
// of a and b, which lies in shared memory as [k][row], every thread already has its share of the
// next slab on the way from memory into registers. A thread owns a microtile of c, in groups of 4 x
// 4 so that it reads shared memory 16 bytes at a time.
//
// Every element of c is one chain of multiply-adds over k in increasing order, for float32 one for
// each half of a long k (first_half in product.cuh), whatever the tile, the batch or the layout: so
// they choose speed alone, and an item of a batch has the same bits as the product of that item.
// The sums of the first half wait in c for the second.
#pragma once
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/plan/plan.cuh"
#include "kernels/matmul/plan/tiles.cuh"

namespace pvg::matmul {

constexpr int depth = 8; // of a slab, along k
constexpr int group = 4; // rows and columns of a microtile that lie side by side

// A tile of `rows` x `columns` by threads with microtiles of micro_rows x micro_columns each.
template <int ROWS, int COLUMNS, int MICRO_ROWS, int MICRO_COLUMNS> struct TileShape {
    static constexpr int rows = ROWS, columns = COLUMNS, micro_rows = MICRO_ROWS,
                         micro_columns = MICRO_COLUMNS;
    static constexpr int threads_across = COLUMNS / MICRO_COLUMNS;
    static constexpr int threads = ROWS / MICRO_ROWS * threads_across;
};

// How a launch cuts c: tiles of an item, and the item of the batch that it begins with.
struct Tiling { int64_t down, across, first_item; };

// ---- Arithmetic ---------------------------------------------------------------------------------

template <class T> __device__ SumType<T> multiply_add(SumType<T> a, SumType<T> b, SumType<T> sum) {
    if constexpr (std::is_same_v<T, Bool>)
        return sum | (a & b);
    else
        return sum + a * b;
}

constexpr int least(int a, int b) { return a < b ? a : b; }

// ---- From memory to shared memory ---------------------------------------------------------------

template <class T> inline constexpr int pack_size = least(4, 16 / sizeof(T));

// A thread's share of the slabs of one operand: SIZE rows (of b: columns), `depth` deep. Packs lie
// along the stride of 1. Outside of the matrix there are zeros: along k they add nothing, and other
// rows and columns are not stored.
template <class T, int SIZE, int THREADS> struct OperandSlab {
    static constexpr int pack = pack_size<T>, packs = SIZE * depth / pack;
    static constexpr int share = (packs + THREADS - 1) / THREADS;
    struct alignas(16) Shared {
        SumType<T> at[depth][SIZE + group]; // [k][row], padded against bank conflicts
    };

    const T *from[share];
    int64_t step;
    int row[share], k[share], rows;
    bool along_k, aligned;
    Vector<T, pack> loaded[share];

    // `first` is the slab's first row, of `total`.
    __device__ OperandSlab(const Operand &operand, int64_t offset, int64_t first, int64_t total,
                           int thread)
        : step(depth * operand.k_stride),
          rows(static_cast<int>(total - first < SIZE ? total - first : SIZE)),
          along_k(operand.along_k), aligned(operand.aligned) {
        const T *data = static_cast<const T *>(operand.data) + offset + first * operand.stride;
#pragma unroll
        for (int i = 0; i < share; i++) {
            int index = thread + i * THREADS;
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
                loaded[i] = *reinterpret_cast<const Vector<T, pack> *>(from[i]);
            } else {
#pragma unroll
                for (int j = 0; j < pack; j++) loaded[i].element[j] = j < count ? from[i][j] : T();
            }
            from[i] += step;
        }
    }

    __device__ void store(Shared &shared) const {
#pragma unroll
        for (int i = 0; i < share; i++) {
            if (packs % THREADS != 0 && threadIdx.x + i * THREADS >= packs) continue;
            Vector<SumType<T>, pack> wide;
#pragma unroll
            for (int j = 0; j < pack; j++) wide.element[j] = widen(loaded[i].element[j]);
            if (along_k) {
#pragma unroll
                for (int j = 0; j < pack; j++) shared.at[k[i] + j][row[i]] = wide.element[j];
            } else {
                *reinterpret_cast<Vector<SumType<T>, pack> *>(&shared.at[k[i]][row[i]]) = wide;
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

// The number of the thread, opaque: what depends on it the compiler does not compute before a loop
// over k, to keep it in registers that the loop needs.
__device__ inline int this_thread() {
    int thread = static_cast<int>(threadIdx.x);
    asm volatile("" : "+r"(thread));
    return thread;
}

// A block's tile: where its item begins in c, a and b, and how many tiles are above and before it.
template <class Shape> struct TiledPlace {
    const Product &p;
    const int64_t (&offset)[3];
    unsigned above, before;

    __device__ int64_t first_row() const { return int64_t(above) * Shape::rows; }
    __device__ int64_t first_column() const { return int64_t(before) * Shape::columns; }
};

// Where the thread's microtile is in a tile. A warp's threads lie 4 x 8, so that it reads little of
// shared memory more than once.
template <class Shape> struct TiledMicrotile {
    int y, x;

    __device__ explicit TiledMicrotile(int thread)
        : y(thread / 32 / (Shape::threads_across / 8) * 4 + thread % 32 / 8),
          x(thread / 32 % (Shape::threads_across / 8) * 8 + thread % 8) {}
};

template <class S, int SIZE, int MICRO> __device__ void read_fragment(const S *shared, int at,
                                                                      S (&fragment)[MICRO]) {
#pragma unroll
    for (int g = 0; g < MICRO / group; g++) {
        auto four =
            *reinterpret_cast<const Vector<S, group> *>(shared + group_begin<SIZE, MICRO>(g, at));
#pragma unroll
        for (int i = 0; i < group; i++) fragment[g * group + i] = four.element[i];
    }
}

template <class T, class Shape, class SlabA, class SlabB>
__device__ void multiply_slab(const SlabA &a, const SlabB &b, const TiledMicrotile<Shape> &at,
                              SumType<T> (&sum)[Shape::micro_rows][Shape::micro_columns]) {
#pragma unroll
    for (int k = 0; k < depth; k++) {
        SumType<T> x[Shape::micro_rows], y[Shape::micro_columns];
        read_fragment<SumType<T>, Shape::rows>(a.at[k], at.y, x);
        read_fragment<SumType<T>, Shape::columns>(b.at[k], at.x, y);
#pragma unroll
        for (int j = 0; j < Shape::micro_columns; j++)
#pragma unroll
            for (int i = 0; i < Shape::micro_rows; i++)
                sum[i][j] = multiply_add<T>(x[i], y[j], sum[i][j]);
    }
}

// What is done with four sums of a row before the epilogue, `at` elements from c's beginning: as a
// rule nothing.
struct AsTheyAre {
    template <class T> __device__ void operator()(RowPart<T, group, true> &) const {}
};

template <class T, class Shape, class To, class Revise>
__device__ void store_tile(const TiledPlace<Shape> &place,
                           const SumType<T> (&sum)[Shape::micro_rows][Shape::micro_columns],
                           const To &to, const Revise &revise) {
    const Product &p = place.p;
    const TiledMicrotile<Shape> thread(this_thread());
#pragma unroll
    for (int i = 0; i < Shape::micro_rows; i++) {
        int64_t row = place.first_row() +
                      group_begin<Shape::rows, Shape::micro_rows>(i / group, thread.y) + i % group;
        if (row >= to.rows) continue;
#pragma unroll
        for (int g = 0; g < Shape::micro_columns / group; g++) {
            int64_t column = place.first_column() +
                             group_begin<Shape::columns, Shape::micro_columns>(g, thread.x);
            int64_t left = to.columns - column;
            if (left <= 0) continue;
            RowPart<T, group, true> four;
            four.at = place.offset[0] + row * to.row_stride + column;
            four.count = static_cast<int>(left < group ? left : group);
            four.step = 1, four.packed = p.c_aligned;
#pragma unroll
            for (int j = 0; j < group; j++) four.sums[j] = sum[i][g * group + j];
            load_bias<T>(to, column, four.count, four.step, four.bias);
            revise(four);
            finish(to, four);
        }
    }
}

// ---- The kernel ---------------------------------------------------------------------------------

// The slabs of a block: one of each operand is multiplied while the next one is stored.
template <class T, class Shape> struct SharedSlabs {
    typename OperandSlab<T, Shape::rows, Shape::threads>::Shared a[2];
    typename OperandSlab<T, Shape::columns, Shape::threads>::Shared b[2];
};

// The tile's sums for k from `begin` on, below `end`.
template <class T, class Shape, class To, class Revise>
__device__ void multiply_terms(const TiledPlace<Shape> &place, int64_t begin, int64_t end,
                               SharedSlabs<T, Shape> &shared, const To &to, const Revise &revise) {
    const Product &p = place.p;
    const int thread = this_thread();
    const TiledMicrotile<Shape> at(thread);
    SumType<T> sum[Shape::micro_rows][Shape::micro_columns] = {};
    OperandSlab<T, Shape::rows, Shape::threads> a(p.a, place.offset[1] + begin * p.a.k_stride,
                                                  place.first_row(), p.m, thread);
    OperandSlab<T, Shape::columns, Shape::threads> b(p.b, place.offset[2] + begin * p.b.k_stride,
                                                     place.first_column(), p.n, thread);
    a.load(end - begin);
    b.load(end - begin);
    a.store(shared.a[0]);
    b.store(shared.b[0]);
    __syncthreads();
    int now = 0;
    for (int64_t left = end - begin; left > 0; left -= depth, now ^= 1) {
        bool more = left > depth;
        if (more) {
            a.load(left - depth);
            b.load(left - depth);
        }
        multiply_slab<T, Shape>(shared.a[now], shared.b[now], at, sum);
        if (more) {
            a.store(shared.a[now ^ 1]);
            b.store(shared.b[now ^ 1]);
        }
        __syncthreads();
    }
    store_tile<T, Shape>(place, sum, to, revise);
}

// For the sums of the second half: those of the first are in c.
struct AddFirstHalf {
    const float *c;

    __device__ void operator()(RowPart<float, group, true> &four) const {
#pragma unroll
        for (int j = 0; j < group; j++)
            if (j < four.count) four.sums[j] = c[four.at + j] + four.sums[j];
    }
};

template <class T, class Shape, class To>
__device__ void multiply_tile(const TiledPlace<Shape> &place, SharedSlabs<T, Shape> &shared,
                              const To &to) {
    const int64_t k = place.p.k;
    if constexpr (std::is_same_v<T, float>) {
        const int64_t half = first_half(k);
        if (half > 0) {
            multiply_terms<T, Shape>(place, 0, half, shared, PlainDestination(to), AsTheyAre());
            multiply_terms<T, Shape>(place, half, k, shared, to,
                                     AddFirstHalf{static_cast<const float *>(to.data)});
            return;
        }
    }
    multiply_terms<T, Shape>(place, 0, k, shared, to, AsTheyAre());
}

namespace {

template <class T, class Shape, class To>
__global__ void __launch_bounds__(Shape::threads, 512 / Shape::threads)
    product_kernel(Product p, Tiling tiling, To to) {
    __shared__ SharedSlabs<T, Shape> shared;
    int64_t tile = blockIdx.x, item = tiling.first_item + tile / (tiling.down * tiling.across);
    auto above = static_cast<unsigned>(tile / tiling.across % tiling.down);
    auto before = static_cast<unsigned>(tile % tiling.across);
    int64_t offset[3] = {0, 0, 0}; // of the item in c, a and b
    for (int i = p.batch.ndim; i-- > 0; item /= p.batch.shape[i])
        for (int operand = 0; operand < 3; operand++)
            offset[operand] += item % p.batch.shape[i] * p.batch.strides[operand][i];
    multiply_tile<T, Shape>({p, offset, above, before}, shared, to);
}

} // namespace

// ---- Launching ----------------------------------------------------------------------------------

template <class Shape> constexpr bool is_size(TiledNumber number, bool is_float) {
    const TiledSize &size = tiled_sizes[number];
    return Shape::rows == size.side && Shape::columns == size.side &&
           Shape::threads == (is_float ? size.float_threads : size.threads);
}

template <class T, class Shape, class To>
int launch_tiles(cudaStream_t stream, const Product &p, int64_t batch, const Plan &plan,
                 const To &to) {
    Tiling tiling = {tiles(p.m, Shape::rows), tiles(p.n, Shape::columns), 0};
    const int64_t most = plan.items;
    for (; tiling.first_item < batch; tiling.first_item += most) {
        int64_t items = batch - tiling.first_item < most ? batch - tiling.first_item : most;
        PVG_LAUNCH((product_kernel<T, Shape, To>), blocks_for(plan.tiles * items, 1), plan.threads,
                   0, stream, p, tiling, to);
    }
    return PVG_OK;
}

template <class T, class To>
int launch_planned_tile(cudaStream_t stream, const Product &p, int64_t items, const Plan &plan,
                        const To &to) {
    constexpr bool is_float = std::is_same_v<T, float>;
    using Large = TileShape<128, 128, 8, 8>;
    using Medium = TileShape<64, 64, is_float ? 8 : 4, 4>;
    using Small = TileShape<32, 32, 4, 4>;
    static_assert(is_size<Large>(tiled_large, true) && is_size<Small>(tiled_small, is_float) &&
                  is_size<Medium>(tiled_medium, is_float));
    if constexpr (is_float)
        if (plan.tile == tiled_large) return launch_tiles<T, Large>(stream, p, items, plan, to);
    if (plan.tile == tiled_medium) return launch_tiles<T, Medium>(stream, p, items, plan, to);
    return launch_tiles<T, Small>(stream, p, items, plan, to);
}

} // namespace pvg::matmul
