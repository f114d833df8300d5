/* Planted bugs: each must be seen by the builds that can see it, beside a control that is green.
 *
 * A plant runs in a child process, because sanitizers end the process or write to stderr. The child
 * writes down what a caller of the library would know: the error, the report, whether the result is
 * right. */
#include "check.h"
#include "plants.h"
#include "runtime/any_order.cuh"

#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

/* ---- What a child does: runs one of them, looks at the result ---- */

/* Launches and checks that the first `count` values are 1. */
template <class T, class F> void run(int count, F launch) {
    T *out;
    cudaMalloc(&out, N * sizeof(T));
    int error = launch(out);
    std::vector<T> seen((size_t)count);
    if (!error) {
        error = cudaMemcpy(seen.data(), out, seen.size() * sizeof(T), cudaMemcpyDeviceToHost);
    }
    bool right = !error;
    for (T x : seen) right = right && x == 1;
    fprintf(stderr, "error %d; %s; result %s\n", error, pvg_sim_message(),
            right ? "right" : "wrong");
}

#define SIMPLE(name, T, kernel, grid, block, count)                                   \
    void name(bool bug) {                                                             \
        run<T>(count, [&](T *out) {                                                   \
            return LAUNCH((bug ? kernel<true> : kernel<false>), grid, block, 0, out); \
        });                                                                           \
    }

SIMPLE(past_end, float, past_end_kernel, 5, 256, N)
SIMPLE(in_front, float, in_front_kernel, 1, 32, 1)
SIMPLE(far, float, far_kernel, 1, 32, 1)
SIMPLE(shared_index, float, shared_index_kernel, 1, 64, 63)
SIMPLE(shared_pointer, float, shared_pointer_kernel, 1, 64, 64)
SIMPLE(misaligned, float, misaligned_kernel, 1, 16, 1)
SIMPLE(unwritten, float, unwritten_kernel, 1, 64, 64)
SIMPLE(unwritten_shared, float, unwritten_shared_kernel, 1, 64, 64)
SIMPLE(missing_syncwarp, int, missing_syncwarp_kernel, 1, 32, 32)
SIMPLE(partial_barrier, float, partial_barrier_kernel, 1, 64, 64)
SIMPLE(two_barriers, float, two_barriers_kernel, 1, 64, 64)
SIMPLE(deadlock, float, deadlock_kernel, 1, 64, 64)
SIMPLE(lane_mask, float, lane_mask_kernel, 1, 32, 32)
SIMPLE(absent_lane, float, absent_lane_kernel, 1, 20, 20)
SIMPLE(masks, float, masks_kernel, 1, 32, 32)
SIMPLE(two_shuffles, float, two_shuffles_kernel, 1, 32, 32)
SIMPLE(trap, float, trap_kernel, 1, 32, 32)
SIMPLE(stack, int, stack_kernel, 1, 1, 1)

void read_beyond(bool bug) {
    float *in;
    cudaMalloc(&in, 4096);
    cudaMemset(in, 0, 4096);
    run<float>(0, [&](float *out) {
        auto kernel = bug ? read_beyond_kernel<true> : read_beyond_kernel<false>;
        return LAUNCH(kernel, 1, 32, 0, (const float *)in, out);
    });
}

void null_read(bool bug) {
    run<float>(32, [&](float *out) {
        return LAUNCH((bug ? null_kernel<true> : null_kernel<false>), 1, 32, 0, out,
                      (const float *)nullptr);
    });
}

void dynamic_shared(bool bug) {
    run<float>(64, [&](float *out) {
        return LAUNCH(dynamic_shared_kernel, 1, 64, bug ? 63 * sizeof(float) : 256, out);
    });
}

void host_pointer(bool bug) {
    float host[64];
    run<float>(bug ? 0 : 64, [&](float *out) {
        return LAUNCH(unwritten_kernel<false>, 1, 64, 0, bug ? host : out);
    });
}

