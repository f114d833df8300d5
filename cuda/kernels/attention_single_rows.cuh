// Rows of attention of float32 that tensor cores cannot give, one after another, in float32.
//
// An infinity, and a number that rounds to one of 11 bits, have no two parts, as
// attention_single.cuh says, so that all that comes of them is NaN. The kernels look for NaN in
// what they have summed, and a warp computes such a row again, term by term. Where NaN came of NaN
// in the row itself it stays.
#pragma once
#include "kernels/attention_single.cuh"

namespace pvg::attention {

namespace {

constexpr unsigned whole_warp = 0xffffffffu;

// The rows among a warp's 16 R that have NaN in their sums, as bits.
template <int DEPTH, int R>
__device__ __forceinline__ unsigned rows_of_nan(const Sums<R, DEPTH> &sums) {
    unsigned rows = 0;
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            bool found = false;
#pragma unroll
            for (int j = 0; j < DEPTH / 8; j++)
#pragma unroll
                for (int i = half * 2; i < half * 2 + 2; i++)
                    found = found || sums[r][j][i] != sums[r][j][i];
            const unsigned lanes = __ballot_sync(whole_warp, found);
#pragma unroll
            for (int row = 0; row < 8; row++)
                if (lanes >> row * 4 & 15) rows |= 1u << (r * 16 + half * 8 + row);
        }
    return rows;
}

__device__ __forceinline__ const float *row_of(const Rows &rows, int64_t row) {
    return static_cast<const float *>(rows.data) + row * rows.row;
}
__device__ __forceinline__ bool has_nan(const Rows &rows, int64_t row) {
    const float *from = row_of(rows, row);
    bool found = false;
    for (int column = static_cast<int>(threadIdx.x) % 32; column < rows.features; column += 32)
        found = found || from[column * rows.column] != from[column * rows.column];
    return __any_sync(whole_warp, found);
}

// The product of two rows; of none where one is not there.
__device__ __forceinline__ float product(const Rows &a, int64_t i, const Rows &b, int64_t j) {
    if (i >= a.length || j >= b.length) return 0;
    const float *x = row_of(a, i), *y = row_of(b, j);
    float sum = 0;
#pragma unroll 1
    for (int column = 0; column < a.features; column++)
        sum = fmaf(x[column * a.column], y[column * b.column], sum);
    return sum;
}

// A lane's features of a row: every 32nd from its own on.
struct RowSums {
    float sums[most_tensor_features / 32] = {};

    // Adds `count` rows from `first` on, the weights of which the lanes have.
    __device__ __forceinline__ void add(float weight, const Rows &rows, int64_t first, int count) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        RowSums part;
#pragma unroll 1
        for (int j = 0; j < count; j++) {
            const float one = __shfl_sync(whole_warp, weight, j);
            const float *from = row_of(rows, first + j);
#pragma unroll
            for (int e = 0; e < most_tensor_features / 32; e++)
                if (lane + e * 32 < rows.features)
                    part.sums[e] = fmaf(one, from[(lane + e * 32) * rows.column], part.sums[e]);
        }
#pragma unroll
        for (int e = 0; e < most_tensor_features / 32; e++) sums[e] += part.sums[e];
    }
    __device__ __forceinline__ void store(void *matrix, int64_t row, int features, float factor) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        float *to = static_cast<float *>(matrix) + row * features;
#pragma unroll
        for (int e = 0; e < most_tensor_features / 32; e++)
            if (lane + e * 32 < features) to[lane + e * 32] = sums[e] * factor;
    }
};

// How many of 32 rows from `first` on are before the end.
__device__ __forceinline__ int up_to_32(int64_t end, int64_t first) {
    return end - first < 32 ? static_cast<int>(end - first) : 32;
}

// ---- The rows -----------------------------------------------------------------------------------

