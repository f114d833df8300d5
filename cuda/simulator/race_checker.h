/* ThreadSanitizer as a race checker for kernels (-DPVG_SIM_TSAN; otherwise all of this is empty).
 *
 * Only the kernels are compiled with -fsanitize=thread. Each simulated thread has a context of
 * ThreadSanitizer's own; it is entered before the thread's code runs, and the simulator itself runs
 * in the home context. Switches do not order anything: only what releases and acquires a Sync does,
 * which the barriers do. So two accesses without a barrier between them are a data race. */
#pragma once

#ifdef PVG_SIM_TSAN
extern "C" void *__tsan_get_current_fiber();
extern "C" void *__tsan_create_fiber(unsigned flags);
extern "C" void __tsan_switch_to_fiber(void *fiber, unsigned flags);
extern "C" void __tsan_acquire(void *address);
extern "C" void __tsan_release(void *address);
#endif

namespace pvg_sim {
namespace race {

/* Two alternating addresses: a thread that is late at one barrier is not ordered with the next. */
struct Sync { char side[2]; };

#ifdef PVG_SIM_TSAN

constexpr bool ENABLED = true;
constexpr unsigned NO_ORDER = 1; /* flag of a switch that orders nothing */
extern void *contexts[1024], *home;

inline void begin_launch() { home = __tsan_get_current_fiber(); }
inline void enter_thread(unsigned thread) {
    if (!contexts[thread]) contexts[thread] = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(contexts[thread], NO_ORDER);
}
inline void enter_home() { __tsan_switch_to_fiber(home, NO_ORDER); }
inline void acquire(Sync &sync, unsigned long long turn) { __tsan_acquire(&sync.side[turn & 1]); }
inline void release(Sync &sync, unsigned long long turn) { __tsan_release(&sync.side[turn & 1]); }

#else

constexpr bool ENABLED = false;
inline void begin_launch() {}
inline void enter_thread(unsigned) {}
inline void enter_home() {}
inline void acquire(Sync &, unsigned long long) {}
inline void release(Sync &, unsigned long long) {}

#endif

} /* namespace race */
} /* namespace pvg_sim */
