// The conditional product; see recompute.cuh. A grid that fills the device walks through the tiles.
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/simt/recompute.cuh"
#include "kernels/matmul/simt/tile.cuh"
#include "runtime/device.cuh"

namespace pvg::matmul {

namespace {

using Shape = TileShape<128, 128, 8, 8>;
constexpr int blocks_a_multiprocessor = 1;

#if PVG_TARGET_IS_90A

constexpr int chain = 32; // terms
static_assert(chain % depth == 0);

// The sums of one chain through all of k, where those of short chains, which wait in c, are not
// finite: of finite terms two short chains can give NaN, but a long one stays infinite once it is.
struct Rescue {
    const float *c;

    __device__ void operator()(RowPart<float, group, true> &four) const {
#pragma unroll
        for (int j = 0; j < group; j++) {
            if (j >= four.count) continue;
            const float of_short_chains = c[four.at + j];
            if (isfinite(of_short_chains)) four.sums[j] = of_short_chains;
        }
    }
};

// Short chains of multiply-adds, which are added up without an error: Knuth, The Art of Computer
// Programming, volume 2, section 4.2.2, theorem B. So the result is at least as accurate as that of
// "ieee", whose chains are longer.
__device__ void multiply_exactly(const TiledPlace<Shape> &place, SharedSlabs<float, Shape> &shared,
                                 const Destination &to) {
    constexpr int rows = Shape::micro_rows, columns = Shape::micro_columns;
    const Product &p = place.p;
    const int thread = this_thread();
    const TiledMicrotile<Shape> at(thread);
    OperandSlab<float, Shape::rows, Shape::threads> a(p.a, place.offset[1], place.first_row(), p.m,
                                                      thread);
    OperandSlab<float, Shape::columns, Shape::threads> b(p.b, place.offset[2], place.first_column(),
                                                         p.n, thread);
    float total[rows][columns] = {}, rest[rows][columns] = {}, sum[rows][columns] = {};
    a.load(p.k);
    b.load(p.k);
    int terms = 0, now = 0;
    for (int64_t left = p.k; left > 0; left -= depth, now ^= 1) {
        a.store(shared.a[now]);
        b.store(shared.b[now]);
        __syncthreads(); // also, the slabs before these have been read, and can be stored over
        if (left > depth) {
            a.load(left - depth);
            b.load(left - depth);
        }
        multiply_slab<float, Shape>(shared.a[now], shared.b[now], at, sum);
        terms += depth;
        if (terms < chain && left > depth) continue;
        terms = 0;
#pragma unroll
        for (int i = 0; i < rows; i++)
#pragma unroll
            for (int j = 0; j < columns; j++) {
                const float before = total[i][j], after = before + sum[i][j];
                const float added = after - before;
                rest[i][j] += (before - (after - added)) + (sum[i][j] - added);
                total[i][j] = after, sum[i][j] = 0;
            }
    }
    bool is_finite = true;
#pragma unroll
    for (int i = 0; i < rows; i++)
#pragma unroll
        for (int j = 0; j < columns; j++) {
            total[i][j] += rest[i][j];
            is_finite &= isfinite(total[i][j]);
        }
    if (__syncthreads_and(is_finite)) {
        store_tile<float, Shape>(place, total, to, AsTheyAre());
    } else { // perhaps a short chain alone overflowed
        store_tile<float, Shape>(place, total, PlainDestination(to), AsTheyAre());
        multiply_terms<float, Shape>(place, 0, p.k, shared, to,
                                     Rescue{static_cast<const float *>(to.data)});
    }
}

#endif

struct Batch {
    unsigned items, down, across; // tiles of an item
    int64_t stride[3];            // elements from item to item of c, a and b
};

__global__ void __launch_bounds__(Shape::threads, blocks_a_multiprocessor)
    recompute_kernel(const __grid_constant__ Product p, const __grid_constant__ Batch batch,
                     const __grid_constant__ Destination to, const Verdicts verdicts) {
#if PVG_TARGET_IS_90A
    __shared__ SharedSlabs<float, Shape> shared;
    __shared__ int64_t offset[3]; // not in registers: there are none left
    let_next_kernel_start();
    wait_for_previous_kernel();
    if (*verdicts.any == 0) return;
    const unsigned of_item = batch.down * batch.across, all = batch.items * of_item;
    for (unsigned i = blockIdx.x; i < all; i += gridDim.x) {
        const unsigned item = i / of_item, tile = i % of_item;
        if (verdicts.items[item] == 0) continue;
        __syncthreads(); // the block may still need the offsets and slabs of the tile before
        if (threadIdx.x < 3) offset[threadIdx.x] = item * batch.stride[threadIdx.x];
        __syncthreads();
        multiply_exactly({p, offset, tile / batch.across, tile % batch.across}, shared, to);
    }
#endif
}

// Of all items.
bool is_aligned(const void *data, int64_t stride, int64_t item) {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0 && (stride | item) % 4 == 0;
}

Operand operand_of(const void *data, int64_t ld, int64_t item, bool along_k) {
    return {data, along_k ? ld : 1, along_k ? 1 : ld, along_k, is_aligned(data, ld, item)};
}

} // namespace

int launch_recompute(Call &call, const Gemm &g, const Verdicts &verdicts) {
    Product p = {};
    p.m = g.m, p.n = g.n, p.k = g.k;
    p.a = operand_of(g.a, g.lda, g.a_item, g.a_along_k);
    p.b = operand_of(g.b, g.ldb, g.b_item, g.b_along_k);
    p.c_aligned =
        is_aligned(g.c, g.ldc, g.c_item) && is_aligned(g.epilogue.preactivation, g.ldc, g.c_item);
    const int64_t down = tiles(g.m, Shape::rows), across = tiles(g.n, Shape::columns);
    const Batch batch = {static_cast<unsigned>(g.items),
                         static_cast<unsigned>(down),
                         static_cast<unsigned>(across),
                         {g.c_item, g.a_item, g.b_item}};
    int64_t multiprocessors;
    PVG_PASS(device_attribute(g.device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    const int64_t most = blocks_a_multiprocessor * multiprocessors;
    const int64_t all = g.items * down * across;
    PVG_LAUNCH_WITH((LaunchExtras{1, true}), recompute_kernel,
                    blocks_for(all < most ? all : most, 1), Shape::threads, 0, call.stream, p,
                    batch, destination_of(g), verdicts);
    return PVG_OK;
}

} // namespace pvg::matmul
