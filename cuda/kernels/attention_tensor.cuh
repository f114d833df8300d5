// What the kernels of attention on tensor cores share: float16 and bfloat16, heads of up to 128
// features, compute capability 8.0.
//
// A block of four warps has a tile of rows of one operand (of queries, or of keys), of which each
// warp has 16 R, and walks along the rows of another, a tile of which is multiplied while the next
// one comes by cp.async. Scores stay in registers: as an accumulator holds them, two of them side
// by side are the left operand of the next product.
//
// Rows in shared memory are DEPTH elements and a pad of 16 bytes, which keeps eight rows in
// different banks; what is not there is zeros.
#pragma once
#include "kernels/attention_kernels.cuh"
#include "kernels/fragments.cuh"
#include "kernels/quick_exp.cuh"

namespace pvg::attention {

constexpr int most_tensor_features = 128;

// Whether the kernels of this file's users take it. Errors: CUDA.
int takes_tensor_cores(const Call &call, const Operands &operands, const Shape &shape, bool *takes);
int launch_tensor(Call &call, int dtype, const Job &job);
// The same for the kernels of attention_wgmma.cuh, of what launch_tensor is given.
int takes_wgmma(const Call &call, const Job &job, bool *takes);
int launch_wgmma(Call &call, int dtype, const Job &job);
int launch_wgmma_backward(Call &call, int dtype, const Job &job, pvg_array *const *results);
// job.products is known; to query, keys and values.
int launch_tensor_backward(Call &call, int dtype, const Job &job, pvg_array *const *results);
// The same of float32, see attention_single.cuh; and what job.to has to become of each row.
int launch_single(Call &call, const Job &job);
int launch_single_products(Call &call, const Job &job);
int launch_single_backward(Call &call, const Job &job, pvg_array *const *results);

namespace {

using namespace fragments;

constexpr int tensor_warps = 4, tensor_threads = 32 * tensor_warps;
constexpr float log2_e = 1.44269504f, ln_2 = 0.693147181f;

template <int DEPTH> inline constexpr int pitch = 2 * DEPTH + 16;  // bytes
template <int ROWS> inline constexpr int offsets_pitch = ROWS + 8; // floats
// An offset of a score that says: the query takes no part with the key. It is a NaN that no mask
// has as a number that was rounded or computed.
constexpr uint32_t not_kept = 0x7fedcba9;

// Accumulators of 16 R rows and COLUMNS columns: of each 16 x 8 a lane has columns 2 (lane % 4) and
// the next one, of rows lane / 4 and lane / 4 + 8.
template <int R, int COLUMNS> using Sums = float[R][COLUMNS / 8][4];

// ---- From memory to shared memory ---------------------------------------------------------------

// Starts the copying of ROWS rows from `first` on by THREADS threads.
template <class T, int DEPTH, int ROWS, int THREADS = tensor_threads>
__device__ __forceinline__ void load_rows(unsigned char *to, const Rows &rows, int64_t first) {
    constexpr int across = DEPTH / 8, down = THREADS / across;
    static_assert(ROWS % down == 0);
    const int row = static_cast<int>(threadIdx.x) / across;
    const int column = static_cast<int>(threadIdx.x) % across * 8;
    const int left = rows.features - column, count = left < 0 ? 0 : left < 8 ? left : 8;
    const T *data = static_cast<const T *>(rows.data);
    to += row * pitch<DEPTH> + column * 2;
    if (rows.vectors) {
        const T *from = data + (first + row) * rows.row + column;
        const uint32_t address = shared_address(to);
#pragma unroll
        for (int i = 0; i < ROWS / down; i++) {
            const int bytes = first + row + i * down < rows.length ? count * 2 : 0;
            copy_async<16>(address + i * down * pitch<DEPTH>,
                           bytes ? from + i * down * rows.row : data, bytes);
        }
        return;
    }
#pragma unroll 1
    for (int i = 0; i < ROWS / down; i++) {
        const int64_t number = first + row + i * down;
        uint16_t some[8] = {};
#pragma unroll
        for (int e = 0; e < 8; e++)
            if (number < rows.length && e < count)
                some[e] = data[number * rows.row + (column + e) * rows.column].bits;
        uint4 four;
        memcpy(&four, some, 16);
        *reinterpret_cast<uint4 *>(to + i * down * pitch<DEPTH>) = four;
    }
}

// ---- Products -----------------------------------------------------------------------------------

// What of 16 rows of a left operand the lane gives ldmatrix the beginning of.
template <int DEPTH> __device__ __forceinline__ uint32_t left_place() {
    const uint32_t lane = threadIdx.x % 32;
    return lane % 16 * pitch<DEPTH> + lane / 16 * 16;
}
// The same of a right operand that is read by rows (a column of it), and of one by columns.
template <int DEPTH> __device__ __forceinline__ uint32_t right_place() {
    const uint32_t lane = threadIdx.x % 32;
    return (lane % 8 + lane / 16 * 8) * pitch<DEPTH> + lane / 8 % 2 * 16;
}

// A warp's left operand: the first KEPT of its steps of 16 features are in registers, from keep()
// on, the others are read where they are used.
template <int DEPTH, int R, int KEPT> struct Left {
    uint32_t place;                       // with left_place
    uint32_t kept[KEPT ? KEPT : 1][R][4]; // none are written without KEPT

    __device__ __forceinline__ explicit Left(const unsigned char *own)
        : place(shared_address(own) + left_place<DEPTH>()) {}
    __device__ __forceinline__ void load(int k, uint32_t (&to)[R][4]) const {
#pragma unroll
        for (int r = 0; r < R; r++)
            read_matrices<false>(place + r * 16 * pitch<DEPTH> + k * 32, to[r]);
    }
    __device__ __forceinline__ void keep() {
#pragma unroll
        for (int k = 0; k < KEPT; k++) load(k, kept[k]);
    }
    __device__ __forceinline__ void read(int k, uint32_t (&to)[R][4]) const {
        if constexpr (KEPT > 0) {
            if (k < KEPT) {
#pragma unroll
                for (int r = 0; r < R; r++)
#pragma unroll
                    for (int i = 0; i < 4; i++) to[r][i] = kept[k][r][i];
                return;
            }
        }
        load(k, to);
    }
};

// sums = left right', along the features; the right operand is at its place.
template <class T, int DEPTH, int R, int COLUMNS, int KEPT>
__device__ __forceinline__ void
multiply_features(Sums<R, COLUMNS> &sums, const Left<DEPTH, R, KEPT> &left, uint32_t right) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[r][j][i] = 0;
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        uint32_t a[R][4];
        left.read(k, a);
#pragma unroll
        for (int j = 0; j < COLUMNS / 16; j++) {
            uint32_t b[4];
            read_matrices<false>(right + j * 16 * pitch<DEPTH> + k * 32, b);
#pragma unroll
            for (int r = 0; r < R; r++) {
                multiply<T>(sums[r][2 * j], a[r], b[0], b[1]);
                multiply<T>(sums[r][2 * j + 1], a[r], b[2], b[3]);
            }
        }
    }
}

