/* Stacks from mmap with a guard page, and a switch of a few instructions.
 *
 * The switch saves what the calling convention says a function must preserve, and nothing else:
 * 20 ns for a barrier, where ucontext needs 260 (it asks the kernel for the signal mask each time).
 * ucontext remains for other machines, or with -DPVG_SIM_UCONTEXT. The aarch64 switch was written
 * from the calling convention's text and has not been run yet.
 * AddressSanitizer has to be told of each switch, else it takes our stacks for a wild pointer;
 * valgrind where the stacks are, and when one is used afresh (on x86-64). */
#include "fibers.h"

#include <cstdint>
#include <pthread.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace pvg_sim {

static const size_t STACK_BYTES = 288 << 10, GUARD_BYTES = 64 << 10;

#ifndef PVG_SIM_USES_UCONTEXT

/* Saves the callee-saved registers on the stack, its pointer in *save; takes up those at load. */
extern "C" void pvg_sim_switch_stack(void **save, void *load);

asm(".text\n"
    ".globl pvg_sim_switch_stack\n"
    ".hidden pvg_sim_switch_stack\n"
    ".type pvg_sim_switch_stack, %function\n"
    "pvg_sim_switch_stack:\n"
#if defined(__x86_64__)
    "    push %rbp\n"
    "    push %rbx\n"
    "    push %r12\n"
    "    push %r13\n"
    "    push %r14\n"
    "    push %r15\n"
    "    mov %rsp, (%rdi)\n"
    "    mov %rsi, %rsp\n"
    "    pop %r15\n"
    "    pop %r14\n"
    "    pop %r13\n"
    "    pop %r12\n"
    "    pop %rbx\n"
    "    pop %rbp\n"
    "    ret\n"
#else
    "    sub sp, sp, #160\n"
    "    stp x29, x30, [sp]\n"
    "    stp x19, x20, [sp, #16]\n"
    "    stp x21, x22, [sp, #32]\n"
    "    stp x23, x24, [sp, #48]\n"
    "    stp x25, x26, [sp, #64]\n"
    "    stp x27, x28, [sp, #80]\n"
    "    stp d8, d9, [sp, #96]\n"
    "    stp d10, d11, [sp, #112]\n"
    "    stp d12, d13, [sp, #128]\n"
    "    stp d14, d15, [sp, #144]\n"
    "    mov x9, sp\n"
    "    str x9, [x0]\n"
    "    mov sp, x1\n"
    "    ldp x29, x30, [sp]\n"
    "    ldp x19, x20, [sp, #16]\n"
    "    ldp x21, x22, [sp, #32]\n"
    "    ldp x23, x24, [sp, #48]\n"
    "    ldp x25, x26, [sp, #64]\n"
    "    ldp x27, x28, [sp, #80]\n"
    "    ldp d8, d9, [sp, #96]\n"
    "    ldp d10, d11, [sp, #112]\n"
    "    ldp d12, d13, [sp, #128]\n"
    "    ldp d14, d15, [sp, #144]\n"
    "    add sp, sp, #160\n"
    "    ret\n"
#endif
    ".size pvg_sim_switch_stack, . - pvg_sim_switch_stack\n");

/* Leaves on the stack what pvg_sim_switch_stack takes up: registers of zero, entry to go to. */
static void *first_frame(char *top, void (*entry)()) {
    void **frame = reinterpret_cast<void **>(top);
#if defined(__x86_64__)
    *--frame = nullptr; /* aligns the stack as at a call, and ends a debugger's backtrace */
    *--frame = reinterpret_cast<void *>(entry);
    for (int i = 0; i < 6; i++) *--frame = nullptr;
#else
    for (int i = 0; i < 20; i++) *--frame = nullptr;
    frame[1] = reinterpret_cast<void *>(entry); /* x30, where `ret` goes */
#endif
    return frame;
}

#endif

/* A request to valgrind, by the instructions that it knows; they do nothing elsewhere. */
enum ValgrindRequest : uintptr_t { STACK_REGISTER = 0x1501, MAKE_MEMORY_UNDEFINED = 0x4d430001 };

static void tell_valgrind([[maybe_unused]] ValgrindRequest request, [[maybe_unused]] char *first,
                          [[maybe_unused]] uintptr_t second) {
#if defined(__x86_64__)
    uintptr_t message[6] = {request, reinterpret_cast<uintptr_t>(first), second}, answer = 0;
    asm volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n"
                 "xchgq %%rbx, %%rbx"
                 : "+d"(answer)
                 : "a"(message)
                 : "cc", "memory");
#endif
}

static bool map_stack(Fiber &fiber) {
    void *memory = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    mprotect(memory, GUARD_BYTES, PROT_NONE);
    fiber.stack = static_cast<char *>(memory) + GUARD_BYTES;
    fiber.bytes = STACK_BYTES;
    tell_valgrind(STACK_REGISTER, fiber.stack, (uintptr_t)fiber.stack + STACK_BYTES);
    return true;
}

/* How far below the stack's end a fiber begins: stacks lie evenly apart, and what a block's fibers
 * use of them would want the same few lines of a cache. */
[[maybe_unused]] static size_t distance_of_first_frame(const Fiber &fiber) {
    const size_t lines = 17, line = 64, most = 32 << 10;
    return (uintptr_t)fiber.stack / (GUARD_BYTES + STACK_BYTES) * lines * line % most;
}

bool prepare_fiber(Fiber &fiber, void (*entry)()) {
    if (!fiber.stack && !map_stack(fiber)) return false;
#if defined(__SANITIZE_ADDRESS__)
    /* Frames that were left behind have poisoned parts. */
    __asan_unpoison_memory_region(fiber.stack, fiber.bytes);
#endif
    tell_valgrind(MAKE_MEMORY_UNDEFINED, fiber.stack, fiber.bytes);
    fiber.fake_stack = nullptr;
#ifdef PVG_SIM_USES_UCONTEXT
    getcontext(&fiber.context);
    fiber.context.uc_stack = {fiber.stack, 0, fiber.bytes};
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, entry, 0);
#else
    fiber.stack_pointer =
        first_frame(fiber.stack + fiber.bytes - distance_of_first_frame(fiber), entry);
#endif
    return true;
}

void adopt_thread_stack(Fiber &home) {
    if (home.stack) return; /* a worker's thread stays the same */
    pthread_attr_t attributes;
    void *stack = nullptr;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &stack, &home.bytes);
        pthread_attr_destroy(&attributes);
    }
    home.stack = static_cast<char *>(stack);
}

void fiber_entered() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

static inline void swap_stacks(Fiber &from, Fiber &to) {
#ifdef PVG_SIM_USES_UCONTEXT
    swapcontext(&from.context, &to.context);
#else
    pvg_sim_switch_stack(&from.stack_pointer, to.stack_pointer);
#endif
}

void switch_fiber(Fiber &from, Fiber &to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.bytes);
#endif
    swap_stacks(from, to);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void leave_fiber(Fiber &from, Fiber &to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(nullptr, to.stack, to.bytes); /* nullptr: it does not return */
#endif
    swap_stacks(from, to);
    __builtin_unreachable();
}

bool is_stack_overflow(const Fiber &fiber, const void *address) {
    const char *at = static_cast<const char *>(address);
    return fiber.stack && at < fiber.stack && at >= fiber.stack - GUARD_BYTES;
}

} /* namespace pvg_sim */
