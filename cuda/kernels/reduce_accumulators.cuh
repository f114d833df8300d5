// What a reduction carries from element to element: one accumulator type per kind of operation and
// element.
//
//     identity()                    the accumulator of no elements
//     add(value, index, result)     take in one element, in the type that it is computed in; index
//                                   counts along the reduced axes
//     merge(other)                  take in the elements of another accumulator
//     gives<R>                      elements of the result can be of type R
//     total<R>(result)              finish: the element of the result
//
// An accumulator that is `ordered` rounds: its bits depend on the order of its calls, so the
// kernels fix it. The others are exact. All are plain data, so that they can lie in shared memory
// and travel through shuffles word by word.
#pragma once
#include "dtypes/dtype.cuh"
#include <math.h>
#include <string.h>
#include <type_traits>

namespace pvg::reduce {

// Where the totals go, and what they become on the way.
struct Result {
    void *data;
    int dtype;
    bool is_mean;   // divided by `count`
    int kind;       // what else the accumulator has to know, in its own words
    double divisor; // of variances
    int64_t count;  // elements behind each total
    // What makes elements of several dtypes and orders those of one kernel; see Reading.
    int64_t mask, turn;
    float limit;
    int64_t outer_stride; // elements of the result, along the kept axes outside of the reduced ones
    int64_t inner_stride; //   and along the kept axis inside of them
};

// A result of this dtype can be stored.
template <class Acc> bool can_store(int dtype) {
#define PVG_CASE(NAME, code, name, R, computed, kind) \
    case PVG_##NAME: return Acc::template gives<R>;
    switch (dtype) { PVG_PRESENT_DTYPES(PVG_CASE) }
#undef PVG_CASE
    return false;
}

// Finish, and write element `at` of a result that can be stored.
template <class Acc> __device__ void store(const Acc &acc, const Result &result, int64_t at) {
#define PVG_CASE(NAME, code, name, R, computed, kind)                          \
    case PVG_##NAME:                                                           \
        if constexpr (Acc::template gives<R>) {                                \
            static_cast<R *>(result.data)[at] = acc.template total<R>(result); \
            return;                                                            \
        }                                                                      \
        break;
    switch (result.dtype) { PVG_PRESENT_DTYPES(PVG_CASE) }
#undef PVG_CASE
    __builtin_unreachable(); // the host has asked can_store
}

template <class T> inline constexpr bool is_wide_integer = is_integer<T> && sizeof(T) == 8;
template <class T> inline constexpr bool is_full_float = is_float<T> && !is_half<T>;

// float32 is summed in float64: exact for most data, and rounded once at the end.
struct FloatSum {
    static constexpr bool ordered = true;
    double sum;

    __device__ static FloatSum identity() { return {0.0}; }
    __device__ void add(float value, int64_t, const Result &) { sum += value; }
    __device__ void merge(const FloatSum &other) { sum += other.sum; }
    template <class R> static constexpr bool gives = std::is_same_v<R, float>;
    template <class R> __device__ R total(const Result &result) const {
        return static_cast<R>(result.is_mean ? sum / static_cast<double>(result.count) : sum);
    }
};

// float16 and bfloat16 are summed in float32.
struct HalfSum {
    static constexpr bool ordered = true;
    float sum;

