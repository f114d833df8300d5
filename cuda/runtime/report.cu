// The devices' words and what a report says; see report.cuh.
#include "runtime/device.cuh"
#include "runtime/report.cuh"
#include <mutex>

namespace pvg {

namespace {

// A line of memory for each device, which all of them see once it is registered; it stays so.
constexpr size_t line = 64 / sizeof(unsigned);
alignas(4096) unsigned lines[(max_devices * line * sizeof(unsigned) + 4095) / 4096 * 1024];
std::mutex words_lock; // words being made
bool registered = false;
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
            if (!registered)
                PVG_TRY(cudaHostRegister(lines, sizeof lines,
                                         cudaHostRegisterPortable | cudaHostRegisterMapped));
            registered = true;
            found = lines + static_cast<size_t>(device) * line;
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
