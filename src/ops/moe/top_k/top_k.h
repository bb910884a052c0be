// The largest elements of rows: routers, samplers.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

struct TopK {
  Value values;   // [T, k], x's dtype, descending
  Value indices;  // [T, k] I32; of equal elements the lower index first
};
// x [T, N] floating, k ≤ N. NaN counts as smaller than everything. Both results' gradients are absent: a router takes
// its weights with gather from the scores.
TopK top_k(Value x, int64_t k);
const OpDef& top_k_def();  // attr k

}  // namespace hierarchos::ops
