// The frame of every operation: device, stream, ordering, outputs and temporaries; see call.cuh.
#include "arrays/call.cuh"
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/report.cuh"
#include "runtime/stream.cuh"
#include <stdio.h>

namespace pvg {

Call::Call(const char *name) : outer(current_operation), outer_device(operation_device) {
    current_operation = name;
    clear_error();
}

Call::~Call() {
    if (holds_slot) leave_report_slot(device);
    if (current && error_record.status >= PVG_ERROR_MEMORY) spoil_recording(current);
    current_operation = outer;
    operation_device = outer_device;
    if (device_before >= 0) (void)cudaSetDevice(device_before);
}

int Call::begin(int wanted) {
    PVG_PASS(check_device(wanted));
    int now = -1;
    PVG_TRY(cudaGetDevice(&now));
    if (now != wanted) {
        PVG_TRY(cudaSetDevice(wanted));
        if (device_before < 0) device_before = now;
    }
    device = operation_device = wanted;
    PVG_PASS(current_stream(wanted, &current));
    stream = stream_handle(current);
    return PVG_OK;
}

int Call::reads(const pvg_array *a) { return stream_reads(current, a->storage); }
int Call::writes(pvg_array *a) { return stream_writes(current, a->storage); }

int Call::reports(ReportSlot **slot) {
    if (holds_slot) leave_report_slot(device);
    holds_slot = false;
    PVG_PASS(take_report_slot(device, is_captured(stream), slot));
    holds_slot = true;
    return PVG_OK;
}

// "the first operand", "the 11th operand", "the 22nd operand".
static const char *operand_name(int index, char *text, size_t size) {
    static const char *const words[] = {"first", "second", "third"};
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    const int number = index + 1, last = number % 10;
    if (index < 3)
        snprintf(text, size, "the %s operand", words[index]);
    else
        snprintf(text, size, "the %d%s operand", number,
                 endings[last > 3 || number / 10 % 10 == 1 ? 0 : last]);
    return text;
}

int check_operands(const pvg_array *const *arrays, int n, int *device) {
    char name[32];
    PVG_PASS(check_fork());
    for (int i = 0; i < n; i++) {
        if (!is_array(arrays[i])) return check_array(arrays[i], operand_name(i, name, sizeof name));
        PVG_REQUIRE(device_of(arrays[i]) == device_of(arrays[0]), PVG_ERROR_VALUE,
                    "operands live on different devices, %d and %d", device_of(arrays[0]),
                    device_of(arrays[i]));
    }
    *device = device_of(arrays[0]);
    return PVG_OK;
}

int check_numbers(const pvg_array *numbers, int dtype, int count, int device) {
    if (!numbers) return PVG_OK;
    int where = -1;
    PVG_PASS(check_operands(&numbers, 1, &where));
    PVG_REQUIRE(numbers->dtype == dtype, PVG_ERROR_TYPE, "renewed numbers are of %s, not of %s",
                dtype_name(dtype), dtype_name(numbers->dtype));
    PVG_REQUIRE(numbers->size == count && is_contiguous(numbers) && where == device,
                PVG_ERROR_VALUE, "renewed numbers are %d side by side on device %d, got shape %s",
                count, device, shape_text(numbers));
    return PVG_OK;
}

static int check_out(const pvg_array *out, int device, int dtype, int ndim, const int64_t *shape) {
    PVG_PASS(check_array(out, "out"));
    PVG_REQUIRE(!out->readonly, PVG_ERROR_VALUE, "out is read-only (a broadcast view)");
    PVG_REQUIRE(device_of(out) == device, PVG_ERROR_VALUE,
                "out lives on device %d, the operands on device %d", device_of(out), device);
    PVG_REQUIRE(same_shape(out, ndim, shape), PVG_ERROR_VALUE,
                "out has shape %s, the result has %s", shape_text(out), shape_text(ndim, shape));
    for (int i = 0; i < ndim; i++)
        PVG_REQUIRE(out->strides[i] != 0 || shape[i] <= 1, PVG_ERROR_VALUE,
                    "out of shape %s repeats its elements along axis %d", shape_text(out), i);
    PVG_REQUIRE(can_cast_same_kind(dtype, out->dtype), PVG_ERROR_TYPE,
                "cannot cast the result from %s to out's %s with casting rule \"same_kind\"",
                dtype_name(dtype), dtype_name(out->dtype));
    return PVG_OK;
}

int Output::open(Call &call, int dtype, int ndim, const int64_t *shape, pvg_array *given,
                 const pvg_array *const *inputs, int n) {
    bool direct = false;
    if (given) {
        PVG_PASS(check_out(given, call.device, dtype, ndim, shape));
        direct = given->dtype == dtype;
        for (int i = 0; i < n; i++) direct = direct && safe_in_place(inputs[i], ndim, shape, given);
    }
    if (direct) {
        array = given;
    } else {
        PVG_PASS(new_array(call.device, dtype, ndim, shape, &array));
        temporary = true;
    }
    out = given;
    return call.writes(array);
}

pvg_array *Output::close(Call &call, int status) {
    if (status == PVG_OK && out && temporary) status = copy_array(call, array, out);
    if (status != PVG_OK) return nullptr; // the destructor releases what was made
    pvg_array *result = out ? out : array;
    if (!out) temporary = false; // it is the caller's now
    return result;
}

Output::~Output() {
    if (temporary) release(array);
}

int as_dtype(Call &call, const pvg_array *a, int dtype, Temporary *holder,
             const pvg_array **result) {
    *result = a;
    if (a->dtype == dtype) return PVG_OK;
    PVG_PASS(new_array(call.device, dtype, a->ndim, a->shape, &holder->array));
    PVG_PASS(copy_array(call, a, holder->array));
    *result = holder->array;
    return PVG_OK;
}

int as_contiguous(Call &call, const pvg_array *a, Temporary *holder, const pvg_array **result) {
    *result = a;
    if (is_contiguous(a)) return PVG_OK;
    PVG_PASS(new_array(call.device, a->dtype, a->ndim, a->shape, &holder->array));
    PVG_PASS(copy_array(call, a, holder->array));
    *result = holder->array;
    return PVG_OK;
}

int Workspace::open(Call &call, size_t bytes) {
    int64_t shape[1] = {static_cast<int64_t>(bytes)};
    // Fresh memory counts as written by the stream that it is for.
    return new_array(call.device, PVG_UINT8, 1, shape, &memory.array);
}

} // namespace pvg
