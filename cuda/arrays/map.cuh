// out[i] = f(a[i], b[i], ...): the four kernels that every elementwise operation and copy runs on.
//
// A function object says what to do with the few elements of one thread; the kernel hands it an
// `access` that knows where they lie:
//
//     struct Twice {
//         static constexpr int inputs = 1; // operands
//         static constexpr int vector = 4; // elements a thread: 16 bytes of the widest operand
//         template <class Access> __device__ void operator()(const Access &access) const {
//             float x[Access::count];
//             access.read(0, x); // element type: that of x
//             for (int e = 0; e < Access::count; e++) x[e] *= 2;
//             access.write(x);
//         }
//     };
//     PVG_PASS(launch_map(call, Twice(), out, {a}));
//
// contiguous_kernel: every operand has the output's layout, or is one element for all. Blocks of
//                    which each thread has a vector take a shorter way.
// joined_kernel:     the output is one piece, and the innermost dimension of every operand is
//                    contiguous, repeated or backwards. Vectors are the output's, wherever rows
//                    end (joined.cuh).
// rows_kernel:       the innermost dimension is contiguous or repeated in every operand, or of
//                    small steps; the outer ones have any strides (sub-arrays, broadcast rows and
//                    columns). Rows whose vectors are not aligned are long.
//
// Small elements that do not begin where vectors do are put together from the words in which they
// lie, so that only the output needs to be aligned; in rows, each of which may begin anywhere, the
// first and the last vector are parts then.
//
// strided_kernel:    any strides, and rows that are short. Each thread has a few elements along one
//                    dimension, so that it divides once, and each is as far from the one before.
#pragma once
#include "arrays/access.cuh"
#include "arrays/call.cuh"
#include "arrays/joined.cuh"

