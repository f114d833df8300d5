// Kernel launches, all of them:
//     PVG_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...);
//
// It skips empty work, clears an error that others left behind, checks after the launch, names
// operation and kernel in the message, counts, logs when asked, waits when PVG_OPTION_SYNC is set,
// and is the seam for the simulator. On failure it returns the status from the function it stands
// in. A kernel with several template arguments goes in parentheses:
//     PVG_LAUNCH((sum_kernel<float, 256>), ...);
//
// PVG_LAUNCH_WITH((pvg::LaunchExtras{2, true}), kernel, ...) asks for a cluster of blocks, or lets
// the kernel start while the one before it on the stream still runs.
//
// Work is linear in grid.x, which may be up to 2^31 - 1 blocks; grid.y and grid.z stay under
// 65,536.
#pragma once
#include "runtime/error.cuh"

namespace pvg {

struct LaunchSite {
    const char *kernel, *file;
    int line;
};

// What a launch may ask for beside its grid.
struct LaunchExtras {
    unsigned cluster = 1; // blocks along x that share their shared memory; sm_90 and later
    // Programmatic dependent launch, sm_90 and later: the kernel begins with griddepcontrol.wait,
    // before which it reads and writes no memory that another kernel uses.
    bool overlap = false;
};

// Before and after a launch: see launch.cu.
int before_launch(const LaunchSite &site, dim3 grid, dim3 block);
int after_launch(const LaunchSite &site, const void *kernel, cudaError_t code, dim3 grid,
                 dim3 block, size_t shared_bytes, cudaStream_t stream);

// The same around a call of a library whose kernels are its own, such as CUB.
int before_library(const LaunchSite &site);
int after_library(const LaunchSite &site, cudaError_t code, cudaStream_t stream);

// While it exists the kernel may be launched with so much shared memory: more than 48 KiB is asked
// for before each launch that needs it, and no other thread may ask for less in between.
struct SharedMemoryPermit {
    cudaError_t code = cudaSuccess;
    SharedMemoryPermit(const void *kernel, size_t bytes);
    ~SharedMemoryPermit();
    SharedMemoryPermit(const SharedMemoryPermit &) = delete;

private:
    bool held = false;
};

#ifndef PVG_SIMULATOR
// What launch does beside packing the arguments, in one place: there are thousands of launches.
int launch_packed(const LaunchSite &site, const LaunchExtras &extras, const void *kernel,
                  const dim3 &grid, const dim3 &block, size_t shared_bytes, cudaStream_t stream,
                  void **parameters);
#endif

template <class... P, class... A>
int launch(const LaunchSite &site, const LaunchExtras &extras, void (*kernel)(P...), dim3 grid,
           dim3 block, size_t shared_bytes, cudaStream_t stream, A &&...arguments) {
#ifdef PVG_SIMULATOR
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return PVG_OK;
    PVG_PASS(before_launch(site, grid, block));
    const SharedMemoryPermit permit(reinterpret_cast<const void *>(kernel), shared_bytes);
    auto start = [&](P... values) {
        return pvg_sim::launch_with(extras.cluster, extras.overlap, site.kernel, site.file,
                                    site.line, kernel, grid, block, shared_bytes, stream,
                                    static_cast<P>(values)...);
    };
    cudaError_t code = permit.code;
    if (code == cudaSuccess) code = start(static_cast<P>(arguments)...);
    return after_launch(site, reinterpret_cast<const void *>(kernel), code, grid, block,
                        shared_bytes, stream);
#else
    // Parameters in the kernel's own types; the runtime copies them during the call.
    auto start = [&](P... values) {
        void *pointers[] = {const_cast<void *>(static_cast<const void *>(&values))..., nullptr};
        return launch_packed(site, extras, reinterpret_cast<const void *>(kernel), grid, block,
                             shared_bytes, stream, pointers);
    };
    return start(static_cast<P>(arguments)...);
#endif
}

// Blocks needed for n items at `per_block` each; more than a grid can have fails at the launch,
// never wraps.
inline unsigned blocks_for(int64_t n, int64_t per_block) {
    int64_t blocks = n / per_block + (n % per_block != 0);
    return blocks > 0xFFFFFFFFll ? 0xFFFFFFFFu : static_cast<unsigned>(blocks);
}

} // namespace pvg

#define PVG_LAUNCH_WITH(extras, kernel, grid, block, shared_bytes, stream, ...)              \
    PVG_PASS(pvg::launch(pvg::LaunchSite{#kernel, __FILE__, __LINE__}, extras, kernel, grid, \
                         block, shared_bytes, stream, __VA_ARGS__))
#define PVG_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    PVG_LAUNCH_WITH(pvg::LaunchExtras(), kernel, grid, block, shared_bytes, stream, __VA_ARGS__)

#ifndef PVG_SIMULATOR
// Dynamic shared memory, aligned for 16-byte access; one per kernel.
#define PVG_DYNAMIC_SHARED(T, name)                                     \
    extern __shared__ __align__(16) unsigned char pvg_dynamic_shared[]; \
    T *name = reinterpret_cast<T *>(pvg_dynamic_shared)
#endif
