// pvg_attention_backward of float32 on tensor cores, see attention_single.cuh.
//
// The kernels are those of attention_tensor_backward.cu. Where a query takes part with one key the
// gradient of its score is zero to the last bit: the product of gradient and result that is
// subtracted comes by the same instructions as that of gradient and value.
#include "kernels/attention_sections.cuh"
#include "kernels/attention_single_rows.cuh"

namespace pvg {
namespace attention {
namespace {

// Weights, in place of the scores, and the scores' gradients, in place of the weights'. `numbers`
// gives the logsum and the product of an element of row half i / 2 of r, column j * 8 + i % 2; a
// score times `unit` is as the logsum is.
template <int R, int COLUMNS, class Numbers>
__device__ __forceinline__ void weigh_singles(Sums<R, COLUMNS> &weights, Sums<R, COLUMNS> &slopes,
                                              float unit, bool cut, const unsigned (&left_out)[R],
                                              const Numbers &numbers) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float2 number = numbers(r, j, i);
                float &weight = weights[r][j][i];
                weight = quick_exp2(fmaf(weight, unit, -number.x) * log2_e);
                slopes[r][j][i] = weight * (slopes[r][j][i] - number.y);
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

// ---- Products of each row of the gradient and the result ----------------------------------------

// A warp has 16 rows: the diagonal of their products.
__global__ void __launch_bounds__(threads) attention_tensor_single_products_kernel(const Job job) {
#if PVG_HAS_FRAGMENTS
    const int64_t rows = job.items * job.query.length;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t first = (static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x) / 32 * 16;
    if (first >= rows) return;
    const int features = job.result.features;
    const float *gradient = static_cast<const float *>(job.gradient.data) + first * features;
    const float *result = static_cast<const float *>(job.result.data) + first * features;
    float sums[2][4] = {}, small[2][4] = {}; // of 8 columns of results
    for (int k = 0; k < features; k += 8) {
        Halves<4> a, b;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + i % 2 * 8, column = k + lane % 4 + i / 2 * 4;
            const bool there = first + row < rows && column < features;
            const int64_t at = int64_t(row) * features + column;
            a.set(i, there ? float_bits(gradient[at]) : 0);
            b.set(i, there ? float_bits(result[at]) : 0);
        }
#pragma unroll
        for (int x = 0; x < 2; x++) {
            multiply_singles(small[x], a.rest, b.most[x], b.most[x + 2]);
            multiply_singles(small[x], a.most, b.rest[x], b.rest[x + 2]);
            multiply_singles(sums[x], a.most, b.most[x], b.most[x + 2]);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8;
        if (lane / 4 != lane % 4 * 2 + i % 2 || first + row >= rows) continue;
        float sum = sums[i / 2][i] + small[i / 2][i];
        if (sum != sum) {
            sum = 0;
#pragma unroll 1
            for (int column = 0; column < features; column++)
                sum = fmaf(gradient[int64_t(row) * features + column],
                           result[int64_t(row) * features + column], sum);
        }
        static_cast<float *>(job.to)[first + row] = sum;
    }
#endif
}

// ---- Sections -----------------------------------------------------------------------------------

// Adds a section's sums to those before, which lie where the result will.
template <int DEPTH, int R>
__device__ __forceinline__ void add_before(Sums<R, DEPTH> &sums, const float *matrix, int64_t first,
                                           int64_t length, int features) {
    const int lane = computed_here(static_cast<int>(threadIdx.x) % 32);
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t row = first + r * 16 + half * 8 + lane / 4;
            if (row >= length) continue;
            const float *from = matrix + row * features + lane % 4 * 4;
#pragma unroll
            for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int column = j / 2 * 16 + i * 2 + j % 2;
                    if (column + lane % 4 * 4 < features)
                        sums[r][j][half * 2 + i] = from[column] + sums[r][j][half * 2 + i];
                }
        }
}
template <int DEPTH, int R>
__device__ __forceinline__ void keep_before(Sums<R, DEPTH> &sums, float *matrix, int64_t first,
                                            int64_t length, int features) {
    float ones[R][2];
#pragma unroll
    for (int r = 0; r < R; r++) ones[r][0] = ones[r][1] = 1;
    store_singles<DEPTH, R>(matrix, sums, ones, first + computed_here(0), length,
                            computed_here(features));
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[r][j][i] = 0;
}

// ---- Gradients of queries -----------------------------------------------------------------------

// A block's shared memory: queries, their gradients, two tiles of keys and of values, offsets.
template <int DEPTH_, int R_, int COLUMNS, int UNROLL = 4, int BLOCKS = 2,
          int WARPS = 4> struct SingleByQuery {
    static constexpr int DEPTH = DEPTH_, R = R_, columns = COLUMNS;
    static constexpr int blocks = BLOCKS, threads = 32 * WARPS;
    enum { unroll = UNROLL, warps = WARPS };
    static constexpr int rows = 16 * R * WARPS;
    static constexpr int gradient = rows * single_pitch<DEPTH>, keys = 2 * gradient;
    static constexpr int tile = columns * single_pitch<DEPTH>, offsets = keys + 4 * tile;
    static constexpr int bytes_of_offsets = rows * offsets_pitch<columns> * 4;
};

template <class Places>
__global__ void __launch_bounds__(Places::threads, Places::blocks)
    attention_tensor_single_query_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    constexpr int DEPTH = Places::DEPTH, R = Places::R, rows = Places::rows;
    constexpr int columns = Places::columns;
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const Part part = part_of_block(job);
    const int64_t number = part.number, length = job.query.length;
    const int64_t first = int64_t(part.tile) * rows;
    const int64_t size =
        job.causal && first + rows < job.keys.length ? first + rows : job.keys.length;
    int64_t stop = part.begin + job.section; // of a section
    const int64_t end = job.apart && stop < size ? stop : size;
    if (part.begin >= end) return;
    const Item<float> item(job, number);
    // The schedulers of a multiprocessor have a warp of each block: its rows change with the block.
    const int warp = static_cast<int>(threadIdx.x / 32 + blockIdx.x) % Places::warps;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t own_first = first + warp * 16 * R;
    float *offsets = reinterpret_cast<float *>(memory + Places::offsets);
    const float scale = static_cast<float>(job.scale), unit = job.general ? ln_2 : scale;
    const uint32_t left =
        shared_address(memory) + warp * 16 * R * single_pitch<DEPTH> + left_single<DEPTH>();
    const auto load = [&](int64_t key, int stage) {
        unsigned char *to = memory + Places::keys + stage * Places::tile;
        load_singles<DEPTH, columns, Places::threads>(to, item.keys, key);
        load_singles<DEPTH, columns, Places::threads>(to + 2 * Places::tile, item.values, key);
    };
    Sums<R, DEPTH> sums = {};
    float2 numbers[R][2];
    float factors[R][2];
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t row = own_first + r * 16 + half * 8 + lane / 4;
            const int64_t at = number * length + (row < length ? row : 0);
            numbers[r][half] = make_float2(static_cast<const float *>(job.logsum)[at],
                                           static_cast<const float *>(job.products)[at]);
            factors[r][half] = 1;
        }
    load_singles<DEPTH, rows, Places::threads>(memory, item.query, first);
    load_singles<DEPTH, rows, Places::threads>(memory + Places::gradient, item.gradient, first);
    load(part.begin, 0);
    const int features = job.query.features;
    float *to = static_cast<float *>(job.to) + number * length * features;
    int stage = 0;
