/* Solutions of lesson 15.
 *
 *     nvcc -O3 -arch=native 15_layer.cu -o 15_layer && ./15_layer
 *
 * 1. Rows are the items of the batch, columns the outputs. W is stored with a row for each output,
 *    so it is the "b transposed" of lesson 11's first exercise. A number of W that a block has
 *    fetched now serves 16 items. The fused ending is the last line.
 * 2. Each warp of the block makes some hidden values, then after a barrier some outputs. An output
 *    needs all hidden values, and blocks cannot wait for each other within a kernel: so it has to
 *    be one block, which is one multiprocessor out of many, and shared memory has to hold all that
 *    lies between. Small networks are indeed run this way, one block for each item of the batch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TILE = 16, LANES = 32, WARPS = 8, INPUTS = 45, HIDDEN = 70, OUTPUTS = 10, BATCH = 33 };

static __device__ float sigmoid_of(float z) { return 1 / (1 + expf(-z)); }

static __global__ void layer_by_tiles(const float *w, const float *x, const float *b, float *y,
                                      int batch, int inputs, int outputs) {
    __shared__ float x_tile[TILE][TILE], w_tile[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    int item = blockIdx.y * TILE + ty, first_output = blockIdx.x * TILE;
    int output = first_output + tx;
    float sum = 0;
    for (int start = 0; start < inputs; start += TILE) {
        bool in_x = item < batch && start + tx < inputs;
        bool in_w = first_output + ty < outputs && start + tx < inputs;
        x_tile[ty][tx] = in_x ? x[(size_t)item * inputs + start + tx] : 0;
        w_tile[ty][tx] = in_w ? w[(size_t)(first_output + ty) * inputs + start + tx] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += x_tile[ty][i] * w_tile[tx][i];
        __syncthreads();
    }
    if (item < batch && output < outputs) {
        y[(size_t)item * outputs + output] = sigmoid_of(sum + b[output]);
    }
}

/* One layer by one block: each warp makes every WARPS-th element of y. */
static __device__ void layer_of_block(const float *w, const float *x, const float *b, float *y,
                                      int inputs, int outputs) {
    for (int o = threadIdx.x / LANES; o < outputs; o += WARPS) {
        float sum = 0;
        for (int i = threadIdx.x % LANES; i < inputs; i += LANES) sum += w[o * inputs + i] * x[i];
        for (int distance = LANES / 2; distance > 0; distance /= 2) {
            sum += __shfl_xor_sync(0xffffffff, sum, distance);
        }
        if (threadIdx.x % LANES == 0) y[o] = sigmoid_of(sum + b[o]);
    }
}

static __global__ void two_layers(const float *w1, const float *b1, const float *w2,
                                  const float *b2, const float *x, float *y) {
    __shared__ float hidden[HIDDEN];
    layer_of_block(w1, x, b1, hidden, INPUTS, HIDDEN);
    __syncthreads();
    layer_of_block(w2, hidden, b2, y, HIDDEN, OUTPUTS);
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* Random numbers between -largest and largest. */
static void fill(float *x, size_t count, unsigned state, float largest) {
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) / (1 << 23) - 1) * largest;
    }
}

static void layer_on_host(const float *w, const float *x, const float *b, float *y, int inputs,
                          int outputs) {
    for (int o = 0; o < outputs; o++) {
        float sum = b[o];
        for (int i = 0; i < inputs; i++) sum += w[o * inputs + i] * x[i];
        y[o] = 1 / (1 + expf(-sum));
    }
}

/* How many of `count` numbers on the device differ from those expected. */
static int count_wrong(const float *d_y, const float *expected, int count) {
    int wrong = 0;
    float *y = (float *)malloc(count * sizeof(float));
    if (!y) exit(1);
    CHECK(cudaMemcpy(y, d_y, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) wrong += !(fabsf(y[i] - expected[i]) <= 1e-5f);
    free(y);
    return wrong;
}

/* New device memory with a copy of host memory, or with NaN (all bits one) for NULL. */
static float *new_device_array(size_t count, const float *h_from) {
    float *x;
    CHECK(cudaMalloc(&x, count * sizeof(float)));
    CHECK(cudaMemset(x, 0xFF, count * sizeof(float)));
    if (h_from) CHECK(cudaMemcpy(x, h_from, count * sizeof(float), cudaMemcpyHostToDevice));
    return x;
}

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    static float w1[HIDDEN * INPUTS], b1[HIDDEN], w2[OUTPUTS * HIDDEN], b2[OUTPUTS];
    static float x[BATCH * INPUTS], expected[BATCH * HIDDEN], expected_outputs[OUTPUTS];
    fill(w1, HIDDEN * INPUTS, 1, 0.5f);
    fill(b1, HIDDEN, 2, 1);
    fill(w2, OUTPUTS * HIDDEN, 3, 0.5f);
    fill(b2, OUTPUTS, 4, 1);
    fill(x, BATCH * INPUTS, 5, 1);
    float *d_w1 = new_device_array(HIDDEN * INPUTS, w1), *d_b1 = new_device_array(HIDDEN, b1);
    float *d_w2 = new_device_array(OUTPUTS * HIDDEN, w2), *d_b2 = new_device_array(OUTPUTS, b2);
    float *d_x = new_device_array(BATCH * INPUTS, x), *d_y = new_device_array(BATCH * HIDDEN, NULL);
    float *d_outputs = new_device_array(OUTPUTS, NULL);

    for (int i = 0; i < BATCH; i++) {
        layer_on_host(w1, x + i * INPUTS, b1, expected + i * HIDDEN, INPUTS, HIDDEN);
    }
    dim3 grid((HIDDEN + TILE - 1) / TILE, (BATCH + TILE - 1) / TILE);
    layer_by_tiles<<<grid, dim3(TILE, TILE)>>>(d_w1, d_x, d_b1, d_y, BATCH, INPUTS, HIDDEN);
    CHECK(cudaGetLastError());
    int wrong = count_wrong(d_y, expected, BATCH * HIDDEN);
    printf("1. a batch of %d by tiles: %d of %d wrong\n", BATCH, wrong, BATCH * HIDDEN);

    /* The first item's hidden values are in `expected` already. */
    layer_on_host(w2, expected, b2, expected_outputs, HIDDEN, OUTPUTS);
    two_layers<<<1, WARPS * LANES>>>(d_w1, d_b1, d_w2, d_b2, d_x, d_outputs);
    CHECK(cudaGetLastError());
    int more_wrong = count_wrong(d_outputs, expected_outputs, OUTPUTS);
    printf("2. two layers in one kernel: %d of %d wrong\n", more_wrong, OUTPUTS);

    float *all[] = {d_w1, d_b1, d_w2, d_b2, d_x, d_y, d_outputs};
    for (float *each : all) CHECK(cudaFree(each));
    return wrong || more_wrong ? 1 : 0;
}
