/* Checks for the simulator's own tests, each of which is a program of its own (../README.md).
 *
 * A failed check is told with its place and counted; main() ends with what finish() says. */
#pragma once
#include <cstdio>

inline int checks_failed;

/* 0 when every check passed, 1 when one failed. */
inline int finish(const char *test) {
    printf("simulator, %s: %d checks failed\n", test, checks_failed);
    return checks_failed != 0;
}

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            checks_failed++;                                               \
        }                                                                  \
    } while (0)

/* expected == actual, both told when not. */
#define CHECK_EQUAL(actual, expected)                                                     \
    do {                                                                                  \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);       \
        if (actual_ != expected_) {                                                       \
            printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, actual_, \
                   expected_);                                                            \
            checks_failed++;                                                              \
        }                                                                                 \
    } while (0)

/* Parentheses round a kernel with commas: LAUNCH((scale<float, 4>), 1, 32, 0, x) */
#define LAUNCH(kernel, grid, block, shared, ...) \
    LAUNCH_ON(nullptr, kernel, grid, block, shared, __VA_ARGS__)
#define LAUNCH_ON(stream, kernel, grid, block, shared, ...) \
    pvg_sim::launch(#kernel, __FILE__, __LINE__, kernel, grid, block, shared, stream, __VA_ARGS__)

/* Device memory for `count` values, freed with the object. */
template <class T> struct DeviceArray {
    T *data = nullptr;
    size_t count;
    explicit DeviceArray(size_t n) : count(n) { CHECK_EQUAL(cudaMalloc(&data, n * sizeof(T)), 0); }
    ~DeviceArray() { cudaFree(data); }
    DeviceArray(const DeviceArray &) = delete;
    void write(const T *from) {
        CHECK_EQUAL(cudaMemcpy(data, from, count * sizeof(T), cudaMemcpyHostToDevice), 0);
    }
    void read(T *to) const {
        CHECK_EQUAL(cudaMemcpy(to, data, count * sizeof(T), cudaMemcpyDeviceToHost), 0);
    }
};
