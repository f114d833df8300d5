// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC11): four words of 32 bits from a counter of 128
// bits, whose upper half is the stream, and a key of 64.
#pragma once
#include <stdint.h>

namespace pvg {

struct Words { uint32_t word[4]; };

__device__ __forceinline__ Words philox(uint64_t key, uint64_t stream, uint64_t counter) {
    uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    uint32_t c0 = uint32_t(counter), c1 = uint32_t(counter >> 32);
    uint32_t c2 = uint32_t(stream), c3 = uint32_t(stream >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
        c0 = uint32_t(p1 >> 32) ^ c1 ^ k0;
        c2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
        c1 = uint32_t(p1);
        c3 = uint32_t(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

} // namespace pvg
