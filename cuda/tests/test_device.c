/* Devices: how many, their attributes, and working on more than one. The simulated card has two
 * here. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static int64_t attribute(int device, int code) {
    int64_t value = -1;
    CHECK_OK(pvg_device_attribute(device, code, &value));
    return value;
}

static void attributes(void) {
    for (int code = 0; code < PVG_DEVICE_ATTRIBUTE_COUNT; code++) {
        int64_t first = attribute(0, code);
        CHECK(first >= 0);
        CHECK_EQUAL(attribute(0, code), first);
    }
    CHECK_EQUAL(attribute(0, PVG_MAX_THREADS_PER_BLOCK), 1024);
    CHECK_EQUAL(attribute(0, PVG_MAX_BLOCK_DIM_X), 1024);
    CHECK_EQUAL(attribute(0, PVG_MAX_BLOCK_DIM_Y), 1024);
    CHECK_EQUAL(attribute(0, PVG_MAX_BLOCK_DIM_Z), 64);
    CHECK_EQUAL(attribute(0, PVG_MAX_GRID_DIM_X), INT32_MAX);
    CHECK_EQUAL(attribute(0, PVG_MAX_GRID_DIM_Y), 65535);
    CHECK_EQUAL(attribute(0, PVG_MAX_GRID_DIM_Z), 65535);
    CHECK_EQUAL(attribute(0, PVG_WARP_SIZE), 32);
    CHECK_EQUAL(attribute(0, PVG_MAX_SHARED_MEMORY_PER_BLOCK), 48 * 1024);
    CHECK_EQUAL(attribute(0, PVG_MAX_REGISTERS_PER_BLOCK), 65536);
    CHECK_EQUAL(attribute(0, PVG_TOTAL_CONSTANT_MEMORY), 65536);
    CHECK_EQUAL(attribute(0, PVG_UNIFIED_ADDRESSING), 1);
    int64_t optin = attribute(0, PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    CHECK(optin >= attribute(0, PVG_MAX_SHARED_MEMORY_PER_BLOCK));
    CHECK(optin <= attribute(0, PVG_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    CHECK(attribute(0, PVG_MULTIPROCESSOR_COUNT) >= 1);
    CHECK(attribute(0, PVG_MAX_THREADS_PER_MULTIPROCESSOR) >= 1024);
    CHECK(attribute(0, PVG_COMPUTE_CAPABILITY_MAJOR) * 10 +
              attribute(0, PVG_COMPUTE_CAPABILITY_MINOR) >=
          75);
#ifdef PVG_TEST_SIMULATOR
    CHECK_EQUAL(attribute(0, PVG_COMPUTE_CAPABILITY_MAJOR) * 10 +
                    attribute(0, PVG_COMPUTE_CAPABILITY_MINOR),
                75);
    CHECK_EQUAL(attribute(0, PVG_MULTIPROCESSOR_COUNT), 2);
    CHECK_EQUAL(optin, 64 * 1024);
#endif
}

static void versions_and_names(void) {
    int version = -1;
    CHECK_OK(pvg_runtime_version(&version));
    CHECK(version >= 13000);
    CHECK_OK(pvg_driver_version(&version));
    CHECK(version >= 13000);
    const char *name = pvg_device_name(0);
    CHECK(name && name[0] != '\0');
    CHECK(name == pvg_device_name(0));
}

/* All functions that take the number of a device refuse one, and say why; but for pvg_graph_end,
 * before which a recording has begun. */
