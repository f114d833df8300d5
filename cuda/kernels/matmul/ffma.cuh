// The kernel that ffma.cu makes for some tiles and layouts: float32 products on the CUDA cores
// whose stages come by cp.async, which needs no registers; ffma_tile.cuh says how the rest works.
//
// An operand that is contiguous along k is transposed on the way, element by element: the lanes of
// a warp read 4 whole sectors and write to 32 different banks.
//
// Slices in sequence: a tile of s slices multiplies, in its slice i, the groups of 8 of k that
// begin at 8 i, 8 (i + s), 8 (i + 2 s) ... A block with slices in sequence loads the same groups in
// the same order, two a stage, one slice (a chain of multiply-adds) after another, and adds the
// finished chains in the order in which the other tile's last step does.
#pragma once
#include "kernels/matmul/ffma_tile.cuh"

namespace pvg::matmul {

namespace {

// ---- From memory to shared memory ---------------------------------------------------------------

// Copies V elements to shared memory; or zeros, and then the address is not read. (The form of the
// instruction that takes a number of bytes would cost four more instructions a copy.)
template <int V>
__device__ __forceinline__ void copy_async(uint32_t to, const float *from, bool exists) {
    if constexpr (V == 4)
        asm volatile("{\n.reg .pred none;\n"
                     "setp.eq.b32 none, %2, 0;\n"
                     "cp.async.cg.shared.global [%0], [%1], 16, none;\n}\n" ::"r"(to),
                     "l"(from), "r"(int(exists)));
    else
        asm volatile("{\n.reg .pred none;\n"
                     "setp.eq.b32 none, %2, 0;\n"
                     "cp.async.ca.shared.global [%0], [%1], 4, none;\n}\n" ::"r"(to),
                     "l"(from), "r"(int(exists)));
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N));
}

// A thread's share of one operand's part of a stage: SIZE rows (of b: columns), DEPTH of k. Rows
// beyond the matrix hold anything, as they are not stored; along k there are zeros beyond it.
template <int SIZE, int DEPTH, bool ALONG_K, int V, int THREADS> struct StageLoader;

// Contiguous along k, any alignment. 8 threads read a sector of 8 elements of k.
template <int SIZE, int DEPTH, int THREADS> struct StageLoader<SIZE, DEPTH, true, 1, THREADS> {
    static constexpr int pitch = SIZE + 4; // against bank conflicts
    static constexpr int down = THREADS / 8, row_steps = SIZE / down, k_steps = DEPTH / 8;
    static_assert(SIZE % down == 0 && DEPTH % 8 == 0);
    const float *from[row_steps];
    uint32_t to;
    int k;

    // The part begins at first_row and first_k of the matrix, where `rows` rows are left.
    __device__ __forceinline__ void begin(const float *matrix, int64_t stride, int first_row,
                                          int first_k, int rows) {
        k = threadIdx.x % 8;
        int row = threadIdx.x / 8;
        to = (k * pitch + row) * 4;
        matrix += first_row * stride + first_k + k;
#pragma unroll
        for (int i = 0; i < row_steps; i++)
            from[i] = matrix + min(row + i * down, rows - 1) * stride;
    }
    // The next stage, of whose k so much is in the matrix.
    __device__ __forceinline__ void load(uint32_t stage, int depth) {
#pragma unroll
        for (int i = 0; i < row_steps; i++) {
#pragma unroll
            for (int j = 0; j < k_steps; j++)
                copy_async<1>(stage + to + (j * 8 * pitch + i * down) * 4, from[i] + j * 8,
                              j * 8 < depth - k);
            from[i] += DEPTH;
        }
    }
    // The next 8 elements of k, to a group of a stage; of them so many are in the matrix.
    __device__ __forceinline__ void load_group(uint32_t stage, int group, int depth) const {
#pragma unroll
        for (int i = 0; i < row_steps; i++)
            copy_async<1>(stage + to + (group * 8 * pitch + i * down) * 4, from[i], k < depth);
    }
    __device__ __forceinline__ void move(int distance, int64_t) {
#pragma unroll
        for (int i = 0; i < row_steps; i++) from[i] += distance;
    }
};

