// From the sums of a warpgroup to c: a tile of 64 x N, of which wgmma has left each thread N / 2
// sums (wgmma.cuh says which). Two ways:
//
// Straight from the registers, where c is plain and its rows lie at multiples of 16 bytes: the four
// lanes that hold neighbouring columns exchange sums, so that each stores 16 bytes and together
// they store 64.
//
// Through shared memory, for everything else: what the epilogue has to work on, another dtype, rows
// at any address. A warp takes 32 columns of its 16 rows at a time. Sums must be named by
// constants, so the code that writes them there exists once for each 32 columns, but the code that
// works on them only once; after that, lanes hold neighbouring columns and store them next to each
// other. Of a tile that is one of c transposed, a pair of warps holds 32 columns of c, and shares
// what both leave in shared memory: 32 rows, 16 for each of them to work on.
#pragma once
#include "kernels/hopper.cuh"
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/pack.cuh"

namespace pvg::matmul {

// Shared memory of the second way: 512 sums of each warp, padded against bank conflicts. Begins at
// a multiple of 16 bytes.
constexpr int staging_floats = 640;
constexpr int staging_bytes(int warps) { return warps * staging_floats * int(sizeof(float)); }

// What the 64 rows of a warpgroup's tile are, of which warp w of four holds 16: q and q + 8 in its
// lanes 4 q to 4 q + 3.
//   rows: rows of c in their order: 16 w + 8 h + q.
//   slabs, classes: columns of c, in an order that lets tensor.cuh read its operand without bank
//     conflicts: 32 (w / 2) + 8 (w % 2) + 4 h + q % 4 + 16 (q / 4), and
//     32 (w / 2) + 4 q + 2 (w % 2) + h.
enum class Order { rows, slabs, classes };

// ---- Straight from the registers ----------------------------------------------------------------

// 16 bytes of one row, the last of it element by element. (The compiler may make several stores of
// an assignment, but not of __stwb.)
template <class T> __device__ __forceinline__ void store_vector(T *to, uint4 vector, int count) {
    constexpr int length = 16 / sizeof(T);
    if (count >= length) {
        __stwb(reinterpret_cast<uint4 *>(to), vector);
        return;
    }
    const uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
    for (int e = 0; e < length; e++) {
        if (e >= count) break;
        if constexpr (sizeof(T) == 4)
            to[e] = __uint_as_float(words[e]);
        else
            reinterpret_cast<uint16_t *>(to)[e] =
                static_cast<uint16_t>(words[e / 2] >> 16 * (e % 2));
    }
}

// Each lane of four holds two columns of each of two groups of eight: afterwards the even lanes
// hold four columns of the first group, the odd ones of the second.
__device__ __forceinline__ uint4 exchange_floats(float x0, float x1, float y0, float y1, int lane) {
    const bool odd = lane & 1;
    const float s0 = __shfl_xor_sync(~0u, odd ? x0 : y0, 1);
    const float s1 = __shfl_xor_sync(~0u, odd ? x1 : y1, 1);
    return make_uint4(__float_as_uint(odd ? s0 : x0), __float_as_uint(odd ? s1 : x1),
                      __float_as_uint(odd ? y0 : s0), __float_as_uint(odd ? y1 : s1));
}

// The 4 x 4 transposition of four words each of four lanes, whose numbers differ by STEP: place p
// of them then holds word p of all.
template <int STEP>
__device__ __forceinline__ uint4 exchange_words(const uint32_t (&word)[4], int place) {
    const bool upper = place & 2, odd = place & 1;
    const uint32_t s0 = __shfl_xor_sync(~0u, upper ? word[0] : word[2], 2 * STEP);
    const uint32_t s1 = __shfl_xor_sync(~0u, upper ? word[1] : word[3], 2 * STEP);
    const uint32_t a0 = upper ? s0 : word[0], a1 = upper ? s1 : word[1];
    const uint32_t a2 = upper ? word[2] : s0, a3 = upper ? word[3] : s1;
    const uint32_t u0 = __shfl_xor_sync(~0u, odd ? a0 : a1, STEP);
    const uint32_t u1 = __shfl_xor_sync(~0u, odd ? a2 : a3, STEP);
    return odd ? make_uint4(u0, a1, u1, a3) : make_uint4(a0, u0, a2, u1);
}

// `row` and `column` are the warp's first of its 16 rows, which are in the order ORDER, and N
// columns.
template <class T, int N, Order ORDER = Order::rows>
__device__ __forceinline__ void store_from_registers(const float (&sums)[N / 2],
                                                     const Destination &to, int row, int column) {
    T *const c = static_cast<T *>(to.data);
    const int64_t ldc = to.row_stride;
    const int m = static_cast<int>(to.rows), n = static_cast<int>(to.columns);
    const int lane = threadIdx.x % 32, c4 = lane % 4;
    constexpr int groups = sizeof(T) == 4 ? 2 : 4; // of eight columns, which four lanes exchange
    constexpr int apart = ORDER == Order::rows ? 8 : 4;
    row += ORDER == Order::rows ? lane / 4 : lane / 4 % 4 + lane / 16 * 16;
#pragma unroll
    for (int i = 0; i < N / 8; i += groups) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint4 vector;
            int first = column + 8 * i;
            if constexpr (sizeof(T) == 4) {
                const float *d = sums + 4 * i + 2 * h;
                vector = exchange_floats(d[0], d[1], d[4], d[5], lane);
                first += 8 * (c4 & 1) + 4 * (c4 >> 1);
            } else {
                uint32_t pair[4];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    pair[j] =
                        pack_pair<T>(sums[4 * (i + j) + 2 * h], sums[4 * (i + j) + 2 * h + 1]);
                vector = exchange_words<1>(pair, c4);
                first += 8 * c4;
            }
            if (row + apart * h < m && first < n)
                store_vector(c + int64_t(row + apart * h) * ldc + first, vector, n - first);
        }
    }
}

