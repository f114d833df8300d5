/* Instructions of later cards: what they do when they are used as they should be, and what happens
 * when they are not. Each plant is beside its control. */
#include "check.h"

#include <cstring>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <pthread.h>
#include <string>
#include <vector>

namespace {

using namespace pvg_sim;

/* ---- Running a kernel: the error, and what the report says ---- */

std::string message;

template <class... P, class... A>
cudaError_t run_with(unsigned cluster, bool overlap, void (*kernel)(P...), unsigned grid,
                     unsigned block, size_t shared, A... arguments) {
    cudaError_t error = launch_with(cluster, overlap, "kernel", __FILE__, __LINE__, kernel,
                                    dim3(grid), dim3(block), shared, nullptr, arguments...);
    if (!error) error = cudaDeviceSynchronize();
    message = pvg_sim_message();
    pvg_sim_reset();
    return error;
}
template <class... P, class... A>
cudaError_t run(void (*kernel)(P...), unsigned grid, unsigned block, size_t shared,
                A... arguments) {
    return run_with(1, false, kernel, grid, block, shared, arguments...);
}
#define CHECK_FAILS(error, part, ...)                                       \
    do {                                                                    \
        CHECK_EQUAL(__VA_ARGS__, error);                                    \
        CHECK(message.find(part) != std::string::npos);                     \
        if (message.find(part) == std::string::npos) puts(message.c_str()); \
    } while (0)

/* ---- cp.async ---- */

enum CopyBug { NO_BUG, NO_WAIT, WAIT_TOO_SMALL, NO_BARRIER, WRITTEN_MEANWHILE, OUTSIDE, ASKEW };

/* Two groups of a float each; every thread reads its neighbour's. */
template <CopyBug BUG> __global__ void copy_kernel(const float *in, float *out) {
    PVG_DYNAMIC_SHARED(float, memory);
    const uint32_t shared = shared_address(memory);
    const unsigned i = threadIdx.x, n = blockDim.x;
    copy_async(shared + 4 * i + (BUG == OUTSIDE ? 8 * n : BUG == ASKEW ? 2 : 0), in + i, 4, 4);
    commit_copies();
    copy_async(shared + 4 * (n + i), in + n + i, 4, i % 2 ? 4 : 0);
    commit_copies();
    if (BUG == WRITTEN_MEANWHILE) memory[i] = 1;
    if (BUG != NO_WAIT) wait_for_copies(BUG == WAIT_TOO_SMALL ? 2 : 1);
    if (BUG != NO_BARRIER) __syncthreads();
    out[i] = memory[(i + 1) % n];
    wait_for_copies(0);
    __syncthreads();
    out[n + i] = memory[n + (i + 1) % n];
}

template <CopyBug BUG> bool copies_are_right() {
    const unsigned n = 64;
    std::vector<float> host(2 * n), back(2 * n);
    for (unsigned i = 0; i < 2 * n; i++) host[i] = (float)i + 1;
    DeviceArray<float> in(2 * n), out(2 * n);
    in.write(host.data());
    CHECK_EQUAL(run(copy_kernel<BUG>, 1, n, 8 * n, (const float *)in.data, out.data), 0);
    out.read(back.data());
    bool right = true;
    for (unsigned i = 0; i < n; i++) {
        const unsigned next = (i + 1) % n;
        right = right && back[i] == host[next] && back[n + i] == (next % 2 ? host[n + next] : 0);
    }
    return right;
}

void copies() {
    CHECK(copies_are_right<NO_BUG>());
    CHECK(!copies_are_right<NO_WAIT>());
    CHECK(!copies_are_right<WAIT_TOO_SMALL>());
    CHECK(!copies_are_right<NO_BARRIER>());
    DeviceArray<float> x(128), y(128);
    const float *in = x.data;
    CHECK_FAILS(cudaErrorLaunchFailure, "was written to while a copy by cp.async",
                run(copy_kernel<WRITTEN_MEANWHILE>, 1, 64, 512, in, y.data));
    CHECK_FAILS(cudaErrorIllegalAddress, "not in the block's 512 bytes of shared memory",
                run(copy_kernel<OUTSIDE>, 1, 64, 512, in, y.data));
    CHECK_FAILS(cudaErrorMisalignedAddress, "not aligned",
                run(copy_kernel<ASKEW>, 1, 64, 512, in, y.data));
    CHECK_FAILS(
        cudaErrorMisalignedAddress, "not aligned",
        run(copy_kernel<NO_BUG>, 1, 64, 512, (const float *)((const char *)in + 2), y.data));
}

/* ---- Barriers in shared memory ---- */

enum BarrierBug { FINE, NOT_MADE, WRONG_PARITY, TOO_FEW, TOO_MANY, NO_WAIT_AT_ALL };

/* The second warp fills a slot again and again, the first reads it. */
template <BarrierBug BUG> __global__ void ring_kernel(int *out, int rounds) {
    PVG_DYNAMIC_SHARED(int, memory);
    const uint32_t full = shared_address(memory + 32), empty = full + 8;
    if (threadIdx.x == 0 && BUG != NOT_MADE) {
        make_barrier(full, 32);
        make_barrier(empty, 32);
    }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
        if (threadIdx.x >= 32) {
            wait_at_barrier(empty, (i & 1) ^ 1);
            memory[lane] = i * 32 + lane;
            if (BUG != TOO_FEW || lane) arrive_at_barrier(full, BUG == TOO_MANY ? 33 : 1, 0);
        } else {
            if (BUG != NO_WAIT_AT_ALL) wait_at_barrier(full, (i & 1) ^ (BUG == WRONG_PARITY));
            sum += memory[31 - lane];
            arrive_at_barrier(empty, 1, 0);
        }
    }
    if (threadIdx.x < 32) out[lane] = sum;
}

