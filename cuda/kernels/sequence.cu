// pvg_sequence and pvg_eye: arrays whose elements follow from their places. A thread has 16 bytes.
#include "arrays/call.cuh"
#include "arrays/operation.cuh"
#include "arrays/scalar.cuh"
#include "arrays/vector.cuh"

namespace pvg {

namespace {

constexpr int sequence_threads = 256;

struct Sequence {
    void *to;
    int64_t size, stride; // elements from one to the next
    uint64_t start, step; // of integers, modulo 2^64
    double first, width;  // of floats
    double last;
    bool has_last, aligned;
};

// A float is rounded three times, as NumPy does it: the product, the sum, the element.
template <class T> __device__ __forceinline__ T element_at(const Sequence &job, int64_t i) {
    if constexpr (is_float<T>) {
        if (job.has_last && i == job.size - 1) return static_cast<T>(job.last);
        const double place = static_cast<double>(i);
#ifdef __CUDA_ARCH__ // no fused multiplication and addition
        return static_cast<T>(__dadd_rn(job.first, __dmul_rn(place, job.width)));
#else
        return static_cast<T>(job.first + place * job.width);
#endif
    } else {
        return static_cast<T>(job.start + static_cast<uint64_t>(i) * job.step);
    }
}

template <class T>
__global__ void __launch_bounds__(sequence_threads) sequence_kernel(const Sequence job) {
    constexpr int count = 16 / sizeof(T);
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * sequence_threads + threadIdx.x;
    const int64_t first = thread * count;
    if (first >= job.size) return;
    T *to = static_cast<T *>(job.to);
    Vector<T, count> vector;
#pragma unroll
    for (int e = 0; e < count; e++) vector.element[e] = element_at<T>(job, first + e);
    if (job.aligned && first + count <= job.size) {
        *reinterpret_cast<Vector<T, count> *>(to + first) = vector;
        return;
    }
#pragma unroll
    for (int e = 0; e < count; e++)
        if (first + e < job.size) to[(first + e) * job.stride] = vector.element[e];
}

struct Eye {
    void *to;
    int64_t size, rows, columns; // elements in all; of a matrix
    int64_t diagonal;            // column - row of it
    Scalar one;
    bool aligned;
};

template <class T> __global__ void __launch_bounds__(sequence_threads) eye_kernel(const Eye job) {
    constexpr int count = 16 / sizeof(T);
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * sequence_threads + threadIdx.x;
    const int64_t first = thread * count;
    if (first >= job.size) return;
    T *to = static_cast<T *>(job.to) + first;
    int64_t row, column;
    if (job.size <= UINT32_MAX) { // divisions of 64 bits would take longer than the memory
        const uint32_t columns = static_cast<uint32_t>(job.columns);
        const uint32_t rows = static_cast<uint32_t>(first) / columns;
        column = static_cast<uint32_t>(first) - rows * columns;
        row = rows < job.rows ? rows : rows % static_cast<uint32_t>(job.rows);
    } else {
        row = first / job.columns, column = first - row * job.columns;
        row %= job.rows;
    }
    Vector<T, count> vector = {};
    const int64_t until = row + job.diagonal - column; // elements until the one on the diagonal
    if (column + count <= job.columns && (until < 0 || until >= count)) {
        if (job.aligned && first + count <= job.size) { // nearly all
            *reinterpret_cast<Vector<T, count> *>(to) = vector;
            return;
        }
    }
#pragma unroll
    for (int e = 0; e < count; e++) {
        if (column - row == job.diagonal) vector.element[e] = job.one.as<T>();
        if (++column < job.columns) continue;
        column = 0;
        if (++row == job.rows) row = 0;
    }
    if (job.aligned && first + count <= job.size) {
        *reinterpret_cast<Vector<T, count> *>(to) = vector;
        return;
    }
#pragma unroll
    for (int e = 0; e < count; e++)
        if (first + e < job.size) to[e] = vector.element[e];
}

bool is_aligned(const pvg_array *a) { return reinterpret_cast<uintptr_t>(a->data) % 16 == 0; }

int check_writable(const pvg_array *a) {
    PVG_REQUIRE(!a->readonly, PVG_ERROR_VALUE, "the array of shape %s and dtype %s is read-only",
                shape_text(a), dtype_name(a->dtype));
    return PVG_OK;
}

int run_sequence(Call &call, pvg_array *a, int kind, const void *start, const void *step,
                 const void *last) {
    const pvg_array *operand = a;
    int device = -1;
    PVG_PASS(check_operands(&operand, 1, &device));
    PVG_PASS(check_writable(a));
    PVG_REQUIRE(a->ndim == 1, PVG_ERROR_VALUE, "takes arrays of one dimension, got shape %s",
                shape_text(a));
    PVG_REQUIRE(kind == PVG_SCALAR_INT || kind == PVG_SCALAR_FLOAT, PVG_ERROR_VALUE,
                "takes scalars of kind int or float, got kind %d", kind);
    PVG_REQUIRE(start && step, PVG_ERROR_VALUE, "start or step is a null pointer");
    PVG_PASS(check_kinds(a->dtype, kind == PVG_SCALAR_INT ? integers : floats));
    Sequence job = {};
    job.to = a->data, job.size = a->size, job.stride = a->strides[0];
    job.aligned = a->strides[0] == 1 && is_aligned(a);
    if (kind == PVG_SCALAR_INT) {
        job.start = static_cast<uint64_t>(*static_cast<const int64_t *>(start));
        job.step = static_cast<uint64_t>(*static_cast<const int64_t *>(step));
    } else {
        job.first = *static_cast<const double *>(start);
        job.width = *static_cast<const double *>(step);
        job.has_last = last != nullptr;
        if (last) job.last = *static_cast<const double *>(last);
    }
    PVG_PASS(call.begin(device));
    PVG_PASS(call.writes(a));
    const auto launch = [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(sequence_kernel<T>, blocks_for(a->size, sequence_threads * (16 / sizeof(T))),
                   sequence_threads, 0, call.stream, job);
        return PVG_OK;
    };
    if (kind == PVG_SCALAR_FLOAT) return dispatch<floats>(a->dtype, launch);
    switch (dtype_size(a->dtype)) {
    case 1: return launch(Tag<uint8_t>());
    case 2: return launch(Tag<uint16_t>());
    case 4: return launch(Tag<uint32_t>());
    default: return launch(Tag<uint64_t>());
    }
}

int launch_eye(Call &call, int64_t diagonal, pvg_array *a) {
    const uint8_t one = 1;
    Eye job = {};
    job.to = a->data, job.size = a->size, job.diagonal = diagonal, job.aligned = is_aligned(a);
    job.rows = a->shape[a->ndim - 2], job.columns = a->shape[a->ndim - 1];
    PVG_PASS(make_scalar(a->dtype, PVG_SCALAR_BOOL, &one, &job.one));
    PVG_PASS(call.writes(a));
    return dispatch_size(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(eye_kernel<T>, blocks_for(a->size, sequence_threads * (16 / sizeof(T))),
                   sequence_threads, 0, call.stream, job);
        return PVG_OK;
    });
}

int run_eye(Call &call, pvg_array *a, int64_t diagonal) {
    const pvg_array *operand = a;
    int device = -1;
    PVG_PASS(check_operands(&operand, 1, &device));
    PVG_PASS(check_writable(a));
    PVG_REQUIRE(a->ndim >= 2, PVG_ERROR_VALUE, "takes matrices, got an array of shape %s",
                shape_text(a));
    PVG_PASS(call.begin(device));
    if (a->size == 0) return PVG_OK;
    if (is_contiguous(a)) return launch_eye(call, diagonal, a);
    Temporary whole;
    PVG_PASS(new_array(device, a->dtype, a->ndim, a->shape, &whole.array));
    PVG_PASS(launch_eye(call, diagonal, whole.array));
    return copy_array(call, whole.array, a);
}

} // namespace

Operations sequence_operations() {
    static constexpr Operation rows[] = {
        {PVG_SEQUENCE, "sequence", Family::other, reals, Gives::none},
        {PVG_EYE, "eye", Family::other, all_kinds, Gives::none},
    };
    return rows;
}

} // namespace pvg

PVG_API int pvg_sequence(pvg_array *a, int kind, const void *start, const void *step,
                         const void *last) {
    pvg::Call call("sequence");
    return pvg::run_sequence(call, a, kind, start, step, last);
}

PVG_API int pvg_eye(pvg_array *a, int64_t diagonal) {
    pvg::Call call("eye");
    return pvg::run_eye(call, a, diagonal);
}
