// How a product's tiles of c are cut into the units that blocks walk through: see
// sm90/schedule.cuh, where the kernels do so.
//
// What is cut depends on the shape alone, and was tuned for 132 multiprocessors: never on the
// device of the day, the number of items or free memory, so that an item of a batch has the bits of
// the product of that item.
#pragma once
#include "kernels/matmul/product.cuh"

namespace pvg::matmul {

struct Schedule {
    int items = 1;
    int tiles_down, tiles_across; // of an item; a cluster of blocks counts as one tile
    int k_blocks, k_step;         // K in blocks; slices are multiples of k_step blocks
    int whole, cut = 0;           // tiles of an item that are whole, and that are cut
    int slices = 1;               // of a tile that is cut
    float *partials = nullptr;    // [item][cut][part][slice]: what the slices leave
    unsigned *tickets = nullptr;  // [item][cut][part]: zero at the start

    __host__ __device__ int units_of_item() const { return whole + cut * slices; }
    __host__ __device__ int64_t units() const { return int64_t(items) * units_of_item(); }
};

// All tiles whole. `step`: what slices would be multiples of.
Schedule whole_schedule(int64_t tiles_down, int64_t tiles_across, int k_blocks, int step);

// Decides what to cut. The cost is in units of the time of one tile; cutting once more costs
// `overhead` of that. `cluster` blocks share a tile.
Schedule cut_schedule(const Schedule &whole, int cluster, double overhead);

// What the slices of `items` items need: `parts` warpgroups work on a tile, with `sums` sums a
// thread each.
inline int64_t partial_bytes(const Schedule &schedule, int items, int parts, int sums) {
    return int64_t(items) * schedule.cut * parts * schedule.slices * sums * 128 *
           int64_t(sizeof(float));
}
inline int64_t ticket_bytes(const Schedule &schedule, int items, int parts) {
    return int64_t(items) * schedule.cut * parts * int64_t(sizeof(unsigned));
}

} // namespace pvg::matmul
