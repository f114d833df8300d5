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
#include <string.h>
#include <type_traits>

namespace pvg::reduce {

// Where the totals go, and what they become on the way.
struct Result {
    void *data;
    int dtype;
    bool is_mean;      // divided by `count`
    int kind;          // what else the accumulator has to know, in its own words
    double inverse[2]; // of variances: of what sums of squares are divided by, and of `count`
    int64_t count;     // elements behind each total
    int64_t flip; // extremes: xor of the order keys, see order_key; truth: -1 if all have to be
    // Signed elements that are read as unsigned: their sign, see IntegerSum and Product. Truth: the
    // bits of an element of which any makes it true.
    int64_t turn;
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

// Integers are summed exactly, in a type that no array can overflow, for a mean; a sum keeps the
// low 64 bits of it, which come of adding those alone. All are read as unsigned; signed ones that
// are narrower than the sum are made so by `turn`, the sign: each is larger by as much.
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

template <class Wide> struct IntegerSum {
    static constexpr bool ordered = false;
    Wide sum;

    __device__ static IntegerSum identity() { return {0}; }
    template <class T> __device__ void add(T value, int64_t, const Result &result) {
        if constexpr (sizeof(T) < sizeof(Wide)) value ^= static_cast<T>(result.turn);
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
// larger than the whole.) Signed integers that are read as unsigned get their sign by `turn`.
template <class Wide> struct Product {
    static constexpr bool ordered = is_float<Wide> || is_complex<Wide>;
    Wide product;

    __device__ static Product identity() { return {Wide(1)}; }
    template <class T> __device__ void add(T value, int64_t, const Result &result) {
        if constexpr (is_unsigned<T> && sizeof(T) > 1 && sizeof(T) < sizeof(Wide)) {
            const Wide turn = static_cast<Wide>(result.turn);
            product *= (static_cast<Wide>(value) ^ turn) - turn;
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
// everything, -0.0 below 0.0. For the minimum the order is turned round by inverting all bits.
template <class T> using Key = std::conditional_t<(sizeof(T) > 4), int64_t, int32_t>;
template <class K> inline constexpr int sign_bit = sizeof(K) * 8 - 1;
template <class K> inline constexpr K lowest_key = static_cast<K>(1ull << sign_bit<K>);
template <class K> inline constexpr K nan_key =
    static_cast<K>(~(1ull << sign_bit<K>)); // the largest

// Integers are read as unsigned, so that one kernel takes all of a size: with their sign and the
// order in `flip`, an exclusive or makes keys of them (flip_of in reduce.cu).
template <class T> __device__ Key<T> order_key(T value, int64_t flip) {
    using K = Key<T>;
    static_assert(is_float<T> ? sizeof(T) == sizeof(K) : is_integer<T> && sizeof(T) <= sizeof(K),
                  "elements of this type have no key");
    K key;
    if constexpr (is_float<T>) {
        memcpy(&key, &value, sizeof key);
        key ^= (key >> sign_bit<K>)&nan_key<K>; // negative numbers: larger magnitude, smaller key
        return value != value ? nan_key<K> : key ^ static_cast<K>(flip);
    } else {
        key = static_cast<K>(value);
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
    } else {
        return static_cast<T>(key ^ static_cast<K>(flip));
    }
}

// What elements of type T are compared as: bool as uint8, halves as float.
template <class T>
using Compared = std::conditional_t<is_bool<T>, uint8_t, typename DtypeOf<T>::compute>;

template <class K> struct Extreme {
    static constexpr bool ordered = false;
    K key;

    __device__ static Extreme identity() { return {lowest_key<K>}; }
    template <class T> __device__ void add(T value, int64_t, const Result &result) {
        merge({order_key(value, result.flip)});
    }
    __device__ void merge(const Extreme &other) { key = other.key > key ? other.key : key; }
    template <class R> static constexpr bool gives =
        !is_complex<R> && std::is_same_v<Key<Compared<R>>, K>;
    template <class R> __device__ R total(const Result &result) const {
        return static_cast<R>(from_order_key<Compared<R>>(key, result.flip));
    }
};

// Index of the first largest or smallest. Of floats and single bytes the order is known when
// compiling: turning each key round would be a good part of the work. Kernels take elements in as
// they follow each other, so one as large as an earlier one is none; and no index at all means that
// all have the lowest key.
template <class K> struct IndexAndKey;
template <> struct IndexAndKey<int64_t> {
    int64_t index; // of the first element that has the largest key
    int64_t key;
};
template <> struct IndexAndKey<int32_t> {
    int64_t index;
    int32_t key, behind; // behind: 0, as padding would not be the same from run to run
};
template <Order ORDER, class K> struct FirstExtreme : IndexAndKey<K> {
    static constexpr bool ordered = false;
    using IndexAndKey<K>::index, IndexAndKey<K>::key;

    __device__ static FirstExtreme identity() {
        FirstExtreme none{};
        none.index = INT64_MAX, none.key = lowest_key<K>;
        return none;
    }
    template <class T> __device__ void add(T value, int64_t at, const Result &result) {
        const int64_t flip = ORDER == Order::none ? result.flip : ORDER == Order::smallest ? -1 : 0;
        // -0.0 and 0.0 are equally large
        const K mine = order_key(value == 0 ? T(0) : value, flip);
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

// Whether any element is true: one of the bits of `turn` is set in it, which are all but the sign
// of floats, so that -0.0 is false, and NaN is true. Whether all are: none is found that is not.
struct Truth {
    static constexpr bool ordered = false;
    int found;

    __device__ static Truth identity() { return {0}; }
    template <class T> __device__ void add(T value, int64_t, const Result &result) {
        if constexpr (sizeof(T) > 1) value &= static_cast<T>(result.turn); // bytes are no floats
        found |= (value != 0) != (result.flip != 0);
    }
    __device__ void merge(const Truth &other) { found |= other.found; }
    template <class R> static constexpr bool gives = is_bool<R>;
    template <class R> __device__ R total(const Result &result) const {
        return R((found != 0) != (result.flip != 0));
    }
};

// What elements of type T are read as, so that those of several dtypes go through one kernel:
// integers as unsigned ones, and where only the bits count, floats as well. Result::flip and turn
// tell them apart again, for one instruction an element. Products and places of single bytes have
// no room for it beside the memory's pace: these keep their sign.
template <class T>
using Unsigned =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
template <class T>
using Bits = std::conditional_t<is_bool<T> || is_integer<T>, Unsigned<T>, T>;
template <class T>
using Signed = std::conditional_t<std::is_same_v<T, int8_t>, int8_t, Bits<T>>;

// The accumulator for elements of type T; bool is reduced as uint8.
template <class T, class Wide>
using SumIn = std::conditional_t<
    std::is_same_v<T, float>, FloatSum,
    std::conditional_t<
        std::is_same_v<T, double>, DoubleSum,
        std::conditional_t<is_half<T>, HalfSum,
                           IntegerSum<std::conditional_t<sizeof(T) <= 2, int64_t, Wide>>>>>;
template <class T> using SumOf = SumIn<T, uint64_t>;
template <class T> using MeanOf = SumIn<T, Int128>;
template <class T> using ExtremeOf = Extreme<Key<Compared<T>>>;
template <Order ORDER, class T>
using FirstOf =
    FirstExtreme<is_integer<T> && sizeof(T) != 1 ? Order::none : ORDER, Key<Compared<T>>>;
template <class T> using FirstLargest = FirstOf<Order::largest, T>;
template <class T> using FirstSmallest = FirstOf<Order::smallest, T>;

// X(NAME, "name", domain, result, identity, order, what T is read as, accumulator for type T)
#define PVG_REDUCTIONS(X)                                                            \
    X(SUM, "sum", all_kinds, wide, zero, none, Bits<T>, SumOf<T>)                    \
    X(PROD, "prod", all_kinds, wide, one, none, Signed<T>, ProductOf<T>)             \
    X(MEAN, "mean", all_kinds, floating, zero, none, Bits<T>, MeanOf<T>)             \
    X(MAX, "max", ordered, same, none, largest, Bits<T>, ExtremeOf<T>)               \
    X(MIN, "min", ordered, same, none, smallest, Bits<T>, ExtremeOf<T>)              \
    X(ARGMAX, "argmax", ordered, index, none, largest, Signed<T>, FirstLargest<T>)   \
    X(ARGMIN, "argmin", ordered, index, none, smallest, Signed<T>, FirstSmallest<T>) \
    X(ANY, "any", all_kinds, boolean, zero, none, Unsigned<T>, Truth)                \
    X(ALL, "all", all_kinds, boolean, one, none, Unsigned<T>, Truth)

} // namespace pvg::reduce
