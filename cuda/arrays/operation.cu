// What follows from an operation's row; see operation.cuh.
#include "arrays/layout.cuh"
#include "arrays/operation.cuh"

namespace pvg {

Dtypes dtypes_of(const Operation &operation, int promoted) {
    switch (operation.gives) {
    case Gives::same: break;
    case Gives::floating: return {float_dtype(promoted), float_dtype(promoted)};
    case Gives::boolean: return {promoted, PVG_BOOL};
    case Gives::real: return {promoted, real_dtype(promoted)};
    case Gives::wide: return {promoted, wide_dtype(promoted)};
    case Gives::index: return {promoted, PVG_INT64};
    }
    return {promoted, promoted};
}

int check_domain(const Operation &operation, int dtype, const pvg_array *const *operands, int n) {
    if (is_among(dtype, operation.domain)) return PVG_OK;
    const char *plural = n > 1 ? "s" : "";
    return fail(PVG_ERROR_TYPE, "does not take %s, got shape%s %s of dtype%s %s", dtype_name(dtype),
                plural, shape_text(operands, n), plural, dtype_text(operands, n));
}

} // namespace pvg