// sums += weights right: COLUMNS rows of the right operand, which is at its (left) place.
template <class T, int DEPTH, int R, int COLUMNS>
__device__ __forceinline__ void add_products(Sums<R, DEPTH> &sums, const Sums<R, COLUMNS> &weights,
                                             uint32_t right) {
#pragma unroll
    for (int k = 0; k < COLUMNS / 16; k++) {
        uint32_t a[R][4];
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[r][i] = pair_of<T>(weights[r][2 * k + i / 2][i % 2 * 2],
                                     weights[r][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int j = 0; j < DEPTH / 16; j++) {
            uint32_t b[4];
            read_matrices<true>(right + k * 16 * pitch<DEPTH> + j * 32, b);
#pragma unroll
            for (int r = 0; r < R; r++) {
                multiply<T>(sums[r][2 * j], a[r], b[0], b[1]);
                multiply<T>(sums[r][2 * j + 1], a[r], b[2], b[3]);
            }
        }
    }
}

// ---- Scores that need more than a factor --------------------------------------------------------

// What is added to scores in powers of two, or not_kept, for a tile of queries beside one of keys.
// BY_KEY: a row of the tile is a key. All threads; a barrier has to follow.
template <int ROWS, int COLUMNS, bool BY_KEY>
__device__ __forceinline__ void load_offsets(float *to, const Job &job, int64_t mask, int64_t query,
                                             int64_t key) {
    constexpr int keys = BY_KEY ? ROWS : COLUMNS;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * COLUMNS;
         i += static_cast<int>(blockDim.x)) {
        const int x = i % keys, y = i / keys;
        float value = 0;
        if (score(job, mask, query + y, key + x, false, value)) {
            const float wide = value * log2_e;
            value = isinf(wide) && !isinf(value) ? copysignf(3.40282347e38f, value) : wide;
        } else {
            value = float_of_bits(not_kept);
        }
        to[BY_KEY ? x * offsets_pitch<COLUMNS> + y : y * offsets_pitch<COLUMNS> + x] = value;
    }
}

