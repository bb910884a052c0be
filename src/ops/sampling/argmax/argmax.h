// Greedy choice.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// x [T, V] floating → [T] I32: index of the largest element, the lowest index on a tie; NaN is never chosen (all NaN: 0).
Value argmax(Value x);
const OpDef& argmax_def();

}  // namespace hierarchos::ops
