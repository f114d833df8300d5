/* The order check: a launch must leave the same memory whichever way its threads run, and whatever
 * shared memory held before.
 *
 * It runs backwards (blocks, threads and lanes), the memory is put back, it runs forwards with
 * another poison in shared memory, and all device and pinned memory must then be equal bit by bit.
 * A missing barrier, two threads that write one address, or a sum in the order of arrival shows as
 * a difference, and so does a maximum that takes in what nobody has written. Either run alone would
 * miss some of them; which it was, a third run tells. __device__ variables are not put back;
 * allocations larger than VIRTUAL_BYTES are left out, and so is memory that a launch leaves in any
 * order and says so (runtime/any_order.cuh). */
#include "simulator.h"

#include <cstring>
#include <vector>

namespace pvg_sim {

using Snapshot = std::vector<std::vector<char>>; /* one entry per allocation, in address order */

static bool is_checked(const Allocation &allocation) {
    return allocation.bytes <= VIRTUAL_BYTES && !allocation.registered;
}

template <class F> static void for_each_checked(F visit) {
    size_t index = 0;
    for (const Allocation *a = next_allocation(nullptr); a; a = next_allocation(a)) {
        if (is_checked(*a)) visit(*a, index++);
    }
}

static Snapshot save() {
    Snapshot saved;
    for_each_checked(
        [&](const Allocation &a, size_t) { saved.emplace_back(a.base, a.base + a.bytes); });
    return saved;
}

static void restore(const Snapshot &saved) {
    for_each_checked(
        [&](const Allocation &a, size_t i) { memcpy(a.base, saved[i].data(), a.bytes); });
}

/* Where memory first differs from what was saved. */
struct Difference {
    const Allocation *allocation = nullptr;
    size_t at = 0;
};

static Difference compare(const Snapshot &saved, const Loose &loose) {
    Difference found;
    for_each_checked([&](const Allocation &a, size_t i) {
        const char *expected = saved[i].data();
        if (found.allocation || memcmp(a.base, expected, a.bytes) == 0) return;
        for (found.at = 0; found.at < a.bytes; found.at++) {
            const char *byte = a.base + found.at;
            if (*byte == expected[found.at]) continue;
            if (byte >= loose.memory && byte < loose.memory + loose.bytes) continue;
            found.allocation = &a;
            return;
        }
    });
    return found;
}

static thread_local Loose next_loose;

void next_in_any_order(const void *memory, size_t bytes) {
    next_loose = {static_cast<const char *>(memory), bytes};
}

Loose take_loose() {
    Loose taken = next_loose;
    next_loose = Loose();
    return taken;
}

static void report_difference(const Launch &job, const Difference &found, bool by_order) {
    counters[COUNT_ORDER_MISMATCH]++;
    report(cudaErrorLaunchFailure,
           "%s, launched at %s:%d: the result depends on %s, first at byte %zu of an allocation of "
           "%zu bytes: %s",
           job.name, job.file, job.line,
           by_order ? "the order of the threads" : "shared memory that no thread has written",
           found.at, found.allocation->bytes,
           by_order ? "a barrier is missing, or threads race"
                    : "it is read, or compared, before a write");
}

void run_grid_both_ways(const Launch &job, const Loose &loose) {
    /* In turn one that a maximum takes, of signed numbers as well, and one that a minimum takes. */
    static unsigned launches = 0;
    const unsigned char other_poison = launches++ % 2 ? 0x00 : 0x7F;
    Snapshot before = save();
    run_grid(job, REVERSE);
    if (running_card_is_lost()) return;
    Snapshot backwards = save();
    restore(before);
    run_grid(job, FORWARD, other_poison);
    if (running_card_is_lost()) return;
    Difference found = compare(backwards, loose);
    if (!found.allocation) return;
    restore(before);
    run_grid(job, FORWARD);
    if (running_card_is_lost()) return;
    Difference by_order = compare(backwards, loose);
    report_difference(job, by_order.allocation ? by_order : found, by_order.allocation);
}

} /* namespace pvg_sim */
