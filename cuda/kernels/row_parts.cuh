// Rows that are too long for a block: up to eight blocks have a part each. On cards with clusters
// these are one, in which they tell each other their sums; before compute capability 9.0 they are
// told through memory, or one block takes all parts in turn. How a row is cut depends on its length
// alone, and the sums of parts are added up in one order, so that no bit depends on the card.
#pragma once
#include "kernels/clusters.cuh"
#include "kernels/rows.cuh"
#include "runtime/architecture.cuh"

namespace pvg {

constexpr int most_parts = 8; // as many as a cluster has anywhere

// Of a row, of `chunk` elements each, whole packs, but for the last.
struct RowParts { int parts, chunk; };

// Cut as evenly as packs allow, into parts of up to `most` elements.
inline RowParts parts_of_row(int64_t length, int64_t most, int pack) {
    const int64_t parts = length / most + (length % most != 0);
    const int64_t packs = length / pack + (length % pack != 0);
    const int64_t each = packs / parts + (packs % parts != 0);
    return {static_cast<int>(parts), static_cast<int>(each * pack)};
}

inline int has_clusters(int device, bool *has) {
    int architecture = 0;
    PVG_PASS(architecture_of(device, &architecture));
    *has = architecture >= 89; // 9.0 without the instructions of 9.0a, or more
    return PVG_OK;
}

namespace {

// The sum of what the parts have, in the same order in every thread; part(i) is that of one.
template <class A, class F> __device__ __forceinline__ A sum_of_parts(int parts, F &&part) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    return sum_of_lanes(lane < parts ? part(lane) : A(0), 32);
}

} // namespace
} // namespace pvg
