// What the kernels of attention share: a block has a tile of rows of one operand beside a tile of
// rows of another, and never more of the matrix (L, S) than that.
//
// 256 threads are 16 x 16; each has R x R elements of a tile. Products go through shared memory in
// stages of some columns (features), so that heads of any size take the same room, and sums stay in
// registers.
#pragma once
#include "arrays/call.cuh"
#include "arrays/locate.cuh"
#include "arrays/vector.cuh"
#include <math.h>

namespace pvg::attention {

constexpr int threads = 256, across = 16, depth = 32; // depth: features of a stage
constexpr int most_features = 256;

template <class T> inline constexpr int elements = sizeof(ComputeType<T>) == 8 ? 2 : 4;
template <class T> inline constexpr int edge = across * elements<T>; // of a tile

// Rows of an operand, of one item of the batch: any strides.
struct Rows {
    const void *data;
    int64_t row, column; // strides, in elements
    int64_t length;      // rows
    int features;        // columns
    bool vectors;        // each row, and each item's first one, begins at a multiple of 16 bytes
};

enum class Mask { none, boolean, half, bfloat, single, twice };

struct Job {
    Rows query, keys, values, gradient, result; // at the first item; the last two are contiguous
    const void *mask;
    int64_t mask_row, mask_column;
    Mask mask_kind;
    bool causal;
    bool general; // a mask, or a scale that is not positive
    double scale;
    int64_t items, tiles; // tiles: of an item
    const void *logsum;   // (items, L), in what is computed in
    const void *products; // (items, L): of each row of the gradient with the result
    void *to, *more;      // what is written
    // See attention_sections.cuh.
    int64_t section;           // rows of a section
    unsigned apart;            // sections that have blocks of their own; 0: a block has all of them
    float *parts, *more_parts; // of sections apart
    Locator<5> leading;        // the place of an item, the query, the keys, the values, the mask
};

// What threads of a block share.
template <class T> struct Shared {
    using A = ComputeType<T>;
    static constexpr int padded = edge<T> + elements<T>; // keeps vectors aligned
    union {
        A stages[2][depth][padded]; // by feature, of both operands of a product
        A values[edge<T>][edge<T>]; // by row, of what is summed with weights
    };
    A weights[edge<T>][padded]; // by the row that is summed over
};

// Of a multiprocessor; heads of many chunks need the registers.
template <int CHUNKS> inline constexpr int blocks_at_once = CHUNKS <= 2 ? 2 : 1;

// Whether the code that is compiled never runs kernels of so many chunks, as all heads that have no
// more are multiplied on tensor cores.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <class T, int CHUNKS> inline constexpr bool is_unused = sizeof(T) == 4 && CHUNKS <= 2;
#else
template <class T, int CHUNKS> inline constexpr bool is_unused = false;
#endif

template <class T> using Elements = ComputeType<T>[elements<T>][elements<T>];

// One item of the batch: where it lies in each operand.
template <class T> struct Item {
    int64_t number;
    Rows query, keys, values, gradient, result;
    int64_t mask; // elements

    __device__ __forceinline__ Item(const Job &job, int64_t number) : number(number) {
        const int64_t position[1] = {number};
        int64_t offsets[5][1];
        locate<5>(job.leading, position, offsets);
        query = moved(job.query, offsets[1][0]);
        keys = moved(job.keys, offsets[2][0]);
        values = moved(job.values, offsets[3][0]);
        mask = offsets[4][0];
        gradient = moved(job.gradient, number * job.gradient.row * job.gradient.length);
        result = moved(job.result, number * job.result.row * job.result.length);
    }

    static __device__ __forceinline__ Rows moved(Rows rows, int64_t offset) {
        rows.data = static_cast<const T *>(rows.data) + offset;
        return rows;
    }
};

// As many neighbouring elements of a row as 16 bytes have; zeros outside.
template <class T> using Piece = Vector<T, 16 / sizeof(T)>;
template <class T>
__device__ __forceinline__ Piece<T> piece(const Rows &rows, int64_t row, int column) {
    constexpr int n = 16 / sizeof(T);
    Piece<T> result = {};
    if (row >= rows.length || column >= rows.features) return result;
    const T *from = static_cast<const T *>(rows.data) + row * rows.row + column * rows.column;
    if (rows.vectors && column + n <= rows.features)
        return *reinterpret_cast<const Piece<T> *>(from);
#pragma unroll
    for (int i = 0; i < n; i++)
        if (column + i < rows.features) result.element[i] = from[i * rows.column];
    return result;
}

// A thread's part of a stage, on its way through registers: what is fetched while another stage is
// multiplied comes meanwhile.
template <class T> struct StagePart {
    static constexpr int n = 16 / sizeof(T), steps = edge<T> * depth / n / threads;
    Piece<T> pieces[steps];

    // Where the thread's pieces are: two threads side by side have 32 bytes of a row, and those of
    // a warp, when they put theirs, different banks.
    static __device__ __forceinline__ int row(int step) {
        return (static_cast<int>(threadIdx.x) + step * threads) / 2 % edge<T>;
    }
    static __device__ __forceinline__ int column(int step) {
        const int i = static_cast<int>(threadIdx.x) + step * threads;
        return (i / 2 / edge<T> * 2 + i % 2) * n;
    }
    // Columns from `begin` on of the rows from `first` on.
    __device__ __forceinline__ void fetch(const Rows &rows, int64_t first, int begin) {
#pragma unroll
        for (int s = 0; s < steps; s++)
            pieces[s] = piece<T>(rows, first + row(s), begin + column(s));
    }
    // By column.
    template <class Stage> __device__ __forceinline__ void put(Stage &stage) const {
#pragma unroll
        for (int s = 0; s < steps; s++)
#pragma unroll
            for (int e = 0; e < n; e++)
                stage[column(s) + e][row(s)] = static_cast<ComputeType<T>>(pieces[s].element[e]);
    }
};

// The same of a square of rows, which stay rows.
template <class T> struct SquarePart {
    static constexpr int n = 16 / sizeof(T), across_row = edge<T> / n;
    static constexpr int steps = edge<T> * across_row / threads;
    Piece<T> pieces[steps];

    __device__ __forceinline__ void fetch(const Rows &rows, int64_t first, int begin) {
#pragma unroll
        for (int s = 0; s < steps; s++) {
            const int i = static_cast<int>(threadIdx.x) + s * threads;
            pieces[s] = piece<T>(rows, first + i / across_row, begin + i % across_row * n);
        }
    }
    template <class Square> __device__ __forceinline__ void put(Square &square) const {
#pragma unroll
        for (int s = 0; s < steps; s++) {
            const int i = static_cast<int>(threadIdx.x) + s * threads;
#pragma unroll
            for (int e = 0; e < n; e++)
                square[i / across_row][i % across_row * n + e] =
                    static_cast<ComputeType<T>>(pieces[s].element[e]);
        }
    }
};

// sums[i][j] = the product of row y + i of the left tile and row x + j of the right one, where
// (y, x) is the thread's place. Ends with other threads still reading the stages.
template <class T>
__device__ __forceinline__ void multiply_rows(Elements<T> &sums, const Rows &left, int64_t first,
                                              const Rows &right, int64_t second,
                                              Shared<T> &shared) {
    constexpr int n = elements<T>;
    using Some = Vector<ComputeType<T>, n>;
    const int y = static_cast<int>(threadIdx.x) / across * n;
    const int x = static_cast<int>(threadIdx.x) % across * n;
#pragma unroll
    for (int i = 0; i < n; i++)
#pragma unroll
        for (int j = 0; j < n; j++) sums[i][j] = 0;
    StagePart<T> a_part, b_part;
    a_part.fetch(left, first, 0), b_part.fetch(right, second, 0);
    for (int begin = 0; begin < left.features; begin += depth) {
        __syncthreads();
        a_part.put(shared.stages[0]), b_part.put(shared.stages[1]);
        __syncthreads();
        if (begin + depth < left.features) {
            a_part.fetch(left, first, begin + depth);
            b_part.fetch(right, second, begin + depth);
        }
        const int end = left.features - begin < depth ? left.features - begin : depth;
#pragma unroll 8
        for (int k = 0; k < end; k++) {
            const Some a = *reinterpret_cast<const Some *>(&shared.stages[0][k][y]);
            const Some b = *reinterpret_cast<const Some *>(&shared.stages[1][k][x]);
#pragma unroll
            for (int i = 0; i < n; i++)
#pragma unroll
                for (int j = 0; j < n; j++) sums[i][j] += a.element[i] * b.element[j];
        }
    }
}

// sums[c][i][j] += weights[.][y + i] times column c edge + x + j of the rows from `first` on, the
// first columns of which are fetched. What was written to the weights before is seen; ends with
// other threads still reading them.
template <class T, int CHUNKS>
__device__ __forceinline__ void add_weighted(Elements<T> (&sums)[CHUNKS], const Rows &rows,
                                             int64_t first, SquarePart<T> &fetched,
                                             Shared<T> &shared) {
    constexpr int n = elements<T>, width = edge<T>;
    using Some = Vector<ComputeType<T>, n>;
    const int y = static_cast<int>(threadIdx.x) / across * n;
    const int x = static_cast<int>(threadIdx.x) % across * n;
    const int end = rows.length - first < width ? static_cast<int>(rows.length - first) : width;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        if (c * width >= rows.features) break;
        __syncthreads();
        fetched.put(shared.values);
        __syncthreads();
        if (c + 1 < CHUNKS && (c + 1) * width < rows.features)
            fetched.fetch(rows, first, (c + 1) * width);
        if (c * width + x >= rows.features) continue;
        Elements<T> part =
            {}; // of this tile: one chain through all rows would err with their number
#pragma unroll 4
        for (int k = 0; k < end; k++) {
            const Some a = *reinterpret_cast<const Some *>(&shared.weights[k][y]);
            const Some b = *reinterpret_cast<const Some *>(&shared.values[k][x]);
#pragma unroll
            for (int i = 0; i < n; i++)
#pragma unroll
                for (int j = 0; j < n; j++) part[i][j] += a.element[i] * b.element[j];
        }
#pragma unroll
        for (int i = 0; i < n; i++)
#pragma unroll
            for (int j = 0; j < n; j++) sums[c][i][j] += part[i][j];
    }
}

