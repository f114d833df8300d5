/* Device memory: the pool and its two debugging modes, statistics, limit, exhaustion, sizes that
 * cannot be. */
#include "check.h"

#ifdef PVG_TEST_SIMULATOR
enum { RANDOM_ROUNDS = 100000 };
#else
enum { RANDOM_ROUNDS = 1000000 };
#endif

static const int64_t MiB = 1 << 20;

static pvg_array *bytes(int64_t n) { return MADE(pvg_array_empty(0, PVG_UINT8, SHAPE(n))); }

static int allocator_before;
static void use_allocator(int mode) {
    int64_t now = 0;
    CHECK_OK(pvg_get_option(PVG_OPTION_ALLOCATOR, &now));
    allocator_before = (int)now;
    CHECK_OK(pvg_set_option(PVG_OPTION_ALLOCATOR, mode));
    CHECK_OK(pvg_empty_cache(0));
}
static void restore_allocator(void) {
    CHECK_OK(pvg_set_option(PVG_OPTION_ALLOCATOR, allocator_before));
}

static void statistics(void) {
    use_allocator(PVG_ALLOCATOR_POOL);
    int64_t before[PVG_MEMORY_COUNT], now[PVG_MEMORY_COUNT];
    CHECK_OK(pvg_memory_info(0, before));
    CHECK_EQUAL(before[PVG_MEMORY_LIMIT], 0);
    CHECK(before[PVG_MEMORY_FREE] > 0 && before[PVG_MEMORY_FREE] <= before[PVG_MEMORY_TOTAL]);
    pvg_array *a = bytes(3 * MiB), *view = MADE(pvg_reshape(a, SHAPE(3, -1)));
    CHECK_OK(pvg_memory_info(0, now));
    CHECK(now[PVG_MEMORY_USED] >= 3 * MiB && now[PVG_MEMORY_USED] < 3 * MiB + 4096);
    CHECK(now[PVG_MEMORY_RESERVED] >= now[PVG_MEMORY_USED]);
    CHECK(now[PVG_MEMORY_PEAK] >= now[PVG_MEMORY_USED]);
    CHECK(now[PVG_MEMORY_FREE] <= before[PVG_MEMORY_FREE] - 3 * MiB);
    CHECK_EQUAL(now[PVG_MEMORY_BLOCKS], 1); /* the view has none of its own */
    CHECK_EQUAL(now[PVG_MEMORY_ALLOCATIONS], before[PVG_MEMORY_ALLOCATIONS] + 1);
    CHECK(now[PVG_MEMORY_DRIVER_CALLS] > before[PVG_MEMORY_DRIVER_CALLS]);
    int64_t peak = now[PVG_MEMORY_PEAK];
    RELEASE(a);
    CHECK(memory_value(PVG_MEMORY_USED) >= 3 * MiB); /* the view keeps it */
    RELEASE(view);
    CHECK_EQUAL(memory_value(PVG_MEMORY_USED), 0);
    CHECK_EQUAL(memory_value(PVG_MEMORY_PEAK), peak);
    CHECK(memory_value(PVG_MEMORY_RESERVED) >= 3 * MiB);
    CHECK_OK(pvg_empty_cache(0));
    CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), 0);
#ifdef PVG_TEST_SIMULATOR /* a real device may have other users */
    CHECK_EQUAL(memory_value(PVG_MEMORY_FREE), before[PVG_MEMORY_FREE]);
#endif
    restore_allocator();
}

static void steady_state_makes_no_driver_call(void) {
    use_allocator(PVG_ALLOCATOR_POOL);
    uint64_t state = 7;
    int64_t driver_calls = 0;
    for (int round = 0; round < 220; round++) {
        if (round == 20) driver_calls = memory_value(PVG_MEMORY_DRIVER_CALLS);
        int64_t n = round < 20 ? 5000 : random_integer(&state, 1, 5000);
        pvg_array *a = bytes(n), *b = bytes(n), *large = bytes(2 * MiB);
        pvg_array *sum = MADE(pvg_add(a, b));
        RELEASE(a, b, large, sum);
    }
    CHECK_EQUAL(memory_value(PVG_MEMORY_DRIVER_CALLS), driver_calls);
    restore_allocator();
}

