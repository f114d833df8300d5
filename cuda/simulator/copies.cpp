/* cudaMemcpy and cudaMemset in all their forms.
 *
 * One path for all: a rectangle of rows. Ranges are checked at the call, as a driver does, and once
 * more when recorded work runs. What CUDA documents about the host's side holds: a pageable source
 * is copied at the call, a copy to pageable memory has happened when the call returns, pinned
 * memory is read and written when the copy's turn in its stream comes, and so is any that a capture
 * has noted. */
#include "simulator.h"

#include <cstring>
#include <vector>

namespace pvg_sim {

/* `height` rows of `width` bytes, the rows `pitch` bytes apart. */
struct Rows {
    char *start;
    size_t pitch;
};

struct Copy {
    Rows to, from;
    size_t width, height;
};

static void perform(const Copy &c) {
    if (c.to.pitch == c.width && c.from.pitch == c.width) {
        memmove(c.to.start, c.from.start, c.width * c.height);
        return;
    }
    for (size_t row = 0; row < c.height; row++) {
        memmove(c.to.start + row * c.to.pitch, c.from.start + row * c.from.pitch, c.width);
    }
}

/* Whether all rows lie inside the allocation that holds their start. */
static bool is_inside(const Allocation *a, const Rows &rows, size_t width, size_t height) {
    size_t extent;
    if (!a || __builtin_mul_overflow(height - 1, rows.pitch, &extent) ||
        __builtin_add_overflow(extent, width, &extent)) {
        return false;
    }
    return extent <= (size_t)(a->base + a->bytes - rows.start);
}

/* ---- What kind of copy it is ---- */

struct Side {
    const Allocation *memory; /* nullptr: pageable host memory */
    bool on_card;
};

static Side side_of(const Rows &rows) {
    const Allocation *a = find_allocation(rows.start);
    if (a && rows.start == a->base + a->bytes) a = nullptr; /* one past the end: somebody else's */
    return {a, a && a->kind != MemoryKind::pinned};
}

/* Whether a side of a copy may be what the direction says it is. Managed memory may be either. */
static bool fits(const Side &side, bool should_be_on_card) {
    if (side.memory && side.memory->kind == MemoryKind::managed) return true;
    if (should_be_on_card) return side.memory != nullptr; /* pinned memory is mapped */
    return !side.on_card;
}

static bool fits(cudaMemcpyKind kind, const Side &to, const Side &from) {
    switch (kind) {
    case cudaMemcpyHostToHost: return fits(to, false) && fits(from, false);
    case cudaMemcpyHostToDevice: return fits(to, true) && fits(from, false);
    case cudaMemcpyDeviceToHost: return fits(to, false) && fits(from, true);
    case cudaMemcpyDeviceToDevice: return fits(to, true) && fits(from, true);
    case cudaMemcpyDefault: return true;
    }
    return false;
}

static void count_copy(bool to_card, bool from_card, size_t bytes) {
    if (to_card) {
        counters[from_card ? COUNT_COPY_D2D : COUNT_COPY_H2D]++;
        counters[from_card ? COUNT_BYTES_D2D : COUNT_BYTES_H2D] += (long long)bytes;
    } else {
        counters[from_card ? COUNT_COPY_D2H : COUNT_COPY_H2H]++;
        if (from_card) counters[COUNT_BYTES_D2H] += (long long)bytes;
    }
}

/* ---- Doing it ---- */

static void run_recorded(const Copy &c, bool to_known, bool from_known) {
    bool there = (!to_known || is_inside(side_of(c.to).memory, c.to, c.width, c.height)) &&
                 (!from_known || is_inside(side_of(c.from).memory, c.from, c.width, c.height));
    if (there) {
        perform(c);
    } else {
        report(cudaErrorIllegalAddress,
               "a copy of %zu bytes from %p to %p ran after its memory was freed",
               c.width * c.height, (void *)c.from.start, (void *)c.to.start);
    }
}

static cudaError_t submit_copy(const std::shared_ptr<Stream> &stream, const Copy &c, const Side &to,
                               const Side &from, bool wait) {
    bool pageable_source = !from.memory, pageable_target = !to.memory;
    bool to_known = to.memory, from_known = from.memory;
    cudaError_t error;
    if (pageable_source && !pageable_target && settings.deferred && !stream->capture) {
        auto staged = std::make_shared<std::vector<char>>(c.width * c.height);
        Copy stage = c, upload = c;
        stage.to = upload.from = {staged->data(), c.width};
        perform(stage);
        error = submit(stream, [staged, upload] { run_recorded(upload, true, false); });
    } else {
        error =
            submit(stream, [c, to_known, from_known] { run_recorded(c, to_known, from_known); });
    }
    if (wait || (pageable_target && !stream->capture)) run_pending(*stream);
    return error;
}

static cudaError_t copy(const Copy &c, cudaMemcpyKind kind, cudaStream_t handle, bool wait) {
    if (cudaError_t lost = sticky_error()) return lost;
    std::shared_ptr<Stream> stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (cudaError_t error = wait ? check_unsafe() : cudaSuccess) return error;
    if (injected(FAULT_COPY)) return (cudaError_t)settings.copy_error;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    if (!c.width || !c.height) {
        if (wait) run_pending(*stream);
        return cudaSuccess;
    }
    if (c.width > c.to.pitch || c.width > c.from.pitch) return cudaErrorInvalidPitchValue;
    if (!c.to.start || !c.from.start) return cudaErrorInvalidValue;
    Side to = side_of(c.to), from = side_of(c.from);
    if (!fits(kind, to, from)) return cudaErrorInvalidValue;
    if ((to.memory && !is_inside(to.memory, c.to, c.width, c.height)) ||
        (from.memory && !is_inside(from.memory, c.from, c.width, c.height))) {
        return cudaErrorInvalidValue;
    }
    bool to_card = kind == cudaMemcpyDefault
                       ? to.on_card
                       : kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_card = kind == cudaMemcpyDefault
                         ? from.on_card
                         : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    count_copy(to_card, from_card, c.width * c.height);
    return submit_copy(stream, c, to, from, wait);
}

static cudaError_t fill(void *start, int value, size_t bytes, cudaStream_t handle) {
    if (cudaError_t lost = sticky_error()) return lost;
    std::shared_ptr<Stream> stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (injected(FAULT_MEMSET)) return cudaErrorInvalidValue;
    if (!bytes) return cudaSuccess;
    Rows rows = {static_cast<char *>(start), bytes};
    if (!is_inside(side_of(rows).memory, rows, bytes, 1)) return cudaErrorInvalidValue;
    counters[COUNT_MEMSET]++;
    return submit(stream, [rows, value, bytes] {
        if (is_inside(side_of(rows).memory, rows, bytes, 1)) {
            memset(rows.start, value, bytes);
        } else {
            report(cudaErrorIllegalAddress,
                   "a memset of %zu bytes at %p ran after its memory was freed", bytes,
                   (void *)rows.start);
        }
    });
}

static Copy one_row(void *to, const void *from, size_t bytes) {
    char *source = static_cast<char *>(const_cast<void *>(from));
    return {{static_cast<char *>(to), bytes}, {source, bytes}, bytes, 1};
}

static Copy rectangle(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                      size_t height) {
    char *source = static_cast<char *>(const_cast<void *>(from));
    return {{static_cast<char *>(to), to_pitch}, {source, from_pitch}, width, height};
}

} /* namespace pvg_sim */