void freed_pointer(bool bug) {
    run<float>(0, [&](float *out) {
        if (bug) cudaFree(out);
        return LAUNCH(unwritten_kernel<false>, 1, 64, 0, out);
    });
}

/* Launches with 4096 bytes of zeros as well. */
template <class F> void run_with_zeros(F launch) {
    int *zeros;
    cudaMalloc(&zeros, 4096);
    cudaMemset(zeros, 0, 4096);
    run<int>(1, [&](int *out) { return launch(out, zeros); });
}

void blocks_update(bool bug) {
    run_with_zeros([&](int *out, int *) {
        cudaMemset(out, 0, 8);
        return LAUNCH((bug ? update_kernel<true> : update_kernel<false>), 4, 1, 0, out);
    });
}

void last_block(bool bug) {
    run_with_zeros([&](int *out, int *zeros) {
        auto kernel = bug ? last_block_kernel<true> : last_block_kernel<false>;
        return LAUNCH(kernel, 6, 64, 0, out, zeros + 1, reinterpret_cast<unsigned *>(zeros));
    });
}

void flag(bool bug) {
    run_with_zeros([&](int *out, int *zeros) {
        auto kernel = bug ? flag_kernel<true> : flag_kernel<false>;
        return LAUNCH(kernel, 2, 1, 0, out, zeros + 1, (volatile int *)zeros);
    });
}

void spin(bool bug) {
    pvg_sim_set("patience", 1);
    run_with_zeros([&](int *out, int *zeros) {
        auto kernel = bug ? spin_kernel<true> : spin_kernel<false>;
        return LAUNCH(kernel, 2, 1, 0, out, (volatile int *)zeros);
    });
}

void pointer_in_struct(bool bug) {
    static int host[8];
    auto *heap = new int[8];
    for (int i = 0; i < 8; i++) heap[i] = host[i] = 1;
    int *device;
    cudaMalloc(&device, sizeof host);
    cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
    run<int>(8, [&](int *out) {
        return LAUNCH(struct_kernel, 1, 8, 0, Pair{out, bug ? heap : device});
    });
    delete[] heap;
}

void launch_bounds(bool bug) {
    run<float>(bug ? 0 : 64,
               [&](float *out) { return LAUNCH(bounded_kernel, 1, bug ? 65 : 64, 0, out); });
}

void host_reads(bool bug) {
    pvg_sim_set("guard", 1);
    run<float>(1, [&](float *out) {
        int error = LAUNCH(unwritten_kernel<false>, 1, 1, 0, out);
        if (bug && *(volatile float *)out != 1) error = 1;
        return error;
    });
}

void host_writes(bool bug) {
    pvg_sim_set("guard", 1);
    run<float>(1, [&](float *out) {
        int error = LAUNCH(unwritten_kernel<false>, 1, 1, 0, out);
        if (bug) *(volatile float *)out = 1;
        return error;
    });
}

void divide(bool bug) {
    run<int>(1, [&](int *out) {
        return LAUNCH((bug ? divide_kernel<true> : divide_kernel<false>), 1, 1, 0, out, 0);
    });
}

/* An index beyond 2^31 or 2^32, in memory that is only as real as the pages that are touched. */
template <class F> void run_huge(F launch, size_t at) {
    char *big, seen = 0;
    pvg_sim_set("memory", 16ll << 30);
    if (cudaMalloc(&big, (size_t)5 << 30)) fprintf(stderr, "no memory; ");
    int error = launch(big);
    if (!error) error = cudaMemcpy(&seen, big + at, 1, cudaMemcpyDeviceToHost);
    bool right = !error && seen == 1;
    fprintf(stderr, "error %d; %s; result %s\n", error, pvg_sim_message(),
            right ? "right" : "wrong");
}

void int32_index(bool bug) {
    run_huge(
        [&](char *big) {
            return LAUNCH((bug ? int32_kernel<true> : int32_kernel<false>), 1, 3, 0, big, 1 << 30);
        },
        (size_t)2 << 30);
}

