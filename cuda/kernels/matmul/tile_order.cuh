// In which order the blocks of a grid take the tiles of c.
#pragma once

namespace pvg::matmul {

// Tiles in groups of eight rows, walked column by column: what is computed at the same time then
// needs few different rows and columns, which the second-level cache holds.
__device__ __forceinline__ void place_tile(int tile, int tiles_down, int tiles_across, int *row,
                                           int *column) {
    constexpr int height = 8;
    const int group = tile / (height * tiles_across), first = group * height;
    const int rows = min(height, tiles_down - first), rest = tile - group * height * tiles_across;
    *row = first + rest % rows;
    *column = rest / rows;
}

} // namespace pvg::matmul
