// pvg_attention_backward of float16 and bfloat16 on tensor cores, see attention_tensor.cuh.
//
// The formulas are those of attention_backward.cu, and so are the kernels: one a tile of queries'
// gradients from all keys, one a tile of keys' and values' from all queries. Both compute scores
// and their gradients as the left operand of what comes next, the second one by key.
#include "kernels/attention_sections.cuh"

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
// products, offsets. As in attention_tensor.cu registers say what a warp has at once, and of few
// queries it has 16 and keys in sections.
template <int DEPTH_, int R_, int WARPS> struct ByQuery {
    static constexpr int DEPTH = DEPTH_, R = R_, rows = 16 * R * WARPS, columns = 4096 / DEPTH;
    static constexpr int threads = 32 * WARPS, blocks = 8 / WARPS;
    static constexpr bool sections = R == 1;
    enum { part = 32, kept = DEPTH == 64 ? 4 : 0 };
    static constexpr int gradient = rows * pitch<DEPTH>, keys = 2 * gradient;
    static constexpr int tile = columns * pitch<DEPTH>, numbers = keys + 4 * tile;
    static constexpr int offsets = numbers + 2 * rows * 4;
    static constexpr int bytes_of_offsets = rows * offsets_pitch<columns> * 4;
};

// Of few queries: the sums of the sections before, or what a section apart has.
template <int DEPTH, int R>
__device__ __forceinline__ void keep_section(Sums<R, DEPTH> &before, Sums<R, DEPTH> &sums,
                                             bool first, bool last) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (!first) sums[r][j][i] = before[r][j][i] + sums[r][j][i];
                if (last) continue;
                before[r][j][i] = sums[r][j][i];
                sums[r][j][i] = 0;
            }
}
template <int DEPTH, int R>
__device__ __forceinline__ void store_section(float *matrix, const Sums<R, DEPTH> &sums,
                                              int64_t first, int64_t length, int features) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t row = first + r * 16 + half * 8 + lane / 4;
            if (row >= length) continue;
            float *to = matrix + row * features + lane % 4 * 2;
#pragma unroll
            for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    if (j * 8 + lane % 4 * 2 + i < features)
                        to[j * 8 + i] = sums[r][j][half * 2 + i];
        }
}

template <class T, class Places>
__global__ void __launch_bounds__(Places::threads, Places::blocks)
    attention_tensor_query_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    constexpr int DEPTH = Places::DEPTH, R = Places::R, rows = Places::rows;
    constexpr int columns = Places::columns, part = Places::part, threads = Places::threads;
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const Part place = part_of_block(job);
    const int64_t number = place.number, length = job.query.length;
    const int64_t first = int64_t(place.tile) * rows;
    const int64_t size =
        job.causal && first + rows < job.keys.length ? first + rows : job.keys.length;
    int64_t stop = place.begin + job.section; // of a section
    const int64_t end = job.apart && stop < size ? stop : size;
    if (place.begin >= end) return;
    const Item<T> item(job, number);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t own_first = first + warp * 16 * R;
    unsigned char *own = memory + warp * 16 * R * pitch<DEPTH>;
    float *numbers = reinterpret_cast<float *>(memory + Places::numbers);
    float *offsets = reinterpret_cast<float *>(memory + Places::offsets);
    const float factor = static_cast<float>(job.scale) * log2_e, unit = job.general ? 1 : factor;
    const uint32_t keys = shared_address(memory) + Places::keys;
    const auto load = [&](int64_t key, int stage) {
        unsigned char *to = memory + Places::keys + stage * Places::tile;
        load_rows<T, DEPTH, columns, threads>(to, item.keys, key);
        load_rows<T, DEPTH, columns, threads>(to + 2 * Places::tile, item.values, key);
    };
    Sums<R, DEPTH> sums = {};
    [[maybe_unused]] Sums<R, DEPTH> before;
    static_assert(rows <= threads);
    if (threadIdx.x < rows) {
        const bool there = first + threadIdx.x < length;
        const int64_t row = there ? number * length + first + threadIdx.x : 0;
        copy_async<4>(shared_address(numbers + threadIdx.x),
                      static_cast<const float *>(job.logsum) + row, there ? 4 : 0);
        copy_async<4>(shared_address(numbers + rows + threadIdx.x),
                      static_cast<const float *>(job.products) + row, there ? 4 : 0);
    }
    load_rows<T, DEPTH, rows, threads>(memory, item.query, first);
    load_rows<T, DEPTH, rows, threads>(memory + Places::gradient, item.gradient, first);
    load(place.begin, 0);
    wait_for_copies();
    __syncthreads();
    Left<DEPTH, R, Places::kept> left(own), left_gradient(own + Places::gradient);
    left.keep();
    left_gradient.keep();
    int stage = 0;
