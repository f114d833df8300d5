/* The access checker (-DPVG_SIM_WATCH; otherwise all of this is empty): what the barriers and the
 * fences of a block tell it, and what it asks of them. It is written in watch.cpp. */
#pragma once
#include "worker.h"

namespace pvg_sim {
namespace watch {

enum class Access : unsigned char { read, write, volatile_read, volatile_write, atomic };

#ifdef PVG_SIM_WATCH

constexpr bool ENABLED = true;
void begin_launch();
void begin_block(uint64_t block);
void block_barrier();                              /* all threads that are left have passed one */
void warp_barrier(unsigned first, unsigned lanes); /* these lanes of the warp of thread `first` */
void fence(unsigned thread);                       /* __threadfence() */
/* Whether it is seen at a glance that a kernel may touch this; false: ask access(). The pages are
 * those that kernels touched in this launch and that hold nothing else. */
constexpr uintptr_t PAGE = 4096, EASY = 1024;
extern uintptr_t easy_pages[EASY];
inline bool is_easy(const void *address) {
    uintptr_t page = reinterpret_cast<uintptr_t>(address) / PAGE;
    return easy_pages[page % EASY] == ~page; /* no page is ~0: nothing is easy at first */
}
/* The thread that runs touches memory, in code at `place`. */
void access(Worker &w, const void *address, size_t bytes, Access how, const void *place);

#else

constexpr bool ENABLED = false;
inline void begin_launch() {}
inline void begin_block(uint64_t) {}
inline void block_barrier() {}
inline void warp_barrier(unsigned, unsigned) {}
inline void fence(unsigned) {}

#endif

} /* namespace watch */
} /* namespace pvg_sim */
