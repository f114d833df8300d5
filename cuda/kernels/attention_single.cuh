// What the kernels of attention of float32 on tensor cores share: heads of up to 128 features,
// compute capability 8.0. See attention_tensor.cuh, whose way of a tile and its warps this is.
//
// Tensor cores take 11 bits of a float. Every element x is two of them, the nearest h and the rest
// x - h, and a product of two elements is three: what h h leaves out, less than 2^-22 of it and of
// either sign, is of the size of what float32 rounds off. A tensor core cuts its sums off instead
// of rounding them, which adds up: products of a rest have sums of their own, or come first, and no
// sum goes on over more than a tile. Rows of a tile are read from shared memory as they came and
// are split where they are used.
//
// The sum over a tile's rows takes them in the order of the accumulators that the weights are in:
// of eight a lane has 2 (lane % 4) and the next one, where the instruction has lane % 4 and the
// fourth after it. Features are taken so that a lane has four neighbouring ones of a row.
#pragma once
#include "kernels/attention_tensor.cuh"

namespace pvg::attention {

namespace {

template <int DEPTH> inline constexpr int single_pitch = 4 * DEPTH + 16; // bytes

// Features of a feature's sums at j: 16 (j / 2) + 4 (lane % 4) + j % 2, and two on.

// Starts the copying of ROWS rows from `first` on by THREADS threads, eight or four of which have
// pieces of one row: 128 or 64 neighbouring bytes.
template <int DEPTH, int ROWS, int THREADS>
__device__ __forceinline__ void load_singles(unsigned char *to, const Rows &rows, int64_t first) {
    constexpr int across = DEPTH % 32 == 0 ? 8 : 4, down = THREADS / across;
    constexpr bool even = ROWS % down == 0; // else some have nothing to do in the last step
    const int row = static_cast<int>(threadIdx.x) / across;
    const int column = static_cast<int>(threadIdx.x) % across * 4;
    const int end = rows.length - first < ROWS ? static_cast<int>(rows.length - first) : ROWS;
    const float *data = static_cast<const float *>(rows.data),
                *from = data + (first + row) * rows.row;
    const int64_t step = down * rows.row;
    uint32_t address = shared_address(to) + row * single_pitch<DEPTH> + column * 4;
    if (rows.vectors) {
        from += column;
#pragma unroll
        for (int i = 0; i < ROWS; i += down, from += step) {
            if (!even && row + i >= ROWS) break;
#pragma unroll
            for (int c = 0; c < DEPTH; c += 4 * across) {
                const int left = rows.features - column - c;
                const int bytes = row + i < end && left > 0 ? (left < 4 ? left : 4) * 4 : 0;
                copy_async<16>(address + i * single_pitch<DEPTH> + c * 4, bytes ? from + c : data,
                               bytes);
            }
        }
        return;
    }
#pragma unroll 1
    for (int i = row; i < ROWS; i += down, from += step, address += down * single_pitch<DEPTH>)
#pragma unroll 1
        for (int c = 0; c < DEPTH; c += 4 * across)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const bool there = i < end && column + c + e < rows.features;
                copy_async<4>(address + (c + e) * 4,
                              there ? from + (column + c + e) * rows.column : data, there ? 4 : 0);
            }
}

// ---- Products -----------------------------------------------------------------------------------

// What of 16 rows of a left operand, and of a right one, the lane gives ldmatrix the beginning of.
template <int DEPTH> __device__ __forceinline__ uint32_t left_single() {
    const uint32_t lane = threadIdx.x % 32;
    return lane % 16 * single_pitch<DEPTH> + lane / 16 * 16;
}
template <int DEPTH> __device__ __forceinline__ uint32_t right_single() {
    const uint32_t lane = threadIdx.x % 32;
    return (lane % 8 + lane / 16 * 8) * single_pitch<DEPTH> + lane / 8 % 2 * 16;
}
// Where the lane's elements of a right operand that is summed by rows begin.
template <int DEPTH> __device__ __forceinline__ uint32_t summed_single() {
    const uint32_t lane = threadIdx.x % 32;
    return lane % 4 * 2 * single_pitch<DEPTH> + lane / 4 * 8;
}

// The nearest number of 11 bits, and what is left. Of an infinity, and of what is rounded to one,
// the rest is no number, and so is every product.
__device__ __forceinline__ void split(uint32_t x, uint32_t &most, uint32_t &rest) {
    most = (x + 0x1000) & 0xffffe000;
    rest = float_bits(float_of_bits(x) - float_of_bits(most));
}

template <int N> struct Halves {
    uint32_t most[N], rest[N];
    __device__ __forceinline__ void set(int i, uint32_t x) { split(x, most[i], rest[i]); }
};

// sums = left right', along the features; both are at their places. TURNED: the products are those
// of the operands the other way round, to the last bit. What follows another one in the same sum
// is given out as late as the others allow.
template <int DEPTH, int R, int COLUMNS, bool TURNED, int UNROLL>
__device__ __forceinline__ void multiply_features(Sums<R, COLUMNS> &sums, uint32_t left,
                                                  uint32_t right) {
    constexpr int wide = R == 1 && COLUMNS % 32 == 0 ? 4 : 2; // of 8 columns at once
    Sums<R, COLUMNS> small = {};
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[r][j][i] = 0;
#pragma unroll UNROLL
    for (int k = 0; k < DEPTH / 8; k++) {
        Halves<4> a[R];
        uint32_t raw[4];
#pragma unroll
        for (int r = 0; r < R; r++) {
            read_matrices<false>(left + r * 16 * single_pitch<DEPTH> + k * 32, raw);
#pragma unroll
            for (int i = 0; i < 4; i++) a[r].set(i, raw[i]);
        }
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j += wide) {
            Halves<2 * wide> b;
#pragma unroll
            for (int x = 0; x < wide; x += 2) {
                read_matrices<false>(right + (j + x) * 8 * single_pitch<DEPTH> + k * 32, raw);
#pragma unroll
                for (int i = 0; i < 4; i++) b.set(2 * x + i, raw[i]);
            }
#pragma unroll
            for (int step = 0; step < 3; step++)
#pragma unroll
                for (int r = 0; r < R; r++)
#pragma unroll
                    for (int x = 0; x < wide; x++) {
                        const uint32_t *most = b.most + 2 * x, *rest = b.rest + 2 * x;
                        if (step == 1)
                            multiply_singles(sums[r][j + x], a[r].most, most[0], most[1]);
                        else if ((step == 0) == TURNED)
                            multiply_singles(small[r][j + x], a[r].most, rest[0], rest[1]);
                        else
                            multiply_singles(small[r][j + x], a[r].rest, most[0], most[1]);
                    }
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[r][j][i] += small[r][j][i];
}

// Weights as left operands: of each eight columns.
template <int R, int COLUMNS> struct SplitWeights {
    Halves<4> part[R][COLUMNS / 8];
    __device__ __forceinline__ explicit SplitWeights(const Sums<R, COLUMNS> &weights) {
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int k = 0; k < COLUMNS / 8; k++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    part[r][k].set(i, float_bits(weights[r][k][i % 2 * 2 + i / 2]));
    }
};

// sums = sums * factors + weights right: COLUMNS rows of the right operand, which is at its place.
template <int DEPTH, int R, int COLUMNS>
__device__ __forceinline__ void add_products(Sums<R, DEPTH> &sums, const float (&factors)[R][2],
                                             const SplitWeights<R, COLUMNS> &weights,
                                             const unsigned char *right) {
    constexpr int steps = COLUMNS / 8;
    constexpr int wide = DEPTH / 8 % (4 / R) == 0 ? 4 / R : 2; // of 8 features at once
    constexpr int smalls = R * wide < 4 ? 2 : 1;               // else chains would be few
#pragma unroll
    for (int j = 0; j < DEPTH / 8; j += wide) {
        float part[R][wide][4] = {}, small[smalls][R][wide][4] = {};
#pragma unroll
        for (int k = 0; k < steps; k++) {
            uint32_t most[wide][2], rest[wide][2];
#pragma unroll
            for (int x = 0; x < wide; x += 2)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const uint2 two = *reinterpret_cast<const uint2 *>(
                        right + (k * 8 + half) * single_pitch<DEPTH> + (j + x) * 32);
                    split(two.x, most[x][half], rest[x][half]);
                    split(two.y, most[x + 1][half], rest[x + 1][half]);
                }
#pragma unroll
            for (int step = 0; step < 3; step++)
#pragma unroll
                for (int r = 0; r < R; r++)
#pragma unroll
                    for (int x = 0; x < wide; x++)
                        if (step == 0)
                            multiply_singles(small[0][r][x], weights.part[r][k].rest, most[x][0],
                                             most[x][1]);
                        else if (step == 1)
                            multiply_singles(part[r][x], weights.part[r][k].most, most[x][0],
                                             most[x][1]);
                        else
                            multiply_singles(small[smalls - 1][r][x], weights.part[r][k].most,
                                             rest[x][0], rest[x][1]);
        }
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int x = 0; x < wide; x++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float rests = small[0][r][x][i];
                    if (smalls == 2) rests += small[smalls - 1][r][x][i];
                    sums[r][j + x][i] =
                        fmaf(sums[r][j + x][i], factors[r][i / 2], part[r][x][i] + rests);
                }
    }
}

// ---- To memory ----------------------------------------------------------------------------------

// The warp's sums times factors, to contiguous rows from `first` on.
template <int DEPTH, int R>
__device__ __forceinline__ void store_singles(float *matrix, const Sums<R, DEPTH> &sums,
                                              const float (&factors)[R][2], int64_t first,
                                              int64_t length, int features) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t row = first + r * 16 + half * 8 + lane / 4;
            if (row >= length) continue;
#pragma unroll
            for (int j = 0; j < DEPTH / 8; j += 2) {
                const int column = j * 8 + lane % 4 * 4;
                float *to = matrix + row * features + column;
                float four[4];
#pragma unroll
                for (int e = 0; e < 4; e++)
                    four[e] = sums[r][j + e % 2][half * 2 + e / 2] * factors[r][half];
                if (features % 4 == 0) {
                    if (column < features)
                        *reinterpret_cast<float4 *>(to) =
                            make_float4(four[0], four[1], four[2], four[3]);
                } else {
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        if (column + e < features) to[e] = four[e];
                }
            }
        }
}

} // namespace
} // namespace pvg::attention
