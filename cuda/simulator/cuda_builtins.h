/* What nvcc adds to a .cu file, for g++: qualifiers, threadIdx, launches, barriers, shuffles.
 *
 * Every .cu file of a simulator build is compiled with `-x c++ -include cuda_builtins.h`. Types,
 * enums and declarations are those of the toolkit's own headers; the simulator only defines the
 * functions. A launch goes through pvg_sim::launch(), which copies the arguments into the kernel's
 * own parameter types and runs every block on the host (block.cpp).
 */
#pragma once

/* Defined before the toolkit's headers, which leave a __shared__ that exists alone. A thread-local
 * is one array per worker, and all of them lie in the module's TLS block, which is filled with 0xFF
 * between blocks. AddressSanitizer puts no redzones around thread-locals, so its builds use plain
 * statics (and one worker). Kernels live in anonymous namespaces: a static of an external template
 * or inline function would be a COMDAT symbol, and those get no redzones either. */
#if defined(__SANITIZE_ADDRESS__)
#define __shared__ static
#else
#define __shared__ static thread_local
#endif
/* As many instructions that do nothing in front of the kernel as it may have threads, where
 * launch_bounds.cpp counts them. sizeof makes a number of what may depend on a template. */
#define __launch_bounds__(threads, ...) \
    __attribute__((patchable_function_entry(sizeof(char[threads]), sizeof(char[threads]))))

#include <cuda_runtime.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pyvecgpu_sim.h"

/* ---- Launches ---- */

namespace pvg_sim {

/* A pointer among a kernel's arguments; it must be one that a kernel may use. */
struct PointerArgument {
    const void *value;
    int index; /* from 1 */
};

/* One launch: its configuration, and the call with its arguments (owned by `closure`). */
struct Launch {
    const char *name, *file;
    int line;
    dim3 grid, block;
    size_t shared_bytes;
    const void *function;
    void *closure;
    void (*call)(void *closure);
    void (*destroy)(void *closure);
    const PointerArgument *pointers;
    int pointer_count;
    unsigned cluster; /* blocks along x that share their shared memory */
    bool overlap;     /* it may begin before the kernel ahead of it has ended */
};

/* Takes over `closure`. Returns, and records, what cudaGetLastError() would return. */
cudaError_t launch(const Launch &job, cudaStream_t stream);

template <class... P> struct Closure {
    void (*kernel)(P...);
    std::tuple<P...> arguments;
    PointerArgument pointers[sizeof...(P) + 1];
};

template <class T> constexpr bool is_data_pointer() {
    return std::is_pointer<T>::value && !std::is_function<std::remove_pointer_t<T>>::value;
}

template <class... P, class... A>
cudaError_t launch_with(unsigned cluster, bool overlap, const char *name, const char *file,
                        int line, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                        cudaStream_t stream, A &&...args) {
    static_assert(sizeof...(P) == sizeof...(A), "a launch needs one argument per parameter");
    auto *closure = new Closure<P...>{kernel, {std::forward<A>(args)...}, {}};
    int index = 0, count = 0;
    auto note = [&](const auto &argument) {
        ++index;
        if constexpr (is_data_pointer<std::decay_t<decltype(argument)>>()) {
            closure->pointers[count++] = {(const void *)argument, index};
        }
    };
    std::apply([&](const auto &...argument) { (note(argument), ...); }, closure->arguments);
    (void)note; /* unused when the kernel takes no argument */
    auto call = [](void *c) {
        std::apply(((Closure<P...> *)c)->kernel, ((Closure<P...> *)c)->arguments);
    };
    auto destroy = [](void *c) { delete (Closure<P...> *)c; };
    return launch(Launch{name, file, line, grid, block, shared_bytes, (const void *)kernel, closure,
                         call, destroy, closure->pointers, count, cluster, overlap},
                  stream);
}

template <class... P, class... A>
cudaError_t launch(const char *name, const char *file, int line, void (*kernel)(P...), dim3 grid,
                   dim3 block, size_t shared_bytes, cudaStream_t stream, A &&...args) {
    return launch_with(1, false, name, file, line, kernel, grid, block, shared_bytes, stream,
                       std::forward<A>(args)...);
}

} /* namespace pvg_sim */

/* ---- Names that a thread sees ---- */

/* __thread, not thread_local: no call of an initialiser at each use. */
extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;
constexpr int warpSize = 32;

/* ---- Barriers, votes and shuffles: they note the place they are called from ---- */

namespace pvg_sim {

/* What one thread takes from a rendezvous of its block or warp. */
struct Exchange {
    unsigned ballot;         /* lanes of the warp whose predicate was true */
    int count;               /* threads of the block whose predicate was true */
    unsigned char value[16]; /* a shuffle's result */
};

/* What one thread brings to a rendezvous of its warp. */
struct Offer {
    unsigned mask;
    bool predicate;
    int source; /* lane to read from; -1: none */
    const void *value;
    size_t bytes;
};

Exchange block_barrier(bool predicate, const char *file, int line);
Exchange warp_barrier(const Offer &offer, const char *file, int line);
void *dynamic_shared();
void fence(); /* for all threads of the card */
unsigned lane();
[[noreturn]] void trap(const char *file, int line);

} /* namespace pvg_sim */

