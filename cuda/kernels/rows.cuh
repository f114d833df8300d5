// Rows that threads share in packs of neighbouring elements, for kernels that read a row once and
// go over it again: softmax, normalisations, cross-entropy.
#pragma once
#include "arrays/call.cuh"
#include "arrays/vector.cuh"
#include "dtypes/dtype.cuh"
#include "runtime/device.cuh"
#include <math.h>

namespace pvg {

namespace {

template <class T> inline constexpr int pack_size = sizeof(T) == 8 ? 2 : 4;
template <class T> using Pack = Vector<T, pack_size<T>>;

template <class A> __device__ __forceinline__ A larger(A a, A b) {
    return b > a || b != b ? b : a; // NaN stays
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float larger(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
#endif

// The largest of, or the sum over, neighbouring lanes, a power of two; all lanes of the warp call
// it, and all have the same bits.
template <class A> __device__ __forceinline__ A largest_of_lanes(A value, int lanes) {
    for (int mask = lanes / 2; mask > 0; mask /= 2)
        value = larger(value, __shfl_xor_sync(0xffffffffu, value, mask));
    return value;
}
template <class A> __device__ __forceinline__ A sum_of_lanes(A value, int lanes) {
    for (int mask = lanes / 2; mask > 0; mask /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, mask);
    return value;
}

// Over a block of whole warps, up to 32; `of_warp` has room for as many and nobody reads it still.
template <bool SUM, class A> __device__ __forceinline__ A over_block(A value, A *of_warp) {
    value = SUM ? sum_of_lanes(value, 32) : largest_of_lanes(value, 32);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    const A none = SUM ? A(0) : -static_cast<A>(INFINITY);
    value = threadIdx.x % 32 < blockDim.x / 32 ? of_warp[threadIdx.x % 32] : none;
    return SUM ? sum_of_lanes(value, 32) : largest_of_lanes(value, 32);
}

// The elements from `at` on, and `fill` behind the end.
template <class T> __device__ __forceinline__ Pack<T> load_pack(const T *row, int at, int length,
                                                                bool aligned, ComputeType<T> fill) {
    if (aligned && at + pack_size<T> <= length) return *reinterpret_cast<const Pack<T> *>(row + at);
    Pack<T> pack;
#pragma unroll
    for (int j = 0; j < pack_size<T>; j++)
        pack.element[j] = at + j < length ? row[at + j] : static_cast<T>(fill);
    return pack;
}

template <class T> __device__ __forceinline__ void store_pack(T *row, int at, int length,
                                                              bool aligned, const Pack<T> &pack) {
    if (aligned && at + pack_size<T> <= length) {
        *reinterpret_cast<Pack<T> *>(row + at) = pack;
        return;
    }
#pragma unroll
    for (int j = 0; j < pack_size<T>; j++)
        if (at + j < length) row[at + j] = pack.element[j];
}

// ---- Rows that are held -------------------------------------------------------------------------

// Threads of a block whose warps have rows, and at most of one that has one row: with fewer of them
// a thread has more registers.
constexpr int short_threads = 128, middle_threads = 512, long_threads = 1024;
constexpr int most_packs = 8; // of a lane, in rows that a warp has
constexpr int held_packs = 4; // of a thread, in registers, in rows that a block has

// How rows are shared out: to `lanes` lanes of a warp each, a power of two, or to a block each.
struct RowPlan {
    int64_t rows;
    int length, lanes;
    int staged;   // elements of a row that have room in shared memory, behind those in registers
    bool aligned; // every pack may be loaded and stored at once
};

// N rows of one length that a team of threads goes over: the first packs of each stay in registers,
// the next ones in shared memory, and what finds no room there is read again.
template <class T, int N, int PACKS> struct HeldRows {
    const T *from[N];
    T *shared; // of `staged` elements for each of the N
    int length, staged, first, step;
    bool aligned;
    Pack<T> held[PACKS][N];

    __device__ HeldRows(const RowPlan &plan, bool mine, int lane, int lanes, T *room)
        : shared(room), length(mine ? plan.length : 0), staged(plan.staged),
          first(lane * pack_size<T>), step(lanes * pack_size<T>), aligned(plan.aligned) {}

    // f(at, packs) for all packs of this thread, with 0 behind the end; the first time round.
    template <class F> __device__ __forceinline__ void load(F &&f) {
#pragma unroll
        for (int k = 0; k < PACKS; k++)
#pragma unroll
            for (int i = 0; i < N; i++)
                held[k][i] = load_pack(from[i], first + k * step, length, aligned, 0);
#pragma unroll
        for (int k = 0; k < PACKS; k++)
            if (first + k * step < length) f(first + k * step, held[k]);
        constexpr int ahead = sizeof(T) == 8 || N > 1 ? 2 : 4; // loads under way together
        for (int at = first + PACKS * step; at < length; at += ahead * step) {
            Pack<T> more[ahead][N];
#pragma unroll
            for (int k = 0; k < ahead; k++)
#pragma unroll
                for (int i = 0; i < N; i++)
                    more[k][i] = load_pack(from[i], at + k * step, length, aligned, 0);
#pragma unroll
            for (int k = 0; k < ahead; k++) {
                const int place = at + k * step - PACKS * step;
                if (at + k * step >= length) continue;
                if (place < staged)
#pragma unroll
                    for (int i = 0; i < N; i++)
                        *reinterpret_cast<Pack<T> *>(shared + i * staged + place) = more[k][i];
                f(at + k * step, more[k]);
            }
        }
    }
    // The same again.
    template <class F> __device__ __forceinline__ void again(F &&f) {
#pragma unroll
        for (int k = 0; k < PACKS; k++)
            if (first + k * step < length) f(first + k * step, held[k]);
        for (int at = first + PACKS * step; at < length; at += step) {
            const int place = at - PACKS * step;
            Pack<T> packs[N];
#pragma unroll
            for (int i = 0; i < N; i++)
                packs[i] = place < staged
                               ? *reinterpret_cast<const Pack<T> *>(shared + i * staged + place)
                               : load_pack(from[i], at, length, aligned, 0);
            f(at, packs);
        }
    }
    // The same once more, with something of other arrays that `fetch(at, beside)` loads for
    // f(at, packs, beside), which stores. Loads never pass a store: so of what is not in registers
    // they are made for a few packs at a time.
    template <class Beside, class G, class F>
    __device__ __forceinline__ void again_beside(G &&fetch, F &&f) {
#pragma unroll
        for (int k = 0; k < PACKS; k++) {
            Beside beside = {};
            if (first + k * step >= length) continue;
            fetch(first + k * step, beside);
            f(first + k * step, held[k], beside);
        }
        constexpr int together = sizeof(Beside) > 32 ? 2 : 4;
        for (int at = first + PACKS * step; at < length; at += together * step) {
            Beside beside[together] = {};
#pragma unroll
            for (int k = 0; k < together; k++)
                if (at + k * step < length) fetch(at + k * step, beside[k]);
#pragma unroll
            for (int k = 0; k < together; k++) {
                const int here = at + k * step, place = here - PACKS * step;
                Pack<T> packs[N];
                if (here >= length) break;
#pragma unroll
                for (int i = 0; i < N; i++)
                    packs[i] = place < staged
                                   ? *reinterpret_cast<const Pack<T> *>(shared + i * staged + place)
                                   : load_pack(from[i], here, length, aligned, 0);
                f(here, packs, beside[k]);
            }
        }
    }
};

// Where this thread stands: its row, its lane of the team, and how many lanes that has.
struct RowPlace {
    int64_t row;
    int lane, lanes;
    bool mine; // false: there is no such row
};
template <bool BLOCK> __device__ __forceinline__ RowPlace place_in_rows(const RowPlan &plan) {
    if (BLOCK)
        return {blockIdx.x, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x), true};
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t row = thread / plan.lanes;
    return {row, static_cast<int>(thread % plan.lanes), plan.lanes, row < plan.rows};
}

// The sum over the team of a row.
template <bool BLOCK, class A>
__device__ __forceinline__ A sum_of_row(A value, int lanes, A *of_warp) {
    return BLOCK ? over_block<true>(value, of_warp) : sum_of_lanes(value, lanes);
}

} // namespace

inline int64_t power_of_two_from(int64_t n) {
    int64_t result = 1;
    while (result < n) result *= 2;
    return result;
}

// Whether every pack of rows of such operands may be loaded and stored at once.
template <class T>
bool packs_lie_well(const void *const *pointers, int count, int64_t rows, int64_t length) {
    uintptr_t bits = 0;
    for (int i = 0; i < count; i++) bits |= reinterpret_cast<uintptr_t>(pointers[i]);
    return bits % alignof(Pack<T>) == 0 && (rows == 1 || length % pack_size<T> == 0);
}

// Shares out rows of N operands that lie side by side; *threads and *shared are those of a block.
// *whole: none of a row has to be read again. pointers: the operands and the result.
template <class T, int N>
int plan_rows(const Call &call, int64_t rows, int64_t length, const void *const *pointers,
              int count, RowPlan *plan, int *threads, size_t *shared, bool *whole) {
    constexpr int pack = pack_size<T>;
    constexpr int64_t other_shared = 1 << 11;
    const int64_t packs = (length + pack - 1) / pack;
    plan->rows = rows, plan->length = static_cast<int>(length), plan->staged = 0;
    plan->aligned = packs_lie_well<T>(pointers, count, rows, length);
    *threads = short_threads, *shared = 0, *whole = true;
    plan->lanes = static_cast<int>(packs < 32 ? power_of_two_from(packs) : 32);
    if (packs <= 32 * most_packs / N) return PVG_OK;
    while (*threads < long_threads && *threads * held_packs < packs) *threads *= 2;
    plan->lanes = *threads;
    const int64_t behind = (packs - int64_t(*threads) * held_packs) * pack;
    if (behind <= 0) return PVG_OK;
    int64_t most = 0;
    PVG_PASS(device_attribute(call.device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most));
    const int64_t room = (most - other_shared) / static_cast<int64_t>(sizeof(T)) / N / pack * pack;
    plan->staged = static_cast<int>(behind < room ? behind : room);
    *whole = behind <= room;
    *shared = static_cast<size_t>(plan->staged) * N * sizeof(T);
    return PVG_OK;
}

} // namespace pvg
