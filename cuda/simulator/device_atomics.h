/* CUDA's atomic functions: a compare-and-swap loop on the bits of the value.
 *
 * Blocks may run on several OS threads, so these are real atomics. Each function exists for the
 * types that CUDA has it for and no others, so that what compiles here compiles with nvcc. */
#pragma once

template <size_t BYTES> struct pvg_sim_word;
template <> struct pvg_sim_word<2> { using type = uint16_t; };
template <> struct pvg_sim_word<4> { using type = uint32_t; };
template <> struct pvg_sim_word<8> { using type = uint64_t; };

/* *address = update(*address); returns the value before. */
template <class T, class F> T pvg_sim_atomic(T *address, F update) {
    using Word = typename pvg_sim_word<sizeof(T)>::type;
    Word *word = reinterpret_cast<Word *>(address);
    Word seen = __atomic_load_n(word, __ATOMIC_RELAXED), next;
    T before, after;
    do {
        memcpy(static_cast<void *>(&before), &seen, sizeof before);
        after = update(before);
        memcpy(&next, static_cast<const void *>(&after), sizeof next);
    } while (
        !__atomic_compare_exchange_n(word, &seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return before;
}

#define PVG_SIM_ATOMIC(T, name, expression)                                         \
    inline T name(T *address, T value) {                                            \
        return pvg_sim_atomic(address, [value](T old) -> T { return expression; }); \
    }                                                                               \
    inline T name##_block(T *address, T value) { return name(address, value); }     \
    inline T name##_system(T *address, T value) { return name(address, value); }

#define PVG_SIM_ATOMIC_INTEGER(T)                           \
    PVG_SIM_ATOMIC(T, atomicExch, ((void)old, value))       \
    PVG_SIM_ATOMIC(T, atomicMin, value < old ? value : old) \
    PVG_SIM_ATOMIC(T, atomicMax, old < value ? value : old) \
    PVG_SIM_ATOMIC(T, atomicAnd, old &value)                \
    PVG_SIM_ATOMIC(T, atomicOr, old | value)                \
    PVG_SIM_ATOMIC(T, atomicXor, old ^ value)

PVG_SIM_ATOMIC_INTEGER(int)
PVG_SIM_ATOMIC_INTEGER(unsigned)
PVG_SIM_ATOMIC_INTEGER(unsigned long long)
PVG_SIM_ATOMIC(long long, atomicMin, value < old ? value : old)
PVG_SIM_ATOMIC(long long, atomicMax, old < value ? value : old)
PVG_SIM_ATOMIC(float, atomicExch, ((void)old, value))
PVG_SIM_ATOMIC(int, atomicAdd, (int)((unsigned)old + (unsigned)value))
PVG_SIM_ATOMIC(unsigned, atomicAdd, old + value)
PVG_SIM_ATOMIC(unsigned long long, atomicAdd, old + value)
PVG_SIM_ATOMIC(float, atomicAdd, old + value)
PVG_SIM_ATOMIC(double, atomicAdd, old + value)
PVG_SIM_ATOMIC(int, atomicSub, (int)((unsigned)old - (unsigned)value))
PVG_SIM_ATOMIC(unsigned, atomicSub, old - value)
PVG_SIM_ATOMIC(unsigned, atomicInc, old >= value ? 0 : old + 1)
PVG_SIM_ATOMIC(unsigned, atomicDec, old == 0 || old > value ? value : old - 1)
#undef PVG_SIM_ATOMIC_INTEGER
#undef PVG_SIM_ATOMIC

#define PVG_SIM_ATOMIC_CAS(T)                                                                     \
    inline T atomicCAS(T *address, T compare, T value) {                                          \
        return pvg_sim_atomic(address, [=](T old) -> T { return old == compare ? value : old; }); \
    }                                                                                             \
    inline T atomicCAS_block(T *address, T compare, T value) {                                    \
        return atomicCAS(address, compare, value);                                                \
    }                                                                                             \
    inline T atomicCAS_system(T *address, T compare, T value) {                                   \
        return atomicCAS(address, compare, value);                                                \
    }

PVG_SIM_ATOMIC_CAS(int)
PVG_SIM_ATOMIC_CAS(unsigned)
PVG_SIM_ATOMIC_CAS(unsigned long long)
PVG_SIM_ATOMIC_CAS(unsigned short)
#undef PVG_SIM_ATOMIC_CAS
