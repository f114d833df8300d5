/* A bare kernel launch, which `bench overhead` compares with a call of pyvecgpu in one process.
 *
 * overhead.py compiles this with nvcc when it needs it, and loads it beside the library. Functions
 * return the cudaError_t, 0 for success. */
#include <cuda_runtime.h>

namespace {
__global__ void empty_kernel() {}
cudaStream_t stream;
} // namespace

extern "C" int bare_open(int device) {
    cudaError_t code = cudaSetDevice(device);
    return code ? code : cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
}

extern "C" int bare_launch(int count) {
    cudaError_t code = cudaSuccess;
    for (int i = 0; i < count && code == cudaSuccess; i++)
        code = cudaLaunchKernel((const void *)empty_kernel, dim3(1), dim3(32), nullptr, 0, stream);
    return code;
}

extern "C" int bare_wait(void) { return cudaStreamSynchronize(stream); }
