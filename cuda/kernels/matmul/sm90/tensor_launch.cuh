// From a plan to a launch of the kernel in tensor.cuh; one file for each type of operands.
#pragma once
#include "kernels/matmul/sm90/tensor.cuh"
#include "kernels/matmul/sm90/tensor_operands.cuh"
#include "runtime/device.cuh"

namespace pvg::matmul {

struct TensorPlan {
    int rows, columns; // of the tile: 128 by 256, 128 or 64, or 64 by 64 or 32
    Schedule schedule; // of one item; a pair of blocks counts as one
    int pair;          // 1: two tiles, neighbours along n, share the loads of a; else 0
};

int launch_float16(Call &call, const Gemm &g, const TensorOperands &operands,
                   const TensorPlan &plan);
int launch_bfloat16(Call &call, const Gemm &g, const TensorOperands &operands,
                    const TensorPlan &plan);
int launch_tf32(Call &call, const Gemm &g, const TensorOperands &operands, const TensorPlan &plan);

namespace {

template <class T> constexpr CUtensorMapDataType tensor_map_type() {
    if (std::is_same_v<T, __half>) return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    if (std::is_same_v<T, __nv_bfloat16>) return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32; // float32 in memory, rounded when it is loaded
}

// A load brings `side` rows of one block of K if the operand lies along k, else a slab of them,
// with `span` of the side.
template <class Tile>
int make_operand_map(CUtensorMap *map, const TensorOperand &x, bool along_k, int side,
                     int span = Tile::span) {
    hopper::TensorView view = {};
    view.type = tensor_map_type<typename Tile::Element>();
    view.swizzle = span < Tile::span ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B;
    view.data = x.data;
    view.rank = 3;
    view.size[0] = static_cast<uint64_t>(x.columns), view.size[1] = static_cast<uint64_t>(x.rows);
    view.size[2] = static_cast<uint64_t>(x.items);
    // The distance of what there is only one of is not used, but has to be a possible one.
    const int64_t row = (x.rows == 1 ? (x.columns + 7) / 8 * 8 : x.stride) * Tile::element;
    view.stride[0] = static_cast<uint64_t>(row);
    view.stride[1] = static_cast<uint64_t>(x.items == 1 ? row : x.item * Tile::element);
    view.box[0] = static_cast<uint32_t>(along_k ? Tile::k : span);
    view.box[1] = static_cast<uint32_t>(along_k ? side : Tile::k);
    view.box[2] = 1;
    return hopper::make_tensor_map(map, view);
}

template <class Tile> int make_maps_of_a(MapsOfA<1> *maps, const TensorOperand &x, int side) {
    maps->shift[0] = 0;
    return make_operand_map<Tile>(&maps->map[0], x, !Tile::a_along_m, side);
}

// A load brings a class's rows of one block of K, for a tile and the shift.
template <class Tile> int make_maps_of_a(MapsOfA<4> *maps, const TensorOperand &x, int) {
    for (int i = 0; i < 4; i++) {
        const uintptr_t row = reinterpret_cast<uintptr_t>(x.data) +
                              static_cast<uintptr_t>(i * x.stride * Tile::element);
        maps->shift[i] = static_cast<int>(row % 16 / Tile::element);
        hopper::TensorView view = {};
        view.type = tensor_map_type<typename Tile::Element>();
        view.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
        view.data = reinterpret_cast<const void *>(row / 16 * 16);
        view.rank = 3;
        view.size[0] = static_cast<uint64_t>(x.columns + maps->shift[i]);
        view.size[1] = static_cast<uint64_t>((x.rows - i + 3) / 4);
        view.size[2] = static_cast<uint64_t>(x.items);
        view.stride[0] = static_cast<uint64_t>(x.stride * 4 * Tile::element);
        view.stride[1] =
            x.items == 1 ? view.stride[0] : static_cast<uint64_t>(x.item * Tile::element);
        view.box[0] = Tile::class_row, view.box[1] = Tile::k / 4, view.box[2] = 1;
        PVG_PASS(hopper::make_tensor_map(&maps->map[i], view));
    }
    return PVG_OK;
}

// Items of one launch: units are counted in 32 bits, and the workspace of slices stays small.
template <class Tile> int items_at_a_time(const Schedule &s, int items, int parts) {
    int64_t most = (int64_t(1) << 30) / s.units_of_item();
    const int64_t bytes = partial_bytes(s, 1, parts, Tile::n / 2);
    if (bytes > 0 && most > (int64_t(256) << 20) / bytes) most = (int64_t(256) << 20) / bytes;
    if (most < 1) most = 1;
    return static_cast<int>(most < items ? most : items);
}

// a and b are the instruction's operands.
template <class Tile>
int launch_tile(Call &call, const Gemm &g, const TensorOperand &a, const TensorOperand &b,
                const TensorPlan &plan) {
    MapsOfA<Tile::classes> maps_of_a;
    CUtensorMap map_b;
    PVG_PASS(make_maps_of_a<Tile>(&maps_of_a, a, Tile::m >> plan.pair));
    PVG_PASS(make_operand_map<Tile>(&map_b, b, !Tile::b_along_n, Tile::n, Tile::b_span));
    const int rest = Tile::from_registers ? 0 : (g.k % Tile::k + Tile::step - 1) / Tile::step;
    TensorParameters p = {
        destination_of(g), plan.schedule, rest % (Tile::k / Tile::step), 0, a.items > 1,
        b.items > 1,       plan.pair};
    Schedule &s = p.schedule;
    const int parts = Tile::warpgroups << plan.pair;
    const int at_a_time = items_at_a_time<Tile>(s, g.items, parts);
    const int64_t partials = partial_bytes(s, at_a_time, parts, Tile::n / 2);
    const size_t tickets = static_cast<size_t>(ticket_bytes(s, at_a_time, parts));
    Workspace space;
    if (s.cut) {
        PVG_PASS(space.open(call, static_cast<size_t>(partials) + tickets));
        s.partials = space.as<float>();
        s.tickets = reinterpret_cast<unsigned *>(space.as<char>() + partials);
    }
    int64_t multiprocessors;
    PVG_PASS(device_attribute(g.device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    for (int64_t first = 0; first < g.items; first += at_a_time) {
        p.first_item = static_cast<int>(first);
        s.items = static_cast<int>(g.items - first < at_a_time ? g.items - first : at_a_time);
        // Only a kernel can be overlapped, not what clears the tickets.
        if (s.cut) PVG_TRY(cudaMemsetAsync(s.tickets, 0, tickets, call.stream));
        const int64_t most = multiprocessors > plan.pair ? multiprocessors >> plan.pair : 1;
        const unsigned blocks = static_cast<unsigned>(s.units() < most ? s.units() : most);
        PVG_LAUNCH_WITH((LaunchExtras{1u << plan.pair, s.cut == 0}), (tensor_product_kernel<Tile>),
                        blocks << plan.pair, Tile::threads, Tile::shared_bytes, call.stream,
                        maps_of_a, map_b, p);
    }
    return PVG_OK;
}

template <class T, bool A_ALONG_M, bool B_ALONG_N, bool IN_CLASSES = false>
int launch_layout(Call &call, const Gemm &g, const TensorOperand &a, const TensorOperand &b,
                  const TensorPlan &plan) {
    using Wide = TensorTile<T, 128, 256, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    using Medium = TensorTile<T, 128, 128, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    using Narrow = TensorTile<T, 128, 64, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    using Small = TensorTile<T, 64, 64, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    using Smallest = TensorTile<T, 64, 32, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    if (plan.rows == 64 && plan.columns == 64) return launch_tile<Small>(call, g, a, b, plan);
    if (plan.rows == 64) return launch_tile<Smallest>(call, g, a, b, plan);
    if (plan.columns == 256) return launch_tile<Wide>(call, g, a, b, plan);
    if (plan.columns == 128) return launch_tile<Medium>(call, g, a, b, plan);
    return launch_tile<Narrow>(call, g, a, b, plan);
}

template <class T>
int launch_halves(Call &call, const Gemm &g, const TensorOperands &x, const TensorPlan &plan) {
    if (x.a_along_k)
        return x.b_along_k ? launch_layout<T, false, false>(call, g, x.a, x.b, plan)
                           : launch_layout<T, false, true>(call, g, x.a, x.b, plan);
    return x.b_along_k ? launch_layout<T, true, false>(call, g, x.a, x.b, plan)
                       : launch_layout<T, true, true>(call, g, x.a, x.b, plan);
}

} // namespace

} // namespace pvg::matmul
