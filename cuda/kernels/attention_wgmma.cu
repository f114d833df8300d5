// pvg_attention of float16 and bfloat16 by warpgroup products, see attention_wgmma.cuh: which
// calls, their tensor maps, and the kernel.
//
// A tile is of queries, and keys and values come through a ring each. While a warpgroup makes
// weights of a tile's scores, the tensor cores have its products of the weights before with their
// values, and those of the other warpgroup: the warpgroups take turns in giving out products. The
// last values of a piece of work are multiplied beside the first keys of the next one.
#ifndef PVG_SIMULATOR
#include "kernels/attention_wgmma.cuh"
#include "runtime/architecture.cuh"
#include "runtime/device.cuh"

namespace pvg::attention {

// T: Half or BFloat16. DEPTH: features that there is room for. KEYS: of a tile.
template <class T_, int DEPTH, int WARPGROUPS, int KEYS, int STAGES> struct WgmmaForward {
    using T = T_;
    static constexpr int depth = DEPTH, keys = KEYS, warpgroups = WARPGROUPS, stages = STAGES;
    static constexpr int rows = 64 * WARPGROUPS; // queries of a block
    static constexpr int threads = 128 * (WARPGROUPS + 1);
    static constexpr int query_bytes = rows * DEPTH * 2, stage_bytes = KEYS * DEPTH * 2;
    static constexpr int keys_at = 2 * query_bytes, values_at = keys_at + STAGES * stage_bytes;
    static constexpr int barriers_at = values_at + STAGES * stage_bytes;
    static constexpr int shared_bytes = hopper::tile_alignment + barriers_at + (4 + 4 * STAGES) * 8;
    static_assert(shared_bytes <= 227 << 10, "more shared memory than there is");
    // Registers of a thread of the warpgroup that copies, and of the others (hopper.cuh).
    static constexpr int few = WARPGROUPS == 3 ? 32 : 24;
    static constexpr int many = WARPGROUPS == 3 ? 160 : 240;
};

struct ForwardMaps { CUtensorMap query, keys, values; };

namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

template <class Tile> __device__ __forceinline__ int first_of(const WgmmaWork &work) {
    return static_cast<int>(work.tile) * Tile::rows;
}
// Tiles of keys that a tile of queries needs.
template <class Tile>
__device__ __forceinline__ int blocks_of(const WgmmaJob &job, const WgmmaWork &work) {
    const int end = min(first_of<Tile>(work) + Tile::rows, job.length);
    return ((job.causal ? min(end, job.size) : job.size) + Tile::keys - 1) / Tile::keys;
}

template <class Tile> struct WgmmaRings {
    uint32_t base;

    // Of piece of work number `count` of the block; keys and values count tiles.
    __device__ __forceinline__ uint32_t query(unsigned count) const {
        return base + count % 2 * Tile::query_bytes;
    }
    __device__ __forceinline__ uint32_t keys(unsigned at) const {
        return base + Tile::keys_at + at % Tile::stages * Tile::stage_bytes;
    }
    __device__ __forceinline__ uint32_t values(unsigned at) const {
        return base + Tile::values_at + at % Tile::stages * Tile::stage_bytes;
    }
    __device__ __forceinline__ uint32_t query_full(unsigned count) const {
        return base + Tile::barriers_at + count % 2 * 16;
    }
    __device__ __forceinline__ uint32_t query_empty(unsigned count) const {
        return query_full(count) + 8;
    }
    __device__ __forceinline__ int query_phase(unsigned count) const { return count / 2 & 1; }
    __device__ __forceinline__ uint32_t keys_full(unsigned at) const {
        return base + Tile::barriers_at + 32 + at % Tile::stages * 8;
    }
    __device__ __forceinline__ uint32_t keys_empty(unsigned at) const {
        return keys_full(at) + Tile::stages * 8;
    }
    __device__ __forceinline__ uint32_t values_full(unsigned at) const {
        return keys_full(at) + Tile::stages * 16;
    }
    __device__ __forceinline__ uint32_t values_empty(unsigned at) const {
        return keys_full(at) + Tile::stages * 24;
    }
    __device__ __forceinline__ int phase(unsigned at) const { return at / Tile::stages & 1; }
};

// ---- The thread that copies ---------------------------------------------------------------------

template <class Tile> struct ForwardCopies {
    const WgmmaRings<Tile> &rings;
    const ForwardMaps &maps;
    const WgmmaJob &job;

    __device__ __forceinline__ void load_query(const WgmmaWork &work, unsigned count) const {
        int leading[3];
        work.locate(job, leading);
        const uint32_t full = rings.query_full(count);
        hopper::wait(rings.query_empty(count), rings.query_phase(count) ^ 1);
        hopper::expect_bytes(full, Tile::query_bytes);
        load_slabs<Tile::rows, Tile::depth>(rings.query(count), &maps.query, full,
                                            first_of<Tile>(work), leading, job.step[0]);
    }
    __device__ __forceinline__ void load_keys(const WgmmaWork &work, unsigned at, int block) const {
        int leading[3];
        work.locate(job, leading);
        hopper::wait(rings.keys_empty(at), rings.phase(at) ^ 1);
        hopper::expect_bytes(rings.keys_full(at), Tile::stage_bytes);
        load_slabs<Tile::keys, Tile::depth>(rings.keys(at), &maps.keys, rings.keys_full(at),
                                            block * Tile::keys, leading, job.step[1]);
    }
    __device__ __forceinline__ void load_values(const WgmmaWork &work, unsigned at,
                                                int block) const {
        int leading[3];
        work.locate(job, leading);
        hopper::wait(rings.values_empty(at), rings.phase(at) ^ 1);
        hopper::expect_bytes(rings.values_full(at), Tile::stage_bytes);
        load_slabs<Tile::keys, Tile::depth>(rings.values(at), &maps.values, rings.values_full(at),
                                            block * Tile::keys, leading, job.step[2]);
    }
    // In the order of their use: keys of a tile, then values of the one before.
    __device__ __forceinline__ void load_all() const {
        WgmmaWork work, next;
        unsigned at = 0, round = 0, count = 0;
        if (!find_work(job, &round, &work)) return;
        load_query(work, count);
        load_keys(work, at, 0);
        for (bool more = true; more; work = next, count++) {
            more = find_work(job, &++round, &next);
            const int blocks = blocks_of<Tile>(job, work);
            for (int block = 0; block < blocks; block++, at++) {
                if (block + 1 < blocks) {
                    load_keys(work, at + 1, block + 1);
                } else if (more) {
                    load_query(next, count + 1);
                    load_keys(next, at + 1, 0);
                }
                load_values(work, at, block);
            }
        }
    }
};

// ---- From scores to weights ---------------------------------------------------------------------

// A thread has, of row lane / 4 of its warp's 16 and of that 8 further down, two neighbours of each
// eight columns (wgmma.cuh). `most` and `total`: of both rows.

// Columns of row half h from end[h] on take no part.
template <int KEYS>
__device__ __forceinline__ void cut_scores(float (&scores)[KEYS / 2], const int (&end)[2]) {
    const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int left = end[h] - column;
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (j * 8 + i >= left) scores[j * 4 + h * 2 + i] = -INFINITY;
    }
}

