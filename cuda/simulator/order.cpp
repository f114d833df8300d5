/* The order check: a launch must leave the same memory whichever way its threads run.
 *
 * It runs backwards (blocks, threads and lanes), the memory is put back, it runs forwards, and all
 * device and pinned memory must then be equal bit by bit. A missing barrier, two threads that write
 * one address, or a sum in the order of arrival shows as a difference. Either order alone would
 * miss some of them. __device__ variables are not put back; allocations larger than VIRTUAL_BYTES
 * are left out. */
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

static void compare(const Launch &job, const Snapshot &backwards) {
    bool reported = false;
    for_each_checked([&](const Allocation &a, size_t i) {
        const char *expected = backwards[i].data();
        if (reported || memcmp(a.base, expected, a.bytes) == 0) return;
        size_t at = 0;
        while (a.base[at] == expected[at]) at++;
        counters[COUNT_ORDER_MISMATCH]++;
        report(cudaErrorLaunchFailure,
               "%s, launched at %s:%d: the result depends on the order of the threads, first at "
               "byte %zu of an allocation of %zu bytes: a barrier is missing, or threads race",
               job.name, job.file, job.line, at, a.bytes);
        reported = true;
    });
}

void run_grid_both_ways(const Launch &job) {
    Snapshot before = save();
    run_grid(job, REVERSE);
    if (running_card_is_lost()) return;
    Snapshot backwards = save();
    restore(before);
    run_grid(job, FORWARD);
    if (!running_card_is_lost()) compare(job, backwards);
}

} /* namespace pvg_sim */
