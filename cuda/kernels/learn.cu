// pvg_learn: the kernels of cuda/lessons, launched with the grid and the block that a reader chose.
//
// The lesson files are included up to their main(), which PVG_LESSON_KERNELS leaves out, so that a
// kernel is written once. Each has a namespace of its own, as their other names may meet. Here are
// only the checks that keep a launch inside the arrays; a launch that leaves elements out is fine.
#include "arrays/call.cuh"
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PVG_LESSON_KERNELS

namespace pvg {
namespace {

namespace lesson_05 {
#include "lessons/05_blocks_and_grids.cu"
}
namespace lesson_08 {
#include "lessons/08_two_dimensions.cu"
}
namespace lesson_09 {
#include "lessons/09_three_dimensions.cu"
}
namespace lesson_10 {
#include "lessons/10_device_functions.cu"
}
namespace lesson_11 {
#include "lessons/11_matrix_product.cu"
}
namespace lesson_15 {
#include "lessons/15_layer.cu"
}

struct Chosen {
    int kernel;
    int64_t grid[3], block[3];
    const pvg_array *inputs[3]; // the rest NULL
    pvg_array *out;
    int64_t launches;
};

struct Events {
    cudaEvent_t start = nullptr, stop = nullptr;
    Events() = default;
    Events(const Events &) = delete;
    Events &operator=(const Events &) = delete;
    ~Events() {
        if (start) (void)cudaEventDestroy(start);
        if (stop) (void)cudaEventDestroy(stop);
    }
};

// ---- Checks -------------------------------------------------------------------------------------

const char *kernel_name(int kernel) {
    switch (kernel) {
    case PVG_LESSON_VECTOR_ADD: return "vector_add";
    case PVG_LESSON_MATRIX_ADD: return "matrix_add";
    case PVG_LESSON_MATRIX_ADD_SLOW: return "matrix_add_slow";
    case PVG_LESSON_TENSOR_ADD: return "tensor_add";
    case PVG_LESSON_SIGMOID: return "sigmoid";
    case PVG_LESSON_MATMUL_NAIVE: return "matmul_naive";
    case PVG_LESSON_MATMUL_COALESCED: return "matmul_coalesced";
    case PVG_LESSON_MATMUL_TILED: return "matmul_tiled";
    case PVG_LESSON_MATMUL_REGISTERS: return "matmul_registers";
    case PVG_LESSON_LAYER: return "layer";
    }
    return nullptr;
}

int inputs_of(int kernel) {
    if (kernel == PVG_LESSON_SIGMOID) return 1;
    return kernel == PVG_LESSON_LAYER ? 3 : 2;
}

int check_arrays(const Chosen &c, int *device) {
    int count = inputs_of(c.kernel);
    PVG_PASS(check_array(c.out, "out"));
    PVG_PASS(check_operands(c.inputs, count, device));
    PVG_REQUIRE(device_of(c.out) == *device, PVG_ERROR_VALUE,
                "out lives on device %d, the operands on device %d", device_of(c.out), *device);
    PVG_REQUIRE(!c.out->readonly, PVG_ERROR_VALUE, "out is read-only (a broadcast view)");
    for (int i = 0; i <= count; i++) {
        const pvg_array *a = i < count ? c.inputs[i] : c.out;
        PVG_REQUIRE(a->dtype == PVG_FLOAT32, PVG_ERROR_TYPE, "takes float32, got %s",
                    dtype_name(a->dtype));
        PVG_REQUIRE(is_contiguous(a), PVG_ERROR_VALUE, "takes contiguous arrays (C order)");
        PVG_REQUIRE(i == count || !may_overlap(a, c.out), PVG_ERROR_VALUE,
                    "out must not share memory with an operand");
    }
    return PVG_OK;
}

// All operands have out's shape; `ndim` dimensions, 0: any number.
int check_same_shapes(const Chosen &c, int ndim) {
    PVG_REQUIRE(ndim == 0 || c.out->ndim == ndim, PVG_ERROR_VALUE,
                "takes arrays of %d dimensions, got shape %s", ndim, shape_text(c.out));
    for (int i = 0; i < inputs_of(c.kernel); i++)
        PVG_REQUIRE(same_shape(c.inputs[i], c.out->ndim, c.out->shape), PVG_ERROR_VALUE,
                    "shapes differ: %s and out's %s", shape_text(c.inputs[i]), shape_text(c.out));
    return PVG_OK;
}

int check_product_shapes(const Chosen &c) {
    const pvg_array *a = c.inputs[0], *b = c.inputs[1];
    bool fits = a->ndim == 2 && b->ndim == 2 && c.out->ndim == 2 && a->shape[1] == b->shape[0] &&
                c.out->shape[0] == a->shape[0] && c.out->shape[1] == b->shape[1];
    PVG_REQUIRE(fits, PVG_ERROR_VALUE, "takes (m, k), (k, n) and an out of (m, n), got %s, %s, %s",
                shape_text(a), shape_text(b), shape_text(c.out));
    return PVG_OK;
}

int check_layer_shapes(const Chosen &c) {
    const pvg_array *w = c.inputs[0], *x = c.inputs[1], *b = c.inputs[2];
    bool fits = w->ndim == 2 && x->ndim == 2 && b->ndim == 1 && c.out->ndim == 2 &&
                x->shape[1] == w->shape[1] && b->shape[0] == w->shape[0] &&
                c.out->shape[0] == x->shape[0] && c.out->shape[1] == w->shape[0];
    PVG_REQUIRE(fits, PVG_ERROR_VALUE,
                "takes W of (outputs, inputs), x of (batch, inputs), b of (outputs,) and an out of "
                "(batch, outputs), got %s, %s, %s, %s",
                shape_text(w), shape_text(x), shape_text(b), shape_text(c.out));
    PVG_REQUIRE(c.grid[1] <= x->shape[0] || x->shape[0] == 0, PVG_ERROR_VALUE,
                "grid.y is %lld, more than the batch of %lld", static_cast<long long>(c.grid[1]),
                static_cast<long long>(x->shape[0]));
    return PVG_OK;
}

// The kernels of lessons 11 and 15 count in int, and some rely on the shape of their block.
int check_int_launch(const Chosen &c, int64_t x, int64_t y) {
    bool as_needed = c.block[0] == x && c.block[1] == y && c.block[2] == 1;
    PVG_REQUIRE(x == 0 || as_needed, PVG_ERROR_VALUE, "the block must be (%lld, %lld, 1)",
                static_cast<long long>(x), static_cast<long long>(y));
    for (const pvg_array *a : {c.inputs[0], c.inputs[1]})
        for (int axis = 0; axis < a->ndim; axis++)
            PVG_REQUIRE(a->shape[axis] <= 1 << 30, PVG_ERROR_VALUE,
                        "takes up to 2^30 rows and columns, got shape %s", shape_text(a));
    for (int axis = 0; axis < 2; axis++) {
        int64_t square = lesson_11::SQUARE;
        int64_t edge = c.block[axis] > square ? c.block[axis] : square;
        PVG_REQUIRE(c.grid[axis] <= INT32_MAX / edge, PVG_ERROR_VALUE,
                    "the grid is larger than the kernel can count");
    }
    return PVG_OK;
}

int check_launch(const Chosen &c) {
    PVG_REQUIRE(c.launches >= 1, PVG_ERROR_VALUE, "launches must be at least 1");
    for (int axis = 0; axis < 3; axis++) {
        bool possible = c.grid[axis] >= 1 && c.grid[axis] <= INT32_MAX && c.block[axis] >= 1 &&
                        c.block[axis] <= INT32_MAX;
        PVG_REQUIRE(possible, PVG_ERROR_VALUE, "grid and block must be from 1 to 2^31 - 1");
    }
    switch (c.kernel) {
    case PVG_LESSON_MATRIX_ADD:
    case PVG_LESSON_MATRIX_ADD_SLOW: return check_same_shapes(c, 2);
    case PVG_LESSON_TENSOR_ADD: return check_same_shapes(c, 3);
    case PVG_LESSON_MATMUL_NAIVE:
    case PVG_LESSON_MATMUL_COALESCED:
        PVG_PASS(check_product_shapes(c));
        return check_int_launch(c, 0, 0);
    case PVG_LESSON_MATMUL_TILED:
        PVG_PASS(check_product_shapes(c));
        return check_int_launch(c, lesson_11::TILE, lesson_11::TILE);
    case PVG_LESSON_MATMUL_REGISTERS:
        PVG_PASS(check_product_shapes(c));
        return check_int_launch(c, lesson_11::ACROSS, lesson_11::ACROSS);
    case PVG_LESSON_LAYER:
        PVG_PASS(check_layer_shapes(c));
        return check_int_launch(c, lesson_15::OUTPUTS_OF_A_BLOCK * lesson_15::LANES, 1);
    }
    return check_same_shapes(c, 0);
}

// ---- Launches -----------------------------------------------------------------------------------

// Calls `launch_once` as often as chosen. The first launch also loads the kernel into the device,
// so it is timed only if it is the only one.
template <class F>
int measure(Call &call, const Chosen &c, const void *kernel, double *milliseconds,
            int64_t *occupancy, F &&launch_once) {
    Events events;
    PVG_TRY(cudaEventCreate(&events.start));
    PVG_TRY(cudaEventCreate(&events.stop));
    int64_t timed = c.launches;
    if (timed > 1) {
        PVG_PASS(launch_once());
        timed--;
    }
    PVG_TRY(cudaEventRecord(events.start, call.stream));
    for (int64_t i = 0; i < timed; i++) PVG_PASS(launch_once());
    PVG_TRY(cudaEventRecord(events.stop, call.stream));
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(cudaEventSynchronize(events.stop));
    float total = 0;
    PVG_TRY(cudaEventElapsedTime(&total, events.start, events.stop));
    int blocks = 0;
    int threads = static_cast<int>(c.block[0] * c.block[1] * c.block[2]);
    PVG_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0));
    *milliseconds = static_cast<double>(total) / static_cast<double>(timed);
    *occupancy = blocks;
    return PVG_OK;
}

