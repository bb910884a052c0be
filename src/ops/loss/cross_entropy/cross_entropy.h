// Cross-entropy with integer labels.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

struct CrossEntropyResult {
  Value loss;  // [T] fp32: lse - logit[label]; 0 where the label is -100
  Value lse;   // [T] fp32
};
// logits [T, V]; labels [T] I32, -100 not scored, else in [0, V) (checked on the host).
CrossEntropyResult cross_entropy(Value logits, Value labels);
const OpDef& cross_entropy_def();
// Node: inputs dloss [T], logits, labels, lse; result dlogits = (softmax - onehot)·dloss, 0 in rows not scored.
const OpDef& cross_entropy_backward_def();

}  // namespace hierarchos::ops
