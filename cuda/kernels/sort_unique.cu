// pvg_unique: the elements that differ, in ascending order. The call waits for their number.
//
// Of up to 16 bits there are few: blocks set a bit for each number that they see, in shared memory
// and then in one table, and the table's bits are written as numbers by one block. A few wider ones
// are sorted by one block, which writes those unlike the one before. Others go through the radix
// sort; blocks then count in their chunks those that begin a run of equal ones, and write them.
//
// -0.0 equals 0.0, behind which it stands no more; NaN equal each other or not, as is asked for.
#include "arrays/operation.cuh"
#include "kernels/radix.cuh"
#include "kernels/search.cuh"
#include "kernels/sort_rows.cuh"
#include "runtime/graph.cuh"

namespace pvg {

namespace {

// Whether an element begins another run than the one before it, by exact keys.
struct Differ {
    uint64_t zero, last; // of floats the keys of -0.0, before 0.0, and of infinity, before NaN
    bool is_float, equal_nan;

    template <class K> __device__ __forceinline__ bool operator()(K before, K key) const {
        if (!is_float) return before != key;
        if (key == static_cast<K>(zero + 1)) return before < static_cast<K>(zero);
        if (key > static_cast<K>(last)) return !equal_nan || before <= static_cast<K>(last);
        return before != key;
    }
};

Differ differ_of(const keys::Order &order, bool equal_nan) {
    return {order.infinity, 2 * order.infinity + 1, order.is_float, equal_nan};
}

// ---- A bit for each number ----------------------------------------------------------------------

constexpr int mark_threads = 1024;
constexpr int64_t least_marks = 16 << 10, most_mark_blocks = 1024; // elements of a block; blocks
template <class T> constexpr int mark_words = 1 << (8 * sizeof(T) - 5);

struct Marks {
    const void *from;
    void *to;
    int64_t size, chunk;
    uint32_t *words;    // the table, of more than one block zeros
    uint32_t *findings; // whether there are NaN that differ, which are left out; how many numbers
    keys::Order order;
    Differ differ;
    uint64_t nan; // the key of all NaN, if they are equal
    bool aligned;
};

__device__ __forceinline__ void set_bit(uint32_t *words, uint32_t key) {
    const uint32_t bit = 1u << key % 32;
#ifndef PVG_SIMULATOR // nearly always it is set already
    if (*const_cast<volatile uint32_t *>(words + key / 32) & bit) return;
#endif
    atomicOr(words + key / 32, bit);
}

// All threads of a block write the numbers of a table in shared memory, whose words they count up
// to each of first: `before`, as many.
template <class T>
__device__ __forceinline__ void write_marked(const Marks &job, uint32_t *words, uint32_t *before) {
    constexpr int count = mark_words<T>, warps = mark_threads / 32, each = count / mark_threads + 1;
    __shared__ uint32_t of_warp[warps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = static_cast<int>(threadIdx.x) * each;
    uint32_t own = 0;
    for (int w = first; w < first + each && w < count; w++) {
        if (job.order.is_float && w == static_cast<int>(job.differ.zero / 32) &&
            (words[w] & 3) == 3)
            words[w] &= ~2u;
        before[w] = own;
        own += static_cast<uint32_t>(__popc(words[w]));
    }
    const uint32_t upto = scan::scan_lanes<scan::Sum>(own, 32);
    if (lane == 31) of_warp[warp] = upto;
    __syncthreads();
    uint32_t base = upto - own;
    for (int w = 0; w < warp; w++) base += of_warp[w];
    for (int w = first; w < first + each && w < count; w++) before[w] += base;
    if (threadIdx.x == mark_threads - 1) job.findings[1] = base + own;
    __syncthreads();
    for (int w = warp; w < count; w += warps)
        if (words[w] >> lane & 1)
            static_cast<T *>(job.to)[before[w] + __popc(words[w] & ((1u << lane) - 1))] =
                keys::bits_of(static_cast<T>(32 * w + lane), job.order);
}

template <class T> __global__ void __launch_bounds__(mark_threads) mark_kernel(const Marks job) {
    constexpr int count = mark_words<T>, N = 16 / sizeof(T);
    __shared__ uint32_t words[count], before[count], strange;
    for (int w = threadIdx.x; w < count; w += mark_threads) words[w] = 0;
    if (threadIdx.x == 0) strange = 0;
    __syncthreads();
    const int64_t begin = blockIdx.x * job.chunk;
    const int64_t end = begin + job.chunk < job.size ? begin + job.chunk : job.size;
    const T *from = static_cast<const T *>(job.from);
    bool found = false;
    for (int64_t at = begin + threadIdx.x * N; at < end; at += mark_threads * N) {
        Vector<T, N> x;
        if (job.aligned && at + N <= end) {
            x = *reinterpret_cast<const Vector<T, N> *>(from + at);
        } else {
#pragma unroll
            for (int e = 0; e < N; e++) x.element[e] = from[at + e < end ? at + e : at];
        }
#pragma unroll
        for (int e = 0; e < N; e++) {
            T key = keys::key_of(x.element[e], job.order);
            if (job.order.is_float && key > static_cast<T>(job.differ.last)) {
                if (!job.differ.equal_nan) found = true;
                key = static_cast<T>(job.nan);
            }
            set_bit(words, key);
        }
    }
    if (found) atomicOr(&strange, 1u);
    __syncthreads();
    if (gridDim.x == 1) {
        if (threadIdx.x == 0) job.findings[0] = strange;
        write_marked<T>(job, words, before);
        return;
    }
    for (int w = threadIdx.x; w < count; w += mark_threads)
        if (words[w]) atomicOr(job.words + w, words[w]);
    if (threadIdx.x == 0 && strange) atomicOr(job.findings, 1u);
}

template <class T>
__global__ void __launch_bounds__(mark_threads) write_marked_kernel(const Marks job) {
    constexpr int count = mark_words<T>, each = count / mark_threads + 1;
    __shared__ uint32_t words[count], before[count];
    const int first = static_cast<int>(threadIdx.x) * each; // those that the thread counts
    for (int w = first; w < first + each && w < count; w++) words[w] = job.words[w];
    write_marked<T>(job, words, before);
}

// ---- A few, by one block ------------------------------------------------------------------------

struct FewJob {
    RowsJob row; // one
    Differ differ;
    uint32_t *count;
};

template <class K>
__global__ void __launch_bounds__(row_threads) unique_row_kernel(const FewJob job) {
    PVG_DYNAMIC_SHARED(unsigned char, memory);
    __shared__ uint32_t of_warp[row_threads / 32];
    Shared<K, false> shared;
    shared.keys = reinterpret_cast<K *>(memory), shared.places = nullptr;
    const int length = static_cast<int>(job.row.length), lane = threadIdx.x % 32;
    K key[row_each];
    uint16_t place[row_each];
    const int thread = static_cast<int>(threadIdx.x), first = thread * row_each;
    sort_row(shared, static_cast<const K *>(job.row.from), length, job.row.order, thread,
             static_cast<int>(blockDim.x), key, place);
    uint32_t begins = 0;
    K before = first > 0 ? shared.keys[spread(first - 1)] : K(0);
#pragma unroll
    for (int e = 0; e < row_each; e++) {
        const bool one = first + e < length && (first + e == 0 || job.differ(before, key[e]));
        begins |= static_cast<uint32_t>(one) << e;
        before = key[e];
    }
    const uint32_t own = static_cast<uint32_t>(__popc(begins));
    const uint32_t upto = scan::scan_lanes<scan::Sum>(own, 32);
    if (lane == 31) of_warp[threadIdx.x / 32] = upto;
    __syncthreads();
    uint32_t to = upto - own;
    for (unsigned w = 0; w < threadIdx.x / 32; w++) to += of_warp[w];
#pragma unroll
    for (int e = 0; e < row_each; e++)
        if (begins >> e & 1)
            static_cast<K *>(job.row.to)[to++] = keys::bits_of(key[e], job.row.order);
    if (threadIdx.x == blockDim.x - 1) *job.count = to;
}

// ---- Many ---------------------------------------------------------------------------------------

template <class K>
__global__ void __launch_bounds__(scan::threads)
    unique_keys_kernel(const void *from, K *keys, int64_t size, const keys::Order order) {
    const int64_t i = int64_t(blockIdx.x) * scan::threads + threadIdx.x;
    if (i < size) keys[i] = keys::key_of(static_cast<const K *>(from)[i], order);
}

// Of sorted keys, those that begin a run; chunks and counts as of what is not 0.
struct Starts {
    search::Search search;
    Differ differ;
    keys::Order order;
    void *to;
};

// Which of a lane's packs of a segment begin a run, and the keys.
template <class K, int N>
__device__ __forceinline__ void load_starts(const Starts &job, int64_t begin, int64_t end,
                                            uint32_t (&flag)[scan::packs][N],
                                            K (&key)[scan::packs][N]) {
    const K *keys = static_cast<const K *>(job.search.data);
    begin += threadIdx.x % 32 * N;
#pragma unroll
    for (int k = 0; k < scan::packs; k++, begin += 32 * N) {
        K before = begin > 0 && begin < end ? keys[begin - 1] : K(0);
        if (begin + N <= end) {
            const auto pack = *reinterpret_cast<const Vector<K, N> *>(keys + begin);
#pragma unroll
            for (int j = 0; j < N; j++) key[k][j] = pack.element[j];
        } else {
#pragma unroll
            for (int j = 0; j < N; j++) key[k][j] = begin + j < end ? keys[begin + j] : K(0);
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            flag[k][j] =
                begin + j < end && (begin + j == 0 || job.differ(before, key[k][j])) ? 1 : 0;
            before = key[k][j];
        }
    }
}

template <class K>
__global__ void __launch_bounds__(scan::threads) count_starts_kernel(const Starts job) {
    constexpr int N = scan::pack_size<K>;
    __shared__ uint32_t of_warp[scan::warps];
    const int64_t begin = blockIdx.x * job.search.chunk, left = job.search.size - begin;
    const int64_t end = begin + (job.search.chunk < left ? job.search.chunk : left);
    uint32_t count = 0;
    for (int64_t at = begin + threadIdx.x / 32 * scan::segment<K>; at < end; at += scan::tile<K>) {
        uint32_t flag[scan::packs][N];
        K key[scan::packs][N];
        load_starts(job, at, end, flag, key);
        count += static_cast<uint32_t>(__popc(search::flag_bits(flag)));
    }
    search::leave_count(job.search, of_warp, count);
}

template <class K>
__global__ void __launch_bounds__(scan::threads) write_starts_kernel(const Starts job) {
    constexpr int N = scan::pack_size<K>;
    __shared__ uint32_t of_warp[2][scan::warps]; // in turns, so that one barrier a tile is enough
    if (job.search.counts[blockIdx.x] == 0) return; // the whole block
    K *to = static_cast<K *>(job.to) + search::count_before(job.search);
    const int64_t begin = blockIdx.x * job.search.chunk, left = job.search.size - begin;
    const int64_t end = begin + (job.search.chunk < left ? job.search.chunk : left);
    uint32_t carry = 0;
    int turn = 0;
    for (int64_t at = begin; at < end; at += scan::tile<K>, turn ^= 1) {
        uint32_t upto[scan::packs][N];
        K key[scan::packs][N];
        load_starts(job, at + threadIdx.x / 32 * scan::segment<K>, end, upto, key);
        const uint32_t flags = search::flag_bits(upto); // as `upto` is going to be summed
        const uint32_t total = scan::scan_segment<scan::Sum>(upto, scan::packs, 32);
        const uint32_t before = scan::before_warp<scan::Sum>(total, of_warp[turn], &carry);
#pragma unroll
        for (int k = 0; k < scan::packs; k++)
#pragma unroll
            for (int j = 0; j < N; j++)
                if (flags >> (k * N + j) & 1)
                    to[before + upto[k][j] - 1] = keys::bits_of(key[k][j], job.order);
    }
}

// ---- The call -----------------------------------------------------------------------------------

// What a kernel has found, for which this waits.
int fetch(Call &call, const uint32_t *from, int count, uint32_t *found) {
    PVG_TRY(cudaMemcpyAsync(found, from, static_cast<size_t>(count) * sizeof *found,
                            cudaMemcpyDeviceToHost, call.stream));
    counters[PVG_COUNT_WAITS]++;
    PVG_TRY(cudaStreamSynchronize(call.stream));
    return check_reports(call.device);
}

// The first elements of what was made, as the result.
int first_of(const Temporary &made, int64_t count, pvg_array **result) {
    const int64_t stride = 1;
    return new_view(made.array, 1, &count, &stride, 0, false, result);
}

// Leaves the result NULL if there are NaN that differ.
template <class T> int unique_marked(Call &call, const pvg_array *a, Marks job,
                                     pvg_array **result) {
    constexpr int64_t N = 16 / sizeof(T), most = int64_t(1) << 8 * sizeof(T);
    const int64_t capacity = job.size < most ? job.size : most;
    Temporary made;
    Workspace table;
    PVG_PASS(new_array(call.device, a->dtype, 1, &capacity, &made.array));
    PVG_PASS(table.open(call, (mark_words<T> + 2) * sizeof(uint32_t)));
    job.to = made.array->data, job.findings = table.as<uint32_t>(), job.words = job.findings + 2;
    job.chunk = (job.size / most_mark_blocks / N + 1) * N;
    if (job.chunk < least_marks) job.chunk = least_marks;
    const unsigned blocks = blocks_for(job.size, job.chunk);
    job.aligned = reinterpret_cast<uintptr_t>(job.from) % 16 == 0;
    if (blocks > 1)
        PVG_TRY(
            cudaMemsetAsync(job.findings, 0, (mark_words<T> + 2) * sizeof(uint32_t), call.stream));
    PVG_LAUNCH(mark_kernel<T>, blocks, mark_threads, 0, call.stream, job);
    if (blocks > 1) PVG_LAUNCH(write_marked_kernel<T>, 1, mark_threads, 0, call.stream, job);
    uint32_t found[2];
    PVG_PASS(fetch(call, job.findings, 2, found));
    return found[0] ? static_cast<int>(PVG_OK) : first_of(made, found[1], result);
}

template <class K>
int unique_few(Call &call, const pvg_array *a, const Marks &job, pvg_array **result) {
    Temporary made;
    Workspace number;
    PVG_PASS(new_array(call.device, a->dtype, 1, &job.size, &made.array));
    PVG_PASS(number.open(call, sizeof(uint32_t)));
    int threads = 32;
    while (threads * row_each < job.size) threads *= 2;
    const FewJob few = {{job.from, made.array->data, 1, job.size, threads, job.order},
                        job.differ,
                        number.as<uint32_t>()};
    PVG_LAUNCH(unique_row_kernel<K>, 1, threads, row_bytes<K, false>(threads), call.stream, few);
    uint32_t count = 0;
    PVG_PASS(fetch(call, few.count, 1, &count));
    return first_of(made, count, result);
}

template <class K>
int unique_many(Call &call, const pvg_array *a, const Marks &job, pvg_array **result) {
    Workspace memory, counts;
    Temporary made;
    PVG_REQUIRE(job.size <= UINT32_MAX, PVG_ERROR_VALUE, "sorts fewer than 2^32 elements, not %lld",
                static_cast<long long>(job.size));
    const int64_t room = (job.size * static_cast<int64_t>(sizeof(K)) + 255) / 256 * 256;
    PVG_PASS(memory.open(call, static_cast<size_t>(2 * room)));
    radix::Buffers<K> buffers = {
        memory.as<K>(), reinterpret_cast<K *>(memory.as<unsigned char>() + room), nullptr, nullptr};
    PVG_LAUNCH(unique_keys_kernel<K>, blocks_for(job.size, scan::threads), scan::threads, 0,
               call.stream, job.from, buffers.keys, job.size, job.order);
    PVG_PASS(radix::sort(call, &buffers, job.size, 8 * sizeof(K)));
    Starts starts = {};
    starts.differ = job.differ, starts.order = job.order;
    starts.search.data = buffers.keys, starts.search.size = job.size;
    PVG_PASS(search::open_counts<K>(call, &starts.search, &counts));
    PVG_LAUNCH(count_starts_kernel<K>, blocks_for(starts.search.chunks, 1), scan::threads, 0,
               call.stream, starts);
    int64_t count = 0;
    PVG_PASS(search::fetch_counts(call, starts.search, &count));
    PVG_PASS(new_array(call.device, a->dtype, 1, &count, &made.array));
    starts.to = made.array->data;
    PVG_LAUNCH(write_starts_kernel<K>, blocks_for(starts.search.chunks, 1), scan::threads, 0,
               call.stream, starts);
    *result = made.take();
    return PVG_OK;
}

template <class K>
int unique_wide(Call &call, const pvg_array *a, const Marks &job, pvg_array **result) {
    return job.size <= row_limit ? unique_few<K>(call, a, job, result)
                                 : unique_many<K>(call, a, job, result);
}

int run_unique(Call &call, const pvg_array *a, int equal_nan, pvg_array **result) {
    int device = -1;
    Temporary straight;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(equal_nan == 0 || equal_nan == 1, PVG_ERROR_VALUE, "equal_nan is 0 or 1, got %d",
                equal_nan);
    PVG_PASS(check_kinds(a->dtype, ordered));
    PVG_PASS(call.begin(device));
    PVG_PASS(refuse_recording(device, "unique, which waits for its number of elements,"));
    if (a->size == 0) return new_array(device, a->dtype, 1, &a->size, result);
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    PVG_PASS(call.reads(a));
    Marks job = {};
    job.from = a->data, job.size = a->size;
    job.order = keys::order_of(a->dtype, true, false);
    job.differ = differ_of(job.order, equal_nan != 0);
    const uint64_t infinity = job.order.infinity, quiet = (infinity & (0 - infinity)) / 2;
    job.nan = keys::key_of(infinity | quiet, job.order);
    switch (dtype_size(a->dtype)) {
    case 1: return unique_marked<uint8_t>(call, a, job, result);
    case 2:
        PVG_PASS(unique_marked<uint16_t>(call, a, job, result));
        return *result ? static_cast<int>(PVG_OK) : unique_many<uint16_t>(call, a, job, result);
    case 4: return unique_wide<uint32_t>(call, a, job, result);
    }
    return unique_wide<uint64_t>(call, a, job, result);
}

} // namespace

} // namespace pvg

PVG_API pvg_array *pvg_unique(const pvg_array *a, int equal_nan) {
    pvg::Call call("unique");
    pvg_array *result = nullptr;
    return pvg::run_unique(call, a, equal_nan, &result) == PVG_OK ? result : nullptr;
}