    __device__ static HalfSum identity() { return {0.0f}; }
    __device__ void add(float value, int64_t, const Result &) { sum += value; }
    __device__ void merge(const HalfSum &other) { sum += other.sum; }
    template <class R> static constexpr bool gives = is_half<R>;
    template <class R> __device__ R total(const Result &result) const {
        const double wide = sum;
        return R(result.is_mean ? wide / static_cast<double>(result.count) : wide);
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
    template <class R> static constexpr bool gives = std::is_same_v<R, double>;
    template <class R> __device__ R total(const Result &result) const {
        double all = sum + error;
        if (all != all) all = sum; // the error of an infinite sum is NaN
        return result.is_mean ? all / static_cast<double>(result.count) : all;
    }
};

// ---- What elements are read as ------------------------------------------------------------------

// Elements of the same size that differ in little go through one kernel. What they differ in is
// known when it is launched, and costs an operation an element at most:
//
//     Widest<T>   sums and products: integers of 4 and 8 bytes are read as unsigned; xor `turn`
//                 makes signed ones so, each larger by that
//     Bits<T>     whether elements are 0: whatever it is, as unsigned; `mask` leaves out the sign of
//                 floats
//     Ordered<T>  extremes: integers as unsigned; the halves as the upper half of a float, in which
//                 both have the order of the numbers, and what is beyond `limit` is a NaN
template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
template <class T>
using Widest = std::conditional_t<is_bool<T> || (is_integer<T> && sizeof(T) >= 4), Bits<T>, T>;
template <class T>
using Ordered =
    std::conditional_t<is_half<T>, BFloat16, std::conditional_t<is_float<T>, T, Bits<T>>>;

// Integers are summed exactly, in a type that no array can overflow, for a mean; a sum keeps the
// low 64 bits of it, which come of adding those alone.
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

template <class Wide> struct IntegerSum {
    static constexpr bool ordered = false;
    Wide sum;

    __device__ static IntegerSum identity() { return {0}; }
    template <class T> __device__ void add(T value, int64_t, const Result &result) {
        if constexpr (sizeof(T) >= 4) value ^= static_cast<T>(result.turn);
        sum += static_cast<Wide>(value);
    }
    __device__ void merge(const IntegerSum &other) { sum += other.sum; }
    __device__ static double as_double(Wide sum) {
        UInt128 bits = static_cast<UInt128>(static_cast<Int128>(sum));
        UInt128 magnitude = sum < 0 ? 0 - bits : bits;
        double value =
            static_cast<double>(static_cast<uint64_t>(magnitude >> 64)) * 18446744073709551616.0 +
            static_cast<double>(static_cast<uint64_t>(magnitude));
        return sum < 0 ? -value : value;
    }
    template <class R> static constexpr bool gives =
        is_wide_integer<R> || (is_full_float<R> && !std::is_same_v<Wide, uint64_t>);
    template <class R> __device__ R total(const Result &result) const {
        const Wide exact = sum - static_cast<Wide>(static_cast<uint64_t>(result.turn)) *
                                     static_cast<Wide>(result.count);
        if constexpr (is_integer<R>)
            return static_cast<R>(exact);
        else
            return static_cast<R>(as_double(exact) / static_cast<double>(result.count));
    }
};

// Integers are multiplied modulo 2^64, floats and parts of complex numbers in float64; a product is
// rounded once more when it is stored. (bfloat16 in float32 would have no room for parts that are
// larger than the whole.)
template <class Wide> struct Product {
    static constexpr bool ordered = is_float<Wide> || is_complex<Wide>;
    Wide product;

    __device__ static Product identity() { return {Wide(1)}; }
    template <class T> __device__ void add(T value, int64_t, const Result &result) {
        if constexpr (std::is_same_v<T, uint32_t>) {
            const uint32_t turn = static_cast<uint32_t>(result.turn);
            product *= static_cast<Wide>(value ^ turn) - turn;
        } else {
            product *= static_cast<Wide>(value);
        }
    }
    __device__ void merge(const Product &other) { product *= other.product; }
    template <class R>
    static constexpr bool gives = is_complex<Wide> ? is_complex<R>
                                  : is_float<Wide> ? is_float<R>
                                                   : is_wide_integer<R>;
    template <class R> __device__ R total(const Result &) const { return static_cast<R>(product); }
};
template <class T>
using ProductOf = Product<std::conditional_t<is_complex<T>, Complex<double>,
                                             std::conditional_t<is_float<T>, double, uint64_t>>>;

// Maximum, minimum and argmax compare signed integers in the order of the values: NaN above
// everything, -0.0 below 0.0. For the minimum `turn` turns the order round: of floats it is the
// sign, of integers all bits.
template <class T> using Key = std::conditional_t<(sizeof(T) > 4), int64_t, int32_t>;
template <class K> inline constexpr int sign_bit = sizeof(K) * 8 - 1;
template <class K> inline constexpr K lowest_key = static_cast<K>(1ull << sign_bit<K>);
template <class K> inline constexpr K nan_key =
    static_cast<K>(~(1ull << sign_bit<K>)); // the largest

template <class K, class T> __device__ K order_key(T value, const Result &result) {
    static_assert(is_float<T> ? sizeof(T) == sizeof(K) : is_unsigned<T> && sizeof(T) <= sizeof(K),
                  "elements of this type have no key");
    const K turn = static_cast<K>(result.turn);
    if constexpr (is_float<T>) {
        K key;
        memcpy(&key, &value, sizeof key);
        key ^= turn;
        key ^= (key >> sign_bit<K>)&nan_key<K>; // negative numbers: larger magnitude, smaller key
        return fabs(value) <= static_cast<T>(result.limit) ? key : nan_key<K>;
    } else {
        return (static_cast<K>(value) & static_cast<K>(result.mask)) ^ turn;
    }
}

// The value of type R that has this key: the inverse of order_key.
template <class R, class K> __device__ R from_order_key(K key, const Result &result) {
    const K turn = static_cast<K>(result.turn);
    if constexpr (is_float<R>) {
        if (key != nan_key<K>) key ^= ((key >> sign_bit<K>)&nan_key<K>)^turn;
        if constexpr (is_half<R>) key = static_cast<K>(static_cast<uint32_t>(key) >> 16);
        R value;
        memcpy(&value, &key, sizeof value);
        return value;
    } else {
        return is_bool<R> ? R((key ^ turn) != 0) : static_cast<R>(key ^ turn);
    }
}

// Whether any element is not 0, and whether all are not, are a maximum and a minimum. NaN is true.
template <class K> struct Extreme {
    static constexpr bool ordered = false;
    K key;

    __device__ static Extreme identity() { return {lowest_key<K>}; }
    template <class T> __device__ void add(T value, int64_t, const Result &result) {
        merge({order_key<K>(value, result)});
    }
    __device__ void merge(const Extreme &other) { key = other.key > key ? other.key : key; }
    template <class R> static constexpr bool gives =
        is_bool<R> || (!is_complex<R> && std::is_same_v<Key<R>, K>);
    template <class R> __device__ R total(const Result &result) const {
        return from_order_key<R>(key, result);
    }
};

// Index of the first largest or smallest. Kernels take elements in as they follow each other, so
// one as large as an earlier one is none; and no index at all means that all have the lowest key.
template <class K> struct IndexAndKey;
template <> struct IndexAndKey<int64_t> {
    int64_t index; // of the first element that has the largest key
    int64_t key;
};
template <> struct IndexAndKey<int32_t> {
    int64_t index;
    int32_t key, behind; // behind: 0, as padding would not be the same from run to run
};
template <class K> struct FirstExtreme : IndexAndKey<K> {
    static constexpr bool ordered = false;
    using IndexAndKey<K>::index, IndexAndKey<K>::key;

    __device__ static FirstExtreme identity() {
        FirstExtreme none{};
        none.index = INT64_MAX, none.key = lowest_key<K>;
        return none;
    }
    template <class T> __device__ void add(T value, int64_t at, const Result &result) {
        // -0.0 and 0.0 are equally large
        const K mine = order_key<K>(value == 0 ? T(0) : value, result);
        index = mine > key ? at : index;
        key = mine > key ? mine : key;
    }
    __device__ void merge(const FirstExtreme &other) {
        bool better = other.key > key || (other.key == key && other.index < index);
        key = better ? other.key : key;
        index = better ? other.index : index;
    }
    template <class R> static constexpr bool gives = std::is_same_v<R, int64_t>;
    template <class R> __device__ R total(const Result &) const {
        return index == INT64_MAX ? 0 : index;
    }
};

// The accumulator for elements of type T.
template <class T, class Wide>
using SumIn = std::conditional_t<
    std::is_same_v<T, float>, FloatSum,
    std::conditional_t<
        std::is_same_v<T, double>, DoubleSum,
        std::conditional_t<is_half<T>, HalfSum,
                           IntegerSum<std::conditional_t<sizeof(T) <= 2, int64_t, Wide>>>>>;
template <class T> using SumOf = SumIn<T, uint64_t>;
template <class T> using MeanOf = SumIn<T, Int128>;
template <class T> using ExtremeOf = Extreme<Key<T>>;
template <class T> using FirstOf = FirstExtreme<Key<T>>;

// X(NAME, "name", domain, result, identity, order, what T is read as, accumulator)
#define PVG_REDUCTIONS(X)                                                       \
    X(SUM, "sum", all_kinds, wide, zero, none, Widest<T>, SumOf<T>)             \
    X(PROD, "prod", all_kinds, wide, one, none, Widest<T>, ProductOf<T>)        \
    X(MEAN, "mean", all_kinds, floating, zero, none, Widest<T>, MeanOf<T>)      \
    X(MAX, "max", ordered, same, none, largest, Ordered<T>, ExtremeOf<T>)       \
    X(MIN, "min", ordered, same, none, smallest, Ordered<T>, ExtremeOf<T>)      \
    X(ARGMAX, "argmax", ordered, index, none, largest, Ordered<T>, FirstOf<T>)  \
    X(ARGMIN, "argmin", ordered, index, none, smallest, Ordered<T>, FirstOf<T>) \
    X(ANY, "any", all_kinds, boolean, zero, none, Bits<T>, ExtremeOf<T>)        \
    X(ALL, "all", all_kinds, boolean, one, none, Bits<T>, ExtremeOf<T>)

} // namespace pvg::reduce
