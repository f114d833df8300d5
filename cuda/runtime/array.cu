// Array handles and storages; see array.cuh.
//
// Handles live in slabs that are never given back, so that a handle released twice, or a pointer
// that is none, is recognised (by address and magic number) instead of crashing the process.
#include "runtime/array.cuh"
#include "runtime/device.cuh"
#include "runtime/memory.cuh"
#include "runtime/stream.cuh"
#include <mutex>
#include <stdlib.h>
#include <string.h>

namespace pvg {

namespace {

constexpr uint32_t array_magic = 0x41677670;

// Slabs grow in size: few are needed, and a pointer is looked up in the newest (largest) first.
constexpr int max_slabs = 40;
constexpr size_t first_slab = 64; // handles
struct Slab {
    std::atomic<pvg_array *> handles;
    size_t count;
};
Slab slabs[max_slabs];
std::atomic<int> slab_count;
std::mutex handle_lock;
// Free handles, linked through `storage`, used again in the order of their release: a stale handle
// stays recognisable for as long as possible.
pvg_array *first_free = nullptr, *last_free = nullptr;

// Under handle_lock.
void append_free(pvg_array *a) {
    a->storage = nullptr;
    if (last_free)
        last_free->storage = reinterpret_cast<Storage *>(a);
    else
        first_free = a;
    last_free = a;
}

// Under handle_lock.
bool add_slab() {
    int n = slab_count.load();
    if (n == max_slabs) return false;
    size_t count = first_slab << (n / 2);
    pvg_array *handles = static_cast<pvg_array *>(calloc(count, sizeof(pvg_array)));
    if (!handles) return false;
    for (size_t i = 0; i < count; i++) append_free(&handles[i]);
    slabs[n].count = count;
    slabs[n].handles.store(handles, std::memory_order_release);
    slab_count.store(n + 1, std::memory_order_release);
    return true;
}

pvg_array *take_handle() {
    std::lock_guard<std::mutex> hold(handle_lock);
    if (!first_free && !add_slab()) return nullptr;
    pvg_array *a = first_free;
    first_free = reinterpret_cast<pvg_array *>(a->storage);
    if (!first_free) last_free = nullptr;
    a->magic = array_magic;
    counters[PVG_COUNT_LIVE_ARRAYS].fetch_add(1, std::memory_order_relaxed);
    return a;
}

// The storage that the handle held a reference to; NULL if somebody else has returned it already.
Storage *return_handle(pvg_array *a) {
    std::lock_guard<std::mutex> hold(handle_lock);
    if (a->magic != array_magic) return nullptr;
    Storage *storage = a->storage;
    a->magic = 0;
    append_free(a);
    counters[PVG_COUNT_LIVE_ARRAYS].fetch_sub(1, std::memory_order_relaxed);
    return storage;
}

Storage *new_storage(int device, void *data, size_t bytes) {
    void *memory = malloc(sizeof(Storage));
    if (!memory) return nullptr;
    Storage *s = new (memory) Storage;
    s->references = 1;
    s->data = data, s->bytes = bytes, s->device = device;
    s->block = nullptr, s->deleter = nullptr, s->context = nullptr;
    s->version = 0, s->writer = 0;
    s->lock.clear();
    memset(s->readers, 0, sizeof s->readers);
    return s;
}

// The one stream that used the storage; any_stream if none did, 0 if several.
uint64_t sole_user(const Storage *s) {
    uint64_t user = s->writer.load(std::memory_order_relaxed);
    for (uint64_t reader : s->readers) {
        if (reader == 0 || reader == user) continue;
        if (user != 0) return 0;
        user = reader;
    }
    return user != 0 ? user : any_stream;
}

// The block goes back to the stream it came from, which first waits for all others that used it.
void free_block(Storage *s, Block *block) {
    ErrorRecord before = error_record; // releasing never reports
    DeviceScope scope;
    // On a lost device no CUDA call can be made: the records alone are put in order.
    uint64_t safe = device_lost ? any_stream : sole_user(s);
    while (Stream *home = deallocate(block, safe)) {
        safe = stream_id(home);
        if (scope.enter(s->device) == PVG_OK) stream_collects(home, s);
    }
    error_record = before;
}

void drop_storage(Storage *s) {
    if (s->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (s->block) free_block(s, static_cast<Block *>(s->block));
    if (s->deleter) {
        if (!device_lost) host_collects(s);
        s->deleter(s->context);
    }
    s->~Storage();
    free(s);
}

void fill_shape(pvg_array *a, int dtype, int ndim, const int64_t *shape, int64_t size) {
    a->dtype = dtype, a->ndim = ndim, a->size = size, a->readonly = false;
    for (int i = 0; i < ndim; i++) a->shape[i] = shape[i];
}

// Highest and lowest element offset of a view, relative to index 0, ..., 0. False if an offset
// overflows.
bool extent(int ndim, const int64_t *shape, const int64_t *strides, int64_t *low, int64_t *high) {
    *low = *high = 0;
    for (int i = 0; i < ndim; i++) {
        int64_t reach;
        if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach)) return false;
        int64_t *end = reach < 0 ? low : high;
        if (__builtin_add_overflow(*end, reach, end)) return false;
    }
    return true;
}

int check_strides(int64_t size, int ndim, const int64_t *shape, const int64_t *strides,
                  int64_t item) {
    int64_t low = 0, high = 0, span, bytes;
    if (size == 0) return PVG_OK;
    PVG_REQUIRE(
        extent(ndim, shape, strides, &low, &high) && !__builtin_sub_overflow(high, low, &span) &&
            !__builtin_add_overflow(span, 1, &span) && !__builtin_mul_overflow(span, item, &bytes),
        PVG_ERROR_VALUE, "strides of shape %s reach beyond an address space",
        shape_text(ndim, shape));
    return PVG_OK;
}

int check_new(int device, int dtype, int ndim, const int64_t *shape, int64_t *size) {
    PVG_REQUIRE(dtype_is_valid(dtype), PVG_ERROR_TYPE, "unknown dtype code %d", dtype);
    PVG_PASS(checked_size(ndim, shape, dtype_size(dtype), size));
    return check_device(device);
}

} // namespace

