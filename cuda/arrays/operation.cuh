// Operations: what is true of each whatever its operands are, one row an operation. A family (the
// unary ones, the reductions, ...) lists its rows where its arithmetic is, and gives them through
// one function to library.cu, which tells the world.
#pragma once
#include "dtypes/dtype.cuh"

namespace pvg {

enum class Family { unary, binary, reduce, other };
// The dtype of the result, for operands that have been promoted.
enum class Gives {
    same,
    floating, // of bool and integers the default float
    boolean,
    real,  // of complex numbers the dtype of their parts
    wide,  // of bool and integers that of 64 bits
    index, // int64
};
// Of a reduction: what it gives for no elements, and which elements it prefers.
enum class Identity { none, zero, one };
enum class Order { none, largest, smallest };

struct Operation {
    int code;
    const char *name;
    Family family;
    Kinds domain; // of the promoted operands
    Gives gives;
    int mirrored = 0; // a comparison: the one that gives the same with its operands exchanged
    Identity identity = Identity::none;
    Order order = Order::none;
};

// The rows of a family.
struct Operations {
    const Operation *rows;
    int count;

    template <int N> constexpr Operations(const Operation (&array)[N]) : rows(array), count(N) {}
    const Operation *begin() const { return rows; }
    const Operation *end() const { return rows + count; }
    const Operation *find(int code) const {
        for (const Operation &row : *this)
            if (row.code == code) return &row;
        return nullptr;
    }
};

// The kinds that elements of the domain are computed in: no others need code.
constexpr Kinds computed_kinds(Kinds domain, Gives gives) {
    return gives == Gives::floating ? domain & (floats | only(Kind::complex)) : domain;
}

// What operands of a dtype are computed in, and the result's.
struct Dtypes { int computed, result; };
Dtypes dtypes_of(const Operation &operation, int promoted);
// Errors: TYPE, if the operands, which are promoted to `dtype`, are not in the domain.
int check_domain(const Operation &operation, int dtype, const pvg_array *const *operands, int n);

} // namespace pvg
