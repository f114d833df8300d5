// What a plan may know of the card that a product runs on.
#pragma once
#include "runtime/error.cuh"

namespace pvg::matmul {

struct Card {
    // Compute capability times ten that the library's code for it was built for: 90 with the
    // instructions of 9.0a, as on an H200, 89 for code of 9.0 without them. 0 where no code runs.
    int architecture;
    int multiprocessors;
    int64_t shared_of_block, shared_of_multiprocessor; // bytes that can be asked for
    bool tensor_cores = true;                          // the simulated card has none

    // Kernels may begin while the ones before them end, and blocks be in clusters.
    bool overlaps() const { return architecture >= 90; }
};

// A device's. Errors: CUDA.
int card_of(int device, Card *card);

} // namespace pvg::matmul
