// What reductions share beside pvg_reduce's own list: variances and exponentials go the same ways
// through rows, columns and chunks.
#pragma once
#include "arrays/call.cuh"
#include "arrays/layout.cuh"
#include "arrays/operation.cuh"

namespace pvg::reduce {

struct Result; // reduce_accumulators.cuh

// Elements or totals whose axes lie in any order: those of the results, as operand 0, beside where
// their elements begin; and the reduced ones.
struct AnyAxes {
    Walk<2> kept;
    Walk<1> reduced;
};

// [outer][length][inner], strides in elements; inner is 1 for rows.
struct Layout {
    int64_t outer = 1, length = 1, inner = 1;
    int64_t outer_stride = 0, length_stride = 1, inner_stride = 1;
    int64_t outer_result_stride = 1, inner_result_stride = 1;
    const AnyAxes *anywhere = nullptr; // the axes instead, with so many reduced elements in length
    // What is done with the totals [outer][inner], of which `others` each make one result: axes as
    // steps from total to total. Those of the outer items step by `inner` or more.
    const AnyAxes *after = nullptr;
    int64_t others = 1;
    // Every `others` neighbours of inner make one result: they are reduced as well.
    bool nested = false;
};

// A reduction: what is launched for elements that lie in a layout, and what results become.
struct Reduction {
    const Operation &operation;
    int (*launch)(Call &call, const Operation &operation, const pvg_array *a, const Layout &layout,
                  const Result &result);
    int widen = -1; // the dtype that bool and integers are cast to first; -1: they are not
    int gives = -1; // the result's dtype; -1: the operation's
    int kind = 0;   // see Result
    double ddof = 0;
    bool large = false; // of what is carried from element to element are more than 16 bytes
};

// Whether [outer][length][inner], of which every `others` neighbours make one result, is better
// taken as such than along one axis after the other. Elements have `item` bytes; `large`: of what
// is carried from one to the next are more than 16.
bool is_better_nested(const Layout &p, int64_t item, bool large);
// Which axes are meant, one flag an axis. Errors: AXIS, VALUE.
int mark_axes(const Operation &operation, const pvg_array *a, int naxes, const int *axes,
              bool *reduced);
// pvg_reduce by this reduction. Errors: AXIS, VALUE, TYPE, MEMORY.
int run(Call &call, const Reduction &reduction, const pvg_array *a, int naxes, const int *axes,
        bool keepdims, pvg_array *out, Output *result);

// The logarithm of the sum of exp(a), of floats and integers.
int logarithm_of_sums(Call &call, const pvg_array *a, int naxes, const int *axes, bool keepdims,
                      pvg_array *out, Output *result);
// Of floats: the largest and the sum of exp(a - largest), or with `logarithm` the logarithm of
// that, as the parts of complex numbers (of halves as of float32); the axes are kept. The second is
// NaN where the largest is infinite.
int exponential_sums(Call &call, const pvg_array *a, int naxes, const int *axes, bool logarithm,
                     Output *result);

} // namespace pvg::reduce