// Contiguous along the rows of a (the columns of b). V = 4 needs addresses that allow 16 bytes, and
// memory up to the next multiple of 4 rows.
template <int SIZE, int DEPTH, int V, int THREADS>
struct StageLoader<SIZE, DEPTH, false, V, THREADS> {
    static constexpr int pitch = SIZE;
    static constexpr int across = SIZE / V, down = THREADS / across, steps = DEPTH / down;
    static_assert(THREADS % across == 0 && DEPTH % down == 0);
    const float *from;
    int64_t step;
    uint32_t to;
    int k; // beyond the stage if the thread's rows are not in the matrix

    __device__ __forceinline__ void begin(const float *matrix, int64_t stride, int first_row,
                                          int first_k, int rows) {
        int row = threadIdx.x % across * V;
        k = threadIdx.x / across;
        to = (k * pitch + row) * 4;
        from = matrix + (int64_t(first_k) + k) * stride + first_row + row;
        step = down * stride;
        if (row >= rows) k = DEPTH;
    }
    __device__ __forceinline__ void load(uint32_t stage, int depth) {
#pragma unroll
        for (int i = 0; i < steps; i++) {
            copy_async<V>(stage + to + i * down * pitch * 4, from, i * down < depth - k);
            from += step;
        }
    }
    __device__ __forceinline__ void load_group(uint32_t stage, int group, int depth) const {
        static_assert(8 % down == 0);
        const float *at = from;
#pragma unroll
        for (int i = 0; i < 8 / down; i++) {
            copy_async<V>(stage + to + (group * 8 + i * down) * pitch * 4, at,
                          i * down < depth - k);
            at += step;
        }
    }
    __device__ __forceinline__ void move(int distance, int64_t stride) {
        from += distance * stride;
    }
};

template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V> struct Stage {
    using LoaderA =
        StageLoader<Tile::rows, Tile::depth, A_ALONG_K, A_ALONG_K ? 1 : V, Tile::threads>;
    using LoaderB =
        StageLoader<Tile::columns, Tile::depth, B_ALONG_K, B_ALONG_K ? 1 : V, Tile::threads>;
    static constexpr int a_bytes = Tile::depth * LoaderA::pitch * 4;
    static constexpr int bytes = a_bytes + Tile::depth * LoaderB::pitch * 4;
    static constexpr int all_bytes = Tile::stages * bytes;
};

// sum += the tile's rows of a times its columns of b; where k is halved, of the second half alone,
// and what the first half gives is parked. The last k of a stage is multiplied behind the barrier
// that opens the next, to hide the barrier and the first reads.
template <class Tile, class Parts>
__device__ __forceinline__ void multiply(const FfmaProduct &p, const Place &at,
                                         const Position<Tile> &thread, uint32_t shared,
                                         Sums<Tile> &sum) {
    typename Parts::LoaderA a;
    typename Parts::LoaderB b;
    a.begin(p.a + at.item * p.a_item, p.lda, at.row, at.k, at.rows);
    b.begin(p.b + at.item * p.b_item, p.ldb, at.column, at.k, at.columns);
    int left = at.terms; // of k, from the stage on that is loaded next
    auto load = [&](uint32_t stage) {
        const int depth = min(left, Tile::depth); // below zero beyond the end
        a.load(stage, depth);
        b.load(stage + Parts::a_bytes, depth);
        left -= Tile::depth;
    };
#pragma unroll
    for (int s = 0; s < Tile::stages - 1; s++) {
        load(shared + s * Parts::bytes);
        commit_copies();
    }
    constexpr int slice = Tile::slice_depth;
    const uint32_t in_a = (thread.row + thread.slice * slice * Parts::LoaderA::pitch) * 4;
    const uint32_t in_b =
        Parts::a_bytes + (thread.column + thread.slice * slice * Parts::LoaderB::pitch) * 4;
    const uint32_t last = shared + (Tile::stages - 1) * Parts::bytes;
    uint32_t reading = shared, writing = last;
    Fragments<Tile> fragments;
    const int stages = at.terms / Tile::depth + (at.terms % Tile::depth != 0);
    int stage = 0, end = Tile::halves && p.first_half ? p.first_half / Tile::depth : stages;
    for (;;) {
#pragma unroll 1
        for (; stage < end; stage++) {
            // This stage has come, for every thread; and every thread has read the one before, in
            // whose place the next is loaded.
            wait_for_copies<Tile::stages - 2>();
            __syncthreads();
            const uint32_t from_a = reading + in_a, from_b = reading + in_b;
            fragments.template read<Parts>(0, from_a, from_b, 0);
            fragments.multiply(1, sum);
#pragma unroll
            for (int k = 0; k < slice - 1; k++) {
                fragments.template read<Parts>((k + 1) % 2, from_a, from_b, k + 1);
                if (k == 0) load(writing);
                if (k == slice - 2) commit_copies();
                fragments.multiply(k % 2, sum);
            }
            reading = reading == last ? shared : reading + Parts::bytes;
            writing = writing == last ? shared : writing + Parts::bytes;
        }
        fragments.multiply(1, sum);
        if (!Tile::halves || end == stages) break;
        park_sums<Tile>(p, sum);
        fragments = Fragments<Tile>();
        end = stages;
    }
}

