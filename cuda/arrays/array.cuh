// Array handles: a view (dtype, shape, strides, offset) of a reference-counted storage.
#pragma once
#include "dtypes/dtype.cuh"
#include "runtime/storage.cuh"

struct pvg_array {
    uint32_t magic;
    int32_t dtype;
    int32_t ndim;
    bool readonly;
    pvg::Storage *storage;
    unsigned char *data; // of the element at index 0, ..., 0
    int64_t size;
    int64_t shape[PVG_MAX_NDIM];
    int64_t strides[PVG_MAX_NDIM]; // elements
};

namespace pvg {

template <class T> T *data(const pvg_array *a) { return reinterpret_cast<T *>(a->data); }
inline int device_of(const pvg_array *a) { return a->storage->device; }

bool is_array(const pvg_array *a); // a live handle of ours
// Checks that a handle is alive; `what` names it in the message ("a", "out").
int check_array(const pvg_array *a, const char *what);

// New handles. On failure *result is untouched.
int new_array(int device, int dtype, int ndim, const int64_t *shape, pvg_array **result);
int new_view(const pvg_array *base, int ndim, const int64_t *shape, const int64_t *strides,
             int64_t offset, bool readonly, pvg_array **result);
void release(pvg_array *a); // a valid handle, or NULL

// Releases what it holds when it goes out of scope: a temporary of an operation.
struct Temporary {
    pvg_array *array = nullptr;
    Temporary() = default;
    Temporary(const Temporary &) = delete;
    Temporary &operator=(const Temporary &) = delete;
    ~Temporary() { release(array); }
    pvg_array *take() {
        pvg_array *a = array;
        array = nullptr;
        return a;
    }
};

} // namespace pvg
