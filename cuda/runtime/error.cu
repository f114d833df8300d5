// The error record of each thread, and how the CUDA runtime's errors map to ours; see error.cuh.
#include "runtime/error.cuh"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace pvg {

thread_local ErrorRecord error_record;
thread_local const char *current_operation = "";
std::atomic<bool> device_lost{false};

static const char hint_sync[] = " Kernels run asynchronously: with PVG_OPTION_SYNC "
                                "(PYVECGPU_SYNC=1) the operation at fault is named.";
static const char hint_lost[] =
    " The device cannot be used any more in this process: start a new one.";

int fail(int status, const char *format, ...) {
    ErrorRecord &e = error_record;
    e.status = status;
    e.cuda_code = 0;
    e.requested = e.free = e.reserved = e.device = 0;
    snprintf(e.operation, sizeof e.operation, "%s", current_operation);
    size_t at = 0;
    if (e.operation[0])
        at = static_cast<size_t>(snprintf(e.text, sizeof e.text, "%s: ", e.operation));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e.text + at, sizeof e.text - at, format, arguments);
    va_end(arguments);
    return status;
}

bool is_sticky(cudaError_t code) {
    switch (static_cast<int>(code)) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown: return true;
    default: return false;
    }
}

static int status_of(cudaError_t code) {
    if (is_sticky(code)) return PVG_ERROR_DEVICE_LOST;
    switch (static_cast<int>(code)) {
    case cudaErrorMemoryAllocation: return PVG_ERROR_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorInvalidDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorNoKernelImageForDevice: return PVG_ERROR_UNAVAILABLE;
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorInvalidDeviceFunction: return PVG_ERROR_LAUNCH;
    default: return PVG_ERROR_CUDA;
    }
}

// The part of a path that says something to a reader of messages: "arrays/copy.cu".
static const char *short_path(const char *file) {
    const char *found = strstr(file, "cuda/");
    return found ? found + strlen("cuda/") : file;
}

int fail_cuda(cudaError_t code, const char *call, const char *file, int line) {
    (void)cudaGetLastError(); // ours now; a sticky error stays with the runtime anyway
    bool sticky = is_sticky(code);
    if (sticky) device_lost = true;
    int status = status_of(code);
    fail(status, "%s (%s) in %s, %s:%d.%s%s", cudaGetErrorName(code), cudaGetErrorString(code),
         call, short_path(file), line, sticky ? hint_lost : "", sticky ? hint_sync : "");
    error_record.cuda_code = static_cast<int>(code);
    return status;
}

int fail_memory(int device, int64_t requested, int64_t free, int64_t reserved, int64_t limit) {
    char bound[64] = "";
    if (limit > 0)
        snprintf(bound, sizeof bound, ", limited to %lld", static_cast<long long>(limit));
    fail(PVG_ERROR_MEMORY,
         "out of memory on device %d: %lld bytes requested, %lld free on the device, %lld held by "
         "this process%s",
         device, static_cast<long long>(requested), static_cast<long long>(free),
         static_cast<long long>(reserved), bound);
    ErrorRecord &e = error_record;
    e.cuda_code = static_cast<int>(cudaErrorMemoryAllocation);
    e.requested = requested, e.free = free, e.reserved = reserved, e.device = device;
    return PVG_ERROR_MEMORY;
}

} // namespace pvg

PVG_API int pvg_last_status(void) { return pvg::error_record.status; }

PVG_API const char *pvg_last_error(void) {
    return pvg::error_record.status ? pvg::error_record.text : "";
}

PVG_API const char *pvg_last_error_operation(void) {
    return pvg::error_record.status ? pvg::error_record.operation : "";
}

PVG_API const char *pvg_last_error_cuda_name(void) {
    const pvg::ErrorRecord &e = pvg::error_record;
    return e.status && e.cuda_code ? cudaGetErrorName(static_cast<cudaError_t>(e.cuda_code)) : "";
}

PVG_API int64_t pvg_last_error_value(int which) {
    const pvg::ErrorRecord &e = pvg::error_record;
    const int64_t known = e.status != PVG_OK; // the numbers of an error before it are stale
    switch (which) {
    case PVG_ERROR_VALUE_CUDA_CODE: return known * e.cuda_code;
    case PVG_ERROR_VALUE_REQUESTED: return known * e.requested;
    case PVG_ERROR_VALUE_FREE: return known * e.free;
    case PVG_ERROR_VALUE_RESERVED: return known * e.reserved;
    case PVG_ERROR_VALUE_DEVICE: return known * e.device;
    }
    return -1;
}
