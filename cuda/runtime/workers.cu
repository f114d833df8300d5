// The workers: threads made at first use, one for each core that the process may use, up to a
// limit. They take pieces of work from a queue and never call CUDA, so that neither an exit nor a
// fork can find one of them inside of it.
//
// The queue is a ring of cells, each with a sequence number that says whose turn it is (Vyukov's
// bounded queue): no lock, so a thread that the system suspends holds up nobody but itself. A
// worker without work watches `posts` for a while, and then sleeps on it (a futex). The threads are
// never joined: at the process's exit they sleep, and nothing that they use is ever destroyed.
#include "runtime/workers.cuh"
#include <limits.h>
#include <linux/futex.h>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace pvg {

namespace {

constexpr int most_workers = 11; // beside the caller
constexpr size_t piece_bytes = 128 << 10;
constexpr size_t page_bytes = 4 << 10;
constexpr int64_t watch_nanoseconds = 100000;

struct Piece {
    unsigned char *to;
    const unsigned char *from; // NULL: make the pages at `to` present
    size_t bytes;
    Unfinished *unfinished;
};

struct Cell {
    // A lap is a way around the ring: 2 * lap: free; 2 * lap + 1: holds a piece.
    std::atomic<uint64_t> turn;
    Piece piece;
};
constexpr uint64_t cells = 1024;
Cell ring[cells];
std::atomic<uint64_t> first{0}, last{0}; // the next to take, and to put

std::atomic<uint32_t> posts{0};
std::atomic<int> sleepers{0};
static_assert(sizeof posts == sizeof(uint32_t), "a futex is 32 bits");

bool put(const Piece &piece) {
    uint64_t at = last.load(std::memory_order_relaxed);
    for (;;) {
        Cell &cell = ring[at % cells];
        uint64_t turn = cell.turn.load(std::memory_order_acquire), mine = at / cells * 2;
        if (turn < mine) return false; // full
        if (turn == mine && last.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
            cell.piece = piece;
            cell.turn.store(mine + 1, std::memory_order_release);
            return true;
        }
        if (turn > mine) at = last.load(std::memory_order_relaxed);
    }
}

bool take(Piece *piece) {
    uint64_t at = first.load(std::memory_order_relaxed);
    for (;;) {
        Cell &cell = ring[at % cells];
        uint64_t turn = cell.turn.load(std::memory_order_acquire), mine = at / cells * 2 + 1;
        if (turn < mine) return false; // empty
        if (turn == mine && first.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
            *piece = cell.piece;
            cell.turn.store(mine + 1, std::memory_order_release);
            return true;
        }
        if (turn > mine) at = first.load(std::memory_order_relaxed);
    }
}

// A page is present once it is written to. Its bytes stay as they are.
void touch(unsigned char *memory, size_t bytes) {
    volatile unsigned char *byte = memory;
    for (size_t at = 0; at + page_bytes <= bytes; at += page_bytes) byte[at] = byte[at];
}

bool work_once() {
    Piece piece;
    if (!take(&piece)) return false;
    if (piece.from)
        memcpy(piece.to, piece.from, piece.bytes);
    else
        touch(piece.to, piece.bytes);
    piece.unfinished->fetch_sub(1, std::memory_order_release);
    return true;
}

// ---- Sleeping and waking ------------------------------------------------------------------------

void futex(int operation, uint32_t value) {
    (void)syscall(SYS_futex, reinterpret_cast<uint32_t *>(&posts), operation, value, nullptr,
                  nullptr, 0);
}

// Two at a time, and each of them wakes two more: waking all takes the time of waking a few.
void wake_sleepers() {
    if (sleepers.load() > 0) futex(FUTEX_WAKE_PRIVATE, 2);
}

int64_t nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void wait_for_posts(uint32_t seen) {
    int64_t end = nanoseconds() + watch_nanoseconds;
    while (posts.load(std::memory_order_acquire) == seen) {
        if (nanoseconds() < end) {
            sched_yield();
            continue;
        }
        sleepers.fetch_add(1);
        futex(FUTEX_WAIT_PRIVATE, seen); // returns at once if there was a post
        sleepers.fetch_sub(1);
        wake_sleepers();
        end = nanoseconds() + watch_nanoseconds;
    }
}

void *run_worker(void *) {
    for (;;) {
        uint32_t seen = posts.load(std::memory_order_acquire);
        if (!work_once()) wait_for_posts(seen);
    }
    return nullptr;
}

// ---- Starting -----------------------------------------------------------------------------------

int usable_cores() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); // more cores than the set has bits
    return online > 0 && online < INT_MAX ? static_cast<int>(online) : 1;
}

// Fewer threads than wanted, or none, only make it slower. Signals are for the program's threads,
// except those that a thread causes itself.
void start_workers() {
    static std::mutex lock;
    static std::atomic<bool> started{false};
    if (started.load(std::memory_order_acquire)) return;
    std::lock_guard<std::mutex> hold(lock);
    if (started) return;
    sigset_t all, before;
    sigfillset(&all);
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, own);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int wanted = usable_cores() - 1 < most_workers ? usable_cores() - 1 : most_workers;
    pthread_t thread;
    for (int i = 0; i < wanted && pthread_create(&thread, &detached, run_worker, nullptr) == 0;)
        i++;
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    started.store(true, std::memory_order_release);
}

void start(const Piece &piece) {
    piece.unfinished->fetch_add(1, std::memory_order_relaxed);
    while (!put(piece)) (void)work_once(); // full: the caller takes one out
}

void announce() {
    posts.fetch_add(1);
    wake_sleepers();
}

} // namespace

void start_copy(Unfinished *unfinished, void *to, const void *from, size_t bytes) {
    start_workers();
    auto *target = static_cast<unsigned char *>(to);
    auto *source = static_cast<const unsigned char *>(from);
    for (size_t at = 0; at < bytes; at += piece_bytes) {
        size_t length = bytes - at < piece_bytes ? bytes - at : piece_bytes;
        start({target + at, source + at, length, unfinished});
    }
    announce();
}

void start_touch(Unfinished *unfinished, void *memory, size_t bytes) {
    start_workers();
    start({static_cast<unsigned char *>(memory), nullptr, bytes, unfinished});
    announce();
}

void finish_work(Unfinished *unfinished) {
    while (unfinished->load(std::memory_order_acquire) > 0)
        if (!work_once()) sched_yield();
}

} // namespace pvg
