// The card of a device; see card.cuh.
#include "kernels/matmul/plan/card.cuh"
#include "runtime/architecture.cuh"
#include "runtime/device.cuh"

namespace pvg::matmul {

namespace {

// 0: not asked yet, 1: being written, 2: known.
struct Known {
    Card card;
    std::atomic<int> state;
};
Known known[max_devices];

int ask(int device, Card *card) {
    int64_t multiprocessors;
    PVG_PASS(architecture_of(device, &card->architecture));
    PVG_PASS(device_attribute(device, PVG_MULTIPROCESSOR_COUNT, &multiprocessors));
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