/* nvcc's version of this macro is beside PVG_LAUNCH. The bytes are exactly as many as launched. */
#define PVG_DYNAMIC_SHARED(T, name) T *name = static_cast<T *>(pvg_sim::dynamic_shared())

#define PVG_SIM_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(PVG_SIM_HERE) { pvg_sim::block_barrier(false, file, line); }
inline int __syncthreads_count(int predicate, PVG_SIM_HERE) {
    return pvg_sim::block_barrier(predicate, file, line).count;
}
inline int __syncthreads_or(int predicate, PVG_SIM_HERE) {
    return pvg_sim::block_barrier(predicate, file, line).count > 0;
}
inline int __syncthreads_and(int predicate, PVG_SIM_HERE) {
    return pvg_sim::block_barrier(!predicate, file, line).count == 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, PVG_SIM_HERE) {
    pvg_sim::warp_barrier({mask, false, -1, nullptr, 0}, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, PVG_SIM_HERE) {
    return pvg_sim::warp_barrier({mask, predicate != 0, -1, nullptr, 0}, file, line).ballot;
}
inline int __any_sync(unsigned mask, int predicate, PVG_SIM_HERE) {
    return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, PVG_SIM_HERE) {
    return __ballot_sync(mask, !predicate, file, line) == 0;
}

template <class T>
T pvg_sim_shuffle(unsigned mask, T value, int source, const char *file, int line) {
    static_assert(sizeof(T) <= 16 && std::is_trivially_copyable<T>::value,
                  "a shuffle moves a plain value of at most 16 bytes");
    auto result = pvg_sim::warp_barrier({mask, false, source, &value, sizeof(T)}, file, line);
    memcpy(static_cast<void *>(&value), result.value, sizeof(T));
    return value;
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, PVG_SIM_HERE) {
    int self = (int)pvg_sim::lane();
    int lane = (self & ~(width - 1)) + (source & (width - 1));
    return pvg_sim_shuffle(mask, value, lane, file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, PVG_SIM_HERE) {
    int self = (int)pvg_sim::lane(), lane = self - (int)delta;
    return pvg_sim_shuffle(mask, value, lane < (self & ~(width - 1)) ? self : lane, file, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, PVG_SIM_HERE) {
    int self = (int)pvg_sim::lane(), lane = self + (int)delta;
    return pvg_sim_shuffle(mask, value, lane > (self | (width - 1)) ? self : lane, file, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, PVG_SIM_HERE) {
    int self = (int)pvg_sim::lane(), lane = self ^ lanes;
    return pvg_sim_shuffle(mask, value, lane > (self | (width - 1)) ? self : lane, file, line);
}

inline void __trap(PVG_SIM_HERE) { pvg_sim::trap(file, line); }
inline void __threadfence() { pvg_sim::fence(); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { pvg_sim::fence(); }

/* ---- Loads and stores with a cache hint ---- */

#define PVG_SIM_LOAD(name) \
    template <class T> T name(const T *address) { return *address; }
PVG_SIM_LOAD(__ldg)
PVG_SIM_LOAD(__ldca)
PVG_SIM_LOAD(__ldcg)
PVG_SIM_LOAD(__ldcs)
PVG_SIM_LOAD(__ldcv)
PVG_SIM_LOAD(__ldlu)
#undef PVG_SIM_LOAD

#define PVG_SIM_STORE(name) \
    template <class T> void name(T *address, std::remove_reference_t<T> value) { *address = value; }
PVG_SIM_STORE(__stcg)
PVG_SIM_STORE(__stcs)
PVG_SIM_STORE(__stwb)
PVG_SIM_STORE(__stwt)
#undef PVG_SIM_STORE

#include "device_atomics.h"
#include "device_instructions.h"
#include "device_math.h"

/* ---- Templates that the toolkit's header declares for nvcc only ---- */

template <class T> cudaError_t cudaFuncSetAttribute(T *kernel, cudaFuncAttribute a, int value) {
    return ::cudaFuncSetAttribute((const void *)kernel, a, value);
}
template <class T> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, T *kernel) {
    return ::cudaFuncGetAttributes(out, (const void *)kernel);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    return ::cudaMemcpyToSymbol((const void *)&symbol, from, bytes, offset, kind);
}
template <class T> cudaError_t cudaGetSymbolAddress(void **address, const T &symbol) {
    return ::cudaGetSymbolAddress(address, (const void *)&symbol);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    return ::cudaMemcpyFromSymbol(to, (const void *)&symbol, bytes, offset, kind);
}