bool is_array(const pvg_array *a) {
    for (int i = slab_count.load(std::memory_order_acquire); i-- > 0;) {
        const pvg_array *first = slabs[i].handles.load(std::memory_order_acquire);
        uintptr_t offset = reinterpret_cast<uintptr_t>(a) - reinterpret_cast<uintptr_t>(first);
        if (offset < slabs[i].count * sizeof *a)
            return offset % sizeof *a == 0 && a->magic == array_magic;
    }
    return false;
}

int check_array(const pvg_array *a, const char *what) {
    PVG_PASS(check_fork());
    PVG_REQUIRE(a, PVG_ERROR_VALUE, "%s is a null pointer", what);
    PVG_REQUIRE(is_array(a), PVG_ERROR_VALUE,
                "%s is not an array of this library (or was released before)", what);
    return PVG_OK;
}

int new_array(int device, int dtype, int ndim, const int64_t *shape, pvg_array **result) {
    int64_t size = 0;
    PVG_PASS(check_new(device, dtype, ndim, shape, &size));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    Stream *stream = nullptr;
    PVG_PASS(current_stream(device, &stream));
    void *memory = nullptr;
    Block *block = nullptr;
    size_t bytes = static_cast<size_t>(size * dtype_size(dtype));
    PVG_PASS(allocate(device, stream, bytes, &memory, &block));
    Storage *storage = new_storage(device, memory, bytes);
    pvg_array *a = storage ? take_handle() : nullptr;
    if (!a) {
        free(storage);
        if (block) (void)deallocate(block, any_stream);
        return fail(PVG_ERROR_HOST_MEMORY, "no host memory for an array handle");
    }
    storage->block = block;
    // Work that touches fresh memory must follow what the pool's last owner did on this stream.
    storage->writer.store(stream_id(stream), std::memory_order_relaxed);
    fill_shape(a, dtype, ndim, shape, size);
    contiguous_strides(ndim, shape, a->strides);
    a->storage = storage;
    a->data = static_cast<unsigned char *>(memory);
    *result = a;
    return PVG_OK;
}

static int wrap(void *data, int device, int dtype, int ndim, const int64_t *shape,
                const int64_t *strides, pvg_deleter deleter, void *context, pvg_array **result) {
    int64_t size = 0, low = 0, high = 0, item = dtype_size(dtype);
    PVG_PASS(check_new(device, dtype, ndim, shape, &size));
    PVG_REQUIRE(data || size == 0, PVG_ERROR_VALUE,
                "data is a null pointer, but shape %s has elements", shape_text(ndim, shape));
    PVG_REQUIRE(reinterpret_cast<uintptr_t>(data) % static_cast<size_t>(item) == 0, PVG_ERROR_VALUE,
                "data is not aligned to its dtype, %s", dtype_name(dtype));
    // Strides that lead nowhere (of no elements, of an axis of length 1) are not the caller's.
    int64_t own[PVG_MAX_NDIM];
    contiguous_strides(ndim, shape, own);
    for (int i = 0; strides && size > 0 && i < ndim; i++)
        if (shape[i] != 1) own[i] = strides[i];
    strides = own;
    PVG_PASS(check_strides(size, ndim, shape, strides, item));
    if (size > 0) (void)extent(ndim, shape, strides, &low, &high);
    // The storage spans the lowest to the highest element, so that views stay inside of it.
    size_t bytes = size > 0 ? static_cast<size_t>((high - low + 1) * item) : 0;
    Storage *storage = new_storage(device, static_cast<unsigned char *>(data) + low * item, bytes);
    pvg_array *a = storage ? take_handle() : nullptr;
    if (!a) {
        free(storage);
        return fail(PVG_ERROR_HOST_MEMORY, "no host memory for an array handle");
    }
    storage->deleter = deleter, storage->context = context;
    fill_shape(a, dtype, ndim, shape, size);
    for (int i = 0; i < ndim; i++) a->strides[i] = strides[i];
    a->storage = storage;
    a->data = static_cast<unsigned char *>(data);
    *result = a;
    return PVG_OK;
}

