// pvg_attention_backward of float16 and bfloat16 by warpgroup products, see attention_wgmma.cuh.
//
// The formulas and the kernels are those of attention_backward.cu: a tile's own rows are queries
// and rows of the result's gradient, beside keys and values, or they are keys and values, beside
// the other two. Scores are own left rows by left rows beside, their gradients begin as the product
// of the right ones; what is made of them is the left operand of products with the rows beside.
#ifndef PVG_SIMULATOR
#include "kernels/attention_wgmma.cuh"

namespace pvg::attention {

// BY_KEY: own rows are keys. COLUMNS: rows beside, of a tile. RUNS_ON: what a tile's sums are made
// of stays in registers beside the next tile's scores, and its products go on.
template <class T_, int DEPTH, bool BY_KEY, int COLUMNS, int STAGES, bool RUNS_ON, int OWNS = 2>
struct WgmmaBackward {
    using T = T_;
    static constexpr bool by_key = BY_KEY, runs_on = RUNS_ON;
    static constexpr int owns = OWNS;
    static constexpr int depth = DEPTH, columns = COLUMNS, stages = STAGES;
    static constexpr int warpgroups = 2, rows = 64 * warpgroups, threads = 128 * (warpgroups + 1);
    static constexpr int own_bytes = rows * DEPTH * 2, half_bytes = COLUMNS * DEPTH * 2;
    static constexpr int stages_at = 2 * OWNS * own_bytes,
                         numbers_at = stages_at + STAGES * 2 * half_bytes;
    static constexpr int barriers_at = numbers_at + STAGES * 2 * COLUMNS * 4;
    static constexpr int shared_bytes = hopper::tile_alignment + barriers_at + (4 + 2 * STAGES) * 8;
    static_assert(shared_bytes <= 227 << 10, "more shared memory than there is");
};

struct BackwardMaps {
    CUtensorMap own[2], beside[2]; // left, right
};

namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Where shared memory holds what: own rows of a piece of work and of the next one, and the stages
// of rows beside.
template <class Tile> struct BackwardRing {
    uint32_t base;

    __device__ __forceinline__ uint32_t own(unsigned count, int side) const {
        return base + (count % Tile::owns * 2 + side) * Tile::own_bytes;
    }
    __device__ __forceinline__ uint32_t beside(unsigned at, int side) const {
        return base + Tile::stages_at + (at % Tile::stages * 2 + side) * Tile::half_bytes;
    }
    // Of the queries beside: what is subtracted from a score, then from a product.
    __device__ __forceinline__ uint32_t numbers(unsigned at) const {
        return base + Tile::numbers_at + at % Tile::stages * (2 * Tile::columns * 4);
    }
    __device__ __forceinline__ uint32_t own_full(unsigned count) const {
        return base + Tile::barriers_at + count % Tile::owns * 16;
    }
    __device__ __forceinline__ uint32_t own_empty(unsigned count) const {
        return own_full(count) + 8;
    }
    __device__ __forceinline__ int own_phase(unsigned count) const {
        return count / Tile::owns & 1;
    }
    __device__ __forceinline__ uint32_t full(unsigned at) const {
        return base + Tile::barriers_at + 32 + at % Tile::stages * 8;
    }
    __device__ __forceinline__ uint32_t empty(unsigned at) const {
        return full(at) + Tile::stages * 8;
    }
    __device__ __forceinline__ int phase(unsigned at) const { return at / Tile::stages & 1; }
};

// The tiles beside that a tile takes part with.
struct BackwardWay {
    int first, begin, end; // own row, tiles
};
template <class Tile>
__device__ __forceinline__ BackwardWay way_of(const WgmmaJob &job, const WgmmaWork &work) {
    if constexpr (Tile::by_key) { // the first keys come first: they have the most queries
        const int first = static_cast<int>(job.tiles - 1 - work.tile) * Tile::rows;
        const int end = (job.length + Tile::columns - 1) / Tile::columns;
        return {first, min(job.causal ? first / Tile::columns : 0, end), end};
    } else {
        const int first = static_cast<int>(work.tile) * Tile::rows;
        const int last = min(first + Tile::rows, job.length);
        const int end = job.causal ? min(last, job.size) : job.size;
        return {first, 0, (end + Tile::columns - 1) / Tile::columns};
    }
}

// ---- The warp that copies -----------------------------------------------------------------------

// Numbers of the queries of a tile. One that is not there has no weight with any key.
template <class Tile>
__device__ __forceinline__ void put_numbers(uint32_t to, const WgmmaJob &job, unsigned item,
                                            int first) {
    const int lane = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < Tile::columns / 32; i++) {
        const int query = first + i * 32 + lane;
        const bool there = query < job.length;
        const int64_t at = there ? int64_t(item) * job.length + query : 0;
        const float logsum = there ? job.logsum[at] * log2_e : INFINITY;
        const float product = there ? job.products[at] : 0.0f;
        hopper::write_number(to + (i * 32 + lane) * 4, logsum);
        hopper::write_number(to + (Tile::columns + i * 32 + lane) * 4, product);
    }
}

