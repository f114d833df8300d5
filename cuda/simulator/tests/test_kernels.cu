/* Correct kernels give right results in every order of threads, with one worker and several. */
#include "check.h"

#include <vector>

namespace {

__global__ void add_kernel(const float *a, const float *b, float *c, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

/* One partial sum per block: a tree in shared memory, then shuffles. */
template <int THREADS> __global__ void sum_kernel(const float *a, size_t n, double *partial) {
    __shared__ double s[THREADS];
    unsigned t = threadIdx.x;
    double x = 0;
    for (size_t i = (size_t)blockIdx.x * THREADS + t; i < n; i += (size_t)gridDim.x * THREADS) {
        x += a[i];
    }
    s[t] = x;
    __syncthreads();
    for (unsigned half = THREADS / 2; half >= 32; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t >= 32) return;
    x = s[t];
    for (int d = 16; d > 0; d /= 2) x += __shfl_down_sync(0xffffffffu, x, d);
    if (t == 0) partial[blockIdx.x] = x;
}

/* Reverses rows of `columns` values through dynamic shared memory. */
__global__ void reverse_kernel(const int *in, int *out) {
    PVG_DYNAMIC_SHARED(int, row);
    size_t start = (size_t)blockIdx.y * blockDim.x;
    row[threadIdx.x] = in[start + threadIdx.x];
    __syncthreads();
    out[start + threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}

/* What three places of shared memory, far apart, hold before the block has written there. */
const int FAR = 6000;
__global__ void leavings_kernel(int n, unsigned *out) {
    __shared__ unsigned s[2 * FAR + 1];
    if ((int)threadIdx.x >= n) return;
    const unsigned place = (2 - threadIdx.x) * FAR;
    out[blockIdx.x * 3 + threadIdx.x] = s[place];
    s[place] = blockIdx.x;
}

__global__ void index_kernel(unsigned *out) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    out[block * threads + thread] = block * 10000 + thread;
}

/* Results of each warp function for one warp of 32 lanes. */
__global__ void warp_kernel(int *out) {
    int lane = (int)threadIdx.x, *mine = out + lane * 8;
    mine[0] = __shfl_sync(0xffffffffu, lane, lane + 5, 8);
    mine[1] = __shfl_up_sync(0xffffffffu, lane, 3, 16);
    mine[2] = __shfl_down_sync(0xffffffffu, lane, 3);
    mine[3] = __shfl_xor_sync(0xffffffffu, lane, 9);
    mine[4] = (int)__ballot_sync(0xffffffffu, lane % 3 == 0);
    mine[5] = __any_sync(0xffffffffu, lane == 7) + 2 * __all_sync(0xffffffffu, lane < 31);
    if (lane < 16) { /* two groups at two places */
        mine[6] = __shfl_sync(0x0000ffffu, lane, 3);
    } else {
        mine[6] = __shfl_sync(0xffff0000u, lane, 20);
    }
    mine[7] = __syncthreads_count(lane > 20) + 100 * __syncthreads_or(lane == 40) +
              1000 * __syncthreads_and(lane < 32);
}

__global__ void atomic_kernel(unsigned *counters, unsigned long long *big, double *real) {
    atomicAdd(&counters[0], 1u);
    atomicMax(&counters[1], threadIdx.x);
    atomicMin(&counters[2], threadIdx.x + 5);
    atomicInc(&counters[3], 9u);
    atomicAdd(big, 1ull << 33);
    atomicAdd(real, 0.5);
}

__global__ void half_kernel(const __half *in, __half *out) {
    unsigned i = threadIdx.x;
    float x = __half2float(in[i]);
    out[i] = __float2half_rn(x * 2 + __half2float(__shfl_xor_sync(0xffffffffu, in[i], 1)));
}

__global__ void math_kernel(double *out) {
    out[0] = rsqrt(16.0) + rsqrtf(0.25f);
    out[1] = sinpi(0.5) + cospi(1.0) + sinpi(7.0) + cospi(0.5) + sinpi(-1.5);
    out[2] = min(3, -4) + (double)max(2u, 7u) + min(1.5f, -0.0f) + max(2ll, 9ll);
    out[3] = __float2int_rn(2.5f) + __float2int_rz(-2.9f) + __double2ll_rn(1e300) / 4e18;
    out[4] = __popc(0xf0u) + __clz(1) + __ffs(8) + __brev(1u) / 2147483648.0 + __popcll(~0ull);
    out[5] = __umulhi(1u << 31, 6u) + (double)__mul64hi(-1ll, 1ll) + __saturatef(3.0f);
    out[6] = __int_as_float(__float_as_int(2.5f)) + fmaf(2, 3, 4) + normcdf(0.0) + rcbrt(8.0);
}

void check_add_and_sum() {
    const size_t n = 1003;
    std::vector<float> a(n), b(n), c(n);
    double expected = 0;
    for (size_t i = 0; i < n; i++) a[i] = (float)(i % 17), b[i] = (float)(i % 5), expected += a[i];
    DeviceArray<float> da(n), db(n), dc(n);
    da.write(a.data()), db.write(b.data());
    CHECK_EQUAL(LAUNCH(add_kernel, 4, 256, 0, da.data, db.data, dc.data, n), 0);
    dc.read(c.data());
    bool right = true;
    for (size_t i = 0; i < n; i++) right = right && c[i] == a[i] + b[i];
    CHECK(right);
    DeviceArray<double> partial(7);
    CHECK_EQUAL(LAUNCH(sum_kernel<128>, 7, 128, 0, da.data, n, partial.data), 0);
    double sums[7], sum = 0;
    partial.read(sums);
    for (double s : sums) sum += s;
    CHECK_EQUAL(sum, expected);
}

void check_shared_and_index() {
    const int rows = 5, columns = 100;
    std::vector<int> in(rows * columns), out(rows * columns);
    for (int i = 0; i < rows * columns; i++) in[(size_t)i] = i;
    DeviceArray<int> din(in.size()), dout(in.size());
    din.write(in.data());
    dim3 grid(1, rows);
    CHECK_EQUAL(LAUNCH(reverse_kernel, grid, columns, columns * sizeof(int), din.data, dout.data),
                0);
    dout.read(out.data());
    bool right = true;
    for (int i = 0; i < rows * columns; i++) {
        right = right && out[(size_t)i] == i / columns * columns + columns - 1 - i % columns;
    }
    CHECK(right);
    DeviceArray<unsigned> index(3 * 2 * 2 * 60);
    CHECK_EQUAL(LAUNCH(index_kernel, dim3(3, 2, 2), dim3(5, 4, 3), 0, index.data), 0);
    std::vector<unsigned> seen(index.count);
    index.read(seen.data());
    for (unsigned i = 0; i < seen.size(); i++) right = right && seen[i] == i / 60 * 10000 + i % 60;
    CHECK(right);
}

void check_leavings() {
    const unsigned blocks = 20;
    for (int n = 1; n <= 3; n++) { /* a later launch uses more of it */
        DeviceArray<unsigned> out(blocks * 3);
        CHECK_EQUAL(LAUNCH(leavings_kernel, blocks, 32, 0, n, out.data), 0);
        std::vector<unsigned> seen(out.count);
        out.read(seen.data());
        bool poison = true;
        for (unsigned i = 0; i < seen.size(); i++) poison = poison && seen[i] == 0xffffffffu;
        CHECK(poison);
    }
}

void check_warp() {
    DeviceArray<int> out(32 * 8);
    CHECK_EQUAL(LAUNCH(warp_kernel, 1, 32, 0, out.data), 0);
    int seen[32][8];
    out.read(&seen[0][0]);
    for (int l = 0; l < 32; l++) {
        CHECK_EQUAL(seen[l][0], l / 8 * 8 + (l + 5) % 8);
        CHECK_EQUAL(seen[l][1], l % 16 < 3 ? l : l - 3);
        CHECK_EQUAL(seen[l][2], l + 3 > 31 ? l : l + 3);
        CHECK_EQUAL(seen[l][3], l ^ 9);
        CHECK_EQUAL((unsigned)seen[l][4], 0x49249249u);
        CHECK_EQUAL(seen[l][5], 1);
        CHECK_EQUAL(seen[l][6], l < 16 ? 3 : 20);
        CHECK_EQUAL(seen[l][7], 1011);
    }
}

void check_atomics() {
    DeviceArray<unsigned> counters(4);
    DeviceArray<unsigned long long> big(1);
    DeviceArray<double> real(1);
    unsigned start[4] = {0, 0, 100, 0}, seen[4];
    unsigned long long none = 0, total;
    double zero = 0, sum;
    counters.write(start), big.write(&none), real.write(&zero);
    CHECK_EQUAL(LAUNCH(atomic_kernel, 40, 100, 0, counters.data, big.data, real.data), 0);
    counters.read(seen), big.read(&total), real.read(&sum);
    CHECK_EQUAL(seen[0], 4000);
    CHECK_EQUAL(seen[1], 99);
    CHECK_EQUAL(seen[2], 5);
    CHECK_EQUAL(seen[3], 0); /* 4000 steps in a cycle of 10 */
    CHECK_EQUAL(total, 4000ull << 33);
    CHECK(sum == 2000);
}

void check_types_and_math() {
    __half in[32], out[32];
    for (int i = 0; i < 32; i++) in[i] = __float2half((float)i);
    DeviceArray<__half> din(32), dout(32);
    din.write(in);
    CHECK_EQUAL(LAUNCH(half_kernel, 1, 32, 0, din.data, dout.data), 0);
    dout.read(out);
    for (int i = 0; i < 32; i++) CHECK_EQUAL(__half2float(out[i]), 2 * i + (i ^ 1));
    DeviceArray<double> results(7);
    CHECK_EQUAL(LAUNCH(math_kernel, 1, 1, 0, results.data), 0);
    double seen[7];
    results.read(seen);
    const double expected[7] = {2.25, 1, 12, 2305843009213693951.0 * 4 / 4e18, 104, 3, 13.5};
    for (int i = 0; i < 7; i++) CHECK(fabs(seen[i] - expected[i]) <= 1e-12 * fabs(expected[i]));
}

void check_all() {
    check_add_and_sum();
    check_shared_and_index();
    check_warp();
    check_atomics();
    check_types_and_math();
}

} /* namespace */

int main() {
    for (int order = 0; order <= 2; order++) {
        for (int workers = 1; workers <= 3; workers += 2) {
            CHECK_EQUAL(pvg_sim_set("order", order), 0);
            CHECK_EQUAL(pvg_sim_set("workers", workers), 0);
            check_all();
            check_leavings(); /* which the order check reports */
        }
    }
    CHECK_EQUAL(pvg_sim_set("order", 0), 0);
    CHECK_EQUAL(pvg_sim_set("workers", 2), 0);
    CHECK_EQUAL(pvg_sim_set("check_order", 1), 0);
    check_all();
    CHECK_EQUAL(pvg_sim_count("order_mismatch"), 0);
    CHECK_EQUAL(pvg_sim_set("check_order", 0), 0);
    CHECK_EQUAL(pvg_sim_count("live_allocations"), 0);
    CHECK(pvg_sim_message()[0] == 0);
    if (pvg_sim_message()[0]) printf("%s\n", pvg_sim_message());
    return finish("kernels");
}
