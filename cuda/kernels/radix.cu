// The one file that knows CUB: each kind of keys costs the compiler some ten seconds. The simulated
// card has a kernel of its own here, which does the same a digit of eight bits at a time. Of few
// keys each is compared with all others, in one launch: a radix sort needs several, whatever their
// number.
#include "arrays/vector.cuh"
#include "kernels/radix.cuh"
#include <type_traits>
#include <utility>
#ifndef PVG_SIMULATOR
#include <cub/device/device_radix_sort.cuh>
#endif

namespace pvg::radix {

namespace {

constexpr uint32_t rank_threads = 256, rank_slices = rank_threads / 32, rank_tile = 4096;

// count - (a < b); of 32 bits by the borrow of a subtraction, as compilers do not find out.
__device__ __forceinline__ uint32_t less_if_below(uint32_t count, uint32_t a, uint32_t b) {
#ifdef PVG_SIMULATOR
    return count - (a < b);
#else
    asm("{\n.reg .u32 rest;\n"
        "sub.cc.u32 rest, %1, %2;\n"
        "subc.u32 %0, %0, 0;\n}"
        : "+r"(count)
        : "r"(a), "r"(b));
    return count;
#endif
}
__device__ __forceinline__ uint32_t less_if_below(uint32_t count, uint64_t a, uint64_t b) {
    return count - (a < b);
}

// How many of a slice, whose length is a multiple of 32, come before a key: those below it, and
// with TIES those that equal it.
template <bool TIES, class K>
__device__ __forceinline__ uint32_t before_of(const K *slice, uint32_t length, K mine) {
    using Wide = std::conditional_t<sizeof(K) == 8, uint64_t, uint32_t>;
    constexpr uint32_t together = 16 / sizeof(K), counters = 2;
    uint32_t below[counters] = {}; // less so many, modulo 2^32
#pragma unroll 8
    for (uint32_t i = 0; i < length; i += together) {
        const auto others = *reinterpret_cast<const Vector<K, together> *>(slice + i);
#pragma unroll
        for (uint32_t e = 0; e < together; e++) {
            const Wide other = others.element[e], own = mine;
            uint32_t &count = below[e % counters];
            count = TIES ? less_if_below(count, own, other) : less_if_below(count, other, own);
        }
    }
    return TIES ? length + below[0] + below[1] : 0 - (below[0] + below[1]);
}

constexpr int64_t zero_words = 8 * rank_threads; // of 16 bytes, of a block

// What a block makes zeros of: words between the first address that 16 divides and the last; and
// the first block also of what is before and behind them.
__device__ __forceinline__ void make_zeros(const Zeros &zeros, int64_t block) {
    unsigned char *const first = static_cast<unsigned char *>(zeros.first);
    const int64_t beyond = -reinterpret_cast<uintptr_t>(first) % 16;
    const int64_t head = beyond < zeros.bytes ? beyond : zeros.bytes;
    const int64_t words = (zeros.bytes - head) / 16, behind = head + words * 16;
    const int64_t i = threadIdx.x;
    if (block == 0 && i < head) first[i] = 0;
    if (block == 0 && i < zeros.bytes - behind) first[behind + i] = 0;
    Bytes16 *const to = reinterpret_cast<Bytes16 *>(first + head);
#pragma unroll
    for (int64_t k = block * zero_words + i; k < (block + 1) * zero_words; k += rank_threads)
        if (k < words) to[k] = Bytes16{};
}

// How many keys come before each of a block's 32: a lane's key is compared with a slice of each
// tile by every warp, whose lanes read the same of it. Behind the last key are the largest ones.
// The blocks behind those of keys make zeros.
template <class K>
__global__ void __launch_bounds__(rank_threads)
    rank_kernel(const Buffers<K> buffers, const uint32_t count, const K mask, const Zeros zeros) {
    __shared__ __align__(16) K tile[rank_tile];
    __shared__ uint32_t ranks[rank_slices][32];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t first = blockIdx.x * 32, own = first + lane;
    if (first >= count) return make_zeros(zeros, blockIdx.x - (count + 31) / 32);
    const K key = own < count ? buffers.keys[own] : K(0), mine = key & mask;
    uint32_t rank = 0;
    for (uint32_t from = 0; from < count; from += rank_tile) {
        const uint32_t there = count - from < rank_tile ? count - from : rank_tile;
        const uint32_t slice = (there + 32 * rank_slices - 1) / (32 * rank_slices) * 32;
        __syncthreads();
#pragma unroll 4
        for (uint32_t i = threadIdx.x; i < slice * rank_slices; i += rank_threads)
            tile[i] = i < there ? buffers.keys[from + i] & mask : static_cast<K>(~K(0));
        __syncthreads();
        const uint32_t begin = from + warp * slice;
        const K *const others = tile + warp * slice;
        // The block's own keys lie within one slice, as 32 divides it.
        if (begin + slice <= first) {
            rank += before_of<true>(others, slice, mine);
        } else if (begin > first) {
            rank += before_of<false>(others, slice, mine);
        } else {
            rank += before_of<true>(others, first - begin, mine);
            rank += before_of<false>(others + (first - begin), begin + slice - first, mine);
            for (uint32_t j = 0; j < lane; j++) rank += others[first - begin + j] == mine;
        }
    }
    ranks[warp][lane] = rank;
    __syncthreads();
    if (warp != 0 || own >= count) return;
    uint32_t to = 0;
    for (uint32_t w = 0; w < rank_slices; w++) to += ranks[w][lane];
    buffers.other_keys[to] = key;
    if (buffers.values) buffers.other_values[to] = buffers.values[own];
}

template <class K>
int sort_few(Call &call, Buffers<K> *buffers, int64_t count, int bits, const Zeros &zeros) {
    const K all = static_cast<K>(~K(0));
    const K mask = bits >= int(8 * sizeof(K)) ? all : static_cast<K>((K(1) << bits) - 1);
    const int64_t words = (zeros.bytes + 15) / 16;
    const int64_t blocks = (count + 31) / 32 + (words + zero_words - 1) / zero_words;
    PVG_REQUIRE(blocks <= INT32_MAX, PVG_ERROR_VALUE, "%lld bytes of zeros",
                static_cast<long long>(zeros.bytes));
    PVG_LAUNCH(rank_kernel<K>, static_cast<unsigned>(blocks), rank_threads, 0, call.stream,
               *buffers, static_cast<uint32_t>(count), mask, zeros);
    std::swap(buffers->keys, buffers->other_keys);
    std::swap(buffers->values, buffers->other_values);
    return PVG_OK;
}

} // namespace

#ifdef PVG_SIMULATOR

namespace {

template <class K>
__global__ void digit_kernel(const Buffers<K> buffers, uint32_t count, int shift, uint32_t mask) {
    uint32_t place[256] = {}, before = 0;
    for (uint32_t i = 0; i < count; i++) place[buffers.keys[i] >> shift & mask]++;
    for (uint32_t digit = 0; digit < 256; digit++) {
        const uint32_t of_digit = place[digit];
        place[digit] = before, before += of_digit;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t to = place[buffers.keys[i] >> shift & mask]++;
        buffers.other_keys[to] = buffers.keys[i];
        if (buffers.values) buffers.other_values[to] = buffers.values[i];
    }
}

} // namespace

template <class K> int sort_many(Call &call, Buffers<K> *buffers, int64_t count, int bits) {
    for (int shift = 0; shift < bits; shift += 8) {
        const uint32_t mask = bits - shift < 8 ? (1u << (bits - shift)) - 1 : 255;
        PVG_LAUNCH(digit_kernel<K>, 1, 1, 0, call.stream, *buffers, static_cast<uint32_t>(count),
                   shift, mask);
        std::swap(buffers->keys, buffers->other_keys);
        std::swap(buffers->values, buffers->other_values);
    }
    return PVG_OK;
}

#else

template <class K> int sort_many(Call &call, Buffers<K> *buffers, int64_t count, int bits) {
    cub::DoubleBuffer<K> keys(buffers->keys, buffers->other_keys);
    cub::DoubleBuffer<uint32_t> values(buffers->values, buffers->other_values);
    const auto run = [&](void *scratch, size_t &bytes) {
        const uint32_t n = static_cast<uint32_t>(count);
        return buffers->values
                   ? cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, values, n, 0, bits,
                                                     call.stream)
                   : cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, n, 0, bits, call.stream);
    };
    const LaunchSite site = {"cub::DeviceRadixSort", __FILE__, __LINE__};
    Workspace scratch;
    size_t bytes = 0;
    PVG_PASS(before_library(site));
    PVG_TRY(run(nullptr, bytes));
    PVG_PASS(scratch.open(call, bytes ? bytes : 1));
    PVG_PASS(after_library(site, run(scratch.as<void>(), bytes), call.stream));
    buffers->keys = keys.Current(), buffers->other_keys = keys.Alternate();
    buffers->values = values.Current(), buffers->other_values = values.Alternate();
    return PVG_OK;
}

#endif

template <class K>
int sort(Call &call, Buffers<K> *buffers, int64_t count, int bits, const Zeros &zeros) {
    if (count == 0 || bits == 0) return PVG_OK;
    return count <= few_keys ? sort_few(call, buffers, count, bits, zeros)
                             : sort_many(call, buffers, count, bits);
}

template int sort(Call &, Buffers<uint8_t> *, int64_t, int, const Zeros &);
template int sort(Call &, Buffers<uint16_t> *, int64_t, int, const Zeros &);
template int sort(Call &, Buffers<uint32_t> *, int64_t, int, const Zeros &);
template int sort(Call &, Buffers<uint64_t> *, int64_t, int, const Zeros &);

} // namespace pvg::radix
