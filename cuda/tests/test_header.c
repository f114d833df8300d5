/* The header in C99, and the functions that need no device. That its numbers do not change is seen
 * by tests/test_abi.py, which compares them with the Python package's. */
#include "check.h"

static void build_information(void) {
    const char *info = pvg_build_info(),
               *keys[] = {"version:", "toolkit:", "architectures:", "compiler:", "simulator:"};
    CHECK_EQUAL(pvg_abi_version(), PVG_ABI_VERSION);
    CHECK(info == pvg_build_info());
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *key = strstr(info, keys[i]);
        CHECK(key && (key == info || key[-1] == '\n'));
    }
#ifdef PVG_TEST_SIMULATOR
    CHECK(strstr(info, "simulator: yes"));
#else
    CHECK(strstr(info, "simulator: no"));
#endif
}

/* Of all that there will be, by code. */
enum { B, I1, I2, I4, I8, U1, U2, U4, U8, F2, BF, F4, F8, C4, C8, CODES };
static const char *const names[CODES] = {
    "bool",   "int8",    "int16",    "int32",   "int64",   "uint8",     "uint16",    "uint32",
    "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
static const int64_t sizes[CODES] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
/* NumPy's result_type; of bfloat16 beside integers as in JAX. */
static const int promoted[CODES][CODES] = {
    {B, I1, I2, I4, I8, U1, U2, U4, U8, F2, BF, F4, F8, C4, C8},
    {I1, I1, I2, I4, I8, I2, I4, I8, F8, F2, BF, F4, F8, C4, C8},
    {I2, I2, I2, I4, I8, I2, I4, I8, F8, F4, BF, F4, F8, C4, C8},
    {I4, I4, I4, I4, I8, I4, I4, I8, F8, F8, BF, F8, F8, C8, C8},
    {I8, I8, I8, I8, I8, I8, I8, I8, F8, F8, BF, F8, F8, C8, C8},
    {U1, I2, I2, I4, I8, U1, U2, U4, U8, F2, BF, F4, F8, C4, C8},
    {U2, I4, I4, I4, I8, U2, U2, U4, U8, F4, BF, F4, F8, C4, C8},
    {U4, I8, I8, I8, I8, U4, U4, U4, U8, F8, BF, F8, F8, C8, C8},
    {U8, F8, F8, F8, F8, U8, U8, U8, U8, F8, BF, F8, F8, C8, C8},
    {F2, F2, F4, F8, F8, F2, F4, F8, F8, F2, F4, F4, F8, C4, C8},
    {BF, BF, BF, BF, BF, BF, BF, BF, BF, F4, BF, F4, F8, C4, C8},
    {F4, F4, F4, F8, F8, F4, F4, F8, F8, F4, F4, F4, F8, C4, C8},
    {F8, F8, F8, F8, F8, F8, F8, F8, F8, F8, F8, F8, F8, C8, C8},
    {C4, C4, C4, C8, C8, C4, C4, C8, C8, C4, C4, C4, C8, C4, C8},
    {C8, C8, C8, C8, C8, C8, C8, C8, C8, C8, C8, C8, C8, C8, C8}};

static void dtypes_and_promotion(void) {
    for (int a = -2; a < 1000; a++) {
        int is_code = a >= 0 && a < CODES, is_dtype = pvg_dtype_size(a) != 0;
        CHECK_EQUAL(strcmp(pvg_dtype_name(a), is_code ? names[a] : "?"), 0);
        if (is_dtype) CHECK_EQUAL(pvg_dtype_size(a), is_code ? sizes[a] : 0);
        CHECK_EQUAL(pvg_supports(PVG_ADD, a), is_dtype);
        for (int b = -2; b < CODES + 2; b++) {
            int both = is_code && b >= 0 && b < CODES && is_dtype && pvg_dtype_size(b) != 0;
            CHECK_EQUAL(pvg_promote(a, b), both ? promoted[a][b] : -1);
        }
    }
    CHECK(dtype_count >= 9);
}

/* Each by its row; what rows say is compared with the Python package's by
 * tests/test_operations.py. */
static void supported_operations(void) {
    for (int i = 0; i < dtype_count; i++) {
        const int dtype = all_dtypes[i];
        for (int k = 0; k < operation_count; k++) {
            const Operation *o = &all_operations[k];
            CHECK_EQUAL(pvg_supports(o->code, dtype), strchr(o->domain, kind_of(dtype)) != NULL);
        }
        CHECK_EQUAL(pvg_supports(PVG_ADD, dtype), 1);
        CHECK_EQUAL(pvg_supports(PVG_NEGATIVE, dtype), dtype != PVG_BOOL);
        CHECK_EQUAL(pvg_supports(PVG_DENSE, dtype), is_float(dtype));
        CHECK_EQUAL(pvg_supports(PVG_NONE, dtype), 0);
        CHECK_EQUAL(pvg_supports(99999, dtype), 0);
        CHECK_EQUAL(pvg_supports(-1, dtype), 0);
    }
}

static void options_and_counters(void) {
    int64_t value = -1;
    CHECK_OK(pvg_get_option(PVG_OPTION_DEFAULT_FLOAT, &value));
    CHECK_EQUAL(value, PVG_FLOAT32);
    CHECK_OK(pvg_set_option(PVG_OPTION_DEFAULT_FLOAT, PVG_FLOAT64));
    CHECK_OK(pvg_get_option(PVG_OPTION_DEFAULT_FLOAT, &value));
    CHECK_EQUAL(value, PVG_FLOAT64);
    CHECK_OK(pvg_set_option(PVG_OPTION_DEFAULT_FLOAT, PVG_FLOAT32));
    CHECK_OK(pvg_get_option(PVG_OPTION_SYNC, &value));
    CHECK_EQUAL(value, 0);
    CHECK_OK(pvg_get_option(PVG_OPTION_LAUNCH_LOG, &value));
    CHECK_EQUAL(value, 0);
    CHECK_OK(pvg_get_option(PVG_OPTION_MATMUL_PRECISION, &value));
    CHECK_EQUAL(value, PVG_PRECISION_FLOAT32);
    CHECK_OK(pvg_get_option(PVG_OPTION_MATMUL_KERNEL, &value));
    CHECK_EQUAL(value, PVG_MATMUL_AUTO);
    static const int64_t wrong[][2] = {{PVG_OPTION_DEFAULT_FLOAT, PVG_INT32},
                                       {PVG_OPTION_SYNC, 2},
                                       {PVG_OPTION_LAUNCH_LOG, -1},
                                       {PVG_OPTION_ALLOCATOR, 3},
                                       {PVG_OPTION_ALLOCATOR, -1},
                                       {PVG_OPTION_MATMUL_PRECISION, PVG_PRECISION_DEFAULT},
                                       {PVG_OPTION_MATMUL_PRECISION, 7},
                                       {PVG_OPTION_MATMUL_KERNEL, -1},
                                       {PVG_OPTION_MATMUL_KERNEL, PVG_MATMUL_OUTER + 1},
                                       {6, 0},
                                       {-1, 0}};
    for (size_t i = 0; i < COUNT(wrong); i++)
        CHECK_STATUS(pvg_set_option((int)wrong[i][0], wrong[i][1]), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_get_option(99, &value), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_get_option(PVG_OPTION_SYNC, NULL), PVG_ERROR_VALUE);
    CHECK_EQUAL(value, 0);
    for (int counter = PVG_COUNT_LAUNCHES; counter <= PVG_COUNT_CANARY_ERRORS; counter++)
        CHECK_EQUAL(pvg_counter(counter), 0);
    CHECK_EQUAL(pvg_counter(PVG_COUNT_CANARY_ERRORS + 1), -1);
    CHECK_EQUAL(pvg_counter(-1), -1);
}

int main(void) {
    void (*const sections[])(void) = {build_information, dtypes_and_promotion, supported_operations,
                                      options_and_counters};
    check_section = "test_header";
    list_dtypes();
    list_operations();
    for (size_t i = 0; i < COUNT(sections); i++) sections[i]();
    printf("test_header: %s\n", check_failures ? "FAILED" : "passed");
    return check_failures != 0;
}
