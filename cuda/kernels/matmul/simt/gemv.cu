// Products with a vector: m or n is 1. Every element of the matrix is used once, so what counts is
// to keep enough of them on their way from memory.
//
//     y[j] = epilogue(sum over k of matrix[j][k] x[k])
//
// Two kernels, for the two ways in which the matrix may lie. Contiguous along k: a warp adds up a
// row, or several short ones, or where there are few rows several warps of a block share one.
// Contiguous along y: a lane owns some neighbouring columns, and the warps of a block take turns
// with the k's. In both a thread asks for all of 64 or 128 bytes of the matrix before it adds them
// up.
//
// Where that makes too few blocks, several share the k's: their sums go to a workspace, and a
// second kernel adds them up, which on an H200 takes 2 us less than a cluster of blocks that read
// each other's shared memory. Who adds what, and in which order, depends on the lengths and the
// dtype alone: not on alignment, items or device.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/tile.cuh"

namespace pvg::matmul {

namespace {

struct MatrixVector {
    const void *matrix, *x;
    Destination y;
    void *partials;    // [item][split][length] sums, or NULL
    int64_t length, k; // of y; terms
    int64_t ld, x_stride, y_stride;
    int64_t matrix_item, x_item;
    int64_t blocks;          // along y, of an item
    int64_t terms;           // of a block, along k
    unsigned splits;         // blocks along k
    int slices;              // warps of a block that share a row
    int lanes;               // of a warp that share a row: 32, or a power of two of short rows
    int row_bytes;           // of the matrix, that may be loaded at once wherever a pack begins
    bool aligned, x_aligned; // packs of the matrix, of x, may be loaded at once
};

// Which part of which item a block computes.
struct Part {
    int64_t item, block, begin, end; // begin, end: of k
    unsigned split;
};
__device__ __forceinline__ Part part_of_block(const MatrixVector &p) {
    Part part;
    unsigned index = blockIdx.x;
    part.split = index % p.splits, index /= p.splits;
    const unsigned blocks = static_cast<unsigned>(p.blocks);
    part.block = index % blocks, part.item = index / blocks;
    part.begin = part.split * p.terms;
    part.end = p.k - part.begin < p.terms ? p.k : part.begin + p.terms;
    return part;
}

// For kernels that are launched with overlap.
__device__ __forceinline__ void wait_for_operands() {
    let_next_kernel_start();
    wait_for_previous_kernel();
}

// ---- The end of a sum ---------------------------------------------------------------------------

template <class T>
__device__ __forceinline__ void finish_element(const MatrixVector &p, int64_t item, int64_t j,
                                               SumType<T> value) {
    RowPart<T, 1> one = {{value}, {}, item * p.y.item_stride + j * p.y_stride, 1, 1, false};
    load_bias<T>(p.y, j, one.count, one.step, one.bias);
    finish(p.y, one);
}

// The block's sum of element `first` + threadIdx.x, for the threads below `count`.
template <class T>
__device__ __forceinline__ void finish_or_keep(const MatrixVector &p, const Part &part,
                                               int64_t first, int64_t count, SumType<T> value) {
    const int64_t j = first + threadIdx.x;
    if (static_cast<int64_t>(threadIdx.x) >= count) return;
    if (p.splits == 1)
        finish_element<T>(p, part.item, j, value);
    else
        static_cast<SumType<T> *>(p.partials)[(part.item * p.splits + part.split) * p.length + j] =
            value;
}

// Adds up the partial sums of blocks that share the k's: there are many of few elements.
constexpr int combining_warps = 32;

template <class T>
__global__ void __launch_bounds__(32 * combining_warps) combine_kernel(MatrixVector p) {
    __shared__ SumType<T> shared[combining_warps][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t blocks = (p.length + 31) / 32, item = blockIdx.x / blocks;
    const int64_t j = blockIdx.x % blocks * 32 + lane;
    wait_for_operands();
    const SumType<T> *partials =
        static_cast<const SumType<T> *>(p.partials) + item * p.splits * p.length + j;
    SumType<T> sum = 0;
    if (j < p.length) {
#pragma unroll 8
        for (unsigned split = warp; split < p.splits; split += combining_warps)
            sum += partials[split * p.length];
    }
    shared[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || j >= p.length) return;
    for (int w = 1; w < combining_warps; w++) sum += shared[w][lane];
    finish_element<T>(p, item, j, sum);
}

// ---- Contiguous along k -------------------------------------------------------------------------

constexpr int row_warps = 8;

template <class T> struct RowPacks {
    static constexpr int pack = static_cast<int>(16 / sizeof(T)), steps = 4; // packs at a time
    static constexpr int chunk = 32 * pack * steps;                          // of k, by a warp
};

// A lane's pack: whole and of stride 1, by loads of BYTES; or of BYTES 0 of `left` elements and
// zeros behind them.
template <class T, int BYTES>
__device__ __forceinline__ Vector<T, RowPacks<T>::pack> load_row(const T *from, int64_t stride,
                                                                 int64_t left) {
    constexpr int pack = RowPacks<T>::pack;
    if constexpr (BYTES == 16) {
        return *reinterpret_cast<const Vector<T, pack> *>(from);
    } else {
        constexpr int each = BYTES ? BYTES / static_cast<int>(sizeof(T)) : 1;
        Vector<T, pack> result;
#pragma unroll
        for (int e = 0; e < pack; e += each) {
            if constexpr (BYTES) {
                const auto some = *reinterpret_cast<const Vector<T, each> *>(from + e);
#pragma unroll
                for (int i = 0; i < each; i++) result.element[e + i] = some.element[i];
            } else {
                result.element[e] = e < left ? from[e * stride] : T(0.0f);
            }
        }
        return result;
    }
}

template <class T> using RowSums = SumType<T>[RowPacks<T>::pack];

// sums += row times x for STEPS packs of the lane from k on; from there on the split has `left`.
// BYTES, X_BYTES: of both operands' loads. (By fma, or the compiler would fuse the one and not the
// other, and alignment change bits.)
template <class T, int BYTES, int X_BYTES, int STEPS>
__device__ __forceinline__ void add_packs(const T *row, const T *x, int64_t x_stride, int64_t k,
                                          int64_t left, RowSums<T> &sums) {
    constexpr int pack = RowPacks<T>::pack;
    Vector<T, pack> a[STEPS], b[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int at = s * 32 * pack;
        a[s] = load_row<T, BYTES>(row + k + at, 1, left - at);
        b[s] = load_row<T, X_BYTES>(x + (k + at) * x_stride, x_stride, left - at);
    }
#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int e = 0; e < pack; e++)
            sums[e] = fma(widen(a[s].element[e]), widen(b[s].element[e]), sums[e]);
}

// The same for all chunks of a row that are the warp's. BYTES: of the row's loads, beside an x that
// is read by packs; 0: both are read element by element.
template <class T, int BYTES>
__device__ __forceinline__ void add_chunks(const MatrixVector &p, const Part &part, int slice,
                                           int lane, const T *row, const T *x, RowSums<T> &sums) {
    constexpr int pack = RowPacks<T>::pack, steps = RowPacks<T>::steps, chunk = RowPacks<T>::chunk;
    for (int64_t k = part.begin + slice * chunk; k < part.end; k += p.slices * chunk) {
        const int64_t own = k + lane * pack;
        if (BYTES > 0 && part.end - k >= chunk) {
            add_packs<T, BYTES, BYTES ? 16 : 0, steps>(row, x, 1, own, chunk, sums);
            continue;
        }
#pragma unroll 1
        for (int s = 0; s < chunk && own + s < part.end; s += 32 * pack) {
            const int64_t left = part.end - own - s;
            if (BYTES > 0 && left >= pack)
                add_packs<T, BYTES, BYTES ? 16 : 0, 1>(row, x, 1, own + s, left, sums);
            else
                add_packs<T, 0, 0, 1>(row, x, p.x_stride, own + s, left, sums);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(32 * row_warps, 4) rows_kernel(MatrixVector p) {
    constexpr int pack = RowPacks<T>::pack, size = static_cast<int>(sizeof(T));
    __shared__ SumType<T> shared[row_warps * 32];
    const int lane = threadIdx.x % p.lanes, group = threadIdx.x / p.lanes;
    const int groups = row_warps * 32 / p.lanes, slice = group % p.slices;
    const int rows = groups / p.slices; // of the block
    const Part part = part_of_block(p);
    const int64_t first = part.block * rows, mine = first + group / p.slices;
    wait_for_operands();
    RowSums<T> sums = {};
    if (mine < p.length) {
        const T *row = static_cast<const T *>(p.matrix) + part.item * p.matrix_item + mine * p.ld;
        const T *x = static_cast<const T *>(p.x) + part.item * p.x_item;
        const int bytes = p.x_aligned ? p.row_bytes : 0;
        if (bytes == 16)
            add_chunks<T, 16>(p, part, slice, lane, row, x, sums);
        else if (bytes == 8)
            add_chunks<T, 8>(p, part, slice, lane, row, x, sums);
        else if (size <= 4 && bytes == 4)
            add_chunks<T, size <= 4 ? 4 : 8>(p, part, slice, lane, row, x, sums);
        else if (size == 2 && bytes == 2)
            add_chunks<T, size == 2 ? 2 : 8>(p, part, slice, lane, row, x, sums);
        else
            add_chunks<T, 0>(p, part, slice, lane, row, x, sums);
    }
    SumType<T> sum = sums[0];
#pragma unroll
    for (int e = 1; e < pack; e++) sum += sums[e];
    // Of 32 lanes those behind a short row would add zeros: fewer give the same bits.
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        if (offset < p.lanes) sum += __shfl_xor_sync(~0u, sum, offset);
    if (lane == 0) shared[group] = sum;
    __syncthreads();
    const int thread = static_cast<int>(threadIdx.x);
    const int64_t count = p.length - first < rows ? p.length - first : rows;
    if (thread < count) {
        sum = shared[thread * p.slices];
        for (int s = 1; s < p.slices; s++) sum += shared[thread * p.slices + s];
    }
    finish_or_keep<T>(p, part, first, count, sum);
}

// ---- Contiguous along y -------------------------------------------------------------------------

constexpr int column_warps = 8;

template <class T> struct ColumnPacks {
    static constexpr int pack = least(4, static_cast<int>(16 / sizeof(T)));
    static constexpr int steps = 128 / (pack * static_cast<int>(sizeof(T)));
    static constexpr int width = 32 * pack; // of a block
};

// The lane's pack of a row: all of it, or its first `count` elements, and zeros for the others.
template <class T, bool WHOLE>
__device__ __forceinline__ Vector<T, ColumnPacks<T>::pack> load_columns(const T *from, int count) {
    constexpr int pack = ColumnPacks<T>::pack;
    if constexpr (WHOLE) {
        return *reinterpret_cast<const Vector<T, pack> *>(from);
    } else {
        Vector<T, pack> result;
#pragma unroll
        for (int e = 0; e < pack; e++) result.element[e] = e < count ? from[e] : T(0.0f);
        return result;
    }
}

template <class T> using ColumnSums = SumType<T>[ColumnPacks<T>::pack];

// sums += a row times its element of x, for the next STEPS rows of a warp, which lie `step` apart.
template <class T, bool WHOLE, int STEPS>
__device__ __forceinline__ void add_rows(const T *&matrix, int64_t step, const T *&x,
                                         int64_t x_step, int count, ColumnSums<T> &sums) {
    constexpr int pack = ColumnPacks<T>::pack;
    Vector<T, pack> rows[STEPS];
    T factors[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        rows[s] = load_columns<T, WHOLE>(matrix, count);
        factors[s] = *x;
        matrix += step, x += x_step;
    }
#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int e = 0; e < pack; e++) sums[e] += widen(rows[s].element[e]) * widen(factors[s]);
}
// The same for all the warp's rows, k, k + column_warps, ... up to the block's last.
template <class T, bool WHOLE>
__device__ __forceinline__ void add_all_rows(const MatrixVector &p, const Part &part, int64_t first,
                                             int count, ColumnSums<T> &sums) {
    constexpr int steps = WHOLE ? ColumnPacks<T>::steps : 4;
    const int64_t k = part.begin + threadIdx.x / 32;
    const T *matrix = static_cast<const T *>(p.matrix) + part.item * p.matrix_item + k * p.ld +
                      first + static_cast<int>(threadIdx.x) % 32 * ColumnPacks<T>::pack;
    const T *x = static_cast<const T *>(p.x) + part.item * p.x_item + k * p.x_stride;
    const int64_t step = column_warps * p.ld, x_step = column_warps * p.x_stride;
    int left = static_cast<int>((part.end - k + column_warps - 1) / column_warps); // or less than 1
    for (; left >= steps; left -= steps)
        add_rows<T, WHOLE, steps>(matrix, step, x, x_step, count, sums);
    for (; left > 0; left--) add_rows<T, WHOLE, 1>(matrix, step, x, x_step, count, sums);
}

template <class T>
__global__ void __launch_bounds__(32 * column_warps, 4) columns_kernel(MatrixVector p) {
    constexpr int pack = ColumnPacks<T>::pack, width = ColumnPacks<T>::width;
    __shared__ SumType<T> shared[column_warps][width];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const Part part = part_of_block(p);
    const int64_t first = part.block * width, left = p.length - first;
    const int count = static_cast<int>(left < width ? left : width) - lane * pack; // or less than 1
    wait_for_operands();
    ColumnSums<T> sums = {};
    if (p.aligned && left >= width)
        add_all_rows<T, true>(p, part, first, pack, sums);
    else
        add_all_rows<T, false>(p, part, first, count, sums);
#pragma unroll
    for (int e = 0; e < pack; e++) shared[warp][lane * pack + e] = sums[e];
    __syncthreads();
    SumType<T> sum = 0;
    if (threadIdx.x < width)
        for (int w = 0; w < column_warps; w++) sum += shared[w][threadIdx.x];
    finish_or_keep<T>(p, part, first, left < width ? left : width, sum);
}

// ---- Launching ----------------------------------------------------------------------------------

// Whether so many bytes may be loaded at once: at the start, from row to row, item to item. stride,
// item: in bytes.
bool allows_bytes(const void *data, int64_t stride, int64_t item, int64_t bytes) {
    return (static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)) | stride | item) % bytes == 0;
}

// c's only column for n = 1, else its only row.
MatrixVector describe(const Gemm &g, bool *along_k) {
    MatrixVector p{};
    const bool column = g.n == 1;
    p.k = g.k, p.length = column ? g.m : g.n;
    p.matrix = column ? g.a : g.b, p.x = column ? g.b : g.a;
    p.ld = column ? g.lda : g.ldb;
    p.x_stride = column ? (g.b_along_k ? 1 : g.ldb) : (g.a_along_k ? 1 : g.lda);
    p.matrix_item = column ? g.a_item : g.b_item, p.x_item = column ? g.b_item : g.a_item;
    p.y = destination_of(g), p.y_stride = column ? g.ldc : 1;
    if (column) p.y.bias_stride = 0; // y's elements are in the same column
    *along_k = column ? g.a_along_k : g.b_along_k;
    return p;
}

template <class T> void step_items(MatrixVector *p, int64_t items) {
    p->matrix = static_cast<const T *>(p->matrix) + items * p->matrix_item;
    p->x = static_cast<const T *>(p->x) + items * p->x_item;
    p->y = p->y.moved(items * p->y.item_stride, sizeof(T));
}

template <class T> int launch_dtype(Call &call, const Gemm &g, const Plan &plan) {
    bool along_k;
    MatrixVector p = describe(g, &along_k);
    const int pack = along_k ? RowPacks<T>::pack : ColumnPacks<T>::pack;
    constexpr int64_t element = sizeof(T);
    p.aligned = allows_bytes(p.matrix, p.ld * element, p.matrix_item * element, pack * element);
    p.row_bytes = 16; // an element at least
    while (!allows_bytes(p.matrix, p.ld * element, p.matrix_item * element, p.row_bytes))
        p.row_bytes /= 2;
    p.x_aligned = p.x_stride == 1 && allows_bytes(p.x, 0, p.x_item * element, pack * element);
    static_assert(RowPacks<T>::chunk == gemv_chunk(sizeof(T)) && row_warps == gemv_warps);
    static_assert(ColumnPacks<T>::width == gemv_width(sizeof(T)) && column_warps == gemv_warps);
    p.slices = plan.slices, p.lanes = gemv_lanes(p.k, sizeof(T));
    p.splits = static_cast<unsigned>(plan.splits);
    p.blocks = plan.tiles, p.terms = plan.terms;

    const LaunchExtras extras = {1, plan.overlap};
    Workspace partials;
    if (plan.workspace) {
        PVG_PASS(partials.open(call, static_cast<size_t>(plan.workspace)));
        p.partials = partials.as<void>();
    }
    const int64_t most = plan.items;
    for (int64_t first = 0; first < g.items; first += most) {
        const int64_t items = g.items - first < most ? g.items - first : most;
        const unsigned grid = blocks_for(items * p.blocks * p.splits, 1);
        if (along_k)
            PVG_LAUNCH_WITH(extras, rows_kernel<T>, grid, plan.threads, 0, call.stream, p);
        else
            PVG_LAUNCH_WITH(extras, columns_kernel<T>, grid, plan.threads, 0, call.stream, p);
        if (plan.workspace)
            PVG_LAUNCH_WITH(extras, combine_kernel<T>, blocks_for(items * tiles(p.length, 32), 1),
                            32 * combining_warps, 0, call.stream, p);
        step_items<T>(&p, items);
    }
    return PVG_OK;
}

} // namespace

int launch_gemv(Call &call, const Gemm &g, const Plan &plan) {
    return dispatch<floats>(g.dtype, [&](auto tag) -> int {
        return launch_dtype<typename decltype(tag)::type>(call, g, plan);
    });
}

} // namespace pvg::matmul
