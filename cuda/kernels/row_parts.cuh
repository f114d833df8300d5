// Rows that are too long for a block: up to eight blocks have a part each of the rows of a group,
// and tell each other numbers of their parts, from which each makes the row's.
//
// On cards with clusters these blocks are one, which send each other the numbers, and the rows go
// through a ring in shared memory. Of the row that has come a block makes its numbers; while they
// go round it finishes the row before, whose place the next row to be copied takes at once, and
// copies of the rows behind are under way. Other cards do it in two launches, which both read the
// rows: one leaves the numbers in memory, the other one takes them from there.
//
// How a row is cut depends on its length alone, and numbers of parts are added up in one order, so
// that no bit depends on the card.
#pragma once
#include "kernels/cluster_mail.cuh"
#include "kernels/rows.cuh"
#include "runtime/architecture.cuh"

namespace pvg {

constexpr int most_parts = 8;                      // as many blocks as every cluster may have
constexpr int parts_threads = 512, part_packs = 4; // packs of a thread
template <class T> constexpr int most_of_part = parts_threads * part_packs * pack_size<T>;

// How the blocks of a launch tell each other numbers.
enum class Exchange { cluster, leave, take };

struct RowParts {
    int64_t rows;
    int length, parts, chunk; // elements of a row, parts of it, elements of one but for the last
    bool aligned;             // every pack may be loaded and stored at once
    int64_t each;             // rows of a group
    Exchange exchange;
    void *numbers; // [rows][parts][numbers of a part], unless it is a cluster
    int64_t groups() const { return rows / each + (rows % each != 0); }
};

// Whether rows are cut: a block could not hold them.
template <class T> bool are_cut(int64_t length) {
    return length > most_of_part<T> && length <= int64_t(most_parts) * most_of_part<T>;
}

// Cuts rows as evenly as packs allow. pointers: the operands and the results that lie as they do.
template <class T, int N>
RowParts cut_rows(int64_t rows, int64_t length, int64_t each, const void *const (&pointers)[N]) {
    constexpr int pack = pack_size<T>;
    RowParts cut = {};
    cut.rows = rows, cut.length = static_cast<int>(length), cut.each = each;
    cut.parts = static_cast<int>((length + most_of_part<T> - 1) / most_of_part<T>);
    const int64_t packs = (length + pack - 1) / pack;
    cut.chunk = static_cast<int>((packs + cut.parts - 1) / cut.parts) * pack;
    cut.aligned = packs_lie_well<T>(pointers, N, rows, length);
    return cut;
}

// Calls launch(cut, extras, blocks) once, or twice. `numbers` bytes of each part.
template <class F> int launch_parts(Call &call, RowParts cut, size_t numbers, F &&launch) {
    const unsigned blocks = blocks_for(cut.groups() * cut.parts, 1);
    int architecture = 0;
    PVG_PASS(architecture_of(call.device, &architecture));
    if (architecture >= 90) { // 89 is what a card of 8.9 has, too
        cut.exchange = Exchange::cluster;
        return launch(cut, LaunchExtras{static_cast<unsigned>(cut.parts)}, blocks);
    }
    Workspace memory;
    PVG_PASS(memory.open(call, static_cast<size_t>(cut.rows * cut.parts) * numbers));
    cut.numbers = memory.as<void>();
    for (Exchange exchange : {Exchange::leave, Exchange::take}) {
        cut.exchange = exchange;
        PVG_PASS(launch(cut, LaunchExtras(), blocks));
    }
    return PVG_OK;
}

namespace {

// A thread's packs of its block's part, and the block's rows.
struct PartPlace {
    int part, first, end; // the part, its elements from the thread's first one on
    int64_t row, behind;  // rows

