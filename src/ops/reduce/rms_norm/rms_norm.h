// Root-mean-square normalisation (Zhang and Sennrich 2019).
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

struct NormResult {
  Value y;     // x's shape and dtype
  Value rstd;  // fp32, x's shape without the last axis
};

// y = x · rstd · (weight + weight_offset), rstd = 1/√(mean(x²) + eps) over the last axis; statistics in fp32.
// weight [N] or none. Node: inputs x, [weight]; results y, rstd; attrs eps, weight_offset. Input contiguous.
NormResult rms_norm_with_stats(Value x, std::optional<Value> weight, double eps, double weight_offset = 0);
Value rms_norm(Value x, std::optional<Value> weight, double eps, double weight_offset = 0);

const OpDef& rms_norm_def();
// dx of the above. Node: inputs dy, x, rstd, [weight]; result dx; attr weight_offset.
// (The weight's gradient is a pointwise product and a sum over rows.)
const OpDef& rms_norm_backward_def();

}  // namespace hierarchos::ops