int new_view(const pvg_array *base, int ndim, const int64_t *shape, const int64_t *strides,
             int64_t offset, bool readonly, pvg_array **result) {
    int64_t size = 0;
    PVG_PASS(checked_size(ndim, shape, 1, &size));
    pvg_array *a = take_handle();
    PVG_REQUIRE(a, PVG_ERROR_HOST_MEMORY, "no host memory for an array handle");
    fill_shape(a, base->dtype, ndim, shape, size);
    for (int i = 0; i < ndim; i++) a->strides[i] = strides[i];
    a->readonly = readonly || base->readonly;
    a->storage = base->storage;
    a->storage->references.fetch_add(1, std::memory_order_relaxed);
    a->data = size > 0 ? base->data + offset * dtype_size(base->dtype) : base->data;
    *result = a;
    return PVG_OK;
}

void release(pvg_array *a) {
    // A forked child leaves everything as it is: locks may be held by threads that do not exist
    // here.
    if (!a || forked_child) return;
    if (Storage *storage = return_handle(a)) drop_storage(storage);
}

} // namespace pvg

PVG_API pvg_array *pvg_array_empty(int device, int dtype, int ndim, const int64_t *shape) {
    pvg::clear_error();
    pvg_array *a = nullptr;
    return pvg::new_array(device, dtype, ndim, shape, &a) == PVG_OK ? a : nullptr;
}

PVG_API pvg_array *pvg_array_wrap(void *data, int device, int dtype, int ndim, const int64_t *shape,
                                  const int64_t *strides, pvg_deleter deleter, void *context) {
    pvg::clear_error();
    pvg_array *a = nullptr;
    return pvg::wrap(data, device, dtype, ndim, shape, strides, deleter, context, &a) == PVG_OK
               ? a
               : nullptr;
}

PVG_API int pvg_array_release(pvg_array *array) {
    if (!array) return PVG_OK;
    if (!pvg::is_array(array)) {
        pvg::clear_error();
        return pvg::check_array(array, "array");
    }
    pvg::release(array);
    return PVG_OK;
}

PVG_API int pvg_array_device(const pvg_array *a) {
    return pvg::is_array(a) ? a->storage->device : -1;
}
PVG_API int pvg_array_dtype(const pvg_array *a) { return pvg::is_array(a) ? a->dtype : -1; }
PVG_API int pvg_array_ndim(const pvg_array *a) { return pvg::is_array(a) ? a->ndim : -1; }
PVG_API int64_t pvg_array_size(const pvg_array *a) { return pvg::is_array(a) ? a->size : -1; }
PVG_API const int64_t *pvg_array_shape(const pvg_array *a) {
    return pvg::is_array(a) ? a->shape : nullptr;
}
PVG_API const int64_t *pvg_array_strides(const pvg_array *a) {
    return pvg::is_array(a) ? a->strides : nullptr;
}
PVG_API void *pvg_array_data(const pvg_array *a) { return pvg::is_array(a) ? a->data : nullptr; }
PVG_API int pvg_array_is_contiguous(const pvg_array *a) {
    return pvg::is_array(a) ? static_cast<int>(pvg::is_contiguous(a)) : -1;
}
PVG_API int pvg_array_is_readonly(const pvg_array *a) {
    return pvg::is_array(a) ? static_cast<int>(a->readonly) : -1;
}
PVG_API int64_t pvg_array_version(const pvg_array *a) {
    return pvg::is_array(a) ? a->storage->version.load() : -1;
}

PVG_API int pvg_array_describe(const pvg_array *a, int64_t *info) {
    pvg::clear_error();
    PVG_PASS(pvg::check_array(a, "array"));
    PVG_REQUIRE(info, PVG_ERROR_VALUE, "info is a null pointer");
    info[0] = a->dtype, info[1] = a->storage->device, info[2] = a->ndim;
    memcpy(info + 3, a->shape, static_cast<size_t>(a->ndim) * sizeof *info);
    memcpy(info + 3 + a->ndim, a->strides, static_cast<size_t>(a->ndim) * sizeof *info);
    return PVG_OK;
}
