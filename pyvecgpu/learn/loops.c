/* The lessons' work as plain C loops on one core, which the kernels are compared with.
 *
 * loops.py compiles this when it is needed, with -O3 -march=native. Arrays are in C order. */
#include <math.h>
#include <stdint.h>

void add(int64_t n, const float *restrict a, const float *restrict b, float *restrict c) {
    for (int64_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}

void sigmoid(int64_t n, const float *restrict x, float *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] = 1 / (1 + expf(-x[i]));
}

/* c = a b, of m x k and k x n. The inner loop walks along rows of b and c, not down columns. */
void multiply(int64_t m, int64_t n, int64_t k, const float *restrict a, const float *restrict b,
              float *restrict c) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) c[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
}

/* y = sigmoid(x W^T + b): a row of y for each row of x, an element for each row of W. */
void layer(int64_t batch, int64_t outputs, int64_t inputs, const float *restrict W,
           const float *restrict x, const float *restrict b, float *restrict y) {
    for (int64_t item = 0; item < batch; item++) {
        for (int64_t o = 0; o < outputs; o++) {
            float sum = b[o];
            for (int64_t i = 0; i < inputs; i++) sum += W[o * inputs + i] * x[item * inputs + i];
            y[item * outputs + o] = 1 / (1 + expf(-sum));
        }
    }
}
