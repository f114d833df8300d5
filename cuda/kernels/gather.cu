// pvg_gather and pvg_scatter: elements at the places that arrays of indices name.
//
// Elements are only moved, so one kernel per size of what a thread moves at a time. Rows in which
// all elements have the same indices are moved in words of up to 16 bytes, as if these were the
// elements. Of elements that are written several times the last one wins, whatever runs when:
// find_last finds out which that is.
#include "arrays/operation.cuh"
#include "kernels/pictures.cuh"
#include "kernels/places.cuh"

namespace pvg {

namespace {

constexpr int gather_threads = 256;
constexpr int gather_each = 4; // words a thread

// FLAT is the side without indices: the result of a gather, the values of a scatter.
template <class T, bool SCATTER>
__global__ void __launch_bounds__(gather_threads)
    gather_kernel(const __grid_constant__ Moves moves) {
    int64_t position[gather_each], offsets[3][gather_each];
    const int64_t first = int64_t(blockIdx.x) * gather_each * gather_threads + threadIdx.x;
#pragma unroll
    for (int e = 0; e < gather_each; e++) position[e] = first + e * gather_threads;
    locate(moves.walk, position, offsets);
    T *flat = static_cast<T *>(moves.flat), *indexed = static_cast<T *>(moves.indexed);
    T word[gather_each] = {};
    int64_t by[gather_each];
#pragma unroll
    for (int e = 0; e < gather_each; e++) by[e] = position[e] < moves.size ? 0 : not_written;
    displace<SCATTER>(moves.indices, offsets[2], by);
#pragma unroll
    for (int e = 0; e < gather_each; e++)
        if (by[e] != not_written)
            word[e] = SCATTER ? flat[offsets[0][e]] : indexed[offsets[1][e] + by[e]];
#pragma unroll
    for (int e = 0; e < gather_each; e++) {
        if (by[e] == not_written) continue;
        if (SCATTER)
            indexed[offsets[1][e] + by[e]] = word[e];
        else
            flat[offsets[0][e]] = word[e];
    }
}

// ---- The last of several writes -----------------------------------------------------------------

constexpr int64_t few_writes = 2048; // compared with each other, without a table

// Each thread looks for a later write to its place.
__global__ void __launch_bounds__(index_threads)
    last_of_few_kernel(const int64_t *keys, int64_t size, int64_t *displacements) {
    const int64_t i = int64_t(blockIdx.x) * index_threads + threadIdx.x;
    if (i >= size) return;
    const int64_t key = keys[i];
    for (int64_t later = i + 1; later < size; later++)
        if (keys[later] == key) {
            displacements[i] = not_written;
            return;
        }
}

// A table of all places, of which only those that are written are touched: cleared first, then the
// largest number of a write to it, which others are held against. No step depends on the order of
// threads.
enum class Step { clear, claim, compare };
template <Step STEP>
__global__ void __launch_bounds__(index_threads)
    last_of_many_kernel(const int64_t *keys, int64_t size, unsigned long long *table,
                        int64_t *displacements) {
    const int64_t i = int64_t(blockIdx.x) * index_threads + threadIdx.x;
    if (i >= size) return;
    const unsigned long long number = static_cast<unsigned long long>(i) + 1;
    if (STEP == Step::clear)
#ifdef PVG_SIMULATOR
        atomicExch(&table[keys[i]], 0ull); // by several threads, perhaps
#else
        table[keys[i]] = 0; // initcheck takes an exchange for a read
#endif
    else if (STEP == Step::claim)
        atomicMax(&table[keys[i]], number);
    else if (table[keys[i]] != number)
        displacements[i] = not_written;
}

// Puts displacements in the place of indices, `not_written` for all but the last write to a place.
int find_last(Call &call, const Writes &writes, Indices *indices, Workspace *found) {
    const int64_t n = writes.size, table_size = n > few_writes ? writes.keys + 1 : 0;
    const unsigned blocks = blocks_for(n, index_threads);
    PVG_PASS(found->open(call, static_cast<size_t>(2 * n + table_size) * sizeof(int64_t)));
    int64_t *displacements = found->as<int64_t>(), *keys = displacements + n;
    const Places places = {displacements, nullptr, keys, nullptr, true};
    PVG_LAUNCH(places_kernel, blocks, index_threads, 0, call.stream, writes, *indices, places);
    if (table_size) {
        unsigned long long *table = reinterpret_cast<unsigned long long *>(keys + n);
        PVG_LAUNCH(last_of_many_kernel<Step::clear>, blocks, index_threads, 0, call.stream, keys, n,
                   table, displacements);
        PVG_LAUNCH(last_of_many_kernel<Step::claim>, blocks, index_threads, 0, call.stream, keys, n,
                   table, displacements);
        PVG_LAUNCH(last_of_many_kernel<Step::compare>, blocks, index_threads, 0, call.stream, keys,
                   n, table, displacements);
    } else {
        PVG_LAUNCH(last_of_few_kernel, blocks, index_threads, 0, call.stream, keys, n,
                   displacements);
    }
    indices->displacements = displacements;
    return PVG_OK;
}

// ---- What is moved from where to where ----------------------------------------------------------

// How many elements a word has: as many as 16 bytes hold, if rows, strides and addresses allow it.
int64_t elements_of_a_word(const Moves &moves, const Walk<4> &walk, int64_t item) {
    const int last = walk.ndim - 1;
    if (last < 0 || walk.strides[1][last] != 1 || walk.strides[2][last] != 1 ||
        walk.strides[3][last] != 0)
        return 1;
    uint64_t bits = static_cast<uint64_t>(walk.shape[last] * item) |
                    reinterpret_cast<uintptr_t>(moves.flat) |
                    reinterpret_cast<uintptr_t>(moves.indexed);
    for (int i = 0; i < last; i++)
        bits |= static_cast<uint64_t>(walk.strides[1][i] * item) |
                static_cast<uint64_t>(walk.strides[2][i] * item);
    for (int j = 0; j < moves.indices.count; j++)
        bits |= static_cast<uint64_t>(moves.indices.stride[j] * item);
    int64_t bytes = 16;
    while (bytes > item && bits % static_cast<uint64_t>(bytes) != 0) bytes /= 2;
    return bytes > item ? bytes / item : 1;
}

// Fills in the moves; returns the bytes of a word. flat: strides of the side without indices.
int64_t prepare_moves(const Picture &p, const int64_t *flat, int64_t item, Moves *moves) {
    Walk<4> walk; // C order; the side without indices; the other; the indices
    walk.ndim = p.ndim;
    contiguous_strides(p.ndim, p.shape, walk.strides[0]);
    for (int i = 0; i < p.ndim; i++) {
        walk.shape[i] = p.shape[i], walk.strides[1][i] = flat[i];
        walk.strides[2][i] = p.indexed[i], walk.strides[3][i] = p.index[i];
    }
    collapse(&walk);
    moves->indices = p.indices;
    const int64_t n = elements_of_a_word(*moves, walk, item);
    const int last = walk.ndim - 1;
    if (n > 1) {
        walk.shape[last] /= n;
        for (int i = 0; i < last; i++) walk.strides[1][i] /= n, walk.strides[2][i] /= n;
        for (int j = 0; j < p.indices.count; j++) moves->indices.stride[j] /= n;
    }
    moves->size = 1;
    for (int i = 0; i < walk.ndim; i++) moves->size *= walk.shape[i];
    locate_by(walk, &moves->walk);
    return n * item;
}

template <bool SCATTER> int launch_moves(Call &call, const Moves &moves, int64_t bytes) {
    const auto launch_words = [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const unsigned blocks = blocks_for(moves.size, gather_threads * gather_each);
        PVG_LAUNCH((gather_kernel<T, SCATTER>), blocks, gather_threads, 0, call.stream, moves);
        return PVG_OK;
    };
    switch (bytes) {
    case 1: return launch_words(Tag<uint8_t>());
    case 2: return launch_words(Tag<uint16_t>());
    case 4: return launch_words(Tag<uint32_t>());
    case 8: return launch_words(Tag<uint64_t>());
    }
    return launch_words(Tag<Bytes16>());
}

// ---- The calls ----------------------------------------------------------------------------------

int run_gather(Call &call, const pvg_array *a, const pvg_array *indices, int count, const int *axes,
               int place, int trusted, Output *result) {
    const pvg_array *operands[2] = {a, indices};
    int device = -1;
    Temporary converted;
    Picture p;
    PVG_PASS(check_operands(operands, 2, &device));
    PVG_PASS(call.begin(device));
    PVG_PASS(readable_indices(call, indices, &converted, &indices));
    PVG_PASS(make_picture(a, indices, count, axes, place, &p));
    if (!trusted) PVG_PASS(expect_reports(call, Report::gather, &p.indices));
    PVG_PASS(result->open(call, a->dtype, p.ndim, p.shape, nullptr, nullptr, 0));
    if (result->array->size == 0) return look_at_indices(call, p, indices);
    Moves moves{};
    moves.flat = result->array->data, moves.indexed = a->data;
    const int64_t bytes = prepare_moves(p, result->array->strides, dtype_size(a->dtype), &moves);
    PVG_PASS(call.reads(a));
    PVG_PASS(call.reads(indices));
    return launch_moves<false>(call, moves, bytes);
}

// Whether places that are named twice may be given different values.
bool needs_order(const Picture &p, const int64_t *values) {
    bool differ = false;
    for (int i = 0; i < p.ndim; i++)
        differ = differ || (p.chosen[i] && p.shape[i] > 1 && values[i] != 0);
    return differ;
}

int launch_scatter(Call &call, pvg_array *a, const pvg_array *indices, Picture p,
                   const pvg_array *values, const int64_t *strides) {
    Moves moves{};
    Workspace found;
    moves.flat = values->data, moves.indexed = a->data;
    PVG_PASS(call.reads(indices));
    PVG_PASS(call.reads(values));
    PVG_PASS(call.writes(a));
    const bool ordered = needs_order(p, strides);
    Writes writes{};
    if (ordered) { // the indices make room for displacements, which lie in C order
        picture_writes(p, nullptr, &writes);
        int64_t step = 1;
        for (int i = p.ndim - 1; i >= 0; i--) {
            p.index[i] = p.chosen[i] ? step : 0;
            step *= p.chosen[i] ? p.shape[i] : 1;
        }
    }
    const int64_t bytes = prepare_moves(p, strides, dtype_size(a->dtype), &moves);
    if (ordered) PVG_PASS(find_last(call, writes, &moves.indices, &found));
    return launch_moves<true>(call, moves, bytes);
}

int run_scatter(Call &call, pvg_array *a, const pvg_array *indices, int count, const int *axes,
                int place, int trusted, const pvg_array *values) {
    const pvg_array *operands[3] = {a, indices, values};
    int device = -1;
    int64_t strides[PVG_MAX_NDIM];
    Temporary converted, copied, holders[3];
    Picture p;
    PVG_PASS(check_operands(operands, 3, &device));
    PVG_REQUIRE(!a->readonly, PVG_ERROR_VALUE, "the array of shape %s and dtype %s is read-only",
                shape_text(a), dtype_name(a->dtype));
    PVG_PASS(call.begin(device));
    PVG_PASS(readable_indices(call, indices, &converted, &indices));
    if (may_overlap(indices, a)) {
        PVG_PASS(new_array(device, indices->dtype, indices->ndim, indices->shape, &copied.array));
        PVG_PASS(copy_array(call, indices, copied.array));
        indices = copied.array;
    }
    PVG_PASS(make_picture(a, indices, count, axes, place, &p));
    if (!trusted) PVG_PASS(expect_reports(call, Report::scatter, &p.indices));
    PVG_PASS(readable_values(call, a, p, holders, &values, strides));
    for (int i = 0; i < p.ndim; i++)
        if (p.shape[i] == 0) return look_at_indices(call, p, indices);
    return launch_scatter(call, a, indices, p, values, strides);
}

} // namespace

Operations gather_operations() {
    static constexpr Operation rows[] = {
        {PVG_GATHER, "gather", Family::other, all_kinds, Gives::same},
        {PVG_SCATTER, "scatter", Family::other, all_kinds, Gives::none},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_gather(const pvg_array *a, const pvg_array *indices, int count,
                              const int *axes, int place, int trusted) {
    pvg::Call call("gather");
    pvg::Output result;
    int status = pvg::run_gather(call, a, indices, count, axes, place, trusted, &result);
    return result.close(call, status);
}

PVG_API int pvg_scatter(pvg_array *a, const pvg_array *indices, int count, const int *axes,
                        int place, int trusted, const pvg_array *values) {
    pvg::Call call("scatter");
    return pvg::run_scatter(call, a, indices, count, axes, place, trusted, values);
}
