/* What threads wait for besides __syncthreads and the warp functions: barriers in shared memory
 * (mbarrier), barriers of a part of a block (bar.sync), the kernel before.
 *
 * Such a thread sleeps until somebody wakes all who wait for the same thing; if nothing else can
 * run, copies by TMA arrive (tensor_maps.cpp), and if there are none it is a deadlock. A barrier in
 * shared memory is 8 bytes there, as on a card: so memory that was never made a barrier, or was
 * written over, is found by what it holds. */
#include "worker.h"

#include <cstring>

namespace pvg_sim {

Events::Events() : threads(MAX_THREADS) {}

void sleep_for(const void *event, const char *file, int line) {
    Worker &w = *worker;
    Thread &t = w.threads[w.self];
    unsigned self = w.self;
    t.file = file, t.line = line, t.state = State::at_event;
    w.events->threads[self].event = event;
    w.events->asleep++, w.waiting++;
    race::enter_home();
    run_another(w);
    race::enter_thread(self);
}

void wake_all(Worker &w, const void *event) {
    if (!w.events->asleep) return;
    for (unsigned i = 0; i < w.thread_count; i++) {
        unsigned thread = w.sequence[i];
        if (w.threads[thread].state != State::at_event) continue;
        if (w.events->threads[thread].event != event) continue;
        w.events->asleep--;
        wake(w, thread);
    }
}

bool somebody_waits_for(const Worker &w, const void *event) {
    for (unsigned i = 0; w.events->asleep && i < w.thread_count; i++) {
        if (w.threads[i].state == State::at_event && w.events->threads[i].event == event) {
            return true;
        }
    }
    return false;
}

/* ---- Barriers in shared memory ---- */

/* The 8 bytes. `mark` is neither that of fresh memory nor that of zeros. */
struct SharedBarrier {
    uint64_t arrivals : 20, missing : 20; /* of a phase; in the one that runs */
    int64_t bytes : 21;                   /* expected in it, and not there yet */
    uint64_t phase : 1, mark : 2;
};
static_assert(sizeof(SharedBarrier) == 8, "as large as an mbarrier");
static const uint64_t MARK = 1;
static const int MOST_ARRIVALS = (1 << 20) - 1;

static SharedBarrier &barrier_at(uint32_t address, const char *what) {
    auto *barrier = static_cast<SharedBarrier *>(shared_pointer(address, sizeof(SharedBarrier)));
    if (barrier->mark == MARK) return *barrier;
    fail_kernel(cudaErrorIllegalInstruction, "%s where no barrier was made in shared memory", what);
}

void make_barrier(uint32_t address, int arrivals) {
    require_capability(80, "mbarrier");
    auto *barrier = static_cast<SharedBarrier *>(shared_pointer(address, sizeof(SharedBarrier)));
    if (arrivals < 1 || arrivals > MOST_ARRIVALS) {
        fail_kernel(cudaErrorIllegalInstruction, "a barrier for %d arrivals", arrivals);
    }
    barrier->arrivals = barrier->missing = (uint64_t)arrivals & MOST_ARRIVALS;
    barrier->bytes = 0, barrier->phase = 0, barrier->mark = MARK;
}

static void end_phase_if_complete(SharedBarrier &barrier) {
    if (barrier.missing || barrier.bytes) return;
    barrier.missing = barrier.arrivals;
    barrier.phase ^= 1;
    wake_all(*worker, &barrier);
}

void arrive_at_barrier(uint32_t address, int arrivals, int expected_bytes) {
    require_capability(expected_bytes ? 90 : 80, "mbarrier");
    SharedBarrier &barrier = barrier_at(address, "an arrival");
    if (arrivals < 1 || (unsigned)arrivals > barrier.missing) {
        fail_kernel(cudaErrorIllegalInstruction,
                    "%d arrivals at a barrier in shared memory where %u are missing", arrivals,
                    (unsigned)barrier.missing);
    }
    race::release(worker->events->order, 0);
    barrier.bytes += expected_bytes;
    barrier.missing -= (unsigned)arrivals;
    end_phase_if_complete(barrier);
}

void wait_at_barrier(uint32_t address, int parity, const char *file, int line) {
    require_capability(80, "mbarrier");
    SharedBarrier &barrier = barrier_at(address, "a wait");
    while (barrier.phase == (unsigned)parity) sleep_for(&barrier, file, line);
    race::acquire(worker->events->order, 0);
}

void bytes_have_come(uint32_t address, size_t bytes) {
    SharedBarrier &barrier = barrier_at(address, "bytes came");
    barrier.bytes -= (int)bytes;
    end_phase_if_complete(barrier);
}

/* ---- Barriers of a part of a block ---- */

void sync_threads(int number, int threads, const char *file, int line) {
    Worker &w = *worker;
    if (number < 0 || number >= PARTIAL_BARRIERS || threads <= 0 || threads % (int)WARP) {
        fail_kernel(cudaErrorIllegalInstruction, "barrier %d of %d threads", number, threads);
    }
    PartialBarrier &barrier = w.events->partial[number];
    if (barrier.arrived && barrier.threads != threads) {
        fail_kernel(cudaErrorLaunchFailure, "threads wait at barrier %d for %d and for %d threads",
                    number, barrier.threads, threads);
    }
    barrier.threads = threads;
    race::release(w.events->order, 0);
    if (++barrier.arrived < threads) {
        sleep_for(&barrier, file, line);
    } else {
        barrier.arrived = 0;
        wake_all(w, &barrier);
    }
    race::acquire(w.events->order, 0);
}

/* ---- The kernel before ---- */

void wait_for_previous_kernel() {
    if (worker->launch->overlap) worker->events->threads[worker->self].has_waited = true;
}

void check_has_waited(const char *before) {
    const Worker &w = *worker;
    if (!w.launch->overlap || w.events->threads[w.self].has_waited) return;
    fail_kernel(cudaErrorLaunchFailure,
                "%s before griddepcontrol.wait, in a kernel that may begin before the one ahead "
                "of it has ended",
                before);
}

/* ---- A block ---- */

void begin_events(Worker &w) {
    Events &events = *w.events;
    for (unsigned i = 0; i < w.thread_count; i++) {
        AsyncThread &thread = events.threads[i];
        thread.copies.clear();
        thread.committed = 0, thread.event = nullptr, thread.has_waited = false;
    }
    for (PartialBarrier &barrier : events.partial) barrier = {};
    events.tiles.clear();
    events.asleep = 0;
    if (w.cluster && w.launch->cluster == 1) w.cluster->arrived = 0;
}

void end_thread_events(Worker &w) {
    check_has_waited("it returned");
    finish_all_copies(w);
}

void end_block_events(Worker &w) {
    if (w.events->tiles.empty()) return;
    report(
        cudaErrorLaunchFailure,
        "%s, block (%u,%u,%u), launched at %s:%d: the block ended while %zu copies by TMA to its "
        "shared memory were on their way",
        w.launch->name, blockIdx.x, blockIdx.y, blockIdx.z, w.launch->file, w.launch->line,
        w.events->tiles.size());
    w.failed = w.grid->stopped = true;
}

} /* namespace pvg_sim */
