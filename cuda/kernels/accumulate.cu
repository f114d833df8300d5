// pvg_accumulate: values combined with the elements at the places that indices name, all those of
// one place in an order that depends on the shapes alone.
//
// The places of all writes are sorted (stable), so that the values of one place, a run, lie side by
// side. A team of threads, one for each element beside the indices, goes through a chunk of them
// and combines one after the other; what a team of a whole warp has to know of its chunk's writes
// each lane finds out of one of them. A run that ends within its chunk is finished there; what
// belongs to a run that began before the chunk (the head) or goes on behind it (the tail) becomes
// an entry of the next, shorter list of writes, on which the same is done again, until there are
// few. Of those a team goes through all of each run that begins in its chunk. There is no atomic
// addition, whose order would change the bits from run to run.
//
// Sums that do not count what was there are written without reading it; of whole rows those that no
// index names become zeros meanwhile.
#include "arrays/copy.cuh"
#include "arrays/operation.cuh"
#include "kernels/absent_rows.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/pictures.cuh"
#include "kernels/radix.cuh"

namespace pvg {

namespace {

constexpr int accumulate_threads = 256;
constexpr int chunk_writes = 32; // a team's; of a warp one a lane
// Of which the loads are under way together: later rounds, of few writes, wait for little else.
template <class T, bool FIRST>
constexpr int at_a_time = FIRST || sizeof(ComputeType<T>) > 8 ? 4 : 8;
constexpr int64_t most_writes = UINT32_MAX;
constexpr int64_t few_entries = 512; // for one round, the last
constexpr int most_rounds = 8;       // each has a 16th of the writes of the one before

// The writes of one round, sorted by their keys. Of the first round the values are in an array; of
// the others in entries of `columns` values each, which may be empty.
struct Round {
    const void *keys; // of the first round: uint64 if `wide`, else uint32
    bool wide;
    const uint32_t *numbers;                // of writes; in the other rounds of one of the run
    const int64_t *displacements, *sources; // of writes, by number
    const void *values;                     // of the first round the array's
    int64_t count, columns;
    // Of the next round, two for each chunk: 2 key + (0 or, without values, 1), number, values.
    // NULL in the last one.
    uint64_t *next_keys;
    uint32_t *next_numbers;
    void *next_values;
    void *target; // the array that is written to
    int operation;
    bool fresh;        // what is in the target counts as zeros
    AbsentRows absent; // the first round's, with a fresh target
    int team;          // threads of a team, a power of two
    Locator<2> walk;   // the elements beside the indices: in the values, in the target
};

template <class T> __device__ T combined(int operation, T a, T b) {
    switch (operation) {
    case PVG_MULTIPLY:
        if constexpr (is_complex<T>)
            return a * b;
        else
            return multiply(a, b);
    case PVG_MAXIMUM:
        if constexpr (!is_complex<T>) return maximum(a, b);
        break;
    case PVG_MINIMUM:
        if constexpr (!is_complex<T>) return minimum(a, b);
        break;
    }
    if constexpr (is_complex<T>)
        return a + b;
    else
        return add(a, b);
}

// What a place gets: what was there, combined with its values.
template <class T> __device__ T finished(int operation, T before, T values) {
    if constexpr (!is_bool<T>)
        if (operation == PVG_SUBTRACT) {
            if constexpr (is_complex<T>)
                return before - values;
            else
                return subtract(before, values);
        }
    return combined(operation, before, values);
}

// What there is to know of a write: whether it has a value, as all of the first round have, and is
// the last of its run; where its value lies; its place, if the first round is to finish the run or
// there is a value. It is little, for many blocks to be on a multiprocessor at a time.
struct Write {
    bool valued, last;
    uint32_t number;
    int64_t source, place;

