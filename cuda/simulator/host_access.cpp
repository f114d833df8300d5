/* The setting "guard": host code that touches device memory ends the process, and says so.
 *
 * Device memory cannot be touched but while work runs on a card, or the simulator itself looks at
 * it. On a card that is so always. AddressSanitizer builds have no pages of their own for it. */
#include "code_place.h"
#include "simulator.h"

#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace pvg_sim {

static const uintptr_t PAGE = 4096;
static int open_depth = 0; /* of OpenMemory objects */

/* Without allocations nothing is looked at: a program may set "guard" before main(), when the table
 * of allocations does not exist yet. */
static void protect(int access) {
    if (counters[COUNT_LIVE_ALLOCATIONS] == 0) return;
    for (const Allocation *a = next_allocation(nullptr); a; a = next_allocation(a)) {
        if (!a->mapped || a->kind != MemoryKind::device) continue;
        auto first = reinterpret_cast<uintptr_t>(a->base) / PAGE * PAGE;
        mprotect(reinterpret_cast<void *>(first), a->mapped - 2 * PAGE, access);
    }
}

OpenMemory::OpenMemory() {
    if (settings.guard && open_depth++ == 0) protect(PROT_READ | PROT_WRITE);
}

OpenMemory::~OpenMemory() {
    if (settings.guard && --open_depth == 0) protect(PROT_NONE);
}

const void *place_of_signal(const void *context) {
    const auto *state = static_cast<const ucontext_t *>(context);
#if defined(__x86_64__)
    return reinterpret_cast<const void *>(state->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return reinterpret_cast<const void *>(state->uc_mcontext.pc);
#else
    return (void)state, nullptr;
#endif
}

static const char *verb([[maybe_unused]] const void *context) {
#if defined(__x86_64__)
    const auto *state = static_cast<const ucontext_t *>(context);
    return state->uc_mcontext.gregs[REG_ERR] & 2 ? "writes" : "reads";
#else
    return "reads or writes";
#endif
}

[[maybe_unused]] static struct sigaction previous_action;

/* The thread may be in the middle of anything, but the process ends. */
[[maybe_unused]] static void on_fault(int number, siginfo_t *info, void *context) {
    const Allocation *a = open_depth ? nullptr : find_allocation(info->si_addr);
    if (a && a->kind == MemoryKind::device) {
        char text[768], place[512];
        describe_code(static_cast<const char *>(place_of_signal(context)) + 1, place, sizeof place);
        int length = snprintf(text, sizeof text,
                              "simulator: host code%s %s device memory, byte %td of an allocation "
                              "of %zu bytes: it takes a copy to reach it\n",
                              place, verb(context),
                              static_cast<const char *>(info->si_addr) - a->base, a->bytes);
        if (write(STDERR_FILENO, text, (size_t)length) < 0) abort();
    }
    pass_signal_on(previous_action, number, info, context);
}

bool set_guard(bool on) {
#if defined(__SANITIZE_ADDRESS__)
    return !on;
#else
    if (on == settings.guard) return true;
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, on ? &action : &previous_action, on ? &previous_action : nullptr);
    settings.guard = on;
    protect(on ? PROT_NONE : PROT_READ | PROT_WRITE);
    return true;
#endif
}

} /* namespace pvg_sim */
