// How long products by wgmma take: see tensor_time.cuh.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tensor_time.cuh"
#include <math.h>

namespace pvg::matmul {

double Lines::of_tile(int side, int tile) const {
    const int64_t slabs = tiles(side < tile ? side : tile, 64);
    if (along_k) return cycles * static_cast<double>(side < tile ? round_up(side, 8) : tile);
    const bool is_short = slabs == 1 && cycles > cost::halves_aligned_cycles;
    return cycles * static_cast<double>(64 * slabs) * (is_short ? cost::halves_short_runs : 1);
}

namespace {

constexpr int width = cost::tuned_multiprocessors;

// Of TF32 tiles the products take as long as measured, and longer where loads take hardly less.
double block_of_tf32(const Tiling &tiling, double block, double loads) {
    const double products = fmax(block, cost::tf32_cycles(tiling.rows, tiling.columns));
    const double both = loads * loads * loads * loads + products * products * products * products;
    return sqrt(sqrt(both));
}

// One block of K, of `memory` clock cycles if nothing else took time: memory and loads both wait at
// times, as measured.
double cycles_of_block(const Tiling &tiling, const Loads &x, bool beside, double memory) {
    const int n = tiling.columns, rows_a = tiling.rows >> (tiling.pair - tiling.down);
    double rows = rows_a * x.row_a + (n >> tiling.down) * x.row_b;
    if (beside && !x.halves) rows *= cost::tf32_beside;
    const double loads = sqrt(rows * rows + memory * memory);
    double block = fmax(loads, cost::shared_memory_cycles(tiling.rows, n));
    if (!x.halves) block = block_of_tf32(tiling, cost::shared_memory_cycles(tiling.rows, n), loads);
    if (x.to_registers) block = fmax(block, cost::to_registers_cycles(n, rows_a + n));
    return block;
}

// Of a narrow product, whose operands are read few times, the second-level cache and memory bring
// what all multiprocessors ask for, and these wait for it at times. Those of TF32: `cycles`.
double cycles_of_narrow_halves(const Tiling &tiling, const Loads &x, int64_t items) {
    const Schedule &s = tiling.schedule;
    const int64_t units = s.units() * items, rounds = tiles(units, width >> tiling.pair);
    const double steps = s.k_blocks;
    const double of_a = 1.0 / (1 << (tiling.pair - tiling.down)), of_b = 1.0 / (1 << tiling.down);
    const double loads =
        of_a * x.a.of_tile(x.m, tiling.rows) + of_b * x.b.of_tile(x.n, tiling.columns);
    const double lines = of_a * fmin(x.m, tiling.rows) + of_b * fmin(x.n, tiling.columns);
    const double block = fmax(loads, cost::shared_memory_cycles(tiling.rows, tiling.columns));
    const double own = double(rounds) * steps * block;
    const double cache =
        double(units << tiling.pair) * steps * lines * 128 / cost::halves_cache_rate;
    const double memory =
        fmax(x.bytes * double(items) - cost::halves_kept_bytes, 0) / cost::halves_memory_rate;
    return sqrt(own * own + cache * cache + memory * memory) +
           double(rounds) * (cost::halves_tile_cycles + tiling.pair * cost::halves_pair_cycles);
}

} // namespace

// Of any product; of a narrow one of TF32 as above, by what was measured for them.
double cycles(const Tiling &tiling, const Loads &x, int64_t items) {
    if (is_narrow_of_halves(x)) return cycles_of_narrow_halves(tiling, x, items);
    const Schedule &s = tiling.schedule;
    const int64_t units = s.units() * items, rounds = tiles(units, width >> tiling.pair);
    const double steps = double(s.k_blocks) / s.slices; // of K, one after the other
    const double cut = s.cut ? s.slices * cost::slice_cycles + cost::ticket_cycles : 0;
    const double pair = tiling.pair * cost::pair_cycles, bytes = x.bytes * double(items);
    if (!x.narrow) {
        const double memory = bytes / (cost::memory_rate * double(rounds) * steps);
        const double tile = tiling.rows > 128 ? cost::large_tile_cycles : cost::tile_cycles;
        return double(rounds) * (steps * cycles_of_block(tiling, x, false, memory) + tile + pair) +
               cut;
    }
    const bool is_small = tiling.rows == 64;
    const double own =
        double(rounds) * steps * cycles_of_block(tiling, x, is_small && rounds > 1, 0);
    const double loaded = double(tiling.rows + tiling.columns) * 128;
    const double cache = double(units << tiling.pair) * steps * loaded / cost::narrow_cache_rate;
    const double memory = fmax(bytes - cost::kept_bytes, 0) / cost::narrow_memory_rate;
    return sqrt(own * own + cache * cache + memory * memory) +
           double(rounds) *
               ((is_small ? cost::small_tile_cycles : cost::narrow_tile_cycles) + pair) +
           cut;
}

} // namespace pvg::matmul
