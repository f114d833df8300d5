/* TMA: the driver's function that describes a tensor, and copies of boxes of it to shared memory.
 *
 * The driver is found as on a card, by cudaGetDriverEntryPointByVersion(). A tensor map is opaque;
 * here it holds the description. Like the driver, the function wants a thread to which a call of
 * the runtime has bound a context before, and refuses what a card cannot read.
 *
 * A copy is the worst that a card may do: it holds the destination at 0xFF from its start, and
 * arrives when a thread waits at its barrier and nothing else in the block can run. */
#include "worker.h"

#include <cstring>
#include <cuda.h>

namespace pvg_sim {

/* ---- Tensor maps ---- */

static const unsigned MOST_DIMENSIONS = 5, MOST_BOX = 256, MOST_STEP = 8;
static const uint32_t MARK = 0x70766774;

struct TensorMap {
    uint32_t mark, rank;
    const char *data;
    uint64_t stride[MOST_DIMENSIONS - 1]; /* bytes, of dimensions 1 ... */
    uint32_t last_index[MOST_DIMENSIONS]; /* size - 1 */
    uint16_t box[MOST_DIMENSIONS];
    uint8_t step[MOST_DIMENSIONS], element; /* element: bytes */
    uint8_t type, swizzle, fill;
};
static_assert(sizeof(TensorMap) <= sizeof(CUtensorMap), "it has to fit");

static unsigned element_bytes(CUtensorMapDataType type) {
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return 8;
    default: return 0; /* packed numbers of 4 and 6 bits are not simulated */
    }
}

/* Bytes of a row that a swizzle permutes, the longest that a box may have; 0: any. */
static unsigned span_of(CUtensorMapSwizzle swizzle) {
    switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_32B: return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B: return 64;
    case CU_TENSOR_MAP_SWIZZLE_128B: return 128;
    default: return 0;
    }
}

static bool is_aligned(const void *address, uintptr_t to) {
    return reinterpret_cast<uintptr_t>(address) % to == 0;
}

/* What the driver's documentation asks for, of tensors without interleaving. */
static CUresult encode_tiled(CUtensorMap *result, CUtensorMapDataType type, cuuint32_t rank,
                             void *data, const cuuint64_t *size, const cuuint64_t *stride,
                             const cuuint32_t *box, const cuuint32_t *step,
                             CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                             CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    if (!has_bound_context()) return CUDA_ERROR_INVALID_CONTEXT;
    const unsigned element = element_bytes(type), span = span_of(swizzle);
    const bool is_known = element && interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
                          (span || swizzle == CU_TENSOR_MAP_SWIZZLE_NONE) &&
                          promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
                          fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    if (!is_known || !result || !is_aligned(result, 64) || rank < 1 || rank > MOST_DIMENSIONS ||
        !data || !is_aligned(data, 16) || !size || (rank > 1 && !stride) || !box || !step) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TensorMap map = {};
    map.mark = MARK, map.rank = rank, map.data = static_cast<const char *>(data);
    map.element = (uint8_t)element, map.type = (uint8_t)type, map.swizzle = (uint8_t)swizzle;
    for (unsigned i = 0; i < rank; i++) {
        if (size[i] < 1 || size[i] > uint64_t{1} << 32 || box[i] < 1 || box[i] > MOST_BOX ||
            step[i] < 1 || step[i] > MOST_STEP) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        map.last_index[i] = (uint32_t)(size[i] - 1);
        map.box[i] = (uint16_t)box[i], map.step[i] = (uint8_t)step[i];
        if (i == 0) continue;
        if (stride[i - 1] % 16 || stride[i - 1] >= uint64_t{1} << 40) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        map.stride[i - 1] = stride[i - 1];
    }
    const unsigned row = box[0] * element;
    if (row % 16 || (span && row > span)) return CUDA_ERROR_INVALID_VALUE;
    memset(result, 0, sizeof *result);
    memcpy(result, &map, sizeof map);
    return CUDA_SUCCESS;
}

/* ---- Copies ---- */

static TensorMap read_map(const void *opaque, int rank) {
    TensorMap map;
    memcpy(&map, opaque, sizeof map);
    if (map.mark != MARK || !is_aligned(opaque, 64)) {
        fail_kernel(cudaErrorIllegalInstruction, "a copy by TMA with %p, which is no tensor map",
                    opaque);
    }
    if (map.rank != (uint32_t)rank || map.type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32) {
        fail_kernel(cudaErrorIllegalInstruction,
                    "a copy by TMA of %d dimensions from a tensor of %u (type %d)", rank, map.rank,
                    map.type);
    }
    return map;
}

