// The devices' words and what a report says; see report.cuh.
#include "runtime/device.cuh"
#include "runtime/report.cuh"
#include <mutex>

namespace pvg {

namespace {

std::mutex words_lock; // words being made
std::atomic<unsigned *> words[max_devices];

struct Text { const char *operation, *text; };
constexpr Text texts[] = {
    {"", ""},
    {"cholesky", "a matrix is not positive definite"},
    {"solve", "a matrix is singular"},
    {"inv", "a matrix is singular"},
    {"solve_triangular", "a matrix is singular: there is a 0 on its diagonal"},
};
static_assert(sizeof texts / sizeof *texts == static_cast<size_t>(Report::count), "one text each");

} // namespace

int report_word(int device, unsigned **word) {
    unsigned *found = words[device].load(std::memory_order_acquire);
    if (!found) {
        std::lock_guard<std::mutex> hold(words_lock);
        found = words[device].load(std::memory_order_acquire);
        if (!found) {
            void *memory = nullptr;
            PVG_TRY(cudaHostAlloc(&memory, sizeof *found, cudaHostAllocMapped));
            found = static_cast<unsigned *>(memory);
            *found = 0;
            words[device].store(found, std::memory_order_release);
        }
    }
    *word = found;
    return PVG_OK;
}

int check_reports(int device) {
    if (device < 0) return PVG_OK; // outside of an operation
    unsigned *word = words[device].load(std::memory_order_acquire);
    if (!word || __atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) return PVG_OK;
    const unsigned found = __atomic_exchange_n(word, 0u, __ATOMIC_ACQ_REL);
    if (found == 0 || found >= static_cast<unsigned>(Report::count)) return PVG_OK;
    const char *outer = current_operation;
    current_operation = texts[found].operation;
    const int status = fail(PVG_ERROR_LINALG, "%s", texts[found].text);
    current_operation = outer;
    return status;
}

} // namespace pvg
