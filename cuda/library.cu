// The library as a whole: version, options, counters, which operation takes which dtype.
#include "arrays/dispatch.cuh"
#include "runtime/device.cuh"
#include "runtime/memory.cuh"

// The Makefile passes these; a compiler run by hand need not.
#ifndef PVG_BUILD_VERSION
#define PVG_BUILD_VERSION "unknown"
#endif
#ifndef PVG_BUILD_TOOLKIT
#define PVG_BUILD_TOOLKIT "unknown"
#endif
#ifndef PVG_BUILD_ARCHITECTURES
#define PVG_BUILD_ARCHITECTURES "unknown"
#endif
#ifdef PVG_SIMULATOR
#define PVG_BUILD_SIMULATOR "yes"
#else
#define PVG_BUILD_SIMULATOR "no"
#endif

namespace pvg {
bool elementwise_supports(int operation, int dtype); // kernels/elementwise
bool copy_supports(int operation, int dtype);        // arrays/copy.cu
bool reduce_supports(int operation, int dtype);      // kernels/reduce.cu
bool matmul_supports(int operation, int dtype);      // kernels/matmul/

extern std::atomic<int64_t> option_matmul_kernel, option_matmul_precision; // kernels/matmul

static int set_allocator(int64_t value) {
    PVG_REQUIRE(value >= PVG_ALLOCATOR_POOL && value <= PVG_ALLOCATOR_DEBUG, PVG_ERROR_VALUE,
                "unknown allocator %lld", static_cast<long long>(value));
    PVG_REQUIRE(value == option_allocator || counters[PVG_COUNT_LIVE_ARRAYS] == 0, PVG_ERROR_VALUE,
                "the allocator can only be changed while no array is alive; %lld are",
                static_cast<long long>(counters[PVG_COUNT_LIVE_ARRAYS]));
    if (value != option_allocator) PVG_PASS(empty_all_caches());
    option_allocator = value;
    return PVG_OK;
}

static int set_option(int option, int64_t value) {
    switch (option) {
    case PVG_OPTION_SYNC:
    case PVG_OPTION_LAUNCH_LOG:
        PVG_REQUIRE(value == 0 || value == 1, PVG_ERROR_VALUE, "option %d takes 0 or 1, got %lld",
                    option, static_cast<long long>(value));
        (option == PVG_OPTION_SYNC ? option_sync : option_launch_log) = value;
        return PVG_OK;
    case PVG_OPTION_ALLOCATOR: return set_allocator(value);
    case PVG_OPTION_DEFAULT_FLOAT:
        PVG_REQUIRE(value == PVG_FLOAT32 || value == PVG_FLOAT64, PVG_ERROR_VALUE,
                    "the default float dtype is float32 or float64, not dtype code %lld",
                    static_cast<long long>(value));
        set_default_float(static_cast<int>(value));
        return PVG_OK;
    case PVG_OPTION_MATMUL_PRECISION:
        PVG_REQUIRE(value >= PVG_PRECISION_IEEE && value <= PVG_PRECISION_FP16, PVG_ERROR_VALUE,
                    "unknown precision code %lld", static_cast<long long>(value));
        option_matmul_precision = value;
        return PVG_OK;
    case PVG_OPTION_MATMUL_KERNEL:
        PVG_REQUIRE(value >= PVG_MATMUL_AUTO && value <= PVG_MATMUL_TINY, PVG_ERROR_VALUE,
                    "unknown code %lld of a matmul kernel", static_cast<long long>(value));
        option_matmul_kernel = value;
        return PVG_OK;
    }
    return fail(PVG_ERROR_VALUE, "unknown option %d", option);
}

static int get_option(int option, int64_t *value) {
    PVG_REQUIRE(value, PVG_ERROR_VALUE, "value is a null pointer");
    switch (option) {
    case PVG_OPTION_SYNC: *value = option_sync; return PVG_OK;
    case PVG_OPTION_LAUNCH_LOG: *value = option_launch_log; return PVG_OK;
    case PVG_OPTION_ALLOCATOR: *value = option_allocator; return PVG_OK;
    case PVG_OPTION_DEFAULT_FLOAT: *value = default_float(); return PVG_OK;
    case PVG_OPTION_MATMUL_PRECISION: *value = option_matmul_precision; return PVG_OK;
    case PVG_OPTION_MATMUL_KERNEL: *value = option_matmul_kernel; return PVG_OK;
    }
    return fail(PVG_ERROR_VALUE, "unknown option %d", option);
}

} // namespace pvg

PVG_API int pvg_abi_version(void) { return PVG_ABI_VERSION; }

PVG_API const char *pvg_build_info(void) {
    return "version: " PVG_BUILD_VERSION "\n"
           "toolkit: " PVG_BUILD_TOOLKIT "\n"
           "architectures: " PVG_BUILD_ARCHITECTURES "\n"
           "compiler: " __VERSION__ "\n"
           "simulator: " PVG_BUILD_SIMULATOR "\n";
}

PVG_API int pvg_set_option(int option, int64_t value) {
    pvg::clear_error();
    return pvg::set_option(option, value);
}

PVG_API int pvg_get_option(int option, int64_t *value) {
    pvg::clear_error();
    return pvg::get_option(option, value);
}

PVG_API int64_t pvg_counter(int counter) {
    return counter >= 0 && counter < 8 ? pvg::counters[counter].load() : -1;
}

PVG_API int pvg_supports(int operation, int dtype) {
    if (!pvg::dtype_is_valid(dtype)) return 0;
    return pvg::elementwise_supports(operation, dtype) || pvg::copy_supports(operation, dtype) ||
           pvg::reduce_supports(operation, dtype) || pvg::matmul_supports(operation, dtype);
}
