/* What the C tests share: checks that report file, line and values; arrays from and to host
 * memory; random numbers; settings from the environment. A test is a program of its own:
 *
 *     #include "check.h"
 *     static void sum_of_ones(void) { ... CHECK_OK(pvg_synchronize(0)); ... }
 *     int main(void) { begin("test_reduce"); RUN(sum_of_ones); return finish(); }
 *
 * It ends with 0 (passed), 1 (failed) or 77 (no device). After each section no array may be
 * alive and no device memory in use. Comparisons are written !(difference <= tolerance), which a
 * NaN fails.
 *
 * PVG_TEST_ALLOCATOR=pool|direct|debug chooses the allocator; on the simulated card
 * PVG_TEST_SIM_<SETTING>=<number> (ORDER, SEED, CHECK_ORDER, DEFERRED, CARD, WORKERS, GUARD,
 * PATIENCE, PRINT) goes to pvg_sim_set, CARD for device 0. The library itself reads no
 * environment. */
#ifndef PVG_CHECK_H
#define PVG_CHECK_H

#define _POSIX_C_SOURCE 200809L /* before any system header: threads, fork */
#include "pyvecgpu.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef PVG_TEST_SIMULATOR
#include "pyvecgpu_sim.h"
#endif

enum { NO_DEVICE = 77, MAX_REPORTS = 20 };

static const char *check_program = "test", *check_section = "main";
static int check_failures = 0;
static int64_t check_canary_errors = 0; /* those that a test provokes; finish() accepts no other */

/* A list of dimensions as the two arguments "ndim, shape", and likewise "naxes, axes". */
#define SHAPE(...) \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define SCALAR 0, NULL
#define AXES(...) \
    (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]) { __VA_ARGS__ }
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* ---- Reports --------------------------------------------------------------------------------- */

static inline void report(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: %s: ", file, line, check_section);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    if (++check_failures >= MAX_REPORTS) {
        fprintf(stderr, "%s: FAILED, too many failures to go on\n", check_program);
        exit(1);
    }
}

static inline void check_true(const char *file, int line, int holds, const char *text) {
    if (!holds) report(file, line, "not true: %s", text);
}

static inline void check_equal(const char *file, int line, const char *text, int64_t value,
                               int64_t expected) {
    if (value != expected)
        report(file, line, "%s is %" PRId64 ", expected %" PRId64, text, value, expected);
}

static inline void check_close(const char *file, int line, const char *text, double value,
                               double expected, double tolerance) {
    if (value == expected || (isnan(value) && isnan(expected))) return;
    if (!(fabs(value - expected) <= tolerance))
        report(file, line, "%s is %.17g, expected %.17g within %g", text, value, expected,
               tolerance);
}

/* A status that a function returned: as expected, and the thread's error record says the same. */
static inline void check_status(const char *file, int line, const char *text, int status,
                                int expected) {
    if (status != expected)
        report(file, line, "%s gave status %d, expected %d (%s)", text, status, expected,
               pvg_last_error());
    else if (pvg_last_status() != expected)
        report(file, line, "%s gave status %d, but pvg_last_status is %d", text, status,
               pvg_last_status());
    else if (expected != PVG_OK && pvg_last_error()[0] == '\0')
        report(file, line, "%s gave status %d without a message", text, status);
}

/* A function that makes an array gave none, for the expected reason. */
static inline void check_null(const char *file, int line, const char *text, const void *result,
                              int expected) {
    if (result)
        report(file, line, "%s gave an array, expected status %d", text, expected);
    else
        check_status(file, line, text, pvg_last_status(), expected);
}

static inline void *check_made(const char *file, int line, const char *text, void *result) {
    if (result) return result;
    report(file, line, "%s gave NULL: status %d: %s", text, pvg_last_status(), pvg_last_error());
    exit(1);
}

