// Windows over the last two axes of an array (pvg_windows): what a call asks for, checked, and how
// kernels find the windows that an element is in. Pooling and convolution share it.
#pragma once
#include "arrays/call.cuh"

namespace pvg {

// Division of positions by a number that the host prepares, as arrays/locate.cuh has it.
struct Divider {
    uint64_t multiplier;
    int64_t length;
    uint32_t shift;
    bool narrow; // every position is below 2^31; else below 2^63

    __device__ __forceinline__ int64_t operator()(int64_t position) const {
        if (narrow) {
            const uint32_t n = static_cast<uint32_t>(position);
            return (__umulhi(n, static_cast<uint32_t>(multiplier)) + n) >> shift;
        }
        const uint64_t n = static_cast<uint64_t>(position);
        return static_cast<int64_t>((__umul64hi(n, multiplier) + n) >> shift);
    }
    // The quotient; *position becomes the rest.
    __device__ __forceinline__ int64_t split(int64_t *position) const {
        const int64_t quotient = (*this)(*position);
        *position -= quotient * length;
        return quotient;
    }
};

// Divides positions below `positions` by `length`, which is 1 or more.
inline Divider divider(int64_t length, int64_t positions) {
    using Wide = unsigned __int128;
    Divider d = {0, length, 0, positions <= int64_t(1) << 31};
    const Wide unit = Wide(1) << (d.narrow ? 32 : 64);
    while ((Wide(1) << d.shift) < static_cast<Wide>(length)) d.shift++;
    const Wide above = (Wide(1) << d.shift) - static_cast<Wide>(length);
    d.multiplier = static_cast<uint64_t>(unit * above / static_cast<Wide>(length) + 1);
    return d;
}

// Rows, or columns. Window w has the elements w * stride - before + i * dilation, i < kernel, of
// those below `length`; the rest lies around the array.
struct WindowAxis {
    int64_t length, windows, kernel, stride, before, dilation;
    Divider by_stride;

    __device__ __forceinline__ bool has(int64_t at) const { return at >= 0 && at < length; }

    // How many elements of a window are in the array.
    __device__ __forceinline__ int64_t inside(int64_t window) const {
        const int64_t start = window * stride - before, left = length - start + dilation - 1;
        const int64_t missing = start < 0 ? dilation - 1 - start : 0;
        const int64_t first = dilation == 1 ? missing : missing / dilation;
        int64_t end = left <= 0 ? 0 : dilation == 1 ? left : left / dilation;
        end = end < kernel ? end : kernel;
        return end > first ? end - first : 0;
    }

    // Calls f(window, i) for every window that has the element as its i-th one.
    template <class F> __device__ __forceinline__ void windows_with(int64_t at, const F &f) const {
        const int64_t from = at + before;
        if (dilation == 1) {
            int64_t window = by_stride(from);
            for (int64_t i = from - window * stride; i < kernel && window >= 0; i += stride) {
                if (window < windows) f(window, i);
                window--;
            }
            return;
        }
        for (int64_t i = 0; i < kernel && i * dilation <= from; i++) {
            const int64_t rest = from - i * dilation, window = by_stride(rest);
            if (window * stride == rest && window < windows) f(window, i);
        }
    }
};

struct Windows {
    WindowAxis rows, columns;

    int64_t kernel() const { return rows.kernel * columns.kernel; }
    int64_t count() const { return rows.windows * columns.windows; } // of one matrix
    bool is_plain() const {                                          // each element is a window
        return kernel() == 1 && rows.stride == 1 && columns.stride == 1 &&
               rows.windows == rows.length && columns.windows == columns.length;
    }
};

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
    PVG_REQUIRE(windows->kernel() <= INT32_MAX, PVG_ERROR_VALUE,
                "a kernel has fewer than 2^31 elements");
    PVG_REQUIRE(windows->rows.windows > 0 && windows->columns.windows > 0, PVG_ERROR_VALUE,
                "a kernel of (%lld, %lld) for (%lld, %lld), padding included",
                static_cast<long long>(numbers[PVG_WINDOWS_KERNEL]),
                static_cast<long long>(numbers[PVG_WINDOWS_KERNEL + 1]),
                static_cast<long long>(height), static_cast<long long>(width));
    return PVG_OK;
}

} // namespace pvg
