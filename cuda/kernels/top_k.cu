// pvg_top_k: the first few of a stable order along an axis, without the others'.
//
// A block has a row, or a chunk of a long one. It counts the keys by their first eight bits, finds
// the number that the last of the first k begins with, counts the keys that begin so by their next
// eight bits, and so on, until those that may be among the k are few enough to be sorted in shared
// memory. Of equal keys the bits of their places follow, so that it ends in any case. Chunks leave
// their first k each, of which the same finds the row's.
#include "arrays/call.cuh"
#include "arrays/copy.cuh"
#include "arrays/dispatch.cuh"
#include "arrays/operation.cuh"
#include "kernels/keys.cuh"

namespace pvg {

namespace {

constexpr int64_t most_taken = 1024; // of a row
// More rows that are shorter are sorted, by a few threads each.
constexpr int64_t least_row = 129, many_rows = 1 << 16;
// Along another axis than the last one each element is read with its sector, from the cache; what
// is larger is brought into order first.
constexpr int64_t most_apart = 1 << 21;
constexpr int64_t least_chunk = 1 << 14, most_chunk = 1 << 15, wanted_blocks = 264;
constexpr int most_stages = 12; // a chunk leaves a sixteenth at most
constexpr int loads_in_flight = 4, digits = 256, most_threads = 1024;
constexpr int least_room = 64; // elements to be sorted, else twice as many as are taken

struct TopK {
    const void *from;       // elements [outer][length][inner]
    const int64_t *numbers; // where they stood in their row, or NULL: there
    void *values;           // [outer][k][result_inner], or, of chunks, [row][chunk][k]
    int64_t *places;        // as these
    int64_t length, inner, result_inner;
    int64_t chunks;
    int k, room; // room: elements to be sorted, a power of two
    keys::Order order;
};

// What shuffles and shared memory take.
template <class T> using WideKey = std::conditional_t<sizeof(T) < 4, uint32_t, T>;

// The elements that a block has, `step` apart.
template <class T> struct Elements {
    const T *from;
    int64_t step;
    int count;

    // Calls visit(key, place) for each, by its thread.
    template <class F> __device__ __forceinline__ void each(const keys::Order &order,
                                                            F &&visit) const {
        const int threads = static_cast<int>(blockDim.x);
        for (int first = static_cast<int>(threadIdx.x); first < count;
             first += loads_in_flight * threads) {
            T bits[loads_in_flight];
#pragma unroll
            for (int e = 0; e < loads_in_flight; e++)
                if (first + e * threads < count) bits[e] = from[(first + e * threads) * step];
#pragma unroll
            for (int e = 0; e < loads_in_flight; e++)
                if (first + e * threads < count)
                    visit(keys::key_of(bits[e], order), static_cast<uint32_t>(first + e * threads));
        }
    }
};

// Elements that begin with these bits, of their keys and then of their places.
template <class T> struct Beginning {
    T key = 0, key_mask = 0;
    uint32_t place = 0, place_mask = 0;

    __device__ __forceinline__ bool has(T other, uint32_t at) const {
        return static_cast<T>(other & key_mask) == key && (at & place_mask) == place;
    }
    // Whether an element stands before those, or is one of them.
    __device__ __forceinline__ bool reaches(T other, uint32_t at) const {
        const T masked = static_cast<T>(other & key_mask);
        return masked < key || (masked == key && (at & place_mask) <= place);
    }
    __device__ __forceinline__ void add(uint32_t digit, int number) {
        const int of_key = static_cast<int>(sizeof(T)), shift = shift_of(number);
        if (number < of_key) {
            key = static_cast<T>(key | T(digit) << shift);
            key_mask = static_cast<T>(key_mask | T(digits - 1) << shift);
        } else {
            place |= digit << shift, place_mask |= uint32_t(digits - 1) << shift;
        }
    }
    // Places are of 16 bits.
    __device__ static __forceinline__ int shift_of(int number) {
        const int of_key = static_cast<int>(sizeof(T));
        return 8 * (number < of_key ? of_key - 1 - number : of_key + 1 - number);
    }
    __device__ static __forceinline__ uint32_t digit_of(T other, uint32_t at, int number) {
        const int shift = shift_of(number);
        const uint32_t bits = number < static_cast<int>(sizeof(T))
                                  ? static_cast<uint32_t>(other >> shift)
                                  : at >> shift;
        return bits % digits;
    }
};

// The digit of the element that is the `wanted`th by it, how many have smaller ones, and how many
// the same.
struct Found { uint32_t digit, before, count; };

// By the first warp; a lane has eight neighbouring digits.
__device__ __forceinline__ void find_digit(const uint32_t *counts, uint32_t wanted, Found *found) {
    constexpr int each = digits / 32;
    const int lane = static_cast<int>(threadIdx.x);
    uint32_t own = 0;
#pragma unroll
    for (int i = 0; i < each; i++) own += counts[lane * each + i];
    uint32_t behind = own; // of all lanes up to this one
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, behind, apart);
        if (lane >= apart) behind += other;
    }
    uint32_t before = behind - own;
    if (before >= wanted || behind < wanted) return;
    int i = lane * each;
    while (before + counts[i] < wanted) before += counts[i++];
    *found = {static_cast<uint32_t>(i), before, counts[i]};
}

