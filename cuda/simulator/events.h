/* What instructions leave for later, of a block: copies on their way, threads that sleep. */
#pragma once
#include "race_checker.h"
#include "simulator.h"

#include <vector>

namespace pvg_sim {

constexpr int PARTIAL_BARRIERS = 16;

/* One cp.async, of the group that was open then. */
struct AsyncCopy {
    void *to;
    const void *from;
    int bytes, count;
    uint64_t group;
};

struct AsyncThread {
    std::vector<AsyncCopy> copies;
    uint64_t committed; /* groups */
    const void *event;  /* that it sleeps for */
    bool has_waited;    /* for the kernel before */
};

/* One copy by TMA. The map is a copy: the thread that gave it may have returned. */
struct TileCopy {
    uint32_t to, barrier;
    size_t bytes;
    int place[5];
    alignas(64) unsigned char map[128];
};

struct PartialBarrier { int threads, arrived; };

struct Events {
    std::vector<AsyncThread> threads;
    std::vector<TileCopy> tiles;
    PartialBarrier partial[PARTIAL_BARRIERS];
    unsigned asleep;  /* threads */
    race::Sync order; /* of who arrives and who waits, for the race checker */
    Events();
};

struct Worker;

/* ---- events.cpp ---- */

/* The running thread waits until wake_all() for the same address. */
void sleep_for(const void *event, const char *file, int line);
void wake_all(Worker &w, const void *event);
bool somebody_waits_for(const Worker &w, const void *event);
/* That a thread of a kernel launched with overlap has waited for the one before. */
void check_has_waited(const char *before);
void bytes_have_come(uint32_t barrier, size_t bytes);

void begin_events(Worker &w);      /* before each block */
void end_thread_events(Worker &w); /* when a thread returns */
void end_block_events(Worker &w);  /* when all have */

/* ---- async_copies.cpp ---- */

/* Bytes are on their way: they are 0xFF; and then they come, which finds them so. */
void begin_arrival(void *to, size_t bytes);
void check_arrival(const void *to, size_t bytes, const char *how);
void finish_all_copies(Worker &w); /* of the running thread, by cp.async */

/* ---- tensor_maps.cpp ---- */

/* Copies by TMA that somebody waits for arrive; whether a thread can go on now. */
bool deliver_tiles(Worker &w);

/* ---- clusters.cpp ---- */

constexpr unsigned MOST_IN_CLUSTER = 8;

struct Cluster {
    Worker *blocks[MOST_IN_CLUSTER]; /* by rank; the first is the worker itself */
    unsigned size, arrived;          /* arrived: threads, at its barrier */
};

bool begin_cluster(Worker &w); /* a launch in clusters, and its end */
void end_cluster(Worker &w);
void run_cluster(Worker &w, uint64_t number);

} /* namespace pvg_sim */
