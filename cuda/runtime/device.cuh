// Devices: how many, which is current, what they can do (cached), fork and exit guards.
#pragma once
#include "runtime/error.cuh"
#include <atomic>

namespace pvg {

constexpr int max_devices = 64;

// Starts the CUDA runtime at first use and counts devices. Errors: UNAVAILABLE with the reason.
int start_devices(int *count);
// Checks a device number, and that this process may use devices (not a forked child, not lost).
int check_device(int device);
// One of pvg_device_attribute_code, cached.
int device_attribute(int device, int attribute, int64_t *value);

// The device that an operation of the calling thread has made current, -1 outside of one: a scope
// inside of it need not ask again.
extern thread_local int operation_device;

// Makes a device current for the calling thread and puts the one before back at the end.
struct DeviceScope {
    int before = -1;
    int enter(int device);
    ~DeviceScope();
};

// Binds the context of the thread's current device to the thread. The runtime does so in some of
// its calls only: a function of the driver gives CUDA_ERROR_INVALID_CONTEXT before one of them, or
// when somebody else has unbound it, and is called again after this.
int bind_context();

extern std::atomic<int64_t> counters[8]; // indexed by pvg_counter
extern std::atomic<int64_t> option_sync, option_launch_log, option_allocator;
extern std::atomic<bool> forked_child; // this process was forked after CUDA had started
// Errors: UNAVAILABLE in such a child, where locks may be held by threads that do not exist.
int check_fork();

} // namespace pvg
