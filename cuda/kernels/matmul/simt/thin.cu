// Thin products: m or n is at most 16, so that every element of the other operand, the long one, is
// used so few times that what counts is to keep enough of it on its way from memory.
//
//     c[r][j] = epilogue(sum over k of thin[r][k] long[j][k]), or c[j][r]
//
// A block brings a chunk of the thin operand to shared memory, whichever way that lies, and the
// long one goes from memory to registers. Two kernels, for the two ways in which it may lie.
// Contiguous along j: a lane owns some columns, and the warps of a block take turns with the k's.
// Contiguous along k: a warp owns some rows, and its lanes take turns. Each loads one element at a
// time, neighbours by neighbouring lanes, which is fast enough and needs no alignment.
//
// Several blocks share the k's where there are few of them: their sums are added up as those of
// stretches (stretches.cu). Who adds what follows from m, n, k, the dtype and the way in which the
// long operand lies.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"

namespace pvg::matmul {

namespace {

constexpr int warps = thin_warps, threads = 32 * warps;
// Before 9.0 the compiler needs more registers for float64.
template <class T> constexpr int blocks_that_fit = PVG_TARGET < 900 && sizeof(T) == 8 ? 1 : 2;
template <class T, int R>
constexpr int blocks_by_rows = sizeof(T) == 8 && R == 16 ? 1 : blocks_that_fit<T>;

struct ThinProduct {
    const void *thin, *streamed; // streamed: the long operand
    Destination c;
    void *sums;               // [item][split][row][column] of c, or NULL
    int64_t length, k, terms; // of the long side; of k, in all and in a split
    int64_t ld, ld_thin, item, item_thin;
    unsigned blocks, splits; // of an item, along the long side; along k
    int count;               // of the thin side
    bool rows;               // the thin side is c's rows
    bool thin_along_k;
};

struct ThinPlace {
    int64_t item, first, begin, end; // first: along the long side; begin, end: of k
    unsigned split;
};
__device__ __forceinline__ ThinPlace place_of_block(const ThinProduct &p, int width) {
    ThinPlace at;
    unsigned index = blockIdx.x;
    at.first = int64_t(index % p.blocks) * width, index /= p.blocks;
    at.split = index % p.splits, at.item = index / p.splits;
    at.begin = at.split * p.terms;
    at.end = p.k - at.begin < p.terms ? p.k : at.begin + p.terms;
    return at;
}

template <class T>
__device__ __forceinline__ void finish_element(const ThinProduct &p, const ThinPlace &at, int r,
                                               int64_t j, T value) {
    if (r >= p.count || j >= p.length) return;
    const int64_t row = p.rows ? r : j, column = p.rows ? j : r;
    if (p.sums) {
        const int64_t part = at.item * p.splits + at.split;
        static_cast<T *>(p.sums)[(part * p.c.rows + row) * p.c.columns + column] = value;
        return;
    }
    RowPart<T, 1> one = {{value}, {}, at.item * p.c.item_stride + row * p.c.row_stride + column,
                         1,       1,  false};
    load_bias<T>(p.c, column, one.count, one.step, one.bias);
    finish(p.c, one);
}

// A chunk of the thin operand in shared memory, zeros where it ends: as [k][r], or as [r][k].
template <class T, int R> struct ThinChunk {
    static constexpr int depth = thin_chunk(sizeof(T)); // of k
    // Against bank conflicts where it lies the other way; packs of r begin at 16 bytes.
    static constexpr int pitch_of_k = R + 16 / static_cast<int>(sizeof(T)), pitch_of_r = depth + 2;
    static constexpr int size =
        depth * pitch_of_k > R *pitch_of_r ? depth * pitch_of_k : R * pitch_of_r;

    template <bool BY_K>
    static __device__ __forceinline__ void load(T *chunk, const ThinProduct &p, const ThinPlace &at,
                                                int64_t first) {
        static_assert(threads % depth == 0 && threads % R == 0 && R * depth % threads == 0);
        const int thread = static_cast<int>(threadIdx.x);
        int r = p.thin_along_k ? thread / depth : thread % R;
        int k = p.thin_along_k ? thread % depth : thread / R;
        const int next_r = p.thin_along_k ? threads / depth : 0;
        const int next_k = p.thin_along_k ? 0 : threads / R;
        const T *from = static_cast<const T *>(p.thin) + at.item * p.item_thin +
                        (p.thin_along_k ? r * p.ld_thin + first + k : (first + k) * p.ld_thin + r);
        const int64_t next = (next_r + next_k) * p.ld_thin;
        const int left = static_cast<int>(at.end - first < depth ? at.end - first : depth);
        constexpr int turns = R * depth / threads, at_once = turns < 8 ? turns : 8;
#pragma unroll 1
        for (int first_turn = 0; first_turn < turns; first_turn += at_once) {
            T values[at_once];
#pragma unroll
            for (int turn = 0; turn < at_once; turn++) {
                const bool exists = r + turn * next_r < p.count && k + turn * next_k < left;
                values[turn] = exists ? from[turn * next] : T(0);
            }
#pragma unroll
            for (int turn = 0; turn < at_once; turn++) {
                const int to_r = r + turn * next_r, to_k = k + turn * next_k;
                chunk[BY_K ? to_k * pitch_of_k + to_r : to_r * pitch_of_r + to_k] = values[turn];
            }
            r += at_once * next_r, k += at_once * next_k, from += at_once * next;
        }
    }
};

// ---- Contiguous along the long side -------------------------------------------------------------

template <class T, int R> struct ThinColumns {
    static constexpr int each = 16 / static_cast<int>(sizeof(T)); // columns of a lane
    static constexpr int width = 32 * each, ahead = 4;            // of a block; k's on their way
    using Sums = T[R][each];
    static constexpr int shared_rows = 4; // whose sums all warps share at a time

    // sums += STEPS of the warp's k's, from k on; the lane's columns are e * 32 below `left`.
    template <int STEPS>
    static __device__ __forceinline__ void add(const T *&from, int64_t step, int left,
                                               const T *chunk, int k, Sums &sums) {
        T values[STEPS][each];
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
#pragma unroll
            for (int e = 0; e < each; e++) values[s][e] = e * 32 < left ? from[e * 32] : T(0);
            from += step;
        }
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            const T *factors = chunk + (k + s * warps) * ThinChunk<T, R>::pitch_of_k;
#pragma unroll
            for (int r = 0; r < R; r += each) {
                const auto pack = *reinterpret_cast<const Vector<T, each> *>(factors + r);
#pragma unroll
                for (int i = 0; i < each; i++)
#pragma unroll
                    for (int e = 0; e < each; e++)
                        sums[r + i][e] = fma(pack.element[i], values[s][e], sums[r + i][e]);
            }
        }
    }

