// What is said of a dtype that a function does not take; see dispatch.cuh.
#include "arrays/dispatch.cuh"

namespace pvg {

int refuse_dtype(int dtype, Kinds kinds) {
    if (!dtype_is_valid(dtype)) {
        const bool is_reserved = dtype_name(dtype)[0] != '?';
        if (is_reserved)
            return fail(PVG_ERROR_TYPE, "arrays cannot have dtype %s yet", dtype_name(dtype));
        return fail(PVG_ERROR_TYPE, "unknown dtype code %d", dtype);
    }
    return fail(PVG_ERROR_TYPE, "takes %s dtype, got %s",
                kinds == floats      ? "a float"
                : kinds == integers  ? "an integer"
                : kinds == complexes ? "a complex"
                                     : "another",
                dtype_name(dtype));
}

} // namespace pvg
