/* Where threads wait for each other: __syncthreads and the warp functions.
 *
 * Each thread leaves what it brings and waits; the last one to arrive computes the results of all
 * and makes them ready. Misuse is an error that names the barriers' places: threads of a block at
 * different barriers, threads that returned without reaching one (allowed with "strict" 0: since
 * Volta the hardware counts only threads that have not returned), a lane outside its own mask, two
 * lanes that wait for each other at different places or with different masks, a shuffle from a lane
 * that takes no part (with "strict" 0 it gives NaN or -1). */
#include "watch.h"

#include <cstdio>
#include <cstring>

namespace pvg_sim {

static bool same_place(const Thread &a, const Thread &b) {
    return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

/* ---- Blocks ---- */

static void check_block_barrier(const Worker &w) {
    const Thread *first = nullptr;
    for (unsigned i = 0; i < w.thread_count; i++) {
        const Thread &t = w.threads[i];
        if (t.state != State::at_block_barrier) continue;
        if (!first) first = &t;
        if (!same_place(*first, t)) {
            fail_kernel(cudaErrorLaunchFailure,
                        "threads of one block wait at different barriers, %s:%d and %s:%d",
                        first->file, first->line, t.file, t.line);
        }
    }
    if (w.alive < w.thread_count && settings.strict) {
        fail_kernel(cudaErrorLaunchFailure,
                    "%u of %u threads returned without reaching the barrier at %s:%d",
                    w.thread_count - w.alive, w.thread_count, first->file, first->line);
    }
}

static void release_block_if_complete(Worker &w) {
    if (!w.at_barrier || w.at_barrier < w.alive) return;
    check_block_barrier(w);
    int count = 0;
    for (unsigned i = 0; i < w.thread_count; i++) {
        const Thread &t = w.threads[i];
        count += t.state == State::at_block_barrier && t.predicate;
    }
    w.at_barrier = 0;
    watch::block_barrier();
    for (unsigned i = 0; i < w.thread_count; i++) {
        unsigned thread = w.sequence[i];
        if (w.threads[thread].state != State::at_block_barrier) continue;
        w.threads[thread].result.count = count;
        wake(w, thread);
    }
}

Exchange block_barrier(bool predicate, const char *file, int line) {
    Worker &w = *worker;
    Thread &t = w.threads[w.self];
    unsigned turn = t.block_barriers++, self = w.self;
    t.predicate = predicate, t.file = file, t.line = line, t.state = State::at_block_barrier;
    w.at_barrier++, w.waiting++;
    note_step(w);
    race::release(w.barrier_sync, turn);
    race::enter_home();
    release_block_if_complete(w);
    run_another(w);
    race::enter_thread(self);
    race::acquire(w.barrier_sync, turn);
    return t.result;
}

/* ---- Warps ---- */

[[noreturn]] static void report_absent_lane(const Thread &t, unsigned lane, unsigned group) {
    fail_kernel(cudaErrorLaunchFailure,
                "lane %u takes a value from lane %d at %s:%d, but that lane takes no part in the "
                "shuffle (mask %08x, lanes there %08x): on a card the value is undefined",
                lane, t.source, t.file, t.line, t.mask, group);
}

/* Whether all lanes that wait are at the place of the one that has arrived, with its mask. The
 * first of them stands for all, as long as each that came was like it. */
static bool is_like_all(Warp &warp, const Thread *lanes, unsigned arrived) {
    const Thread &t = lanes[arrived];
    if (warp.waiting == 1u << arrived) {
        warp.first = arrived, warp.all_alike = true;
    } else if (warp.all_alike) {
        const Thread &first = lanes[warp.first];
        warp.all_alike = first.mask == t.mask && same_place(first, t);
    }
    return warp.all_alike;
}

/* Two lanes, each in the mask of the other one, at different places or with different masks: they
 * would wait for ever, and a card mixes up the two. */
static void check_warp_meets(Warp &warp, const Thread *lanes, unsigned arrived) {
    if (is_like_all(warp, lanes, arrived)) return;
    const Thread &t = lanes[arrived];
    for (unsigned left = warp.waiting & t.mask; left; left &= left - 1) {
        unsigned other = (unsigned)__builtin_ctz(left);
        const Thread &o = lanes[other];
        if (!(o.mask >> arrived & 1) || (o.mask == t.mask && same_place(o, t))) continue;
        fail_kernel(cudaErrorLaunchFailure,
                    "two warp functions meet: lane %u is at %s:%d with mask %08x, lane %u at %s:%d "
                    "with mask %08x",
                    arrived, t.file, t.line, t.mask, other, o.file, o.line, o.mask);
    }
}

/* Gives each lane of the group its result; a lane that reads one that is not there gets poison. */
static void exchange(Thread *lanes, unsigned group, unsigned ballot) {
    for (unsigned left = group; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        Thread &t = lanes[lane];
        t.result.ballot = ballot;
        if (t.source < 0) continue; /* no shuffle, which alone looks at the value */
        if (group >> t.source & 1) {
            memcpy(t.result.value, lanes[t.source].value, sizeof t.result.value);
        } else {
            if (settings.strict) report_absent_lane(t, lane, group);
            memset(t.result.value, POISON, sizeof t.result.value);
        }
    }
}

/* Releases every group of lanes of the warp that is complete: all live lanes of a mask wait, at the
 * same place, with that mask. Groups with disjoint masks may be at different places. */
static void release_warp_if_complete(Worker &w, unsigned number) {
    Warp &warp = w.warps[number];
    Thread *lanes = &w.threads[number * WARP];
    for (unsigned left = warp.waiting; left;) {
        const Thread &one = lanes[__builtin_ctz(left)];
        unsigned group = one.mask & warp.live, ballot = 0;
        left &= left - 1;
        if (group & ~warp.waiting) continue; /* somebody is still to come */
        bool together = true;
        for (unsigned rest = group; rest; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            together = together && (warp.all_alike ||
                                    (lanes[lane].mask == one.mask && same_place(lanes[lane], one)));
            ballot |= (unsigned)lanes[lane].predicate << lane;
        }
        if (!together) continue;
        exchange(lanes, group, ballot);
        watch::warp_barrier(number * WARP, group);
        warp.waiting &= ~group;
        left &= ~group;
        while (group) {
            unsigned lane = w.grid->order == REVERSE ? 31 - (unsigned)__builtin_clz(group)
                                                     : (unsigned)__builtin_ctz(group);
            group &= ~(1u << lane);
            wake(w, number * WARP + lane);
        }
    }
}

Exchange warp_barrier(const Offer &offer, const char *file, int line) {
    Worker &w = *worker;
    unsigned self = w.self, lane = self % WARP;
    Thread &t = w.threads[self];
    Warp &warp = w.warps[self / WARP];
    if (!(offer.mask >> lane & 1)) {
        fail_kernel(cudaErrorLaunchFailure, "lane %u is not in its own mask %08x at %s:%d", lane,
                    offer.mask, file, line);
    }
    t.mask = offer.mask, t.predicate = offer.predicate, t.source = offer.source;
    t.file = file, t.line = line, t.state = State::at_warp_barrier;
    if (offer.bytes) memcpy(t.value, offer.value, offer.bytes);
    unsigned turn = t.warp_barriers++;
    w.waiting++;
    warp.waiting |= 1u << lane;
    note_step(w);
    check_warp_meets(warp, &w.threads[self - lane], lane);
    race::release(warp.sync, turn);
    race::enter_home();
    if (!(t.mask & warp.live & ~warp.waiting)) release_warp_if_complete(w, self / WARP);
    run_another(w);
    race::enter_thread(self);
    race::acquire(warp.sync, turn);
    return t.result;
}

/* ---- Returns and deadlocks ---- */

void release_waiting(Worker &w, unsigned returned) {
    release_block_if_complete(w);
    release_warp_if_complete(w, returned / WARP);
}

void report_deadlock(const Worker &w) {
    char where[512] = "";
    size_t length = 0;
    bool told[MAX_THREADS] = {};
    for (unsigned i = 0; i < w.thread_count && length < sizeof where; i++) {
        const Thread &one = w.threads[i];
        if (told[i] || one.state == State::returned) continue;
        unsigned count = 0;
        for (unsigned j = i; j < w.thread_count; j++) {
            const Thread &other = w.threads[j];
            if (other.state != one.state || !same_place(other, one)) continue;
            told[j] = true;
            count++;
        }
        length += (size_t)snprintf(where + length, sizeof where - length,
                                   "%u at the %s barrier %s:%d; ", count,
                                   one.state == State::at_block_barrier  ? "block"
                                   : one.state == State::at_warp_barrier ? "warp"
                                                                         : "shared",
                                   one.file, one.line);
    }
    report(cudaErrorLaunchTimeout,
           "%s, block (%u,%u,%u), launched at %s:%d: deadlock, no thread can go on: %s%u returned",
           w.launch->name, blockIdx.x, blockIdx.y, blockIdx.z, w.launch->file, w.launch->line,
           where, w.thread_count - w.alive);
}

unsigned lane() { return worker->self % WARP; }

void fence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    watch::fence(worker->self);
}

void *dynamic_shared() { return worker->dynamic_shared; }

void trap(const char *file, int line) {
    fail_kernel(cudaErrorLaunchFailure, "__trap() at %s:%d", file, line);
}

} /* namespace pvg_sim */
