/* The cards that can be simulated, by compute capability: "card0" ... of pvg_sim_set().
 *
 * 7.5 is the small Turing that every card is unless a setting says otherwise; 8.0 and 9.0 have the
 * shared memory, the instructions and the launches of an A100 and of an H200. All have as few
 * multiprocessors as "multiprocessors" says, so that kernels which fill a card start few blocks. */
#include "simulator.h"

namespace pvg_sim {

static const Description descriptions[] = {
    {75, 64 << 10, 64 << 10, 0, 1024, 16},
    {80, 163 << 10, 164 << 10, 1 << 10, 2048, 32},
    {90, 227 << 10, 228 << 10, 1 << 10, 2048, 32},
};

static const Description *find_description(long long capability) {
    for (const Description &one : descriptions) {
        if (one.capability == capability) return &one;
    }
    return nullptr;
}

static const Description *chosen[MAX_CARDS];

const Description &description_of(int device) {
    return chosen[device] ? *chosen[device] : descriptions[0];
}

bool describe_as(int device, long long capability) {
    const Description *description = find_description(capability);
    if (device < 0 || device >= MAX_CARDS || !description) return false;
    chosen[device] = description;
    return true;
}

void require_capability(int capability, const char *instruction) {
    const Description &card = description_of(running_card_number());
    if (card.capability >= capability) return;
    fail_kernel(cudaErrorIllegalInstruction,
                "%s needs compute capability %d.%d, and this card has %d.%d", instruction,
                capability / 10, capability % 10, card.capability / 10, card.capability % 10);
}

} /* namespace pvg_sim */
