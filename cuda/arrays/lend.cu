// Memory shared with other libraries: tensors of DLPack both ways, streams of others, and what
// belongs to objects of Python. Everything that others call back is here in C: they may do it in
// any thread, and while Python is going down.
#include "arrays/array.cuh"
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/stream.cuh"
#include <stdlib.h>

namespace pvg {

namespace {

// DLPack's structures, of dlpack.h 1.1.
enum { host_memory = 1, device_memory = 2, managed_memory = 13 };
constexpr uint64_t read_only = 1; // a flag

struct Tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct Unversioned {
    Tensor tensor;
    void *context;
    void (*deleter)(Unversioned *);
};
struct Versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(Versioned *);
    uint64_t flags;
    Tensor tensor;
};

struct Kind { uint8_t code, bits; };
// By pvg_dtype: bool is 6, int 0, unsigned 1, float 2, bfloat 4, complex 5.
const Kind kinds[] = {{6, 8},  {0, 8},  {0, 16}, {0, 32}, {0, 64}, {1, 8},  {1, 16}, {1, 32},
                      {1, 64}, {2, 16}, {4, 16}, {2, 32}, {2, 64}, {5, 64}, {5, 128}};
constexpr int kind_count = sizeof kinds / sizeof *kinds;

// What an exported tensor owns; one of the two is handed out.
struct Export {
    Storage *storage;
    Unversioned unversioned;
    Versioned versioned;
    int64_t sizes[2 * PVG_MAX_NDIM];
};

void end_export(void *context) {
    Export *e = static_cast<Export *>(context);
    if (forked_child) return; // as everything else there
    release_storage(e->storage);
    free(e);
}

template <class Managed> void delete_export(Managed *managed) { end_export(managed->context); }

template <class Managed> void delete_import(void *managed) {
    Managed *m = static_cast<Managed *>(managed);
    if (m->deleter) m->deleter(m);
}

int export_array(const pvg_array *a, int versioned, int on_host, int64_t flags, void **result) {
    PVG_PASS(check_array(a, "array"));
    PVG_PASS(refuse_recording(device_of(a), "handing an array to another library"));
    PVG_REQUIRE(versioned || !a->readonly, PVG_ERROR_VALUE,
                "the array is read-only, which DLPack cannot say before version 1");
    Export *e = static_cast<Export *>(malloc(sizeof *e));
    PVG_REQUIRE(e, PVG_ERROR_HOST_MEMORY, "no host memory for a tensor of DLPack");
    for (int i = 0; i < a->ndim; i++)
        e->sizes[i] = a->shape[i], e->sizes[PVG_MAX_NDIM + i] = a->strides[i];
    Tensor tensor{a->size > 0 ? a->data : nullptr,
                  on_host ? host_memory : device_memory,
                  on_host ? 0 : device_of(a),
                  a->ndim,
                  kinds[a->dtype].code,
                  kinds[a->dtype].bits,
                  1,
                  e->sizes,
                  e->sizes + PVG_MAX_NDIM,
                  0};
    e->storage = a->storage;
    retain_storage(e->storage);
    uint64_t says = static_cast<uint64_t>(flags);
    if (a->readonly) says |= read_only;
    e->unversioned = {tensor, e, delete_export<Unversioned>};
    e->versioned = {1, 1, e, delete_export<Versioned>, says, tensor};
    *result = versioned ? static_cast<void *>(&e->versioned) : &e->unversioned;
    return PVG_OK;
}

int dtype_of(const Tensor &t, int *dtype) {
    for (int i = 0; i < kind_count && t.lanes == 1; i++)
        if (kinds[i].code == t.code && kinds[i].bits == t.bits) {
            *dtype = i;
            return PVG_OK;
        }
    return fail(PVG_ERROR_TYPE, "DLPack: no dtype of arrays has code %d, %d bits and %d lanes",
                t.code, t.bits, t.lanes);
}

int import_tensor(void *managed, int versioned, int device, pvg_array **result) {
    PVG_REQUIRE(managed, PVG_ERROR_VALUE, "the tensor is a null pointer");
    const Versioned *v = versioned ? static_cast<Versioned *>(managed) : nullptr;
    PVG_REQUIRE(!v || v->major == 1, PVG_ERROR_VALUE,
                "DLPack: the tensor is of version %u.%u, this library knows 1", v ? v->major : 0,
                v ? v->minor : 0);
    const Tensor &t = v ? v->tensor : static_cast<Unversioned *>(managed)->tensor;
    PVG_REQUIRE(t.device_type == host_memory || t.device_type == managed_memory ||
                    (t.device_type == device_memory && t.device_id == device),
                PVG_ERROR_VALUE, "DLPack: the tensor is on device %d of kind %d, not on GPU %d",
                t.device_id, t.device_type, device);
    PVG_REQUIRE(t.ndim >= 0 && t.ndim <= PVG_MAX_NDIM && (t.ndim == 0 || t.shape), PVG_ERROR_VALUE,
                "DLPack: a tensor of %d dimensions; an array has 0 to %d", t.ndim, PVG_MAX_NDIM);
    int dtype = 0;
    PVG_PASS(dtype_of(t, &dtype));
    Stream *stream = nullptr;
    PVG_PASS(check_device(device));
    PVG_PASS(refuse_recording(device, "taking an array of another library"));
    PVG_PASS(current_stream(device, &stream));
    pvg_array *a = pvg_array_wrap(
        static_cast<unsigned char *>(t.data) + t.byte_offset, device, dtype, t.ndim, t.shape,
        t.strides, v ? delete_import<Versioned> : delete_import<Unversioned>, managed);
    if (!a) return error_record.status;
    a->readonly = v && (v->flags & read_only);
    // Its owner has made this stream wait: whoever uses the array next follows.
    a->storage->writer.store(stream_id(stream), std::memory_order_relaxed);
    *result = a;
    return PVG_OK;
}

int lend(const pvg_array *a, void *stream) {
    PVG_PASS(check_array(a, "array"));
    int device = device_of(a);
    PVG_PASS(check_device(device));
    PVG_PASS(refuse_recording(device, "lending an array to another stream"));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    return lend_to_stream(static_cast<cudaStream_t>(stream), a->storage, !a->readonly);
}

int follow(void *stream, int device) {
    Stream *current = nullptr;
    PVG_PASS(check_device(device));
    PVG_PASS(refuse_recording(device, "waiting for another library's stream"));
    DeviceScope scope;
    PVG_PASS(scope.enter(device));
    PVG_PASS(current_stream(device, &current));
    return follow_stream(current, static_cast<cudaStream_t>(stream));
}

int memory_device(const void *data, int *device) {
    int count = 0;
    PVG_REQUIRE(device, PVG_ERROR_VALUE, "device is a null pointer");
    PVG_PASS(start_devices(&count));
    cudaPointerAttributes attributes;
    PVG_TRY(cudaPointerGetAttributes(&attributes, data));
    bool found =
        attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
    *device = found ? attributes.device : -1;
    return PVG_OK;
}

// What this library calls of Python's C interface.
struct Python {
    int (*is_initialized)();
    int (*take_lock)();
    void (*give_lock)(int);
    void (*release)(void *);
    int (*is_capsule)(void *, const char *);
    void *(*content)(void *, const char *);
};
Python python;

} // namespace

} // namespace pvg

