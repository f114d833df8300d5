// Copies of operands by rows, which begin at multiples of 16 bytes then: what TMA, or loads of 16
// bytes, cannot read as it lies. One launch for both operands; a copy is one of elements of 16
// bits, of which float32 that stays float32 is two.
//
// A block makes a few short rows, or a part of a long one. It brings the aligned granules of 16
// bytes that these lie in to shared memory, each once and neighbours by neighbouring threads, and
// puts vectors of 16 bytes together from there.
#pragma once
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/pack.cuh"
#include "kernels/matmul/plan/plan.cuh"

namespace pvg::matmul {

// Copies what the plan copies by rows to `to`, where there is room for both operands' bytes, and
// lets *a and *b say where it is. Nothing is rounded or transposed. What lies between the rows of a
// copy is no number to rely on. For elements of 2 and of 4 bytes.
int copy_rows(Call &call, int dtype, const Plan &plan, void *to, Stored *a, Stored *b);

namespace {

constexpr int copied_vector = 8; // elements of 16 bits that a thread makes at a time
constexpr int copy_depth = 4;    // and so often
constexpr int copy_threads = 128;
constexpr int copy_granules = copy_depth * copy_threads; // of a block
// That a vector of elements of so many bytes is made of, beside the one that follows.
constexpr int granules_of_vector(int size) { return copied_vector * size / 16; }

// Blocks have `at_once` rows each, or a part of one each, `vectors` long.
struct RowCopy {
    const void *from;
    uint16_t *to;
    int64_t columns, rows, from_stride, from_item, to_stride, to_item;
    int64_t groups, parts; // blocks of an item: below each other, side by side
    int at_once, vectors;
};
struct RowCopies {
    RowCopy of[2];
    int64_t first_of_second, total; // blocks
};

// What a block makes of an operand.
template <class FROM> struct RowTile {
    static constexpr int size = sizeof(FROM), of_vector = granules_of_vector(size);
    const char *from; // its first element
    uint16_t *to;
    int64_t stride, columns, below; // bytes; elements from there on in a row; rows after the first
    int rows, vectors, granules;    // the last two: of a row

    __device__ RowTile(const RowCopy &x, int64_t block) {
        const int64_t group = block / x.parts, part = block - group * x.parts;
        const int64_t item = group / x.groups, row = (group - item * x.groups) * x.at_once;
        const int64_t column = part * x.vectors * copied_vector;
        from = static_cast<const char *>(x.from) +
               (item * x.from_item + row * x.from_stride + column) * size;
        to = x.to + item * x.to_item + row * x.to_stride + column;
        stride = x.from_stride * size;
        columns = x.columns - column, below = x.rows - 1 - row;
        rows = static_cast<int>(below + 1 < x.at_once ? below + 1 : x.at_once);
        const int64_t left = (columns + copied_vector - 1) / copied_vector;
        vectors = static_cast<int>(left < x.vectors ? left : x.vectors);
        granules = vectors * of_vector + 1;
    }
    __device__ uintptr_t address_of(int row) const {
        return reinterpret_cast<uintptr_t>(from + row * stride);
    }
    // A granule of a row, zeros where nothing is known to be. In front of a row there is memory up
    // to its first granule's begin, as allocations are aligned; behind it there is what follows in
    // the matrix, and behind that there may be none.
    __device__ uint4 load(int row, int granule) const {
        const uintptr_t begin = address_of(row), address = begin / 16 * 16 + 16 * granule;
        const int64_t follow = stride > 0 ? (below - row) * stride : 0;
        const int64_t left = static_cast<int64_t>(begin - address) + columns * size + follow;
        // As what nothing will read again, so that the copies stay in the second-level cache.
        if (left >= 16) return __ldcs(reinterpret_cast<const uint4 *>(address));
        uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
        for (int e = 0; e < 8; e++)
            if (2 * e < left && address + 2 * e >= begin)
                words[e / 2] |=
                    static_cast<uint32_t>(reinterpret_cast<const uint16_t *>(address)[e])
                    << 16 * (e % 2);
        return make_uint4(words[0], words[1], words[2], words[3]);
    }
};

// Words of 4 bytes from the one on that is `offset` bytes, up to 12, into the first granule.
template <int GRANULES, int WORDS>
__device__ __forceinline__ void read_words(const uint4 *granules, int offset,
                                           uint32_t (&words)[WORDS]) {
    static_assert(WORDS + 3 <= GRANULES * 4, "the offset is up to 3 words");
    uint32_t read[GRANULES * 4], moved[WORDS + 1];
#pragma unroll
    for (int i = 0; i < GRANULES; i++) {
        const uint4 four = granules[i];
        read[4 * i] = four.x, read[4 * i + 1] = four.y;
        read[4 * i + 2] = four.z, read[4 * i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i <= WORDS; i++) moved[i] = offset & 8 ? read[i + 2] : read[i];
#pragma unroll
    for (int i = 0; i < WORDS; i++) words[i] = offset & 4 ? moved[i + 1] : moved[i];
}

// Eight elements that begin `offset` bytes into the first granule: of 16 bits as they are, or
// float32, rounded.
template <class FROM, class T>
__device__ __forceinline__ uint4 make_vector(const uint4 *granules, int offset) {
    if constexpr (sizeof(FROM) == 2) {
        uint32_t words[5];
        read_words<2>(granules, offset, words);
        const unsigned bits = (offset & 2) * 8;
        return make_uint4(
            __funnelshift_r(words[0], words[1], bits), __funnelshift_r(words[1], words[2], bits),
            __funnelshift_r(words[2], words[3], bits), __funnelshift_r(words[3], words[4], bits));
    } else {
        uint32_t words[copied_vector], pairs[4];
        read_words<3>(granules, offset, words);
#pragma unroll
        for (int i = 0; i < 4; i++)
            pairs[i] =
                pack_pair<T>(__uint_as_float(words[2 * i]), __uint_as_float(words[2 * i + 1]));
        return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
}

// FROM: uint16_t, copied, or float, rounded to T.
template <class FROM, class T>
__global__ void __launch_bounds__(copy_threads)
    copy_rows_kernel(const __grid_constant__ RowCopies copies) {
    __shared__ uint4 granules[copy_granules];
    let_next_kernel_start();
    wait_for_previous_kernel();
    const bool second = blockIdx.x >= copies.first_of_second;
    const RowCopy &all = copies.of[second];
    const RowTile<FROM> tile(all, blockIdx.x - (second ? copies.first_of_second : 0));
    uint4 loaded[copy_depth];
#pragma unroll
    for (int i = 0; i < copy_depth; i++) {
        const int number = static_cast<int>(threadIdx.x) + i * copy_threads;
        const int row = number / tile.granules;
        if (row < tile.rows) loaded[i] = tile.load(row, number - row * tile.granules);
    }
#pragma unroll
    for (int i = 0; i < copy_depth; i++) {
        const int number = static_cast<int>(threadIdx.x) + i * copy_threads;
        if (number < tile.rows * tile.granules) granules[number] = loaded[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < copy_depth; i++) {
        const int number = static_cast<int>(threadIdx.x) + i * copy_threads;
        const int row = number / tile.vectors, vector = number - row * tile.vectors;
        if (row >= tile.rows) break;
        const int first = row * tile.granules + vector * tile.of_vector;
        const int offset = static_cast<int>(tile.address_of(row) % 16);
        *reinterpret_cast<uint4 *>(tile.to + row * all.to_stride + vector * copied_vector) =
            make_vector<FROM, T>(granules + first, offset);
    }
}

// What is copied, `halves` elements of 16 bits for each; of elements of `size` bytes.
inline RowCopies row_copies(const Plan &plan, int halves, int size, void *to, Stored *a,
                            Stored *b) {
    const OperandPlan *const plans[] = {&plan.a, &plan.b};
    Stored *const stored[] = {a, b};
    const int of_vector = granules_of_vector(size);
    const int64_t most = (copy_granules - 1) / of_vector / 8 * 8; // whole lines of a copy
    RowCopies copies = {};
    for (int i = 0; i < 2; i++) {
        if (i == 1) copies.first_of_second = copies.total;
        if (plans[i]->copying == Copying::none) continue;
        Stored &x = *stored[i];
        RowCopy &rows = copies.of[i];
        rows.from = x.data, rows.to = static_cast<uint16_t *>(to);
        rows.columns = x.columns * halves, rows.rows = x.rows;
        rows.from_stride = x.stride * halves, rows.from_item = x.item * halves;
        rows.to_stride = plans[i]->stride * halves, rows.to_item = plans[i]->item * halves;
        const int64_t vectors = (rows.columns + copied_vector - 1) / copied_vector;
        rows.vectors = static_cast<int>(vectors < most ? vectors : most);
        rows.parts = (vectors + rows.vectors - 1) / rows.vectors;
        rows.at_once = copy_granules / (rows.vectors * of_vector + 1);
        rows.groups = (rows.rows + rows.at_once - 1) / rows.at_once;
        copies.total += x.items * rows.groups * rows.parts;
        x.data = to, x.stride = plans[i]->stride, x.item = plans[i]->item;
        to = static_cast<char *>(to) + plans[i]->bytes;
    }
    return copies;
}

template <class FROM, class T>
int launch_copies(Call &call, const RowCopies &copies, bool overlap) {
    PVG_LAUNCH_WITH((LaunchExtras{1, overlap}), (copy_rows_kernel<FROM, T>),
                    blocks_for(copies.total, 1), copy_threads, 0, call.stream, copies);
    return PVG_OK;
}

} // namespace

} // namespace pvg::matmul