template <BarrierBug BUG> cudaError_t run_ring(bool *right) {
    const int rounds = 5;
    DeviceArray<int> out(32);
    cudaError_t error = run(ring_kernel<BUG>, 1, 64, 32 * 4 + 16, out.data, rounds);
    int sums[32] = {};
    out.read(sums);
    *right = true;
    for (int i = 0; i < 32; i++) *right = *right && sums[i] == 5 * (31 - i) + 320;
    return error;
}

void barriers() {
    bool right;
    CHECK_EQUAL(run_ring<FINE>(&right), 0);
    CHECK(right);
    CHECK_FAILS(cudaErrorIllegalInstruction, "no barrier was made", run_ring<NOT_MADE>(&right));
    CHECK_FAILS(cudaErrorIllegalInstruction, "33 arrivals", run_ring<TOO_MANY>(&right));
    CHECK_FAILS(cudaErrorLaunchTimeout, "deadlock", run_ring<TOO_FEW>(&right));
    run_ring<WRONG_PARITY>(&right);
    CHECK(!right);
    run_ring<NO_WAIT_AT_ALL>(&right);
    CHECK(!right);
}

__global__ void partial_kernel(int *out, int others) {
    PVG_DYNAMIC_SHARED(int, memory);
    if (threadIdx.x >= 64) return;
    memory[threadIdx.x] = (int)threadIdx.x;
    pvg_sim::sync_threads(1, threadIdx.x < 32 ? 64 : others);
    out[threadIdx.x] = memory[63 - threadIdx.x];
}

void partial_barriers() {
    DeviceArray<int> out(64);
    int back[64];
    CHECK_EQUAL(run(partial_kernel, 1, 96, 256, out.data, 64), 0);
    out.read(back);
    for (int i = 0; i < 64; i++) CHECK_EQUAL(back[i], 63 - i);
    CHECK_FAILS(cudaErrorLaunchFailure, "for 64 and for 96 threads",
                run(partial_kernel, 1, 96, 256, out.data, 96));
}

/* ---- TMA ---- */

PFN_cuTensorMapEncodeTiled_v12000 encoder() {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult answer;
    CHECK_EQUAL(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                                 cudaEnableDefault, &answer),
                0);
    CHECK_EQUAL(answer, cudaDriverEntryPointSuccess);
    return (PFN_cuTensorMapEncodeTiled_v12000)found;
}

struct View {
    const void *data;
    cuuint64_t size[3], stride[2];
    cuuint32_t box[3], step[3] = {1, 1, 1}, rank = 3;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};

