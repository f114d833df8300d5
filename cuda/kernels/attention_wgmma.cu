// pvg_attention of float16 and bfloat16 by warpgroup products: which calls, and their launch. The
// kernel is in attention_wgmma.cuh.
#include "kernels/attention_wgmma.cuh"
#ifndef PVG_SIMULATOR
#include "runtime/architecture.cuh"
#include "runtime/device.cuh"

namespace pvg::attention {

namespace {

constexpr int most_leading = 3;
constexpr int64_t cached_bytes = 16 << 20; // of keys and values that are in use at a time

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

// `together`: rows of a load.
int make_map(CUtensorMap *map, CUtensorMapDataType type, const Rows &rows, const Walk<5> &walk,
             int operand, int together) {
    hopper::TensorView view = {};
    view.type = type;
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
        const int64_t stride = dimension >= 0 ? walk.strides[operand][dimension] : 0;
        view.size[2 + i] = stride ? static_cast<uint64_t>(walk.shape[dimension]) : 1;
        view.stride[1 + i] = static_cast<uint64_t>((stride ? stride : row) * 2);
    }
    view.box[0] = 64, view.box[1] = static_cast<uint32_t>(together);
    view.box[2] = view.box[3] = view.box[4] = 1;
    return hopper::make_tensor_map(map, view);
}

WgmmaJob describe(const Job &job, int rows) {
    WgmmaJob own = {};
    own.length = static_cast<int>(job.query.length), own.size = static_cast<int>(job.keys.length);
    own.width = job.values.features, own.causal = job.causal;
    own.unit = static_cast<float>(job.scale) * log2_e;
    own.items = static_cast<unsigned>(job.items);
    own.tiles = static_cast<unsigned>((job.query.length + rows - 1) / rows);
    const int64_t bytes = job.keys.length * (job.keys.features + job.values.features) * 2;
    const int64_t together = job.causal && bytes < cached_bytes ? cached_bytes / bytes : 1;
    own.together = static_cast<unsigned>(together < job.items ? together : job.items);
    const Walk<5> &walk = job.leading.walk;
    for (int i = 0; i < most_leading; i++) {
        const int dimension = walk.ndim - 1 - i;
        if (i < 2)
            own.leading[i] = dimension >= 0 ? static_cast<unsigned>(walk.shape[dimension]) : 1;
        for (int operand = 0; operand < 3; operand++)
            own.step[operand][i] = dimension >= 0 && walk.strides[operand + 1][dimension] != 0;
    }
    own.to = job.to, own.more = static_cast<float *>(job.more);
    return own;
}

template <class Tile> int launch(Call &call, const Job &job) {
    constexpr CUtensorMapDataType type = std::is_same_v<typename Tile::T, Half>
                                             ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                             : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const Walk<5> &walk = job.leading.walk;
    WgmmaMaps maps;
    PVG_PASS(make_map(&maps.query, type, job.query, walk, 1, Tile::rows));
    PVG_PASS(make_map(&maps.keys, type, job.keys, walk, 2, Tile::keys));
    PVG_PASS(make_map(&maps.values, type, job.values, walk, 3, Tile::keys));
    const WgmmaJob own = describe(job, Tile::rows);
    int64_t multiprocessors;
    PVG_PASS(device_attribute(call.device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    const int64_t works = job.items * own.tiles, places = multiprocessors * Tile::blocks;
    PVG_LAUNCH((attention_wgmma_kernel<Tile>), blocks_for(works < places ? works : places, 1),
               Tile::threads, Tile::shared_bytes, call.stream, maps, own);
    return PVG_OK;
}

template <class T> int launch_type(Call &call, const Job &job) {
    if (job.query.features <= 64 && job.values.features <= 64)
        return launch<WgmmaTile<T, 64, 2, 128, 3>>(call, job);
    return launch<WgmmaTile<T, 128, 2, 128, 2>>(call, job);
}

} // namespace

int takes_wgmma(const Call &call, const Job &job, bool *takes) {
    const Walk<5> &walk = job.leading.walk;
    int architecture;
    PVG_PASS(architecture_of(call.device, &architecture));
    constexpr int64_t most = int64_t(1) << 30; // what is counted in 32 bits
    *takes = architecture == 90 && !job.general && walk.ndim <= most_leading &&
             job.query.length >= least_wgmma_queries && job.query.length <= most &&
             job.keys.length <= most && job.items * ((job.query.length + 63) / 64) <= most &&
             is_for_tma(job.query, walk, 1) && is_for_tma(job.keys, walk, 2) &&
             is_for_tma(job.values, walk, 3);
    return PVG_OK;
}

int launch_wgmma(Call &call, int dtype, const Job &job) {
    return dtype == PVG_FLOAT16 ? launch_type<Half>(call, job) : launch_type<BFloat16>(call, job);
}

} // namespace pvg::attention
#endif