    // The sums of all warps, in order, some rows at a time.
    static __device__ __forceinline__ void finish_all(const ThinProduct &p, const ThinPlace &at,
                                                      T *shared, const Sums &sums) {
        const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
        constexpr int size = shared_rows * width;
#pragma unroll
        for (int r = 0; r < R; r += shared_rows) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < shared_rows; i++)
#pragma unroll
                for (int e = 0; e < each; e++)
                    shared[warp * size + i * width + e * 32 + lane] = sums[r + i][e];
            __syncthreads();
            for (int i = thread; i < size; i += threads) {
                T sum = shared[i];
                for (int w = 1; w < warps; w++) sum += shared[w * size + i];
                finish_element<T>(p, at, r + i / width, at.first + i % width, sum);
            }
        }
    }
    static constexpr int shared_size = warps * shared_rows * width;
    static_assert(width == thin_columns(sizeof(T)) && R % shared_rows == 0);
};

template <class T, int R>
__global__ void __launch_bounds__(threads, blocks_that_fit<T>)
    thin_columns_kernel(const __grid_constant__ ThinProduct p) {
    using Columns = ThinColumns<T, R>;
    using Chunk = ThinChunk<T, R>;
    constexpr int size = Chunk::size > Columns::shared_size ? Chunk::size : Columns::shared_size;
    __shared__ __align__(16) T shared[size];
    const ThinPlace at = place_of_block(p, Columns::width);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    let_next_kernel_start();
    wait_for_previous_kernel();
    typename Columns::Sums sums = {};
    const int64_t column = at.first + lane, step = warps * p.ld;
    const int left =
        static_cast<int>(p.length - column < Columns::width ? p.length - column : Columns::width);
    const T *own = static_cast<const T *>(p.streamed) + at.item * p.item + column;
    for (int64_t first = at.begin; first < at.end; first += Chunk::depth) {
        __syncthreads(); // the chunk before has been read
        Chunk::template load<true>(shared, p, at, first);
        __syncthreads();
        const int count =
            static_cast<int>(at.end - first < Chunk::depth ? at.end - first : Chunk::depth);
        const T *from = own + (first + warp) * p.ld;
        int k = warp;
#pragma unroll 1
        for (; k + (Columns::ahead - 1) * warps < count; k += Columns::ahead * warps)
            Columns::template add<Columns::ahead>(from, step, left, shared, k, sums);
#pragma unroll 1
        for (; k < count; k += warps) Columns::template add<1>(from, step, left, shared, k, sums);
    }
    Columns::finish_all(p, at, shared, sums);
}