dim3 dimensions(const int64_t *sizes) {
    return dim3(static_cast<unsigned>(sizes[0]), static_cast<unsigned>(sizes[1]),
                static_cast<unsigned>(sizes[2]));
}

// Launches and times `kernel` with the arguments, and returns the status.
#define LEARN(kernel, ...)                                                                        \
    return measure(call, chosen, reinterpret_cast<const void *>(kernel), milliseconds, occupancy, \
                   [&]() -> int {                                                                 \
                       PVG_LAUNCH(kernel, grid, block, 0, call.stream, __VA_ARGS__);              \
                       return PVG_OK;                                                             \
                   })

int launch_product(Call &call, const Chosen &chosen, double *milliseconds, int64_t *occupancy) {
    dim3 grid = dimensions(chosen.grid), block = dimensions(chosen.block);
    const float *a = data<float>(chosen.inputs[0]), *b = data<float>(chosen.inputs[1]);
    float *out = data<float>(chosen.out);
    int64_t m = chosen.out->shape[0], n = chosen.out->shape[1], k = chosen.inputs[0]->shape[1];
    switch (chosen.kernel) {
    case PVG_LESSON_MATMUL_NAIVE: LEARN(lesson_11::matmul_naive, a, b, out, m, n, k);
    case PVG_LESSON_MATMUL_COALESCED: LEARN(lesson_11::matmul_coalesced, a, b, out, m, n, k);
    case PVG_LESSON_MATMUL_TILED: LEARN(lesson_11::matmul_tiled, a, b, out, m, n, k);
    }
    LEARN(lesson_11::matmul_registers, a, b, out, m, n, k);
}