/* Random sizes and lifetimes: what is held from the driver stays within 1.5 times the largest
 * live amount. */
static void random_sizes(void) {
    enum { SLOTS = 256 };
    use_allocator(PVG_ALLOCATOR_POOL);
    pvg_array *slots[SLOTS] = {NULL};
    int64_t sizes[SLOTS] = {0}, live = 0, peak = 0, reserved = 0, failures = 0;
    uint64_t state = 80;
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        int at = (int)random_integer(&state, 0, SLOTS - 1);
        failures += pvg_array_release(slots[at]) != PVG_OK;
        live -= sizes[at];
        sizes[at] = (int64_t)exp2(random_real(&state, 0, 22));
        slots[at] = bytes(sizes[at]);
        live += sizes[at];
        if (live > peak) peak = live;
        if (round % 64 == 0 && memory_value(PVG_MEMORY_RESERVED) > reserved)
            reserved = memory_value(PVG_MEMORY_RESERVED);
    }
    /* No two live blocks share a byte. */
    for (int i = 0; i < SLOTS; i++)
        for (int j = 0; j < SLOTS; j++) {
            char *a = pvg_array_data(slots[i]), *b = pvg_array_data(slots[j]);
            failures += i != j && a && b && a < b + sizes[j] && b < a + sizes[i];
        }
    for (int i = 0; i < SLOTS; i++) RELEASE(slots[i]);
    CHECK_EQUAL(failures, 0);
    if (!(reserved <= peak + peak / 2))
        report(__FILE__, __LINE__, "%" PRId64 " bytes reserved for %" PRId64 " live at most",
               reserved, peak);
    CHECK_OK(pvg_empty_cache(0));
    CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), 0);
    restore_allocator();
}

static void contents_survive_neighbours(void) {
    enum { SLOTS = 24 };
    pvg_array *slots[SLOTS] = {NULL};
    int64_t numbers[SLOTS] = {0};
    uint64_t state = 81;
    for (int round = 0; round < 300; round++) {
        int at = (int)random_integer(&state, 0, SLOTS - 1);
        if (slots[at]) {
            int64_t n = pvg_array_size(slots[at]);
            int64_t *values = host_copy(slots[at]);
            for (int64_t i = 0; i < n; i++) CHECK(values[i] == numbers[at]);
            free(values);
            RELEASE(slots[at]);
        }
        numbers[at] = round;
        slots[at] = MADE(pvg_array_empty(0, PVG_INT64, SHAPE(random_integer(&state, 1, 300))));
        CHECK_OK(pvg_fill(slots[at], PVG_SCALAR_INT, &numbers[at]));
    }
    for (int i = 0; i < SLOTS; i++) RELEASE(slots[i]);
}

static void out_of_memory_has_numbers(void) {
    const int64_t one = 1, exbibyte = (int64_t)1 << 60;
    pvg_array *a = MADE(pvg_array_empty(0, PVG_INT64, SHAPE(100)));
    CHECK_OK(pvg_fill(a, PVG_SCALAR_INT, &one));
    int64_t used = memory_value(PVG_MEMORY_USED), blocks = memory_value(PVG_MEMORY_BLOCKS);
    for (int i = 0; i < 3; i++) {
        CHECK_NULL(PVG_ERROR_MEMORY, pvg_array_empty(0, PVG_UINT8, SHAPE(exbibyte)));
        CHECK(strstr(pvg_last_error(), "1152921504606846976"));
        CHECK_EQUAL(pvg_last_error_value(PVG_ERROR_VALUE_REQUESTED), exbibyte);
        CHECK(pvg_last_error_value(PVG_ERROR_VALUE_FREE) > 0);
        CHECK_EQUAL(pvg_last_error_value(PVG_ERROR_VALUE_DEVICE), 0);
        int64_t reserved = pvg_last_error_value(PVG_ERROR_VALUE_RESERVED);
        CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), reserved);
        CHECK_EQUAL(memory_value(PVG_MEMORY_USED), used);
        CHECK_EQUAL(memory_value(PVG_MEMORY_BLOCKS), blocks);
        pvg_array *sum =
            MADE(pvg_add(a, a)); /* the failed request is not blamed on the next kernel */
        CHECK_EQUAL((int64_t)element(sum, 99), 2);
        RELEASE(sum);
    }
    RELEASE(a);
}