// The thread's elements of a tile of weights, each of which is of a row that is summed over (x) and
// one that is written (y).
template <class T>
__device__ __forceinline__ void put_weights(const Elements<T> &values, Shared<T> &shared) {
    constexpr int n = elements<T>;
    const int y = static_cast<int>(threadIdx.x) / across * n;
    const int x = static_cast<int>(threadIdx.x) % across * n;
#pragma unroll
    for (int j = 0; j < n; j++) {
        Vector<ComputeType<T>, n> some;
#pragma unroll
        for (int i = 0; i < n; i++) some.element[i] = values[i][j];
        *reinterpret_cast<Vector<ComputeType<T>, n> *>(&shared.weights[x + j][y]) = some;
    }
}

// sums times factors[i], to contiguous rows.
template <class T, int CHUNKS>
__device__ __forceinline__ void store_rows(T *to, const Elements<T> (&sums)[CHUNKS],
                                           const ComputeType<T> (&factors)[elements<T>],
                                           int64_t first, int64_t length, int features) {
    constexpr int n = elements<T>;
    const int y = static_cast<int>(threadIdx.x) / across * n;
    const int x = static_cast<int>(threadIdx.x) % across * n;
#pragma unroll
    for (int i = 0; i < n; i++) {
        if (first + y + i >= length) break;
        T *row = to + (first + y + i) * features;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
#pragma unroll
            for (int j = 0; j < n; j++)
                if (c * edge<T> + x + j < features)
                    row[c * edge<T> + x + j] = static_cast<T>(sums[c][i][j] * factors[i]);
    }
}