CUresult encode(CUtensorMap *map, const View &v) {
    return encoder()(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, v.rank, (void *)v.data, v.size, v.stride,
                     v.box, v.step, CU_TENSOR_MAP_INTERLEAVE_NONE, v.swizzle,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* What the driver refuses. */
void tensor_maps() {
    DeviceArray<float> memory(4096);
    CUtensorMap map;
    const View good = {memory.data, {30, 20, 2}, {128, 4096}, {32, 8, 1}};
    CHECK_EQUAL(encode(&map, good), CUDA_SUCCESS);
    const auto refuses = [&](auto change) {
        View v = good;
        change(v);
        return encode(&map, v) == CUDA_ERROR_INVALID_VALUE;
    };
    CHECK(refuses([](View &v) { v.data = (const char *)v.data + 4; }));
    CHECK(refuses([](View &v) { v.data = nullptr; }));
    CHECK(refuses([](View &v) { v.rank = 0; }));
    CHECK(refuses([](View &v) { v.rank = 6; }));
    CHECK(refuses([](View &v) { v.size[1] = 0; }));
    CHECK(refuses([](View &v) { v.size[2] = ((cuuint64_t)1 << 32) + 1; }));
    CHECK(refuses([](View &v) { v.stride[0] = 132; }));
    CHECK(refuses([](View &v) { v.stride[1] = (cuuint64_t)1 << 40; }));
    CHECK(refuses([](View &v) { v.box[1] = 257; }));
    CHECK(refuses([](View &v) { v.box[2] = 0; }));
    CHECK(refuses([](View &v) { v.box[0] = 30; })); /* 120 bytes: no multiple of 16 */
    CHECK(refuses([](View &v) { v.box[0] = 64, v.swizzle = CU_TENSOR_MAP_SWIZZLE_128B; }));
    CHECK(refuses([](View &v) { v.step[0] = 9; }));
    CHECK(refuses([](View &v) { v.step[1] = 0; }));
    void *found = &map;
    cudaDriverEntryPointQueryResult answer;
    CHECK_EQUAL(cudaGetDriverEntryPointByVersion("cuNothing", &found, 12000, 0, &answer), 0);
    CHECK(!found && answer == cudaDriverEntryPointSymbolNotFound);
}

View *first_view;

void *encode_first(void *) {
    CUtensorMap map;
    int device;
    CHECK_EQUAL(cudaGetDevice(&device), 0); /* binds nothing */
    CHECK_EQUAL(encode(&map, *first_view), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cudaSetDevice(device), 0);
    CHECK_EQUAL(encode(&map, *first_view), CUDA_SUCCESS);
    return nullptr;
}

/* The driver knows no context in a thread that has made no call of the runtime that binds one. */
void contexts() {
    DeviceArray<float> memory(4096);
    View view = {memory.data, {30, 20, 2}, {128, 4096}, {32, 8, 1}};
    first_view = &view;
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, nullptr, encode_first, nullptr), 0);
    CHECK_EQUAL(pthread_join(thread, nullptr), 0);
}

enum TileBug { WELL, READ_EARLY, FEWER_BYTES, NOBODY_WAITS, OVERWRITTEN, NOT_AT_128 };

/* A box of 8 x 32 floats at (x, y, 1), of which thread i gives column i out. */
template <TileBug BUG>
__global__ void tile_kernel(CUtensorMap map, int x, int y, bool swizzle, float *out) {
    PVG_DYNAMIC_SHARED(float, memory);
    const uint32_t start = shared_address(memory), to = start + (-start % 1024);
    const uint32_t barrier = to + 8 * 128;
    if (threadIdx.x == 0) make_barrier(barrier, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        const int place[] = {x, y, 1};
        arrive_at_barrier(barrier, 1, BUG == FEWER_BYTES ? 512 : 1024);
        load_tile(to + (BUG == NOT_AT_128 ? 64 : 0), &map, barrier, 3, place);
        if (BUG == OVERWRITTEN) memory[(to - start) / 4 + 7] = 1;
    }
    if (BUG != READ_EARLY && BUG != NOBODY_WAITS) wait_at_barrier(barrier, 0);
    for (int row = 0; row < 8; row++) {
        const int chunk = (int)threadIdx.x / 4 ^ (swizzle ? row : 0);
        const uint32_t at = to + (uint32_t)(row * 128 + chunk * 16 + (int)threadIdx.x % 4 * 4);
        memcpy(&out[row * 32 + (int)threadIdx.x], shared_pointer(at, 4), 4);
    }
    if (BUG == READ_EARLY) wait_at_barrier(barrier, 0);
}