static void limit(void) {
    use_allocator(PVG_ALLOCATOR_POOL);
    int64_t total = memory_value(PVG_MEMORY_TOTAL);
    CHECK_STATUS(pvg_set_memory_limit(0, -1), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_set_memory_limit(0, total + 1), PVG_ERROR_VALUE);
    CHECK_EQUAL(memory_value(PVG_MEMORY_LIMIT), 0);
    CHECK_OK(pvg_set_memory_limit(0, 64 * MiB));
    CHECK_EQUAL(memory_value(PVG_MEMORY_LIMIT), 64 * MiB);
    pvg_array *a = bytes(40 * MiB);
    CHECK_NULL(PVG_ERROR_MEMORY, pvg_array_empty(0, PVG_UINT8, SHAPE(40 * MiB)));
    CHECK_EQUAL(pvg_last_error_value(PVG_ERROR_VALUE_REQUESTED), 40 * MiB);
    CHECK(strstr(pvg_last_error(), "67108864"));
    RELEASE(a);
    a = bytes(64 * MiB); /* what was cached is given up for it */
    CHECK(memory_value(PVG_MEMORY_RESERVED) <= 64 * MiB);
    RELEASE(a);
    for (int i = 0; i < 8; i++) { /* small blocks first, then one that needs all of their memory */
        pvg_array *small[40];
        for (int j = 0; j < 40; j++) small[j] = bytes(MiB);
        for (int j = 0; j < 40; j++) RELEASE(small[j]);
        a = bytes(63 * MiB);
        RELEASE(a);
    }
    CHECK_OK(pvg_set_memory_limit(0, 0));
    CHECK_OK(pvg_empty_cache(0));
    restore_allocator();
}

static void size_zero(void) {
    int64_t blocks = memory_value(PVG_MEMORY_BLOCKS),
            allocations = memory_value(PVG_MEMORY_ALLOCATIONS);
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(0)));
    pvg_array *b = MADE(pvg_array_empty(0, PVG_BOOL, SHAPE(3, 0, 5)));
    CHECK(!pvg_array_data(a) && !pvg_array_data(b));
    CHECK_EQUAL(pvg_array_size(b), 0);
    CHECK_EQUAL(memory_value(PVG_MEMORY_BLOCKS), blocks);
    CHECK_EQUAL(memory_value(PVG_MEMORY_ALLOCATIONS), allocations);
    int64_t launches = pvg_counter(PVG_COUNT_LAUNCHES);
    pvg_array *sum = MADE(pvg_add(a, a)), *view = MADE(pvg_reshape(b, SHAPE(0, 7)));
    CHECK_EQUAL(pvg_counter(PVG_COUNT_LAUNCHES), launches);
    RELEASE(a, b, sum, view);
}

static void sizes_that_cannot_be(void) {
    const int64_t two32 = (int64_t)1 << 32, two62 = (int64_t)1 << 62;
    const int64_t dimensions[PVG_MAX_NDIM + 1] = {0};
    int64_t allocations = memory_value(PVG_MEMORY_ALLOCATIONS);
    /* float64 of SIZE_MAX - 511 to SIZE_MAX - 7 bytes: rounding up must not wrap to 0. */
    for (uint64_t n = (SIZE_MAX - 511) / 8; n <= SIZE_MAX / 8; n++)
        CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_FLOAT64, SHAPE((int64_t)n)));
    for (int64_t below = 511; below >= 0; below--) {
        CHECK(!pvg_array_empty(0, PVG_UINT8, SHAPE(INT64_MAX - below)));
        CHECK(pvg_last_status() == PVG_ERROR_MEMORY || pvg_last_status() == PVG_ERROR_VALUE);
    }
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_FLOAT32, SHAPE(-1)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_FLOAT32, SHAPE(3, -2)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_FLOAT32, SHAPE(0, -2)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_FLOAT32, SHAPE(two32, two32)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_INT32, SHAPE(two32, two32, 16)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_FLOAT32, SHAPE(0, two62, two62)));
    CHECK_NULL(PVG_ERROR_VALUE,
               pvg_array_empty(0, PVG_BOOL, SHAPE(2, 2, 5, 5581, 8681, 49477, 384773)));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_BOOL, -1, dimensions));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_BOOL, PVG_MAX_NDIM + 1, dimensions));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_array_empty(0, PVG_BOOL, 1, NULL));
    CHECK_EQUAL(memory_value(PVG_MEMORY_ALLOCATIONS), allocations);
}

