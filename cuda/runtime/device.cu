// Devices: counted at first use, attributes cached, and the guards for forked children; see
// device.cuh.
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/report.cuh"
#include "runtime/stream.cuh"
#include <mutex>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

namespace pvg {

std::atomic<int64_t> counters[8];
std::atomic<bool> forked_child{false};

namespace {

std::mutex start_lock;
std::atomic<bool> started{false}; // the runtime has been asked once; what follows is final then
int devices = 0;
char why_none[256]; // why there is no device

struct CachedDevice {
    std::atomic<bool> ready;
    char name[256];
    int64_t attributes[PVG_DEVICE_ATTRIBUTE_COUNT];
};
CachedDevice cache[max_devices];
std::mutex cache_lock;

// Ours -> the runtime's, in the order of pvg_device_attribute_code.
const cudaDeviceAttr runtime_attributes[PVG_DEVICE_ATTRIBUTE_COUNT] = {
    cudaDevAttrMaxThreadsPerBlock,
    cudaDevAttrMaxBlockDimX,
    cudaDevAttrMaxBlockDimY,
    cudaDevAttrMaxBlockDimZ,
    cudaDevAttrMaxGridDimX,
    cudaDevAttrMaxGridDimY,
    cudaDevAttrMaxGridDimZ,
    cudaDevAttrMaxSharedMemoryPerBlock,
    cudaDevAttrMaxSharedMemoryPerBlockOptin,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor,
    cudaDevAttrReservedSharedMemoryPerBlock,
    cudaDevAttrTotalConstantMemory,
    cudaDevAttrWarpSize,
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxThreadsPerMultiProcessor,
    cudaDevAttrMaxBlocksPerMultiprocessor,
    cudaDevAttrMaxRegistersPerBlock,
    cudaDevAttrMaxRegistersPerMultiprocessor,
    cudaDevAttrClockRate,
    cudaDevAttrMemoryClockRate,
    cudaDevAttrGlobalMemoryBusWidth,
    cudaDevAttrL2CacheSize,
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrComputeCapabilityMinor,
    cudaDevAttrAsyncEngineCount,
    cudaDevAttrConcurrentKernels,
    cudaDevAttrEccEnabled,
    cudaDevAttrIntegrated,
    cudaDevAttrCanMapHostMemory,
    cudaDevAttrUnifiedAddressing,
    cudaDevAttrManagedMemory,
    cudaDevAttrCooperativeLaunch,
    cudaDevAttrMemoryPoolsSupported,
    cudaDevAttrMaxPitch,
    cudaDevAttrTextureAlignment,
    cudaDevAttrPciBusId,
    cudaDevAttrPciDeviceId,
    cudaDevAttrPciDomainId,
    cudaDevAttrComputeMode,
    cudaDevAttrKernelExecTimeout,
    cudaDevAttrSingleToDoublePrecisionPerfRatio,
    cudaDevAttrGlobalL1CacheSupported,
};

void in_forked_child() {
    if (started) forked_child = true;
}

void explain_no_device(cudaError_t code) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    (void)cudaGetLastError();
    if (driver == 0)
        snprintf(why_none, sizeof why_none, "no NVIDIA driver was found on this machine");
    else if (code == cudaErrorInsufficientDriver)
        snprintf(why_none, sizeof why_none,
                 "the NVIDIA driver is too old: it supports CUDA %d.%d, and CUDA %d.%d needs "
                 "driver 580 or newer",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                 CUDART_VERSION % 1000 / 10);
    else if (code == cudaErrorNoDevice || code == cudaSuccess)
        snprintf(why_none, sizeof why_none,
                 "the NVIDIA driver shows no GPU to this process (is CUDA_VISIBLE_DEVICES set?)");
    else
        snprintf(why_none, sizeof why_none, "the CUDA runtime cannot start: %s (%s)",
                 cudaGetErrorName(code), cudaGetErrorString(code));
}

} // namespace

int check_fork() {
    PVG_REQUIRE(
        !forked_child.load(std::memory_order_relaxed), PVG_ERROR_UNAVAILABLE,
        "this process was forked after its parent had started CUDA, which cannot be used here; "
        "start it with multiprocessing.get_context(\"spawn\") (or \"forkserver\"), or use the CPU");
    return PVG_OK;
}

int start_devices(int *count) {
    PVG_PASS(check_fork());
    std::lock_guard<std::mutex> hold(start_lock);
    if (!started) {
        int found = 0; // the runtime leaves it untouched on failure
        cudaError_t code = cudaGetDeviceCount(&found);
        if (code != cudaSuccess) {
            (void)cudaGetLastError();
            found = 0;
        }
        if (found == 0) explain_no_device(code);
        devices = found < max_devices ? found : max_devices;
        pthread_atfork(nullptr, nullptr, in_forked_child);
        started.store(true, std::memory_order_release);
    }
    *count = devices;
    return PVG_OK;
}