template <TileBug BUG>
cudaError_t run_tile(int x, int y, CUtensorMapSwizzle swizzle, bool *right) {
    std::vector<float> host(4096);
    for (unsigned i = 0; i < 4096; i++) host[i] = (float)i + 1;
    DeviceArray<float> in(4096), out(256);
    in.write(host.data());
    View view = {in.data, {30, 20, 2}, {128, 4096}, {32, 8, 1}};
    view.swizzle = swizzle;
    CUtensorMap map;
    CHECK_EQUAL(encode(&map, view), CUDA_SUCCESS);
    const bool is_swizzled = swizzle != CU_TENSOR_MAP_SWIZZLE_NONE;
    cudaError_t error = run(tile_kernel<BUG>, 1, 32, 3072, map, x, y, is_swizzled, out.data);
    float back[256];
    out.read(back);
    *right = true;
    for (int row = 0; row < 8; row++)
        for (int column = 0; column < 32; column++) {
            const int i = x + column, j = y + row;
            const bool inside = i >= 0 && i < 30 && j >= 0 && j < 20;
            const float expected = inside ? host[(size_t)(1024 + j * 32 + i)] : 0;
            *right = *right && back[row * 32 + column] == expected;
        }
    return error;
}

void tiles() {
    bool right;
    for (int x : {0, 3, -2, 28})
        for (int y : {0, 5, 15, -3})
            for (auto swizzle : {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B}) {
                CHECK_EQUAL(run_tile<WELL>(x, y, swizzle, &right), 0);
                CHECK(right);
            }
    const CUtensorMapSwizzle none = CU_TENSOR_MAP_SWIZZLE_NONE;
    CHECK_EQUAL(run_tile<READ_EARLY>(0, 0, none, &right), 0);
    CHECK(!right);
    CHECK_FAILS(cudaErrorLaunchTimeout, "deadlock", run_tile<FEWER_BYTES>(0, 0, none, &right));
    CHECK_FAILS(cudaErrorLaunchFailure, "copies by TMA to its shared memory were on their way",
                run_tile<NOBODY_WAITS>(0, 0, none, &right));
    CHECK_FAILS(cudaErrorLaunchFailure, "was written to while a copy by TMA",
                run_tile<OVERWRITTEN>(0, 0, none, &right));
    CHECK_FAILS(cudaErrorMisalignedAddress, "128 bytes", run_tile<NOT_AT_128>(0, 0, none, &right));
}

/* ---- Clusters ---- */

enum ClusterBug { TOGETHER, NO_FIRST_BARRIER, NO_LAST_BARRIER, RANK_TOO_HIGH, ONE_RETURNS };

/* Every block adds up what all have written. */
template <ClusterBug BUG> __global__ void cluster_kernel(int *out, unsigned size) {
    PVG_DYNAMIC_SHARED(int, memory);
    const unsigned rank = blockIdx.x % size, i = threadIdx.x;
    if (BUG == ONE_RETURNS && blockIdx.x == 1 && i == 5) return;
    memory[i] = (int)(blockIdx.x * 100 + i);
    if (BUG != NO_FIRST_BARRIER) cluster_barrier();
    int sum = 0;
    for (unsigned other = 0; other < size + (BUG == RANK_TOO_HIGH); other++)
        sum += *(const int *)in_cluster(memory + (i + 1) % blockDim.x, other, 4);
    out[blockIdx.x * blockDim.x + i] = sum;
    (void)rank;
    if (BUG != NO_LAST_BARRIER) cluster_barrier();
}