PVG_API void *pvg_dlpack_export(const pvg_array *array, int versioned, int on_host, int64_t flags) {
    pvg::clear_error();
    void *result = nullptr;
    int status = pvg::export_array(array, versioned, on_host, flags, &result);
    return status == PVG_OK ? result : nullptr;
}

PVG_API pvg_array *pvg_dlpack_import(void *tensor, int versioned, int device) {
    pvg::clear_error();
    pvg_array *a = nullptr;
    return pvg::import_tensor(tensor, versioned, device, &a) == PVG_OK ? a : nullptr;
}

PVG_API int pvg_array_lend(const pvg_array *array, void *cuda_stream) {
    pvg::clear_error();
    return pvg::lend(array, cuda_stream);
}

PVG_API int pvg_stream_follow(void *cuda_stream, int device) {
    pvg::clear_error();
    return pvg::follow(cuda_stream, device);
}

PVG_API int pvg_memory_device(const void *data, int *device) {
    pvg::clear_error();
    return pvg::memory_device(data, device);
}

PVG_API void pvg_python(void *is_initialized, void *take_lock, void *give_lock, void *release,
                        void *is_capsule, void *content) {
    pvg::python = {reinterpret_cast<int (*)()>(is_initialized),
                   reinterpret_cast<int (*)()>(take_lock),
                   reinterpret_cast<void (*)(int)>(give_lock),
                   reinterpret_cast<void (*)(void *)>(release),
                   reinterpret_cast<int (*)(void *, const char *)>(is_capsule),
                   reinterpret_cast<void *(*)(void *, const char *)>(content)};
}

PVG_API void pvg_python_capsule(void *capsule) {
    const pvg::Python &p = pvg::python;
    if (!p.is_capsule || !p.content) return;
    if (p.is_capsule(capsule, "dltensor_versioned"))
        pvg::delete_import<pvg::Versioned>(p.content(capsule, "dltensor_versioned"));
    else if (p.is_capsule(capsule, "dltensor"))
        pvg::delete_import<pvg::Unversioned>(p.content(capsule, "dltensor"));
}

PVG_API void pvg_python_release(void *object) {
    const pvg::Python &p = pvg::python;
    if (!p.release || pvg::forked_child || !p.is_initialized()) return;
    int state = p.take_lock();
    p.release(object);
    p.give_lock(state);
}
