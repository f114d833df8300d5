/* What a simulated card says about itself.
 *
 * One table gives every attribute, and cudaGetDeviceProperties() is filled from the same numbers.
 * Where cards differ, by the setting "card0" and its like, cards.cpp says how. */
#include "simulator.h"

#include <cstring>

namespace pvg_sim {

static const int REGISTERS = 65536, CLOCK_KHZ = 1500000, MEMORY_CLOCK_KHZ = 5000000;
static const int BUS_WIDTH_BITS = 256, L2_BYTES = 1 << 20, CONSTANT_BYTES = 64 << 10;
static const int PITCH = 0x7fffffff, KERNEL_REGISTERS = 32;

struct Attribute { int number, value; };

/* Numbers that are not listed but lie in the enum's range have the value 0: not supported. */
static const Attribute attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, (int)MAX_BLOCK_THREADS},
    {cudaDevAttrMaxBlockDimX, (int)MAX_BLOCK_THREADS},
    {cudaDevAttrMaxBlockDimY, (int)MAX_BLOCK_THREADS},
    {cudaDevAttrMaxBlockDimZ, (int)MAX_BLOCK_Z},
    {cudaDevAttrMaxGridDimX, (int)MAX_GRID_X},
    {cudaDevAttrMaxGridDimY, (int)MAX_GRID_YZ},
    {cudaDevAttrMaxGridDimZ, (int)MAX_GRID_YZ},
    {cudaDevAttrMaxSharedMemoryPerBlock, DEFAULT_SHARED_BYTES},
    {cudaDevAttrTotalConstantMemory, CONSTANT_BYTES},
    {cudaDevAttrWarpSize, warpSize},
    {cudaDevAttrMaxPitch, PITCH},
    {cudaDevAttrMaxRegistersPerBlock, REGISTERS},
    {cudaDevAttrMaxRegistersPerMultiprocessor, REGISTERS},
    {cudaDevAttrClockRate, CLOCK_KHZ},
    {cudaDevAttrMemoryClockRate, MEMORY_CLOCK_KHZ},
    {cudaDevAttrGlobalMemoryBusWidth, BUS_WIDTH_BITS},
    {cudaDevAttrL2CacheSize, L2_BYTES},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrAsyncEngineCount, 2},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 32},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrHostNumaId, -1},
    {cudaDevAttrNumaId, -1},
    {cudaDevAttrMaxTexture1DWidth, 131072},
    {cudaDevAttrMaxTexture2DWidth, 131072},
    {cudaDevAttrMaxTexture2DHeight, 65536},
    {cudaDevAttrMaxTexture3DWidth, 16384},
    {cudaDevAttrMaxTexture3DHeight, 16384},
    {cudaDevAttrMaxTexture3DDepth, 16384},
};

static int attribute(int number, int device) {
    const Description &card = description_of(device);
    switch (number) {
    case cudaDevAttrComputeCapabilityMajor: return card.capability / 10;
    case cudaDevAttrComputeCapabilityMinor: return card.capability % 10;
    case cudaDevAttrMultiProcessorCount: return (int)settings.multiprocessors;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return card.shared_of_block;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return card.shared_of_multiprocessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return card.reserved_shared;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return card.threads_of_multiprocessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return card.blocks_of_multiprocessor;
    case cudaDevAttrPciBusId: return 1 + device;
    }
    for (const Attribute &a : attributes) {
        if (a.number == number) return a.value;
    }
    return 0;
}

static bool is_device(int device) { return device >= 0 && device < settings.devices; }

static void describe_limits(cudaDeviceProp &p, int device) {
    p.warpSize = attribute(cudaDevAttrWarpSize, device);
    p.maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock, device);
    p.maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor, device);
    p.maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor, device);
    for (int i = 0; i < 3; i++) {
        p.maxThreadsDim[i] = attribute(cudaDevAttrMaxBlockDimX + i, device);
        p.maxGridSize[i] = attribute(cudaDevAttrMaxGridDimX + i, device);
    }
    p.sharedMemPerBlock = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlock, device);
    p.sharedMemPerBlockOptin = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    p.sharedMemPerMultiprocessor =
        (size_t)attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    p.regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock, device);
    p.regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor, device);
    p.totalConstMem = (size_t)attribute(cudaDevAttrTotalConstantMemory, device);
    p.memPitch = (size_t)attribute(cudaDevAttrMaxPitch, device);
    p.textureAlignment = (size_t)attribute(cudaDevAttrTextureAlignment, device);
    p.texturePitchAlignment = (size_t)attribute(cudaDevAttrTexturePitchAlignment, device);
    p.surfaceAlignment = (size_t)attribute(cudaDevAttrSurfaceAlignment, device);
}

static void describe_card(cudaDeviceProp &p, int device) {
    snprintf(p.name, sizeof p.name, "pyvecgpu simulator");
    memcpy(p.uuid.bytes, "pvg-simulator-", 14);
    p.uuid.bytes[15] = (char)device;
    p.totalGlobalMem = settings.memory;
    p.major = attribute(cudaDevAttrComputeCapabilityMajor, device);
    p.minor = attribute(cudaDevAttrComputeCapabilityMinor, device);
    p.multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount, device);
    p.memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth, device);
    p.l2CacheSize = attribute(cudaDevAttrL2CacheSize, device);
    p.asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount, device);
    p.concurrentKernels = attribute(cudaDevAttrConcurrentKernels, device);
    p.canMapHostMemory = attribute(cudaDevAttrCanMapHostMemory, device);
    p.unifiedAddressing = attribute(cudaDevAttrUnifiedAddressing, device);
    p.managedMemory = attribute(cudaDevAttrManagedMemory, device);
    p.hostRegisterSupported = attribute(cudaDevAttrHostRegisterSupported, device);
    p.canUseHostPointerForRegisteredMem =
        attribute(cudaDevAttrCanUseHostPointerForRegisteredMem, device);
    p.globalL1CacheSupported = attribute(cudaDevAttrGlobalL1CacheSupported, device);
    p.localL1CacheSupported = attribute(cudaDevAttrLocalL1CacheSupported, device);
    p.pciBusID = attribute(cudaDevAttrPciBusId, device);
    p.deviceNumaId = attribute(cudaDevAttrNumaId, device);
    p.hostNumaId = attribute(cudaDevAttrHostNumaId, device);
}

} /* namespace pvg_sim */