template <ClusterBug BUG> cudaError_t run_clusters(unsigned size, bool *right) {
    const unsigned clusters = 3, threads = 64, blocks = clusters * size;
    DeviceArray<int> out(blocks * threads);
    cudaError_t error =
        run_with(size, false, cluster_kernel<BUG>, blocks, threads, threads * 4, out.data, size);
    std::vector<int> back(blocks * threads);
    out.read(back.data());
    *right = true;
    for (unsigned b = 0; b < blocks; b++)
        for (unsigned i = 0; i < threads; i++) {
            int sum = 0;
            for (unsigned r = 0; r < size; r++)
                sum += (int)((b / size * size + r) * 100 + (i + 1) % threads);
            *right = *right && back[b * threads + i] == sum;
        }
    return error;
}

/* Every block sends every block its number, several times, and adds up what has come. */
enum MailBug { SENT, NONE_MADE, EXPECTS_MORE, TO_NOBODY };

template <MailBug BUG> __global__ void mail_kernel(int *out, unsigned size) {
    PVG_DYNAMIC_SHARED(uint64_t, memory);
    const uint32_t barrier = shared_address(memory);
    int *const numbers = (int *)(memory + 1);
    const unsigned rank = blockIdx.x % size, i = threadIdx.x;
    int sum = 0;
    if (i == 0 && BUG != NONE_MADE) make_barrier(barrier, 1);
    cluster_barrier();
    for (int turn = 0; turn < 3; turn++) {
        if (i == 0) arrive_at_barrier(barrier, 1, (int)(size * 4) + (BUG == EXPECTS_MORE));
        const int number = (int)(blockIdx.x * 10) + turn;
        if (i < size + (BUG == TO_NOBODY))
            send_to_block(numbers + rank, i, &number, sizeof number, barrier);
        wait_at_barrier(barrier, turn % 2);
        for (unsigned other = 0; other < size; other++) sum += numbers[other];
        cluster_barrier();
    }
    out[blockIdx.x * blockDim.x + i] = sum;
}

template <MailBug BUG> cudaError_t run_mail(unsigned size, bool *right) {
    const unsigned blocks = 2 * size, threads = 32;
    DeviceArray<int> out(blocks * threads);
    cudaError_t error =
        run_with(size, false, mail_kernel<BUG>, blocks, threads, 64, out.data, size);
    std::vector<int> back(blocks * threads);
    out.read(back.data());
    *right = true;
    for (unsigned b = 0; b < blocks; b++)
        for (unsigned i = 0; i < threads; i++) {
            int sum = 0;
            for (unsigned r = 0; r < size; r++) sum += (int)(b / size * size + r) * 30 + 3;
            *right = *right && back[b * threads + i] == sum;
        }
    return error;
}

void mail() {
    bool right;
    for (unsigned size : {1, 2, 8})
        for (int order : {0, 1, 2}) {
            CHECK_EQUAL(pvg_sim_set("order", order), 0);
            CHECK_EQUAL(run_mail<SENT>(size, &right), 0);
            CHECK(right);
        }
    CHECK_EQUAL(pvg_sim_set("order", 0), 0);
    CHECK_FAILS(cudaErrorIllegalInstruction, "no barrier was made", run_mail<NONE_MADE>(2, &right));
    CHECK_FAILS(cudaErrorLaunchTimeout, "deadlock", run_mail<EXPECTS_MORE>(2, &right));
    CHECK_FAILS(cudaErrorIllegalAddress, "block 2 of a cluster of 2",
                run_mail<TO_NOBODY>(2, &right));
}

void clusters() {
    bool right;
    for (unsigned size : {1, 2, 8})
        for (int order : {0, 1, 2}) {
            CHECK_EQUAL(pvg_sim_set("order", order), 0);
            CHECK_EQUAL(run_clusters<TOGETHER>(size, &right), 0);
            CHECK(right);
        }
    CHECK_EQUAL(pvg_sim_set("order", 0), 0);
    cudaError_t error = run_clusters<NO_FIRST_BARRIER>(2, &right);
    CHECK(error || !right);
    CHECK_FAILS(cudaErrorIllegalAddress, "which has ended",
                run_clusters<NO_LAST_BARRIER>(2, &right));
    CHECK_FAILS(cudaErrorIllegalAddress, "block 2 of a cluster of 2",
                run_clusters<RANK_TOO_HIGH>(2, &right));
    CHECK_FAILS(cudaErrorLaunchFailure, "returned without reaching its barrier",
                run_clusters<ONE_RETURNS>(2, &right));
    CHECK_EQUAL(run_clusters<TOGETHER>(9, &right), cudaErrorInvalidClusterSize);
    DeviceArray<int> out(64 * 3);
    CHECK_EQUAL(run_with(2, false, cluster_kernel<TOGETHER>, 3, 64, 256, out.data, 2u),
                cudaErrorInvalidClusterSize);
}

