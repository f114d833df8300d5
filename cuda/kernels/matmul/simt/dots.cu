// Sums of products of rows that are short: pvg_vecdot. A few lanes of a warp have a row of each
// operand, as many as read it at one go, and add up their sums by shuffles. A lane's terms and the
// order of the shuffles depend on the length and the dtype alone.
#include "arrays/vector.cuh"
#include "kernels/matmul/dots.cuh"

namespace pvg::matmul {

namespace {

constexpr int threads = 256, pack = 4; // neighbouring elements of a lane

struct Dots {
    const void *a, *b;
    void *c;
    int64_t rows, a_stride, b_stride; // elements from row to row; those of c lie side by side
    int length, lanes;                // lanes of a row: a power of two, 32 at most
    bool aligned;                     // every pack of a and of b may be loaded at once
};

template <class T>
__global__ void __launch_bounds__(threads) dots_kernel(const Dots job) {
    using A = ComputeType<T>;
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    const int64_t row = thread / job.lanes;
    const int lane = static_cast<int>(thread % job.lanes);
    const int length = row < job.rows ? job.length : 0;
    const T *a = static_cast<const T *>(job.a) + (length ? row * job.a_stride : 0);
    const T *b = static_cast<const T *>(job.b) + (length ? row * job.b_stride : 0);
    A sum = 0;
    for (int at = lane * pack; at < length; at += job.lanes * pack) {
        Vector<T, pack> x = {}, y = {};
        if (job.aligned && at + pack <= length) {
            x = *reinterpret_cast<const Vector<T, pack> *>(a + at);
            y = *reinterpret_cast<const Vector<T, pack> *>(b + at);
        } else {
#pragma unroll
            for (int e = 0; e < pack; e++)
                if (at + e < length) x.element[e] = a[at + e], y.element[e] = b[at + e];
        }
#pragma unroll
        for (int e = 0; e < pack; e++)
            sum = fma(static_cast<A>(x.element[e]), static_cast<A>(y.element[e]), sum);
    }
    for (int mask = job.lanes / 2; mask > 0; mask /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (length && lane == 0) static_cast<T *>(job.c)[row] = static_cast<T>(sum);
}

// The array's rows, along the last axis, as rows of a broadcast shape: true if they are contiguous
// and follow each other by one stride.
bool find_rows(const pvg_array *x, int ndim, const int64_t *shape, int64_t *stride) {
    if (x->shape[x->ndim - 1] > 1 && x->strides[x->ndim - 1] != 1) return false;
    bool found = false;
    int64_t expected = 0;
    *stride = 0;
    for (int i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 1) continue;
        const int axis = i - (ndim - (x->ndim - 1));
        const int64_t step = axis < 0 || x->shape[axis] == 1 ? 0 : x->strides[axis];
        if (found && step != expected) return false;
        if (!found) *stride = step;
        found = true;
        expected = step * shape[i];
    }
    return true;
}

} // namespace

int launch_dots(Call &call, const pvg_array *a, const pvg_array *b, pvg_array *c, bool *done) {
    Dots job = {a->data, b->data, c->data, c->size, 0, 0, 0, 1, false};
    const int64_t length = a->shape[a->ndim - 1];
    *done = length > 0 && length <= longest_dot && find_rows(a, c->ndim, c->shape, &job.a_stride) &&
            find_rows(b, c->ndim, c->shape, &job.b_stride);
    if (!*done) return PVG_OK;
    job.length = static_cast<int>(length);
    while (job.lanes < 32 && job.lanes * pack < job.length) job.lanes *= 2;
    PVG_PASS(call.reads(a));
    PVG_PASS(call.reads(b));
    return dispatch<floats>(c->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const uintptr_t bits = reinterpret_cast<uintptr_t>(a->data) |
                               reinterpret_cast<uintptr_t>(b->data);
        job.aligned = bits % alignof(Vector<T, pack>) == 0 && job.a_stride % pack == 0 &&
                      job.b_stride % pack == 0;
        PVG_LAUNCH(dots_kernel<T>, blocks_for(job.rows, threads / job.lanes), threads, 0,
                   call.stream, job);
        return PVG_OK;
    });
}

} // namespace pvg::matmul
