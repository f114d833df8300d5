// pvg_random: numbers that depend on nothing but a key, a counter and their place in C order.
//
// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC11) makes four words of 32 bits from a counter of
// 128 bits and a key of 64. Element i takes one word (dtypes of up to 4 bytes) or two (8 bytes) of
// the block counter + i / 4 or counter + i / 2. A thread has 16 bytes of the result and so whole
// blocks, which is also what a pair of normal numbers needs.
#include "arrays/call.cuh"
#include "arrays/operation.cuh"
#include "arrays/vector.cuh"
#include "kernels/pairs.cuh"
#include "kernels/philox.cuh"
#include "runtime/device.cuh"

namespace pvg {

namespace {

constexpr int random_threads = 256;

struct RandomJob {
    void *to;
    int64_t size;
    uint64_t key, stream, counter;
    bool aligned;
};

// ---- From bits to numbers -----------------------------------------------------------------------

// Computations are done in Real, from as many bits as it has: float or double.
template <class Real>
using RandomBits = std::conditional_t<sizeof(Real) == 8, uint64_t, uint32_t>;

// 1 in the last place of a fraction of so many bits.
__device__ __forceinline__ float last_bit(uint32_t) { return 0x1p-32f; }
__device__ __forceinline__ double last_bit(uint64_t) { return 0x1p-64; }

// -log of (bits + 1/2) / 2^n, which is never 0. Above 1/2 from the distance to 1, which has the
// digits that the number itself has lost.
template <class Real> __device__ __forceinline__ Real minus_log(RandomBits<Real> bits) {
    const RandomBits<Real> top = RandomBits<Real>(1) << (8 * sizeof bits - 1);
    const bool above = bits >= top;
    const Real unit = last_bit(bits), half = unit / 2;
    const Real x = Real(above ? RandomBits<Real>(~bits) : bits) * unit + half;
    return above ? -log1p(-x) : -log(x);
}

// The same in float, within 2 units in the last place, by one series for both halves, of which
// otherwise every warp would compute both. m is within a third of 1, and m - 1 exact: of a number
// above 1/2 by its distance to 1.
template <> __device__ __forceinline__ float minus_log<float>(uint32_t bits) {
    const bool above = bits >= 0x80000000u;
    const float x = fmaf(float(above ? ~bits : bits), 0x1p-32f, 0x1p-33f);
    const float number = above ? 1.0f - x : x;
    const int exponent = (__float_as_int(number) - 0x3f2aaaab) & 0xff800000;
    const float m = __int_as_float(__float_as_int(number) - exponent);
    const float f = !above ? m - 1.0f : exponent ? fmaf(-2.0f, x, 1.0f) : -x, s = f * f;
    float odd = fmaf(0.140869141f, s, 0.139814854f), even = fmaf(-0.130310059f, s, -0.121483512f);
    odd = fmaf(odd, s, 0.200120345f);
    even = fmaf(fmaf(even, s, -0.166846126f), s, -0.249996200f);
    float log = fmaf(fmaf(odd, f, even), f, 0.333331972f);
    log = fmaf(fmaf(log, f, -0.5f), s, f);
    return -fmaf(float(exponent) * 0x1p-23f, 0.693147182f, log);
}

// The same in double, within 2 units: fdlibm's log of m between the roots of 1/2 and 2.
template <> __device__ __forceinline__ double minus_log<double>(uint64_t bits) {
    const bool above = bits >= uint64_t(1) << 63;
    const double x = fma(double(above ? ~bits : bits), 0x1p-64, 0x1p-65);
    const int64_t number = __double_as_longlong(above ? 1.0 - x : x);
    const int64_t exponent = (number - 0x3fe6a09e667f3bcc) & int64_t(0xfff) << 52;
    const double m = __longlong_as_double(number - exponent), turns = double(exponent >> 52);
    const double f = !above ? m - 1.0 : exponent ? fma(-2.0, x, 1.0) : -x, d = 2.0 + f;
    double r = reciprocal_of(static_cast<float>(d));
    r = fma(fma(-d, r, 1.0), r, r);
    double s = f * r; // f / d
    s = fma(fma(-s, d, f), r, s);
    const double z = s * s, w = z * z, half = 0.5 * f * f;
    double odd = fma(w, 1.531383769920937332e-1, 2.222219843214978396e-1);
    double even = fma(w, 1.479819860511658591e-1, 1.818357216161805012e-1);
    odd = fma(w, odd, 3.999999999940941908e-1);
    even = fma(w, fma(w, even, 2.857142874366239149e-1), 6.666666666666735130e-1);
    const double rest = fma(s, half + fma(w, odd, z * even), turns * 1.90821492927058770002e-10);
    return -fma(turns, 6.93147180369123816490e-1, f - (half - rest));
}

// Of at most an eighth of a turn, that is a quarter of pi, within 1 unit in the last place.
__device__ __forceinline__ void sine_and_cosine(float turns, float *sine, float *cosine) {
    const float s = turns * turns;
    float of_cosine = fmaf(0.231384277f, s, -1.33502197f);
    of_cosine = fmaf(fmaf(of_cosine, s, 4.05870390f), s, -4.93480206f);
    const float of_sine = fmaf(fmaf(-0.595703125f, s, 2.55039954f), s, -5.16772413f);
    *cosine = fmaf(of_cosine, s, 1.0f);
    *sine = fmaf(turns, 3.14159274f, turns * s * of_sine);
}
__device__ __forceinline__ void sine_and_cosine(double turns, double *sine, double *cosine) {
    sincospi(turns, sine, cosine);
}

// Box and Muller: a radius and an angle in the plane. The angle's quadrant is taken off in
// integers, so what sine and cosine see is exact and at most an eighth of a turn.
template <class Real>
__device__ __forceinline__ void normal_pair(RandomBits<Real> first, RandomBits<Real> second,
                                            Real *x, Real *y) {
    using Bits = RandomBits<Real>;
    constexpr int bits = 8 * sizeof(Bits);
    const Real radius = sqrt(2 * minus_log<Real>(first));
    const Bits quadrant = Bits(second + (Bits(1) << (bits - 3))) >> (bits - 2);
    const auto rest = static_cast<std::make_signed_t<Bits>>(second - (quadrant << (bits - 2)));
    Real sine, cosine;
    sine_and_cosine(Real(rest) * (2 * last_bit(first)), &sine, &cosine);
    const Real across = quadrant & 1 ? -sine : cosine, along = quadrant & 1 ? cosine : sine;
    *x = radius * (quadrant & 2 ? -across : across);
    *y = radius * (quadrant & 2 ? -along : along);
}

// In [0, 1): as many of the highest bits as the dtype's significand has.
__device__ __forceinline__ void uniform_of(Half *to, uint32_t bits) {
    *to = Half(float(bits >> 21) * 0x1p-11f);
}
__device__ __forceinline__ void uniform_of(BFloat16 *to, uint32_t bits) {
    *to = BFloat16(float(bits >> 24) * 0x1p-8f);
}
__device__ __forceinline__ void uniform_of(float *to, uint32_t bits) {
    *to = float(bits >> 8) * 0x1p-24f;
}
__device__ __forceinline__ void uniform_of(double *to, uint64_t bits) {
    *to = double(bits >> 11) * 0x1p-53;
}

// Elements that a block of four words makes.
template <class T> constexpr int of_a_block = sizeof(T) == 8 ? 2 : 4;

template <class T, int distribution>
__device__ __forceinline__ void elements_of(const Words &words, T (&element)[of_a_block<T>]) {
    constexpr int count = of_a_block<T>;
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    Bits bits[count];
#pragma unroll
    for (int e = 0; e < count; e++) {
        if constexpr (sizeof(T) == 8)
            bits[e] = words.word[2 * e] | uint64_t(words.word[2 * e + 1]) << 32;
        else
            bits[e] = words.word[e];
    }
    if constexpr (distribution == PVG_RANDOM_NORMAL) {
        ComputeType<T> x, y;
#pragma unroll
        for (int e = 0; e < count; e += 2) {
            normal_pair<ComputeType<T>>(bits[e], bits[e + 1], &x, &y);
            element[e] = T(x);
            element[e + 1] = T(y);
        }
    } else {
#pragma unroll
        for (int e = 0; e < count; e++) {
            if constexpr (distribution == PVG_RANDOM_BITS)
                element[e] = T(bits[e]);
            else if constexpr (distribution == PVG_RANDOM_UNIFORM)
                uniform_of(&element[e], bits[e]);
            else
                element[e] = T(minus_log<ComputeType<T>>(bits[e]));
        }
    }
}

// ---- The kernel ---------------------------------------------------------------------------------

template <class T> constexpr int random_vector = 16 / sizeof(T);

template <class T, int distribution>
__global__ void __launch_bounds__(random_threads) random_kernel(const RandomJob job) {
    constexpr int count = random_vector<T>, part = of_a_block<T>, blocks = count / part;
    const int64_t thread = int64_t(blockIdx.x) * random_threads + threadIdx.x;
    const int64_t first = thread * count;
    if (first >= job.size) return;
    Vector<T, count> vector;
#pragma unroll
    for (int b = 0; b < blocks; b++) {
        T element[part];
        const uint64_t block = job.counter + uint64_t(thread) * blocks + uint64_t(b);
        elements_of<T, distribution>(philox(job.key, job.stream, block), element);
#pragma unroll
        for (int e = 0; e < part; e++) vector.element[b * part + e] = element[e];
    }
    T *to = static_cast<T *>(job.to) + first;
    if (job.aligned && first + count <= job.size) {
        store_at_once(to, vector);
        return;
    }
#pragma unroll
    for (int e = 0; e < count; e++)
        if (first + e < job.size) to[e] = vector.element[e];
}

template <int distribution> int launch_random(Call &call, const RandomJob &job, int dtype) {
    constexpr Kinds kinds =
        distribution == PVG_RANDOM_BITS ? only(Kind::unsigned_integer) : only(Kind::floating);
    return dispatch<kinds>(dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        PVG_LAUNCH((random_kernel<T, distribution>),
                   blocks_for(job.size, random_threads * random_vector<T>), random_threads, 0,
                   call.stream, job);
        return PVG_OK;
    });
}

// Fills a contiguous array.
int fill_random(Call &call, pvg_array *array, int distribution, RandomJob job) {
    PVG_PASS(call.writes(array));
    job.to = array->data;
    job.size = array->size;
    job.aligned = reinterpret_cast<uintptr_t>(array->data) % 16 == 0;
    switch (distribution) {
    case PVG_RANDOM_BITS: return launch_random<PVG_RANDOM_BITS>(call, job, array->dtype);
    case PVG_RANDOM_UNIFORM: return launch_random<PVG_RANDOM_UNIFORM>(call, job, array->dtype);
    case PVG_RANDOM_NORMAL: return launch_random<PVG_RANDOM_NORMAL>(call, job, array->dtype);
    }
    return launch_random<PVG_RANDOM_EXPONENTIAL>(call, job, array->dtype);
}

int run_random(Call &call, pvg_array *array, int distribution, const RandomJob &job) {
    const pvg_array *operand = array;
    int device = -1;
    PVG_PASS(check_operands(&operand, 1, &device));
    PVG_REQUIRE(distribution >= PVG_RANDOM_BITS && distribution <= PVG_RANDOM_EXPONENTIAL,
                PVG_ERROR_VALUE, "unknown distribution code %d", distribution);
    const Kind kind = distribution == PVG_RANDOM_BITS ? Kind::unsigned_integer : Kind::floating;
    PVG_PASS(check_kinds(array->dtype, only(kind)));
    PVG_REQUIRE(!array->readonly, PVG_ERROR_VALUE,
                "the array of shape %s and dtype %s is read-only", shape_text(array),
                dtype_name(array->dtype));
    PVG_PASS(call.begin(device));
    if (is_contiguous(array)) return fill_random(call, array, distribution, job);
    Temporary whole;
    PVG_PASS(new_array(device, array->dtype, array->ndim, array->shape, &whole.array));
    PVG_PASS(fill_random(call, whole.array, distribution, job));
    return copy_array(call, whole.array, array);
}

// ---- Integers -----------------------------------------------------------------------------------

constexpr int integer_threads = 256;

// How far it is to the stream that words are drawn from again: 2^64 over the golden ratio.
constexpr uint64_t stream_of_others = 0x9E3779B97F4A7C15u;

// Numbers below a count, of words up to the last one of its largest multiple: others are drawn
// again, from the same block of another stream, so that nobody has to be told how often that was.
struct IntegerJob {
    void *to;
    int64_t size;
    uint64_t key, stream, counter;
    uint64_t count, last, low; // count 0: a word as it is; last: of words that do
    uint64_t share;            // how often the count goes into the largest word
    bool power;                // the count is a power of two, or 0
};

template <class Word> __device__ __forceinline__ Word word_of(const Words &words, int e) {
    if constexpr (sizeof(Word) == 8)
        return words.word[2 * e] | uint64_t(words.word[2 * e + 1]) << 32;
    else
        return words.word[e];
}

// The remainder, by a quotient that is right or one too small: word / count exceeds
// word * share / 2^bits by less than 1.
__device__ __forceinline__ uint32_t remainder_of(uint32_t word, uint32_t count, uint32_t share) {
    const uint32_t rest = word - __umulhi(word, share) * count;
    return rest >= count ? rest - count : rest;
}
__device__ __forceinline__ uint64_t remainder_of(uint64_t word, uint64_t count, uint64_t share) {
    const uint64_t rest = word - __umul64hi(word, share) * count;
    return rest >= count ? rest - count : rest;
}

// Draws word e of a block again, until it does.
template <class Word>
__device__ __attribute__((noinline)) Word drawn_again(const IntegerJob &job, uint64_t block,
                                                      int e) {
    constexpr int count = 16 / sizeof(Word);
    uint64_t stream = job.stream;
    Word word;
    do {
        stream += stream_of_others;
        const Words more = philox(job.key, stream, block);
        word = 0;
#pragma unroll
        for (int other = 0; other < count; other++)
            if (other == e) word = word_of<Word>(more, other);
    } while (word > static_cast<Word>(job.last));
    return word;
}

// A thread has a block of four words. Of words of half the elements' size two threads exchange
// half of what they have, so that both write 16 bytes beside the other's.
template <class T, class Word>
__global__ void __launch_bounds__(integer_threads) integers_kernel(const IntegerJob job) {
    constexpr int count = 16 / sizeof(Word);
    const int64_t thread = int64_t(blockIdx.x) * integer_threads + threadIdx.x;
    const int64_t first = thread * count;
    const uint64_t block = job.counter + uint64_t(thread);
    const Words words = philox(job.key, job.stream, block);
    const Word below = static_cast<Word>(job.count), share = static_cast<Word>(job.share);
    Word number[count];
#pragma unroll
    for (int e = 0; e < count; e++) {
        Word word = word_of<Word>(words, e);
        if (job.power) {
            word &= below - 1; // all bits of a count of 0
        } else {
            if (word > static_cast<Word>(job.last) && first + e < job.size)
                word = drawn_again<Word>(job, block, e);
            word = remainder_of(word, below, share);
        }
        number[e] = word;
    }
    T *to = static_cast<T *>(job.to);
    const auto element = [&](Word word) { return static_cast<T>(uint64_t(word) + job.low); };
    if constexpr (sizeof(T) > sizeof(Word)) {
        const int64_t pair = first & ~int64_t(2 * count - 1);
        const bool odd = threadIdx.x & 1, whole = pair + 2 * count <= job.size;
        Word other[2];
#pragma unroll
        for (int e = 0; e < 2; e++)
            other[e] = __shfl_xor_sync(0xffffffffu, odd ? number[e] : number[2 + e], 1);
        if (whole) {
#pragma unroll
            for (int turn = 0; turn < 2; turn++) {
                Vector<T, 2> vector;
#pragma unroll
                for (int e = 0; e < 2; e++)
                    vector.element[e] = element(odd == turn ? number[2 * turn + e] : other[e]);
                *reinterpret_cast<Vector<T, 2> *>(to + pair + 4 * turn + 2 * odd) = vector;
            }
            return;
        }
    } else if (first + count <= job.size) {
        Vector<T, count> vector;
#pragma unroll
        for (int e = 0; e < count; e++) vector.element[e] = element(number[e]);
        *reinterpret_cast<Vector<T, count> *>(to + first) = vector;
        return;
    }
#pragma unroll
    for (int e = 0; e < count; e++)
        if (first + e < job.size) to[first + e] = element(number[e]);
}

// Elements are moved by their size; what they mean is the caller's.
template <class Word> int launch_integers(Call &call, const IntegerJob &job, int dtype) {
    return dispatch_size(dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        if constexpr (sizeof(T) > 8 || (sizeof(Word) == 8 && sizeof(T) < 4)) {
            return fail(PVG_ERROR_VALUE, "words of %d bits for %s",
                        static_cast<int>(8 * sizeof(Word)), dtype_name(dtype));
        } else {
            PVG_LAUNCH((integers_kernel<T, Word>),
                       blocks_for(job.size, integer_threads * (16 / sizeof(Word))), integer_threads,
                       0, call.stream, job);
            return PVG_OK;
        }
    });
}

