// For accumulate.cu: zeros for the rows of a table that no write names, by blocks that run between
// those that write the other rows, which wait for what they read.
#pragma once
#include "arrays/dispatch.cuh"

namespace pvg {

namespace {

constexpr int absent_warps = 8;                      // of a block
constexpr int64_t absent_bytes = 8192;               // of a warp, about, of at most
constexpr int64_t absent_rows = 32;                  // rows
constexpr int64_t least_row = 256, aligned_row = 16; // bytes

// Rows of `columns` elements, one behind the other. A warp has `rows_each` of them, or of longer
// ones a part of `part` elements.
struct AbsentRows {
    int64_t blocks; // 0: there is nothing to do
    int64_t rows, columns, rows_each, parts, part;
};

// Of narrower rows each warp would look for many; these are done before instead.
inline bool are_found_absent(const void *table, int64_t columns, int64_t item) {
    return columns * item >= least_row && reinterpret_cast<uintptr_t>(table) % aligned_row == 0;
}

inline AbsentRows absent_rows_of(int64_t rows, int64_t columns, int64_t item) {
    AbsentRows absent = {0, rows, columns, 1, 1, columns};
    const int64_t bytes = columns * item;
    if (bytes < absent_bytes) {
        absent.rows_each = absent_bytes / bytes < absent_rows ? absent_bytes / bytes : absent_rows;
    } else {
        absent.part = absent_bytes / item;
        absent.parts = (columns + absent.part - 1) / absent.part;
    }
    const int64_t groups = (rows + absent.rows_each - 1) / absent.rows_each;
    absent.blocks = (groups * absent.parts + absent_warps - 1) / absent_warps;
    return absent;
}

// Whether a row is not among the sorted keys.
template <class K> __device__ bool is_absent(const K *keys, int64_t count, int64_t row) {
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (static_cast<uint64_t>(keys[middle]) < static_cast<uint64_t>(row))
            low = middle + 1;
        else
            high = middle;
    }
    return low == count || static_cast<uint64_t>(keys[low]) != static_cast<uint64_t>(row);
}

// A warp's: in words of 16 bytes between what is before the first such address and the rest.
template <class T> __device__ void zero_elements(T *first, int64_t count, int lane) {
    constexpr int64_t each = 16 / sizeof(T);
    const int64_t beyond = reinterpret_cast<uintptr_t>(first) % 16 / sizeof(T);
    int64_t head = beyond == 0 ? 0 : each - beyond;
    if (head > count) head = count;
    if (lane < head) first[lane] = T{};
    Bytes16 *words = reinterpret_cast<Bytes16 *>(first + head);
    const int64_t whole = (count - head) / each, rest = head + whole * each + lane;
    for (int64_t i = lane; i < whole; i += 32) words[i] = Bytes16{};
    if (rest < count) first[rest] = T{};
}

// What a block of the absent rows does; a lane looks for a row. All threads come here.
template <class T>
__device__ void zero_absent(const AbsentRows &absent, int64_t block, const void *keys, bool wide,
                            int64_t count, T *table) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t unit = block * absent_warps + threadIdx.x / 32;
    const int64_t first = unit / absent.parts * absent.rows_each;
    const int64_t column = unit % absent.parts * absent.part;
    const int64_t rest = absent.columns - column;
    bool found = false;
    if (lane < absent.rows_each && first + lane < absent.rows)
        found = wide ? is_absent(static_cast<const uint64_t *>(keys), count, first + lane)
                     : is_absent(static_cast<const uint32_t *>(keys), count, first + lane);
    unsigned rows = __ballot_sync(0xffffffffu, found);
    for (int64_t row = first; rows != 0; row++, rows >>= 1)
        if (rows & 1)
            zero_elements(table + row * absent.columns + column,
                          rest < absent.part ? rest : absent.part, lane);
}

} // namespace

} // namespace pvg
