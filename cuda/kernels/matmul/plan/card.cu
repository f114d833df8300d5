// The card of a device; see card.cuh.
#include "kernels/matmul/plan/card.cuh"
#include "runtime/device.cuh"
#include <stdlib.h>
#include <string.h>

#ifndef PVG_BUILD_ARCHITECTURES
#define PVG_BUILD_ARCHITECTURES "" // the Makefile says which; a compiler run by hand need not
#endif

namespace pvg::matmul {

namespace {

// Of the architectures that the library was built for ("80 90a ptx75") the one whose code such a
// device runs. Machine code runs on devices of its own generation; 90a is 90 with wgmma, and what
// was built for 90 without it counts as a little less. PTX runs on every later device.
int best_architecture(const char *built, int capability) {
    int best = 0;
    for (const char *at = built; *at;) {
        const bool is_ptx = strncmp(at, "ptx", 3) == 0;
        char *end = nullptr;
        const int number = static_cast<int>(strtol(at + (is_ptx ? 3 : 0), &end, 10));
        const bool runs = number <= capability && (is_ptx || number / 10 == capability / 10);
        const int level = number == 90 && *end != 'a' ? 89 : number;
        if (runs && level > best) best = level;
        at = end + strcspn(end, " ");
        at += strspn(at, " ");
    }
    return best;
}

// 0: not asked yet, 1: being written, 2: known.
struct Known {
    Card card;
    std::atomic<int> state;
};
Known known[max_devices];

int ask(int device, Card *card) {
    int64_t major, minor, multiprocessors;
    PVG_PASS(device_attribute(device, PVG_COMPUTE_CAPABILITY_MAJOR, &major));
    PVG_PASS(device_attribute(device, PVG_COMPUTE_CAPABILITY_MINOR, &minor));
    PVG_PASS(device_attribute(device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
    card->architecture =
        best_architecture(PVG_BUILD_ARCHITECTURES, static_cast<int>(major * 10 + minor));
#ifdef PVG_SIMULATOR
    card->tensor_cores = false;
#endif
    card->multiprocessors = static_cast<int>(multiprocessors);
    PVG_PASS(
        device_attribute(device, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &card->shared_of_block));
    return device_attribute(device, PVG_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
                            &card->shared_of_multiprocessor);
}

} // namespace

int card_of(int device, Card *card) {
    Known &x = known[device];
    if (x.state.load(std::memory_order_acquire) == 2) {
        *card = x.card;
        return PVG_OK;
    }
    PVG_PASS(ask(device, card));
    int state = 0;
    if (x.state.compare_exchange_strong(state, 1)) {
        x.card = *card;
        x.state.store(2, std::memory_order_release);
    }
    return PVG_OK;
}

} // namespace pvg::matmul