int run_integers(Call &call, int device, int dtype, int ndim, const int64_t *shape, int word_bits,
                 uint64_t count, IntegerJob job, Output *result) {
    PVG_REQUIRE(word_bits == 32 || word_bits == 64, PVG_ERROR_VALUE, "words have 32 or 64 bits");
    PVG_REQUIRE(word_bits == 64 || count <= uint64_t(1) << 32, PVG_ERROR_VALUE,
                "more numbers than words of 32 bits");
    PVG_PASS(check_kinds(dtype, integers));
    PVG_PASS(call.begin(device));
    job.count = count, job.power = (count & (count - 1)) == 0;
    const uint64_t most = word_bits == 64 ? UINT64_MAX : UINT32_MAX;
    if (!job.power) job.last = most - (most % count + 1) % count, job.share = most / count;
    PVG_PASS(result->open(call, dtype, ndim, shape, nullptr, nullptr, 0));
    job.to = result->array->data, job.size = result->array->size;
    return word_bits == 32 ? launch_integers<uint32_t>(call, job, dtype)
                           : launch_integers<uint64_t>(call, job, dtype);
}

} // namespace

Operations random_operations() {
    static constexpr Operation rows[] = {
        {PVG_RANDOM, "random", Family::other, only(Kind::unsigned_integer) | floats, Gives::none},
    };
    return rows;
}

} // namespace pvg

PVG_API int pvg_random(pvg_array *array, int distribution, uint64_t key, uint64_t stream,
                       uint64_t counter) {
    pvg::Call call("random");
    return pvg::run_random(call, array, distribution, {nullptr, 0, key, stream, counter, false});
}

PVG_API pvg_array *pvg_random_integers(int device, int dtype, int ndim, const int64_t *shape,
                                       int word_bits, uint64_t count, int64_t low, uint64_t key,
                                       uint64_t stream, uint64_t counter) {
    pvg::Call call("random_integers");
    pvg::Output result;
    pvg::IntegerJob job = {};
    job.key = key, job.stream = stream, job.counter = counter;
    job.low = static_cast<uint64_t>(low);
    int status =
        pvg::run_integers(call, device, dtype, ndim, shape, word_bits, count, job, &result);
    return result.close(call, status);
}
