// The devices' slots and what a report says; see report.cuh.
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/report.cuh"
#include <mutex>

namespace pvg {

namespace {

// The last turn of a device's slot that a kernel took: in its own memory, where atomic operations
// work on every machine. (One for each device, as simulated ones share their variables.)
__device__ unsigned turns_taken[max_devices];

// A page of memory for each device, which it sees while the page is registered; the host can read
// it at any time.
constexpr size_t page = 4096;
struct alignas(page) Page { ReportSlot slot; };
Page pages[max_devices];
std::mutex pages_lock;         // what follows
bool registered[max_devices];  // pages that the device sees
int users[max_devices];        // operations between taking the slot and their last launch
bool in_captures[max_devices]; // whether graphs, which nobody can count, may hold the address

constexpr unsigned being_read = ~0u; // the word while a thread of the host looks at the rest

struct Text {
    int status;
    const char *operation, *text;
};
constexpr Text texts[] = {
    {PVG_OK, "", ""},
    {PVG_ERROR_LINALG, "cholesky", "a matrix is not positive definite"},
    {PVG_ERROR_LINALG, "solve", "a matrix is singular"},
    {PVG_ERROR_LINALG, "inv", "a matrix is singular"},
    {PVG_ERROR_LINALG, "solve_triangular", "a matrix is singular: there is a 0 on its diagonal"},
    {PVG_ERROR_INDEX, "gather", ""},
    {PVG_ERROR_INDEX, "scatter", ""},
    {PVG_ERROR_INDEX, "accumulate", ""},
    {PVG_ERROR_INDEX, "cross_entropy", ""},
};
static_assert(sizeof texts / sizeof *texts == static_cast<size_t>(Report::count), "one text each");

} // namespace

int take_report_slot(int device, bool captured, ReportSlot **slot) {
    std::lock_guard<std::mutex> hold(pages_lock);
    if (!registered[device])
        PVG_TRY(cudaHostRegister(&pages[device], page,
                                 cudaHostRegisterPortable | cudaHostRegisterMapped));
    registered[device] = true;
    ReportSlot &own = pages[device].slot;
    if (!own.taken) {
        void *taken;
        PVG_TRY(cudaGetSymbolAddress(&taken, turns_taken));
        own.taken = static_cast<unsigned *>(taken) + device;
        __atomic_store_n(&own.turn, 1u, __ATOMIC_RELEASE);
    }
    if (captured) in_captures[device] = true;
    users[device]++;
    *slot = &own;
    return PVG_OK;
}

void leave_report_slot(int device) {
    std::lock_guard<std::mutex> hold(pages_lock);
    users[device]--;
}

int free_report_slot(int device) {
    std::lock_guard<std::mutex> hold(pages_lock);
    if (!registered[device] || users[device] > 0 || in_captures[device]) return PVG_OK;
    PVG_TRY(finish_device(device)); // what was launched with the slot before the lock was held
    PVG_TRY(cudaHostUnregister(&pages[device]));
    registered[device] = false;
    return PVG_OK;
}

int check_reports(int device) {
    if (device < 0) return PVG_OK; // outside of an operation
    ReportSlot *slot = &pages[device].slot;
    unsigned word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);
    if (word == 0 || word == being_read ||
        !__atomic_compare_exchange_n(&slot->word, &word, being_read, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return PVG_OK; // nothing, or somebody else has it
    const long long index = slot->index, axis = slot->axis, length = slot->length;
    __atomic_store_n(&slot->word, 0u, __ATOMIC_RELEASE);
    __atomic_fetch_add(&slot->turn, 1u, __ATOMIC_ACQ_REL);
    const char *outer = current_operation;
    current_operation = texts[word].operation;
    const Text &text = texts[word];
    const int status =
        word == static_cast<unsigned>(Report::label)
            ? fail(PVG_ERROR_INDEX, "label %lld is out of bounds for %lld classes", index, length)
        : text.status == PVG_ERROR_INDEX
            ? fail(PVG_ERROR_INDEX, "index %lld is out of bounds for axis %lld with size %lld",
                   index, axis, length)
            : fail(text.status, "%s", text.text);
    current_operation = outer;
    return status;
}

} // namespace pvg