// ---- Through shared memory ----------------------------------------------------------------------

// Whether c is float32 where the operands are T.
template <class T> __device__ __forceinline__ bool is_wide(const Destination &to) {
    return sizeof(T) == 4 || to.dtype == PVG_FLOAT32;
}
__device__ __forceinline__ void store_four(float *to, float4 four) {
    __stwb(reinterpret_cast<float4 *>(to), four);
}
template <class T> __device__ __forceinline__ void store_four(T *to, float4 four) {
    __stwb(reinterpret_cast<uint2 *>(to),
           make_uint2(pack_pair<T>(four.x, four.y), pack_pair<T>(four.z, four.w)));
}

// The sums that a warp works on in shared memory at a time: 16 rows of 32 columns of c. Lanes work
// on quads, four neighbouring places of a row. Places are columns, but of classes each warp of the
// pair fills one half of every row: its sums of q and h, as in Order, are in place q + 8 h of that
// half. By this and the distance of rows sums are left with few bank conflicts, classes with none.
// For `finish`: c has elements of type T, or float32.
template <class T, Order ORDER> struct Patch {
    static constexpr int rows = 16, quads = 8; // of a row
    static constexpr int pitch = ORDER == Order::rows ? 40 : 36;
    static_assert(rows * pitch <= staging_floats, "of a warp");
    float *staging;
    int row, column;

    __device__ float4 *quad_at(int r, int quad) const {
        return reinterpret_cast<float4 *>(staging + r * pitch + quad * 4);
    }
    // The column of this place of a row, from the patch's first.
    __device__ static int column_at(int place) {
        if (ORDER != Order::classes) return place;
        return 4 * (place % 8) + 2 * (place / 16) + place / 8 % 2;
    }
    __device__ __forceinline__ void add_bias(const Destination &to);
    __device__ __forceinline__ void apply(const Destination &to, int activation);
    __device__ __forceinline__ void store(const Destination &to, void *matrix) const;
};

// A patch goes to c, of which `to` is the patch's first element, as far as there are rows and
// columns. All loads come before the first store. By quads, where these are neighbours in c too:
template <class E, class T, Order ORDER>
__device__ __forceinline__ void store_quads(const Patch<T, ORDER> &patch, E *to, int64_t ldc,
                                            int rows) {
    constexpr int quads = Patch<T, ORDER>::quads, step = 32 / quads,
                  steps = Patch<T, ORDER>::rows / step;
    const int lane = threadIdx.x % 32, first = lane / quads, quad = lane % quads;
    float4 four[steps];
#pragma unroll
    for (int i = 0; i < steps; i++) four[i] = *patch.quad_at(first + i * step, quad);
    to += first * ldc + quad * 4;
#pragma unroll
    for (int i = 0; i < steps; i++, to += step * ldc)
        if (first + i * step < rows) store_four(to, four[i]);
}

// By elements, where rows are at any address: a lane has one place of every row.
template <class E, class T, Order ORDER>
__device__ __forceinline__ void store_elements(const Patch<T, ORDER> &patch, E *to, int64_t ldc,
                                               int rows, int columns) {
    const int lane = threadIdx.x % 32, column = patch.column_at(lane);
    __syncwarp(); // lanes have worked on quads
    if (column < columns) {
        E elements[Patch<T, ORDER>::rows];
#pragma unroll
        for (int r = 0; r < patch.rows; r++) elements[r] = E(patch.staging[r * patch.pitch + lane]);
        to += column;
#pragma unroll
        for (int r = 0; r < patch.rows; r++, to += ldc)
            if (r < rows) *to = elements[r];
    }
    __syncwarp();
}

