// pvg_gather and pvg_scatter: elements at the places that arrays of indices name.
//
// Elements are only moved, so one kernel per size of what a thread moves at a time. Rows in which
// all elements have the same indices are moved in words of up to 16 bytes, as if these were the
// elements. Of elements that are written several times the last one wins, whatever runs when; see
// last_writes.cuh. pvg_index_get and pvg_index_set: the same by a key (named.cuh), in one call.
#include "arrays/copy.cuh"
#include "arrays/operation.cuh"
#include "kernels/element_writes.cuh"
#include "kernels/masks.cuh"
#include "kernels/named.cuh"
#include "kernels/picks.cuh"

namespace pvg {

namespace {

// FLAT is the side without indices: the result of a gather, the values of a scatter.
template <class T, Way WAY>
__global__ void __launch_bounds__(gather_threads)
    gather_kernel(const __grid_constant__ Moves moves) {
    constexpr bool writes = WAY != Way::gather;
    int64_t position[gather_each], offsets[3][gather_each];
    const int64_t first = int64_t(blockIdx.x) * gather_each * gather_threads + threadIdx.x;
#pragma unroll
    for (int e = 0; e < gather_each; e++) position[e] = first + e * gather_threads;
    locate(moves.walk, position, offsets);
    T *flat = static_cast<T *>(moves.flat), *indexed = static_cast<T *>(moves.indexed);
    T word[gather_each] = {};
    int64_t by[gather_each], key[gather_each];
#pragma unroll
    for (int e = 0; e < gather_each; e++) by[e] = position[e] < moves.size ? 0 : not_written;
    displace<WAY>(moves.indices, offsets[2], by, key);
    if (WAY == Way::mark) {
        int64_t marked[gather_each];
        const int64_t words = moves.indices.words;
#pragma unroll
        for (int e = 0; e < gather_each; e++)
            marked[e] = words == 1 || position[e] % words == 0 ? by[e] : not_written;
        mark_places(moves.indices, key, marked);
        if (mends > 1) return;
    }
#pragma unroll
    for (int e = 0; e < gather_each; e++)
        if (by[e] != not_written)
            word[e] = !writes ? indexed[offsets[1][e] + by[e]]
                      : flat  ? flat[offsets[0][e]]
                              : moves.word.as<T>();
#pragma unroll
    for (int e = 0; e < gather_each; e++) {
        if (by[e] == not_written) continue;
        if (writes)
            indexed[offsets[1][e] + by[e]] = word[e];
        else
            flat[offsets[0][e]] = word[e];
    }
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

template <Way WAY> int launch_moves(Call &call, const Moves &moves, int64_t bytes) {
    return dispatch_words(bytes, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const unsigned blocks = blocks_for(moves.size, gather_threads * gather_each);
        PVG_LAUNCH((gather_kernel<T, WAY>), blocks, gather_threads, 0, call.stream, moves);
        return PVG_OK;
    });
}

// The side without indices is contiguous.
int launch_gather(Call &call, Moves *moves, int64_t bytes) {
    if (!is_pick(moves)) return launch_moves<Way::gather>(call, *moves, bytes);
    return launch_picks(call, *moves, bytes);
}

// Of many writes, the last one to each place. flat_step: from a value to the next one's, in
// elements. in_turn: the words of each write follow those of the one before.
int launch_mended(Call &call, Moves *moves, int64_t size, int64_t keys, int64_t flat_step,
                  int64_t item, int64_t bytes, bool in_turn) {
    Workspace found;
    PVG_PASS(open_marks(call, size, keys, &moves->indices, &found));
    if (moves->size == size || in_turn) {
        moves->indices.words = moves->size / size;
        PVG_PASS(launch_moves<Way::mark>(call, *moves, bytes));
    } else {
        PVG_LAUNCH(mark_kernel, blocks_for(size, index_threads), index_threads, 0, call.stream,
                   moves->indices, size);
        if (mends == 1) PVG_PASS(launch_moves<Way::scatter>(call, *moves, bytes));
    }
    return dispatch_words(bytes, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        unsigned blocks = blocks_for(moves->size, index_threads);
        if (blocks > most_mend_blocks) blocks = most_mend_blocks;
        for (int turn = 1; turn <= mends; turn++)
            PVG_LAUNCH(mend_kernel<T>, blocks, index_threads, 0, call.stream, *moves,
                       flat_step * item / bytes, turn == mends);
        return PVG_OK;
    });
}

// ---- The calls ----------------------------------------------------------------------------------

// The elements that a picture of the array shows. The stream may read the indices.
int gather_picture(Call &call, const pvg_array *a, const Picture &p, Output *result) {
    PVG_PASS(result->open(call, a->dtype, p.ndim, p.shape, nullptr, nullptr, 0));
    if (result->array->size == 0) return look_at_indices(call, p);
    Moves moves{};
    moves.flat = result->array->data, moves.indexed = a->data;
    const int64_t bytes = prepare_moves(p, result->array->strides, dtype_size(a->dtype), &moves);
    PVG_PASS(call.reads(a));
    return launch_gather(call, &moves, bytes);
}

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
    p.indices.from_end = trusted != PVG_FROM_START;
    if (trusted != 1) PVG_PASS(expect_reports(call, Report::gather, &p.indices));
    PVG_PASS(call.reads(indices));
    return gather_picture(call, a, p, result);
}