template <class Tile>
__device__ __forceinline__ void copy_operands(const BackwardRing<Tile> &ring,
                                              const BackwardMaps &maps, const WgmmaJob &job) {
    using namespace hopper;
    constexpr int all[3] = {1, 1, 1};
    WgmmaWork work;
    unsigned at = 0;
    for (unsigned round = 0, count = 0; find_work(job, &round, &work); round++, count++) {
        const BackwardWay way = way_of<Tile>(job, work);
        int leading[3];
        work.locate(job, leading);
        const auto &query = job.step[0], &keys = job.step[1], &values = job.step[2];
        wait(ring.own_empty(count), ring.own_phase(count) ^ 1);
        if (threadIdx.x == 0) {
            expect_bytes(ring.own_full(count), 2 * Tile::own_bytes);
            load_slabs<Tile::rows, Tile::depth>(ring.own(count, 0), maps.own, ring.own_full(count),
                                                way.first, leading, Tile::by_key ? keys : query);
            load_slabs<Tile::rows, Tile::depth>(ring.own(count, 1), maps.own + 1,
                                                ring.own_full(count), way.first, leading,
                                                Tile::by_key ? values : all);
        }
        for (int block = way.begin; block < way.end; block++, at++) {
            const int row = block * Tile::columns;
            wait(ring.empty(at), ring.phase(at) ^ 1);
            if constexpr (Tile::by_key) { // each lane tells of its own numbers
                put_numbers<Tile>(ring.numbers(at), job, work.item, row);
                if (threadIdx.x != 0) arrive(ring.full(at));
            }
            if (threadIdx.x == 0) {
                expect_bytes(ring.full(at), 2 * Tile::half_bytes);
                load_slabs<Tile::columns, Tile::depth>(ring.beside(at, 0), maps.beside,
                                                       ring.full(at), row, leading,
                                                       Tile::by_key ? query : keys);
                load_slabs<Tile::columns, Tile::depth>(ring.beside(at, 1), maps.beside + 1,
                                                       ring.full(at), row, leading,
                                                       Tile::by_key ? all : values);
            }
        }
    }
}

// ---- Weights and gradients of scores ------------------------------------------------------------

// What is subtracted from a score and from a product: of own queries, of which a thread has two, or
// of those beside.
template <class Tile> struct Numbers {
    float logsum[2], product[2];
    uint32_t beside;

    __device__ __forceinline__ void load(const WgmmaJob &job, unsigned item, int row) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const bool there = row + h * 8 < job.length;
            const int64_t at = there ? int64_t(item) * job.length + row + h * 8 : 0;
            logsum[h] = there ? job.logsum[at] * log2_e : INFINITY;
            product[h] = there ? job.products[at] : 0.0f;
        }
    }
    // `which`: 0 or 1; of columns j * 8 + i of the thread's, for i = 0 and 1, of row half h.
    template <int WHICH> __device__ __forceinline__ float2 of(int j, int h) const {
        if constexpr (Tile::by_key) {
            return hopper::read_pair(beside + (WHICH * Tile::columns + j * 8) * 4);
        } else {
            const float one = WHICH ? product[h] : logsum[h];
            return make_float2(one, one);
        }
    }
};

template <class Tile>
__device__ __forceinline__ void weigh(float (&scores)[Tile::columns / 2], float unit,
                                      const Numbers<Tile> &numbers) {
#pragma unroll
    for (int j = 0; j < Tile::columns / 8; j++) {
        float2 less = numbers.template of<0>(j, 0);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (!Tile::by_key) less = numbers.template of<0>(j, h);
            float *pair = scores + j * 4 + h * 2;
            pair[0] = quick_exp2(fmaf(pair[0], unit, -less.x));
            pair[1] = quick_exp2(fmaf(pair[1], unit, -less.y));
        }
    }
}

template <class Tile>
__device__ __forceinline__ void find_slopes(float (&slopes)[Tile::columns / 2],
                                            const float (&weights)[Tile::columns / 2],
                                            const Numbers<Tile> &numbers) {
#pragma unroll
    for (int j = 0; j < Tile::columns / 8; j++) {
        float2 less = numbers.template of<1>(j, 0);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (!Tile::by_key) less = numbers.template of<1>(j, h);
            const int at = j * 4 + h * 2;
            slopes[at] = weights[at] * (slopes[at] - less.x);
            slopes[at + 1] = weights[at + 1] * (slopes[at + 1] - less.y);
        }
    }
}

