/* pvg_random: Philox's published answers, every offset into memory, and that nothing beside the
 * result is written; pvg_dropout, whose numbers are its. */
#include "check.h"

static void known_answers(void) {
    /* Random123's kat_vectors: counter, key, words. */
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        const uint32_t *c = known[i].counter, *k = known[i].key;
        pvg_array *array = MADE(pvg_array_empty(0, PVG_UINT32, SHAPE(4)));
        CHECK_OK(pvg_random(array, PVG_RANDOM_BITS, k[0] | (uint64_t)k[1] << 32,
                            c[2] | (uint64_t)c[3] << 32, c[0] | (uint64_t)c[1] << 32));
        CHECK_ARRAY(array, PVG_UINT32, SHAPE(4), known[i].words, 0);
        RELEASE(array);
    }
}

static int has(int distribution, int dtype) {
    return kind_of(dtype) == (distribution == PVG_RANDOM_BITS ? 'u' : 'f');
}

/* Views that begin 0 to 15 elements into their memory, of sizes that no vector divides, have the
 * numbers of an array of their own. */
static void at_every_offset(void) {
    enum { MOST = 70, ALL = MOST + 40 };
    const int64_t one = 1;
    uint64_t state = 2;
    for (int d = 0; d < dtype_count; d++)
        for (int distribution = 0; distribution < 4; distribution++) {
            if (!has(distribution, all_dtypes[d])) continue;
            for (int64_t offset = 0; offset < 16; offset++) {
                const int64_t n = random_integer(&state, 1, MOST);
                const size_t item = (size_t)pvg_dtype_size(all_dtypes[d]);
                pvg_array *alone = MADE(pvg_array_empty(0, all_dtypes[d], 1, &n)),
                          *whole = random_array(all_dtypes[d], SHAPE(ALL), &state),
                          *view = MADE(pvg_slice(whole, &offset, &one, &n));
                CHECK_OK(pvg_random(alone, distribution, 1, 2, 3));
                char *expected = host_copy(whole), *numbers = host_copy(alone);
                memcpy(expected + (size_t)offset * item, numbers, (size_t)n * item);
                CHECK_OK(pvg_random(view, distribution, 1, 2, 3));
                CHECK_ARRAY(whole, all_dtypes[d], SHAPE(ALL), expected, 0);
                RELEASE(alone, whole, view);
                free(expected);
                free(numbers);
            }
        }
}

/* A transposed view has them in C order of its own. */
/* Of 2^63 + 1 numbers half of the words do not do. */
static void integers_below(void) {
    const uint64_t many = (UINT64_C(1) << 63) + 1;
    pvg_array *words = MADE(pvg_array_empty(0, PVG_UINT32, SHAPE(3, 5)));
    CHECK_OK(pvg_random(words, PVG_RANDOM_BITS, 1, 2, 3));
    uint32_t *bits = host_copy(words);
    pvg_array *below = MADE(pvg_random_integers(0, PVG_INT16, SHAPE(3, 5), 32, 100, -7, 1, 2, 3));
    int16_t expected[15];
    for (int i = 0; i < 15; i++) expected[i] = (int16_t)(bits[i] % 100 - 7);
    CHECK_ARRAY(below, PVG_INT16, SHAPE(3, 5), expected, 0);
    pvg_array *again = MADE(pvg_random_integers(0, PVG_UINT64, SHAPE(99), 64, many, 0, 1, 2, 3));
    uint64_t *drawn = host_copy(again);
    for (int i = 0; i < 99; i++) CHECK(drawn[i] < many);
    free(drawn);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_random_integers(0, PVG_INT8, SHAPE(2), 16, 2, 0, 1, 2, 3));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_random_integers(0, PVG_INT64, SHAPE(2), 32, many, 0, 1, 2, 3));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_random_integers(0, PVG_INT16, SHAPE(2), 64, 2, 0, 1, 2, 3));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_random_integers(0, PVG_FLOAT32, SHAPE(2), 32, 2, 0, 1, 2, 3));
    RELEASE(words, below, again);
    free(bits);
}

