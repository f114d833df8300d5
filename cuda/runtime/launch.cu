// Around every kernel launch: checks, counts, and the log of launched kernels; see launch.cuh.
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/launch.cuh"
#include "runtime/report.cuh"
#include <dlfcn.h>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace pvg {

std::atomic<int64_t> option_sync, option_launch_log;

namespace {

// The log: an open-addressing table keyed by the kernel's host symbol. A library has some hundred
// kernels.
struct LogEntry {
    const void *kernel;
    const char *expression;
    int64_t launches;
};
constexpr size_t log_capacity = 8192;
LogEntry log_entries[log_capacity];
std::mutex log_lock;

void log_launch(const void *kernel, const char *expression) {
    std::lock_guard<std::mutex> hold(log_lock);
    size_t at = (reinterpret_cast<uintptr_t>(kernel) >> 4) * 0x9E3779B97F4A7C15ull % log_capacity;
    for (size_t tries = 0; tries < log_capacity; tries++, at = (at + 1) % log_capacity) {
        LogEntry &e = log_entries[at];
        if (!e.kernel) e.kernel = kernel, e.expression = expression;
        if (e.kernel == kernel) {
            e.launches++;
            return;
        }
    }
}

int fail_launch(const LaunchSite &site, cudaError_t code, dim3 grid, dim3 block,
                size_t shared_bytes) {
    char call[512];
    snprintf(call, sizeof call, "the launch of %s<<<(%u, %u, %u), (%u, %u, %u), %zu>>>",
             site.kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes);
    int status = fail_cuda(code, call, site.file, site.line);
    // Which error a refused launch gives depends on the CUDA version: 13 calls a block that is too
    // large an invalid value. What it is to the caller is one thing.
    if (status == PVG_ERROR_CUDA) status = error_record.status = PVG_ERROR_LAUNCH;
    return status;
}

} // namespace

static std::mutex setting_shared_memory;

// Unasked a kernel has 48 KiB less its static shared memory, which is up to 1 KiB of that.
SharedMemoryPermit::SharedMemoryPermit(const void *kernel, size_t bytes) : held(bytes > 47 << 10) {
    if (!held) return;
    setting_shared_memory.lock();
    code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(bytes));
}
SharedMemoryPermit::~SharedMemoryPermit() {
    if (held) setting_shared_memory.unlock();
}

#ifndef PVG_SIMULATOR
// cudaLaunchKernel, with the extras.
static cudaError_t launch_extended(const void *kernel, dim3 grid, dim3 block, size_t shared_bytes,
                                   cudaStream_t stream, const LaunchExtras &extras,
                                   void **parameters) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = grid, config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes, config.stream = stream, config.attrs = attributes;
    if (extras.cluster > 1) {
        cudaLaunchAttribute &cluster = attributes[config.numAttrs++];
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = extras.cluster;
        cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    }
    if (extras.overlap) {
        cudaLaunchAttribute &overlap = attributes[config.numAttrs++];
        overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        overlap.val.programmaticStreamSerializationAllowed = 1;
    }
    return cudaLaunchKernelExC(&config, kernel, parameters);
}

int launch_packed(const LaunchSite &site, const LaunchExtras &extras, const void *kernel,
                  const dim3 &grid, const dim3 &block, size_t shared_bytes, cudaStream_t stream,
                  void **parameters) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return PVG_OK;
    PVG_PASS(before_launch(site, grid, block));
    const SharedMemoryPermit permit(kernel, shared_bytes);
    const bool plain = extras.cluster == 1 && !extras.overlap;
    cudaError_t code = permit.code;
    if (code == cudaSuccess)
        code = plain
                   ? cudaLaunchKernel(kernel, grid, block, parameters, shared_bytes, stream)
                   : launch_extended(kernel, grid, block, shared_bytes, stream, extras, parameters);
    return after_launch(site, kernel, code, grid, block, shared_bytes, stream);
}
#endif

int before_launch(const LaunchSite &site, dim3 grid, dim3 block) {
    // An error that somebody else left behind is not ours to report, unless the device is lost.
    cudaError_t stale = cudaGetLastError();
    if (stale != cudaSuccess && is_sticky(stale)) return fail_launch(site, stale, grid, block, 0);
    return PVG_OK;
}

// Whether PYVECGPU_SYNC asks for a wait after each launch.
static bool waits_for(cudaStream_t stream) {
    return option_sync.load(std::memory_order_relaxed) && !is_captured(stream);
}

// After a launch that has succeeded.
static cudaError_t count_launch(cudaStream_t stream) {
    counters[PVG_COUNT_LAUNCHES].fetch_add(1, std::memory_order_relaxed);
    if (!waits_for(stream)) return cudaSuccess;
    counters[PVG_COUNT_WAITS]++;
    return cudaStreamSynchronize(stream);
}

int after_launch(const LaunchSite &site, const void *kernel, cudaError_t code, dim3 grid,
                 dim3 block, size_t shared_bytes, cudaStream_t stream) {
    if (code == cudaSuccess) code = cudaGetLastError();
    if (code != cudaSuccess) return fail_launch(site, code, grid, block, shared_bytes);
    if (option_launch_log.load(std::memory_order_relaxed)) log_launch(kernel, site.kernel);
    code = count_launch(stream);
    if (code != cudaSuccess) return fail_launch(site, code, grid, block, shared_bytes);
    return waits_for(stream) ? check_reports(operation_device) : PVG_OK;
}

int before_library(const LaunchSite &site) { return before_launch(site, dim3(), dim3()); }

int after_library(const LaunchSite &site, cudaError_t code, cudaStream_t stream) {
    if (code == cudaSuccess) code = cudaGetLastError();
    if (code == cudaSuccess) code = count_launch(stream);
    return code == cudaSuccess ? static_cast<int>(PVG_OK)
                               : fail_cuda(code, site.kernel, site.file, site.line);
}

} // namespace pvg

PVG_API const char *pvg_launch_log(void) {
    static thread_local struct Text {
        char *bytes = nullptr;
        ~Text() { free(bytes); }
    } text;
    constexpr size_t line = 320;
    Dl_info self;
    uintptr_t base = dladdr(reinterpret_cast<void *>(&pvg_launch_log), &self)
                         ? reinterpret_cast<uintptr_t>(self.dli_fbase)
                         : 0;
    std::lock_guard<std::mutex> hold(pvg::log_lock);
    size_t used = 0, at = 0;
    for (const pvg::LogEntry &e : pvg::log_entries) used += e.kernel != nullptr;
    char *bigger = static_cast<char *>(realloc(text.bytes, used * line + 1));
    if (!bigger) return "";
    text.bytes = bigger;
    text.bytes[0] = 0;
    for (const pvg::LogEntry &e : pvg::log_entries)
        if (e.kernel)
            at += static_cast<size_t>(snprintf(text.bytes + at, line, "%zx %lld %.250s\n",
                                               reinterpret_cast<uintptr_t>(e.kernel) - base,
                                               static_cast<long long>(e.launches), e.expression));
    return text.bytes;
}
