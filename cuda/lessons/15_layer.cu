/* Lesson 15: one layer of a neural network, y = sigmoid(W x + b), in one kernel.
 *
 *     nvcc -O3 -arch=native 15_layer.cu -o 15_layer && ./15_layer
 *
 * A layer turns a vector x of `inputs` numbers into a vector y of `outputs` numbers. W, the
 * WEIGHTS, is a matrix with a row for each output; b, the BIAS, has a number for each output:
 *
 *     y[o] = sigmoid(W[o][0] x[0] + W[o][1] x[1] + ... + b[o]),    sigmoid(z) = 1 / (1 + exp(-z))
 *
 * In practice many vectors are put through the layer at once, a BATCH. The x of a batch are the
 * rows of a matrix, and so are the y.
 *
 * Written as in a book this is three kernels: W x, plus b, sigmoid. Between them the numbers travel
 * to device memory and back for one addition, and each launch costs some 2 to 4 us. FUSED into one
 * kernel, a number is finished while it is still in a register. That is a good part of what
 * frameworks mean when they say that they "compile" a network.
 *
 * What to look for: fused against three kernels. The arithmetic is the same; the difference is
 * launches and traffic. For one vector that is most of the time. For a batch the product, which
 * both have, takes longest, so there the gain is a smaller part. (Launches cost next to nothing on
 * the simulated card.) */

enum { LANES = 32, OUTPUTS_OF_A_BLOCK = 8 }; /* threads of a warp; a block has 8 warps */

static __device__ float layer_sigmoid(float z) { return 1 / (1 + expf(-z)); }

/* The sum of w[i] * x[i] for i = 0 ... n-1, made by the 32 threads of a warp and known to all of
 * them (lesson 14). Neighbouring threads read neighbouring numbers of the row of W. */
static __device__ float dot_of_warp(const float *w, const float *x, int n) {
    float sum = 0;
    for (int i = threadIdx.x % LANES; i < n; i += LANES) sum += w[i] * x[i];
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    }
    return sum;
}

/* The layer. W is outputs x inputs, x is batch x inputs, b has outputs elements, y is batch x
 * outputs. A warp makes one element of y. All warps of a block work on the same row of x.
 * Launch: block OUTPUTS_OF_A_BLOCK * LANES, grid (outputs / OUTPUTS_OF_A_BLOCK rounded up, batch);
 * the second part of a grid is 65,535 at most. */
static __global__ void layer(const float *w, const float *x, const float *b, float *y, int inputs,
                             int outputs) {
    int output = blockIdx.x * OUTPUTS_OF_A_BLOCK + threadIdx.x / LANES;
    size_t item = blockIdx.y;
    if (output >= outputs) return; /* the same for all threads of a warp */
    float sum = dot_of_warp(w + (size_t)output * inputs, x + item * inputs, inputs);
    if (threadIdx.x % LANES == 0) y[item * outputs + output] = layer_sigmoid(sum + b[output]);
}

#ifndef PVG_LESSON_KERNELS /* pyvecgpu's library includes the kernel above, without what follows */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The three kernels of the book. The product is launched as layer() is, the others with a thread
 * per element of y. */
static __global__ void product(const float *w, const float *x, float *y, int inputs, int outputs) {
    int output = blockIdx.x * OUTPUTS_OF_A_BLOCK + threadIdx.x / LANES;
    size_t item = blockIdx.y;
    if (output >= outputs) return;
    float sum = dot_of_warp(w + (size_t)output * inputs, x + item * inputs, inputs);
    if (threadIdx.x % LANES == 0) y[item * outputs + output] = sum;
}

static __global__ void add_bias(float *y, const float *b, int count, int outputs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] += b[i % outputs];
}

