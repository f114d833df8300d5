// Reports: errors that only a kernel can find, such as a singular matrix or an index out of range.
// The kernel leaves one in a slot of host memory that the device sees, one a device, and goes on;
// whoever waits for the device next, for whatever reason, finds it there. So nothing waits for the
// sake of an error.
#pragma once
#include "runtime/error.cuh"

namespace pvg {

enum class Report : unsigned {
    none,
    cholesky,   // a matrix that is not positive definite
    solve,      // a singular matrix
    inverse,    // the same
    triangular, // the same: a 0 on the diagonal
    gather,     // an index out of range
    scatter,    // the same
    accumulate, // the same
    label,      // of cross-entropy: it is no class
    count
};

// Where a kernel leaves a report (kernels/leave_report.cuh): the word is a Report, 0 for none, and
// is written last. Each look at one that the host has begins a new turn, from 1 on. Who brings the
// last turn taken, in the device's own memory, to this one is the only one to leave a report in it.
struct ReportSlot {
    unsigned word, turn, *taken;
    long long index, axis, length; // of an index out of range
};

// The device's slot, for kernels; the device is the current one. Of reports that nobody has seen in
// between, the first one stays. The slot is held until it is left, which is when everything that
// uses it was launched: Call::reports does both. captured: what is launched is written down, so
// the address outlives the call. Errors: MEMORY.
int take_report_slot(int device, bool captured, ReportSlot **slot);
void leave_report_slot(int device);
// Make the device forget the slot, unless somebody holds it; the next one to take it brings it
// back. Waits for the device.
int free_report_slot(int device);
// After a wait for the device: the error of what was reported since the last look, which is raised
// by one thread only, and names the operation. Errors: LINALG, INDEX.
int check_reports(int device);

} // namespace pvg
