/* Calls of the C interface on the simulated card as those of fuzz.c, chosen by libFuzzer: it keeps
 * the bytes that a new part of the library has run for, and changes them further.
 *
 *     fuzz_guided -max_total_time=600 build/corpus    what was kept is gone on with
 *     fuzz_guided FILE                                the calls of one input, one by one
 *     fuzz_guided -minimize_crash=1 -runs=10000 FILE  fewer bytes that fail in the same way
 *
 * The first byte is the mode of the round, the next ones are the numbers of its calls. g++ compiles
 * the library with -fsanitize-coverage=trace-pc: it counts where it has been, in counters that
 * libFuzzer looks at after each input. */
#include "fuzz_round.h"

/* Once, twice or often is all that counts of a block: kernels run it for each thread. */
enum { COUNTERS = 1 << 18, OFTEN = 3 };

extern const char __executable_start;
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[COUNTERS];
static int64_t inputs, calls;

/* Every block of code calls this in the place of libFuzzer's own function, which only says that it
 * is for clang. Kernels run in two threads: a count that is lost does no harm. */
void __wrap___sanitizer_cov_trace_pc(void) {
    const char *block = (const char *)__builtin_return_address(0);
    const uint64_t place = (uint64_t)(block - &__executable_start);
    uint8_t *counter = &counters[(place * 0x9E3779B97F4A7C15u) >> 46];
    if (*counter < OFTEN) ++*counter;
}

static void tell(void) {
    fprintf(stderr, "fuzz_guided: %" PRId64 " inputs, %" PRId64 " calls%s\n", inputs, calls,
            check_failures ? "" : ", nothing wrong");
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    tracing = *argc == 2 && (*argv)[1][0] != '-';
    begin_rounds("fuzz_guided");
    return check_failures != 0 || atexit(tell) != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    rng = 1;
    begin_round(data[0] % MODES);
    chosen = data + 1, chosen_left = size - 1;
    for (int i = 0; i < CALLS && chosen_left > 0 && check_failures == 0; i++) {
        if (tracing) fprintf(stderr, "%d:\n", i);
        call_any();
        calls++;
    }
    end_round();
    chosen = NULL;
    inputs++;
    if (check_failures) abort();
    return 0;
}