int check_device(int device) {
    int count = 0;
    if (started.load(std::memory_order_acquire)) {
        PVG_PASS(check_fork());
        count = devices;
    } else {
        PVG_PASS(start_devices(&count));
    }
    PVG_REQUIRE(count > 0, PVG_ERROR_UNAVAILABLE, "no device is available: %s", why_none);
    PVG_REQUIRE(device >= 0 && device < count, PVG_ERROR_UNAVAILABLE,
                "there is no device %d: this machine has %d", device, count);
    PVG_REQUIRE(!device_lost, PVG_ERROR_DEVICE_LOST,
                "a kernel failed earlier on a device of this process, which cannot use it any "
                "more: start a new process");
    return PVG_OK;
}

thread_local int operation_device = -1;

int DeviceScope::enter(int device) {
    if (device == operation_device) return PVG_OK;
    int now = -1;
    PVG_TRY(cudaGetDevice(&now));
    if (now != device) {
        PVG_TRY(cudaSetDevice(device));
        before = now;
    }
    return PVG_OK;
}

DeviceScope::~DeviceScope() {
    if (before >= 0) (void)cudaSetDevice(before);
}

int bind_context() {
    int device = 0;
    PVG_TRY(cudaGetDevice(&device));
    PVG_TRY(cudaSetDevice(device));
    return PVG_OK;
}

static int fill_cache(int device) {
    std::lock_guard<std::mutex> hold(cache_lock);
    CachedDevice &c = cache[device];
    if (c.ready.load(std::memory_order_acquire)) return PVG_OK;
    cudaDeviceProp properties;
    PVG_TRY(cudaGetDeviceProperties(&properties, device));
    snprintf(c.name, sizeof c.name, "%s", properties.name);
    for (int i = 0; i < PVG_DEVICE_ATTRIBUTE_COUNT; i++) {
        int value = 0;
        PVG_TRY(cudaDeviceGetAttribute(&value, runtime_attributes[i], device));
        c.attributes[i] = value;
    }
    c.ready.store(true, std::memory_order_release);
    return PVG_OK;
}

int device_attribute(int device, int attribute, int64_t *value) {
    PVG_REQUIRE(attribute >= 0 && attribute < PVG_DEVICE_ATTRIBUTE_COUNT, PVG_ERROR_VALUE,
                "unknown device attribute %d", attribute);
    PVG_PASS(check_device(device));
    if (!cache[device].ready.load(std::memory_order_acquire)) PVG_PASS(fill_cache(device));
    *value = cache[device].attributes[attribute];
    return PVG_OK;
}

static int device_name(int device, const char **name) {
    PVG_PASS(check_device(device));
    if (!cache[device].ready.load(std::memory_order_acquire)) PVG_PASS(fill_cache(device));
    *name = cache[device].name;
    return PVG_OK;
}

static int synchronize(int device) {
    PVG_PASS(check_device(device));
    PVG_PASS(refuse_recording(device, "waiting for the device"));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(finish_device(device));
    return check_reports(device);
}

} // namespace pvg

PVG_API int pvg_device_count(int *count) {
    pvg::clear_error();
    if (!count) return pvg::fail(PVG_ERROR_VALUE, "count is a null pointer");
    *count = 0;
    int status = pvg::start_devices(count);
    if (status == PVG_OK && *count == 0)
        return pvg::fail(PVG_ERROR_UNAVAILABLE, "no device is available: %s", pvg::why_none);
    return status;
}

PVG_API int pvg_driver_version(int *version) {
    pvg::clear_error();
    if (!version) return pvg::fail(PVG_ERROR_VALUE, "version is a null pointer");
    *version = 0;
    PVG_TRY(cudaDriverGetVersion(version));
    return PVG_OK;
}

PVG_API int pvg_runtime_version(int *version) {
    pvg::clear_error();
    if (!version) return pvg::fail(PVG_ERROR_VALUE, "version is a null pointer");
    PVG_TRY(cudaRuntimeGetVersion(version));
    return PVG_OK;
}

PVG_API const char *pvg_device_name(int device) {
    pvg::clear_error();
    const char *name = nullptr;
    return pvg::device_name(device, &name) == PVG_OK ? name : nullptr;
}

PVG_API int pvg_device_attribute(int device, int attribute, int64_t *value) {
    pvg::clear_error();
    if (!value) return pvg::fail(PVG_ERROR_VALUE, "value is a null pointer");
    return pvg::device_attribute(device, attribute, value);
}

PVG_API int pvg_synchronize(int device) {
    pvg::clear_error();
    return pvg::synchronize(device);
}

PVG_API int pvg_is_healthy(void) { return pvg::device_lost ? 0 : 1; }
