/* Plans of products (pvg_plan_product) on described cards: 100,000 random products, each planned
 * for an H200, an RTX 4090 and a Turing card. A plan has to be one that the card can launch, cover
 * m, n and k exactly, keep to its memory, have bits that follow from the shape alone, and keep the
 * multiprocessors busy. No device is asked, so this runs everywhere. */
#include "check.h"

enum { PRODUCTS = 100000 };

typedef int64_t Card[PVG_CARD_COUNT];
typedef int64_t Product[PVG_PRODUCT_COUNT];
typedef int64_t Plan[PVG_PLAN_COUNT];

static const struct {
    const char *name;
    Card card;
} cards[] = {
    {"H200", {90, 132, 232448, 233472}},
    {"RTX 4090", {80, 128, 101376, 102400}}, /* runs the code of 8.0 */
    {"Turing", {75, 68, 65536, 65536}},
};
enum { H200 = 0, TURING = 2, CARDS = COUNT(cards) };

static char now[400]; /* the product in words, for reports */
#define REQUIRE(holds) ((holds) ? (void)0 : report(__FILE__, __LINE__, "%s: " #holds, now))

static int64_t covering(int64_t length, int64_t size) { return (length + size - 1) / size; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- Random products ------------------------------------------------------------------------- */

/* Logarithms are even; often a multiple of what tiles and TMA like. */
static int64_t random_length(uint64_t *state, int64_t most) {
    static const int64_t multiples[] = {1, 1, 4, 8, 64, 128};
    int64_t multiple = multiples[random_integer(state, 0, 5)];
    int64_t n = (int64_t)exp(random_real(state, 0, log((double)most + 1)));
    if (random_integer(state, 0, 19) == 0) n = 1;
    n = covering(larger(n, 1), multiple) * multiple;
    return n < most ? n : most;
}

static void random_product(uint64_t *state, Product x) {
    static const int dtypes[] = {PVG_FLOAT32, PVG_FLOAT32,  PVG_FLOAT32, PVG_FLOAT16,
                                 PVG_FLOAT64, PVG_BFLOAT16, PVG_INT32,   PVG_UINT8};
    int64_t most = random_integer(state, 0, 9) ? 8192 : 200000;
    memset(x, 0, sizeof(Product));
    for (int i = PVG_PRODUCT_M; i <= PVG_PRODUCT_K; i++) x[i] = random_length(state, most);
    if (random_integer(state, 0, 2) == 0) x[PVG_PRODUCT_ITEMS] = random_length(state, 5000);
    x[PVG_PRODUCT_ITEMS] = larger(x[PVG_PRODUCT_ITEMS], 1);
    x[PVG_PRODUCT_DTYPE] = dtypes[random_integer(state, 0, COUNT(dtypes) - 1)];
    x[PVG_PRODUCT_PRECISION] = random_integer(state, PVG_PRECISION_IEEE, PVG_PRECISION_FP16);
    x[PVG_PRODUCT_A_ALONG_K] = random_integer(state, 0, 1);
    x[PVG_PRODUCT_B_ALONG_K] = random_integer(state, 0, 1);
    x[PVG_PRODUCT_HAS_BIAS] = random_integer(state, 0, 1);
}

/* Gives x addresses and distances of rows and items; those that are even allow 16 bytes. */
static void lay_out(uint64_t *state, Product x, int is_even) {
    int64_t m = x[PVG_PRODUCT_M], n = x[PVG_PRODUCT_N], k = x[PVG_PRODUCT_K];
    int64_t rows[] = {x[PVG_PRODUCT_A_ALONG_K] ? m : k, x[PVG_PRODUCT_B_ALONG_K] ? n : k, m};
    int64_t columns[] = {x[PVG_PRODUCT_A_ALONG_K] ? k : m, x[PVG_PRODUCT_B_ALONG_K] ? k : n, n};
    int64_t size = pvg_dtype_size((int)x[PVG_PRODUCT_DTYPE]);
    for (int i = 0; i < 3; i++) {
        int64_t stride = columns[i] + random_integer(state, 0, 9) % 7;
        int64_t address = ((int64_t)(i + 1) << 40) + size * random_integer(state, 0, 16);
        if (is_even) stride = covering(stride, 16) * 16, address = (int64_t)(i + 1) << 40;
        x[PVG_PRODUCT_A_STRIDE + i] = stride;
        x[PVG_PRODUCT_A_ITEM + i] = rows[i] * stride;
        x[PVG_PRODUCT_A_ADDRESS + i] = address;
    }
    for (int i = 0; i < 2; i++) /* operands that all items share */
        if (random_integer(state, 0, 3) == 0) x[PVG_PRODUCT_A_ITEM + i] = 0;
}

static void describe(const char *card, const Product x) {
    snprintf(now, sizeof now,
             "on %s: (%lld, %lld) @ (%lld, %lld), %lld items, dtype %d, precision %d, along k %d "
             "%d, strides %lld %lld, kernel %d",
             card, (long long)x[PVG_PRODUCT_M], (long long)x[PVG_PRODUCT_K],
             (long long)x[PVG_PRODUCT_K], (long long)x[PVG_PRODUCT_N],
             (long long)x[PVG_PRODUCT_ITEMS], (int)x[PVG_PRODUCT_DTYPE],
             (int)x[PVG_PRODUCT_PRECISION], (int)x[PVG_PRODUCT_A_ALONG_K],
             (int)x[PVG_PRODUCT_B_ALONG_K], (long long)x[PVG_PRODUCT_A_STRIDE],
             (long long)x[PVG_PRODUCT_B_STRIDE], (int)x[PVG_PRODUCT_KERNEL]);
}

/* ---- Can the card run it? -------------------------------------------------------------------- */

static int is_ffma(int64_t kernel) {
    return kernel >= PVG_MATMUL_FFMA_128X128 && kernel <= PVG_MATMUL_FFMA_TMA;
}
static int needs_90a(int64_t kernel) {
    return kernel == PVG_MATMUL_FFMA_TMA || kernel == PVG_MATMUL_TENSOR ||
           kernel == PVG_MATMUL_BF16X6 || kernel == PVG_MATMUL_FP16X3;
}
static int needs_80(int64_t kernel) {
    return is_ffma(kernel) || needs_90a(kernel) || kernel == PVG_MATMUL_TENSOR_SM80 ||
           kernel == PVG_MATMUL_DMMA || kernel == PVG_MATMUL_TENSOR_SMALL ||
           kernel == PVG_MATMUL_TENSOR_TF32;
}

/* The kernel keeps what the dtype and the precision promise. */
static int keeps_promise(const Product x, int64_t kernel) {
    int64_t dtype = x[PVG_PRODUCT_DTYPE], precision = x[PVG_PRODUCT_PRECISION];
    int is_tensor = kernel == PVG_MATMUL_TENSOR || kernel == PVG_MATMUL_TENSOR_SM80;
    if (kernel == PVG_MATMUL_TILED) return 1;
    if (kernel == PVG_MATMUL_OUTER)
        return x[PVG_PRODUCT_K] <= (dtype == PVG_FLOAT32 ? 24 : 16) &&
               (dtype == PVG_FLOAT64 || dtype == PVG_FLOAT16 || dtype == PVG_BFLOAT16 ||
                (dtype == PVG_FLOAT32 && precision <= PVG_PRECISION_TF32));
    if (dtype == PVG_FLOAT64)
        return kernel == PVG_MATMUL_DMMA || kernel == PVG_MATMUL_GEMV ||
               kernel == PVG_MATMUL_TINY || kernel == PVG_MATMUL_THIN;
    if (dtype == PVG_FLOAT16 || dtype == PVG_BFLOAT16)
        return is_tensor || kernel == PVG_MATMUL_GEMV || kernel == PVG_MATMUL_TINY ||
               kernel == PVG_MATMUL_TENSOR_SMALL;
    if (dtype != PVG_FLOAT32) return 0;
    if (is_tensor) return precision >= PVG_PRECISION_TF32;
    if (kernel == PVG_MATMUL_TENSOR_TF32) return precision == PVG_PRECISION_TF32;
    if (kernel == PVG_MATMUL_FP16X3) return precision == PVG_PRECISION_FAST32;
    if (kernel == PVG_MATMUL_BF16X6) return precision != PVG_PRECISION_IEEE;
    if (kernel == PVG_MATMUL_THIN) return 1;
    return is_ffma(kernel) || kernel == PVG_MATMUL_GEMV || kernel == PVG_MATMUL_TINY;
}

/* The product of the transposed matrices, whose sums are for a workspace. */
static void turn(Product x) {
    static const int pairs[][2] = {
        {PVG_PRODUCT_M, PVG_PRODUCT_N},
        {PVG_PRODUCT_A_ALONG_K, PVG_PRODUCT_B_ALONG_K},
        {PVG_PRODUCT_A_STRIDE, PVG_PRODUCT_B_STRIDE},
        {PVG_PRODUCT_A_ITEM, PVG_PRODUCT_B_ITEM},
        {PVG_PRODUCT_A_ADDRESS, PVG_PRODUCT_B_ADDRESS},
    };
    for (size_t i = 0; i < COUNT(pairs); i++) {
        int64_t first = x[pairs[i][0]];
        x[pairs[i][0]] = x[pairs[i][1]], x[pairs[i][1]] = first;
    }
    x[PVG_PRODUCT_C_STRIDE] = x[PVG_PRODUCT_N], x[PVG_PRODUCT_HAS_BIAS] = 0;
}

/* A k that is cut: the stretches, of which the last one is no longer, are all of it. The plan is
 * that of a product whose items they are, of which nothing is cut again. */
static int check_stretches(const Product x, const Plan plan, Product stretches) {
    int64_t count = plan[PVG_PLAN_STRETCHES], terms = plan[PVG_PLAN_STRETCH_TERMS];
    int64_t k = x[PVG_PRODUCT_K];
    memcpy(stretches, x, sizeof(Product));
    if (plan[PVG_PLAN_TURNED]) turn(stretches);
    if (count == 1) return k == terms;
    stretches[PVG_PRODUCT_K] = terms, stretches[PVG_PRODUCT_KERNEL] = plan[PVG_PLAN_KERNEL];
    stretches[PVG_PRODUCT_ITEMS] = count, stretches[PVG_PRODUCT_HAS_BIAS] = 0;
    for (int i = 0; i < 2; i++)
        stretches[PVG_PRODUCT_A_ITEM + i] =
            terms *
            (stretches[PVG_PRODUCT_A_ALONG_K + i] ? 1 : stretches[PVG_PRODUCT_A_STRIDE + i]);
    stretches[PVG_PRODUCT_C_STRIDE] = stretches[PVG_PRODUCT_N];
    stretches[PVG_PRODUCT_C_ITEM] = stretches[PVG_PRODUCT_M] * stretches[PVG_PRODUCT_N];
    return plan[PVG_PLAN_SPLITS] == 1 && !plan[PVG_PLAN_CUT] && (count - 1) * terms < k &&
           count * terms >= k && terms % 16 == 0 &&
           count * plan[PVG_PLAN_TILES] <= 32 * 132; /* of any tile */
}

static void check_launch(const Card card, const Product x, const Plan plan) {
    int64_t kernel = plan[PVG_PLAN_KERNEL], cluster = plan[PVG_PLAN_CLUSTER];
    int64_t architecture = card[PVG_CARD_ARCHITECTURE];
    REQUIRE(!needs_90a(kernel) || architecture == 90);
    REQUIRE(!needs_80(kernel) || architecture >= 80);
    REQUIRE(keeps_promise(x, kernel));
    REQUIRE(plan[PVG_PLAN_THREADS] >= 32 && plan[PVG_PLAN_THREADS] <= 1024 &&
            plan[PVG_PLAN_THREADS] % 32 == 0);
    REQUIRE(plan[PVG_PLAN_BLOCKS] >= 1 && plan[PVG_PLAN_BLOCKS] <= INT32_MAX);
    REQUIRE(plan[PVG_PLAN_SHARED_BYTES] >= 0 &&
            plan[PVG_PLAN_SHARED_BYTES] <= card[PVG_CARD_SHARED_OF_BLOCK]);
    REQUIRE(cluster >= 1 && cluster <= 8);
    REQUIRE((cluster & (cluster - 1)) == 0 || kernel == PVG_MATMUL_TENSOR_SMALL);
    REQUIRE(cluster == 1 || architecture >= 90);
    REQUIRE(plan[PVG_PLAN_BLOCKS] % cluster == 0);
}

/* ---- Is everything computed, once? ----------------------------------------------------------- */

/* Slices of a tile that is cut, as blocks find them in sm90/schedule.cuh. */
static void check_slices(const Product x, const Plan plan) {
    int64_t blocks = plan[PVG_PLAN_K_BLOCKS], step = plan[PVG_PLAN_K_STEP], end = 0;
    int64_t slices = plan[PVG_PLAN_CUT] ? plan[PVG_PLAN_SLICES] : 1, steps = blocks / step;
    int64_t depth = plan[PVG_PLAN_DEPTH];
    REQUIRE(blocks % step == 0 && slices <= 8);
    REQUIRE(blocks * depth >= x[PVG_PRODUCT_K] && (blocks - step) * depth < x[PVG_PRODUCT_K]);
    for (int64_t slice = 0; slice < slices; slice++) {
        int64_t begin = steps * slice / slices * step;
        REQUIRE(begin == end);
        end = slice < slices - 1 ? steps * (slice + 1) / slices * step : blocks;
        REQUIRE(end > begin);
    }
    REQUIRE(end == blocks);
}

static void check_cover(const Product x, const Plan plan) {
    int64_t m = x[PVG_PRODUCT_M], n = x[PVG_PRODUCT_N], kernel = plan[PVG_PLAN_KERNEL];
    int64_t items = x[PVG_PRODUCT_ITEMS], at_a_time = plan[PVG_PLAN_ITEMS];
    int64_t rows = plan[PVG_PLAN_ROWS], columns = plan[PVG_PLAN_COLUMNS];
    int64_t of_c = plan[PVG_PLAN_PART_ROWS], units = plan[PVG_PLAN_WHOLE];
    if (kernel == PVG_MATMUL_TILED) { /* a batch may be one taller product */
        REQUIRE(of_c == m || of_c == m * items);
        REQUIRE(plan[PVG_PLAN_TILES] == covering(of_c, rows) * covering(n, columns));
        return;
    }
    REQUIRE(at_a_time >= 1 && at_a_time <= items && of_c >= 1 && of_c <= m);
    REQUIRE(of_c == m || at_a_time == 1 || is_ffma(kernel));
    if (plan[PVG_PLAN_K_BLOCKS]) {
        int64_t group = plan[PVG_PLAN_CLUSTER];
        int high = plan[PVG_PLAN_PAIR] == 2, wide = plan[PVG_PLAN_PAIR] == 1;
        int64_t all = plan[PVG_PLAN_WHOLE] + plan[PVG_PLAN_CUT];
        int is_tf32 = kernel == PVG_MATMUL_TENSOR && x[PVG_PRODUCT_DTYPE] == PVG_FLOAT32 &&
                      x[PVG_PRODUCT_PRECISION] == PVG_PRECISION_TF32;
        if (is_tf32 && !x[PVG_PRODUCT_B_ALONG_K]) /* c transposed, perhaps in parts */
            REQUIRE(all >= covering(n, rows) * covering(of_c, columns << wide));
        else if (kernel == PVG_MATMUL_TENSOR)
            REQUIRE(all == covering(of_c, rows << high) * covering(n, columns << wide));
        else
            REQUIRE(all == covering(of_c, rows * group) * covering(n, columns));
        check_slices(x, plan);
        units += plan[PVG_PLAN_CUT] * plan[PVG_PLAN_SLICES];
        REQUIRE(units * at_a_time <= (int64_t)1 << 30 || at_a_time == 1);
        REQUIRE(units <= INT32_MAX);
        REQUIRE(plan[PVG_PLAN_BLOCKS] <= units * at_a_time * group);
        return;
    }
    REQUIRE(plan[PVG_PLAN_TILES] == covering(of_c, rows) * covering(n, columns));
    int64_t blocks = plan[PVG_PLAN_TILES] * plan[PVG_PLAN_SPLITS] * at_a_time;
    if (kernel == PVG_MATMUL_TENSOR_SMALL) /* of whole items a block may have several */
        REQUIRE(plan[PVG_PLAN_BLOCKS] == blocks ||
                (plan[PVG_PLAN_BLOCKS] > 0 && plan[PVG_PLAN_BLOCKS] < blocks &&
                 blocks == x[PVG_PRODUCT_ITEMS]));
    else if (kernel != PVG_MATMUL_TINY)
        REQUIRE(plan[PVG_PLAN_BLOCKS] == blocks);
    if (kernel == PVG_MATMUL_GEMV || kernel == PVG_MATMUL_THIN) {
        REQUIRE(plan[PVG_PLAN_TERMS] * plan[PVG_PLAN_SPLITS] >= x[PVG_PRODUCT_K]);
    } else if (kernel != PVG_MATMUL_TINY && kernel != PVG_MATMUL_OUTER &&
               kernel != PVG_MATMUL_TENSOR_SM80) {
        int64_t splits = plan[PVG_PLAN_SPLITS] * plan[PVG_PLAN_SPLITS_IN_SEQUENCE];
        REQUIRE(plan[PVG_PLAN_CLUSTER] == plan[PVG_PLAN_SPLITS]);
        REQUIRE(covering(x[PVG_PRODUCT_K], plan[PVG_PLAN_DEPTH]) >= splits); /* none is empty */
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void check_memory(const Product x, const Plan plan) {
    const int64_t most = (int64_t)1 << 28;
    int64_t kernel = plan[PVG_PLAN_KERNEL], workspace = plan[PVG_PLAN_WORKSPACE];
    int64_t padded = covering(x[PVG_PRODUCT_N], 8) * 8 * 4;
    REQUIRE(workspace >= 0);
    if (is_ffma(kernel)) /* or one row of tiles */
        REQUIRE(workspace <= larger(most, plan[PVG_PLAN_ROWS] * padded));
    else if (kernel == PVG_MATMUL_GEMV)
        REQUIRE(workspace <= 8 * (((int64_t)1 << 26) +
                                  plan[PVG_PLAN_SPLITS] * (x[PVG_PRODUCT_M] + x[PVG_PRODUCT_N])));
    else /* and for each tile that is cut a counter */
        REQUIRE(workspace <= most + (1 << 20) || plan[PVG_PLAN_ITEMS] == 1);
    for (int i = 0; i < 2; i++) {
        int64_t copied = plan[PVG_PLAN_A_COPIED + i], bytes = plan[PVG_PLAN_A_BYTES + i];
        int64_t items = x[PVG_PRODUCT_A_ITEM + i] ? x[PVG_PRODUCT_ITEMS] : 1;
        int64_t side = i == 0 ? x[PVG_PRODUCT_M] : x[PVG_PRODUCT_N], k = x[PVG_PRODUCT_K];
        int64_t padded_both = larger((side + 64) * k, side * (k + 64));
        REQUIRE((copied == 0) == (bytes == 0));
        REQUIRE(copied == 3 || bytes <= items * (padded_both + 64) * 4 + 256);
    }
}

/* ---- Bits follow from the shape -------------------------------------------------------------- */

/* What decides in which order a sum's terms are added: of up to 16 of float32 all in turn. */
static void write_bits(const Plan plan, const Product x, int64_t bits[10]) {
    int64_t kernel = plan[PVG_PLAN_KERNEL], dtype = x[PVG_PRODUCT_DTYPE];
    memset(bits, 0, 10 * sizeof *bits);
    const int in_turn = kernel == PVG_MATMUL_OUTER && x[PVG_PRODUCT_K] <= 16;
    if (kernel == PVG_MATMUL_FFMA_TMA ||
        ((kernel == PVG_MATMUL_TILED || in_turn) && dtype == PVG_FLOAT32))
        kernel = PVG_MATMUL_FFMA_128X128;
    bits[0] = kernel;
    bits[1] = plan[PVG_PLAN_SLICES];
    bits[2] = plan[PVG_PLAN_SPLITS] * plan[PVG_PLAN_SPLITS_IN_SEQUENCE];
    bits[3] = plan[PVG_PLAN_TERMS];
    bits[4] = plan[PVG_PLAN_CUT] && plan[PVG_PLAN_WHOLE]; /* tiles differ in their sums */
    if (bits[4]) bits[5] = plan[PVG_PLAN_WHOLE], bits[6] = plan[PVG_PLAN_COLUMNS];
    if (kernel == PVG_MATMUL_BF16X6 || kernel == PVG_MATMUL_FP16X3)
        bits[7] = plan[PVG_PLAN_COLUMNS];
    bits[8] = plan[PVG_PLAN_STRETCHES], bits[9] = plan[PVG_PLAN_STRETCH_TERMS];
}

static void check_bits(uint64_t *state, const Card card, const Product x, const Plan plan) {
    int64_t expected[10], found[10];
    Product other;
    Card smaller;
    Plan again;
    memcpy(other, x, sizeof other), memcpy(smaller, card, sizeof smaller);
    write_bits(plan, x, expected);
    CHECK_OK(pvg_plan_product(card, x, again));
    REQUIRE(memcmp(again, plan, sizeof again) == 0);
    smaller[PVG_CARD_MULTIPROCESSORS] = random_integer(state, 2, 200);
    other[PVG_PRODUCT_ITEMS] = x[PVG_PRODUCT_ITEMS] > 1 ? 1 : random_integer(state, 2, 3000);
    other[PVG_PRODUCT_HAS_BIAS] = !x[PVG_PRODUCT_HAS_BIAS];
    lay_out(state, other, (int)random_integer(state, 0, 1));
    CHECK_OK(pvg_plan_product(smaller, other, again));
    write_bits(again, x, found);
    REQUIRE(memcmp(found, expected, sizeof found) == 0);
}

/* ---- Busy multiprocessors -------------------------------------------------------------------- */

/* Of the rounds that 132 multiprocessors take for one item, the part that is work. */
static double busy(const Plan plan) {
    const int64_t width = 132 / plan[PVG_PLAN_CLUSTER], cut = plan[PVG_PLAN_CUT];
    const int64_t whole = plan[PVG_PLAN_WHOLE], slices = plan[PVG_PLAN_SLICES];
    const int64_t blocks = plan[PVG_PLAN_TILES] * plan[PVG_PLAN_SPLITS];
    double rounds = (double)covering(whole, width);
    if (!plan[PVG_PLAN_K_BLOCKS]) return (double)blocks / (double)(covering(blocks, 132) * 132);
    if (cut) rounds += (double)covering(cut * slices, width) / (double)slices;
    return (double)(whole + cut) / (rounds * (double)width);
}

/* Where k is long and eight blocks a tile would be enough for all of the card, at least so much of
 * it works at a time: less for kernels that share k inside of a block before blocks share it, and
 * for TENSOR, where another launch would take the host longer than the longer sums the card. */
static const struct {
    int64_t kernel;
    double least;
} least_busy[] = {
    {PVG_MATMUL_FFMA_128X128, 0.8}, {PVG_MATMUL_FFMA_TMA, 0.8},    {PVG_MATMUL_FFMA_64X128, 0.5},
    {PVG_MATMUL_FFMA_64X64, 0.65},  {PVG_MATMUL_FFMA_64X32, 0.25}, {PVG_MATMUL_TENSOR, 0.12},
    {PVG_MATMUL_BF16X6, 0.75},      {PVG_MATMUL_FP16X3, 0.75},     {PVG_MATMUL_DMMA, 0.5},
};

static void check_busy(const Product x, const Plan plan) {
    if (x[PVG_PRODUCT_ITEMS] > 1 || x[PVG_PRODUCT_K] < 4096) return;
    if (plan[PVG_PLAN_STRETCHES] > 1) return; /* which are a batch */
    if (plan[PVG_PLAN_PART_ROWS] < x[PVG_PRODUCT_M] || plan[PVG_PLAN_TILES] * 8 < 132) return;
    for (size_t i = 0; i < COUNT(least_busy); i++)
        if (plan[PVG_PLAN_KERNEL] == least_busy[i].kernel)
            REQUIRE(busy(plan) >= least_busy[i].least);
}

/* ---- The sections ---------------------------------------------------------------------------- */

static void check_plan(uint64_t *state, int card, const Product x, const Plan plan) {
    Product part;
    REQUIRE(check_stretches(x, plan, part));
    check_launch(cards[card].card, part, plan);
    check_cover(part, plan);
    check_memory(part, plan);
    check_bits(state, cards[card].card, x, plan);
}

static void random_plans(void) {
    uint64_t state = 20261122;
    int64_t seen[PVG_MATMUL_OUTER + 1] = {0};
    for (int i = 0; i < PRODUCTS; i++) {
        Product x;
        random_product(&state, x);
        lay_out(&state, x, (int)random_integer(&state, 0, 1));
        for (int card = 0; card < CARDS; card++) {
            Plan plan;
            describe(cards[card].name, x);
            CHECK_OK(pvg_plan_product(cards[card].card, x, plan));
            check_plan(&state, card, x, plan);
            if (card == H200) check_busy(x, plan);
            if (card == TURING) CHECK(!needs_80(plan[PVG_PLAN_KERNEL]));
            seen[plan[PVG_PLAN_KERNEL]]++;
        }
    }
    for (int kernel = PVG_MATMUL_TILED; kernel <= PVG_MATMUL_OUTER; kernel++)
        if (seen[kernel] < 20) report(__FILE__, __LINE__, "kernel %d is hardly chosen", kernel);
}

/* One of m, n and k is the longest there is; UBSan sees what that overflows. */
static void longest_sides(void) {
    uint64_t state = 31;
    for (int i = 0; i < PRODUCTS / 10; i++) {
        Product x;
        Plan plan;
        random_product(&state, x);
        x[PVG_PRODUCT_ITEMS] = 1;
        x[random_integer(&state, PVG_PRODUCT_M, PVG_PRODUCT_K)] =
            INT32_MAX - random_integer(&state, 0, 2);
        lay_out(&state, x, (int)random_integer(&state, 0, 1));
        for (int card = 0; card < CARDS; card++) {
            describe(cards[card].name, x);
            CHECK_OK(pvg_plan_product(cards[card].card, x, plan));
            REQUIRE(plan[PVG_PLAN_BLOCKS] >= 0 && plan[PVG_PLAN_BLOCKS] <= INT32_MAX);
            REQUIRE(plan[PVG_PLAN_WORKSPACE] >= 0 && plan[PVG_PLAN_STRETCHES] >= 1);
        }
    }
}

/* A kernel that is forced is the plan's, or it cannot: then it is not what the table chooses. */
static void forced_kernels(void) {
    uint64_t state = 11;
    for (int i = 0; i < PRODUCTS / 10; i++) {
        Product x;
        Plan chosen, plan;
        int card = (int)random_integer(&state, 0, CARDS - 1);
        random_product(&state, x);
        lay_out(&state, x, (int)random_integer(&state, 0, 1));
        CHECK_OK(pvg_plan_product(cards[card].card, x, chosen));
        x[PVG_PRODUCT_KERNEL] = random_integer(&state, PVG_MATMUL_TILED, PVG_MATMUL_OUTER);
        describe(cards[card].name, x);
        if (pvg_plan_product(cards[card].card, x, plan) == PVG_OK) {
            REQUIRE(plan[PVG_PLAN_KERNEL] == x[PVG_PRODUCT_KERNEL]);
            REQUIRE(plan[PVG_PLAN_KERNEL] != PVG_MATMUL_OUTER ||
                    x[PVG_PRODUCT_K] <= (x[PVG_PRODUCT_DTYPE] == PVG_FLOAT32 ? 24 : 16));
            check_cover(x, plan);
            check_memory(x, plan);
        } else {
            REQUIRE(pvg_last_status() == PVG_ERROR_VALUE);
            REQUIRE(x[PVG_PRODUCT_KERNEL] != chosen[PVG_PLAN_KERNEL] ||
                    chosen[PVG_PLAN_STRETCHES] > 1); /* which are not split */
        }
    }
}

static void what_is_no_product(void) {
    static const int64_t wrong[][2] = {
        {PVG_PRODUCT_M, 0},       {PVG_PRODUCT_N, -1},        {PVG_PRODUCT_K, -1},
        {PVG_PRODUCT_ITEMS, 0},   {PVG_PRODUCT_DTYPE, 99},    {PVG_PRODUCT_DTYPE, -1},
        {PVG_PRODUCT_KERNEL, 99}, {PVG_PRODUCT_PRECISION, 0}, {PVG_PRODUCT_PRECISION, 7},
    };
    uint64_t state = 3;
    Product x, other;
    Plan plan;
    random_product(&state, x);
    lay_out(&state, x, 1);
    CHECK_OK(pvg_plan_product(cards[H200].card, x, plan));
    for (size_t i = 0; i < COUNT(wrong); i++) {
        memcpy(other, x, sizeof other);
        other[wrong[i][0]] = wrong[i][1];
        CHECK_STATUS(pvg_plan_product(cards[H200].card, other, plan), PVG_ERROR_VALUE);
    }
    CHECK_STATUS(pvg_plan_product(NULL, x, plan), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_plan_product(cards[H200].card, NULL, plan), PVG_ERROR_VALUE);
    CHECK_STATUS(pvg_plan_product(cards[H200].card, x, NULL), PVG_ERROR_VALUE);
    x[PVG_PRODUCT_K] = 0; /* no terms: the tiled kernel stores zeros */
    CHECK_OK(pvg_plan_product(cards[H200].card, x, plan));
    CHECK_EQUAL(plan[PVG_PLAN_KERNEL], PVG_MATMUL_TILED);
}

/* No device is needed, so neither is begin(), which would look for one, nor finish(). */
int main(void) {
    check_program = "test_plan";
    check_section = "random_plans", random_plans();
    check_section = "longest_sides", longest_sides();
    check_section = "forced_kernels", forced_kernels();
    check_section = "what_is_no_product", what_is_no_product();
    return check_failures != 0;
}
