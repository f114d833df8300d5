// Keys: unsigned integers that stand in the order of elements. They are made of an element's bits
// alone, so that one kernel serves all dtypes of a size.
//
// The order is NumPy's: NaN last, -0.0 beside 0.0; a descending one is its reverse. Of exact keys
// the element can be had back: -0.0 stands before 0.0 then, and NaN in the order of its bits. Of
// others -0.0 and 0.0 are equal, and all NaN.
#pragma once
#include "dtypes/dtype.cuh"

namespace pvg::keys {

struct Order {
    uint64_t top;      // the bit of the sign; 0 of unsigned ones
    uint64_t infinity; // of floats: its bits, beyond which is NaN
    bool is_float, exact, descending;
};

inline Order order_of(int dtype, bool exact, bool descending) {
    const Kind kind = dtype_kind(dtype);
    const int64_t bits = dtype_size(dtype) * 8;
    const bool is_signed = kind == Kind::signed_integer || kind == Kind::floating;
    uint64_t infinity = 0;
    if (dtype == PVG_FLOAT16) infinity = 0x7c00;
    if (dtype == PVG_BFLOAT16) infinity = 0x7f80;
    if (dtype == PVG_FLOAT32) infinity = 0x7f800000;
    if (dtype == PVG_FLOAT64) infinity = uint64_t(0x7ff) << 52;
    return {is_signed ? uint64_t(1) << (bits - 1) : 0, infinity, kind == Kind::floating, exact,
            descending};
}

// Floats by sign and magnitude, turned so that the NaN with a sign, which would be the smallest
// ones, come behind those without.
template <class K> __host__ __device__ inline K key_of(K bits, const Order &order) {
    const K top = static_cast<K>(order.top);
    K key = static_cast<K>(bits ^ top);
    if (order.is_float) {
        const K infinity = static_cast<K>(order.infinity);
        const K magnitude = static_cast<K>(bits & static_cast<K>(~top));
        if (!order.exact && magnitude == 0) bits = 0;
        if (!order.exact && magnitude > infinity) bits = static_cast<K>(~top);
        key = static_cast<K>(bits & top ? ~bits : bits | top);
        key = static_cast<K>(key - (top - 1 - infinity));
    }
    return order.descending ? static_cast<K>(~key) : key;
}

// The bits that an exact key was made of.
template <class K> __host__ __device__ inline K bits_of(K key, const Order &order) {
    const K top = static_cast<K>(order.top);
    if (order.descending) key = static_cast<K>(~key);
    if (!order.is_float) return static_cast<K>(key ^ top);
    key = static_cast<K>(key + (top - 1 - static_cast<K>(order.infinity)));
    return static_cast<K>(key & top ? key ^ top : ~key);
}

} // namespace pvg::keys
