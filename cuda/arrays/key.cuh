// Items of keys of Python; see pvg_key.
#pragma once
#include "pyvecgpu.h"

namespace pvg {

// Whether an item is of a kind that makes a view.
inline bool is_key(int64_t kind) {
    return kind >= 0 && (kind <= PVG_KEY_REST || (kind < PVG_KEY_ARRAY && (kind & 3) == 1));
}

// Where a slice of Python begins on an axis of length n, and how many elements it has.
inline int64_t slice_of(const int64_t *item, int64_t n, int64_t step, int64_t *start) {
    int64_t least = step > 0 ? 0 : -1, most = step > 0 ? n : n - 1;
    auto bound = [=](bool given, int64_t value, int64_t otherwise) {
        if (!given) return otherwise;
        if (value < 0) value += n;
        return value < least ? least : value > most ? most : value;
    };
    *start = bound(item[0] & PVG_KEY_START, item[1], step > 0 ? least : most);
    int64_t stop = bound(item[0] & PVG_KEY_STOP, item[2], step > 0 ? most : least);
    uint64_t distance = step > 0 ? stop - *start : *start - stop;
    if (step > 0 ? stop <= *start : *start <= stop) return 0;
    return (distance - 1) / (step > 0 ? step : 0 - static_cast<uint64_t>(step)) + 1;
}

} // namespace pvg