    __device__ explicit PartPlace(const RowParts &cut, int pack) {
        part = static_cast<int>(blockIdx.x % cut.parts);
        row = blockIdx.x / cut.parts * cut.each;
        behind = row + cut.each < cut.rows ? row + cut.each : cut.rows;
        first = part * cut.chunk + static_cast<int>(threadIdx.x) * pack;
        end = (part + 1) * cut.chunk < cut.length ? (part + 1) * cut.chunk : cut.length;
    }
    __device__ __forceinline__ int at(int k, int pack) const {
        return first + k * parts_threads * pack;
    }
};

// Parts of N operands' rows, which have a stage each: every thread copies and reads its own packs,
// and so waits for nobody else.
template <class T, int N, int STAGES> struct PartRing {
    static constexpr int pack = pack_size<T>;
    static constexpr size_t bytes = sizeof(Pack<T>) * STAGES * N * part_packs * parts_threads;
    Pack<T> *shared;

    __device__ __forceinline__ Pack<T> *place(int64_t number, int i, int k) const {
        const int stage = static_cast<int>(number % STAGES);
        return shared + ((stage * N + i) * part_packs + k) * parts_threads + threadIdx.x;
    }
    // A pack that begins anywhere; elements of two bytes cannot be copied one by one.
    __device__ static __forceinline__ void copy_elements(T *to, const T *from) {
        if constexpr (sizeof(T) >= 4)
#pragma unroll
            for (int j = 0; j < pack; j++)
                fragments::copy_async<sizeof(T)>(fragments::shared_address(to + j), from + j);
    }
    // The row `number` of the group; of no row nothing.
    __device__ __forceinline__ void fetch(const RowParts &cut, const PartPlace &place_of,
                                          const T *const (&operands)[N], int64_t number) const {
        const int64_t row = place_of.row + number;
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int k = 0; k < part_packs; k++) {
                const T *const from = operands[i] + row * cut.length;
                const int at = place_of.at(k, pack);
                if (row >= place_of.behind) continue;
                if (cut.aligned && at + pack <= place_of.end)
                    fragments::copy_async<sizeof(Pack<T>)>(
                        fragments::shared_address(place(number, i, k)), from + at);
                else if (sizeof(T) >= 4 && at + pack <= place_of.end)
                    copy_elements(place(number, i, k)->element, from + at);
                else
                    *place(number, i, k) = load_pack(from, at, place_of.end, cut.aligned, 0);
            }
        fragments::commit_copies();
    }
};

// What a block has of one row: from a stage of the ring, or loaded.
template <class T, int N> struct HeldPart {
    Pack<T> packs[N][part_packs];

    template <int STAGES>
    __device__ __forceinline__ void read(const PartRing<T, N, STAGES> &ring, int64_t number) {
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int k = 0; k < part_packs; k++) packs[i][k] = *ring.place(number, i, k);
    }
    __device__ __forceinline__ void load(const RowParts &cut, const PartPlace &place,
                                         const T *const (&operands)[N], int64_t row) {
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int k = 0; k < part_packs; k++)
                packs[i][k] = load_pack(operands[i] + row * cut.length, place.at(k, pack_size<T>),
                                        place.end, cut.aligned, 0);
    }
};

// The sums over a block of whole warps, for the first warp alone. Nobody reads of_warp still.
template <class A, int N>
__device__ __forceinline__ void sums_of_block(A (&sums)[N], A (*of_warp)[32]) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
    for (int i = 0; i < N; i++) sums[i] = sum_of_lanes(sums[i], 32);
    if (lane == 0)
#pragma unroll
        for (int i = 0; i < N; i++) of_warp[i][warp] = sums[i];
    __syncthreads();
    if (warp != 0) return;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const A sum = lane < static_cast<int>(blockDim.x / 32) ? of_warp[i][lane] : A(0);
        sums[i] = sum_of_lanes(sum, 32);
    }
}

// Sums over the parts, the same in every thread; of(part, i) is a part's, and all are asked before
// the first one answers.
template <class A, int N, class F>
__device__ __forceinline__ void sums_of_parts(int parts, A (&sums)[N], F &&of) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < N; i++) sums[i] = lane < parts ? of(lane, i) : A(0);
#pragma unroll
    for (int i = 0; i < N; i++) sums[i] = sum_of_lanes(sums[i], 32);
}

// How the parts' numbers reach the blocks of a cluster.
template <class Work> using PartMail = clusters::Mail<typename Work::A, Work::numbers>;

