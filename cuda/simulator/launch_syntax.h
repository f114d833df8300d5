/* What translate.py makes of `kernel<<<grid, block, shared, stream>>>(arguments)`:
 * pvg_sim::configure("kernel", file, line, kernel, grid, block, shared, stream)(arguments). */
#pragma once
#include "cuda_builtins.h"

namespace pvg_sim {

/* A launch that lacks its arguments. They are given as to the kernel itself, whose parameter types
 * convert them, so NULL, 0 and braces mean what they mean with nvcc. */
template <class... P> struct Configured {
    const char *name, *file;
    int line;
    void (*kernel)(P...);
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;

    cudaError_t operator()(P... arguments) const {
        return launch(name, file, line, kernel, grid, block, shared_bytes, stream, arguments...);
    }
};

template <class... P>
Configured<P...> configure(const char *name, const char *file, int line, void (*kernel)(P...),
                           dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
    return {name, file, line, kernel, grid, block, shared_bytes, stream};
}

} /* namespace pvg_sim */
