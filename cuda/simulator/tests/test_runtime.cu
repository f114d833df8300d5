/* The runtime's functions answer as a card's do: limits, errors, memory, copies, devices. */
#include "check.h"

#include <cstring>
#include <pthread.h>
#include <set>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

__global__ void fill_kernel(int *out, int value) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void shared_kernel(int *out) {
    PVG_DYNAMIC_SHARED(char, bytes);
    if (threadIdx.x == 0) bytes[0] = 1, out[0] = bytes[0];
}

__global__ void no_argument_kernel() {}

int fill(int *out, dim3 grid, dim3 block) { return LAUNCH(fill_kernel, grid, block, 0, out, 1); }

void check_limits(int *out) {
    CHECK_EQUAL(fill(out, 1, 1024), 0);
    CHECK_EQUAL(fill(out, 1, 2048), cudaErrorInvalidConfiguration);
    CHECK_EQUAL(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CHECK_EQUAL(cudaGetLastError(), 0);
    CHECK_EQUAL(fill(out, 1, 32), 0);
    CHECK_EQUAL(fill(out, 0, 32), cudaErrorInvalidConfiguration);
    CHECK_EQUAL(fill(out, 1, dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
    CHECK_EQUAL(fill(out, dim3(1, 65536), 1), cudaErrorInvalidConfiguration);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CHECK_EQUAL(pvg_sim::launch("none", "", 0, no_argument_kernel, 1, 1, 0, nullptr), 0);

    auto with_shared = [out](int bytes) { return LAUNCH(shared_kernel, 1, 32, bytes, out); };
    CHECK_EQUAL(with_shared(48 << 10), 0);
    CHECK_EQUAL(with_shared(64 << 10), cudaErrorInvalidValue);
    auto which = cudaFuncAttributeMaxDynamicSharedMemorySize;
    CHECK_EQUAL(cudaFuncSetAttribute(shared_kernel, which, (64 << 10) + 1), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaFuncSetAttribute(shared_kernel, which, 64 << 10), 0);
    CHECK_EQUAL(with_shared(64 << 10), 0);
    cudaFuncAttributes attributes;
    CHECK_EQUAL(cudaFuncGetAttributes(&attributes, shared_kernel), 0);
    CHECK_EQUAL(attributes.maxDynamicSharedSizeBytes, 64 << 10);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidValue);
    int blocks;
    CHECK_EQUAL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, shared_kernel, 256, 0), 0);
    CHECK_EQUAL(blocks, 4);
}

void check_memory() {
    void *p = &p, *q = &q;
    CHECK_EQUAL(cudaMalloc(&p, 0), 0);
    CHECK(p == nullptr);
    CHECK_EQUAL(cudaFree(nullptr), 0);
    CHECK_EQUAL(cudaMalloc(&p, (size_t)1 << 60), cudaErrorMemoryAllocation);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_EQUAL(cudaGetLastError(), 0);
    CHECK_EQUAL(cudaMalloc(&p, 1000), 0);
    CHECK_EQUAL((uintptr_t)p % 256, 0);
    unsigned char bytes[1000];
    CHECK_EQUAL(cudaMemcpy(bytes, p, 1000, cudaMemcpyDeviceToHost), 0);
    for (unsigned char byte : bytes) CHECK_EQUAL(byte, 0xFF);
    int local = 0;
    CHECK_EQUAL(cudaFree(&local), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaFree((char *)p + 8), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaFreeHost(p), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaFree(p), 0);
    CHECK_EQUAL(cudaFree(p), cudaErrorInvalidValue);
    CHECK_EQUAL(pvg_sim_set("memory", 1 << 20), 0);
    CHECK_EQUAL(cudaMalloc(&p, 600 << 10), 0);
    CHECK_EQUAL(cudaMalloc(&q, 600 << 10), cudaErrorMemoryAllocation);
    size_t free_bytes, total;
    CHECK_EQUAL(cudaMemGetInfo(&free_bytes, &total), 0);
    CHECK_EQUAL(total, 1 << 20);
    CHECK_EQUAL(total - free_bytes, pvg_sim_count("live_bytes"));
    CHECK_EQUAL(cudaFree(p), 0);
    CHECK_EQUAL(pvg_sim_set("memory", 4ll << 30), 0);
    cudaGetLastError();
}

