// Gathers by one or two indices over at most three dimensions whose positions fit 32 bits, as most
// are. pick_kernel finds each word's place without loops; in longer rows long_rows_kernel
// finds it once for a warp's part of a row, or goes along it.
#pragma once
#include "arrays/call.cuh"
#include "kernels/places.cuh"

namespace pvg {

namespace {

constexpr int gather_threads = 256;
constexpr int gather_each = 4; // words a thread

// By an index over three dimensions, or by one or two over one.
template <class T, int DIMS, int AXES>
__global__ void __launch_bounds__(gather_threads) pick_kernel(const __grid_constant__ Moves moves) {
    const Locator<3> &by = moves.walk;
    const Indices &indices = moves.indices;
    uint32_t position[gather_each];
    int64_t index[AXES][gather_each] = {}, place[gather_each];
    const uint32_t first = blockIdx.x * gather_each * gather_threads + threadIdx.x;
    const uint32_t size = static_cast<uint32_t>(moves.size);
#pragma unroll
    for (int e = 0; e < gather_each; e++) {
        position[e] = first + e * gather_threads;
        uint32_t rest = position[e];
        int64_t at = 0;
        place[e] = 0;
#pragma unroll
        for (int d = DIMS - 1; d >= 0; d--) {
            uint32_t quotient = 0;
            if (d > 0) {
                const uint32_t multiplier = static_cast<uint32_t>(by.multiplier[d]);
                quotient = (__umulhi(rest, multiplier) + rest) >> by.shift[d];
                rest -= quotient * static_cast<uint32_t>(by.walk.shape[d]);
            }
            place[e] +=
                int64_t(static_cast<int32_t>(rest)) * static_cast<int32_t>(by.walk.strides[1][d]);
            at += int64_t(static_cast<int32_t>(rest)) * static_cast<int32_t>(by.walk.strides[2][d]);
            rest = quotient;
        }
#pragma unroll
        for (int j = 0; j < AXES; j++)
            if (position[e] < size) index[j][e] = index_at(indices, j, at);
    }
    T word[gather_each] = {};
#pragma unroll
    for (int e = 0; e < gather_each; e++) {
        bool bad = false;
        if (position[e] >= size) continue;
#pragma unroll
        for (int j = 0; j < AXES; j++)
            place[e] += counted_from_0(indices, j, index[j][e], &bad) * indices.stride[j];
        word[e] = static_cast<const T *>(moves.indexed)[place[e]];
    }
#pragma unroll
    for (int e = 0; e < gather_each; e++)
        if (position[e] < size) static_cast<T *>(moves.flat)[position[e]] = word[e];
}

constexpr int64_t least_long_row = 128, least_of_long_rows = 1 << 16; // words
constexpr int long_row_each = 8;                                      // words a thread

// Long rows: how many warps have a part of each, how long a part is, how many there are of all.
struct Parts { uint32_t count, words, all; };

// Three dimensions, the last of which is a row. EACH: a word has its own index, or the row has.
template <class T, bool EACH>
__global__ void __launch_bounds__(gather_threads)
    long_rows_kernel(const __grid_constant__ Moves moves, const __grid_constant__ Parts parts) {
    const Walk<3> &walk = moves.walk.walk;
    const Indices &indices = moves.indices;
    const uint32_t number = blockIdx.x * (gather_threads / 32) + threadIdx.x / 32;
    if (number >= parts.all) return;
    const uint32_t row = number / parts.count, length = static_cast<uint32_t>(walk.shape[2]);
    const uint32_t middle = static_cast<uint32_t>(walk.shape[1]);
    const uint32_t part = number % parts.count * parts.words;
    const uint32_t end = min(part + parts.words, length), first = part + threadIdx.x % 32;
    const int64_t outer = row / middle, inner = row % middle;
    const int64_t at = outer * walk.strides[2][0] + inner * walk.strides[2][1];
    const T *from = static_cast<const T *>(moves.indexed) + outer * walk.strides[1][0] +
                    inner * walk.strides[1][1];
    T *to = static_cast<T *>(moves.flat) + int64_t(row) * length;
    int64_t index[EACH ? long_row_each : 1] = {};
    bool bad = false;
    if (EACH) {
#pragma unroll
        for (int e = 0; e < long_row_each; e++) {
            const uint32_t i = first + e * 32;
            if (i < end) index[EACH ? e : 0] = index_at(indices, 0, at + i * walk.strides[2][2]);
        }
    } else {
        from += counted_from_0(indices, 0, index_at(indices, 0, at), &bad) * indices.stride[0];
    }
    T word[long_row_each] = {};
#pragma unroll
    for (int e = 0; e < long_row_each; e++) {
        const uint32_t i = first + e * 32;
        if (i >= end) continue;
        int64_t place = i * walk.strides[1][2];
        if (EACH)
            place += counted_from_0(indices, 0, index[EACH ? e : 0], &bad) * indices.stride[0];
        word[e] = from[place];
    }
#pragma unroll
    for (int e = 0; e < long_row_each; e++)
        if (first + e * 32 < end) to[first + e * 32] = word[e];
}

// ---- On the host --------------------------------------------------------------------------------

// Whether a gather is one of these; its walk gets dimensions of length 1 in front, to have
// three, if it has two.
bool is_pick(Moves *moves) {
    Walk<3> &walk = moves->walk.walk;
    const int64_t most = (int64_t(1) << 31) - gather_threads * gather_each;
    if (!moves->walk.narrow || moves->size > most || walk.ndim > 3 || moves->indices.count > 2)
        return false;
    if (walk.ndim > 1 && moves->indices.count > 1) return false;
    while (walk.ndim == 0 || walk.ndim == 2) {
        for (int i = walk.ndim; i > 0; i--) {
            walk.shape[i] = walk.shape[i - 1];
            for (int k = 0; k < 3; k++) walk.strides[k][i] = walk.strides[k][i - 1];
        }
        walk.shape[0] = 1, walk.ndim++;
        for (int k = 0; k < 3; k++) walk.strides[k][0] = 0;
    }
    prepare(&moves->walk);
    return true;
}

int launch_picks(Call &call, const Moves &moves, int64_t bytes) {
    const Walk<3> &walk = moves.walk.walk;
    const int64_t length = walk.shape[walk.ndim - 1];
    const bool long_rows =
        walk.ndim == 3 && length >= least_long_row && moves.size >= least_of_long_rows;
    return dispatch_words(bytes, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const unsigned blocks = blocks_for(moves.size, gather_threads * gather_each);
        if (long_rows) {
            Parts parts = {blocks_for(length, 32 * long_row_each), 0, 0};
            parts.words = blocks_for(length, int64_t(parts.count) * 32) * 32;
            parts.all = static_cast<uint32_t>(moves.size / length) * parts.count;
            const unsigned all = blocks_for(parts.all, gather_threads / 32);
            if (walk.strides[2][2] == 0)
                PVG_LAUNCH((long_rows_kernel<T, false>), all, gather_threads, 0, call.stream, moves,
                           parts);
            else
                PVG_LAUNCH((long_rows_kernel<T, true>), all, gather_threads, 0, call.stream, moves,
                           parts);
        } else if (walk.ndim == 3) {
            PVG_LAUNCH((pick_kernel<T, 3, 1>), blocks, gather_threads, 0, call.stream, moves);
        } else if (moves.indices.count == 2) {
            PVG_LAUNCH((pick_kernel<T, 1, 2>), blocks, gather_threads, 0, call.stream, moves);
        } else {
            PVG_LAUNCH((pick_kernel<T, 1, 1>), blocks, gather_threads, 0, call.stream, moves);
        }
        return PVG_OK;
    });
}

} // namespace

} // namespace pvg
