// Windows over the last two axes of an array (pvg_windows): what a call asks for, checked, and how
// kernels find the windows that an element is in. Pooling and convolution share it.
#pragma once
#include "arrays/call.cuh"
#include <type_traits>

namespace pvg {

// Division of positions by a number that the host prepares, as arrays/locate.cuh has it. I: the
// type of positions, int32_t where all of them, and what they are computed from, are below 2^31.
template <class I> struct Divider;
template <> struct Divider<int32_t> {
    uint32_t multiplier, shift;
    int32_t length;
};
template <> struct Divider<int64_t> {
    uint64_t multiplier;
    uint32_t shift;
    bool narrow; // every position is below 2^31; else below 2^63
    int64_t length;

    explicit operator Divider<int32_t>() const {
        return {static_cast<uint32_t>(multiplier), shift, static_cast<int32_t>(length)};
    }
};

// Divides positions below `positions` by `length`, which is 1 or more.
inline Divider<int64_t> divider(int64_t length, int64_t positions) {
    using Wide = unsigned __int128;
    Divider<int64_t> d = {0, 0, positions <= int64_t(1) << 31, length};
    const Wide unit = Wide(1) << (d.narrow ? 32 : 64);
    while ((Wide(1) << d.shift) < static_cast<Wide>(length)) d.shift++;
    const Wide above = (Wide(1) << d.shift) - static_cast<Wide>(length);
    d.multiplier = static_cast<uint64_t>(unit * above / static_cast<Wide>(length) + 1);
    return d;
}

#if defined(__CUDACC__) || defined(PVG_SIMULATOR) // plain C++ has not these instructions
__device__ __forceinline__ int32_t quotient_of(const Divider<int32_t> &divider, int32_t position) {
    const uint32_t n = static_cast<uint32_t>(position);
    return static_cast<int32_t>((__umulhi(n, divider.multiplier) + n) >> divider.shift);
}
__device__ __forceinline__ int64_t quotient_of(const Divider<int64_t> &divider, int64_t position) {
    const uint64_t n = static_cast<uint64_t>(position);
    if (divider.narrow) {
        const uint32_t low = static_cast<uint32_t>(n);
        const uint32_t multiplier = static_cast<uint32_t>(divider.multiplier);
        return (__umulhi(low, multiplier) + low) >> divider.shift;
    }
    return static_cast<int64_t>((__umul64hi(n, divider.multiplier) + n) >> divider.shift);
}
#endif

// The quotient; *position becomes the rest.
template <class I>
__device__ __forceinline__ I split(const Divider<I> &divider, I *position) {
    const I quotient = quotient_of(divider, *position);
    *position -= quotient * divider.length;
    return quotient;
}

// Rows, or columns. Window w has the elements w * stride - before + i * dilation, i < kernel, of
// those below `length`; the rest lies around the array.
template <class I> struct WindowAxisOf {
    I length, windows, kernel, stride, before, dilation;
    Divider<I> by_stride, by_dilation;

    __device__ __forceinline__ bool has(I at) const {
        using Unsigned = std::make_unsigned_t<I>;
        return static_cast<Unsigned>(at) < static_cast<Unsigned>(length);
    }
    __device__ __forceinline__ bool is_window(I at) const {
        using Unsigned = std::make_unsigned_t<I>;
        return static_cast<Unsigned>(at) < static_cast<Unsigned>(windows);
    }

    // How many elements of a window are in the array.
    __device__ __forceinline__ I inside(I window) const {
        const I start = window * stride - before, left = length - start + dilation - 1;
        const I first = start < 0 ? quotient_of(by_dilation, dilation - 1 - start) : 0;
        I end = left <= 0 ? 0 : quotient_of(by_dilation, left);
        end = end < kernel ? end : kernel;
        return end > first ? end - first : 0;
    }

    // Calls f(window, i) for every window that has the element as its i-th one.
    template <class F> __device__ __forceinline__ void windows_with(I at, const F &f) const {
        const I from = at + before;
        if (dilation == 1) {
            I window = quotient_of(by_stride, from);
            for (I i = from - window * stride; i < kernel && window >= 0; i += stride) {
                if (window < windows) f(window, i);
                window--;
            }
            return;
        }
        for (I i = 0; i < kernel && i * dilation <= from; i++) {
            const I rest = from - i * dilation, window = quotient_of(by_stride, rest);
            if (window * stride == rest && window < windows) f(window, i);
        }
    }
};

template <class I> struct WindowsOf { WindowAxisOf<I> rows, columns; };
using WindowAxis = WindowAxisOf<int64_t>;
using Windows = WindowsOf<int64_t>;

inline int64_t elements_of_a_kernel(const Windows &w) { return w.rows.kernel * w.columns.kernel; }
inline int64_t windows_of_a_matrix(const Windows &w) { return w.rows.windows * w.columns.windows; }

inline bool parse_axis(const int64_t *numbers, int64_t length, WindowAxis *axis) {
    for (int i = 0; i < PVG_WINDOWS_COUNT; i += 2) {
        const bool padding = i == PVG_WINDOWS_BEFORE || i == PVG_WINDOWS_BEHIND;
        if (numbers[i] < (padding ? 0 : 1) || numbers[i] > INT32_MAX) return false;
    }
    const int64_t behind = numbers[PVG_WINDOWS_BEHIND];
    axis->length = length;
    axis->kernel = numbers[PVG_WINDOWS_KERNEL], axis->stride = numbers[PVG_WINDOWS_STRIDE];
    axis->before = numbers[PVG_WINDOWS_BEFORE], axis->dilation = numbers[PVG_WINDOWS_DILATION];
    const int64_t room = length + axis->before + behind;
    const int64_t rest = room - (axis->kernel - 1) * axis->dilation - 1;
    axis->windows = rest < 0 ? 0 : rest / axis->stride + 1;
    axis->by_stride = divider(axis->stride, room + 1);
    axis->by_dilation = divider(axis->dilation, room + axis->dilation);
    return true;
}

// The windows of matrices of this size. Errors: VALUE (no such numbers, none fits).
inline int parse_windows(const int64_t *numbers, int64_t height, int64_t width, Windows *windows) {
    PVG_REQUIRE(numbers, PVG_ERROR_VALUE, "windows is NULL");
    PVG_REQUIRE(height >= 0 && width >= 0 && height < int64_t(1) << 62 && width < int64_t(1) << 62,
                PVG_ERROR_VALUE, "no matrix is (%lld, %lld) large", static_cast<long long>(height),
                static_cast<long long>(width));
    PVG_REQUIRE(parse_axis(numbers, height, &windows->rows) &&
                    parse_axis(numbers + 1, width, &windows->columns),
                PVG_ERROR_VALUE,
                "numbers of windows are 1 or more, of paddings 0 or more, and below 2^31");
    PVG_REQUIRE(elements_of_a_kernel(*windows) <= INT32_MAX, PVG_ERROR_VALUE,
                "a kernel has fewer than 2^31 elements");
    PVG_REQUIRE(windows->rows.windows > 0 && windows->columns.windows > 0, PVG_ERROR_VALUE,
                "a kernel of (%lld, %lld) for (%lld, %lld), padding included",
                static_cast<long long>(numbers[PVG_WINDOWS_KERNEL]),
                static_cast<long long>(numbers[PVG_WINDOWS_KERNEL + 1]),
                static_cast<long long>(height), static_cast<long long>(width));
    return PVG_OK;
}

// Whether positions along the axis, and all that they are computed from, are below 2^31.
inline bool is_narrow(const WindowAxis &axis) {
    const int64_t reach = axis.kernel * axis.dilation + axis.stride;
    return axis.windows * axis.stride + axis.length + axis.before + reach < int64_t(1) << 31;
}
inline WindowAxisOf<int32_t> narrowed(const WindowAxis &axis) {
    const auto narrow = [](int64_t n) { return static_cast<int32_t>(n); };
    return {narrow(axis.length),
            narrow(axis.windows),
            narrow(axis.kernel),
            narrow(axis.stride),
            narrow(axis.before),
            narrow(axis.dilation),
            static_cast<Divider<int32_t>>(axis.by_stride),
            static_cast<Divider<int32_t>>(axis.by_dilation)};
}

} // namespace pvg
