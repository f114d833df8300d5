/* Streams and events, at once and deferred: with the waits that CUDA asks for both modes agree;
 * without them the deferred mode gives data that is wrong, or an error. */
#include "check.h"

#include <cstring>

namespace {

__global__ void increment_kernel(int *x) { x[threadIdx.x] += 1; }

__global__ void copy_kernel(const int *from, int *to) { to[threadIdx.x] = from[threadIdx.x]; }

struct Streams {
    cudaStream_t a, b;
    cudaEvent_t event;
    Streams() {
        CHECK_EQUAL(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), 0);
        CHECK_EQUAL(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), 0);
        CHECK_EQUAL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), 0);
    }
    ~Streams() {
        CHECK_EQUAL(cudaStreamDestroy(a), 0);
        CHECK_EQUAL(cudaStreamDestroy(b), 0);
        CHECK_EQUAL(cudaEventDestroy(event), 0);
    }
};

/* Stream a makes x, stream b copies it to y; with `wait`, b waits for a. Returns y[0]. */
int produce_and_consume(bool wait) {
    Streams s;
    DeviceArray<int> x(4), y(4);
    int zero[4] = {}, seen[4];
    x.write(zero), y.write(zero);
    CHECK_EQUAL(LAUNCH_ON(s.a, increment_kernel, 1, 4, 0, x.data), 0);
    CHECK_EQUAL(cudaEventRecord(s.event, s.a), 0);
    if (wait) CHECK_EQUAL(cudaStreamWaitEvent(s.b, s.event, 0), 0);
    CHECK_EQUAL(LAUNCH_ON(s.b, copy_kernel, 1, 4, 0, (const int *)x.data, y.data), 0);
    CHECK_EQUAL(cudaMemcpyAsync(seen, y.data, sizeof seen, cudaMemcpyDeviceToHost, s.b), 0);
    CHECK_EQUAL(cudaStreamSynchronize(s.b), 0);
    CHECK_EQUAL(cudaDeviceSynchronize(), 0);
    return seen[0];
}

/* Uploads from pinned memory, which is overwritten before or after the wait. Returns what came. */
int upload(bool wait) {
    Streams s;
    DeviceArray<int> x(4);
    int *pinned, seen[4];
    CHECK_EQUAL(cudaMallocHost(&pinned, sizeof seen), 0);
    for (int i = 0; i < 4; i++) pinned[i] = 1;
    CHECK_EQUAL(cudaMemcpyAsync(x.data, pinned, sizeof seen, cudaMemcpyHostToDevice, s.a), 0);
    if (wait) CHECK_EQUAL(cudaStreamSynchronize(s.a), 0);
    for (int i = 0; i < 4; i++) pinned[i] = 2;
    CHECK_EQUAL(cudaStreamSynchronize(s.a), 0);
    x.read(seen);
    CHECK_EQUAL(cudaFreeHost(pinned), 0);
    return seen[0];
}

/* Reads back into pinned memory, and looks at it before or after the wait. */
int download(bool wait) {
    Streams s;
    DeviceArray<int> x(4);
    int *pinned, one[4] = {1, 1, 1, 1};
    x.write(one);
    CHECK_EQUAL(cudaMallocHost(&pinned, sizeof one), 0);
    pinned[0] = -7;
    CHECK_EQUAL(cudaMemcpyAsync(pinned, x.data, sizeof one, cudaMemcpyDeviceToHost, s.a), 0);
    if (wait) CHECK_EQUAL(cudaStreamSynchronize(s.a), 0);
    int seen = pinned[0];
    CHECK_EQUAL(cudaStreamSynchronize(s.a), 0);
    CHECK_EQUAL(cudaFreeHost(pinned), 0);
    return seen;
}

/* Frees what a recorded kernel still needs. */
int early_free(bool wait) {
    Streams s;
    int *x;
    CHECK_EQUAL(cudaMalloc(&x, 16), 0);
    CHECK_EQUAL(cudaMemsetAsync(x, 0, 16, s.a), 0);
    CHECK_EQUAL(LAUNCH_ON(s.a, increment_kernel, 1, 4, 0, x), 0);
    if (wait) CHECK_EQUAL(cudaStreamSynchronize(s.a), 0);
    CHECK_EQUAL(cudaFree(x), 0);
    int error = cudaStreamSynchronize(s.a);
    if (error) CHECK(strstr(pvg_sim_message(), "freed"));
    pvg_sim_reset();
    return error;
}