void check_pointers() {
    int local;
    void *device, *pinned, *mapped;
    CHECK_EQUAL(cudaMalloc(&device, 64), 0);
    CHECK_EQUAL(cudaMallocHost(&pinned, 64), 0);
    cudaPointerAttributes a;
    CHECK_EQUAL(cudaPointerGetAttributes(&a, (char *)device + 63), 0);
    CHECK_EQUAL(a.type, cudaMemoryTypeDevice);
    CHECK(a.device == 0 && a.devicePointer == (char *)device + 63 && !a.hostPointer);
    CHECK_EQUAL(cudaPointerGetAttributes(&a, pinned), 0);
    CHECK_EQUAL(a.type, cudaMemoryTypeHost);
    CHECK_EQUAL(cudaPointerGetAttributes(&a, &local), 0);
    CHECK_EQUAL(a.type, cudaMemoryTypeUnregistered);
    CHECK_EQUAL(cudaHostGetDevicePointer(&mapped, pinned, 0), 0);
    CHECK_EQUAL(LAUNCH(fill_kernel, 1, 16, 0, (int *)mapped, 9), 0);
    CHECK_EQUAL(((int *)pinned)[15], 9);
    CHECK_EQUAL(cudaHostGetDevicePointer(&mapped, &local, 0), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaFree(pinned), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaFreeHost(pinned), 0);
    CHECK_EQUAL(cudaFree(device), 0);
    cudaGetLastError();
}

