// Which kernel computes a product: the first row of the table below whose condition holds and whose
// kernel is able to. A condition looks at one item of a batch, never at their number, at addresses
// or at memory: so an item of a batch is computed as the product of that item alone would be. (Of
// kernels that give the same bits the layout and the number may choose.) Each row has its condition
// in words, from which the README of the products has its table.
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include <limits.h>
#include <stdio.h>

namespace pvg::matmul {

namespace {

// ---- Conditions ---------------------------------------------------------------------------------

int smaller(int a, int b) { return a < b ? a : b; }
int larger(int a, int b) { return a < b ? b : a; }
bool all_at_least(const Gemm &g, int size) { return g.m >= size && g.n >= size && g.k >= size; }
double terms(const Gemm &g) { return static_cast<double>(g.m) * g.n * g.k; }

bool is_vector(const Gemm &g) { return g.m == 1 || g.n == 1; }
bool is_mini(const Gemm &g) { return g.m <= 16 && g.n <= 16 && g.k <= 16; }
bool is_tiny(const Gemm &g) { return g.m <= 32 && g.n <= 32 && g.k <= 32; }
// Every element of the long operand is used few times.
bool is_thin(const Gemm &g) {
    const double longer = g.m < g.n ? g.n : g.m;
    return smaller(g.m, g.n) <= thin_side && g.k >= cost::least_k_for_thin &&
           longer * static_cast<double>(g.k) >= cost::least_for_thin;
}
// The same of "tf32", where tensor cores read a long operand faster than CUDA cores multiply many
// rows by it.
bool is_thin_of_floats(const Gemm &g) {
    const double longer = g.m < g.n ? g.n : g.m;
    return is_thin(g) &&
           !(g.precision == PVG_PRECISION_TF32 && smaller(g.m, g.n) >= cost::least_side_for_tf32 &&
             longer * static_cast<double>(g.k) >= cost::least_read_for_tf32);
}
// The same of float64, where tensor cores read small operands, and multiply more rows, faster.
bool is_thin_of_doubles(const Gemm &g) {
    const double longer = g.m < g.n ? g.n : g.m;
    if (smaller(g.m, g.n) > cost::thin_side_of_doubles)
        return is_thin(g) && longer < cost::long_for_more_thin_doubles &&
               g.k <= cost::most_k_for_more_thin_doubles;
    const bool is_large = longer * static_cast<double>(g.k) >= cost::least_for_thin_doubles;
    return is_thin(g) && (is_large || longer < cost::long_for_thin_dmma);
}
// Of tensor cores without another precision: below, starting them takes longer than multiplying.
bool pays_tensor_cores(const Gemm &g) {
    return g.k >= cost::least_k_for_tensor || terms(g) >= cost::tensor_terms;
}
// Which the smallest tiles read and multiply at once.
bool is_small_square(const Gemm &g) {
    return smaller(g.m, g.n) > 16 && g.m <= 32 && g.n <= 32 && g.k >= cost::least_k_for_small_dmma;
}
bool pays_dmma(const Gemm &g) {
    if (is_small_square(g)) return true;
    const int least_k =
        smaller(g.m, g.n) > 32 ? cost::least_k_for_wide_dmma : cost::least_k_for_dmma;
    return g.k >= least_k || terms(g) >= cost::dmma_terms;
}
// So short a k that filling stages of shared memory by cp.async would be most of the time.
bool is_within_a_stage(const Gemm &g) { return g.k <= cost::stage_k; }
double written(const Gemm &g) { return double(g.m) * g.n; }
// Not of float32 that is to be rounded to 16 bits, whose range is another one.
bool has_a_large_c(const Gemm &g) {
    return multiplied_type(g) == g.dtype && smaller(g.m, g.n) >= cost::least_side_for_outer &&
           written(g) >= cost::least_for_outer;
}
// Of 16 bits some more, up to what tensor cores do sooner.
bool has_few_terms(const Gemm &g) {
    const bool has_more = is_of_halves(g) && written(g) <= cost::most_beside_more_terms;
    return g.k <= (has_more ? cost::more_terms : cost::few_terms) && has_a_large_c(g);
}
// TILED, FFMA_128X128 and OUTER give the same bits up to a stage of terms: there the number of
// items may choose. Beyond it other tiles add slices of k up.
bool has_some_terms(const Gemm &g) {
    const bool is_turned = !g.a_along_k && g.b_along_k && g.n % 4 != 0;
    const int items = is_within_a_stage(g) ? g.items : 1;
    return g.k <= outer_terms_of_float32 && has_a_large_c(g) &&
           (is_turned || written(g) * items <= cost::most_beside_float32_terms);
}
bool is_wide(const Gemm &g) { return smaller(g.m, g.n) > 32; }
bool is_shallow(const Gemm &g) {
    if (is_within_a_stage(g) && is_wide(g)) return false; // has a line of its own
    return g.k <= cost::shallow_k && terms(g) < cost::shallow_terms;
}
// TILED and FFMA_128X128 give the same bits, and so the number of items may choose, too.
bool is_little_within_a_stage(const Gemm &g) {
    const bool fits_tiled = (g.a_along_k && g.b_along_k) || wants_copies(g);
    return is_within_a_stage(g) && is_wide(g) &&
           terms(g) * g.items < (fits_tiled ? cost::little_for_tiled : cost::shallow_terms);
}
// Where tiles of 64 x 32 are one for each multiprocessor: "ieee" adds slices of k up.
bool adds_slices(const Gemm &g) {
    const int64_t count = tiles(g.m, 64) * tiles(g.n, 32);
    const int least_k =
        count < cost::least_for_slices ? cost::least_k_of_few_slices : cost::least_k_for_slices;
    return g.k >= least_k && count <= cost::tuned_multiprocessors;
}
// Four slices are as fast there, and batches of them faster; eight, of a longer k or narrower c.
bool adds_eight_slices(const Gemm &g) {
    const bool are_four =
        smaller(g.m, g.n) >= cost::least_for_four_slices && g.k <= cost::most_k_for_four_slices;
    return adds_slices(g) && !are_four;
}
// Up to half of the card, or where the squares' halves would fill it, which are tiles of the same
// bits.
bool has_few_squares(const Gemm &g) {
    return tiles(g.m, 64) * tiles(g.n, 64) <= cost::few_squares || adds_slices(g);
}
// Large enough that splitting the operands is little beside multiplying them. Short slices are as
// accurate as what tensor cores give, or more, and as fast.
bool pays_splitting(const Gemm &g) {
    const int least_k = adds_slices(g) ? cost::least_k_beside_slices : cost::least_k_for_pieces;
    if (!all_at_least(g, cost::least_for_pieces) || g.k < least_k) return false;
    if (smaller(g.m, g.n) >= cost::wide_for_pieces) return terms(g) >= cost::pieces_terms;
    const double least =
        adds_slices(g) ? cost::narrow_pieces_beside_slices : cost::narrow_pieces_terms;
    return terms(g) >= least &&
           (g.m > cost::long_side_for_pieces || g.n > cost::long_side_for_pieces);
}
bool pays_fp16x3(const Gemm &g) {
    return g.precision == PVG_PRECISION_FAST32 && pays_splitting(g) && terms(g) >= cost::fp16_terms;
}
bool pays_bf16x6(const Gemm &g) { return g.precision != PVG_PRECISION_IEEE && pays_splitting(g); }

// Batches of these are many, and tiles without slices read the least for what they compute.
bool is_a_block(const Gemm &g) { return is_wide(g) && g.m <= 128 && g.n <= 128 && g.k <= 256; }
// Whether FFMA_TMA can read the operands where they are. It and FFMA_128X128 give the same bits.
bool has_rows_for_tma(const Gemm &g) {
    const int64_t row_of_a = g.a_along_k ? g.k : g.m;
    return !g.b_along_k && (row_of_a | g.lda | g.n | g.ldb) % 4 == 0;
}
// Copies of operands cost a part of the product that falls with m and n.
bool pays_tma(const Gemm &g) {
    const int least = has_rows_for_tma(g) ? cost::least_for_tma : cost::least_for_tma_copies;
    return smaller(g.m, g.n) >= least && g.k >= cost::least_for_tma &&
           fill(g, 128, 256) >= cost::busy_enough &&
           cost::tma_advantage * fill(g, 128, 256) >= fill(g, 128, 128);
}
// Unless the larger tiles leave less of the card idle; of narrow products they never do.
bool wants_squares(const Gemm &g) {
    const int least = smaller(g.m, g.n);
    return (least > cost::least_for_narrow && least <= cost::most_for_narrow) ||
           (least > cost::least_for_squares && fill(g, 64, 128) < cost::busy_enough);
}
bool has_few_small_tiles(const Gemm &g) {
    return tiles(g.m, 64) * tiles(g.n, 64) <= cost::few_small_tiles &&
           g.k >= cost::long_k_for_small;
}
bool is_read_by_thin_tiles(const Gemm &g, double read) {
    const int least = smaller(g.m, g.n), most = larger(g.m, g.n);
    for (const cost::MostRead &x : cost::most_read_for_thin)
        if (least <= x.rows) return read <= ((g.k | most) % 8 == 0 ? x.packs : x.others);
    return false;
}
// Whose operands are read once or a few times, and take longer to be copied.
bool has_few_rows_of_both(const Gemm &g) {
    const int least = smaller(g.m, g.n), most = larger(g.m, g.n);
    const bool are_few = least <= cost::few_rows_of_both && most <= cost::most_rows_of_both;
    return (are_few || most <= cost::rows_of_a_tile) && !(g.a_along_k && g.b_along_k);
}
// Of 16 bits: what is loaded and multiplied at once by a few warps, or read once.
bool has_small_tiles(const Gemm &g) {
    const int least = smaller(g.m, g.n), most = larger(g.m, g.n);
    const bool aligned = (g.m | g.n | g.k) % 8 == 0;
    const int small = aligned ? cost::most_for_small_aligned : cost::most_for_small;
    const double read = (double(g.m) + g.n) * double(g.k);
    return is_read_by_thin_tiles(g, read) || (most <= small && g.k <= cost::most_k_for_small) ||
           (least <= cost::most_for_thin && g.k < cost::least_k_for_thin_tiles) ||
           (has_few_small_tiles(g) && read <= cost::most_read_for_few) ||
           (!aligned && (has_few_rows_of_both(g) || is_long_block(g)));
}
// The same beside tiles of 128 x 128 alone.
bool leaves_large_tiles_empty(const Gemm &g) {
    return smaller(g.m, g.n) <= cost::most_for_thin || has_few_small_tiles(g);
}
// What a tile needs to begin and to end is most of its time, and another beside it hides that.
bool is_short(const Gemm &g) {
    return g.k <= cost::short_k &&
           tiles(g.m, 64) * tiles(g.n, 128) > static_cast<int64_t>(cost::many_for_short_k);
}
// TF32 rows that TMA cannot read are copied first, which of a narrow product of short sums takes
// longer than to multiply as they are, by CUDA cores. And what fits one stage there takes no longer
// than to write c.
bool pays_rounding(const Gemm &g) {
    if (g.precision != PVG_PRECISION_TF32) return is_rounded(g);
    const bool is_narrow =
        smaller(g.m, g.n) <= cost::narrow_for_copies && g.k < cost::least_k_for_tf32;
    return !is_within_a_stage(g) && !(is_narrow && g.k % 4 != 0);
}
// TF32 operands of which a tile of 128 rows or columns would be half empty.
bool is_read_few_times(const Gemm &g) {
    return g.precision == PVG_PRECISION_TF32 && smaller(g.m, g.n) <= cost::most_for_tf32 &&
           g.k >= cost::least_k_for_tf32;
}
bool is_tf32_of_few(const Gemm &g, int least_k, int most_k) {
    return g.precision == PVG_PRECISION_TF32 && g.k >= least_k && g.k <= most_k;
}
bool is_wide_for_few_terms(const Gemm &g) { return smaller(g.m, g.n) > cost::narrow_for_tf32; }
// TF32 operands of so few terms that c, or the launch, takes longer than what larger tiles save:
// copies for them would take longer still, and a large c is written fastest by larger tiles.
bool is_little_beside_c(const Gemm &g) {
    const int most_k = is_wide_for_few_terms(g) ? cost::few_terms_for_tf32 : cost::short_k_for_tf32;
    return is_tf32_of_few(g, cost::stage_k + 1, most_k) &&
           !(is_wide_for_few_terms(g) && written(g) > cost::most_written_for_tf32);
}
// Of a large c: TMA wants copies of rows of other lengths than multiples of 4, and wgmma operands
// along k, or b alone.
bool is_for_warps(const Gemm &g) {
    if (!is_wide_for_few_terms(g)) return false;
    if (is_tf32_of_few(g, 1, cost::stage_k))
        return written(g) >= cost::least_written_within_a_stage;
    if (written(g) <= cost::most_written_for_tf32) return false;
    const bool is_copied = (g.m | g.n | g.k) % 4 != 0 && g.k <= cost::short_k_for_tf32;
    return is_tf32_of_few(g, cost::stage_k + 1, cost::few_terms_for_tf32) &&
           (is_copied || (!g.a_along_k && !g.b_along_k));
}
// They are read so few times that larger tiles, and copies for them, do not pay; a transposed copy
// of a long one never does.
bool pays_as_it_lies(const Gemm &g) {
    if (!is_read_few_times(g)) return false;
    if (!g.a_along_k && !g.b_along_k && g.k >= cost::least_k_beside_transposing) return true;
    return cut_tensor_tf32(g).cycles < cut_tensor(g).cycles;
}
bool always(const Gemm &) { return true; }

// ---- The table ----------------------------------------------------------------------------------

struct Rule {
    int kernel;
    bool (*when)(const Gemm &);
    const char *precision, *words; // the condition
};

const char float32_words[] = "float32", float64_words[] = "float64",
           half_words[] = "float16, bfloat16", any_words[] = "any";
const char some_terms_words[] =
    "k at most 24, m and n at least 65, m n at least 2e5, and at most 2e6 (that of all items, if k "
    "is at most 16) unless b lies along k, a does not, and n is no multiple of 4";
const char few_terms_words[] = "k at most 8, m and n at least 65, and m n at least 2e5",
           halves_of_few_words[] = "k at most 8, or 16 if m n is at most 4e6, m and n at least 65, "
                                   "and m n at least 2e5";
const char rounded_words[] = "\"tf32\", \"bf16\", \"fp16\"",
           tf32_words[] =
               "any; of \"tf32\" if k is above 16, and with m or n at most 64 and k below 1,024 a "
               "multiple of 4";

// "ieee" begins where the others end.
const Rule float32_rules[] = {
    {PVG_MATMUL_GEMV, is_vector, "any", "m or n is 1"},
    {PVG_MATMUL_TINY, is_tiny, "any", "all at most 32"},
    {PVG_MATMUL_OUTER, has_few_terms, "not \"bf16\", \"fp16\"", few_terms_words},
    {PVG_MATMUL_THIN, is_thin_of_floats, "any",
     "m or n at most 16, k at least 64, and k times the longer of m and n at least 2e5; of "
     "\"tf32\" below 7e6, unless m or n is at most 8"},
    {PVG_MATMUL_TENSOR_TF32, is_little_beside_c, "\"tf32\"",
     "k from 17 to 32, or to 64 if m and n are above 256; but not those if m n is above 2.4e6"},
    {PVG_MATMUL_TENSOR_SM80, is_for_warps, "\"tf32\"",
     "m and n above 256, and k at most 16 and m n at least 1e7; or m n above 2.4e6 and k from 17 "
     "to 64 if neither a nor b lies along k, or to 32 if not all are multiples of 4"},
    {PVG_MATMUL_TENSOR_TF32, pays_as_it_lies, "\"tf32\"",
     "m or n at most 200, k at least 1,024, and reckoned to be faster than the next line; or at "
     "least 8,192 if neither a nor b lies along k"},
    {PVG_MATMUL_TENSOR, pays_rounding, rounded_words, tf32_words},
    {PVG_MATMUL_TENSOR_TF32, is_read_few_times, "\"tf32\"",
     "m or n at most 200, k at least 1,024: on cards before sm_90, which the line above needs"},
    {PVG_MATMUL_TENSOR_SM80, pays_rounding, rounded_words, tf32_words},
    {PVG_MATMUL_THIN, is_thin, "\"tf32\"",
     "m or n at most 16, k at least 64, and k times the longer of m and n at least 2e5: what is "
     "for tensor cores, on cards without, or with short sums of other lengths than multiples of 4"},
    {PVG_MATMUL_FP16X3, pays_fp16x3, "\"fast32\"", "large, see below, and m n k at least 2e9"},
    {PVG_MATMUL_BF16X6, pays_bf16x6, "\"float32\", \"fast32\"", "large, see below"},
    {PVG_MATMUL_OUTER, has_some_terms, "any of the others", some_terms_words},
    {PVG_MATMUL_TILED, is_little_within_a_stage, "any of the others",
     "k at most 16, m and n above 32, and m n k of all items below 1e6, or 6e6 if a and b lie "
     "along "
     "k or have rows that are no multiples of 4 elements"},
    {PVG_MATMUL_FFMA_128X128, is_a_block, "any of the others",
     "m and n from 33 to 128, k at most 256"},
    {PVG_MATMUL_TILED, is_shallow, "any of the others",
     "k at most 24, and m n k below 1e6, unless m and n are above 32 and k is at most 16"},
    {PVG_MATMUL_FFMA_128X128, is_within_a_stage, "any of the others", "k at most 16"},
    {PVG_MATMUL_FFMA_TMA, pays_tma, "any of the others",
     "m and n at least 256 (1700 if b lies along k, or rows are no multiples of 4 elements), k at "
     "least 256, and tiles of 128 x 256 keep 80 % of the card busy and hardly less than tiles of "
     "128 x 128"},
    {PVG_MATMUL_FFMA_128X128, adds_halves, "any of the others",
     "m and n at least 256, and tiles of 128 x 128 keep 80 % of the card busy"},
    {PVG_MATMUL_FFMA_64X32, adds_eight_slices, "any of the others",
     "at most 132 tiles of 64 x 32, one for each multiprocessor, and k at least 64, or 1,536 if "
     "there are less than 16; but not if m and n are above 128 and k at most 1,000"},
    {PVG_MATMUL_FFMA_128X128, is_short, "any of the others",
     "k at most 64, and more than 264 tiles of 64 x 128"},
    {PVG_MATMUL_FFMA_64X64, wants_squares, "any of the others",
     "the smaller of m and n from 65 to 200; or both above 512, and tiles of 64 x 128 keep less "
     "than 80 % of the card busy"},
    {PVG_MATMUL_FFMA_64X64, has_few_squares, "any of the others",
     "at most 66 tiles of 64 x 64, or as many of 64 x 32 as for `ffma_64x32`"},
    {PVG_MATMUL_FFMA_64X128, always, "any of the others", "any"},
    {PVG_MATMUL_FFMA_128X128, always, "any of the others",
     "any: on sm_80, whose blocks cannot form the clusters that the lines above need"},
};
const Rule half_rules[] = {
    {PVG_MATMUL_GEMV, is_vector, "any", "m or n is 1"},
    {PVG_MATMUL_TINY, is_tiny, "any", "all at most 32"},
    {PVG_MATMUL_OUTER, has_few_terms, "any", halves_of_few_words},
    {PVG_MATMUL_TENSOR_SMALL, has_small_tiles, "any",
     "m or n at most 16, and (m + n) k at most 1.5e7, or any if k or the longer of m and n is no "
     "multiple of 8; or at most 32, and (m + n) k at most 1e7; or at most 64, and k below 256, or "
     "(m + n) k at most 2e6, or 5e6 if k or the longer is no multiple of 8; or m and n at most 128 "
     "(64 if m, n and k are multiples of 8), and k at most 512; or at most 16 tiles of 64 x 64, k "
     "at least 4,096, and (m + n) k at most 6e6; or m and n from 33 to 128, one above 64, "
     "(m + n) k at least 1.9e7, and not all are multiples of 8; or both at most 64, or one at most "
     "32 and the other at most 200, not all are multiples of 8, and a and b do not both lie along "
     "k"},
    {PVG_MATMUL_TENSOR, pays_tensor_cores, "any", "k at least 36, or m n k at least 4e6"},
    {PVG_MATMUL_TENSOR_SMALL, leaves_large_tiles_empty, "any",
     "m or n at most 64, or at most 16 tiles of 64 x 64 and k at least 4,096: on cards before "
     "sm_90, which the line above needs"},
    {PVG_MATMUL_TENSOR_SM80, pays_tensor_cores, "any", "k at least 36, or m n k at least 4e6"},
};
const Rule float64_rules[] = {
    {PVG_MATMUL_GEMV, is_vector, "any", "m or n is 1"},
    {PVG_MATMUL_TINY, is_mini, "any", "all at most 16"},
    {PVG_MATMUL_OUTER, has_few_terms, "any", few_terms_words},
    {PVG_MATMUL_THIN, is_thin_of_doubles, "any",
     "m or n at most 8, k at least 64, and k times the longer of m and n at least 3e6, or 2e5 if "
     "both are below 500; or m or n at most 16, the other below 100, k below 30,000, and k times "
     "the longer at least 2e5"},
    {PVG_MATMUL_DMMA, pays_dmma, "any",
     "k at least 48, or 20 if m and n are above 32, or 9 if they are from 17 to 32; or m n k at "
     "least 2e7"},
    {PVG_MATMUL_THIN, is_thin, "any",
     "m or n at most 16, k at least 64, and k times the longer of m and n at least 2e5: on cards "
     "before sm_80, which the line above needs"},
};
const Rule other_rules[] = {{PVG_MATMUL_TILED, always, "any", "any"}}; // and what no row takes

struct Rules {
    const char *dtypes;
    const Rule *rules;
    int count;
};
template <int N> constexpr Rules rules_for(const char *dtypes, const Rule (&rules)[N]) {
    return {dtypes, rules, N};
}
const Rules all_rules[] = {
    rules_for(float32_words, float32_rules), rules_for(half_words, half_rules),
    rules_for(float64_words, float64_rules), rules_for(any_words, other_rules)};

const Rules &rules_of(int dtype) {
    switch (dtype) {
    case PVG_FLOAT32: return all_rules[0];
    case PVG_FLOAT16:
    case PVG_BFLOAT16: return all_rules[1];
    case PVG_FLOAT64: return all_rules[2];
    }
    return all_rules[3];
}

// ---- Kernels by code ----------------------------------------------------------------------------

const Stretching stretching_ffma = {PVG_MATMUL_FFMA_64X64, cost::step_ffma, true};
const Stretching stretching_dmma = {PVG_MATMUL_DMMA, cost::step_dmma, true};
const Stretching stretching_tensor = {PVG_MATMUL_TENSOR, cost::step_tensor, false};
const Stretching stretching_tf32 = {PVG_MATMUL_TENSOR_TF32, cost::step_tf32, true};
const Stretching stretching_small = {PVG_MATMUL_TENSOR_SMALL, cost::step_small, true};

const Kernel kernels[] = {
    {PVG_MATMUL_FFMA_128X128, "ffma_128x128", "sm_80", can_ffma_128x128, plan_ffma_128x128,
     stretches_ffma_128x128, &stretching_ffma},
    {PVG_MATMUL_FFMA_64X128, "ffma_64x128", "sm_80", can_ffma_64x128, plan_ffma_64x128,
     stretches_ffma_64x128, &stretching_ffma},
    {PVG_MATMUL_FFMA_64X64, "ffma_64x64", "sm_80", can_ffma_64x64, plan_ffma_64x64,
     stretches_ffma_64x64, &stretching_ffma},
    {PVG_MATMUL_FFMA_64X32, "ffma_64x32", "sm_80", can_ffma_64x32, plan_ffma_64x32,
     stretches_ffma_64x32, &stretching_ffma},
    {PVG_MATMUL_FFMA_TMA, "ffma_tma", "sm_90a", can_ffma_tma, plan_ffma_tma, nullptr, nullptr},
    {PVG_MATMUL_TENSOR, "tensor", "sm_90a", can_tensor, plan_tensor, stretches_tensor,
     &stretching_tensor},
    {PVG_MATMUL_TENSOR_SM80, "tensor_sm80", "sm_80", can_tensor_sm80, plan_tensor_sm80, nullptr,
     nullptr},
    {PVG_MATMUL_TENSOR_TF32, "tensor_tf32", "sm_80", can_tensor_tf32, plan_tensor_tf32,
     stretches_tensor_tf32, &stretching_tf32},
    {PVG_MATMUL_TENSOR_SMALL, "tensor_small", "sm_80", can_tensor_small, plan_tensor_small,
     stretches_tensor_small, &stretching_small},
    {PVG_MATMUL_BF16X6, "bf16x6", "sm_90a", can_pieces, plan_bf16x6, nullptr, nullptr},
    {PVG_MATMUL_FP16X3, "fp16x3", "sm_90a", can_pieces, plan_fp16x3, nullptr, nullptr},
    {PVG_MATMUL_DMMA, "dmma", "sm_80", can_dmma, plan_dmma, stretches_dmma, &stretching_dmma},
    {PVG_MATMUL_GEMV, "gemv", "any", can_gemv, plan_gemv, nullptr, nullptr},
    {PVG_MATMUL_TINY, "tiny", "any", can_tiny, plan_tiny, nullptr, nullptr},
    {PVG_MATMUL_THIN, "thin", "any", can_thin, plan_thin, nullptr, nullptr},
    {PVG_MATMUL_OUTER, "outer", "any", can_outer, plan_outer, nullptr, nullptr},
};

} // namespace

const Kernel *kernel_of(int code) {
    for (const Kernel &kernel : kernels)
        if (kernel.code == code) return &kernel;
    return nullptr;
}

bool is_able(const Kernel &kernel, const Gemm &g, const Card &card) {
    return (g.k <= INT_MAX || kernel.code == PVG_MATMUL_GEMV) && kernel.can(g, card);
}

const Kernel *choose_by_rules(const Gemm &g, const Card &card) {
    const Rules &table = rules_of(g.dtype);
    for (int i = 0; i < table.count; i++) {
        const Rule &rule = table.rules[i];
        if (!rule.when(g)) continue;
        if (rule.kernel == PVG_MATMUL_TILED) break; // which is able to compute anything
        const Kernel *kernel = kernel_of(rule.kernel);
        if (kernel && is_able(*kernel, g, card)) return kernel;
    }
    return nullptr;
}

const char *rule_in_words(int number) {
    thread_local char text[800];
    for (const Rules &table : all_rules) {
        if (number < 0) break;
        if (number >= table.count) {
            number -= table.count;
            continue;
        }
        const Rule &rule = table.rules[number];
        const Kernel *kernel = kernel_of(rule.kernel);
        snprintf(text, sizeof text, "%s | %s | %s | %s | %s", table.dtypes, rule.precision,
                 rule.words, kernel ? kernel->name : "tiled", kernel ? kernel->code_of : "any");
        return text;
    }
    return nullptr;
}

} // namespace pvg::matmul
