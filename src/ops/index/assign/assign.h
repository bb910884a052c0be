// Copies a value over a state, converting between floating types.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// target' = value (same shape). Node: inputs target, value; result updates input 0. value may be strided.
Value assign(Value target, Value value);
const OpDef& assign_def();

}  // namespace hierarchos::ops
