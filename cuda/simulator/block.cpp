/* Running the blocks of a launch: one after another, the threads of a block as fibers.
 *
 * run_blocks() is what each worker does with a launch; run_another() is how one thread of the block
 * gives way to another. A thread that does something forbidden reports it and leaves the kernel. */
#include "code_place.h"
#include "watch.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <signal.h>
#include <utility>

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim, gridDim;

namespace pvg_sim {

__thread Worker *worker;

#ifdef PVG_SIM_TSAN
void *race::contexts[1024], *race::home;
#endif

/* ---- Switching between threads ---- */

static void thread_loop();

static void go_to(Worker &w, Fiber &to) {
    Fiber *from = w.current;
    if (from == &to) return;
    w.current = &to;
    switch_fiber(*from, to);
}

/* A fiber for the thread that starts next. The race checker wants one stack per thread: to it, a
 * stack that a second thread uses is memory that both write to. */
static Fiber &fiber_for_next_thread(Worker &w) {
    if (w.idle_count && !race::ENABLED) return *w.idle[--w.idle_count];
    Fiber &fiber = w.fibers[race::ENABLED ? w.sequence[w.started] : w.prepared];
    if (prepare_fiber(fiber, thread_loop)) {
        w.prepared++;
        return fiber;
    }
    report(cudaErrorLaunchFailure, "%s: no memory for the stack of a thread", w.launch->name);
    w.failed = true;
    return w.home;
}

static void resume_oldest(Worker &w) {
    unsigned thread = w.ready[w.ready_head++ % MAX_THREADS];
    w.self = thread;
    *w.thread_index = w.index[thread];
    go_to(w, *w.threads[thread].fiber);
}

void run_another(Worker &w) {
    if (w.failed) {
        go_to(w, w.home);
    } else if (w.started < w.thread_count) {
        go_to(w, fiber_for_next_thread(w));
    } else if (w.ready_head != w.ready_tail) {
        resume_oldest(w);
    } else if (!w.events->tiles.empty() && deliver_tiles(w)) {
        resume_oldest(w);
    } else {
        go_to(w, w.home);
    }
}

static void run_thread(Worker &w, unsigned thread) {
    Thread &t = w.threads[thread];
    t.fiber = w.current;
    t.state = State::ready;
    t.block_barriers = t.warp_barriers = 0;
    note_step(w);
    w.self = thread;
    *w.thread_index = w.index[thread];
    race::enter_thread(thread);
    race::acquire(w.block_sync, w.blocks_run);
    w.launch->call(w.launch->closure);
    end_thread_events(w);
    race::release(w.block_sync, w.blocks_run + 1);
    race::enter_home();
    t.state = State::returned;
    w.alive--;
    w.warps[thread / WARP].live &= ~(1u << thread % WARP);
    if (w.waiting) release_waiting(w, thread);
}

/* What a fiber does: threads that never wait cost a step of the loop and no switch. */
static void thread_loop() {
    fiber_entered();
    Worker &w = *worker;
    while (!w.closing) {
        if (race::ENABLED) {
            run_thread(w, w.sequence[w.started++]);
            run_another(w); /* for good: this fiber's next thread starts it afresh */
        }
        while (w.started < w.thread_count && !w.failed) run_thread(w, w.sequence[w.started++]);
        w.idle[w.idle_count++] = w.current;
        run_another(w);
    }
    Fiber *self = w.current;
    w.current = &w.home;
    leave_fiber(*self, w.home);
}

/* ---- Errors inside a kernel ---- */

static int describe_thread(char *text, size_t bytes, const Launch &job) {
    return snprintf(text, bytes, "%s, block (%u,%u,%u), thread (%u,%u,%u), launched at %s:%d",
                    job.name, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
                    threadIdx.z, job.file, job.line);
}

[[noreturn]] static void give_up(Worker &w) {
    w.failed = true;
    w.grid->stopped = true;
    go_to(w, w.home);
    __builtin_unreachable(); /* fibers are not taken up again after a failure */
}

void fail_kernel(cudaError_t error, const char *format, ...) {
    Worker &w = *worker;
    race::enter_home();
    char where[512], what[512];
    describe_thread(where, sizeof where, *w.launch);
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    report(error, "%s: %s", where, what);
    give_up(w);
}

void report_overdue(Worker &w, const void *place) {
    char code[256];
    describe_code(place, code, sizeof code);
    w.overdue = false;
    fail_kernel(
        cudaErrorLaunchTimeout,
        "it has run for %lld seconds and comes to no barrier and to no end%s: a loop without "
        "end, or one that waits for what another thread or block will write, and here "
        "they run one after another",
        settings.patience, code);
}

bool leave_kernel_after_fault(const siginfo_t &fault, const void *code) {
    Worker *w = worker;
    if (!w || w->current == &w->home) return false;
    if (fault.si_signo == WATCHDOG_SIGNAL) {
        w->overdue = true;
        if (!w->busy) report_overdue(*w, code);
        return true;
    }
    if (fault.si_signo == SIGFPE) {
        fail_kernel(cudaErrorLaunchFailure, "an integer was divided by zero, or the quotient "
                                            "overflows; a card gives an unspecified value");
    }
    const void *address = fault.si_addr;
    if (fault.si_code == SI_KERNEL) { /* then the address is not told */
        fail_kernel(cudaErrorIllegalAddress, "illegal access, far outside of all memory");
    }
    if (is_stack_overflow(*w->current, address)) {
        fail_kernel(cudaErrorLaunchFailure, "its local variables need more than a fiber's stack");
    }
    char place[256];
    describe_address(address, place, sizeof place);
    fail_kernel(cudaErrorIllegalAddress, "illegal access of address %p%s", address, place);
}

/* ---- Order ---- */

static uint64_t mix(uint64_t x) { /* the finaliser of splitmix64 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void shuffle_threads(Worker &w, uint64_t block) {
    uint64_t state = mix(settings.seed + mix(block + 1));
    for (unsigned i = w.thread_count; i > 1; i--) {
        state = mix(state + 0x9e3779b97f4a7c15u);
        std::swap(w.sequence[i - 1], w.sequence[state % i]);
    }
}

/* The turn-th block to run. Shuffled: steps of about 0.618 of the grid, which visit every block. */
static uint64_t block_at(const Grid &grid, uint64_t turn) {
    if (grid.order == FORWARD) return turn;
    if (grid.order == REVERSE) return grid.blocks - 1 - turn;
    uint64_t step = grid.blocks - grid.blocks * 382 / 1000;
    while (std::gcd(step, grid.blocks) != 1) step++;
    return (uint64_t)(((unsigned __int128)turn * step + settings.seed) % grid.blocks);
}

/* ---- One worker's share of a launch ---- */

static bool is_deadlocked(const Worker &w) { return w.alive && !w.failed; }

void begin_block(Worker &w, uint64_t block) {
    const dim3 &grid = w.launch->grid;
    blockIdx = {(unsigned)(block % grid.x), (unsigned)(block / grid.x % grid.y),
                (unsigned)(block / grid.x / grid.y)};
    w.place = blockIdx;
    if (w.grid->order == SHUFFLED) shuffle_threads(w, block);
    w.started = w.at_barrier = w.waiting = 0;
    w.busy = w.overdue = false;
    watch::begin_block(block);
    w.alive = w.thread_count;
    w.ready_head = w.ready_tail = 0;
    for (unsigned first = 0; first < w.thread_count; first += WARP) {
        unsigned lanes = w.thread_count - first;
        w.warps[first / WARP].live = lanes >= WARP ? ~0u : (1u << lanes) - 1;
        w.warps[first / WARP].waiting = 0;
    }
    begin_events(w);
    race::release(w.block_sync, w.blocks_run);
}

void end_block(Worker &w) {
    if (is_deadlocked(w)) {
        report_deadlock(w);
        w.failed = w.grid->stopped = true;
    }
    if (!w.failed) end_block_events(w);
    w.blocks_run++;
}

static void run_block(Worker &w, uint64_t block) {
    begin_block(w, block);
    run_another(w); /* until no thread can run: all returned, or they wait for each other */
    end_block(w);
}

static void index_threads(Worker &w, const dim3 &block) {
    const dim3 &have = w.indexed_block;
    if (have.x == block.x && have.y == block.y && have.z == block.z) return;
    unsigned i = 0;
    for (unsigned z = 0; z < block.z; z++) {
        for (unsigned y = 0; y < block.y; y++) {
            for (unsigned x = 0; x < block.x; x++) w.index[i++] = {x, y, z};
        }
    }
    w.indexed_block = block;
}

bool begin_launch(Worker &w) {
    const Grid &grid = *w.grid;
    const Launch &job = *grid.launch;
    w.launch = &job;
    w.thread_count = job.block.x * job.block.y * job.block.z;
    w.failed = w.closing = false;
    w.idle_count = w.prepared = 0;
    w.current = &w.home;
    w.thread_index = &threadIdx;
    adopt_thread_stack(w.home);
    index_threads(w, job.block);
    for (unsigned i = 0; i < w.thread_count; i++) {
        w.sequence[i] = grid.order == REVERSE ? w.thread_count - 1 - i : i;
    }
    w.blocks_run = 0;
    race::begin_launch();
    watch::begin_launch();
    if (!obtain_dynamic_shared(w)) {
        report(cudaErrorLaunchFailure, "%s: no memory for %zu bytes of shared memory", job.name,
               job.shared_bytes);
        return false;
    }
    begin_shared(w);
    return true;
}

void end_launch(Worker &w) {
    race::acquire(w.block_sync, 0);
    race::acquire(w.block_sync, 1);
#if defined(__SANITIZE_ADDRESS__)
    w.closing = true; /* frees AddressSanitizer's fake stacks */
    while (w.idle_count) {
        w.current = w.idle[--w.idle_count];
        switch_fiber(w.home, *w.current);
    }
#endif
    end_shared(w);
    free_dynamic_shared(w);
}

static void check_surroundings(Worker &w) {
    Damage damage;
    if (!find_damage(&damage)) return;
    char where[512];
    snprintf(where, sizeof where, "%s, seen after block (%u,%u,%u), launched at %s:%d",
             w.launch->name, blockIdx.x, blockIdx.y, blockIdx.z, w.launch->file, w.launch->line);
    report_damage(damage, where);
    w.failed = w.grid->stopped = true;
}

void run_blocks(Worker &w) {
    Grid &grid = *w.grid;
    const bool in_clusters = grid.launch->cluster > 1;
    if (!begin_launch(w) || (in_clusters && !begin_cluster(w))) return;
    for (uint64_t turn; !grid.stopped && (turn = grid.next++) < grid.blocks;) {
        race::acquire(w.block_sync, w.blocks_run);
        poison_shared(w);
        if (in_clusters) {
            run_cluster(w, block_at(grid, turn));
        } else {
            run_block(w, block_at(grid, turn));
        }
        if (grid.few_allocations) check_surroundings(w);
    }
    if (in_clusters) end_cluster(w);
    end_launch(w);
}

} /* namespace pvg_sim */
