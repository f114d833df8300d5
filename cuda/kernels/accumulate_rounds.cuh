// For accumulate.cu: rounds that combine values with the elements at their places, all those of one
// place in an order that depends on the shapes alone.
//
// The places of all writes are sorted (stable), so that the values of one place, a run, lie side by
// side. A team of threads, one for each element beside the indices, or in the first round for each
// pack of them where these lie well, goes through a chunk of them and combines one after the other;
// what a team of a whole warp has to know of its chunk's writes each lane finds out of one of them.
// A run that ends within its chunk is finished there; what belongs to a run that began before the
// chunk (the head) or goes on behind it (the tail) becomes an entry of the next, shorter list of
// writes, on which the same is done again, until there are few. Of those a team goes through all of
// each run that begins in its chunk. There is no atomic addition, whose order would change the bits
// from run to run.
#pragma once
#include "arrays/locate.cuh"
#include "arrays/vector.cuh"
#include "kernels/absent_rows.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/places.cuh"

namespace pvg {

namespace {

constexpr int accumulate_threads = 256;
constexpr int chunk_writes = 32; // a team's; of a warp one a lane
// Elements of a pack: of sums of floats, as gradients are. Others are not worth a kernel of their
// own.
constexpr int pack_of(size_t item, bool of_floats) { return !of_floats ? 1 : item == 8 ? 2 : 4; }
template <class T>
constexpr int accumulate_pack = pack_of(sizeof(T), (kinds_of<T> & floats) != 0);
// Of which the loads are under way together: later rounds, of few writes, wait for little else.
template <class T, bool FIRST>
constexpr int at_a_time = FIRST || sizeof(ComputeType<T>) > 8 ? 4 : 8;

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
    int pack;          // elements of a thread, side by side in the values and in the target, or 1
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

// Elements that one thread has, and the same of each.
template <class C, int N> struct Several { C of[N]; };
template <class C, int N>
__device__ __forceinline__ Several<C, N> combined(int operation, const Several<C, N> &a,
                                                  const Several<C, N> &b) {
    Several<C, N> result;
#pragma unroll
    for (int j = 0; j < N; j++) result.of[j] = combined(operation, a.of[j], b.of[j]);
    return result;
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
template <class C, int N> struct Run {
    Several<C, N> value;
    bool any;        // there is a value
    uint32_t number; // of a write of it, after the first round
    int64_t place;   // and its place
};

template <class T, bool FIRST, int N = 1> struct Team {
    using C = ComputeType<T>;
    using Elements = Several<C, N>;
    using Pack = Vector<T, N>;
    static_assert(FIRST || N == 1, "later rounds have no packs");
    const Round &round;
    int64_t column, source, target; // the thread's element beside the indices, the first of a pack
    bool here;                      // there is such an element

    __device__ int operation() const { return N > 1 ? int(PVG_ADD) : round.operation; }
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
    __device__ static Elements read(const T *from) {
        const Pack pack = *reinterpret_cast<const Pack *>(from);
        Elements elements;
#pragma unroll
        for (int j = 0; j < N; j++) elements.of[j] = C(pack.element[j]);
        return elements;
    }
    __device__ Elements value(int64_t i, const Write &write) const {
        if constexpr (FIRST)
            return read(static_cast<const T *>(round.values) + write.source + source);
        else
            return {static_cast<const C *>(round.values)[i * round.columns + column]};
    }
    __device__ void take(Run<C, N> *run, const Elements &value, const Write &write) const {
        run->value = run->any ? combined(operation(), run->value, value) : value;
        run->any = true, run->place = write.place;
        if (!FIRST) run->number = write.number;
    }
    __device__ T *element(int64_t place) const {
        return static_cast<T *>(round.target) + place + target;
    }
    __device__ Elements before(int64_t place) const {
        if (here && place != not_written && !round.fresh) return read(element(place));
        return Elements();
    }
    __device__ void finish(const Run<C, N> &run, const Elements &before) const {
        Pack pack;
        if (!here || !run.any || run.place == not_written) return;
#pragma unroll
        for (int j = 0; j < N; j++)
            pack.element[j] = T(finished(operation(), before.of[j], run.value.of[j]));
        *reinterpret_cast<Pack *>(element(run.place)) = pack;
    }
    // at: one of the run's writes.
    __device__ void leave(int64_t entry, int64_t at, const Run<C, N> &run, bool any) const {
        if (column == 0) {
            round.next_keys[entry] = 2 * key(at) + (any ? 0 : 1);
            round.next_numbers[entry] = FIRST ? round.numbers[at] : run.number;
        }
        C *const to = static_cast<C *>(round.next_values) + entry * round.columns + column;
        if (any && here)
#pragma unroll
            for (int j = 0; j < N; j++) to[j] = run.value.of[j];
    }
};

// What a team has done of its chunk: the run that it is in, whether that began before the chunk,
// and whether an entry has been left for that one.
template <class T, bool FIRST, int N = 1> struct Progress {
    using C = ComputeType<T>;
    const Team<T, FIRST, N> &team;
    int64_t chunk, begin;
    bool in_head, has_head = false;
    Run<C, N> run = {{}, false, 0, not_written};

    __device__ __forceinline__ void end_run(const Several<C, N> &before) {
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
    constexpr int together = at_a_time<T, false>;
    constexpr unsigned all = 0xffffffffu;
    const Team<T, false> &team = progress.team;
    unsigned valued = __ballot_sync(all, of_lane.valued) & chosen;
    const unsigned last = __ballot_sync(all, of_lane.last) & chosen;
    int done = 0; // the entry from which on runs' ends have not been looked at
    while (valued) {
        int entry[together];
        typename Team<T, false>::Elements values[together];
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

template <class T, bool FIRST, int N>
__global__ void __launch_bounds__(accumulate_threads,
                                  FIRST &&N == 1 && sizeof(ComputeType<T>) <= 8 ? 3 : 2)
    accumulate_kernel(const __grid_constant__ Round round) {
    using Elements = typename Team<T, FIRST, N>::Elements;
    const int teams = accumulate_threads / round.team, lane = static_cast<int>(threadIdx.x) % 32;
    int64_t block = blockIdx.x;
    if (FIRST && round.absent.blocks > 0) { // its blocks lie evenly among the others
        const int64_t before = block * round.absent.blocks / gridDim.x;
        if ((block + 1) * round.absent.blocks / gridDim.x > before)
            return zero_absent(round.absent, before, round.keys, round.wide, round.count,
                               static_cast<T *>(round.target));
        block -= before;
    }
    const int64_t tiles = (round.columns + round.team * N - 1) / (round.team * N);
    const int64_t number = block * teams + threadIdx.x / round.team;
    const int64_t chunk = number / tiles;
    const int64_t column = (number % tiles * round.team + threadIdx.x % round.team) * N;
    const int64_t begin = chunk * chunk_writes;
    const bool warp = round.team == 32, here = column < round.columns;
    if (begin >= round.count || (!warp && !here)) return;
    const int64_t end = begin + chunk_writes < round.count ? begin + chunk_writes : round.count;
    const int64_t position[1] = {here ? column : 0};
    int64_t offsets[2][1];
    locate(round.walk, position, offsets);
    const Team<T, FIRST, N> team = {round, column, offsets[0][0], offsets[1][0], here};
    Progress<T, FIRST, N> progress = {team, chunk, begin,
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
        Elements values[together], before[together];
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
    const auto &run = progress.run;
    if (progress.in_head && goes_on) team.leave(2 * chunk, begin, run, progress.has_head = run.any);
    if (round.next_keys) {
        team.leave(2 * chunk + 1, end - 1, run, goes_on && !progress.in_head && run.any);
        if (!progress.has_head) team.leave(2 * chunk, begin, run, false);
    }
}

} // namespace

} // namespace pvg