// `matrix`: c or the preactivation, of elements E.
template <class E, class T, Order ORDER>
__device__ __forceinline__ void store_patch(const Patch<T, ORDER> &patch, E *matrix,
                                            const Destination &to) {
    const int64_t stride = to.row_stride;
    const bool aligned =
        reinterpret_cast<uintptr_t>(matrix) % (4 * sizeof(E)) == 0 && stride % 4 == 0;
    const int rows = static_cast<int>(to.rows) - patch.row;
    const int columns = static_cast<int>(to.columns) - patch.column;
    E *const first = matrix + patch.row * stride + patch.column;
    if (ORDER != Order::classes && aligned && columns >= 32)
        store_quads(patch, first, stride, rows);
    else
        store_elements(patch, first, stride, rows, columns);
}
template <class T, Order ORDER>
__device__ __forceinline__ void Patch<T, ORDER>::store(const Destination &to, void *matrix) const {
    if (is_wide<T>(to))
        store_patch(*this, static_cast<float *>(matrix), to);
    else
        store_patch(*this, static_cast<T *>(matrix), to);
}

template <class T, Order ORDER>
__device__ __forceinline__ void Patch<T, ORDER>::add_bias(const Destination &to) {
    const int lane = threadIdx.x % 32, quad = lane % quads;
    float bias[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int64_t at = column + column_at(quad * 4 + e);
        bias[e] = 0.0f;
        if (at < static_cast<int>(to.columns))
            bias[e] = is_wide<T>(to) ? bias_of<float>(to, at) : bias_of<T>(to, at);
    }
#pragma unroll
    for (int r = lane / quads; r < rows; r += 32 / quads) {
        float4 *const four = quad_at(r, quad);
        const float4 x = *four;
        *four = make_float4(x.x + bias[0], x.y + bias[1], x.z + bias[2], x.w + bias[3]);
    }
}
template <class T, Order ORDER>
__device__ __forceinline__ void Patch<T, ORDER>::apply(const Destination &, int activation) {
    const int lane = threadIdx.x % 32;
    if (activation == PVG_NONE) return;
#pragma unroll 1
    for (int r = lane / quads; r < rows; r += 32 / quads) {
        float4 *const four = quad_at(r, lane % quads);
        float x[4] = {four->x, four->y, four->z, four->w};
        activate_all(activation, x);
        *four = make_float4(x[0], x[1], x[2], x[3]);
    }
}

// Sixteen sums of a thread, where the patch has them; of a tile of c transposed, `staging` is that
// of the pair of warps.
template <Order ORDER>
__device__ __forceinline__ void stage_sums(const float *sums, float *staging) {
    constexpr int pitch = Patch<float, ORDER>::pitch;
    const int lane = threadIdx.x % 32, q = lane / 4, c = lane % 4, odd = threadIdx.x / 32 % 2;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float *s = sums + i * 4;
        if constexpr (ORDER == Order::rows) {
            float *const to = staging + q * pitch + i * 8 + c * 2;
            *reinterpret_cast<float2 *>(to) = make_float2(s[0], s[1]);
            *reinterpret_cast<float2 *>(to + 8 * pitch) = make_float2(s[2], s[3]);
        } else if constexpr (ORDER == Order::slabs) {
            float *const to = staging + (i * 8 + c * 2) * pitch + odd * 8 + q / 4 * 16 + q % 4;
            to[0] = s[0], to[pitch] = s[1], to[4] = s[2], to[pitch + 4] = s[3];
        } else {
            float *const to = staging + (i * 8 + c * 2) * pitch + odd * 16 + q;
            to[0] = s[0], to[pitch] = s[1], to[8] = s[2], to[pitch + 8] = s[3];
        }
    }
}

// The sums of one of COUNT parts, the first of which is number FIRST. It is found by halving: of a
// list of conditions the compiler makes one sequence of all stores, each with its predicate.
template <Order ORDER, int FIRST, int COUNT, int SUMS>
__device__ __forceinline__ void stage_part(const float (&sums)[SUMS], int part, float *staging) {
    constexpr int half = COUNT / 2;
    if constexpr (COUNT == 1)
        stage_sums<ORDER>(sums + FIRST * 16, staging);
    else if (part < FIRST + half)
        stage_part<ORDER, FIRST, half>(sums, part, staging);
    else
        stage_part<ORDER, FIRST + half, COUNT - half>(sums, part, staging);
}

