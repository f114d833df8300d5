// pvg_triangle: the elements of matrices on one side of a diagonal, and zeros on the other.
// Elements are only moved, so one kernel per size of element. A thread has 16 bytes of the result;
// what it leaves out it does not read.
#include "arrays/call.cuh"
#include "arrays/operation.cuh"

namespace pvg {

namespace {

constexpr int triangle_threads = 256;

struct Triangle {
    const void *from;
    void *to;
    int64_t size, rows, columns; // elements in all; of a matrix
    int64_t diagonal;            // column - row of it
    bool upper, aligned;
};

// Elements a thread: 16 bytes.
template <class T> constexpr int triangle_vector = 16 / sizeof(T);

template <class T>
__global__ void __launch_bounds__(triangle_threads) triangle_kernel(const Triangle job) {
    constexpr int count = triangle_vector<T>;
    struct alignas(16) Vector { T element[count]; };
    const int64_t thread = int64_t(blockIdx.x) * triangle_threads + threadIdx.x;
    const int64_t first = thread * count;
    if (first >= job.size) return;
    const T *from = static_cast<const T *>(job.from) + first;
    T *to = static_cast<T *>(job.to) + first;
    int64_t row = first / job.columns % job.rows, column = first % job.columns;
    bool kept[count], any = false;
#pragma unroll
    for (int e = 0; e < count; e++) {
        const int64_t place = column - row;
        kept[e] =
            first + e < job.size && (job.upper ? place >= job.diagonal : place <= job.diagonal);
        any = any || kept[e];
        if (++column == job.columns) {
            column = 0;
            if (++row == job.rows) row = 0;
        }
    }
    Vector vector = {};
    if (job.aligned && first + count <= job.size) {
        if (any) vector = *reinterpret_cast<const Vector *>(from);
#pragma unroll
        for (int e = 0; e < count; e++)
            if (!kept[e]) vector.element[e] = T();
        *reinterpret_cast<Vector *>(to) = vector;
        return;
    }
#pragma unroll
    for (int e = 0; e < count; e++)
        if (first + e < job.size) to[e] = kept[e] ? from[e] : T();
}

int launch_triangle(Call &call, const pvg_array *a, bool upper, int64_t diagonal, pvg_array *out) {
    const uint64_t places =
        reinterpret_cast<uintptr_t>(a->data) | reinterpret_cast<uintptr_t>(out->data);
    const Triangle job = {
        a->data,  out->data, out->size,       out->shape[out->ndim - 2], out->shape[out->ndim - 1],
        diagonal, upper,     places % 16 == 0};
    PVG_PASS(call.reads(a));
    return dispatch_size(out->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(triangle_kernel<T>, blocks_for(job.size, triangle_threads * triangle_vector<T>),
                   triangle_threads, 0, call.stream, job);
        return PVG_OK;
    });
}

int run_triangle(Call &call, const pvg_array *a, int upper, int64_t diagonal, pvg_array *out,
                 Output *result) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(upper == 0 || upper == 1, PVG_ERROR_VALUE, "upper is 0 or 1, got %d", upper);
    PVG_REQUIRE(a->ndim >= 2, PVG_ERROR_VALUE, "takes matrices, got an array of shape %s",
                shape_text(a));
    PVG_PASS(call.begin(device));
    Temporary straight, whole;
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    PVG_PASS(result->open(call, a->dtype, a->ndim, a->shape, out, &a, 1));
    pvg_array *c = result->array;
    if (c->size == 0) return PVG_OK;
    if (is_contiguous(c)) return launch_triangle(call, a, upper != 0, diagonal, c);
    PVG_PASS(new_array(device, a->dtype, a->ndim, a->shape, &whole.array));
    PVG_PASS(launch_triangle(call, a, upper != 0, diagonal, whole.array));
    return copy_array(call, whole.array, c);
}

} // namespace

Operations triangle_operations() {
    static constexpr Operation rows[] = {
        {PVG_TRIANGLE, "triangle", Family::other, all_kinds, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_triangle(const pvg_array *a, int upper, int64_t diagonal, pvg_array *out) {
    pvg::Call call("triangle");
    pvg::Output result;
    int status = pvg::run_triangle(call, a, upper, diagonal, out, &result);
    return result.close(call, status);
}
