// Which elementwise operations there are: names, operands, dtypes. The arithmetic is in
// elementwise.cuh, the exported functions are in unary.cu, binary.cu and where.cu.
#include "kernels/elementwise.cuh"

namespace pvg {

namespace {

constexpr Operation operations[] = {
    // code, name, operands, takes bool, gives float, gives bool
    {PVG_NEGATIVE, "negative", 1, false, false, false},
    {PVG_ABS, "abs", 1, true, false, false},
    {PVG_EXP, "exp", 1, true, true, false},
    {PVG_LOG, "log", 1, true, true, false},
    {PVG_SQRT, "sqrt", 1, true, true, false},
    {PVG_TANH, "tanh", 1, true, true, false},
    {PVG_SIGMOID, "sigmoid", 1, true, true, false},
    {PVG_RELU, "relu", 1, false, false, false},
    {PVG_GELU, "gelu", 1, true, true, false},
    {PVG_SILU, "silu", 1, true, true, false},
    {PVG_ADD, "add", 2, true, false, false},
    {PVG_SUBTRACT, "subtract", 2, false, false, false},
    {PVG_MULTIPLY, "multiply", 2, true, false, false},
    {PVG_DIVIDE, "divide", 2, true, true, false},
    {PVG_MAXIMUM, "maximum", 2, true, false, false},
    {PVG_MINIMUM, "minimum", 2, true, false, false},
    {PVG_EQUAL, "equal", 2, true, false, true},
    {PVG_NOT_EQUAL, "not_equal", 2, true, false, true},
    {PVG_LESS, "less", 2, true, false, true},
    {PVG_LESS_EQUAL, "less_equal", 2, true, false, true},
    {PVG_GREATER, "greater", 2, true, false, true},
    {PVG_GREATER_EQUAL, "greater_equal", 2, true, false, true},
    {PVG_WHERE, "where", 3, true, false, false},
};

} // namespace

const Operation *find_elementwise(int code, int operands) {
    for (const Operation &row : operations)
        if (row.code == code && row.operands == operands) return &row;
    return nullptr;
}

bool elementwise_supports(int operation, int dtype) {
    for (const Operation &row : operations)
        if (row.code == operation)
            return dtype_is_valid(dtype) && (row.takes_bool || dtype != PVG_BOOL);
    return false;
}

} // namespace pvg