// ---- Slices in sequence -------------------------------------------------------------------------

// The groups of 8 of k in the order in which they are multiplied: split by split, slice by slice.
template <class Tile> struct Groups {
    unsigned k; // of the next group; beyond the matrix when there is none left
    int left;   // groups of its chain, from it on

    __device__ __forceinline__ explicit Groups(const FfmaProduct &p) : product(p) {
        begin_split();
        begin_chain();
    }
    // Goes on to the next group, which is so far away.
    __device__ __forceinline__ int advance() {
        const unsigned before = k;
        k += Tile::unit;
        if (--left == 0) next_chain();
        return static_cast<int>(k - before);
    }

private:
    const FfmaProduct &product;
    unsigned split = 0, first = 0; // unit of k at which the split begins
    int slice = 0, length = 0;     // of a chain

    __device__ __forceinline__ void next_chain() {
        if (++slice == Tile::sequence) {
            slice = 0, split++;
            begin_split();
        }
        begin_chain();
    }
    __device__ __forceinline__ void begin_split() {
        const unsigned splits = product.splits_in_sequence;
        if (split >= splits) return;
        first = first_unit(product, split, splits);
        length = first_unit(product, split + 1, splits) - first;
    }
    __device__ __forceinline__ void begin_chain() {
        left = length;
        k = split < product.splits_in_sequence ? first * Tile::unit + slice * 8 : product.k;
    }
};

// What a group leaves behind: the end of its chain, perhaps.
template <class Tile>
__device__ __forceinline__ void finish_group(Groups<Tile> &groups, Sums<Tile> &sum,
                                             Sums<Tile> &total) {
    const bool ends_chain = groups.left == 1;
    groups.advance();
    if (!ends_chain) return;
#pragma unroll
    for (int i = 0; i < Tile::micro_rows; i++)
#pragma unroll
        for (int j = 0; j < Tile::micro_columns; j++) total[i][j] += sum[i][j], sum[i][j] = 0;
}

