// Array handles; see array.cuh.
//
// Handles live in slabs that are never given back, so that a handle released twice, or a pointer
// that is none, is recognised (by address and magic number) instead of crashing the process.
#include "arrays/array.cuh"
#include "arrays/dispatch.cuh"
#include "arrays/layout.cuh"
#include "runtime/device.cuh"
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

// A handle that takes over a reference to the storage; on failure the reference is given back.
int take_handle(Storage *storage, pvg_array **result) {
    {
        std::lock_guard<std::mutex> hold(handle_lock);
        if (first_free || add_slab()) {
            pvg_array *a = first_free;
            first_free = reinterpret_cast<pvg_array *>(a->storage);
            if (!first_free) last_free = nullptr;
            a->magic = array_magic;
            a->storage = storage;
            counters[PVG_COUNT_LIVE_ARRAYS].fetch_add(1, std::memory_order_relaxed);
            *result = a;
            return PVG_OK;
        }
    }
    release_storage(storage);
    return fail(PVG_ERROR_HOST_MEMORY, "no host memory for an array handle");
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
    PVG_PASS(check_kinds(dtype, all_kinds));
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
    Storage *storage = nullptr;
    PVG_PASS(
        allocate_storage(device, stream, static_cast<size_t>(size * dtype_size(dtype)), &storage));
    pvg_array *a = nullptr;
    PVG_PASS(take_handle(storage, &a));
    fill_shape(a, dtype, ndim, shape, size);
    contiguous_strides(ndim, shape, a->strides);
    a->data = static_cast<unsigned char *>(storage->data);
    *result = a;
    return PVG_OK;
}

// Memory that the device cannot access would lose it at the first kernel. Some devices access all
// of the host's memory; then it is the caller's to know what is there.
static int check_accessible(const void *data, int device) {
    cudaPointerAttributes attributes;
    PVG_TRY(cudaPointerGetAttributes(&attributes, data));
    PVG_REQUIRE(attributes.type != cudaMemoryTypeDevice || attributes.device == device,
                PVG_ERROR_VALUE, "data is memory of device %d, not of device %d", attributes.device,
                device);
    if (attributes.type != cudaMemoryTypeUnregistered) return PVG_OK;
    int accesses_all = 0;
    PVG_TRY(cudaDeviceGetAttribute(&accesses_all, cudaDevAttrPageableMemoryAccess, device));
    PVG_REQUIRE(accesses_all, PVG_ERROR_VALUE,
                "data is not memory that device %d can access: the host's, or freed", device);
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
    if (size > 0) PVG_PASS(check_accessible(data, device));
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
    Storage *storage = nullptr;
    PVG_PASS(wrap_storage(device, static_cast<unsigned char *>(data) + low * item, bytes, nullptr,
                          nullptr, &storage));
    pvg_array *a = nullptr;
    PVG_PASS(take_handle(storage, &a));
    storage->deleter = deleter, storage->context = context; // from here on nothing can fail
    fill_shape(a, dtype, ndim, shape, size);
    for (int i = 0; i < ndim; i++) a->strides[i] = strides[i];
    a->data = static_cast<unsigned char *>(data);
    *result = a;
    return PVG_OK;
}

int new_view(const pvg_array *base, int ndim, const int64_t *shape, const int64_t *strides,
             int64_t offset, bool readonly, pvg_array **result) {
    int64_t size = 0;
    PVG_PASS(checked_size(ndim, shape, 1, &size));
    pvg_array *a = nullptr;
    retain_storage(base->storage);
    PVG_PASS(take_handle(base->storage, &a));
    fill_shape(a, base->dtype, ndim, shape, size);
    for (int i = 0; i < ndim; i++) a->strides[i] = strides[i];
    a->readonly = readonly || base->readonly;
    a->data = size > 0 ? base->data + offset * dtype_size(base->dtype) : base->data;
    *result = a;
    return PVG_OK;
}

void release(pvg_array *a) {
    // A forked child leaves everything as it is: locks may be held by threads that do not exist
    // here.
    if (!a || forked_child) return;
    if (Storage *storage = return_handle(a)) release_storage(storage);
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

PVG_API int pvg_array_drop(pvg_array **array) { return pvg::drop(array, pvg_array_release); }

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