#pragma unroll 1
    for (int64_t key = part.begin; key < end; key += columns, stage ^= 1) {
        // This tile has come, for every thread, and every thread has done with the one before.
        wait_for_copies();
        if (job.general) {
            __syncthreads();
            load_offsets<rows, columns, false>(offsets, job, item.mask, first, key);
        }
        __syncthreads();
        if (key + columns < end) load(key + columns, stage ^ 1);
        if (own_first < length && !(job.causal && key > own_first + 16 * R - 1)) {
            const unsigned char *right = memory + Places::keys + stage * Places::tile;
            const uint32_t place = shared_address(right) + right_single<DEPTH>();
            Sums<R, columns> weights, slopes;
            multiply_features<DEPTH, R, columns, false, int(Places::unroll)>(weights, left, place);
            multiply_features<DEPTH, R, columns, false, int(Places::unroll)>(
                slopes, left + Places::gradient, place + 2 * Places::tile);
            const bool cut = job.general || key + columns > job.keys.length ||
                             (job.causal && key + columns - 1 > own_first);
            unsigned out[R] = {};
            if (job.general)
                add_offsets<R, columns, offsets_pitch<columns>>(
                    weights, offsets + warp * 16 * R * offsets_pitch<columns>, scale * log2_e, out);
            else if (cut)
                cut_scores<R, columns, false>(weights, job.keys.length - key,
                                              job.causal ? own_first + 1 - key : columns, out);
            weigh_singles<R, columns>(weights, slopes, unit, cut, out,
                                      [&](int r, int, int i) { return numbers[r][i / 2]; });
            const SplitWeights<R, columns> split(slopes);
            add_products<DEPTH, R, columns>(sums, factors, split, right + summed_single<DEPTH>());
        }
        if (job.apart || key + columns < (stop < end ? stop : end)) continue;
        if (stop > job.section) add_before<DEPTH, R>(sums, to, own_first, length, features);
        if (stop < end) keep_before<DEPTH, R>(sums, to, own_first, length, features);
        stop += job.section;
    }
    if (job.apart) {
        const int64_t at = (part.begin / job.section * job.items + number) * length;
        store_singles<DEPTH, R>(job.parts + at * features, sums, factors, own_first, length,
                                features);
        return;
    }