template <class Work> __device__ __forceinline__ void
send_sums(const RowParts &cut, const PartPlace &place, PartMail<Work> *mail, int64_t turn,
          const typename Work::A (&sums)[Work::numbers]) {
    if (threadIdx.x < 32) clusters::send_mail(mail, turn, cut.parts, place.part, sums);
}
template <class Work> __device__ __forceinline__ auto
totals_of_mail(Work &work, int64_t row, PartMail<Work> *mail, int64_t turn) {
    clusters::wait_for_mail(mail, turn);
    return work.totals(row,
                       [&](int part, int number) { return mail->numbers[turn % 2][part][number]; });
}

// Goes over the block's rows. Work has:
//     A, numbers    the type of what each part tells, and how many
//     operands      T *[N], each rows of cut.length
//     sums(row, held, sums)    the part's, for the first warp; all threads meet at a barrier in it
//     totals(row, number)      makes the row's from number(part, i), the same for all threads
//     finish(row, held, totals)
template <class T, int N, int STAGES, class Work>
__device__ __forceinline__ void rows_of_cluster(const RowParts &cut, const PartPlace &place,
                                                Work &work, const PartRing<T, N, STAGES> &ring,
                                                PartMail<Work> *mail) {
    constexpr int ahead = STAGES - 1; // rows under way; the last place is that of the row before
    const int64_t count = place.behind - place.row;
    typename Work::Totals totals = {};
    clusters::open_mail(mail);
    for (int64_t i = 0; i < ahead; i++) ring.fetch(cut, place, work.operands, i);
    clusters::wait_for_cluster();
    for (int64_t i = 0; i < count; i++) {
        HeldPart<T, N> held;
        typename Work::A sums[Work::numbers];
        fragments::wait_for_copies<ahead - 1>();
        held.read(ring, i);
        work.sums(place.row + i, held, sums);
        send_sums<Work>(cut, place, mail, i, sums);
        if (i > 0) {
            held.read(ring, i - 1);
            work.finish(place.row + i - 1, held, totals);
        }
        ring.fetch(cut, place, work.operands, i + ahead);
        totals = totals_of_mail(work, place.row + i, mail, i);
    }
    HeldPart<T, N> held;
    held.read(ring, count - 1);
    work.finish(place.row + count - 1, held, totals);
}

// The same where two blocks are on a multiprocessor: each has one row under way, and finishes its
// row before it begins the next one, while the other block computes.
template <class T, int N, class Work>
__device__ __forceinline__ void rows_one_by_one(const RowParts &cut, const PartPlace &place,
                                                Work &work, const PartRing<T, N, 1> &ring,
                                                PartMail<Work> *mail) {
    const int64_t count = place.behind - place.row;
    clusters::open_mail(mail);
    ring.fetch(cut, place, work.operands, 0);
    clusters::wait_for_cluster();
    for (int64_t i = 0; i < count; i++) {
        HeldPart<T, N> held;
        typename Work::A sums[Work::numbers];
        fragments::wait_for_copies<0>();
        held.read(ring, i);
        ring.fetch(cut, place, work.operands, i + 1);
        work.sums(place.row + i, held, sums);
        send_sums<Work>(cut, place, mail, i, sums);
        work.finish(place.row + i, held, totals_of_mail(work, place.row + i, mail, i));
    }
}

template <class T, int N, class Work>
__device__ __forceinline__ void rows_of_blocks(const RowParts &cut, const PartPlace &place,
                                               Work &work) {
    for (int64_t row = place.row; row < place.behind; row++) {
        typename Work::A *const numbers =
            static_cast<typename Work::A *>(cut.numbers) + row * cut.parts * Work::numbers;
        HeldPart<T, N> held;
        held.load(cut, place, work.operands, row);
        if (cut.exchange == Exchange::leave) {
            typename Work::A sums[Work::numbers];
            work.sums(row, held, sums);
            if (threadIdx.x == 0)
#pragma unroll
                for (int i = 0; i < Work::numbers; i++)
                    numbers[place.part * Work::numbers + i] = sums[i];
        } else {
            work.finish(row, held, work.totals(row, [&](int part, int number) {
                return numbers[part * Work::numbers + number];
            }));
        }
        __syncthreads(); // the next row's sums of warps lie where this one's did
    }
}

} // namespace
} // namespace pvg
