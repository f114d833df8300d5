// pvg_attention_backward: gradients of query, keys and values, by tiles as in attention.cu.
//
// The weights are computed again from the scores and logsum, the logarithm of each row's sum of
// exponentials: p = exp(score - logsum). With dp = gradient @ values.T and d, each row's product of
// gradient and result, the gradient of the scores is p (dp - d). One kernel gives d, one a tile of
// queries' gradients from all keys, one a tile of keys' and values' from all queries: no sum is
// shared between blocks.
#include "kernels/attention_tensor.cuh"

namespace pvg {
namespace attention {
namespace {

// A thread has a row, whose products it adds in one chain, as multiply_rows does: where a query
// takes part with one key, the result is its value, and dp - d is zero to the last bit.
template <class T> __global__ void __launch_bounds__(threads) attention_products_kernel(Job job) {
    using A = ComputeType<T>;
    constexpr int n = 16 / static_cast<int>(sizeof(T));
    using Some = Vector<T, n>;
    const int64_t row = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    if (row >= job.items * job.query.length) return;
    const int features = job.result.features;
    const T *gradient = static_cast<const T *>(job.gradient.data) + row * features;
    const T *result = static_cast<const T *>(job.result.data) + row * features;
    A sum = 0;
    if (job.gradient.vectors && job.result.vectors) {
#pragma unroll 4
        for (int column = 0; column < features; column += n) {
            const Some a = *reinterpret_cast<const Some *>(gradient + column);
            const Some b = *reinterpret_cast<const Some *>(result + column);
#pragma unroll
            for (int i = 0; i < n; i++)
                sum += static_cast<A>(a.element[i]) * static_cast<A>(b.element[i]);
        }
    } else {
        for (int column = 0; column < features; column++)
            sum += static_cast<A>(gradient[column]) * static_cast<A>(result[column]);
    }
    static_cast<A *>(job.to)[row] = sum;
}

// One number of a row; 0 behind the last one.
template <class A>
__device__ __forceinline__ A of_row(const void *numbers, int64_t item, int64_t row,
                                    int64_t length) {
    return row < length ? static_cast<const A *>(numbers)[item * length + row] : A(0);
}

// Products become weights, and those of gradient and values the gradient of the scores.
template <class A>
__device__ __forceinline__ void weigh(const Job &job, int64_t mask, int64_t query, int64_t key,
                                      bool plain, A logsum, A product, A &weight, A &slope) {
    const bool kept = score(job, mask, query, key, plain, weight);
    const bool there = plain || (query < job.query.length && key < job.keys.length);
    weight = there ? exp(weight - logsum) : A(0);
    slope = kept ? weight * (slope - product) : A(0);
}

template <class T, int CHUNKS>
__global__ void __launch_bounds__(threads, blocks_at_once<CHUNKS>)
    attention_query_kernel(const Job job) {
    if (is_unused<T, CHUNKS>) return;
    using A = ComputeType<T>;
    constexpr int n = elements<T>;
    __shared__ __align__(16) Shared<T> shared;
    const int64_t number = blockIdx.x / job.tiles, length = job.query.length;
    const int64_t first = (job.tiles - 1 - blockIdx.x % job.tiles) * edge<T>; // the longest first
    const Item<T> item(job, number);
    const int y = static_cast<int>(threadIdx.x) / across * n;
    const int x = static_cast<int>(threadIdx.x) % across * n;
    Elements<T> sums[CHUNKS] = {};
    A logsum[n], product[n], factors[n];
#pragma unroll
    for (int i = 0; i < n; i++) {
        logsum[i] = of_row<A>(job.logsum, number, first + y + i, length);
        product[i] = of_row<A>(job.products, number, first + y + i, length);
        factors[i] = static_cast<A>(job.scale);
    }
    for (int64_t key = 0; key < job.keys.length; key += edge<T>) {
        if (job.causal && key >= first + edge<T>) break;
        Elements<T> weights, slopes;
        multiply_rows<T>(weights, item.query, first, item.keys, key, shared);
        multiply_rows<T>(slopes, item.gradient, first, item.values, key, shared);
        const bool plain = is_plain<T>(job, first, key);
#pragma unroll
        for (int i = 0; i < n; i++)
#pragma unroll
            for (int j = 0; j < n; j++)
                weigh(job, item.mask, first + y + i, key + x + j, plain, logsum[i], product[i],
                      weights[i][j], slopes[i][j]);
        put_weights<T>(slopes, shared);
        SquarePart<T> keys;
        keys.fetch(item.keys, key, 0);
        add_weighted<T, CHUNKS>(sums, item.keys, key, keys, shared);
    }
    store_rows<T, CHUNKS>(static_cast<T *>(job.to) + number * length * job.query.features, sums,
                          factors, first, length, job.query.features);
}

template <class T, int CHUNKS>
__global__ void __launch_bounds__(threads, CHUNKS == 1 ? 2 : 1)
    attention_keys_kernel(const Job job) {
    if (is_unused<T, CHUNKS>) return;
    using A = ComputeType<T>;
    constexpr int n = elements<T>;
    __shared__ __align__(16) Shared<T> shared;
    const int64_t number = blockIdx.x / job.tiles;
    const int64_t first = blockIdx.x % job.tiles * edge<T>;
    const int64_t length = job.query.length, size = job.keys.length;
    const Item<T> item(job, number);
    const int y = static_cast<int>(threadIdx.x) / across * n;
    const int x = static_cast<int>(threadIdx.x) % across * n;
    Elements<T> dkeys[CHUNKS] = {}, dvalues[CHUNKS] = {};
    for (int64_t query = job.causal ? first : 0; query < length; query += edge<T>) {
        Elements<T> weights, slopes; // by key, then by query
        multiply_rows<T>(weights, item.keys, first, item.query, query, shared);
        multiply_rows<T>(slopes, item.values, first, item.gradient, query, shared);
        const bool plain = is_plain<T>(job, query, first);
#pragma unroll
        for (int j = 0; j < n; j++) {
            const A logsum = of_row<A>(job.logsum, number, query + x + j, length);
            const A product = of_row<A>(job.products, number, query + x + j, length);
#pragma unroll
            for (int i = 0; i < n; i++)
                weigh(job, item.mask, query + x + j, first + y + i, plain, logsum, product,
                      weights[i][j], slopes[i][j]);
        }
        put_weights<T>(weights, shared);
        SquarePart<T> part;
        part.fetch(item.gradient, query, 0);
        add_weighted<T, CHUNKS>(dvalues, item.gradient, query, part, shared);
        part.fetch(item.query, query, 0);
        __syncthreads(); // all have read the weights
        put_weights<T>(slopes, shared);
        add_weighted<T, CHUNKS>(dkeys, item.query, query, part, shared);
    }
    A factors[n], ones[n];
#pragma unroll
    for (int i = 0; i < n; i++) factors[i] = static_cast<A>(job.scale), ones[i] = 1;
    const int features = job.query.features, width = job.values.features;
    store_rows<T, CHUNKS>(static_cast<T *>(job.to) + number * size * features, dkeys, factors,
                          first, size, features);
    store_rows<T, CHUNKS>(static_cast<T *>(job.more) + number * size * width, dvalues, ones, first,
                          size, width);
}

// ---- On the host --------------------------------------------------------------------------------

int check_backward(const Operands &operands, const Shape &shape) {
    const int dtype = operands.query->dtype;
    const int sums = dtype == PVG_FLOAT64 ? PVG_FLOAT64 : PVG_FLOAT32;
    int64_t whole[PVG_MAX_NDIM], rows[PVG_MAX_NDIM];
    const int ndim = shape.of(shape.length, shape.width, whole);
    const int fewer = shape.of(shape.length, 0, rows);
    for (const pvg_array *a : {operands.gradient, operands.result}) {
        PVG_REQUIRE(a->dtype == dtype, PVG_ERROR_TYPE, "takes one dtype, got %s and %s",
                    dtype_name(dtype), dtype_name(a->dtype));
        PVG_REQUIRE(same_shape(a, ndim, whole), PVG_ERROR_VALUE,
                    "gradient and result of shapes %s and %s, not %s",
                    shape_text(operands.gradient), shape_text(operands.result),
                    shape_text(ndim, whole));
    }
    PVG_REQUIRE(operands.logsum->dtype == sums, PVG_ERROR_TYPE, "logsum of dtype %s, not %s",
                dtype_name(operands.logsum->dtype), dtype_name(sums));
    PVG_REQUIRE(same_shape(operands.logsum, fewer, rows), PVG_ERROR_VALUE,
                "logsum of shape %s, not %s", shape_text(operands.logsum), shape_text(fewer, rows));
    return PVG_OK;
}

template <class T, int CHUNKS>
int launch_tiles(Call &call, Job job, pvg_array *const *results, const Shape &shape) {
    job.to = results[0]->data;
    job.tiles = (shape.length + edge<T> - 1) / edge<T>;
    PVG_LAUNCH((attention_query_kernel<T, CHUNKS>), blocks_for(job.items * job.tiles, 1), threads,
               0, call.stream, job);
    job.to = results[1]->data, job.more = results[2]->data;
    job.tiles = (shape.size + edge<T> - 1) / edge<T>;
    PVG_LAUNCH((attention_keys_kernel<T, CHUNKS>), blocks_for(job.items * job.tiles, 1), threads, 0,
               call.stream, job);
    return PVG_OK;
}

template <class T>
int launch_backward(Call &call, Job job, pvg_array *const *results, const Shape &shape,
                    bool tensor) {
    using A = ComputeType<T>;
    const int64_t rows = shape.items * shape.length;
    Workspace products;
    PVG_PASS(products.open(call, static_cast<size_t>(rows) * sizeof(A)));
    job.to = products.as<A>();
    if (tensor && sizeof(T) == 4)
        PVG_PASS(launch_single_products(call, job));
    else
        PVG_LAUNCH(attention_products_kernel<T>, blocks_for(rows, threads), threads, 0, call.stream,
                   job);
    job.products = products.as<A>();
    if (tensor) return launch_tensor_backward(call, DtypeOf<T>::value, job, results);
    const int widest = shape.features > shape.width ? shape.features : shape.width;
    const int chunks = (widest + edge<T> - 1) / edge<T>;
    if constexpr (sizeof(T) == 8)
        return chunks <= 2 ? launch_tiles<T, 2>(call, job, results, shape)
                           : launch_tiles<T, 8>(call, job, results, shape);
    else if constexpr (sizeof(T) == 2) // as in attention.cu
        return launch_tiles<T, 4>(call, job, results, shape);
    else
        return chunks == 1   ? launch_tiles<T, 1>(call, job, results, shape)
               : chunks == 2 ? launch_tiles<T, 2>(call, job, results, shape)
                             : launch_tiles<T, 4>(call, job, results, shape);
}

int compute(Call &call, const Operands &operands, const Shape &shape, pvg_array *const *results) {
    Temporary straight[3];
    const pvg_array *gradient, *result, *logsum;
    PVG_PASS(as_contiguous(call, operands.gradient, &straight[0], &gradient));
    PVG_PASS(as_contiguous(call, operands.result, &straight[1], &result));
    PVG_PASS(as_contiguous(call, operands.logsum, &straight[2], &logsum));
    for (const pvg_array *a :
         {operands.query, operands.keys, operands.values, operands.mask, gradient, result, logsum})
        if (a) PVG_PASS(call.reads(a));
    Job job = {};
    describe(operands, shape, &job);
    job.gradient = contiguous_rows(gradient, shape.length, shape.width);
    job.result = contiguous_rows(result, shape.length, shape.width);
    job.logsum = logsum->data;
    bool tensor;
    PVG_PASS(takes_tensor_cores(call, operands, shape, &tensor));
    return dispatch<floats>(operands.query->dtype, [&](auto tag) -> int {
        return launch_backward<typename decltype(tag)::type>(call, job, results, shape, tensor);
    });
}

int run_backward(Call &call, const Operands &operands, pvg_array **const *given) {
    const pvg_array *all[] = {operands.query,  operands.keys,   operands.values, operands.gradient,
                              operands.result, operands.logsum, operands.mask};
    int device = -1;
    Shape shape;
    PVG_PASS(check_operands(all, operands.mask ? 7 : 6, &device));
    PVG_PASS(find_shape(operands, &shape));
    PVG_PASS(check_backward(operands, shape));
    for (int i = 0; i < 3; i++)
        PVG_REQUIRE(given[i], PVG_ERROR_VALUE, "dquery, dkeys or dvalues is a null pointer");
    PVG_PASS(call.begin(device));
    const int64_t rows[] = {shape.length, shape.size, shape.size};
    const int64_t columns[] = {shape.features, shape.features, shape.width};
    Temporary made[3];
    pvg_array *results[3];
    for (int i = 0; i < 3; i++) {
        int64_t wanted[PVG_MAX_NDIM];
        const int ndim = shape.of(rows[i], columns[i], wanted);
        PVG_PASS(new_array(device, operands.query->dtype, ndim, wanted, &made[i].array));
        results[i] = made[i].array;
        PVG_PASS(call.writes(results[i]));
    }
    if (results[1]->size) PVG_PASS(compute(call, operands, shape, results));
    for (int i = 0; i < 3; i++) *given[i] = made[i].take();
    return PVG_OK;
}

} // namespace
} // namespace attention
} // namespace pvg

PVG_API int pvg_attention_backward(const pvg_array *gradient, const pvg_array *query,
                                   const pvg_array *keys, const pvg_array *values,
                                   const pvg_array *mask, const pvg_array *result,
                                   const pvg_array *logsum, double scale, int causal,
                                   pvg_array **dquery, pvg_array **dkeys, pvg_array **dvalues) {
    pvg::Call call("attention_backward");
    pvg_array **const results[] = {dquery, dkeys, dvalues};
    return pvg::attention::run_backward(
        call, {query, keys, values, mask, scale, causal, logsum, gradient, result}, results);
}
