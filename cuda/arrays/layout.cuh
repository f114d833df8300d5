// The arithmetic of shapes and strides that operations share: sizes, broadcasting, collapsing
// dimensions, contiguity, overlap.
#pragma once
#include "arrays/array.cuh"

namespace pvg {

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
// "(2, 3), (4,) and ()" and "int32, bool and float32" of n arrays; each until its next call.
const char *shape_text(const pvg_array *const *arrays, int n);
const char *dtype_text(const pvg_array *const *arrays, int n);
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
    int64_t shape[PVG_MAX_NDIM];
    int64_t strides[N][PVG_MAX_NDIM]; // elements
    int ndim;
};
// Drops dimensions of length 1, orders the others by the strides of operand 0 (descending
// magnitude), and merges neighbours that all operands step through evenly. A walk over one element
// has ndim 0; none has length 0.
void collapse(int operands, int *ndim, int64_t *shape, int64_t (*strides)[PVG_MAX_NDIM]);
template <int N> void collapse(Walk<N> *walk) {
    collapse(N, &walk->ndim, walk->shape, walk->strides);
}

} // namespace pvg
