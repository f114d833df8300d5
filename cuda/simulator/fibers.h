/* Fibers: stacks of their own on which the threads of a block run, switched by hand. */
#pragma once
#include <cstddef>

#if defined(PVG_SIM_UCONTEXT) || !(defined(__x86_64__) || defined(__aarch64__))
#define PVG_SIM_USES_UCONTEXT 1
#include <ucontext.h>
#endif

namespace pvg_sim {

struct Fiber {
    char *stack = nullptr; /* lowest address; below it lies a guard page */
    size_t bytes = 0;
    void *fake_stack = nullptr; /* AddressSanitizer's, while the fiber does not run */
#ifdef PVG_SIM_USES_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer = nullptr; /* while the fiber does not run */
#endif
};

/* Makes the next switch to the fiber call entry(), which must never return. Whatever the fiber ran
 * before is forgotten. Returns false when there is no memory for its stack. */
bool prepare_fiber(Fiber &fiber, void (*entry)());

/* Makes `home` stand for the calling OS thread's own stack. */
void adopt_thread_stack(Fiber &home);

/* Leaves `from`, the running fiber, for `to`; returns when something switches back. */
void switch_fiber(Fiber &from, Fiber &to);

/* Leaves `from` for good. */
[[noreturn]] void leave_fiber(Fiber &from, Fiber &to);

/* The first thing that entry() does. */
void fiber_entered();

/* Whether an address lies in the guard page below the fiber's stack: it used too much of it. */
bool is_stack_overflow(const Fiber &fiber, const void *address);

} /* namespace pvg_sim */
