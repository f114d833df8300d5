// Copies of operands by rows, which begin at multiples of 16 bytes then: what TMA, or loads of 16
// bytes, cannot read as it lies. One launch for both operands; a thread makes 16 bytes at a time,
// four times, of one row. A copy is one of elements of 16 bits, of which float32 that stays float32
// is two.
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

struct RowCopy {
    const void *from;
    uint16_t *to;
    int64_t columns, rows, from_stride, from_item, to_stride, to_item;
    int vectors, threads; // of a row: thread i makes vectors i, i + threads, ...
};
struct RowCopies {
    RowCopy of[2];
    int64_t first_of_second, total; // threads
};

// A row to read, in granules of 16 aligned bytes. They are read as what nothing will read again, so
// that the copies stay in the second-level cache. In front of the row there is memory up to the
// first granule's begin, as allocations are aligned; behind the row there may be none.
struct Source {
    const uint4 *granules;
    int whole, offset; // granules that end in the row; where it begins in the first one, in bytes

    __device__ Source(const void *row, int64_t bytes) {
        const uintptr_t address = reinterpret_cast<uintptr_t>(row);
        granules = reinterpret_cast<const uint4 *>(address / 16 * 16);
        offset = static_cast<int>(address % 16);
        whole = static_cast<int>((offset + bytes) / 16);
    }
    // Whether load() finds all bytes of the row from 16 * first on, 16 * count of them.
    __device__ bool has(int first, int count) const {
        return first + count + (offset > 0) <= whole;
    }
    // Words of 4 bytes from the one that is `offset` into a granule; anything beyond the last whole
    // granule. Without branches, so that other loads need not wait for these.
    template <int GRANULES, int WORDS>
    __device__ __forceinline__ void load(uint32_t (&words)[WORDS], int granule) const {
        static_assert(WORDS + 3 <= GRANULES * 4, "the offset is up to 3 words");
        uint32_t read[GRANULES * 4], moved[WORDS + 1];
#pragma unroll
        for (int i = 0; i < GRANULES; i++) {
            uint4 four = make_uint4(0, 0, 0, 0);
            if (whole > 0) four = __ldcs(granules + min(granule + i, whole - 1));
            read[4 * i] = four.x, read[4 * i + 1] = four.y;
            read[4 * i + 2] = four.z, read[4 * i + 3] = four.w;
        }
#pragma unroll
        for (int i = 0; i <= WORDS; i++) moved[i] = offset & 8 ? read[i + 2] : read[i];
#pragma unroll
        for (int i = 0; i < WORDS; i++) words[i] = offset & 4 ? moved[i + 1] : moved[i];
    }
};

// Vector number `number` of a row of 16-bit elements.
__device__ __forceinline__ uint4 load_halves(const Source &row, int number) {
    uint32_t words[5];
    row.load<2>(words, number);
    const unsigned bits = (row.offset & 2) * 8;
    return make_uint4(
        __funnelshift_r(words[0], words[1], bits), __funnelshift_r(words[1], words[2], bits),
        __funnelshift_r(words[2], words[3], bits), __funnelshift_r(words[3], words[4], bits));
}

// The same of a row of float32, rounded.
template <class T> __device__ __forceinline__ uint4 round_floats(const Source &row, int number) {
    uint32_t words[copied_vector], pairs[4];
    row.load<3>(words, number * 2);
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] = pack_pair<T>(__uint_as_float(words[2 * i]), __uint_as_float(words[2 * i + 1]));
    return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// What is at the end of a row: the first n elements, one by one.
template <class T> __device__ uint4 load_rest(const uint16_t *from, int64_t n) {
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int e = 0; e < copied_vector; e++)
        if (e < n) words[e / 2] |= static_cast<uint32_t>(from[e]) << 16 * (e % 2);
    return make_uint4(words[0], words[1], words[2], words[3]);
}
template <class T> __device__ uint4 load_rest(const float *from, int64_t n) {
    float x[copied_vector];
#pragma unroll
    for (int e = 0; e < copied_vector; e++) x[e] = e < n ? from[e] : 0.0f;
    return make_uint4(pack_pair<T>(x[0], x[1]), pack_pair<T>(x[2], x[3]), pack_pair<T>(x[4], x[5]),
                      pack_pair<T>(x[6], x[7]));
}

// dividend / divisor; 64-bit division only where it has to be.
__device__ __forceinline__ int64_t divide(int64_t dividend, int64_t divisor) {
    if ((dividend | divisor) >> 32) return dividend / divisor;
    return static_cast<uint32_t>(dividend) / static_cast<uint32_t>(divisor);
}

// FROM: uint16_t, copied, or float, rounded to T. (Dealing vectors out evenly, whatever the length
// of rows, is no faster for short ones and took a tenth longer for long ones.)
template <class FROM, class T>
__global__ void __launch_bounds__(copy_threads)
    copy_rows_kernel(const __grid_constant__ RowCopies copies) {
    let_next_kernel_start();
    wait_for_previous_kernel();
    int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= copies.total) return;
    const bool second = index >= copies.first_of_second;
    if (second) index -= copies.first_of_second;
    const RowCopy &rows = copies.of[second];
    const int64_t row = divide(index, rows.threads), item = divide(row, rows.rows);
    const int64_t of_item = row - item * rows.rows;
    const int first = static_cast<int>(index - row * rows.threads);
    const FROM *const from =
        static_cast<const FROM *>(rows.from) + item * rows.from_item + of_item * rows.from_stride;
    const Source source(from, rows.columns * static_cast<int>(sizeof(FROM)));
    uint4 made[copy_depth];
#pragma unroll
    for (int i = 0; i < copy_depth; i++) {
        if constexpr (sizeof(FROM) == 2)
            made[i] = load_halves(source, first + i * rows.threads);
        else
            made[i] = round_floats<T>(source, first + i * rows.threads);
    }
    uint4 *const to =
        reinterpret_cast<uint4 *>(rows.to + item * rows.to_item + of_item * rows.to_stride);
    constexpr int granules = copied_vector * static_cast<int>(sizeof(FROM)) / 16;
#pragma unroll
    for (int i = 0; i < copy_depth; i++) {
        const int number = first + i * rows.threads;
        if (number >= rows.vectors) break;
        if (!source.has(number * granules, granules)) {
            const int64_t column = int64_t(number) * copied_vector;
            made[i] = load_rest<T>(from + column, rows.columns - column);
        }
        to[number] = made[i];
    }
}

// What is copied, `halves` elements of 16 bits for each.
inline RowCopies row_copies(const Plan &plan, int halves, void *to, Stored *a, Stored *b) {
    const OperandPlan *const plans[] = {&plan.a, &plan.b};
    Stored *const stored[] = {a, b};
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
        rows.vectors = static_cast<int>((rows.columns + copied_vector - 1) / copied_vector);
        rows.threads = (rows.vectors + copy_depth - 1) / copy_depth;
        copies.total += x.items * x.rows * rows.threads;
        x.data = to, x.stride = plans[i]->stride, x.item = plans[i]->item;
        to = static_cast<char *>(to) + plans[i]->bytes;
    }
    return copies;
}

template <class FROM, class T>
int launch_copies(Call &call, const RowCopies &copies, bool overlap) {
    PVG_LAUNCH_WITH((LaunchExtras{1, overlap}), (copy_rows_kernel<FROM, T>),
                    blocks_for(copies.total, copy_threads), copy_threads, 0, call.stream, copies);
    return PVG_OK;
}

} // namespace

} // namespace pvg::matmul
