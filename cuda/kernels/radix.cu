// The one file that knows CUB: each kind of keys costs the compiler some ten seconds. The simulated
// card has a kernel of its own here, which does the same a digit of eight bits at a time.
#include "kernels/radix.cuh"
#include <utility>
#ifndef PVG_SIMULATOR
#include <cub/device/device_radix_sort.cuh>
#endif

namespace pvg::radix {

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

template <class K> int sort(Call &call, Buffers<K> *buffers, int64_t count, int bits) {
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

template <class K> int sort(Call &call, Buffers<K> *buffers, int64_t count, int bits) {
    if (count == 0 || bits == 0) return PVG_OK;
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

template int sort(Call &, Buffers<uint8_t> *, int64_t, int);
template int sort(Call &, Buffers<uint16_t> *, int64_t, int);
template int sort(Call &, Buffers<uint32_t> *, int64_t, int);
template int sort(Call &, Buffers<uint64_t> *, int64_t, int);

} // namespace pvg::radix
