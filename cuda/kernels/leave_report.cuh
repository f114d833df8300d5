// How a kernel leaves a report; see runtime/report.cuh.
#pragma once
#include "runtime/report.cuh"

namespace pvg {

namespace {

// The first one stays until it has been looked at. index, axis, length: of reports about indices.
// Blocks have one dimension.
__device__ inline void leave_report(ReportSlot *slot, Report report, int64_t index = 0,
                                    int64_t axis = 0, int64_t length = 0) {
#ifndef PVG_SIMULATOR
    // One of the lanes that are here, and only while nobody has: each look crosses to the host.
    if (static_cast<int>(threadIdx.x % 32) != __ffs(static_cast<int>(__activemask())) - 1) return;
    if (*const_cast<volatile unsigned *>(&slot->word) != 0u) return;
#endif
    if (atomicCAS_system(&slot->word, 0u, report_being_written) != 0u) return;
    slot->index = index, slot->axis = axis, slot->length = length;
    __threadfence_system();
    atomicExch_system(&slot->word, static_cast<unsigned>(report));
}

} // namespace

} // namespace pvg
