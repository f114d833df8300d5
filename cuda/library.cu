// The library as a whole: version, options, counters, which operation takes which dtype.
#include "arrays/operation.cuh"
#include "runtime/device.cuh"
#include "runtime/memory.cuh"
#include <stdio.h>
#include <stdlib.h>

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
// The families of operations.
Operations unary_operations();        // kernels/elementwise.cu
Operations binary_operations();       // kernels/elementwise.cu
Operations reduce_operations();       // kernels/reduce.cu
Operations copy_operations();         // arrays/copy.cu
Operations where_operations();        // kernels/where.cu
Operations triangle_operations();     // kernels/triangle.cu
Operations join_operations();         // kernels/join.cu
Operations scan_operations();         // kernels/scan.cu
Operations statistics_operations();   // kernels/reduce_statistics.cu
Operations sequence_operations();     // kernels/sequence.cu
Operations clip_operations();         // kernels/clip.cu
Operations nearness_operations();     // kernels/nearness.cu
Operations softmax_operations();      // kernels/reduce_softmax.cu
Operations normalize_operations();    // kernels/normalize.cu
Operations label_operations();        // kernels/cross_entropy.cu
Operations curve_operations();        // kernels/activations.cu
Operations pair_loss_operations();    // kernels/pair_losses.cu
Operations gather_operations();       // kernels/gather.cu
Operations nonzero_operations();      // kernels/nonzero.cu
Operations sort_operations();         // kernels/sort.cu
Operations searchsorted_operations(); // kernels/searchsorted.cu
Operations bincount_operations();     // kernels/bincount.cu
Operations accumulate_operations();   // kernels/accumulate.cu
Operations pool_operations();         // kernels/pool.cu
Operations factor_operations();       // kernels/factor.cu
Operations random_operations();       // kernels/random.cu
Operations matmul_operations();       // kernels/matmul/
Operations optimize_operations();     // kernels/optimize.cu
Operations norm_operations();         // kernels/norms.cu
Operations dropout_operations();      // kernels/dropout.cu
Operations convolution_operations();  // kernels/matmul/
Operations attention_operations();    // kernels/attention.cu
Operations recurrent_operations();    // kernels/matmul/

static Operations (*const families[])() = {
    unary_operations,       binary_operations,    reduce_operations,       copy_operations,
    where_operations,       triangle_operations,  scan_operations,         gather_operations,
    nonzero_operations,     sort_operations,      searchsorted_operations, bincount_operations,
    factor_operations,      random_operations,    matmul_operations,       join_operations,
    statistics_operations,  softmax_operations,   sequence_operations,     clip_operations,
    accumulate_operations,  nearness_operations,  optimize_operations,     norm_operations,
    dropout_operations,     normalize_operations, label_operations,        pool_operations,
    convolution_operations, attention_operations, recurrent_operations,    curve_operations,
    pair_loss_operations};

static bool supports(int code, int dtype) {
    for (const auto operations : families)
        if (const Operation *operation = operations().find(code))
            return is_among(dtype, operation->domain);
    return false;
}

struct Letters { char letters[6]; };
static Letters domain_letters(Kinds domain) {
    Letters result = {};
    int n = 0;
    for (int kind = 0; kind < 5; kind++)
        if (domain & only(static_cast<Kind>(kind))) result.letters[n++] = "buifc"[kind];
    return result;
}
static const char *word(Family family) {
    switch (family) {
    case Family::unary: return "unary";
    case Family::binary: return "binary";
    case Family::reduce: return "reduce";
    case Family::other: return "other";
    }
    return "?";
}
static const char *word(Gives gives) {
    switch (gives) {
    case Gives::same: return "same";
    case Gives::floating: return "float";
    case Gives::boolean: return "bool";
    case Gives::real: return "real";
    case Gives::wide: return "wide";
    case Gives::index: return "index";
    case Gives::none: return "none";
    }
    return "?";
}
static const char *word(Identity identity) {
    switch (identity) {
    case Identity::none: return "none";
    case Identity::zero: return "0";
    case Identity::one: return "1";
    }
    return "?";
}
static const char *word(Order order) {
    switch (order) {
    case Order::none: return "none";
    case Order::largest: return "largest";
    case Order::smallest: return "smallest";
    }
    return "?";
}

// All operations, a line each, as far as there is room; returns the length that they need, like
// snprintf.
static size_t write_operations(char *text, size_t room) {
    size_t length = 0;
    for (const auto operations : families)
        for (const Operation &operation : operations()) {
            const bool fits = length < room;
            length += static_cast<size_t>(
                snprintf(fits ? text + length : nullptr, fits ? room - length : 0,
                         "%d %s %s %s %s %s %s\n", operation.code, operation.name,
                         word(operation.family), domain_letters(operation.domain).letters,
                         word(operation.gives), word(operation.identity), word(operation.order)));
        }
    return length;
}

// Never freed. NULL: no host memory.
static const char *make_operations_text() {
    const size_t room = write_operations(nullptr, 0) + 1;
    char *text = static_cast<char *>(malloc(room));
    if (text) write_operations(text, room);
    return text;
}

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
        PVG_REQUIRE(value >= PVG_MATMUL_AUTO && value <= PVG_MATMUL_OUTER, PVG_ERROR_VALUE,
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

PVG_API int pvg_supports(int operation, int dtype) { return pvg::supports(operation, dtype); }

PVG_API const char *pvg_operations(void) {
    static const char *const text = pvg::make_operations_text();
    return text ? text : "";
}
