/* Where the elements of a walk lie, arrays/locate.cuh: against plain division, for random walks of
 * every number of dimensions and about every border: 2^31 positions, strides of 32 bits, lengths
 * beside powers of two. No array of a test is so large, so this calls what the header has. */
#include "arrays/locate.cuh"
#include "simulator/tests/check.h"

#include <cstdlib>
#include <random>

namespace {

using namespace pvg;

std::mt19937_64 generator(20261130);

int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(generator() % static_cast<uint64_t>(most - least + 1));
}

/* Near a power of two as often as not. */
int64_t some_length(int64_t most) {
    int bits = 0;
    while (bits < 62 && int64_t(2) << bits <= most) bits++;
    const int64_t length = (int64_t(1) << between(0, bits)) + between(-2, 2);
    return length < 1 ? 1 : length > most ? most : length;
}
/* About the ends of 32 bits: what a walk of 2^31 positions takes them to still fits 64. */
int64_t some_stride() {
    constexpr int64_t most = int64_t(1) << 31;
    switch (generator() % 4) {
    case 0: return between(-most - 2, -most + 2); // -2^31 fits 32 bits
    case 1: return between(most - 3, most + 1);   // 2^31 - 1 does
    default: return between(-1000, 1000);
    }
}

/* Of `most` positions at most, the outer dimensions first; `far`: some strides about 2^31. */
Locator<2> some_walk(int64_t most, bool far) {
    Locator<2> locator = {};
    Walk<2> &walk = locator.walk;
    walk.ndim = static_cast<int>(between(0, 6));
    for (int i = 0; i < walk.ndim; i++) {
        walk.shape[i] = some_length(most);
        most /= walk.shape[i];
        for (int64_t (&strides)[PVG_MAX_NDIM] : walk.strides)
            strides[i] = far && generator() % 8 == 0 ? some_stride() : between(-1000, 1000);
    }
    return locator;
}

int64_t positions_of(const Walk<2> &walk) {
    int64_t count = 1;
    for (int i = 0; i < walk.ndim; i++) count *= walk.shape[i];
    return count;
}
bool should_be_narrow(const Walk<2> &walk) {
    bool fits = true;
    for (int i = 0; i < walk.ndim; i++)
        for (const int64_t (&strides)[PVG_MAX_NDIM] : walk.strides)
            fits = fits && strides[i] >= INT32_MIN && strides[i] <= INT32_MAX;
    return fits && positions_of(walk) - 1 < int64_t(1) << 31;
}

void check_positions(const Locator<2> &locator) {
    const int64_t count = positions_of(locator.walk);
    int64_t position[4], offsets[2][4];
    position[0] = count - 1, position[1] = count / 2;
    position[2] = between(0, count - 1), position[3] = between(0, count - 1);
    locate(locator, position, offsets);
    for (int e = 0; e < 4; e++) {
        int64_t rest = position[e];
        uint64_t expected[2] = {}; // offsets of 64 bits, whatever they are
        for (int i = locator.walk.ndim - 1; i >= 0; i--) {
            for (int k = 0; k < 2; k++)
                expected[k] += static_cast<uint64_t>(rest % locator.walk.shape[i]) *
                               static_cast<uint64_t>(locator.walk.strides[k][i]);
            rest /= locator.walk.shape[i];
        }
        for (int k = 0; k < 2; k++) CHECK_EQUAL(offsets[k][e], static_cast<int64_t>(expected[k]));
    }
}

void random_walks() {
    int narrow = 0, wide = 0;
    for (int round = 0; round < 200000 && checks_failed < 20; round++) {
        const bool far = round % 2;
        Locator<2> locator = some_walk(int64_t(1) << between(0, far ? 31 : 40), far);
        prepare(&locator);
        CHECK_EQUAL(locator.narrow, should_be_narrow(locator.walk));
        (locator.narrow ? narrow : wide)++;
        check_positions(locator);
    }
    CHECK(narrow > 10000 && wide > 10000);
}

/* 2^31 positions are numbered below 2^31; one more is not. */
void around_the_border() {
    for (int64_t more : {-1, 0, 1}) {
        Locator<2> locator = {};
        locator.walk.ndim = 1, locator.walk.shape[0] = (int64_t(1) << 31) + more;
        locator.walk.strides[0][0] = locator.walk.strides[1][0] = 1;
        prepare(&locator);
        CHECK_EQUAL(locator.narrow, more <= 0);
        check_positions(locator);
    }
}

} // namespace

int main() {
    random_walks();
    around_the_border();
    return finish("positions");
}
