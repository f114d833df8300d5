// Which kernel computes a product: the first row of the table below whose condition holds and whose
// kernel is able to. A condition looks at one item of a batch, never at their number, at addresses
// or at memory: so an item of a batch is computed as the product of that item alone would be. (Of
// kernels that give the same bits the layout may choose.)
//
// The numbers were found on an H200 (132 multiprocessors; docs/measured); README.md in this folder
// says what each kernel does.
#include "kernels/matmul/dispatch.cuh"
#include "runtime/device.cuh"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#ifndef PVG_BUILD_ARCHITECTURES
#define PVG_BUILD_ARCHITECTURES "" // the Makefile says which; a compiler run by hand need not
#endif

namespace pvg {

std::atomic<int64_t> option_matmul_kernel, option_matmul_precision{PVG_PRECISION_FLOAT32};

namespace matmul {

namespace {

// ---- The table ----------------------------------------------------------------------------------

int smaller(int a, int b) { return a < b ? a : b; }
bool all_at_least(const Gemm &g, int size) { return g.m >= size && g.n >= size && g.k >= size; }
double terms(const Gemm &g) { return static_cast<double>(g.m) * g.n * g.k; }

bool is_rounded(const Gemm &g) {
    return g.precision == PVG_PRECISION_TF32 || g.precision == PVG_PRECISION_BF16 ||
           g.precision == PVG_PRECISION_FP16;
}
bool is_vector(const Gemm &g) { return g.m == 1 || g.n == 1; }
bool is_tiny(const Gemm &g) { return g.m <= 32 && g.n <= 32 && g.k <= 32; }
// Where tiles of 64 x 32 are one for each multiprocessor: "ieee" adds eight slices of k up.
bool adds_eight_slices(const Gemm &g) {
    return tiles(g.m, 64) * tiles(g.n, 32) <= tuned_multiprocessors;
}
// Large enough that splitting the operands is little beside multiplying them. Eight short slices
// are as accurate as what tensor cores give, or more, and as fast.
bool pays_splitting(const Gemm &g) {
    if (!all_at_least(g, 128) || g.k < (adds_eight_slices(g) ? 2048 : 256)) return false;
    if (smaller(g.m, g.n) >= 256) return terms(g) >= 0.18e9;
    return terms(g) >= 2e9 && (g.m > 640 || g.n > 640);
}

// Whether FFMA_TMA can read the operands where they are. It and FFMA_128X128 give the same bits.
bool has_rows_for_tma(const Gemm &g) {
    const int64_t row_of_a = g.a_along_k ? g.k : g.m;
    return !g.b_along_k && (row_of_a | g.lda | g.n | g.ldb) % 4 == 0;
}

bool always(const Gemm &) { return true; }

struct Rule {
    int kernel;
    bool (*when)(const Gemm &);
};

// float32; "ieee" begins where the others end.
const Rule float32_rules[] = {
    {PVG_MATMUL_TINY, is_tiny},
    {PVG_MATMUL_GEMV, is_vector},
    {PVG_MATMUL_TENSOR, is_rounded},
    {PVG_MATMUL_TENSOR_SM80, is_rounded},
    {PVG_MATMUL_FP16X3,
     [](const Gemm &g) {
         return g.precision == PVG_PRECISION_FAST32 && pays_splitting(g) && terms(g) >= 2e9;
     }},
    {PVG_MATMUL_BF16X6,
     [](const Gemm &g) { return g.precision != PVG_PRECISION_IEEE && pays_splitting(g); }},
    {PVG_MATMUL_FFMA_128X128, [](const Gemm &g) { return g.m <= 128 && g.n <= 128 && g.k <= 256; }},
    {PVG_MATMUL_FFMA_TMA, // copies of operands cost a part of the product that falls with m and n
     [](const Gemm &g) {
         const int least = has_rows_for_tma(g) ? 256 : 1700;
         return smaller(g.m, g.n) >= least && g.k >= 256 && fill(g, 128, 256) >= 0.8 &&
                1.05 * fill(g, 128, 256) >= fill(g, 128, 128);
     }},
    {PVG_MATMUL_FFMA_128X128, adds_halves},
    {PVG_MATMUL_FFMA_64X32, adds_eight_slices},
    {PVG_MATMUL_FFMA_64X64, // unless the larger tiles leave less of the card idle
     [](const Gemm &g) { return smaller(g.m, g.n) > 512 && fill(g, 64, 128) < 0.8; }},
    {PVG_MATMUL_FFMA_64X128, always},
    {PVG_MATMUL_FFMA_128X128, always},
};
const Rule float64_rules[] = {
    {PVG_MATMUL_GEMV, is_vector},
    {PVG_MATMUL_DMMA, [](const Gemm &g) { return all_at_least(g, 16); }},
};
const Rule half_rules[] = {
    {PVG_MATMUL_GEMV, is_vector},
    {PVG_MATMUL_TENSOR, [](const Gemm &g) { return all_at_least(g, 16); }},
    {PVG_MATMUL_TENSOR_SM80, [](const Gemm &g) { return all_at_least(g, 16); }},
};

// ---- Kernels by code ----------------------------------------------------------------------------

const Kernel *kernel_of(int code) {
#ifndef PVG_SIMULATOR
    static const Kernel *const others[] = {&ffma_tma_kernel, &tensor_kernel, &tensor_sm80_kernel,
                                           &bf16x6_kernel,   &fp16x3_kernel, &dmma_kernel,
                                           &gemv_kernel,     &tiny_kernel};
    for (const Kernel *kernel = ffma_kernels; kernel->code; kernel++)
        if (kernel->code == code) return kernel;
#else
    static const Kernel *const others[] = {&gemv_kernel, &tiny_kernel};
#endif
    for (const Kernel *kernel : others)
        if (kernel->code == code) return kernel;
    return nullptr;
}

bool is_able(const Kernel &kernel, const Gemm &g) {
    return (g.k <= INT_MAX || kernel.code == PVG_MATMUL_GEMV) && kernel.can(g);
}

template <size_t N> const Kernel *choose(const Rule (&rules)[N], const Gemm &g) {
    for (const Rule &rule : rules) {
        const Kernel *kernel = kernel_of(rule.kernel);
        if (kernel && rule.when(g) && is_able(*kernel, g)) return kernel;
    }
    return nullptr;
}

const Kernel *choose(const Gemm &g) {
    switch (g.dtype) {
    case PVG_FLOAT32: return choose(float32_rules, g);
    case PVG_FLOAT64: return choose(float64_rules, g);
    case PVG_FLOAT16:
    case PVG_BFLOAT16: return choose(half_rules, g);
    }
    return nullptr;
}

#ifndef PVG_SIMULATOR
// Of the architectures that the library was built for ("80 90a ptx75") the one whose code such a
// device runs. Machine code runs on devices of its own generation; 90a is 90 with wgmma, and what
// was built for 90 without it counts as a little less. PTX runs on every later device.
int best_architecture(const char *built, int capability) {
    int best = 0;
    for (const char *at = built; *at;) {
        const bool is_ptx = strncmp(at, "ptx", 3) == 0;
        char *end = nullptr;
        const int number = static_cast<int>(strtol(at + (is_ptx ? 3 : 0), &end, 10));
        const bool runs = number <= capability && (is_ptx || number / 10 == capability / 10);
        const int level = number == 90 && *end != 'a' ? 89 : number;
        if (runs && level > best) best = level;
        at = end + strcspn(end, " ");
        at += strspn(at, " ");
    }
    return best;
}
#endif

// ---- From a problem to launches -----------------------------------------------------------------

// False if the problem is not one of the fast kernels: no terms, m or n beyond 2^31.
bool describe_gemm(const Problem &problem, int inner, Gemm *g) {
    const Product &p = problem.product;
    if (p.k == 0 || p.m > INT_MAX || p.n > INT_MAX) return false;
    *g = Gemm();
    g->m = static_cast<int>(p.m), g->n = static_cast<int>(p.n), g->k = p.k;
    g->items = 1;
    if (inner >= 0) {
        if (p.batch.shape[inner] > INT_MAX) return false;
        g->items = static_cast<int>(p.batch.shape[inner]);
        g->c_item = p.batch.strides[0][inner];
        g->a_item = p.batch.strides[1][inner];
        g->b_item = p.batch.strides[2][inner];
    }
    g->a = p.a.data, g->b = p.b.data, g->c = p.c;
    g->a_along_k = p.a.along_k, g->b_along_k = p.b.along_k;
    g->lda = p.a.along_k ? p.a.stride : p.a.k_stride;
    g->ldb = p.b.along_k ? p.b.stride : p.b.k_stride;
    g->ldc = p.c_row;
    g->dtype = problem.dtype, g->precision = problem.precision, g->device = problem.device;
    g->epilogue = problem.epilogue;
    return true;
}

// The batch's dimension that is left to the kernel: the longest; -1 without a batch.
int longest(const Walk<3> &batch) {
    int best = -1;
    for (int i = 0; i < batch.ndim; i++)
        if (best < 0 || batch.shape[i] > batch.shape[best]) best = i;
    return best;
}

int launch_batch(Call &call, const Kernel &kernel, const Problem &problem, const Gemm &first,
                 int inner) {
    const Walk<3> &batch = problem.product.batch;
    int64_t rounds = problem.items / first.items;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t offset[3] = {0, 0, 0}, rest = round;
        for (int i = batch.ndim; i-- > 0;) {
            if (i == inner) continue;
            for (int operand = 0; operand < 3; operand++)
                offset[operand] += rest % batch.shape[i] * batch.strides[operand][i];
            rest /= batch.shape[i];
        }
        PVG_PASS(kernel.launch(call, moved(first, offset[1], offset[2], offset[0])));
    }
    return PVG_OK;
}

} // namespace

int tensor_architecture(int device) {
#ifdef PVG_SIMULATOR
    (void)device;
    return 0;
#else
    static std::atomic<int> known[max_devices]; // plus one; 0: not asked yet
    int found = known[device].load(std::memory_order_relaxed) - 1;
    if (found >= 0) return found;
    int64_t major = 0, minor = 0;
    if (device_attribute(device, PVG_COMPUTE_CAPABILITY_MAJOR, &major) != PVG_OK ||
        device_attribute(device, PVG_COMPUTE_CAPABILITY_MINOR, &minor) != PVG_OK)
        return 0;
    found = best_architecture(PVG_BUILD_ARCHITECTURES, static_cast<int>(major * 10 + minor));
    known[device].store(found + 1, std::memory_order_relaxed);
    return found;
#endif
}

int check_precision(int *precision) {
    if (*precision == PVG_PRECISION_DEFAULT) *precision = static_cast<int>(option_matmul_precision);
    PVG_REQUIRE(*precision >= PVG_PRECISION_IEEE && *precision <= PVG_PRECISION_FP16,
                PVG_ERROR_VALUE, "unknown precision code %d", *precision);
    return PVG_OK;
}

int launch_product(Call &call, const Problem &problem) {
    int forced = static_cast<int>(option_matmul_kernel), inner = longest(problem.product.batch);
    if (forced == PVG_MATMUL_TILED) return launch_tiled(call, problem);
    Gemm g;
    bool is_gemm = describe_gemm(problem, inner, &g);
    const Kernel *kernel = nullptr;
    if (forced != PVG_MATMUL_AUTO) {
        kernel = kernel_of(forced);
        PVG_REQUIRE(
            kernel && is_gemm && is_able(*kernel, g), PVG_ERROR_VALUE,
            "the kernel that is forced (%s) cannot compute %s of (%lld, %lld) @ (%lld, "
            "%lld) on this device",
            kernel ? kernel->name : "not in this library", dtype_name(problem.dtype),
            static_cast<long long>(problem.product.m), static_cast<long long>(problem.product.k),
            static_cast<long long>(problem.product.k), static_cast<long long>(problem.product.n));
    } else if (is_gemm) {
        kernel = choose(g);
    }
    return kernel ? launch_batch(call, *kernel, problem, g, inner) : launch_tiled(call, problem);
}

} // namespace matmul
} // namespace pvg
