// The devices' words and what a report says; see report.cuh.
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/report.cuh"
#include <mutex>

namespace pvg {

namespace {

// A page of memory for each device, which it sees while the page is registered. The word is the
// page's first. The host can read it at any time.
constexpr size_t page = 4096;
struct alignas(page) Page { unsigned word; };
Page pages[max_devices];
std::mutex pages_lock;         // what follows
bool registered[max_devices];  // pages that the device sees
int users[max_devices];        // operations between taking the word and their last launch
bool in_captures[max_devices]; // whether graphs, which nobody can count, may hold the address

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

int take_report_word(int device, bool captured, unsigned **word) {
    std::lock_guard<std::mutex> hold(pages_lock);
    if (!registered[device])
        PVG_TRY(cudaHostRegister(&pages[device], page,
                                 cudaHostRegisterPortable | cudaHostRegisterMapped));
    registered[device] = true;
    if (captured) in_captures[device] = true;
    users[device]++;
    *word = &pages[device].word;
    return PVG_OK;
}

void leave_report_word(int device) {
    std::lock_guard<std::mutex> hold(pages_lock);
    users[device]--;
}

int free_report_word(int device) {
    std::lock_guard<std::mutex> hold(pages_lock);
    if (!registered[device] || users[device] > 0 || in_captures[device]) return PVG_OK;
    PVG_TRY(finish_device(device)); // what was launched with the word before the lock was held
    PVG_TRY(cudaHostUnregister(&pages[device]));
    registered[device] = false;
    return PVG_OK;
}

int check_reports(int device) {
    if (device < 0) return PVG_OK; // outside of an operation
    unsigned *word = &pages[device].word;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) return PVG_OK;
    const unsigned found = __atomic_exchange_n(word, 0u, __ATOMIC_ACQ_REL);
    if (found == 0 || found >= static_cast<unsigned>(Report::count)) return PVG_OK;
    const char *outer = current_operation;
    current_operation = texts[found].operation;
    const int status = fail(PVG_ERROR_LINALG, "%s", texts[found].text);
    current_operation = outer;
    return status;
}

} // namespace pvg
