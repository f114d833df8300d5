// What a reduction carries from element to element: one accumulator type per kind of operation and
// element.
//
//     identity()                    the accumulator of no elements
//     add(value, index, result)     take in one element, in the type that it is computed in; index
//                                   counts along the reduced axes
//     merge(other)                  take in the elements of another accumulator
//     store(result, at)             finish, and write element `at` of the result
//
// An accumulator that is `ordered` rounds: its bits depend on the order of its calls, so the
// kernels fix it. The others are exact. All are plain data, so that they can lie in shared memory
// and travel through shuffles word by word.
#pragma once
#include "dtypes/dtype.cuh"
#include <string.h>
#include <type_traits>

namespace pvg::reduce {

// Where the totals go, and what they become on the way.
struct Result {
    void *data;
    int operation, dtype; // of the result
    int64_t count;        // elements behind each total
    int64_t flip; // maximum and argmax: xor of the order keys, 0 or (minimum) -1; see order_key
    int64_t outer_stride; // elements of the result, along the kept axes outside of the reduced ones
    int64_t inner_stride; //   and along the kept axis inside of them
};

template <class T> __device__ void write(const Result &result, int64_t at, T value) {
    static_cast<T *>(result.data)[at] = value;
}

// float32 is summed in float64: exact for most data, and rounded once at the end.
struct FloatSum {
    static constexpr bool ordered = true;
    double sum;

    __device__ static FloatSum identity() { return {0.0}; }
    __device__ void add(float value, int64_t, const Result &) { sum += value; }
    __device__ void merge(const FloatSum &other) { sum += other.sum; }
    __device__ void store(const Result &result, int64_t at) const {
        double total = result.operation == PVG_MEAN ? sum / static_cast<double>(result.count) : sum;
        write(result, at, static_cast<float>(total));
    }
};

// float16 and bfloat16 are summed in float32.
struct HalfSum {
    static constexpr bool ordered = true;
    float sum;

    __device__ static HalfSum identity() { return {0.0f}; }
    __device__ void add(float value, int64_t, const Result &) { sum += value; }
    __device__ void merge(const HalfSum &other) { sum += other.sum; }
    __device__ void store(const Result &result, int64_t at) const {
        double total = sum;
        if (result.operation == PVG_MEAN) total /= static_cast<double>(result.count);
        if (result.dtype == PVG_FLOAT16)
            write(result, at, Half(total));
        else
            write(result, at, BFloat16(total));
    }
};

// float64 is summed together with the rounding errors of its additions (Knuth's TwoSum).
struct DoubleSum {
    static constexpr bool ordered = true;
    double sum, error;