// Columns that take part with the thread's rows: from begin[h] on, below end[h].
struct Part {
    int begin[2], end[2];
    bool whole; // all of a tile's, of all rows of the warpgroup
};
template <class Tile>
__device__ __forceinline__ Part part_of(const WgmmaJob &job, int row, int column) {
    constexpr int far = 1 << 30;
    Part part;
    const int left = (Tile::by_key ? job.length : job.size) - column, first = row / 64 * 64;
    part.whole =
        left >= Tile::columns &&
        !(job.causal && (Tile::by_key ? column < first + 63 : column + Tile::columns - 1 > first));
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int diagonal = row + h * 8 - column;
        part.begin[h] = job.causal && Tile::by_key ? diagonal : -far;
        part.end[h] = job.causal && !Tile::by_key ? min(left, diagonal + 1) : left;
    }
    return part;
}
template <int COLUMNS>
__device__ __forceinline__ void clear_others(float (&values)[COLUMNS / 2], const Part &part) {
    const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int own = column + j * 8 + i;
                if (own < part.begin[h] || own >= part.end[h]) values[j * 4 + h * 2 + i] = 0;
            }
}

// ---- A warpgroup's way through its work ---------------------------------------------------------

// Sums with the left rows beside, by key also with the right ones.
template <class Tile> struct BackwardSums {
    float left[Tile::depth / 2], right[Tile::by_key ? Tile::depth / 2 : 1];
};

template <class Tile>
__device__ __forceinline__ unsigned
add_all(const BackwardRing<Tile> &ring, BackwardSums<Tile> &sums, Numbers<Tile> &numbers,
        const WgmmaJob &job, const BackwardWay &way, unsigned count, unsigned at) {
    using namespace hopper;
    using T = typename Tile::T;
    constexpr int depth = Tile::depth, columns = Tile::columns;
    const bool speaks = threadIdx.x % 32 == 0; // for the warp, at barriers
    const uint32_t own = (threadIdx.x / 128 - 1) * 64 * 128, row = way.first + row_of_thread();
    WgmmaWeights<columns> weights, slopes;
    // The products with a stage are done, if there are any.
    const auto release = [&](unsigned before, bool any) {
        pin_sums(sums.left), pin_weights(slopes);
        if constexpr (Tile::by_key) pin_sums(sums.right), pin_weights(weights);
        if (speaks && any) arrive(ring.empty(before));
    };
#pragma unroll 1
    for (int block = way.begin; block < way.end; block++, at++) {
        float exact[columns / 2], exact_slopes[columns / 2];
        wait(ring.full(at), ring.phase(at));
        start_features<T, depth, Tile::rows, columns>(exact, ring.own(count, 0) + own,
                                                      ring.beside(at, 0));
        start_features<T, depth, Tile::rows, columns>(exact_slopes, ring.own(count, 1) + own,
                                                      ring.beside(at, 1));
        wait_for_products<1>(); // those of the block before, too
        pin_sums(exact);
        if constexpr (Tile::runs_on) release(at - 1, block > way.begin);
        const Part part = part_of<Tile>(job, row, block * columns);
        if constexpr (Tile::by_key) numbers.beside = ring.numbers(at) + threadIdx.x % 4 * 8;
        weigh<Tile>(exact, job.unit, numbers);
        pin_sums(exact);
        // A branch is also what keeps the compiler from moving the above behind the next wait.
        if (!part.whole) clear_others<columns>(exact, part);
        wait_for_products<0>(); // no left operand may be made while products are at work
        pin_sums(exact_slopes);
        find_slopes<Tile>(exact_slopes, exact, numbers);
        if (!part.whole) clear_others<columns>(exact_slopes, part);
        round_weights<T, columns>(slopes, exact_slopes);
        if constexpr (Tile::by_key) {
            round_weights<T, columns>(weights, exact);
            start_sums<T, depth, columns>(sums.right, weights, ring.beside(at, 1), 1);
        }
        start_sums<T, depth, columns>(sums.left, slopes, ring.beside(at, 0), 1);
        if constexpr (!Tile::runs_on) {
            wait_for_products<0>();
            release(at, true);
        }
    }
    if constexpr (Tile::runs_on) {
        wait_for_products<0>();
        release(at - 1, way.begin < way.end);
    }
    if (speaks) arrive(ring.own_empty(count));
    return at;
}

