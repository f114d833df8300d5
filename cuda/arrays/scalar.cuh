// A weak scalar in the dtype it is used with, ready to be a kernel parameter.
#pragma once
#include "dtypes/dtype.cuh"

namespace pvg {

struct Scalar {
    alignas(largest_item) unsigned char bytes[largest_item];
    template <class T> __host__ __device__ T as() const {
        return *reinterpret_cast<const T *>(bytes);
    }
};
// Convert *value (see pvg_scalar_kind) to `dtype`. Errors: VALUE, OVERFLOW, TYPE (a
// complex number for reals).
int make_scalar(int dtype, int kind, const void *value, Scalar *out);

} // namespace pvg
