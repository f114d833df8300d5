// Scans: pvg_scan. Every element of the result is the sum, or the product, of an element and of all
// before it along an axis. The operand is made contiguous, so the work is one of
//
//     [outer, length]           rows: the axis is the innermost one
//     [outer, length, inner]    columns: a thread walks down each
//
// Long axes are cut into chunks, by lengths that depend on `length` and `inner` alone: a first
// launch makes the totals of the chunks, a second one of each what stands before it, and a third
// goes through the elements again from there. So the same row has the same bits alone and in a
// batch, and on every run.
#include "arrays/call.cuh"
#include "arrays/operation.cuh"
#include "kernels/quotient.cuh"
#include "kernels/scan.cuh"
#include <type_traits>

namespace pvg {
namespace {

using scan::packs, scan::pack_size, scan::segment, scan::threads, scan::tile;

template <class T> inline constexpr int rows_in_flight = sizeof(T) <= 4 ? 16 : 8;
constexpr int64_t single_tiles = 6; // rows of so many are walked by one block
constexpr int64_t few_chunks = 32;  // columns: whoever wants the total before adds up so many

struct Job {
    const void *data;
    void *result; // behind the initial element, if there is one
    int64_t outer, length, inner;
    int64_t result_stride; // elements of the result from one outer item to the next
    int64_t chunk, chunks; // elements of a chunk along the axis, and how many of those it has
    int lanes;             // short rows: lanes that share a row, a power of two
    bool initial;          // the result begins with what stands before all elements
    bool aligned, result_aligned; // every pack may be loaded, or stored, at once
};

// The types of a scan of T: what is added up or multiplied, and the elements of the result.
// Integers wrap modulo 2^64, whatever their sign is.
template <class T, class Op>
using Wide = std::conditional_t<
    is_complex<T>, Complex<double>,
    std::conditional_t<
        !is_float<T>, uint64_t,
        std::conditional_t<is_half<T> && std::is_same_v<Op, scan::Sum>, float, double>>>;
template <class T>
using ResultOf = std::conditional_t<is_float<T> || is_complex<T>, T, uint64_t>;

// Elements of one dtype combined by Op.
template <class Element, class Operator> struct Types {
    using T = Element;
    using Op = Operator;
    using A = Wide<T, Op>;
    using R = ResultOf<T>;
    __device__ static A widen(T value) {
        return static_cast<A>(static_cast<ComputeType<T>>(value));
    }
    __device__ static A identity() { return Op::template identity<A>(); }
};

// ---- Rows ---------------------------------------------------------------------------------------

// A lane's packs of a segment of which `left` elements are there.
template <class S, int N>
__device__ __forceinline__ void load_packs(const typename S::T *from, int64_t left, bool aligned,
                                           int lanes, typename S::A (&value)[packs][N]) {
    using T = typename S::T;
    Vector<T, N> loaded[packs];
    const int first = static_cast<int>(threadIdx.x % lanes) * N;
#pragma unroll
    for (int k = 0; k < packs; k++) {
        const int at = first + k * lanes * N;
        if (aligned && at + N <= left) {
            loaded[k] = *reinterpret_cast<const Vector<T, N> *>(from + at);
        } else {
#pragma unroll
            for (int j = 0; j < N; j++) loaded[k].element[j] = at + j < left ? from[at + j] : T();
        }
    }
#pragma unroll
    for (int k = 0; k < packs; k++)
#pragma unroll
        for (int j = 0; j < N; j++)
            value[k][j] =
                first + k * lanes * N + j < left ? S::widen(loaded[k].element[j]) : S::identity();
}

template <class S, int N>
__device__ __forceinline__ void store_packs(typename S::R *to, int64_t left, bool aligned,
                                            int lanes, typename S::A before,
                                            const typename S::A (&value)[packs][N]) {
    using R = typename S::R;
    const int first = static_cast<int>(threadIdx.x % lanes) * N;
#pragma unroll
    for (int k = 0; k < packs; k++) {
        const int at = first + k * lanes * N;
        Vector<R, N> result;
#pragma unroll
        for (int j = 0; j < N; j++) result.element[j] = R(S::Op::combine(before, value[k][j]));
        if (aligned && at + N <= left) {
            store_at_once(to + at, result);
        } else {
#pragma unroll
            for (int j = 0; j < N; j++)
                if (at + j < left) to[at + j] = result.element[j];
        }
    }
}

// Groups of lanes have a row each, of at most a segment.
template <class S> __global__ void __launch_bounds__(threads)
    scan_short_rows_kernel(const Job job) {
    using T = typename S::T;
    using R = typename S::R;
    const unsigned lanes = job.lanes;
    const int64_t row = static_cast<int64_t>(blockIdx.x) * (threads / lanes) + threadIdx.x / lanes;
    const bool here = row < job.outer;
    const int64_t left = here ? job.length : 0;
    const T *from = static_cast<const T *>(job.data) + (here ? row * job.length : 0);
    R *to = static_cast<R *>(job.result) + (here ? row * job.result_stride : 0);
    typename S::A value[packs][pack_size<typename S::T>];
    load_packs<S>(from, left, job.aligned, lanes, value);
    const int each = lanes * pack_size<typename S::T>,
              count = static_cast<int>((job.length + each - 1) / each);
    scan::scan_segment<typename S::Op>(value, count, lanes);
    store_packs<S>(to, left, job.result_aligned, lanes, S::identity(), value);
    if (job.initial && here && threadIdx.x % lanes == 0) to[-1] = R(S::identity());
}

// A block has a chunk of a row. Without STORE it leaves its total in `totals`; with it `totals`,
// unless NULL, has what stands before each chunk.
template <class S, bool STORE>
__global__ void __launch_bounds__(threads) scan_rows_kernel(const Job job, typename S::A *totals) {
    using A = typename S::A;
    using R = typename S::R;
    __shared__ A of_warp[2][scan::warps]; // in turns, so that one barrier a tile is enough
    const unsigned chunks = static_cast<unsigned>(job.chunks);
    const int64_t row = blockIdx.x / chunks, begin = blockIdx.x % chunks * job.chunk;
    const int64_t end = begin + job.chunk < job.length ? begin + job.chunk : job.length;
    const typename S::T *from = static_cast<const typename S::T *>(job.data) + row * job.length;
    R *to = static_cast<R *>(job.result) + row * job.result_stride;
    A carry = STORE && totals ? totals[blockIdx.x] : S::identity();
    int turn = 0;
    for (int64_t at = begin; at < end; at += tile<typename S::T>, turn ^= 1) {
        const int64_t mine = at + threadIdx.x / 32 * segment<typename S::T>;
        A value[packs][pack_size<typename S::T>];
        load_packs<S>(from + mine, end - mine, job.aligned, 32, value);
        const A total = scan::scan_segment<typename S::Op>(value, packs, 32);
        const A before = scan::before_warp<typename S::Op>(total, of_warp[turn], &carry);
        if (STORE) store_packs<S>(to + mine, end - mine, job.result_aligned, 32, before, value);
    }
    if (threadIdx.x != 0) return;
    if (!STORE) totals[blockIdx.x] = carry;
    if (STORE && job.initial && begin == 0) to[-1] = R(S::identity());
}

// ---- Columns ------------------------------------------------------------------------------------

// The next `count` rows of a column, at most N; all N where WHOLE. Their loads are together.
template <class S, bool STORE, bool WHOLE, int N>
__device__ __forceinline__ void walk_rows(const typename S::T *from, typename S::R *to,
                                          int64_t inner, int count, typename S::A &carry) {
    typename S::T loaded[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        if (WHOLE || k < count) loaded[k] = from[k * inner];
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (!WHOLE && k >= count) continue;
        carry = S::Op::combine(carry, S::widen(loaded[k]));
        if (STORE) to[k * inner] = typename S::R(carry);
    }
}

// A thread has a chunk of a column; those side by side have neighbouring columns. `totals`: as of
// rows, but where chunks are few they are totals still.
template <class S, bool STORE>
__global__ void __launch_bounds__(threads, sizeof(typename S::T) <= 8 ? 4 : 2)
    scan_columns_kernel(const Job job, typename S::A *totals) {
    using T = typename S::T;
    using R = typename S::R;
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    const int64_t above = quotient(thread, job.inner), outer = quotient(above, job.chunks);
    const int64_t column = thread - above * job.inner, chunk = above - outer * job.chunks;
    if (outer >= job.outer) return;
    const int64_t begin = chunk * job.chunk;
    const int64_t end = begin + job.chunk < job.length ? begin + job.chunk : job.length;
    const T *from = static_cast<const T *>(job.data) + outer * job.length * job.inner + column;
    R *to = static_cast<R *>(job.result) + outer * job.result_stride + column;
    typename S::A carry = S::identity();
    if (STORE && totals && job.chunks > few_chunks) carry = totals[thread];
    for (int64_t k = STORE && totals && job.chunks <= few_chunks ? chunk : 0; k > 0; k--)
        carry = S::Op::combine(carry, totals[thread - k * job.inner]);
    if (STORE && job.initial && chunk == 0) to[-job.inner] = R(S::identity());
    // Whole steps ask of no row whether it is there: for short columns that would be most work.
    constexpr int together = rows_in_flight<T>, half = together / 2, few = 4;
    int64_t left = end - begin;
    from += begin * job.inner, to += begin * job.inner;
    const auto advance = [&](int rows) {
        from += rows * job.inner, to += rows * job.inner, left -= rows;
    };
    for (; left >= together; advance(together))
        walk_rows<S, STORE, true, together>(from, to, job.inner, together, carry);
    if (half > few && left >= half) {
        walk_rows<S, STORE, true, half>(from, to, job.inner, half, carry);
        advance(half);
    }
    const int rest = static_cast<int>(left);
    if (rest > few)
        walk_rows<S, STORE, false, 2 * few>(from, to, job.inner, rest, carry);
    else if (rest > 0)
        walk_rows<S, STORE, false, few>(from, to, job.inner, rest, carry);
    if (!STORE) totals[thread] = carry;
}

// ---- Launches -----------------------------------------------------------------------------------

int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

template <class T> void cut_rows(Job *job) {
    job->chunk = job->length;
    if (job->length > single_tiles * tile<T>)
        job->chunk = ceil_divide(ceil_divide(job->length, scan::most_chunks), tile<T>) * tile<T>;
    job->chunks = job->length ? ceil_divide(job->length, job->chunk) : 1;
}

// Enough chunks for some 65,536 threads, of at least 64 elements; but where columns are short, or
// two chunks were enough and short, the passes more would take longer than they save.
void cut_columns(Job *job) {
    constexpr int64_t wanted = 1 << 16, least = 64, short_column = 192, short_pair = 512;
    int64_t chunks = ceil_divide(wanted, job->inner);
    if (chunks > scan::most_chunks) chunks = scan::most_chunks;
    if (job->length <= (chunks == 2 ? short_pair : short_column)) chunks = 1;
    job->chunk = ceil_divide(job->length, chunks);
    if (job->chunk < least) job->chunk = least;
    job->chunks = job->length ? ceil_divide(job->length, job->chunk) : 1;
}

// Runs totals, prefixes and elements, or the elements alone where one chunk is all; `pass` launches
// the first and the third. With `direct` the third does the second's work.
template <class S, class Pass>
int launch_passes(Call &call, const Job &job, bool direct, Pass pass) {
    using A = typename S::A;
    if (job.chunks == 1) return pass(std::true_type(), static_cast<A *>(nullptr));
    const int64_t rows = job.outer * job.inner;
    Workspace workspace;
    PVG_PASS(workspace.open(call, static_cast<size_t>(rows * job.chunks) * sizeof(A)));
    A *totals = workspace.as<A>();
    PVG_PASS(pass(std::false_type(), totals));
    if (!direct)
        PVG_LAUNCH((scan::prefix_kernel<typename S::Op, A>), blocks_for(rows, 1),
                   scan::prefix_threads(job.chunks), 0, call.stream, totals, job.chunks, job.inner,
                   static_cast<A *>(nullptr));
    return pass(std::true_type(), totals);
}

template <class S> int scan_rows(Call &call, Job job) {
    using T = typename S::T;
    using R = typename S::R;
    constexpr int pack = pack_size<typename S::T>;
    const uintptr_t from = reinterpret_cast<uintptr_t>(job.data);
    const uintptr_t to = reinterpret_cast<uintptr_t>(job.result);
    const bool one = job.outer == 1;
    job.aligned = from % alignof(Vector<T, pack>) == 0 && (one || job.length % pack == 0);
    job.result_aligned =
        to % alignof(Vector<R, pack>) == 0 && (one || job.result_stride % pack == 0);
    if (job.length <= segment<T>) {
        job.lanes = scan::power_of_two(ceil_divide(job.length, pack), 32);
        PVG_LAUNCH(scan_short_rows_kernel<S>, blocks_for(job.outer, threads / job.lanes), threads,
                   0, call.stream, job);
        return PVG_OK;
    }
    cut_rows<T>(&job);
    return launch_passes<S>(call, job, false, [&](auto stores, typename S::A *totals) -> int {
        PVG_LAUNCH((scan_rows_kernel<S, decltype(stores)::value>),
                   blocks_for(job.outer * job.chunks, 1), threads, 0, call.stream, job, totals);
        return PVG_OK;
    });
}

template <class S> int scan_columns(Call &call, Job job) {
    cut_columns(&job);
    return launch_passes<S>(call, job, job.chunks <= few_chunks,
                            [&](auto stores, typename S::A *totals) -> int {
                                PVG_LAUNCH((scan_columns_kernel<S, decltype(stores)::value>),
                                           blocks_for(job.outer * job.chunks * job.inner, threads),
                                           threads, 0, call.stream, job, totals);
                                return PVG_OK;
                            });
}

// `a` and `target` are contiguous.
int launch_scan(Call &call, int operation, const pvg_array *a, int axis, bool initial,
                const pvg_array *target) {
    Job job = {};
    job.outer = job.inner = 1, job.length = a->shape[axis], job.initial = initial;
    for (int i = 0; i < axis; i++) job.outer *= a->shape[i];
    for (int i = axis + 1; i < a->ndim; i++) job.inner *= a->shape[i];
    job.result_stride = (job.length + initial) * job.inner;
    job.data = a->data;
    job.result = target->data + (initial ? job.inner * dtype_size(target->dtype) : 0);
    PVG_PASS(call.reads(a));
    if (is_among(a->dtype, complexes) && operation == PVG_PROD)
        return dispatch<complexes>(a->dtype, [&](auto tag) -> int {
            return scan_columns<Types<typename decltype(tag)::type, scan::Product>>(call, job);
        });
    if (is_among(a->dtype, complexes)) job.inner *= 2, job.result_stride *= 2; // parts are columns
    return dispatch<ordered>(real_dtype(a->dtype), [&](auto tag) -> int {
        using Element = typename decltype(tag)::type;
        // bool has the bytes of uint8, and int64 modulo 2^64 is uint64.
        using T = std::conditional_t<
            is_bool<Element>, uint8_t,
            std::conditional_t<is_integer<Element> && sizeof(Element) == 8, uint64_t, Element>>;
        const auto run = [&](auto types) -> int {
            using S = typename decltype(types)::type;
            return job.inner == 1 ? scan_rows<S>(call, job) : scan_columns<S>(call, job);
        };
        return operation == PVG_SUM ? run(Tag<Types<T, scan::Sum>>())
                                    : run(Tag<Types<T, scan::Product>>());
    });
}

// ---- The operation ------------------------------------------------------------------------------

int run_scan(Call &call, int operation, const pvg_array *a, int axis, int initial, pvg_array *out,
             Output *result) {
    int device = -1;
    int64_t shape[PVG_MAX_NDIM];
    PVG_REQUIRE(operation == PVG_SUM || operation == PVG_PROD, PVG_ERROR_VALUE,
                "scans by PVG_SUM or PVG_PROD, not by operation %d", operation);
    PVG_REQUIRE(initial == 0 || initial == 1, PVG_ERROR_VALUE, "initial is 0 or 1, got %d",
                initial);
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_PASS(normalize_axis(axis, a->ndim, &axis));
    PVG_PASS(call.begin(device));
    for (int i = 0; i < a->ndim; i++) shape[i] = a->shape[i];
    PVG_REQUIRE(shape[axis] < INT64_MAX, PVG_ERROR_VALUE, "too many elements along axis %d", axis);
    shape[axis] += initial;
    Temporary straight, whole;
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    PVG_PASS(result->open(call, wide_dtype(a->dtype), a->ndim, shape, out, &a, 1));
    pvg_array *c = result->array;
    if (c->size == 0) return PVG_OK;
    if (is_contiguous(c)) return launch_scan(call, operation, a, axis, initial != 0, c);
    PVG_PASS(new_array(device, c->dtype, c->ndim, shape, &whole.array));
    PVG_PASS(launch_scan(call, operation, a, axis, initial != 0, whole.array));
    return copy_array(call, whole.array, c);
}

} // namespace

Operations scan_operations() {
    static constexpr Operation rows[] = {
        {PVG_SCAN, "scan", Family::other, all_kinds, Gives::wide},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_scan(int operation, const pvg_array *a, int axis, int initial,
                            pvg_array *out) {
    pvg::Call call("scan");
    pvg::Output result;
    int status = pvg::run_scan(call, operation, a, axis, initial, out, &result);
    return result.close(call, status);
}