    __device__ static DoubleSum identity() { return {0.0, 0.0}; }
    __device__ void add(double value, int64_t, const Result &) {
        double total = sum + value;
        double part = total - sum;
        error += (sum - (total - part)) + (value - part);
        sum = total;
    }
    __device__ void merge(const DoubleSum &other) {
        add(other.sum, 0, Result());
        error += other.error;
    }
    __device__ void store(const Result &result, int64_t at) const {
        double total = sum + error;
        if (total != total) total = sum; // the error of an infinite sum is NaN
        write(result, at,
              result.operation == PVG_MEAN ? total / static_cast<double>(result.count) : total);
    }
};

// Integers are summed exactly, in a type that no array can overflow; a sum keeps the low 64 bits of
// it.
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

template <class Wide> struct IntegerSum {
    static constexpr bool ordered = false;
    Wide sum;

    __device__ static IntegerSum identity() { return {0}; }
    template <class T> __device__ void add(T value, int64_t, const Result &) { sum += value; }
    __device__ void merge(const IntegerSum &other) { sum += other.sum; }
    __device__ double as_double() const {
        UInt128 bits = static_cast<UInt128>(static_cast<Int128>(sum));
        UInt128 magnitude = sum < 0 ? 0 - bits : bits;
        double value =
            static_cast<double>(static_cast<uint64_t>(magnitude >> 64)) * 18446744073709551616.0 +
            static_cast<double>(static_cast<uint64_t>(magnitude));
        return sum < 0 ? -value : value;
    }
    __device__ void store(const Result &result, int64_t at) const {
        if (result.operation == PVG_SUM) return write(result, at, static_cast<uint64_t>(sum));
        double mean = as_double() / static_cast<double>(result.count);
        if (result.dtype == PVG_FLOAT32)
            write(result, at, static_cast<float>(mean));
        else
            write(result, at, mean);
    }
};

// Maximum, minimum and argmax compare signed integers in the order of the values: NaN above
// everything, -0.0 below 0.0. For the minimum the order is turned round by inverting all bits.
template <class T> using Key = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
template <class K> inline constexpr int sign_bit = sizeof(K) * 8 - 1;
template <class K> inline constexpr K lowest_key = static_cast<K>(1ull << sign_bit<K>);
template <class K> inline constexpr K nan_key =
    static_cast<K>(~(1ull << sign_bit<K>)); // the largest

template <class T> __device__ Key<T> order_key(T value, int64_t flip) {
    using K = Key<T>;
    K key;
    if constexpr (is_float<T>) {
        memcpy(&key, &value, sizeof key);
        key ^= (key >> sign_bit<K>)&nan_key<K>; // negative numbers: larger magnitude, smaller key
        return value != value ? nan_key<K> : key ^ static_cast<K>(flip);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
        key = static_cast<K>(value ^ 1ull << sign_bit<K>);
    } else {
        key = value;
    }
    return key ^ static_cast<K>(flip);
}

// The value that has this key: the inverse of order_key.
template <class T> __device__ T from_order_key(Key<T> key, int64_t flip) {
    using K = Key<T>;
    if constexpr (is_float<T>) {
        if (key != nan_key<K>) key ^= static_cast<K>(flip);
        key ^= (key >> sign_bit<K>)&nan_key<K>;
        T value;
        memcpy(&value, &key, sizeof value);
        return value;
    } else if constexpr (std::is_same_v<T, uint64_t>) {
        return static_cast<T>(key ^ static_cast<K>(flip)) ^ 1ull << sign_bit<K>;
    } else {
        return static_cast<T>(key ^ static_cast<K>(flip));
    }
}

template <class K> struct Extreme {
    static constexpr bool ordered = false;
    K key;

    __device__ static Extreme identity() { return {lowest_key<K>}; }
    template <class T> __device__ void add(T value, int64_t, const Result &result) {
        merge({order_key(value, result.flip)});
    }
    __device__ void merge(const Extreme &other) { key = other.key > key ? other.key : key; }
    template <class T> __device__ void store_as(const Result &result, int64_t at) const {
        write(result, at, from_order_key<T>(key, result.flip));
    }
    __device__ void store(const Result &result, int64_t at) const {
        if constexpr (sizeof(K) == 8) {
            switch (result.dtype) {
            case PVG_INT64: return store_as<int64_t>(result, at);
            case PVG_UINT64: return store_as<uint64_t>(result, at);
            case PVG_FLOAT64: return store_as<double>(result, at);
            }
        } else {
            switch (result.dtype) {
            case PVG_BOOL:
            case PVG_UINT8: return store_as<uint8_t>(result, at);
            case PVG_INT32: return store_as<int32_t>(result, at);
            case PVG_FLOAT16:
                return write(result, at, Half(from_order_key<float>(key, result.flip)));
            case PVG_BFLOAT16:
                return write(result, at, BFloat16(from_order_key<float>(key, result.flip)));
            case PVG_FLOAT32: return store_as<float>(result, at);
            }
        }
    }
};

struct Argmax {
    static constexpr bool ordered = false;
    int64_t key, index; // the largest key, and the first element that has it

    __device__ static Argmax identity() { return {lowest_key<int64_t>, INT64_MAX}; }
    template <class T> __device__ void add(T value, int64_t at, const Result &) {
        merge({order_key(value == 0 ? T(0) : value, 0), at}); // -0.0 and 0.0 are equally large
    }
    __device__ void merge(const Argmax &other) {
        bool better = other.key > key || (other.key == key && other.index < index);
        key = better ? other.key : key;
        index = better ? other.index : index;
    }
    __device__ void store(const Result &result, int64_t at) const { write(result, at, index); }
};

// The accumulator for elements of type T; bool is reduced as uint8.
template <class T>
using SumOf = std::conditional_t<
    std::is_same_v<T, float>, FloatSum,
    std::conditional_t<
        std::is_same_v<T, double>, DoubleSum,
        std::conditional_t<is_half<T>, HalfSum,
                           IntegerSum<std::conditional_t<sizeof(T) == 1, int64_t, Int128>>>>>;
template <class T> using ExtremeOf = Extreme<Key<T>>;

} // namespace pvg::reduce
