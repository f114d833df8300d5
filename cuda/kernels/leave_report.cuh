// How a kernel leaves a report; see runtime/report.cuh.
#pragma once
#include "runtime/report.cuh"

namespace pvg {

namespace {

// A word of host memory, which a device has no atomic operations on: it only reads and writes it.
__device__ inline unsigned look_at_host(unsigned *word) {
#ifdef PVG_SIMULATOR
    return atomicMax(word, 0u);
#else
    return *const_cast<volatile unsigned *>(word);
#endif
}

__device__ inline void tell_host(unsigned *word, unsigned value) {
    __threadfence_system();
#ifdef PVG_SIMULATOR
    atomicExch(word, value);
#else
    *const_cast<volatile unsigned *>(word) = value;
#endif
}

// The first one stays until it has been looked at. index, axis, length: of reports about indices.
// Blocks have one dimension.
__device__ inline void leave_report(ReportSlot *slot, Report report, int64_t index = 0,
                                    int64_t axis = 0, int64_t length = 0) {
#ifndef PVG_SIMULATOR
    // One of the lanes that are here: each look crosses to the host.
    if (static_cast<int>(threadIdx.x % 32) != __ffs(static_cast<int>(__activemask())) - 1) return;
#endif
    const unsigned turn = look_at_host(&slot->turn);
    if (atomicMax(slot->taken, turn) >= turn) return;
    slot->index = index, slot->axis = axis, slot->length = length;
    tell_host(&slot->word, static_cast<unsigned>(report));
}

} // namespace

} // namespace pvg
