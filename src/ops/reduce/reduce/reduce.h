// Reductions over one group of neighbouring axes.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// Node: attrs kind ("sum", "mean", "max"), begin, end: axes [begin, end) are reduced away; the rest keep their order.
// Accumulates in fp32 (fixed order: bits do not depend on threads). Result has x's dtype, or fp32 with attr out_f32 = 1.
// An empty reduction gives 0 (sum), and -inf (max). Input contiguous. No gradient for max.
Value sum(Value x, int begin, int end);
Value sum(Value x);         // of all elements, rank 0
Value mean(Value x, int begin, int end);
Value max(Value x, int begin, int end);

const OpDef& reduce_def();

}  // namespace hierarchos::ops
