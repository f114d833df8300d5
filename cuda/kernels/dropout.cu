// pvg_dropout: elements set to 0 at random, the others made larger, in one pass. The gradient is
// the same of the gradient: the random numbers are made again, and no mask is kept.
#include "arrays/call.cuh"
#include "arrays/operation.cuh"
#include "arrays/vector.cuh"
#include "kernels/philox.cuh"

namespace pvg {

namespace {

constexpr int dropout_threads = 256;

struct DropoutJob {
    const void *from;
    void *to;
    int64_t size;
    uint64_t key, stream, counter;
    const uint64_t *renewed; // NULL, or what is added to these
    float least;             // of the numbers whose elements stay
    double scale;
    bool aligned;
};

// Elements of a thread: those of whole blocks of four words, and 16 bytes or more.
template <class T> constexpr int dropout_count = sizeof(T) == 2 ? 8 : 4;

template <class T>
__global__ void __launch_bounds__(dropout_threads) dropout_kernel(const DropoutJob job) {
    using C = ComputeType<T>;
    constexpr int count = dropout_count<T>, blocks = count / 4;
    const int64_t thread = int64_t(blockIdx.x) * dropout_threads + threadIdx.x;
    const int64_t first = thread * count;
    if (first >= job.size) return;
    const T *from = static_cast<const T *>(job.from) + first;
    T *to = static_cast<T *>(job.to) + first;
    const bool whole = job.aligned && first + count <= job.size;
    Vector<T, count> vector = {};
    if (whole) vector = *reinterpret_cast<const Vector<T, count> *>(from);
#pragma unroll
    for (int e = 0; e < count; e++)
        if (!whole && first + e < job.size) vector.element[e] = from[e];
    const C scale = static_cast<C>(job.scale);
    uint64_t key = job.key, stream = job.stream, counter = job.counter;
    if (job.renewed) key += job.renewed[0], stream += job.renewed[1], counter += job.renewed[2];
#pragma unroll
    for (int b = 0; b < blocks; b++) {
        const uint64_t block = counter + uint64_t(thread) * blocks + uint64_t(b);
        const Words words = philox(key, stream, block);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float number = float(words.word[e] >> 8) * 0x1p-24f;
            T &element = vector.element[4 * b + e];
            element = number < job.least ? T(C(0)) : T(C(element) * scale);
        }
    }
    if (whole) {
        store_at_once(to, vector);
        return;
    }
#pragma unroll
    for (int e = 0; e < count; e++)
        if (first + e < job.size) to[e] = vector.element[e];
}

int run_dropout(Call &call, const pvg_array *a, double p, DropoutJob job, const pvg_array *renewed,
                Output *result) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(check_kinds(a->dtype, floats));
    PVG_REQUIRE(p >= 0 && p <= 1, PVG_ERROR_VALUE, "p is from 0 to 1, not %g", p);
    PVG_PASS(check_numbers(renewed, PVG_UINT64, 3, device));
    PVG_PASS(call.begin(device));
    Temporary straight;
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    PVG_PASS(result->open(call, a->dtype, a->ndim, a->shape, nullptr, &a, 1));
    PVG_PASS(call.reads(a));
    if (renewed) PVG_PASS(call.reads(renewed));
    job.renewed = renewed ? data<uint64_t>(renewed) : nullptr;
    job.from = a->data, job.to = result->array->data, job.size = a->size;
    job.least = static_cast<float>(p), job.scale = p < 1 ? 1 / (1 - p) : 0;
    job.aligned =
        (reinterpret_cast<uintptr_t>(job.from) | reinterpret_cast<uintptr_t>(job.to)) % 16 == 0;
    return dispatch<floats>(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH(dropout_kernel<T>, blocks_for(job.size, dropout_threads * dropout_count<T>),
                   dropout_threads, 0, call.stream, job);
        return PVG_OK;
    });
}

} // namespace

Operations dropout_operations() {
    static constexpr Operation rows[] = {
        {PVG_DROPOUT, "dropout", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_dropout(const pvg_array *a, double p, uint64_t key, uint64_t stream,
                               uint64_t counter, const pvg_array *renewed) {
    pvg::Call call("dropout");
    pvg::Output result;
    pvg::DropoutJob job = {};
    job.key = key, job.stream = stream, job.counter = counter;
    int status = pvg::run_dropout(call, a, p, job, renewed, &result);
    return result.close(call, status);
}