static __global__ void apply_sigmoid(float *y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = layer_sigmoid(y[i]);
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { REPEATS = 10, THREADS = 256 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* The C loops: product, bias and sigmoid of one element at a time, fused as well. */
static void layer_on_host(const float *w, const float *x, const float *b, float *y, int batch,
                          int inputs, int outputs) {
    for (int item = 0; item < batch; item++) {
        for (int o = 0; o < outputs; o++) {
            float sum = b[o];
            for (int i = 0; i < inputs; i++) {
                sum += w[(size_t)o * inputs + i] * x[(size_t)item * inputs + i];
            }
            y[(size_t)item * outputs + o] = 1 / (1 + expf(-sum));
        }
    }
}

static void launch_fused(const float *w, const float *x, const float *b, float *y, int batch,
                         int inputs, int outputs) {
    dim3 grid((outputs + OUTPUTS_OF_A_BLOCK - 1) / OUTPUTS_OF_A_BLOCK, batch);
    layer<<<grid, OUTPUTS_OF_A_BLOCK * LANES>>>(w, x, b, y, inputs, outputs);
    CHECK(cudaGetLastError());
}

static void launch_three(const float *w, const float *x, const float *b, float *y, int batch,
                         int inputs, int outputs) {
    dim3 grid((outputs + OUTPUTS_OF_A_BLOCK - 1) / OUTPUTS_OF_A_BLOCK, batch);
    int count = batch * outputs, blocks = (count + THREADS - 1) / THREADS;
    product<<<grid, OUTPUTS_OF_A_BLOCK * LANES>>>(w, x, y, inputs, outputs);
    CHECK(cudaGetLastError());
    add_bias<<<blocks, THREADS>>>(y, b, count, outputs);
    CHECK(cudaGetLastError());
    apply_sigmoid<<<blocks, THREADS>>>(y, count);
    CHECK(cudaGetLastError());
}

typedef void Launch(const float *w, const float *x, const float *b, float *y, int batch, int inputs,
                    int outputs);

/* Runs one of the two, puts its mean time into *us and returns how many elements are wrong. */
static int try_launch(Launch *launch, const float *d_w, const float *d_x, const float *d_b,
                      float *d_y, const float *h_expected, int batch, int inputs, int outputs,
                      double *us) {
    int count = batch * outputs, wrong = 0;
    float *h_y = (float *)malloc(count * sizeof(float));
    if (!h_y) exit(1);
    CHECK(cudaMemset(d_y, 0xFF, count * sizeof(float))); /* NaN: what is left out is found */
    launch(d_w, d_x, d_b, d_y, batch, inputs, outputs);
    CHECK(cudaMemcpy(h_y, d_y, count * sizeof(float), cudaMemcpyDeviceToHost));
    /* The warp adds in another order than the C loop, so the last decimals differ. */
    for (int i = 0; i < count; i++) wrong += !(fabsf(h_y[i] - h_expected[i]) <= 3e-5f);
    double start = now_us();
    for (int i = 0; i < REPEATS; i++) launch(d_w, d_x, d_b, d_y, batch, inputs, outputs);
    CHECK(cudaDeviceSynchronize());
    *us = (now_us() - start) / REPEATS;
    free(h_y);
    return wrong;
}

static void fill(float *x, size_t count, unsigned state, float largest) {
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) / (1 << 23) - 1) * largest;
    }
}

/* Host memory with random numbers up to `largest`, and a copy of it on the device. */
static float *new_array(size_t count, unsigned seed, float largest, float **d_copy) {
    float *x = (float *)malloc(count * sizeof(float));
    if (!x) exit(1);
    fill(x, count, seed, largest);
    CHECK(cudaMalloc(d_copy, count * sizeof(float)));
    CHECK(cudaMemcpy(*d_copy, x, count * sizeof(float), cudaMemcpyHostToDevice));
    return x;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    bool large = device.multiProcessorCount > 4;
    int inputs = large ? 789 : 101, outputs = large ? 1021 : 59, batch = large ? 500 : 20;
    printf("device: %s; a layer with %d inputs and %d outputs\n", device.name, inputs, outputs);

    float *d_w, *d_x, *d_b, *d_y;
    float *h_w = new_array((size_t)outputs * inputs, 1, 0.2f, &d_w);
    float *h_x = new_array((size_t)batch * inputs, 2, 1, &d_x);
    float *h_b = new_array(outputs, 3, 1, &d_b);
    float *h_expected = (float *)malloc((size_t)batch * outputs * sizeof(float));
    if (!h_expected) return 1;
    CHECK(cudaMalloc(&d_y, (size_t)batch * outputs * sizeof(float)));

    int wrong = 0, batches[] = {1, batch};
    double gain[2];
    for (int i = 0; i < 2; i++) {
        double start = now_us(), fused_us, three_us;
        layer_on_host(h_w, h_x, h_b, h_expected, batches[i], inputs, outputs);
        double loop_us = now_us() - start;
        int fused_wrong = try_launch(launch_fused, d_w, d_x, d_b, d_y, h_expected, batches[i],
                                     inputs, outputs, &fused_us);
        int three_wrong = try_launch(launch_three, d_w, d_x, d_b, d_y, h_expected, batches[i],
                                     inputs, outputs, &three_us);
        printf("batch of %d: C loop %.1f us, three kernels %.1f us, fused %.1f us; wrong: %d, %d\n",
               batches[i], loop_us, three_us, fused_us, three_wrong, fused_wrong);
        gain[i] = three_us / fused_us;
        wrong += fused_wrong + three_wrong;
    }
    printf("measured: one kernel is %.2f times as fast as three for one item, %.2f times for %d\n",
           gain[0], gain[1], batch);

    CHECK(cudaFree(d_w));
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_y));
    free(h_w);
    free(h_x);
    free(h_b);
    free(h_expected);
    return wrong ? 1 : 0;
}

/* Exercises (solutions/15_layer.cu):
 *
 * 1. For a batch this kernel fetches W anew for every item: it is a matrix product without tiles.
 *    Write the layer on top of lesson 11's matmul_tiled, Y = sigmoid(X W^T + b), fused.
 * 2. Put two layers one after the other in ONE kernel, for a single item in a single block: the
 *    numbers between the layers never leave shared memory. What forbids this for large layers? */

#endif