void uint32_index(bool bug) {
    run_huge(
        [&](char *big) {
            return LAUNCH((bug ? uint32_kernel<true> : uint32_kernel<false>), 1, 5, 0, big,
                          1u << 30);
        },
        (size_t)4 << 30);
}

#define ORDERED(name, T, kernel, grid, block, count)                                  \
    void name(bool bug) {                                                             \
        pvg_sim_set("check_order", 1);                                                \
        run<T>(count, [&](T *out) {                                                   \
            return LAUNCH((bug ? kernel<true> : kernel<false>), grid, block, 0, out); \
        });                                                                           \
    }

ORDERED(missing_barrier, float, tree_kernel, 1, 256, 1)
ORDERED(missing_second_barrier, float, tile_kernel, 1, 64, 64)
ORDERED(overwritten, int, overwrite_kernel, 1, 64, 64)
ORDERED(race_of_blocks, int, race_kernel, 8, 1, 1)
ORDERED(shared_maximum, int, maximum_kernel, 1, 64, 64)

/* A list that may lie in any order, of which the bug does not name the last entry. */
void arrivals(bool bug) {
    pvg_sim_set("check_order", 1);
    run<int>(1, [&](int *out) {
        pvg::in_any_order(out + 1, (bug ? 63 : 64) * sizeof *out);
        return LAUNCH(arrival_kernel, 1, 64, 0, out);
    });
}

/* ---- Who sees what ---- */

/* What the child's output must hold in a plain build, with ASan and UBSan, with TSan, and with the
 * access checker (nothing: what a plain build says); nullptr where a build does not see the bug.
 * The table in ../README.md says the same. */
struct Plant {
    const char *name;
    void (*run)(bool bug);
    const char *plain, *asan, *tsan;
    const char *watch = nullptr;
};

const char ORDER[] = "depends on the order of the threads", RACE[] = "data race";
const char FOREIGN[] = "which is no device memory: the host's, or freed";
const char UNORDERED[] = "no barrier is between the two", BLOCKS[] = "blocks run in any order";
const char FENCE[] = "a __threadfence() is missing before the atomic or volatile access";
const char ABSENT[] = "that lane takes no part in the shuffle", MEET[] = "two warp functions meet";
const char SPIN[] = "comes to no barrier and to no end",
           BOUNDS[] = "its __launch_bounds__ allow 64";
const char UNWRITTEN[] = "depends on shared memory that no thread has written";
const char HOST_READS[] = "reads device memory, byte 0", HOST_WRITES[] = "writes device memory";
const char HEAP[] = "heap-buffer-overflow";

