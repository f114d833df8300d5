/* Allocations or launches by the million, in several threads: nothing may be left, nor grow.
 *
 *     soak allocations|launches COUNT SECONDS THREADS
 *
 * does so many, or what fits into the time, in ten rounds, and prints what was done and what the
 * process had after each round, as JSON. It is no test of `make test`: tests/gates runs it. */
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 10, MOST_THREADS = 64, SLOTS = 64, STRIDE = 4096 };

typedef struct {
    pthread_t thread;
    uint64_t state;
    int64_t wanted, done, failures;
    double end;
} Worker;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Sizes of all magnitudes up to a megabyte, of which most are small, released in random order. */
static void *allocate(void *argument) {
    Worker *worker = argument;
    pvg_array *slots[SLOTS] = {NULL};
    while (worker->done < worker->wanted && now() < worker->end)
        for (int i = 0; i < STRIDE && worker->done < worker->wanted; i++, worker->done++) {
            uint64_t random = random_bits(&worker->state);
            pvg_array **slot = &slots[random % SLOTS];
            int64_t n = 1 + (int64_t)((random >> 32) & (((uint64_t)1 << (random >> 8) % 21) - 1));
            worker->failures += *slot && pvg_array_release(*slot) != PVG_OK;
            *slot = pvg_array_empty(0, PVG_UINT8, SHAPE(n));
            worker->failures += !*slot;
        }
    for (int i = 0; i < SLOTS; i++) worker->failures += pvg_array_release(slots[i]) != PVG_OK;
    return NULL;
}

/* Ones added up: after n launches each element is n, or of another remainder of 2^32. */
static void *launch(void *argument) {
    Worker *worker = argument;
    const int64_t zero = 0, one = 1;
    pvg_array *sum = pvg_array_empty(0, PVG_UINT32, SHAPE(8));
    worker->failures += !sum || pvg_fill(sum, PVG_SCALAR_INT, &zero) != PVG_OK;
    while (worker->done < worker->wanted && now() < worker->end)
        for (int i = 0; i < STRIDE && worker->done < worker->wanted; i++, worker->done++) {
            pvg_array *same = pvg_binary_scalar(PVG_ADD, sum, PVG_SCALAR_INT, &one, 1, sum);
            worker->failures += !same || (same != sum && pvg_array_release(same) != PVG_OK);
        }
    uint32_t values[8] = {0};
    worker->failures += pvg_copy_to_host(sum, values, NULL) != PVG_OK;
    for (int i = 0; i < 8; i++) worker->failures += values[i] != (uint32_t)worker->done;
    worker->failures += pvg_array_release(sum) != PVG_OK;
    return NULL;
}

static int entries(const char *folder) {
    DIR *directory = opendir(folder);
    int count = 0;
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count;
}

static int64_t resident(void) {
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*s %lld", &pages) != 1) pages = -1;
    if (file) fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static int64_t run_round(void *(*work)(void *), int64_t count, double seconds, int threads,
                         int number) {
    static Worker workers[MOST_THREADS];
    int64_t done = 0, failures = 0;
    for (int i = 0; i < threads; i++) {
        workers[i] = (Worker){.state = (uint64_t)(1000 * number + i + 1),
                              .wanted = count / threads + (i < count % threads),
                              .end = now() + seconds};
        CHECK_EQUAL(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < threads; i++) {
        CHECK_EQUAL(pthread_join(workers[i].thread, NULL), 0);
        done += workers[i].done;
        failures += workers[i].failures;
    }
    CHECK_EQUAL(failures, 0);
    check_clean();
    return done;
}

/* Ten rounds; the first one makes what is made once. */
static void soak(void *(*work)(void *), int64_t count, double seconds, int threads) {
    int64_t done = 0, start = pvg_counter(PVG_COUNT_LAUNCHES), memory[ROUNDS];
    int descriptors[ROUNDS], tasks[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        done +=
            run_round(work, count / ROUNDS + (i < count % ROUNDS), seconds / ROUNDS, threads, i);
        memory[i] = resident();
        descriptors[i] = entries("/proc/self/fd");
        tasks[i] = entries("/proc/self/task");
    }
    printf("{\"done\": %" PRId64 ", \"launches\": %" PRId64, done,
           pvg_counter(PVG_COUNT_LAUNCHES) - start);
    for (int i = 0; i < ROUNDS; i++)
        printf("%s%" PRId64, i ? ", " : ", \"resident\": [", memory[i]);
    for (int i = 0; i < ROUNDS; i++) printf("%s%d", i ? ", " : "], \"files\": [", descriptors[i]);
    for (int i = 0; i < ROUNDS; i++) printf("%s%d", i ? ", " : "], \"tasks\": [", tasks[i]);
    printf("]}\n");
}

int main(int count, char **arguments) {
    int threads = count == 5 ? atoi(arguments[4]) : 0;
    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: soak allocations|launches COUNT SECONDS THREADS\n");
        return 2;
    }
    begin("soak");
    check_section = arguments[1];
    void *(*work)(void *) = strcmp(arguments[1], "launches") == 0 ? launch : allocate;
    CHECK_OK(pvg_empty_cache(0));
    int64_t free_before = memory_value(PVG_MEMORY_FREE);
    soak(work, strtoll(arguments[2], NULL, 10), strtod(arguments[3], NULL), threads);
    CHECK_OK(pvg_empty_cache(0));
    int64_t lost = free_before - memory_value(PVG_MEMORY_FREE);
    if (!(lost <= 32 << 20)) /* kernels are loaded, and a real device may have other users */
        report(__FILE__, __LINE__, "%" PRId64 " bytes of the card are gone", lost);
    return finish();
}