// Puts elements into order, as many as a power of two; all threads of the block.
template <class K>
__device__ __forceinline__ void sort_in_place(K *keys, uint32_t *places, int count) {
    const int threads = static_cast<int>(blockDim.x);
    for (int size = 2; size <= count; size *= 2)
        for (int apart = size / 2; apart > 0; apart /= 2) {
            for (int i = static_cast<int>(threadIdx.x); i < count / 2; i += threads) {
                const int a = 2 * i - (i & (apart - 1)), b = a + apart;
                const bool turned =
                    keys[b] < keys[a] || (keys[b] == keys[a] && places[b] < places[a]);
                if (turned != ((a & size) == 0)) continue;
                const K key = keys[a];
                const uint32_t place = places[a];
                keys[a] = keys[b], places[a] = places[b];
                keys[b] = key, places[b] = place;
            }
            __syncthreads();
        }
}

// What a block has in shared memory, where the elements to be sorted lie behind it.
struct Shared {
    uint32_t counts[digits];
    Found found;
    uint32_t taken;
};

// Which elements to sort: of those before the beginning and with it there are no more than room.
template <class T>
__device__ __forceinline__ Beginning<T> narrow_down(const TopK &job, const Elements<T> &elements,
                                                    Shared *shared) {
    Beginning<T> beginning;
    uint32_t left = static_cast<uint32_t>(job.k), same = static_cast<uint32_t>(elements.count);
    for (int number = 0; job.k - left + same > static_cast<uint32_t>(job.room); number++) {
        for (int i = static_cast<int>(threadIdx.x); i < digits; i += static_cast<int>(blockDim.x))
            shared->counts[i] = 0;
        __syncthreads();
        elements.each(job.order, [&](T key, uint32_t place) {
            if (beginning.has(key, place))
                atomicAdd(&shared->counts[Beginning<T>::digit_of(key, place, number)], 1u);
        });
        __syncthreads();
        if (threadIdx.x < 32) find_digit(shared->counts, left, &shared->found);
        __syncthreads();
        beginning.add(shared->found.digit, number);
        left -= shared->found.before, same = shared->found.count;
    }
    return beginning;
}

template <class T>
__global__ void __launch_bounds__(most_threads) top_k_kernel(const __grid_constant__ TopK job) {
    using K = WideKey<T>;
    PVG_DYNAMIC_SHARED(uint64_t, memory);
    Shared *const shared = reinterpret_cast<Shared *>(memory);
    K *const keys = reinterpret_cast<K *>(memory + sizeof(Shared) / 8);
    uint32_t *const places = reinterpret_cast<uint32_t *>(keys + job.room);
    const int64_t row = blockIdx.x / job.chunks, chunk = blockIdx.x % job.chunks;
    const int64_t begin = job.length * chunk / job.chunks;
    const int64_t first = (row / job.inner * job.length + begin) * job.inner + row % job.inner;
    const Elements<T> elements = {static_cast<const T *>(job.from) + first, job.inner,
                                  static_cast<int>(job.length * (chunk + 1) / job.chunks - begin)};
    const Beginning<T> beginning = narrow_down(job, elements, shared);
    if (threadIdx.x == 0) shared->taken = 0;
    __syncthreads();
    elements.each(job.order, [&](T key, uint32_t place) {
        if (!beginning.reaches(key, place)) return;
        const uint32_t at = atomicAdd(&shared->taken, 1u);
        keys[at] = key, places[at] = place;
    });
    __syncthreads();
    const int taken = static_cast<int>(shared->taken), threads = static_cast<int>(blockDim.x);
    int count = 1;
    while (count < taken) count *= 2;
    for (int i = taken + static_cast<int>(threadIdx.x); i < count; i += threads)
        keys[i] = static_cast<K>(~K(0)), places[i] = UINT32_MAX;
    __syncthreads();
    sort_in_place(keys, places, count);
    for (int n = static_cast<int>(threadIdx.x); n < job.k; n += threads) {
        const int64_t at = places[n] * job.inner;
        const int64_t to =
            job.chunks > 1
                ? int64_t(blockIdx.x) * job.k + n
                : (row / job.result_inner * job.k + n) * job.result_inner + row % job.result_inner;
        static_cast<T *>(job.values)[to] = elements.from[at];
        job.places[to] = job.numbers ? job.numbers[first + at] : begin + places[n];
    }
}

int64_t divided_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

// So that all rows together are enough blocks, but chunks no shorter than is worth another launch.
int64_t chunks_of(int64_t rows, int64_t length) {
    const int64_t wanted = divided_up(rows * length, wanted_blocks);
    const int64_t chunk = wanted < least_chunk  ? least_chunk
                          : wanted > most_chunk ? most_chunk
                                                : wanted;
    return divided_up(length, chunk);
}

