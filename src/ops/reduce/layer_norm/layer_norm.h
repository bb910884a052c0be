// Layer normalisation (Ba et al. 2016) over the last axis, biased variance. Group norm is this over a reshaped value.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// y = (x - mean) · rstd · weight + bias. weight and bias [N], either or both absent.
// Node: inputs x, [weight], [bias]; results y, mean, rstd (both fp32, x's shape without the last axis);
// attrs eps, weight, bias (1 when that operand is there). Input contiguous.
Value layer_norm(Value x, std::optional<Value> weight, std::optional<Value> bias, double eps);

const OpDef& layer_norm_def();
// dx. Node: inputs dy, x, mean, rstd, [weight]; result dx. (Gradients of weight and bias are pointwise and sums.)
const OpDef& layer_norm_backward_def();

}  // namespace hierarchos::ops