/* ---- The runtime's functions ---- */

using namespace pvg_sim;

extern "C" cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    Call call;
    return call.finish(copy(one_row(to, from, bytes), kind, nullptr, true));
}

extern "C" cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
    Call call;
    return call.finish(copy(one_row(to, from, bytes), kind, stream, false));
}

extern "C" cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                    size_t width, size_t height, cudaMemcpyKind kind) {
    Call call;
    Copy c = rectangle(to, to_pitch, from, from_pitch, width, height);
    return call.finish(copy(c, kind, nullptr, true));
}

extern "C" cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                                         size_t from_pitch, size_t width, size_t height,
                                         cudaMemcpyKind kind, cudaStream_t stream) {
    Call call;
    Copy c = rectangle(to, to_pitch, from, from_pitch, width, height);
    return call.finish(copy(c, kind, stream, false));
}

/* Cards share one address space, so the devices are in the pointers. */
extern "C" cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes,
                                           cudaStream_t stream) {
    Call call;
    return call.finish(copy(one_row(to, from, bytes), cudaMemcpyDeviceToDevice, stream, false));
}

extern "C" cudaError_t cudaMemcpyPeer(void *to, int, const void *from, int, size_t bytes) {
    Call call;
    return call.finish(copy(one_row(to, from, bytes), cudaMemcpyDeviceToDevice, nullptr, true));
}

extern "C" cudaError_t cudaMemset(void *start, int value, size_t bytes) {
    Call call;
    return call.finish(fill(start, value, bytes, nullptr));
}

extern "C" cudaError_t cudaMemsetAsync(void *start, int value, size_t bytes, cudaStream_t stream) {
    Call call;
    return call.finish(fill(start, value, bytes, stream));
}

/* A __device__ or __constant__ variable is a plain global of the host program. */
extern "C" cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes,
                                          size_t offset, cudaMemcpyKind) {
    Call call;
    if (cudaError_t lost = sticky_error()) return call.finish(lost);
    run_pending(*find_stream(nullptr));
    memcpy(static_cast<char *>(const_cast<void *>(symbol)) + offset, from, bytes);
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    Call call;
    if (cudaError_t lost = sticky_error()) return call.finish(lost);
    *address = const_cast<void *>(symbol);
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes,
                                            size_t offset, cudaMemcpyKind) {
    Call call;
    if (cudaError_t lost = sticky_error()) return call.finish(lost);
    run_pending(*find_stream(nullptr));
    memcpy(to, static_cast<const char *>(symbol) + offset, bytes);
    return call.finish(cudaSuccess);
}