// `to`: of the item. `row`, `column`: where the sums of the warp, or of the pair, begin. `staging`:
// that of the whole block.
template <class T, int N, Order ORDER>
__device__ __forceinline__ void store_through_shared(const float (&sums)[N / 2],
                                                     const Destination &to, int row, int column,
                                                     float *staging, int warp) {
    constexpr bool paired = ORDER != Order::rows;
    constexpr int pair_barrier = 3; // and the next three; the warpgroups' numbers are below
    const auto sync = [&] {
        if constexpr (paired)
            sync_threads<64>(pair_barrier + warp / 2);
        else
            __syncwarp();
    };
    Patch<T, ORDER> patch = {staging + warp * staging_floats, row, column};
    if constexpr (paired) {
        staging += warp / 2 * 2 * staging_floats;
        patch.staging = staging + warp % 2 * patch.rows * patch.pitch;
        patch.row += warp % 2 * patch.rows;
    } else {
        staging = patch.staging;
    }
#pragma unroll 1
    for (int part = 0; part < N / 32; part++) {
        if (column >= static_cast<int>(to.columns) || row >= static_cast<int>(to.rows)) break;
        sync(); // the part before has been stored
        stage_part<ORDER, 0, N / 32>(sums, part, staging);
        sync();
        finish(to, patch);
        if constexpr (paired)
            row += 32, patch.row += 32;
        else
            column += 32, patch.column += 32;
    }
}

// ---- One tile -----------------------------------------------------------------------------------

// The sums of a warpgroup whose tile begins at (row, column) of an item. T: Half, BFloat16 or
// float. `staging`: that of the whole block, staging_bytes(its storing warps); `warp` is the
// number among those.
template <class T, int N>
__device__ __forceinline__ void store_sums(const float (&sums)[N / 2], const Destination &d,
                                           int item, int row, int column, float *staging,
                                           int warp) {
    const bool wide = is_wide<T>(d);
    const int size = wide ? 4 : sizeof(T);
    row += warp % 4 * 16;
    const Destination to = d.moved(item * d.item_stride, size);
    if (to.plain && (!wide || sizeof(T) == 4) && reinterpret_cast<uintptr_t>(to.data) % 16 == 0 &&
        to.row_stride * size % 16 == 0)
        store_from_registers<T, N>(sums, to, row, column);
    else
        store_through_shared<T, N, Order::rows>(sums, to, row, column, staging, warp);
}

// The same of float32 whose 64 rows are slabs', for c that is plain and whose rows lie at multiples
// of 16 bytes.
template <int N>
__device__ __forceinline__ void store_upright(const float (&sums)[N / 2], const Destination &d,
                                              int item, int row, int column, int warp) {
    row += warp % 4 / 2 * 32 + warp % 2 * 8;
    store_from_registers<float, N, Order::slabs>(sums, d.moved(item * d.item_stride, 4), row,
                                                 column);
}

// The same of a tile of c transposed, float32, whose 64 rows are columns of c from `column` on, in
// the order ORDER, and whose N columns are rows of c. Slabs have the first way too: here as well
// four lanes exchange sums and store 16 bytes each. Where b comes in classes, n is mostly no
// multiple of 4 and c is not aligned either: there is only the second way.
template <int N, Order ORDER>
__device__ __forceinline__ void store_transposed(const float (&sums)[N / 2], const Destination &d,
                                                 int item, int row, int column, float *staging,
                                                 int warp) {
    column += warp % 4 / 2 * 32;
    const Destination to = d.moved(item * d.item_stride, sizeof(float));
    float *const c = static_cast<float *>(to.data);
    if (ORDER == Order::classes || !to.plain || reinterpret_cast<uintptr_t>(c) % 16 != 0 ||
        to.row_stride % 4 != 0) {
        store_through_shared<float, N, ORDER>(sums, to, row, column, staging, warp);
        return;
    }
    const int lane = threadIdx.x % 32, place = lane / 4 % 4;
    const int rows = static_cast<int>(to.rows), columns = static_cast<int>(to.columns);
    column += warp % 2 * 8 + lane / 16 * 16 + place / 2 * 4;
    row += lane % 4 * 2 + place % 2;
#pragma unroll
    for (int i = 0; i < N / 8; i++) {
        uint32_t word[4];
#pragma unroll
        for (int j = 0; j < 4; j++) word[j] = __float_as_uint(sums[4 * i + j]);
        const uint4 vector = exchange_words<4>(word, place);
        if (row + 8 * i < rows && column < columns)
            store_vector(c + int64_t(row + 8 * i) * to.row_stride + column, vector,
                         columns - column);
    }
}

} // namespace pvg::matmul