// Whether places that are named twice may be given different values.
bool needs_order(const Picture &p, const int64_t *values) {
    bool differ = false;
    for (int i = 0; i < p.ndim; i++)
        differ = differ || (p.chosen[i] && p.shape[i] > 1 && values[i] != 0);
    return differ;
}

// Whether indices lie where the numbers of the writes say, and alone tell places apart; and values
// lie at even distances, *flat_step.
bool are_numbers(const Picture &p, const int64_t *values, int64_t *flat_step) {
    int64_t step = 1;
    *flat_step = 0;
    for (int i = p.ndim - 1; i >= 0; i--) {
        if (!p.chosen[i]) continue;
        if (p.key[i] != 0 || p.indexed[i] != 0) return false;
        if (p.shape[i] == 1) continue;
        if (p.index[i] != step) return false;
        if (step == 1) *flat_step = values[i];
        if (values[i] != step * *flat_step) return false;
        step *= p.shape[i];
    }
    return true;
}

// Whether the axes of the indices stand before the array's other ones.
bool is_first(const Picture &p) {
    for (int i = 1; i < p.ndim; i++)
        if (p.chosen[i] && !p.chosen[i - 1]) return false;
    return true;
}

// The indices, in C order, by the numbers of the writes; and their side of the array left out.
void number_writes(Picture *p, bool with_places) {
    int64_t step = 1;
    for (int i = p->ndim - 1; i >= 0; i--) {
        p->index[i] = p->chosen[i] ? step : 0;
        if (p->chosen[i] && with_places) p->indexed[i] = 0;
        step *= p->chosen[i] ? p->shape[i] : 1;
    }
}

