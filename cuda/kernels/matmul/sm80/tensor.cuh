// float16, bfloat16 and TF32 products by the tensor-core instructions of a warp (mma.sync), compute
// capability 8.0 and later: the kernel that tensor.cu launches. Sums are in float32.
//
// A block of eight warps computes a tile of 128 x 128 of c and walks along k in stages of 64 bytes
// (32 halves or 16 floats): while it multiplies one, the next three are on their way to shared
// memory by cp.async. A warp owns 64 x 32 of the tile and reads its fragments by ldmatrix, which
// transposes halves that are stored along m or n on the way. The sums go through shared memory, so
// that bias and activation are applied, and c is stored, along the rows.
#pragma once
#include "kernels/fragments.cuh"
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/sm80/mma.cuh"
#include "kernels/matmul/sm80/rounding.cuh"
#include "kernels/matmul/sm80/sums.cuh"

namespace pvg::matmul {

namespace {

using fragments::read_matrices; // of TF32: 8 x 4 elements, of which a lane gets one of each

constexpr int depth_bytes = 64; // of a stage
constexpr int step_bytes = 32;  // of k, in one instruction
constexpr int pad_bytes = 16;

// Operands: Half, BFloat16, or float for TF32.
template <class T, bool ALONG_K>
using MmaLoader =
    TileLoader<T, side, depth_bytes / static_cast<int>(sizeof(T)), ALONG_K,
               static_cast<int>(16 / sizeof(T)), static_cast<int>(pad_bytes / sizeof(T)), threads>;

struct WarpProduct {
    const void *a, *b;
    Destination c; // float32, though the operands may be 16 bits, or of their type
    int64_t lda, ldb, a_item, b_item;
    int m, n, k;
    int tiles_down, tiles_across; // of c
    bool aligned;                 // four of a row of c may be stored at once
};

// ---- The sums -----------------------------------------------------------------------------------

// A warp's part of the tile: sums[i][j] are those of 16 rows and 8 columns, of which a thread has
// columns 2 (lane % 4) and the one after it of rows lane / 4 and lane / 4 + 8.
using MmaSums = float[down][across][4];

__device__ __forceinline__ void round_to_tf32(uint32_t (&values)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) values[i] = round_single(__uint_as_float(values[i]));
}

// sum += a b for 16 x 8 elements and 32 bytes of k.
template <class T>
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
#define PVG_MMA(SHAPE)                                                                       \
    asm volatile("mma.sync.aligned." SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
                 "{%0, %1, %2, %3};"                                                         \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if constexpr (std::is_same_v<T, Half>)
        PVG_MMA("m16n8k16.row.col.f32.f16.f16.f32");
    else if constexpr (std::is_same_v<T, BFloat16>)
        PVG_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
    else
        PVG_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
#undef PVG_MMA
}

// What a warp reads of the tiles in shared memory. An instruction wants of a two matrices of rows,
// and behind them in k two more; of b, for two times 8 columns, two that follow in k, and two more.
template <class T, bool A_ALONG_K, bool B_ALONG_K> struct MmaFragments {
    static constexpr int size = static_cast<int>(sizeof(T)), step = step_bytes / size; // elements
    static constexpr int pitch_a = MmaLoader<T, A_ALONG_K>::pitch * size;
    static constexpr int pitch_b = MmaLoader<T, B_ALONG_K>::pitch * size;
    static_assert(size == 2 || (A_ALONG_K && B_ALONG_K), "ldmatrix transposes halves");

    uint32_t a[down][4], b[across / 2][4];

    // The address that the lane gives to the first ldmatrix, in bytes from the beginning of the
    // tile.
    static __device__ __forceinline__ uint32_t first_a(int row, int lane) {
        if (A_ALONG_K) return (row + lane % 16) * pitch_a + lane / 16 * 16;
        return (lane % 8 + lane / 16 * 8) * pitch_a + (row + lane / 8 % 2 * 8) * size;
    }
    static __device__ __forceinline__ uint32_t first_b(int column, int lane) {
        if (B_ALONG_K) return (column + lane % 8 + lane / 16 * 8) * pitch_b + lane / 8 % 2 * 16;
        return lane % 16 * pitch_b + (column + lane / 16 * 8) * size;
    }
    __device__ __forceinline__ void read(uint32_t from_a, uint32_t from_b, int step_number) {
        from_a += step_number * (A_ALONG_K ? step_bytes : step * pitch_a);
        from_b += step_number * (B_ALONG_K ? step_bytes : step * pitch_b);
#pragma unroll
        for (int i = 0; i < down; i++)
            read_matrices<!A_ALONG_K>(from_a + i * 16 * (A_ALONG_K ? pitch_a : size), a[i]);
#pragma unroll
        for (int j = 0; j < across / 2; j++)
            read_matrices<!B_ALONG_K>(from_b + j * 16 * (B_ALONG_K ? pitch_b : size), b[j]);
        if constexpr (size == 4) {
#pragma unroll
            for (int i = 0; i < down; i++) round_to_tf32(a[i]);
#pragma unroll
            for (int j = 0; j < across / 2; j++) round_to_tf32(b[j]);
        }
    }
    __device__ __forceinline__ void multiply_into(MmaSums &sums) const {
#pragma unroll
        for (int i = 0; i < down; i++)
#pragma unroll
            for (int j = 0; j < across; j++)
                multiply<T>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
};

// `row` and `column` are those of the warp's part in the tile.
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void multiply_tile(const WarpProduct &p, const TilePlace &at, int row,
                                              int column, uint32_t shared, MmaSums &sums) {
    using LoaderA = MmaLoader<T, A_ALONG_K>;
    using LoaderB = MmaLoader<T, B_ALONG_K>;
    using Parts = MmaFragments<T, A_ALONG_K, B_ALONG_K>;
    constexpr int bytes = LoaderA::bytes + LoaderB::bytes;
    constexpr int depth = depth_bytes / static_cast<int>(sizeof(T));
    LoaderA a(static_cast<const T *>(p.a) + at.item * p.a_item, p.lda, at.row, 0, at.rows);
    LoaderB b(static_cast<const T *>(p.b) + at.item * p.b_item, p.ldb, at.column, 0, at.columns);
    int left = p.k; // of k, from the stage on that is loaded next
    auto load = [&](uint32_t stage) {
        a.load(stage, left);
        b.load(stage + LoaderA::bytes, left);
        commit_copies();
        left -= depth;
    };
#pragma unroll
    for (int s = 0; s < stages - 1; s++) load(shared + s * bytes);
    const int lane = threadIdx.x % 32;
    const uint32_t in_a = Parts::first_a(row, lane);
    const uint32_t in_b = LoaderA::bytes + Parts::first_b(column, lane);
    const uint32_t last = shared + (stages - 1) * bytes;
    uint32_t reading = shared, writing = last;
    const int count = (p.k - 1) / depth + 1;
#pragma unroll 1
    for (int stage = 0; stage < count; stage++) {
        // This stage has come, for every thread; and every thread has read the one before, in whose
        // place the next is loaded.
        wait_for_copies<stages - 2>();
        __syncthreads();
        load(writing);
#pragma unroll
        for (int step = 0; step < depth_bytes / step_bytes; step++) {
            Parts fragments;
            fragments.read(reading + in_a, reading + in_b, step);
            fragments.multiply_into(sums);
        }
        reading = reading == last ? shared : reading + bytes;
        writing = writing == last ? shared : writing + bytes;
    }
}

// ---- The epilogue -------------------------------------------------------------------------------

// The finished tile: bias, activation, in the dtype of c, which is T. A thread stays in its
// columns.
template <class T>
__device__ __forceinline__ void finish_tile(const WarpProduct &p, const TilePlace &at,
                                            const float *shared) {
    const int column = static_cast<int>(threadIdx.x) % (side / 4) * 4;
    RowPart<T, 4> four;
    four.count = at.columns - column, four.step = 1, four.packed = p.aligned;
    if (four.count <= 0) return;
    const Destination &c = p.c;
    const int64_t corner = at.item * c.item_stride + at.row * c.row_stride + at.column + column;
    load_bias<T>(c, int64_t(at.column) + column, four.count, four.step, four.bias);
#pragma unroll 1
    for (int row = static_cast<int>(threadIdx.x) / (side / 4); row < side && row < at.rows;
         row += threads / (side / 4)) {
        const float4 total = *reinterpret_cast<const float4 *>(shared + row * sums_pitch + column);
        four.sums[0] = total.x, four.sums[1] = total.y;
        four.sums[2] = total.z, four.sums[3] = total.w;
        four.at = corner + row * c.row_stride;
        finish(c, four);
    }
}

// ---- The kernel ---------------------------------------------------------------------------------

template <class T, bool A_ALONG_K, bool B_ALONG_K>
__global__ void __launch_bounds__(threads, 2) mma_kernel(const __grid_constant__ WarpProduct p) {
#if __CUDA_ARCH__ >= 800
    PVG_DYNAMIC_SHARED(float, memory);
    const TilePlace at = place_of_tile(blockIdx.x, p);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int row = warp / warps_across * warp_rows, column = warp % warps_across * warp_columns;
    MmaSums sums = {};
#if __CUDA_ARCH__ >= 900
    let_next_kernel_start();
    wait_for_previous_kernel();
#endif
    multiply_tile<T, A_ALONG_K, B_ALONG_K>(p, at, row, column, shared_address(memory), sums);
    share_sums<sums_pitch>(memory, row, column, sums);
    __syncthreads();
    if (std::is_same_v<T, float> || p.c.dtype == PVG_FLOAT32)
        finish_tile<float>(p, at, memory);
    else
        finish_tile<T>(p, at, memory);
#endif
}

} // namespace

} // namespace pvg::matmul
