/* What a GPU is compared with: plain C loops, on one core and, with OpenMP, on all of them.
 *
 * loops.py compiles this with -O3 -march=native, so the compiler makes vector instructions of the
 * inner loops. The product runs in the order i, k, j: its inner loop walks along rows of B and C,
 * which is many times as fast as i, j, k with its steps down the columns of B. Arrays are in C
 * order. Each function does its work `calls` times, so that the way from Python is not timed. */
#include <math.h>
#include <stdint.h>

/* Here the compiler has to take memory for read and changed, so it leaves no call out. */
#define END_OF_CALL() __asm__ volatile("" ::: "memory")

void add(int64_t n, const float *restrict a, const float *restrict b, float *restrict c,
         int64_t calls) {
    for (int64_t call = 0; call < calls; call++) {
        for (int64_t i = 0; i < n; i++) c[i] = a[i] + b[i];
        END_OF_CALL();
    }
}

void add_on_all_cores(int64_t n, const float *restrict a, const float *restrict b,
                      float *restrict c, int64_t calls, int threads) {
    for (int64_t call = 0; call < calls; call++) {
#pragma omp parallel for num_threads(threads)
        for (int64_t i = 0; i < n; i++) c[i] = a[i] + b[i];
        END_OF_CALL();
    }
}

void sigmoid(int64_t n, const float *restrict x, float *restrict y, int64_t calls) {
    for (int64_t call = 0; call < calls; call++) {
        for (int64_t i = 0; i < n; i++) y[i] = 1 / (1 + expf(-x[i]));
        END_OF_CALL();
    }
}

/* One row of C = A B, for B of k x n. */
static void multiply_row(int64_t n, int64_t k, const float *restrict a, const float *restrict B,
                         float *restrict c) {
    for (int64_t j = 0; j < n; j++) c[j] = 0;
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++) c[j] += a[p] * B[p * n + j];
}

/* C = A B, of m x k and k x n. */
void multiply(int64_t m, int64_t n, int64_t k, const float *A, const float *B, float *C,
              int64_t calls) {
    for (int64_t call = 0; call < calls; call++) {
        for (int64_t i = 0; i < m; i++) multiply_row(n, k, A + i * k, B, C + i * n);
        END_OF_CALL();
    }
}

void multiply_on_all_cores(int64_t m, int64_t n, int64_t k, const float *A, const float *B,
                           float *C, int64_t calls, int threads) {
    for (int64_t call = 0; call < calls; call++) {
#pragma omp parallel for num_threads(threads)
        for (int64_t i = 0; i < m; i++) multiply_row(n, k, A + i * k, B, C + i * n);
        END_OF_CALL();
    }
}

/* y = sigmoid(x W^T + b): a row of y for each row of x, an element for each row of W. */
void layer(int64_t batch, int64_t outputs, int64_t inputs, const float *restrict W,
           const float *restrict x, const float *restrict b, float *restrict y, int64_t calls) {
    for (int64_t call = 0; call < calls; call++) {
        for (int64_t item = 0; item < batch; item++) {
            for (int64_t o = 0; o < outputs; o++) {
                float sum = b[o];
                for (int64_t i = 0; i < inputs; i++)
                    sum += W[o * inputs + i] * x[item * inputs + i];
                y[item * outputs + o] = 1 / (1 + expf(-sum));
            }
        }
        END_OF_CALL();
    }
}

/* Ceilings: memory bandwidth, and multiply-adds without any memory. */

/* Written by the threads that use it later, so that each finds its part in memory near by. */
void fill(int64_t n, double *a, double value, int threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < n; i++) a[i] = value;
}

/* The triad of the STREAM benchmark: 24 bytes an element. */
void triad(int64_t n, double *restrict a, const double *restrict b, const double *restrict c,
           double scalar, int threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < n; i++) a[i] = b[i] + scalar * c[i];
}

#if defined __AVX512F__
enum { VECTOR_BYTES = 64 };
#elif defined __AVX__
enum { VECTOR_BYTES = 32 };
#else
enum { VECTOR_BYTES = 16 };
#endif
typedef float vector __attribute__((vector_size(VECTOR_BYTES)));
enum { LANES = VECTOR_BYTES / sizeof(float), CHAINS = 10 }; /* enough to hide the latency */

/* Operations of a step on one core: a multiplication and an addition in each lane of each chain. */
int64_t multiply_add_work(void) { return 2 * LANES * CHAINS; }

/* Returns the mean of x after `steps` steps x = x / 2 + 1, which has to be 2. */
double multiply_add(int64_t steps, int threads) {
    double sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (int thread = 0; thread < threads; thread++) {
        vector x[CHAINS];
        for (int chain = 0; chain < CHAINS; chain++)
            for (int lane = 0; lane < LANES; lane++) x[chain][lane] = (float)(chain * LANES + lane);
        for (int64_t step = 0; step < steps; step++)
            for (int chain = 0; chain < CHAINS; chain++) x[chain] = x[chain] * 0.5f + 1.0f;
        for (int chain = 0; chain < CHAINS; chain++)
            for (int lane = 0; lane < LANES; lane++) sum += x[chain][lane];
    }
    return sum / ((double)threads * CHAINS * LANES);
}
