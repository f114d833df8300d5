// Reports: errors that only a kernel can find, such as a singular matrix. The kernel leaves one in
// a word of host memory that the device sees, one word a device, and goes on; whoever waits for the
// device next, for whatever reason, finds it there. So nothing waits for the sake of an error.
#pragma once
#include "runtime/error.cuh"

namespace pvg {

enum class Report : unsigned {
    none,
    cholesky,   // a matrix that is not positive definite
    solve,      // a singular matrix
    inverse,    // the same
    triangular, // the same: a 0 on the diagonal
    count
};

// The device's word, for kernels, which write a Report there; the device is the current one. Of
// reports that nobody has seen in between, the last one stays. The word is held until it is left,
// which is when everything that uses it was launched: Call::reports does both. captured: what is
// launched is written down, so the address outlives the call. Errors: MEMORY.
int take_report_word(int device, bool captured, unsigned **word);
void leave_report_word(int device);
// Make the device forget the word, unless somebody holds it; the next one to take it brings it
// back. Waits for the device.
int free_report_word(int device);
// After a wait for the device: the error of what was reported since the last look, which is raised
// by one thread only, and names the operation. Errors: LINALG.
int check_reports(int device);

} // namespace pvg
