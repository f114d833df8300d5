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
    Walk<3> walk; // over the rows, in the order of c: c, a, b
    int64_t rows;
    int length, lanes; // lanes of a row: a power of two, 32 at most
    bool aligned;      // every pack of a and of b may be loaded at once
};

template <class T> __global__ void __launch_bounds__(threads) dots_kernel(const Dots job) {
    using A = ComputeType<T>;
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    const int64_t row = thread / job.lanes;
    const int lane = static_cast<int>(thread % job.lanes);
    const int length = row < job.rows ? job.length : 0;
    int64_t rest = length ? row : 0, in_a = 0, in_b = 0;
    for (int d = job.walk.ndim - 1; d >= 0; d--) {
        const int64_t outer = d ? rest / job.walk.shape[d] : 0;
        const int64_t at = rest - outer * job.walk.shape[d];
        in_a += at * job.walk.strides[1][d], in_b += at * job.walk.strides[2][d];
        rest = outer;
    }
    const T *a = static_cast<const T *>(job.a) + in_a, *b = static_cast<const T *>(job.b) + in_b;
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

// The operand with rows that are contiguous: itself, or a copy.
int with_rows(Call &call, const pvg_array *x, Temporary *copy, const pvg_array **result) {
    *result = x;
    const int last = x->ndim - 1;
    if (x->shape[last] == 1 || x->strides[last] == 1) return PVG_OK;
    return as_contiguous(call, x, copy, result);
}

// Strides of an operand's rows along the axes of c.
void row_strides(const pvg_array *x, const pvg_array *c, int64_t *strides) {
    for (int i = 0; i < c->ndim; i++) {
        const int axis = i - (c->ndim - (x->ndim - 1));
        strides[i] = axis < 0 || x->shape[axis] == 1 ? 0 : x->strides[axis];
    }
}

} // namespace

int launch_dots(Call &call, const pvg_array *a, const pvg_array *b, pvg_array *c, bool *done) {
    Temporary of_a, of_b;
    const int64_t length = a->shape[a->ndim - 1];
    *done = length > 0 && length <= longest_dot;
    if (!*done) return PVG_OK;
    PVG_PASS(with_rows(call, a, &of_a, &a));
    PVG_PASS(with_rows(call, b, &of_b, &b));
    Dots job = {a->data, b->data, c->data, {}, c->size, static_cast<int>(length), 1, false};
    while (job.lanes < 32 && job.lanes * pack < job.length) job.lanes *= 2;
    job.walk.ndim = c->ndim;
    for (int i = 0; i < c->ndim; i++)
        job.walk.shape[i] = c->shape[i], job.walk.strides[0][i] = c->strides[i];
    row_strides(a, c, job.walk.strides[1]);
    row_strides(b, c, job.walk.strides[2]);
    collapse(&job.walk);
    int64_t bits = 0;
    for (int i = 0; i < job.walk.ndim; i++) bits |= job.walk.strides[1][i] | job.walk.strides[2][i];
    PVG_PASS(call.reads(a));
    PVG_PASS(call.reads(b));
    return dispatch<floats>(c->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const uintptr_t starts =
            reinterpret_cast<uintptr_t>(a->data) | reinterpret_cast<uintptr_t>(b->data);
        job.aligned = starts % alignof(Vector<T, pack>) == 0 && bits % pack == 0;
        PVG_LAUNCH(dots_kernel<T>, blocks_for(job.rows, threads / job.lanes), threads, 0,
                   call.stream, job);
        return PVG_OK;
    });
}

} // namespace pvg::matmul