#pragma unroll
    for (int r = 0; r < R; r++) factors[r][0] = factors[r][1] = scale;
    store_singles<DEPTH, R>(to, sums, factors, own_first, length, features);
    const unsigned wrong = rows_of_nan<DEPTH, R>(sums);
    for_rows(wrong, own_first, length, [&](int64_t row) { slope_again(job, item, row); });
#endif
}

__global__ void __launch_bounds__(join_threads)
    attention_tensor_single_join_query_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    const int64_t at = (int64_t(blockIdx.x) * join_threads + threadIdx.x) / 32;
    const int64_t length = job.query.length, rows = job.items * length, row = at % length;
    if (at >= rows) return;
    const int64_t seen = row / job.section + 1;
    const int end = static_cast<int>(job.causal && seen < job.apart ? seen : int64_t(job.apart));
    if (join_row<float>(job.to, job.parts, rows, at, 0, end, job.query.features,
                        static_cast<float>(job.scale)))
        slope_again(job, Item<float>(job, at / length), row);
#endif
}

// ---- Gradients of keys and values ---------------------------------------------------------------

// A block's shared memory: keys, values, two tiles of queries and of their gradients, of their
// logsums and products, offsets.
template <int DEPTH_, int R_, int COLUMNS, int UNROLL = 4, int BLOCKS = 2,
          int WARPS = 4> struct SingleByKey {
    static constexpr int DEPTH = DEPTH_, R = R_, columns = COLUMNS;
    static constexpr int blocks = BLOCKS, threads = 32 * WARPS;
    enum { unroll = UNROLL, warps = WARPS };
    static constexpr int rows = 16 * R * WARPS;
    static constexpr int values = rows * single_pitch<DEPTH>, queries = 2 * values;
    static constexpr int tile = columns * single_pitch<DEPTH>, numbers = queries + 4 * tile;
    static constexpr int offsets = numbers + 4 * columns * 4;
    static constexpr int bytes_of_offsets = rows * offsets_pitch<columns> * 4;
};

template <class Places>
__global__ void __launch_bounds__(Places::threads, Places::blocks)
    attention_tensor_single_keys_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    constexpr int DEPTH = Places::DEPTH, R = Places::R, rows = Places::rows;
    constexpr int columns = Places::columns;
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    const Part part = part_of_block(job);
    const int64_t number = part.number, length = job.query.length, size = job.keys.length;
    const int64_t first =
        (job.tiles - 1 - part.tile) * rows; // by an order the first ones have most
    const int64_t begin = job.causal && first > part.begin ? first : part.begin;
    int64_t stop = begin / job.section * job.section + job.section; // of a section
    const int64_t end =
        job.apart && part.begin + job.section < length ? part.begin + job.section : length;
    if (job.apart && begin >= end) return;
    const Item<float> item(job, number);
    // The schedulers of a multiprocessor have a warp of each block: its rows change with the block.
    const int warp = static_cast<int>(threadIdx.x / 32 + blockIdx.x) % Places::warps;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t own_first = first + warp * 16 * R;
    float *numbers = reinterpret_cast<float *>(memory + Places::numbers);
    float *offsets = reinterpret_cast<float *>(memory + Places::offsets);
    const float scale = static_cast<float>(job.scale), unit = job.general ? ln_2 : scale;
    const uint32_t left =
        shared_address(memory) + warp * 16 * R * single_pitch<DEPTH> + left_single<DEPTH>();
    const auto load = [&](int64_t query, int stage) {
        unsigned char *to = memory + Places::queries + stage * Places::tile;
        load_singles<DEPTH, columns, Places::threads>(to, item.query, query);
        load_singles<DEPTH, columns, Places::threads>(to + 2 * Places::tile, item.gradient, query);
        static_assert(2 * columns <= Places::threads);
        const int column = static_cast<int>(threadIdx.x) % columns;
        if (threadIdx.x >= 2 * columns) return;
        const void *all = static_cast<int>(threadIdx.x) < columns ? job.logsum : job.products;
        const bool there = query + column < length;
        copy_async<4>(shared_address(numbers + stage * 2 * columns + threadIdx.x),
                      static_cast<const float *>(all) +
                          (there ? number * length + query + column : 0),
                      there ? 4 : 0);
    };
    Sums<R, DEPTH> dkeys = {}, dvalues = {};
    float ones[R][2];