template <class T> int launch(Call &call, int64_t rows, const TopK &job) {
    const int64_t count = divided_up(job.length, job.chunks);
    const int threads = count <= 64     ? 32
                        : count <= 512  ? 128
                        : count <= 2048 ? 256
                        : count <= 8192 ? 512
                                        : 1024;
    const size_t bytes = sizeof(Shared) + size_t(job.room) * (sizeof(WideKey<T>) + 4);
    PVG_LAUNCH(top_k_kernel<T>, blocks_for(rows * job.chunks, 1), threads, bytes, call.stream, job);
    return PVG_OK;
}

// All stages: `job` is the first one, but for its chunks and where they leave what they find.
template <class T> int launch_stages(Call &call, int64_t rows, TopK job) {
    Workspace found[most_stages];
    void *const values = job.values;
    int64_t *const places = job.places;
    for (Workspace &memory : found) {
        job.chunks = chunks_of(rows, job.length);
        if (job.chunks == 1) break;
        const int64_t left = rows * job.chunks * job.k;
        PVG_PASS(memory.open(call, static_cast<size_t>(left) * (sizeof(int64_t) + sizeof(T))));
        job.places = memory.as<int64_t>(), job.values = job.places + left;
        PVG_PASS(launch<T>(call, rows, job));
        job.from = job.values, job.numbers = job.places;
        job.length = job.chunks * job.k, job.inner = 1;
    }
    job.values = values, job.places = places;
    return launch<T>(call, rows, job);
}

// The elements in C order with the axis for the last one, where they lie far apart, or as they are.
int bring_together(Call &call, const pvg_array **a, int axis, int64_t *inner, Temporary *turned,
                   Temporary *straight) {
    if (*inner == 1 || (*a)->size <= most_apart) return as_contiguous(call, *a, straight, a);
    const pvg_array *const x = *a;
    int64_t shape[PVG_MAX_NDIM], strides[PVG_MAX_NDIM];
    for (int i = 0, n = 0; i < x->ndim; i++) {
        const int to = i == axis ? x->ndim - 1 : n++;
        shape[to] = x->shape[i], strides[to] = x->strides[i];
    }
    PVG_PASS(new_view(x, x->ndim, shape, strides, 0, true, &turned->array));
    *a = turned->array, *inner = 1;
    return as_contiguous(call, *a, straight, a);
}

int run_top_k(Call &call, const pvg_array *a, int64_t k, int axis, int smallest, Output *values,
              Output *places) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(smallest == 0 || smallest == 1, PVG_ERROR_VALUE, "smallest is 0 or 1, got %d",
                smallest);
    PVG_PASS(check_kinds(a->dtype, ordered));
    PVG_PASS(normalize_axis(axis, a->ndim, &axis));
    const int64_t length = a->shape[axis];
    PVG_REQUIRE(k >= 1 && k <= length && k <= most_taken, PVG_ERROR_VALUE,
                "takes 1 to %lld of %lld elements, not %lld", static_cast<long long>(most_taken),
                static_cast<long long>(length), static_cast<long long>(k));
    const int64_t rows = a->size / length;
    int64_t inner = 1, shape[PVG_MAX_NDIM];
    for (int i = 0; i < a->ndim; i++) shape[i] = i == axis ? k : a->shape[i];
    for (int i = axis + 1; i < a->ndim; i++) inner *= a->shape[i];
    PVG_REQUIRE(
        (length >= least_row || rows <= many_rows) && rows <= INT32_MAX / chunks_of(rows, length),
        PVG_ERROR_VALUE, "a sort takes less along axis %d of shape %s", axis, shape_text(a));
    PVG_PASS(call.begin(device));
    Temporary turned, straight;
    TopK job = {};
    job.result_inner = inner;
    PVG_PASS(bring_together(call, &a, axis, &inner, &turned, &straight));
    PVG_PASS(values->open(call, a->dtype, a->ndim, shape, nullptr, nullptr, 0));
    PVG_PASS(places->open(call, PVG_INT64, a->ndim, shape, nullptr, nullptr, 0));
    if (rows == 0) return PVG_OK;
    PVG_PASS(call.reads(a));
    job.from = a->data, job.values = values->array->data, job.places = data<int64_t>(places->array);
    job.length = length, job.inner = inner;
    job.k = static_cast<int>(k), job.room = least_room;
    while (job.room < 2 * k) job.room *= 2;
    job.order = keys::order_of(a->dtype, false, smallest == 0);
    switch (dtype_size(a->dtype)) {
    case 1: return launch_stages<uint8_t>(call, rows, job);
    case 2: return launch_stages<uint16_t>(call, rows, job);
    case 4: return launch_stages<uint32_t>(call, rows, job);
    }
    return launch_stages<uint64_t>(call, rows, job);
}

} // namespace

} // namespace pvg

PVG_API pvg_array *pvg_top_k(const pvg_array *a, int64_t k, int axis, int smallest,
                             pvg_array **indices) {
    pvg::Call call("top_k");
    pvg::Output values, places;
    const int status = pvg::run_top_k(call, a, k, axis, smallest, &values, &places);
    pvg_array *result = values.close(call, status);
    *indices = places.close(call, result ? status : static_cast<int>(PVG_ERROR_VALUE));
    return result;
}
