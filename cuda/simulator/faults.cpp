/* What goes wrong, and is told: settings, reports, errors, injected faults, counters, bad accesses.
 *
 * An error is recorded as on a card: the thread's last error, which cudaGetLastError() returns
 * once, or the card's sticky error, which every call returns until pvg_sim_reset(). */
#include "simulator.h"

#include <climits>
#include <cstdarg>
#include <cstring>
#include <new>
#include <pthread.h>
#include <signal.h>

namespace pvg_sim {

Settings settings;
Card cards[MAX_CARDS];
std::atomic<long long> counters[COUNTERS];

static thread_local cudaError_t last_error = cudaSuccess;
static thread_local int device_of_thread = 0;

int current_device() { return device_of_thread; }

void set_current_device(int device) { device_of_thread = device; }

static thread_local bool context_is_bound = false;

void bind_context() { context_is_bound = true; }

bool has_bound_context() { return context_is_bound; }

/* ---- The lock ---- */

static std::mutex runtime_lock, report_lock;

/* A child made by fork() has the memory and the settings, but no worker, and fresh locks. */
[[gnu::constructor]] static void prepare_for_fork() {
    pthread_atfork(
        [] {
            runtime_lock.lock();
            report_lock.lock();
        },
        [] {
            report_lock.unlock();
            runtime_lock.unlock();
        },
        [] {
            new (&report_lock) std::mutex;
            new (&runtime_lock) std::mutex;
            forget_workers();
        });
}

Call::Call() : hold(runtime_lock) {}

cudaError_t Call::finish(cudaError_t error) {
    if (cudaError_t lost = sticky_error()) error = lost;
    if (error) last_error = error;
    return error;
}

cudaError_t sticky_error() { return cards[device_of_thread].sticky; }

/* ---- Reports ---- */

static int running_card = 0;
static char message[1024];

void set_running_card(int device) { running_card = device; }

int running_card_number() { return running_card; }

bool running_card_is_lost() { return cards[running_card].sticky != cudaSuccess; }

void report(cudaError_t error, const char *format, ...) {
    std::lock_guard<std::mutex> hold(report_lock);
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    counters[COUNT_REPORTS]++;
    if (settings.print) fprintf(stderr, "simulator: %s\n", message);
    if (!running_card_is_lost()) cards[running_card].sticky = error;
}

void note(const char *format, ...) {
    std::lock_guard<std::mutex> hold(report_lock);
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (settings.print) fprintf(stderr, "simulator: %s\n", message);
}

/* ---- Injected faults ---- */

static const char *const fault_names[FAULTS] = {"malloc", "pinned", "copy",   "memset", "launch",
                                                "stream", "event",  "device", "graph"};
static long long calls_until_fault[FAULTS];

bool injected(Fault what) { return calls_until_fault[what] > 0 && --calls_until_fault[what] == 0; }

/* ---- Names ---- */

/* In the order of enum Counter. */
static const char *const counter_names[COUNTERS] = {
    "launch",      "copy_h2d",      "copy_d2h",     "copy_d2d",         "copy_h2h",
    "memset",      "malloc",        "free",         "pinned_malloc",    "pinned_free",
    "sync",        "stream_wait",   "event_record", "graph_launch",     "blocks",
    "bytes_h2d",   "bytes_d2h",     "bytes_d2d",    "live_allocations", "live_bytes",
    "live_pinned", "live_streams",  "live_events",  "live_graphs",      "pending",
    "reports",     "order_mismatch"};

static int find_name(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) return i;
    }
    return -1;
}

/* "card0" ...: a card, by its compute capability. */
static bool set_card(const char *name, long long capability) {
    int device, length = 0;
    if (sscanf(name, "card%1d%n", &device, &length) != 1 || name[length]) return false;
    return describe_as(device, capability);
}

struct Setting {
    const char *name;
    long long *value, low, high;
};

static const Setting setting_table[] = {
    {"order", &settings.order, FORWARD, SHUFFLED},
    {"seed", &settings.seed, 0, 0xffffffffll},
    {"check_order", &settings.check_order, 0, 1},
    {"strict", &settings.strict, 0, 1},
    {"deferred", &settings.deferred, 0, 1},
    {"print", &settings.print, 0, 1},
    {"guard", &settings.guard, 0, 1},
    {"races", &settings.races, 0, 1},
    {"skip_kernels", &settings.skip_kernels, 0, 1},
    {"workers", &settings.workers, 1, MAX_WORKERS},
    {"devices", &settings.devices, 0, MAX_CARDS},
    {"multiprocessors", &settings.multiprocessors, 1, 1024},
    {"patience", &settings.patience, 0, 1 << 30},
    {"driver", &settings.driver, 0, 99999},
    {"start_error", &settings.start_error, 0, 999},
    {"copy_error", &settings.copy_error, 1, 999},
    {"memory", &settings.memory, 1, LLONG_MAX},
};

