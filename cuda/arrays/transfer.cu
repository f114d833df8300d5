// Copies between arrays and host memory of any layout.
//
// Up: memory in C order crosses in one copy. Of any other layout, and of bools, whose bytes may be
// others than 0 and 1, all from the first byte to the last crosses, gaps too, and the device picks
// out the elements. Few elements, and those that are far apart, go through a contiguous buffer on
// the host, a piece at a time. Down: memory that is dense in some order of its axes (C order,
// Fortran order, any transpose) crosses in one copy of what the device has put in that order;
// anything else through a buffer.
// Large copies go through pinned buffers (staging.cuh), unless the memory is registered with CUDA.
// The caller may change the source as soon as the call returns: ordinary memory has been read by
// then, and for memory that is registered with CUDA the call waits.
#include "arrays/call.cuh"
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/report.cuh"
#include "runtime/staging.cuh"
#include <stdlib.h>
#include <string.h>
#include <type_traits>

namespace pvg {

namespace {

constexpr int64_t piece_bytes = 4 << 20;

// Host memory as the caller describes it: byte strides for every axis of an array's shape.
struct HostLayout {
    int ndim;
    int64_t item;
    const int64_t *shape;
    int64_t strides[PVG_MAX_NDIM];
};

HostLayout describe_host(const pvg_array *a, const int64_t *byte_strides) {
    HostLayout h;
    h.ndim = a->ndim, h.item = dtype_size(a->dtype), h.shape = a->shape;
    contiguous_strides(a->ndim, a->shape, h.strides);
    for (int i = 0; i < a->ndim; i++)
        h.strides[i] = byte_strides ? byte_strides[i] : h.strides[i] * h.item;
    return h;
}

// The order of axes (outermost first) in which the memory has no gaps, or false.
bool dense_order(const HostLayout &h, int *order) {
    int n = 0; // axes of length 1 come first: their strides mean nothing
    for (int i = 0; i < h.ndim; i++)
        if (h.shape[i] == 1) order[n++] = i;
    int first = n;
    for (int i = 0; i < h.ndim; i++) {
        if (h.shape[i] == 1) continue;
        int j = n++;
        for (; j > first && h.strides[order[j - 1]] < h.strides[i]; j--) order[j] = order[j - 1];
        order[j] = i;
    }
    int64_t expected = h.item;
    for (int i = h.ndim; i-- > 0;) {
        int axis = order[i];
        if (h.shape[axis] != 1 && h.strides[axis] != expected) return false;
        expected *= h.shape[axis];
    }
    return true;
}

// Whether the memory has no gaps in C order.
bool is_in_order(const HostLayout &h) {
    int64_t expected = h.item;
    for (int i = h.ndim; i-- > 0;) {
        if (h.shape[i] != 1 && h.strides[i] != expected) return false;
        expected *= h.shape[i];
    }
    return true;
}

bool is_identity(const int *order, int n) {
    for (int i = 0; i < n; i++)
        if (order[i] != i) return false;
    return true;
}

// Walks host memory in C order, `count` elements from element `first` on, calling visit(pointer,
// run) for stretches of `run` elements that lie at even distances `step` (bytes).
template <class F> void walk_host(const HostLayout &h, unsigned char *base, int64_t first,
                                  int64_t count, F &&visit) {
    int inner = h.ndim - 1;
    int64_t index[PVG_MAX_NDIM], length = h.ndim ? h.shape[inner] : 1,
                                 step = h.ndim ? h.strides[inner] : h.item;
    int64_t rest = first;
    for (int i = h.ndim; i-- > 0;) {
        index[i] = rest % h.shape[i];
        rest /= h.shape[i];
    }
    while (count > 0) {
        unsigned char *p = base;
        for (int i = 0; i < h.ndim; i++) p += index[i] * h.strides[i];
        int64_t at = h.ndim ? index[inner] : 0, run = length - at < count ? length - at : count;
        visit(p, run, step);
        count -= run;
        if (h.ndim == 0) return;
        index[inner] = 0;
        for (int i = inner - 1; i >= 0; i--) {
            if (++index[i] < h.shape[i]) break;
            index[i] = 0;
        }
    }
}

// A run of elements of `item` bytes between strided host memory and a contiguous buffer.
template <class Size> void gather_run(unsigned char *to, const unsigned char *from, int64_t run,
                                      int64_t step, Size item) {
    for (int64_t i = 0; i < run; i++)
        memcpy(to + i * item, from + i * step, static_cast<size_t>(item));
}
template <class Size> void scatter_run(unsigned char *to, const unsigned char *from, int64_t run,
                                       int64_t step, Size item) {
    for (int64_t i = 0; i < run; i++)
        memcpy(to + i * step, from + i * item, static_cast<size_t>(item));
}

// Calls f with the size of an element, as a constant where a register holds one.
template <class F> void with_size(int64_t item, F &&f) {
    switch (item) {
    case 1: return f(std::integral_constant<int64_t, 1>());
    case 2: return f(std::integral_constant<int64_t, 2>());
    case 4: return f(std::integral_constant<int64_t, 4>());
    case 8: return f(std::integral_constant<int64_t, 8>());
    default: return f(item);
    }
}

void gather(const HostLayout &h, const void *source, int64_t first, int64_t count,
            unsigned char *to) {
    walk_host(h, const_cast<unsigned char *>(static_cast<const unsigned char *>(source)), first,
              count, [&](const unsigned char *from, int64_t run, int64_t step) {
                  if (step == h.item)
                      memcpy(to, from, static_cast<size_t>(run * h.item));
                  else
                      with_size(h.item, [&](auto item) { gather_run(to, from, run, step, item); });
                  to += run * h.item;
              });
}

void scatter(const HostLayout &h, void *destination, int64_t first, int64_t count,
             const unsigned char *from) {
    walk_host(h, static_cast<unsigned char *>(destination), first, count,
              [&](unsigned char *to, int64_t run, int64_t step) {
                  if (step == h.item)
                      memcpy(to, from, static_cast<size_t>(run * h.item));
                  else
                      with_size(h.item, [&](auto item) { scatter_run(to, from, run, step, item); });
                  from += run * h.item;
              });
}

struct HostBuffer {
    unsigned char *bytes;
    explicit HostBuffer(int64_t size)
        : bytes(static_cast<unsigned char *>(malloc(static_cast<size_t>(size)))) {}
    HostBuffer(const HostBuffer &) = delete;
    HostBuffer &operator=(const HostBuffer &) = delete;
    ~HostBuffer() { free(bytes); }
};

// A view of `a` with its axes in the given order.
int permuted_view(const pvg_array *a, const int *order, Temporary *view) {
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    for (int i = 0; i < a->ndim; i++)
        shape[i] = a->shape[order[i]], strides[i] = a->strides[order[i]];
    return new_view(a, a->ndim, shape, strides, 0, false, &view->array);
}

// Whether host memory is none that is pinned, registered or managed.
int is_ordinary(const void *memory, bool *ordinary) {
    cudaPointerAttributes attributes;
    PVG_TRY(cudaPointerGetAttributes(&attributes, memory));
    *ordinary = attributes.type == cudaMemoryTypeUnregistered;
    return PVG_OK;
}

// ---- Host to device -----------------------------------------------------------------------------

// Contiguous host bytes into a contiguous array.
int upload_dense(Call &call, pvg_array *a, const void *source) {
    PVG_PASS(call.writes(a));
    int64_t bytes = a->size * dtype_size(a->dtype);
    bool ordinary = false;
    PVG_PASS(is_ordinary(source, &ordinary));
    if (ordinary && bytes >= staged_from)
        return staged_upload(call.device, call.stream, a->data, source, bytes);
    PVG_TRY(cudaMemcpyAsync(a->data, source, static_cast<size_t>(bytes), cudaMemcpyHostToDevice,
                            call.stream));
    if (ordinary) return PVG_OK; // the driver has read it
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(cudaStreamSynchronize(call.stream));
    return PVG_OK;
}

// Host memory of any layout into a contiguous array, piece by piece.
int upload_gathered(Call &call, pvg_array *a, const HostLayout &h, const void *source) {
    int64_t piece = piece_bytes / h.item;
    if (piece > a->size) piece = a->size;
    HostBuffer buffer(piece * h.item);
    PVG_REQUIRE(buffer.bytes, PVG_ERROR_HOST_MEMORY, "no host memory for a buffer of %lld bytes",
                static_cast<long long>(piece * h.item));
    PVG_PASS(call.writes(a));
    for (int64_t first = 0; first < a->size; first += piece) {
        int64_t count = a->size - first < piece ? a->size - first : piece;
        gather(h, source, first, count, buffer.bytes);
        if (a->dtype == PVG_BOOL)
            for (int64_t i = 0; i < count; i++) buffer.bytes[i] = buffer.bytes[i] != 0;
        PVG_TRY(cudaMemcpyAsync(a->data + first * h.item, buffer.bytes,
                                static_cast<size_t>(count * h.item), cudaMemcpyHostToDevice,
                                call.stream));
    }
    return PVG_OK;
}

// Host memory from the first byte of an array to the last.
struct Span { int64_t before, bytes; }; // before: of the element at index 0, ..., 0

Span span_of(const HostLayout &h) {
    int64_t before = 0, behind = h.item;
    for (int i = 0; i < h.ndim; i++) {
        const int64_t reach = (h.shape[i] - 1) * h.strides[i];
        if (reach < 0) before -= reach;
        if (reach > 0) behind += reach;
    }
    return {before, before + behind};
}

// Whether it is faster to bring all of a span than to gather the elements on the host, which is
// done by one thread: in the time that one takes for an element three bytes more cross, and of
// spans that workers copy, more. Each element has to begin where one of the span does.
bool is_worth_whole(const HostLayout &h, int64_t size, const Span &span) {
    constexpr int64_t least = 16 << 10, most = 3;
    for (int i = 0; i < h.ndim; i++)
        if (h.shape[i] != 1 && h.strides[i] % h.item != 0) return false;
    const int64_t bytes = size * h.item, beside = span.bytes - bytes;
    return bytes >= least &&
           (beside <= 3 * size || (span.bytes >= staged_from && beside < most * bytes));
}

// All of a span, of which the device then copies the elements to the array.
int upload_whole(Call &call, pvg_array *a, const HostLayout &h, const void *source, Span span) {
    const int64_t length = span.bytes / h.item;
    int64_t strides[PVG_MAX_NDIM];
    for (int i = 0; i < h.ndim; i++) strides[i] = h.shape[i] == 1 ? 1 : h.strides[i] / h.item;
    Temporary all, view;
    const int dtype = a->dtype == PVG_BOOL ? static_cast<int>(PVG_UINT8) : a->dtype;
    PVG_PASS(new_array(call.device, dtype, 1, &length, &all.array));
    PVG_PASS(upload_dense(call, all.array, static_cast<const char *>(source) - span.before));
    PVG_PASS(
        new_view(all.array, h.ndim, h.shape, strides, span.before / h.item, true, &view.array));
    return copy_array(call, view.array, a);
}

int upload(Call &call, pvg_array *a, const void *source, const int64_t *byte_strides) {
    PVG_PASS(check_array(a, "array"));
    PVG_REQUIRE(!a->readonly, PVG_ERROR_VALUE, "the array is read-only (a broadcast view)");
    PVG_PASS(call.begin(device_of(a)));
    PVG_PASS(refuse_recording(call.device, "a copy from the host"));
    if (a->size == 0) return PVG_OK;
    PVG_REQUIRE(source, PVG_ERROR_VALUE, "source is a null pointer");
    HostLayout h = describe_host(a, byte_strides);
    const Span span = span_of(h);
    if (is_in_order(h) && is_contiguous(a) && a->dtype != PVG_BOOL) {
        PVG_PASS(upload_dense(call, a, source));
    } else if (is_worth_whole(h, a->size, span)) {
        PVG_PASS(upload_whole(call, a, h, source, span));
    } else {
        Temporary staging;
        pvg_array *landing = a;
        if (!is_contiguous(a)) {
            PVG_PASS(new_array(call.device, a->dtype, a->ndim, a->shape, &staging.array));
            landing = staging.array;
        }
        PVG_PASS(upload_gathered(call, landing, h, source));
        if (staging.array) PVG_PASS(copy_array(call, staging.array, a));
    }
    counters[PVG_COUNT_COPIES_TO_DEVICE]++;
    counters[PVG_COUNT_BYTES_TO_DEVICE] += a->size * h.item;
    return PVG_OK;
}

// ---- Device to host -----------------------------------------------------------------------------

// Bytes of the device to the host, and wait for them: few of them by way of pinned memory.
int land(Call &call, const unsigned char *from, void *to, int64_t bytes) {
    const size_t size = static_cast<size_t>(bytes);
    const Landing landing(bytes);
    void *target = landing.bytes ? landing.bytes : to;
    PVG_TRY(cudaMemcpyAsync(target, from, size, cudaMemcpyDeviceToHost, call.stream));
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(cudaStreamSynchronize(call.stream));
    if (target != to) memcpy(to, target, size);
    return PVG_OK;
}

int download_dense(Call &call, const pvg_array *a, void *destination) {
    PVG_PASS(call.reads(a));
    int64_t bytes = a->size * dtype_size(a->dtype);
    bool ordinary = false;
    if (bytes >= staged_from) PVG_PASS(is_ordinary(destination, &ordinary));
    if (ordinary) return staged_download(call.device, call.stream, destination, a->data, bytes);
    return land(call, a->data, destination, bytes);
}

int download_scattered(Call &call, const pvg_array *a, const HostLayout &h, void *destination) {
    int64_t piece = piece_bytes / h.item;
    if (piece > a->size) piece = a->size;
    HostBuffer buffer(piece * h.item);
    PVG_REQUIRE(buffer.bytes, PVG_ERROR_HOST_MEMORY, "no host memory for a buffer of %lld bytes",
                static_cast<long long>(piece * h.item));
    PVG_PASS(call.reads(a));
    for (int64_t first = 0; first < a->size; first += piece) {
        int64_t count = a->size - first < piece ? a->size - first : piece;
        PVG_TRY(cudaMemcpyAsync(buffer.bytes, a->data + first * h.item,
                                static_cast<size_t>(count * h.item), cudaMemcpyDeviceToHost,
                                call.stream));
        counters[PVG_COUNT_WAITS]++;
        PVG_TRY(cudaStreamSynchronize(call.stream));
        scatter(h, destination, first, count, buffer.bytes);
    }
    return PVG_OK;
}

int download(Call &call, const pvg_array *a, void *destination, const int64_t *byte_strides) {
    PVG_PASS(check_array(a, "array"));
    PVG_PASS(call.begin(device_of(a)));
    PVG_PASS(refuse_recording(call.device, "a copy to the host"));
    if (a->size == 0) return PVG_OK;
    PVG_REQUIRE(destination, PVG_ERROR_VALUE, "destination is a null pointer");
    HostLayout h = describe_host(a, byte_strides);
    int order[PVG_MAX_NDIM];
    bool dense = dense_order(h, order);
    Temporary view, staging;
    const pvg_array *source = a;
    if (dense && !is_identity(order, a->ndim)) {
        PVG_PASS(permuted_view(a, order, &view));
        source = view.array;
    }
    PVG_PASS(as_contiguous(call, source, &staging, &source));
    PVG_PASS(dense ? download_dense(call, source, destination)
                   : download_scattered(call, source, h, destination));
    counters[PVG_COUNT_COPIES_TO_HOST]++;
    counters[PVG_COUNT_BYTES_TO_HOST] += a->size * h.item;
    return check_reports(call.device);
}

// One number of T as what pvg_item gives.
template <class T> void read_number(const void *bytes, int64_t *numbers) {
    T x;
    memcpy(&x, bytes, sizeof x);
    double parts[2] = {};
    if constexpr (is_bool<T>) {
        numbers[0] = PVG_SCALAR_BOOL, numbers[1] = bool(x);
        return;
    } else if constexpr (std::is_integral_v<T>) {
        numbers[0] = std::is_same_v<T, uint64_t> ? PVG_SCALAR_UINT : PVG_SCALAR_INT;
        numbers[1] = static_cast<int64_t>(x);
        return;
    } else if constexpr (is_complex<T>) {
        numbers[0] = PVG_SCALAR_COMPLEX, parts[0] = x.re, parts[1] = x.im;
    } else {
        numbers[0] = PVG_SCALAR_FLOAT, parts[0] = static_cast<ComputeType<T>>(x);
    }
    memcpy(numbers + 1, parts, sizeof parts);
}

int item(Call &call, const pvg_array *a, int64_t *numbers) {
    PVG_PASS(check_array(a, "a"));
    PVG_REQUIRE(numbers, PVG_ERROR_VALUE, "numbers is a null pointer");
    PVG_REQUIRE(a->size == 1, PVG_ERROR_VALUE, "an array of shape %s has not one element",
                shape_text(a));
    PVG_PASS(call.begin(device_of(a)));
    PVG_PASS(refuse_recording(call.device, "a copy to the host"));
    PVG_PASS(call.reads(a));
    alignas(largest_item) unsigned char bytes[largest_item];
    const int64_t size = dtype_size(a->dtype);
    PVG_PASS(land(call, a->data, bytes, size));
    counters[PVG_COUNT_COPIES_TO_HOST]++;
    counters[PVG_COUNT_BYTES_TO_HOST] += size;
    PVG_PASS(check_reports(call.device));
    return dispatch(a->dtype, [&](auto tag) -> int {
        read_number<typename decltype(tag)::type>(bytes, numbers);
        return PVG_OK;
    });
}

} // namespace

} // namespace pvg

PVG_API int pvg_item(const pvg_array *a, int64_t *numbers) {
    pvg::Call call("item");
    return pvg::item(call, a, numbers);
}

PVG_API int pvg_copy_from_host(pvg_array *array, const void *source, const int64_t *byte_strides) {
    pvg::Call call("copy_from_host");
    return pvg::upload(call, array, source, byte_strides);
}

PVG_API int pvg_copy_to_host(const pvg_array *array, void *destination,
                             const int64_t *byte_strides) {
    pvg::Call call("copy_to_host");
    return pvg::download(call, array, destination, byte_strides);
}