static void in_another_order(void) {
    const int axes[] = {1, 0};
    pvg_array *matrix = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(5, 7))),
              *turned = MADE(pvg_permute(matrix, axes)),
              *alone = MADE(pvg_array_empty(0, PVG_FLOAT32, SHAPE(7, 5)));
    CHECK_OK(pvg_random(turned, PVG_RANDOM_NORMAL, 4, 5, UINT64_MAX));
    CHECK_OK(pvg_random(alone, PVG_RANDOM_NORMAL, 4, 5, UINT64_MAX));
    void *expected = host_copy(alone);
    CHECK_ARRAY(turned, PVG_FLOAT32, SHAPE(7, 5), expected, 0);
    RELEASE(matrix, turned, alone);
    free(expected);
}

static void what_is_refused(void) {
    uint64_t state = 3;
    pvg_array *bits = random_array(PVG_UINT8, SHAPE(4), &state),
              *integers = random_array(PVG_INT32, SHAPE(4), &state),
              *floats = random_array(PVG_FLOAT32, SHAPE(4), &state),
              *repeated = MADE(pvg_broadcast_to(floats, SHAPE(3, 4))),
              *nothing = MADE(pvg_array_empty(0, PVG_FLOAT64, SHAPE(0)));
    CHECK_STATUS(pvg_random(bits, PVG_RANDOM_UNIFORM, 0, 0, 0), PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_random(floats, PVG_RANDOM_BITS, 0, 0, 0), PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_random(integers, PVG_RANDOM_BITS, 0, 0, 0), PVG_ERROR_TYPE);
    CHECK_STATUS(pvg_random(floats, 4, 0, 0, 0), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_random(bits, -1, 0, 0, 0), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_random(repeated, PVG_RANDOM_NORMAL, 0, 0, 0), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_random(NULL, PVG_RANDOM_NORMAL, 0, 0, 0), PVG_ERROR_VALUE);
    CHECK_OK(pvg_random(nothing, PVG_RANDOM_NORMAL, 0, 0, 0));
    RELEASE(bits, integers, floats, repeated, nothing);
}

static void dropout(void) {
    const int64_t one = 1;
    uint64_t state = 4;
    for (int64_t offset = 0; offset < 5; offset++)
        for (int64_t n = 0; n < 3000; n = n * 3 + 1) {
            pvg_array *whole = random_array(PVG_FLOAT32, SHAPE(offset + n), &state),
                      *a = MADE(pvg_slice(whole, &offset, &one, &n)),
                      *numbers = MADE(pvg_array_empty(0, PVG_FLOAT32, 1, &n)),
                      *result = MADE(pvg_dropout(a, 0.75, 1, 2, 3, NULL));
            CHECK_OK(pvg_random(numbers, PVG_RANDOM_UNIFORM, 1, 2, 3));
            float *expected = host_copy(a), *u = host_copy(numbers);
            for (int64_t i = 0; i < n; i++) expected[i] = u[i] < 0.75f ? 0.0f : expected[i] * 4;
            CHECK_ARRAY(result, PVG_FLOAT32, 1, &n, expected, 0);
            RELEASE(whole, a, numbers, result);
            free(expected);
            free(u);
        }
    pvg_array *a = random_array(PVG_FLOAT64, SHAPE(4), &state),
              *integers = random_array(PVG_INT32, SHAPE(4), &state);
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dropout(a, 1.5, 0, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dropout(a, (double)NAN, 0, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_VALUE, pvg_dropout(NULL, 0.5, 0, 0, 0, NULL));
    CHECK_NULL(PVG_ERROR_TYPE, pvg_dropout(integers, 0.5, 0, 0, 0, NULL));
    RELEASE(a, integers);
}

int main(void) {
    begin("test_random");
    RUN(known_answers);
    RUN(at_every_offset);
    RUN(in_another_order);
    RUN(integers_below);
    RUN(what_is_refused);
    RUN(dropout);
    return finish();
}