// Scores become powers of two beside the largest so far. The thread's part of their sum is kept;
// what was summed before is to be multiplied by factors.
template <int KEYS>
__device__ __forceinline__ void weigh(float (&scores)[KEYS / 2], float unit, float (&most)[2],
                                      float (&total)[2], float (&factors)[2]) {
    float found[2][2], sum[2][2]; // of even columns and of odd ones: shorter chains
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            found[h][i] = scores[h * 2 + i];
#pragma unroll
            for (int j = 1; j < KEYS / 8; j++)
                found[h][i] = fmaxf(found[h][i], scores[j * 4 + h * 2 + i]);
        }
        float largest = fmaxf(most[h], fmaxf(found[h][0], found[h][1]));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        const float base = largest == -INFINITY ? 0.0f : largest * unit; // no key so far
        factors[h] = quick_exp2(fmaf(most[h], unit, -base));
        most[h] = largest;
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float &score = scores[j * 4 + h * 2 + i];
                score = quick_exp2(fmaf(score, unit, -base));
                sum[h][i] = j ? sum[h][i] + score : score;
            }
        total[h] = total[h] * factors[h] + (sum[h][0] + sum[h][1]);
    }
}

// ---- A warpgroup's way through its work ---------------------------------------------------------

// Its turn to give out products; afterwards that of the next warpgroup. Barrier 0 is the block's.
template <class Tile> __device__ __forceinline__ void take_turn(int warpgroup) {
    hopper::wait_for_turn(1 + warpgroup);
}
template <class Tile> __device__ __forceinline__ void pass_turn(int warpgroup) {
    hopper::give_turn(warpgroup + 1 < Tile::warpgroups ? warpgroup + 2 : 1);
}

