// pvg_accumulate: values combined with the elements at the places that indices name. Their places
// are found and sorted; then rounds of accumulate_rounds.cuh combine what belongs to one place.
//
// Sums that do not count what was there are written without reading it. What no index names becomes
// zeros while few writes are sorted; or, of whole rows, while the others are written.
#include "arrays/copy.cuh"
#include "arrays/operation.cuh"
#include "kernels/accumulate_rounds.cuh"
#include "kernels/pictures.cuh"
#include "kernels/radix.cuh"

namespace pvg {

namespace {

constexpr int64_t most_writes = UINT32_MAX;
constexpr int64_t few_entries = 512; // for one round, the last
constexpr int most_rounds = 8;       // each has a 16th of the writes of the one before

int64_t divided_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

int team_of(int64_t threads) {
    int team = 1;
    while (team < 32 && team < threads) team *= 2;
    return team;
}

// Starts of parts of a workspace, one behind the other.
struct Parts {
    size_t bytes = 0;
    size_t add(int64_t count, size_t item) {
        const size_t at = bytes;
        bytes += (static_cast<size_t>(count) * item + 255) / 256 * 256;
        return at;
    }
};

int launch_round(Call &call, int dtype, bool first, const Round &round) {
    const int64_t teams = accumulate_threads / round.team;
    const int64_t blocks =
        divided_up(divided_up(round.count, chunk_writes) *
                       divided_up(round.columns, int64_t(round.team) * round.pack),
                   teams) +
        (first ? round.absent.blocks : 0);
    PVG_REQUIRE(blocks <= INT32_MAX, PVG_ERROR_VALUE, "values of %lld times %lld elements",
                static_cast<long long>(round.count), static_cast<long long>(round.columns));
    return dispatch(dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const unsigned grid = static_cast<unsigned>(blocks);
        if (first && round.pack > 1)
            PVG_LAUNCH((accumulate_kernel<T, true, accumulate_pack<T>>), grid, accumulate_threads,
                       0, call.stream, round);
        else if (first)
            PVG_LAUNCH((accumulate_kernel<T, true, 1>), grid, accumulate_threads, 0, call.stream,
                       round);
        else
            PVG_LAUNCH((accumulate_kernel<T, false, 1>), grid, accumulate_threads, 0, call.stream,
                       round);
        return PVG_OK;
    });
}

// All rounds. `round` is the first one, but for where the next one's entries go. All memory is
// there before the first launch, so that a lack of it leaves the array as it is.
int launch_rounds(Call &call, int dtype, size_t item, Round round) {
    struct Entries {
        int64_t count;
        size_t keys, numbers, values;
    };
    Entries entries[most_rounds] = {}; // that a round leaves; none by the last one
    Parts parts;
    int rounds = 0;
    for (int64_t n = round.count; n > (rounds ? few_entries : chunk_writes); rounds++) {
        n = 2 * divided_up(n, chunk_writes);
        entries[rounds] = {n, parts.add(n, sizeof(uint64_t)), parts.add(n, sizeof(uint32_t)),
                           parts.add(n * round.columns, item)};
    }
    Workspace memory;
    PVG_PASS(memory.open(call, parts.bytes + 1));
    unsigned char *start = memory.as<unsigned char>();
    for (int number = 0; number <= rounds; number++) {
        const Entries &left = entries[number];
        if (number < rounds) {
            round.next_keys = reinterpret_cast<uint64_t *>(start + left.keys);
            round.next_numbers = reinterpret_cast<uint32_t *>(start + left.numbers);
            round.next_values = start + left.values;
        } else {
            round.next_keys = nullptr, round.next_numbers = nullptr, round.next_values = nullptr;
        }
        PVG_PASS(launch_round(call, dtype, number == 0, round));
        round.pack = 1, round.team = team_of(round.columns);
        round.keys = round.next_keys, round.numbers = round.next_numbers;
        round.values = round.next_values, round.count = left.count;
    }
    return PVG_OK;
}

int bits_of(int64_t largest) {
    int bits = 1;
    while (largest >> bits) bits++;
    return bits;
}

// Sorts the writes by their places; fills in what a round reads of them.
template <class K>
int sort_writes(Call &call, const Writes &writes, const Indices &indices, const radix::Zeros &zeros,
                Workspace *memory, Round *round) {
    const int64_t n = writes.size;
    Parts parts;
    const size_t displacements = parts.add(n, 8), sources = parts.add(n, 8),
                 keys = parts.add(n, sizeof(K)), other_keys = parts.add(n, sizeof(K)),
                 numbers = parts.add(n, 4), other_numbers = parts.add(n, 4);
    PVG_PASS(memory->open(call, parts.bytes));
    unsigned char *at = memory->as<unsigned char>();
    radix::Buffers<K> buffers = {reinterpret_cast<K *>(at + keys),
                                 reinterpret_cast<K *>(at + other_keys),
                                 reinterpret_cast<uint32_t *>(at + numbers),
                                 reinterpret_cast<uint32_t *>(at + other_numbers)};
    const Places places = {reinterpret_cast<int64_t *>(at + displacements),
                           reinterpret_cast<int64_t *>(at + sources), buffers.keys, buffers.values,
                           sizeof(K) == 8};
    PVG_LAUNCH(places_kernel, blocks_for(n, index_threads), index_threads, 0, call.stream, writes,
               indices, places);
    PVG_PASS(radix::sort(call, &buffers, n, bits_of(writes.keys), zeros));
    round->keys = buffers.keys, round->wide = places.wide, round->numbers = buffers.values;
    round->displacements = places.displacements, round->sources = places.sources;
    return PVG_OK;
}

// The elements that a thread has: a pack, if all packs begin where packs do.
int elements_of_a_thread(const Picture &p, const int64_t *values, const Round &round, int dtype) {
    const int64_t item = dtype_size(dtype);
    const bool sums = round.operation == PVG_ADD || round.operation == PVG_SUM;
    const int pack = sums ? pack_of(static_cast<size_t>(item), is_among(dtype, floats)) : 1;
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(round.values) | reinterpret_cast<uintptr_t>(round.target);
    int64_t steps = round.columns; // what divides all of them divides it, if it is a power of two
    for (int i = 0; i < p.ndim; i++)
        if (p.chosen[i]) steps |= values[i] | p.indexed[i];
    for (int j = 0; j < p.indices.count; j++) steps |= p.indices.stride[j];
    return steps % pack == 0 && places % static_cast<uintptr_t>(pack * item) == 0 ? pack : 1;
}

// The walk over the elements beside the indices, in the values and in the target.
void picture_elements(const Picture &p, const int64_t *values, int dtype, Round *round) {
    Walk<3> walk; // C order; the values; the array
    walk.ndim = 0, round->columns = 1;
    for (int i = 0; i < p.ndim; i++) {
        if (p.chosen[i]) continue;
        walk.shape[walk.ndim] = p.shape[i], walk.strides[1][walk.ndim] = values[i];
        walk.strides[2][walk.ndim++] = p.indexed[i];
        round->columns *= p.shape[i];
    }
    contiguous_strides(walk.ndim, walk.shape, walk.strides[0]);
    collapse(&walk);
    locate_by(walk, &round->walk);
    round->pack = walk.ndim == 1 && walk.strides[1][0] == 1 && walk.strides[2][0] == 1
                      ? elements_of_a_thread(p, values, *round, dtype)
                      : 1;
    round->team = team_of(round->columns / round->pack);
}

int check_accumulation(int operation, const pvg_array *a) {
    const bool extreme = operation == PVG_MAXIMUM || operation == PVG_MINIMUM;
    PVG_REQUIRE(extreme || operation == PVG_ADD || operation == PVG_SUM ||
                    operation == PVG_SUBTRACT || operation == PVG_MULTIPLY,
                PVG_ERROR_VALUE, "%d is none of the operations that accumulate", operation);
    if (extreme) return check_kinds(a->dtype, ordered);
    return operation == PVG_SUBTRACT ? check_kinds(a->dtype, numbers) : static_cast<int>(PVG_OK);
}

int fill_zeros(Call &call, pvg_array *a) {
    const int64_t zero = 0;
    return fill_array(call, a, PVG_SCALAR_INT, &zero);
}

// Zeros for what a fresh target's sums are not for: while few writes are sorted, or, if places are
// whole rows, by the first round, which then knows where none are needed; or at once.
int prepare_target(Call &call, pvg_array *a, int count, const int *axes, const Writes &writes,
                   Round *round, radix::Zeros *zeros) {
    const bool whole = is_contiguous(a);
    bool rows = whole;
    for (int j = 0; j < count; j++) rows = rows && axes[j] == j;
    const int64_t item = dtype_size(a->dtype), columns = a->size / writes.keys;
    round->fresh = true;
    if (whole && writes.size <= radix::few_keys)
        *zeros = {a->data, a->size * item};
    else if (rows && are_found_absent(a->data, columns, item))
        round->absent = absent_rows_of(writes.keys, columns, item);
    else
        PVG_PASS(fill_zeros(call, a));
    return PVG_OK;
}

int run_accumulate(Call &call, int operation, pvg_array *a, const pvg_array *indices, int count,
                   const int *axes, int place, int trusted, const pvg_array *values) {
    const pvg_array *operands[3] = {a, indices, values};
    int device = -1;
    int64_t strides[PVG_MAX_NDIM];
    Temporary converted, holders[3];
    Picture p;
    PVG_PASS(check_operands(operands, 3, &device));
    PVG_PASS(check_accumulation(operation, a));
    PVG_REQUIRE(!a->readonly, PVG_ERROR_VALUE, "the array of shape %s and dtype %s is read-only",
                shape_text(a), dtype_name(a->dtype));
    PVG_PASS(call.begin(device));
    PVG_PASS(readable_indices(call, indices, &converted, &indices));
    PVG_PASS(make_picture(a, indices, count, axes, place, &p));
    if (!trusted) PVG_PASS(expect_reports(call, Report::accumulate, &p.indices));
    PVG_PASS(readable_values(call, a, p, holders, &values, strides));
    PVG_PASS(call.reads(indices));
    for (int i = 0; i < p.ndim; i++) {
        if (p.shape[i] != 0) continue;
        if (operation == PVG_SUM) PVG_PASS(fill_zeros(call, a));
        return look_at_indices(call, p);
    }
    Writes writes{};
    Round round{};
    Workspace sorted;
    picture_writes(p, strides, &writes);
    PVG_REQUIRE(writes.size <= most_writes, PVG_ERROR_VALUE,
                "accumulates fewer than 2^32 indices, not %lld",
                static_cast<long long>(writes.size));
    round.values = values->data, round.target = a->data;
    round.count = writes.size, round.operation = operation;
    picture_elements(p, strides, a->dtype, &round);
    PVG_PASS(call.reads(values));
    PVG_PASS(call.writes(a));
    radix::Zeros zeros = {};
    if (operation == PVG_SUM)
        PVG_PASS(prepare_target(call, a, count, axes, writes, &round, &zeros));
    PVG_PASS(writes.keys < UINT32_MAX
                 ? sort_writes<uint32_t>(call, writes, p.indices, zeros, &sorted, &round)
                 : sort_writes<uint64_t>(call, writes, p.indices, zeros, &sorted, &round));
    return dispatch(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        return launch_rounds(call, a->dtype, sizeof(ComputeType<T>), round);
    });
}

} // namespace

Operations accumulate_operations() {
    static constexpr Operation rows[] = {
        {PVG_ACCUMULATE, "accumulate", Family::other, all_kinds, Gives::none},
    };
    return rows;
}

} // namespace pvg

PVG_API int pvg_accumulate(int operation, pvg_array *a, const pvg_array *indices, int count,
                           const int *axes, int place, int trusted, const pvg_array *values) {
    pvg::Call call("accumulate");
    return pvg::run_accumulate(call, operation, a, indices, count, axes, place, trusted, values);
}