#pragma unroll 1
    for (int64_t key = place.begin; key < end; key += columns, stage ^= 1) {
        // This tile has come, for every thread, and every thread has done with the one before.
        wait_for_copies();
        if (job.general) {
            __syncthreads();
            load_offsets<rows, columns, false>(offsets, job, item.mask, first, key);
        }
        __syncthreads();
        if (key + columns < end) load(key + columns, stage ^ 1);
#pragma unroll 1
        for (int x = 0; x < columns; x += part) {
            const int64_t at = key + x;
            if (at >= job.keys.length || own_first >= length ||
                (job.causal && at > own_first + 16 * R - 1))
                break;
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
        if constexpr (Places::sections) {
            if (job.apart || key + columns < (stop < end ? stop : end)) continue;
            keep_section<DEPTH, R>(before, sums, stop == job.section, stop >= end);
            stop += job.section;
        }
    }
    const int features = job.query.features;
    if constexpr (Places::sections) {
        if (job.apart) {
            const int64_t at = (place.begin / job.section * job.items + number) * length;
            store_section<DEPTH, R>(job.parts + at * features, sums, own_first, length, features);
            return;
        }
    }
    float factors[R][2];
#pragma unroll
    for (int r = 0; r < R; r++) factors[r][0] = factors[r][1] = static_cast<float>(job.scale);
    put_sums<T, DEPTH, R>(own, sums, factors);
    __syncwarp();
    store_own<T, DEPTH, 16 * R>(static_cast<T *>(job.to) + number * length * features, own,
                                own_first, length, features);
#endif
}

// A warp has a row, which sections apart have parts of.
template <class T>
__global__ void __launch_bounds__(join_threads)
    attention_tensor_join_query_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    const int64_t at = (int64_t(blockIdx.x) * join_threads + threadIdx.x) / 32;
    const int64_t rows = job.items * job.query.length;
    if (at >= rows) return;
    const int64_t seen = at % job.query.length / job.section + 1;
    const int end = static_cast<int>(job.causal && seen < job.apart ? seen : int64_t(job.apart));
    join_row<T>(job.to, job.parts, rows, at, 0, end, job.query.features,
                static_cast<float>(job.scale));
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

template <class T, class Queries> int launch_queries(Call &call, Job job) {
    const int64_t length = job.query.length, rows = job.items * length;
    job.tiles = (length + Queries::rows - 1) / Queries::rows;
    const int64_t blocks = job.items * job.tiles;
    Workspace space;
    job.section = job.keys.length;
    if (Queries::sections) {
        cut_terms(&job, length, job.keys.length, 256);
        PVG_PASS(
            set_apart(call, &job, rows, job.keys.length, {job.query.features, 0}, blocks, &space));
    }
    PVG_LAUNCH((attention_tensor_query_kernel<T, Queries>),
               blocks_for(blocks * (job.apart ? job.apart : 1), 1), Queries::threads,
               Queries::offsets + (job.general ? Queries::bytes_of_offsets : 0), call.stream, job);
    if (!job.apart) return PVG_OK;
    PVG_LAUNCH(attention_tensor_join_query_kernel<T>, blocks_for(rows * 32, join_threads),
               join_threads, 0, call.stream, job);
    return PVG_OK;
}

template <class T, int DEPTH> int launch(Call &call, Job job, pvg_array *const *results) {
    using Keys = ByKey<DEPTH>;
    const int64_t length = job.query.length;
    job.to = results[0]->data;
    PVG_PASS(length <= 16            ? (launch_queries<T, ByQuery<DEPTH, 1, 1>>(call, job))
             : length <= 32          ? (launch_queries<T, ByQuery<DEPTH, 1, 2>>(call, job))
             : length < many_queries ? (launch_queries<T, ByQuery<DEPTH, 1, 4>>(call, job))
                                     : (launch_queries<T, ByQuery<DEPTH, 2, 4>>(call, job)));
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
