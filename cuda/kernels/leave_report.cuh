// How a kernel leaves a report; see runtime/report.cuh.
#pragma once
#include "runtime/report.cuh"

namespace pvg {

namespace {

// The first one stays until it has been looked at. index, axis, length: of reports about indices.
__device__ inline void leave_report(ReportSlot *slot, Report report, int64_t index = 0,
                                    int64_t axis = 0, int64_t length = 0) {
    if (atomicCAS(&slot->word, 0u, report_being_written) != 0u) return;
    slot->index = index, slot->axis = axis, slot->length = length;
    __threadfence_system();
    atomicExch(&slot->word, static_cast<unsigned>(report));
}

} // namespace

} // namespace pvg