// total += the tile's rows of a times its columns of b. Stages go round as in multiply.
template <class Tile, class Parts>
__device__ __forceinline__ void multiply_in_sequence(const FfmaProduct &p, const Place &at,
                                                     const Position<Tile> &thread, uint32_t shared,
                                                     Sums<Tile> &total) {
    typename Parts::LoaderA a;
    typename Parts::LoaderB b;
    a.begin(p.a + at.item * p.a_item, p.lda, at.row, 0, at.rows);
    b.begin(p.b + at.item * p.b_item, p.ldb, at.column, 0, at.columns);
    Groups<Tile> loaded(p), multiplied(p);
    constexpr int groups = Tile::depth / 8;
    auto load = [&](uint32_t stage) {
#pragma unroll
        for (int group = 0; group < groups; group++) {
            const int depth = min(static_cast<int>(p.k - loaded.k), 8); // zero or below at the end
            a.load_group(stage, group, depth);
            b.load_group(stage + Parts::a_bytes, group, depth);
            const int distance = loaded.advance();
            a.move(distance, p.lda);
            b.move(distance, p.ldb);
        }
    };
#pragma unroll
    for (int s = 0; s < Tile::stages - 1; s++) {
        load(shared + s * Parts::bytes);
        commit_copies();
    }
    const uint32_t in_a = thread.row * 4, in_b = Parts::a_bytes + thread.column * 4;
    const uint32_t last = shared + (Tile::stages - 1) * Parts::bytes;
    uint32_t reading = shared, writing = last;
    Fragments<Tile> fragments;
    Sums<Tile> sum = {};
    multiplied.left++; // the fragments of zeros that are multiplied before the first group
    const int stages = p.units * (Tile::sequence / groups);
#pragma unroll 1
    for (int stage = 0; stage < stages; stage++) {
        wait_for_copies<Tile::stages - 2>();
        __syncthreads();
        const uint32_t from_a = reading + in_a, from_b = reading + in_b;
        fragments.template read<Parts>(0, from_a, from_b, 0);
        fragments.multiply(1, sum);
        finish_group(multiplied, sum, total);
#pragma unroll
        for (int k = 0; k < Tile::depth - 1; k++) {
            fragments.template read<Parts>((k + 1) % 2, from_a, from_b, k + 1);
            if (k == 0) load(writing);
            if (k == Tile::depth - 2) commit_copies();
            fragments.multiply(k % 2, sum);
            if (k % 8 == 7) finish_group(multiplied, sum, total);
        }
        reading = reading == last ? shared : reading + Parts::bytes;
        writing = writing == last ? shared : writing + Parts::bytes;
    }
    fragments.multiply(1, sum);
    finish_group(multiplied, sum, total);
}

// ---- The kernel ---------------------------------------------------------------------------------

// Before 9.0 the compiler needs more registers than 128 a thread, which two blocks of 256 allow.
#if __CUDA_ARCH__ >= 900
template <class Tile> constexpr int blocks_that_fit = Tile::blocks;
#else
template <class Tile> constexpr int blocks_that_fit = Tile::threads == 256 ? 1 : Tile::blocks;
#endif

template <class Tile, bool A_ALONG_K, bool B_ALONG_K, int V>
__global__ void __launch_bounds__(Tile::threads, blocks_that_fit<Tile>)
    ffma_kernel(const __grid_constant__ FfmaProduct p) {
#if __CUDA_ARCH__ >= 800
    PVG_DYNAMIC_SHARED(float, memory);
    const uint32_t shared = hopper::shared_address(memory);
    const Place at = place_of_block<Tile>(p, blockIdx.x);
    const Position<Tile> thread(threadIdx.x);
    Sums<Tile> sum = {};
#if __CUDA_ARCH__ >= 900
    hopper::let_next_kernel_start();
    hopper::wait_for_previous_kernel();
#endif
    using Parts = Stage<Tile, A_ALONG_K, B_ALONG_K, V>;
    if constexpr (Tile::sequence > 1)
        multiply_in_sequence<Tile, Parts>(p, at, thread, shared, sum);
    else
        multiply<Tile, Parts>(p, at, thread, shared, sum);
    if (Tile::halves) add_parked(p, at, thread, sum);
    if (Tile::slices == 1 && p.plain) {
        store_sums(p, at, thread, sum);
        return;
    }
    wait_for_copies<0>(); // zeros beyond the end of k: they must not overwrite the sums
    share_sums(memory, thread, sum);
#if __CUDA_ARCH__ >= 900
    if (Tile::slices > 1 && p.splits > 1)
        hopper::cluster_sync();
    else
#endif
        __syncthreads();
    finish_tile<Tile>(p, at, memory);
#if __CUDA_ARCH__ >= 900
    // No block leaves while another reads its sums. What it has read it has also stored, so nothing
    // is left to be made visible.
    if (Tile::slices > 1 && p.splits > 1)
        asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                     "barrier.cluster.wait.acquire.aligned;" ::
                         : "memory");
#endif
#endif
}

} // namespace

} // namespace pvg::matmul
