/* The header in C99: its numbers, and the functions that need no device. Numbers never change
 * their meaning, so they are written out here once more. */
#include "check.h"

static const int codes[][2] = {
    {PVG_OK, 0},
    {PVG_ERROR_VALUE, 1},
    {PVG_ERROR_TYPE, 2},
    {PVG_ERROR_INDEX, 3},
    {PVG_ERROR_AXIS, 4},
    {PVG_ERROR_OVERFLOW, 5},
    {PVG_ERROR_MEMORY, 6},
    {PVG_ERROR_HOST_MEMORY, 7},
    {PVG_ERROR_UNAVAILABLE, 8},
    {PVG_ERROR_LAUNCH, 9},
    {PVG_ERROR_DEVICE_LOST, 10},
    {PVG_ERROR_CUDA, 11},
    {PVG_BOOL, 0},
    {PVG_INT32, 3},
    {PVG_INT64, 4},
    {PVG_UINT8, 5},
    {PVG_UINT64, 8},
    {PVG_FLOAT32, 11},
    {PVG_FLOAT64, 12},
    {PVG_SCALAR_BOOL, 0},
    {PVG_SCALAR_INT, 1},
    {PVG_SCALAR_UINT, 2},
    {PVG_SCALAR_FLOAT, 3},
    {PVG_NONE, 0},
    {PVG_NEGATIVE, 1},
    {PVG_ABS, 2},
    {PVG_EXP, 3},
    {PVG_LOG, 4},
    {PVG_SQRT, 5},
    {PVG_TANH, 6},
    {PVG_SIGMOID, 7},
    {PVG_RELU, 8},
    {PVG_GELU, 9},
    {PVG_SILU, 10},
    {PVG_ADD, 100},
    {PVG_SUBTRACT, 101},
    {PVG_MULTIPLY, 102},
    {PVG_DIVIDE, 103},
    {PVG_MAXIMUM, 104},
    {PVG_MINIMUM, 105},
    {PVG_EQUAL, 120},
    {PVG_NOT_EQUAL, 121},
    {PVG_LESS, 122},
    {PVG_LESS_EQUAL, 123},
    {PVG_GREATER, 124},
    {PVG_GREATER_EQUAL, 125},
    {PVG_SUM, 200},
    {PVG_MEAN, 201},
    {PVG_MAX, 202},
    {PVG_MIN, 203},
    {PVG_ARGMAX, 204},
    {PVG_FILL, 300},
    {PVG_COPY, 301},
    {PVG_CAST, 302},
    {PVG_WHERE, 303},
    {PVG_MATMUL, 304},
    {PVG_DENSE, 305},
    {PVG_PRECISION_DEFAULT, 0},
    {PVG_PRECISION_IEEE, 1},
    {PVG_PRECISION_FLOAT32, 2},
    {PVG_PRECISION_FAST32, 3},
    {PVG_PRECISION_TF32, 4},
    {PVG_PRECISION_BF16, 5},
    {PVG_PRECISION_FP16, 6},
    {PVG_MATMUL_AUTO, 0},
    {PVG_MATMUL_TILED, 1},
    {PVG_MATMUL_FFMA_128X128, 2},
    {PVG_MATMUL_FFMA_64X128, 3},
    {PVG_MATMUL_FFMA_64X64, 4},
    {PVG_MATMUL_FFMA_64X32, 5},
    {PVG_MATMUL_FFMA_TMA, 6},
    {PVG_MATMUL_TENSOR, 7},
    {PVG_MATMUL_TENSOR_SM80, 8},
    {PVG_MATMUL_BF16X6, 9},
    {PVG_MATMUL_FP16X3, 10},
    {PVG_MATMUL_DMMA, 11},
    {PVG_MATMUL_GEMV, 12},
    {PVG_MATMUL_TINY, 13},
    {PVG_OPTION_SYNC, 0},
    {PVG_OPTION_LAUNCH_LOG, 1},
    {PVG_OPTION_ALLOCATOR, 2},
    {PVG_OPTION_DEFAULT_FLOAT, 3},
    {PVG_OPTION_MATMUL_PRECISION, 4},
    {PVG_OPTION_MATMUL_KERNEL, 5},
    {PVG_ALLOCATOR_POOL, 0},
    {PVG_ALLOCATOR_DIRECT, 1},
    {PVG_ALLOCATOR_DEBUG, 2},
    {PVG_MEMORY_USED, 0},
    {PVG_MEMORY_RESERVED, 1},
    {PVG_MEMORY_PEAK, 2},
    {PVG_MEMORY_LIMIT, 3},
    {PVG_MEMORY_FREE, 4},
    {PVG_MEMORY_TOTAL, 5},
    {PVG_MEMORY_BLOCKS, 6},
    {PVG_MEMORY_ALLOCATIONS, 7},
    {PVG_MEMORY_DRIVER_CALLS, 8},
    {PVG_COUNT_LAUNCHES, 0},
    {PVG_COUNT_COPIES_TO_DEVICE, 1},
    {PVG_COUNT_BYTES_TO_DEVICE, 2},
    {PVG_COUNT_COPIES_TO_HOST, 3},
    {PVG_COUNT_BYTES_TO_HOST, 4},
    {PVG_COUNT_WAITS, 5},
    {PVG_COUNT_LIVE_ARRAYS, 6},
    {PVG_COUNT_CANARY_ERRORS, 7},
    {PVG_ERROR_VALUE_CUDA_CODE, 0},
    {PVG_ERROR_VALUE_REQUESTED, 1},
    {PVG_ERROR_VALUE_FREE, 2},
    {PVG_ERROR_VALUE_RESERVED, 3},
    {PVG_ERROR_VALUE_DEVICE, 4},
    {PVG_MAX_THREADS_PER_BLOCK, 0},
    {PVG_WARP_SIZE, 12},
    {PVG_MULTIPROCESSOR_COUNT, 13},
    {PVG_COMPUTE_CAPABILITY_MAJOR, 22},
    {PVG_GLOBAL_L1_CACHE_SUPPORTED, 41},
};

