// Copies between arrays whose axes lie in different orders, where axes are too short for
// transpose.cu: a tile takes as many of the destination's innermost axes and of the source's as
// make runs on both sides, and goes through shared memory, where it lies as the destination has it.
//
// All tiles have the same shape, so a thread finds out once where its elements lie in a tile, and
// then copies tile after tile. Of the axes that a tile takes only a part of there are at most two,
// one for each side.
#include "arrays/copy.cuh"
#include "arrays/map.cuh"
#include <algorithm>

namespace pvg {

namespace {

constexpr int permute_threads = 256, permute_each = 8, most_axes = 8;
constexpr int tile_volume = permute_threads * permute_each;
constexpr int64_t permute_blocks = 396; // as many as 132 multiprocessors hold
constexpr int64_t smallest_permuted = 1 << 15, wanted_run = 32;

// The axes of a tile, innermost first in the order that threads go through them.
struct TileOrder {
    int ndim;
    uint32_t multiplier[most_axes]; // n / extent is the high word of n * multiplier, for small n
    int extent[most_axes];
    uint32_t stride[most_axes]; // elements, of the side that is read or written
    int place[most_axes];       // in shared memory
    uint32_t cut[most_axes];    // 1 or 65536 for the two axes that end within a tile, else 0
};

struct Permute {
    const void *source;
    void *destination;
    int64_t tiles;
    int volume;
    int64_t cut_length[2]; // of the axes that end within a tile
    TileOrder load, store;
    Locator<4> tile; // where one begins: destination, source, and along the two axes
};

// Where a thread's elements lie in a tile: in memory, and along the two axes.
struct InTile {
    uint32_t offset[permute_each]; // bytes
    uint32_t cut[permute_each];    // two positions of 15 bits
};

// Shared memory with gaps, so that a step of 32 elements changes the bank.
template <class T> __device__ __forceinline__ int spread(int place) {
    constexpr int gap = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
    return place + place / 32 * gap;
}

// `places`: in shared memory, of elements in the source's order.
template <class T>
__device__ __forceinline__ void find_elements(const TileOrder &order, int volume, InTile *found,
                                              int (*places)[permute_each]) {
    uint32_t rest[permute_each];
    int place[permute_each] = {};
#pragma unroll
    for (int e = 0; e < permute_each; e++) {
        rest[e] = threadIdx.x + e * permute_threads;
        found->offset[e] = 0, found->cut[e] = 0;
    }
    // Axis by axis for all elements, whose arithmetic does not wait for each other's.
#pragma unroll 1
    for (int i = 0; i < order.ndim; i++) {
        const uint32_t multiplier = order.multiplier[i], stride = order.stride[i];
        const uint32_t extent = static_cast<uint32_t>(order.extent[i]), cut = order.cut[i];
#pragma unroll
        for (int e = 0; e < permute_each; e++) {
            const uint32_t quotient = __umulhi(rest[e], multiplier);
            const uint32_t index = rest[e] - quotient * extent;
            rest[e] = quotient;
            found->offset[e] += index * stride;
            found->cut[e] += index * cut;
            if (places) place[e] += static_cast<int>(index) * order.place[i];
        }
    }
#pragma unroll
    for (int e = 0; e < permute_each; e++) {
        found->offset[e] *= static_cast<uint32_t>(sizeof(T));
        if (places) (*places)[e] = spread<T>(place[e]);
        const bool inside = static_cast<int>(threadIdx.x) + e * permute_threads < volume;
        if (!inside) found->cut[e] = 0x7fff7fffu; // outside of every tile
    }
}

// Two positions below two lengths at once: the bit above each stays where nothing is borrowed.
constexpr uint32_t guards = 0x80008000u;
__device__ __forceinline__ uint32_t last_inside(int64_t first, int64_t second) {
    const uint32_t x = first < 0x7fff ? static_cast<uint32_t>(first) : 0x7fffu;
    const uint32_t y = second < 0x7fff ? static_cast<uint32_t>(second) : 0x7fffu;
    return (x - 1) | (y - 1) << 16 | guards;
}
__device__ __forceinline__ bool is_inside(uint32_t cut, uint32_t last) {
    return ((last - cut) & guards) == guards;
}

// Where a tile begins on both sides, and how much of it is there.
struct Begin {
    const char *source;
    char *destination;
    uint32_t last;
};
template <class T> __device__ __forceinline__ Begin find_tile(const Permute &job, int64_t number) {
    const int64_t position[1] = {number};
    int64_t at[4][1];
    locate(job.tile, position, at);
    return {static_cast<const char *>(job.source) + at[1][0] * int64_t(sizeof(T)),
            static_cast<char *>(job.destination) + at[0][0] * int64_t(sizeof(T)),
            last_inside(job.cut_length[0] - at[2][0], job.cut_length[1] - at[3][0])};
}

template <class T>
__device__ __forceinline__ void load_elements(const Begin &tile, const InTile &from,
                                              T (&value)[permute_each]) {
#pragma unroll
    for (int e = 0; e < permute_each; e++)
        if (is_inside(from.cut[e], tile.last))
            value[e] = *reinterpret_cast<const T *>(tile.source + from.offset[e]);
}

// The elements of the next tile are on their way while those of one are stored.
template <class T>
__global__ void __launch_bounds__(permute_threads, 3)
    permute_kernel(const __grid_constant__ Permute job) {
    __shared__ T tile[tile_volume + tile_volume / 32 * (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
    InTile from, to;
    int places[permute_each];
    find_elements<T>(job.load, job.volume, &from, &places);
    find_elements<T>(job.store, job.volume, &to, nullptr);
    T value[permute_each];
    int64_t number = blockIdx.x;
    Begin now = find_tile<T>(job, number);
    load_elements(now, from, value);
    while (true) {
#pragma unroll
        for (int e = 0; e < permute_each; e++)
            if (is_inside(from.cut[e], now.last)) tile[places[e]] = value[e];
        __syncthreads();
        Begin next = now;
        number += gridDim.x;
        if (number < job.tiles) {
            next = find_tile<T>(job, number);
            load_elements(next, from, value);
        }
#pragma unroll
        for (int e = 0; e < permute_each; e++)
            if (is_inside(to.cut[e], now.last))
                *reinterpret_cast<T *>(now.destination + to.offset[e]) =
                    tile[spread<T>(threadIdx.x + e * permute_threads)];
        if (number >= job.tiles) return;
        now = next;
        __syncthreads();
    }
}

// ---- The shape of a tile ------------------------------------------------------------------------

// The longest part of an axis, of at most so many, that divides it as evenly as can be.
int64_t part_of(int64_t length, int64_t most) {
    const int64_t parts = (length + most - 1) / most;
    return (length + parts - 1) / parts;
}

struct TileShape {
    int64_t extent[PVG_MAX_NDIM];
    int64_t volume = 1;

    // Takes more of the axes in this order, innermost first, until a run of them is as long as
    // wanted, or a tile is full. An axis before the last one that it takes is taken whole.
    void grow(const Walk<2> &walk, const int *order, int64_t wanted) {
        int64_t run = 1;
        for (int k = 0; k < walk.ndim && run < wanted; k++) {
            const int i = order[k];
            const int64_t length = walk.shape[i], need = (wanted + run - 1) / run;
            const int64_t room = tile_volume / (volume / extent[i]);
            int64_t more = length < 2 * need ? length : part_of(length, need);
            if (more > room) more = part_of(length, room);
            if (more > extent[i]) {
                volume = volume / extent[i] * more;
                extent[i] = more;
            }
            if (extent[i] < length) return;
            run *= length;
        }
    }
};

// The axes of the walk from the innermost, as one of its operands has them.
void order_axes(const Walk<2> &walk, int operand, int *order) {
    for (int i = 0; i < walk.ndim; i++) order[i] = walk.ndim - 1 - i;
    std::stable_sort(order, order + walk.ndim, [&](int i, int j) {
        return walk.strides[operand][i] < walk.strides[operand][j];
    });
}

void describe(const Walk<2> &walk, const int *order, int operand, const TileShape &tile,
              const int *place, const int *cut, TileOrder *result) {
    result->ndim = 0;
    for (int k = 0; k < walk.ndim; k++) {
        const int i = order[k];
        if (tile.extent[i] == 1) continue;
        const int n = result->ndim++;
        result->extent[n] = static_cast<int>(tile.extent[i]);
        result->multiplier[n] =
            static_cast<uint32_t>(((int64_t(1) << 32) + tile.extent[i] - 1) / tile.extent[i]);
        result->stride[n] = static_cast<uint32_t>(walk.strides[operand][i]);
        result->place[n] = place[i];
        result->cut[n] = i == cut[0] ? 1u : i == cut[1] ? 65536u : 0u;
    }
}

// Where tiles begin, and which axes end within one. False if these are more than two.
bool place_tiles(const Walk<2> &walk, const TileShape &tile, int *cut, Permute *job) {
    int cuts = 0;
    for (int i = 0; i < walk.ndim; i++)
        if (tile.extent[i] > 1 && tile.extent[i] < walk.shape[i]) {
            if (cuts == 2) return false;
            cut[cuts++] = i;
        }
    job->tiles = 1;
    for (int k = 0; k < 2; k++) job->cut_length[k] = cut[k] < 0 ? INT64_MAX : walk.shape[cut[k]];
    Walk<4> &tiles = job->tile.walk;
    for (int i = 0; i < walk.ndim; i++) {
        const int64_t length = (walk.shape[i] + tile.extent[i] - 1) / tile.extent[i];
        if (length == 1) continue;
        const int n = tiles.ndim++;
        tiles.shape[n] = length;
        for (int k = 0; k < 2; k++) {
            tiles.strides[k][n] = walk.strides[k][i] * tile.extent[i];
            tiles.strides[2 + k][n] = i == cut[k] ? tile.extent[i] : 0;
        }
        job->tiles *= length;
    }
    prepare(&job->tile);
    return true;
}

// False if the axes are none that tiles are made for.
bool plan_permute(const Walk<2> &walk, Permute *job) {
    int order[2][PVG_MAX_NDIM], place[PVG_MAX_NDIM], cut[2] = {-1, -1};
    for (int i = 0; i < walk.ndim; i++)
        if (walk.strides[0][i] <= 0 || walk.strides[1][i] <= 0) return false;
    for (int k = 0; k < 2; k++) {
        order_axes(walk, k, order[k]);
        if (walk.strides[k][order[k][0]] != 1) return false;
    }
    TileShape tile;
    std::fill(tile.extent, tile.extent + walk.ndim, 1);
    for (int64_t wanted = wanted_run; wanted <= tile_volume; wanted *= 2)
        for (int k = 0; k < 2; k++) tile.grow(walk, order[k], wanted);
    constexpr int64_t most_span = UINT32_MAX / 8; // elements, whose bytes are counted in 32 bits
    int64_t span[2] = {0, 0}, axes = 0;
    for (int i = 0, inside = 1; i < walk.ndim; i++) {
        const int axis = order[0][i];
        place[axis] = inside;
        inside *= static_cast<int>(tile.extent[axis]);
        axes += tile.extent[axis] > 1;
        for (int k = 0; k < 2; k++) span[k] += (tile.extent[axis] - 1) * walk.strides[k][axis];
    }
    if (axes > most_axes || span[0] > most_span || span[1] > most_span) return false;
    if (tile.volume < tile_volume / 8 || !place_tiles(walk, tile, cut, job)) return false;
    job->volume = static_cast<int>(tile.volume);
    describe(walk, order[1], 1, tile, place, cut, &job->load);
    describe(walk, order[0], 0, tile, place, cut, &job->store);
    return true;
}

} // namespace

int copy_permuted(Call &call, const pvg_array *source, pvg_array *destination, const Walk<2> &walk,
                  bool *done) {
    Permute job{};
    *done = false;
    if (destination->size < smallest_permuted || !plan_permute(walk, &job)) return PVG_OK;
    job.source = source->data, job.destination = destination->data;
    PVG_PASS(call.reads(source));
    return dispatch_size(source->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        if constexpr (sizeof(T) <= 8) {
            *done = true;
            // Every block has as many tiles, or one less; of many the last ones come in turns.
            const int64_t turns = job.tiles > 16 * permute_blocks ? 4 : 1;
            const int64_t each = blocks_for(job.tiles, turns * permute_blocks);
            PVG_LAUNCH(permute_kernel<T>, blocks_for(job.tiles, each), permute_threads, 0,
                       call.stream, job);
        }
        return PVG_OK;
    });
}

} // namespace pvg
