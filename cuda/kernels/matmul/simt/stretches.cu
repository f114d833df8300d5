// Products of which k is cut into stretches (plan/stretches.cu): each is a product of its own,
// whose sums go to a workspace. Then the stretches' sums are added up, and the epilogue is applied.
// The kernels' own cuts of k end at what a cluster of blocks can share; here is no such bound.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/epilogue.cuh"
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/simt/pretranspose.cuh"

namespace pvg::matmul {

namespace {

// Sums of all parts of some items: [item][part][row][column], of c's type of sums.
struct StretchSums {
    Destination c;
    const void *sums;
    int64_t size; // of a part: rows times columns
    int parts;
    int ways;                   // warps that share a sum: 1 or 8
    int elements;               // of a block
    bool turned;                // [item][part][column][row]
    unsigned tiles_down, tiles; // of 32 x 32, of an item
};

constexpr int adding_warps = 8, few_parts = 16, turned_side = 32;

// A warp adds up every eighth part, in order, and then the first one the sums of all warps; few
// parts are added up in order by one.
template <class T>
__global__ void __launch_bounds__(32 * adding_warps) add_stretches_kernel(StretchSums p) {
    using S = SumType<T>;
    __shared__ S shared[adding_warps][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, way = warp % p.ways;
    const int64_t blocks = (p.size + p.elements - 1) / p.elements, item = blockIdx.x / blocks;
    const int64_t at = blockIdx.x % blocks * p.elements + warp / p.ways * 32 + lane;
    let_next_kernel_start();
    wait_for_previous_kernel();
    const S *sums = static_cast<const S *>(p.sums) + item * p.parts * p.size + at;
    S sum = 0;
    if (at < p.size) {
#pragma unroll 4
        for (int part = way; part < p.parts; part += p.ways) sum += sums[part * p.size];
    }
    shared[warp][lane] = sum;
    __syncthreads();
    if (way != 0 || at >= p.size) return;
    for (int w = 1; w < p.ways; w++) sum += shared[w][lane];
    const int64_t line = p.turned ? p.c.rows : p.c.columns, first = at / line, second = at % line;
    const int64_t row = p.turned ? second : first, column = p.turned ? first : second;
    RowPart<T, 1> one = {{sum}, {}, item * p.c.item_stride + row * p.c.row_stride + column,
                         1,     1,  false};
    load_bias<T>(p.c, column, one.count, one.step, one.bias);
    finish(p.c, one);
}

// Few parts of c transposed, float32: read along c's columns and stored along its rows, a tile of c
// a block, as stores of a column would write a sector each. Other types have only small c turned.
__global__ void __launch_bounds__(32 * adding_warps) add_turned_kernel(StretchSums p) {
    constexpr int steps = turned_side / adding_warps;
    __shared__ float tile[turned_side][turned_side + 1];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned item = blockIdx.x / p.tiles, number = blockIdx.x % p.tiles;
    const int64_t row = int64_t(number % p.tiles_down) * turned_side;
    const int64_t column = int64_t(number / p.tiles_down) * turned_side;
    let_next_kernel_start();
    wait_for_previous_kernel();
    const float *sums = static_cast<const float *>(p.sums) + item * p.parts * p.size +
                        (column + warp) * p.c.rows + row + lane;
    float sum[steps];
#pragma unroll
    for (float &one : sum) one = p.parts == 1 ? -0.0f : 0.0f; // one part: its sign of zero stays
    for (int part = 0; part < p.parts; part++, sums += p.size) {
#pragma unroll
        for (int i = 0; i < steps; i++)
            if (row + lane < p.c.rows && column + warp + i * adding_warps < p.c.columns)
                sum[i] += sums[i * adding_warps * p.c.rows];
    }
#pragma unroll
    for (int i = 0; i < steps; i++) tile[warp + i * adding_warps][lane] = sum[i];
    __syncthreads();
    if (column + lane >= p.c.columns) return;
    RowPart<float, 1> one = {{}, {}, 0, 1, 1, false};
    load_bias<float>(p.c, column + lane, one.count, one.step, one.bias);
#pragma unroll
    for (int i = 0; i < steps; i++) {
        const int r = warp + i * adding_warps;
        if (row + r >= p.c.rows) break;
        one.sums[0] = tile[lane][r];
        one.at = item * p.c.item_stride + (row + r) * p.c.row_stride + column + lane;
        finish(p.c, one);
    }
}

template <class T>
int add_up(Call &call, const Gemm &g, bool overlap, const void *sums, int64_t items, int64_t parts,
           bool turned) {
    const int ways = parts <= few_parts ? 1 : adding_warps;
    const unsigned down = blocks_for(g.m, turned_side);
    const StretchSums p = {destination_of(g),
                           sums,
                           int64_t(g.m) * g.n,
                           static_cast<int>(parts),
                           ways,
                           32 * adding_warps / ways,
                           turned,
                           down,
                           down * blocks_for(g.n, turned_side)};
    if constexpr (std::is_same_v<T, float>) {
        if (turned && ways == 1) {
            PVG_LAUNCH_WITH((LaunchExtras{1, overlap}), add_turned_kernel,
                            blocks_for(items * p.tiles, 1), 32 * adding_warps, 0, call.stream, p);
            return PVG_OK;
        }
    }
    PVG_LAUNCH_WITH((LaunchExtras{1, overlap}), add_stretches_kernel<T>,
                    blocks_for(items * tiles(p.size, p.elements), 1), 32 * adding_warps, 0,
                    call.stream, p);
    return PVG_OK;
}

// One stretch of several items, which lie as g's do.
Gemm of_items(const Gemm &g, int64_t first, int64_t terms, int64_t items, int64_t parts) {
    Gemm part = stretch_of(g, first, terms, 1);
    part.items = static_cast<int>(items);
    part.a_item = g.a_item, part.b_item = g.b_item, part.c_item *= parts;
    part.last_k = parts > 1 ? terms : 0; // one: no stretch, but a product that is turned
    return part;
}

// Few items: all stretches of one by one launch. Many: one stretch of all of them.
int launch_parts(Call &call, const Gemm &g, const Card &card, const Stretches &cut, int64_t items,
                 void *sums) {
    const int64_t parts = cut.parts(), size = int64_t(g.m) * g.n;
    const auto launch = [&](Gemm part, int64_t item, int64_t stretch) {
        part.c = step_by(sums, (item * parts + stretch) * size, part.c_dtype);
        return launch_planned(call, *cut.kernel, part, card);
    };
    const bool few = items < parts;
    for (int64_t item = 0; few && item < items; item++) {
        const Gemm one = moved(g, item * g.a_item, item * g.b_item, 0);
        Gemm stretches = stretch_of(one, 0, cut.terms, parts);
        stretches.last_k = cut.rest ? cut.rest : cut.terms;
        PVG_PASS(launch(stretches, item, 0));
    }
    if (few) return PVG_OK;
    for (int64_t stretch = 0; stretch < cut.count; stretch++) {
        const Gemm all = of_items(g, stretch * cut.terms, cut.terms, items, parts);
        PVG_PASS(launch(all, 0, stretch));
    }
    if (!cut.rest) return PVG_OK;
    return launch(of_items(g, cut.count * cut.terms, cut.rest, items, parts), 0, cut.count);
}

} // namespace

int add_parts(Call &call, const Gemm &g, bool overlap, const void *sums, int64_t items,
              int64_t parts, bool turned) {
    return dispatch<floats>(g.dtype, [&](auto tag) -> int {
        return add_up<typename decltype(tag)::type>(call, g, overlap, sums, items, parts, turned);
    });
}

// Whether the kernel itself can store a product that is turned as c lies: see Gemm's c_turned.
static bool goes_straight(const Gemm &g, const Stretches &cut) {
    return cut.turned && cut.parts() == 1 && g.epilogue.is_plain() &&
           allows_16_bytes(g.a, g.lda, g.a_item, 4) && allows_16_bytes(g.c, g.ldc, g.c_item, 4);
}

int launch_stretches(Call &call, const Gemm &given, const Card &card, const Stretches &cut) {
    if (goes_straight(given, cut)) {
        Gemm straight = turned(given);
        straight.c_turned = true;
        return launch_planned(call, *cut.kernel, straight, card);
    }
    const int64_t element = given.dtype == PVG_FLOAT64 ? 8 : 4;
    const int64_t bytes = cut.parts() * given.m * given.n * element; // of an item
    int64_t most = bytes < most_waiting ? most_waiting / bytes : 1;
    if (most > given.items) most = given.items;
    Workspace space;
    PVG_PASS(space.open(call, static_cast<size_t>(most * bytes)));
    for (int64_t first = 0; first < given.items; first += most) {
        const int64_t items = given.items - first < most ? given.items - first : most;
        Gemm g = moved(given, first * given.a_item, first * given.b_item, first * given.c_item);
        g.items = static_cast<int>(items);
        Gemm product = cut.turned ? turned(g) : g;
        Workspace copies; // of whole operands, of which there need not be one for each stretch
        if (cut.kernel->stretching->arranged) {
            product.last_k = g.k;
            const Plan plan = recall_plan(*cut.kernel, product, card);
            PVG_PASS(arrange_operands(call, &product, plan, &copies));
        }
        PVG_PASS(launch_parts(call, product, card, cut, items, space.as<void>()));
        PVG_PASS(
            add_parts(call, g, card.overlaps(), space.as<void>(), items, cut.parts(), cut.turned));
    }
    return PVG_OK;
}

} // namespace pvg::matmul