// What a warpgroup has of its piece of work.
template <class Tile> struct ForwardState {
    using T = typename Tile::T;
    float scores[Tile::keys / 2], sums[Tile::depth / 2], most[2], total[2];
    WgmmaWeights<Tile::keys> weights;

    __device__ __forceinline__ void start_scores(const WgmmaRings<Tile> &rings, unsigned count,
                                                 unsigned at) {
        const uint32_t own = (threadIdx.x / 128 - 1) * 64 * 128;
        start_features<T, Tile::depth, Tile::rows, Tile::keys>(scores, rings.query(count) + own,
                                                               rings.keys(at));
    }
    __device__ __forceinline__ void start_values(const WgmmaRings<Tile> &rings, unsigned at,
                                                 int accumulate) {
        hopper::wait(rings.values_full(at), rings.phase(at));
        start_sums<T, Tile::depth, Tile::keys>(sums, weights, rings.values(at), accumulate);
    }
    // After the products of values.
    __device__ __forceinline__ void release_values(const WgmmaRings<Tile> &rings, unsigned at) {
        hopper::pin_sums(sums);
        pin_weights(weights);
        if (threadIdx.x % 128 == 0) hopper::arrive(rings.values_empty(at));
    }
    __device__ __forceinline__ void release_keys(const WgmmaRings<Tile> &rings, unsigned at) {
        hopper::pin_sums(scores);
        if (threadIdx.x % 128 == 0) hopper::arrive(rings.keys_empty(at));
    }
    // Scores of a tile of keys become what is still to be rounded; factors: for what was summed.
    __device__ __forceinline__ void weigh_block(float (&factors)[2], const WgmmaJob &job, int row,
                                                int block) {
        const int key = block * Tile::keys, left = job.size - key;
        if (left < Tile::keys || (job.causal && key + Tile::keys - 1 > row / 64 * 64)) {
            const int seen = job.causal ? row + 1 - key : Tile::keys;
            const int end[2] = {min(left, seen), min(left, job.causal ? seen + 8 : Tile::keys)};
            cut_scores<Tile::keys>(scores, end);
        }
        weigh<Tile::keys>(scores, job.unit, most, total, factors);
        hopper::pin_sums(scores);
    }
    __device__ __forceinline__ void round() { round_weights<T, Tile::keys>(weights, scores); }

    __device__ __forceinline__ void store(const WgmmaJob &job, unsigned item, int row) const {
        float factors[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float sum = total[h];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            factors[h] = 1 / sum; // of no key infinity: 0 times it is NaN
            if (job.more && threadIdx.x % 4 == 0 && row + h * 8 < job.length)
                static_cast<float *>(job.more)[int64_t(item) * job.length + row + h * 8] =
                    (most[h] * job.unit + log2f(sum)) * ln_2;
        }
        store_sums<T, Tile::depth>(job.to, sums, factors, item, row, job.length, job.width);
    }
};

// From the scores of a piece of work's first tile to the weights of its last one; returns the
// last one's place.
template <class Tile>
__device__ __forceinline__ unsigned attend(const WgmmaRings<Tile> &rings, ForwardState<Tile> &state,
                                           const WgmmaJob &job, int row, int blocks, unsigned count,
                                           unsigned at) {
    using namespace hopper;
    const int warpgroup = static_cast<int>(threadIdx.x) / 128 - 1;
    float factors[2];
    state.most[0] = state.most[1] = -INFINITY, state.total[0] = state.total[1] = 0;
    state.weigh_block(factors, job, row, 0);
    state.round();
    if (blocks > 1) wait(rings.keys_full(at + 1), rings.phase(at + 1));
#pragma unroll 1
    for (int block = 1; block < blocks; block++, at++) {
        take_turn<Tile>(warpgroup);
        state.start_scores(rings, count, at + 1);
        state.start_values(rings, at, block > 1);
        pass_turn<Tile>(warpgroup);
        wait_for_products<1>();
        state.release_keys(rings, at + 1);
        state.weigh_block(factors, job, row, block);
        // The loop in here is also what keeps the compiler from moving all of the above, behind
        // the wait for the products that it is to go on beside.
        if (block + 1 < blocks) wait(rings.keys_full(at + 2), rings.phase(at + 2));
        wait_for_products<0>();
        state.release_values(rings, at);
#pragma unroll
        for (int i = 0; i < Tile::depth / 2; i++) state.sums[i] *= factors[i / 2 % 2];
        state.round();
    }
    if (threadIdx.x % 128 == 0) arrive(rings.query_empty(count));
    return at;
}

