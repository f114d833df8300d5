// Products of a warp on tensor cores (mma.sync m16n8k16 of 16-bit floats and m16n8k8 of the first
// 11 bits of floats, compute capability 8.0), and how their operands come: from memory by cp.async,
// from shared memory by ldmatrix.
//
// The simulated card has them too, from 8.0 on: what the lanes of a warp hold goes through shared
// memory there, in PTX's layouts; products are exact and are added in float, one after another. (A
// tensor core adds the sixteen of an instruction at once and cuts the sum off.)
#pragma once
#include "dtypes/half.cuh"
#include <stdint.h>

// Whether the code that is compiled may have these instructions; where it has not, kernels that use
// them are empty and not launched.
#if defined(PVG_SIMULATOR) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
#define PVG_HAS_FRAGMENTS 1
#else
#define PVG_HAS_FRAGMENTS 0
#endif

namespace pvg::fragments {
namespace {

// ---- From memory to shared memory ---------------------------------------------------------------

__device__ __forceinline__ uint32_t shared_address(const void *pointer) {
#ifdef PVG_SIMULATOR
    return pvg_sim::shared_address(pointer);
#else
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
#endif
}
// Copies the first `count` of BYTES (4, 8 or 16), and zeros in place of the rest.
template <int BYTES>
__device__ __forceinline__ void copy_async(uint32_t to, const void *from, int count) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16);
#ifdef PVG_SIMULATOR
    pvg_sim::copy_async(to, from, BYTES, count);
#elif PVG_HAS_FRAGMENTS
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(count)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from),
                     "r"(count), "n"(BYTES)
                     : "memory");
#endif
}
// All of BYTES.
template <int BYTES> __device__ __forceinline__ void copy_async(uint32_t to, const void *from) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16);
#ifdef PVG_SIMULATOR
    pvg_sim::copy_async(to, from, BYTES, BYTES);
#elif PVG_HAS_FRAGMENTS
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES)
                     : "memory");
#endif
}
// Copies that this thread has started since the last time are a group.
__device__ __forceinline__ void commit_copies() {
#ifdef PVG_SIMULATOR
    pvg_sim::commit_copies();
#elif PVG_HAS_FRAGMENTS
    asm volatile("cp.async.commit_group;");
#endif
}
// Until at most N groups of this thread are still on their way.
template <int N> __device__ __forceinline__ void wait_for_copies() {
#ifdef PVG_SIMULATOR
    pvg_sim::wait_for_copies(N);
#elif PVG_HAS_FRAGMENTS
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}
// Until all copies that this thread has started are there; others see them after a barrier.
__device__ __forceinline__ void wait_for_copies() {
#ifdef PVG_SIMULATOR
    pvg_sim::commit_copies();
    pvg_sim::wait_for_copies(0);
#elif PVG_HAS_FRAGMENTS
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// ---- From shared memory to registers ------------------------------------------------------------

// Four matrices of 8 x 8 elements of 16 bits. The lanes give where their rows begin, eight lanes a
// matrix; lane l gets elements 2 (l % 4) and the next one of row l / 4 of each. Transposed: of
// column l / 4.
template <bool TRANSPOSED>
__device__ __forceinline__ void read_matrices(uint32_t from, uint32_t (&to)[4]) {
#ifdef PVG_SIMULATOR
    __shared__ const char *rows[32][32]; // warp, lane: where each lane's row begins
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    rows[warp][lane] = static_cast<const char *>(pvg_sim::shared_pointer(from, 16));
    __syncwarp();
    const char *own[4][2];
    for (int i = 0; i < 4; i++)
        for (int e = 0; e < 2; e++)
            own[i][e] = rows[warp][i * 8 + (TRANSPOSED ? lane % 4 * 2 + e : lane / 4)];
    __syncwarp(); // others may come there
    for (int i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (int e = 0; e < 2; e++)
            memcpy(&pair[e], own[i][e] + (TRANSPOSED ? lane / 4 : lane % 4 * 2 + e) * 2, 2);
        memcpy(&to[i], pair, 4);
    }
#elif PVG_HAS_FRAGMENTS
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
#endif
}

// Two floats, rounded to T, as a lane's register holds two elements.
template <class T> __device__ __forceinline__ uint32_t pair_of(float first, float second) {
    uint32_t pair;
#if defined(PVG_SIMULATOR) || !PVG_HAS_FRAGMENTS
    const T both[2] = {static_cast<T>(first), static_cast<T>(second)};
    memcpy(&pair, both, 4);
#else
    if constexpr (std::is_same_v<T, Half>)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
#endif
    return pair;
}

// ---- Products -----------------------------------------------------------------------------------

// sum += a b, of 16 x 16 and 16 x 8 elements. Of a lane l, with row l / 4 and pair 2 (l % 4) and
// the next: a has row and pair, row + 8, and both again 8 columns on; b has the pair of rows of
// column l / 4, and 8 rows on; the sum has row and pair, and row + 8.
template <class T>
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
#ifdef PVG_SIMULATOR
    __shared__ float exchange[32][32][12]; // warp, lane, elements of a and b
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const uint32_t own[6] = {a[0], a[1], a[2], a[3], b0, b1};
    T elements[12];
    memcpy(elements, own, sizeof own);
    for (int i = 0; i < 12; i++) exchange[warp][lane][i] = static_cast<float>(elements[i]);
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++)
            sum[i] += exchange[warp][row % 8 * 4 + k % 8 / 2][k / 8 * 4 + row / 8 * 2 + k % 2] *
                      exchange[warp][column * 4 + k % 8 / 2][8 + k / 8 * 2 + k % 2];
    }
    __syncwarp();
#elif PVG_HAS_FRAGMENTS
#define PVG_MMA(TYPE)                                                           \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE ".f32 {%0, %1, %2, %3}, " \
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                         \
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if constexpr (std::is_same_v<T, Half>)
        PVG_MMA("f16.f16");
    else
        PVG_MMA("bf16.bf16");
#undef PVG_MMA
#endif
}

// The same of 16 x 8 and 8 x 8 floats, each of them cut off to 11 bits. Of a lane l: a has row
// l / 4 and column l % 4, row + 8, and both again 4 columns on; b has row l % 4 of column l / 4,
// and 4 rows on; the sum is as above.
__device__ __forceinline__ void multiply_singles(float (&sum)[4], const uint32_t (&a)[4],
                                                 uint32_t b0, uint32_t b1) {
#ifdef PVG_SIMULATOR
    __shared__ float exchange[32][32][6]; // warp, lane, elements of a and b
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const uint32_t own[6] = {a[0], a[1], a[2], a[3], b0, b1};
    for (int i = 0; i < 6; i++) exchange[warp][lane][i] = float_of_bits(own[i] & 0xffffe000);
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 8; k++)
            sum[i] += exchange[warp][row % 8 * 4 + k % 4][k / 4 * 2 + row / 8] *
                      exchange[warp][column * 4 + k % 4][4 + k / 4];
    }
    __syncwarp();
#elif PVG_HAS_FRAGMENTS
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

} // namespace
} // namespace pvg::fragments