#pragma unroll
    for (int r = 0; r < R; r++) ones[r][0] = ones[r][1] = 1;
    load_singles<DEPTH, rows, Places::threads>(memory, item.keys, first);
    load_singles<DEPTH, rows, Places::threads>(memory + Places::values, item.values, first);
    if (begin < end) load(begin, 0);
    const int features = job.query.features, width = job.values.features;
    float *to = static_cast<float *>(job.to) + number * size * features;
    float *more = static_cast<float *>(job.more) + number * size * width;
    int stage = 0;
#pragma unroll 1
    for (int64_t query = begin; query < end; query += columns, stage ^= 1) {
        // This tile has come, for every thread, and every thread has done with the one before.
        wait_for_copies();
        if (job.general) {
            __syncthreads();
            load_offsets<rows, columns, true>(offsets, job, item.mask, query, first);
        }
        __syncthreads();
        if (query + columns < end) load(query + columns, stage ^ 1);
        if (own_first < size && !(job.causal && query + columns - 1 < own_first)) {
            const unsigned char *right = memory + Places::queries + stage * Places::tile;
            const uint32_t place = shared_address(right) + right_single<DEPTH>();
            Sums<R, columns> weights, slopes; // by key, then by query
            multiply_features<DEPTH, R, columns, true, int(Places::unroll)>(weights, left, place);
            multiply_features<DEPTH, R, columns, true, int(Places::unroll)>(
                slopes, left + Places::values, place + 2 * Places::tile);
            const bool cut = job.general || query + columns > length ||
                             (job.causal && query < own_first + 16 * R - 1);
            unsigned out[R] = {};
            if (job.general)
                add_offsets<R, columns, offsets_pitch<columns>>(
                    weights, offsets + warp * 16 * R * offsets_pitch<columns>, scale * log2_e, out);
            else if (cut)
                cut_scores<R, columns, true>(weights, length - query,
                                             job.causal ? own_first - query : -2 * rows, out);
            const float *own_numbers = numbers + stage * 2 * columns + lane % 4 * 2;
            weigh_singles<R, columns>(weights, slopes, unit, cut, out, [&](int, int j, int i) {
                return make_float2(own_numbers[j * 8 + i % 2],
                                   own_numbers[columns + j * 8 + i % 2]);
            });
            right += summed_single<DEPTH>();
            const SplitWeights<R, columns> split_weights(weights);
            add_products<DEPTH, R, columns>(dvalues, ones, split_weights, right + 2 * Places::tile);
            const SplitWeights<R, columns> split_slopes(slopes);
            add_products<DEPTH, R, columns>(dkeys, ones, split_slopes, right);
        }
        if (job.apart || query + columns < (stop < end ? stop : end)) continue;
        if (stop - job.section > begin) {
            add_before<DEPTH, R>(dkeys, to, own_first, size, features);
            add_before<DEPTH, R>(dvalues, more, own_first, size, width);
        }
        if (stop < end) {
            keep_before<DEPTH, R>(dkeys, to, own_first, size, features);
            keep_before<DEPTH, R>(dvalues, more, own_first, size, width);
        }
        stop += job.section;
    }
    if (job.apart) {
        const int64_t at = (part.begin / job.section * job.items + number) * size;
        store_singles<DEPTH, R>(job.parts + at * features, dkeys, ones, own_first, size, features);
        store_singles<DEPTH, R>(job.more_parts + at * width, dvalues, ones, own_first, size, width);
        return;
    }
    store_singles<DEPTH, R>(more, dvalues, ones, own_first, size, width);
#pragma unroll
    for (int r = 0; r < R; r++) ones[r][0] = ones[r][1] = scale;
    store_singles<DEPTH, R>(to, dkeys, ones, own_first, size, features);
    const unsigned wrong = rows_of_nan<DEPTH, R>(dkeys) | rows_of_nan<DEPTH, R>(dvalues);
    for_rows(wrong, own_first, size, [&](int64_t row) { key_again(job, item, row); });
#endif
}

