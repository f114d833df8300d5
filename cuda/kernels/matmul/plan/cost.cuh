// What the planner knows of a card's speed: every number that weighs one kernel, tile or cut of k
// against another. All were measured on an H200 (132 multiprocessors, docs/measured), which has
// sm_90's rates; `python -m pyvecgpu bench model` measures how well they choose, and for each
// kernel the ratio of the time to what they reckon.
//
// Which numbers add up in which order follows from some of them, and so a result's bits: then it is
// said. Those are the same on every card.
#pragma once

namespace pvg::matmul::cost {

// Of the H200 and the H100 SXM. Which kernel and which cuts of k a product gets depends on its
// shape, and never on the device of the day: so do the bits of the result.
constexpr int tuned_multiprocessors = 132;
// Multiprocessors that clusters of 1 to 8 blocks reach, as they have to fit groups of them. (On an
// H200 31 clusters of 4 large blocks, or 16 of 8, took twice as long as 30, or 15; and 260 blocks
// in clusters of 4, two of them for each multiprocessor, two rounds. Of others 40 of 3, 23 of 5, 18
// of 6 and 16 of 7 are the first that do.)
constexpr int at_a_time[] = {tuned_multiprocessors, 132, 117, 120, 110, 102, 105, 120};

// ---- The table of rules: rules.cu. All decide about bits ----------------------------------------

constexpr double busy_enough =
    0.8; // the part of the card that a kernel's large tiles must keep busy
// FFMA_TMA reaches so much more of the units' speed than FFMA_128X128, where both fill the card.
constexpr double tma_advantage = 1.05;
constexpr int least_for_tma = 256; // of m, n and k, for tiles of 128 x 256
// The same where operands have to be copied first: 50 / n and 50 / m of the product's time.
constexpr int least_for_tma_copies = 1700;
// Of m, n and k, where no more than two chains of k add up: "ieee" of large products.
constexpr int least_for_halves = 256;
// The tiles of 64 x 64 are for m and n above this, or where there are few: elsewhere those of 64 x
// 128 are as fast.
constexpr int least_for_squares = 512, few_squares = 66;
// And for narrow products, of m or n from 65 to 200, by 5 % of 193 drawn ones.
constexpr int least_for_narrow = 64, most_for_narrow = 200;
// Tiles of 64 x 32 with eight slices: from so long a k on, and where they are fewer than so many.
constexpr int least_k_for_slices = 64, least_for_slices = 16, least_k_of_few_slices = 1536;
// Four slices instead, from such m and n on and up to such a k. (H200, 2026-11-30, 1,015
// drawn products that had eight: alone 1.00 of their time in the mean, 0.92 as batches.)
constexpr int least_for_four_slices = 129, most_k_for_four_slices = 1000;
// Of the tiles without slices, two of which share a multiprocessor: up to so many terms of k, where
// there are more tiles of 64 x 128 than these.
constexpr int short_k = 64, many_for_short_k = 264;
// Short sums: up to so many terms of k, and of all, a thread reads operands sooner itself; and what
// fits one stage needs no slices.
constexpr int shallow_k = 24, stage_k = 16;
constexpr double shallow_terms = 1e6;
// The same of all items, of operands that the tiled kernel reads as well as FFMA_128X128 or better;
// both give the same bits.
constexpr double little_for_tiled = 6e6;
// From which k, or of which product, tensor cores pay for 16-bit operands and for float64: for its
// narrow products, and for the others, of which one alone takes up to 1.4 times as long as by the
// tiled kernel, which the launch of the next hides, and a batch half as long.
constexpr int least_k_for_tensor = 36, least_k_for_dmma = 48, least_k_for_wide_dmma = 20;
constexpr int least_k_for_small_dmma = 9;
constexpr double tensor_terms = 4e6, dmma_terms = 2e7;
// Of m or n: up to which multiplying float32 takes no longer than copying it to rows for TF32.
constexpr int narrow_for_copies = 64;
// Multiply-adds from which on splitting both operands into 16-bit pieces pays: of m and n from 256
// on, and of narrow ones, whose operands are read as often by fewer tiles; more where tiles of 64 x
// 32 are one a multiprocessor.
constexpr double pieces_terms = 0.18e9, narrow_pieces_terms = 0.2e9, fp16_terms = 2e9;
constexpr double narrow_pieces_beside_slices = 2e9;
constexpr int least_for_pieces = 128, wide_for_pieces = 256, long_side_for_pieces = 640;
constexpr int least_k_for_pieces = 256;
// Where tiles of 64 x 32 are one a multiprocessor, "ieee" adds slices up, as fast up to here.
constexpr int least_k_beside_slices = 2048;

// ---- CUDA cores by cp.async: ffma.cu ------------------------------------------------------------

// What an element of c takes in tiles of a size, in percent of those of the same bits that read the
// least memory for what they compute.
constexpr int small_64x64 = 130, sliced_64x64 = 110, small_64x32 = 143, sliced_64x32 = 170;
// A copy of an operand takes so many percent of the product's time, over m or n.
constexpr int copying_rows = 5000;
// Of k, for a split of a tile's: where there are more tiles than `few`, and where there are not.
// Bits.
constexpr int split_terms = 512, split_terms_of_few = 128, few_tiles = 16;
constexpr int split_blocks = 32; // more splits than two, while blocks are no more than this. Bits

// What a batch takes by tiles that give the same bits, in us: `start`, then what a multiprocessor
// waits for each round of the blocks that it takes at a time, and what its units need for each
// block, both also for each k; and a block for each k of every operand that is read element by
// element. `turned`: a block whose sums are transposed.
//
// Fitted to drawn batches, each by every tile: to one half of 616 with sides of 33 to 128 and 4 to
// 29,503 items, of 207 with sides of 129 to 1,000, eight slices and 2 to 257 items (H200,
// 2026-11-29), and of 1,556 with sides of 129 to 600, four slices and 2 to 900 items (2026-11-30).
// Of the other halves what is chosen takes 1 % longer than the fastest of these tiles, 1.5 % with
// four slices.
struct BatchTime { double start, round, round_k, block, block_k, single_k, turned; };
constexpr BatchTime batch_128x128 = {1.02, 2.36, 0, 0, 0.0819, 0.0114, 1.16};
constexpr BatchTime batch_small_64x64 = {0.768, 4.9, 0.0104, 0, 0.0145, 0.00804, 0.438};
constexpr BatchTime batch_64x32 = {2.25, 3.8, 0, 0, 0.00557, 0.0031, 0};
constexpr BatchTime batch_sequence_64x64 = {0.35, 3.07, 0.016, 0, 0.026, 0, 0};
constexpr BatchTime batch_sequence4_64x64 = {1.6, 2.0, 0.016, 0.34, 0.0239, 0, 0};
constexpr BatchTime batch_64x64 = {2.2, 3.3, 0, 1.04, 0.0175, 0.00198, 0};
constexpr BatchTime batch_small_64x32 = {2.7, 4.65, 0.0011, 0, 0.00701, 0.00231, 0};
// Whole items: a block for each multiply-add of its threads, and more where a lies along k; and for
// each load of a thread.
constexpr BatchTime batch_items = {2.58, 1.25, 0.0152, 0, 0, 0, 0};
constexpr double items_product = 6.91e-6, items_along_k = 1.67e-7, items_load = 1.16e-4;
// A copy of an operand, which is a launch, and for each byte.
constexpr double batch_copy = 2.29, batch_copied = 9.53e-7;
// What ffma.cu reckons for larger products in a us of these.
constexpr double reckoned_of_us = 2e7;

// ---- float64 on tensor cores: warps.cu. Bits ----------------------------------------------------

// In stages: what a block needs beside its own, and what sharing a tile adds.
constexpr int dmma_block = 4, dmma_sharing = 3;
// What a stage of a tile takes of a large one's, by how many tiles share a multiprocessor: those of
// 64 x 64 wait for the second-level cache, and so do edges of c, where nothing is saved. And what a
// block needs beside its stages, where the others hide the rest. Fitted to 823 drawn products, each
// by every tile and split: what is chosen takes 4 % longer than the best of them (2026-11-30).
constexpr double dmma_stage[][5] = {
    {1},   {0.40, 0.63, 0.93}, {0.28, 0.39, 0.61, 0.67}, {0.24, 0.28, 0.40, 0.47, 0.59}, {0.60},
    {0.75}};
constexpr double dmma_beside[] = {0.97, 0.52, 0.47, 0.36, 0.56, 0.71};
// Splits have to pay, for a batch does better without; but long narrow products are seldom items.
constexpr double worth_splits_dmma = 0.6, worth_splits_of_narrow = 0.88;
constexpr int narrow_for_splits = 200, long_for_splits = 500;

// ---- 16 bits in small tiles: tensor_small.cu. Bits ----------------------------------------------

// Blocks that a multiprocessor takes at a time, by tile; from which k on several share a tile, and
// the least of k for one of these. As many share it as the card has room for at once: 3, 5, 6 or 7
// where 2 or 4 leave some of it empty. (H200, 2026-11-30, 1,848 drawn products, small tiles and no
// stretches: by powers of two they took 1.06 to 1.11 times as long as by the best of 1 to 8, by
// tile; by these 1.03 to 1.04.)
constexpr int small_blocks[] = {4, 3, 3}, least_k_to_split_small = 512, small_split_terms = 128;
// How many items of more than 64 rows or columns a batch has at least that goes by whole ones: a
// few more than there are multiprocessors. (H200, 2026-11-30, 659 drawn batches of 65 to 128: 1.15
// times as fast by tiles below, up to 1.35 by whole items above.)
constexpr int least_whole_items = 143;
// Up to which m, n and k products are small, and up to which if TMA could read rows of these
// lengths, which are multiples of 8; up to which m or n they are thin, and up to how many tiles of
// 64 x 64 there are few, where k is long: of so many elements of both operands at most, as larger
// tiles read more of them sooner, but for thin ones of short sums.
constexpr int most_for_small = 128, most_for_small_aligned = 64, most_k_for_small = 512;
constexpr int most_for_thin = 64, few_small_tiles = 16, long_k_for_small = 4096;
constexpr int least_k_for_thin_tiles = 256;
constexpr double most_read_for_few = 6e6;
// Of thin ones, by the rows that m or n are up to: where k and the longer of m and n are multiples
// of 8, and elsewhere, where larger tiles need copies. (H200, 2026-11-30, 1,848 drawn products in
// groups by how much is read: above these numbers larger tiles took 0.5 to 0.96 of the time, below
// them 1.01 to 1.6. Copies for up to 16 rows never paid: 1.15 and more.)
struct MostRead {
    int rows;
    double packs, others;
};
constexpr MostRead most_read_for_thin[] = {{16, 1.5e7, 1e300}, {32, 1e7, 1e7}, {64, 2e6, 5e6}};
// Of a longer k of which not all are multiples of 8, unless both operands lie along it: m or n up
// to the first number beside the other up to the second, or both up to the third. (H200,
// 2026-12-01, 22 drawn products: 1.2 times as fast in the mean, 0.97 to 1.78.)
constexpr int few_rows_of_both = 32, most_rows_of_both = 200, rows_of_a_tile = 64;

// ---- TF32 of operands that lie anywhere: tf32.cu. Bits, but where only tiles follow -------------

// Products whose operands are read as they lie, with m or n up to the first number and k from the
// second on (the items of batches are shorter, and better off with larger tiles), where that is
// reckoned to be faster than by wgmma. Fitted to 476 drawn products, each by every tile and by up
// to 16 cuts of k.
constexpr int most_for_tf32 = 200, least_k_for_tf32 = 1024, least_k_beside_transposing = 8192;
// Up to which k copies take longer than c, and up to which of products with m and n above so many,
// up to so many elements of c; from how many on where k fits one stage. Measured with 727 drawn
// products, and of large c with 126 more, each by every kernel.
constexpr int short_k_for_tf32 = 32, few_terms_for_tf32 = 64, narrow_for_tf32 = 256;
constexpr double most_written_for_tf32 = 2.4e6, least_written_within_a_stage = 1e7;
// Bytes a clock cycle that a multiprocessor loads and multiply-adds that it does, with one block or
// with two; how much longer loads of 8 and of 4 bytes take; what a round of blocks takes beside.
constexpr double tf32_load_rate[] = {17, 33}, tf32_multiply_rate[] = {260, 370};
constexpr double tf32_by_twos = 1.6, tf32_by_ones = 1.9, tf32_round_cycles = 4500;
// What a launch takes on the device and on the host, and another one for stretches; bytes a cycle
// of their sums.
constexpr double tf32_launch_cycles = 2000, tf32_host_cycles = 15000;
constexpr double tf32_adding_cycles = 3500, tf32_adding_host_cycles = 4400, tf32_sum_rate = 3500;
constexpr int least_stretch_tf32 = 128, step_tf32 = 32, most_rounds_of_tf32 = 2;

// ---- Tensor cores by wgmma: tensor.cu -----------------------------------------------------------

// Clock cycles to bring 128 bytes of a row from the second-level cache to a multiprocessor: more
// where rows begin within half a line of memory of 128 bytes, or even within a sector of 32.
constexpr double line_cycles = 2.4, sector_cycles = 3.4;
constexpr double unaligned_cycles = 4.8; // in classes of rows, too
constexpr double memory_rate = 2200;     // bytes a cycle, for all multiprocessors

// To fill the ring and to store the tile, and what a pair of blocks, which wait for each other,
// begins and ends later; for each slice of a tile that is cut; for the launch that clears the
// tickets. Bits, as far as slices are concerned. Of the tile of 192 rows: for which of 350 drawn
// products it was the faster one.
constexpr int large_tile_cycles = 2500;
constexpr int tile_cycles = 2000, pair_cycles = 1500, slice_cycles = 2800, ticket_cycles = 4700;

// Of narrow products, of m or n up to the first number: fitted to 1,100 drawn ones, each by every
// tile and by up to 16 cuts of k. Bytes a cycle for all multiprocessors, of the second-level cache
// and of memory; operands of less stay in the cache from call to call. As tile_cycles, of tiles of
// 128 rows and of 64, which take so much longer to load TF32 where they share a multiprocessor.
constexpr int most_for_narrow_tensor = 200;
constexpr double narrow_cache_rate = 3900, narrow_memory_rate = 1800, kept_bytes = 15e6;
constexpr int narrow_tile_cycles = 2500, small_tile_cycles = 1100;
constexpr double tf32_beside = 1.17;
// The same of 16 bits, of which small tiles take as long as others to fill and store. Cycles for
// 128 bytes of a row that begins with a sector of 32, of one of which nothing is known, and of one
// that begins within a sector; and how much longer these take where they are all that a tile has of
// it. Fitted to 1,146 drawn ones, each by every tile, alone and in pairs, and by up to 12 cuts of
// k; what is chosen takes 6 % longer than the least that was measured of some fifty ways, and took
// 11 % longer before. (H200, 2026-11-30)
constexpr double halves_aligned_cycles = 1.5, halves_line_cycles = 2.35,
                 halves_unaligned_cycles = 3, halves_short_runs = 1.22;
constexpr double halves_cache_rate = 4600, halves_memory_rate = 2075, halves_kept_bytes = 14.8e6;
constexpr int halves_tile_cycles = 390, halves_pair_cycles = 1390;
// From how many blocks of k on small tiles have as many stages as there is room for.
constexpr int least_for_all_stages = 32;

// What a launch takes on the device and on the host; the same of the one that copies operands,
// whose bytes a cycle follow, and of the one that adds up stretches.
constexpr double launch_cycles = 3000, host_cycles = 19500;
constexpr double copying_cycles = 1000, copying_host_cycles = 3300, copying_rate = 2100;
constexpr double adding_cycles = 4000, adding_host_cycles = 8800, sum_rate = 1500;
// The same of narrow products of 16 bits.
constexpr double halves_launch_cycles = 4900, halves_host_cycles = 15400;
constexpr double halves_adding_cycles = 480, halves_adding_host_cycles = 6060,
                 halves_sum_rate = 1565;

// One block of k, 128 bytes deep, of a tile of m x n. Shared memory passes 128 bytes a cycle: a and
// b when they come, and when they are read, b by each warpgroup. Of 128 x 256 and of 192 x 192
// the products take as long, else less.
constexpr int shared_memory_cycles(int m, int n) { return 2 * m + (1 + m / 64) * n; }

// The same if a comes as TF32 along m, by the rows of 128 bytes that a block asks TMA for: as
// measured, and the same whether they come from the cache or from memory. With n = 256 it is hidden
// by the products: as measured they take not 1,024 cycles but 1.3 times that, of all types.
constexpr double to_registers_cycles(int n, double rows) { return n < 256 ? 200 + 2.7 * rows : 0; }

// The products of such a block of TF32: a quarter of the units' time more than they take at least.
constexpr double tf32_cycles(int m, int n) { return m * n * 0.0407; }

constexpr int long_k = 32; // blocks of k from which on tiles may be cut. Bits

// A copy of an operand above the first number does not stay in the second-level cache until it is
// read; one of the second number, a part's, does. Bytes.
constexpr long long large_copy = 40 << 20, part_of_copy = 36 << 20;
// Elements of a copy from which on a launch that transposes c instead pays.
constexpr double saved_by_turning = 1e6;
// Rows in classes begin anywhere in the lines of memory, so that a tile's part of a row needs one
// line more, five instead of four: read more often than this, the operand is copied for less.
constexpr int most_readings = 24;

// ---- float32 from pieces: emulated.cu. Bits -----------------------------------------------------

// The part of a wide tile's speed that tiles of 192, 128 and 64 columns reach: a narrow tile's
// operands are read more often.
constexpr double of_192 = 1, of_128 = 0.97, of_64 = 0.85;
// What cutting k once more costs, in parts of the time of a tile of all of k.
constexpr double cutting(double k) { return 0.01 * 4096 / k; }

// ---- Stretches of k: stretches.cu. Bits ---------------------------------------------------------

// float32, in what a tile of 64 x 64 takes for a term of k, 23 ns: what a block needs to begin and
// to end; what a launch that adds up stretches takes, and of each sum; by how much stretches have
// to be faster. A stretch is a whole number of stages of the tiles, and rounds of blocks are no
// more than these.
constexpr double ffma_block_terms = 100, ffma_adding_terms = 175, ffma_terms_of_sum = 7e-5;
constexpr double worth_stretches = 0.95;
// Tiles of four warps take so much more than their part of it: alone on a multiprocessor, beside
// others.
constexpr double small_alone = 1.5, small_beside = 1.2;
constexpr int least_stretch_ffma = 128, step_ffma = 32, most_rounds_of_stretches = 8;
// The least of a stretch, and of k that is cut; the step, which their terms are a multiple of, lets
// them begin at 16 bytes; at lines of memory for TMA, if the operands' rows do.
constexpr int least_stretch_dmma = 256, step_dmma = 16, most_rounds_of_dmma = 4;
constexpr int least_k_of_stretches_dmma = 1024; // the items of batches are shorter: they pay twice
// By wgmma, in blocks of k (the items of batches are shorter), and rounds of blocks.
constexpr int least_stretch_tensor = 4, least_k_of_stretches_tensor = 64, step_tensor = 64;
constexpr int most_rounds_of_tensor = 4;
// float64, in stages of a large tile, 1.13 us: what the launch that adds up stretches takes, and of
// each sum.
constexpr double dmma_adding = 4, dmma_stages_of_sum = 4.8e-6;
// 16 bits in small tiles: from which terms of a block on a product is cut, and by how many fewer
// stretches have to make them, as adding them up takes as long.
constexpr int least_share_small = 512, least_stretch_small = 256, step_small = 64;
constexpr int small_adding_terms = 256;
// Of what blocks compute as a whole: terms of a stretch, and elements of both operands together, so
// many that with copies of them they do not fit the second-level cache.
constexpr int least_stretch_of_blocks = 512;
constexpr double least_read_of_blocks = 1.9e7;

// ---- Vectors: small.cu. Bits --------------------------------------------------------------------

constexpr int rows_for_a_warp = 2048; // of y: with fewer, several warps share a row
// Wanted where the matrix lies along k: two a multiprocessor; or four, of 64 KiB of it or more.
constexpr int row_blocks = 264, most_row_blocks = 528, row_block_shift = 16;
constexpr int column_blocks = 528; // else: four, or of 256 KiB of the matrix each
constexpr int column_block_shift = 18;

// ---- Thin products: small.cu. Bits --------------------------------------------------------------

// Blocks that the card takes at a time, and the bytes of the long operand that one of them reads
// while it begins and ends, and while the launch that adds sums up does. Alone on a multiprocessor
// it is a little faster. From so many terms of k on, and so many elements of the long operand.
constexpr int thin_blocks = 264, most_rounds_of_thin = 4;
constexpr int least_k_for_thin = 64, least_split_of_thin = 64;
constexpr double thin_block_bytes = 16e3, thin_adding_bytes = 48e3, thin_alone = 0.75;
constexpr double least_for_thin = 2e5;
// From how many rows, and elements of the longer operand, TF32 by tensor cores is faster. (H200,
// 2026-11-30: 200 drawn products of 9 to 16 rows that are, 1.16 times in the mean, up to twice; 307
// of 5 to 8 rows 0.8, and 84 of 9 to 16 with fewer elements 0.98.)
constexpr int least_side_for_tf32 = 9;
constexpr double least_read_for_tf32 = 7e6;
// Of float64, beside tensor cores, which are faster by a tenth for what is small, and by up to two
// thirds for more rows: up to so many, and from so many elements of the long operand on. Of
// shorter ones than measured nothing is known. Of more rows only beside so short a side and so
// short a k. (H200, 2026-12-01, 250 drawn products of 9 to 16 rows beside 9 to 499: 1.2 to 1.6
// times as fast by tensor cores above both numbers, 1.05 to 1.2 where k is short, 1.0 below both.)
constexpr int thin_side_of_doubles = 8, long_for_thin_dmma = 500;
constexpr int long_for_more_thin_doubles = 100, most_k_for_more_thin_doubles = 29999;
constexpr double least_for_thin_doubles = 3e6;

// ---- Few terms: small.cu ------------------------------------------------------------------------

// Blocks that a card has at least before one goes down more than 64 rows, and how many times as
// many it may then; from how many elements of c on, and from which m and n.
constexpr int outer_blocks = 792, most_outer_turns = 8;
constexpr double least_for_outer = 2e5;
constexpr int least_side_for_outer = 65;
// Up to how many terms; and of 16 bits, beside a c of no more than that. (H200, 2026-11-30, 223
// drawn products of 1 to 16: 1.03 to 1.65 times as fast where it is taken, by dtype and size of c,
// 0.68 to 0.96 elsewhere.)
constexpr int few_terms = 8, more_terms = 16;
constexpr double most_beside_more_terms = 4e6;
// Of float32, where no tensor cores are: as far as the kernel has terms for, beside a c of no more
// than that, of all items; and beside any if b lies along k and a does not, and rows of c are no
// multiples of 4 elements. (H200, 2026-11-30, 1,300 drawn products of 9 to 24 terms: 1.09 to 1.28
// times as fast as by tiles up to 2e6, 0.72 to 0.95 above it; of the others 1.04 to 1.15 from 17
// terms on, 0.94 to 1.12 below.)
constexpr double most_beside_float32_terms = 2e6;

// ---- The portable kernel: small.cu --------------------------------------------------------------

constexpr int tiled_blocks = 120; // that leave a large card busy

} // namespace pvg::matmul::cost
