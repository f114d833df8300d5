// pvg_attention_backward of float16 and bfloat16 on tensor cores, see attention_tensor.cuh.
//
// The formulas are those of attention_backward.cu, and so are the kernels: one a tile of queries'
// gradients from all keys, one a tile of keys' and values' from all queries. Both compute scores
// and their gradients as the left operand of what comes next, the second one by key.
#include "kernels/attention_tensor.cuh"

namespace pvg {
namespace attention {
namespace {

// Weights, in place of the scores, and the scores' gradients, in place of the weights'. `sums` and
// `products` give what is subtracted from an element of row half i / 2 of r, column j * 8 + i % 2.
template <int R, int COLUMNS, class Logsum, class Product>
__device__ __forceinline__ void weigh(Sums<R, COLUMNS> &weights, Sums<R, COLUMNS> &slopes,
                                      float unit, bool cut, const unsigned (&left_out)[R],
                                      const Logsum &logsum, const Product &product) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float &weight = weights[r][j][i];
                weight = quick_exp2(fmaf(weight, unit, -logsum(r, j, i)));
                slopes[r][j][i] = weight * (slopes[r][j][i] - product(r, j, i));
            }
    if (!cut) return;
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (left_out[r] >> (j * 4 + i) & 1) slopes[r][j][i] = 0;
}

// ---- Gradients of queries -----------------------------------------------------------------------

// A block's shared memory: queries, their gradients, two tiles of keys and of values, logsums and
// products, offsets. As in
// attention_tensor.cu registers say what a warp has at once.
template <int DEPTH> struct ByQuery {
    static constexpr int R = 2, rows = 16 * R * tensor_warps, columns = 4096 / DEPTH;
    enum { part = 32, kept = DEPTH == 64 ? 4 : 0 };
    static constexpr int gradient = rows * pitch<DEPTH>, keys = 2 * gradient;
    static constexpr int tile = columns * pitch<DEPTH>, numbers = keys + 4 * tile;
    static constexpr int offsets = numbers + 2 * rows * 4;
    static constexpr int bytes_of_offsets = rows * offsets_pitch<columns> * 4;
};

template <class T, int DEPTH>
__global__ void __launch_bounds__(tensor_threads, 2)
    attention_tensor_query_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    using Places = ByQuery<DEPTH>;
    constexpr int R = Places::R, rows = Places::rows, columns = Places::columns;
    constexpr int part = Places::part;
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const unsigned tiles = static_cast<unsigned>(job.tiles), number = blockIdx.x / tiles;
    const int64_t length = job.query.length;
    const int64_t first = int64_t(tiles - 1 - blockIdx.x % tiles) * rows; // the longest first
    const Item<T> item(job, number);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t own_first = first + warp * 16 * R;
    const int64_t size =
        job.causal && first + rows < job.keys.length ? first + rows : job.keys.length;
    unsigned char *own = memory + warp * 16 * R * pitch<DEPTH>;
    float *numbers = reinterpret_cast<float *>(memory + Places::numbers);
    float *offsets = reinterpret_cast<float *>(memory + Places::offsets);
    const float factor = static_cast<float>(job.scale) * log2_e, unit = job.general ? 1 : factor;
    const uint32_t keys = shared_address(memory) + Places::keys;
    const auto load = [&](int64_t key, int stage) {
        unsigned char *to = memory + Places::keys + stage * Places::tile;
        load_rows<T, DEPTH, columns>(to, item.keys, key);
        load_rows<T, DEPTH, columns>(to + 2 * Places::tile, item.values, key);
    };
    Sums<R, DEPTH> sums = {};
    static_assert(rows == tensor_threads);
    const bool there = first + threadIdx.x < length;
    const int64_t row = there ? number * length + first + threadIdx.x : 0;
    copy_async<4>(shared_address(numbers + threadIdx.x),
                  static_cast<const float *>(job.logsum) + row, there ? 4 : 0);
    copy_async<4>(shared_address(numbers + rows + threadIdx.x),
                  static_cast<const float *>(job.products) + row, there ? 4 : 0);
    load_rows<T, DEPTH, rows>(memory, item.query, first);
    load_rows<T, DEPTH, rows>(memory + Places::gradient, item.gradient, first);
    load(0, 0);
    wait_for_copies();
    __syncthreads();
    Left<DEPTH, R, Places::kept> left(own), left_gradient(own + Places::gradient);
    left.keep();
    left_gradient.keep();
    int stage = 0;
#pragma unroll 1
    for (int64_t key = 0; key < size; key += columns, stage ^= 1) {
        // This tile has come, for every thread, and every thread has done with the one before.
        wait_for_copies();
        if (job.general) {
            __syncthreads();
            load_offsets<rows, columns, false>(offsets, job, item.mask, first, key);
        }
        __syncthreads();
        if (key + columns < size) load(key + columns, stage ^ 1);
#pragma unroll 1
        for (int x = 0; x < columns; x += part) {
            const int64_t at = key + x;
            if (at >= job.keys.length || (job.causal && at > own_first + 16 * R - 1)) break;
            const uint32_t right = keys + stage * Places::tile + x * pitch<DEPTH>;
            Sums<R, part> weights, slopes;
            multiply_features<T, DEPTH, R, part>(weights, left, right + right_place<DEPTH>());
            multiply_features<T, DEPTH, R, part>(slopes, left_gradient,
                                                 right + 2 * Places::tile + right_place<DEPTH>());
            const bool cut = job.general || at + part > job.keys.length ||
                             (job.causal && at + part - 1 > own_first);
            unsigned out[R] = {};
            if (job.general)
                add_offsets<R, part, offsets_pitch<columns>>(
                    weights, offsets + warp * 16 * R * offsets_pitch<columns> + x, factor, out);
            else if (cut)
                cut_scores<R, part, false>(weights, job.keys.length - at,
                                           job.causal ? own_first + 1 - at : part, out);
            const float *own_numbers = numbers + warp * 16 * R + lane / 4;
            weigh<R, part>(
                weights, slopes, unit, cut, out,
                [&](int r, int, int i) { return own_numbers[r * 16 + i / 2 * 8] * log2_e; },
                [&](int r, int, int i) { return own_numbers[rows + r * 16 + i / 2 * 8]; });
            add_products<T, DEPTH, R, part>(sums, slopes, right + left_place<DEPTH>());
        }
    }
    float factors[R][2];
#pragma unroll
    for (int r = 0; r < R; r++) factors[r][0] = factors[r][1] = static_cast<float>(job.scale);
    put_sums<T, DEPTH, R>(own, sums, factors);
    __syncwarp();
    const int features = job.query.features;
    store_own<T, DEPTH, 16 * R>(static_cast<T *>(job.to) + number * length * features, own,
                                own_first, length, features);
#endif
}

