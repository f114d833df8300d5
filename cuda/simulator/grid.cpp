/* A launch from call to result: the card's limits, its arguments, its workers. */
#include "worker.h"

#include <algorithm>
#include <map>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <vector>

namespace pvg_sim {

/* ---- Limits, as the cards of device.cpp have them ---- */

static auto &kernel_limits = *new std::map<const void *, KernelLimits>;

KernelLimits &limits_of(const void *kernel) {
    auto known = kernel_limits.find(kernel);
    if (known != kernel_limits.end()) return known->second;
    KernelLimits &limits = kernel_limits[kernel];
    limits.most_threads = launch_bound_of(kernel);
    return limits;
}

/* On a card such a launch fails as well, with nothing to say why. */
static bool exceeds_launch_bounds(const Launch &job, unsigned most_threads) {
    unsigned threads = job.block.x * job.block.y * job.block.z;
    if (threads <= most_threads) return false;
    note("%s, launched at %s:%d: blocks of %u threads, but its __launch_bounds__ allow %u",
         job.name, job.file, job.line, threads, most_threads);
    return true;
}

static cudaError_t check_configuration(const Launch &job, const Description &card) {
    const dim3 &g = job.grid, &b = job.block;
    if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z) return cudaErrorInvalidConfiguration;
    if (g.x > MAX_GRID_X || g.y > MAX_GRID_YZ || g.z > MAX_GRID_YZ) {
        return cudaErrorInvalidConfiguration;
    }
    if (b.x > MAX_BLOCK_THREADS || b.y > MAX_BLOCK_THREADS || b.z > MAX_BLOCK_Z ||
        (uint64_t)b.x * b.y * b.z > MAX_BLOCK_THREADS) {
        return cudaErrorInvalidConfiguration;
    }
    const KernelLimits &limits = limits_of(job.function);
    if (exceeds_launch_bounds(job, limits.most_threads)) return cudaErrorInvalidValue;
    size_t limit = (size_t)limits.dynamic_shared_bytes;
    if (limit > (size_t)card.shared_of_block) limit = (size_t)card.shared_of_block;
    if (job.shared_bytes > limit) return cudaErrorInvalidValue;
    if (job.cluster == 1) return cudaSuccess;
    const bool is_cluster = job.cluster > 1 && job.cluster <= MOST_IN_CLUSTER &&
                            g.x % job.cluster == 0 && card.capability >= 90 && !race::ENABLED;
    return is_cluster ? cudaSuccess : cudaErrorInvalidClusterSize;
}

/* ---- Arguments ---- */

/* A pointer that is neither null nor in memory that a kernel may use is an error here already; a
 * card would find out at the first access. Pointers inside structs are not seen. */
static bool check_arguments(const Launch &job, int device) {
    for (int i = 0; i < job.pointer_count; i++) {
        const PointerArgument &argument = job.pointers[i];
        if (!argument.value) continue;
        const Allocation *memory = find_allocation(argument.value);
        if (memory && (memory->kind != MemoryKind::device || memory->device == device)) continue;
        char place[256] = "";
        if (memory) {
            snprintf(place, sizeof place, "memory of card %d, but the kernel runs on card %d",
                     memory->device, device);
        } else {
            describe_address(argument.value, place, sizeof place);
        }
        report(cudaErrorIllegalAddress, "%s, launched at %s:%d: argument %d, %p, is %s%s", job.name,
               job.file, job.line, argument.index, argument.value,
               memory ? "" : "not a device pointer (host memory, or freed)", place);
        return false;
    }
    return true;
}

/* ---- Workers ----
 *
 * Their OS threads stay, waiting, between launches: their TLS block and their stacks cost more than
 * a small launch. They end with the process. */

static auto &idle_workers = *new std::vector<Worker *>;

void forget_workers() { idle_workers.clear(); }

/* Asks for about 50 us before it sleeps: to wake a processor that idles takes as long as a small
 * launch, and the next launch often comes soon. */
static bool try_for_a_while(sem_t &semaphore) {
    for (int asked = 0; asked < 100; asked++) {
        if (sem_trywait(&semaphore) == 0) return true;
        sched_yield();
    }
    return false;
}

static void wait_for_work(sem_t &semaphore) {
    if (try_for_a_while(semaphore)) return;
    while (sem_wait(&semaphore)) continue; /* a signal came */
}

static void *worker_main(void *argument) {
    Worker &w = *static_cast<Worker *>(argument);
    worker = &w;
    stack_t stack = {};
    stack.ss_sp = w.signal_stack, stack.ss_size = sizeof w.signal_stack;
    sigaltstack(&stack, nullptr);
    for (;;) {
        wait_for_work(w.start);
        run_blocks(w);
        sem_post(&w.grid->done);
    }
}

/* Signals are for the application's own threads, but a fault is handled where it happens. */
static bool start_thread(Worker *w) {
    sigset_t signals, before;
    sigfillset(&signals);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, WATCHDOG_SIGNAL}) {
        sigdelset(&signals, fault);
    }
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    int error = pthread_create(&w->os_thread, nullptr, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!error) pthread_detach(w->os_thread);
    return !error;
}