// ---- Contiguous along k -------------------------------------------------------------------------

template <class T, int R> struct ThinRows {
    static constexpr int each = thin_rows(R, sizeof(T)) / warps; // rows of a warp
    static constexpr int ahead = R == 16 ? 4 : 2;                // k's of a lane on their way
    static constexpr int count = R * each;                       // sums of a lane
    using Sums = T[each][R];

    // sums += STEPS of the lane's k's, from k on, of so many rows that there are; WHOLE: all of the
    // k's are below `left`.
    template <int STEPS, bool WHOLE>
    static __device__ __forceinline__ void add(const T *from, int64_t ld, int rows, const T *chunk,
                                               int k, int left, Sums &sums) {
        T values[STEPS][each];
#pragma unroll
        for (int e = 0; e < each; e++) {
#pragma unroll
            for (int s = 0; s < STEPS; s++) {
                const bool exists = e < rows && (WHOLE || k + 32 * s < left);
                values[s][e] = exists ? from[32 * s] : T(0);
            }
            from += ld;
        }
#pragma unroll
        for (int s = 0; s < STEPS; s++)
#pragma unroll
            for (int r = 0; r < R; r++) {
                const T factor = chunk[r * ThinChunk<T, R>::pitch_of_r + k + 32 * s];
#pragma unroll
                for (int e = 0; e < each; e++) sums[e][r] = fma(factor, values[s][e], sums[e][r]);
            }
    }

    // Each lane's part of the sums over all lanes: number lane * count / 32 and the ones after it.
    // OFFSET: to the lane with which it shares the first 2 HALF.
    template <int OFFSET = 16, int HALF = count / 2>
    static __device__ __forceinline__ void add_lanes(T (&all)[count]) {
        const bool upper = threadIdx.x & OFFSET;
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            const T own = upper ? all[i + HALF] : all[i], other = upper ? all[i] : all[i + HALF];
            all[i] = own + __shfl_xor_sync(~0u, other, OFFSET);
        }
        if constexpr (OFFSET > 1) add_lanes<OFFSET / 2, HALF / 2>(all);
    }
};