// Values to what a picture of the array shows, or without values a word. strides: of the values
// along the picture's axes. The stream may read indices and values.
int scatter_picture(Call &call, pvg_array *a, Picture p, const pvg_array *values,
                    const int64_t *strides, const Scalar *word) {
    Moves moves{};
    Workspace found;
    const int item = static_cast<int>(dtype_size(a->dtype));
    int64_t anywhere[PVG_MAX_NDIM];
    moves.indexed = a->data;
    if (values) {
        moves.flat = values->data;
    } else {
        contiguous_strides(p.ndim, p.shape, anywhere);
        strides = anywhere;
        for (int i = 0; i < largest_item; i++) moves.word.bytes[i] = word->bytes[i % item];
    }
    PVG_PASS(call.writes(a));
    if (!values || !needs_order(p, strides))
        return launch_moves<Way::scatter>(call, moves, prepare_moves(p, strides, item, &moves));
    int64_t size = 1, words = 1;
    for (int i = 0; i < p.ndim; i++) (p.chosen[i] ? size : words) *= p.shape[i];
    const bool single = p.ndim == 1 && p.indices.count == 1;
    int clustered = 0; // places
    if (single && size > few_writes) PVG_PASS(places_of_clusters(call, size, p.keys, &clustered));
    const bool crowded = size > few_writes && size < UINT32_MAX && is_crowded(size, p.keys);
    const bool pairs = single && are_in_pairs(p.indices, p.index[0]);
    const int places = single ? places_of_ranges(size, p.keys, pairs) : 0;
    Parting parting{};
    if (single && size > few_writes && size / 8 <= p.keys && places == 0 && clustered == 0)
        PVG_PASS(plan_parting(call, size, p.keys, item, &parting));
    const bool in_ranges = places > 0 && size > least_in_ranges, parted = parting.parts > 0;
    if (single && (in_ranges || clustered > 0 || parted || crowded)) {
        const Ranges ranges = {values->data, a->data,    size,
                               strides[0],   p.index[0], places > 0 ? places : clustered,
                               pairs,        p.indices};
        return places > 0      ? launch_ranges(call, ranges, p.keys, item)
               : clustered > 0 ? launch_clusters(call, ranges, p.keys, item)
               : parted        ? launch_parted(call, ranges, parting, item)
                               : launch_crowd(call, ranges, p.keys, item);
    }
    int64_t step = 0;
    if (size > few_writes && !(crowded && words > 1) && is_worth_marking(size, p.keys) &&
        are_numbers(p, strides, &step)) {
        const int64_t bytes = prepare_moves(p, strides, item, &moves);
        return launch_mended(call, &moves, size, p.keys, step, item, bytes, is_first(p));
    }
    const bool few = size <= few_writes;
    Writes writes{};
    picture_writes(p, few ? strides : nullptr, &writes);
    number_writes(&p, few);
    const int64_t bytes = prepare_moves(p, strides, item, &moves);
    if (few) return launch_few(call, moves, writes, bytes);
    PVG_PASS(find_last(call, writes, &moves.indices, &found));
    return launch_moves<Way::scatter>(call, moves, bytes);
}

int check_writable(const pvg_array *a) {
    PVG_REQUIRE(!a->readonly, PVG_ERROR_VALUE, "the array of shape %s and dtype %s is read-only",
                shape_text(a), dtype_name(a->dtype));
    return PVG_OK;
}

// Indices that lie not where the array does, in `holder` if they did.
int apart_from(Call &call, const pvg_array *a, Temporary *holder, const pvg_array **indices) {
    const pvg_array *given = *indices;
    if (!may_overlap(given, a)) return PVG_OK;
    PVG_PASS(new_array(call.device, given->dtype, given->ndim, given->shape, &holder->array));
    PVG_PASS(copy_array(call, given, holder->array));
    *indices = holder->array;
    return PVG_OK;
}

// The values for a picture, or the word, to where it shows.
int write_picture(Call &call, pvg_array *a, const Picture &p, const pvg_array *values,
                  const Scalar *word) {
    int64_t strides[PVG_MAX_NDIM];
    Temporary holders[3];
    if (values) PVG_PASS(readable_values(call, a, p, holders, &values, strides));
    for (int i = 0; i < p.ndim; i++)
        if (p.shape[i] == 0) return look_at_indices(call, p);
    if (values) PVG_PASS(call.reads(values));
    return scatter_picture(call, a, p, values, strides, word);
}

int run_scatter(Call &call, pvg_array *a, const pvg_array *indices, int count, const int *axes,
                int place, int trusted, const pvg_array *values) {
    const pvg_array *operands[3] = {a, indices, values};
    int device = -1;
    Temporary converted, copied;
    Picture p;
    PVG_PASS(check_operands(operands, 3, &device));
    PVG_PASS(check_writable(a));
    PVG_PASS(call.begin(device));
    PVG_PASS(readable_indices(call, indices, &converted, &indices));
    PVG_PASS(apart_from(call, a, &copied, &indices));
    PVG_PASS(make_picture(a, indices, count, axes, place, &p));
    if (!trusted) PVG_PASS(expect_reports(call, Report::scatter, &p.indices));
    PVG_PASS(call.reads(indices));
    return write_picture(call, a, p, values, nullptr);
}

