// All steps of a recurrent layer in one launch, forth and back: see recurrent_sequence.cu.
#pragma once
#include "kernels/matmul/recurrent_cell.cuh"

namespace pvg::recurrent {

// Whether a layer has several steps, a small weight and not too many rows. Bits follow from it.
bool is_short_sequence(const Layer &layer);

// The first two steps in their order, of which the others follow: what moves on from the first to
// the second moves on as far each time. `weight` (gates width, width) may have any strides.
int sequence_forth(Call &call, const Layer &layer, const pvg_array *weight, const Step *steps);
// dhidden (rows, width): of the hidden numbers before all steps.
int sequence_back(Call &call, const Layer &layer, const pvg_array *weight, const StepBack *steps,
                  pvg_array *dhidden);

} // namespace pvg::recurrent