/* A worker that waits for a launch; nullptr when no OS thread can be started for one. */
static Worker *take_worker() {
    if (!idle_workers.empty()) {
        Worker *w = idle_workers.back();
        idle_workers.pop_back();
        return w;
    }
    std::unique_ptr<Worker> w(new Worker());
    sem_init(&w->start, 0, 0);
    return start_thread(w.get()) ? w.release() : nullptr;
}

static int worker_count([[maybe_unused]] uint64_t blocks) {
#if defined(__SANITIZE_ADDRESS__) || defined(PVG_SIM_TSAN) || defined(PVG_SIM_WATCH)
    return 1; /* statics are shared by all OS threads; ThreadSanitizer's contexts too, and cells */
#else
    if (settings.check_order) return 1;
    return (int)std::min<uint64_t>(blocks, settings.workers);
#endif
}

/* ---- The watchdog ---- */

static double processor_seconds(const Worker &w) {
    clockid_t clock;
    timespec used = {};
    if (pthread_getcpuclockid(w.os_thread, &clock) == 0) clock_gettime(clock, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* What is known of a worker's last step. */
struct LastStep {
    uint64_t steps = UINT64_MAX;
    double seconds; /* of processor time that the worker had used then */
};

/* Interrupts a worker whose thread has had its processor time without a step. */
static void look_after(Worker &w, LastStep &last) {
    double seconds = processor_seconds(w);
    uint64_t steps = w.steps.load(std::memory_order_relaxed);
    if (steps != last.steps) last = {steps, seconds};
    if (settings.patience && seconds - last.seconds >= (double)settings.patience) {
        pthread_kill(w.os_thread, WATCHDOG_SIGNAL);
        last.seconds = seconds;
    }
}

static void wait_for_workers(Grid &grid, Worker *const *workers, int count) {
    LastStep last[MAX_WORKERS];
    for (int done = 0; done < count;) {
        if (try_for_a_while(grid.done)) {
            done++;
            continue;
        }
        timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec++;
        if (sem_timedwait(&grid.done, &end) == 0) {
            done++;
        } else {
            for (int i = 0; i < count; i++) look_after(*workers[i], last[i]);
        }
    }
}

void run_grid(const Launch &job, int order, unsigned char poison) {
    Grid grid;
    grid.launch = &job, grid.order = order, grid.poison = poison;
    grid.blocks = (uint64_t)job.grid.x * job.grid.y * job.grid.z / job.cluster;
    grid.few_allocations = counters[COUNT_LIVE_ALLOCATIONS] + counters[COUNT_LIVE_PINNED] <= 16;
    sem_init(&grid.done, 0, 0);
    Worker *workers[MAX_WORKERS];
    int wanted = worker_count(grid.blocks), started = 0;
    while (started < wanted && (workers[started] = take_worker()) != nullptr) {
        workers[started]->grid = &grid;
        sem_post(&workers[started++]->start);
    }
    wait_for_workers(grid, workers, started);
    idle_workers.insert(idle_workers.end(), workers, workers + started);
    sem_destroy(&grid.done);
    if (!started) {
        report(cudaErrorLaunchFailure, "%s: no OS thread can be started for it", job.name);
    }
}

static void run(const Launch &job, int device, const Loose &loose) {
    if (!check_arguments(job, device)) return;
    {
        FaultGuard guard;
        if (settings.check_order) {
            run_grid_both_ways(job, loose);
        } else {
            run_grid(job, settings.order);
        }
    }
    Damage damage;
    if (!find_damage(&damage)) return;
    char who[512];
    snprintf(who, sizeof who, "%s, launched at %s:%d", job.name, job.file, job.line);
    report_damage(damage, who);
}

/* ---- The launch itself ---- */

cudaError_t launch(const Launch &job, cudaStream_t handle) {
    Call call;
    const Loose loose = take_loose();
    std::shared_ptr<Launch> owned(new Launch(job), [](Launch *l) {
        l->destroy(l->closure);
        delete l;
    });
    if (cudaError_t lost = sticky_error()) return call.finish(lost);
    std::shared_ptr<Stream> stream = find_stream(handle);
    int device = current_device();
    if (!stream || stream->device != device) return call.finish(cudaErrorInvalidResourceHandle);
    if (injected(FAULT_LAUNCH)) return call.finish(cudaErrorLaunchOutOfResources);
    if (cudaError_t error = check_configuration(job, description_of(device))) {
        return call.finish(error);
    }
    bind_context();
    counters[COUNT_LAUNCH]++;
    counters[COUNT_BLOCKS] += (long long)job.grid.x * job.grid.y * job.grid.z;
    bool lose_card = injected(FAULT_DEVICE);
    if (settings.skip_kernels && !lose_card) return call.finish(cudaSuccess);
    cudaError_t error = submit(stream, [owned, device, lose_card, loose] {
        if (lose_card) {
            report(cudaErrorLaunchFailure, "%s, launched at %s:%d: the card was lost, as asked for",
                   owned->name, owned->file, owned->line);
        } else {
            run(*owned, device, loose);
        }
    });
    return call.finish(error);
}

} /* namespace pvg_sim */