/* ---- Launches that overlap ---- */

__global__ void overlapping_kernel(bool waits, float *out) {
    if (waits) wait_for_previous_kernel();
    out[threadIdx.x] = 1;
}

void overlap() {
    DeviceArray<float> out(32);
    CHECK_EQUAL(run_with(1, true, overlapping_kernel, 1, 32, 0, true, out.data), 0);
    CHECK_EQUAL(run_with(1, false, overlapping_kernel, 1, 32, 0, false, out.data), 0);
    CHECK_FAILS(cudaErrorLaunchFailure, "before griddepcontrol.wait",
                run_with(1, true, overlapping_kernel, 1, 32, 0, false, out.data));
}

/* ---- Cards ---- */

int attribute(cudaDeviceAttr which, int device) {
    int value = -1;
    CHECK_EQUAL(cudaDeviceGetAttribute(&value, which, device), 0);
    return value;
}

__global__ void async_on_an_old_card(const float *in) {
    PVG_DYNAMIC_SHARED(float, memory);
    copy_async(shared_address(memory), in, 4, 4);
}

void cards() {
    for (const char *wrong : {"card8", "card", "card00", "cards", "card-1"}) {
        CHECK_EQUAL(pvg_sim_set(wrong, 80), 1);
    }
    CHECK_EQUAL(pvg_sim_set("card1", 60), 1);
    CHECK_EQUAL(pvg_sim_set("devices", 3), 0);
    CHECK_EQUAL(pvg_sim_set("card2", 80), 0);
    const int expected[3][2] = {{9, 227 << 10}, {7, 64 << 10}, {8, 163 << 10}};
    for (int device = 0; device < 3; device++) {
        cudaDeviceProp properties;
        CHECK_EQUAL(cudaGetDeviceProperties(&properties, device), 0);
        CHECK_EQUAL(properties.major, expected[device][0]);
        CHECK_EQUAL(properties.sharedMemPerBlockOptin, expected[device][1]);
        CHECK_EQUAL(attribute(cudaDevAttrComputeCapabilityMajor, device), expected[device][0]);
        CHECK_EQUAL(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                    expected[device][1]);
        CHECK_EQUAL(attribute(cudaDevAttrMultiProcessorCount, device), 2);
    }
    CHECK_EQUAL(pvg_sim_set("multiprocessors", 7), 0);
    CHECK_EQUAL(attribute(cudaDevAttrMultiProcessorCount, 2), 7);
    CHECK_EQUAL(pvg_sim_set("multiprocessors", 2), 0);
    const auto kernel = copy_kernel<NO_BUG>;
    const cudaFuncAttribute dynamic = cudaFuncAttributeMaxDynamicSharedMemorySize;
    CHECK_EQUAL(cudaFuncSetAttribute(kernel, dynamic, 227 << 10), 0);
    CHECK_EQUAL(cudaSetDevice(1), 0);
    CHECK_EQUAL(cudaFuncSetAttribute(kernel, dynamic, 65 << 10), cudaErrorInvalidValue);
    cudaGetLastError();
    DeviceArray<float> in(4);
    CHECK_FAILS(cudaErrorIllegalInstruction, "cp.async needs compute capability 8.0",
                run(async_on_an_old_card, 1, 1, 4, (const float *)in.data));
    CHECK_EQUAL(run_with(2, false, overlapping_kernel, 2, 32, 0, true, in.data),
                cudaErrorInvalidClusterSize);
    CHECK_EQUAL(cudaSetDevice(0), 0);
}

} // namespace

int main() {
    CHECK_EQUAL(pvg_sim_set("card0", 90), 0);
    copies();
    barriers();
    partial_barriers();
    tensor_maps();
    contexts();
    tiles();
    clusters();
    mail();
    overlap();
    cards();
    return finish("instructions of later cards");
}