// ---- Gradients of keys and values ---------------------------------------------------------------

// A block's shared memory: keys, values, two tiles of queries and of their gradients, of their
// logsums and products, offsets.
template <int DEPTH> struct ByKey {
    static constexpr int R = 128 / DEPTH, rows = 16 * R * tensor_warps, columns = 64;
    enum { part = DEPTH == 64 ? 16 : 32, kept = 3 };
    static constexpr int values = rows * pitch<DEPTH>, queries = 2 * values;
    static constexpr int tile = columns * pitch<DEPTH>, numbers = queries + 4 * tile;
    static constexpr int offsets = numbers + 4 * columns * 4;
    static constexpr int bytes_of_offsets = rows * offsets_pitch<columns> * 4;
};

template <class T, int DEPTH>
__global__ void __launch_bounds__(tensor_threads, 2)
    attention_tensor_keys_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    using Places = ByKey<DEPTH>;
    constexpr int R = Places::R, rows = Places::rows, columns = Places::columns;
    constexpr int part = Places::part;
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const unsigned tiles = static_cast<unsigned>(job.tiles), number = blockIdx.x / tiles;
    const int64_t first = int64_t(blockIdx.x % tiles) * rows;
    const int64_t length = job.query.length, size = job.keys.length;
    const Item<T> item(job, number);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t own_first = first + warp * 16 * R;
    unsigned char *own = memory + warp * 16 * R * pitch<DEPTH>;
    float *numbers = reinterpret_cast<float *>(memory + Places::numbers);
    float *offsets = reinterpret_cast<float *>(memory + Places::offsets);
    const float factor = static_cast<float>(job.scale) * log2_e, unit = job.general ? 1 : factor;
    const uint32_t queries = shared_address(memory) + Places::queries;
    const auto load = [&](int64_t query, int stage) {
        unsigned char *to = memory + Places::queries + stage * Places::tile;
        load_rows<T, DEPTH, columns>(to, item.query, query);
        load_rows<T, DEPTH, columns>(to + 2 * Places::tile, item.gradient, query);
        static_assert(2 * columns == tensor_threads);
        const int column = static_cast<int>(threadIdx.x) % columns;
        const void *all = static_cast<int>(threadIdx.x) < columns ? job.logsum : job.products;
        const bool there = query + column < length;
        copy_async<4>(shared_address(numbers + stage * 2 * columns + threadIdx.x),
                      static_cast<const float *>(all) +
                          (there ? number * length + query + column : 0),
                      there ? 4 : 0);
    };
    Sums<R, DEPTH> dkeys = {}, dvalues = {};
    load_rows<T, DEPTH, rows>(memory, item.keys, first);
    load_rows<T, DEPTH, rows>(memory + Places::values, item.values, first);
    const int64_t begin = job.causal ? first : 0;
    if (begin < length) load(begin, 0);
    wait_for_copies();
    __syncthreads();
    Left<DEPTH, R, Places::kept> left(own), left_values(own + Places::values);
    left.keep();
    left_values.keep();
    int stage = 0;
