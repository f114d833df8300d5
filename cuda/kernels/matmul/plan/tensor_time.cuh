// What products by wgmma take, as tensor.cu reckons it to choose tiles: by the numbers of cost.cuh,
// which are fitted to what was measured.
#pragma once
#include "kernels/matmul/plan/schedule.cuh"
#include "kernels/matmul/plan/tiles.cuh"

namespace pvg::matmul {

// How an operand of a narrow product of 16 bits comes: clock cycles for 128 bytes, and whether it
// lies along k. Else a line is of a row of k, for 64 of m or n.
struct Lines {
    double cycles = cost::halves_line_cycles;
    bool along_k = true;

    // Of `side` rows or columns, in tiles of so many: no more than there are, see TensorBoxes.
    double of_tile(int side, int tile) const;
};

// Of an item's operands, as the instruction has them. Clock cycles to bring 128 bytes of a row from
// the second-level cache to a multiprocessor, the bytes that have to come from memory, whether a
// comes as TF32 along m, for the consumers to read into registers, whether they are of 16 bits, and
// whether of one narrow product: then of 16 bits the lines count.
struct Loads {
    double row_a, row_b, bytes;
    bool to_registers, halves, narrow;
    int m, n;
    Lines a, b;
};

inline bool is_narrow_of_halves(const Loads &x) { return x.halves && x.narrow; }

// What decides the time: a part of a plan.
struct Tiling {
    int tile, rows, columns, pair;
    Schedule schedule;
    bool down = false;
};

// Clock cycles of so many items.
double cycles(const Tiling &tiling, const Loads &x, int64_t items);

} // namespace pvg::matmul
