/* The kernels of test_plants.cu: each as it should be, and with its BUG. */
#pragma once

namespace {

const int N = 1000; /* floats in the arrays below: 4000 bytes, not a whole number of pages */

/* ---- Accesses out of bounds ---- */

template <bool BUG> __global__ void past_end_kernel(float *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (BUG ? i <= N : i < N) out[i] = 1;
}

template <bool BUG> __global__ void in_front_kernel(float *out) {
    if (threadIdx.x < 2) out[(int)threadIdx.x - (BUG ? 1 : 0)] = 1;
}

template <bool BUG> __global__ void read_beyond_kernel(const float *in, float *out) {
    out[threadIdx.x] = in[threadIdx.x + (BUG && threadIdx.x == 3 ? 1024 : 0)]; /* of 1024 */
}

template <bool BUG> __global__ void far_kernel(float *out) {
    if (threadIdx.x == 3) out[BUG ? (size_t)1 << 36 : 0] = 1;
}

template <bool BUG> __global__ void null_kernel(float *out, const float *optional) {
    out[threadIdx.x] = BUG ? optional[threadIdx.x] : 1;
}

template <bool BUG> __global__ void shared_index_kernel(float *out) {
    __shared__ float s[64];
    s[BUG && threadIdx.x == 63 ? 64 : threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

__device__ float element(const float *s, unsigned i) { return s[i]; }

template <bool BUG> __global__ void shared_pointer_kernel(float *out) {
    __shared__ float s[64];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = element(s, threadIdx.x + (BUG && threadIdx.x == 63));
}

__global__ void dynamic_shared_kernel(float *out) {
    PVG_DYNAMIC_SHARED(float, s);
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}

template <bool BUG> __global__ void misaligned_kernel(float *out) {
    float4 *four = reinterpret_cast<float4 *>(out + (BUG ? 1 : 0));
    four[threadIdx.x] = make_float4(1, 1, 1, 1);
}

template <bool BUG> __global__ void int32_kernel(char *out, int columns) {
    out[BUG ? (int)threadIdx.x * columns : (size_t)threadIdx.x * (size_t)columns] = 1;
}

template <bool BUG> __global__ void uint32_kernel(char *out, unsigned columns) {
    out[BUG ? threadIdx.x * columns : (size_t)threadIdx.x * columns] = 1;
}

/* ---- Reads before writes ---- */

template <bool BUG> __global__ void unwritten_kernel(float *out) {
    if (!BUG || threadIdx.x != 7) out[threadIdx.x] = 1;
}

template <bool BUG> __global__ void unwritten_shared_kernel(float *out) {
    __shared__ float s[64];
    if (!BUG || threadIdx.x != 7) s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

template <bool BUG> __global__ void missing_syncwarp_kernel(int *out) {
    __shared__ int s[32];
    s[threadIdx.x] = 1;
    if (!BUG) __syncwarp();
    out[threadIdx.x] = s[31 - threadIdx.x];
}

/* ---- Barriers and races ---- */

template <bool BUG> __global__ void tree_kernel(float *out) {
    __shared__ float s[256];
    s[threadIdx.x] = 1;
    __syncthreads();
    for (unsigned half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        if (!BUG) __syncthreads();
    }
    if (threadIdx.x == 0) out[0] = s[0] / 256;
}

template <bool BUG> __global__ void tile_kernel(float *out) { /* a second barrier is missing */
    __shared__ float tile[64];
    float sum = 0;
    for (int step = 1; step <= 4; step++) {
        tile[threadIdx.x] = (float)step;
        __syncthreads();
        sum += tile[63 - threadIdx.x];
        if (!BUG) __syncthreads();
    }
    out[threadIdx.x] = sum / 10;
}

template <bool BUG> __global__ void overwrite_kernel(int *out) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 1;
    __syncthreads();
    out[threadIdx.x] = s;
    if (!BUG) __syncthreads();
    if (threadIdx.x == 0) s = 2;
}

template <bool BUG> __global__ void race_kernel(int *out) {
    if (BUG || blockIdx.x == 0) out[0] = 1 + (int)blockIdx.x;
}

template <bool BUG> __global__ void partial_barrier_kernel(float *out) {
    if (!BUG || threadIdx.x < 40) __syncthreads();
    out[threadIdx.x] = 1;
}

template <bool BUG> __global__ void two_barriers_kernel(float *out) {
    if (BUG && threadIdx.x < 40) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}

template <bool BUG> __global__ void deadlock_kernel(float *out) {
    if (BUG && threadIdx.x == 0) {
        __syncwarp();
    } else {
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}

template <bool BUG> __global__ void lane_mask_kernel(float *out) {
    unsigned mask = BUG ? 0x0000ffffu : 0xffffffffu;
    out[threadIdx.x] = __shfl_sync(mask, 1.0f, 0);
}

template <bool BUG> __global__ void absent_lane_kernel(float *out) { /* of a warp of 20 */
    out[threadIdx.x] = __shfl_down_sync(0x000fffffu, 1.0f, BUG ? 16 : 0);
}

template <bool BUG> __global__ void masks_kernel(float *out) {
    unsigned mask = BUG && threadIdx.x < 16 ? 0x0001ffffu : 0xffffffffu;
    out[threadIdx.x] = __shfl_xor_sync(mask, 1.0f, 1);
}

template <bool BUG> __global__ void two_shuffles_kernel(float *out) {
    if (BUG && threadIdx.x < 16) {
        out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 0);
    } else {
        out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 16 * !BUG);
    }
}

/* ---- Between blocks ---- */

template <bool BUG> __global__ void update_kernel(int *out) {
    if (BUG) {
        out[1] += 1;
    } else {
        atomicAdd(&out[1], 1);
    }
    if (blockIdx.x == 0) out[0] = 1;
}

/* The last block to come adds up what all have written. */
template <bool BUG> __global__ void last_block_kernel(int *out, int *parts, unsigned *arrived) {
    __shared__ bool last;
    if (threadIdx.x == 5) parts[blockIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (!BUG) __threadfence();
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x != 7) return;
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; i++) sum += parts[i];
    out[0] = sum / (int)gridDim.x;
    *arrived = 0;
}

/* The second block reads what the first one has written and told by a flag. */
template <bool BUG> __global__ void flag_kernel(int *out, int *data, volatile int *flag) {
    if (blockIdx.x == 0) {
        *data = 1;
        if (!BUG) __threadfence();
        *flag = 1;
    } else if (*flag) {
        out[0] = *data;
    }
}

/* The first block waits for the second one. */
template <bool BUG> __global__ void spin_kernel(int *out, volatile int *flag) {
    if (BUG && blockIdx.x == 0) {
        while (!*flag) continue;
    }
    if (blockIdx.x == 1) *flag = 1;
    if (blockIdx.x == 0) out[0] = 1;
}

/* ---- Others ---- */

template <bool BUG> __global__ void maximum_kernel(int *out) {
    __shared__ int s[64];
    if (!BUG || threadIdx.x != 7) s[threadIdx.x] = 1;
    __syncthreads();
    int most = 0;
    for (int value : s) most = value > most ? value : most;
    out[threadIdx.x] = most;
}

/* A list in the order of arrival; the first entry is always there. */
__global__ void arrival_kernel(int *out) {
    __shared__ int next;
    if (threadIdx.x == 0) next = 0;
    __syncthreads();
    out[1 + atomicAdd(&next, 1)] = (int)threadIdx.x;
    if (threadIdx.x == 0) out[0] = 1;
}

struct Pair {
    int *to;
    const int *from;
};

__global__ void struct_kernel(Pair pair) { pair.to[threadIdx.x] = pair.from[threadIdx.x]; }

__global__ void __launch_bounds__(64, 2) bounded_kernel(float *out) { out[threadIdx.x] = 1; }

template <bool BUG> __global__ void trap_kernel(float *out) {
    out[threadIdx.x] = 1;
    if (BUG) __trap();
}

/* Recursion with a frame of 4 KB. */
__device__ __attribute__((noinline)) int depth(const volatile int *above, int n) {
    volatile int frame[1024];
    frame[0] = above[0];
    return n == 0 ? frame[0] : depth(frame, n - 1);
}

template <bool BUG> __global__ void stack_kernel(int *out) {
    out[0] = 1;
    out[0] = depth(out, BUG ? 1000 : 3);
}

template <bool BUG> __global__ void divide_kernel(int *out, int zero) {
    out[0] = 7 / (BUG ? zero : 7);
}

} /* namespace */
