/* Random calls of the C interface on the simulated card, with handles and numbers that are right,
 * wrong, released or NULL, and with injected faults. After each call the rules of the header hold:
 *
 * - a failure has a status that the arguments explain, and a message; a success has neither;
 * - a handle that is none of ours, or not any more, is refused; `out` itself comes back;
 * - as many arrays are alive as were given and not released, and the card is healthy.
 *
 * What is found out late has to be what a call of the round can have caused (fuzz_late.h). After
 * each round nothing is left. Rounds run in child processes. One that fails or dies is run
 * again without each of its calls in turn, and what has to stay is printed:
 *
 *     fuzz SECONDS [SEED]              until the time is up or something is wrong
 *     fuzz replay SEED ROUND [FIRST]   one round, call by call; or those from FIRST on
 *
 * A call's numbers follow from the seed, the round and its place, whatever came before. */
#define _GNU_SOURCE
#include "fuzz_round.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 60 }; /* rounds of a child process */

typedef struct {
    int64_t round;
    int calls;
    char skipped[CALLS];
} Shared;

static Shared *shared;

/* ---- Rounds ---------------------------------------------------------------------------------- */

static void run_round(uint64_t seed, int64_t round) {
    rng = seed * 1000003 + (uint64_t)round;
    begin_round(round);
    for (int i = 0; i < CALLS && check_failures == 0; i++) {
        if (shared->skipped[i]) continue;
        rng = (seed * 1000003 + (uint64_t)round) * 1000003 + (uint64_t)i;
        if (tracing) fprintf(stderr, "%d:\n", i);
        call_any();
        shared->calls++;
    }
    end_round();
}

/* Runs rounds in a child process; whether all was well. */
static int in_child(uint64_t seed, int64_t first, int64_t count, int trace) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(300);
        tracing = trace;
        if (trace < 0) {
            int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, 1), dup2(nowhere, 2);
            tracing = 0;
        }
        begin_rounds("fuzz");
        for (int64_t i = 0; i < count && check_failures == 0; i++) {
            shared->round = first + i;
            run_round(seed, first + i);
        }
        _exit(check_failures != 0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) exit(2);
    if (WIFSIGNALED(status) && trace >= 0)
        fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    return status == 0;
}

/* The calls of a round without which it is right again, run aloud. */
static void explain(uint64_t seed, int64_t round) {
    if (in_child(seed, round, 1, -1)) {
        printf("round %lld fails only after those before it\n", (long long)round);
        return;
    }
    for (int i = CALLS - 1; i >= 0; i--) {
        shared->skipped[i] = 1;
        if (in_child(seed, round, 1, -1)) shared->skipped[i] = 0;
    }
    printf("what is left of seed %llu, round %lld:\n", (unsigned long long)seed, (long long)round);
    in_child(seed, round, 1, 1);
}

int main(int argc, char **argv) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || argc < 2) return 2;
    if (strcmp(argv[1], "replay") == 0 && argc >= 4) {
        const int64_t last = strtoll(argv[3], NULL, 10);
        const int64_t start = argc > 4 ? strtoll(argv[4], NULL, 10) : last;
        return !in_child(strtoull(argv[2], NULL, 10), start, last - start + 1, 1);
    }
    time_t end = time(NULL) + strtol(argv[1], NULL, 10);
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL) % 1000000;
    int64_t first = 0, calls = 0;
    int well = 1;
    for (; well && time(NULL) < end; first += BATCH) {
        shared->calls = 0;
        well = in_child(seed, first, BATCH, 0);
        calls += shared->calls;
    }
    printf("fuzz: seed %llu: %lld calls%s\n", (unsigned long long)seed, (long long)calls,
           well ? ", nothing wrong" : "");
    if (!well) explain(seed, shared->round);
    return !well;
}
