// Errors: one record per thread, filled where a failure is seen, read through pvg_last_error and
// its kin.
//
// Functions inside the library return a status (PVG_OK or PVG_ERROR_*) and leave the text here:
//     PVG_TRY(cudaMalloc(&p, n));     a CUDA call: on failure record it, return its status
//     PVG_PASS(other_function(...));  a status: on failure return it, the text is there
//     PVG_REQUIRE(n >= 0, PVG_ERROR_VALUE, "n must not be negative, got %lld", (long long)n);
#pragma once
#include "pyvecgpu.h"
#include <atomic>
#include <cuda_runtime.h>

namespace pvg {

struct ErrorRecord {
    int status;
    int cuda_code;
    char operation[48];
    char text[1024];
    int64_t requested, free, reserved, device; // of PVG_ERROR_MEMORY
};
extern thread_local ErrorRecord error_record;
// What the calling thread is doing, for messages and the launch check; "" outside of an operation.
extern thread_local const char *current_operation;

// Forget the last error; every exported function begins with this or with an Operation.
inline void clear_error() { error_record.status = PVG_OK; }

// Record a failure; the operation's name is put before the text. Returns status.
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Record a failure of the CUDA runtime and clear it there, as far as it can be cleared. Returns the
// status it maps to.
int fail_cuda(cudaError_t code, const char *call, const char *file, int line);
// Record that `requested` bytes could not be had on a device.
int fail_memory(int device, int64_t requested, int64_t free, int64_t reserved, int64_t limit);

// True for errors after which no CUDA call of this process works any more.
bool is_sticky(cudaError_t code);
extern std::atomic<bool> device_lost; // set when a sticky error is seen

// What the exported functions named drop do. The variable is NULL before the handle is released, so
// that nobody finds in it what is another's by then; and a success leaves the last error as it is,
// because a finaliser may come between a failed call and the look at what went wrong.
template <class Handle> int drop(Handle **variable, int (*release)(Handle *)) {
    if (!variable) {
        clear_error();
        return fail(PVG_ERROR_VALUE, "the address of a handle is a null pointer");
    }
    Handle *handle = *variable;
    if (!handle) return PVG_OK;
    *variable = nullptr;
    if (error_record.status == PVG_OK) return release(handle);
    ErrorRecord before = error_record;
    int status = release(handle);
    if (status == PVG_OK) error_record = before;
    return status;
}

} // namespace pvg

#define PVG_TRY(call)                                                                              \
    do {                                                                                           \
        cudaError_t pvg_code_ = (call);                                                            \
        if (pvg_code_ != cudaSuccess) return pvg::fail_cuda(pvg_code_, #call, __FILE__, __LINE__); \
    } while (0)

#define PVG_PASS(status)                               \
    do {                                               \
        int pvg_status_ = (status);                    \
        if (pvg_status_ != PVG_OK) return pvg_status_; \
    } while (0)

#define PVG_REQUIRE(condition, status, ...)                      \
    do {                                                         \
        if (!(condition)) return pvg::fail(status, __VA_ARGS__); \
    } while (0)