int launch_chosen(Call &call, const Chosen &chosen, double *milliseconds, int64_t *occupancy) {
    dim3 grid = dimensions(chosen.grid), block = dimensions(chosen.block);
    const float *inputs[3] = {};
    for (int i = 0; i < inputs_of(chosen.kernel); i++) inputs[i] = data<float>(chosen.inputs[i]);
    const float *a = inputs[0], *b = inputs[1];
    float *out = data<float>(chosen.out);
    const int64_t *shape = chosen.out->shape;
    switch (chosen.kernel) {
    case PVG_LESSON_VECTOR_ADD: LEARN(lesson_05::vector_add, a, b, out, chosen.out->size);
    case PVG_LESSON_MATRIX_ADD: LEARN(lesson_08::matrix_add, a, b, out, shape[0], shape[1]);
    case PVG_LESSON_MATRIX_ADD_SLOW:
        LEARN(lesson_08::matrix_add_slow, a, b, out, shape[0], shape[1]);
    case PVG_LESSON_TENSOR_ADD:
        LEARN(lesson_09::tensor_add, a, b, out, shape[0], shape[1], shape[2]);
    case PVG_LESSON_SIGMOID: LEARN(lesson_10::sigmoid, a, out, chosen.out->size);
    case PVG_LESSON_LAYER:
        LEARN(lesson_15::layer, a, b, inputs[2], out, chosen.inputs[0]->shape[1], shape[1]);
    }
    return launch_product(call, chosen, milliseconds, occupancy);
}

int run_learn(Call &call, const Chosen &chosen, double *milliseconds, int64_t *occupancy) {
    int device = -1;
    PVG_PASS(check_arrays(chosen, &device));
    PVG_PASS(check_launch(chosen));
    *milliseconds = 0;
    *occupancy = 0;
    if (chosen.out->size == 0) return PVG_OK;
    PVG_PASS(call.begin(device));
    PVG_PASS(refuse_recording(device, "a lesson, which is timed,"));
    for (int i = 0; i < inputs_of(chosen.kernel); i++) PVG_PASS(call.reads(chosen.inputs[i]));
    PVG_PASS(call.writes(chosen.out));
    return launch_chosen(call, chosen, milliseconds, occupancy);
}

} // namespace
} // namespace pvg

PVG_API int pvg_learn(int kernel, const int64_t *grid, const int64_t *block, const pvg_array *a,
                      const pvg_array *b, const pvg_array *c, pvg_array *out, int64_t launches,
                      double *milliseconds, int64_t *occupancy) {
    const char *name = pvg::kernel_name(kernel);
    pvg::Call call(name ? name : "learn");
    if (!name) return pvg::fail(PVG_ERROR_VALUE, "unknown lesson kernel %d", kernel);
    if (!grid || !block || !milliseconds || !occupancy)
        return pvg::fail(PVG_ERROR_VALUE, "grid, block, milliseconds or occupancy is NULL");
    pvg::Chosen chosen = {
        kernel,  {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, {a, b, c}, out,
        launches};
    return pvg::run_learn(call, chosen, milliseconds, occupancy);
}