const Plant plants[] = {
    {"past_end", past_end, "seen after block (3,0,0)", HEAP, "past the end", FOREIGN},
    {"in_front", in_front, "in front of an allocation", HEAP, "in front of"},
    {"read_beyond", read_beyond, "thread (3,0,0), launched", HEAP, "error 700"},
    {"far", far, "thread (3,0,0), launched", "ERROR: AddressSanitizer", "illegal access", FOREIGN},
    {"null_read", null_read, "illegal access", "null pointer", "illegal access"},
    {"shared_index", shared_index, nullptr, "out of bounds", nullptr},
    {"shared_pointer", shared_pointer, nullptr, "global-buffer-overflow", nullptr},
    {"dynamic_shared", dynamic_shared, nullptr, HEAP, nullptr, FOREIGN},
    {"misaligned", misaligned, nullptr, "misaligned", nullptr},
    {"int32_index", int32_index, "error 700", "signed integer overflow", nullptr},
    {"uint32_index", uint32_index, "wrong", "wrong", nullptr},
    {"unwritten", unwritten, "wrong", "wrong", "wrong"},
    {"unwritten_shared", unwritten_shared, "wrong", nullptr, "wrong"},
    {"missing_syncwarp", missing_syncwarp, "wrong", "wrong", RACE, UNORDERED},
    {"missing_barrier", missing_barrier, ORDER, ORDER, RACE, UNORDERED},
    {"missing_second_barrier", missing_second_barrier, ORDER, ORDER, RACE, UNORDERED},
    {"overwritten", overwritten, ORDER, ORDER, RACE, "has read, and no barrier"},
    {"race_of_blocks", race_of_blocks, ORDER, ORDER, ORDER, BLOCKS},
    {"arrivals", arrivals, ORDER, ORDER, ORDER},
    {"partial_barrier", partial_barrier, "24 of 64 threads returned", "error 719", "error 719"},
    {"two_barriers", two_barriers, "different barriers", "error 719", "error 719"},
    {"deadlock", deadlock, "1 at the warp barrier", "error 702", "error 702"},
    {"lane_mask", lane_mask, "not in its own mask", "error 719", "error 719"},
    {"absent_lane", absent_lane, ABSENT, ABSENT, ABSENT},
    {"masks", masks, MEET, MEET, MEET},
    {"two_shuffles", two_shuffles, MEET, MEET, MEET},
    {"blocks_update", blocks_update, nullptr, nullptr, nullptr, BLOCKS},
    {"last_block", last_block, nullptr, nullptr, nullptr, FENCE},
    {"flag", flag, nullptr, nullptr, nullptr, FENCE},
    {"spin", spin, SPIN, SPIN, nullptr},
    {"shared_maximum", shared_maximum, UNWRITTEN, nullptr, UNWRITTEN},
    {"pointer_in_struct", pointer_in_struct, nullptr, nullptr, nullptr, FOREIGN},
    {"launch_bounds", launch_bounds, BOUNDS, BOUNDS, BOUNDS},
    {"host_reads", host_reads, HOST_READS, nullptr, HOST_READS},
    {"host_writes", host_writes, HOST_WRITES, nullptr, HOST_WRITES},
    {"host_pointer", host_pointer, "argument 1", "error 700", "error 700"},
    {"freed_pointer", freed_pointer, "argument 1", "error 700", "error 700"},
    {"trap", trap, "__trap() at", "error 719", "error 719"},
    {"stack", stack, "fiber's stack", "stack-overflow", nullptr},
    {"divide", divide, "divided by zero", "division by zero", "divided by zero"},
};

const char *expected_in_this_build(const Plant &plant) {
#if defined(PVG_SIM_WATCH)
    return plant.watch ? plant.watch : plant.plain;
#elif defined(__SANITIZE_ADDRESS__)
    return plant.asan;
#elif defined(__SANITIZE_THREAD__)
    return plant.tsan;
#else
    return plant.plain;
#endif
}

/* What the plant wrote to stderr in a process of its own. */
std::string output_of(const Plant &plant, bool bug) {
    int pipe_ends[2];
    if (pipe(pipe_ends)) return "no pipe";
    pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], 2);
        close(pipe_ends[0]), close(pipe_ends[1]);
        plant.run(bug);
        _exit(0);
    }
    close(pipe_ends[1]);
    std::string text;
    char part[4096];
    for (ssize_t n; (n = read(pipe_ends[0], part, sizeof part)) > 0;) text.append(part, (size_t)n);
    close(pipe_ends[0]);
    waitpid(child, nullptr, 0);
    return text;
}

} /* namespace */

int main() {
    pvg_sim_set("workers", 1); /* so that the block a report names is the same every time */
    for (const Plant &plant : plants) {
        std::string control = output_of(plant, false);
        if (control != "error 0; ; result right\n") {
            printf("plant %s: its control is not green: %s\n", plant.name, control.c_str());
            checks_failed++;
        }
        const char *expected = expected_in_this_build(plant);
        if (!expected) continue;
        std::string seen = output_of(plant, true);
        if (seen.find(expected) == std::string::npos) {
            printf("plant %s: no \"%s\" in: %s\n", plant.name, expected, seen.c_str());
            checks_failed++;
        }
    }
    return finish("plants");
}
