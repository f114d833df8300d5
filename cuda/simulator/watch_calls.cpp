/* The functions that g++ -fsanitize=thread calls, for the access checker (watch.cpp).
 *
 * ThreadSanitizer's own library is not linked, so this is all that there is of them: a look at the
 * access if a kernel makes it, and what an atomic function has to do, for the host's code too. */
#ifdef PVG_SIM_WATCH
#include "watch.h"

using namespace pvg_sim;
using watch::Access;

static void look(const void *address, size_t bytes, Access how, const void *place) {
    Worker *w = worker;
    if (!w || w->current == &w->home) return;
    if (!settings.races && watch::is_easy(address)) return;
    /* The signal that asks comes to this thread: no fence of the processor is needed. */
    w->busy.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    watch::access(*w, address, bytes, how, place);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    w->busy.store(false, std::memory_order_relaxed);
    if (w->overdue) report_overdue(*w, place);
}

#define CALL extern "C" __attribute__((visibility("hidden")))
#define LOOK(bytes, how) look(address, bytes, Access::how, __builtin_return_address(0))

CALL void __tsan_init() {}
CALL void __tsan_func_entry(void *) {}
CALL void __tsan_func_exit() {}

#define ACCESS_OF(bytes)                                                                           \
    CALL void __tsan_read##bytes(void *address) { LOOK(bytes, read); }                             \
    CALL void __tsan_write##bytes(void *address) { LOOK(bytes, write); }                           \
    CALL void __tsan_unaligned_read##bytes(void *address) { LOOK(bytes, read); }                   \
    CALL void __tsan_unaligned_write##bytes(void *address) { LOOK(bytes, write); }                 \
    CALL void __tsan_volatile_read##bytes(void *address) { LOOK(bytes, volatile_read); }           \
    CALL void __tsan_volatile_write##bytes(void *address) { LOOK(bytes, volatile_write); }         \
    CALL void __tsan_unaligned_volatile_read##bytes(void *address) { LOOK(bytes, volatile_read); } \
    CALL void __tsan_unaligned_volatile_write##bytes(void *address) { LOOK(bytes, volatile_write); }
ACCESS_OF(1)
ACCESS_OF(2)
ACCESS_OF(4)
ACCESS_OF(8)
ACCESS_OF(16)

CALL void __tsan_read_range(void *address, size_t bytes) { LOOK(bytes, read); }
CALL void __tsan_write_range(void *address, size_t bytes) { LOOK(bytes, write); }
CALL void __tsan_vptr_update(void **, void *) {}
CALL void __tsan_vptr_read(void **) {}

#define FETCH_OF(T, bits, operation)                                                  \
    CALL T __tsan_atomic##bits##_fetch_##operation(volatile void *at, T value, int) { \
        const void *address = const_cast<const void *>(at);                           \
        LOOK(sizeof(T), atomic);                                                      \
        return __atomic_fetch_##operation((volatile T *)at, value, __ATOMIC_SEQ_CST); \
    }
#define COMPARE_EXCHANGE_OF(T, bits, kind)                                                    \
    CALL int __tsan_atomic##bits##_compare_exchange_##kind(volatile void *at, void *expected, \
                                                           T value, int, int) {               \
        const void *address = const_cast<const void *>(at);                                   \
        LOOK(sizeof(T), atomic);                                                              \
        return __atomic_compare_exchange_n((volatile T *)at, (T *)expected, value, false,     \
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);               \
    }
#define ATOMICS_OF(T, bits)                                                    \
    CALL T __tsan_atomic##bits##_load(const volatile void *at, int) {          \
        const void *address = const_cast<const void *>(at);                    \
        LOOK(sizeof(T), volatile_read);                                        \
        return __atomic_load_n((const volatile T *)at, __ATOMIC_SEQ_CST);      \
    }                                                                          \
    CALL void __tsan_atomic##bits##_store(volatile void *at, T value, int) {   \
        const void *address = const_cast<const void *>(at);                    \
        LOOK(sizeof(T), volatile_write);                                       \
        __atomic_store_n((volatile T *)at, value, __ATOMIC_SEQ_CST);           \
    }                                                                          \
    CALL T __tsan_atomic##bits##_exchange(volatile void *at, T value, int) {   \
        const void *address = const_cast<const void *>(at);                    \
        LOOK(sizeof(T), atomic);                                               \
        return __atomic_exchange_n((volatile T *)at, value, __ATOMIC_SEQ_CST); \
    }                                                                          \
    FETCH_OF(T, bits, add)                                                     \
    FETCH_OF(T, bits, sub)                                                     \
    FETCH_OF(T, bits, and)                                                     \
    FETCH_OF(T, bits, or)                                                      \
    FETCH_OF(T, bits, xor)                                                     \
    COMPARE_EXCHANGE_OF(T, bits, strong)                                       \
    COMPARE_EXCHANGE_OF(T, bits, weak)
ATOMICS_OF(uint8_t, 8)
ATOMICS_OF(uint16_t, 16)
ATOMICS_OF(uint32_t, 32)
ATOMICS_OF(uint64_t, 64)

CALL void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
CALL void __tsan_atomic_signal_fence(int) {}

#elif defined(PVG_SIM_TSAN)

/* ThreadSanitizer proper does not tell volatile accesses from others, and has no functions for
 * them. */
#define VOLATILE_ACCESS_OF(bytes)                                                         \
    extern "C" void __tsan_read##bytes##_pc(void *address, void *place);                  \
    extern "C" void __tsan_write##bytes##_pc(void *address, void *place);                 \
    extern "C" [[gnu::visibility("hidden")]] void __tsan_volatile_read##bytes(void *a) {  \
        __tsan_read##bytes##_pc(a, __builtin_return_address(0));                          \
    }                                                                                     \
    extern "C" [[gnu::visibility("hidden")]] void __tsan_volatile_write##bytes(void *a) { \
        __tsan_write##bytes##_pc(a, __builtin_return_address(0));                         \
    }
VOLATILE_ACCESS_OF(1)
VOLATILE_ACCESS_OF(2)
VOLATILE_ACCESS_OF(4)
VOLATILE_ACCESS_OF(8)

#endif
