/* What the simulator's own files share: settings, the cards, reports, memory, streams, launches.
 *
 * One lock guards all of it. Every runtime function takes it on entry (Call) and the functions
 * declared here expect it to be held, except report(), which a kernel's threads call too. */
#pragma once
#include "cuda_builtins.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <semaphore.h>
#include <signal.h>

namespace pvg_sim {

/* ---- faults.cpp: settings, reports, errors, injected faults, counters ---- */

enum ThreadOrder { FORWARD, REVERSE, SHUFFLED };

/* All of one type, so that one table names them (faults.cpp). */
struct Settings {
    long long order = FORWARD, seed = 1;
    long long check_order = 0, strict = 1, deferred = 0, print = 0, guard = 0;
    long long races = 1, skip_kernels = 0;
    long long workers = 2, devices = 1, multiprocessors = 2, patience = 60;
    long long driver = CUDART_VERSION;            /* 0: there is none */
    long long start_error = cudaSuccess;          /* of a driver that shows no card at all */
    long long copy_error = cudaErrorInvalidValue; /* what an injected fault of a copy returns */
    long long memory = 4ll << 30;
};
extern Settings settings;

constexpr int MAX_CARDS = 8, MAX_WORKERS = 64;

/* One simulated card. A sticky error means that its context is lost: every call returns it. */
struct Card {
    size_t bytes_in_use = 0;
    cudaError_t sticky = cudaSuccess;
};
extern Card cards[MAX_CARDS];

int current_device();
void set_current_device(int device);
cudaError_t sticky_error(); /* of the current device */

/* Holds the lock during one runtime call; finish() makes a result the thread's last error. */
class Call {
public:
    Call();
    cudaError_t finish(cudaError_t error);

private:
    std::lock_guard<std::mutex> hold;
};

/* The card whose work runs now; reports are for it. */
void set_running_card(int device);
int running_card_number();
bool running_card_is_lost();

/* Makes `error` the sticky error of the running card, and keeps the sentence. The lock that it
 * takes is its own: a worker reports while the launching thread holds the other one. */
[[gnu::format(printf, 2, 3)]] void report(cudaError_t error, const char *format, ...);
/* Keeps the sentence; the caller returns the error, which is not sticky. */
[[gnu::format(printf, 1, 2)]] void note(const char *format, ...);

enum Fault {
    FAULT_MALLOC,
    FAULT_PINNED,
    FAULT_COPY,
    FAULT_MEMSET,
    FAULT_LAUNCH,
    FAULT_STREAM,
    FAULT_EVENT,
    FAULT_DEVICE,
    FAULT_GRAPH,
    FAULTS
};
bool injected(Fault what); /* counts the call down; true when it is the one to fail */

enum Counter {
    COUNT_LAUNCH,
    COUNT_COPY_H2D,
    COUNT_COPY_D2H,
    COUNT_COPY_D2D,
    COUNT_COPY_H2H,
    COUNT_MEMSET,
    COUNT_MALLOC,
    COUNT_FREE,
    COUNT_PINNED_MALLOC,
    COUNT_PINNED_FREE,
    COUNT_SYNC,
    COUNT_STREAM_WAIT,
    COUNT_EVENT_RECORD,
    COUNT_GRAPH_LAUNCH,
    COUNT_BLOCKS,
    COUNT_BYTES_H2D,
    COUNT_BYTES_D2H,
    COUNT_BYTES_D2D,
    COUNT_LIVE_ALLOCATIONS,
    COUNT_LIVE_BYTES,
    COUNT_LIVE_PINNED,
    COUNT_LIVE_STREAMS,
    COUNT_LIVE_EVENTS,
    COUNT_LIVE_GRAPHS,
    COUNT_PENDING,
    COUNT_REPORTS,
    COUNT_ORDER_MISMATCH,
    COUNTERS
};
extern std::atomic<long long> counters[COUNTERS];

/* While one exists, a bad access of a kernel is reported instead of ending the process. */
class FaultGuard {
public:
    FaultGuard();
    ~FaultGuard();
};

/* What an action of the process's own does with a signal that is not for us. */
void pass_signal_on(const struct sigaction &action, int number, siginfo_t *info, void *context);

/* ---- host_access.cpp ---- */

/* While one exists, device memory may be touched; with the setting "guard" at no other time. */
class OpenMemory {
public:
    OpenMemory();
    ~OpenMemory();
};
bool set_guard(bool on);                          /* false: this build has none */
const void *place_of_signal(const void *context); /* the instruction that it interrupted */

/* Binds the current device's context to the calling thread, as some runtime calls do and others do
 * not: what the driver itself offers needs it. */
void bind_context();
bool has_bound_context();

/* ---- cards.cpp: what sets the cards apart ---- */

struct Description {
    int capability; /* compute capability times ten */
    int shared_of_block, shared_of_multiprocessor, reserved_shared; /* bytes; of_block: opt-in */
    int threads_of_multiprocessor, blocks_of_multiprocessor;
};
const Description &description_of(int device);
bool describe_as(int device, long long capability); /* false: there is no such card */
/* In a kernel: fails it on a card that has not got the instruction. */
void require_capability(int capability, const char *instruction);

/* ---- device.cpp: the limits of all cards ---- */

constexpr unsigned MAX_BLOCK_THREADS = 1024, MAX_BLOCK_Z = 64;
constexpr unsigned MAX_GRID_X = 0x7fffffff, MAX_GRID_YZ = 65535;
constexpr int DEFAULT_SHARED_BYTES = 48 << 10;

/* What cudaFuncSetAttribute changes for one kernel. */
struct KernelLimits {
    int dynamic_shared_bytes = DEFAULT_SHARED_BYTES, carveout = -1;
    unsigned most_threads; /* of a block: its __launch_bounds__, or the card's limit */
};
KernelLimits &limits_of(const void *kernel);
unsigned launch_bound_of(const void *kernel); /* launch_bounds.cpp */

/* ---- memory.cpp: allocations ---- */

enum class MemoryKind { device, pinned, managed };

struct Allocation {
    char *base;
    size_t bytes;
    MemoryKind kind;
    int device;      /* that was current when it was made */
    size_t mapped;   /* bytes from mmap, guard pages included; 0 for other memory */
    bool registered; /* the caller's own memory (cudaHostRegister) */
};

constexpr size_t VIRTUAL_BYTES = size_t{256} << 20; /* larger ones are neither poisoned nor saved */

/* The allocation that holds an address or ends there, else nullptr. */
const Allocation *find_allocation(const void *address);
/* The next one by address (of nullptr: the first), nullptr at the end. */
const Allocation *next_allocation(const Allocation *previous);
/* Adds to a sentence where an address lies: ", 4 bytes past the end of ...", or nothing. */
void describe_address(const void *address, char *text, size_t bytes);

/* Bytes around an allocation that were written to, from its start (negative: in front of it). */
struct Damage {
    const Allocation *allocation;
    ptrdiff_t first, last;
};
bool find_damage(Damage *damage);
void report_damage(const Damage &damage, const char *who); /* and repairs it */
void free_card_memory(int device);

/* ---- streams.cpp: work in order, at once or deferred ---- */

struct Capture; /* graphs.cpp */

struct Stream {
    int device;
    uint64_t recorded = 0, done = 0; /* tickets of the last work recorded, the last that ran */
    std::deque<std::function<void()>> pending;
    std::shared_ptr<Capture> capture; /* work is captured, not run; nullptr: it is not */
};

std::shared_ptr<Stream> find_stream(cudaStream_t handle); /* nullptr: no such stream */
/* Runs, records or captures it; the error if its stream captures and cannot any more. */
cudaError_t submit(const std::shared_ptr<Stream> &stream, std::function<void()> work);
void run_until(Stream &stream, uint64_t ticket);
void run_pending(Stream &stream);
void run_everything(); /* the pending work of all streams of all cards */
void drop_pending();

/* ---- graphs.cpp: work that is captured and launched again ---- */

/* What a capture forbids: the error, and the captures that forbade it are invalidated. */
cudaError_t check_unsafe();                   /* cudaMalloc and its like, by the modes */
cudaError_t check_wait(const Stream &stream); /* waiting for a stream, or asking it */
cudaError_t check_wait_for_card(int device);
cudaError_t capture_work(Capture &capture, std::function<void()> work);
cudaError_t capture_wait(Capture &capture, bool captured_event); /* its stream, for an event */

/* ---- grid.cpp, block.cpp, order.cpp: running a launch ---- */

/* The blocks of one launch, shared by its workers. */
struct Grid {
    const Launch *launch;
    int order;
    unsigned char poison;             /* what shared memory is filled with before each block */
    uint64_t blocks;                  /* or clusters of them */
    bool few_allocations;             /* then damage around them is looked for after each block */
    std::atomic<uint64_t> next{0};    /* the first turn that nobody took */
    std::atomic<bool> stopped{false}; /* after an error no more blocks are started */
    sem_t done;                       /* posted by each worker */
};

constexpr unsigned char POISON = 0xFF; /* NaN, or -1 */
void run_grid(const Launch &job, int order, unsigned char poison = POISON);
/* Memory that a launch leaves in any order. */
struct Loose {
    const char *memory = nullptr;
    size_t bytes = 0;
};
Loose take_loose(); /* what this thread has named for its next launch */
void run_grid_both_ways(const Launch &job, const Loose &loose);
/* Reports an error of the thread that runs, with its place, and gives up the launch. */
[[noreturn, gnu::format(printf, 2, 3)]] void fail_kernel(cudaError_t error, const char *format,
                                                         ...);
void forget_workers(); /* in the child of a fork, where their OS threads do not exist */

/* For the signal handler: leaves the kernel if this thread runs one (then does not return), else
 * returns false. */
bool leave_kernel_after_fault(const siginfo_t &fault, const void *place);
constexpr int WATCHDOG_SIGNAL = SIGURG; /* one that does nothing where it is not expected */

} /* namespace pvg_sim */
