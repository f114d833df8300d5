// How a product is computed: which kernel, and every number that its launches are given but for
// addresses. Plain functions of a product's description and a card's, so that every machine can ask
// for the plan of any product on any card: pvg_plan_product does, for tests.
//
// The kernel, the cuts of k and the order in which their sums are added depend on the shape, the
// dtype and the precision of one item alone, and on what code the card can run: so do the bits of a
// result; of TF32 also on which operands lie along k. Tiles that give the same bits, copies, pairs
// of blocks and the size of grids may follow layouts, addresses, the number of items and of
// multiprocessors.
//
// Who decides what: rules.cu has the table of kernels; stretches.cu cuts long sums;
// ffma.cu, tensor.cu, emulated.cu, warps.cu and small.cu plan one family each; arrange.cu plans
// copies of operands; schedule.cu cuts tiles; cost.cuh has all measured numbers, tiles.cuh the
// sizes of tiles.
#pragma once
#include "kernels/matmul/plan/arrange.cuh"
#include "kernels/matmul/plan/card.cuh"
#include "kernels/matmul/plan/schedule.cuh"

namespace pvg::matmul {

struct Plan {
    int kernel = PVG_MATMUL_TILED; // pvg_matmul_kernel
    int tile = 0;                  // number in the kernel's table in tiles.cuh
    int rows = 0, columns = 0;     // of a tile of c
    // Of k: slices by the warps of a block, or one after another by its threads; splits by blocks,
    // which form a cluster (FFMA, DMMA) or leave their sums in the workspace (GEMV); splits that
    // are left to one block.
    int slices = 1, splits = 1, splits_in_sequence = 1;
    int depth = 0;          // of k: what splits and slices are counted in
    int stages = 0;         // DMMA, TENSOR: in shared memory at a time
    int64_t terms = 0;      // of k, in a split of GEMV
    Schedule schedule = {}; // of an item, where blocks walk through units
    int pair = 0;           // 1: two tiles, neighbours along n, share the loads of a
    int cluster = 1;        // blocks
    int64_t tiles = 0;      // of an item, or of its first part
    int part_rows = 0;      // of c, computed at a time
    int items = 1;          // the same of items
    int64_t blocks = 0;     // of the largest launch
    int threads = 0;        // of a block
    int shared_bytes = 0;   // that a block asks for
    OperandPlan a, b;
    bool b_in_classes = false; // TF32: TMA can read b as classes of rows only, see sm90/tensor.cuh
    bool transposed = false;   // TF32: computed as the product of the transposed matrices
    bool direct = false;       // FFMA: sums go to c from registers
    bool down = false;         // TENSOR: a pair's tiles are neighbours along m, and share b's loads
    int64_t workspace = 0;     // bytes, beside copies: sums that wait, pieces, counters
    bool overlap = false;      // launches may begin while the ones before them end
    // The time of all items by the family's model, in a unit of its own; 0: it has none.
    double reckoned = 0;
};

// Elements from row to row of the sums that FFMA parks in the workspace: rows begin at multiples of
// 32 bytes.
inline int64_t parked_stride(int64_t n) { return tiles(n, 8) * 8; }

// How long sums are cut into stretches: which kernel computes these, what their terms are a
// multiple of, and whether operands that lie otherwise than it wants are copied before it is
// called; else its own launch copies what it has to.
struct Stretching {
    int kernel, step;
    bool arranged;
};

// One way to compute a product. `can` says whether it is able to on a card (architecture, dtype,
// layout, sizes), not whether it is a good idea: that is in the table of rules.
struct Kernel {
    int code; // pvg_matmul_kernel
    const char *name;
    const char *code_of; // the least that it is part of: "sm_80", "sm_90a", "any"
    bool (*can)(const Gemm &, const Card &);
    void (*plan)(const Gemm &, const Card &, Plan *);
    // For kernels of which long sums are cut into stretches, by the shape alone: else null.
    int64_t (*stretches)(const Gemm &); // how many
    const Stretching *stretching;
};

// Of all kernels but TILED; null for a code that is none of theirs.
const Kernel *kernel_of(int code);
bool is_able(const Kernel &kernel, const Gemm &g, const Card &card);
// By the table of rules; null: the tiled one.
const Kernel *choose_by_rules(const Gemm &g, const Card &card);

// A k so long that one product would leave most of the card idle is cut into stretches of equal
// length, and a shorter one of what is left: products of their own, whose sums are added up after
// (simt/stretches.cu). How many there are depends on the shape alone.
struct Stretches {
    const Kernel *kernel = nullptr; // that computes them
    int64_t count = 1, terms = 0;   // of equal length; terms of each
    int64_t rest = 0;               // terms of the last one, which is computed beside the others
    // The product of the transposed matrices is computed, whose sums are transposed when they are
    // added up; perhaps of one stretch, all of k.
    bool turned = false;
    int64_t parts() const { return count + (rest > 0); }
};
Stretches stretches_of(const Kernel &kernel, const Gemm &g);
// A batch over one b whose items' rows lie evenly is one taller product: fewer rows of its tiles
// are empty, and b is read less often. Only where neither it nor an item cuts k, so that every
// element is the same sum. False if g is not such a batch.
bool fold_rows(const Kernel &kernel, const Gemm &g, Gemm *tall);
// `count` stretches as items of a product, from term `first` on, of one item of g; their sums are
// for a workspace.
Gemm stretch_of(const Gemm &g, int64_t first, int64_t terms, int64_t count);

// The form of a problem that the kernels of the table take, its batch's dimension `inner` as items
// (-1: no batch). False if there is none: no terms, m or n beyond 2^31.
bool describe_gemm(const Problem &problem, int inner, Gemm *g);

// A row of the table of rules in words, "dtype | precision | m, n and k | kernel | code"; null
// beyond the end. Valid until the thread's next call.
const char *rule_in_words(int number);

Plan plan_gemm(const Kernel &kernel, const Gemm &g, const Card &card);

// The same answers; of what this thread asked for lately, without reckoning again (recall.cu).
// `card` is that of g's device.
const Kernel *recall_choice(const Gemm &g, const Card &card);
Stretches recall_stretches(const Kernel &kernel, const Gemm &g);
Plan recall_plan(const Kernel &kernel, const Gemm &g, const Card &card);

// Of a TENSOR product that is computed in parts: rows of one of them, as for plan_gemm.
Plan plan_part(const Gemm &part, const Card &card, const Plan &whole);

// The tiled kernel's. Batches that are rows of one taller product become that first.
Plan plan_tiled(const Problem &problem);
void fold_batch(Product *p, int64_t *items);

} // namespace pvg::matmul
