// Rotary position embedding (Su et al. 2021) with tables made on the host in float64.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// Rotates the first R = 2·cos.back() channels of each head of x [T, H, D]; the rest pass through.
// cos, sin: fp32 [T, R/2] (a row a token), or, with `positions` [T] I32, [P, R/2] indexed by position.
// Pair p is (p, p + R/2), or (2p, 2p+1) when interleaved:  a' = a·cos - b·sin,  b' = b·cos + a·sin.
// Node: inputs x, cos, sin, [positions]; attrs interleaved, inverse (rotates back: the gradient). x may be a strided
// view with contiguous D.
Value rope(Value x, Value cos, Value sin, std::optional<Value> positions = std::nullopt, bool interleaved = false);
const OpDef& rope_def();

}  // namespace hierarchos::ops