static void direct_mode(void) {
    use_allocator(PVG_ALLOCATOR_DIRECT);
    int64_t calls = memory_value(PVG_MEMORY_DRIVER_CALLS);
    pvg_array *a = bytes(1000);
    CHECK_STATUS(pvg_set_option(PVG_OPTION_ALLOCATOR, PVG_ALLOCATOR_POOL), PVG_ERROR_VALUE);
    CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), 1000);
    RELEASE(a);
    CHECK_EQUAL(memory_value(PVG_MEMORY_DRIVER_CALLS), calls + 2);
    CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), 0);
    restore_allocator();
}

/* Fresh memory is 0xFF, and a write beside an array is found when the array is released. */
static void debug_mode(void) {
    use_allocator(PVG_ALLOCATOR_DEBUG);
    const int64_t seven = 7;
    pvg_array *a = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(1001)));
    unsigned char *seen = host_copy(a);
    for (int i = 0; i < 4 * 1001; i++) CHECK(seen[i] == 0xFF);
    free(seen);
    CHECK_OK(pvg_fill(a, PVG_SCALAR_INT, &seven));
    RELEASE(a);
    CHECK_OK(pvg_synchronize(0));
    CHECK_EQUAL(pvg_counter(PVG_COUNT_CANARY_ERRORS), check_canary_errors);
    static const int64_t wrong_places[] = {-1, -256, 1000, 1255}; /* of 1000 bytes */
    for (size_t i = 0; i < COUNT(wrong_places); i++) {
        a = bytes(1000);
        unsigned char *data = pvg_array_data(a);
        pvg_array *beside =
            MADE(pvg_array_wrap(data + wrong_places[i], 0, PVG_UINT8, SHAPE(1), NULL, NULL, NULL));
        CHECK_OK(pvg_fill(beside, PVG_SCALAR_INT, &seven));
        CHECK_OK(pvg_synchronize(0)); /* the two handles know nothing of each other */
        RELEASE(beside, a);
        CHECK_OK(pvg_synchronize(0));
        CHECK_EQUAL(pvg_counter(PVG_COUNT_CANARY_ERRORS), ++check_canary_errors);
    }
    restore_allocator();
}

#ifdef PVG_TEST_SIMULATOR
/* Canaries that cannot be written: the memory goes back, but not before what was written has been,
 * which deferred streams put off. */
static void debug_mode_with_faults(void) {
    use_allocator(PVG_ALLOCATOR_DEBUG);
    CHECK_EQUAL(pvg_sim_set("deferred", 1), 0);
    for (int nth = 1; nth <= 2; nth++) {
        pvg_sim_fail("memset", nth);
        CHECK_NULL(PVG_ERROR_MEMORY, pvg_array_empty(0, PVG_FLOAT32, SHAPE(1001)));
        pvg_sim_fail("memset", 0);
        CHECK_OK(pvg_synchronize(0));
        CHECK(strcmp(pvg_sim_message(), "") == 0);
    }
    CHECK_EQUAL(pvg_sim_set("deferred", getenv("PVG_TEST_SIM_DEFERRED") ? 1 : 0), 0);
    restore_allocator();
}
#endif

int main(void) {
    begin("test_memory");
    RUN(statistics);
    RUN(steady_state_makes_no_driver_call);
    RUN(random_sizes);
    RUN(contents_survive_neighbours);
    RUN(out_of_memory_has_numbers);
    RUN(limit);
    RUN(size_zero);
    RUN(sizes_that_cannot_be);
    RUN(direct_mode);
    RUN(debug_mode);
#ifdef PVG_TEST_SIMULATOR
    RUN(debug_mode_with_faults);
#endif
    return finish();
}
