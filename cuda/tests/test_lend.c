/* Memory shared with other libraries: DLPack's tensors, streams, and what belongs to Python. */
#include "check.h"
#include <string.h>

typedef struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} tensor;
typedef struct managed {
    tensor tensor;
    void *context;
    void (*deleter)(struct managed *);
} managed;
typedef struct versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct versioned *);
    uint64_t flags;
    tensor tensor;
} versioned;

static int deleted;
static void count_deleted(managed *m) {
    (void)m;
    deleted++;
}

/* A tensor goes out, outlives its array, and frees the memory when it is deleted. */
static void tensors_own_their_memory(void) {
    int64_t used = pvg_counter(PVG_COUNT_LIVE_ARRAYS);
    pvg_array *a = MADE(pvg_array_empty(0, PVG_COMPLEX64, SHAPE(2, 3)));
    void *data = pvg_array_data(a);
    versioned *v = pvg_dlpack_export(a, 1, 0, 2);
    managed *m = pvg_dlpack_export(a, 0, 1, 0);
    CHECK(v && m);
    CHECK(v->major == 1 && v->flags == 2 && v->tensor.data == data && v->tensor.ndim == 2);
    CHECK(v->tensor.device_type == 2 && m->tensor.device_type == 1);
    CHECK(v->tensor.code == 5 && v->tensor.bits == 64 && v->tensor.lanes == 1);
    CHECK(v->tensor.shape[1] == 3 && v->tensor.strides[0] == 3 && v->tensor.strides[1] == 1);
    RELEASE(a);
    m->deleter(m);
    pvg_array *back = MADE(pvg_dlpack_import(v, 1, 0));
    CHECK(pvg_array_data(back) == data && pvg_array_dtype(back) == PVG_COMPLEX64);
    RELEASE(back);
    CHECK(pvg_counter(PVG_COUNT_LIVE_ARRAYS) == used);
}

/* What is taken is deleted once, when the last view is gone; what is refused, never. */
static void deleters_are_called_once(void) {
    pvg_array *owner = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(6)));
    int64_t shape[1] = {6};
    managed m = {{pvg_array_data(owner), 2, 0, 1, 2, 32, 1, shape, NULL, 0}, NULL, count_deleted};
    pvg_array *a = MADE(pvg_dlpack_import(&m, 0, 0));
    pvg_array *view = MADE(pvg_broadcast_to(a, SHAPE(2, 6)));
    RELEASE(a);
    CHECK(deleted == 0);
    RELEASE(view);
    CHECK(deleted == 1);
    m.tensor.code = 99;
    CHECK_NULL(PVG_ERROR_TYPE, pvg_dlpack_import(&m, 0, 0));
    m.tensor.code = 2, m.tensor.ndim = -1;
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dlpack_import(&m, 0, 0));
    m.tensor.ndim = 1, m.tensor.device_id = 7;
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dlpack_import(&m, 0, 0));
    m.tensor.device_id = 0, m.tensor.byte_offset = 2;
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dlpack_import(&m, 0, 0));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dlpack_import(NULL, 0, 0));
    CHECK(deleted == 1);
    RELEASE(owner);
}

static void read_only_arrays(void) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(6)));
    pvg_array *view = MADE(pvg_broadcast_to(a, SHAPE(2, 6)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dlpack_export(view, 0, 0, 0));
    pvg_array *back = MADE(pvg_dlpack_import(pvg_dlpack_export(view, 1, 0, 0), 1, 0));
    CHECK(pvg_array_is_readonly(back) == 1 && pvg_array_is_readonly(a) == 0);
    RELEASE(back);
    RELEASE(view);
    RELEASE(a);
}

static void where_memory_is(void) {
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(6)));
    int device = 5, here = 0;
    CHECK_OK(pvg_memory_device(pvg_array_data(a), &device));
    CHECK(device == 0);
    CHECK_OK(pvg_memory_device(&here, &device));
    CHECK(device == -1);
    CHECK_OK(pvg_array_lend(a, NULL));
    CHECK_OK(pvg_stream_follow(NULL, 0));
    RELEASE(a);
}

/* Memory that nobody has used yet is not taken for that of a stream that is gone. */
static void unused_memory_waits_for_nobody(void) {
    pvg_array *owner = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(6)));
    pvg_stream *gone = MADE(pvg_stream_create(0));
    pvg_array *a =
        MADE(pvg_array_wrap(pvg_array_data(owner), 0, PVG_FLOAT32, SHAPE(6), NULL, NULL, NULL));
    CHECK_OK(pvg_stream_release(gone));
    CHECK_OK(pvg_array_lend(a, NULL));
    RELEASE(a, owner);
}

/* Stand-ins for Python: what the library calls, and with what. */
static char called[64];
static int is_initialized(void) { return 1; }
static int take_lock(void) { return strcat(called, "("), 3; }
static void give_lock(int state) { strcat(called, state == 3 ? ")" : "?"); }
static void release(void *object) { strcat(called, (char *)object); }
static void *capsule_of; /* whose name is "dltensor", or NULL for a capsule that was taken */
static int is_capsule(void *capsule, const char *name) {
    return capsule == capsule_of && strcmp(name, "dltensor") == 0;
}
static void *content(void *capsule, const char *name) { return (void)name, capsule; }

/* C has no conversion of a function's address to void *, all systems have. */
static void *address(void (*function)(void)) {
    void *result;
    memcpy(&result, &function, sizeof result);
    return result;
}
#define ADDRESS(function) address((void (*)(void))(function))

static void what_belongs_to_python(void) {
    char object[] = "object";
    managed m = {{0}, NULL, count_deleted};
    deleted = 0;
    pvg_python_release(object); /* Python is not known yet: nothing happens */
    pvg_python_capsule(&m);
    CHECK(called[0] == 0 && deleted == 0);
    pvg_python(ADDRESS(is_initialized), ADDRESS(take_lock), ADDRESS(give_lock), ADDRESS(release),
               ADDRESS(is_capsule), ADDRESS(content));
    pvg_python_release(object);
    CHECK(strcmp(called, "(object)") == 0);
    pvg_python_capsule(&m);
    CHECK(deleted == 0);
    capsule_of = &m;
    pvg_python_capsule(&m);
    CHECK(deleted == 1);
}

int main(void) {
    begin("test_lend");
    RUN(tensors_own_their_memory);
    RUN(deleters_are_called_once);
    RUN(read_only_arrays);
    RUN(where_memory_is);
    RUN(unused_memory_waits_for_nobody);
    RUN(what_belongs_to_python);
    return finish();
}
