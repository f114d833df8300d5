// What a kernel may leave in any order, for another that makes the same of each.
//
// The simulated card's order check holds all memory after a launch against that after the same with
// its threads the other way around. in_any_order, called before the launch, takes memory out of
// that: lists whose entries lie as they arrived. What is made of them is checked as ever.
#pragma once
#include <cstddef>

#ifdef PVG_SIMULATOR
namespace pvg_sim {
void next_in_any_order(const void *memory, size_t bytes);
}
#endif

namespace pvg {

// Of the thread's next launch.
inline void in_any_order(const void *memory, size_t bytes) {
#ifdef PVG_SIMULATOR
    pvg_sim::next_in_any_order(memory, bytes);
#else
    (void)memory, (void)bytes;
#endif
}

} // namespace pvg