static void refused_by_all(int device, const char *why) {
    int64_t card[PVG_CARD_COUNT], values[PVG_MEMORY_COUNT], value = 0;
    float here = 0;
    struct {
        void *data;
        int32_t device_type, device_id, ndim;
        uint8_t code, bits;
        uint16_t lanes;
        int64_t *shape, *strides;
        uint64_t byte_offset;
        void *context, *deleter;
    } tensor = {&here, 2, device, 0, 2, 32, 1, NULL, NULL, 0, NULL, NULL};
#define NO_DEVICE_FOR(check)                                                     \
    do {                                                                         \
        check;                                                                   \
        if (!strstr(pvg_last_error(), why))                                      \
            report(__FILE__, __LINE__, "%s says: %s", #check, pvg_last_error()); \
    } while (0)
#define GIVES_STATUS(...) NO_DEVICE_FOR(CHECK_STATUS((__VA_ARGS__), PVG_ERROR_UNAVAILABLE))
#define GIVES_NULL(...) NO_DEVICE_FOR(CHECK_NULL(PVG_ERROR_UNAVAILABLE, __VA_ARGS__))
    GIVES_NULL(pvg_device_name(device));
    GIVES_STATUS(pvg_device_attribute(device, PVG_WARP_SIZE, &value));
    GIVES_STATUS(pvg_synchronize(device));
    GIVES_STATUS(pvg_memory_info(device, values));
    GIVES_STATUS(pvg_set_memory_limit(device, 0));
    GIVES_STATUS(pvg_empty_cache(device));
    GIVES_NULL(pvg_stream_create(device));
    GIVES_NULL(pvg_stream_wrap(NULL, device));
    GIVES_STATUS(pvg_stream_set_current(NULL, device));
    GIVES_NULL(pvg_stream_current(device));
    GIVES_NULL(pvg_event_create(device));
    GIVES_STATUS(pvg_graph_begin(device));
    GIVES_NULL(pvg_array_empty(device, PVG_FLOAT32, SHAPE(3)));
    GIVES_NULL(pvg_array_wrap(&here, device, PVG_FLOAT32, 0, NULL, NULL, NULL, NULL));
    GIVES_NULL(pvg_dlpack_import(&tensor, 0, device));
    GIVES_STATUS(pvg_stream_follow(NULL, device));
    GIVES_NULL(pvg_random_integers(device, PVG_INT32, SHAPE(3), 32, 5, 0, 1, 2, 3));
    GIVES_STATUS(pvg_plan_card(device, card));
}

#ifdef PVG_TEST_SIMULATOR
/* Machines without a card, and what each says to whatever device is asked for. */
static const struct {
    const char *setting;
    long long value;
    const char *says;
} machines[] = {
    {"driver", 0, "no device is available: no NVIDIA driver was found"},
    {"driver", 12080,
     "no device is available: the NVIDIA driver is too old: it supports CUDA 12.8,"},
    {"devices", 0, "no device is available: the NVIDIA driver shows no GPU to this process"},
    {"start_error", 3,
     "no device is available: the CUDA runtime cannot start: cudaErrorInitializationError "
     "(initialization error)"},
};

/* Each is a process of its own, which has not started CUDA yet. */
static void machines_without_a_card(void) {
    check_section = "machines_without_a_card";
    for (size_t i = 0; i < COUNT(machines); i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            int count = 7, version = -1;
            CHECK_EQUAL(pvg_sim_set(machines[i].setting, machines[i].value), 0);
            refused_by_all(0, machines[i].says);
            CHECK_STATUS(pvg_device_count(&count), PVG_ERROR_UNAVAILABLE);
            CHECK(strstr(pvg_last_error(), machines[i].says));
            CHECK_EQUAL(count, 0);
            CHECK_OK(pvg_driver_version(&version));
            CHECK(version == machines[i].value || i > 1);
            CHECK_EQUAL(pvg_is_healthy(), 1);
            _exit(check_failures != 0);
        }
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK_EQUAL(status, 0);
    }
}
#endif

static void numbers_that_are_no_device(void) {
    int count = 0;
    int64_t value = 0;
    CHECK_OK(pvg_device_count(&count));
    CHECK(count >= 1);
    const int wrong[] = {-1, count, 1 << 30};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        refused_by_all(wrong[i], "there is no device");
    }
    CHECK_STATUS(pvg_device_attribute(0, PVG_DEVICE_ATTRIBUTE_COUNT, &value), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_device_attribute(0, -1, &value), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_device_attribute(0, PVG_WARP_SIZE, NULL), PVG_ERROR_VALUE);
    CHECK_EQUAL(pvg_is_healthy(), 1);
}

/* With one device there is nothing to mix; the simulated card always has two in this test. */
static void two_devices(void) {
    const float ones[3] = {1, 1, 1}, twos[3] = {2, 2, 2};
    const double one = 1;
    int count = 0;
    CHECK_OK(pvg_device_count(&count));
#ifdef PVG_TEST_SIMULATOR
    CHECK_EQUAL(count, 2);
#endif
    if (count < 2) return;
    pvg_array *here = array_of(PVG_FLOAT32, SHAPE(3), ones);
    pvg_array *there = MADE(pvg_array_empty(1, PVG_FLOAT32, SHAPE(3)));
    CHECK_EQUAL(pvg_array_device(here), 0);
    CHECK_EQUAL(pvg_array_device(there), 1);
    CHECK_OK(pvg_fill(there, PVG_SCALAR_FLOAT, &one));
    pvg_array *sum = MADE(pvg_add(there, there));
    CHECK_EQUAL(pvg_array_device(sum), 1);
    CHECK_ARRAY(sum, PVG_FLOAT32, SHAPE(3), twos, 0);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_add(here, there));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_unary(PVG_EXP, here, there));
    CHECK_ARRAY(there, PVG_FLOAT32, SHAPE(3), ones, 0);
    CHECK_STATUS(pvg_copy(sum, here), PVG_ERROR_VALUE); /* never a silent copy */
    CHECK_ARRAY(here, PVG_FLOAT32, SHAPE(3), ones, 0);
    RELEASE(here, there, sum);
    CHECK_OK(pvg_synchronize(1));
    CHECK_OK(pvg_empty_cache(1));
}

int main(void) {
#ifdef PVG_TEST_SIMULATOR
    machines_without_a_card();
    CHECK_EQUAL(pvg_sim_set("devices", 2), 0);
#endif
    begin("test_device");
    RUN(attributes);
    RUN(versions_and_names);
    RUN(numbers_that_are_no_device);
    RUN(two_devices);
    return finish();
}