__global__ void __launch_bounds__(join_threads)
    attention_tensor_single_join_keys_kernel(const __grid_constant__ Job job) {
#if PVG_HAS_FRAGMENTS
    const int64_t at = (int64_t(blockIdx.x) * join_threads + threadIdx.x) / 32;
    const int64_t size = job.keys.length, rows = job.items * size, row = at % size;
    if (at >= rows) return;
    const int64_t unseen = job.causal ? row / job.section : 0;
    const int end = static_cast<int>(job.apart);
    const int begin = unseen < end ? static_cast<int>(unseen) : end;
    bool wrong =
        join_row<float>(job.more, job.more_parts, rows, at, begin, end, job.values.features, 1);
    wrong = join_row<float>(job.to, job.parts, rows, at, begin, end, job.query.features,
                            static_cast<float>(job.scale)) ||
            wrong;
    if (wrong) key_again(job, Item<float>(job, at / size), row);
#endif
}

// ---- On the host --------------------------------------------------------------------------------

// What a launch by tiles of `rows` rows needs, in the job and a workspace; returns the blocks.
template <class Places>
int deal(Call &call, Job *job, int64_t rows, int64_t terms, const int (&columns)[2],
         Workspace *space, unsigned *blocks) {
    job->tiles = (rows + Places::rows - 1) / Places::rows;
    const int64_t all = job->items * job->tiles;
    cut_terms(job, rows, terms, 256);
    PVG_PASS(set_apart(call, job, job->items * rows, terms, columns, all, space));
    *blocks = blocks_for(all * (job->apart ? job->apart : 1), 1);
    return PVG_OK;
}
template <class Places> int memory_of(const Job &job) {
    return Places::offsets + (job.general ? Places::bytes_of_offsets : 0);
}

template <class Queries> int launch_queries(Call &call, Job job, pvg_array *result) {
    const int64_t rows = job.query.length;
    Workspace space;
    unsigned blocks;
    job.to = result->data;
    PVG_PASS(
        deal<Queries>(call, &job, rows, job.keys.length, {job.query.features, 0}, &space, &blocks));
    PVG_LAUNCH((attention_tensor_single_query_kernel<Queries>), blocks, Queries::threads,
               memory_of<Queries>(job), call.stream, job);
    if (!job.apart) return PVG_OK;
    PVG_LAUNCH(attention_tensor_single_join_query_kernel,
               blocks_for(job.items * rows * 32, join_threads), join_threads, 0, call.stream, job);
    return PVG_OK;
}

template <class Keys> int launch_keys(Call &call, Job job, pvg_array *const *results) {
    const int64_t rows = job.keys.length;
    Workspace space;
    unsigned blocks;
    job.to = results[1]->data, job.more = results[2]->data;
    PVG_PASS(deal<Keys>(call, &job, rows, job.query.length,
                        {job.query.features, job.values.features}, &space, &blocks));
    PVG_LAUNCH((attention_tensor_single_keys_kernel<Keys>), blocks, Keys::threads,
               memory_of<Keys>(job), call.stream, job);
    if (!job.apart) return PVG_OK;
    PVG_LAUNCH(attention_tensor_single_join_keys_kernel,
               blocks_for(job.items * rows * 32, join_threads), join_threads, 0, call.stream, job);
    return PVG_OK;
}

} // namespace

int launch_single_products(Call &call, const Job &job) {
    const int64_t warps = (job.items * job.query.length + 15) / 16;
    PVG_LAUNCH(attention_tensor_single_products_kernel, blocks_for(warps * 32, threads), threads, 0,
               call.stream, job);
    return PVG_OK;
}

int launch_single_backward(Call &call, const Job &job, pvg_array *const *results) {
    const int features = job.query.features, width = job.values.features;
    const int widest = features > width ? features : width;
    const auto launch = [&](auto queries, auto keys) -> int {
        PVG_PASS(launch_queries<decltype(queries)>(call, job, results[0]));
        return launch_keys<decltype(keys)>(call, job, results);
    };
    return widest <= 32   ? launch(SingleByQuery<32, 1, 32, 4, 4>(), SingleByKey<32, 1, 16, 4, 4>())
           : widest <= 64 ? launch(SingleByQuery<64, 2, 32>(), SingleByKey<64, 2, 16>())
           : widest <= 80 ? launch(SingleByQuery<80, 1, 16, 5, 3>(), SingleByKey<80, 1, 16, 5, 2>())
           : widest <= 96 ? launch(SingleByQuery<96, 1, 16, 4, 2>(), SingleByKey<96, 1, 16, 4, 2>())
                          : launch(SingleByQuery<128, 1, 16>(), SingleByKey<128, 1, 16>());
}

} // namespace attention
} // namespace pvg
