/* The names of the runtime's errors, and the texts of those that the simulator returns. */
#include <cuda_runtime_api.h>

namespace {

struct ErrorName {
    cudaError_t error;
    const char *name;
};

/* clang-format off */
#define NAME(error) {error, #error}
const ErrorName names[] = {
    NAME(cudaSuccess),
    NAME(cudaErrorInvalidValue),
    NAME(cudaErrorMemoryAllocation),
    NAME(cudaErrorInitializationError),
    NAME(cudaErrorCudartUnloading),
    NAME(cudaErrorProfilerDisabled),
    NAME(cudaErrorProfilerNotInitialized),
    NAME(cudaErrorProfilerAlreadyStarted),
    NAME(cudaErrorProfilerAlreadyStopped),
    NAME(cudaErrorInvalidConfiguration),
    NAME(cudaErrorInvalidPitchValue),
    NAME(cudaErrorInvalidSymbol),
    NAME(cudaErrorInvalidHostPointer),
    NAME(cudaErrorInvalidDevicePointer),
    NAME(cudaErrorInvalidTexture),
    NAME(cudaErrorInvalidTextureBinding),
    NAME(cudaErrorInvalidChannelDescriptor),
    NAME(cudaErrorInvalidMemcpyDirection),
    NAME(cudaErrorAddressOfConstant),
    NAME(cudaErrorTextureFetchFailed),
    NAME(cudaErrorTextureNotBound),
    NAME(cudaErrorSynchronizationError),
    NAME(cudaErrorInvalidFilterSetting),
    NAME(cudaErrorInvalidNormSetting),
    NAME(cudaErrorMixedDeviceExecution),
    NAME(cudaErrorNotYetImplemented),
    NAME(cudaErrorMemoryValueTooLarge),
    NAME(cudaErrorStubLibrary),
    NAME(cudaErrorInsufficientDriver),
    NAME(cudaErrorCallRequiresNewerDriver),
    NAME(cudaErrorInvalidSurface),
    NAME(cudaErrorDuplicateVariableName),
    NAME(cudaErrorDuplicateTextureName),
    NAME(cudaErrorDuplicateSurfaceName),
    NAME(cudaErrorDevicesUnavailable),
    NAME(cudaErrorIncompatibleDriverContext),
    NAME(cudaErrorMissingConfiguration),
    NAME(cudaErrorPriorLaunchFailure),
    NAME(cudaErrorLaunchMaxDepthExceeded),
    NAME(cudaErrorLaunchFileScopedTex),
    NAME(cudaErrorLaunchFileScopedSurf),
    NAME(cudaErrorSyncDepthExceeded),
    NAME(cudaErrorLaunchPendingCountExceeded),
    NAME(cudaErrorInvalidDeviceFunction),
    NAME(cudaErrorNoDevice),
    NAME(cudaErrorInvalidDevice),
    NAME(cudaErrorDeviceNotLicensed),
    NAME(cudaErrorSoftwareValidityNotEstablished),
    NAME(cudaErrorStartupFailure),
    NAME(cudaErrorInvalidKernelImage),
    NAME(cudaErrorDeviceUninitialized),
    NAME(cudaErrorMapBufferObjectFailed),
    NAME(cudaErrorUnmapBufferObjectFailed),
    NAME(cudaErrorArrayIsMapped),
    NAME(cudaErrorAlreadyMapped),
    NAME(cudaErrorNoKernelImageForDevice),
    NAME(cudaErrorAlreadyAcquired),
    NAME(cudaErrorNotMapped),
    NAME(cudaErrorNotMappedAsArray),
    NAME(cudaErrorNotMappedAsPointer),
    NAME(cudaErrorECCUncorrectable),
    NAME(cudaErrorUnsupportedLimit),
    NAME(cudaErrorDeviceAlreadyInUse),
    NAME(cudaErrorPeerAccessUnsupported),
    NAME(cudaErrorInvalidPtx),
    NAME(cudaErrorInvalidGraphicsContext),
    NAME(cudaErrorNvlinkUncorrectable),
    NAME(cudaErrorJitCompilerNotFound),
    NAME(cudaErrorUnsupportedPtxVersion),
    NAME(cudaErrorJitCompilationDisabled),
    NAME(cudaErrorUnsupportedExecAffinity),
    NAME(cudaErrorUnsupportedDevSideSync),
    NAME(cudaErrorContained),
    NAME(cudaErrorInvalidSource),
    NAME(cudaErrorFileNotFound),
    NAME(cudaErrorSharedObjectSymbolNotFound),
    NAME(cudaErrorSharedObjectInitFailed),
    NAME(cudaErrorOperatingSystem),
    NAME(cudaErrorInvalidResourceHandle),
    NAME(cudaErrorIllegalState),
    NAME(cudaErrorLossyQuery),
    NAME(cudaErrorSymbolNotFound),
    NAME(cudaErrorNotReady),
    NAME(cudaErrorIllegalAddress),
    NAME(cudaErrorLaunchOutOfResources),
    NAME(cudaErrorLaunchTimeout),
    NAME(cudaErrorLaunchIncompatibleTexturing),
    NAME(cudaErrorPeerAccessAlreadyEnabled),
    NAME(cudaErrorPeerAccessNotEnabled),
    NAME(cudaErrorSetOnActiveProcess),
    NAME(cudaErrorContextIsDestroyed),
    NAME(cudaErrorAssert),
    NAME(cudaErrorTooManyPeers),
    NAME(cudaErrorHostMemoryAlreadyRegistered),
    NAME(cudaErrorHostMemoryNotRegistered),
    NAME(cudaErrorHardwareStackError),
    NAME(cudaErrorIllegalInstruction),
    NAME(cudaErrorMisalignedAddress),
    NAME(cudaErrorInvalidAddressSpace),
    NAME(cudaErrorInvalidPc),
    NAME(cudaErrorLaunchFailure),
    NAME(cudaErrorCooperativeLaunchTooLarge),
    NAME(cudaErrorTensorMemoryLeak),
    NAME(cudaErrorNotPermitted),
    NAME(cudaErrorNotSupported),
    NAME(cudaErrorSystemNotReady),
    NAME(cudaErrorSystemDriverMismatch),
    NAME(cudaErrorCompatNotSupportedOnDevice),
    NAME(cudaErrorMpsConnectionFailed),
    NAME(cudaErrorMpsRpcFailure),
    NAME(cudaErrorMpsServerNotReady),
    NAME(cudaErrorMpsMaxClientsReached),
    NAME(cudaErrorMpsMaxConnectionsReached),
    NAME(cudaErrorMpsClientTerminated),
    NAME(cudaErrorCdpNotSupported),
    NAME(cudaErrorCdpVersionMismatch),
    NAME(cudaErrorStreamCaptureUnsupported),
    NAME(cudaErrorStreamCaptureInvalidated),
    NAME(cudaErrorStreamCaptureMerge),
    NAME(cudaErrorStreamCaptureUnmatched),
    NAME(cudaErrorStreamCaptureUnjoined),
    NAME(cudaErrorStreamCaptureIsolation),
    NAME(cudaErrorStreamCaptureImplicit),
    NAME(cudaErrorCapturedEvent),
    NAME(cudaErrorStreamCaptureWrongThread),
    NAME(cudaErrorTimeout),
    NAME(cudaErrorGraphExecUpdateFailure),
    NAME(cudaErrorExternalDevice),
    NAME(cudaErrorInvalidClusterSize),
    NAME(cudaErrorFunctionNotLoaded),
    NAME(cudaErrorInvalidResourceType),
    NAME(cudaErrorInvalidResourceConfiguration),
    NAME(cudaErrorUnknown),
};
/* clang-format on */
#undef NAME

} /* namespace */

extern "C" const char *cudaGetErrorName(cudaError_t error) {
    for (const ErrorName &entry : names) {
        if (entry.error == error) return entry.name;
    }
    return "unrecognized error code";
}

extern "C" const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInitializationError: return "initialization error";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidPitchValue: return "invalid pitch argument";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case cudaErrorInvalidDeviceFunction: return "invalid device function";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorPeerAccessUnsupported:
        return "peer access is not supported between these two devices";
    case cudaErrorOperatingSystem: return "OS call failed or operation not supported on this OS";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    case cudaErrorLaunchTimeout: return "the launch timed out and was terminated";
    case cudaErrorHostMemoryAlreadyRegistered:
        return "part or all of the requested memory range is already mapped";
    case cudaErrorHostMemoryNotRegistered:
        return "pointer does not correspond to a registered memory region";
    case cudaErrorMisalignedAddress: return "misaligned address";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotSupported: return "operation not supported";
    case cudaErrorUnknown: return "unknown error";
    default: return cudaGetErrorName(error);
    }
}
