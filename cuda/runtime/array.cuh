// Array handles: a view (dtype, shape, strides, offset) of a reference-counted storage; and the
// layout arithmetic that operations share (broadcasting, collapsing dimensions, contiguity,
// overlap).
#pragma once
#include "dtype.cuh"
#include <atomic>

namespace pvg {

struct Stream;

// Memory on a device, and who used it last. Stream ids are never reused; 0 means nobody.
struct Storage {
    std::atomic<int64_t> references;
    void *data;
    size_t bytes;
    int device;
    void *block;         // the pool's record; NULL for wrapped memory
    pvg_deleter deleter; // of wrapped memory, or NULL
    void *context;
    std::atomic<int64_t> version;
    std::atomic_flag lock; // guards readers
    std::atomic<uint64_t> writer;
    uint64_t readers[4]; // streams that read since the last write
};

} // namespace pvg

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

// ---- Layout -------------------------------------------------------------------------------------

// Number of elements of a shape. Errors: VALUE (negative, more than PVG_MAX_NDIM dimensions,
// overflow of size * item).
int checked_size(int ndim, const int64_t *shape, int64_t item, int64_t *size);
bool is_contiguous(const pvg_array *a); // C order without gaps
void contiguous_strides(int ndim, const int64_t *shape, int64_t *strides);
bool same_shape(const pvg_array *a, int ndim, const int64_t *shape);
// The shape that n arrays broadcast to. Errors: VALUE, naming the shapes.
int broadcast_shapes(const pvg_array *const *arrays, int n, int *ndim, int64_t *shape);
// The strides (elements) with which an array is read in a broadcast shape: 0 along repeated axes.
void broadcast_strides(const pvg_array *a, int ndim, const int64_t *shape, int64_t *strides);
// "(2, 3)" for messages; the text lives in a small ring of this thread's buffers.
const char *shape_text(int ndim, const int64_t *shape);
inline const char *shape_text(const pvg_array *a) { return shape_text(a->ndim, a->shape); }
// A negative axis counts from the end. Errors: AXIS.
int normalize_axis(int axis, int ndim, int *result);
// True if the two views may share a byte.
bool may_overlap(const pvg_array *a, const pvg_array *b);
// True if writing b element by element in any order reads nothing that was already overwritten: the
// views are disjoint, or they are the same elements in the same order.
bool safe_in_place(const pvg_array *input, int ndim, const int64_t *shape, const pvg_array *out);

// N operands walked together: as few dimensions as possible, outermost first. Passed to kernels by
// value.
template <int N> struct Walk {
    int ndim;
    int64_t shape[PVG_MAX_NDIM];
    int64_t strides[N][PVG_MAX_NDIM]; // elements
};
// Drops dimensions of length 1, orders the others by the strides of operand 0 (descending
// magnitude), and merges neighbours that all operands step through evenly. A walk over one element
// has ndim 0; none has length 0.
void collapse(int operands, int *ndim, int64_t *shape, int64_t (*strides)[PVG_MAX_NDIM]);
template <int N> void collapse(Walk<N> *walk) {
    collapse(N, &walk->ndim, walk->shape, walk->strides);
}

} // namespace pvg