// scores = scores * factor + their offsets; what takes no part is -infinity and has a bit in
// left_out. `offsets` begin at the warp's first row and the first column.
template <int R, int COLUMNS, int PITCH>
__device__ __forceinline__ void add_offsets(Sums<R, COLUMNS> &scores, const float *offsets,
                                            float factor, unsigned (&left_out)[R]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < R; r++) {
        left_out[r] = 0;
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = r * 16 + i / 2 * 8 + lane / 4,
                          column = j * 8 + lane % 4 * 2 + i % 2;
                const float offset = offsets[row * PITCH + column];
                const bool out = float_bits(offset) == not_kept;
                scores[r][j][i] = out ? -INFINITY : fmaf(scores[r][j][i], factor, offset);
                left_out[r] |= unsigned(out) << (j * 4 + i);
            }
    }
}

// Without offsets: columns from `left` on are not there, and a row takes part with those columns
// that are below `diagonal` plus its number; BY_KEY with the others.
template <int R, int COLUMNS, bool BY_KEY>
__device__ __forceinline__ void cut_scores(Sums<R, COLUMNS> &scores, int64_t left, int64_t diagonal,
                                           unsigned (&left_out)[R]) {
    constexpr int64_t far = 1 << 20; // more than a tile has
    const int end = static_cast<int>(left < far ? left : far);
    const int border = static_cast<int>(diagonal < -far ? -far : diagonal < far ? diagonal : far);
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < R; r++) {
        left_out[r] = 0;
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = r * 16 + i / 2 * 8 + lane / 4,
                          column = j * 8 + lane % 4 * 2 + i % 2;
                const bool out = column >= end || (column < border + row) == BY_KEY;
                if (out) scores[r][j][i] = -INFINITY;
                left_out[r] |= unsigned(out) << (j * 4 + i);
            }
    }
}

// ---- To memory ----------------------------------------------------------------------------------

// The warp's sums times factors, rounded, to its own rows in shared memory.
template <class T, int DEPTH, int R>
__device__ __forceinline__ void put_sums(unsigned char *own, const Sums<R, DEPTH> &sums,
                                         const float (&factors)[R][2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    __syncwarp(); // every lane has read them for the last time
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < DEPTH / 8; j++)
                *reinterpret_cast<uint32_t *>(own + (r * 16 + half * 8 + lane / 4) * pitch<DEPTH> +
                                              j * 16 + lane % 4 * 4) =
                    pair_of<T>(sums[r][j][half * 2] * factors[r][half],
                               sums[r][j][half * 2 + 1] * factors[r][half]);
}

// A warp's rows in shared memory, to contiguous rows from `first` on.
template <class T, int DEPTH, int ROWS>
__device__ __forceinline__ void store_own(void *matrix, const unsigned char *own, int64_t first,
                                          int64_t length, int features) {
    constexpr int across = DEPTH / 8, down = 32 / across;
    const int lane = static_cast<int>(threadIdx.x) % 32, column = lane % across * 8;
    T *to = static_cast<T *>(matrix) + first * features + column;
#pragma unroll 1
    for (int row = lane / across; row < ROWS && first + row < length; row += down) {
        const unsigned char *from = own + row * pitch<DEPTH> + column * 2;
        if (features % 8 == 0) {
            if (column < features)
                *reinterpret_cast<uint4 *>(to + int64_t(row) * features) =
                    *reinterpret_cast<const uint4 *>(from);
        } else {
#pragma unroll
            for (int e = 0; e < 8; e++)
                if (column + e < features)
                    to[int64_t(row) * features + e] = reinterpret_cast<const T *>(from)[e];
        }
    }
}

} // namespace
} // namespace pvg::attention