    __device__ __forceinline__ Write of_lane(int lane) const {
        constexpr unsigned all = 0xffffffffu;
        const int flags = __shfl_sync(all, (valued ? 1 : 0) + (last ? 2 : 0), lane);
        return {(flags & 1) != 0, (flags & 2) != 0, __shfl_sync(all, number, lane),
                __shfl_sync(all, source, lane), __shfl_sync(all, place, lane)};
    }
};

// What one thread knows of the run that it is in.
template <class T> struct Run {
    T value;
    bool any;        // there is a value
    uint32_t number; // of a write of it, after the first round
    int64_t place;   // and its place
};

template <class T, bool FIRST> struct Team {
    using C = ComputeType<T>;
    const Round &round;
    int64_t column, source, target; // the thread's element beside the indices
    bool here;                      // there is such an element

    __device__ uint64_t tagged_key(int64_t i) const {
        if (i >= round.count) return ~uint64_t(0);
        if (!FIRST) return static_cast<const uint64_t *>(round.keys)[i];
        return 2 * (round.wide ? static_cast<const uint64_t *>(round.keys)[i]
                               : static_cast<const uint32_t *>(round.keys)[i]);
    }
    __device__ uint64_t key(int64_t i) const { return tagged_key(i) / 2; }
    __device__ __forceinline__ Write write(int64_t i) const {
        Write found = {FIRST, true, 0, 0, not_written};
        if (i >= round.count) return found;
        const uint64_t own = tagged_key(i);
        found.valued = FIRST || own % 2 == 0;
        found.last = own / 2 != key(i + 1), found.number = round.numbers[i];
        if (FIRST) found.source = round.sources[found.number];
        if (FIRST ? found.last : found.valued) found.place = round.displacements[found.number];
        return found;
    }
    __device__ C value(int64_t i, const Write &write) const {
        if constexpr (FIRST)
            return C(static_cast<const T *>(round.values)[write.source + source]);
        else
            return static_cast<const C *>(round.values)[i * round.columns + column];
    }
    __device__ void take(Run<C> *run, C value, const Write &write) const {
        run->value = run->any ? combined(round.operation, run->value, value) : value;
        run->any = true, run->place = write.place;
        if (!FIRST) run->number = write.number;
    }
    __device__ T *element(int64_t place) const {
        return static_cast<T *>(round.target) + place + target;
    }
    __device__ C before(int64_t place) const {
        return here && place != not_written && !round.fresh ? C(*element(place)) : C();
    }
    __device__ void finish(const Run<C> &run, C before) const {
        if (here && run.any && run.place != not_written)
            *element(run.place) = T(finished(round.operation, before, run.value));
    }
    // at: one of the run's writes.
    __device__ void leave(int64_t entry, int64_t at, const Run<C> &run, bool any) const {
        if (column == 0) {
            round.next_keys[entry] = 2 * key(at) + (any ? 0 : 1);
            round.next_numbers[entry] = FIRST ? round.numbers[at] : run.number;
        }
        if (any && here)
            static_cast<C *>(round.next_values)[entry * round.columns + column] = run.value;
    }
};

// What a team has done of its chunk: the run that it is in, whether that began before the chunk,
// and whether an entry has been left for that one.
template <class T, bool FIRST> struct Progress {
    using C = ComputeType<T>;
    const Team<T, FIRST> &team;
    int64_t chunk, begin;
    bool in_head, has_head = false;
    Run<C> run = {C(), false, 0, not_written};

    __device__ __forceinline__ void end_run(C before) {
        if (in_head)
            team.leave(2 * chunk, begin, run, has_head = run.any);
        else
            team.finish(run, before);
        in_head = run.any = false;
    }
};

// By a warp, those of 32 entries of a later round that `chosen` has a bit for: from one that has a
// value to the next, as most have none. of_lane: the entry begin + lane.
template <class T>
__device__ __forceinline__ void combine_valued(Progress<T, false> &progress, int64_t begin,
                                               const Write &of_lane, unsigned chosen) {
    using C = ComputeType<T>;
    constexpr int together = at_a_time<T, false>;
    constexpr unsigned all = 0xffffffffu;
    const Team<T, false> &team = progress.team;
    unsigned valued = __ballot_sync(all, of_lane.valued) & chosen;
    const unsigned last = __ballot_sync(all, of_lane.last) & chosen;
    int done = 0; // the entry from which on runs' ends have not been looked at
    while (valued) {
        int entry[together];
        C values[together];
#pragma unroll
        for (int e = 0; e < together; e++) {
            entry[e] = __ffs(static_cast<int>(valued)) - 1; // -1: there are no more
            valued &= valued - 1;
            if (entry[e] >= 0 && team.here) values[e] = team.value(begin + entry[e], of_lane);
        }
#pragma unroll
        for (int e = 0; e < together; e++) {
            if (entry[e] < 0) break;
            if (last >> done & ((1u << (entry[e] - done)) - 1))
                progress.end_run(team.before(progress.run.place));
            team.take(&progress.run, values[e], of_lane.of_lane(entry[e]));
            done = entry[e];
        }
    }
    if (last >> done) progress.end_run(team.before(progress.run.place));
}

// The last round, by a warp: the runs that begin in its chunk, to their ends.
template <class T>
__device__ __forceinline__ void combine_runs(Progress<T, false> &progress, int64_t end, int lane) {
    constexpr unsigned all = 0xffffffffu;
    const Team<T, false> &team = progress.team;
    bool in_head = progress.in_head;
    progress.in_head = false;
    for (int64_t at = progress.begin; at < team.round.count; at += chunk_writes) {
        const Write of_lane = team.write(at + lane);
        const int64_t there = team.round.count - at;
        unsigned chosen =
            there < chunk_writes ? all >> static_cast<int>(chunk_writes - there) : all;
        const unsigned last = __ballot_sync(all, of_lane.last) & chosen;
        const unsigned first_run = last ^ (last - 1); // to the first end; without one all
        if (in_head) chosen &= ~first_run;
        if (at >= end) chosen &= first_run;
        combine_valued(progress, at, of_lane, chosen);
        if (at >= end ? last != 0 : last == 0 ? in_head : last >> (chunk_writes - 1) != 0) return;
        in_head = false;
    }
}

// The same by a thread for each of few elements.
template <class T>
__device__ __forceinline__ void combine_runs(Progress<T, false> &progress, int64_t end) {
    const Team<T, false> &team = progress.team;
    int64_t i = progress.begin;
    while (progress.in_head && i < end) progress.in_head = team.key(i) == team.key(i + 1), i++;
    progress.in_head = false;
    for (bool ended = true; i < end || !ended; i++) {
        const Write write = team.write(i);
        if (write.valued) team.take(&progress.run, team.value(i, write), write);
        ended = write.last;
        if (ended) progress.end_run(team.before(progress.run.place));
    }
}

template <class T, bool FIRST>
__global__ void __launch_bounds__(accumulate_threads, FIRST && sizeof(ComputeType<T>) <= 8 ? 3 : 2)
    accumulate_kernel(const __grid_constant__ Round round) {
    using C = ComputeType<T>;
    const int teams = accumulate_threads / round.team, lane = static_cast<int>(threadIdx.x) % 32;
    int64_t block = blockIdx.x;
    if (FIRST && round.absent.blocks > 0) { // its blocks lie evenly among the others
        const int64_t before = block * round.absent.blocks / gridDim.x;
        if ((block + 1) * round.absent.blocks / gridDim.x > before)
            return zero_absent(round.absent, before, round.keys, round.wide, round.count,
                               static_cast<T *>(round.target));
        block -= before;
    }
    const int64_t tiles = (round.columns + round.team - 1) / round.team;
    const int64_t number = block * teams + threadIdx.x / round.team;
    const int64_t chunk = number / tiles;
    const int64_t column = number % tiles * round.team + threadIdx.x % round.team;
    const int64_t begin = chunk * chunk_writes;
    const bool warp = round.team == 32, here = column < round.columns;
    if (begin >= round.count || (!warp && !here)) return;
    const int64_t end = begin + chunk_writes < round.count ? begin + chunk_writes : round.count;
    const int64_t position[1] = {here ? column : 0};
    int64_t offsets[2][1];
    locate(round.walk, position, offsets);
    const Team<T, FIRST> team = {round, column, offsets[0][0], offsets[1][0], here};
    Progress<T, FIRST> progress = {team, chunk, begin,
                                   begin > 0 && team.key(begin - 1) == team.key(begin)};
    if constexpr (!FIRST)
        if (!round.next_keys)
            return warp ? combine_runs(progress, end, lane) : combine_runs(progress, end);
    Write of_lane = {};
    if (warp) of_lane = team.write(begin + lane);
    const bool by_entries = warp && !FIRST;
    if constexpr (!FIRST)
        if (warp)
            combine_valued(progress, begin, of_lane,
                           0xffffffffu >> (chunk_writes - static_cast<int>(end - begin)));
    constexpr int together = at_a_time<T, FIRST>;
    for (int64_t i = by_entries ? end : begin; i < end; i += together) {
        Write writes[together];
        C values[together], before[together];
#pragma unroll
        for (int e = 0; e < together; e++)
            writes[e] = warp ? of_lane.of_lane(static_cast<int>(i - begin) + e) : team.write(i + e);
#pragma unroll
        for (int e = 0; e < together; e++)
            if (here && i + e < end && writes[e].valued) values[e] = team.value(i + e, writes[e]);
        // What the first round adds to is fetched together, too.
#pragma unroll
        for (int e = 0; FIRST && e < together; e++)
            before[e] = team.before(i + e < end && writes[e].last ? writes[e].place : not_written);
#pragma unroll
        for (int e = 0; e < together; e++) {
            if (i + e >= end) break;
            if (writes[e].valued) team.take(&progress.run, values[e], writes[e]);
            if (writes[e].last)
                progress.end_run(FIRST ? before[e] : team.before(progress.run.place));
        }
    }
    const bool goes_on = end < round.count && team.key(end) == team.key(end - 1);
    const Run<C> &run = progress.run;
    if (progress.in_head && goes_on) team.leave(2 * chunk, begin, run, progress.has_head = run.any);
    if (round.next_keys) {
        team.leave(2 * chunk + 1, end - 1, run, goes_on && !progress.in_head && run.any);
        if (!progress.has_head) team.leave(2 * chunk, begin, run, false);
    }
}

int64_t divided_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

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
        divided_up(divided_up(round.count, chunk_writes) * divided_up(round.columns, round.team),
                   teams) +
        (first ? round.absent.blocks : 0);
    PVG_REQUIRE(blocks <= INT32_MAX, PVG_ERROR_VALUE, "values of %lld times %lld elements",
                static_cast<long long>(round.count), static_cast<long long>(round.columns));
    return dispatch(dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        const unsigned grid = static_cast<unsigned>(blocks);
        if (first)
            PVG_LAUNCH((accumulate_kernel<T, true>), grid, accumulate_threads, 0, call.stream,
                       round);
        else
            PVG_LAUNCH((accumulate_kernel<T, false>), grid, accumulate_threads, 0, call.stream,
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
int sort_writes(Call &call, const Writes &writes, const Indices &indices, Workspace *memory,
                Round *round) {
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
    PVG_PASS(radix::sort(call, &buffers, n, bits_of(writes.keys)));
    round->keys = buffers.keys, round->wide = places.wide, round->numbers = buffers.values;
    round->displacements = places.displacements, round->sources = places.sources;
    return PVG_OK;
}

// The walk over the elements beside the indices, in the values and in the target.
void picture_elements(const Picture &p, const int64_t *values, Round *round) {
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
    round->team = 1;
    while (round->team < 32 && round->team < round->columns) round->team *= 2;
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

// Zeros for what a fresh target's sums are not for: at once, or, if places are whole rows, by the
// first round.
int prepare_target(Call &call, pvg_array *a, int count, const int *axes, const Writes &writes,
                   Round *round) {
    bool rows = is_contiguous(a);
    for (int j = 0; j < count; j++) rows = rows && axes[j] == j;
    const int64_t item = dtype_size(a->dtype), columns = a->size / writes.keys;
    round->fresh = true;
    if (rows && are_found_absent(a->data, columns, item))
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
    picture_elements(p, strides, &round);
    PVG_REQUIRE(writes.size <= most_writes, PVG_ERROR_VALUE,
                "accumulates fewer than 2^32 indices, not %lld",
                static_cast<long long>(writes.size));
    round.values = values->data, round.target = a->data;
    round.count = writes.size, round.operation = operation;
    PVG_PASS(call.reads(values));
    PVG_PASS(call.writes(a));
    if (operation == PVG_SUM) PVG_PASS(prepare_target(call, a, count, axes, writes, &round));
    PVG_PASS(writes.keys < UINT32_MAX
                 ? sort_writes<uint32_t>(call, writes, p.indices, &sorted, &round)
                 : sort_writes<uint64_t>(call, writes, p.indices, &sorted, &round));
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