// ---- By a key -----------------------------------------------------------------------------------

// The rows of an array, or whole elements of its first axes, where a mask of these is true.
int gather_masked(Call &call, const pvg_array *a, const pvg_array *mask, Output *result) {
    if (mask->ndim == a->ndim) return select_where(call, a, mask, result);
    pvg_array view = *a; // the mask's axes as one
    const int merged = mask->ndim - 1;
    for (int i = 0; i < merged; i++)
        PVG_REQUIRE(a->strides[i] == a->shape[i + 1] * a->strides[i + 1], PVG_ERROR_VALUE,
                    "axes that are not one behind the other");
    view.ndim = a->ndim - merged;
    for (int i = 0; i < view.ndim; i++)
        view.shape[i] = a->shape[i + merged], view.strides[i] = a->strides[i + merged];
    view.shape[0] = mask->size;
    Temporary places;
    PVG_PASS(find_where(call, mask, &places));
    const int axes[1] = {0};
    const bool is_indexed[PVG_MAX_NDIM] = {true};
    Picture p;
    PVG_PASS(picture_planes(&view, 1, places.array->shape, places.array->strides, 1, axes,
                            is_indexed, 0, &p));
    picture_axes(&view, 1, axes, true, &p);
    p.indices.first[0] = places.array->data;
    PVG_PASS(call.reads(places.array));
    return gather_picture(call, &view, p, result);
}

int run_index_get(Call &call, const pvg_array *a, int n, const int64_t *items, Output *result) {
    Named named;
    Planes planes;
    Picture p;
    PVG_PASS(read_key(a, n, items, &named));
    PVG_PASS(call.begin(device_of(a)));
    if (named.mask) return gather_masked(call, a, named.mask, result);
    PVG_PASS(make_planes(call, named, nullptr, &planes));
    PVG_PASS(picture_key(call, named, planes, &p));
    PVG_PASS(expect_reports(call, Report::gather, &p.indices));
    return gather_picture(call, &named.view, p, result);
}

int run_index_set(Call &call, pvg_array *a, int n, const int64_t *items, const pvg_array *values,
                  int kind, const void *value) {
    Named named;
    Planes planes;
    Picture p;
    Scalar scalar;
    PVG_PASS(read_key(a, n, items, &named));
    if (values) PVG_PASS(check_array(values, "values"));
    PVG_REQUIRE(!values || device_of(values) == device_of(a), PVG_ERROR_VALUE,
                "values of another device");
    PVG_REQUIRE(!named.mask || (!values && named.mask->ndim == a->ndim), PVG_ERROR_VALUE,
                "bools of shape %s for values or rows", shape_text(named.mask));
    if (!values) PVG_PASS(make_scalar(a->dtype, kind, value, &scalar));
    PVG_PASS(check_writable(a));
    PVG_PASS(call.begin(device_of(a)));
    if (named.mask) return fill_where(call, a, named.mask, scalar);
    PVG_PASS(make_planes(call, named, a, &planes));
    PVG_PASS(picture_key(call, named, planes, &p));
    PVG_PASS(expect_reports(call, Report::scatter, &p.indices));
    return write_picture(call, &named.view, p, values, &scalar);
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

PVG_API pvg_array *pvg_index_get(const pvg_array *a, int n, const int64_t *items) {
    pvg::Call call("gather");
    pvg::Output result;
    int status = pvg::run_index_get(call, a, n, items, &result);
    return result.close(call, status);
}

PVG_API int pvg_index_set(pvg_array *a, int n, const int64_t *items, const pvg_array *values,
                          int kind, const void *value) {
    pvg::Call call("scatter");
    return pvg::run_index_set(call, a, n, items, values, kind, value);
}