using namespace pvg_sim;

/* ---- Devices ---- */

extern "C" cudaError_t cudaGetDeviceCount(int *count) {
    Call call;
    if (!count) return call.finish(cudaErrorInvalidValue);
    if (settings.driver < CUDART_VERSION) return call.finish(cudaErrorInsufficientDriver);
    if (settings.start_error != cudaSuccess) return call.finish((cudaError_t)settings.start_error);
    if (settings.devices == 0) return call.finish(cudaErrorNoDevice);
    *count = (int)settings.devices;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGetDevice(int *device) {
    Call call;
    if (!device) return call.finish(cudaErrorInvalidValue);
    *device = current_device();
    return cudaSuccess;
}

extern "C" cudaError_t cudaSetDevice(int device) {
    Call call;
    if (!is_device(device)) return call.finish(cudaErrorInvalidDevice);
    set_current_device(device);
    bind_context();
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr number, int device) {
    Call call;
    if (!value || number < cudaDevAttrMaxThreadsPerBlock || number >= cudaDevAttrMax) {
        return call.finish(cudaErrorInvalidValue);
    }
    if (!is_device(device)) return call.finish(cudaErrorInvalidDevice);
    *value = attribute(number, device);
    return cudaSuccess;
}

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    Call call;
    if (!properties) return call.finish(cudaErrorInvalidValue);
    if (!is_device(device)) return call.finish(cudaErrorInvalidDevice);
    *properties = cudaDeviceProp{};
    describe_limits(*properties, device);
    describe_card(*properties, device);
    return cudaSuccess;
}

extern "C" cudaError_t cudaDriverGetVersion(int *version) {
    if (!version) return cudaErrorInvalidValue;
    *version = (int)settings.driver;
    return cudaSuccess;
}

extern "C" cudaError_t cudaRuntimeGetVersion(int *version) {
    if (!version) return cudaErrorInvalidValue;
    *version = CUDART_VERSION;
    return cudaSuccess;
}

extern "C" cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    Call call;
    if (!can) return call.finish(cudaErrorInvalidValue);
    if (!is_device(device) || !is_device(peer)) return call.finish(cudaErrorInvalidDevice);
    *can = 0; /* so that code must copy */
    return cudaSuccess;
}

extern "C" cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
    Call call;
    return call.finish(cudaErrorPeerAccessUnsupported);
}

/* ---- Kernels ---- */

extern "C" cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute which,
                                            int value) {
    Call call;
    if (!kernel) return call.finish(cudaErrorInvalidDeviceFunction);
    if (which == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || value > description_of(current_device()).shared_of_block) {
            return call.finish(cudaErrorInvalidValue);
        }
        limits_of(kernel).dynamic_shared_bytes = value;
    } else if (which == cudaFuncAttributePreferredSharedMemoryCarveout) {
        if (value < -1 || value > 100) return call.finish(cudaErrorInvalidValue);
        limits_of(kernel).carveout = value;
    } else {
        return call.finish(cudaErrorInvalidValue);
    }
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *result, const void *kernel) {
    Call call;
    if (!result) return call.finish(cudaErrorInvalidValue);
    if (!kernel) return call.finish(cudaErrorInvalidDeviceFunction);
    *result = cudaFuncAttributes{};
    result->maxThreadsPerBlock = (int)limits_of(kernel).most_threads;
    result->numRegs = KERNEL_REGISTERS;
    result->ptxVersion = result->binaryVersion = description_of(current_device()).capability;
    result->maxDynamicSharedSizeBytes = limits_of(kernel).dynamic_shared_bytes;
    result->preferredShmemCarveout = limits_of(kernel).carveout;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaFuncSetCacheConfig(const void *, cudaFuncCache) {
    Call call;
    return call.finish(cudaSuccess); /* a hint */
}

/* By threads, blocks and dynamic shared memory; static shared memory and registers are unknown. */
extern "C" cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *result,
                                                                     const void *kernel,
                                                                     int block_threads,
                                                                     size_t dynamic_shared_bytes) {
    Call call;
    if (!result || block_threads <= 0) return call.finish(cudaErrorInvalidValue);
    if (!kernel) return call.finish(cudaErrorInvalidDeviceFunction);
    int warps = (block_threads + warpSize - 1) / warpSize;
    const Description &card = description_of(current_device());
    int blocks = card.threads_of_multiprocessor / warpSize / warps;
    if (blocks > card.blocks_of_multiprocessor) blocks = card.blocks_of_multiprocessor;
    if (dynamic_shared_bytes) {
        size_t fit = (size_t)card.shared_of_multiprocessor /
                     (dynamic_shared_bytes + (size_t)card.reserved_shared);
        if (fit < (size_t)blocks) blocks = (int)fit;
    }
    *result = blocks;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *result, const void *kernel, int block_threads, size_t dynamic_shared_bytes, unsigned) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(result, kernel, block_threads,
                                                         dynamic_shared_bytes);
}