static size_t box_bytes(const TensorMap &map) {
    size_t bytes = map.element;
    for (unsigned i = 0; i < map.rank; i++) bytes *= map.box[i];
    return bytes;
}

/* As dimensions outside of a tensor's rank, so that all have five. */
static unsigned box_of(const TensorMap &map, unsigned i) { return i < map.rank ? map.box[i] : 1; }

void load_tile(uint32_t to, const void *opaque, uint32_t barrier, int rank, const int *place) {
    require_capability(90, "cp.async.bulk.tensor");
    check_has_waited("cp.async.bulk.tensor");
    const TensorMap map = read_map(opaque, rank);
    TileCopy tile = {to, barrier, box_bytes(map), {}, {}};
    memcpy(tile.map, opaque, sizeof tile.map);
    memcpy(tile.place, place, sizeof(int) * (size_t)rank);
    if (to % 128) {
        fail_kernel(cudaErrorMisalignedAddress, "a copy by TMA to shared memory, not at a multiple "
                                                "of 128 bytes");
    }
    const Allocation *memory = find_allocation(map.data);
    if (!memory || memory->kind != MemoryKind::device) {
        fail_kernel(cudaErrorIllegalAddress, "a tensor map of %p, which is not device memory",
                    static_cast<const void *>(map.data));
    }
    shared_pointer(barrier, 8);
    begin_arrival(shared_pointer(to, tile.bytes), tile.bytes);
    race::enter_home(); /* what takes it out of the list is the simulator too */
    worker->events->tiles.push_back(tile);
    race::enter_thread(worker->self);
}

/* The element at these indices; null outside of the tensor, where there are zeros. */
static const char *element_at(const TensorMap &map, const int64_t *index) {
    const char *at = map.data;
    for (unsigned i = 0; i < map.rank; i++) {
        if (index[i] < 0 || index[i] > map.last_index[i]) return nullptr;
        at += index[i] * (i ? (int64_t)map.stride[i - 1] : map.element);
    }
    return at;
}

/* Where TMA writes what would be at an address: 16 bytes at a time change places. */
static uint32_t swizzled(const TensorMap &map, uint32_t address) {
    const unsigned span = span_of((CUtensorMapSwizzle)map.swizzle);
    return span ? address ^ (((address >> 7) & (span / 16 - 1)) << 4) : address;
}

static void fill_tile(const TileCopy &tile) {
    TensorMap map;
    memcpy(&map, tile.map, sizeof map);
    check_arrival(shared_pointer(tile.to, tile.bytes), tile.bytes, "TMA");
    uint32_t to = tile.to;
    unsigned n[MOST_DIMENSIONS] = {};
    for (size_t done = 0; done < tile.bytes; done += map.element, to += map.element) {
        int64_t index[MOST_DIMENSIONS];
        for (unsigned i = 0; i < map.rank; i++) {
            index[i] = (int64_t)tile.place[i] + (int64_t)n[i] * map.step[i];
        }
        void *there = shared_pointer(swizzled(map, to), map.element);
        const char *from = element_at(map, index);
        if (from) {
            memcpy(there, from, map.element);
        } else {
            memset(there, 0, map.element);
        }
        for (unsigned i = 0; i < MOST_DIMENSIONS && ++n[i] == box_of(map, i); i++) n[i] = 0;
    }
}

bool deliver_tiles(Worker &w) {
    auto &tiles = w.events->tiles;
    bool any = false;
    for (size_t i = 0; i < tiles.size();) {
        const TileCopy tile = tiles[i];
        if (!somebody_waits_for(w, shared_pointer(tile.barrier, 8))) {
            i++;
            continue;
        }
        tiles.erase(tiles.begin() + (ptrdiff_t)i);
        fill_tile(tile);
        bytes_have_come(tile.barrier, tile.bytes);
        any = true;
    }
    return any && w.ready_head != w.ready_tail;
}

} /* namespace pvg_sim */

using namespace pvg_sim;

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function,
                                                        unsigned version, unsigned long long,
                                                        cudaDriverEntryPointQueryResult *result) {
    Call call;
    if (!name || !function) return call.finish(cudaErrorInvalidValue);
    const bool is_known = strcmp(name, "cuTensorMapEncodeTiled") == 0;
    *function = is_known && version >= 12000 ? (void *)encode_tiled : nullptr;
    if (result) {
        *result = !is_known         ? cudaDriverEntryPointSymbolNotFound
                  : version < 12000 ? cudaDriverEntryPointVersionNotSufficent
                                    : cudaDriverEntryPointSuccess;
    }
    return call.finish(cudaSuccess);
}