void check_copies() {
    char *device, host[256] = {}, back[64] = {};
    CHECK_EQUAL(cudaMalloc(&device, 64), 0);
    CHECK_EQUAL(cudaMemcpy(device, host, 65, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaMemcpy(host, device + 60, 5, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaMemcpy(host, back, 5, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaMemcpy(device, device, 5, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaMemcpy(device, nullptr, 5, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaMemset(host, 1, 5), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaMemset(device, 1, 65), cudaErrorInvalidValue);
    cudaGetLastError();
    long long before = pvg_sim_count("copy_h2d"), bytes = pvg_sim_count("bytes_h2d");
    for (int i = 0; i < 256; i++) host[i] = (char)i;
    /* 4 rows of 8 bytes out of 16 */
    CHECK_EQUAL(cudaMemcpy2DAsync(device, 8, host, 16, 8, 4, cudaMemcpyDefault, nullptr), 0);
    CHECK_EQUAL(cudaMemcpy(back, device, 32, cudaMemcpyDefault), 0);
    for (int i = 0; i < 32; i++) CHECK_EQUAL(back[i], i / 8 * 16 + i % 8);
    CHECK_EQUAL(pvg_sim_count("copy_h2d") - before, 1);
    CHECK_EQUAL(pvg_sim_count("bytes_h2d") - bytes, 32);
    CHECK_EQUAL(cudaMemcpy2D(device, 4, host, 16, 8, 4, cudaMemcpyDefault),
                cudaErrorInvalidPitchValue);
    CHECK_EQUAL(cudaMemset(device, 7, 64), 0);
    CHECK_EQUAL(cudaMemcpy(back, device, 64, cudaMemcpyDeviceToHost), 0);
    CHECK(back[0] == 7 && back[63] == 7);
    CHECK_EQUAL(cudaFree(device), 0);
    cudaGetLastError();
}

template <class F> void check_fault(const char *what, int error, F call) {
    pvg_sim_fail(what, 3);
    int expected[5] = {0, 0, error, 0, 0};
    for (int e : expected) CHECK_EQUAL(call(), e);
    cudaGetLastError();
}

void check_faults(int *out) {
    void *p;
    check_fault("malloc", cudaErrorMemoryAllocation, [&] {
        int e = cudaMalloc(&p, 64);
        cudaFree(p);
        return e;
    });
    check_fault("pinned", cudaErrorMemoryAllocation, [&] {
        int e = cudaHostAlloc(&p, 64, cudaHostAllocMapped);
        cudaFreeHost(p);
        return e;
    });
    check_fault("copy", cudaErrorInvalidValue,
                [&] { return cudaMemcpy(out, "1234", 4, cudaMemcpyHostToDevice); });
    check_fault("launch", cudaErrorLaunchOutOfResources, [&] { return fill(out, 1, 4); });
    cudaStream_t stream = nullptr;
    check_fault("stream", cudaErrorOperatingSystem, [&] {
        int e = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        return e ? e : cudaStreamDestroy(stream);
    });
    cudaEvent_t event;
    check_fault("event", cudaErrorOperatingSystem, [&] {
        int e = cudaEventCreate(&event);
        return e ? e : cudaEventDestroy(event);
    });
    CHECK_EQUAL(pvg_sim_count("live_streams"), 0);
    CHECK_EQUAL(pvg_sim_count("live_events"), 0);
}

void check_sticky(int *out) {
    void *p;
    pvg_sim_fail("device", 2);
    CHECK_EQUAL(fill(out, 1, 4), 0);
    CHECK_EQUAL(fill(out, 1, 4), cudaErrorLaunchFailure);
    CHECK(strstr(pvg_sim_message(), "the card was lost"));
    for (int i = 0; i < 2; i++) CHECK_EQUAL(cudaGetLastError(), cudaErrorLaunchFailure);
    CHECK_EQUAL(cudaMalloc(&p, 4), cudaErrorLaunchFailure);
    CHECK_EQUAL(fill(out, 1, 4), cudaErrorLaunchFailure);
    CHECK_EQUAL(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    pvg_sim_reset();
    CHECK(pvg_sim_message()[0] == 0);
    CHECK_EQUAL(cudaGetLastError(), 0);
    CHECK_EQUAL(fill(out, 1, 4), 0);
}

void check_devices() {
    int count = 0, device = -1;
    CHECK_EQUAL(cudaGetDeviceCount(&count), 0);
    CHECK_EQUAL(count, 1);
    CHECK_EQUAL(cudaSetDevice(1), cudaErrorInvalidDevice);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidDevice);
    CHECK_EQUAL(pvg_sim_set("devices", 2), 0);
    int *first, *second, back = 0;
    CHECK_EQUAL(cudaMalloc(&first, 64), 0);
    CHECK_EQUAL(cudaSetDevice(1), 0);
    CHECK_EQUAL(cudaMalloc(&second, 64), 0);
    CHECK_EQUAL(LAUNCH(fill_kernel, 1, 16, 0, second, 5), 0);
    CHECK_EQUAL(cudaMemcpyPeer(first, 0, second, 1, 64), 0);
    CHECK_EQUAL(LAUNCH(fill_kernel, 1, 16, 0, first, 5), cudaErrorIllegalAddress);
    CHECK(strstr(pvg_sim_message(), "argument 1") && strstr(pvg_sim_message(), "memory of card 0"));
    CHECK_EQUAL(cudaSetDevice(0), 0); /* the other card is not lost */
    CHECK_EQUAL(cudaGetDevice(&device), 0);
    CHECK_EQUAL(device, 0);
    CHECK_EQUAL(cudaMemcpy(&back, first, 4, cudaMemcpyDeviceToHost), 0);
    CHECK_EQUAL(back, 5);
    pvg_sim_reset();
    CHECK_EQUAL(cudaFree(first), 0);
    CHECK_EQUAL(cudaFree(second), 0);
    CHECK_EQUAL(pvg_sim_set("devices", 1), 0);
}

/* Without a card, or a driver that is new enough: the count stays as it was, as with CUDA. */
void check_machines_without_a_card() {
    struct {
        const char *setting;
        int value, usual;
        cudaError_t expected;
    } const cases[] = {
        {"devices", 0, 1, cudaErrorNoDevice},
        {"driver", 0, CUDART_VERSION, cudaErrorInsufficientDriver},
        {"driver", CUDART_VERSION - 1, CUDART_VERSION, cudaErrorInsufficientDriver},
        {"start_error", cudaErrorInitializationError, cudaSuccess, cudaErrorInitializationError}};
    for (const auto &one : cases) {
        int count = 7, version = -1;
        CHECK_EQUAL(pvg_sim_set(one.setting, one.value), 0);
        CHECK_EQUAL(cudaGetDeviceCount(&count), one.expected);
        CHECK_EQUAL(cudaGetLastError(), one.expected);
        CHECK_EQUAL(count, 7);
        CHECK_EQUAL(cudaDriverGetVersion(&version), 0);
        CHECK_EQUAL(version, strcmp(one.setting, "driver") ? CUDART_VERSION : one.value);
        CHECK_EQUAL(pvg_sim_set(one.setting, one.usual), 0);
        CHECK_EQUAL(cudaGetDeviceCount(&count), 0);
        CHECK_EQUAL(count, 1);
    }
    const char *const names[] = {"devices", "driver", "start_error"};
    for (const char *name : names) {
        CHECK_EQUAL(pvg_sim_set(name, -1), 1);
        CHECK_EQUAL(pvg_sim_set(name, 1 << 20), 1);
    }
}

/* Every error of the toolkit's has a name, which is nobody else's. */
void check_error_names() {
    const int known_to_cuda_13 = 133;
    std::set<std::string> names;
    int known = 0;
    for (int code = 0; code <= cudaErrorUnknown; code++) {
        std::string name = cudaGetErrorName((cudaError_t)code);
        if (name == "unrecognized error code") continue;
        CHECK(names.insert(name).second && name.rfind(code ? "cudaError" : "cudaSuccess", 0) == 0);
        CHECK(*cudaGetErrorString((cudaError_t)code));
        known++;
    }
    CHECK_EQUAL(known, known_to_cuda_13);
}

void check_properties() {
    cudaDeviceProp p;
    CHECK_EQUAL(cudaGetDeviceProperties(&p, 0), 0);
    CHECK_EQUAL(cudaGetDeviceProperties(&p, 1), cudaErrorInvalidDevice);
    int v;
    for (int a = 1; a < cudaDevAttrMax; a++)
        CHECK_EQUAL(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)a, 0), 0);
    CHECK_EQUAL(cudaDeviceGetAttribute(&v, cudaDevAttrMax, 0), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaDeviceGetAttribute(&v, cudaDevAttrMultiProcessorCount, 0), 0);
    CHECK(v == 2 && p.multiProcessorCount == 2);
    CHECK(p.major == 7 && p.minor == 5 && p.sharedMemPerBlockOptin == 64 << 10);
    CHECK(p.maxGridSize[0] == 0x7fffffff && p.maxGridSize[1] == 65535 && p.maxThreadsDim[2] == 64);
    CHECK(p.totalGlobalMem == (size_t)4 << 30);
    cudaGetLastError();
    check_error_names();
    CHECK(strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
    CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
    CHECK_EQUAL(pvg_sim_set("no such setting", 1), 1);
    CHECK_EQUAL(pvg_sim_set("order", 3), 1);
    CHECK_EQUAL(pvg_sim_count("no such counter"), -1);
}

void *launch_often(void *) {
    int *out, seen[64];
    if (cudaMalloc(&out, sizeof seen)) return nullptr;
    long right = 0;
    for (int round = 0; round < 50; round++) {
        int error = LAUNCH(fill_kernel, 2, 32, 0, out, round);
        error = error ? error : (int)cudaMemcpy(seen, out, sizeof seen, cudaMemcpyDeviceToHost);
        right += !error && seen[0] == round && seen[63] == round;
    }
    cudaFree(out);
    return (void *)right;
}

void check_threads() {
    pthread_t threads[4];
    for (pthread_t &t : threads) CHECK_EQUAL(pthread_create(&t, nullptr, launch_often, nullptr), 0);
    for (pthread_t &t : threads) {
        void *right = nullptr;
        pthread_join(t, &right);
        CHECK_EQUAL((long)right, 50);
    }
}

#if !defined(__SANITIZE_THREAD__) /* which stops working in the child of a process with threads */
void check_fork(int *out) {
    pid_t child = fork();
    if (child == 0) _exit(fill(out, 2, 32) == 0 && launch_often(nullptr) == (void *)50 ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_EQUAL(status, 0);
}
#endif

} /* namespace */

int main() {
    int *out;
    CHECK_EQUAL(cudaMalloc(&out, 4096), 0);
    check_limits(out);
    check_memory();
    check_pointers();
    check_copies();
    check_faults(out);
    check_sticky(out);
    check_devices();
    check_machines_without_a_card();
    check_properties();
    check_threads();
#if !defined(__SANITIZE_THREAD__)
    check_fork(out);
#endif
    CHECK_EQUAL(cudaFree(out), 0);
    CHECK_EQUAL(cudaGetLastError(), 0);
    CHECK_EQUAL(pvg_sim_count("live_allocations"), 0);
    CHECK_EQUAL(pvg_sim_count("live_pinned"), 0);
    return finish("runtime");
}
