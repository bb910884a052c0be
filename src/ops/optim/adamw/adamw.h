// AdamW (Loshchilov and Hutter 2019), PyTorch's form.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

struct AdamWResult {
  Value param, m, v;
};
// p ← p·(1 - lr·weight_decay);  m ← β1·m + (1-β1)·g;  v ← β2·v + (1-β2)·g²;
// p ← p - lr/(1-β1ᵗ) · m / (√v/√(1-β2ᵗ) + eps),  g = grad · grad_scale.
// param, grad, m, v: fp32, one shape; param, m, v are updated in place. hyper [4] fp32: lr, 1-β1ᵗ, √(1-β2ᵗ), grad_scale.
// `enabled` (rank-0 I32): 0 leaves everything as it is. Node: inputs param, grad, m, v, hyper, enabled; attrs beta1, beta2, eps,
// weight_decay; results update 0, 2, 3.
AdamWResult adamw(Value param, Value grad, Value m, Value v, Value hyper, Value enabled, double beta1, double beta2, double eps,
                  double weight_decay);
const OpDef& adamw_def();

}  // namespace hierarchos::ops