template <class T, int R>
__global__ void __launch_bounds__(threads, blocks_by_rows<T, R>)
    thin_rows_kernel(const __grid_constant__ ThinProduct p) {
    using Rows = ThinRows<T, R>;
    using Chunk = ThinChunk<T, R>;
    constexpr int each = Rows::each, step = 32 * Rows::ahead;
    static_assert(Chunk::depth % step == 0);
    __shared__ T shared[Chunk::size];
    const ThinPlace at = place_of_block(p, each * warps);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t first_row = at.first + warp * each;
    let_next_kernel_start();
    wait_for_previous_kernel();
    typename Rows::Sums sums = {};
    const int rows = static_cast<int>(p.length - first_row < each ? p.length - first_row : each);
    const T *own = static_cast<const T *>(p.streamed) + at.item * p.item + first_row * p.ld;
    for (int64_t first = at.begin; first < at.end; first += Chunk::depth) {
        __syncthreads(); // the chunk before has been read
        Chunk::template load<false>(shared, p, at, first);
        __syncthreads();
        const T *from = own + first + lane;
        const int left =
            static_cast<int>(at.end - first < Chunk::depth ? at.end - first : Chunk::depth);
        int k = 0;
#pragma unroll 1
        for (; k + step <= left; k += step)
            Rows::template add<Rows::ahead, true>(from + k, p.ld, rows, shared, k + lane, left,
                                                  sums);
#pragma unroll 1
        for (; k < left; k += 32)
            Rows::template add<1, false>(from + k, p.ld, rows, shared, k + lane, left, sums);
    }
    T all[Rows::count];
#pragma unroll
    for (int e = 0; e < each; e++)
#pragma unroll
        for (int r = 0; r < R; r++) all[e * R + r] = sums[e][r];
    Rows::add_lanes(all);
#pragma unroll
    for (int i = 0; i < Rows::count / 32; i++) {
        const int number = lane * (Rows::count / 32) + i;
        finish_element<T>(p, at, number % R, first_row + number / R, all[i]);
    }
}

// ---- Launching ----------------------------------------------------------------------------------

ThinProduct describe(const Gemm &g, const Plan &plan, bool *along_k) {
    ThinProduct p{};
    p.rows = thin_side_is_m(g);
    p.count = p.rows ? g.m : g.n, p.length = p.rows ? g.n : g.m, p.k = g.k;
    p.thin = p.rows ? g.a : g.b, p.streamed = p.rows ? g.b : g.a;
    p.ld = p.rows ? g.ldb : g.lda, p.ld_thin = p.rows ? g.lda : g.ldb;
    p.item = p.rows ? g.b_item : g.a_item, p.item_thin = p.rows ? g.a_item : g.b_item;
    p.thin_along_k = p.rows ? g.a_along_k : g.b_along_k;
    p.c = destination_of(g);
    p.blocks = static_cast<unsigned>(plan.tiles), p.splits = static_cast<unsigned>(plan.splits);
    p.terms = plan.terms;
    *along_k = p.rows ? g.b_along_k : g.a_along_k;
    return p;
}

template <class T, int R>
int launch_part(Call &call, const Plan &plan, int64_t items, bool along_k, const ThinProduct &p) {
    const unsigned grid = blocks_for(items * plan.tiles * plan.splits, 1);
    if (along_k)
        PVG_LAUNCH_WITH((LaunchExtras{1, plan.overlap}), (thin_rows_kernel<T, R>), grid, threads, 0,
                        call.stream, p);
    else
        PVG_LAUNCH_WITH((LaunchExtras{1, plan.overlap}), (thin_columns_kernel<T, R>), grid, threads,
                        0, call.stream, p);
    return PVG_OK;
}

template <class T> int launch_dtype(Call &call, const Gemm &given, const Plan &plan) {
    Workspace space;
    if (plan.workspace) PVG_PASS(space.open(call, static_cast<size_t>(plan.workspace)));
    for (int64_t first = 0; first < given.items; first += plan.items) {
        Gemm g = moved(given, first * given.a_item, first * given.b_item, first * given.c_item);
        if (g.items > plan.items) g.items = plan.items;
        if (g.items > given.items - first) g.items = static_cast<int>(given.items - first);
        bool along_k;
        ThinProduct p = describe(g, plan, &along_k);
        p.sums = plan.workspace ? space.as<void>() : nullptr;
        PVG_PASS((p.count <= 8 ? launch_part<T, 8> : launch_part<T, 16>)(call, plan, g.items,
                                                                         along_k, p));
        if (p.sums) PVG_PASS(add_parts(call, g, plan.overlap, p.sums, g.items, plan.splits));
    }
    return PVG_OK;
}

} // namespace

int launch_thin(Call &call, const Gemm &g, const Plan &plan) {
    return g.dtype == PVG_FLOAT64 ? launch_dtype<double>(call, g, plan)
                                  : launch_dtype<float>(call, g, plan);
}

} // namespace pvg::matmul
