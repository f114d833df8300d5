// pvg_attention: softmax(query @ keys.T * scale + mask) @ values, by tiles.
//
// A block goes through the keys for a tile of queries. It keeps the largest score of each row so
// far, the sum of exponentials beside it and the weighted sum of values; where a tile has a larger
// score, what was summed is scaled down first. Tiles that lie behind all queries of a causal one
// are not looked at. The order of sums is that of the keys: the same operands give the same bits.
#include "arrays/operation.cuh"
#include "kernels/attention_tensor.cuh"

namespace pvg {
namespace attention {
namespace {

// Over the 16 threads that have the same rows; all have the same bits.
template <class A> __device__ __forceinline__ A largest_of_row(A value) {
#pragma unroll
    for (int mask = across / 2; mask > 0; mask /= 2) {
        const A other = __shfl_xor_sync(0xffffffffu, value, mask);
        value = other > value || other != other ? other : value; // NaN stays
    }
    return value;
}
template <class A> __device__ __forceinline__ A sum_of_row(A value) {
#pragma unroll
    for (int mask = across / 2; mask > 0; mask /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, mask);
    return value;
}

// Scores become exponentials beside the largest so far; returns what sums before have to be scaled
// with.
template <class T>
__device__ __forceinline__ ComputeType<T> rescale(ComputeType<T> (&scores)[elements<T>],
                                                  ComputeType<T> &most, ComputeType<T> &total) {
    using A = ComputeType<T>;
    A found = most, sum = 0;
#pragma unroll
    for (int j = 0; j < elements<T>; j++)
        found = scores[j] > found || scores[j] != scores[j] ? scores[j] : found;
    found = largest_of_row(found);
    const A base = found == -static_cast<A>(INFINITY) ? A(0) : found; // no key so far
    const A factor = exp(most - base);
#pragma unroll
    for (int j = 0; j < elements<T>; j++) {
        scores[j] = exp(scores[j] - base);
        sum += scores[j];
    }
    total = total * factor + sum_of_row(sum);
    most = found;
    return factor;
}

template <class T, int CHUNKS>
__global__ void __launch_bounds__(threads, blocks_at_once<CHUNKS>) attention_kernel(const Job job) {
    if (is_unused<T, CHUNKS>) return;
    using A = ComputeType<T>;
    constexpr int n = elements<T>;
    __shared__ __align__(16) Shared<T> shared;
    const int64_t number = blockIdx.x / job.tiles;
    const int64_t first = (job.tiles - 1 - blockIdx.x % job.tiles) * edge<T>; // the longest first
    const Item<T> item(job, number);
    const int y = static_cast<int>(threadIdx.x) / across * n;
    const int x = static_cast<int>(threadIdx.x) % across * n;
    Elements<T> sums[CHUNKS] = {};
    A most[n], total[n];
#pragma unroll
    for (int i = 0; i < n; i++) most[i] = -static_cast<A>(INFINITY), total[i] = 0;
    for (int64_t key = 0; key < job.keys.length; key += edge<T>) {
        if (job.causal && key >= first + edge<T>) break;
        Elements<T> scores;
        multiply_rows<T>(scores, item.query, first, item.keys, key, shared);
        SquarePart<T> values;
        values.fetch(item.values, key, 0);
        const bool plain = is_plain<T>(job, first, key);
#pragma unroll
        for (int i = 0; i < n; i++) {
#pragma unroll
            for (int j = 0; j < n; j++)
                score(job, item.mask, first + y + i, key + x + j, plain, scores[i][j]);
            const A factor = rescale<T>(scores[i], most[i], total[i]);
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
#pragma unroll
                for (int j = 0; j < n; j++) sums[c][i][j] *= factor;
        }
        put_weights<T>(scores, shared);
        add_weighted<T, CHUNKS>(sums, item.values, key, values, shared);
    }
    A factors[n];
#pragma unroll
    for (int i = 0; i < n; i++) factors[i] = 1 / total[i]; // of no key infinity: 0 times it is NaN
    const int64_t length = job.query.length;
    store_rows<T, CHUNKS>(static_cast<T *>(job.to) + number * length * job.values.features, sums,
                          factors, first, length, job.values.features);
    if (!job.more || x != 0) return;
    for (int i = 0; i < n; i++)
        if (first + y + i < length)
            static_cast<A *>(job.more)[number * length + first + y + i] = most[i] + log(total[i]);
}

int check_logsum(const Operands &operands, const Shape &shape, const pvg_array *logsum) {
    int64_t wanted[PVG_MAX_NDIM];
    const int ndim = shape.of(shape.length, 0, wanted);
    const int dtype = operands.query->dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32;
    PVG_PASS(check_array(logsum, "logsum"));
    PVG_REQUIRE(logsum->dtype == dtype && same_shape(logsum, ndim, wanted) &&
                    is_contiguous(logsum) && !logsum->readonly,
                PVG_ERROR_VALUE,
                "logsum has to be a contiguous array of shape %s and dtype %s that may be written, "
                "got %s and %s",
                shape_text(ndim, wanted), dtype_name(dtype), shape_text(logsum),
                dtype_name(logsum->dtype));
    for (const pvg_array *a : {operands.query, operands.keys, operands.values, operands.mask})
        PVG_REQUIRE(!a || (device_of(a) == device_of(logsum) && !may_overlap(a, logsum)),
                    PVG_ERROR_VALUE,
                    "logsum shares memory with another array, or is on another device");
    return PVG_OK;
}

template <class T> int launch(Call &call, const Job &job) {
    const unsigned blocks = blocks_for(job.items * job.tiles, 1);
    const int features = job.query.features, width = job.values.features;
    // Of float32 by what is wider, see is_unused.
    const int widest = sizeof(T) == 4 && features > width ? features : width;
    const int chunks = (widest + edge<T> - 1) / edge<T>;
    if constexpr (sizeof(T) == 8) {
        if (chunks <= 2)
            PVG_LAUNCH((attention_kernel<T, 2>), blocks, threads, 0, call.stream, job);
        else
            PVG_LAUNCH((attention_kernel<T, 8>), blocks, threads, 0, call.stream, job);
    } else if constexpr (sizeof(T) == 2) { // but for cards without tensor cores those are wide
        PVG_LAUNCH((attention_kernel<T, 4>), blocks, threads, 0, call.stream, job);
    } else if (chunks == 1) {
        PVG_LAUNCH((attention_kernel<T, 1>), blocks, threads, 0, call.stream, job);
    } else if (chunks == 2) {
        PVG_LAUNCH((attention_kernel<T, 2>), blocks, threads, 0, call.stream, job);
    } else {
        PVG_LAUNCH((attention_kernel<T, 4>), blocks, threads, 0, call.stream, job);
    }
    return PVG_OK;
}

int run_attention(Call &call, const Operands &operands, pvg_array *logsum, Output *result) {
    const pvg_array *all[] = {operands.query, operands.keys, operands.values, operands.mask};
    int device = -1;
    Shape shape;
    PVG_PASS(check_operands(all, operands.mask ? 4 : 3, &device));
    PVG_PASS(find_shape(operands, &shape));
    if (logsum) PVG_PASS(check_logsum(operands, shape, logsum));
    PVG_PASS(call.begin(device));
    int64_t wanted[PVG_MAX_NDIM];
    const int ndim = shape.of(shape.length, shape.width, wanted);
    PVG_PASS(result->open(call, operands.query->dtype, ndim, wanted, nullptr, nullptr, 0));
    if (result->array->size == 0) return PVG_OK;
    for (const pvg_array *a : all)
        if (a) PVG_PASS(call.reads(a));
    if (logsum) PVG_PASS(call.writes(logsum));
    Job job = {};
    describe(operands, shape, &job);
    job.to = result->array->data;
    job.more = logsum ? logsum->data : nullptr;
    bool tensor;
    PVG_PASS(takes_tensor_cores(call, operands, shape, &tensor));
    if (tensor) return launch_tensor(call, operands.query->dtype, job);
    return dispatch<floats>(operands.query->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        job.tiles = (shape.length + edge<T> - 1) / edge<T>;
        return launch<T>(call, job);
    });
}

} // namespace

// ---- Shapes -------------------------------------------------------------------------------------

int Shape::of(int64_t rows, int64_t columns, int64_t *shape) const {
    for (int i = 0; i < ndim - 2; i++) shape[i] = leading[i];
    shape[ndim - 2] = rows;
    shape[ndim - 1] = columns;
    return columns ? ndim : ndim - 1;
}

namespace {

int check_dtypes(const Operands &operands) {
    const int dtype = operands.query->dtype;
    for (const pvg_array *a : {operands.query, operands.keys, operands.values}) {
        PVG_REQUIRE(is_among(a->dtype, floats), PVG_ERROR_TYPE, "takes a float dtype, got %s",
                    dtype_name(a->dtype));
        PVG_REQUIRE(a->dtype == dtype, PVG_ERROR_TYPE, "takes one dtype, got %s and %s",
                    dtype_name(dtype), dtype_name(a->dtype));
    }
    PVG_REQUIRE(!operands.mask || is_among(operands.mask->dtype, floats | booleans), PVG_ERROR_TYPE,
                "takes a mask of bool or a float dtype, got %s", dtype_name(operands.mask->dtype));
    return PVG_OK;
}

// The length of a dimension counted from the end; 1 of one that is not there.
int64_t from_end(const pvg_array *a, int place) {
    return place <= a->ndim ? a->shape[a->ndim - place] : 1;
}

} // namespace

int find_shape(const Operands &operands, Shape *shape) {
    const pvg_array *q = operands.query, *k = operands.keys, *v = operands.values;
    PVG_PASS(check_dtypes(operands));
    const bool fits = q->ndim >= 2 && k->ndim >= 2 && v->ndim >= 2 &&
                      from_end(q, 1) == from_end(k, 1) && from_end(k, 2) == from_end(v, 2);
    PVG_REQUIRE(fits, PVG_ERROR_VALUE, "query, keys and values of shapes %s, %s and %s",
                shape_text(q), shape_text(k), shape_text(v));
    PVG_REQUIRE(operands.causal == 0 || operands.causal == 1, PVG_ERROR_VALUE,
                "causal is 0 or 1, got %d", operands.causal);
    const int64_t features = from_end(q, 1), width = from_end(v, 1);
    PVG_REQUIRE(features >= 1 && features <= most_features && width >= 1 && width <= most_features,
                PVG_ERROR_VALUE, "takes heads of 1 to %d features, got %lld and %lld",
                most_features, static_cast<long long>(features), static_cast<long long>(width));
    shape->length = from_end(q, 2), shape->size = from_end(k, 2);
    shape->features = static_cast<int>(features), shape->width = static_cast<int>(width);
    PVG_REQUIRE(shape->size >= 1, PVG_ERROR_VALUE, "takes one key at least");
    shape->ndim = 2;
    for (const pvg_array *a : {q, k, v})
        shape->ndim = a->ndim > shape->ndim ? a->ndim : shape->ndim;
    shape->items = 1;
    for (int place = shape->ndim; place > 2; place--) {
        int64_t length = 1;
        for (const pvg_array *a : {q, k, v}) {
            const int64_t own = from_end(a, place);
            PVG_REQUIRE(own == 1 || length == 1 || own == length, PVG_ERROR_VALUE,
                        "query, keys and values of shapes %s, %s and %s do not broadcast",
                        shape_text(q), shape_text(k), shape_text(v));
            length = own == 1 ? length : own;
        }
        shape->leading[shape->ndim - place] = length;
        shape->items *= length;
    }
    if (const pvg_array *mask = operands.mask) {
        int64_t whole[PVG_MAX_NDIM];
        const int ndim = shape->of(shape->length, shape->size, whole);
        bool spreads = mask->ndim <= ndim;
        for (int place = 1; spreads && place <= mask->ndim; place++)
            spreads = from_end(mask, place) == 1 || from_end(mask, place) == whole[ndim - place];
        PVG_REQUIRE(spreads, PVG_ERROR_VALUE, "a mask of shape %s does not broadcast to %s",
                    shape_text(mask), shape_text(ndim, whole));
    }
    return PVG_OK;
}

namespace {

bool at_16_bytes(const void *data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

Rows rows_of(const pvg_array *a) {
    const int n = a->ndim;
    const int64_t size = dtype_size(a->dtype);
    bool vectors = at_16_bytes(a->data) && (a->strides[n - 1] == 1 || a->shape[n - 1] == 1);
    for (int i = 0; i < n - 1; i++)
        vectors = vectors && (a->shape[i] == 1 || a->strides[i] * size % 16 == 0);
    return {a->data,
            a->strides[n - 2],
            a->strides[n - 1],
            a->shape[n - 2],
            static_cast<int>(a->shape[n - 1]),
            vectors};
}

// The strides of the leading dimensions, 0 along repeated ones.
void leading_strides(const pvg_array *a, const Shape &shape, int64_t *strides) {
    for (int i = 0; i < shape.ndim - 2; i++) {
        const int place = shape.ndim - i, axis = a ? a->ndim - place : -1;
        strides[i] = axis >= 0 && a->shape[axis] != 1 ? a->strides[axis] : 0;
    }
}

} // namespace

void describe(const Operands &operands, const Shape &shape, Job *job) {
    job->query = rows_of(operands.query);
    job->keys = rows_of(operands.keys);
    job->values = rows_of(operands.values);
    job->items = shape.items, job->scale = operands.scale, job->causal = operands.causal != 0;
    const pvg_array *mask = operands.mask;
    if (mask) {
        const int n = mask->ndim;
        job->mask = mask->data;
        job->mask_kind = mask->dtype == PVG_BOOL       ? Mask::boolean
                         : mask->dtype == PVG_FLOAT16  ? Mask::half
                         : mask->dtype == PVG_BFLOAT16 ? Mask::bfloat
                         : mask->dtype == PVG_FLOAT32  ? Mask::single
                                                       : Mask::twice;
        job->mask_row = n > 1 && mask->shape[n - 2] != 1 ? mask->strides[n - 2] : 0;
        job->mask_column = n > 0 && mask->shape[n - 1] != 1 ? mask->strides[n - 1] : 0;
    }
    job->general = mask || !(operands.scale > 0);
    Walk<5> &walk = job->leading.walk;
    walk.ndim = shape.ndim - 2;
    for (int i = 0; i < walk.ndim; i++) walk.shape[i] = shape.leading[i];
    contiguous_strides(walk.ndim, walk.shape, walk.strides[0]);
    const pvg_array *all[] = {operands.query, operands.keys, operands.values, mask};
    for (int k = 0; k < 4; k++) leading_strides(all[k], shape, walk.strides[k + 1]);
    collapse(&walk);
    prepare(&job->leading);
}

Rows contiguous_rows(const pvg_array *a, int64_t length, int features) {
    const bool vectors = at_16_bytes(a->data) && features * dtype_size(a->dtype) % 16 == 0;
    return {a->data, features, 1, length, features, vectors};
}

} // namespace attention

Operations attention_operations() {
    static constexpr Operation rows[] = {
        {PVG_ATTENTION, "attention", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_attention(const pvg_array *query, const pvg_array *keys,
                                 const pvg_array *values, const pvg_array *mask, double scale,
                                 int causal, pvg_array *logsum) {
    pvg::Call call("attention");
    pvg::Output result;
    int status = pvg::attention::run_attention(
        call, {query, keys, values, mask, scale, causal, nullptr, nullptr, nullptr}, logsum,
        &result);
    return result.close(call, status);
}