#pragma unroll 1
    for (int64_t query = begin; query < length; query += columns, stage ^= 1) {
        // This tile has come, for every thread, and every thread has done with the one before.
        wait_for_copies();
        if (job.general) {
            __syncthreads();
            load_offsets<rows, columns, true>(offsets, job, item.mask, query, first);
        }
        __syncthreads();
        if (query + columns < length) load(query + columns, stage ^ 1);
#pragma unroll 1
        for (int x = 0; x < columns; x += part) {
            const int64_t at = query + x;
            if (at >= length) break;
            if (job.causal && at + part - 1 < own_first) continue;
            const uint32_t right = queries + stage * Places::tile + x * pitch<DEPTH>;
            Sums<R, part> weights, slopes; // by key, then by query
            multiply_features<T, DEPTH, R, part>(weights, left, right + right_place<DEPTH>());
            multiply_features<T, DEPTH, R, part>(slopes, left_values,
                                                 right + 2 * Places::tile + right_place<DEPTH>());
            const bool cut =
                job.general || at + part > length || (job.causal && at < own_first + 16 * R - 1);
            unsigned out[R] = {};
            if (job.general)
                add_offsets<R, part, offsets_pitch<columns>>(
                    weights, offsets + warp * 16 * R * offsets_pitch<columns> + x, factor, out);
            else if (cut)
                cut_scores<R, part, true>(weights, length - at,
                                          job.causal ? own_first - at : -2 * rows, out);
            const float *own_numbers = numbers + stage * 2 * columns + x + lane % 4 * 2;
            weigh<R, part>(
                weights, slopes, unit, cut, out,
                [&](int, int j, int i) { return own_numbers[j * 8 + i % 2] * log2_e; },
                [&](int, int j, int i) { return own_numbers[columns + j * 8 + i % 2]; });
            add_products<T, DEPTH, R, part>(dvalues, weights,
                                            right + 2 * Places::tile + left_place<DEPTH>());
            add_products<T, DEPTH, R, part>(dkeys, slopes, right + left_place<DEPTH>());
        }
    }
    float factors[R][2], ones[R][2];
#pragma unroll
    for (int r = 0; r < R; r++)
        factors[r][0] = factors[r][1] = static_cast<float>(job.scale), ones[r][0] = ones[r][1] = 1;
    put_sums<T, DEPTH, R>(own, dkeys, factors);
    put_sums<T, DEPTH, R>(own + Places::values, dvalues, ones);
    __syncwarp();
    const int features = job.query.features, width = job.values.features;
    store_own<T, DEPTH, 16 * R>(static_cast<T *>(job.to) + number * size * features, own, own_first,
                                size, features);
    store_own<T, DEPTH, 16 * R>(static_cast<T *>(job.more) + number * size * width,
                                own + Places::values, own_first, size, width);
#endif
}

// ---- On the host --------------------------------------------------------------------------------

template <class T, int DEPTH> int launch(Call &call, Job job, pvg_array *const *results) {
    using Queries = ByQuery<DEPTH>;
    using Keys = ByKey<DEPTH>;
    job.to = results[0]->data;
    job.tiles = (job.query.length + Queries::rows - 1) / Queries::rows;
    PVG_LAUNCH((attention_tensor_query_kernel<T, DEPTH>), blocks_for(job.items * job.tiles, 1),
               tensor_threads, Queries::offsets + (job.general ? Queries::bytes_of_offsets : 0),
               call.stream, job);
    job.to = results[1]->data, job.more = results[2]->data;
    job.tiles = (job.keys.length + Keys::rows - 1) / Keys::rows;
    PVG_LAUNCH((attention_tensor_keys_kernel<T, DEPTH>), blocks_for(job.items * job.tiles, 1),
               tensor_threads, Keys::offsets + (job.general ? Keys::bytes_of_offsets : 0),
               call.stream, job);
    return PVG_OK;
}

template <class T> int launch(Call &call, const Job &job, pvg_array *const *results) {
    return job.query.features <= 64 && job.values.features <= 64
               ? launch<T, 64>(call, job, results)
               : launch<T, 128>(call, job, results);
}

} // namespace

int launch_tensor_backward(Call &call, int dtype, const Job &job, pvg_array *const *results) {
    if (dtype == PVG_FLOAT32) return launch_single_backward(call, job, results);
#ifndef PVG_SIMULATOR // which has no products of warpgroups
    bool takes;
    PVG_PASS(takes_wgmma(call, job, &takes));
    if (takes && job.gradient.vectors) return launch_wgmma_backward(call, dtype, job, results);
#endif
    return dtype == PVG_FLOAT16 ? launch<Half>(call, job, results)
                                : launch<BFloat16>(call, job, results);
}

} // namespace attention
} // namespace pvg