template <class Tile>
__device__ __forceinline__ void attend_to_all(const WgmmaRings<Tile> &rings, const WgmmaJob &job) {
    using namespace hopper;
    const int warpgroup = static_cast<int>(threadIdx.x) / 128 - 1;
    if (warpgroup + 1 == Tile::warpgroups) pass_turn<Tile>(warpgroup); // the first one's first turn
    WgmmaWork work, next;
    ForwardState<Tile> state;
    unsigned at = 0, round = 0, count = 0;
    if (!find_work(job, &round, &work)) return;
    bool more = find_work(job, &++round, &next);
    wait(rings.query_full(0), 0);
    wait(rings.keys_full(0), 0);
    state.start_scores(rings, 0, 0);
    wait_for_products<0>();
    state.release_keys(rings, 0);
    for (;; count++, at++) {
        const int row = first_of<Tile>(work) + row_of_thread(), blocks = blocks_of<Tile>(job, work);
        const unsigned item = work.item;
        at = attend<Tile>(rings, state, job, row, blocks, count, at);
        if (!more) {
            if (warpgroup == 0) take_turn<Tile>(0); // so that no turn is left over
            state.start_values(rings, at, blocks > 1);
            wait_for_products<0>();
            state.release_values(rings, at);
            state.store(job, item, row);
            return;
        }
        wait(rings.query_full(count + 1), rings.query_phase(count + 1));
        wait(rings.keys_full(at + 1), rings.phase(at + 1));
        take_turn<Tile>(warpgroup);
        state.start_scores(rings, count + 1, at + 1);
        state.start_values(rings, at, blocks > 1);
        pass_turn<Tile>(warpgroup);
        work = next;
        more = find_work(job, &++round, &next); // while the tensor cores are at work
        wait_for_products<0>();
        state.release_values(rings, at);
        state.release_keys(rings, at + 1);
        state.store(job, item, row);
    }
}

#endif

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    attention_wgmma_kernel(const __grid_constant__ ForwardMaps maps,
                           const __grid_constant__ WgmmaJob job) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t start = shared_address(shared);
    const WgmmaRings<Tile> rings = {(start + hopper::tile_alignment - 1) &
                                    ~(hopper::tile_alignment - 1u)};
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < 2; i++) {
            hopper::make_barrier(rings.query_full(i), 1);
            hopper::make_barrier(rings.query_empty(i), Tile::warpgroups);
        }
        for (unsigned s = 0; s < Tile::stages; s++) {
            hopper::make_barrier(rings.keys_full(s), 1);
            hopper::make_barrier(rings.keys_empty(s), Tile::warpgroups);
            hopper::make_barrier(rings.values_full(s), 1);
            hopper::make_barrier(rings.values_empty(s), Tile::warpgroups);
        }
        hopper::publish_barriers();
        hopper::prefetch_map(&maps.query);
        hopper::prefetch_map(&maps.keys);
        hopper::prefetch_map(&maps.values);
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        hopper::give_registers<Tile::few>();
        if (threadIdx.x == 0) ForwardCopies<Tile>{rings, maps, job}.load_all();
    } else {
        hopper::take_registers<Tile::many>();
        attend_to_all<Tile>(rings, job);
    }
#endif
}

// ---- On the host --------------------------------------------------------------------------------

template <class T, class Tile> int launch(Call &call, const Job &job) {
    constexpr int dtype = std::is_same_v<T, Half> ? PVG_FLOAT16 : PVG_BFLOAT16;
    const Walk<5> &walk = job.leading.walk;
    ForwardMaps maps;
    PVG_PASS(make_map(&maps.query, dtype, job.query, walk, 1, 1, Tile::rows));
    PVG_PASS(make_map(&maps.keys, dtype, job.keys, walk, 2, 1, Tile::keys));
    PVG_PASS(make_map(&maps.values, dtype, job.values, walk, 3, 1, Tile::keys));
    WgmmaJob own = describe_wgmma(job, job.query.length, Tile::rows, job.keys.length);
    unsigned blocks;
    PVG_PASS(blocks_for_wgmma(call, &own, &blocks));
    PVG_LAUNCH((attention_wgmma_kernel<Tile>), blocks, Tile::threads, Tile::shared_bytes,
               call.stream, maps, own);
    return PVG_OK;
}

template <class T> int launch_type(Call &call, const Job &job) {
    if (job.query.features <= 64 && job.values.features <= 64)
        return launch<T, WgmmaForward<T, 64, 2, 128, 4>>(call, job);
    return launch<T, WgmmaForward<T, 128, 2, 128, 2>>(call, job);
}

