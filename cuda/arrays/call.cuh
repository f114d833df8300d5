// What every exported operation stands on.
//
//     PVG_API pvg_array *pvg_unary(int code, const pvg_array *a, pvg_array *out) {
//         Call call("exp");                               // clears the last error
//         Output result;
//         int status = run_unary(call, code, a, out, &result); // checks and launches
//         return result.close(call, status);                   // the handle, or NULL
//     }
//
// Inside, in this order: check handles; call.begin(device) chooses device and stream; result.open
// makes the place to write to; call.reads / call.writes make the stream wait for other streams
// where that is needed; then launch on call.stream.
#pragma once
#include "arrays/dispatch.cuh"
#include "arrays/layout.cuh"
#include "runtime/launch.cuh"

namespace pvg {

struct ReportSlot;

struct Call {
    cudaStream_t stream = nullptr; // valid after begin
    int device = -1;

    explicit Call(const char *name);
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;
    ~Call();

    // Make the device current for this thread (until the operation ends) and take the thread's
    // current stream on it. Errors: UNAVAILABLE (no device, forked child), DEVICE_LOST.
    int begin(int device);
    // The stream is about to read, or to write, the array's storage.
    int reads(const pvg_array *a);
    int writes(pvg_array *a);
    // The device's slot for what only a kernel can find (runtime/report.cuh), until the call ends.
    int reports(ReportSlot **slot);

private:
    Stream *current = nullptr;
    int device_before = -1;
    const char *outer; // what was going on before, and on which device
    int outer_device;
    bool holds_slot = false;
};

// Check n handles and that they live on one device; *device is that one.
int check_operands(const pvg_array *const *arrays, int n, int *device);
// Check numbers that kernels on a device read, unless they are NULL: `count` side by side.
int check_numbers(const pvg_array *numbers, int dtype, int count, int device);

// Where a result goes: a new array; or `out` itself; or a temporary that close() casts and copies
// to `out`, when out's dtype differs or writing to it directly would overwrite operands too early.
struct Output {
    pvg_array *array = nullptr; // write here, after call.writes(array), which open has done

    // inputs: the n operands as they will be read (after casts and temporaries).
    // Errors: VALUE (shape, device, read-only out), TYPE (cast not "same_kind"), MEMORY.
    int open(Call &call, int dtype, int ndim, const int64_t *shape, pvg_array *out,
             const pvg_array *const *inputs, int n);
    // The result if status is PVG_OK (and copying it to `out` succeeds), else NULL.
    pvg_array *close(Call &call, int status);
    Output() = default;
    Output(const Output &) = delete;
    Output &operator=(const Output &) = delete;
    ~Output();

private:
    pvg_array *out = nullptr;
    bool temporary = false;
};

// The operand in another dtype: itself if it has it already, else a temporary contiguous copy kept
// in `holder`.
int as_dtype(Call &call, const pvg_array *a, int dtype, Temporary *holder,
             const pvg_array **result);
// The operand itself if it is contiguous, else a temporary contiguous copy.
int as_contiguous(Call &call, const pvg_array *a, Temporary *holder, const pvg_array **result);

// destination[...] = source, broadcast and cast, on the operation's stream; in arrays/copy.cu.
int copy_array(Call &call, const pvg_array *source, pvg_array *destination);

// Device memory for partial results: freed in stream order when it goes out of scope.
struct Workspace {
    Temporary memory;
    template <class T> T *as() { return reinterpret_cast<T *>(memory.array->data); }
    int open(Call &call, size_t bytes);
};

} // namespace pvg
