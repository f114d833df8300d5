// For factor.cu: matrices of up to 64 x 64, each factored in shared memory by a team of threads: a
// warp up to 32 x 32, so that barriers cost little, and a block above.
//
// What is done to a matrix depends on it alone, in an order that does not vary: the same bits every
// time, in a batch as alone.
#pragma once
#include "arrays/call.cuh"
#include "kernels/leave_report.cuh"

namespace pvg {

namespace {

constexpr int largest_factored = 64, largest_of_warp = 32;
constexpr int large_team = 256, warps_of_block = 4;
constexpr int most_columns = 16; // of right-hand sides that are in shared memory at a time

enum class System { general, lower, upper };
enum class Determinant { value, sign, logarithm };

// What the kernels work on: contiguous batches.
struct Job {
    const void *a, *b; // (items, n, n); (items, n, columns), or NULL for identity matrices
    void *result;
    ReportSlot *slot; // where errors are reported
    int64_t items, columns;
    int n, spread; // the power of two that is not below n: columns that a team has side by side
    int width, rows_shift; // right-hand sides at a time; the logarithm of the same power of it
    int kind;     // a System, a Determinant, or for cholesky whether it is the upper factor
    size_t bytes; // of shared memory for a team
};

// What a team has in shared memory.
template <class T> struct Room {
    T *a, *b;   // the matrix in rows of `stride`, and right-hand sides in rows of `width`
    int *order; // which of the given rows is in row i
    int *pivot, *swaps, *failed;
    int stride;
};

template <int TEAM> __device__ __forceinline__ void sync_team() {
    if (TEAM == 32)
        __syncwarp();
    else
        __syncthreads();
}

template <int TEAM> __device__ __forceinline__ int rank_in_team() {
    return static_cast<int>(threadIdx.x % TEAM);
}

// The item of this team; -1 for a team that has none.
template <int TEAM> __device__ __forceinline__ int64_t item_of_team(const Job &job) {
    const int64_t item = int64_t(blockIdx.x) * (blockDim.x / TEAM) + threadIdx.x / TEAM;
    return item < job.items ? item : -1;
}

template <class T, int TEAM>
__device__ __forceinline__ Room<T> room_of_team(const Job &job, unsigned char *shared) {
    Room<T> room;
    room.stride = job.n | 1; // columns lie in different banks
    room.a = reinterpret_cast<T *>(shared + threadIdx.x / TEAM * job.bytes);
    room.b = room.a + job.n * room.stride;
    room.order = reinterpret_cast<int *>(room.b + job.n * job.width);
    room.pivot = room.order + job.n;
    room.swaps = room.pivot + 1, room.failed = room.pivot + 2;
    return room;
}

// The item's matrix, or its transpose; and the identical order of rows.
template <class T, int TEAM>
__device__ __forceinline__ void load_matrix(const Job &job, int64_t item, bool transposed,
                                            const Room<T> &room) {
    const T *a = static_cast<const T *>(job.a) + item * job.n * job.n;
    const int rank = rank_in_team<TEAM>(), column = rank & (job.spread - 1);
    if (column < job.n)
        for (int row = rank / job.spread; row < job.n; row += TEAM / job.spread) {
            const int at = transposed ? column * room.stride + row : row * room.stride + column;
            room.a[at] = a[row * job.n + column];
        }
    for (int i = rank; i < job.n; i += TEAM) room.order[i] = i;
    if (rank == 0) *room.swaps = 0, *room.failed = 0;
    sync_team<TEAM>();
}

// Whether row i with magnitude x is the better pivot than row j with y: NaN goes first, so that it
// spreads, then the larger, then the upper.
template <class T> __device__ __forceinline__ bool is_better(T x, int i, T y, int j) {
    if (x != x || y != y) return x != x && (y == y || i < j);
    return x > y || (x == y && i < j);
}

// The row from k on with the largest element of column k; for a whole warp.
template <class T> __device__ __forceinline__ int find_pivot(const Room<T> &room, int n, int k) {
    T largest = T(-1);
    int best = n;
    for (int i = k + static_cast<int>(threadIdx.x % 32); i < n; i += 32) {
        const T value = room.a[i * room.stride + k], size = value < T(0) ? -value : value;
        if (is_better(size, i, largest, best)) largest = size, best = i;
    }
    for (int half = 16; half > 0; half /= 2) {
        const T size = __shfl_xor_sync(~0u, largest, half);
        const int row = __shfl_xor_sync(~0u, best, half);
        if (is_better(size, row, largest, best)) largest = size, best = row;
    }
    return best;
}

// a = P L U by rows exchanged for the largest pivot, L without its ones; failed where a pivot is 0.
template <class T, int TEAM>
__device__ __forceinline__ void factor(const Job &job, const Room<T> &room) {
    const int n = job.n, stride = room.stride, rank = rank_in_team<TEAM>();
    const int column = rank & (job.spread - 1), down = rank / job.spread;
    T *a = room.a;
    for (int k = 0; k < n; k++) {
        if (threadIdx.x % TEAM < 32) {
            const int found = find_pivot(room, n, k);
            if (rank == 0) *room.pivot = found;
        }
        sync_team<TEAM>();
        const int p = *room.pivot;
        if (p != k) {
            for (int j = rank; j < n; j += TEAM) {
                const T moved = a[k * stride + j];
                a[k * stride + j] = a[p * stride + j];
                a[p * stride + j] = moved;
            }
            if (rank == 0) {
                const int moved = room.order[k];
                room.order[k] = room.order[p];
                room.order[p] = moved;
                *room.swaps += 1;
            }
        }
        sync_team<TEAM>();
        const T pivot = a[k * stride + k];
        if (pivot == T(0)) { // and all below it
            if (rank == 0) *room.failed = 1;
            continue;
        }
        for (int i = k + 1 + rank; i < n; i += TEAM) a[i * stride + k] /= pivot;
        sync_team<TEAM>();
        if (column > k && column < n)
            for (int i = k + 1 + down; i < n; i += TEAM / job.spread)
                a[i * stride + column] -= a[i * stride + k] * a[k * stride + column];
        sync_team<TEAM>();
    }
    sync_team<TEAM>();
}

// ---- Right-hand sides ---------------------------------------------------------------------------

// Takes row k, once it is solved for, out of the rows from `begin` to `end`.
template <class T, int TEAM>
__device__ __forceinline__ void take_out(const Job &job, const Room<T> &room, int k, int begin,
                                         int end) {
    const int rank = rank_in_team<TEAM>(), down = rank >> job.rows_shift;
    const int column = rank & ((1 << job.rows_shift) - 1);
    if (column < job.width)
        for (int i = begin + down; i < end; i += TEAM >> job.rows_shift)
            room.b[i * job.width + column] -=
                room.a[i * room.stride + k] * room.b[k * job.width + column];
    sync_team<TEAM>();
}

template <class T, int TEAM>
__device__ __forceinline__ void divide_row(const Job &job, const Room<T> &room, int k) {
    for (int c = rank_in_team<TEAM>(); c < job.width; c += TEAM)
        room.b[k * job.width + c] /= room.a[k * room.stride + k];
    sync_team<TEAM>();
}

template <class T, int TEAM>
__device__ __forceinline__ void substitute(const Job &job, const Room<T> &room, System system) {
    const int n = job.n;
    if (system != System::upper)
        for (int k = 0; k < n; k++) {
            if (system == System::lower) divide_row<T, TEAM>(job, room, k);
            take_out<T, TEAM>(job, room, k, k + 1, n);
        }
    if (system != System::lower)
        for (int k = n - 1; k >= 0; k--) {
            divide_row<T, TEAM>(job, room, k);
            take_out<T, TEAM>(job, room, k, 0, k);
        }
}

// Columns from `first` on, in the order of the factored rows; those beyond the last are 0.
template <class T, int TEAM>
__device__ __forceinline__ void load_columns(const Job &job, const Room<T> &room, int64_t item,
                                             int64_t first) {
    const T *b = static_cast<const T *>(job.b);
    for (int e = rank_in_team<TEAM>(); e < job.n * job.width; e += TEAM) {
        const int row = room.order[e / job.width];
        const int64_t column = first + e % job.width;
        T value = T(0);
        if (!b)
            value = row == column ? T(1) : T(0);
        else if (column < job.columns)
            value = b[(item * job.n + row) * job.columns + column];
        room.b[e] = value;
    }
    sync_team<TEAM>();
}

template <class T, int TEAM>
__device__ __forceinline__ void store_columns(const Job &job, const Room<T> &room, int64_t item,
                                              int64_t first) {
    T *x = static_cast<T *>(job.result);
    for (int e = rank_in_team<TEAM>(); e < job.n * job.width; e += TEAM) {
        const int64_t column = first + e % job.width;
        if (column < job.columns)
            x[(item * job.n + e / job.width) * job.columns + column] = room.b[e];
    }
    sync_team<TEAM>();
}

template <class T, int TEAM>
__global__ void __launch_bounds__(large_team) solve_kernel(const Job job) {
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    const int64_t item = item_of_team<TEAM>(job);
    if (item < 0) return;
    const Room<T> room = room_of_team<T, TEAM>(job, shared);
    const System system = static_cast<System>(job.kind);
    load_matrix<T, TEAM>(job, item, false, room);
    if (system == System::general) {
        factor<T, TEAM>(job, room);
    } else if (rank_in_team<TEAM>() == 0) {
        for (int i = 0; i < job.n; i++)
            if (room.a[i * room.stride + i] == T(0)) *room.failed = 1;
    }
    if (rank_in_team<TEAM>() == 0 && *room.failed)
        leave_report(job.slot, system != System::general ? Report::triangular
                               : job.b                   ? Report::solve
                                                         : Report::inverse);
    for (int64_t first = 0; first < job.columns; first += job.width) {
        load_columns<T, TEAM>(job, room, item, first);
        substitute<T, TEAM>(job, room, system);
        store_columns<T, TEAM>(job, room, item, first);
    }
}

// ---- Cholesky's factor, and determinants --------------------------------------------------------

// a = L L', of the lower half of a; the upper factor is L', of the upper half.
template <class T, int TEAM>
__global__ void __launch_bounds__(large_team) cholesky_kernel(const Job job) {
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    const int64_t item = item_of_team<TEAM>(job);
    if (item < 0) return;
    const Room<T> room = room_of_team<T, TEAM>(job, shared);
    const int n = job.n, stride = room.stride, rank = rank_in_team<TEAM>();
    const int column = rank & (job.spread - 1), down = rank / job.spread;
    T *a = room.a;
    load_matrix<T, TEAM>(job, item, job.kind != 0, room);
    bool definite = true;
    for (int k = 0; k < n && definite; k++) {
        const T square = a[k * stride + k];
        definite = square > T(0);
        const T root = sqrt(square);
        sync_team<TEAM>();
        for (int i = k + rank; i < n; i += TEAM)
            a[i * stride + k] = i == k ? root : a[i * stride + k] / root;
        sync_team<TEAM>();
        if (column > k && column < n)
            for (int i = k + 1 + down; i < n; i += TEAM / job.spread)
                if (i >= column)
                    a[i * stride + column] -= a[i * stride + k] * a[column * stride + k];
        sync_team<TEAM>();
    }
    if (rank == 0 && !definite) leave_report(job.slot, Report::cholesky);
    T *to = static_cast<T *>(job.result) + item * n * n;
    if (column >= n) return;
    for (int row = down; row < n; row += TEAM / job.spread) {
        const int i = job.kind ? column : row, j = job.kind ? row : column;
        to[row * n + column] = i >= j ? a[i * stride + j] : T(0);
    }
}

// The product of n pivots, without an overflow on the way: fractions and exponents apart.
template <class T>
__device__ __forceinline__ T product_of_pivots(const Room<T> &room, int n, T sign) {
    T fraction = sign;
    int exponent = 0;
    for (int i = 0; i < n; i++) {
        int more = 0;
        fraction = frexp(fraction * room.a[i * room.stride + i], &more);
        if (!isfinite(fraction)) return fraction;
        exponent += more;
    }
    return ldexp(fraction, exponent);
}

template <class T, int TEAM>
__global__ void __launch_bounds__(large_team) determinant_kernel(const Job job) {
    PVG_DYNAMIC_SHARED(unsigned char, shared);
    const int64_t item = item_of_team<TEAM>(job);
    if (item < 0) return;
    const Room<T> room = room_of_team<T, TEAM>(job, shared);
    load_matrix<T, TEAM>(job, item, false, room);
    factor<T, TEAM>(job, room);
    if (rank_in_team<TEAM>() != 0) return;
    T value = *room.swaps % 2 ? T(-1) : T(1);
    const Determinant kind = static_cast<Determinant>(job.kind);
    if (kind == Determinant::value) {
        value = product_of_pivots(room, job.n, value);
    } else {
        T logarithm = T(0);
        for (int i = 0; i < job.n; i++) {
            const T pivot = room.a[i * room.stride + i];
            logarithm += log(pivot < T(0) ? -pivot : pivot);
            value = pivot == T(0) ? T(0) : pivot < T(0) ? -value : pivot == pivot ? value : pivot;
        }
        if (kind == Determinant::logarithm) value = logarithm;
    }
    static_cast<T *>(job.result)[item] = value;
}

} // namespace

} // namespace pvg