// Whether TMA can read the rows of all items.
bool is_for_tma(const Rows &rows, const Walk<5> &walk, int operand) {
    if (!rows.vectors || rows.features % 8 != 0) return false;
    if (rows.length > 1 && !hopper::is_tma_stride(rows.row * 2)) return false;
    for (int i = 0; i < walk.ndim; i++) {
        const int64_t stride = walk.strides[operand][i];
        if (stride != 0 && !hopper::is_tma_stride(stride * 2)) return false;
    }
    return true;
}

} // namespace

int make_map(CUtensorMap *map, int dtype, const Rows &rows, const Walk<5> &walk, int operand,
             int64_t unit, int together) {
    hopper::TensorView view = {};
    view.type =
        dtype == PVG_FLOAT16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    view.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    view.data = rows.data;
    view.rank = 2 + most_leading;
    view.size[0] = static_cast<uint64_t>(rows.features);
    view.size[1] = static_cast<uint64_t>(rows.length);
    // The distance of what there is only one of is not used, but has to be a possible one.
    const int64_t row = rows.length > 1 ? rows.row : rows.features;
    view.stride[0] = static_cast<uint64_t>(row * 2);
    for (int i = 0; i < most_leading; i++) {
        const int dimension = walk.ndim - 1 - i;
        const int64_t stride = dimension >= 0 ? walk.strides[operand][dimension] * unit : 0;
        view.size[2 + i] = stride ? static_cast<uint64_t>(walk.shape[dimension]) : 1;
        view.stride[1 + i] = static_cast<uint64_t>((stride ? stride : row) * 2);
    }
    view.box[0] = 64, view.box[1] = static_cast<uint32_t>(together);
    view.box[2] = view.box[3] = view.box[4] = 1;
    return hopper::make_tensor_map(map, view);
}

WgmmaJob describe_wgmma(const Job &job, int64_t length, int rows, int64_t others) {
    WgmmaJob own = {};
    own.length = static_cast<int>(job.query.length), own.size = static_cast<int>(job.keys.length);
    own.features = job.query.features, own.width = job.values.features;
    own.causal = job.causal;
    own.scale = static_cast<float>(job.scale), own.unit = own.scale * log2_e;
    own.items = static_cast<unsigned>(job.items);
    own.tiles = static_cast<unsigned>((length + rows - 1) / rows);
    constexpr int64_t cached = 32 << 20; // bytes, of what several tiles read at about a time
    const int64_t bytes = job.items * others * (own.features + own.width) * 2;
    const int64_t sections = job.causal ? (bytes + cached - 1) / cached : 1;
    own.together = static_cast<unsigned>((job.items + sections - 1) / sections);
    const Walk<5> &walk = job.leading.walk;
    for (int i = 0; i < most_leading; i++) {
        const int dimension = walk.ndim - 1 - i;
        if (i < 2)
            own.leading[i] = dimension >= 0 ? static_cast<unsigned>(walk.shape[dimension]) : 1;
        for (int operand = 0; operand < 3; operand++)
            own.step[operand][i] = dimension >= 0 && walk.strides[operand + 1][dimension] != 0;
    }
    own.to = job.to, own.more = job.more;
    own.logsum = static_cast<const float *>(job.logsum);
    own.products = static_cast<const float *>(job.products);
    return own;
}

int blocks_for_wgmma(const Call &call, WgmmaJob *job, unsigned *blocks) {
    int64_t multiprocessors;
    PVG_PASS(device_attribute(call.device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    const unsigned most = static_cast<unsigned>(multiprocessors), works = job->items * job->tiles;
    *blocks = works < most ? works : most;
    job->rounds = (job->together * job->tiles + *blocks - 1) / *blocks;
    return PVG_OK;
}

int takes_wgmma(const Call &call, const Job &job, bool *takes) {
    const Walk<5> &walk = job.leading.walk;
    int architecture;
    PVG_PASS(architecture_of(call.device, &architecture));
    constexpr int64_t most = int64_t(1) << 30; // what is counted in 32 bits
    const int64_t rows = job.query.length > job.keys.length ? job.query.length : job.keys.length;
    *takes = architecture == 90 && !job.general && walk.ndim <= most_leading &&
             job.query.length >= least_wgmma_queries && rows <= most &&
             job.items * ((rows + 63) / 64) <= most && is_for_tma(job.query, walk, 1) &&
             is_for_tma(job.keys, walk, 2) && is_for_tma(job.values, walk, 3);
    return PVG_OK;
}

int launch_wgmma(Call &call, int dtype, const Job &job) {
    return dtype == PVG_FLOAT16 ? launch_type<Half>(call, job) : launch_type<BFloat16>(call, job);
}

} // namespace pvg::attention
#endif