namespace pvg {

template <int N> struct InRows {
    Operands<N> operands;
    int64_t rows, columns;
    uint32_t blocks_across; // blocks that share a row
    int rows_each;          // rows a thread
    bool aligned;           // vectors may be used
    bool shifted;           // vectors begin where the output's do in memory, not where a row does
    int lead;               // elements from there to the output's first, if so
    Locator<N + 1> outer;   // the dimensions above a row; operand 0 is the output
};

namespace {

// Threads a block, as measured: one array in and one out want small blocks, so that some read while
// others write (copy of 1 GiB: 4.26 TB/s, with 1,024 threads 4.05); two arrays in, or none, want
// large ones (add: 4.39, with 128 threads 4.36), if 8 elements a thread leave them the registers,
// and there are many: of few the last would leave most of the card without work.
constexpr int map_threads = 128;
template <class F> constexpr bool is_long = false; // functions that take longer than the memory
template <class F>
constexpr int most_map_threads = is_long<F>      ? map_threads
                                 : F::vector < 8 ? 1024
                                                 : 512;
// Threads that a multiprocessor can hold, by architecture: ptxas refuses a kernel that asks for
// more.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ / 100 == 9 || \
    __CUDA_ARCH__ / 100 == 10
constexpr int threads_held = 2048;
#elif __CUDA_ARCH__ < 800
constexpr int threads_held = 1024;
#else
constexpr int threads_held = 1536;
#endif
constexpr int blocks_held(int wanted, int threads) {
    return wanted < threads_held / threads ? wanted : threads_held / threads;
}
// Blocks of rows_kernel that a multiprocessor should hold: all of its threads, if registers allow,
// of which functions that take long, and those of many elements a thread, get twice as many.
template <class F>
constexpr int rows_blocks = is_long<F> || F::vector > 4 ? blocks_held(8, map_threads)
                            : F::vector == 4            ? blocks_held(16, map_threads)
                                                        : blocks_held(12, map_threads);
// Functions whose operands never lie in any strides, so that they need no strided_kernel.
template <class F> constexpr bool only_rows = false;
// Functions that get code of their own for blocks in which all is on addresses for vectors.
template <class F> constexpr bool takes_whole = !is_long<F> && !only_rows<F>;
// Functions that run on rows which are joined: of elements of up to 4 bytes. (Of 8 bytes two make a
// vector, and reading them by granules takes longer than one by one: 0.65 to 0.88 of torch's speed
// on an H200, 2026-11-29.)
template <class F> constexpr bool takes_joined = takes_whole<F> && (F::vector > 2);
constexpr int64_t large_map = 1 << 18; // vectors: enough to keep all multiprocessors busy
constexpr int64_t huge_map = 1 << 21;  // eight times
constexpr int strided_threads = 256;
constexpr int most_rows = 4;               // a thread, for which it finds out once what to do
constexpr int64_t most_step = 8;           // of rows of steps
constexpr int64_t least_side_by_side = 32; // threads a row: a warp writes what lies together
constexpr int least_shifted_vector = 8;    // elements, which are small ones then
constexpr int64_t least_shifted = 16;      // vectors of a row, of which two are parts
constexpr int strided_elements = 8;        // a thread, at most
template <class F>
constexpr int strided_each = F::vector < strided_elements ? F::vector : strided_elements;

// Gives thread `thread` of a block of `threads` its part of a row. Vectors lie side by side; single
// elements are dealt out so that neighbouring threads touch neighbours.
template <int N, int COUNT>
__device__ __forceinline__ void deal(RowAccess<N, COUNT> *access, int64_t length, int64_t block,
                                     unsigned threads, unsigned thread, bool aligned) {
    const int64_t first = block * threads;
    constexpr int64_t enough = 1 << 30;
    access->start = aligned ? (first + thread) * COUNT : first * COUNT + thread;
    access->step = aligned ? 1 : threads;
    const int64_t left = length - access->start;
    access->left = static_cast<unsigned>(left < 0 ? 0 : left < enough ? left : enough);
    access->whole = aligned && left >= COUNT;
}

// The same of a row that begins `lead` elements after a vector of the output does.
template <int N, int COUNT>
__device__ __forceinline__ void deal_shifted(RowAccess<N, COUNT> *access, int64_t length,
                                             int64_t vector, int lead) {
    int64_t start = vector * COUNT - lead, left = COUNT;
    if (start < 0) left += start, start = 0;
    access->whole = left == COUNT && length - start >= COUNT;
    left = access->whole || left > length - start ? length - start : left;
    constexpr int64_t enough = 1 << 30;
    access->start = start;
    access->left = static_cast<unsigned>(left < 0 ? 0 : left < enough ? left : enough);
}

template <class F>
__global__ void __launch_bounds__(most_map_threads<F>)
    contiguous_kernel(const F f, const __grid_constant__ Operands<F::inputs> operands,
                      const int64_t size, const bool aligned,
                      [[maybe_unused]] const unsigned whole_blocks) {
    if constexpr (takes_whole<F>) {
        if (blockIdx.x < whole_blocks) {
            const int64_t vector = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
            f(WholeAccess<F::inputs, F::vector>{operands, vector * F::vector});
            return;
        }
    }
    RowAccess<F::inputs, F::vector> access{operands, {}, 0, 0, 0, false};
    deal(&access, size, blockIdx.x, blockDim.x, threadIdx.x, aligned);
    if (access.left > 0) f(access);
}

// Threads lie along rows in x; a block of narrow rows has several of them in y.
template <class F>
__global__ void __launch_bounds__(map_threads, rows_blocks<F>)
    rows_kernel(const F f, const __grid_constant__ InRows<F::inputs> rows) {
    // Of narrow rows there is nothing to divide, which takes longer than to move an element.
    const bool narrow = rows.blocks_across == 1;
    const uint32_t band = narrow ? blockIdx.x : blockIdx.x / rows.blocks_across;
    RowAccess<F::inputs, F::vector> access{rows.operands, {}, 0, 0, 0, false};
    const uint32_t block = blockIdx.x - band * rows.blocks_across;
    deal(&access, rows.columns, block, blockDim.x, threadIdx.x, rows.aligned || rows.shifted);
    if (access.left == 0 && !rows.shifted) return;
    int64_t row[1] = {int64_t(band) * rows.rows_each * blockDim.y + threadIdx.y};
#pragma unroll 1
    for (int i = 0; i < rows.rows_each && row[0] < rows.rows; i++, row[0] += blockDim.y) {
        locate(rows.outer, row, access.offsets);
        if (F::vector >= least_shifted_vector && rows.shifted) {
            const int lead = static_cast<int>((rows.lead + access.offsets[0][0]) % F::vector);
            const int64_t vector = int64_t(block) * blockDim.x + threadIdx.x;
            deal_shifted(&access, rows.columns, vector, lead < 0 ? lead + F::vector : lead);
            if (access.left == 0) continue;
        }
        f(access);
    }
}

template <class F>
__global__ void __launch_bounds__(map_threads)
    joined_kernel(const F f, const __grid_constant__ Joined<F::inputs> joined) {
    JoinedAccess<F::inputs, F::vector> access{joined, 0, 0, 0, {}};
    access.position = (blockIdx.x * map_threads + threadIdx.x) * F::vector;
    if (access.position >= joined.size) return;
    access.find();
    f(access);
}

template <class F>
__global__ void __launch_bounds__(strided_threads)
    strided_kernel(const F f, const __grid_constant__ Strided<F::inputs> strided) {
    StridedAccess<F::inputs, strided_each<F>> access{strided, {}, 0};
    const int64_t thread[1] = {int64_t(blockIdx.x) * strided_threads + threadIdx.x};
    if (thread[0] >= strided.threads) return;
    locate(strided.first, thread, access.offsets);
    const int64_t left = strided.length - access.offsets[F::inputs + 1][0];
    constexpr int64_t enough = 1 << 30;
    access.left = static_cast<unsigned>(left < 0 ? 0 : left < enough ? left : enough);
    if (access.left > 0) f(access);
}

} // namespace

// ---- Which kernel -------------------------------------------------------------------------------

template <class F>
int launch_contiguous(Call &call, const F &f, const Operands<F::inputs> &operands, int64_t size,
                      bool aligned) {
    int arrays = 0;
    bool whole = aligned;
    for (int k = 0; k < F::inputs; k++) {
        if (!operands.input[k] || operands.repeated[k]) continue;
        arrays++, whole = whole && !operands.shifted[k];
    }
    bool wide = arrays == 0 || (arrays == 2 && F::vector < 16);
    wide = wide && size / F::vector >= huge_map;
    unsigned threads = wide ? most_map_threads<F> : map_threads;
    unsigned blocks = blocks_for(size, int64_t(threads) * F::vector);
    const int64_t whole_blocks = whole ? size / (int64_t(threads) * F::vector) : 0;
    PVG_LAUNCH(contiguous_kernel<F>, blocks, threads, 0, call.stream, f, operands, size, aligned,
               static_cast<unsigned>(whole_blocks));
    return PVG_OK;
}

// `outer` is the whole walk; its innermost dimension becomes the row. Gives the threads of a block,
// and how many blocks there are.
template <int N> unsigned deal_rows(InRows<N> *rows, int vector, dim3 *threads) {
    Walk<N + 1> &walk = rows->outer.walk;
    rows->columns = walk.shape[--walk.ndim];
    rows->rows = 1;
    for (int i = 0; i < walk.ndim; i++) rows->rows *= walk.shape[i];
    prepare(&rows->outer);
    int64_t vectors = rows->columns / vector + (rows->columns % vector != 0) + rows->shifted;
    int64_t across = vectors / map_threads + (vectors % map_threads != 0);
    rows->blocks_across = static_cast<uint32_t>(across);
    dim3 block(static_cast<unsigned>((vectors + across - 1) / across));
    if (across > 1) block.x = (block.x + 31) / 32 * 32; // whole warps
    int64_t high = map_threads / block.x;
    block.y = static_cast<unsigned>(high < rows->rows ? high : rows->rows);
    const int64_t times = vectors * rows->rows / large_map; // that all multiprocessors are busy
    rows->rows_each = times < 1 ? 1 : times < most_rows ? static_cast<int>(times) : most_rows;
    int64_t bands = blocks_for(rows->rows, int64_t(block.y) * rows->rows_each);
    *threads = block;
    return blocks_for(bands * across, 1);
}
template <class F> int launch_rows(Call &call, const F &f, InRows<F::inputs> *rows) {
    dim3 block;
    const unsigned blocks = deal_rows(rows, F::vector, &block);
    PVG_LAUNCH(rows_kernel<F>, blocks, block, 0, call.stream, f, *rows);
    return PVG_OK;
}

// How a dimension of a walk would be dealt out.
struct Deal {
    int dimension;
    int64_t step, parts; // so many threads, `step` of which are neighbours, go along it
};

// The dimension that asks for the least work. Along some of them operands stay where they are and
// are read once a thread; or an operand, of which neighbouring threads read a sector of memory
// each, goes on within its sector. Short ones leave threads with less than `each` elements.
template <int N>
Deal choose_deal(const Walk<N + 1> &walk, int each, const int64_t (&items)[N + 1]) {
    constexpr int64_t side_by_side = 128; // elements of which a warp takes 32 at once
    constexpr int64_t sector_bytes = 32;
    Deal best{0, 1, 1};
    double least = 0;
    int64_t inside = 1;
    for (int i = walk.ndim - 1; i >= 0; inside *= walk.shape[i--]) {
        const int64_t length = walk.shape[i];
        int64_t step = (side_by_side + inside - 1) / inside;
        if (walk.ndim == PVG_MAX_NDIM) step = 1; // of which two would be made
        if (step * each > length) step = (length + each - 1) / each;
        const int64_t parts = (length + step * each - 1) / (step * each);
        int accesses = 2; // what else there is to do
        for (int k = 0; k <= N; k++) {
            const int64_t near = walk.strides[k][walk.ndim - 1] * items[k];
            const int64_t next = walk.strides[k][i] * step * items[k];
            const bool scattered = near >= sector_bytes || near <= -sector_bytes;
            const bool stays = next < sector_bytes && next > -sector_bytes;
            accesses += next == 0 ? 0 : scattered && !stays ? 4 : 1;
        }
        const double work = static_cast<double>(parts * step) / static_cast<double>(length) *
                            static_cast<double>(accesses);
        if (least == 0 || work < least) best = {i, step, parts}, least = work;
    }
    return best;
}

// Replaces the dimension by the parts that it is dealt out in, and the neighbours in each of them.
template <int N> void deal_dimension(const Deal &deal, int each, const Walk<N + 1> &walk,
                                     Strided<N> *strided) {
    Walk<N + 2> &to = strided->first.walk;
    const auto add = [&](int64_t length, int i, int64_t times, int64_t positions) {
        if (length == 1) return;
        to.shape[to.ndim] = length;
        for (int k = 0; k <= N; k++) to.strides[k][to.ndim] = walk.strides[k][i] * times;
        to.strides[N + 1][to.ndim++] = positions;
    };
    strided->step = static_cast<unsigned>(deal.step);
    strided->length = walk.shape[deal.dimension];
    strided->threads = 1;
    for (int k = 0; k <= N; k++) strided->apart[k] = walk.strides[k][deal.dimension] * deal.step;
    for (int i = 0; i < walk.ndim; i++) {
        if (i != deal.dimension) {
            add(walk.shape[i], i, 1, 0);
            strided->threads *= walk.shape[i];
            continue;
        }
        add(deal.parts, i, deal.step * each, deal.step * each);
        add(deal.step, i, 1, 1);
        strided->threads *= deal.parts * deal.step;
    }
    prepare(&strided->first);
}

template <class F>
int launch_strided(Call &call, const F &f, const InRows<F::inputs> &rows, const pvg_array *out,
                   const pvg_array *const *inputs) {
    constexpr int each = strided_each<F>;
    int64_t items[F::inputs + 1] = {dtype_size(out->dtype)};
    for (int k = 0; k < F::inputs; k++) items[k + 1] = inputs[k] ? dtype_size(inputs[k]->dtype) : 0;
    const Walk<F::inputs + 1> &walk = rows.outer.walk;
    Strided<F::inputs> strided{rows.operands, {}, 0, 0, 1, {}};
    deal_dimension(choose_deal<F::inputs>(walk, each, items), each, walk, &strided);
    PVG_LAUNCH(strided_kernel<F>, blocks_for(strided.threads, strided_threads), strided_threads, 0,
               call.stream, f, strided);
    return PVG_OK;
}

// Whether neighbours along the innermost dimension lie so near that a warp's loads share sectors.
template <int N> bool is_small_step(const Walk<N> &walk, int k) {
    const int64_t step = walk.strides[k][walk.ndim - 1];
    return step >= -most_step && step <= most_step && (k > 0 || step != 0);
}

enum class Way { contiguous, rows, strided };

// The operands do not all lie like the output: collapse the dimensions and see what is left.
template <int N> Way choose_way(const pvg_array *out, const pvg_array *const *inputs, int vector,
                                bool always_rows, InRows<N> *rows) {
    Operands<N> &operands = rows->operands;
    Walk<N + 1> &walk = rows->outer.walk;
    walk.ndim = out->ndim;
    for (int i = 0; i < out->ndim; i++) {
        walk.shape[i] = out->shape[i];
        walk.strides[0][i] = out->strides[i];
    }
    for (int k = 0; k < N; k++) {
        if (inputs[k])
            broadcast_strides(inputs[k], out->ndim, out->shape, walk.strides[k + 1]);
        else
            for (int i = 0; i < out->ndim; i++) walk.strides[k + 1][i] = 0;
    }
    collapse(&walk);
    int last = walk.ndim - 1;
    bool in_rows = last < 0 || walk.strides[0][last] == 1;
    bool in_steps = last >= 0 && is_small_step(walk, 0);
    const bool is_short = last > 0 && walk.shape[last] / vector < least_shifted;
    bool aligned = is_aligned(out, vector, last, walk.strides[0]), shifted = !is_short;
    for (int k = 0; k < N; k++) {
        int64_t step = last < 0 ? 0 : walk.strides[k + 1][last];
        operands.repeated[k] = step == 0;
        in_rows = in_rows && (step == 0 || step == 1);
        in_steps = in_steps && is_small_step(walk, k + 1);
        if (step != 1) continue;
        operands.shifted[k] = !is_aligned(inputs[k], vector, last, walk.strides[k + 1]);
        const bool shiftable = !is_short && is_shiftable(dtype_size(inputs[k]->dtype), vector);
        aligned &= shiftable || !operands.shifted[k];
        shifted &= shiftable;
    }
    rows->aligned = aligned && in_rows;
    if (in_rows && last <= 0) return Way::contiguous;
    if (in_rows && !rows->aligned && shifted && vector >= least_shifted_vector) {
        const uintptr_t item = static_cast<uintptr_t>(dtype_size(out->dtype));
        for (bool &one : operands.shifted) one = true;
        rows->shifted = true;
        rows->lead = static_cast<int>(reinterpret_cast<uintptr_t>(out->data) / item %
                                      static_cast<uintptr_t>(vector));
        return Way::rows;
    }
    if (always_rows) return Way::rows;
    if (!in_rows && !in_steps) return Way::strided;
    // Threads of rows without vectors each have several elements, as far apart as threads of a row
    // are many: if these are few, what they write at once is a part of each of many sectors.
    if (!rows->aligned && walk.shape[last] / vector < least_side_by_side) return Way::strided;
    for (int k = 0; in_steps && k <= N; k++)
        operands.steps[k] = static_cast<int32_t>(walk.strides[k][last]);
    return Way::rows;
}

template <class F>
int launch_walk(Call &call, const F &f, const Operands<F::inputs> &operands, const pvg_array *out,
                const pvg_array *const *inputs) {
    InRows<F::inputs> rows{operands, 0, 0, 0, 1, false, false, 0, {}};
    const Way way = choose_way(out, inputs, F::vector, only_rows<F>, &rows);
    if (way == Way::contiguous)
        return launch_contiguous(call, f, rows.operands, out->size, rows.aligned);
    if constexpr (takes_joined<F>) {
        Joined<F::inputs> joined{};
        joined.operands = rows.operands, joined.outer.walk = rows.outer.walk;
        if (join(out, inputs, F::vector, &joined)) {
            PVG_LAUNCH(joined_kernel<F>, blocks_for(out->size, int64_t(map_threads) * F::vector),
                       map_threads, 0, call.stream, f, joined);
            return PVG_OK;
        }
    }
    if (way == Way::rows) return launch_rows(call, f, &rows);
    if constexpr (!only_rows<F>) {
        return launch_strided(call, f, rows, out, inputs);
    }
    return PVG_OK;
}

// Fills in `operands`: whether they lie like the output, and on addresses for vectors.
template <int N> int open_map(Call &call, const pvg_array *out, const pvg_array *const *inputs,
                              int vector, Operands<N> *operands, bool *contiguous, bool *aligned) {
    for (int32_t &step : operands->steps) step = 1;
    operands->output = out->data;
    *contiguous = is_contiguous(out), *aligned = is_aligned(out, vector, 0, nullptr);
    for (int k = 0; k < N; k++) {
        if (!inputs[k]) continue;
        PVG_PASS(call.reads(inputs[k]));
        operands->input[k] = inputs[k]->data;
        *contiguous =
            *contiguous && same_shape(inputs[k], out->ndim, out->shape) && is_contiguous(inputs[k]);
        operands->shifted[k] = !is_aligned(inputs[k], vector, 0, nullptr);
        *aligned &= !operands->shifted[k] || is_shiftable(dtype_size(inputs[k]->dtype), vector);
    }
    return PVG_OK;
}

// Runs f over `out`, with the inputs broadcast to its shape; a NULL among them stands for `scalar`.
// The output must be open for writing (Output::open, or Call::writes).
template <class F>
int launch_map(Call &call, const F &f, pvg_array *out, const pvg_array *const (&inputs)[F::inputs],
               const Scalar *scalar = nullptr) {
    if (out->size == 0) return PVG_OK;
    Operands<F::inputs> operands{};
    if (scalar) operands.scalar = *scalar;
    bool contiguous, aligned;
    PVG_PASS(open_map(call, out, inputs, F::vector, &operands, &contiguous, &aligned));
    if (contiguous) return launch_contiguous(call, f, operands, out->size, aligned);
    return launch_walk(call, f, operands, out, inputs);
}

} // namespace pvg
