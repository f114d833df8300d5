/* Controls of the simulated card: plain C99, for C tests and for ctypes.
 *
 * The simulator reads no environment and prints nothing unless told to. Its settings, injected
 * faults, counters and the text of its last report are reached through these functions alone.
 * Each of them may be called from any thread. */
#ifndef PYVECGPU_SIM_H
#define PYVECGPU_SIM_H

#ifdef __cplusplus
extern "C" {
#endif

#define PVG_SIM_EXPORT __attribute__((visibility("default")))

/* Changes a setting. Returns 0, or 1 for an unknown name or a value out of range.
 *   "order"        order of threads and blocks: 0 forward (default), 1 reverse, 2 shuffled
 *   "seed"         seed of the shuffled order (default 1)
 *   "check_order"  1: every launch runs backwards, then forwards on the memory as it was, but for
 *                  other poison in shared memory; both leave the same bytes, or it fails (719)
 *   "strict"       1 (default): a barrier that some threads returned without reaching is an error
 *   "deferred"     1: work on a stream is recorded, and runs at a wait that needs it (streams.cpp)
 *   "workers"      OS threads that run the blocks of a launch, 1 to 64 (default 2; AddressSanitizer
 *                  and ThreadSanitizer builds always use 1)
 *   "devices"      simulated cards, 0 to 8 (default 1)
 *   "driver"       the version of CUDA that the driver supports, as CUDA tells it (default: that of
 *                  the runtime; an older one is refused), 0: there is no driver
 *   "start_error"  the cudaError_t that the runtime gives where it is asked how many cards there
 *                  are (default cudaSuccess)
 *   "card0" ...    what a card is, by compute capability times ten: 75 (default), 80 or 90, with
 *                  its shared memory (cards.cpp); to be set before anything asks
 *   "multiprocessors"  of each card, 1 to 1024 (default 2)
 *   "memory"       bytes of a card's memory (default 4 GiB)
 *   "copy_error"   the cudaError_t of copies that pvg_sim_fail makes fail (default
 *                  cudaErrorInvalidValue)
 *   "patience"     seconds of processor time that a thread may run without coming to a barrier or
 *                  to its end (default 60; 0: any time): then its launch fails (702)
 *   "guard"        1: host code that touches device memory ends the process (not with ASan)
 *   "skip_kernels" 1: a launch is checked and counted, and the kernel does not run: what is left is
 *                  the host's time. Results are whatever the memory held
 *   "races"        0: the access checker looks at nothing but whose memory it is (default 1)
 *   "print"        1: reports also go to stderr */
PVG_SIM_EXPORT int pvg_sim_set(const char *setting, long long value);

/* What a setting is now; -1 for an unknown name, and for "card0" ... */
PVG_SIM_EXPORT long long pvg_sim_get(const char *setting);

/* Makes exactly the nth call of a kind from now fail; 0 takes it back. An unknown kind is ignored.
 *   "malloc"   cudaMalloc: cudaErrorMemoryAllocation
 *   "pinned"   cudaMallocHost, cudaHostAlloc: cudaErrorMemoryAllocation
 *   "copy"     cudaMemcpy and its variants: cudaErrorInvalidValue, or as the setting says
 *   "memset"   cudaMemset, cudaMemsetAsync: cudaErrorInvalidValue
 *   "launch"   a kernel launch: cudaErrorLaunchOutOfResources
 *   "stream"   creating a stream: cudaErrorOperatingSystem
 *   "event"    creating or recording an event: cudaErrorOperatingSystem
 *   "device"   a kernel launch is accepted, and the card is lost: cudaErrorLaunchFailure, sticky
 *   "graph"    beginning a capture, instantiating a graph, launching it: cudaErrorMemoryAllocation
 */
PVG_SIM_EXPORT void pvg_sim_fail(const char *what, long long nth);

/* What the last report said: who did what, where. "" if there was none. The text stays valid until
 * the same thread asks again. */
PVG_SIM_EXPORT const char *pvg_sim_message(void);

/* Forgets sticky errors, the calling thread's last error, the message and all injected faults, and
 * drops work that is recorded but has not run. Memory, settings and counters stay. */
PVG_SIM_EXPORT void pvg_sim_reset(void);

/* How often something happened since the process started, or how much of it there is now; -1 for
 * an unknown name.
 *   calls     "launch", "copy_h2d", "copy_d2h", "copy_d2d", "copy_h2h", "memset", "malloc", "free",
 *             "pinned_malloc", "pinned_free", "sync" (calls that wait for a stream, an event or a
 *             device), "stream_wait", "event_record", "graph_launch", "blocks" (of all launches)
 *   bytes     "bytes_h2d", "bytes_d2h", "bytes_d2d"
 *   there now "live_allocations", "live_bytes" (device memory), "live_pinned", "live_streams",
 *             "live_events", "live_graphs" (and instances), "pending" (recorded work that has not
 *             run)
 *   reports   "reports" (all), "order_mismatch" */
PVG_SIM_EXPORT long long pvg_sim_count(const char *what);

#ifdef __cplusplus
}
#endif
#endif
