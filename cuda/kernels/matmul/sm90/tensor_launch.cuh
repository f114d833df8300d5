// From a plan to a launch of the kernel in tensor.cuh; one file for each type of operands.
#pragma once
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/sm90/tensor.cuh"
#include "kernels/matmul/sm90/tensor_operands.cuh"

namespace pvg::matmul {

// Launch one part of a product. The operands are the product's, and as copies where those are read.
int launch_float16(Call &call, const Gemm &g, const TensorOperands &operands, const Plan &plan);
int launch_bfloat16(Call &call, const Gemm &g, const TensorOperands &operands, const Plan &plan);
int launch_tf32(Call &call, const Gemm &g, const TensorOperands &operands, const Plan &plan);

namespace {

template <class T> constexpr CUtensorMapDataType tensor_map_type() {
    if (std::is_same_v<T, __half>) return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    if (std::is_same_v<T, __nv_bfloat16>) return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32; // float32 in memory, rounded when it is loaded
}

// Of the instruction's a or b, which has `side` rows or columns in a tile, of which a slab has
// `span`; `shared`: by both blocks of a pair.
template <class Tile> TensorBoxes boxes_of(const Stored &x, bool along_k, int side, int span,
                                           bool shared) {
    const int64_t all = along_k ? x.rows : x.columns;
    const int lines = all < side ? static_cast<int>(all) : side;
    if (!along_k) {
        const int slabs = (lines + span - 1) / span;
        return {slabs, Tile::k, slabs * Tile::k * span * Tile::element};
    }
    constexpr int eight = 8; // rows that a swizzle begins anew after
    const int half = shared ? (lines + 1) / 2 : lines;
    const int rows = (half + eight - 1) / eight * eight;
    return {1, rows, rows * (1 + shared) * 128};
}

// A load brings `side` rows of one block of K if the operand lies along k, else a slab of them,
// with `span` of the side.
template <class Tile>
int make_operand_map(CUtensorMap *map, const Stored &x, bool along_k, int side,
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

template <class Tile> int make_maps_of_a(MapsOfA<1> *maps, const Stored &x, int side) {
    maps->shift[0] = 0;
    return make_operand_map<Tile>(&maps->map[0], x, !Tile::a_along_m, side);
}

// A load brings a class's rows of one block of K, for a tile and the shift.
template <class Tile> int make_maps_of_a(MapsOfA<4> *maps, const Stored &x, int) {
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

// a and b are the instruction's operands.
template <class Tile>
int launch_tile(Call &call, const Gemm &g, const Stored &a, const Stored &b, const Plan &plan) {
    MapsOfA<Tile::classes> maps_of_a;
    CUtensorMap map_b;
    TensorBoxes boxes_a =
        boxes_of<Tile>(a, !Tile::a_along_m, Tile::m, Tile::span, plan.pair && !plan.down);
    if (Tile::in_classes) boxes_a.bytes = Tile::a_loaded;
    const TensorBoxes boxes_b =
        boxes_of<Tile>(b, !Tile::b_along_n, Tile::n, Tile::b_span, plan.pair && plan.down);
    PVG_PASS(make_maps_of_a<Tile>(&maps_of_a, a, boxes_a.rows));
    PVG_PASS(make_operand_map<Tile>(&map_b, b, !Tile::b_along_n, boxes_b.rows, Tile::b_span));
    const int rest = Tile::from_registers ? 0 : (g.k % Tile::k + Tile::step - 1) / Tile::step;
    TensorParameters p = {destination_of(g),
                          plan.schedule,
                          rest % (Tile::k / Tile::step),
                          0,
                          a.items > 1,
                          b.items > 1,
                          are_stretches(g) ? static_cast<int>(g.k) : 0,
                          plan.pair,
                          plan.down,
                          g.c_turned,
                          static_cast<unsigned>(plan.stages),
                          boxes_a,
                          boxes_b};
    if (g.c_turned) p.destination.rows = g.n, p.destination.columns = g.m;
    static_assert(Tile::shared_bytes == tensor_shared_bytes(Tile::m, Tile::n, Tile::element,
                                                            Tile::in_classes, Tile::stages),
                  "the planner has another idea of the tile");
    Schedule &s = p.schedule;
    const int parts = Tile::warpgroups << plan.pair;
    const size_t tickets = static_cast<size_t>(ticket_bytes(s, plan.items, parts));
    Workspace space;
    if (s.cut) {
        PVG_PASS(space.open(call, static_cast<size_t>(plan.workspace)));
        s.partials = space.as<float>();
        s.tickets = reinterpret_cast<unsigned *>(space.as<char>() +
                                                 partial_bytes(s, plan.items, parts, Tile::n / 2));
    }
    for (int64_t first = 0; first < g.items; first += plan.items) {
        p.first_item = static_cast<int>(first);
        s.items = static_cast<int>(g.items - first < plan.items ? g.items - first : plan.items);
        // Only a kernel can be overlapped, not what clears the tickets.
        if (s.cut) PVG_TRY(cudaMemsetAsync(s.tickets, 0, tickets, call.stream));
        const int64_t units = s.units() * plan.cluster;
        PVG_LAUNCH_WITH((LaunchExtras{static_cast<unsigned>(plan.cluster), s.cut == 0}),
                        (tensor_product_kernel<Tile>),
                        blocks_for(units < plan.blocks ? units : plan.blocks, 1), plan.threads,
                        plan.shared_bytes, call.stream, maps_of_a, map_b, p);
    }
    return PVG_OK;
}

template <class T, bool A_ALONG_M, bool B_ALONG_N, bool IN_CLASSES = false>
int launch_layout(Call &call, const Gemm &g, const Stored &a, const Stored &b, const Plan &plan) {
    using Wide = TensorTile<T, 128, 256, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    using Wider = TensorTile<T, 128, 192, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    using Medium = TensorTile<T, 128, 128, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    using Narrow = TensorTile<T, 128, 64, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    using Small = TensorTile<T, 64, 64, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    using Smallest = TensorTile<T, 64, 32, A_ALONG_M, B_ALONG_N, IN_CLASSES>;
    if constexpr (!std::is_same_v<T, hopper::Tf32>) {
        using Large = TensorTile<T, 192, 192, A_ALONG_M, B_ALONG_N>;
        using Flat = TensorTile<T, 64, 128, A_ALONG_M, B_ALONG_N>;
        if (plan.rows == 192) return launch_tile<Large>(call, g, a, b, plan);
        if (plan.rows == 64 && plan.columns == 128) return launch_tile<Flat>(call, g, a, b, plan);
    }
    if (plan.rows == 64 && plan.columns == 64) return launch_tile<Small>(call, g, a, b, plan);
    if (plan.rows == 64) return launch_tile<Smallest>(call, g, a, b, plan);
    if (plan.columns == 256) return launch_tile<Wide>(call, g, a, b, plan);
    if (plan.columns == 192) return launch_tile<Wider>(call, g, a, b, plan);
    if (plan.columns == 128) return launch_tile<Medium>(call, g, a, b, plan);
    return launch_tile<Narrow>(call, g, a, b, plan);
}

template <class T>
int launch_halves(Call &call, const Gemm &g, const TensorOperands &x, const Plan &plan) {
    if (x.a.along_k)
        return x.b.along_k ? launch_layout<T, false, false>(call, g, x.a, x.b, plan)
                           : launch_layout<T, false, true>(call, g, x.a, x.b, plan);
    return x.b.along_k ? launch_layout<T, true, false>(call, g, x.a, x.b, plan)
                       : launch_layout<T, true, true>(call, g, x.a, x.b, plan);
}

} // namespace

} // namespace pvg::matmul