/* A pageable source may change after the call; a null-stream copy waits for the null stream. */
void check_host_rules() {
    Streams s;
    DeviceArray<int> x(4);
    int values[4] = {1, 2, 3, 4}, seen[4] = {};
    CHECK_EQUAL(cudaMemcpyAsync(x.data, values, sizeof seen, cudaMemcpyHostToDevice, s.a), 0);
    memset(values, 0, sizeof values);
    CHECK_EQUAL(cudaMemcpyAsync(seen, x.data, sizeof seen, cudaMemcpyDeviceToHost, s.a), 0);
    CHECK_EQUAL(seen[3], 4);
    CHECK_EQUAL(LAUNCH(increment_kernel, 1, 4, 0, x.data), 0);
    CHECK_EQUAL(cudaMemcpy(seen, x.data, sizeof seen, cudaMemcpyDeviceToHost), 0);
    CHECK_EQUAL(seen[3], 5);
}

void check_events() {
    Streams s;
    cudaEvent_t start, end;
    float ms = -1;
    DeviceArray<int> x(4);
    CHECK_EQUAL(cudaEventCreate(&start), 0);
    CHECK_EQUAL(cudaEventCreate(&end), 0);
    CHECK_EQUAL(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle);
    CHECK_EQUAL(cudaEventElapsedTime(&ms, s.event, s.event), cudaErrorInvalidResourceHandle);
    CHECK_EQUAL(cudaEventQuery(start), 0); /* never recorded */
    CHECK_EQUAL(cudaEventRecord(start, s.a), 0);
    CHECK_EQUAL(LAUNCH_ON(s.a, increment_kernel, 1, 4, 0, x.data), 0);
    CHECK_EQUAL(cudaEventRecord(end, s.a), 0);
    CHECK_EQUAL(cudaEventSynchronize(end), 0);
    CHECK_EQUAL(cudaEventElapsedTime(&ms, start, end), 0);
    CHECK(ms >= 0 && ms < 1e4f);
    CHECK_EQUAL(cudaEventDestroy(start), 0);
    CHECK_EQUAL(cudaEventDestroy(end), 0);
    CHECK_EQUAL(cudaEventDestroy(end), cudaErrorInvalidResourceHandle);
    CHECK_EQUAL(cudaStreamSynchronize((cudaStream_t)&ms), cudaErrorInvalidResourceHandle);
    cudaGetLastError();
}

void check_queries() {
    Streams s;
    DeviceArray<int> x(4);
    CHECK_EQUAL(LAUNCH_ON(s.a, increment_kernel, 1, 4, 0, x.data), 0);
    CHECK_EQUAL(cudaEventRecord(s.event, s.a), 0);
    CHECK_EQUAL(pvg_sim_count("pending"), 2);
    CHECK_EQUAL(cudaEventQuery(s.event), cudaErrorNotReady);
    CHECK_EQUAL(cudaEventQuery(s.event), 0);
    CHECK_EQUAL(cudaStreamQuery(s.a), 0);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorNotReady);
    /* An error is found where the work runs, not where it was submitted. */
    pvg_sim_fail("device", 1);
    CHECK_EQUAL(LAUNCH_ON(s.a, increment_kernel, 1, 4, 0, x.data), 0);
    CHECK_EQUAL(cudaStreamSynchronize(s.a), cudaErrorLaunchFailure);
    pvg_sim_reset();
    /* A long queue runs its oldest work, so nothing grows without end. */
    for (int i = 0; i < 3000; i++) LAUNCH_ON(i % 2 ? s.a : s.b, increment_kernel, 1, 1, 0, x.data);
    CHECK(pvg_sim_count("pending") <= 2 * 1024);
    CHECK_EQUAL(cudaDeviceSynchronize(), 0);
}

} /* namespace */

int main() {
    for (int deferred = 0; deferred <= 1; deferred++) {
        CHECK_EQUAL(pvg_sim_set("deferred", deferred), 0);
        for (int order = 0; order <= 1; order++) {
            CHECK_EQUAL(pvg_sim_set("order", order), 0);
            CHECK_EQUAL(produce_and_consume(true), 1);
        }
        CHECK_EQUAL(pvg_sim_set("order", 0), 0);
        CHECK_EQUAL(upload(true), 1);
        CHECK_EQUAL(download(true), 1);
        CHECK_EQUAL(early_free(true), 0);
        check_host_rules();
        check_events();
    }
    CHECK_EQUAL(produce_and_consume(false), 0); /* the old value */
    CHECK_EQUAL(upload(false), 2);
    CHECK_EQUAL(download(false), -7);
    CHECK_EQUAL(early_free(false), cudaErrorIllegalAddress);
    check_queries();
    CHECK_EQUAL(pvg_sim_set("deferred", 0), 0);
    CHECK_EQUAL(pvg_sim_count("pending"), 0);
    CHECK_EQUAL(pvg_sim_count("live_streams"), 0);
    CHECK_EQUAL(pvg_sim_count("live_events"), 0);
    return finish("streams");
}
