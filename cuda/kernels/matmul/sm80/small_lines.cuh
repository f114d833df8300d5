// How what begins anywhere comes to shared memory, for products of 16 bits in small tiles
// (small.cuh): through registers, as words of 8 bytes that are shifted on the way.
#pragma once
#include "kernels/matmul/plan/tiles.cuh"
#include <stdint.h>

namespace pvg::matmul {

namespace {

constexpr int small_warps = small_threads / 32;

// A part of an operand that goes to shared memory: `lines` stored lines, `length` of each, and
// zeros around them up to multiples of 16, which is what an instruction multiplies.
struct SmallPart {
    const uint16_t *from;
    int64_t stride;
    int lines, length, all_lines, all_length;
    int pitch; // bytes, in shared memory
};

// Elements that may be read, wanted or not.
struct SmallBounds { const uint16_t *begin, *end; };

// A multiple of 8 bytes in memory, of which only what is within the bounds is read; 0 beside it.
__device__ __forceinline__ uint64_t read_word(const uint16_t *word, const SmallBounds &bounds) {
    if (word >= bounds.begin && word + 4 <= bounds.end)
        return *reinterpret_cast<const uint64_t *>(word);
    uint64_t found = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i++)
        if (word + i >= bounds.begin && word + i < bounds.end)
            found |= static_cast<uint64_t>(word[i]) << 16 * i;
    return found;
}

// A thread's share of a part of LINES lines of up to 64 elements. A warp takes every fourth line:
// these are multiples of 8 bytes apart, so that all of them begin `shift` elements behind a word.
// Half of the warp reads a line, and each lane a word; the four elements that it brings to shared
// memory are in that and the next lane's. `fetch` only reads, so that others can be on their way.
template <int LINES> struct SmallLines {
    static constexpr int count = LINES / (2 * small_warps), lanes = 16; // of a line
    uint64_t words[count], behind = 0; // behind: the 17th word, of the lane's line among the warp's
    int shift = 0;

    // Worked out again each time: the loop that multiplies needs the registers.
    struct Place {
        int warp, half, quad, line; // half of the warp, word of the line, the thread's first line
    };
    static __device__ __forceinline__ Place place() {
        int thread = static_cast<int>(threadIdx.x);
        asm volatile("" : "+r"(thread));
        const int warp = thread / 32, half = thread / lanes % 2;
        return {warp, half, thread % lanes, warp + half * small_warps};
    }
    __device__ __forceinline__ bool needs_behind(const SmallPart &x) const {
        return shift > 0 && x.length + shift > 4 * lanes;
    }

    // solid: the bounds are those of more than the part, whose lines follow each other without
    // gaps; else a line's are its own.
    __device__ __forceinline__ void fetch(const SmallPart &x, bool solid, SmallBounds bounds) {
        const auto [warp, half, quad, line] = place();
        const uint16_t *row = x.from + line * x.stride;
        shift = static_cast<int>(reinterpret_cast<uintptr_t>(row) / 2 % 4);
        const bool wanted = quad * 4 < x.length + shift;
#pragma unroll
        for (int i = 0; i < count; i++) words[i] = 0;
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (warp + i * 2 * small_warps >= x.lines) break; // the warp has no more
            if (!solid) bounds = {row, row + x.length};
            if (wanted && line + i * 2 * small_warps < x.lines)
                words[i] = read_word(row - shift + quad * 4, bounds);
            row += 2 * small_warps * x.stride;
        }
        behind = 0;
        if (!needs_behind(x)) return;
        const int own = warp + (half * lanes + quad) * small_warps;
        if (own >= x.lines) return;
        row = x.from + own * x.stride;
        if (!solid) bounds = {row, row + x.length};
        behind = read_word(row - shift + 4 * lanes, bounds);
    }

    __device__ __forceinline__ void put(unsigned char *to, const SmallPart &x) const {
        const auto [warp, half, quad, line] = place();
        const int left = x.length - quad * 4;
        const uint64_t mask = left >= 4  ? ~uint64_t(0)
                              : left > 0 ? ~(~uint64_t(0) << 16 * left)
                                         : 0;
        const bool has_behind = needs_behind(x);
        to += line * x.pitch + quad * 8;
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (warp + i * 2 * small_warps >= x.all_lines) break;
            uint64_t word = words[i];
            if (shift > 0) {
                uint64_t next = __shfl_down_sync(~0u, word, 1);
                if (has_behind) {
                    const uint64_t last = __shfl_sync(~0u, behind, 2 * i + half);
                    if (quad == lanes - 1) next = last;
                }
                word = word >> 16 * shift | next << (64 - 16 * shift);
            }
            if (line + i * 2 * small_warps < x.all_lines && quad * 4 < x.all_length)
                *reinterpret_cast<uint64_t *>(to) = word & mask;
            to += 2 * small_warps * x.pitch;
        }
    }
};

} // namespace

} // namespace pvg::matmul