template <class Tile>
__device__ __forceinline__ void add_all_works(const BackwardRing<Tile> &ring, const WgmmaJob &job) {
    using T = typename Tile::T;
    WgmmaWork work;
    unsigned at = 0;
    for (unsigned round = 0, count = 0; find_work(job, &round, &work); round++, count++) {
        const BackwardWay way = way_of<Tile>(job, work);
        const int row = way.first + row_of_thread();
        BackwardSums<Tile> sums = {};
        Numbers<Tile> numbers = {};
        if constexpr (!Tile::by_key) numbers.load(job, work.item, row);
        hopper::wait(ring.own_full(count), ring.own_phase(count));
        at = add_all<Tile>(ring, sums, numbers, job, way, count, at);
        const float scale[2] = {job.scale, job.scale}, one[2] = {1, 1};
        store_sums<T, Tile::depth>(job.to, sums.left, scale, work.item, row,
                                   Tile::by_key ? job.size : job.length, job.features);
        if constexpr (Tile::by_key)
            store_sums<T, Tile::depth>(job.more, sums.right, one, work.item, row, job.size,
                                       job.width);
    }
}

#endif

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    attention_wgmma_backward_kernel(const __grid_constant__ BackwardMaps maps,
                                    const __grid_constant__ WgmmaJob job) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t start = shared_address(shared);
    const BackwardRing<Tile> ring = {(start + hopper::tile_alignment - 1) &
                                     ~(hopper::tile_alignment - 1u)};
    if (threadIdx.x == 0) {
        constexpr int readers = 4 * Tile::warpgroups; // warps
        for (unsigned i = 0; i < Tile::owns; i++) {
            hopper::make_barrier(ring.own_full(i), 1);
            hopper::make_barrier(ring.own_empty(i), readers);
        }
        for (unsigned s = 0; s < Tile::stages; s++) {
            hopper::make_barrier(ring.full(s), Tile::by_key ? 32 : 1);
            hopper::make_barrier(ring.empty(s), readers);
        }
        hopper::publish_barriers();
        for (int side = 0; side < 2; side++) {
            hopper::prefetch_map(&maps.own[side]);
            hopper::prefetch_map(&maps.beside[side]);
        }
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        hopper::give_registers<24>();
        if (threadIdx.x < 32) copy_operands<Tile>(ring, maps, job);
    } else {
        hopper::take_registers<240>();
        add_all_works<Tile>(ring, job);
    }
#endif
}

// ---- On the host --------------------------------------------------------------------------------

template <class Tile> int launch(Call &call, const Job &job, void *to, void *more) {
    constexpr int dtype = std::is_same_v<typename Tile::T, Half> ? PVG_FLOAT16 : PVG_BFLOAT16;
    const Walk<5> &walk = job.leading.walk;
    BackwardMaps maps;
    // Rows of the gradient are counted as items are.
    CUtensorMap *const queries = Tile::by_key ? maps.beside : maps.own;
    CUtensorMap *const keys = Tile::by_key ? maps.own : maps.beside;
    constexpr int of_queries = Tile::by_key ? Tile::columns : Tile::rows;
    constexpr int of_keys = Tile::by_key ? Tile::rows : Tile::columns;
    PVG_PASS(make_map(queries, dtype, job.query, walk, 1, 1, of_queries));
    PVG_PASS(make_map(queries + 1, dtype, job.gradient, walk, 0,
                      job.gradient.row * job.gradient.length, of_queries));
    PVG_PASS(make_map(keys, dtype, job.keys, walk, 2, 1, of_keys));
    PVG_PASS(make_map(keys + 1, dtype, job.values, walk, 3, 1, of_keys));
    WgmmaJob own = Tile::by_key
                       ? describe_wgmma(job, job.keys.length, Tile::rows, job.query.length)
                       : describe_wgmma(job, job.query.length, Tile::rows, job.keys.length);
    own.to = to, own.more = more;
    unsigned blocks;
    PVG_PASS(blocks_for_wgmma(call, &own, &blocks));
    PVG_LAUNCH((attention_wgmma_backward_kernel<Tile>), blocks, Tile::threads, Tile::shared_bytes,
               call.stream, maps, own);
    return PVG_OK;
}

template <class T, int DEPTH>
int launch_both(Call &call, const Job &job, pvg_array *const *results) {
    using Queries = WgmmaBackward<T, DEPTH, false, 64, 3, true>;
    using Keys = WgmmaBackward<T, DEPTH, true, 64, 3, DEPTH == 64>;
    PVG_PASS(launch<Queries>(call, job, results[0]->data, nullptr));
    return launch<Keys>(call, job, results[1]->data, results[2]->data);
}

template <class T> int launch_type(Call &call, const Job &job, pvg_array *const *results) {
    return job.query.features <= 64 && job.values.features <= 64
               ? launch_both<T, 64>(call, job, results)
               : launch_both<T, 128>(call, job, results);
}

} // namespace

int launch_wgmma_backward(Call &call, int dtype, const Job &job, pvg_array *const *results) {
    return dtype == PVG_FLOAT16 ? launch_type<Half>(call, job, results)
                                : launch_type<BFloat16>(call, job, results);
}

} // namespace pvg::attention
#endif