// A number of a mask, to be added.
template <class A> __device__ __forceinline__ A mask_number(const Job &job, int64_t offset) {
    const auto as = [&](auto tag) {
        return static_cast<const typename decltype(tag)::type *>(job.mask)[offset];
    };
    switch (job.mask_kind) {
    case Mask::half: return static_cast<A>(static_cast<float>(as(Tag<Half>())));
    case Mask::bfloat: return static_cast<A>(static_cast<float>(as(Tag<BFloat16>())));
    case Mask::single: return static_cast<A>(as(Tag<float>()));
    case Mask::twice: {
        const double number = as(Tag<double>());
        if constexpr (sizeof(A) == 4) { // the least double is no -infinity
            if (number < -3.4028234663852886e38 && number >= -1.7976931348623157e308)
                return static_cast<A>(-3.4028234663852886e38);
        }
        return static_cast<A>(number);
    }
    default: return A(0);
    }
}

// Whether all keys of a tile are there and take part with the queries of another one, with nothing
// to be added. What comes of queries that are not there nobody reads.
template <class T>
__device__ __forceinline__ bool is_plain(const Job &job, int64_t query, int64_t key) {
    return job.mask_kind == Mask::none && key + edge<T> <= job.keys.length &&
           !(job.causal && key + edge<T> - 1 > query);
}

// A product as a score, and whether the query takes part with the key: neither a mask of bools nor
// an order is against it, and both are there.
template <class A>
__device__ __forceinline__ bool score(const Job &job, int64_t mask, int64_t query, int64_t key,
                                      bool plain, A &value) {
    value *= static_cast<A>(job.scale);
    if (plain) return true;
    const bool there = query < job.query.length && key < job.keys.length;
    bool kept = there && !(job.causal && key > query);
    if (there && job.mask_kind != Mask::none) {
        const int64_t offset = mask + query * job.mask_row + key * job.mask_column;
        if (job.mask_kind == Mask::boolean)
            kept = kept && bool(static_cast<const Bool *>(job.mask)[offset]);
        else
            value += mask_number<A>(job, offset);
    }
    if (!kept) value = -static_cast<A>(INFINITY);
    return kept;
}

// ---- On the host --------------------------------------------------------------------------------

// The operands of a call. The last three are of the backward pass.
struct Operands {
    const pvg_array *query, *keys, *values, *mask;
    double scale;
    int causal;
    const pvg_array *logsum, *gradient, *result;
};

// The operands' shapes together.
struct Shape {
    int ndim; // of the result
    int64_t leading[PVG_MAX_NDIM], items, length, size;
    int features, width; // of query and keys, of values
    // (..., rows, columns), or (..., rows) with 0 columns.
    int of(int64_t rows, int64_t columns, int64_t *shape) const;
};

// Errors: VALUE, TYPE. The arrays' handles were checked.
int find_shape(const Operands &operands, Shape *shape);
// What the kernels need of query, keys, values and mask.
void describe(const Operands &operands, const Shape &shape, Job *job);
Rows contiguous_rows(const pvg_array *a, int64_t length, int features);

} // namespace pvg::attention