static const Setting *find_setting(const char *name) {
    for (const Setting &setting : setting_table) {
        if (strcmp(name, setting.name) == 0) return &setting;
    }
    return nullptr;
}

static bool set(const char *name, long long value) {
    const Setting *setting = find_setting(name);
    if (!setting) return set_card(name, value);
    if (value < setting->low || value > setting->high) return false;
    if (setting->value == &settings.deferred && !value) run_everything();
    if (setting->value == &settings.guard) return set_guard(value);
    return *setting->value = value, true;
}

/* ---- Bad accesses ---- */

#if defined(__SANITIZE_ADDRESS__) /* it reports bad accesses itself, and better */
static const int fault_signals[] = {WATCHDOG_SIGNAL};
constexpr int FAULT_SIGNALS = 1;
#else
static const int fault_signals[] = {WATCHDOG_SIGNAL, SIGSEGV, SIGBUS, SIGFPE};
constexpr int FAULT_SIGNALS = 4;
#endif
static struct sigaction previous_actions[FAULT_SIGNALS];

void pass_signal_on(const struct sigaction &action, int number, siginfo_t *info, void *context) {
    if (action.sa_flags & SA_SIGINFO) {
        action.sa_sigaction(number, info, context);
    } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
        action.sa_handler(number);
    } else {
        signal(number, SIG_DFL); /* the instruction runs again, and ends the process */
    }
}

/* A fault of a kernel leaves the kernel. Any other one (of another thread of the process) goes to
 * the handler that was there before, Python's faulthandler for one. */
static void on_fault(int number, siginfo_t *info, void *context) {
    if (leave_kernel_after_fault(*info, place_of_signal(context))) return;
    for (int i = 0; i < FAULT_SIGNALS; i++) {
        bool harmless = number == WATCHDOG_SIGNAL && previous_actions[i].sa_handler == SIG_DFL;
        if (fault_signals[i] != number || harmless) continue;
        pass_signal_on(previous_actions[i], number, info, context);
    }
}

FaultGuard::FaultGuard() {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK; /* the handler may not return */
    for (int i = 0; i < FAULT_SIGNALS; i++) {
        sigaction(fault_signals[i], &action, &previous_actions[i]);
    }
}

FaultGuard::~FaultGuard() {
    for (int i = 0; i < FAULT_SIGNALS; i++) {
        sigaction(fault_signals[i], &previous_actions[i], nullptr);
    }
}

} /* namespace pvg_sim */

/* ---- The controls, as pyvecgpu_sim.h documents them ---- */

using namespace pvg_sim;

extern "C" int pvg_sim_set(const char *setting, long long value) {
    Call call;
    return setting && set(setting, value) ? 0 : 1;
}

extern "C" long long pvg_sim_get(const char *setting) {
    Call call;
    const Setting *known = setting ? find_setting(setting) : nullptr;
    return known ? *known->value : -1;
}

extern "C" void pvg_sim_fail(const char *what, long long nth) {
    Call call;
    int fault = what ? find_name(fault_names, FAULTS, what) : -1;
    if (fault >= 0) calls_until_fault[fault] = nth;
}

extern "C" const char *pvg_sim_message(void) {
    static thread_local char copy[sizeof message];
    std::lock_guard<std::mutex> hold(report_lock);
    memcpy(copy, message, sizeof copy);
    return copy;
}

extern "C" void pvg_sim_reset(void) {
    Call call;
    drop_pending();
    for (Card &card : cards) card.sticky = cudaSuccess;
    last_error = cudaSuccess;
    memset(calls_until_fault, 0, sizeof calls_until_fault);
    std::lock_guard<std::mutex> hold(report_lock);
    message[0] = 0;
}

extern "C" long long pvg_sim_count(const char *what) {
    int counter = what ? find_name(counter_names, COUNTERS, what) : -1;
    return counter < 0 ? -1 : counters[counter].load();
}

/* ---- Errors of the runtime ---- */

extern "C" cudaError_t cudaGetLastError(void) {
    Call call;
    cudaError_t lost = sticky_error(), error = lost ? lost : last_error;
    last_error = cudaSuccess;
    return error;
}

extern "C" cudaError_t cudaPeekAtLastError(void) {
    Call call;
    cudaError_t lost = sticky_error();
    return lost ? lost : last_error;
}