// A row of the result, and its logsum.
__device__ __forceinline__ void attend_again(const Job &job, const Item<float> &item, int64_t row) {
    if (has_nan(item.query, row)) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t length = job.query.length;
    const int64_t end = job.causal && row + 1 < job.keys.length ? row + 1 : job.keys.length;
    const auto score_of = [&](int64_t key) {
        float value = product(item.query, row, item.keys, key);
        score(job, item.mask, row, key, false, value);
        return value;
    };
    float most = -INFINITY, total = 0;
#pragma unroll 1
    for (int64_t key = 0; key < end; key += 32) {
        const float value = score_of(key + lane);
        most = value > most || value != value ? value : most;
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
        const float other = __shfl_xor_sync(whole_warp, most, mask);
        most = other > most || other != other ? other : most; // NaN stays
    }
    const float base = most == -INFINITY ? 0.0f : most;
    RowSums sums;
#pragma unroll 1
    for (int64_t key = 0; key < end; key += 32) {
        const float weight = exp(score_of(key + lane) - base);
        total += weight;
        sums.add(weight, item.values, key, up_to_32(end, key));
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) total += __shfl_xor_sync(whole_warp, total, mask);
    const int width = job.values.features;
    sums.store(static_cast<float *>(job.to) + item.number * length * width, row, width, 1 / total);
    if (job.more && lane == 0)
        static_cast<float *>(job.more)[item.number * length + row] = most + logf(total);
}

// The weight of a query and a key, and the gradient of their score; zeros where one is not there.
__device__ __forceinline__ float2 weigh_again(const Job &job, const Item<float> &item,
                                              int64_t query, int64_t key) {
    if (query >= job.query.length || key >= job.keys.length) return make_float2(0, 0);
    const int64_t at = item.number * job.query.length + query;
    float value = product(item.query, query, item.keys, key);
    const bool kept = score(job, item.mask, query, key, false, value);
    const float weight = exp(value - static_cast<const float *>(job.logsum)[at]);
    const float slope = product(item.gradient, query, item.values, key) -
                        static_cast<const float *>(job.products)[at];
    return make_float2(weight, kept ? weight * slope : 0.0f);
}

// A row of the query's gradient.
__device__ __forceinline__ void slope_again(const Job &job, const Item<float> &item, int64_t row) {
    if (has_nan(item.query, row) || has_nan(item.gradient, row)) return;
    const int lane = static_cast<int>(threadIdx.x) % 32, features = job.query.features;
    const int64_t end = job.causal && row + 1 < job.keys.length ? row + 1 : job.keys.length;
    RowSums sums;
#pragma unroll 1
    for (int64_t key = 0; key < end; key += 32)
        sums.add(weigh_again(job, item, row, key + lane).y, item.keys, key, up_to_32(end, key));
    sums.store(static_cast<float *>(job.to) + item.number * job.query.length * features, row,
               features, static_cast<float>(job.scale));
}

// A row of the gradients of keys and values.
__device__ __forceinline__ void key_again(const Job &job, const Item<float> &item, int64_t row) {
    if (has_nan(item.keys, row) || has_nan(item.values, row)) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int features = job.query.features, width = job.values.features;
    const int64_t length = job.query.length, size = job.keys.length;
    RowSums dkey, dvalue;
#pragma unroll 1
    for (int64_t query = job.causal ? row : 0; query < length; query += 32) {
        const float2 terms = weigh_again(job, item, query + lane, row);
        const int count = up_to_32(length, query);
        dvalue.add(terms.x, item.gradient, query, count);
        dkey.add(terms.y, item.query, query, count);
    }
    dkey.store(static_cast<float *>(job.to) + item.number * size * features, row, features,
               static_cast<float>(job.scale));
    dvalue.store(static_cast<float *>(job.more) + item.number * size * width, row, width, 1);
}

// f(row) for the rows of a matrix that are in the bits of a warp's, which begin at `first`.
template <class F>
__device__ __forceinline__ void for_rows(unsigned bits, int64_t first, int64_t length, const F &f) {
    __syncwarp(); // all have written what is written again
#pragma unroll 1
    for (; bits; bits &= bits - 1) {
        const int64_t row = first + __ffs(static_cast<int>(bits)) - 1;
        if (row < length) f(row);
    }
}

} // namespace
} // namespace pvg::attention
