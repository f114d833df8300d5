/* __launch_bounds__ of a kernel.
 *
 * A compiler for the host keeps nothing of it. So the macro (cuda_builtins.h) asks g++ for as many
 * instructions that do nothing in front of the kernel, as if to patch them later, and the linker
 * makes a list of where those begin: the bound is their number. */
#include "simulator.h"

extern "C" {
[[gnu::weak,
  gnu::visibility("hidden")]] extern const char *const __start___patchable_function_entries[];
[[gnu::weak,
  gnu::visibility("hidden")]] extern const char *const __stop___patchable_function_entries[];
}

namespace pvg_sim {

#if defined(__x86_64__)
static const size_t INSTRUCTION_BYTES = 1;
#else
static const size_t INSTRUCTION_BYTES = 4;
#endif

static bool are_equal_instructions(const char *from, const char *to) {
    for (const char *at = from + INSTRUCTION_BYTES; at < to; at++) {
        if (*at != at[-(ptrdiff_t)INSTRUCTION_BYTES]) return false;
    }
    return true;
}

unsigned launch_bound_of(const void *kernel) {
    const char *entry = static_cast<const char *>(kernel), *nearest = nullptr;
    const char *const *end = __stop___patchable_function_entries;
    for (auto one = __start___patchable_function_entries; one < end; one++) {
        if (*one < entry && *one > nearest) nearest = *one;
    }
    if (!nearest || !are_equal_instructions(nearest, entry)) return MAX_BLOCK_THREADS;
    size_t threads = (size_t)(entry - nearest) / INSTRUCTION_BYTES;
    return threads < MAX_BLOCK_THREADS ? (unsigned)threads : MAX_BLOCK_THREADS;
}

} /* namespace pvg_sim */
