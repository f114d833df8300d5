// From a dtype code to C++ types, by the list of dtypes:
//
//     pvg::dispatch<floats>(dtype, [&](auto tag) {
//         using T = typename decltype(tag)::type;
//         ...
//         return status;
//     });
#pragma once
#include "dtypes/dtype.cuh"
#include "runtime/error.cuh"

namespace pvg {

// Errors: TYPE, for a dtype that arrays cannot have, or of a kind that is not among `kinds`.
int refuse_dtype(int dtype, Kinds kinds);
inline int check_kinds(int dtype, Kinds kinds) {
    return is_among(dtype, kinds) ? static_cast<int>(PVG_OK) : refuse_dtype(dtype, kinds);
}

// Calls function(Tag<T>()) with the type of the dtype, for dtypes of these kinds; its status is
// returned. Errors: TYPE.
template <Kinds kinds = all_kinds, class F> int dispatch(int dtype, F &&function) {
#define PVG_CASE(NAME, code, name, type, computed, kind)                           \
    case PVG_##NAME:                                                               \
        if constexpr ((kinds_of<type> & kinds) != 0) return function(Tag<type>()); \
        break;
    switch (dtype) { PVG_PRESENT_DTYPES(PVG_CASE) }
#undef PVG_CASE
    return refuse_dtype(dtype, kinds);
}

struct alignas(16) Bytes16 { uint64_t words[2]; };
constexpr bool is_size_of_a_dtype(size_t bytes) {
    bool found = false;
#define PVG_FIND(NAME, code, name, type, computed, kind) found = found || sizeof(type) == bytes;
    PVG_PRESENT_DTYPES(PVG_FIND)
#undef PVG_FIND
    return found;
}

// The same for kernels that only move elements: by size, as unsigned integers of 1, 2, 4 or 8
// bytes, or as 16 bytes.
template <class F> int dispatch_size(int dtype, F &&function) {
    const auto call = [&](auto tag) -> int {
        if constexpr (is_size_of_a_dtype(sizeof(typename decltype(tag)::type)))
            return function(tag);
        else
            return refuse_dtype(dtype, all_kinds);
    };
    switch (dtype_size(dtype)) {
    case 1: return call(Tag<uint8_t>());
    case 2: return call(Tag<uint16_t>());
    case 4: return call(Tag<uint32_t>());
    case 8: return call(Tag<uint64_t>());
    case 16: return call(Tag<Bytes16>());
    }
    return refuse_dtype(dtype, all_kinds);
}

} // namespace pvg
