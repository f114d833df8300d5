// Host threads that copy memory: one core copies at 10 to 14 GB/s, a card's bus takes 50.
#pragma once
#include "runtime/error.cuh"

namespace pvg {

// How many pieces of work of one kind are not done yet.
using Unfinished = std::atomic<int>;

// Let the workers copy host memory, or make pages of it present (the system clears each at its
// first use) without changing what they hold. Both return at once, and add to `unfinished`.
void start_copy(Unfinished *unfinished, void *to, const void *from, size_t bytes);
void start_touch(Unfinished *unfinished, void *memory, size_t bytes);
// Waits until the work is done and what it wrote is visible; the caller works, too.
void finish_work(Unfinished *unfinished);

} // namespace pvg