static void numbers_of_the_enumerations(void) {
    CHECK_EQUAL(PVG_MAX_NDIM, 32);
    for (size_t i = 0; i < COUNT(codes); i++) CHECK_EQUAL(codes[i][0], codes[i][1]);
}

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

static void dtypes_and_promotion(void) {
    /* NumPy's result_type, in the order of all_dtypes: bool, uint8, int32, int64, uint64,
     * float32, float64, float16, bfloat16; of bfloat16 beside integers as in JAX. */
    enum { B = PVG_BOOL, U1 = PVG_UINT8, I4 = PVG_INT32, I8 = PVG_INT64, U8 = PVG_UINT64 };
    enum { F4 = PVG_FLOAT32, F8 = PVG_FLOAT64, F2 = PVG_FLOAT16, BF = PVG_BFLOAT16 };
    static const int promoted[9][9] = {
        {B, U1, I4, I8, U8, F4, F8, F2, BF},  {U1, U1, I4, I8, U8, F4, F8, F2, BF},
        {I4, I4, I4, I8, F8, F8, F8, F8, BF}, {I8, I8, I8, I8, F8, F8, F8, F8, BF},
        {U8, U8, F8, F8, U8, F8, F8, F8, BF}, {F4, F4, F8, F8, F8, F4, F8, F4, F4},
        {F8, F8, F8, F8, F8, F8, F8, F8, F8}, {F2, F2, F8, F8, F8, F4, F8, F2, F4},
        {BF, BF, BF, BF, BF, F4, F8, F4, BF}};
    static const int64_t sizes[9] = {1, 1, 4, 8, 8, 4, 8, 2, 2};
    for (int i = 0; i < 9; i++) {
        CHECK_EQUAL(pvg_dtype_size(all_dtypes[i]), sizes[i]);
        for (int j = 0; j < 9; j++)
            CHECK_EQUAL(pvg_promote(all_dtypes[i], all_dtypes[j]), promoted[i][j]);
    }
    static const int unknown[] = {-1, 1, 2, 6, 7, 13, 14, 1000};
    for (size_t i = 0; i < COUNT(unknown); i++) {
        CHECK_EQUAL(pvg_dtype_size(unknown[i]), 0);
        CHECK_EQUAL(pvg_promote(unknown[i], PVG_FLOAT32), -1);
        CHECK_EQUAL(pvg_promote(PVG_FLOAT32, unknown[i]), -1);
        CHECK_EQUAL(pvg_supports(PVG_ADD, unknown[i]), 0);
    }
}

static void supported_operations(void) {
    static const int all[] = {PVG_ABS,    PVG_EXP,     PVG_SIGMOID, PVG_ADD,           PVG_MULTIPLY,
                              PVG_DIVIDE, PVG_MAXIMUM, PVG_EQUAL,   PVG_GREATER_EQUAL, PVG_SUM,
                              PVG_MEAN,   PVG_MAX,     PVG_ARGMAX,  PVG_FILL,          PVG_COPY,
                              PVG_CAST,   PVG_WHERE,   PVG_MATMUL,  PVG_GELU,          PVG_SILU};
    for (size_t i = 0; i < COUNT(all); i++)
        for (size_t j = 0; j < COUNT(all_dtypes); j++)
            CHECK_EQUAL(pvg_supports(all[i], all_dtypes[j]), 1);
    for (size_t j = 0; j < COUNT(all_dtypes); j++) {
        CHECK_EQUAL(pvg_supports(PVG_DENSE, all_dtypes[j]), is_float(all_dtypes[j]));
        CHECK_EQUAL(pvg_supports(PVG_NEGATIVE, all_dtypes[j]), all_dtypes[j] != PVG_BOOL);
        CHECK_EQUAL(pvg_supports(PVG_RELU, all_dtypes[j]), all_dtypes[j] != PVG_BOOL);
        CHECK_EQUAL(pvg_supports(PVG_SUBTRACT, all_dtypes[j]), all_dtypes[j] != PVG_BOOL);
        CHECK_EQUAL(pvg_supports(0, all_dtypes[j]), 0);
        CHECK_EQUAL(pvg_supports(99999, all_dtypes[j]), 0);
        CHECK_EQUAL(pvg_supports(-1, all_dtypes[j]), 0);
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
                                       {PVG_OPTION_MATMUL_KERNEL, 15},
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
    void (*const sections[])(void) = {numbers_of_the_enumerations, build_information,
                                      dtypes_and_promotion, supported_operations,
                                      options_and_counters};
    check_section = "test_header";
    for (size_t i = 0; i < COUNT(sections); i++) sections[i]();
    printf("test_header: %s\n", check_failures ? "FAILED" : "passed");
    return check_failures != 0;
}
