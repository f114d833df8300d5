/* The simulated card as a guest of its process: the handlers of signals that were there before,
 * address space that goes back, and settings within their limits. */
#include "check.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <unistd.h>

namespace {

/* ---- Signals --------------------------------------------------------------------------------- */

volatile sig_atomic_t seen[NSIG];
void note_signal(int number) { seen[number]++; }
void note_signal_again(int number, siginfo_t *info, void *context) {
    seen[number] += info && context && info->si_signo == number ? 1 : 100;
}

/* Says that it runs, and does so until it is told to end. */
__global__ void until_told_kernel(volatile int *flags) {
    flags[0] = 1;
    while (!flags[1]) usleep(100);
}

struct Sender {
    volatile int *flags;
    int number;
};

/* A fault of this thread, which is no kernel's, while one runs. */
void *raise_beside_a_kernel(void *argument) {
    const Sender *sender = static_cast<Sender *>(argument);
    for (int i = 0; i < 100000 && !sender->flags[0]; i++) usleep(100);
    if (sender->flags[0]) raise(sender->number);
    sender->flags[1] = 1;
    return nullptr;
}

/* Each signal goes to its own handler, once, and the handler is the same after the launch. */
void check_signal(int number, const struct sigaction &handler, volatile int *flags) {
    const int others[] = {SIGSEGV, SIGBUS, SIGFPE};
    struct sigaction before[3], after;
    for (int i = 0; i < 3; i++) sigaction(others[i], &handler, &before[i]);
    for (volatile sig_atomic_t &count : seen) count = 0;
    flags[0] = flags[1] = 0;
    Sender sender = {flags, number};
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, nullptr, raise_beside_a_kernel, &sender), 0);
    CHECK_EQUAL(LAUNCH(until_told_kernel, 1, 1, 0, const_cast<int *>(flags)), 0);
    pthread_join(thread, nullptr);
    for (int i = 0; i < 3; i++) CHECK_EQUAL(seen[others[i]], others[i] == number);
    for (int i = 0; i < 3; i++) {
        sigaction(others[i], &before[i], &after);
        CHECK(after.sa_sigaction == handler.sa_sigaction);
    }
}

void check_signals() {
    int *flags;
    CHECK_EQUAL(cudaMallocHost(&flags, 2 * sizeof *flags), 0);
    struct sigaction plain = {}, with_more = {};
    plain.sa_handler = note_signal;
    with_more.sa_sigaction = note_signal_again;
    with_more.sa_flags = SA_SIGINFO;
    for (int number : {SIGSEGV, SIGBUS, SIGFPE}) {
        check_signal(number, plain, flags);
        check_signal(number, with_more, flags);
    }
    CHECK_EQUAL(cudaFreeHost(flags), 0);
}

/* ---- Address space --------------------------------------------------------------------------- */

long mapped_pages() {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages;
}

/* Memory that is freed is kept for the next that asks for as much, up to a limit; the rest goes. */
void check_address_space() {
    constexpr size_t least = 1 << 16, most = 1 << 26;
    constexpr long allowed = (80l << 20) / 4096; /* pages: what is kept, and some more */
    void *memory;
    for (bool pinned : {false, true}) {
        const long before = mapped_pages();
        CHECK(before > 0);
        for (int round = 0; round < 12; round++) {
            for (size_t bytes = least; bytes <= most; bytes *= 4) {
                const size_t some = bytes + 4096 * round; /* another size each time */
                CHECK_EQUAL(pinned ? cudaMallocHost(&memory, some) : cudaMalloc(&memory, some), 0);
                CHECK_EQUAL(pinned ? cudaFreeHost(memory) : cudaFree(memory), 0);
            }
        }
        const long grown = mapped_pages() - before;
        CHECK(grown <= (pinned ? 16 : allowed));
    }
}

/* ---- Settings -------------------------------------------------------------------------------- */

__global__ void one_kernel(int *out) { *out = 1; }

/* Beyond its limits a setting stays as it is, and says so. */
void check_settings() {
    const struct {
        const char *name;
        long long low, high;
    } settings[] = {
        {"order", 0, 2},          {"seed", 0, 0xffffffffll},    {"check_order", 0, 1},
        {"strict", 0, 1},         {"deferred", 0, 1},           {"print", 0, 1},
        {"races", 0, 1},          {"skip_kernels", 0, 1},       {"workers", 1, 64},
        {"devices", 0, 8},        {"multiprocessors", 1, 1024}, {"patience", 0, 1 << 30},
        {"driver", 0, 99999},     {"start_error", 0, 999},      {"copy_error", 1, 999},
        {"memory", 1, LLONG_MAX},
    };
    for (const auto &s : settings) {
        const long long before = pvg_sim_get(s.name);
        for (long long good : {s.low, s.high}) {
            CHECK_EQUAL(pvg_sim_set(s.name, good), 0);
            CHECK_EQUAL(pvg_sim_get(s.name), good);
        }
        CHECK(pvg_sim_set(s.name, s.low - 1) != 0);
        if (s.high < LLONG_MAX) CHECK(pvg_sim_set(s.name, s.high + 1) != 0);
        CHECK_EQUAL(pvg_sim_get(s.name), s.high);
        CHECK_EQUAL(pvg_sim_set(s.name, before), 0);
    }
    CHECK(pvg_sim_set("no such setting", 1) != 0);
    CHECK_EQUAL(pvg_sim_get("no such setting"), -1);
}

/* What is skipped is counted, and leaves the memory as it is. */
void check_skipping(int *out) {
    int value = 5;
    CHECK_EQUAL(cudaMemcpy(out, &value, sizeof value, cudaMemcpyHostToDevice), 0);
    for (int skip : {1, 0}) {
        const long long launches = pvg_sim_count("launch");
        CHECK_EQUAL(pvg_sim_set("skip_kernels", skip), 0);
        CHECK_EQUAL(LAUNCH(one_kernel, 1, 1, 0, out), 0);
        CHECK_EQUAL(pvg_sim_count("launch") - launches, 1);
        CHECK_EQUAL(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost), 0);
        CHECK_EQUAL(value, skip ? 5 : 1);
    }
}

} // namespace

int main() {
    int *out;
    CHECK_EQUAL(cudaMalloc(&out, sizeof *out), 0);
    check_signals();
    check_address_space();
    check_settings();
    check_skipping(out);
    CHECK_EQUAL(cudaFree(out), 0);
    return finish("process");
}
