// Pieces of scans, for kernels that combine every element with all before it: a lane group's share,
// a block's tile, and the totals of chunks.
//
// A warp has a segment of a row: `scan_packs` times, its lanes take neighbouring packs of elements,
// so that loads and stores are of up to 16 bytes and side by side. A block has a tile, a segment a
// warp. In which order elements are combined depends on their places and types alone.
#pragma once
#include "arrays/vector.cuh"
#include "dtypes/complex.cuh"
#include "runtime/launch.cuh"

namespace pvg::scan {

constexpr int threads = 256, warps = threads / 32, packs = 4;
constexpr int most_chunks = 1024; // of a row: what a block of prefix_kernel scans at once
constexpr int totals_each = most_chunks / threads;

// Neighbouring elements that one thread takes together.
template <class T> inline constexpr int pack_size = sizeof(T) == 8 ? 2 : 4;
template <class T> inline constexpr int segment = 32 * packs * pack_size<T>;
template <class T> inline constexpr int tile = warps * segment<T>;

// What elements are combined by, in a type A that holds sums or products.
struct Sum {
    template <class A> __device__ static A identity() { return A(0); }
    template <class A> __device__ static A combine(A a, A b) { return a + b; }
};
struct Product {
    template <class A> __device__ static A identity() { return A(1); }
    template <class A> __device__ static A combine(A a, A b) { return a * b; }
};

// The value of the lane `delta` before the caller's in a group of `lanes`.
template <class A> __device__ __forceinline__ A shift_up(A value, int delta, int lanes) {
    return __shfl_up_sync(0xffffffffu, value, delta, lanes);
}
template <class R>
__device__ __forceinline__ Complex<R> shift_up(Complex<R> value, int delta, int lanes) {
    return {shift_up(value.re, delta, lanes), shift_up(value.im, delta, lanes)};
}

// The smallest power of two that is not less than n, at most `limit`.
inline int power_of_two(int64_t n, int limit) {
    int result = 1;
    while (result < n && result < limit) result *= 2;
    return result;
}

// Combine the caller's value with those of all lanes before it in a group of `lanes`, a power of
// two. All lanes of the warp call it.
template <class Op, class A> __device__ __forceinline__ A scan_lanes(A value, int lanes) {
    const int lane = threadIdx.x % lanes;
    for (int delta = 1; delta < lanes; delta *= 2) {
        const A other = shift_up(value, delta, lanes);
        if (lane >= delta) value = Op::combine(other, value);
    }
    return value;
}

// Combine the lanes' packs of a segment, of which `count` are in use, each with all before it.
// Returns the total of the segment, in every lane.
template <class Op, class A, int N>
__device__ __forceinline__ A scan_segment(A (&value)[packs][N], int count, int lanes) {
    A carry = Op::template identity<A>();
    const int lane = threadIdx.x % lanes;
#pragma unroll
    for (int k = 0; k < packs; k++) {
        if (k >= count) continue; // the same in all lanes
#pragma unroll
        for (int j = 1; j < N; j++) value[k][j] = Op::combine(value[k][j - 1], value[k][j]);
        const A upto = scan_lanes<Op>(value[k][N - 1], lanes);
        const A neighbour = __shfl_up_sync(0xffffffffu, upto, 1, lanes);
        const A before = lane > 0 ? Op::combine(carry, neighbour) : carry;
#pragma unroll
        for (int j = 0; j < N; j++) value[k][j] = Op::combine(before, value[k][j]);
        carry = Op::combine(carry, __shfl_sync(0xffffffffu, upto, lanes - 1, lanes));
    }
    return carry;
}

// What stands before the caller's warp in a tile: *carry, and the totals of the warps before it.
// *carry becomes what stands before the next tile. `of_warp` is not that of the tile before this.
// All threads of the block call it.
template <class Op, class A>
__device__ __forceinline__ A before_warp(A total, A *of_warp, A *carry) {
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) of_warp[warp] = total;
    __syncthreads();
    A before = *carry;
#pragma unroll
    for (int w = 0; w < warps; w++) {
        if (w == warp) before = *carry;
        *carry = Op::combine(*carry, of_warp[w]);
    }
    return before;
}

// Warps of a block that scans the totals of so many chunks.
inline int prefix_threads(int64_t chunks) { return 32 * power_of_two(chunks / 128 + 1, warps); }

namespace {

// totals [outer][chunks][inner]: each becomes what stands before its chunk; a block for each of the
// outer * inner rows of totals. `whole`, unless NULL, gets the total of the only row.
template <class Op, class A>
__global__ void __launch_bounds__(threads)
    prefix_kernel(A *totals, int64_t chunks, int64_t inner, A *whole) {
    __shared__ A of_warp[warps];
    const int64_t row = blockIdx.x;
    A *place = totals + row / inner * chunks * inner + row % inner;
    const int64_t first = static_cast<int64_t>(threadIdx.x) * totals_each;
    A value[totals_each], own = Op::template identity<A>();
#pragma unroll
    for (int q = 0; q < totals_each; q++)
        value[q] = first + q < chunks ? place[(first + q) * inner] : Op::template identity<A>();
#pragma unroll
    for (int q = 0; q < totals_each; q++) own = Op::combine(own, value[q]);
    const A upto = scan_lanes<Op>(own, 32);
    const A neighbour = shift_up(upto, 1, 32);
    if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = upto;
    __syncthreads();
    A before = Op::template identity<A>();
    for (unsigned w = 0; w < threadIdx.x / 32; w++) before = Op::combine(before, of_warp[w]);
    if (whole && threadIdx.x == blockDim.x - 1) *whole = Op::combine(before, upto);
    if (threadIdx.x % 32 != 0) before = Op::combine(before, neighbour);
#pragma unroll
    for (int q = 0; q < totals_each; q++) {
        if (first + q < chunks) place[(first + q) * inner] = before;
        before = Op::combine(before, value[q]);
    }
}

} // namespace

} // namespace pvg::scan