#define CHECK(condition) check_true(__FILE__, __LINE__, (condition) != 0, #condition)
#define CHECK_EQUAL(value, expected) check_equal(__FILE__, __LINE__, #value, (value), (expected))
#define CHECK_CLOSE(value, expected, tolerance) \
    check_close(__FILE__, __LINE__, #value, (value), (expected), (tolerance))
#define CHECK_STATUS(call, expected) check_status(__FILE__, __LINE__, #call, (call), (expected))
#define CHECK_OK(call) CHECK_STATUS(call, PVG_OK)
/* CHECK_NULL(expected status, call) */
#define CHECK_NULL(expected, ...) \
    check_null(__FILE__, __LINE__, #__VA_ARGS__, (__VA_ARGS__), (expected))
/* A successful release leaves the error record alone, so that cleaning up keeps the reason for
 * it. */
static inline void release_all(const char *file, int line, pvg_array *const *arrays, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (pvg_array_release(arrays[i]) != PVG_OK)
            report(file, line, "release failed: %s", pvg_last_error());
}
#define RELEASE(...)                                                   \
    release_all(__FILE__, __LINE__, (pvg_array *const[]){__VA_ARGS__}, \
                COUNT(((pvg_array *const[]){__VA_ARGS__})))
/* The result of a call that must not fail; the test ends if it does. */
#define MADE(...) check_made(__FILE__, __LINE__, #__VA_ARGS__, (__VA_ARGS__))

/* ---- Random numbers: splitmix64, the same everywhere ----------------------------------------- */

static inline uint64_t random_bits(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
/* An integer from low to high, both included. */
static inline int64_t random_integer(uint64_t *state, int64_t low, int64_t high) {
    return low + (int64_t)(random_bits(state) % (uint64_t)(high - low + 1));
}
static inline double random_real(uint64_t *state, double low, double high) {
    return low + (high - low) * ((double)(random_bits(state) >> 11) / 9007199254740992.0);
}

/* ---- Host values of any dtype ---------------------------------------------------------------- */

/* Those that arrays can have, but complex ones, for which test_complex.c is; begin() lists them. */
enum { MOST_DTYPES = 100 };
static int all_dtypes[MOST_DTYPES], dtype_count = 0;
static inline void list_dtypes(void) {
    for (int code = 0; code < MOST_DTYPES; code++)
        if (pvg_dtype_size(code) > 0 && pvg_dtype_name(code)[0] != 'c')
            all_dtypes[dtype_count++] = code;
}
static const int64_t awkward_sizes[] = {0, 1, 2, 31, 32, 33, 255, 1023, 1024, 1025, 2053};

/* b(ool), u(nsigned), i(nteger), f(loat): the letter that the name begins with. */
static inline char kind_of(int dtype) {
    return dtype == PVG_BFLOAT16 ? 'f' : pvg_dtype_name(dtype)[0];
}
static inline int is_float(int dtype) { return kind_of(dtype) == 'f'; }

/* The rows of pvg_operations; begin() lists them. */
enum { MOST_OPERATIONS = 1000 };
typedef struct {
    int code;
    char name[32], family[16], domain[8], result[16];
} Operation;
static Operation all_operations[MOST_OPERATIONS];
static int operation_count = 0;
static inline void list_operations(void) {
    for (const char *line = pvg_operations(); *line; line = strchr(line, '\n') + 1) {
        Operation *o = &all_operations[operation_count++];
        CHECK_EQUAL(sscanf(line, "%d %31s %15s %7s %15s", &o->code, o->name, o->family, o->domain,
                           o->result),
                    5);
    }
}
static inline const Operation *row_of(int code) {
    for (int i = 0; i < operation_count; i++)
        if (all_operations[i].code == code) return &all_operations[i];
    report(__FILE__, __LINE__, "no operation has code %d", code);
    exit(1);
}
static inline int is_of(const Operation *o, const char *family) {
    return strcmp(o->family, family) == 0;
}

/* The dtype that an operation gives of operands promoted to one that it takes. */
static inline int result_dtype(const Operation *o, int dtype) {
    if (strcmp(o->result, "bool") == 0) return PVG_BOOL;
    if (strcmp(o->result, "index") == 0) return PVG_INT64;
    if (strcmp(o->result, "same") == 0 || strcmp(o->result, "real") == 0) return dtype;
    if (is_float(dtype)) return dtype;
    if (strcmp(o->result, "float") == 0) return PVG_FLOAT32;
    CHECK_EQUAL(strcmp(o->result, "wide"), 0);
    return kind_of(dtype) == 'u' ? PVG_UINT64 : PVG_INT64;
}

/* float16 (5 bits of exponent, 10 of fraction) and bfloat16 (8, 7) as numbers, and the bits of a
 * number rounded to the nearest, ties to even. */
static inline double half_value(uint16_t bits, int fraction_bits) {
    int bias = (1 << (14 - fraction_bits)) - 1, fraction = bits & ((1 << fraction_bits) - 1);
    int exponent = (bits & 0x7fff) >> fraction_bits;
    double value = ldexp(fraction, 1 - bias - fraction_bits);
    if (exponent) value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    if (exponent == 2 * bias + 1) value = fraction ? NAN : INFINITY;
    return bits & 0x8000 ? -value : value;
}
static inline uint16_t half_bits(double value, int fraction_bits) {
    int bias = (1 << (14 - fraction_bits)) - 1, exponent = 0;
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    uint16_t infinity = (uint16_t)((2 * bias + 1) << fraction_bits);
    if (isnan(value)) return 0x7fff;
    if (isinf(value)) return sign | infinity;
    if (value == 0) return sign;
    frexp(value, &exponent);
    if (exponent < 2 - bias) exponent = 2 - bias; /* subnormal numbers have the same last digit */
    int last = exponent - 1 - fraction_bits;
    /* A fraction that is rounded up to the next power of two carries into the exponent. */
    int64_t bits = (int64_t)rint(ldexp(fabs(value), -last)) +
                   ((int64_t)(exponent - 2 + bias) << fraction_bits);
    return sign | (bits < infinity ? (uint16_t)bits : infinity);
}

/* Of a complex number the real part. */
static inline double value_at(int dtype, const void *values, int64_t i) {
    if (dtype == PVG_COMPLEX64) return ((const float *)values)[2 * i];
    if (dtype == PVG_COMPLEX128) return ((const double *)values)[2 * i];
    int64_t size = pvg_dtype_size(dtype);
    int unused = 64 - 8 * (int)size;
    uint64_t bits = 0; /* of a little-endian number */
    float single;
    double number;
    memcpy(&bits, (const unsigned char *)values + i * size, (size_t)size);
    memcpy(&single, &bits, sizeof single);
    memcpy(&number, &bits, sizeof number);
    switch (kind_of(dtype)) {
    case 'b':
    case 'u': return (double)bits;
    case 'i': return (double)((int64_t)(bits << unused) >> unused);
    }
    return size == 8   ? number
           : size == 4 ? single
                       : half_value((uint16_t)bits, dtype == PVG_FLOAT16 ? 10 : 7);
}

/* Integers are stored modulo their range, complex numbers without an imaginary part. */
static inline void set_value(int dtype, void *values, int64_t i, double value) {
    if (dtype == PVG_COMPLEX64 || dtype == PVG_COMPLEX128) {
        const int part = dtype == PVG_COMPLEX64 ? PVG_FLOAT32 : PVG_FLOAT64;
        set_value(part, values, 2 * i, value);
        set_value(part, values, 2 * i + 1, 0);
        return;
    }
    int64_t size = pvg_dtype_size(dtype);
    unsigned char *to = (unsigned char *)values + i * size;
    if (!is_float(dtype)) {
        uint64_t bits = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
        if (kind_of(dtype) == 'b') bits = value != 0;
        memcpy(to, &bits, (size_t)size);
    } else if (size == 8) {
        memcpy(to, &value, sizeof value);
    } else if (size == 4) {
        float single = (float)value;
        memcpy(to, &single, sizeof single);
    } else {
        uint16_t bits = half_bits(value, dtype == PVG_FLOAT16 ? 10 : 7);
        memcpy(to, &bits, sizeof bits);
    }
}

/* Room for n elements, at least one byte; free() it. */
static inline void *host_memory(int dtype, int64_t n) {
    return check_made(__FILE__, __LINE__, "malloc",
                      calloc((size_t)n + 1, (size_t)pvg_dtype_size(dtype)));
}

/* n integers from -8 to 8 (0 to 8, 0 to 1) that every dtype holds exactly; free() them. */
static inline void *small_integers(int dtype, int64_t n, uint64_t *state) {
    void *values = host_memory(dtype, n);
    int64_t low = kind_of(dtype) == 'b' || kind_of(dtype) == 'u' ? 0 : -8;
    for (int64_t i = 0; i < n; i++)
        set_value(dtype, values, i, (double)random_integer(state, low, dtype == PVG_BOOL ? 1 : 8));
    return values;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static inline int64_t product(int ndim, const int64_t *shape) {
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= shape[i];
    return n;
}

static inline pvg_array *array_of(int dtype, int ndim, const int64_t *shape, const void *values) {
    pvg_array *array = MADE(pvg_array_empty(0, dtype, ndim, shape));
    CHECK_OK(pvg_copy_from_host(array, values, NULL));
    return array;
}

static inline pvg_array *random_array(int dtype, int ndim, const int64_t *shape, uint64_t *state) {
    void *values = small_integers(dtype, product(ndim, shape), state);
    pvg_array *array = array_of(dtype, ndim, shape, values);
    free(values);
    return array;
}

/* The elements in C order; free() them. */
static inline void *host_copy(const pvg_array *array) {
    void *values = host_memory(pvg_array_dtype(array), pvg_array_size(array));
    CHECK_OK(pvg_copy_to_host(array, values, NULL));
    return values;
}

static inline double element(const pvg_array *array, int64_t i) {
    void *values = host_copy(array);
    double value = i < pvg_array_size(array) ? value_at(pvg_array_dtype(array), values, i) : NAN;
    free(values);
    return value;
}

/* Dtype, shape and elements are those expected. Tolerance 0: the same bits; else relative to the
 * larger of 1 and the expected value, and NaN only where NaN is expected. */
static inline void check_array(const char *file, int line, const char *text, const pvg_array *array,
                               int dtype, int ndim, const int64_t *shape, const void *expected,
                               double tolerance) {
    int same = pvg_array_dtype(array) == dtype && pvg_array_ndim(array) == ndim;
    for (int i = 0; same && i < ndim; i++) same = pvg_array_shape(array)[i] == shape[i];
    if (!same) {
        report(file, line,
               "%s has dtype %d and %d dimensions, or another shape than expected (dtype %d, %d)",
               text, pvg_array_dtype(array), pvg_array_ndim(array), dtype, ndim);
        return;
    }
    size_t item = (size_t)pvg_dtype_size(dtype);
    unsigned char *values = host_copy(array);
    for (int64_t i = 0; i < product(ndim, shape); i++) {
        size_t at = (size_t)i * item;
        double value = value_at(dtype, values, i), wanted = value_at(dtype, expected, i);
        if (memcmp(values + at, (const unsigned char *)expected + at, item) == 0) continue;
        if (tolerance > 0 && (value == wanted || (isnan(value) && isnan(wanted)))) continue;
        if (tolerance > 0 && fabs(value - wanted) <= tolerance * fmax(1, fabs(wanted))) continue;
        report(file, line, "%s[%" PRId64 "] is %.17g, expected %.17g (tolerance %g)", text, i,
               value, wanted, tolerance);
        break;
    }
    free(values);
}
/* CHECK_ARRAY(array, dtype, SHAPE(...), expected elements in C order, tolerance) */
#define CHECK_ARRAY(array, ...) check_array(__FILE__, __LINE__, #array, array, __VA_ARGS__)

/* ---- The program ----------------------------------------------------------------------------- */

static inline int64_t memory_value(int which) {
    int64_t values[PVG_MEMORY_COUNT] = {0};
    CHECK_OK(pvg_memory_info(0, values));
    return values[which];
}

static inline void apply_environment(void) {
    const char *allocators[] = {"pool", "direct", "debug"}, *name = getenv("PVG_TEST_ALLOCATOR");
    int mode = PVG_ALLOCATOR_DEBUG;
    while (name && mode >= 0 && strcmp(name, allocators[mode]) != 0) mode--;
    if (name && mode < 0)
        report(__FILE__, __LINE__, "PVG_TEST_ALLOCATOR is %s, not pool, direct or debug", name);
    if (name && mode >= 0) CHECK_OK(pvg_set_option(PVG_OPTION_ALLOCATOR, mode));
#ifdef PVG_TEST_SIMULATOR
    static const char *const settings[][2] = {{"PVG_TEST_SIM_ORDER", "order"},
                                              {"PVG_TEST_SIM_SEED", "seed"},
                                              {"PVG_TEST_SIM_CHECK_ORDER", "check_order"},
                                              {"PVG_TEST_SIM_DEFERRED", "deferred"},
                                              {"PVG_TEST_SIM_CARD", "card0"},
                                              {"PVG_TEST_SIM_WORKERS", "workers"},
                                              {"PVG_TEST_SIM_GUARD", "guard"},
                                              {"PVG_TEST_SIM_PATIENCE", "patience"},
                                              {"PVG_TEST_SIM_PRINT", "print"}};
    for (size_t i = 0; i < COUNT(settings); i++) {
        const char *value = getenv(settings[i][0]);
        if (value) CHECK_EQUAL(pvg_sim_set(settings[i][1], strtoll(value, NULL, 10)), 0);
    }
#endif
}

/* Starts a test; ends it with 77 where there is no device. */
static inline void begin(const char *program) {
    int count = 0;
    check_program = program;
    list_dtypes();
    list_operations();
    apply_environment();
    if (pvg_device_count(&count) == PVG_OK && count > 0) return;
    printf("%s: no device: %s\n", program, pvg_last_error());
    exit(check_failures ? 1 : NO_DEVICE);
}

/* Nothing is left behind: no array alive, no memory in use. */
static inline void check_clean(void) {
    CHECK_EQUAL(pvg_counter(PVG_COUNT_LIVE_ARRAYS), 0);
    CHECK_OK(pvg_synchronize(0));
    CHECK_EQUAL(memory_value(PVG_MEMORY_USED), 0);
    CHECK_EQUAL(memory_value(PVG_MEMORY_BLOCKS), 0);
    CHECK_EQUAL(pvg_counter(PVG_COUNT_CANARY_ERRORS), check_canary_errors);
}

static inline void run_section(const char *name, void (*section)(void)) {
    check_section = name;
    section();
    check_clean();
}
#define RUN(section) run_section(#section, section)

/* Ends a test that used a device; the value is main's. */
static inline int finish(void) {
    check_section = "finish";
    check_clean();
    CHECK_OK(pvg_empty_cache(0));
    CHECK_EQUAL(memory_value(PVG_MEMORY_RESERVED), 0);
    CHECK_EQUAL(pvg_is_healthy(), 1);
#ifdef PVG_TEST_SIMULATOR
    CHECK(strcmp(pvg_sim_message(), "") == 0); /* not one report, damaged memory or a race */
#endif
    printf("%s: %s\n", check_program, check_failures ? "FAILED" : "passed");
    return check_failures != 0;
}

#endif
