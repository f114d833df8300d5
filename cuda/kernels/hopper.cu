// Tensor maps: the driver's encoder, found without linking against the driver. It is the one
// function of the driver that the library calls.
#include "kernels/hopper.cuh"
#include "runtime/device.cuh"
#include <atomic>
#include <cudaTypedefs.h>

namespace pvg::hopper {

namespace {

// The driver's cuTensorMapEncodeTiled. Threads that look it up at the same time find the same.
std::atomic<PFN_cuTensorMapEncodeTiled_v12000> encoder{nullptr};

int find_encoder(PFN_cuTensorMapEncodeTiled_v12000 *result) {
    *result = encoder.load(std::memory_order_acquire);
    if (*result) return PVG_OK;
    void *found = nullptr;
    cudaDriverEntryPointQueryResult answer = cudaDriverEntryPointSymbolNotFound;
    PVG_TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                             cudaEnableDefault, &answer));
    PVG_REQUIRE(found && answer == cudaDriverEntryPointSuccess, PVG_ERROR_CUDA,
                "the driver has no cuTensorMapEncodeTiled (query result %d)",
                static_cast<int>(answer));
    *result = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found);
    encoder.store(*result, std::memory_order_release);
    return PVG_OK;
}

} // namespace

int make_tensor_map(CUtensorMap *map, const TensorView &view) {
    PFN_cuTensorMapEncodeTiled_v12000 encode;
    PVG_PASS(find_encoder(&encode));
    cuuint64_t size[5], stride[4];
    for (int i = 0; i < 5; i++) size[i] = view.size[i];
    for (int i = 0; i < 4; i++) stride[i] = view.stride[i];
    const cuuint32_t step[5] = {1, 1, 1, 1, 1};
    // Whole lines of 256 bytes come to the second-level cache, unless rows that begin anywhere in
    // a line would make that fetch much that is not asked for (1000 bfloat16 a row: 14 % slower).
    const CUtensorMapL2promotion lines = view.stride[0] % 128 == 0
                                             ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
                                             : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    const auto make = [&] {
        return encode(map, view.type, static_cast<cuuint32_t>(view.rank),
                      const_cast<void *>(view.data), size, stride, view.box, step,
                      CU_TENSOR_MAP_INTERLEAVE_NONE, view.swizzle, lines,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    CUresult code = make();
    if (code == CUDA_ERROR_INVALID_CONTEXT) { // the thread's first call, see bind_context
        PVG_PASS(bind_context());
        code = make();
    }
    PVG_REQUIRE(code == CUDA_SUCCESS, PVG_ERROR_CUDA,
                "cuTensorMapEncodeTiled failed with code %d for a tensor of (%llu, %llu, %llu)",
                static_cast<int>(code), static_cast<unsigned long long>(view.size[0]),
                static_cast<unsigned long long>(view.size[1]),
                static_cast<unsigned long long>(view.rank > 2 ? view.size[2] : 1));
    return PVG_OK;
}

} // namespace pvg::hopper
