/* A worker: one OS thread that runs blocks, one block at a time, each thread of it on a fiber.
 *
 * A fiber runs threads in a loop until one of them waits; only then another fiber is needed. A
 * kernel without barriers so uses one fiber and no switch. At a barrier the waiting thread switches
 * straight to the next thread that can run; control comes home only when none can. */
#pragma once
#include "events.h"
#include "fibers.h"
#include "race_checker.h"
#include "simulator.h"

#include <memory>
#include <pthread.h>
#include <semaphore.h>
#include <vector>

namespace pvg_sim {

constexpr unsigned MAX_THREADS = 1024, WARP = 32;

enum class State : unsigned char { ready, at_block_barrier, at_warp_barrier, at_event, returned };

/* One thread of the block that runs. */
struct Thread {
    Fiber *fiber;
    State state;
    bool predicate;
    int source; /* lane that a shuffle reads */
    unsigned mask;
    const char *file; /* of the barrier it waits at */
    int line;
    unsigned char value[16]; /* offered to a shuffle */
    Exchange result;
    unsigned block_barriers, warp_barriers; /* passed so far, for the race checker */
};

struct Warp {
    unsigned live;    /* lanes that exist and have not returned */
    unsigned waiting; /* lanes at a warp barrier */
    unsigned first;   /* of them, that came when no other one waited */
    bool all_alike;   /* those that wait are at one place, with one mask */
    race::Sync sync;
};

/* The parts of the TLS block that a kernel uses, in their order and apart; shared_memory.cpp. */
struct Footprint {
    struct Range { size_t first, last; /* offsets, `last` of the byte behind it */ };
    std::vector<Range> ranges;
    unsigned launches = 0;
};

struct Worker {
    sem_t start; /* posted when `grid` has work for it */
    pthread_t os_thread;
    char signal_stack[64 << 10];    /* a kernel's own may be the one that overflowed */
    std::atomic<uint64_t> steps{0}; /* threads started and barriers reached, for the watchdog */
    std::atomic<bool> busy{false};  /* in the access checker, which must not be left half-way */
    std::atomic<bool> overdue{false};
    Grid *grid;
    const Launch *launch;
    unsigned thread_count, started, alive, waiting, at_barrier;
    unsigned self;       /* the thread that runs */
    uint3 *thread_index; /* threadIdx, which takes a call to find */
    bool failed;         /* the launch is given up: whoever runs next goes home */
    bool closing;        /* idle fibers end (AddressSanitizer wants that) */
    uint3 place;         /* blockIdx of the block that runs */
    dim3 indexed_block;
    uint3 index[MAX_THREADS]; /* threadIdx of each thread, for blocks of shape indexed_block */
    Thread threads[MAX_THREADS];
    Warp warps[MAX_THREADS / WARP];
    unsigned sequence[MAX_THREADS]; /* the order in which threads start */
    unsigned ready[MAX_THREADS];    /* a ring of threads that waited and may go on */
    size_t ready_head, ready_tail;
    Fiber home, fibers[MAX_THREADS];
    Fiber *idle[MAX_THREADS], *current;
    unsigned idle_count, prepared; /* fibers[0 .. prepared) have been prepared in this launch */
    char *dynamic_shared;
    Footprint footprint; /* of the kernel that runs */
    bool has_poison;     /* its TLS block was filled */
    bool looks_closely;  /* whether the footprint has grown */
    race::Sync block_sync, barrier_sync;
    uint64_t blocks_run;
    std::unique_ptr<Events> events{new Events};
    Cluster *cluster; /* of a launch in clusters; kept */
};

extern __thread Worker *worker;

/* ---- block.cpp ---- */

/* Lets something else run: a thread that has not started, else the one that is ready longest, else
 * home. Returns when the calling thread may go on. */
void run_another(Worker &w);

/* Runs blocks of w.grid until none is left. */
void run_blocks(Worker &w);

/* Its parts, for clusters.cpp. Between the two of a block run_another() runs its threads. */
bool begin_launch(Worker &w);
void end_launch(Worker &w);
void begin_block(Worker &w, uint64_t block);
void end_block(Worker &w);
/* Tells of a thread that never comes to a barrier or to its end, and gives up the launch. */
[[noreturn]] void report_overdue(Worker &w, const void *place);

/* ---- shared_memory.cpp ---- */

bool obtain_dynamic_shared(Worker &w); /* false: no memory */
void free_dynamic_shared(Worker &w);
void begin_shared(Worker &w);  /* before a launch's first block */
void poison_shared(Worker &w); /* before each block */
void end_shared(Worker &w);    /* after the last */
void enter_block(Worker &w);   /* what its threads see is the worker's from now on */
bool is_shared(const Worker &w, const void *address);

/* ---- barriers.cpp ---- */

/* After a thread returned: those who only waited for it may go on. */
void release_waiting(Worker &w, unsigned returned);

/* Reports who waits where, when no thread of the block can run. */
void report_deadlock(const Worker &w);

inline void note_step(Worker &w) {
    w.steps.store(w.steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

inline void wake(Worker &w, unsigned thread) {
    w.waiting--;
    w.threads[thread].state = State::ready;
    w.ready[w.ready_tail++ % MAX_THREADS] = thread;
}

} /* namespace pvg_sim */
