/* cp.async: copies to shared memory that a thread starts, and that are there when it has waited.
 *
 * A card may do such a copy at any time in between; the simulator does the worst. From the start on
 * the destination holds 0xFF, and the bytes come when the thread waits for their group: so a
 * missing wait, one for too few groups, and a missing barrier after it leave NaN, or -1, to whoever
 * reads. A destination that no longer holds 0xFF then was written to meanwhile, which is an error.
 * What a thread never waits for comes when it returns. */
#include "worker.h"

#include <cstring>

namespace pvg_sim {

/* Where dynamic shared memory begins for instructions; a card keeps 1 KiB for itself. Kernels may
 * rely on a multiple of 16, and so it is no multiple of more (shared_memory.cpp). */
static const uint32_t WINDOW = (1 << 10) + 16;

/* ---- Shared memory by its address ---- */

uint32_t shared_address(const void *pointer) {
    const Worker &w = *worker;
    const char *at = static_cast<const char *>(pointer);
    if (at < w.dynamic_shared || at > w.dynamic_shared + w.launch->shared_bytes) {
        fail_kernel(cudaErrorIllegalAddress, "%p is not in the block's dynamic shared memory",
                    pointer);
    }
    return WINDOW + (uint32_t)(at - w.dynamic_shared);
}

void *shared_pointer(uint32_t address, size_t bytes) {
    const Worker &w = *worker;
    if (address < WINDOW || address - WINDOW + bytes > w.launch->shared_bytes) {
        fail_kernel(cudaErrorIllegalAddress,
                    "%zu bytes at %d are not in the block's %zu bytes of shared memory", bytes,
                    (int)(address - WINDOW), w.launch->shared_bytes);
    }
    if (bytes <= 16 && address % bytes) {
        fail_kernel(cudaErrorMisalignedAddress, "%zu bytes of shared memory at %d, not aligned",
                    bytes, (int)(address - WINDOW));
    }
    return w.dynamic_shared + (address - WINDOW);
}

/* ---- Bytes on their way ---- */

void begin_arrival(void *to, size_t bytes) { memset(to, POISON, bytes); }

void check_arrival(const void *to, size_t bytes, const char *how) {
    const unsigned char *at = static_cast<const unsigned char *>(to);
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] == POISON) continue;
        fail_kernel(cudaErrorLaunchFailure,
                    "shared memory, %zd bytes from its beginning, was written to while a copy by "
                    "%s was on its way there",
                    static_cast<const char *>(to) + i - worker->dynamic_shared, how);
    }
}

/* ---- cp.async ---- */

void copy_async(uint32_t address, const void *from, int bytes, int count) {
    require_capability(80, "cp.async");
    check_has_waited("cp.async");
    if (count && reinterpret_cast<uintptr_t>(from) % (unsigned)bytes) {
        fail_kernel(cudaErrorMisalignedAddress, "cp.async of %d bytes from %p, not aligned", bytes,
                    from);
    }
    Events &events = *worker->events;
    void *to = shared_pointer(address, (size_t)bytes);
    begin_arrival(to, (size_t)bytes);
    AsyncThread &thread = events.threads[worker->self];
    thread.copies.push_back({to, from, bytes, count, thread.committed});
}

void commit_copies() {
    require_capability(80, "cp.async");
    worker->events->threads[worker->self].committed++;
}

/* The copies of the first groups, below `group`. */
static void finish_copies(AsyncThread &thread, uint64_t group) {
    auto &copies = thread.copies;
    size_t done = 0;
    for (; done < copies.size() && copies[done].group < group; done++) {
        const AsyncCopy &copy = copies[done];
        check_arrival(copy.to, (size_t)copy.bytes, "cp.async");
        if (copy.count) memcpy(copy.to, copy.from, (size_t)copy.count);
        memset(static_cast<char *>(copy.to) + copy.count, 0, (size_t)(copy.bytes - copy.count));
    }
    copies.erase(copies.begin(), copies.begin() + (ptrdiff_t)done);
}

void wait_for_copies(unsigned groups) {
    require_capability(80, "cp.async");
    AsyncThread &thread = worker->events->threads[worker->self];
    if (thread.committed > groups) finish_copies(thread, thread.committed - groups);
}

void finish_all_copies(Worker &w) {
    AsyncThread &thread = w.events->threads[w.self];
    if (!thread.copies.empty()) finish_copies(thread, UINT64_MAX);
}

} /* namespace pvg_sim */
