// The rows of the elementwise operations; see elementwise.cuh and functions.cuh. The exported
// functions are in unary.cu, binary.cu and where.cu.
#include "kernels/functions.cuh"

namespace pvg {

Operations unary_operations() {
#define PVG_ROW(NAME, name, domain, result, value) \
    {PVG_##NAME, name, Family::unary, domain, Gives::result},
    static constexpr Operation rows[] = {PVG_UNARY_OPERATIONS(PVG_ROW) PVG_UNARY_FUNCTIONS(PVG_ROW)
                                             PVG_PREDICATES(PVG_ROW)};
#undef PVG_ROW
    return rows;
}

Operations binary_operations() {
#define PVG_ROW(NAME, name, domain, result, value) \
    {PVG_##NAME, name, Family::binary, domain, Gives::result},
#define PVG_COMPARISON(NAME, name, domain, MIRRORED, value) \
    {PVG_##NAME, name, Family::binary, domain, Gives::boolean, PVG_##MIRRORED},
    static constexpr Operation rows[] = {PVG_BINARY_OPERATIONS(PVG_ROW) PVG_BINARY_FUNCTIONS(
        PVG_ROW) PVG_COMPARISONS(PVG_COMPARISON)};
#undef PVG_ROW
#undef PVG_COMPARISON
    return rows;
}

} // namespace pvg
